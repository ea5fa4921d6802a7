"""Intervals against scipy's, warm-up and batch means against slow twins and series of known make, stopping rules by hand."""

import re
from collections.abc import Callable
from dataclasses import replace
from math import ceil, inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from clustermodel import Machine, Scenario, SpecificationError, synthetic_workload
from clustermodel.experiment.result import Result, suggest_warm_up
from clustermodel.experiment.study import Precision, Study, replicate_until
from clustermodel.experiment.study_table import StudyTable
from clustermodel.measure.statistics import Interval, batch_means, interval, mser5, paired_difference, paired_ratio
from clustermodel.policies.fcfs import Fcfs
from tests.conftest import refusal
from tests.statistical.error_rates import coverage
from tests.studies.driven import driven
from tests.timeline.timeline import play

numbers = st.floats(-1e6, 1e6).map(lambda number: round(number, 3))
pairs = st.lists(st.tuples(numbers, numbers), min_size=2, max_size=30)


@given(st.lists(numbers, min_size=2, max_size=30).filter(lambda values: len(set(values)) > 1), st.floats(0.5, 0.999))
def test_an_interval_is_students(values: list[float], level: float) -> None:
    found = interval(values, level)
    expected = stats.t.interval(level, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-9, abs=1e-6)
    assert (found.level, found.count) == (level, len(values))
    assert found.mean in found
    assert found.high + 0.01 * found.half not in found


@given(pairs.filter(lambda values: len({round(a - b, 3) for a, b in values}) > 1))
def test_a_paired_difference_is_that_of_scipys_paired_test(values: list[tuple[float, float]]) -> None:
    a, b = map(list, zip(*values, strict=True))
    found, expected = paired_difference(a, b), stats.ttest_rel(a, b).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-6)
    # the interval leaves out 0 where the test rejects, at the same level
    if abs(stats.ttest_rel(a, b).pvalue - 0.05) > 1e-6:
        assert (0 not in found) == (stats.ttest_rel(a, b).pvalue < 0.05)


def test_an_interval_by_hand() -> None:
    # 1, 2, 3: mean 2, deviation 1; t for 2 degrees of freedom 4.302653, divided by the root of 3
    found = interval([1, 2, 3])
    assert (found.mean, found.half) == pytest.approx((2, 2.484138))
    assert str(found) == "2.0 ± 2.5"


@pytest.mark.parametrize(
    ("mean", "half", "shown"),
    [
        (12345.678, 123.4, "12,346 ± 123"),
        (0.51234, 0.00123, "0.5123 ± 0.0012"),
        (3.14159, 0.0, "3.142 ± 0.000"),
        (-7.0, 9.9, "-7.0 ± 9.9"),
    ],
)
def test_an_interval_is_shown_with_two_digits_of_its_width(mean: float, half: float, shown: str) -> None:
    assert str(Interval(mean, half, 0.95, 5)) == shown


def test_values_that_are_all_the_same_have_no_width() -> None:
    assert interval([4.0, 4.0]) == Interval(4.0, 0.0, 0.95, 2)
    assert paired_difference([3, 4, 5], [1, 2, 3]) == Interval(2.0, 0.0, 0.95, 3)


def test_a_ratio_is_the_mean_of_ratios_and_one_where_both_are_zero() -> None:
    # 1/2, 4/4, 0/0
    assert paired_ratio([1, 4, 0], [2, 4, 0]).mean == pytest.approx((0.5 + 1 + 1) / 3)
    assert paired_ratio([1, 4], [2, 4]) == interval([0.5, 1])


REPLICATIONS = "one for each replication"


@pytest.mark.parametrize(
    ("refused", "says"),
    [
        (lambda: interval([]), rf"^values: 0 values, \[\], cannot be enough; at least 2 are needed, {REPLICATIONS}$"),
        (lambda: interval([1]), rf"^values: 1 value, \[1.0\], cannot be enough; at least 2 are needed, {REPLICATIONS}$"),
        (
            lambda: interval([[1.0, 2.0]]),
            r"^values: an array of shape \(1, 2\) is not allowed; it must be a sequence of numbers, ",
        ),
        (lambda: interval(5), rf"^values: 5 is not allowed; it must be a sequence of numbers, {REPLICATIONS}$"),
        (lambda: interval([1, "x"]), r"^values: \[1, 'x'\] is not allowed; it must be a sequence of numbers$"),
        (lambda: interval([1, [2, 3]]), r"^values: \[1, \[2, 3\]\] is not allowed; it must be a sequence of numbers$"),
        (lambda: interval({1.5, 2}), r"^values: \{.*\} is not allowed; it must be a sequence of numbers$"),
        (lambda: interval([1.0, nan]), r"^values: nan at 1 is not allowed; every value must be finite$"),
        (lambda: interval([1.0, 2.0], level=1.0), r"^level: 1.0 is not allowed; it must be > 0 and < 1$"),
        (lambda: interval([1.0, 2.0], level=95), r"^level: 95 is not allowed"),
        (lambda: paired_difference([1, 2], [1, 2, 3]), r"^b: 3 values are not allowed; a has 2"),
        (lambda: paired_difference([1, 2], [1, nan]), r"^b: nan at 1 is not allowed"),
        (lambda: paired_difference("ab", [1, 2]), r"^a: 'ab' is not allowed; it must be a sequence of numbers$"),
        (lambda: paired_ratio([1], [1]), rf"^a: 1 value, \[1.0\], cannot be enough; at least 2 are needed, {REPLICATIONS}$"),
        (lambda: paired_ratio([1, 2], [1, 0]), r"^b: 0 at 1 is not allowed; a is 2 there"),
        (lambda: mser5(range(9)), r"^values: 9 values, .*, cannot be enough; at least 10 are needed, two batches of 5$"),
        (lambda: mser5([nan] * 10), r"^values: nan at 0 is not allowed"),
        (lambda: batch_means(range(39)), r"^values: 39 values, .*; at least 40 are needed, two for each of 20 batches$"),
        (lambda: batch_means(range(39), batches=1), r"^batches: 1 is not allowed; it must be an integer >= 2$"),
        (
            lambda: replicate_until(make, "kapa", relative=0.1),
            r"^Precision\.measure: 'kapa' is not allowed \(did you mean 'kappa'\?\); it must be a column of the table$",
        ),
        (
            lambda: Study(name="s", factors={}, scenario=make, until=Precision(measure="kappa", relative=1), replications=2),
            r"^Study\.replications, until: both are given; Precision has at_least and at_most$",
        ),
        (
            lambda: Study(name="s", factors={}, scenario=make, until=0.1),  # type: ignore[arg-type]
            r"^Study\.until: 0\.1 is not allowed; it must be a Precision$",
        ),
        (lambda: Study(name="s", factors={}, scenario=make, replications=0), r"^Study\.replications: 0 is not allowed"),
        (lambda: Study(name="s", factors={}, scenario=make, seed=-1), r"^Study\.seed: -1 is not allowed"),
    ],
)
def test_what_has_no_interval_is_refused_in_one_line(refused: Callable[[], object], says: str) -> None:
    assert re.search(says, refusal(refused))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "Precision: relative None, half_width None is not allowed; give one of the two"),
        ({"half_width": 1, "relative": 1}, "Precision: relative 1, half_width 1 is not allowed"),
        ({"half_width": 0}, "Precision.half_width: 0 is not allowed; it must be a finite number > 0"),
        ({"half_width": 1, "level": 95}, "level: 95 is not allowed"),
        ({"relative": nan}, "Precision.relative: nan is not allowed"),
        ({"relative": 0.1, "at_least": 1}, "Precision.at_least: 1 is not allowed"),
        ({"relative": 0.1, "at_most": 9}, "Precision.at_most: 9 is not allowed; it must be an integer >= 10"),
    ],
)
def test_a_precision_is_checked(fields: dict[str, float], says: str) -> None:
    assert refusal(lambda: Precision(measure="kappa", **fields)).startswith(says)  # type: ignore[arg-type]


def make(seed: int, policy: str = "easy") -> Scenario:
    return Scenario(
        machine=Machine(nodes=32), workload=synthetic_workload(jobs=60, nodes=32, load=0.9, seed=seed), policy=policy, seed=seed
    )


def test_replications_have_the_same_jobs_under_all_policies_and_other_jobs_than_the_others() -> None:
    study = Study(name="s", factors={"policy": ["fcfs", "easy"]}, scenario=make, replications=3, seed=5)
    table = study.run(workers=1)
    for policy in ("fcfs", "easy"):
        expected = [make(seed, policy).run().summary().mean_wait_s for seed in (5, 6, 7)]
        assert table.values("mean_wait_s", policy=policy).tolist() == expected
    assert table.at(policy="easy").frame["seed"].tolist() == [5, 6, 7]
    assert len(set(table.values("mean_wait_s", policy="fcfs"))) == 3


def test_a_measure_is_a_column_of_the_table_or_a_function_of_the_result() -> None:
    measures = {
        "late": lambda result: result.summary(warm_up_s=3600).jobs,
        "none": lambda _: None,
        "endless": lambda _: inf,
        "numpy": lambda _: np.float32(0.5),
        "flag": lambda _: np.True_,
    }
    study = Study(name="s", factors={"policy": ["easy", "gs"]}, scenario=make, measures=measures)
    table = study.run(workers=1)
    assert table.values("jobs", policy="easy").tolist() == [60]
    assert table.values("late", policy="easy") < 60
    assert table.values("numpy", policy="easy").tolist() == [0.5]
    assert table.values("flag", policy="gs").tolist() == [1.0]
    for name in ("none", "endless"):
        with pytest.raises(SpecificationError, match=rf"^table of s: {name} is missing in policy easy$"):
            table.values(name, policy="easy")
    with pytest.raises(SpecificationError, match=r"^table of s: delayed is missing in policy gs$"):
        table.values("delayed", policy="gs")  # None in the summary
    with pytest.raises(SpecificationError, match=r"there is no column 'mean_wait' \(did you mean 'mean_wait_s'\?\)$"):
        table.values("mean_wait", policy="easy")
    with pytest.raises(SpecificationError, match=r"^table of s: run is '[0-9a-f]{32}'; it must be a column of numbers$"):
        table.values("run", policy="easy")


def draws(seed: int) -> float:
    return float(np.random.default_rng(seed).normal(10.0, 2.0))


def until(value: Callable[[int], float | None], seed: int = 1, **wanted: float) -> StudyTable:
    """Return the replications of one point until the interval of a measure is as narrow as wanted."""
    study = replicate_until(make, "kappa", seed=seed, **wanted)  # type: ignore[arg-type]
    return driven(study, "kappa", lambda _, seed: value(seed))


@pytest.mark.parametrize("wanted", [{"half_width": 1.0}, {"relative": 0.1}])
def test_it_stops_at_the_first_look_at_which_the_interval_is_narrow_enough(wanted: dict[str, float]) -> None:
    found = until(draws, **wanted, seed=3)
    values = [draws(seed) for seed in range(3, 203)]
    assert found.values("kappa").tolist() == values[: len(found)]
    looks = [10]
    while (now := interval(values[: looks[-1]])).half > (
        width := wanted.get("half_width", 0) + wanted.get("relative", 0) * now.mean
    ):
        looks.append(max(looks[-1] + 1, ceil(looks[-1] * min((now.half / width) ** 2, 2))))
    assert looks[-1] == len(found) > 10  # it did not just stop at the least
    assert found.interval("kappa") == now


def test_the_relative_width_is_a_share_of_the_means_size() -> None:
    assert len(until(lambda seed: -draws(seed), relative=0.1)) == len(until(draws, relative=0.1)) > 10
    assert len(until(lambda seed: draws(seed) - 10.0, relative=1e-9, at_most=40)) == 40


def test_it_makes_at_least_and_at_most_so_many_replications() -> None:
    assert len(until(lambda _: 1.0, half_width=1e-9, at_least=4)) == 4
    assert len(until(draws, half_width=1e-9, at_most=25)) == 25
    assert len(until(lambda seed: None if seed == 5 else draws(seed), half_width=1e-9)) == 10  # more would not help
    assert len(until(lambda seed: None if seed == 15 else draws(seed), half_width=1e-9)) == 20


def test_what_is_wanted_follows_from_the_first_replications_alone() -> None:
    """So an experiment that was interrupted goes on as it would have done, whatever else is finished."""
    full = until(draws, half_width=1e-9, at_most=100)
    wanted = Precision(measure="kappa", half_width=1.0)
    for count in range(10, 101):
        first = StudyTable(full.frame[:count], (), "s")
        assert wanted.wanted(first, {}) == min(wanted.wanted(full, {}), wanted.wanted(first, {}))
    without = StudyTable(full.frame[full.frame["replication"] != 7], (), "s")
    assert wanted.wanted(without, {}) == 10


def test_runs_that_cannot_differ_are_not_repeated() -> None:
    jobs = synthetic_workload(jobs=60, nodes=32)

    class Declared(Fcfs):
        name, depends_on = "declared", frozenset[str]()

    def always(seed: int) -> Scenario:
        return Scenario(workload=jobs, policy=Declared(), seed=seed)

    study = replicate_until(always, "mean_wait_s", relative=0.1)
    table = study.run(workers=1)
    assert (len(table), table.interval("mean_wait_s").count) == (10, 1)


def test_sequential_intervals_cover_nearly_as_often_as_they_say() -> None:
    root = np.random.default_rng(7)
    hits = sum(10.0 in until(lambda _: root.normal(10.0, 2.0), half_width=1.0).interval("kappa") for _ in range(400))
    assert 0.90 <= hits / 400 <= 0.97


def mser5_by_definition(values: list[float]) -> list[float]:
    """Return the statistic of every cut in the first half, from sums written as the definition has them."""
    batches = [np.mean(values[at : at + 5]) for at in range(0, len(values) - 4, 5)]
    scores = []
    for cut in range(len(batches) // 2 + 1):
        left = np.array(batches[cut:])
        scores.append(float(((left - left.mean()) ** 2).sum() / len(left) ** 2))
    return scores


@given(st.lists(numbers, min_size=10, max_size=120))
def test_mser_5_finds_the_least_of_the_statistics_of_its_definition(values: list[float]) -> None:
    scores, found = mser5_by_definition(values), mser5(values)
    assert found.drop % 5 == 0
    assert scores[found.drop // 5] == pytest.approx(min(scores), rel=1e-6, abs=1e-3)
    assert found.settled == (found.drop // 5 < len(scores) - 1)


def test_mser_5_cuts_where_a_transient_ends() -> None:
    noise = np.random.default_rng(2).normal(0, 1, 1000)
    assert mser5(noise + np.where(np.arange(1000) < 200, 50, 0)) == (200, True)
    assert mser5(noise).drop < 100
    found = mser5(noise + 30 * np.exp(-np.arange(1000) / 50))  # below the noise of a batch after some 200 values
    assert found.settled
    assert 100 <= found.drop <= 300


def test_mser_5_of_a_series_that_never_settles_and_of_one_that_is_all_the_same() -> None:
    assert mser5(np.arange(100.0)) == (50, False)
    assert mser5([0.1] * 57) == (0, True)


def filling(count: int) -> Result:
    """One node; a job every 10 s, of 11 s for the first 400 s and of 5 s after that: waits grow, then shrink to nothing."""
    return play(1, "\n".join(f"{n} {100 + 10 * n} 1 {11 if n < 40 else 5}" for n in range(count)), "fcfs")


def test_a_suggested_warm_up_is_the_submission_of_the_first_job_that_counts() -> None:
    result = filling(200)
    expected = mser5(result.jobs["wait_s"])
    found = suggest_warm_up(result)
    assert (found.jobs, found.settled) == expected
    assert found.seconds == 10 * found.jobs > 400
    assert result.summary(warm_up_s=found.seconds).jobs == 200 - found.jobs
    assert suggest_warm_up(result, column="response_s").seconds == 10 * mser5(result.jobs["response_s"]).drop


def test_jobs_of_one_instant_stay_on_one_side_of_the_warm_up() -> None:
    # ten jobs at each instant, long ones at first; MSER-5 would cut through the middle of the second ten
    jobs = [f"{n} {100 * (n // 10)} 1 {60 if n < 15 else 1}" for n in range(100)]
    result = play(10, "\n".join(jobs), "fcfs")
    found = suggest_warm_up(result, column="run_s")
    assert (found.seconds, found.jobs) == (100, 15)
    assert result.summary(warm_up_s=found.seconds).jobs == 90


def test_the_suggestion_for_several_runs_is_that_for_their_average_and_holds_for_the_last_of_them() -> None:
    short, long = filling(100), play(1, "\n".join(f"{n} {20 * n} 1 {25 if n < 30 else 5}" for n in range(300)), "fcfs")
    found = suggest_warm_up(short, long)
    drop, settled = mser5((short.jobs["wait_s"] + long.jobs["wait_s"][:100]) / 2)
    assert found == (20 * drop, drop, settled)
    assert drop > 0


def test_a_warm_up_is_suggested_for_numbers_of_enough_jobs_that_ran() -> None:
    assert refusal(suggest_warm_up).startswith("results: none is given")
    assert refusal(lambda: suggest_warm_up(3)).startswith("results: 3 is not allowed; each must be a Result")  # type: ignore[arg-type]
    few = play(1, "\n".join(f"{n} {n} {1 + n // 9} 5" for n in range(20)), "fcfs")
    line = "results: 9 jobs that ran to an end in a run cannot be enough; at least 10 "
    assert refusal(lambda: suggest_warm_up(few)).startswith(line)
    for column in ("wait", "status"):
        line = refusal(lambda column=column: suggest_warm_up(filling(20), column=column))
        assert line.startswith(f"column: '{column}' is not allowed")


@given(st.lists(numbers, min_size=8, max_size=100), st.integers(2, 4))
def test_batch_means_are_the_interval_of_the_means_of_batches(values: list[float], batches: int) -> None:
    found = batch_means(values, batches)
    size = len(values) // batches
    kept = values[len(values) % batches :]
    means = [float(np.mean(kept[at : at + size])) for at in range(0, len(kept), size)]
    expected = interval(means)
    assert (found.mean, found.half) == pytest.approx((expected.mean, expected.half), rel=1e-9, abs=1e-6)
    assert (found.count, found.batch, found.level) == (batches, size, 0.95)
    assert -1 <= found.lag_1 <= 1


def test_the_correlation_of_neighbouring_batches_by_hand() -> None:
    # means 1, 3, 2, 6: deviations -2, 0, -1, 3; products 0, 0, -3; squares 4 + 0 + 1 + 9
    assert batch_means([1, 1, 3, 3, 2, 2, 6, 6], batches=4).lag_1 == pytest.approx(-3 / 14)
    assert batch_means([5.0] * 8, batches=4).lag_1 == 0


def correlated(rng: np.random.Generator, count: int, memory: float) -> np.ndarray:
    """Return a stationary autoregressive series of mean 0 and deviation 1."""
    series, shocks = np.empty(count), rng.normal(0, np.sqrt(1 - memory**2), count)
    series[0] = rng.normal()
    for at in range(1, count):
        series[at] = memory * series[at - 1] + shocks[at]
    return series


def test_long_runs_cover_and_short_ones_are_not_long_enough() -> None:
    rng = np.random.default_rng(3)
    long = [batch_means(correlated(rng, 4000, 0.9)) for _ in range(100)]  # 200 values, correlation time 19
    short = [batch_means(correlated(rng, 100, 0.9)) for _ in range(200)]  # 5 values
    assert sum(0 in one for one in long) >= 90
    assert sum(0 in one for one in short) < 150
    assert sum(one.long_enough for one in long) > 80
    assert not any(one.long_enough for one in short)
    assert np.mean([one.correlation_time for one in long]) == pytest.approx(19, rel=0.1)  # (1 + 0.9) / (1 - 0.9)


def test_the_correlation_time_by_hand() -> None:
    # deviations -1, -1, 1, 1; products at lags 0 to 3: 4, 1, -2, -1; the first pair is 5 / 4, the second negative: 1.5;
    # but batches of 2 have means 1 and 3, of variance 2, by that of the values, 1: 2 * 2 / 1
    assert batch_means([1, 1, 3, 3], batches=2).correlation_time == pytest.approx(4)
    assert batch_means([1, 3, 1, 3], batches=2).correlation_time == 1  # 2 * 1 / 4 - 1 is less
    assert batch_means([5.0] * 8, batches=4).correlation_time == 1


def test_batches_are_long_enough_up_to_what_chance_gives_and_from_100_correlation_times_on() -> None:
    found = replace(batch_means(np.arange(40.0), batches=4), correlation_time=0.39)
    assert not replace(found, lag_1=0.83).long_enough  # 1.645 / sqrt(4) = 0.822
    assert replace(found, lag_1=0.82).long_enough
    assert not replace(found, lag_1=0.82, correlation_time=0.4).long_enough  # 40 values


def test_the_interval_of_a_long_run_is_wider_than_that_of_its_batches() -> None:
    values = np.random.default_rng(1).normal(size=1000)
    found, plain = batch_means(values), interval(values.reshape(20, 50).mean(axis=1))
    assert found.half == pytest.approx(plain.half * (1 + (250 * found.correlation_time / 1000) ** 2))
    assert plain.half < found.half < 1.2 * plain.half
    assert batch_means(values[:100]).half == interval(values[:100].reshape(20, 5).mean(axis=1)).half  # too short


@pytest.mark.statistical
@pytest.mark.parametrize("jobs", [10_000, 20_000, 50_000, 100_000])
@pytest.mark.parametrize("load", [0.5, 0.8, 0.9])
def test_what_is_long_enough_covers_in_at_least_90_percent(load: float, jobs: int) -> None:
    for covers, vouched, of_vouched in coverage(load, jobs, 200).values():
        assert of_vouched >= 0.9
        assert vouched >= 0.8 or (load, jobs) in [(0.8, 10_000), (0.9, 10_000), (0.9, 20_000), (0.9, 50_000)]
        assert covers >= 0.85 or (load, jobs) == (0.9, 10_000)
