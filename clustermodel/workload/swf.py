"""The Standard Workload Format of the Parallel Workloads Archive: reading traces, streaming them, writing schedules.

A data line has 18 numbers; ``-1`` means unknown; lines that start with ``;`` are comments, of which ``; Key: value`` are
kept as metadata.  Lines of partial executions belong to the line of the whole job, or are summed up to one
(:mod:`clustermodel.workload.partial_executions`).  Jobs that are left out and values that are filled in are counted by
reason.  A wrong value is an error only if a result depends on it (:mod:`clustermodel.workload.swf_line`);
docs/guide_trace has the rule of each field.
"""

from __future__ import annotations

import gzip
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import Final

import numpy as np

from clustermodel.arrays import IntArray, distinct
from clustermodel.errors import SpecificationError, TraceError, visible
from clustermodel.job import UNSET, JobRow
from clustermodel.memory_units import KIB_PER_GIB, LARGEST_GIB, default_used, require_gib, to_kib
from clustermodel.output_files import write_file
from clustermodel.text_files import without_compression
from clustermodel.ticks import duration_to_ticks, to_ticks
from clustermodel.validation import LARGEST_WHOLE, LONGEST_S, flag
from clustermodel.workload.extra_columns import PRECEDING, THINK, WAIT, ExtraColumns
from clustermodel.workload.partial_executions import whole_jobs
from clustermodel.workload.plain_swf import plain_jobs
from clustermodel.workload.recipe import MEMORY, Recipe
from clustermodel.workload.swf_file import data_lines, read_header
from clustermodel.workload.swf_line import (
    ALLOCATED,
    DECISIVE_FIELDS,
    ESTIMATE,
    REQUESTED,
    REQUESTED_MEMORY,
    SWF_FIELDS,
    UNKNOWN,
    USED_MEMORY,
    parse_line,
    parse_line_with_feedback,
)
from clustermodel.workload.table import Provenance, Workload
from clustermodel.workload.transforms import JobFilter, LoadScale, filtered, transformed

_log = logging.getLogger(__name__)
_Parser = Callable[[str, Sequence[int]], tuple[list[float], Sequence[str]]]
_LONGEST_SIZE: Final = 20  # digits
_SORTED: Final = "submitted before the job on the line above, sorted"


class SwfStream:
    """A trace read one job at a time, in constant memory; it can be iterated repeatedly.

    The jobs must be in order of submission, as in nearly every trace of the archive (:func:`read_swf` sorts them).

    Args:
        path: a ``.swf`` or ``.swf.gz`` file.
        processors_from: ``"allocated"`` or ``"requested"``; if that field is missing, the other is used, and counted.
        use_estimates: when false, every estimate is replaced by the run time.
        keep: which jobs to keep.
        scale: factors for interarrival times, run times and sizes, applied after ``keep``.
        lenient: count and skip a malformed line instead of raising.
        default_memory_gib: memory per node of jobs whose memory is unknown, GiB; they are counted.

    Raises:
        TraceError: the file cannot be read, is damaged, or a line is malformed.
        SpecificationError: an option has a value that is not allowed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        processors_from: str = "allocated",
        use_estimates: bool = True,
        keep: JobFilter | None = None,
        scale: LoadScale | None = None,
        lenient: bool = False,
        default_memory_gib: float | None = None,
    ) -> None:
        if processors_from not in ("allocated", "requested"):
            raise SpecificationError(
                f"processors_from: {processors_from!r} is not allowed; it must be 'allocated' or 'requested'"
            )
        self.path = Path(path)
        self.name = without_compression(self.path.name).removesuffix(".swf")
        self._processors_from = processors_from
        self._use_estimates = use_estimates
        self._keep = keep
        self._scale = scale
        self._lenient = lenient
        default = None if default_memory_gib is None else require_gib("SwfStream.default_memory_gib", default_memory_gib)
        self._default_memory = default
        self.provenance = Provenance(
            source=str(path),
            options={
                "processors_from": processors_from,
                "use_estimates": use_estimates,
                "filter": keep,
                "scale": scale,
                "lenient": lenient,
                **({} if default is None else {MEMORY: default}),
            },
            header=read_header(self.path),
        )
        arguments = {"trace": self.path, "stream": True, **self.provenance.options, "keep": keep}
        del arguments["filter"]
        self.recipe = Recipe(source="trace", arguments=arguments, name=self.name, machine_nodes=self.machine_nodes)
        """How to make the same stream again."""
        self._line = 0  # of the job that was yielded last
        self._feedback: dict[int, tuple[int, int]] | None = None
        """Job number -> preceding job and think time (ticks) of the jobs read, where :func:`read_swf` asks for them."""
        self._waits: dict[int, int] | None = None
        """Job number -> recorded wait (ticks) of the jobs read, where :func:`read_swf` asks for them."""
        self.malformed: list[str] = []
        """Messages of the first ten lines that were skipped as ``lenient``."""

    @property
    def machine_nodes(self) -> int | None:
        """``MaxProcs`` of the header, else ``MaxNodes``, else ``None``; an invalid size counts as unknown."""
        for key in ("MaxProcs", "MaxNodes"):
            first_word = next(iter(self.provenance.header.get(key, "").split()), "")
            if first_word.isascii() and first_word.isdecimal() and len(first_word) <= _LONGEST_SIZE:
                nodes = int(first_word)
                if 0 < nodes <= LARGEST_WHOLE:
                    return nodes
        return None

    def __eq__(self, other: object) -> bool:
        """Return whether this is a stream of the same file, read in the same way."""
        if not isinstance(other, SwfStream):
            return NotImplemented
        mine, others = ({**one.recipe.arguments, "trace": one.path.absolute()} for one in (self, other))
        return self.name == other.name and mine == others

    def __hash__(self) -> int:
        return hash(self.path.absolute())

    def rows(self) -> Iterator[JobRow]:
        """Yield the jobs in file order.

        Raises:
            TraceError: as for the class, or a job was submitted before the job on the line above.
        """
        last: JobRow | None = None
        for row in self._transformed_rows():
            if last is not None and row < last:
                raise TraceError(
                    f"{self.path}:{self._line}: job {row.id} stands after job {last.id}, which {_why_after(row, last)}; "
                    "a stream must be in order of submission: read the file with read_swf, which sorts (without --stream)"
                )
            last = row
            yield row

    def _transformed_rows(self) -> Iterator[JobRow]:
        self.provenance.dropped.clear()
        self.provenance.repaired.clear()
        self.provenance.partial.clear()
        self.malformed.clear()
        return transformed(self._raw_rows(), self._keep, self._scale, self.provenance.dropped)

    def _parser(self) -> _Parser:
        """Return the function that parses a line, and notes what :func:`read_swf` asks for beside the row."""
        parse = parse_line if self._feedback is None else partial(parse_line_with_feedback, self._feedback)
        return parse if self._waits is None else partial(_parse_with_wait, parse, self._waits)

    @property
    def _size_fields(self) -> tuple[int, int]:
        """The field of the size, and the one that is used where that is missing."""
        return (ALLOCATED, REQUESTED) if self._processors_from == "allocated" else (REQUESTED, ALLOCATED)

    def _raw_rows(self) -> Iterator[JobRow]:
        dropped, repaired = self.provenance.dropped, self.provenance.repaired
        prefer, other = self._size_fields
        substitute = f"{SWF_FIELDS[prefer]} missing, {SWF_FIELDS[other]} used"
        needed = (*DECISIVE_FIELDS, prefer, *([ESTIMATE] if self._use_estimates else []))
        parse = self._parser()
        lines = data_lines(
            self.path, lambda text: parse(text, needed), lenient=self._lenient, dropped=dropped, messages=self.malformed
        )
        for number, values, repairs in whole_jobs(self.path, lines, self.provenance.partial):
            run, nodes, estimate = values[3], values[prefer], values[ESTIMATE]
            if values[1] < 0 or run <= 0:
                dropped["submit time missing" if values[1] < 0 else "run time missing" if run < 0 else "run time zero"] += 1
                continue
            if nodes <= 0:
                nodes = values[other]
                if nodes <= 0:
                    dropped["number of processors missing"] += 1
                    continue
                repaired[substitute] += 1
            run_ticks = duration_to_ticks(run)
            self._line = number
            if not self._use_estimates:
                estimate_ticks = run_ticks
            elif estimate > 0:
                estimate_ticks = duration_to_ticks(estimate)
            else:
                estimate_ticks = run_ticks
                missing = "negative" if estimate < 0 and estimate != UNKNOWN else "missing"
                repaired[f"requested_time {missing}, run_time used"] += 1
            if repairs:
                repaired.update(repairs)
            memory = _memory(values[REQUESTED_MEMORY]) if values[REQUESTED_MEMORY] > 0 else _memory(values[USED_MEMORY])
            if memory == UNSET and self._default_memory is not None:
                memory = to_kib(self._default_memory)
                repaired[default_used(self._default_memory)] += 1
            yield JobRow(
                to_ticks(values[1]),
                int(values[0]),
                int(nodes),
                run_ticks,
                estimate_ticks,
                int(values[11]),
                int(values[12]),
                0,
                int(values[10]),
                memory,
            )


def read_swf(
    path: str | os.PathLike[str],
    *,
    processors_from: str = "allocated",
    use_estimates: bool = True,
    keep: JobFilter | None = None,
    scale: LoadScale | None = None,
    lenient: bool = False,
    feedback: bool = False,
    waits: bool = False,
) -> Workload:
    """Read a trace into memory; the arguments are those of :class:`SwfStream`, ``feedback`` and ``waits``, without the memory
    (:meth:`Workload.with_default_memory <clustermodel.workload.table.Workload.with_default_memory>`).

    With ``feedback=True`` a job with a preceding job (field 17) is submitted a think time (field 18, 0 if unknown) after that
    job has completed in the simulation; its recorded submission is used where the preceding job is not in the workload or was
    not submitted earlier.  By default all recorded submissions are used.  With ``waits=True`` the column ``wait`` has the
    recorded waits (field 3); no schedule depends on them.

    Raises:
        TraceError: the file cannot be read, is damaged, has a malformed line, two jobs with the same number, or no usable job.
        SpecificationError: an option has a value that is not allowed.
    """
    began = perf_counter()
    stream = SwfStream(
        path,
        processors_from=processors_from,
        use_estimates=use_estimates,
        keep=keep,
        scale=scale,
        lenient=lenient,
    )
    # Scaling is applied after sorting: the fixed point is the first submission, not the first line.
    stream._scale = None
    stream._feedback = {} if flag("feedback", feedback) else None
    stream._waits = {} if flag("waits", waits) else None
    arguments = {**stream.recipe.arguments, "stream": False, "feedback": feedback, "waits": waits}
    recipe = replace(stream.recipe, arguments=arguments)
    provenance = stream.provenance
    if (table := _plain_table(stream)) is not None:
        _log.info("read %s: %s jobs in %.2f s", path, f"{len(table):,}", perf_counter() - began)
        return Workload(
            table if scale is None else transformed(map(JobRow._make, table.tolist()), None, scale, provenance.dropped),
            name=stream.name,
            provenance=provenance,
            machine_nodes=stream.machine_nodes,
            recipe=recipe,
        )
    rows = list(stream._transformed_rows())
    if not rows:
        because = "; ".join(provenance.lines()) or "the file has no job lines"
        raise TraceError(f"{path}: no usable job: {because}")
    moved = sum(later.submit < earlier.submit for earlier, later in pairwise(rows))
    if moved:
        provenance.repaired[_SORTED] += moved
    rows.sort()
    numbers = Counter(row.id for row in rows)
    if len(numbers) < len(rows):
        number, times = numbers.most_common(1)[0]
        first, second, *_ = (stream._line for row in stream._transformed_rows() if row.id == number)
        raise TraceError(
            f"{path}:{second}: field job_number: {number} is used by {times} jobs, first on line {first}; "
            f"job numbers must be unique{', and the partial executions of a job follow each other' * bool(provenance.partial)}"
        )
    _log.info("read %s: %s jobs in %.2f s", path, f"{len(rows):,}", perf_counter() - began)
    extra = None if stream._feedback is None else _feedback_columns(rows, stream._feedback, provenance.repaired)
    if stream._waits is not None:
        ids = np.array([row.id for row in rows], dtype=np.int64)
        recorded = np.array([stream._waits[row.id] for row in rows], dtype=np.int64)
        extra = (extra or ExtraColumns(ids=ids, columns={})).with_column(WAIT, recorded)
    if extra is not None and scale is not None:
        extra = extra.think_times_scaled(scale.interarrival)
    return Workload(
        transformed(rows, None, scale, provenance.dropped),
        name=stream.name,
        provenance=provenance,
        machine_nodes=stream.machine_nodes,
        extra=extra,
        recipe=recipe,
    )


def _plain_table(stream: SwfStream) -> IntArray | None:
    """Return the jobs of a file by submission, then number; ``None`` if its lines must be read one by one."""
    if stream._feedback is not None or stream._waits is not None:
        return None
    dropped, repaired = Counter[str](), Counter[str]()
    prefer, other = stream._size_fields
    table = plain_jobs(
        stream.path, prefer=prefer, other=other, use_estimates=stream._use_estimates, dropped=dropped, repaired=repaired
    )
    if table is not None and stream._keep is not None:
        kept = list(filtered(map(JobRow._make, table.tolist()), stream._keep, dropped))
        table = np.array(kept, dtype=np.int64).reshape(-1, len(JobRow._fields))
    if table is None or not len(table):
        return None
    submit = table[:, 0]
    if moved := int((submit[1:] < submit[:-1]).sum()):
        repaired[_SORTED] += moved
    table = table[np.lexsort((table[:, 1], submit))]
    if len(distinct(table[:, 1])) < len(table):
        return None  # the reader of lines says where
    stream.provenance.dropped.update(dropped)
    stream.provenance.repaired.update(repaired)
    return table


def _feedback_columns(
    rows: Sequence[JobRow], feedback: Mapping[int, tuple[int, int]], repaired: Counter[str]
) -> ExtraColumns | None:
    """Return preceding jobs and think times of jobs in order of submission; ``None`` if no job has them."""
    submitted: set[int] = set()
    columns: dict[str, list[int]] = {PRECEDING: [], THINK: []}
    for row in rows:
        preceding, think = feedback.get(row.id, (UNKNOWN, UNKNOWN))
        if preceding != UNKNOWN and preceding not in submitted:
            repaired["preceding_job not submitted earlier, recorded submission used"] += 1
            preceding = think = UNKNOWN
        columns[PRECEDING].append(preceding)
        columns[THINK].append(think)
        submitted.add(row.id)
    if max(columns[PRECEDING]) == UNKNOWN:
        return None
    arrays = {name: np.array(values, dtype=np.int64) for name, values in columns.items()}
    return ExtraColumns(ids=np.array([row.id for row in rows], dtype=np.int64), columns=arrays)


def write_swf(path: str | os.PathLike[str], rows: Iterable[tuple[float, ...]], *, header: Iterable[tuple[str, object]]) -> None:
    """Write data lines of 18 numbers each (``-1`` for unknown) under the ``; Key: value`` lines of ``header``.

    Each line of a value gets a ``; Key:`` of its own.  A file whose name ends in ``.gz`` is compressed, without a time stamp,
    so that equal schedules give equal bytes.

    Raises:
        OutputError: the file cannot be written.
    """
    lines = [f"; {visible(key)}: {visible(line)}\n" for key, value in header for line in str(value).split("\n")]
    lines += [" ".join(_number(value) for value in row) + "\n" for row in rows]
    data = "".join(lines).encode()
    write_file(path, gzip.compress(data, mtime=0) if Path(path).suffix == ".gz" else data)


def _parse_with_wait(
    parse: _Parser,
    waits: dict[int, int],
    text: str,
    needed: Sequence[int],
) -> tuple[list[float], Sequence[str]]:
    """Return what ``parse`` does, and note in ``waits`` the recorded wait (ticks) of the job."""
    values, repairs = parse(text, needed)
    waits[int(values[0])] = to_ticks(values[2]) if 0 <= values[2] <= LONGEST_S else UNKNOWN
    return values, repairs


def _memory(kib: float) -> int:
    """Return an amount of memory in whole KiB; :data:`UNSET` where it is unknown, 0, or more than any node has."""
    return ceil(kib) if 0 < kib <= LARGEST_GIB * KIB_PER_GIB else UNSET


def _why_after(row: JobRow, last: JobRow) -> str:
    """Return why job ``last`` should be after ``row``, in words that follow its number."""
    if row.submit < last.submit:
        return "was submitted later"
    return "was submitted at the same time and has " + ("a higher number" if row.id < last.id else "the same number")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.6f}".rstrip("0")
