"""What do 2,080 short serial jobs that were estimated to be long do to the means of a year?

The CTC trace in the Parallel Workloads Archive is *cleaned*: its header says that 2,080 jobs of user 135 were removed, a flurry
within five days.  Perkovic & Keleher 2000 (table 1) used the trace with them.  Their tables and the cleaned trace tell what the
jobs were like.  Table 2 has 2,058 more jobs among the long-narrow ones and 39 more among the short-narrow ones.  For the means
over 79,302 jobs to be those of table 1, the missing ones must have run for about 100 s on average, with estimates of about
21,800 s, 857 times their run times on average.

The study puts jobs like these back: as many per job of the trace, submitted evenly among the jobs around the gap in the job
numbers, on one node, with estimates of 6 h and run times from a lognormal distribution that has the mean and the mean
reciprocal above.  Each replication draws other run times.  No parameter was chosen by what the simulation shows.

    clustermodel sweep scenarios/papers/perkovic_2000/flurry.py --out results
"""

from functools import cache, partial
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from queue_order import PAIRS, SLOWDOWN, TITLES, WAIT

from clustermodel import TICKS_PER_SECOND, Machine, Result, Scenario, Study, StudyTable, Workload
from clustermodel.experiment.job_classes import class_measures
from clustermodel.experiment.measure_table import measure_table, published_table
from clustermodel.workload.changed_jobs import with_more_jobs
from clustermodel.workload.study_jobs import study_jobs

CLEANED, RESTORED = "cleaned", "with the flurry"
PER_JOB = 2080 / 77205
"""Jobs of the flurry per job that the cleaned trace has kept (and that the machine can hold)."""
FIRST, LAST = 0.6141, 0.6245
"""Shares of those submitted before the first and before the last job of the flurry, by the gaps in the job numbers."""
ESTIMATE_S, MEAN_RUN_S, MEAN_OVERESTIMATION = 21_600.0, 100.0, 857.0
SIGMA = float(np.sqrt(np.log(MEAN_RUN_S * MEAN_OVERESTIMATION / ESTIMATE_S)))
"""Of the lognormal distribution: mean x mean reciprocal = exp(sigma^2)."""


def study(trace: str | None = None, nodes: int = 128, jobs: int = 0, replications: int = 3) -> Study:
    """Return the study; ``jobs`` is their number without the flurry, 0 for all of the trace, or 20,000 synthetic ones."""
    cleaned = partial(study_jobs, trace, jobs=jobs or None, nodes=nodes)

    def scenario(workload: str, policy: str, seed: int) -> Scenario:
        jobs_of_trace = cleaned(seed=seed)
        chosen = jobs_of_trace if workload == CLEANED else with_flurry(jobs_of_trace, seed)
        return Scenario(machine=Machine(nodes=nodes), workload=chosen, policy=policy, seed=seed)

    def others(result: Result) -> NDArray[np.str_]:
        """Return which jobs are not of the flurry."""
        last = cleaned(seed=result.scenario.seed).column("id").max()
        return np.where(result.jobs["job"] <= last, "others", "flurry")

    return Study(
        name="flurry",
        factors={"workload": [CLEANED, RESTORED], "policy": ["D", "1/L", "P/L-NG", "R/L-NG"]},
        scenario=scenario,
        measures=class_measures(others, ["others"], {"slowdown_{}": SLOWDOWN, "wait_s_{}": WAIT}),
        replications=replications,
        shown=(SLOWDOWN, WAIT, "mean_response_s", "wasted_load", "retried"),
        tables={
            "Means ± 95 % interval": means,
            "Ratios of section 5": partial(ratios, paper=published_table(__file__, "section 5", trace=trace)),
        },
        figures={"Without and with the flurry": lambda table: table.plot.bars(y=[SLOWDOWN, WAIT], x="policy", by="workload")},
    )


@cache
def with_flurry(workload: Workload, seed: int) -> Workload:
    """Return the jobs with a flurry among them."""
    count, rng = round(PER_JOB * len(workload)), np.random.default_rng(seed)
    places = np.linspace(FIRST, LAST, count) * (len(workload) - 1)
    submit = np.interp(places, np.arange(len(workload)), workload.column("submit")).astype(int)
    run = np.clip(rng.lognormal(np.log(MEAN_RUN_S) - SIGMA**2 / 2, SIGMA, count), 1.0, ESTIMATE_S)
    ticks = np.round(run * TICKS_PER_SECOND).astype(int)
    return with_more_jobs(workload, submit, nodes=1, run=ticks, estimate=round(ESTIMATE_S * TICKS_PER_SECOND))


def means(table: StudyTable) -> pd.DataFrame:
    columns = {
        "bounded slowdown": SLOWDOWN,
        "delay (s)": WAIT,
        "bounded slowdown, all but the flurry": "slowdown_others",
        "delay (s), all but the flurry": "wait_s_others",
    }
    return measure_table(table, columns, by=["workload", "policy"])


def ratios(table: StudyTable, paper: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for (policy, base), (measure, title) in product(PAIRS, TITLES.items()):
        row: dict[str, object] = {"policy": policy, "compared with": base, "of": title}
        row |= {} if paper.empty else {"paper": paper.loc[(policy, base), title]}
        for workload in (CLEANED, RESTORED):
            here = table.at(workload=workload)
            row[workload] = here.difference(measure, {"policy": policy}, {"policy": base}, ratio=True)
        rows.append(row)
    return pd.DataFrame(rows)
