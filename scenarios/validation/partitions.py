"""Does each part of a machine behave as a machine of its own: M/M/c by Erlang's delay formula (Kleinrock 1975)?

One-node jobs with exponential run times of 100 s on average come to a partition of c nodes; or they are jobs of an account that
may have c jobs at a time, on a machine with more nodes.  Other jobs have a node of their own, or may have one at a time.  Mean
run time and mean time between arrivals of the counted jobs are control variates.

    clustermodel validate scenarios/validation/partitions.py --out results --set jobs=1000 --set at_most=20
"""

import numpy as np
import pandas as pd
from queueing_models import middle

from clustermodel import Limits, Machine, Partition, Result, Scenario, Site, Validation, Workload, validate
from clustermodel.arrays import FloatArray
from clustermodel.experiment.scenario import random_stream
from clustermodel.theory.queueing import mmc_mean_wait

MEAN_S = 100.0
OTHERS_PER_S = 0.005
"""Arrival rate of the other jobs, which keep a node busy half of the time."""


def counted(result: Result, column: str) -> FloatArray:
    """Return a column of the counted jobs, without the first and the last ones."""
    jobs = result.jobs
    values: FloatArray = jobs.loc[jobs["partition"] == "counted", column].to_numpy(dtype=float)
    return middle(values)


def mean_wait_s(result: Result) -> float:
    return float(counted(result, "wait_s").mean())


def mean_run(result: Result) -> float:
    return float(counted(result, "run_s").mean())


def mean_gap(result: Result) -> float:
    return float(np.diff(counted(result, "submit_s")).mean())


def study(
    jobs: int = 10_000, at_most: int = 320, nodes: tuple[int, ...] = (1, 4), loads: tuple[float, ...] = (0.7,)
) -> Validation:
    def formula(nodes: int, load: float) -> float:
        return mmc_mean_wait(nodes, load * nodes / MEAN_S, MEAN_S)

    def jobs_of(name: str, number: int, per_s: float, rng: np.random.Generator) -> pd.DataFrame:
        submit_s = np.cumsum(rng.exponential(1 / per_s, number))
        columns = {"submit_s": submit_s, "run_s": rng.exponential(MEAN_S, number), "nodes": 1}
        return pd.DataFrame({**columns, "partition": name, "account": name})

    def scenario(rule: str, nodes: int, load: float, seed: int) -> Scenario:
        per_s, rng = load * nodes / MEAN_S, random_stream(seed, f"M/M/c by {rule}: c = {nodes}, load = {load}")
        numbers = {"counted": (jobs, per_s), "others": (round(jobs * OTHERS_PER_S / per_s), OTHERS_PER_S)}
        all_jobs = pd.concat([jobs_of(name, *number, rng) for name, number in numbers.items()])
        workload = Workload.from_frame(all_jobs.sort_values("submit_s", ignore_index=True))
        limits = [Limits(account="counted", running_jobs=nodes), Limits(account="others", running_jobs=1)]
        partitions = [Partition(name="counted", nodes=f"0-{nodes - 1}"), Partition(name="others", nodes=f"{nodes}")]
        site = Site(limits=limits) if rule == "limits" else Site(partitions=partitions)
        machine = Machine(nodes=2 * nodes if rule == "limits" else nodes + 1)
        return Scenario(machine=machine, workload=workload, policy="fcfs", site=site, seed=seed)

    return validate(
        formula,
        scenario=scenario,
        factors={"rule": ("partitions", "limits"), "nodes": nodes, "load": loads},
        measure=mean_wait_s,
        margin=0.05,
        replications=20,
        at_most=max(at_most, 20),
        controls={"mean run": (mean_run, MEAN_S), "mean gap": (mean_gap, lambda nodes, load: MEAN_S / (load * nodes))},
        name="M/M/c in a partition, or under a limit: mean wait",
    )
