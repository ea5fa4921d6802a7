"""First come, first served (Talby & Feitelson 1999, long version, section 1.1).

Jobs start strictly in queue order; nodes stay idle for the first job that does not fit, where it could have them.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from clustermodel.plans.make import idle_to_take, in_pools, nodes_of, pools_of
from clustermodel.policies.disjoint_partitions import runs_of_partitions
from clustermodel.policies.interface import NOTHING, Decision, Reason, Run, Setup, Start
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
        return _FcfsRun(setup) if in_pools(setup) else self

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start jobs from the head of the queue until one does not fit, on whatever nodes are idle."""
        decisions: list[Decision] = []
        idle = view.idle
        for job in view.waiting.values():
            if job.nodes > idle:
                break
            idle -= job.nodes
            decisions.append(Start(job=job, reason=_REASON))
        return decisions


class _FcfsRun:
    """One run where jobs may differ in the nodes that they may have, or in how these must lie."""

    def __init__(self, setup: Setup) -> None:
        self._pools, self._nodes = pools_of(setup), nodes_of(setup)

    def decide(self, _batch: Batch, view: View) -> list[Decision]:
        """Start jobs in queue order; a job that does not fit closes the pools that it waits for, of all its partitions."""
        decisions: list[Decision] = []
        if not view.waiting:
            return decisions
        idle, closed, pools = idle_to_take(self._pools, self._nodes, view), set[int](), self._pools
        for job in view.waiting.values():
            if (split := idle.split(job, closed)) is not None:
                decisions.append(Start(job=job, columns=idle.take_split(split), reason=_REASON))
            else:
                closed.update(pools.touched(job.allowed))
                if len(closed) == len(pools):
                    break
        return decisions
