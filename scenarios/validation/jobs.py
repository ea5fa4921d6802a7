"""The jobs of the validations: Poisson arrivals or all at once, run times of three shapes, sizes with given probabilities.

Every attribute has a random stream of its own, which depends on the seed and on a text: points with different texts have
independent jobs, so that those that miss can be counted.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from clustermodel import TICKS_PER_SECOND, JobRow, Result, Workload
from clustermodel.experiment.random_streams import random_stream
from clustermodel.theory.processor_sharing_sample import processor_sharing_responses

MEAN_S = 100.0
"""Mean run time, seconds."""
BRANCHES = {40.0: 0.8, 340.0: 0.2}
"""Hyperexponential run times: mean of an exponential branch, seconds -> probability.  The squared coefficient of variation is
3.88."""
VARIANCE_S2 = {
    "constant": 0.0,
    "exponential": MEAN_S**2,
    "hyperexponential": 2 * sum(share * mean**2 for mean, share in BRANCHES.items()) - MEAN_S**2,
}
"""Variance of run times by shape, seconds squared."""

Floats = npt.NDArray[np.float64]


def run_times(shape: str, jobs: int, seed: int, about: str) -> Floats:
    """Return run times with a mean of 100 s, seconds."""
    rng = random_stream(seed, f"run times of {about}")
    if shape == "constant":
        return np.full(jobs, MEAN_S)
    if shape == "hyperexponential":
        return rng.exponential(np.where(rng.random(jobs) < BRANCHES[40.0], 40.0, 340.0))
    return rng.exponential(MEAN_S, jobs)


def poisson(rate: float, jobs: int, seed: int, about: str) -> Floats:
    """Return arrival times, seconds."""
    return np.cumsum(random_stream(seed, f"arrivals of {about}").exponential(size=jobs)) / rate


def sizes_of(sizes: Mapping[int, float], jobs: int, seed: int, about: str) -> Floats:
    """Return the nodes of jobs; ``sizes`` is nodes -> probability."""
    numbers = np.array(list(sizes), dtype=float)
    return random_stream(seed, f"sizes of {about}").choice(numbers, size=jobs, p=list(sizes.values()))


def workload(submit_s: Floats, run_s: Floats, nodes: Floats | float = 1.0) -> Workload:
    """Return jobs whose estimates are their run times."""
    submit, run = (np.round(times * TICKS_PER_SECOND).astype(np.int64) for times in (submit_s, run_s))
    columns = zip(
        submit.tolist(), np.maximum(run, 1).tolist(), np.broadcast_to(nodes, len(run)).astype(int).tolist(), strict=True
    )
    return Workload([JobRow(s, number, n, r, r, -1, -1, 0, -1) for number, (s, r, n) in enumerate(columns)])


def counted(result: Result, column: str) -> Floats:
    """Return a column of the job table without the first fifth, in which the machine fills, and the last twentieth, which no
    job joins any more.
    """
    return _counted(result.jobs[column].to_numpy(dtype=float))


def _counted(values: Floats) -> Floats:
    return values[len(values) // 5 : len(values) - len(values) // 20]


def mean_wait(result: Result) -> float:
    """Return the mean wait of the counted jobs, seconds."""
    return float(counted(result, "wait_s").mean())


def mean_response(result: Result) -> float:
    """Return the mean response of the counted jobs, seconds."""
    return float(counted(result, "response_s").mean())


def mean_run(result: Result) -> float:
    """Return the mean run time of the counted jobs, seconds: a control variate with mean 100 s."""
    return float(counted(result, "run_s").mean())


def mean_gap(result: Result) -> float:
    """Return the mean time between arrivals of the counted jobs, seconds: a control variate."""
    return float(np.diff(counted(result, "submit_s")).mean())


def shared_response(result: Result) -> float:
    """Return the mean response of the same jobs if they shared all nodes equally, seconds: a control variate (M/M/c)."""
    submit, run = (result.jobs[name].to_numpy() for name in ("submit_s", "run_s"))
    return float(_counted(processor_sharing_responses(submit, run, result.machine.nodes)).mean())


def shared_work_response(result: Result) -> float:
    """Return the mean response of the same work, run time x nodes, on one server as fast as all nodes, seconds: a control
    variate (M/G/1 processor sharing).
    """
    submit, run, nodes = (result.jobs[name].to_numpy() for name in ("submit_s", "run_s", "nodes"))
    return float(_counted(processor_sharing_responses(submit, run * nodes / result.machine.nodes, 1)).mean())
