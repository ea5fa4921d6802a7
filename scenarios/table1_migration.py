"""How much does migration improve gang scheduling, with and without backfilling?

Table 1 of 002 (002_8335dd3215a2768d.txt, section 5.6): utilization and mean slowdown of GS, BGS, MGS and MBGS on nine
workloads, for the best case of each policy: migration costs nothing and is not limited, context switches are free, MPL 5, phi
0.2.

    python scenarios/table1_migration.py                       a small study, seconds
    python scenarios/table1_migration.py --full --figure table1_migration.png

Every cell has our mean over replications with its 95 % interval, in brackets the paper's number, and ours / paper.  The size of
the improvement is paired by replication: both policies schedule the same jobs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.figure import Figure
from replications import (
    FULL_FACTORS,
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
    Interval,
    Runs,
    better,
    label_axes,
    percent,
    report,
    share,
    three_digits,
    use_log_scale,
)

from clustermodel import Checkpointing, Machine, Result, TimeSlicing
from clustermodel.figures.style import policy_colour, policy_styles

POLICIES: Final = ("gs", "bgs", "mgs", "mbgs")
PAIRS: Final = (("bgs", "mbgs"), ("gs", "mgs"))
"""Without and with migration."""
PAPER: Final = {
    "bgs": ((0.55, 2.5), (0.61, 3.2), (0.66, 3.8), (0.72, 6.5), (0.77, 8.0), (0.83, 11.9), (0.89, 22.4), (0.94, 34.9),
            (0.96, 67.9)),
    "mbgs": ((0.55, 2.1), (0.61, 2.5), (0.66, 2.9), (0.72, 3.7), (0.77, 5.1), (0.83, 7.6), (0.88, 11.0), (0.94, 20.9),
             (0.98, 56.8)),
    "gs": ((0.55, 3.9), (0.61, 7.0), (0.66, 18.8), (0.72, 44.8), (0.78, 125.6), (0.83, 405.6), (0.86, 1738.0), (0.86, 4147.7),
           (0.86, 5941.5)),
    "mgs": ((0.55, 2.6), (0.61, 4.0), (0.66, 6.9), (0.72, 13.5), (0.77, 29.4), (0.83, 54.4), (0.88, 134.2), (0.94, 399.3),
            (0.97, 1609.9)),
}  # fmt: skip
"""002, table 1: utilization and slowdown of workloads 0 to 8."""
PAPER_BETTER: Final = {
    "mbgs": (19.2, 23.9, 24.8, 43.1, 36.6, 36.2, 50.8, 40.2, 16.4),
    "mgs": (33.7, 42.5, 63.4, 69.9, 76.6, 86.6, 92.3, 90.4, 72.9),
}
"""002, table 1: by how many percent slowdown is better with migration."""
PAPER_BY_RUN_TIME: Final = {"bgs": (18.9, 4.8), "mgs": (104.8, 4.1)}
"""002, section 5.6: slowdown of jobs with run times below the median, and of the others; it averages to workload 5's."""


def points(options: argparse.Namespace) -> list[Point]:
    machine = Machine(nodes=NODES, time_slicing=TimeSlicing(quantum_s=QUANTUM_S, mpl=5), checkpointing=Checkpointing())
    return [
        Point(at={"policy": policy, "factor": factor}, policy=policy, machine=machine, factor=factor)
        for factor in (FULL_FACTORS if options.full else SMALL_FACTORS)
        for policy in POLICIES
    ]


def measure(result: Result) -> dict[str, float]:
    """Return the usual measures, and the slowdown of jobs shorter and not shorter than the median."""
    jobs = result.jobs
    run, response = jobs["run_s"].to_numpy(), jobs["response_s"].to_numpy()
    slowdown, short = np.maximum(response, 10) / np.maximum(run, 10), run < np.median(run)
    by_run_time = {"slowdown_short": float(slowdown[short].mean()), "slowdown_long": float(slowdown[~short].mean())}
    return usual_measures(result) | by_run_time


def tables(runs: Runs) -> list[Grid]:
    factors = runs.distinct("factor")
    grids = []
    for without, with_migration in PAIRS:
        before, after = without.upper(), with_migration.upper()
        rows = []
        for factor in factors:
            number, here = workload_number(factor), runs.at(factor=factor)
            cells = [f"{number} (x {factor:.1f})"]
            for policy in (without, with_migration):
                rho, slowdown = (here.at(policy=policy).interval(name) for name in ("rho", "slowdown"))
                paper_rho, paper_slowdown = PAPER[policy][number]
                cells.append(f"{rho.shown(share)} [{paper_rho:.2f}]")
                ratio = slowdown.mean / paper_slowdown
                cells.append(f"{slowdown.shown(three_digits)} [{three_digits(paper_slowdown)}] {ratio:.2f}")
            gain = better(here.at(policy=without), here.at(policy=with_migration), "slowdown")
            rows.append([*cells, f"{gain.shown(percent)} [{PAPER_BETTER[with_migration][number]} %]"])
        headings = ["workload"]
        for name in (before, after):
            headings += [f"{name} ρ", f"{name} slowdown, ours / paper"]
        grids.append(
            Grid(
                f"Table 1, {before} and {after}: ours ± 95 % interval [002], {size_of(runs)}",
                [*headings, "slowdown better with migration"],
                rows,
            )
        )
    grids.append(Grid(f"What 002 concludes from table 1, {size_of(runs)}", ["", "002", "ours"], conclusions(runs)))
    return grids


def conclusions(runs: Runs) -> list[list[str]]:
    """Return the paper's conclusions in section 5.6 beside ours."""
    factors = runs.distinct("factor")
    of = {(policy, factor): runs.at(policy=policy, factor=factor) for policy in POLICIES for factor in factors}
    slowdown = {place: one.interval("slowdown").mean for place, one in of.items()}
    gain = {
        (name, factor): better(of[without, factor], of[name, factor], "slowdown")
        for without, name in PAIRS
        for factor in factors
    }
    rows = []
    for policy, paper in (("gs", "0.86"), ("mgs", "0.94 (0.97 in table 1)"), ("bgs", "0.96"), ("mbgs", "0.98")):
        highest = max((one for (name, _), one in of.items() if name == policy), key=lambda one: one.interval("rho").mean)
        rows.append([f"highest utilization, {policy.upper()}", paper, highest.interval("rho").shown(share)])
    for without, name in PAIRS:
        count = sum(slowdown[name, factor] <= slowdown[without, factor] for factor in factors)
        rows.append([f"{name.upper()} slows down no more than {without.upper()}", "9 of 9 workloads", _of(count, factors)])
    for (_, name), paper in zip(PAIRS, ("50.8 % in workload 6", "92.3 % in workload 6"), strict=True):
        best = max(factors, key=lambda factor: gain[name, factor].mean)
        ours = f"{gain[name, best].shown(percent)} in workload {workload_number(best)}"
        rows.append([f"largest improvement by {name.upper()}", paper, ours])
    count = sum(gain["mgs", factor].mean > gain["mbgs", factor].mean for factor in factors)
    rows.append(["improvement of GS above that of BGS", "9 of 9 workloads", _of(count, factors)])
    compared = [factor for factor in factors if workload_number(factor) <= 6]
    for policy in ("bgs", "mgs", "mbgs"):
        ratios = {factor: slowdown[policy, factor] / PAPER[policy][workload_number(factor)][1] for factor in compared}
        count = sum(0.5 <= ratio <= 2 for ratio in ratios.values())
        ours = f"{_of(count, compared)}, {min(ratios.values()):.2f} to {max(ratios.values()):.2f}"
        rows.append([f"{policy.upper()} within a factor of 2 of 002, workloads 0 to 6", "-", ours])
    if 1.5 in factors:
        for policy, (short, long) in PAPER_BY_RUN_TIME.items():
            for name, paper_slowdown, column in (("below", short, "slowdown_short"), ("from", long, "slowdown_long")):
                ours = of[policy, 1.5].interval(column).shown(three_digits)
                rows.append([f"workload 5, {policy.upper()}: jobs {name} the median run time", str(paper_slowdown), ours])
    return rows


def _of(count: int, factors: Sequence[float]) -> str:
    return f"{count} of {len(factors)} workloads"


def figure(runs: Runs) -> Figure:
    factors = runs.distinct("factor")
    numbers = [workload_number(factor) for factor in factors]
    picture = Figure(figsize=(11, 5), layout="constrained")
    left, right = picture.subplots(1, 2)
    for policy, style in policy_styles(POLICIES).items():
        draw_curve(left, runs.at(policy=policy), "slowdown", style=style, label=policy.upper(), least=1)
        paper = np.array([PAPER[policy][number] for number in numbers])
        left.plot(*paper.T, color=style.colour, linestyle=":", marker="s", markersize=4, markerfacecolor="none")
    left.plot([], [], color="0.3", linestyle=":", marker="s", markersize=4, markerfacecolor="none", label="002, table 1")
    use_log_scale(left)
    label_axes(left, "utilization ρ", "mean slowdown")
    left.legend()
    left.set_title("slowdown; bands are 95 % intervals")
    lowest = []
    for without, name in PAIRS:
        colour = policy_colour(name)
        gains: list[Interval] = [
            better(runs.at(policy=without, factor=factor), runs.at(policy=name, factor=factor), "slowdown")
            for factor in factors
        ]
        mean, half = 100 * np.array(gains).T
        lowest.append(float(mean.min()))
        right.plot(numbers, mean, color=colour, marker="o", markersize=3, label=f"{name.upper()} against {without.upper()}")
        if not np.isnan(half).any():
            right.fill_between(numbers, mean - half, mean + half, color=colour, alpha=0.15, linewidth=0)
        paper_gain = [PAPER_BETTER[name][number] for number in numbers]
        right.plot(numbers, paper_gain, color=colour, linestyle=":", marker="s", markersize=4, markerfacecolor="none")
    label_axes(right, "workload (run times x 1.0 to x 1.8)", "slowdown better with migration (%)")
    right.set_xticks(numbers)
    right.set_ylim(min(0.0, *lowest), 100)
    right.legend(loc="lower right")
    right.set_title("improvement by migration, paired")
    picture.suptitle(f"GS, BGS, MGS, MBGS; MPL 5, free and unlimited migration, {size_of(runs)}")
    return picture


def main(argv: Sequence[str] | None = None) -> None:
    options = options_of(__doc__, study="table1_migration", replications=5).parse_args(argv)
    runs = runs_of(options, points(options), measure)
    report(options, runs, tables(runs), figure)


if __name__ == "__main__":
    main()
