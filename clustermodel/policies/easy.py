"""EASY backfilling (001, section 3.1): a job may jump ahead if it does not delay the first job in the queue.

The first blocked job holds a reservation at its *shadow time*, when the running jobs are expected to have freed enough
nodes; the nodes left over then are the *extra nodes*.  A later job is backfilled if it fits now and

1. will end by the shadow time, or
2. needs no more than the extra nodes.

Both say that it fits the plan of the running jobs and the reservation, so that one test serves any number of protected
jobs (``reserve_depth``).  A reservation is only ever improved, so with several the second is as safe as the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from clustermodel.errors import SpecificationError
from clustermodel.machine import require_whole
from clustermodel.policies.base import Batch, Decision, QueuedJob, Reason, Reserve, Setup, Start, View, WakeAt
from clustermodel.schedule.plan import Plan

BackfillOrder = Callable[[QueuedJob, int], Any]
"""Sorting key of the backfill candidates, given the job and the present in ticks; the smallest comes first."""

BACKFILL_ORDERS: Final[dict[str, BackfillOrder | None]] = {
    "arrival": None,
    "shortest": lambda job, _: (job.estimate, job.queue_order),
}
"""Named orders; ``None`` keeps queue order.  ``shortest`` is the SJF-EASY of 004, section 5.2.2."""


class Easy:
    """EASY backfilling.

    Args:
        backfill_order: in which order candidates are tried: ``"arrival"``, ``"shortest"`` (estimate) or a callable.
        reserve_depth: how many blocked jobs are protected by a reservation; 1 is EASY.

    Raises:
        SpecificationError: an argument has a value that is not allowed.
    """

    name = "easy"

    def __init__(self, *, backfill_order: str | BackfillOrder = "arrival", reserve_depth: int = 1) -> None:
        if isinstance(backfill_order, str) and backfill_order in BACKFILL_ORDERS:
            self._order = BACKFILL_ORDERS[backfill_order]
        elif callable(backfill_order):
            self._order = backfill_order
        else:
            raise SpecificationError(
                f"easy: backfill_order: {backfill_order!r} is not allowed; "
                f"it must be one of {', '.join(BACKFILL_ORDERS)}, or a callable"
            )
        self._depth = require_whole("easy: reserve_depth", reserve_depth, at_least=1)

    def begin(self, setup: Setup) -> None:
        """Get ready for a run."""
        self._plan = Plan(setup.nodes, may_overrun=not setup.kill_at_estimate)
        self._protected: list[QueuedJob] = []  # the first jobs of the queue; they hold reservations
        # The first job's reservation begins when a running job is expected to end.  If that job is killed then, it does.
        self._needs_alarm = self._depth > 1 or not setup.kill_at_estimate
        self._explain = setup.explain

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start what fits, protect the first blocked jobs, backfill the rest."""
        plan, now = self._plan, view.now
        room_made = plan.catch_up(batch.ended, now)
        late = plan.overrunning(now)
        candidates: Iterable[QueuedJob] = view.waiting.values()
        if late or self._jumps_the_queue(batch.submitted):
            self._unprotect()
            plan.extend(late, now)
        elif room_made:
            plan.compress(self._protected, now)
        elif self._protected and not (batch.ended or batch.alarm):
            # Nothing was freed, so every job that waited before fits even less now: only the new ones need a look.
            candidates = batch.submitted
        decisions = self._schedule(candidates, view)
        if self._needs_alarm and (alarm := plan.new_alarm()) is not None:
            decisions.append(WakeAt(alarm))
        return decisions

    def _jumps_the_queue(self, newcomers: Sequence[QueuedJob]) -> bool:
        if not (self._protected and newcomers):
            return False
        return newcomers[0].queue_order < self._protected[-1].queue_order

    def _unprotect(self) -> None:
        for job in self._protected:
            self._plan.drop(job)
        self._protected.clear()

    def _schedule(self, candidates: Iterable[QueuedJob], view: View) -> list[Decision]:
        """Start protected jobs that are due, protect the next ones in queue order, backfill the rest."""
        now, idle, plan, protected = view.now, view.idle, self._plan, self._protected
        decisions: list[Decision] = []
        due = plan.due(now) if protected else []
        for job_id in due:
            first = view.waiting[job_id]
            protected.remove(first)
            decisions.append(Start(first, None, self._reason(first, now) if self._explain else None))
            plan.note_start(first.id, first.nodes, plan.take_up(first).end)
            idle -= first.nodes

        rest = iter(candidates)
        while len(protected) < self._depth and (job := next(rest, None)) is not None:
            if job.id in plan.reserved or job.id in due:
                continue
            if job.nodes <= idle and plan.fits(job.nodes, job.estimate):
                idle -= job.nodes
                decisions.append(self._start(job, now))
            else:
                decisions.append(Reserve(job, plan.place(job).start))
                protected.append(job)
        backfill: Iterable[QueuedJob] = rest if idle else ()
        if idle and (order := self._order) is not None:
            backfill = sorted(rest, key=lambda job: order(job, now))
        for job in backfill:
            if job.nodes <= idle and job.id not in plan.reserved and job.id not in due and plan.fits(job.nodes, job.estimate):
                idle -= job.nodes
                decisions.append(self._start(job, now))
                if not idle:
                    break
        return decisions

    def _start(self, job: QueuedJob, now: int) -> Start:
        reason = self._reason(job, now) if self._explain else None
        self._plan.start(job.id, job.nodes, now, now + job.estimate)
        return Start(job, None, reason)

    def _reason(self, job: QueuedJob, now: int) -> Reason:
        holder = self._protected[0] if self._protected else job
        if holder is job or job.queue_order < holder.queue_order:
            held = self._plan.reserved.get(job.id)
            return Reason("head of the queue, and it fits", reserved=held.start if held else None)
        shadow = self._plan.reserved[holder.id].start
        extra = self._plan.free_at(shadow)
        if now + job.estimate <= shadow:
            rule = "backfilled: it will end by the shadow time"
        elif len(self._protected) == 1:
            rule = "backfilled: it takes no more than the extra nodes"
        else:
            rule = f"backfilled: it delays none of the {len(self._protected)} protected jobs"
        return Reason(rule, holder=holder.id, shadow=shadow, extra=extra)
