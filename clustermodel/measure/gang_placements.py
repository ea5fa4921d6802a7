"""Where gangs were: which nodes each job held from when until when, on dedicated nodes and in the Ousterhout matrix.

Evaluated by Gantt charts, files for other programs, and the tables of :mod:`clustermodel.measure.timeline`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final, NamedTuple

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.matrix_history import Cell, History
from clustermodel.recording.run_attempts import UNKNOWN, Status
from clustermodel.schedule.node_set import NodeSet, from_mask

KINDS: Final = ("run", "saved", "lost", "replica", "failed")
"""What a placement is: a run to the end of the job; a run after which its work was saved, or discarded; a replica outside the
home row; a run that the failure of a node ended."""
_REPLICA: Final = KINDS.index("replica")


class GangPlacement(NamedTuple):
    """A gang on one set of nodes."""

    job: int
    """Index of the job's record."""
    attempt: int
    """Which of its run attempts this belongs to, from 1."""
    begin: int
    """Ticks."""
    end: int
    """Ticks."""
    row: int
    """Of the Ousterhout matrix, 0 on dedicated nodes."""
    columns: NodeSet
    kind: int
    """Position in :data:`KINDS`."""


def kinds(ended_as: IntArray, lost: IntArray) -> IntArray:
    """Return what run attempts are, positions in :data:`KINDS`, shape ``(attempts,)``.

    Args:
        ended_as: how each ended.
        lost: how much work was discarded at its end, ticks.
    """
    stopped = ~np.isin(ended_as, (Status.COMPLETED, Status.KILLED))
    kind = np.where(lost > 0, KINDS.index("lost"), np.where(stopped, KINDS.index("saved"), KINDS.index("run")))
    return np.where(ended_as == Status.FAILED, KINDS.index("failed"), kind)


def gangs_in_space(records: JobRecords) -> list[GangPlacement]:
    """Return the placements of gangs that had their nodes to themselves, by job, then by time.

    A run attempt has one placement, and one more for each migration.
    """
    runs, ranges = records.runs, records.node_ranges
    ended = np.flatnonzero(ranges.until != UNKNOWN)
    job = runs.job[ranges.run]
    order = ended[
        np.lexsort(tuple(column[ended] for column in (ranges.first_node, ranges.until, ranges.since, ranges.run, job)))
    ]
    run, since, until = ranges.run[order], ranges.since[order], ranges.until[order]
    bounds = np.column_stack([ranges.first_node[order], ranges.first_node[order] + ranges.nodes[order]]).ravel().tolist()
    new = (np.diff(run, prepend=-1) != 0) | (np.diff(since, prepend=-1) != 0) | (np.diff(until, prepend=-1) != 0)
    begins = np.flatnonzero(new)
    attempt, kind = _numbers_of_attempts(runs.job), kinds(runs.ended_as, runs.lost)
    of = run[begins]
    columns = (runs.job[of], attempt[of], since[begins], until[begins], kind[of], begins, np.append(begins, len(order))[1:])
    return [
        GangPlacement(index, number, begin, end, 0, tuple(bounds[2 * low : 2 * high]), what)
        for index, number, begin, end, what, low, high in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _numbers_of_attempts(job: IntArray) -> IntArray:
    """Return for each run attempt which one of its job it is, from 1."""
    order = np.argsort(job, kind="stable")
    place = np.arange(len(job))
    first = np.maximum.accumulate(np.where(np.diff(job[order], prepend=-1) != 0, place, 0))
    numbers = np.empty(len(job), dtype=np.int64)
    numbers[order] = place - first + 1
    return numbers


def gangs_in_matrix(records: JobRecords, history: History, end: int) -> list[GangPlacement]:
    """Return the placements of gangs in the rows of the Ousterhout matrix, in the order in which they ended.

    Args:
        records: of the run.
        history: of the same run.
        end: when the run ends, ticks.
    """
    runs = records.runs
    index_of = {job: index for index, job in enumerate(records.column("id").tolist())}
    ends: dict[int, list[int]] = {}  # index of a job -> ends of its run attempts
    kind_of: dict[int, list[int]] = {}
    for job, ended, kind in zip(runs.job.tolist(), runs.end.tolist(), kinds(runs.ended_as, runs.lost).tolist(), strict=True):
        ends.setdefault(job, []).append(ended)
        kind_of.setdefault(job, []).append(kind)
    since: dict[tuple[int, Cell], int] = {}
    places: list[GangPlacement] = []

    def close(row: int, cell: Cell, now: int) -> None:
        job, begin = index_of[cell.job], since.pop((row, cell))
        # From the first attempt that had not ended before: where one failed, the next may have begun there at once.
        for attempt in range(bisect_right(ends[job], begin), bisect_left(ends[job], now) + 1):
            until = min(ends[job][attempt], now)
            kind = _REPLICA if cell.replica else kind_of[job][attempt]
            places.append(GangPlacement(job, attempt + 1, begin, until, row, from_mask(cell.columns), kind))
            begin = until

    for moment in history.moments:
        present = {(row, cell) for row, cells in enumerate(moment.rows) for cell in cells}
        for gone in sorted(since.keys() - present):
            close(*gone, moment.ticks)
        for place in present - since.keys():
            since[place] = moment.ticks
    for left in sorted(since):
        close(*left, end)
    return places
