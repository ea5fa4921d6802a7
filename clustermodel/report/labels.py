"""Names on a page: short, visible and distinct labels of the levels of factors, and which factors have a scale."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Final, NamedTuple

from clustermodel.experiment.factors import Label
from clustermodel.figures.style import short, visible
from clustermodel.measure.quantities import named, quantity

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
        found = named(self.name)
        return found._replace(name=short(visible(found.name), LONGEST)).label()

    @property
    def places(self) -> list[float]:
        """Where the levels are on an axis: numbers at their values, others side by side."""
        return [float(level) if self.numeric else float(at) for at, level in enumerate(self.levels)]  # type: ignore[arg-type]

    def named(self, level: int) -> str:
        """Return a level outside a table: a number has the name of its factor."""
        return self.labels[level] if isinstance(self.levels[level], str) else f"{self.title} {self.labels[level]}"


def factor_of(name: str, levels: Sequence[Label]) -> Factor:
    """Return a factor with the labels of its levels."""
    numeric = len(levels) > 1 and all(isinstance(one, int | float) and not isinstance(one, bool) for one in levels)
    texts = [f"{one:.12g}" if isinstance(one, float) else str(one) for one in levels]
    if len(set(texts)) < len(texts):  # such as 1 and "1"
        texts = [repr(one) for one in levels]
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
        labels[name] = label if often[label] == 1 else next(one for one in numbered if one not in taken)
        taken.add(labels[name])
    return labels


def measure_title(name: str) -> str:
    """Return the name of a measure for readers, with its unit if that is seconds; for an unknown one what its column says."""
    known = quantity(name)
    if known is not None:
        return known.label() if known.unit in ("s", "node-seconds") else known.name
    found = named(name)
    return found._replace(name=short(visible(found.name), LONGEST)).label()


def literal(text: object) -> str:
    """Return text that Bokeh shows literally, without formulas."""
    return re.sub(r"(?<=\$)(?=\$)|(?<=\\)(?=[(\[])", "\u200b", str(text))
