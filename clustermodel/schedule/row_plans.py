"""Reservations in the rows of the Ousterhout matrix: backfilling in each virtual machine (002, section 5.2).

Each row has an availability profile of its own: its gangs until their predicted ends, and the reservations of waiting
jobs.  A waiting job holds one reservation, at a time in a row; it moves only to an earlier time, in any row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clustermodel.schedule.profile import Profile
from clustermodel.schedule.reservation import Reservable, Reservation


class RowPlans:
    """The profiles of all rows; times in ticks.

    Args:
        nodes: number of columns.
        rows: number of rows, the multiprogramming level.
    """

    def __init__(self, nodes: int, rows: int) -> None:
        self._nodes = nodes
        self.now = 0
        self.profiles = [Profile(nodes) for _ in range(rows)]
        self.reserved: dict[int, Reservation] = {}
        """Waiting job's id -> its reservation."""

    def rebuild(self, now: int, ends: Sequence[Iterable[tuple[int, int]]]) -> None:
        """Begin an instant: the rows hold gangs with these (predicted end, nodes), and reservations stay where they are.

        A gang may be predicted to end later than it was, because a slice was cut short or its row's turn comes last.
        Then a reservation takes nodes that are not free yet: its job starts as soon as they are.  Were it moved behind what
        is in its way, a moment's delay would grow to the length of a job.

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
        """Tell whether ``nodes`` of ``row`` are not reserved from now until ``end``."""
        return self.profiles[row].fits(nodes, end - self.now)

    def move(self, source: int, target: int, nodes: int, end: int) -> None:
        """A gang moves from row to row."""
        self.profiles[target].reserve(self.now, end, nodes)
        self.profiles[source].release(self.now, end, nodes)

    def improve(self, job: Reservable, rows: Iterable[int]) -> Reservation:
        """Move the reservation of ``job`` to the earliest time that it can have in its row or in ``rows``, and return it."""
        held = self.reserved[job.id]
        start, length, nodes, row = held
        best_row, best = row, self.profiles[row].earlier(nodes, length, start, self.now)
        for other in rows:
            if other != row and (found := self.profiles[other].earliest_before(nodes, length, best)) < best:
                best_row, best = other, found
        if best == start:
            return held
        self.profiles[row].release(start, start + length, nodes)
        self.profiles[best_row].overbook(best, best + length, nodes)  # where it stays in its row, as overbooked as before
        self.reserved[job.id] = improved = Reservation(best, length, nodes, best_row)
        return improved

    def place(self, job: Reservable, length: int, rows: Iterable[int]) -> Reservation:
        """Reserve the earliest time in any of ``rows`` for ``job``, which holds no reservation, and return it."""
        start, row = min((self.profiles[row].earliest(job.nodes, length), row) for row in rows)
        self.profiles[row].reserve(start, start + length, job.nodes)
        self.reserved[job.id] = placed = Reservation(start, length, job.nodes, row)
        return placed

    def rows_free_now(self, reservation: Reservation, rows: Iterable[int]) -> list[int]:
        """Return its row, and those of ``rows`` in which the room of a reservation that begins now could be as well.

        In its own row the nodes may not be free yet; see :meth:`rebuild`.
        """
        start, length, nodes, row = reservation
        return [row, *(other for other in rows if other != row and self.profiles[other].fits_at(start, nodes, length))]

    def take_up(self, job: Reservable, row: int) -> None:
        """Start ``job`` now in ``row``, in its reserved room or in equal room elsewhere."""
        held = self.reserved.pop(job.id)
        if held.row != row:
            self.move(held.row, row, held.nodes, held.start + held.length)
