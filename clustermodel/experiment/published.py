"""Comparison with published results: tables and figures that have the numbers of a paper, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clustermodel.errors import SpecificationError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


_PAPER = "paper, "


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
