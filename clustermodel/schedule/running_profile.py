"""The availability profile of the running jobs and their expected ends: the basis of every backfilling plan."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from heapq import heappop, heappush
from typing import Final, Protocol

from clustermodel.schedule.profile import Profile
from clustermodel.schedule.reservations import Reservable
from clustermodel.ticks import TICKS_PER_SECOND

SHORTEST_EXTENSION: Final = TICKS_PER_SECOND
"""Shortest time, ticks, that a job which has outlived its estimate is assumed to run on: one second."""


class NodeOutage(Protocol):
    """What a profile needs to know of a node that is down."""

    @property
    def id(self) -> int:
        """A number unlike any job's."""

    @property
    def nodes(self) -> int:
        """Number of nodes that are down."""

    @property
    def expected_end(self) -> int:
        """When they can be expected to be up again, ticks."""


class EndedGang(Protocol):
    """What a profile needs to know of a gang whose run has ended."""

    @property
    def job(self) -> Reservable:
        """The gang's job."""

    @property
    def nodes(self) -> int:
        """The number of nodes it held."""

    @property
    def expected_end(self) -> int:
        """When it was expected to end, ticks."""


class RunningProfile(Profile):
    """A profile from which each running job is subtracted until its expected end.

    A job may outlive its expected end where nothing kills it at its estimate, or where a predictor expected it to end before.
    The policy then says when else it may end (:meth:`extend`).

    A node that is down is subtracted like a job, until it can be expected to be repaired.

    Args:
        nodes: size of the machine.
        may_overrun: whether running jobs can outlive their expected ends.
    """

    __slots__ = ("_assumed_end", "_ends", "_may_overrun")

    def __init__(self, nodes: int, *, may_overrun: bool) -> None:
        super().__init__(nodes)
        self._may_overrun = may_overrun
        self._assumed_end: dict[int, tuple[int, int, int]] = {}  # job id -> assumed end, expected end, nodes
        self._ends: list[tuple[int, int]] = []  # heap of (assumed end, job id); an entry without a job is stale

    def catch_up(
        self, ended: Iterable[EndedGang], now: int, *, failed: Iterable[NodeOutage] = (), repaired: Iterable[NodeOutage] = ()
    ) -> bool:
        """Forget the past, take out gangs whose runs have ended and nodes that are up again, and enter nodes that have failed.

        Nodes that have failed may have been reserved: then fewer than no nodes are free, and all waiting jobs have to be placed
        again.

        Args:
            ended: gangs.
            now: the present, ticks.
            failed: outages that begin now.
            repaired: outages that end now.

        Returns:
            Whether a gang or an outage ended early.
        """
        self.advance(now)
        early = False
        for gang in ended:
            early |= self.end(gang.job.id, gang.nodes, now, gang.expected_end)
        for outage in failed:
            end = outage.expected_end
            self.overbook(now, end, outage.nodes)
            self._assumed_end[outage.id] = (end, end, outage.nodes)
            heappush(self._ends, (end, outage.id))
        for outage in repaired:
            end = self._assumed_end.pop(outage.id)[0]
            if end > now:
                self.release(now, end, outage.nodes)
                early = True
        return early

    def start(self, job_id: int, nodes: int, now: int, expected_end: int) -> None:
        """Subtract a job that starts now.

        Raises:
            DecisionError: too few nodes are free until its expected end.
        """
        self._add(now, expected_end, -nodes)
        self.note_start(job_id, nodes, expected_end)

    def note_start(self, job_id: int, nodes: int, expected_end: int) -> None:
        """Note a job that starts in its reservation; its nodes are subtracted until its expected end already."""
        if self._may_overrun:
            self._assumed_end[job_id] = (expected_end, expected_end, nodes)
            heappush(self._ends, (expected_end, job_id))

    def end(self, job_id: int, nodes: int, now: int, expected_end: int) -> bool:
        """Release the unused part of a completed job's time on its nodes; return whether any time was left."""
        if self._may_overrun:
            expected_end = self._assumed_end.pop(job_id)[0]
        if expected_end <= now:
            return False
        self.release(now, expected_end, nodes)
        return True

    def overrunning(self, now: int, running: Container[int]) -> list[int]:
        """Return the running jobs, and the outages, whose assumed ends have passed, for :meth:`extend`.

        Args:
            now: the present, ticks.
            running: ids of the running jobs; another may have ended now, which is still to be reported.
        """
        late: list[int] = []
        while self._ends and self._ends[0][0] <= now:
            end, job_id = heappop(self._ends)
            if end == now and job_id >= 0 and job_id not in running:
                continue  # as expected
            if job_id in self._assumed_end and self._assumed_end[job_id][0] == end and job_id not in late:
                late.append(job_id)  # once, if it was started again with the same end as before
        return late

    def extend(self, late: list[int], now: int, delay_of: Callable[[int, int], int]) -> None:
        """Subtract the ``late`` jobs for longer; nothing else may be reserved on their nodes.

        Args:
            late: their ids.
            now: the present, ticks.
            delay_of: returns how much later than expected a job will end, given its id and how late it is already, ticks.

        Raises:
            DecisionError: something else is reserved on their nodes.
        """
        for job_id in late:
            _, expected_end, nodes = self._assumed_end[job_id]
            end = expected_end + delay_of(job_id, now - expected_end)
            if end > now:  # not of a job that has ended now, just as corrected
                self.reserve(now, end, nodes)
            self.note_prolongation(job_id, end)

    def note_prolongation(self, job_id: int, end: int) -> None:
        """Note another assumed end of a job whose nodes are subtracted until then already."""
        _, expected_end, nodes = self._assumed_end[job_id]
        self._assumed_end[job_id] = (end, expected_end, nodes)
        heappush(self._ends, (end, job_id))

    def next_end(self) -> int | None:
        """Return the first assumed end of the jobs that can outlive it, ``None`` if there are none."""
        while self._ends and self._assumed_end.get(self._ends[0][1], (None,))[0] != self._ends[0][0]:
            heappop(self._ends)
        return self._ends[0][0] if self._ends else None
