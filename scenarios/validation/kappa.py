"""Is the loss of capacity in the ledger that of Zhang et al. 2003, eqs. (2) and (3)?

The equations are computed from the log of events and slices of each run: (2) for space sharing, (3) for time sharing, with
migration's checkpoints and restarts.  Both count the same run, so they must be equal but for rounding.

    clustermodel validate scenarios/validation/kappa.py --out results
"""

from functools import partial

from queueing_models import model_jobs

from clustermodel import Checkpointing, ContextSwitch, Exponential, Machine, Result, Scenario, TimeSlicing, Validation, validate

CHECKPOINT_S, RESTART_S = 3.0, 7.0
"""A restart is longer than a checkpoint, so that neither can be mistaken for the other."""
SHARED = partial(
    Machine,
    time_slicing=TimeSlicing(quantum_s=20, mpl=4),
    checkpointing=Checkpointing(checkpoint_s=CHECKPOINT_S, restart_s=RESTART_S),
)
"""Makes a machine that gangs share."""
SWITCHES = {
    "every-slice": ContextSwitch(fraction=0.02, charge="every-slice"),
    "on-change": ContextSwitch(fraction=0.02, charge="on-change"),
}
MEAN_S, SIZES = 100.0, dict.fromkeys(range(1, 9), 1 / 8)
JOBS = partial(model_jobs, stream="the same for all", run_s=Exponential(MEAN_S), sizes=SIZES)
LOADED_PER_S = 0.75 / (4.5 * MEAN_S)
"""Arrival rate per node for a load of 0.75, which FCFS cannot carry."""
POLICIES = {"eq. (2)": ("fcfs", "bf"), "eq. (3)": ("gs", "bgs", "mgs", "mbgs")}


def formula(result: Result) -> float:
    return result.kappa_by_formula


def study(jobs: int = 400, replications: int = 20) -> Validation:
    def scenario(equation: str, policy: str, switches: str, seed: int) -> Scenario | None:
        if policy not in POLICIES[equation] or (equation == "eq. (3)") != (switches != "none"):
            return None
        machine = SHARED(nodes=8, context_switch=SWITCHES[switches]) if switches in SWITCHES else Machine(nodes=8)
        return Scenario(machine=machine, workload=JOBS(jobs=jobs, seed=seed, per_s=8 * LOADED_PER_S), policy=policy, seed=seed)

    return validate(
        formula,
        scenario=scenario,
        factors={"equation": list(POLICIES), "policy": sum(POLICIES.values(), ()), "switches": ["none", *SWITCHES]},
        measure="kappa",
        margin=1e-9,
        replications=replications,
        at_most=replications,
        name="Loss of capacity by eqs. (2), (3)",
    )
