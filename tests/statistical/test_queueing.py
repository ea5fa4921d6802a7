"""One-node jobs under FCFS against closed forms, inside 99 % intervals of independent replications.

Run with ``pytest -m statistical`` (CONTRIBUTING.md names the command).  A 99 % interval misses its mean once in a hundred;
the seeds are fixed, so what passes once passes always.
"""

import numpy as np
import pytest
from scipy import stats

from clustermodel import Machine, Scenario, Workload
from clustermodel.experiment.result import Result
from clustermodel.theory.queueing import mg1_mean_wait, mmc_mean_wait
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.job import JobRow

pytestmark = pytest.mark.statistical

REPLICATIONS = 30
JOBS = 20_000
WARM_UP = 2_000


def serve(rate: float, service_s: np.ndarray, servers: int, rng: np.random.Generator) -> Result:
    """Simulate Poisson arrivals with the given service times on ``servers`` nodes."""
    submit = np.round(np.cumsum(rng.exponential(1 / rate, len(service_s))) * TICKS_PER_SECOND).astype(np.int64)
    run = np.maximum(1, np.round(service_s * TICKS_PER_SECOND)).astype(np.int64)
    rows = [
        JobRow(s, number, 1, r, r, -1, -1, 0, -1)
        for number, (s, r) in enumerate(zip(submit.tolist(), run.tolist(), strict=True))
    ]
    return Scenario(machine=Machine(nodes=servers), workload=Workload(rows), policy="fcfs").run()


def mean_wait(rate: float, service_s: np.ndarray, servers: int, rng: np.random.Generator) -> float:
    """Return the mean wait after the warm-up."""
    return float(serve(rate, service_s, servers, rng).jobs["wait_s"].iloc[WARM_UP:].mean())


def interval_99(means: list[float]) -> tuple[float, float]:
    low, high = stats.t.interval(0.99, len(means) - 1, loc=np.mean(means), scale=stats.sem(means))
    return float(low), float(high)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.7), (4, 0.8), (16, 0.9)])
def test_exponential_jobs_wait_as_erlang_c_says(servers: int, load: float) -> None:
    service, rate = 100.0, load * servers / 100.0
    streams = np.random.SeedSequence(20261121).spawn(REPLICATIONS)
    means = [mean_wait(rate, rng.exponential(service, JOBS), servers, rng) for rng in map(np.random.default_rng, streams)]
    low, high = interval_99(means)
    expected = mmc_mean_wait(servers, rate, service)
    assert low <= expected <= high
    assert high - low < 0.25 * expected  # an interval so wide that anything fits would prove nothing


@pytest.mark.parametrize("shape", ["deterministic", "uniform", "lognormal"])
def test_general_service_waits_as_pollaczek_and_khinchine_say(shape: str) -> None:
    def draw(rng: np.random.Generator) -> np.ndarray:
        return {
            "deterministic": lambda: np.full(JOBS, 60.0),
            "uniform": lambda: rng.uniform(0.0, 120.0, JOBS),
            "lognormal": lambda: rng.lognormal(np.log(60.0) - 0.5, 1.0, JOBS),
        }[shape]()

    variance = {"deterministic": 0.0, "uniform": 120.0**2 / 12, "lognormal": 60.0**2 * (np.e - 1)}[shape]
    rate = 0.7 / 60.0
    streams = np.random.SeedSequence(20261122).spawn(REPLICATIONS)
    means = [mean_wait(rate, draw(rng), 1, rng) for rng in map(np.random.default_rng, streams)]
    low, high = interval_99(means)
    expected = mg1_mean_wait(rate, 60.0, variance)
    assert low <= expected <= high
    assert high - low < 0.25 * expected
