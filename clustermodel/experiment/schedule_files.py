"""Schedules as files: job records as CSV, in two layouts, and the schedule in the Standard Workload Format."""

from __future__ import annotations

from importlib.metadata import version
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.errors import SpecificationError, quoted, visible
from clustermodel.files import replacing, without_formulas
from clustermodel.measure.job_table import executed
from clustermodel.measure.timeline import gangs_in_space
from clustermodel.recording.run_attempts import REQUEUING, Status
from clustermodel.recording.run_attempts import UNKNOWN as NEVER_HAPPENED
from clustermodel.schedule.node_set import text
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload import swf
from clustermodel.workload.table import PRECEDING, THINK

if TYPE_CHECKING:
    import pandas as pd

    from clustermodel.experiment.result import Result

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
    Status.COMPLETED: swf.COMPLETED,
    Status.KILLED: swf.FAILED,
    Status.ABORTED: swf.FAILED,
    Status.REJECTED: swf.CANCELLED,
    Status.UNFINISHED: swf.UNKNOWN,
}
_SWF_STATUS_OF_PART: Final = {
    Status.COMPLETED: swf.COMPLETED_PART,
    Status.KILLED: swf.FAILED_PART,
    Status.ABORTED: swf.FAILED_PART,
    **dict.fromkeys(REQUEUING, swf.CONTINUED_PART),
}


def write_jobs(result: Result, path: str | PathLike[str], layout: str) -> None:
    """Write the jobs of a run to ``path`` as CSV, in one of ``LAYOUTS``."""
    if not isinstance(layout, str) or layout not in LAYOUTS:
        raise SpecificationError(f"layout: {quoted(layout)} is not allowed; it must be one of {', '.join(LAYOUTS)}")
    frame = without_formulas(_jobs_layout(result.jobs) if layout == "jobs" else _evalys_layout(result))
    with replacing(path) as file:
        frame.to_csv(file, mode="wb", index=False, float_format="%.6f", lineterminator="\n", errors="backslashreplace")


def _jobs_layout(jobs: pd.DataFrame) -> pd.DataFrame:
    frame = jobs[list(JOB_COLUMNS)].copy()
    for column in frame.select_dtypes("float"):
        values = frame[column]
        if (values.dropna() % 1 == 0).all():  # whole seconds stay whole in the file
            frame[column] = values.astype("Int64")
    return frame


def _evalys_layout(result: Result) -> pd.DataFrame:
    """Return the columns of Batsim's ``_jobs.csv``, from which ``evalys.jobset.JobSet.from_csv`` reads a schedule.

    A job has a row for each placement: for each run attempt, and for each set of nodes that it migrated to.  In all but its
    first row the submission is the end of the row before, so that evalys sees it in the queue between two run attempts.
    """
    import pandas as pd

    if result.slices is not None:
        raise SpecificationError(
            "layout: 'evalys' is not allowed: its rows are gangs that have their nodes to themselves, and "
            f"{visible(result.scenario.label)} shares nodes in time; it must be 'jobs'"
        )
    gangs = gangs_in_space(result.records)
    job, begin, end = np.array([(gang.job, gang.begin, gang.end) for gang in gangs], dtype=np.int64).reshape(-1, 3).T
    of_job = result.jobs.iloc[job].reset_index(drop=True)
    follows = np.diff(job, prepend=-1) == 0
    last = np.append(~follows[1:], True)[: len(job)]
    submitted = np.where(follows, np.roll(end, 1), result.records.column("submit")[job])
    # evalys recomputes starts and ends as submission + wait and start + run time.  1/64 s is the finest fraction of six
    # decimals that doubles add up exactly; unrounded, jobs would overlap by 1e-11 s, on more nodes than the machine has.
    submit, start, finish = (np.rint(times / TICKS_PER_SECOND * 64) / 64 for times in (submitted, begin, end))
    return pd.DataFrame(
        {
            "job_id": of_job["job"],
            "workload_name": result.scenario.workload_name,
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
            "allocated_resources": [text(gang.columns) for gang in gangs],
        }
    )


def write_schedule(result: Result, path: str | PathLike[str]) -> None:
    """Write the schedule of a run to ``path`` in the Standard Workload Format; ``.gz`` is compressed.

    A job whose time from start to end is not its run time (it was preempted, or shared its nodes in time) has a line for each
    run attempt after the line of the whole job: partial executions.
    """
    rows, nodes = _swf_rows(result), result.machine.processors
    split = len(rows) > len(result.records)
    notes = [
        f"simulated schedule of {result.scenario.workload_name} under {result.scenario.label}",
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
        ("MaxJobs", len(result.records)),
        ("MaxRecords", len(rows)),
        ("Preemption", "Double" if split else "No"),
        ("MaxNodes", nodes),
        ("MaxProcs", nodes),
        *(("Note", note) for note in notes),
    ]
    swf.write_swf(path, rows, header=header)


def _swf_rows(result: Result) -> list[tuple[float, ...]]:
    """Return the 18 numbers of each line: a job, then its run attempts if it needs lines of partial executions."""
    records, count = result.records, len(result.records)
    runs = records.runs
    order = np.argsort(runs.job, kind="stable")
    order = order[runs.end[order] != NEVER_HAPPENED]
    job, start, end = runs.job[order], runs.start[order], runs.end[order]
    spent = executed(records)[order]
    attempts = np.bincount(job, minlength=count)
    is_first = np.diff(job, prepend=-1) != 0

    def of_first(values: IntArray) -> IntArray:
        column = np.full(count, swf.UNKNOWN)
        column[job[is_first]] = values[is_first]
        return column

    ids, submit, run, estimate, memory = map(records.column, ("id", "submit", "worked", "estimate", "memory"))
    nodes, user, group = (records.column(name).clip(min=swf.UNKNOWN) for name in ("nodes", "user", "group"))
    ended = run != NEVER_HAPPENED
    executed_in_all = np.bincount(job, weights=spent, minlength=count).astype(np.int64)
    streams = {name: result.scenario.streams.column(name, ids) for name in (PRECEDING, THINK)}
    before, think = (np.full(count, swf.UNKNOWN) if column is None else column for column in streams.values())
    unknown = np.full(count, swf.UNKNOWN)
    whole: Any = np.column_stack(
        [
            ids,
            _seconds(submit),
            _seconds(np.where(attempts > 0, of_first(start) - submit, swf.UNKNOWN)),
            _seconds(run),
            np.where(ended, records.allocated, swf.UNKNOWN),
            _seconds(np.where(attempts > 0, executed_in_all, swf.UNKNOWN)),
            *(unknown, nodes, estimate / TICKS_PER_SECOND, memory),
            [_SWF_STATUS[Status(status)] for status in records.column("ended_as").tolist()],
            *(user, group, unknown, unknown, unknown),
            before,
            np.where(before == swf.UNKNOWN, swf.UNKNOWN, think / TICKS_PER_SECOND),
        ]
    )
    split = (attempts > 1) | (ended & (of_first(end - start) != run))
    parts = whole[job]
    parts[:, 1] = np.where(is_first, parts[:, 1], swf.UNKNOWN)  # the format: only the first part has a submit time
    parts[:, 2] = _seconds(start - np.where(is_first, submit[job], np.roll(end, 1)))
    parts[:, 3], parts[:, 4], parts[:, 5] = _seconds(end - start), runs.nodes[order], _seconds(spent)
    parts[:, 10] = [_SWF_STATUS_OF_PART.get(Status(status), swf.UNKNOWN) for status in runs.ended_as[order].tolist()]
    parts[:, 16:] = swf.UNKNOWN
    rows = np.concatenate([whole, parts[split[job]]])
    in_order = np.argsort(np.concatenate([np.arange(count), job[split[job]]]), kind="stable")
    return list(map(tuple, rows[in_order].tolist()))


def _seconds(ticks: IntArray) -> Any:
    return np.where(ticks < 0, swf.UNKNOWN, ticks / TICKS_PER_SECOND)
