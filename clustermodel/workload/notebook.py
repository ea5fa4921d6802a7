"""What notebooks show of a workload."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.errors import counted
from clustermodel.html import html_fields
from clustermodel.readable import duration


class _Source(Protocol):
    @property
    def source(self) -> str:
        """File name, or the generator and its seed."""

    @property
    def unit(self) -> str:
        """What a node of the jobs stands for, in the singular."""


class ShownWorkload(Protocol):
    """A workload, such as a :class:`~clustermodel.workload.table.Workload`."""

    name: str
    """A label."""
    machine_nodes: int | None
    """Size of the machine on which it was recorded."""

    @property
    def provenance(self) -> _Source:
        """Where the jobs come from."""

    @property
    def span_s(self) -> float:
        """Time from the first submission to the last, seconds."""

    def __len__(self) -> int:
        """Return the number of jobs."""

    def column(self, name: str) -> IntArray:
        """Return a column, times in ticks."""

    def seconds(self, name: str) -> FloatArray:
        """Return a column of times, seconds."""

    def offered_load(self, nodes: int) -> float:
        """Return the offered load on a machine."""


def workload_html(workload: ShownWorkload) -> str:
    """Return the jobs of a workload as a table: their number, and smallest, median and largest values."""
    nodes, size, unit = workload.column("nodes"), workload.machine_nodes, workload.provenance.unit
    load = None if size is None or len(workload) < 2 or not workload.span_s else workload.offered_load(size)
    fields: list[tuple[str, object]] = [
        ("jobs", f"{len(workload):,} of {counted(len(np.unique(workload.column('user'))), 'user')}"),
        ("submitted over", duration(workload.span_s)),
        ("recorded on", "unknown" if size is None else counted(size, unit)),
        ("offered load", load),
        (f"{unit}s of a job", f"{nodes.min():,}, median {np.median(nodes):,.4g}, up to {nodes.max():,}"),
    ]
    for name, title in (("run", "run time"), ("estimate", "estimate")):
        values = workload.seconds(name)
        fields.append((title, f"median {duration(float(np.median(values)))}, up to {duration(float(values.max()))}"))
    return html_fields(f"Workload {workload.name}", [*fields, ("source", workload.provenance.source)])
