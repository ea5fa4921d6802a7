"""EASY backfilling: the first blocked jobs hold reservations (Talby & Feitelson 1999, section 3.1).

With one reservation, its start is the *shadow time*, when the running jobs are expected to have freed enough nodes; the nodes
left over then are the *extra nodes*.  A later job is backfilled if it fits now and (1) will complete by the shadow time, or
(2) needs no more than the extra nodes.  Both say that it fits into what is free beside the running jobs and the reservation.
Where jobs may have different nodes, the first blocked jobs of each set of eligible nodes hold reservations, so that no
partition's first job is delayed for those of another one.

Whether predictions have expired is checked when a job arrives or completes, without an alarm, so a protected job can miss its
reservation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from clustermodel.plans.pool_plans import Reservation, RunningPlan
from clustermodel.policies.interface import Reason
from clustermodel.policies.view import QueuedJob

if TYPE_CHECKING:
    from clustermodel.policies.backfilling.cycle import SchedulingCycle

BackfillOrder = Callable[[QueuedJob, int], Any]
"""Sorting key of the backfill candidates, given the job and the present in ticks; the smallest comes first."""


class HeadRun:
    """One run in which ``depth`` blocked jobs hold reservations, those behind them in this ``order``, by default of the queue.

    Reservations move up when jobs end early; ``kept`` ones do not, unless the job can start now.
    """

    def __init__(self, depth: int, order: BackfillOrder | None, *, kept: bool) -> None:
        self.depth, self._order, self._kept = depth, order, kept
        self._kept_starts: dict[int, int] = {}  # by job id

    def schedule(self, current: SchedulingCycle) -> None:
        """Move reservations to earlier starts, start what fits, reserve for what is blocked."""
        run, plan, now, batch = current.run, current.plan, current.now, current.batch
        submitted, one_by_one = batch.submitted, run.setup.one_by_one
        candidates: Iterable[QueuedJob] = current.view.waiting.values() if run.sorter.is_queue_order else current.queue
        frees = bool(batch.ended or batch.repaired)
        if plan.reserved and not current.is_replanned:
            if plan.next_start() < now or (submitted and self._overtaken(current)):
                # A reserved start is missed where jobs have overrun.
                plan.freed = -1  # of all
                for job_id in list(plan.reserved):
                    plan.drop(job_id)
            elif current.nodes_freed or batch.reservations or (frees and self._kept):
                self._renew(current)
            elif not (frees or batch.alarm or one_by_one):
                candidates = submitted  # no nodes have become free, so that no job that waited before can start
        if one_by_one and submitted and self._makes_no_cycle(current, submitted[0]):
            return
        if plan.next_start() <= now:
            due = self._start_due(current)
            candidates = [job for job in candidates if job.id not in due]
        plan.open_groups(submitted, all_of_them=run.reconsiders or batch.alarm)
        self._fill(current, iter(candidates))

    def _fill(self, current: SchedulingCycle, queue: Iterator[QueuedJob]) -> None:
        """Start jobs that fit, and reserve for those that are blocked."""
        run, plan, now, order, depth = current.run, current.plan, current.now, self._order, self.depth
        rest: list[QueuedJob] | None = None if order is None else []
        length_of = run.lengths.of
        while True:
            found = plan.next_of(queue, length_of, depth, rest)
            if found is None:
                if not rest or order is None:
                    return
                queue, rest = iter(sorted(rest, key=lambda job: order(job, now))), None
                continue
            job, split = found
            if split is not None:
                reason, length = self._reason(current, job) if run.explain else None, length_of(job)
                plan.start(job.id, split, now, length)
                current.commit(job, job.nodes, split, reason)
            elif (start := self._reserve(current, job)) >= 0:
                current.guarantee(job, start)

    def _reserve(self, current: SchedulingCycle, job: QueuedJob) -> int:
        """Reserve the earliest start of a job, or that which it keeps, and return it; -1 if windows let it start at no time."""
        plan, length, group = current.plan, current.run.lengths.of(job), current.plan.group(job)
        kept = self._kept_starts.get(job.id, 0) if self._kept else 0
        if kept > current.now and (split := plan.split(kept, length, job, group)) is not None:
            plan.keep(job.id, Reservation(kept, length, job.nodes, split, group, plan.clock))
            return kept
        start = plan.place(job, length, group)
        if self._kept and start >= 0:
            self._kept_starts[job.id] = start
        return start

    def _renew(self, current: SchedulingCycle) -> None:
        """Move reservations to earlier starts, or kept ones to the present; announce those moved to a later time than that."""
        plan, now, waiting = current.plan, current.now, current.view.waiting
        jobs = [waiting[job_id] for job_id in plan.reserved]
        if len(jobs) > 1:
            jobs = list(current.run.sorter.sort(sorted(jobs, key=lambda job: job.queue_order), now))
        if not self._kept:
            for job in plan.compress(jobs, windows_change=current.batch.reservations):
                if (start := plan.reserved[job.id].start) > now:
                    current.guarantee(job, start)
            return
        for job in jobs:
            start, length, _, split, group, _ = plan.reserved[job.id]
            plan.release(start, length, split)
            at_once = plan.split(now, length, job, group)
            plan.move(job.id, start if at_once is None else now, split if at_once is None else at_once)

    def _overtaken(self, current: SchedulingCycle) -> bool:
        """Return whether a submitted job comes before one that holds one of few reservations, and may have nodes of its."""
        plan, waiting, submitted = current.plan, current.view.waiting, current.batch.submitted
        first = submitted[0].queue_order
        for job_id, reservation in plan.reserved.items():
            order = waiting[job_id].queue_order
            if order > first:
                for other in submitted:
                    if other.queue_order < order and reservation.group.bits & plan.group(other).bits:
                        return True
        return False

    def _makes_no_cycle(self, current: SchedulingCycle, submitted: QueuedJob) -> bool:
        """Return whether EASY in queue order leaves all as it is: the submitted job is larger than the idle nodes."""
        # As in the program of Gaussier et al. 2015.  Nodes that the plan has idle from now on can be had, others when the end
        # of their gang is reported.
        plan = current.plan
        if self._order is not None or not plan.are_alike:
            return False
        due = sum([each.nodes for each in plan.reserved.values() if each.start <= current.now])
        return submitted.nodes > plan.idle() + due

    def _start_due(self, current: SchedulingCycle) -> list[int]:
        """Start jobs whose reserved time has come, the earliest first; return them."""
        plan, now, length_of = current.plan, current.now, current.run.lengths.of
        due = plan.due(now)
        for job_id in due:
            start, length, nodes, split, group, _ = plan.take(job_id)
            job = current.view.waiting[job_id]
            if self.depth == 1 and (predicted := length_of(job)) != length:
                plan.release(start, length, split)
                fitting = plan.split(now, predicted, job, group)
                length, split = (length, split) if fitting is None else (predicted, fitting)
                plan.reserve(now, length, split)
            reason = self._reason(current, job, start) if current.run.explain else None
            plan.note_start(job_id, split, now + length)
            current.commit(job, nodes, split, reason)
        return due

    def _reason(self, current: SchedulingCycle, job: QueuedJob, reserved: int | None = None) -> Reason:
        """Explain the start of a job that holds no reservation any more."""
        plan: RunningPlan = current.plan
        group = plan.group(job)
        holders = [job_id for job_id, each in plan.reserved.items() if each.group is group]
        if not holders or job.queue_order < current.view.waiting[holders[0]].queue_order:
            return Reason("head of the queue, and it fits", reserved=reserved)
        shadow = plan.reserved[holders[0]].start
        if current.now + current.run.lengths.of(job) <= shadow:
            rule = "backfilled: it will end by the shadow time"
        elif len(holders) == 1:
            rule = "backfilled: it takes no more than the extra nodes"
        else:
            rule = f"backfilled: it delays none of the {len(holders)} protected jobs"
        return Reason(rule, holder=holders[0], shadow=shadow, extra=plan.free_at(shadow, group))
