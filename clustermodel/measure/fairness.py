"""Fairness job by job: which jobs were delayed by lower-priority jobs, and which started after their guaranteed start.

Strict fairness (Yuan et al. 2010, section 3.1): a schedule is fair if no job is delayed by a job of lower priority.
A blocked job is *delayed by lower-priority jobs* if it starts after the first instant at which nodes could be assigned and the
idle nodes plus the nodes held by jobs behind it in the queue order would have been enough for it.  "Nodes could be assigned"
means: nodes were idle after the jobs ahead of it had started and before any job was backfilled.  Without that condition - the
literal definition - instants count at which the machine was full, so that no other decision was possible.

Under EASY a later job may have been backfilled before the delayed one came to the head of the queue, when another job was
protected from it.  Of the jobs backfilled *over it*, only those that started since the job was blocked delay it: the others
count as if they were ahead of it.

Reservation violation (section 3.2): a job starts later than its first guaranteed start.  It is *benign* if jobs ahead of it in
the queue caused it by running longer than predicted: from the guaranteed start on there was no such instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import BoolArray, FloatArray, IntArray
from clustermodel.measure.job_table import Jobs, bounded_slowdown, useful
from clustermodel.measure.timeline import event_log
from clustermodel.recording.job_records import JobRecords, in_seconds
from clustermodel.recording.ledger import Ledger
from clustermodel.recording.run_attempts import UNKNOWN
from clustermodel.ticks import TICKS_PER_SECOND

if TYPE_CHECKING:
    import pandas as pd

_NEVER = np.iinfo(np.int64).max


def delays_by_later_jobs(
    records: JobRecords, nodes: int, *, only_with_idle_nodes: bool = True, over_it: bool = False
) -> FloatArray:
    """Return by how many seconds lower-priority jobs delayed each job's start; 0 for a job that was never blocked.

    A job that is preempted or stopped waits again and can be delayed again; the delays add up.  ``nodes`` is the size of the
    machine.  ``only_with_idle_nodes`` considers only instants at which nodes could be assigned, ``over_it`` only delays by jobs
    that started since the job was blocked (see above).  The shape is ``(jobs,)``, in the records' order.
    """
    schedule = _Schedule(records, nodes, only_with_idle_nodes=only_with_idle_nodes)
    delays = np.zeros(len(records), dtype=np.int64)
    for job, _, start, head_since in _waits(records):
        if head_since != UNKNOWN:
            sufficient = schedule.first_sufficient(job, head_since, start, earlier=head_since if over_it else None)
            delays[job] += max(start - sufficient, 0)
    return delays / TICKS_PER_SECOND


class Violations(NamedTuple):
    """Starts after the guaranteed start; shapes ``(jobs,)``."""

    late_s: FloatArray  # by how much each job started after its guaranteed start; 0 if it did not
    by_later: BoolArray  # jobs behind it in the queue caused the violation
    by_failure: BoolArray  # a node failed between the submission and the start: no policy could have known

    @property
    def benign(self) -> BoolArray:
        """The violations that neither lower-priority jobs nor failures caused."""
        return (self.late_s > 0) & ~self.by_later & ~self.by_failure


def reservation_violations(records: JobRecords, nodes: int, *, over_it: bool = False) -> Violations:
    """Return by how much each job's reservation was violated, and whether lower-priority jobs caused it (see above).

    With ``over_it`` each job is judged when the guaranteed start comes, as it was last renewed: by then the jobs backfilled
    over it (see above) held nodes without which too few were left for it.
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
        for job, since, start, head_since in _waits(records):
            due = int(guaranteed[job])
            if not late_otherwise[job] or start <= due:
                continue
            if over_it:
                by_later[job] |= head_since != UNKNOWN and schedule.suffices(job, max(due, head_since), earlier=head_since)
            else:
                by_later[job] |= schedule.first_sufficient(job, max(since, due), start) < start
    return Violations(late / TICKS_PER_SECOND, by_later, by_failure)


def _waits(records: JobRecords) -> Iterator[tuple[int, int, int, int]]:
    """Yield the waits that ended with a start: index of the record, since when, start, when at the head of the queue."""
    runs = records.runs
    runs = runs.where(np.argsort(runs.job, kind="stable"))  # those of a job stay in order
    since = records.column("eligible")[runs.job]
    again = np.flatnonzero(runs.job[1:] == runs.job[:-1])
    since[again + 1] = runs.end[again]
    yield from zip(*(column.tolist() for column in (runs.job, since, runs.start, runs.head_since)), strict=True)


class _Schedule:
    """Which jobs ran when, in queue order."""

    def __init__(self, records: JobRecords, nodes: int, *, only_with_idle_nodes: bool) -> None:
        order = np.lexsort((records.column("id"), records.column("eligible"), -records.column("priority")))
        self._position = np.empty(len(order), dtype=np.int64)  # of each job
        self._position[order] = np.arange(len(order))
        self._spare = nodes - records.column("nodes")
        # Latest end up to each position: before the first position with a later value, all jobs have ended at a given time.
        self._latest_end = np.maximum.accumulate(records.column("end")[order])
        runs = records.runs
        owner = self._position[runs.job]
        sequence = np.argsort(owner, kind="stable")
        # Run attempts in queue order: position of the job in it, start, end, nodes.
        self._owner, self._start, self._end, self._nodes = (of[sequence] for of in (owner, runs.start, runs.end, runs.nodes))
        self._by_start = np.argsort(self._start, kind="stable")
        self._starts, self._latest = self._start[self._by_start], np.maximum.accumulate(self._end[self._by_start])
        outages = records.outages
        self._down = outages._replace(end=np.where(outages.end == UNKNOWN, _NEVER, outages.end))
        log = event_log(records, nodes)
        instants = log.ticks
        if only_with_idle_nodes:
            idle, backfilled = log.empty.copy(), runs.where(runs.backfilled == 1)
            np.add.at(idle, np.searchsorted(instants, backfilled.start), backfilled.nodes)
            instants = instants[idle > 0]
        self._instants = np.append(instants, _NEVER)

    def first_sufficient(self, job: int, since: int, start: int, *, earlier: int | None = None) -> int:
        """Return the first instant in [``since``, ``start``) at which jobs ahead of ``job`` left it enough nodes.

        If there is none, return a time not before ``start``.  Later jobs that started before ``earlier`` count as ahead.
        """
        rivals = self._ahead(job, since, start, earlier)
        down = (self._down.start < start) & (self._down.end > since)  # a node that has failed is ahead of every job
        begins = np.maximum(np.concatenate([self._start[rivals], self._down.start[down]]), since)
        ends = np.concatenate([self._end[rivals], self._down.end[down]])
        size = np.concatenate([self._nodes[rivals], np.ones(down.sum(), dtype=np.int64)])
        times, changes = np.concatenate([[since], begins, ends]), np.concatenate([[0], size, -size])
        sequence = np.argsort(times, kind="stable")
        times, in_use = times[sequence], np.cumsum(changes[sequence])
        until = np.append(times[1:], _NEVER)
        # States of zero length lie within an instant; of the others, take the first considered instant inside.
        candidate = self._instants[np.searchsorted(self._instants[:-1], times)]
        holds = (until > times) & (in_use <= self._spare[job]) & (candidate < until)
        return int(candidate[np.argmax(holds)]) if holds.any() else _NEVER

    def suffices(self, job: int, time: int, *, earlier: int) -> bool:
        """Return whether jobs ahead of ``job``, and nodes that are down, leave it enough nodes right after ``time``."""
        rivals = self._ahead(job, time, time + 1, earlier)
        down = int(((self._down.start <= time) & (self._down.end > time)).sum())
        return int(self._nodes[rivals].sum()) + down <= int(self._spare[job])

    def _ahead(self, job: int, since: int, until: int, earlier: int | None) -> IntArray:
        """Return the runs in [``since``, ``until``) of jobs ahead of ``job``, or that started before ``earlier``."""
        position = self._position[job]
        first = int(np.searchsorted(self._latest_end[:position], since, side="right"))
        begin, stop = np.searchsorted(self._owner, np.array([first, position]))
        rivals: IntArray = np.flatnonzero((self._start[begin:stop] < until) & (self._end[begin:stop] > since)) + begin
        if earlier is None:
            return rivals
        begin, stop = np.searchsorted(self._latest, since, side="right"), np.searchsorted(self._starts, earlier)
        already = self._by_start[begin:stop]
        return np.concatenate([rivals, already[(self._owner[already] > position) & (self._end[already] > since)]])


def fairness_by_width(records: JobRecords, ledger: Ledger) -> pd.DataFrame:
    """Return blocked, delayed, late-started, preempted jobs: all, ``wide`` (more than a quarter of the machine), ``narrow``.

    These are the numbers of Yuan et al. 2010, tables 1, 2 and 4 to 6 and, for blocked jobs, figures 2 and 3.
    """
    import pandas as pd

    jobs = Jobs.of(records)
    nodes, ran = jobs.nodes, jobs.end != UNKNOWN
    response_s, run_s = in_seconds(jobs.end) - in_seconds(jobs.submit), jobs.dedicated / TICKS_PER_SECOND
    slowdown = bounded_slowdown(response_s, run_s)
    late = {}
    for suffix, over_it in (("", False), ("_over_it", True)):
        violations = reservation_violations(records, ledger.nodes, over_it=over_it)
        # Compared with a job that starts, and so ends, as much earlier as it was late.
        increment = slowdown - bounded_slowdown(response_s - violations.late_s, run_s)
        late[suffix] = delays_by_later_jobs(records, ledger.nodes, over_it=over_it), violations, increment
    violations = late[""][1]
    waste = jobs.lost / np.maximum(jobs.executed, 1)
    wide, useful_work, capacity = 4 * nodes > ledger.nodes, useful(records), ledger.capacity or nan
    rows = {}
    for name, members in {"all": ran, "wide": ran & wide, "narrow": ran & ~wide}.items():
        blocked, benign = members & (jobs.blocked_since != UNKNOWN), members & violations.benign
        preempted = members & (jobs.preemptions > 0)
        discarded, done = (int(work[members].sum()) for work in (jobs.wasted, useful_work))
        rows[name] = {
            "jobs": int(members.sum()),
            "mean_bounded_slowdown": _mean(slowdown[members]),
            "mean_weighted_bounded_slowdown": weighted_mean(slowdown[members], nodes[members]),
            "backfilled": int(jobs.backfilled[members].sum()),
            "blocked": int(blocked.sum()),
            "blocked_bounded_slowdown": _mean(slowdown[blocked]),
            "blocked_weighted_bounded_slowdown": weighted_mean(slowdown[blocked], nodes[blocked]),
            **_by_later(members, nodes, *late[""]),
            "benign_violations": int(benign.sum()),
            "mean_benign_violation_s": _mean(violations.late_s[benign]),
            "preempted": int(preempted.sum()),
            "preempted_rate": _mean(preempted[members]),
            "mean_killed_times": _mean(jobs.preemptions[preempted]),
            "runtime_waste": _mean(waste[preempted]),
            "total_load": (discarded + done) / capacity,
            "wasted_load": discarded / capacity,
            **{f"{name}_over_it": value for name, value in _by_later(members, nodes, *late["_over_it"]).items()},
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _by_later(
    members: BoolArray, nodes: IntArray, delays: FloatArray, violations: Violations, increment: FloatArray
) -> dict[str, float]:
    """Return how many jobs, and by how much, lower-priority jobs delay, and reservations they violate."""
    delayed, violated = members & (delays > 0), members & violations.by_later
    return {
        "delayed": int(delayed.sum()),
        "mean_delay_by_later_s": _mean(delays[delayed]),
        "longest_delay_by_later_s": _largest(delays[delayed]),
        "reservation_violations": int(violated.sum()),
        "mean_violation_nodes": _mean(nodes[violated]),
        "mean_violation_s": _mean(violations.late_s[violated]),
        "longest_violation_s": _largest(violations.late_s[violated]),
        "mean_slowdown_increment": _mean(increment[violated]),
        "largest_slowdown_increment": _largest(increment[violated]),
    }


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else nan


def _largest(values: FloatArray) -> float:
    return float(values.max()) if len(values) else nan


def weighted_mean(values: FloatArray, weights: IntArray) -> float:
    """Return the mean of ``values`` weighted by ``weights``; ``nan`` if there are none."""
    return float(np.average(values, weights=weights)) if len(values) else nan
