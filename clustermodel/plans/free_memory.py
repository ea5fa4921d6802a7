"""The free memory of each node: as it is on the machine, or as a policy's plan has it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.machine.node_set import NodeSet


class FreeMemory:
    """Memory, in KiB, that no task has on each node: an array of shape ``(nodes,)``."""

    __slots__ = ("_free", "_node_of")

    def __init__(self, free: IntArray, node_of: IntArray | None = None) -> None:
        self._free = free
        self._node_of = node_of  # the node of each processor, where nodes have several

    @classmethod
    def of(cls, nodes: int, kib: int) -> FreeMemory:
        """Return that of a machine without tasks, on whose ``nodes`` there are ``kib`` each."""
        return cls(np.full(nodes, kib, dtype=np.int64))

    @classmethod
    def of_nodes(cls, kib: Sequence[int], sizes: Sequence[int]) -> FreeMemory:
        """Return that of a machine without tasks, by the memory and the number of processors of each node."""
        node_of = np.repeat(np.arange(len(sizes)), sizes) if max(sizes) > 1 else None
        return cls(np.array(kib, dtype=np.int64), node_of)

    def copy(self) -> FreeMemory:
        return FreeMemory(self._free.copy(), self._node_of)

    def by_node(self) -> IntArray:
        return self._free

    def nodes_with(self, kib: int) -> int:
        """Return the nodes on which at least ``kib`` are free, a bitmask, node 0 in the lowest bit."""
        return int.from_bytes(np.packbits(self._free >= kib, bitorder="little").tobytes(), "little")

    def take(self, nodes: NodeSet, kib: int) -> None:
        """Reserve ``kib`` on each node, or for each processor; the remainder may become negative."""
        for low, high in zip(nodes[::2], nodes[1::2], strict=True):
            if self._node_of is None:
                self._free[low:high] -= kib
            else:
                np.subtract.at(self._free, self._node_of[low:high], kib)

    def give_back(self, nodes: NodeSet, kib: int) -> None:
        self.take(nodes, -kib)

    def least(self) -> tuple[int, int]:
        """Return the node with the least free memory, the lowest of several, and how much is free there, KiB."""
        node = int(self._free.argmin())
        return node, int(self._free[node])

    def fullest(self, nodes: int) -> int:
        """Return which of ``nodes``, a bitmask of at least one, has the least free memory, the lowest of several."""
        members = [node for node in range(nodes.bit_length()) if nodes >> node & 1]
        return members[int(self._free[members].argmin())]
