"""Conservative backfilling (001, section 3.2): every waiting job holds a reservation, and nobody may be delayed.

A job is placed, when it is submitted, at the earliest time that fits the plan of running jobs and reservations; that
start is a guarantee.  When a job ends before its estimate, each waiting job in queue order is taken out of the plan and
put back at its earliest time, which is never later than the one it had (*compression*).
"""

from __future__ import annotations

from clustermodel.policies.base import Batch, Decision, QueuedJob, Reason, Reserve, Setup, Start, View, WakeAt
from clustermodel.policies.queue_order import QueueOrder, in_order, queue_order_of
from clustermodel.schedule.plan import Plan


class Conservative:
    """Conservative backfilling with compression in queue order.

    Args:
        queue_order: ``"arrival"``, ``"shortest"``, ``"narrowest"``, ``"widest"`` or a callable: the order in which jobs are
            placed, and moved up when room is made.

    Raises:
        SpecificationError: ``queue_order`` is neither a name nor a callable.
    """

    name = "conservative"

    def __init__(self, *, queue_order: str | QueueOrder = "arrival") -> None:
        self._order = queue_order_of(self.name, queue_order)

    def begin(self, setup: Setup) -> None:
        """Get ready for a run."""
        self._plan = Plan(setup.nodes, may_overrun=not setup.kill_at_estimate)
        self._explain = setup.explain

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Compress the plan if a job ended early, place the new jobs, start those whose time has come."""
        plan, now = self._plan, view.now
        room_made = plan.catch_up(batch.ended, now)
        placed = (job for job in in_order(view.waiting.values(), self._order, now) if job.id in plan.reserved)
        if late := plan.overrunning(now):
            self._replan(late, list(placed), now)
        elif room_made and plan.reserved:
            plan.compress(placed, now)

        decisions: list[Decision] = []
        for job in in_order(batch.submitted, self._order, now):
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


class BF(Conservative):
    """Backfilling with reservations for all waiting jobs, the space-sharing policy that 002 (section 5.3) compares with."""

    name = "bf"
