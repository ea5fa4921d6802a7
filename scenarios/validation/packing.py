"""How full are the rows of a saturated machine: do jobs with equal run times fill them as next fit and best fit do?

Jobs are submitted at once to 8 nodes; a slice is as long as a run time, so what runs in a slice completes in it.  FCFS packs as
next fit, gang scheduling with MPL open rows as best fit where sizes divide one another.  The fill is the work of the jobs by
the makespan times 8 nodes.

    clustermodel validate scenarios/validation/packing.py --out results --set jobs=500
"""

from queueing_models import model_jobs

from clustermodel import Machine, Scenario, TimeSlicing, Validation, validate
from clustermodel.theory.packing import best_fit_fill, next_fit_fill

NODES, RUN_S = 8, 100.0
SIZES = {
    "1, 2, 4 or 8 nodes": dict.fromkeys((1, 2, 4, 8), 0.25),
    "1 to 8 nodes": dict.fromkeys(range(1, NODES + 1), 1 / NODES),
    "3 or 5 nodes": {3: 0.5, 5: 0.5},
}
"""Size -> probability."""


def formula(policy: str, mpl: int, sizes: dict[int, float]) -> float | None:
    """Return the mean fill; best fit in several rows only where FillMatrix finds nothing to add."""
    if mpl > 1 and (policy == "fcfs" or set(sizes) != {1, 2, 4, 8}):
        return None
    return next_fit_fill(NODES, sizes) if mpl == 1 else best_fit_fill(NODES, sizes, mpl)


def study(jobs: int = 2_000, at_most: int = 160) -> Validation:
    def scenario(policy: str, mpl: int, sizes: dict[int, float], seed: int) -> Scenario:
        stream = f"packing: {policy}, {mpl}, {sorted(sizes)}"
        workload = model_jobs(jobs=jobs, seed=seed, stream=stream, run_s=RUN_S, sizes=sizes)
        machine = Machine(nodes=NODES, time_slicing=TimeSlicing(quantum_s=RUN_S, mpl=mpl))
        return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)

    return validate(
        formula,
        scenario=scenario,
        factors={"policy": ["fcfs", "gs"], "mpl": [1, 3], "sizes": SIZES},
        measure="utilization",
        margin=0.005,
        replications=20,
        at_most=max(at_most, 20),
        name="Equal run times, all at once: fill of rows",
    )
