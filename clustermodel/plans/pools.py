"""Pools: nodes that no job can tell apart.

A plan on a machine with partitions is a vector over pools: a reservation has so many nodes of each pool that its job may have,
from its start to its end, so that the nodes of a job are the same ones all the time.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from clustermodel.machine.node_set import NodeSet, as_mask, lowest
from clustermodel.plans.windows import Windows

if TYPE_CHECKING:
    from clustermodel.policies.view import QueuedJob

Split = tuple[tuple[int, int], ...]
"""Nodes by pool: pairs of a pool and a number of nodes above 0."""


def _parts(nodes: int, masks: Iterable[int]) -> list[int]:
    """Return the parts of some nodes, bitmasks, which no mask divides: first those that the fewest masks have.

    So jobs take nodes first that the fewest sets have, and those are left that others need too.
    """
    members: dict[tuple[int, ...], int] = {(): nodes}
    for number, mask in enumerate(masks):
        outside = {key: pool & ~mask for key, pool in members.items()}
        members = {(*key, number): pool & mask for key, pool in members.items()} | outside
        members = {key: pool for key, pool in members.items() if pool}
    return [mask for _, mask in sorted(members.items(), key=lambda item: (len(item[0]), item[1] & -item[1]))]


class Pools:
    """The pools of a machine, by sets of nodes that jobs may be limited to; in the order in which jobs take them."""

    def __init__(self, nodes: int, sets: Iterable[NodeSet], windows: Windows | None = None) -> None:
        masks = [as_mask(nodes_of_set) for nodes_of_set in sets]
        masks += [] if windows is None else list(dict.fromkeys(window.mask for window in windows.all))
        self._nodes = nodes
        self._of_pools: list[int] = []  # bitmasks; on a machine of one pool made when they are asked for: it may be very wide
        self.sizes: list[int] = [nodes]
        if masks:
            self._of_pools = _parts((1 << nodes) - 1, masks)
            self.sizes = [mask.bit_count() for mask in self._of_pools]
        self.windows: Final = windows
        self.are_alike: Final = windows is None and len(self.sizes) == 1  # whether any job may have any nodes at any time
        self._every: Final = tuple(range(len(self.sizes)))
        self.never: Final = set[Hashable]()  # what plans have found that windows let start at no time, as they describe it
        self._of: dict[NodeSet, tuple[int, ...]] = {}
        self._touched: dict[NodeSet, tuple[int, ...]] = {}
        self._masks: dict[NodeSet, int] = {}

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def all_nodes(self) -> int:
        """All nodes, a bitmask."""
        return (1 << self._nodes) - 1

    @property
    def masks(self) -> list[int]:
        """The nodes of each pool, a bitmask; not to be changed."""
        if not self._of_pools:
            self._of_pools = [self.all_nodes]
        return self._of_pools

    def of(self, eligible: NodeSet | None) -> tuple[int, ...]:
        """Return the pools of which a job that may have these nodes can have all; ``None`` stands for all nodes."""
        if eligible is None:
            return self._every
        if eligible not in self._of:
            mask = as_mask(eligible)
            self._of[eligible] = tuple(pool for pool in self._every if not self.masks[pool] & ~mask)
        return self._of[eligible]

    def touched(self, eligible: NodeSet | None) -> tuple[int, ...]:
        """Return the pools of which a job that may have these nodes can have some: a limit may leave it particular nodes."""
        if eligible is None or len(self.masks) == 1:
            return self._every
        if eligible not in self._touched:
            mask = as_mask(eligible)
            self._touched[eligible] = tuple(pool for pool in self._every if self.masks[pool] & mask)
        return self._touched[eligible]

    def ways(self, job: QueuedJob, among: Container[int] | None = None) -> list[tuple[int, ...]]:
        """Return the pools of each set of nodes of which those of a job that starts now are all in one, in their order.

        With ``among``, only those of its pools are there that are among these, whether or not it may have them now.
        """
        if among is None:
            return [self.of(each) for each in job.sets_eligible()]
        return [tuple([pool for pool in self.of(each) if pool in among]) for each in job.sets_allowed()]

    def open_ways(self, job: QueuedJob, closed: set[int]) -> list[tuple[int, ...]]:
        """Return :meth:`ways`, without the sets of which some pools are closed."""
        return [self.of(each) for each in self.open_sets(job, closed)]

    def open_sets(self, job: QueuedJob, closed: set[int]) -> Iterable[NodeSet | None]:
        """Return ``job.sets_eligible()``, without the sets of which some pools are closed."""
        if not closed:
            return job.sets_eligible()
        pairs = zip(job.sets_allowed(), job.sets_eligible(), strict=True)
        return [eligible for allowed, eligible in pairs if closed.isdisjoint(self.touched(allowed))]

    def sets_of(self, job: QueuedJob) -> list[int]:
        """Return the sets of nodes, bitmasks, of which those of a job are all in one, in their order."""
        return [self.all_nodes if each is None else self.mask(each) for each in job.sets_allowed()]

    def sets_around(self, job: QueuedJob, nodes: int) -> list[int]:
        """Return those of its sets that have all its ``nodes``, a bitmask."""
        return [mask for mask in self.sets_of(job) if not nodes & ~mask]

    def mask(self, eligible: NodeSet) -> int:
        """Return the nodes that a job may have as a bitmask."""
        if eligible not in self._masks:
            self._masks[eligible] = as_mask(eligible)
        return self._masks[eligible]

    def lowest(self, mask: int, nodes: int) -> int:
        """Return so many nodes of a bitmask, which has as many: of the first pools first, and the lowest of each."""
        if len(self.masks) == 1:
            return lowest(mask, nodes)
        chosen = 0
        for pool in self.masks:
            if part := mask & pool:
                taken = lowest(part, min(nodes, part.bit_count()))
                chosen |= taken
                nodes -= taken.bit_count()
        return chosen

    def numbers(self, columns: int) -> list[int]:
        """Return how many of some nodes, a bitmask, are in each pool."""
        return [(columns & mask).bit_count() for mask in self.masks]

    def split(self, columns: int) -> Split:
        """Return how many of some nodes, a bitmask, are in each pool that has some."""
        return tuple((pool, number) for pool, number in enumerate(self.numbers(columns)) if number)

    def counts(self, nodes: NodeSet) -> Split:
        """Return how many of some nodes are in each pool."""
        return _counts(nodes, tuple(self.masks))


@lru_cache(maxsize=4096)
def _counts(nodes: NodeSet, masks: tuple[int, ...]) -> Split:
    mask = as_mask(nodes)
    return tuple((pool, number) for pool, of_pool in enumerate(masks) if (number := (mask & of_pool).bit_count()))
