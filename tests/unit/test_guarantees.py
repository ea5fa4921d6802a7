"""Arguments of the guarantees, and a part of one's own; what they do is in tests/timeline/test_backfilling.py."""

from __future__ import annotations

from typing import Any

import pytest

from clustermodel import SpecificationError, check_policy
from clustermodel.policies.backfilling.guarantees import EveryJob, NoJob, Relaxed, Selective
from clustermodel.policies.backfilling.scheduler import NAMED, Backfilling
from clustermodel.policies.queue_order import CRITERIA
from clustermodel.policies.registry import make_policy, policy_names, policy_parameters, policy_summary


@pytest.mark.parametrize("guarantees", ["al", "", None, 3, ["all"], {}, EveryJob, object()])
def test_guarantees_are_a_name_or_a_part(guarantees: Any) -> None:
    with pytest.raises(SpecificationError) as refused:
        Backfilling(guarantees=guarantees)
    message = str(refused.value)
    assert message.startswith(f"backfilling: guarantees: {guarantees!r} is not allowed")
    assert message.endswith("it must be one of all, none, selective, relaxed, or an object with start")


@pytest.mark.parametrize("threshold", [0.99, 0, -1, float("nan"), "x", None, True])
def test_a_threshold_below_one_is_refused_whoever_holds_reservations(threshold: Any) -> None:
    shown = threshold if isinstance(threshold, int | float) else repr(threshold)
    for use in (
        Selective,
        lambda threshold: Backfilling(guarantees="selective", threshold=threshold),
        lambda threshold: Backfilling(threshold=threshold),
    ):
        with pytest.raises(SpecificationError) as refused:
            use(threshold)
        assert str(refused.value) == f"backfilling: threshold: {shown} is not allowed; it must be a number >= 1"


@pytest.mark.parametrize("relaxation", [-0.01, float("nan"), float("inf"), "x", None, True])
def test_a_negative_relaxation_is_refused_whoever_holds_reservations(relaxation: Any) -> None:
    shown = relaxation if isinstance(relaxation, int | float) else repr(relaxation)
    for use in (
        Relaxed,
        lambda relaxation: Backfilling(guarantees="relaxed", relaxation=relaxation),
        lambda relaxation: Backfilling(relaxation=relaxation),
    ):
        with pytest.raises(SpecificationError) as refused:
            use(relaxation)
        assert str(refused.value) == f"backfilling: relaxation: {shown} is not allowed; it must be a finite number >= 0"


def test_the_twelve_schedulers_of_table_4_have_the_papers_names() -> None:
    assert list(NAMED) == [*CRITERIA, *(f"{criterion}-NG" for criterion in CRITERIA)]
    assert CRITERIA == ("D", "P", "R", "1/L", "P/L", "R/L")
    assert set(NAMED) <= set(policy_names())
    assert [make_policy(name).name for name in NAMED] == list(NAMED)
    assert make_policy("backfilling").name == "D"
    assert make_policy("backfilling:order=R/L,guarantees=none").name == "R/L-NG"
    assert make_policy("backfilling:guarantees=relaxed").name == "D relaxed"
    assert Backfilling(order=lambda job, _: job.id, guarantees=NoJob()).name == "own order NoJob"


@pytest.mark.parametrize("name", NAMED)
def test_each_is_summed_up_in_words_of_its_own_and_shows_the_parameters_its_name_leaves_open(name: str) -> None:
    criterion = name.removesuffix("-NG")
    summary = policy_summary(name)
    assert f" {criterion}," in summary
    assert ("without guarantees" in summary) == name.endswith("-NG")
    parameters = policy_parameters(name)
    assert {"speculation", "test_runs", "width", "widening", "starvation_weight"} <= set(parameters)
    assert ("levels" in parameters) == ("P" in criterion)
    assert not {"order", "guarantees", "threshold", "relaxation"} & set(parameters)


@pytest.mark.long
def test_parts_can_be_given_as_objects() -> None:
    for part in (EveryJob(), NoJob(), Selective(1.5), Relaxed(0.1)):
        policy = Backfilling(order="R", guarantees=part, speculation=0.3)
        assert check_policy(policy) == []
        assert policy.name == f"R {type(part).__name__}"
