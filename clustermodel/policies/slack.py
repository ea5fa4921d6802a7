"""Slack-based backfilling: a job may be delayed for others, but by no more than its slack (Talby & Feitelson 1999).

Every waiting job holds a reservation, as in conservative backfilling, and has a slack.  When a job is submitted (*insert*) or
completes before its estimate (*remove*), the policy prices schedules that move the waiting jobs and takes the cheapest.  When a
reserved time has come (*tick*), the job starts.  Sections are those of the paper's long version.  The formulas are in
:mod:`clustermodel.schedule.slack_formulas`, slacks in :mod:`clustermodel.schedule.slack_reservations`, the search in
:mod:`clustermodel.schedule.slack_search`.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Mapping, Sequence
from math import inf
from numbers import Real
from typing import Final

from clustermodel.errors import SpecificationError
from clustermodel.policies.average_wait import MEASURED, AverageWait
from clustermodel.policies.calibrated import MeasureWaits
from clustermodel.policies.copies import CopiedWithoutRun
from clustermodel.policies.interface import NOTHING, Decision, Kill, Reason, Reserve, Setup, Start, WakeAt
from clustermodel.policies.predictors import may_overrun
from clustermodel.policies.quotas import OverQuota, Quotas
from clustermodel.policies.view import Batch, QueuedJob, RunningJob, View
from clustermodel.schedule import slack_formulas as pricing
from clustermodel.schedule.profile import Profile
from clustermodel.schedule.running_profile import RunningProfile
from clustermodel.schedule.slack_formulas import FIRST_SP, Weights
from clustermodel.schedule.slack_reservations import HEURISTICS, OPTIMAL, SlackReservation, by_start
from clustermodel.schedule.slack_search import ArrivingJob, Schedule, Search
from clustermodel.ticks import to_seconds, to_ticks
from clustermodel.validation import choice, flag, require_number, share

PriorityOf = Callable[[QueuedJob], float]
"""Gives a job's user or political priority, a number in [0, 1]."""

REMOVALS: Final = ("afresh", "in-place")
EXTENSION: Final = 0.1
"""Share of its estimate by which an unfinished job is extended (section 4.7)."""


class Slack(CopiedWithoutRun):
    """Slack-based backfilling: the cheapest schedule that delays no job beyond its slack.

    Args:
        slack_factor: SF; a job of priority 0 may be delayed by SF times the average wait time beyond its first reserved start.
        heuristic: in which order jobs are put back: ``"ast"``, ``"aat"``, ``"du"``, ``"dc"``, ``"dp"``, or ``"optimal"``, which
            tries every order and is for a few waiting jobs only.
        remove: how jobs are put back after an early end: ``"afresh"``, as for an arriving job, or ``"in-place"``, one after the
            other while the others stay where they are, so that no job is delayed (docs/slack compares the heuristics).
        awt: AWT, the average wait time: ``"conservative"`` (the mean wait under conservative backfilling, measured before
            the run), ``"conservative-by-size"`` (the same for each class of sizes 1, 2, 3-4, 5-8, ...), seconds, or a
            mapping from the largest number of nodes of a class to seconds.
        alpha_u: weight of utilization, in [0, 1].
        alpha_t: weight of time.
        alpha_p: weight of priority.
        alpha_f: weight of fairness.
        user_priority: UP in [0, 1], of all jobs, or a callable that gives it for a job.
        political_priority: PP in [0, 1], likewise.
        quotas: what users and groups may use; jobs of those over quota delay no other job (PP is minus infinity).
        extend_unfinished: give a job that is unfinished at its estimate 10 % more time where that is cheaper than killing it
            (section 4.7); for machines that do not kill at the estimate themselves.

    Raises:
        SpecificationError: an argument has a value that is not allowed.
    """

    name = "slack"
    uses = NOTHING

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
        self._optimal = choice("slack: heuristic", heuristic, HEURISTICS) == OPTIMAL
        self._rank = HEURISTICS[heuristic] or by_start
        if self._optimal and remove in REMOVALS[1:]:
            raise SpecificationError(
                f"slack: remove: {remove!r} is not allowed; it must be {REMOVALS[0]!r} where heuristic is optimal"
            )
        self._in_place = choice("slack: remove", remove, REMOVALS) == REMOVALS[1]
        self._awt = AverageWait(awt)
        self._weights = Weights(
            u=share("slack: alpha_u", alpha_u),
            t=share("slack: alpha_t", alpha_t),
            p=share("slack: alpha_p", alpha_p),
            f=share("slack: alpha_f", alpha_f),
        )
        self._user_priority = _priority_of("user_priority", user_priority)
        self._political_priority = _priority_of("political_priority", political_priority)
        if quotas is not None and not isinstance(quotas, Quotas):
            raise SpecificationError(f"slack: quotas: {quotas!r} is not allowed; it must be a Quotas(...) or None")
        self._quotas = quotas or Quotas()
        self._extend_unfinished = flag("slack: extend_unfinished", extend_unfinished)

    def calibrate(self, measure: MeasureWaits) -> None:
        """Measure the average wait time under conservative backfilling, if that is what ``awt`` asks for."""
        self._awt.calibrate(measure)

    def begin(self, setup: Setup) -> None:
        """Forget any earlier run and prepare for one.

        Raises:
            SpecificationError: the average wait time is not known, or not for all job sizes, or unfinished jobs are to be
                extended on a machine that kills them.
        """
        self._awt.check(setup.nodes)
        if self._extend_unfinished and setup.kill_at_estimate:
            raise SpecificationError(
                "slack: extend_unfinished: True is not allowed on a machine with kill_at_estimate=True; "
                "it must be a Machine(..., kill_at_estimate=False)"
            )
        self._running = RunningProfile(setup.nodes, may_overrun=may_overrun(setup))
        self._plan: list[SlackReservation] = []  # the waiting jobs within quota, the earliest start first
        self._over_quota = OverQuota(self._quotas)
        self._alarm: int | None = None
        self._submitted: list[QueuedJob] = []  # jobs still to be inserted
        self._nodes_freed = False  # whether a job has ended early since the last *remove*
        self._explain = setup.explain

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Remove jobs that have ended, insert the submitted jobs, start those that are due."""
        now = view.now
        if batch.alarm:
            self._alarm = None
        self._nodes_freed |= self._running.catch_up(batch.ended, now, failed=batch.failed, repaired=batch.repaired)
        for gang in batch.ended:
            self._over_quota.ended(gang.job, now - gang.start)
        self._submitted += sorted((*batch.submitted, *batch.requeued), key=lambda job: job.queue_order)
        late = self._running.overrunning(now)
        if batch.failed or any(number not in view.running for number in late):
            self._delay(late, now)  # nodes are down, or longer than expected
        elif late and (kills := self._unfinished(late, view)):
            return kills  # the policy is called again at the current time, when their nodes are idle
        if self._nodes_freed and self._plan:
            self.remove(now)
        decisions = self.tick(view)
        for job in self._submitted:
            if self._over_quota.admit(job, now):
                continue
            held = self.insert(job, now)
            if held.start > now:
                decisions.append(Reserve(job=job, start=held.latest))
            decisions += self.tick(view)
        if self._over_quota:
            decisions += self._place_over_quota(view)
        if (alarm := self._next_alarm()) != self._alarm:
            self._alarm = alarm
            decisions.append(WakeAt(time=alarm))
        self._nodes_freed = False
        self._submitted.clear()
        return decisions

    # The three operations of the paper.

    def insert(self, job: QueuedJob, now: int) -> SlackReservation:
        """Put a submitted job into the plan by the cheapest schedule, then fix its priority and slack."""
        awt_s = self._awt.of(job.nodes)
        user, political = self._user_priority(job), self._political_priority(job)
        if self._plan:
            best = self._search(now, self._arriving(job, job.estimate, user, political), self._slots())
            assert best is not None, "the slot after the last reservation moves no job"
            self._carry_out(best)
            start = best.slot
        else:
            start = self._running.earliest(job.nodes, job.estimate)
        # Only now is it known how long the job will wait.  This is done once (section 4.3).
        p = pricing.priority(user, political, pricing.scheduler_priority(to_seconds(start - now), awt_s))
        slack = to_ticks(pricing.initial_slack(p, self._slack_factor, awt_s))
        held = SlackReservation(job, start, p, slack, self._weights)
        insort(self._plan, held, key=by_start)
        return held

    def remove(self, now: int) -> None:
        """Look for a cheaper schedule after jobs have ended before their estimates; change nothing if there is none.

        The dummy job that is inserted takes neither time nor nodes.  Its priority divides all prices, so it does not matter.
        """
        best = self._search(now, None, sorted({held.start for held in self._plan}))
        if best is not None and best.price < 0:
            self._carry_out(best)

    def tick(self, view: View) -> list[Decision]:
        """Start the jobs whose reserved time has come."""
        if not self._plan or self._plan[0].start > view.now:
            return []
        due = bisect_right(self._plan, view.now, key=lambda held: held.start)
        starting = self._plan[:due]
        del self._plan[:due]
        return [self._start(view.waiting[held.job.id], view) for held in starting]

    # Their parts.

    def _slots(self) -> list[int]:
        """Return the ends of all slots from now on: where jobs start or end.

        The steps of the profile would be too few: where a job begins on the nodes of one that ends, there is no step.
        """
        slots = {time for time, _ in self._running.steps()}
        for held in self._plan:
            slots.add(held.start)
            slots.add(held.end)
        return sorted(slots)

    def _search(self, now: int, arriving: ArrivingJob | None, slots: Sequence[int]) -> Schedule | None:
        in_order = self._rank is by_start
        # In the order of the starts, one by one is the same as all at once, and less work.
        in_place = arriving is None and not self._optimal and (self._in_place or in_order)
        search = Search(self._running, self._plan, self._weights, now, arriving, in_place=in_place)
        if self._optimal:
            return search.optimal(slots)
        return search.cheapest(slots, self._plan if in_order else sorted(self._plan, key=self._rank))

    def _carry_out(self, schedule: Schedule) -> None:
        if schedule.moved:
            for held, start in schedule.starts:
                held.move_to(start, self._weights)
            self._plan.sort(key=by_start)

    def _place_over_quota(self, view: View) -> list[Decision]:
        profile: Profile = self._running.copy()
        for held in self._plan:
            profile.reserve(held.start, held.end, held.nodes)
        return [self._start(job, view) for job in self._over_quota.plan(profile, view.now)]

    def _unfinished(self, late: list[int], view: View) -> list[Decision]:
        """Decide about jobs that run on at their estimates, or at the end of an extension."""
        if self._extend_unfinished:
            return [Kill(job=gang.job) for job_id in late if not self._extend(gang := view.running[job_id], view.now)]
        self._delay(late, view.now)
        return []

    def _delay(self, late: list[int], now: int) -> None:
        """Place the waiting jobs again around jobs that may not be killed and nodes that are down, beyond their bounds if need
        be.
        """
        self._running.extend(late, now)
        profile = self._running.copy()
        for held in self._plan:
            held.move_to(profile.book(held.nodes, held.length), self._weights)
        self._plan.sort(key=by_start)

    def _extend(self, gang: RunningJob, now: int) -> bool:
        """Extend an unfinished job by a tenth of its estimate if that is cheaper than killing it (section 4.7).

        The extension is priced like an arriving job, so its SP is 1/2.  The SP of the job itself may be 0, and no price is
        divided by 0.
        """
        job = gang.job
        length = max(1, round(EXTENSION * job.estimate))
        arriving = self._arriving(job, length, self._user_priority(job), self._political_priority(job))
        best = self._search(now, arriving, [now])
        if best is None or best.price >= pricing.price_of_killing(job.nodes, to_seconds(job.estimate), self._weights):
            return False
        if job.id in self._over_quota.running and any(start > held.start for held, start in best.starts):
            return False
        self._carry_out(best)
        self._running.prolong(job.id, now, now + length)
        return True

    def _arriving(self, job: QueuedJob, length: int, user: float, political: float) -> ArrivingJob:
        p = pricing.priority(user, political, FIRST_SP)
        return ArrivingJob(job.nodes, length, pricing.favour(p, self._weights))

    def _start(self, job: QueuedJob, view: View) -> Start:
        self._running.start(job.id, job.nodes, view.now, view.now + job.estimate)
        return Start(job=job, reason=self._reason(job, view) if self._explain else None)

    def _reason(self, job: QueuedJob, view: View) -> Reason:
        reserved = {held.job.id: held.start for held in self._plan}
        holder = next((waiting for waiting in view.waiting.values() if waiting.id in reserved), None)
        if job.id in self._over_quota.running:
            rule = "over quota: it takes nodes that no reservation needs"
        elif holder is None or (job.submit, job.id) < (holder.submit, holder.id):
            return Reason("its reserved time has come, and no job within quota has waited longer", reserved=view.now)
        else:
            rule = "backfilled: its reserved time has come, in the cheapest schedule that keeps every job's bound"
        if holder is None:
            return Reason(rule, reserved=view.now)
        return Reason(rule, holder=holder.id, shadow=reserved[holder.id], reserved=view.now)

    def _next_alarm(self) -> int | None:
        times = self._over_quota.starts()
        if self._plan:
            times.append(self._plan[0].start)
        if self._extend_unfinished and (end := self._running.next_end()) is not None:
            times.append(end)
        return min(times, default=None)


def _priority_of(field: str, given: object) -> PriorityOf:
    if isinstance(given, Real):
        constant = share(f"slack: {field}", given)
        return lambda _: constant
    if not callable(given):
        raise SpecificationError(f"slack: {field}: {given!r} is not allowed; it must be a number >= 0 and <= 1, or a callable")
    return lambda job: share(f"slack: {field} of job {job.id}", given(job))
