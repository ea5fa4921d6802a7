"""The figures of one run, and a figure that compares several: over time, a Gantt chart, the matrix, slices, capacity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError, counted
from clustermodel.figures import style
from clustermodel.figures.capacity import account_shares, draw_account_bars, draw_capacity
from clustermodel.figures.matrix import MOST_RECTANGLES, matrix_figure, slices_figure
from clustermodel.measure.event_log import mean_of_steps, memory_share
from clustermodel.measure.job_table import Jobs
from clustermodel.measure.metrics import bounded_slowdown
from clustermodel.measure.quantities import account_columns
from clustermodel.recording.run_attempts import UNKNOWN
from clustermodel.ticks import TICKS_PER_SECOND, to_seconds
from clustermodel.validation import require_whole, to_gib

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result


class ResultPlots:
    """The figures of one result; each method returns a matplotlib figure, to show or save.

    ``bins`` is the number of equal time bins over which a figure over time takes means.
    """

    def __init__(self, run: Result) -> None:
        self._run = run

    def utilization(self, *, bins: int = 200) -> Figure:
        """Draw the share of busy nodes and the queue length over time.

        Raises:
            SpecificationError: no job ran.
        """
        style.require_drawable(self._run, "utilization")
        figure, (top, bottom) = style.new_figure(9, 5.5, 2, sharex=True)
        _draw_over_time(top, [self._run], bins, busy=True)
        _draw_over_time(bottom, [self._run], bins, busy=False)
        top.set_xlabel("")
        rho = self._run.ledger.utilization
        top.axhline(rho, color="0.4", linewidth=0.8, linestyle="--")
        top.set_title(f"{style.title_of(self._run)}: utilization $\\rho$ = {rho:.3f} (dashed)")
        return figure

    def gantt(self, *, first: int | None = None, last: int | None = None, labels: bool | None = None) -> Figure:
        """Draw which nodes each job held, and when; run attempts of which work was discarded are hatched, and nodes that were
        down are black.

        Args:
            first: id of the first job to show, in order of submission; the first of all by default.
            last: id of the last job to show; by default the 200th from ``first`` on, or the last of all.
            labels: write all job ids, or none; by default those that fit their bars.

        Raises:
            SpecificationError: unknown ids, an empty range, too many jobs to draw, or a run with time sharing.
        """
        figure, axes = style.new_figure(10, 5.5)
        draw_gantt(axes, self._run, first=first, last=last, labels=labels)
        return figure

    def matrix(self, at_s: float) -> Figure:
        """Draw the Ousterhout matrix at an instant: which gang has which columns in which row (Zhang et al. 2003, figure 7).

        The row that runs at that instant has a frame; at the boundary of two slices it is the row of the later one.

        Args:
            at_s: the instant, seconds on the clock of the workload, as in the job table and in :meth:`gantt`.

        Raises:
            SpecificationError: the run kept no history, no gang shared its nodes in time, or the run does not cover that time.
        """
        return matrix_figure(self._run, at_s)

    def slices(self, first_s: float, last_s: float) -> Figure:
        """Draw which gang each node runs in which time slice.

        Args:
            first_s: begin of the interval to draw, seconds on the clock of the workload, as in the job table.
            last_s: end of the interval, seconds on the same clock.

        Raises:
            SpecificationError: the run kept no history, no gang shared its nodes in time, the run does not cover the interval,
                nothing ran in it, or it has too many slices to draw.
        """
        return slices_figure(self._run, first_s, last_s)

    def memory(self, *, bins: int = 200) -> Figure:
        """Draw the share of the nodes' memory that running and suspended jobs have over time.

        Raises:
            SpecificationError: no job ran, or the memory of nodes is not limited.
        """
        bins = require_whole("memory: bins", bins, at_least=1)
        style.require_drawable(self._run, "memory")
        of_a_node, nodes = self._run.machine.node_memory, self._run.machine.nodes
        if of_a_node is None:
            raise SpecificationError("memory: nodes have as much as jobs need; give Machine(node_memory_gib=...)")
        log, edges = self._run.events, _equal_bins([self._run], bins)
        unit, name = style.time_axis(float(edges[-1]))
        figure, axes = style.new_figure(9, 3.5)
        used = mean_of_steps(log.time_s, memory_share(self._run.records, of_a_node * nodes, log.ticks), edges)
        axes.stairs(used, edges / unit, linewidth=1.2)
        axes.set(xlabel=f"time since the first submission ({name})", xlim=(0, edges[-1] / unit))
        axes.set(ylabel="memory in use / memory", ylim=(0, 1.02))
        axes.grid(alpha=0.25)
        axes.set_title(f"{style.title_of(self._run)}: {nodes:,} nodes with {to_gib(of_a_node):g} GiB each")
        return figure

    def capacity(self, *, bins: int = 200) -> Figure:
        """Draw the use of the machine's capacity over time, by the accounts of the ledger, stacked, as shares of the machine.

        Work is one area: whether it was useful or wasted is known only when a job completes, but the figure shows it when the
        job executes.  The amount that an account gains between two scheduling events is spread evenly over the time between
        them.  Accounts without an amount are left out; the legend has each account's share of the whole run.

        Raises:
            SpecificationError: no job ran, or the run used time sharing and kept no history.
        """
        bins = require_whole("capacity: bins", bins, at_least=1)
        style.require_drawable(self._run, "capacity")
        figure, axes = style.new_figure(9, 4.5)
        draw_capacity(axes, self._run, bins)
        size = counted(self._run.machine.processors, self._run.scenario.unit)
        title = f"{style.title_of(self._run)}: capacity of {size}, means over {bins} equal intervals"
        figure.suptitle(title, fontsize="large")
        figure.legend(loc="outside right center", reverse=True)
        return figure


def draw_gantt(
    axes: Axes, run: Result, *, first: int | None = None, last: int | None = None, labels: bool | None = None
) -> None:
    """Draw a Gantt chart on axes of your own; arguments and errors are those of :meth:`ResultPlots.gantt`."""
    if run.slices is not None:
        raise SpecificationError(
            f"gantt: {run.scenario.label} shares nodes in time, so bars would hide each other; "
            "draw slices(first_s, last_s) instead"
        )
    records, ids = run.records, run.records.column("id")
    for field, job in (("first", first), ("last", last)):
        if job is not None and job not in ids:
            raise SpecificationError(f"gantt: {field}: job {job} is not in this run")
    begin = 0 if first is None else int(np.argmax(ids == first))
    stop = min(begin + 200, len(ids)) if last is None else int(np.argmax(ids == last)) + 1
    shown = [index for index in range(begin, stop) if len(records.columns_of(index))]
    if not shown:
        raise SpecificationError(f"gantt: no job ran between first={first} and last={last}")
    if len(shown) > MOST_RECTANGLES:
        raise SpecificationError(f"gantt: {len(shown)} jobs are too many to draw; choose at most {MOST_RECTANGLES}")
    starts, ends = records.seconds("start"), records.seconds("end")
    bars = [(index, starts[index], ends[index], records.columns_of(index), False) for index in shown]
    bars += [
        (attempt.job, to_seconds(attempt.start), to_seconds(attempt.end), attempt.columns, attempt.lost > 0)
        for attempt in records.each_stopped_run()
        if begin <= attempt.job < stop
    ]
    earliest, latest = min(bar[1] for bar in bars), max(bar[2] for bar in bars)
    unit, name = style.time_axis(span := latest - earliest)
    for index, start, end, columns, lost in bars:
        ranges = [(low - 0.5, high - low) for low, high in zip(columns[::2], columns[1::2], strict=True)]
        left, width = start / unit, (end - start) / unit
        look: dict[str, Any] = {"hatch": "////", "alpha": 0.6} if lost else {}
        for extent in ranges:
            colour = style.job_hue(int(ids[index]))
            axes.broken_barh([(left, width)], extent, facecolors=colour, edgecolors="white", linewidth=0.4, **look)
        low, height = max(ranges, key=lambda extent: extent[1])
        legible = width >= 0.025 * span / unit and height >= 0.025 * run.machine.processors
        if labels or (labels is None and legible):
            middle = (left + width / 2, low + height / 2)
            axes.annotate(str(ids[index]), middle, ha="center", va="center", fontsize=7, annotation_clip=True)
    for node, down, up in zip(*(column.tolist() for column in records.outages), strict=True):
        until = latest if up == UNKNOWN else to_seconds(up)
        since = to_seconds(down)
        axes.broken_barh([(since / unit, (until - since) / unit)], (node - 0.5, 1), facecolors="black")
    axes.set(xlim=(earliest / unit, latest / unit), ylim=(-0.5, run.machine.processors - 0.5))
    axes.set(xlabel=f"time ({name})", ylabel=run.scenario.unit)
    title = f"{style.title_of(run)}: jobs {ids[shown[0]]} to {ids[shown[-1]]}"
    axes.set_title(title if len(shown) == records.finished.sum() else f"{title} (others are not drawn)")


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
    figure, (top, middle, below, bottom) = style.new_figure(9, 10 + bars, 4, height_ratios=(3.3, 3.3, 3.3, bars))
    _draw_over_time(top, drawable, bins, busy=True)
    _draw_over_time(middle, drawable, bins, busy=False, running=in_time)
    if max(waiting_jobs(result, _equal_bins(drawable, bins)).max() for result in drawable) > 200:
        middle.set_yscale("symlog", linthresh=10)
    _draw_distribution(below, drawable, slowdowns=in_time)
    _draw_node_time(bottom, drawable)
    first = drawable[0]
    top.set_title(
        f"{style.plain(first.scenario.workload_name)} on {counted(first.machine.processors, first.scenario.unit)}, "
        f"{counted(len(first.records), 'job')}; means over {bins} equal intervals"
    )
    style.legend_below(figure, dict(zip((result.scenario.label for result in drawable), below.get_lines(), strict=True)))
    return figure


def _draw_over_time(axes: Axes, runs: Sequence[Result], bins: int, *, busy: bool, running: bool = False) -> None:
    """Draw the share of busy nodes over time, or else numbers of jobs."""
    edges = _equal_bins(runs, bins)
    unit, name = style.time_axis(float(edges[-1]))
    jobs = _jobs_in_system if running else waiting_jobs
    for run, look in _styled(runs):
        values = (busy_nodes(run, edges) / run.machine.processors) if busy else jobs(run, edges)
        axes.stairs(values, edges / unit, color=look.colour, linestyle=look.line, linewidth=1.2)
    axes.set(xlabel=f"time since the first submission ({name})", xlim=(0, edges[-1] / unit), ylim=(0, 1.02 if busy else None))
    axes.set_ylabel("busy nodes / nodes" if busy else "waiting and running jobs" if running else "waiting jobs")
    axes.grid(alpha=0.25)


def _draw_distribution(axes: Axes, runs: Sequence[Result], *, slowdowns: bool) -> None:
    """Draw the share of jobs whose bounded slowdown, or else whose wait, is at least that on the axis."""
    for run, look in _styled(runs):
        ran = run.records.finished
        submit, start, end = (run.records.seconds(name)[ran] for name in ("submit", "start", "end"))
        values = np.maximum(start - submit, 1) / 3600
        if slowdowns:
            values = bounded_slowdown(end - submit, Jobs.of(run.records).dedicated[ran] / TICKS_PER_SECOND)
        share = 1 - np.arange(len(values)) / max(len(values), 1)
        axes.step(np.sort(values), share, where="pre", color=look.colour, linestyle=look.line)
    wait = "wait (hours; shorter than a second drawn at one second)"
    axes.set_xlabel("bounded slowdown" if slowdowns else wait)
    axes.set_ylabel("share of jobs with this or more" if slowdowns else "share of jobs that wait at least this long")
    axes.set(xscale="log", yscale="log")
    axes.grid(alpha=0.25, which="both", linewidth=0.4)


def _draw_node_time(axes: Axes, runs: Sequence[Result]) -> None:
    """Draw the shares of node time by account, a bar for each run."""
    shares = account_shares(pd.DataFrame([account_columns(run.ledger) for run in runs]))
    places = np.arange(len(runs), dtype=float)
    handles = draw_account_bars(axes, shares, places)
    axes.set_yticks(places, style.legend_labels([run.scenario.label for run in runs]))
    axes.set_ylabel("policy")
    look: Any = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "frameon": False, "fontsize": "small"}
    axes.legend(list(handles.values()), list(handles), ncols=4, **look)


def _styled(runs: Sequence[Result]) -> list[tuple[Result, style.Style]]:
    """Return runs with the styles of their policies in one figure."""
    styles = style.policy_styles([run.scenario.label for run in runs])
    return [(run, styles[run.scenario.label]) for run in runs]


def _equal_bins(runs: Sequence[Result], bins: int) -> FloatArray:
    """Return the bounds of equal time bins over the longest run, seconds since the first event, shape ``(bins + 1,)``."""
    return np.linspace(0.0, max(float(run.events.time_s[-1]) for run in runs), bins + 1)


def busy_nodes(run: Result, edges_s: FloatArray) -> FloatArray:
    """Return the mean number of busy nodes in each interval between ``edges_s`` (seconds from the first event)."""
    return mean_of_steps(run.events.time_s, run.machine.processors - run.events.empty, edges_s)


def waiting_jobs(run: Result, edges_s: FloatArray) -> FloatArray:
    """Return the mean number of waiting jobs in each interval between ``edges_s`` (seconds from the first event)."""
    return mean_of_steps(run.events.time_s, run.events.waiting, edges_s)


def _jobs_in_system(run: Result, edges_s: FloatArray) -> FloatArray:
    """Return the mean number of jobs that wait or run in each interval between ``edges_s`` (seconds from the first event)."""
    ran = run.records.finished
    begins, ends = (run.records.seconds(name)[ran] - to_seconds(run.ledger.start) for name in ("submit", "end"))
    times = np.concatenate([begins, ends])
    order = np.argsort(times, kind="stable")
    changes = np.repeat([1, -1], len(begins))[order]
    return mean_of_steps(times[order], np.cumsum(changes), edges_s)
