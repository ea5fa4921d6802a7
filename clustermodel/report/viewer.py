"""Interactive figures of single runs, with Bokeh: Gantt charts and Ousterhout matrices, two runs on one time slider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt
import pandas as pd
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
from clustermodel.measure.metrics import bounded_slowdown
from clustermodel.measure.timeline import KINDS
from clustermodel.recording.run_attempts import Status
from clustermodel.report.plots import GROUND, INK, new_plot, script

STATUSES: Final = tuple(status.label for status in Status)
Columns = dict[str, npt.NDArray[np.generic]]


class ViewedRun(NamedTuple):
    """The data of one run's figures; times in seconds since the first submission."""

    label: str
    machine_nodes: int
    shared: bool
    """Whether gangs share nodes in time, so that the matrix has several rows."""
    jobs: Columns
    """``id``, ``user``, ``nodes``, ``submit``, ``wait``, ``response``, ``slowdown``, ``reserved`` (the first guaranteed start,
    -1 for none), ``head`` (when it was first left waiting at the head of the queue, -1 for never), ``attempts``,
    ``backfilled``, ``status`` (position in ``STATUSES``); shapes ``(jobs,)``.  Durations have seven digits."""
    stays: Columns
    """A gang in one row: ``job`` (position in ``jobs``), ``begin``, ``end``, ``row``, ``kind`` (position in ``KINDS``)."""
    pieces: Columns
    """A contiguous range of nodes: ``stay`` (position in ``stays``), ``first``, ``nodes``."""
    events: Columns
    """The machine after each event: ``time``, ``waiting`` (jobs), ``down`` (nodes), ``row``."""
    overview: Columns
    """The share of busy nodes over time: ``x`` (in the unit of the axes), ``y``."""

    @property
    def rows(self) -> int:
        """The number of rows of the matrix."""
        return int(self.stays["row"].max(initial=0)) + 1

    @property
    def size(self) -> int:
        """The size of the data, bytes."""
        tables = (self.jobs, self.stays, self.pieces, self.events, self.overview)
        return sum(values.nbytes for table in tables for values in table.values())


def viewed_run(
    label: str, machine_nodes: int, records: pd.DataFrame, placements: pd.DataFrame, states: pd.DataFrame, overview: Columns
) -> ViewedRun:
    """Return the data of a run's figures.

    Args:
        label: of the run in the lists.
        machine_nodes: size of its machine.
        records: :attr:`Result.jobs <clustermodel.experiment.result.Result.jobs>`.
        placements: :attr:`Result.placements <clustermodel.experiment.result.Result.placements>`.
        states: :attr:`Result.states <clustermodel.experiment.result.Result.states>`.
        overview: see :class:`ViewedRun`.
    """
    start = float(states["time_s"].iloc[0])
    of_stay = ["job", "begin_s", "end_s", "row", "kind"]
    stays, unique = placements.groupby(of_stay, sort=False).ngroup(), placements.drop_duplicates(of_stay)
    return ViewedRun(
        label,
        machine_nodes,
        bool((states["running_row"] >= 0).any()),
        _jobs(records, start),
        _stays(unique, records, start),
        {"stay": _whole(stays), "first": _whole(placements["first_node"]), "nodes": _whole(placements["nodes"])},
        {
            "time": states["time_s"].to_numpy(dtype=float) - start,
            "waiting": _whole(states["waiting_jobs"]),
            "down": _whole(states["down_nodes"]),
            "row": _whole(states["running_row"]),
        },
        overview,
    )


def _jobs(records: pd.DataFrame, start: float) -> Columns:
    response = records["response_s"].to_numpy(dtype=float)
    slowdown = bounded_slowdown(response, records["run_s"].to_numpy(dtype=float))
    return {
        "id": _whole(records["job"]),
        "user": _whole(records["user"]),
        "nodes": _whole(records["nodes"]),
        "submit": records["submit_s"].to_numpy(dtype=float) - start,
        "wait": records["wait_s"].to_numpy(dtype=np.float32),
        "response": response.astype(np.float32),
        "slowdown": slowdown.astype(np.float32),
        "reserved": _since(records["reserved_s"], start),
        "head": _since(records["head_since_s"], start),
        "attempts": _whole(records["tries"]),
        "backfilled": records["backfilled"].to_numpy(dtype=np.int8),
        "status": _whole(records["status"].map({status: number for number, status in enumerate(STATUSES)})),
    }


def _stays(stays: pd.DataFrame, records: pd.DataFrame, start: float) -> Columns:
    position = pd.Series(np.arange(len(records)), index=records["job"])
    return {
        "job": _whole(stays["job"].map(position)),
        "begin": stays["begin_s"].to_numpy(dtype=float) - start,
        "end": stays["end_s"].to_numpy(dtype=float) - start,
        "row": _whole(stays["row"]),
        "kind": _whole(stays["kind"].map({kind: number for number, kind in enumerate(KINDS)})),
    }


def _since(times: pd.Series, start: float) -> npt.NDArray[np.generic]:
    """Return times since the first submission, -1 for those that are unknown."""
    since = times.to_numpy(dtype=float) - start
    return np.where(np.isfinite(since), since, -1.0).astype(np.float32)


def _whole(values: pd.Series) -> npt.NDArray[np.generic]:
    """Return whole numbers in the smallest type that holds them and that Bokeh supports.

    Raises:
        ValueError: one is missing, as only damaged tables have it.
    """
    if values.isna().any():
        raise ValueError(f"{values.name}: a value is missing")
    numbers = values.to_numpy(dtype=np.int64)
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return numbers.astype(kind)
    return numbers.astype(np.float64)


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


def run_viewer(runs: Sequence[ViewedRun], unit_s: float, unit: str) -> tuple[list[list[Any]], CustomJS]:
    """Return the plots of the viewer, a list for each of two runs, and the callback that draws them.

    Args:
        runs: at least one.
        unit_s: unit of the axes, seconds.
        unit: its name.
    """
    window, whole = Range1d(0, 1), Range1d(0, 1)
    panels: list[dict[str, Any]] = []
    plots: list[list[Any]] = []
    for number in PANELS:
        overview, strip = _overview(number, runs[0], window, whole)
        gantt = _gantt(number, window, unit, strip)
        matrix = _matrix(number, unit)
        panels.append({"gantt": gantt, "matrix": matrix})
        plots.append([overview, gantt["plot"], matrix["plot"]])
    arguments = {
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


def _shown(run: ViewedRun) -> dict[str, Any]:
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
