"""Does the mean response on one node with slices of finite length agree with the Markov chain of its slices?

Gang scheduling on one node: an arrival or a completion ends the running slice; switches of 5 s.  Exponential run times by
``mm1_round_robin_mean_response``, for any MPL >= 2, hyperexponential ones by ``sliced_node_mean_response``.  The response of
the same jobs under processor sharing is a control variate with a known mean.

    clustermodel validate scenarios/validation/slices.py --out results --set jobs=1000
"""

from queueing_models import MEAN_S, SHAPES, mean_response_s, model_jobs, shared_response

from clustermodel import ContextSwitch, Machine, Scenario, TimeSlicing, Validation, validate
from clustermodel.theory.processor_sharing import mg1_ps_mean_response
from clustermodel.theory.round_robin import mm1_round_robin_mean_response
from clustermodel.theory.sliced_node import sliced_node_mean_response

SWITCH_S = 5.0


def formula(shape: str, charge: str, quantum_s: float, mpl: int, load: float) -> float:
    rate = load / MEAN_S
    if shape == "exponential":
        return mm1_round_robin_mean_response(rate, MEAN_S, quantum_s, SWITCH_S, charge=charge, arrivals="cut")
    return sliced_node_mean_response(rate, {40.0: 0.8, 340.0: 0.2}, quantum_s, SWITCH_S, mpl=mpl, charge=charge)


def study(
    jobs: int = 6_000,
    at_most: int = 160,
    slices: tuple[float, ...] = (60.0, 200.0),
    levels: tuple[int, ...] = (2, 5),
    loads: tuple[float, ...] = (0.5,),
) -> Validation:
    """Return the validation; ``levels`` are multiprogramming levels."""

    def scenario(shape: str, charge: str, quantum_s: float, mpl: int, load: float, seed: int) -> Scenario:
        stream = f"slices on one node: {shape}, {charge}, {quantum_s}, {mpl}, {load}"
        workload = model_jobs(jobs=jobs, seed=seed, stream=stream, run_s=SHAPES[shape], per_s=load / MEAN_S)
        machine = Machine(
            nodes=1,
            time_slicing=TimeSlicing(quantum_s=quantum_s, mpl=mpl),
            context_switch=ContextSwitch(seconds=SWITCH_S, charge="on-change" if charge == "on-change" else "every-slice"),
        )
        return Scenario(machine=machine, workload=workload, policy="gs", seed=seed)

    return validate(
        formula,
        scenario=scenario,
        factors={
            "shape": ["exponential", "hyperexponential"],
            "charge": ["every-slice", "on-change"],
            "quantum_s": slices,
            "mpl": levels,
            "load": loads,
        },
        measure=mean_response_s,
        margin=0.03,
        replications=20,
        at_most=max(at_most, 20),
        controls={"processor sharing": (shared_response, lambda load: mg1_ps_mean_response(load / MEAN_S, MEAN_S))},
        name="One node, long slices with switches: mean response",
    )
