"""How far a mean can be trusted: replications, intervals, paired comparisons, warm-up, batch means, sequential stopping.

Responsible for turning numbers of runs into a mean with an interval; where two policies change places is
:mod:`~clustermodel.study.tradeoff`'s.  Quantiles and tests are scipy's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from math import floor, isfinite, log10, sqrt
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import dot
from clustermodel.errors import SpecificationError, counted, did_you_mean, quoted
from clustermodel.machine import require_number, require_whole
from clustermodel.measure.metrics import Summary
from clustermodel.policies import policy_label
from clustermodel.policies.base import Policy
from clustermodel.study.scenario import Result, Scenario
from clustermodel.ticks import to_seconds

if TYPE_CHECKING:
    import pandas as pd

FloatArray = npt.NDArray[np.float64]

LEVEL: Final = 0.95
"""Confidence level of an interval, unless another is asked for."""
MSER_BATCH: Final = 5
"""The 5 of MSER-5."""


# Intervals


@dataclass(frozen=True)
class Interval:
    """A mean and its confidence interval, ``mean - half`` to ``mean + half``.  ``value in interval`` is what it says."""

    mean: float
    half: float
    """Half of the interval's width, in the unit of the mean."""
    level: float
    """Confidence level, between 0 and 1."""
    count: int
    """How many values the mean is of."""

    @property
    def low(self) -> float:
        """Lower end."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """Upper end."""
        return self.mean + self.half

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        digits = 1 - floor(log10(self.half)) if self.half > 0 else 3  # two that are not noise
        return f"{self.mean:,.{max(0, digits)}f} ± {self.half:,.{max(0, digits)}f}"


def _checked(name: str, values: npt.ArrayLike, at_least: int, why: str = "one for each replication") -> FloatArray:
    """Return values as an array, shape ``(values,)``, if there are enough, ``why`` so many, and all are finite."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise SpecificationError(f"{name}: {quoted(values)} is not allowed; it must be a sequence of numbers") from None
    if array.ndim != 1:
        shape = f"an array of shape {array.shape}" if array.ndim else quoted(values)
        raise SpecificationError(f"{name}: {shape} is not allowed; it must be a sequence of numbers, {why}")
    if len(array) < at_least:
        given = f"{counted(len(array), 'value')}, {quoted(array.tolist())},"
        raise SpecificationError(f"{name}: {given} cannot be enough; at least {at_least} are needed, {why}")
    if not np.isfinite(array).all():
        first = int(np.flatnonzero(~np.isfinite(array))[0])
        raise SpecificationError(f"{name}: {array[first]} at {first} is not allowed; every value must be finite")
    return array


def checked_level(level: float) -> float:
    """Return a confidence level, if it is one.

    Raises:
        SpecificationError: it is not.
    """
    return require_number("level", level, "> 0 and < 1", lambda share: 0 < share < 1)


def interval(values: npt.ArrayLike, level: float = LEVEL) -> Interval:
    """Return the mean of independent values and its Student t interval.

    Args:
        values: one for each replication, shape ``(replications,)``, at least two.  Values of one run, such as the waits of
            its jobs, depend on one another: use :func:`batch_means`.
        level: the confidence level.

    Raises:
        SpecificationError: fewer than two values, one that is not finite, or no such level.
    """
    from scipy.special import stdtrit  # scipy.stats has the same, and takes a second to import

    array, level = _checked("values", values, 2), checked_level(level)
    half = float(stdtrit(len(array) - 1, (1 + level) / 2) * np.std(array, ddof=1) / sqrt(len(array)))
    return Interval(float(np.mean(array)), half, level, len(array))


def _matched(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    first, second = _checked("a", a, 2), _checked("b", b, 2)
    if len(first) != len(second):
        raise SpecificationError(f"b: {len(second)} values are not allowed; a has {len(first)}, one for each replication")
    return first, second


def paired_difference(a: npt.ArrayLike, b: npt.ArrayLike, level: float = LEVEL) -> Interval:
    """Return the interval of the mean of a - b, replication by replication.

    With common random numbers what a and b share cancels, and the interval is far narrower than those of a and b.

    Args:
        a: one value for each replication, shape ``(replications,)``, at least two.
        b: the same replications, in the same order.
        level: the confidence level.

    Raises:
        SpecificationError: the two do not match, have fewer than two values, or one that is not finite.
    """
    first, second = _matched(a, b)
    return interval(first - second, level)


def paired_ratio(a: npt.ArrayLike, b: npt.ArrayLike, level: float = LEVEL) -> Interval:
    """Return the interval of the mean of a / b, replication by replication; 1 where both are 0.

    The mean of the ratios is not the ratio of the means: here every replication counts the same.

    Args:
        a: one value for each replication, shape ``(replications,)``, at least two.
        b: the same replications, in the same order; 0 only where a is.
        level: the confidence level.

    Raises:
        SpecificationError: the two do not match, have fewer than two values, one that is not finite, or b is 0 and a is not.
    """
    first, second = _matched(a, b)
    neither = (first == 0) & (second == 0)
    if (zero := np.flatnonzero((second == 0) & ~neither)).size:
        raise SpecificationError(f"b: 0 at {zero[0]} is not allowed; a is {first[zero[0]]:g} there, and there is no ratio")
    return interval(np.where(neither, 1.0, first / np.where(neither, 1.0, second)), level)


# Replications

Metric = str | Callable[[Result], float]
"""A number of a run: a field of :class:`~clustermodel.measure.metrics.Summary`, or a function of the result."""

Mapper = Callable[[Callable[[Any], float], Iterable[Any]], Iterable[float]]
"""Runs tasks: ``map``, or the ``map`` of an executor."""

_NUMBERS: Final = [field.name for field in fields(Summary) if field.name not in ("policy", "workload")]


def measured(result: Result, metric: Metric) -> float:
    """Return a metric of a run; ``nan`` if it has none.

    Raises:
        SpecificationError: the summary has no such number.
    """
    if callable(metric):
        return float(metric(result))
    value = getattr(result.summary(), _checked_metric(metric))
    return float("nan") if value is None else float(value)


def _checked_metric(metric: str) -> str:
    if metric not in _NUMBERS:
        near = did_you_mean(metric, _NUMBERS)
        raise SpecificationError(f"metric: {metric!r} is not allowed{near}; it must be a number of the summary, or a function")
    return metric


def _run(make: Callable[..., Scenario], metric: Metric, arguments: tuple[Any, ...]) -> float:
    return measured(make(*arguments).run(), metric)


def run_all(make: Callable[..., Scenario], tasks: Sequence[tuple[Any, ...]], metric: Metric, mapper: Mapper) -> FloatArray:
    """Return the metric of ``make(*task).run()`` for each task, shape ``(tasks,)``.

    Args:
        make: returns a scenario.
        tasks: its arguments.
        metric: what to keep of each run.
        mapper: runs the tasks.

    Raises:
        SpecificationError: the summary has no such number, a run has none, or ``make`` was given what is not allowed.
    """
    if isinstance(metric, str):
        _checked_metric(metric)
    values = np.fromiter(mapper(partial(_run, make, metric), tasks), dtype=float, count=len(tasks))
    for task, value in zip(tasks, values, strict=True):
        if not isfinite(value):
            raise SpecificationError(f"metric: {metric!r} is {value} in the run of {task!r}; it must be finite")
    return values


def seeds_of(replications: int, seed: int, *, at_least: int = 1) -> range:
    """Return the seeds of replications: ``seed``, ``seed + 1`` and so on."""
    count = require_whole("replications", replications, at_least=at_least)
    first = require_whole("seed", seed, at_least=0)
    return range(first, first + count)


def replicate(
    make: Callable[[Any, int], Scenario],
    policies: Sequence[str | Policy],
    metric: Metric,
    *,
    replications: int = 10,
    seed: int = 1,
    mapper: Mapper = map,
) -> pd.DataFrame:
    """Return a metric of independent replications under several policies with common random numbers.

    Args:
        make: ``make(policy, seed)`` returns the scenario of a replication.  Draw the workload from ``seed``: a replication
            then has the same jobs under all policies, and other jobs than the other replications.
        policies: names or objects.
        metric: what to keep of each run.
        replications: how many.
        seed: of the first; the others follow.
        mapper: runs the tasks; the ``map`` of a ``ProcessPoolExecutor`` uses several processors, if ``make`` can be pickled.

    Returns:
        A row for each seed, a column for each policy, in the unit of the metric.

    Raises:
        SpecificationError: an argument is not allowed.
    """
    import pandas as pd

    seeds = seeds_of(replications, seed)
    found = run_all(make, [(policy, number) for number in seeds for policy in policies], metric, mapper)
    return pd.DataFrame(
        found.reshape(len(seeds), len(policies)), index=pd.Index(seeds, name="seed"), columns=list(map(policy_label, policies))
    )


class Sequential(NamedTuple):
    """Replications that went on until the interval was narrow enough."""

    interval: Interval
    reached: bool
    """Whether it is; otherwise there were too few replications."""
    values: FloatArray
    """Of the replications, shape ``(replications,)``."""


def replicate_until(
    run: Callable[[int], float],
    *,
    half_width: float | None = None,
    relative: float | None = None,
    level: float = LEVEL,
    at_least: int = 10,
    at_most: int = 1000,
    seed: int = 1,
) -> Sequential:
    """Replicate until the interval is as narrow as wanted.

    After each replication the Student t interval of all so far is compared with what is wanted (Y. S. Chow, H. Robbins, On the
    asymptotic theory of fixed-width sequential confidence intervals for the mean, Ann. Math. Statist. 36, 1965).  It stops the
    sooner, the smaller the deviation happens to look, so the interval covers slightly less often than ``level`` says; the more
    so, the smaller ``at_least`` is and the sooner it stops.

    Args:
        run: returns the value of the replication with this seed.
        half_width: wanted half of the interval's width, in the unit of the values; or
        relative: the same as a share of the mean's size.  Give one of the two.
        level: the confidence level.
        at_least: replications before the first comparison.
        at_most: replications after which it gives up.
        seed: of the first replication; the others follow.

    Raises:
        SpecificationError: an argument is not allowed, or ``run`` returned what is not finite.
    """
    if (half_width is None) == (relative is None):
        raise SpecificationError(f"half_width, relative: {half_width}, {relative} is not allowed; give one of the two")
    name, wanted = ("half_width", half_width) if relative is None else ("relative", relative)
    level = checked_level(level)
    wanted = require_number(name, wanted, "a finite number > 0", lambda number: number > 0 and isfinite(number))
    at_least = require_whole("at_least", at_least, at_least=2)
    at_most = require_whole("at_most", at_most, at_least=at_least)
    values: list[float] = []
    for number in seeds_of(at_most, seed):
        values.append(run(number))
        if len(values) >= at_least:
            found = interval(values, level)
            reached = found.half <= wanted * (1 if relative is None else abs(found.mean))
            if reached:
                break
    return Sequential(found, reached, np.array(values))


# One long run


class Truncation(NamedTuple):
    """Where MSER-5 would cut."""

    drop: int
    """How many values to leave out at the beginning."""
    settled: bool
    """``False`` if the best cut is the last that was tried: the series is too short to tell where its warm-up ends."""


def mser5(values: npt.ArrayLike) -> Truncation:
    """Return how many values at the beginning of a series are warm-up, by MSER-5.

    The values are averaged in batches of five; the cut is where the squared standard error of the mean of what is left, as if
    batches were independent, is least: sum of (batch - mean of what is left)^2 / (batches left)^2.  Cuts in the first half are
    tried, since near the end a few values that happen to be alike look best (K. P. White, An effective truncation heuristic for
    bias reduction in simulation output, Simulation 69, 1997; K. P. White, M. J. Cobb, S. C. Spratt, A comparison of five
    steady-state truncation heuristics for simulation, Winter Simulation Conference 2000).

    It is a suggestion: the series of one run is random, and so is the cut.

    Args:
        values: in order of time, shape ``(values,)``, at least ten.  Those that do not fill a batch at the end are left out.

    Raises:
        SpecificationError: fewer than ten values, or one that is not finite.
    """
    array = _checked("values", values, 2 * MSER_BATCH, f"two batches of {MSER_BATCH}")
    count = len(array) // MSER_BATCH
    batches = array[: count * MSER_BATCH].reshape(count, MSER_BATCH).mean(axis=1)
    batches -= batches[-1]  # near the mean, so that the sums below do not cancel; and zero where all values are the same
    cuts = np.arange(count // 2 + 1)
    left = count - cuts
    total, squares = (np.cumsum(of[::-1])[::-1][cuts] for of in (batches, batches**2))
    cut = int(np.argmin(np.maximum(squares - total**2 / left, 0) / left**2))
    return Truncation(cut * MSER_BATCH, cut < count // 2)


class WarmUp(NamedTuple):
    """A suggested warm-up."""

    seconds: float
    """From the first submission on; what ``Result.summary(warm_up_s=...)`` takes."""
    jobs: int
    """How many jobs of a run MSER-5 would leave out."""
    settled: bool
    """``False`` if the runs are too short to tell."""


def suggest_warm_up(*results: Result, column: str = "wait_s") -> WarmUp:
    """Return the warm-up that MSER-5 suggests; see :func:`mser5`.

    The first jobs of all runs are averaged, the second ones and so on: the luck of single runs, which can move a cut by half
    their length, averages out, and the warm-up stays.  Choose one warm-up for all replications and policies, and measure with
    ``result.summary(warm_up_s=...)``, which keeps the choice in its row.

    Args:
        results: of replications; one run is enough, and says less.
        column: of ``result.jobs``, one number for each job, taken in order of submission.

    Returns:
        The seconds are until the job after the last that is left out has been submitted in all runs.

    Raises:
        SpecificationError: there is no run or no such column of numbers, or fewer than ten jobs ran to an end in one of them.
    """
    if not results:
        raise SpecificationError("results: none is given; at least one is needed")
    for result in results:
        if not isinstance(result, Result):
            raise SpecificationError(f"results: {quoted(result)} is not allowed; each must be a Result, of Scenario.run")
    runs = [result.jobs[result.records.finished] for result in results]  # in order of submission
    numbers = list(map(str, runs[0].select_dtypes("number")))
    if column not in numbers:
        near = did_you_mean(column, numbers)
        raise SpecificationError(f"column: {column!r} is not allowed{near}; it must be a column of numbers of result.jobs")
    length = min(map(len, runs))
    if length < 2 * MSER_BATCH:
        enough = f"at least {2 * MSER_BATCH} are needed in each"
        raise SpecificationError(f"results: {counted(length, 'job')} that ran to an end in a run cannot be enough; {enough}")
    drop, settled = mser5(np.mean([run[column].iloc[:length] for run in runs], axis=0))
    since_start = [
        float(run["submit_s"].iloc[drop]) - to_seconds(result.ledger.start) for run, result in zip(runs, results, strict=True)
    ]
    return WarmUp(max(since_start) if drop else 0.0, drop, settled)


@dataclass(frozen=True)
class BatchMeans(Interval):
    """An interval from the batches of one long run; ``count`` is how many there are."""

    batch: int
    """Values in a batch."""
    lag_1: float
    """Correlation of neighbouring batch means, -1 to 1; 0 if they are all the same."""

    @property
    def long_enough(self) -> bool:
        """Whether neighbouring batch means look independent: ``lag_1`` is not above what chance gives one time in twenty.

        If they do not, the interval is too narrow: use fewer, longer batches, or a longer run.
        """
        from scipy.special import ndtri

        return self.lag_1 <= float(ndtri(0.95)) / sqrt(self.count)


def batch_means(values: npt.ArrayLike, batches: int = 20, level: float = LEVEL) -> BatchMeans:
    """Return the mean of values that depend on their neighbours, such as waits of one long run, and its interval.

    The values are cut into batches of the same length, whose means are treated as independent.  That they are is for the user
    to see: :attr:`BatchMeans.lag_1` and :attr:`BatchMeans.long_enough`.

    Args:
        values: in order of time, without warm-up, shape ``(values,)``.  Those at the beginning that do not fill a batch are
            left out.
        batches: how many, at least two.
        level: the confidence level.

    Raises:
        SpecificationError: fewer than two values in a batch, one that is not finite, or too few batches.
    """
    batches = require_whole("batches", batches, at_least=2)
    array = _checked("values", values, 2 * batches, f"two for each of {batches} batches")
    batch = len(array) // batches
    means = array[len(array) - batch * batches :].reshape(batches, batch).mean(axis=1)
    found = interval(means, level)
    apart = means - found.mean
    squares = dot(apart, apart)
    lag_1 = dot(apart[:-1], apart[1:]) / squares if squares else 0.0
    return BatchMeans(found.mean, found.half, found.level, found.count, batch, lag_1)
