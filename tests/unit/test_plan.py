"""The plan: reservations among running jobs, moved one at a time and never back."""

import itertools
from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from clustermodel import QueuedJob
from clustermodel.plans.one_pool import OnePool
from clustermodel.plans.pool_plans import PoolPlan, RowPlan, Shape
from clustermodel.plans.pools import Pools
from clustermodel.ticks import NEVER
from tests.jobs import queued, running

Place = tuple[int, int, int]
"""Start, length and nodes of a reservation."""
KINDS = (OnePool, PoolPlan)


def plan_of(nodes: int, kind: type[RowPlan] = OnePool) -> RowPlan:
    plan = kind(Pools(nodes, ()), may_overrun=False)
    plan.group_of(queued(0, 1, estimate=1))
    return plan


def start(plan: RowPlan, number: int, nodes: int, end: int) -> None:
    plan.start(number, ((0, nodes),), 0, end)


def end(plan: RowPlan, numbers: Iterable[int], now: int) -> bool:
    return plan.catch_up([running(queued(number, 1, estimate=1), 1) for number in numbers], now, (), ())


def places(plan: RowPlan) -> dict[int, Place]:
    return {number: each[:3] for number, each in plan.reserved.items()}


def place(plan: RowPlan, job: QueuedJob, length: int) -> int:
    return plan.place(job, length, plan.groups[0])


def place_best(plan: RowPlan, job: QueuedJob, shapes: list[Shape]) -> None:
    best = plan.earliest_completion(job, shapes, plan.groups[0])
    assert best is not None
    plan.keep(job.id, best)


def end_of(place: Place) -> int:
    return place[0] + place[1]


def test_a_plan_moves_reservations_one_at_a_time_and_never_back() -> None:
    # Two nodes; a job on both until 10.  Placed in turn: 1 (two nodes, 5) at 10, 2 (one node, 20) at 15, 3 (one node, 4)
    # at 15.  The running job ends at 2: 1 moves to 2, 2 to 7, 3 to 7.
    for kind in KINDS:
        plan = plan_of(2, kind)
        start(plan, 9, 2, 10)
        jobs = [queued(1, 2, estimate=5), queued(2, 1, estimate=20), queued(3, 1, estimate=4)]
        assert [place(plan, job, job.estimate) for job in jobs] == [10, 15, 15]
        assert end(plan, [9], 2)
        assert plan.compress(jobs) == jobs
        assert places(plan) == {1: (2, 5, 2), 2: (7, 20, 1), 3: (7, 4, 1)}
        assert plan.due(2) == [1]
        assert plan.take(1)[:3] == (2, 5, 2)
        assert plan.next_start() == 7
        plan.drop(2)
        assert places(plan) == {3: (7, 4, 1)}
        assert [plan.free_at(time, plan.groups[0]) for time in (2, 7, 11)] == [0, 1, 2]


# Several shapes, against a tick-by-tick search.
NODES = 6
HORIZON = 400

shape_lists = st.lists(st.tuples(st.integers(1, NODES), st.integers(1, 15)), min_size=1, max_size=3)


class Ticks:
    """Free nodes at each tick."""

    def __init__(self) -> None:
        self.free = [NODES] * HORIZON

    def add(self, start: int, end: int, nodes: int) -> None:
        for tick in range(start, end):
            self.free[tick] += nodes

    def rooms(self, shapes: list[Shape], latest: int) -> list[Place]:
        """Return, for each shape, the first room that begins by ``latest``, if there is one."""
        found = []
        for nodes, length in shapes:
            starts = (
                start for start in range(latest + 1) if all(self.free[tick] >= nodes for tick in range(start, start + length))
            )
            if (start := next(starts, None)) is not None:
                found.append((start, length, nodes))
        return found


class Recipe(NamedTuple):
    """How a plan comes about."""

    running: list[tuple[int, int, bool]]
    """Nodes, reserved end, and whether it has ended at 0, of each running job."""
    shapes: list[list[Shape]]
    """The shapes of each waiting job."""


recipes = st.builds(
    Recipe,
    st.lists(st.tuples(st.integers(1, 2), st.integers(1, 25), st.booleans()), max_size=3),
    st.lists(shape_lists, max_size=5),
)

Case = tuple[RowPlan, Ticks, list[QueuedJob], dict[int, list[Shape]]]


def planned(recipe: Recipe, kind: type[RowPlan] = OnePool) -> Case:
    """Return a plan with running jobs and reservations, of which some running jobs have ended, and the same in ticks."""
    plan, ticks = plan_of(NODES, kind), Ticks()
    for number, (nodes, until, _) in enumerate(recipe.running, 100):
        start(plan, number, nodes, until)
        ticks.add(0, until, -nodes)
    jobs = []
    for number, shapes in enumerate(recipe.shapes):
        nodes, length = shapes[0]
        jobs.append(queued(number, nodes, estimate=length))
        room = min(ticks.rooms(shapes, HORIZON // 2), key=end_of)
        place_best(plan, jobs[-1], shapes)
        assert places(plan)[number] == room
        ticks.add(room[0], end_of(room), -room[2])
    ended = [number for number, (_, _, ended) in enumerate(recipe.running, 100) if ended]
    assert end(plan, ended, 0) == bool(ended)
    for number in ended:
        nodes, until, _ = recipe.running[number - 100]
        ticks.add(0, until, nodes)
    return plan, ticks, jobs, dict(enumerate(recipe.shapes))


plans = st.builds(planned, recipes, st.sampled_from(KINDS))


@given(plans, shape_lists)
def test_the_earliest_room_is_the_one_that_ends_first_and_of_equals_that_of_the_first_shape(
    case: Case, shapes: list[Shape]
) -> None:
    plan, ticks, _, _ = case
    room = plan.earliest_completion(queued(99, shapes[0][0], estimate=1), shapes, plan.groups[0])
    assert room is not None
    assert room[:3] == min(ticks.rooms(shapes, HORIZON // 2), key=end_of)


@given(plans, st.randoms(use_true_random=False))
def test_reshaping_gives_each_job_in_turn_the_room_that_ends_first_and_begins_no_later_than_its_own(
    case: Case, random: Random
) -> None:
    plan, ticks, jobs, shapes = case
    random.shuffle(jobs)
    before = places(plan)
    expected = dict(before)
    for job in jobs:
        held = expected[job.id]
        ticks.add(held[0], end_of(held), held[2])
        rooms = [room for room in ticks.rooms(shapes[job.id], held[0]) if (end_of(room), room[0]) < (end_of(held), held[0])]
        expected[job.id] = best = min(rooms, key=lambda room: (end_of(room), room[0]), default=held)
        ticks.add(best[0], end_of(best), -best[2])
        plan.reshape(job, shapes[job.id])
    assert places(plan) == expected
    assert all(room[0] <= before[job][0] and end_of(room) <= end_of(before[job]) for job, room in expected.items())
    assert [plan.free_at(tick, plan.groups[0]) for tick in range(HORIZON)] == ticks.free


class Event(NamedTuple):
    """What happens between two compressions, and in which order the jobs are compressed."""

    after: int
    """Ticks since the event before, unless a reserved time comes earlier."""
    ends: int
    """Which of the running jobs ends."""
    submitted: list[Shape]
    withdrawn: int
    """Which of the waiting jobs gives up its reservation and is placed again behind all others, if there are as many."""
    random: Random


events = st.lists(
    st.builds(
        Event,
        st.integers(0, 8),
        st.integers(0, 9),
        st.lists(st.tuples(st.integers(1, NODES), st.integers(1, 30)), max_size=3),
        st.integers(0, 12),
        st.randoms(use_true_random=False),
    ),
    max_size=12,
)


@given(events)
def test_jobs_that_are_not_tested_could_not_have_moved(course: list[Event]) -> None:
    # The twin takes out each job and places it again.
    plan, twin = plan_of(NODES), plan_of(NODES)
    now, jobs, numbers = 0, list[QueuedJob](), itertools.count()
    running: dict[int, tuple[int, int]] = {}  # job id -> nodes, expected end
    for event in course:
        now = min([now + event.after, *(each.start for each in plan.reserved.values())])
        number = sorted(running)[event.ends % len(running)] if running else None
        ended = [number] if number is not None else []
        ended += [number for number, (_, until) in running.items() if until <= now and number not in ended]
        for either in (plan, twin):
            end(either, ended, now)
        for number in ended:
            del running[number]
        order = event.random.sample(jobs, len(jobs))
        plan.compress(order)
        for job in order:
            twin.reshape(job, [(twin.reserved[job.id].nodes, twin.reserved[job.id].length)])
        assert places(plan) == places(twin)
        if event.withdrawn < len(jobs):
            for either in (plan, twin):
                either.drop(jobs[event.withdrawn].id)
                place(either, jobs[event.withdrawn], jobs[event.withdrawn].estimate)
        for nodes, length in event.submitted:
            jobs.append(queued(next(numbers), nodes, estimate=length))
            assert place(plan, jobs[-1], length) == place(twin, jobs[-1], length)
        assert plan.steps() == twin.steps()
        overdue = {number: each for number, each in plan.reserved.items() if each.start <= now}
        assert plan.due(now) == sorted(overdue, key=lambda number: (overdue[number].start, number))
        assert plan.next_start() == min((each.start for each in plan.reserved.values()), default=NEVER)
        for number, each in overdue.items():
            for either in (plan, twin):
                either.take(number)
                either.note_start(number, each.split, each.end)
            running[number] = each.nodes, each.end
        jobs = [job for job in jobs if job.id not in running]


@given(recipes, st.sampled_from(KINDS))
def test_compressing_jobs_of_one_shape_is_reshaping_them(recipe: Recipe, kind: type[RowPlan]) -> None:
    plan, _, jobs, _ = planned(recipe, kind)
    twin, _, _, _ = planned(recipe, kind)
    plan.compress([queued(99, 1, estimate=1), *jobs])  # one without a reservation is passed over
    for job in jobs:
        twin.reshape(job, [(twin.reserved[job.id].nodes, twin.reserved[job.id].length)])
    assert places(plan) == places(twin)
    assert plan.steps() == twin.steps()


def test_reshaping_by_hand() -> None:
    # Four nodes, a job on all of them until 20.  1 can have two nodes for 30 or four for 15: it is promised 20-35 on four.  2
    # can have two for 10 only: 35-45.  Two nodes are free from now on: 1 moves to 0-30 on two, which ends earlier than 20 +
    # 15.
    for kind in KINDS:
        plan = plan_of(4, kind)
        start(plan, 8, 2, 20)
        start(plan, 9, 2, 20)
        shapes = {1: [(2, 30), (4, 15)], 2: [(2, 10)]}
        jobs = [queued(1, 2, estimate=30), queued(2, 2, estimate=10)]
        for job in jobs:
            place_best(plan, job, shapes[job.id])
        assert places(plan) == {1: (20, 15, 4), 2: (35, 10, 2)}
        assert end(plan, [9], 0)
        for job in jobs:
            plan.reshape(job, shapes[job.id])
        assert places(plan) == {1: (0, 30, 2), 2: (20, 10, 2)}
