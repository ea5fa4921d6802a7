"""First come, first served (Talby & Feitelson 1999, long version, section 1.1).

Jobs start strictly in queue order; nodes stay idle for the first job that does not fit.
"""

from __future__ import annotations

from clustermodel.policies.interface import NOTHING, Decision, Reason, Setup, Start
from clustermodel.policies.view import Batch, View


class Fcfs:
    """First come, first served."""

    name = "fcfs"
    uses = NOTHING

    def begin(self, setup: Setup) -> None:
        """Prepare for a run."""
        self._reason = Reason("head of the queue, and it fits") if setup.explain else None

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start jobs from the head of the queue until one does not fit."""
        decisions: list[Decision] = []
        idle = view.idle
        for job in view.waiting.values():
            if job.nodes > idle:
                break
            idle -= job.nodes
            decisions.append(Start(job=job, reason=self._reason))
        return decisions
