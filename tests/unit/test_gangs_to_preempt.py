"""Which gangs have to leave so that a job gets columns in every row, against trying all choices."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustermodel.plans import ousterhout
from clustermodel.plans.ousterhout import Clearing, InTheWay, clear


def free_without(columns: int, gangs: list[InTheWay], gone: tuple[int, ...]) -> int:
    for at, gang in enumerate(gangs):
        if at not in gone:
            columns &= ~gang.columns
    return columns


@st.composite
def crowds(draw: st.DrawFn) -> tuple[int, int, list[InTheWay]]:
    columns = draw(st.integers(1, 255))
    gangs = [InTheWay(draw(st.integers(1, 255)), draw(st.integers(0, 5))) for _ in range(draw(st.integers(0, 6)))]
    return draw(st.integers(1, 8)), columns, gangs


@given(crowd=crowds())
def test_the_fewest_gangs_leave_and_of_those_choices_one_with_the_least_loss(crowd: tuple[int, int, list[InTheWay]]) -> None:
    nodes, columns, gangs = crowd
    found = clear(nodes, columns, gangs)
    choices = [
        (len(gone), sum(gangs[at].loss for at in gone))
        for number in range(len(gangs) + 1)
        for gone in combinations(range(len(gangs)), number)
        if free_without(columns, gangs, gone).bit_count() >= nodes
    ]
    if not choices:
        assert found is None
        return
    assert found is not None
    assert found.columns.bit_count() == nodes
    assert found.columns & ~free_without(columns, gangs, found.preempted) == 0
    assert (len(found.preempted), sum(gangs[at].loss for at in found.preempted)) == min(choices)


@given(crowd=crowds())
def test_in_a_large_crowd_nobody_leaves_without_need(crowd: tuple[int, int, list[InTheWay]]) -> None:
    nodes, columns, gangs = crowd
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ousterhout, "_MOST_CHOICES", 0)  # every crowd is a large one
        found = clear(nodes, columns, gangs)
    assert (found is None) == (columns.bit_count() < nodes)
    if found is not None:
        assert found.columns.bit_count() == nodes
        assert found.columns & ~free_without(columns, gangs, found.preempted) == 0
        for spared in found.preempted:
            rest = tuple(at for at in found.preempted if at != spared)
            assert free_without(columns, gangs, rest).bit_count() < nodes


def test_one_wide_gang_goes_rather_than_two_narrow_ones() -> None:
    assert clear(2, 0b1111, [InTheWay(0b0011, 1), InTheWay(0b0100, 1), InTheWay(0b1000, 1)]) == Clearing(0b0011, (0,))


def test_of_two_equal_ones_the_one_goes_that_loses_less() -> None:
    assert clear(2, 0b1111, [InTheWay(0b0011, 9), InTheWay(0b1100, 8)]) == Clearing(0b1100, (1,))


def test_idle_columns_cost_nobody_anything() -> None:
    assert clear(2, 0b1111, [InTheWay(0b0001, 0), InTheWay(0b0010, 0)]) == Clearing(0b1100, ())
