"""Trade-offs: the value of a factor at which the measures of two policies cross, and maps of winners over two factors."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import ceil, inf, isfinite, isnan, nan
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clustermodel.errors import SpecificationError, visible
from clustermodel.experiment.design import Draw, Levels, Tabulate
from clustermodel.experiment.factors import Factors, Trial
from clustermodel.experiment.scenario import Scenario
from clustermodel.experiment.study import Experiment, Study
from clustermodel.experiment.study_table import StudyTable
from clustermodel.measure.quantities import named
from clustermodel.measure.statistics import LEVEL, Interval, checked_level
from clustermodel.policies.interface import Policy
from clustermodel.text.formatting import escaped, html_table
from clustermodel.validation import flag, require, require_number, require_whole, whole_fields

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_MOST_STEPS: Final = 1_000_000
_MOST_TIMES: Final = 10  # as many replications as there are: more of them are not recommended
_CAUTION: Final = 1.3  # factor of the replications that a difference of this size needs: it may be smaller


@dataclass(frozen=True)
class Crossover:
    """Where the metric of two policies crosses; *lower* does not mean *better*.

    The crossing and its interval are ``nan`` where there is none.
    """

    lower_before: str | None
    """The policy with the lower mean at the low end of the range; ``None`` if the means are equal at all evaluated values."""
    lower_after: str | None
    """The policy with the lower mean beyond the crossing; the same as before without a crossing."""
    at: float
    """The crossing of the means, interpolated within a step (5.4 of an integer parameter means: up to 5 and from 6 on)."""
    low: float
    """Largest value below the crossing where the first policy is significantly lower, ``-inf`` if it never is."""
    high: float
    """Smallest value above the crossing where the other policy is significantly lower, ``inf`` if it never is."""
    changes: int
    """Number of sign changes between the values evaluated first; with more than one, this is the first crossing."""
    differences: Mapping[float, Interval]
    """Paired differences, policy a - policy b, at all evaluated values, in ascending order; of logarithms with ``ratios``."""
    policies: tuple[str, str] = ("a", "b")
    """Policies a and b."""
    along: str = "value"
    """The factor."""
    measure: str = "measure"
    """The column that is compared."""
    ratios: bool = False
    """Whether logarithms are compared, so that differences are those of ratios, policy a / policy b."""
    unit: str = ""
    """The unit of the factor."""

    @property
    def certain(self) -> bool:
        """Whether the interval is bounded on both sides; without a crossing, whether all differences are significant."""
        if isnan(self.at):
            return all(difference.excludes(0) for difference in self.differences.values())
        return isfinite(self.low) and isfinite(self.high)

    @property
    def frame(self) -> pd.DataFrame:
        """The evaluated differences: a row for each value; columns ``difference, half, low, high, replications``.

        With ``ratios`` the columns are ``ratio, low, high, replications``.
        """
        import pandas as pd

        columns = ["difference", "half", "low", "high", "replications"]
        rows = [(of.mean, of.half, of.low, of.high, of.count) for of in self.differences.values()]
        frame = pd.DataFrame(rows, index=pd.Index(list(self.differences), name="value"), columns=columns)
        if not self.ratios:
            return frame
        frame[["difference", "low", "high"]] = np.exp(frame[["difference", "low", "high"]])
        return frame.drop(columns="half").rename(columns={"difference": "ratio"})

    @property
    def summary(self) -> pd.DataFrame:
        """The crossing as a table of one row."""
        import pandas as pd

        row = {
            "lower before": self.lower_before, "lower after": self.lower_after, "crossing": self.at, "low": self.low,
            "high": self.high, "sign changes": self.changes, "certain": self.certain, "conclusion": str(self),
        }  # fmt: skip
        return pd.DataFrame([row])

    @property
    def plot(self) -> Figure:
        """The evaluated differences or ratios over the factor, with the crossing and its interval."""
        from clustermodel.figures.study_plots import difference_curve  # noqa: PLC0415  matplotlib takes a second to import

        factor = self.along if not self.unit or named(self.along).unit else f"{named(self.along).name} ({self.unit})"
        crossing = (self.at, self.low, self.high)
        return difference_curve(self.frame, crossing, along=factor, measure=self.measure, policies=self.policies)

    def _repr_html_(self) -> str:
        """Return the answer for a notebook, with the differences or ratios that it follows from."""
        heading = f"{_title(self.measure, self.policies, ratios=self.ratios)}: {self}"
        table = self.frame.rename_axis(self.along).reset_index()
        below = f"<div>{escaped(self.advice)}</div>" if self.advice else ""
        return html_table(heading, [(str(name), table[name].tolist()) for name in table]) + below

    @property
    def advice(self) -> str:
        """What would make the answer certain, empty if it is: the number of replications is estimated from the intervals."""
        (first, at_first), *_, (last, at_last) = self.differences.items()
        beyond = {"below": f"below {self._in_unit(first)}", "above": f"above {self._in_unit(last)}"}
        if self.lower_before is None:
            return "at no value do the means differ; this factor may not matter to these policies"
        if isnan(self.at) and self.certain:
            nearer = beyond["below" if abs(at_first.mean) < abs(at_last.mean) else "above"]
            return f"no crossing from {first:.4g} to {self._in_unit(last)}: try values {nearer}"
        if self.certain:
            return ""
        if isnan(self.at):
            what, sides, doubtful = "not certain", list(beyond), [[of] for of in self.differences.values()]
        else:
            sides = [side for side, bound in (("below", self.low), ("above", self.high)) if not isfinite(bound)]
            what = f"unbounded {' and '.join(sides)}"
            doubtful = [[of for at, of in self.differences.items() if (at > self.at) == (side == "above")] for side in sides]
        if at_first.of_one_log:  # resamples do not narrow an interval of sample paths
            return f"{what}: the jobs are of one log; a longer one would tell more, more replications would not"
        needed = max(min(map(_replications_needed, of), default=inf) for of in doubtful)
        if needed > _MOST_TIMES * at_first.count:
            return f"{what}: the policies hardly differ there; try values {' or '.join(beyond[side] for side in sides)}"
        return f"{what}: try replications={max(10 * ceil(needed / 10), 10 + at_first.count)}"

    def _in_unit(self, value: float) -> str:
        return f"{value:.4g}{self.unit and ' '}{self.unit}"

    @property
    def _interval(self) -> str:
        if isfinite(self.low) and isfinite(self.high):
            return f"interval {self.low:.4g} to {self.high:.4g}"
        open_above = f"from {self.low:.4g} on" if isfinite(self.low) else "unbounded"
        return f"interval {f'up to {self.high:.4g}' if isfinite(self.high) else open_above}"

    def __str__(self) -> str:
        if self.lower_before is None:
            return "equal throughout"
        if isnan(self.at):
            where = "" if self.certain else ", not significantly everywhere"
            if not any(difference.excludes(0) for difference in self.differences.values()):
                where = ", nowhere significantly"
            return visible(f"{self.lower_before} is lower throughout{where}")
        return visible(
            f"{self.lower_before} is lower up to {self._in_unit(self.at)} ({self._interval}), {self.lower_after} beyond"
        )


def _title(measure: str, policies: tuple[str, str], *, ratios: bool) -> str:
    return f"{measure}: {(' / ' if ratios else ' - ').join(policies)}"


def _replications_needed(difference: Interval) -> float:
    """Return how many replications make a difference significant, if its mean and its deviation are as they are now."""
    if not difference.mean:
        return inf
    return _CAUTION * difference.count * (difference.half / difference.mean) ** 2


@dataclass(frozen=True, kw_only=True)
class CrossoverStudy(Experiment[Crossover]):
    """The search for the value of a factor at which the mean measures of two policies cross; use :func:`crossover`.

    The paired mean difference is first evaluated at a few values from ``low`` to ``high``.  Bisection between the first
    neighbours with different signs finds the crossing, to one step.

    The interval is the set of values at which the paired t interval of the difference contains zero, also found by bisection.
    At the true crossing the expected difference is zero, so the set misses it as seldom as the t interval misses zero, even if
    some replications do not cross.  (The mean of their crossings would need each of them to cross once, and is biased if the
    curves are bent.)  The method assumes that the expected difference has one crossing between ``low`` and ``high``.

    Each evaluated value costs 2 x ``replications`` runs; a crossing takes ``first_look`` values and about three bisections.
    """

    along: str
    """The factor whose value is sought."""
    low: float
    """Its least value."""
    high: float
    """Its greatest value."""
    step: float
    """Resolution; values are ``low``, ``low + step`` and so on, and ``high``.  Integers stay integers."""
    measure: str
    """The column of the table to compare."""
    first_look: int = 5
    """Number of values to evaluate first, at least two."""
    replications: int = 10
    """At each value, at least two."""
    level: float = LEVEL
    """The confidence level."""
    ratios: bool = False
    """Compare the logarithms of a measure above zero: the differences are those of ratios, which long tails disturb less."""
    unit: str = ""
    """The unit of the factor, by default the one that its name ends in."""

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_level(self.level)
        flag("ratios", self.ratios)
        if not self.unit:
            object.__setattr__(self, "unit", named(self.along).unit)
        self.require_column("measure", self.measure)
        whole_fields(self, "", replications=2, first_look=2)
        if set(self.levels.names) != {self.along, "policy"} or len(self.levels.labels("policy")) != 2:
            factors = ", ".join(self.levels.names)
            raise SpecificationError(
                f"crossover: the factors {factors} are not allowed; there must be {self.along} and two policies"
            )
        low, high, step = self.low, self.high, self.step
        for name, value in (("low", low), ("high", high)):
            require_number(name, value, "a finite number", isfinite)
        require_number("high", high, f"greater than low, {low}", lambda number: number > low)
        require_number("step", step, f"> 0, at most high - low, {high - low:g}", lambda number: 0 < number <= high - low)
        if self._last > _MOST_STEPS:
            raise SpecificationError(f"step: {step} is not allowed; at most {_MOST_STEPS:,} steps can lie between low and high")

    # Places are numbers of steps from low.

    @property
    def _last(self) -> int:
        return ceil((self.high - self.low) / self.step - 1e-9)  # a fraction may fit a rounding error less often

    def _value(self, place: int) -> float:
        return self.high if place == self._last else self.low + place * self.step

    def search(self, difference: Callable[[float], Interval]) -> Crossover:
        """Return the value at which a difference of two policies crosses zero; ``difference`` is called once for each value."""
        known: dict[int, Interval] = {}

        def at(place: int) -> Interval:
            if place not in known:
                known[place] = difference(self._value(place))
            return known[place]

        def mean(place: int) -> float:
            """Return the difference, turned so that it goes from negative to positive."""
            return -sign * at(place).mean

        def side(place: int) -> int:
            """Return -1 where the difference is significantly negative, 1 where it is significantly positive, 0 elsewhere."""
            return 0 if not at(place).excludes(0) else 1 if mean(place) > 0 else -1

        def first(holds: Callable[[int], bool], start: int, end: int) -> int:
            """Return the first place at which something holds that does not at ``start`` and does at ``end``."""
            return start + 1 + bisect_left(range(start + 1, end), True, key=holds)

        names = self._policies
        signs = [(place, 1 if at(place).mean > 0 else -1) for place in self._first_places if at(place).mean]
        changed = [(before, after) for before, after in pairwise(signs) if before[1] != after[1]]
        if changed:
            (left, sign), (right, _) = changed[0]
            after = first(lambda place: mean(place) >= 0, left, right)
            below = [place for place in sorted(known) if place < after and side(place) < 0]
            above = [place for place in sorted(known) if place >= after and side(place) > 0]
            low = self._value(first(lambda place: side(place) >= 0, below[-1], after) - 1) if below else -inf
            high = self._value(first(lambda place: side(place) > 0, after - 1, above[0])) if above else inf
            fraction = mean(after - 1) / (mean(after - 1) - mean(after))
            zero = self._value(after - 1) + fraction * (self._value(after) - self._value(after - 1))
            lower: tuple[str | None, str | None] = names if sign < 0 else names[::-1]
        else:
            low = high = zero = nan
            lower = (names[0 if signs[0][1] < 0 else 1],) * 2 if signs else (None, None)
        differences = {self._value(place): known[place] for place in sorted(known)}
        about: dict[str, Any] = {"policies": names, "along": self.along, "measure": self.measure}
        about |= {"ratios": self.ratios, "unit": self.unit}
        return Crossover(*lower, zero, low, high, len(changed), differences, **about)

    @property
    def _first_places(self) -> list[int]:
        return sorted({round(place) for place in np.linspace(0, self._last, self.first_look)})

    def trials(self, table: StudyTable) -> list[Trial]:
        """Return the trials of all values that the search has asked for, and of the next one."""
        values = set(map(self._value, self._first_places))

        def asked(value: float) -> Interval:
            values.add(value)
            return self._difference(table, value)

        with suppress(_NotEvaluatedError):
            self.search(asked)
        points = [{self.along: value, "policy": policy} for value in sorted(values) for policy in self.levels.labels("policy")]
        labels = [tuple(point[name] for name in self.levels.names) for point in points]
        return [Trial(point, number + 1) for point in labels for number in range(self.replications)]

    def shard_of(self, trial: Trial, shards: int) -> int:
        """Refuse shards."""
        raise SpecificationError("shard: a crossover cannot be divided, because each value follows from the ones before it")

    def conclude(self, table: StudyTable) -> Crossover:
        """Return the crossing; a run that failed, or lacks the measure, is a ``SpecificationError``."""
        try:
            return self.search(partial(self._difference, table))
        except _NotEvaluatedError as problem:
            raise SpecificationError(str(problem)) from None

    def exhibits(self) -> tuple[Mapping[str, Tabulate], Mapping[str, Draw]]:
        """Return the tables and figures of the experiment, by default the crossing and the differences."""
        title = _title(self.measure, self._policies, ratios=self.ratios)
        tables: Mapping[str, Tabulate] = self.tables or {
            "crossing": lambda table: self.conclude(table).summary,
            title: lambda table: self.conclude(table).frame.rename_axis(self.along),
        }
        return tables, self.figures or {title: lambda table: self.conclude(table).plot}

    @property
    def _policies(self) -> tuple[str, str]:
        first, second = map(str, self.levels.labels("policy"))
        return first, second

    def _difference(self, table: StudyTable, value: float) -> Interval:
        first, second = ({self.along: value, "policy": policy} for policy in self.levels.labels("policy"))
        try:
            difference = table.difference(self.measure, first, second, logarithms=self.ratios, level=self.level)
        except SpecificationError as problem:
            if table.failures:
                of, error = table.failures[0]
                raise _NotEvaluatedError(f"crossover: a run failed: {of}: {error.rstrip().splitlines()[-1]}") from None
            raise _NotEvaluatedError(f"crossover: {self.along} {value}: {problem}") from None
        if not isfinite(difference.half):
            alone = "there is one run only, so that nothing is known about its precision"
            raise _NotEvaluatedError(f"crossover: {self.along} {value}: {alone}")
        return difference


class _NotEvaluatedError(SpecificationError):
    """The search needs a value at which not all runs are finished."""


def crossover(
    scenario: Callable[..., Scenario | None],
    along: str,
    low: float,
    high: float,
    policies: Sequence[str | Policy],
    measure: str = "mean_bounded_slowdown",
    *,
    step: float,
    name: str = "crossover",
    **fields: Any,
) -> CrossoverStudy:
    """Return the search for the value of a factor at which the mean measure of one policy crosses that of another.

    >>> from clustermodel import ContextSwitch, Machine, Scenario, synthetic_workload
    >>> search = crossover(
    ...     lambda switch, policy, seed: Scenario(
    ...         machine=Machine(nodes=64, context_switch=ContextSwitch(fraction=switch)),
    ...         workload=synthetic_workload(jobs=100, nodes=64, seed=seed), policy=policy),
    ...     "switch", 0, 0.3, ["bgs", "bf"], "mean_response_s", step=0.01, replications=3)
    >>> len(search)  # 5 values at first, 2 policies, 3 replications
    30

    The arguments are fields of :class:`CrossoverStudy`; ``policies`` are two names or objects.  The scenario is a function of
    the factor ``along``, ``policy`` and ``seed``: draw the workload from ``seed``, so that both policies get the same jobs.
    """
    require(not isinstance(policies, str) and len(policies) == 2, "policies", policies, "a crossover is of two policies")
    factors = {along: [low, high], "policy": policies}
    searched: dict[str, Any] = {"along": along, "low": low, "high": high, "step": step, "measure": measure}
    return CrossoverStudy(name=name, factors=factors, scenario=scenario, **searched, **fields)


def tradeoff_map(
    scenario: Callable[..., Scenario | None],
    factors: Levels,
    policies: Sequence[str | Policy],
    measure: str = "mean_bounded_slowdown",
    *,
    replications: int = 10,
    name: str = "trade-off map",
    labels: Mapping[Any, str] | None = None,
    **fields: Any,
) -> Study:
    """Return the study that maps which policy has the lowest measure over two factors, with paired differences.

    The study shows the table of winners, and for two policies the map of their differences with the contour beyond which they
    are significant.  The intervals are of one difference each: expect about five false positives per hundred comparisons.
    ``labels`` are texts to show in the maps instead of the names of the factors and of the measure.

    The scenario is a function of the two factors, ``policy`` (two or more) and ``seed``: draw the workload from ``seed``, so
    that all policies get the same jobs.  The other arguments are fields of :class:`~clustermodel.experiment.study.Study`.
    """
    require_whole("replications", replications, at_least=2)
    two = isinstance(factors, Mapping) and len(factors) == 2
    require(two, "factors", factors, "a map has two factors with their levels")
    require(not isinstance(policies, str) and len(policies) >= 2, "policies", policies, "a map compares two policies or more")
    x, y = factors
    title = f"lowest {measure}"
    texts = {} if labels is None else labels
    figures: dict[str, Draw] = {title: lambda table: table.plot.winners(measure, x=x, y=y, labels=texts)}
    if len(policies) == 2:
        first, second = Factors({"policy": policies}).labels("policy")
        options: dict[str, Any] = {"x": x, "y": y, "baseline": second, "relative": False, "labels": texts}
        figures[f"{measure}: {first} - {second}"] = lambda table: table.plot.difference_map(measure, **options)
    exhibits: dict[str, Any] = {"tables": {title: lambda table: table.lowest(measure)}, "figures": figures, **fields}
    study = Study(name=name, factors={**factors, "policy": policies}, scenario=scenario, replications=replications, **exhibits)
    study.require_column("measure", measure)
    return study
