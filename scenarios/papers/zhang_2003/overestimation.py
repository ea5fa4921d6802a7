"""Does it matter how far users overestimate run times?

Zhang et al. 2003, sections 3 and 5.2, figures 5, 6 and 8: slowdown and wait against utilization for several phi, the fraction
of exact estimates, under BF (figure 5) and under BGS with MPL 5 (figure 8); and under BF with phi = 0.2 the wait of all jobs,
of the worst and of the best estimators (figure 6).  A job is in class i if its run time is more than 10 i and at most
10 (i + 1) percent of its estimate.

Every phi schedules the same jobs.  Which values of phi the paper has drawn is not in its text; ours are 0.2, 0.4, ... 1.0.

    clustermodel sweep scenarios/papers/zhang_2003/overestimation.py --out results --set jobs=1000 --set phis=0.2,0.6,1.0
"""

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from clustermodel import Machine, Result, Scenario, Study, StudyTable, TimeSlicing, curves, load_model

POLICIES = {"bf": "Figure 5, BF", "bgs": "Figure 8, BGS"}
CHOSEN_PHI = 0.2
CLASSES = range(10)
MEANS = {"mean_bounded_slowdown": "mean slowdown", "mean_wait_s": "mean wait (s)"}


def study(
    jobs: int = 10_000,
    replications: int = 10,
    factors: tuple[float, ...] = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8),
    phis: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8, 1.0),
) -> Study:
    """Return the study; ``factors`` multiply the run times, ``phis`` are fractions of exact estimates."""

    def scenario(policy: str, phi: float, factor: float, seed: int) -> Scenario:
        return Scenario(
            machine=Machine(nodes=320, time_slicing=TimeSlicing(quantum_s=200, mpl=5)),
            workload=load_model("blue-pacific").generate(jobs=jobs, seed=seed, run_time_factor=factor, phi=phi),
            policy=policy,
            seed=seed,
        )

    tables = {
        f"{title}, {shown} ± 95 % interval": partial(by_phi, policy=policy, measure=name)
        for policy, title in POLICIES.items()
        for name, shown in MEANS.items()
    }
    return Study(
        name="overestimation",
        text=__doc__ or "",
        factors={"policy": list(POLICIES), "phi": phis, "factor": factors},
        scenario=scenario,
        replications=replications,
        measures={
            **{f"jobs_{one}": partial(jobs_of, number=one) for one in CLASSES},
            **{f"wait_s_{one}": partial(mean_wait, number=one) for one in CLASSES},
        },
        shown=("utilization", "kappa", *MEANS),
        tables={**tables, "Figure 6, BF, phi = 0.2, mean wait (s) by class of estimate": by_class_of_estimate},
        figures={"Figures 5 and 8": picture_of_phi, "Figure 6, BF, phi = 0.2": picture_of_classes},
    )


def of_class(result: Result, number: int) -> NDArray[np.bool_]:
    used = (result.jobs["run_s"] / result.jobs["estimate_s"]).to_numpy()
    chosen: NDArray[np.bool_] = np.clip(np.ceil(used * 10) - 1, 0, 9) == number
    return chosen


def jobs_of(result: Result, number: int) -> int:
    return int(of_class(result, number).sum())


def mean_wait(result: Result, number: int) -> float:
    members = of_class(result, number)
    return float(result.jobs["wait_s"].to_numpy()[members].mean()) if members.any() else 0.0


def by_phi(table: StudyTable, policy: str, measure: str) -> pd.DataFrame:
    here = table.at(policy=policy)
    differences = [
        str(here.at(factor=factor).difference(measure, {"phi": 1.0}, {"phi": CHOSEN_PHI})) for factor in here.levels("factor")
    ]
    return here.pivot(measure, columns="phi").add_prefix("phi = ").assign(**{"phi 1 - phi 0.2": differences})


def by_class_of_estimate(table: StudyTable) -> pd.DataFrame:
    here = table.at(policy="bf", phi=CHOSEN_PHI)
    rows = []
    for factor in here.levels("factor"):
        names = {"all jobs": "mean_wait_s", "class 0, worst": "wait_s_0", "class 9, best": "wait_s_9"}
        rows.append({"factor": factor, **{who: str(here.interval(name, factor=factor)) for who, name in names.items()}})
    return pd.DataFrame(rows)


def picture_of_phi(table: StudyTable) -> Figure:
    frame = table.frame.assign(policy=table.frame["policy"].str.upper())
    return curves(frame, x="utilization", at="factor", y=list(MEANS), by="phi", panels="policy", log=True, bands=("0.2", "1.0"))


def picture_of_classes(table: StudyTable) -> Figure:
    frame = table.at(policy="bf", phi=CHOSEN_PHI).frame
    who = {"class 0, worst estimates": "wait_s_0", "all jobs": "mean_wait_s", "class 9, best estimates": "wait_s_9"}
    parts = [frame.assign(estimators=label, mean_wait_s=frame[name]) for label, name in who.items()]
    return curves(pd.concat(parts), x="utilization", at="factor", y="mean_wait_s", by="estimators", log=True)
