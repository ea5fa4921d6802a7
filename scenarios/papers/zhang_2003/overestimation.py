r"""Does it matter how far users overestimate run times?

Zhang et al. 2003, sections 3 and 5.2, figures 5, 6 and 8: slowdown and wait against utilization for several phi, the fraction
of exact estimates, under BF (figure 5) and under BGS with MPL 5 (figure 8); and under BF with phi = 0.2 the wait of all jobs,
of the worst and of the best estimators (figure 6).  A job is in class i if its run time is more than 10 i and at most 10 (i +
1) percent of its estimate.

Every phi schedules the same jobs.  The paper's text does not say which values of phi its figures show; ours are 0.2, 0.4, ...
1.0.

Small (15 s on two cores): under BF, the jobs with the worst estimates wait almost twice as long as those with the best; the
effect of phi needs the full study.

    clustermodel sweep scenarios/papers/zhang_2003/overestimation.py --out small \
        --set jobs=1000 --set replications=12 --set factors=1.4 --set phis=0.2,1.0

Full (about 8 min on two cores):

    clustermodel sweep scenarios/papers/zhang_2003/overestimation.py --out full --set factors=1.0,1.2,1.4,1.6,1.8
"""

from functools import partial

import numpy as np
import pandas as pd
from blue_pacific import blue_pacific_scenario
from matplotlib.figure import Figure

from clustermodel import RUN_TIME_FACTORS, Result, Scenario, Study, StudyTable, curves
from clustermodel.arrays import FloatArray
from clustermodel.report.measure_table import by_class, class_measures, measure_table

POLICIES = {"bf": "Figure 5, BF", "bgs": "Figure 8, BGS"}
CHOSEN_PHI = 0.2
WAITS = {"class 0, worst estimates": "wait_s_0", "all jobs": "mean_wait_s", "class 9, best estimates": "wait_s_9"}
BY_CLASS = {"all jobs": "mean_wait_s", "class 0, worst": "wait_s_0", "class 9, best": "wait_s_9"}
MEANS = {"mean_bounded_slowdown": "mean slowdown", "mean_wait_s": "mean wait (s)"}


def study(
    jobs: int = 10_000,
    replications: int = 10,
    factors: tuple[float, ...] = RUN_TIME_FACTORS,
    phis: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8, 1.0),
) -> Study:
    """Return the study; ``factors`` multiply the run times, ``phis`` are fractions of exact estimates."""

    def scenario(policy: str, phi: float, factor: float, seed: int) -> Scenario:
        return blue_pacific_scenario(policy, jobs=jobs, seed=seed, run_time_factor=factor, phi=phi)

    tables = {
        f"{title}, {shown} ± 95 % interval": partial(by_phi, policy=policy, measure=name)
        for policy, title in POLICIES.items()
        for name, shown in MEANS.items()
    }
    return Study(
        name="overestimation",
        factors={"policy": list(POLICIES), "phi": phis, "factor": factors},
        scenario=scenario,
        replications=replications,
        measures=class_measures(classes_of_estimates, range(10), {"jobs_{}": "jobs", "wait_s_{}": "mean_wait_s"}),
        shown=("utilization", "kappa", *MEANS),
        tables={
            **tables,
            "Figure 6, BF, phi = 0.2, mean wait (s) by class of estimate": lambda table: measure_table(
                table.at(policy="bf", phi=CHOSEN_PHI), BY_CLASS, by=["factor"]
            ),
        },
        figures={"Figures 5 and 8": picture_of_phi, "Figure 6, BF, phi = 0.2": picture_of_classes},
    )


def classes_of_estimates(result: Result) -> FloatArray:
    run_s, estimate_s = (result.jobs[name].to_numpy(dtype=np.float64) for name in ("run_s", "estimate_s"))
    number: FloatArray = np.clip(np.ceil(10 * (run_s / estimate_s)) - 1, 0, 9)
    return number


def by_phi(table: StudyTable, policy: str, measure: str) -> pd.DataFrame:
    here = table.at(policy=policy)
    found = here.pivot(measure, columns="phi").add_prefix("phi = ")
    differences = [
        here.at(factor=factor).difference(measure, {"phi": 1.0}, {"phi": CHOSEN_PHI}) for factor in here.levels("factor")
    ]
    found["phi 1 - phi 0.2"] = pd.Series(differences, index=found.index, dtype=object)
    return found


def picture_of_phi(table: StudyTable) -> Figure:
    frame = table.frame.assign(policy=table.frame["policy"].str.upper())
    return curves(frame, x="utilization", at="factor", y=list(MEANS), by="phi", panels="policy", log=True, bands=("0.2", "1"))


def picture_of_classes(table: StudyTable) -> Figure:
    columns = {label: {"mean_wait_s": name} for label, name in WAITS.items()}
    found = by_class(table.at(policy="bf", phi=CHOSEN_PHI), "estimators", columns)
    return found.plot.curves(x="utilization", at="factor", y="mean_wait_s", by="estimators", log=True)
