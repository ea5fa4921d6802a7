"""A workload from an accounting log: its jobs while it is read, run attempts, components, and what it shows of the machine."""

import os
import re
from array import array
from collections import Counter
from collections.abc import Callable, Hashable
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from struct import Struct
from typing import Any, Final

import numpy as np

from clustermodel.arrays import BoolArray, IntArray
from clustermodel.errors import SpecificationError, TraceError, counted, quoted, visible
from clustermodel.text.files import without_compression
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import LARGEST_WHOLE, choice, flag
from clustermodel.workload import job_columns as extras
from clustermodel.workload.job import DEPENDENCIES, SINGLETON, UNSET
from clustermodel.workload.placements import NodeLists
from clustermodel.workload.provenance import JOBS, ImportReport, Provenance, counts_in_words
from clustermodel.workload.table import Workload

MOST_SUSPICIOUS_S: Final = 60  # up to which times of a record agree
DAMAGED: Final = "damaged lines"
NEVER: Final = "never started"
NO_TIME: Final = "with run time zero"
NO_SUBMISSION: Final = "without a submission time"
NO_LENGTH: Final = "without a run time"
BACKWARDS: Final = "ending before their start"
BLANK: Final = "blank lines"
BROKEN: Final = "line breaks inside fields"
UNITS: Final = ("auto", "nodes", "cores", "gpus")
"""What a node of the workload may stand for; ``auto`` chooses nodes or cores by the log."""

_SIZES: Final = ("nodes", "cores", "gpus", "memory")
_NAMES: Final = (
    "key", "heterogeneous", "cluster", "user", "group", "account", "partition", "qos", "queue", "job_name", "node_list",
    "features", "reservation",
)  # fmt: skip
_NO_JOB: Final[dict[str, Any]] = {
    **dict.fromkeys(("line", "number", "submit", "start", "run", "limit", *_SIZES, "status", "eligible"), UNSET),
    **dict.fromkeys(("suspended", "requeued", "restarts"), 0),
    **dict.fromkeys(_NAMES, ""),
}
"""Fields of a run attempt in a log, and what they are where it does not say.

Times are seconds, since 1970 or long; ``run`` is without ``suspended``.  ``number`` is that of the log; ``memory`` KiB of the
whole job; ``status`` that of SWF: 1 completed, 0 failed, 5 cancelled; ``eligible`` from when only the scheduler kept the job
waiting; ``requeued`` 1 if the job went back to the queue after this attempt; ``restarts`` attempts before this one, as the log
says.  The last ones are texts, or whatever can be compared: run attempts of one job have the same ``key``, components of one
job the same ``heterogeneous``.
"""
packed: Final = Struct(f"{len(_NO_JOB)}q").pack
"""Makes the bytes of a job from all fields of ``_NO_JOB``, those with names as their numbers."""

_MOST_EXAMPLES: Final = 10
_MOST_REASONS: Final = 30
_MOST_CLUSTERS: Final = 2**10 - 1
_MOST_TASK: Final = 2**30 - 1
_MOST_JOBS: Final = 100_000  # looked at to see whether jobs share nodes
_MOST_NODES: Final = 2_000_000
_SHARED: Final = 0.05
_OVERLAP_S: Final = 60  # a node may be given away before the epilog of its last job is in the log
_LONGEST_REQUEUE_S: Final = 7 * 86_400
_LAST_SECOND: Final = 253_402_300_799  # of the year 9999


def task_key(number: int, task: int = 0, component: int = 0, cluster: int = UNSET) -> int:
    """Return the key of a job; ``task`` and ``component`` count from 1, 0 for what it is not."""
    # One number: a tuple for each job would take much more memory.
    return number << 70 | task << 40 | component << 10 | cluster + 1


def array_of(key: Hashable) -> Hashable | None:
    """Return what the tasks of a job array, or the components of a job, have in common in their keys; ``None`` for others."""
    if isinstance(key, int):
        return (key >> 70, key & _MOST_CLUSTERS) if key >> 10 & (1 << 60) - 1 else None
    match = re.fullmatch(r"(\d+)\[\d+\](.*)", str(key), re.ASCII | re.DOTALL)
    return match and match.groups()


def problem_of_size(largest: int) -> str:
    """Return what is wrong with the largest size or amount of a record, if it does not fit 64 bits."""
    return f"a size or an amount is {largest}; it must be below {2**63}" if largest >= 2**63 else ""


class _Names(dict[Hashable, int]):
    """Numbers what it is asked for from 1, in order of appearance; an empty name is ``UNSET``."""

    def __init__(self) -> None:
        super().__init__({"": UNSET})

    def __missing__(self, name: Hashable) -> int:
        if not name:
            return UNSET
        number = self[name] = len(self)
        return number

    def texts(self) -> tuple[str, ...]:
        """Return the names in order of their numbers."""
        return tuple(map(str, self))[1:]


class LogJobs:
    """Collects the jobs of a log, counts what became of each line, and makes a workload; options as of ``read_sacct``."""

    def __init__(self, path: str | os.PathLike[str], **options: Any) -> None:
        self.path = os.fspath(path)
        self._options = {
            "unit": "auto", "cluster": None, "timezone": None, "processors_from": "allocated", "use_estimates": True,
            "feedback": False, **options,
        }  # fmt: skip
        choice("unit", self._options["unit"], UNITS)
        flag("feedback", self._options["feedback"])
        if (source := self._options["processors_from"]) not in ("allocated", "requested"):
            raise SpecificationError(f"processors_from: {source!r} is not allowed; it must be 'allocated' or 'requested'")
        self.processors_from = str(source)
        self.size_missing = f"{source} size missing, the other one used"
        self.lines = 0
        self.counts: Counter[str] = Counter()  # lines by what became of them; JOBS are those that gave jobs
        self.repaired: Counter[str] = Counter()
        self.several_tasks = 0  # lines that describe several tasks of a job array
        self.clock_change = 0  # jobs whose start and end are an hour further apart, or less, than they ran
        self.names = {name: _Names() for name in _NAMES}
        self._array_limits: dict[tuple[int, str], int] = {}  # of tasks that run at a time, by number and cluster of the array
        self.singletons: set[int] = set()  # numbers of the keys of jobs that wait for those of their user and name
        # Jobs that wait for others: line and number of the key, position in DEPENDENCIES, number of the other job or array, its
        # task (from 1; 0: all).
        self.dependencies: list[tuple[int, int, int, int, int]] = []
        self.unread_waits = 0  # dependencies of other kinds
        self.unread_features = 0  # jobs with constraints on their nodes that the model has no rule for
        self._examples: list[str] = []
        self._values = array("q")
        self.append = self._values.frombytes  # adds a job that is ``packed``
        self._columns: dict[str, IntArray] = {}
        self._nodes: tuple[IntArray, IntArray, IntArray]  # how many each node list has, the first of its, those of all lists
        self._remarks: list[str] = []

    def add(self, **job: Any) -> None:
        """Add a job with some of the fields of ``_NO_JOB``; its line is counted as :data:`JOBS` by the caller."""
        if problem := problem_of_size(max(job.get(name, 0) for name in (*_SIZES, "restarts"))):
            raise ValueError(problem)
        values = (self.names[name][value] if name in self.names else value for name, value in (_NO_JOB | job).items())
        self.append(packed(*values))

    def note_array(self, number: int, cluster: str, tasks: str) -> None:
        """Keep the limit of a job array whose tasks are ``1-4%2``: so many may run at a time."""
        if (match := re.search(r"%(\d{1,9})", tasks, re.ASCII)) and (limit := int(match[1])):
            self._array_limits[number, cluster] = limit

    def size_of(self, allocated: tuple[int, int], requested: tuple[int, int]) -> tuple[int, int]:
        """Return nodes and cores of a job, from the other source where one is 0; count a job of which both are."""
        first, second = (allocated, requested) if self.processors_from == "allocated" else (requested, allocated)
        nodes, cores = first[0] or second[0], first[1] or second[1]
        if not any(first) and (nodes or cores):
            self.repaired[self.size_missing] += 1
        return nodes, cores

    def damaged(self, line: int, problem: object, lines: int = 1) -> None:
        """Count a line that cannot be used; the report shows the first ones."""
        self.counts[DAMAGED] += lines
        if len(self._examples) < _MOST_EXAMPLES:
            self._examples.append(f"{self.path}:{line}: {problem}")

    def left_out(self, reason: str, lines: int = 1) -> None:
        """Count a line by what became of it; a damaged file may have many reasons, of which the first are kept apart."""
        counts = self.counts
        if len(counts) >= _MOST_REASONS and reason not in counts:
            reason = "for other reasons"
        counts[reason] += lines

    def workload(self, kind: str, nodes_of: Callable[[str], list[str]], *, slots: bool = False) -> Workload:
        """Return the jobs as a workload with a report, which calls the log ``kind``; ``nodes_of`` splits a list of nodes."""
        # Where the scheduler allocates slots, a node of the workload is one unless another unit is asked for.
        self._tabulate()
        self._choose_cluster()
        self._order_attempts()
        distinct = self._number_nodes(nodes_of)
        shared = self._share_on_held_nodes()
        self._join_components()
        unit = self._choose_unit(shared, slots=slots)
        self._keep(self._columns[unit] > 0, f"without allocated {'GPUs' if unit == 'gpus' else unit}")
        self._require_jobs()
        columns, size, options = self._columns, self._columns[unit], self._options
        peak, reached = self._peak(size)
        machine = counted(peak, "GPU" if unit == "gpus" else unit[:-1])
        named = f"the log names {counted(distinct, 'node') if distinct else 'no nodes'}"
        self._remarks.append(f"machine: {machine}, the most in use at the same time, at {_iso(reached)} ({named}; --nodes)")
        self._remark_on_waits()
        numbers = self._job_numbers()
        limit = columns["limit"] if options["use_estimates"] else columns["run"]
        self.repaired["time limit missing, run time used"] += int((limit <= 0).sum())
        recorded = self._recorded(numbers)
        with_names = [name for name in ("user", "group", *extras.NAMED_COLUMNS) if name in self.names]
        began, cluster = int(columns["submit"].min()), int(columns["cluster"][0])
        rows = extras.table_of(
            **{name: columns[name] for name in ("user", "group", "status")},
            submit=(columns["submit"] - began) * TICKS_PER_SECOND,
            id=numbers,
            nodes=size,
            run=columns["run"] * TICKS_PER_SECOND,
            estimate=np.where(limit > 0, limit, columns["run"]) * TICKS_PER_SECOND,
            memory=np.where(columns["memory"] > 0, -(-columns["memory"] // size), UNSET),
            **recorded,
        )
        dependencies = self._dependencies(numbers)
        report = ImportReport(
            source=self.path,
            format=kind,
            lines=self.lines,
            counts=self._counts_in_order(),
            jobs=len(numbers),
            unit=unit,
            remarks=tuple(self._remarks),
            examples=tuple(self._examples),
            named_nodes=distinct,
        )
        header = {
            **({"Computer": self.names["cluster"].texts()[cluster - 1]} if cluster > 0 else {}),
            "UnixStartTime": str(began),
            "TimeZoneString": options["timezone"] or "UTC",
            "StartTime": _iso(began),
            "EndTime": _iso(int(columns["end"].max())),
            "MaxProcs": str(peak),
        }
        used = {"unit": unit, "cluster": options["cluster"], "timezone": options["timezone"]}
        provenance = Provenance(source=self.path, options=used, header=header, repaired=+self.repaired, report=report)
        workload = Workload(
            rows,
            name=without_compression(Path(self.path).name),
            provenance=provenance,
            machine_nodes=peak,
            extra=tuple(recorded),
            names={name: texts for name in with_names if (texts := self.names[name].texts())},
            dependencies=dependencies,
            placed=self._placed(numbers, nodes_of) if unit == "nodes" else None,
        )
        return workload.made_by("trace", {"trace": Path(self.path), **options})

    def _tabulate(self) -> None:
        table = np.frombuffer(self._values, dtype=np.int64).reshape(-1, len(_NO_JOB)).T
        self._columns = columns = dict(zip(_NO_JOB, table, strict=True))
        columns["end"] = columns["start"] + columns["run"] + columns["suspended"]
        if self._array_limits:
            clusters = ("", "", *self.names["cluster"].texts())
            arrays = [(key >> 70, clusters[key & _MOST_CLUSTERS]) for key in self.names["key"] if isinstance(key, int)]
            limits = np.array([UNSET, *(self._array_limits.get(array, UNSET) for array in arrays)])
            numbers = np.array([UNSET, *(number for number, _ in arrays)])
            columns[extras.ARRAY_LIMIT] = limits[columns["key"]]
            columns[extras.ARRAY] = np.where(columns[extras.ARRAY_LIMIT] == UNSET, UNSET, numbers[columns["key"]])
        columns["identity"] = columns["key"]  # the other one is numbered anew
        if self.singletons:
            columns[SINGLETON] = np.where(np.isin(columns["key"], list(self.singletons)), 1, UNSET)
        self._require_jobs()

    def _require_jobs(self) -> None:
        if not len(self._columns["line"]):
            because = counts_in_words({reason: count for reason, count in self._counts_in_order().items() if count})
            first = f"; {self._examples[0]}" if self._examples else ""
            raise TraceError(
                f"{self.path}: no usable job: {counted(self.lines, 'line')}: {because or 'the file is empty'}{first}"
            )

    def _counts_in_order(self) -> dict[str, int]:
        """Return the counts above zero, that of jobs first, then the largest."""
        others = {reason: count for reason, count in self.counts.most_common() if count and reason != JOBS}
        return {JOBS: self.counts[JOBS], **others}

    def _keep(self, keep: BoolArray, reason: str) -> None:
        """Leave out the other jobs; lines of which no job is left are counted by ``reason``."""
        if keep.all():
            return
        line = self._columns["line"]
        if lost := np.setdiff1d(line[~keep], line[keep]).size:
            self.counts[JOBS] -= lost
            self.counts[reason] += lost
        self._columns = {name: column[keep] for name, column in self._columns.items()}

    def _choose_cluster(self) -> None:
        wanted, names = self._options["cluster"], self.names["cluster"].texts()
        if wanted is not None and wanted not in names:
            clusters = _listed(names)
            raise TraceError(f"{self.path}: --cluster: the log has no jobs of {quoted(wanted)}; its clusters are {clusters}")
        numbers, counts = np.unique(self._columns["cluster"], return_counts=True)
        if len(numbers) > 1:
            chosen = numbers[np.argmax(counts)] if wanted is None else names.index(wanted) + 1
            name = visible(names[chosen - 1]) if chosen > 0 else "no name"
            self._remarks.append(f"cluster: jobs of {name} only, of {_listed(names)} (--cluster)")
            self._keep(self._columns["cluster"] == chosen, "jobs of other clusters")

    def _order_attempts(self) -> None:
        """Sort the jobs by key and start, leave out repeated records, and number the run attempts of each job.

        Logs that overlap repeat records of a run attempt: the last one is kept.  A job has a key of its own if the one before
        with its identifier is another user's, or ended a week before its submission: identifiers begin again where they are
        exhausted or a database is set up anew.  An attempt is submitted when the one before has ended, unless the log says
        later, and no later than it starts.
        """
        order = np.lexsort((self._columns["start"], self._columns["key"]))
        self._columns = {name: column[order] for name, column in self._columns.items()}
        key, start = self._columns["key"], self._columns["start"]
        self._keep(np.append((key[1:] != key[:-1]) | (start[1:] != start[:-1]), True), "repeated records")
        columns = self._columns
        key, user, submit, start, end = (columns[name] for name in ("key", "user", "submit", "start", "end"))
        recycled = (user[1:] != user[:-1]) | (submit[1:] > end[:-1] + _LONGEST_REQUEUE_S)
        again = np.append(False, (key[1:] == key[:-1]) & ~recycled)
        requeued = np.cumsum(np.where(again, np.roll(columns["requeued"], 1), 0))
        first = np.maximum.accumulate(np.where(again, 0, np.arange(len(again))))  # of the job's attempts
        ended_before = np.where(again, np.roll(end, 1), 0)
        early = (submit < ended_before) & (ended_before <= start)
        submit = np.where(early, ended_before, submit)
        self.repaired["later run attempt, submitted at the end of the attempt before"] += int(early.sum())
        self.repaired["started before its submission, submitted at its start"] += int((submit > start).sum())
        columns["key"] = np.cumsum(~again)
        columns["restarts"] = np.maximum(columns["restarts"], requeued - requeued[first])
        columns["submit"] = np.minimum(submit, start)

    def _join_components(self) -> None:
        """Make one job of the components of a heterogeneous job that were started together."""
        columns = self._columns
        places = np.flatnonzero(columns["heterogeneous"] > 0)
        if not len(places):
            return
        places = places[np.lexsort([columns[name][places] for name in ("line", "start", "heterogeneous")])]
        whole, start = columns["heterogeneous"][places], columns["start"][places]
        first = np.append(True, (whole[1:] != whole[:-1]) | (start[1:] != start[:-1]))
        begins = np.flatnonzero(first)
        for name in _SIZES:
            columns[name][places[begins]] = np.add.reduceat(np.maximum(columns[name][places], 0), begins)
        columns["run"][places[begins]] = np.maximum.reduceat(columns["run"][places], begins)
        columns["end"] = columns["start"] + columns["run"] + columns["suspended"]
        lists, texts = self.names["node_list"], ("", *self.names["node_list"].texts())
        columns["all_nodes"] = columns["node_list"].copy()
        for of_whole in np.split(places, begins[1:]):
            named = [texts[code] for code in columns["node_list"][of_whole].tolist() if code > 0]
            columns["all_nodes"][of_whole[0]] = lists[",".join(named)]
        keep = np.ones(len(columns["line"]), dtype=bool)
        keep[places[~first]] = False
        self._keep(keep, "components of heterogeneous jobs, added to their first component")

    def _placed(self, numbers: IntArray, nodes_of: Callable[[str], list[str]]) -> NodeLists | None:
        """Return which nodes the jobs held, if the log names them."""
        columns = self._columns
        node_list = columns.get("all_nodes", columns["node_list"])
        known = node_list > 0
        if not known.any():
            return None
        began, codes = int(columns["submit"].min()), node_list[known]
        start, end, suspended = (columns[name][known] for name in ("start", "end", "suspended"))
        begin, end = ((times - began) * TICKS_PER_SECOND for times in (start, end))
        is_used = np.bincount(codes) > 0
        texts = ("", *self.names["node_list"].texts())
        lists = tuple(texts[code] for code in np.flatnonzero(is_used).tolist())
        of_job = (np.cumsum(is_used) - 1)[codes]
        return NodeLists(numbers[known], begin, end, suspended * TICKS_PER_SECOND, of_job, lists, nodes_of)

    def _number_nodes(self, nodes_of: Callable[[str], list[str]]) -> int:
        """Number the nodes of all node lists; return how many nodes there are."""
        # Only lists with 2,000,000 names together are split, unless jobs were suspended: their peak needs all.
        known: dict[str, int] = {}
        texts = self.names["node_list"].texts()
        counts, members = np.zeros(len(texts) + 1, dtype=np.int64), array("q")
        most = LARGEST_WHOLE if self._columns["suspended"].any() else _MOST_NODES
        for code in np.unique(self._columns["node_list"]).tolist():
            if code > 0 and len(members) <= most:
                names = dict.fromkeys(filter(None, nodes_of(texts[code - 1])))
                members.extend([known.setdefault(name, len(known)) for name in names])
                counts[code] = len(names)
        self._nodes = counts, np.cumsum(counts) - counts, np.frombuffer(members, dtype=np.int64)
        return len(known)

    def _stays(self, jobs: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Return the stays of jobs on nodes, by node and start: job, start, latest end there before it (or -1), and with it.

        The jobs are in order of their starts; times count from the first start of all.
        """
        counts, first, members = self._nodes
        lists = np.maximum(self._columns["node_list"][jobs], 0)
        number = counts[lists]
        within = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
        job, node = np.repeat(jobs, number), members[np.repeat(first[lists], number) + within]
        order = np.argsort(node.astype(np.min_scalar_type(node.max(initial=0))), kind="stable")  # small numbers by their digits
        job, node = job[order], node[order]
        start, end = (self._columns[name][job] - int(self._columns["start"].min()) for name in ("start", "end"))
        base = node * (int(end.max(initial=0)) + 1)  # each node in a time of its own: one running maximum for all
        latest = np.maximum.accumulate(base + end)
        before = np.full(len(job), -1)
        before[1:] = np.where(node[1:] == node[:-1], latest[:-1] - base[1:], -1)
        return job, start, before, latest - base

    def _share_on_held_nodes(self) -> float | None:
        """Return the share of the jobs that started on a node that another job held; ``None`` without node names."""
        # Suspended jobs do not count: their nodes were then another job's, which shares nothing.
        order = np.argsort(self._columns["start"], kind="stable")
        job, start, before, _ = self._stays(order[self._columns["suspended"][order] <= 0][:_MOST_JOBS])
        shared, known = (np.count_nonzero(np.bincount(jobs)) for jobs in (job[before > start + _OVERLAP_S], job))
        return shared / known if known else None

    def _choose_unit(self, shared: float | None, *, slots: bool) -> str:
        """Return the unit to use, and remark why."""
        unit, columns = self._options["unit"], self._columns
        if unit != "auto":
            why = "as asked for"
        elif slots:
            unit, why = "cores", "because slots are what the scheduler allocates (--unit)"
        else:
            in_parts = self._in_parts_of_nodes() if shared is None else shared > _SHARED
            why = {
                None: "the log does not say whether jobs share nodes",
                True: "more than 10 % of the jobs took parts of nodes",
                False: "at least 90 % of the jobs took whole nodes",
            }[in_parts]
            if shared is not None:
                why = f"{100 * shared:.1f} % of the jobs started on a node that another job held"
            unit = "cores" if in_parts else "nodes"
            for other in ("cores", "nodes"):
                if not (columns[unit] > 0).any():
                    unit, why = other, f"the log has no number of {unit}"
            why = f"because {why} (--unit)"
        self._remarks.append(f"unit: {unit}, {why}")
        return str(unit)

    def _in_parts_of_nodes(self) -> bool | None:
        """Return whether more than 10 % of the jobs have fewer cores per node than others of their partition."""
        nodes, cores, partition = (self._columns[name] for name in ("nodes", "cores", "partition"))
        known = (nodes > 0) & (cores > 0)
        if not known.any():
            return None
        per_node = cores[known] / nodes[known]
        _, partition = np.unique(partition[known], return_inverse=True)
        most = np.zeros(partition.max() + 1)
        np.maximum.at(most, partition, per_node)
        return bool((per_node < most[partition]).mean() > 0.1)

    def _peak(self, size: IntArray) -> tuple[int, int]:
        """Return the largest number of units in use at the same time, and when.

        Others may use the nodes of suspended jobs.  If each job has as many node names as units, a node that several jobs hold
        counts once.
        """
        start, run, end, lists = (self._columns[name] for name in ("start", "run", "end", "node_list"))
        if not (self._columns["suspended"] > 0).any():
            return peak_in_use(start, end, size)
        if (self._nodes[0][np.maximum(lists, 0)] != size).any():
            return peak_of_executing(start, end, run, size)
        _, begin, before, latest = self._stays(np.argsort(start, kind="stable"))
        first = begin > before
        last = np.append(first[1:], True)
        peak, reached = peak_in_use(begin[first], latest[last], np.ones_like(begin[first]))
        return peak, reached + int(start.min())

    def _remark_on_waits(self) -> None:
        jobs = len(self._columns["line"])
        limits = tuple(f"{number} to {limit}" for (number, _), limit in self._array_limits.items())
        limited = int((self._columns.get(extras.ARRAY_LIMIT, np.zeros(0)) > 0).sum())
        hint = "local times with daylight saving? (--timezone, or export with TZ=UTC)"
        for about, count, noun, remark in (
            ("job arrays", self.several_tasks, "line",
             f"stood for several tasks each; with them there are {counted(jobs, 'job')}"),
            ("job arrays", len(limits), "array",
             f"with a limit (%) of tasks that run at a time, {_listed(limits)}; the waits of their tasks "
             f"({counted(limited, 'job')}) are not all the scheduler's"),
            ("constraints", self.unread_features, "job", "with other constraints than a&b or a|b, which are left out"),
            ("clock", self.clock_change, "job", f"ran an hour more or less than from start to end: {hint}"),
            ("clock", self.counts[BACKWARDS], "record", f"without an elapsed time ended before the start: {hint}"),
            ("waits", int((self._held_s() > MOST_SUSPICIOUS_S).sum()), "job",
             "became eligible more than a minute after submission (dependencies, holds, begin times); waits since then are "
             "given beside those since submission"),
        ):  # fmt: skip
            if count:
                self._remarks.append(f"{about}: {counted(count, noun)} {remark}")

    def _held_s(self) -> IntArray:
        """Return how long each job waited before it was eligible, seconds; ``UNSET`` where the log does not say."""
        submit, start, eligible = (self._columns[name] for name in ("submit", "start", "eligible"))
        return np.where((eligible < 0) | (eligible > start), UNSET, np.maximum(eligible - submit, 0))

    def _job_numbers(self) -> IntArray:
        """Return the numbers of the log where they are unique; other jobs get numbers above all of them."""
        numbers = self._columns["number"].copy()
        order = np.lexsort((self._columns["start"], self._columns["submit"]))
        _, first = np.unique(numbers[order], return_index=True)
        unique = np.zeros(len(numbers), dtype=bool)
        unique[order[first]] = True
        unique &= (numbers >= 0) & (numbers <= LARGEST_WHOLE // 2)
        others = order[~unique[order]]
        if len(others):
            earlier = order[first][np.searchsorted(numbers[order[first]], numbers[others])]
            repaired = sum(not alike for alike in map(self._are_one_job, others.tolist(), earlier.tolist()))
            self.repaired["job number used by an earlier job, new number given"] += repaired
        numbers[others] = int(numbers[unique].max(initial=0)) + 1 + np.arange(len(others))
        return numbers

    def _are_one_job(self, row: int, earlier: int) -> bool:
        """Return whether two jobs of one number are run attempts of a job, or tasks of an array, as logs number them."""
        key, user, identity = (self._columns[name][[row, earlier]].tolist() for name in ("key", "user", "identity"))
        if row == earlier or user[0] != user[1]:
            return False
        array, other = (array_of(self._keys[code]) for code in identity)
        return key[0] == key[1] or (array is not None and array == other)

    @cached_property
    def _keys(self) -> list[Hashable]:
        return list(self.names["key"])  # by their numbers; all have been read

    def _dependencies(self, numbers: IntArray) -> IntArray | None:
        """Return which jobs wait for which: for the last run attempt of the other one that had ended, or begun, by then."""
        if not (self.dependencies or self.unread_waits):
            return None
        columns = self._columns
        start, wanted = columns["start"], {number for _, _, _, number, _ in self.dependencies}
        row_of: dict[tuple[int, int], int] = {}  # line and number of a key -> row
        rows_of: dict[int, list[int]] = {}  # number of a key -> its rows, by start
        for row in np.argsort(start, kind="stable").tolist() if wanted else ():
            line, code = int(columns["line"][row]), int(columns["identity"][row])
            row_of[line, code] = row
            rows_of.setdefault(code, []).append(row)
        codes_of: dict[tuple[int, int], list[tuple[int, int]]] = {}  # number and cluster -> tasks, and numbers of keys
        keys = [key for key in self.names["key"] if isinstance(key, int)]
        for code, key in enumerate(keys, 1):
            if key >> 70 in wanted:
                codes_of.setdefault((key >> 70, key & _MOST_CLUSTERS), []).append((key >> 40 & _MOST_TASK, code))
        found = set()
        for line, code, kind, number, task in self.dependencies:
            if (row := row_of.get((line, code))) is None:
                continue
            reached = columns["start" if kind == DEPENDENCIES.index("after") else "end"]
            for each, other in codes_of.get((number, keys[code - 1] & _MOST_CLUSTERS), ()):
                before = [place for place in rows_of.get(other, ()) if reached[place] <= start[row] and other != code]
                if before and task in (0, each):
                    found.add((int(numbers[row]), kind, int(numbers[before[-1]])))
        waiting = len({job for job, _, _ in found})
        self._remarks += [f"dependencies: {counted(waiting, 'job')} wait for others (SubmitLine)"] if waiting else []
        if unread := self.unread_waits:
            self._remarks.append(f"dependencies: {unread:,} of other kinds are left out (alternatives, delays)")
        return np.array(sorted(found), dtype=np.int64).reshape(-1, 3)

    def _recorded(self, numbers: IntArray) -> dict[str, IntArray]:
        """Return what the log has recorded, as extra columns; columns without a single value are left out."""
        columns = self._columns
        recorded: dict[str, IntArray] = {
            **{
                name: columns[name]
                for name in (extras.ARRAY, extras.ARRAY_LIMIT, extras.GPUS, SINGLETON, *extras.NAMED_COLUMNS)
                if name in columns
            },
            extras.WAIT: (columns["start"] - columns["submit"]) * TICKS_PER_SECOND,
            extras.SUSPENDED: columns["suspended"] * TICKS_PER_SECOND,
            extras.HELD: np.where((held := self._held_s()) == UNSET, UNSET, held * TICKS_PER_SECOND),
            extras.REQUEUES: columns["restarts"],
            extras.NODE_COUNT: np.where(columns["nodes"] > 0, columns["nodes"], UNSET),
            extras.CORES: np.where(columns["cores"] > 0, columns["cores"], UNSET),
        }
        if self._options["feedback"]:  # a further run attempt follows the one before, which stands above it
            key = columns["key"]
            follows = np.append(False, (key[1:] == key[:-1]) & (columns["requeued"][:-1] > 0))
            think = np.maximum(columns["submit"] - np.roll(columns["end"], 1), 0) * TICKS_PER_SECOND
            recorded[extras.PRECEDING] = np.where(follows, np.roll(numbers, 1), UNSET)
            recorded[extras.THINK] = np.where(follows, think, UNSET)
        return {name: values for name, values in recorded.items() if (values != UNSET).any()}


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(visible(name) for name in names[:10]) or "without a name"
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"


def _iso(seconds: int) -> str:
    return f"{datetime.fromtimestamp(min(seconds, _LAST_SECOND), UTC):%Y-%m-%dT%H:%M:%S}"


def peak_of_executing(start: IntArray, end: IntArray, run: IntArray, units: IntArray) -> tuple[int, int]:
    """Return the same as :func:`peak_in_use`; others use the units of jobs that are suspended, it is not known when.

    A job counts with the share of its time for which it executed, and at least as the largest job.
    """
    executing = peak_in_use(start, end, -(-units * run // np.maximum(end - start, 1)))
    return max(executing, (int(units.max()), int(start[units.argmax()])))


def peak_in_use(start: IntArray, end: IntArray, units: IntArray) -> tuple[int, int]:
    """Return the largest number of units that jobs hold at the same time, and when first, in the unit of the times.

    The arrays have shape ``(jobs,)``; a job holds its units from its start (included) to its end (excluded).
    """
    times = np.concatenate([end, start])
    order = np.argsort(times, kind="stable")  # ends come before starts of the same time
    in_use = np.cumsum(np.concatenate([-units, units])[order])
    highest = int(np.argmax(in_use))
    return int(in_use[highest]), int(times[order[highest]])
