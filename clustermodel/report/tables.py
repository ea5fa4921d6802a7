"""Tables for the terminal, with rich."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.table import Table

from clustermodel.measure.metrics import Summary
from clustermodel.report.terminal import literal
from clustermodel.workload.table import Workload


def comparison_table(summaries: Sequence[Summary], title: str) -> Table:
    """Return one row per run."""
    stops = [name for name in ("retried", "preempted") if any(getattr(run, name) for run in summaries)]
    table = Table(title=literal(title), title_justify="left")
    table.add_column("policy", no_wrap=True)
    for heading in (
        "jobs", "mean wait\n(s)", "median wait\n(s)", "bounded\nslowdown", "weighted\nslowdown", "utilization\nρ",
        "capacity\nloss κ", "backfilled", "blocked", "delayed\nby later", "killed", "rejected",
        *((*stops, "wasted\nload") if stops else ()),
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    for run in summaries:
        table.add_row(
            literal(run.policy),
            f"{run.jobs:,}",
            f"{run.mean_wait_s:,.1f}",
            f"{run.median_wait_s:,.1f}",
            f"{run.mean_bounded_slowdown:,.2f}",
            f"{run.mean_weighted_bounded_slowdown:,.2f}",
            f"{run.utilization:.4f}",
            f"{run.kappa:.4f}",
            f"{run.backfilled:,}",
            f"{run.blocked:,}",
            "-" if run.delayed is None else f"{run.delayed:,}",
            f"{run.killed:,}",
            f"{run.rejected:,}",
            *((*(f"{getattr(run, name):,}" for name in stops), f"{run.wasted_load:.4f}") if stops else ()),
        )
    return table


def trace_facts(workload: Workload, nodes: int | None) -> dict[str, object]:
    """Return what ``clustermodel trace info`` shows, ready for JSON; times in seconds, percentiles by their number."""
    size, run, estimate = workload.column("nodes"), workload.seconds("run"), workload.seconds("estimate")
    percentiles = (0, 25, 50, 75, 90, 99, 100)

    def spread(values: np.ndarray) -> dict[str, float]:
        return {f"p{p}": float(v) for p, v in zip(percentiles, np.percentile(values, percentiles), strict=True)}

    def load(*, kill_at_estimate: bool) -> float | None:
        """Return the offered load, None where there is none: no machine, or no time between submissions."""
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
        "header": dict(workload.provenance.header),
    }


def percentile_table(facts: dict[str, object]) -> Table:
    """Return the percentiles of :func:`trace_facts` as a table."""
    rows = {
        "nodes": "nodes",
        "run_s": "run time (s)",
        "estimate_s": "estimate (s)",
        "estimate_over_run": "estimate / run time",
    }
    table = Table(title="percentiles over jobs", title_justify="left")
    table.add_column("")
    first = facts["nodes"]
    assert isinstance(first, dict)
    for name in first:
        table.add_column({"p0": "min", "p50": "median", "p100": "max"}.get(str(name), str(name)), justify="right")
    for key, heading in rows.items():
        values = facts[key]
        assert isinstance(values, dict)
        table.add_row(heading, *(f"{value:,.2f}" if value % 1 else f"{value:,.0f}" for value in values.values()))
    return table
