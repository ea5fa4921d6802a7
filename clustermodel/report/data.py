"""The points of a study with their replications, as arrays, and the means and differences that the page's scripts show.

The numbers are those of :meth:`StudyTable.means <clustermodel.experiment.study_table.StudyTable.means>` and
:meth:`~clustermodel.experiment.study_table.StudyTable.differences`, which select the rows of one point at a time: too slow
for a page that shows every measure of every point against every baseline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Final, NamedTuple, TypedDict

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.experiment.factors import Label
from clustermodel.experiment.study_table import StudyTable
from clustermodel.figures.style import short, visible
from clustermodel.measure.quantities import named, quantity
from clustermodel.report.plots import dash, literal, marker, page_styles
from clustermodel.statistics import LEVEL

LONGEST: Final = 36
"""Characters of a name beside curves, so that the curves fit a page 700 pixels wide."""


class Factor(NamedTuple):
    """A factor of the study with its levels."""

    name: str
    levels: list[Label]
    labels: list[str]
    """The levels as short, visible and distinct texts."""
    numeric: bool
    """Whether the levels are numbers, which have a scale."""

    @property
    def title(self) -> str:
        """The factor's name for readers: ``quantum_s`` is ``quantum (s)``."""
        said = named(self.name)
        return said._replace(name=short(visible(said.name), LONGEST)).label()

    @property
    def places(self) -> list[float]:
        """Where the levels are on an axis: numbers at their values, others side by side."""
        return [float(level) if self.numeric else float(at) for at, level in enumerate(self.levels)]  # type: ignore[arg-type]

    def named(self, level: int) -> str:
        """Return a level outside a table: a number has the name of its factor."""
        return self.labels[level] if isinstance(self.levels[level], str) else f"{self.title} {self.labels[level]}"


def factor_of(name: str, levels: Sequence[Label]) -> Factor:
    """Return a factor with the labels of its levels."""
    numeric = len(levels) > 1 and all(isinstance(level, int | float) and not isinstance(level, bool) for level in levels)
    texts = [f"{level:.12g}" if isinstance(level, float) else str(level) for level in levels]
    if len(set(texts)) < len(texts):  # such as 1 and "1"
        texts = [repr(level) for level in levels]
    labels = short_labels(texts)
    return Factor(name, list(levels), [labels[text] for text in texts], numeric)


def short_labels(names: Iterable[str]) -> dict[str, str]:
    """Return short, visible and distinct labels of names, by name."""
    shown = {name: short(visible(name), LONGEST) for name in names}
    often = Counter(shown.values())
    taken = set(shown.values())
    labels = {}
    for name, label in shown.items():
        numbered = (f"{label} ({number})" for number in count(1))
        labels[name] = label if often[label] == 1 else next(text for text in numbered if text not in taken)
        taken.add(labels[name])
    return labels


def measure_title(name: str) -> str:
    """Return the name of a measure for readers, with its unit if that is seconds; for an unknown one what its column says."""
    known = quantity(name)
    if known is not None:
        return known.label() if known.unit in ("s", "node-seconds") else known.name
    said = named(name)
    return said._replace(name=short(visible(said.name), LONGEST)).label()


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
        places = [{_key(level): at for at, level in enumerate(factor.levels)} for factor in self.factors]
        rows = [tuple(place[_key(level)] for place, level in zip(places, trial.point, strict=True)) for trial in trials]
        known = {row: at for at, row in enumerate(dict.fromkeys(rows))}
        self.codes = np.array(list(known), dtype=np.int64).reshape(len(known), len(self.factors))
        """The level of each factor at each point, shape ``(points, factors)``."""
        self.point_of_trial = np.array([known[row] for row in rows], dtype=np.int64)
        """The point of each row of the table."""
        replications = {replication: at for at, replication in enumerate(sorted({trial.replication for trial in trials}))}
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
        difference = self._estimated(values[first] - values[second], pair_of_runs)
        base = self._estimated(values[second], pair_of_runs).mean
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.where(base != 0, difference.mean / base, np.nan)
        return Differences(first, difference, relative)

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


MOST_LEVELS: Final = 24
"""Levels of a factor whose levels may be baselines."""


class LevelStyle(TypedDict):
    """The look of a level as a curve."""

    colour: str
    dash: str
    marker: str


class FactorData(TypedDict):
    """A factor that varies."""

    name: str
    title: str
    labels: list[str]
    literal: list[str]
    """The labels for Bokeh."""
    places: list[float]
    numeric: bool
    styles: list[LevelStyle]


class MeasureData(TypedDict):
    """A measure at all points; ``None`` where it has no value."""

    title: str
    mean: list[float | None]
    half: list[float | None]


class DifferenceData(TypedDict):
    """The paired differences of a measure from a baseline, at ``BaselineData.points``."""

    difference: list[float | None]
    half: list[float | None]
    relative: list[float | None]
    significant: list[bool]


class BaselineData(TypedDict):
    """The differences of all shown measures from one level of one factor."""

    points: list[int]
    measures: dict[str, DifferenceData]


class StudyData(TypedDict):
    """What ``curves.mjs``, ``differences.mjs`` and ``maps.mjs`` read."""

    factors: list[FactorData]
    lead: int
    """The factor whose levels have colours, -1 if no factor varies."""
    codes: list[list[int]]
    """The level of each factor at each point."""
    runs: list[int]
    """The number of different runs of each point."""
    measures: dict[str, MeasureData]
    shown: list[str]
    """The measures of tables of differences."""
    differences: list[list[BaselineData]]
    """By factor and baseline; empty for a factor with too many levels."""


def study_data(study: Replications, measures: Sequence[str], shown: Sequence[str]) -> StudyData:
    """Return the data of the page's scripts.

    Args:
        study: its points.
        measures: columns to draw.
        shown: columns to compare with baselines.
    """
    varying = study.varying
    estimates = {name: study.means(name) for name in measures}
    return {
        "factors": [_factor_data(study, at) for at in varying],
        "lead": -1 if study.lead is None else varying.index(study.lead),
        "codes": study.codes[:, varying].tolist(),
        "runs": np.max([of.runs for of in estimates.values()], axis=0).tolist(),
        "measures": {
            name: {"title": measure_title(name), "mean": _plain(of.mean), "half": _plain(of.half)}
            for name, of in estimates.items()
        },
        "shown": list(shown),
        "differences": [_baselines(study, at, shown) for at in varying],
    }


def _factor_data(study: Replications, at: int) -> FactorData:
    factor = study.factors[at]
    return {
        "name": factor.name,
        "title": factor.title,
        "labels": factor.labels,
        "literal": [literal(label) for label in factor.labels],
        "places": factor.places,
        "numeric": factor.numeric,
        "styles": [
            {"colour": style.colour, "dash": dash(style), "marker": marker(style)}
            for style in page_styles(factor.labels).values()
        ],
    }


def _baselines(study: Replications, of: int, shown: Sequence[str]) -> list[BaselineData]:
    levels = len(study.factors[of].levels)
    if not 1 < levels <= MOST_LEVELS:
        return []
    baselines: list[BaselineData] = []
    for baseline in range(levels):
        measures: dict[str, DifferenceData] = {}
        points: list[int] = []
        for name in shown:
            points_of, difference, relative = study.differences(name, of, baseline)
            points = points_of.tolist()
            measures[name] = {
                "difference": _plain(difference.mean),
                "half": _plain(difference.half),
                "relative": _plain(relative),
                "significant": difference.significant.tolist(),
            }
        baselines.append({"points": points, "measures": measures})
    return baselines


def _plain(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.tolist()]
