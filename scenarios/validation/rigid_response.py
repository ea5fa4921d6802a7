"""Does the mean response of rigid jobs under FCFS agree with the exact Markov chain?

Poisson arrivals; jobs of one node and of all nodes with exponential run times, of one mean or of two.  The load is a share of
the highest utilization.  Mean run time and mean time between arrivals are control variates.

    clustermodel validate scenarios/validation/rigid_response.py --out results --set jobs=1000
"""

from typing import Any

from queueing_models import mean_gap, mean_response_s, mean_run, model_jobs

from clustermodel import Machine, Scenario, Validation, validate
from clustermodel.theory.rigid_jobs import fcfs_mean_response, multiserver_job_throughput

MACHINES = {
    "8 nodes, one mean": (8, {1: 2 / 3, 8: 1 / 3}, {1: 100.0, 8: 100.0}),
    "4 nodes, small jobs longer": (4, {1: 0.5, 4: 0.5}, {1: 200.0, 4: 150.0}),
    "4 nodes, small jobs much longer": (4, {1: 0.5, 4: 0.5}, {1: 600.0, 4: 50.0}),
}
"""Nodes, size -> probability, size -> mean run time, seconds."""


def arrival_rate(machine: Any, share: float) -> float:
    return share * multiserver_job_throughput(*machine)


def formula(machine: Any, share: float) -> float:
    nodes, sizes, means_s = machine
    return fcfs_mean_response(nodes, arrival_rate(machine, share), sizes, means_s)


def study(jobs: int = 20_000, at_most: int = 320, shares: tuple[float, ...] = (0.5, 0.8)) -> Validation:
    """Return the validation; ``shares`` are loads relative to the highest utilization."""

    def scenario(machine: Any, share: float, seed: int) -> Scenario:
        nodes, sizes, means_s = machine
        stream, rate = f"rigid jobs under FCFS: {nodes}, {means_s}, {share}", arrival_rate(machine, share)
        workload = model_jobs(jobs=jobs, seed=seed, stream=stream, run_s=means_s, per_s=rate, sizes=sizes)
        return Scenario(machine=Machine(nodes=nodes), workload=workload, policy="fcfs", seed=seed)

    def expected_run(machine: Any) -> float:
        _, sizes, means_s = machine
        return float(sum(share * means_s[size] for size, share in sizes.items()))

    return validate(
        formula,
        scenario=scenario,
        factors={"machine": MACHINES, "share": shares},
        measure=mean_response_s,
        margin=0.05,
        replications=20,
        at_most=max(at_most, 20),
        controls={
            "mean run": (mean_run, expected_run),
            "mean gap": (mean_gap, lambda machine, share: 1 / arrival_rate(machine, share)),
        },
        name="Rigid jobs, FCFS: mean response",
    )
