"""Interactive figures of single runs, with Bokeh: a Gantt chart and the Ousterhout matrix, controlled by one slider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from bokeh.layouts import column
from bokeh.models import (
    BasicTicker,
    CDSView,
    ColumnDataSource,
    CustomJS,
    Div,
    FixedTicker,
    GlyphRenderer,
    GroupFilter,
    HoverTool,
    Range1d,
    RangeTool,
    Select,
    SingleIntervalTicker,
    Slider,
    Span,
    TapTool,
    UIElement,
)
from bokeh.plotting import figure
from matplotlib.colors import to_hex

from clustermodel.figures.style import job_colour
from clustermodel.measure.timeline import KINDS
from clustermodel.report.curves import STRETCH, script

JOB_COLOURS: Final = tuple(to_hex(job_colour(job)) for job in range(18))
"""Colours of jobs, by id modulo their number."""
_HATCHES: Final = {"saved": ".", "lost": "x", "replica": "/"}
_BOXES: Final = (
    "left", "right", "bottom", "top", "colour", "alpha", "job", "user", "nodes", "submit", "begin", "end", "kind",
)  # fmt: skip


class ViewedRun(NamedTuple):
    """The data of one run's figures; times in seconds since the first submission."""

    label: str
    machine_nodes: int
    shared: bool
    """Whether gangs share nodes in time, so that the matrix has several rows."""
    jobs: dict[str, npt.NDArray[np.generic]]
    """``id``, ``user``, ``nodes``, ``submit``; shapes ``(jobs,)``."""
    stays: dict[str, npt.NDArray[np.generic]]
    """A gang in one row: ``job`` (position in ``jobs``), ``begin``, ``end``, ``row``, ``kind`` (position in ``KINDS``)."""
    pieces: dict[str, npt.NDArray[np.generic]]
    """A contiguous range of nodes: ``stay`` (position in ``stays``), ``first``, ``nodes``."""
    events: dict[str, npt.NDArray[np.generic]]
    """The machine after each event: ``time``, ``waiting``, ``row``."""
    overview: dict[str, npt.NDArray[np.generic]]
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
    label: str,
    machine_nodes: int,
    records: pd.DataFrame,
    placements: pd.DataFrame,
    states: pd.DataFrame,
    overview: dict[str, npt.NDArray[np.generic]],
) -> ViewedRun:
    """Return the data of a run's figures.

    Args:
        label: of the run in the menu.
        machine_nodes: size of its machine.
        records: :attr:`Result.jobs`.
        placements: :attr:`Result.placements`.
        states: :attr:`Result.states`.
        overview: see :class:`ViewedRun`.
    """
    start = float(states["time_s"].iloc[0])
    position = pd.Series(np.arange(len(records)), index=records["job"])
    of_stay = ["job", "begin_s", "end_s", "row", "kind"]
    stays, unique = placements.groupby(of_stay, sort=False).ngroup(), placements.drop_duplicates(of_stay)
    kinds = unique["kind"].map({kind: number for number, kind in enumerate(KINDS)})
    return ViewedRun(
        label,
        machine_nodes,
        bool((states["running_row"] >= 0).any()),
        {
            "id": _whole(records["job"]),
            "user": _whole(records["user"]),
            "nodes": _whole(records["nodes"]),
            "submit": records["submit_s"].to_numpy(dtype=float) - start,
        },
        {
            "job": _whole(unique["job"].map(position)),
            "begin": unique["begin_s"].to_numpy(dtype=float) - start,
            "end": unique["end_s"].to_numpy(dtype=float) - start,
            "row": _whole(unique["row"]),
            "kind": _whole(kinds),
        },
        {
            "stay": _whole(stays),
            "first": _whole(placements["first_node"]),
            "nodes": _whole(placements["nodes"]),
        },
        {
            "time": states["time_s"].to_numpy(dtype=float) - start,
            "waiting": _whole(states["waiting_jobs"]),
            "row": _whole(states["running_row"]),
        },
        overview,
    )


def _whole(values: pd.Series) -> npt.NDArray[np.generic]:
    """Return whole numbers in the smallest type that holds them and that Bokeh supports."""
    numbers = values.to_numpy(dtype=np.int64)
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return numbers.astype(kind)
    return numbers.astype(np.float64)


def run_viewer(runs: Sequence[ViewedRun], unit_s: float, unit: str) -> tuple[UIElement, CustomJS]:
    """Return the viewer of some runs, and the callback that draws it.

    Args:
        runs: at least one.
        unit_s: unit of the axes, seconds.
        unit: its name.
    """
    select = Select(title="run", value=runs[0].label, options=[run.label for run in runs], width=500)
    time = Slider(title="event", start=1, end=2, value=1, step=1, name="event", **STRETCH)
    window, whole = Range1d(0, 1), Range1d(0, 1)
    gantt = figure(
        **STRETCH, height=430, x_range=window, y_range=Range1d(0, 1), tools="xpan,xwheel_zoom,box_zoom,reset,save",
        active_drag="xpan", active_scroll="xwheel_zoom", name="gantt", background_fill_color="#ececec",
    )  # fmt: skip
    gantt.grid.visible = False
    gantt.xaxis.axis_label = f"time since the first submission ({unit})"
    now = Span(location=0, dimension="height", line_color="black", line_width=1.5)
    gantt.add_layout(now)
    gantt.add_tools(TapTool())
    overview_source = ColumnDataSource(dict(runs[0].overview))
    overview = figure(
        **STRETCH, height=90, x_range=whole, y_range=Range1d(0, 1.02), tools="", name="overview", toolbar_location=None
    )
    overview.varea_step("x", 0, "y", source=overview_source, step_mode="after", fill_color="#56B4E9", fill_alpha=0.6)
    overview.yaxis.axis_label = "busy"
    overview.yaxis.ticker = [0, 1]
    overview.add_tools(RangeTool(x_range=window))
    note = Div(text="")
    matrix = figure(
        **STRETCH, height=300, x_range=Range1d(0, 1), y_range=Range1d(1, 0), tools="box_zoom,reset,save", name="matrix",
        background_fill_color="#ececec", title="",
    )  # fmt: skip
    matrix.grid.visible = False
    matrix.xaxis.axis_label = "column (node)"
    matrix.yaxis.axis_label = "row (time slice)"
    matrix.yaxis.ticker = SingleIntervalTicker(interval=1, num_minor_ticks=0)
    boxes, names = {}, {}
    hover = [("job", "@job"), ("user", "@user"), ("nodes", "@nodes"), ("submitted", f"@submit{{0,0.000}} {unit}")]
    hover += [("from", f"@begin{{0,0.000}} {unit}"), ("until", f"@end{{0,0.000}} {unit}"), ("", "@kind")]
    for plot in (gantt, matrix):
        boxes[plot.name] = ColumnDataSource({name: [] for name in _BOXES})
        names[plot.name] = ColumnDataSource({name: [] for name in ("x", "y", "text", "colour")})
        drawn: GlyphRenderer = plot.quad(
            "left", "right", "top", "bottom", source=boxes[plot.name], fill_color="colour", line_color="white", line_width=0.5,
            fill_alpha="alpha",
        )  # fmt: skip
        drawn.nonselection_glyph = drawn.selection_glyph = drawn.glyph
        plot.add_tools(HoverTool(tooltips=hover, renderers=[drawn]))
        for (
            kind,
            pattern,
        ) in _HATCHES.items():  # one renderer each: Bokeh would else rebuild the pattern per rectangle
            view = CDSView(filter=GroupFilter(column_name="kind", group=kind))
            hatched = plot.quad(
                "left", "right", "top", "bottom", source=boxes[plot.name], view=view, fill_color=None, line_color=None,
                hatch_pattern=pattern, hatch_color="white", hatch_alpha=0.8, hatch_scale=6,
            )  # fmt: skip
            hatched.nonselection_glyph = hatched.selection_glyph = hatched.glyph
        plot.text(
            "x",
            "y",
            "text",
            source=names[plot.name],
            text_align="center",
            text_baseline="middle",
            text_font_size="10px",
            text_color="colour",
        )
    frame = ColumnDataSource({"left": [], "right": [], "bottom": [], "top": []})
    matrix.quad("left", "right", "top", "bottom", source=frame, fill_color=None, line_color="black", line_width=2.5)
    shown = {
        run.label: {
            "nodes": run.machine_nodes, "rows": run.rows, "shared": run.shared,
            "kinds": list(KINDS), "colours": list(JOB_COLOURS),
            **{name: ColumnDataSource(getattr(run, name)) for name in ("jobs", "stays", "pieces", "events", "overview")},
        }
        for run in runs
    }  # fmt: skip
    update = script(
        "viewer.mjs",
        runs=shown,
        select=select,
        time=time,
        unit=unit_s,
        unit_name=unit,
        gantt={
            "boxes": boxes["gantt"], "names": names["gantt"], "x_range": window, "y_range": gantt.y_range, "whole": whole,
            "overview": overview_source, "now": now, "note": note, "axis": gantt.yaxis[0],
            "node_ticks": BasicTicker(), "row_ticks": FixedTicker(ticks=[]),
        },
        matrix={
            "boxes": boxes["matrix"], "names": names["matrix"], "frame": frame,
            "x_range": matrix.x_range, "y_range": matrix.y_range,
            "title": matrix.title, "plot": matrix, "rows": matrix.yaxis[0],
        },
    )  # fmt: skip
    select.js_on_change("value", update)
    time.js_on_change("value", update)
    window.js_on_change("start", update)
    window.js_on_change("end", update)
    gantt.js_on_event("tap", update)
    return column(select, overview, gantt, note, time, matrix, **STRETCH), update
