"""Gangs that have ended at the present instant although no scheduling cycle has reported that yet (events one by one).

Their nodes and their memory are not free before it is their turn, unless a job starts that needs them: a policy that plans
may know that they end now.
"""

from __future__ import annotations

from collections.abc import Iterable

from clustermodel.machine.node_set import NodeSet, as_mask, from_mask
from clustermodel.policies.view import QueuedJob
from clustermodel.sim.job_process import Execution
from clustermodel.sim.node_pool import NodePool
from clustermodel.sim.node_requests import NodeChoice
from clustermodel.sim.saved_work import SavedWork


class UnreportedEnds:
    """The gangs whose ends are still to be reported."""

    def __init__(self, pool: NodePool, saved: SavedWork, choice: NodeChoice) -> None:
        self._pool, self._saved, self._choice = pool, saved, choice
        self.gangs: list[Execution] = []
        self._nodes = 0  # those of their nodes that are up, a bitmask

    def hold(self, gangs: Iterable[Execution]) -> None:
        """Keep the nodes of gangs that have ended."""
        self.gangs = list(gangs)
        for gang in self.gangs:
            self._nodes |= as_mask(gang.columns)
        idle = self._pool.idle_nodes
        self._nodes &= as_mask(idle.as_set())  # a node may have failed just now
        if self._nodes:
            idle.take(from_mask(self._nodes))

    def give_back(self) -> None:
        """Let their nodes be idle, until some of the gangs are held again."""
        if self._nodes:
            self._pool.idle_nodes.give_back(from_mask(self._nodes))
            self._nodes = 0

    def idle_or_ended(self) -> NodeSet:
        """Return the idle nodes and those of the gangs."""
        return from_mask(as_mask(self._pool.idle_nodes.as_set()) | self._nodes)

    def free_for(self, job: QueuedJob, nodes: int, columns: NodeSet | None) -> None:
        """Let all have been reported but for their turn, if a job could not start otherwise."""
        sets = job.sets_eligible()
        if as_mask(columns) & self._nodes if columns is not None else self._choice.idle_for(job, nodes, sets) is None:
            self.give_back()
            for gang in self.gangs:
                self._saved.hold(gang.owner)  # nothing is saved of a job that has ended
            self.gangs = []
