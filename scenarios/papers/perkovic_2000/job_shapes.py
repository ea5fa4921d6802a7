r"""How large and how long are the jobs of a trace, and how far do users overestimate run times?

Perkovic & Keleher 2000, tables 1 and 2: statistics of all jobs and of four shapes of jobs.  A job is *short* if its estimate is
at most the median of all estimates, and *narrow* if it asks for at most the median number of nodes, or at most ``narrow``.

The jobs of each shape run separately, because a study reports numbers of runs; the scheduling policy does not matter.

Small and full (10 s on two cores): the log of CTC-SP2, which is fixed, so without intervals.

    clustermodel sweep scenarios/papers/perkovic_2000/job_shapes.py --out full \
        --set trace=../shared/traces/CTC-SP2-1996-3.1-cln.swf.gz --set nodes=430 --set flurry=uniform
"""

from functools import partial

import numpy as np
import pandas as pd
from paper_jobs import CLEANED, paper_jobs
from shape_classes import SHAPES, workload_shapes

from clustermodel import Machine, Result, Scenario, Study, StudyTable, Workload
from clustermodel.report.measure_table import published_table, with_published

ALL = "all"
FACTS = (
    "jobs", "mean_nodes", "median_nodes", "mean_run_s", "mean_estimate_s", "median_estimate_s", "mean_overestimation",
    "median_overestimation",
)  # fmt: skip


def study(trace: str | None = None, nodes: int = 128, jobs: int = 0, flurry: str = CLEANED, narrow: int = 0) -> Study:
    """Return the study; ``jobs`` is 0 for all jobs of the trace, or 20,000 synthetic ones.

    ``flurry`` is a reading of paper_jobs.py.  Narrow jobs have up to ``narrow`` nodes, 0 for the median.
    """

    def scenario(shape: str, seed: int) -> Scenario:
        every = paper_jobs(trace, jobs=jobs, nodes=nodes, flurry=flurry, seed=seed)
        shapes = workload_shapes(every, nodes, narrow=narrow or None)
        rows = [row for row, own in zip(every.rows(), shapes, strict=True) if own == shape or (own and shape == ALL)]
        return Scenario(machine=Machine(nodes=nodes), workload=Workload(rows, name=every.name), policy="easy", seed=seed)

    return Study(
        name="shapes of jobs",
        factors={"shape": [ALL, *SHAPES]},
        scenario=scenario,
        measures={name: partial(fact, name=name) for name in FACTS[1:]},
        shown=("jobs",),
        tables={
            "Table 1, all jobs": partial(all_jobs, paper=published_table(__file__, "table 1", trace=trace)),
            "Table 2, by shape": partial(by_shape, paper=published_table(__file__, "table 2", trace=trace)),
        },
        figures={
            "Overestimation factor by shape": lambda table: table.plot.bars(
                y=["mean_overestimation", "median_overestimation"], by="shape"
            )
        },
    )


def fact(result: Result, name: str) -> float:
    """Return the mean or the median of the size, run time, estimate or estimate / run time of the jobs that have run."""
    statistic, _, column = name.partition("_")
    records = result.records
    if column == "overestimation":
        values = records.seconds("estimate") / records.seconds("run")
    elif column == "nodes":
        values = records.column("nodes").astype(float)
    else:
        values = records.seconds(column.removesuffix("_s"))
    return float((np.mean if statistic == "mean" else np.median)(values[records.finished]))


def all_jobs(table: StudyTable, paper: pd.DataFrame) -> pd.DataFrame:
    ours = table.at(shape=ALL).frame.iloc[0][list(FACTS)].astype(float).rename("ours")
    return paper.join(ours, how="right").dropna(axis="columns").rename_axis("fact").reset_index()


def by_shape(table: StudyTable, paper: pd.DataFrame) -> pd.DataFrame:
    found = table.frame.set_index("shape").loc[list(SHAPES), ["jobs", "mean_overestimation", "median_overestimation"]]
    return with_published(found, paper)
