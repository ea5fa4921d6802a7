"""Figures of studies: curves, bars and improvements with their confidence intervals, from a table with a row for each run.

The table is what :meth:`Store.results() <clustermodel.study.store.Store.results>` returns, or any other with such columns:
factors, which tell the runs apart, ``replication`` among them, and numbers.  Means are over replications, intervals are
Student's t (:func:`clustermodel.study.statistics.interval`); a single replication has none.

Responsible for what is drawn of which rows; :mod:`clustermodel.report.style` says how policies look,
:mod:`clustermodel.report.quantities` what numbers are called, :mod:`clustermodel.report.plots` draws single runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from clustermodel.errors import SpecificationError, did_you_mean
from clustermodel.report.quantities import QUANTITIES, Quantity, axis_label
from clustermodel.report.style import Style, legend_below, plain, policy_styles
from clustermodel.study import statistics
from clustermodel.study.scenario import Result

FloatArray = npt.NDArray[np.float64]

REPLICATION: Final = "replication"
"""The column that tells the replications of a point apart; a table without it has one run for each point."""
_BAND: Final = 0.15
"""Opacity of the interval around a curve."""
_CROWDED: Final = 60
"""Characters under an axis above which they are written at a slant."""


class _Point(NamedTuple):
    """The replications of one configuration."""

    of: str
    """What it belongs to: a curve, or a colour of bars."""
    at: object
    values: pd.DataFrame
    """By replication."""


def curves(
    table: pd.DataFrame,
    *,
    y: str | Sequence[str],
    x: str = "utilization",
    at: str | None = None,
    by: str = "policy",
    log: bool = False,
    level: float = statistics.LEVEL,
) -> Figure:
    """Return a figure of curves: means over replications, with a band for the confidence interval.

    Args:
        table: a row for each run.
        y: the column to show, or several, one for each panel.
        x: the column along the axis: an outcome, such as ``"utilization"``, of which the mean is taken, or a factor.
        at: the factor that tells the points of a curve apart; by default ``"workload"`` if ``x`` is an outcome, else ``x``.
        by: the factor that tells the curves apart.
        log: scale the vertical axes logarithmically; what is not above zero lies at their lower ends.
        level: confidence level of the bands.

    Raises:
        SpecificationError: the table has no rows or lacks a column, a column is not of finite numbers, or several rows are the
            same replication of the same point.
    """
    columns = _columns("y", y)
    at = at or ("workload" if x in QUANTITIES else x)
    points = _points(table, [*columns, x], by, at)
    return _curves(points, columns, x, by, policy_styles(_distinct(points)), log=log, level=level)


def _curves(
    points: Sequence[_Point], columns: Sequence[str], x: str, by: str, styles: Mapping[str, Style], *, log: bool, level: float
) -> Figure:
    figure, panels = _panels(len(columns))
    handles: dict[str, Any] = {}
    for axes, column in zip(panels, columns, strict=True):
        for label, style in styles.items():
            found = [(_mean(one.values[x]), _interval(one.values[column], level)) for one in points if one.of == label]
            handles[label] = _draw_curve(axes, sorted(found), style)
        _label(axes, axis_label(x), axis_label(column), log=log)
    legend_below(figure, handles, title=axis_label(by))
    return figure


def bars(
    table: pd.DataFrame,
    *,
    y: str | Sequence[str],
    x: str | None = None,
    by: str = "policy",
    log: bool = False,
    level: float = statistics.LEVEL,
) -> Figure:
    """Return a figure of bars: means over replications, with lines for the confidence interval.

    Args:
        table: a row for each run.
        y: the column to show, or several, one for each panel.
        x: the factor that tells groups of bars apart, such as a workload or a class of jobs; by default there is one group.
        by: the factor that tells the bars of a group apart.
        log: scale the vertical axes logarithmically.
        level: confidence level of the intervals.

    Raises:
        SpecificationError: as for :func:`curves`.
    """
    columns = _columns("y", y)
    points = _points(table, columns, by, x)
    return _bars(points, columns, x, by, policy_styles(_distinct(points)), log=log, level=level)


def _bars(
    points: Sequence[_Point],
    columns: Sequence[str],
    x: str | None,
    by: str,
    styles: Mapping[str, Style],
    *,
    log: bool,
    level: float,
) -> Figure:
    figure, panels = _panels(len(columns))
    groups = list(dict.fromkeys(one.at for one in points))
    handles: dict[str, Any] = {}
    for axes, column in zip(panels, columns, strict=True):
        for number, (label, style) in enumerate(styles.items()):
            found = {one.at: _interval(one.values[column], level) for one in points if one.of == label}
            width = 0.8 / len(styles)
            places = np.array([groups.index(group) for group in found]) + (number - (len(styles) - 1) / 2) * width
            handles[label] = _draw_bars(axes, places, list(found.values()), width, style)
        _label(axes, "" if x is None else axis_label(x), axis_label(column), log=log)
        names = [""] if x is None else [_shown(group) for group in groups]
        slanted = sum(map(len, names)) > _CROWDED / len(columns)
        axes.set_xticks(
            range(len(groups)),
            names,
            rotation=25 if slanted else 0,
            ha="right" if slanted else "center",
            rotation_mode="anchor",
        )
        axes.tick_params(axis="x", length=0)
        axes.set_xlim(-0.5, len(groups) - 0.5)
        axes.axhline(0, color="0.4", linewidth=0.8)
    legend_below(figure, handles, title=axis_label(by))
    return figure


def improvements(
    table: pd.DataFrame,
    *,
    y: str | Sequence[str],
    baseline: str,
    x: str | None = None,
    at: str | None = None,
    by: str = "policy",
    level: float = statistics.LEVEL,
) -> Figure:
    """Return a figure of how much smaller numbers are than those of a baseline, in per cent, replication by replication.

    With common random numbers what two policies share cancels, and the intervals are far narrower than those of the numbers
    themselves.  See :func:`improved`, which makes the numbers.

    Args:
        table: a row for each run.
        y: the column to show, or several, one for each panel.
        baseline: the policy with which the others are compared, a value of ``by``.
        x: the column along the axis.  An outcome or a factor of numbers makes curves, another factor makes groups of bars; by
            default there is one group.
        at: as for :func:`curves`.
        by: the factor that tells the curves or bars apart.
        level: confidence level of the intervals.

    Raises:
        SpecificationError: as for :func:`curves` and :func:`improved`.
    """
    columns = _columns("y", y)
    if x is not None:
        at = at or ("workload" if x in QUANTITIES else x)
        _require(table, [x])
    found = improved(table, y=columns, baseline=baseline, at=at, by=by)
    names = [_improvement(column, baseline) for column in columns]
    styles = {label: style for label, style in policy_styles(list(map(str, table[by].unique()))).items() if label != baseline}
    if x is not None and is_numeric_dtype(table[x]):
        figure = _curves(_points(found, [*names, x], by, at), names, x, by, styles, log=False, level=level)
    else:
        figure = _bars(_points(found, names, by, x), names, x, by, styles, log=False, level=level)
    for axes in figure.axes:
        axes.axhline(0, color="0.4", linewidth=0.8)
    return figure


def improved(
    table: pd.DataFrame, *, y: str | Sequence[str], baseline: str, at: str | None = None, by: str = "policy"
) -> pd.DataFrame:
    """Return a table with columns that say how much smaller numbers are than those of a baseline, in per cent.

    A run is compared with the run of the baseline that has the same replication, or, if the baseline ran once, with that run.
    Negative numbers are larger than the baseline's; where both are 0 it is 0 %.

    Args:
        table: a row for each run.
        y: the column to compare, or several.
        baseline: with which it is compared, a value of ``by``.
        at: the factor within which runs are compared, such as the workload; by default there is one group.
        by: the factor that has ``baseline``.

    Returns:
        The rows of all but the baseline, with a column for each of ``y``; its name says what it is, and figures show it.

    Raises:
        SpecificationError: the baseline is not there or is 0 where another is not, or the replications do not match.
    """
    columns = _columns("y", y)
    points = _points(table, columns, by, at)
    known = _distinct(points)
    if baseline not in known:
        raise SpecificationError(
            f"baseline: {baseline!r} is no {by}{did_you_mean(baseline, known)}; there are {', '.join(known)}"
        )
    before = {one.at: one.values for one in points if one.of == baseline}
    parts = []
    for one in points:
        if one.of == baseline:
            continue
        where = f"{by} {one.of!r}" + (f", {at} {_given(one.at)}" if at else "")
        if one.at not in before:
            raise SpecificationError(f"baseline: {baseline!r} has no run to compare with {where}")
        base, new = before[one.at], one.values.copy()
        if len(base) > 1 and set(base.index) != set(new.index):
            raise SpecificationError(f"baseline: {baseline!r} and {where} have different replications")
        for column in columns:
            old = base[column].to_numpy(dtype=float)
            old = old.repeat(len(new)) if len(base) == 1 else base[column].reindex(new.index).to_numpy(dtype=float)
            now = new[column].to_numpy(dtype=float)
            if ((old == 0) & (now != 0)).any():
                raise SpecificationError(f"baseline: {column} of {baseline!r} is 0, so {where} has no ratio to it")
            new[_improvement(column, baseline)] = 100 * (1 - np.where(old == now, 1.0, now / np.where(old == now, 1.0, old)))
        parts.append(new)
    return pd.concat(parts).reset_index(drop=True) if parts else table.iloc[:0]


def by_size(results: Sequence[Result]) -> pd.DataFrame:
    """Return a table of small and large jobs (002, section 2.2: of more than 32 nodes), two rows for each run.

    Args:
        results: the runs.

    Returns:
        Columns ``policy, workload, replication`` (the seed), ``size`` (``"small"``, ``"large"``), ``utilization``,
        ``mean_wait_s``, ``mean_response_s`` and ``mean_bounded_slowdown``, for :func:`bars` and :func:`curves`.
    """
    rows = []
    for result in results:
        classes, scenario = result.by_class()["mean"], result.scenario
        rows += [
            {
                "policy": scenario.label,
                "workload": scenario.workload_name,
                REPLICATION: scenario.seed,
                "size": size,
                "utilization": result.ledger.utilization,
                **{f"mean_{name}": float(classes[size, name]) for name in ("wait_s", "response_s", "bounded_slowdown")},
            }
            for size in ("small", "large")
        ]
    return pd.DataFrame(rows)


# From rows to points.


def _columns(field: str, given: str | Sequence[str]) -> list[str]:
    columns = [given] if isinstance(given, str) else list(given)
    if not columns:
        raise SpecificationError(f"{field}: no column is given")
    return columns


def _require(table: pd.DataFrame, columns: Sequence[str]) -> None:
    if not isinstance(table, pd.DataFrame):
        raise SpecificationError(
            f"table: {type(table).__name__} is not allowed; it must be a pandas DataFrame, a row for each run"
        )
    if table.empty:
        raise SpecificationError("table: it has no rows; there is nothing to draw")
    there = [str(column) for column in table.columns]
    for column in columns:
        if column not in there:
            raise SpecificationError(
                f"table: column {column!r} is not there{did_you_mean(column, there)}; there are {', '.join(there)}"
            )


def _points(table: pd.DataFrame, numbers: Sequence[str], by: str, at: str | None) -> list[_Point]:
    """Return the points of a table, in its order, after a check of all that is drawn of them.

    Args:
        table: a row for each run.
        numbers: the columns that are drawn.
        by: the factor that becomes :attr:`_Point.of`.
        at: the factor that becomes :attr:`_Point.at`; ``None`` for one point.
    """
    factors = [by] if at is None else [by, at]
    _require(table, [*factors, *numbers])
    for column in numbers:
        _require_finite(table, column, factors)
    points = []
    for place, rows in table.groupby(factors, sort=False, dropna=False):
        replication = rows[REPLICATION] if REPLICATION in table else pd.Series(1, index=rows.index)
        if replication.duplicated().any():
            where = ", ".join(f"{factor} {_given(value)}" for factor, value in zip(factors, place, strict=True))
            raise SpecificationError(
                f"table: {len(rows)} rows have {where}, and some of them the same replication; choose rows, "
                "or name in by, x or at what tells them apart"
            )
        points.append(_Point(str(place[0]), None if at is None else place[1], rows.set_index(replication.rename(None))))
    return points


def _given(value: object) -> str:
    """Write a cell of a table for a message, on one line."""
    return repr(value) if isinstance(value, str) else str(value)


def _require_finite(table: pd.DataFrame, column: str, factors: Sequence[str]) -> None:
    values = table[column]
    if not is_numeric_dtype(values) or is_bool_dtype(values):
        values = pd.to_numeric(values, errors="coerce")
    wrong = ~np.isfinite(values.to_numpy(dtype=float))
    if wrong.any():
        row = table.iloc[int(np.flatnonzero(wrong)[0])]
        where = ", ".join(f"{factor} {_given(row[factor])}" for factor in factors)
        raise SpecificationError(
            f"table: {column}: {_given(row[column])} of {where} is not allowed; it must be a finite number"
        )


def _distinct(points: Sequence[_Point]) -> list[str]:
    return list(dict.fromkeys(one.of for one in points))


def _mean(values: pd.Series) -> float:
    return float(values.astype(float).mean())


def _interval(values: pd.Series, level: float) -> tuple[float, float]:
    """Return the mean and half the width of its interval, ``nan`` for a single value."""
    if len(values) == 1:
        return float(values.iloc[0]), nan
    found = statistics.interval(values.to_numpy(dtype=float), level)
    return found.mean, found.half


# Drawing.


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    across = min(count, 3)
    down = -(-count // across)
    figure = Figure(figsize=(1.6 + 4.2 * across, 3.6 * down), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).flatten()
    for axes in panels[count:]:
        axes.remove()
    return figure, list(panels[:count])


def _draw_curve(axes: Axes, found: Sequence[tuple[float, tuple[float, float]]], style: Style) -> Any:
    x = np.array([place for place, _ in found])
    mean, half = np.array([interval for _, interval in found]).T
    (line,) = axes.plot(x, mean, color=style.colour, linestyle=style.line, marker=style.marker, markersize=4, linewidth=1.4)
    known = ~np.isnan(half)
    if not known.any():
        return line
    low, high = np.where(known, mean - half, mean), np.where(known, mean + half, mean)
    return line, axes.fill_between(x, low, high, color=style.colour, alpha=_BAND, linewidth=0)


def _draw_bars(axes: Axes, places: FloatArray, found: Sequence[tuple[float, float]], width: float, style: Style) -> Any:
    mean, half = np.array(found).T
    drawn = axes.bar(places, mean, 0.92 * width, color=style.colour, hatch=style.hatch, edgecolor="white", linewidth=0)
    known = ~np.isnan(half)
    axes.errorbar(places[known], mean[known], yerr=half[known], fmt="none", ecolor="0.25", elinewidth=1, capsize=2)
    return drawn


def _label(axes: Axes, x: str, y: str, *, log: bool) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.25, which="both", linewidth=0.5)
    axes.set_axisbelow(True)
    if log:
        means = [value for line in axes.get_lines() for value in np.asarray(line.get_ydata(), dtype=float) if value > 0]
        means += [bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle) and bar.get_height() > 0]
        axes.set_yscale("log", nonpositive="clip")
        if means:
            axes.set_ylim(bottom=min(means) / 2)
        low, high = axes.get_ylim()
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 200 else (1.0,)))
        axes.yaxis.set_major_formatter("{x:,g}")
        axes.yaxis.set_minor_formatter("")


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else plain(value)


def _improvement(column: str, baseline: str) -> str:
    """Return the name of a column of :func:`improved`: what stands on the axis."""
    name = QUANTITIES[column].name if column in QUANTITIES else column.replace("_", " ")
    return Quantity(name, "%").label(f"less than with {baseline}")
