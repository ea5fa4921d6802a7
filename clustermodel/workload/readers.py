"""Readers of traces, one for each format: a file is recognised by its first lines, whatever its name is.

To add a format to this package, add a :class:`Format` to :data:`SHIPPED`.  Other packages add a :class:`Reader` by an entry
point of the group ``clustermodel.readers``; they are asked after those of this package.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Final, NamedTuple, Protocol, runtime_checkable

from clustermodel.errors import ClusterModelError, SpecificationError, TraceError, quoted
from clustermodel.plugins import READERS, Plugin, plugins
from clustermodel.validation import choice
from clustermodel.workload.csv_jobs import is_muri, read_muri
from clustermodel.workload.lsf import is_lsf, read_lsf
from clustermodel.workload.pbs import is_pbs, read_pbs
from clustermodel.workload.sacct import is_sacct, read_sacct
from clustermodel.workload.swf import read_swf
from clustermodel.workload.table import Workload

_SWF_LINE: Final = re.compile(r"\s*(;|[-+]?\d+(\.\d+)?(\s|$))")

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
            lines: the first lines that are not blank; of a compressed file the text inside.
        """

    def read(self, path: Path) -> Workload:
        """Read a file, which may be compressed.

        Raises:
            TraceError: the file cannot be read, or a line is malformed; the message starts with ``path:line:``.
        """


class Format(NamedTuple):
    """A reader made of functions."""

    name: str
    recognises: Callable[[Sequence[str]], bool]
    read: Callable[[Path], Workload]


SWF: Final = Format("swf", lambda lines: bool(lines) and _SWF_LINE.match(lines[0]) is not None, read_swf)
PBS: Final = Format("pbs", lambda lines: any(map(is_pbs, lines)), read_pbs)
LSF: Final = Format("lsf", lambda lines: any(map(is_lsf, lines)), read_lsf)
SACCT: Final = Format("sacct", lambda lines: any(map(is_sacct, lines)), read_sacct)
MURI: Final = Format("muri", lambda lines: bool(lines) and is_muri(lines[0]), read_muri)
SHIPPED: Final = (PBS, LSF, SACCT, MURI, SWF)
"""The formats of this package, in the order in which they are asked: a log may begin with messages that look like SWF."""


def reader_of(lines: Sequence[str]) -> Reader | None:
    """Return the reader of a file that begins with these lines, ``None`` if no one recognises it.

    A reader of another package that fails is a warning, and is not asked.
    """
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
    return None


def reader_named(name: str) -> Reader:
    """Return the reader of the format of this name.

    Raises:
        SpecificationError: there is none.
    """
    known = {reader.name: reader for reader in SHIPPED}
    installed = plugins(READERS)
    if name not in known and name in installed:
        return _made(installed[name])
    return known[choice("--format", name, [*known, *installed])]


def read_with(reader: Reader, path: str | os.PathLike[str]) -> Workload:
    """Read a trace with the reader of another package, which does not need to name its errors or the workload's recipe.

    Raises:
        TraceError: the file cannot be read, or has an error.
    """
    began = perf_counter()
    try:
        workload = reader.read(Path(path))
    except ClusterModelError:
        raise
    except Exception as problem:  # of the other package
        words = " ".join(f"{type(problem).__name__}: {problem}".split())
        raise TraceError(f"{os.fspath(path)}: cannot be read as {reader.name}: {words}") from problem
    if not isinstance(workload, Workload):
        raise TraceError(
            f"{os.fspath(path)}: the reader of {reader.name} returned {quoted(workload)}; it must return a Workload"
        )
    _log.info("read %s as %s: %s jobs in %.2f s", path, reader.name, f"{len(workload):,}", perf_counter() - began)
    return workload.made_by("trace", {"trace": Path(path)})


def _made(plugin: Plugin) -> Reader:
    reader = plugin.load()()
    if not isinstance(reader, Reader):
        raise SpecificationError(f"{quoted(reader)} is not allowed; it must have name, recognises and read")
    return reader
