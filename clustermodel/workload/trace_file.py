"""Reading a trace of any format that is known (:mod:`clustermodel.workload.readers`), with the options of its format."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from clustermodel.errors import SpecificationError, TraceError, shown
from clustermodel.text_files import without_compression
from clustermodel.workload.csv_jobs import read_csv
from clustermodel.workload.log_file import log_lines
from clustermodel.workload.lsf import read_lsf
from clustermodel.workload.pbs import read_pbs
from clustermodel.workload.readers import LSF, PBS, SACCT, SWF, Format, Reader, read_with, reader_named, reader_of
from clustermodel.workload.sacct import SACCT_COMMAND, looks_like_json, read_sacct
from clustermodel.workload.swf import read_swf
from clustermodel.workload.table import Workload
from clustermodel.workload.transforms import JobFilter, LoadScale

_FEWEST_COLUMNS: Final = 3  # of a table of jobs: submission, run time, size
_LOOKED_AT: Final = 1000  # lines; a log may begin with messages or with the end of a record


def recognised(path: str | os.PathLike[str]) -> Reader | None:
    """Return the reader that recognises the first lines of a file; ``None`` if it looks like no trace.

    Raises:
        TraceError: the file cannot be read.
    """
    if looks_like_json(Path(path)):
        return SACCT
    return reader_of([text for text in islice(log_lines(path), _LOOKED_AT) if text.strip()])


def require_log(path: str | os.PathLike[str]) -> str:
    """Return ``"sacct"``, ``"pbs"`` or ``"lsf"``.

    Raises:
        TraceError: the file cannot be read, or is no accounting log; the message says what is expected.
    """
    reader = recognised(path)
    if reader in (SACCT, PBS, LSF):
        return reader.name
    if reader is SWF:
        raise TraceError(f"{os.fspath(path)}: it is in SWF already; every command reads it as it is")
    raise TraceError(
        f"{os.fspath(path)}: it is no accounting log; expected are accounting records of PBS (MM/DD/YYYY "
        f"HH:MM:SS;E;ID;key=value ...) or of LSF (lsb.acct), or the output of {SACCT_COMMAND}"
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
) -> Workload:
    """Read a trace in SWF, a log of sacct, PBS or LSF, a workload of Zhao et al. 2022 (Muri), or what another package can read.

    ``unit``, ``timezone`` and ``cluster`` are those of :func:`~clustermodel.workload.sacct.read_sacct`, ``lenient`` and
    ``waits`` those of :func:`~clustermodel.workload.swf.read_swf`; the others are for all kinds.  ``feedback`` is for jobs that
    follow others: of SWF those with a preceding job, of a log further run attempts.  ``format`` is the name of a reader
    (``"swf"``, ``"sacct"``, ``"pbs"``, ``"lsf"``, ``"muri"``); by default the first lines of the file tell.
    With ``columns`` the file is a table that :func:`~clustermodel.workload.csv_jobs.read_csv` reads.

    Raises:
        TraceError: the file cannot be read, or has no usable job.
        SpecificationError: an option has a value that is not allowed, or that the kind of file does not have.
    """
    if columns is None:
        reader = reader_for(path) if format is None else reader_named(format)
    else:
        reader = Format("csv", lambda _: True, partial(read_csv, columns=columns))
        if format is not None:
            raise SpecificationError(f"--columns: it reads a CSV table, not --format {format}; give one of the two")
    kind = reader.name
    for option, value, kinds in (
        ("unit", None if unit == "auto" else unit, ("sacct", "pbs", "lsf")),
        ("timezone", timezone, ("sacct",)),
        ("cluster", cluster, ("sacct",)),
    ):
        if value is not None and kind not in kinds:
            raise SpecificationError(f"--{option}: {os.fspath(path)} is not {' or '.join(kinds)} output; it has no such option")
    if reader is SWF:
        return read_swf(
            path,
            processors_from=processors_from,
            use_estimates=use_estimates,
            keep=keep,
            scale=scale,
            lenient=lenient,
            feedback=feedback,
            waits=waits,
        )
    if reader in (PBS, LSF):
        read = read_pbs if reader is PBS else read_lsf
        workload = read(path, unit=unit, processors_from=processors_from, use_estimates=use_estimates, feedback=feedback)
    elif reader is SACCT:
        workload = read_sacct(
            path,
            unit=unit,
            timezone=timezone,
            cluster=cluster,
            processors_from=processors_from,
            use_estimates=use_estimates,
            feedback=feedback,
        )
    else:
        for option, given in (
            ("lenient", lenient),
            ("processors-from", processors_from != "allocated"),
            ("feedback", feedback),
            ("waits", waits and columns is None),
        ):
            if given:
                raise SpecificationError(f"--{option}: {os.fspath(path)} is read as {kind}, which has no such option")
        workload = read_with(reader, path)
        workload = workload if use_estimates else workload.with_perfect_estimates()
    if keep is not None:
        workload = workload.select(keep)
    return workload if scale is None else workload.scaled(scale)


def _columns_of_table(path: str | os.PathLike[str]) -> list[str]:
    """Return the names in the first line of a CSV table; none if it is no CSV, or a field of it is empty or a number."""
    try:
        fields = [field.strip() for field in next(csv.reader(log_lines(path)), [])]
    except csv.Error:
        return []
    names = all(field and not field.replace(".", "").replace("-", "").isdigit() for field in fields)
    return fields if names and len(fields) >= _FEWEST_COLUMNS else []


def reader_for(path: str | os.PathLike[str]) -> Reader:
    """Return the reader of a trace; files named ``.swf``, and those that cannot be read, are left to the reader of SWF.

    Raises:
        TraceError: no reader recognises the file.
    """
    name = os.fspath(path)
    if without_compression(name).endswith(".swf"):
        return SWF
    try:
        reader = recognised(path)
    except TraceError:
        return SWF
    if reader is None and (columns := _columns_of_table(path)):
        raise TraceError(
            f"{name}: it is no trace, but looks like a table; say what its columns are: --columns "
            f"submit_s=COLUMN,run_s=COLUMN,nodes=COLUMN; there are {shown(', '.join(columns))}"
        )
    if reader is None and os.path.getsize(path) > 0:  # noqa: PTH202
        raise TraceError(
            f"{name}: it is no trace; expected are SWF (18 numbers a line), accounting records of PBS or LSF, or the output of "
            f"{SACCT_COMMAND}"
        )
    return reader or SWF
