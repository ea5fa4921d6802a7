"""Replications of scenarios: metrics of many runs, sequential stopping, and the choice of a warm-up.

:mod:`clustermodel.statistics` has the intervals, :mod:`clustermodel.experiment.crossover` compares two policies over a
parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError, counted, did_you_mean, quoted
from clustermodel.experiment.result import Result
from clustermodel.experiment.scenario import Scenario
from clustermodel.measure.metrics import Summary
from clustermodel.policies.interface import Policy
from clustermodel.policies.registry import policy_label
from clustermodel.statistics import LEVEL, MSER_BATCH, Interval, checked_level, interval, mser5
from clustermodel.ticks import to_seconds
from clustermodel.validation import require_number, require_whole

if TYPE_CHECKING:
    import pandas as pd


Metric = str | Callable[[Result], float]
"""A number of a run: a field of :class:`~clustermodel.measure.metrics.Summary`, or a function of the result."""

Mapper = Callable[[Callable[[Any], float], Iterable[Any]], Iterable[float]]
"""A function that runs tasks: ``map``, or the ``map`` of an executor."""

_NUMBERS: Final = [field.name for field in fields(Summary) if field.name not in ("policy", "workload")]


def measured(result: Result, metric: Metric) -> float:
    """Return a metric of a run; ``nan`` if the run does not have it.

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
        tasks: the arguments of ``make``.
        metric: of each run.
        mapper: runs the tasks.

    Raises:
        SpecificationError: the summary has no such number, a run does not have it, or ``make`` specified an invalid scenario.
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
        make: ``make(policy, seed)`` returns the scenario of a replication.  Draw the workload from ``seed``, so that each
            replication has its own jobs, the same under all policies.
        policies: names or objects.
        metric: of each run.
        replications: number of replications.
        seed: of the first replication; the others have the next seeds.
        mapper: runs the tasks; the ``map`` of a ``ProcessPoolExecutor`` uses several processors, if ``make`` can be pickled.

    Returns:
        A row for each seed, a column for each policy, in the unit of the metric.

    Raises:
        SpecificationError: an argument is not allowed.
    """
    import pandas as pd

    seeds = seeds_of(replications, seed)
    values = run_all(make, [(policy, number) for number in seeds for policy in policies], metric, mapper)
    return pd.DataFrame(
        values.reshape(len(seeds), len(policies)), index=pd.Index(seeds, name="seed"), columns=list(map(policy_label, policies))
    )


class Sequential(NamedTuple):
    """The result of sequential stopping."""

    interval: Interval
    reached: bool
    """Whether the interval is as narrow as requested; otherwise the replications were too few."""
    values: FloatArray
    """Values of the replications, shape ``(replications,)``."""


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
    """Replicate until the confidence interval has the requested width.

    After each replication the Student t interval of all replications so far is compared with the requested width (Y. S. Chow,
    H. Robbins, On the asymptotic theory of fixed-width sequential confidence intervals for the mean, Ann. Math. Statist. 36,
    1965).  A deviation that is small by chance stops the replications early, so the interval covers the mean slightly less
    often than ``level``.  The error is larger, the smaller ``at_least`` and the number of replications are.

    Args:
        run: returns the value of the replication with this seed.
        half_width: half the requested width, in the unit of the values; or
        relative: half the requested width as a share of the mean's size.  Give one of the two.
        level: the confidence level.
        at_least: replications before the first comparison.
        at_most: most replications.
        seed: of the first replication; the others have the next seeds.

    Raises:
        SpecificationError: an argument is not allowed, or ``run`` returned a value that is not finite.
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
            estimate = interval(values, level)
            reached = estimate.half <= wanted * (1 if relative is None else abs(estimate.mean))
            if reached:
                break
    return Sequential(estimate, reached, np.array(values))


# One long run


class WarmUp(NamedTuple):
    """A suggested warm-up."""

    seconds: float
    """Time from the first submission on, for ``Result.summary(warm_up_s=...)``."""
    jobs: int
    """Number of jobs of a run that MSER-5 leaves out."""
    settled: bool
    """``False`` if the runs are too short for a suggestion."""


def suggest_warm_up(*results: Result, column: str = "wait_s") -> WarmUp:
    """Return the warm-up that MSER-5 suggests; see :func:`~clustermodel.statistics.mser5`.

    The values are averaged over the runs: the first jobs, the second jobs and so on.  The noise of single runs, which can move
    the cut by half their length, averages out; the transient remains.  Choose one warm-up for all replications and policies,
    and measure with ``result.summary(warm_up_s=...)``, which records the choice in its row.

    Args:
        results: of replications; a single run is allowed, but less reliable.
        column: of ``result.jobs``, a number for each job, in order of submission.

    Returns:
        The warm-up lasts until the first counted job has been submitted in all runs.

    Raises:
        SpecificationError: no run is given, the column does not exist or is not numeric, or fewer than ten jobs of a run
            completed.
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
