"""What does migration bring when it costs time and when few tasks can move in a slice?

Figures 14 and 15 of 002 (002_8335dd3215a2768d.txt, section 5.6).  Figure 14: slowdown and wait against Q, the most tasks that
migrate in a time slice, for migrations that cost C = 10, 20 and 30 s, on workloads 2 and 5.  Figure 15: loss of capacity,
slowdown and wait against utilization for GS, BGS, MGS and MBGS at C = 10 s and Q = 64, the value with which the paper goes on
from figure 14.  MPL 5, slices of 200 s, phi 0.2, free context switches.

    python scenarios/migration_tradeoff.py                     a small study
    python scenarios/migration_tradeoff.py --full --figure migration_tradeoff.png

The case without migration, which the paper calls Q = 0, is GS and BGS.  MGS and MBGS with Q = 0 are something else: gangs that
run stay where they are, but the steps that migrate still choose the columns of gangs that have not started yet.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from replications import (
    FULL_FACTORS,
    LEAST_WAIT_S,
    NODES,
    QUANTUM_S,
    SMALL_FACTORS,
    Point,
    draw_curve,
    options_of,
    runs_of,
    size_of,
    usual_measures,
    workload_number,
)
from reporting import (
    Grid,
    Runs,
    better,
    label_axes,
    percent,
    report,
    share,
    three_digits,
    use_log_scale,
)

from clustermodel import Checkpointing, Machine, TimeSlicing
from clustermodel.figures.style import policy_colour, policy_styles

POLICIES: Final = ("gs", "bgs", "mgs", "mbgs")
COSTS_S: Final = (10.0, 20.0, 30.0)
"""C, seconds; half of it is the checkpoint, half the restart."""
NO_MIGRATION: Final = "no migration"
NO_LIMIT: Final = "no limit"
LIMITS: Final = (NO_MIGRATION, 0, 16, 32, 64, 128, 256, NO_LIMIT)
"""Q, tasks in a slice."""
FREE: Final = (NO_MIGRATION, 0)
"""Where C does not matter."""
CHOSEN_LIMIT: Final = 64
"""Q of figure 15; 002, section 5.6."""
FIGURE_14_FACTORS: Final = (1.2, 1.5)
"""Workloads 2 and 5."""


def machine(cost_s: float, limit: int | str) -> Machine:
    tasks = limit if isinstance(limit, int) else None
    return Machine(
        nodes=NODES,
        time_slicing=TimeSlicing(quantum_s=QUANTUM_S, mpl=5),
        checkpointing=Checkpointing(checkpoint_s=cost_s / 2, restart_s=cost_s / 2, max_tasks_per_slice=tasks),
    )


def points(options: argparse.Namespace) -> list[Point]:
    limits = LIMITS if options.full else (NO_MIGRATION, 0, CHOSEN_LIMIT, NO_LIMIT)
    costs = COSTS_S if options.full else (10.0, 30.0)
    factors = FULL_FACTORS if options.full else SMALL_FACTORS
    found = [
        Point(
            at={"figure": 15, "policy": policy, "cost_s": COSTS_S[0], "limit": CHOSEN_LIMIT, "factor": factor},
            policy=policy,
            machine=machine(COSTS_S[0], CHOSEN_LIMIT),
            factor=factor,
        )
        for factor in factors
        for policy in POLICIES
    ]
    found += [
        Point(
            at={"figure": 14, "policy": policy, "cost_s": cost_s, "limit": limit, "factor": factor},
            policy=policy.removeprefix("m") if limit == NO_MIGRATION else policy,
            machine=machine(cost_s, limit),
            factor=factor,
        )
        for factor in FIGURE_14_FACTORS
        for policy in ("mgs", "mbgs")
        for limit in limits
        for cost_s in (costs if limit not in FREE else (0.0,))
    ]
    return found


def tables(runs: Runs) -> list[Grid]:
    size = size_of(runs)
    swept, compared = runs.at(figure=14), runs.at(figure=15)
    limits, costs = swept.distinct("limit"), [cost for cost in swept.distinct("cost_s") if cost]
    grids = []
    for measure, name, number in (("slowdown", "mean slowdown", three_digits), ("wait_s", "mean wait (s)", three_digits)):
        rows = []
        for factor in FIGURE_14_FACTORS:
            for policy in ("mbgs", "mgs"):
                for cost_s in costs:
                    cells = [
                        _at_limit(swept, policy, factor, cost_s, limit).interval(measure).shown(number) for limit in limits
                    ]
                    rows.append([f"workload {workload_number(factor)}, {policy.upper()}, C = {cost_s:.0f} s", *cells])
        headings = ["", *(f"Q = {limit}" if isinstance(limit, int) else limit for limit in limits)]
        grids.append(Grid(f"Figure 14, {name} ± 95 % interval by Q, {size}", headings, rows))
    rows = []
    for factor in compared.distinct("factor"):
        row = [f"{workload_number(factor)} (x {factor:.1f})"]
        for policy in POLICIES:
            here = compared.at(factor=factor, policy=policy)
            rho, kappa, slowdown, wait = (here.interval(name).mean for name in ("rho", "kappa", "slowdown", "wait_s"))
            row.append(f"{share(rho)}, {share(kappa)}, {three_digits(slowdown)}, {wait:,.0f}")
        rows.append(row)
    headings = ["workload", *(policy.upper() for policy in POLICIES)]
    grids.append(Grid(f"Figure 15, means of ρ, κ, slowdown, wait (s); C = 10 s, Q = {CHOSEN_LIMIT}, {size}", headings, rows))
    grids.append(Grid(f"What 002 concludes from figures 14 and 15, {size}", ["", "002", "ours"], conclusions(runs)))
    return grids


def _at_limit(swept: Runs, policy: str, factor: float, cost_s: float, limit: int | str) -> Runs:
    return swept.at(policy=policy, factor=factor, cost_s=0.0 if limit in FREE else cost_s, limit=limit)


def conclusions(runs: Runs) -> list[list[str]]:
    """Return what section 5.6 of the paper says about figures 14 and 15, beside ours."""
    swept, compared = runs.at(figure=14), runs.at(figure=15)
    costs = [cost for cost in swept.distinct("cost_s") if cost]
    rows = []
    for factor in FIGURE_14_FACTORS:
        for policy in ("mbgs", "mgs"):
            without, at_64, free = (
                _at_limit(swept, policy, factor, costs[-1], limit) for limit in (NO_MIGRATION, CHOSEN_LIMIT, NO_LIMIT)
            )
            gains = [better(without, limited, "slowdown").shown(percent) for limited in (at_64, free)]
            where = f"workload {workload_number(factor)}, {policy.upper()}, C = {costs[-1]:.0f} s"
            ours = f"{gains[0]} at Q = 64, {gains[1]} without limit"
            rows.append([f"{where}: slowdown better than without migration", "still better; most of it at Q = 64", ours])
    factors = compared.distinct("factor")
    of = {(policy, factor): compared.at(policy=policy, factor=factor) for policy in POLICIES for factor in factors}

    def mean(policy: str, factor: float, measure: str) -> float:
        return of[policy, factor].interval(measure).mean

    def first(policy: str, other: str, measure: str) -> str:
        count = sum(mean(policy, factor, measure) <= mean(other, factor, measure) for factor in factors)
        return f"{count} of {len(factors)} workloads"

    def ratios(policy: str, other: str, measure: str) -> str:
        pairs = [(mean(policy, factor, measure), mean(other, factor, measure)) for factor in shown]
        return ", ".join(three_digits(above / below) if below else "-" for above, below in pairs)

    shown = [factor for factor in (1.0, 1.2, 1.4, 1.5, 1.6, 1.8) if factor in factors]
    numbers = ", ".join(str(workload_number(factor)) for factor in shown)
    for measure, name in (("kappa", "loss of capacity"), ("slowdown", "slowdown"), ("wait_s", "wait")):
        ours = ", ".join(f"{first('mbgs', other, measure)} ({other.upper()})" for other in ("gs", "bgs", "mgs"))
        rows.append([f"{name}: MBGS no more than the others", "all workloads", ours])
        ours = ", ".join(f"{first(other, 'gs', measure)} ({other.upper()})" for other in ("bgs", "mgs", "mbgs"))
        rows.append([f"{name}: the others no more than GS", "all workloads", ours])
    rows.append(["loss of capacity: MGS no more than BGS", "all workloads", first("mgs", "bgs", "kappa")])
    rows.append(["wait: BGS no more than MGS", "all workloads", first("bgs", "mgs", "wait_s")])
    rows.append(["slowdown: BGS no more than MGS", "all workloads", first("bgs", "mgs", "slowdown")])
    rows.append([f"wait, MGS / BGS, workloads {numbers}", "1.5 to 2 throughout", ratios("mgs", "bgs", "wait_s")])
    rows.append([f"slowdown, MGS / BGS, workloads {numbers}", "up to 5 at workload 5", ratios("mgs", "bgs", "slowdown")])
    rows.append([f"wait, BGS / MBGS, workloads {numbers}", "2 to 3", ratios("bgs", "mbgs", "wait_s")])
    rows.append([f"slowdown, BGS / MBGS, workloads {numbers}", "1.5 to 2", ratios("bgs", "mbgs", "slowdown")])
    for policy, paper in (("gs", "-"), ("bgs", "0.96"), ("mgs", "0.98"), ("mbgs", "above MGS")):
        highest = max((of[policy, f].interval("rho") for f in factors), key=lambda one: one.mean)
        rows.append([f"highest utilization, {policy.upper()}", paper, highest.shown(share)])
    return rows


def figure(runs: Runs) -> Figure:
    picture = Figure(figsize=(14, 8.5), layout="constrained")
    above, below = picture.subfigures(2, 1, squeeze=False)[:, 0]
    compared, swept = runs.at(figure=15), runs.at(figure=14)
    measures = (
        ("kappa", "loss of capacity κ", 0.0),
        ("slowdown", "mean slowdown", 1.0),
        ("wait_s", "mean wait (s)", LEAST_WAIT_S),
    )
    panels = above.subplots(1, 3)
    for axes, (measure, name, least) in zip(panels, measures, strict=True):
        for policy in POLICIES:
            here = compared.at(policy=policy)
            draw_curve(axes, here, measure, style=policy_styles([policy])[policy], label=policy.upper(), least=least)
        label_axes(axes, "utilization ρ", name)
        if measure != "kappa":
            use_log_scale(axes)
    panels[0].legend()
    above.suptitle(f"Figure 15: C = 10 s, Q = {CHOSEN_LIMIT}, MPL 5; bands are 95 % intervals, {size_of(runs)}")
    for number, axes in enumerate(below.subplots(1, 4)):
        measure, name, least = measures[1 + number // 2]
        _draw_by_limit(axes, swept.at(factor=FIGURE_14_FACTORS[number % 2]), measure, least)
        label_axes(axes, "Q, tasks in a slice", name)
        axes.set_title(f"workload {workload_number(FIGURE_14_FACTORS[number % 2])}")
    handles, labels = below.axes[0].get_legend_handles_labels()
    below.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    below.suptitle("Figure 14: policy and C against Q")
    return picture


def _draw_by_limit(axes: Axes, swept: Runs, measure: str, least: float) -> None:
    limits, costs = swept.distinct("limit"), [cost for cost in swept.distinct("cost_s") if cost]
    places = np.arange(len(limits))
    for policy in ("mgs", "mbgs"):
        for cost_s, style in zip(costs, ("-", (0, (4, 1.5)), (0, (1, 1.5))), strict=False):
            here = [swept.at(policy=policy, limit=limit, cost_s=0.0 if limit in FREE else cost_s) for limit in limits]
            mean, half = np.array([one.interval(measure) for one in here]).T
            colour, label = policy_colour(policy), f"{policy.upper()}, C = {cost_s:.0f} s"
            axes.plot(places, np.maximum(mean, least), color=colour, linestyle=style, marker="o", markersize=3, label=label)
            if style == "-" and not np.isnan(half).any():
                axes.fill_between(places, np.maximum(mean - half, least), mean + half, color=colour, alpha=0.15, linewidth=0)
    use_log_scale(axes)
    axes.set_xticks(places, [str(limit) for limit in limits], rotation=45, ha="right")


def main(argv: Sequence[str] | None = None) -> None:
    options = options_of(__doc__, study="migration_tradeoff", replications=3).parse_args(argv)
    runs = runs_of(options, points(options), usual_measures)
    report(options, runs, tables(runs), figure)


if __name__ == "__main__":
    main()
