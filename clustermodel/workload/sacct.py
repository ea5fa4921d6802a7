"""Slurm's accounting: the output of ``sacct --parsable2``, or of ``sacct --json``, as a workload.

Slurm writes one record for each allocation, and further ones for its steps; docs/guide_own_log says how each state and each
field is read.  The fields are described in the manual page of sacct (Slurm 20 to 24), the layout without a header line in the
documentation of Open XDMoD.

Records are read by columns, some hundreds together: each different text is read once, and time stamps all at once.  Lines that
are no records as they stand (separators or line breaks in job names, damage) are put together first, or counted.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Final

import numpy as np

from clustermodel.arrays import BoolArray, FloatArray, IntArray
from clustermodel.errors import TraceError, quoted
from clustermodel.files import opened
from clustermodel.job import UNSET
from clustermodel.validation import LONGEST_S
from clustermodel.workload import log_values
from clustermodel.workload import log_workload as logs
from clustermodel.workload.log_file import MOST_LINES, UNREADABLE, log_blocks
from clustermodel.workload.log_workload import LogJobs, LogOptions
from clustermodel.workload.table import JOBS, Workload

SACCT_COMMAND: Final = (
    "TZ=UTC sacct --parsable2 --allusers --allocations --duplicates --starttime 2025-01-01 --endtime 2025-02-01 "
    "--format=JobID,JobIDRaw,Cluster,Partition,QOS,Account,Group,User,Submit,Eligible,Start,End,ElapsedRaw,Suspended,State,"
    "AllocNodes,AllocCPUS,ReqMem,ReqTRES,AllocTRES,TimelimitRaw,NodeList,JobName"
)
"""Writes a log with all that an import keeps."""
_JOB_ID: Final = re.compile(r"(\d{1,18})(?:_(?:(\d{1,9})|\[([^\]]*)\]?))?(?:\+(\d{1,9}))?(\..+)?", re.ASCII)
"""Groups: number, task, tasks that have not been split off, component, step."""

_AGAIN: Final = (
    "PREEMPTED", "REQUEUED", "NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "RESIZING", "SPECIAL_EXIT", "REQUEUE_HOLD",
)  # fmt: skip
"""States after which a further record of the job is a further run attempt."""
STATUS: Final = {
    "COMPLETED": 1,
    **dict.fromkeys(("FAILED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE", "RECONFIG_FAIL", *_AGAIN), 0),
    **dict.fromkeys(("CANCELLED", "REVOKED"), 5),
}
"""SWF status of the states in which a run attempt has ended."""
_UNFINISHED: Final = {
    **dict.fromkeys(("PENDING", "REQUEUE_FED", "RESV_DEL_HOLD"), "still waiting"),
    **dict.fromkeys(
        (
            "RUNNING",
            "SUSPENDED",
            "CONFIGURING",
            "COMPLETING",
            "SIGNALING",
            "STAGE_OUT",
            "STOPPED",
            "POWER_UP_NODE",
            "EXPEDITING",
        ),
        "still running or suspended",
    ),
}
_NOT_ENDED: Final = -3

_NEEDED: Final = {
    "Submit": ("submit",),
    "Start": ("start",),
    "End or ElapsedRaw": ("end", "elapsed", "elapsedraw"),
    "AllocNodes, AllocCPUS or AllocTRES": (
        "nnodes", "allocnodes", "ncpus", "alloccpus", "alloctres", "nodelist", "reqtres", "reqcpus", "reqnodes",
    ),
}  # fmt: skip
_NUMBERS: Final = (
    "submit", "start", "run", "suspended", "limit", "nodes", "cores", "gpus", "memory", "status", "requeued", "restarts",
)  # fmt: skip
_NAMED: Final = {
    **{name: (name,) for name in ("cluster", "account", "partition", "qos")},
    "user": ("user", "uid"),
    "group": ("group", "gid"),
    "job_name": ("jobname",),
}
"""Names of a job, and the fields that have them, the second where the first is empty."""
_HEADERS: Final = "header lines"
_LONGEST_CHANGE_S: Final = 3600  # by which clocks are changed
_MOST_TASKS: Final = 1_000_000
_MOST_DIGITS: Final = 18  # of a job number
_MOST_KEPT: Final = 65_536
_LARGEST: Final = 2**63


def read_sacct(
    path: str | os.PathLike[str],
    *,
    unit: str = "auto",
    timezone: str | None = None,
    cluster: str | None = None,
    processors_from: str = "allocated",
    use_estimates: bool = True,
    feedback: bool = False,
) -> Workload:
    """Read a log of Slurm's sacct, as ``--parsable2``, ``--parsable`` or ``--json`` writes it, into memory.

    Each run attempt is a job: after a requeue the job is submitted again.  Components of a heterogeneous job that started
    together are one job.  Every line is counted in ``provenance.report``.  The columns ``wait``, ``suspended``, ``requeues``,
    ``cores``, ``gpus`` and others keep what the log has recorded (:data:`~clustermodel.workload.table.RECORDED_COLUMNS`).

    Args:
        path: a file, plain or compressed with gzip, bzip2 or xz; with a header line, or in the layout of Open XDMoD.
        unit: what a node of the workload stands for: ``"nodes"``, ``"cores"`` or ``"gpus"``; by default cores where the log
            shows that jobs share nodes, else nodes.
        timezone: name of the time zone of time stamps without an offset; by default they are read as UTC.
        cluster: of which cluster to use the jobs; by default of the one with the most jobs.
        processors_from: ``"allocated"`` or ``"requested"`` nodes and cores; the other is used where one is missing.
        use_estimates: when false, every estimate is the run time, not the time limit.
        feedback: when true, a further run attempt is submitted after the simulated end of the one before, as much later as in
            the log; by default at its recorded time.

    Returns:
        The workload; its ``machine_nodes`` is the largest number of units in use at the same time.

    Raises:
        TraceError: the file cannot be read, is no log of sacct, lacks a field that is needed, or has no usable job.
        SpecificationError: an option has a value that is not allowed.
    """
    options = LogOptions(
        unit=unit,
        cluster=cluster,
        timezone=timezone,
        processors_from=processors_from,
        use_estimates=use_estimates,
        feedback=feedback,
    )
    reader = _Reader(LogJobs(path, options))
    reader.read()
    return reader.jobs.workload(reader.kind, log_values.node_names)


def is_sacct(text: str) -> bool:
    """Return whether a line is a header of sacct, or a record in the layout of Open XDMoD."""
    return _header_layout(text) is not None or _headerless_layout(text) is not None


def looks_like_json(path: Path) -> bool:
    """Return whether a file looks like the output of ``sacct --json``; false if it cannot be read."""
    try:
        if not path.is_file():
            return False
        with opened(path, newline="\n") as file:
            begin = file.read(4096)
    except UNREADABLE:
        return False
    return begin.lstrip().startswith("{") and any(f'"{key}"' in begin for key in ("meta", "jobs"))


@lru_cache(maxsize=4096)
def state_of(text: str) -> str:
    """Return the state of ``CANCELLED by 1001``, or of ``OUT_OF_ME+``, as sacct cuts it in a narrow column."""
    state = text.split(" ", 1)[0].upper()
    if not state.endswith("+"):
        return state
    whole_states = [known for known in (*STATUS, *_UNFINISHED) if known.startswith(state[:-1])]
    return whole_states[0] if len(whole_states) == 1 else state


class _Known(dict[str, int]):
    """What texts stand for, each read once by ``value_of``: a number, or ``width`` numbers; ``nan`` if it cannot be read.

    Texts that are all numbers count ``unit`` each, if it is given.
    """

    def __init__(self, value_of: Callable[[str], Any], width: int = 1, unit: int = 0) -> None:
        super().__init__()
        self._value_of = value_of
        self._unit = unit
        self._table = np.empty((256, width))

    def __missing__(self, text: str) -> int:
        row = len(self)
        if row == len(self._table):
            self._table = np.concatenate([self._table, self._table])
        try:
            self._table[row] = self._value_of(text)
        except (ValueError, OverflowError):
            self._table[row] = np.nan
        self[text] = row
        return row

    def of(self, texts: Sequence[str]) -> FloatArray:
        """Return the numbers, shape ``(texts,)`` or ``(width, texts)``."""
        if self._unit and _are_digits(texts, 9):
            numbers: FloatArray = np.fromiter(map(int, texts), dtype=np.float64, count=len(texts)) * self._unit
            if numbers.max() <= LONGEST_S:
                return numbers
        if len(self) > _MOST_KEPT:
            self.clear()
        rows = np.fromiter(map(self.__getitem__, texts), dtype=np.int64, count=len(texts))
        return self._table[rows].T if self._table.shape[1] > 1 else self._table[rows, 0]


class _Values:
    """What the texts of a log stand for: times, amounts, states."""

    def __init__(self, clock: log_values.Clock) -> None:
        self.clock = clock
        self.seconds, self.minutes = (_Known(partial(_seconds, unit=unit), unit=unit) for unit in (1, 60))
        self.amounts, self.gpus = _Known(log_values.whole), _Known(log_values.gres_gpus)
        self.tres = _Known(lambda text: (*log_values.tres(text), log_values.gres_gpus(text)), 5)
        self.memory = _Known(log_values.requested_kib, 3)
        self.states = _Known(_state, 3)
        self._hours, self._passes = _Known(clock.hour), _Known(clock.passes, 2)
        self._in_hour = {f"{second // 60:02d}:{second % 60:02d}": second for second in range(3600)}

    def times(self, texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Return time stamps in seconds since 1970, and their second passes in an hour that daylight saving repeats.

        They are :data:`UNSET` where there is none, and ``nan`` where it cannot be read.
        """
        in_hour = self._in_hour.get
        seconds = self._hours.of([text[:14] for text in texts]) + np.array([in_hour(text[14:], np.nan) for text in texts])
        seconds[seconds <= log_values.EARLIEST_S] = UNSET
        others = np.flatnonzero(np.isnan(seconds))
        if not len(others):
            return seconds, seconds
        second = seconds.copy()
        seconds[others], second[others] = self._passes.of([texts[record] for record in others.tolist()])
        return seconds, second


def _seconds(text: str, unit: int) -> float:
    seconds = log_values.duration(text, unit)
    return UNSET if seconds is None else seconds


def _state(text: str) -> tuple[int, int, int]:
    """Return status (:data:`_NOT_ENDED` for a run attempt that has not ended), requeued, completed."""
    state = state_of(text)
    return STATUS.get(state, _NOT_ENDED), int(state in _AGAIN), int(state == "COMPLETED")


def _are_digits(texts: Sequence[str], most: int) -> bool:
    """Return whether each text consists of 1 to ``most`` digits."""
    together = "".join(texts)
    return together.isascii() and together.isdecimal() and all(texts) and max(map(len, texts)) <= most


def _tasks(text: str) -> list[int] | str:
    """Return the tasks of ``1-3,7,20-30:5%2``, or what is wrong with them."""
    pattern = r"\s*(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?\s*"
    matches = [re.fullmatch(pattern, part, re.ASCII) for part in text.partition("%")[0].split(",")]
    ranges = [range(int(match[1]), int(match[2] or match[1]) + 1, int(match[3] or 1) or 1) for match in matches if match]
    if sum(map(len, ranges)) > _MOST_TASKS:
        return f"field JobID: {quoted(text)} are more than {_MOST_TASKS:,} tasks"
    if not all(matches) or not any(ranges):
        return f"field JobID: the tasks {quoted(text)} cannot be read"
    return list(chain.from_iterable(ranges))


class _Records:
    """Records of a log, and what they say of jobs; sizes are 0, and times :data:`UNSET`, where they do not.

    ``columns`` has the texts of all records for each field of the layout.
    """

    def __init__(self, layout: _Layout, columns: Sequence[Sequence[str]], values: _Values, jobs: LogJobs) -> None:
        self._layout, self._columns, self._values, self._jobs = layout, columns, values, jobs
        self._number = len(columns[0])
        self._none = [""] * self._number
        self._read_identities()
        self._read_times()
        self._read_sizes()
        self.status, self.requeued, self._completed = self._numbers(values.states, "state")
        if layout.position("state") < 0:
            self.status = np.full(self._number, UNSET)

    def _texts(self, *names: str) -> Sequence[str]:
        """Return the texts of the first of the fields that the log has."""
        return self._columns[place] if (place := self._layout.position(*names)) >= 0 else self._none

    def _numbers(self, known: _Known, *names: str) -> FloatArray:
        texts = self._texts(*names)
        return known.of([""])[..., np.zeros(self._number, dtype=np.int64)] if texts is self._none else known.of(texts)

    def _known(self, known: _Known, name: str, other: str) -> FloatArray:
        """Return the values of a field or, where it has none, those of the other one."""
        values = self._numbers(known, name)
        unknown = values == UNSET
        return np.where(unknown, self._numbers(known, other), values) if unknown.any() else values

    def _first(self, *sources: FloatArray | tuple[str, ...]) -> FloatArray:
        """Return the first value of each record that is not 0, of arrays and of fields with amounts."""
        values = np.zeros(self._number)
        for source in sources:
            if not values.all():
                others = self._numbers(self._values.amounts, *source) if isinstance(source, tuple) else source
                values = np.where(values != 0, values, others)
        return values

    def _read_identities(self) -> None:
        """Read JobID and JobIDRaw; tasks and components are counted from 1, 0 for what is none."""
        texts, raw_texts = self._texts("jobid", "jobidraw"), self._texts("jobidraw")
        self._step = np.zeros(self._number, dtype=bool)
        self._several: dict[int, list[int] | str] = {}  # tasks that have not been split off, by record
        self._task, self._component = [0] * self._number, [0] * self._number
        if _are_digits(texts, _MOST_DIGITS):
            self._ids = list(map(int, texts))
        else:
            self._ids = [int(text) if text.isdecimal() else UNSET for text in texts]
            for record in [record for record, number in enumerate(self._ids) if number == UNSET]:
                identity = _JOB_ID.fullmatch(texts[record])
                assert identity is not None
                number, task, listed, component, step = identity.groups()
                self._ids[record] = int(number)
                self._task[record] = int(task) + 1 if task else 0
                self._component[record] = int(component) + 1 if component else 0
                self._step[record] = bool(step)
                if listed is not None:
                    self._several[record] = _tasks(listed)
                    self._jobs.note_array(int(number), self._texts("cluster")[record], listed)
        self._raw = self._ids
        if raw_texts != texts and any(raw_texts):
            if _are_digits(raw_texts, _MOST_DIGITS):
                self._raw = list(map(int, raw_texts))
            else:
                matches = zip(map(_JOB_ID.fullmatch, raw_texts), self._ids, strict=True)
                self._raw = [int(match[1]) if match and not match[5] else number for match, number in matches]

    def _read_times(self) -> None:
        values = self._values
        submit, _ = values.times(self._texts("submit"))
        start, second_start = values.times(self._texts("start"))
        end, second_end = values.times(self._texts("end"))
        eligible = self._texts("eligible")
        same = eligible is self._none or eligible == self._texts("submit")
        self._eligible = submit if same else values.times(eligible)[0]
        suspended = self._numbers(values.seconds, "suspended")
        length = self._known(values.seconds, "elapsedraw", "elapsed")
        bad = np.isnan(submit + start + end + suspended + length)
        suspended = np.rint(np.maximum(suspended, 0))
        repeated = second_start is not start or second_end is not end
        if repeated:
            start = np.where((start < submit) & (second_start >= submit) & (start != UNSET), second_start, start)
        by_ends = (length == UNSET) & (start != UNSET) & (end != UNSET)
        if repeated:
            end = np.where(by_ends & (end < start) & (second_end >= start), second_end, end)
        self._backwards = by_ends & (end < start)  # ends before its start, and no length is given
        length = np.where(by_ends, np.maximum(end - start - suspended, 0), length)
        run = np.rint(length)
        if repeated:
            start = np.where(end != UNSET, _later_pass(start, second_start, end - run - suspended), start)
            end = _later_pass(end, second_end, start + run + suspended)
        self.submit, self.start, self._end, self._length, self.run = submit, start, end, length, run
        self.suspended = suspended
        self.limit = np.rint(self._known(values.minutes, "timelimitraw", "timelimit"))
        self._bad = bad | (by_ends & ~self._backwards & (length > LONGEST_S))

    def _read_sizes(self) -> None:
        values = self._values
        granted, asked = self._numbers(values.tres, "alloctres"), self._numbers(values.tres, "reqtres")
        got: tuple[Any, ...] = ((granted[1], ("allocnodes",), ("nnodes",)), (granted[0], ("alloccpus", "ncpus")))
        wanted: tuple[Any, ...] = ((asked[1], ("reqnodes",)), (asked[0], ("reqcpus",)))
        first, second = (wanted, got) if self._jobs.options.processors_from == "requested" else (got, wanted)
        preferred = [self._first(*sources) for sources in first]
        nodes, cores = (self._first(size, *sources) for size, sources in zip(preferred, second, strict=True))
        self._node_lists = [
            "" if text.lower() in log_values.NO_VALUE else text for text in map(str.strip, self._texts("nodelist"))
        ]
        for record in np.flatnonzero(nodes == 0).tolist():
            nodes[record] = len(log_values.node_names(self._node_lists[record]))
        per_node = self._first(self._numbers(values.gpus, "reqgres"), asked[4]) * np.maximum(nodes, 1)
        gpus = self._first(granted[3], self._numbers(values.gpus, "allocgres"), asked[3], per_node)
        memory = self._first(granted[2], asked[2])
        if not memory.all():
            of_job, of_node, of_core = self._numbers(values.memory, "reqmem")
            memory = self._first(memory, of_job + of_node * np.maximum(nodes, 1) + of_core * np.maximum(cores, 1))
        self.restarts = self._numbers(values.amounts, "restarts")
        self.nodes, self.cores, self.gpus = nodes, cores, gpus
        self.memory = np.where(memory > 0, memory, UNSET)
        self._largest = np.maximum.reduce([nodes, cores, gpus, memory, self.restarts])
        self._size_missing = (preferred[0] == 0) & (preferred[1] == 0) & ((nodes > 0) | (cores > 0))
        self._idle = (granted[0] == 0) & ~np.fromiter(map(bool, self._node_lists), dtype=bool, count=self._number)

    def take(self, lines: IntArray) -> None:
        """Add the jobs of the records in these lines, and count them all."""
        jobs, reasons = self._jobs, self._reasons()
        for reason, count in Counter(reasons.tolist()).items():
            if reason != logs.DAMAGED:
                jobs.left_out(reason, count)
                continue
            for record in np.flatnonzero(reasons == logs.DAMAGED).tolist():
                jobs.damaged(int(lines[record]), self._why_damaged(record))
        chosen = reasons == JOBS
        if not chosen.any():
            return
        self._explain_suspensions(chosen)
        late = (self.submit + logs.MOST_SUSPICIOUS_S < self._eligible) & (self._eligible <= self.start)
        jobs.eligible_later += int((chosen & late).sum())
        jobs.repair(jobs.size_missing, chosen & self._size_missing)
        rows = np.flatnonzero(chosen).tolist()
        task = [self._task[row] for row in rows]
        if self._several:
            listed = [
                [int(each) + 1 for each in self._several[row]] if row in self._several else [self._task[row]] for row in rows
            ]
            jobs.several_tasks += sum(len(each) > 1 for each in listed)
            rows = [row for row, each in zip(rows, listed, strict=True) for _ in each]
            task = list(chain.from_iterable(listed))

        def of(values: Sequence[Any], others: Sequence[Any] | None = None) -> list[Any]:
            if others is None or others is self._none or all(values):
                return [values[row] for row in rows]
            return [values[row] or others[row] for row in rows]

        clusters = [UNSET] * len(rows)
        if self._texts("cluster") is not self._none:
            clusters = [jobs.names["cluster"][name] for name in of(self._texts("cluster"))]
        ids, component = of(self._ids), of(self._component)
        names = {
            name: of(self._texts(first), self._texts(*others))
            for name, (first, *others) in _NAMED.items()
            if self._layout.position(first, *others) >= 0
        }
        if any(component):
            wholes = zip(ids, of(self._task), clusters, component, strict=True)
            names["heterogeneous"] = [whole[:3] if whole[3] else "" for whole in wholes]
        places = np.array(rows)
        jobs.add_many(
            len(rows),
            line=lines[places],
            number=of(self._raw),
            key=map(logs.task_key, ids, task, component, clusters),
            node_list=of(self._node_lists),
            **{name: getattr(self, name)[places] for name in _NUMBERS},
            **names,
        )

    def _reasons(self) -> Any:
        """Return what becomes of each record, shape ``(records,)``."""
        reasons = np.full(self._number, JOBS, dtype=object)
        reasons[np.isnan(self._eligible) | np.isnan(self.limit) | (self._largest >= _LARGEST)] = logs.DAMAGED
        reasons[[record for record, tasks in self._several.items() if isinstance(tasks, str)]] = logs.DAMAGED
        reasons[self.submit == UNSET] = logs.NO_SUBMISSION
        none = self.run <= 0
        reasons[none] = np.where(self._idle[none] & (self._completed[none] == 0), logs.NEVER, logs.NO_TIME)
        reasons[self._length == UNSET] = logs.NO_LENGTH
        none = self.start == UNSET
        reasons[none] = np.where(self._length[none] > 0, "without a start time", logs.NEVER)
        reasons[self._backwards] = logs.BACKWARDS
        reasons[self._bad] = logs.DAMAGED
        for record in np.flatnonzero(self.status == _NOT_ENDED).tolist():
            text = self._texts("state")[record]
            reasons[record] = _UNFINISHED.get(state_of(text), f"of unknown state {quoted(text.strip())}")
        reasons[self._step] = "steps"
        return reasons

    def _explain_suspensions(self, chosen: BoolArray) -> None:
        """Count time that the log does not explain as suspended; count the jobs of which it is too much or too little."""
        expected = self.start + self.run + self.suspended
        off = np.where(chosen & (self._end != UNSET), self._end - expected, 0)
        for record in np.flatnonzero(np.abs(np.abs(off) - _LONGEST_CHANGE_S) <= 2).tolist():
            if self._values.clock.changes(int(self.start[record]), int(self._end[record])):
                self._jobs.clock_change += 1
                off[record] = 0
        unexplained = off > logs.MOST_SUSPICIOUS_S
        self._jobs.repair("elapsed time less than end - start - suspended time, the rest counted as suspended", unexplained)
        other = "elapsed time is not end - start - suspended time, elapsed time used"
        self._jobs.repair(other, off < -logs.MOST_SUSPICIOUS_S)
        self.suspended = np.where(unexplained, self.suspended + off, self.suspended)

    def _why_damaged(self, record: int) -> str:
        """Return what is wrong with a record, in the order in which its fields matter."""
        times: dict[str, float | None] = {}
        for names, unit in (
            (("submit",), 0), (("start",), 0), (("end",), 0), (("suspended",), 1), (("elapsedraw", "elapsed"), 1),
            (("eligible",), 0), (("timelimitraw", "timelimit"), 60),
        ):  # fmt: skip
            for name in names:
                text = self._texts(name)[record]
                try:
                    value = log_values.duration(text, unit) if unit else self._values.clock.seconds(text)
                except ValueError as problem:
                    return f"field {name}: {problem}"
                times[names[0]] = value
                if value is not None:
                    break
            if names[0] == "elapsedraw" and value is None and times["start"] is not None and times["end"] is not None:
                try:
                    log_values.checked_run(round(times["end"] - times["start"] - (times["suspended"] or 0)))
                except ValueError as problem:
                    return str(problem)
        if isinstance(tasks := self._several.get(record), str):
            return tasks
        return f"a size or an amount is {int(self._largest[record])}; it must be below {_LARGEST}"


def _later_pass(first: FloatArray, second: FloatArray, expected: FloatArray) -> FloatArray:
    """Return times or, in an hour that daylight saving repeats, their second pass, whichever is nearer to ``expected``."""
    return np.where((second > first) & (np.abs(second - expected) < np.abs(first - expected)), second, first)


class _Reader:
    """Reads the records of a log into :attr:`jobs`."""

    def __init__(self, jobs: LogJobs) -> None:
        self.jobs = jobs
        self.kind = "sacct"
        self._values = _Values(log_values.Clock(jobs.options.timezone))
        self._layout: _Layout | None = None
        self._checked: _Layout | None = None
        self._rows: list[tuple[int, list[str]]] = []  # records that have not been read, and their lines
        self._pending: list[str] = []  # lines of a record that has not ended
        self._begun = 0  # number of the first of them
        self._complete = False  # whether the line before ended a record

    def read(self) -> None:
        """Read the file."""
        path = Path(self.jobs.path)
        for texts in _json_blocks(path) if looks_like_json(path) else log_blocks(path):
            columns = self._layout.columns(texts) if self._layout is not None else None
            if columns is not None:  # nearly always
                self._give_up()
                self._read_rows()
                self._complete = True
                self._take(np.arange(self.jobs.lines + 1, self.jobs.lines + 1 + len(texts)), columns)
                self.jobs.lines += len(texts)
                continue
            for text in texts:
                self.jobs.lines += 1
                self._take_line(text)
        self._give_up()
        self._read_rows()
        if self._checked is None and not self.jobs.counts[_HEADERS]:
            raise TraceError(
                f"{path}: it is no output of sacct --parsable2 with a header line, nor one in the layout of Open XDMoD; "
                f"write a log with {SACCT_COMMAND}"
            )

    def _take(self, lines: IntArray, columns: Sequence[Sequence[str]]) -> None:
        """Take the jobs of records; ``columns`` has the texts of each field of the layout."""
        layout = self._layout
        assert layout is not None
        if self._checked is not layout:
            self._checked = layout
            self.kind = f"sacct {'with a header line' if layout.has_header else 'in the layout of Open XDMoD'}"
            missing = [name for name, fields in _NEEDED.items() if layout.position(*fields) < 0]
            if missing:
                raise TraceError(
                    f"{self.jobs.path}:{max(1, int(lines[0]) - 1)}: the log has no field {', no field '.join(missing)}; "
                    f"write it with {SACCT_COMMAND}"
                )
        _Records(layout, columns, self._values, self.jobs).take(lines)

    def _add(self, line: int, fields: list[str]) -> None:
        self._complete = True
        self._rows.append((line, fields))
        if len(self._rows) == MOST_LINES:
            self._read_rows()

    def _read_rows(self) -> None:
        if self._rows:
            (lines, records), self._rows = zip(*self._rows, strict=True), []
            self._take(np.array(lines), list(zip(*records, strict=True)))

    def _count(self, reason: str, lines: int = 1) -> None:
        """Count lines that are no records; reasons are counted in the order of the lines."""
        if reason not in self.jobs.counts:
            self._read_rows()
        self.jobs.counts[reason] += lines

    def _damaged(self, line: int, problem: str, lines: int = 1) -> None:
        if logs.DAMAGED not in self.jobs.counts or len(self.jobs.examples) < logs.MOST_EXAMPLES:
            self._read_rows()
        self.jobs.damaged(line, problem, lines)

    def _give_up(self) -> None:
        """Count the lines of a record that does not end."""
        if self._pending:
            assert self._layout is not None
            fields = len(self._layout.split("\n".join(self._pending)))
            pending, self._pending = self._pending, []
            self._damaged(self._begun, f"{fields} fields; a record has {self._layout.size}", len(pending))

    def _take_line(self, text: str) -> None:
        """Take up a line that may be no record, or part of one."""
        fields = self._layout.split(text) if self._layout is not None else []
        if self._layout is not None and self._layout.is_record(fields):
            self._give_up()
            self._add(self.jobs.lines, fields)
        elif not self._is_no_record(text):
            assert self._layout is not None
            self._assemble(self._layout, text)

    def _is_no_record(self, text: str) -> bool:
        """Count a header, a blank line, a message of sacct, or a line before the first record; return whether it was one."""
        if self._layout is None or (text[:1].isalpha() and "jobid" in text.lower()):
            announced = _header_layout(text) or (_headerless_layout(text) if self._layout is None else None)
            if announced is not None:
                self._give_up()
                self._read_rows()
                self._layout, self._complete = announced, False
                self._count(_HEADERS, int(announced.has_header))
                return announced.has_header
        blank = not text or text.isspace()
        if blank and self._pending:
            return False
        if blank or text.startswith(("sacct: ", "slurm_", "srun: ")):
            self._count(logs.BLANK if blank else "messages of sacct")
        elif self._layout is None:
            self._damaged(self.jobs.lines, "it stands before the first record")
        else:
            return False
        return True

    def _assemble(self, layout: _Layout, text: str) -> None:
        """Add the record that ends with this line, if it has separators or line breaks in its texts; else count the line."""
        line, fields = self.jobs.lines, layout.split(text)
        record = fields if layout.is_record(fields) else layout.aligned(fields) if len(fields) > layout.size else None
        if record is not None:
            self._give_up()
            self._add(line, record)
            return
        if self._pending:
            self._pending.append(text)
            parts = layout.split("\n".join(self._pending))
            record = layout.aligned(parts)
            if record is not None:
                self._count(logs.BROKEN, len(self._pending) - 1)
                self._pending.clear()
                self._add(self._begun, record)
                return
            if len(self._pending) < 1000 and sum(map(len, self._pending)) < 2**20 and len(parts) < layout.size:
                return
            self._pending.pop()
            self._give_up()
        if self._complete and layout.may_continue(fields):
            self._count(logs.BROKEN)
        elif layout.begins_like_a_record(fields):
            self._pending.append(text)
            self._begun, self._complete = line, False
        elif len(fields) == layout.size:
            self._damaged(line, f"field JobID: {quoted(fields[layout.id_at])} is not a job number")
        else:
            self._damaged(line, f"{len(fields)} fields; a record has {layout.size}")


_XDMOD: Final = (
    "jobid", "jobidraw", "cluster", "partition", "qos", "account", "group", "gid", "user", "uid", "submit", "eligible", "start",
    "end", "elapsed", "exitcode", "state", "nnodes", "ncpus", "reqcpus", "reqmem", "reqtres", "alloctres", "timelimit",
    "nodelist", "jobname",
)  # fmt: skip
"""The layout of Open XDMoD since version 11; before, it had no QOS, and at first no resources either."""
_ISO: Final = r"\d{4}-\d\d-\d\dT"
_XDMOD_LAYOUTS: Final = (
    (tuple(name for name in _XDMOD if name != "qos"), _ISO),
    (_XDMOD, rf"{_ISO}|\d{{9,10}}$"),
    (tuple(name for name in _XDMOD if name not in ("qos", "reqtres", "alloctres")), _ISO),
)
"""The layouts, and what the time of submission looks like; a user number may look like seconds since 1970."""
_TYPES: Final = {
    name: re.compile(pattern, re.ASCII)
    for names, pattern in (
        ("jobid jobidraw", _JOB_ID.pattern),
        ("submit eligible start end", r"(?:\d{4}-\d\d-\d\d[T ][\d:.+Z-]+|\d{0,12}|[A-Za-z/() ]{1,16})"),
        ("elapsed suspended timelimit planned reserved resvcpu plannedcpu cputime totalcpu", r"(?:[\d:.-]*|[A-Za-z_]{3,16})"),
        (
            "nnodes ncpus alloccpus allocnodes reqcpus elapsedraw cputimeraw uid gid priority qosraw restarts dbindex associd "
            "consumedenergyraw ntasks",
            r"\d*(?:\.\d+)?[KMGTP]?",
        ),
        ("reqtres alloctres", r"[\w/:.=,()-]*"),  # Open XDMoD 8 has gpu:2 in its place
        ("state", r"[A-Z_]+\+?(?: by \S+)?"),
        ("exitcode derivedexitcode", r"(?:\d+:\d+)?"),
        ("reqmem", r"[\d.]*[A-Za-z?]{0,2}"),
        ("timelimitraw", r"\d*|[A-Za-z_]+"),
        ("cluster", r"[\w.-]*"),
    )
    for name in names.split()
}
"""What fields look like that are not free text."""
_LISTS: Final = ("jobid", "reqtres", "alloctres", "nodelist", "reqgres", "allocgres")
"""Fields with commas of their own."""
_NODES: Final = re.compile(r"(?:[\w.-]|\[[\d,-]*\])+(?:,(?:[\w.-]|\[[\d,-]*\])+)*", re.ASCII)
_FREE: Final = (
    "jobname", "comment", "admincomment", "systemcomment", "workdir", "submitline", "constraints", "wckey", "extra", "stdout",
    "stderr", "stdin", "container", "reason", "licenses", "reservation",
)  # fmt: skip
"""Fields that may have separators and line breaks in them."""
_KNOWN_FIELDS: Final = frozenset((*_TYPES, *_FREE, "partition", "qos", "account", "group", "user", "nodelist"))
_LONGEST_TAIL: Final = 3  # separators in the second line of a job name
_MOST_SEPARATORS: Final = 200  # in the texts of a record


class _Layout:
    """The fields of a log, in lower case, and how they are separated; ``closed``: a separator also ends each record."""

    def __init__(self, names: Sequence[str], separator: str = "|", *, closed: bool = False, header: bool = True) -> None:
        self.names = names
        self.size = len(names)
        self.separator = separator
        self.has_header = header
        self._closed = closed or not header
        self._places = {name: place for place, name in reversed(list(enumerate(names)))}
        self.id_at = self.position("jobid", "jobidraw")

    def position(self, *names: str) -> int:
        """Return where the first of ``names`` that the log has stands; -1 if it has none."""
        return next((self._places[name] for name in names if name in self._places), -1)

    def split(self, text: str) -> list[str]:
        """Return the fields of a text."""
        fields = text.split(self.separator)
        if fields[-1] == "" and len(fields) > self.size and self._closed:
            fields.pop()
        return fields

    def is_record(self, fields: Sequence[str]) -> bool:
        """Return whether fields are those of a record."""
        return len(fields) == self.size and _JOB_ID.fullmatch(fields[self.id_at]) is not None

    def columns(self, texts: Sequence[str]) -> list[list[str]] | None:
        """Return the fields of lines, each a list with the texts of all lines; ``None`` unless each line is a record.

        All lines are split together, which takes less time and memory than a list of fields for each of them.
        """
        records = len(texts)
        fields = f"{self.separator}\n{self.separator}".join(texts).split(self.separator)
        width = (len(fields) + 1) // records  # of a record with its line break
        if width * records != len(fields) + 1 or fields[width - 1 :: width].count("\n") != records - 1:
            return None
        closed = width == self.size + 2 and self._closed and not any(fields[self.size :: width])
        if width != self.size + 1 and not closed:
            return None
        columns = [fields[place::width] for place in range(self.size)]
        numbers = columns[self.id_at]
        return columns if _are_digits(numbers, _MOST_DIGITS) or all(map(_JOB_ID.fullmatch, numbers)) else None

    def may_continue(self, fields: Sequence[str]) -> bool:
        """Return whether ``fields`` can be a further line of the last field of the record before."""
        if self.names[-1] not in _FREE or len(fields) > _LONGEST_TAIL + 1:
            return False
        if self.names[-1] == "workdir" or self.id_at < len(fields) - 1:
            return len(fields) == 1 or not self.begins_like_a_record(fields)
        return True

    def begins_like_a_record(self, fields: Sequence[str]) -> bool:
        """Return whether ``fields``, of which the last one may be cut, can be the beginning of a record."""
        uncut = fields[:-1]
        if not uncut or len(uncut) >= self.size or (self.id_at < len(uncut) and not _JOB_ID.fullmatch(uncut[self.id_at])):
            return False
        return all(self._fits(name, field) for name, field in zip(self.names, uncut, strict=False))

    @staticmethod
    def _fits(name: str, text: str) -> bool:
        return name not in _TYPES or _TYPES[name].fullmatch(text) is not None

    def aligned(self, fields: list[str]) -> list[str] | None:
        """Return the fields of a record with separators in its texts, joined where they belong; ``None`` if that cannot be.

        The choice is the first one in which all fields that are no free text look as they must.
        """
        if not 0 <= len(fields) - self.size <= _MOST_SEPARATORS:
            return None
        counts = self._parts(fields, 0, 0, set())
        if counts is None:
            return None
        ends = accumulate(counts)
        return [self.separator.join(fields[end - count : end]) for count, end in zip(counts, ends, strict=True)]

    def _parts(self, fields: Sequence[str], field: int, part: int, dead: set[tuple[int, int]]) -> list[int] | None:
        """Return how many of ``fields`` each field from ``field`` on consists of, if the first of them is at ``part``.

        ``dead`` has the positions from which there is no way to the end.
        """
        if field == self.size:
            return [] if part == len(fields) else None
        if (field, part) in dead:
            return None
        name = self.names[field]
        several = name in _FREE or (self.separator == "," and name in _LISTS)
        spare = len(fields) - part - (self.size - field) if several else 0
        for count in range(1, 1 + min(1 + spare, _MOST_SEPARATORS)):
            parts = fields[part : part + count]
            if name == "nodelist":
                fits = count == 1 or _NODES.fullmatch(",".join(parts)) is not None
            else:
                fits = self._fits(name, self.separator.join(parts))
            if fits and (others := self._parts(fields, field + 1, part + count, dead)) is not None:
                return [count, *others]
        dead.add((field, part))
        return None


def _header_layout(text: str) -> _Layout | None:
    """Return the layout that a header line of sacct announces, ``None`` if it is none."""
    begin = re.match(r"\s*([A-Za-z]+)([^\w\s%]+|\t)[A-Za-z]", text)
    if not begin:
        return None
    names = [name.strip().lower() for name in text.strip("\r\n ").split(begin[2])]
    closed = names[-1] == ""
    names = names[:-1] if closed else names
    if not {"jobid", "jobidraw"} & set(names) or len(_KNOWN_FIELDS & set(names)) < min(3, len(names)):
        return None
    return _Layout(names, begin[2], closed=closed)


def _headerless_layout(text: str) -> _Layout | None:
    """Return the layout of Open XDMoD that a line has, ``None`` if it has none."""
    fields = text.split("|")
    for names, stamp in _XDMOD_LAYOUTS:
        if len(fields) >= len(names) and _JOB_ID.fullmatch(fields[0]) and re.match(stamp, fields[names.index("submit")]):
            return _Layout(names, header=False)
    return None


def _json_blocks(path: Path) -> Iterator[list[str]]:
    """Yield the jobs of ``sacct --json`` as lines of ``sacct --parsable2``, the header first.

    Raises:
        TraceError: it is not JSON, or has no list of jobs.
    """
    try:
        with opened(path, newline="\n") as file:
            content = json.load(file)
    except (ValueError, RecursionError) as problem:
        raise TraceError(f"{path}: not readable as JSON: {problem}") from None
    jobs = content.get("jobs") if isinstance(content, dict) else None
    if not isinstance(jobs, list):
        raise TraceError(f"{path}: it has no list 'jobs', as sacct --json writes it")
    records = (_fields_of_json(job if isinstance(job, dict) else {}).values() for job in jobs)
    rows = ([" ".join(str(value).split()).replace("\x01", " ") for value in record] for record in records)
    lines = ["\x01".join(row) for row in (_fields_of_json({}), *rows)]
    for first in range(0, len(lines), MOST_LINES):
        yield lines[first : first + MOST_LINES]


def _fields_of_json(job: dict[str, Any]) -> dict[str, object]:
    """Return the fields of a job as sacct --parsable2 would write them."""

    def value_of(keys: str) -> Any:
        """Return a value, of ``{"set": true, "number": 4}`` the number; empty where it is not set."""
        value: Any = job
        for key in keys.split("/"):
            value = value.get(key, "") if isinstance(value, dict) else ""
        if isinstance(value, dict):
            return value.get("number", "") if value.get("set") and not value.get("infinite") else ""
        return "" if value is None else value

    array, task, het, offset = map(value_of, ("array/job_id", "array/task_id", "het/job_id", "het/job_offset"))
    if limit := value_of("array/limits/max/running/tasks"):
        task = f"[{value_of('array/task') if task == '' else task}%{limit}]"
    number, state, granted = job.get("job_id", ""), value_of("state/current"), value_of("tres/allocated")
    each_node, each_core = value_of("required/memory_per_node"), value_of("required/memory_per_cpu")
    return {
        "JobID": f"{array}_{task}" if array and task != "" else f"{het}+{offset}" if het and offset != "" else number,
        "JobIDRaw": number,
        **{name: value_of(name.lower()) for name in ("Cluster", "Partition", "QOS", "Account", "Group", "User")},
        **{name: value_of(f"time/{name.lower()}") for name in ("Eligible", "Start", "End", "Suspended")},
        "Submit": value_of("time/submission"),
        "ElapsedRaw": value_of("time/elapsed"),
        "State": state[0] if isinstance(state, list) and state else state,
        "AllocNodes": value_of("allocation_nodes"),
        "ReqCPUS": value_of("required/CPUs"),
        "ReqMem": f"{each_node}Mn" if each_node else f"{each_core}Mc" if each_core else "",
        "AllocTRES": ",".join(_amount(each) for each in granted if isinstance(each, dict)) if isinstance(granted, list) else "",
        "TimelimitRaw": value_of("time/limit"),
        "NodeList": value_of("nodes"),
        "JobName": value_of("name"),
    }


def _amount(resource: dict[str, Any]) -> str:
    kind, name, count = (resource.get(key) for key in ("type", "name", "count"))
    return f"{kind}{f'/{name}' if name else ''}={count}{'M' if kind == 'mem' else ''}"
