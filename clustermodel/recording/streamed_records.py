"""The records of a streamed run: only jobs in the system are in memory, those that have left are passed on in blocks.

Its :class:`~clustermodel.experiment.result.Result` refuses what needs the jobs, so nothing is read from these records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from clustermodel.errors import SpecificationError
from clustermodel.job import JobRow
from clustermodel.recording.job_records import JobRecords, MemoryLog
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import PREEMPTIONS, UNKNOWN, Status
from clustermodel.schedule.node_set import NodeSet, count

BLOCK: Final = 16_384
"""Jobs that are passed on at once."""


class StreamedJob:
    """The record of one job of a streamed run, times in ticks; ``UNKNOWN`` where something never happened."""

    __slots__ = (
        "allocated", "attempts", "backfilled", "blocked_since", "end", "executed", "lost", "preemptions", "requeued",
        "reserved", "row", "start", "status", "wasted",
    )  # fmt: skip

    def __init__(self, row: JobRow) -> None:
        self.row = row
        self.start = self.end = self.executed = self.blocked_since = self.reserved = UNKNOWN
        self.status = Status.UNFINISHED
        self.allocated = 0  # nodes of the last run attempt
        self.backfilled = False  # whether that started while a job ahead in the queue kept waiting
        self.attempts = self.preemptions = 0
        self.requeued = False  # whether it was stopped at a time limit of the policy and restarted
        self.lost = self.wasted = 0  # discarded work, ticks and node-ticks


class RisingIds:
    """The ids of the jobs submitted so far, of which only the highest is kept: each must be above all before it."""

    def __init__(self) -> None:
        self._highest: int | None = None

    def __contains__(self, job: int) -> bool:
        """Return whether a job has the highest id; a lower one is refused."""
        if self._highest is not None and job < self._highest:
            raise SpecificationError(
                f"stream: job {job} is submitted after job {self._highest}; the ids of a streamed run must rise, so that "
                "each is unique: number the jobs in order of submission"
            )
        return job == self._highest

    def add(self, job: int, /) -> None:
        self._highest = job


class NoMemoryLog(MemoryLog):
    """A log that does not grow: it keeps nothing."""

    __slots__ = ()

    def changed(self, now: int, kib: int) -> None:
        """Note nothing."""


class StreamedRecords(JobRecords):
    """Records of a run of which no job is kept after it has left the system.

    ``take`` is called with each :data:`BLOCK` jobs that have left, and by :meth:`close` with the rest; the list is used again.
    """

    def __init__(self, take: Callable[[list[StreamedJob]], None]) -> None:
        super().__init__()
        self.memory = NoMemoryLog()
        self._take = take
        self._block: list[StreamedJob] = []
        self._open: dict[int, StreamedJob] = {}
        self._submissions = 0

    def __len__(self) -> int:
        return self._submissions

    def submitted_ids(self) -> RisingIds:
        return RisingIds()

    def close(self) -> None:
        """Pass on the jobs that have left since the last block."""
        self._take(self._block)
        self._block.clear()

    def _left(self, index: int, status: Status) -> StreamedJob:
        job = self._open.pop(index)
        job.status = status
        self._block.append(job)
        if len(self._block) >= BLOCK:
            self.close()
        return job

    def submitted(self, row: JobRow) -> int:
        index = self._submissions
        self._submissions += 1
        self._open[index] = StreamedJob(row)
        return index

    def rejected(self, index: int) -> None:
        self._left(index, Status.REJECTED)

    def started(self, index: int, now: int, columns: NodeSet) -> None:
        job = self._open[index]
        job.start = now
        job.allocated = count(columns)
        job.attempts += 1

    def moved(self, index: int, now: int, columns: NodeSet) -> None:
        """Note nothing: which nodes a job had is not kept."""

    def ended(self, index: int, now: int, status: Status, executed: int) -> None:
        job = self._open[index]
        job.end, job.executed = now, executed
        if status is Status.ABORTED:
            self._discard(job, executed)
        self._left(index, status)

    def stopped(self, index: int, now: int, status: Status, executed: int, lost: int) -> None:
        job = self._open[index]
        job.preemptions += status in PREEMPTIONS
        job.requeued |= status is Status.REQUEUED
        job.start, job.backfilled = UNKNOWN, False
        self._discard(job, lost)

    def discarded(self, index: int, lost: int) -> None:
        self._discard(self._open[index], lost)

    @staticmethod
    def _discard(job: StreamedJob, lost: int) -> None:
        job.lost += lost
        job.wasted += lost * job.allocated

    def overhead(self, index: int, start: int, end: int, nodes: int, account: Account) -> None:
        """Note nothing: the ledger has the sums."""

    def blocked(self, index: int, now: int) -> None:
        job = self._open[index]
        if job.blocked_since == UNKNOWN:
            job.blocked_since = now

    def backfilled(self, index: int) -> None:
        self._open[index].backfilled = True

    def reserved(self, index: int, start: int, now: int) -> None:
        job = self._open[index]
        if job.reserved == UNKNOWN:
            job.reserved = start
