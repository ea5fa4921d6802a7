"""Is the loss of capacity in the ledger that of Zhang et al. 2003, eqs. (2) and (3)?

The equations are computed from the log of events and slices of each run: (2) for space sharing, (3) for time sharing, with
migration's checkpoints and restarts.  Both count the same run, so they must be equal but for rounding.

    clustermodel validate scenarios/validation/capacity_loss.py --out results
"""

from clustermodel import Checkpointing, ContextSwitch, Exponential, Machine, Result, Scenario, TimeSlicing, Validation, validate
from clustermodel.experiment.queueing_models import model_jobs

MEAN_S, LOAD = 100.0, 0.75
"""FCFS cannot carry this load."""
SIZES = dict.fromkeys(range(1, 9), 1 / 8)
POLICIES = {"eq. (2)": ("fcfs", "bf"), "eq. (3)": ("gs", "bgs", "mgs", "mbgs")}


def formula(result: Result) -> float:
    """Return kappa by the equations."""
    return result.kappa_by_formula


def study(jobs: int = 400, replications: int = 20) -> Validation:
    """Return the validation."""

    def scenario(equation: str, policy: str, switches: str, seed: int) -> Scenario | None:
        if policy not in POLICIES[equation] or (equation == "eq. (3)") != (switches != "none"):
            return None
        shared = Machine(
            nodes=8,
            time_slicing=TimeSlicing(quantum_s=20, mpl=4),
            context_switch=ContextSwitch(fraction=0.02, charge="on-change" if switches == "on-change" else "every-slice"),
            checkpointing=Checkpointing(checkpoint_s=3, restart_s=7),
        )
        rate = LOAD * 8 / (4.5 * MEAN_S)
        workload = model_jobs(
            jobs=jobs, seed=seed, stream="the same for all", run_s=Exponential(MEAN_S), per_s=rate, sizes=SIZES
        )
        return Scenario(machine=Machine(nodes=8) if switches == "none" else shared, workload=workload, policy=policy, seed=seed)

    return validate(
        formula,
        scenario=scenario,
        factors={
            "equation": list(POLICIES),
            "policy": [policy for policies in POLICIES.values() for policy in policies],
            "switches": ["none", "every-slice", "on-change"],
        },
        measure="kappa",
        margin=1e-9,
        replications=replications,
        at_most=replications,
        name="Loss of capacity by eqs. (2), (3)",
    )
