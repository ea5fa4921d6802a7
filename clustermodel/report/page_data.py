"""The means and differences that the page's scripts show, as JSON: each number is in the page once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypedDict

import numpy as np

from clustermodel.report.bokeh_parts import dash, marker, page_styles
from clustermodel.report.labels import literal, measure_title
from clustermodel.report.replications import Replications

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
    found: list[BaselineData] = []
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
        found.append({"points": points, "measures": measures})
    return found


def _plain(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.tolist()]
