"""Where a difference crosses zero: the search among the values of a parameter, and what it finds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf, isfinite, isnan, nan
from typing import TYPE_CHECKING, Final

import numpy as np

from clustermodel.errors import SpecificationError
from clustermodel.statistics import Interval
from clustermodel.validation import require_number, require_whole

if TYPE_CHECKING:
    import pandas as pd

_MOST_STEPS: Final = 1_000_000


@dataclass(frozen=True)
class Crossover:
    """Where the metric of two policies crosses.

    *Lower* does not mean *better*: lower waits, slowdowns and losses are better, lower utilization is worse.
    """

    lower_before: str | None
    """The policy with the lower mean at the low end of the range; ``None`` if the means are equal at all evaluated values."""
    lower_after: str | None
    """The policy with the lower mean beyond the crossing; the same as before without a crossing."""
    at: float
    """The crossing of the means, interpolated within a step (5.4 of an integer parameter means: up to 5 and from 6 on); ``nan``
    without a crossing."""
    low: float
    """Largest value below the crossing where the first policy is significantly lower, ``-inf`` if it never is; ``nan`` without
    a crossing."""
    high: float
    """Smallest value above the crossing where the other policy is significantly lower, ``inf`` if it never is; ``nan`` without
    a crossing."""
    changes: int
    """Number of sign changes between the values evaluated first.  With more than one, this is the first crossing; search other
    ranges for the others."""
    differences: Mapping[float, Interval]
    """Paired differences, policy a - policy b, at all evaluated values, in ascending order."""

    @property
    def certain(self) -> bool:
        """Whether the interval is bounded on both sides; without a crossing, whether all differences are significant."""
        if isnan(self.at):
            return not any(0 in difference for difference in self.differences.values())
        return isfinite(self.low) and isfinite(self.high)

    @property
    def frame(self) -> pd.DataFrame:
        """The evaluated differences: a row for each value; columns ``difference, half, low, high, replications``."""
        import pandas as pd

        rows = {value: _row(difference) for value, difference in self.differences.items()}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("value")

    @property
    def summary(self) -> pd.DataFrame:
        """The crossing as a table of one row."""
        import pandas as pd

        row = {
            "lower before": self.lower_before, "lower after": self.lower_after, "crossing": self.at, "low": self.low,
            "high": self.high, "sign changes": self.changes, "certain": self.certain, "conclusion": str(self),
        }  # fmt: skip
        return pd.DataFrame([row])

    def __str__(self) -> str:
        if self.lower_before is None:
            return "equal throughout"
        if isnan(self.at):
            return f"{self.lower_before} is lower throughout{'' if self.certain else ', not significantly everywhere'}"
        return (
            f"{self.lower_before} is lower up to {self.at:.4g} (interval {self.low:.4g} to {self.high:.4g}), "
            f"{self.lower_after} beyond"
        )


def _by_value(differences_at: Mapping[int, Interval], value_of: Callable[[int], float]) -> dict[float, Interval]:
    return {value_of(place): differences_at[place] for place in sorted(differences_at)}


def _row(of: Interval) -> dict[str, float]:
    return {"difference": of.mean, "half": of.half, "low": of.low, "high": of.high, "replications": of.count}


def crossing(
    difference: Callable[[float], Interval],
    low: float,
    high: float,
    names: tuple[str, str],
    *,
    step: float,
    first_look: int = 5,
) -> Crossover:
    """Return the value at which a difference crosses zero, by the method of ``crossover.CrossoverStudy``.

    Args:
        difference: of a metric of two policies at a value of the parameter; called once for each value.
        low: least value of the parameter.
        high: greatest value.
        names: of the two policies.
        step: resolution.
        first_look: number of values to evaluate first.

    Raises:
        SpecificationError: an argument is not allowed.
    """
    last = steps_between(low, high, step)
    first_look = require_whole("first_look", first_look, at_least=2)
    value_of = values_between(low, high, step)
    differences_at: dict[int, Interval] = {}

    def evaluated(place: int) -> Interval:
        if place not in differences_at:
            differences_at[place] = difference(value_of(place))
        return differences_at[place]

    places = first_places(last, first_look)
    signs = [(place, 1 if evaluated(place).mean > 0 else -1) for place in places if evaluated(place).mean]
    changed = [(before, after) for before, after in pairwise(signs) if before[1] != after[1]]
    if not changed:
        before = None if not signs else names[0 if signs[0][1] < 0 else 1]
        return Crossover(before, before, nan, nan, nan, 0, _by_value(differences_at, value_of))

    (left, sign), (right, _) = changed[0]

    def mean(place: int) -> float:
        """Return the difference, turned so that it goes from negative to positive."""
        return -sign * evaluated(place).mean

    def clearly_before(place: int) -> bool:
        return mean(place) < 0 and 0 not in evaluated(place)

    def clearly_after(place: int) -> bool:
        return mean(place) > 0 and 0 not in evaluated(place)

    def first(holds: Callable[[int], bool], start: int, end: int) -> int:
        """Return the first place at which something holds that does not at ``start`` and does at ``end``."""
        return start + 1 + bisect_left(range(start + 1, end), True, key=holds)

    after = first(lambda place: mean(place) >= 0, left, right)
    below = [place for place in sorted(differences_at) if place < after and clearly_before(place)]
    above = [place for place in sorted(differences_at) if place >= after and clearly_after(place)]
    interval_low = value_of(first(lambda place: not clearly_before(place), below[-1], after) - 1) if below else -inf
    interval_high = value_of(first(clearly_after, after - 1, above[0])) if above else inf
    fraction = mean(after - 1) / (mean(after - 1) - mean(after))
    at = value_of(after - 1) + fraction * (value_of(after) - value_of(after - 1))
    order = names if sign < 0 else names[::-1]
    return Crossover(*order, at, interval_low, interval_high, len(changed), _by_value(differences_at, value_of))


def steps_between(low: float, high: float, step: float) -> int:
    """Return the number of steps from low to high.

    Args:
        low: least value.
        high: greatest value.
        step: resolution.

    Raises:
        SpecificationError: a value is not allowed.
    """
    for name, value in (("low", low), ("high", high)):
        require_number(name, value, "a finite number", isfinite)
    require_number("high", high, f"greater than low, {low}", lambda number: number > low)
    require_number("step", step, f"> 0, at most high - low, {high - low:g}", lambda number: 0 < number <= high - low)
    last = ceil((high - low) / step - 1e-9)  # a step that is a fraction may fit a rounding error less often
    if last > _MOST_STEPS:
        raise SpecificationError(f"step: {step} is not allowed; at most {_MOST_STEPS:,} steps can lie between low and high")
    return last


def values_between(low: float, high: float, step: float) -> Callable[[int], float]:
    """Return the function that gives the value after a number of steps from low; the last one is high.

    Args:
        low: least value.
        high: greatest value.
        step: resolution.

    Raises:
        SpecificationError: a value is not allowed.
    """
    last = steps_between(low, high, step)
    return lambda place: high if place == last else low + place * step


def first_places(last: int, first_look: int) -> list[int]:
    """Return the numbers of steps after which a search first looks, evenly spaced from 0 to ``last``."""
    return sorted({round(place) for place in np.linspace(0, last, first_look)})
