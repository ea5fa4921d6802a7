"""The Standard Workload Format of the Parallel Workloads Archive: reading traces, streaming them, writing them.

A data line has 18 numbers, and perhaps further columns, which are left out; ``-1`` means unknown; lines that start with ``;``
are comments, of which ``; Key: value`` are kept as metadata.  Jobs that are left out and values that are filled in are counted
by reason.  A wrong value is an error only if a result depends on it; docs/guide_trace has the rule of each field.  Lines are
read some thousands together, as an array.  Only lines with an unusual number are looked at word by word: that corrects values,
or says what is wrong.

A job that was preempted, or swapped out, may have a line of its own and, next to it, a line for each part: status 2, the job
ran again later; 3 or 4, the last part, after which the job had completed or failed (header ``Preemption: Double``).  Only the
line of the whole job is used.  A job may also have lines of its parts only (``Preemption: Yes``); then it is summed up from
them.  All lines of a job follow each other (Chapin et al. 1999).
"""

from __future__ import annotations

import logging
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from itertools import chain, pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NamedTuple
from warnings import catch_warnings

import numpy as np

from clustermodel import validation
from clustermodel.arrays import BoolArray, FloatArray, IntArray, distinct
from clustermodel.errors import TraceError, counted, quoted, shown, visible
from clustermodel.text.files import LONGEST_LINE, text_blocks, without_compression, write_file
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import LARGEST_WHOLE, LONGEST_S, flag
from clustermodel.workload import job_columns as extras
from clustermodel.workload.job import NUMBERS, SINGLETON, UNSET, JobRow, row_of
from clustermodel.workload.job_columns import table_of
from clustermodel.workload.provenance import MEMORY, Provenance, Recipe
from clustermodel.workload.table import Workload
from clustermodel.workload.transforms import (
    ID,
    SELECTED,
    SUBMIT,
    JobFilter,
    LoadScale,
    chosen_numbers,
    filtered,
    require_selectable,
    scaled,
)

_log = logging.getLogger(__name__)

SWF_FIELDS: Final = (
    "job_number", "submit_time", "wait_time", "run_time", "allocated_processors", "average_cpu_time", "used_memory",
    "requested_processors", "requested_time", "requested_memory", "status", "user_id", "group_id", "executable", "queue",
    "partition", "preceding_job", "think_time",
)  # fmt: skip
"""The 18 fields of a data line, in order."""
UNKNOWN: Final = -1

FAILED, COMPLETED, CONTINUED_PART, COMPLETED_PART, FAILED_PART, CANCELLED = range(6)
PARTIAL: Final = (CONTINUED_PART, COMPLETED_PART, FAILED_PART)
"""Statuses of partial executions: one that is followed by another one, and the last one of a job that completed or failed."""

# Consecutive comments and blank lines, header included, and their characters, so that the memory of a stream is bounded.
MOST_LINES_WITHOUT_JOB, MOST_TEXT_WITHOUT_JOB = 100_000, 2**20
LONGEST_NAMES: Final = 500_000
"""Characters of the names in a header; columns whose names would make it longer go to a file of their own."""

NUMBER, SUBMITTED, WAIT, RUN, ALLOCATED, AVERAGE_CPU, USED_MEMORY, REQUESTED, ESTIMATE, REQUESTED_MEMORY = range(10)
STATUS, USER, GROUP, EXECUTABLE, QUEUE, PARTITION, PRECEDING, THINK = range(10, 18)
_WHOLE: Final = (NUMBER, ALLOCATED, REQUESTED, STATUS, USER, GROUP, QUEUE, PARTITION)
_DECISIVE: Final = (NUMBER, SUBMITTED, RUN)  # they decide whether a line is a job
_EXTRA: Final = {
    extras.WAIT: WAIT, extras.PRECEDING: PRECEDING, extras.THINK: THINK, extras.ACCOUNT: GROUP, extras.PARTITION: PARTITION,
    extras.QOS: QUEUE, extras.QUEUE: QUEUE,
}  # fmt: skip
_ARE_ACCOUNTS, _ARE_QOS = ("Groups", "accounts"), ("Queues", "QOS")  # lines of a header: what takes a field
_NAMED_IN_HEADER: Final = re.compile(r"([0-9]{1,10})\s+(\S.*)")

_BLOCK: Final = 4096  # lines
_STATUS_OF_JOB: Final = {COMPLETED_PART: COMPLETED, FAILED_PART: FAILED}
FURTHER: Final = "further columns, after the 18 of SWF, left out"
_WITH_WHOLE: Final = "the line of the whole job was used"
_SUMMED_UP: Final = "no line of the whole job, summed up from its partial executions"


class Lines(NamedTuple):
    """Some thousand data lines of a file."""

    numbers: IntArray  # of the lines, from 1
    table: FloatArray  # the 18 numbers of each, UNKNOWN where a value is missing or wrong
    repairs: dict[int, Sequence[str]]  # what was corrected, by line number

    def at(self, chosen: BoolArray | slice) -> Lines:
        """Return some of the lines."""
        return Lines(self.numbers[chosen], self.table[chosen], self.repairs)


class SwfStream:
    """A trace read in constant memory; it can be iterated repeatedly.

    The jobs must be in order of submission, as in nearly every trace of the archive (:func:`read_swf` sorts them).  Sizes are
    the ``"allocated"`` or ``"requested"`` processors; if that field is missing, the other is used, and counted.  Without
    ``use_estimates`` every estimate is the run time.  ``scale`` is applied to the jobs that ``keep`` selects.  ``lenient``:
    count and skip malformed lines instead of raising.  Jobs whose memory is unknown need ``default_memory_gib`` per node, and
    are counted.

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
        is_known = processors_from in ("allocated", "requested")
        validation.require(is_known, "processors_from", processors_from, "it must be 'allocated' or 'requested'")
        self.path = Path(path)
        self.name = without_compression(self.path.name).removesuffix(".swf")
        sizes = (ALLOCATED, REQUESTED)
        self._sizes = sizes if processors_from == "allocated" else sizes[::-1]  # the second is used if the first is missing
        self._use_estimates, self._keep, self._scale, self._lenient = use_estimates, keep, scale, lenient
        options: dict[str, Any] = {
            "processors_from": processors_from, "use_estimates": use_estimates, "scale": scale, "lenient": lenient,
        }  # fmt: skip
        self._default_memory = None
        if default_memory_gib is not None:
            options[MEMORY] = self._default_memory = validation.require_gib("SwfStream.default_memory_gib", default_memory_gib)
        self.provenance = Provenance(source=str(path), options={**options, "filter": keep}, header=read_header(self.path))
        self.header_names = _names_in(self.provenance.header)
        """The names of users, groups, queues and so on in the header, by the column that their field is, then by number."""
        numbers = _numbers_of(self.header_names)
        self._chosen = chosen_numbers(keep, numbers, self.name, by_number=numbers)
        arguments = {"trace": self.path, "stream": True, **options, "keep": keep}
        self.recipe = Recipe(source="trace", arguments=arguments, name=self.name, machine_nodes=self.machine_nodes)
        """How to make the same stream again."""
        self.malformed: list[str] = []
        """Messages of the first ten lines that were skipped as ``lenient``."""
        self.recorded: set[str] = set()
        """Columns of users, queues and so on that jobs were seen to have, if jobs are selected."""

    @property
    def machine_nodes(self) -> int | None:
        """``MaxProcs`` of the header, else ``MaxNodes``, else ``None``; an invalid size counts as unknown."""
        for key in ("MaxProcs", "MaxNodes"):
            number = re.match(r"\s*([0-9]{1,20})(?!\S)", self.provenance.header.get(key, ""))
            if number and 0 < int(number[1]) <= LARGEST_WHOLE:
                return int(number[1])
        return None

    def __eq__(self, other: object) -> bool:
        """Return whether this is a stream of the same file, read in the same way."""
        if not isinstance(other, SwfStream):
            return NotImplemented
        first, second = ({**each.recipe.arguments, "trace": each.path.absolute()} for each in (self, other))
        return self.name == other.name and first == second

    def __hash__(self) -> int:
        return hash(self.path.absolute())

    def rows(self) -> Iterator[JobRow]:
        """Yield the jobs in file order; TraceError if one was submitted before the job on the line above."""
        last = first_submit = None
        for table, lines in self.tables():
            if self._scale is not None and len(table):
                first_submit = int(table[0, SUBMIT]) if first_submit is None else first_submit
                table = scaled(table, self._scale, first_submit)  # noqa: PLW2901
            rows = map(row_of, zip(*table.T.tolist(), [None] * len(table), strict=True))
            for line, row in zip(lines.tolist(), rows, strict=True):
                if last is not None and row < last:
                    why = "was submitted later"
                    if row.submit == last.submit:
                        number = "a higher number" if row.id < last.id else "the same number"
                        why = f"was submitted at the same time and has {number}"
                    raise TraceError(
                        f"{self.path}:{line}: job {row.id} stands after job {last.id}, which {why}; a stream must be in "
                        "order of submission: read the file with read_swf, which sorts (without --stream)"
                    )
                last = row
                yield row

    def tables(self, extra: Sequence[str] = ()) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the jobs that are kept in file order, not scaled, some thousands at a time, with their line numbers.

        The columns are ``NUMBERS``, then the ``extra`` ones; queues and so on are numbers.
        """
        provenance = self.provenance
        for counts in (provenance.dropped, provenance.repaired, provenance.partial, self.malformed):
            counts.clear()
        needed = [*_DECISIVE, self._sizes[0], *[ESTIMATE] * self._use_estimates]
        needed += [_EXTRA[name] for name in extra if name in (extras.PRECEDING, extras.THINK)]
        width = len(NUMBERS) + len(extra)
        columns = [*extra, *(name for name in self._chosen if name not in (*NUMBERS, *extra))]
        place = {name: number for number, name in enumerate((*NUMBERS, *columns))}
        blocks = data_lines(self.path, needed, lenient=self._lenient, dropped=provenance.dropped, messages=self.malformed)
        for block in _whole_jobs(self.path, blocks, provenance.partial):
            table, lines = self._jobs(block, columns)
            if self._keep is None:
                yield table, lines
                continue
            values = {name: table[:, place[name]] for name in SELECTED.values() if name in place}
            self.recorded.update(name for name, numbers in values.items() if (numbers >= 0).any())
            chosen = {name: (values[name], numbers) for name, numbers in self._chosen.items()}
            kept = filtered(table, self._keep, provenance.dropped, chosen)
            yield table[kept, :width], lines[kept]

    def _jobs(self, block: Lines, extra: Sequence[str]) -> tuple[IntArray, IntArray]:
        """Return the jobs of a block, and their lines; count those that are left out and what is filled in."""
        dropped, repaired = self.provenance.dropped, self.provenance.repaired
        prefer, other = self._sizes
        left = np.ones(len(block.numbers), dtype=bool)
        for reason, wrong in (
            ("submit time missing", block.table[:, SUBMITTED] < 0),
            ("run time missing", block.table[:, RUN] < 0),
            ("run time zero", block.table[:, RUN] == 0),
            ("number of processors missing", (block.table[:, [prefer, other]] <= 0).all(axis=1)),
        ):
            _count(dropped, reason, left & wrong)
            left &= ~wrong
        block = block.at(left)
        fields = block.table.T
        run, size, estimate = fields[RUN], fields[prefer], fields[ESTIMATE] if self._use_estimates else fields[RUN]
        negative = (estimate < 0) & (estimate != UNKNOWN)
        kib = np.where(fields[REQUESTED_MEMORY] > 0, fields[REQUESTED_MEMORY], fields[USED_MEMORY])
        known = (kib > 0) & (kib <= validation.LARGEST_GIB * validation.KIB_PER_GIB)
        memory = np.ceil(np.where(known, kib, UNSET))
        _count(repaired, f"{SWF_FIELDS[prefer]} missing, {SWF_FIELDS[other]} used", size <= 0)
        _count(repaired, "requested_time negative, run_time used", negative)
        _count(repaired, "requested_time missing, run_time used", (estimate <= 0) & ~negative)
        if self._default_memory is not None:
            _count(repaired, validation.default_used(self._default_memory), ~known)
            memory[~known] = validation.to_kib(self._default_memory)
        for line in block.repairs.keys() & set(block.numbers.tolist()):
            repaired.update(block.repairs[line])
        most = 2 * LONGEST_S  # above all job numbers, and fits 64 bits
        columns = {name: np.minimum(fields[_EXTRA[name]], most) for name in extra}
        for name in {extras.WAIT, extras.THINK} & columns.keys():
            seconds = columns[name]
            is_time = (seconds >= 0) & (seconds <= LONGEST_S) | (name == extras.THINK)
            columns[name] = np.where(is_time, _ticks(seconds.clip(min=0)), UNSET)
        table = table_of(
            submit=_ticks(fields[SUBMITTED]),
            id=fields[NUMBER],
            nodes=np.where(size > 0, size, fields[other]),
            run=np.maximum(_ticks(run), 1),
            estimate=np.maximum(_ticks(np.where(estimate > 0, estimate, run)), 1),
            user=fields[USER],
            group=UNSET if extras.ACCOUNT in self.header_names else fields[GROUP],
            status=fields[STATUS],
            memory=memory,
            **columns,
        )
        return table, block.numbers


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

    With ``feedback`` a job with a preceding job (field 17) is submitted a think time (field 18, 0 if unknown) after that job
    has completed in the simulation; its recorded submission is used where the preceding job is not in the workload or was not
    submitted earlier.  By default all recorded submissions are used.  With ``waits`` the column ``wait`` has the recorded
    waits (field 3); no schedule depends on them.  The columns ``queue`` and ``partition`` (fields 15 and 16) have the names
    of the header (``; Queue: 1 express``), else the numbers as texts, if any job has one; names of users and groups are those
    of ``; UserMap:`` and ``; GroupMap:``.

    Raises:
        TraceError: the file cannot be read, is damaged, has a malformed line, two jobs with the same number, or no usable job.
        SpecificationError: an option has a value that is not allowed.
    """
    began = perf_counter()
    stream = SwfStream(
        path, processors_from=processors_from, use_estimates=use_estimates, keep=keep, scale=scale, lenient=lenient
    )
    provenance = stream.provenance
    named = [name for name in extras.NAMED_COLUMNS if name in stream.header_names]
    extra = [extras.WAIT] * flag("waits", waits) + named + [extras.PRECEDING, extras.THINK] * flag("feedback", feedback)
    blocks = list(stream.tables(extra))
    if not sum(len(table) for table, _ in blocks):
        if recorded := [name for name in SELECTED.values() if name in stream.recorded]:
            require_selectable(keep, recorded, stream.name)
        because = "; ".join(provenance.lines()) or "the file has no job lines"
        raise TraceError(f"{path}: no usable job: {because}")
    first, every = len(NUMBERS), extra
    extra = [
        name
        for place, name in enumerate(every, start=first)
        if name not in named or any((table[:, place] >= 0).any() for table, _ in blocks)
    ]
    if len(extra) < len(every):  # no job has a partition, or a queue
        columns = [*range(first), *(first + every.index(name) for name in extra)]
        chosen = slice(len(columns)) if columns[-1] < len(columns) else columns
        blocks = [(table[:, chosen], lines) for table, lines in blocks]
    table, lines = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    unsorted = table[1:, SUBMIT] < table[:-1, SUBMIT]
    _count(provenance.repaired, "submitted before the job on the line above, sorted", unsorted)
    order = np.lexsort((table[:, ID], table[:, SUBMIT]))
    table = table[order]
    ids = table[:, ID]
    if len(distinct(ids)) < len(ids):
        number, times = Counter(ids.tolist()).most_common(1)[0]
        first, second, *_ = sorted(lines[order][ids == number].tolist())
        raise TraceError(
            f"{path}:{second}: field job_number: {number} is used by {times} jobs, first on line {first}; "
            f"job numbers must be unique{', and the partial executions of a job follow each other' * bool(provenance.partial)}"
        )
    _log.info("read %s: %s jobs in %.2f s", path, f"{len(table):,}", perf_counter() - began)
    if feedback:
        preceding, by_id = table[:, -2], np.argsort(ids)
        place = by_id[np.searchsorted(ids, preceding, sorter=by_id).clip(max=len(ids) - 1)]
        earlier = (ids[place] == preceding) & (place < np.arange(len(ids)))
        reason = "preceding_job not submitted earlier, recorded submission used"
        _count(provenance.repaired, reason, preceding[~earlier] != UNKNOWN)
        table[~earlier, -2:] = UNKNOWN
        if not earlier.any():
            table, extra = table[:, :-2], extra[:-2]
    if scale is not None:
        table = scaled(table, scale, int(table[0, SUBMIT]), think=table.shape[1] - 1 if extras.THINK in extra else None)
    names = {name: texts for name in ("user", "group") if (texts := extras.names_in_a_row(stream.header_names.get(name, {})))}
    for name in [name for name in named if name in extra]:
        column = table[:, first + extra.index(name)]
        column[:], names[name] = _by_name(column, stream.header_names[name])
    arguments = {**stream.recipe.arguments, "stream": False, "feedback": feedback, "waits": waits}
    return Workload(
        table,
        name=stream.name,
        provenance=provenance,
        machine_nodes=stream.machine_nodes,
        extra=extra,
        names=names,
        recipe=replace(stream.recipe, arguments=arguments),
    )


def _names_in(header: Mapping[str, str]) -> dict[str, dict[int, str]]:
    """Return the columns that users, groups, queues and partitions of a file are, and the names that its header has."""
    (groups, accounts), (queues, qos) = _ARE_ACCOUNTS, _ARE_QOS
    keys = {
        "user": "UserMap",
        extras.ACCOUNT if header.get(groups) == accounts else "group": "GroupMap",
        extras.QOS if header.get(queues) == qos else extras.QUEUE: "Queue",
        extras.PARTITION: "Partition",
    }
    lines = {column: map(_NAMED_IN_HEADER.fullmatch, header.get(key, "").split("\n")) for column, key in keys.items()}
    return {column: {int(line[1]): line[2] for line in named if line} for column, named in lines.items()}


def _numbers_of(names: Mapping[str, Mapping[int, str]]) -> dict[str, dict[str, list[int]]]:
    """Return the numbers of each name, by column; several numbers may have one name."""
    numbers: dict[str, dict[str, list[int]]] = {column: {} for column in names}
    for column, texts in names.items():
        for number, text in texts.items():
            numbers[column].setdefault(text, []).append(number)
    return numbers


def _by_name(column: IntArray, names: Mapping[int, str]) -> tuple[IntArray, tuple[str, ...]]:
    """Return the numbers of names from 1, ``UNSET`` where a job has none, and the names; a number without one is a text."""
    numbers, texts = distinct(column), dict[str, int]()
    codes = [
        UNSET if number < 0 else texts.setdefault(names.get(number, str(number)), len(texts) + 1) for number in numbers.tolist()
    ]
    return np.array(codes)[np.searchsorted(numbers, column)], tuple(texts)


def _count(counts: Counter[str], reason: str, jobs: BoolArray) -> None:
    if number := int(jobs.sum()):
        counts[reason] += number


def _ticks(seconds: FloatArray) -> FloatArray:
    return np.rint(seconds * TICKS_PER_SECOND)


def read_header(path: Path) -> dict[str, str]:
    """Return the ``; Key: value`` comments before the first data line; values of the same key are joined by line breaks."""
    header: dict[str, list[str]] = {}
    for text in chain.from_iterable(texts for _, texts, _ in _texts(path)):
        if text and text[0] != ";":
            break
        key, colon, value = text.lstrip("; \t").partition(":")
        if colon and key and " " not in key.strip():
            header.setdefault(key.strip(), []).append(value.strip())
    return {key: "\n".join(values) for key, values in header.items()}


def data_lines(
    path: Path, needed: Sequence[int], *, lenient: bool, dropped: Counter[str], messages: list[str]
) -> Iterator[Lines]:
    """Yield the data lines of a file, some thousand at a time.  Results depend on the fields ``needed``."""
    # If lenient, malformed lines are dropped and the first ten messages kept; else the first one raises after the lines before.
    for first, texts, has_others in _texts(path):
        numbers: Sequence[int] = range(first, first + len(texts))
        if has_others:
            data = [(number, text) for number, text in zip(numbers, texts, strict=True) if text and text[0] != ";"]
            if not data:
                continue
            numbers, texts = zip(*data, strict=True)  # noqa: PLW2901
        table, further = _numbers(texts)
        whole = table[:, [*_WHOLE, PRECEDING]]
        usual = ((table >= 0) & (table <= LONGEST_S) | (table == UNKNOWN)).all(axis=1)
        usual &= (table[:, NUMBER] >= 0) & (whole == np.rint(whole)).all(axis=1)
        lines = Lines(
            np.array(numbers), table, {numbers[place]: [FURTHER] for place in np.flatnonzero(further & usual).tolist()}
        )
        good = np.ones(len(numbers), dtype=bool)
        for place in np.flatnonzero(~usual).tolist():
            number = numbers[place]
            try:
                table[place], lines.repairs[number] = _corrected(texts[place], needed)
            except ValueError as problem:
                message = f"{path}:{number}: {problem}"
                if not lenient:
                    good[place:] = False
                    if good.any():
                        yield lines.at(good)
                    raise TraceError(message) from None
                good[place] = False
                dropped["malformed line"] += 1
                if len(messages) < 10:
                    messages.append(message)
        if good.any():
            yield lines.at(good)


def _texts(path: Path) -> Iterator[tuple[int, Sequence[str], bool]]:
    """Yield the number of the first of some thousand lines, the lines without margins, and whether some may have no job."""
    number, others, length = 1, 0, 0  # others: consecutive lines without a job, and their characters
    for lines in text_blocks(path, newline=None, longest=LONGEST_LINE, most=_BLOCK):
        texts = list(map(str.strip, lines))
        if has_others := not {text[:1] for text in texts}.isdisjoint(("", ";")):
            for place, text in enumerate(texts):
                others, length = (0, 0) if text and text[0] != ";" else (others + 1, length + len(lines[place]) + 1)
                if others > MOST_LINES_WITHOUT_JOB or length > MOST_TEXT_WITHOUT_JOB:
                    yield number, texts[:place], True
                    raise TraceError(
                        f"{path}:{number + place}: more than {MOST_LINES_WITHOUT_JOB:,} lines or {MOST_TEXT_WITHOUT_JOB:,} "
                        "characters of comments and blank lines without a job in between"
                    )
        else:
            others = length = 0
        yield number, texts, has_others
        number += len(lines)


def _numbers(texts: Sequence[str]) -> tuple[FloatArray, BoolArray]:
    """Return the first 18 numbers of lines, shape ``(lines, 18)``, and which lines have further ones.

    It is ``nan`` in a line without 18 numbers, and in a few beside it.
    """
    fields = len(SWF_FIELDS)
    for kind in (np.int64, np.float64):  # whole numbers are read faster
        with suppress(ValueError, DeprecationWarning), catch_warnings(category=DeprecationWarning, action="error"):
            table = np.loadtxt(texts, kind, comments=None, ndmin=2)
            if len(table) == len(texts) and fields <= table.shape[1] < 2 * fields:
                return table[:, :fields].astype(np.float64), np.full(len(texts), table.shape[1] > fields)
    if len(texts) <= 16:  # few enough to look at each
        return np.full((len(texts), fields), np.nan), np.zeros(len(texts), dtype=bool)
    middle = len(texts) // 2
    (first, some), (second, others) = _numbers(texts[:middle]), _numbers(texts[middle:])
    return np.concatenate([first, second]), np.concatenate([some, others])


def _corrected(text: str, needed: Sequence[int]) -> tuple[list[float], Sequence[str]]:
    """Return the 18 numbers of a line, :data:`UNKNOWN` for wrong ones on which no result depends, and what was corrected."""
    words, fields = text.split(), len(SWF_FIELDS)
    # Some logs have further columns; twice as many are two lines, and a semicolon begins a comment.
    if not fields <= len(words) < 2 * fields or any(word.startswith(";") for word in words):
        raise ValueError(f"{counted(len(words), 'field')}; a data line has {fields}")
    further, words = words[fields:], words[:fields]
    wrong = {field: problem for field, word in enumerate(words) if (problem := _problem(field, word, needed))}
    values = [UNKNOWN if field in wrong else float(word) for field, word in enumerate(words)]
    counts = (values[SUBMITTED] >= 0 and values[RUN] > 0) or values[STATUS] in PARTIAL  # else no job anyway
    for field in needed if counts else _DECISIVE:
        if field in wrong:
            raise ValueError(f"field {SWF_FIELDS[field]}: {wrong[field]}")
    kept = (STATUS, USER, GROUP)  # with the job; no schedule depends on them
    repairs = [f"{SWF_FIELDS[field]} invalid, {'unknown (-1) used' if field in kept else 'ignored'}" for field in wrong]
    return values, [*repairs, *[FURTHER] * bool(further)]


def _problem(field: int, word: str, needed: Sequence[int]) -> str:
    """Return what is wrong with a word in a field; empty if nothing is."""
    value = None
    if word.isascii() and "_" not in word:  # Python's float accepts more than the format: 1_000, and the digits of all scripts
        with suppress(ValueError):
            value = float(word)
    if value is None or not math.isfinite(value):
        return f"{quoted(word)} is not a {'' if value is None else 'finite '}number"
    if value < 0 and (value != UNKNOWN or field == NUMBER) and field != ESTIMATE:  # a negative estimate is a missing one
        return f"{shown(word)} is not allowed; it must be {'>= 0' if field == NUMBER else '>= 0, or -1 for unknown'}"
    if value % 1 and (field in _WHOLE or (field == PRECEDING and field in needed)):
        return f"{shown(word)} is not a whole number"
    is_limited = field in (*_WHOLE, SUBMITTED, RUN, ESTIMATE) or (field in (WAIT, THINK) and field in needed)
    return f"{shown(word)} is not allowed; it must be <= {LONGEST_S:g}" if value > LONGEST_S and is_limited else ""


def _whole_jobs(path: Path, blocks: Iterable[Lines], partial: Counter[str]) -> Iterator[Lines]:
    """Yield a line for each job: the line of the whole job, or one that sums up its partial executions."""
    # In the latter, run time is the sum of the parts, the status follows from the last part, and all else is of the first.
    whole = float(UNKNOWN)  # number of the last job with a line of its own
    end = Lines(np.empty(0, dtype=np.int64), np.empty((0, len(SWF_FIELDS))), {})
    rest = end  # the last job of the block before, if it has parts only: this block may have more of them
    for block in chain(blocks, [end]):
        lines = block
        if len(rest.numbers):
            numbers, table = np.append(rest.numbers, block.numbers), np.concatenate([rest.table, block.table])
            lines, rest = Lines(numbers, table, {**rest.repairs, **block.repairs}), end
        number, run, status = (lines.table[:, field] for field in (NUMBER, RUN, STATUS))
        part = np.isin(status, PARTIAL)
        kept = ~part
        if kept.all() and len(number):
            whole = number[-1]
        firsts = [] if kept.all() else np.flatnonzero(np.diff(number, prepend=np.nan)).tolist()
        for first, after in pairwise([*firsts, len(number)]):  # the lines of a job follow each other
            parts = int(part[first:after].sum())
            if parts < after - first:
                whole = number[first]
            if parts and number[first] == whole:
                partial[_WITH_WHOLE] += parts
            if number[first] == whole:
                continue
            sums = run[first:after].clip(min=0).cumsum()
            if (long := np.flatnonzero(sums > LONGEST_S)).size:
                raise TraceError(
                    f"{path}:{lines.numbers[first + long[0]]}: field run_time: the partial executions of job "
                    f"{number[first]:g} sum up to {sums[long[0]]:g} s; at most {LONGEST_S:g} s are allowed"
                )
            if after == len(number) and block is not end:
                rest = lines.at(slice(first, None))
                continue
            kept[first] = True
            run[first] = sums[-1] if (run[first:after] >= 0).any() else UNKNOWN
            status[first] = _STATUS_OF_JOB.get(int(status[after - 1]), UNKNOWN)
            partial[_SUMMED_UP] += parts
            line = int(lines.numbers[first])
            lines.repairs[line] = [*lines.repairs.get(line, ()), _SUMMED_UP]
        if kept.any():
            yield lines if kept.all() else lines.at(kept)


def write_swf(path: str | os.PathLike[str], rows: Iterable[tuple[float, ...]], *, header: Iterable[tuple[str, object]]) -> None:
    """Write data lines of 18 numbers each (``-1`` for unknown) under a ``; Key: value`` for each line of a value of ``header``.

    A file whose name ends in ``.gz`` is compressed, without a time stamp, so that equal schedules give equal bytes; so are
    ``.bz2`` and ``.xz``.  Raises OutputError if the file cannot be written.
    """
    lines = [f"; {visible(key)}: {visible(line)}\n" for key, value in header for line in str(value).split("\n")]
    for row in rows:
        words = (str(int(value)) if value == int(value) else f"{value:.6f}".rstrip("0") for value in row)
        lines.append(" ".join(words) + "\n")
    write_file(path, "".join(lines))


def write_trace(path: str | os.PathLike[str], workload: Workload) -> list[str]:
    """Write a workload as an SWF trace, with what an accounting log has recorded; ``.gz`` is compressed.

    Fields that the workload does not have are -1.  Users, groups, queues (or QOS), partitions and executables (job names) are
    numbers; the names are ``; UserMap: 1 alice`` and the like in the header (``Queue`` and ``Partition`` as the format has
    them).  Without groups, accounts take their field, and without queues QOS theirs, which the header says.  Names that are
    too many for a header go to ``PATH.names.csv``.  :func:`read_swf` reads all of them but job names, and none of that file.

    Returns notes about data that SWF has no field for, and the path of the file of names.  Raises
    OutputError if a file cannot be written.
    """
    columns, header_of_names, separate = named_fields(workload)
    groups, queues = columns["GroupMap"], columns["Queue"]
    known, report, size = workload.provenance.header, workload.provenance.report, workload.machine_nodes
    header: list[tuple[str, object]] = [
        ("Version", "2.2"),
        ("Computer", known.get("Computer", workload.name)),
        ("Conversion", f"clustermodel {version('clustermodel')}"),
        ("MaxJobs", len(workload)),
        ("MaxRecords", len(workload)),
        *((key, known[key]) for key in ("UnixStartTime", "TimeZoneString", "StartTime", "EndTime") if key in known),
        *([("MaxNodes", size), ("MaxProcs", size)] if size else []),
        ("Note", f"from {Path(workload.provenance.source).name}" + (f"; processors are {report.unit}" if report else "")),
        *(("Note", line) for line in workload.provenance.lines()),
    ]
    write_swf(path, _rows_of(workload, groups, queues), header=[*header, *header_of_names])
    without_field = {
        extras.ACCOUNT: "accounts", extras.GPUS: "GPUs", extras.SUSPENDED: "suspended time",
        extras.HELD: "time before jobs were eligible",
        extras.REQUEUES: "run attempts before this one", extras.ARRAY_LIMIT: "limits of job arrays",
        SINGLETON: "singletons", "features": "features of nodes",
        extras.NODE_COUNT: "nodes and cores together" if workload.has(extras.CORES) else "", extras.QOS: "QOS",
    }  # fmt: skip
    lost = [
        text
        for name, text in without_field.items()
        if text and name not in columns.values() and (workload.column(name) > 0).any()
    ]
    lost += ["dependencies between jobs"] if len(workload.dependencies) else []
    notes = []
    if lost:
        notes.append(f"not in the SWF file: {', '.join(lost)}")
    if separate:
        import pandas as pd

        names_path = f"{os.fspath(path)}.names.csv"
        rows = [(key, number, name) for key, texts in separate.items() for number, name in enumerate(texts, start=1)]
        table = pd.DataFrame(rows, columns=["map", "number", "name"])
        write_file(names_path, table.to_csv(index=False, lineterminator="\n"))
        notes.append(f"names, too many for the header: {', '.join(separate)} in {names_path}")
    return notes


def named_fields(workload: Workload) -> tuple[dict[str, str], list[tuple[str, object]], dict[str, tuple[str, ...]]]:
    """Return the columns whose numbers have names, by key of the header, the lines of the header, and names too many for it."""
    groups = "group" if (workload.column("group") != UNSET).any() or not workload.has(extras.ACCOUNT) else extras.ACCOUNT
    queues = extras.QUEUE if workload.has(extras.QUEUE) or not workload.has(extras.QOS) else extras.QOS
    columns = {
        "Partition": extras.PARTITION, "Queue": queues, "GroupMap": groups, "UserMap": "user", "ExecutableMap": extras.JOB_NAME,
    }  # fmt: skip
    lines: list[tuple[str, object]] = [*[_ARE_ACCOUNTS] * (groups == extras.ACCOUNT), *[_ARE_QOS] * (queues == extras.QOS)]
    separate, left = {}, LONGEST_NAMES
    for key, column in columns.items():
        texts = tuple(map(visible, workload.names.get(column, ())))
        length = sum(len(text) + len(key) + 16 for text in texts)
        if length > left or any(len(text) > 10_000 for text in texts):
            separate[key] = texts
        else:
            left -= length
            lines += [(key, f"{number} {text}") for number, text in enumerate(texts, start=1)]
    return columns, lines, separate


def _rows_of(workload: Workload, groups: str, queues: str) -> Iterator[tuple[float, ...]]:
    """Yield the data lines, made of a few thousand jobs at a time."""

    def values(name: str) -> FloatArray | IntArray:
        column = workload.column(name)
        if name in ("submit", extras.WAIT, "run", "estimate", extras.THINK):
            return np.where(column < 0, UNSET, column / TICKS_PER_SECOND)
        return column if name == "id" else column.clip(min=UNSET)

    names = (
        "id", "submit", extras.WAIT, "run", "nodes", None, None, None, "estimate", "memory", "status", "user", groups,
        extras.JOB_NAME, queues, extras.PARTITION, extras.PRECEDING, extras.THINK,
    )  # fmt: skip
    unknown = np.full(len(workload), UNSET)
    columns = [unknown if name is None else values(name) for name in names]
    columns[THINK] = np.where(columns[PRECEDING] == UNSET, UNSET, columns[THINK])
    for start in range(0, len(workload), _BLOCK):
        yield from zip(*(column[start : start + _BLOCK].tolist() for column in columns), strict=True)
