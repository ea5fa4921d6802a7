"""Fairness that is counted job by job: who was delayed by jobs behind it in the queue, and whose promised start was missed.

Strict fairness (004_55d19449f9d7d838.txt, section 3.1): a schedule is fair if no job is delayed by one of lower priority.
A blocked job is *delayed by later jobs* when it starts after the first instant at which there were nodes to hand out and
the idle nodes plus the nodes held by jobs behind it in the queue order would have been enough for it.

"Nodes to hand out" means idle nodes after the jobs ahead of it had started and before anything was backfilled.  Without
that condition - the bare words of the definition - instants count at which the machine was full and nothing could have
been decided otherwise; docs/design shows both counts.

Reservation violation (section 3.2): a job starts later than it was first promised.  It is *benign* if the jobs ahead of it
in the queue are to blame, because they ran longer than predicted: from the promised start on there was no such instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clustermodel.measure.event_log import event_log
from clustermodel.recording.job_records import UNKNOWN, IntArray, JobRecords
from clustermodel.ticks import TICKS_PER_SECOND

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

_NEVER = np.iinfo(np.int64).max


def delays_by_later_jobs(records: JobRecords, nodes: int, *, only_with_idle_nodes: bool = True) -> FloatArray:
    """Return for each job the seconds by which later jobs delayed its start; 0 for a job that was never blocked.

    A job that has been preempted or stopped and waits again can be delayed again; the delays add up.

    Args:
        records: of a run.
        nodes: size of the machine.
        only_with_idle_nodes: look only at instants that had nodes to hand out (see above).

    Returns:
        Shape ``(jobs,)``, in the records' order.
    """
    schedule = _Schedule(records, nodes, only_with_idle_nodes=only_with_idle_nodes)
    delays = np.zeros(len(records), dtype=np.int64)
    waits = _Waits.of(records)
    for job, _, start, head_since in waits.each(waits.head_since != UNKNOWN):
        delays[job] += max(start - schedule.first_sufficient(job, head_since, start), 0)
    seconds: FloatArray = delays / TICKS_PER_SECOND
    return seconds


class Violations(NamedTuple):
    """Promises that were not kept; shapes ``(jobs,)``."""

    late_s: FloatArray
    """By how many seconds each job started after the start it was first promised; 0 if it did not."""
    by_later: BoolArray
    """Whether it did, and jobs behind it in the queue are to blame: the others' violations are benign."""


def reservation_violations(records: JobRecords, nodes: int) -> Violations:
    """Return by how much each job's reservation was violated, and by whom (see above).

    Args:
        records: of a run.
        nodes: size of the machine.
    """
    last_start, promised = records.column("start"), records.column("reserved")
    late = np.where((last_start != UNKNOWN) & (promised != UNKNOWN), np.maximum(last_start - promised, 0), 0)
    by_later = np.zeros(len(records), dtype=bool)
    if late.any():
        schedule = _Schedule(records, nodes, only_with_idle_nodes=True)
        waits = _Waits.of(records)
        for job, since, start, _ in waits.each((late[waits.job] > 0) & (waits.start > promised[waits.job])):
            by_later[job] |= schedule.first_sufficient(job, max(since, int(promised[job])), start) < start
    return Violations(late / TICKS_PER_SECOND, by_later)


class _Waits(NamedTuple):
    """The stretches of time in which jobs waited and at the end of which they started; shapes ``(waits,)``, ticks."""

    job: IntArray
    """Index of the record."""
    since: IntArray
    start: IntArray
    head_since: IntArray
    """From when on the job was left waiting at the head of the queue, :data:`UNKNOWN` if it was not."""

    @classmethod
    def of(cls, records: JobRecords) -> _Waits:
        """Return all waits."""
        runs = records.runs
        runs = runs.where(np.argsort(runs.job, kind="stable"))  # those of a job stay in order
        since = records.column("submit")[runs.job]
        again = np.flatnonzero(runs.job[1:] == runs.job[:-1])
        since[again + 1] = runs.end[again]
        return cls(runs.job, since, runs.start, runs.head_since)

    def each(self, which: BoolArray) -> Iterator[tuple[int, int, int, int]]:
        """Yield job, since, start and head_since of some of them."""
        yield from zip(*(column[which].tolist() for column in self), strict=True)


class _Schedule:
    """Who ran when, in queue order of the jobs.

    Args:
        records: of a run.
        nodes: size of the machine.
        only_with_idle_nodes: look only at instants that had nodes to hand out.
    """

    def __init__(self, records: JobRecords, nodes: int, *, only_with_idle_nodes: bool) -> None:
        order = np.lexsort((records.column("id"), records.column("submit"), -records.column("priority")))
        self._position = np.empty(len(order), dtype=np.int64)
        self._position[order] = np.arange(len(order))
        self._spare = nodes - records.column("nodes")
        # Jobs before this position have all ended by a given time: nothing earlier needs to be looked at.
        end = records.column("end")[order]
        self._latest_end = np.maximum.accumulate(end) if len(end) else end
        self._runs = _runs(records, self._position)
        self._instants = _instants(records, nodes, only_with_idle_nodes=only_with_idle_nodes)

    def first_sufficient(self, job: int, since: int, start: int) -> int:
        """Return the first instant in [``since``, ``start``) that had enough nodes which jobs ahead of ``job`` did not hold.

        A time after ``start``, if there is none.
        """
        at, runs = self._position[job], self._runs
        first = int(np.searchsorted(self._latest_end[:at], since, side="right"))
        begin, stop = np.searchsorted(runs.position, np.array([first, at]))
        rivals = np.flatnonzero((runs.start[begin:stop] < start) & (runs.end[begin:stop] > since)) + begin
        held = np.maximum(runs.start[rivals], since), runs.end[rivals], runs.nodes[rivals]
        return _first_sufficient(since, *held, self._spare[job], self._instants)


class _Runs(NamedTuple):
    """All runs, those that did not end their jobs among them, in queue order; each array has shape ``(runs,)``."""

    position: IntArray
    """Of the job in the queue order."""
    start: IntArray
    end: IntArray
    nodes: IntArray


def _runs(records: JobRecords, position: IntArray) -> _Runs:
    runs = records.runs
    owner = position[runs.job]
    sequence = np.argsort(owner, kind="stable")
    return _Runs(owner[sequence], runs.start[sequence], runs.end[sequence], runs.nodes[sequence])


def _first_sufficient(since: int, start: IntArray, end: IntArray, size: IntArray, enough: int, instants: IntArray) -> int:
    """Return the first of ``instants``, from ``since`` on, at which jobs ahead in the queue hold at most ``enough`` nodes."""
    times = np.concatenate([[since], start, end])
    changes = np.concatenate([[0], size, -size])
    sequence = np.argsort(times, kind="stable")
    times, in_use = times[sequence], np.cumsum(changes[sequence])
    until = np.append(times[1:], _NEVER)
    # A state that lasts no time is half of an instant; of the others, take the first looked-at instant that falls in.
    candidate = instants[np.searchsorted(instants[:-1], times)]
    holds = (until > times) & (in_use <= enough) & (candidate < until)
    return int(candidate[np.argmax(holds)]) if holds.any() else _NEVER


def _instants(records: JobRecords, nodes: int, *, only_with_idle_nodes: bool) -> IntArray:
    """Return the instants to look at, ticks, ascending, with a last one that never comes."""
    log = event_log(records, nodes)
    ticks = log.ticks
    if only_with_idle_nodes:
        idle, backfilled = log.empty.copy(), records.runs.where(records.runs.backfilled == 1)
        np.add.at(idle, np.searchsorted(ticks, backfilled.start), backfilled.nodes)
        ticks = ticks[idle > 0]
    return np.append(ticks, _NEVER)
