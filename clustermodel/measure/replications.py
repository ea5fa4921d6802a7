"""Replications of the points of a study: which rows of its table count, and the means, differences and intervals over them.

Tables, pages and figures of studies have their numbers from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from clustermodel.arrays import BoolArray, FloatArray, IntArray
from clustermodel.measure.statistics import LEVEL, Estimates, checked_level, different_runs, estimates

Rows = Mapping[int, int]
"""Rows of the table at a point, by replication, in the order of the replications."""


class Group(NamedTuple):
    """Points with the same number of different runs; each point has one side, or two that are compared."""

    points: IntArray
    rows: IntArray
    """Rows of the table, shape ``(sides, points, runs)``."""
    resampled: BoolArray
    """Whether jobs are resampled, shape ``(points,)``."""


class Counted(NamedTuple):
    """The rows of a table that count at some points."""

    points: int
    groups: Sequence[Group]

    def estimates(
        self, numbers: FloatArray, level: float = LEVEL, value: Callable[..., FloatArray] = lambda numbers, *_: numbers
    ) -> Estimates:
        """Return the means of a column, or of what ``value`` makes of its numbers on both sides, with their intervals."""
        made = Estimates(
            np.full(self.points, np.nan), np.full(self.points, np.nan), np.zeros(self.points, np.int64),
            np.zeros(self.points, dtype=bool),
        )  # fmt: skip
        level = checked_level(level)
        for places, rows, resampled in self.groups:
            for whole, part in zip(made, estimates(value(*numbers[rows]), level, resampled), strict=True):
                whole[places] = part
        return made


def counted(points: Sequence[Sequence[Rows]], runs: Sequence[object], resampled: BoolArray) -> Counted:
    """Return the rows that count at points: those of the replications that all sides have, once for each different run.

    ``runs`` and ``resampled`` are columns of the table: what tells runs apart, and whether their jobs are resampled.
    """
    of_count: dict[int, list[tuple[int, list[tuple[int, ...]]]]] = {}
    for place, (first, *others) in enumerate(points):
        common = [number for number in first if all(number in of for of in others)]
        rows = [(first[number], *(of[number] for of in others)) for number in common]
        kept = [rows[each] for each in different_runs(tuple(str(runs[row]) for row in sides) for sides in rows)]
        of_count.setdefault(len(kept), []).append((place, kept))
    groups: list[Group] = []
    for count, of_points in of_count.items():
        places, kept_rows = zip(*of_points, strict=True)
        rows_of: IntArray = np.array(kept_rows, dtype=np.int64).reshape(len(places), count, len(points[0]))
        sides: IntArray = np.moveaxis(rows_of, 2, 0)
        groups.append(Group(np.array(places), sides, np.logical_or.reduce(resampled[sides], axis=(0, 2))))
    return Counted(len(points), groups)
