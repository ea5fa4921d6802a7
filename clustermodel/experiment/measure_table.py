"""A table of measures for people: a row for each point, a column for each measure, and published values beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from clustermodel.experiment.factors import Label
from clustermodel.experiment.published import with_published
from clustermodel.experiment.study_table import StudyTable
from clustermodel.statistics import LEVEL, Interval

if TYPE_CHECKING:
    import pandas as pd


class Scaled(NamedTuple):
    """A measure in another unit."""

    measure: str
    """A column of numbers."""
    scale: float
    """Factor by which its values are multiplied."""


Columns = Mapping[str, str | Scaled]
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

    Args:
        table: of an experiment.
        columns: the measures.
        by: the factors whose levels distinguish the rows, as for :meth:`StudyTable.means`.
        published: values of a paper, by level of the factor, of which there must be one.  A title for which there are any has
            a column ``"paper, TITLE"`` before that of the measure.
        level: the confidence level.

    Returns:
        The factors, then the measures: an :class:`~clustermodel.statistics.Interval`, the plain number of a single run, or an
        empty text where the measure is missing.

    Raises:
        SpecificationError: there is no such column or factor.
    """
    import pandas as pd

    specified = {title: one if isinstance(one, Scaled) else Scaled(one, 1.0) for title, one in columns.items()}
    rows = []
    for point in table.points(by):
        means = table.at(**point).means(*{one.measure for one in specified.values()}, by=list(point), level=level)
        found = means.iloc[0]
        row: dict[str, Any] = dict(point)
        for title, (measure, scale) in specified.items():
            mean, half = float(found[measure]), float(found[f"{measure}_half"])
            several = Interval(scale * mean, scale * half, level, int(found["replications"]))
            row[title] = "" if isnan(mean) else scale * mean if isnan(half) else several
        rows.append(row)
    frame = pd.DataFrame(rows, dtype=object)
    if not published:
        return frame
    return with_published(frame.set_index(frame.columns[0]), pd.DataFrame(dict(published)).T).reset_index()
