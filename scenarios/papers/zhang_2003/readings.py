r"""Which reading of Q, and which calibration of the jobs, reproduces the published numbers of migration?

Zhang et al. 2003, section 5.6, figures 14 and 15, at C = 10 s: Q limits the tasks that migrate per slice; the paper does not
say which tasks of a gang count.  Here all of them (``counts="gang"``), those that get another node (``"moved"``), the same
spread over slices (``"spread"``), or no limit; each for both calibrations of the jobs.  Figure 15 has Q = 64; for figure 14,
slowdowns of workload 5 with other Q.  MPL 5, slices of 200 s, phi 0.2, free context switches.

Small (about 75 s on two cores): in workload 5, MGS has lower slowdowns than GS if Q = 64 counts only tasks that move.
Differences between the readings need the full study.

    clustermodel sweep scenarios/papers/zhang_2003/readings.py --out small \
        --set jobs=1000 --set replications=40 --set factors=1.5 --set limits=64 --set models=blue-pacific-2

Full (about 2 min on two cores):

    clustermodel sweep scenarios/papers/zhang_2003/readings.py --out full \
        --set jobs=5000 --set replications=2 --set factors=1.2,1.5
"""

from functools import partial

import pandas as pd
from blue_pacific import CALIBRATIONS, blue_pacific_scenario
from matplotlib.figure import Figure

from clustermodel import Checkpointing, Scenario, Study, StudyTable
from clustermodel.experiment.factors import Label
from clustermodel.machine.checkpoints import COUNTS
from clustermodel.report.measure_table import published_table

COST_S = 10.0
Q, FACTOR_14 = 64, 1.5
"""Of figure 15, and the workload of figure 14: number 5."""
NO_LIMIT = "no limit"
WITHOUT = {"mgs": "gs", "mbgs": "bgs"}
"""Policies without migration by those with."""
KAPPA, SLOWDOWN, WAIT = MEASURES = ("kappa", "mean_bounded_slowdown", "mean_wait_s")
SHOWN = {KAPPA: "loss of capacity", SLOWDOWN: "slowdown", WAIT: "wait"}
NO_MORE = ((KAPPA, "mgs", "bgs"), (SLOWDOWN, "bgs", "mgs"), (WAIT, "bgs", "mgs"))
"""What the paper says of figure 15: on all workloads the first policy has no more of a measure than the second."""
PAPER = partial(published_table, __file__)


def study(
    jobs: int = 10_000,
    replications: int = 10,
    factors: tuple[float, ...] = (1.0, 1.2, 1.5),
    limits: tuple[int, ...] = (16, 64, 128),
    models: tuple[str, ...] = tuple(CALIBRATIONS),
) -> Study:
    """Return the study; ``factors`` multiply the run times of the ``models``, ``limits`` are Q of figure 14."""

    def scenario(model: str, policy: str, counts: str, factor: float, limit: int, seed: int) -> Scenario | None:
        needs_no_limit = policy not in WITHOUT or counts == NO_LIMIT
        if (policy not in WITHOUT and counts != NO_LIMIT) or (limit != Q and (needs_no_limit or factor != FACTOR_14)):
            return None
        saving = Checkpointing(
            checkpoint_s=COST_S / 2,
            restart_s=COST_S / 2,
            max_tasks_per_slice=None if needs_no_limit else limit,
            counts=COUNTS[0] if needs_no_limit else counts,
        )
        return blue_pacific_scenario(policy, jobs=jobs, seed=seed, run_time_factor=factor, checkpointing=saving, model=model)

    return Study(
        name="readings",
        factors={
            "model": models,
            "policy": [*WITHOUT.values(), *WITHOUT],
            "counts": [*COUNTS, NO_LIMIT],
            "factor": sorted({*factors, FACTOR_14}),
            "limit": sorted({*limits, Q}),
        },
        scenario=scenario,
        replications=replications,
        shown=("utilization", *MEASURES),
        tables={
            "Which reading gives which published number": which_gives,
            "Figure 14, slowdown in workload 5 by Q": by_limit,
            "Figure 15, means at Q = 64": figure_15,
        },
        figures={"Figure 15, both calibrations and three readings of Q = 64": picture},
    )  # fmt: skip


def reading(table: StudyTable, model: Label, counts: Label) -> StudyTable:
    here = table.at(model=model, limit=Q)
    migrating = here.frame["policy"].isin(list(WITHOUT))
    chosen = here.frame[~migrating | (here.frame["counts"] == counts)]
    return StudyTable(chosen, ["policy", "factor"], table.name)


def which_gives(table: StudyTable) -> pd.DataFrame:
    rows: dict[tuple[str, str], dict[str, object]] = {}
    for model in table.levels("model"):
        for counts in table.levels("counts"):
            here, column = reading(table, model, counts), f"{model}, {counts}"
            means = {measure: here.frame.pivot_table(measure, "factor", "policy") for measure in MEASURES}
            for measure, lower, higher in NO_MORE:
                held = means[measure][lower] <= means[measure][higher]
                claim = f"{SHOWN[measure]}, {lower.upper()} no more than {higher.upper()}"
                rows.setdefault((claim, "all workloads"), {})[column] = f"{held.sum()} of {len(held)}"
            for measure, policy, other, paper in PAPER("figure 15, ratios").reset_index().to_numpy().tolist():
                ratios = means[measure][policy] / means[measure][other]
                claim = f"{SHOWN[measure]}, {policy.upper()} / {other.upper()}"
                rows.setdefault((claim, paper), {})[column] = f"{ratios.min():.1f} to {ratios.max():.1f}"
            for policy in WITHOUT:
                claim = f"share of the benefit at Q = {Q}, workload 5, {policy.upper()}"
                rows.setdefault((claim, "most"), {})[column] = f"{benefit(table, model, policy, counts):.0%}"
    return pd.DataFrame([{"figures 14 and 15": claim, "paper": paper, **found} for (claim, paper), found in rows.items()])


def benefit(table: StudyTable, model: Label, policy: str, counts: Label) -> float:
    """Return how much of the slowdown that unlimited migration takes away is taken away at Q = 64."""
    at = [
        table.at(model=model, policy=name, counts=count, factor=FACTOR_14, limit=Q).interval(SLOWDOWN).mean
        for name, count in ((WITHOUT[policy], NO_LIMIT), (policy, counts), (policy, NO_LIMIT))
    ]
    return (at[0] - at[1]) / (at[0] - at[2])


def by_limit(table: StudyTable) -> pd.DataFrame:
    rows = []
    for model in table.levels("model"):
        for policy, without in WITHOUT.items():
            here = table.at(model=model, factor=FACTOR_14)
            unlimited = here.at(counts=NO_LIMIT, limit=Q)
            for counts in COUNTS:
                row: dict[str, object] = {"model": model, "policy": policy, "counts": counts}
                row["no migration"] = unlimited.interval(SLOWDOWN, policy=without)
                for limit in sorted(map(int, here.frame["limit"].unique())):
                    row[f"Q = {limit}"] = here.interval(SLOWDOWN, policy=policy, counts=counts, limit=limit)
                rows.append({**row, NO_LIMIT: unlimited.interval(SLOWDOWN, policy=policy)})
    return pd.DataFrame(rows)


def figure_15(table: StudyTable) -> pd.DataFrame:
    by = ["model", "policy", "counts", "factor"]
    return table.at(limit=Q).means("utilization", *MEASURES, by=by)[[*by, "utilization", *MEASURES]]


def picture(table: StudyTable) -> Figure:
    frame = table.at(limit=Q).frame
    strategy = frame["policy"].str.upper() + (", " + frame["counts"]).where(frame["policy"].isin(list(WITHOUT)), "")
    drawn = StudyTable(frame.assign(strategy=strategy), ["model", "strategy", "factor"], table.name).plot
    log = MEASURES[1:]
    return drawn.curves(x="utilization", at="factor", y=MEASURES, by="strategy", panels="model", log=log, bands=False)
