"""Reading traces: a reader for each format, which the first lines of a file tell, whatever its name is.

To add a format to this package, add a :class:`Format` to :data:`SHIPPED`.  Other packages add a :class:`Reader` by an entry
point of the group ``clustermodel.readers``; they are asked after those of this package.
"""

import csv
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Final, NamedTuple, Protocol, runtime_checkable

from clustermodel.errors import ClusterModelError, SpecificationError, TraceError, in_words, quoted, shown
from clustermodel.logs import json_files, lsf, pbs, sge
from clustermodel.logs.csv_jobs import read_csv
from clustermodel.logs.muri import is_muri, read_muri
from clustermodel.logs.sacct import SACCT_COMMAND, is_sacct, read_sacct
from clustermodel.logs.simulator_json import read_batsim, refuse_elastisim
from clustermodel.plugins import READERS, Plugin, made_by, plugins
from clustermodel.text.files import is_compressed, text_lines, without_compression
from clustermodel.validation import choice
from clustermodel.workload.swf import read_swf
from clustermodel.workload.table import Workload
from clustermodel.workload.transforms import JobFilter, LoadScale

_SWF_LINE: Final = re.compile(r"\s*(;|[-+]?\d+(\.\d+)?(\s|$))")
_JSON: Final = re.compile(r"\{|\[\s*([\[{]|$)")

_CONDOR: Final = re.compile(r"(ClusterId|ProcId|QDate|JobStartDate|JobCurrentStartDate|CompletionDate|GlobalJobId) = ")

_log = logging.getLogger(__name__)


@runtime_checkable
class Reader(Protocol):
    """Reads the traces of one format."""

    @property
    def name(self) -> str:
        """The name of the format, for messages."""

    def recognises(self, lines: Sequence[str]) -> bool:
        """Return whether a file has this format; ``lines`` are its first ones that are not blank, decompressed."""

    def read(self, path: Path) -> Workload:
        """Read a file, which may be compressed.

        Raises:
            TraceError: the file cannot be read, or a line is malformed; the message starts with ``path:line:``.
        """


class Format(NamedTuple):
    """A reader made of functions."""

    name: str
    recognises: Callable[[Sequence[str]], bool]
    read: Callable[..., Workload]
    options: tuple[str, ...] = ()  # those of read_trace that read has


_OF_SACCT: Final = ("unit", "timezone", "cluster")
_DEFAULTS: Final = {
    "unit": "auto", "timezone": None, "cluster": None, "lenient": False, "processors_from": "allocated", "feedback": False,
}  # fmt: skip
"""Of the options that not all kinds of files have."""
_OF_LOGS: Final = ("unit", "processors_from", "feedback")
_OF_SWF: Final = ("processors_from", "use_estimates", "keep", "scale", "lenient", "feedback", "waits")
SWF: Final = Format("swf", lambda lines: bool(lines) and _SWF_LINE.match(lines[0]) is not None, read_swf, _OF_SWF)
PBS: Final = Format("pbs", lambda lines: any(map(pbs.RECORD.fullmatch, lines)), pbs.read_pbs, _OF_LOGS)
LSF: Final = Format("lsf", lambda lines: any(map(lsf.RECORD.fullmatch, lines)), lsf.read_lsf, _OF_LOGS)
SGE: Final = Format("sge", lambda lines: any(map(sge.RECORD.fullmatch, lines)), sge.read_sge, _OF_LOGS)
SACCT: Final = Format("sacct", lambda lines: any(map(is_sacct, lines)), read_sacct, (*_OF_LOGS, "timezone", "cluster"))
MURI: Final = Format("muri", lambda lines: bool(lines) and is_muri(lines[0]), read_muri)
BATSIM: Final = Format("batsim", lambda _: False, read_batsim)
SHIPPED: Final = (PBS, LSF, SGE, SACCT, MURI, BATSIM, SWF)
"""The formats of this package, in the order in which they are asked: a log may begin with messages that look like SWF."""
_LOGS: Final = (SACCT, PBS, LSF, SGE)
_OF_JSON: Final = {
    json_files.SACCT: SACCT, json_files.BATSIM: BATSIM,
    json_files.ELASTISIM: Format("the jobs of ElastiSim", lambda _: False, refuse_elastisim),
}  # fmt: skip
"""Readers of files in JSON, whose keys tell what they are."""


def reader_named(name: str) -> Reader:
    """Return the reader of the format of this name."""
    known, installed = {reader.name: reader for reader in SHIPPED}, plugins(READERS)
    of_tables = "; --columns reads a CSV table" if name == "csv" else ""
    choice("--format", name, [*known, *installed], other=of_tables)
    return known[name] if name in known else _made(installed[name])


def _made(plugin: Plugin) -> Reader:
    reader = made_by(f"reader {shown(plugin.name)!r} of package {plugin.package}", plugin.load())
    if not isinstance(reader, Reader):
        raise SpecificationError(f"{quoted(reader)} is not allowed; it must have name, recognises and read")
    return reader


def _read_with(reader: Reader, path: str | os.PathLike[str]) -> Workload:
    """Read a trace with the reader of another package, which does not need to name its errors or the workload's recipe."""
    began = perf_counter()
    try:
        workload = reader.read(Path(path))
    except ClusterModelError:
        raise
    except Exception as problem:  # of the other package
        hint = "; it is compressed: clustermodel.text.files.opened(path) opens it as text" if is_compressed(Path(path)) else ""
        raise TraceError(f"{path}: cannot be read as {reader.name}: {in_words(problem)}{hint}") from problem
    if not isinstance(workload, Workload):
        raise TraceError(f"{path}: the reader of {reader.name} returned {quoted(workload)}; it must return a Workload")
    _log.info("read %s as %s: %s jobs in %.2f s", path, reader.name, f"{len(workload):,}", perf_counter() - began)
    return workload.made_by("trace", {"trace": Path(path)})


_FEWEST_COLUMNS: Final = 3  # of a table of jobs: submission, run time, size
_LOOKED_AT: Final = 1000  # lines; a log may begin with messages or with the end of a record


def recognised(path: str | os.PathLike[str]) -> Reader | None:
    """Return the reader that recognises the first lines of a file; ``None`` if it looks like no trace."""
    if kind := json_files.kind_of_json(Path(path)):
        return _OF_JSON[kind]
    lines = [text for text in islice(text_lines(path), _LOOKED_AT) if text.strip()]
    for reader in SHIPPED:
        if reader.recognises(lines):
            return reader
    for plugin in plugins(READERS).values():
        try:
            made = _made(plugin)
            if made.recognises(lines):
                return made
        except Exception as problem:  # of the other package
            words = str(problem) if isinstance(problem, ClusterModelError) else in_words(problem)
            _log.warning("reader %s of package %s is not used: %s", plugin.name, plugin.package, words)
    return None


def _refuse_condor(path: str | os.PathLike[str]) -> None:
    """Refuse a history file of HTCondor by its name."""
    if any(_CONDOR.match(text) for text in islice(text_lines(path), _LOOKED_AT)):
        columns = "QDate, JobCurrentStartDate, CompletionDate, RequestCpus, Owner"
        raise TraceError(
            f"{path}: it is a history file of HTCondor, which is not read; write its jobs as a CSV table ({columns}), whose "
            "columns --columns names"
        )


def require_log(path: str | os.PathLike[str]) -> str:
    """Return ``"sacct"``, ``"pbs"``, ``"lsf"`` or ``"sge"``, or refuse a file that is no accounting log."""
    reader = recognised(path)
    if reader in _LOGS:
        return reader.name
    if reader is SWF:
        raise TraceError(f"{path}: it is in SWF already; every command reads it as it is")
    _refuse_condor(path)
    raise TraceError(
        f"{path}: it is no accounting log; expected are accounting records of PBS (MM/DD/YYYY "
        f"HH:MM:SS;E;ID;key=value ...), of LSF (lsb.acct) or of Grid Engine (accounting), or the output of sacct --json or "
        f"{SACCT_COMMAND}"
    )


def read_trace(
    path: str | os.PathLike[str],
    *,
    unit: str = "auto",
    timezone: str | None = None,
    cluster: str | None = None,
    processors_from: str = "allocated",
    use_estimates: bool = True,
    keep: JobFilter | None = None,
    scale: LoadScale | None = None,
    lenient: bool = False,
    feedback: bool = False,
    waits: bool = False,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
) -> Workload:
    """Read a trace in SWF, a log of sacct, PBS, LSF or Grid Engine, a workload of Batsim or of Zhao et al. 2022 (Muri), or what
    another package can read.

    ``unit``, ``timezone`` and ``cluster`` are those of :func:`~clustermodel.logs.sacct.read_sacct`, ``lenient`` and
    ``waits`` those of :func:`~clustermodel.workload.swf.read_swf`; the others are for all kinds.  ``feedback`` is for jobs that
    follow others: of SWF those with a preceding job, of a log further run attempts.  ``format`` is the name of a reader
    (``"swf"``, ``"sacct"``, ``"pbs"``, ``"lsf"``, ``"sge"``, ``"batsim"``, ``"muri"``); by default the first lines of the file
    tell.  With ``columns``, and ``units``, the file is a table that :func:`~clustermodel.logs.csv_jobs.read_csv` reads.

    Raises:
        TraceError: the file cannot be read, or has no usable job.
        SpecificationError: an option has a value that is not allowed, or that the kind of file does not have.
    """
    reader = _reader_of(path, format, columns, units)
    options: tuple[str, ...] = reader.options if isinstance(reader, Format) else ()
    given = {
        "unit": unit, "timezone": timezone, "cluster": cluster, "lenient": lenient, "processors_from": processors_from,
        "feedback": feedback, "waits": waits, "use_estimates": use_estimates, "keep": keep, "scale": scale,
    }  # fmt: skip
    for option, default in _DEFAULTS.items():
        if given[option] == default or option in options:
            continue
        if option in _OF_SACCT:
            kinds = " or ".join(log.name for log in _LOGS if option in log.options)
            raise SpecificationError(f"--{option}: {path} is not {kinds} output; it has no such option")
        if not options:
            named = option.replace("_", "-")
            raise SpecificationError(f"--{named}: {path} is read as {reader.name}, which has no such option")
    if isinstance(reader, Format) and options:
        workload = reader.read(path, **{name: given[name] for name in options})
    else:
        workload = _read_with(reader, path)
    if not use_estimates and "use_estimates" not in options:
        workload = workload.with_perfect_estimates()
    if keep is not None and "keep" not in options:
        workload = workload.select(keep)
    return workload if scale is None or "scale" in options else workload.scaled(scale)


def _reader_of(
    path: str | os.PathLike[str], format: str | None, columns: Mapping[str, str] | None, units: Mapping[str, str] | None
) -> Reader:
    """Return the reader of a trace that is in a format, by name, or a table with these columns."""
    if columns is None:
        if units:
            raise SpecificationError("--units: they are those of a CSV table; give its columns too (--columns)")
        return reader_for(path) if format is None else reader_named(format)
    if without_compression(os.fspath(path)).endswith(".swf"):
        raise SpecificationError(f"--columns: {path} is an SWF file; --columns is for CSV tables")
    if format is not None:
        raise SpecificationError(f"--columns: it reads a CSV table, not --format {format}; give one of the two")
    return Format("csv", lambda _: True, partial(read_csv, columns=columns, units=units or {}))


def reader_for(path: str | os.PathLike[str]) -> Reader:
    """Return the reader of a trace; files named ``.swf``, and those that cannot be read, are left to the reader of SWF."""
    name = os.fspath(path)
    if without_compression(name).endswith(".swf"):
        return SWF
    try:
        reader = recognised(path)
    except TraceError:
        return SWF
    if reader is not None or os.path.getsize(path) == 0:  # noqa: PTH202
        return reader or SWF
    try:
        columns = [field.strip() for field in next(csv.reader(text_lines(path)), [])]
    except csv.Error:
        columns = []
    if (suffix := Path(name).suffix.lower()) in (".py", ".toml"):
        kind = "Python script" if suffix == ".py" else "TOML file"
        raise TraceError(f"{name}: is a {kind}, not a trace; clustermodel run {name} runs its scenarios")
    _refuse_condor(name)
    if columns and _JSON.match(columns[0]):
        others = "write the jobs as a CSV table, whose columns --columns names"
        read = "the output of sacct --json and workloads of Batsim are read"
        raise TraceError(f"{name}: it is JSON, of which {read}, and no other; {others}")
    named = all(field and not field.replace(".", "").replace("-", "").isdigit() for field in columns)
    if named and len(columns) >= _FEWEST_COLUMNS:
        raise TraceError(
            f"{name}: it is no trace, but looks like a table; say what its columns are: --columns "
            f"submit_s=COLUMN,run_s=COLUMN,nodes=COLUMN; there are {shown(', '.join(columns))}"
        )
    others = f"; --format has a file read as {' or '.join(installed)}" if (installed := plugins(READERS)) else ""
    raise TraceError(
        f"{name}: it is no trace; expected are SWF (18 numbers a line), accounting records of PBS, LSF or Grid Engine, or the "
        f"output of {SACCT_COMMAND}{others}"
    )
