"""A workload from an accounting log: its jobs while it is read, run attempts, components, and what it shows of the machine."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from clustermodel.arrays import BoolArray, IntArray
from clustermodel.errors import SpecificationError, TraceError, counted, quoted, visible
from clustermodel.files import without_compression
from clustermodel.job import UNSET, JobRow
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import LARGEST_WHOLE, choice, flag
from clustermodel.workload import table as extras
from clustermodel.workload.table import JOBS, ExtraColumns, ImportReport, Provenance, Workload, counts_in_words

MOST_EXAMPLES: Final = 10
"""Number of damaged lines that a report shows."""
_MOST_REASONS: Final = 30
_LIMIT: Final = re.compile(r"%(\d{1,9})", re.ASCII)
_MOST_CLUSTERS: Final = 2**10 - 1
DAMAGED: Final = "damaged lines"
BACKWARDS: Final = "ending before their start"
REPEATED: Final = "repeated records"
SIZE_MISSING: Final = tuple(f"{size} size missing, the other one used" for size in ("allocated", "requested"))
"""What is counted if allocated sizes are preferred, or requested ones."""
COMPONENTS: Final = "components of heterogeneous jobs, added to their first component"


class LogJob(NamedTuple):
    """A run attempt of a job in an accounting log; times in seconds since 1970, :data:`UNSET` for what is not known."""

    line: int
    key: int
    """Number of the job's full identifier; run attempts of a job have the same."""
    number: int
    """The number that the log gives the job."""
    submit: int
    start: int
    run: int
    """Time for which it ran, without the time for which it was suspended."""
    nodes: int
    cores: int
    suspended: int = 0
    limit: int = UNSET
    gpus: int = UNSET
    memory: int = UNSET
    """KiB of the whole job."""
    heterogeneous: int = UNSET
    """Number of the heterogeneous job that it is a component of."""
    cluster: int = UNSET
    user: int = UNSET
    group: int = UNSET
    account: int = UNSET
    partition: int = UNSET
    qos: int = UNSET
    queue: int = UNSET
    job_name: int = UNSET
    status: int = UNSET
    """SWF status: 1 completed, 0 failed, 5 cancelled."""
    requeued: int = 0
    """1 if the job went back to the queue after this attempt."""
    restarts: int = 0
    """Attempts before this one, as the log says; 0 where it does not."""
    node_list: int = UNSET


def task_key(number: int, task: int = 0, component: int = 0, cluster: int = UNSET) -> int:
    """Return the key of a job; ``task`` and ``component`` count from 1, 0 for what it is not.

    One number: a tuple for each job would take much more memory.
    """
    return (((number << 30 | task) << 30) | component) << 10 | cluster + 1


class _Numbers(dict[Hashable, int]):
    """Gives new names the next number from 1."""

    def __missing__(self, name: Hashable) -> int:
        if not name:
            return UNSET
        number = self[name] = len(self) + 1
        return number


class Names:
    """Numbers the texts that it is given from 1, in order of appearance."""

    def __init__(self) -> None:
        self._numbers = _Numbers()

    def number(self, name: Hashable) -> int:
        """Return the number of a name; :data:`UNSET` for an empty one."""
        return self._numbers[name]

    def numbers(self, names: Iterable[Hashable]) -> Iterator[int]:
        """Yield the numbers of names, as :meth:`number` returns them one by one."""
        return map(self._numbers.__getitem__, names)

    def __iter__(self) -> Iterator[Hashable]:
        """Yield the names in order of their numbers."""
        return iter(self._numbers)

    def texts(self) -> tuple[str, ...]:
        """Return the names in order of their numbers."""
        return tuple(map(str, self._numbers))


class LogJobs:
    """Collects the jobs of a log, and counts what became of each line.

    Args:
        path: of the log, for messages.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.counts: Counter[str] = Counter()
        """Lines by what became of them; :data:`JOBS` are those that gave jobs."""
        self.repaired: Counter[str] = Counter()
        self.several_tasks = 0
        """Lines that describe several tasks of a job array."""
        self.array_limits: dict[tuple[int, str], int] = {}
        """Largest number of tasks that may run at a time, by number and cluster of the job array."""
        self.clock_change = 0
        """Jobs whose start and end are an hour further apart, or less, than they ran: local times with daylight saving."""
        self.eligible_later = 0
        """Jobs that could not start for more than a minute after their submission: dependencies, holds, begin times."""
        self.examples: list[str] = []
        self.users, self.groups, self.accounts, self.partitions = Names(), Names(), Names(), Names()
        self.qos, self.queues, self.job_names = Names(), Names(), Names()
        self.clusters, self.node_lists, self.keys, self.heterogeneous = Names(), Names(), Names(), Names()
        self._values = array("q")

    def add(self, job: LogJob) -> None:
        """Add a job; its line is counted by :meth:`left_out` as :data:`JOBS` by the caller.

        Raises:
            ValueError: a number of the job is too large for a column.
        """
        try:
            self._values.extend(array("q", job))
        except OverflowError:
            raise ValueError(f"a size or an amount is {max(job)}; it must be below {2**63}") from None

    def add_table(self, table: IntArray) -> None:
        """Add jobs: rows of :class:`LogJob`, shape ``(jobs, fields)``."""
        self._values.frombytes(np.ascontiguousarray(table, dtype=np.int64).tobytes())

    def note_array(self, number: int, cluster: str, tasks: str) -> None:
        """Keep the limit of a job array whose tasks are ``1-4%2``: so many may run at a time."""
        if (match := _LIMIT.search(tasks)) and (limit := int(match[1])):
            self.array_limits[number, cluster] = limit

    def size_of(self, preferred: tuple[int, int], other: tuple[int, int], *, requested: bool) -> tuple[int, int]:
        """Return nodes and cores of a job, from ``other`` where a preferred one is 0; count a job of which both are."""
        nodes, cores = preferred[0] or other[0], preferred[1] or other[1]
        if not any(preferred) and (nodes or cores):
            self.repaired[SIZE_MISSING[requested]] += 1
        return nodes, cores

    def repair(self, reason: str, jobs: BoolArray) -> None:
        """Count the jobs in which a value was filled in or corrected."""
        if number := int(jobs.sum()):
            self.repaired[reason] += number

    def damaged(self, line: int, problem: object, lines: int = 1) -> None:
        """Count a line that cannot be used; the report shows the first ones."""
        self.counts[DAMAGED] += lines
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append(f"{self.path}:{line}: {problem}")

    def left_out(self, reason: str, lines: int = 1) -> None:
        """Count a line that gives no job; a damaged file may have many different reasons, of which the first are kept apart."""
        if reason not in self.counts and len(self.counts) >= _MOST_REASONS:
            reason = "for other reasons"
        self.counts[reason] += lines

    def __len__(self) -> int:
        return len(self._values) // len(LogJob._fields)

    def columns(self) -> dict[str, IntArray]:
        """Return the columns of :class:`LogJob`, shape ``(jobs,)``."""
        table = np.frombuffer(self._values, dtype=np.int64).reshape(-1, len(LogJob._fields)).T
        columns = dict(zip(LogJob._fields, table, strict=True))
        return {**columns, extras.ARRAY_LIMIT: self._limits()[columns["key"]]} if self.array_limits else columns

    def _limits(self) -> IntArray:
        """Return the limits of the job arrays of keys, by their number; :data:`UNSET` where there is none."""
        clusters = ("", "", *self.clusters.texts())
        arrays = ((key >> 70, clusters[key & _MOST_CLUSTERS]) for key in self.keys if isinstance(key, int))
        return np.array([UNSET, *(self.array_limits.get(array, UNSET) for array in arrays)])

    def kept(self, columns: dict[str, IntArray], keep: BoolArray, reason: str) -> dict[str, IntArray]:
        """Return the columns of the jobs to ``keep``; lines of which no job is left are counted by ``reason``."""
        if keep.all():
            return columns
        lost = np.setdiff1d(columns["line"][~keep], columns["line"][keep]).size
        if lost:
            self.counts[JOBS] -= lost
            self.counts[reason] += lost
        return {name: column[keep] for name, column in columns.items()}


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
        limited = int((columns.get(extras.ARRAY_LIMIT, np.zeros(0)) > 0).sum())
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
        extras.WAIT: (columns["start"] - columns["submit"]) * TICKS_PER_SECOND,
        extras.SUSPENDED: columns["suspended"] * TICKS_PER_SECOND,
        extras.REQUEUES: columns["restarts"],
        **({extras.ARRAY_LIMIT: columns[extras.ARRAY_LIMIT]} if extras.ARRAY_LIMIT in columns else {}),
        extras.NODE_COUNT: np.where(columns["nodes"] > 0, columns["nodes"], UNSET),
        extras.CORES: np.where(columns["cores"] > 0, columns["cores"], UNSET),
        extras.GPUS: columns["gpus"],
        extras.ACCOUNT: columns["account"],
        extras.PARTITION: columns["partition"],
        extras.QOS: columns["qos"],
        extras.QUEUE: columns["queue"],
        extras.JOB_NAME: columns["job_name"],
        **(_requeues(columns, numbers) if followers else {}),
    }
    names = {
        "user": jobs.users,
        "group": jobs.groups,
        extras.ACCOUNT: jobs.accounts,
        extras.PARTITION: jobs.partitions,
        extras.QOS: jobs.qos,
        extras.QUEUE: jobs.queues,
        extras.JOB_NAME: jobs.job_names,
    }
    return ExtraColumns(
        ids=numbers,
        columns={name: values for name, values in recorded.items() if (values != UNSET).any()},
        names={name: texts for name, numbered in names.items() if (texts := numbered.texts())},
    )


def _requeues(columns: _Columns, numbers: IntArray) -> _Columns:
    """Return the run attempt that each attempt follows, and the ticks from the end of that one to its submission."""
    order = np.lexsort((columns["start"], columns["key"]))
    key, end = columns["key"][order], (columns["start"] + columns["run"] + columns["suspended"])[order]
    follows = np.append(False, (key[1:] == key[:-1]) & (columns["requeued"][order][:-1] > 0))
    think = np.maximum(columns["submit"][order] - np.roll(end, 1), 0) * TICKS_PER_SECOND
    requeues = {extras.PRECEDING: np.full(len(key), UNSET), extras.THINK: np.full(len(key), UNSET)}
    for name, values in ((extras.PRECEDING, np.roll(numbers[order], 1)), (extras.THINK, think)):
        requeues[name][order] = np.where(follows, values, UNSET)
    return requeues


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


_MOST_JOBS: Final = 100_000  # looked at to see whether jobs share nodes
_MOST_NODES: Final = 2_000_000
_SHARED: Final = 0.05
_OVERLAP_S: Final = 60  # a node may be given away before the epilog of its last job is in the log


class Peak(NamedTuple):
    """Largest number of units that jobs of a log held at the same time."""

    units: int
    at: int
    """Time at which it was reached first, in the unit of the times given."""


def peak_in_use(start: IntArray, end: IntArray, units: IntArray) -> Peak:
    """Return the largest number of units in use at the same time; jobs hold them from start (included) to end (excluded).

    Args:
        start: of the jobs, shape ``(jobs,)``, as ``end`` and ``units``.
        end: of the jobs.
        units: that each of them holds.
    """
    times = np.concatenate([end, start])
    change = np.concatenate([-units, units])
    order = np.argsort(times, kind="stable")  # ends come before starts of the same time
    in_use = np.cumsum(change[order])
    highest = int(np.argmax(in_use))
    return Peak(int(in_use[highest]), int(times[order[highest]]))


def peak_with_suspensions(start: IntArray, end: IntArray, run: IntArray, size: IntArray, nodes: Sequence[list[int]]) -> Peak:
    """Return the largest number of units in use at the same time in a log with suspended jobs, whose nodes others may use.

    ``nodes`` has the numbers of each job's nodes.  If they are as many as its units, a node that several jobs hold counts once;
    else a job counts with the share of its time for which it executed, and no less than the largest job is returned.
    """
    sizes = np.array(list(map(len, nodes)))
    if (sizes == size).all():
        job = np.repeat(np.arange(len(size)), size)
        node = np.fromiter((number for numbers in nodes for number in numbers), dtype=np.int64, count=len(job))
        order = np.lexsort((start[job], node))
        node, begin, until = node[order], start[job][order], end[job][order]
        base = node * (int(end.max()) - int(start.min()) + 1)  # each node in a time of its own: one running maximum for all
        latest = np.maximum.accumulate(base + until - int(start.min()))
        first = np.append(True, base[1:] + begin[1:] - int(start.min()) > latest[:-1])
        first |= np.append(True, node[1:] != node[:-1])
        last = np.append(first[1:], True)
        ends = latest[last] - base[last] + int(start.min())
        return peak_in_use(begin[first], ends, np.ones(int(first.sum()), dtype=np.int64))
    peak = peak_in_use(start, end, -(-size * run // np.maximum(end - start, 1)))
    return max(peak, Peak(int(size.max()), int(start[size.argmax()])))


class NodeUse(NamedTuple):
    """Node names of a log."""

    distinct: int
    """Number of different names."""
    shared: float | None
    """Share of the jobs that started on a node that another job held; ``None`` where the log has no node names."""


def node_use(
    start: IntArray,
    end: IntArray,
    suspended: BoolArray,
    lists: IntArray,
    texts: Sequence[str],
    names: Callable[[str], list[str]],
) -> NodeUse:
    """Return how many nodes a log names, and the share of its jobs that started on a node of another job.

    ``lists`` has the numbers of the jobs' node lists in ``texts``, -1 for none; ``names`` splits a node list.  Only the first
    100,000 jobs that were not suspended, and 2,000,000 names together, are looked at: the nodes of suspended jobs were then
    another job's, which shares nothing.
    """
    distinct: dict[str, int] = {}
    members: dict[int, list[int]] = {}
    expanded = 0
    for code in np.unique(lists[lists >= 0]).tolist():
        nodes = [distinct.setdefault(name, len(distinct)) for name in names(texts[code])]
        members[code] = nodes
        expanded += len(nodes)
        if expanded > _MOST_NODES:
            break
    released: dict[int, int] = {}
    looked_at = sharing = 0
    order = np.argsort(start, kind="stable")
    order = order[~suspended[order]][:_MOST_JOBS]
    for code, begin, until in zip(lists[order].tolist(), start[order].tolist(), end[order].tolist(), strict=True):
        nodes = members.get(code, [])
        if not nodes:
            continue
        looked_at += 1
        before = [released.get(node, begin) for node in nodes]
        sharing += max(before) > begin + _OVERLAP_S
        for node, earlier in zip(nodes, before, strict=True):
            if until > earlier or node not in released:
                released[node] = until
    return NodeUse(len(distinct), sharing / looked_at if looked_at else None)


def shared_by_cores(nodes: IntArray, cores: IntArray, group: IntArray) -> bool | None:
    """Return whether jobs take parts of nodes, by their cores per node; ``None`` if the log does not say.

    Whole nodes are assumed where 90 % of the jobs have the most cores per node of their partition.
    """
    known = (nodes > 0) & (cores > 0)
    if not known.any():
        return None
    per_node = cores[known] / nodes[known]
    _, partition = np.unique(group[known], return_inverse=True)
    most = np.zeros(partition.max() + 1)
    np.maximum.at(most, partition, per_node)
    return bool((per_node < most[partition]).mean() > 0.1)


def is_shared(use: NodeUse) -> bool | None:
    """Return whether jobs share nodes, by the node names; ``None`` if the log has none."""
    return None if use.shared is None else use.shared > _SHARED
