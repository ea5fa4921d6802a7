"""Figures of an experiment over two factors: heat maps, maps of differences from a baseline, and maps of the best policy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from textwrap import fill
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError, quoted
from clustermodel.figures.curves_bars import Labels, level_of, level_title, shown_value
from clustermodel.figures.style import axis_label, factor_label, ink, legend_below, new_figure, policy_styles
from clustermodel.measure import statistics

if TYPE_CHECKING:
    from clustermodel.experiment.factors import Label
    from clustermodel.experiment.study_table import StudyTable

_HATCH: Final = "////"
_NO_LABELS: Final[Labels] = MappingProxyType({})
_BEYOND: Final = 3.0  # differences of more times the half-width are drawn alike in the contour of significance


def varying(table: StudyTable) -> list[str]:
    """Return the factors that have several levels."""
    return list(next(iter(table.points()), {}))


def heat_map(
    table: StudyTable, measure: str, *, x: str, y: str, panels: str | None = None, log: bool = False,
    labels: Labels = _NO_LABELS, **levels: Label,
) -> Figure:  # fmt: skip
    """Return a figure of the means of a measure over the factors ``x`` and ``y``: colours, with the numbers in the cells.

    ``panels`` is the factor with a panel for each of its levels; by default the third factor, if there is one.  ``log`` scales
    the colours logarithmically.  ``labels`` are texts to show instead of the names of the factors and of the measure.  With
    ``levels`` of other factors, such as ``policy="easy"``, the map shows their trials only.

    Raises:
        SpecificationError: there is no such factor or column, no trial has these levels, or a cell is several points.
    """
    table, grid = _selected(table, x, y, levels, labels)
    others = [name for name in varying(table) if name not in {x, y}]
    if panels is None and len(others) == 1:
        (panels,) = others
    parts = {"": table}
    if panels is not None:
        parts = {_panel_title(panels, each): table.at(**{panels: each}) for each in table.levels(panels)}
    means = [grid.array(part.means(measure, by=[x, y]), measure) for part in parts.values()]
    colours = colormaps["cividis"]
    known = np.concatenate([cells[np.isfinite(cells)] for cells in means])
    if not known.size:
        raise SpecificationError(f"measure: {measure} has no value in any cell; there is nothing to draw")
    positive = known[known > 0]
    if log and not positive.size:
        raise SpecificationError(f"log: {measure} is nowhere above zero, so that its colours cannot be logarithmic")
    low, high = float((positive if log else known).min()), float(known.max())
    scale = (LogNorm if log else Normalize)(low, high if high > low else low + 1.0)
    figure, drawn = grid.figure(parts)
    for axes, cells in zip(drawn, means, strict=True):
        mesh = _draw_cells(axes, cells, np.clip(cells, low, None) if log else cells, colours, scale, _number)
    bar = figure.colorbar(mesh, ax=drawn, label=labels.get(measure) or axis_label(measure), shrink=0.9)
    if log:
        bar.locator = LogLocator(subs=(1.0, 2.0, 5.0))
        bar.formatter = bar.minorformatter = FuncFormatter(lambda value, _: f"{value:,g}")
        bar.minorlocator = NullLocator()
    return figure


def difference_map(
    table: StudyTable, measure: str, *, baseline: Label, x: str, y: str, of: str = "policy", relative: bool = True,
    level: float = statistics.LEVEL, labels: Labels = _NO_LABELS, **levels: Label,
) -> Figure:  # fmt: skip
    """Return a figure of the paired differences of a measure from a baseline over two factors.

    Cells whose difference is not significant are hatched.  Where both factors are numeric, a line separates them from the
    others: there the paired interval, of the confidence ``level``, ends at zero, interpolated between the cells.

    All other levels of the factor ``of`` are compared with the level ``baseline``, a panel for each: ``relative``, by the mean
    ratio to the baseline, in per cent more or less, or by the mean difference.  Otherwise as for
    :func:`heat_map`; a ratio that divides by zero is refused.
    """
    table, grid = _selected(table, x, y, levels, labels)
    rows = table.differences(measure, of, baseline, ratio=relative, level=level)
    others = [competitor for competitor in table.levels(of) if str(competitor) != str(baseline)]
    column, none, unit = ("ratio", 1.0, 100.0) if relative else ("difference", 0.0, 1.0)
    cells_of = {}
    for competitor in others:
        part, title = rows[[str(level_of(value)) == str(competitor) for value in rows[of]]], shown_value(competitor)
        _require_one_point(part, x, y, title)
        numbers = (grid.array(part, column) - none) * unit, grid.array(part, "half") * unit
        cells_of[title] = (*numbers, grid.array(part, "significant") == 1)
    largest = max((float(np.nanmax(np.abs(cells), initial=0.0)) for cells, *_ in cells_of.values()), default=0.0) or 1.0
    scale, colours = Normalize(-largest, largest), colormaps["PuOr_r"]
    versus = f"relative to {shown_value(baseline)}" if relative else f"- {shown_value(baseline)}"
    figure, drawn = grid.figure([f"{title} {versus}" for title in cells_of])
    handles: dict[str, Any] = {f"not significant ({level:.0%})": Patch(facecolor="white", edgecolor="0.35", hatch=_HATCH)}
    for axes, (cells, halves, significant) in zip(drawn, cells_of.values(), strict=True):
        hatched = ~significant
        mesh = _draw_cells(axes, cells, cells, colours, scale, _signed, hatched)
        for down, across in np.argwhere(np.isfinite(cells) & hatched):
            _tile(axes, (across, down), facecolor="none", edgecolor="0.45", hatch=_HATCH, linewidth=0)
        if is_numeric(grid.across) and is_numeric(grid.down) and _draw_boundary(axes, cells, halves):
            handles["limit of significance, interpolated"] = Line2D([], [], color="black", linewidth=1.6)
    name = labels.get(measure) or axis_label(measure)
    label = f"{name}, relative to {shown_value(baseline)}, %" if relative else f"{name}, difference"
    figure.colorbar(mesh, ax=drawn, label=fill(label, 44, break_on_hyphens=False), shrink=0.9)
    legend_below(figure, handles)
    return figure


def winners(
    table: StudyTable, measure: str, *, x: str, y: str, of: str = "policy", level: float = statistics.LEVEL,
    labels: Labels = _NO_LABELS, **levels: Label,
) -> Figure:  # fmt: skip
    """Return a map of which level of the factor ``of`` has the lowest mean of a measure over two other factors.

    Cells in which the paired difference of another level from the lowest is not significant, at the confidence ``level``, are
    hatched in the colours of the tied levels.  Where one level is the lowest in all cells, the title says that nothing turns.
    The other arguments, and errors, are those of :func:`heat_map`.
    """
    if of in (x, y):
        raise SpecificationError(f"{'x' if of == x else 'y'}: {quoted(of)} is the factor compared; it must be another one")
    table, grid = _selected(table, x, y, levels, labels)
    rows = table.lowest(measure, of, level=level)
    _require_one_point(rows, x, y, of)
    styles = policy_styles([str(competitor) for competitor in table.levels(of)], distinct=True)
    figure, (axes,) = grid.figure([""])
    handles: dict[str, Any] = {name: Patch(facecolor=style.colour) for name, style in styles.items()}
    for row in rows.to_dict("records"):
        place, colour = grid.place(row), styles[str(row["lowest"])].colour
        tied = [name for name in row["tied"].split(", ") if name]
        _tile(axes, place, facecolor=colour, edgecolor="white")
        if tied:
            other = styles[tied[0]].colour if tied[0] in styles else "white"
            _tile(axes, place, facecolor="none", edgecolor=other, hatch=_HATCH, linewidth=0)
        box = {"facecolor": colour, "edgecolor": "none", "pad": 1.5} if tied else None
        axes.text(*place, _number(row[measure]), ha="center", va="center", color=ink(colour), fontsize="small", bbox=box)
    handles["tied: the difference is not significant"] = Patch(facecolor="white", edgecolor="0.35", hatch=_HATCH)
    name, (first, *others) = labels.get(measure) or axis_label(measure), rows["lowest"].unique().tolist()
    nothing_turns = f"\nno crossing: {shown_value(first)} in all cells"
    axes.set_title(f"lowest {name}" + ("" if others or rows["tied"].any() else nothing_turns), fontsize="medium")
    legend_below(figure, handles, title=labels.get(of) or factor_label(of))
    return figure


class _Grid(NamedTuple):
    """The two factors of a map, and their levels along the axes."""

    x: str
    y: str
    across: list[Label]
    down: list[Label]
    labels: Labels

    def place(self, row: Mapping[Any, Any]) -> tuple[int, int]:
        return self.across.index(level_of(row[self.x])), self.down.index(level_of(row[self.y]))

    def array(self, rows: pd.DataFrame, column: str) -> FloatArray:
        """Return a column of a table of points, shape ``(down, across)``; ``nan`` where there is no point."""
        cells = np.full((len(self.down), len(self.across)), np.nan)
        for row in rows.to_dict("records"):
            cells[self.place(row)[::-1]] = row[column]
        return cells

    def figure(self, titles: Collection[str]) -> tuple[Figure, list[Axes]]:
        """Return a figure with a panel for each title, with the levels along its axes."""
        columns = min(len(titles), 3)
        rows = -(-len(titles) // columns)
        width, height = (max(2.2, 0.7 + 0.62 * len(levels)) for levels in (self.across, self.down))
        size = 1.9 + width * columns, 0.7 + (height * 0.8 + 0.3) * rows
        figure, panels = new_figure(*size, rows, columns, squeeze=False, sharex=True, sharey=True)
        for axes in panels.flat[len(titles) :]:
            axes.remove()
        names = [shown_value(level) for level in self.across]
        slant = {"rotation": 30, "ha": "right"} if max(map(len, names)) > 6 else {}
        for number, (axes, title) in enumerate(zip(panels.flat, titles, strict=False)):
            lowest = number + columns >= len(titles)
            axes.set(xlim=(-0.5, len(self.across) - 0.5), ylim=(-0.5, len(self.down) - 0.5))
            axes.set_xticks(range(len(self.across)), names, **slant)
            axes.set_yticks(range(len(self.down)), [shown_value(level) for level in self.down])
            axes.tick_params(length=0, labelbottom=lowest)
            axes.set_title(title, fontsize="medium")
            axes.set_xlabel((self.labels.get(self.x) or factor_label(self.x)) if lowest else "")
            axes.set_ylabel("" if number % columns else self.labels.get(self.y) or factor_label(self.y))
        return figure, list(panels.flat[: len(titles)])


def _selected(table: StudyTable, x: str, y: str, levels: Mapping[str, Label], labels: Labels) -> tuple[StudyTable, _Grid]:
    """Return the trials that have these levels, and the cells of their map; numeric levels ascend along an axis."""
    table = table.at(**levels) if levels else table
    if x == y:
        raise SpecificationError(f"y: {quoted(y)} is not allowed; a map has two different factors")
    axes: Any = [table.levels(name) for name in (x, y)]
    across, down = (sorted(along) if is_numeric(along) else along for along in axes)
    return table, _Grid(x, y, across, down, labels)


def _require_one_point(rows: pd.DataFrame, x: str, y: str, of: str) -> None:
    if not {x, y} <= set(rows) or rows.duplicated([x, y]).any():
        raise SpecificationError(
            f"x, y: {quoted(x)}, {quoted(y)} are not allowed; a cell of {of} must be one point with several levels of both: "
            "choose levels of the other factors"
        )


def is_numeric(levels: Sequence[Label]) -> bool:
    """Return whether levels are numbers, which have a scale; a single one has none."""
    return len(levels) > 1 and all(isinstance(level, int | float) and not isinstance(level, bool) for level in levels)


def _panel_title(factor: str, level: Label) -> str:
    """Return the title of a panel, which names the factor also where the level is a text."""
    return f"{factor_label(factor)} {shown_value(level)}" if isinstance(level, str) else level_title(factor, level)


def _tile(axes: Axes, place: tuple[int, int], **look: Any) -> None:
    axes.add_patch(Rectangle((place[0] - 0.5, place[1] - 0.5), 1, 1, **look))


def _draw_cells(
    axes: Axes, cells: FloatArray, coloured: FloatArray, colours: Colormap, scale: Normalize, text: Any, hatched: Any = None
) -> Any:
    """Draw coloured cells with their numbers, on a box of the cell's colour where the cell is hatched; return the mesh."""
    edges = (np.arange(cells.shape[1] + 1) - 0.5, np.arange(cells.shape[0] + 1) - 0.5)
    shown = np.ma.masked_invalid(coloured)
    mesh = axes.pcolormesh(*edges, shown, cmap=colours, norm=scale, edgecolors="white", linewidth=0.6)
    for (down, across), value in np.ndenumerate(cells):
        if np.isfinite(value):
            colour = colours(float(scale(coloured[down, across])))
            boxed = hatched is not None and hatched[down, across]
            box = {"facecolor": colour, "edgecolor": "none", "pad": 1.2} if boxed else None
            axes.text(across, down, text(value), ha="center", va="center", color=ink(colour), fontsize="small", bbox=box)
    return mesh


def _draw_boundary(axes: Axes, cells: FloatArray, halves: FloatArray) -> bool:
    """Draw the line between significant and other differences, interpolated between cells; return whether there is any."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(halves > 0, cells / halves, np.where(cells == 0, 0.0, np.sign(cells) * np.inf))
    ratio = np.ma.masked_invalid(np.clip(ratio, -_BEYOND, _BEYOND))
    if ratio.count() > 1 and (np.abs(ratio) > 1).any() and (np.abs(ratio) <= 1).any():
        bounds = [bound for bound in (-1.0, 1.0) if ratio.min() < bound < ratio.max()]
        axes.contour(ratio, levels=bounds, colors="black", linewidths=1.6, linestyles="-")
        return bool(bounds)
    return False


def _number(value: float) -> str:
    if value != 0 and (abs(value) >= 1e6 or abs(value) < 1e-3):
        return f"{value:.1e}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _signed(value: float) -> str:
    return f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.2g}" if abs(value) < 10 else f"{value:+.0f}"
