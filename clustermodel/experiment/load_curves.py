"""Curves of means over replications: a measure over utilization, as one factor raises the load; and where curves cross."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import inf, nan

import numpy as np

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError, quoted
from clustermodel.experiment.factors import Label
from clustermodel.experiment.study_table import StudyTable
from clustermodel.statistics import Interval


def load_curve(table: StudyTable, measure: str, along: str, **levels: Label) -> tuple[FloatArray, FloatArray]:
    """Return the mean utilization and the mean measure at each level of the factor that raises the load.

    Args:
        table: of an experiment.
        measure: a column of numbers.
        along: the factor that raises the load.
        levels: of the other factors.

    Returns:
        Two arrays of shape ``(levels of along,)``.

    Raises:
        SpecificationError: there is no such column or factor.
    """
    here = table.at(**levels) if levels else table
    points = [{along: level} for level in here.levels(along)]
    means = [[here.at(**point).interval(name).mean for point in points] for name in ("utilization", measure)]
    return np.array(means[0]), np.array(means[1])


def highest_utilization(table: StudyTable, along: str, **levels: Label) -> tuple[Label, Interval]:
    """Return the highest mean utilization that is reached, after the level of the factor that raises the load to it.

    Args:
        table: of an experiment.
        along: the factor that raises the load.
        levels: of the other factors.

    Raises:
        SpecificationError: there is no such factor.
    """
    here = table.at(**levels) if levels else table
    reached = [(level, here.at(**{along: level}).interval("utilization")) for level in here.levels(along)]
    return max(reached, key=lambda one: one[1].mean)


def utilization_at(table: StudyTable, measure: str, limit: float, along: str, **levels: Label) -> float:
    """Return the utilization at which a rising load curve reaches ``limit``, interpolated in the logarithm of the measure.

    Args:
        table: of an experiment.
        measure: a column of positive numbers.
        limit: the value to reach.
        along: the factor that raises the load.
        levels: of the other factors.

    Returns:
        ``inf`` if the curve stays below ``limit``, ``nan`` if it starts above.

    Raises:
        SpecificationError: there is no such column or factor.
    """
    utilization, values = load_curve(table, measure, along, **levels)
    above = np.flatnonzero(values > limit)
    if not len(above):
        return inf
    if above[0] == 0:
        return nan
    ends = slice(above[0] - 1, above[0] + 1)
    return float(np.interp(np.log(limit), np.log(values[ends]), utilization[ends]))


def break_even(table: StudyTable, measure: str, along: str, of: Mapping[str, Label], baseline: Mapping[str, Label]) -> float:
    """Return the lowest level of a factor, such as a cost, at which a measure is no longer below that of a baseline.

    Differences of means are paired by replication, and interpolated linearly between the levels.

    Args:
        table: of an experiment.
        measure: a column of numbers.
        along: the factor; its levels are numbers, in ascending order.
        of: levels of the other factors.
        baseline: those of the baseline.

    Returns:
        ``nan`` if the measure is not below at the first level, ``inf`` if it is below at all of them.

    Raises:
        SpecificationError: there is no such column or factor, or a level of the factor is not a number.
    """
    levels = table.levels(along)
    if wrong := [level for level in levels if isinstance(level, bool) or not isinstance(level, int | float)]:
        raise SpecificationError(f"break_even: {along} {quoted(wrong[0])} is not allowed; the levels must be numbers")
    above = [table.difference(measure, {**of, along: level}, {**baseline, along: level}).mean for level in levels]
    reached = np.flatnonzero(np.array(above) >= 0)
    if not len(reached):
        return inf
    if reached[0] == 0:
        return nan
    ends = slice(reached[0] - 1, reached[0] + 1)
    return float(np.interp(0, above[ends], np.array(levels, dtype=float)[ends]))


def overtaking(table: StudyTable, measure: str, along: str, first: dict[str, Label], second: dict[str, Label]) -> float:
    """Return the last utilization at which two load curves cross, so that the first is the lower one beyond.

    The curves are polygons through their points, with a logarithmic measure.

    Args:
        table: of an experiment.
        measure: a column of positive numbers.
        along: the factor that raises the load.
        first: levels of the other factors of the first curve.
        second: those of the second curve.

    Returns:
        ``nan`` if the curves do not cross in this direction.

    Raises:
        SpecificationError: there is no such column or factor.
    """
    (x, y), (other_x, other_y) = (load_curve(table, measure, along, **levels) for levels in (first, second))
    found = nan
    for (a, b), (c, d) in (
        (one, two)
        for one in pairwise(zip(x, np.log(y), strict=True))
        for two in pairwise(zip(other_x, np.log(other_y), strict=True))
    ):
        along_first, along_second, between = np.subtract(b, a), np.subtract(d, c), np.subtract(c, a)
        area = along_first[0] * along_second[1] - along_first[1] * along_second[0]
        if area <= 0:  # parallel, or crossing in the other direction
            continue
        place = (between[0] * along_second[1] - between[1] * along_second[0]) / area
        other = (between[0] * along_first[1] - between[1] * along_first[0]) / area
        if 0 <= place <= 1 and 0 <= other <= 1:
            found = float(a[0] + place * along_first[0])
    return found
