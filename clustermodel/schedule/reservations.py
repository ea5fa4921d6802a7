"""Reservations of waiting jobs, and the books that keep them in availability profiles.

Backfilling on the whole machine has one profile (:class:`Plan`), gang scheduling one for each row of the Ousterhout matrix
(:class:`RowPlans`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from clustermodel.schedule.profile import Profile, RunningProfile

if TYPE_CHECKING:
    from clustermodel.policies.view import QueuedJob

Shape = tuple[int, int]  # a number of nodes and the expected run time on them, ticks
Shapes = Sequence[Shape]  # the shapes that a moldable job can have, the preferred one first; a rigid job has one


class Reservation(NamedTuple):
    """Nodes reserved for a waiting job; times in ticks."""

    start: int
    length: int
    nodes: int
    row: int = 0  # the row of the Ousterhout matrix, where jobs share nodes in time

    @property
    def end(self) -> int:
        return self.start + self.length


class ReservationBook:
    """Reservations, of each waiting job at most one, in one of several profiles, from which its nodes are subtracted."""

    __slots__ = ("profiles", "reserved")

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self.profiles = list(profiles)
        self.reserved: dict[int, Reservation] = {}  # waiting job's id -> its reservation

    def keep(self, job: QueuedJob, reservation: Reservation) -> None:
        """Enter a reservation for ``job``; a DecisionError if too few nodes are free then."""
        self.profiles[reservation.row].reserve(reservation.start, reservation.end, reservation.nodes)
        self._enter(job.id, reservation)

    def drop(self, job: QueuedJob) -> None:
        reservation = self.reserved.pop(job.id)
        profile = self.profiles[reservation.row]
        if (start := max(reservation.start, profile.times()[0])) < reservation.end:
            profile.release(start, reservation.end, reservation.nodes)

    def move(self, job: QueuedJob, new: Reservation) -> None:
        """Move the reservation of ``job`` to an earlier start or to another row; nodes and length stay."""
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
    """Return where a job of one of these shapes completes first: of equally good places the first row, then the first shape."""
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


class Plan(ReservationBook):
    """Reservations among the running jobs of a machine: EASY keeps few, conservative backfilling one for each waiting job."""

    __slots__ = ("_alarm", "_starts", "profile")

    def __init__(self, profile: RunningProfile) -> None:
        super().__init__([profile])
        self.profile = profile
        self._alarm: int | None = None
        self._starts: list[tuple[int, int]] = []  # heap of (reserved start, job id); an entry that moved since is stale

    def earliest(self, shapes: Shapes) -> Reservation:
        """Return where a job of one of these shapes completes first; of equally good places that of the first shape."""
        return earliest_completion(shapes, self.profiles)

    def start_reserved(self, job: QueuedJob) -> Reservation:
        """Start ``job`` in its reservation, which has begun, and return the reservation."""
        reservation = self.reserved.pop(job.id)
        self.profile.note_start(job.id, reservation.nodes, reservation.end)
        return reservation

    def compress(self, jobs: Iterable[QueuedJob], now: int) -> None:
        """Move each reservation, in the order of ``jobs``, to the earliest start possible with the others in place."""
        # The result is that of taking each job out and placing it again (Talby & Feitelson 1999, long version, section 3.2).
        # But a job is tested where it stands, and an equally large job that has just failed bounds the search.
        reserved, profile = self.reserved, self.profile
        failed: dict[tuple[int, ...], int] = {}  # no job of this length and so many nodes can start before this time
        for job in jobs:
            if (reservation := reserved.get(job.id)) is None:
                continue
            old, length, nodes, _ = reservation
            shape: tuple[int, ...] = reservation[1:3]  # with so many numbers declared, compiled modules would make it twice
            not_before = now
            if (bound := failed.get(shape)) is not None and profile.free_just_before(old) < nodes:
                # An equal job cannot start before ``bound``, and there is no gap here that this job's own nodes could extend.
                if bound >= old:
                    continue
                not_before = bound
            new = profile.earlier(nodes, length, old, not_before)
            if new == old:
                failed[shape] = old
            else:
                self.move(job, Reservation(new, length, nodes))
                failed.clear()

    def reshape(self, jobs: Iterable[QueuedJob], shapes: Mapping[int, Shapes]) -> None:
        """Compress moldable jobs: take out each, in this order, and enter it where one of its shapes completes first."""
        profile = self.profile
        for job in jobs:
            best = reservation = self.reserved[job.id]
            profile.release(reservation.start, reservation.end, reservation.nodes)
            for nodes, length in shapes[job.id]:
                start = profile.earliest(nodes, length, min(reservation.start, best.end - length))
                if start >= 0 and (start + length, start) < (best.end, best.start):
                    best = Reservation(start, length, nodes)
            self.keep(job, best)

    def next_start(self) -> int | None:
        """Return the earliest reserved start, ``None`` without reservations."""
        starts, reserved = self._starts, self.reserved
        while starts:
            start, job_id = starts[0]
            if (reservation := reserved.get(job_id)) is not None and reservation.start == start:
                return start
            heappop(starts)
        return None

    def new_alarm(self) -> int | None:
        """Return the earliest reserved start if it is not the one returned last, for the policy's alarm."""
        start = self.next_start()
        if start is None or start == self._alarm:
            return None
        self._alarm = start
        return start

    def due(self, now: int) -> list[int]:
        """Return the jobs whose reserved start has come, once: the earliest start first, then the lowest id."""
        due: list[int] = []
        while (start := self.next_start()) is not None and start <= now:
            job_id = heappop(self._starts)[1]
            if not due or due[-1] != job_id:  # entered twice if it was dropped and entered at the same start again
                due.append(job_id)
        return due

    def _enter(self, job_id: int, reservation: Reservation) -> None:
        self.reserved[job_id] = reservation
        heappush(self._starts, (reservation.start, job_id))


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

    def improve(self, job: QueuedJob, rows: Iterable[int]) -> Reservation:
        """Move the reservation of ``job`` to its earliest possible start in its row or in ``rows``, and return it."""
        reservation = best = self.reserved[job.id]
        start, length, nodes, row = reservation
        if (earlier := self.profiles[row].earlier(nodes, length, start, self.now)) < start:
            best = reservation._replace(start=earlier)
        for other in rows:
            if other != row and (found := self.profiles[other].earliest(nodes, length, best.start - 1)) >= 0:
                best = Reservation(found, length, nodes, other)
        if best is not reservation:
            self.move(job, best)
        return best

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

    def take_up(self, job: QueuedJob, row: int) -> None:
        """Start ``job`` now in ``row``: in its reservation, or in place of it in another row."""
        reservation = self.reserved.pop(job.id)
        if reservation.row != row:
            self.move_gang(reservation.row, row, reservation.nodes, reservation.end)
