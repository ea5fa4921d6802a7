"""The figures of a study's table, of two policies that cross, and of a validation: a formula beside simulated means."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from itertools import cycle
from math import inf, isfinite, isnan, nan
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from clustermodel.figures import curves_bars, maps, style
from clustermodel.figures.capacity import account_bars

if TYPE_CHECKING:
    from clustermodel.experiment.study_table import StudyTable

_TELLING: Final = 12  # characters of a level that tells what it is without the name of its factor


def _method(function: Callable[..., Figure]) -> Callable[..., Figure]:
    """Return a method with the arguments of a function, without its table, and their description."""

    @wraps(function)
    def method(self: StudyPlots, *given: Any, **options: Any) -> Figure:
        return function(self.table, *given, **options)

    myself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.signature(function)
    others = list(signature.parameters.values())[1:]
    of_method: Any = method
    of_method.__signature__ = signature.replace(parameters=[myself, *others])
    of_method.__doc__ = (inspect.getdoc(function) or "").replace("    table: a row for each run.\n", "")
    return method


class StudyPlots:
    """The figures of an experiment's table."""

    def __init__(self, table: StudyTable) -> None:
        self.table = table

    curves = _method(curves_bars.curves)
    bars = _method(curves_bars.bars)
    improvements = _method(curves_bars.improvements)
    ratios = _method(curves_bars.ratios)
    differences = _method(curves_bars.differences)
    heat_map = _method(maps.heat_map)
    difference_map = _method(maps.difference_map)
    winners = _method(maps.winners)
    capacity = _method(account_bars)


_RATIOS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100)
"""Ticks."""


def difference_curve(
    differences: pd.DataFrame, crossing: tuple[float, float, float], *, along: str, measure: str, policies: tuple[str, ...]
) -> Figure:
    """Return a figure of paired differences, or ratios, of two policies along a factor, and of their crossing."""
    figure, axes = style.new_figure(6.4, 3.8)
    values = differences.index.to_numpy(dtype=float)
    what, equal, sign = ("ratio", 1.0, "/") if "ratio" in differences else ("difference", 0.0, "-")
    (line,) = axes.plot(values, differences[what], color=style.BLUE, marker="o", markersize=4, linewidth=1.4)
    band = axes.fill_between(values, differences["low"], differences["high"], color=style.BLUE, alpha=0.15, linewidth=0)
    handles: dict[str, Any] = {f"mean {what} with its interval": (band, line)}
    if what == "ratio":
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        ticks = [tick for tick in _RATIOS if low <= tick <= high]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
        axes.set_yticks([], minor=True)
    axes.axhline(equal, color="0.4", linewidth=0.8)
    for policy, height, side in zip(policies, (0.02, 0.98), ("bottom", "top"), strict=True):
        axes.text(0.99, height, f"{style.plain(policy)} is lower", transform=axes.transAxes, ha="right", va=side, color="0.35")
    at, low, high = crossing
    if not isnan(at):
        start, end = axes.get_xlim()
        ends = start if low == -inf else low, end if high == inf else high
        span = axes.axvspan(*ends, color=style.ORANGE, alpha=0.25, linewidth=0)
        text = f"crossing {at:.4g}" + (f", interval {low:.4g} to {high:.4g}" if isfinite(low) and isfinite(high) else "")
        handles[text] = (span, axes.axvline(at, color=style.ORANGE, linewidth=1.6, linestyle="--"))
        axes.set_xlim(start, end)
    axes.set(xlabel=style.factor_label(along))
    axes.set_ylabel(f"{style.axis_label(measure)}\n{style.plain(policies[0])} {sign} {style.plain(policies[1])}")
    axes.grid(alpha=0.25, linewidth=0.5)
    style.legend_below(figure, handles)
    return figure


VERDICTS: Final = {"agrees": "o", "differs": "X", "undecided": "s"}
"""Markers; the colours are those of the series."""
_SHADES: Final[dict[str, dict[str, Any]]] = {
    "agrees": {"facecolor": "0.95"}, "differs": {"facecolor": "0.35"}, "undecided": {"facecolor": "0.8", "hatch": "///"},
}  # fmt: skip


def formula_and_simulation(frame: pd.DataFrame, factors: Sequence[str], *, quantity: str, relative: bool) -> Figure:
    """Return the figure of :class:`~clustermodel.experiment.validate.Verdicts`: values, differences, perhaps a map."""
    levels = {name: frame[name].astype(str).nunique() for name in factors}
    varying = [name for name in factors if levels[name] > 1]
    numeric = [
        name
        for name in sorted(varying, key=lambda name: -levels[name])
        if is_numeric_dtype(frame[name]) and not is_bool_dtype(frame[name]) and not frame[name].isna().any()
    ]
    mapped = len(numeric) > 1 and len(varying) == 2
    figure = style.NotebookFigure(figsize=(12.0 if mapped else 8.0, 7.0), layout="constrained")
    grid = figure.add_gridspec(2, 2 if mapped else 1, height_ratios=[3, 2], width_ratios=[3, 2] if mapped else None)
    upper = figure.add_subplot(grid[0, 0])
    lower = figure.add_subplot(grid[1, 0], sharex=upper)
    upper.tick_params(labelbottom=False)
    x = numeric[0] if numeric else None
    others = [name for name in varying if name != x]
    texts = [_in_words(name, frame[name].tolist(), alone=len(others) == 1) for name in others]
    series = [", ".join(row) for row in zip(*texts, strict=True)] if others else [""] * len(frame)
    frame = frame.assign(series=series, place=frame[x].astype(float) if x else np.arange(len(frame), dtype=float))
    colours = dict(zip(dict.fromkeys(series if x else [""]), cycle((*style.PALETTE, "0.6")), strict=False))
    handles = _draw_values(upper, frame, colours, joined=x is not None)
    upper.set_ylabel(style.axis_label(quantity))
    if (frame["formula"] > 0).all() and frame["formula"].max() > 20 * frame["formula"].min():
        upper.set_yscale("log")
    _draw_differences(lower, frame, colours, percent=relative)
    lower.set_ylabel("simulated - formula" + (" (%)" if relative else ""))
    if x is None:
        names = [style.plain(text, 60) for text in series]
        lower.set_xticks(frame["place"], names, rotation=50, ha="right", rotation_mode="anchor", fontsize="small")
        figure.set_figheight(figure.get_figheight() + 0.05 * max(map(len, names)))
    else:
        lower.set_xlabel(style.factor_label(x))
    for axes in (upper, lower):
        axes.grid(alpha=0.25, linewidth=0.5)
    if mapped:
        _draw_map(figure.add_subplot(grid[:, 1]), frame, numeric[0], numeric[1], percent=relative)
    said = "dashes: formula; points: simulated, 95 % intervals"
    if len(handles) == 1:
        (only,) = handles.values()
        handles, said = {said: only}, ""
    style.legend_below(figure, handles, title=said, longest=90)
    return figure


def _in_words(name: str, levels: Sequence[object], *, alone: bool) -> list[str]:
    """Return levels of a factor as parts of the names of series; texts that tell what they are stand alone."""
    texts = [level for level in levels if isinstance(level, str)]
    alone = alone or name == "policy" or min(map(len, texts), default=0) > _TELLING
    names = "" if alone else f"{style.factor_label(name)} "
    return [f"{names}{level}" if isinstance(level, str) else curves_bars.level_title(name, level) for level in levels]


def _draw_values(axes: Axes, frame: pd.DataFrame, colours: Mapping[str, str], *, joined: bool) -> dict[str, Any]:
    """Draw formula and simulated means of each series; return what the legend shows."""
    handles: dict[str, Any] = {}
    for label, colour in colours.items():
        ordered = (frame[frame["series"] == label] if joined else frame).sort_values("place")
        line_style = "-" if joined and len(ordered) > 1 else "none"
        (line,) = axes.plot(ordered["place"], ordered["formula"], color=colour, linestyle=line_style, marker="_", markersize=12)
        half = ordered["half"].replace([inf, nan], 0.0)
        look: dict[str, Any] = {"fmt": "o", "markersize": 4, "capsize": 3, "color": colour}
        points = axes.errorbar(ordered["place"], ordered["simulated"], yerr=half, **look)
        handles[label] = (line, points)
    return handles


def _draw_differences(axes: Axes, frame: pd.DataFrame, colours: Mapping[str, str], *, percent: bool) -> None:
    """Draw the differences in the colours of their series, those at the same place beside each other, and the margin."""
    scale = 100.0 if percent else 1.0
    margin = scale * float(frame["margin"].iloc[0])
    handles: dict[str, Any] = {"margin": axes.axhspan(-margin, margin, color="0.9", zorder=0)}
    axes.axhline(0, color="0.4", linewidth=0.8)
    places = np.sort(frame["place"].unique())
    step = float(np.diff(places).min()) if len(places) > 1 else 1.0
    rank = frame.groupby("place").cumcount()
    at = frame["place"] + (rank - (frame.groupby("place")["place"].transform("size") - 1) / 2) * step / (rank.max() + 7)
    for verdict, marker in VERDICTS.items():
        rows = frame[frame["verdict"] == verdict]
        for row, place in zip(rows.to_dict("records"), at[rows.index], strict=True):
            half = scale * (row["high"] - row["difference"])
            colour = colours.get(row["series"], style.PALETTE[0])
            look: dict[str, Any] = {"color": colour, "fmt": marker, "markersize": 5, "capsize": 2}
            axes.errorbar(place, scale * row["difference"], yerr=half if isfinite(half) else 0.0, **look)
        if len(rows):
            handles[verdict] = Line2D([], [], color="0.25", marker=marker, markersize=5, linestyle="none")
    axes.legend(list(handles.values()), list(handles), loc="upper left", ncols=4, fontsize="small")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.25 * (high - low))


def _draw_map(axes: Axes, frame: pd.DataFrame, x: str, y: str, *, percent: bool) -> None:
    """Draw the verdicts over two factors, with the differences."""
    columns, rows = (sorted(frame[name].unique()) for name in (x, y))
    for point in frame.to_dict("records"):
        across, down = columns.index(point[x]), rows.index(point[y])
        look = _SHADES[point["verdict"]]
        axes.add_patch(Rectangle((across - 0.48, down - 0.48), 0.96, 0.96, edgecolor="0.6", linewidth=0.5, **look))
        text = f"{100 * point['difference']:+.1f} %" if percent else f"{point['difference']:+.2g}"
        box = {"facecolor": look["facecolor"], "edgecolor": "none", "pad": 1.5}
        axes.text(across, down, text, ha="center", va="center", color=style.ink(look["facecolor"]), bbox=box)
    labels = [style.factor_label(name) for name in (x, y)]
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(-0.5, len(rows) - 0.5), xlabel=labels[0], ylabel=labels[1])
    axes.set_xticks(range(len(columns)), [f"{value:g}" for value in columns])
    axes.set_yticks(range(len(rows)), [f"{value:g}" for value in rows])
    shown = [verdict for verdict in VERDICTS if (frame["verdict"] == verdict).any()]
    patches = [Patch(edgecolor="0.6", linewidth=0.5, **_SHADES[verdict]) for verdict in shown]
    axes.legend(patches, shown, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize="small", frameon=False)
