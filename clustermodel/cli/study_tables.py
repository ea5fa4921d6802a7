"""Tables of experiments for the terminal: means with intervals, and any table of pandas."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from re import fullmatch
from typing import TYPE_CHECKING, Final

import numpy as np
from rich.table import Table

from clustermodel.figures.terminal import literal

if TYPE_CHECKING:
    import pandas as pd

    from clustermodel.experiment.study_table import StudyTable

_BORDER: Final = 3
"""Characters around the text of a column."""
_NUMBER: Final = r"[-+]?[0-9][-+0-9,.e]*( %)?|-"
"""A number as a table shows it."""


def means_table(table: StudyTable, measures: Sequence[str]) -> pd.DataFrame:
    """Return a table of means for people: a row for each point, each mean with half its interval's width.

    Raises:
        SpecificationError: there is no such column.
    """
    means = table.means(*measures)
    for measure in measures:
        halves = means.pop(f"{measure}_half")
        means[measure] = _aligned(means[measure].tolist(), halves.tolist())
    counts = means.pop("replications")
    return means.assign(replications=counts)


def _aligned(means: Sequence[float], halves: Sequence[float]) -> list[str]:
    """Return ``mean ± half`` for each row, with the signs below each other."""
    pairs = zip(means, halves, strict=True)
    rows = [(_shown_cell(mean), "" if isnan(mean) or isnan(half) else _four_digits(half)) for mean, half in pairs]
    wide = max((len(half) for _, half in rows), default=0)
    if not wide:
        return [mean for mean, _ in rows]
    return [f"{mean} ± {half:>{wide}}" if half else mean + " " * (wide + 3) for mean, half in rows]


def fitting(frame: pd.DataFrame, width: int, measures: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return a table without the last measures that do not fit a terminal, and their names; the first measure stays.

    Args:
        frame: the table.
        width: of the terminal, characters.
        measures: columns that may be left out.
    """
    left_out: list[str] = []
    widths = {str(name): _width(frame, str(name)) for name in frame.columns}
    for name in reversed(measures[1:]):
        if sum(widths.values()) + 1 <= width:
            break
        left_out.insert(0, name)
        del widths[name]
    return frame.drop(columns=left_out), left_out


def _width(frame: pd.DataFrame, name: str) -> int:
    heading = max(map(len, _heading(name).split()), default=0)
    return max([heading, *(len(_shown_cell(value)) for value in frame[name].tolist())]) + _BORDER


def _heading(name: str) -> str:
    return name.replace("_", " ")


def frame_table(frame: pd.DataFrame, title: str) -> Table:
    """Return a pandas table as a table of the terminal."""
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    shown = Table(title=literal(title), title_justify="left")
    for name in frame.columns:
        number = _is_numeric(frame[name])  # headings are wrapped before numbers
        least = _width(frame, str(name)) - _BORDER if number else None
        shown.add_column(literal(_heading(str(name))), justify="right" if number else "left", min_width=least)
    for row in frame.itertuples(index=False):
        shown.add_row(*(literal(_shown_cell(value)) for value in row))
    return shown


def _is_numeric(column: pd.Series) -> bool:
    """Return whether a column has numbers, or means with intervals."""
    if column.dtype.kind in "iuf":
        return True
    values = [value for value in column.tolist() if value is not None]
    if any(isinstance(value, bool) for value in values):
        return False
    texts = [value for value in values if isinstance(value, str)]
    return bool(values) and all(" ± " in text or fullmatch(_NUMBER, text) for text in texts)


def _shown_cell(value: object) -> str:
    if value is None or (isinstance(value, float) and isnan(value)):
        return "-"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return _four_digits(value) if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _four_digits(value: float) -> str:
    if value and not 1e-4 <= abs(value) < 1e15:
        return f"{value:.3e}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
