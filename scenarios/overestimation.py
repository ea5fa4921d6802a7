"""Does it matter how far users overestimate run times?

Figures 5, 6 and 8 of 002 (002_8335dd3215a2768d.txt, sections 3 and 5.2): slowdown and wait against utilization for several
phi, the fraction of exact estimates, under BF (figure 5) and under BGS with MPL 5 (figure 8); and under BF with phi = 0.2 the
wait of all jobs, of the worst and of the best estimators (figure 6).  A job is in class i if its run time is more than 10 i and
at most 10 (i + 1) percent of its estimate.

    python scenarios/overestimation.py                         a small study
    python scenarios/overestimation.py --full --figure overestimation.png

Every phi schedules the same jobs.  Which values of phi the paper has drawn is not in its text; ours are 0.2, 0.4, ... 1.0.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex
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
    three_digits,
    use_log_scale,
)

from clustermodel import Machine, Result, TimeSlicing
from clustermodel.figures.style import BLUE, Style, policy_colour

POLICIES: Final = ("bf", "bgs")
PHIS: Final = (0.2, 0.4, 0.6, 0.8, 1.0)
CHOSEN_PHI: Final = 0.2
"""phi of figure 6."""
CLASSES: Final = range(10)


def points(options: argparse.Namespace) -> list[Point]:
    machine = Machine(nodes=NODES, time_slicing=TimeSlicing(quantum_s=QUANTUM_S, mpl=5))
    return [
        Point(at={"policy": policy, "phi": phi, "factor": factor}, policy=policy, machine=machine, factor=factor, phi=phi)
        for factor in (FULL_FACTORS if options.full else SMALL_FACTORS)
        for policy in POLICIES
        for phi in (PHIS if options.full else (0.2, 0.6, 1.0))
    ]


def measure(result: Result) -> dict[str, float]:
    """Return the usual measures, and mean wait and number of jobs by class of estimate."""
    jobs = result.jobs
    used, wait = (jobs["run_s"] / jobs["estimate_s"]).to_numpy(), jobs["wait_s"].to_numpy()
    accuracy = np.clip(np.ceil(used * 10) - 1, 0, 9)
    found = usual_measures(result)
    for number in CLASSES:
        of_class = accuracy == number
        found[f"jobs_{number}"] = int(of_class.sum())
        found[f"wait_s_{number}"] = float(wait[of_class].mean()) if of_class.any() else 0.0
    return found


def tables(runs: Runs) -> list[Grid]:
    factors, phis, size = runs.distinct("factor"), sorted(runs.distinct("phi")), size_of(runs)
    grids = []
    for policy, number in (("bf", 5), ("bgs", 8)):
        for name, title in (("slowdown", "mean slowdown"), ("wait_s", "mean wait (s)")):
            rows = [
                [
                    f"{workload_number(factor)} (x {factor:.1f})",
                    *(runs.at(policy=policy, phi=phi, factor=factor).interval(name).shown(three_digits) for phi in phis),
                    better(
                        runs.at(policy=policy, phi=CHOSEN_PHI, factor=factor),
                        runs.at(policy=policy, phi=1.0, factor=factor),
                        name,
                    ).shown(percent),
                ]
                for factor in factors
            ]
            headings = ["workload", *(f"phi = {phi:g}" for phi in phis), "exact estimates better than phi = 0.2"]
            grids.append(Grid(f"Figure {number}, {policy.upper()}, {title} ± 95 % interval, {size}", headings, rows))
    chosen = runs.at(policy="bf", phi=CHOSEN_PHI)
    rows = []
    for factor in factors:
        here = chosen.at(factor=factor)
        waits = [here.interval(f"wait_s_{number}").shown(three_digits) for number in (0, 9)]
        gain = better(_renamed(here, "wait_s"), _renamed(here, "wait_s_9"), "wait")
        label = f"{workload_number(factor)} (x {factor:.1f})"
        rows.append([label, here.interval("wait_s").shown(three_digits), *waits, gain.shown(percent)])
    headings = ["workload", "all jobs", "class 0, worst", "class 9, best", "class 9 better than all"]
    grids.append(Grid(f"Figure 6, BF, phi = 0.2, mean wait (s) ± 95 % interval by class of estimate, {size}", headings, rows))
    return grids


def _renamed(runs: Runs, column: str) -> Runs:
    return Runs(runs.facts, [{"replication": row["replication"], "wait": row[column]} for row in runs.rows])


def figure(runs: Runs) -> Figure:
    phis = sorted(runs.distinct("phi"))
    picture = Figure(figsize=(11, 12), layout="constrained")
    panels = picture.subplots(3, 2)
    shades = dict(zip(phis, (to_hex(shade) for shade in colormaps["viridis"](np.linspace(0.0, 0.85, len(phis)))), strict=True))
    for row, policy, number in ((panels[0], "bf", 5), (panels[1], "bgs", 8)):
        for axes, (name, title, least) in zip(
            row, (("slowdown", "mean slowdown", 1.0), ("wait_s", "mean wait (s)", LEAST_WAIT_S)), strict=True
        ):
            for phi in phis:
                here = runs.at(policy=policy, phi=phi)
                banded = phi in (phis[0], phis[-1])
                draw_curve(axes, here, name, style=Style(shades[phi]), label=f"phi = {phi:g}", least=least, band=banded)
            use_log_scale(axes)
            label_axes(axes, "utilization ρ", title)
            axes.set_title(f"figure {number}: {policy.upper()}")
    panels[0, 0].legend()
    chosen = runs.at(policy="bf", phi=CHOSEN_PHI)
    left, right = panels[2]
    colours = {"wait_s": policy_colour("bf"), "wait_s_0": "0.2", "wait_s_9": BLUE}
    for name, label in (
        ("wait_s_0", "class 0, worst estimates"),
        ("wait_s", "all jobs"),
        ("wait_s_9", "class 9, best estimates"),
    ):
        draw_curve(left, chosen, name, style=Style(colours[name]), label=label, least=LEAST_WAIT_S)
    use_log_scale(left)
    label_axes(left, "utilization ρ", "mean wait (s)")
    left.set_title("figure 6: BF, phi = 0.2, by class of estimate")
    left.legend()
    factors = runs.distinct("factor")
    shown = [factor for factor in (1.0, 1.4, 1.8) if factor in factors] or factors[:1]
    for factor, style in zip(shown, ("-", (0, (4, 1.5)), (0, (1, 1.5))), strict=False):
        here = chosen.at(factor=factor)
        means = np.array([here.interval(f"wait_s_{number}").mean for number in CLASSES])
        ratio = means / here.interval("wait_s").mean
        label = f"workload {workload_number(factor)}"
        right.plot(list(CLASSES), ratio, color=policy_colour("bf"), linestyle=style, marker="o", markersize=3, label=label)
    right.axhline(1, color="0.4", linewidth=0.8)
    right.set_xticks(list(CLASSES), [f"{10 * number}-{10 * number + 10}" for number in CLASSES], rotation=45)
    label_axes(right, "run time / estimate (%)", "mean wait of class / of all jobs")
    right.set_title("all ten classes, BF, phi = 0.2")
    right.legend()
    picture.suptitle(f"Overestimation, {size_of(runs)}; bands are 95 % intervals (of the least and the largest phi)")
    return picture


def main(argv: Sequence[str] | None = None) -> None:
    options = options_of(__doc__, study="overestimation", replications=3).parse_args(argv)
    runs = runs_of(options, points(options), measure)
    report(options, runs, tables(runs), figure)


if __name__ == "__main__":
    main()
