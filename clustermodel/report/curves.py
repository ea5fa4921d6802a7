"""Interactive curves of a study, with Bokeh: a metric against a factor, and queue length and utilization over time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from bokeh.layouts import column, row
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
    Select,
    UIElement,
    Whisker,
)
from bokeh.plotting import figure

from clustermodel.figures.labels import QUANTITIES
from clustermodel.figures.style import Style, policy_styles

PAGE: Final = Path(__file__).with_name("page")
"""Folder of the page's template and scripts."""
FACTORS: Final = ("machine", "workload", "policy")
METRICS: Final = tuple(name for name in QUANTITIES if name not in {"nodes", "warm_up_s"})
STRETCH: Final = {"sizing_mode": "stretch_width", "max_width": 1180}
"""Width of the page's elements."""
_ITEM: Final = 24
"""Height of an entry of a legend, pixels."""
_TOOLS: Final = "xpan,xwheel_zoom,box_zoom,reset,save"
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
_DRAWN: Final = ("x", "y", "low", "high", "half", "machine", "workload", "policy", "runs")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")


def shown(text: object) -> str:
    """Return text that Bokeh shows literally, without formulas."""
    return re.sub(r"(?<=\$)(?=\$)|(?<=\\)(?=[(\[])", "\u200b", str(text))


def numbers_in(names: Sequence[str]) -> list[float] | None:
    """Return the numbers in names that differ in one number only, such as ``"load 0.5"`` and ``"load 0.9"``, or ``None``."""
    texts = {_NUMBER.sub("", name) for name in names}
    numbers = [_NUMBER.findall(name) for name in names]
    if len(names) < 2 or len(texts) > 1 or any(len(of_name) != 1 for of_name in numbers):
        return None
    return [float(number) for (number,) in numbers]


def _scale(names: Sequence[str]) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the position of each level of a factor, and its axis: a numeric scale, or names side by side."""
    numbers = numbers_in(names)
    at = numbers or [float(place) for place in range(len(names))]
    margin = (max(at) - min(at)) * 0.05 if numbers else 0.5
    if numbers:
        ticker, formatter = BasicTicker(), BasicTickFormatter()
    else:
        ticker = FixedTicker(ticks=at)
        formatter = CustomJSTickFormatter(args={"names": [shown(name) for name in names]}, code="return names[tick] ?? ''")
    return dict(zip(names, at, strict=True)), {
        "ticker": ticker,
        "formatter": formatter,
        "start": min(at) - margin,
        "end": max(at) + margin,
    }


def dash(style: Style) -> str:
    """Return Bokeh's name of a line style."""
    return _DASHES[style.line if isinstance(style.line, str) else style.line[1]]


def script(name: str, **arguments: Any) -> CustomJS:
    """Return a script of the page as a callback."""
    return CustomJS(args=arguments, code=(PAGE / name).read_text(encoding="utf-8"), module=True)


def metric_curves(points: pd.DataFrame) -> tuple[UIElement, CustomJS]:
    """Return curves of a selectable metric against a selectable factor or utilization, and the callback that draws them.

    Args:
        points: means over replications for each combination of :data:`FACTORS`, as :func:`.means_of` returns them.
    """
    levels = {factor: list(dict.fromkeys(points[factor])) for factor in FACTORS}
    labels = {
        "machine": "machine",
        "workload": "workload",
        "policy": "policy",
        "utilization": QUANTITIES["utilization"].label(),
    }
    scales = {}
    table = {name: points[name].tolist() if name in FACTORS else points[name].to_numpy() for name in points}
    for factor in FACTORS:
        places, scales[factor] = _scale(levels[factor])
        table[f"at {factor}"] = points[factor].map(places).to_numpy(dtype=float)
        if numbers_in(levels[factor]):
            labels[factor] = shown(" ".join(_NUMBER.sub("", levels[factor][0]).split()) or factor)
    rho = points["utilization"].to_numpy(dtype=float)
    table["at utilization"] = rho
    known = rho[np.isfinite(rho)] if np.isfinite(rho).any() else np.array([0.0, 1.0])
    margin = max(float(np.ptp(known)) * 0.05, 0.005)
    scales["utilization"] = {
        "ticker": BasicTicker(),
        "formatter": BasicTickFormatter(),
        "start": float(known.min()) - margin,
        "end": float(known.max()) + margin,
    }
    several = [factor for factor in ("workload", "machine") if len(levels[factor]) > 1]
    height = max(430, 80 + _ITEM * len(levels["policy"]))
    plots = {
        scale: figure(
            **STRETCH, height=height, x_range=Range1d(0, 1), y_range=Range1d(0.1, 1), y_axis_type=kind,
            tools="pan,wheel_zoom,box_zoom,reset,save", active_drag="box_zoom", name=f"curves {scale}",
        )
        for scale, kind in (("linear", "linear"), ("logarithmic", "log"))
    }  # fmt: skip
    hover = [("policy", "@policy"), ("machine", "@machine"), ("workload", "@workload"), ("mean", "@y{0,0.0000}")]
    hover += [("± (95 %)", "@half{0,0.0000}"), ("runs", "@runs")]
    lines = []
    items: dict[str, list[LegendItem]] = {scale: [] for scale in plots}
    for policy, style in policy_styles(levels["policy"]).items():
        source = ColumnDataSource({name: [] for name in _DRAWN})
        spread = ColumnDataSource({name: [] for name in ("x", "low", "high")})
        look = {"source": source, "color": style.colour}
        drawn = {}
        for scale, plot in plots.items():
            band = plot.varea("x", "low", "high", source=source, fill_alpha=0.15, fill_color=style.colour)
            line = plot.line("x", "y", line_width=2, line_dash=dash(style), **look)
            dots = plot.scatter("x", "y", size=8, marker=_MARKERS.get(style.marker, "circle"), **look)
            plot.add_layout(Whisker(source=spread, base="x", lower="low", upper="high", line_color=style.colour))
            plot.add_tools(HoverTool(tooltips=hover, renderers=[dots]))
            items[scale].append(LegendItem(label={"value": shown(policy)}, renderers=[line, dots, band]))
            drawn[scale] = line
        lines.append({"policy": policy, "source": source, "spread": spread, "drawn": drawn})
    for scale, plot in plots.items():
        plot.add_layout(Legend(items=items[scale], click_policy="hide", label_text_font_size="12px"), "right")
        plot.visible = scale == "linear"
        plot.yaxis.formatter = NumeralTickFormatter(format="0,0.[0000]")
    choose = {
        "y": Select(title="metric", value="mean_wait_s", options=[(name, QUANTITIES[name].label()) for name in METRICS]),
        "x": Select(title="against", value=(several or ["policy"])[0], options=[*several, "policy", "utilization"]),
    }
    choose["scale"] = Select(title="scale", value="linear", options=list(plots), width=110)
    choose |= {factor: Select(title=factor, value=levels[factor][0], options=levels[factor]) for factor in several}
    labels |= {name: QUANTITIES[name].label() for name in METRICS}
    update = script(
        "curves.mjs", points=ColumnDataSource(table), lines=lines, choose=choose, scales=scales, labels=labels,
        plots={scale: {"plot": plot, "x_axis": plot.xaxis[0], "y_axis": plot.yaxis[0]} for scale, plot in plots.items()},
    )  # fmt: skip
    for select in choose.values():
        select.js_on_change("value", update)
    for line in lines:
        for drawn in line["drawn"].values():
            drawn.js_on_change("visible", update)
    chosen = row(*choose.values(), styles={"flex-wrap": "wrap"}, **STRETCH)
    return column(chosen, *plots.values(), **STRETCH), update


def curves_over_time(
    groups: Mapping[str, tuple[np.ndarray, Mapping[str, Mapping[str, np.ndarray]]]], unit: str
) -> tuple[UIElement, CustomJS]:
    """Return curves of utilization and queue length over time, and the callback that draws them.

    Args:
        groups: for each machine, workload and replication the times, and for each policy the means between two times:
            ``busy`` (shares of the machine) and ``waiting`` (jobs).
        unit: of the times.
    """
    policies = list(dict.fromkeys(policy for _, runs in groups.values() for policy in runs))
    time = Range1d(0, 1)
    heights = {"busy": "busy nodes / nodes", "waiting": "waiting jobs"}
    plots, lines, items = [], [], []
    for name, label in heights.items():
        plot = figure(**STRETCH, height=230, x_range=time, tools=_TOOLS, active_drag="xpan", name=f"over time {name}")
        plot.yaxis.axis_label = label
        plots.append(plot)
    plots[0].y_range = Range1d(0, 1.02)
    plots[1].xaxis.axis_label = f"time since the first submission ({unit})"
    for policy, style in policy_styles(policies).items():
        sources = {name: ColumnDataSource({"x": [0.0, 1.0], "y": [0.0, 0.0]}) for name in heights}
        look = {"line_width": 1.5, "color": style.colour, "line_dash": dash(style), "mode": "after"}
        drawn = [
            plot.step("x", "y", source=sources[name], name=shown(policy), **look)
            for plot, name in zip(plots, heights, strict=True)
        ]
        items.append(LegendItem(label={"value": shown(policy)}, renderers=drawn))
        lines.append({"policy": policy, **sources})
    for plot in plots:
        plot.add_tools(HoverTool(tooltips=[("policy", "$name"), ("time", "@x{0,0.00}"), ("mean", "@y{0,0.000}")]))
    columns = min(max(660 // max(50 + 7 * len(policy) for policy in policies), 1), 6)
    legend = Legend(items=items, click_policy="hide", label_text_font_size="12px", orientation="horizontal", ncols=columns)
    plots[0].add_layout(legend, "above")
    plots[0].height += _ITEM * (-(-len(items) // columns) - 1)
    curves = {
        name: {
            "time": times.tolist(),
            "policies": {policy: {of: values.tolist() for of, values in runs[policy].items()} for policy in runs},
        }
        for name, (times, runs) in groups.items()
    }
    group = Select(title="runs", value=next(iter(groups)), options=list(groups), width=500)
    update = script("over_time.mjs", group=group, lines=lines, curves=curves, range=time)
    group.js_on_change("value", update)
    return column(group, *plots, **STRETCH), update
