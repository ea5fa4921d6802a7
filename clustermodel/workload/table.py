"""The workload as an in-memory table, with its provenance: the source, how it was made, and jobs dropped or repaired.

Columns that few workloads have stand beside the table of :class:`~clustermodel.job.JobRow`, so that workloads without them
cost nothing: the stream of a job, the job that its submission depends on, and what an accounting log has recorded of it.
"""

from __future__ import annotations

import copy
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, Protocol, runtime_checkable
from zlib import crc32

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import FloatArray, IntArray, dot
from clustermodel.errors import SpecificationError, counted, did_you_mean, quoted, visible
from clustermodel.formatting import duration, html_fields
from clustermodel.job import LEAST_TICKS, UNSET, Job, JobRow, problem_of, row_of
from clustermodel.ticks import TICKS_PER_SECOND, to_ticks
from clustermodel.validation import KIB_PER_GIB, LONGEST_S, default_used, require_gib, require_seconds, require_whole, to_kib
from clustermodel.workload import transforms
from clustermodel.workload.estimates import PHI, phi_factors
from clustermodel.workload.transforms import RESAMPLE, JobFilter, LoadScale, Unit, filtered, scaled, shifted

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)

STREAM, PRECEDING, THINK = EXTRA_COLUMNS = ("stream", "preceding", "think")
NAMED_COLUMNS: Final = ("account", "partition", "qos", "queue", "job_name")
"""Recorded columns whose numbers stand for names."""
RECORDED_COLUMNS: Final = (
    "wait", "suspended", "requeues", "array_limit", "node_count", "cores", "gpus", *NAMED_COLUMNS,
)  # fmt: skip
"""What an accounting log records of a job; no schedule depends on it."""
ACCOUNT, PARTITION, QOS, QUEUE, JOB_NAME = NAMED_COLUMNS
WAIT, SUSPENDED, REQUEUES, ARRAY_LIMIT, NODE_COUNT, CORES, GPUS = RECORDED_COLUMNS[:7]

_OF_FRAME: Final = {
    "job": "id", "submit_s": "submit", "nodes": "nodes", "run_s": "run", "estimate_s": "estimate", "user": "user",
    "group": "group", "priority": "priority", "status": "status", "stream": STREAM, "memory_gib": "memory",
    "checkpoint_s": "checkpoint", "restart_s": "restart", "checkpoint_interval_s": "checkpoint_interval",
    "preceding": PRECEDING, "think_time_s": THINK, "wait_s": WAIT, "suspended_s": SUSPENDED,
    **{name: name for name in RECORDED_COLUMNS[2:]},
}  # fmt: skip
"""Columns of a table in pandas, in order, and the columns that they are: seconds (``_s``), GiB (``_gib``) or whole numbers."""
RECORDED_FIELDS: Final = tuple(column for column, name in _OF_FRAME.items() if name in RECORDED_COLUMNS)
_ALWAYS: Final = JobRow._fields[:9]
_NEEDED: Final = ("submit_s", "nodes", "run_s")
COLUMNS_OF_JOBS: Final = (*_NEEDED, *(column for column in _OF_FRAME if column not in _NEEDED))
"""The columns of a table that :meth:`Workload.from_frame` knows."""
_SUBMIT, _ID, _USER = map(JobRow._fields.index, ("submit", "id", "user"))
_TIMES: Final = [JobRow._fields.index(name) for name in LEAST_TICKS]
_CHUNK: Final = 4096  # rows converted at a time, so that a million jobs are never a million Python objects at once


@dataclass(frozen=True, kw_only=True)
class ExtraColumns:
    """Extra columns by job number; they may cover more jobs than the workload that has them.

    ``stream``: position of the job's label in :attr:`labels`; ``preceding``: number of the job on whose completion the
    submission depends; ``think``: ticks from that completion to the submission.  :data:`~clustermodel.job.UNSET` where a job
    has no value.

    Recorded by an accounting log, in ticks: ``wait``, ``suspended``; numbers: ``requeues`` (run attempts before this one),
    ``array_limit`` (tasks of its job array that may run at a time), ``node_count``, ``cores``, ``gpus``; numbers of
    :attr:`names`: ``account``, ``partition``, ``qos``, ``queue``, ``job_name``.
    """

    ids: IntArray
    """Job numbers, shape ``(jobs,)``, in any order, each once."""
    columns: Mapping[str, IntArray]
    """Some of ``EXTRA_COLUMNS`` and :data:`RECORDED_COLUMNS`, each of shape ``(jobs,)``."""
    labels: tuple[str, ...] = ()
    """Names of the streams."""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The names that the numbers 1, 2, ... of a column stand for; of :data:`NAMED_COLUMNS`, ``user`` and ``group``."""

    def of(self, ids: IntArray) -> dict[str, IntArray]:
        """Return the columns of the jobs ``ids``, shape ``(jobs,)``, in that order; a predecessor must be among them."""
        order = np.argsort(self.ids)
        place = order[np.searchsorted(self.ids, ids, sorter=order)]
        columns = {name: column[place] for name, column in self.columns.items()}
        if PRECEDING in columns:
            columns[PRECEDING] = np.where(np.isin(columns[PRECEDING], ids), columns[PRECEDING], UNSET)
            _require_an_order(ids, columns[PRECEDING])
            columns.setdefault(THINK, np.zeros(len(ids), dtype=np.int64))
        for column in columns.values():
            column.setflags(write=False)
        return columns

    def without_streams(self) -> ExtraColumns:
        """Return the same without the column of streams."""
        return replace(self, columns={name: column for name, column in self.columns.items() if name != STREAM}, labels=())

    def think_times_scaled(self, factor: float) -> ExtraColumns:
        """Return the same with think times multiplied by ``factor``."""
        if factor == 1 or THINK not in self.columns:
            return self
        think = self.columns[THINK]
        longer = np.where(think > 0, np.rint(think * factor), think).astype(np.int64)
        return replace(self, columns={**self.columns, THINK: longer})

    def renumbered(self, shift: int) -> ExtraColumns:
        """Return the same with ``shift`` added to all job numbers."""
        columns = dict(self.columns)
        if PRECEDING in columns:
            columns[PRECEDING] = shifted(columns[PRECEDING], shift)
        return replace(self, ids=self.ids + shift, columns=columns)


def _require_an_order(ids: IntArray, preceding: IntArray) -> None:
    """Refuse jobs of which each waits for another one, so that none would ever be submitted."""
    order = np.argsort(ids)
    none = len(ids)
    before = np.where(preceding == UNSET, none, order[np.searchsorted(ids, preceding, sorter=order).clip(max=none - 1)])
    ancestor = np.append(before, none)
    for _ in range(len(ids).bit_length()):  # each step doubles how far an ancestor is away
        ancestor = ancestor[ancestor]
    circular = np.flatnonzero(ancestor[:-1] != none)
    if len(circular):
        raise SpecificationError(
            f"preceding: job {ids[circular[0]]} would wait for itself, through the jobs before it; "
            "each chain of preceding jobs must begin with a job that has none"
        )


def _refused(message: str) -> SpecificationError:
    return SpecificationError(f"Workload.from_frame: {message}")


def _require_columns(frame: pd.DataFrame) -> None:
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise _refused(f"{quoted(frame)} is not allowed; it must be a pandas.DataFrame")
    for column in _NEEDED:
        if column not in frame.columns:
            raise _refused(f"column {column!r} is missing; {', '.join(_NEEDED)} are needed")
    for column in frame.columns:
        if column not in COLUMNS_OF_JOBS:
            hint = did_you_mean(str(column), COLUMNS_OF_JOBS)
            raise _refused(f"column {quoted(column)} is not known{hint}; it must be one of {', '.join(COLUMNS_OF_JOBS)}")
    if frame.columns.has_duplicates:
        raise _refused("two columns have the same name; each must be given once")
    for column, other in (("preceding", "job"), ("think_time_s", "preceding")):
        if column in frame and other not in frame:
            raise _refused(f"column {other!r} is missing; {column!r} needs it")


def _jobs_of_frame(frame: pd.DataFrame) -> tuple[IntArray, ExtraColumns | None]:
    """Return the rows of a table of the user as an array, and extra columns if it has any."""
    import pandas as pd

    _require_columns(frame)
    names: dict[str, tuple[str, ...]] = {}
    labels: tuple[str, ...] = ()
    columns = {name: _column(frame, column) for column, name in _OF_FRAME.items()}
    columns["run"] = np.maximum(1, columns["run"])
    columns["estimate"] = np.where(columns["estimate"] > 0, columns["estimate"], columns["run"])
    interval = columns["checkpoint_interval"]
    columns["checkpoint_interval"] = np.where(interval == 0, 1, interval)  # less than a tick
    if "job" not in frame:
        columns["id"][np.argsort(columns["submit"], kind="stable")] = np.arange(1, len(frame) + 1)
    rows = np.stack([columns.pop(name) for name in JobRow._fields], axis=1)
    ids = rows[:, _ID]
    if "stream" in frame:
        columns[STREAM], labels = _streams(frame["stream"])
    preceding = columns[PRECEDING]
    if (unknown := np.flatnonzero((preceding != UNSET) & ~np.isin(preceding, ids))).size:
        raise _refused(
            f"row {unknown[0]}: preceding: there is no job {preceding[unknown[0]]}; it must be the number of a job of the "
            "table, or -1"
        )
    for name in NAMED_COLUMNS:
        if name in frame:
            codes, texts = pd.factorize(frame[name].astype(object))
            columns[name], names[name] = np.where(codes < 0, UNSET, codes + 1).astype(np.int64), tuple(map(str, texts))
    given = {name: columns[name] for column, name in _OF_FRAME.items() if name in columns and column in frame}
    if PRECEDING in given:
        given[THINK] = columns[THINK]
    return rows, ExtraColumns(ids=ids, columns=given, labels=labels, names=names) if given else None


def _streams(column: pd.Series[Any]) -> tuple[IntArray, tuple[str, ...]]:
    """Return the position of each row's label, and the labels."""
    import pandas as pd

    if (missing := np.flatnonzero(column.isna())).size:
        raise _refused(f"row {missing[0]}: stream: it is missing; it must be a label")
    known = list(map(str, column.cat.categories)) if isinstance(column.dtype, pd.CategoricalDtype) else None
    texts = column.astype(str)
    codes, labels = pd.factorize(pd.Categorical(texts, categories=known) if known else texts)
    return codes.astype(np.int64), tuple(map(str, labels))


def _column(frame: pd.DataFrame, column: str) -> IntArray:
    """Return a column in ticks, KiB or whole numbers, -1 where the table has no value (0 for some)."""
    missing = 0 if column in ("estimate_s", "priority", "think_time_s") else UNSET
    values = np.full(len(frame), missing, dtype=np.int64)
    if column not in frame or column == "stream" or column in NAMED_COLUMNS:
        return values

    def checked(row: int, value: Any) -> float:
        name = f"Workload.from_frame: row {row}: {column}"
        if column.endswith("_s"):
            return require_seconds(name, value, positive=column in ("run_s", "checkpoint_interval_s")) * TICKS_PER_SECOND
        if column.endswith("_gib"):
            return require_gib(name, value) * KIB_PER_GIB
        return require_whole(name, int(value) if isinstance(value, float) and value.is_integer() else value)

    present = np.ones(len(frame), dtype=bool) if column in (*_NEEDED, "job") else frame[column].notna().to_numpy()
    given = frame[column].tolist()
    values[present] = np.rint([checked(row, given[row]) for row in np.flatnonzero(present).tolist()])
    return values


Source = Literal["trace", "model", "synthetic", "job_stream", "job_streams", "merge"]
"""What makes the jobs: a trace file, a workload model, ``synthetic_workload``, one or several ``JobStream``, or ``merge``."""
KEEP: Final = "keep"
SCALE: Final = "scale"
ESTIMATES: Final = "estimates"
MEMORY: Final = "default_memory_gib"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a workload was made, so that it can be made again; workloads of rows have none."""

    source: Source
    arguments: Mapping[str, Any]
    """Of the function, by name."""
    name: str
    machine_nodes: int | None
    """Name and size of the machine as the function has given them, which may have been changed since."""
    steps: tuple[tuple[str, object], ...] = ()
    """Transformations, in order: ``keep`` with a filter, ``scale`` with factors, ``estimates`` with the arguments of the phi
    model or ``None`` for the run times, ``default_memory_gib`` with an amount, ``resample`` with what is drawn."""


JOBS: Final = "jobs"
"""Key of :attr:`ImportReport.counts` for the lines that gave jobs."""


_PLURAL: Final = re.compile(r"^((?:\w+ )?(?:break|component|header|job|line|message|record|step))s\b")


def counts_in_words(counts: Mapping[str, int]) -> str:
    """Return ``"4,100 jobs, 1 step, 65 never started"``."""
    singular = {reason: _PLURAL.sub(r"\1", reason) for reason, count in counts.items() if count == 1}
    return ", ".join(f"{count:,} {singular.get(reason, reason)}" for reason, count in counts.items())


@dataclass(frozen=True, kw_only=True)
class ImportReport:
    """What became of each line of an accounting log; ``print`` it, or read its fields."""

    source: str
    """File name."""
    format: str
    """Kind of log that was recognised, as ``sacct with a header line``."""
    lines: int
    counts: Mapping[str, int]
    """Number of lines by what became of them, ``jobs`` first; they sum to ``lines``."""
    jobs: int
    """Number of jobs of the workload: more than lines where a line describes several tasks of a job array."""
    unit: str
    """What a node of the workload is: ``nodes``, ``cores`` or ``gpus``."""
    remarks: tuple[str, ...] = ()
    """How the unit and the size of the machine were found, and what else was decided from the log."""
    examples: tuple[str, ...] = ()
    """The first damaged lines, as ``file:line: what is wrong``."""

    def texts(self) -> list[str]:
        """Return the counts (``4,285 lines: 4,100 jobs, 120 steps``), the remarks, the first damaged lines."""
        return [f"{counted(self.lines, 'line')}: {counts_in_words(self.counts)}", *self.remarks, *self.examples]

    def __str__(self) -> str:
        return visible("\n".join((f"{self.source}: {self.format}", *self.texts())), keep="\n")


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a workload came from.  The counters grow while a stream is read."""

    source: str
    """File name, or the generator and its seed."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Options with which it was read or made."""
    header: Mapping[str, str] = field(default_factory=dict)
    """SWF header comments; values of repeated keys are joined with newlines."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Number of jobs left out, by reason."""
    repaired: Counter[str] = field(default_factory=Counter)
    """Number of jobs with a value filled in or corrected, by reason."""
    partial: Counter[str] = field(default_factory=Counter)
    """Number of partial executions read (SWF status 2 to 4), by whether the file has a line of the whole job too."""
    notes: tuple[str, ...] = ()
    """What else to know of the jobs, a line each."""
    report: ImportReport | None = None
    """What became of each line of the accounting log that the jobs come from; ``None`` for any other source."""

    @property
    def unit(self) -> str:
        """What a node of the jobs stands for, in the singular: ``"node"``, or the ``"core"`` or ``"GPU"`` that a log counts."""
        return {"cores": "core", "gpus": "GPU"}.get(str(self.options.get("unit")), "node")

    def lines(self) -> list[str]:
        """Return what an import reports, notes, and a line per reason of drops and repairs and kind of partial executions."""
        return [
            *(() if self.report is None else self.report.texts()),
            *self.notes,
            *(
                f"{counted(count, what)} {verb}: {reason}"
                for what, verb, counts in (
                    ("job", "dropped", self.dropped),
                    ("job", "repaired", self.repaired),
                    ("partial execution", "read", self.partial),
                )
                for reason, count in sorted(counts.items())
            ),
        ]


@runtime_checkable
class JobSource(Protocol):
    """Source of a job-stream process: a :class:`Workload`, or a stream with one job in memory at a time."""

    @property
    def name(self) -> str:
        """A label for messages and tables."""

    @property
    def provenance(self) -> Provenance:
        """Where the jobs come from."""

    @property
    def machine_nodes(self) -> int | None:
        """The size of the machine the workload was recorded on, when known."""

    def rows(self) -> Iterator[JobRow]:
        """Yield the jobs in order of submission; a new iterator at each call."""


def table_of(**columns: npt.ArrayLike) -> IntArray:
    """Return rows, shape ``(jobs, 13)``, of their columns by name; priorities are 0, other columns that are missing -1."""
    rows = np.full((len(np.asarray(columns["id"])), len(JobRow._fields)), UNSET, dtype=np.int64)
    for name, values in {"priority": 0, **columns}.items():
        rows[:, JobRow._fields.index(name)] = values
    return rows


class Workload:
    """An immutable table of jobs in order of submission, then id.

    Args:
        rows: the jobs, in any order; or an array of them, shape ``(jobs, 13)``.
        name: a label for tables and figures.
        provenance: where the jobs come from.
        machine_nodes: size of the machine they were recorded on, used as the default machine.
        extra: columns beside the rows, which may cover more jobs than these.
        recipe: how it was made, so that a scenario file can name it; ``None`` if it exists in memory only.

    Raises:
        SpecificationError: there is no job, two jobs have the same id, a time is below :data:`~clustermodel.job.LEAST_TICKS`,
            a value does not fit 64 bits, or jobs wait for each other.
    """

    def __init__(
        self,
        rows: Iterable[JobRow] | IntArray,
        *,
        name: str = "workload",
        provenance: Provenance | None = None,
        machine_nodes: int | None = None,
        extra: ExtraColumns | None = None,
        recipe: Recipe | None = None,
    ) -> None:
        given = rows if isinstance(rows, np.ndarray) else list(rows)
        try:
            table = np.array(given if len(given) else np.empty((0, len(JobRow._fields))), dtype=np.int64)
        except OverflowError:
            raise SpecificationError(
                f"Workload {name!r}: a time or size is too large for 64-bit ticks; scale it by smaller factors"
            ) from None
        except (TypeError, ValueError):
            table = np.empty(0, dtype=np.int64)
        if table.shape[1:] != (len(JobRow._fields),):
            raise SpecificationError(
                f"Workload {name!r}: rows: {quoted(given[:1])} is not allowed; each must be a JobRow of "
                f"{len(JobRow._fields)} whole numbers; from_jobs takes jobs in seconds"
            )
        if not len(table):
            raise SpecificationError(f"Workload {name!r}: it has no jobs; at least one is needed")
        if (refused := (table[:, _TIMES] < list(LEAST_TICKS.values())).any(axis=1)).any():
            raise SpecificationError(f"Workload {name!r}: {problem_of(row_of(table[np.argmax(refused)].tolist()))}")
        table = table[np.lexsort((table[:, _ID], table[:, _SUBMIT]))]
        ids = np.sort(table[:, _ID])
        if (repeated := ids[1:][ids[1:] == ids[:-1]]).size:
            times = int((ids == repeated[0]).sum())
            raise SpecificationError(f"Workload {name!r}: job id {repeated[0]} appears {times} times; ids must be unique")
        table.setflags(write=False)
        self.table: IntArray = table
        """The rows, shape ``(jobs, 13)``, read-only."""
        self.name = name
        self.provenance = provenance or Provenance(source=name)
        self.machine_nodes = machine_nodes
        self.extra = extra
        self.recipe = recipe
        self._columns: dict[str, IntArray] = {} if extra is None else extra.of(table[:, _ID])

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, *, name: str = "workload", machine_nodes: int | None = None) -> Workload:
        """Return a workload of the rows of a table, which may be in any order.

        Args:
            frame: with the columns of :attr:`frame`.  ``submit_s``, ``nodes`` and ``run_s`` are needed; the others may be
                missing, or ``nan`` where a job has no value; ``stream`` is a label, ``memory_gib`` per node, ``preceding`` the
                number of a job.  Without ``job``, jobs are numbered from 1 in order of submission.
            name: a label for tables and figures.
            machine_nodes: size of the machine they were recorded on, used as the default machine.

        Raises:
            SpecificationError: a column is missing or unknown, or a value is not allowed; the message names the row's
                position, from 0.
        """
        rows, extra = _jobs_of_frame(frame)
        return cls(rows, name=name, machine_nodes=machine_nodes, extra=extra)

    @classmethod
    def from_jobs(cls, jobs: Iterable[Job], *, name: str = "workload", machine_nodes: int | None = None) -> Workload:
        """Return a workload of ``jobs``, which may be in any order; two with the same id are refused."""
        given = list(jobs)
        for job in given:
            if not isinstance(job, Job):
                raise SpecificationError(f"Workload.from_jobs: {quoted(job)} is not allowed; it must be a Job")
        return cls((job.row() for job in given), name=name, machine_nodes=machine_nodes)

    def __len__(self) -> int:
        return len(self.table)

    def __eq__(self, other: object) -> bool:
        """Return whether the other is a workload of the same jobs, name and machine."""
        if not isinstance(other, Workload):
            return NotImplemented
        own, others = ((each.name, each.machine_nodes, each.streams, each._columns.keys()) for each in (self, other))
        if own != others or not np.array_equal(self.table, other.table):
            return False
        return all(np.array_equal(column, other._columns[name]) for name, column in self._columns.items())

    def __hash__(self) -> int:
        return hash((len(self), *self.table[0].tolist(), *self.table[-1].tolist()))

    def __repr__(self) -> str:
        return f"<Workload {self.name!r}: {len(self):,} jobs over {self.span_s / 86400:,.1f} days>"

    def _repr_html_(self) -> str:
        nodes, size, unit = self.column("nodes"), self.machine_nodes, self.provenance.unit
        load = None if size is None or len(self) < 2 or not self.span_s else self.offered_load(size)
        fields: list[tuple[str, object]] = [
            ("jobs", f"{len(self):,} of {counted(len(np.unique(self.column('user'))), 'user')}"),
            ("submitted over", duration(self.span_s)),
            ("recorded on", "unknown" if size is None else counted(size, unit)),
            ("offered load", load),
            (f"{unit}s of a job", f"{nodes.min():,}, median {np.median(nodes):,.4g}, up to {nodes.max():,}"),
        ]
        for name, title in (("run", "run time"), ("estimate", "estimate")):
            values = self.seconds(name)
            fields.append((title, f"median {duration(float(np.median(values)))}, up to {duration(float(values.max()))}"))
        return html_fields(f"Workload {self.name}", [*fields, ("source", self.provenance.source)])

    def rows(self) -> Iterator[JobRow]:
        """Yield the jobs as plain integers, in order of submission, then id."""
        for start in range(0, len(self.table), _CHUNK):
            yield from map(row_of, self.table[start : start + _CHUNK].tolist())

    def jobs(self) -> Iterator[Job]:
        """Yield the jobs as specifications in seconds."""
        return map(Job.from_row, self.rows())

    def column(self, name: str) -> IntArray:
        """Return one column of :class:`~clustermodel.job.JobRow` or :class:`~clustermodel.workload.table.ExtraColumns`.

        It has shape ``(jobs,)``, is read-only, and has times in ticks; an extra column that is missing is -1 throughout.
        """
        if name in EXTRA_COLUMNS + RECORDED_COLUMNS:
            return self._columns.get(name, np.full(len(self), UNSET, dtype=np.int64))
        column: IntArray = self.table[:, JobRow._fields.index(name)]
        return column

    def has(self, name: str) -> bool:
        """Return whether the workload has this extra column."""
        return name in self._columns

    def values(self, name: str, jobs: IntArray) -> IntArray:
        """Return a column of the jobs with these numbers, shape ``(jobs,)``."""
        ids = self.column("id")
        order = np.argsort(ids)
        values: IntArray = self.column(name)[order[np.searchsorted(ids, jobs, sorter=order)]]
        return values

    def seconds(self, name: str) -> FloatArray:
        """Return a time column in seconds, shape ``(jobs,)``."""
        seconds: FloatArray = self.column(name) / TICKS_PER_SECOND
        return seconds

    @property
    def frame(self) -> pd.DataFrame:
        """The table as pandas: ``job, submit_s, nodes, run_s, estimate_s, user, group, priority, status``.

        Where the workload has them, followed by ``stream``, ``memory_gib``, ``checkpoint_s``, ``restart_s``,
        ``checkpoint_interval_s``, ``preceding`` and ``think_time_s``, and by what an accounting log has recorded:
        ``wait_s``, ``suspended_s``, ``requeues``, ``array_limit``, ``node_count``, ``cores``, ``gpus``, and the names
        ``account``, ``partition``, ``qos``, ``queue`` and ``job_name``.
        """
        import pandas as pd

        columns: dict[str, Any] = {}
        for column, name in _OF_FRAME.items():
            values = self.column(name)
            if name not in _ALWAYS and not self.has(name) and (name not in JobRow._fields or (values == UNSET).all()):
                continue
            if name == THINK:
                values = np.where(self.column(PRECEDING) == UNSET, UNSET, values)
            columns[column] = values
            if name == STREAM:
                columns[column] = pd.Categorical.from_codes(values, categories=pd.Index(self.streams))
            elif name in NAMED_COLUMNS:
                texts = pd.Index(self.names.get(name, ()))
                columns[column] = pd.Categorical.from_codes(np.maximum(values - 1, -1), categories=texts)
            elif column.endswith(("_s", "_gib")):
                unit = TICKS_PER_SECOND if column.endswith("_s") else KIB_PER_GIB
                columns[column] = np.where(values == UNSET, np.nan, values / unit)
        return pd.DataFrame(columns)

    @property
    def streams(self) -> tuple[str, ...]:
        """The labels of the streams that were merged into this workload; empty if it is one stream."""
        return self.extra.labels if self.extra is not None else ()

    @property
    def names(self) -> Mapping[str, tuple[str, ...]]:
        """The names that the numbers 1, 2, ... of a column stand for, by column: ``names["user"][number - 1]``.

        Workloads from accounting logs have them, for users, groups, accounts, partitions, QOS, queues and job names.
        """
        return {} if self.extra is None else self.extra.names

    @property
    def has_feedback(self) -> bool:
        """Whether the submission of a job depends on the completion of another one."""
        return PRECEDING in self._columns and bool((self._columns[PRECEDING] != UNSET).any())

    @property
    def span_s(self) -> float:
        """Seconds from the first to the last submission."""
        submit = self.column("submit")
        return float(submit[-1] - submit[0]) / TICKS_PER_SECOND

    def offered_load(self, nodes: int, *, kill_at_estimate: bool = True) -> float:
        """Return the offered load, sum of n x t over nodes x span of submissions (Yuan et al. 2010, table 3).

        It is ``nan`` if all jobs are submitted at the same time.
        """
        run = self.seconds("run")
        if kill_at_estimate:
            run = np.minimum(run, self.seconds("estimate"))
        work = dot(np.maximum(self.column("nodes"), 0), run)
        return work / (nodes * self.span_s) if self.span_s else float("nan")

    def select(self, keep: JobFilter) -> Workload:
        """Return the jobs selected by ``keep``; the others are counted in the provenance."""
        dropped: Counter[str] = Counter()
        rows = self.table[filtered(self.table, keep, dropped)]
        return self._derived(rows, KEEP, keep, {"filter": keep}, dropped=dropped)

    def scaled(self, scale: LoadScale) -> Workload:
        """Return the same jobs with interarrival times (and with them think times), run times or sizes multiplied."""
        extra = None if self.extra is None else self.extra.think_times_scaled(scale.interarrival)
        rows = scaled(self.table, scale, int(self.table[0, _SUBMIT]))
        return self._derived(rows, SCALE, scale, {"scale": scale}, extra=extra)

    def with_default_memory(self, gib: float) -> Workload:
        """Return the same jobs; those whose memory is unknown need ``gib`` GiB on each of their nodes.

        The number of these jobs is in the provenance, among the repaired ones.
        """
        default = to_kib(require_gib("Workload.with_default_memory", gib))
        memory = self.column("memory")
        repaired = +Counter({default_used(gib): int((memory == UNSET).sum())})
        rows = self._with(memory=np.where(memory == UNSET, default, memory))
        return self._derived(rows, MEMORY, gib, {"default_memory_gib": gib}, repaired=repaired)

    def with_perfect_estimates(self) -> Workload:
        """Return the same jobs with every estimate equal to the run time."""
        return self._derived(self._with(estimate=self.column("run")), ESTIMATES, None, {"estimates": "run time"})

    def with_phi_estimates(self, *, phi: float = PHI, seed: int = 1) -> Workload:
        """Return the same jobs with estimates by the phi model of overestimation (Zhang et al. 2003, section 2.1).

        ``phi``, in [0, 1], is the fraction of exact estimates.  Job by job in order of submission, the estimate is the run time
        times a factor drawn from ``seed``; one seed gives the same random numbers y for every ``phi`` and every scaling of run
        times.  Factors have no upper bound; the estimate is at most 1e10 s (317 years), so that it fits 64-bit ticks.
        """
        require_whole("seed", seed, at_least=0)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=_ESTIMATES))
        factor = phi_factors(rng, len(self), phi)
        run = self.column("run")
        most = np.maximum(0, to_ticks(LONGEST_S) - run)
        estimate = run + np.minimum(np.rint(run * (factor - 1)), most).astype(np.int64)
        options = {"estimates": f"phi model, phi={float(phi):g}, seed={seed}"}
        return self._derived(self._with(estimate=estimate), ESTIMATES, {"phi": phi, "seed": seed}, options)

    def resampled(self, of: Unit = "weeks", *, seed: int = 1) -> Workload:
        """Return a log as it might have been: weeks or users of this one, drawn with replacement.

        Whole weeks (or blocks of ``of`` seconds) are laid end to end until they are as long as this log; each job keeps its
        time in the week, its run time, estimate, nodes and user.  Weeks begin on Monday, 0:00, by the clock of the log's first
        day, if the header says when and where that was, otherwise with the first submission, as other blocks do.  What lasts
        longer than a week is lost, such as trends and seasons (Künsch 1989).

        Users (``"users"``) are drawn with all their jobs, at their recorded times; a user drawn twice appears as two users who
        submit the same jobs at the same times.  The number of jobs and the offered load then vary between seeds.

        A job whose preceding job is not in the same week and draw is submitted at its own time.  Numbers of jobs end with the
        original number; the digits before it count draws from 0.

        Raises:
            SpecificationError: an argument is not allowed, or there are not two weeks, blocks or users.
        """
        of = transforms.checked_unit(of)
        if of == "users":
            draws = transforms.drawn_users(self.column("user"), seed)
        else:
            draws = transforms.drawn_blocks(self.column("submit"), of, seed, self.provenance.header)
        if not len(draws.place):
            raise SpecificationError(f"Workload.resampled: the {of} drawn have no jobs; give another seed")
        table = self.table[draws.place]
        table[:, _SUBMIT] += draws.shift
        table[:, _ID], added = transforms.distinct_jobs(table[:, _ID], draws.draw)
        extra, names = self.extra, dict(self.names)
        if of == "users":
            table[:, _USER], users = transforms.distinct_users(table[:, _USER], draws.draw, names.get("user", ()))
            names |= {"user": users} if users else {}
        if extra is not None:
            columns = {name: column[draws.place] for name, column in self._columns.items()}
            if PRECEDING in columns:
                columns[PRECEDING] = shifted(columns[PRECEDING], added)
            extra = replace(extra, ids=table[:, _ID], columns=columns, names=names)
        what = {"of": of, "seed": seed}
        return self._derived(table, RESAMPLE, what, {RESAMPLE: what}, notes=(draws.note,), extra=extra)

    def renumbered(self, shift: int) -> Workload:
        """Return the same jobs with ``shift`` added to their numbers."""
        extra = None if self.extra is None else self.extra.renumbered(shift)
        return self._like(self._with(id=self.column("id") + shift), extra=extra)

    def split(self, by: str = "user") -> list[Workload]:
        """Return one workload per value of the column ``by``, to be run as separate job streams.

        The streams of a merged workload (``by="stream"``) get their labels as names.  Where a job follows a job of another
        part, its submission no longer depends on it.
        """
        if not isinstance(by, str) or by not in (*JobRow._fields, *self._columns):
            allowed = ", ".join((*JobRow._fields, *self._columns))
            raise SpecificationError(f"Workload.split by: {quoted(by)} is not allowed; it must be one of {allowed}")
        column, texts = self.column(by), self.names.get(by, ())
        extra = None if self.extra is None else self.extra.without_streams()
        parts = []
        for value in np.unique(column).tolist():
            text = texts[value - 1] if 0 < value <= len(texts) else str(value)
            name = self.streams[value] if by == STREAM else f"{self.name} {by} {text}"
            parts.append(self._like(self.table[column == value], name=name, extra=extra))
        return parts

    def made_by(self, source: Source, arguments: Mapping[str, object]) -> Workload:
        """Note the function and its arguments that made the workload, and return it."""
        self.recipe = Recipe(source=source, arguments=arguments, name=self.name, machine_nodes=self.machine_nodes)
        return self

    def _with(self, **columns: IntArray) -> IntArray:
        """Return a copy of the table with other columns."""
        table = self.table.copy()
        for name, values in columns.items():
            table[:, JobRow._fields.index(name)] = values
        return table

    def _derived(
        self,
        rows: IntArray,
        step: str,
        what: object,
        options: Mapping[str, object],
        *,
        dropped: Mapping[str, int] | None = None,
        repaired: Mapping[str, int] | None = None,
        notes: tuple[str, ...] = (),
        extra: ExtraColumns | None = None,
    ) -> Workload:
        """Return a workload of ``rows`` that one more step has made of this one."""
        old = self.provenance
        provenance = replace(
            old,
            options={**old.options, **options},
            dropped=old.dropped + Counter(dropped),
            repaired=old.repaired + Counter(repaired),
            partial=Counter(old.partial),
            notes=(*old.notes, *notes),
        )
        recipe = self.recipe and replace(self.recipe, steps=(*self.recipe.steps, (step, what)))
        return self._like(rows, provenance=provenance, extra=self.extra if extra is None else extra, recipe=recipe)

    def _like(self, rows: Iterable[JobRow] | IntArray, **changes: Any) -> Workload:
        """Return other rows with the name, the provenance, the machine and the extra columns of these, but for ``changes``."""
        kept = {name: getattr(self, name) for name in ("name", "provenance", "machine_nodes", "extra")}
        return Workload(rows, **{**kept, **changes})


_Arguments = ParamSpec("_Arguments")
MOST_KEPT: Final = 1_000_000  # jobs together; a job takes 104 bytes
_kept: dict[object, Workload] = {}  # by function and arguments; the one used last comes last


def remembered(make: Callable[_Arguments, Workload]) -> Callable[_Arguments, Workload]:
    """Return a function, or a method of an immutable object, that keeps the workloads made last.

    So the trials of an experiment do not make the same jobs for every policy.  1, 1.0 and ``True`` are different arguments.
    """

    @wraps(make)
    def made(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Workload:
        values = (*args, *(kwargs[name] for name in sorted(kwargs)))
        key = (make, len(args), *sorted(kwargs), values, *map(type, values))
        try:
            workload = _kept.get(key)
        except TypeError:  # an argument has no hash
            return make(*args, **kwargs)
        if workload is None:
            began = perf_counter()
            workload = make(*args, **kwargs)
            _log.info("made %s: %s jobs in %.2f s", workload.name, f"{len(workload):,}", perf_counter() - began)
        _kept.pop(key, None)
        _kept[key] = workload
        while sum(map(len, list(_kept.values()))) > MOST_KEPT:
            _kept.pop(next(iter(_kept)), None)
        return copy.copy(workload)  # with a name and provenance of its own; the table is shared

    return made


_ESTIMATES = (crc32(b"estimates"),)
"""Separates the random stream of estimates from all others of the same seed."""


def trace_facts(workload: Workload, nodes: int | None) -> dict[str, object]:
    """Return the facts of a workload as values for JSON; times in seconds, percentiles as ``p50``."""
    size, run, estimate = workload.column("nodes"), workload.seconds("run"), workload.seconds("estimate")
    percentiles = (0, 25, 50, 75, 90, 99, 100)

    def spread(values: np.ndarray) -> dict[str, float]:
        return {f"p{p}": float(v) for p, v in zip(percentiles, np.percentile(values, percentiles), strict=True)}

    def load(*, kill_at_estimate: bool) -> float | None:
        """Return the offered load, None without a machine size or without time between submissions."""
        return workload.offered_load(nodes, kill_at_estimate=kill_at_estimate) if nodes and workload.span_s else None

    return {
        "trace": workload.provenance.source,
        "jobs": len(workload),
        "users": len(np.unique(workload.column("user"))),
        "span_s": workload.span_s,
        "machine_nodes": nodes,
        "offered_load": load(kill_at_estimate=True),
        "offered_load_without_killing": load(kill_at_estimate=False),
        "jobs_wider_than_machine": int((size > nodes).sum()) if nodes else None,
        "jobs_beyond_estimate": int((run > estimate).sum()),
        "nodes": spread(size),
        "run_s": spread(run),
        "estimate_s": spread(estimate),
        "estimate_over_run": spread(estimate / run),
        "dropped": dict(sorted(workload.provenance.dropped.items())),
        "repaired": dict(sorted(workload.provenance.repaired.items())),
        "partial_executions": dict(sorted(workload.provenance.partial.items())),
        "header": dict(workload.provenance.header),
    }
