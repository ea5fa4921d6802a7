"""One run of slack-based backfilling where jobs may differ in the nodes that they may have, or in how these must lie.

A search takes out only waiting jobs that compete for nodes with the arriving one, perhaps through others, and tries the starts
and ends of these and of the running jobs on their nodes.  So partitions that share no node are machines of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, cast

from clustermodel.plans.by_node import IdleProcessors
from clustermodel.plans.make import idle_now, nodes_of, plan_of, pools_of
from clustermodel.plans.pool_plans import Group, IdleNodes, IdlePools, RunningPlan
from clustermodel.plans.pools import Split
from clustermodel.plans.slack_in_pools import PoolArrival, PoolReservation, PoolSchedule, PoolSearch
from clustermodel.plans.slack_prices import Priced, SlackReservation, by_start
from clustermodel.plans.windows import candidates
from clustermodel.policies.interface import Decision, Setup, Start
from clustermodel.policies.predictors import as_late_again, holds_longer
from clustermodel.policies.slack_run import AFRESH, SHIFT, SlackRun
from clustermodel.policies.view import Batch, Outage, QueuedJob, View
from clustermodel.ticks import NEVER

if TYPE_CHECKING:
    from clustermodel.policies.slack import Slack


class PoolSlackRun(SlackRun):
    """Slack-based backfilling over pools of nodes, or by node."""

    def __init__(self, policy: Slack, setup: Setup, *, may_overrun: bool) -> None:
        self._pools, self._nodes = pools_of(setup), nodes_of(setup)
        self._profile: RunningPlan = plan_of(self._pools, self._nodes, may_overrun=may_overrun)
        super().__init__(policy, setup, self._profile)
        # Windows bar a job for as long as it can be expected to hold its nodes; its start-up and epilog always count.
        self._holding = setup.holding if setup.machine.windows or holds_longer(setup) else None
        self._idle: IdleNodes | IdlePools | IdleProcessors | None = None  # in a scheduling cycle, once a job starts
        self._clock = 0  # of the last *remove*

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        self._idle = None
        for job in batch.submitted:
            self._group(job)  # before copies of the plan are made, which have something of each group
        if batch.reservations:
            self._forget_rejected(view)
        decisions = super().decide(batch, view)
        if not self._nodes_freed:
            self._clock = self._profile.clock
        return decisions

    def _forget_rejected(self, view: View) -> None:
        """Forget jobs that have missed their last chance."""
        waiting = view.waiting
        jobs = [reservation.job for reservation in self.plan] + self._impossible + self._over_quota.waiting()
        for job in jobs:
            if job.id not in waiting:
                self._over_quota.forget(job)
        for reservation in self._planned():
            if reservation.job.id not in waiting:
                self._profile.release(reservation.start, reservation.length, reservation.split)
                self._profile.note_freed(reservation.split)
                self._nodes_freed = True
        self.plan = [reservation for reservation in self.plan if reservation.job.id in waiting]
        self._impossible = [job for job in self._impossible if job.id in waiting]

    def _planned(self) -> list[PoolReservation]:
        return cast("list[PoolReservation]", self.plan)

    def _group(self, job: QueuedJob) -> Group:
        return self._profile.group_of(job)

    def _length(self, job: QueuedJob) -> int:
        return job.estimate if self._holding is None else self._holding(job, job.estimate)

    def _competing(self, nodes: int) -> tuple[int, list[PoolReservation]]:
        """Return the waiting jobs that compete for some nodes, perhaps through others, after the nodes of all these."""
        before = 0
        while before != nodes:
            before = nodes
            for group in {reservation.group for reservation in self._planned()}:
                if group.allowed & nodes:
                    nodes |= group.allowed
        return nodes, [reservation for reservation in self._planned() if reservation.group.allowed & nodes]

    def _place(self, job: QueuedJob, now: int, favour: float) -> tuple[int, Split]:
        profile, group, length = self._profile, self._group(job), self._length(job)
        in_gap = profile.earliest(length, job, group)  # without moving any job
        nodes, rivals = self._competing(group.allowed)
        if rivals:
            slots = {now, *profile.ends(nodes)}
            for reservation in rivals:
                slots.add(reservation.start)
                slots.add(reservation.end)
            last = in_gap[0] if in_gap[0] >= 0 else max(slot for slot in slots if slot < NEVER)
            slots.update(takewhile(lambda end: end <= last, candidates([now], group.windows, last, length)))
            best = self._search(now, PoolArrival(job, group, length, favour, None), rivals, sorted(slots))
            if best is not None:
                self._carry_out(best)
                return best.slot, best.split
        start, split = in_gap
        if start >= 0:
            profile.reserve(start, length, split)
        return start, split

    def _reservation(self, job: QueuedJob, start: int, split: Split, p: float, slack: int) -> SlackReservation:
        return PoolReservation(job, (start, split), self._length(job), self._group(job), p, slack, self._weights)

    def remove(self, now: int) -> None:
        left = self._planned()
        while left:
            nodes, _ = self._competing(left[0].group.allowed)
            rivals = [reservation for reservation in left if reservation.group.allowed & nodes]
            left = [reservation for reservation in left if not reservation.group.allowed & nodes]
            if any(self._profile.freed_since(self._clock, reservation.group) for reservation in rivals):
                best = self._search(now, None, rivals, sorted({reservation.start for reservation in rivals}))
                if best is not None and best.price < 0:
                    self._carry_out(best)

    def _search(
        self, now: int, arriving: PoolArrival | None, rivals: Sequence[PoolReservation], slots: Sequence[int]
    ) -> PoolSchedule | None:
        search = PoolSearch(self._profile, rivals, self._weights, now, arriving)
        if self._rank is None:
            return search.optimal(slots)
        ranked = rivals if self._rank is by_start else sorted(rivals, key=self._rank)
        if arriving is None and self._compression != AFRESH:
            return search.cheapest_in_place(slots, ranked)
        if arriving is not None and self._compression == SHIFT:
            return search.cheapest_shifted(slots, ranked)
        return search.cheapest(slots, ranked)

    def _carry_out(self, schedule: Priced) -> None:
        assert isinstance(schedule, PoolSchedule)
        self._profile.take_steps(schedule.steps)
        for reservation, split in schedule.splits:
            reservation.split = split
        super()._carry_out(schedule)

    def _longer(self, job: QueuedJob, length: int, now: int, favour: float) -> Priced | None:
        split = self._profile.split_held(job.id)
        _, rivals = self._competing(self._profile.nodes_of(split))
        return self._search(now, PoolArrival(job, self._group(job), length, favour, split), rivals, [now])

    def _delay(self, late: list[int], failed: Sequence[Outage], now: int) -> None:
        profile, nodes = self._profile, 0
        for outage in failed:
            nodes |= profile.nodes_of(profile.split_of((outage.node, outage.node + 1)))
        for number in late:
            nodes |= profile.nodes_of(profile.split_held(number))
        _, moved = self._competing(nodes)
        for reservation in moved:
            profile.release(reservation.start, reservation.length, reservation.split)
        profile.extend(late, now, lambda _, ticks: as_late_again(ticks))
        for reservation in moved:
            start, split = profile.earliest(reservation.length, reservation.job, reservation.group)
            if start < 0:
                self.plan.remove(reservation)
                self._impossible.append(reservation.job)
            else:
                profile.reserve(start, reservation.length, split)
                reservation.split = split
                reservation.move_to(start, self._weights)
        self.plan.sort(key=by_start)

    def _start_reserved(self, reservation: SlackReservation, view: View) -> Start:
        assert isinstance(reservation, PoolReservation)
        return self._start(view.waiting[reservation.job.id], reservation.length, reservation.split, view)

    def _start_over_quota(self, view: View) -> list[Start]:
        profile, before, splits = self._profile, self._profile.steps(), dict[int, Split]()

        def book(job: QueuedJob) -> int:
            length = self._length(job)
            start, split = profile.earliest(length, job, self._group(job))
            if start >= 0:
                profile.reserve(start, length, split)
                splits[job.id] = split
            return start

        starting = self._over_quota.plan(book, view.now)
        profile.take_steps(before)
        for job in starting:
            profile.reserve(view.now, self._length(job), splits[job.id])
        return [self._start(job, self._length(job), splits[job.id], view) for job in starting]

    def _start(self, job: QueuedJob, length: int, split: Split, view: View) -> Start:
        if self._idle is None:
            self._idle = idle_now(self._pools, self._nodes, view, planned=True)
        self._profile.note_start(job.id, split, view.now + length)
        reason = self._reason(job, view) if self._explain else None
        return Start(job=job, columns=self._idle.take_split(split), reason=reason)

    def _rivals_of(self, job: QueuedJob) -> Sequence[SlackReservation]:
        allowed = self._group(job).allowed
        return [reservation for reservation in self._planned() if reservation.group.allowed & allowed]
