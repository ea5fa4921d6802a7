"""The event log of a run, rebuilt from the job records alone, for the formulas of ``clustermodel.theory``.

It shares only the records' times with the capacity ledger, so that a comparison of the two is a test.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from clustermodel.arrays import FloatArray, IntArray, distinct
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.matrix_history import LoggedRotation, SliceLog
from clustermodel.recording.run_attempts import UNKNOWN, Status
from clustermodel.ticks import TICKS_PER_SECOND


class EventLog(NamedTuple):
    """The state after each event, arrays of shape ``(events,)``."""

    ticks: IntArray
    """Times of submissions, starts, ends, failures and repairs, ticks, ascending."""
    empty: IntArray | FloatArray
    """e: idle nodes from then on; the mean over the slices where nodes are shared in time."""
    waiting: IntArray
    """Number of jobs waiting from then on; delta of Zhang et al. 2003 is 1 if there are any."""
    held_up: IntArray
    """Nodes of gangs that make no progress from then on because they are checkpointed, restarted or suspended; 0 where nodes
    are shared in time, whose slices have a log of their own."""
    down: IntArray
    """Nodes that are down from then on; they are not idle."""

    @property
    def time_s(self) -> FloatArray:
        """psi: times of the events in seconds after the first submission (t = 0 in Zhang et al. 2003)."""
        seconds: FloatArray = (self.ticks - self.ticks[:1]) / TICKS_PER_SECOND
        return seconds


def event_log(records: JobRecords, nodes: int) -> EventLog:
    """Return the event log of a run on a machine of ``nodes``; rejected jobs do not appear.

    Checkpoints, restarts and context switches of preempted gangs begin and end with events too.
    """
    accepted = records.column("ended_as") != Status.REJECTED
    runs, stopped, held, outages = records.runs, records.stopped_runs, records.overheads, records.outages
    ended = runs.end != UNKNOWN
    submitted = records.column("submit")[accepted]
    events: list[tuple[IntArray, IntArray | int, int, IntArray | int, int]] = [  # when; change of busy, waiting, held up, down
        (submitted, 0, 1, 0, 0),
        (runs.start, runs.nodes, -1, 0, 0),
        (runs.end[ended], -runs.nodes[ended], 0, 0, 0),
        (stopped.end, 0, 1, 0, 0),
        (held.start, 0, 0, held.nodes, 0),
        (held.end, 0, 0, -held.nodes, 0),
    ]
    if len(outages.node) and len(submitted):  # a node that fails before the first submission is down from then on
        first, last = submitted[0], runs.end.max(initial=submitted[-1])
        start, end = np.maximum(outages.start, first), np.where(outages.end == UNKNOWN, last, outages.end)
        during = (start < last) & (end > first)
        events += [(start[during], 0, 0, 0, 1), (np.minimum(end[during], last), 0, 0, 0, -1)]
    instants = distinct(np.concatenate([times for times, *_ in events]))
    busy, waiting, held_up, down = np.zeros((4, len(instants)), dtype=np.int64)
    for times, *changes in events:
        position = np.searchsorted(instants, times)
        for state, change in zip((busy, waiting, held_up, down), changes, strict=True):
            if isinstance(change, np.ndarray) or change:
                np.add.at(state, position, change)
    out_of_service = np.cumsum(down)
    return EventLog(instants, nodes - np.cumsum(busy) - out_of_service, np.cumsum(waiting), np.cumsum(held_up), out_of_service)


def sliced_event_log(records: JobRecords, slices: SliceLog, nodes: int, quantum: int) -> EventLog:
    """Return the event log of a run in which nodes were shared in time.

    Args:
        records: of the run.
        slices: what ran between scheduling events.
        nodes: size of the machine.
        quantum: length of a time slice, ticks.
    """
    log = event_log(records, nodes)
    rotations = list(slices)
    if not rotations:
        return log
    lengths = np.array([rotation.length for rotation in rotations])
    empty = np.array([_mean_empty(rotation, quantum) for rotation in rotations] + [float(rotations[-1].up)])
    ticks = np.concatenate([[0], np.cumsum(lengths)]) + (log.ticks[-1] - lengths.sum())
    before = log.ticks[log.ticks < ticks[0]]
    at = np.searchsorted(log.ticks, ticks, side="right") - 1
    # Nothing ran before the first start.
    return EventLog(
        np.concatenate([before, ticks]),
        np.concatenate([nodes - log.down[: len(before)].astype(float), empty]),
        np.concatenate([log.waiting[: len(before)], log.waiting[at]]),
        np.zeros(len(before) + len(ticks), dtype=np.int64),
        np.concatenate([log.down[: len(before)], log.down[at]]),
    )


def idle_before(records: JobRecords, slices: SliceLog, nodes: int) -> list[LoggedRotation]:
    """Return the time before the first start of a run in which nodes were shared in time: jobs may wait for repairs.

    Args:
        records: of the run.
        slices: what ran between scheduling events.
        nodes: size of the machine.
    """
    log = event_log(records, nodes)
    begins = int(log.ticks[-1]) - sum(rotation.length for rotation in slices)
    ticks = [*log.ticks[log.ticks < begins].tolist(), begins]
    states = zip(log.waiting.tolist(), log.empty.tolist(), strict=True)
    return [
        LoggedRotation(end - start, waiting > 0, (), (), 0, empty)
        for (start, end), (waiting, empty) in zip(pairwise(ticks), states, strict=False)
    ]


def _mean_empty(rotation: LoggedRotation, quantum: int) -> float:
    rows = len(rotation.held)
    if not rows:
        return float(rotation.up)
    slices, length = divmod(rotation.begun + rotation.length, quantum)
    laps, at = divmod(slices, rows)
    busy = sum(
        held * (laps * quantum + (quantum if place < at else length if place == at else 0))
        for place, held in enumerate(rotation.held)
    )
    return rotation.up - (busy - rotation.held[0] * rotation.begun) / rotation.length
