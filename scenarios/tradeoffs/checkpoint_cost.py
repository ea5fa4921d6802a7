"""How expensive can a checkpoint be before preemption no longer pays?

EASY never preempts.  PV-EASY preempts backfilled jobs for the first job that waits (Yuan et al. 2010); selective suspension
preempts for jobs with much larger expansion factors (Kettimuthu et al. 2005).  Both save a preempted job in a checkpoint, which
costs 0 s to 4 h to write and as much to read.  The curves are paired ratios to EASY; the map shows which policy has the
lowest mean bounded slowdown, by cost and load.

    clustermodel sweep scenarios/tradeoffs/checkpoint_cost.py --out results
"""

from clustermodel import Checkpointing, Machine, Scenario, Study, synthetic_workload, tradeoff_map

COSTS_S = (120, 600, 1_800, 3_600, 7_200, 14_400)
SLOWDOWN, RESPONSE = "mean_bounded_slowdown", "mean_response_s"
LABELS = {"cost_s": "cost of a checkpoint, and of a restart (s)"}
POLICIES = {"EASY": "easy", "PV-EASY": "pv-easy:mode=checkpoint", "SS": "ss:mode=checkpoint"}


def study(jobs: int = 3_000, replications: int = 10) -> Study:
    def scenario(cost_s: float, load: float, policy: str, seed: int) -> Scenario:
        machine = Machine(nodes=128, checkpointing=Checkpointing(checkpoint_s=cost_s, restart_s=cost_s))
        workload = synthetic_workload(jobs=jobs, nodes=128, load=load, seed=seed)
        return Scenario(machine=machine, workload=workload, policy=POLICIES[policy], seed=seed)

    return tradeoff_map(
        scenario,
        {"cost_s": [0, *COSTS_S], "load": [0.6, 0.7, 0.8, 0.9]},
        list(POLICIES),
        SLOWDOWN,
        replications=replications,
        name="cost of a checkpoint x load",
        shown=(SLOWDOWN, RESPONSE, "preempted", "checkpoint_share", "restart_share", "utilization"),
        figures={
            "Slowdown and response relative to EASY": lambda table: table.at(load=[0.6, 0.9], cost_s=[*COSTS_S]).plot.ratios(
                x="cost_s", y=[SLOWDOWN, RESPONSE], baseline="EASY", panels="load", log=True, log_x=True, labels=LABELS
            ),
            "Lowest slowdown": lambda table: table.plot.winners(SLOWDOWN, x="cost_s", y="load", labels=LABELS),
        },
    )
