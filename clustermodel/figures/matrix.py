"""Figures of time sharing: the Ousterhout matrix at an instant, and the time slices of every node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from clustermodel.errors import SpecificationError, counted
from clustermodel.figures.style import ink, job_colour, new_figure, require_drawable, time_axis, title_of
from clustermodel.recording.matrix_history import Cell, History, Slice
from clustermodel.schedule.node_set import from_mask
from clustermodel.ticks import to_seconds, to_ticks
from clustermodel.validation import require_seconds

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result

MOST_RECTANGLES: Final = 20_000
"""Rectangles that a figure draws at most; more are neither legible nor quick."""
_HATCH: Final = "////"  # of replicas: gangs in rows other than their home row


def matrix_figure(run: Result, at_s: float) -> Figure:
    """Return a figure of the Ousterhout matrix at an instant; see :meth:`.ResultPlots.matrix`."""
    figure, axes = new_figure(9, 1.9 + 0.45 * len(_history(run, "matrix").moments[0].rows))
    draw_matrix(axes, run, at_s)
    empty = Patch(facecolor="0.93", edgecolor="0.7", label="empty")
    running = Patch(fill=False, edgecolor="black", linewidth=2, label="row that runs")
    _gang_legend(figure, empty, running)
    return figure


def draw_matrix(axes: Axes, run: Result, at_s: float) -> None:
    """Draw the Ousterhout matrix on axes of your own, without a legend; arguments and errors as of :func:`matrix_figure`."""
    history, nodes = _history(run, "matrix"), run.machine.processors
    at = to_ticks(_within_run(run, "matrix: at_s", at_s))
    moment, running = history.at(at), history.running_row(at)
    rows = moment.rows if moment.ticks <= at else ((),) * len(moment.rows)
    bars = [
        _Bar(low - 0.5, count, row - 0.46, 0.92, cell.job, cell.replica)
        for row, cells in enumerate(rows)
        for cell in cells
        for low, count in _node_ranges(cell)
    ]
    axes.set_facecolor("0.93")
    axes.hlines(np.arange(len(rows) - 1) + 0.5, -0.5, nodes - 0.5, color="white", linewidth=1.5, zorder=0.5)
    if nodes <= 64:
        axes.vlines(np.arange(nodes - 1) + 0.5, -0.5, len(rows) - 0.5, color="white", linewidth=0.8, zorder=0.5)
    _draw_gangs(axes, bars, widest=nodes, tallest=len(rows))
    if running is not None:
        frame = Rectangle((-0.5, running - 0.5), nodes, 1, fill=False, edgecolor="black", linewidth=2, clip_on=False, zorder=4)
        axes.add_patch(frame)
    axes.set(xlim=(-0.5, nodes - 0.5), ylim=(len(rows) - 0.5, -0.5), yticks=range(len(rows)))
    axes.set(xlabel="column (node)", ylabel="row (time slice)")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    jobs = len({cell.job for cells in rows for cell in cells})
    waiting = run.events.waiting[np.searchsorted(run.events.ticks, at, side="right") - 1]
    axes.set_title(f"{title_of(run)} at {_shown_s(at_s)}: {counted(jobs, 'job')} in the matrix, {waiting} waiting")


def slices_figure(run: Result, first_s: float, last_s: float) -> Figure:
    """Return a figure of time slices; see :meth:`.ResultPlots.slices`."""
    history, nodes = _history(run, "slices"), run.machine.processors
    first = to_ticks(_within_run(run, "slices: first_s", first_s))
    last = to_ticks(_within_run(run, "slices: last_s", last_s))
    if first >= last:
        raise SpecificationError(f"slices: last_s: {last_s} is not allowed; it must be > first_s, {first_s}")
    unit, name = time_axis(to_seconds(last - first))
    bars: list[_Bar] = []
    shown: list[Slice] = []
    for time_slice in history.slices(first, last, run.ledger.end):
        shown.append(time_slice)
        left, right = to_seconds(max(time_slice.begin, first)) / unit, to_seconds(min(time_slice.end, last)) / unit
        for cell in time_slice.gangs:
            bars += [_Bar(left, right - left, low - 0.5, count, cell.job, cell.replica) for low, count in _node_ranges(cell)]
        if len(bars) > MOST_RECTANGLES:
            raise SpecificationError(
                f"slices: more than {MOST_RECTANGLES:,} rectangles between first_s={first_s} and last_s={last_s} are too many "
                "to draw; choose a shorter time"
            )
    if not bars:
        raise SpecificationError(f"slices: nothing ran between first_s={first_s} and last_s={last_s}")
    figure, axes = new_figure(10, 5.5)
    axes.set_facecolor("0.93")
    _draw_gangs(axes, bars, widest=to_seconds(last - first) / unit, tallest=nodes)
    thickness = 1.0 if len(shown) <= 60 else 0.5
    for at_event, colour, linewidth in ((False, "0.4", thickness / 2), (True, "black", thickness)):
        begins = [to_seconds(time_slice.begin) / unit for time_slice in shown if time_slice.at_event == at_event]
        axes.vlines(begins, -0.5, nodes - 0.5, color=colour, linewidth=linewidth)
    axes.set(xlim=(to_seconds(first) / unit, to_seconds(last) / unit), ylim=(-0.5, nodes - 0.5))
    axes.set(xlabel=f"time ({name})", ylabel=run.scenario.unit)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    _name_rows(axes, [(max(time_slice.begin, first), min(time_slice.end, last), time_slice.row) for time_slice in shown], unit)
    quantum = _shown_s(run.machine.time_slicing.quantum_s)
    axes.set_title(f"{title_of(run)}: {counted(len(shown), 'time slice')} of at most {quantum}")
    boundary = Line2D([], [], color="0.4", linewidth=0.5, label="slice begins")
    event = Line2D([], [], color="black", linewidth=1.0, label="slice begins at a scheduling event")
    _gang_legend(figure, boundary, event)
    return figure


def _history(run: Result, figure: str) -> History:
    require_drawable(run, figure)
    return run.history


def _within_run(run: Result, field: str, seconds: object) -> float:
    """Return a time, seconds, or refuse it if it lies outside the run."""
    ledger, time_s = run.ledger, require_seconds(field, seconds)
    if not ledger.start <= to_ticks(time_s) <= ledger.end:
        first, last = _shown_s(to_seconds(ledger.start)), _shown_s(to_seconds(ledger.end))
        raise SpecificationError(f"{field}: {time_s} is not allowed; it must lie in the run, from {first} to {last}")
    return time_s


def _node_ranges(cell: Cell) -> list[tuple[int, int]]:
    """Return the contiguous ranges of a gang's nodes, as (lowest node, number of nodes)."""
    bounds = from_mask(cell.columns)
    return [(low, high - low) for low, high in zip(bounds[::2], bounds[1::2], strict=True)]


class _Bar(NamedTuple):
    """A rectangle for a gang on a contiguous range of nodes, in the units of the axes."""

    left: float
    width: float
    low: float
    height: float
    job: int
    replica: bool


def _draw_gangs(axes: Axes, bars: Sequence[_Bar], *, widest: float, tallest: float) -> None:
    """Draw bars in the colours of their jobs on axes of size ``widest`` x ``tallest``: replicas hatched, labels that fit."""
    for replica in (False, True):
        drawn = [bar for bar in bars if bar.replica == replica]
        corners = [
            [(left, low), (left + width, low), (left + width, low + height), (left, low + height)]
            for left, width, low, height, *_ in drawn
        ]
        colours = [job_colour(bar.job) for bar in drawn]
        # An edge would hide a bar that is hardly wider than the edge.
        edges = [0.6 if bar.width >= 0.004 * widest and bar.height >= 0.006 * tallest else 0.0 for bar in drawn]
        hatch = _HATCH if replica else None
        gangs = PolyCollection(corners, facecolors=colours, edgecolors="white", linewidths=edges, hatch=hatch)
        axes.add_collection(gangs, autolim=False)
    for left, width, low, height, job, replica in bars:
        text = str(job)
        if width >= 0.011 * (len(text) + 0.5) * widest and height >= 0.035 * tallest:
            colour = job_colour(job)
            box = {"facecolor": colour, "edgecolor": "none", "pad": 2.0} if replica else None
            middle = (left + width / 2, low + height / 2)
            axes.annotate(text, middle, ha="center", va="center", fontsize=7, color=ink(colour), bbox=box, clip_on=True)


def _name_rows(axes: Axes, slices: Sequence[tuple[int, int, int]], unit: float) -> None:
    """Write the row above each slice (begin, end, row) if most of the slices are wide enough."""
    span = slices[-1][1] - slices[0][0]
    wide = [(to_seconds(begin + end) / 2 / unit, row) for begin, end, row in slices if end - begin >= 0.012 * span]
    if 2 * len(wide) > len(slices):
        above = axes.secondary_xaxis("top")
        above.set_xticks([middle for middle, _ in wide], [str(row) for _, row in wide])
        above.tick_params(length=0, labelsize=7)
        above.set_xlabel("row")


def _gang_legend(figure: Figure, *others: Line2D | Patch) -> None:
    home = Patch(facecolor="0.5", edgecolor="white", label="gang in its home row")
    replica = Patch(facecolor="0.5", edgecolor="white", hatch=_HATCH, label="replica in another row")
    figure.legend(handles=[home, replica, *others], loc="outside lower center", ncols=2 + len(others))


def _shown_s(seconds: float) -> str:
    return f"{seconds:,.6f}".rstrip("0").rstrip(".") + " s"
