"""A plan: the running jobs' profile with reservations for waiting jobs in it.

The one vocabulary of the backfilling family.  EASY keeps reservations for the first few jobs of the queue, conservative
backfilling for all; both make them with :meth:`Plan.keep`, improve them with :meth:`Plan.compress` and never let a
reservation become later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import Protocol

from clustermodel.schedule.reservation import Reservable, Reservation, Shape, Shapes
from clustermodel.schedule.running_profile import RunningProfile


class EndedGang(Protocol):
    """What a plan needs to know of a gang that has ended."""

    @property
    def job(self) -> Reservable:
        """Which job it was."""

    @property
    def nodes(self) -> int:
        """How many nodes it held."""

    @property
    def expected_end(self) -> int:
        """When it was expected to end."""


class Plan(RunningProfile):
    """A profile that also subtracts the reservations of waiting jobs; times in ticks.

    Args:
        nodes: size of the machine.
        may_overrun: whether running jobs can outlive their estimates.
    """

    __slots__ = ("_alarm", "_due", "reserved")

    def __init__(self, nodes: int, *, may_overrun: bool) -> None:
        super().__init__(nodes, may_overrun=may_overrun)
        self.reserved: dict[int, Reservation] = {}
        """Waiting job's id -> its reservation."""
        self._alarm: int | None = None
        self._due: list[tuple[int, int]] = []  # heap of (reserved start, job id); an entry that moved since is stale

    def catch_up(self, ended: Iterable[EndedGang], now: int) -> bool:
        """Forget the past and take out the gangs that have ended; tell whether one of them ended early: room was made."""
        self.advance(now)
        room_made = False
        for gang in ended:
            room_made |= self.end(gang.job.id, gang.nodes, now, gang.expected_end)
        return room_made

    def earliest_room(self, shapes: Shapes) -> Reservation:
        """Return the room in which a job that can have these shapes ends first; of equally good ones, the first."""
        nodes, length = shapes[0]
        best = Reservation(self.earliest(nodes, length), length, nodes)
        for nodes, length in shapes[1:]:
            start = self.earliest_before(nodes, length, best.end - length)
            if start + length < best.end:
                best = Reservation(start, length, nodes)
        return best

    def keep(self, job: Reservable, room: Reservation) -> None:
        """Reserve ``room`` for ``job``."""
        self.reserve(room.start, room.end, room.nodes)
        self._note(job, room)

    def place(self, job: Reservable) -> Reservation:
        """Reserve the earliest room for ``job``, in the shape that it asked for, and return it."""
        length, nodes = job.estimate, job.nodes
        room = Reservation(self.earliest(nodes, length), length, nodes)
        self.keep(job, room)
        return room

    def drop(self, job: Reservable) -> None:
        """Give up the reservation of ``job``, which has not started."""
        room = self.reserved.pop(job.id)
        if (start := max(room.start, self.beginning)) < room.end:
            self.release(start, room.end, room.nodes)

    def take_up(self, job: Reservable) -> Reservation:
        """Return the room that has begun, for ``job`` to start in it."""
        return self.reserved.pop(job.id)

    def compress(self, jobs: Iterable[Reservable], now: int) -> None:
        """Move each reservation, in the order of ``jobs``, to the earliest time it can have with the others in place.

        This is what taking a job out and placing it again does (001, section 3.2), without re-planning a queue of a
        thousand jobs at each of 300,000 early ends: a job is tested where it stands (:meth:`earlier`), moved only if it
        can be, and not tested from the beginning again if an equally large one has just failed there.
        """
        reserved = self.reserved
        failed: dict[Shape, int] = {}  # no job of this shape can start before this time
        for job in jobs:
            old, length, nodes, _ = reserved[job.id]
            not_before = now
            if (tried := failed.get((nodes, length))) is not None and self.free_just_before(old) < nodes:
                # An equal job found no room before ``tried``, and this one cannot lean on its own room either.
                if tried >= old:
                    continue
                not_before = tried
            new = self.earlier(nodes, length, old, not_before)
            if new == old:
                failed[nodes, length] = old
                continue
            # Only the difference between the two places changes: they may overlap.
            self.reserve(new, min(new + length, old), nodes)
            self.release(max(new + length, old), old + length, nodes)
            self._note(job, Reservation(new, length, nodes))
            failed.clear()

    def reshape(self, jobs: Iterable[Reservable], shapes: Mapping[int, Shapes]) -> None:
        """Compress where jobs can have several shapes: each is taken out and takes the room in which it ends first.

        Of the rooms that begin no later than the one it had, which is a guarantee.

        Args:
            jobs: in the order in which they choose.
            shapes: job id -> its shapes.
        """
        for job in jobs:
            held = self.reserved[job.id]
            self.release(held.start, held.end, held.nodes)
            best = held
            for nodes, length in shapes[job.id]:
                latest = min(held.start, best.end - length)
                start = self.earliest_before(nodes, length, latest + 1)
                if start <= latest and (start + length, start) < (best.end, best.start):
                    best = Reservation(start, length, nodes)
            self.keep(job, best)

    def next_start(self) -> int | None:
        """Return the earliest reserved start, ``None`` without reservations."""
        due, reserved = self._due, self.reserved
        while due and ((room := reserved.get(due[0][1])) is None or room.start != due[0][0]):
            heappop(due)
        return due[0][0] if due else None

    def new_alarm(self) -> int | None:
        """Return the earliest reserved start if it is not the one returned last, for the policy's alarm clock."""
        start = self.next_start()
        if start is None or start == self._alarm:
            return None
        self._alarm = start
        return start

    def due(self, now: int) -> list[int]:
        """Return the jobs whose reserved start has come, the lowest id first."""
        due: list[int] = []
        while (start := self.next_start()) is not None and start <= now:
            job_id = heappop(self._due)[1]
            if not due or due[-1] != job_id:  # noted twice if it was dropped and placed at the same time again
                due.append(job_id)
        return due

    def _note(self, job: Reservable, room: Reservation) -> None:
        self.reserved[job.id] = room
        heappush(self._due, (room.start, job.id))
