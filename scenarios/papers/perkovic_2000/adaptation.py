r"""Does it pay to give jobs fewer or more nodes than they asked for?

Perkovic & Keleher 2000, figures 7, 8 and 9 (section 7): bounded slowdown, delay (wait) and response time relative to
conservative backfilling, D.  All jobs get half or a quarter of their nodes, or the size that completes first (greedy), or half
their nodes and more at their start where nodes are idle (widening), without and with speculation.

As in the paper, efficiency is constant: on half as many nodes a job takes twice as long.  Bounded slowdown is relative to the
run time on the requested nodes.  The paper's text does not say how far start-time widening may go: here up to the requested
nodes, or up to twice as many ("to double").

Small (20 s on two cores): in synthetic jobs, half of the nodes halve the slowdown under D and raise the response time by about
a fifth.

    clustermodel sweep scenarios/papers/perkovic_2000/adaptation.py --out small \
        --set jobs=1000 --set replications=12 --set policies=D,R/L-NG

Full (about 11 min on two cores): the log of CTC-SP2; the intervals are those of random orders and flurries.

    clustermodel sweep scenarios/papers/perkovic_2000/adaptation.py --out full \
        --set trace=../shared/traces/CTC-SP2-1996-3.1-cln.swf.gz --set nodes=430 --set flurry=uniform --set replications=3
"""

from functools import partial
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from paper_jobs import CLEANED, paper_jobs

from clustermodel import Backfilling, Machine, Scenario, Study, StudyTable, bars
from clustermodel.experiment.factors import Label
from clustermodel.policies.backfilling.moldable import Greedy
from clustermodel.report.measure_table import Columns, Relative, measure_table, published_table, with_published

CONSERVATIVE, AS_ASKED = "D", "as asked"
SPECULATION = {"speculation": 0.9, "test_runs": True}
"""With test runs, large percentages are slightly better (section 6.2)."""
TECHNIQUES: dict[str, dict[str, Any]] = {
    AS_ASKED: {},
    "half": {"width": "half"},
    "quarter": {"width": "quarter"},
    "greedy to double": {"width": Greedy((1.0, 0.5, 2.0))},
    "greedy to quarter": {"width": Greedy((1.0, 0.5, 0.25))},
    "half + widening": {"width": "half", "widening": True},
    "half + widening to double": {"width": "half", "widening": 2.0},
    "half + speculation": {"width": "half", **SPECULATION},
    "half + speculation + widening": {"width": "half", "widening": True, **SPECULATION},
    "quarter + speculation + widening": {"width": "quarter", "widening": True, **SPECULATION},
}
"""Arguments of ``Backfilling``, besides order and guarantees.  Greedy chooses the size asked for, half, or one more."""
FIGURES = {
    "Figure 7": ("half", "quarter"),
    "Figure 8": ("greedy to double", "greedy to quarter"),
    "Figure 9": ("half", "half + widening", "half + widening to double", "half + speculation", "half + speculation + widening"),
    "All together": (AS_ASKED, "quarter + speculation + widening"),
}
"""Techniques by the figure that shows them."""
MEASURES = ("mean_bounded_slowdown_perkovic", "mean_wait_s", "mean_response_s")
BASE: dict[str, Label] = {"technique": AS_ASKED, "policy": CONSERVATIVE}
COLUMNS: Columns = {
    "bounded slowdown": MEASURES[0],
    "bounded slowdown, of D's": Relative(MEASURES[0], BASE),
    "delay, of D's": Relative(MEASURES[1], BASE),
    "response, of D's": Relative(MEASURES[2], BASE),
    "wasted load": "wasted_load",
}


def study(
    trace: str | None = None,
    nodes: int = 128,
    jobs: int = 0,
    flurry: str = CLEANED,
    replications: int = 3,
    policies: tuple[str, ...] = ("D", "1/L", "1/L-NG", "R/L-NG"),
    techniques: tuple[str, ...] = tuple(TECHNIQUES),
) -> Study:
    """Return the study; ``jobs`` is 0 for all jobs of the trace, or 20,000 synthetic ones.

    ``flurry`` is a reading of paper_jobs.py.  D is among the ``policies``, "as asked" among the ``techniques``.
    """
    paper = published_table(__file__, "section 7", trace=trace)

    def scenario(policy: str, technique: str, seed: int) -> Scenario:
        order, guarantees = policy.removesuffix("-NG"), "none" if policy.endswith("-NG") else "all"
        scheduler = Backfilling(order=order, guarantees=guarantees, **TECHNIQUES[technique])
        workload = paper_jobs(trace, jobs=jobs, nodes=nodes, flurry=flurry, seed=seed)
        return Scenario(machine=Machine(nodes=nodes), workload=workload, policy=scheduler, seed=seed)

    return Study(
        name="adaptation",
        factors={"technique": techniques, "policy": policies},
        scenario=scenario,
        replications=replications,
        shown=(*MEASURES, "wasted_load", "retried"),
        tables={
            f"{name}, relative to conservative backfilling ± 95 % interval": partial(relative, name=name, paper=paper)
            for name in FIGURES
        },
        figures={name: partial(picture, name=name) for name in FIGURES if name.startswith("Figure")},
    )


def relative(table: StudyTable, name: str, paper: pd.DataFrame) -> pd.DataFrame:
    found = measure_table(table, COLUMNS, by=["technique", "policy"]).set_index(["technique", "policy"])
    return with_published(found[found.index.isin(FIGURES[name], level="technique")], paper).reset_index()


def picture(table: StudyTable, name: str) -> Figure:
    shown = table.at(technique=(AS_ASKED, *FIGURES[name]))
    return bars(shown.frame, y=MEASURES, x="technique")
