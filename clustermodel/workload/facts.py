"""Facts of a workload: sizes, times, estimates and offered load, as ``clustermodel trace info`` shows them."""

from __future__ import annotations

import numpy as np

from clustermodel.workload.table import Workload


def trace_facts(workload: Workload, nodes: int | None) -> dict[str, object]:
    """Return the facts of a workload as values for JSON; times in seconds, percentiles as ``p50``."""
    size, run, estimate = workload.column("nodes"), workload.seconds("run"), workload.seconds("estimate")
    percentiles = (0, 25, 50, 75, 90, 99, 100)

    def spread(values: np.ndarray) -> dict[str, float]:
        return {f"p{p}": float(v) for p, v in zip(percentiles, np.percentile(values, percentiles), strict=True)}

    def load(*, kill_at_estimate: bool) -> float | None:
        """Return the offered load, None without a machine size or without time between submissions."""
        return workload.offered_load(nodes, kill_at_estimate=kill_at_estimate) if nodes and workload.span_s else None

    return {
        "trace": workload.provenance.source,
        "jobs": len(workload),
        "users": len(np.unique(workload.column("user"))),
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
        "dropped": dict(sorted(workload.provenance.dropped.items())),
        "repaired": dict(sorted(workload.provenance.repaired.items())),
        "partial_executions": dict(sorted(workload.provenance.partial.items())),
        "header": dict(workload.provenance.header),
    }
