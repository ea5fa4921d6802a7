"""Reservations of waiting jobs, and the book that keeps them in availability profiles.

Backfilling on the whole machine has one profile (:class:`~clustermodel.schedule.plan.Plan`).  Gang scheduling has one for each
row of the Ousterhout matrix (:class:`~clustermodel.schedule.row_plans.RowPlans`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from clustermodel.schedule.profile import Profile

Shape = tuple[int, int]
"""A number of nodes and the expected run time on them, ticks."""
Shapes = Sequence[Shape]
"""The shapes that a moldable job can have, the preferred one first; a rigid job has one."""


class Reservation(NamedTuple):
    """Nodes reserved for a waiting job; times in ticks."""

    start: int
    length: int
    nodes: int
    row: int = 0
    """The row of the Ousterhout matrix, where jobs share nodes in time."""

    @property
    def end(self) -> int:
        """Start plus length, ticks."""
        return self.start + self.length


class Reservable(Protocol):
    """What a reservation book needs to know of a waiting job."""

    @property
    def id(self) -> int:
        """The job's number."""

    @property
    def nodes(self) -> int:
        """How many nodes it asks for."""


class ReservationBook:
    """Reservations in one or more profiles; times in ticks.

    A job holds one reservation at most, in one profile.  Its nodes are subtracted from that profile.

    Args:
        profiles: one for each row; space sharing has one row.
    """

    __slots__ = ("profiles", "reserved")

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self.profiles = list(profiles)
        self.reserved: dict[int, Reservation] = {}
        """Waiting job's id -> its reservation."""

    def keep(self, job: Reservable, reservation: Reservation) -> None:
        """Enter a reservation for ``job``.

        Raises:
            DecisionError: too few nodes are free then.
        """
        self.profiles[reservation.row].reserve(reservation.start, reservation.end, reservation.nodes)
        self._enter(job.id, reservation)

    def drop(self, job: Reservable) -> None:
        """Cancel the reservation of ``job``, which has not started."""
        held = self.reserved.pop(job.id)
        profile = self.profiles[held.row]
        if (start := max(held.start, profile.beginning)) < held.end:
            profile.release(start, held.end, held.nodes)

    def move(self, job: Reservable, new: Reservation) -> None:
        """Move the reservation of ``job`` to an earlier start or to another row; nodes and length stay.

        Raises:
            DecisionError: too few nodes are free then.
        """
        start, length, nodes, row = self.reserved[job.id]
        new_start, _, _, new_row = new
        if new_row == row:
            self.profiles[row].move_up(start, new_start, length, nodes)
        else:
            self.profiles[row].release(start, start + length, nodes)
            self.profiles[new_row].reserve(new_start, new_start + length, nodes)
        self._enter(job.id, new)

    def _enter(self, job_id: int, reservation: Reservation) -> None:
        self.reserved[job_id] = reservation


def earliest_completion(shapes: Shapes, profiles: Sequence[Profile], rows: Iterable[int] = (0,)) -> Reservation:
    """Return where a job of one of these shapes completes first: of equally good places the first row, then the first shape.

    Args:
        shapes: at least one.
        profiles: by row.
        rows: those to search, at least one.
    """
    best: Reservation | None = None
    for row in rows:
        earliest = profiles[row].earliest
        for nodes, length in shapes:
            if best is None:
                best = Reservation(earliest(nodes, length), length, nodes, row)
            elif (start := earliest(nodes, length, best.end - length - 1)) >= 0:
                best = Reservation(start, length, nodes, row)
    assert best is not None, "there is a shape and a row"
    return best
