"""Slack-based backfilling: bounds, jobs over quota, and the optimum against a brute force that shares no code with it."""

from fractions import Fraction
from itertools import permutations
from math import inf
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel import Machine, Setup
from clustermodel.plans.one_pool import OnePool
from clustermodel.plans.profile import Profile
from clustermodel.plans.slack_prices import (
    HEURISTICS,
    ArrivingJob,
    Schedule,
    SlackReservation,
    Weights,
    by_start,
    favour,
)
from clustermodel.plans.slack_search import Search
from clustermodel.policies.interface import Decision, Reserve, Start
from clustermodel.policies.slack import Quotas, Slack
from clustermodel.policies.slack_run import COMPRESSIONS, IN_PLACE, SHIFT, SlackRun
from clustermodel.policies.view import Batch, QueuedJob, View
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.run_attempts import UNKNOWN
from clustermodel.sim.simulation import simulate
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.job import JobRow
from tests.property.strategies import cases, machines_and_rows
from tests.slack_plans import arriving_job, plan_of, reservation, search_in

S = TICKS_PER_SECOND
FAST = [name for name in HEURISTICS if name != "optimal"]
every_heuristic = pytest.mark.parametrize("heuristic", FAST)
every_compression = pytest.mark.parametrize("compression", COMPRESSIONS)
Case = tuple[int, list[JobRow]]
Insertion = tuple[int, list[tuple[int, int]], list[SlackReservation], ArrivingJob, Weights]
"""Nodes, running jobs (end, nodes), plan, arriving, weights."""


class Noted:
    """Slack with the bound of each job written down, which does not change."""

    name = "noted"

    def __init__(self, **parameters: Any) -> None:
        self._policy = Slack(**parameters)

    def start(self, setup: Setup) -> object:
        self._run = self._policy.start(setup)
        self.nodes = setup.nodes
        self.bounds: dict[int, int] = {}
        return self

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        decisions = self._run.decide(batch, view)
        for decision in decisions:
            if isinstance(decision, Reserve):
                self.bounds[decision.job.id] = decision.start
            elif isinstance(decision, Start):  # perhaps as soon as it was submitted
                self.bounds.setdefault(decision.job.id, view.now)
        assert all(one.start <= one.latest == self.bounds[one.job.id] for one in self._run.reservations)
        assert self._policy.slack_factor or not any(one.initial_slack for one in self._run.reservations)
        self._check_profile(decisions, view)
        return decisions

    def _check_profile(self, decisions: list[Decision], view: View) -> None:
        """The profile is that of the running jobs, those that start now, and all reservations."""
        if any(gang.expected_end <= view.now for gang in view.running.values()):
            return  # one runs on, and has an assumed end
        ends = [(gang.expected_end, gang.nodes) for gang in view.running.values()]
        ends += [(view.now + one.job.estimate, one.job.nodes) for one in decisions if isinstance(one, Start)]
        profile = Profile.of_running(self.nodes, view.now, ends)
        for one in self._run.reservations:
            profile.reserve(one.start, one.end, one.nodes)
        assert self._run.plan.profile.steps() == profile.steps()
        least, largest = self._run.plan.movable_sizes()
        for one in self._run.reservations:
            assert least <= one.nodes <= largest or profile.earlier(one.nodes, one.length, one.start, 0) == one.start


def run(nodes: int, rows: list[JobRow], policy: Slack | Noted, *, kill: bool = True) -> JobRecords:
    return simulate(Machine(nodes=nodes, kill_at_estimate=kill), [rows], policy, np.random.default_rng(1)).records


def starts(records: JobRecords) -> dict[int, int]:
    return dict(zip(records.column("id").tolist(), records.column("start").tolist(), strict=True))


@every_compression
@every_heuristic
@given(
    case=machines_and_rows(underestimates=True, priorities=True),
    awt=st.sampled_from([0.0, 3.0, 30.0, 300.0]),
    factor=st.sampled_from([0.0, 1.0, 3.0]),
    alpha=st.sampled_from([0.0, 0.3, 1.0]),
    important=st.integers(1, 5),
)
def test_no_job_starts_after_its_bound(
    heuristic: str, compression: str, case: Case, awt: float, factor: float, alpha: float, important: int
) -> None:
    nodes, rows = case
    policy = Noted(
        heuristic=heuristic,
        compression=compression,
        awt=awt,
        slack_factor=factor,
        alpha_u=alpha,
        alpha_t=1 - alpha,
        alpha_p=alpha,
        user_priority=lambda job: float(job.id % important == 0),
    )
    records = run(nodes, rows, policy)
    assert len(policy.bounds) == len(rows)
    for job, start in starts(records).items():
        assert start <= policy.bounds[job]
    ids, promised = records.column("id"), records.column("reserved")
    for job, told in zip(ids[promised != UNKNOWN].tolist(), promised[promised != UNKNOWN].tolist(), strict=True):
        assert told == policy.bounds[job]
    waited = records.column("start") > records.column("submit")
    assert ((promised != UNKNOWN) >= waited).all()


@every_heuristic
@given(
    case=machines_and_rows(underestimates=True),
    compression=st.sampled_from([SHIFT, IN_PLACE]),
    awt=st.sampled_from([0.0, 3.0, 30.0]),
    alpha=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_jobs_without_initial_slack_move_up_whenever_one_can(
    heuristic: str, compression: str, case: Case, awt: float, alpha: float
) -> None:
    """However often they have moved up before, and only up."""

    unwatched = SlackRun.remove

    def watched(run: SlackRun, now: int) -> None:
        assert isinstance(run.plan, OnePool)
        profile = run.plan.profile
        before = {one.job.id: one.start for one in run.reservations}
        can_move = any(profile.earlier(one.nodes, one.length, one.start, 0) < one.start for one in run.reservations)
        unwatched(run, now)
        moved = [one.start - before[one.job.id] for one in run.reservations if one.start != before[one.job.id]]
        assert bool(moved) == can_move
        assert all(move < 0 for move in moved)

    nodes, rows = case
    with mock.patch.object(SlackRun, "remove", watched):
        run(nodes, rows, Slack(heuristic=heuristic, compression=compression, awt=awt, slack_factor=0, alpha_f=alpha))


@settings(max_examples=cases(40))
@given(case=machines_and_rows(largest=8), awt=st.sampled_from([3.0, 30.0]))
def test_no_job_starts_after_its_bound_where_every_order_is_tried(case: Case, awt: float) -> None:
    policy = Noted(heuristic="optimal", awt=awt)
    found = starts(run(*case, policy))
    assert all(found[job] <= bound for job, bound in policy.bounds.items())


@every_heuristic
@given(case=machines_and_rows(), user=st.integers(0, 2))
def test_a_job_over_quota_delays_nobody(heuristic: str, case: Case, user: int) -> None:
    """Others keep their bounds, and their reservations are all that is planned besides running jobs."""
    nodes, rows = case
    policy = Noted(heuristic=heuristic, awt=20.0, quotas=Quotas(user={user: 0.0}))
    records = run(nodes, rows, policy)
    found = starts(records)
    promised = dict(zip(records.column("id").tolist(), records.column("reserved").tolist(), strict=True))
    for row in rows:
        if row.user == user:
            assert promised[row.id] == UNKNOWN
        else:
            assert found[row.id] <= policy.bounds[row.id]


@every_heuristic
@given(case=machines_and_rows(underestimates=True), factor=st.sampled_from([0.0, 3.0]))
def test_extensions_keep_bounds_and_end_with_the_job_or_a_kill(heuristic: str, case: Case, factor: float) -> None:
    nodes, rows = case
    policy = Noted(heuristic=heuristic, awt=20.0, slack_factor=factor, extend_unfinished=True)
    records = run(nodes, rows, policy, kill=False)
    assert all(start <= policy.bounds[job] for job, start in starts(records).items())
    ran = dict(zip(records.column("id").tolist(), (records.column("end") - records.column("start")).tolist(), strict=True))
    for row in rows:
        tenth = max(1, round(0.1 * row.estimate))
        assert ran[row.id] == row.run or (ran[row.id] - row.estimate) % tenth == 0
        assert min(row.run, row.estimate) <= ran[row.id] <= row.run


# One insertion.


@st.composite
def plans(draw: st.DrawFn, largest: int = 5) -> Insertion:
    """Return a machine's size, running jobs (end, nodes), a plan without overlaps, a arriving and weights; now is 0."""
    nodes = draw(st.integers(2, 6))
    weights = Weights(*(draw(st.sampled_from([0.0, 0.5, 1.0])) for _ in range(4)))
    profile = Profile(nodes)
    running = []
    left = nodes
    for _ in range(draw(st.integers(0, 3))):
        size, end = draw(st.integers(1, nodes)), draw(st.integers(1, 12)) * S
        if size <= left:
            left -= size
            running.append((end, size))
            profile.reserve(0, end, size)
    plan = []
    for number in range(draw(st.integers(0, largest))):
        size, length = draw(st.integers(1, nodes)), draw(st.integers(1, 6)) * S
        start = profile.earliest(size, length)
        profile.reserve(start, start + length, size)
        s0 = draw(st.sampled_from([0, 4, 10, 40])) * S
        one = reservation(
            QueuedJob(number, size, 0, length, 0, 0, 0), start, draw(st.sampled_from([0.1, 0.3, 0.9])), s0, weights
        )
        one.latest -= draw(st.integers(0, 1)) * s0 // 2
        one.move_to(start, weights)
        plan.append(one)
    arriving = arriving_job(
        draw(st.integers(1, nodes)), draw(st.integers(1, 6)) * S, favour(draw(st.sampled_from([0.2, 0.6])), weights)
    )
    return nodes, running, sorted(plan, key=by_start), arriving, weights


HORIZON = 200
Grid = list[int]
"""Nodes in use by second."""


def use(grid: Grid, begin: int, length: int, nodes: int) -> None:
    for second in range(begin, min(HORIZON, begin + length)):
        grid[second] += nodes


def first_fit(grid: Grid, nodes: int, size: int, length: int, not_before: int = 0) -> int:
    return next(
        t for t in range(not_before, HORIZON) if all(grid[u] + size <= nodes for u in range(t, min(HORIZON, t + length)))
    )


def grid_of_running(running: list[tuple[int, int]]) -> Grid:
    grid = [0] * HORIZON
    for end, size in running:
        use(grid, 0, end // S, size)
    return grid


def slots_of(running: list[tuple[int, int]], plan: list[SlackReservation]) -> list[int]:
    slots = {0} | {end // S for end, _ in running}
    return sorted(slots | {one.start // S for one in plan} | {(one.start + one.length) // S for one in plan})


def price_of_move(one: SlackReservation, to: int, weights: Weights, favour: float) -> float:
    """Return what it costs to move a job to a second."""
    moved = to - one.start // S
    slack, s0 = (one.latest - one.start) // S, one.initial_slack // S
    if moved > slack:
        return inf
    if not moved:
        return 0.0
    fairness = float(Fraction(s0, max(slack, min(1, s0)))) if s0 else 1.0
    sign = 1 if moved > 0 else -1
    return sign * abs(moved) ** weights.t * one.nodes**weights.u * one.p**weights.p * fairness**weights.f / favour


def brute_force(
    nodes: int, running: list[tuple[int, int]], plan: list[SlackReservation], arriving: ArrivingJob, weights: Weights
) -> float:
    """Return the lowest price over all slots and all orders, second by second on a grid of nodes in use."""
    best = inf
    for slot in slots_of(running, plan):
        placed = grid_of_running(running)
        for one in plan:
            if one.start < slot * S:
                use(placed, one.start // S, one.length // S, one.nodes)
        use(placed, slot, arriving.length // S, arriving.job.nodes)
        if max(placed) > nodes:
            continue
        for order in permutations([one for one in plan if one.start >= slot * S]):
            grid = placed.copy()
            price = float(slot) ** weights.t * float(arriving.job.nodes) ** weights.u
            for one in order:
                at = first_fit(grid, nodes, one.nodes, one.length // S)
                use(grid, at, one.length // S, one.nodes)
                price += price_of_move(one, at, weights, arriving.favour)
            best = min(best, price)
    return best


def shifted(
    nodes: int, running: list[tuple[int, int]], plan: list[SlackReservation], arriving: ArrivingJob, weights: Weights
) -> dict[int, tuple[float, list[int]]]:
    """Return the price and the starts of the plan's jobs by slot, where those from the slot on are delayed and compressed."""
    found = {}
    delay = arriving.length // S
    for slot in slots_of(running, plan):
        grid, starts = grid_of_running(running), [one.start // S for one in plan]
        use(grid, slot, delay, arriving.job.nodes)
        for at, one in enumerate(plan):
            if one.start < slot * S:
                use(grid, starts[at], one.length // S, one.nodes)
        if max(grid) > nodes:
            continue
        for at, one in enumerate(plan):
            if one.start >= slot * S:
                starts[at] += delay
                use(grid, starts[at], one.length // S, one.nodes)
        assert max(grid) <= nodes, "jobs that are delayed by the same time fit as before"
        price = float(slot) ** weights.t * float(arriving.job.nodes) ** weights.u
        for at, one in enumerate(plan):
            if one.start >= slot * S:
                use(grid, starts[at], one.length // S, -one.nodes)
                starts[at] = first_fit(grid, nodes, one.nodes, one.length // S, slot)
                use(grid, starts[at], one.length // S, one.nodes)
                price += price_of_move(one, starts[at], weights, arriving.favour)
        found[slot] = price, starts
    return found


def profile_of(nodes: int, running: list[tuple[int, int]], plan: list[SlackReservation]) -> Profile:
    profile = Profile.of_running(nodes, 0, running)
    for one in plan:
        profile.reserve(one.start, one.end, one.nodes)
    return profile


def steps_of(schedule: Schedule) -> list[tuple[int, int]]:
    assert isinstance(schedule.state, Profile)
    return schedule.state.steps()


def search_of(
    nodes: int, running: list[tuple[int, int]], plan: list[SlackReservation], arriving: ArrivingJob | None, weights: Weights
) -> tuple[Search, list[int]]:
    search = search_in(plan_of(nodes, running, plan), plan, arriving, weights)
    return search, [slot * S for slot in slots_of(running, plan)]


@settings(max_examples=cases(150))
@given(case=plans())
def test_the_optimum_is_that_of_a_brute_force(case: Insertion) -> None:
    search, slots = search_of(*case)
    found = search.optimal(slots)
    assert found is not None
    assert found.price == pytest.approx(brute_force(*case), rel=1e-9, abs=1e-9)


@settings(max_examples=cases(200))
@given(case=plans(largest=6))
def test_delaying_and_compressing_is_that_of_a_replay_second_by_second(case: Insertion) -> None:
    nodes, running, plan, arriving, weights = case
    search, slots = search_of(*case)
    found = search.cheapest_shifted(slots, plan)
    replayed = shifted(nodes, running, plan, arriving, weights)
    assert found is not None
    starts = {one.job.id: start // S for one, start in found.starts}
    price, expected = replayed[found.slot // S]
    assert [starts.get(one.job.id, one.start // S) for one in plan] == expected
    assert found.price == pytest.approx(price, rel=1e-9, abs=1e-9)
    assert found.price <= min(price for price, _ in replayed.values()) + 1e-9 * abs(found.price)
    profile = Profile.of_running(nodes, 0, running)
    profile.reserve(found.slot, found.slot + arriving.length, arriving.job.nodes)
    for one in plan:
        start = starts.get(one.job.id, one.start // S) * S
        profile.reserve(start, start + one.length, one.nodes)
    assert steps_of(found) == profile.steps()


@settings(max_examples=cases(150))
@given(case=plans(largest=7), insert=st.booleans())
def test_no_heuristic_is_cheaper_than_the_optimum(case: Insertion, insert: bool) -> None:
    nodes, running, plan, arriving, weights = case
    search, slots = search_of(nodes, running, plan, arriving if insert else None, weights)
    best = search.optimal(slots)
    assert best is not None
    for name, key in HEURISTICS.items():
        found = search.cheapest(slots, sorted(plan, key=key or by_start))
        assert found is None or best.price <= found.price + 1e-9 * abs(found.price), name


@given(case=plans(largest=7))
def test_the_chosen_schedule_can_be_carried_out(case: Insertion) -> None:
    nodes, running, plan, arriving, weights = case
    for new in (arriving, None):
        before = plan_of(nodes, running, plan)
        _, slots = search_of(*case)
        search = search_in(before, plan, new, weights)
        found = search.cheapest_in_place(plan) if new is None else search.cheapest(slots, plan)
        assert before.profile.steps() == profile_of(nodes, running, plan).steps()
        if found is None:
            assert new is None
            continue
        profile = Profile.of_running(nodes, 0, running)
        if new is not None:
            profile.reserve(found.slot, found.slot + new.length, new.job.nodes)
        moved = {one.job.id: start for one, start in found.starts}
        for one in plan:
            start = moved.get(one.job.id, one.start)
            assert start <= (one.start if new is None else one.latest)
            profile.reserve(start, start + one.length, one.nodes)
        assert steps_of(found) == profile.steps()
        assert len(found.starts) == sum(start != one.start for one, start in found.starts)


@settings(max_examples=cases(300))
@given(case=plans(largest=7))
def test_short_cuts_find_what_whole_trials_find(case: Insertion) -> None:
    nodes, running, plan, arriving, weights = case
    for left in (running, running[:-1]):  # once a job has ended early, others could start earlier without the arriving one
        search, slots = search_of(nodes, left, plan, arriving, weights)
        whole = search.cheapest(slots, plan)
        assert_equal(search.cheapest(slots), whole)  # trials that begin with the first job to move
        assert_equal(search.cheapest(), whole)  # all slots are those of the profile
    if plan:  # all are taken out, or one by one
        search, _ = search_of(nodes, running[:-1], plan, None, weights)
        whole, found = search.cheapest(), search.cheapest_in_place(plan)
        assert whole is not None
        if found is None:
            assert not whole.starts
        else:
            assert_equal(whole, found)


def assert_equal(first: Schedule | None, second: Schedule | None) -> None:
    assert (first is None) == (second is None)
    if first is not None and second is not None:
        assert (first.price, first.slot, first.starts) == (second.price, second.slot, second.starts)
        assert steps_of(first) == steps_of(second)


@every_heuristic
@given(case=machines_and_rows(priorities=True), split=st.integers(1, 3))
def test_streams_and_their_order_mean_nothing(heuristic: str, case: Case, split: int) -> None:
    nodes, rows = case
    parts = [sorted(rows[part::split], key=lambda row: (row.submit, -row.id)) for part in range(split)]
    policy = Slack(heuristic=heuristic, awt=20.0)
    records = simulate(Machine(nodes=nodes), parts, policy, np.random.default_rng(1)).records
    assert starts(records) == starts(run(nodes, rows, policy))


@given(case=plans(), size=st.integers(1, 6), length=st.integers(1, 20), latest=st.integers(0, 60))
def test_booking_is_reserving_at_the_earliest_time_unless_that_is_too_late(
    case: Insertion, size: int, length: int, latest: int
) -> None:
    nodes, running, plan, _, _ = case
    profile = profile_of(nodes, running, plan)
    size, twin = min(size, nodes), profile.copy()
    start = profile.earliest(size, length * S)
    booked = twin.book(size, length * S, latest * S)
    if start <= latest * S:
        assert booked == start
        profile.reserve(start, start + length * S, size)
    else:
        assert booked == -1
    assert twin.steps() == profile.steps()
