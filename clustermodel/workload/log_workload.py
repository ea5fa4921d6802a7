"""A workload from the jobs of an accounting log: run attempts, components, the unit of a node, and the machine's size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.errors import SpecificationError, TraceError, counted, quoted, visible
from clustermodel.job import UNSET, JobRow
from clustermodel.text_files import without_compression
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import LARGEST_WHOLE, choice, flag
from clustermodel.workload.extra_columns import (
    ACCOUNT,
    ARRAY_LIMIT,
    CORES,
    GPUS,
    JOB_NAME,
    NODE_COUNT,
    PARTITION,
    PRECEDING,
    QOS,
    QUEUE,
    REQUEUES,
    SUSPENDED,
    THINK,
    WAIT,
    ExtraColumns,
)
from clustermodel.workload.import_report import JOBS, ImportReport, counts_in_words
from clustermodel.workload.log_jobs import BACKWARDS, COMPONENTS, REPEATED, LogJobs
from clustermodel.workload.log_machine import (
    NodeUse,
    Peak,
    is_shared,
    node_use,
    peak_in_use,
    peak_with_suspensions,
    shared_by_cores,
)
from clustermodel.workload.table import Provenance, Workload

UNITS: Final = ("auto", "nodes", "cores", "gpus")
"""What a node of the workload may stand for; ``auto`` chooses nodes or cores by the log."""
_LONGEST_REQUEUE_S: Final = 7 * 86_400
_LAST_SECOND: Final = 253_402_300_799  # of the year 9999
_Columns = dict[str, IntArray]


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """How an accounting log is made into a workload.

    Raises:
        SpecificationError: ``unit`` is unknown.
    """

    unit: str = "auto"
    """What a node of the workload stands for: one of :data:`UNITS`."""
    cluster: str | None = None
    """Name of the cluster whose jobs are used, in a log of several; by default that with the most jobs."""
    timezone: str | None = None
    """Time zone of time stamps without an offset; by default they are read as they are given, as UTC."""
    use_estimates: bool = True
    """Whether the time limits are the users' estimates; else the run times are."""
    feedback: bool = False
    """Whether a further run attempt is submitted after the simulated end of the one before, not at its recorded time."""

    def __post_init__(self) -> None:
        choice("unit", self.unit, UNITS)
        flag("feedback", self.feedback)


def requested_first(processors_from: str) -> bool:
    """Return whether requested sizes are used even where allocated ones are known.

    Raises:
        SpecificationError: ``processors_from`` is neither ``"allocated"`` nor ``"requested"``.
    """
    if processors_from not in ("allocated", "requested"):
        raise SpecificationError(f"processors_from: {processors_from!r} is not allowed; it must be 'allocated' or 'requested'")
    return processors_from == "requested"


def workload_of(
    jobs: LogJobs, options: LogOptions, *, kind: str, lines: int, names: Callable[[str], list[str]], slots: bool = False
) -> Workload:
    """Return the jobs of a log as a workload with a report.

    Args:
        jobs: of the log.
        options: how to make a workload of them.
        kind: of log, for the report.
        lines: number of lines of the file.
        names: splits a node list of the log into node names.
        slots: whether the scheduler allocates slots, so that a node of the workload is one unless another unit is asked for.

    Raises:
        TraceError: the log has no usable job, or none of the cluster that is asked for.
    """
    remarks: list[str] = []
    _require_jobs(jobs, jobs.columns(), lines)
    columns = _of_one_cluster(jobs, jobs.columns(), options.cluster, remarks)
    columns = _without_repetitions(jobs, columns)
    columns = _attempts_apart(jobs, _recycled_apart(columns))
    use = _node_use(jobs, columns, names)
    columns = _components_joined(jobs, columns)
    unit, shared = _unit_of(columns, options.unit, use, remarks, slots=slots)
    size = columns[unit]
    columns = jobs.kept(columns, size > 0, f"without allocated {'GPUs' if unit == 'gpus' else unit}")
    _require_jobs(jobs, columns, lines)
    size = columns[unit]
    peak = _peak(jobs, columns, size, names)
    noun = "GPU" if unit == "gpus" else unit[:-1]
    remarks.append(
        f"machine: {counted(peak.units, noun)}, the most in use at the same time, at {_iso(peak.at)} ({shared}; --nodes)"
    )
    if jobs.several_tasks:
        remarks.append(
            f"job arrays: {counted(jobs.several_tasks, 'line')} stood for several tasks each; with them there are "
            f"{counted(len(size), 'job')}"
        )
    if jobs.array_limits:
        limits = [f"{number} to {limit}" for (number, _), limit in jobs.array_limits.items()]
        limited = int((columns.get(ARRAY_LIMIT, np.zeros(0)) > 0).sum())
        remarks.append(
            f"job arrays: {counted(len(limits), 'array')} with a limit (%) of tasks that run at a time, "
            f"{_listed(tuple(limits))}; the waits of their tasks ({counted(limited, 'job')}) are not all the scheduler's"
        )
    if jobs.clock_change:
        remarks.append(
            f"clock: {counted(jobs.clock_change, 'job')} ran an hour more or less than from start to end: local times with "
            "daylight saving? (--timezone, or export with TZ=UTC)"
        )
    if backwards := jobs.counts[BACKWARDS]:
        remarks.append(
            f"clock: {counted(backwards, 'record')} without an elapsed time ended before the start: local times with daylight "
            "saving? (--timezone, or export with TZ=UTC)"
        )
    if jobs.eligible_later:
        remarks.append(
            f"waits: {counted(jobs.eligible_later, 'job')} became eligible more than a minute after submission (dependencies, "
            "holds, begin times); waits count from the submission"
        )
    numbers = _job_numbers(columns, jobs.repaired)
    began = int(columns["submit"].min())
    limit = columns["limit"] if options.use_estimates else columns["run"]
    if missing := int((limit <= 0).sum()):
        jobs.repaired["time limit missing, run time used"] += missing
    known = {
        "submit": (columns["submit"] - began) * TICKS_PER_SECOND,
        "id": numbers,
        "nodes": size,
        "run": columns["run"] * TICKS_PER_SECOND,
        "estimate": np.where(limit > 0, limit, columns["run"]) * TICKS_PER_SECOND,
        "user": columns["user"],
        "group": columns["group"],
        "priority": np.zeros_like(numbers),
        "status": columns["status"],
        "memory": np.where(columns["memory"] > 0, -(-columns["memory"] // size), UNSET),
    }
    unset = np.full_like(numbers, UNSET)
    table = np.stack([known.get(name, unset) for name in JobRow._fields], axis=1)
    source = str(jobs.path)
    ends = columns["start"] + columns["run"] + columns["suspended"]
    return Workload(
        table,
        name=without_compression(Path(source).name),
        provenance=Provenance(
            source=source,
            options={"unit": unit, "cluster": options.cluster, "timezone": options.timezone},
            header={
                **_computer(jobs, columns),
                "UnixStartTime": str(began),
                "TimeZoneString": options.timezone or "UTC",
                "StartTime": _iso(began),
                "EndTime": _iso(int(ends.max())),
                "MaxProcs": str(peak.units),
            },
            repaired=+jobs.repaired,
            report=ImportReport(
                source=source,
                format=kind,
                lines=lines,
                counts=_in_order(jobs.counts),
                jobs=len(numbers),
                unit=unit,
                remarks=tuple(remarks),
                examples=tuple(jobs.examples),
            ),
        ),
        machine_nodes=peak.units,
        extra=_recorded(jobs, columns, numbers, followers=options.feedback),
    )


def _peak(jobs: LogJobs, columns: _Columns, size: IntArray, names: Callable[[str], list[str]]) -> Peak:
    """Return the largest number of units in use at the same time."""
    start, end = columns["start"], columns["start"] + columns["run"] + columns["suspended"]
    if not (columns["suspended"] > 0).any():
        return peak_in_use(start, end, size)
    known: dict[str, int] = {}
    texts = ("", *jobs.node_lists.texts())
    members: dict[int, list[int]] = {}
    for code in np.unique(columns["node_list"]).tolist():
        members[code] = [known.setdefault(name, len(known)) for name in dict.fromkeys(names(texts[max(code, 0)])) if name]
    nodes = [members[code] for code in columns["node_list"].tolist()]
    return peak_with_suspensions(start, end, columns["run"], size, nodes)


def _recorded(jobs: LogJobs, columns: _Columns, numbers: IntArray, *, followers: bool) -> ExtraColumns:
    """Return what the log has recorded, as extra columns; columns without a single value are left out."""
    recorded = {
        WAIT: (columns["start"] - columns["submit"]) * TICKS_PER_SECOND,
        SUSPENDED: columns["suspended"] * TICKS_PER_SECOND,
        REQUEUES: columns["restarts"],
        **({ARRAY_LIMIT: columns[ARRAY_LIMIT]} if ARRAY_LIMIT in columns else {}),
        NODE_COUNT: np.where(columns["nodes"] > 0, columns["nodes"], UNSET),
        CORES: np.where(columns["cores"] > 0, columns["cores"], UNSET),
        GPUS: columns["gpus"],
        ACCOUNT: columns["account"],
        PARTITION: columns["partition"],
        QOS: columns["qos"],
        QUEUE: columns["queue"],
        JOB_NAME: columns["job_name"],
        **(_requeues(columns, numbers) if followers else {}),
    }
    names = {
        "user": jobs.users, "group": jobs.groups, ACCOUNT: jobs.accounts, PARTITION: jobs.partitions, QOS: jobs.qos,
        QUEUE: jobs.queues, JOB_NAME: jobs.job_names,
    }  # fmt: skip
    return ExtraColumns(
        ids=numbers,
        columns={name: values for name, values in recorded.items() if (values != UNSET).any()},
        names={name: texts for name, one in names.items() if (texts := one.texts())},
    )


def _requeues(columns: _Columns, numbers: IntArray) -> _Columns:
    """Return the run attempt that each attempt follows, and the ticks from the end of that one to its submission."""
    order = np.lexsort((columns["start"], columns["key"]))
    key, end = columns["key"][order], (columns["start"] + columns["run"] + columns["suspended"])[order]
    follows = np.append(False, (key[1:] == key[:-1]) & (columns["requeued"][order][:-1] > 0))
    think = np.maximum(columns["submit"][order] - np.roll(end, 1), 0) * TICKS_PER_SECOND
    found = {PRECEDING: np.full(len(key), UNSET), THINK: np.full(len(key), UNSET)}
    for name, values in ((PRECEDING, np.roll(numbers[order], 1)), (THINK, think)):
        found[name][order] = np.where(follows, values, UNSET)
    return found


def _of_one_cluster(jobs: LogJobs, columns: _Columns, wanted: str | None, remarks: list[str]) -> _Columns:
    names = jobs.clusters.texts()
    if wanted is not None and wanted not in names:
        raise TraceError(f"{jobs.path}: --cluster: the log has no jobs of {quoted(wanted)}; its clusters are {_listed(names)}")
    numbers, counts = np.unique(columns["cluster"], return_counts=True)
    if len(numbers) < 2:
        return columns
    chosen = numbers[np.argmax(counts)] if wanted is None else names.index(wanted) + 1
    name = names[chosen - 1] if chosen > 0 else "no name"
    remarks.append(f"cluster: jobs of {visible(name)} only, of {_listed(names)} (--cluster)")
    return jobs.kept(columns, columns["cluster"] == chosen, "jobs of other clusters")


def _computer(jobs: LogJobs, columns: _Columns) -> dict[str, str]:
    cluster = int(columns["cluster"][0])
    return {"Computer": jobs.clusters.texts()[cluster - 1]} if cluster > 0 else {}


def _without_repetitions(jobs: LogJobs, columns: _Columns) -> _Columns:
    """Leave out records of the same run attempt, as logs that overlap have them; the last one is kept."""
    order = np.lexsort((np.arange(len(columns["key"])), columns["start"], columns["key"]))
    key, start = columns["key"][order], columns["start"][order]
    last = np.append((key[1:] != key[:-1]) | (start[1:] != start[:-1]), True) if len(key) else np.ones(0, dtype=bool)
    keep = np.empty(len(key), dtype=bool)
    keep[order] = last
    return jobs.kept(columns, keep, REPEATED)


def _recycled_apart(columns: _Columns) -> _Columns:
    """Give jobs keys of their own that have the identifier of an earlier one: of another user, or submitted a week after
    its end; identifiers begin again where they are exhausted or a database is set up anew.
    """
    order = np.lexsort((columns["start"], columns["key"]))
    key, user, submit = (columns[name][order] for name in ("key", "user", "submit"))
    end = (columns["start"] + columns["run"] + columns["suspended"])[order]
    recycled = (user[1:] != user[:-1]) | (submit[1:] > end[:-1] + _LONGEST_REQUEUE_S)
    number = np.empty_like(key)
    number[order] = np.cumsum(np.append(True, (key[1:] != key[:-1]) | recycled))
    return {**columns, "key": number}


def _attempts_apart(jobs: LogJobs, columns: _Columns) -> _Columns:
    """Number the run attempts of a job; an attempt is submitted when the one before has ended, unless the log says later.

    A job whose record says that it started before its submission is submitted when it starts.
    """
    order = np.lexsort((columns["start"], columns["key"]))
    ordered = {name: column[order] for name, column in columns.items()}
    again = np.append(False, ordered["key"][1:] == ordered["key"][:-1])
    end = ordered["start"] + ordered["run"] + ordered["suspended"]
    requeued_before = np.where(again, np.roll(ordered["requeued"], 1), 0)
    total = np.cumsum(requeued_before)
    first = np.maximum.accumulate(np.where(again, 0, np.arange(len(again))))  # of the job's attempts
    ordered["restarts"] = np.maximum(ordered["restarts"], total - total[first])
    ended_before = np.where(again, np.roll(end, 1), 0)
    early = (ordered["submit"] < ended_before) & (ended_before <= ordered["start"])
    if early.any():
        jobs.repaired["later run attempt, submitted at the end of the attempt before"] += int(early.sum())
    submit = np.where(early, ended_before, ordered["submit"])
    backwards = submit > ordered["start"]
    if backwards.any():
        jobs.repaired["started before its submission, submitted at its start"] += int(backwards.sum())
    ordered["submit"] = np.minimum(submit, ordered["start"])
    return ordered


def _components_joined(jobs: LogJobs, columns: _Columns) -> _Columns:
    """Make one job of the components of a heterogeneous job that were started together."""
    part = columns["heterogeneous"] > 0
    if not part.any():
        return columns
    where = np.flatnonzero(part)
    order = where[np.lexsort((columns["line"][where], columns["start"][where], columns["heterogeneous"][where]))]
    whole, start = columns["heterogeneous"][order], columns["start"][order]
    first = np.append(True, (whole[1:] != whole[:-1]) | (start[1:] != start[:-1]))
    begins = np.flatnonzero(first)
    for name in ("nodes", "cores", "gpus", "memory"):
        column = columns[name] = columns[name].copy()
        column[order[begins]] = np.add.reduceat(np.maximum(column[order], 0), begins)
    column = columns["run"] = columns["run"].copy()
    column[order[begins]] = np.maximum.reduceat(column[order], begins)
    keep = np.ones(len(part), dtype=bool)
    keep[order[~first]] = False
    return jobs.kept(columns, keep, COMPONENTS)


def _node_use(jobs: LogJobs, columns: _Columns, names: Callable[[str], list[str]]) -> NodeUse:
    end = columns["start"] + columns["run"] + columns["suspended"]
    lists = np.where(columns["node_list"] > 0, columns["node_list"] - 1, UNSET)
    return node_use(columns["start"], end, columns["suspended"] > 0, lists, jobs.node_lists.texts(), names)


def _unit_of(columns: _Columns, unit: str, use: NodeUse, remarks: list[str], *, slots: bool) -> tuple[str, str]:
    """Return the unit to use, and in words what the log shows of the nodes."""
    named = f"the log names {counted(use.distinct, 'node')}" if use.distinct else "the log names no nodes"
    if unit != "auto":
        remarks.append(f"unit: {unit}, as asked for")
        return unit, named
    if slots:
        remarks.append("unit: cores, because slots are what the scheduler allocates (--unit)")
        return "cores", named
    shared = is_shared(use)
    if use.shared is not None:
        why = f"{100 * use.shared:.1f} % of the jobs started on a node that another job held"
    else:
        shared = shared_by_cores(columns["nodes"], columns["cores"], columns["partition"])
        why = {
            None: "the log does not say whether jobs share nodes",
            True: "more than 10 % of the jobs took parts of nodes",
            False: "at least 90 % of the jobs took whole nodes",
        }[shared]
    chosen = "cores" if shared else "nodes"
    for other in ("cores", "nodes"):
        if not (columns[chosen] > 0).any():
            chosen, why = other, f"the log has no number of {chosen}"
    remarks.append(f"unit: {chosen}, because {why} (--unit)")
    return chosen, named


def _job_numbers(columns: _Columns, repaired: Counter[str]) -> IntArray:
    """Return the numbers of the log where they are unique; other jobs get numbers above all of them."""
    numbers = columns["number"].copy()
    order = np.lexsort((columns["start"], columns["submit"]))
    _, first = np.unique(numbers[order], return_index=True)
    unique = np.zeros(len(numbers), dtype=bool)
    unique[order[first]] = True
    unique &= (numbers >= 0) & (numbers <= LARGEST_WHOLE // 2)
    others = order[~unique[order]]
    if len(others):
        highest = int(numbers[unique].max(initial=0))
        numbers[others] = highest + 1 + np.arange(len(others))
        repaired["job number used by an earlier job, new number given"] += len(others)
    return numbers


def _require_jobs(jobs: LogJobs, columns: _Columns, lines: int) -> None:
    if not len(columns["line"]):
        because = counts_in_words({reason: count for reason, count in _in_order(jobs.counts).items() if count})
        first = f"; {jobs.examples[0]}" if jobs.examples else ""
        raise TraceError(f"{jobs.path}: no usable job: {counted(lines, 'line')}: {because or 'the file is empty'}{first}")


def _in_order(counts: Counter[str]) -> dict[str, int]:
    """Return the counts above zero, that of jobs first, then the largest."""
    return {JOBS: counts[JOBS]} | {reason: count for reason, count in counts.most_common() if count and reason != JOBS}


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(visible(name) for name in names[:10]) or "without a name"
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"


def _iso(seconds: int) -> str:
    return f"{datetime.fromtimestamp(min(seconds, _LAST_SECOND), UTC):%Y-%m-%dT%H:%M:%S}"
