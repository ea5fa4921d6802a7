"""Would another reading of EASY, or of the Last Model, give the published numbers of Yuan et al. 2010 that differ most?

In table 4 of Yuan et al. 2010 (section 5.2.1) EASY backfills more jobs and blocks fewer than here, and the paper's PV-EASY has
slowdowns like EASY's, which it has not here (strict_fairness.py).  The study has EASY whose extra nodes are not used up, so
that each backfilled job may take all of them; the same with running jobs that have outlived their estimates expected to run for
ever; and PV-EASY with other readings of "the last job of the same user".  Run times are as recorded.

    clustermodel sweep scenarios/papers/yuan_2010/other_readings.py --out results --set jobs=2000
"""

from functools import partial
from math import inf

import pandas as pd

from clustermodel import Machine, Policy, Scenario, Study, StudyTable
from clustermodel.experiment.measure_table import Columns, Scaled, published_table, readings_table
from clustermodel.policies.generous_easy import GenerousEasy
from clustermodel.policies.predictors import LastAtSubmission, LastSubmitted, LastUnlimited
from clustermodel.policies.pv_easy import PVEasy
from clustermodel.workload.study_jobs import study_jobs

SHOWN = ("mean_bounded_slowdown", "mean_weighted_bounded_slowdown", "backfilled", "blocked", "delayed")
COLUMNS: Columns = {
    **dict(zip(("MBS", "MWBS", *SHOWN[2:]), SHOWN, strict=True)),
    "mean delay (min)": Scaled("mean_delay_by_later_s", 1 / 60),
    "wasted load (%)": Scaled("wasted_load", 100),
}
MARKS = "bold, two stars: within 5 %; italics, one star: within 10 %"
READINGS: dict[str, str | Policy] = {
    "EASY": "easy",
    "EASY, extra nodes not used up": GenerousEasy(),
    "EASY, and late jobs run for ever": GenerousEasy(late_s=inf),
    "PV-EASY": "pv-easy",
    "PV-EASY, predicted at submission": PVEasy(predictor=LastAtSubmission()),
    "PV-EASY, last submitted job": PVEasy(predictor=LastSubmitted()),
    "PV-EASY, no limit at the estimate": PVEasy(predictor=LastUnlimited()),
}


def readings_of(policy: str, table: StudyTable, published: pd.DataFrame) -> pd.DataFrame:
    """Return which reading of a policy gives which number that the paper has of it."""
    readings = [label for label in READINGS if label.partition(",")[0] == policy]
    return readings_table(table.at(policy=readings), COLUMNS, published.to_dict("index").get(policy, {}), of="policy")


def study(trace: str | None = None, nodes: int = 128, jobs: int = 0, replications: int = 1) -> Study:
    """Return the study; ``jobs`` is 0 for all jobs of the trace, or 20,000 synthetic ones."""
    paper = published_table(__file__, "table 1", "table 4", "tables 5 and 6", trace=trace)

    def scenario(policy: str | Policy, seed: int) -> Scenario:
        workload = study_jobs(trace, jobs=jobs or None, nodes=nodes, seed=seed)
        return Scenario(machine=Machine(nodes=nodes, kill_at_estimate=False), workload=workload, policy=policy, seed=seed)

    return Study(
        name="other readings",
        factors={"policy": READINGS},
        scenario=scenario,
        replications=replications,
        shown=(*SHOWN, "mean_delay_by_later_s", "wasted_load"),
        tables={
            f"Readings of {policy} ({MARKS})": partial(readings_of, policy, published=paper) for policy in ("EASY", "PV-EASY")
        },
        figures={"Other readings": lambda table: table.plot.bars(y=["backfilled", "blocked", "mean_bounded_slowdown"])},
    )
