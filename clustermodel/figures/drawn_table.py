"""What figures read of an experiment's table, as a Protocol: figures need no experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import pandas as pd

Level = bool | int | float | str | None
"""A level of a factor."""


class DrawnTable(Protocol):
    """A table of an experiment, such as a :class:`~clustermodel.experiment.study_table.StudyTable`."""

    frame: pd.DataFrame
    """A row for each finished trial."""
    factors: tuple[str, ...]
    """The names of the columns that are factors."""

    def at(self, **levels: Any) -> DrawnTable:
        """Return the trials that have these levels of factors."""

    def levels(self, factor: str) -> list[Level]:
        """Return the levels of a factor."""

    def points(self, by: Sequence[str] | None = None) -> list[dict[str, Level]]:
        """Return the points, as levels by factor."""

    def means(self, *measures: str, by: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the means of measures, a row for each point."""

    def differences(self, measure: str, of: str, baseline: Any, *, ratio: bool = False, level: float = ...) -> pd.DataFrame:
        """Return the paired differences of a measure from a baseline, a row for each point."""

    def lowest(self, measure: str, of: str = "policy", *, level: float = ...) -> pd.DataFrame:
        """Return which levels of a factor have the lowest mean, a row for each point of the other factors."""


def varying(table: DrawnTable) -> list[str]:
    """Return the factors that have several levels."""
    return list(next(iter(table.points()), {}))
