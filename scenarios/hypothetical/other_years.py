"""How much of what one log shows would also hold in another year of the same machine?

A log is one sample path: seeds of a random policy do not say how the comparison of two policies depends on the jobs.  The study
draws weeks of the log with replacement, the same weeks for all policies in each replication, and compares what Yuan et al. 2010
and Perkovic & Keleher 2000 compare: conservative backfilling and PV-EASY with EASY, R/L-NG with D.  On the jobs as recorded,
replications differ in the seed of R/L-NG only.  Blocks of several weeks show whether weeks depend on each other.

Jobs run as long as recorded under EASY, conservative backfilling and PV-EASY, as in Yuan et al. 2010; D and R/L-NG kill them at
their estimates.  PV-EASY predicts the run time of the user's last submitted job, and then the estimate.

    clustermodel sweep scenarios/hypothetical/other_years.py --out results --set jobs=3000
"""

from functools import lru_cache
from math import isnan

import pandas as pd

from clustermodel import Interval, Machine, Scenario, Study, StudyTable, Workload
from clustermodel.report.measure_table import Relative, Scaled, measure_table
from clustermodel.workload.synthetic import study_jobs
from clustermodel.workload.transforms import WEEK_S, Unit

RECORDED = "as recorded"
POLICIES = {
    "EASY": "easy", "conservative": "conservative", "PV-EASY": "pv-easy:correction=estimate,predictor=last-submitted",
    "D": "D", "R/L-NG": "R/L-NG",
}  # fmt: skip
KILLS = ("D", "R/L-NG")
COMPARED = {"conservative": "EASY", "PV-EASY": "EASY", "R/L-NG": "D"}
"""The policy with which each is compared."""
MEASURES = {"slowdown": "mean_bounded_slowdown", "wait": "mean_wait_s"}


def study(trace: str | None = None, nodes: int = 128, jobs: int = 0, weeks: str = "1", replications: int = 10) -> Study:
    """Return the study; ``jobs`` is 0 for all jobs of the trace, or 20,000 synthetic ones; ``weeks`` are lengths of blocks."""
    units: dict[str, Unit | None] = {RECORDED: None}
    for count in weeks.split(","):
        units |= {"weeks drawn": "weeks"} if count == "1" else {f"{count} weeks drawn": int(count) * WEEK_S}

    def scenario(sample: Unit | None, policy: str, seed: int) -> Scenario:
        workload = study_jobs(trace, jobs=jobs, nodes=nodes, seed=1 if sample else seed)
        if sample:
            workload = resampled(workload, sample, seed)
        machine = Machine(nodes=nodes, kill_at_estimate=policy in KILLS)
        return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)

    return Study(
        name="other years",
        factors={"sample": units, "policy": POLICIES},
        scenario=scenario,
        replications=replications,
        shown=tuple(MEASURES.values()),
        tables={"Means ± 95 % interval": means, "Paired ratios ± 95 % interval": ratios},
    )


@lru_cache(maxsize=4)
def resampled(log: Workload, of: Unit, seed: int) -> Workload:
    """Return the jobs of weeks, blocks or users of a log that are drawn with replacement."""
    return log.resampled(of, seed=seed)


def means(table: StudyTable) -> pd.DataFrame:
    columns = {
        f"{title}, {sample}": Scaled(measure, at={"sample": sample})
        for title, measure in {"slowdown": MEASURES["slowdown"], "wait (s)": MEASURES["wait"]}.items()
        for sample in table.levels("sample")
    }
    return measure_table(table, columns, by=["policy"])


def ratios(table: StudyTable) -> pd.DataFrame:
    """Return the ratios of what is compared, and how much wider the interval over weeks is than that over seeds."""
    parts = []
    for policy, baseline in COMPARED.items():
        columns = {
            f"{title}, {sample}": Relative(measure, to={"policy": baseline}, at={"sample": sample})
            for title, measure in MEASURES.items()
            for sample in table.levels("sample")
        }
        found = measure_table(table.at(policy=[policy, baseline]), columns, by=["policy"])
        parts.append(found.assign(policy=f"{policy} / {baseline}", **{"weeks / seeds, slowdown": [wider(*found.iloc[0, 1:3])]}))
    return pd.concat(parts, ignore_index=True)


def wider(seeds: Interval, weeks: Interval) -> str:
    """Return how many times as wide an interval over weeks is as one over seeds, if seeds make any difference."""
    return "" if isnan(seeds.half) else f"{weeks.half / seeds.half:.2g}"
