"""What analyses read from the job records: the outcome of each job, tables of jobs and run attempts.

Node time is exact: columns of 64 bits where the sum fits, as in ordinary runs, else of Python's unlimited integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import BoolArray, FloatArray, IntArray
from clustermodel.measure.columns import frame
from clustermodel.recording.job_records import JobRecords, StreamedJob, in_seconds
from clustermodel.recording.run_attempts import PREEMPTIONS, REQUEUING, UNKNOWN, Status
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.job import NUMBERS

if TYPE_CHECKING:
    import pandas as pd

NodeTicks = npt.NDArray[np.int64] | npt.NDArray[np.object_]  # >= 0, exact
GAMMA_S: Final = 10.0  # slowdown bound Gamma (Zhang et al. 2003, section 2.3)
_SAFE: Final = 2.0**62  # if a sum of positive terms is at most this in floating point, its exact value is far below 2^63
_EXACT: Final = 2**53  # whole numbers up to this one are exact in floating point
_ASKED: Final = ("id", "submit", "nodes", "estimate", "user", "group", "priority")
_OF_STREAMS: Final = (
    "start", "end", "allocated", "executed", "status", "reserved", "blocked_since", "attempts", "preemptions", "resizes"
)  # fmt: skip


def node_ticks(nodes: npt.NDArray[np.int64], ticks: npt.NDArray[np.int64]) -> NodeTicks:
    """Return nodes x ticks, element by element; neither is negative."""
    if np.dot(nodes.astype(np.float64), ticks.astype(np.float64)) > _SAFE:
        exact: npt.NDArray[np.object_] = nodes.astype(object) * ticks.astype(object)
        return exact
    return nodes * ticks


def node_seconds(amounts: NodeTicks) -> FloatArray:
    """Return node-ticks as node-seconds, each the nearest floating point number."""
    if len(amounts) and amounts.max() > _EXACT:
        return np.array([amount / TICKS_PER_SECOND for amount in amounts.tolist()], dtype=np.float64)
    return amounts.astype(np.float64) / TICKS_PER_SECOND


class Jobs(NamedTuple):
    """The outcomes of jobs: shapes ``(jobs,)``, times in ticks, ``UNKNOWN`` where something never happened."""

    id: IntArray
    submit: IntArray
    nodes: IntArray  # that the job asks for
    estimate: IntArray
    user: IntArray
    group: IntArray
    priority: IntArray
    start: IntArray  # of the last run attempt
    end: IntArray
    allocated: IntArray  # nodes of the last run attempt, 0 if there was none
    executed: IntArray  # without other gangs' slices, overheads and discarded work
    dedicated: IntArray  # run time on the nodes that the job asks for: the denominator of a slowdown
    status: IntArray
    reserved: IntArray  # the first guaranteed start
    blocked_since: IntArray  # when the job was first left waiting at the head of the queue
    backfilled: BoolArray  # whether the last run attempt started while a job ahead in the queue kept waiting
    attempts: IntArray
    preemptions: IntArray
    resizes: IntArray
    requeued: BoolArray  # whether the job was stopped at a time limit of the policy and restarted
    lost: IntArray  # discarded work, ticks
    wasted: NodeTicks  # discarded work, node-ticks; the sum is the ledger's account *lost*

    @classmethod
    def of(cls, records: JobRecords) -> Jobs:
        """Return the jobs of a run, in order of submission."""
        runs, jobs = records.runs, len(records)
        of = {name: records.column(name) for name in (*_ASKED, "start", "end", "reserved")}
        allocated, worked, status = records.allocated, records.column("worked"), records.column("ended_as")
        resizes = np.bincount(runs.job[runs.ended_as == Status.RESIZED], minlength=jobs)
        requeued = np.bincount(runs.job[runs.ended_as == Status.REQUEUED], minlength=jobs) > 0
        return cls(
            **of,
            allocated=allocated,
            executed=worked,
            dedicated=_dedicated(of["nodes"], records.column("run"), of["estimate"], allocated, resizes, worked, status),
            status=status,
            blocked_since=records.blocked_since,
            backfilled=records.column("backfilled") == 1,
            attempts=np.bincount(runs.job, minlength=jobs) - resizes,
            resizes=resizes,
            preemptions=np.bincount(runs.job[np.isin(runs.ended_as, PREEMPTIONS)], minlength=jobs),
            requeued=requeued,
            lost=_sum(records, runs.job, runs.lost),
            wasted=_sum(records, runs.job, node_ticks(runs.nodes, runs.lost)),
        )

    @classmethod
    def of_streamed(cls, left: Sequence[StreamedJob]) -> Jobs:
        """Return jobs that have left the system in a streamed run, in this order."""
        rows = np.array([job.row[:-1] for job in left], dtype=np.int64).reshape(-1, len(NUMBERS)).T
        row = dict(zip(NUMBERS, rows, strict=True))
        of = {name: np.array([getattr(job, name) for job in left], dtype=np.int64) for name in (*_OF_STREAMS, "lost")}
        return cls(
            **{name: row[name] for name in _ASKED},
            **of,
            dedicated=_dedicated(
                row["nodes"], row["run"], row["estimate"], of["allocated"], of["resizes"], of["executed"], of["status"]
            ),
            backfilled=np.array([job.backfilled for job in left], dtype=bool),
            requeued=np.array([job.requeued for job in left], dtype=bool),
            wasted=np.array([job.wasted for job in left], dtype=object),
        )

    def where(self, which: BoolArray) -> Jobs:
        """Return some of the jobs."""
        columns: Any = (column[which] for column in self)
        return Jobs(*columns)


def _dedicated(
    nodes: IntArray,
    run: IntArray,
    estimate: IntArray,
    allocated: IntArray,
    resizes: IntArray,
    worked: IntArray,
    ended_as: IntArray,
) -> IntArray:
    """Return what the jobs executed, or where they ran on other nodes than they ask for, what they would have executed."""
    reshaped = ((allocated != nodes) | (resizes > 0)) & (worked != UNKNOWN)
    asked: IntArray = np.where(ended_as == Status.COMPLETED, run, np.minimum(run, estimate))
    return np.where(reshaped, asked, worked)


def bounded_slowdown(response_s: FloatArray, run_s: FloatArray, gamma_s: float = GAMMA_S) -> FloatArray:
    """Return max(t^r, Gamma) / max(t^e, Gamma) for each job, at least 1 (Zhang et al. 2003, section 2.3; Yuan et al. 2010)."""
    return np.maximum(response_s, gamma_s) / np.maximum(run_s, gamma_s)


def bounded_slowdown_perkovic(response_s: FloatArray, run_s: FloatArray, bound_s: float = GAMMA_S) -> FloatArray:
    """Return (finish - submit) / max(run, bound), perhaps below 1 (Perkovic & Keleher 2000, section 2)."""
    return response_s / np.maximum(run_s, bound_s)


def executed(records: JobRecords) -> IntArray:
    """Return how long each of ``records.runs`` executed, without work that earlier attempts had saved, ticks."""
    runs = records.runs
    alone = np.isin(runs.ended_as, list(REQUEUING)) | records.malleable[runs.job]  # it is that of the attempt already
    saved = _sum(records, runs.job[alone], (runs.worked - runs.lost)[alone])  # of each job before its last attempt
    return np.where(alone, runs.worked, np.maximum(runs.worked - saved[runs.job], 0))


def attempt_table(records: JobRecords) -> pd.DataFrame:
    """Return the run attempts that ended, by job, then by time: the table of ``Result.run_attempts``."""
    runs = records.runs
    order = np.argsort(runs.job, kind="stable")
    order = order[runs.end[order] != UNKNOWN]
    spent, runs = executed(records)[order], runs.where(order)
    columns = {
        "job": records.column("id")[runs.job], "start_s": in_seconds(runs.start), "end_s": in_seconds(runs.end),
        "nodes": runs.nodes, "executed_s": in_seconds(spent), "lost_s": in_seconds(runs.lost),
        "outcome": status_labels(runs.ended_as),
    }  # fmt: skip
    return frame(columns)


def useful(records: JobRecords) -> NodeTicks:
    """Return how much work of each job was useful, node-ticks, shape ``(jobs,)``; the sum is the ledger's *useful*."""
    ended_as, worked, malleable = records.column("ended_as"), records.column("worked"), records.malleable
    kept = node_ticks(records.allocated, np.where((ended_as == Status.ABORTED) | (worked == UNKNOWN) | malleable, 0, worked))
    if malleable.any():
        runs = records.runs
        runs = runs.where(malleable[runs.job])
        kept = kept + _sum(records, runs.job, node_ticks(runs.nodes, runs.worked - runs.lost))
    return kept


def _sum(records: JobRecords, jobs: IntArray, amounts: NodeTicks) -> Any:
    """Return the sums of amounts by job, of their type, shape ``(jobs,)``."""
    sums = np.zeros(len(records), dtype=amounts.dtype)
    np.add.at(sums, jobs, amounts)
    return sums


def status_labels(status: IntArray) -> npt.NDArray[np.str_]:
    """Return the names of statuses, shape ``(jobs,)``."""
    return np.array([status.label for status in Status])[status]


def job_columns(jobs: Jobs, *, malleable: bool = False) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of the job table, one row per job, of all runs; docs/outputs lists each with unit and formula.

    Those of ``malleable`` jobs are left out where there are none.
    """
    start, end, submit = in_seconds(jobs.start), in_seconds(jobs.end), in_seconds(jobs.submit)
    return {
        "job": jobs.id, "submit_s": submit, "start_s": start, "end_s": end,
        "nodes": jobs.nodes, "allocated_nodes": jobs.allocated,
        "run_s": in_seconds(jobs.executed), "estimate_s": in_seconds(jobs.estimate),
        "user": jobs.user, "group": jobs.group, "priority": jobs.priority, "status": status_labels(jobs.status),
        "wait_s": start - submit, "response_s": end - submit,
        "reserved_s": in_seconds(jobs.reserved), "head_since_s": in_seconds(jobs.blocked_since),
        "blocked": jobs.blocked_since != UNKNOWN, "backfilled": jobs.backfilled,
        "tries": jobs.attempts, "wasted_node_s": node_seconds(jobs.wasted),
        **({"resizes": jobs.resizes} if malleable else {}),
    }  # fmt: skip
