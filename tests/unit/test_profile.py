"""The availability profile against a slow obvious twin: an array with the free nodes of every tick."""

import itertools

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from clustermodel import DecisionError
from clustermodel.plans.one_pool import OnePool
from clustermodel.plans.pool_plans import PoolPlan, RowPlan
from clustermodel.plans.pools import Pools
from clustermodel.plans.profile import SHORTEST_EXTENSION, Profile
from clustermodel.policies.predictors import as_late_again
from clustermodel.ticks import NEVER
from tests.jobs import queued, running

NODES = 6
LATEST = 60
"""No reservation reaches beyond this tick."""
END = LATEST + 25
"""Ticks that the twin has; enough for every job that the tests place after the last reservation."""


class Twin:
    """Free nodes for each tick."""

    def __init__(self) -> None:
        self.now = 0
        self.free = [NODES] * END

    def add(self, start: int, end: int, nodes: int) -> None:
        for tick in range(start, end):
            self.free[tick] += nodes

    def fits_at(self, start: int, nodes: int, duration: int) -> bool:
        return all(free >= nodes for free in self.free[start : start + duration])

    def earliest(self, nodes: int, duration: int, not_before: int) -> int:
        return next(start for start in range(not_before, END) if self.fits_at(start, nodes, duration))


sizes = st.integers(1, NODES)
durations = st.integers(1, 20)


class ProfileBesideATwin(RuleBasedStateMachine):
    """Reservations are made, moved and given up while time goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.profile = Profile(NODES)
        self.twin = Twin()
        self.reserved: list[tuple[int, int, int]] = []  # start, end, nodes

    @rule(start=st.integers(0, LATEST - 1), duration=durations, nodes=sizes)
    def reserve(self, start: int, duration: int, nodes: int) -> None:
        end = min(start + duration, LATEST)
        if start < self.twin.now or not self.twin.fits_at(start, nodes, end - start):
            return
        self.profile.reserve(start, end, nodes)
        self.twin.add(start, end, -nodes)
        self.reserved.append((start, end, nodes))

    @rule(duration=durations, nodes=sizes)
    def place_as_early_as_possible(self, duration: int, nodes: int) -> None:
        start = self.profile.earliest(nodes, duration)
        assert start == self.twin.earliest(nodes, duration, self.twin.now)
        if start + duration <= LATEST:
            self.reserve(start, duration, nodes)

    @precondition(lambda self: self.reserved)
    @rule(data=st.data())
    def release_what_is_left_of_a_reservation(self, data: st.DataObject) -> None:
        start, end, nodes = self.reserved.pop(data.draw(st.integers(0, len(self.reserved) - 1)))
        start = max(start, self.twin.now)
        if start < end:
            self.profile.release(start, end, nodes)
            self.twin.add(start, end, nodes)

    @rule(by=st.integers(0, 7))
    def advance(self, by: int) -> None:
        self.twin.now = min(self.twin.now + by, LATEST - 1)
        self.profile.advance(self.twin.now)

    @precondition(lambda self: any(start >= self.twin.now for start, _, _ in self.reserved))
    @rule(data=st.data())
    def move_a_reservation_to_an_earlier_place(self, data: st.DataObject) -> None:
        waiting = [one for one in self.reserved if one[0] >= self.twin.now]
        start, end, nodes = chosen = waiting[data.draw(st.integers(0, len(waiting) - 1))]
        not_before = data.draw(st.integers(self.twin.now, start))
        without = Twin()
        without.free = list(self.twin.free)
        without.add(start, end, nodes)
        expected = without.earliest(nodes, end - start, not_before)
        assert self.profile.earlier(nodes, end - start, start, not_before) == expected
        if data.draw(st.booleans()):  # it may be where it is already
            self.profile.move_up(start, expected, end - start, nodes)
            without.add(expected, expected + end - start, -nodes)
            self.twin.free = without.free
            self.reserved[self.reserved.index(chosen)] = (expected, expected + end - start, nodes)

    @rule(nodes=sizes, duration=durations)
    def ask(self, nodes: int, duration: int) -> None:
        now = self.twin.now
        assert self.profile.fits(nodes, duration) is self.twin.fits_at(now, nodes, duration)
        assert self.profile.earliest(nodes, duration) == self.twin.earliest(nodes, duration, now)

    @rule(nodes=sizes, duration=durations)
    def ask_what_stays_free(self, nodes: int, duration: int) -> None:
        free = self.twin.free[self.twin.now :]
        until = next((self.twin.now + tick for tick, available in enumerate(free) if available < nodes), None)
        assert self.profile.free_until(nodes) == until
        assert self.profile.least_free(duration) == min(free[:duration])

    @rule(nodes=sizes, duration=durations, limit=st.integers(-1, END))
    def ask_for_a_start_up_to_a_limit(self, nodes: int, duration: int, limit: int) -> None:
        earliest = self.twin.earliest(nodes, duration, self.twin.now)
        assert self.profile.earliest(nodes, duration, limit) == (earliest if earliest <= limit else -1)

    @rule(nodes=sizes, duration=durations, not_before=st.integers(0, LATEST), wait=st.none() | st.integers(0, END))
    def book_on_a_copy(self, nodes: int, duration: int, not_before: int, wait: int | None) -> None:
        first, trial, expected = max(not_before, self.twin.now), self.profile.copy(), self.profile.copy()
        earliest, limit = self.twin.earliest(nodes, duration, first), NEVER if wait is None else first + wait
        booked = trial.book(nodes, duration, limit, not_before)
        assert booked == (earliest if earliest <= limit else -1)
        if booked >= 0:
            expected.reserve(earliest, earliest + duration, nodes)
        assert trial.steps() == expected.steps()

    @rule(shapes=st.lists(st.tuples(st.integers(0, 20), durations, sizes), max_size=4))
    def try_reservations_on_a_copy(self, shapes: list[tuple[int, int, int]]) -> None:
        before, trial = self.profile.steps(), self.profile.copy()
        for after, duration, nodes in shapes:
            start = self.twin.now + after
            if trial.fits_at(start, nodes, duration):
                trial.reserve(start, start + duration, nodes)
        assert self.profile.steps() == before

    @invariant()
    def the_two_agree_at_every_tick(self) -> None:
        now = self.twin.now
        assert [self.profile.free_at(tick) for tick in range(now, END)] == self.twin.free[now:]
        steps = self.profile.steps()
        assert steps[0][0] == now
        assert all(one < other for (one, _), (other, _) in itertools.pairwise(steps)), "times ascend"
        assert all(one != other for (_, one), (_, other) in itertools.pairwise(steps)), "a step without a change"


TestProfileBesideATwin = ProfileBesideATwin.TestCase


def test_a_hole_is_used_only_by_what_is_short_and_small_enough() -> None:
    # free of 4: [0, 10) 1, [10, 15) 4, [15, 20) 0, then 4
    profile = Profile(4)
    profile.reserve(0, 10, 3)
    profile.reserve(15, 20, 4)
    assert profile.steps() == [(0, 1), (10, 4), (15, 0), (20, 4)]
    assert (profile.times(), profile.free()) == ([0, 10, 15, 20], [1, 4, 0, 4])
    assert [profile.earliest(4, 5), profile.earliest(4, 6)] == [10, 20]
    assert [profile.earliest(1, 15), profile.earliest(1, 16)] == [0, 20]
    assert [profile.fits(1, 15), profile.fits(1, 16), profile.fits(2, 1)] == [True, False, False]
    assert [profile.free_at(time) for time in (0, 9, 10, 19, 20)] == [1, 1, 4, 0, 4]


def test_a_job_is_booked_at_the_first_time_allowed_in_the_middle_of_a_step_too() -> None:
    profile = Profile(4)
    profile.reserve(10, 20, 4)
    assert profile.book(2, 3, not_before=5) == 5
    assert profile.book(2, 3, not_before=8) == 20  # it would not end by 10
    assert profile.book(3, 5, not_before=30) == 30  # after all steps
    assert profile.steps() == [(0, 4), (5, 2), (8, 4), (10, 0), (20, 2), (23, 4), (30, 1), (35, 4)]


def test_a_reservation_can_lean_on_its_own_room() -> None:
    # Four nodes, three of them taken until 10.  A job of two nodes for 8 holds [12, 20).  From 10 on it has two nodes in
    # [10, 12) and, after that, its own.
    profile = Profile(4)
    profile.reserve(0, 10, 3)
    profile.reserve(12, 20, 2)
    profile.reserve(12, 20, 2)
    assert profile.earlier(2, 8, 12, 0) == 10
    assert profile.earlier(2, 8, 12, 11) == 11
    assert profile.earlier(2, 8, 12, 12) == 12
    assert profile.earlier(1, 8, 12, 0) == 0  # a job of one node did fit all the time


def test_the_past_is_forgotten() -> None:
    profile = Profile(4)
    profile.reserve(0, 10, 3)
    profile.reserve(20, 30, 2)
    profile.advance(5)
    assert profile.steps() == [(5, 1), (10, 4), (20, 2), (30, 4)]
    profile.advance(10)
    assert profile.steps() == [(10, 4), (20, 2), (30, 4)]
    profile.advance(25)
    assert profile.steps() == [(25, 2), (30, 4)]
    profile.advance(1000)
    assert profile.steps() == [(1000, 4)]
    with pytest.raises(ValueError, match="profile: 999 lies in the past; it begins at 1000"):
        profile.reserve(999, 1001, 1)
    with pytest.raises(ValueError, match="profile: 0 lies in the past; it begins at 1000"):
        profile.release(0, 1001, 1)


def test_more_nodes_than_are_free_cannot_be_reserved() -> None:
    profile = Profile(4)
    profile.reserve(10, 20, 3)
    with pytest.raises(DecisionError) as refused:
        profile.reserve(5, 12, 2)
    assert str(refused.value) == "profile: 2 nodes reserved at 10 where only 1 are free"


SECOND = 1_000_000
KINDS = (OnePool, PoolPlan)


def plan_of(*, may_overrun: bool, kind: type[RowPlan] = OnePool) -> RowPlan:
    plan = kind(Pools(4, ()), may_overrun=may_overrun)
    plan.group_of(queued(0, 1, estimate=1))
    return plan


def free(plan: RowPlan) -> list[tuple[int, int]]:
    """Return the steps: when they begin, and how many nodes are free."""
    return [(time, plan.free_at(time, plan.groups[0])) for time in plan.steps()[0]]


def start(plan: RowPlan, number: int, nodes: int, end: int) -> None:
    plan.start(number, ((0, nodes),), 0, end)


def end(plan: RowPlan, number: int, now: int) -> bool:
    return plan.catch_up([running(queued(number, 1, estimate=1), 1)], now, (), ())


@pytest.mark.parametrize("kind", KINDS)
def test_a_running_job_is_subtracted_until_its_expected_end_and_gives_back_what_it_does_not_use(kind: type[RowPlan]) -> None:
    plan = plan_of(may_overrun=False, kind=kind)
    start(plan, 1, 3, 10)
    start(plan, 2, 1, 20)
    assert free(plan) == [(0, 0), (10, 3), (20, 4)]
    assert end(plan, 2, 5)  # 15 ticks early: room was made
    assert free(plan) == [(5, 1), (10, 4)]
    assert not end(plan, 1, 10)  # on time: nothing was made
    assert free(plan) == [(10, 4)]


def test_where_jobs_are_killed_none_overruns() -> None:
    plan = plan_of(may_overrun=False)
    start(plan, 1, 3, 10)
    plan.advance(10)
    assert plan.overrunning(10, [1]) == []


@pytest.mark.parametrize("kind", KINDS)
def test_an_overrunning_job_is_assumed_to_go_on_as_long_as_it_has_been_late_and_a_second_at_least(kind: type[RowPlan]) -> None:
    assert SHORTEST_EXTENSION == SECOND
    plan = plan_of(may_overrun=True, kind=kind)
    start(plan, 7, 3, 10 * SECOND)
    assert plan.overrunning(10 * SECOND - 1, [7]) == []
    # late by 0, 1.5, 10 and 30 s: it will go on for 1, 1.5, 10 and 30 s
    for now, until in ((10, 11), (11.5, 13), (20, 30), (40, 70)):
        plan.advance(round(now * SECOND))
        assert plan.overrunning(round(now * SECOND), [7]) == [7]
        plan.extend([7], round(now * SECOND), lambda _, late: as_late_again(late))
        assert free(plan) == [(now * SECOND, 1), (until * SECOND, 4)]
        assert plan.overrunning(until * SECOND - 1, [7]) == []


def test_several_overrunning_jobs_are_extended_each_from_its_own_estimate() -> None:
    plan = plan_of(may_overrun=True)
    start(plan, 1, 1, 10 * SECOND)
    start(plan, 2, 1, 25 * SECOND)
    start(plan, 3, 2, 99 * SECOND)
    plan.advance(30 * SECOND)
    late = plan.overrunning(30 * SECOND, [1, 2, 3])
    assert sorted(late) == [1, 2]
    plan.extend(late, 30 * SECOND, lambda _, late: as_late_again(late))
    # 1 is 20 s late and 2 is 5 s late: until 50 and 35
    assert free(plan) == [(30 * SECOND, 0), (35 * SECOND, 1), (50 * SECOND, 2), (99 * SECOND, 4)]


def test_an_overrunning_job_that_ends_gives_back_its_assumed_rest_and_is_not_late_again() -> None:
    plan = plan_of(may_overrun=True)
    start(plan, 7, 3, 10 * SECOND)
    plan.advance(30 * SECOND)
    assert plan.overrunning(30 * SECOND, [7]) == [7]
    plan.extend([7], 30 * SECOND, lambda _, late: as_late_again(late))  # 20 s late: until 50
    assert end(plan, 7, 31 * SECOND)
    assert free(plan) == [(31 * SECOND, 4)]
    assert plan.overrunning(50 * SECOND, []) == []


def test_a_job_that_ends_in_time_is_never_late_where_jobs_may_overrun() -> None:
    plan = plan_of(may_overrun=True)
    start(plan, 1, 2, 10 * SECOND)
    start(plan, 2, 2, 10 * SECOND)
    assert end(plan, 1, 4 * SECOND)
    assert not end(plan, 2, 10 * SECOND)
    assert plan.overrunning(10 * SECOND, [7]) == []
    assert free(plan) == [(10 * SECOND, 4)]


def test_a_job_started_in_room_reserved_for_it_is_only_noted() -> None:
    plan = plan_of(may_overrun=True)
    plan.reserve(0, 10, ((0, 3),))
    plan.note_start(1, ((0, 3),), 10)
    assert free(plan) == [(0, 1), (10, 4)]
    assert end(plan, 1, 4)
    assert free(plan) == [(4, 4)]
