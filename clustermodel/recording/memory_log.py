"""The memory that jobs have, written by the mechanism while it runs."""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np

from clustermodel.arrays import IntArray


class MemoryInUse(NamedTuple):
    """The memory that running and suspended jobs have on all nodes together; shapes ``(changes,)``."""

    ticks: IntArray
    """Times of the changes, ascending."""
    kib: IntArray
    """From then on."""


class MemoryLog:
    """The changes of the memory in use, where it is limited."""

    __slots__ = ("_change", "_time")

    def __init__(self) -> None:
        self._time = array("q")
        self._change = array("q")

    def changed(self, now: int, kib: int) -> None:
        """Note that jobs have so much more memory from ``now`` on, or less if negative, on all nodes together.

        Changes may be noted after later ones: the fast mode finds out at a scheduling event what has happened since the last.
        """
        self._time.append(now)
        self._change.append(kib)

    @property
    def in_use(self) -> MemoryInUse:
        """The memory at each time at which it changes; no row where it is not limited."""
        ticks, changes = (np.array(column, dtype=np.int64) for column in (self._time, self._change))
        order = np.argsort(ticks, kind="stable")
        ticks, changes = ticks[order], changes[order]
        last = np.diff(ticks, append=-1) != 0  # of the changes at one time
        ticks, kib = ticks[last], np.cumsum(changes)[last]
        other = np.diff(kib, prepend=0) != 0
        return MemoryInUse(ticks[other], kib[other])
