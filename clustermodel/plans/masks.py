"""Nodes for a job out of those that are free, as bitmasks: for policies that keep the nodes of each job themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from clustermodel.machine.node_set import as_mask, from_mask
from clustermodel.plans.by_node import Nodes
from clustermodel.plans.pools import Pools, Split

if TYPE_CHECKING:
    from clustermodel.policies.view import QueuedJob

Kept = Sequence[tuple[int, int]]
"""Nodes of other jobs, a bitmask, and the memory that each task has there, KiB."""


class FreeNodes:
    """Nodes with one processor each, or with several of which a number is enough."""

    has_shapes = False
    """Whether a number of nodes may not be enough for a job."""
    shares_memory = False
    """Whether jobs share the memory of nodes, so that it matters what others keep."""

    def __init__(self, pools: Pools) -> None:
        self._pools = pools

    def sets(self, job: QueuedJob) -> list[int]:
        """Return the sets of nodes of which a job may have those of one now."""
        return [-1 if each is None else self._pools.mask(each) for each in job.sets_eligible()]

    def may_have(self, nodes: int, job: QueuedJob) -> bool:
        """Return whether a job may have all of some nodes now."""
        return job.eligible is None or not nodes & ~self._pools.mask(job.eligible)

    def fits(self, job: QueuedJob, free: int, kept: Kept) -> bool:
        """Return whether a job fits on free nodes, beside what others keep."""
        return free.bit_count() >= job.nodes

    def choose(self, job: QueuedJob, free: int, preferred: Iterable[int], kept: Kept) -> int:
        """Return free nodes for a job that fits, of the first of the ``preferred`` sets first, which have them all."""
        chosen = 0
        for nodes in preferred:
            more = free & nodes & ~chosen
            chosen |= self._pools.lowest(more, min(job.nodes - chosen.bit_count(), more.bit_count()))
        return chosen


class FreeProcessors(FreeNodes):
    """Nodes with several processors, where these must lie in a certain way, or jobs share the memory of nodes."""

    def __init__(self, pools: Pools, nodes: Nodes, *, shares_memory: bool) -> None:
        super().__init__(pools)
        self._nodes, self.has_shapes, self.shares_memory = nodes, True, shares_memory

    def fits(self, job: QueuedJob, free: int, kept: Kept) -> bool:
        return free.bit_count() >= job.nodes and self._split(job, free, kept) is not None

    def choose(self, job: QueuedJob, free: int, preferred: Iterable[int], kept: Kept) -> int:
        among = 0
        for nodes in preferred:
            among |= free & nodes
            if (split := self._split(job, among, kept)) is not None:
                return as_mask(self._nodes.processors(split, from_mask(among)))
        return 0

    def _split(self, job: QueuedJob, free: int, kept: Kept) -> Split | None:
        count, total = self._nodes.count, self._nodes.total
        of_nodes = self._nodes.free(from_mask(free), total[count:] if self.shares_memory else None)
        for nodes, memory in kept:
            for place, number in self._nodes.split(from_mask(nodes), memory):
                if place >= count:
                    of_nodes[place] -= number
        return self._nodes.choose(job, job.nodes, of_nodes, None)
