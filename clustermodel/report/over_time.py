"""Utilization, queue length, nodes that are down and limited resources over time: a curve for each level of one factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, NotRequired, TypedDict

import numpy as np
import pandas as pd
from bokeh.models import ColumnDataSource, CustomJS, HoverTool, Legend, LegendItem, Range1d

from clustermodel.arrays import FloatArray
from clustermodel.measure.event_log import mean_of_steps
from clustermodel.report.bokeh_parts import LEGEND_ITEM, dash, new_plot, page_styles, script
from clustermodel.report.labels import literal

BINS: Final = 400
"""Time bins of a curve."""
_HEIGHTS: Final = {"busy": "busy nodes / nodes", "waiting": "waiting jobs"}
_DOWN: Final = {"down": "nodes down"}
"""Shown beside the others if nodes fail in a run."""
_LIMITED: Final = {"memory": "memory in use / memory", "store": "store: in use / bandwidth"}
"""Shown beside the others if a run has such a limit: shares of what there is."""
_DRAWN: Final = ("x", "y", "middle", "length")
"""Of each time bin: begin, mean, middle and length."""
_TOOLS: Final = "xpan,xwheel_zoom,box_zoom,reset,save"


class Curve(TypedDict):
    """One run: means between two times."""

    busy: list[float]
    """Shares of the machine."""
    waiting: list[float]
    """Jobs."""
    down: list[float]
    """Nodes."""
    memory: NotRequired[list[float]]
    """Shares of the nodes' memory, where it is limited."""
    store: NotRequired[list[float]]
    """Shares of the bandwidth of the checkpoint store, where it is limited."""


class Group(TypedDict):
    """The runs that are shown together."""

    time: list[float]
    """In the unit of the axis."""
    curves: dict[str, Curve]
    """By the label of the curve."""


class Line(TypedDict):
    """The models of one curve."""

    label: str
    sources: dict[str, ColumnDataSource]
    """By what is drawn: the keys of :class:`Curve`."""


class OverTimeArguments(TypedDict):
    """The arguments of ``over_time.mjs``."""

    lines: list[Line]
    groups: list[Group]
    range: Range1d
    legend: Legend


class StatesOfRun(NamedTuple):
    """The states of one run."""

    label: str
    """Of its curve."""
    nodes: int
    """The size of its machine."""
    states: pd.DataFrame
    """:attr:`Result.states <clustermodel.experiment.result.Result.states>`."""


def span(states: pd.DataFrame) -> float:
    """Return the duration of a run, seconds; one second for a run without events."""
    return float(np.ptp(states["time_s"])) if len(states) else 1.0


def curve_of(run: StatesOfRun, edges: FloatArray) -> Curve:
    """Return the means of a run between two times each; a last zero ends the steps.

    Args:
        run: its states.
        edges: seconds since the first event.
    """
    if run.states.empty:
        nothing = [0.0] * len(edges)
        return {"busy": nothing, "waiting": nothing, "down": nothing}
    times = run.states["time_s"].to_numpy(dtype=float) - float(run.states["time_s"].iloc[0])

    def means(column: str, unit: int = 1) -> list[float]:
        values = mean_of_steps(times, run.states[column].to_numpy(dtype=float), edges) / unit
        return [*np.round(values, 5).tolist(), 0.0]

    curve: Curve = {"busy": means("busy_nodes", run.nodes), "waiting": means("waiting_jobs"), "down": means("down_nodes")}
    if "memory_share" in run.states:
        curve["memory"] = means("memory_share")
    if "store_share" in run.states:
        curve["store"] = means("store_share")
    return curve


def group_of(runs: Sequence[StatesOfRun], unit_s: float) -> Group:
    """Return the curves of the runs that are shown together.

    Args:
        runs: with distinct labels.
        unit_s: of the axis, seconds.
    """
    edges = np.linspace(0.0, max(span(run.states) for run in runs), BINS + 1)
    return {"time": (edges / unit_s).tolist(), "curves": {run.label: curve_of(run, edges) for run in runs}}


def curves_over_time(groups: list[Group], labels: list[str], unit: str) -> tuple[list[Any], CustomJS]:
    """Return the plots of utilization and queue length over time, and the callback that draws them.

    Further plots show the nodes that are down, where nodes fail in a run, and the memory and the bandwidth of the checkpoint
    store in use, where a run has such a limit.

    Args:
        groups: the runs that are shown together.
        labels: of all curves, in the order of the legend.
        unit: of the times.
    """
    time = Range1d(0, 1)
    curves = [curve for group in groups for curve in group["curves"].values()]
    shown = dict(_HEIGHTS)
    if any(any(curve["down"]) for curve in curves):
        shown |= _DOWN
    shown |= {name: label for name, label in _LIMITED.items() if any(name in curve for curve in curves)}
    plots = {
        name: new_plot(f"over time {name}", 230, x_range=time, tools=_TOOLS, active_drag="xpan", y_axis_label=label)
        for name, label in shown.items()
    }
    for name in ("busy", *_LIMITED):
        if name in plots:
            plots[name].y_range = Range1d(0, 1.02)
    list(plots.values())[-1].xaxis.axis_label = f"time since the first submission ({unit})"
    lines: list[Line] = []
    items = []
    for label, style in page_styles(labels).items():
        sources = {name: ColumnDataSource({column: [0.0, 1.0] for column in _DRAWN}) for name in plots}
        look = {"line_width": 1.5, "color": style.colour, "line_dash": dash(style), "mode": "after"}
        drawn = [plot.step("x", "y", source=sources[name], name=literal(label), **look) for name, plot in plots.items()]
        items.append(LegendItem(label={"value": literal(label)}, renderers=drawn))
        lines.append({"label": label, "sources": sources})
    for line, item in zip(lines, items, strict=True):
        item.renderers = [*item.renderers, *_pointed_at(plots, line)]
    for plot in plots.values():
        plot.add_tools(HoverTool(tooltips=[("", "$name"), ("time", "@x{0,0.00}"), ("mean", "@y{0,0.000}")]))
    legend = _add_legend(plots["busy"], items, max(map(len, labels)))
    arguments: OverTimeArguments = {"lines": lines, "groups": groups, "range": time, "legend": legend}
    return list(plots.values()), script("over_time.mjs", arguments)


def _pointed_at(plots: dict[str, Any], line: Line) -> list[Any]:
    """Add what the pointer hits, a transparent rectangle on each step of a curve: Bokeh shows no tooltip for steps."""
    look = {"height": 10, "height_units": "screen", "fill_alpha": 0, "line_alpha": 0}
    return [
        plot.rect("middle", "y", "length", source=line["sources"][name], name=literal(line["label"]), **look)
        for name, plot in plots.items()
    ]


def _add_legend(plot: Any, items: list[LegendItem], longest: int) -> Legend:
    """Add a legend above a plot, in as many columns as fit, make the plot higher by it, and return the legend."""
    columns = min(max(660 // (50 + 7 * longest), 1), 6)
    legend = Legend(items=items, click_policy="hide", label_text_font_size="12px", orientation="horizontal", ncols=columns)
    plot.add_layout(legend, "above")
    plot.height += LEGEND_ITEM * (-(-len(items) // columns) - 1)
    return legend
