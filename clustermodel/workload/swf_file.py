"""A trace file in the Standard Workload Format as lines of text: compressed or not, and never more than memory holds.

At most :data:`MOST_LINES_WITHOUT_JOB` lines and :data:`MOST_TEXT_WITHOUT_JOB` characters of comments and blank lines may
follow each other, header included, and lines are limited too (``clustermodel.text_files.LONGEST_LINE``).  So the
memory of a stream is bounded, whatever the file has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from clustermodel.errors import TraceError
from clustermodel.text_files import numbered_lines
from clustermodel.workload.swf_line import DataLine

MOST_LINES_WITHOUT_JOB: Final = 100_000
"""Largest number of consecutive comments and blank lines."""
MOST_TEXT_WITHOUT_JOB: Final = 2**20
"""Largest number of characters in these lines together; also limits the header."""

_MALFORMED: Final = "malformed line"
_MOST_MESSAGES: Final = 10


def data_lines(
    path: Path,
    parse: Callable[[str], tuple[list[float], Sequence[str]]],
    *,
    lenient: bool,
    dropped: Counter[str],
    messages: list[str],
) -> Iterator[DataLine]:
    """Yield the data lines of a file.

    Args:
        path: the file.
        parse: returns the numbers of a line and what was corrected, or raises ``ValueError``.
        lenient: skip a malformed line instead of raising.
        dropped: where skipped lines are counted.
        messages: takes what is wrong with the first ten of them.

    Raises:
        TraceError: the file cannot be read, is damaged, or a line is malformed.
    """
    for at, text in lines_of(path):
        if text[0] == ";":
            continue
        try:
            values, repairs = parse(text)
        except ValueError as problem:
            message = f"{path}:{at}: {problem}"
            if not lenient:
                raise TraceError(message) from None
            dropped[_MALFORMED] += 1
            if len(messages) < _MOST_MESSAGES:
                messages.append(message)
            continue
        yield DataLine(at, values, repairs)


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text without margins) of the lines that are not blank.

    Raises:
        TraceError: the file cannot be read, is damaged, or exceeds a limit.
    """
    others = length = 0  # consecutive lines without a job; their characters
    for number, line in numbered_lines(path):
        text = line.strip()
        if text and text[0] != ";":
            others = length = 0
            yield number, text
            continue
        others += 1
        length += len(line)
        if others > MOST_LINES_WITHOUT_JOB or length > MOST_TEXT_WITHOUT_JOB:
            raise TraceError(
                f"{path}:{number}: more than {MOST_LINES_WITHOUT_JOB:,} lines or {MOST_TEXT_WITHOUT_JOB:,} characters "
                "of comments and blank lines without a job in between"
            )
        if text:
            yield number, text


def read_header(path: Path) -> dict[str, str]:
    """Return the ``; Key: value`` comments before the first data line."""
    header: dict[str, list[str]] = {}
    for _, text in lines_of(path):
        if text[0] != ";":
            break
        key, colon, value = text.lstrip("; \t").partition(":")
        if colon and key and " " not in key.strip():
            header.setdefault(key.strip(), []).append(value.strip())
    return {key: "\n".join(values) for key, values in header.items()}
