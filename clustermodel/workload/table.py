"""The workload as an in-memory table, with its provenance: the source, how it was made, and jobs dropped or repaired.

Columns that few workloads have stand beside the table of :class:`~clustermodel.workload.job.JobRow`, so that workloads without
them cost nothing: the stream of a job, the job that its submission depends on, and what an accounting log has recorded of it.
"""

from __future__ import annotations

import copy
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from graphlib import CycleError, TopologicalSorter
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, Protocol, runtime_checkable
from zlib import crc32

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import BoolArray, FloatArray, IntArray, distinct, dot
from clustermodel.errors import SpecificationError, counted, did_you_mean, quoted, shown, visible
from clustermodel.text.formatting import duration, html_fields
from clustermodel.ticks import TICKS_PER_SECOND, to_ticks
from clustermodel.validation import (
    KIB_PER_GIB,
    LONGEST_S,
    choice,
    default_used,
    flag,
    require,
    require_gib,
    require_seconds,
    require_whole,
    to_kib,
)
from clustermodel.workload import transforms
from clustermodel.workload.job import (
    COSTS,
    DEPENDENCIES,
    FLAGS,
    LEAST,
    LEAST_TICKS,
    MALLEABLE,
    MOST,
    NAMES,
    NUMBERS,
    RESIZE,
    SHAPE,
    SINGLETON,
    SIZES,
    UNSET,
    Demand,
    Job,
    JobRow,
    JobShape,
    OwnCosts,
    Sizes,
    demands_of,
    problem_of,
    row_of,
)
from clustermodel.workload.malleable import Malleable
from clustermodel.workload.phi import PHI, phi_factors
from clustermodel.workload.placements import GivenPlacements, NodeLists, checked_placements
from clustermodel.workload.transforms import ID, RESAMPLE, SUBMIT, USER, JobFilter, LoadScale, Unit

if TYPE_CHECKING:
    import pandas as pd

Singletons = Mapping[int, tuple[tuple[str, str], bool]]
"""In order of submission, user and name of jobs of which some wait for all before them, by number, and whether the job does."""

_log = logging.getLogger(__name__)

STREAM, PRECEDING, THINK = EXTRA_COLUMNS = ("stream", "preceding", "think")
"""Position of the job's label in ``streams``; number of the job on whose completion the submission depends; ticks from that
completion to the submission.  ``UNSET`` where a job has no value."""
ACCOUNT, PARTITION, QOS, QUEUE, JOB_NAME, *_ = NAMED_COLUMNS = (
    "account", "partition", "qos", "queue", "job_name", "node_type", "features",
    "reservation",
)  # fmt: skip
"""Recorded columns whose numbers stand for names."""
WAIT, SUSPENDED, HELD, REQUEUES, ARRAY, ARRAY_LIMIT, NODE_COUNT, CORES, GPUS, *_ = RECORDED_COLUMNS = (
    "wait", "suspended", "held", "requeues", "array", "array_limit", "node_count", "cores", "gpus", *SHAPE, SINGLETON,
    *SIZES, *COSTS, *NAMED_COLUMNS,
)  # fmt: skip
"""What an accounting log records of a job, on which no schedule depends unless a site says so: ticks, of the wait also those
in which it was not eligible (dependencies, holds, begin times); numbers of run attempts before this one, of its job array, if
that has a limit, and of tasks of it that may run at a time; nodes, cores, GPUs; the shape of the job, whether it waits for
others of its name, between which sizes it may change, and costs of its own, which a run respects; numbers of names."""
_OF_TICKS: Final = (RESIZE, *COSTS)
_DEMANDED: Final = (*SHAPE, SINGLETON, *SIZES, *COSTS)
"""Columns of what jobs demand beside names."""

_OF_FRAME: Final = {
    "job": "id", "submit_s": "submit", "nodes": "nodes", "run_s": "run", "estimate_s": "estimate", "user": "user",
    "group": "group", "priority": "priority", "status": "status", "stream": STREAM, "memory_gib": "memory",
    "checkpoint_s": "checkpoint", "restart_s": "restart", "checkpoint_interval_s": "checkpoint_interval",
    "preceding": PRECEDING, "think_time_s": THINK,
    **{f"{name}_s" if name in (WAIT, SUSPENDED, HELD, *_OF_TICKS) else name: name for name in RECORDED_COLUMNS},
}  # fmt: skip
"""Columns of a table in pandas, in order, and the columns that they are: seconds (``_s``), GiB (``_gib``) or whole numbers."""
RECORDED_FIELDS: Final = tuple(column for column, name in _OF_FRAME.items() if name in RECORDED_COLUMNS)
_KEPT: Final = ("name", "provenance", "machine_nodes", "extra", "streams", "names", "dependencies", "placed")
_NEEDED: Final = ("submit_s", "nodes", "run_s")
NAMES_OF_NUMBERS: Final = {"user": "user_name", "group": "group_name"}
"""Columns of numbers that may have names beside them, and the columns of these."""
COLUMNS_OF_JOBS: Final = (*_NEEDED, *(name for name in _OF_FRAME if name not in _NEEDED), *NAMES_OF_NUMBERS.values())
"""The columns of a table that :meth:`Workload.from_frame` knows."""
_TIMES: Final = [NUMBERS.index(name) for name in LEAST_TICKS]
_MOST_NUMBERS: Final = 1_000_000  # of users that have names
_CHUNK: Final = 4096  # rows converted at a time, so that a million jobs are never a million Python objects at once


def _require_an_order(ids: IntArray, preceding: IntArray) -> None:
    """Refuse jobs of which each waits for another one, so that none would ever be submitted."""
    order, none = np.argsort(ids), len(ids)
    before = np.where(preceding == UNSET, none, order[np.searchsorted(ids, preceding, sorter=order).clip(max=none - 1)])
    ancestor = np.append(before, none)
    for _ in range(len(ids).bit_length()):  # each step doubles how far an ancestor is away
        ancestor = ancestor[ancestor]
    if (circular := np.flatnonzero(ancestor[:-1] != none)).size:
        raise SpecificationError(
            f"preceding: job {ids[circular[0]]} would wait for itself, through the jobs before it; "
            "each chain of preceding jobs must begin with a job that has none"
        )


def require_no_circle(dependencies: IntArray, singletons: Singletons = MappingProxyType({})) -> None:
    """Refuse jobs of which each waits for another one, so that none would ever start."""
    graph: dict[Any, list[Any]] = {}
    for job, _, other in dependencies.tolist():
        graph.setdefault(job, []).append(other)
    until: dict[tuple[str, str], str] = {}  # user and name -> what stands for all their jobs so far
    for job, (group, alone) in singletons.items():
        so_far = [until[group]] if group in until else []
        if alone:
            graph.setdefault(job, []).extend(so_far)
        until[group] = f"until {job}"
        graph[until[group]] = [job, *so_far]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as problem:
        jobs = ", ".join(str(job) for job in problem.args[1] if not isinstance(job, str))
        raise SpecificationError(
            f"dependencies: jobs {jobs} wait for each other; a chain of jobs must begin somewhere"
        ) from None


def _refused(message: str) -> SpecificationError:
    return SpecificationError(f"Workload.from_frame: {message}")


def _require_columns(frame: pd.DataFrame) -> None:
    for column in _NEEDED:
        if column not in frame.columns:
            raise _refused(f"column {column!r} is missing; {', '.join(_NEEDED)} are needed")
    for column in frame.columns:
        if column not in COLUMNS_OF_JOBS:
            hint = did_you_mean(str(column), COLUMNS_OF_JOBS)
            raise _refused(f"column {quoted(column)} is not known{hint}; it must be one of {', '.join(COLUMNS_OF_JOBS)}")
    if frame.columns.has_duplicates:
        raise _refused("two columns have the same name; each must be given once")
    of_sizes = ((column, MALLEABLE) for column in ("min_nodes", "max_nodes", "resize_s"))
    for column, other in (("preceding", "job"), ("think_time_s", "preceding"), *of_sizes):
        if column in frame and other not in frame:
            raise _refused(f"column {other!r} is missing; {column!r} needs it")
    if STREAM in frame and (missing := np.flatnonzero(frame[STREAM].isna())).size:
        raise _refused(f"row {missing[0]}: stream: it is missing; it must be a label")


def names_in_a_row(names: Mapping[int, str]) -> tuple[str, ...]:
    """Return the names of the numbers 1, 2, ..., the number itself where one has none; no names if a number is too large."""
    last = max(names, default=0)
    return tuple(names.get(number, str(number)) for number in range(1, last + 1)) if last <= _MOST_NUMBERS else ()


def _names_apart(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with texts of the columns of users and groups in columns of names."""
    for column, label in NAMES_OF_NUMBERS.items():
        if column not in frame or label in frame or frame[column].dtype.kind in "biuf":
            continue
        if frame[column].map(lambda value: isinstance(value, str)).any():
            frame = frame.rename(columns={column: label})
    return frame


def _with_names(frame: pd.DataFrame, numbers: IntArray, column: str) -> tuple[IntArray, tuple[str, ...]]:
    """Return the numbers of users or groups and the names of 1, 2, ..., given in a column of names."""
    import pandas as pd

    label = NAMES_OF_NUMBERS[column]
    texts = frame[label].astype(object).map(str, na_action="ignore")
    if column not in frame:
        codes, unique = pd.factorize(texts)
        return np.where(codes < 0, UNSET, codes + 1), tuple(unique)
    pairs = {
        (number, text) for number, text in zip(numbers.tolist(), texts, strict=True) if number > 0 and isinstance(text, str)
    }
    names = dict(pairs)
    if len(names) < len(pairs):
        raise _refused(f"{label}: a number in the column {column!r} has two names; each must have one")
    return numbers, names_in_a_row({number: text for number, text in names.items() if text != str(number)})


def _column(frame: pd.DataFrame, column: str) -> IntArray:
    """Return a column in ticks, KiB or whole numbers, -1 where the table has no value (0 for some)."""
    missing = 0 if column in ("estimate_s", "priority", "think_time_s") else UNSET
    values = np.full(len(frame), missing, dtype=np.int64)
    if column not in frame or column in (STREAM, *NAMED_COLUMNS):
        return values
    check: Callable[[str, Any], float] = _whole
    unit = 1
    if column.endswith("_s"):
        check = partial(require_seconds, positive=column in ("run_s", "checkpoint_interval_s"))
        unit = TICKS_PER_SECOND
    elif column.endswith("_gib"):
        check, unit = require_gib, KIB_PER_GIB
    elif column in FLAGS:
        check = _flag
    present = np.ones(len(frame), dtype=bool) if column in (*_NEEDED, "job") else frame[column].notna().to_numpy()
    given = enumerate(frame[column].tolist())
    checked = [check(f"Workload.from_frame: row {row}: {column}", value) * unit for row, value in given if present[row]]
    values[present] = np.rint(checked)
    return values


def _flag(name: str, value: Any) -> int:
    return UNSET if value == UNSET else flag(name, bool(value) if value in (0, 1) else value)


def _numbers_of(demand: Demand) -> dict[str, int]:
    """Return what a job demands as the columns ``_DEMANDED``."""
    shape, sizes = demand.shape or JobShape(), demand.sizes
    least, most, resize = sizes or Sizes()
    flags = (demand.singleton, sizes is not None)
    per_node, most_nodes, whole, singleton, malleable = (int(number) or UNSET for number in (*shape, *flags))
    numbers = (per_node, most_nodes, whole, singleton, malleable, least, most, resize, *demand.costs)
    return dict(zip(_DEMANDED, numbers, strict=True))


def _demand_of(numbers: Mapping[str, int], names: Mapping[str, str]) -> Demand | None:
    """Return what jobs demand that have these numbers and names; ``None`` if that is nothing."""
    per_node, most_nodes, whole = (max(numbers.get(name, 0), 0) for name in SHAPE)
    shape = JobShape(per_node, most_nodes, whole > 0)
    sizes = Sizes(*(numbers.get(name, UNSET) for name in SIZES[1:])) if numbers.get(MALLEABLE, UNSET) > 0 else None
    demand = Demand(
        **names,
        shape=shape if any(shape) else None,
        singleton=numbers.get(SINGLETON, UNSET) > 0,
        sizes=sizes,
        costs=OwnCosts(*(numbers.get(name, UNSET) for name in COSTS)),
    )
    return None if demand == Demand() else demand


def _columns_of(rows: Sequence[JobRow]) -> tuple[dict[str, IntArray], dict[str, tuple[str, ...]]]:
    """Return what rows demand as columns, none if nothing, and the names that numbers in them stand for."""
    number_of = {demand: number for number, demand in enumerate(demands_of(rows))}
    if number_of.keys() <= {None}:
        return {}, {}
    which = np.array([number_of[row.demand] for row in rows])
    demands = [demand or Demand() for demand in number_of]
    numbers, codes, names = [_numbers_of(demand) for demand in demands], dict[str, list[int]](), dict[str, tuple[str, ...]]()
    for name in _DEMANDED:
        codes[name] = [of_demand[name] for of_demand in numbers]
    for name in NAMES:
        texts = [getattr(demand, name) for demand in demands]
        names[name] = tuple(dict.fromkeys(text for text in texts if text is not None))
        code_of = {None: UNSET} | {text: code for code, text in enumerate(names[name], start=1)}
        codes[name] = [code_of[text] for text in texts]
    columns = {name: np.array(of_demands)[which] for name, of_demands in codes.items() if set(of_demands) != {UNSET}}
    return columns, {name: known for name, known in names.items() if known}


def _whole(name: str, value: Any) -> int:
    return require_whole(name, int(value) if isinstance(value, float) and value.is_integer() else value)


Source = Literal["trace", "model", "synthetic", "job_stream", "job_streams", "merge"]
"""What makes the jobs: a trace file, a workload model, ``synthetic_workload``, one or several ``JobStream``, or ``merge``."""
KEEP: Final = "keep"
SCALE: Final = "scale"
ESTIMATES: Final = "estimates"
MEMORY: Final = "default_memory_gib"
SHAPES: Final = "recorded_shapes"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a workload was made, so that it can be made again; workloads of rows have none."""

    source: Source
    arguments: Mapping[str, Any]  # of the function, by name
    name: str
    machine_nodes: int | None  # like the name, as the function has given it; it may have been changed since
    steps: tuple[tuple[str, object], ...] = ()
    """Transformations, in order: ``keep`` with a filter, ``scale`` with factors, ``estimates`` with the arguments of the phi
    model or ``None`` for the run times, ``default_memory_gib`` with an amount, ``recorded_shapes`` with ``True``, ``malleable``
    with a rule, ``resample`` with what is drawn."""


JOBS: Final = "jobs"  # key of ImportReport.counts for the lines that gave jobs
_PLURAL: Final = re.compile(r"^((?:\w+ )?(?:break|component|header|job|line|message|record|step))s\b")


def counts_in_words(counts: Mapping[str, int]) -> str:
    """Return ``"4,100 jobs, 1 step, 65 never started"``."""
    singular = {reason: _PLURAL.sub(r"\1", reason) for reason, count in counts.items() if count == 1}
    return ", ".join(f"{count:,} {singular.get(reason, reason)}" for reason, count in counts.items())


@dataclass(frozen=True, kw_only=True)
class ImportReport:
    """How each line of an accounting log was used; ``print`` it, or read its fields."""

    source: str
    """File name."""
    format: str
    """Kind of log that was recognised, as ``sacct with a header line``."""
    lines: int
    counts: Mapping[str, int]
    """Number of lines by use, ``jobs`` first; they sum to ``lines``."""
    jobs: int
    """Number of jobs of the workload: more than lines where a line describes several tasks of a job array."""
    unit: str
    """The unit counted as a node of the workload: ``nodes``, ``cores`` or ``gpus``."""
    remarks: tuple[str, ...] = ()
    """How the unit and the size of the machine were found, and other choices based on the log."""
    examples: tuple[str, ...] = ()
    """The first damaged lines, as ``file:line: what is wrong``."""
    named_nodes: int = 0
    """Number of nodes that the log names."""

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
    """Further remarks on the jobs, a line each."""
    report: ImportReport | None = None
    """The use of each line of the accounting log that the jobs come from; ``None`` for any other source."""

    @property
    def unit(self) -> str:
        """What a node of the jobs stands for, in the singular: ``"node"``, or the ``"core"`` or ``"GPU"`` that a log counts."""
        return {"cores": "core", "gpus": "GPU"}.get(str(self.options.get("unit")), "node")

    def lines(self) -> list[str]:
        """Return what an import reports, notes, and a line per reason of drops and repairs and kind of partial executions."""
        lines = [*(() if self.report is None else self.report.texts()), *self.notes]
        for what, verb, counts in (
            ("job", "dropped", self.dropped),
            ("job", "repaired", self.repaired),
            ("partial execution", "read", self.partial),
        ):
            lines += [f"{counted(count, what)} {verb}: {reason}" for reason, count in sorted(counts.items())]
        return lines


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
    """Return a table of the columns ``NUMBERS``, then others in the order given; missing priorities are 0, others -1."""
    names = [*NUMBERS, *(name for name in columns if name not in NUMBERS)]
    rows = np.full((len(np.asarray(columns["id"])), len(names)), UNSET, dtype=np.int64)
    for name, values in {"priority": 0, **columns}.items():
        rows[:, names.index(name)] = values
    return rows


class Workload:
    """An immutable table of jobs in order of submission, then id.

    Args:
        rows: the jobs, in any order; or an array of their numbers, shape ``(jobs, 10)``, wider with ``extra`` columns.
        name: a label for tables and figures.
        provenance: where the jobs come from.
        machine_nodes: size of the machine they were recorded on, used as the default machine.
        extra: names of further columns of ``rows``, of ``EXTRA_COLUMNS`` and ``RECORDED_COLUMNS``.
        streams: labels of the streams that were merged into this workload, by the numbers of the column ``stream``.
        names: the names that the numbers 1, 2, ... of a column stand for: ``names["user"][number - 1]``.  Workloads from
            accounting logs have them, for users, groups, accounts, partitions, QOS, queues and job names.
        dependencies: which jobs wait for which, shape ``(dependencies, 3)``: a job, a position in
            :data:`~clustermodel.workload.job.DEPENDENCIES`, the other job; jobs that are not in the workload are ignored.
        placed: which nodes the jobs held, as a log has recorded it; :attr:`recorded_placements` is the table.
        recipe: how it was made, so that a scenario file can name it; ``None`` if it exists in memory only.

    Raises:
        SpecificationError: there is no job, two jobs have the same id, a time is below ``LEAST_TICKS``,
            a value does not fit 64 bits, or jobs wait for each other.
    """

    def __init__(
        self,
        rows: Iterable[JobRow] | IntArray,
        *,
        name: str = "workload",
        provenance: Provenance | None = None,
        machine_nodes: int | None = None,
        extra: Sequence[str] = (),
        streams: tuple[str, ...] = (),
        names: Mapping[str, tuple[str, ...]] | None = None,
        dependencies: IntArray | None = None,
        placed: NodeLists | GivenPlacements | None = None,
        recipe: Recipe | None = None,
    ) -> None:
        def refused(message: str) -> SpecificationError:
            return SpecificationError(f"Workload {name!r}: {message}")

        anything: object = rows
        if isinstance(anything, str) or hasattr(anything, "__fspath__"):
            raise refused(f"rows: {quoted(rows)} is not allowed; a file must be read first, as by read_swf(path)")
        given: Any = rows if isinstance(rows, np.ndarray) else list(rows)
        demanded: Mapping[str, IntArray] = {}
        if isinstance(given, list) and all(isinstance(row, JobRow) for row in given):
            demanded, of_demands = _columns_of(given)
            names = {**(names or {}), **of_demands}
            given = [row[:-1] for row in given]
        self.extra = (*extra, *demanded)
        self._places = {column: place for place, column in enumerate((*NUMBERS, *self.extra))}
        try:
            table = np.array(given if len(given) > 0 else np.empty((0, len(self._places))), dtype=np.int64)
            if demanded:
                table = np.column_stack([table, *demanded.values()])
        except OverflowError:
            raise refused("a time or size is too large for 64-bit ticks; scale it by smaller factors") from None
        except (TypeError, ValueError):
            table = np.empty(0, dtype=np.int64)
        if table.shape[1:] != (len(self._places),):
            must = f"each must be a JobRow of {len(NUMBERS)} whole numbers; from_jobs takes jobs in seconds"
            raise refused(f"rows: {quoted(given[:1])} is not allowed; {must}")
        if not len(table):
            raise refused("it has no jobs; at least one is needed")
        if (early := (table[:, _TIMES] < list(LEAST_TICKS.values())).any(axis=1)).any():
            raise refused(problem_of(JobRow(*table[np.argmax(early), : len(NUMBERS)].tolist())))
        table = table[np.lexsort((table[:, ID], table[:, SUBMIT]))]
        ids = np.sort(table[:, ID])
        if (repeated := ids[1:][ids[1:] == ids[:-1]]).size:
            times = int((ids == repeated[0]).sum())
            raise refused(f"job id {repeated[0]} appears {times} times; ids must be unique")
        if PRECEDING in extra:
            preceding = table[:, self._places[PRECEDING]]
            preceding[~np.isin(preceding, ids)] = UNSET
            _require_an_order(table[:, ID], preceding)
        table.setflags(write=False)
        self.table: IntArray = table
        """The rows, and beside them the columns ``extra``, read-only."""
        self.name, self.machine_nodes, self.recipe = name, machine_nodes, recipe
        self.provenance = provenance or Provenance(source=name)
        self.streams, self.names, self.placed = streams, names or {}, placed
        given = np.empty((0, 3), dtype=np.int64) if dependencies is None else dependencies
        self.dependencies: IntArray = given[np.isin(given[:, [0, 2]], ids).all(axis=1)]
        ignored = given[np.isin(given[:, 0], ids) & ~np.isin(given[:, 2], ids)]
        self.ignoring = len(distinct(ignored[:, 0]))
        """How many jobs were given dependencies on jobs that are not in the workload, which are ignored."""
        if len(self.dependencies):
            require_no_circle(self.dependencies)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, *, name: str = "workload", machine_nodes: int | None = None) -> Workload:
        """Return a workload of the rows of a table with the columns of :attr:`frame`, in any order.

        ``submit_s``, ``nodes`` and ``run_s`` are needed; the others may be missing, or ``nan`` where a job has no value.
        ``stream`` is a label, ``memory_gib`` per node, ``preceding`` the number of a job; users and groups are numbers or
        names.  Without ``job``, jobs are numbered from 1 in order of submission.  ``machine_nodes`` is the size of the machine
        they were recorded on.

        Raises:
            SpecificationError: a column is missing or unknown, or a value is not allowed; the message names the row's
                position, from 0.
        """
        import pandas as pd

        if not isinstance(frame, pd.DataFrame):
            raise _refused(f"{quoted(frame)} is not allowed; it must be a pandas.DataFrame")
        _require_columns(frame)
        frame = _names_apart(frame)
        columns = {name: _column(frame, column) for column, name in _OF_FRAME.items()}
        columns["run"] = np.maximum(1, columns["run"])
        columns["estimate"] = np.where(columns["estimate"] > 0, columns["estimate"], columns["run"])
        interval = columns["checkpoint_interval"]
        columns["checkpoint_interval"] = np.where(interval == 0, 1, interval)  # less than a tick
        if "job" not in frame:
            columns["id"][np.argsort(columns["submit"], kind="stable")] = np.arange(1, len(frame) + 1)
        preceding = columns[PRECEDING]
        if (unknown := np.flatnonzero((preceding != UNSET) & ~np.isin(preceding, columns["id"]))).size:
            raise _refused(
                f"row {unknown[0]}: preceding: there is no job {preceding[unknown[0]]}; it must be the number of a job of the "
                "table, or -1"
            )
        names: dict[str, tuple[str, ...]] = {STREAM: ()}
        for label in (STREAM, *NAMED_COLUMNS):
            if label in frame:
                codes, texts = pd.factorize(frame[label].astype(str if label == STREAM else object))
                columns[label] = codes if label == STREAM else np.where(codes < 0, UNSET, codes + 1)
                names[label] = tuple(map(str, texts))
        for column, label in NAMES_OF_NUMBERS.items():
            if label in frame:
                columns[column], names[column] = _with_names(frame, columns[column], column)
        extra = [name for column, name in _OF_FRAME.items() if column in frame and name not in NUMBERS]
        if PRECEDING in extra and THINK not in extra:
            extra.append(THINK)
        table = table_of(**{column: columns[column] for column in (*NUMBERS, *extra)})
        streams = names.pop(STREAM)
        return cls(table, name=name, machine_nodes=machine_nodes, extra=extra, streams=streams, names=names)

    @classmethod
    def from_jobs(cls, jobs: Iterable[Job], *, name: str = "workload", machine_nodes: int | None = None) -> Workload:
        """Return a workload of ``jobs``, which may be in any order; two with the same id are refused."""
        given = list(jobs)
        for job in given:
            if not isinstance(job, Job):
                raise SpecificationError(f"Workload.from_jobs: {quoted(job)} is not allowed; it must be a Job")
        waits = [
            (job.id, kind, other) for job in given for kind, field in enumerate(DEPENDENCIES) for other in getattr(job, field)
        ]
        dependencies = np.array(waits, dtype=np.int64).reshape(-1, 3)
        return cls([job.row() for job in given], name=name, machine_nodes=machine_nodes, dependencies=dependencies)

    def __len__(self) -> int:
        return len(self.table)

    def __eq__(self, other: object) -> bool:
        """Return whether the other is a workload of the same jobs, name and machine."""
        if not isinstance(other, Workload):
            return NotImplemented
        own, others = ((each.name, each.machine_nodes, each.streams, each._places.keys()) for each in (self, other))
        if own != others or not np.array_equal(self.dependencies, other.dependencies):
            return False
        return all(np.array_equal(self.column(name), other.column(name)) for name in self._places)

    def __hash__(self) -> int:
        return hash((len(self), *self.table[[0, -1], : len(NUMBERS)].ravel().tolist()))

    def __repr__(self) -> str:
        return f"<Workload {self.name!r}: {len(self):,} jobs over {self.span_s / 86400:,.1f} days>"

    def _repr_html_(self) -> str:
        nodes, size, unit = self.column("nodes"), self.machine_nodes, self.provenance.unit
        fields = {
            "jobs": f"{len(self):,} of {counted(len(distinct(self.column('user'))), 'user')}",
            "submitted over": duration(self.span_s),
            "recorded on": "unknown" if size is None else counted(size, unit),
            "offered load": None if size is None or not self.span_s else self.offered_load(size),
            f"{unit}s of a job": f"{nodes.min():,}, median {np.median(nodes):,.4g}, up to {nodes.max():,}",
        }
        for title, values in (("run time", self.seconds("run")), ("estimate", self.seconds("estimate"))):
            fields[title] = f"median {duration(float(np.median(values)))}, up to {duration(float(values.max()))}"
        fields["source"] = self.provenance.source
        return html_fields(f"Workload {self.name}", fields.items())

    def rows(self, names: Iterable[str] = ()) -> Iterator[JobRow]:
        """Yield the jobs in order of submission, then id, with plain integers.

        Of names that they give, such as ``"partition"``, their demands have ``names`` only.
        """
        demands, which = self.demands(names)
        for start in range(0, len(self.table), _CHUNK):
            columns = self.table[start : start + _CHUNK, : len(NUMBERS)].T.tolist()
            some: list[Demand | None] = [None] * len(columns[0])
            if which is not None:
                some = [demands[number] for number in which[start : start + _CHUNK].tolist()]
            yield from map(row_of, zip(*columns, some, strict=True))

    def demands(self, names: Iterable[str]) -> tuple[list[Demand | None], IntArray | None]:
        """Return the demands of jobs, in the order of the first jobs that have them, and which of them each job has.

        The latter has shape ``(jobs,)``; it is ``None`` where no job has any.  ``names`` are as of :meth:`rows`.
        """
        numbers = [name for name in _DEMANDED if self.has(name)]
        texts = {name: self._labels(name) for name in names if name in self._places}
        if not (numbers or texts):
            return [None], None
        table = np.stack([self.column(name) for name in (*numbers, *texts)], axis=1)
        kinds, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        demands: list[Demand | None] = []
        for kind in kinds[order].tolist():
            known = dict(zip((*numbers, *texts), kind, strict=True))
            named = {name: labels[known[name]] for name, labels in texts.items() if known[name] in labels}
            demands.append(_demand_of(known, named))
        return demands, np.argsort(order)[which.ravel()]

    def jobs(self) -> Iterator[Job]:
        """Yield the jobs as specifications in seconds."""
        others: dict[int, dict[str, Any]] = {}
        for job, kind, other in self.dependencies.tolist():
            others.setdefault(job, {}).setdefault(DEPENDENCIES[kind], []).append(other)
        for job in map(Job.from_row, self.rows(NAMES)):
            yield replace(job, **others[job.id]) if job.id in others else job

    def column(self, name: str) -> IntArray:
        """Return a column of :class:`~clustermodel.workload.job.JobRow`, or one of ``EXTRA_COLUMNS`` or ``RECORDED_COLUMNS``.

        It has shape ``(jobs,)``, is read-only, and has times in ticks; an extra column that is missing is -1 throughout.
        """
        if name not in self._places and name in EXTRA_COLUMNS + RECORDED_COLUMNS:
            return np.full(len(self), UNSET, dtype=np.int64)
        if name not in self._places:
            choice("column", name, dict.fromkeys((*self._places, *EXTRA_COLUMNS, *RECORDED_COLUMNS)))
        return self.table[:, self._places[name]]

    def has(self, name: str) -> bool:
        """Return whether the workload has this extra column."""
        return name in self.extra

    def _labels(self, name: str) -> dict[int, str]:
        """Return the names of the numbers in a column, or the numbers as texts, without those that stand for no name."""
        texts, least = self.names.get(name, ()), 1 if name in NAMED_COLUMNS else 0
        numbers = distinct(self.column(name)).tolist()
        return {number: texts[number - 1] if 0 < number <= len(texts) else str(number) for number in numbers if number >= least}

    def labels(self, name: str) -> pd.Categorical[str]:
        """Return the names in a column of users, groups, queues and so on: texts of numbers that have none, ``nan`` for -1."""
        import pandas as pd

        labels = self._labels(name)
        texts = pd.Series(self.column(name)).map(labels)
        return pd.Categorical(texts, categories=list(dict.fromkeys(labels.values())))

    def values(self, name: str, jobs: IntArray) -> IntArray:
        """Return a column of the jobs with these numbers, shape ``(jobs,)``."""
        ids = self.column("id")
        order = np.argsort(ids)
        return self.column(name)[order[np.searchsorted(ids, jobs, sorter=order)]]

    def seconds(self, name: str) -> FloatArray:
        """Return a time column in seconds, shape ``(jobs,)``; ``nan`` where a recorded or extra time is unknown.

        Raises:
            SpecificationError: the workload lacks this extra column.
        """
        if name not in EXTRA_COLUMNS + RECORDED_COLUMNS:
            return self.column(name) / TICKS_PER_SECOND
        if not self.has(name):
            how = ": read_swf(path, waits=True) reads the waits of an SWF trace" if name == WAIT else ""
            raise SpecificationError(f"{self.name} has no column {shown(name)}{how}")
        return np.where(self.column(name) == UNSET, np.nan, self.column(name) / TICKS_PER_SECOND)

    @property
    def frame(self) -> pd.DataFrame:
        """The table as pandas: ``job, submit_s, nodes, run_s, estimate_s, user, group, priority, status``.

        Where the workload has them, followed by ``stream``, ``memory_gib``, ``checkpoint_s``, ``restart_s``,
        ``checkpoint_interval_s``, ``preceding``, ``think_time_s``, and what an accounting log has recorded: ``wait_s``,
        ``suspended_s``, ``held_s`` (of the wait), ``requeues``, ``array_limit``, ``node_count``, ``cores``, ``gpus``, the shape
        (``processors_per_node``, ``max_nodes_used``, ``whole_nodes``), the sizes (``malleable``, ``min_nodes``, ``max_nodes``,
        ``resize_s``), own costs (``context_switch_s``, ``startup_s``, ``epilog_s``), and the names ``account``, ``partition``,
        ``qos``, ``queue``, ``job_name``, ``node_type``, ``features``; then ``user_name`` and ``group_name``.
        """
        import pandas as pd

        columns: dict[str, Any] = {}
        for column, name in _OF_FRAME.items():
            values, is_extra = self.column(name), name not in NUMBERS
            if name not in NUMBERS[:9] and not (self.has(name) if is_extra else (values != UNSET).any()):
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
        columns |= {label: self.labels(name) for name, label in NAMES_OF_NUMBERS.items() if self.names.get(name)}
        return pd.DataFrame(columns)

    @property
    def has_feedback(self) -> bool:
        """Whether the submission of a job depends on the completion of another one."""
        return bool((self.column(PRECEDING) != UNSET).any())

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

    @property
    def has_recorded_placements(self) -> bool:
        """Whether it is known which nodes the jobs held: the log names them, and a node of the workload is one of them."""
        return self.placed is not None and self.provenance.unit == "node"

    @property
    def recorded_placements(self) -> pd.DataFrame:
        """The recorded schedule: the nodes that each job held over time, as a table.

        It is like :attr:`~clustermodel.experiment.result.Result.placements`.

        A row for each contiguous range of nodes: ``job``, ``begin_s``, ``end_s``, ``row``, ``first_node``, ``nodes``, ``kind``.
        Nodes are numbered by their names, ``n2`` before ``n10``; jobs that held a node at the same time are in different rows.
        While a job is suspended it has no row: its suspended time is placed where jobs that began later held some of its nodes,
        if they explain all of it.  Otherwise the log does not show when it was suspended, and the kind is ``"partly"`` instead
        of ``"run"``.

        Raises:
            SpecificationError: the log does not name the nodes of its jobs, or jobs are counted in cores or GPUs.
        """
        report = self.provenance.report
        is_named = self.placed is not None or (report is not None and report.named_nodes)
        if (unit := self.provenance.unit) != "node" and is_named:
            counted_in = f"its jobs are counted in {unit}s, which logs do not name; count them in nodes (--unit nodes)"
            raise SpecificationError(f"recorded placements: {self.name}: {counted_in}")
        if self.placed is None:
            does_not_say = "it does not say which nodes its jobs held (NodeList of sacct), or its jobs were scaled or resampled"
            raise SpecificationError(f"recorded placements: {self.name}: {does_not_say}")
        table = self.placed.table
        return table[table["job"].isin(self.column("id"))].reset_index(drop=True)

    def with_recorded_placements(self, placements: pd.DataFrame) -> Workload:
        """Return the same jobs with a recorded schedule, a table like :attr:`recorded_placements`.

        The columns ``row`` (0) and ``kind`` (``"run"``) may be missing.  A table that lacks others, or has values that are not
        allowed, is a ``SpecificationError``.
        """
        return self._like(self.table, placed=GivenPlacements(checked_placements(placements)))

    def select(self, keep: JobFilter) -> Workload:
        """Return the jobs selected by ``keep``; the others are counted in the provenance."""
        require(isinstance(keep, JobFilter), "Workload.select", keep, "it must be a JobFilter, as JobFilter(nodes=(1, 8))")
        dropped: Counter[str] = Counter()
        return self._derived(self.table[self._selected(keep, dropped)], KEEP, keep, {"filter": keep}, dropped=dropped)

    def _selected(self, keep: JobFilter, dropped: Counter[str]) -> BoolArray:
        """Return which jobs a filter selects, shape ``(jobs,)``; the others are counted by the first reason."""
        names = {
            name: {str(label): [number] for number, label in self._labels(name).items()}
            for name in transforms.SELECTED.values()
            if name in self._places
        }
        numbers = transforms.chosen_numbers(keep, names, self.name, by_number=("user", "group"))
        chosen = {name: (self.column(name), allowed) for name, allowed in numbers.items()}
        return transforms.filtered(self.table, keep, dropped, chosen)

    def scaled(self, scale: LoadScale) -> Workload:
        """Return the same jobs with interarrival times (and with them think times), run times or sizes multiplied."""
        require(isinstance(scale, LoadScale), "Workload.scaled", scale, "it must be a LoadScale, as LoadScale(size=2)")
        sizes = [self._places[name] for name in (LEAST, MOST) if self.has(name)]
        rows = transforms.scaled(self.table, scale, int(self.table[0, SUBMIT]), think=self._places.get(THINK), sizes=sizes)
        return self._derived(rows, SCALE, scale, {SCALE: scale}, placed=None)

    def with_default_memory(self, gib: float) -> Workload:
        """Return the same jobs; those whose memory is unknown need ``gib`` GiB on each of their nodes.

        The number of these jobs is in the provenance, among the repaired ones.
        """
        default = to_kib(require_gib("Workload.with_default_memory", gib))
        memory = self.column("memory")
        repaired = +Counter({default_used(gib): int((memory == UNSET).sum())})
        rows = self._with(memory=np.where(memory == UNSET, default, memory))
        return self._derived(rows, MEMORY, gib, {MEMORY: gib}, repaired=repaired)

    def with_recorded_shapes(self) -> Workload:
        """Return the same jobs, which may have at most as many nodes as the log has recorded, if it has (``node_count``).

        So a job of eight cores that had one node is on one node, or waits, on a machine whose nodes have several processors.
        """
        name, recorded = "max_nodes_used", np.maximum(self.column(NODE_COUNT), UNSET)
        if not (recorded > 0).any():
            why = f"{self.name} has recorded no numbers of nodes beside those of processors"
            raise SpecificationError(f"Workload.with_recorded_shapes: {why}")
        most = np.where(recorded > 0, np.minimum(recorded, self.column("nodes")), UNSET)
        rows, extra = self._with_extra({name: most})
        return self._derived(rows, SHAPES, True, {SHAPES: True}, extra=extra)

    def with_malleable(self, rule: Malleable | None = None, **fields: Any) -> Workload:
        """Return the same jobs, some of them malleable: those that ``rule`` chooses, or ``Malleable(**fields)``.

        Jobs that are malleable already keep their sizes.  Where no job is chosen, as with a share of 0, all are as they were.
        A note of the provenance says how many are malleable.
        """
        rule = Malleable(**fields) if rule is None else replace(rule, **fields)
        malleable, nodes = self.column(MALLEABLE) > 0, self.column("nodes")
        chosen = ~malleable & (nodes > 0) & self._selected(rule, Counter()) & rule.belong(self.column("id"))
        rows, extra = self.table, self.extra
        if chosen.any():
            given, none = rule.columns(nodes), np.full_like(nodes, UNSET)
            names = [name for name in SIZES if name in given or self.has(name)]
            columns = {name: np.where(chosen, given.get(name, none), self.column(name)) for name in names}
            rows, extra = self._with_extra(columns | {MALLEABLE: (malleable | chosen).astype(np.int64)})
        note = f"{int((malleable | chosen).sum()):,} of {counted(len(self), 'job')} are malleable"
        return self._derived(rows, MALLEABLE, rule, {MALLEABLE: rule}, extra=extra, notes=(note,))

    def with_perfect_estimates(self) -> Workload:
        """Return the same jobs with every estimate equal to the run time."""
        return self._derived(self._with(estimate=self.column("run")), ESTIMATES, None, {ESTIMATES: "run time"})

    def with_phi_estimates(self, *, phi: float = PHI, seed: int = 1) -> Workload:
        """Return the same jobs with estimates by the phi model of overestimation (Zhang et al. 2003, section 2.1).

        ``phi``, in [0, 1], is the fraction of exact estimates.  Job by job in order of submission, the estimate is the run time
        times a factor drawn from ``seed``; one seed gives the same random numbers y for every ``phi`` and every scaling of run
        times.  Factors have no upper bound; the estimate is at most 1e10 s (317 years), so that it fits 64-bit ticks.
        """
        factor, run = phi_factors(_random(seed, "estimates"), len(self), phi), self.column("run")
        most = np.maximum(0, to_ticks(LONGEST_S) - run)
        estimate = run + np.minimum(np.rint(run * (factor - 1)), most).astype(np.int64)
        options = {ESTIMATES: f"phi model, phi={float(phi):g}, seed={seed}"}
        return self._derived(self._with(estimate=estimate), ESTIMATES, {"phi": phi, "seed": seed}, options)

    def resampled(self, of: Unit = "weeks", *, seed: int = 1) -> Workload:
        """Return a bootstrap sample of the log: its weeks or users, drawn with replacement.

        Whole weeks (or blocks of ``of`` seconds) are laid end to end until they are as long as this log; each job keeps its
        time in the week, its run time, estimate, nodes and user.  Weeks begin on Monday, 0:00, by the clock of the log, if the
        header says when and where it began, otherwise with the first submission, as other blocks do.  Dependence beyond a
        week, such as trends and seasons, is lost (Künsch 1989).

        Users (``"users"``) are drawn with all their jobs, at their recorded times; a user drawn twice appears as two users who
        submit the same jobs at the same times.  The number of jobs and the offered load then vary between seeds.

        A job whose preceding job is not in the same week and draw is submitted at its own time.  Numbers of jobs end with the
        original number; the digits before it count draws from 0.  Raises SpecificationError if an argument is not allowed, or
        there are not two weeks, blocks or users.
        """
        of, rng = transforms.checked_unit(of), _random(seed, "resampling")
        if of == "users":
            place, shift, draw, note = transforms.drawn_users(self.column("user"), rng)
        else:
            place, shift, draw, note = transforms.drawn_blocks(self.column("submit"), of, rng, self.provenance.header)
        if not len(place):
            raise SpecificationError(f"Workload.resampled: the {of} drawn have no jobs; give another seed")
        table, names = self.table[place], dict(self.names)
        table[:, SUBMIT] += shift
        self._add_to_ids(table, transforms.added_to_ids(table[:, ID], draw))
        if of == "users":
            table[:, USER], users = transforms.distinct_users(table[:, USER], draw, names.get("user", ()))
            names |= {"user": users} if users else {}
        what = {"of": of, "seed": seed}
        return self._derived(table, RESAMPLE, what, {RESAMPLE: what}, notes=(note,), names=names, placed=None)

    def renumbered(self, shift: int) -> Workload:
        """Return the same jobs with ``shift`` added to their numbers."""
        self._add_to_ids(table := self.table.copy(), shift)
        return self._like(table, dependencies=self.dependencies + np.array([shift, 0, shift]), placed=None)

    def _add_to_ids(self, table: IntArray, added: IntArray | int) -> None:
        table[:, ID] += added
        if self.has(PRECEDING):
            preceding = table[:, self._places[PRECEDING]]
            preceding += np.where(preceding == UNSET, 0, added)

    def split(self, by: str = "user") -> list[Workload]:
        """Return one workload per value of the column ``by``, to be run as separate job streams.

        The streams of a merged workload (``by="stream"``) get their labels as names.  Where a job follows a job of another
        part, its submission no longer depends on it.
        """
        if not isinstance(by, str) or by not in self._places:
            must = f"it must be one of {', '.join(self._places)}"
            raise SpecificationError(f"Workload.split by: {quoted(by)} is not allowed; {must}")
        column, labels = self.column(by), self._labels(by)
        extra = [name for name in self.extra if name != STREAM]
        table = self.table[:, [self._places[name] for name in (*NUMBERS, *extra)]]
        parts = []
        for value in distinct(column).tolist():
            unnamed = f"without {by}" if by in NAMED_COLUMNS else f"{by} {value}"
            own = f"{by} {labels[value]}" if value in labels else unnamed
            name = self.streams[value] if by == STREAM else f"{self.name} {own}"
            parts.append(self._like(table[column == value], name=name, extra=extra, streams=()))
        return parts

    def part(self, which: BoolArray, name: str) -> Workload:
        """Return the jobs for which ``which`` is true, shape ``(jobs,)``, under another name."""
        return self._like(self.table[which], name=name)

    def made_by(self, source: Source, arguments: Mapping[str, object]) -> Workload:
        """Note the function and its arguments that made the workload, and return it."""
        self.recipe = Recipe(source=source, arguments=arguments, name=self.name, machine_nodes=self.machine_nodes)
        return self

    def _with(self, **columns: IntArray) -> IntArray:
        """Return a copy of the table with other columns."""
        table = self.table.copy()
        for name, values in columns.items():
            table[:, self._places[name]] = values
        return table

    def _with_extra(self, columns: Mapping[str, IntArray]) -> tuple[IntArray, tuple[str, ...]]:
        """Return a copy of the table with other extra columns, new ones last, and the names of all of these."""
        names = dict.fromkeys((*self._places, *columns))
        table = np.stack([columns[name] if name in columns else self.column(name) for name in names], axis=1)
        return table, tuple(names)[len(NUMBERS) :]

    def _derived(self, rows: IntArray, step: str, what: object, options: Mapping[str, object], **changes: Any) -> Workload:
        """Return a workload of ``rows`` that one more step has made of this one; ``changes`` are counts, notes or names."""
        old = self.provenance
        provenance = replace(
            old,
            options={**old.options, **options},
            dropped=old.dropped + changes.pop("dropped", Counter()),
            repaired=old.repaired + changes.pop("repaired", Counter()),
            partial=old.partial + Counter(),
            notes=(*old.notes, *changes.pop("notes", ())),
        )
        recipe = self.recipe and replace(self.recipe, steps=(*self.recipe.steps, (step, what)))
        return self._like(rows, provenance=provenance, recipe=recipe, **changes)

    def _like(self, rows: IntArray, **changes: Any) -> Workload:
        """Return other rows with all else as it is here, but for ``changes``; the recipe is not kept."""
        kept = {name: getattr(self, name) for name in _KEPT}
        return Workload(rows, **{**kept, **changes})


def _random(seed: int, purpose: str) -> np.random.Generator:
    """Return random numbers that differ from those of other purposes with the same seed."""
    key = (crc32(purpose.encode()),)
    return np.random.default_rng(np.random.SeedSequence(require_whole("seed", seed, at_least=0), spawn_key=key))


_Arguments = ParamSpec("_Arguments")
MOST_KEPT: Final = 1_000_000  # jobs together; a job takes 80 bytes
MOST_KEPT_WORKLOADS: Final = 1_000  # however small; looking through more would take longer than making them
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
        is_new = workload is None
        if workload is None:
            began = perf_counter()
            workload = make(*args, **kwargs)
            _log.info("made %s: %s jobs in %.2f s", workload.name, f"{len(workload):,}", perf_counter() - began)
        _kept.pop(key, None)
        _kept[key] = workload
        while is_new and (len(_kept) > MOST_KEPT_WORKLOADS or sum(map(len, list(_kept.values()))) > MOST_KEPT):
            _kept.pop(next(iter(_kept)), None)
        return copy.copy(workload)  # with a name and provenance of its own; the table is shared

    return made


def trace_facts(workload: Workload, nodes: int | None) -> dict[str, object]:
    """Return statistics of a workload as JSON values; times in seconds, percentiles as ``p50``."""
    size, run, estimate = workload.column("nodes"), workload.seconds("run"), workload.seconds("estimate")
    known, percentiles = workload.provenance, (0, 25, 50, 75, 90, 99, 100)
    load = partial(workload.offered_load, nodes) if nodes and workload.span_s else lambda **_: None

    def spread(values: np.ndarray) -> dict[str, float]:
        return {f"p{p}": float(v) for p, v in zip(percentiles, np.percentile(values, percentiles), strict=True)}

    return {
        "trace": known.source,
        "jobs": len(workload),
        "users": len(distinct(workload.column("user"))),
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
        **{name: dict(sorted(getattr(known, name).items())) for name in ("dropped", "repaired")},
        "partial_executions": dict(sorted(known.partial.items())),
        "header": dict(known.header),
    }
