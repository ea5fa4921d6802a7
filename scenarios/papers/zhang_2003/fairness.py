r"""How fairly are small and large jobs served, and does a higher multiprogramming level even out slowdowns?

Zhang et al. 2003, section 2.3, evaluate fairness by mean and standard deviation of slowdown and wait for small jobs, large jobs
(more than 32 nodes) and all jobs; section 5.3 says that the improvement of BGS over GS and BF, and with the multiprogramming
level (MPL), "also applies most of the time for the standard deviation".  BF, and GS and BGS with MPL 2, 3 and 5, under both
calibrations of the jobs; free context switches, phi 0.2.  A last table compares the jobs themselves.

Small (15 s on two cores): BGS-5 lowers mean and deviation of the slowdowns of small and of large jobs compared with BF, and a
higher level those of large jobs.

    clustermodel sweep scenarios/papers/zhang_2003/fairness.py --out small \
        --set jobs=1000 --set replications=12 --set factors=1.4 --set models=blue-pacific-2

Full (55 s on two cores):

    clustermodel sweep scenarios/papers/zhang_2003/fairness.py --out full \
        --set jobs=5000 --set replications=2 --set factors=1.0,1.2,1.4
"""

import numpy as np
import pandas as pd
from blue_pacific import CALIBRATIONS, SIZES, SMALL_UP_TO, blue_pacific_scenario, size_of

from clustermodel import RUN_TIME_FACTORS, Scenario, Study, StudyTable, load_model
from clustermodel.report.measure_table import class_measures, measure_table

LEVELS = (2, 3, 5)
STRATEGIES = {"BF": "bf", **{f"{name}-{level}": f"{name.lower()}:mpl={level}" for name in ("GS", "BGS") for level in LEVELS}}
MEASURES = {"bounded_slowdown": "slowdown", "wait_s": "wait"}
CLAIMS = (
    *((f"BGS-{level}", [f"GS-{level}"]) for level in LEVELS),
    ("BGS-5", ["BF"]),
    ("BGS-3", ["BGS-2"]),
    ("BGS-5", ["BGS-3"]),
)
"""Which strategy has less than which others (section 5.3)."""
MEDIANS = (0, 5, 8)
"""Workloads of which the median run time is shown."""


def study(
    jobs: int = 10_000,
    replications: int = 10,
    factors: tuple[float, ...] = (1.0, 1.2, 1.4, 1.6),
    models: tuple[str, ...] = tuple(CALIBRATIONS),
) -> Study:
    """Return the study; ``factors`` multiply the run times of the ``models``."""

    def scenario(model: str, strategy: str, factor: float, seed: int) -> Scenario:
        policy = STRATEGIES[strategy]
        return blue_pacific_scenario(policy, jobs=jobs, seed=seed, run_time_factor=factor, model=model)

    kinds = {f"{kind}_{name}_{{}}": f"{kind}_{name}" for kind in ("mean", "std") for name in MEASURES}
    of_all = class_measures(lambda result: np.full(len(result.jobs), "all"), ["all"], kinds)
    return Study(
        name="fairness",
        factors={"model": models, "strategy": list(STRATEGIES), "factor": factors},
        scenario=scenario,
        replications=replications,
        measures={**of_all, **class_measures(size_of, SIZES, kinds)},
        shown=("utilization", "mean_bounded_slowdown", "mean_wait_s"),
        tables={
            "Section 5.3, in how many workloads a strategy has less": claims,
            "Section 2.3, workload 4, slowdowns of small and of large jobs": lambda table: by_size(table, "bounded_slowdown"),
            "Section 2.3, workload 4, waits (s) of small and of large jobs": lambda table: by_size(table, "wait_s"),
            "The jobs of the two calibrations": lambda table: the_jobs(table, jobs),
        },
    )


def claims(table: StudyTable) -> pd.DataFrame:
    rows = []
    for model in table.levels("model"):
        for less, others in CLAIMS:
            row: dict[str, object] = {"model": model, "strategy": less, "less than": ", ".join(others)}
            for kind in ("mean", "std"):
                for name, shown in MEASURES.items():
                    row[f"{kind} of {shown}"] = holds(table.at(model=model), f"{kind}_{name}_all", less, others)
            rows.append(row)
    return pd.DataFrame(rows)


def holds(table: StudyTable, measure: str, less: str, others: list[str]) -> str:
    """Return in how many workloads a strategy has less of a measure, on average, than each of the others."""
    means = table.frame.pivot_table(measure, "factor", "strategy")
    return f"{(means[less] < means[others].min(axis=1)).sum()} of {len(means)}"


def by_size(table: StudyTable, name: str) -> pd.DataFrame:
    here = table.at(factor=1.4 if 1.4 in table.levels("factor") else table.levels("factor")[-1])
    kinds = {"mean": "mean", "deviation": "std"}
    columns = {f"{shown}, {size}": f"{kind}_{name}_{size}" for size in SIZES for shown, kind in kinds.items()}
    return measure_table(here, columns, by=["model", "strategy"])


def the_jobs(table: StudyTable, jobs: int) -> pd.DataFrame:
    """Return facts of ten workloads of each model, without a simulation."""
    rows = []
    for name in table.levels("model"):
        drawn = [load_model(str(name)).generate(jobs=jobs, seed=seed) for seed in range(1, 11)]
        runs, nodes = [one.seconds("run") for one in drawn], [one.column("nodes") for one in drawn]
        row: dict[str, object] = {"model": name}
        for number in MEDIANS:
            factor = RUN_TIME_FACTORS[number]
            row[f"median run time, workload {number}"] = round(float(np.mean([np.median(run) for run in runs])) * factor)
        row["CV of run times"] = round(float(np.mean([run.std() / run.mean() for run in runs])), 2)
        inverse = [run.mean() * (1 / np.maximum(run, 10)).mean() for run in runs]
        row["E[t] E[1 / max(t, 10 s)]"] = round(float(np.mean(inverse)), 1)
        large = [(run * size)[size > SMALL_UP_TO].sum() / (run * size).sum() for run, size in zip(runs, nodes, strict=True)]
        row["work of large jobs"] = f"{np.mean(large):.1%}"
        rows.append(row)
    return pd.DataFrame(rows)
