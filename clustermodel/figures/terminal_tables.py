"""Tables for the terminal, with rich: a comparison of runs, and percentiles of a trace."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from clustermodel.figures.terminal import literal
from clustermodel.measure.metrics import Summary


def comparison_table(summaries: Sequence[Summary], title: str) -> Table:
    """Return a table that compares runs, one row per run."""
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


def percentile_table(facts: dict[str, object]) -> Table:
    """Return a table of the percentiles of :func:`~clustermodel.workload.facts.trace_facts`."""
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
