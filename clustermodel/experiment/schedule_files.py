"""Schedules as files: job records as CSV, in two layouts, and the schedule in the Standard Workload Format."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from math import isnan
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.errors import SpecificationError, visible
from clustermodel.machine.node_set import text
from clustermodel.measure.job_table import Jobs, executed, status_labels
from clustermodel.measure.timeline import gangs_in_space
from clustermodel.recording.job_records import in_seconds
from clustermodel.recording.run_attempts import REQUEUING, Status
from clustermodel.recording.run_attempts import UNKNOWN as NEVER_HAPPENED
from clustermodel.text.files import without_formulas, write_file
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import choice
from clustermodel.workload import swf
from clustermodel.workload.job_columns import PRECEDING, THINK
from clustermodel.workload.table import Workload

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from clustermodel.experiment.result import Result

_BLOCK: Final = 4096  # rows made into text at a time, so that not all words are in memory at once
_BATSIM_STATE: Final = {
    "completed": "COMPLETED_SUCCESSFULLY",
    "killed": "COMPLETED_WALLTIME_REACHED",
    "aborted": "COMPLETED_KILLED",
    "rejected": "REJECTED",
    "unfinished": "NOT_SUBMITTED",
}
_SWF_STATUS: Final = {
    Status.COMPLETED: (swf.COMPLETED, swf.COMPLETED_PART),
    Status.KILLED: (swf.FAILED, swf.FAILED_PART),
    Status.ABORTED: (swf.FAILED, swf.FAILED_PART),
    Status.REJECTED: (swf.CANCELLED, swf.UNKNOWN),
    Status.UNFINISHED: (swf.UNKNOWN, swf.UNKNOWN),
    **dict.fromkeys(REQUEUING, (swf.UNKNOWN, swf.CONTINUED_PART)),
}
"""Of a job, and of a run attempt."""


def write_jobs(result: Result, path: str | PathLike[str], layout: str) -> None:
    """Write the jobs of a run to ``path`` as CSV: the layout is ``"evalys"`` or ``"jobs"``."""
    layouts = {"evalys": _evalys_text, "jobs": _jobs_text}
    write_file(path, layouts[choice("layout", layout, layouts)](result))


def _jobs_text(result: Result) -> str:
    """Return the CSV of ``clustermodel run --jobs-csv``, whose columns are a contract; pandas would be slow to import."""
    jobs = Jobs.of(result.records)
    columns: dict[str, tuple[npt.NDArray[Any], Callable[[Any], str]]] = {
        "job": (jobs.id, str), "submit_s": _times(jobs.submit), "start_s": _times(jobs.start), "end_s": _times(jobs.end),
        "nodes": (jobs.nodes, str), "run_s": _times(jobs.executed), "estimate_s": _times(jobs.estimate),
        "user": (jobs.user, str), "status": (status_labels(jobs.status), str),
    }  # fmt: skip
    lines = [",".join(columns)]
    for first in range(0, len(jobs.id), _BLOCK):
        texts = (map(text_of, values[first : first + _BLOCK].tolist()) for values, text_of in columns.values())
        lines += map(",".join, zip(*texts, strict=True))
    return "\n".join([*lines, ""])


def _times(ticks: IntArray) -> tuple[npt.NDArray[Any], Callable[[Any], str]]:
    """Return times in seconds, whole if all of them are, and what writes one: nothing where it never happened."""
    known = ticks != NEVER_HAPPENED
    if (ticks[known] % TICKS_PER_SECOND).any():
        return in_seconds(ticks), lambda time: "" if isnan(time) else f"{time:.6f}"
    return np.where(known, ticks // TICKS_PER_SECOND, NEVER_HAPPENED), lambda time: "" if time < 0 else str(time)


def _evalys_text(result: Result) -> str:
    """Return Batsim's ``_jobs.csv``, from which ``evalys.jobset.JobSet.from_csv`` reads a schedule."""
    # A job has a row for each run attempt and each set of nodes it migrated to.  In all but its first row the submission is the
    # end of the row before, so that evalys sees it in the queue between two run attempts.
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
    frame = pd.DataFrame(
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
    return without_formulas(frame).to_csv(index=False, float_format="%.6f", lineterminator="\n")


def write_schedule(result: Result, path: str | PathLike[str]) -> None:
    """Write the schedule of a run to ``path`` in the Standard Workload Format; ``.gz`` is compressed."""
    rows, jobs, nodes = _swf_rows(result), len(result.records), result.machine.processors
    split = len(rows) > jobs
    notes = [
        f"simulated schedule of {result.scenario.workload_name} under {result.scenario.label}",
        "status 1: completed, 0: killed, 5: rejected because the machine is too small",
        "status of run attempts, 2: the job returned to the queue, 3: the last one, completed, 4: the last one, killed",
        "run time of a whole job: as on dedicated nodes; of a run attempt: from its start to its end",
        "average CPU time: how long the gang executed, discarded work included",
    ]
    header: list[tuple[str, object]] = [
        ("Version", "2.2"),
        ("Computer", f"simulated machine of {nodes} nodes"),
        ("Conversion", f"clustermodel {version('clustermodel')}"),
        ("MaxJobs", jobs),
        ("MaxRecords", len(rows)),
        ("Preemption", "Double" if split else "No"),
        ("MaxNodes", nodes),
        ("MaxProcs", nodes),
        *(("Note", note) for note in (notes if split else notes[:2])),
    ]
    if isinstance(workload := result.scenario.workload, Workload):
        columns, of_names, _ = swf.named_fields(workload)
        header += [line for line in of_names if line[0] != "ExecutableMap"]
        ids = rows[1].to_numpy()
        for key, field in (("UserMap", 12), ("GroupMap", 13), ("Queue", 15), ("Partition", 16)):
            rows[field] = workload.values(columns[key], ids).clip(min=swf.UNKNOWN)
    swf.write_swf(path, rows.itertuples(index=False, name=None), header=header)


def _swf_rows(result: Result) -> pd.DataFrame:
    """Return the 18 fields of each line: a job, then its run attempts if it needs lines of partial executions."""
    import pandas as pd

    records, count, unknown = result.records, len(result.records), swf.UNKNOWN
    columns = {name: getattr(records.runs, name) for name in ("job", "start", "end", "nodes", "ended_as")}
    attempts = pd.DataFrame({**columns, "spent": executed(records)})
    attempts = attempts[attempts["end"] != NEVER_HAPPENED].sort_values("job", kind="stable")
    job, start, end = (attempts[name].to_numpy() for name in ("job", "start", "end"))
    follows = attempts["job"].duplicated().to_numpy()
    first = attempts[~follows].set_index("job").reindex(range(count), fill_value=unknown)
    number = np.bincount(job, minlength=count)
    spent = np.bincount(job, weights=attempts["spent"], minlength=count).astype(np.int64)
    ids, submit, run = (records.column(name) for name in ("id", "submit", "worked"))
    before, think = (result.scenario.streams.column(name, ids) for name in (PRECEDING, THINK))
    if before is None or think is None:
        before = think = np.full(count, unknown)
    ended = run != NEVER_HAPPENED
    whole = pd.DataFrame(
        {
            1: ids,
            2: _seconds(submit),
            3: _seconds(np.where(number > 0, first["start"] - submit, unknown)),
            4: _seconds(run),
            5: np.where(ended, records.allocated, unknown),
            6: _seconds(np.where(number > 0, spent, unknown)),
            8: records.column("nodes").clip(min=unknown),
            9: records.column("estimate") / TICKS_PER_SECOND,
            10: records.column("memory"),
            11: [_SWF_STATUS[Status(status)][0] for status in records.column("ended_as").tolist()],
            12: records.column("user").clip(min=unknown),
            13: records.column("group").clip(min=unknown),
            17: before,
            18: np.where(before == unknown, unknown, think / TICKS_PER_SECOND),
        }
    ).reindex(columns=range(1, 19), fill_value=unknown)
    split = (number > 1) | (ended & ((first["end"] - first["start"]).to_numpy() != run))
    parts = whole.loc[job]
    parts[2] = np.where(follows, unknown, parts[2])  # the format: only the first part has a submit time
    parts[3] = _seconds(start - np.where(follows, np.roll(end, 1), submit[job]))
    parts[4], parts[5], parts[6] = _seconds(end - start), attempts["nodes"].to_numpy(), _seconds(attempts["spent"].to_numpy())
    parts[11] = [_SWF_STATUS[Status(status)][1] for status in attempts["ended_as"].tolist()]
    parts[[17, 18]] = unknown
    rows: pd.DataFrame = pd.concat([whole, parts[split[job]]]).sort_index(kind="stable")
    return rows


def _seconds(ticks: Any) -> Any:
    return np.where(ticks < 0, swf.UNKNOWN, ticks / TICKS_PER_SECOND)
