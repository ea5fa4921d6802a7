r"""Which published numbers depend on the flurry of jobs that the cleaned log lacks, and on its timing?

Perkovic & Keleher 2000 used the CTC log with a flurry of 2,080 jobs (paper_jobs.py).  The cleaned log keeps the original job
numbers, in order of submission, so each missing job was submitted between two known times.  The readings of the log are:

* *cleaned*, without the flurry;
* *uniform*: each missing job is submitted at a uniformly distributed time in its gap;
* *gap-start*: at the beginning of its gap;
* *bursts*: within its gap, 50 at once.

Each replication draws new times and run times of the flurry, and new random priorities and orders.

Small (20 s on two cores): in synthetic jobs, R/L-NG has about 40 % lower slowdowns than D under every reading; the readings
differ by less than the intervals.

    clustermodel sweep scenarios/papers/perkovic_2000/flurry.py --out small --set jobs=1000 --set replications=12

Full (about 5 min on two cores): the log of CTC-SP2; the intervals are those of random orders and flurries.

    clustermodel sweep scenarios/papers/perkovic_2000/flurry.py --out full \
        --set trace=../shared/traces/CTC-SP2-1996-3.1-cln.swf.gz --set nodes=430 --set replications=3
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from cleaned_log import Flurry
from numpy.typing import NDArray
from paper_jobs import CLEANED, DEFAULT, FLURRIES, paper_jobs
from queue_order import GUARANTEES, PAIRS, SLOWDOWN, TITLES, WAIT, guarantees

from clustermodel import Interval, Machine, Result, Scenario, Study, StudyTable, Workload
from clustermodel.experiment.factors import Label
from clustermodel.report.measure_table import class_measures, measure_table, published_table
from clustermodel.workload.job import UNSET

TECHNIQUE = "half + speculation"
COMBINED = [f"{name}, {TECHNIQUE}" for name in ("1/L-NG", "R/L-NG")]
ALGORITHMS = {
    **{name: name for name in ("D", "1/L", "P/L-NG", "R/L-NG")},
    **{name: f"{name.partition(',')[0]}:width=half,speculation=0.9,test_runs=true" for name in COMBINED},
}
"""Policies by the names of the algorithms that the paper's text compares; the technique is that of adaptation.py."""
ROBUST = ("D", "R/L-NG")
"""Algorithms that run under each reading; the others run on the cleaned log and under the default."""
CONSERVATIVE: dict[str, Label] = {"algorithm": "D"}
OF_CONSERVATIVE = {
    "guaranteed_over_actual_mean": "Table 3: guaranteed over actual delay, mean",
    "guaranteed_over_actual_p50": "Table 3: guaranteed over actual delay, median",
    "guaranteed_over_actual_p15": "Table 3: guaranteed over actual delay of 15 % of jobs, at most",
    "guaranteed_over_actual_p85": "Table 3: guaranteed over actual delay of 85 % of jobs, at most",
    "started_at_once": "Section 4: share of jobs that start at once, D",
    "longest_queue": "Section 8: longest queue in jobs, D",
    "delayed_jobs": "Section 8: delayed jobs, D",
}
"""Measures of conservative backfilling that the paper prints."""


def study(trace: str | None = None, nodes: int = 128, jobs: int = 0, replications: int = 3) -> Study:
    """Return the study; ``jobs`` is their number without the flurry, 0 for all of the trace, or 20,000 synthetic ones."""

    def scenario(flurry: str, algorithm: str, seed: int) -> Scenario | None:
        if flurry not in (CLEANED, DEFAULT) and algorithm not in ROBUST:
            return None
        workload = paper_jobs(trace, jobs=jobs, nodes=nodes, flurry=flurry, seed=seed)
        return Scenario(machine=Machine(nodes=nodes), workload=workload, policy=ALGORITHMS[algorithm], seed=seed)

    return Study(
        name="flurry",
        factors={"flurry": FLURRIES, "algorithm": list(ALGORITHMS)},
        scenario=scenario,
        measures={
            **class_measures(others, ["others"], {"slowdown_{}": SLOWDOWN, "wait_s_{}": WAIT}),
            **{name: partial(guarantees, name=name) for name in GUARANTEES},
            "longest_queue": longest_queue,
            "delayed_jobs": delayed_jobs,
        },
        replications=replications,
        shown=(SLOWDOWN, WAIT, "mean_response_s", "wasted_load", "retried"),
        tables={"Which reading gives which published number": partial(by_reading, trace=trace), "Means ± 95 % interval": means},
        figures={
            "Bounded slowdown and delay by reading": lambda table: table.plot.bars(
                y=[SLOWDOWN, WAIT], x="algorithm", by="flurry"
            )
        },
    )


def longest_queue(result: Result) -> int:
    return int(result.events.waiting.max())


def delayed_jobs(result: Result) -> int:
    return int((result.jobs["wait_s"] > 0).sum())


def others(result: Result) -> NDArray[np.str_]:
    """Return which jobs are not of the flurry: its jobs have the numbers that the filter removed, and no user."""
    jobs, workload = result.jobs, result.scenario.workload
    flurry = workload.provenance.options.get("flurry") if isinstance(workload, Workload) else None
    if not isinstance(flurry, Flurry):
        return np.full(len(jobs), "others")
    restored = (jobs["user"] == UNSET) & jobs["job"].between(flurry.first, flurry.last)
    return np.where(restored, "flurry", "others")


def numbers(table: StudyTable, trace: str | None) -> Iterator[tuple[str, str | float, Interval | None]]:
    """Yield each number that the paper prints and ours under one reading: what it is, as printed, ours if the study has it.

    Section 5 prints reductions in percent; published.toml has what is left.
    """
    paper, has = partial(printed, trace), set(table.levels("algorithm"))

    def ratio(measure: str, of: str, base: str = "D") -> Interval | None:
        there = {of, base} <= has
        return table.difference(measure, {"algorithm": of}, {"algorithm": base}, ratio=True) if there else None

    for (policy, base), (measure, title) in product(PAIRS, TITLES.items()):
        left, ours = paper("section 5", (policy, base), title), ratio(measure, policy, base)
        reduction = left and round(100 * (1 - float(left)), 1)
        less = ours and replace(ours, mean=100 * (1 - ours.mean), half=100 * ours.half)
        yield f"Section 5: {title} of {policy}, less than {base}'s by (%)", reduction, less
    for name in COMBINED:
        several = paper("section 7, several", SLOWDOWN, "paper")
        yield f"Section 7: bounded slowdown of {name}, of D's", several, ratio(SLOWDOWN, name)
    of_delay = paper("section 7", (TECHNIQUE, "R/L-NG"), "delay, of D's")
    yield f"Section 7: delay of {COMBINED[-1]}, of D's", of_delay, ratio(WAIT, COMBINED[-1])
    for measure, what in OF_CONSERVATIVE.items():
        source = "section 8" if what.startswith("Section 8") else "table 3"
        yield what, paper(source, measure, "paper"), table.interval(measure, algorithm="D")


def printed(trace: str | None, source: str, row: str | tuple[str, str], column: str) -> str | float:
    """Return a published number, or an empty text where the paper does not have the trace."""
    paper = published_table(__file__, source, trace=trace)
    return str(paper.loc[row, column]) if row in paper.index else ""


def by_reading(table: StudyTable, trace: str | None) -> pd.DataFrame:
    columns = {flurry: list(numbers(table.at(flurry=flurry), trace)) for flurry in table.levels("flurry")}
    rows = next(iter(columns.values()))
    named = {"published number": [what for what, _, _ in rows], "paper": [paper for _, paper, _ in rows]}
    return pd.DataFrame({**named, **{str(flurry): [ours or "" for _, _, ours in found] for flurry, found in columns.items()}})


def means(table: StudyTable) -> pd.DataFrame:
    columns = {
        "bounded slowdown": SLOWDOWN,
        "delay (s)": WAIT,
        "bounded slowdown, all but the flurry": "slowdown_others",
        "delay (s), all but the flurry": "wait_s_others",
    }
    return measure_table(table, columns, by=["flurry", "algorithm"])
