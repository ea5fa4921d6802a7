"""The figures of one run, and a figure that compares several: over time, a Gantt chart, the matrix, slices, capacity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from clustermodel.arrays import Columns, FloatArray
from clustermodel.errors import SpecificationError, counted
from clustermodel.figures import gantt, style
from clustermodel.figures.capacity import SHARES, account_shares, capacity_shares, draw_account_bars
from clustermodel.measure.job_table import Jobs, bounded_slowdown
from clustermodel.measure.quantities import account_columns
from clustermodel.measure.timeline import mean_of_steps
from clustermodel.text.formatting import time_unit
from clustermodel.ticks import TICKS_PER_SECOND, to_seconds
from clustermodel.validation import require_whole, to_gib

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result

_MOST_STEPS: Final = 20_000  # of a price that a figure draws
SERIES: Final = {
    "busy": ("busy_nodes", "busy nodes / nodes"), "waiting": ("waiting_jobs", "waiting jobs"),
    "down": ("down_nodes", "nodes down"), "reserved": ("reserved_nodes", "idle nodes reserved"),
    "memory": ("memory_share", "memory in use / memory"), "store": ("store_share", "store: in use / bandwidth"),
    "power": ("power_w", "power (kW)"),
}  # fmt: skip
"""What figures and reports draw over time: columns of :attr:`Result.states`, which runs may lack, and the labels of axes."""


def means_over_time(states: Columns | pd.DataFrame, nodes: int, edges_s: FloatArray) -> dict[str, FloatArray]:
    """Return means of what is known of ``SERIES`` between two of the times ``edges_s`` each, seconds since the first event."""
    times = np.asarray(states["time_s"], dtype=float)
    parts = {"busy": nodes, "power": 1000}
    return {
        name: mean_of_steps(times - times[:1], np.asarray(states[column], dtype=float), edges_s) / parts.get(name, 1)
        for name, (column, _) in SERIES.items()
        if column in states
    }


class ResultPlots:
    """The figures of one result; each method returns a matplotlib figure, to show or save.

    ``bins`` is the number of equal time bins over which a figure over time takes means.  Times in seconds are on the clock of
    the workload, as in the job table.  Methods raise a ``SpecificationError`` where no job ran, where figures of the matrix or
    of time sharing lack the history of a run in which gangs shared their nodes in time, and where there is too much to draw.
    """

    def __init__(self, run: Result) -> None:
        self._run = run

    def utilization(self, *, bins: int = 200) -> Figure:
        """Draw the share of busy nodes and the queue length over time."""
        edges = self._edges("utilization", bins)
        figure, (top, bottom) = style.new_figure(9, 5.5, 2, sharex=True)
        for axes, name in ((top, "busy"), (bottom, "waiting")):
            _draw_series(axes, [self._run], edges, name)
        top.set_xlabel("")
        rho = self._run.ledger.utilization
        top.axhline(rho, color="0.4", linewidth=0.8, linestyle="--")
        top.set_title(f"{style.title_of(self._run)}: utilization $\\rho$ = {rho:.3f} (dashed)")
        return figure

    def gantt(self, *, first: int | None = None, last: int | None = None, labels: bool | None = None) -> Figure:
        """Draw which nodes each job held, and when, of a run on dedicated nodes, from the id ``first`` to ``last``.

        By default these are the first job in order of submission, and the 200th from it on.  ``labels`` writes all job ids, or
        none; by default those that fit.  Hatches, which a legend explains, say how run attempts ended that did not complete
        their job; nodes that were down are black, and those that were reserved have a green ground.
        """
        figure, axes = style.new_figure(10, 5.5)
        gantt.kinds_legend(figure, gantt.draw_gantt(axes, self._run, first=first, last=last, labels=labels))
        return figure

    def matrix(self, at_s: float) -> Figure:
        """Draw the Ousterhout matrix at an instant: which gang has which columns in which row (Zhang et al. 2003, figure 7).

        The row that runs at that instant has a frame; at the boundary of two slices it is the row of the later one.
        """
        figure, axes = style.new_figure(9, 1.9 + 0.45 * len(gantt.history_of(self._run, "matrix").moments[0].rows))
        gantt.draw_matrix(axes, self._run, at_s)
        empty = Patch(facecolor="0.93", edgecolor="0.7", label="empty")
        gantt.kinds_legend(
            figure, ("home", "replica"), empty, Patch(fill=False, edgecolor="black", linewidth=2, label="row that runs")
        )
        return figure

    def slices(self, first_s: float, last_s: float) -> Figure:
        """Draw which gang each node runs in which time slice, from ``first_s`` to ``last_s``."""
        return gantt.slices_figure(self._run, first_s, last_s)

    def recorded(self, *, first_s: float | None = None, last_s: float | None = None) -> Figure:
        """Draw which job held which nodes, as a log has recorded it above as it was simulated, from ``first_s`` to ``last_s``.

        A job has the same colour in both.  By default the time is all of both schedules, or as much as has few enough
        rectangles.  Where jobs share nodes in time, each row of the matrix has the nodes once.  The workload must have
        :attr:`~clustermodel.workload.table.Workload.recorded_placements`.
        """
        return gantt.recorded_figure(self._run, first_s, last_s)

    def memory(self, *, bins: int = 200) -> Figure:
        """Draw the share of the nodes' memory, if that is limited, that running and suspended jobs have over time."""
        edges = self._edges("memory", bins)
        of_nodes, nodes = self._run.machine.node_memories, self._run.machine.nodes
        if of_nodes is None:
            raise SpecificationError("memory: nodes have as much as jobs need; give Machine(node_memory_gib=...)")
        figure, axes = style.new_figure(9, 3.5)
        _draw_series(axes, [self._run], edges, "memory", colour=False)
        axes.set_title(f"{style.title_of(self._run)}: {nodes:,} nodes with {to_gib(sum(of_nodes)) / nodes:g} GiB each")
        return figure

    def capacity(self, *, bins: int = 200) -> Figure:
        """Draw the use of the machine's capacity over time, by the accounts of the ledger, stacked, as shares of the machine.

        Work is one area: whether it was useful or wasted is known only when a job completes.  The amount that an account gains
        between two scheduling events is spread evenly between them.  The legend has each account's share of the whole run.
        """
        bins = len(self._edges("capacity", bins)) - 1
        figure, axes = style.new_figure(9, 4.5)
        edges, shares = capacity_shares(self._run, bins)
        unit, below = _draw_steps(axes, edges, "node time / capacity", top=1.0), np.zeros(bins)
        for (account, colour), share in zip(SHARES.items(), shares, strict=True):
            if share.any():
                total = f"{share.mean():.2%}" if share.mean() >= 0.0001 else "< 0.01%"
                look: Any = {"fill": True, "color": colour, "label": f"{account} ({total})"}
                axes.stairs(below + share, edges / unit, baseline=below, **look)
                below = below + share
        axes.grid(visible=False)
        size = counted(self._run.machine.processors, self._run.scenario.unit)
        title = f"{style.title_of(self._run)}: capacity of {size}, means over {bins} equal intervals"
        figure.suptitle(title, fontsize="large")
        figure.legend(loc="outside right center", reverse=True)
        return figure

    def power(self, *, bins: int = 200) -> Figure:
        """Draw what all nodes draw over time, and the price of energy, if the machine has one.

        The dashed line is the mean, the energy of the run over its length.
        """
        edges, run = self._edges("power", bins), self._run
        watts = run.power_draw.between(run.ledger.start, run.ledger.end, len(edges) - 1)
        figure, axes = style.new_figure(9, 3.5)
        unit = _draw_steps(axes, edges, SERIES["power"][1], (watts / 1000, {}))
        axes.axhline(watts.mean() / 1000, color="0.4", linewidth=0.8, linestyle="--")
        axes.set_title(f"{style.title_of(run)}: {run.energy_kwh:,.4g} kWh")
        if (price := run.machine.price) is not None:
            drawn = list(islice(price.steps(run.ledger.start, run.ledger.end), _MOST_STEPS + 1))
            if len(drawn) > _MOST_STEPS:
                raise SpecificationError(f"power: the price has more than {_MOST_STEPS:,} steps in the run, too many to draw")
            begins, steps = zip(*drawn, strict=True)
            times = (np.array([*begins, run.ledger.end]) - run.ledger.start) / TICKS_PER_SECOND / unit
            other = axes.twinx()
            other.stairs([price.price[step] for step in steps], times, color=style.ORANGE, linewidth=0.8)
            other.set_ylabel("price per kWh", color=style.ORANGE)
        return figure

    def _edges(self, figure: str, bins: int) -> FloatArray:
        bins = require_whole(f"{figure}: bins", bins, at_least=1)
        style.require_drawable(self._run, figure)
        return _equal_bins([self._run], bins)


def comparison(results: Sequence[Result], *, bins: int = 120) -> Figure:
    """Return one figure that compares runs, of which some ran jobs: jobs over time, a distribution, and node time by account.

    The jobs are those that wait, and the distribution is that of waits.  Where a run shares nodes in time, so that waits are
    short by construction, the jobs are those that wait or run, and the distribution is that of bounded slowdowns.
    """
    drawable = [result for result in results if result.records.finished.any()]
    if not drawable:
        raise SpecificationError("figure: no job ran in any result; there is nothing to draw")
    in_time = any(run.slices is not None for run in drawable)
    bars, edges = 0.7 + 0.3 * len(drawable), _equal_bins(drawable, bins)
    figure, (top, middle, below, bottom) = style.new_figure(9, 10 + bars, 4, height_ratios=(3.3, 3.3, 3.3, bars))
    _draw_series(top, drawable, edges, "busy")
    most = _draw_series(middle, drawable, edges, "in system" if in_time else "waiting")
    if most > 200:
        middle.set_yscale("symlog", linthresh=10)
    _draw_distribution(below, drawable, slowdowns=in_time)
    shares = account_shares(pd.DataFrame([account_columns(run.ledger) for run in drawable]))
    labels, places = [run.scenario.label for run in drawable], np.arange(len(drawable), dtype=float)
    handles = draw_account_bars(bottom, shares, places)
    bottom.set_yticks(places, style.legend_labels(labels))
    bottom.set_ylabel("policy")
    look: Any = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "frameon": False, "fontsize": "small"}
    bottom.legend(list(handles.values()), list(handles), ncols=4, **look)
    first = drawable[0]
    top.set_title(
        f"{style.plain(first.scenario.workload_name)} on {counted(first.machine.processors, first.scenario.unit)}, "
        f"{counted(len(first.records), 'job')}; means over {bins} equal intervals"
    )
    style.legend_below(figure, dict(zip(labels, below.get_lines(), strict=True)))
    return figure


def _jobs_in_system(run: Result, edges_s: FloatArray) -> FloatArray:
    ran = run.records.finished
    begins, ends = (run.records.seconds(name)[ran] - to_seconds(run.ledger.start) for name in ("submit", "end"))
    times = np.concatenate([begins, ends])
    order = np.argsort(times, kind="stable")
    changes = np.repeat([1, -1], len(begins))[order]
    return mean_of_steps(times[order], np.cumsum(changes), edges_s)


def _draw_steps(
    axes: Axes, edges: FloatArray, label: str, *curves: tuple[FloatArray, Mapping[str, Any]], top: float | None = None
) -> float:
    """Draw means between times, and label both axes; return the unit of the axis of time, seconds."""
    _, name, unit = time_unit(float(edges[-1]))
    for values, look in curves:
        axes.stairs(values, edges / unit, linewidth=1.2, **look)
    axes.set(xlabel=f"time since the first submission ({name})", xlim=(0, edges[-1] / unit), ylabel=label, ylim=(0, top))
    axes.grid(alpha=0.25)
    return unit


def _draw_series(axes: Axes, runs: Sequence[Result], edges: FloatArray, name: str, *, colour: bool = True) -> float:
    """Draw one of ``SERIES``, or the jobs in the system, in the colours of policies; return the largest mean."""
    curves: list[tuple[FloatArray, dict[str, Any]]] = []
    for run, look in _styled(runs):
        nodes = run.machine.processors
        values = (
            _jobs_in_system(run, edges) if name == "in system" else means_over_time(run.columns("states"), nodes, edges)[name]
        )
        curves.append((values, {"color": look.colour, "linestyle": look.line} if colour else {}))
    label = "waiting and running jobs" if name == "in system" else SERIES[name][1]
    _draw_steps(axes, edges, label, *curves, top=1.02 if name in ("busy", "memory") else None)
    return max(float(values.max()) for values, _ in curves)


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


def _styled(runs: Sequence[Result]) -> list[tuple[Result, style.Style]]:
    """Return runs with the styles of their policies in one figure."""
    styles = style.policy_styles([run.scenario.label for run in runs])
    return [(run, styles[run.scenario.label]) for run in runs]


def _equal_bins(runs: Sequence[Result], bins: int) -> FloatArray:
    """Return the bounds of equal time bins over the longest run, seconds since the first event, shape ``(bins + 1,)``."""
    return np.linspace(0.0, max(float(run.events.time_s[-1]) for run in runs), bins + 1)
