"""Transfers that share a bandwidth, against processor sharing in exact fractions, one event after the other."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel.sim.checkpoint_store import Moving, SharedBandwidth
from tests.property.strategies import cases

SECOND = 1_000_000


def ends(total: int | None, per_task: int | None, transfers: list[tuple[int, int, int]]) -> list[int]:
    """Return when transfers (begin, tasks, ticks alone) end, ticks."""
    shared = SharedBandwidth(total, per_task)
    found: dict[Moving, int] = {}
    begun: list[Moving] = []
    waiting = sorted(range(len(transfers)), key=lambda number: transfers[number][0])
    numbers = {}
    while waiting or shared.tasks:
        end = shared.next_end()
        if waiting and (end is None or transfers[waiting[0]][0] < end):
            number = waiting.pop(0)
            begun.append(shared.begin(*transfers[number]))
            numbers[begun[-1]] = number
            continue
        assert end is not None
        found |= dict.fromkeys(shared.ended(end), end)
    return [end for _, end in sorted((numbers[one], end) for one, end in found.items())]


def exact_ends(total: int | None, per_task: int | None, transfers: list[tuple[int, int, int]]) -> list[Fraction]:
    """Return the same without rounding."""
    shared = SharedBandwidth(total, per_task)
    left = {number: Fraction(ticks * shared.alone(tasks), tasks) for number, (_, tasks, ticks) in enumerate(transfers)}
    at_store: set[int] = set()
    now, found = Fraction(0), [Fraction(0)] * len(transfers)
    waiting = sorted(left, key=lambda number: transfers[number][0])
    while waiting or at_store:
        tasks = sum(transfers[number][1] for number in at_store)
        shares = [] if total is None else [Fraction(total, max(tasks, 1))]
        rate = min(shares if per_task is None else [*shares, Fraction(per_task)])
        end = min((now + left[number] / rate for number in at_store), default=None)
        begins = Fraction(transfers[waiting[0]][0]) if waiting else None
        then = min(time for time in (end, begins) if time is not None)
        for number in at_store:
            left[number] -= (then - now) * rate
        now = then
        for number in [number for number in at_store if left[number] <= 0]:
            at_store.remove(number)
            found[number] = now
        if begins == now:
            at_store.add(waiting.pop(0))
    return found


def test_a_transfer_alone_takes_its_time() -> None:
    assert ends(100, None, [(5, 3, 1_000)]) == [1_005]
    assert ends(None, 100, [(5, 3, 1_000)]) == [1_005]


def test_two_equal_transfers_take_twice_as_long() -> None:
    # The first one has 9 s of the store left when the second one joins: 18 s for both, and the second one's last second.
    assert ends(1000, None, [(0, 1, 10 * SECOND), (SECOND, 1, 10 * SECOND)]) == [19 * SECOND, 20 * SECOND]


def test_the_share_is_in_proportion_to_tasks() -> None:
    # Three tasks of one gang and one of another, 8 bytes each: the store's 8 bytes a second are 2 for each.
    assert ends(8, None, [(0, 3, 3 * SECOND), (0, 1, SECOND)]) == [4 * SECOND, 4 * SECOND]


def test_a_node_moves_no_more_than_its_own_bandwidth() -> None:
    # Two tasks of 4 bytes a second do not use up the store's bandwidth, and a third task joins them without loss.
    assert ends(10, 4, [(0, 2, SECOND)]) == [SECOND]
    assert ends(12, 4, [(0, 2, SECOND), (0, 1, SECOND)]) == [SECOND, SECOND]


def test_how_long_a_size_takes_alone() -> None:
    assert SharedBandwidth(10, 4).ticks_alone(2, 16) == 2 * SECOND
    assert SharedBandwidth(10, 4).ticks_alone(5, 25) == 2_500_000
    assert SharedBandwidth(3, None).ticks_alone(1, 1) == 333_334


def test_a_transfer_that_is_stopped_leaves_its_share() -> None:
    shared = SharedBandwidth(1000, None)
    first, second = shared.begin(0, 1, 10 * SECOND), shared.begin(0, 1, 10 * SECOND)
    shared.stop(4 * SECOND, first)
    assert shared.next_end() == 12 * SECOND
    assert shared.ended(12 * SECOND) == [second]
    assert shared.next_end() is None


@settings(max_examples=cases(1000), deadline=None)
@given(
    total=st.none() | st.integers(10**6, 10**11),
    per_task=st.integers(10**6, 10**11),
    transfers=st.lists(st.tuples(st.integers(0, 200), st.integers(1, 10), st.integers(1, 100)), min_size=1, max_size=12),
    unit=st.sampled_from((1, 1000, SECOND)),
    unlimited_nodes=st.booleans(),
)
def test_transfers_end_when_exact_processor_sharing_says(
    total: int | None, per_task: int, transfers: list[tuple[int, int, int]], unit: int, unlimited_nodes: bool
) -> None:
    given_times = [(begins * unit, tasks, ticks * unit) for begins, tasks, ticks in transfers]
    limits = (total, None if unlimited_nodes and total is not None else per_task)
    found, exact = ends(*limits, given_times), exact_ends(*limits, given_times)
    all_tasks = sum(tasks for _, tasks, _ in transfers)
    for end, right, (_, tasks, _) in zip(found, exact, transfers, strict=True):
        # Each end is rounded up to a tick, and others feel it: so much is left, which all may share who have begun meanwhile.
        assert right - 1 <= end <= right + len(transfers) * Fraction(all_tasks, tasks)


@pytest.mark.parametrize("bandwidth", [1, 7, 2**30])
def test_equal_transfers_end_together_whatever_is_rounded(bandwidth: int) -> None:
    assert len(set(ends(bandwidth, None, [(0, 1, 10 * SECOND)] * 7))) == 1
