"""Simulation of what queueing formulas assume: independent jobs, means over the middle of a run, and control variates.

:class:`~clustermodel.workload.job_stream.JobStream` is the builder for job streams of all kinds.  The jobs here are those of a
formula: Poisson arrivals at a rate in its unit, or all jobs at once; run times and sizes with given distributions.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from clustermodel.arrays import FloatArray, IntArray
from clustermodel.errors import SpecificationError
from clustermodel.experiment.random_streams import random_stream
from clustermodel.experiment.result import Result
from clustermodel.job import JobRow
from clustermodel.theory.processor_sharing_sample import processor_sharing_responses
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import require_whole
from clustermodel.workload.distributions import Exponential, Sampled
from clustermodel.workload.hyper_erlang import HyperErlang
from clustermodel.workload.table import Workload

RunTimes = float | Sampled | Mapping[int, float]
"""Run times, seconds: the same for all jobs; a distribution; or, by size, the mean of exponential ones."""
MEAN_S: Final = 100.0
"""Mean of the run times of every shape, seconds."""
HYPEREXPONENTIAL: Final = HyperErlang(order=1, p=0.8, stage_s=(40.0, 340.0))
"""Run times of which four in five have a mean of 40 s and the others one of 340 s."""
SHAPES: Final[Mapping[str, RunTimes]] = MappingProxyType(
    {"constant": MEAN_S, "exponential": Exponential(MEAN_S), "hyperexponential": HYPEREXPONENTIAL}
)
"""Run times by the shape of their distribution."""


def model_jobs(
    *,
    jobs: int,
    seed: int,
    stream: str,
    run_s: RunTimes,
    per_s: float | None = None,
    sizes: Mapping[int, float] = MappingProxyType({1: 1.0}),
) -> Workload:
    """Return independent jobs with exact estimates.

    Arrivals, sizes and run times have random streams of their own, by seed and ``stream``.  Points of a validation with
    different texts have independent jobs, so that the points that miss their formula can be counted.

    Args:
        jobs: their number.
        seed: of the random numbers.
        stream: names the random numbers.
        run_s: run times, seconds.
        per_s: rate of the Poisson arrivals, jobs per second; by default all jobs are submitted at once.
        sizes: probability of each size, nodes.

    Raises:
        SpecificationError: an argument is not allowed.
    """
    jobs = require_whole("jobs", jobs, at_least=1)
    if per_s is not None and not per_s > 0:
        raise SpecificationError(f"per_s: {per_s} is not allowed; it must be a number > 0")
    sizes_rng, run_rng, gap_rng = (random_stream(seed, f"{what} of {stream}") for what in ("sizes", "run times", "arrivals"))
    nodes = sizes_rng.choice(list(sizes), size=jobs, p=list(sizes.values()))
    if isinstance(run_s, Mapping):
        drawn_s = run_rng.exponential([run_s[size] for size in nodes.tolist()])
    else:
        drawn_s = run_s.sample(run_rng, jobs) if isinstance(run_s, Sampled) else np.full(jobs, run_s)
    submit_s = np.zeros(jobs) if per_s is None else np.cumsum(gap_rng.exponential(size=jobs)) / per_s
    rows = zip(_ticks(submit_s).tolist(), np.maximum(_ticks(drawn_s), 1).tolist(), nodes.tolist(), strict=True)
    return Workload([JobRow(submit, number, size, run, run, -1, -1, 0, -1) for number, (submit, run, size) in enumerate(rows)])


def middle(values: FloatArray) -> FloatArray:
    """Return values of successive jobs without the first fifth, in which the machine fills, and the last twentieth, which no
    job joins any more.
    """
    return values[len(values) // 5 : len(values) - len(values) // 20]


def mean_wait(result: Result) -> float:
    """Return the mean wait of the jobs in the middle of a run, seconds."""
    return _mean(result, "wait_s")


def mean_response(result: Result) -> float:
    """Return the mean response of the jobs in the middle of a run, seconds."""
    return _mean(result, "response_s")


def mean_run(result: Result) -> float:
    """Return the mean run time of the jobs in the middle of a run, seconds: a control variate."""
    return _mean(result, "run_s")


def mean_gap(result: Result) -> float:
    """Return the mean time between arrivals of the jobs in the middle of a run, seconds: a control variate."""
    return float(np.diff(middle(_column(result, "submit_s"))).mean())


def shared_response(result: Result) -> float:
    """Return the mean response in the middle if the jobs shared all nodes equally, seconds: a control variate.

    For jobs of one node.  The expected value is that of M/G/1 under processor sharing, or of M/M/c.
    """
    submit, run = (_column(result, name) for name in ("submit_s", "run_s"))
    return float(middle(processor_sharing_responses(submit, run, result.machine.processors)).mean())


def shared_work_response(result: Result) -> float:
    """Return the mean response in the middle of the same work on one server as fast as all nodes, seconds: a control variate.

    A job's work is its run time x nodes.  The expected value is that of M/G/1 under processor sharing.
    """
    submit, run, nodes = (_column(result, name) for name in ("submit_s", "run_s", "nodes"))
    return float(middle(processor_sharing_responses(submit, run * nodes / result.machine.processors, 1)).mean())


def _ticks(seconds: FloatArray) -> IntArray:
    return np.round(seconds * TICKS_PER_SECOND).astype(np.int64)


def _column(result: Result, name: str) -> FloatArray:
    values: FloatArray = result.jobs[name].to_numpy(dtype=float)
    return values


def _mean(result: Result, column: str) -> float:
    return float(middle(_column(result, column)).mean())
