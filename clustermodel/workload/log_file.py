"""The text lines of logs and traces, plain or compressed with gzip, bzip2 or xz."""

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

LONGEST_LINE: Final = 2**20  # largest number of characters in a line of an accounting log
MOST_LINES: Final = 512
"""Largest number of lines in a block.  With more, their texts may be out of the processor's cache when they are read."""
UNREADABLE: Final = (EOFError, OSError, lzma.LZMAError, zlib.error)
"""What is raised by a file that cannot be read or is damaged."""

_CHUNK: Final = 2**18  # characters


def log_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the lines of :func:`log_blocks`."""
    return chain.from_iterable(log_blocks(path))


def log_blocks(
    path: str | os.PathLike[str], *, newline: str | None = "\n", longest: int = LONGEST_LINE, most: int = MOST_LINES
) -> Iterator[list[str]]:
    """Yield lists of at most ``most`` lines of a file, without line ends; a TraceError comes after the lines before it."""
    # As in accounting logs, a carriage return may be part of a line, and the content alone tells how a file is compressed; with
    # ``newline=None`` it ends a line, and a name that ends in .gz promises that the file is compressed.
    read = 0
    if os.path.isfile(path):  # noqa: PTH113  false for a name that is too long
        try:
            for lines in _blocks(Path(path), newline, longest):
                for first in range(0, len(lines), most):
                    yield lines[first : first + most]
                read += len(lines)
        except (ValueError, *UNREADABLE):
            pass  # reading line by line says where
        else:
            return
    numbered = numbered_lines(Path(path), opened=partial(opened, newline=newline), longest=longest)
    for _, line in islice(numbered, read, None):
        yield [line[:-2] if line.endswith("\r\n") else line.removesuffix("\n")]


def _blocks(path: Path, newline: str | None, longest: int) -> Iterator[list[str]]:
    """Yield the lines of a file; a line that is too long raises ``ValueError``, a damaged file one of :data:`UNREADABLE`."""
    rest = ""
    with closing(opened(path, newline=newline)) as file:
        while more := file.read(_CHUNK):
            text = rest + more
            *lines, rest = text.split("\n")
            if len(rest) > longest or (lines and len(max(lines, key=len)) > longest):
                raise ValueError
            if "\r" in text:
                lines = [line.removesuffix("\r") for line in lines]
            yield lines
    if rest:
        yield [rest]
