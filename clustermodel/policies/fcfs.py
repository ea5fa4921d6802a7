"""First come, first served (Talby & Feitelson 1999, long version, section 1.1).

Jobs start strictly in queue order; nodes stay idle for the first job that does not fit.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from clustermodel.policies.interface import Decision, Reason, Start, Stateless
from clustermodel.policies.view import Batch, View

_REASON: Final = Reason("head of the queue, and it fits")


@dataclass(frozen=True, kw_only=True)
class Fcfs(Stateless):
    """First come, first served."""

    name: ClassVar[str] = "fcfs"

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start jobs from the head of the queue until one does not fit."""
        decisions: list[Decision] = []
        idle = view.idle
        for job in view.waiting.values():
            if job.nodes > idle:
                break
            idle -= job.nodes
            decisions.append(Start(job=job, reason=_REASON))
        return decisions
