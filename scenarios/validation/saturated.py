"""At saturation the loss of capacity is 1 - rho_max (Zhang et al. 2003, section 2.3): does it agree, until the last job starts?

All jobs are submitted at once, so jobs wait until the last start, and what is idle up to then is lost.  Neither side comes
from the ledger: rho counts run times in the job table, kappa counts empty nodes and nodes that wait for a switch in the log
of events and slices (eqs. (2) and (3)).  Work done after the last start is taken off the run times by the slice log.

    clustermodel validate scenarios/validation/saturated.py --out results
"""

import numpy as np
import pandas as pd

from clustermodel import (
    Checkpointing,
    ContextSwitch,
    Exponential,
    Machine,
    Result,
    Scenario,
    StudyTable,
    TimeSlicing,
    Validation,
    interval,
    validate,
)
from clustermodel.experiment.queueing_models import model_jobs
from clustermodel.theory.capacity import capacity_loss, gang_capacity_loss

NODES = 8
SIZES = dict.fromkeys(range(1, NODES + 1), 1 / NODES)


def kappa(result: Result) -> float:
    """Return the loss of capacity until the last start."""
    last = result.jobs["start_s"].max()
    if result.slices is None:
        log = result.events
        until = slice(0, int(np.searchsorted(log.time_s, last)) + 1)
        return capacity_loss(log.time_s[until], (log.empty + log.held_up)[until], log.waiting[until], NODES)
    machine = result.machine
    saturated = [stretch for stretch in result.slices if stretch.waiting]
    return gang_capacity_loss(saturated, machine.time_slicing.quantum, machine.switch_ticks, NODES)


def lost_share(result: Result) -> float:
    """Return 1 - rho until the last start."""
    start, end, nodes, run = (result.jobs[name].to_numpy(dtype=float) for name in ("start_s", "end_s", "nodes", "run_s"))
    last = start.max()
    if result.slices is None:
        done = float(nodes @ np.clip(np.minimum(end, last) - start, 0, None))
    else:
        machine, stretches = result.machine, list(result.slices)
        waiting = sum(stretch.waiting for stretch in stretches)
        draining = [stretch._replace(waiting=True) for stretch in stretches[waiting:]]  # as if all that it loses counted
        lost = gang_capacity_loss(draining, machine.time_slicing.quantum, machine.switch_ticks, NODES)
        done = float(nodes @ run) - NODES * (end.max() - last) * (1 - lost)
    return 1 - done / float(NODES * last)


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
    """Return the validation."""

    def scenario(policy: str, switches: str, seed: int) -> Scenario | None:
        if (policy in ("fcfs", "bf")) != (switches == "none"):
            return None
        shared = Machine(
            nodes=NODES,
            time_slicing=TimeSlicing(quantum_s=20, mpl=4),
            context_switch=ContextSwitch(fraction=0.02, charge="on-change" if switches == "on-change" else "every-slice"),
            checkpointing=Checkpointing(checkpoint_s=3, restart_s=7),
        )
        workload = model_jobs(jobs=jobs, seed=seed, stream="the same for all", run_s=Exponential(100), sizes=SIZES)
        machine = Machine(nodes=NODES) if switches == "none" else shared
        return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)

    return validate(
        lost_share,
        scenario=scenario,
        factors={
            "policy": ["fcfs", "bf", "gs", "bgs", "mgs", "mbgs"],
            "switches": ["none", "every-slice", "on-change"],
        },
        measure=kappa,
        margin=1e-9,
        replications=replications,
        at_most=replications,
        name="Loss of capacity at saturation",
        shown=("simulated", "by_formula", "utilization", "kappa"),
        tables={"The whole run": whole_run},
    )
