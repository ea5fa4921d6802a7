"""Slurm's accounting: the output of ``sacct --parsable2``, or of ``sacct --json``, as a workload.

Slurm writes one record for each allocation, and further ones for its steps; docs/guide_own_log says how each state and each
field is read.  The fields are described in the manual page of sacct (Slurm 20 to 24), the layout without a header line in the
documentation of Open XDMoD.

Records are read by columns, some hundreds together: each different text is read once, and time stamps all at once.  Lines that
are no records as they stand (separators or line breaks in job names, damage) are put together first, or counted.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, lru_cache
from itertools import accumulate, chain, compress
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from clustermodel.arrays import BoolArray, FloatArray, IntArray
from clustermodel.errors import TraceError, quoted
from clustermodel.files import opened
from clustermodel.job import UNSET
from clustermodel.validation import LONGEST_S
from clustermodel.workload.log_file import MOST_LINES, log_blocks
from clustermodel.workload.log_values import (
    EARLIEST_S,
    LONGEST_CHANGE_S,
    NO_VALUE,
    Clock,
    checked_run,
    duration,
    gres_gpus,
    node_names,
    requested_kib,
    tres,
    whole,
)
from clustermodel.workload.log_workload import (
    BACKWARDS,
    DAMAGED,
    MOST_EXAMPLES,
    SIZE_MISSING,
    LogJob,
    LogJobs,
    LogOptions,
    Names,
    requested_first,
    task_key,
    workload_of,
)
from clustermodel.workload.table import JOBS, Workload

SACCT_COMMAND: Final = (
    "TZ=UTC sacct --parsable2 --allusers --allocations --duplicates --starttime 2025-01-01 --endtime 2025-02-01 "
    "--format=JobID,JobIDRaw,Cluster,Partition,QOS,Account,Group,User,Submit,Eligible,Start,End,ElapsedRaw,Suspended,State,"
    "AllocNodes,AllocCPUS,ReqMem,ReqTRES,AllocTRES,TimelimitRaw,NodeList,JobName"
)
"""Writes a log with all that an import keeps."""
NO_SACCT: Final = (
    "it is no output of sacct --parsable2 with a header line, nor one in the layout of Open XDMoD; write a log with "
    f"{SACCT_COMMAND}"
)
JOB_ID: Final = re.compile(r"(\d{1,18})(?:_(?:(\d{1,9})|\[([^\]]*)\]?))?(?:\+(\d{1,9}))?(\..+)?", re.ASCII)
"""Groups: number, task, tasks that have not been split off, component, step."""

STATUS: Final = {
    "COMPLETED": 1,
    **dict.fromkeys(
        ("FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "DEADLINE", "LAUNCH_FAILED", "RECONFIG_FAIL",
         "PREEMPTED", "REQUEUED", "RESIZING", "SPECIAL_EXIT", "REQUEUE_HOLD"),
        0,
    ),
    **dict.fromkeys(("CANCELLED", "REVOKED"), 5),
}  # fmt: skip
"""SWF status of the states in which a run attempt has ended."""
REQUEUED: Final = frozenset(
    ("PREEMPTED", "REQUEUED", "NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "RESIZING", "SPECIAL_EXIT", "REQUEUE_HOLD")
)
"""States after which a further record of the job is a further run attempt."""
_WAITING_STATES: Final = frozenset(("PENDING", "REQUEUE_FED", "RESV_DEL_HOLD"))
_RUNNING_STATES: Final = frozenset(
    ("RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "SIGNALING", "STAGE_OUT", "STOPPED", "POWER_UP_NODE", "EXPEDITING")
)
_NOT_ENDED: Final = -3

_NEEDED: Final = {
    "Submit": ("submit",),
    "Start": ("start",),
    "End or ElapsedRaw": ("end", "elapsed", "elapsedraw"),
    "AllocNodes, AllocCPUS or AllocTRES": (
        "nnodes", "allocnodes", "ncpus", "alloccpus", "alloctres", "nodelist", "reqtres", "reqcpus", "reqnodes",
    ),
}  # fmt: skip
_STEP: Final = "steps"
_NEVER: Final = "never started"
_NO_TIME: Final = "with run time zero"
_NO_SUBMISSION: Final = "without a submission time"
_NO_START: Final = "without a start time"
_NO_LENGTH: Final = "without a run time"
_SUSPENSION: Final = "elapsed time less than end - start - suspended time, the rest counted as suspended"
_OTHER_TIME: Final = "elapsed time is not end - start - suspended time, elapsed time used"
_BROKEN: Final = "line breaks inside fields"
_HEADERS: Final = "header lines"
_MESSAGE: Final = ("sacct: ", "slurm_", "srun: ")
_MOST_SUSPICIOUS_S: Final = 60  # up to which times of a record agree
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
    """Read a log of Slurm's sacct, as ``--parsable2`` or ``--parsable`` writes it, into memory.

    Each run attempt is a job: after a requeue the job is submitted again.  Components of a heterogeneous job that started
    together are one job.  Every line is counted in ``provenance.report``.  The columns ``wait``, ``suspended``, ``requeues``,
    ``cores``, ``gpus`` and others keep what the log has recorded (:class:`~clustermodel.workload.table.ExtraColumns`).

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
    options = LogOptions(unit=unit, cluster=cluster, timezone=timezone, use_estimates=use_estimates, feedback=feedback)
    reader = _Reader(LogJobs(os.fspath(path)), Clock(timezone), requested_first=requested_first(processors_from))
    lines = reader.read()
    workload = workload_of(reader.jobs, options, kind=reader.kind, lines=lines, names=node_names)
    return workload.made_by("trace", {"trace": Path(path), **asdict(options)})


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
    except (EOFError, OSError, lzma.LZMAError, zlib.error):
        return False
    return begin.lstrip().startswith("{") and any(f'"{key}"' in begin for key in ("meta", "jobs"))


@lru_cache(maxsize=4096)
def state_of(text: str) -> str:
    """Return the state of ``CANCELLED by 1001``, or of ``OUT_OF_ME+``, as sacct cuts it in a narrow column."""
    state = text.split(" ", 1)[0].upper()
    if not state.endswith("+"):
        return state
    whole_states = [known for known in (*STATUS, *_WAITING_STATES, *_RUNNING_STATES) if known.startswith(state[:-1])]
    return whole_states[0] if len(whole_states) == 1 else state


class _Known(dict[Any, int]):
    """What texts (or hours) stand for, each read once: a number, or ``width`` numbers.

    ``value_of`` returns it; where it raises ``ValueError`` the text cannot be read, and is ``nan``.
    """

    def __init__(self, value_of: Callable[[Any], Any], width: int = 1) -> None:
        super().__init__()
        self._value_of = value_of
        self._table = np.empty((256, width))

    def __missing__(self, text: Any) -> int:
        row = len(self)
        if row == len(self._table):
            self._table = np.concatenate([self._table, self._table])
        try:
            self._table[row] = self._value_of(text)
        except ValueError:
            self._table[row] = np.nan
        self[text] = row
        return row

    def of(self, texts: Sequence[Any]) -> FloatArray:
        """Return the numbers, shape ``(texts,)`` or ``(width, texts)``."""
        if len(self) > _MOST_KEPT:
            self.clear()
        rows = np.fromiter(map(self.__getitem__, texts), dtype=np.int64, count=len(texts))
        return self._table[rows].T if self._table.shape[1] > 1 else self._table[rows, 0]


class _Durations(_Known):
    """Durations in seconds, :data:`UNSET` where there is none; ``unit``: seconds of a number without colons."""

    def __init__(self, unit: int = 1) -> None:
        super().__init__(lambda text: UNSET if (seconds := duration(text, unit)) is None else seconds)
        self._unit = unit

    def of(self, texts: Sequence[str]) -> FloatArray:
        """Return the durations, shape ``(texts,)``."""
        if _are_digits(texts, 9):
            seconds: FloatArray = np.fromiter(map(int, texts), dtype=np.float64, count=len(texts)) * self._unit
            if seconds.max() <= LONGEST_S:
                return seconds
        return super().of(texts)


class _Stamps:
    """Time stamps in seconds since 1970 UTC."""

    _LENGTH: Final = 19  # of 2025-03-03T08:00:00
    _BETWEEN: Final = [4, 7, 10, 13, 16]
    _SEPARATORS: Final = np.frombuffer(b"--T::", dtype=np.uint8)
    _DIGITS: Final = [0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18]
    _HIGHEST: Final = np.array([9] * 10 + [5, 9, 5, 9], dtype=np.uint8)
    _PLACES: Final = 10 ** np.arange(9, -1, -1)  # of the digits of year, month, day and hour
    _SECONDS: Final = np.array([600, 60, 10, 1])  # of the digits of minute and second

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._hours = _Known(self._hour)
        self._others = _Known(clock.passes, 2)

    def of(self, texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Return the times, :data:`UNSET` where there is none and ``nan`` where it cannot be read, and their second passes.

        These differ in an hour that daylight saving repeats.
        """
        seconds = np.full(len(texts), np.nan)
        usual = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)) == self._LENGTH
        text = "".join(texts if usual.all() else compress(texts, usual.tolist()))
        if text.isascii():
            seconds[usual] = self._usual(text)
        others = np.flatnonzero(np.isnan(seconds))
        if not len(others):
            return seconds, seconds
        second = seconds.copy()
        seconds[others], second[others] = self._others.of([texts[record] for record in others.tolist()])
        return seconds, second

    def _usual(self, text: str) -> FloatArray:
        """Return stamps such as ``2025-03-03T08:00:00``, one after the other; ``nan`` where one needs a closer look."""
        letters = np.frombuffer(text.encode("ascii"), dtype=np.uint8).reshape(-1, self._LENGTH)
        digits = letters[:, self._DIGITS] - np.uint8(ord("0"))  # above 9 where a letter is none
        good = (letters[:, self._BETWEEN] == self._SEPARATORS).all(axis=1) & (digits <= self._HIGHEST).all(axis=1)
        hours = np.where(good, digits[:, :10] @ self._PLACES, 0).tolist()
        seconds: FloatArray = self._hours.of(hours) + digits[:, 10:] @ self._SECONDS
        seconds[seconds <= EARLIEST_S] = UNSET
        return seconds

    def _hour(self, number: int) -> float:
        """Return the time at which hour ``2025030308`` begins."""
        begin = self._clock.hour(number // 1_000_000, number // 10_000 % 100, number // 100 % 100, number % 100)
        return np.nan if begin is None else begin


class _Identities(NamedTuple):
    """What the fields JobID and JobIDRaw of records say."""

    numbers: list[int]
    raw: list[int]
    tasks: list[int]
    """Task + 1, 0 for a job that is no task."""
    components: list[int]
    """Component + 1, 0 for a job that is none."""
    several: dict[int, str]
    """Tasks that have not been split off, by record."""
    step: BoolArray


class _Times(NamedTuple):
    """Times of records in seconds, shape ``(records,)`` each; :data:`UNSET` where there is none."""

    submit: FloatArray
    start: FloatArray
    end: FloatArray
    length: FloatArray
    run: FloatArray
    """The length in whole seconds."""
    suspended: FloatArray
    eligible: FloatArray
    limit: FloatArray
    backwards: BoolArray
    """Whether the run attempt ends before its start, and no length is given."""
    bad: BoolArray
    """Whether a time that each run attempt needs cannot be read."""


class _Sizes(NamedTuple):
    """What records say of sizes, shape ``(records,)`` each; 0 where they do not."""

    nodes: FloatArray
    cores: FloatArray
    gpus: FloatArray
    memory: FloatArray
    """KiB of the whole job, :data:`UNSET` where it is not known."""
    restarts: FloatArray
    largest: FloatArray
    """Of these amounts."""
    missing: BoolArray
    """Whether neither nodes nor cores are known where they are looked for first, but elsewhere."""
    idle: BoolArray
    """Whether nothing was allocated."""
    node_lists: list[str]


class _Fields:
    """The fields of records; ``columns`` has their texts in the order of the layout."""

    def __init__(self, layout: _Layout, columns: Sequence[Sequence[str]]) -> None:
        self.layout = layout
        self._columns = columns
        self._none = [""] * len(columns[0])

    def texts(self, *names: str) -> Sequence[str]:
        """Return the texts of the first of the fields that the log has."""
        return self._columns[place] if (place := self.layout.position(*names)) >= 0 else self._none

    def numbers(self, known: _Known, name: str) -> FloatArray:
        """Return what the texts of a field stand for."""
        texts = self.texts(name)
        return known.of([""])[..., np.zeros(len(texts), dtype=np.int64)] if texts is self._none else known.of(texts)

    def filled(self, values: FloatArray, known: _Known, *names: str) -> FloatArray:
        """Return the values or, where they are 0, those of the first field that has one."""
        for name in names:
            if self.layout.position(name) >= 0 and not values.all():
                values = _first(values, self.numbers(known, name))
        return values

    def first_known(self, known: _Known, name: str, other: str) -> FloatArray:
        """Return the values of a field or, where it has none, those of the other one."""
        values = self.numbers(known, name)
        unknown = values == UNSET
        return np.where(unknown, self.numbers(known, other), values) if unknown.any() else values

    def record(self, record: int) -> dict[str, str]:
        """Return the fields of a record by name."""
        return {name: column[record] for name, column in zip(self.layout.names, self._columns, strict=True)}


class _Reader:
    """Reads the records of a log into :attr:`jobs`."""

    def __init__(self, jobs: LogJobs, clock: Clock, *, requested_first: bool) -> None:
        self.jobs = jobs
        self.kind = "sacct"
        self._clock = clock
        self._requested_first = requested_first
        self._stamps = _Stamps(clock)
        self._seconds, self._minutes = _Durations(), _Durations(60)
        self._amounts, self._gpus = _Known(whole), _Known(gres_gpus)
        self._tres = _Known(lambda text: (*tres(text), gres_gpus(text)), 5)
        self._memory = _Known(requested_kib, 3)
        self._states = _Known(_state, 3)
        self._lines = 0  # read
        self._layout: _Layout | None = None
        self._checked: _Layout | None = None
        self._rows: list[list[str]] = []  # records that have not been read
        self._row_lines: list[int] = []
        self._pending: list[str] = []  # lines of a record that has not ended
        self._begun = 0  # number of the first of them
        self._complete = False  # whether the line before ended a record

    def read(self) -> int:
        """Read the file; return its number of lines."""
        path = Path(self.jobs.path)
        for texts in _json_blocks(path) if looks_like_json(path) else log_blocks(path):
            columns = self._layout.columns(texts) if self._layout is not None else None
            if columns is not None:  # nearly always
                self._give_up()
                self._read_rows()
                self._complete = True
                self._read(np.arange(self._lines + 1, self._lines + 1 + len(texts)), columns)
                self._lines += len(texts)
                continue
            for text in texts:
                self._lines += 1
                self._take(text)
        self._give_up()
        self._read_rows()
        if self._checked is None and not self.jobs.counts[_HEADERS]:
            raise TraceError(f"{path}: {NO_SACCT}")
        return self._lines

    def _take(self, text: str) -> None:
        """Take up a line that may be no record, or part of one."""
        layout = self._layout
        fields = layout.split(text) if layout is not None else []
        if layout is not None and layout.is_record(fields):
            self._give_up()
            self._add(self._lines, fields)
        elif not self._is_no_record(text):
            assert self._layout is not None
            self._assemble(self._layout, text)

    def _add(self, line: int, fields: list[str]) -> None:
        self._complete = True
        self._rows.append(fields)
        self._row_lines.append(line)
        if len(self._rows) == MOST_LINES:
            self._read_rows()

    def _read_rows(self) -> None:
        if self._rows:
            rows, lines = self._rows, self._row_lines
            self._rows, self._row_lines = [], []
            self._read(np.array(lines), list(zip(*rows, strict=True)))

    def _count(self, reason: str, lines: int = 1) -> None:
        """Count lines that are no records; reasons are counted in the order of the lines."""
        if reason not in self.jobs.counts:
            self._read_rows()
        self.jobs.counts[reason] += lines

    def _damaged(self, line: int, problem: str, lines: int = 1) -> None:
        if DAMAGED not in self.jobs.counts or len(self.jobs.examples) < MOST_EXAMPLES:
            self._read_rows()
        self.jobs.damaged(line, problem, lines)

    def _give_up(self) -> None:
        """Count the lines of a record that does not end."""
        if self._pending:
            assert self._layout is not None
            fields = len(self._layout.split("\n".join(self._pending)))
            pending, self._pending = self._pending, []
            self._damaged(self._begun, f"{fields} fields; a record has {self._layout.size}", len(pending))

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
        if not text or text.isspace():
            if not self._pending:
                self._count("blank lines")
                return True
            return False
        if text.startswith(_MESSAGE):
            self._count("messages of sacct")
            return True
        if self._layout is None:
            self._damaged(self._lines, "it stands before the first record")
            return True
        return False

    def _assemble(self, layout: _Layout, text: str) -> None:
        """Add the record that ends with this line, if it has separators or line breaks in its texts; else count the line."""
        fields = layout.split(text)
        record = fields if layout.is_record(fields) else layout.aligned(fields) if len(fields) > layout.size else None
        if record is not None:
            self._give_up()
            self._add(self._lines, record)
            return
        if self._pending:
            self._pending.append(text)
            parts = layout.split("\n".join(self._pending))
            record = layout.aligned(parts)
            if record is not None:
                self._count(_BROKEN, len(self._pending) - 1)
                self._pending.clear()
                self._add(self._begun, record)
                return
            if len(self._pending) < 1000 and sum(map(len, self._pending)) < 2**20 and len(parts) < layout.size:
                return
            self._pending.pop()
            self._give_up()
        if self._complete and layout.may_continue(fields):
            self._count(_BROKEN)
        elif layout.begins_like_a_record(fields):
            self._pending.append(text)
            self._begun, self._complete = self._lines, False
        elif len(fields) == layout.size:
            self._damaged(self._lines, f"field JobID: {quoted(fields[layout.id_at])} is not a job number")
        else:
            self._damaged(self._lines, f"{len(fields)} fields; a record has {layout.size}")

    def _check(self, layout: _Layout, line: int) -> None:
        """Refuse a log without a field that is needed."""
        self._checked = layout
        self.kind = f"sacct {'with a header line' if layout.has_header else 'in the layout of Open XDMoD'}"
        missing = [name for name, fields in _NEEDED.items() if layout.position(*fields) < 0]
        if missing:
            raise TraceError(
                f"{self.jobs.path}:{max(1, line - 1)}: the log has no field {', no field '.join(missing)}; "
                f"write it with {SACCT_COMMAND}"
            )

    def _read(self, lines: IntArray, columns: Sequence[Sequence[str]]) -> None:
        """Add the jobs of records, and count them all; ``columns`` has the texts of each field of the layout."""
        layout, jobs = self._layout, self.jobs
        assert layout is not None
        if self._checked is not layout:
            self._check(layout, int(lines[0]))
        fields = _Fields(layout, columns)
        ids = fields.texts("jobid", "jobidraw")
        identities = _identities(ids, fields.texts("jobidraw"))
        for text, cluster in zip(ids, fields.texts("cluster"), strict=True):
            if "%" in text and (array := JOB_ID.fullmatch(text)) and array[3]:
                jobs.note_array(int(array[1]), cluster, array[3])
        status, requeued, completed = fields.numbers(self._states, "state")
        if layout.position("state") < 0:
            status = np.full(len(lines), UNSET)
        times, sizes = self._times(fields), self._sizes(fields)
        tasks = {record: _tasks(text) for record, text in identities.several.items()}

        reasons = np.full(len(lines), JOBS, dtype=object)
        reasons[np.isnan(times.eligible) | np.isnan(times.limit) | (sizes.largest >= _LARGEST)] = DAMAGED
        reasons[[record for record, listed in tasks.items() if isinstance(listed, str)]] = DAMAGED
        reasons[times.submit == UNSET] = _NO_SUBMISSION
        for record in np.flatnonzero(times.run <= 0).tolist():
            reasons[record] = _NEVER if sizes.idle[record] and not completed[record] else _NO_TIME
        reasons[times.length == UNSET] = _NO_LENGTH
        reasons[times.start == UNSET] = np.where(times.length[times.start == UNSET] > 0, _NO_START, _NEVER)
        reasons[times.backwards] = BACKWARDS
        reasons[times.bad] = DAMAGED
        for record in np.flatnonzero(status == _NOT_ENDED).tolist():
            reasons[record] = _why_not_ended(fields.texts("state")[record])
        reasons[identities.step] = _STEP
        for reason, count in Counter(reasons.tolist()).items():
            if reason != DAMAGED:
                jobs.left_out(reason, count)
                continue
            for record in np.flatnonzero(reasons == DAMAGED).tolist():
                problem = self._why_damaged(fields.record(record), tasks.get(record), int(sizes.largest[record]))
                jobs.damaged(int(lines[record]), problem)
        chosen = reasons == JOBS
        if chosen.any():
            suspended = self._with_unexplained(times, chosen)
            jobs.eligible_later += int(
                (chosen & (times.submit + _MOST_SUSPICIOUS_S < times.eligible) & (times.eligible <= times.start)).sum()
            )
            jobs.repair(SIZE_MISSING[self._requested_first], chosen & sizes.missing)
            numbers = {
                "line": lines,
                "submit": times.submit,
                "start": times.start,
                "run": times.run,
                "suspended": suspended,
                "limit": np.rint(times.limit),
                "nodes": sizes.nodes,
                "cores": sizes.cores,
                "gpus": sizes.gpus,
                "memory": sizes.memory,
                "status": status,
                "requeued": requeued,
                "restarts": sizes.restarts,
            }
            self._add_jobs(fields, identities, tasks, sizes.node_lists, chosen, numbers)

    def _times(self, fields: _Fields) -> _Times:
        submit, _ = self._stamps.of(fields.texts("submit"))
        start, second_start = self._stamps.of(fields.texts("start"))
        end, second_end = self._stamps.of(fields.texts("end"))
        same = fields.texts("eligible") == fields.texts("submit")
        eligible = submit if same else self._stamps.of(fields.texts("eligible"))[0]
        suspended = fields.numbers(self._seconds, "suspended")
        length = fields.first_known(self._seconds, "elapsedraw", "elapsed")
        bad = np.isnan(submit + start + end + suspended + length)
        suspended = np.rint(np.maximum(suspended, 0))
        repeated = second_start is not start or second_end is not end
        if repeated:
            start = np.where((start < submit) & (second_start >= submit) & (start != UNSET), second_start, start)
        by_ends = (length == UNSET) & (start != UNSET) & (end != UNSET)
        if repeated:
            end = np.where(by_ends & (end < start) & (second_end >= start), second_end, end)
        backwards = by_ends & (end < start)
        length = np.where(by_ends, np.maximum(end - start - suspended, 0), length)
        run = np.rint(length)
        if repeated:
            start = np.where(end != UNSET, _later_pass(start, second_start, end - run - suspended), start)
            end = _later_pass(end, second_end, start + run + suspended)
        return _Times(
            submit=submit,
            start=start,
            end=end,
            length=length,
            run=run,
            suspended=suspended,
            eligible=eligible,
            limit=fields.first_known(self._minutes, "timelimitraw", "timelimit"),
            backwards=backwards,
            bad=bad | (by_ends & ~backwards & (length > LONGEST_S)),
        )

    def _sizes(self, fields: _Fields) -> _Sizes:
        granted, asked = (fields.numbers(self._tres, name) for name in ("alloctres", "reqtres"))
        cpus = "alloccpus" if fields.layout.position("alloccpus") >= 0 else "ncpus"
        got = ((granted[1], ("allocnodes", "nnodes")), (granted[0], (cpus,)))
        wanted = ((asked[1], ("reqnodes",)), (asked[0], ("reqcpus",)))
        first, second = (wanted, got) if self._requested_first else (got, wanted)
        preferred = [fields.filled(values, self._amounts, *names) for values, names in first]
        nodes, cores = (
            fields.filled(_first(values, others), self._amounts, *names)
            for values, (others, names) in zip(preferred, second, strict=True)
        )
        node_lists = ["" if text.lower() in NO_VALUE else text for text in map(str.strip, fields.texts("nodelist"))]
        for record in np.flatnonzero(nodes == 0).tolist():
            nodes[record] = len(node_names(node_lists[record]))
        gpus = _first(fields.filled(granted[3], self._gpus, "allocgres"), asked[3])
        per_node = _first(fields.numbers(self._gpus, "reqgres"), asked[4])
        gpus = _first(gpus, per_node * np.maximum(nodes, 1))
        memory = _first(granted[2], asked[2])
        if not memory.all():
            of_job, of_node, of_core = fields.numbers(self._memory, "reqmem")
            memory = _first(memory, of_job + of_node * np.maximum(nodes, 1) + of_core * np.maximum(cores, 1))
        restarts = fields.numbers(self._amounts, "restarts")
        return _Sizes(
            nodes=nodes,
            cores=cores,
            gpus=gpus,
            memory=np.where(memory > 0, memory, UNSET),
            restarts=restarts,
            largest=np.maximum.reduce([nodes, cores, gpus, memory, restarts]),
            missing=(preferred[0] == 0) & (preferred[1] == 0) & ((nodes > 0) | (cores > 0)),
            idle=(granted[0] == 0) & (np.fromiter(map(len, node_lists), dtype=np.int64, count=len(node_lists)) == 0),
            node_lists=node_lists,
        )

    def _with_unexplained(self, times: _Times, chosen: BoolArray) -> FloatArray:
        """Return for how long jobs were suspended, with the time that the log does not explain; count what is at odds."""
        off = np.where(chosen & (times.end != UNSET), times.end - times.start - times.run - times.suspended, 0)
        for record in np.flatnonzero(np.abs(np.abs(off) - LONGEST_CHANGE_S) <= 2).tolist():
            if self._clock.changes(int(times.start[record]), int(times.end[record])):
                self.jobs.clock_change += 1
                off[record] = 0
        self.jobs.repair(_SUSPENSION, off > _MOST_SUSPICIOUS_S)
        self.jobs.repair(_OTHER_TIME, off < -_MOST_SUSPICIOUS_S)
        return np.where(off > _MOST_SUSPICIOUS_S, times.suspended + off, times.suspended)

    def _add_jobs(
        self,
        fields: _Fields,
        identities: _Identities,
        tasks: Mapping[int, list[int] | str],
        node_lists: Sequence[str],
        chosen: BoolArray,
        numbers: Mapping[str, FloatArray | IntArray],
    ) -> None:
        """Number the names of the chosen records, and add their jobs: one, or one for each task."""
        jobs, flags, count = self.jobs, chosen.tolist(), int(chosen.sum())

        def named(names: Names, first: Sequence[str], second: Sequence[str] = ()) -> IntArray:
            texts: Iterable[str] = compress(first, flags)
            if second and not all(first):
                texts = [text or other for text, other in zip(texts, compress(second, flags), strict=True)]
            return np.fromiter(names.numbers(texts), dtype=np.int64, count=count)

        ids, raw, task, component = (list(compress(values, flags)) for values in identities[:4])
        clusters = named(jobs.clusters, fields.texts("cluster")).tolist()
        wholes = zip(ids, task, clusters, component, strict=True)
        table = np.full((count, len(LogJob._fields)), UNSET, dtype=np.int64)
        for name, values in {
            **{name: column[chosen] for name, column in numbers.items()},
            "number": raw,
            "heterogeneous": [jobs.heterogeneous.number(each[:3]) if each[3] else UNSET for each in wholes],
            "cluster": clusters,
            "user": named(jobs.users, fields.texts("user"), fields.texts("uid")),
            "group": named(jobs.groups, fields.texts("group"), fields.texts("gid")),
            "account": named(jobs.accounts, fields.texts("account")),
            "partition": named(jobs.partitions, fields.texts("partition")),
            "qos": named(jobs.qos, fields.texts("qos")),
            "job_name": named(jobs.job_names, fields.texts("jobname")),
            "node_list": named(jobs.node_lists, node_lists),
        }.items():
            table[:, LogJob._fields.index(name)] = values
        if tasks:
            records = zip(task, np.flatnonzero(chosen).tolist(), strict=True)
            listed = [[int(each) + 1 for each in tasks[record]] if record in tasks else [number] for number, record in records]
            counts = list(map(len, listed))
            jobs.several_tasks += sum(several > 1 for several in counts)
            rows = np.repeat(np.arange(count), counts)
            table, task = table[rows], list(chain.from_iterable(listed))
            ids, component, clusters = ([values[row] for row in rows.tolist()] for values in (ids, component, clusters))
        keys = jobs.keys.numbers(map(task_key, ids, task, component, clusters))
        table[:, LogJob._fields.index("key")] = np.fromiter(keys, dtype=np.int64, count=len(table))
        jobs.add_table(table)

    def _why_damaged(self, fields: Mapping[str, str], tasks: str | list[int] | None, largest: int) -> str:
        """Return what is wrong with a record, in the order in which its fields matter."""
        times: dict[str, float | None] = {}
        for name, other in (
            ("submit", ""), ("start", ""), ("end", ""), ("suspended", ""), ("elapsedraw", "elapsed"), ("eligible", ""),
            ("timelimitraw", "timelimit"),
        ):  # fmt: skip
            for field in (name, other):
                text = fields.get(field, "")
                try:
                    times[name] = (
                        self._clock.seconds(text) if name in ("submit", "start", "end", "eligible") else duration(text)
                    )
                except ValueError as problem:
                    return f"field {field}: {problem}"
                if times[name] is not None:
                    break
            if name == "elapsedraw" and times[name] is None and times["start"] is not None and times["end"] is not None:
                try:
                    checked_run(round(times["end"] - times["start"] - (times["suspended"] or 0)))
                except ValueError as problem:
                    return str(problem)
        return tasks if isinstance(tasks, str) else f"a size or an amount is {largest}; it must be below {_LARGEST}"


def _identities(texts: Sequence[str], raw_texts: Sequence[str]) -> _Identities:
    step, several = np.zeros(len(texts), dtype=bool), {}
    tasks, components = [0] * len(texts), [0] * len(texts)
    if _are_digits(texts, _MOST_DIGITS):
        numbers = list(map(int, texts))
    else:
        numbers = [int(text) if text.isdecimal() else UNSET for text in texts]
        for record in [record for record, number in enumerate(numbers) if number == UNSET]:
            identity = JOB_ID.fullmatch(texts[record])
            assert identity is not None
            number, task, listed, component, name = identity.groups()
            numbers[record] = int(number)
            tasks[record] = int(task) + 1 if task else 0
            components[record] = int(component) + 1 if component else 0
            step[record] = bool(name)
            if listed is not None:
                several[record] = listed
    raw = numbers
    if raw_texts != texts and any(raw_texts):
        if _are_digits(raw_texts, _MOST_DIGITS):
            raw = list(map(int, raw_texts))
        else:
            matches = map(JOB_ID.fullmatch, raw_texts)
            raw = [int(match[1]) if match and not match[5] else number for match, number in zip(matches, numbers, strict=True)]
    return _Identities(numbers, raw, tasks, components, several, step)


def _are_digits(texts: Sequence[str], most: int) -> bool:
    """Return whether each text consists of 1 to ``most`` digits."""
    together = "".join(texts)
    return together.isascii() and together.isdecimal() and all(texts) and max(map(len, texts)) <= most


def _first(values: FloatArray, others: FloatArray) -> FloatArray:
    """Return the values or, where they are 0, the others."""
    return np.where(values != 0, values, others)


def _later_pass(first: FloatArray, second: FloatArray, expected: FloatArray) -> FloatArray:
    """Return times or, in an hour that daylight saving repeats, their second pass, whichever is nearer to ``expected``."""
    return np.where((second > first) & (np.abs(second - expected) < np.abs(first - expected)), second, first)


def _state(text: str) -> tuple[int, int, int]:
    """Return status (:data:`_NOT_ENDED` for a run attempt that has not ended), requeued, completed."""
    state = state_of(text)
    return STATUS.get(state, _NOT_ENDED), int(state in REQUEUED), int(state == "COMPLETED")


def _why_not_ended(text: str) -> str:
    """Return the reason for skipping a record in an unfinished or unknown state."""
    state = state_of(text)
    if state in _WAITING_STATES:
        return "still waiting"
    return "still running or suspended" if state in _RUNNING_STATES else f"of unknown state {quoted(text.strip())}"


def _tasks(text: str) -> list[int] | str:
    """Return the tasks of ``1-3,7,20-30:5%2``, or what is wrong with them."""
    tasks: list[int] = []
    for part in text.partition("%")[0].split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?\s*", part, re.ASCII)
        if not match:
            return f"field JobID: the tasks {quoted(text)} cannot be read"
        low = int(match[1])
        listed = range(low, int(match[2] or low) + 1, int(match[3] or 1) or 1)
        if len(tasks) + len(listed) > _MOST_TASKS:
            return f"field JobID: {quoted(text)} are more than {_MOST_TASKS:,} tasks"
        tasks += listed
    return tasks or f"field JobID: the tasks {quoted(text)} cannot be read"


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
    **dict.fromkeys(("jobid", "jobidraw"), JOB_ID.pattern),
    **dict.fromkeys(
        ("submit", "eligible", "start", "end"), r"(?:\d{4}-\d\d-\d\d[T ][\d:.+Z-]+|\d{0,12}|[A-Za-z/() ]{1,16})"
    ),
    **dict.fromkeys(
        ("elapsed", "suspended", "timelimit", "planned", "reserved", "resvcpu", "plannedcpu", "cputime", "totalcpu"),
        r"(?:[\d:.-]*|[A-Za-z_]{3,16})",
    ),
    **dict.fromkeys(
        (
            "nnodes", "ncpus", "alloccpus", "allocnodes", "reqcpus", "elapsedraw", "cputimeraw", "uid", "gid", "priority",
            "qosraw", "restarts", "dbindex", "associd", "consumedenergyraw", "ntasks",
        ),
        r"\d*(?:\.\d+)?[KMGTP]?",
    ),
    **dict.fromkeys(("reqtres", "alloctres"), r"[\w/:.=,()-]*"),  # Open XDMoD 8 has gpu:2 in its place
    "state": r"[A-Z_]+\+?(?: by \S+)?",
    "exitcode": r"(?:\d+:\d+)?",
    "derivedexitcode": r"(?:\d+:\d+)?",
    "reqmem": r"[\d.]*[A-Za-z?]{0,2}",
    "timelimitraw": r"\d*|[A-Za-z_]+",
    "cluster": r"[\w.-]*",
}  # fmt: skip
"""What fields look like that are not free text."""
_LISTS: Final = frozenset(("jobid", "reqtres", "alloctres", "nodelist", "reqgres", "allocgres"))
"""Fields with commas of their own."""
_NODES: Final = re.compile(r"(?:[\w.-]|\[[\d,-]*\])+(?:,(?:[\w.-]|\[[\d,-]*\])+)*", re.ASCII)
_FREE: Final = frozenset(
    (
        "jobname", "comment", "admincomment", "systemcomment", "workdir", "submitline", "constraints", "wckey", "extra",
        "stdout", "stderr", "stdin", "container", "reason", "licenses", "reservation",
    )
)  # fmt: skip
"""Fields that may have separators and line breaks in them."""
_KNOWN_FIELDS: Final = frozenset((*_TYPES, *_FREE, "partition", "qos", "account", "group", "user", "nodelist"))
_LONGEST_TAIL: Final = 3  # separators in the second line of a job name
_MOST_SEPARATORS: Final = 200  # in the texts of a record


class _Layout:
    """The fields of a log, in lower case, and how they are separated; ``closed``: a separator also ends each record."""

    def __init__(self, names: Sequence[str], separator: str = "|", *, closed: bool = False, header: bool = True) -> None:
        self.names = tuple(names)
        self.size = len(self.names)
        self.separator = separator
        self.has_header = header
        self._closed = closed or not header
        self._places = {name: place for place, name in reversed(list(enumerate(self.names)))}
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
        return len(fields) == self.size and JOB_ID.fullmatch(fields[self.id_at]) is not None

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
        return columns if _are_digits(numbers, _MOST_DIGITS) or all(map(JOB_ID.fullmatch, numbers)) else None

    @cached_property
    def _types(self) -> list[re.Pattern[str] | None]:
        return [re.compile(_TYPES[name], re.ASCII) if name in _TYPES else None for name in self.names]

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
        if not uncut or len(uncut) >= self.size:
            return False
        if self.id_at < len(uncut) and not JOB_ID.fullmatch(uncut[self.id_at]):
            return False
        return all(pattern is None or pattern.fullmatch(field) for pattern, field in zip(self._types, uncut, strict=False))

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
            if name == "nodelist":
                fits = count == 1 or _NODES.fullmatch(",".join(fields[part : part + count]))
            else:
                pattern = self._types[field]
                fits = pattern is None or pattern.fullmatch(self.separator.join(fields[part : part + count]))
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
        if len(fields) >= len(names) and JOB_ID.fullmatch(fields[0]) and re.match(stamp, fields[names.index("submit")]):
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
    records = (_values(job if isinstance(job, dict) else {}).values() for job in jobs)
    rows = ([" ".join(str(value).split()).replace("\x01", " ") for value in record] for record in records)
    lines = ["\x01".join(row) for row in (_values({}), *rows)]
    for first in range(0, len(lines), MOST_LINES):
        yield lines[first : first + MOST_LINES]


def _values(job: dict[str, Any]) -> dict[str, object]:
    """Return the fields of a job as sacct --parsable2 would write them."""

    def value_of(*keys: str) -> Any:
        """Return a value, of ``{"set": true, "number": 4}`` the number; empty where it is not set."""
        value: Any = job
        for key in keys:
            value = value.get(key, "") if isinstance(value, dict) else ""
        if isinstance(value, dict):
            return value.get("number", "") if value.get("set") and not value.get("infinite") else ""
        return "" if value is None else value

    array, task = value_of("array", "job_id"), value_of("array", "task_id")
    het, offset = value_of("het", "job_id"), value_of("het", "job_offset")
    if limit := value_of("array", "limits", "max", "running", "tasks"):
        task = f"[{value_of('array', 'task') if task == '' else task}%{limit}]"
    number, state, granted = job.get("job_id", ""), value_of("state", "current"), value_of("tres", "allocated")
    each_node, each_core = value_of("required", "memory_per_node"), value_of("required", "memory_per_cpu")
    return {
        "JobID": f"{array}_{task}" if array and task != "" else f"{het}+{offset}" if het and offset != "" else number,
        "JobIDRaw": number,
        **{name: value_of(name.lower()) for name in ("Cluster", "Partition", "QOS", "Account", "Group", "User")},
        "Submit": value_of("time", "submission"),
        **{name: value_of("time", name.lower()) for name in ("Eligible", "Start", "End")},
        "ElapsedRaw": value_of("time", "elapsed"),
        "Suspended": value_of("time", "suspended"),
        "State": state[0] if isinstance(state, list) and state else state,
        "AllocNodes": value_of("allocation_nodes"),
        "ReqCPUS": value_of("required", "CPUs"),
        "ReqMem": f"{each_node}Mn" if each_node else f"{each_core}Mc" if each_core else "",
        "AllocTRES": ",".join(_amount(each) for each in granted if isinstance(each, dict)) if isinstance(granted, list) else "",
        "TimelimitRaw": value_of("time", "limit"),
        "NodeList": value_of("nodes"),
        "JobName": value_of("name"),
    }


def _amount(resource: dict[str, Any]) -> str:
    kind, name, count = (resource.get(key) for key in ("type", "name", "count"))
    return f"{kind}{f'/{name}' if name else ''}={count}{'M' if kind == 'mem' else ''}"
