"""Interactive curves: a measure against a factor or the utilization, a curve for each level of another factor, with Bokeh."""

from __future__ import annotations

from typing import Any, Final, TypedDict

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

from clustermodel.report.bokeh_parts import LEGEND_ITEM, new_plot, script
from clustermodel.report.controls import Control
from clustermodel.report.page_data import FactorData, StudyData

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


class AxisScale(TypedDict):
    """The horizontal axis of a factor."""

    ticker: Any
    formatter: Any


class CurvesArguments(TypedDict):
    """The arguments of ``curves.mjs``."""

    slots: list[Slot]
    scales: list[AxisScale]
    """By factor; the last one is that of the utilization."""
    plots: dict[str, Any]
    """By scale."""
    legends: list[Legend]


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
    arguments: CurvesArguments = {
        "slots": slots,
        "scales": [*map(_axis_of, data["factors"]), _number_axis()],
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


def _axis_of(factor: FactorData) -> AxisScale:
    if factor["numeric"]:
        return _number_axis()
    names = CustomJSTickFormatter(args={"names": factor["literal"]}, code="return names[tick] ?? ''")
    return {"ticker": FixedTicker(ticks=factor["places"]), "formatter": names}


def _number_axis() -> AxisScale:
    return {"ticker": BasicTicker(), "formatter": BasicTickFormatter()}
