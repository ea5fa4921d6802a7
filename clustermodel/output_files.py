"""Writing a file as a whole or not at all, and texts in tables that a spreadsheet must not take for formulas."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from clustermodel.errors import OutputError, quoted

if TYPE_CHECKING:
    import pandas as pd

PART: Final = ".part"
"""How the names of files end that are being written."""


@contextmanager
def replacing(path: str | os.PathLike[str], *, durable: bool = False) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of ``path`` when the block ends, and never does if the block raises.

    Until then it has a random name in the same folder, made exclusively, so that no link is followed and no other file is
    touched; whatever goes wrong, no half-written file stays.  What is no regular file (``/dev/stdout``, a pipe) is written
    directly.

    Args:
        path: the file to write.
        durable: wait until the content is on the disk before the file takes its name.

    Raises:
        OutputError: the file cannot be written.
    """
    try:
        path = Path(path)
        with _opened(path, durable) as file:
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
    """Write a file as a whole or not at all; text as UTF-8.  See :func:`replacing`.

    Raises:
        OutputError: the file cannot be written.
    """
    with replacing(path, durable=durable) as file:
        file.write(content.encode(errors="backslashreplace") if isinstance(content, str) else content)


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Return ``table`` for a CSV file: an apostrophe before each text that a spreadsheet would take for a formula.

    These are texts that begin with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return.  Numbers stay as they are.
    """
    texts = table.select_dtypes(exclude=["number", "bool", "datetime", "timedelta"])
    guarded = table.copy(deep=False)
    for name in texts:
        guarded[name] = texts[name].map(_no_formula)
    return guarded


def _no_formula(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


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
