"""A figure that compares several runs: utilization and queue length over time, and the distribution of waits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clustermodel.errors import SpecificationError
from clustermodel.figures.drawn_run import DrawnRun
from clustermodel.figures.steps import busy_nodes, equal_bins, time_axis, waiting_jobs
from clustermodel.figures.style import Style, legend_below, plain, policy_styles


def comparison(results: Sequence[DrawnRun], *, bins: int = 120) -> Figure:
    """Return one figure that compares runs: utilization and queue over time, and the distribution of waits.

    Raises:
        SpecificationError: no job ran in any of the runs.
    """
    drawable = [result for result in results if result.records.finished.any()]
    if not drawable:
        raise SpecificationError("figure: no job ran in any result; there is nothing to draw")
    figure = Figure(figsize=(9, 10), layout="constrained")
    top, middle, bottom = figure.subplots(3, 1)
    draw_over_time(top, drawable, bins, busy=True)
    draw_over_time(middle, drawable, bins, busy=False)
    if max(waiting_jobs(result, equal_bins(drawable, bins)).max() for result in drawable) > 200:
        middle.set_yscale("symlog", linthresh=10)
    _draw_waits(bottom, drawable)
    first = drawable[0]
    top.set_title(
        f"{plain(first.scenario.workload_name)} on {first.machine.nodes:,} nodes, {len(first.records):,} jobs; "
        f"means over {bins} equal intervals"
    )
    legend_below(figure, dict(zip((result.scenario.label for result in drawable), bottom.get_lines(), strict=True)))
    return figure


def draw_over_time(axes: Axes, runs: Sequence[DrawnRun], bins: int, *, busy: bool) -> None:
    """Draw the share of busy nodes over time, or else the queue length.

    Args:
        axes: where to draw.
        runs: each in the style of its policy.
        bins: number of equal time bins over which both are averaged.
        busy: whether to draw busy nodes.
    """
    edges = equal_bins(runs, bins)
    unit, name = time_axis(float(edges[-1]))
    for run, style in _styled(runs):
        values = (busy_nodes(run, edges) / run.machine.nodes) if busy else waiting_jobs(run, edges)
        axes.stairs(values, edges / unit, color=style.colour, linestyle=style.line, linewidth=1.2)
    axes.set_xlabel(f"time since the first submission ({name})")
    axes.set_xlim(0, edges[-1] / unit)
    axes.set_ylabel("busy nodes / nodes" if busy else "waiting jobs")
    axes.set_ylim(0, 1.02 if busy else None)
    axes.grid(alpha=0.25)


def _draw_waits(axes: Axes, runs: Sequence[DrawnRun]) -> None:
    for run, style in _styled(runs):
        waits = np.sort(run.jobs["wait_s"].dropna().to_numpy())
        share = 1 - np.arange(len(waits)) / max(len(waits), 1)
        axes.step(np.maximum(waits, 1) / 3600, share, where="pre", color=style.colour, linestyle=style.line)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("wait (hours; shorter than a second drawn at one second)")
    axes.set_ylabel("share of jobs that wait at least this long")
    axes.grid(alpha=0.25, which="both", linewidth=0.4)


def _styled(runs: Sequence[DrawnRun]) -> list[tuple[DrawnRun, Style]]:
    """Return runs with the styles of their policies in one figure."""
    styles = policy_styles([run.scenario.label for run in runs])
    return [(run, styles[run.scenario.label]) for run in runs]
