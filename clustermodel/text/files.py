"""Files of users: texts read line by line, plain or compressed, and files written as a whole or not at all.

Errors of texts name file and line.  In tables a spreadsheet must not take texts for formulas.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import os
import secrets
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from io import BufferedReader, RawIOBase, TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final

from clustermodel.errors import OutputError, SpecificationError, TraceError, counted, quoted

if TYPE_CHECKING:
    import pandas as pd

LONGEST_LINE, LONGEST_LINE_OF_A_LOG = 65_536, 2**20  # characters
MOST_LINES: Final = 512
"""Largest number of lines in a block.  With more, their texts may be out of the processor's cache when they are read."""
UNREADABLE: Final = (EOFError, OSError, lzma.LZMAError, zlib.error)
"""What is raised by a file that cannot be read or is damaged."""
_CHUNK: Final = 2**18  # characters
LARGEST_GROWTH: Final = 256
"""How many times the size of a compressed file its content may have, if that is more than ``ALWAYS_READ`` bytes.  Logs grow
by a factor of 5 to 50."""
ALWAYS_READ: Final = 2**28
"""Bytes to which the content of any compressed file may grow."""
LARGEST_WHOLE: Final = 2**30
"""Bytes of the largest file that is read as a whole, as JSON is, which takes some ten times its size in memory."""
LARGEST_SPECIFICATION: Final = 2**22  # bytes; parsing a file takes some hundred times its size
PART: Final = ".part"  # ends the names of files that are being written
_COMPRESSED: Final[dict[str, tuple[bytes, Any, Callable[[bytes], bytes]]]] = {
    ".gz": (b"\x1f\x8b", gzip.open, partial(gzip.compress, mtime=0)),  # equal contents give equal files
    ".bz2": (b"BZh", bz2.open, bz2.compress),
    ".xz": (b"\xfd7zXZ\x00", lzma.open, lzma.compress),
}
"""Ends of the names of compressed files, their first bytes, and the functions that open them and compress contents."""


class _Growth(RawIOBase):
    """What a compressed file holds, refused as soon as it is more than a log can be."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path, self._file, self._read = path, file, 0
        self._most = max(path.stat().st_size * LARGEST_GROWTH, ALWAYS_READ)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._file.read(len(buffer))
        self._read += len(part)
        if self._read > self._most:
            raise TraceError(
                f"{self._path}: the compressed data grows to more than {self._most:,} bytes; it may grow to "
                f"{LARGEST_GROWTH} times the size of the file, or to {ALWAYS_READ:,} bytes; decompress it first"
            )
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._file.close()
        super().close()


def opened(path: Path, newline: str | None = None) -> IO[str]:
    """Return a file opened as text; what gzip, bzip2 or xz has compressed, by its first bytes, is decompressed.

    A name that ends as one of a compressed file promises that it is one, unless ``newline``, as for ``open``, is given.
    """
    file = decompressed(path, named=newline is None)  # the encoding skips the byte order mark that some editors write
    return TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline=newline)


def decompressed(path: Path, *, named: bool = True) -> IO[bytes]:
    """Return a file opened as bytes, decompressed as by :func:`opened`; if ``named``, a name that promises it is believed."""
    with open(path, "rb") as file:
        begin = file.read(8)
    if begin.startswith(b"PK\x03\x04"):
        raise TraceError(f"{path}: it is a zip archive; extract the file, or compress it with gzip, bzip2 or xz")
    openers = {magic: opener for magic, opener, _ in _COMPRESSED.values()}
    open_named = _COMPRESSED[path.suffix][1] if named and path.suffix in _COMPRESSED else open
    open_file = next((opener for magic, opener in openers.items() if begin.startswith(magic)), open_named)
    opened_file: IO[bytes] = open_file(path, "rb")
    return opened_file if open_file is open else BufferedReader(_Growth(path, opened_file), _CHUNK)


def whole_text(path: Path) -> str:
    """Return the text of a file that is read as a whole; a TraceError if it is larger than :data:`LARGEST_WHOLE`."""
    with decompressed(path, named=False) as file:
        content = file.read(LARGEST_WHOLE + 1)
    if len(content) > LARGEST_WHOLE:
        raise TraceError(f"{path}: cannot be read as a whole: it has more than {LARGEST_WHOLE:,} bytes")
    return content.decode("utf-8-sig", errors="replace")


def is_compressed(path: Path) -> bool:
    """Return whether the first bytes of a file are those of gzip, bzip2 or xz."""
    with open(path, "rb") as file:
        return file.read(8).startswith(tuple(magic for magic, *_ in _COMPRESSED.values()))


def without_compression(name: str) -> str:
    """Return the name of a file without the ending of its compression."""
    return name[: -len(Path(name).suffix)] if name.endswith(tuple(_COMPRESSED)) else name


def specification_bytes(path: Path) -> bytes:
    """Return the content of a small regular file, such as a scenario or a workload model, that may come from anywhere."""
    try:
        _require_file(path)
        with decompressed(path, named=False) as file:
            content = file.read(LARGEST_SPECIFICATION + 1)
    except TraceError as problem:
        raise SpecificationError(str(problem)) from None
    except UNREADABLE as problem:
        why = getattr(problem, "strerror", None) or problem
        raise SpecificationError(f"{quoted(str(path))[1:-1]}: cannot be read: {why}") from None
    if len(content) > LARGEST_SPECIFICATION:
        raise SpecificationError(f"{path}: cannot be read: it has more than {LARGEST_SPECIFICATION:,} bytes")
    return content


def text_lines(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the lines of :func:`text_blocks`."""
    return chain.from_iterable(text_blocks(path))


def text_blocks(
    path: str | os.PathLike[str], *, newline: str | None = "\n", longest: int = LONGEST_LINE_OF_A_LOG, most: int = MOST_LINES
) -> Iterator[list[str]]:
    """Yield lists of at most ``most`` lines of a file, without line ends; a TraceError comes after the lines before it."""
    # As in accounting logs, a carriage return may be part of a line, and the content alone tells how a file is compressed; with
    # ``newline=None`` it ends a line, and a name that ends in .gz promises that the file is compressed.
    path, read = Path(path), 0
    if os.path.isfile(path):  # noqa: PTH113  false for a name that is too long
        try:
            for lines in _blocks(path, newline, longest):
                for first in range(0, len(lines), most):
                    yield lines[first : first + most]
                read += len(lines)
            return
        except TraceError:
            raise
        except (ValueError, *UNREADABLE):
            pass  # reading line by line says where
    number = 0
    try:
        _require_file(path)
        with closing(opened(path, newline=newline)) as file:
            for line in iter(partial(file.readline, longest + 1), ""):
                number += 1
                if len(line) > longest and line[-1] != "\n":
                    raise TraceError(f"{path}:{number}: the line has more than {longest:,} characters")
                if number > read:
                    yield [line[:-2] if line.endswith("\r\n") else line.removesuffix("\n")]
    except EOFError:
        raise TraceError(f"{path}: the compressed data ends early, after line {number}; the file is truncated") from None
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as problem:
        kind = "xz" if isinstance(problem, lzma.LZMAError) else "gzip"
        raise TraceError(f"{path}: not readable as {kind} after line {number}: {problem}") from None
    except OSError as problem:  # bz2 reports damaged data so, without an error number
        raise TraceError(f"{path}: cannot be read: {problem.strerror or problem}") from None


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


def table_rows(path: str | os.PathLike[str], separators: str = ",", *, strict: bool = False) -> Iterator[tuple[str, list[str]]]:
    """Yield (``file:line``, fields) of the lines of a table that are not blank, the header first; ``strict`` about quotes.

    The separator is the first of ``separators`` that the header has.
    """
    header: list[str] = []
    separator = separators[-1]
    for number, line in enumerate(text_lines(path), 1):
        place = f"{os.fspath(path)}:{number}"
        if "\r" in line:  # a file of which each line ends in one is a single line
            raise TraceError(
                f"{place}: it has a carriage return within the line, which is not allowed; lines end in a line feed, "
                "which may follow a carriage return"
            )
        if not header:
            separator = next((each for each in separators if each in line), separator)
        try:
            fields = next(csv.reader([line], delimiter=separator, strict=strict and separator == ","), [])
        except csv.Error as problem:
            raise TraceError(f"{place}: not readable as CSV: {problem}") from None
        if not any(map(str.strip, fields)):
            continue
        header = header or fields
        if len(fields) != len(header):
            raise TraceError(f"{place}: the line has {counted(len(fields), 'field')}; the header has {len(header)}")
        yield place, fields


def _require_file(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except ValueError as problem:  # a NUL in the name
        raise TraceError(f"{quoted(str(path))}: cannot be read: {problem}") from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise TraceError(f"{path}: cannot be read: it is not a file but a pipe or a device; write a file")


@contextmanager
def replacing(path: str | os.PathLike[str], *, durable: bool = False) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of ``path`` when the block ends, and never does if the block raises.

    Until then it has a random name in the same folder, made exclusively, so that no link is followed and no other file is
    touched; whatever goes wrong, no half-written file stays.  What is no regular file (``/dev/stdout``, a pipe) is written
    directly.  A ``durable`` file is on the disk before it takes its name.
    """
    target = Path(path)
    try:
        try:
            mode = target.stat().st_mode
        except FileNotFoundError:
            mode = None
        if mode is not None and not stat.S_ISREG(mode):
            with open(target, "wb") as file:
                yield file
            return
        if mode is not None and not os.access(target, os.W_OK):
            raise PermissionError(0, "it is write-protected")
        part = target.parent / f".{secrets.token_hex(8)}{PART}"
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else stat.S_IMODE(mode))
        try:
            with open(descriptor, "wb") as file:
                yield file
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            part.replace(target)
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise
    except OutputError:
        raise
    except OSError as problem:
        raise OutputError(f"{path}: cannot be written: {problem.strerror or problem}") from None
    except ValueError as problem:
        if "null" not in str(problem):
            raise
        raise OutputError(f"{quoted(str(path))}: cannot be written: {problem}") from None


def write_file(path: str | os.PathLike[str], content: bytes | str, *, durable: bool = False) -> None:
    """Write a file as a whole or not at all, text as UTF-8; see :func:`replacing`.

    A file whose name ends in ``.gz``, ``.bz2`` or ``.xz`` is compressed, as whoever reads it expects.
    """
    content = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    if (suffix := Path(path).suffix) in _COMPRESSED:
        content = _COMPRESSED[suffix][2](content)
    with replacing(path, durable=durable) as file:
        file.write(content)


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, if they are not there."""
    if os.path.isfile(path):  # noqa: PTH113  as above
        raise OutputError(f"{path}: is a file; it must be a directory")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise OutputError(f"{path}: cannot be written: {problem.strerror or problem}") from None


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Return ``table`` for a CSV file: an apostrophe before each text that a spreadsheet would take for a formula."""
    guarded, signs = table.copy(deep=False), ("=", "+", "-", "@", "\t", "\r")
    for name in table.select_dtypes(exclude=["number", "bool", "datetime", "timedelta"]):
        guarded[name] = [f"'{cell}" if isinstance(cell, str) and cell.startswith(signs) else cell for cell in table[name]]
    return guarded
