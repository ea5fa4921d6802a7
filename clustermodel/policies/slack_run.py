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

from clustermodel.plans import slack_prices as pricing
from clustermodel.plans.by_node import IdleProcessors
from clustermodel.plans.pool_plans import Group, IdlePools, RunningPlan
from clustermodel.plans.pools import Split
from clustermodel.plans.slack_prices import FIRST_SP, ArrivingJob, Schedule, SlackReservation, Weights, by_start
from clustermodel.plans.slack_search import Search
from clustermodel.plans.trials import Trials
from clustermodel.policies.interface import Decision, Kill, Reason, Reserve, Setup, Start, WakeAt
from clustermodel.policies.predictors import as_late_again, holds_longer
from clustermodel.policies.view import Batch, Outage, QueuedJob, View
from clustermodel.ticks import TICKS_PER_SECOND, to_seconds, to_ticks

if TYPE_CHECKING:
    from clustermodel.policies.slack import Quotas, Slack

PriorityOf = Callable[[QueuedJob], float]  # gives a job's user or political priority, a number in [0, 1]
Idle = Callable[[View], IdlePools | IdleProcessors]  # gives the idle nodes, from which those of jobs that start are taken
AFRESH, SHIFT, IN_PLACE = COMPRESSIONS = "afresh", "shift", "in-place"
"""How the waiting jobs from a slot on are moved: see :class:`~clustermodel.policies.slack.Slack`."""
Limits = Mapping[int, float] | float | None
Classes = tuple[tuple[float, float], ...]
"""Average wait times by size: (largest number of nodes, seconds), ascending."""
_UNKNOWN: Final = -1  # the number of an unknown user or group
EXTENSION: Final = 0.1  # share of its estimate by which an unfinished job is extended (section 4.7)


class SlackRun:
    """One run of slack-based backfilling over an empty plan; ``idle``: where decisions name the nodes on which jobs start."""

    # A search moves only waiting jobs that compete for nodes with the arriving one, perhaps through others: partitions that
    # share no node are machines of their own.

    def __init__(self, policy: Slack, setup: Setup, plan: RunningPlan, idle: Idle | None) -> None:
        self._rank: Callable[[SlackReservation], Any] | None = pricing.HEURISTICS[policy.heuristic]
        self._slack_factor = float(policy.slack_factor)
        self._compression = policy.compression
        self._average_waits: Classes = policy.average_waits
        self._weights: Weights = policy.weights
        self._user_priority: PriorityOf = policy.priority("user_priority")
        self._political_priority: PriorityOf = policy.priority("political_priority")
        self._extend_unfinished, self._explain = policy.extend_unfinished, setup.explain
        self.plan: RunningPlan = plan  # the running jobs, and the reservations
        self.reservations: list[SlackReservation] = []  # of the waiting jobs within quota, the earliest start first
        self._over_quota = OverQuota(policy.quotas)
        # Windows bar a job for as long as it can be expected to hold its nodes; its start-up and epilog always count.
        self._holding = setup.holding if setup.machine.windows or holds_longer(setup) else None
        self._idle_of = idle
        self._idle: IdlePools | IdleProcessors | None = None  # in a scheduling cycle, once a job starts
        self._alarm: int | None = None
        self._submitted: list[QueuedJob] = []  # jobs still to be inserted
        self._impossible: list[QueuedJob] = []  # jobs that windows let start at no time, unless others leave earlier
        self._nodes_freed = False  # whether a job has ended early since the last *remove*
        self._clock = 0  # of the last *remove*

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Remove jobs that have ended, insert the submitted jobs, start those that are due."""
        now = view.now
        ended, submitted, alarm_rang, requeued, failed, repaired, _ = batch
        self._idle = None
        if alarm_rang:
            self._alarm = None
        if batch.reservations:
            self._forget_rejected(view)
        self._nodes_freed |= self.plan.catch_up(ended, now, failed, repaired)
        for gang in ended:
            self._over_quota.ended(gang.job, now - gang.start)
        arrivals = [*submitted, *requeued]
        if len(arrivals) > 1:
            arrivals.sort(key=lambda job: job.queue_order)
        self._submitted += arrivals
        late = self.plan.overrunning(now, view.running)
        if failed or (late and (not self._extend_unfinished or any(number not in view.running for number in late))):
            self._delay(late, failed, now)  # nodes are down, or longer than expected, or jobs run on
        elif kills := [number for number in late if not self._extend(number, view)]:
            # The policy is called again at the current time, when their nodes are idle.
            return [Kill(job=view.running[number].job) for number in kills]
        if self._nodes_freed and self.reservations:
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
        self._nodes_freed, self._clock = False, self.plan.clock
        self._submitted.clear()
        return decisions

    def _forget_rejected(self, view: View) -> None:
        """Forget jobs that have missed their last chance."""
        waiting, reservations = view.waiting, self.reservations
        for job in [reservation.job for reservation in reservations] + self._impossible + self._over_quota.waiting():
            if job.id not in waiting:
                self._over_quota.forget(job)
        for reservation in reservations:
            if reservation.job.id not in waiting:
                self.plan.release(reservation.start, reservation.length, reservation.split)
                self.plan.note_freed(reservation.split)
                self._nodes_freed = True
        self.reservations = [reservation for reservation in reservations if reservation.job.id in waiting]
        self._impossible = [job for job in self._impossible if job.id in waiting]

    def _next_alarm(self) -> int | None:
        alarm = self.reservations[0].start if self.reservations else None
        others = self._over_quota.starts() if self._over_quota else []
        if self._extend_unfinished and (end := self.plan.next_end()) is not None:
            others.append(end)
        for time in others:
            if alarm is None or time < alarm:
                alarm = time
        return alarm

    def insert(self, job: QueuedJob, now: int) -> SlackReservation | None:
        """Put a submitted job into the plan by the cheapest schedule, then fix its priority and slack; ``None`` if windows
        let it start at no time.
        """
        awt_s, group, length = self._awt_s(job), self.plan.group_of(job), self._length(job)
        user, political = self._user_priority(job), self._political_priority(job)
        start, split = self._place(job, group, length, now, self._favour(user, political))
        if start < 0:
            return None
        # Only now is it known how long the job will wait.  This is done once (section 4.3).
        p = pricing.priority(user, political, pricing.scheduler_priority(to_seconds(start - now), awt_s))
        slack = to_ticks(pricing.initial_slack(p, self._slack_factor, awt_s))
        inserted = SlackReservation(job, group, (start, split), length, p, slack, self._weights)
        insort(self.reservations, inserted, key=by_start)
        return inserted

    def _awt_s(self, job: QueuedJob) -> float:
        for largest, seconds in self._average_waits:
            if job.nodes <= largest:
                return seconds
        raise AssertionError("the largest class has all nodes of the machine")

    def _length(self, job: QueuedJob) -> int:
        """Return for how long a job is expected to hold its nodes."""
        return job.estimate if self._holding is None else self._holding(job, job.estimate)

    def _place(self, job: QueuedJob, group: Group, length: int, now: int, favour: float) -> tuple[int, Split]:
        """Return when a submitted job starts in the cheapest schedule, which is carried out, and what it has then.

        The start is -1 if windows let it start at no time.
        """
        rivals = self.plan.competing(group.allowed, self.reservations)
        if rivals:
            trials = self.plan.trials(rivals, ArrivingJob(job, group, length, favour), now)
            if (best := self._cheapest(trials)) is not None:
                self._carry_out(trials, best)
                return best.slot, best.split
        start, split = self.plan.earliest(length, job, group)
        if start >= 0:
            self.plan.reserve(start, length, split)
        return start, split

    def remove(self, now: int) -> None:
        """Look for a cheaper schedule after jobs ended early, as if a job were inserted that takes no time and no nodes."""
        left: Sequence[SlackReservation] = self.reservations
        while left:
            rivals = self.plan.competing(left[0].group.allowed, left)
            if rivals is left or len(rivals) == len(left):
                left = ()
            else:
                competing = {reservation.group for reservation in rivals}
                left = [reservation for reservation in left if reservation.group not in competing]
            for reservation in rivals:
                if self.plan.freed_since(self._clock, reservation.group):
                    self._compress(rivals, now)
                    break

    def _compress(self, rivals: Sequence[SlackReservation], now: int) -> None:
        trials = self.plan.trials(rivals, None, now)
        best = self._cheapest(trials)
        if best is not None and best.price < 0:
            self._carry_out(trials, best)

    def _cheapest(self, trials: Trials, slots: list[int] | None = None) -> Schedule | None:
        search = Search(trials, self._weights)
        if self._rank is None:
            return search.optimal(slots)
        in_order = self._rank is by_start
        ranked = trials.jobs if in_order else sorted(trials.jobs, key=self._rank)
        # Where nodes are alike, in the order of the starts, one by one is the same as all at once, and less work.
        if trials.arriving is None and (self._compression != AFRESH or (in_order and trials.alike)):
            return search.cheapest_in_place(ranked)
        if trials.arriving is not None and self._compression == SHIFT:
            return search.cheapest_shifted(slots, ranked)
        return search.cheapest(slots, None if in_order else ranked)

    def _carry_out(self, trials: Trials, schedule: Schedule) -> None:
        trials.carry_out(schedule)
        if schedule.starts:
            for reservation, start in schedule.starts:
                reservation.move_to(start, self._weights)
            self.reservations.sort(key=by_start)

    def tick(self, view: View) -> list[Decision]:
        """Start the jobs whose reserved time has come."""
        due = 0
        while due < len(self.reservations) and self.reservations[due].start <= view.now:
            due += 1
        starting = self.reservations[:due]
        del self.reservations[:due]
        return [self._start(view.waiting[each.job.id], each.length, each.split, view) for each in starting]

    def _start(self, job: QueuedJob, length: int, split: Split, view: View) -> Start:
        """Start a job whose nodes are subtracted from the plan already."""
        self.plan.note_start(job.id, split, view.now + length)
        reason = self._reason(job, view) if self._explain else None
        if self._idle_of is None:
            return Start(job=job, reason=reason)
        if self._idle is None:
            self._idle = self._idle_of(view)
        return Start(job=job, columns=self._idle.take_split(split), reason=reason)

    def _start_over_quota(self, view: View) -> list[Start]:
        """Start the jobs over quota that fit now, behind all reservations."""
        plan, splits = self.plan, dict[int, Split]()
        for job in self._over_quota.waiting():
            plan.group_of(job)  # before a copy is made, which has something of each group
        before = plan.steps()

        def book(job: QueuedJob) -> int:
            length = self._length(job)
            start, split = plan.earliest(length, job, plan.group_of(job))
            if start >= 0:
                plan.reserve(start, length, split)
                splits[job.id] = split
            return start

        starting = self._over_quota.plan(book, view.now)
        plan.take_steps(before)
        for job in starting:
            plan.reserve(view.now, self._length(job), splits[job.id])
        return [self._start(job, self._length(job), splits[job.id], view) for job in starting]

    def _extend(self, number: int, view: View) -> bool:
        """Extend an unfinished job by a tenth of its estimate if that is cheaper than killing it (section 4.7)."""
        # The extension is priced like an arriving job, with SP 1/2: that of the job may be 0, and no price is divided by 0.
        job, now, plan = view.running[number].job, view.now, self.plan
        length, split = max(1, round(EXTENSION * job.estimate)), plan.split_held(number)
        favour = self._favour(self._user_priority(job), self._political_priority(job))
        rivals = plan.competing(plan.nodes_of(split), self.reservations)
        trials = plan.trials(rivals, ArrivingJob(job, plan.group_of(job), length, favour, split), now)
        best = self._cheapest(trials, [now])
        # What is lost when it is killed is priced like a wait of its estimate.
        if best is None or best.price >= pricing.price_of_start(job.nodes, to_seconds(job.estimate), self._weights):
            return False
        if job.id in self._over_quota.running and any(start > reservation.start for reservation, start in best.starts):
            return False
        self._carry_out(trials, best)
        plan.note_prolongation(job.id, now + length)
        return True

    def _delay(self, late: list[int], failed: Sequence[Outage], now: int) -> None:
        """Place the waiting jobs again around late jobs and nodes that are down, beyond their bounds if need be."""
        plan, nodes = self.plan, 0
        for outage in failed:
            nodes |= plan.nodes_of(plan.split_of((outage.node, outage.node + 1)))
        for number in late:
            nodes |= plan.nodes_of(plan.split_held(number))
        moved = list(plan.competing(nodes, self.reservations))
        for reservation in moved:
            plan.release(reservation.start, reservation.length, reservation.split)
        plan.extend(late, now, lambda _, ticks: as_late_again(ticks))
        for reservation in moved:
            start, split = plan.earliest(reservation.length, reservation.job, reservation.group)
            if start < 0:
                self.reservations.remove(reservation)
                self._impossible.append(reservation.job)
            else:
                plan.reserve(start, reservation.length, split)
                reservation.split = split
                reservation.move_to(start, self._weights)
        self.reservations.sort(key=by_start)

    def _favour(self, user: float, political: float) -> float:
        return pricing.favour(pricing.priority(user, political, FIRST_SP), self._weights)

    def _reason(self, job: QueuedJob, view: View) -> Reason:
        allowed = self.plan.group_of(job).allowed
        reserved = {each.job.id: each.start for each in self.reservations if each.group.allowed & allowed}
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
