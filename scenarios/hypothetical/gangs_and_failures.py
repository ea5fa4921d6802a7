"""Does gang scheduling still pay on a machine that fails every three hours?

A failed node stops every gang that shares it, in all rows of the Ousterhout matrix.  A machine of 512 nodes with slices of a
minute and a context switch of 1 % of a slice, under BF, which shares no nodes, and BGS and MBGS.  A node of the machine fails
every 3, 24 or 1,000 hours; a repair takes half an hour, a checkpoint and a restart a minute each, and each gang writes one at
Daly's interval.

    clustermodel sweep scenarios/hypothetical/gangs_and_failures.py --out results
"""

from clustermodel import (
    Checkpointing,
    ContextSwitch,
    FactorEstimates,
    JobStream,
    Lognormal,
    Machine,
    NodeFailures,
    Poisson,
    Scenario,
    Study,
    TimeSlicing,
    TwoStageUniform,
)

JOBS = JobStream(
    arrivals=Poisson(per_hour=20),
    nodes=TwoStageUniform(largest=512),
    run_s=Lognormal(mean=3_600, cv=3),
    estimates=FactorEstimates(3),
)

LABELS = {"mtbf_h": "MTBF of the machine (h)", "bf": "BF", "bgs": "BGS", "mbgs": "MBGS"}


def study(jobs: int = 1_500, replications: int = 10) -> Study:
    def scenario(mtbf_h: float, policy: str, seed: int) -> Scenario:
        machine = Machine(
            nodes=512,
            time_slicing=TimeSlicing(quantum_s=60, mpl=4),
            context_switch=ContextSwitch(fraction=0.01),
            checkpointing=Checkpointing(checkpoint_s=60, restart_s=60, interval_s="daly"),
            failures=NodeFailures(mtbf_s=mtbf_h * 3_600, repair_s=1_800, per="machine"),
        )
        workload = JOBS.generate(jobs=jobs, seed=seed, load=0.75, machine_nodes=512)
        return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)

    return Study(
        name="gang scheduling and failures",
        factors={"mtbf_h": [3.0, 24.0, 1_000.0], "policy": ["bf", "bgs", "mbgs"]},
        scenario=scenario,
        replications=replications,
        shown=("mean_bounded_slowdown", "mean_response_s", "failed_attempts", "lost_share", "checkpoint_share", "utilization"),
        tables={
            "Mean bounded slowdown": lambda table: table.pivot("mean_bounded_slowdown", columns="mtbf_h"),
            "Run attempts stopped by failures": lambda table: table.pivot("failed_attempts", columns="mtbf_h"),
            "Ratio of mean response to that of BF, paired": lambda table: table.differences(
                "mean_response_s", "policy", "bf", ratio=True
            ),
        },
        figures={
            "Slowdown and response relative to BF": lambda table: table.plot.ratios(
                x="mtbf_h", y=["mean_bounded_slowdown", "mean_response_s"], baseline="bf", log_x=True, labels=LABELS
            )
        },
        text=__doc__ or "",
    )
