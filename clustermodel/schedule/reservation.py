"""What all plans speak of: shapes a job can have, and room reserved for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

Shape = tuple[int, int]
"""Nodes, and how long a job is expected to take on them, ticks."""


class Reservation(NamedTuple):
    """Room for a waiting job: nodes from a start on; times in ticks."""

    start: int
    length: int
    nodes: int
    row: int = 0
    """Of the Ousterhout matrix, where nodes are shared in time."""

    @property
    def end(self) -> int:
        """Ticks."""
        return self.start + self.length


class Reservable(Protocol):
    """What a plan needs to know of a waiting job."""

    id: int
    nodes: int
    estimate: int


Shapes = Sequence[Shape]
"""The shapes that a job can have, the preferred one first."""
