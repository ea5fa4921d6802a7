"""How much does migration improve gang scheduling, with and without backfilling?

Zhang et al. 2003, section 5.6, table 1: utilization and mean slowdown of GS, BGS, MGS and MBGS on nine workloads, for the best
case of each policy: migration costs nothing and is not limited, context switches are free, MPL 5, phi 0.2.  Improvements are
paired by replication: both policies schedule the same jobs.

    clustermodel sweep scenarios/papers/zhang_2003/table1_migration.py --out results --set jobs=1000 --set replications=3
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from clustermodel import RUN_TIME_FACTORS, Machine, Result, Scenario, Study, StudyTable, TimeSlicing, load_model
from clustermodel.experiment.job_classes import class_measures
from clustermodel.experiment.load_curves import highest_utilization
from clustermodel.statistics import Interval

PAIRS = {"bgs": "mbgs", "gs": "mgs"}
"""Policies with migration by those without."""
PAPER = {
    "bgs": ((0.55, 2.5), (0.61, 3.2), (0.66, 3.8), (0.72, 6.5), (0.77, 8.0), (0.83, 11.9), (0.89, 22.4), (0.94, 34.9),
            (0.96, 67.9)),
    "mbgs": ((0.55, 2.1), (0.61, 2.5), (0.66, 2.9), (0.72, 3.7), (0.77, 5.1), (0.83, 7.6), (0.88, 11.0), (0.94, 20.9),
             (0.98, 56.8)),
    "gs": ((0.55, 3.9), (0.61, 7.0), (0.66, 18.8), (0.72, 44.8), (0.78, 125.6), (0.83, 405.6), (0.86, 1738.0), (0.86, 4147.7),
           (0.86, 5941.5)),
    "mgs": ((0.55, 2.6), (0.61, 4.0), (0.66, 6.9), (0.72, 13.5), (0.77, 29.4), (0.83, 54.4), (0.88, 134.2), (0.94, 399.3),
            (0.97, 1609.9)),
}  # fmt: skip
"""Utilization and slowdown of workloads 0 to 8."""
PAPER_BETTER = {
    "mbgs": (19.2, 23.9, 24.8, 43.1, 36.6, 36.2, 50.8, 40.2, 16.4),
    "mgs": (33.7, 42.5, 63.4, 69.9, 76.6, 86.6, 92.3, 90.4, 72.9),
}
"""By how many percent slowdown is lower with migration."""
PAPER_HIGHEST = {"gs": "0.86", "mgs": "0.94 (0.97 in table 1)", "bgs": "0.96", "mbgs": "0.98"}
PAPER_BY_RUN_TIME = {"bgs": (18.9, 4.8), "mgs": (104.8, 4.1)}
"""Workload 5: slowdowns of jobs with run times below the median, and of the others."""


def study(jobs: int = 10_000, replications: int = 10, factors: tuple[float, ...] = RUN_TIME_FACTORS) -> Study:
    """Return the study; ``factors`` multiply the run times: 1.0 to 1.8 are workloads 0 to 8."""

    def scenario(policy: str, factor: float, seed: int) -> Scenario:
        machine = Machine(nodes=320, time_slicing=TimeSlicing(quantum_s=200, mpl=5))
        workload = load_model("blue-pacific").generate(jobs=jobs, seed=seed, run_time_factor=factor, phi=0.2)
        return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)

    return Study(
        name="table 1, migration",
        factors={"policy": [*PAIRS, *PAIRS.values()], "factor": factors},
        scenario=scenario,
        replications=replications,
        measures=class_measures(by_median_run_time, ("short", "long"), {"slowdown_{}": "mean_bounded_slowdown"}),
        shown=("utilization", "kappa", "mean_bounded_slowdown", "mean_wait_s"),
        tables={
            "Table 1, utilization and mean slowdown ± 95 % interval": table_1,
            "Table 1, slowdown lower with migration, percent": improvements,
            "Highest utilization": highest,
            "Workload 5, mean slowdown of jobs below and from the median run time": by_run_time,
        },
        figures={"Table 1; dotted: the paper's": picture},
    )


def by_median_run_time(result: Result) -> "pd.Series[str]":
    run = result.jobs["run_s"]
    return (run < run.median()).map({True: "short", False: "long"})


def workload_number(factor: object) -> int:
    return RUN_TIME_FACTORS.index(float(str(factor)))


def table_1(table: StudyTable) -> pd.DataFrame:
    rows = []
    for point in table.points(["policy", "factor"]):
        number, here = workload_number(point["factor"]), table.at(**point)
        utilization, slowdown = PAPER[str(point["policy"])][number]
        ours = here.interval("mean_bounded_slowdown")
        row: dict[str, object] = {"policy": point["policy"], "workload": number}
        row |= {"paper, utilization": f"{utilization:.2f}", "utilization": here.interval("utilization")}
        row |= {"paper, slowdown": slowdown, "slowdown": ours, "ours / paper": round(ours.mean / slowdown, 2)}
        rows.append(row)
    return pd.DataFrame(rows)


def improvements(table: StudyTable) -> pd.DataFrame:
    rows = []
    for factor in table.levels("factor"):
        row: dict[str, object] = {"workload": workload_number(factor)}
        for without, policy in PAIRS.items():
            ratio = table.at(factor=factor).difference(
                "mean_bounded_slowdown", {"policy": policy}, {"policy": without}, ratio=True
            )
            row[f"{policy}, paper"] = PAPER_BETTER[policy][workload_number(factor)]
            row[policy] = Interval(100 * (1 - ratio.mean), 100 * ratio.half, ratio.level, ratio.count)
        rows.append(row)
    return pd.DataFrame(rows)


def highest(table: StudyTable) -> pd.DataFrame:
    return pd.DataFrame(
        {"policy": policy, "paper": paper, "ours": highest_utilization(table, "factor", policy=policy)[1]}
        for policy, paper in PAPER_HIGHEST.items()
    )


def by_run_time(table: StudyTable) -> pd.DataFrame:
    there = 1.5 in table.levels("factor")
    return pd.DataFrame(
        {
            "policy": policy,
            "jobs": jobs,
            "paper": paper,
            "ours": table.interval(f"slowdown_{jobs}", policy=policy, factor=1.5) if there else "",
        }
        for policy, published in PAPER_BY_RUN_TIME.items()
        for jobs, paper in zip(("short", "long"), published, strict=True)
    )


def picture(table: StudyTable) -> Figure:
    figure = table.plot.curves(x="utilization", at="factor", y="mean_bounded_slowdown", log=True)
    numbers = [workload_number(factor) for factor in table.levels("factor")]
    for line, policy in zip(figure.axes[0].get_lines(), table.levels("policy"), strict=True):
        paper = np.array([PAPER[str(policy)][number] for number in numbers])
        figure.axes[0].plot(*paper.T, color=line.get_color(), linestyle=":", marker="s", markersize=4, markerfacecolor="none")
    return figure
