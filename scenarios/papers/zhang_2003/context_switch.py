r"""Up to which utilization is gang scheduling worth its context switches?

Zhang et al. 2003, section 5.3, figures 9, 10 and 12: slowdown, wait and loss of capacity of BF, and of GS and BGS with MPL 2, 3
and 5, against utilization, with context switches of 0, 1, 2 and 5 % of a slice of 200 s; phi 0.2.  Also the utilization at
which BF overtakes BGS, where an adaptive scheduler would switch.

A context switch is charged as in the paper's eq. (3): every occupied node pays in every slice (``charge="every-slice"``), even
if the next slice runs the same gang.  In the strategy "BGS-5, on change" a node pays only when it changes from one task to
another (``charge="on-change"``, the package's default).

Small (35 s on two cores): at factor 1.0, BGS-5 has lower slowdowns than BF even if switches take 5 % of a slice.  The
utilization at which BF overtakes needs the full study.

    clustermodel sweep scenarios/papers/zhang_2003/context_switch.py --out small \
        --set jobs=1000 --set replications=12 --set factors=1.0,1.6 --set switches=0,0.05 --set levels=2,5

Full (about 28 min on two cores):

    clustermodel sweep scenarios/papers/zhang_2003/context_switch.py --out full --set factors=1.0,1.2,1.4,1.6,1.8
"""

from functools import partial
from math import isinf, isnan

import pandas as pd
from blue_pacific import blue_pacific_scenario
from load_curves import highest_utilization, overtaking, utilization_at
from matplotlib.figure import Figure

from clustermodel import RUN_TIME_FACTORS, ContextSwitch, Scenario, Study, StudyTable, curves
from clustermodel.report.measure_table import published_table, with_published

ACCEPTABLE = 20.0
"""Slowdown (section 5.3)."""
PAPER = partial(published_table, __file__)


def study(
    jobs: int = 10_000,
    replications: int = 10,
    factors: tuple[float, ...] = RUN_TIME_FACTORS,
    switches: tuple[float, ...] = (0.0, 0.01, 0.02, 0.05),
    levels: tuple[int, ...] = (2, 3, 5),
) -> Study:
    """Return the study; ``factors`` multiply the run times, ``levels`` are multiprogramming levels."""
    gangs = {f"{name.upper()}-{level}": f"{name}:mpl={level}" for name in ("gs", "bgs") for level in levels}

    def scenario(factor: float, switch: float, strategy: str, seed: int) -> Scenario | None:
        on_change = strategy.endswith("on change")
        if (strategy == "BF" and switch) or (on_change and switch < 0.02):
            return None
        policy = "bf" if strategy == "BF" else "bgs:mpl=5" if on_change else gangs[strategy]
        context_switch = ContextSwitch(fraction=switch, charge="on-change" if on_change else "every-slice")
        return blue_pacific_scenario(policy, jobs=jobs, seed=seed, run_time_factor=factor, context_switch=context_switch)

    return Study(
        name="context switch",
        factors={"factor": factors, "switch": switches, "strategy": ["BF", *gangs, "BGS-5, on change"]},
        scenario=scenario,
        replications=replications,
        shown=("utilization", "kappa", "mean_bounded_slowdown", "mean_wait_s"),
        tables={
            "Figure 9, mean slowdown ± 95 % interval, by factor of run times": lambda table: table.pivot(
                "mean_bounded_slowdown", columns="factor"
            ),
            f"Utilization at a slowdown of {ACCEPTABLE:.0f}, and the highest": limits,
            "Utilization at which BF overtakes, by slowdown": critical,
        },
        figures={"Switches charged in every slice, as in eq. (3)": picture},
    )


def limits(table: StudyTable) -> pd.DataFrame:
    rows = []
    for point in table.points(["switch", "strategy"]):
        here = table.at(**point)
        reached = utilization_at(here, "mean_bounded_slowdown", ACCEPTABLE, "factor")
        shown = "slower already" if isnan(reached) else "not reached" if isinf(reached) else f"{reached:.3f}"
        rows.append({**point, "slowdown 20": shown, "highest": highest_utilization(here, "factor")[1]})
    found = with_published(pd.DataFrame(rows).set_index(["switch", "strategy"]), PAPER("section 5.3, limits"))
    return found.rename(columns={"paper, highest": "paper, saturation"}).astype(object).fillna("").reset_index()


def critical(table: StudyTable) -> pd.DataFrame:
    rows, paper = [], PAPER("section 5.3, critical")["paper"]
    for point in table.points(["switch", "strategy"]):
        if str(point["strategy"]).startswith("BGS-5"):
            found = overtaking(table, "mean_bounded_slowdown", "factor", {"strategy": "BF"}, point)
            published = paper.get((point["switch"], point["strategy"]), "")
            rows.append({**point, "paper": published, "BF overtakes at": "none" if isnan(found) else f"{found:.3f}"})
    return pd.DataFrame(rows)


def picture(table: StudyTable) -> Figure:
    measures = ["mean_bounded_slowdown", "mean_wait_s", "kappa"]
    is_bf = table.frame["strategy"] == "BF"
    everywhere = [table.frame[is_bf].assign(switch=switch) for switch in table.levels("switch")]  # BF never switches
    frame = pd.concat([*everywhere, table.frame[~is_bf]])
    frame = frame.assign(switch=[f"switches of {switch:.0%}" for switch in frame["switch"]])
    bands = ("BF", "GS-5", "BGS-5")
    return curves(
        frame, x="utilization", at="factor", y=measures, by="strategy", panels="switch", log=measures[:2], bands=bands
    )
