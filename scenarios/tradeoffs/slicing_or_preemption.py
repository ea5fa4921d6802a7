"""Is it better to share GPUs in time slices, or to preempt jobs, and how long should a job run before it may be preempted?

All schedulers pay the same: a context switch between slices, and the restart of a preempted job, take ``cost_s``.  Gang
scheduling (``bgs``, ``mbgs``) cuts time into slices of 10 minutes.  Preemption goes by attained service (``las``, thresholds of
1 and 10 GPU-hours), without and with a guaranteed run time, or by remaining time (``srtf``), with run times that are known.
``easy`` does neither.

    clustermodel sweep scenarios/tradeoffs/slicing_or_preemption.py --out results --set jobs=300 --set replications=3
"""

import pandas as pd

from clustermodel import Checkpointing, ContextSwitch, Machine, Scenario, Study, StudyTable, TimeSlicing, synthetic_workload

GPUS, SLICE_S = 64, 600
LAS = "las:thresholds=3600/36000"
POLICIES = ("easy", "bgs", "mbgs", "srtf", LAS, *(f"{LAS},min_run_s={seconds}" for seconds in (300, 1800, 7200)))
COSTS_S = (0, 10, 60, 300)
LABELS = {"cost_s": "cost of a switch or of a restart (s)", "easy": "EASY", LAS: "las"}
LABELS |= {f"{LAS},min_run_s={seconds}": f"las, at least {seconds} s" for seconds in (300, 1800, 7200)}


def responses(table: StudyTable) -> pd.DataFrame:
    return table.pivot("mean_response_s", columns="cost_s")


def beside_las(table: StudyTable) -> pd.DataFrame:
    found = table.differences("mean_response_s", of="policy", baseline=LAS)
    shown = [f"{difference:+,.0f} ± {half:,.0f}" for difference, half in zip(found["difference"], found["half"], strict=True)]
    order = [policy for policy in table.levels("policy") if policy != LAS]
    return found.assign(shown=shown).pivot(index="policy", columns="cost_s", values="shown").loc[order]


def study(jobs: int = 1000, replications: int = 8, costs: tuple[float, ...] = COSTS_S) -> Study:
    def scenario(policy: str, cost_s: float, seed: int) -> Scenario:
        machine = Machine(
            nodes=GPUS,
            time_slicing=TimeSlicing(quantum_s=SLICE_S, mpl=4),
            context_switch=ContextSwitch(seconds=cost_s),
            checkpointing=Checkpointing(restart_s=cost_s),
        )
        workload = synthetic_workload(jobs=jobs, nodes=GPUS, load=0.8, seed=seed)
        return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)

    return Study(
        name="time slices or preemption",
        factors={"policy": list(POLICIES), "cost_s": list(costs)},
        scenario=scenario,
        replications=replications,
        shown=("mean_response_s", "mean_bounded_slowdown", "context_switch_share", "restart_share", "preempted"),
        tables={
            "Mean response time by what a switch or a restart takes (s)": responses,
            "Paired difference of the mean response time from that of las (s)": beside_las,
        },
        figures={
            "Mean response time relative to EASY": lambda table: table.plot.ratios(
                x="cost_s", y="mean_response_s", baseline="easy", log=True, labels=LABELS
            )
        },
        text=__doc__ or "",
    )
