"""Gangs on nodes: the Gantt chart of a run, the Ousterhout matrix at an instant, time slices, a recorded above a simulated run.

A job has the same colour in all of them, and in the reports of studies.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from clustermodel.errors import SpecificationError, counted
from clustermodel.figures import style
from clustermodel.machine.node_set import NodeSet, from_mask
from clustermodel.measure.metrics import other_machine
from clustermodel.recording.matrix_history import History, Slice
from clustermodel.recording.run_attempts import UNKNOWN
from clustermodel.text.formatting import time_unit
from clustermodel.ticks import to_seconds, to_ticks
from clustermodel.validation import require_seconds
from clustermodel.workload.table import Workload

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result

MOST_RECTANGLES = 20_000  # that a figure draws; more are neither legible nor quick


def draw_gantt(
    axes: Axes, run: Result, *, first: int | None = None, last: int | None = None, labels: bool | None = None
) -> Collection[str]:
    """Draw a Gantt chart on axes of your own, and return the kinds of its placements.

    Arguments and errors are those of :meth:`ResultPlots.gantt <clustermodel.figures.result_plots.ResultPlots.gantt>`.
    """
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
    placements = run.placements
    placements = placements[placements["job"].isin(ids[begin:stop])]
    shown = ids[begin:stop][np.isin(ids[begin:stop], placements["job"])]
    if not len(shown):
        given = ", ".join(f"{field}={job}" for field, job in (("first", first), ("last", last)) if job is not None)
        raise SpecificationError(f"gantt: no job ran{given and f' ({given})'}")
    if len(placements) > MOST_RECTANGLES:
        raise SpecificationError(f"gantt: {len(placements):,} rectangles are too many to draw; choose fewer jobs")
    earliest, latest = placements["begin_s"].min(), placements["end_s"].max()
    _, name, unit = time_unit(latest - earliest)
    _draw_placements(axes, placements, (earliest, latest), unit, run.machine.processors, labels=labels)
    for node, down, up in zip(*(column.tolist() for column in records.outages), strict=True):
        since, until = to_seconds(down), latest if up == UNKNOWN else to_seconds(up)
        axes.broken_barh([(since / unit, (until - since) / unit)], (node - 0.5, 1), facecolors="black")
    for reserved, start, end, every in run.machine.windows[: len(run.machine.reservations)]:
        turns = range(start, to_ticks(latest), every) if every else [start]
        times = [(to_seconds(turn) / unit, to_seconds(end - start) / unit) for turn in turns]
        for low, number in _ranges(reserved):
            axes.broken_barh(times, (low - 0.5, number), facecolors=style.GREEN, alpha=0.25, zorder=0)
    axes.set(xlabel=f"time ({name})", ylabel=run.scenario.unit)
    title = f"{style.title_of(run)}: jobs {shown[0]} to {shown[-1]}"
    axes.set_title(title if len(shown) == records.finished.sum() else f"{title} (others are not drawn)")
    return set(placements["kind"])


def draw_matrix(axes: Axes, run: Result, at_s: float) -> None:
    """Draw the Ousterhout matrix at an instant on axes of your own, without a legend."""
    history, nodes = history_of(run, "matrix"), run.machine.processors
    at = to_ticks(_within_run(run, "matrix: at_s", at_s))
    moment, running = history.at(at), history.running_row(at)
    rows = moment.rows if moment.ticks <= at else ((),) * len(moment.rows)
    bars = [
        _Bar(low - 0.5, count, row - 0.46, 0.92, cell.job, "replica" if cell.replica else "run")
        for row, cells in enumerate(rows)
        for cell in cells
        for low, count in _ranges(from_mask(cell.columns))
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
    axes.set_title(f"{style.title_of(run)} at {_shown_s(at_s)}: {counted(jobs, 'job')} in the matrix, {waiting} waiting")


def slices_figure(run: Result, first_s: float, last_s: float) -> Figure:
    """Return the figure of :meth:`ResultPlots.slices <clustermodel.figures.result_plots.ResultPlots.slices>`."""
    history, nodes = history_of(run, "slices"), run.machine.processors
    first, last = (
        to_ticks(_within_run(run, f"slices: {field}", time_s)) for field, time_s in (("first_s", first_s), ("last_s", last_s))
    )
    if first >= last:
        raise SpecificationError(f"slices: last_s: {last_s} is not allowed; it must be > first_s, {first_s}")
    _, name, unit = time_unit(to_seconds(last - first))
    bars: list[_Bar] = []
    shown: list[Slice] = []
    for time_slice in history.slices(first, last, run.ledger.end):
        shown.append(time_slice)
        left, right = to_seconds(max(time_slice.begin, first)) / unit, to_seconds(min(time_slice.end, last)) / unit
        for cell in time_slice.gangs:
            ranges = _ranges(from_mask(cell.columns))
            kind = "replica" if cell.replica else "run"
            bars += [_Bar(left, right - left, low - 0.5, number, cell.job, kind) for low, number in ranges]
        if len(bars) > MOST_RECTANGLES:
            raise SpecificationError(
                f"slices: more than {MOST_RECTANGLES:,} rectangles between first_s={first_s} and last_s={last_s} are too many "
                "to draw; choose a shorter time"
            )
    if not bars:
        raise SpecificationError(f"slices: nothing ran between first_s={first_s} and last_s={last_s}")
    figure, axes = style.new_figure(10, 5.5)
    axes.set_facecolor("0.93")
    _draw_gangs(axes, bars, widest=to_seconds(last - first) / unit, tallest=nodes)
    thickness = 1.0 if len(shown) <= 60 else 0.5
    for at_event, colour, linewidth in ((False, "0.4", thickness / 2), (True, "black", thickness)):
        begins = [to_seconds(time_slice.begin) / unit for time_slice in shown if time_slice.at_event == at_event]
        axes.vlines(begins, -0.5, nodes - 0.5, color=colour, linewidth=linewidth)
    axes.set(xlim=(to_seconds(first) / unit, to_seconds(last) / unit), ylim=(-0.5, nodes - 0.5))
    axes.set(xlabel=f"time ({name})", ylabel=run.scenario.unit)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    extents = [(max(time_slice.begin, first), min(time_slice.end, last), time_slice.row) for time_slice in shown]
    span = extents[-1][1] - extents[0][0]
    wide = [(to_seconds(begin + end) / 2 / unit, row) for begin, end, row in extents if end - begin >= 0.012 * span]
    if 2 * len(wide) > len(extents):  # the rows are named above the slices if most of these are wide enough
        above = axes.secondary_xaxis("top")
        above.set_xticks([middle for middle, _ in wide], [str(row) for _, row in wide])
        above.tick_params(length=0, labelsize=7)
        above.set_xlabel("row")
    quantum = _shown_s(run.machine.time_slicing.quantum_s)
    axes.set_title(f"{style.title_of(run)}: {counted(len(shown), 'time slice')} of at most {quantum}")
    boundary = Line2D([], [], color="0.4", linewidth=0.5, label="slice begins")
    event = Line2D([], [], color="black", linewidth=1.0, label="slice begins at a scheduling event")
    kinds_legend(figure, ["replica"], boundary, event)
    return figure


def history_of(run: Result, figure: str) -> History:
    """Return the history of the matrix, or refuse to draw a figure of it."""
    style.require_drawable(run, figure)
    return run.history


def _within_run(run: Result, field: str, seconds: object) -> float:
    """Return a time, seconds, or refuse it if it lies outside the run."""
    ledger, time_s = run.ledger, require_seconds(field, seconds)
    if not ledger.start <= to_ticks(time_s) <= ledger.end:
        first, last = _shown_s(to_seconds(ledger.start)), _shown_s(to_seconds(ledger.end))
        raise SpecificationError(f"{field}: {time_s} is not allowed; it must lie in the run, from {first} to {last}")
    return time_s


def _ranges(columns: NodeSet) -> list[tuple[int, int]]:
    """Return the contiguous ranges of a set of nodes, as (lowest node, number of nodes)."""
    return [(low, high - low) for low, high in zip(columns[::2], columns[1::2], strict=True)]


class _Bar(NamedTuple):
    """A rectangle for a gang on a contiguous range of nodes, in the units of the axes."""

    left: float
    width: float
    low: float
    height: float
    job: int
    kind: str


def _draw_gangs(axes: Axes, bars: Sequence[_Bar], *, widest: float, tallest: float, labels: bool | None = None) -> None:
    """Draw bars in the colours of their jobs on axes of size ``widest`` x ``tallest``; by default with labels that fit."""
    for kind in dict.fromkeys(bar.kind for bar in bars):
        drawn = [bar for bar in bars if bar.kind == kind]
        corners = [
            [(left, low), (left + width, low), (left + width, low + height), (left, low + height)]
            for left, width, low, height, *_ in drawn
        ]
        colours = [style.job_colour(bar.job) for bar in drawn]
        # An edge would hide a bar that is hardly wider than the edge.
        edges = [0.6 if bar.width >= 0.004 * widest and bar.height >= 0.006 * tallest else 0.0 for bar in drawn]
        look: Any = {"edgecolors": "white", "linewidths": edges, "hatch": style.hatch_of(kind)}
        axes.add_collection(PolyCollection(corners, facecolors=colours, **look), autolim=False)
    for left, width, low, height, job, kind in bars if labels is not False else []:
        text = str(job)
        if labels or (width >= 0.011 * (len(text) + 0.5) * widest and height >= 0.035 * tallest):
            colour = style.job_colour(job)
            box = {"facecolor": colour, "edgecolor": "none", "pad": 2.0} if style.hatch_of(kind) else None
            middle = (left + width / 2, low + height / 2)
            axes.annotate(text, middle, ha="center", va="center", fontsize=7, color=style.ink(colour), bbox=box, clip_on=True)


# A recorded schedule above a simulated one.


def recorded_figure(run: Result, first_s: float | None, last_s: float | None) -> Figure:
    """Return the figure of :meth:`ResultPlots.recorded <clustermodel.figures.result_plots.ResultPlots.recorded>`."""
    style.require_drawable(run, "recorded")
    workload = run.scenario.sources[0]
    if len(run.scenario.sources) > 1 or not isinstance(workload, Workload):
        raise SpecificationError("recorded: jobs of several streams, or of a trace that is streamed, have no recorded schedule")
    recorded, simulated = workload.recorded_placements, run.placements
    if recorded.empty:
        raise SpecificationError(f"recorded: {workload.name}: the log names the nodes of none of these jobs")
    every = pd.concat([recorded, simulated])
    begins = np.sort(every["begin_s"])
    first = begins[0] if first_s is None else require_seconds("recorded: first_s", first_s)
    last = every["end_s"].max() if last_s is None else require_seconds("recorded: last_s", last_s)
    drawn = begins[begins >= first]
    is_cut = last_s is None and len(drawn) > MOST_RECTANGLES and drawn[MOST_RECTANGLES] > first
    if is_cut:
        last = drawn[MOST_RECTANGLES]
    there = every[(every["begin_s"] < last) & (every["end_s"] > first)]
    if there.empty:
        raise SpecificationError(f"recorded: nothing ran between first_s={first:g} and last_s={last:g}")
    if len(there) > 2 * MOST_RECTANGLES:
        raise SpecificationError(f"recorded: {len(there):,} rectangles are too many to draw; choose a shorter time")
    _, name, unit = time_unit(last - first)
    figure, axes = style.new_figure(10, 7, 2, sharex=True)
    unnamed = len(workload) - recorded["job"].nunique()
    left_out = f" ({counted(unnamed, 'job')} without names of nodes not drawn)" if unnamed else ""
    sizes = [int((table["first_node"] + table["nodes"]).max()) for table in (recorded, simulated)]
    if not every["row"].any():
        sizes = [max(sizes)] * 2
    titles = [f"recorded: {style.plain(workload.name)}", f"simulated: {style.plain(run.scenario.label)}"]
    if (own_size := workload.machine_nodes) is not None and other_machine(workload, own_size, run.machine.processors):
        numbers = (own_size, run.machine.processors)
        titles = [f"{title}, on {counted(nodes, run.scenario.unit)}" for title, nodes in zip(titles, numbers, strict=True)]
    titles[0] += left_out
    for panel, title, table, size in zip(axes, titles, (recorded, simulated), sizes, strict=True):
        _draw_placements(panel, table[(table["begin_s"] < last) & (table["end_s"] > first)], (first, last), unit, size)
        panel.set_title(title)
        panel.set_ylabel(f"{run.scenario.unit}s, row by row" if panel.yaxis_inverted() else run.scenario.unit)
    axes[1].set_xlabel(f"time ({name}){'; more would be too many rectangles' if is_cut else ''}")
    kinds_legend(figure, there["kind"].unique())
    return figure


def _draw_placements(
    axes: Axes, table: pd.DataFrame, window: tuple[float, float], unit: float, nodes: int, *, labels: bool | None = None
) -> None:
    """Draw a rectangle for each row of a table of placements: one row of the matrix below the other."""
    first, last = window
    rows = int(table["row"].max()) + 1 if len(table) else 1
    pitch = nodes + (max(0.5, 0.04 * nodes) if rows > 1 else 0.0)
    begin, end = (table[name].clip(first, last) / unit for name in ("begin_s", "end_s"))
    low = table["first_node"] + table["row"] * pitch - 0.5
    bars = list(map(_Bar, begin, end - begin, low, table["nodes"], table["job"], table["kind"]))
    bottom, top = -0.5, (rows - 1) * pitch + nodes - 0.5
    axes.set_facecolor("0.93")
    _draw_gangs(axes, bars, widest=(last - first) / unit, tallest=top - bottom, labels=labels)
    axes.set(xlim=(first / unit, last / unit), ylim=(bottom, top))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    if rows > 1:  # as in the matrix, the first one on top
        axes.set_ylim(top, bottom)
        axes.set_yticks([row * pitch + nodes / 2 - 0.5 for row in range(rows)], [f"row {row}" for row in range(rows)])


def kinds_legend(figure: Figure, kinds: Collection[str], *others: Line2D | Patch) -> None:
    """Add a legend of what hatches say of placements, and of other marks, below a figure; gangs of the matrix are at home."""
    look: Any = {"facecolor": "0.5", "edgecolor": "white"}
    known = [(kind, text) for kind, (_, text) in style.HATCHES.items() if kind in kinds]
    handles: list[Any] = [Patch(label="gang in its home row", **look)] if others else []
    handles += [Patch(hatch=style.hatch_of(kind), label=text, **look) for kind, text in known]
    handles += others
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def _shown_s(seconds: float) -> str:
    return f"{seconds:,.6f}".rstrip("0").rstrip(".") + " s"
