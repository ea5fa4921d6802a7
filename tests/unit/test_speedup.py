"""Speedup models: how long a job takes on more or fewer nodes than it asked for."""

from itertools import pairwise
from math import ceil, nextafter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustermodel import Machine, Scenario, SpecificationError, synthetic_workload
from clustermodel.workload.speedup import LINEAR, DowneySpeedup, LinearSpeedup, Speedup

sigmas = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 2.0, 10.0]), st.floats(0, 20))
averages = st.floats(1, 200)


def test_on_half_as_many_nodes_a_job_takes_twice_as_long_and_a_fraction_of_a_tick_is_a_whole_one() -> None:
    assert LinearSpeedup() == LINEAR
    assert LINEAR.time_on(10, 4, 2) == 20
    assert LINEAR.time_on(10, 4, 8) == 5
    assert LINEAR.time_on(10, 4, 3) == 14  # 13.33
    assert LINEAR.time_on(10, 4, 4) == 10
    assert LINEAR.time_on(1, 1, 1000) == 1


def test_downey_with_little_variance_by_hand() -> None:
    # A = 8, sigma = 1/2.  S(4) = 32 / (8 + 3/4); S(8) = 64 / (8 + 7/4); S(12) = 96 / (15/4 + 9); from 15 on A.
    model = DowneySpeedup(sigma=0.5)
    assert model.speedup(4, 8) == pytest.approx(32 / 8.75)
    assert model.speedup(8, 8) == pytest.approx(64 / 9.75)
    assert model.speedup(12, 8) == pytest.approx(96 / 12.75)
    assert [model.speedup(nodes, 8) for nodes in (15, 16, 1000)] == [8, 8, 8]


def test_downey_with_much_variance_by_hand() -> None:
    # A = 8, sigma = 2: S(4) = 4 x 8 x 3 / (2 x 11 + 8) = 3.2; from A + A sigma - sigma = 22 on A.
    model = DowneySpeedup(sigma=2.0)
    assert model.speedup(4, 8) == pytest.approx(3.2)
    assert model.speedup(21, 8) < 8
    assert [model.speedup(nodes, 8) for nodes in (22, 23, 1000)] == [8, 8, 8]


def test_downeys_time_is_scaled_by_the_ratio_of_speedups_and_rounded_up() -> None:
    # sigma = 2, A = 8: S(8) = 8 x 8 x 3 / (2 x 15 + 8) = 192 / 38, S(4) = 3.2: 100 ticks become 157.89...
    model = DowneySpeedup(sigma=2.0)
    assert model.time_on(100, 8, 4) == 158
    assert model.time_on(100, 8, 8) == 100
    assert model.time_on(1, 8, 1000) == 1


def test_a_larger_average_parallelism_leaves_more_to_gain_from_more_nodes() -> None:
    # A = 4 x 8 and sigma = 0: linear up to 32 nodes
    assert DowneySpeedup(sigma=0.0, parallelism=4.0).time_on(800, 8, 32) == 200
    assert DowneySpeedup(sigma=0.0).time_on(800, 8, 32) == 800


@given(sigma=sigmas, average=averages)
def test_one_node_is_as_fast_as_one_node(sigma: float, average: float) -> None:
    assert DowneySpeedup(sigma=sigma).speedup(1, average) == pytest.approx(1)


@given(sigma=sigmas, average=averages)
def test_more_nodes_are_never_slower_and_never_faster_than_linear_or_than_a(sigma: float, average: float) -> None:
    model = DowneySpeedup(sigma=sigma)
    values = [model.speedup(nodes, average) for nodes in range(1, 500)]
    tiny = 1e-9  # of the floating-point formulas, which meet at their ends only up to rounding
    assert all(one <= other * (1 + tiny) for one, other in pairwise(values))
    assert all(value <= min(nodes, average) * (1 + tiny) for nodes, value in enumerate(values, 1))


@given(average=averages)
def test_without_variance_speedup_is_linear_up_to_a_and_then_a(average: float) -> None:
    model = DowneySpeedup(sigma=0.0)
    for nodes in range(1, 500):
        assert model.speedup(nodes, average) == pytest.approx(min(nodes, average))


@given(sigma=sigmas, average=st.floats(1.01, 200))
def test_the_pieces_meet_where_they_change(sigma: float, average: float) -> None:
    model = DowneySpeedup(sigma=sigma)
    breakpoints = [average, 2 * average - 1] if sigma <= 1 else [average + average * sigma - sigma]
    for point in breakpoints:
        before, at, after = (model.speedup(n, average) for n in (nextafter(point, 0), point, nextafter(point, 1e9)))  # type: ignore[arg-type]
        assert before == pytest.approx(at, rel=1e-9)
        assert after == pytest.approx(at, rel=1e-9)
    assert model.speedup(breakpoints[-1], average) == pytest.approx(average)  # type: ignore[arg-type]


@given(average=averages, nodes=st.integers(1, 500))
def test_the_two_formulas_agree_at_a_variance_of_one(average: float, nodes: int) -> None:
    low, high = DowneySpeedup(sigma=1.0), DowneySpeedup(sigma=nextafter(1.0, 2.0))
    assert low.speedup(nodes, average) == pytest.approx(high.speedup(nodes, average))


@given(ticks=st.integers(1, 10**13), asked=st.integers(1, 500), nodes=st.integers(1, 500), sigma=sigmas)
def test_no_time_vanishes_the_nodes_asked_for_change_nothing_and_more_nodes_never_take_longer(
    ticks: int, asked: int, nodes: int, sigma: float
) -> None:
    for model in (LINEAR, DowneySpeedup(sigma=sigma), DowneySpeedup(sigma=sigma, parallelism=3.0)):
        assert model.time_on(ticks, asked, asked) == ticks
        assert model.time_on(ticks, asked, nodes) >= 1
        # one tick in 10**12 is what floats of these formulas can be wrong by
        assert model.time_on(ticks, asked, nodes + 1) <= model.time_on(ticks, asked, nodes) + 1 + ticks * asked // 10**12
        assert model.time_on(ticks, asked, nodes) <= model.time_on(ticks + 1, asked, nodes)


@given(ticks=st.integers(1, 10**13), asked=st.integers(1, 500), nodes=st.integers(1, 500))
def test_linear_time_keeps_the_work_up_to_less_than_a_tick_on_each_node(ticks: int, asked: int, nodes: int) -> None:
    assert 0 <= LINEAR.time_on(ticks, asked, nodes) * nodes - ticks * asked < nodes
    assert LINEAR.time_on(ticks, asked, nodes) == -((-ticks * asked) // nodes)


@given(ticks=st.integers(1, 10**9), asked=st.integers(1, 100), nodes=st.integers(1, 100), sigma=sigmas)
def test_downeys_time_is_the_formula_rounded_up(ticks: int, asked: int, nodes: int, sigma: float) -> None:
    model = DowneySpeedup(sigma=sigma)
    exact = ticks * model.speedup(asked, asked) / model.speedup(nodes, asked)
    assert model.time_on(ticks, asked, nodes) in {ceil(exact), ceil(exact * (1 - 1e-12)), ceil(exact * (1 + 1e-12))}


@pytest.mark.parametrize("sigma", [-0.1, float("nan"), float("inf"), "1", None, True])
def test_a_variance_that_is_no_number_from_zero_on_is_refused(sigma: float) -> None:
    with pytest.raises(SpecificationError, match=r"^DowneySpeedup\.sigma: .* is not allowed; it must be a finite number >= 0$"):
        DowneySpeedup(sigma=sigma)


@pytest.mark.parametrize("parallelism", [0, 0.99, -1, float("nan"), float("inf"), "1", None])
def test_an_average_parallelism_below_what_was_asked_for_is_refused(parallelism: float) -> None:
    with pytest.raises(SpecificationError, match=r"^DowneySpeedup\.parallelism: .* it must be a finite number >= 1$"):
        DowneySpeedup(parallelism=parallelism)


@pytest.mark.parametrize("speedup", [None, 2.0, "linear", DowneySpeedup, object()])
def test_a_scenario_refuses_what_is_no_speedup_model(speedup: Speedup) -> None:
    with pytest.raises(SpecificationError, match=r"^Scenario\.speedup: .* is not allowed; it must be a LinearSpeedup"):
        Scenario(machine=Machine(nodes=4), workload=synthetic_workload(jobs=2), speedup=speedup)
