r"""In which order should a backfilling scheduler search its queue, and should it guarantee start times?

Perkovic & Keleher 2000, table 3 and figures 3 and 4 (sections 4 and 5): the ratio of guaranteed to actual delays under
conservative backfilling, D; mean bounded slowdown and delay (wait) of the twelve algorithms of table 4, for all jobs and by the
shapes of job_shapes.py.  Algorithms whose names end in -NG guarantee no starts.

Each replication draws new random priorities (P) and orders (R), and a new flurry where it is restored (paper_jobs.py); the
other jobs of a trace are the same in every replication.  Without a trace, each replication draws new synthetic jobs.

Small (15 s on two cores): in synthetic jobs, slowdowns under 1/L-NG, P/L-NG and R/L-NG are about 40 % lower than under D.

    clustermodel sweep scenarios/papers/perkovic_2000/queue_order.py --out small --set jobs=1000 --set replications=12

Full (about 4 min on two cores): the log of CTC-SP2; the intervals are those of random orders and flurries.

    clustermodel sweep scenarios/papers/perkovic_2000/queue_order.py --out full \
        --set trace=../shared/traces/CTC-SP2-1996-3.1-cln.swf.gz --set nodes=430 --set flurry=uniform --set narrow=2 \
        --set replications=3
"""

from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from paper_jobs import CLEANED, paper_jobs
from shape_classes import SHAPES, workload_shapes

from clustermodel import Machine, Result, Scenario, Study, StudyTable
from clustermodel.experiment.factors import Label
from clustermodel.policies.queue_order import CRITERIA
from clustermodel.report.measure_table import (
    Columns,
    Relative,
    by_class,
    class_measures,
    measure_table,
    published_table,
    with_published,
)

POLICIES = (*CRITERIA, *(f"{criterion}-NG" for criterion in CRITERIA))
CONSERVATIVE = "D"
SLOWDOWN, WAIT = "mean_bounded_slowdown_perkovic", "mean_wait_s"
GUARANTEES = (*(f"guaranteed_over_actual_{name}" for name in ("mean", "p50", "p15", "p85")), "started_at_once")
PAIRS = [(policy, base) for base in ("D", "1/L") for policy in ("P/L-NG", "R/L-NG")]
"""Algorithms that section 5 compares."""
SLOWDOWN_OF = {shape: {"bounded_slowdown": f"slowdown_{shape}"} for shape in SHAPES}
TITLES = {SLOWDOWN: "bounded slowdown", WAIT: "delay"}
BASE: dict[str, Label] = {"policy": CONSERVATIVE}
MEANS: Columns = {
    "bounded slowdown": SLOWDOWN, "of D's": Relative(SLOWDOWN, BASE), "delay (s)": WAIT, "delay, of D's": Relative(WAIT, BASE),
    **{f"slowdown, {shape}": f"slowdown_{shape}" for shape in SHAPES},
}  # fmt: skip


def study(
    trace: str | None = None, nodes: int = 128, jobs: int = 0, flurry: str = CLEANED, narrow: int = 0, replications: int = 5
) -> Study:
    """Return the study; ``jobs`` is 0 for all jobs of the trace, or 20,000 synthetic ones.

    ``flurry`` is a reading of paper_jobs.py.  Narrow jobs have up to ``narrow`` nodes, 0 for the median.
    """
    jobs_of = partial(paper_jobs, trace, jobs=jobs, nodes=nodes, flurry=flurry)

    def scenario(policy: str, seed: int) -> Scenario:
        return Scenario(machine=Machine(nodes=nodes), workload=jobs_of(seed=seed), policy=policy, seed=seed)

    def shapes(result: Result) -> NDArray[np.str_]:
        return workload_shapes(jobs_of(seed=result.scenario.seed), nodes, narrow=narrow or None)

    return Study(
        name="queue order and guarantees",
        factors={"policy": POLICIES},
        scenario=scenario,
        measures={
            **class_measures(shapes, SHAPES, {"slowdown_{}": SLOWDOWN, "wait_s_{}": WAIT}),
            **{name: partial(guarantees, name=name) for name in GUARANTEES},
        },
        replications=replications,
        shown=(SLOWDOWN, WAIT, "mean_response_s", "wasted_load", "retried"),
        tables={
            "Table 3, guaranteed over actual delay of jobs that do not start at once, D": partial(
                actual_delays, paper=published_table(__file__, "table 3", trace=trace)
            ),
            "Figures 3 and 4, means ± 95 % interval": partial(measure_table, columns=MEANS, by=["policy"]),
            "Ratios of section 5": partial(ratios, paper=published_table(__file__, "section 5", trace=trace)),
        },
        figures={
            "Figure 3, all jobs": lambda table: table.plot.bars(y=[SLOWDOWN, WAIT]),
            "Figure 4, by shape": lambda table: by_class(table, "shape", SLOWDOWN_OF).plot.bars(
                y="bounded_slowdown", panels="shape"
            ),
        },
    )


def guarantees(result: Result, name: str) -> float | None:
    """Return the share of jobs that start at once, or a statistic of guaranteed over actual delays of the others."""
    waited = result.jobs[result.jobs["wait_s"] > 0]
    if name == "started_at_once":
        return 1 - len(waited) / len(result.jobs)
    if result.scenario.policy != CONSERVATIVE or waited.empty:
        return None
    ratio = (waited["reserved_s"] - waited["submit_s"]) / waited["wait_s"]
    statistic = name.rpartition("_")[2]
    return float(ratio.mean() if statistic == "mean" else np.percentile(ratio, int(statistic.removeprefix("p"))))


def actual_delays(table: StudyTable, paper: pd.DataFrame) -> pd.DataFrame:
    ours = pd.Series({name: str(table.interval(name, policy=CONSERVATIVE)) for name in GUARANTEES}, name="ours")
    found = paper.join(ours, how="right").dropna(axis="columns")
    names = [name.removeprefix("guaranteed_over_actual_").replace("_", " ") for name in GUARANTEES]
    return found.set_axis(pd.Index(names, name="")).reset_index()


def ratios(table: StudyTable, paper: pd.DataFrame) -> pd.DataFrame:
    index = pd.MultiIndex.from_tuples(PAIRS, names=["policy", "compared with"])
    columns = {
        title: [table.difference(measure, {"policy": policy}, {"policy": base}, ratio=True) for policy, base in PAIRS]
        for measure, title in TITLES.items()
    }
    return with_published(pd.DataFrame(columns, index=index), paper).reset_index()
