"""What do context switches cost on one node with short slices: does the mean response agree with generalized processor sharing?

Slices of 50 ms, of which a switch takes a share CS: in every slice, or only where the next task is another one.  Poisson
arrivals, exponential and hyperexponential run times with a mean of 100 s.  The response of the same jobs under processor
sharing without switches is a control variate with a known mean.

    clustermodel validate scenarios/validation/shared_node.py --out results --set jobs=1000 --set loads=0.5
"""

from queueing_models import MEAN_S, SHAPES, mean_response_s, model_jobs, shared_response

from clustermodel import ContextSwitch, Machine, Scenario, TimeSlicing, Validation, validate
from clustermodel.theory.processor_sharing import mg1_ps_mean_response

QUANTUM_S, ROWS = 0.05, 256


def formula(charge: str, switch: float, load: float) -> float:
    return mg1_ps_mean_response(load / MEAN_S, MEAN_S, switch=switch, charge=charge)


def study(
    jobs: int = 6_000,
    at_most: int = 320,
    switches: tuple[float, ...] = (0.05,),
    shapes: tuple[str, ...] = ("exponential", "hyperexponential"),
    loads: tuple[float, ...] = (0.5, 0.8),
) -> Validation:
    def scenario(charge: str, switch: float, shape: str, load: float, seed: int) -> Scenario:
        stream = f"one shared node: {charge}, {switch}, {shape}, {load}"
        workload = model_jobs(jobs=jobs, seed=seed, stream=stream, run_s=SHAPES[shape], per_s=load / MEAN_S)
        machine = Machine(
            nodes=1,
            time_slicing=TimeSlicing(quantum_s=QUANTUM_S, mpl=ROWS),
            context_switch=ContextSwitch(fraction=switch, charge="on-change" if charge == "on-change" else "every-slice"),
        )
        return Scenario(machine=machine, workload=workload, policy="gs", seed=seed)

    return validate(
        formula,
        scenario=scenario,
        factors={"charge": ["every-slice", "on-change"], "switch": switches, "shape": shapes, "load": loads},
        measure=mean_response_s,
        margin=0.02,
        replications=20,
        at_most=max(at_most, 20),
        controls={"processor sharing": (shared_response, lambda load: mg1_ps_mean_response(load / MEAN_S, MEAN_S))},
        name="One node, short slices with switches: mean response",
    )
