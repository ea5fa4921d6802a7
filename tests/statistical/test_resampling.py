"""Intervals of sample paths, from resamples of a single log of M/M/2, hold Erlang's mean wait about as often as they say.

A hundred logs of 2,000 jobs, each resampled ten times in blocks of 5,000 s, about 40 to a log.  Of intervals that hold
the mean with probability 0.9, at least 85 of 100 do with probability 0.96; they are a little short of 0.95, since a log shows
less than all that can happen.  The interval of the mean over resamples, which narrows with their number, says nothing of the
sort: it holds Erlang's mean half the time.
"""

import numpy as np
import pytest

from clustermodel import Job, Workload
from clustermodel.measure.statistics import interval, of_sample_paths
from clustermodel.theory.queueing import mmc_mean_wait

pytestmark = pytest.mark.statistical

LOGS = 100
RESAMPLES = 10
JOBS = 2_000
BLOCK_S = 5_000.0
SERVICE_S = 100.0
RATE = 0.01


def mean_wait(jobs: Workload) -> float:
    """Return the mean wait for two nodes, first come first served, by Kiefer and Wolfowitz's recursion."""
    free, other, total = 0.0, 0.0, 0.0
    for submit, run in zip(jobs.seconds("submit").tolist(), jobs.seconds("run").tolist(), strict=True):
        free, other = min(free, other), max(free, other)
        start = max(submit, free)
        total += start - submit
        free = start + run
    return total / len(jobs)


def test_intervals_of_sample_paths_hold_the_mean_wait_of_mmc_and_those_of_the_mean_over_resamples_do_not() -> None:
    expected = mmc_mean_wait(2, RATE, SERVICE_S)
    means = np.empty((LOGS, RESAMPLES))
    for of_log, stream in zip(means, np.random.SeedSequence(20261125).spawn(LOGS), strict=True):
        rng = np.random.default_rng(stream)
        submit, run = np.cumsum(rng.exponential(1 / RATE, JOBS)), 0.001 + rng.exponential(SERVICE_S, JOBS)
        log = Workload.from_jobs(
            Job(id=number, submit_s=float(at), nodes=1, run_s=float(time), estimate_s=float(time))
            for number, (at, time) in enumerate(zip(submit, run, strict=True), 1)
        )
        of_log[:] = [mean_wait(log.resampled(BLOCK_S, seed=seed)) for seed in range(RESAMPLES)]
    found = [interval(of_log) for of_log in means]
    assert sum(expected in of_sample_paths(one) for one in found) >= 85
    assert sum(expected in one for one in found) <= 65
