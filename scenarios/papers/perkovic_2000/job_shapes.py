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
from matplotlib.figure import Figure

from clustermodel import Machine, Result, Scenario, Study, StudyTable, Workload
from clustermodel.arrays import FloatArray
from clustermodel.workload.shapes import SHAPES, jobs_by_shape
from clustermodel.workload.study_jobs import study_jobs

ALL = "all"
PAPER_ALL = {
    "jobs": "79,302", "mean_nodes": "11", "median_nodes": "2", "mean_run_s": "10,984", "mean_estimate_s": "24,324",
    "median_estimate_s": "10,800", "mean_overestimation": "176", "median_overestimation": "3.90",
}  # fmt: skip
"""Perkovic & Keleher 2000, table 1."""
PAPER_SHAPES = dict(zip(SHAPES, (("14,486", "22"), ("25,702", "14"), ("25,526", "460"), ("13,588", "110")), strict=True))
"""Perkovic & Keleher 2000, table 2: jobs, mean overestimation factor."""


def study(trace: str | None = None, nodes: int = 128, jobs: int = 0, narrow: int = 0) -> Study:
    """Return the study.

    Args:
        trace: an SWF file; by default the jobs are synthetic.
        nodes: size of the machine.
        jobs: their number; 0 for all of the trace, or 20,000 synthetic ones.
        narrow: largest number of nodes of a narrow job; 0 for the median.
    """

    def scenario(shape: str, seed: int) -> Scenario:
        every = study_jobs(trace, jobs=jobs or None, nodes=nodes, seed=seed)
        rows = [row for row in every.rows() if 0 < row.nodes <= nodes]
        if shape != ALL:
            members = jobs_by_shape([row.nodes for row in rows], [row.estimate for row in rows], narrow=narrow or None)
            rows = [row for row, member in zip(rows, members[shape], strict=True) if member]
        return Scenario(machine=Machine(nodes=nodes), workload=Workload(rows, name=every.name), policy="easy", seed=seed)

    return Study(
        name="shapes of jobs",
        text=__doc__ or "",
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
        figures={"Overestimation factor by shape": picture},
    )


def statistic_of(result: Result, statistic: str, name: str) -> float:
    found = values(result, name)
    return float(found.mean() if statistic == "mean" else np.median(found))


def values(result: Result, name: str) -> FloatArray:
    """Return a fact of each job as recorded in the trace."""
    records = result.records
    if name == "overestimation":
        return records.seconds("estimate") / records.seconds("run")
    return records.column("nodes").astype(np.float64) if name == "nodes" else records.seconds(name.removesuffix("_s"))


def all_jobs(table: StudyTable, paper: bool) -> pd.DataFrame:
    (row,) = table.at(shape=ALL).frame.to_dict("records")
    found = pd.DataFrame(
        {"fact": list(PAPER_ALL), "paper": list(PAPER_ALL.values()), "ours": [row[name] for name in PAPER_ALL]}
    )
    return found if paper else found.drop(columns="paper")


def by_shape(table: StudyTable, paper: bool) -> pd.DataFrame:
    found = table.frame.set_index("shape").loc[list(SHAPES), ["jobs", "mean_overestimation", "median_overestimation"]]
    if paper:
        found.insert(0, "paper, jobs", [count for count, _ in PAPER_SHAPES.values()])
        found.insert(2, "paper, mean_overestimation", [mean for _, mean in PAPER_SHAPES.values()])
    return found


def picture(table: StudyTable) -> Figure:
    return table.plot.bars(y=["mean_overestimation", "median_overestimation"], by="shape")
