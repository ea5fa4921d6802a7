"""Text files that users hand over, read line by line: plain or gzip, with errors that name file and line."""

from __future__ import annotations

import gzip
import stat
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final, TextIO

from clustermodel.errors import TraceError, quoted

LONGEST_LINE: Final = 65_536
"""Largest number of characters in a line."""

_ENCODING: Final = "utf-8-sig"  # skips the byte order mark that some editors write


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line with its line break); a file whose name ends in ``.gz`` is decompressed.

    Raises:
        TraceError: the file cannot be read, is damaged, or has a line of more than :data:`LONGEST_LINE` characters.
    """
    number = 0
    try:
        with _open(path) as file:
            for line in iter(partial(file.readline, LONGEST_LINE + 1), ""):
                number += 1
                if len(line) > LONGEST_LINE and line[-1] != "\n":
                    raise TraceError(f"{path}:{number}: the line has more than {LONGEST_LINE:,} characters")
                yield number, line
    except EOFError:
        raise TraceError(f"{path}: the compressed data ends early, after line {number}; the file is truncated") from None
    except (gzip.BadGzipFile, zlib.error) as problem:
        raise TraceError(f"{path}: not readable as gzip after line {number}: {problem}") from None
    except OSError as problem:
        raise TraceError(f"{path}: cannot be read: {problem.strerror or problem}") from None


def _open(path: Path) -> TextIO:
    try:
        mode = path.stat().st_mode
    except ValueError as problem:  # a NUL in the name
        raise TraceError(f"{quoted(str(path))}: cannot be read: {problem}") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise TraceError(f"{path}: cannot be read: it is not a file but a pipe or a device, and a trace is read twice")
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding=_ENCODING, errors="replace")
    return open(path, encoding=_ENCODING, errors="replace")
