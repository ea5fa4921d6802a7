"""Crossings of synthetic curves whose crossing is known, coverage of their intervals, and small real ones."""

from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustermodel import ContextSwitch, Machine, Scenario, TimeSlicing, synthetic_workload
from clustermodel.experiment.crossover import Crossover, CrossoverStudy, crossover, tradeoff_map
from clustermodel.experiment.factors import Label
from clustermodel.measure.statistics import Interval, paired_difference
from tests.conftest import refusal
from tests.studies.driven import driven


def line(half: float, zero: float, slope: float = 1.0) -> Callable[[float], Interval]:
    return lambda value: Interval(slope * (value - zero), half, 0.95, 10)


def crossing(difference: Callable[[float], Interval], low: float, high: float, **options: Any) -> Crossover:
    return searched(low, high, **options).search(difference)


def test_a_straight_difference_crosses_at_its_zero_with_the_interval_of_its_width() -> None:
    found = crossing(line(half=0.5, zero=3.3), 0.0, 10.0, step=0.1)
    assert (found.lower_before, found.lower_after, found.changes) == ("a", "b", 1)
    assert found.at == pytest.approx(3.3)
    # the interval of the difference holds zero from 2.8 to 3.8; the last value below and the first above
    assert 2.7 <= found.low <= 2.8
    assert 3.8 <= found.high <= 3.9
    assert found.certain
    assert str(found).startswith("a is lower up to 3.3 (interval 2.")
    assert str(found).endswith("), b beyond")


def test_a_falling_difference_has_the_other_policy_lower_first() -> None:
    rising, falling = (crossing(line(0.5, 3.3, slope), 0.0, 10.0, step=0.1) for slope in (1.0, -1.0))
    assert (falling.lower_before, falling.lower_after) == ("b", "a")
    assert (falling.at, falling.low, falling.high) == pytest.approx((rising.at, rising.low, rising.high))


def test_whole_numbers_stay_whole_and_the_crossing_lies_between_two_of_them() -> None:
    asked = []

    def difference(value: float) -> Interval:
        asked.append(value)
        return Interval(value - 5.4, 2.0, 0.95, 10)

    found = crossing(difference, 1, 64, step=1)
    assert all(isinstance(value, int) for value in asked)
    assert len(asked) == len(set(asked)) <= 5 + 3 * 4
    assert found.at == pytest.approx(5.4)
    assert (found.low, found.high) == (3, 8)  # -2.4 + 2 < 0 and 2.6 - 2 > 0; at 4 and 7 the interval holds zero
    assert list(found.differences) == sorted(asked)


@pytest.mark.parametrize(("half", "zero", "low", "high"), [(4.0, 3.0, -inf, 7.5), (4.0, 7.0, 2.5, inf), (20.0, 5.0, -inf, inf)])
def test_an_interval_is_open_where_the_range_does_not_bound_it(half: float, zero: float, low: float, high: float) -> None:
    found = crossing(line(half, zero), 0.0, 10.0, step=0.5)
    assert (found.low, found.at, found.high) == (low, pytest.approx(zero), high)
    assert not found.certain


@pytest.mark.parametrize(("zero", "lower"), [(11.0, "a"), (-1.0, "b")])
def test_without_a_crossing_one_policy_is_lower_throughout(zero: float, lower: str) -> None:
    found = crossing(line(0.5, zero), 0, 10, step=1)
    assert (found.lower_before, found.lower_after, found.changes) == (lower, lower, 0)
    assert np.isnan([found.at, found.low, found.high]).all()
    assert list(found.differences) == [0, 2, 5, 8, 10]  # the first look is all
    assert found.certain
    assert str(found) == f"{lower} is lower throughout"
    nowhere = crossing(line(20.0, zero), 0, 10, step=1)
    assert str(nowhere) == f"{lower} is lower throughout, nowhere significantly"
    doubtful = crossing(line(2.0, zero), 0, 10, step=1)
    assert not doubtful.certain
    assert str(doubtful) == f"{lower} is lower throughout, not significantly everywhere"


def test_values_at_which_both_are_equal_are_no_sign() -> None:
    # equal up to 4, as where there is nothing to schedule, then a is lower, and from 8 on b
    found = crossing(lambda value: Interval((value > 4) * (value - 8.0), 0.1, 0.95, 3), 0.0, 12.0, step=0.25)
    assert (found.lower_before, found.lower_after) == ("a", "b")
    assert found.at == pytest.approx(8.0)
    touching = crossing(lambda value: Interval(max(value - 4.0, 0.0), 0.0, 0.95, 3), 0.0, 12.0, step=0.25)
    assert (touching.lower_before, touching.lower_after) == ("b", "b")


def test_where_the_means_are_exactly_equal_nothing_is_beyond_doubt() -> None:
    equal = crossing(lambda _: Interval(0.0, 0.0, 0.95, 3), 0.0, 1.0, step=0.1)
    assert (equal.lower_before, equal.certain, str(equal)) == (None, False, "equal throughout")
    # -, 0, 0, 0, +: without any spread
    found = crossing(lambda value: Interval(float(np.sign(value) * (abs(value) > 1)), 0.0, 0.95, 3), -5, 5, step=1)
    assert (found.low, found.at, found.high) == (-2, -1, 2)


def test_of_several_crossings_the_first_is_found_and_all_are_counted() -> None:
    def difference(value: float) -> Interval:
        return Interval(float(np.sin(value)), 0.01, 0.95, 10)

    found = crossing(difference, 1.0, 12.0, step=0.01, first_look=23)
    assert found.changes == 3
    assert found.at == pytest.approx(np.pi, abs=1e-4)
    assert (found.lower_before, found.lower_after) == ("b", "a")


@given(zero=st.floats(0.01, 0.99), half=st.floats(0, 2), steps=st.integers(1, 300), first_look=st.integers(2, 9))
def test_the_crossing_is_where_it_is_however_one_looks(zero: float, half: float, steps: int, first_look: int) -> None:
    found = crossing(line(half, zero), 0.0, 1.0, step=1 / steps, first_look=first_look)
    assert found.at == pytest.approx(zero, abs=1e-9)
    assert found.low <= found.at + 1e-9
    assert found.high >= found.at - 1e-9
    for bound, edge in ((found.low, zero - half), (found.high, zero + half)):
        assert not np.isfinite(bound) or bound == pytest.approx(edge, abs=1.001 / steps)
    assert list(found.differences) == sorted(found.differences)
    assert max(found.differences) == 1.0


def test_a_step_that_does_not_fit_ends_at_the_high_end() -> None:
    assert list(crossing(line(0.1, 9.0), 0, 5, step=2).differences) == [0, 2, 4, 5]
    assert list(crossing(line(0.1, 9.0), 0.0, 0.3, step=0.1).differences) == pytest.approx([0, 0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"low": nan}, "Study.factors: value: nan is not allowed; a number must be finite (None is allowed)"),
        ({"high": inf}, "Study.factors: value: inf is not allowed"),
        ({"high": 0.0}, "Study.factors: value: 0.0 is given twice"),
        ({"high": -1.0}, "high: -1.0 is not allowed; it must be greater than low, 0.0"),
        ({"low": "a"}, "low: 'a' is not allowed; it must be a finite number"),
        ({"step": 0}, "step: 0 is not allowed; it must be > 0, at most high - low, 1"),
        ({"step": 1.5}, "step: 1.5 is not allowed"),
        ({"step": 1e-9}, "step: 1e-09 is not allowed; at most 1,000,000 steps"),
        ({"first_look": 1}, "first_look: 1 is not allowed; it must be an integer >= 2"),
        ({"replications": 1}, "replications: 1 is not allowed; it must be an integer >= 2"),
        ({"level": 95}, "level: 95 is not allowed"),
        ({"measure": "wait"}, "measure: 'wait' is not allowed (did you mean "),
        ({"policies": "ab"}, "policies: 'ab' is not allowed; a crossover is of two policies"),
        ({"policies": ["a"]}, "policies: ['a'] is not allowed; a crossover is of two policies"),
        ({"policies": ["a", "a"]}, "Study.factors: policy: 'a' is given twice; levels must be distinct"),
        ({"along": "seed"}, "Study.factors: 'seed' is not allowed; a factor's name must be a name of Python other than "),
    ],
)
def test_what_cannot_be_searched_is_refused_in_one_line(change: dict[str, Any], says: str) -> None:
    options = {"along": "value", "low": 0.0, "high": 1.0, "step": 0.1, "policies": ["a", "b"], **change}
    assert refusal(lambda: crossover(unused, **options)).startswith(says)


def test_a_crossover_needs_its_factor_and_two_policies() -> None:
    fields: dict[str, Any] = {"name": "c", "scenario": unused, "low": 0, "high": 9, "step": 1, "measure": "kappa"}
    for factors in ({"value": [0, 9]}, {"value": [0, 9], "policy": ["a"]}, {"x": [0, 9], "policy": ["a", "b"]}):
        line = refusal(lambda factors=factors: CrossoverStudy(factors=factors, along="value", **fields))
        assert line == f"crossover: the factors {', '.join(factors)} are not allowed; there must be value and two policies"


def unused(**_: object) -> Scenario:
    raise AssertionError("no scenario is needed")


def noisy(zero: float, experiment: int) -> Callable[[dict[str, Label], int], float]:
    """Return two policies whose expected difference is zero at ``zero``, under jobs that make each replication another line.

    What both share is large; a replication shifts and tilts its difference, and each value adds noise of its own.
    """

    def measured(levels: dict[str, Label], seed: int) -> float:
        value = float(levels["value"] or 0)
        jobs = np.random.default_rng([experiment, seed])
        shared, shift, tilt = jobs.normal(100, 30), jobs.normal(0, 1), jobs.normal(2, 0.5)
        own = np.random.default_rng([experiment, seed, round(value * 1e6)]).normal(0, 0.3)
        return float(shared + (tilt * (value - zero) + shift + own if levels["policy"] == "a" else 0.0))

    return measured


def searched(low: float, high: float, **options: Any) -> CrossoverStudy:
    return crossover(unused, "value", low, high, ["a", "b"], "kappa", **options)


@pytest.mark.statistical
def test_intervals_of_crossings_cover_as_often_as_they_say() -> None:
    zeros = np.random.default_rng(4).uniform(3, 7, 200)
    study = searched(0.0, 10.0, step=0.05, replications=8)
    found = [study.conclude(driven(study, "kappa", noisy(zero, experiment))) for experiment, zero in enumerate(zeros)]
    hits = sum(one.low <= zero <= one.high for one, zero in zip(found, zeros, strict=True))
    assert 0.91 <= hits / 200 <= 0.99
    assert all((one.lower_before, one.lower_after, one.certain) == ("a", "b", True) for one in found)
    assert np.mean([one.at for one in found] - zeros) == pytest.approx(0, abs=0.05)
    assert np.median([one.high - one.low for one in found]) < 1.2  # single replications cross anywhere within +- 1


def test_both_policies_get_the_same_seeds_at_every_value() -> None:
    asked: list[tuple[Label, Label, int]] = []

    def measured(levels: dict[str, Label], seed: int) -> float:
        asked.append((levels["value"], levels["policy"], seed))
        return float(levels["value"] or 0) if levels["policy"] == "a" else 0.55 + 0.01 * (seed % 3)

    study = searched(0.0, 1.0, step=0.1, replications=4, seed=7)
    found = study.conclude(driven(study, "kappa", measured))
    assert len(asked) == len(set(asked))
    assert set(asked) == {
        (value, policy, seed) for value in found.differences for policy in ("a", "b") for seed in range(7, 11)
    }
    values = {seed: 0.55 + 0.01 * (seed % 3) for seed in range(7, 11)}
    for value, difference in found.differences.items():
        assert difference == paired_difference([value] * 4, [values[seed] for seed in range(7, 11)])
    frame = found.frame
    assert (frame.index.name, list(frame)) == ("value", ["difference", "half", "low", "high", "replications"])
    assert frame["replications"].eq(4).all()


def test_a_value_without_a_finished_run_is_named() -> None:
    study = searched(0, 10, step=1, replications=2)
    table = driven(study, "kappa", lambda levels, seed: None if levels["value"] == 5 else float(seed))
    line = "crossover: value 5: table of crossover: kappa is missing in value 5, policy a"
    assert refusal(lambda: study.conclude(table)) == line


def test_a_crossover_cannot_be_divided(tmp_path: Path) -> None:
    study = searched(0, 10, step=1)
    line = refusal(lambda: study.run(tmp_path, shard=(1, 2)))
    assert line == "shard: a crossover cannot be divided, because each value follows from the ones before it"
    assert not list(tmp_path.iterdir())


def sliced(fraction: float, policy: str, seed: int, mpl: int = 5) -> Scenario:
    machine = Machine(
        nodes=16,
        time_slicing=TimeSlicing(quantum_s=200, mpl=mpl),
        context_switch=ContextSwitch(fraction=fraction, charge="every-slice"),
    )
    return Scenario(machine=machine, workload=synthetic_workload(jobs=80, nodes=16, load=0.8, seed=seed), policy=policy)


def test_gang_scheduling_loses_against_backfilling_as_context_switches_grow() -> None:
    found = crossover(sliced, "fraction", 0.0, 0.8, ["gs", "bf"], step=0.05, replications=4).run(workers=1)
    assert (found.lower_before, found.lower_after) == ("gs", "bf")
    for fraction, lower in ((0.0, -1), (0.8, 1)):
        runs = [[sliced(fraction, policy, seed).run().summary() for seed in range(1, 5)] for policy in ("gs", "bf")]
        expected = np.mean(np.subtract(*[[run.mean_bounded_slowdown for run in of_policy] for of_policy in runs]))
        assert np.sign(expected) == lower
        assert found.differences[fraction].mean == pytest.approx(expected)


def test_an_integer_parameter_reaches_the_machine_as_one() -> None:
    def make(mpl: int, policy: str, seed: int) -> Scenario:
        return sliced(0.02, policy, seed, mpl)  # a float would be refused

    found = crossover(make, "mpl", 1, 4, ["gs", "bf"], "mean_response_s", step=1, replications=2).run(workers=1)
    assert isinstance(found, Crossover)
    assert all(isinstance(value, int) for value in found.differences)


def test_a_map_has_the_lowest_policy_at_each_point_and_those_that_tie() -> None:
    study = tradeoff_map(unused, {"x": [1, 2], "y": [0.0, 2.0, 4.0]}, ["a", "b"], "kappa", replications=4)

    def measured(levels: dict[str, Label], seed: int) -> float:
        return levels["x"] - levels["y"] + 0.1 * (seed % 2) if levels["policy"] == "a" else 0.0  # type: ignore[operator]

    table = driven(study, "kappa", measured)
    assert len(table) == len(study) == 48
    found = study.tables["lowest kappa"](table)
    assert list(found) == ["x", "y", "lowest", "kappa", "tied"]
    assert found[["x", "y"]].to_numpy().tolist() == [[1, 0], [1, 2], [1, 4], [2, 0], [2, 2], [2, 4]]
    # differences x - y + 0.05, half 0.092 (deviation 0.0577, t 3.18, root of 4)
    assert found["lowest"].tolist() == ["b", "a", "a", "b", "b", "a"]
    assert found["tied"].tolist() == ["", "", "", "", "a", ""]
    differences = table.differences("kappa", "policy", "b")
    assert differences["difference"].tolist() == pytest.approx([1.05, -0.95, -2.95, 2.05, 0.05, -1.95])
    assert differences["half"].tolist() == pytest.approx([0.0919] * 6, rel=1e-3)
    assert differences["significant"].tolist() == [True, True, True, True, False, True]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"factors": {"x": [], "y": [1]}}, "Study.factors: x: no level is given; at least one is needed"),
        ({"factors": {"x": [1]}}, "factors: {'x': [1]} is not allowed; a map has two factors with their levels"),
        ({"factors": 3}, "factors: 3 is not allowed; a map has two factors with their levels"),
        ({"policies": "ab"}, "policies: 'ab' is not allowed; a map compares two policies or more"),
        ({"policies": ["a"]}, "policies: ['a'] is not allowed; a map compares two policies or more"),
        ({"replications": 1}, "replications: 1 is not allowed; it must be an integer >= 2"),
        ({"measure": "kapa"}, "measure: 'kapa' is not allowed (did you mean 'kappa'?); it must be a column of the table"),
    ],
)
def test_what_cannot_be_mapped_is_refused_in_one_line(change: dict[str, Any], says: str) -> None:
    assert refusal(lambda: tradeoff_map(unused, **{"factors": {"x": [1], "y": [2]}, "policies": ["a", "b"], **change})) == says
