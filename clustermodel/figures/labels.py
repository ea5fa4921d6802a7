"""Axis labels: names and units of measures and factors."""

from __future__ import annotations

from clustermodel.figures.style import plain
from clustermodel.measure.quantities import QUANTITIES


def axis_label(column: str) -> str:
    """Return the axis label of a column: a quantity's name and unit, or the name of any other column, seconds as a unit."""
    known = QUANTITIES.get(column)
    if known:
        return known.label()
    name, seconds, _ = column.rpartition("_s")
    text = f"{name} (s)" if seconds and column.endswith("_s") else column
    return plain(text.replace("_", " ").strip() or column, longest=90)


def factor_label(name: str) -> str:
    """Return the axis label of a factor: its name; a name that ends in ``_s`` is a time in seconds."""
    stem = name.removesuffix("_s")
    return plain(stem.replace("_", " ").strip() or name, longest=90) + (" (s)" if stem not in {name, ""} else "")
