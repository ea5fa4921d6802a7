"""How expensive can a resize be on KTH-SP2 if all jobs can change their size while they run?

A replication is a period of four weeks, the next one the four weeks after it: the log has twelve.  All jobs are malleable,
from a quarter of the nodes that they ask for to four times as many, with Downey's speedup (sigma 1, average parallelism: the
nodes that they ask for).  A resize takes 0 to 1,800 s.  Three policies that resize gangs against EASY, which does not; they
are told the speedup and what a resize costs, and let a gang grow only if it is then expected to end earlier.  Some periods
are much busier than others: policies are compared by logarithms, period by period.

    clustermodel sweep scenarios/tradeoffs/resizing/cost.py --out results
"""

from math import log10
from pathlib import Path

from malleable_weeks import NODES, POLICIES, SPEEDUP, TRACE, log10_response, malleable_weeks

from clustermodel import Machine, Scenario, Study
from clustermodel.report.measure_table import Relative, Scaled, measure_table

MEASURES: dict[str, str | Scaled | Relative] = {
    "mean response (s)": "mean_response_s",
    "log10 response - EASY": Relative("log10_response", {"policy": "easy"}, ratio=False),
    "slowdown": "mean_bounded_slowdown",
    "log10 slowdown - EASY": Relative("log10_slowdown", {"policy": "easy"}, ratio=False),
    "utilization": "utilization",
    "resizes": "resizes",
    "resize share": "resize_share",
}
COLUMNS = ["log10_response", "log10_slowdown"]
LABELS = {
    "cost_s": "cost of a resize (s)",
    "log10_response": "log10 of the mean response time",
    "log10_slowdown": "log10 of the mean bounded slowdown",
    "easy": "EASY",
}


def study(trace: Path = TRACE, weeks: int = 4, replications: int = 12) -> Study:
    """Return the study; ``trace`` is the file of KTH-SP2."""

    def scenario(cost_s: float, policy: str, seed: int) -> Scenario:
        machine = Machine(nodes=NODES, resize_s=cost_s)
        return Scenario(
            machine=machine, workload=malleable_weeks(trace, weeks, seed), policy=policy, speedup=SPEEDUP, seed=seed
        )

    return Study(
        name="cost of a resize",
        factors={"cost_s": [0, 10, 60, 300, 1800], "policy": ["easy", *POLICIES]},
        scenario=scenario,
        measures={
            "log10_response": log10_response,
            "log10_slowdown": lambda result: log10(result.summary().mean_bounded_slowdown),
        },
        replications=replications,
        shown=(
            "mean_response_s",
            "log10_response",
            "mean_bounded_slowdown",
            "log10_slowdown",
            "utilization",
            "resizes",
            "resize_share",
        ),
        tables={"Means ± 95 % interval": lambda table: measure_table(table, MEASURES)},
        figures={
            "Response and slowdown, difference from EASY": lambda table: table.plot.differences(
                x="cost_s", y=COLUMNS, baseline="easy", labels=LABELS
            )
        },
    )
