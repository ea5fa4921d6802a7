"""The text lines of an accounting log, plain or compressed with gzip, bzip2 or xz; the content tells which, not the name."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, Final

from clustermodel.errors import TraceError, quoted

LONGEST_LINE: Final = 2**20
"""Largest number of characters in a line of an accounting log."""

_OPENERS: Final[dict[bytes, Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
"""First bytes of a compressed file, and the function that opens it."""
_DAMAGED: Final = (gzip.BadGzipFile, zlib.error, lzma.LZMAError)


def log_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the lines of a log without their line ends; a carriage return before the line end is part of it.

    Bytes that are not UTF-8 become replacement characters.

    Raises:
        TraceError: the file cannot be read, is damaged, or has a line of more than :data:`LONGEST_LINE` characters.
    """
    number = 0
    try:
        with closing(_opened(Path(path))) as file:
            for line in iter(partial(file.readline, LONGEST_LINE + 2), ""):
                number += 1
                if len(line) > LONGEST_LINE + 1 and line[-1] != "\n":
                    raise TraceError(f"{path}:{number}: the line has more than {LONGEST_LINE:,} characters")
                yield line[:-2] if line.endswith("\r\n") else line.removesuffix("\n")
    except EOFError:
        raise TraceError(f"{path}: the compressed data ends early, after line {number}; the file is truncated") from None
    except _DAMAGED as problem:
        raise TraceError(f"{path}: the compressed data is damaged after line {number}: {problem}") from None
    except OSError as problem:  # bz2 reports damaged data so, without an error number
        raise TraceError(f"{path}: cannot be read: {problem.strerror or problem}") from None


def _opened(path: Path) -> IO[str]:
    try:
        mode = path.stat().st_mode
    except ValueError as problem:  # a NUL in the name
        raise TraceError(f"{quoted(str(path))}: cannot be read: {problem}") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise TraceError(f"{path}: cannot be read: it is not a file but a pipe or a device, and a log is read twice")
    with open(path, "rb") as file:
        begin = file.read(8)
    opener = next((opener for magic, opener in _OPENERS.items() if begin.startswith(magic)), open)
    # newline="\n": a carriage return inside a field does not end a line
    return TextIOWrapper(opener(path, "rb"), encoding="utf-8-sig", errors="replace", newline="\n")
