"""Whom does selective suspension help, whom does it delay, and what does it cost to suspend, checkpoint or kill?

Kettimuthu et al. 2005 compare selective suspension (``ss``) with EASY backfilling by class of jobs: four classes of run times,
four of sizes.  Here: EASY, and ``ss`` by what preemption does and by suspension factor.

    python scenarios/selective_suspension.py                     a small study on the embedded workload
    python scenarios/selective_suspension.py --trace KTH-SP2-1996-2.2.swf.gz --full --figure selective_suspension.png

To preempt costs something: a context switch takes a minute, and so do a checkpoint and a restart.  In one more run, with
suspension, nothing costs anything.  Without ``--full`` the suspension factor is 2.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import inf
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure
from paper_004 import count, found, known, shown
from reporting import Grid, Interval, Runs, draw_bars, label_axes, refusing_in_one_line, report, three_digits
from traces import Point, mark_of, options_of, runs_of, size_of

from clustermodel import Account, Checkpointing, ContextSwitch, Result, Workload
from clustermodel.figures.style import policy_styles

COST_S: Final = 60
"""Of a context switch, a checkpoint and a restart, each."""
MACHINE: Final[dict[str, Any]] = {
    "checkpointing": Checkpointing(checkpoint_s=COST_S, restart_s=COST_S),
    "context_switch": ContextSwitch(seconds=COST_S),
}
FACTORS: Final = (1.5, 2, 5, 10)
MODES: Final = ("suspend", "checkpoint", "kill")
EASY: Final = "easy"
FREE: Final = "ss:sf=2,mode=suspend, at no cost"

RUN_TIMES: Final = {"very short": (0, 600), "short": (600, 3600), "long": (3600, 8 * 3600), "very long": (8 * 3600, inf)}
"""Classes of run times, seconds: over the first bound, up to the second."""
SIZES: Final = {"sequential": (0, 1), "narrow": (1, 8), "wide": (8, 32), "very wide": (32, inf)}
"""Classes of sizes, nodes, likewise."""
CLASSES: Final = tuple(f"{run_time}, {size}" for run_time in RUN_TIMES for size in SIZES)
ACCOUNTS: Final = (Account.CONTEXT_SWITCH, Account.CHECKPOINT, Account.RESTART, Account.LOST)


def points(options: argparse.Namespace) -> list[Point]:
    factors = FACTORS if options.full else (2,)
    made = [Point(at={"policy": EASY}, policy=EASY, machine=MACHINE)]
    for mode in MODES:
        made += [
            Point(at={"policy": f"ss:sf={sf:g},mode={mode}"}, policy=f"ss:sf={sf:g},mode={mode}", machine=MACHINE)
            for sf in factors
        ]
    return [*made, Point(at={"policy": FREE}, policy="ss:sf=2,mode=suspend")]


def measure(result: Result, _: Workload) -> dict[str, float | None]:
    """Return slowdowns by class, preempted jobs, and the capacity that preemption takes, by account."""
    summary, ledger, jobs = result.summary(), result.ledger, result.jobs
    run_s, response_s = (jobs[name].to_numpy(dtype=float) for name in ("run_s", "response_s"))
    slowdown = np.maximum(response_s / np.maximum(run_s, 10), 1)
    by_class: dict[str, float | None] = {}
    for run_time, (over, up_to) in RUN_TIMES.items():
        for size, (more_than, at_most) in SIZES.items():
            nodes = jobs["nodes"].to_numpy()
            chosen = (over < run_s) & (run_s <= up_to) & (more_than < nodes) & (nodes <= at_most)
            name = f"{run_time}, {size}"
            by_class[f"jobs: {name}"] = int(chosen.sum())
            by_class[name] = known(float(slowdown[chosen].mean()) if chosen.any() else float("nan"))
    return {
        "slowdown": float(slowdown.mean()),
        "largest": float(slowdown.max()),
        "response_s": summary.mean_response_s,
        "preempted": summary.preempted,
        "times": summary.mean_killed_times,
        **{account.value: sum(ledger.amount(account)) / ledger.capacity for account in ACCOUNTS},
        "utilization": summary.utilization,
        **by_class,
    }


def tables(runs: Runs) -> list[Grid]:
    where = f"{size_of(runs)}, costs of {COST_S} s"
    policies = runs.distinct("policy")
    columns = (
        ("mean slowdown", "slowdown", three_digits, 1.0),
        ("largest slowdown", "largest", three_digits, 1.0),
        ("mean response (s)", "response_s", three_digits, 1.0),
        ("preempted", "preempted", count, 1.0),
        ("times each", "times", two_places, 1.0),
        *((f"{account.value} (% of capacity)", account.value, two_places, 100.0) for account in ACCOUNTS),
        ("useful (% of capacity)", "utilization", two_places, 100.0),
    )
    rows = [
        [policy, *(shown(runs.at(policy=policy), name, number, scale) for _, name, number, scale in columns)]
        for policy in policies
    ]
    grids = [Grid(f"Selective suspension and what it costs, {where}", ["policy", *(title for title, *_ in columns)], rows)]
    rows = [
        [
            name,
            shown(runs.at(policy=EASY), f"jobs: {name}", count),
            *(shown(runs.at(policy=policy), name, three_digits) for policy in shown_policies(runs)),
        ]
        for name in CLASSES
    ]
    title = f"Mean bounded slowdown by class of run time and size, {where}"
    return [*grids, Grid(title, ["class", "jobs", *shown_policies(runs)], rows)]


def shown_policies(runs: Runs) -> list[str]:
    """Return the policies that are shown by class: of the suspension factors only 2."""
    return [policy for policy in runs.distinct("policy") if policy == EASY or "sf=2," in policy]


def two_places(value: float) -> str:
    return f"{value:.2f}"


def figure(runs: Runs) -> Figure:
    picture = Figure(figsize=(11, 7), layout="constrained")
    policies = shown_policies(runs)
    styles = policy_styles(policies)
    width = 0.8 / len(policies)
    for axes, (run_time, (low, high)) in zip(picture.subplots(2, 2).flat, RUN_TIMES.items(), strict=True):
        for number, policy in enumerate(policies):
            here = runs.at(policy=policy)
            means = [class_mean(here, f"{run_time}, {size}") for size in SIZES]
            places = np.arange(len(SIZES)) + (number - (len(policies) - 1) / 2) * width
            look = styles[policy]
            draw_bars(axes, places, means, width, color=look.colour, hatch=look.hatch, label=policy)
        label_axes(axes, "", "mean bounded slowdown")
        bounds = f"up to {high:,.0f} s" if high < inf else f"more than {low:,.0f} s"
        axes.set_title(f"{run_time} ({bounds})")
        axes.set_xticks(range(len(SIZES)), list(SIZES))
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.8)
    handles, labels = axes.get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    picture.suptitle(f"Selective suspension by class, {size_of(runs)}")
    return picture


def class_mean(runs: Runs, name: str) -> Interval:
    """Return the mean of a class; 0, which a logarithmic scale does not show, where it has no jobs."""
    mean, half = found(runs, name)
    return Interval(np.nan_to_num(mean), half)


@refusing_in_one_line
def main(argv: Sequence[str] | None = None) -> None:
    options = options_of(__doc__, study="selective_suspension", replications=10).parse_args(argv)
    runs = runs_of(options, points(options), measure)
    report(options, runs, tables(runs), figure, mark=mark_of(runs))


if __name__ == "__main__":
    main()
