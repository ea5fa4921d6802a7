r"""Is switching between BGS and BF at the critical utilization as good as the better of the two?

Zhang et al. 2003, section 5.3: with context switches of 5 % of a slice, BGS-5 has lower slowdowns than BF up to a utilization
of 0.83; an adaptive scheduler, "beyond the scope of this paper", would use BGS below and BF above.  The policy ``adaptive`` is
such a scheduler; here with several critical utilizations, compared with BGS-5 and BF on the same jobs.  MPL 5, slices of 200 s,
phi 0.2, switches of 5 % charged in every slice, jobs of the second calibration.

Small (35 s on two cores): BGS-5 has lower slowdowns than BF at factor 1.2 and not at 1.8, where the adaptive policy is slower
than BF.

    clustermodel sweep scenarios/papers/zhang_2003/adaptive.py --out small \
        --set jobs=3000 --set replications=8 --set factors=1.2,1.8 --set thresholds=0.83

Full (about 2 min on two cores):

    clustermodel sweep scenarios/papers/zhang_2003/adaptive.py --out full \
        --set replications=2 --set factors=1.0,1.2,1.4,1.6,1.8
"""

from math import isnan

import pandas as pd
from blue_pacific import blue_pacific_scenario
from load_curves import highest_utilization, overtaking
from matplotlib.figure import Figure

from clustermodel import RUN_TIME_FACTORS, ContextSwitch, Scenario, Study, StudyTable

SLOWDOWN, WAIT = "mean_bounded_slowdown", "mean_wait_s"
PARENTS = {"BF": "bf", "BGS-5": "bgs"}


def study(
    jobs: int = 10_000,
    replications: int = 10,
    factors: tuple[float, ...] = RUN_TIME_FACTORS,
    thresholds: tuple[float, ...] = (0.73, 0.83, 0.93),
    switch: float = 0.05,
    model: str = "blue-pacific-2",
) -> Study:
    """Return the study; ``thresholds`` are critical utilizations, ``switch`` is a share of a slice."""
    strategies = PARENTS | {f"adaptive {threshold:g}": f"adaptive:threshold={threshold}" for threshold in thresholds}

    def scenario(strategy: str, factor: float, seed: int) -> Scenario:
        cost = ContextSwitch(fraction=switch, charge="every-slice") if strategy != "BF" else None
        policy = strategies[strategy]
        return blue_pacific_scenario(policy, jobs=jobs, seed=seed, run_time_factor=factor, context_switch=cost, model=model)

    return Study(
        name="adaptive",
        factors={"strategy": list(strategies), "factor": factors},
        scenario=scenario,
        replications=replications,
        shown=("utilization", SLOWDOWN, WAIT, "context_switch_share"),
        tables={
            "Mean slowdown ± 95 % interval": lambda table: table.pivot(SLOWDOWN, columns="strategy"),
            "Mean slowdown relative to the better parent": against_parents,
            "Critical and highest utilizations": critical,
        },
        figures={"Adaptive scheduling and its parents": picture},
    )


def against_parents(table: StudyTable) -> pd.DataFrame:
    rows = []
    for factor in table.levels("factor"):
        here = table.at(factor=factor)
        means = {name: here.interval(SLOWDOWN, strategy=name).mean for name in PARENTS}
        better = min(means, key=means.__getitem__)
        row: dict[str, object] = {"factor": factor, "utilization, BF": here.interval("utilization", strategy="BF")}
        row["better parent"] = better
        for name in table.levels("strategy"):
            if name not in PARENTS:
                row[str(name)] = here.difference(SLOWDOWN, {"strategy": name}, {"strategy": better}, ratio=True)
        rows.append(row)
    return pd.DataFrame(rows)


def critical(table: StudyTable) -> pd.DataFrame:
    rows = []
    for name in table.levels("strategy"):
        found = overtaking(table, SLOWDOWN, "factor", {"strategy": "BF"}, {"strategy": name})
        overtakes = "" if name == "BF" else "none" if isnan(found) else f"{found:.3f}"
        highest = highest_utilization(table, "factor", strategy=name)[1]
        rows.append({"strategy": name, "BF overtakes at": overtakes, "highest utilization": highest})
    return pd.DataFrame(rows)


def picture(table: StudyTable) -> Figure:
    return table.plot.curves(x="utilization", at="factor", y=[SLOWDOWN, WAIT], by="strategy", log=True)
