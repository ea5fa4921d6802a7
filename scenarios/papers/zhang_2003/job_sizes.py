"""How do large and small jobs fare under backfilling, and under backfilling gang scheduling?

Zhang et al. 2003, section 5.3, figure 11: mean slowdown and mean wait of large jobs, of more than 32 nodes, and of small ones,
under BF and under BGS with MPL 5, against utilization; free context switches, phi 0.2.

    clustermodel sweep scenarios/papers/zhang_2003/job_sizes.py --out results --set jobs=1000 --set replications=3
"""

from functools import partial

import pandas as pd
from matplotlib.figure import Figure

from clustermodel import Machine, Result, Scenario, Study, StudyTable, TimeSlicing, curves, load_model

SIZES = ("small", "large")
MEANS = {"mean_bounded_slowdown": "bounded_slowdown", "mean_wait_s": "wait_s"}
"""Columns of the table, and the metrics of the classes of jobs."""


def study(
    jobs: int = 10_000,
    replications: int = 10,
    factors: tuple[float, ...] = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8),
) -> Study:
    """Return the study; ``factors`` multiply the run times."""

    def scenario(policy: str, factor: float, seed: int) -> Scenario:
        return Scenario(
            machine=Machine(nodes=320, time_slicing=TimeSlicing(quantum_s=200, mpl=5)),
            workload=load_model("blue-pacific").generate(jobs=jobs, seed=seed, run_time_factor=factor, phi=0.2),
            policy=policy,
            seed=seed,
        )

    def mean(result: Result, size: str, metric: str) -> float:
        return float(result.by_class()["mean"][size, metric])

    return Study(
        name="job sizes",
        text=__doc__ or "",
        factors={"policy": ["bf", "bgs"], "factor": factors},
        scenario=scenario,
        replications=replications,
        measures={
            f"{name}_{size}": partial(mean, size=size, metric=metric) for name, metric in MEANS.items() for size in SIZES
        },
        shown=("utilization", "kappa", *MEANS),
        tables={
            "Figure 11, mean slowdown ± 95 % interval": lambda table: by_class(table).pivot(
                "mean_bounded_slowdown", columns="strategy"
            ),
            "Figure 11, mean wait (s) ± 95 % interval": lambda table: by_class(table).pivot("mean_wait_s", columns="strategy"),
        },
        figures={"Figure 11": picture},
    )


def by_class(table: StudyTable) -> StudyTable:
    """Return the table with a row for each run and size of jobs."""
    frame = table.frame
    parts = [
        frame.assign(strategy=frame["policy"].str.upper() + f", {size}", **{name: frame[f"{name}_{size}"] for name in MEANS})
        for size in SIZES
    ]
    return StudyTable(pd.concat(parts), ["factor", "strategy"], table.name)


def picture(table: StudyTable) -> Figure:
    return curves(by_class(table).frame, x="utilization", at="factor", y=list(MEANS), by="strategy", log=True)
