"""Formulas of Zhang et al. 2003 for machines that are shared in time, and of processor sharing, on numbers worked by hand."""

from math import isnan
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustermodel import SpecificationError
from clustermodel.theory.capacity_loss import capacity_loss, gang_capacity_loss
from clustermodel.theory.migration import option_1_overhead, option_2_overhead
from clustermodel.theory.processor_sharing import mg1_ps_mean_slowdown


class Interval(NamedTuple):
    length: int
    waiting: bool
    held: tuple[int, ...]
    switching: tuple[tuple[int, int], ...]
    migration: int = 0
    up: int = 10
    begun: int = 0


def test_equation_3_where_an_event_left_the_running_slice_alone() -> None:
    # N = 10, T = 100.  30 ticks of the row of 8 nodes had passed: 70 of it, 100 of the row of 6, 80 of the first again.
    kept = Interval(250, True, (8, 6), ((0, 0), (0, 0)), 12, begun=30)
    assert gang_capacity_loss([kept], 100, 5, 10) == (2 * 70 + 4 * 100 + 2 * 80 + 12) / 2500


def test_equation_3_slice_by_slice() -> None:
    # N = 10, T = 100, switch 5.  Rows of 8 and 6 nodes, 250 ticks: slices of 100, 100 and 50 of rows 0, 1, 0.
    # Empty: 2 x 100 + 4 x 100 + 2 x 50 = 700.  Switches, every node in every slice: 5 x 8 + 5 x 6 + 5 x 8 = 110.
    interval = Interval(250, True, (8, 6), ((8, 8), (6, 6)))
    assert gang_capacity_loss([interval], 100, 5, 10) == pytest.approx((700 + 110) / 2500)
    # Nobody waits: nothing is lost, but the time counts.
    idle = Interval(250, False, (8, 6), ((8, 8), (6, 6)))
    assert gang_capacity_loss([interval, idle], 100, 5, 10) == pytest.approx(810 / 5000)
    assert gang_capacity_loss([idle], 100, 5, 10) == 0


def test_a_switch_that_is_cut_short_counts_as_long_as_it_was_and_later_laps_by_themselves() -> None:
    # 203 ticks: slices of row 0, row 1, and 3 ticks of row 0, all of it switch.  In the first lap 8 and 2 nodes are held up,
    # later 4 and 0: 5 x 8 + 5 x 2 + 3 x 4 = 62.  Empty: 2 x 100 + 4 x 100 + 2 x 3 = 606.
    interval = Interval(203, True, (8, 6), ((8, 4), (2, 0)))
    assert gang_capacity_loss([interval], 100, 5, 10) == pytest.approx((606 + 62) / 2030)


def test_a_stretch_that_ends_with_a_slice_has_no_empty_slice_after_it() -> None:
    interval = Interval(200, True, (10, 10), ((10, 10), (10, 10)))
    assert gang_capacity_loss([interval], 100, 5, 10) == pytest.approx(2 * 50 / 2000)


def test_migrations_and_an_idle_machine_are_lost_while_a_job_waits() -> None:
    # Held nodes that make no progress are lost too: 30 node-ticks; then nothing runs for 10 ticks on 10 nodes.
    intervals = [Interval(100, True, (10,), ((0, 0),), 30), Interval(10, True, (), ()), Interval(10, False, (), (), 5)]
    assert gang_capacity_loss(intervals, 100, 0, 10) == pytest.approx((30 + 100) / 1200)
    assert isnan(gang_capacity_loss([], 100, 0, 10))


@given(
    intervals=st.lists(st.tuples(st.integers(1, 500), st.booleans(), st.integers(0, 8)), min_size=1, max_size=8),
    quantum=st.integers(1, 200),
)
def test_with_one_row_and_no_switches_equation_3_is_equation_2(intervals: list[tuple[int, bool, int]], quantum: int) -> None:
    times, empty, waiting = [0], [], []
    for length, delta, held in intervals:
        times.append(times[-1] + length)
        empty.append(8 - held)
        waiting.append(delta)
    log = [
        Interval(length, delta, (held,) if held else (), ((0, 0),) if held else (), 0, 8) for length, delta, held in intervals
    ]
    expected = capacity_loss(times, [*empty, 8], [*waiting, False], 8)
    assert gang_capacity_loss(log, quantum, 0, 8) == pytest.approx(expected, abs=1e-12)


def test_the_overheads_of_migration() -> None:
    # Zhang et al. 2003, section 5.4.
    # C = 10, C/2 each; |A| = 3, S(A) = {4, 2}.  Eq. (4): 5 x 3 + 10 x 6 = 75; eq. (5): 10 x 3 + 5 x 6 = 60.
    assert option_1_overhead(3, [4, 2], 5, 5) == 75
    assert option_2_overhead(3, [4, 2], 5, 5) == 60
    # A restart that takes longer than the checkpoint: 1 x 3 + 10 x 6 and 10 x 3 + 1 x 6.
    assert option_1_overhead(3, [4, 2], 1, 9) == 63
    assert option_2_overhead(3, [4, 2], 1, 9) == 36
    assert option_1_overhead(3, [], 5, 5) == 15
    assert option_2_overhead(3, [], 5, 5) == 30


@given(tasks=st.integers(0, 99), others=st.lists(st.integers(1, 99)), cost=st.floats(0, 1e6))
def test_the_cheaper_option_moves_fewer_tasks(tasks: int, others: list[int], cost: float) -> None:
    first, second = (option(tasks, others, cost / 2, cost / 2) for option in (option_1_overhead, option_2_overhead))
    assert first - second == pytest.approx(cost / 2 * (sum(others) - tasks), abs=1e-6 * max(1.0, first, second))


def test_the_slowdown_of_processor_sharing() -> None:
    assert mg1_ps_mean_slowdown(0.5) == 2
    assert mg1_ps_mean_slowdown(0.8) == pytest.approx(5)
    for load in (0.0, 1.0, 1.5, -0.1):
        with pytest.raises(SpecificationError) as refused:
            mg1_ps_mean_slowdown(load)
        assert str(refused.value) == f"load: {load} is not allowed; it must be > 0 and < 1"
