"""Fairness job by job: which jobs were delayed by lower-priority jobs, and which started after their guaranteed start.

Strict fairness (Yuan et al. 2010, section 3.1): a schedule is fair if no job is delayed by a job of lower priority.
A blocked job is *delayed by lower-priority jobs* if it starts after the first instant at which nodes could be assigned and the
idle nodes plus the nodes held by jobs behind it in the queue order would have been enough for it.

"Nodes could be assigned" means: nodes were idle after the jobs ahead of it had started and before any job was backfilled.
Without that condition - the literal definition - instants count at which the machine was full, so that no other decision was
possible; docs/design shows both counts.

Under EASY a later job may have been backfilled before the delayed one came to the head of the queue, when another job was
protected from it.  Of the jobs backfilled *over it*, only those that started since the job was blocked delay it: the others
count as if they were ahead of it.

Reservation violation (section 3.2): a job starts later than its first guaranteed start.  It is *benign* if jobs ahead of it in
the queue caused it by running longer than predicted: from the guaranteed start on there was no such instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from clustermodel.arrays import BoolArray, FloatArray, IntArray
from clustermodel.measure.event_log import event_log
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.run_attempts import UNKNOWN
from clustermodel.ticks import TICKS_PER_SECOND

_NEVER = np.iinfo(np.int64).max


def delays_by_later_jobs(
    records: JobRecords, nodes: int, *, only_with_idle_nodes: bool = True, over_it: bool = False
) -> FloatArray:
    """Return by how many seconds lower-priority jobs delayed each job's start; 0 for a job that was never blocked.

    A job that is preempted or stopped waits again and can be delayed again; the delays add up.

    Args:
        records: of a run.
        nodes: size of the machine.
        only_with_idle_nodes: consider only instants at which nodes could be assigned (see above).
        over_it: count only delays by jobs that started since the job was blocked (see above).

    Returns:
        Shape ``(jobs,)``, in the records' order.
    """
    schedule = _Schedule(records, nodes, only_with_idle_nodes=only_with_idle_nodes)
    delays = np.zeros(len(records), dtype=np.int64)
    waits = _Waits.of(records)
    for job, _, start, head_since in waits.each(waits.head_since != UNKNOWN):
        sufficient = schedule.first_sufficient(job, head_since, start, earlier=head_since if over_it else None)
        delays[job] += max(start - sufficient, 0)
    seconds: FloatArray = delays / TICKS_PER_SECOND
    return seconds


class Violations(NamedTuple):
    """Starts after the guaranteed start; shapes ``(jobs,)``."""

    late_s: FloatArray
    """By how many seconds each job started after its guaranteed start; 0 if it did not."""
    by_later: BoolArray
    """Whether jobs behind it in the queue caused the violation; those that are neither this nor by a failure are benign."""
    by_failure: BoolArray
    """Whether a node failed between the submission of the job and its start: no policy could have known."""

    @property
    def benign(self) -> BoolArray:
        """The violations that neither lower-priority jobs nor failures caused."""
        late: BoolArray = (self.late_s > 0) & ~self.by_later & ~self.by_failure
        return late


def reservation_violations(records: JobRecords, nodes: int, *, over_it: bool = False) -> Violations:
    """Return by how much each job's reservation was violated, and whether lower-priority jobs caused it (see above).

    Args:
        records: of a run.
        nodes: size of the machine.
        over_it: judge each job when the guaranteed start comes, as it was last renewed: by then the jobs backfilled over it
            (see above) held nodes without which too few were left for it.
    """
    last_start, guaranteed = records.column("start"), records.column("due" if over_it else "reserved")
    late = np.where((last_start != UNKNOWN) & (guaranteed != UNKNOWN), np.maximum(last_start - guaranteed, 0), 0)
    by_later = np.zeros(len(records), dtype=bool)
    failures = records.outages.start
    until_submission = np.searchsorted(failures, records.column("submit"), side="right")
    until_start = np.searchsorted(failures, last_start, side="right")
    by_failure = (late > 0) & (until_start > until_submission)
    late_otherwise = (late > 0) & ~by_failure
    if late_otherwise.any():
        schedule = _Schedule(records, nodes, only_with_idle_nodes=True)
        waits = _Waits.of(records)
        for job, since, start, head_since in waits.each(late_otherwise[waits.job] & (waits.start > guaranteed[waits.job])):
            due = int(guaranteed[job])
            if over_it:
                by_later[job] |= head_since != UNKNOWN and schedule.suffices(job, max(due, head_since), earlier=head_since)
            else:
                by_later[job] |= schedule.first_sufficient(job, max(since, due), start) < start
    return Violations(late / TICKS_PER_SECOND, by_later, by_failure)


class _Waits(NamedTuple):
    """The waits of jobs that ended with a start; shapes ``(waits,)``, ticks."""

    job: IntArray
    """Index of the record."""
    since: IntArray
    start: IntArray
    head_since: IntArray
    """When the job was left waiting at the head of the queue; :data:`UNKNOWN` if it was not."""

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
        """Yield job, since, start and head_since of the chosen waits."""
        yield from zip(*(column[which].tolist() for column in self), strict=True)


class _Schedule:
    """Which jobs ran when, in queue order."""

    def __init__(self, records: JobRecords, nodes: int, *, only_with_idle_nodes: bool) -> None:
        order = np.lexsort((records.column("id"), records.column("submit"), -records.column("priority")))
        self._position = np.empty(len(order), dtype=np.int64)
        self._position[order] = np.arange(len(order))
        self._spare = nodes - records.column("nodes")
        # Latest end up to each position: before the first position with a later value, all jobs have ended at a given time.
        end = records.column("end")[order]
        self._latest_end = np.maximum.accumulate(end) if len(end) else end
        self._runs = _runs(records, self._position)
        self._in_time = _InTime.of(self._runs)
        outages = records.outages
        self._down = outages._replace(end=np.where(outages.end == UNKNOWN, _NEVER, outages.end))
        self._instants = _instants(records, nodes, only_with_idle_nodes=only_with_idle_nodes)

    def first_sufficient(self, job: int, since: int, start: int, *, earlier: int | None = None) -> int:
        """Return the first instant in [``since``, ``start``) at which jobs ahead of ``job`` left it enough nodes.

        If there is none, return a time not before ``start``.  Later jobs that started before ``earlier`` count as ahead.
        """
        runs, rivals = self._runs, self._ahead(job, since, start, earlier)
        down = (self._down.start < start) & (self._down.end > since)  # a node that has failed is ahead of every job
        begins, ends = (
            np.concatenate([of_runs[rivals], of_outages[down]])
            for of_runs, of_outages in ((runs.start, self._down.start), (runs.end, self._down.end))
        )
        size = np.concatenate([runs.nodes[rivals], np.ones(down.sum(), dtype=np.int64)])
        return _first_sufficient(since, np.maximum(begins, since), ends, size, self._spare[job], self._instants)

    def suffices(self, job: int, time: int, *, earlier: int) -> bool:
        """Return whether jobs ahead of ``job``, and nodes that are down, leave it enough nodes right after ``time``."""
        rivals = self._ahead(job, time, time + 1, earlier)
        down = int(((self._down.start <= time) & (self._down.end > time)).sum())
        return int(self._runs.nodes[rivals].sum()) + down <= int(self._spare[job])

    def _ahead(self, job: int, since: int, until: int, earlier: int | None) -> IntArray:
        """Return the runs in [``since``, ``until``) of jobs ahead of ``job``, or that started before ``earlier``."""
        position, runs = self._position[job], self._runs
        first = int(np.searchsorted(self._latest_end[:position], since, side="right"))
        begin, stop = np.searchsorted(runs.position, np.array([first, position]))
        rivals: IntArray = np.flatnonzero((runs.start[begin:stop] < until) & (runs.end[begin:stop] > since)) + begin
        if earlier is None:
            return rivals
        in_time = self._in_time
        begin, stop = np.searchsorted(in_time.latest_end, since, side="right"), np.searchsorted(in_time.start, earlier)
        already = in_time.run[begin:stop]
        return np.concatenate([rivals, already[(runs.position[already] > position) & (runs.end[already] > since)]])


class _Runs(NamedTuple):
    """All run attempts in queue order; shapes ``(runs,)``."""

    position: IntArray
    """Position of the job in the queue order."""
    start: IntArray
    end: IntArray
    nodes: IntArray


class _InTime(NamedTuple):
    """All run attempts in order of their starts; shapes ``(runs,)``."""

    run: IntArray
    """Index in :class:`_Runs`."""
    start: IntArray
    latest_end: IntArray
    """Of the runs up to this one."""

    @classmethod
    def of(cls, runs: _Runs) -> _InTime:
        """Return all attempts."""
        run = np.argsort(runs.start, kind="stable")
        end = runs.end[run]
        return cls(run, runs.start[run], np.maximum.accumulate(end) if len(end) else end)


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
    # States of zero length lie within an instant; of the others, take the first considered instant inside.
    candidate = instants[np.searchsorted(instants[:-1], times)]
    holds = (until > times) & (in_use <= enough) & (candidate < until)
    return int(candidate[np.argmax(holds)]) if holds.any() else _NEVER


def _instants(records: JobRecords, nodes: int, *, only_with_idle_nodes: bool) -> IntArray:
    """Return the instants to consider, ticks, ascending, with a sentinel after the last."""
    log = event_log(records, nodes)
    ticks = log.ticks
    if only_with_idle_nodes:
        idle, backfilled = log.empty.copy(), records.runs.where(records.runs.backfilled == 1)
        np.add.at(idle, np.searchsorted(ticks, backfilled.start), backfilled.nodes)
        ticks = ticks[idle > 0]
    return np.append(ticks, _NEVER)
