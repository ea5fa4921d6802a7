"""Figures of an experiment over two factors: heat maps, maps of differences from a baseline, and maps of the best policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from clustermodel import statistics
from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError, did_you_mean, quoted
from clustermodel.figures.curves_bars import level_of, shown_value
from clustermodel.figures.style import NotebookFigure, axis_label, factor_label, ink, legend_below, plain, policy_styles

if TYPE_CHECKING:
    from clustermodel.experiment.study_table import StudyTable


Level = bool | int | float | str | None
"""A level of a factor."""


def varying(table: StudyTable) -> list[str]:
    """Return the factors that have several levels."""
    return list(next(iter(table.points()), {}))


_HATCH: Final = "////"
_MOST_ACROSS: Final = 3
_BEYOND: Final = 3.0
"""Differences of more than three times the half-width are drawn alike in the contour of significance."""


class _Grid(NamedTuple):
    """The cells of a map."""

    x: list[Level]
    """The levels along the horizontal axis."""
    y: list[Level]
    """The levels along the vertical axis."""

    def array(self, rows: pd.DataFrame, x: str, y: str, column: str) -> FloatArray:
        """Return a column of a table of points as an array, shape ``(y, x)``; ``nan`` where there is no point."""
        cells = np.full((len(self.y), len(self.x)), np.nan)
        for across, down, value in zip(rows[x], rows[y], rows[column], strict=True):
            cells[self.y.index(level_of(down)), self.x.index(level_of(across))] = value
        return cells


def heat_map(
    table: StudyTable, measure: str, *, x: str, y: str, panels: str | None = None, log: bool = False, **levels: Level
) -> Figure:
    """Return a figure of the means of a measure over two factors: colours, with the numbers in the cells.

    Args:
        table: of an experiment.
        measure: a column of numbers.
        x: the factor along the horizontal axis.
        y: the factor along the vertical axis.
        panels: the factor with a panel for each of its levels; by default the third factor, if there is one.
        log: scale the colours logarithmically.
        levels: of other factors, for example ``policy="easy"``: the map shows their trials only.

    Raises:
        SpecificationError: there is no such factor or column, no trial has these levels, or a cell is several points.
    """
    parts, grid = _panels_of(table, x, y, panels, levels)
    means = {title: grid.array(part.means(measure, by=[x, y]), x, y, measure) for title, part in parts.items()}
    known = np.concatenate([cells[np.isfinite(cells)] for cells in means.values()])
    if not known.size:
        raise SpecificationError(f"measure: {measure} has no value in any cell; there is nothing to draw")
    positive = known[known > 0]
    if log and not positive.size:
        raise SpecificationError(f"log: {measure} is nowhere above zero, so that its colours cannot be logarithmic")
    low, high = float((positive if log else known).min()), float(known.max())
    scale = (LogNorm if log else Normalize)(low, high if high > low else low + 1.0)
    figure, drawn = _figure(parts, grid, x, y)
    for axes, cells in zip(drawn, means.values(), strict=True):
        mesh = _colour(axes, np.clip(cells, low, None) if log else cells, colormaps["cividis"], scale)
        _write(axes, cells, colormaps["cividis"], scale, _number)
    bar = figure.colorbar(mesh, ax=drawn, label=axis_label(measure), shrink=0.9)
    if log:
        bar.locator = LogLocator(subs=(1.0, 2.0, 5.0))
        bar.formatter = bar.minorformatter = FuncFormatter(lambda value, _: f"{value:,g}")
        bar.minorlocator = NullLocator()
    return figure


def difference_map(
    table: StudyTable,
    measure: str,
    *,
    baseline: Level,
    x: str,
    y: str,
    of: str = "policy",
    compared: Level = None,
    relative: bool = True,
    level: float = statistics.LEVEL,
    **levels: Level,
) -> Figure:
    """Return a figure of the paired differences of a measure from a baseline over two factors.

    Cells whose difference is not significant are hatched.  Where both factors are numeric, a line separates them from the
    others: there the paired interval ends at zero, interpolated between the cells.

    Args:
        table: of an experiment.
        measure: a column of numbers.
        baseline: the level of ``of`` that the others are compared with.
        x: the factor along the horizontal axis.
        y: the factor along the vertical axis.
        of: the factor that is compared.
        compared: the level to compare; by default all, a panel for each.
        relative: show the mean ratio to the baseline, in per cent more or less, instead of the mean difference.
        level: the confidence level.
        levels: of other factors: the map shows their trials only.

    Raises:
        SpecificationError: there is no such factor, level or column, a cell is several points, or a ratio divides by zero.
    """
    table = table.at(**levels) if levels else table
    _require_axes(table, x, y)
    rows = table.differences(measure, of, baseline, ratio=relative, level=level)
    others = [competitor for competitor in table.levels(of) if str(competitor) != str(baseline)]
    shown = others if compared is None else [competitor for competitor in others if str(competitor) == str(compared)]
    if not shown:
        raise SpecificationError(f"compared: {quoted(compared)} is not there{did_you_mean(str(compared), map(str, others))}")
    grid = _grid(table, x, y)
    parts = {
        shown_value(competitor): rows[[str(level_of(value)) == str(competitor) for value in rows[of]]] for competitor in shown
    }
    column, none = ("ratio", 1.0) if relative else ("difference", 0.0)
    cells_of = {}
    for title, part in parts.items():
        _require_one_point(part, x, y, title)
        differences, halves = (grid.array(part, x, y, name) for name in (column, "half"))
        cells_of[title] = (differences - none) * (100.0 if relative else 1.0), halves * (100.0 if relative else 1.0)
    largest = max((float(np.nanmax(np.abs(cells), initial=0.0)) for cells, _ in cells_of.values()), default=0.0) or 1.0
    scale, colours = Normalize(-largest, largest), colormaps["PuOr_r"]
    figure, drawn = _figure(parts, grid, x, y)
    for axes, (cells, halves) in zip(drawn, cells_of.values(), strict=True):
        mesh = _colour(axes, cells, colours, scale)
        significant = np.abs(cells) > halves
        _hatch(axes, np.isfinite(cells) & ~significant)
        _write(axes, cells, colours, scale, _signed, boxed=~significant)
        if _is_numeric(grid.x) and _is_numeric(grid.y):
            _draw_boundary(axes, cells, halves)
    unit = ", %" if relative else ""
    name = (
        f"{axis_label(measure)}, relative to {plain(baseline)}{unit}"
        if relative
        else f"{axis_label(measure)} - {plain(baseline)}"
    )
    figure.colorbar(mesh, ax=drawn, label=name, shrink=0.9)
    legend_below(figure, {f"not significant ({level:.0%})": Patch(facecolor="white", edgecolor="0.35", hatch=_HATCH)})
    return figure


def winners(
    table: StudyTable,
    measure: str,
    *,
    x: str,
    y: str,
    of: str = "policy",
    level: float = statistics.LEVEL,
    **levels: Level,
) -> Figure:
    """Return a map of which level of a factor has the lowest mean of a measure over two other factors.

    Cells in which the paired difference of another level from the lowest is not significant are hatched; the colours of the
    hatches are those of the tied levels.

    Args:
        table: of an experiment.
        measure: a column of numbers, of which the lowest mean wins.
        x: the factor along the horizontal axis.
        y: the factor along the vertical axis.
        of: the factor whose levels compete; any number of them.
        level: the confidence level of the paired differences.
        levels: of other factors: the map shows their trials only.

    Raises:
        SpecificationError: there is no such factor or column, or a cell is several points.
    """
    table = table.at(**levels) if levels else table
    _require_axes(table, x, y)
    rows = table.lowest(measure, of, level=level)
    _require_one_point(rows, x, y, of)
    grid = _grid(table, x, y)
    styles = policy_styles([str(competitor) for competitor in table.levels(of)])
    figure, (axes,) = _figure({"": table}, grid, x, y)
    handles: dict[str, Any] = {name: Patch(facecolor=style.colour) for name, style in styles.items()}
    for row in rows.to_dict("records"):
        place = grid.x.index(level_of(row[x])), grid.y.index(level_of(row[y]))
        colour, tied = styles[str(row["lowest"])].colour, [name for name in row["tied"].split(", ") if name]
        axes.add_patch(Rectangle((place[0] - 0.5, place[1] - 0.5), 1, 1, facecolor=colour, edgecolor="white"))
        if tied:
            other = styles[tied[0]].colour if tied[0] in styles else "white"
            hatch = Rectangle(
                (place[0] - 0.5, place[1] - 0.5), 1, 1, facecolor="none", edgecolor=other, hatch=_HATCH, linewidth=0
            )
            axes.add_patch(hatch)
        box = {"facecolor": colour, "edgecolor": "none", "pad": 1.5} if tied else None
        axes.text(*place, _number(row[measure]), ha="center", va="center", color=ink(colour), fontsize="small", bbox=box)
    handles["tied: the difference is not significant"] = Patch(facecolor="white", edgecolor="0.35", hatch=_HATCH)
    axes.set_title(f"lowest {axis_label(measure)}", fontsize="medium")
    legend_below(figure, handles, title=factor_label(of))
    return figure


# Cells.


def _panels_of(
    table: StudyTable, x: str, y: str, panels: str | None, levels: Mapping[str, Level]
) -> tuple[dict[str, StudyTable], _Grid]:
    """Return the trials of each panel by its title, and the cells that all panels have."""
    table = table.at(**levels) if levels else table
    _require_axes(table, x, y)
    others = [name for name in varying(table) if name not in {x, y}]
    if panels is None and len(others) == 1:
        (panels,) = others
    grid = _grid(table, x, y)
    if panels is None:
        return {"": table}, grid
    return {f"{factor_label(panels)} {shown_value(level)}": table.at(**{panels: level}) for level in table.levels(panels)}, grid


def _require_axes(table: StudyTable, x: str, y: str) -> None:
    if x == y:
        raise SpecificationError(f"y: {quoted(y)} is not allowed; a map has two different factors")
    for name in (x, y):
        table.levels(name)  # refuses what is no factor


def _require_one_point(rows: pd.DataFrame, x: str, y: str, of: str) -> None:
    """Refuse a table in which a cell of the map has several rows."""
    if x in rows and y in rows and not rows.duplicated([x, y]).any():
        return
    raise SpecificationError(
        f"x, y: {quoted(x)}, {quoted(y)} are not allowed; a cell of {of} must be one point with several levels of both: "
        "choose levels of the other factors"
    )


def _grid(table: StudyTable, x: str, y: str) -> _Grid:
    return _Grid(*(sorted(levels) if _is_numeric(levels) else levels for levels in (table.levels(x), table.levels(y))))  # type: ignore[type-var]


def _is_numeric(levels: Sequence[Level]) -> bool:
    return len(levels) > 1 and all(isinstance(level, int | float) and not isinstance(level, bool) for level in levels)


# Drawing.


def _figure(parts: Mapping[str, object], grid: _Grid, x: str, y: str) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel for each title, with the levels along its axes."""
    across = min(len(parts), _MOST_ACROSS)
    down = -(-len(parts) // across)
    width, height = (max(2.2, 0.7 + 0.62 * len(levels)) for levels in (grid.x, grid.y))
    figure = NotebookFigure(figsize=(1.9 + width * across, 0.7 + (height * 0.8 + 0.3) * down))
    figure.set_layout_engine("constrained")
    panels = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True).flatten()
    for axes in panels[len(parts) :]:
        axes.remove()
    names = [shown_value(level) for level in grid.x]
    slanted = max(map(len, names)) > 6
    for number, (axes, title) in enumerate(zip(panels, parts, strict=False)):
        axes.set_xlim(-0.5, len(grid.x) - 0.5)
        axes.set_ylim(-0.5, len(grid.y) - 0.5)
        axes.set_xticks(range(len(grid.x)), names, rotation=30 if slanted else 0, ha="right" if slanted else "center")
        axes.set_yticks(range(len(grid.y)), [shown_value(level) for level in grid.y])
        axes.tick_params(length=0, labelbottom=number + across >= len(parts))
        axes.set_title(title, fontsize="medium")
        axes.set_xlabel(factor_label(x) if number + across >= len(parts) else "")
        axes.set_ylabel("" if number % across else factor_label(y))
    return figure, list(panels[: len(parts)])


def _colour(axes: Axes, cells: FloatArray, colours: Colormap, scale: Normalize) -> Any:
    edges = (np.arange(cells.shape[1] + 1) - 0.5, np.arange(cells.shape[0] + 1) - 0.5)
    return axes.pcolormesh(*edges, np.ma.masked_invalid(cells), cmap=colours, norm=scale, edgecolors="white", linewidth=0.6)


def _hatch(axes: Axes, cells: Any) -> None:
    for down, across in np.argwhere(cells):
        corner = across - 0.5, down - 0.5
        axes.add_patch(Rectangle(corner, 1, 1, facecolor="none", edgecolor="0.45", hatch=_HATCH, linewidth=0))


def _write(axes: Axes, cells: FloatArray, colours: Colormap, scale: Normalize, text: Any, boxed: Any = None) -> None:
    """Write the numbers into the cells, on a box of the cell's colour where the cell is hatched."""
    for (down, across), value in np.ndenumerate(cells):
        if np.isfinite(value):
            colour = colours(float(scale(value)))
            hatched = boxed is not None and boxed[down, across]
            box = {"facecolor": colour, "edgecolor": "none", "pad": 1.2} if hatched else None
            axes.text(across, down, text(value), ha="center", va="center", color=ink(colour), fontsize="small", bbox=box)


def _draw_boundary(axes: Axes, cells: FloatArray, halves: FloatArray) -> None:
    """Draw the line between significant and other differences, interpolated between the centres of the cells."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(halves > 0, cells / halves, np.where(cells == 0, 0.0, np.sign(cells) * np.inf))
    ratio = np.ma.masked_invalid(np.clip(ratio, -_BEYOND, _BEYOND))
    if ratio.count() > 1 and (np.abs(ratio) > 1).any() and (np.abs(ratio) <= 1).any():
        bounds = [bound for bound in (-1.0, 1.0) if ratio.min() < bound < ratio.max()]
        axes.contour(
            np.arange(cells.shape[1]),
            np.arange(cells.shape[0]),
            ratio,
            levels=bounds,
            colors="black",
            linewidths=1.6,
            linestyles="-",
        )


def _number(value: float) -> str:
    if value != 0 and (abs(value) >= 1e6 or abs(value) < 1e-3):
        return f"{value:.1e}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _signed(value: float) -> str:
    return f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.2g}" if abs(value) < 10 else f"{value:+.0f}"
