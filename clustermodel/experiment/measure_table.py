"""Tables of measures for people: a row for each point, a column for each measure, and the published values before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

from clustermodel.errors import SpecificationError
from clustermodel.experiment.factors import Label
from clustermodel.experiment.study_table import StudyTable
from clustermodel.statistics import LEVEL, Interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_PAPER = "paper, "


class Scaled(NamedTuple):
    """A measure in another unit."""

    measure: str
    """A column of numbers."""
    scale: float
    """Factor by which its values are multiplied."""


@dataclass(frozen=True)
class Relative:
    """A measure compared with the same measure at other levels, paired by replication."""

    measure: str
    """A column of numbers."""
    to: Mapping[str, Label]
    """The levels of the baseline; it shares the other levels of the row."""
    ratio: bool = True
    """Divide by the baseline instead of subtracting it."""


Columns = Mapping[str, str | Scaled | Relative]
"""Measures by the titles of their columns."""
Published = Mapping[Label, Mapping[str, object]]
"""Published values by level of a factor and title of a column."""


def measure_table(
    table: StudyTable,
    columns: Columns,
    *,
    by: Sequence[str] | None = None,
    published: Published | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Return the means of measures with their intervals, and published values before them.

    A table in which every measure is :class:`Relative` has no rows of the baseline.

    Args:
        table: of an experiment.
        columns: the measures.
        by: the factors whose levels distinguish the rows, as for :meth:`StudyTable.means`.
        published: values of a paper, by level of the factor, of which there must be one.  A title for which there are any has
            a column ``"paper, TITLE"`` before that of the measure.
        level: the confidence level.

    Returns:
        The factors, then the measures: an :class:`~clustermodel.statistics.Interval`, or an empty text where the measure is
        missing.  A measure of which every point has a single run has plain numbers.

    Raises:
        SpecificationError: there is no such column or factor.
    """
    import pandas as pd

    rows = []
    for point in table.points(by):
        compared = [one for one in columns.values() if isinstance(one, Relative)]
        if len(compared) == len(columns) and all({**point, **one.to} == point for one in compared):
            continue
        row: dict[str, object] = dict(point)
        for title, one in columns.items():
            if isinstance(one, Relative):
                row[title] = table.difference(one.measure, point, {**point, **one.to}, ratio=one.ratio, level=level)
            else:
                row[title] = _mean(table.at(**point), one if isinstance(one, Scaled) else Scaled(one, 1.0), point, level)
        rows.append(row)
    for title, one in columns.items():
        halves = [cell.half for row in rows if isinstance(cell := row[title], Interval)]
        if not isinstance(one, Relative) and all(map(isnan, halves)):
            rows = [{**row, title: getattr(row[title], "mean", row[title])} for row in rows]
    frame = pd.DataFrame(rows, dtype=object)
    if not published:
        return frame
    return with_published(frame.set_index(frame.columns[0]), pd.DataFrame(dict(published)).T).reset_index()


def _mean(here: StudyTable, column: Scaled, point: Mapping[str, Label], level: float) -> Interval | str:
    found = here.means(column.measure, by=list(point), level=level).iloc[0]
    mean, half = (column.scale * float(found[name]) for name in (column.measure, f"{column.measure}_half"))
    return "" if isnan(mean) else Interval(mean, half, level, int(found["replications"]))


def with_published(found: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which each column with published values has them before it, as column ``"paper, column"``.

    Args:
        found: the results; the index identifies the rows.
        published: the published values, by the same index and columns.  Rows that it lacks are ``nan``; rows and columns that
            the results lack are left out.  If no row is in both, the results are returned as they are.

    Raises:
        SpecificationError: an index has a row twice.
    """
    for one in (found, published):
        if not one.index.is_unique:
            raise SpecificationError(
                f"with_published: {one.index[one.index.duplicated()][0]} is there twice; rows must be unique"
            )
    if not published.index.isin(found.index).any():
        return found
    beside = published.reindex(found.index)
    columns = {}
    for column in found:
        if column in published:
            columns[f"{_PAPER}{column}"] = beside[column]
        columns[str(column)] = found[column]
    return type(found)(columns)


def draw_with_published(table: pd.DataFrame, columns: Sequence[str], *, y: str, as_bars: bool = False) -> Figure:
    """Return a figure of columns of a table, and of their published values, over the table's index.

    Args:
        table: of :func:`with_published`; its index has names.
        columns: what to show, all of them the same quantity.
        y: the quantity, a column of the tables of experiments, such as ``"mean_wait_s"``.
        as_bars: draw bars instead of curves.
    """
    from clustermodel.figures.curves_bars import bars, curves  # noqa: PLC0415  matplotlib takes a second to import

    shown = table[[name for name in table if str(name).removeprefix(_PAPER) in columns]]
    x = " and ".join(map(str, shown.index.names))
    if shown.index.nlevels > 1:
        shown = shown.set_axis([", ".join(map(str, levels)) for levels in shown.index])
    rows = shown.rename_axis(x).reset_index().melt(id_vars=x, var_name="series", value_name=y).dropna().assign(replication=1)
    if as_bars:
        return bars(rows, y=y, x=x, by="series")
    return curves(rows, y=y, x=x, at=x, by="series")
