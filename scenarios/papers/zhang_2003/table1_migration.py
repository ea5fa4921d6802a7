r"""How much does migration improve gang scheduling, with and without backfilling?

Zhang et al. 2003, section 5.6, table 1: utilization and mean slowdown of GS, BGS, MGS and MBGS on nine workloads, for the best
case of each policy: migration costs nothing and is not limited, context switches are free, MPL 5, phi 0.2.  Improvements are
paired by replication, in which both policies schedule the same jobs.  ``model`` is one of the two calibrations of the jobs.

Small (25 s on two cores): in workload 5, migration lowers the slowdown of BGS by about a third and that of GS by about a half.

    clustermodel sweep scenarios/papers/zhang_2003/table1_migration.py --out small \
        --set jobs=1000 --set replications=20 --set factors=1.2,1.5

Full (about 12 min on two cores):

    clustermodel sweep scenarios/papers/zhang_2003/table1_migration.py --out full
"""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from blue_pacific import blue_pacific_scenario
from load_curves import highest_utilization
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from clustermodel import RUN_TIME_FACTORS, Scenario, Study, StudyTable
from clustermodel.figures.style import add_to_legend
from clustermodel.measure.statistics import Interval
from clustermodel.report.measure_table import class_measures, published_table

SLOWDOWN = "mean_bounded_slowdown"
PAIRS = {"bgs": "mbgs", "gs": "mgs"}
"""Policies with migration by those without."""
PAPER = partial(published_table, __file__)


def study(
    jobs: int = 10_000, replications: int = 10, factors: tuple[float, ...] = RUN_TIME_FACTORS, model: str = "blue-pacific"
) -> Study:
    """Return the study; ``factors`` multiply the run times: 1.0 to 1.8 are workloads 0 to 8."""

    def scenario(policy: str, factor: float, seed: int) -> Scenario:
        return blue_pacific_scenario(policy, jobs=jobs, seed=seed, run_time_factor=factor, model=model)

    return Study(
        name="table 1, migration",
        factors={"policy": [*PAIRS, *PAIRS.values()], "factor": factors},
        scenario=scenario,
        replications=replications,
        measures=class_measures(
            lambda result: np.where(result.jobs["run_s"] < result.jobs["run_s"].median(), "short", "long"),
            ("short", "long"),
            {"slowdown_{}": SLOWDOWN},
        ),
        shown=("utilization", "kappa", SLOWDOWN, "mean_wait_s"),
        tables={
            "Table 1, utilization and mean slowdown ± 95 % interval": table_1,
            "Table 1, slowdown lower with migration, percent": improvements,
            "Highest utilization": highest,
            "Workload 5, mean slowdown of jobs below and from the median run time": by_run_time,
        },
        figures={"Table 1 and the published numbers": picture},
    )


def workload_number(factor: object) -> int:
    return RUN_TIME_FACTORS.index(float(str(factor)))


def table_1(table: StudyTable) -> pd.DataFrame:
    rows, paper = [], PAPER("table 1")
    for point in table.points(["policy", "factor"]):
        here, workload = table.at(**point), workload_number(point["factor"])
        utilization, slowdown = (float(paper[name][str(point["policy"]), workload]) for name in ("utilization", "slowdown"))
        ours = here.interval(SLOWDOWN)
        row: dict[str, object] = {"policy": point["policy"], "workload": workload}
        row |= {"paper, utilization": f"{utilization:.2f}", "utilization": here.interval("utilization")}
        row |= {"paper, slowdown": slowdown, "slowdown": ours}
        rows.append({**row, "ours / paper": round(ours.mean / slowdown, 2)})
    return pd.DataFrame(rows)


def improvements(table: StudyTable) -> pd.DataFrame:
    rows, paper = [], PAPER("table 1")["lower (%)"]
    for factor in table.levels("factor"):
        row: dict[str, object] = {"workload": workload_number(factor)}
        for without, policy in PAIRS.items():
            ratio = table.at(factor=factor).difference(SLOWDOWN, {"policy": policy}, {"policy": without}, ratio=True)
            row[f"{policy}, paper"] = paper[policy, workload_number(factor)]
            row[policy] = Interval(100 * (1 - ratio.mean), 100 * ratio.half, ratio.level, ratio.count)
        rows.append(row)
    return pd.DataFrame(rows)


def highest(table: StudyTable) -> pd.DataFrame:
    paper = PAPER("section 5.6, highest")
    found = [highest_utilization(table, "factor", policy=one)[1] for one in paper.index]
    return paper.assign(ours=pd.Series(found, paper.index, dtype=object)).reset_index()


def by_run_time(table: StudyTable) -> pd.DataFrame:
    there, paper = 1.5 in table.levels("factor"), PAPER("section 5.6, by run time")
    found = [table.interval(f"slowdown_{jobs}", policy=one, factor=1.5) if there else "" for one, jobs in paper.index]
    return paper.assign(ours=pd.Series(found, paper.index, dtype=object)).reset_index()


def picture(table: StudyTable) -> Figure:
    figure = table.plot.curves(x="utilization", at="factor", y=SLOWDOWN, log=True)
    (axes,) = figure.axes
    numbers = [workload_number(factor) for factor in table.levels("factor")]
    look: dict[str, Any] = {"linestyle": ":", "marker": "s", "markersize": 4, "markerfacecolor": "none"}
    highest = 0.0
    for line, policy in zip(axes.get_lines(), table.levels("policy"), strict=True):
        paper = PAPER("table 1").loc[policy].loc[numbers]
        axes.plot(paper["utilization"], paper["slowdown"], color=line.get_color(), **look)
        highest = max(highest, float(paper["slowdown"].max()))
    axes.set_ylim(top=max(axes.get_ylim()[1], 1.5 * highest))
    add_to_legend(figure, {"published": Line2D([], [], color="0.3", **look)})
    return figure
