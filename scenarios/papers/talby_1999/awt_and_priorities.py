r"""How do the average wait time and equal higher priorities affect slack-based backfilling?

Talby & Feitelson 1999 describe some experiments on equal priorities without a table (short version, section 3.2; long version,
sections 5.2 and 6): AWT of each month instead of the year, a very small AWT, and higher priorities for all jobs.  As in
slack.py each month is a separate run on 128 processors, and means of the year are total waits by numbers of jobs.  The
heuristic is AST, and SF = 3.

Without a trace the log is synthetic, cut into three parts of equal length.

Small and full (25 s on two cores): a year of KTH-SP2, a fixed log, so without intervals.

    clustermodel sweep scenarios/papers/talby_1999/awt_and_priorities.py --out full \
        --set trace=../shared/traces/KTH-SP2-1996-2.2.swf.gz
"""

import pandas as pd
from periods import NODES, SHORTER_S, periods, shorter_s

from clustermodel import Machine, Scenario, Slack, Study, StudyTable

BASE, USUAL = "conservative backfilling", "AWT of the year, UP = PP = 0"
MONTHLY, SMALL, HIGH = "AWT of each month", "AWT = 1 s", "UP = PP = 1 for all jobs"
SHORTER = "shorter than conservative's by (%)"


def study(trace: str = "", jobs: int = 3_000, parts: int = 3, compressions: tuple[str, ...] = ("afresh", "shift")) -> Study:
    """Return the study; ``jobs`` are those of the synthetic log, cut into so many ``parts``."""
    machine, months = Machine(nodes=NODES), periods(trace, jobs, parts)
    waits = {
        month: Scenario(machine=machine, workload=part, policy="conservative").run().jobs["wait_s"]
        for month, part in months.items()
    }
    awt_s = float(pd.concat(waits.values()).mean())

    def scenario(experiment: str, compression: str, month: str, seed: int) -> Scenario | None:
        if experiment == BASE:
            if compression != compressions[0]:
                return None
            return Scenario(machine=machine, workload=months[month], policy="conservative", seed=seed)
        priority = 1.0 if experiment == HIGH else 0.0
        slack = Slack(
            compression=compression,
            awt={MONTHLY: float(waits[month].mean()), SMALL: 1.0}.get(experiment, awt_s),
            user_priority=priority,
            political_priority=priority,
        )
        return Scenario(machine=machine, workload=months[month], policy=slack, seed=seed)

    return Study(
        name="experiments on slack-based backfilling",
        factors={"experiment": (BASE, USUAL, MONTHLY, SMALL, HIGH), "compression": compressions, "month": tuple(months)},
        scenario=scenario,
        measures={"total_wait_s": lambda result: float(result.jobs["wait_s"].sum())},
        shown=("jobs", "mean_wait_s", "reservation_violations"),
        tables={"Mean wait (s) by average wait time and priority of all jobs": by_experiment},
    )


def by_experiment(table: StudyTable) -> pd.DataFrame:
    sums = table.frame.groupby(["experiment", "compression"], sort=False)[["total_wait_s", "jobs"]].sum()
    waits = sums["total_wait_s"] / sums["jobs"]
    base = float(waits[BASE].iloc[0])  # run once for all compressions
    found = pd.DataFrame(index=pd.Index(table.levels("experiment"), name="experiment"))
    for compression in table.levels("compression"):
        of_compression = waits[waits.index.get_level_values("compression") == compression].droplevel("compression")
        wait = of_compression.reindex(found.index).fillna({BASE: base})
        found[f"{compression}, mean wait (s)"] = wait
        found[f"{compression}, {SHORTER}"] = 100 * (1 - wait / base)
        if "1996-09" not in table.levels("month"):
            conservative = {"experiment": BASE, "compression": table.levels("compression")[0]}
            here = [{"experiment": one, "compression": compression} for one in found.index]
            shorter = [shorter_s(table, conservative if one["experiment"] == BASE else one, conservative) for one in here]
            found[f"{compression}, {SHORTER_S}"] = pd.Series(shorter, found.index)
    return found
