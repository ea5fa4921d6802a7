"""What does migration gain: does the mean response of one-node gangs agree with joining the shortest queue, and with M/M/c?

Gang scheduling without migration (``gs``) sends an arriving job to the column with the fewest jobs, and the job stays there: c
queues, of which the shortest is joined (Haight 1958; Flatto & McKean 1977).  With free migration (``mgs``) no column is idle
while another has two jobs: M/M/c.  Slices of 250 ms without switches, a row for every job.  The response of the same jobs under
processor sharing on c servers is a control variate with a known mean.  Responses are in mean run times.

    clustermodel validate scenarios/validation/gangs.py --out results --set jobs=1000 --set loads=0.5,0.8
"""

from queueing_models import mean_response_s, model_jobs, shared_response

from clustermodel import Exponential, Machine, Result, Scenario, TimeSlicing, Validation, validate
from clustermodel.theory.gangs import gs_mean_response, mgs_mean_response

MEAN_S, QUANTUM_S, ROWS = 100.0, 0.25, 256


def formula(policy: str, nodes: int, load: float) -> float:
    return (gs_mean_response if policy == "gs" else mgs_mean_response)(nodes, load * nodes, 1.0)


def response_in_mean_run_times(result: Result) -> float:
    return mean_response_s(result) / MEAN_S


def shared(result: Result) -> float:
    return shared_response(result) / MEAN_S


def study(
    jobs: int = 6_000, at_most: int = 160, nodes: tuple[int, ...] = (2,), loads: tuple[float, ...] = (0.5, 0.8, 0.9)
) -> Validation:
    def scenario(policy: str, nodes: int, load: float, seed: int) -> Scenario:
        stream = f"one-node gangs: {policy}, {nodes}, {load}"
        workload = model_jobs(jobs=jobs, seed=seed, stream=stream, run_s=Exponential(MEAN_S), per_s=load * nodes / MEAN_S)
        machine = Machine(nodes=nodes, time_slicing=TimeSlicing(quantum_s=QUANTUM_S, mpl=ROWS))
        return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)

    return validate(
        formula,
        scenario=scenario,
        factors={"policy": ["gs", "mgs"], "nodes": nodes, "load": loads},
        measure=response_in_mean_run_times,
        margin=0.02,
        replications=20,
        at_most=max(at_most, 20),
        controls={"processor sharing": (shared, lambda nodes, load: mgs_mean_response(nodes, load * nodes, 1.0))},
        name="One-node gangs: mean response",
    )
