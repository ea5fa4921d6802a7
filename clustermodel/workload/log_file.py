"""The text lines of an accounting log, plain or compressed with gzip, bzip2 or xz; the content tells which, not the name."""

from __future__ import annotations

import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import IO, Final

from clustermodel.errors import TraceError
from clustermodel.files import numbered_lines, opened

LONGEST_LINE: Final = 2**20
"""Largest number of characters in a line of an accounting log."""
MOST_LINES: Final = 512
"""Largest number of lines in a block.  With more, their texts may be out of the processor's cache when they are read."""

_CHUNK: Final = 2**18  # characters


def log_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the lines of a log without their line ends; a carriage return before the line end is part of it.

    Bytes that are not UTF-8 become replacement characters.

    Raises:
        TraceError: the file cannot be read, is damaged, or has a line of more than :data:`LONGEST_LINE` characters.
    """
    for lines in log_blocks(path):
        yield from lines


def log_blocks(path: str | os.PathLike[str]) -> Iterator[list[str]]:
    """Yield the lines of :func:`log_lines` in lists of at most :data:`MOST_LINES`.

    Raises:
        TraceError: as for :func:`log_lines`; all lines before the error have been yielded.
    """
    read = 0
    if os.path.isfile(path):  # noqa: PTH113  false for a name that is too long
        try:
            for lines in _blocks(Path(path)):
                yield lines
                read += len(lines)
        except (_LongLineError, EOFError, OSError, lzma.LZMAError, zlib.error):
            pass  # reading line by line says where
        else:
            return
    lines, failure = [], None
    try:
        for _, line in islice(numbered_lines(Path(path), opened=_opened_by_content, longest=LONGEST_LINE), read, None):
            lines.append(line[:-2] if line.endswith("\r\n") else line.removesuffix("\n"))
            if len(lines) == MOST_LINES:
                yield lines
                lines = []
    except TraceError as problem:
        failure = problem
    if lines:
        yield lines
    if failure is not None:
        raise failure


class _LongLineError(Exception):
    """A line has more characters than are allowed."""


def _blocks(path: Path) -> Iterator[list[str]]:
    """Yield the lines of a file that is not damaged.

    Raises:
        _LongLineError: a line is too long.
        OSError: the file cannot be read, or is damaged; also EOFError, LZMAError and zlib.error.
    """
    rest = ""
    with closing(_opened_by_content(path)) as file:
        while more := file.read(_CHUNK):
            text = rest + more
            lines = text.split("\n")
            rest = lines.pop()
            if len(rest) > LONGEST_LINE or (lines and len(max(lines, key=len)) > LONGEST_LINE):
                raise _LongLineError
            if "\r" in text:
                lines = [line.removesuffix("\r") for line in lines]
            for first in range(0, len(lines), MOST_LINES):
                yield lines[first : first + MOST_LINES]
    if rest:
        yield [rest]


def _opened_by_content(path: Path) -> IO[str]:
    return opened(path, newline="\n")  # a carriage return inside a field does not end a line
