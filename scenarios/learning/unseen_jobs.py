"""Does an agent trained on one half of a trace schedule the other half better than SJF and EASY?

A run has 256 consecutive jobs of the second half, on a machine that is empty at first; the windows of two replications have no
job in common.  The agent (``scorer.py``) has been trained on windows of the first half (``train.py``), for bounded slowdown.
SJF starts the shortest job that fits.  The scorer is also run with weights set by hand: the shortest job first, and the nodes
that the shortest blocked job needs are kept for it.  All of them kill jobs at their estimates, and believe the estimates.

    clustermodel sweep scenarios/learning/unseen_jobs.py --out results --set weights=kth.json
"""

from math import log10
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from halves import halves, window
from matplotlib.figure import Figure
from scorer import agent, trained

from clustermodel import Machine, Scenario, Study, StudyTable
from clustermodel.figures.style import BLUE
from clustermodel.policies.agent import AgentPolicy
from clustermodel.report.measure_table import Relative, measure_table

POLICIES: dict[str, str | AgentPolicy] = {
    "EASY": "easy",
    "EASY, shortest first": "easy:backfill_order=shortest",
    "SJF": agent((0.0, -1.0, 0.0, 0.0, 0.0, -9.0), "SJF"),
    "scorer, by hand": agent((0.0, -1.0, 0.0, 0.0, -9.0, -5.0), "scorer, by hand"),
}
"""What the agent is compared with; the weights are those of ``scorer.WEIGHTS``."""
AGENT = "agent"
LOG = "log_slowdown"
MEASURES = {"slowdown": "mean_bounded_slowdown", "mean wait (s)": "mean_wait_s", "longest wait (s)": "longest_wait_s"}


def study(
    trace: str | None = None, nodes: int = 128, jobs: int = 0, weights: str = "lublin_256.json", replications: int = 10
) -> Study:
    """Return the study; ``jobs`` is 0 for all jobs of the trace, ``weights`` a file of ``train.py`` beside this one."""
    read = trained(Path(__file__).parent / weights)
    policies = {**POLICIES, AGENT: agent(tuple(read["weights"].values()))}

    def scenario(policy: str, seed: int) -> Scenario:
        unseen = window(halves(trace, jobs, nodes)[1], seed)
        return Scenario(machine=Machine(nodes=nodes), workload=unseen, policy=policies[policy], seed=seed)

    return Study(
        name="unseen jobs",
        factors={"policy": list(policies)},
        scenario=scenario,
        measures={
            "longest_wait_s": lambda result: float(result.jobs["wait_s"].max()),
            LOG: lambda result: log10(result.summary().mean_bounded_slowdown),
        },
        replications=replications,
        shown=tuple(MEASURES.values()),
        tables={
            "Means ± 95 % interval": lambda table: measure_table(table, MEASURES),
            "Compared with the agent, paired: ratios, but for the logarithm": ratios,
            "Weights of the agent": lambda _: pd.DataFrame([read["weights"]]),
        },
        figures={"Slowdown on unseen jobs, and while training": lambda table: picture(table, read["curve"])},
    )


def ratios(table: StudyTable) -> pd.DataFrame:
    """Return ratios of waits, and differences of logarithms of slowdowns, which no single window decides."""
    columns = {"log10 of slowdown, difference": Relative(LOG, {"policy": AGENT}, ratio=False)}
    return measure_table(table, columns | {title: Relative(name, {"policy": AGENT}) for title, name in MEASURES.items()})


def picture(table: StudyTable, curve: list[float]) -> Figure:
    figure = Figure(figsize=(9, 3.5), layout="constrained")
    bars, training = figure.subplots(1, 2, width_ratios=(3, 2))
    means: list[Any] = [table.interval("mean_bounded_slowdown", policy=policy) for policy in table.levels("policy")]
    bars.barh(list(table.levels("policy")), [mean.mean for mean in means], xerr=[mean.half for mean in means], color=BLUE)
    bars.invert_yaxis()
    bars.set_xlabel("mean bounded slowdown, unseen jobs; lines: 95 % intervals")
    training.plot(np.exp(curve), marker="o", color=BLUE)
    training.set(xlabel="generation", ylabel="slowdown, geometric mean")
    training.set_ylim(bottom=0)
    return figure
