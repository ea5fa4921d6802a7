"""Reservations in the rows of the Ousterhout matrix, each backfilled as a machine (Zhang et al. 2003, section 5.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from clustermodel.plans.profile import Profile, Reservation, ReservationBook, earliest_completion

if TYPE_CHECKING:
    from clustermodel.policies.view import QueuedJob


class RowPlans(ReservationBook):
    """Reservations in the rows of the Ousterhout matrix, each backfilled as a machine (Zhang et al. 2003, section 5.2)."""

    # A waiting job's reservation, a start in a row, moves only to an earlier start, in any row.

    __slots__ = ("_nodes", "now")

    def __init__(self, nodes: int, rows: int) -> None:
        super().__init__(Profile(nodes) for _ in range(rows))
        self._nodes = nodes
        self.now = 0

    def rebuild(self, now: int, ends: Sequence[Iterable[tuple[int, int]]]) -> None:
        """Rebuild the profiles of rows that hold gangs with these (predicted end, nodes); reservations keep their starts."""
        self.now = now
        reserved: list[list[tuple[int, int]]] = [[] for _ in ends]
        for job_id, reservation in self.reserved.items():
            start, length, nodes, row = reservation
            if start < now:
                start = now
                self.reserved[job_id] = reservation._replace(start=now)
            reserved[row] += ((start, -nodes), (start + length, nodes))
        self.profiles = [Profile.of_running(self._nodes, now, *of_row) for of_row in zip(ends, reserved)]  # noqa: B905

    def may_enter(self, row: int, nodes: int, end: int) -> bool:
        """Return whether ``nodes`` of ``row`` are not reserved from now until ``end``."""
        return self.profiles[row].fits(nodes, end - self.now)

    def move_gang(self, source: int, target: int, nodes: int, end: int) -> None:
        """Move a gang of so many nodes, or the reservation that begins now, from row to row."""
        self.profiles[target].reserve(self.now, end, nodes)
        self.profiles[source].release(self.now, end, nodes)

    def improve(self, job: QueuedJob, rows: Iterable[int]) -> Reservation:
        """Move the reservation of ``job`` to its earliest possible start in its row or in ``rows``, and return it."""
        start, length, nodes, row = reservation = self.reserved[job.id]
        best, best_row, profiles = start, row, self.profiles
        if profiles[row].most_free_before(start) >= nodes:
            best = profiles[row].earlier(nodes, length, start, self.now)
        for other in rows:
            if other == row or profiles[other].most_free_before(best) < nodes:
                continue
            if (found := profiles[other].earliest(nodes, length, best - 1)) >= 0:
                best, best_row = found, other
        if best < start:
            self.move(job, reservation := Reservation(best, length, nodes, best_row))
        return reservation

    def place(self, job: QueuedJob, length: int, rows: Iterable[int]) -> Reservation:
        """Enter a reservation for ``job`` at the earliest start in any of ``rows``, and return it."""
        self.keep(job, best := earliest_completion(((job.nodes, length),), self.profiles, rows))
        return best

    def postpone(self, job: QueuedJob, start: int) -> None:
        """Move the reservation of ``job``, which begins now, to a later start, even where too few nodes are free then."""
        reservation = self.reserved[job.id]
        self.drop(job)
        self.profiles[reservation.row].overbook(start, start + reservation.length, reservation.nodes)
        self.reserved[job.id] = reservation._replace(start=start)

    def rows_free_now(self, reservation: Reservation, rows: Iterable[int]) -> list[int]:
        """Return the row of a reservation that begins now, and those of ``rows`` that could hold it as well."""
        start, length, nodes, row = reservation
        return [row, *(other for other in rows if other != row and self.profiles[other].fits_at(start, nodes, length))]

    def take_up(self, job: QueuedJob, row: int, columns: int = 0) -> None:
        """Start ``job`` now in ``row``: in its reservation, or in place of it in another row."""
        # `columns`, a bitmask, matter only where nodes are told apart.
        reservation = self.reserved.pop(job.id)
        if reservation.row != row:
            self.move_gang(reservation.row, row, reservation.nodes, reservation.end)
