"""Reservations in the rows of the Ousterhout matrix, each backfilled as a machine (Zhang et al. 2003, section 5.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from clustermodel.plans.pool_plans import RowPlan
from clustermodel.plans.pools import Split
from clustermodel.ticks import NEVER

if TYPE_CHECKING:
    from collections.abc import Callable

    from clustermodel.plans.ousterhout import Occupant
    from clustermodel.policies.view import QueuedJob


class RowReservation(NamedTuple):
    """Nodes reserved for a waiting job in a row; times in ticks."""

    start: int
    length: int
    split: Split
    row: int

    @property
    def end(self) -> int:
        return self.start + self.length


_reservation: Final[Callable[[tuple[int, int, Split, int]], RowReservation]] = partial(tuple.__new__, RowReservation)
"""Makes a reservation in a third of the time."""


class RowPlans:
    """A plan for each row, rebuilt at each scheduling event; and reservations, of each waiting job at most one, in any row."""

    # A reservation moves only to an earlier start.  It stays where gangs are late, with which a row is overbooked.

    __slots__ = ("_ends", "_held", "now", "reserved", "rows")

    def __init__(self, rows: Sequence[RowPlan]) -> None:
        self.rows = rows
        self.reserved: dict[int, RowReservation] = {}  # waiting job's id -> its reservation
        self.now = 0
        self._ends: Mapping[int, int] = {}  # gang's job id -> its predicted end
        self._held: list[tuple[int, int]] = []  # columns, a bitmask, that are taken in every row, after their predicted ends

    def hold(self, columns: int, end: int) -> None:
        """Let columns, a bitmask, be taken in every row until ``end``, from when the plans are rebuilt next."""
        self._held.append((end, columns))

    def rebuild(self, now: int, homes: Sequence[Mapping[int, Occupant]], ends: Mapping[int, int]) -> None:
        """Rebuild the plans of rows with these gangs, of which the ends are predicted; reservations keep their starts."""
        self.now, self._ends = now, ends
        reserved: list[list[RowReservation]] = [[] for _ in homes]
        for job_id, reservation in self.reserved.items():
            start, length, split, row = reservation
            if start >= now:
                reserved[row].append(reservation)
            else:
                self.reserved[job_id] = moved = _reservation((now, length, split, row))
                reserved[row].append(moved)
        held = self._held
        for plan, gangs, of_row in zip(self.rows, homes, reserved):  # noqa: B905  equally many
            plan.lay_out(now, gangs, ends, held, of_row)
        self._held = []

    # What gangs and jobs may have beside reservations.

    def may_enter(self, gang: Occupant, row: int, *, migrates: bool = False) -> bool:
        """Return whether ``gang`` can have its home in ``row``, perhaps on other columns, without violating a reservation."""
        return self.rows[row].admits(gang, self._ends[gang.job.id] - self.now, migrates)

    def moved(self, gang: Occupant, source: int, columns: int) -> None:
        """Move ``gang``, which had ``columns`` in row ``source``, to its home row."""
        length = self._ends[gang.job.id] - self.now
        row = self.rows[gang.home]
        row.reserve(self.now, length, row.split_of_gang(gang, gang.columns), beyond_capacity=True)
        self.rows[source].release(self.now, length, row.split_of_gang(gang, columns))

    def allowances(self, job_id: int, row: int, end: int | None = None) -> list[int]:
        """Return how many nodes of each pool a job, or a gang, can have in a row until ``end``, its own by default."""
        free = self.rows[row].least_free(self.now, (self._ends[job_id] if end is None else end) - self.now)
        reservation = self.reserved.get(job_id)
        if reservation is not None and reservation.row == row and reservation.start <= self.now:
            for pool, nodes in reservation.split:  # its own reservation, perhaps where too few are free
                free[pool] = max(free[pool] + nodes, nodes)
        return free

    def may_start(self, job: QueuedJob, row: int) -> bool:
        """Return whether a job whose reservation begins now may have as many nodes in ``row`` as long."""
        start, length, _, own = self.reserved[job.id]
        return row == own or sum(self.rows[row].least_free(start, length)) >= job.nodes

    # Reservations.

    def place(self, job: QueuedJob, length: int, rows: Iterable[int]) -> RowReservation:
        """Enter a reservation for ``job`` at the earliest start in any of ``rows``, the first of equals, and return it."""
        best = _reservation((NEVER, length, (), 0))
        for row in rows:
            start, split = self.rows[row].soonest(job, length, best.start - 1)
            if start >= 0:
                best = _reservation((start, length, split, row))
        return self._enter(job, best)

    def improve(self, job: QueuedJob, rows: Iterable[int]) -> RowReservation:
        """Move the reservation of ``job`` to its earliest possible start in its row or in ``rows``, and return it."""
        reservation = self.reserved[job.id]
        start, length, split, row = reservation
        best, parts = self.rows[row].pull(start, length, split, job)
        if best < start:
            self.reserved[job.id] = reservation = _reservation((best, length, parts, row))
        best_row, plans = row, self.rows
        for other in rows:
            if other != row:
                start, split = plans[other].soonest(job, length, best - 1)
                if start >= 0:
                    best, parts, best_row = start, split, other
        if best_row != row:
            self.drop(job)
            return self._enter(job, _reservation((best, length, parts, best_row)))
        return reservation

    def is_barred(self, job: QueuedJob) -> bool:
        """Return whether a job that is due may not have the nodes of its reservation any more: it would reach into a window."""
        reservation = self.reserved.get(job.id)
        if reservation is None or reservation.start > self.now:
            return False
        return self.rows[reservation.row].bars(job, reservation.split)

    def postpone(self, job: QueuedJob, start: int) -> None:
        """Move the reservation of ``job``, which begins now, to a later start, even where too few nodes are free then."""
        reservation = self.reserved[job.id]
        self.drop(job)
        self._enter(job, reservation._replace(start=start))

    def take_up(self, gang: Occupant) -> None:
        """Let ``gang`` start now at home, in its reservation or in place of it."""
        start, length, split, row = self.reserved[gang.job.id]
        own = self.rows[row].split_of_gang(gang, gang.columns)
        if gang.home == row and own == split:
            del self.reserved[gang.job.id]  # what it had reserved is taken by the gang now
            return
        self.drop(gang.job)
        self.rows[gang.home].reserve(start, length, own, beyond_capacity=True)

    def drop(self, job: QueuedJob) -> None:
        start, length, split, row = self.reserved.pop(job.id)
        if split:
            self.rows[row].release(start, length, split)

    def _enter(self, job: QueuedJob, reservation: RowReservation) -> RowReservation:
        start, length, split, row = self.reserved[job.id] = reservation
        if split:  # windows may let it start at no time
            self.rows[row].reserve(start, length, split, beyond_capacity=True)
        return reservation
