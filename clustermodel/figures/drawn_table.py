"""Levels of factors, and the factors of an experiment's table that vary."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clustermodel.experiment.study_table import StudyTable

Level = bool | int | float | str | None
"""A level of a factor."""


def varying(table: StudyTable) -> list[str]:
    """Return the factors that have several levels."""
    return list(next(iter(table.points()), {}))
