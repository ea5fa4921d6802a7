"""Interactive figures of single runs, with Bokeh: Gantt charts and Ousterhout matrices, two runs on one time slider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from bokeh import models
from bokeh.events import Tap
from bokeh.models import ColumnDataSource, CustomJS, Range1d
from matplotlib.colors import to_hex

from clustermodel.figures.style import SKY, job_colour
from clustermodel.measure.job_table import bounded_slowdown
from clustermodel.measure.timeline import KINDS
from clustermodel.recording.run_attempts import Status
from clustermodel.report.plots import GROUND, INK, TOOLS, new_plot, script

STATUSES: Final = tuple(status.label for status in Status)
Columns = dict[str, npt.NDArray[np.generic]]


class ViewedRun(NamedTuple):
    """The data of one run's figures; times in seconds since the first submission."""

    label: str
    machine_nodes: int
    shared: bool
    """Whether gangs share nodes in time, so that the matrix has several rows."""
    jobs: Columns
    """Shapes ``(jobs,)``; durations have seven digits.  ``reserved`` is the first guaranteed start, ``head`` when the job was
    first left waiting at the head of the queue, -1 for never; ``status`` the position in ``STATUSES``."""
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
    """Return the data of a run's figures from the tables of its :class:`~clustermodel.experiment.result.Result`."""
    start = float(states["time_s"].iloc[0])
    response = records["response_s"].to_numpy(dtype=float)
    jobs = {
        "id": _whole(records["job"]),
        "user": _whole(records["user"]),
        "nodes": _whole(records["nodes"]),
        "submit": records["submit_s"].to_numpy(dtype=float) - start,
        "wait": records["wait_s"].to_numpy(dtype=np.float32),
        "response": response.astype(np.float32),
        "slowdown": bounded_slowdown(response, records["run_s"].to_numpy(dtype=float)).astype(np.float32),
        "reserved": _since(records["reserved_s"], start),
        "head": _since(records["head_since_s"], start),
        "attempts": _whole(records["tries"]),
        "backfilled": records["backfilled"].to_numpy(dtype=np.int8),
        "status": _whole(records["status"].map(STATUSES.index)),
    }
    of_stay = ["job", "begin_s", "end_s", "row", "kind"]
    unique = placements.drop_duplicates(of_stay)
    stays = {
        "job": _whole(unique["job"].map(pd.Series(np.arange(len(records)), index=records["job"]))),
        "begin": unique["begin_s"].to_numpy(dtype=float) - start,
        "end": unique["end_s"].to_numpy(dtype=float) - start,
        "row": _whole(unique["row"]),
        "kind": _whole(unique["kind"].map(KINDS.index)),
    }
    pieces = {
        "stay": _whole(placements.groupby(of_stay, sort=False).ngroup()),
        "first": _whole(placements["first_node"]),
        "nodes": _whole(placements["nodes"]),
    }
    events = {
        "time": states["time_s"].to_numpy(dtype=float) - start,
        "waiting": _whole(states["waiting_jobs"]),
        "down": _whole(states["down_nodes"]),
        "row": _whole(states["running_row"]),
    }
    shared = bool((states["running_row"] >= 0).any())
    return ViewedRun(label, machine_nodes, shared, jobs, stays, pieces, events, overview)


def _since(times: pd.Series, start: float) -> npt.NDArray[np.generic]:
    """Return times since the first submission, -1 for those that are unknown."""
    since = times.to_numpy(dtype=float) - start
    return np.where(np.isfinite(since), since, -1.0).astype(np.float32)


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


JOB_COLOURS: Final = tuple(to_hex(job_colour(job)) for job in range(18))
"""Colours of jobs, by id modulo their number."""
PANELS: Final = (1, 2)
"""Numbers of the runs that are shown side by side."""
_HATCHES: Final = {"saved": ".", "lost": "x", "replica": "/", "failed": "-"}
_SIDES: Final = ("left", "right", "top", "bottom")
_OF_A_BOX: Final = ("colour", "alpha", "job", "user", "nodes", "submit", "begin", "end", "kind", "place")


def run_viewer(runs: Sequence[ViewedRun], unit_s: float, unit: str) -> tuple[list[list[Any]], CustomJS]:
    """Return the plots of the viewer, a list for each of two runs, and the callback that draws them; axes have that unit."""
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
        "runs": [_shown(run) for run in runs], "panels": panels, "window": window, "whole": whole, "unit": unit_s,
        "unit_name": unit, "kinds": list(KINDS), "statuses": list(STATUSES), "colours": list(JOB_COLOURS),
    }  # fmt: skip
    update = script("viewer.mjs", arguments)
    window.js_on_change("start", update)
    window.js_on_change("end", update)
    for panel in panels:
        panel["gantt"]["plot"].js_on_event(Tap, update)
        panel["matrix"]["plot"].js_on_event(Tap, update)
    return plots, update


def _shown(run: ViewedRun) -> dict[str, Any]:
    tables = {name: ColumnDataSource(getattr(run, name)) for name in ("jobs", "stays", "pieces", "events", "overview")}
    return {"label": run.label, "nodes": run.machine_nodes, "rows": run.rows, "shared": run.shared, **tables}


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
    plot.grid.visible = False
    now = models.Span(location=0, dimension="height", line_width=1.5, tags=[INK])
    plot.add_layout(now)
    plot.add_tools(models.TapTool())
    ticks = {"node_ticks": models.BasicTicker(), "row_ticks": models.FixedTicker(ticks=[])}
    return {"plot": plot, "sources": _rectangles(plot, unit), "now": now, **ticks, "overview": overview}


def _matrix(number: int, unit: str) -> dict[str, Any]:
    plot = new_plot(
        f"matrix {number}", 300, x_range=Range1d(0, 1), y_range=Range1d(1, 0), tools="box_zoom,reset,save",
        tags=[GROUND], x_axis_label="column (node)", y_axis_label="row (time slice)",
    )  # fmt: skip
    plot.grid.visible = False
    plot.yaxis.ticker = models.SingleIntervalTicker(interval=1, num_minor_ticks=0)
    plot.add_tools(models.TapTool())
    sources = _rectangles(plot, unit)
    frame = ColumnDataSource({side: [] for side in _SIDES})  # around the row that runs first
    drawn = plot.quad(*_SIDES, source=frame, fill_color=None, line_width=2.5, line_dash="dashed", name="frame")
    drawn.glyph.tags = [INK]
    return {"plot": plot, "sources": sources, "frame": frame}


def _rectangles(plot: Any, unit: str) -> dict[str, ColumnDataSource]:
    """Add the rectangles of gangs to a plot: colours, hatches, ids and the frames of the chosen job."""
    sources = {"boxes": (*_SIDES, *_OF_A_BOX), "names": ("x", "y", "text", "colour"), "chosen": _SIDES}
    made = {name: ColumnDataSource({column: [] for column in columns}) for name, columns in sources.items()}
    boxes, look = made["boxes"], {"line_color": "white", "line_width": 0.5, "fill_alpha": "alpha"}
    drawn = plot.quad(*_SIDES, source=boxes, fill_color="colour", **look)
    _never_faded(drawn)
    hover = [("job", "@job"), ("user", "@user"), ("nodes", "@nodes"), ("submitted", f"@submit{{0,0.000}} {unit}")]
    hover += [("from", f"@begin{{0,0.000}} {unit}"), ("until", f"@end{{0,0.000}} {unit}"), ("", "@kind")]
    plot.add_tools(models.HoverTool(tooltips=hover, renderers=[drawn]))
    look = {"fill_color": None, "line_color": None, "hatch_color": "white", "hatch_alpha": 0.8, "hatch_scale": 6}
    for kind, pattern in _HATCHES.items():  # one renderer each: Bokeh would else rebuild the pattern per rectangle
        view = models.CDSView(filter=models.GroupFilter(column_name="kind", group=kind))
        _never_faded(plot.quad(*_SIDES, source=boxes, view=view, hatch_pattern=pattern, **look))
    look = {"text_align": "center", "text_baseline": "middle", "text_font_size": "10px", "text_color": "colour"}
    plot.text("x", "y", "text", source=made["names"], **look)
    framed = plot.quad(*_SIDES, source=made["chosen"], fill_color=None, line_width=3, name="chosen")
    framed.glyph.tags = [INK]
    return made


def _never_faded(drawn: models.GlyphRenderer) -> None:
    """Keep a click from fading what it does not select."""
    drawn.nonselection_glyph = drawn.selection_glyph = drawn.glyph
