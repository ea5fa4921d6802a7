r"""Does it matter whether a scheduling event ends the running slice?

Zhang et al. 2003 do not say what an arrival or a completion does to the slice in progress.  ``TimeSlicing(at_events="cut")``
ends the slice and starts the next one with its context switches; ``"keep"`` lets it continue if the running row does not
change.  Both rules on table 1 (section 5.6: free switches), on the highest utilizations of section 5.3 (switches of 2 and 5 %
of a slice of 200 s, charged in every slice), and on workload 5 with other slices, costs of a switch and multiprogramming
levels.

Small (about 50 s on two cores): with slices of 1,000 s and free switches, keeping the running slice raises the slowdown of BGS
by about half.

    clustermodel sweep scenarios/papers/zhang_2003/running_slice.py --out small \
        --set jobs=1000 --set replications=6 --set factors=1.5 --set quanta_s=1000

Full (about 20 min on two cores):

    clustermodel sweep scenarios/papers/zhang_2003/running_slice.py --out full \
        --set replications=3 --set factors=1.0,1.2,1.4,1.5,1.6,1.8
"""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from blue_pacific import MPL, QUANTUM_S, blue_pacific_scenario
from matplotlib.figure import Figure

from clustermodel import RUN_TIME_FACTORS, ContextSwitch, Scenario, Study, StudyTable, TimeSlicing
from clustermodel.machine.time_slicing import AT_EVENTS, AtEvents
from clustermodel.report.measure_table import published_table

CUT, KEEP = AT_EVENTS
SLOWDOWN, UTILIZATION = "mean_bounded_slowdown", "utilization"
POLICIES = ("gs", "bgs", "mgs", "mbgs")
OTHER_LEVELS = ("gs:mpl=3", "bgs:mpl=2", "bgs:mpl=3")
SATURATED, WORKLOAD_5 = 1.8, 1.5
SWITCHES_S = (0.0, 4.0, 10.0)
"""0, 2 and 5 % of a slice of 200 s."""
PUBLISHED_LIMITS = ("gs:mpl=3", "gs", "bgs")
"""Policies with highest utilizations in section 5.3."""
PAPER = partial(published_table, __file__)


def study(
    jobs: int = 10_000,
    replications: int = 10,
    factors: tuple[float, ...] = RUN_TIME_FACTORS,
    quanta_s: tuple[float, ...] = (20.0, 50.0, 1_000.0),
    model: str = "blue-pacific-2",
) -> Study:
    """Return the study; ``factors`` multiply the run times in table 1, ``quanta_s`` are slices beside those of 200 s."""

    def asked(policy: str, factor: float, quantum_s: float, switch_s: float) -> bool:
        in_table_1 = policy in POLICIES and factor in factors and switch_s == 0
        limit = policy in PUBLISHED_LIMITS and factor == SATURATED
        trade_off = policy.startswith("bgs") and factor == WORKLOAD_5
        if quantum_s != QUANTUM_S:
            return policy == "bgs" and factor == WORKLOAD_5 and switch_s <= quantum_s / 2
        return in_table_1 or limit or trade_off

    def scenario(
        policy: str, factor: float, quantum_s: float, switch_s: float, at_events: AtEvents, seed: int
    ) -> Scenario | None:
        if not asked(policy, factor, quantum_s, switch_s):
            return None
        slices = TimeSlicing(quantum_s=quantum_s, mpl=MPL, at_events=at_events)
        switch = ContextSwitch(seconds=switch_s, charge="every-slice")
        setting = partial(blue_pacific_scenario, policy, jobs=jobs, seed=seed, model=model)
        return setting(run_time_factor=factor, time_slicing=slices, context_switch=switch)

    return Study(
        name="running slice",
        factors={
            "policy": [*POLICIES, *OTHER_LEVELS],
            "factor": sorted({*factors, WORKLOAD_5, SATURATED}),
            "quantum_s": sorted({*quanta_s, QUANTUM_S}),
            "switch_s": SWITCHES_S,
            "at_events": AT_EVENTS,
        },
        scenario=scenario,
        replications=replications,
        shown=(UTILIZATION, SLOWDOWN, "mean_wait_s", "context_switch_share"),
        tables={
            "Which rule is nearer to the published numbers": nearer,
            "Table 1, mean slowdown": table_1,
            "Section 5.3, highest utilization": highest,
            "Workload 5, BGS: slices, costs of a switch, MPL": trade_offs,
        },
        figures={"Workload 5, BGS-5 with slices of 20 to 1,000 s": picture},
    )


def both(table: StudyTable, measure: str, **levels: Any) -> dict[str, Any]:
    here = table.at(**levels)
    ratio = here.difference(measure, {"at_events": KEEP}, {"at_events": CUT}, ratio=True)
    return {one: here.interval(measure, at_events=one) for one in AT_EVENTS} | {f"{KEEP} / {CUT}": ratio}


def nearer(table: StudyTable) -> pd.DataFrame:
    """Return in how many cells the mean under each rule is nearer to the paper's number, by the logarithm of their ratio."""
    first, limits = table_1(table), highest(table)
    cells = {f"table 1, {policy}": first[first["policy"] == policy] for policy in POLICIES}
    printed = limits["paper"].astype(str).str.extract(r"([0-9.]+)")[0].astype(float)
    cells["section 5.3, utilization"] = limits.assign(paper=printed)[printed.notna()]
    rows = []
    for numbers, found in cells.items():
        off = {
            rule: [abs(np.log(one.mean / paper)) for one, paper in zip(found[rule], found["paper"], strict=True)]
            for rule in (CUT, KEEP)
        }
        wins = sum(cut < keep for cut, keep in zip(off[CUT], off[KEEP], strict=True))
        rows.append({"numbers": numbers, f"{CUT} is nearer": wins, f"{KEEP} is nearer": len(found) - wins})
    return pd.DataFrame(rows)


def table_1(table: StudyTable) -> pd.DataFrame:
    rows, paper = [], PAPER("table 1")["slowdown"]
    here = table.at(quantum_s=QUANTUM_S, switch_s=0.0)
    for policy in POLICIES:
        for factor in here.at(policy=policy).levels("factor"):
            workload = RUN_TIME_FACTORS.index(float(str(factor)))
            row = {"policy": policy, "workload": workload, "paper": float(paper[policy, workload])}
            rows.append(row | both(here, SLOWDOWN, policy=policy, factor=factor))
    return pd.DataFrame(rows)


def highest(table: StudyTable) -> pd.DataFrame:
    rows, paper = [], PAPER("section 5.3, limits")["highest"]
    here = table.at(quantum_s=QUANTUM_S, factor=SATURATED)
    for policy in PUBLISHED_LIMITS:
        for switch_s in SWITCHES_S:
            name = f"{policy.partition(':')[0].upper()}-{policy.partition('=')[2] or MPL}"
            row = {"strategy": name, "switch": f"{switch_s / QUANTUM_S:.0%}"}
            row["paper"] = paper.get((switch_s / QUANTUM_S, name), "")
            rows.append(row | both(here, UTILIZATION, policy=policy, switch_s=switch_s))
    return pd.DataFrame(rows).fillna("")


def trade_offs(table: StudyTable) -> pd.DataFrame:
    here, rows = table.at(factor=WORKLOAD_5), []
    for point in here.points(["policy", "quantum_s", "switch_s"]):
        if str(point["policy"]).startswith("bgs"):
            level = str(point["policy"]).partition("=")[2] or MPL
            row = {"MPL": level, "slice (s)": point["quantum_s"], "switch (s)": point["switch_s"]}
            rows.append(row | both(here, SLOWDOWN, **point))
    return pd.DataFrame(rows)


def picture(table: StudyTable) -> Figure:
    here = table.at(factor=WORKLOAD_5, policy="bgs")
    switches = [f"switches of {switch:.0f} s" for switch in here.frame["switch_s"]]
    drawn = StudyTable(here.frame.assign(switches=switches), ["quantum_s", "switches", "at_events"], table.name).plot
    measures, labels = [SLOWDOWN, "context_switch_share"], {"quantum_s": "slice (s)", KEEP: "kept", CUT: "a cut slice"}
    given = {"by": "at_events", "baseline": CUT, "panels": "switches", "share_y": True}
    return drawn.ratios(x="quantum_s", y=measures, log_x=True, labels=labels, **given)
