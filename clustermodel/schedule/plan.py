"""A plan: the running jobs' profile with reservations for waiting jobs in it.

The one vocabulary of the backfilling family.  EASY keeps reservations for the first few jobs of the queue, conservative
backfilling for all; both make them with :meth:`Plan.place`, improve them with :meth:`Plan.compress` and never let a
reservation become later.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Protocol

from clustermodel.schedule.running import RunningProfile


class Reservable(Protocol):
    """What a plan needs to know of a waiting job."""

    id: int
    nodes: int
    estimate: int


class EndedGang(Protocol):
    """What a plan needs to know of a gang that has ended."""

    @property
    def job(self) -> Reservable:
        """Which job it was."""

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
        self.reserved: dict[int, int] = {}
        """Waiting job's id -> its reserved start."""
        self._alarm: int | None = None
        self._due: list[tuple[int, int]] = []  # heap of (reserved start, job id); an entry that moved since is stale

    def catch_up(self, ended: Iterable[EndedGang], now: int) -> bool:
        """Forget the past and take out the gangs that have ended; tell whether one of them ended early: room was made."""
        self.advance(now)
        room_made = False
        for gang in ended:
            room_made |= self.end(gang.job.id, gang.job.nodes, now, gang.expected_end)
        return room_made

    def place(self, job: Reservable) -> int:
        """Reserve the earliest room for ``job`` and return its start."""
        start = self.earliest(job.nodes, job.estimate)
        self.reserve(start, start + job.estimate, job.nodes)
        self._note(job, start)
        return start

    def drop(self, job: Reservable) -> None:
        """Give up the reservation of ``job``, which has not begun."""
        start = self.reserved.pop(job.id)
        self.release(start, start + job.estimate, job.nodes)

    def take_up(self, job: Reservable, now: int) -> None:
        """Start ``job`` in the room that it has reserved from ``now`` on."""
        del self.reserved[job.id]
        self.note_start(job.id, job.nodes, now + job.estimate)

    def compress(self, jobs: Iterable[Reservable], now: int) -> None:
        """Move each reservation, in the order of ``jobs``, to the earliest time it can have with the others in place.

        This is what taking a job out and placing it again does (001, section 3.2), without re-planning a queue of a
        thousand jobs at each of 300,000 early ends: a job is tested where it stands (:meth:`earlier`), moved only if it
        can be, and not tested from the beginning again if an equally large one has just failed there.
        """
        reserved = self.reserved
        failed: dict[tuple[int, int], int] = {}  # (nodes, estimate) -> no such job can start before this time
        for job in jobs:
            nodes, length, old = job.nodes, job.estimate, reserved[job.id]
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
            self._note(job, new)
            failed.clear()

    def next_start(self) -> int | None:
        """Return the earliest reserved start, ``None`` without reservations."""
        due, reserved = self._due, self.reserved
        while due and reserved.get(due[0][1]) != due[0][0]:
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
        while self.next_start() is not None and self._due[0][0] <= now:
            job_id = heappop(self._due)[1]
            if not due or due[-1] != job_id:  # noted twice if it was dropped and placed at the same time again
                due.append(job_id)
        return due

    def _note(self, job: Reservable, start: int) -> None:
        self.reserved[job.id] = start
        heappush(self._due, (start, job.id))
