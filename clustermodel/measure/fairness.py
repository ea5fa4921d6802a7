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
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
    schedule, waits = _Schedule(records, nodes, only_with_idle_nodes=only_with_idle_nodes), _waits(records)
    waits = waits.where(waits.head_since != UNKNOWN)
    sufficient = schedule.first_sufficient(waits.job, waits.head_since, waits.start, waits.head_since if over_it else None)
    delays = np.zeros(len(records), dtype=np.int64)
    np.add.at(delays, waits.job, np.maximum(waits.start - sufficient, 0))
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
        schedule, waits = _Schedule(records, nodes, only_with_idle_nodes=True), _waits(records)
        waits = waits.where(late_otherwise[waits.job] & (waits.start > guaranteed[waits.job]))
        if over_it:
            waits = waits.where(waits.head_since != UNKNOWN)
            since = np.maximum(guaranteed[waits.job], waits.head_since)
            by_later[waits.job[schedule.suffices(waits.job, since, waits.head_since)]] = True
        else:
            since = np.maximum(guaranteed[waits.job], waits.since)
            by_later[waits.job[schedule.first_sufficient(waits.job, since, waits.start) < waits.start]] = True
    return Violations(late / TICKS_PER_SECOND, by_later, by_failure)


class _Waits(NamedTuple):
    """Waits that ended with a start; shapes ``(waits,)``, times in ticks."""

    job: IntArray  # index of the record
    since: IntArray
    start: IntArray
    head_since: IntArray  # when the job was at the head of the queue, ``UNKNOWN`` if it never was

    def where(self, which: BoolArray) -> _Waits:
        """Return some of the waits."""
        return _Waits(*(column[which] for column in self))


def _waits(records: JobRecords) -> _Waits:
    """Return the waits, by job, then by time."""
    runs = records.runs
    runs = runs.where(np.argsort(runs.job, kind="stable"))  # those of a job stay in order
    since = records.column("eligible")[runs.job]
    again = np.flatnonzero(runs.job[1:] == runs.job[:-1])
    since[again + 1] = runs.end[again]
    return _Waits(runs.job, since, runs.start, runs.head_since)


def _ranges(begin: IntArray, stop: IntArray) -> tuple[IntArray, IntArray]:
    """Return the numbers of all ranges ``begin`` to ``stop``, one after the other, each with the position of its range."""
    counts = np.maximum(stop - begin, 0)
    return np.repeat(np.arange(len(counts)), counts), np.arange(counts.sum()) + np.repeat(
        begin + counts - counts.cumsum(), counts
    )


class _Intervals:
    """Intervals of time in order of their starts.  Those that last at every 64th start are listed.

    So what overlaps another interval is in the list of the last such start before it, or starts since then.
    """

    _STEP: Final = 64

    def __init__(self, start: IntArray, end: IntArray) -> None:
        self._start, self._end = start, end
        begun = np.arange(len(start)) // self._STEP + 1  # the first list that an interval may be in
        interval, of_list = _ranges(begun, np.searchsorted(start[:: self._STEP], end))
        order = np.argsort(of_list, kind="stable")
        self._lasting = interval[order]
        self._bounds = np.searchsorted(of_list[order], np.arange(len(start) // self._STEP + 3))  # of the lists

    def blocks(self, since: IntArray, until: IntArray, most: int = 2**18) -> Iterator[slice]:
        """Yield parts of other intervals, each with about ``most`` candidates for an overlap, so that memory is bounded."""
        of_list, stop = self._candidates(since, until)
        counts = np.cumsum(self._bounds[of_list + 1] - self._bounds[of_list] + stop - self._STEP * of_list)
        starts = np.flatnonzero(np.diff(counts // most, prepend=-1)).tolist()
        yield from map(slice, starts, [*starts[1:], len(since)])

    def overlapping(self, since: IntArray, until: IntArray) -> tuple[IntArray, IntArray]:
        """Return the overlaps: position in ``since`` and ``until``, interval."""
        of_list, stop = self._candidates(since, until)
        first, place = _ranges(self._bounds[of_list], self._bounds[of_list + 1])
        second, begun = _ranges(self._STEP * of_list, stop)
        other, interval = np.append(first, second), np.append(self._lasting[place], begun)
        overlap = (self._start[interval] < until[other]) & (self._end[interval] > since[other])
        return other[overlap], interval[overlap]

    def _candidates(self, since: IntArray, until: IntArray) -> tuple[IntArray, IntArray]:
        """Return which list is the last one before each of the other intervals, and which interval starts after it."""
        begun = np.searchsorted(self._start, since, side="right")
        return np.maximum(begun - 1, 0) // self._STEP, np.searchsorted(self._start, until)


class _Schedule:
    """Which jobs ran when, in queue order."""

    def __init__(self, records: JobRecords, nodes: int, *, only_with_idle_nodes: bool) -> None:
        order = np.lexsort((records.column("id"), records.column("eligible"), -records.column("priority")))
        self._position = np.empty(len(order), dtype=np.int64)  # of each job
        self._position[order] = np.arange(len(order))
        self._spare = nodes - records.column("nodes")
        runs, outages = records.runs, records.outages
        self._runs = runs = runs.where(np.argsort(runs.start, kind="stable"))
        self._while_running = _Intervals(runs.start, runs.end)
        self._outages = outages._replace(end=np.where(outages.end == UNKNOWN, _NEVER, outages.end))
        self._while_down = _Intervals(outages.start, self._outages.end)
        log = event_log(records, nodes)
        instants = log.ticks
        if only_with_idle_nodes:
            idle, backfilled = log.empty.copy(), runs.where(runs.backfilled == 1)
            np.add.at(idle, np.searchsorted(instants, backfilled.start), backfilled.nodes)
            instants = instants[idle > 0]
        self._instants = np.append(instants, _NEVER)

    def first_sufficient(self, job: IntArray, since: IntArray, start: IntArray, earlier: IntArray | None = None) -> IntArray:
        """Return the first instant in [``since``, ``start``) at which jobs ahead of each of ``job`` left it enough nodes.

        If there is none, it is a time not before ``start``.  Later jobs that started before ``earlier`` count as ahead.
        """
        found = np.full(len(job), _NEVER)
        for block in self._while_running.blocks(since, start):
            spare, begun = self._spare[job[block]], since[block]
            other, begins, ends, size = self._ahead(
                job[block], begun, start[block], None if earlier is None else earlier[block]
            )
            wait = np.concatenate([np.arange(len(begun)), other, other])
            times = np.concatenate([begun, np.maximum(begins, begun[other]), ends])
            sequence = np.lexsort((times, wait))
            wait, times = wait[sequence], times[sequence]
            in_use = np.cumsum(np.concatenate([np.zeros_like(begun), size, -size])[sequence])  # 0 after all events of a wait
            until = np.where(np.diff(wait, append=-1) == 0, np.append(times[1:], _NEVER), _NEVER)
            # States of zero length lie within an instant; of the others, take the first considered instant inside.
            candidate = self._instants[np.searchsorted(self._instants[:-1], times)]
            holds = np.flatnonzero((until > times) & (in_use <= spare[wait]) & (candidate < until))
            first = holds[np.diff(wait[holds], prepend=-1) != 0]
            found[block][wait[first]] = candidate[first]
        return found

    def suffices(self, job: IntArray, time: IntArray, earlier: IntArray) -> BoolArray:
        """Return whether jobs ahead of each of ``job``, and nodes that are down, leave it enough nodes right after ``time``."""
        in_use = np.zeros(len(job), dtype=np.int64)
        for block in self._while_running.blocks(time, time + 1):
            other, _, _, size = self._ahead(job[block], time[block], time[block] + 1, earlier[block])
            np.add.at(in_use[block], other, size)
        enough: BoolArray = in_use <= self._spare[job]
        return enough

    def _ahead(
        self, job: IntArray, since: IntArray, until: IntArray, earlier: IntArray | None
    ) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Return what is ahead of jobs in [``since``, ``until``): position in ``job``, start, end, nodes.

        That is runs of jobs ahead in the queue, or that started before ``earlier``, and each node that is down.
        """
        other, run = self._while_running.overlapping(since, until)
        place, own = self._position[self._runs.job[run]], self._position[job[other]]
        ahead = place < own
        if earlier is not None:
            ahead |= (place > own) & (self._runs.start[run] < earlier[other])
        other, run = other[ahead], run[ahead]
        without, outage = self._while_down.overlapping(since, until)
        return (
            np.append(other, without),
            np.append(self._runs.start[run], self._outages.start[outage]),
            np.append(self._runs.end[run], self._outages.end[outage]),
            np.append(self._runs.nodes[run], np.ones_like(outage)),
        )


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
