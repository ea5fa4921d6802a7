"""Axis labels: names and units of measures and factors."""

from __future__ import annotations

from clustermodel.figures.style import plain
from clustermodel.measure.quantities import QUANTITIES, column_heading


def axis_label(column: str) -> str:
    """Return the axis label of a measure: a quantity's name and unit, or what the name of any other column says."""
    known = QUANTITIES.get(column)
    return known.label() if known else factor_label(column)


def factor_label(name: str) -> str:
    """Return the axis label of a factor: its name and the unit that the name ends in, also if a measure has the same name."""
    return plain(column_heading(name), longest=90)
