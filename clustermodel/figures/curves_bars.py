"""Figures of studies: curves, bars and improvements with their confidence intervals, from a table with a row for each run.

The table is that of :meth:`Store.results() <clustermodel.experiment.store.Store.results>`, or any other with factors, which
identify the runs, ``replication`` among them, and numbers.  Means are over replications, intervals are Student's t
(:func:`clustermodel.statistics.interval`); a single replication has no interval.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from math import nan
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from pandas.api.types import is_bool_dtype, is_numeric_dtype, is_scalar

from clustermodel import statistics
from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError, did_you_mean, quoted
from clustermodel.figures.style import Style, axis_label, factor_label, legend_below, new_figure, plain, policy_styles
from clustermodel.measure.metrics import QUANTITIES
from clustermodel.measure.quantities import Quantity, named

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result

REPLICATION: Final = "replication"  # the column; a table without it has one run for each point
_ZERO: Final[dict[str, Any]] = {"color": "0.4", "linewidth": 0.8}


def curves(
    table: pd.DataFrame, *, y: str | Sequence[str], x: str = "utilization", at: str | None = None, by: str = "policy",
    panels: str | None = None, log: bool | Collection[str] = False, bands: bool | Collection[str] = True, share_y: bool = True,
    level: float = statistics.LEVEL,
) -> Figure:  # fmt: skip
    """Return a figure of curves: means over replications, with a band for the confidence interval.

    Args:
        table: a row for each run.
        y: the column to show, or several, one for each panel.
        x: the column along the axis: a factor, or an outcome such as ``"utilization"``, of which the mean is taken.
        at: the factor that distinguishes the points of a curve; by default ``"workload"`` if ``x`` is an outcome, else ``x``.
            Points are joined from left to right, or if ``x`` is an outcome and this factor numeric, in the order of the factor:
            a curve may turn back, as a saturated policy uses no more of the machine at a higher load.
        by: the factor that distinguishes the curves.
        panels: a factor with a panel for each of its values; each of ``y`` then has a row of panels.
        log: use logarithmic vertical axes, for all or these columns; zero is drawn at the lower end.
        bands: draw bands, for all or these curves.
        share_y: use the same vertical axis for the panels of a row.
        level: confidence level of the bands.

    Raises:
        SpecificationError: a column is missing or has a value that is no finite number, rows are the same replication of the
            same point, ``log`` or ``bands`` names what is not drawn, or a logarithmic axis has no value above zero.
    """
    columns, at = _checked(table, y, x, at, by, panels)
    text = next((value for value in table[x].tolist() if isinstance(value, str)), None)
    if text is not None and pd.to_numeric(table[x], errors="coerce").isna().any():
        raise SpecificationError(
            f"x: {x!r} has texts, such as {quoted(text)}, and curves need numbers along the axis; bars(x={x!r}) draws texts"
        )
    points = _points_of(table, [*columns, x], by, at, panels)
    styles = policy_styles([point.of for point in points])
    banded, scaled = _chosen("bands", bands, styles), _chosen("log", log, columns)
    return _Drawing(points, columns, styles, by, level, scaled, share_y).curves(x, at, banded)


def bars(
    table: pd.DataFrame, *, y: str | Sequence[str], x: str | None = None, by: str = "policy", panels: str | None = None,
    log: bool | Collection[str] = False, share_y: bool = True, level: float = statistics.LEVEL,
) -> Figure:  # fmt: skip
    """Return a figure of bars: means over replications, with lines for the confidence interval.

    Arguments and errors are those of :func:`curves`; ``x`` is the factor that distinguishes groups of bars, such as a workload
    or a class of jobs (by default there is one group), and ``by`` distinguishes the bars of a group.
    """
    columns, _ = _checked(table, y, x, x, by, panels)
    points = _points_of(table, columns, by, x, panels)
    styles, scaled = policy_styles([point.of for point in points]), _chosen("log", log, columns)
    return _Drawing(points, columns, styles, by, level, scaled, share_y).bars(x)


def improvements(
    table: pd.DataFrame, *, y: str | Sequence[str], baseline: object, x: str | None = None, at: str | None = None,
    by: str = "policy", panels: str | None = None, level: float = statistics.LEVEL,
) -> Figure:  # fmt: skip
    """Return a figure of improvements: how much smaller numbers are than a baseline's, in per cent, paired by replication.

    With common random numbers the variation that two policies share cancels, so the intervals are far narrower than those of
    the numbers themselves.  Arguments and errors are those of :func:`curves` and, within each panel, of
    :func:`~clustermodel.figures.curves_bars.improved`.  An outcome or a numeric factor ``x`` makes curves, others make bars.
    """
    columns, at = _checked(table, y, x, at, by, panels)
    parts = _parts_of(table, panels).values()
    compared = pd.concat([improved(part, y=columns, baseline=baseline, at=at, by=by) for part in parts], ignore_index=True)
    names = [_improvement_label(column, baseline) for column in columns]
    styles = policy_styles(list(map(level_text, table[by].unique())))
    del styles[level_text(baseline)]
    if x is not None and is_numeric_dtype(table[x]):
        points = _points_of(compared, [*names, x], by, at, panels)
        figure = _Drawing(points, names, styles, by, level).curves(x, at, styles)
    else:
        points = _points_of(compared, names, by, x, panels)
        figure = _Drawing(points, names, styles, by, level).bars(x)
    for axes in figure.axes:
        axes.axhline(0, **_ZERO)
    return figure


def improved(
    table: pd.DataFrame, *, y: str | Sequence[str], baseline: object, at: str | None = None, by: str = "policy"
) -> pd.DataFrame:
    """Return how much smaller numbers are than a baseline's, in per cent: the rows of all others, a column for each ``y``.

    The columns have the names that are their labels in figures.  A run is compared with the baseline's run of the same
    replication, or with its only run, within the factor ``at``, such as the workload.  An improvement is negative if the number
    is larger than the baseline's, and 0 % if both are 0.  ``baseline`` is a value of the factor ``by``.

    Raises:
        SpecificationError: the baseline is missing, or 0 where another number is not, or the replications do not match.
    """
    (columns, _), baseline = _checked(table, y, None, at, by), level_text(baseline)
    points = _points_of(table, columns, by, at)
    known = list(dict.fromkeys(point.of for point in points))
    if baseline not in known:
        raise SpecificationError(
            f"baseline: {baseline!r} is no {by}{did_you_mean(baseline, known)}; there are {', '.join(known)}"
        )
    if len(known) == 1:
        raise SpecificationError(f"baseline: {baseline!r} is the only {by}; there is nothing to compare with it")
    of_baseline = {point.at: point.values for point in points if point.of == baseline}
    parts = []
    for point in points:
        if point.of == baseline:
            continue
        where = f"{by} {point.of!r}" + (f", {at} {_shown_cell(point.at)}" if at else "")
        if point.at not in of_baseline:
            raise SpecificationError(f"baseline: {baseline!r} has no run to compare with {where}")
        base, new = of_baseline[point.at], point.values.copy()
        if len(base) > 1 and set(base.index) != set(new.index):
            raise SpecificationError(f"baseline: {baseline!r} and {where} have different replications")
        base = base.loc[new.index if len(base) > 1 else base.index.repeat(len(new))]
        for column in columns:
            old, now = (rows[column].to_numpy(dtype=float) for rows in (base, new))
            if ((old == 0) & (now != 0)).any():
                raise SpecificationError(f"baseline: {column} of {baseline!r} is 0, so {where} has no ratio to it")
            ratio = np.divide(now, old, out=np.ones_like(now), where=old != now)
            new[_improvement_label(column, baseline)] = 100 * (1 - ratio)
        parts.append(new)
    return pd.concat(parts, ignore_index=True)


def _improvement_label(column: str, baseline: object) -> str:
    name = (QUANTITIES.get(column) or named(column)).name
    return Quantity(name, "%").label(f"less than with {baseline}")


class Point(NamedTuple):
    """The replications of one configuration."""

    panel: str
    of: str  # the curve, or the colour of bars
    at: object  # what distinguishes the points of a curve
    values: pd.DataFrame  # the numbers, by replication

    def interval(self, column: str, level: float) -> tuple[float, float]:
        """Return the mean of a column and half the width of its confidence interval, ``nan`` for a single replication."""
        values = self.values[column].to_numpy(dtype=float)
        if len(values) == 1:
            return float(values[0]), nan
        interval = statistics.interval(values, level)
        return interval.mean, interval.half


def _parts_of(table: pd.DataFrame, panels: str | None) -> dict[str, pd.DataFrame]:
    """Return the rows of each panel, by its title."""
    if panels is None:
        return {"": table}
    return {shown_value(value): rows for value, rows in table.groupby(panels, sort=False, dropna=False)}


def _points_of(table: pd.DataFrame, numbers: Sequence[str], by: str, at: str | None, panels: str | None = None) -> list[Point]:
    """Return the points of a table, in its order, after a check of all their numbers."""
    factors, parts = [by] if at is None else [by, at], _parts_of(table, panels)

    def where(cells: Sequence[object]) -> str:
        return ", ".join(f"{factor} {_shown_cell(value)}" for factor, value in zip(factors, cells, strict=True))

    for column in numbers:
        cells = table[column]
        if not is_numeric_dtype(cells) or is_bool_dtype(cells):
            cells = pd.to_numeric(cells.astype(object), errors="coerce")
        wrong = ~np.isfinite(cells.to_numpy(dtype=float, na_value=nan))
        if wrong.any():
            row = table.iloc[int(np.flatnonzero(wrong)[0])]
            raise SpecificationError(
                f"table: {column}: {_shown_cell(row[column])} of {where(row[factors].tolist())} is not allowed; "
                "it must be a finite number"
            )
    points = []
    groups = ((title, group) for title, part in parts.items() for group in part.groupby(factors, sort=False, dropna=False))
    for title, (place, rows) in groups:
        replication = rows[REPLICATION] if REPLICATION in table else pd.Series(1, index=rows.index)
        if replication.duplicated().any():
            raise SpecificationError(
                f"table: {len(rows)} rows have {where(place)}, and some of them the same replication; choose rows, "
                "or name in by, x or at what tells them apart"
            )
        values = rows.set_index(replication.rename(None))
        if "run" in values:  # replications that are the same run count once
            values = values[~values["run"].duplicated().to_numpy()]
        points.append(Point(title, level_text(place[0]), None if at is None else level_of(place[1]), values))
    return points


def level_of(value: Any) -> Any:
    """Return a cell of a factor's column as its level: pandas turns ``None`` among numbers into ``nan``."""
    level = value.item() if isinstance(value, np.generic) else value
    return None if is_scalar(level) and pd.isna(level) else level


def level_text(value: Any) -> str:
    """Return the whole text of a level; whole numbers are without the ``.0`` that pandas gives them beside ``None``."""
    level = level_of(value)
    return str(level).removesuffix(".0") if isinstance(level, float) else str(level)


def shown_value(value: object) -> str:
    """Return the text of a factor's value in a figure."""
    level = level_of(value)
    return f"{level:g}" if isinstance(level, float) else plain(level)


def _shown_cell(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)


# Checks of arguments.


def _checked(
    table: pd.DataFrame, y: str | Sequence[str], x: str | None, at: str | None, by: str, panels: str | None = None
) -> tuple[list[str], str | None]:
    """Return the columns to show and the factor that distinguishes the points of a curve, after a check of all columns."""
    columns = [y] if isinstance(y, str) or not isinstance(y, Sequence) else list(y)
    if not columns:
        raise SpecificationError("y: no column is given")
    if wrong := [column for column in columns if not isinstance(column, str)]:
        raise SpecificationError(f"y: {wrong[0]!r} is not allowed; it must be the name of a column, or several")
    for field, name in (("x", x), ("at", at), ("by", by), ("panels", panels)):
        if not isinstance(name, str) and (name is not None or field == "by"):
            second = "; panels takes a second factor" if field == "by" else ""
            raise SpecificationError(f"{field}: {quoted(name)} is not allowed; it must be the name of one column{second}")
    if not isinstance(table, pd.DataFrame):
        raise SpecificationError(
            f"table: {type(table).__name__} is not allowed; it must be a pandas DataFrame, a row for each run"
        )
    if table.empty:
        raise SpecificationError("table: it has no rows; there is nothing to draw")
    there = [str(column) for column in table.columns]
    at = at or ("workload" if x in QUANTITIES else x)
    for column in filter(None, (x, at, by, panels, *columns)):
        if column not in there:
            raise SpecificationError(
                f"table: column {column!r} is not there{did_you_mean(column, there)}; there are {', '.join(there)}"
            )
        if there.count(column) > 1:
            raise SpecificationError(f"table: column {column!r} is there {there.count(column)} times")
    return columns, at


def _chosen(field: str, given: bool | Collection[object], there: Collection[str]) -> set[str]:
    """Return the names that an argument chooses that says all, none, one or several; refuse others."""
    if isinstance(given, bool):
        return set(there) if given else set()
    if not isinstance(given, Collection):
        raise SpecificationError(f"{field}: {quoted(given)} is not allowed; it must be True, False, a name or several")
    names = [given] if isinstance(given, str) else list(map(level_text, given))
    for name in names:
        if name not in there:
            raise SpecificationError(
                f"{field}: {quoted(name)} is not drawn{did_you_mean(name, there)}; there are {', '.join(there)}"
            )
    return set(names)


class _Drawing(NamedTuple):
    """A figure of points with a panel for each column and each title."""

    points: Sequence[Point]
    columns: Sequence[str]
    styles: Mapping[str, Style]  # by what distinguishes curves, or the bars of a group
    by: str
    level: float
    log: Collection[str] = ()
    share_y: bool = True

    def curves(self, x: str, at: str | None, banded: Collection[str]) -> Figure:
        figure, panels = self._panels()
        handles: dict[str, Any] = dict.fromkeys(self.styles)
        for axes, label, style, points, *numbers in self._series(panels):
            places = np.array([point.interval(x, self.level)[0] for point in points])
            along = pd.Series([point.at for point in points])
            joined = (along if x in QUANTITIES and is_numeric_dtype(along) else pd.Series(places)).argsort()
            places, mean, half = (values[joined] for values in (places, *numbers))
            look: dict[str, Any] = {"linestyle": style.line, "marker": style.marker, "markersize": 4, "linewidth": 1.4}
            (handles[label],) = axes.plot(places, mean, color=style.colour, **look)
            if label in banded and not np.isnan(half).all():
                half = np.nan_to_num(half)
                band = axes.fill_between(places, mean - half, mean + half, color=style.colour, alpha=0.15, linewidth=0)
                handles[label] = handles[label], band
        self._finish(panels, factor_label(x) if x == at else axis_label(x))
        legend_below(figure, handles, title=factor_label(self.by))
        return figure

    def bars(self, x: str | None) -> Figure:
        figure, panels = self._panels()
        handles: dict[str, Any] = dict.fromkeys(self.styles)
        width, tallest = 0.8 / len(self.styles), 0.0
        groups = {
            title: list(dict.fromkeys(point.at for point in self.points if point.panel == title)) for _, title, _ in panels
        }
        for axes, label, style, points, mean, half in self._series(panels):
            beside = (list(self.styles).index(label) - (len(self.styles) - 1) / 2) * width
            places = [groups[point.panel].index(point.at) + beside for point in points]
            look: dict[str, Any] = {"color": style.colour, "hatch": style.hatch, "edgecolor": "white", "linewidth": 0}
            lines = {"ecolor": "0.25", "elinewidth": 1, "capsize": 2}
            handles[label] = axes.bar(places, mean, 0.92 * width, yerr=half, error_kw=lines, **look)
        for _, title, axes in panels:
            names = [""] if x is None else [shown_value(group) for group in groups[title]]
            slant: dict[str, Any] = {}
            if sum(map(len, names)) > 60 / min(len(panels), 3):  # characters
                slant, tallest = {"rotation": 25, "ha": "right"}, max(tallest, 0.035 * max(map(len, names)))
            axes.set_xticks(range(len(names)), names, rotation_mode="anchor", **slant)
            axes.tick_params(axis="x", length=0)
            axes.set_xlim(-0.5, len(names) - 0.5)
            axes.axhline(0, **_ZERO)
        self._finish(panels, "" if x is None else factor_label(x))
        figure.set_figheight(figure.get_figheight() + tallest)
        legend_below(figure, handles, title=factor_label(self.by))
        return figure

    def _series(
        self, panels: Sequence[tuple[str, str, Axes]]
    ) -> Iterator[tuple[Axes, str, Style, list[Point], FloatArray, FloatArray]]:
        """Yield the points of each curve, or of the bars of one colour, in each panel, with their means and half-widths."""
        for (column, title, axes), (label, style) in product(panels, self.styles.items()):
            points = [point for point in self.points if (point.panel, point.of) == (title, label)]
            if points:
                mean, half = np.array([point.interval(column, self.level) for point in points]).T
                yield axes, label, style, points, mean, half

    def _panels(self) -> tuple[Figure, list[tuple[str, str, Axes]]]:
        """Return a figure, and column, title and axes of each panel."""
        titles = list(dict.fromkeys(point.panel for point in self.points))
        one_row, count = len(titles) == 1, len(self.columns)
        across = min(count, 3) if one_row else len(titles)
        down = -(-count // across) if one_row else count
        size = 1.6 + (4.2 if across < 3 else 3.4) * across, 3.6 if down == 1 else 3.1 * down
        shared = "row" if self.share_y and not one_row else False
        figure, grid = new_figure(*size, down, across, squeeze=False, sharey=shared)
        for axes in grid.flat[count * len(titles) :]:
            axes.remove()
        return figure, [(*place, axes) for place, axes in zip(product(self.columns, titles), grid.flat, strict=False)]

    def _finish(self, panels: Sequence[tuple[str, str, Axes]], x: str) -> None:
        """Label the axes and panels, and scale the axes."""
        (first, left, _), (last, right, _) = panels[0], panels[-1]
        several = left != right
        for column, title, axes in panels:
            axes.set_xlabel(x if not several or column == last else "")
            axes.set_ylabel("" if several and title != left else fill(axis_label(column), 28, break_on_hyphens=False))
            if several and column == first:
                axes.set_title(title, fontsize="medium")
            axes.grid(alpha=0.25, which="both", linewidth=0.5)
            axes.set_axisbelow(True)
        for column in dict.fromkeys(self.columns):
            of_column = [axes for name, _, axes in panels if name == column]
            means = [float(point.values[column].astype(float).mean()) for point in self.points]
            if column in self.log:
                _use_log_scale(column, of_column, means)
            elif column in QUANTITIES and min(means) >= 0 and all(axes.get_ylim()[0] < 0 for axes in of_column):
                for axes in of_column:
                    axes.set_ylim(bottom=0)  # intervals may include impossible negative numbers; improvements may be negative


def _use_log_scale(column: str, panels: Sequence[Axes], means: Sequence[float]) -> None:
    """Scale vertical axes logarithmically from half of the lowest mean on; bands may reach below it."""
    lowest = min((mean for mean in means if mean > 0), default=0.0)
    if not lowest:
        raise SpecificationError(f"log: {column} is nowhere above zero, so that its axis cannot be logarithmic")
    for axes in panels:
        axes.set_yscale("log", nonpositive="clip")
        axes.set_ylim(bottom=lowest / 2)
        low, high = axes.get_ylim()
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 200 else (1.0,)))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
        axes.yaxis.set_minor_formatter("")


def by_size(results: Sequence[Result]) -> pd.DataFrame:
    """Return a table of small and large jobs (Zhang et al. 2003, section 2.2: of more than 32 nodes), two rows for each run.

    Columns are policy, workload, replication (the seed), size, utilization, and means of wait, response and bounded slowdown.
    """
    rows = []
    for result in results:
        scenario, means = result.scenario, result.by_class()["mean"]
        run = {"policy": scenario.label, "workload": scenario.workload_name, REPLICATION: scenario.seed}
        for size in ("small", "large"):
            of_size = {f"mean_{name}": float(means[size, name]) for name in ("wait_s", "response_s", "bounded_slowdown")}
            rows.append({**run, "size": size, "utilization": result.ledger.utilization, **of_size})
    return pd.DataFrame(rows)
