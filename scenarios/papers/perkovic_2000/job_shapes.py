"""Which jobs does a trace have: how large, how long, and how far overestimated by their users?

Perkovic & Keleher 2000, tables 1 and 2: facts of all jobs, and of four shapes of jobs.  A job is *short* if its estimate is at
most the median of all estimates, and *narrow* if it asks for at most the median number of nodes, or at most ``narrow``.

The jobs of each shape run on a machine of their own, because the numbers of a study are those of runs; how they are scheduled
does not matter.

    clustermodel sweep scenarios/papers/perkovic_2000/job_shapes.py --out results
"""

from functools import partial

import numpy as np
import pandas as pd

from clustermodel import Machine, Result, Scenario, Study, StudyTable, Workload
from clustermodel.experiment.measure_table import with_published
from clustermodel.workload.shapes import SHAPES, shapes_of_jobs
from clustermodel.workload.study_jobs import study_jobs

ALL = "all"
PAPER_ALL = {
    "jobs": "79,302", "mean_nodes": "11", "median_nodes": "2", "mean_run_s": "10,984", "mean_estimate_s": "24,324",
    "median_estimate_s": "10,800", "mean_overestimation": "176", "median_overestimation": "3.90",
}  # fmt: skip
"""Perkovic & Keleher 2000, table 1."""
PAPER_SHAPES = pd.DataFrame(
    {"jobs": ("14,486", "25,702", "25,526", "13,588"), "mean_overestimation": ("22", "14", "460", "110")}, index=list(SHAPES)
)
"""Perkovic & Keleher 2000, table 2."""


def study(trace: str | None = None, nodes: int = 128, jobs: int = 0, narrow: int = 0) -> Study:
    """Return the study; ``jobs`` is 0 for all jobs of the trace, or 20,000 synthetic ones.

    Narrow jobs have up to ``narrow`` nodes, 0 for the median.
    """

    def scenario(shape: str, seed: int) -> Scenario:
        every = study_jobs(trace, jobs=jobs or None, nodes=nodes, seed=seed)
        rows = [row for row in every.rows() if 0 < row.nodes <= nodes]
        if shape != ALL:
            shapes = shapes_of_jobs([row.nodes for row in rows], [row.estimate for row in rows], narrow=narrow or None)
            rows = [row for row, own in zip(rows, shapes, strict=True) if own == shape]
        return Scenario(machine=Machine(nodes=nodes), workload=Workload(rows, name=every.name), policy="easy", seed=seed)

    return Study(
        name="shapes of jobs",
        factors={"shape": [ALL, *SHAPES]},
        scenario=scenario,
        measures={
            f"{statistic}_{name}": partial(statistic_of, statistic=statistic, name=name)
            for name in ("nodes", "run_s", "estimate_s", "overestimation")
            for statistic in ("mean", "median")
        },
        shown=("jobs",),
        tables={
            "Table 1, all jobs": partial(all_jobs, paper="CTC" in str(trace)),
            "Table 2, by shape": partial(by_shape, paper="CTC" in str(trace)),
        },
        figures={
            "Overestimation factor by shape": lambda table: table.plot.bars(
                y=["mean_overestimation", "median_overestimation"], by="shape"
            )
        },
    )


def statistic_of(result: Result, statistic: str, name: str) -> float:
    """Return the mean or the median of a fact of the jobs as recorded in the trace."""
    nodes, run_s, estimate_s = (result.records.column("nodes"), *map(result.records.seconds, ("run", "estimate")))
    facts = {"nodes": nodes, "run_s": run_s, "estimate_s": estimate_s, "overestimation": estimate_s / run_s}
    return float(np.mean(facts[name]) if statistic == "mean" else np.median(facts[name]))


def all_jobs(table: StudyTable, paper: bool) -> pd.DataFrame:
    ours = table.at(shape=ALL).frame.iloc[0][list(PAPER_ALL)]
    found = pd.DataFrame({"fact": list(PAPER_ALL), "paper": list(PAPER_ALL.values()), "ours": list(ours)})
    return found if paper else found.drop(columns="paper")


def by_shape(table: StudyTable, paper: bool) -> pd.DataFrame:
    found = table.frame.set_index("shape").loc[list(SHAPES), ["jobs", "mean_overestimation", "median_overestimation"]]
    return with_published(found, PAPER_SHAPES) if paper else found
