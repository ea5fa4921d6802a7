"""The points of a study, and the means, intervals, differences and verdicts that the page's scripts draw.

All numbers are made by :class:`~clustermodel.experiment.study_table.StudyTable`: they are those of its ``means`` and
``differences``.  The scripts of the page write and draw them, and compute none.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from clustermodel.arrays import FloatArray
from clustermodel.experiment.factors import Label, label_key
from clustermodel.experiment.study_table import StudyTable
from clustermodel.figures.maps import is_numeric
from clustermodel.figures.style import distinct, short, visible
from clustermodel.measure.metrics import quantity
from clustermodel.measure.quantities import Quantity, named
from clustermodel.report.plots import literal, looks

_LONGEST: Final = 36  # characters of a name beside curves, so that the curves fit a page 700 pixels wide
MOST_LEVELS: Final = 24  # of a factor whose levels may be baselines


class Factor(NamedTuple):
    """A factor of the study with its levels."""

    name: str
    levels: list[Label]
    labels: list[str]  # the levels as short, visible and distinct texts
    numeric: bool  # has a scale

    @property
    def title(self) -> str:
        """The factor's name for readers: ``quantum_s`` is ``quantum (s)``."""
        return title_of(named(self.name))

    @property
    def places(self) -> list[float]:
        """Where the levels are on an axis: numbers at their values, others side by side."""
        return [float(level) if self.numeric else float(index) for index, level in enumerate(self.levels)]  # type: ignore[arg-type]

    def named(self, level: int) -> str:
        """Return a level outside a table: a number has the name of its factor."""
        return self.labels[level] if isinstance(self.levels[level], str) else f"{self.title} {self.labels[level]}"


def factor_of(name: str, levels: Sequence[Label]) -> Factor:
    """Return a factor with the labels of its levels."""
    texts = [f"{level:.12g}" if isinstance(level, float) else str(level) for level in levels]
    if len(set(texts)) < len(texts):  # such as 1 and "1"
        texts = [repr(level) for level in levels]
    labels = short_labels(texts)
    return Factor(name, list(levels), [labels[text] for text in texts], is_numeric(levels))


def short_labels(names: Sequence[str]) -> dict[str, str]:
    """Return short, visible and distinct labels by name."""
    return dict(zip(names, distinct([short(visible(name), _LONGEST) for name in names]), strict=True))


def title_of(quantity: Quantity) -> str:
    """Return the name of a measure or a factor for readers, with its unit."""
    return quantity._replace(name=short(visible(quantity.name))).label()


class Replications:
    """The points of a study of at least one trial, in its order, with what its table says of their replications."""

    def __init__(self, table: StudyTable) -> None:
        self.table = table
        self.factors = [factor_of(name, table.levels(name)) for name in table.factors]
        places = [{label_key(level): index for index, level in enumerate(factor.levels)} for factor in self.factors]

        def codes(levels: Iterable[Label]) -> tuple[int, ...]:
            return tuple(place[label_key(level)] for place, level in zip(places, levels, strict=True))

        points = [codes(point.values()) for point in table.points(table.factors)]
        self.codes = np.array(points, dtype=np.int64).reshape(len(points), len(self.factors))
        """The level of each factor at each point, shape ``(points, factors)``."""
        known = {point: index for index, point in enumerate(points)}
        self.point_of_trial = np.array([known[codes(trial.point)] for trial in table.trials()], dtype=np.int64)

    @property
    def varying(self) -> list[int]:
        """The factors that have several levels; all, if none has."""
        several = [index for index, factor in enumerate(self.factors) if len(factor.levels) > 1]
        return several or list(range(len(self.factors)))

    @property
    def lead(self) -> int | None:
        """The factor whose levels have colours: the policy, or the last one that varies."""
        names = [self.factors[index].name for index in self.varying]
        return self.varying[names.index("policy") if "policy" in names else -1] if names else None

    def label(self, point: int, factors: Sequence[int]) -> str:
        """Return the levels that a point has of some factors, as text."""
        return ", ".join(self.factors[index].named(int(self.codes[point, index])) for index in factors)

    def has(self, measure: str) -> bool:
        """Return whether any run has a number for a measure."""
        frame = self.table.frame
        return measure in frame and bool(pd.to_numeric(frame[measure]).notna().any())


def study_data(study: Replications, measures: Sequence[str], shown: Sequence[str]) -> dict[str, Any]:
    """Return what ``curves.mjs``, ``differences.mjs`` and ``maps.mjs`` read; numbers that do not exist are ``None``.

    ``codes`` are the levels of the varying factors at each point, ``runs`` the numbers of its different runs; ``differences``
    of the measures ``shown`` are by factor and baseline; ``lead`` is the factor whose levels have colours, -1 if none varies.
    """
    varying = study.varying
    table = study.table
    estimates = {name: table.estimates(name, by=table.factors) for name in measures}
    factors = [
        {
            "name": factor.name, "title": factor.title, "labels": factor.labels, "literal": list(map(literal, factor.labels)),
            "places": factor.places, "numeric": factor.numeric, "styles": list(looks(factor.labels).values()),
        }
        for factor in (study.factors[index] for index in varying)
    ]  # fmt: skip
    return {
        "factors": factors,
        "lead": -1 if study.lead is None else varying.index(study.lead),
        "codes": study.codes[:, varying].tolist(),
        "runs": table.estimates("replication", by=table.factors).runs.tolist(),
        "measures": {
            name: {"title": title_of(quantity(name)), "mean": _plain(of.mean), "half": _plain(of.half)}
            for name, of in estimates.items()
        },
        "shown": list(shown),
        "differences": [_baselines(study, index, shown) for index in varying],
    }


def _baselines(study: Replications, of: int, shown: Sequence[str]) -> list[dict[str, Any]]:
    factor, table = study.factors[of], study.table
    baselines: list[dict[str, Any]] = []
    for baseline in factor.levels if 1 < len(factor.levels) <= MOST_LEVELS else []:
        measures, points = {}, []
        for name in shown:
            found = table.estimated_differences(name, factor.name, baseline, by=table.factors)
            points = found.points.tolist()
            measures[name] = {
                "difference": _plain(found.estimates.mean), "half": _plain(found.estimates.half),
                "relative": _plain(found.relative), "significant": found.significant.tolist(),
            }  # fmt: skip
        baselines.append({"points": points, "measures": measures})
    return baselines


def _plain(values: FloatArray) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.tolist()]
