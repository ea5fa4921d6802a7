"""The choice of a warm-up, from the results of runs, by MSER-5 (:func:`~clustermodel.statistics.mser5`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from clustermodel.errors import SpecificationError, counted, did_you_mean, quoted
from clustermodel.experiment.result import Result
from clustermodel.statistics import MSER_BATCH, mser5
from clustermodel.ticks import to_seconds


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
