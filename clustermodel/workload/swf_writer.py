"""Writing the Standard Workload Format: any data lines, and the jobs of a workload."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.errors import visible
from clustermodel.output_files import write_file
from clustermodel.ticks import TICKS_PER_SECOND

_UNKNOWN: Final = -1


def write_swf(path: str | os.PathLike[str], rows: Iterable[tuple[float, ...]], *, header: Iterable[tuple[str, object]]) -> None:
    """Write data lines of 18 numbers each (``-1`` for unknown) under the ``; Key: value`` lines of ``header``.

    Each line of a value gets a ``; Key:`` of its own.  A file whose name ends in ``.gz`` is compressed, without a time stamp,
    so that equal schedules give equal bytes.

    Raises:
        OutputError: the file cannot be written.
    """
    lines = [f"; {visible(key)}: {visible(line)}\n" for key, value in header for line in str(value).split("\n")]
    lines += [" ".join(_number(value) for value in row) + "\n" for row in rows]
    data = "".join(lines).encode()
    write_file(path, gzip.compress(data, mtime=0) if Path(path).suffix == ".gz" else data)


def write_jobs(
    path: str | os.PathLike[str], columns: Mapping[str, IntArray], *, name: str, source: str, machine_nodes: int | None
) -> None:
    """Write jobs that no schedule has: waits are unknown, and allocated and requested processors are the same.

    Args:
        path: the file; ``.gz`` is compressed.
        columns: of a workload by name, times in ticks, each of shape ``(jobs,)``; ``memory`` in KiB per node.
        name: of the workload.
        source: of the workload.
        machine_nodes: size of the recorded machine, if known.

    Raises:
        OutputError: the file cannot be written.
    """
    seconds = {key: (columns[key] / TICKS_PER_SECOND).tolist() for key in ("submit", "run", "estimate")}
    think = np.where(columns["think"] < 0, _UNKNOWN, columns["think"] / TICKS_PER_SECOND).tolist()
    whole = {
        key: np.maximum(columns[key], _UNKNOWN).tolist() for key in ("nodes", "status", "user", "group", "memory", "preceding")
    }
    header: list[tuple[str, object]] = [
        ("Version", "2.2"),
        ("Conversion", f"clustermodel {version('clustermodel')}"),
        ("MaxJobs", len(think)),
        ("MaxRecords", len(think)),
        *([] if machine_nodes is None else [("MaxNodes", machine_nodes), ("MaxProcs", machine_nodes)]),
        ("Note", f"jobs of the workload {name}: {source}"),
    ]
    rows = zip(
        columns["id"].tolist(), *seconds.values(), *whole.values(), think, strict=True
    )  # fmt: skip
    write_swf(
        path,
        (
            (job, submit, -1, run, nodes, -1, -1, nodes, estimate, memory, status, user, group, -1, -1, -1, before, think_s)
            for job, submit, run, estimate, nodes, status, user, group, memory, before, think_s in rows
        ),
        header=header,
    )


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.6f}".rstrip("0")
