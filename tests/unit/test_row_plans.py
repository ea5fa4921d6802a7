"""Reservations in the rows of the matrix (Zhang et al. 2003, section 5.2), against a plan that is kept tick by tick."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel.errors import DecisionError
from clustermodel.plans.profile import Reservation
from clustermodel.plans.rows import RowPlans
from tests.jobs import queued
from tests.property.strategies import cases


def test_a_job_is_placed_at_the_earliest_time_in_any_row_the_first_of_equals() -> None:
    plans = RowPlans(4, 3)
    plans.rebuild(100, [[(150, 4)], [(130, 3), (170, 1)], [(130, 4)]])
    assert plans.place(queued(1, 1), 10, range(3)) == Reservation(row=1, start=130, length=10, nodes=1)
    assert plans.place(queued(2, 4), 10, range(3)) == Reservation(row=2, start=130, length=10, nodes=4)
    assert plans.place(queued(3, 4), 5, range(3)) == Reservation(row=2, start=140, length=5, nodes=4)
    assert plans.place(queued(4, 1), 5, [0]) == Reservation(row=0, start=150, length=5, nodes=1)
    assert plans.place(queued(5, 2), 5, [1]) == Reservation(row=1, start=130, length=5, nodes=2)
    assert list(plans.reserved) == [1, 2, 3, 4, 5]


def test_a_job_that_fits_now_is_placed_now() -> None:
    plans = RowPlans(4, 2)
    plans.rebuild(100, [[(150, 4)], [(120, 2)]])
    assert plans.place(queued(1, 2), 1000, range(2)).start == 100
    assert plans.place(queued(2, 2), 1000, range(2)).start == 120  # row 1, beside the other, when the gang has ended


def test_a_reservation_moves_to_the_earliest_time_in_any_row_and_never_later() -> None:
    plans = RowPlans(2, 2)
    plans.rebuild(0, [[(50, 2)], [(80, 2)]])
    job = queued(1, 2)
    assert plans.place(job, 10, range(2)) == Reservation(50, 10, 2, 0)
    assert plans.improve(job, range(2)) == Reservation(50, 10, 2, 0)
    # The gang of row 1 has ended at 20; row 0's is on time.
    plans.rebuild(20, [[(50, 2)], []])
    assert plans.reserved[1].start == 50  # until it is improved
    assert plans.improve(job, [0]) == Reservation(50, 10, 2, 0)  # rows that are closed are not looked at
    assert plans.improve(job, range(2)) == Reservation(20, 10, 2, 1)
    # Its old room is free again.
    assert plans.place(queued(2, 2), 10, [0]) == Reservation(50, 10, 2, 0)
    # Earlier in its own row, overlapping the room it had.
    plans.rebuild(45, [[(48, 2)], []])
    assert plans.improve(queued(2, 2), [0]) == Reservation(48, 10, 2, 0)


def test_a_reservation_stays_where_it_is_when_a_gang_is_late_and_one_that_is_overdue_begins_now() -> None:
    plans = RowPlans(2, 1)
    plans.rebuild(0, [[(50, 2)]])
    plans.place(queued(1, 2), 10, range(1))
    plans.place(queued(2, 2), 10, range(1))
    plans.rebuild(40, [[(55, 2)]])  # the gang will end at 55, and job 1 holds 50-60 all the same
    assert plans.reserved == {1: Reservation(50, 10, 2, 0), 2: Reservation(60, 10, 2, 0)}
    assert plans.improve(queued(1, 2), range(1)).start <= 50
    plans.rebuild(52, [[(55, 2)]])
    assert plans.reserved == {1: Reservation(52, 10, 2, 0), 2: Reservation(60, 10, 2, 0)}
    assert plans.improve(queued(1, 2), range(1)).start == 52
    assert plans.improve(queued(2, 2), range(1)).start == 60
    plans.rebuild(53, [[]])
    assert plans.rows_free_now(plans.reserved[1], range(1)) == [0]


def test_a_gang_may_enter_a_row_where_nothing_is_reserved_until_its_end() -> None:
    plans = RowPlans(4, 2)
    plans.rebuild(100, [[(200, 3)], [(150, 2)]])
    plans.place(queued(1, 3), 10, [1])  # row 1, 150-160
    assert plans.may_enter(0, 1, 10**9)
    assert not plans.may_enter(0, 2, 101)
    assert plans.may_enter(1, 2, 150)  # it ends when the reservation begins
    assert not plans.may_enter(1, 2, 151)
    assert plans.may_enter(1, 1, 10**9)  # beside it


def test_a_gang_that_moves_takes_its_room_along() -> None:
    plans = RowPlans(4, 2)
    plans.rebuild(100, [[(200, 3)], [(150, 2)]])
    plans.move_gang(1, 0, 1, 150)
    assert not plans.may_enter(0, 1, 150)
    assert plans.may_enter(0, 1, 10**9) is False
    assert plans.may_enter(1, 3, 150)
    with pytest.raises(DecisionError, match="nodes reserved"):
        plans.move_gang(1, 0, 1, 150)


def test_a_reservation_that_begins_now_may_be_taken_up_in_another_row_with_equal_room() -> None:
    plans = RowPlans(4, 3)
    plans.rebuild(100, [[(150, 2)], [(130, 3)], [(170, 1)]])
    job = queued(1, 2)
    reservation = plans.place(job, 40, range(3))
    assert reservation == Reservation(100, 40, 2, 0)
    assert plans.rows_free_now(reservation, range(3)) == [0, 2]
    assert plans.rows_free_now(reservation, [1, 2]) == [0, 2]  # its own row always
    plans.take_up(job, 2)
    assert plans.reserved == {}
    assert plans.may_enter(0, 2, 150)  # nothing is held there any more
    assert not plans.may_enter(2, 2, 101)  # 1 + 2 of 4 nodes until 140
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


def used(gangs: list[tuple[int, int]], reservations: list[Reservation], row: int, time: int) -> int:
    """Return the nodes of a row that are taken at a time."""
    held = sum(size for end, size in gangs if time < end)
    return held + sum(
        other.nodes for other in reservations if other.row == row and other.start <= time < other.start + other.length
    )


def earliest(nodes: int, rows: list[list[tuple[int, int]]], held: list[Reservation], now: int, size: int, length: int) -> int:
    return next(
        start
        for start in range(now, 10_000)
        if any(
            all(used(gangs, held, row, time) + size <= nodes for time in range(start, start + length))
            for row, gangs in enumerate(rows)
        )
    )


@settings(max_examples=cases(150))
@given(case=plans_over_time())
def test_every_job_is_placed_and_improved_where_a_plan_kept_tick_by_tick_would(
    case: tuple[int, list[list[tuple[int, int]]], list[tuple[int, int]], int],
) -> None:
    nodes, rows, jobs, later = case
    plans = RowPlans(nodes, len(rows))
    plans.rebuild(0, rows)
    all_rows = range(len(rows))
    for number, (size, length) in enumerate(jobs):
        held = list(plans.reserved.values())
        assert plans.place(queued(number, size), length, all_rows).start == earliest(nodes, rows, held, 0, size, length)
    # Later some gangs have ended, at or before their predicted ends; nothing that was reserved has begun.
    now = min([later] + [reservation.start for reservation in plans.reserved.values()])
    rows = [[(end, size) for end, size in gangs if end > now + size] for gangs in rows]
    plans.rebuild(now, rows)
    for number, (size, length) in enumerate(jobs):
        old = plans.reserved[number]
        others = [other for job, other in plans.reserved.items() if job != number]
        improved = plans.improve(queued(number, size), all_rows)
        assert improved.start == earliest(nodes, rows, others, now, size, length) <= old.start
        assert plans.reserved[number] == improved
        assert (improved.length, improved.nodes) == (length, size)
        for row, gangs in enumerate(rows):
            held = list(plans.reserved.values())
            assert all(used(gangs, held, row, time) <= nodes for time in range(now, 120))
            for end in (now + 1, now + 5, now + 30):
                free = all(used(gangs, held, row, time) + size <= nodes for time in range(now, end))
                assert plans.may_enter(row, size, end) == free
