"""The text lines of an accounting log, plain or compressed with gzip, bzip2 or xz; the content tells which, not the name."""

from __future__ import annotations

import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Final

from clustermodel.files import numbered_lines, opened

LONGEST_LINE: Final = 2**20
"""Largest number of characters in a line of an accounting log."""
MOST_LINES: Final = 512
"""Largest number of lines in a block.  With more, their texts may be out of the processor's cache when they are read."""
UNREADABLE: Final = (EOFError, OSError, lzma.LZMAError, zlib.error)
"""What is raised by a file that cannot be read or is damaged."""

_CHUNK: Final = 2**18  # characters


def log_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the lines of :func:`log_blocks`."""
    return chain.from_iterable(log_blocks(path))


def log_blocks(path: str | os.PathLike[str]) -> Iterator[list[str]]:
    """Yield lists of at most :data:`MOST_LINES` lines of a log, without their line ends; a carriage return may be one's part.

    Bytes that are not UTF-8 become replacement characters.

    Raises:
        TraceError: the file cannot be read, is damaged, or has a line of more than :data:`LONGEST_LINE` characters; all lines
            before the error have been yielded.
    """
    read = 0
    if os.path.isfile(path):  # noqa: PTH113  false for a name that is too long
        try:
            for lines in _blocks(Path(path)):
                yield lines
                read += len(lines)
        except (ValueError, *UNREADABLE):
            pass  # reading line by line says where
        else:
            return
    numbered = numbered_lines(Path(path), opened=partial(opened, newline="\n"), longest=LONGEST_LINE)
    for _, line in islice(numbered, read, None):
        yield [line[:-2] if line.endswith("\r\n") else line.removesuffix("\n")]


def _blocks(path: Path) -> Iterator[list[str]]:
    """Yield the lines of a file; a line that is too long raises ``ValueError``, a damaged file one of :data:`UNREADABLE`."""
    rest = ""
    with closing(opened(path, newline="\n")) as file:  # a carriage return inside a field does not end a line
        while more := file.read(_CHUNK):
            text = rest + more
            *lines, rest = text.split("\n")
            if len(rest) > LONGEST_LINE or (lines and len(max(lines, key=len)) > LONGEST_LINE):
                raise ValueError
            if "\r" in text:
                lines = [line.removesuffix("\r") for line in lines]
            for first in range(0, len(lines), MOST_LINES):
                yield lines[first : first + MOST_LINES]
    if rest:
        yield [rest]
