"""Which jobs does selective suspension help, which does it delay, and what does it cost to suspend, checkpoint or kill?

Kettimuthu et al. 2005 compare selective suspension with EASY backfilling by class of jobs: four classes of run times, four of
sizes.  Here EASY, and ``ss`` by what preemption does and by suspension factor.  A context switch, a checkpoint and a restart
take a minute each; "suspend, free" is suspension where they take no time.  The paper's text was not available: the study is no
comparison with its numbers.

    clustermodel sweep scenarios/papers/kettimuthu_2005/job_classes.py --out results --set jobs=2000 --set replications=3
"""

from functools import partial
from math import inf

import pandas as pd
from matplotlib.figure import Figure

from clustermodel import Checkpointing, ContextSwitch, Machine, Result, Scenario, Study, StudyTable, bars, bounded_slowdown
from clustermodel.experiment.design import Measure
from clustermodel.experiment.measure_table import Columns, Scaled, measure_table
from clustermodel.workload.study_jobs import study_jobs

EASY, FREE = "easy", "ss:sf=2,mode=suspend, free"
RUN_TIMES = {"very short": (0, 600), "short": (600, 3600), "long": (3600, 8 * 3600), "very long": (8 * 3600, inf)}
"""Classes of run times, seconds: over the first bound, up to the second."""
SIZES = {"sequential": (0, 1), "narrow": (1, 8), "wide": (8, 32), "very wide": (32, inf)}
"""Classes of sizes, nodes, likewise."""
COLUMNS: Columns = {
    "MBS": "mean_bounded_slowdown", "largest slowdown": "largest_bounded_slowdown", "mean response (s)": "mean_response_s",
    "preempted": "preempted", "times each": "mean_killed_times",
    **{f"{name} (% of capacity)": Scaled(f"{name.replace(' ', '_')}_share", 100)
       for name in ("context switch", "checkpoint", "restart", "lost")},
    "useful (% of capacity)": Scaled("utilization", 100),
}  # fmt: skip


def study(
    trace: str | None = None,
    nodes: int = 128,
    jobs: int = 0,
    replications: int = 1,
    factors: tuple[float, ...] = (1.5, 2, 5, 10),
    cost_s: float = 60,
) -> Study:
    """Return the study.

    Args:
        trace: an SWF file; by default the jobs are synthetic.
        nodes: size of the machine.
        jobs: their number; 0 for all of the trace, or 20,000 synthetic ones.
        replications: seeds.
        factors: suspension factors, 2 among them.
        cost_s: of a context switch, a checkpoint and a restart, each, seconds.
    """

    def scenario(policy: str, seed: int) -> Scenario:
        cost = 0 if policy == FREE else cost_s
        return Scenario(
            machine=Machine(
                nodes=nodes,
                checkpointing=Checkpointing(checkpoint_s=cost, restart_s=cost),
                context_switch=ContextSwitch(seconds=cost),
            ),
            workload=study_jobs(trace, jobs=jobs or None, nodes=nodes, seed=seed),
            policy=policy.removesuffix(", free"),
            seed=seed,
        )

    measures: dict[str, Measure] = {"largest_bounded_slowdown": lambda result: float(slowdowns(result).max())}
    for run_time in RUN_TIMES:
        for size in SIZES:
            measures[f"jobs: {run_time}, {size}"] = partial(jobs_of, run_time=run_time, size=size)
            measures[f"slowdown: {run_time}, {size}"] = partial(slowdown_of, run_time=run_time, size=size)
    policies = [f"ss:sf={factor:g},mode={mode}" for mode in ("suspend", "checkpoint", "kill") for factor in factors]
    return Study(
        name="classes of jobs under selective suspension",
        text=__doc__ or "",
        factors={"policy": [EASY, *policies, FREE]},
        scenario=scenario,
        measures=measures,
        replications=replications,
        shown=("mean_bounded_slowdown", "mean_response_s", "preempted", "mean_killed_times", "context_switch_share",
               "checkpoint_share", "restart_share", "lost_share", "utilization"),
        tables={
            "Selective suspension and what it costs": partial(measure_table, columns=COLUMNS, by=["policy"]),
            "Mean bounded slowdown by class of run time and size": by_class,
        },
        figures={"Mean bounded slowdown by class": picture},
    )  # fmt: skip


def slowdowns(result: Result) -> "pd.Series[float]":
    jobs = result.jobs
    return pd.Series(bounded_slowdown(jobs["response_s"].to_numpy(), jobs["run_s"].to_numpy()), jobs.index)


def members(result: Result, run_time: str, size: str) -> "pd.Series[bool]":
    (over, up_to), (more_than, at_most) = RUN_TIMES[run_time], SIZES[size]
    run_s, nodes = result.jobs["run_s"], result.jobs["nodes"]
    return (over < run_s) & (run_s <= up_to) & (more_than < nodes) & (nodes <= at_most)


def jobs_of(result: Result, run_time: str, size: str) -> int:
    return int(members(result, run_time, size).sum())


def slowdown_of(result: Result, run_time: str, size: str) -> float:
    return float(slowdowns(result)[members(result, run_time, size)].mean())


def with_factor_2(table: StudyTable) -> list[str]:
    return [str(policy) for policy in table.levels("policy") if policy == EASY or "sf=2," in str(policy)]


def by_class(table: StudyTable) -> pd.DataFrame:
    names = [f"{run_time}, {size}" for run_time in RUN_TIMES for size in SIZES]
    columns = {"jobs": measure_table(table.at(policy=EASY), {name: f"jobs: {name}" for name in names}, by=["policy"]).iloc[0]}
    for policy in with_factor_2(table):
        found = measure_table(table.at(policy=policy), {name: f"slowdown: {name}" for name in names}, by=["policy"])
        columns[policy] = found.iloc[0]
    return pd.DataFrame(columns).loc[names].rename_axis("class")


def picture(table: StudyTable) -> Figure:
    frame = table.frame[table.frame["policy"].isin(with_factor_2(table))]
    parts = [
        frame.assign(run_time=run_time, size=size, slowdown=frame[f"slowdown: {run_time}, {size}"])
        for run_time in RUN_TIMES
        for size in SIZES
    ]
    drawn = pd.concat(parts)
    return bars(drawn[drawn["slowdown"].notna()], y="slowdown", x="size", panels="run_time", log=True)
