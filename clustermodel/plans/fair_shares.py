"""Shares of the machine where jobs differ in the nodes that they may have: who competes with whom.

A job may have nodes of some of the pools of the machine.  Jobs that compete for the same pools are *rivals*; the fewer nodes
there are for them, the smaller are their shares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from clustermodel.plans.pools import Pools

if TYPE_CHECKING:
    from clustermodel.policies.view import QueuedJob, View

_TOLERANCE = 1e-9  # nodes

Level = Callable[[Sequence["QueuedJob"], float, Sequence["QueuedJob"]], dict[int, float]]
"""Gives shares by job id: (rivals, nodes that they have together, jobs) -> shares of these jobs, at the level of the rivals."""


class FairShares:
    """The nodes of each pool that are up, and the jobs that may have them."""

    def __init__(self, pools: Pools, jobs: Sequence[QueuedJob], view: View) -> None:
        self._jobs, self._pools = jobs, pools
        self._up = [view.up]
        self._rivals = [len(jobs)]  # by pool: how many jobs may have its nodes
        if len(pools) > 1:
            self._up, self._rivals = [*pools.sizes], [0] * len(pools)
            for pool, mask in enumerate(pools.masks):
                self._up[pool] -= sum([mask >> node & 1 for node in view.down])
            for job in jobs:
                for pool in pools.touched(job.allowed):
                    self._rivals[pool] += 1

    def equal(self, job: QueuedJob) -> float:
        """Return the part of the time for which a job runs if the nodes of each pool are divided equally among its rivals."""
        nodes = 0.0
        for pool in self._pools.touched(job.allowed):
            nodes += max(self._up[pool], 1) / self._rivals[pool]
        return min(1.0, nodes / job.nodes)

    def of_all(self, level: Level) -> dict[int, float]:
        """Return the shares of all jobs, each as high as it can be without lowering one that is not higher.

        First come the jobs that compete the most for their nodes, at the highest level at which these are enough; then those
        that compete the most for the nodes left, and so on.
        """
        if len(self._up) == 1:
            return level(self._jobs, self._up[0], self._jobs)
        shares: dict[int, float] = {}
        free, left = [float(number) for number in self._up], self._jobs
        while left:
            rivals, at_level = left, self._at_level(level, left, left, free)
            for _ in left:
                short = self._short(left, at_level, free)
                if not short or len(short) == len(rivals):
                    break
                rivals, at_level = short, self._at_level(level, short, left, free)
            for job in rivals:
                shares[job.id] = at_level[job.id]
            for pool in self._pools_of(rivals):
                free[pool] = 0.0
            left = [job for job in left if job.id not in shares]
        return shares

    def _at_level(
        self, level: Level, rivals: Sequence[QueuedJob], jobs: Sequence[QueuedJob], free: list[float]
    ) -> dict[int, float]:
        return level(rivals, sum([free[pool] for pool in self._pools_of(rivals)]), jobs)

    def _pools_of(self, jobs: Iterable[QueuedJob]) -> set[int]:
        return {pool for job in jobs for pool in self._pools.touched(job.allowed)}

    def _short(self, jobs: Sequence[QueuedJob], shares: dict[int, float], free: list[float]) -> list[QueuedJob]:
        """Return jobs that need more nodes for their shares than their pools have together; none if no jobs do."""
        # Jobs that may have the same pools are one kind.  Each takes nodes, and moves those of others to other pools, along the
        # shortest path to a pool with free nodes (a flow); where there is no such path, the kinds and pools that were reached
        # are those in question.
        needs: dict[tuple[int, ...], float] = {}
        for job in jobs:
            kind = self._pools.touched(job.allowed)
            needs[kind] = needs.get(kind, 0.0) + shares[job.id] * job.nodes
        left, taken = [*free], {kind: dict.fromkeys(kind, 0.0) for kind in needs}
        for kind, need in needs.items():
            missing = need
            while missing > _TOLERANCE:
                # Pool reached -> kind by which it was; kind reached -> pool by which it was.
                come_from: dict[int, tuple[int, ...]] = dict.fromkeys(kind, kind)
                reached, queue = {kind: -1}, [*kind]
                while queue and left[queue[0]] <= _TOLERANCE:
                    pool = queue.pop(0)
                    for other, of_pools in taken.items():
                        if other not in reached and of_pools.get(pool, 0.0) > _TOLERANCE:
                            reached[other] = pool
                            for more in other:
                                if more not in come_from:
                                    come_from[more] = other
                                    queue.append(more)
                if not queue:
                    return [job for job in jobs if come_from.keys() >= set(self._pools.touched(job.allowed))]
                moved, pool = min(missing, left[queue[0]]), queue[0]
                path: list[tuple[tuple[int, ...], int, int]] = []  # kinds, with the pools whose nodes they give back, and take
                while pool >= 0:
                    by = come_from[pool]
                    path.append((by, reached[by], pool))
                    pool = reached[by]
                    moved = min(moved, taken[by][pool]) if pool >= 0 else moved
                left[queue[0]] -= moved
                for by, before, pool in path:
                    taken[by][pool] += moved
                    if before >= 0:
                        taken[by][before] -= moved
                missing -= moved
        return []
