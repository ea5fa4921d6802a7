"""Memory in gang scheduling: which rows have enough for a job, and which job is promised memory that it lacks.

The first job in queue order that could start but for memory is promised some as soon as gangs are predicted to free it.  Jobs
behind it may use that memory until then, as in EASY backfilling; other jobs that lack memory hold nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from clustermodel.policies.view import QueuedJob
from clustermodel.schedule.ousterhout import OusterhoutMatrix
from clustermodel.schedule.reservations import RowPlans


class GangMemory:
    """Jobs that lack memory, and the memory of the rows.

    Args:
        matrix: the gangs, and the free memory of their columns.
        plans: the reservations in the rows.
    """

    def __init__(self, matrix: OusterhoutMatrix[QueuedJob], plans: RowPlans) -> None:
        self._matrix = matrix
        self._plans = plans
        self.lacking = False
        """Whether a job has lacked memory since the cycle began."""
        self._first: int | None = None  # id of the job to which memory has been promised
        self._nodes: dict[int, int] = {}  # id of such a job that still waits -> the node for whose memory it waits

    def begin_cycle(self) -> None:
        """Take back the reservation of the job to which memory was promised, which is placed again."""
        self.lacking = False
        if self._first is not None:
            self._plans.reserved.pop(self._first, None)

    def rows_for(self, job: QueuedJob, rows: list[int], *, kept: int = 0, end: int | None = None) -> list[int]:
        """Return those of ``rows``, which have enough free columns, in which enough of these have memory for a job.

        Args:
            job: the job.
            rows: the rows.
            kept: the nodes whose memory keeps the job already, a bitmask.
            end: when the job is predicted to end, ticks; ``None`` if unknown.
        """
        matrix = self._matrix
        if matrix.memory is None:
            return rows
        enough = [row for row in rows if matrix.columns_for(job, row, kept=kept, end=end).bit_count() >= job.nodes]
        self.lacking |= len(enough) < len(rows)
        return enough

    def wait(self, job: QueuedJob, row: int, ends: Mapping[int, int]) -> None:
        """Let a job wait that could start now but for memory.

        Args:
            job: a job with a reservation that begins now.
            row: in which enough columns are free.
            ends: predicted ends of gangs by job id, ticks.
        """
        promised = self._matrix.promised
        if promised is None or promised.job_id == job.id:
            promised = self._matrix.promise_memory(job, row, ends)
            if promised is not None:
                self._first = job.id
                self._nodes[job.id] = promised.short
                self._plans.postpone(job, promised.start)
                return
        self._plans.drop(job)

    def keep_promise(self, job: QueuedJob, row: int, ends: Mapping[int, int]) -> None:
        """Promise memory to a job again that now has to wait for nodes as well."""
        if job.id == self._first:
            self._matrix.promise_memory(job, row, ends)

    def waited_for(self, job: QueuedJob) -> str:
        """Return, for the reason of a job's start, the node for whose memory it has waited."""
        node = self._nodes.pop(job.id, None)
        return "" if node is None else f"; it lacked memory on node {node}"
