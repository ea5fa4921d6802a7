"""A run over time: which nodes each gang held when, and the state of the machine after each event.

Gantt charts, the Ousterhout matrix, curves over time and files for other programs are made from these.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.measure.event_log import EventLog
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.matrix_history import Cell, History
from clustermodel.recording.run_attempts import UNKNOWN, Status
from clustermodel.schedule.node_set import NodeSet, from_mask
from clustermodel.ticks import TICKS_PER_SECOND

if TYPE_CHECKING:
    import pandas as pd

KINDS: Final = ("run", "saved", "lost", "replica", "failed")
"""What a placement is: a run to the end of the job; a run after which its work was saved, or discarded; a replica outside the
home row; a run that the failure of a node ended."""
NO_ROW: Final = -1
"""Stands for no row of the Ousterhout matrix: nothing runs, or nodes are not shared in time."""


class GangPlacement(NamedTuple):
    """A gang on one set of nodes; times in ticks."""

    job: int  # index of the job's record
    attempt: int  # which of its run attempts this belongs to, from 1
    begin: int
    end: int
    row: int  # of the Ousterhout matrix, 0 on dedicated nodes
    columns: NodeSet
    kind: int  # position in KINDS


def kinds(ended_as: IntArray, lost: IntArray) -> IntArray:
    """Return what run attempts are, positions in :data:`KINDS`, shape ``(attempts,)``."""
    stopped = ~np.isin(ended_as, (Status.COMPLETED, Status.KILLED))
    kind = np.where(lost > 0, KINDS.index("lost"), np.where(stopped, KINDS.index("saved"), KINDS.index("run")))
    return np.where(ended_as == Status.FAILED, KINDS.index("failed"), kind)


def gangs_in_space(records: JobRecords) -> list[GangPlacement]:
    """Return the placements of gangs that had their nodes to themselves, by job, then by time.

    A run attempt has one placement, and one more for each migration.
    """
    runs, ranges = records.runs, records.node_ranges
    ended = np.flatnonzero(ranges.until != UNKNOWN)
    keys = (ranges.first_node, ranges.until, ranges.since, ranges.run, runs.job[ranges.run])
    order = ended[np.lexsort(tuple(column[ended] for column in keys))]
    run, since, until = ranges.run[order], ranges.since[order], ranges.until[order]
    bounds = np.column_stack([ranges.first_node[order], ranges.first_node[order] + ranges.nodes[order]]).ravel().tolist()
    begins = np.flatnonzero(np.any([np.diff(column, prepend=-1) != 0 for column in (run, since, until)], axis=0))
    by_job = np.argsort(runs.job, kind="stable")
    attempt = np.empty(len(by_job), dtype=np.int64)  # which one of its job each run is, from 1
    attempt[by_job] = np.arange(1, len(by_job) + 1) - np.searchsorted(runs.job[by_job], runs.job[by_job])
    of, kind = run[begins], kinds(runs.ended_as, runs.lost)
    columns = (runs.job[of], attempt[of], since[begins], until[begins], kind[of], begins, np.append(begins, len(order))[1:])
    return [
        GangPlacement(index, number, begin, end, 0, tuple(bounds[2 * low : 2 * high]), what)
        for index, number, begin, end, what, low, high in zip(*(column.tolist() for column in columns), strict=True)
    ]


def gangs_in_matrix(records: JobRecords, history: History, end: int) -> list[GangPlacement]:
    """Return the placements of gangs in the rows of the Ousterhout matrix, in the order in which they ended."""
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
            kind = KINDS.index("replica") if cell.replica else kind_of[job][attempt]
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


def placements_in_space(records: JobRecords) -> pd.DataFrame:
    """Return where and when gangs ran on dedicated nodes: the table of ``Result.placements``."""
    ranges = records.node_ranges
    runs = records.runs.where(ranges.run)
    ended, kind = runs.end != UNKNOWN, kinds(runs.ended_as, runs.lost)
    columns = (records.column("id")[runs.job], ranges.since, ranges.until, 0 * kind, ranges.first_node, ranges.nodes, kind)
    return _frame(*(column[ended] for column in columns))


def placements_in_matrix(records: JobRecords, history: History, end: int) -> pd.DataFrame:
    """Return where and when gangs were in the Ousterhout matrix: the table of ``Result.placements``."""
    ids = records.column("id")
    places = [
        (ids[gang.job], gang.begin, gang.end, gang.row, low, high - low, gang.kind)
        for gang in gangs_in_matrix(records, history, end)
        for low, high in zip(gang.columns[::2], gang.columns[1::2], strict=True)
    ]
    return _frame(*np.array(places, dtype=np.int64).reshape(-1, 7).T)


def _frame(*columns: IntArray) -> pd.DataFrame:
    import pandas as pd

    job, begin, end, row, first_node, nodes, kind = columns
    frame = pd.DataFrame(
        {
            "job": job,
            "begin_s": begin / TICKS_PER_SECOND,
            "end_s": end / TICKS_PER_SECOND,
            "row": row.astype(np.int32),
            "first_node": _narrow(first_node),
            "nodes": _narrow(nodes),
            "kind": np.array(KINDS)[kind],
        }
    )
    return frame.sort_values(["begin_s", "row", "first_node"], kind="stable", ignore_index=True)


def _narrow(numbers: IntArray) -> npt.NDArray[np.int32] | IntArray:
    """Return numbers of nodes in 32 bits if they fit: the table has a row per run of neighbouring nodes."""
    return numbers.astype(np.int32) if numbers.max(initial=0) <= np.iinfo(np.int32).max else numbers


def states(log: EventLog, nodes: int, history: History | None, shares: Mapping[str, FloatArray]) -> pd.DataFrame:
    """Return the state of the machine after each event; see :attr:`~clustermodel.experiment.result.Result.states`."""
    import pandas as pd

    row = np.full(len(log.ticks), NO_ROW, dtype=np.int32)
    if history is not None and history.moments:
        begins = [moment.ticks for moment in history.moments]
        first = np.array([moment.rotation[0] if moment.rotation else NO_ROW for moment in history.moments], dtype=np.int32)
        moment = np.searchsorted(begins, log.ticks, side="right") - 1
        row = np.where(moment < 0, NO_ROW, first[moment]).astype(np.int32)
    busy = nodes - log.empty - log.down
    fixed = {"busy_nodes": busy, "down_nodes": log.down, "waiting_jobs": log.waiting, "running_row": row}
    return pd.DataFrame({"time_s": log.ticks / TICKS_PER_SECOND, **fixed, **shares})
