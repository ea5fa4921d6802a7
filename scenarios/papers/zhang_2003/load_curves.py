"""Load curves, a measure over utilization as one factor raises the load, and where they cross; means over replications."""

from itertools import pairwise
from math import inf, nan

import numpy as np

from clustermodel import Interval, StudyTable
from clustermodel.arrays import FloatArray
from clustermodel.experiment.factors import Label


def load_curve(table: StudyTable, measure: str, along: str, **levels: Label) -> tuple[FloatArray, FloatArray]:
    """Return the mean utilization and the mean measure at each level of the factor that raises the load."""
    chosen = table.at(**levels) if levels else table
    points = [chosen.at(**{along: level}) for level in chosen.levels(along)]
    utilization, means = ([point.interval(name).mean for point in points] for name in ("utilization", measure))
    return np.array(utilization), np.array(means)


def highest_utilization(table: StudyTable, along: str, **levels: Label) -> tuple[Label, Interval]:
    """Return the highest mean utilization, after the level of the factor that raises the load to it."""
    chosen = table.at(**levels) if levels else table
    reached = [(level, chosen.at(**{along: level}).interval("utilization")) for level in chosen.levels(along)]
    return max(reached, key=lambda pair: pair[1].mean)


def utilization_at(table: StudyTable, measure: str, limit: float, along: str, **levels: Label) -> float:
    """Return the utilization at which a rising load curve reaches a limit, interpolated in the logarithm of the measure.

    It is ``inf`` if the curve stays below the limit, ``nan`` if it starts above.
    """
    utilization, values = load_curve(table, measure, along, **levels)
    above = np.flatnonzero(values > limit)
    if not len(above):
        return inf
    if above[0] == 0:
        return nan
    ends = slice(above[0] - 1, above[0] + 1)
    return float(np.interp(np.log(limit), np.log(values[ends]), utilization[ends]))


def overtaking(table: StudyTable, measure: str, along: str, first: dict[str, Label], second: dict[str, Label]) -> float:
    """Return the last utilization at which two load curves cross, so that the first is the lower one beyond, or ``nan``.

    The curves are polygons through their points, with a logarithmic measure.
    """
    (x, y), (other_x, other_y) = (load_curve(table, measure, along, **levels) for levels in (first, second))
    crossing = nan
    for (a, b), (c, d) in (
        (segment, other)
        for segment in pairwise(zip(x, np.log(y), strict=True))
        for other in pairwise(zip(other_x, np.log(other_y), strict=True))
    ):
        along_first, along_second, between = np.subtract(b, a), np.subtract(d, c), np.subtract(c, a)
        area = along_first[0] * along_second[1] - along_first[1] * along_second[0]
        if area <= 0:  # parallel, or crossing in the other direction
            continue
        place = (between[0] * along_second[1] - between[1] * along_second[0]) / area
        other = (between[0] * along_first[1] - between[1] * along_first[0]) / area
        if 0 <= place <= 1 and 0 <= other <= 1:
            crossing = float(a[0] + place * along_first[0])
    return crossing
