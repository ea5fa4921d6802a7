"""A slow, obvious twin of the schedulers of Perkovic & Keleher 2000: rectangles in lists, nothing of SimPy or the package.

A job, running or placed, is a rectangle (start, end, nodes).  The schedule is made anew at every instant at which something
happens.  Jobs are killed at their estimates; speedup is linear.  Times are integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.twins import TwinJob

Rectangle = tuple[int, int, int]
Key = Callable[[TwinJob, int], object]


class Gang(NamedTuple):
    job: TwinJob
    start: int
    expected_end: int
    end: int
    nodes: int
    lost: bool
    """Whether it is stopped at its speculated time."""


class Trials(NamedTuple):
    longer_than: int
    shortest: int
    longest: int


@dataclass
class Twin:
    """One run; :meth:`run` fills what is listed here."""

    nodes: int
    guarantees: bool
    order: Key | None = None
    speculation: float | None = None
    tests: Trials | None = None
    widths: Callable[[int], list[int]] | None = None
    """Nodes asked for -> the alternatives, the preferred one first."""
    widest: float | None = None
    """Start-time widening, up to this multiple."""

    runs: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Job -> start, end, nodes of its last run."""
    tries: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Job, start, end, nodes of the runs that were stopped."""
    promises: dict[int, int] = field(default_factory=dict)
    """Job -> the start that it was told first, unless it started at once."""

    def run(self, jobs: Iterable[TwinJob]) -> Twin:
        self.now = -1
        self.queue: list[TwinJob] = []
        self.running: list[Gang] = []
        self.placed: dict[int, Rectangle] = {}
        self.last: dict[int, float] = {}
        self.tested: set[int] = set()
        to_come = sorted(job for job in jobs if 0 < job.nodes <= self.nodes)
        while to_come or self.queue or self.running:
            instants = [job.submit for job in to_come] + [gang.end for gang in self.running]
            instants += [start for start, _, _ in self.placed.values()] if self.guarantees else []
            self.now = min(instant for instant in instants if instant > self.now)
            room_made = self.end_what_ends()
            self.queue += [job for job in to_come if job.submit == self.now]
            to_come = [job for job in to_come if job.submit != self.now]
            self.queue.sort(key=lambda job: job.order)
            self.schedule(room_made=room_made)
            assert sum(gang.nodes for gang in self.running) <= self.nodes
        return self

    def end_what_ends(self) -> bool:
        room_made = False
        for gang in [gang for gang in self.running if gang.end == self.now]:
            self.running.remove(gang)
            room_made |= gang.expected_end > self.now
            if gang.lost:
                self.tries.append((gang.job.id, gang.start, gang.end, gang.nodes))
                self.queue.append(gang.job)
            else:
                self.runs[gang.job.id] = (gang.start, gang.end, gang.nodes)
                room_made |= self.placed.pop(gang.job.id, None) is not None
        return room_made

    # What the phases ask.

    def in_order(self, jobs: list[TwinJob]) -> list[TwinJob]:
        order = self.order
        return list(jobs) if order is None else sorted(jobs, key=lambda job: order(job, self.now))

    def shapes(self, job: TwinJob) -> list[tuple[int, int]]:
        widths = [job.nodes] if self.widths is None else self.widths(job.nodes)
        return [(width, self.time_on(job.estimate, job.nodes, width)) for width in widths]

    def time_on(self, ticks: int, asked: int, nodes: int) -> int:
        return (ticks * asked + nodes - 1) // nodes

    def rectangles(self, but: TwinJob | None = None) -> list[Rectangle]:
        held = [(gang.start, gang.expected_end, gang.nodes) for gang in self.running]
        return held + [room for job, room in self.placed.items() if but is None or job != but.id]

    def free(self, time: int, rectangles: list[Rectangle]) -> int:
        return self.nodes - sum(nodes for start, end, nodes in rectangles if start <= time < end)

    def fits(self, start: int, length: int, nodes: int, rectangles: list[Rectangle]) -> bool:
        moments = {start} | {begin for begin, _, _ in rectangles if start < begin < start + length}
        return all(self.free(moment, rectangles) >= nodes for moment in moments)

    def earliest(self, nodes: int, length: int, rectangles: list[Rectangle]) -> int:
        times = sorted({self.now} | {end for _, end, _ in rectangles if end > self.now})
        return next(start for start in times if self.fits(start, length, nodes, rectangles))

    def idle(self) -> int:
        return self.nodes - sum(gang.nodes for gang in self.running)

    # The phases.

    def schedule(self, *, room_made: bool) -> None:  # noqa: PLR0912  as many as there are parts
        order = self.in_order(self.queue)
        started: list[TwinJob] = []
        if self.guarantees:
            if room_made:
                self.compress([job for job in order if job.id in self.placed])
            for job in self.in_order([job for job in self.queue if job.id not in self.placed]):
                start, _ = self.place(job)
                if start > self.now:
                    self.promises[job.id] = start
            started = [job for job in order if self.placed[job.id][0] <= self.now]
        else:
            self.placed.clear()
            for job in order:
                start, _ = self.place(job)
                if start == self.now:
                    started.append(job)
        for job in started:
            start, end, nodes = self.placed.pop(job.id)
            self.start(job, nodes, end - start, None)
        if self.speculation is not None or self.tests is not None:
            for job in order:
                if job not in started:
                    self.speculate(job)
        if self.widest is not None:
            for job in order:
                if job in started:
                    self.widen(job)
        if not self.guarantees:
            self.placed.clear()

    def place(self, job: TwinJob) -> tuple[int, int]:
        """Place a job where it ends first; of equally good shapes the first."""
        rooms = [(self.earliest(nodes, length, self.rectangles()), length, nodes) for nodes, length in self.shapes(job)]
        start, length, nodes = min(rooms, key=lambda room: room[0] + room[1])
        self.placed[job.id] = start, start + length, nodes
        return start, nodes

    def compress(self, jobs: list[TwinJob]) -> None:
        for job in jobs:
            held = self.placed[job.id]
            others = self.rectangles(but=job)
            rooms = [held]
            for nodes, length in self.shapes(job):
                times = sorted({self.now, held[0]} | {end for _, end, _ in others if self.now < end <= held[0]})
                rooms += [(start, start + length, nodes) for start in times if self.fits(start, length, nodes, others)]
            best = min((end, start) for start, end, _ in rooms)
            if best < (held[1], held[0]):
                self.placed[job.id] = next(room for room in rooms if (room[1], room[0]) == best)

    def start(self, job: TwinJob, nodes: int, length: int, limit: int | None) -> None:
        duration = min(self.time_on(job.run, job.nodes, nodes), self.time_on(job.estimate, job.nodes, nodes))
        lost = limit is not None and limit < duration
        expected = length if limit is None else min(length, limit)
        real = limit if limit is not None and lost else duration
        self.running.append(Gang(job, self.now, self.now + expected, self.now + real, nodes, lost))
        self.queue.remove(job)

    def speculate(self, job: TwinJob) -> None:
        nodes, length = self.shapes(job)[0]
        if nodes > self.idle():
            return
        rectangles = self.rectangles()
        changes = sorted({self.now} | {start for start, _, _ in rectangles if start > self.now})
        until = next((time for time in changes if self.free(time, rectangles) < nodes), None)
        if self.guarantees:
            mine = self.placed[job.id][0]
            until = mine if until is None else min(until, mine)
        if until is None or until <= self.now:
            return
        hole = until - self.now
        share = 1.0 if self.speculation is None else self.speculation
        if job.id in self.last:
            share = max(share, (self.last[job.id] + 1) / 2)
        if share < 1 and hole >= share * length:
            limit = hole
        elif (
            self.tests is not None
            and job.id not in self.tested
            and length > self.tests.longer_than
            and hole >= self.tests.shortest
        ):
            limit = min(hole, self.tests.longest)
            self.tested.add(job.id)
        else:
            return
        self.last[job.id] = limit / length
        self.start(job, nodes, length, limit)

    def widen(self, job: TwinJob) -> None:
        assert self.widest is not None
        index = next(index for index, gang in enumerate(self.running) if gang.job is job and gang.start == self.now)
        gang = self.running[index]
        others = self.rectangles()
        others.remove((gang.start, gang.expected_end, gang.nodes))
        length = gang.expected_end - gang.start
        for nodes in range(min(int(job.nodes * self.widest), self.nodes), gang.nodes, -1):
            shorter = self.time_on(job.estimate, job.nodes, nodes)
            if shorter < length and self.fits(self.now, shorter, nodes, others):
                end = self.now + min(self.time_on(job.run, job.nodes, nodes), shorter)
                self.running[index] = Gang(job, self.now, self.now + shorter, end, nodes, lost=False)
                return
