"""Titles of figures of one run, and runs that cannot be drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clustermodel.errors import SpecificationError
from clustermodel.figures.style import plain

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result


def title_of(run: Result) -> str:
    """Return policy and workload of a run for a title."""
    return f"{plain(run.scenario.label)} on {plain(run.scenario.workload_name)}"


def require_drawable(run: Result, figure: str) -> None:
    """Refuse a run in which no job ran.

    Raises:
        SpecificationError: no job ran.
    """
    if not run.records.finished.any():
        raise SpecificationError(f"{figure}: no job ran; there is nothing to draw")
