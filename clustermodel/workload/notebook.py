"""What notebooks show of a workload."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clustermodel.errors import counted
from clustermodel.html import html_fields
from clustermodel.readable import duration

if TYPE_CHECKING:
    from clustermodel.workload.table import Workload


def workload_html(workload: Workload) -> str:
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
