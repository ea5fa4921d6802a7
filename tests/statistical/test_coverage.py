"""Intervals of replicated simulations of M/M/c hold Erlang's mean wait as often as they say.

A hundred experiments of ten replications each.  If an interval covers with probability 0.95, the number of hits is binomial and
lies between 90 and 99 with probability 0.966; the seeds are fixed, so what passes once passes always.

The warm-up is the same for all replications: 5,000 s, 50 mean service times, chosen by a user who has seen that MSER-5, on
waits averaged over replications, would cut sooner.  Means of 1,000 waits are a little skewed: by Kiefer and
Wolfowitz's recursion, in 2,000 such experiments, the intervals cover 94 % of the time.
"""

import numpy as np
import pytest

from clustermodel.measure.statistics import interval, mser5
from clustermodel.theory.queueing import mmc_mean_wait
from tests.statistical.test_queueing import serve

pytestmark = pytest.mark.statistical

EXPERIMENTS = 100
REPLICATIONS = 10
JOBS = 1_000
SERVERS = 2
SERVICE_S = 100.0
RATE = 0.5 * SERVERS / SERVICE_S
WARM_UP_S = 5_000.0


def test_95_percent_intervals_of_the_mean_wait_in_mmc_hold_it_90_to_99_times_in_100() -> None:
    expected = mmc_mean_wait(SERVERS, RATE, SERVICE_S)
    means, waits = np.empty((EXPERIMENTS, REPLICATIONS)), np.zeros(JOBS)
    for place, stream in enumerate(np.random.SeedSequence(20261123).spawn(means.size)):
        rng = np.random.default_rng(stream)
        result = serve(RATE, rng.exponential(SERVICE_S, JOBS), SERVERS, rng)
        means.flat[place] = result.summary(warm_up_s=WARM_UP_S).mean_wait_s
        waits += result.jobs["wait_s"].to_numpy() / means.size
    suggested = mser5(waits)
    assert suggested.settled
    assert 0 < suggested.drop / RATE < WARM_UP_S
    assert 90 <= sum(expected in interval(of_one) for of_one in means) <= 99
    assert interval(means.ravel()).mean == pytest.approx(expected, rel=0.03)
