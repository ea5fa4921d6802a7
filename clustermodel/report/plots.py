"""The page's plots, with Bokeh: their common style, curves of measures along a factor, and states of runs over time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from bokeh import models
from bokeh.models import ColumnDataSource, CustomJS, HoverTool, Legend, LegendItem, Range1d
from bokeh.plotting import figure

from clustermodel.arrays import FloatArray
from clustermodel.figures.style import BLACK, policy_styles
from clustermodel.measure.event_log import mean_of_steps

PAGE: Final = Path(__file__).with_name("page")
"""Folder of the page's template, style sheet and scripts."""
TOOLS: Final = "xpan,xwheel_zoom,box_zoom,reset,save"
"""Of a plot over time."""
INK: Final = "ink"
"""Tag of glyphs whose lines are black on a light page and white on a dark one."""
GROUND: Final = "ground"
"""Tag of plots with a background of their own."""
_LEGEND_ITEM: Final = 24  # height of an entry of a legend, pixels
_GREY: Final = "#808080"  # instead of black, which a dark page hides
_DASHES: Final = {"-": "solid", (4, 1.5): "dashed", (1, 1.5): "dotted", (5, 1.5, 1, 1.5): "dashdot"}
_MARKERS: Final = {"s": "square", "^": "triangle", "v": "inverted_triangle", "D": "diamond", "x": "x", "X": "cross"}


def new_plot(name: str, height: int, **options: Any) -> Any:
    """Return an empty plot, ``height`` pixels high and as wide as its place; scripts and tests find it by its name."""
    ground = {"background_fill_color": None, "border_fill_color": None}
    return figure(name=name, height=height, sizing_mode="stretch_width", min_border_left=45, **ground, **options)


def script(name: str, arguments: Any) -> CustomJS:
    """Return a script of the page as a callback, with models and data by the names that it calls them."""
    return CustomJS(args=dict(arguments), code=(PAGE / name).read_text(encoding="utf-8"), module=True)


def looks(labels: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return colour, dash and marker of levels, as Bokeh names them; those of policies as in all figures."""
    return {
        label: {
            "colour": _GREY if style.colour == BLACK else style.colour,
            "dash": _DASHES[style.line if isinstance(style.line, str) else style.line[1]],
            "marker": _MARKERS.get(style.marker, "circle"),
        }
        for label, style in policy_styles(labels).items()
    }


def literal(text: object) -> str:
    """Return text that Bokeh shows literally, without formulas."""
    return re.sub(r"(?<=\$)(?=\$)|(?<=\\)(?=[(\[])", "\u200b", str(text))


class Control(NamedTuple):
    """An element of the page, by its name, with options: value and text of each, and the value that is chosen first."""

    name: str
    title: str
    options: Sequence[tuple[str, str]]
    value: str


_SCALES: Final = {"linear": "linear", "logarithmic": "log"}  # of the vertical axis, and Bokeh's names of them


def metric_curves(data: Mapping[str, Any]) -> tuple[list[Any], CustomJS]:
    """Return the plots of a study's curves, one for each scale, and the callback that draws them from the page's data."""
    most = max((len(factor["labels"]) for factor in data["factors"]), default=1)
    plots = {scale: _plot(scale, most) for scale in _SCALES}
    slots = [_slot(plots) for _ in range(most)]
    legends = []
    for number, (scale, plot) in enumerate(plots.items()):
        items = [slot["items"][number] for slot in slots]
        legends.append(Legend(items=items, click_policy="hide", label_text_font_size="12px"))
        plot.add_layout(legends[-1], "right")
        plot.visible = scale == "linear"
    scales = [*map(_axis_of, data["factors"]), _number_axis()]  # by factor; the last one is that of the utilization
    update = script("curves.mjs", {"slots": slots, "scales": scales, "plots": plots, "legends": legends})
    for slot in slots:
        for renderers in slot["renderers"].values():
            renderers[0].js_on_change("visible", update)
    return list(plots.values()), update


def curve_controls(data: Mapping[str, Any], first: str) -> list[Control]:
    """Return the lists from which a reader chooses what the curves show, at first the measure ``first``."""
    factors = [(str(index), factor["title"]) for index, factor in enumerate(data["factors"])]
    lead = data["lead"]
    others = [index for index in range(len(factors)) if index != lead]
    along = str(max(others, key=lambda index: (data["factors"][index]["numeric"], index), default=0))
    against = [*factors, ("utilization", "utilization ρ")] if "utilization" in data["measures"] else factors
    return [
        Control("curves-measure", "measure", [(name, of["title"]) for name, of in data["measures"].items()], first),
        Control("curves-x", "against", against, along if factors else "utilization"),
        Control("curves-by", "a curve for each", factors, str(lead)),
        Control("curves-scale", "scale", [(scale, scale) for scale in _SCALES], "linear"),
        *held_controls("curves", data),
    ]


def held_controls(section: str, data: Mapping[str, Any]) -> list[Control]:
    """Return a list of levels for each factor; a script disables those of factors that vary in the figure."""
    return [
        Control(
            f"{section}-at-{index}", factor["title"], [(str(code), text) for code, text in enumerate(factor["labels"])], "0"
        )
        for index, factor in enumerate(data["factors"])
        if len(factor["labels"]) > 1
    ]


def _plot(scale: str, most: int) -> Any:
    plot = new_plot(
        f"curves {scale}", max(430, 80 + _LEGEND_ITEM * most), x_range=Range1d(0, 1), y_range=Range1d(0.1, 1),
        y_axis_type=_SCALES[scale], tools="pan,wheel_zoom,box_zoom,reset,save", active_drag="box_zoom",
    )  # fmt: skip
    plot.yaxis.formatter = models.NumeralTickFormatter(format="0,0.[0000]")
    return plot


def _slot(plots: Mapping[str, Any]) -> dict[str, Any]:
    """Return the models of one curve, which shows one level or another: a click on the legend hides its renderers."""
    source = ColumnDataSource({name: [] for name in ("x", "y", "low", "high", "half", "point", "runs")})
    spread = ColumnDataSource({name: [] for name in ("x", "low", "high")})  # the interval of a single point
    slot: dict[str, Any] = {"source": source, "spread": spread, "looks": [], "lines": [], "points": []}
    slot |= {"renderers": {}, "items": []}  # looks have the colour of the level
    tooltips = [("", "@point"), ("mean", "@y{0,0.0000}"), ("± (95 %)", "@half{0,0.0000}"), ("runs", "@runs")]
    for scale, plot in plots.items():
        band = plot.varea("x", "low", "high", source=source, fill_alpha=0.15)
        line = plot.line("x", "y", source=source, line_width=2)
        dots = plot.scatter("x", "y", source=source, size=8)
        whisker = models.Whisker(source=spread, base="x", lower="low", upper="high")
        plot.add_layout(whisker)
        plot.add_tools(HoverTool(tooltips=tooltips, renderers=[dots]))
        slot["looks"] += [band.glyph, line.glyph, dots.glyph, whisker, whisker.upper_head, whisker.lower_head]
        slot["lines"].append(line.glyph)
        slot["points"].append(dots.glyph)
        slot["renderers"][scale] = [line, dots, band]
        slot["items"].append(LegendItem(label={"value": ""}, renderers=[line, dots, band]))
    return slot


def _axis_of(factor: Mapping[str, Any]) -> dict[str, Any]:
    if factor["numeric"]:
        return _number_axis()
    names = models.CustomJSTickFormatter(args={"names": factor["literal"]}, code="return names[tick] ?? ''")
    return {"ticker": models.FixedTicker(ticks=factor["places"]), "formatter": names}


def _number_axis() -> dict[str, Any]:
    return {"ticker": models.BasicTicker(), "formatter": models.BasicTickFormatter()}


BINS: Final = 400
"""Time bins of a curve."""
_HEIGHTS: Final = {
    "busy": "busy nodes / nodes", "waiting": "waiting jobs", "down": "nodes down",
    "memory": "memory in use / memory", "store": "store: in use / bandwidth",
}  # fmt: skip
"""What is drawn over time: ``down`` if nodes fail in a run, ``memory`` and ``store`` if a run has such a limit."""


class StatesOfRun(NamedTuple):
    """:attr:`Result.states <clustermodel.experiment.result.Result.states>` of a run, with its label and its machine's size."""

    label: str
    nodes: int
    states: pd.DataFrame


def span(states: pd.DataFrame) -> float:
    """Return the duration of a run, seconds; one second for a run without events."""
    return float(np.ptp(states["time_s"])) if len(states) else 1.0


def curve_of(run: StatesOfRun, edges: FloatArray) -> dict[str, list[float]]:
    """Return means between two of the times ``edges`` each, seconds since the first event; a last zero ends the steps.

    ``busy``, ``memory`` and ``store`` are shares of what the machine has, and there are curves of the latter two where they are
    limited; ``waiting`` are jobs, ``down`` nodes.
    """
    if run.states.empty:
        return dict.fromkeys(("busy", "waiting", "down"), [0.0] * len(edges))
    times = run.states["time_s"].to_numpy(dtype=float)
    columns = {"busy": "busy_nodes", "waiting": "waiting_jobs", "down": "down_nodes"}
    columns |= {name: f"{name}_share" for name in ("memory", "store") if f"{name}_share" in run.states}
    curve = {}
    for name, column in columns.items():
        means = mean_of_steps(times - times[0], run.states[column].to_numpy(dtype=float), edges)
        curve[name] = [*np.round(means / (run.nodes if name == "busy" else 1), 5).tolist(), 0.0]
    return curve


def group_of(runs: Sequence[StatesOfRun], unit_s: float) -> dict[str, Any]:
    """Return the curves, by their distinct labels, of runs that are shown together, and their times in a unit."""
    edges = np.linspace(0.0, max(span(run.states) for run in runs), BINS + 1)
    return {"time": (edges / unit_s).tolist(), "curves": {run.label: curve_of(run, edges) for run in runs}}


def curves_over_time(groups: Sequence[Mapping[str, Any]], labels: list[str], unit: str) -> tuple[list[Any], CustomJS]:
    """Return the plots of the curves over time, and the callback that draws those of one of the groups of runs.

    ``labels`` are those of all curves, in the order of the legend; ``unit`` is that of the times.
    """
    time = Range1d(0, 1)
    curves = [curve for group in groups for curve in group["curves"].values()]
    there = {name for curve in curves for name, values in curve.items() if name != "down" or any(values)}
    plots = {
        name: new_plot(f"over time {name}", 230, x_range=time, tools=TOOLS, active_drag="xpan", y_axis_label=label)
        for name, label in _HEIGHTS.items()
        if name in there
    }
    for name in plots.keys() - {"waiting", "down"}:
        plots[name].y_range = Range1d(0, 1.02)
    list(plots.values())[-1].xaxis.axis_label = f"time since the first submission ({unit})"
    lines = []
    items = []
    for label, style in looks(labels).items():
        columns = ("x", "y", "middle", "length")  # of each time bin: begin, mean, middle and length
        sources = {name: ColumnDataSource({column: [0.0, 1.0] for column in columns}) for name in plots}
        look = {"line_width": 1.5, "color": style["colour"], "line_dash": style["dash"], "mode": "after"}
        drawn = [plot.step("x", "y", source=sources[name], name=literal(label), **look) for name, plot in plots.items()]
        items.append(LegendItem(label={"value": literal(label)}, renderers=drawn))
        lines.append({"label": label, "sources": sources})
    for line, item in zip(lines, items, strict=True):
        item.renderers = [*item.renderers, *_pointed_at(plots, line)]
    for plot in plots.values():
        plot.add_tools(HoverTool(tooltips=[("", "$name"), ("time", "@x{0,0.00}"), ("mean", "@y{0,0.000}")]))
    legend = _add_legend(plots["busy"], items, max(map(len, labels)))
    arguments = {"lines": lines, "groups": groups, "range": time, "legend": legend}
    return list(plots.values()), script("over_time.mjs", arguments)


def _pointed_at(plots: Mapping[str, Any], line: Mapping[str, Any]) -> list[Any]:
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
    plot.height += _LEGEND_ITEM * (-(-len(items) // columns) - 1)
    return legend
