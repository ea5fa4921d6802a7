"""Reservations in the rows of the Ousterhout matrix: each virtual machine is backfilled (Zhang et al. 2003, section 5.2).

Each row has an availability profile: its gangs until their predicted ends, and the reservations of waiting jobs.  A waiting job
holds one reservation, a start in a row.  The reservation moves only to an earlier start, in any row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clustermodel.schedule.profile import Profile
from clustermodel.schedule.reservations import Reservable, Reservation, ReservationBook, earliest_completion


class RowPlans(ReservationBook):
    """Reservations in the profiles of all rows; times in ticks.

    Args:
        nodes: number of columns.
        rows: number of rows, the multiprogramming level.
    """

    __slots__ = ("_nodes", "now")

    def __init__(self, nodes: int, rows: int) -> None:
        super().__init__(Profile(nodes) for _ in range(rows))
        self._nodes = nodes
        self.now = 0

    def rebuild(self, now: int, ends: Sequence[Iterable[tuple[int, int]]]) -> None:
        """Rebuild the profiles of rows that hold gangs with these (predicted end, nodes); reservations keep their starts.

        A gang may be predicted to end later than before, because a slice was cut short or its row's turn comes last.  Then a
        reservation overlaps the gang, and its job starts as soon as the nodes are free.  Were the reservation moved behind
        whatever is in its way, a moment's delay would grow to the length of a job.

        Args:
            now: the present.
            ends: for each row.
        """
        self.now = now
        self.profiles = [Profile.of_running(self._nodes, now, of_row) for of_row in ends]
        for job_id, reservation in self.reserved.items():
            start, length, nodes, row = reservation
            if start < now:
                self.reserved[job_id] = reservation._replace(start=now)
            self.profiles[row].overbook(max(start, now), max(start, now) + length, nodes)

    def may_enter(self, row: int, nodes: int, end: int) -> bool:
        """Return whether ``nodes`` of ``row`` are not reserved from now until ``end``."""
        return self.profiles[row].fits(nodes, end - self.now)

    def move_gang(self, source: int, target: int, nodes: int, end: int) -> None:
        """Move a gang of so many nodes, or the reservation that begins now, from row to row."""
        self.profiles[target].reserve(self.now, end, nodes)
        self.profiles[source].release(self.now, end, nodes)

    def improve(self, job: Reservable, rows: Iterable[int]) -> Reservation:
        """Move the reservation of ``job`` to its earliest possible start in its row or in ``rows``, and return it."""
        held = best = self.reserved[job.id]
        start, length, nodes, row = held
        if (earlier := self.profiles[row].earlier(nodes, length, start, self.now)) < start:
            best = held._replace(start=earlier)
        for other in rows:
            if other != row and (found := self.profiles[other].earliest(nodes, length, best.start - 1)) >= 0:
                best = Reservation(found, length, nodes, other)
        if best is not held:
            self.move(job, best)
        return best

    def place(self, job: Reservable, length: int, rows: Iterable[int]) -> Reservation:
        """Enter a reservation for ``job`` at the earliest start in any of ``rows``, and return it."""
        self.keep(job, best := earliest_completion(((job.nodes, length),), self.profiles, rows))
        return best

    def postpone(self, job: Reservable, start: int) -> None:
        """Move the reservation of ``job``, which begins now, to a later start, even where too few nodes are free then."""
        held = self.reserved[job.id]
        self.drop(job)
        self.profiles[held.row].overbook(start, start + held.length, held.nodes)
        self.reserved[job.id] = held._replace(start=start)

    def rows_free_now(self, reservation: Reservation, rows: Iterable[int]) -> list[int]:
        """Return the row of a reservation that begins now, and those of ``rows`` that could hold it as well.

        In its own row the nodes may not be free yet; see :meth:`rebuild`.
        """
        start, length, nodes, row = reservation
        return [row, *(other for other in rows if other != row and self.profiles[other].fits_at(start, nodes, length))]

    def take_up(self, job: Reservable, row: int) -> None:
        """Start ``job`` now in ``row``: in its reservation, or in place of it in another row."""
        held = self.reserved.pop(job.id)
        if held.row != row:
            self.move_gang(held.row, row, held.nodes, held.end)
