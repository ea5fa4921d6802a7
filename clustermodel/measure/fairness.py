"""Fairness that is counted job by job: who was delayed by jobs behind it in the queue.

Strict fairness (004_55d19449f9d7d838.txt, section 3.1): a schedule is fair if no job is delayed by one of lower priority.
A blocked job is *delayed by later jobs* when it starts after the first instant at which there were nodes to hand out and
the idle nodes plus the nodes held by jobs behind it in the queue order would have been enough for it.

"Nodes to hand out" means idle nodes after the jobs ahead of it had started and before anything was backfilled.  Without
that condition - the bare words of the definition - instants count at which the machine was full and nothing could have
been decided otherwise; docs/design shows both counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clustermodel.measure.events import event_log
from clustermodel.measure.records import UNKNOWN, JobRecords
from clustermodel.ticks import TICKS_PER_SECOND

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_NEVER = np.iinfo(np.int64).max


def delays_by_later_jobs(records: JobRecords, nodes: int, *, only_with_idle_nodes: bool = True) -> FloatArray:
    """Return for each job the seconds by which later jobs delayed its start; 0 for a job that was never blocked.

    Args:
        records: of a run.
        nodes: size of the machine.
        only_with_idle_nodes: look only at instants that had nodes to hand out (see above).

    Returns:
        Shape ``(jobs,)``, in the records' order.
    """
    order = np.lexsort((records.column("id"), records.column("submit"), -records.column("priority")))
    start, end, needed, head_since = (records.column(name)[order] for name in ("start", "end", "nodes", "head_since"))
    delays = np.zeros(len(order), dtype=np.int64)
    instants = _instants(records, nodes, only_with_idle_nodes=only_with_idle_nodes)
    runs = _runs(records, order)
    # Jobs before this position have all ended by a given time: nothing earlier needs to be looked at.
    latest_end = np.maximum.accumulate(end) if len(end) else end
    for at in np.flatnonzero((head_since != UNKNOWN) & (start != UNKNOWN)):
        since, began = head_since[at], start[at]
        first = int(np.searchsorted(latest_end[:at], since, side="right"))
        begin, stop = np.searchsorted(runs.position, np.array([first, at]))
        rivals = np.flatnonzero((runs.start[begin:stop] < began) & (runs.end[begin:stop] > since)) + begin
        sufficient = _first_sufficient(
            since, np.maximum(runs.start[rivals], since), runs.end[rivals], runs.nodes[rivals], nodes - needed[at], instants
        )
        if sufficient < began:
            delays[at] = began - sufficient
    seconds = np.empty(len(order))
    seconds[order] = delays / TICKS_PER_SECOND
    return seconds


class _Runs(NamedTuple):
    """All runs, lost tries among them, in queue order of their jobs; each array has shape ``(runs,)``."""

    position: IntArray
    """Of the job in the queue order."""
    start: IntArray
    end: IntArray
    nodes: IntArray


def _runs(records: JobRecords, order: IntArray) -> _Runs:
    lost, started = records.lost_tries, np.flatnonzero(records.column("start") != UNKNOWN)
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    owner = position[np.concatenate([started, lost.job])]
    sequence = np.argsort(owner, kind="stable")
    last = (records.column("start"), records.column("end"), records.allocated)
    pairs = zip(last, (lost.start, lost.end, lost.nodes), strict=True)
    columns = [np.concatenate([column[started], of_tries])[sequence] for column, of_tries in pairs]
    return _Runs(owner[sequence], *columns)


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
        idle, lost, last = log.empty.copy(), records.lost_tries, records.column("backfilled") == 1
        start = np.concatenate([records.column("start")[last], lost.start[lost.backfilled == 1]])
        taken = np.concatenate([records.allocated[last], lost.nodes[lost.backfilled == 1]])
        np.add.at(idle, np.searchsorted(ticks, start), taken)
        ticks = ticks[idle > 0]
    return np.append(ticks, _NEVER)
