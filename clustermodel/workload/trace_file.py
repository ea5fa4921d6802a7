"""Traces of any kind that can be read: SWF, sacct and PBS, recognised by their content."""

from __future__ import annotations

import os
import re
from itertools import islice
from typing import Final

from clustermodel.errors import SpecificationError, TraceError
from clustermodel.workload.log_file import log_lines
from clustermodel.workload.pbs import is_pbs, read_pbs
from clustermodel.workload.sacct import SACCT_COMMAND, is_sacct, read_sacct
from clustermodel.workload.swf import read_swf
from clustermodel.workload.table import Workload
from clustermodel.workload.transforms import JobFilter, LoadScale

_LOOKED_AT: Final = 1000  # lines; a log may begin with messages or with the end of a record
_SWF: Final = re.compile(r"\s*(;|[-+]?\d+(\.\d+)?(\s|$))")


def trace_kind(path: str | os.PathLike[str]) -> str | None:
    """Return ``"swf"``, ``"sacct"`` or ``"pbs"`` by the first lines of a file; ``None`` if it looks like none of them.

    Raises:
        TraceError: the file cannot be read.
    """
    like_swf: bool | None = None  # by the first line that is not blank
    for text in islice(log_lines(path), _LOOKED_AT):
        if is_pbs(text):
            return "pbs"
        if is_sacct(text):
            return "sacct"
        if like_swf is None and text.strip():
            like_swf = _SWF.match(text) is not None
    return "swf" if like_swf else None


def require_log(path: str | os.PathLike[str]) -> str:
    """Return ``"sacct"`` or ``"pbs"``.

    Raises:
        TraceError: the file cannot be read, or is no accounting log; the message says what is expected.
    """
    kind = trace_kind(path)
    if kind in ("sacct", "pbs"):
        return kind
    if kind == "swf":
        raise TraceError(f"{os.fspath(path)}: it is in SWF already; every command reads it as it is")
    raise TraceError(
        f"{os.fspath(path)}: it is no accounting log; expected are accounting records of PBS (MM/DD/YYYY "
        f"HH:MM:SS;E;ID;key=value ...) or the output of {SACCT_COMMAND}"
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
    waits: bool = False,
) -> Workload:
    """Read a trace in SWF, or a log of sacct or PBS.

    ``unit``, ``timezone`` and ``cluster`` are those of :func:`~clustermodel.workload.sacct.read_sacct`, ``lenient`` and
    ``waits`` those of :func:`~clustermodel.workload.swf.read_swf`; the others are for all kinds.

    Raises:
        TraceError: the file cannot be read, or has no usable job.
        SpecificationError: an option has a value that is not allowed, or that the kind of file does not have.
    """
    kind = _kind_for_reading(path)
    for option, value, kinds in (
        ("unit", None if unit == "auto" else unit, ("sacct", "pbs")),
        ("timezone", timezone, ("sacct",)),
        ("cluster", cluster, ("sacct",)),
    ):
        if value is not None and kind not in kinds:
            raise SpecificationError(f"--{option}: {os.fspath(path)} is not {' or '.join(kinds)} output; it has no such option")
    if kind == "swf":
        return read_swf(
            path,
            processors_from=processors_from,
            use_estimates=use_estimates,
            keep=keep,
            scale=scale,
            lenient=lenient,
            waits=waits,
        )
    if kind == "pbs":
        workload = read_pbs(path, unit=unit, processors_from=processors_from, use_estimates=use_estimates)
    else:
        workload = read_sacct(
            path,
            unit=unit,
            timezone=timezone,
            cluster=cluster,
            processors_from=processors_from,
            use_estimates=use_estimates,
        )
    if keep is not None:
        workload = workload.select(keep)
    return workload if scale is None else workload.scaled(scale)


def _kind_for_reading(path: str | os.PathLike[str]) -> str:
    """Return the kind of a trace; files named ``.swf``, and those that cannot be read, are left to the reader of SWF."""
    name = os.fspath(path)
    if name.endswith((".swf", ".swf.gz")):
        return "swf"
    try:
        kind = trace_kind(path)
    except TraceError:
        if name.endswith((".bz2", ".xz")):
            raise
        return "swf"
    if kind is None and os.path.getsize(path) > 0:  # noqa: PTH202
        raise TraceError(
            f"{name}: it is no trace; expected are SWF (18 numbers a line), accounting records of PBS, or the output of "
            f"{SACCT_COMMAND}"
        )
    return kind or "swf"
