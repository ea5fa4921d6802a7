"""Figures of studies: curves, bars and improvements with their confidence intervals, from a table with a row for each run.

The table is that of :meth:`Store.results() <clustermodel.experiment.store.Store.results>`, or any other with factors, which
identify the runs, ``replication`` among them, and numbers.  Means and intervals over replications are those of
:class:`~clustermodel.experiment.study_table.StudyTable`: Student's t, of sample paths where jobs are resampled; a single
replication has no interval.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from math import nan
from textwrap import fill
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator
from pandas.api.types import is_bool_dtype, is_numeric_dtype, is_scalar

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError, did_you_mean, quoted
from clustermodel.figures.style import Style, axis_label, factor_label, legend_below, new_figure, plain, policy_styles
from clustermodel.measure import statistics
from clustermodel.measure.metrics import QUANTITIES
from clustermodel.measure.quantities import Quantity, named, never_negative

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result

REPLICATION: Final = "replication"  # the column; a table without it has one run for each point
_RUN: Final = "run"  # the column of the keys of runs, if there is one
_RUN_OF_BASELINE: Final = "baseline_run"  # and that of the runs that they are compared with
_ZERO: Final[dict[str, Any]] = {"color": "0.4", "linewidth": 0.8}
Labels = Mapping[Any, str]
_NO_LABELS: Final[Labels] = MappingProxyType({})
_LARGE: Final = 2000  # from which numbers along an axis have a separator of thousands
_MOST_TICKS: Final = 8  # at points along a logarithmic axis
_RELATIVE: Final = ", relative to "  # in the names of ratios, of which none is negative
_LINE: Final = 0.14  # height of a line of text at the end of a curve, in inches


def curves(
    table: pd.DataFrame, *, y: str | Sequence[str], x: str = "utilization", at: str | None = None, by: str = "policy",
    panels: str | None = None, log: bool | Collection[str] = False, log_x: bool = False,
    bands: bool | Collection[str] = True, share_y: bool = True, level: float = statistics.LEVEL, labels: Labels = _NO_LABELS,
) -> Figure:  # fmt: skip
    """Return a figure of curves: means over replications, with a band for the confidence interval.

    The band of a quantity that cannot be negative, such as a time or a share, is cut at 0; the legend says where this happens.

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
        log_x: use a logarithmic horizontal axis.
        bands: draw bands, for all or these curves.
        share_y: use the same vertical axis for the panels of a row.
        level: confidence level of the bands.
        labels: texts to show instead of the names of columns, factors and levels, such as
            ``{"switch": "cost of a context switch, share of the slice", "bgs:mpl=2": "MPL 2"}``.

    Raises:
        SpecificationError: a column is missing or has a value that is no finite number, rows are the same replication of the
            same point, ``log`` or ``bands`` names what is not drawn, or a logarithmic axis has no value above zero.
    """
    (columns, at), labels = _checked(table, y, x, at, by, panels), _by_text(labels)
    text = next((value for value in table[x].tolist() if isinstance(value, str)), None)
    if text is not None and pd.to_numeric(table[x], errors="coerce").isna().any():
        raise SpecificationError(
            f"x: {x!r} has texts, such as {quoted(text)}, and curves need numbers along the axis; bars(x={x!r}) draws texts"
        )
    points = _points_of(table, [*columns, x], by, at, panels, labels)
    styles = policy_styles([point.of for point in points], distinct=True)
    banded, scaled = _chosen("bands", bands, styles), _chosen("log", log, columns)
    _require_above_zero(log_x, x, points, level)
    return _Drawing(points, columns, styles, by, level, scaled, share_y, labels).curves(x, at, banded, log_x=log_x)


def bars(
    table: pd.DataFrame, *, y: str | Sequence[str], x: str | None = None, by: str = "policy", panels: str | None = None,
    log: bool | Collection[str] = False, share_y: bool = True, level: float = statistics.LEVEL, labels: Labels = _NO_LABELS,
) -> Figure:  # fmt: skip
    """Return a figure of bars: means over replications, with lines for the confidence interval.

    Arguments and errors are those of :func:`curves`; ``x`` is the factor that distinguishes groups of bars, such as a workload
    or a class of jobs (by default there is one group), and ``by`` distinguishes the bars of a group.
    """
    (columns, _), labels = _checked(table, y, x, x, by, panels), _by_text(labels)
    points = _points_of(table, columns, by, x, panels, labels)
    styles, scaled = policy_styles([point.of for point in points], distinct=True), _chosen("log", log, columns)
    return _Drawing(points, columns, styles, by, level, scaled, share_y, labels).bars(x)


def improvements(
    table: pd.DataFrame, *, y: str | Sequence[str], baseline: object, x: str | None = None, at: str | None = None,
    by: str = "policy", panels: str | None = None, level: float = statistics.LEVEL, labels: Labels = _NO_LABELS,
) -> Figure:  # fmt: skip
    """Return a figure of improvements: how much smaller numbers are than a baseline's, in per cent, paired by replication.

    With common random numbers the variation that two policies share cancels, so the intervals are far narrower than those of
    the numbers themselves.  Arguments and errors are those of :func:`curves` and, within each panel, of
    :func:`~clustermodel.figures.curves_bars.improved`.  An outcome or a numeric factor ``x`` makes curves, others make bars.
    """
    (columns, at), labels = _checked(table, y, x, at, by, panels), _by_text(labels)
    compared = _compared(table, panels, lambda part: improved(part, y=columns, baseline=baseline, at=at, by=by))
    names = [_improvement_label(column, baseline) for column in columns]
    figure = _of_compared(table, compared, names, baseline, x, at, by, panels, level, labels)
    for axes in figure.axes:
        axes.axhline(0, **_ZERO)
    return figure


def ratios(
    table: pd.DataFrame, *, y: str | Sequence[str], baseline: object, x: str, at: str | None = None, by: str = "policy",
    panels: str | None = None, log: bool | Collection[str] = False, log_x: bool = False, share_y: bool = True,
    level: float = statistics.LEVEL, labels: Labels = _NO_LABELS,
) -> Figure:  # fmt: skip
    """Return a figure of curves of paired ratios to a baseline, each with its label at its end, and of a line at 1.

    A point is the mean of the ratios of its replications to those of the baseline
    (:func:`clustermodel.measure.statistics.paired_ratio`), a band its interval.  Policies that run the same jobs share most of
    their variation: bands of their means overlap where these bands are clearly above or below 1.  Each curve has its own
    colour. Arguments and errors are those of :func:`curves` and, for the baseline, of
    :func:`~clustermodel.figures.curves_bars.improved`.
    """
    drawn = _Against(table, y, baseline, x, at, by, panels, labels, difference=False)
    return drawn.figure(log=log, log_x=log_x, share_y=share_y, level=level)


def differences(
    table: pd.DataFrame, *, y: str | Sequence[str], baseline: object, x: str, at: str | None = None, by: str = "policy",
    panels: str | None = None, log_x: bool = False, share_y: bool = True, level: float = statistics.LEVEL,
    labels: Labels = _NO_LABELS,
) -> Figure:  # fmt: skip
    """Return the figure of :func:`ratios` of paired differences from the baseline, with a line at 0."""
    drawn = _Against(table, y, baseline, x, at, by, panels, labels, difference=True)
    return drawn.figure(log=False, log_x=log_x, share_y=share_y, level=level)


class _Against:
    """Paired ratios to a baseline, or differences from it."""

    def __init__(
        self, table: pd.DataFrame, y: str | Sequence[str], baseline: object, x: str, at: str | None, by: str,
        panels: str | None, labels: Labels, *, difference: bool,
    ) -> None:  # fmt: skip
        (self.columns, self.at), self.labels = _checked(table, y, x, at, by, panels), _by_text(labels)
        self.x, self.by, self.panels, self.difference = x, by, panels, difference
        text = level_text(baseline)
        self.base = self.labels.get(text, text)
        self.names = {column: self._label(column) for column in self.columns}
        measure = np.subtract if difference else statistics.ratios

        def compare(part: pd.DataFrame) -> pd.DataFrame:
            return _paired(part, self.columns, baseline, self.at, by, measure, self.names)

        self.compared = _compared(table, panels, compare)
        known = policy_styles(list(map(level_text, table[by].unique())), distinct=True)
        self.styles = policy_styles([label for label in known if label != text], separate=True)

    def figure(self, *, log: bool | Collection[str], log_x: bool, share_y: bool, level: float) -> Figure:
        """Return the figure."""
        scaled = {self.names[column] for column in _chosen("log", log, self.columns)}
        names = list(self.names.values())
        points = _points_of(self.compared, [*names, self.x], self.by, self.at, self.panels, self.labels)
        _require_above_zero(log_x, self.x, points, level)
        drawing = _Drawing(points, names, self.styles, self.by, level, scaled, share_y, self.labels)
        line = 0.0 if self.difference else 1.0, f"equal to {plain(self.base)}"
        return drawing.curves(self.x, self.at, self.styles, log_x=log_x, line=line)

    def _label(self, column: str) -> str:
        """Return the label of an axis; ratios have no unit."""
        quantity = QUANTITIES.get(column) or named(column)
        if column in self.labels:
            quantity = _with_unit(self.labels[column])
        if self.difference:
            return quantity.label(f"difference from {self.base}")
        return f"{quantity.name}{_RELATIVE}{self.base}"


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
    columns, _ = _checked(table, y, None, at, by)
    names = {column: _improvement_label(column, baseline) for column in columns}
    return _paired(table, columns, baseline, at, by, lambda now, old: 100 * (1 - statistics.ratios(now, old)), names)


def _paired(
    table: pd.DataFrame, columns: Sequence[str], baseline: object, at: str | None, by: str,
    measure: Callable[[FloatArray, FloatArray], FloatArray], names: Mapping[str, str],
) -> pd.DataFrame:  # fmt: skip
    """Return the rows of all others than the baseline, with a function of each pair of values of each column."""
    baseline = level_text(baseline)
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
        common = new.index[new.index.isin(base.index)]
        if len(base) > 1 and not (len(common) == len(base) == len(new)):
            if not len(common) or len(statistics.different_runs(_runs_of(base))) > 1:
                raise SpecificationError(f"baseline: {baseline!r} and {where} have different replications")
            new = new.loc[common]  # a run that replications cannot change, of fewer of them
        base = base.loc[new.index if len(base) > 1 else base.index.repeat(len(new))]
        if (column := statistics.RESAMPLED) in table:
            new[column] = (new[column].to_numpy() == 1) | (base[column].to_numpy() == 1)
        if _RUN in table:
            new[_RUN_OF_BASELINE] = base[_RUN].to_numpy()
        for column in columns:
            old, now = (rows[column].to_numpy(dtype=float) for rows in (base, new))
            if measure is not np.subtract and ((old == 0) & (now != 0)).any():
                raise SpecificationError(f"baseline: {column} of {baseline!r} is 0, so {where} has no ratio to it")
            new[names[column]] = measure(now, old)
        parts.append(new)
    return pd.concat(parts, ignore_index=True)


def _runs_of(values: pd.DataFrame) -> list[Any]:
    """Return what tells the different runs of replications apart, or pairs of runs."""
    keys = [values[name].tolist() for name in (_RUN, _RUN_OF_BASELINE) if name in values]
    return list(zip(*keys, strict=True)) if keys else list(range(len(values)))


def _require_above_zero(log_x: bool, x: str, points: Sequence[Point], level: float) -> None:
    if log_x and min(point.interval(x, level)[0] for point in points) <= 0:
        raise SpecificationError(f"log_x: {x} is not above zero everywhere, so that its axis cannot be logarithmic")


def _compared(table: pd.DataFrame, panels: str | None, compare: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """Return the comparisons with a baseline within each panel, as one table."""
    return pd.concat(map(compare, _parts_of(table, panels).values()), ignore_index=True)


def _of_compared(
    table: pd.DataFrame, compared: pd.DataFrame, names: Sequence[str], baseline: object, x: str | None, at: str | None, by: str,
    panels: str | None, level: float, labels: Labels,
) -> Figure:  # fmt: skip
    """Return a figure of comparisons with a baseline: curves along an outcome or a numeric factor, bars otherwise."""
    styles = policy_styles(list(map(level_text, table[by].unique())), distinct=True)
    del styles[level_text(baseline)]
    if x is not None and is_numeric_dtype(table[x]):
        points = _points_of(compared, [*names, x], by, at, panels, labels)
        return _Drawing(points, names, styles, by, level, labels=labels).curves(x, at, styles)
    points = _points_of(compared, names, by, x, panels, labels)
    return _Drawing(points, names, styles, by, level, labels=labels).bars(x)


def _improvement_label(column: str, baseline: object) -> str:
    name = (QUANTITIES.get(column) or named(column)).name
    return Quantity(name, "%").label(f"less than with {baseline}")


def _by_text(labels: Labels) -> dict[Any, str]:
    """Return labels by the texts of the levels: ``None`` and ``"None"``, 2 and ``"2"`` are the same."""
    return {level_text(name): text for name, text in labels.items()}


class Point(NamedTuple):
    """The replications of one configuration."""

    panel: str
    of: str  # the curve, or the colour of bars
    at: object  # what distinguishes the points of a curve
    values: pd.DataFrame  # the numbers, by replication, in their order

    def interval(self, column: str, level: float) -> tuple[float, float]:
        """Return the mean of a column and half the width of its confidence interval, ``nan`` for a single replication."""
        different = self.values.iloc[statistics.different_runs(_runs_of(self.values))]
        resampled = statistics.RESAMPLED in different and bool((different[statistics.RESAMPLED] == 1).any())
        numbers = different[column].to_numpy(dtype=float)[np.newaxis]
        made = statistics.estimates(numbers, statistics.checked_level(level), resampled)
        return float(made.mean[0]), float(made.half[0])


def _parts_of(table: pd.DataFrame, panels: str | None, labels: Labels = _NO_LABELS) -> dict[str, pd.DataFrame]:
    """Return the rows of each panel, by its title."""
    if panels is None:
        return {"": table}
    return {level_title(panels, value, labels): rows for value, rows in table.groupby(panels, sort=False, dropna=False)}


def level_title(factor: str, value: object, labels: Labels = _NO_LABELS) -> str:
    """Return the title of the panel of a level: ``"MTBF 3.1 h"``; a level that is a text is its own title."""
    level = level_of(value)
    if isinstance(level, str) and level not in labels:
        return shown_value(level)
    quantity = _with_unit(labels[factor]) if factor in labels else named(factor)
    return " ".join(filter(None, (plain(quantity.name), labels.get(level_text(level), shown_value(level)), quantity.unit)))


def _with_unit(label: str) -> Quantity:
    """Return the name and the unit of a label such as ``"memory of a node (GiB)"``."""
    name, bracket, unit = label.removesuffix(")").rpartition(" (")
    return Quantity(name, unit) if bracket and label.endswith(")") else Quantity(label)


def _points_of(
    table: pd.DataFrame, numbers: Sequence[str], by: str, at: str | None, panels: str | None = None, labels: Labels = _NO_LABELS
) -> list[Point]:
    """Return the points of a table, in its order, after a check of all their numbers."""
    factors, parts = [by] if at is None else [by, at], _parts_of(table, panels, labels)

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
            shared = [*factors, REPLICATION, "run", "seed"]
            before = rows.columns[: list(rows.columns).index(REPLICATION)] if REPLICATION in rows else ()
            apart = [name for name in before if name not in shared and len(rows[name].unique()) > 1]
            they = f" (they differ in {', '.join(apart)})" if apart else ""
            raise SpecificationError(
                f"table: {len(rows)} rows have {where(place)}, and some of them the same replication; choose rows, "
                f"or name in by, x, at or panels what tells them apart{they}"
            )
        values = rows.set_index(replication.rename(None)).sort_index(kind="stable")
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
            f"table: {type(table).__name__} is not allowed; it must be a pandas DataFrame, a row for each run, as table.frame "
            "of a study"
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
    labels: Labels = _NO_LABELS

    def curves(
        self, x: str, at: str | None, banded: Collection[str], *, log_x: bool = False, line: tuple[float, str] | None = None
    ) -> Figure:
        """Draw curves; with ``line``, the height of a horizontal line and its text, their labels are at their ends."""
        figure, panels = self._panels()
        handles: dict[str, Any] = dict.fromkeys(self.styles)
        ends: dict[Axes, list[tuple[float, float, str, str]]] = {axes: [] for *_, axes in panels}
        drawn, cut = False, False
        for column, axes, label, style, points, *numbers in self._series(panels):
            places = np.array([point.interval(x, self.level)[0] for point in points])
            along = pd.Series([point.at for point in points])
            joined = (along if x in QUANTITIES and is_numeric_dtype(along) else pd.Series(places)).argsort()
            places, mean, half = (values[joined] for values in (places, *numbers))
            look: dict[str, Any] = {"linestyle": style.line, "marker": style.marker, "markersize": 4, "linewidth": 1.4}
            (handles[label],) = axes.plot(places, mean, color=style.colour, **look)
            ends[axes].append((float(places[-1]), float(mean[-1]), self.text(label), style.colour))
            if label in banded and not np.isnan(half).all():
                half = np.nan_to_num(half)
                low = self._cut(column, mean - half)
                band = axes.fill_between(places, low, mean + half, color=style.colour, alpha=0.15, linewidth=0)
                handles[label] = handles[label], band
                drawn, cut = True, cut or bool((low > mean - half).any())
        if log_x:
            for *_, axes in panels:
                _use_log_scale_along(axes)
        elif x == at and all(isinstance(point.at, int) for point in self.points):
            for *_, axes in panels:
                axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
        if line is not None:
            for *_, axes in panels:
                reference = axes.axhline(line[0], color="0.25", linewidth=1.0, linestyle="--", zorder=1)
            handles = {line[1]: reference}
        self._finish(panels, self.labels.get(x) or (factor_label(x) if x == at else axis_label(x)))
        if line is None:
            legend_below(figure, self._named(handles), title=self._title("bands", drawn, cut))
            return figure
        for *_, axes in panels:
            _label_ends(axes, ends[axes])
        if drawn:
            what = f"{100 * self.level:g} % intervals of the paired {'ratios' if line[0] else 'differences'}"
            handles[what + (", cut at 0" if cut else "")] = Patch(color="0.85")
        legend_below(figure, handles)
        return figure

    def text(self, label: str) -> str:
        """Return the text of a curve or bar in legends."""
        return self.labels.get(label, label)

    def _named(self, handles: Mapping[str, Any]) -> dict[str, Any]:
        return {self.text(label): handle for label, handle in handles.items()}

    def _title(self, marks: str, drawn: bool, cut: bool) -> str:
        """Return the title of the legend: what distinguishes curves or bars, and what intervals are drawn."""
        name = self.labels.get(self.by) or factor_label(self.by)
        said = f"{marks}: {100 * self.level:g} % intervals" + (", cut at 0" if cut else "")
        return f"{name}; {said}" if drawn else name

    def _cut(self, column: str, low: FloatArray) -> FloatArray:
        """Return the lower ends of intervals, not below 0 where the quantity cannot be negative."""
        return np.maximum(low, 0.0) if self._positive(column) else low

    def _positive(self, column: str) -> bool:
        """Return whether a quantity cannot be negative: its name says so, and none of its values is."""
        return (_RELATIVE in column or never_negative(column)) and all(
            float(point.values[column].min()) >= 0 for point in self.points
        )

    def bars(self, x: str | None) -> Figure:
        figure, panels = self._panels()
        handles: dict[str, Any] = dict.fromkeys(self.styles)
        width, tallest = 0.8 / len(self.styles), 0.0
        groups = {
            title: list(dict.fromkeys(point.at for point in self.points if point.panel == title)) for _, title, _ in panels
        }
        drawn, cut = False, False
        for column, axes, label, style, points, mean, half in self._series(panels):
            beside = (list(self.styles).index(label) - (len(self.styles) - 1) / 2) * width
            places = [groups[point.panel].index(point.at) + beside for point in points]
            look: dict[str, Any] = {"color": style.colour, "hatch": style.hatch, "edgecolor": "white", "linewidth": 0}
            lines = {"ecolor": "0.25", "elinewidth": 1, "capsize": 2}
            low = self._cut(column, mean - half)
            handles[label] = axes.bar(places, mean, 0.92 * width, yerr=(mean - low, half), error_kw=lines, **look)
            drawn, cut = drawn or not np.isnan(half).all(), cut or bool((low > mean - half).any())
        for _, title, axes in panels:
            names = [""] if x is None else [self.labels.get(level_text(group), shown_value(group)) for group in groups[title]]
            slant: dict[str, Any] = {}
            if sum(map(len, names)) > 60 / min(len(panels), 3):  # characters
                slant, tallest = {"rotation": 25, "ha": "right"}, max(tallest, 0.035 * max(map(len, names)))
            axes.set_xticks(range(len(names)), names, rotation_mode="anchor", **slant)
            axes.tick_params(axis="x", length=0)
            axes.set_xlim(-0.5, len(names) - 0.5)
            axes.axhline(0, **_ZERO)
        self._finish(panels, "" if x is None else self.labels.get(x) or factor_label(x), grid="y")
        figure.set_figheight(figure.get_figheight() + tallest)
        legend_below(figure, self._named(handles), title=self._title("lines", drawn, cut))
        return figure

    def _series(
        self, panels: Sequence[tuple[str, str, Axes]]
    ) -> Iterator[tuple[str, Axes, str, Style, list[Point], FloatArray, FloatArray]]:
        """Yield the points of each curve, or of the bars of one colour, in each panel, with their means and half-widths."""
        for (column, title, axes), (label, style) in product(panels, self.styles.items()):
            points = [point for point in self.points if (point.panel, point.of) == (title, label)]
            if points:
                mean, half = np.array([point.interval(column, self.level) for point in points]).T
                yield column, axes, label, style, points, mean, half

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

    def _finish(self, panels: Sequence[tuple[str, str, Axes]], x: str, grid: str = "both") -> None:
        """Label the axes and panels, and scale the axes."""
        (first, left, _), (last, right, _) = panels[0], panels[-1]
        several = left != right
        for column, title, axes in panels:
            axes.set_xlabel(x if not several or column == last else "")
            label = self.labels.get(column) or axis_label(column)
            axes.set_ylabel("" if several and title != left else fill(label, 28, break_on_hyphens=False))
            if several and column == first:
                axes.set_title(title, fontsize="medium")
            axes.grid(axis=grid, alpha=0.25, which="both", linewidth=0.5)  # type: ignore[arg-type]
            axes.set_axisbelow(True)
        for column in dict.fromkeys(self.columns):
            of_column = [axes for name, _, axes in panels if name == column]
            means = [float(point.values[column].astype(float).mean()) for point in self.points]
            if column in self.log:
                _use_log_scale(column, of_column, means)
                continue
            for axes in of_column:
                if self._positive(column) and axes.get_ylim()[0] < 0:
                    axes.set_ylim(bottom=0)
                if axes.get_ylim()[1] >= _LARGE:
                    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _use_log_scale_along(axes: Axes) -> None:
    """Scale a horizontal axis logarithmically, with ticks at the points of its curves where these are few."""
    axes.set_xscale("log")
    places = sorted({float(place) for line in axes.lines for place in np.asarray(line.get_xdata())})
    if len(places) <= _MOST_TICKS:
        axes.set_xticks(places, [f"{place:,g}" for place in places])
        axes.xaxis.set_minor_locator(NullLocator())


def _label_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write the labels of curves beside their ends, right of the axes, with enough distance between the lines of text."""
    figure = axes.get_figure()
    assert figure is not None
    between = _LINE / (axes.get_position().height * figure.get_window_extent().height / figure.dpi)
    to_axes = axes.transData + axes.transAxes.inverted()
    ordered = sorted((float(to_axes.transform((x, y))[1]), text, colour) for x, y, text, colour in ends)
    heights = [height for height, *_ in ordered]
    for _ in range(len(heights) ** 2):  # push neighbours apart until all have their distance
        for place, (low, high) in enumerate(pairwise(heights)):
            if (short := between - (high - low)) > 0:
                heights[place], heights[place + 1] = low - short / 2, high + short / 2
    for height, (_, text, colour) in zip(heights, ordered, strict=True):
        look: dict[str, Any] = {"color": colour, "va": "center", "fontsize": 9, "annotation_clip": False}
        axes.annotate(plain(text), (1.0, height), (4, 0), "axes fraction", textcoords="offset points", **look)


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


def by_size(results: Iterable[Result] | Result) -> pd.DataFrame:
    """Return a table of small and large jobs (Zhang et al. 2003, section 2.2: of more than 32 nodes), two rows for each run.

    Columns are policy, workload, replication (the seed), size, utilization, and means of wait, response and bounded slowdown.
    """
    rows = []
    for result in results if isinstance(results, Iterable) else [results]:
        scenario, means = result.scenario, result.by_class()["mean"]
        run = {"policy": scenario.label, "workload": scenario.workload_name, REPLICATION: scenario.seed}
        for size in ("small", "large"):
            of_size = {f"mean_{name}": float(means[size, name]) for name in ("wait_s", "response_s", "bounded_slowdown")}
            rows.append({**run, "size": size, "utilization": result.ledger.utilization, **of_size})
    return pd.DataFrame(rows)
