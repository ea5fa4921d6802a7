r"""Does it pay to schedule jobs for less than their estimates, and to restart those that need more?

Perkovic & Keleher 2000, figures 5 and 6 (section 6): bounded slowdown under speculative backfilling for several ratios of
speculated time to estimate, without and with speculative test runs, and the work that speculation wastes.  Stopped jobs start
over; ``wasted_load`` is the work of stopped runs as a share of capacity.

The paper's text does not say which percentages its figures show; here 10 to 90 %.

Small (15 s on two cores): in synthetic jobs, scheduling jobs for 90 % of their estimates lowers the slowdown under D by a few
percent, and not that under 1/L-NG.

    clustermodel sweep scenarios/papers/perkovic_2000/speculation.py --out small \
        --set jobs=1000 --set replications=12 --set policies=D,1/L-NG --set ratios=0.2,0.9

Full (about 14 min on two cores): the log of CTC-SP2; the intervals are those of random orders and flurries.

    clustermodel sweep scenarios/papers/perkovic_2000/speculation.py --out full \
        --set trace=../shared/traces/CTC-SP2-1996-3.1-cln.swf.gz --set nodes=430 --set flurry=uniform --set replications=3
"""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from paper_jobs import CLEANED, paper_jobs

from clustermodel import Machine, Scenario, Study, StudyTable, curves
from clustermodel.experiment.factors import Label

SLOWDOWN = "mean_bounded_slowdown_perkovic"
OFF: dict[str, Label] = {"speculation": None, "test_runs": False}


def study(
    trace: str | None = None,
    nodes: int = 128,
    jobs: int = 0,
    flurry: str = CLEANED,
    replications: int = 3,
    policies: tuple[str, ...] = ("D", "1/L", "1/L-NG", "R/L-NG"),
    ratios: tuple[float, ...] = (0.1, 0.2, 0.35, 0.5, 0.7, 0.9),
) -> Study:
    """Return the study; ``jobs`` is 0 for all jobs of the trace, or 20,000 synthetic ones.

    ``flurry`` is a reading of paper_jobs.py.  D is among the ``policies``; ``ratios`` are those of speculated time to estimate.
    """

    def scenario(policy: str, speculation: float | None, test_runs: bool, seed: int) -> Scenario | None:
        if speculation is None and test_runs:
            return None
        parameters = "" if speculation is None else f":speculation={speculation},test_runs={str(test_runs).lower()}"
        workload = paper_jobs(trace, jobs=jobs, nodes=nodes, flurry=flurry, seed=seed)
        return Scenario(machine=Machine(nodes=nodes), workload=workload, policy=policy + parameters, seed=seed)

    return Study(
        name="speculation",
        factors={"policy": policies, "speculation": [None, *ratios], "test_runs": [False, True]},
        scenario=scenario,
        replications=replications,
        shown=(SLOWDOWN, "mean_wait_s", "mean_response_s", "wasted_load", "retried"),
        tables={
            "Figure 5, speculation, mean bounded slowdown ± 95 % interval": by_ratio(SLOWDOWN, False),
            "Figure 5, of that without speculation": by_ratio(SLOWDOWN, False, OFF),
            "Figure 6, speculation and test runs, mean bounded slowdown ± 95 % interval": by_ratio(SLOWDOWN, True),
            "Figure 6, of that without test runs": by_ratio(SLOWDOWN, True, {"test_runs": False}),
            "Speculation and test runs, bounded slowdown of D's without": by_ratio(SLOWDOWN, True, {**OFF, "policy": "D"}),
            "Wasted load, speculation": by_ratio("wasted_load", False),
            "Wasted load, speculation and test runs": by_ratio("wasted_load", True),
        },
        figures={"Speculation, without and with test runs": picture},
    )


def by_ratio(measure: str, test_runs: bool, relative_to: Mapping[str, Label] = {}) -> Callable[[StudyTable], pd.DataFrame]:
    """Return the table of a measure, or of its ratio to that at other levels, by policy and speculation."""

    def tabulate(table: StudyTable) -> pd.DataFrame:
        found = table.pivot(measure, columns="speculation", relative_to=relative_to, test_runs=test_runs)
        return found[[part for part in found if part is not None]] if relative_to else found.rename(columns={None: "none"})

    return tabulate


def picture(table: StudyTable) -> Figure:
    frame = table.frame[table.frame["speculation"].notna()]
    frame = frame.assign(runs=np.where(frame["test_runs"], "with test runs", "without test runs"))
    return curves(frame, y=[SLOWDOWN, "wasted_load"], x="speculation", panels="runs")
