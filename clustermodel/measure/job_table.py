"""What analyses read from the job records: the table of jobs, who held which nodes when, work that was useful or discarded.

Pure functions of :class:`~clustermodel.recording.job_records.JobRecords`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.measure.node_time import NodeTicks, node_seconds, node_ticks
from clustermodel.recording.job_records import JobRecords, in_seconds
from clustermodel.recording.run_attempts import PREEMPTIONS, REQUEUING, UNKNOWN, Status

if TYPE_CHECKING:
    import pandas as pd


class Holdings(NamedTuple):
    """Which job held which nodes when, in runs that ended: a row per run of neighbouring nodes; shapes ``(holdings,)``."""

    job: IntArray
    """Index of the job's record."""
    start: IntArray
    """Ticks."""
    end: IntArray
    """Ticks."""
    first_node: IntArray
    nodes: IntArray
    """Number of nodes from ``first_node`` on."""
    ended_as: IntArray
    """A ``Status``."""
    lost: IntArray
    """How much of the job's work was discarded at the end of the run, ticks."""


def holdings(records: JobRecords) -> Holdings:
    """Return which job held which nodes when, in order of start."""
    runs, ranges = records.runs, records.node_ranges
    held = runs.where(ranges.run)
    table = Holdings(held.job, ranges.since, ranges.until, ranges.first_node, ranges.nodes, held.ended_as, held.lost)
    ended = held.end != UNKNOWN
    return Holdings(*(column[ended] for column in table))


def run_attempts(records: JobRecords) -> IntArray:
    """Return how often each job was started, shape ``(jobs,)``."""
    return _count(records, records.runs.job)


def executed(records: JobRecords) -> IntArray:
    """Return how long each run attempt executed, without work that earlier attempts had saved, ticks; shape ``(attempts,)``.

    The attempts are those of :attr:`JobRecords.runs <clustermodel.recording.job_records.JobRecords.runs>`.
    """
    runs = records.runs
    stopped = np.isin(runs.ended_as, list(REQUEUING))
    saved = np.zeros(len(records), dtype=np.int64)  # of each job before its last attempt
    np.add.at(saved, runs.job[stopped], (runs.worked - runs.lost)[stopped])
    return np.where(stopped, runs.worked, np.maximum(runs.worked - saved[runs.job], 0))


def attempt_table(records: JobRecords) -> pd.DataFrame:
    """Return the run attempts that ended, by job, then by time: the table of ``Result.run_attempts``."""
    import pandas as pd

    runs = records.runs
    order = np.argsort(runs.job, kind="stable")
    order = order[runs.end[order] != UNKNOWN]
    spent, runs = executed(records)[order], runs.where(order)
    labels = np.array([status.label for status in Status])
    return pd.DataFrame(
        {
            "job": records.column("id")[runs.job],
            "start_s": in_seconds(runs.start),
            "end_s": in_seconds(runs.end),
            "nodes": runs.nodes,
            "executed_s": in_seconds(spent),
            "lost_s": in_seconds(runs.lost),
            "outcome": labels[runs.ended_as],
        }
    )


def preemptions(records: JobRecords) -> IntArray:
    """Return how often each job was preempted, shape ``(jobs,)``."""
    runs = records.runs
    return _count(records, runs.job[np.isin(runs.ended_as, PREEMPTIONS)])


def _count(records: JobRecords, jobs: IntArray) -> IntArray:
    counts: IntArray = np.bincount(jobs, minlength=len(records))
    return counts


def dedicated(records: JobRecords) -> IntArray:
    """Return the run time of each finished job on the nodes it asked for, ticks: the denominator of a slowdown.

    That is how long the job executed, unless it ran on another number of nodes.  Shape ``(jobs,)``.
    """
    executed, run, estimate, ended_as = (records.column(name) for name in ("worked", "run", "estimate", "ended_as"))
    reshaped = (records.allocated != records.column("nodes")) & (executed != UNKNOWN)
    asked: IntArray = np.where(ended_as == Status.COMPLETED, run, np.minimum(run, estimate))
    return np.where(reshaped, asked, executed)


def lost(records: JobRecords) -> IntArray:
    """Return how much work of each job was discarded, ticks, shape ``(jobs,)``."""
    discarded, runs = np.zeros(len(records), dtype=np.int64), records.runs
    np.add.at(discarded, runs.job, runs.lost)
    return discarded


def wasted(records: JobRecords) -> NodeTicks:
    """Return how much work of each job was discarded, node-ticks, shape ``(jobs,)``; the sum is the ledger's account *lost*."""
    runs = records.runs
    of_runs = node_ticks(runs.nodes, runs.lost)
    exact = of_runs.dtype == object
    discarded: NodeTicks = np.zeros(len(records), dtype=object) if exact else np.zeros(len(records), dtype=np.int64)
    np.add.at(discarded, runs.job, of_runs)
    return discarded


def useful(records: JobRecords) -> NodeTicks:
    """Return how much work of each job was useful, node-ticks, shape ``(jobs,)``; the sum is the ledger's *useful*."""
    ended_as, executed = records.column("ended_as"), records.column("worked")
    return node_ticks(records.allocated, np.where((ended_as == Status.ABORTED) | (executed == UNKNOWN), 0, executed))


def job_table(records: JobRecords) -> pd.DataFrame:
    """Return the records as pandas, one row per job; docs/outputs lists every column with unit and formula."""
    import pandas as pd

    start, end, submit = records.seconds("start"), records.seconds("end"), records.seconds("submit")
    labels = np.array([status.label for status in Status])
    return pd.DataFrame(
        {
            "job": records.column("id"),
            "submit_s": submit,
            "start_s": start,
            "end_s": end,
            "nodes": records.column("nodes"),
            "allocated_nodes": records.allocated,
            "run_s": records.seconds("worked"),
            "estimate_s": records.seconds("estimate"),
            "user": records.column("user"),
            "group": records.column("group"),
            "priority": records.column("priority"),
            "status": labels[records.column("ended_as")],
            "wait_s": start - submit,
            "response_s": end - submit,
            "reserved_s": records.seconds("reserved"),
            "head_since_s": in_seconds(records.blocked_since),
            "blocked": records.blocked_since != UNKNOWN,
            "backfilled": records.column("backfilled") == 1,
            "tries": run_attempts(records),
            "wasted_node_s": node_seconds(wasted(records)),
        }
    )
