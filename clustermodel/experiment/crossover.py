"""The value of a factor at which the measures of two policies cross.

The search is an experiment: stored, resumed, run in parallel, and shown in reports.  Any quantity can be the factor:
context-switch fraction, C, Q, MPL, load.  The runs have common random numbers, so repeated evaluations of a value give the
same difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from clustermodel.errors import SpecificationError, quoted
from clustermodel.experiment.crossing import Crossover, crossing, first_places, steps_between, values_between
from clustermodel.experiment.factors import Trial
from clustermodel.experiment.scenario import Scenario
from clustermodel.experiment.study import Experiment
from clustermodel.experiment.study_table import StudyTable
from clustermodel.policies.interface import Policy
from clustermodel.statistics import LEVEL, Interval, checked_level
from clustermodel.validation import require_whole

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class CrossoverStudy(Experiment[Crossover]):
    """The search for the value of a factor at which the mean measure of one policy crosses that of another.

    The paired mean difference is first evaluated at a few values from ``low`` to ``high``.  Bisection between the first
    neighbours with different signs finds the crossing, to one step.

    The interval is the set of values at which the paired t interval of the difference contains zero, also found by bisection.
    At the true crossing the expected difference is zero, so the set misses it as seldom as the t interval misses zero: the
    confidence is that of one t interval, however noisy single runs are, and even if some of them do not cross.  (The mean of
    the crossings of single replications would need each of them to cross once, and is biased if the curves are bent.)  The
    method assumes that the expected difference has one crossing between ``low`` and ``high``.

    Each evaluated value costs 2 x ``replications`` runs.  A crossing takes ``first_look`` values and about three bisections,
    which share most of their values.  Use :func:`crossover`, which fills in the factors.

    Raises:
        SpecificationError: a field has a value that is not allowed.
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

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_level(self.level)
        self.require_column("measure", self.measure)
        object.__setattr__(self, "replications", require_whole("replications", self.replications, at_least=2))
        if set(self.levels.names) != {self.along, "policy"} or len(self.levels.labels("policy")) != 2:
            given = ", ".join(self.levels.names)
            raise SpecificationError(
                f"crossover: the factors {given} are not allowed; there must be {self.along} and two policies"
            )
        steps_between(self.low, self.high, self.step)
        require_whole("first_look", self.first_look, at_least=2)

    def trials(self, table: StudyTable) -> list[Trial]:
        """Return the trials of all values that the search has asked for, and of the next one."""
        count = steps_between(self.low, self.high, self.step)
        value_of = values_between(self.low, self.high, self.step)
        values = {value_of(place) for place in first_places(count, self.first_look)}
        known = _Differences(self, table)
        try:
            self._crossing(known)
        except _NotEvaluatedError as missing:
            values.add(missing.value)
        policies = self.levels.labels("policy")
        points = [{self.along: value, "policy": policy} for value in sorted(values | known.asked) for policy in policies]
        labels = [tuple(point[name] for name in self.levels.names) for point in points]
        return [Trial(point, replication) for point in labels for replication in range(1, self.replications + 1)]

    def shard_of(self, trial: Trial, shards: int) -> int:
        """Refuse shards.

        Raises:
            SpecificationError: always.
        """
        raise SpecificationError("shard: a crossover cannot be divided, because each value follows from the ones before it")

    def conclude(self, table: StudyTable) -> Crossover:
        """Return the crossing.

        Raises:
            SpecificationError: a run failed, or lacks the measure.
        """
        try:
            return self._crossing(_Differences(self, table))
        except _NotEvaluatedError as missing:
            raise SpecificationError(f"crossover: {self.along} {missing.value}: {missing}") from None

    def _crossing(self, difference: Callable[[float], Interval]) -> Crossover:
        first, second = self.levels.labels("policy")
        names = str(first), str(second)
        return crossing(difference, self.low, self.high, names, step=self.step, first_look=self.first_look)


class _NotEvaluatedError(Exception):
    """The search needs a value at which not all runs are finished."""

    def __init__(self, value: float, why: str) -> None:
        super().__init__(why)
        self.value = value


class _Differences:
    """The paired difference of the two policies at a value, from the table."""

    def __init__(self, study: CrossoverStudy, table: StudyTable) -> None:
        self._study = study
        self._table = table
        self.asked: set[float] = set()

    def __call__(self, value: float) -> Interval:
        self.asked.add(value)
        study = self._study
        first, second = ({study.along: value, "policy": policy} for policy in study.levels.labels("policy"))
        try:
            found = self._table.difference(study.measure, first, second, level=study.level)
        except SpecificationError as problem:
            raise _NotEvaluatedError(value, str(problem)) from None
        if not isfinite(found.half):
            raise _NotEvaluatedError(value, "there is one run only, so that nothing is known about its precision")
        return found


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

    Args:
        scenario: returns the scenario of a trial: a function of the factor, ``policy`` and ``seed``.  Draw the workload from
            ``seed``, so that both policies get the same jobs.
        along: the factor.
        low: its least value.
        high: its greatest value.
        policies: two names or objects.
        measure: to compare: a column of the table.
        step: resolution.
        name: of the experiment.
        fields: other fields of :class:`CrossoverStudy`, for example ``replications``.

    Raises:
        SpecificationError: an argument is not allowed.
    """
    if isinstance(policies, str) or len(policies) != 2:
        raise SpecificationError(f"policies: {quoted(policies)} is not allowed; a crossover is of two policies")
    study = CrossoverStudy(
        name=name,
        factors={along: [low, high], "policy": policies},
        scenario=scenario,
        along=along,
        low=low,
        high=high,
        step=step,
        measure=measure,
        **fields,
    )
    return replace(study, **{**_exhibits(study), **fields})


def _exhibits(study: CrossoverStudy) -> dict[str, Any]:
    """Return the tables and the figure that a crossover shows by default."""

    def conclusion(table: StudyTable) -> pd.DataFrame:
        return study.conclude(table).summary

    def differences(table: StudyTable) -> pd.DataFrame:
        return study.conclude(table).frame.rename_axis(study.along)

    def picture(table: StudyTable) -> Figure:
        from clustermodel.figures.crossing import difference_curve  # noqa: PLC0415  matplotlib takes a second to import

        found = study.conclude(table)
        names = tuple(map(str, study.levels.labels("policy")))
        interval = (found.at, found.low, found.high)
        return difference_curve(found.frame, interval, along=study.along, measure=study.measure, policies=names)

    first, second = map(str, study.levels.labels("policy"))
    return {
        "tables": {"crossing": conclusion, f"{study.measure}: {first} - {second}": differences},
        "figures": {f"{study.measure}: {first} - {second}": picture},
    }
