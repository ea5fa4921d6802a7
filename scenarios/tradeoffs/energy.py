"""How much more energy per job does gang scheduling use than EASY?

A node that switches between gangs draws as much as when it executes, and a machine on which jobs end sooner is idle sooner.
The 320 nodes and the workload of Zhang et al. 2003 at 1.5 times its run times; nodes draw 350 W while a gang has them and 120 W
while none has.  BGS and MBGS (MPL 5; a migration takes 20 s), and EASY, which never switches.

    clustermodel sweep scenarios/tradeoffs/energy.py --out results
"""

import pandas as pd

from clustermodel import (
    Account,
    Checkpointing,
    ContextSwitch,
    Machine,
    Power,
    Result,
    Scenario,
    Study,
    StudyTable,
    load_model,
)  # fmt: skip

POLICIES = ("easy", "bgs", "mbgs")
SWITCHES = (0, 0.01, 0.02, 0.05, 0.1)
LABELS = {"switch": "cost of a context switch, share of the slice"}
WORK = (Account.USEFUL, Account.LOST)
WHILE_IDLE = (Account.IDLE, Account.DOWN, Account.RESERVED)


def per_job(result: Result) -> float:
    return 1000 * result.energy_kwh / result.summary().jobs


def overheads_per_job(result: Result) -> float:
    energy = result.energy["energy_kwh"].drop([*WORK, *WHILE_IDLE])
    return float(1000 * energy.sum() / result.summary().jobs)


def idle_per_job(result: Result) -> float:
    return float(1000 * result.energy["energy_kwh"][[*WHILE_IDLE]].sum() / result.summary().jobs)


MEASURES = {"energy_per_job_wh": per_job, "overheads_per_job_wh": overheads_per_job, "idle_per_job_wh": idle_per_job}


def beside_easy(table: StudyTable, measure: str) -> pd.DataFrame:
    found = table.differences(measure, of="policy", baseline="easy")
    shown = [f"{difference:+,.0f} ± {half:,.0f}" for difference, half in zip(found["difference"], found["half"], strict=True)]
    return found.assign(shown=shown).pivot(index="policy", columns="switch", values="shown")


def study(
    jobs: int = 2_000, replications: int = 10, busy_w: float = 350, idle_w: float = 120, run_time_factor: float = 1.5
) -> Study:
    def scenario(policy: str, switch: float, seed: int) -> Scenario:
        machine = Machine(
            nodes=320,
            context_switch=ContextSwitch(fraction=switch),
            checkpointing=Checkpointing(checkpoint_s=10, restart_s=10),
            power=Power(busy_w=busy_w, idle_w=idle_w),
        )
        workload = load_model("blue-pacific").generate(jobs=jobs, seed=seed, run_time_factor=run_time_factor)
        return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)

    return Study(
        name="energy of gang scheduling",
        factors={"policy": list(POLICIES), "switch": list(SWITCHES)},
        scenario=scenario,
        replications=replications,
        measures=MEASURES,
        shown=(*MEASURES, "mean_response_s", "mean_bounded_slowdown", "energy_kwh"),
        tables={
            "Energy per job (Wh)": lambda table: table.pivot("energy_per_job_wh", columns="switch"),
            "Of this, overheads (Wh)": lambda table: table.pivot("overheads_per_job_wh", columns="switch"),
            "Of this, idle nodes (Wh)": lambda table: table.pivot("idle_per_job_wh", columns="switch"),
            "Energy per job, paired difference from EASY (Wh)": lambda table: beside_easy(table, "energy_per_job_wh"),
            "Mean response time, paired difference from EASY (s)": lambda table: beside_easy(table, "mean_response_s"),
        },
        figures={
            "Energy per job and mean response time, less than with EASY": lambda table: table.plot.improvements(
                y=["energy_per_job_wh", "mean_response_s"], baseline="easy", x="switch", labels=LABELS
            )
        },
        text=__doc__ or "",
    )
