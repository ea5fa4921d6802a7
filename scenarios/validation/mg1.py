"""Does the mean response of one-node jobs on one node agree with Pollaczek and Khinchine, and with processor sharing?

Poisson arrivals; constant, exponential and hyperexponential run times with a mean of 100 s.  FCFS: M/G/1 (Kleinrock 1975).
Gang scheduling with slices of 50 ms and a row for every job: M/G/1 processor sharing, of which the mean response is E[S] /
(1 - rho) whatever the distribution (Kleinrock 1976).  A lap of the rho / (1 - rho) jobs that share the node takes 0.2 s at
rho = 0.8: so much can the slices of 50 ms change a response of 500 s.

    clustermodel validate scenarios/validation/mg1.py --out results --set jobs=1000 --set at_most=20
"""

from queueing_models import HYPEREXPONENTIAL, MEAN_S, SHAPES, mean_gap, mean_response_s, mean_run, model_jobs

from clustermodel import Machine, Scenario, TimeSlicing, Validation, validate
from clustermodel.theory.processor_sharing import mg1_ps_mean_response
from clustermodel.theory.queueing import mg1_mean_wait

QUANTUM_S, ROWS = 0.05, 256
CV = {"constant": 0.0, "exponential": 1.0, "hyperexponential": HYPEREXPONENTIAL.cv}
"""Coefficients of variation of the run times."""
FAMILIES = {"fcfs": "M/G/1 under FCFS: mean response (s)", "gs": "M/G/1-PS by GS: mean response (s)"}


def formula(policy: str, shape: str, load: float) -> float:
    if policy == "gs":
        return mg1_ps_mean_response(load / MEAN_S, MEAN_S)
    return MEAN_S + mg1_mean_wait(load / MEAN_S, MEAN_S, (CV[shape] * MEAN_S) ** 2)


def study(
    jobs: int = 20_000,
    at_most: int = 640,
    policies: tuple[str, ...] = ("fcfs", "gs"),
    shapes: tuple[str, ...] = ("hyperexponential", "constant"),
    loads: tuple[float, ...] = (0.3, 0.5, 0.7, 0.8),
) -> Validation:
    def scenario(policy: str, shape: str, load: float, seed: int) -> Scenario:
        stream = f"{FAMILIES[policy]}: {shape} run times, ρ = {load}"
        workload = model_jobs(jobs=jobs, seed=seed, stream=stream, run_s=SHAPES[shape], per_s=load / MEAN_S)
        machine = Machine(nodes=1, time_slicing=TimeSlicing(quantum_s=QUANTUM_S, mpl=ROWS))
        return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)

    return validate(
        formula,
        scenario=scenario,
        factors={"policy": policies, "shape": shapes, "load": loads},
        measure=mean_response_s,
        margin=0.05,
        replications=20,
        at_most=max(at_most, 20),
        controls={"mean run": (mean_run, MEAN_S), "mean gap": (mean_gap, lambda load: MEAN_S / load)},
        name="M/G/1: mean response",
    )
