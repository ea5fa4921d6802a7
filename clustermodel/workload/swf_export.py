"""A workload as a trace in the Standard Workload Format, with what an accounting log has recorded, and names in the header."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Final

import numpy as np

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.errors import visible
from clustermodel.job import UNSET
from clustermodel.output_files import write_file
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.extra_columns import (
    ACCOUNT,
    ARRAY_LIMIT,
    CORES,
    GPUS,
    JOB_NAME,
    NODE_COUNT,
    PARTITION,
    PRECEDING,
    QOS,
    QUEUE,
    REQUEUES,
    SUSPENDED,
    THINK,
    WAIT,
)
from clustermodel.workload.swf import write_swf
from clustermodel.workload.table import Workload

LONGEST_NAMES: Final = 500_000
"""Characters of the names in a header; columns whose names would make it longer go to a file of their own."""
_CHUNK: Final = 4096
_LONGEST_NAME: Final = 10_000
_NOT_IN_SWF: Final = {
    ACCOUNT: "accounts",
    GPUS: "GPUs",
    SUSPENDED: "suspended time",
    REQUEUES: "run attempts before this one",
    ARRAY_LIMIT: "limits of job arrays",
    NODE_COUNT: "nodes and cores together",
    QOS: "QOS",
}


def write_trace(path: str | os.PathLike[str], workload: Workload) -> list[str]:
    """Write a workload as an SWF trace; ``.gz`` is compressed.

    Fields that the workload does not have are -1.  Users, groups, queues (or QOS), partitions and executables (job names) are
    numbers; the names are ``; UserMap: 1 alice`` and the like in the header (``Queue`` and ``Partition`` as the format has
    them).  Without groups, accounts take their field.  Names that are too many for a header go to ``PATH.names.csv``.

    Returns:
        Lines that a reader of the file should know about what SWF has no field for, and the file of names.

    Raises:
        OutputError: a file cannot be written.
    """
    groups = "group" if (workload.column("group") != UNSET).any() or not workload.has(ACCOUNT) else ACCOUNT
    queues = QUEUE if workload.has(QUEUE) or not workload.has(QOS) else QOS
    maps = {"Partition": PARTITION, "Queue": queues, "GroupMap": groups, "UserMap": "user", "ExecutableMap": JOB_NAME}
    names = {key: tuple(map(visible, workload.names.get(column, ()))) for key, column in maps.items()}
    header, separate = _named(names)
    rows = _rows(workload, groups, queues)
    write_swf(path, rows, header=[*_header(workload), *header])
    notes = []
    if lost := _dropped(workload, {groups, queues}):
        notes.append(f"not in the SWF file: {', '.join(lost)}")
    if separate:
        names_path = f"{os.fspath(path)}.names.csv"
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(("map", "number", "name"))
        writer.writerows((key, number, name) for key in separate for number, name in enumerate(names[key], start=1))
        write_file(names_path, table.getvalue())
        notes.append(f"names, too many for the header: {', '.join(separate)} in {names_path}")
    return notes


def _named(names: dict[str, tuple[str, ...]]) -> tuple[list[tuple[str, object]], list[str]]:
    """Return the lines of names for the header, and the maps that are too long for it."""
    header: list[tuple[str, object]] = []
    separate: list[str] = []
    left = LONGEST_NAMES
    for key, texts in names.items():
        length = sum(len(text) + len(key) + 16 for text in texts)
        if length > left or any(len(text) > _LONGEST_NAME for text in texts):
            separate.append(key)
            continue
        left -= length
        header += [(key, f"{number} {text}") for number, text in enumerate(texts, start=1)]
    return header, separate


def _header(workload: Workload) -> list[tuple[str, object]]:
    known = workload.provenance.header
    report = workload.provenance.report
    size = workload.machine_nodes
    return [
        ("Version", "2.2"),
        ("Computer", known.get("Computer", workload.name)),
        ("Conversion", f"clustermodel {version('clustermodel')}"),
        ("MaxJobs", len(workload)),
        ("MaxRecords", len(workload)),
        *((key, known[key]) for key in ("UnixStartTime", "TimeZoneString", "StartTime", "EndTime") if key in known),
        *([("MaxNodes", size), ("MaxProcs", size)] if size else []),
        ("Note", f"from {Path(workload.provenance.source).name}" + (f"; processors are {report.unit}" if report else "")),
        *(("Note", line) for line in workload.provenance.lines()),
    ]


def _rows(workload: Workload, groups: str, queues: str) -> Iterator[tuple[float, ...]]:
    """Yield the data lines, made of a few thousand jobs at a time."""
    unknown = np.full(len(workload), UNSET)
    preceding = workload.column(PRECEDING)
    columns = [
        workload.column("id"),
        _seconds(workload.column("submit")),
        _seconds(workload.column(WAIT)),
        _seconds(workload.column("run")),
        workload.column("nodes").clip(min=UNSET),
        unknown,
        unknown,
        unknown,
        _seconds(workload.column("estimate")),
        workload.column("memory"),
        workload.column("status").clip(min=UNSET),
        workload.column("user").clip(min=UNSET),
        workload.column(groups).clip(min=UNSET),
        workload.column(JOB_NAME),
        workload.column(queues),
        workload.column(PARTITION),
        preceding,
        np.where(preceding == UNSET, UNSET, _seconds(workload.column(THINK))),
    ]
    for start in range(0, len(workload), _CHUNK):
        yield from zip(*(column[start : start + _CHUNK].tolist() for column in columns), strict=True)


def _seconds(ticks: IntArray) -> FloatArray:
    return np.where(ticks < 0, UNSET, ticks / TICKS_PER_SECOND)


def _dropped(workload: Workload, kept: set[str]) -> list[str]:
    """Return what the workload has and SWF has no field for."""
    lost = []
    for column, text in _NOT_IN_SWF.items():
        if column in kept or not workload.has(column):
            continue
        values = workload.column(column)
        if column == NODE_COUNT and not workload.has(CORES):
            continue
        if (values > 0).any():
            lost.append(text)
    return lost
