"""A figure that compares several runs: nodes and jobs over time, the distribution of waits or slowdowns, node time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError, counted
from clustermodel.figures.account_shares import account_shares, draw_account_bars
from clustermodel.figures.notebook_figure import NotebookFigure
from clustermodel.figures.steps import busy_nodes, equal_bins, jobs_in_system, time_axis, waiting_jobs
from clustermodel.figures.style import Style, legend_below, legend_labels, plain, policy_styles
from clustermodel.measure.job_table import dedicated
from clustermodel.measure.metrics import bounded_slowdown
from clustermodel.measure.quantities import account_columns
from clustermodel.ticks import TICKS_PER_SECOND

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result


def comparison(results: Sequence[Result], *, bins: int = 120) -> Figure:
    """Return one figure that compares runs: utilization and jobs over time, a distribution, and node time by account.

    The jobs are those that wait, and the distribution is that of waits.  Where a run shares nodes in time, so that waits are
    short by construction, the jobs are those that wait or run, and the distribution is that of bounded slowdowns.

    Raises:
        SpecificationError: no job ran in any of the runs.
    """
    drawable = [result for result in results if result.records.finished.any()]
    if not drawable:
        raise SpecificationError("figure: no job ran in any result; there is nothing to draw")
    in_time = any(run.slices is not None for run in drawable)
    bars = 0.7 + 0.3 * len(drawable)
    figure = NotebookFigure(figsize=(9, 10 + bars), layout="constrained")
    top, middle, below, bottom = figure.subplots(4, 1, height_ratios=(3.3, 3.3, 3.3, bars))
    draw_over_time(top, drawable, bins, busy=True)
    draw_over_time(middle, drawable, bins, busy=False, running=in_time)
    if max(waiting_jobs(result, equal_bins(drawable, bins)).max() for result in drawable) > 200:
        middle.set_yscale("symlog", linthresh=10)
    (_draw_slowdowns if in_time else _draw_waits)(below, drawable)
    _draw_node_time(bottom, drawable)
    first = drawable[0]
    top.set_title(
        f"{plain(first.scenario.workload_name)} on {counted(first.machine.processors, first.scenario.unit)}, "
        f"{counted(len(first.records), 'job')}; means over {bins} equal intervals"
    )
    legend_below(figure, dict(zip((result.scenario.label for result in drawable), below.get_lines(), strict=True)))
    return figure


def draw_over_time(axes: Axes, runs: Sequence[Result], bins: int, *, busy: bool, running: bool = False) -> None:
    """Draw the share of busy nodes over time, or else numbers of jobs.

    Args:
        axes: where to draw.
        runs: each in the style of its policy.
        bins: number of equal time bins over which both are averaged.
        busy: whether to draw busy nodes.
        running: whether running jobs count beside waiting ones.
    """
    edges = equal_bins(runs, bins)
    unit, name = time_axis(float(edges[-1]))
    jobs = jobs_in_system if running else waiting_jobs
    for run, style in _styled(runs):
        values = (busy_nodes(run, edges) / run.machine.processors) if busy else jobs(run, edges)
        axes.stairs(values, edges / unit, color=style.colour, linestyle=style.line, linewidth=1.2)
    axes.set_xlabel(f"time since the first submission ({name})")
    axes.set_xlim(0, edges[-1] / unit)
    axes.set_ylabel("busy nodes / nodes" if busy else "waiting and running jobs" if running else "waiting jobs")
    axes.set_ylim(0, 1.02 if busy else None)
    axes.grid(alpha=0.25)


def _draw_waits(axes: Axes, runs: Sequence[Result]) -> None:
    for run, style in _styled(runs):
        waits = run.jobs["wait_s"].dropna().to_numpy()
        _draw_shares(axes, np.maximum(waits, 1) / 3600, style)
    axes.set_xlabel("wait (hours; shorter than a second drawn at one second)")
    axes.set_ylabel("share of jobs that wait at least this long")


def _draw_slowdowns(axes: Axes, runs: Sequence[Result]) -> None:
    for run, style in _styled(runs):
        ran = run.records.finished
        submit, end = (run.records.seconds(name)[ran] for name in ("submit", "end"))
        _draw_shares(axes, bounded_slowdown(end - submit, dedicated(run.records)[ran] / TICKS_PER_SECOND), style)
    axes.set_xlabel("bounded slowdown")
    axes.set_ylabel("share of jobs with this or more")


def _draw_shares(axes: Axes, values: FloatArray, style: Style) -> None:
    """Draw the share of jobs whose value is at least that on the axis."""
    share = 1 - np.arange(len(values)) / max(len(values), 1)
    axes.step(np.sort(values), share, where="pre", color=style.colour, linestyle=style.line)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(alpha=0.25, which="both", linewidth=0.4)


def _draw_node_time(axes: Axes, runs: Sequence[Result]) -> None:
    """Draw the shares of node time by account, a bar for each run."""
    shares = account_shares(pd.DataFrame([account_columns(run.ledger) for run in runs]))
    places = np.arange(len(runs), dtype=float)
    handles = draw_account_bars(axes, shares, places)
    axes.set_yticks(places, legend_labels([run.scenario.label for run in runs]))
    axes.set_ylabel("policy")
    axes.legend(
        list(handles.values()), list(handles), ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False,
        fontsize="small",
    )  # fmt: skip


def _styled(runs: Sequence[Result]) -> list[tuple[Result, Style]]:
    """Return runs with the styles of their policies in one figure."""
    styles = policy_styles([run.scenario.label for run in runs])
    return [(run, styles[run.scenario.label]) for run in runs]
