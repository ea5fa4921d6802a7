"""Reservations in the rows of the matrix (Zhang et al. 2003, section 5.2), against a plan that is kept tick by tick."""

from collections.abc import Callable, Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel.plans.one_pool import OnePool
from clustermodel.plans.ousterhout import Occupant
from clustermodel.plans.pool_plans import PoolPlan, RowPlan
from clustermodel.plans.pools import Pools
from clustermodel.plans.rows import RowPlans, RowReservation
from clustermodel.policies.view import QueuedJob
from tests.jobs import queued
from tests.property.strategies import cases

PLANS = [OnePool, PoolPlan]
both_plans = pytest.mark.parametrize("kind", PLANS)


class Rows:
    """The plans of rows, with gangs given as (end, nodes); reservations are told by start, length, nodes and row."""

    def __init__(self, nodes: int, rows: int, kind: Callable[..., RowPlan] = OnePool) -> None:
        pools = Pools(nodes, [])
        self.plans = plans = RowPlans([kind(pools, may_overrun=False) for _ in range(rows)])
        self.reserved, self.place, self.improve = plans.reserved, plans.place, plans.improve
        self.may_start, self.moved, self.take_up = plans.may_start, plans.moved, plans.take_up

    def lay_out(self, now: int, rows: Sequence[Iterable[tuple[int, int]]]) -> list[list[Occupant]]:
        """Lay out the plans with the gangs of each row, and return these."""
        gangs: list[list[Occupant]] = []
        ends: dict[int, int] = {}
        for row, of_row in enumerate(rows):
            gangs.append([])
            used = 0
            for end, nodes in of_row:
                gang = Occupant(queued(number := 100 + len(ends), nodes), ((1 << nodes) - 1) << used, row, number)
                used += nodes
                ends[number] = end
                gangs[-1].append(gang)
        self.plans.rebuild(now, [{gang.job.id: gang for gang in of_row} for of_row in gangs], ends)
        return gangs

    def may_have(self, row: int, nodes: int, end: int) -> bool:
        """Return whether a gang of so many nodes may enter a row until ``end``."""
        gang = Occupant(queued(99, nodes), (1 << nodes) - 1, row, 99)
        return self.plans.rows[row].admits(gang, end - self.plans.now, migrates=False)

    def placed(self, job: QueuedJob, length: int, rows: Iterable[int]) -> tuple[int, int, int, int]:
        return told(self.place(job, length, rows))

    def improved(self, job: QueuedJob, rows: Iterable[int]) -> tuple[int, int, int, int]:
        return told(self.improve(job, rows))


def told(reservation: RowReservation) -> tuple[int, int, int, int]:
    """Return start, length, nodes and row."""
    start, length, split, row = reservation
    return start, length, sum(nodes for _, nodes in split), row


@both_plans
def test_a_job_is_placed_at_the_earliest_time_in_any_row_the_first_of_equals(kind: Callable[..., RowPlan]) -> None:
    plans = Rows(4, 3, kind)
    plans.lay_out(100, [[(150, 4)], [(130, 3), (170, 1)], [(130, 4)]])
    assert plans.placed(queued(1, 1), 10, range(3)) == (130, 10, 1, 1)
    assert plans.placed(queued(2, 4), 10, range(3)) == (130, 10, 4, 2)
    assert plans.placed(queued(3, 4), 5, range(3)) == (140, 5, 4, 2)
    assert plans.placed(queued(4, 1), 5, [0]) == (150, 5, 1, 0)
    assert plans.placed(queued(5, 2), 5, [1]) == (130, 5, 2, 1)
    assert list(plans.reserved) == [1, 2, 3, 4, 5]


@both_plans
def test_a_job_that_fits_now_is_placed_now(kind: Callable[..., RowPlan]) -> None:
    plans = Rows(4, 2, kind)
    plans.lay_out(100, [[(150, 4)], [(120, 2)]])
    assert plans.place(queued(1, 2), 1000, range(2)).start == 100
    assert plans.place(queued(2, 2), 1000, range(2)).start == 120  # row 1, beside the other, when the gang has ended


@both_plans
def test_a_reservation_moves_to_the_earliest_time_in_any_row_and_never_later(kind: Callable[..., RowPlan]) -> None:
    plans = Rows(2, 2, kind)
    plans.lay_out(0, [[(50, 2)], [(80, 2)]])
    job = queued(1, 2)
    assert plans.placed(job, 10, range(2)) == (50, 10, 2, 0)
    assert plans.improved(job, range(2)) == (50, 10, 2, 0)
    # The gang of row 1 has ended at 20; row 0's is on time.
    plans.lay_out(20, [[(50, 2)], []])
    assert plans.reserved[1].start == 50  # until it is improved
    assert plans.improved(job, [0]) == (50, 10, 2, 0)  # rows that are closed are not looked at
    assert plans.improved(job, range(2)) == (20, 10, 2, 1)
    # Its old room is free again.
    assert plans.placed(queued(2, 2), 10, [0]) == (50, 10, 2, 0)
    # Earlier in its own row, overlapping the room it had.
    plans.lay_out(45, [[(48, 2)], []])
    assert plans.improved(queued(2, 2), [0]) == (48, 10, 2, 0)


@both_plans
def test_a_reservation_stays_where_it_is_when_a_gang_is_late_and_one_that_is_overdue_begins_now(
    kind: Callable[..., RowPlan],
) -> None:
    plans = Rows(2, 1, kind)
    plans.lay_out(0, [[(50, 2)]])
    plans.place(queued(1, 2), 10, range(1))
    plans.place(queued(2, 2), 10, range(1))
    plans.lay_out(40, [[(55, 2)]])  # the gang will end at 55, and job 1 holds 50-60 all the same
    assert {number: told(each) for number, each in plans.reserved.items()} == {1: (50, 10, 2, 0), 2: (60, 10, 2, 0)}
    assert plans.improve(queued(1, 2), range(1)).start <= 50
    plans.lay_out(52, [[(55, 2)]])
    assert {number: told(each) for number, each in plans.reserved.items()} == {1: (52, 10, 2, 0), 2: (60, 10, 2, 0)}
    assert plans.improve(queued(1, 2), range(1)).start == 52
    assert plans.improve(queued(2, 2), range(1)).start == 60
    plans.lay_out(53, [[]])
    assert plans.may_start(queued(1, 2), 0)


@both_plans
def test_a_gang_may_enter_a_row_where_nothing_is_reserved_until_its_end(kind: Callable[..., RowPlan]) -> None:
    plans = Rows(4, 2, kind)
    plans.lay_out(100, [[(200, 3)], [(150, 2)]])
    plans.place(queued(1, 3), 10, [1])  # row 1, 150-160
    assert plans.may_have(0, 1, 10**9)
    assert not plans.may_have(0, 2, 101)
    assert plans.may_have(1, 2, 150)  # it ends when the reservation begins
    assert not plans.may_have(1, 2, 151)
    assert plans.may_have(1, 1, 10**9)  # beside it


@both_plans
def test_a_gang_that_moves_takes_its_room_along(kind: Callable[..., RowPlan]) -> None:
    plans = Rows(4, 2, kind)
    (_, (gang, *_)) = plans.lay_out(100, [[(200, 3)], [(150, 1), (150, 1)]])
    gang.home = 0
    plans.moved(gang, 1, gang.columns)
    assert not plans.may_have(0, 1, 150)
    assert plans.may_have(0, 1, 10**9) is False
    assert plans.may_have(1, 3, 150)


@both_plans
def test_a_reservation_that_begins_now_may_be_taken_up_in_another_row_with_equal_room(kind: Callable[..., RowPlan]) -> None:
    plans = Rows(4, 3, kind)
    plans.lay_out(100, [[(150, 2)], [(130, 3)], [(170, 1)]])
    job = queued(1, 2)
    assert plans.placed(job, 40, range(3)) == (100, 40, 2, 0)
    assert [plans.may_start(job, row) for row in range(3)] == [True, False, True]
    plans.take_up(Occupant(job, 0b110, 2, 1))
    assert plans.reserved == {}
    assert plans.may_have(0, 2, 150)  # nothing is held there any more
    assert not plans.may_have(2, 2, 101)  # 1 + 2 of 4 nodes until 140
    assert plans.place(queued(2, 3), 10, [2]).start == 140


@st.composite
def plans_over_time(draw: st.DrawFn) -> tuple[int, list[list[tuple[int, int]]], list[tuple[int, int]], int]:
    """Return nodes, gangs in rows as (end, nodes), waiting jobs as (nodes, length), and when to look again."""
    nodes = draw(st.integers(1, 5))
    rows = []
    for _ in range(draw(st.integers(1, 3))):
        left, row = nodes, []
        while left and draw(st.booleans()):
            size = draw(st.integers(1, left))
            left -= size
            row.append((draw(st.integers(1, 20)), size))
        rows.append(row)
    jobs = draw(st.lists(st.tuples(st.integers(1, nodes), st.integers(1, 12)), min_size=1, max_size=6))
    return nodes, rows, jobs, draw(st.integers(0, 20))


def used(gangs: list[tuple[int, int]], reservations: list[RowReservation], row: int, time: int) -> int:
    """Return the nodes of a row that are taken at a time."""
    held = sum(size for end, size in gangs if time < end)
    told_of = [told(other) for other in reservations]
    return held + sum(nodes for start, length, nodes, of_row in told_of if of_row == row and start <= time < start + length)


def earliest(
    nodes: int, rows: list[list[tuple[int, int]]], held: list[RowReservation], now: int, size: int, length: int
) -> int:
    return next(
        start
        for start in range(now, 10_000)
        if any(
            all(used(gangs, held, row, time) + size <= nodes for time in range(start, start + length))
            for row, gangs in enumerate(rows)
        )
    )


@settings(max_examples=cases(150))
@given(case=plans_over_time(), kind=st.sampled_from(PLANS))
def test_every_job_is_placed_and_improved_where_a_plan_kept_tick_by_tick_would(
    case: tuple[int, list[list[tuple[int, int]]], list[tuple[int, int]], int], kind: Callable[..., RowPlan]
) -> None:
    nodes, rows, jobs, later = case
    plans = Rows(nodes, len(rows), kind)
    plans.lay_out(0, rows)
    all_rows = range(len(rows))
    for number, (size, length) in enumerate(jobs):
        held = list(plans.reserved.values())
        assert plans.place(queued(number, size), length, all_rows).start == earliest(nodes, rows, held, 0, size, length)
    # Later some gangs have ended, at or before their predicted ends; nothing that was reserved has begun.
    now = min([later] + [reservation.start for reservation in plans.reserved.values()])
    rows = [[(end, size) for end, size in gangs if end > now + size] for gangs in rows]
    plans.lay_out(now, rows)
    for number, (size, length) in enumerate(jobs):
        old = plans.reserved[number]
        others = [other for job, other in plans.reserved.items() if job != number]
        improved = plans.improve(queued(number, size), all_rows)
        assert improved.start == earliest(nodes, rows, others, now, size, length) <= old.start
        assert plans.reserved[number] == improved
        assert told(improved)[1:3] == (length, size)
        for row, gangs in enumerate(rows):
            held = list(plans.reserved.values())
            assert all(used(gangs, held, row, time) <= nodes for time in range(now, 120))
            for end in (now + 1, now + 5, now + 30):
                free = all(used(gangs, held, row, time) + size <= nodes for time in range(now, end))
                assert plans.may_have(row, size, end) == free
