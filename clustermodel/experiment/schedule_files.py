"""Schedules as files: job records as CSV, in two layouts, and the schedule in the Standard Workload Format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import version
from os import PathLike
from typing import TYPE_CHECKING, Final

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.errors import SpecificationError, quoted, visible
from clustermodel.files import replacing, without_formulas
from clustermodel.measure.job_table import executed
from clustermodel.measure.timeline import gangs_in_space
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.run_attempts import REQUEUING, Status
from clustermodel.recording.run_attempts import UNKNOWN as NEVER_HAPPENED
from clustermodel.schedule.node_set import text
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.swf import (
    CANCELLED,
    COMPLETED,
    COMPLETED_PART,
    CONTINUED_PART,
    FAILED,
    FAILED_PART,
    UNKNOWN,
    write_swf,
)
from clustermodel.workload.table import PRECEDING, THINK

if TYPE_CHECKING:
    import pandas as pd

JOB_COLUMNS: Final = ("job", "submit_s", "start_s", "end_s", "nodes", "run_s", "estimate_s", "user", "status")
"""Columns of ``clustermodel run --jobs-csv``: a contract."""
LAYOUTS: Final = ("evalys", "jobs")

_BATSIM_STATE: Final = {
    "completed": "COMPLETED_SUCCESSFULLY",
    "killed": "COMPLETED_WALLTIME_REACHED",
    "aborted": "COMPLETED_KILLED",
    "rejected": "REJECTED",
    "unfinished": "NOT_SUBMITTED",
}
_SWF_STATUS: Final = {
    Status.COMPLETED: COMPLETED,
    Status.KILLED: FAILED,
    Status.ABORTED: FAILED,
    Status.REJECTED: CANCELLED,
    Status.UNFINISHED: UNKNOWN,
}
_SWF_STATUS_OF_PART: Final = {
    Status.COMPLETED: COMPLETED_PART,
    Status.KILLED: FAILED_PART,
    Status.ABORTED: FAILED_PART,
    **dict.fromkeys(REQUEUING, CONTINUED_PART),
}


def require_layout(layout: object) -> None:
    """Refuse an unknown layout of a CSV file.

    Raises:
        SpecificationError: ``layout`` is not one of ``LAYOUTS``.
    """
    if not isinstance(layout, str) or layout not in LAYOUTS:
        raise SpecificationError(f"layout: {quoted(layout)} is not allowed; it must be one of {', '.join(LAYOUTS)}")


def write_csv(table: pd.DataFrame, path: str | PathLike[str]) -> None:
    """Write a table of jobs to ``path`` as CSV.

    Raises:
        OutputError: the file cannot be written.
    """
    frame = without_formulas(table)
    with replacing(path) as file:
        frame.to_csv(file, mode="wb", index=False, float_format="%.6f", lineterminator="\n", errors="backslashreplace")


def jobs_layout(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of ``clustermodel run --jobs-csv``."""
    frame = jobs[list(JOB_COLUMNS)].copy()
    for column in frame.select_dtypes("float"):
        values = frame[column]
        if (values.dropna() % 1 == 0).all():  # whole seconds stay whole in the file
            frame[column] = values.astype("Int64")
    return frame


def evalys_layout(jobs: pd.DataFrame, records: JobRecords, *, policy: str, workload: str, shared_in_time: bool) -> pd.DataFrame:
    """Return the columns of Batsim's ``_jobs.csv``, from which ``evalys.jobset.JobSet.from_csv`` reads a schedule.

    A job has a row for each placement: for each run attempt, and for each set of nodes that it migrated to.  In all but its
    first row the submission is the end of the row before, so that evalys sees it in the queue between two run attempts.

    Times are rounded to 1/64 s, the finest fraction of six decimals that doubles add up exactly.  evalys recomputes starts and
    ends as submission + wait and start + run time; unrounded times would make jobs overlap by 1e-11 s, on more nodes than the
    machine has.

    Args:
        jobs: the job table.
        records: the job records of the same run.
        policy: label of the run.
        workload: name of the workload.
        shared_in_time: whether gangs shared their nodes in time.

    Raises:
        SpecificationError: gangs shared nodes in time, so that placements overlap.
    """
    import pandas as pd

    if shared_in_time:
        raise SpecificationError(
            "layout: 'evalys' is not allowed: its rows are gangs that have their nodes to themselves, and "
            f"{visible(policy)} shares nodes in time; it must be 'jobs'"
        )
    placements = gangs_in_space(records)
    job, begin, end = (
        np.array([getattr(gang, column) for gang in placements], dtype=np.int64) for column in ("job", "begin", "end")
    )
    of_job = jobs.iloc[job].reset_index(drop=True)
    follows = np.diff(job, prepend=-1) == 0
    last = np.append(~follows[1:], True)[: len(job)]
    submitted = np.where(follows, np.roll(end, 1), records.column("submit")[job])
    submit, start, finish = (np.rint(times / TICKS_PER_SECOND * 64) / 64 for times in (submitted, begin, end))
    return pd.DataFrame(
        {
            "job_id": of_job["job"],
            "workload_name": workload,
            "profile": of_job["user"].map(lambda user: f"user{user}"),
            "submission_time": submit,
            "requested_number_of_resources": of_job["nodes"],
            "requested_time": of_job["estimate_s"],
            "success": ((of_job["status"] == Status.COMPLETED.label) & last).astype(int),
            "final_state": of_job["status"].map(_BATSIM_STATE).where(last, _BATSIM_STATE["aborted"]),
            "starting_time": start,
            "execution_time": finish - start,
            "finish_time": finish,
            "waiting_time": start - submit,
            "turnaround_time": finish - submit,
            "stretch": np.where((of_job["run_s"] > 0) & last, of_job["response_s"] / of_job["run_s"], np.nan),
            "allocated_resources": [text(gang.columns) for gang in placements],
        }
    )


def write_schedule(
    path: str | PathLike[str],
    records: JobRecords,
    extra: Mapping[str, IntArray | None],
    *,
    nodes: int,
    policy: str,
    workload: str,
) -> None:
    """Write a schedule to ``path`` in the Standard Workload Format.

    A job whose time from start to end is not its run time (it was preempted, or shared its nodes in time) has a line for each
    run attempt after the line of the whole job: partial executions.

    Args:
        path: the file; ``.gz`` is compressed.
        records: the job records.
        extra: preceding jobs and think times (ticks), shape ``(jobs,)``, ``None`` where no job has them.
        nodes: size of the machine.
        policy: label of the run.
        workload: name of the workload.

    Raises:
        OutputError: the file cannot be written.
    """
    rows = list(_swf_rows(records, extra))
    split = len(rows) > len(records)
    notes = [
        f"simulated schedule of {workload} under {policy}",
        "status 1: completed, 0: killed, 5: rejected because the machine is too small",
    ]
    if split:
        notes += [
            "status of run attempts, 2: the job returned to the queue, 3: the last one, completed, 4: the last one, killed",
            "run time of a whole job: as on dedicated nodes; of a run attempt: from its start to its end",
            "average CPU time: how long the gang executed, discarded work included",
        ]
    header = [
        ("Version", "2.2"),
        ("Computer", f"simulated machine of {nodes} nodes"),
        ("Conversion", f"clustermodel {version('clustermodel')}"),
        ("MaxJobs", len(records)),
        ("MaxRecords", len(rows)),
        ("Preemption", "Double" if split else "No"),
        ("MaxNodes", nodes),
        ("MaxProcs", nodes),
        *(("Note", note) for note in notes),
    ]
    write_swf(path, rows, header=header)


def _swf_rows(records: JobRecords, extra: Mapping[str, IntArray | None]) -> Iterator[tuple[float, ...]]:
    """Yield the 18 numbers of each line: a job, then its run attempts if it needs lines of partial executions."""
    runs = records.runs
    order = np.argsort(runs.job, kind="stable")
    order = order[runs.end[order] != NEVER_HAPPENED]
    first = np.searchsorted(runs.job[order], np.arange(len(records) + 1)).tolist()
    attempts = list(
        zip(
            *(column[order].tolist() for column in (runs.start, runs.end, runs.nodes, executed(records), runs.ended_as)),
            strict=True,
        )
    )
    unknown = np.full(len(records), UNKNOWN)
    preceding, think = (unknown if (column := extra[name]) is None else column for name in (PRECEDING, THINK))
    jobs = zip(
        *(records.column(name).tolist() for name in ("id", "submit", "worked", "estimate", "ended_as")),
        *(records.column(name).clip(min=UNKNOWN).tolist() for name in ("nodes", "user", "group")),  # none is below -1 in a file
        records.allocated.tolist(),
        records.column("memory").tolist(),
        preceding.tolist(),
        think.tolist(),
        strict=True,
    )
    for index, (job, submit, run, estimate, status, asked, user, group, used, kib, before, thought) in enumerate(jobs):
        of_job = attempts[first[index] : first[index + 1]]
        ended = run != NEVER_HAPPENED
        wait = of_job[0][0] - submit if of_job else UNKNOWN
        cpu = sum(attempt[3] for attempt in of_job) if of_job else UNKNOWN
        labels = (user, group, -1, -1, -1)
        asks = (-1, asked, estimate / TICKS_PER_SECOND, kib)
        think_s = UNKNOWN if before == UNKNOWN else thought / TICKS_PER_SECOND
        times = (_seconds(submit), _seconds(wait), _seconds(run))
        yield job, *times, used if ended else UNKNOWN, _seconds(cpu), *asks, _SWF_STATUS[status], *labels, before, think_s
        if len(of_job) < 2 and (not ended or of_job[0][1] - of_job[0][0] == run):
            continue
        submitted, queued = submit, submit
        for start, end, nodes, spent, outcome in of_job:
            times = (_seconds(submitted), _seconds(start - queued), _seconds(end - start))
            yield job, *times, nodes, _seconds(spent), *asks, _SWF_STATUS_OF_PART[outcome], *labels, -1, -1
            submitted, queued = UNKNOWN, end  # the format: only the first part has a submit time


def _seconds(ticks: int) -> float:
    return UNKNOWN if ticks < 0 else ticks / TICKS_PER_SECOND
