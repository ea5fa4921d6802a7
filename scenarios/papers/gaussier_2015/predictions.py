r"""How much do run-time predictions, their correction and event-by-event scheduling improve EASY backfilling?

Gaussier et al. 2015 (table 6) compare EASY with predicted run times on logs of the archive.  A job is predicted to run for the
mean of the user's last two run times (Tsafrir et al. 2007) or for its actual run time ("perfect"); an expired prediction is
replaced by the user's estimate or raised by Tsafrir's steps; candidates are tried in order of arrival or shortest first
(EASY++).  Their program handles simultaneous events one by one, each in its own scheduling cycle.  Uncorrected predictions are
not in the paper.

Jobs ask for processors as the log requests them, and are killed at their estimates, as in the paper.

Small (25 s on two cores): in synthetic jobs, uncorrected predictions multiply the slowdown of EASY; corrected predictions do
not.

    clustermodel sweep scenarios/papers/gaussier_2015/predictions.py --out small --set jobs=2000 --set replications=10

Full (25 s on two cores): a year of KTH-SP2, a fixed log, so without intervals.

    clustermodel sweep scenarios/papers/gaussier_2015/predictions.py --out full \
        --set trace=../shared/traces/KTH-SP2-1996-2.2.swf.gz --set nodes=100
"""

from functools import partial
from typing import Literal

import pandas as pd

from clustermodel import Machine, Scenario, Study, StudyTable
from clustermodel.report.measure_table import Columns, Scaled, measure_table, published_table
from clustermodel.workload.synthetic import study_jobs

SHORTEST = "backfill_order=shortest"
POLICIES = {
    "EASY": "easy",
    "EASY, perfect": "easy:predictor=perfect",
    "EASY, last two": "easy:predictor=last-two",
    "EASY, last two, estimate": "easy:predictor=last-two,correction=estimate",
    "EASY, last two, tsafrir": "easy:predictor=last-two,correction=tsafrir",
    "shortest first": f"easy:{SHORTEST}",
    "shortest first, perfect": f"easy:predictor=perfect,{SHORTEST}",
    "shortest first, last two": f"easy:predictor=last-two,{SHORTEST}",
    "shortest first, last two, estimate": f"easy:predictor=last-two,correction=estimate,{SHORTEST}",
    "shortest first, last two, tsafrir": f"easy:predictor=last-two,correction=tsafrir,{SHORTEST}",
}
EVENTS: dict[str, Literal["together", "one-by-one"]] = {"one by one": "one-by-one", "together": "together"}
FLOW, SLOWDOWN = "mean_response_s", "mean_bounded_slowdown"


def columns(events: str) -> Columns:
    return {"mean flow (s)": Scaled(FLOW, at={"events": events}), "bounded slowdown": Scaled(SLOWDOWN, at={"events": events})}


def study(trace: str | None = None, nodes: int = 128, jobs: int = 0, replications: int = 1) -> Study:
    """Return the study; ``jobs`` is 0 for all jobs of the trace, or 20,000 synthetic ones."""
    paper = published_table(__file__, "results", trace=trace)

    def scenario(policy: str, events: str, seed: int) -> Scenario:
        workload = study_jobs(trace, jobs=jobs, nodes=nodes, seed=seed, processors_from="requested")
        machine = Machine(nodes=nodes)
        return Scenario(machine=machine, workload=workload, policy=POLICIES[policy], events=EVENTS[events], seed=seed)

    return Study(
        name="predictions",
        factors={"policy": list(POLICIES), "events": list(EVENTS)},
        scenario=scenario,
        replications=replications,
        shown=(FLOW, SLOWDOWN, "mean_wait_s"),
        tables={
            "Events one by one": partial(measure_table, columns=columns("one by one"), by=["policy"], published=paper),
            "All events of an instant together, relative to one by one": together,
        },
        figures={"Bounded slowdown": lambda table: table.plot.bars(y=[SLOWDOWN], x="policy", by="events")},
    )


def together(table: StudyTable) -> pd.DataFrame:
    rows = []
    for policy in table.levels("policy"):
        point = {"policy": policy}
        ratios = {
            name: table.difference(measure, {**point, "events": "together"}, {**point, "events": "one by one"}, ratio=True)
            for name, measure in (("mean flow", FLOW), ("bounded slowdown", SLOWDOWN))
        }
        rows.append({**point, **ratios})
    return pd.DataFrame(rows)
