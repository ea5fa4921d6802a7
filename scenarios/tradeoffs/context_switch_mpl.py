"""How many gangs should share a node, and how expensive can a context switch be before backfilling alone is better?

A machine of 320 nodes with slices of 200 s, and the workload of Zhang et al. 2003 at 1.5 times its run times.  BGS with MPL 2
to 5 against BF, which shares no nodes, for context switches of 0 to 10 % of a slice.  A node pays for a switch when it changes
from one task to another (``charge="on-change"``).

    clustermodel sweep scenarios/tradeoffs/context_switch_mpl.py --out results
"""

import numpy as np
import pandas as pd

from clustermodel import ContextSwitch, Machine, Scenario, Study, StudyTable, TimeSlicing, load_model

SLOWDOWN, RESPONSE, SWITCHES = "mean_bounded_slowdown", "mean_response_s", "context_switch_share"
LEVELS = (2, 3, 4, 5)
LABELS = {"switch": "cost of a context switch, share of the slice", "bf": "backfilling"}
LABELS |= {f"bgs:mpl={level}": f"MPL {level}" for level in LEVELS}


def study(jobs: int = 3_000, replications: int = 10, run_time_factor: float = 1.5) -> Study:
    def scenario(switch: float, policy: str, seed: int) -> Scenario:
        slices, cost = TimeSlicing(quantum_s=200, mpl=5), ContextSwitch(fraction=switch)
        machine = Machine(nodes=320, time_slicing=slices, context_switch=cost)
        workload = load_model("blue-pacific").generate(jobs=jobs, seed=seed, run_time_factor=run_time_factor)
        return Scenario(machine=machine, workload=workload, policy=policy, seed=seed)

    return Study(
        name="context switch x MPL",
        factors={"switch": [0.0, 0.01, 0.02, 0.05, 0.1], "policy": ["bf", *(f"bgs:mpl={level}" for level in LEVELS)]},
        scenario=scenario,
        replications=replications,
        shown=(RESPONSE, SLOWDOWN, "mean_wait_s", "utilization", SWITCHES, "idle_waiting_share"),
        tables={
            "Mean bounded slowdown": lambda table: table.pivot(SLOWDOWN, columns="switch"),
            "Ratio of mean response to that of BF, paired": lambda table: table.differences(
                RESPONSE, "policy", "bf", ratio=True
            ),
            "Lowest slowdown at each cost": lambda table: table.lowest(SLOWDOWN),
            "Cost at which BF has the lower slowdown, interpolated, share of the slice": overtaken,
        },
        figures={
            "Slowdown and response relative to backfilling": lambda table: table.plot.ratios(
                x="switch", y=[SLOWDOWN, RESPONSE], baseline="bf", labels=LABELS
            )
        },
    )


def overtaken(table: StudyTable) -> pd.DataFrame:
    """Return the costs at which the paired ratio of slowdowns to BF, and the ends of its interval, reach 1."""
    ratios, rows = table.differences(SLOWDOWN, "policy", "bf", ratio=True), []
    for policy, own in ratios.groupby("policy", sort=False):
        at, low, high = (reached(own["switch"], own[name]) for name in ("ratio", "high", "low"))
        rows.append({"policy": policy, "cost": at, "significant below": low, "and above": high})
    return pd.DataFrame(rows)


def reached(costs: pd.Series, ratios: pd.Series) -> str:
    """Return the cost at which a ratio first reaches 1, interpolated."""
    above = np.flatnonzero(ratios >= 1)
    if not above.size or not above[0]:
        return "beyond the range" if not above.size else "at no cost"
    place = slice(above[0] - 1, above[0] + 1)
    return f"{np.interp(1, ratios.iloc[place], costs.iloc[place]):.3f}"
