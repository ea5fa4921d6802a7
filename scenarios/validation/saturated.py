"""At saturation the loss of capacity is 1 - rho_max (Zhang et al. 2003, section 2.3): does it agree, until the last job starts?

All jobs are submitted at once, so jobs wait until the last start, and what is idle up to then is lost.  Neither side comes
from the ledger: rho counts run times in the job table, kappa counts empty nodes and nodes that wait for a switch in the log
of events and slices (eqs. (2) and (3)).  Work done after the last start is taken off the run times by the slice log.

    clustermodel validate scenarios/validation/saturated.py --out results
"""

import pandas as pd
from kappa import JOBS, SHARED, SWITCHES
from queueing_models import kappa_until_last_start, utilization_until_last_start

from clustermodel import Machine, Result, Scenario, StudyTable, Validation, interval, validate


def lost_share(result: Result) -> float:
    return 1 - utilization_until_last_start(result)


def whole_run(table: StudyTable) -> pd.DataFrame:
    """Return the whole run, as eqs. (1) to (3) define it: kappa falls short of 1 - rho by what is idle after the last start."""
    rows = []
    for point in table.points(["policy", "switches"]):
        here = table.at(**point).frame
        idle, lost = 1 - here["utilization"], here["kappa"]
        drained = str(interval(idle - lost)) if len(here) > 1 else ""
        rows.append({**point, "1 - ρ": idle.mean(), "κ": lost.mean(), "idle while no job waits": drained})
    return pd.DataFrame(rows)


def study(jobs: int = 400, replications: int = 20) -> Validation:
    def scenario(policy: str, switches: str, seed: int) -> Scenario | None:
        if (policy in ("fcfs", "bf")) != (switches == "none"):
            return None
        machine = SHARED(nodes=8, context_switch=SWITCHES[switches]) if switches in SWITCHES else Machine(nodes=8)
        return Scenario(machine=machine, workload=JOBS(jobs=jobs, seed=seed), policy=policy, seed=seed)

    return validate(
        lost_share,
        scenario=scenario,
        factors={"policy": ["fcfs", "bf", "gs", "bgs", "mgs", "mbgs"], "switches": ["none", *SWITCHES]},
        measure=kappa_until_last_start,
        margin=1e-9,
        replications=replications,
        at_most=replications,
        name="Loss of capacity at saturation",
        shown=("simulated", "by_formula", "utilization", "kappa"),
        tables={"The whole run": whole_run},
    )
