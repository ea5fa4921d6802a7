r"""Do the heuristics of slack-based backfilling rank as published if jobs are delayed and compressed as described?

Talby & Feitelson 1999, short version, table 5 (section 3), equal priorities, with ``compression="shift"``; slack.py has the
other readings.  As there, each month is a separate run on 128 processors, AWT is the mean wait of the year under conservative
backfilling, and means of the year are total waits by numbers of jobs.

Without a trace the log is synthetic, cut into three parts of equal length.

Small (15 s on two cores): in a synthetic log, AST shortens waits by more than the interval; the order of the heuristics needs
the full study.

    clustermodel sweep scenarios/papers/talby_1999/compression.py --out small --set jobs=12000 --set parts=30

Full (20 s on two cores): a year of KTH-SP2, a fixed log, so without intervals.

    clustermodel sweep scenarios/papers/talby_1999/compression.py --out full \
        --set trace=../shared/traces/KTH-SP2-1996-2.2.swf.gz
"""

import pandas as pd
from periods import NODES, SHORTER_S, mean_wait_s, periods, shorter_s

from clustermodel import Machine, Scenario, Slack, Study, StudyTable
from clustermodel.report.measure_table import published_table, with_published

BASE, WAIT = "conservative", "mean wait (s)"
SHORTER = "shorter than conservative's by (%)"
ORDER = ("ast", "aat", "dp", "dc", "du")
MONTHS, HEURISTICS = (published_table(__file__, name) for name in ("tables 1 and 3", "table 5"))


def study(trace: str = "", jobs: int = 3_000, parts: int = 3) -> Study:
    """Return the study; ``jobs`` are those of the synthetic log, cut into so many ``parts``."""
    machine, months = Machine(nodes=NODES), periods(trace, jobs, parts)
    awt_s = mean_wait_s(months.values())

    def scenario(policy: str, month: str, seed: int) -> Scenario:
        slack = Slack(heuristic=policy, compression="shift", awt=awt_s) if policy in ORDER else policy
        return Scenario(machine=machine, workload=months[month], policy=slack, seed=seed)

    return Study(
        name="compression under slack-based backfilling",
        factors={"policy": (BASE, *ORDER), "month": tuple(months)},
        scenario=scenario,
        measures={"total_wait_s": lambda result: float(result.jobs["wait_s"].sum())},
        shown=("jobs", "mean_wait_s", "reservation_violations"),
        tables={'Table 5, equal priorities, compression="shift"': by_heuristic},
    )


def by_heuristic(table: StudyTable) -> pd.DataFrame:
    sums = table.frame.groupby("policy", sort=False)[["total_wait_s", "jobs"]].sum()
    found = pd.DataFrame({WAIT: sums["total_wait_s"] / sums["jobs"]})
    found[SHORTER] = 100 * (1 - found[WAIT] / found[WAIT][BASE])
    if "1996-09" not in table.levels("month"):
        found[SHORTER_S] = pd.Series([shorter_s(table, {"policy": one}, {"policy": BASE}) for one in found.index], found.index)
        return found
    paper = pd.DataFrame({WAIT: HEURISTICS["equal"]})
    paper.loc[BASE] = MONTHS[BASE]["year"]
    paper[SHORTER] = 100 * (1 - paper[WAIT] / paper[WAIT][BASE])
    return with_published(found, paper)
