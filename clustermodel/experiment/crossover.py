"""Crossovers of two policies: where their metrics cross over one parameter, and a map over two parameters.

Responsible for the values at which paired differences are evaluated.  The user's function applies a parameter to a scenario, so
any quantity can be a parameter: context-switch fraction, C, Q, MPL, load.  The runs have common random numbers, so repeated
evaluations at a value give the same difference.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf, isfinite, isnan, nan
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clustermodel.errors import SpecificationError
from clustermodel.experiment.replicate import Mapper, Metric, run_all, seeds_of
from clustermodel.experiment.scenario import Scenario
from clustermodel.policies.interface import Policy
from clustermodel.policies.registry import policy_label
from clustermodel.statistics import LEVEL, Interval, checked_level, paired_difference
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


def crossover(
    make: Callable[[Any, Any, int], Scenario],
    low: float,
    high: float,
    policy_a: str | Policy,
    policy_b: str | Policy,
    metric: Metric = "mean_bounded_slowdown",
    *,
    step: float,
    first_look: int = 5,
    replications: int = 10,
    seed: int = 1,
    level: float = LEVEL,
    mapper: Mapper = map,
) -> Crossover:
    """Return the value of a parameter at which the mean metric of one policy crosses that of another.

    The paired mean difference is first evaluated at a few values from ``low`` to ``high``.  Bisection between the first
    neighbours with different signs finds the crossing, to one step.

    The interval is the set of values at which the paired t interval of the difference contains zero, also found by bisection.
    At the true crossing the expected difference is zero, so the set misses it as seldom as the t interval misses zero: the
    confidence is that of one t interval, however noisy single runs are, and even if some of them do not cross.  (The mean of
    the crossings of single replications would need each of them to cross once, and is biased if the curves are bent.)  The
    method assumes that the expected difference has one crossing between ``low`` and ``high``.

    Each evaluated value costs 2 x ``replications`` runs.  A crossing takes ``first_look`` values and about three bisections,
    which share most of their values.

    Args:
        make: ``make(value, policy, seed)`` returns a scenario.  Draw the workload from ``seed``, so that both policies get the
            same jobs.
        low: least value of the parameter.
        high: greatest value.
        policy_a: name or object.
        policy_b: name or object.
        metric: to compare: a number of the summary, or a function of the result.
        step: resolution; values are ``low``, ``low + step`` and so on, and ``high``.  Integers stay integers: give an integer
            parameter, such as Q or MPL, integer bounds and a step of 1.
        first_look: number of values to evaluate first, at least two.
        replications: at each value, at least two, with seeds ``seed``, ``seed + 1`` and so on.
        seed: of the first replication.
        level: the confidence level.
        mapper: runs the tasks; the ``map`` of a ``ProcessPoolExecutor`` uses several processors, if ``make`` can be pickled.

    Raises:
        SpecificationError: an argument is not allowed, or a run does not have the metric.
    """
    seeds, level = seeds_of(replications, seed, at_least=2), checked_level(level)

    def difference(value: float) -> Interval:
        tasks = [(value, policy, number) for policy in (policy_a, policy_b) for number in seeds]
        of_a, of_b = run_all(make, tasks, metric, mapper).reshape(2, len(seeds))
        return paired_difference(of_a, of_b, level)

    return crossing(difference, low, high, (policy_label(policy_a), policy_label(policy_b)), step=step, first_look=first_look)


def crossing(
    difference: Callable[[float], Interval],
    low: float,
    high: float,
    names: tuple[str, str],
    *,
    step: float,
    first_look: int = 5,
) -> Crossover:
    """Return the value at which a difference crosses zero, by the method of :func:`crossover`.

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
    for name, value in (("low", low), ("high", high)):
        require_number(name, value, "a finite number", isfinite)
    require_number("high", high, f"greater than low, {low}", lambda number: number > low)
    require_number("step", step, f"> 0, at most high - low, {high - low:g}", lambda number: 0 < number <= high - low)
    last = ceil((high - low) / step - 1e-9)  # a step that is a fraction may fit a rounding error less often
    if last > _MOST_STEPS:
        raise SpecificationError(f"step: {step} is not allowed; at most {_MOST_STEPS:,} steps can lie between low and high")
    first_look = require_whole("first_look", first_look, at_least=2)

    def value_of(place: int) -> float:
        return high if place == last else low + place * step

    differences_at: dict[int, Interval] = {}

    def evaluated(place: int) -> Interval:
        if place not in differences_at:
            differences_at[place] = difference(value_of(place))
        return differences_at[place]

    places = sorted({round(place) for place in np.linspace(0, last, first_look)})
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


def tradeoff_map(
    make: Callable[[Any, Any, Any, int], Scenario],
    values_x: Sequence[Any],
    values_y: Sequence[Any],
    policy_a: str | Policy,
    policy_b: str | Policy,
    metric: Metric = "mean_bounded_slowdown",
    *,
    replications: int = 10,
    seed: int = 1,
    level: float = LEVEL,
    mapper: Mapper = map,
) -> pd.DataFrame:
    """Return which of two policies has the lower metric over two parameters, with paired intervals.

    The intervals are of one difference each: of a hundred differences that are zero, five look as if they were not.

    Args:
        make: ``make(x, y, policy, seed)`` returns a scenario.  Draw the workload from ``seed``, so that both policies get the
            same jobs.
        values_x: of the first parameter.
        values_y: of the second.
        policy_a: name or object.
        policy_b: name or object.
        metric: what is compared: a number of the summary, or a function of the result.
        replications: at each point, at least two, with seeds ``seed``, ``seed + 1`` and so on.
        seed: of the first replication.
        level: the confidence level.
        mapper: runs the tasks; the ``map`` of a ``ProcessPoolExecutor`` uses several processors, if ``make`` can be pickled.

    Returns:
        A row for each point, the second parameter running faster.  Columns: ``x``, ``y``; ``lower``, the policy whose metric is
        significantly lower, empty if the interval contains zero; ``difference`` (mean of policy a - policy b), ``half``,
        ``low``, ``high`` in the unit of the metric; ``replications``.

    Raises:
        SpecificationError: an argument is not allowed, or a run does not have the metric.
    """
    import pandas as pd

    seeds, level = seeds_of(replications, seed, at_least=2), checked_level(level)
    points = [(x, y) for x in values_x for y in values_y]
    if not points:
        raise SpecificationError(f"values_x, values_y: {values_x!r}, {values_y!r} is not allowed; each needs a value")
    tasks = [(*point, policy, number) for point in points for policy in (policy_a, policy_b) for number in seeds]
    values = run_all(make, tasks, metric, mapper).reshape(len(points), 2, len(seeds))
    rows = []
    for (x, y), (of_a, of_b) in zip(points, values, strict=True):
        difference = paired_difference(of_a, of_b, level)
        lower = "" if 0 in difference else policy_label(policy_a if difference.mean < 0 else policy_b)
        rows.append({"x": x, "y": y, "lower": lower, **_row(difference)})
    return pd.DataFrame(rows)
