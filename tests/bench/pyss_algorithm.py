"""FCFS, EASY and conservative backfilling with a list of periods that is searched from its beginning, as pyss does it.

pyss runs under Python 2 only and states no licence.  This program is written from the description of its method: an event queue
and a list of periods with their free nodes ("CPU snapshot"), which is split where jobs start and end, and which is searched
linearly for the first start at which a job fits.  It shares no line with pyss.  All events of an instant precede its cycle.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from math import inf
from operator import itemgetter


class Period:
    """A time between two changes of the plan, with the nodes that are free in it."""

    __slots__ = ("end", "free", "start")

    def __init__(self, start: float, end: float, free: int) -> None:
        self.start = start
        self.end = end
        self.free = free


class Snapshot:
    """The periods from now on, in order; the last one does not end."""

    def __init__(self, nodes: int) -> None:
        self.periods = [Period(0, inf, nodes)]

    def advance(self, now: float) -> None:
        """Drop the periods that are over."""
        while self.periods[0].end <= now:
            del self.periods[0]
        self.periods[0].start = now

    def fits_now(self, nodes: int, duration: float) -> bool:
        """Return whether so many nodes are free from now on, for so long."""
        end = self.periods[0].start + duration
        for period in self.periods:
            if period.start >= end:
                break
            if period.free < nodes:
                return False
        return True

    def earliest(self, nodes: int, duration: float) -> float:
        """Return the first time from which on so many nodes are free for so long."""
        start = self.periods[0].start
        for period in self.periods:
            if period.free < nodes:
                start = period.end
            elif period.end >= start + duration:
                break
        return start

    def change(self, start: float, end: float, nodes: int) -> None:
        """Add to the free nodes between two times."""
        self._split(start)
        self._split(end)
        for period in self.periods:
            if start <= period.start < end:
                period.free += nodes

    def _split(self, time: float) -> None:
        for place, period in enumerate(self.periods):
            if period.start < time < period.end:
                self.periods.insert(place + 1, Period(time, period.end, period.free))
                period.end = time
                return


Job = Sequence[int]
"""Submission, nodes, run time and estimate, in seconds."""


END, SUBMISSION, START = range(3)


class Simulation:
    """One run; jobs are numbered in their order."""

    def __init__(self, jobs: Sequence[Job], nodes: int) -> None:
        self.jobs = jobs
        self.snapshot = Snapshot(nodes)
        self.queue: list[int] = []
        self.starts = [0.0] * len(jobs)
        self.now = 0.0
        self.events = [(job[0], SUBMISSION, number) for number, job in enumerate(jobs)]
        """Time, kind, job."""
        heapify(self.events)

    def run(self, policy: str) -> list[float]:
        """Return the start of each job."""
        cycle = {"fcfs": self.start_heads, "easy": self.backfill, "conservative": self.start_due}[policy]
        plans = policy == "conservative"
        while self.events:
            self.now = self.events[0][0]
            self.snapshot.advance(self.now)
            arrived, is_early = [], False
            while self.events and self.events[0][0] == self.now:
                _, kind, number = heappop(self.events)
                if kind == END:
                    is_early = self.give_back(number) or is_early
                elif kind == SUBMISSION:
                    arrived.append(number)
            if plans and is_early:
                self.compress()
            self.queue += arrived
            if plans:
                for number in arrived:
                    self.reserve(number)
            cycle()
        return self.starts

    def give_back(self, number: int) -> bool:
        """Free what a job that ends now was expected to use; return whether it ends early."""
        _, nodes, run, estimate = self.jobs[number]
        if run >= estimate:
            return False
        self.snapshot.change(self.now, self.starts[number] + estimate, nodes)
        return True

    def reserve(self, number: int) -> None:
        """Plan a job where it fits first."""
        _, nodes, _, estimate = self.jobs[number]
        start = self.snapshot.earliest(nodes, estimate)
        self.snapshot.change(start, start + estimate, -nodes)
        self.starts[number] = start

    def unreserve(self, number: int) -> None:
        """Take a job out of the plan."""
        _, nodes, _, estimate = self.jobs[number]
        self.snapshot.change(self.starts[number], self.starts[number] + estimate, nodes)

    def compress(self) -> None:
        """Plan each waiting job again, in queue order."""
        for number in self.queue:
            self.unreserve(number)
            self.reserve(number)

    def begin(self, number: int) -> None:
        """Let a job that is in the plan run."""
        self.starts[number] = self.now
        heappush(self.events, (self.now + self.jobs[number][2], END, number))

    def start_heads(self) -> None:
        """Start jobs in queue order until one does not fit."""
        while self.queue:
            _, nodes, _, estimate = self.jobs[self.queue[0]]
            if not self.snapshot.fits_now(nodes, estimate):
                break
            number = self.queue.pop(0)
            self.reserve(number)
            self.begin(number)

    def backfill(self) -> None:
        """Start the first jobs, and then all that fit without delaying the one at the head."""
        self.start_heads()
        if len(self.queue) < 2:
            return
        head = self.queue[0]
        self.reserve(head)
        for number in self.queue[1:]:
            _, nodes, _, estimate = self.jobs[number]
            if self.snapshot.fits_now(nodes, estimate):
                self.queue.remove(number)
                self.reserve(number)
                self.begin(number)
        self.unreserve(head)

    def start_due(self) -> None:
        """Start the jobs whose reservations begin now, and wake up for the next one."""
        due = [number for number in self.queue if self.starts[number] == self.now]
        for number in due:
            self.queue.remove(number)
            self.begin(number)
        if self.queue:
            following = min(self.queue, key=self.starts.__getitem__)
            if not self.events or self.starts[following] < self.events[0][0]:
                heappush(self.events, (self.starts[following], START, following))


def simulate(jobs: Sequence[Job], nodes: int, policy: str) -> list[float]:
    """Return the starts of jobs, which are in the order of submission."""
    assert list(map(itemgetter(0), jobs)) == sorted(map(itemgetter(0), jobs))
    return Simulation(jobs, nodes).run(policy)
