"""The availability profile together with the running jobs' expected ends: the starting point of every backfilling plan."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

from clustermodel.schedule.profile import Profile
from clustermodel.ticks import TICKS_PER_SECOND

SHORTEST_EXTENSION: Final = TICKS_PER_SECOND
"""Least time, ticks, for which a job that has outlived its estimate is assumed to go on: one second."""


class RunningProfile(Profile):
    """A profile from which each running job is subtracted until its expected end.

    Where nothing kills a job at its estimate, or where it was expected to end before, a job may run on past its expected
    end.  It is then assumed to go on for as long as it has been late already, at least one second: the bound of one second
    alone would wake a planning policy once a second for hours.  A policy that sets no alarms can do with one second.

    Args:
        nodes: size of the machine.
        may_overrun: whether running jobs can outlive their estimates.
    """

    __slots__ = ("_assumed_end", "_ends", "_may_overrun")

    def __init__(self, nodes: int, *, may_overrun: bool) -> None:
        super().__init__(nodes)
        self._may_overrun = may_overrun
        self._assumed_end: dict[int, tuple[int, int, int]] = {}  # job id -> assumed end, expected end, nodes
        self._ends: list[tuple[int, int]] = []  # heap of (assumed end, job id); an entry without a job is stale

    def start(self, job_id: int, nodes: int, now: int, expected_end: int) -> None:
        """Subtract a job that starts now."""
        self.reserve(now, expected_end, nodes)
        self.note_start(job_id, nodes, expected_end)

    def note_start(self, job_id: int, nodes: int, expected_end: int) -> None:
        """Note a job that starts in room which was reserved for it from now to its expected end."""
        if self._may_overrun:
            self._assumed_end[job_id] = (expected_end, expected_end, nodes)
            heappush(self._ends, (expected_end, job_id))

    def end(self, job_id: int, nodes: int, now: int, expected_end: int) -> bool:
        """Give back what a job that ends now was still expected to use; tell whether that is anything."""
        if self._may_overrun:
            expected_end = self._assumed_end.pop(job_id)[0]
        if expected_end <= now:
            return False
        self.release(now, expected_end, nodes)
        return True

    def overrunning(self, now: int) -> list[int]:
        """Return the jobs that run although their assumed ends have passed, for :meth:`extend`."""
        late: list[int] = []
        while self._ends and self._ends[0][0] <= now:
            end, job_id = heappop(self._ends)
            if job_id in self._assumed_end and self._assumed_end[job_id][0] == end:
                late.append(job_id)
        return late

    def extend(self, late: list[int], now: int, ticks: int | None = None) -> None:
        """Subtract the ``late`` jobs for a while longer; nothing else may be reserved on their nodes.

        Args:
            late: their ids.
            now: the present, ticks.
            ticks: for how long; ``None`` is as long as each has been late already, one second at least.
        """
        for job_id in late:
            expected_end = self._assumed_end[job_id][1]
            self.prolong(job_id, now, now + (ticks or max(SHORTEST_EXTENSION, now - expected_end)))

    def prolong(self, job_id: int, now: int, end: int) -> None:
        """Subtract one job that has outlived its assumed end until ``end``; nothing else may be reserved on its nodes."""
        _, expected_end, nodes = self._assumed_end[job_id]
        self.reserve(now, end, nodes)
        self._assumed_end[job_id] = (end, expected_end, nodes)
        heappush(self._ends, (end, job_id))

    def next_end(self) -> int | None:
        """Return the first assumed end of the jobs that can outlive it, ``None`` if there are none."""
        while self._ends and self._assumed_end.get(self._ends[0][1], (None,))[0] != self._ends[0][0]:
            heappop(self._ends)
        return self._ends[0][0] if self._ends else None
