"""One run of slack-based backfilling: the operations of the paper, and what they keep from one scheduling event to the next.

Every waiting job holds a reservation, as in conservative backfilling, and has a slack.  When a job is submitted (*insert*) or
completes before its estimate (*remove*), the policy prices schedules that move the waiting jobs and takes the cheapest.  When a
reserved time has come (*tick*), the job starts.  Sections are those of Talby & Feitelson 1999, long version.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Final

from clustermodel.plans import slack_prices as pricing
from clustermodel.plans.pool_plans import RunningPlan
from clustermodel.plans.pools import Split
from clustermodel.plans.profile import RunningProfile
from clustermodel.plans.slack_prices import (
    FIRST_SP,
    ArrivingJob,
    Priced,
    Schedule,
    Search,
    SlackReservation,
    Weights,
    by_start,
)
from clustermodel.policies.interface import Decision, Kill, Reason, Reserve, Setup, Start, WakeAt
from clustermodel.policies.predictors import as_late_again
from clustermodel.policies.view import Batch, Outage, QueuedJob, View
from clustermodel.ticks import TICKS_PER_SECOND, to_seconds, to_ticks

if TYPE_CHECKING:
    from clustermodel.policies.slack import Quotas, Slack

PriorityOf = Callable[[QueuedJob], float]  # gives a job's user or political priority, a number in [0, 1]
AFRESH, SHIFT, IN_PLACE = COMPRESSIONS = "afresh", "shift", "in-place"
"""How the waiting jobs from a slot on are moved: see :class:`~clustermodel.policies.slack.Slack`."""
Limits = Mapping[int, float] | float | None
Classes = tuple[tuple[float, float], ...]
"""Average wait times by size: (largest number of nodes, seconds), ascending."""
_UNKNOWN: Final = -1  # the number of an unknown user or group
EXTENSION: Final = 0.1  # share of its estimate by which an unfinished job is extended (section 4.7)


class SlackRun(ABC):
    """One run of slack-based backfilling; what depends on which nodes a job may have is left to its two kinds."""

    def __init__(self, policy: Slack, setup: Setup, running: RunningProfile | RunningPlan) -> None:
        self._rank: Callable[[SlackReservation], Any] | None = pricing.HEURISTICS[policy.heuristic]
        self._slack_factor = float(policy.slack_factor)
        self._compression = policy.compression
        self._average_waits: Classes = policy.average_waits
        self._weights: Weights = policy.weights
        self._user_priority: PriorityOf = policy.priority("user_priority")
        self._political_priority: PriorityOf = policy.priority("political_priority")
        self._extend_unfinished, self._explain = policy.extend_unfinished, setup.explain
        self._running: RunningProfile | RunningPlan = running  # the running jobs, and the reservations of the plan
        self.plan: list[SlackReservation] = []  # the waiting jobs within quota, the earliest start first
        self._over_quota = OverQuota(policy.quotas)
        self._alarm: int | None = None
        self._submitted: list[QueuedJob] = []  # jobs still to be inserted
        self._impossible: list[QueuedJob] = []  # jobs that windows let start at no time, unless others leave earlier
        self._nodes_freed = False  # whether a job has ended early since the last *remove*

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Remove jobs that have ended, insert the submitted jobs, start those that are due."""
        now = view.now
        ended, submitted, alarm_rang, requeued, failed, repaired, _ = batch
        if alarm_rang:
            self._alarm = None
        self._nodes_freed |= self._running.catch_up(ended, now, failed, repaired)
        for gang in ended:
            self._over_quota.ended(gang.job, now - gang.start)
        arrivals = [*submitted, *requeued]
        if len(arrivals) > 1:
            arrivals.sort(key=lambda job: job.queue_order)
        self._submitted += arrivals
        late = self._running.overrunning(now, view.running)
        if failed or (late and (not self._extend_unfinished or any(number not in view.running for number in late))):
            self._delay(late, failed, now)  # nodes are down, or longer than expected, or jobs run on
        elif kills := [number for number in late if not self._extend(number, view)]:
            # The policy is called again at the current time, when their nodes are idle.
            return [Kill(job=view.running[number].job) for number in kills]
        if self._nodes_freed and self.plan:
            self.remove(now)
        decisions = self.tick(view)
        jobs = self._impossible + [job for job in self._submitted if not self._over_quota.admit(job, now)]
        self._impossible = []
        for job in jobs:
            reservation = self.insert(job, now)
            if reservation is None:
                self._impossible.append(job)
                continue
            if reservation.start > now:
                decisions.append(Reserve(job=job, start=reservation.latest))
            decisions += self.tick(view)
        if self._over_quota:
            decisions += self._start_over_quota(view)
        if (alarm := self._next_alarm()) != self._alarm:
            self._alarm = alarm
            decisions.append(WakeAt(time=alarm))
        self._nodes_freed = False
        self._submitted.clear()
        return decisions

    def _next_alarm(self) -> int | None:
        alarm = self.plan[0].start if self.plan else None
        others = self._over_quota.starts() if self._over_quota else []
        if self._extend_unfinished and (end := self._running.next_end()) is not None:
            others.append(end)
        for time in others:
            if alarm is None or time < alarm:
                alarm = time
        return alarm

    def insert(self, job: QueuedJob, now: int) -> SlackReservation | None:
        """Put a submitted job into the plan by the cheapest schedule, then fix its priority and slack; ``None`` if windows
        let it start at no time.
        """
        awt_s = self._awt_s(job)
        user, political = self._user_priority(job), self._political_priority(job)
        start, split = self._place(job, now, self._favour(user, political))
        if start < 0:
            return None
        # Only now is it known how long the job will wait.  This is done once (section 4.3).
        p = pricing.priority(user, political, pricing.scheduler_priority(to_seconds(start - now), awt_s))
        slack = to_ticks(pricing.initial_slack(p, self._slack_factor, awt_s))
        inserted = self._reservation(job, start, split, p, slack)
        insort(self.plan, inserted, key=by_start)
        return inserted

    def _awt_s(self, job: QueuedJob) -> float:
        for largest, seconds in self._average_waits:
            if job.nodes <= largest:
                return seconds
        raise AssertionError("the largest class has all nodes of the machine")

    def tick(self, view: View) -> list[Decision]:
        """Start the jobs whose reserved time has come."""
        due = 0
        while due < len(self.plan) and self.plan[due].start <= view.now:
            due += 1
        starting = self.plan[:due]
        del self.plan[:due]
        return [self._start_reserved(reservation, view) for reservation in starting]

    def _extend(self, number: int, view: View) -> bool:
        """Extend an unfinished job by a tenth of its estimate if that is cheaper than killing it (section 4.7)."""
        # The extension is priced like an arriving job, with SP 1/2: that of the job may be 0, and no price is divided by 0.
        job, now = view.running[number].job, view.now
        length = max(1, round(EXTENSION * job.estimate))
        best = self._longer(job, length, now, self._favour(self._user_priority(job), self._political_priority(job)))
        # What is lost when it is killed is priced like a wait of its estimate.
        if best is None or best.price >= pricing.price_of_start(job.nodes, to_seconds(job.estimate), self._weights):
            return False
        if job.id in self._over_quota.running and any(start > reservation.start for reservation, start in best.starts):
            return False
        self._carry_out(best)
        self._running.note_prolongation(job.id, now + length)
        return True

    def _favour(self, user: float, political: float) -> float:
        return pricing.favour(pricing.priority(user, political, FIRST_SP), self._weights)

    def _carry_out(self, schedule: Priced) -> None:
        if schedule.starts:
            for reservation, start in schedule.starts:
                reservation.move_to(start, self._weights)
            self.plan.sort(key=by_start)

    def _reason(self, job: QueuedJob, view: View) -> Reason:
        reserved = {reservation.job.id: reservation.start for reservation in self._rivals_of(job)}
        holder = next((waiting for waiting in view.waiting.values() if waiting.id in reserved), None)
        rule = "backfilled: its reserved time has come, in the cheapest schedule that keeps every job's bound"
        if job.id in self._over_quota.running:
            rule = "over quota: it takes nodes that no reservation needs"
        elif holder is None or (job.submit, job.id) < (holder.submit, holder.id):
            return Reason("its reserved time has come, and no job within quota has waited longer", reserved=view.now)
        if holder is None:
            return Reason(rule, reserved=view.now)
        return Reason(rule, holder=holder.id, shadow=reserved[holder.id], reserved=view.now)

    @abstractmethod
    def remove(self, now: int) -> None:
        """Look for a cheaper schedule after jobs ended early, as if a job were inserted that takes no time and no nodes."""

    @abstractmethod
    def _place(self, job: QueuedJob, now: int, favour: float) -> tuple[int, Split]:
        """Return when a submitted job starts in the cheapest schedule, which is carried out, and what it has of each pool.

        The start is -1 if windows let it start at no time.
        """

    @abstractmethod
    def _reservation(self, job: QueuedJob, start: int, split: Split, p: float, slack: int) -> SlackReservation:
        """Return the reservation of a job that has been placed."""

    @abstractmethod
    def _longer(self, job: QueuedJob, length: int, now: int, favour: float) -> Priced | None:
        """Return the cheapest schedule in which a running job keeps its nodes for longer."""

    @abstractmethod
    def _delay(self, late: list[int], failed: Sequence[Outage], now: int) -> None:
        """Place the waiting jobs again around late jobs and nodes that are down, beyond their bounds if need be."""

    @abstractmethod
    def _start_reserved(self, reservation: SlackReservation, view: View) -> Start:
        """Start a job in its reservation."""

    @abstractmethod
    def _start_over_quota(self, view: View) -> list[Start]:
        """Start the jobs over quota that fit now, behind all reservations."""

    @abstractmethod
    def _rivals_of(self, job: QueuedJob) -> Sequence[SlackReservation]:
        """Return the reservations of the jobs that may have the same nodes as a job."""


class WholeMachineRun(SlackRun):
    """Slack-based backfilling where each job may have all nodes; ``may_overrun``: beyond its estimate."""

    def __init__(self, policy: Slack, setup: Setup, *, may_overrun: bool) -> None:
        self.profile = RunningProfile(setup.nodes, may_overrun=may_overrun)
        self._is_tested = True  # each job was at its earliest possible start, but for the releases that are noted since then
        super().__init__(policy, setup, self.profile)

    def _place(self, job: QueuedJob, now: int, favour: float) -> tuple[int, Split]:
        plan, profile = self.plan, self.profile
        if not plan:
            self._settle()
            return profile.book(job.nodes, job.estimate), ()
        best = self._search(now, ArrivingJob(job.nodes, job.estimate, favour))
        assert best is not None, "the slot after the last reservation moves no job"
        self._carry_out(best)
        if self._compression == SHIFT or profile.earlier(job.nodes, job.estimate, best.slot, 0) < best.slot:
            self._is_tested = False
        return best.slot, ()

    def _reservation(self, job: QueuedJob, start: int, split: Split, p: float, slack: int) -> SlackReservation:
        return SlackReservation(job, start, p, slack, self._weights)

    def remove(self, now: int) -> None:
        best = self._search(now, None)
        is_better = best is not None and best.price < 0
        if best is None or (best.slot == self.plan[0].start and (is_better or not best.starts)):  # all jobs have been tested
            self._settle()
        if best is not None and is_better:
            self._carry_out(best)

    def _settle(self) -> None:
        """Note that no job can start earlier while the others keep their places."""
        self.profile.forget_releases()
        self._is_tested = True

    def movable_sizes(self) -> tuple[int, int]:
        """Return the least and the largest size of a job that may start earlier while the others keep their places."""
        return self.profile.gaining_sizes() if self._is_tested else (0, self.profile.nodes)

    def _search(self, now: int, arriving: ArrivingJob | None, slots: list[int] | None = None) -> Schedule | None:
        search = Search(self.profile, self.plan, self._weights, now, arriving)
        if self._rank is None:
            return search.optimal(slots)
        in_order = self._rank is by_start
        ranked = self.plan if in_order else sorted(self.plan, key=self._rank)
        # In the order of the starts, one by one is the same as all at once, and less work.
        if arriving is None and (in_order or self._compression != AFRESH):
            return search.cheapest_in_place(ranked, self.movable_sizes())
        if arriving is not None and self._compression == SHIFT:
            return search.cheapest_shifted(slots, ranked)
        if not in_order:
            return search.cheapest(slots, ranked)
        unsettled = search.unsettled(self.movable_sizes())
        if not unsettled:
            self._settle()
        return search.cheapest(slots, None, unsettled)

    def _carry_out(self, schedule: Priced) -> None:
        assert isinstance(schedule, Schedule)
        self.profile.take_steps_of(schedule.profile)
        for reservation, _ in schedule.starts:
            self.profile.note_release(reservation.end, reservation.nodes)
        SlackRun._carry_out(self, schedule)

    def _longer(self, job: QueuedJob, length: int, now: int, favour: float) -> Priced | None:
        return self._search(now, ArrivingJob(job.nodes, length, favour), [now])

    def _delay(self, late: list[int], failed: Sequence[Outage], now: int) -> None:
        profile = self.profile
        for reservation in self.plan:
            profile.release(reservation.start, reservation.end, reservation.nodes)
        profile.extend(late, now, lambda _, ticks: as_late_again(ticks))
        for reservation in self.plan:
            reservation.move_to(profile.book(reservation.nodes, reservation.length), self._weights)
        self.plan.sort(key=by_start)

    def _start_reserved(self, reservation: SlackReservation, view: View) -> Start:
        return self._start(view.waiting[reservation.job.id], view)

    def _start_over_quota(self, view: View) -> list[Start]:
        now, trial = view.now, self.profile.copy()
        starting = self._over_quota.plan(lambda job: trial.book(job.nodes, job.estimate), now)
        for job in starting:
            self.profile.reserve(now, now + job.estimate, job.nodes)
        return [self._start(job, view) for job in starting]

    def _start(self, job: QueuedJob, view: View) -> Start:
        self.profile.note_start(job.id, job.nodes, view.now + job.estimate)
        return Start(job=job, reason=self._reason(job, view) if self._explain else None)

    def _rivals_of(self, job: QueuedJob) -> Sequence[SlackReservation]:
        return self.plan


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
        return bool(self._limits) and any(self.used[key] > limit for key in keys if (limit := self._limit(*key)) is not None)

    def _charge(self, job: QueuedJob, ticks: int) -> None:
        if not self._limits:
            return
        self.used["user", job.user] += job.nodes * ticks
        self.used["group", job.group] += job.nodes * ticks

    def _limit(self, kind: str, number: int) -> int | None:
        limits = self._limits.get(kind)
        if isinstance(limits, Mapping):
            limits = limits.get(number)
        elif number == _UNKNOWN:
            return None
        return None if limits is None or limits * TICKS_PER_SECOND == inf else to_ticks(limits)  # no job uses that much

    def plan(self, book: Callable[[QueuedJob], int], now: int) -> list[QueuedJob]:
        """Plan the waiting jobs by ``book``, which returns their earliest starts; return those that start now."""
        starting = []
        for job, _ in list(self._waiting.values()):
            start = book(job)
            if start == now:
                del self._waiting[job.id]
                self.running.add(job.id)
                starting.append(job)
            else:
                self._waiting[job.id] = (job, start)
        return starting

    def starts(self) -> list[int]:
        """Return the planned starts of the waiting jobs, ticks; not of those that windows let start at no time."""
        return [start for _, start in self._waiting.values() if start >= 0]

    def forget(self, job: QueuedJob) -> None:
        """Note that a waiting job has left the queue without having run."""
        self._waiting.pop(job.id, None)
        self._charge(job, -job.estimate)

    def waiting(self) -> list[QueuedJob]:
        return [job for job, _ in self._waiting.values()]
