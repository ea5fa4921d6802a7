r"""What does migration gain when it costs time and only a few tasks can move per slice?

Zhang et al. 2003, section 5.6.  Figure 14: slowdown and wait against Q, the maximum number of tasks migrating per time slice,
for migrations that cost C = 10, 20 and 30 s, on workloads 2 and 5.  Figure 15: loss of capacity, slowdown and wait against
utilization for GS, BGS, MGS and MBGS at C = 10 s and Q = 64, the value with which the paper continues from figure 14.  MPL 5,
slices of 200 s, phi 0.2, free context switches.  Limit None is no limit.

GS and BGS ignore C and Q: they are the case without migration, which the paper calls Q = 0.  MGS and MBGS with Q = 0 differ
from them: running gangs do not move, but the migration steps still choose the columns of gangs that have not started yet.

Small (about 65 s on two cores): migrations of 10 s raise the highest utilization of GS and of BGS.  Mean slowdowns need the
full study.

    clustermodel sweep scenarios/papers/zhang_2003/migration.py --out small \
        --set jobs=1000 --set replications=40 --set factors=1.5 --set costs_s=10 --set limits=64

Full (about 25 min on two cores):

    clustermodel sweep scenarios/papers/zhang_2003/migration.py --out full \
        --set factors=1.0,1.2,1.4,1.6,1.8 --set costs_s=10,30
"""

from functools import partial

import pandas as pd
from blue_pacific import blue_pacific_scenario
from load_curves import highest_utilization
from matplotlib.figure import Figure

from clustermodel import RUN_TIME_FACTORS, Checkpointing, Scenario, Study, StudyTable
from clustermodel.experiment.factors import Label
from clustermodel.report.measure_table import published_table

POLICIES = ("gs", "bgs", "mgs", "mbgs")
FIGURE_14_FACTORS = (1.2, 1.5)
"""Workloads 2 and 5."""
FIGURE_15: dict[str, Label] = {"cost_s": 10.0, "limit": 64}
KAPPA, SLOWDOWN, WAIT = MEASURES = ("kappa", "mean_bounded_slowdown", "mean_wait_s")
CLAIMS = {
    "MBGS lowest": ("mbgs", ["gs", "bgs", "mgs"]), "GS highest": (["bgs", "mgs", "mbgs"], "gs"),
    "MGS no more than BGS": ("mgs", "bgs"), "BGS no more than MGS": ("bgs", "mgs"),
}  # fmt: skip
NO_MORE = (
    *((measure, claim) for measure in MEASURES for claim in ("MBGS lowest", "GS highest")),
    (KAPPA, "MGS no more than BGS"), (SLOWDOWN, "BGS no more than MGS"), (WAIT, "BGS no more than MGS"),
)  # fmt: skip
"""What the paper says of figure 15: the first policies have no more of a measure than the others on all workloads."""
PAPER = partial(published_table, __file__)


def study(
    jobs: int = 10_000,
    replications: int = 10,
    factors: tuple[float, ...] = RUN_TIME_FACTORS,
    costs_s: tuple[float, ...] = (10.0, 20.0, 30.0),
    limits: tuple[int, ...] = (0, 16, 32, 64, 128, 256),
) -> Study:
    """Return the study; ``factors`` multiply the run times, ``costs_s`` are C, ``limits`` are Q."""

    def scenario(policy: str, factor: float, cost_s: float, limit: int | None, seed: int) -> Scenario | None:
        of_figure_15 = factor in factors and {"cost_s": cost_s, "limit": limit} == FIGURE_15
        if factor not in FIGURE_14_FACTORS and not of_figure_15:
            return None
        paid_s = 0.0 if limit == 0 else cost_s  # nothing migrates, so C does not matter
        saving = Checkpointing(checkpoint_s=paid_s / 2, restart_s=paid_s / 2, max_tasks_per_slice=limit)
        return blue_pacific_scenario(policy, jobs=jobs, seed=seed, run_time_factor=factor, checkpointing=saving)

    return Study(
        name="migration",
        factors={"policy": POLICIES, "factor": sorted({*factors, *FIGURE_14_FACTORS}), "cost_s": costs_s,
                 "limit": [*limits, None]},
        scenario=scenario,
        replications=replications,
        shown=("utilization", *MEASURES),
        tables={
            "Figure 14, mean slowdown ± 95 % interval by Q": partial(by_limit, measure=SLOWDOWN),
            "Figure 14, mean wait (s) ± 95 % interval by Q": partial(by_limit, measure=WAIT),
            "Figure 15, means at C = 10 s and Q = 64": lambda table: table.at(**FIGURE_15).means(
                "utilization", *MEASURES)[["policy", "factor", "utilization", *MEASURES]],
            "What the paper concludes from figure 15": conclusions,
        },
        figures={
            "Figure 15": lambda table: table.at(**FIGURE_15).plot.curves(
                x="utilization", at="factor", y=MEASURES, log=MEASURES[1:]),
            "Figure 14": picture_14,
        },
    )  # fmt: skip


def by_limit(table: StudyTable, measure: str) -> pd.DataFrame:
    here, parts = table.at(factor=FIGURE_14_FACTORS), []
    for without, policy in (("gs", "mgs"), ("bgs", "mbgs")):
        migrating = here.at(policy=policy).pivot(measure, columns="limit").reset_index()
        point = {"policy": without, "cost_s": here.levels("cost_s")[0], "limit": None}
        none = [here.at(factor=factor, **point).interval(measure) for factor in migrating["factor"]]
        migrating.insert(0, "policy", policy)
        migrating.insert(3, "no migration", none)
        parts.append(migrating)
    limits = {limit: "no limit" if limit is None else f"Q = {limit:.0f}" for limit in here.levels("limit")}
    return pd.concat(parts).rename(columns=limits)


def conclusions(table: StudyTable) -> pd.DataFrame:
    here = table.at(**FIGURE_15)
    rows: list[list[object]] = []
    means = {measure: here.frame.pivot_table(measure, "factor", "policy", sort=False) for measure in MEASURES}
    for measure, claim in NO_MORE:
        lower, higher = (pd.DataFrame(means[measure][policies]) for policies in CLAIMS[claim])
        holds = lower.max(axis=1) <= higher.min(axis=1)
        rows.append([measure, claim, "all workloads", f"{holds.sum()} of {len(holds)} workloads"])
    for measure, policy, other, paper in PAPER("figure 15, ratios").reset_index().to_numpy().tolist():
        ratios = means[measure][policy] / means[measure][other].replace(0, float("nan"))
        rows.append([measure, f"{policy} / {other}".upper(), paper, ", ".join(f"{one:.2f}" for one in ratios)])
    for policy, paper in PAPER("figure 15, highest").reset_index().to_numpy().tolist():
        rows.append(["utilization", f"highest, {policy.upper()}", paper, highest_utilization(here, "factor", policy=policy)[1]])
    return pd.DataFrame(rows, columns=["measure", "claim", "paper", "ours"])


def picture_14(table: StudyTable) -> Figure:
    frame = table.at(factor=FIGURE_14_FACTORS).frame
    without = frame["policy"].isin(["gs", "bgs"])
    frame = frame[~without | (frame["cost_s"] == frame["cost_s"].min())]
    strategy = frame["policy"].where(without, frame["policy"] + ", C = " + frame["cost_s"].map("{:.0f} s".format))
    limit = frame["limit"].fillna(320)  # no limit: all nodes of the machine
    drawn = frame.assign(strategy=strategy, workload="run times x " + frame["factor"].astype(str), Q=limit)
    own = StudyTable(drawn, table.factors, table.name).plot
    return own.curves(x="Q", y=MEASURES[1:], by="strategy", panels="workload", log=True, bands=False)
