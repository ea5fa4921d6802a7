"""Slack-based backfilling (000; 001, section 4): a job may be delayed for others, but by no more than its slack.

Every waiting job holds a reservation, as in conservative backfilling, and has a slack.  When a job is submitted (*insert*) or
ends before its estimate (*remove*), schedules that move the waiting jobs are priced and the cheapest is taken; when a reserved
time has come (*tick*), the job starts.  The formulas are in :mod:`clustermodel.schedule.slack_pricing`, the search is
:mod:`clustermodel.schedule.slack_search`'s.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Mapping, Sequence
from math import inf
from numbers import Real
from typing import Any, Final

from clustermodel.errors import SpecificationError, did_you_mean
from clustermodel.policies.calibration import Measure, Waits
from clustermodel.policies.interface import (
    Batch,
    Decision,
    Kill,
    QueuedJob,
    Reason,
    Reserve,
    RunningJob,
    Setup,
    Start,
    View,
    WakeAt,
)
from clustermodel.policies.quotas import Accounts, Quotas
from clustermodel.schedule import slack_pricing as pricing
from clustermodel.schedule.running_profile import RunningProfile
from clustermodel.schedule.slack_pricing import FIRST_SP, Weights
from clustermodel.schedule.slack_search import MovableReservation, Newcomer, Schedule, Search
from clustermodel.ticks import TICKS_PER_SECOND, to_seconds, to_ticks
from clustermodel.validation import require_number, require_seconds, require_whole

PriorityOf = Callable[[QueuedJob], float]
"""Gives a job's user or political priority, a number in [0, 1]."""

OPTIMAL: Final = "optimal"
MEASURED: Final = "conservative"
MEASURED_BY_SIZE: Final = "conservative-by-size"
EXTENSION: Final = 0.1
"""Share of its estimate by which an unfinished job is extended (001, section 4.7)."""


_NEVER: Final = 2**127
"""Later than any start, ticks, be it one that no record can hold."""


class Waiting(MovableReservation):
    """A waiting job with its place in the plan, priority and slack."""

    __slots__ = ("initial_slack", "job", "p")

    def __init__(self, job: QueuedJob, start: int, p: float, initial_slack: int, weights: Weights) -> None:
        super().__init__(job.nodes, job.estimate, start, start + initial_slack, 0.0)
        self.job = job
        self.p = p
        self.initial_slack = initial_slack
        """s0, ticks."""
        self.put(start, weights)

    @property
    def slack(self) -> int:
        """s, ticks: by how much the job may still be delayed."""
        return self.latest - self.start

    def put(self, start: int, weights: Weights) -> None:
        """Move the job to another start; where that breaks its bound, it may not be delayed any further."""
        self.start = start
        self.latest = max(self.latest, start)
        s0, s = to_seconds(self.initial_slack), to_seconds(self.latest - start)
        self.weight = pricing.weight(self.nodes, self.p, s0, s, weights)

    @property
    def arrival(self) -> tuple[int, int]:
        """Sorting key: who was submitted first."""
        return self.job.submit, self.job.id


def by_start(one: Waiting) -> tuple[int, int, int]:
    """Sorting key of the plan: ascending scheduled time, then arrival."""
    return one.start, one.job.submit, one.job.id


def _by_cost(one: Waiting) -> tuple[float, int, int]:
    # The cost of a delay by one second is the weight, up to a common factor, and infinite without a second of slack.
    return -inf if one.slack < TICKS_PER_SECOND else -pricing.to_digits(one.weight), *one.arrival


HEURISTICS: Final[dict[str, Callable[[Waiting], Any] | None]] = {
    "ast": by_start,
    "aat": lambda one: one.arrival,
    "du": lambda one: (-one.nodes * one.length, *one.arrival),
    "dc": _by_cost,
    "dp": lambda one: (-pricing.to_digits(one.p), *one.arrival),
    OPTIMAL: None,
}
"""In which order jobs are put back (001, section 4.6); equals in order of arrival.  ``None`` tries every order."""


REMOVALS: Final = ("afresh", "in-place")


class Slack:
    """Slack-based backfilling: the cheapest schedule that delays nobody beyond the slack it was given.

    Args:
        slack_factor: SF; a job of priority 0 may be delayed by SF times the average wait time, after its first start was set.
        heuristic: in which order jobs are put back: ``"ast"``, ``"aat"``, ``"du"``, ``"dc"``, ``"dp"``, or ``"optimal"``, which
            tries every order and is for a few waiting jobs only.
        remove: how jobs are put back after an early end: ``"afresh"``, as for a new job, or ``"in-place"``, one after the other
            while the rest stay where they are, so that nobody is delayed (docs/slack shows what becomes of the heuristics).
        awt: AWT, the average wait time: ``"conservative"`` (the mean wait under conservative backfilling, measured before
            the run), ``"conservative-by-size"`` (the same for each class of sizes 1, 2, 3-4, 5-8, ...), seconds, or a
            mapping from the largest number of nodes of a class to seconds.
        alpha_u: weight of utilization, in [0, 1].
        alpha_t: weight of time.
        alpha_p: weight of priority.
        alpha_f: weight of fairness.
        user_priority: UP in [0, 1], of all jobs, or a callable that gives it for a job.
        political_priority: PP in [0, 1], likewise.
        quotas: what users and groups may use; jobs of those over quota disturb nobody (PP is minus infinity).
        extend_unfinished: give a job that is unfinished at its estimate 10 % more where that is cheaper than killing it
            (001, section 4.7); for machines that do not kill at the estimate themselves.

    Raises:
        SpecificationError: an argument has a value that is not allowed.
    """

    name = "slack"

    def __init__(
        self,
        *,
        slack_factor: float = 3.0,
        heuristic: str = "ast",
        remove: str = REMOVALS[0],
        awt: str | float | Mapping[int, float] = MEASURED,
        alpha_u: float = 1.0,
        alpha_t: float = 1.0,
        alpha_p: float = 1.0,
        alpha_f: float = 1.0,
        user_priority: float | PriorityOf = 0.0,
        political_priority: float | PriorityOf = 0.0,
        quotas: Quotas | None = None,
        extend_unfinished: bool = False,
    ) -> None:
        self._slack_factor = require_number("slack: slack_factor", slack_factor, "a finite number >= 0", lambda x: 0 <= x < inf)
        if not isinstance(heuristic, str) or heuristic not in HEURISTICS:
            hint = did_you_mean(heuristic, HEURISTICS) if isinstance(heuristic, str) else ""
            raise SpecificationError(
                f"slack: heuristic: {heuristic!r} is not allowed{hint}; it must be one of {', '.join(HEURISTICS)}"
            )
        self._optimal = heuristic == OPTIMAL
        allowed = REMOVALS[:1] if self._optimal else REMOVALS
        if remove not in allowed:
            hint = did_you_mean(remove, allowed) if isinstance(remove, str) else ""
            raise SpecificationError(
                f"slack: remove: {remove!r} is not allowed{hint}; it must be {' or '.join(map(repr, allowed))}"
                f"{' where heuristic is optimal' if self._optimal else ''}"
            )
        self._in_place = remove == REMOVALS[1]
        self._rank = HEURISTICS[heuristic] or by_start
        self._awt_asked = awt
        self._awt = _awt_of(awt)
        self._weights = Weights(
            *(
                require_number(f"slack: alpha_{letter}", value, "a number >= 0 and <= 1", _in_unit_interval)
                for letter, value in (("u", alpha_u), ("t", alpha_t), ("p", alpha_p), ("f", alpha_f))
            )
        )
        self._user_priority = _priority_of("user_priority", user_priority)
        self._political_priority = _priority_of("political_priority", political_priority)
        if quotas is not None and not isinstance(quotas, Quotas):
            raise SpecificationError(f"slack: quotas: {quotas!r} is not allowed; it must be a Quotas(...) or None")
        self._quotas = quotas or Quotas()
        if not isinstance(extend_unfinished, bool):
            raise SpecificationError(
                f"slack: extend_unfinished: {extend_unfinished!r} is not allowed; it must be True or False"
            )
        self._extend_unfinished = extend_unfinished

    def calibrate(self, measure: Measure) -> None:
        """Measure the average wait time under conservative backfilling, if that is what ``awt`` asks for."""
        if self._awt_asked == MEASURED:
            waits = measure("conservative")
            self._awt = [(inf, _mean_s(waits.wait))]
        elif self._awt_asked == MEASURED_BY_SIZE:
            self._awt = _awt_by_size(measure("conservative"))

    def begin(self, setup: Setup) -> None:
        """Forget any earlier run and get ready for one.

        Raises:
            SpecificationError: the average wait time is not known, or not for all sizes of jobs, or unfinished jobs are to be
                extended on a machine that kills them.
        """
        if not self._awt:
            raise SpecificationError(
                f"slack: awt: {self._awt_asked!r} has not been measured; run the policy in a Scenario, call its calibrate(), "
                "or give a number of seconds"
            )
        if setup.nodes > self._awt[-1][0]:
            raise SpecificationError(
                f"slack: awt: {self._awt[-1][0]} as the largest size is not allowed; "
                f"it must be >= {setup.nodes}, the machine's nodes"
            )
        if self._extend_unfinished and setup.kill_at_estimate:
            raise SpecificationError(
                "slack: extend_unfinished: True is not allowed on a machine with kill_at_estimate=True; "
                "it must be a Machine(..., kill_at_estimate=False)"
            )
        self._running = RunningProfile(setup.nodes, may_overrun=not setup.kill_at_estimate)
        self._accounts = Accounts(self._quotas)
        self._plan: list[Waiting] = []  # the waiting jobs within quota, the earliest start first
        self._over_quota: dict[int, tuple[QueuedJob, int]] = {}  # job id -> waiting job over quota, its start; as submitted
        self._running_over_quota: set[int] = set()  # job ids
        self._alarm: int | None = None
        self._submitted: list[QueuedJob] = []  # jobs still to be inserted
        self._room_made = False  # whether a job has ended early since the last *remove*
        self._explain = setup.explain

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Remove what has ended, insert what was submitted, start what is due."""
        now = view.now
        if batch.alarm:
            self._alarm = None
        self._room_made |= self._take_out(batch.ended, now)
        self._submitted += batch.submitted
        late = self._running.overrunning(now)
        if late and (kills := self._unfinished(late, view)):
            return kills  # and go on when the policy is called again at this instant: their nodes are idle then
        if self._room_made and self._plan:
            self.remove(now)
        decisions = self.tick(view)
        for job in self._submitted:
            if self._accounts.charge(job):
                self._over_quota[job.id] = (job, now)
                continue
            one = self.insert(job, now)
            if one.start > now:
                decisions.append(Reserve(job=job, start=one.latest))
            decisions += self.tick(view)
        if self._over_quota:
            decisions += self._place_over_quota(view)
        if (alarm := self._next_alarm()) != self._alarm:
            self._alarm = alarm
            decisions.append(WakeAt(time=alarm))
        self._room_made = False
        self._submitted.clear()
        return decisions

    # The three operations of the papers.

    def insert(self, job: QueuedJob, now: int) -> Waiting:
        """Put a new job into the plan by the cheapest schedule, then settle its priority and slack."""
        awt_s = self._awt_of(job.nodes)
        user, political = self._user_priority(job), self._political_priority(job)
        if self._plan:
            found = self._search(now, self._newcomer(job, job.estimate, user, political), self._slots())
            assert found is not None, "the slot after the last reservation moves nobody"
            self._carry_out(found)
            start = found.slot
        else:
            start = self._running.earliest(job.nodes, job.estimate)
        # Only now is it known how long the job will wait.  This is done once (001, section 4.3).
        p = pricing.priority(user, political, pricing.scheduler_priority(to_seconds(start - now), awt_s))
        slack = to_ticks(pricing.initial_slack(p, self._slack_factor, awt_s))
        one = Waiting(job, start, p, slack, self._weights)
        insort(self._plan, one, key=by_start)
        return one

    def remove(self, now: int) -> None:
        """Look for a cheaper schedule, now that jobs have ended before their estimates; leave all as it is if there is none.

        The dummy job that is inserted takes neither time nor nodes.  Its priority divides all prices, so it does not matter.
        """
        found = self._search(now, None, sorted({one.start for one in self._plan}))
        if found is not None and found.price < 0:
            self._carry_out(found)

    def tick(self, view: View) -> list[Decision]:
        """Start the jobs whose time has come."""
        due = bisect_right(self._plan, view.now, key=lambda one: one.start)
        begun = self._plan[:due]
        del self._plan[:due]
        return [self._start(one.job, view) for one in begun]

    # What they are made of.

    def _take_out(self, ended: Sequence[RunningJob], now: int) -> bool:
        """Take gangs that have ended out of the profile; tell whether one ended before its estimate."""
        running, room_made = self._running, False
        running.advance(now)
        for gang in ended:
            job = gang.job
            room_made |= running.end(job.id, job.nodes, now, gang.expected_end)
            self._accounts.settle(job, now - gang.start)
            self._running_over_quota.discard(job.id)
        return room_made

    def _slots(self) -> list[int]:
        """Return the ends of all slots from now on: where jobs start or end.

        The steps of the profile would be too few: where a job begins on the nodes of one that ends, there is no step.
        """
        slots = {time for time, _ in self._running.steps()}
        for one in self._plan:
            slots.add(one.start)
            slots.add(one.start + one.length)
        return sorted(slots)

    def _search(self, now: int, newcomer: Newcomer | None, slots: Sequence[int]) -> Schedule[Waiting] | None:
        search = Search(self._running, self._plan, self._weights, now, newcomer, in_place=self._in_place and newcomer is None)
        if self._optimal:
            return search.optimal(slots)
        ranked = self._plan if self._rank is by_start else sorted(self._plan, key=self._rank)
        return search.cheapest(slots, ranked)

    def _carry_out(self, schedule: Schedule[Waiting]) -> None:
        if schedule.moved:
            for one, start in schedule.starts:
                if start != one.start:
                    one.put(start, self._weights)
            self._plan.sort(key=by_start)

    def _place_over_quota(self, view: View) -> list[Decision]:
        """Plan the jobs over quota behind everybody else, in order of arrival; start those for which there is room now."""
        profile = self._running.copy()
        for one in self._plan:
            profile.reserve(one.start, one.start + one.length, one.nodes)
        decisions: list[Decision] = []
        for job, _ in list(self._over_quota.values()):
            start = profile.book(job.nodes, job.estimate, _NEVER)
            if start == view.now:
                del self._over_quota[job.id]
                self._running_over_quota.add(job.id)
                decisions.append(self._start(job, view))
            else:
                self._over_quota[job.id] = (job, start)
        return decisions

    def _unfinished(self, late: list[int], view: View) -> list[Decision]:
        """Decide about running jobs that have reached their estimates, or the end of an extension, and go on."""
        if self._extend_unfinished:
            return [Kill(job=gang.job) for job_id in late if not self._extend(gang := view.running[job_id], view.now)]
        # Nobody may be killed, so all must give way: bounds may be broken by it.
        self._running.extend(late, view.now)
        profile = self._running.copy()
        for one in self._plan:
            one.put(profile.book(one.nodes, one.length, _NEVER), self._weights)
        self._plan.sort(key=by_start)
        return []

    def _extend(self, gang: RunningJob, now: int) -> bool:
        """Extend an unfinished job by a tenth of its estimate if that is cheaper than killing it (001, section 4.7).

        The extension is priced like a new job, so its SP is 1/2; that of the job itself may be 0, and no p divides by 0.
        """
        job = gang.job
        length = max(1, round(EXTENSION * job.estimate))
        newcomer = self._newcomer(job, length, self._user_priority(job), self._political_priority(job))
        found = self._search(now, newcomer, [now])
        if found is None or found.price >= pricing.price_of_killing(job.nodes, to_seconds(job.estimate), self._weights):
            return False
        if job.id in self._running_over_quota and any(start > one.start for one, start in found.starts):
            return False
        self._carry_out(found)
        self._running.prolong(job.id, now, now + length)
        return True

    def _newcomer(self, job: QueuedJob, length: int, user: float, political: float) -> Newcomer:
        p = pricing.priority(user, political, FIRST_SP)
        return Newcomer(job.nodes, length, pricing.favour(p, self._weights))

    def _start(self, job: QueuedJob, view: View) -> Start:
        self._running.start(job.id, job.nodes, view.now, view.now + job.estimate)
        return Start(job=job, reason=self._reason(job, view) if self._explain else None)

    def _reason(self, job: QueuedJob, view: View) -> Reason:
        reserved = {one.job.id: one.start for one in self._plan}
        holder = next((waiting for waiting in view.waiting.values() if waiting.id in reserved), None)
        if job.id in self._running_over_quota:
            rule = "over quota: there is room that no reservation needs"
        elif holder is None or (job.submit, job.id) < (holder.submit, holder.id):
            return Reason("its reserved time has come, and nobody within quota has waited longer", reserved=view.now)
        else:
            rule = "backfilled: its reserved time has come, in the cheapest schedule that keeps everybody's bound"
        if holder is None:
            return Reason(rule, reserved=view.now)
        return Reason(rule, holder=holder.id, shadow=reserved[holder.id], reserved=view.now)

    def _next_alarm(self) -> int | None:
        times = [start for _, start in self._over_quota.values()]
        if self._plan:
            times.append(self._plan[0].start)
        if self._extend_unfinished and (end := self._running.next_end()) is not None:
            times.append(end)
        return min(times, default=None)

    def _awt_of(self, nodes: int) -> float:
        return next(seconds for largest, seconds in self._awt if nodes <= largest)


# Arguments.

Classes = list[tuple[float, float]]
"""(largest number of nodes, average wait time in seconds), ascending."""


def _in_unit_interval(value: float) -> bool:
    return 0 <= value <= 1


def _awt_of(awt: object) -> Classes:
    """Return what ``awt`` says, nothing if it has to be measured."""
    if isinstance(awt, str):
        if awt in (MEASURED, MEASURED_BY_SIZE):
            return []
        raise SpecificationError(
            f"slack: awt: {awt!r} is not allowed{did_you_mean(awt, (MEASURED, MEASURED_BY_SIZE))}; "
            f"it must be {MEASURED!r}, {MEASURED_BY_SIZE!r}, a number of seconds, or a mapping from nodes to seconds"
        )
    if isinstance(awt, Mapping):
        if not awt:
            raise SpecificationError("slack: awt: an empty mapping is not allowed; it must have one class of sizes at least")
        return sorted(
            (require_whole("slack: awt: largest size", largest, at_least=1), require_seconds(f"slack: awt[{largest}]", seconds))
            for largest, seconds in awt.items()
        )
    return [(inf, require_seconds("slack: awt", awt))]


def _mean_s(waits: Sequence[int]) -> float:
    return to_seconds(sum(waits)) / len(waits) if waits else 0.0


def _awt_by_size(waits: Waits) -> Classes:
    """Return the mean wait of the sizes 1, 2, 3-4, 5-8, ...; that of all jobs for larger ones than there are."""
    largest = max(waits.nodes, default=1)
    bounds = [2**k for k in range((largest - 1).bit_length() + 1)]
    classes: dict[int, list[int]] = {bound: [] for bound in bounds}
    for nodes, wait in zip(waits.nodes, waits.wait, strict=True):
        classes[2 ** (nodes - 1).bit_length()].append(wait)
    overall = _mean_s(waits.wait)
    return [*((bound, _mean_s(of_class) if of_class else overall) for bound, of_class in classes.items()), (inf, overall)]


def _priority_of(field: str, given: object) -> PriorityOf:
    allowed = "a number >= 0 and <= 1"
    if isinstance(given, Real):
        constant = require_number(f"slack: {field}", given, allowed, _in_unit_interval)
        return lambda _: constant
    if not callable(given):
        raise SpecificationError(f"slack: {field}: {given!r} is not allowed; it must be {allowed}, or a callable")
    return lambda job: require_number(f"slack: {field} of job {job.id}", given(job), allowed, _in_unit_interval)
