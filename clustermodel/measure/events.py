"""The event log of a run, rebuilt from the job records alone, for the formulas of :mod:`clustermodel.theory`.

It shares nothing with the capacity ledger but the records' times, so that comparing the two means something.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clustermodel.measure.records import UNKNOWN, JobRecords, Status
from clustermodel.ticks import TICKS_PER_SECOND


class EventLog(NamedTuple):
    """The state after each event, arrays of shape ``(events,)``."""

    ticks: npt.NDArray[np.int64]
    """When something was submitted, started or ended, ticks, ascending."""
    empty: npt.NDArray[np.int64]
    """e: nodes that run nothing from then on."""
    waiting: npt.NDArray[np.int64]
    """Number of jobs waiting from then on; 002's delta is whether there are any."""

    @property
    def time_s(self) -> npt.NDArray[np.float64]:
        """psi: the events' times in seconds from the first submission (002 sets that to t = 0)."""
        seconds: npt.NDArray[np.float64] = (self.ticks - self.ticks[:1]) / TICKS_PER_SECOND
        return seconds


def event_log(records: JobRecords, nodes: int) -> EventLog:
    """Return the event log of a run on a machine of ``nodes``; rejected jobs do not appear."""
    accepted = records.column("ended_as") != Status.REJECTED
    submit, start, end, size = (records.column(name)[accepted] for name in ("submit", "start", "end", "nodes"))
    started, ended = start != UNKNOWN, end != UNKNOWN
    times = np.concatenate([submit, start[started], end[ended]])
    busy = np.concatenate([np.zeros_like(submit), size[started], -size[ended]])
    queue = np.concatenate([np.ones_like(submit), np.full(started.sum(), -1), np.zeros_like(end[ended])])
    if not len(times):
        return EventLog(times, times, times)
    instants, position = np.unique(times, return_inverse=True)
    busy_change = np.zeros(len(instants), dtype=np.int64)
    queue_change = np.zeros(len(instants), dtype=np.int64)
    np.add.at(busy_change, position, busy)
    np.add.at(queue_change, position, queue)
    return EventLog(instants, nodes - np.cumsum(busy_change), np.cumsum(queue_change))
