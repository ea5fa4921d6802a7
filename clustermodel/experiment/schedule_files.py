"""Schedules as files: job records as CSV, in two layouts, and the schedule in the Standard Workload Format."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from os import PathLike
from typing import TYPE_CHECKING, Final

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.errors import SpecificationError, counted, quoted, visible
from clustermodel.output_files import replacing, without_formulas
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.run_attempts import Status
from clustermodel.schedule.node_set import text
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.extra_columns import MEMORY, PRECEDING, THINK
from clustermodel.workload.swf_line import UNKNOWN
from clustermodel.workload.swf_writer import write_swf

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
_SWF_STATUS: Final = {"completed": 1, "killed": 0, "aborted": 0, "rejected": 5, "unfinished": -1}


def require_layout(layout: object) -> None:
    """Refuse an unknown layout of a CSV file.

    Raises:
        SpecificationError: ``layout`` is not one of :data:`LAYOUTS`.
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
    """Return the columns of ``clustermodel run --jobs-csv``.

    Args:
        jobs: the job table, :attr:`Result.jobs <clustermodel.experiment.result.Result.jobs>`.
    """
    frame = jobs[list(JOB_COLUMNS)].copy()
    for column in frame.select_dtypes("float"):
        values = frame[column]
        if (values.dropna() % 1 == 0).all():  # whole seconds stay whole in the file
            frame[column] = values.astype("Int64")
    return frame


def evalys_layout(jobs: pd.DataFrame, records: JobRecords, *, policy: str, workload: str, shared_in_time: bool) -> pd.DataFrame:
    """Return the columns of Batsim's ``_jobs.csv``, from which ``evalys.jobset.JobSet.from_csv`` reads a schedule.

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
        SpecificationError: a job has no single time and place, because of time sharing or several run attempts.
    """
    import pandas as pd

    if shared_in_time:
        why = "shares nodes in time"
    elif stopped := len(np.unique(records.stopped_runs.job)):
        why = f"ran {counted(stopped, 'job')} in more than one attempt"
    else:
        why = ""
    if why:
        raise SpecificationError(
            f"layout: 'evalys' is not allowed: it has one row, with one time and one set of nodes, for each job, and "
            f"{visible(policy)} {why}; it must be 'jobs'"
        )
    allocated = [text(records.columns_of(index)) for index in range(len(jobs))]
    ran = jobs["end_s"].notna()
    submit, start, end = (np.rint(jobs[time] * 64) / 64 for time in ("submit_s", "start_s", "end_s"))
    frame = pd.DataFrame(
        {
            "job_id": jobs["job"],
            "workload_name": workload,
            "profile": jobs["user"].map(lambda user: f"user{user}"),
            "submission_time": submit,
            "requested_number_of_resources": jobs["nodes"],
            "requested_time": jobs["estimate_s"],
            "success": (jobs["status"] == Status.COMPLETED.label).astype(int),
            "final_state": jobs["status"].map(_BATSIM_STATE),
            "starting_time": start,
            "execution_time": end - start,
            "finish_time": end,
            "waiting_time": start - submit,
            "turnaround_time": end - submit,
            "stretch": np.where(jobs["run_s"] > 0, jobs["response_s"] / jobs["run_s"], np.nan),
            "allocated_resources": allocated,
        }
    )
    return frame[ran].reset_index(drop=True)


def write_schedule(
    path: str | PathLike[str],
    jobs: pd.DataFrame,
    extra: Mapping[str, IntArray | None],
    *,
    nodes: int,
    policy: str,
    workload: str,
) -> None:
    """Write a schedule to ``path`` in the Standard Workload Format.

    Args:
        path: the file; ``.gz`` is compressed.
        jobs: the job table.
        extra: requested memory (KiB per node), preceding jobs and think times (ticks), shape ``(jobs,)``, ``None`` where no
            job has them.
        nodes: size of the machine.
        policy: label of the run.
        workload: name of the workload.

    Raises:
        OutputError: the file cannot be written.
    """
    jobs = jobs.fillna({"wait_s": UNKNOWN, "run_s": UNKNOWN})
    ran = jobs["end_s"].notna()
    unknown = np.full(len(jobs), UNKNOWN)
    memory, preceding, think = (unknown if (one := extra[name]) is None else one for name in (MEMORY, PRECEDING, THINK))
    rows = zip(
        jobs["job"],
        jobs["submit_s"],
        jobs["wait_s"],
        jobs["run_s"],
        jobs["allocated_nodes"].where(ran, UNKNOWN),
        jobs["nodes"].clip(lower=UNKNOWN),  # the format has no numbers below -1
        jobs["estimate_s"],
        jobs["status"].map(_SWF_STATUS),
        jobs["user"].clip(lower=UNKNOWN),
        jobs["group"].clip(lower=UNKNOWN),
        memory.tolist(),
        preceding.tolist(),
        np.where(preceding == UNKNOWN, UNKNOWN, think / TICKS_PER_SECOND).tolist(),
        strict=True,
    )
    header = [
        ("Version", "2.2"),
        ("Computer", f"simulated machine of {nodes} nodes"),
        ("Conversion", f"clustermodel {version('clustermodel')}"),
        ("MaxJobs", len(jobs)),
        ("MaxRecords", len(jobs)),
        ("Preemption", "No"),
        ("MaxNodes", nodes),
        ("MaxProcs", nodes),
        ("Note", f"simulated schedule of {workload} under {policy}"),
        ("Note", "status 1: completed, 0: killed, 5: rejected because the machine is too small"),
    ]
    write_swf(
        path,
        (
            (job, submit, wait, run, used, -1, -1, asked, estimate, kib, status, user, group, -1, -1, -1, before, think_s)
            for job, submit, wait, run, used, asked, estimate, status, user, group, kib, before, think_s in rows
        ),
        header=header,
    )
