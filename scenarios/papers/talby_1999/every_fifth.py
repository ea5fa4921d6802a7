r"""Does the gain of every fifth job under slack-based backfilling depend on which job is counted first?

Talby & Feitelson 1999, short version, table 3 (section 3): "each fifth job" has UP = PP = 1; the paper does not say which job
is the first.  Section 3.3: alpha_p = 1 with 0.2 for the other weights widens the gap between the classes slightly, and both
wait longer.  As in slack.py each month is a separate run on 128 processors, AWT is the mean wait of the year under conservative
backfilling, the heuristic is AST, and means of the year are total waits by numbers of jobs.

Without a trace the log is synthetic, cut into three parts of equal length.

Small and full (50 s on two cores): lowest and highest are those of the five jobs counted first.

    clustermodel sweep scenarios/papers/talby_1999/every_fifth.py --out full \
        --set trace=../shared/traces/KTH-SP2-1996-2.2.swf.gz
"""

from functools import partial

import pandas as pd
from periods import NODES, mean_wait_s, periods

from clustermodel import Machine, Result, Scenario, Slack, Study, StudyTable
from clustermodel.report.measure_table import published_table, with_published

BEGINNINGS = (1, 2, 3, 4, 5)
EQUAL_WEIGHTS = "all 1"
WEIGHTS = {EQUAL_WEIGHTS: 1.0, "alpha_p = 1, the others 0.2": 0.2}  # alpha_u, alpha_t and alpha_f
ALL, FIFTH, OTHERS, DIFFERENCE = "mean wait (s)", "every fifth (s)", "the others (s)", "difference (s)"


def study(trace: str = "", jobs: int = 3_000, parts: int = 3, compressions: tuple[str, ...] = ("afresh", "shift")) -> Study:
    """Return the study; ``jobs`` are those of the synthetic log, cut into so many ``parts``."""
    machine, months = Machine(nodes=NODES), periods(trace, jobs, parts)
    awt_s = mean_wait_s(months.values())

    def scenario(compression: str, weights: str, begins_with: int, month: str, seed: int) -> Scenario:
        fifth = frozenset(months[month].column("id")[begins_with - 1 :: 5].tolist())
        policy = Slack(
            compression=compression,
            awt=awt_s,
            user_priority=lambda job: float(job.id in fifth),
            political_priority=lambda job: float(job.id in fifth),
            alpha_u=WEIGHTS[weights],
            alpha_t=WEIGHTS[weights],
            alpha_f=WEIGHTS[weights],
        )
        return Scenario(machine=machine, workload=months[month], policy=policy, seed=seed)

    return Study(
        name="every fifth job",
        factors={"compression": compressions, "weights": tuple(WEIGHTS), "begins_with": BEGINNINGS, "month": tuple(months)},
        scenario=scenario,
        measures={
            "total_wait_s": lambda result: float(result.jobs["wait_s"].sum()),
            **{f"wait_{first}_s": partial(wait_from_s, first=first) for first in BEGINNINGS},
        },
        shown=("jobs", "mean_wait_s", "reservation_violations"),
        tables={
            "Table 3, by the first of every fifth job": partial(by_beginning, weights=EQUAL_WEIGHTS),
            "Table 3, means over the five, by weights": means,
        },
    )


def wait_from_s(result: Result, first: int) -> float:
    return float(result.jobs["wait_s"].iloc[first - 1 :: 5].sum())


def by_beginning(table: StudyTable, weights: str | None = None) -> pd.DataFrame:
    """Return the mean waits of all jobs, of every fifth and of the others; of one setting of the weights, or of all."""
    rows = table.frame.copy()
    rows["fifth"] = (rows["jobs"] - rows["begins_with"] + 5) // 5
    rows["of_fifth"] = sum(rows[f"wait_{first}_s"].where(rows["begins_with"] == first, 0.0) for first in BEGINNINGS)
    by = ["compression", "weights", "begins_with"]
    sums = rows.groupby(by, sort=False)[["total_wait_s", "jobs", "of_fifth", "fifth"]].sum()
    others = (sums["total_wait_s"] - sums["of_fifth"]) / (sums["jobs"] - sums["fifth"])
    found = pd.DataFrame({ALL: sums["total_wait_s"] / sums["jobs"], FIFTH: sums["of_fifth"] / sums["fifth"], OTHERS: others})
    found[DIFFERENCE] = found[OTHERS] - found[FIFTH]
    if weights is None:
        return found
    return found[found.index.get_level_values("weights") == weights].droplevel("weights")


def means(table: StudyTable) -> pd.DataFrame:
    groups = by_beginning(table).groupby(level=["compression", "weights"], sort=False)
    found = groups[[ALL, FIFTH, OTHERS, DIFFERENCE]].mean()
    found["lowest"], found["highest"] = groups[DIFFERENCE].min(), groups[DIFFERENCE].max()
    year = published_table(__file__, "tables 1 and 3").loc["year", ["slack", "every fifth", "the others"]]
    printed = found.index[found.index.get_level_values("weights") == EQUAL_WEIGHTS]
    paper = pd.DataFrame([list(year)] * len(printed), printed, columns=[ALL, FIFTH, OTHERS])
    paper[DIFFERENCE] = paper[OTHERS] - paper[FIFTH]
    return with_published(found, paper) if "1996-09" in table.levels("month") else found
