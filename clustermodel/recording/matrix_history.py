"""Every state of the Ousterhout matrix and of the capacity ledger, for figures.  Off by default: it grows with every event."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from clustermodel.recording.ledger import Account, Amount


class Cell(NamedTuple):
    """One gang in one row."""

    job: int
    columns: int
    """A bitmask."""
    replica: bool
    """Whether this is a replica: the gang's home is another row."""


class Moment(NamedTuple):
    """The state from one scheduling event to the next."""

    ticks: int
    """When it begins."""
    rows: tuple[tuple[Cell, ...], ...]
    """The gangs in each row of the matrix."""
    rotation: tuple[int, ...]
    """The rows in use, in the order in which they run from here on."""
    ledger: dict[Account, Amount]
    """Node-ticks charged so far; work is charged when a job completes."""
    begun: int = 0
    """How long the slice of the first row has run before, ticks: the event did not cut it short."""


class History:
    """The moments of one run, in order.

    Args:
        quantum: length of a time slice, ticks.
    """

    def __init__(self, quantum: int) -> None:
        self.quantum = quantum
        self.moments: list[Moment] = []

    def at(self, ticks: int) -> Moment:
        """Return the last state that begins at or before a time, in ticks; the first state if there is none."""
        index = bisect_right(self.moments, ticks, key=lambda moment: moment.ticks)
        return self.moments[max(index - 1, 0)]
