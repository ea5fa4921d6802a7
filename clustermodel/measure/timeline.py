"""A run over time, as tables: which nodes each gang held when, and the state of the machine after each event.

Gantt charts, the Ousterhout matrix and curves over time are drawn from these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.measure.event_log import EventLog
from clustermodel.measure.gang_placements import KINDS, gangs_in_matrix, kinds
from clustermodel.measure.job_table import holdings
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.matrix_history import History
from clustermodel.ticks import TICKS_PER_SECOND

if TYPE_CHECKING:
    import pandas as pd

NO_ROW: Final = -1
"""Stands for no row of the Ousterhout matrix: nothing runs, or nodes are not shared in time."""
_COLUMNS: Final = ("job", "begin", "end", "row", "first_node", "nodes", "kind")


def placements_in_space(records: JobRecords) -> pd.DataFrame:
    """Return where and when gangs ran on dedicated nodes: the table of ``Result.placements``.

    Args:
        records: of the run.
    """
    held = holdings(records)
    kind = kinds(held.ended_as, held.lost)
    row = np.zeros(len(held.job), dtype=np.int64)
    return _frame(records.column("id")[held.job], held.start, held.end, row, held.first_node, held.nodes, kind)


def placements_in_matrix(records: JobRecords, history: History, end: int) -> pd.DataFrame:
    """Return where and when gangs were in the Ousterhout matrix: the table of ``Result.placements``.

    Args:
        records: of the run.
        history: of the same run.
        end: when the run ends, ticks.
    """
    ids = records.column("id")
    places = [
        (ids[gang.job], gang.begin, gang.end, gang.row, low, high - low, gang.kind)
        for gang in gangs_in_matrix(records, history, end)
        for low, high in zip(gang.columns[::2], gang.columns[1::2], strict=True)
    ]
    return _frame(*np.array(places, dtype=np.int64).reshape(-1, len(_COLUMNS)).T)


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
    """Return the state of the machine after each event; see :attr:`~clustermodel.experiment.result.Result.states`.

    Args:
        log: of the run's events.
        nodes: size of the machine.
        history: of the Ousterhout matrix, if it was kept.
        shares: columns of the resources that are limited, shapes ``(events,)``.
    """
    import pandas as pd

    row = np.full(len(log.ticks), NO_ROW, dtype=np.int32)
    if history is not None and history.moments:
        begins = [moment.ticks for moment in history.moments]
        first = np.array([moment.rotation[0] if moment.rotation else NO_ROW for moment in history.moments], dtype=np.int32)
        at = np.searchsorted(begins, log.ticks, side="right") - 1
        row = np.where(at < 0, NO_ROW, first[at]).astype(np.int32)
    return pd.DataFrame(
        {
            "time_s": log.ticks / TICKS_PER_SECOND,
            "busy_nodes": nodes - log.empty - log.down,
            "down_nodes": log.down,
            "waiting_jobs": log.waiting,
            "running_row": row,
            **shares,
        }
    )
