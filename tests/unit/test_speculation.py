"""Arguments of speculation and test runs; what they do is in tests/timeline/test_backfilling.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from clustermodel import SpecificationError, make_policy
from clustermodel.policies.backfilling.scheduler import NAMED, Backfilling
from clustermodel.policies.backfilling.speculation import TestRuns

NONSENSE = [0, -0.5, 1.5, 1.0000001, float("nan"), float("inf"), "half", True, [0.5]]


@pytest.mark.parametrize("speculation", NONSENSE)
def test_a_speculation_percentage_outside_zero_to_one_is_refused_by_name(speculation: Any) -> None:
    shown = speculation if isinstance(speculation, int | float) else repr(speculation)
    with pytest.raises(SpecificationError) as refused:
        Backfilling(speculation=speculation)
    assert str(refused.value) == f"backfilling: speculation: {shown} is not allowed; it must be a number > 0 and <= 1"


@pytest.mark.parametrize("name", NAMED)
def test_so_it_is_in_the_description_of_every_scheduler(name: str) -> None:
    with pytest.raises(
        SpecificationError, match=r"^backfilling: speculation: 1\.5 is not allowed; it must be a number > 0 and"
    ):
        make_policy(f"{name}:speculation=1.5")
    for given in ("speculation=1", "speculation=1e-9", "speculation=0.5,test_runs=true"):
        assert make_policy(f"{name}:{given}").name == name


def test_the_paper_runs_tests_of_jobs_longer_than_three_hours_for_five_to_fifteen_minutes() -> None:
    assert TestRuns() == TestRuns(longer_than_s=3 * 3600, shortest_s=300, longest_s=900)


@pytest.mark.parametrize("field", ["longer_than_s", "shortest_s", "longest_s"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "x", None, True, 1e11])
def test_times_of_test_runs_are_positive_seconds(field: str, value: Any) -> None:
    with pytest.raises(SpecificationError, match=rf"^TestRuns\.{field}: .* it must be a finite number of seconds > 0"):
        TestRuns(**{field: value})


def test_the_longest_test_run_is_no_shorter_than_the_shortest() -> None:
    with pytest.raises(SpecificationError) as refused:
        TestRuns(shortest_s=300, longest_s=299)
    assert str(refused.value) == "TestRuns.longest_s: 299 is not allowed; it must be >= shortest_s, which is 300"
    assert TestRuns(shortest_s=300, longest_s=300).longest_s == 300


@pytest.mark.parametrize("test_runs", [0, 1, "yes", "", [], TestRuns])
def test_test_runs_are_wanted_or_not_or_described(test_runs: Any) -> None:
    with pytest.raises(SpecificationError) as refused:
        Backfilling(test_runs=test_runs)
    expected = f"backfilling: test_runs: {test_runs!r} is not allowed; it must be True, False or TestRuns(...)"
    assert str(refused.value) == expected


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("R/L-NG:speculation=1.5", "backfilling: speculation: 1.5 is not allowed; it must be a number > 0 and <= 1"),
        ("D:speculation=0", "backfilling: speculation: 0 is not allowed"),
        ("1/L:speculation=nan", "backfilling: speculation: nan is not allowed"),
        ("R:width=0", "backfilling: width: 0 is not allowed; it must be a finite number > 0"),
        ("R:width=-2", "backfilling: width: -2 is not allowed"),
        ("R:width=inf", "backfilling: width: inf is not allowed"),
        ("R:width=haf", "backfilling: width: 'haf' is not allowed (did you mean 'half'?)"),
        ("R:widening=0", "backfilling: widening: 0 is not allowed"),
        ("P:levels=0", "backfilling: levels: 0 is not allowed; it must be an integer >= 1"),
        ("R-NG:starvation_weight=-1", "backfilling: starvation_weight: -1 is not allowed"),
        ("R-NG:test_runs=5", "backfilling: test_runs: 5 is not allowed"),
        ("R/L:sepculation=0.5", "policy R/L: parameter 'sepculation' is unknown (did you mean 'speculation'?)"),
        ("R-NG:levels=3", "policy R-NG: parameter 'levels' is unknown"),
        ("R-NG:guarantees=all", "policy R-NG: parameter 'guarantees' is unknown"),
        ("backfilling:guarantees=some", "backfilling: guarantees: 'some' is not allowed"),
        ("backfilling:guarantees=selective,threshold=0.5", "backfilling: threshold: 0.5 is not allowed; it must be"),
        ("backfilling:guarantees=relaxed,relaxation=-1", "backfilling: relaxation: -1 is not allowed"),
        ("backfilling:order=shortest,starvation_weight=1", "backfilling: starvation_weight: 1.0 is not allowed with order"),
        ("R/N", "policy: 'R/N' is unknown"),
    ],
)  # fmt: skip
def test_the_command_line_refuses_them_in_one_line(
    command_line: Callable[..., Any], write_trace: Callable[..., Any], policy: str, words: str
) -> None:
    trace = write_trace("; MaxNodes: 4", "1 0 0 10 1 -1 -1 1 10 -1 1 1 1 -1 -1 -1 -1 -1")
    finished = command_line("run", "--trace", trace, "--policy", policy)
    assert finished.code not in {0, None}
    assert finished.out == ""
    assert words in finished.err
    assert finished.err.count("\n") <= 2
    assert "Traceback" not in finished.err
