"""The page's plots, with Bokeh: curves of measures along a factor, states of runs over time, and the viewer of single runs.

The viewer has Gantt charts and Ousterhout matrices of two runs on one time slider.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from bokeh import models
from bokeh.events import Tap
from bokeh.models import ColumnDataSource, CustomJS, HoverTool, Legend, LegendItem, Range1d
from bokeh.plotting import figure
from matplotlib.colors import to_hex

from clustermodel.arrays import FloatArray
from clustermodel.figures.result_plots import SERIES, means_over_time
from clustermodel.figures.style import BLACK, HATCHES, SKY, job_colour, policy_styles
from clustermodel.measure.job_table import bounded_slowdown
from clustermodel.recording.run_attempts import Status
from clustermodel.workload.placements import KINDS

PAGE: Final = Path(__file__).with_name("page")  # the page's template, style sheet and scripts
TOOLS: Final = "xpan,xwheel_zoom,box_zoom,reset,save"  # of a plot over time
INK: Final = "ink"  # tag of glyphs whose lines are black on a light page and white on a dark one
GROUND: Final = "ground"  # tag of plots with a background of their own
_LEGEND_ITEM: Final = 24  # height of an entry of a legend, pixels
_GREY: Final = "#808080"  # instead of black, which a dark page hides
_DASHES: Final = {"-": "solid", (4, 1.5): "dashed", (1, 1.5): "dotted", (5, 1.5, 1, 1.5): "dashdot"}
_MARKERS: Final = {"s": "square", "^": "triangle", "v": "inverted_triangle", "D": "diamond", "x": "x", "X": "cross"}


def new_plot(name: str, height: int, **options: Any) -> Any:
    """Return an empty plot, ``height`` pixels high; scripts and tests find it by its name."""
    ground = {"background_fill_color": None, "border_fill_color": None}
    return figure(name=name, height=height, sizing_mode="stretch_width", min_border_left=45, **ground, **options)


def script(name: str, arguments: Any) -> CustomJS:
    """Return a script of the page as a callback, with its arguments."""
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
    height = max(430, 80 + _LEGEND_ITEM * most)
    look: Any = {"tools": "pan,wheel_zoom,box_zoom,reset,save", "active_drag": "box_zoom"}
    plots = {}
    for scale, kind in _SCALES.items():
        ranges = {"x_range": Range1d(0, 1), "y_range": Range1d(0.1, 1)}
        plots[scale] = new_plot(f"curves {scale}", height, **ranges, y_axis_type=kind, **look)
        plots[scale].yaxis.formatter = models.NumeralTickFormatter(format="0,0.[0000]")
    slots = [_slot(plots) for _ in range(most)]
    legends = []
    for (scale, plot), items in zip(plots.items(), zip(*(slot["items"] for slot in slots), strict=True), strict=True):
        legends.append(Legend(items=list(items), click_policy="hide", label_text_font_size="12px"))
        plot.add_layout(legends[-1], "right")
        plot.visible = scale == "linear"
    scales = [_axis_of(factor) for factor in [*data["factors"], {"numeric": True}]]  # the last one is that of the utilization
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
        Control(f"{section}-at-{index}", of["title"], [(str(code), text) for code, text in enumerate(of["labels"])], "0")
        for index, of in enumerate(data["factors"])
        if len(of["labels"]) > 1
    ]


def _slot(plots: Mapping[str, Any]) -> dict[str, Any]:
    """Return the models of one curve, which shows one level or another: a click on the legend hides its renderers."""
    source = ColumnDataSource({name: [] for name in ("x", "y", "low", "high", "half", "point", "runs")})
    spread = ColumnDataSource({name: [] for name in ("x", "low", "high")})  # the interval of a single point
    slot: dict[str, Any] = {name: [] for name in ("looks", "lines", "points", "items")}  # looks have the colour of the level
    slot |= {"source": source, "spread": spread, "renderers": {}}
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
        return {"ticker": models.BasicTicker(), "formatter": models.BasicTickFormatter()}
    names = models.CustomJSTickFormatter(args={"names": factor["literal"]}, code="return names[tick] ?? ''")
    return {"ticker": models.FixedTicker(ticks=factor["places"]), "formatter": names}


BINS: Final = 400  # of time, of a curve


class StatesOfRun(NamedTuple):
    """:attr:`Result.states <clustermodel.experiment.result.Result.states>` of a run, with its label and its machine's size."""

    label: str
    nodes: int
    states: pd.DataFrame


def span(states: pd.DataFrame) -> float:
    """Return the duration of a run, seconds; one second for a run without events."""
    return float(np.ptp(states["time_s"])) if len(states) else 1.0


def curve_of(run: StatesOfRun, edges: FloatArray) -> dict[str, list[float]]:
    """Return means between two of the times ``edges`` each, seconds since the first event; a last zero ends the steps."""
    if run.states.empty:
        return dict.fromkeys(("busy", "waiting", "down"), [0.0] * len(edges))
    means = means_over_time(run.states, run.nodes, edges)
    return {name: [*np.round(values, 5).tolist(), 0.0] for name, values in means.items()}


def group_of(runs: Sequence[StatesOfRun], unit_s: float) -> dict[str, Any]:
    """Return the curves, by their distinct labels, of runs that are shown together, and their times in a unit."""
    edges = np.linspace(0.0, max(span(run.states) for run in runs), BINS + 1)
    return {"time": (edges / unit_s).tolist(), "curves": {run.label: curve_of(run, edges) for run in runs}}


def curves_over_time(groups: Sequence[Mapping[str, Any]], labels: list[str], unit: str) -> tuple[list[Any], CustomJS]:
    """Return the plots of the curves over time, and the callback that draws those of one of the groups of runs."""
    time = Range1d(0, 1)
    curves = [curve for group in groups for curve in group["curves"].values()]
    there = {name for curve in curves for name, values in curve.items() if name != "down" or any(values)}
    plots = {
        name: new_plot(f"over time {name}", 230, x_range=time, tools=TOOLS, active_drag="xpan", y_axis_label=label)
        for name, (_, label) in SERIES.items()
        if name in there
    }
    for name in plots.keys() - {"waiting", "down", "reserved", "power"}:
        plots[name].y_range = Range1d(0, 1.02)
    list(plots.values())[-1].xaxis.axis_label = f"time since the first submission ({unit})"
    lines: list[dict[str, Any]] = []
    items = []
    for label, style in looks(labels).items():
        columns = ("x", "y", "middle", "length")  # of each time bin: begin, mean, middle and length
        sources = {name: ColumnDataSource({column: [0.0, 1.0] for column in columns}) for name in plots}
        look = {"line_width": 1.5, "color": style["colour"], "line_dash": style["dash"], "mode": "after"}
        drawn = [plot.step("x", "y", source=sources[name], name=literal(label), **look) for name, plot in plots.items()]
        items.append(LegendItem(label={"value": literal(label)}, renderers=drawn))
        lines.append({"label": label, "sources": sources})
    for line, item in zip(lines, items, strict=True):  # transparent rectangles: Bokeh shows no tooltip for steps
        look = {"height": 10, "height_units": "screen", "fill_alpha": 0, "line_alpha": 0, "name": literal(line["label"])}
        pointed_at = [plot.rect("middle", "y", "length", source=line["sources"][name], **look) for name, plot in plots.items()]
        item.renderers = [*item.renderers, *pointed_at]
    for plot in plots.values():
        plot.add_tools(HoverTool(tooltips=[("", "$name"), ("time", "@x{0,0.00}"), ("mean", "@y{0,0.000}")]))
    # Above the first plot, in as many columns as fit.
    across = min(max(660 // (50 + 7 * max(map(len, labels))), 1), 6)
    legend = Legend(items=items, click_policy="hide", label_text_font_size="12px", orientation="horizontal", ncols=across)
    plots["busy"].add_layout(legend, "above")
    plots["busy"].height += _LEGEND_ITEM * (-(-len(items) // across) - 1)
    arguments = {"lines": lines, "groups": groups, "range": time, "legend": legend}
    return list(plots.values()), script("over_time.mjs", arguments)


STATUSES: Final = tuple(status.label for status in Status)
Columns = dict[str, npt.NDArray[np.generic]]


class ViewedRun(NamedTuple):
    """The data of one run's figures; times in seconds since the first submission."""

    label: str
    machine_nodes: int
    shared: bool  # whether gangs share nodes in time, so that the matrix has several rows
    recorded: bool  # by a log
    jobs: Columns  # durations have seven digits; the status is a position in STATUSES, the head of the queue -1 for never
    stays: Columns  # a gang in one row: position in jobs, begin, end, row, position in KINDS
    pieces: Columns  # a contiguous range of nodes: position in stays, first, number of nodes
    events: Columns  # the machine after each event: time, waiting jobs, nodes down and reserved, row
    overview: Columns  # the share of busy nodes over time, x in the unit of the axes

    @property
    def size(self) -> int:
        """The size of the data, bytes."""
        tables = (self.jobs, self.stays, self.pieces, self.events, self.overview)
        return sum(values.nbytes for table in tables for values in table.values())


def viewed_run(
    label: str,
    machine_nodes: int,
    records: pd.DataFrame,
    placements: pd.DataFrame,
    states: pd.DataFrame,
    overview: Columns,
    *,
    recorded: bool = False,
) -> ViewedRun:
    """Return the data of a run's figures from the tables of its :class:`~clustermodel.experiment.result.Result`."""

    def since(times: pd.Series) -> npt.NDArray[np.generic]:
        seconds = times.to_numpy(dtype=float) - start
        return np.where(np.isfinite(seconds), seconds, -1.0).astype(np.float32)

    start = float(states["time_s"].iloc[0])
    response = records["response_s"].to_numpy(dtype=float)
    slowdown = bounded_slowdown(response, records["run_s"].to_numpy(dtype=float))
    jobs = {
        "id": _whole(records["job"]), "user": _whole(records["user"]), "nodes": _whole(records["nodes"]),
        "submit": records["submit_s"].to_numpy(dtype=float) - start, "wait": records["wait_s"].to_numpy(dtype=np.float32),
        "response": response.astype(np.float32), "slowdown": slowdown.astype(np.float32),
        "reserved": since(records["reserved_s"]), "head": since(records["head_since_s"]),
        "attempts": _whole(records["tries"]), "backfilled": records["backfilled"].to_numpy(dtype=np.int8),
        "status": _whole(records["status"].map(STATUSES.index)),
    }  # fmt: skip
    of_stay = ["job", "begin_s", "end_s", "row", "kind"]
    unique = placements.drop_duplicates(of_stay)
    stays = {
        "job": _whole(unique["job"].map(pd.Series(np.arange(len(records)), index=records["job"]))),
        "begin": unique["begin_s"].to_numpy(dtype=float) - start, "end": unique["end_s"].to_numpy(dtype=float) - start,
        "row": _whole(unique["row"]), "kind": _whole(unique["kind"].map(KINDS.index)),
    }  # fmt: skip
    group = _whole(placements.groupby(of_stay, sort=False).ngroup())
    pieces = {"stay": group, "first": _whole(placements["first_node"]), "nodes": _whole(placements["nodes"])}
    events = {"time": states["time_s"].to_numpy(dtype=float) - start, "waiting": _whole(states["waiting_jobs"])}
    events |= {"down": _whole(states["down_nodes"]), "row": _whole(states["running_row"])}
    if "reserved_nodes" in states:
        events["reserved"] = _whole(states["reserved_nodes"])
    shared = bool((states["running_row"] >= 0).any() or placements["row"].any())
    return ViewedRun(label, machine_nodes, shared, recorded, jobs, stays, pieces, events, overview)


def recorded_jobs(records: pd.DataFrame, placements: pd.DataFrame) -> pd.DataFrame:
    """Return the job table of a recorded schedule, from that of a simulation of the same jobs: those whose nodes are known."""
    stays = placements.groupby("job").agg({"begin_s": "min", "end_s": "max"})
    jobs = records[records["job"].isin(stays.index)]
    begin, end = (stays.loc[jobs["job"], name].to_numpy() for name in ("begin_s", "end_s"))
    times = {"wait_s": np.maximum(begin - jobs["submit_s"], 0), "response_s": end - jobs["submit_s"]}
    return jobs.assign(**times, reserved_s=np.nan, head_since_s=np.nan, tries=1, backfilled=False)


def _whole(values: pd.Series) -> npt.NDArray[np.generic]:
    """Return whole numbers in the smallest type that holds them and that Bokeh supports."""
    if values.isna().any():  # in a damaged table
        raise ValueError(f"{values.name}: a value is missing")
    numbers = values.to_numpy(dtype=np.int64)
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return numbers.astype(kind)
    return numbers.astype(np.float64)


JOB_COLOURS: Final = tuple(to_hex(job_colour(job)) for job in range(18))  # by id modulo their number
PANELS: Final = (1, 2)  # numbers of the runs that are shown side by side
_SIDES: Final = ("left", "right", "top", "bottom")
_OF_A_BOX: Final = ("colour", "alpha", "job", "user", "nodes", "submit", "begin", "end", "kind", "place")


def run_viewer(runs: Sequence[ViewedRun], unit_s: float, unit: str) -> tuple[list[list[Any]], CustomJS]:
    """Return the plots of the viewer, a list for each of two runs, and the callback that draws them; axes have that unit."""
    window, whole = Range1d(0, 1), Range1d(0, 1)
    panels: list[dict[str, Any]] = []
    plots: list[list[Any]] = []
    for number in PANELS:
        overview, strip = _overview(number, runs[0], window, whole)
        panels.append({"gantt": _gantt(number, window, unit, strip), "matrix": _matrix(number, unit)})
        plots.append([overview, *(panels[-1][name]["plot"] for name in ("gantt", "matrix"))])
    arguments = {
        "runs": [_shown(run) for run in runs], "panels": panels, "window": window, "whole": whole, "unit": unit_s,
        "unit_name": unit, "kinds": list(KINDS), "statuses": list(STATUSES), "colours": list(JOB_COLOURS),
    }  # fmt: skip
    update = script("viewer.mjs", arguments)
    for end in ("start", "end"):
        window.js_on_change(end, update)
    for chart in (panel[name]["plot"] for panel in panels for name in ("gantt", "matrix")):
        chart.js_on_event(Tap, update)
    return plots, update


def _shown(run: ViewedRun) -> dict[str, Any]:
    tables = {name: ColumnDataSource(getattr(run, name)) for name in ("jobs", "stays", "pieces", "events", "overview")}
    rows = int(run.stays["row"].max(initial=0)) + 1
    about = {"label": run.label, "nodes": run.machine_nodes, "shared": run.shared, "recorded": run.recorded}
    return {**about, "rows": rows, **tables}


def _overview(number: int, run: ViewedRun, window: Range1d, whole: Range1d) -> tuple[Any, ColumnDataSource]:
    """Return the strip above a chart, with the window of time that the chart shows, and its source."""
    source = ColumnDataSource(dict(run.overview))
    plot = new_plot(
        f"overview {number}", 90, x_range=whole, y_range=Range1d(0, 1.02), tools="", toolbar_location=None, y_axis_label="busy"
    )
    plot.varea_step("x", 0, "y", source=source, step_mode="after", fill_color=SKY, fill_alpha=0.6)
    plot.yaxis.ticker = [0, 1]
    tool = models.RangeTool(x_range=window)
    tool.overlay.fill_color, tool.overlay.fill_alpha = "#808080", 0.25
    plot.add_tools(tool)
    return plot, source


def _gantt(number: int, window: Range1d, unit: str, overview: ColumnDataSource) -> dict[str, Any]:
    plot = new_plot(
        f"gantt {number}", 430, x_range=window, y_range=Range1d(0, 1), tools=TOOLS, active_drag="xpan", tags=[GROUND],
        x_axis_label=f"time since the first submission ({unit})",
    )  # fmt: skip
    now = models.Span(location=0, dimension="height", line_width=1.5, tags=[INK])
    plot.add_layout(now)
    ticks = {"node_ticks": models.BasicTicker(), "row_ticks": models.FixedTicker(ticks=[])}
    return {"plot": plot, "sources": _rectangles(plot, unit), "now": now, **ticks, "overview": overview}


def _matrix(number: int, unit: str) -> dict[str, Any]:
    plot = new_plot(
        f"matrix {number}", 300, x_range=Range1d(0, 1), y_range=Range1d(1, 0), tools="box_zoom,reset,save",
        tags=[GROUND], x_axis_label="column (node)", y_axis_label="row (time slice)",
    )  # fmt: skip
    plot.yaxis.ticker = models.SingleIntervalTicker(interval=1, num_minor_ticks=0)
    sources = _rectangles(plot, unit)
    frame = ColumnDataSource({side: [] for side in _SIDES})  # around the row that runs first
    drawn = plot.quad(*_SIDES, source=frame, fill_color=None, line_width=2.5, line_dash="dashed", name="frame")
    drawn.glyph.tags = [INK]
    return {"plot": plot, "sources": sources, "frame": frame}


def _rectangles(plot: Any, unit: str) -> dict[str, ColumnDataSource]:
    """Add the rectangles of gangs to a plot: colours, hatches, ids and the frames of the chosen job."""
    plot.add_tools(models.TapTool())
    plot.grid.visible = False
    sources = {"boxes": (*_SIDES, *_OF_A_BOX), "names": ("x", "y", "text", "colour"), "chosen": _SIDES}
    made = {name: ColumnDataSource({column: [] for column in columns}) for name, columns in sources.items()}
    boxes, look = made["boxes"], {"line_color": "white", "line_width": 0.5, "fill_alpha": "alpha"}
    quads = [plot.quad(*_SIDES, source=boxes, fill_color="colour", **look)]
    hover = [("job", "@job"), ("user", "@user"), ("nodes", "@nodes"), ("submitted", f"@submit{{0,0.000}} {unit}")]
    hover += [("from", f"@begin{{0,0.000}} {unit}"), ("until", f"@end{{0,0.000}} {unit}"), ("", "@kind")]
    plot.add_tools(models.HoverTool(tooltips=hover, renderers=list(quads)))
    look = {"fill_color": None, "line_color": None, "hatch_color": "white", "hatch_alpha": 0.8, "hatch_scale": 6}
    for kind, (hatch, _) in HATCHES.items():  # one renderer each: Bokeh would else rebuild the pattern per rectangle
        view = models.CDSView(filter=models.GroupFilter(column_name="kind", group=kind))
        quads.append(plot.quad(*_SIDES, source=boxes, view=view, hatch_pattern=hatch[0], **look))
    for drawn in quads:  # a click does not fade what it does not select
        drawn.nonselection_glyph = drawn.selection_glyph = drawn.glyph
    look = {"text_align": "center", "text_baseline": "middle", "text_font_size": "10px", "text_color": "colour"}
    plot.text("x", "y", "text", source=made["names"], **look)
    framed = plot.quad(*_SIDES, source=made["chosen"], fill_color=None, line_width=3, name="chosen")
    framed.glyph.tags = [INK]
    return made
