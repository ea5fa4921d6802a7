"""Figures of studies: curves, bars and improvements with their confidence intervals, from a table with a row for each run.

The table is that of :meth:`Store.results() <clustermodel.experiment.store.Store.results>`, or any other with factors, which
identify the runs, ``replication`` among them, and numbers.  Means, paired differences and intervals over replications are those
of :class:`~clustermodel.experiment.study_table.StudyTable` (:mod:`clustermodel.measure.replications`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.errors import SpecificationError, did_you_mean, quoted
from clustermodel.figures.style import Style, axis_label, factor_label, legend_below, new_figure, plain, policy_styles
from clustermodel.measure import statistics
from clustermodel.measure.metrics import QUANTITIES, quantity
from clustermodel.measure.quantities import Quantity, named, never_negative
from clustermodel.measure.replications import Rows, counted
from clustermodel.measure.statistics import Estimates

if TYPE_CHECKING:
    from clustermodel.experiment.study_table import StudyTable

    Table = StudyTable | pd.DataFrame

_REPLICATION: Final = "replication"  # the column; a table without it has one run for each point
_RUN: Final = "run"  # the column of the keys of runs; in a table without it, all runs are different
_ZERO: Final[dict[str, Any]] = {"color": "0.4", "linewidth": 0.8}
Labels = Mapping[Any, str]
_NO_LABELS: Final[Labels] = MappingProxyType({})
_LARGE: Final = 2000  # from which numbers along an axis have a separator of thousands
_MOST_TICKS: Final = 8  # at points along a logarithmic axis
_LINE: Final = 0.14  # height of a line of text at the end of a curve, in inches


def curves(
    table: Table, *, y: str | Sequence[str], x: str = "utilization", at: str | None = None, by: str = "policy",
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
    frame, *_ = _checked(table, y, x, at, by, panels)
    text = next((value for value in frame[x].tolist() if isinstance(value, str)), None)
    if text is not None and pd.to_numeric(frame[x], errors="coerce").isna().any():
        raise SpecificationError(
            f"x: {x!r} has texts, such as {quoted(text)}, and curves need numbers along the axis; bars(x={x!r}) draws texts"
        )
    drawing = _Drawing(table, y, x, at, by, panels, level, labels)
    return drawing.curves(_chosen("bands", bands, drawing.styles), log=log, log_x=log_x, share_y=share_y)


def bars(
    table: Table, *, y: str | Sequence[str], x: str | None = None, by: str = "policy", panels: str | None = None,
    log: bool | Collection[str] = False, share_y: bool = True, level: float = statistics.LEVEL, labels: Labels = _NO_LABELS,
) -> Figure:  # fmt: skip
    """Return a figure of bars: means over replications, with lines for the confidence interval.

    Arguments and errors are those of :func:`curves`; ``x`` is the factor that distinguishes groups of bars, such as a workload
    or a class of jobs (by default there is one group), and ``by`` distinguishes the bars of a group.
    """
    return _Drawing(table, y, x, x, by, panels, level, labels).bars(log=log, share_y=share_y)


def improvements(
    table: Table, *, y: str | Sequence[str], baseline: object, x: str | None = None, at: str | None = None,
    by: str = "policy", panels: str | None = None, level: float = statistics.LEVEL, labels: Labels = _NO_LABELS,
) -> Figure:  # fmt: skip
    """Return a figure of improvements: how much smaller numbers are than a baseline's, in per cent, paired by replication.

    With common random numbers the variation that two policies share cancels, so the intervals are far narrower than those of
    the numbers themselves.  A run is compared with the baseline's run of the same replication, at the same level of ``at``, in
    the same panel.  An improvement is negative if the number is larger than the baseline's, and 0 % if both are 0.
    ``baseline`` is a value of the factor ``by``.  An outcome or a numeric factor ``x`` makes curves, others make bars.  Other
    arguments and errors are those of :func:`curves`.

    Raises:
        SpecificationError: the baseline is missing, or 0 where another number is not, or has no replication in common.
    """
    drawing = _Drawing(table, y, x, at, by, panels, level, labels, _LESS, baseline)
    along = x is not None and is_numeric_dtype(drawing.table[x])
    figure = drawing.curves(drawing.styles) if along else drawing.bars()
    for axes in figure.axes:
        axes.axhline(0, **_ZERO)
    return figure


def ratios(
    table: Table, *, y: str | Sequence[str], baseline: object, x: str, at: str | None = None, by: str = "policy",
    panels: str | None = None, log: bool | Collection[str] = False, log_x: bool = False, share_y: bool = True,
    level: float = statistics.LEVEL, labels: Labels = _NO_LABELS,
) -> Figure:  # fmt: skip
    """Return a figure of curves of paired ratios to a baseline, each with its label at its end, and of a line at 1.

    A point is the mean of the ratios of its replications to those of the baseline
    (:func:`clustermodel.measure.statistics.paired_ratio`), a band its interval.  Policies that run the same jobs share most of
    their variation: bands of their means overlap where these bands are clearly above or below 1.  Each curve has its own
    colour.  Arguments and errors are those of :func:`curves` and, for the baseline, of :func:`improvements`.
    """
    drawing = _Drawing(table, y, x, at, by, panels, level, labels, _RATIO, baseline)
    return drawing.curves(drawing.styles, log=log, log_x=log_x, share_y=share_y)


def differences(
    table: Table, *, y: str | Sequence[str], baseline: object, x: str, at: str | None = None, by: str = "policy",
    panels: str | None = None, log_x: bool = False, share_y: bool = True, level: float = statistics.LEVEL,
    labels: Labels = _NO_LABELS,
) -> Figure:  # fmt: skip
    """Return the figure of :func:`ratios` of paired differences from the baseline, with a line at 0."""
    drawing = _Drawing(table, y, x, at, by, panels, level, labels, _DIFFERENCE, baseline)
    return drawing.curves(drawing.styles, log_x=log_x, share_y=share_y)


class _Comparison(NamedTuple):
    """How numbers are compared with those of a baseline."""

    value: Callable[[FloatArray, FloatArray], FloatArray]
    label: Callable[[Quantity, str], str]  # of an axis, from what is compared and the baseline
    line: float | None = None  # where both are equal; curves then have labels at their ends
    pairs: str = ""


_RATIO: Final = _Comparison(
    statistics.ratios, lambda quantity, baseline: f"{quantity.name}, relative to {baseline}", 1.0, "paired ratios"
)
_DIFFERENCE: Final = _Comparison(
    np.subtract, lambda quantity, baseline: quantity.label(f"difference from {baseline}"), 0.0, "paired differences"
)
_LESS: Final = _Comparison(
    lambda new, old: 100 * (1 - statistics.ratios(new, old)),
    lambda quantity, baseline: Quantity(quantity.name, "%").label(f"less than with {baseline}"),
)


class Point(NamedTuple):
    """One configuration."""

    panel: str
    of: str  # the curve, or the colour of bars
    at: object  # what distinguishes the points of a curve
    rows: Rows


class _Drawing:
    """A figure of points with a panel for each column and each title; of a comparison, without those of the baseline."""

    def __init__(
        self, table: Table, y: str | Sequence[str], x: str | None, at: str | None, by: str, panels: str | None,
        level: float, labels: Labels, comparison: _Comparison | None = None, baseline: object = None,
    ) -> None:  # fmt: skip
        self.table, self.columns, self.at = _checked(table, y, x, at, by, panels)
        self.x, self.by, self.panels = x, by, panels
        self.level, self.comparison = statistics.checked_level(level), comparison
        self.labels = {level_text(name): text for name, text in labels.items()}  # ``None`` and ``"None"`` are the same
        for column in self.columns:
            self.numbers(column)
        self.points = self._points()
        sides: list[list[Rows]] = [[point.rows] for point in self.points]
        self.styles = policy_styles([point.of for point in self.points], distinct=True)
        if comparison is not None:
            self.base = self.text(level_text(baseline))
            self.points, sides = self._paired(level_text(baseline))
            del self.styles[level_text(baseline)]
            if comparison.line is not None:
                self.styles = policy_styles(list(self.styles), separate=True)
        runs = self.table[_RUN].tolist() if _RUN in self.table else range(len(self.table))
        resampled = self.table.get(statistics.RESAMPLED, pd.Series(0, self.table.index)) == 1
        self.counted = counted(sides, runs, resampled.to_numpy())

    def _points(self) -> list[Point]:
        """Return the points of the table, in its order."""
        table, factors = self.table, [self.by] if self.at is None else [self.by, self.at]
        replications = table[_REPLICATION].tolist() if _REPLICATION in table else [1] * len(table)
        points: dict[tuple[str, str, object], list[int]] = {}
        cells = [[None] * len(table) if name is None else table[name].tolist() for name in (self.panels, self.by, self.at)]
        for row, (panel, of, at) in enumerate(zip(*cells, strict=True)):
            title = "" if self.panels is None else level_title(self.panels, panel, self.labels)
            points.setdefault((title, level_text(of), level_of(at)), []).append(row)
        for rows in points.values():
            if len({replications[row] for row in rows}) < len(rows):
                shared = [*factors, _REPLICATION, _RUN, "seed"]
                before = list(table.columns[: list(table.columns).index(_REPLICATION)]) if _REPLICATION in table else []
                apart = [name for name in before if name not in shared and len(table[name].iloc[rows].unique()) > 1]
                they = f" (they differ in {', '.join(apart)})" if apart else ""
                raise SpecificationError(
                    f"table: {len(rows)} rows have {self._where(rows[0])}, and some of them the same replication; choose rows, "
                    f"or name in by, x, at or panels what tells them apart{they}"
                )
        titles = list(dict.fromkeys(title for title, *_ in points))
        found = [Point(*key, dict(sorted((replications[row], row) for row in rows))) for key, rows in points.items()]
        return sorted(found, key=lambda point: titles.index(point.panel))

    def _paired(self, baseline: str) -> tuple[list[Point], list[list[Rows]]]:
        """Return the points of all others than the baseline, and for each its rows and those of the baseline."""
        known = list(dict.fromkeys(point.of for point in self.points))
        if baseline not in known:
            there = f"{did_you_mean(baseline, known)}; there are {', '.join(known)}"
            raise SpecificationError(f"baseline: {baseline!r} is no {self.by}{there}")
        if len(known) == 1:
            raise SpecificationError(f"baseline: {baseline!r} is the only {self.by}; there is nothing to compare with it")
        of_baseline = {(point.panel, point.at): point.rows for point in self.points if point.of == baseline}
        points = [point for point in self.points if point.of != baseline]
        for point in points:
            if point.rows.keys().isdisjoint(of_baseline.get((point.panel, point.at), ())):
                where = self._where(next(iter(point.rows.values())))
                raise SpecificationError(f"baseline: {baseline!r} has no run to compare with {where}")
        return points, [[point.rows, of_baseline[point.panel, point.at]] for point in points]

    def _where(self, row: int) -> str:
        cells = [(name, self.table[name].iloc[row]) for name in (self.by, self.at) if name is not None]
        return ", ".join(f"{name} {_shown_cell(value)}" for name, value in dict(cells).items())

    def numbers(self, column: str) -> FloatArray:
        """Return a column of the table after a check that its cells are finite numbers."""
        cells = self.table[column]
        if not is_numeric_dtype(cells) or is_bool_dtype(cells):
            cells = pd.to_numeric(cells.astype(object), errors="coerce")
        numbers = cells.to_numpy(dtype=float, na_value=nan)
        if (wrong := np.flatnonzero(~np.isfinite(numbers))).size:
            cell = _shown_cell(self.table[column].iloc[wrong[0]])
            raise SpecificationError(
                f"table: {column}: {cell} of {self._where(int(wrong[0]))} is not allowed; it must be a finite number"
            )
        return numbers

    def estimates(self, column: str) -> Estimates:
        """Return the means of a column at the points, or of its comparisons with the baseline, and their intervals."""
        if self.comparison is None:
            return self.counted.estimates(self.numbers(column), self.level)
        try:
            return self.counted.estimates(self.numbers(column), self.level, self.comparison.value)
        except SpecificationError:
            raise SpecificationError(f"baseline: {column} of {self.base!r} is 0, so that there is no ratio to it") from None

    def text(self, label: str) -> str:
        """Return the text of a curve or bar in legends."""
        return self.labels.get(label, label)

    def _axis_label(self, column: str) -> str:
        if self.comparison is None:
            return self.labels.get(column) or axis_label(column)
        of = _with_unit(self.labels[column]) if column in self.labels else quantity(column)
        return self.comparison.label(of, self.base)

    def _x_label(self, x: str) -> str:
        return self.labels.get(x) or (factor_label(x) if x == self.at else axis_label(x))

    def curves(
        self, banded: Collection[str], *, log: bool | Collection[str] = False, log_x: bool = False, share_y: bool = True
    ) -> Figure:
        """Draw curves; if they are compared along a line, with their labels at their ends."""
        assert self.x is not None
        along, order = (
            self.counted.estimates(self.numbers(self.x), self.level).mean,
            pd.Series([at for _, _, at, _ in self.points]),
        )
        if log_x and along.min() <= 0:
            raise SpecificationError(f"log_x: {self.x} is not above zero everywhere, so that its axis cannot be logarithmic")
        by_order = self.x in QUANTITIES and is_numeric_dtype(order)
        figure, panels = self._new_panels(share_y=share_y)
        handles: dict[str, Any] = dict.fromkeys(self.styles)
        ends: dict[Axes, list[tuple[float, float, str, str]]] = {axes: [] for *_, axes in panels}
        drawn, cut = False, False
        for column, axes, label, style, chosen, found in self._series(panels):
            joined = chosen[(order if by_order else pd.Series(along))[chosen].argsort()]
            places, mean, half = (values[joined] for values in (along, found.mean, found.half))
            look: dict[str, Any] = {"linestyle": style.line, "marker": style.marker, "markersize": 4, "linewidth": 1.4}
            (handles[label],) = axes.plot(places, mean, color=style.colour, **look)
            ends[axes].append((float(places[-1]), float(mean[-1]), self.text(label), style.colour))
            if label in banded and not np.isnan(half).all():
                half = np.nan_to_num(half)
                low = self._cut(column, mean - half)
                band = axes.fill_between(places, low, mean + half, color=style.colour, alpha=0.15, linewidth=0)
                handles[label] = handles[label], band
                drawn, cut = True, cut or bool((low > mean - half).any())
        for *_, axes in panels:
            if log_x:
                _use_log_scale_along(axes)
            elif self.x == self.at and all(isinstance(point.at, int) for point in self.points):
                axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
        line = self.comparison and self.comparison.line
        if line is None:
            self._finish(panels, self._x_label(self.x), log)
            legend_below(figure, self._named(handles), title=self._title("bands", drawn, cut))
            return figure
        for *_, axes in panels:
            reference = axes.axhline(line, color="0.25", linewidth=1.0, linestyle="--", zorder=1)
        self._finish(panels, self._x_label(self.x), log)
        for *_, axes in panels:
            _label_ends(axes, ends[axes])
        handles = {f"equal to {plain(self.base)}": reference}
        if drawn and self.comparison is not None:
            what = f"{100 * self.level:g} % intervals of the {self.comparison.pairs}"
            handles[what + (", cut at 0" if cut else "")] = Patch(color="0.85")
        legend_below(figure, handles)
        return figure

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
        """Return whether what is drawn cannot be negative: it is a ratio, or its name says so, and no number is."""
        known = never_negative(column) if self.comparison is None else self.comparison is _RATIO
        return known and bool(self.numbers(column).min() >= 0)

    def bars(self, *, log: bool | Collection[str] = False, share_y: bool = True) -> Figure:
        figure, panels = self._new_panels(share_y=share_y)
        handles: dict[str, Any] = dict.fromkeys(self.styles)
        width, tallest = 0.8 / len(self.styles), 0.0
        groups = {
            title: list(dict.fromkeys(point.at for point in self.points if point.panel == title)) for _, title, _ in panels
        }
        drawn, cut = False, False
        for column, axes, label, style, chosen, found in self._series(panels):
            mean, half = found.mean[chosen], found.half[chosen]
            beside = (list(self.styles).index(label) - (len(self.styles) - 1) / 2) * width
            places = [groups[point.panel].index(point.at) + beside for point in map(self.points.__getitem__, chosen)]
            look: dict[str, Any] = {"color": style.colour, "hatch": style.hatch, "edgecolor": "white", "linewidth": 0}
            lines = {"ecolor": "0.25", "elinewidth": 1, "capsize": 2}
            low = self._cut(column, mean - half)
            handles[label] = axes.bar(places, mean, 0.92 * width, yerr=(mean - low, half), error_kw=lines, **look)
            drawn, cut = drawn or not np.isnan(half).all(), cut or bool((low > mean - half).any())
        for _, title, axes in panels:
            names = (
                [""] if self.x is None else [self.labels.get(level_text(group), shown_value(group)) for group in groups[title]]
            )
            slant: dict[str, Any] = {}
            if sum(map(len, names)) > 60 / min(len(panels), 3):  # characters
                slant, tallest = {"rotation": 25, "ha": "right"}, max(tallest, 0.035 * max(map(len, names)))
            axes.set_xticks(range(len(names)), names, rotation_mode="anchor", **slant)
            axes.tick_params(axis="x", length=0)
            axes.set_xlim(-0.5, len(names) - 0.5)
            axes.axhline(0, **_ZERO)
        self._finish(panels, "" if self.x is None else self._x_label(self.x), log, grid="y")
        figure.set_figheight(figure.get_figheight() + tallest)
        legend_below(figure, self._named(handles), title=self._title("lines", drawn, cut))
        return figure

    def _series(self, panels: Sequence[tuple[str, str, Axes]]) -> Iterator[tuple[str, Axes, str, Style, IntArray, Estimates]]:
        """Yield which points each curve or colour of bars has in each panel, and the estimates at all points."""
        of_columns = {column: self.estimates(column) for column in self.columns}
        for (column, title, axes), (label, style) in product(panels, self.styles.items()):
            chosen = np.flatnonzero([(point.panel, point.of) == (title, label) for point in self.points])
            if chosen.size:
                yield column, axes, label, style, chosen, of_columns[column]

    def _new_panels(self, *, share_y: bool) -> tuple[Figure, list[tuple[str, str, Axes]]]:
        """Return a figure, and column, title and axes of each panel."""
        titles = list(dict.fromkeys(point.panel for point in self.points))
        one_row, count = len(titles) == 1, len(self.columns)
        across = min(count, 3) if one_row else len(titles)
        down = -(-count // across) if one_row else count
        size = 1.6 + (4.2 if across < 3 else 3.4) * across, 3.6 if down == 1 else 3.1 * down
        shared = "row" if share_y and not one_row else False
        figure, grid = new_figure(*size, down, across, squeeze=False, sharey=shared)
        for axes in grid.flat[count * len(titles) :]:
            axes.remove()
        return figure, [(*place, axes) for place, axes in zip(product(self.columns, titles), grid.flat, strict=False)]

    def _finish(self, panels: Sequence[tuple[str, str, Axes]], x: str, log: bool | Collection[str], grid: str = "both") -> None:
        """Label the axes and panels, and scale the axes."""
        scaled = _chosen("log", log, self.columns)
        (first, left, _), (last, right, _) = panels[0], panels[-1]
        several = left != right
        for column, title, axes in panels:
            axes.set_xlabel(x if not several or column == last else "")
            axes.set_ylabel("" if several and title != left else fill(self._axis_label(column), 28, break_on_hyphens=False))
            if several and column == first:
                axes.set_title(title, fontsize="medium")
            axes.grid(axis=grid, alpha=0.25, which="both", linewidth=0.5)  # type: ignore[arg-type]
            axes.set_axisbelow(True)
        for column in dict.fromkeys(self.columns):
            of_column = [axes for name, _, axes in panels if name == column]
            if column in scaled:
                _use_log_scale(column, of_column, self.estimates(column).mean)
                continue
            for axes in of_column:
                if self._positive(column) and axes.get_ylim()[0] < 0:
                    axes.set_ylim(bottom=0)
                if axes.get_ylim()[1] >= _LARGE:
                    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


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
    table: Table, y: str | Sequence[str], x: str | None, at: str | None, by: str, panels: str | None = None
) -> tuple[pd.DataFrame, list[str], str | None]:
    """Return the rows, the columns to show and the factor that distinguishes the points of a curve, after a check of them.

    A study's table says which columns are factors, also if one has the name of an outcome.
    """
    columns = [y] if isinstance(y, str) or not isinstance(y, Sequence) else list(y)
    if not columns:
        raise SpecificationError("y: no column is given")
    if wrong := [column for column in columns if not isinstance(column, str)]:
        raise SpecificationError(f"y: {wrong[0]!r} is not allowed; it must be the name of a column, or several")
    for field, name in (("x", x), ("at", at), ("by", by), ("panels", panels)):
        if not isinstance(name, str) and (name is not None or field == "by"):
            second = "; panels takes a second factor" if field == "by" else ""
            raise SpecificationError(f"{field}: {quoted(name)} is not allowed; it must be the name of one column{second}")
    frame: object = getattr(table, "frame", table)
    if not isinstance(frame, pd.DataFrame):
        must = "it must be the table of a study, or a pandas DataFrame with a row for each run"
        raise SpecificationError(f"table: {type(table).__name__} is not allowed; {must}")
    if frame.empty:
        raise SpecificationError("table: it has no rows; there is nothing to draw")
    there = [str(column) for column in frame.columns]
    at = at or ("workload" if x in QUANTITIES and x not in getattr(table, "factors", ()) else x)
    for column in filter(None, (x, at, by, panels, *columns)):
        if column not in there:
            raise SpecificationError(
                f"table: column {column!r} is not there{did_you_mean(column, there)}; there are {', '.join(there)}"
            )
        if there.count(column) > 1:
            raise SpecificationError(f"table: column {column!r} is there {there.count(column)} times")
    return frame, columns, at


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


def _use_log_scale(column: str, panels: Sequence[Axes], means: FloatArray) -> None:
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
