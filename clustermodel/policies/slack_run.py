"""One run of slack-based backfilling: the operations of the paper, and what they keep from one scheduling event to the next.

Every waiting job holds a reservation, as in conservative backfilling, and has a slack.  When a job is submitted (*insert*) or
completes before its estimate (*remove*), the policy prices schedules that move the waiting jobs and takes the cheapest.  When a
reserved time has come (*tick*), the job starts.  Sections are those of Talby & Feitelson 1999, long version.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Final

from clustermodel.policies.interface import Decision, Kill, Reason, Reserve, Setup, Start, WakeAt
from clustermodel.policies.predictors import as_late_again
from clustermodel.policies.view import Batch, QueuedJob, View
from clustermodel.schedule import slack_prices as pricing
from clustermodel.schedule.profile import Profile, RunningProfile
from clustermodel.schedule.slack_prices import FIRST_SP, ArrivingJob, Schedule, Search, SlackReservation, Weights, by_start
from clustermodel.ticks import TICKS_PER_SECOND, to_seconds, to_ticks

if TYPE_CHECKING:
    from clustermodel.policies.slack import Quotas, Slack

PriorityOf = Callable[[QueuedJob], float]  # gives a job's user or political priority, a number in [0, 1]
AFRESH, SHIFT, IN_PLACE = COMPRESSIONS = "afresh", "shift", "in-place"
"""How the waiting jobs from a slot on are moved: see :class:`~clustermodel.policies.slack.Slack`."""
Limits = Mapping[int, float] | float | None
_UNKNOWN: Final = -1  # the number of an unknown user or group
EXTENSION: Final = 0.1  # share of its estimate by which an unfinished job is extended (section 4.7)


class SlackRun:
    """One run of slack-based backfilling; ``may_overrun`` says whether jobs may run beyond their estimates."""

    def __init__(self, policy: Slack, setup: Setup, *, may_overrun: bool) -> None:
        self._rank: Callable[[SlackReservation], Any] | None = pricing.HEURISTICS[policy.heuristic]
        self._slack_factor = float(policy.slack_factor)
        self._compression = policy.compression
        self._awt_s: Callable[[int], float] = policy.average_wait_s
        self._weights: Weights = policy.weights
        self._user_priority: PriorityOf = policy.priority("user_priority")
        self._political_priority: PriorityOf = policy.priority("political_priority")
        self._extend_unfinished, self._explain = policy.extend_unfinished, setup.explain
        self.profile = RunningProfile(
            setup.nodes, may_overrun=may_overrun
        )  # the running jobs, and the reservations of the plan
        self.plan: list[SlackReservation] = []  # the waiting jobs within quota, the earliest start first
        self._over_quota = OverQuota(policy.quotas)
        self._alarm: int | None = None
        self._submitted: list[QueuedJob] = []  # jobs still to be inserted
        self._nodes_freed = False  # whether a job has ended early since the last *remove*

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Remove jobs that have ended, insert the submitted jobs, start those that are due."""
        now = view.now
        if batch.alarm:
            self._alarm = None
        self._nodes_freed |= self.profile.catch_up(batch.ended, now, failed=batch.failed, repaired=batch.repaired)
        for gang in batch.ended:
            self._over_quota.ended(gang.job, now - gang.start)
        self._submitted += sorted((*batch.submitted, *batch.requeued), key=lambda job: job.queue_order)
        late = self.profile.overrunning(now, view.running)
        if batch.failed or (late and (not self._extend_unfinished or any(number not in view.running for number in late))):
            self._delay(late, now)  # nodes are down, or longer than expected, or jobs run on
        elif kills := [number for number in late if not self._extend(number, view)]:
            # The policy is called again at the current time, when their nodes are idle.
            return [Kill(job=view.running[number].job) for number in kills]
        if self._nodes_freed and self.plan:
            self.remove(now)
        decisions = self.tick(view)
        for job in self._submitted:
            if self._over_quota.admit(job, now):
                continue
            reservation = self.insert(job, now)
            if reservation.start > now:
                decisions.append(Reserve(job=job, start=reservation.latest))
            decisions += self.tick(view)
        if self._over_quota:
            for job in self._over_quota.plan(self.profile.copy(), now):
                self.profile.reserve(now, now + job.estimate, job.nodes)
                decisions.append(self._start(job, view))
        if (alarm := self._next_alarm()) != self._alarm:
            self._alarm = alarm
            decisions.append(WakeAt(time=alarm))
        self._nodes_freed = False
        self._submitted.clear()
        return decisions

    def _next_alarm(self) -> int | None:
        times = self._over_quota.starts()
        if self.plan:
            times.append(self.plan[0].start)
        if self._extend_unfinished and (end := self.profile.next_end()) is not None:
            times.append(end)
        return min(times, default=None)

    def insert(self, job: QueuedJob, now: int) -> SlackReservation:
        """Put a submitted job into the plan by the cheapest schedule, then fix its priority and slack."""
        awt_s = self._awt_s(job.nodes)
        user, political = self._user_priority(job), self._political_priority(job)
        if self.plan:
            slots = set(self.profile.times())  # the ends of all slots: where jobs start or end, even without a step
            for reservation in self.plan:
                slots.add(reservation.start)
                slots.add(reservation.end)
            best = self._search(now, self._arriving(job, job.estimate, user, political), sorted(slots))
            assert best is not None, "the slot after the last reservation moves no job"
            self._carry_out(best)
            start = best.slot
        else:
            start = self.profile.book(job.nodes, job.estimate)
        # Only now is it known how long the job will wait.  This is done once (section 4.3).
        p = pricing.priority(user, political, pricing.scheduler_priority(to_seconds(start - now), awt_s))
        slack = to_ticks(pricing.initial_slack(p, self._slack_factor, awt_s))
        inserted = SlackReservation(job, start, p, slack, self._weights)
        insort(self.plan, inserted, key=by_start)
        return inserted

    def remove(self, now: int) -> None:
        """Look for a cheaper schedule after jobs ended early, as if a job were inserted that takes no time and no nodes."""
        best = self._search(now, None, sorted({reservation.start for reservation in self.plan}))
        if best is not None and best.price < 0:
            self._carry_out(best)

    def tick(self, view: View) -> list[Decision]:
        """Start the jobs whose reserved time has come."""
        due = 0
        while due < len(self.plan) and self.plan[due].start <= view.now:
            due += 1
        starting = self.plan[:due]
        del self.plan[:due]
        return [self._start(view.waiting[reservation.job.id], view) for reservation in starting]  # in their reservations

    def _search(self, now: int, arriving: ArrivingJob | None, slots: Sequence[int]) -> Schedule | None:
        search = Search(self.profile, self.plan, self._weights, now, arriving)
        if self._rank is None:
            return search.optimal(slots)
        in_order = self._rank is by_start
        ranked = self.plan if in_order else sorted(self.plan, key=self._rank)
        # In the order of the starts, one by one is the same as all at once, and less work.
        if arriving is None and (in_order or self._compression != AFRESH):
            return search.cheapest_in_place(slots, ranked)
        if arriving is not None and self._compression == SHIFT:
            return search.cheapest_shifted(slots, ranked)
        return search.cheapest(slots, None if in_order else ranked)

    def _carry_out(self, schedule: Schedule) -> None:
        self.profile.take_steps_of(schedule.profile)
        if schedule.starts:
            for reservation, start in schedule.starts:
                reservation.move_to(start, self._weights)
            self.plan.sort(key=by_start)

    def _delay(self, late: list[int], now: int) -> None:
        """Place the waiting jobs again around late jobs and nodes that are down, beyond their bounds if need be."""
        profile = self.profile
        for reservation in self.plan:
            profile.release(reservation.start, reservation.end, reservation.nodes)
        profile.extend(late, now, lambda _, ticks: as_late_again(ticks))
        for reservation in self.plan:
            reservation.move_to(profile.book(reservation.nodes, reservation.length), self._weights)
        self.plan.sort(key=by_start)

    def _extend(self, number: int, view: View) -> bool:
        """Extend an unfinished job by a tenth of its estimate if that is cheaper than killing it (section 4.7)."""
        # The extension is priced like an arriving job, with SP 1/2: that of the job may be 0, and no price is divided by 0.
        job, now = view.running[number].job, view.now
        length = max(1, round(EXTENSION * job.estimate))
        arriving = self._arriving(job, length, self._user_priority(job), self._political_priority(job))
        best = self._search(now, arriving, [now])
        # What is lost when it is killed is priced like a wait of its estimate.
        if best is None or best.price >= pricing.price_of_start(job.nodes, to_seconds(job.estimate), self._weights):
            return False
        if job.id in self._over_quota.running and any(start > reservation.start for reservation, start in best.starts):
            return False
        self._carry_out(best)
        self.profile.note_prolongation(job.id, now + length)
        return True

    def _arriving(self, job: QueuedJob, length: int, user: float, political: float) -> ArrivingJob:
        p = pricing.priority(user, political, FIRST_SP)
        return ArrivingJob(job.nodes, length, pricing.favour(p, self._weights))

    def _start(self, job: QueuedJob, view: View) -> Start:
        self.profile.note_start(job.id, job.nodes, view.now + job.estimate)
        return Start(job=job, reason=self._reason(job, view) if self._explain else None)

    def _reason(self, job: QueuedJob, view: View) -> Reason:
        reserved = {reservation.job.id: reservation.start for reservation in self.plan}
        holder = next((waiting for waiting in view.waiting.values() if waiting.id in reserved), None)
        rule = "backfilled: its reserved time has come, in the cheapest schedule that keeps every job's bound"
        if job.id in self._over_quota.running:
            rule = "over quota: it takes nodes that no reservation needs"
        elif holder is None or (job.submit, job.id) < (holder.submit, holder.id):
            return Reason("its reserved time has come, and no job within quota has waited longer", reserved=view.now)
        if holder is None:
            return Reason(rule, reserved=view.now)
        return Reason(rule, holder=holder.id, shadow=reserved[holder.id], reserved=view.now)


class OverQuota:
    """What users and groups have been charged in one run, and the waiting jobs of those over quota."""

    # These are planned behind all other jobs, in order of arrival, so that they delay no job.

    def __init__(self, quotas: Quotas | None) -> None:
        self._limits: dict[str, Limits] = {} if quotas is None else {"user": quotas.user, "group": quotas.group}
        self.used: Counter[tuple[str, int]] = Counter()  # ("user" or "group", number) -> what has been charged, node-ticks
        self._waiting: dict[int, tuple[QueuedJob, int]] = {}  # job id -> waiting job and its planned start, in order of arrival
        self.running: set[int] = set()  # ids of the running jobs over quota

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def admit(self, job: QueuedJob, now: int) -> bool:
        """Charge nodes x estimate for a submitted job; return whether its user or group is now over quota, so it waits here."""
        self._charge(job, job.estimate)
        if over := self.over(job):
            self._waiting[job.id] = (job, now)
        return over

    def ended(self, job: QueuedJob, ran: int) -> None:
        """Charge what a job that has ended really used, ``ran`` ticks on each node, in place of its estimate."""
        self._charge(job, ran - job.estimate)
        self.running.discard(job.id)

    def over(self, job: QueuedJob) -> bool:
        """Return whether more than the quota of the job's user, or of its group, has been charged."""
        keys = ("user", job.user), ("group", job.group)
        return any(self.used[key] > limit for key in keys if (limit := self._limit(*key)) is not None)

    def _charge(self, job: QueuedJob, ticks: int) -> None:
        self.used["user", job.user] += job.nodes * ticks
        self.used["group", job.group] += job.nodes * ticks

    def _limit(self, kind: str, number: int) -> int | None:
        limits = self._limits.get(kind)
        if isinstance(limits, Mapping):
            limits = limits.get(number)
        elif number == _UNKNOWN:
            return None
        return None if limits is None or limits * TICKS_PER_SECOND == inf else to_ticks(limits)  # no job uses that much

    def plan(self, profile: Profile, now: int) -> list[QueuedJob]:
        """Plan the waiting jobs into the profile of running jobs and reservations within quota; return those that start now."""
        starting = []
        for job, _ in list(self._waiting.values()):
            start = profile.book(job.nodes, job.estimate)
            if start == now:
                del self._waiting[job.id]
                self.running.add(job.id)
                starting.append(job)
            else:
                self._waiting[job.id] = (job, start)
        return starting

    def starts(self) -> list[int]:
        """Return the planned starts of the waiting jobs, ticks."""
        return [start for _, start in self._waiting.values()]
