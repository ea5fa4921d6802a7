"""The outcome of a validation: where, over its factors, a formula agrees with the simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, log10, nan
from typing import TYPE_CHECKING, Any, NamedTuple

from clustermodel.equivalence import Equivalence
from clustermodel.experiment.factors import Label, describe, same_label
from clustermodel.experiment.study_table import StudyTable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class PointVerdict(NamedTuple):
    """The comparison of formula and simulation at one point."""

    levels: Mapping[str, Label]
    """The labels of the levels by factor."""
    found: Equivalence
    """The equivalence test."""


@dataclass(frozen=True)
class Verdicts:
    """Whether a formula agrees with the simulation, at each point of a validation."""

    name: str
    """The name of the validation."""
    quantity: str
    """What is compared: a column of the table, or the name of the function that measures it."""
    points: Sequence[PointVerdict]
    """In the order of the experiment; points at which no run is finished are left out."""
    table: StudyTable
    """The finished runs."""
    relative: bool
    """Whether differences and the margin are shares of the formula's value."""

    @property
    def holds(self) -> bool:
        """Whether formula and simulation agree at every point; ``False`` without any point."""
        return bool(self.points) and all(point.found.verdict == "agrees" for point in self.points)

    def at(self, **levels: Label) -> Equivalence:
        """Return the comparison at the first point with these levels of factors.

        Raises:
            KeyError: there is no such point.
        """
        for point in self.points:
            if all(name in point.levels and same_label(point.levels[name], label) for name, label in levels.items()):
                return point.found
        raise KeyError(f"{self.name}: no point has {describe(levels)}")

    @property
    def frame(self) -> pd.DataFrame:
        """The comparison at all points, a row each.

        Columns: the factors; ``formula``, the formula's value (the mean of its values, where it is computed from each run);
            ``simulated`` and ``half``, the simulated mean and half the width of the interval that decides; ``difference``,
            ``low``, ``high``: simulated - formula and its interval, and ``margin``, all four as shares of the formula's
            value, unless the margin is absolute; ``replications``; ``verdict``; and ``more``, the replications that are
            missing for a verdict (``nan`` if there is one).
        """
        import pandas as pd

        return pd.DataFrame([{**point.levels, **self._numbers(point.found)} for point in self.points])

    @property
    def shown(self) -> pd.DataFrame:
        """The frame for readers: factors with several levels, and texts of at most 80 columns in all."""
        import pandas as pd

        varying = [name for name in self.table.factors if len({str(point.levels[name]) for point in self.points}) > 1]
        rows = []
        for point in self.points:
            found = point.found
            numbers = {
                "formula": _number(found.expected, found.half),
                "simulated": _with_interval(found),
                "difference": _difference(found, relative=self.relative),
                "runs": found.count,
                "verdict": found.verdict if found.more is None else f"{found.verdict} (+{found.more:,})",
            }
            rows.append({**{name: point.levels[name] for name in varying}, **numbers})
        return pd.DataFrame(rows)

    @property
    def plot(self) -> Figure:
        """The formula's values and the simulated means over the factor; over two numeric factors a map of verdicts too."""
        from clustermodel.figures.validation import formula_and_simulation  # noqa: PLC0415  matplotlib takes a second to import

        return formula_and_simulation(self.frame, self.table.factors, quantity=self.quantity, relative=self.relative)

    def __str__(self) -> str:
        counts = {"agrees": 0, "differs": 0, "undecided": 0}
        for point in self.points:
            counts[point.found.verdict] += 1
        total = len(self.points)
        if not total:
            return f"{self.name}: no run is finished"
        said = ", ".join(f"{verdict} at {count}" for verdict, count in counts.items() if count)
        return f"{self.name}: {said} of {total} point{'s' if total != 1 else ''}"

    def _numbers(self, found: Equivalence) -> dict[str, Any]:
        unit = found.unit
        return {
            "formula": found.expected,
            "simulated": found.mean,
            "half": found.half,
            "difference": found.difference / unit,
            "low": found.low / unit,
            "high": found.high / unit,
            "margin": found.margin / unit,
            "replications": found.count,
            "verdict": found.verdict,
            "more": nan if found.more is None else found.more,
        }


def _number(value: float, half: float) -> str:
    """Return a number with two significant digits of its interval, but with four to six significant digits of its own."""
    digits = 1 - _exponent(half) if isfinite(half) and half > 0 else 9
    digits = min(max(digits, 3 - _exponent(value)), 5 - _exponent(value))
    return f"{value:,.{max(digits, 0)}f}" if -4 <= _exponent(value) < 15 else f"{value:.3g}"


def _with_interval(found: Equivalence) -> str:
    if not isfinite(found.half) or abs(found.half) < 1e-9 * found.unit:
        return _number(found.mean, found.half)
    digits = max(1 - _exponent(found.half), 0)
    return f"{found.mean:,.{digits}f} ± {found.half:,.{digits}f}"


def _exponent(value: float) -> int:
    return int(log10(abs(value)) // 1) if value and isfinite(value) else 0


def _difference(found: Equivalence, *, relative: bool) -> str:
    share = found.difference / found.unit
    if abs(share) < 1e-9:
        return f"{share:.0e}" if share else "0"
    return f"{100 * share:+.2f} %" if relative else f"{share:+.3g}"
