"""The nodes that jobs can have in a scheduling cycle in which others may be preempted.

A running job has the nodes that it holds; a waiting one takes nodes that are idle before those that jobs are leaving, and these
before those that others would have to leave.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from clustermodel.machine.node_set import NodeSet, as_mask
from clustermodel.plans.by_node import Nodes
from clustermodel.plans.pool_plans import IdlePools
from clustermodel.plans.pools import Pools, Split

if TYPE_CHECKING:
    from clustermodel.policies.view import QueuedJob, RunningJob, View

_nodes_of: Final[Callable[[RunningJob], int]] = attrgetter("nodes")


class Lack(NamedTuple):
    """What a waiting job lacks, on one of the sets of nodes of which it may have those of one, if no other job is preempted."""

    nodes: int
    """How many, at least."""
    gangs: Sequence[RunningJob]
    """Those that could leave it some."""
    freed_by: Callable[[RunningJob], int]
    """How many of them."""
    fits_without: Callable[[Iterable[RunningJob]], bool] | None = None
    """Whether it fits when some of them have left; ``None`` where it does if the number is enough."""


class Reallocation(ABC):
    """The nodes of one scheduling cycle: idle ones, those that jobs are leaving, and those to be gained from others."""

    most: int
    """No waiting job of more nodes can have them."""

    @abstractmethod
    def keep(self, gang: RunningJob) -> bool:
        """Leave a job the nodes that it holds; return whether no job before it has taken them."""

    @abstractmethod
    def lose(self, gang: RunningJob) -> None:
        """Leave a job the nodes that it holds, which cannot be gained any more."""

    @abstractmethod
    def gain(self, gang: RunningJob) -> None:
        """Preempt a running job, which leaves its nodes."""

    @abstractmethod
    def take(self, job: QueuedJob) -> Split | None:
        """Give a waiting job nodes; return from which parts of the machine, ``None`` if they are too few."""

    @abstractmethod
    def take_free(self, job: QueuedJob) -> Split | None:
        """:meth:`take`, without any nodes that others would have to leave."""

    @abstractmethod
    def lacks(self, job: QueuedJob, gangs: Sequence[RunningJob]) -> Iterable[Lack]:
        """Return what a job lacks of each set of nodes of which it may have those of one, and which gangs could leave that."""

    @abstractmethod
    def close(self, job: QueuedJob) -> None:
        """Let no other job have nodes that a job may have which does not fit."""


class NumberReallocation(Reallocation):
    """Where all nodes are alike: how many they are."""

    def __init__(self, idle: int, gains: Iterable[RunningJob], leaving: Iterable[RunningJob]) -> None:
        self._free = idle + sum([gang.nodes for gang in leaving])
        self.most = self._free + sum([gang.nodes for gang in gains])

    def keep(self, gang: RunningJob) -> bool:
        if gang.nodes > self.most:
            return False
        self.most -= gang.nodes
        return True

    def lose(self, gang: RunningJob) -> None:
        self.most -= gang.nodes

    def gain(self, gang: RunningJob) -> None:
        self._free += gang.nodes

    def take(self, job: QueuedJob) -> Split | None:
        nodes = job.nodes
        if nodes > self.most:
            return None
        self.most -= nodes
        return ((0, nodes),)

    def take_free(self, job: QueuedJob) -> Split | None:
        nodes = job.nodes
        if nodes > self._free:
            return None
        self._free -= nodes
        self.most -= nodes
        return ((0, nodes),)

    def lacks(self, job: QueuedJob, gangs: Sequence[RunningJob]) -> Iterable[Lack]:
        return [Lack(job.nodes - self._free, gangs, _nodes_of)]

    def close(self, job: QueuedJob) -> None:
        self.most = 0


class _PartReallocation(Reallocation):
    """Where jobs differ in the nodes that they may have, or in how these must lie: how many there are of each part."""

    def __init__(self, pools: Pools, view: View, idle: Any, gains: Iterable[RunningJob], leaving: Iterable[RunningJob]) -> None:
        self._pools, self._suspended_on = pools, view.suspended_on
        self._idle = idle
        self._leaving, self._gain = self._none(), self._none()
        self._closed: set[int] = set()  # pools of jobs that do not fit and may not be passed
        self.most = view.idle
        for gang in leaving:
            self._add(self._leaving, self._split(gang), 1)
            self.most += gang.nodes
        for gang in gains:
            self._add(self._gain, self._split(gang), 1)
            self.most += gang.nodes

    @abstractmethod
    def _none(self) -> Any:
        """Return that nothing of any part is free."""

    @abstractmethod
    def _split(self, gang: RunningJob) -> Split:
        """Return what a running job holds of each part."""

    @abstractmethod
    def _own(self, job: QueuedJob, nodes: NodeSet) -> Split | None:
        """Return what the nodes where a job is suspended are of each part, if it may have these."""

    @abstractmethod
    def _choose(self, job: QueuedJob, sources: Sequence[Any]) -> Split | None:
        """Return what a job has of each part, of the first sources first; ``None`` if it does not fit."""

    def _add(self, counts: Any, split: Split, sign: int) -> None:
        for part, number in split:
            counts[part] += sign * number

    def keep(self, gang: RunningJob) -> bool:
        if self._closed and not self._closed.isdisjoint([pool for pool, _ in self._pools.counts(gang.columns)]):
            return False
        if any(self._gain[part] < number for part, number in self._split(gang)):
            return False
        self.lose(gang)
        return True

    def lose(self, gang: RunningJob) -> None:
        self._add(self._gain, self._split(gang), -1)
        self.most -= gang.nodes

    def gain(self, gang: RunningJob) -> None:
        split = self._split(gang)
        self._add(self._gain, split, -1)
        self._add(self._leaving, split, 1)

    def close(self, job: QueuedJob) -> None:
        self._closed.update(self._pools.of(job.eligible))

    def take(self, job: QueuedJob) -> Split | None:
        return self._take(job, (self._idle, self._leaving, self._gain))

    def take_free(self, job: QueuedJob) -> Split | None:
        return self._take(job, (self._idle, self._leaving))

    def _take(self, job: QueuedJob, sources: tuple[Any, ...]) -> Split | None:
        """Give a job idle nodes if they are enough, else also those that jobs are leaving, else also those to be gained.

        A suspended job has its own nodes if it may have them, and no running job would have to leave them.
        """
        split: Split | None = None
        if (nodes := self._suspended_on(job)) is not None and (own := self._own(job, nodes)) is not None:
            split = own if all(self._idle[part] + self._leaving[part] >= number for part, number in own) else None
        for last in range(1, len(sources) + 1):
            if split is not None:
                break
            split = self._choose(job, sources[:last])
        if split is None:
            return None
        for part, number in split:
            left = number
            for counts in sources:
                of_these = min(left, int(counts[part]))  # or a number of NumPy, of arrays by node
                counts[part] -= of_these
                left -= of_these
        self.most -= job.nodes
        return split


class PoolReallocation(_PartReallocation):
    """The nodes by pool."""

    def __init__(self, pools: Pools, view: View, gains: Iterable[RunningJob], leaving: Iterable[RunningJob]) -> None:
        super().__init__(pools, view, IdlePools(pools, view.idle_nodes).counts(), gains, leaving)

    def _none(self) -> Any:
        return [0] * len(self._pools)

    def _split(self, gang: RunningJob) -> Split:
        return self._pools.counts(gang.columns)

    def _own(self, job: QueuedJob, nodes: NodeSet) -> Split | None:
        split = self._pools.counts(nodes)
        ways = self._pools.open_ways(job, self._closed)
        return split if any(all(pool in pools for pool, _ in split) for pools in ways) else None

    def _choose(self, job: QueuedJob, sources: Sequence[Any]) -> Split | None:
        for pools in self._pools.open_ways(job, self._closed):
            taken: dict[int, int] = {}
            left = job.nodes
            for counts in sources:
                for pool in pools:
                    number = min(counts[pool], left)
                    if number > 0:
                        taken[pool] = taken.get(pool, 0) + number
                        left -= number
            if not left:
                return tuple(sorted(taken.items()))
        return None

    def lacks(self, job: QueuedJob, gangs: Sequence[RunningJob]) -> Iterable[Lack]:
        for pools in self._pools.open_ways(job, self._closed):
            freed: dict[RunningJob, int] = {}
            for gang in gangs:
                if number := sum([number for pool, number in self._split(gang) if pool in pools]):
                    freed[gang] = number
            free = sum([self._idle[pool] + self._leaving[pool] for pool in pools])
            yield Lack(job.nodes - free, [*freed], freed.__getitem__)


class NodeReallocation(_PartReallocation):
    """The processors, and the memory, by node."""

    def __init__(
        self, pools: Pools, nodes: Nodes, view: View, gains: Iterable[RunningJob], leaving: Iterable[RunningJob]
    ) -> None:
        self._nodes, self._splits = nodes, dict[int, Split]()  # what running jobs hold, by job id
        memory = view.free_memory()
        idle = nodes.free(view.idle_nodes(), None if memory is None else memory.by_node())
        super().__init__(pools, view, idle, gains, leaving)

    def _none(self) -> Any:
        return np.zeros_like(self._idle)

    def _split(self, gang: RunningJob) -> Split:
        if (split := self._splits.get(gang.job.id)) is None:
            split = self._splits[gang.job.id] = self._nodes.split(gang.columns, gang.job.memory)
        return split

    def _own(self, job: QueuedJob, nodes: NodeSet) -> Split | None:
        mask, sets = as_mask(nodes), self._pools.open_sets(job, self._closed)
        may_have = any(each is None or not mask & ~as_mask(each) for each in sets)
        return self._nodes.split(nodes, job.memory) if may_have else None

    def _choose(self, job: QueuedJob, sources: Sequence[Any]) -> Split | None:
        free = sources[0].copy()
        for counts in sources[1:]:
            free += counts
        return self._nodes.choose_of(job, job.nodes, free, self._pools.open_sets(job, self._closed))

    def lacks(self, job: QueuedJob, gangs: Sequence[RunningJob]) -> Iterable[Lack]:
        count = self._nodes.count
        for eligible in self._pools.open_sets(job, self._closed):
            having = self._nodes.having(eligible)
            freed: dict[RunningJob, int] = {}
            for gang in gangs:
                if number := sum([number for node, number in self._split(gang) if node < count and having[node]]):
                    freed[gang] = number
            free = int(((self._idle + self._leaving)[:count] * having).sum())
            # Where its shape or its memory is in the way, as few as possible leave all the same.
            fits = partial(self._fits_without, job, eligible)
            yield Lack(max(job.nodes - free, 1), [*freed], freed.__getitem__, fits)

    def _fits_without(self, job: QueuedJob, eligible: NodeSet | None, gangs: Iterable[RunningJob]) -> bool:
        free = self._idle + self._leaving
        for gang in gangs:
            self._add(free, self._split(gang), 1)
        return self._nodes.choose(job, job.nodes, free, eligible) is not None


class NodesUp:
    """The nodes that are idle, or that jobs hold, by pool."""

    def __init__(self, pools: Pools, view: View) -> None:
        self._pools, self._alike = pools, pools.are_alike
        self.left = view.idle + sum([gang.nodes for gang in view.running.values()])
        self._counts = list[int]()  # unless nodes are alike
        if not self._alike:
            self._counts = IdlePools(pools, view.idle_nodes).counts()
            for gang in view.running.values():
                for pool, nodes in pools.counts(gang.columns):
                    self._counts[pool] += nodes

    def take_some(self, job: QueuedJob) -> bool:
        """Give a job as many nodes as are left for it, wherever it runs; return whether it has any."""
        if self._alike:
            before, nodes = self.left, job.nodes
            self.left = before - nodes if nodes < before else 0
            return before > 0
        counts, left, ways = self._counts, job.nodes, self._pools.ways(job)
        chosen, most = ways[0], -1
        for pools in ways:
            number = sum([counts[pool] for pool in pools])
            if number > most:
                chosen, most = pools, number
            if number >= left:
                break
        for pool in chosen:
            number = min(counts[pool], left)
            counts[pool] -= number
            left -= number
        self.left -= job.nodes - left
        return left < job.nodes
