"""Files of one result: job records as CSV, the schedule as SWF."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Final

import numpy as np

from clustermodel.errors import SpecificationError, counted, quoted, visible
from clustermodel.output_files import replacing, without_formulas
from clustermodel.recording.job_records import Status
from clustermodel.schedule.node_set import text
from clustermodel.workload.swf import write_swf
from clustermodel.workload.swf_line import UNKNOWN

if TYPE_CHECKING:
    import pandas as pd

    from clustermodel.experiment.scenario import Result

JOB_COLUMNS: Final = ("job", "submit_s", "start_s", "end_s", "nodes", "run_s", "estimate_s", "user", "status")
"""Columns of ``clustermodel run --jobs-csv``: a contract."""

_SWF_STATUS: Final = {"completed": 1, "killed": 0, "aborted": 0, "rejected": 5, "unfinished": -1}


def write_jobs(result: Result, path: str | PathLike[str], layout: str) -> None:
    """Write ``result``'s jobs to ``path``; see :meth:`clustermodel.experiment.scenario.Result.to_csv`."""
    if not isinstance(layout, str) or layout not in _LAYOUTS:
        raise SpecificationError(f"layout: {quoted(layout)} is not allowed; it must be one of {', '.join(_LAYOUTS)}")
    frame = without_formulas(_LAYOUTS[layout](result))
    with replacing(path) as file:
        frame.to_csv(file, mode="wb", index=False, float_format="%.6f", lineterminator="\n", errors="backslashreplace")


def _jobs_layout(result: Result) -> pd.DataFrame:
    frame = result.jobs[list(JOB_COLUMNS)].copy()
    for column in frame.select_dtypes("float"):
        values = frame[column]
        if (values.dropna() % 1 == 0).all():  # whole seconds stay whole in the file
            frame[column] = values.astype("Int64")
    return frame


def _evalys_layout(result: Result) -> pd.DataFrame:
    """Return the columns of Batsim's ``_jobs.csv``, from which ``evalys.jobset.JobSet.from_csv`` reads a schedule.

    Times are rounded to 1/64 s, the finest fraction of six decimals that doubles add up exactly: evalys computes starts and
    ends anew, as submission + wait and start + run time, and would else find jobs that overlap for 1e-11 s, on more nodes than
    there are.
    """
    import pandas as pd

    if result.slices is not None:
        why = "shares nodes in time"
    elif stopped := len(np.unique(result.records.stopped_runs.job)):
        why = f"ran {counted(stopped, 'job')} in more than one attempt"
    else:
        why = ""
    if why:
        raise SpecificationError(
            f"layout: 'evalys' is not allowed: it has one row, with one time and one set of nodes, for each job, and "
            f"{visible(result.scenario.label)} {why}; it must be 'jobs'"
        )
    jobs = result.jobs
    allocated = [text(result.records.columns_of(index)) for index in range(len(jobs))]
    ran = jobs["end_s"].notna()
    submit, start, end = (np.rint(jobs[time] * 64) / 64 for time in ("submit_s", "start_s", "end_s"))
    frame = pd.DataFrame(
        {
            "job_id": jobs["job"],
            "workload_name": result.scenario.workload_name,
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


_BATSIM_STATE: Final = {
    "completed": "COMPLETED_SUCCESSFULLY",
    "killed": "COMPLETED_WALLTIME_REACHED",
    "aborted": "COMPLETED_KILLED",
    "rejected": "REJECTED",
    "unfinished": "NOT_SUBMITTED",
}

_LAYOUTS: Final[dict[str, Callable[[Result], pd.DataFrame]]] = {"evalys": _evalys_layout, "jobs": _jobs_layout}


def write_schedule(result: Result, path: str | PathLike[str]) -> None:
    """Write ``result``'s schedule as SWF; see :meth:`clustermodel.experiment.scenario.Result.to_swf`."""
    jobs = result.jobs.fillna({"wait_s": UNKNOWN, "run_s": UNKNOWN})
    ran = jobs["end_s"].notna()
    rows = zip(
        jobs["job"],
        jobs["submit_s"],
        jobs["wait_s"],
        jobs["run_s"],
        jobs["allocated_nodes"].where(ran, UNKNOWN),
        jobs["nodes"].clip(lower=UNKNOWN),  # below -1 the format knows no numbers
        jobs["estimate_s"],
        jobs["status"].map(_SWF_STATUS),
        jobs["user"].clip(lower=UNKNOWN),
        jobs["group"].clip(lower=UNKNOWN),
        strict=True,
    )
    header = [
        ("Version", "2.2"),
        ("Computer", f"simulated machine of {result.machine.nodes} nodes"),
        ("Conversion", "clustermodel " + str(result.provenance["clustermodel"])),
        ("MaxJobs", len(jobs)),
        ("MaxRecords", len(jobs)),
        ("Preemption", "No"),
        ("MaxNodes", result.machine.nodes),
        ("MaxProcs", result.machine.nodes),
        ("Note", f"simulated schedule of {result.scenario.workload_name} under {result.scenario.label}"),
        ("Note", "status 1: completed, 0: killed, 5: rejected because the machine is too small"),
    ]
    write_swf(
        path,
        (
            (job, submit, wait, run, used, -1, -1, asked, estimate, -1, status, user, group, -1, -1, -1, -1, -1)
            for job, submit, wait, run, used, asked, estimate, status, user, group in rows
        ),
        header=header,
    )
