"""What is another gang per node worth?

Every gang that shares a node needs its memory, so the multiprogramming level (MPL) is bought with memory.  How far does it pay?
A machine of 512 nodes with slices of a minute, which cost 1 % of a slice for a context switch, under MBGS and BGS with MPL 1 to
8, at two loads.  With MPL 1 nothing shares a node: that is the baseline of the paired ratios.

    clustermodel sweep scenarios/hypothetical/multiprogramming_level.py --out results
"""

from clustermodel import (
    ContextSwitch,
    FactorEstimates,
    JobStream,
    Lognormal,
    Machine,
    Poisson,
    Scenario,
    Study,
    TimeSlicing,
    TwoStageUniform,
)

SLOWDOWN, RESPONSE = "mean_bounded_slowdown", "mean_response_s"
JOBS = JobStream(
    arrivals=Poisson(per_hour=20),
    nodes=TwoStageUniform(largest=512),
    run_s=Lognormal(mean=3_600, cv=3),
    estimates=FactorEstimates(3),
)


def study(jobs: int = 3_000, replications: int = 10, levels: tuple[int, ...] = (1, 2, 3, 4, 6, 8)) -> Study:
    """Return the study."""

    def scenario(load: float, policy: str, mpl: int, seed: int) -> Scenario:
        slices, switch = TimeSlicing(quantum_s=60, mpl=mpl), ContextSwitch(fraction=0.01)
        machine = Machine(nodes=512, time_slicing=slices, context_switch=switch)
        workload = JOBS.generate(jobs=jobs, seed=seed, load=load, machine_nodes=512)
        return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)

    return Study(
        name="multiprogramming level",
        factors={"load": [0.7, 0.85], "policy": ["bgs", "mbgs"], "mpl": levels},
        scenario=scenario,
        replications=replications,
        shown=(SLOWDOWN, RESPONSE, "utilization", "context_switch_share", "idle_waiting_share"),
        tables={
            "Mean bounded slowdown": lambda table: table.pivot(SLOWDOWN, columns="mpl"),
            "Ratio of mean response to that with MPL 1, paired": lambda table: table.differences(
                RESPONSE, "mpl", 1, ratio=True
            ),
        },
        figures={
            "Slowdown and response": lambda table: table.plot.curves(
                x="mpl", y=[SLOWDOWN, RESPONSE], panels="load", log=[SLOWDOWN]
            ),
        },
    )
