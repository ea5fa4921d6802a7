"""Statistics of a table with a row for each run: points of figures, means, intervals, improvements on a baseline.

Responsible for grouping rows and for refusing tables in which the groups are ambiguous; :mod:`clustermodel.figures.curves_bars`
draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype, is_scalar

from clustermodel import statistics
from clustermodel.errors import SpecificationError, did_you_mean, quoted
from clustermodel.figures.style import plain
from clustermodel.measure.quantities import QUANTITIES, Quantity, named

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result

REPLICATION: Final = "replication"
"""The column that distinguishes the replications of a point; a table without it has one run for each point."""


RUN: Final = "run"
"""The column that identifies the run; replications of a point that are the same run count once."""


class Point(NamedTuple):
    """The replications of one configuration."""

    of: str
    """The curve, or the colour of bars, to which the point belongs."""
    at: object
    """The value that distinguishes the points of a curve."""
    values: pd.DataFrame
    """The numbers, by replication."""


def columns_of(field: str, given: str | Sequence[str]) -> list[str]:
    """Return one column or several as a list."""
    columns = [given] if isinstance(given, str) else list(given) if isinstance(given, Sequence) else [given]
    if not columns:
        raise SpecificationError(f"{field}: no column is given")
    if wrong := [column for column in columns if not isinstance(column, str)]:
        raise SpecificationError(f"{field}: {wrong[0]!r} is not allowed; it must be the name of a column, or several")
    return columns


def one_column(field: str, given: object) -> None:
    """Refuse what is not the name of one column.

    Raises:
        SpecificationError: it is refused.
    """
    if not isinstance(given, str):
        second = "; panels takes a second factor" if field == "by" else ""
        raise SpecificationError(f"{field}: {quoted(given)} is not allowed; it must be the name of one column{second}")


def require_columns(table: pd.DataFrame, columns: Sequence[str]) -> None:
    """Refuse a table that is empty, lacks a column, or is no table.

    Raises:
        SpecificationError: the table is refused.
    """
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
        if there.count(column) > 1:
            raise SpecificationError(f"table: column {column!r} is there {there.count(column)} times")


def points_of(table: pd.DataFrame, numbers: Sequence[str], by: str, at: str | None) -> list[Point]:
    """Return the points of a table, in its order, after a check of all their numbers.

    Args:
        table: a row for each run.
        numbers: the columns to draw.
        by: the factor that becomes :attr:`Point.of`.
        at: the factor that becomes :attr:`Point.at`; ``None`` for one point.

    Raises:
        SpecificationError: a column is missing or has a value that is no finite number, or a point has a replication twice.
    """
    factors = [by] if at is None else [by, at]
    require_columns(table, [*factors, *numbers])
    for column in numbers:
        _require_finite(table, column, factors)
    points = []
    for place, rows in table.groupby(factors, sort=False, dropna=False):
        replication = rows[REPLICATION] if REPLICATION in table else pd.Series(1, index=rows.index)
        if replication.duplicated().any():
            where = ", ".join(f"{factor} {_shown_cell(value)}" for factor, value in zip(factors, place, strict=True))
            raise SpecificationError(
                f"table: {len(rows)} rows have {where}, and some of them the same replication; choose rows, "
                "or name in by, x or at what tells them apart"
            )
        values = rows.set_index(replication.rename(None))
        if RUN in values:
            values = values[~values[RUN].duplicated().to_numpy()]
        points.append(Point(level_text(place[0]), None if at is None else level_of(place[1]), values))
    return points


def level_of(value: Any) -> Any:
    """Return a cell of a factor's column as its level: pandas turns ``None`` among numbers into ``nan``."""
    level = value.item() if isinstance(value, np.generic) else value
    return None if is_scalar(level) and pd.isna(level) else level


def level_text(value: Any) -> str:
    """Return the whole text of a level; whole numbers are without the ``.0`` that pandas gives them beside ``None``."""
    level = level_of(value)
    return str(level).removesuffix(".0") if isinstance(level, float) else str(level)


def _shown_cell(value: object) -> str:
    """Return a cell of a table for a message, on one line."""
    return repr(value) if isinstance(value, str) else str(value)


def _require_finite(table: pd.DataFrame, column: str, factors: Sequence[str]) -> None:
    values = table[column]
    if not is_numeric_dtype(values) or is_bool_dtype(values):
        values = pd.to_numeric(values.astype(object), errors="coerce")
    wrong = ~np.isfinite(values.to_numpy(dtype=float, na_value=nan))
    if wrong.any():
        row = table.iloc[int(np.flatnonzero(wrong)[0])]
        where = ", ".join(f"{factor} {_shown_cell(row[factor])}" for factor in factors)
        raise SpecificationError(
            f"table: {column}: {_shown_cell(row[column])} of {where} is not allowed; it must be a finite number"
        )


def parts_of(table: pd.DataFrame, panels: str | None) -> dict[str, pd.DataFrame]:
    """Return the rows of each panel, by its title."""
    if panels is None:
        return {"": table}
    one_column("panels", panels)
    require_columns(table, [panels])
    return {shown_value(value): rows for value, rows in table.groupby(panels, sort=False, dropna=False)}


def labels_of(parts: Mapping[str, Sequence[Point]]) -> list[str]:
    """Return the curves to which the points belong, each once, in order of appearance."""
    return list(dict.fromkeys(point.of for points in parts.values() for point in points))


def mean_of(values: pd.Series) -> float:
    """Return the mean of the replications."""
    return float(values.astype(float).mean())


def interval_of(values: pd.Series, level: float) -> tuple[float, float]:
    """Return the mean and half the width of its confidence interval, ``nan`` for a single value."""
    if len(values) == 1:
        return float(values.iloc[0]), nan
    interval = statistics.interval(values.to_numpy(dtype=float), level)
    return interval.mean, interval.half


def improved(
    table: pd.DataFrame, *, y: str | Sequence[str], baseline: object, at: str | None = None, by: str = "policy"
) -> pd.DataFrame:
    """Return a table of improvements: how much smaller numbers are than those of a baseline, in per cent.

    A run is compared with the baseline's run of the same replication, or with its only run.  An improvement is negative if the
    number is larger than the baseline's, and 0 % if both are 0.

    Args:
        table: a row for each run.
        y: the column to compare, or several.
        baseline: a value of ``by``, with which the others are compared.
        at: the factor within which runs are compared, such as the workload; by default there is one group.
        by: the factor that has ``baseline``.

    Returns:
        The rows of all but the baseline, with a column for each of ``y``; its name is the label in figures.

    Raises:
        SpecificationError: the baseline is missing, or 0 where another number is not, or the replications do not match.
    """
    columns, baseline = columns_of("y", y), level_text(baseline)
    points = points_of(table, columns, by, at)
    known = labels_of({by: points})
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
        for column in columns:
            old = base[column].to_numpy(dtype=float)
            old = old.repeat(len(new)) if len(base) == 1 else base[column].reindex(new.index).to_numpy(dtype=float)
            now = new[column].to_numpy(dtype=float)
            if ((old == 0) & (now != 0)).any():
                raise SpecificationError(f"baseline: {column} of {baseline!r} is 0, so {where} has no ratio to it")
            new[improvement_label(column, baseline)] = 100 * (
                1 - np.where(old == now, 1.0, now / np.where(old == now, 1.0, old))
            )
        parts.append(new)
    return pd.concat(parts).reset_index(drop=True)


def improvement_label(column: str, baseline: object) -> str:
    """Return the name of a column of :func:`improved`, which is its axis label."""
    name = (QUANTITIES.get(column) or named(column)).name
    return Quantity(name, "%").label(f"less than with {baseline}")


def by_size(results: Sequence[Result]) -> pd.DataFrame:
    """Return a table of small and large jobs (Zhang et al. 2003, section 2.2: of more than 32 nodes), two rows for each run.

    Args:
        results: the runs.

    Returns:
        Columns ``policy, workload, replication`` (the seed), ``size`` (``"small"``, ``"large"``), ``utilization``,
        ``mean_wait_s``, ``mean_response_s`` and ``mean_bounded_slowdown``.
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


def shown_value(value: object) -> str:
    """Return the text of a factor's value in a figure."""
    level = level_of(value)
    return f"{level:g}" if isinstance(level, float) else plain(level)
