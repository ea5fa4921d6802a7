"""The plan: reservations among running jobs, moved one at a time and never back."""

from random import Random
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from clustermodel import QueuedJob
from clustermodel.plans.profile import Plan, Reservation, RunningProfile, Shape
from tests.jobs import queued


def test_a_plan_moves_reservations_one_at_a_time_and_never_back() -> None:
    # Two nodes; a job on both until 10.  Placed in turn: 1 (two nodes, 5) at 10, 2 (one node, 20) at 15, 3 (one node, 4)
    # at 15.  The running job ends at 2: 1 moves to 2, 2 to 7, 3 to 7.
    plan = Plan(RunningProfile(2, may_overrun=False))
    plan.profile.start(9, 2, 0, 10)
    jobs = [queued(1, 2, estimate=5), queued(2, 1, estimate=20), queued(3, 1, estimate=4)]
    for job in jobs:
        plan.keep(job, plan.earliest([(job.nodes, job.estimate)]))
    assert [plan.reserved[job.id].start for job in jobs] == [10, 15, 15]
    plan.profile.advance(2)
    assert plan.profile.end(9, 2, 2, 10)
    plan.compress(jobs)
    assert plan.reserved == {1: Reservation(2, 5, 2), 2: Reservation(7, 20, 1), 3: Reservation(7, 4, 1)}
    assert plan.due(2) == [1]
    assert plan.start_reserved(jobs[0]) == Reservation(2, 5, 2)
    assert plan.next_start() == 7
    plan.drop(jobs[1])
    assert plan.reserved == {3: Reservation(7, 4, 1)}
    assert plan.profile.steps() == [(2, 0), (7, 1), (11, 2)]


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

    def rooms(self, shapes: list[Shape], latest: int) -> list[Reservation]:
        """Return, for each shape, the first room that begins by ``latest``, if there is one."""
        found = []
        for nodes, length in shapes:
            starts = (
                start for start in range(latest + 1) if all(self.free[tick] >= nodes for tick in range(start, start + length))
            )
            if (start := next(starts, None)) is not None:
                found.append(Reservation(start, length, nodes))
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

Case = tuple[Plan, Ticks, list[QueuedJob], dict[int, list[Shape]]]


def planned(recipe: Recipe) -> Case:
    """Return a plan with running jobs and reservations, of which some running jobs have ended, and the same in ticks."""
    plan, ticks = Plan(RunningProfile(NODES, may_overrun=False)), Ticks()
    for number, (nodes, end, _) in enumerate(recipe.running, 100):
        plan.profile.start(number, nodes, 0, end)
        ticks.add(0, end, -nodes)
    jobs = []
    for number, shapes in enumerate(recipe.shapes):
        nodes, length = shapes[0]
        jobs.append(queued(number, nodes, estimate=length))
        room = min(ticks.rooms(shapes, HORIZON // 2), key=lambda room: room.end)
        assert plan.earliest(shapes) == room
        plan.keep(jobs[-1], room)
        ticks.add(room.start, room.end, -room.nodes)
    for number, (nodes, end, ended) in enumerate(recipe.running, 100):
        if ended:
            assert plan.profile.end(number, nodes, 0, end)
            ticks.add(0, end, nodes)
    return plan, ticks, jobs, dict(enumerate(recipe.shapes))


plans = recipes.map(planned)


@given(plans, shape_lists)
def test_the_earliest_room_is_the_one_that_ends_first_and_of_equals_that_of_the_first_shape(
    case: Case, shapes: list[Shape]
) -> None:
    plan, ticks, _, _ = case
    rooms = ticks.rooms(shapes, HORIZON // 2)
    assert plan.earliest(shapes) == min(rooms, key=lambda room: room.end)


@given(plans, st.randoms(use_true_random=False))
def test_reshaping_gives_each_job_in_turn_the_room_that_ends_first_and_begins_no_later_than_its_own(
    case: Case, random: Random
) -> None:
    plan, ticks, jobs, shapes = case
    random.shuffle(jobs)
    expected = dict(plan.reserved)
    for job in jobs:
        held = expected[job.id]
        ticks.add(held.start, held.end, held.nodes)
        rooms = [room for room in ticks.rooms(shapes[job.id], held.start) if (room.end, room.start) < (held.end, held.start)]
        expected[job.id] = min(rooms, key=lambda room: (room.end, room.start), default=held)
        ticks.add(expected[job.id].start, expected[job.id].end, -expected[job.id].nodes)
    before = dict(plan.reserved)
    plan.reshape(jobs, shapes)
    assert plan.reserved == expected
    assert all(room.start <= before[job].start and room.end <= before[job].end for job, room in plan.reserved.items())
    assert [plan.profile.free_at(tick) for tick in range(HORIZON)] == ticks.free


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
    plan, twin = (Plan(RunningProfile(NODES, may_overrun=False)) for _ in range(2))
    now, jobs = 0, list[QueuedJob]()
    running: dict[int, tuple[int, int]] = {}  # job id -> nodes, expected end
    for event in course:
        now = min([now + event.after, *(reservation.start for reservation in plan.reserved.values())])
        number = sorted(running)[event.ends % len(running)] if running else None
        ended = [number] if number is not None else []
        ended += [number for number, (_, end) in running.items() if end <= now and number not in ended]
        for either in (plan, twin):
            either.profile.advance(now)
            for number in ended:
                nodes, end = running[number]
                either.profile.end(number, nodes, now, end)
        for number in ended:
            del running[number]
        order = event.random.sample(jobs, len(jobs))
        plan.compress(order)
        twin.reshape(order, {number: [(one.nodes, one.length)] for number, one in twin.reserved.items()})
        assert plan.reserved == twin.reserved
        if event.withdrawn < len(jobs):
            for either in (plan, twin):
                either.drop(jobs[event.withdrawn])
                either.place(jobs[event.withdrawn], [(jobs[event.withdrawn].nodes, jobs[event.withdrawn].estimate)])
        for nodes, length in event.submitted:
            jobs.append(queued(len(running) + len(jobs) + 100 * now, nodes, estimate=length))
            assert plan.place(jobs[-1], [(nodes, length)]) == twin.place(jobs[-1], [(nodes, length)])
        assert plan.profile.steps() == twin.profile.steps()
        overdue = {number: one for number, one in plan.reserved.items() if one.start <= now}
        assert plan.due(now) == sorted(overdue, key=lambda number: (overdue[number].start, number))
        assert plan.next_start() == min((one.start for one in plan.reserved.values()), default=None)
        for number, reservation in overdue.items():
            plan.take(number)
            twin.take(number)
            running[number] = reservation.nodes, reservation.end
        jobs = [job for job in jobs if job.id not in running]


@given(recipes)
def test_compressing_jobs_of_one_shape_is_reshaping_them(recipe: Recipe) -> None:
    plan, _, jobs, _ = planned(recipe)
    twin, _, _, _ = planned(recipe)
    plan.compress([queued(99, 1, estimate=1), *jobs])  # one without a reservation is passed over
    twin.reshape(jobs, {number: [(room.nodes, room.length)] for number, room in twin.reserved.items()})
    assert plan.reserved == twin.reserved
    assert plan.profile.steps() == twin.profile.steps()


def test_reshaping_by_hand() -> None:
    # Four nodes, a job on all of them until 20.  1 can have two nodes for 30 or four for 15: it is promised 20-35 on four.  2
    # can have two for 10 only: 35-45.  Two nodes are free from now on: 1 moves to 0-30 on two, which ends earlier than 20 +
    # 15.
    plan = Plan(RunningProfile(4, may_overrun=False))
    plan.profile.start(8, 2, 0, 20)
    plan.profile.start(9, 2, 0, 20)
    shapes = {1: [(2, 30), (4, 15)], 2: [(2, 10)]}
    jobs = [queued(1, 2, estimate=30), queued(2, 2, estimate=10)]
    for job in jobs:
        plan.keep(job, plan.earliest(shapes[job.id]))
    assert plan.reserved == {1: Reservation(20, 15, 4), 2: Reservation(35, 10, 2)}
    assert plan.profile.end(9, 2, 0, 20)
    plan.reshape(jobs, shapes)
    assert plan.reserved == {1: Reservation(0, 30, 2), 2: Reservation(20, 10, 2)}
