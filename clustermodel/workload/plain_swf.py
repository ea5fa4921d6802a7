"""Files in the Standard Workload Format read by columns: several times as fast as by lines, with the same jobs.

Only files are read so whose data lines are plain: 18 numbers of digits, at most one decimal point each, or ``-1``; no comment
after the header, no blank line, no partial execution.  Any other file is left to the reader of lines, which corrects values
and names the line of an error (:mod:`clustermodel.workload.swf`).
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import BoolArray, FloatArray, IntArray
from clustermodel.job import UNSET, JobRow
from clustermodel.memory_units import KIB_PER_GIB, LARGEST_GIB
from clustermodel.text_files import LONGEST_LINE, decompressed
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import LONGEST_S
from clustermodel.workload.swf_line import (
    ESTIMATE,
    GROUP,
    NUMBER,
    PARTIAL,
    REQUESTED_MEMORY,
    RUN,
    STATUS,
    SUBMIT,
    SWF_FIELDS,
    USED_MEMORY,
    USER,
    WHOLE_FIELDS,
)

_CHUNK: Final = 2**22  # bytes
_PLAIN: Final = b"0123456789-. \t\n"
_MOST_DIGITS: Final = 15
_FIELDS: Final = len(SWF_FIELDS)
_SPACE, _MINUS, _POINT, _ZERO, _ONE, _LINE_BREAK = b" -.01\n"
_Bytes = npt.NDArray[np.uint8]


class _NotPlainError(Exception):
    """A line is not plain."""


def plain_jobs(
    path: Path, *, prefer: int, other: int, use_estimates: bool, dropped: Counter[str], repaired: Counter[str]
) -> IntArray | None:
    """Return the jobs of a plain file in its order; ``None`` if it is not plain or cannot be read.

    Args:
        path: the file.
        prefer: the field of the size.
        other: the field that is used where ``prefer`` is missing.
        use_estimates: when false, every estimate is the run time.
        dropped: where jobs that are left out are counted by reason, unless ``None`` is returned.
        repaired: where values that are filled in are counted, unless ``None`` is returned.

    Returns:
        The columns of :class:`~clustermodel.job.JobRow`, times in ticks; shape ``(jobs, 13)``.
    """
    left_out, filled_in = Counter[str](), Counter[str]()
    try:
        tables = [
            _jobs(_Columns(text), prefer, other, left_out, filled_in, use_estimates=use_estimates) for text in _chunks(path)
        ]
    except (_NotPlainError, EOFError, OSError, zlib.error):
        return None
    dropped.update(+left_out)
    repaired.update(+filled_in)
    return np.concatenate(tables) if tables else None


def _chunks(path: Path) -> Iterator[bytes]:
    """Yield the data lines, some thousands at a time; each chunk ends with a line break."""
    with decompressed(path) as file:
        text = file.read(_CHUNK)
        while text.startswith(b";"):
            _, line_break, text = text.partition(b"\n")
            if not line_break:
                raise _NotPlainError
        while text:
            more = file.read(_CHUNK)
            if not more and not text.endswith(b"\n"):
                text += b"\n"
            end = text.rfind(b"\n") + 1
            if not end:
                raise _NotPlainError
            yield text[:end]
            text = text[end:] + more


class _Columns:
    """The numbers of plain lines.

    Args:
        text: the lines.

    Raises:
        _NotPlainError: a line is not plain.
    """

    def __init__(self, text: bytes) -> None:
        text = text.replace(b"\r\n", b"\n")
        if text.translate(None, _PLAIN):
            raise _NotPlainError
        self._text = text
        self._letters: _Bytes = np.frombuffer(text, dtype=np.uint8)
        blank = self._letters <= _SPACE
        edges = np.flatnonzero(np.diff(blank, prepend=True))
        if len(edges) % (2 * _FIELDS):
            raise _NotPlainError
        lines = np.flatnonzero(self._letters == _LINE_BREAK)
        words = edges.reshape(-1, _FIELDS, 2)
        self._begin, self._end = words[:, :, 0], words[:, :, 1]
        if len(lines) != len(words) or (self._end[:, -1] > lines).any() or (self._begin[1:, 0] < lines[:-1]).any():
            raise _NotPlainError
        if np.diff(lines, prepend=-1).max() > LONGEST_LINE:
            raise _NotPlainError
        self._require_minus_one(edges)
        self._pointed = self._with_point(edges)

    def _require_minus_one(self, edges: IntArray) -> None:
        """Refuse a minus sign that is not that of a word ``-1``."""
        minus = np.flatnonzero(self._letters == _MINUS)
        word = np.minimum(np.searchsorted(edges, minus), len(edges) - 2)
        if (edges[word] != minus).any() or (edges[word + 1] != minus + 2).any() or (self._letters[minus + 1] != _ONE).any():
            raise _NotPlainError

    def _with_point(self, edges: IntArray) -> BoolArray:
        """Return which words have a decimal point, shape ``(lines, fields)``."""
        word = (np.searchsorted(edges, np.flatnonzero(self._letters == _POINT), side="right") - 1) // 2
        pointed = np.zeros(self._begin.size, dtype=bool)
        pointed[word] = True
        alone = np.diff(edges)[::2][word] < 2
        if int(pointed.sum()) != len(word) or alone.any():
            raise _NotPlainError
        return pointed.reshape(self._begin.shape)

    def numbers(self, field: int) -> FloatArray:
        """Return the numbers of a field, shape ``(lines,)``.

        Raises:
            _NotPlainError: one is so large, or has a fraction where there must be none, that a line needs a closer look.
        """
        begin, width = self._begin[:, field], self._end[:, field] - self._begin[:, field]
        pointed = self._pointed[:, field]
        if (longest := int(width.max())) > _MOST_DIGITS:
            raise _NotPlainError
        whole = np.zeros(len(begin), dtype=np.int64)
        for place in range(longest):
            digit = self._letters[np.minimum(begin + place, len(self._letters) - 1)].astype(np.int64) - _ZERO
            whole = np.where(place < width, 10 * whole + digit, whole)
        values = whole.astype(np.float64)
        values[self._letters[begin] == _MINUS] = UNSET
        for line in np.flatnonzero(pointed).tolist():
            values[line] = float(self._text[begin[line] : begin[line] + width[line]])
        if values.max() > LONGEST_S or (field in WHOLE_FIELDS and (values[pointed] % 1).any()):
            raise _NotPlainError
        return values


def _jobs(
    columns: _Columns, prefer: int, other: int, dropped: Counter[str], repaired: Counter[str], *, use_estimates: bool
) -> IntArray:
    status = columns.numbers(STATUS)
    number = columns.numbers(NUMBER)
    if any((status == part).any() for part in PARTIAL) or (number < 0).any():
        raise _NotPlainError
    submit, run, estimate, size, substitute = (columns.numbers(field) for field in (SUBMIT, RUN, ESTIMATE, prefer, other))
    left = np.ones(len(number), dtype=bool)
    for reason, wrong in (
        ("submit time missing", submit < 0),
        ("run time missing", run < 0),
        ("run time zero", run == 0),
        ("number of processors missing", (size <= 0) & (substitute <= 0)),
    ):
        dropped[reason] += int((left & wrong).sum())
        left &= ~wrong
    repaired[f"{SWF_FIELDS[prefer]} missing, {SWF_FIELDS[other]} used"] += int((left & (size <= 0)).sum())
    if use_estimates:
        repaired[f"{SWF_FIELDS[ESTIMATE]} missing, run_time used"] += int((left & (estimate <= 0)).sum())
    else:
        estimate = run
    used, requested = columns.numbers(USED_MEMORY), columns.numbers(REQUESTED_MEMORY)
    memory = np.where(requested > 0, requested, used)
    known = (memory > 0) & (memory <= LARGEST_GIB * KIB_PER_GIB)
    values = {
        "submit": _ticks(submit),
        "id": number,
        "nodes": np.where(size > 0, size, substitute),
        "run": np.maximum(_ticks(run), 1),
        "estimate": np.maximum(_ticks(np.where(estimate > 0, estimate, run)), 1),
        "user": columns.numbers(USER),
        "group": columns.numbers(GROUP),
        "priority": np.zeros(len(number)),
        "status": status,
        "memory": np.where(known, np.ceil(memory), UNSET),
    }
    table = np.full((int(left.sum()), len(JobRow._fields)), UNSET, dtype=np.int64)
    for name, column in values.items():
        table[:, JobRow._fields.index(name)] = column[left]
    return table


def _ticks(seconds: FloatArray) -> FloatArray:
    return np.rint(seconds * TICKS_PER_SECOND)
