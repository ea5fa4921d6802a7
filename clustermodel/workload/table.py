"""The workload: the jobs of a run as a table in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable
from zlib import crc32

import numpy as np

from clustermodel.arrays import BoolArray, FloatArray, IntArray, distinct, dot
from clustermodel.errors import SpecificationError, counted, quoted, shown
from clustermodel.text.formatting import duration, html_fields
from clustermodel.ticks import TICKS_PER_SECOND, to_ticks
from clustermodel.validation import (
    LONGEST_S,
    choice,
    default_used,
    require,
    require_gib,
    require_whole,
    to_kib,
)
from clustermodel.workload import transforms
from clustermodel.workload.data_frame import frame_of, jobs_of_frame
from clustermodel.workload.demand_columns import DEMANDED, columns_of_demands, demand_of
from clustermodel.workload.dependencies import require_an_order, require_no_circle
from clustermodel.workload.job import (
    DEPENDENCIES,
    LEAST,
    LEAST_TICKS,
    MALLEABLE,
    MOST,
    NAMES,
    NUMBERS,
    SIZES,
    UNSET,
    Demand,
    Job,
    JobRow,
    problem_of,
    row_of,
)
from clustermodel.workload.job_columns import (
    EXTRA_COLUMNS,
    NAMED_COLUMNS,
    NODE_COUNT,
    PRECEDING,
    RECORDED_COLUMNS,
    STREAM,
    THINK,
    WAIT,
)
from clustermodel.workload.malleable import Malleable
from clustermodel.workload.phi import PHI, phi_factors
from clustermodel.workload.placements import GivenPlacements, NodeLists, checked_placements
from clustermodel.workload.provenance import ESTIMATES, KEEP, MEMORY, SCALE, SHAPES, Provenance, Recipe, Source
from clustermodel.workload.transforms import ID, RESAMPLE, SUBMIT, USER, JobFilter, LoadScale, Unit

if TYPE_CHECKING:
    import pandas as pd


_KEPT: Final = ("name", "provenance", "machine_nodes", "extra", "streams", "names", "dependencies", "placed")
_TIMES: Final = [NUMBERS.index(name) for name in LEAST_TICKS]
_CHUNK: Final = 4096  # rows converted at a time, so that a million jobs are never a million Python objects at once


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
            demanded, of_demands = columns_of_demands(given)
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
            require_an_order(table[:, ID], preceding)
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
        table, extra, names = jobs_of_frame(frame)
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
        numbers = [name for name in DEMANDED if self.has(name)]
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
            demands.append(demand_of(known, named))
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
        return frame_of(self)

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
