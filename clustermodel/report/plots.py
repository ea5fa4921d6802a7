"""The page's plots, with Bokeh: their common style, curves of measures along a factor, and states of runs over time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NotRequired, TypedDict

import numpy as np
import pandas as pd
from bokeh.models import (
    BasicTicker,
    BasicTickFormatter,
    ColumnDataSource,
    CustomJS,
    CustomJSTickFormatter,
    FixedTicker,
    HoverTool,
    Legend,
    LegendItem,
    NumeralTickFormatter,
    Range1d,
    Whisker,
)
from bokeh.plotting import figure

from clustermodel.arrays import FloatArray
from clustermodel.figures.style import BLACK, Style, policy_styles
from clustermodel.measure.event_log import mean_of_steps

if TYPE_CHECKING:
    from clustermodel.report.data import FactorData, StudyData


PAGE: Final = Path(__file__).with_name("page")
"""Folder of the page's template, style sheet and scripts."""
INK: Final = "ink"
"""Tag of glyphs whose lines are black on a light page and white on a dark one."""
GROUND: Final = "ground"
"""Tag of plots with a background of their own."""
LEGEND_ITEM: Final = 24
"""Height of an entry of a legend, pixels."""
_GREY: Final = "#808080"
"""Instead of black, which a dark page hides."""
_DASHES: Final = {"-": "solid", (4, 1.5): "dashed", (1, 1.5): "dotted", (5, 1.5, 1, 1.5): "dashdot"}
_MARKERS: Final = {
    "o": "circle",
    "s": "square",
    "^": "triangle",
    "v": "inverted_triangle",
    "D": "diamond",
    "x": "x",
    "X": "cross",
}


def new_plot(name: str, height: int, **options: Any) -> Any:
    """Return an empty plot as wide as its place on the page, with the page's background.

    Args:
        name: by which scripts and tests find it.
        height: pixels.
        options: of Bokeh's ``figure``.
    """
    return figure(
        name=name,
        height=height,
        sizing_mode="stretch_width",
        background_fill_color=None,
        border_fill_color=None,
        min_border_left=45,
        **options,
    )


def script(name: str, arguments: Any) -> CustomJS:
    """Return a script of the page as a callback.

    Args:
        name: of its file.
        arguments: models and data by the names that the script calls them.
    """
    return CustomJS(args=dict(arguments), code=(PAGE / name).read_text(encoding="utf-8"), module=True)


def page_styles(labels: list[str]) -> dict[str, Style]:
    """Return the styles of levels, those of policies as in all figures."""
    styles = policy_styles(labels)
    return {label: style._replace(colour=_GREY) if style.colour == BLACK else style for label, style in styles.items()}


def dash(style: Style) -> str:
    """Return Bokeh's name of a line style."""
    return _DASHES[style.line if isinstance(style.line, str) else style.line[1]]


def marker(style: Style) -> str:
    """Return Bokeh's name of a marker."""
    return _MARKERS.get(style.marker, "circle")


def literal(text: object) -> str:
    """Return text that Bokeh shows literally, without formulas."""
    return re.sub(r"(?<=\$)(?=\$)|(?<=\\)(?=[(\[])", "\u200b", str(text))


class Control(NamedTuple):
    """A list of options with a label."""

    name: str
    """Of the element."""
    title: str
    options: Sequence[tuple[str, str]]
    """Value and text of each option."""
    value: str
    """The option that is chosen first."""


SCALES: Final = {"linear": "linear", "logarithmic": "log"}
"""Scales of the vertical axis, and Bokeh's names of them."""
_DRAWN: Final = ("x", "y", "low", "high", "half", "point", "runs")


class Slot(TypedDict):
    """The models of one curve, which shows one level or another."""

    source: ColumnDataSource
    spread: ColumnDataSource
    """Ends of the interval of a single point."""
    looks: list[Any]
    """Glyphs with the colour of the level."""
    lines: list[Any]
    points: list[Any]
    renderers: dict[str, list[Any]]
    """By scale; a click on the legend hides them."""
    items: list[LegendItem]


def metric_curves(data: StudyData) -> tuple[list[Any], CustomJS]:
    """Return the plots of the curves, one for each scale, and the callback that draws them.

    Args:
        data: of the study; the script reads it in the page.
    """
    most = max((len(factor["labels"]) for factor in data["factors"]), default=1)
    plots = {scale: _plot(scale, most) for scale in SCALES}
    slots = [_slot(plots) for _ in range(most)]
    legends = []
    for scale, plot in plots.items():
        items = [slot["items"][list(SCALES).index(scale)] for slot in slots]
        legends.append(Legend(items=items, click_policy="hide", label_text_font_size="12px"))
        plot.add_layout(legends[-1], "right")
        plot.visible = scale == "linear"
    arguments = {
        "slots": slots,
        "scales": [*map(_axis_of, data["factors"]), _number_axis()],  # by factor; the last one is that of the utilization
        "plots": plots,
        "legends": legends,
    }
    update = script("curves.mjs", arguments)
    for slot in slots:
        for renderers in slot["renderers"].values():
            renderers[0].js_on_change("visible", update)
    return list(plots.values()), update


def curve_controls(data: StudyData, first: str) -> list[Control]:
    """Return the lists from which a reader chooses what the curves show.

    Args:
        data: of the study.
        first: the measure that is shown first.
    """
    factors = [(str(at), factor["title"]) for at, factor in enumerate(data["factors"])]
    lead = data["lead"]
    others = [at for at in range(len(factors)) if at != lead]
    along = str(max(others, key=lambda at: (data["factors"][at]["numeric"], at), default=0))
    against = [*factors, ("utilization", "utilization ρ")] if "utilization" in data["measures"] else factors
    return [
        Control("curves-measure", "measure", [(name, of["title"]) for name, of in data["measures"].items()], first),
        Control("curves-x", "against", against, along if factors else "utilization"),
        Control("curves-by", "a curve for each", factors, str(lead)),
        Control("curves-scale", "scale", [(scale, scale) for scale in SCALES], "linear"),
        *held_controls("curves", data),
    ]


def held_controls(section: str, data: StudyData) -> list[Control]:
    """Return a list of levels for each factor; a script disables those of factors that vary in the figure."""
    return [
        Control(f"{section}-at-{at}", factor["title"], [(str(code), text) for code, text in enumerate(factor["labels"])], "0")
        for at, factor in enumerate(data["factors"])
        if len(factor["labels"]) > 1
    ]


def _plot(scale: str, most: int) -> Any:
    plot = new_plot(
        f"curves {scale}", max(430, 80 + LEGEND_ITEM * most), x_range=Range1d(0, 1), y_range=Range1d(0.1, 1),
        y_axis_type=SCALES[scale], tools="pan,wheel_zoom,box_zoom,reset,save", active_drag="box_zoom",
    )  # fmt: skip
    plot.yaxis.formatter = NumeralTickFormatter(format="0,0.[0000]")
    return plot


def _slot(plots: dict[str, Any]) -> Slot:
    source = ColumnDataSource({name: [] for name in _DRAWN})
    spread = ColumnDataSource({name: [] for name in ("x", "low", "high")})
    slot: Slot = {
        "source": source, "spread": spread, "looks": [], "lines": [], "points": [], "renderers": {}, "items": [],
    }  # fmt: skip
    tooltips = [("", "@point"), ("mean", "@y{0,0.0000}"), ("± (95 %)", "@half{0,0.0000}"), ("runs", "@runs")]
    for scale, plot in plots.items():
        band = plot.varea("x", "low", "high", source=source, fill_alpha=0.15)
        line = plot.line("x", "y", source=source, line_width=2)
        dots = plot.scatter("x", "y", source=source, size=8)
        whisker = Whisker(source=spread, base="x", lower="low", upper="high")
        plot.add_layout(whisker)
        plot.add_tools(HoverTool(tooltips=tooltips, renderers=[dots]))
        item = LegendItem(label={"value": ""}, renderers=[line, dots, band])
        slot["looks"] += [band.glyph, line.glyph, dots.glyph, whisker, whisker.upper_head, whisker.lower_head]
        slot["lines"].append(line.glyph)
        slot["points"].append(dots.glyph)
        slot["renderers"][scale] = [line, dots, band]
        slot["items"].append(item)
    return slot


def _axis_of(factor: FactorData) -> dict[str, Any]:  # a ticker and a formatter
    if factor["numeric"]:
        return _number_axis()
    names = CustomJSTickFormatter(args={"names": factor["literal"]}, code="return names[tick] ?? ''")
    return {"ticker": FixedTicker(ticks=factor["places"]), "formatter": names}


def _number_axis() -> dict[str, Any]:  # a ticker and a formatter
    return {"ticker": BasicTicker(), "formatter": BasicTickFormatter()}


BINS: Final = 400
"""Time bins of a curve."""
_HEIGHTS: Final = {"busy": "busy nodes / nodes", "waiting": "waiting jobs"}
_DOWN: Final = {"down": "nodes down"}
"""Shown beside the others if nodes fail in a run."""
_LIMITED: Final = {"memory": "memory in use / memory", "store": "store: in use / bandwidth"}
"""Shown beside the others if a run has such a limit: shares of what there is."""
_OF_BIN: Final = ("x", "y", "middle", "length")
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
        sources = {name: ColumnDataSource({column: [0.0, 1.0] for column in _OF_BIN}) for name in plots}
        look = {"line_width": 1.5, "color": style.colour, "line_dash": dash(style), "mode": "after"}
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
