"""Arguments of backfilling from parts: what is refused, names, and parts of one's own.

What the parts do is in tests/timeline/test_backfilling.py.
"""

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest

from clustermodel import SpecificationError, check_policy
from clustermodel.policies.backfilling.guarantees import EveryJob, NoJob, Relaxed, Selective
from clustermodel.policies.backfilling.moldable import Greedy
from clustermodel.policies.backfilling.scheduler import NAMED, Backfilling
from clustermodel.policies.backfilling.speculation import TestRuns
from clustermodel.policies.queue_order import CRITERIA
from clustermodel.policies.registry import make_policy, policy_names, policy_parameters, policy_summary

NO_FACTOR = [0, -1, 0.0, nan, inf]
REFUSED: dict[str, tuple[str, list[Any]]] = {
    "guarantees": (
        "it must be one of all, none, selective, relaxed, or an object with start",
        ["al", "", None, 3, ["all"], {}, EveryJob, object()],
    ),
    "order": (
        "it must be one of D, P, R, 1/L, P/L, R/L, arrival, shortest, narrowest, widest, or a callable",
        ["d", "L", "", "shortes", 3, None, ["D"], {"D"}],
    ),
    "levels": ("it must be an integer >= 1", [0, -1, 2.5, True]),
    "starvation_weight": ("it must be a finite number >= 0", [-0.1, nan, inf, "x", None, True]),
    "threshold": ("it must be a number >= 1", [0.99, 0, -1, nan, "x", None, True]),
    "relaxation": ("it must be a finite number >= 0", [-0.01, nan, inf, "x", None, True]),
    "speculation": ("it must be a number > 0 and <= 1", [0, -0.5, 1.5, 1.0000001, nan, inf, "half", True, [0.5]]),
    "test_runs": ("it must be True, False or TestRuns(...)", [0, 1, "yes", "", [], TestRuns]),
    "width": (
        "it must be one of asked, half, quarter, greedy, a number > 0, or an object with sizes",
        [None, [], ["half"], object(), "haf", "", Greedy, {}],
    ),
    "widening": ("it must be a finite number > 0", [*NO_FACTOR, "x", None]),
}
"""Argument -> what it must be, values that it is not."""


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, (_, values) in REFUSED.items() for value in values])
def test_an_argument_that_is_not_allowed_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(SpecificationError) as refused:
        Backfilling(**{field: value})
    message = str(refused.value)
    wrong = "is not a whole number" if value in (2.5, True) and field == "levels" else "is not allowed"
    assert message.startswith(f"backfilling: {field}: {value!r}"[:50])  # what is longer may be cut
    assert f" {wrong}" in message
    assert message.endswith(REFUSED[field][0])
    assert ("did you mean 'half'?" in message) == (value == "haf")
    assert ("did you mean 'shortest'?" in message) == (value == "shortes")


@pytest.mark.parametrize("width", [*NO_FACTOR, True])
def test_a_width_alternative_of_zero_or_less_or_no_number_is_refused(width: Any) -> None:
    for use in (lambda factor: Backfilling(width=factor), lambda factor: Greedy((1.0, factor))):
        with pytest.raises(SpecificationError) as refused:
            use(width)
        assert str(refused.value) == f"backfilling: width: {width} is not allowed; it must be a finite number > 0"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Selective(0.99), "backfilling: threshold: 0.99 is not allowed; it must be a number >= 1"),
        (lambda: Relaxed(-1), "backfilling: relaxation: -1 is not allowed; it must be a finite number >= 0"),
        (lambda: TestRuns(shortest_s=300, longest_s=299),
         "TestRuns.longest_s: 299 is not allowed; it must be >= shortest_s, which is 300"),
        *((lambda factors=factors: Greedy(factors),  # type: ignore[misc]
           f"backfilling: width: {factors!r} is not allowed; Greedy needs a sequence of alternatives, as (1, 0.5, 2)")
          for factors in ((), 0.5, "half", None)),
        *((lambda order=order: Backfilling(order=order, starvation_weight=0.1),  # type: ignore[misc]
           f"backfilling: starvation_weight: 0.1 is not allowed with order {order!r}; it is added to one of "
           "D, P, R, 1/L, P/L, R/L") for order in ("arrival", "shortest", "widest")),
    ],
)  # fmt: skip
def test_what_parts_and_combinations_refuse(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SpecificationError) as refused:
        make()
    assert str(refused.value) == message


@pytest.mark.parametrize("field", ["longer_than_s", "shortest_s", "longest_s"])
@pytest.mark.parametrize("value", [0, -1, nan, inf, "x", None, True, 1e11])
def test_times_of_test_runs_are_positive_seconds(field: str, value: Any) -> None:
    with pytest.raises(SpecificationError, match=rf"^TestRuns\.{field}: .* it must be a finite number of seconds > 0"):
        TestRuns(**{field: value})


def test_the_paper_runs_tests_of_jobs_longer_than_three_hours_for_five_to_fifteen_minutes() -> None:
    assert TestRuns() == TestRuns(longer_than_s=3 * 3600, shortest_s=300, longest_s=900)
    assert TestRuns(shortest_s=300, longest_s=300).longest_s == 300
    Backfilling(order="arrival", starvation_weight=0)


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
    for given in ("speculation=1", "speculation=1e-9", "speculation=0.5,test_runs=true"):
        assert make_policy(f"{name}:{given}").name == name


@pytest.mark.long
def test_parts_can_be_given_as_objects() -> None:
    for part in (EveryJob(), NoJob(), Selective(1.5), Relaxed(0.1)):
        policy = Backfilling(order="R", guarantees=part, speculation=0.3)
        assert check_policy(policy) == []
        assert policy.name == f"R {type(part).__name__}"
