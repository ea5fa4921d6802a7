"""Up to which cost of a checkpoint does preemption pay?

EASY never preempts.  PV-EASY preempts backfilled jobs for the first job that waits (Yuan et al. 2010); selective suspension
preempts for jobs with much larger expansion factors (Kettimuthu et al. 2005).  Both save a preempted job in a checkpoint, which
costs 0 to 600 s to write and as much to read.  The map shows which policy has the lowest mean bounded slowdown, by cost
and load.

    clustermodel sweep scenarios/tradeoffs/checkpoint_cost.py --out results
"""

from clustermodel import Checkpointing, Machine, Scenario, Study, synthetic_workload, tradeoff_map

POLICIES = {"EASY": "easy", "PV-EASY": "pv-easy:mode=checkpoint", "SS": "ss:mode=checkpoint"}


def study(jobs: int = 3_000, replications: int = 10) -> Study:
    def scenario(cost_s: float, load: float, policy: str, seed: int) -> Scenario:
        machine = Machine(nodes=128, checkpointing=Checkpointing(checkpoint_s=cost_s, restart_s=cost_s))
        workload = synthetic_workload(jobs=jobs, nodes=128, load=load, seed=seed)
        return Scenario(machine=machine, workload=workload, policy=POLICIES[policy], seed=seed)

    return tradeoff_map(
        scenario,
        {"cost_s": [0, 30, 120, 600], "load": [0.6, 0.7, 0.8, 0.9]},
        list(POLICIES),
        "mean_bounded_slowdown",
        replications=replications,
        name="cost of a checkpoint x load",
        shown=("mean_bounded_slowdown", "mean_response_s", "preempted", "checkpoint_share", "restart_share", "utilization"),
    )
