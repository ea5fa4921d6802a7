"""Statistics of a trace."""

from __future__ import annotations

from functools import partial

import numpy as np

from clustermodel.arrays import distinct
from clustermodel.workload.table import Workload


def trace_facts(workload: Workload, nodes: int | None) -> dict[str, object]:
    """Return statistics of a workload as JSON values; times in seconds, percentiles as ``p50``."""
    size, run, estimate = workload.column("nodes"), workload.seconds("run"), workload.seconds("estimate")
    known, percentiles = workload.provenance, (0, 25, 50, 75, 90, 99, 100)
    load = partial(workload.offered_load, nodes) if nodes and workload.span_s else lambda **_: None

    def spread(values: np.ndarray) -> dict[str, float]:
        return {f"p{p}": float(v) for p, v in zip(percentiles, np.percentile(values, percentiles), strict=True)}

    return {
        "trace": known.source,
        "jobs": len(workload),
        "users": len(distinct(workload.column("user"))),
        "span_s": workload.span_s,
        "machine_nodes": nodes,
        "offered_load": load(kill_at_estimate=True),
        "offered_load_without_killing": load(kill_at_estimate=False),
        "jobs_wider_than_machine": int((size > nodes).sum()) if nodes else None,
        "jobs_beyond_estimate": int((run > estimate).sum()),
        "nodes": spread(size),
        "run_s": spread(run),
        "estimate_s": spread(estimate),
        "estimate_over_run": spread(estimate / run),
        **{name: dict(sorted(getattr(known, name).items())) for name in ("dropped", "repaired")},
        "partial_executions": dict(sorted(known.partial.items())),
        "header": dict(known.header),
    }
