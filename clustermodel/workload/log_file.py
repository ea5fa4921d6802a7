"""The text lines of an accounting log, plain or compressed with gzip, bzip2 or xz; the content tells which, not the name."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, Final

from clustermodel.text_files import numbered_lines

LONGEST_LINE: Final = 2**20
"""Largest number of characters in a line of an accounting log."""

_OPENERS: Final[dict[bytes, Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
"""First bytes of a compressed file, and the function that opens it."""


def log_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the lines of a log without their line ends; a carriage return before the line end is part of it.

    Bytes that are not UTF-8 become replacement characters.

    Raises:
        TraceError: the file cannot be read, is damaged, or has a line of more than :data:`LONGEST_LINE` characters.
    """
    for _, line in numbered_lines(Path(path), opened=_opened_by_content, longest=LONGEST_LINE):
        yield line[:-2] if line.endswith("\r\n") else line.removesuffix("\n")


def _opened_by_content(path: Path) -> IO[str]:
    with open(path, "rb") as file:
        begin = file.read(8)
    opener = next((opener for magic, opener in _OPENERS.items() if begin.startswith(magic)), open)
    # newline="\n": a carriage return inside a field does not end a line
    return TextIOWrapper(opener(path, "rb"), encoding="utf-8-sig", errors="replace", newline="\n")
