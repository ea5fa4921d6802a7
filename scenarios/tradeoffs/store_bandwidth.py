"""How much bandwidth must the checkpoint store have for preemption to pay?

EASY never preempts.  PV-EASY preempts backfilled jobs for the first job that waits (Yuan et al. 2010); selective suspension
preempts for jobs with much larger expansion factors (Kettimuthu et al. 2005).  Both save a preempted job in the checkpoint
store, whose bandwidth all gangs that write or read share.  The memory of a task is lognormal with a mean of 4 GiB.

    clustermodel sweep scenarios/tradeoffs/store_bandwidth.py --out results
"""

from clustermodel import (
    Checkpointing,
    CheckpointStore,
    FactorEstimates,
    JobStream,
    Lognormal,
    Machine,
    Poisson,
    Scenario,
    Study,
    TwoStageUniform,
    tradeoff_map,
)

BANDWIDTHS_GIB_S = (0.02, 0.05, 0.1, 0.25, 1, 4, 16)
SLOWDOWN, RESPONSE = "mean_bounded_slowdown", "mean_response_s"
LABELS = {"bandwidth_gib_s": "bandwidth of the store (GiB/s)"}
POLICIES = {"EASY": "easy", "PV-EASY": "pv-easy:mode=checkpoint", "SS": "ss:mode=checkpoint"}
JOBS = JobStream(
    arrivals=Poisson(per_hour=20),
    nodes=TwoStageUniform(largest=128),
    run_s=Lognormal(mean=3_600, cv=3),
    estimates=FactorEstimates(3),
    memory_gib=Lognormal(mean=4, cv=1),
)


def study(jobs: int = 2_000, replications: int = 10) -> Study:
    def scenario(bandwidth_gib_s: float, load: float, policy: str, seed: int) -> Scenario:
        store = CheckpointStore(bandwidth_gib_s=bandwidth_gib_s)
        machine = Machine(nodes=128, checkpointing=Checkpointing(store=store))
        workload = JOBS.generate(jobs=jobs, seed=seed, load=load, machine_nodes=128)
        return Scenario(machine=machine, workload=workload, policy=POLICIES[policy], seed=seed)

    return tradeoff_map(
        scenario,
        {"bandwidth_gib_s": [*BANDWIDTHS_GIB_S], "load": [0.6, 0.75, 0.9]},
        list(POLICIES),
        SLOWDOWN,
        replications=replications,
        name="bandwidth of the store x load",
        shown=(SLOWDOWN, RESPONSE, "preempted", "checkpoint_share", "restart_share", "utilization"),
        figures={
            "Slowdown and response relative to EASY": lambda table: table.at(load=[0.6, 0.9]).plot.ratios(
                x="bandwidth_gib_s", y=[SLOWDOWN, RESPONSE], baseline="EASY", panels="load", log=True, log_x=True, labels=LABELS
            ),
            "Lowest slowdown": lambda table: table.plot.winners(SLOWDOWN, x="bandwidth_gib_s", y="load", labels=LABELS),
        },
    )
