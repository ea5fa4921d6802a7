"""First come, first served (Talby & Feitelson 1999, long version, section 1.1).

Jobs start strictly in queue order; nodes stay idle for the first job that does not fit.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from clustermodel.plans.make import in_pools
from clustermodel.policies.disjoint_partitions import runs_of_partitions
from clustermodel.policies.interface import NOTHING, Decision, Reason, Run, Setup, Start
from clustermodel.policies.pools import PoolFcfs
from clustermodel.policies.view import Batch, View

_REASON: Final = Reason("head of the queue, and it fits")


@dataclass(frozen=True, kw_only=True)
class Fcfs:
    """First come, first served."""

    name: ClassVar[str] = "fcfs"
    takes_partitions: ClassVar[bool] = True
    takes_shapes: ClassVar[bool] = True
    takes_reservations: ClassVar[bool] = True
    depends_on: ClassVar[frozenset[str]] = NOTHING

    def start(self, setup: Setup) -> Run:
        """Return a new run."""
        if setup.disjoint:
            return runs_of_partitions(self, setup)
        return PoolFcfs(setup) if in_pools(setup) else self

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
