"""The columns of a wide Ousterhout matrix in strips: neighbouring columns that each gang has together or not at all.

A set of columns is a bitmask, as on a narrow machine, but with a bit for each strip, so that it does not grow with the machine.
A strip that a new set divides is cut in two, and all masks get a bit more.  Strips are joined where no set begins or ends any
more, when there are many.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from clustermodel.schedule.bisection import bisect_left
from clustermodel.schedule.node_set import NodeSet, as_mask, from_mask

_MANY: Final = 1_024
"""Strips that are not joined: operations on so few bits cost little more than on one."""


class ColumnStrips:
    """Which columns the strips are.

    When strips have been cut or joined, whoever has masks replaces them by what :meth:`renewed` returns.

    Args:
        columns: their number; at first they are one strip.
    """

    def __init__(self, columns: int) -> None:
        self._bounds = [0, columns]  # ascending: where each strip begins, and where the last one ends
        self._most = _MANY  # beyond, strips are joined
        # How masks change when a strip has been cut in two:
        self._cut_bit = 0  # that of this strip
        self._moved_bits = 0  # that bit and all above
        # How they change when strips have been joined:
        self._new_numbers: dict[int, int] = {}  # of strips, by old number

    @property
    def all_bits(self) -> int:
        """The set of all columns."""
        return (1 << len(self._bounds) - 1) - 1

    @property
    def are_many(self) -> bool:
        """Whether it is time to join strips."""
        return len(self._bounds) - 1 > self._most

    def nodes(self, mask: int) -> NodeSet:
        """Return the columns of a set."""
        bounds = self._bounds
        return tuple([bounds[strip] for strip in from_mask(mask)])

    def mask(self, nodes: NodeSet) -> int:
        """Return the set of these columns; no strip is there in part."""
        return as_mask(tuple([bisect_left(self._bounds, column) for column in nodes]))

    def end_of_lowest(self, mask: int, columns: int) -> int:
        """Return which column comes after the lowest ``columns`` of a set.

        Raises:
            ValueError: the set has fewer.
        """
        bounds = self._bounds
        edges = mask ^ mask << 1
        while edges:
            later = edges & (edges - 1)  # without the lowest bit
            low = bounds[(edges ^ later).bit_length() - 1]
            edges = later & (later - 1)
            high = bounds[(later ^ edges).bit_length() - 1]
            if columns <= high - low:
                return low + columns
            columns -= high - low
        raise ValueError(f"a set lacks {columns} columns")

    def below(self, mask: int, column: int) -> int:
        """Return those of a set that are below a column at which a strip begins, or the last one ends."""
        return mask & ((1 << bisect_left(self._bounds, column)) - 1)

    def cut(self, column: int) -> bool:
        """Let a strip begin at a column; return whether none did, so that one has been cut in two."""
        bounds = self._bounds
        place = bisect_left(bounds, column)
        if bounds[place] == column:
            return False
        self._cut_bit = 1 << place - 1
        self._moved_bits = (1 << len(bounds) - 1) - self._cut_bit
        self._new_numbers.clear()
        bounds.insert(place, column)
        return True

    def join(self, masks: Iterable[int]) -> None:
        """Join all strips between which none of the sets begins or ends."""
        edges = 1 | 1 << len(self._bounds) - 1
        for mask in masks:
            edges |= mask ^ mask << 1
        kept = [strip for strip in range(len(self._bounds)) if edges >> strip & 1]
        self._new_numbers = {strip: number for number, strip in enumerate(kept)}
        self._bounds = [self._bounds[strip] for strip in kept]
        self._most = max(_MANY, 2 * len(kept))

    def renewed(self, mask: int) -> int:
        """Return a set as it is after the last cut, or after strips have been joined."""
        new = self._new_numbers
        if new:
            return as_mask(tuple([new[strip] for strip in from_mask(mask)]))
        moved = mask & self._moved_bits
        return mask + moved + (moved & self._cut_bit) if moved else mask  # one bit up, and the strip's own bit stays too
