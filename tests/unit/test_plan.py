"""The plan: reservations among running jobs, moved one at a time and never back."""

from __future__ import annotations

from typing import NamedTuple

from clustermodel.schedule.plan import Plan
from clustermodel.schedule.reservation import Reservation


class Waiting(NamedTuple):
    id: int
    nodes: int
    estimate: int


def test_a_plan_moves_reservations_one_at_a_time_and_never_back() -> None:
    # Two nodes; a job on both until 10.  Placed in turn: 1 (two nodes, 5) at 10, 2 (one node, 20) at 15, 3 (one node, 4)
    # at 15.  The running job ends at 2: 1 moves to 2, 2 to 7, 3 to 7.
    plan = Plan(2, may_overrun=False)
    plan.start(9, 2, 0, 10)
    jobs = [Waiting(1, 2, 5), Waiting(2, 1, 20), Waiting(3, 1, 4)]
    assert [plan.place(job).start for job in jobs] == [10, 15, 15]
    plan.advance(2)
    assert plan.end(9, 2, 2, 10)
    plan.compress(jobs, 2)
    assert plan.reserved == {1: Reservation(2, 5, 2), 2: Reservation(7, 20, 1), 3: Reservation(7, 4, 1)}
    assert plan.due(2) == [1]
    assert plan.take_up(jobs[0]) == Reservation(2, 5, 2)
    assert plan.next_start() == 7
    plan.drop(jobs[1])
    assert plan.reserved == {3: Reservation(7, 4, 1)}
    assert plan.steps() == [(2, 0), (7, 1), (11, 2)]
