"""Tables of the page: columns, cells with the shown text and the exact value, which sorting and CSV files use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from clustermodel.figures.style import short, visible

MOST_ROWS: Final = 1000
"""Rows of a table of runs."""
_LONGEST: Final = 60


class Column(NamedTuple):
    """A column of a table."""

    name: str
    """In CSV files."""
    title: str
    """In the page."""
    numeric: bool = False


class TableCell(NamedTuple):
    """A cell of a table."""

    text: str
    value: str = ""
    """The exact value, if the text is not."""
    style: str = ""
    """Classes of the style sheet, separated by spaces."""


class HtmlTable(NamedTuple):
    """A table that readers can sort and download."""

    name: str
    """Of the element, and of the CSV file."""
    columns: Sequence[Column]
    rows: Sequence[Sequence[TableCell]]


def number_format(values: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]]) -> Callable[[float], str]:
    """Return how to write the numbers of a column: about four significant digits of the largest."""
    known = np.abs(np.asarray(values, dtype=float))
    known = known[np.isfinite(known)]
    largest = float(known.max(initial=0.0))
    whole = bool((known % 1 == 0).all())
    digits = 0 if whole or largest >= 10_000 else 1 if largest >= 100 else 2 if largest >= 10 else 4
    return lambda value: f"{value:,.{digits}f}" if np.isfinite(value) else "-"


def number_cells(values: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]], style: str = "") -> list[TableCell]:
    """Return the cells of a column of numbers."""
    shown = number_format(values)
    return [TableCell(shown(value), exact(value), style) for value in map(float, values)]


def text_cell(text: object) -> TableCell:
    """Return a cell with a text, which is shown short and on one line."""
    whole = visible(text)
    label = short(whole, _LONGEST)
    return TableCell(label, "" if label == whole else whole)


def exact(value: float) -> str:
    """Return a number with all its digits, an empty text for ``nan``."""
    return (
        "" if not np.isfinite(value) else str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))
    )


def from_columns(name: str, columns: Mapping[Column, Sequence[TableCell]]) -> HtmlTable:
    """Return a table from its columns."""
    return HtmlTable(name, list(columns), list(zip(*columns.values(), strict=True)))


def from_frame(name: str, frame: pd.DataFrame) -> HtmlTable:
    """Return a table of pandas; a named index becomes columns."""
    if any(level is not None for level in frame.index.names):
        frame = frame.reset_index()
    columns: dict[Column, Sequence[TableCell]] = {}
    for at, title in enumerate(frame.columns):
        values = frame.iloc[:, at]
        numeric = values.dtype.kind in "iuf"
        cells = number_cells(values.to_numpy(dtype=float)) if numeric else [text_cell(_known(value)) for value in values]
        columns[Column(visible(title), visible(str(title).replace("_", " ")), numeric)] = cells
    return from_columns(name, columns)


def _known(value: object) -> object:
    return "-" if value is None or value != value else value  # noqa: PLR0124  nan
