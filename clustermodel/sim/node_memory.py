"""The memory of the nodes, in which suspended jobs stay: how many tasks a node holds besides those that run."""

from __future__ import annotations

from collections.abc import Iterator

from clustermodel.schedule.node_set import NodeSet
from clustermodel.schedule.profile import Profile


class NodeMemory:
    """Room for suspended tasks on each node.

    Args:
        most: suspended tasks that a node holds; ``None`` is no limit.
    """

    def __init__(self, most: int | None) -> None:
        self.most = most
        self._room = Profile(0 if most is None else most)  # for how many more tasks: steps along the nodes

    def has_room(self, columns: NodeSet) -> bool:
        """Return whether each of ``columns`` can hold one more suspended task."""
        return self.most is None or all(self._room.fits_at(low, 1, high - low) for low, high in _ranges(columns))

    def keep(self, columns: NodeSet) -> None:
        """Note that each of ``columns`` holds one more suspended task."""
        self._add(columns, 1)

    def free(self, columns: NodeSet | None) -> None:
        """Note that each of ``columns`` holds one suspended task less."""
        if columns is not None:
            self._add(columns, -1)

    def _add(self, columns: NodeSet, tasks: int) -> None:
        if self.most is not None:
            for low, high in _ranges(columns):
                self._room.release(low, high, -tasks)


def _ranges(columns: NodeSet) -> Iterator[tuple[int, int]]:
    return zip(columns[::2], columns[1::2], strict=True)
