r"""Which jobs gain from selective suspension, which lose, and what do suspending, checkpointing and killing cost?

Kettimuthu et al. 2005 compare selective suspension with EASY backfilling by class of jobs: four classes of run times times four
of sizes.  Here EASY is compared with ``ss`` by preemption mode and suspension factor.  A context switch, a checkpoint and a
restart take a minute each; in "suspend, free" they take no time.  The paper's text was not available: the study does not
compare with its numbers.

Small (20 s on two cores): in synthetic jobs, suspending and checkpointing lower the mean slowdown of EASY from tens to below
two, and killing discards more than a quarter of the capacity.

    clustermodel sweep scenarios/papers/kettimuthu_2005/job_classes.py --out small \
        --set jobs=2000 --set replications=10 --set factors=2

Full (about 3 min on two cores): a year of KTH-SP2, a fixed log, so without intervals.

    clustermodel sweep scenarios/papers/kettimuthu_2005/job_classes.py --out full \
        --set trace=../shared/traces/KTH-SP2-1996-2.2.swf.gz --set nodes=100
"""

from functools import partial
from math import inf

import pandas as pd
from matplotlib.figure import Figure

from clustermodel import Checkpointing, ContextSwitch, Machine, Result, Scenario, Study, StudyTable, bars
from clustermodel.report.measure_table import Columns, Scaled, by_class, class_measures, measure_table
from clustermodel.workload.synthetic import study_jobs

EASY, FREE = "easy", "ss:sf=2,mode=suspend, free"
RUN_TIMES = {"very short": 600, "short": 3600, "long": 8 * 3600, "very long": inf}
"""Classes of run times: the longest, seconds."""
SIZES = {"sequential": 1, "narrow": 8, "wide": 32, "very wide": inf}
"""Classes of sizes: the largest, nodes."""
CLASSES = [f"{run_time}, {size}" for run_time in RUN_TIMES for size in SIZES]
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
    """Return the study; ``jobs`` is 0 for all jobs of the trace, or 20,000 synthetic ones.

    2 is among the suspension ``factors``; a context switch, a checkpoint and a restart cost ``cost_s`` each.
    """

    def scenario(policy: str, seed: int) -> Scenario:
        cost = 0 if policy == FREE else cost_s
        saving, switch = Checkpointing(checkpoint_s=cost, restart_s=cost), ContextSwitch(seconds=cost)
        machine = Machine(nodes=nodes, checkpointing=saving, context_switch=switch)
        workload = study_jobs(trace, jobs=jobs, nodes=nodes, seed=seed)
        return Scenario(machine=machine, workload=workload, policy=policy.removesuffix(", free"), seed=seed)

    policies = [f"ss:sf={factor:g},mode={mode}" for mode in ("suspend", "checkpoint", "kill") for factor in factors]
    return Study(
        name="classes of jobs under selective suspension",
        factors={"policy": [EASY, *policies, FREE]},
        scenario=scenario,
        measures={
            "largest_bounded_slowdown": lambda result: result.by_group(classify(result))["max_bounded_slowdown"].max(),
            **class_measures(classify, CLASSES, {"jobs: {}": "jobs", "slowdown: {}": "mean_bounded_slowdown"}),
        },
        replications=replications,
        shown=("mean_bounded_slowdown", "mean_response_s", "preempted", "mean_killed_times", "context_switch_share",
               "checkpoint_share", "restart_share", "lost_share", "utilization"),
        tables={
            "Selective suspension and what it costs": partial(measure_table, columns=COLUMNS, by=["policy"]),
            "Mean bounded slowdown by class of run time and size": means_by_class,
        },
        figures={"Mean bounded slowdown by class": picture},
    )  # fmt: skip


def classify(result: Result) -> list[str]:
    columns = (("run_s", RUN_TIMES), ("nodes", SIZES))
    cuts = [pd.cut(result.jobs[name], [-inf, *largest.values()], labels=list(largest)) for name, largest in columns]
    return [f"{run_time}, {size}" for run_time, size in zip(*cuts, strict=True)]


def with_factor_2(table: StudyTable) -> StudyTable:
    return table.at(policy=[policy for policy in table.levels("policy") if policy == EASY or "sf=2," in str(policy)])


def means_by_class(table: StudyTable) -> pd.DataFrame:
    jobs = measure_table(table.at(policy=EASY), {name: f"jobs: {name}" for name in CLASSES}, by=["policy"])
    slowdowns = measure_table(with_factor_2(table), {name: f"slowdown: {name}" for name in CLASSES}, by=["policy"])
    found = pd.concat([jobs.assign(policy="jobs"), slowdowns]).set_index("policy").T
    return found.rename_axis("class").rename_axis(None, axis=1)


def picture(table: StudyTable) -> Figure:
    columns = {name: {"slowdown": f"slowdown: {name}"} for name in CLASSES}
    found = by_class(with_factor_2(table), "class", columns)
    drawn = found.frame.join(found.frame["class"].str.extract("(?P<run_time>.*), (?P<size>.*)"))
    return bars(drawn, y="slowdown", x="size", panels="run_time", log=True)
