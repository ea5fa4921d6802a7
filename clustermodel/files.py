"""Files of users: texts read line by line, plain or compressed, and files written as a whole or not at all.

Errors of texts name file and line.  In tables a spreadsheet must not take texts for formulas.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import secrets
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final

from clustermodel.errors import OutputError, SpecificationError, TraceError, quoted

if TYPE_CHECKING:
    import pandas as pd

LONGEST_LINE: Final = 65_536
"""Largest number of characters in a line, unless a format has longer ones."""

LARGEST_SPECIFICATION: Final = 2**22
"""Largest file of a specification, bytes; no such file is larger, and parsing it takes some hundred times its size."""

_ENCODING: Final = "utf-8-sig"  # skips the byte order mark that some editors write


_OPENERS: Final[dict[bytes, Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
"""First bytes of a compressed file, and the function that opens it."""
_BY_NAME: Final[dict[str, Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
COMPRESSED: Final = tuple(_BY_NAME)
"""How the names of compressed files end."""


def opened(path: Path, newline: str | None = None) -> IO[str]:
    """Return a file opened as text; what gzip, bzip2 or xz has compressed, by its first bytes, is decompressed.

    A name that ends as one of a compressed file promises that it is one, unless ``newline``, as for ``open``, is given.
    """
    return TextIOWrapper(decompressed(path, named=newline is None), encoding=_ENCODING, errors="replace", newline=newline)


def decompressed(path: Path, *, named: bool = True) -> IO[bytes]:
    """Return a file opened as bytes, decompressed as by :func:`opened`; if ``named``, a name that promises it is believed."""
    with open(path, "rb") as file:
        begin = file.read(8)
    found = (opener for magic, opener in _OPENERS.items() if begin.startswith(magic))
    file_of: Callable[[Path, str], IO[bytes]] = next(found, _BY_NAME.get(path.suffix, open) if named else open)
    return file_of(path, "rb")


def without_compression(name: str) -> str:
    """Return the name of a file without the ending of its compression."""
    return name[: -len(Path(name).suffix)] if name.endswith(COMPRESSED) else name


def specification_bytes(path: Path) -> bytes:
    """Return the content of a small file, such as a scenario or a workload model, that may come from anywhere.

    Raises:
        SpecificationError: it cannot be read, is a pipe or a device, or has more than :data:`LARGEST_SPECIFICATION` bytes.
    """
    try:
        _require_file(path)
        with open(path, "rb") as file:
            content = file.read(LARGEST_SPECIFICATION + 1)
    except TraceError as problem:
        raise SpecificationError(str(problem)) from None
    except OSError as problem:
        raise SpecificationError(f"{quoted(str(path))[1:-1]}: cannot be read: {problem.strerror or problem}") from None
    if len(content) > LARGEST_SPECIFICATION:
        raise SpecificationError(f"{path}: cannot be read: it has more than {LARGEST_SPECIFICATION:,} bytes")
    return content


def numbered_lines(
    path: Path, *, opened: Callable[[Path], IO[str]] = opened, longest: int = LONGEST_LINE
) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line with its line break) of a file that a function opens as text.

    Raises:
        TraceError: the file cannot be read, is damaged, or has a line of more than ``longest`` characters.
    """
    number = 0
    try:
        _require_file(path)
        with closing(opened(path)) as file:
            for line in iter(partial(file.readline, longest + 1), ""):
                number += 1
                if len(line) > longest and line[-1] != "\n":
                    raise TraceError(f"{path}:{number}: the line has more than {longest:,} characters")
                yield number, line
    except EOFError:
        raise TraceError(f"{path}: the compressed data ends early, after line {number}; the file is truncated") from None
    except (gzip.BadGzipFile, zlib.error) as problem:
        raise TraceError(f"{path}: not readable as gzip after line {number}: {problem}") from None
    except lzma.LZMAError as problem:
        raise TraceError(f"{path}: not readable as xz after line {number}: {problem}") from None
    except OSError as problem:  # bz2 reports damaged data so, without an error number
        raise TraceError(f"{path}: cannot be read: {problem.strerror or problem}") from None


def _require_file(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except ValueError as problem:  # a NUL in the name
        raise TraceError(f"{quoted(str(path))}: cannot be read: {problem}") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise TraceError(f"{path}: cannot be read: it is not a file but a pipe or a device; write a file")


PART: Final = ".part"
"""How the names of files end that are being written."""


@contextmanager
def replacing(path: str | os.PathLike[str], *, durable: bool = False) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of ``path`` when the block ends, and never does if the block raises.

    Until then it has a random name in the same folder, made exclusively, so that no link is followed and no other file is
    touched; whatever goes wrong, no half-written file stays.  What is no regular file (``/dev/stdout``, a pipe) is written
    directly.  A ``durable`` file is on the disk before it takes its name.

    Raises:
        OutputError: the file cannot be written.
    """
    try:
        with _opened(Path(path), durable) as file:
            yield file
    except OutputError:
        raise
    except OSError as problem:
        raise OutputError(f"{path}: cannot be written: {problem.strerror or problem}") from None
    except ValueError as problem:
        if "null" not in str(problem):
            raise
        raise OutputError(f"{quoted(str(path))}: cannot be written: {problem}") from None


def write_file(path: str | os.PathLike[str], content: bytes | str, *, durable: bool = False) -> None:
    """Write a file as a whole or not at all, text as UTF-8; see :func:`replacing`."""
    with replacing(path, durable=durable) as file:
        file.write(content.encode(errors="backslashreplace") if isinstance(content, str) else content)


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Return ``table`` for a CSV file: an apostrophe before each text that a spreadsheet would take for a formula.

    These are texts that begin with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return.  Numbers stay as they are.
    """
    guarded = table.copy(deep=False)
    for name in table.select_dtypes(exclude=["number", "bool", "datetime", "timedelta"]):
        guarded[name] = [
            f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
            for cell in table[name]
        ]
    return guarded


@contextmanager
def _opened(path: Path, durable: bool) -> Iterator[BinaryIO]:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as file:
            yield file
        return
    if mode is not None and not os.access(path, os.W_OK):
        raise PermissionError(0, "it is write-protected")
    part = path.parent / f".{secrets.token_hex(8)}{PART}"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else stat.S_IMODE(mode))
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
