"""What do urgent jobs gain in gang scheduling, and what do the other jobs pay, by what preemption does to a gang?

A random share of the jobs is urgent (priority 1).  ``bgs`` lets priorities order the queue only; with ``urgent=kill``,
``urgent=checkpoint`` or ``urgent=suspend`` an urgent job gets its nodes in every row of the Ousterhout matrix.  EASY
backfilling, where priorities order the queue as well, and selective suspension, which ignores them, are there for comparison.

    python scenarios/urgent_jobs.py                     a small study on the embedded workload
    python scenarios/urgent_jobs.py --trace KTH-SP2-1996-2.2.swf.gz --full --jobs 5000 --figure urgent_jobs.png

Replication r draws the urgent jobs from seed r, the same for all policies, so that differences are paired.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from math import nan
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from paper_004 import count, found, known, shown
from reporting import Grid, Interval, Runs, draw_bars, interval, label_axes, refusing_in_one_line, report, three_digits
from traces import Point, mark_of, options_of, runs_of, size_of

from clustermodel import Account, Checkpointing, ContextSwitch, JobRecords, Result, TimeSlicing, Workload
from clustermodel.arrays import BoolArray
from clustermodel.experiment.random_streams import random_stream
from clustermodel.figures.style import PALETTE, policy_styles
from clustermodel.measure.job_table import preemptions
from clustermodel.measure.metrics import LARGE_ABOVE_NODES, job_statistics

QUANTUM_S: Final = 200
MPL: Final = 5
SWITCH_S: Final = 4
COST_S: Final = 60
"""Of a checkpoint and of a restart, each."""
MACHINE: Final[dict[str, Any]] = {
    "time_slicing": TimeSlicing(quantum_s=QUANTUM_S, mpl=MPL),
    "context_switch": ContextSwitch(seconds=SWITCH_S),
    "checkpointing": Checkpointing(checkpoint_s=COST_S, restart_s=COST_S),
}
ROTATION_S: Final = (MPL - 1) * QUANTUM_S + SWITCH_S + COST_S
"""Until a gang has been checkpointed at the latest, if no scheduling event cuts its slice short: all other rows come first."""
BASE: Final = "bgs"
POLICIES: Final = (
    BASE, "bgs:urgent=kill", "bgs:urgent=checkpoint", "bgs:urgent=suspend", "mbgs", "mbgs:urgent=checkpoint", "easy", "ss",
)  # fmt: skip
SHARE: Final = 0.05

URGENT: Final = "urgent"
OTHERS: Final = "others"
CLASSES: Final = (URGENT, OTHERS, "small", "large")
"""Urgent and other jobs; all jobs of up to 32 nodes, and of more."""
STATISTICS: Final = {
    "wait_s": "mean_wait_s",
    "p95_s": "p95_wait_s",
    "response_s": "mean_response_s",
    "slowdown": "mean_bounded_slowdown",
}
"""What is kept of each class, by its name in the package's summaries."""
ACCOUNTS: Final = (Account.CONTEXT_SWITCH, Account.CHECKPOINT, Account.RESTART, Account.BLOCKED, Account.LOST)
PAIRED: Final = {
    f"{URGENT}: wait_s": "mean wait, urgent (s)",
    f"{URGENT}: p95_s": "95th percentile, urgent (s)",
    f"{OTHERS}: wait_s": "mean wait, others (s)",
    f"{URGENT}: response_s": "mean response, urgent (s)",
    f"{OTHERS}: response_s": "mean response, others (s)",
    f"{URGENT}: slowdown": "slowdown, urgent",
    f"{OTHERS}: slowdown": "slowdown, others",
}
"""Measures that are compared with the baseline."""


def points(share: float) -> list[Point]:
    change = partial(with_urgent_jobs, share=share)
    return [Point(at={"policy": policy}, policy=policy, random=True, change=change, machine=MACHINE) for policy in POLICIES]


def with_urgent_jobs(workload: Workload, seed: int, *, share: float) -> Workload:
    """Return the jobs with priority 1 for a random share of them, and 0 for the others."""
    urgent = random_stream(seed, "urgent jobs").random(len(workload)) < share
    rows = (row._replace(priority=int(first)) for row, first in zip(workload.rows(), urgent, strict=True))
    return Workload(rows, name=workload.name, provenance=workload.provenance, machine_nodes=workload.machine_nodes)


def measure(result: Result, _: Workload) -> dict[str, float | None]:
    """Return waits, responses and slowdowns by class, what urgent jobs wait for, preemptions, and capacity by account."""
    summary, ledger, records = result.summary(), result.ledger, result.records
    ran, nodes, urgent = records.finished, records.column("nodes"), records.column("priority") > 0
    members = dict(zip(CLASSES, (urgent, ~urgent, nodes <= LARGE_ABOVE_NODES, nodes > LARGE_ABOVE_NODES), strict=True))
    statistics: dict[str, float | None] = {}
    for name, chosen in members.items():
        of_class: dict[str, Any] = {**job_statistics(records, ran & chosen)}
        statistics |= {f"{name}: {short}": known(of_class[field]) for short, field in STATISTICS.items()}
    return {
        "urgent jobs": int((ran & urgent).sum()),
        **statistics,
        **waits_of_urgent(records, ran & urgent, ledger.nodes),
        "preempted": int(preemptions(records).sum()),
        **{account.value: sum(ledger.amount(account)) / ledger.capacity for account in ACCOUNTS},
        "utilization": summary.utilization,
        "kappa": summary.kappa,
    }


def waits_of_urgent(records: JobRecords, urgent: BoolArray, nodes: int) -> dict[str, float | None]:
    """Return which urgent jobs start at once, and the waits of those that never compete for nodes with other urgent jobs.

    Args:
        records: of a run.
        urgent: which jobs are urgent, shape ``(jobs,)``.
        nodes: size of the machine.
    """
    submit, start, end = (records.seconds(name)[urgent] for name in ("submit", "start", "end"))
    size = records.column("nodes")[urgent]
    # Nodes of the urgent jobs, itself included, that are in the system at any time of its wait.
    asked = ((submit <= start[:, None]) & (end > submit[:, None])) @ size
    wait = start - submit
    alone = wait[asked <= nodes]
    return {
        "at once": share_of(wait == 0),
        "competing": share_of(asked > nodes),
        "longest alone": float(alone.max()) if len(alone) else None,
        "beyond a rotation": share_of(alone > ROTATION_S),
    }


def share_of(flags: BoolArray) -> float | None:
    return float(flags.mean()) if len(flags) else None


def difference(runs: Runs, policy: str, name: str) -> Interval:
    """Return by how much a measure is larger than with the baseline, paired by replication."""
    apart = runs.at(policy=policy).values(name) - runs.at(policy=BASE).values(name)
    apart = apart[~np.isnan(apart)]
    return interval(apart) if len(apart) else Interval(nan, nan)


def signed(apart: Interval) -> str:
    """Write a difference, in brackets if its interval contains 0; a dash where there is none."""
    if np.isnan(apart.mean):
        return "-"
    text = apart.shown(three_digits)
    return f"({text})" if abs(apart.mean) <= apart.half else text


def tables(runs: Runs) -> list[Grid]:
    where = f"{size_of(runs)}, {100 * float(str(runs.facts['share'])):g} % urgent"
    by_class = [
        (f"{heading}, {name}", f"{name}: {short}", three_digits, 1.0)
        for short, heading, names in (
            ("wait_s", "mean wait (s)", (URGENT, OTHERS)),
            ("p95_s", "95th percentile (s)", (URGENT, OTHERS)),
            ("response_s", "mean response (s)", (URGENT, OTHERS)),
            ("slowdown", "slowdown", CLASSES),
        )
        for name in names
    ]
    waits = [
        ("urgent jobs", "urgent jobs", count, 1.0),
        ("start at once (%)", "at once", three_digits, 100.0),
        ("compete with urgent jobs (%)", "competing", two_places, 100.0),
        ("longest wait of the rest (s)", "longest alone", three_digits, 1.0),
        (f"rest over {ROTATION_S} s (%)", "beyond a rotation", two_places, 100.0),
    ]
    costs = [
        ("preempted run attempts", "preempted", count, 1.0),
        *((f"{account.value} (% of capacity)", account.value, two_places, 100.0) for account in ACCOUNTS),
        ("utilization (%)", "utilization", two_places, 100.0),
        ("kappa (%)", "kappa", two_places, 100.0),
    ]
    grids = []
    for title, columns in (
        ("Waits, responses and mean bounded slowdowns", by_class),
        ("What urgent jobs wait for", waits),
        ("What preemption costs", costs),
    ):
        rows = [
            [policy, *(shown(runs.at(policy=policy), name, number, scale) for _, name, number, scale in columns)]
            for policy in POLICIES
        ]
        grids.append(Grid(f"{title}, {where}", ["policy", *(heading for heading, *_ in columns)], rows))
    rows = [[policy, *(signed(difference(runs, policy, name)) for name in PAIRED)] for policy in POLICIES if policy != BASE]
    title = f"Paired differences to {BASE}, in brackets where the interval contains 0, {where}"
    grids.insert(1, Grid(title, ["policy", *PAIRED.values()], rows))
    return grids


def two_places(value: float) -> str:
    return f"{value:.2f}"


def figure(runs: Runs) -> Figure:
    picture = Figure(figsize=(12, 8), layout="constrained")
    panels = picture.subplots(2, 2)
    draw_classes(panels[0, 0], runs, "wait_s", (URGENT, OTHERS), "mean wait (s)")
    draw_classes(panels[0, 1], runs, "response_s", (URGENT, OTHERS), "mean response (s)")
    draw_classes(panels[1, 0], runs, "slowdown", CLASSES, "mean bounded slowdown")
    axes, under = panels[1, 1], np.zeros(len(POLICIES))
    for account, colour in zip(ACCOUNTS, PALETTE, strict=False):
        taken = np.array([100 * found(runs.at(policy=policy), account.value).mean for policy in POLICIES])
        axes.barh(np.arange(len(POLICIES)), taken, left=under, color=colour, label=account.value)
        under += taken
    axes.set_yticks(range(len(POLICIES)), list(POLICIES))
    axes.invert_yaxis()
    axes.legend()
    label_axes(axes, "% of capacity", "")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=4)
    picture.suptitle(f"Urgent jobs in gang scheduling, {size_of(runs)}; lines: 95 % intervals")
    return picture


def draw_classes(axes: Axes, runs: Runs, short: str, names: Sequence[str], title: str) -> None:
    """Draw a statistic of some classes as bars, a bar for each policy."""
    styles, width = policy_styles(POLICIES), 0.8 / len(POLICIES)
    for number, policy in enumerate(POLICIES):
        means = [found(runs.at(policy=policy), f"{name}: {short}") for name in names]
        places = np.arange(len(names)) + (number - (len(POLICIES) - 1) / 2) * width
        look = styles[policy]
        draw_bars(axes, places, means, width, color=look.colour, hatch=look.hatch, label=policy)
    axes.set_xticks(range(len(names)), list(names))
    axes.set_yscale("log")
    if short == "slowdown":
        axes.set_ylim(bottom=0.8)
    label_axes(axes, "", title)


def fraction(text: str) -> float:
    """Return a share above 0 and below 1 from the command line."""
    try:
        number = float(text)
    except ValueError:
        number = nan
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it must be a number > 0 and < 1")
    return number


@refusing_in_one_line
def main(argv: Sequence[str] | None = None) -> None:
    parser = options_of(__doc__, study="urgent_jobs", replications=10)
    parser.add_argument("--share", type=fraction, default=SHARE, help=f"share of urgent jobs (default {SHARE})")
    options = parser.parse_args(argv)
    runs = runs_of(options, points(options.share), measure, about=lambda *_: {"share": options.share})
    report(options, runs, tables(runs), figure, mark=mark_of(runs))


if __name__ == "__main__":
    main()
