"""Several job streams in one run: unique job numbers, the stream of each job, and feedback.

With feedback a job is submitted a think time after another job has completed (SWF fields 17 and 18).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from clustermodel.arrays import BoolArray, Coded, IntArray, distinct
from clustermodel.errors import SpecificationError, TraceError, refused
from clustermodel.ticks import LAST_TICK
from clustermodel.workload.data_frame import NAMES_OF_NUMBERS, RECORDED_FIELDS
from clustermodel.workload.dependencies import Singletons
from clustermodel.workload.job import (
    LEAST,
    MALLEABLE,
    MOST,
    NUMBERS,
    SHAPE,
    SINGLETON,
    UNSET,
    Demand,
    Demands,
    JobRow,
    OwnCosts,
    checked_row,
)
from clustermodel.workload.job_columns import ARRAY, ARRAY_LIMIT, JOB_NAME, NAMED_COLUMNS, PRECEDING, STREAM, THINK
from clustermodel.workload.table import JobSource, Workload

if TYPE_CHECKING:
    import pandas as pd


_RECORDED_STATUS: Final = {0: "failed", 1: "completed", 5: "cancelled"}  # of SWF


class Follower(NamedTuple):
    """A job that is submitted after another one has completed."""

    row: JobRow
    think: int  # ticks from that completion to the submission


class JobsWithFeedback:
    """The jobs of a workload for the simulator; iterating yields those that follow no other one, in order of submission."""

    def __init__(self, workload: Workload, names: Sequence[str]) -> None:
        self.followers: dict[int, list[Follower]] = {}
        """The other jobs, by the number of the job that they follow."""
        self._first: list[JobRow] = []
        columns = (workload.column(name).tolist() for name in (PRECEDING, THINK))
        for row, preceding, think in zip(workload.rows(names), *columns, strict=True):
            if preceding == UNSET:
                self._first.append(row)
            else:
                self.followers.setdefault(preceding, []).append(Follower(row, max(0, think)))

    def __iter__(self) -> Iterator[JobRow]:
        return iter(self._first)


def _checked(source: JobSource) -> Iterator[JobRow]:
    """Yield the rows of a source that may be a user's, after checking them."""
    last = 0
    for row in map(checked_row, source.rows()):
        if row.submit < last:
            must = f"it must be >= {last}, the submission of the job before, in ticks"
            raise SpecificationError(f"{source.name}: job {row.id}: submit {row.submit} is not allowed; {must}")
        if row.demand is not None and (field := _known_too_late(row.demand)) is not None:
            must = "in a stream that is not in memory, only costs of checkpoints and restarts; make a Workload of its rows"
            raise SpecificationError(f"{source.name}: job {row.id}: {field} is not allowed {must}")
        last = row.submit
        yield row


def _known_too_late(demand: Demand) -> str | None:
    """Return a field of which a run has to know before the job is submitted, ``None`` if there is none."""
    costs = demand.costs
    known = Demand(costs=OwnCosts(costs.checkpoint, costs.restart, costs.checkpoint_interval))
    return next((field for field, value, allowed in zip(Demand._fields, demand, known, strict=True) if value != allowed), None)


class JobStreams:
    """The job streams of one run, with the job numbers of the run.

    Workloads with disjoint numbers keep them.  Otherwise, and if the numbers of a stream are unknown before it is read (then
    it is read an additional time), job i of the k-th stream gets the number i + the sum of the largest numbers of the streams
    before it.  So the first stream keeps its numbers.  (A later stream whose numbers begin at 0 or below is shifted by more, to
    begin above the streams before it.)
    """

    def __init__(self, sources: Sequence[JobSource]) -> None:
        self._sources = sources
        self._labels = [(isinstance(source, Workload) and source.streams) or (source.name,) for source in sources]
        self._shifts, self._largest = [0] * len(sources), [0]
        self._ids: IntArray | None = None
        if len(sources) == 1:
            return
        ids = [source.column("id") for source in sources if isinstance(source, Workload)]
        if len(ids) == len(sources) and len(distinct(every := np.concatenate(ids))) == len(every):
            order = np.argsort(every)
            self._ids, self._of_id = every[order], np.repeat(np.arange(len(ids)), list(map(len, ids)))[order]
        else:
            self._shifts, self._largest = _shifts(sources)

    @property
    def has_recorded_facts(self) -> bool:
        """Whether :meth:`recorded` may have a column."""
        sources = [source for source in self if isinstance(source, Workload)]
        return any(source.extra or source.names or (source.column("status") != UNSET).any() for source in sources)

    def recorded(self, ids: IntArray) -> dict[str, pd.Series[Any]]:
        """Return what is recorded of jobs in memory, names of users included, by their numbers in the run, shape ``(jobs,)``.

        It is missing for other jobs.
        """
        if not self.has_recorded_facts:
            return {}
        import pandas as pd

        tables = [recorded_facts(source) for source in self if isinstance(source, Workload)]
        tables = [table for table in tables if len(table.columns)]
        if not tables:
            return {}
        table = (pd.concat(tables) if len(tables) > 1 else tables[0]).reindex(ids)
        return {str(name): column.reset_index(drop=True) for name, column in table.items()}

    def facts(self) -> list[str]:
        """Return the names of the columns of :meth:`recorded`."""
        return list(self.recorded(np.empty(0, dtype=np.int64)))

    def jobs_in_memory(self) -> int | None:
        """Return the number of jobs; ``None`` if not all streams are in memory."""
        sizes = [len(source) if isinstance(source, Workload) else None for source in self._sources]
        return None if None in sizes else sum(filter(None, sizes))

    def names_of_jobs(self, field: str) -> dict[int, str]:
        """Return what jobs in memory have in ``field``, as ``"user"``, as texts by number; jobs without a name are left out."""
        names: dict[int, str] = {}
        for source in self:
            if isinstance(source, Workload) and (field in NUMBERS or source.has(field)):
                texts, least = source.names.get(field, ()), 1 if field in NAMED_COLUMNS else 0
                for job, code in zip(source.column("id").tolist(), source.column(field).tolist(), strict=True):
                    if code >= least:
                        names[job] = texts[code - 1] if 0 < code <= len(texts) else str(code)
        return names

    def array_limits(self) -> dict[int, tuple[int, int]]:
        """Return which array each job is a task of, by number, and how many tasks of it may run at a time, where known."""
        limits: dict[int, tuple[int, int]] = {}
        for place, source in enumerate(self):
            if isinstance(source, Workload) and source.has(ARRAY_LIMIT):
                columns = (source.column(name).tolist() for name in ("id", ARRAY, ARRAY_LIMIT))
                limits |= {
                    job: (len(self._sources) * array + place, limit)
                    for job, array, limit in zip(*columns, strict=True)
                    if limit > 0
                }
        return limits

    def submissions(self, names: Sequence[str]) -> tuple[list[Iterable[JobRow]], Demands]:
        """Return the streams as the simulator takes them, and all demands of their jobs, which have those ``names`` only.

        A stream is an iterator of its rows, or :class:`JobsWithFeedback`.
        """
        streams: list[Iterable[JobRow]] = []
        first: dict[Demand | None, int] = {}
        for source in self:
            if not isinstance(source, Workload):
                streams.append(_checked(source))
                first.setdefault(None, 0)
                continue
            _require_shapes_and_sizes(source)
            demands, which = source.demands(names)
            ids = source.column("id")
            places = np.zeros(1, dtype=np.int64) if which is None else np.unique(which, return_index=True)[1]
            for demand, number in zip(demands, ids[places].tolist(), strict=True):
                first.setdefault(demand, number)
            streams.append(JobsWithFeedback(source, names) if source.has_feedback else source.rows(names))
        return streams, first

    @property
    def has_shapes(self) -> bool:
        """Whether a job in memory has a shape."""
        return any(isinstance(source, Workload) and bool(_shaped(source).any()) for source in self._sources)

    @property
    def has_malleable(self) -> bool:
        """Whether a job in memory is malleable."""
        return any(isinstance(source, Workload) and bool((source.column(MALLEABLE) > 0).any()) for source in self._sources)

    def singletons(self) -> Singletons:
        """Return the jobs in memory of which some wait for all of their user and name that were submitted before."""
        if not any(isinstance(source, Workload) and source.has(SINGLETON) for source in self):
            return {}
        users, names = self.names_of_jobs("user"), self.names_of_jobs(JOB_NAME)
        columns = [
            [source.column(name) for name in ("submit", "id", SINGLETON)] for source in self if isinstance(source, Workload)
        ]
        submit, ids, singleton = np.concatenate(columns, axis=1)
        order = [place for place in np.lexsort((ids, submit)).tolist() if ids[place] in names]
        jobs = [
            ((users.get(job, ""), names[job]), job, bool(singleton[place] > 0)) for place in order for job in [int(ids[place])]
        ]
        waited_for = {group for group, _, alone in jobs if alone}
        return {job: (group, alone) for group, job, alone in jobs if group in waited_for}

    @property
    def has_dependencies(self) -> bool:
        """Whether a job waits for others to begin or to end."""
        return bool(len(self.dependencies()) or self.singletons())

    def dependencies(self) -> IntArray:
        """Return which jobs in memory wait for which, as :class:`~clustermodel.workload.table.Workload` has them."""
        own = [source.dependencies for source in self if isinstance(source, Workload) and len(source.dependencies)]
        return np.concatenate(own) if own else np.empty((0, 3), dtype=np.int64)

    def __iter__(self) -> Iterator[JobSource]:
        for source, shift in zip(self._sources, self._shifts, strict=True):
            if not shift:
                yield source
            else:
                yield source.renumbered(shift) if isinstance(source, Workload) else Renumbered(source, shift)

    def require_jobs(self, submitted: int) -> None:
        """Raise TraceError if no job was submitted."""
        if not submitted:
            provenance = self._sources[0].provenance
            because = "; ".join(provenance.lines()) or "it has no jobs"
            raise TraceError(f"{provenance.source}: no usable job: {because}")

    def names(self) -> list[str]:
        """Return the names of the streams, with " (2)", " (3)" after repeated names.

        A merged workload (:func:`~clustermodel.workload.merged.merge`) has those of the streams in it.
        """
        names: list[str] = []
        for label in chain.from_iterable(self._labels):
            given = str(label).encode(errors="backslashreplace").decode()  # unpaired surrogates cannot be encoded
            numbered = chain([given], (f"{given} ({copies})" for copies in count(2)))
            names.append(next(name for name in numbered if name not in names))
        return names

    def of(self, jobs: IntArray) -> Coded:
        """Return the name of the stream of each of these jobs, given by number; shape ``(jobs,)``."""
        first = np.cumsum([0, *map(len, self._labels)])
        codes = first[self._positions(jobs)]
        if (own := self.column(STREAM, jobs)) is not None:
            codes += np.maximum(own, 0)
        return Coded(codes, tuple(self.names()))

    def column(self, name: str, jobs: IntArray) -> IntArray | None:
        """Return an extra column of these jobs, given by number; shape ``(jobs,)``, ``None`` if no stream has it."""
        position = self._positions(jobs)
        values: IntArray | None = None
        for number, source in enumerate(self._sources):
            if isinstance(source, Workload) and source.has(name):
                values = np.full(len(jobs), UNSET, dtype=np.int64) if values is None else values
                own, shift = position == number, self._shifts[number]
                column = source.values(name, jobs[own] - shift)
                values[own] = np.where(column == UNSET, UNSET, column + shift) if name == PRECEDING else column
        return values

    def _positions(self, jobs: IntArray) -> IntArray:
        """Return which stream each of these jobs came from, shape ``(jobs,)``."""
        if self._ids is not None:
            return self._of_id[np.searchsorted(self._ids, jobs)]
        return np.searchsorted(self._largest[:-1], jobs)


def _shaped(workload: Workload) -> BoolArray:
    """Return which jobs have a shape, shape ``(jobs,)``."""
    per_node, most_nodes, whole = (workload.column(name) > 0 for name in SHAPE)
    return per_node | most_nodes | whole


def _require_shapes_and_sizes(workload: Workload) -> None:
    """Refuse shapes and sizes that do not go with the nodes that a job asks for, or with each other."""
    ids, nodes, malleable = (workload.column(name) for name in ("id", "nodes", MALLEABLE))
    each = np.maximum(workload.column(SHAPE[0]), 1)
    for wrong in np.flatnonzero(nodes % each)[:1].tolist():
        must = f"{each[wrong]} is not allowed for {nodes[wrong]} processors; it must divide their number"
        raise SpecificationError(f"job {ids[wrong]}: {SHAPE[0]}: {must}")
    least, most = workload.column(LEAST), workload.column(MOST)
    for name, numbers, holds, limits in (
        (LEAST, least, (least >= 1) & (least <= nodes), "at least 1 and at most"),
        (MOST, most, most >= nodes, "at least"),
    ):
        for wrong in np.flatnonzero((malleable > 0) & ~holds & (numbers != UNSET))[:1].tolist():
            must = f"it must be {limits} the nodes that the job asks for, {nodes[wrong]}"
            raise refused(f"job {ids[wrong]}: {name}", int(numbers[wrong]), must)
    if (both := (malleable > 0) & _shaped(workload)).any():
        raise SpecificationError(f"job {ids[both].min()}: malleable: a job with a shape ({', '.join(SHAPE)}) keeps its size")


def recorded_facts(workload: Workload) -> pd.DataFrame:
    """Return what is recorded of jobs, by number, with the columns that the workload has."""
    import pandas as pd

    table = pd.DataFrame(index=pd.Index(workload.column("id")))
    if (status := workload.column("status") != UNSET).any():
        labels = {code: _RECORDED_STATUS.get(code, str(code)) for code in distinct(workload.column("status")[status]).tolist()}
        texts = pd.Series(workload.column("status")).map(labels)
        table["recorded_status"] = pd.Categorical(texts, categories=list(labels.values()))
    for name, label in NAMES_OF_NUMBERS.items():
        if workload.names.get(name):
            table[label] = workload.labels(name)
    if workload.extra:
        frame = workload.frame
        for name in frame.columns.intersection([*RECORDED_FIELDS]):
            renamed = f"recorded_{name}" if name in ("wait_s", "suspended_s", "held_s") else name
            table[renamed] = workload.labels(name) if name in NAMED_COLUMNS else frame[name].to_numpy()
    return table


class Renumbered:
    """A job stream that is not in memory, with ``shift`` added to its job numbers."""

    def __init__(self, source: JobSource, shift: int) -> None:
        self.name, self.provenance, self.machine_nodes = source.name, source.provenance, source.machine_nodes
        self.source, self.shift = source, shift

    def rows(self) -> Iterator[JobRow]:
        """Yield the jobs in order of submission."""
        for row in self.source.rows():
            yield row._replace(id=row.id + self.shift)


def _shifts(sources: Sequence[JobSource]) -> tuple[list[int], list[int]]:
    """Return the shift of each stream's numbers, and the largest number of the run up to and including that stream."""
    shifts: list[int] = []
    largest: list[int] = []
    for source in sources:
        numbers = source.column("id").tolist() if isinstance(source, Workload) else (row.id for row in source.rows())
        low, high = LAST_TICK, -LAST_TICK
        for number in numbers:
            low, high = min(low, number), max(high, number)
        if low > high:  # it has no jobs
            low, high = 1, 0
        before = largest[-1] if largest else 0
        shifts.append(before + max(0, 1 - low) if largest else 0)
        largest.append(max(before, shifts[-1] + high))
    if largest[-1] > LAST_TICK:
        raise SpecificationError("Scenario.workload: the job numbers of the streams, one after the other, do not fit 64 bits")
    return shifts, largest
