"""Is the loss of capacity in the ledger that of Zhang et al. 2003, eqs. (2) and (3)?

The equations are computed from the log of events and slices of each run: (2) for space sharing, (3) for time sharing, with
migration's checkpoints and restarts.  Both count the same run, so they must be equal but for rounding.

    clustermodel validate scenarios/validation/capacity_loss.py --out results
"""

from rigid import rigid_jobs, shared_machine

from clustermodel import Result, Scenario, Validation, validate

POLICIES = {"eq. (2)": ("fcfs", "bf"), "eq. (3)": ("gs", "bgs", "mgs", "mbgs")}


def formula(result: Result) -> float:
    """Return kappa by the equations."""
    return result.kappa_by_formula


def study(jobs: int = 400, replications: int = 20) -> Validation:
    """Return the validation."""

    def scenario(equation: str, policy: str, switches: str, seed: int) -> Scenario | None:
        shared = equation == "eq. (3)"
        if policy not in POLICIES[equation] or shared != (switches != "none"):
            return None
        machine = shared_machine(switches)
        return Scenario(machine=machine, workload=rigid_jobs(jobs, seed, machine.nodes), policy=policy, seed=seed)

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
        text=__doc__ or "",
    )
