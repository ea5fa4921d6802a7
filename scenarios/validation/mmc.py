"""Does the mean wait of one-node jobs on c nodes under FCFS agree with Erlang's delay formula for M/M/c (Kleinrock 1975)?

Poisson arrivals, exponential run times with a mean of 100 s.  Mean run time and mean time between arrivals of the counted jobs
are control variates.

    clustermodel validate scenarios/validation/mmc.py --out results --set jobs=1000 --set at_most=20
"""

from queueing_models import mean_gap, mean_run, mean_wait_s, model_jobs

from clustermodel import Exponential, Machine, Scenario, Validation, validate
from clustermodel.theory.queueing import mmc_mean_wait

MEAN_S = 100.0


def study(
    jobs: int = 20_000, at_most: int = 640, nodes: tuple[int, ...] = (1, 4, 16), loads: tuple[float, ...] = (0.5, 0.7, 0.85)
) -> Validation:
    def formula(nodes: int, load: float) -> float:
        return mmc_mean_wait(nodes, load * nodes / MEAN_S, MEAN_S)

    def scenario(nodes: int, load: float, seed: int) -> Scenario:
        stream = f"M/M/c under FCFS: mean wait (s): c = {nodes}, ρ = {load}"
        workload = model_jobs(jobs=jobs, seed=seed, stream=stream, run_s=Exponential(MEAN_S), per_s=load * nodes / MEAN_S)
        return Scenario(machine=Machine(nodes=nodes), workload=workload, policy="fcfs", seed=seed)

    return validate(
        formula,
        scenario=scenario,
        factors={"nodes": nodes, "load": loads},
        measure=mean_wait_s,
        margin=0.05,
        replications=20,
        at_most=max(at_most, 20),
        controls={"mean run": (mean_run, MEAN_S), "mean gap": (mean_gap, lambda nodes, load: MEAN_S / (load * nodes))},
        name="M/M/c, FCFS: mean wait",
    )
