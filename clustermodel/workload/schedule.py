"""Schedules that were recorded: when and on how many nodes each job of a file in the Standard Workload Format ran.

A trace is read as a workload by :func:`clustermodel.workload.swf.read_swf`, which leaves out what the system did.  Here waits,
starts, ends and partial executions are read, of a real log as of a simulated schedule.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from clustermodel.errors import TraceError
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import flag
from clustermodel.workload import swf
from clustermodel.workload.provenance import Provenance

if TYPE_CHECKING:
    import pandas as pd

_NEEDED: Final = (swf.NUMBER, swf.SUBMITTED, swf.WAIT, swf.RUN, swf.ALLOCATED)
_OUTCOME: Final = {
    swf.COMPLETED: "completed", swf.FAILED: "failed", swf.CANCELLED: "cancelled", swf.COMPLETED_PART: "completed",
    swf.FAILED_PART: "failed", swf.CONTINUED_PART: "continued",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A recorded schedule.  Tables are pandas, times in seconds on the clock of the file."""

    jobs: pd.DataFrame
    """A row for each job, in order of the file.  Columns as in :attr:`Result.jobs
    <clustermodel.experiment.result.Result.jobs>`: ``job``, ``submit_s``, ``start_s``, ``end_s`` (of the last run attempt),
    ``nodes``, ``allocated_nodes`` (0 if the job never ran), ``run_s``, ``estimate_s``, ``user``, ``group``, ``status``
    (``completed``, ``failed``, ``cancelled`` or ``unknown``), ``wait_s``, ``response_s``, ``tries``; ``nan`` is unknown."""
    run_attempts: pd.DataFrame
    """A row for each run attempt whose start is known, by job, then by time.  Columns as in :attr:`Result.run_attempts
    <clustermodel.experiment.result.Result.run_attempts>`: ``job``, ``start_s``, ``end_s``, ``nodes``, ``executed_s`` (average
    CPU time) and ``outcome``: ``continued`` if another attempt follows, ``completed``, ``failed``, ``cancelled`` or
    ``unknown``."""
    provenance: Provenance
    """The file, its header, and counts of skipped lines and of partial executions."""


def read_schedule(path: str | os.PathLike[str], *, lenient: bool = False) -> Schedule:
    """Read when each job ran: waits, starts, ends, and the run attempts of jobs that were preempted.

    A job that has lines of partial executions (status 2 to 4) has a run attempt for each; the wait of the first counts from the
    submission, that of any other from the end of the one before.  Any other job has one run attempt, if its wait is known.
    The file is a log, or what :meth:`Result.to_swf <clustermodel.experiment.result.Result.to_swf>` has written.  If
    ``lenient``, malformed lines are counted and skipped.  Raises TraceError if the file cannot be read, is damaged, has a
    malformed line, no job, or two jobs with the same number.
    """
    import pandas as pd

    path = Path(path)
    provenance = Provenance(source=str(path), options={"lenient": flag("lenient", lenient)}, header=swf.read_header(path))
    blocks = list(swf.data_lines(path, _NEEDED, lenient=lenient, dropped=provenance.dropped, messages=[]))
    if not blocks:
        raise TraceError(f"{path}: no job: {'; '.join(provenance.lines()) or 'the file has no job lines'}")
    table = np.concatenate([block.table for block in blocks])
    lines = pd.DataFrame(np.where(table < 0, np.nan, table), columns=list(swf.SWF_FIELDS))
    for field in ("job_number", "status", "user_id", "group_id"):
        lines[field] = lines[field].fillna(swf.UNKNOWN).astype(np.int64)
    number, status = lines["job_number"], lines["status"]
    job = (number != number.shift()).cumsum() - 1  # the lines of a job follow each other
    part = status.isin(swf.PARTIAL)
    again = number.duplicated() & ~job.duplicated()
    if (twice := again | (~part & job.where(~part).duplicated())).any():
        second = int(np.argmax(twice))
        same = number == number[second] if again[second] else (job == job[second]) & ~part
        line_numbers = np.concatenate([block.numbers for block in blocks])
        raise TraceError(
            f"{path}:{line_numbers[second]}: field job_number: {number[second]} is used by two jobs, first on line "
            f"{line_numbers[int(np.argmax(same))]}; job numbers must be unique, and the partial executions of a job follow "
            "each other"
        )
    parts = part.groupby(job).sum()
    described = part.groupby(job).idxmin()  # the line of the whole job, or the first part
    by_parts_only = part[described].to_numpy()
    for which, jobs_of_parts in (("with the line", ~by_parts_only), ("without a line", by_parts_only)):
        if count := int(parts.to_numpy()[jobs_of_parts].sum()):
            provenance.partial[f"{which} of the whole job"] = count

    allocated = lines["allocated_processors"].where(lines["allocated_processors"] > 0, lines["requested_processors"])
    lines["nodes"] = allocated.fillna(0).astype(np.int64)
    whole = lines.loc[described].reset_index(drop=True)
    attempts = lines[part | (job.map(parts) == 0)]
    of_job = job[attempts.index]
    times = attempts[["wait_time", "run_time"]].assign(submit=of_job.map(whole["submit_time"]))
    known = times.notna().all(axis=1).groupby(of_job).cumprod().astype(bool)  # up to the first one without its times
    attempts, of_job = attempts[known], of_job[known]
    ticks = (times[known] * TICKS_PER_SECOND).round().astype(np.int64)
    end = ticks["submit"] + (ticks["wait_time"] + ticks["run_time"]).groupby(of_job).cumsum()
    run_attempts = pd.DataFrame(
        {
            "job": attempts["job_number"],
            "start_s": (end - ticks["run_time"]) / TICKS_PER_SECOND,
            "end_s": end / TICKS_PER_SECOND,
            "nodes": attempts["nodes"],
            "executed_s": attempts["average_cpu_time"],
            "outcome": attempts["status"].map(_OUTCOME).fillna("unknown"),
        }
    )
    last = run_attempts.groupby(of_job).last().reindex(whole.index)
    run_s = whole["run_time"].where(~by_parts_only, lines["run_time"].groupby(job).sum(min_count=1))
    ended_as = whole["status"].where(~by_parts_only, status.groupby(job).last())
    requested = whole["requested_processors"].fillna(0).astype(np.int64)
    jobs = pd.DataFrame(
        {
            "job": whole["job_number"],
            "submit_s": whole["submit_time"],
            "start_s": last["start_s"],
            "end_s": last["end_s"],
            "nodes": requested.where(requested > 0, whole["nodes"]),
            "allocated_nodes": last["nodes"].fillna(whole["nodes"].where(run_s > 0, 0)).astype(np.int64),
            "run_s": run_s,
            "estimate_s": whole["requested_time"],
            "user": whole["user_id"],
            "group": whole["group_id"],
            "status": ended_as.map({**_OUTCOME, swf.CONTINUED_PART: "unknown"}).fillna("unknown"),
            "wait_s": last["start_s"] - whole["submit_time"],
            "response_s": last["end_s"] - whole["submit_time"],
            "tries": of_job.value_counts().reindex(whole.index, fill_value=0),
        }
    )
    return Schedule(jobs=jobs, run_attempts=run_attempts.reset_index(drop=True), provenance=provenance)
