"""A small validation that the tests run in several ways: the mean of drawn run times, by a right formula and by wrong ones."""

import numpy as np

from clustermodel import JobRow, Machine, Scenario, Workload, validate

JOBS = 12


def scenario(mean_s: float, error: float, seed: int) -> Scenario:
    """Return jobs that start at once; run times are drawn anew for each level of ``error``."""
    run_s = mean_s * np.random.default_rng([seed, round(1000 * error) + 100]).uniform(0.9, 1.1, JOBS)
    ticks = [round(1e6 * one) for one in run_s]
    jobs = Workload([JobRow(0, number, 1, run, run, -1, -1, 0, -1) for number, run in enumerate(ticks)])
    return Scenario(machine=Machine(nodes=JOBS), workload=jobs, policy="fcfs")


def mean_response(mean_s: float, error: float) -> float:
    """Return the mean response, wrong by a share of it."""
    return mean_s * (1 + error)


study = validate(
    mean_response,
    scenario=scenario,
    factors={"mean_s": [100, 400], "error": [0.0, 0.05]},
    measure="mean_response_s",
    replications=5,
    at_most=80,
    seed=3,
)
