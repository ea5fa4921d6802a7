"""Is the highest utilization of rigid jobs under FCFS what Rumyantsev and Morozov (2017) say?

Jobs of several sizes with exponential run times of one mean are all submitted at once to 8 nodes.  Utilization is measured from
when a tenth of them have started until the last one starts: so long jobs always wait.

    clustermodel validate scenarios/validation/saturation.py --out results --set jobs=1000
"""

from functools import partial

from queueing_models import model_jobs, utilization_until_last_start

from clustermodel import Exponential, Machine, Scenario, Validation, validate
from clustermodel.theory.rigid_jobs import multiserver_job_utilization

NODES, SKIPPED = 8, 0.1
"""Skipped: the share of the jobs that start while the machine fills."""
SIZES = {
    **{
        f"{100 * share:g} % of the jobs have {nodes} nodes, the others 1": {1: 1 - share, nodes: share}
        for nodes in (4, 5, 8)
        for share in (0.05, 0.2, 0.5, 0.8)
    },
    "1 to 8 nodes alike": dict.fromkeys(range(1, NODES + 1), 1 / NODES),
    "1, 2, 4 or 8 nodes alike": dict.fromkeys((1, 2, 4, 8), 0.25),
}
"""Nodes of a job -> probability."""


def formula(sizes: dict[int, float]) -> float:
    return multiserver_job_utilization(NODES, sizes)


def study(jobs: int = 4_000, at_most: int = 320) -> Validation:
    def scenario(sizes: dict[int, float], seed: int) -> Scenario:
        label = next(label for label, given in SIZES.items() if given == sizes)
        stream = f"Rigid jobs under FCFS, {NODES} nodes: highest utilization: {label}"
        workload = model_jobs(jobs=jobs, seed=seed, stream=stream, run_s=Exponential(100), sizes=sizes)
        return Scenario(machine=Machine(nodes=NODES), workload=workload, policy="fcfs", seed=seed)

    return validate(
        formula,
        scenario=scenario,
        factors={"sizes": SIZES},
        measure=partial(utilization_until_last_start, skip=SKIPPED),
        margin=0.01,
        replications=20,
        at_most=max(at_most, 20),
        name="Rigid jobs, FCFS: highest utilization",
    )
