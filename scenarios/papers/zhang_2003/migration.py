"""What does migration gain when it costs time and when few tasks can move in a slice?

Zhang et al. 2003, section 5.6.  Figure 14: slowdown and wait against Q, the most tasks that migrate in a time slice, for
migrations that cost C = 10, 20 and 30 s, on workloads 2 and 5.  Figure 15: loss of capacity, slowdown and wait against
utilization for GS, BGS, MGS and MBGS at C = 10 s and Q = 64, the value with which the paper continues from figure 14.  MPL 5,
slices of 200 s, phi 0.2, free context switches.  Limit None is no limit.

GS and BGS ignore C and Q: they are the case without migration, which the paper calls Q = 0.  MGS and MBGS with Q = 0 are
something else: running gangs stay where they are, but the steps that migrate still choose the columns of gangs that have not
started yet.

    clustermodel sweep scenarios/papers/zhang_2003/migration.py --out results --set jobs=1000 --set replications=3
"""

from functools import partial

import pandas as pd
from matplotlib.figure import Figure

from clustermodel import Checkpointing, Machine, Scenario, Study, StudyTable, TimeSlicing, load_model
from clustermodel.experiment.factors import Label

POLICIES = ("gs", "bgs", "mgs", "mbgs")
FIGURE_14_FACTORS = (1.2, 1.5)
"""Workloads 2 and 5."""
FIGURE_15: dict[str, Label] = {"cost_s": 10.0, "limit": 64}
MEASURES = ("kappa", "mean_bounded_slowdown", "mean_wait_s")


def study(
    jobs: int = 10_000,
    replications: int = 10,
    factors: tuple[float, ...] = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8),
    costs_s: tuple[float, ...] = (10.0, 20.0, 30.0),
    limits: tuple[int, ...] = (0, 16, 32, 64, 128, 256),
) -> Study:
    """Return the study; ``factors`` multiply the run times, ``costs_s`` are C, ``limits`` are Q."""

    def scenario(policy: str, factor: float, cost_s: float, limit: int | None, seed: int) -> Scenario | None:
        of_figure_15 = factor in factors and {"cost_s": cost_s, "limit": limit} == FIGURE_15
        if factor not in FIGURE_14_FACTORS and not of_figure_15:
            return None
        paid_s = 0.0 if limit == 0 else cost_s  # nothing migrates, so C does not matter
        return Scenario(
            machine=Machine(
                nodes=320,
                time_slicing=TimeSlicing(quantum_s=200, mpl=5),
                checkpointing=Checkpointing(checkpoint_s=paid_s / 2, restart_s=paid_s / 2, max_tasks_per_slice=limit),
            ),
            workload=load_model("blue-pacific").generate(jobs=jobs, seed=seed, run_time_factor=factor, phi=0.2),
            policy=policy,
            seed=seed,
        )

    return Study(
        name="migration",
        text=__doc__ or "",
        factors={
            "policy": POLICIES,
            "factor": sorted({*factors, *FIGURE_14_FACTORS}),
            "cost_s": costs_s,
            "limit": [*limits, None],
        },
        scenario=scenario,
        replications=replications,
        shown=("utilization", *MEASURES),
        tables={
            "Figure 14, mean slowdown ± 95 % interval by Q": partial(by_limit, measure="mean_bounded_slowdown"),
            "Figure 14, mean wait (s) ± 95 % interval by Q": partial(by_limit, measure="mean_wait_s"),
            "Figure 15, means at C = 10 s and Q = 64": means_15,
            "What the paper concludes from figure 15": conclusions,
        },
        figures={"Figure 15": picture_15, "Figure 14": picture_14},
    )  # fmt: skip


def figure_14(table: StudyTable) -> StudyTable:
    """Return the points of figure 14: workloads 2 and 5."""
    chosen = table.frame["factor"].isin(FIGURE_14_FACTORS)
    return StudyTable(table.frame[chosen], table.factors, table.name)


def by_limit(table: StudyTable, measure: str) -> pd.DataFrame:
    here, parts = figure_14(table), []
    for without, policy in (("gs", "mgs"), ("bgs", "mbgs")):
        migrating = here.at(policy=policy).pivot(measure, columns="limit").reset_index()
        point = {"policy": without, "cost_s": here.levels("cost_s")[0], "limit": None}
        none = [str(here.at(factor=factor, **point).interval(measure)) for factor in migrating["factor"]]
        migrating.insert(0, "policy", policy)
        migrating.insert(3, without, none)
        parts.append(migrating.rename(columns={without: "no migration"}))
    limits = {limit: "no limit" if limit is None else f"Q = {limit:.0f}" for limit in here.levels("limit")}
    return pd.concat(parts).rename(columns=limits)


def figure_15(table: StudyTable) -> StudyTable:
    """Return the points of figure 15."""
    return table.at(**FIGURE_15)


def means_15(table: StudyTable) -> pd.DataFrame:
    return figure_15(table).means("utilization", *MEASURES)[["policy", "factor", "utilization", *MEASURES]]


def conclusions(table: StudyTable) -> pd.DataFrame:
    here = figure_15(table)
    factors = here.levels("factor")

    def mean(policy: str, factor: Label, measure: str) -> float:
        return here.interval(measure, policy=policy, factor=factor).mean

    def no_more(policies: tuple[str, ...], others: tuple[str, ...], measure: str) -> str:
        lower = [
            all(mean(one, factor, measure) <= mean(other, factor, measure) for one in policies for other in others)
            for factor in factors
        ]
        return f"{sum(lower)} of {len(factors)} workloads"

    def ratios(policy: str, other: str, measure: str) -> str:
        found = [mean(policy, factor, measure) / (mean(other, factor, measure) or float("nan")) for factor in factors]
        return ", ".join(f"{one:.2f}" for one in found)

    rows = []
    for measure in MEASURES:
        rows.append([measure, "MBGS lowest", "all workloads", no_more(("mbgs",), ("gs", "bgs", "mgs"), measure)])
        rows.append([measure, "GS highest", "all workloads", no_more(("bgs", "mgs", "mbgs"), ("gs",), measure)])
    rows.append(["kappa", "MGS no more than BGS", "all workloads", no_more(("mgs",), ("bgs",), "kappa")])
    rows.append(["mean_bounded_slowdown", "BGS no more than MGS", "all workloads", no_more(("bgs",), ("mgs",), MEASURES[1])])
    rows.append(["mean_wait_s", "BGS no more than MGS", "all workloads", no_more(("bgs",), ("mgs",), MEASURES[2])])
    rows.append(["mean_wait_s", "MGS / BGS", "1.5 to 2", ratios("mgs", "bgs", "mean_wait_s")])
    rows.append(["mean_bounded_slowdown", "MGS / BGS", "up to 5 at workload 5", ratios("mgs", "bgs", MEASURES[1])])
    rows.append(["mean_wait_s", "BGS / MBGS", "2 to 3", ratios("bgs", "mbgs", "mean_wait_s")])
    rows.append(["mean_bounded_slowdown", "BGS / MBGS", "1.5 to 2", ratios("bgs", "mbgs", MEASURES[1])])
    for policy, paper in (("gs", ""), ("bgs", "0.96"), ("mgs", "0.98"), ("mbgs", "above MGS")):
        reached = max((here.interval("utilization", policy=policy, factor=one) for one in factors), key=lambda one: one.mean)
        rows.append(["utilization", f"highest, {policy.upper()}", paper, str(reached)])
    return pd.DataFrame(rows, columns=["measure", "claim", "paper", "ours"])


def picture_15(table: StudyTable) -> Figure:
    return figure_15(table).plot.curves(x="utilization", at="factor", y=MEASURES, log=MEASURES[1:])


def picture_14(table: StudyTable) -> Figure:
    frame = figure_14(table).frame
    without = frame["policy"].isin(["gs", "bgs"])
    frame = frame[~without | (frame["cost_s"] == frame["cost_s"].min())]
    strategy = frame["policy"].where(without, frame["policy"] + ", C = " + frame["cost_s"].map("{:.0f} s".format))
    limit = frame["limit"].fillna(320)  # no limit: all nodes of the machine
    drawn = frame.assign(strategy=strategy, workload="run times x " + frame["factor"].astype(str), Q=limit)
    own = StudyTable(drawn, table.factors, table.name).plot
    return own.curves(x="Q", y=MEASURES[1:], by="strategy", panels="workload", log=True, bands=False)
