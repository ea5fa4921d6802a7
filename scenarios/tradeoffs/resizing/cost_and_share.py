"""How expensive can a resize be before malleability no longer pays, if only some of the jobs are malleable?

EASY resizes nothing; ``shrink-to-admit`` admits a blocked job by shrinking malleable ones.  In twelve periods of four weeks of
KTH-SP2 a share of the jobs, from a fifth to all, is malleable, as in ``cost.py``.  The shares are nested: a job that is
malleable at one share is so at each larger one.  The map shows the difference of the mean responses' logarithms, and where it
is significant.

    clustermodel sweep scenarios/tradeoffs/resizing/cost_and_share.py --out results
"""

from pathlib import Path

import pandas as pd
from malleable_weeks import NODES, SPEEDUP, TRACE, log10_response, malleable_weeks

from clustermodel import Machine, Scenario, Study, StudyTable, tradeoff_map
from clustermodel.report.measure_table import Relative, measure_table

LABELS = {
    "cost_s": "cost of a resize (s)",
    "share": "share of malleable jobs",
    "log10_response": "log10 of the mean response time",
}


def study(trace: Path = TRACE, weeks: int = 4, replications: int = 12) -> Study:
    """Return the study; ``trace`` is the file of KTH-SP2."""

    def scenario(cost_s: float, share: float, policy: str, seed: int) -> Scenario:
        workload = malleable_weeks(trace, weeks, seed, share)
        return Scenario(
            machine=Machine(nodes=NODES, resize_s=cost_s), workload=workload, policy=policy, speedup=SPEEDUP, seed=seed
        )

    return tradeoff_map(
        scenario,
        {"cost_s": [0, 60, 300, 1800], "share": [0.2, 0.5, 1]},
        ["easy", "shrink-to-admit"],
        "log10_response",
        labels=LABELS,
        measures={"log10_response": log10_response},
        tables={"log10 of mean response, shrink-to-admit - EASY": differences},
        replications=replications,
        name="cost of a resize x share of malleable jobs",
        shown=("mean_response_s", "log10_response", "mean_bounded_slowdown", "utilization", "resizes", "resize_share"),
    )


def differences(table: StudyTable) -> pd.DataFrame:
    """Return a row for each cost and a column for each share."""
    rows = measure_table(table, {"": Relative("log10_response", {"policy": "easy"}, ratio=False)})
    return rows.pivot(index="cost_s", columns="share", values="").reset_index()
