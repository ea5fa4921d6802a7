"""Readers of traces, one for each format: a file is recognised by its first lines, whatever its name is.

To add a format to this package, write a class with what :class:`Reader` lists and add it to :data:`SHIPPED`.  Other packages
add one by an entry point of the group ``clustermodel.readers``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Final, Protocol, runtime_checkable

from clustermodel.errors import ClusterModelError, SpecificationError, TraceError, quoted
from clustermodel.plugins import READERS, Plugin, plugins
from clustermodel.workload.swf import open_trace, read_swf
from clustermodel.workload.swf_line import SWF_FIELDS
from clustermodel.workload.table import Workload

FIRST_LINES: Final = 50
"""Number of lines that a reader is shown."""
_LONGEST_SHOWN: Final = 4096
"""Characters of a line that a reader is shown."""

_log = logging.getLogger(__name__)


@runtime_checkable
class Reader(Protocol):
    """Reads the traces of one format."""

    @property
    def name(self) -> str:
        """The name of the format, for messages."""

    def recognises(self, lines: Sequence[str]) -> bool:
        """Return whether a file that begins with these lines has this format.

        Args:
            lines: the first lines that are not blank, at most :data:`FIRST_LINES`, without margins; of a compressed file
                the text inside.
        """

    def read(self, path: Path) -> Workload:
        """Read a file, which may be compressed (``.gz``).

        Raises:
            TraceError: the file cannot be read, or a line is malformed; the message starts with ``path:line:``.
        """


class SwfReader:
    """Reads the Standard Workload Format: comments begin with ``;``, a job has 18 numbers."""

    name = "SWF"

    def recognises(self, lines: Sequence[str]) -> bool:
        """Return whether the first line that is no comment has 18 words, or all lines are comments."""
        first = next((line for line in lines if not line.startswith(";")), None)
        return bool(lines) if first is None else len(first.split()) == len(SWF_FIELDS)

    def read(self, path: Path) -> Workload:
        """Read a trace with the defaults of :func:`~clustermodel.workload.swf.read_swf`."""
        return read_swf(path)


SWF: Final = SwfReader()
SHIPPED: Final[tuple[Reader, ...]] = (SWF,)
"""The readers of this package, in the order in which they are asked; those of other packages come after them."""


def reader_of(path: str | os.PathLike[str]) -> Reader:
    """Return the reader that recognises a file; SWF, whose messages name the line, if none does.

    Raises:
        TraceError: the file cannot be read.
    """
    lines = _first_lines(Path(path))
    for reader in SHIPPED:
        if reader.recognises(lines):
            return reader
    for plugin in plugins(READERS).values():
        try:
            made = _made(plugin)
            if made.recognises(lines):
                return made
        except Exception as problem:  # of the other package
            words = str(problem) if isinstance(problem, ClusterModelError) else f"{type(problem).__name__}: {problem}"
            _log.warning("reader %s of package %s is not used: %s", plugin.name, plugin.package, words)
    return SWF


def read_trace(path: str | os.PathLike[str]) -> Workload:
    """Read a trace of any known format into memory; :func:`~clustermodel.workload.swf.read_swf` has options for SWF.

    Raises:
        TraceError: the file cannot be read, or has an error.
    """
    return read_with(reader_of(path), path)


def read_with(reader: Reader, path: str | os.PathLike[str]) -> Workload:
    """Read a trace with its reader, which does not need to name its errors or the workload's recipe.

    Raises:
        TraceError: the file cannot be read, or has an error.
    """
    began = perf_counter()
    try:
        workload = reader.read(Path(path))
    except ClusterModelError:
        raise
    except Exception as problem:  # of another package
        words = " ".join(f"{type(problem).__name__}: {problem}".split())
        raise TraceError(f"{path}: cannot be read as {reader.name}: {words}") from problem
    if not isinstance(workload, Workload):
        raise TraceError(f"{path}: the reader of {reader.name} returned {quoted(workload)}; it must return a Workload")
    if reader is not SWF:
        _log.info("read %s as %s: %s jobs in %.2f s", path, reader.name, f"{len(workload):,}", perf_counter() - began)
    return workload if workload.recipe is not None else workload.made_by("trace", {"trace": Path(path)})


def _made(plugin: Plugin) -> Reader:
    reader = plugin.load()()
    if not isinstance(reader, Reader):
        raise SpecificationError(f"{quoted(reader)} is not allowed; it must have name, recognises and read")
    return reader


def _first_lines(path: Path) -> list[str]:
    """Return what readers are shown; nothing of a file that no one can read, of which SWF says why."""
    try:
        with open_trace(path) as file:
            lines = (file.readline(_LONGEST_SHOWN).strip() for _ in range(10 * FIRST_LINES))
            return list(islice((line for line in lines if line), FIRST_LINES))
    except (OSError, EOFError, ValueError, TraceError):
        return []
