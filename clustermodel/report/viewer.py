"""Interactive figures of single runs, with Bokeh: Gantt charts and Ousterhout matrices, two runs on one time slider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypedDict

from bokeh.events import Tap
from bokeh.models import (
    BasicTicker,
    CDSView,
    ColumnDataSource,
    CustomJS,
    FixedTicker,
    GlyphRenderer,
    GroupFilter,
    HoverTool,
    Range1d,
    RangeTool,
    SingleIntervalTicker,
    Span,
    TapTool,
)
from matplotlib.colors import to_hex

from clustermodel.figures.style import SKY, job_colour
from clustermodel.measure.timeline import KINDS
from clustermodel.report.bokeh_parts import GROUND, INK, new_plot, script
from clustermodel.report.viewed_run import STATUSES, ViewedRun

JOB_COLOURS: Final = tuple(to_hex(job_colour(job)) for job in range(18))
"""Colours of jobs, by id modulo their number."""
PANELS: Final = (1, 2)
"""Numbers of the runs that are shown side by side."""
_HATCHES: Final = {"saved": ".", "lost": "x", "replica": "/", "failed": "-"}
_BOXES: Final = (
    "left", "right", "bottom", "top", "colour", "alpha", "job", "user", "nodes", "submit", "begin", "end", "kind", "place",
)  # fmt: skip


class Rectangles(TypedDict):
    """The sources of a plot of rectangles."""

    boxes: ColumnDataSource
    names: ColumnDataSource
    chosen: ColumnDataSource
    """Frames around the pieces of the chosen job."""


class Chart(TypedDict):
    """A Gantt chart."""

    plot: Any
    sources: Rectangles
    now: Span
    node_ticks: BasicTicker
    row_ticks: FixedTicker
    overview: ColumnDataSource


class Matrix(TypedDict):
    """An Ousterhout matrix."""

    plot: Any
    sources: Rectangles
    frame: ColumnDataSource
    """Around the row that runs first."""


class Panel(TypedDict):
    """The figures of one run."""

    gantt: Chart
    matrix: Matrix


class ShownRun(TypedDict):
    """A run in the page; the columns are those of :class:`~clustermodel.report.viewed_run.ViewedRun`."""

    label: str
    nodes: int
    rows: int
    shared: bool
    jobs: ColumnDataSource
    stays: ColumnDataSource
    pieces: ColumnDataSource
    events: ColumnDataSource
    overview: ColumnDataSource


class ViewerArguments(TypedDict):
    """The arguments of ``viewer.mjs``."""

    runs: list[ShownRun]
    panels: list[Panel]
    window: Range1d
    """The time that the charts show."""
    whole: Range1d
    unit: float
    """Of the axes, seconds."""
    unit_name: str
    kinds: list[str]
    statuses: list[str]
    colours: list[str]


def run_viewer(runs: Sequence[ViewedRun], unit_s: float, unit: str) -> tuple[list[list[Any]], CustomJS]:
    """Return the plots of the viewer, a list for each of two runs, and the callback that draws them.

    Args:
        runs: at least one.
        unit_s: unit of the axes, seconds.
        unit: its name.
    """
    window, whole = Range1d(0, 1), Range1d(0, 1)
    panels: list[Panel] = []
    plots: list[list[Any]] = []
    for number in PANELS:
        overview, strip = _overview(number, runs[0], window, whole)
        gantt = _gantt(number, window, unit, strip)
        matrix = _matrix(number, unit)
        panels.append({"gantt": gantt, "matrix": matrix})
        plots.append([overview, gantt["plot"], matrix["plot"]])
    arguments: ViewerArguments = {
        "runs": [_shown(run) for run in runs],
        "panels": panels,
        "window": window,
        "whole": whole,
        "unit": unit_s,
        "unit_name": unit,
        "kinds": list(KINDS),
        "statuses": list(STATUSES),
        "colours": list(JOB_COLOURS),
    }
    update = script("viewer.mjs", arguments)
    window.js_on_change("start", update)
    window.js_on_change("end", update)
    for panel in panels:
        panel["gantt"]["plot"].js_on_event(Tap, update)
        panel["matrix"]["plot"].js_on_event(Tap, update)
    return plots, update


def _shown(run: ViewedRun) -> ShownRun:
    return {
        "label": run.label,
        "nodes": run.machine_nodes,
        "rows": run.rows,
        "shared": run.shared,
        "jobs": ColumnDataSource(run.jobs),
        "stays": ColumnDataSource(run.stays),
        "pieces": ColumnDataSource(run.pieces),
        "events": ColumnDataSource(run.events),
        "overview": ColumnDataSource(run.overview),
    }


def _overview(number: int, run: ViewedRun, window: Range1d, whole: Range1d) -> tuple[Any, ColumnDataSource]:
    """Return the strip above a chart, with the window of time that the chart shows, and its source."""
    source = ColumnDataSource(dict(run.overview))
    plot = new_plot(
        f"overview {number}", 90, x_range=whole, y_range=Range1d(0, 1.02), tools="", toolbar_location=None, y_axis_label="busy"
    )
    plot.varea_step("x", 0, "y", source=source, step_mode="after", fill_color=SKY, fill_alpha=0.6)
    plot.yaxis.ticker = [0, 1]
    tool = RangeTool(x_range=window)
    tool.overlay.fill_color, tool.overlay.fill_alpha = "#808080", 0.25
    plot.add_tools(tool)
    return plot, source


def _gantt(number: int, window: Range1d, unit: str, overview: ColumnDataSource) -> Chart:
    plot = new_plot(
        f"gantt {number}", 430, x_range=window, y_range=Range1d(0, 1), tools="xpan,xwheel_zoom,box_zoom,reset,save",
        active_drag="xpan", tags=[GROUND], x_axis_label=f"time since the first submission ({unit})",
    )  # fmt: skip
    plot.grid.visible = False
    now = Span(location=0, dimension="height", line_width=1.5, tags=[INK])
    plot.add_layout(now)
    plot.add_tools(TapTool())
    return {
        "plot": plot,
        "sources": _rectangles(plot, unit),
        "now": now,
        "node_ticks": BasicTicker(),
        "row_ticks": FixedTicker(ticks=[]),
        "overview": overview,
    }


def _matrix(number: int, unit: str) -> Matrix:
    plot = new_plot(
        f"matrix {number}", 300, x_range=Range1d(0, 1), y_range=Range1d(1, 0), tools="box_zoom,reset,save",
        tags=[GROUND], x_axis_label="column (node)", y_axis_label="row (time slice)",
    )  # fmt: skip
    plot.grid.visible = False
    plot.yaxis.ticker = SingleIntervalTicker(interval=1, num_minor_ticks=0)
    plot.add_tools(TapTool())
    sources = _rectangles(plot, unit)
    frame = ColumnDataSource({side: [] for side in ("left", "right", "bottom", "top")})
    plot.quad(
        "left", "right", "top", "bottom", source=frame, fill_color=None, line_width=2.5, line_dash="dashed", name="frame"
    ).glyph.tags = [INK]
    return {"plot": plot, "sources": sources, "frame": frame}


def _rectangles(plot: Any, unit: str) -> Rectangles:
    """Add the rectangles of gangs to a plot: colours, hatches, ids and the frame of the chosen job."""
    boxes = ColumnDataSource({name: [] for name in _BOXES})
    names = ColumnDataSource({name: [] for name in ("x", "y", "text", "colour")})
    chosen = ColumnDataSource({side: [] for side in ("left", "right", "bottom", "top")})
    drawn = plot.quad(
        "left", "right", "top", "bottom", source=boxes, fill_color="colour", line_color="white", line_width=0.5,
        fill_alpha="alpha",
    )  # fmt: skip
    _never_faded(drawn)
    hover = [("job", "@job"), ("user", "@user"), ("nodes", "@nodes"), ("submitted", f"@submit{{0,0.000}} {unit}")]
    hover += [("from", f"@begin{{0,0.000}} {unit}"), ("until", f"@end{{0,0.000}} {unit}"), ("", "@kind")]
    plot.add_tools(HoverTool(tooltips=hover, renderers=[drawn]))
    for kind, pattern in _HATCHES.items():  # one renderer each: Bokeh would else rebuild the pattern per rectangle
        hatched = plot.quad(
            "left", "right", "top", "bottom", source=boxes, view=CDSView(filter=GroupFilter(column_name="kind", group=kind)),
            fill_color=None, line_color=None, hatch_pattern=pattern, hatch_color="white", hatch_alpha=0.8, hatch_scale=6,
        )  # fmt: skip
        _never_faded(hatched)
    plot.text(
        "x", "y", "text", source=names, text_align="center", text_baseline="middle", text_font_size="10px", text_color="colour"
    )
    framed = plot.quad("left", "right", "top", "bottom", source=chosen, fill_color=None, line_width=3, name="chosen")
    framed.glyph.tags = [INK]
    return {"boxes": boxes, "names": names, "chosen": chosen}


def _never_faded(drawn: GlyphRenderer) -> None:
    """Keep a click from fading what it does not select."""
    drawn.nonselection_glyph = drawn.selection_glyph = drawn.glyph
