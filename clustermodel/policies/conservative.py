"""Conservative backfilling (001, section 3.2): every waiting job holds a reservation, and nobody may be delayed.

A job is placed, when it is submitted, at the earliest time that fits the plan of running jobs and reservations; that
start is a guarantee.  When a job ends before its estimate, each waiting job in queue order is taken out of the plan and
put back at its earliest time, which is never later than the one it had (*compression*).
"""

from __future__ import annotations

from clustermodel.policies.base import Batch, Decision, QueuedJob, Reason, Reserve, Setup, Start, View, WakeAt
from clustermodel.schedule.plan import Plan


class Conservative:
    """Conservative backfilling with compression in queue order."""

    name = "conservative"

    def begin(self, setup: Setup) -> None:
        """Get ready for a run."""
        self._plan = Plan(setup.nodes, may_overrun=not setup.kill_at_estimate)
        self._explain = setup.explain

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Compress the plan if a job ended early, place the new jobs, start those whose time has come."""
        plan, now = self._plan, view.now
        room_made = plan.catch_up(batch.ended, now)
        placed = (job for job in view.waiting.values() if job.id in plan.reserved)
        if late := plan.overrunning(now):
            self._replan(late, list(placed), now)
        elif room_made and plan.reserved:
            plan.compress(placed, now)

        decisions: list[Decision] = []
        for job in batch.submitted:
            start = plan.place(job)
            if start > now:
                decisions.append(Reserve(job, start))
        for job_id in plan.due(now):
            job = view.waiting[job_id]
            plan.take_up(job, now)
            decisions.append(Start(job, None, self._reason(job, view) if self._explain else None))
        if (alarm := plan.new_alarm()) is not None:
            decisions.append(WakeAt(alarm))
        return decisions

    def _replan(self, late: list[int], jobs: list[QueuedJob], now: int) -> None:
        """Place all jobs afresh because running ones have outlived their estimates; guarantees may be broken by it."""
        for job in jobs:
            self._plan.drop(job)
        self._plan.extend(late, now)
        for job in jobs:
            self._plan.place(job)

    def _reason(self, job: QueuedJob, view: View) -> Reason:
        holder = next((waiting for waiting in view.waiting.values() if waiting.id in self._plan.reserved), None)
        if holder is None or job.queue_order < holder.queue_order:
            return Reason("head of the queue, and its reserved time has come", reserved=view.now)
        return Reason(
            "backfilled: its reserved time has come, which delays no waiting job",
            holder=holder.id,
            shadow=self._plan.reserved[holder.id],
            reserved=view.now,
        )
