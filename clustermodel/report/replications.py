"""The points of a study with their replications, as arrays: means and paired differences of all points at once.

The numbers are those of :meth:`StudyTable.means <clustermodel.experiment.study_table.StudyTable.means>` and
:meth:`~clustermodel.experiment.study_table.StudyTable.differences`, which select the rows of one point at a time: too slow
for a page that shows every measure of every point against every baseline.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.experiment.factors import Label
from clustermodel.experiment.study_table import StudyTable
from clustermodel.report.labels import factor_of
from clustermodel.statistics import LEVEL


class Estimates(NamedTuple):
    """Means with Student t intervals; shapes ``(points,)``."""

    mean: FloatArray
    """``nan`` where a replication lacks the measure."""
    half: FloatArray
    """Half the width of the interval, ``nan`` for a single replication."""
    runs: IntArray
    """The number of different runs."""

    @property
    def significant(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether the interval excludes zero."""
        return np.isfinite(self.half) & (np.abs(self.mean) > self.half)


class Differences(NamedTuple):
    """Paired differences between points and those that have the baseline's level instead; shapes ``(points,)``."""

    points: IntArray
    """The points that have another level than the baseline."""
    difference: Estimates
    relative: FloatArray
    """The difference of the means divided by the baseline's mean."""


class Replications:
    """The points of a study, in its order, with their replications.

    Args:
        table: of the study, with at least one trial.
        level: the confidence level.
    """

    def __init__(self, table: StudyTable, level: float = LEVEL) -> None:
        trials = table.trials()
        self._level = level
        self._frame = table.frame
        self.factors = [factor_of(name, table.levels(name)) for name in table.factors]
        """All factors."""
        places = [{_key(one): at for at, one in enumerate(factor.levels)} for factor in self.factors]
        rows = [tuple(place[_key(one)] for place, one in zip(places, trial.point, strict=True)) for trial in trials]
        known = {row: at for at, row in enumerate(dict.fromkeys(rows))}
        self.codes = np.array(list(known), dtype=np.int64).reshape(len(known), len(self.factors))
        """The level of each factor at each point, shape ``(points, factors)``."""
        self.point_of_trial = np.array([known[row] for row in rows], dtype=np.int64)
        """The point of each row of the table."""
        replications = {one: at for at, one in enumerate(sorted({trial.replication for trial in trials}))}
        self._columns = np.array([replications[trial.replication] for trial in trials], dtype=np.int64)
        self._shape = len(known), len(replications)
        runs = pd.factorize(table.frame["run"])[0]
        self._runs = np.full(self._shape, -1, dtype=np.int64)
        self._runs[self.point_of_trial, self._columns] = runs

    @property
    def varying(self) -> list[int]:
        """The factors that have several levels; all, if none has."""
        several = [at for at, factor in enumerate(self.factors) if len(factor.levels) > 1]
        return several or list(range(len(self.factors)))

    @property
    def lead(self) -> int | None:
        """The factor whose levels have colours: the policy, or the last one that varies."""
        names = [self.factors[at].name for at in self.varying]
        if not names:
            return None
        return self.varying[names.index("policy") if "policy" in names else -1]

    def label(self, point: int, factors: Sequence[int]) -> str:
        """Return the levels that a point has of some factors, as text."""
        return ", ".join(self.factors[at].named(int(self.codes[point, at])) for at in factors)

    def means(self, measure: str) -> Estimates:
        """Return the means of a measure at all points."""
        return self._estimated(self._values(measure), self._runs)

    def differences(self, measure: str, of: int, baseline: int) -> Differences:
        """Return the paired differences of a measure from the points that have another level of one factor.

        Args:
            measure: a column of numbers.
            of: the factor.
            baseline: its level with which the others are compared; points without a counterpart are left out.
        """
        known = {tuple(point): at for at, point in enumerate(self.codes.tolist())}
        pairs = []
        for at, point in enumerate(self.codes.tolist()):
            counterpart = known.get((*point[:of], baseline, *point[of + 1 :]))
            if point[of] != baseline and counterpart is not None:
                pairs.append((at, counterpart))
        first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        values, runs = self._values(measure), self._runs
        both = (runs[first] >= 0) & (runs[second] >= 0)
        pair_of_runs = np.where(both, runs[first] * (runs.max(initial=0) + 1) + runs[second], -1)
        found = self._estimated(values[first] - values[second], pair_of_runs)
        base = self._estimated(values[second], pair_of_runs).mean
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.where(base != 0, found.mean / base, np.nan)
        return Differences(first, found, relative)

    def has(self, measure: str) -> bool:
        """Return whether any run has a number for a measure."""
        return measure in self._frame and bool(pd.to_numeric(self._frame[measure]).notna().any())

    def _values(self, measure: str) -> FloatArray:
        values = np.full(self._shape, np.nan)
        values[self.point_of_trial, self._columns] = pd.to_numeric(self._frame[measure]).to_numpy(dtype=float)
        return values

    def _estimated(self, values: FloatArray, runs: IntArray) -> Estimates:
        """Return means and intervals over the columns of ``values``; equal runs of a row count once, -1 is no run."""
        counted = np.zeros(runs.shape, dtype=bool)
        for row, of_row in enumerate(runs):
            unique, first = np.unique(of_row, return_index=True)
            counted[row, first[unique >= 0]] = True
        count = counted.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(counted, values, 0.0).sum(axis=1) / count
            squares = np.where(counted, (values - mean[:, None]) ** 2, 0.0).sum(axis=1)
            deviation = np.sqrt(squares / (count - 1))
            half = stdtrit(np.maximum(count - 1, 1), (1 + self._level) / 2) * deviation / np.sqrt(count)
        return Estimates(mean, np.where(count > 1, half, np.nan), count)


def _key(level: Label) -> tuple[bool, Label]:
    return isinstance(level, bool), level
