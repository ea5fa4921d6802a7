"""What does strict fairness cost, and what does EASY owe to later jobs that delay earlier ones?

Tables 1, 2 and 4 to 6 and figures 2, 3, 5 and 6 of 004 (004_55d19449f9d7d838.txt, sections 3 and 5) beside ours: PV-EASY, EASY,
EASY with predictions of the Last Model (EASY-Last), and PV-EASY without one of its parts or with another predictor.

    python scenarios/pv_easy.py                             a small study on the embedded workload
    python scenarios/pv_easy.py --trace CTC-SP2-1996-3.1-cln.swf.gz --nodes 430 --full --figure pv_easy.png

Each policy runs twice: with run times as the trace has them, past the estimate too, and with run times cut at the estimate.
The tables show the first reading, which is 004's as far as its loads tell, or with ``--cut`` the second; each says which.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from paper_004 import AS_RECORDED, CUT, UNCUT, count, found, known, shown
from reporting import Grid, Runs, draw_bars, label_axes, refusing_in_one_line, report, three_digits
from traces import Point, mark_of, options_of, runs_of, size_of

from clustermodel import Result, Workload, bounded_slowdown, delays_by_later_jobs
from clustermodel.figures.style import policy_colour

POLICIES: Final = {
    "EASY": "easy",
    "EASY-Last": "easy:predictor=last",
    "PV-EASY": "pv-easy",
    "PV-EASY without VB": "pv-easy:vb=false",
    "PV-EASY without SLP": "pv-easy:slp=false",
    "PV-EASY, estimates": "pv-easy:predictor=estimate",
    "PV-EASY, perfect predictions": "pv-easy:predictor=perfect",
    "EASY, perfect predictions": "easy:predictor=perfect",
}
COMPARED: Final = ("PV-EASY", "EASY", "EASY-Last")
"""The policies of figures 5 and 6, with 004's name."""
READINGS: Final[Mapping[str, Mapping[str, bool]]] = {UNCUT: AS_RECORDED, "run times cut at the estimate": CUT}
"""Of run times that are longer than their estimates, with the machine that follows each."""
WIDTHS: Final = {"wide": "big", "narrow": "small"}
"""Of jobs, as :meth:`Result.fairness` has them: above a quarter of the machine or not; with 004's names."""
SHORT_S: Final = 600
"""Jobs that run for less than this, seconds, are also looked at by themselves."""
OVER_S: Final = (60, 600)
"""Delays by later jobs are counted a second and a third time above these lengths, seconds."""


class Numbers(NamedTuple):
    """What 004 says of a trace."""

    jobs: int
    delayed: int
    blocked_easy: int
    mean_delay_min: float
    longest_delay_h: float
    violations: int
    violation_nodes: float
    mean_violation_min: float
    mean_increment: float
    longest_violation_h: float
    largest_increment: float
    backfilled_easy: int
    backfilled_pv: int
    blocked_pv: int
    total_load: float
    wasted_load: float
    preempted: int
    rate: float
    killed_times: float
    waste: float


PAPER: Final = {
    "CTC-SP2": Numbers(
        77222, 736, 3833, 80.05, 14.81, 92, 147.78, 100.19, 4.78, 15.13, 137.60,
        38726, 29061, 6403, 68.6166, 2.48, 10172, 13.17, 1.72, 38.95,
    ),
    "SDSC-BLUE": Numbers(
        223407, 1770, 10409, 169.08, 90.70, 407, 533.48, 154.76, 36.13, 32.90, 1320.63,
        166014, 148937, 19262, 81.7564, 5.66, 17364, 7.77, 1.46, 48.27,
    ),
    "SDSC-DS": Numbers(
        85003, 827, 4147, 133.23, 17.25, 152, 680.33, 110.69, 40.78, 16.62, 1581.00,
        51370, 38683, 8736, 66.4917, 3.67, 10294, 12.11, 1.62, 45.33,
    ),
}  # fmt: skip
"""004, tables 1, 2 and 4 to 6, by how the names of the traces begin."""

KEPT: Final = (
    "mean_bounded_slowdown",
    "mean_weighted_bounded_slowdown",
    "backfilled",
    "blocked",
    "delayed",
    "mean_delay_by_later_s",
    "longest_delay_by_later_s",
    "reservation_violations",
    "mean_violation_nodes",
    "mean_violation_s",
    "longest_violation_s",
    "mean_slowdown_increment",
    "largest_slowdown_increment",
    "benign_violations",
    "preempted",
    "preempted_rate",
    "mean_killed_times",
    "runtime_waste",
    "total_load",
    "wasted_load",
)
"""Of all jobs: columns of :meth:`Result.fairness`."""
KEPT_BY_WIDTH: Final = (
    "jobs",
    "mean_bounded_slowdown",
    "blocked",
    "blocked_bounded_slowdown",
    "blocked_weighted_bounded_slowdown",
    "delayed",
    "reservation_violations",
    "preempted",
)
"""Of wide and of narrow jobs."""


def points() -> list[Point]:
    return [
        Point(at={"policy": name, "run_times": reading}, policy=policy, machine=machine)
        for reading, machine in READINGS.items()
        for name, policy in POLICIES.items()
    ]


def measure(result: Result, _: Workload) -> dict[str, float | None]:
    """Return what the tables and figures need."""
    table = result.fairness()
    numbers = {name: known(table.at["all", name]) for name in KEPT}
    numbers |= {f"{width}_{name}": known(table.at[width, name]) for width in WIDTHS for name in KEPT_BY_WIDTH}
    delays = delays_by_later_jobs(result.records, result.machine.nodes)
    numbers |= {f"delayed_over_{least}_s": int((delays > least).sum()) for least in OVER_S}
    literal = delays_by_later_jobs(result.records, result.machine.nodes, only_with_idle_nodes=False)
    numbers["delayed_literally"] = int((literal > 0).sum())
    ran = result.jobs[result.jobs["end_s"].notna()]
    slowdown = bounded_slowdown(ran["response_s"].to_numpy(), ran["run_s"].to_numpy())
    for name, members in (
        ("short", ran["run_s"] < SHORT_S),
        ("long", ran["run_s"] >= SHORT_S),
        ("preempted", ran["tries"] > 1),
    ):
        there = slowdown[members.to_numpy()]
        numbers[f"{name}_mean_bounded_slowdown"] = float(there.mean()) if len(there) else None
    summary = result.summary()
    numbers |= {"mean_wait_s": summary.mean_wait_s, "horizon_s": summary.horizon_s}
    return numbers


def paper_of(runs: Runs) -> Numbers | None:
    """Return 004's numbers of the trace, if it is one of the paper's."""
    name = str(runs.facts["workload"])
    return next((numbers for start, numbers in PAPER.items() if name.startswith(start)), None)


def at(runs: Runs, policy: str, reading: str = UNCUT) -> Runs:
    return runs.at(policy=policy, run_times=reading)


def minutes(seconds: float) -> str:
    return f"{seconds / 60:,.1f} min"


def hours(seconds: float) -> str:
    return f"{seconds / 3600:,.2f} h"


def percent(fraction: float) -> str:
    """Write a load or a rate as 004 does."""
    return f"{100 * fraction:.2f} %"


def two_digits(value: float) -> str:
    return f"{value:,.2f}"


COSTS: Final[Sequence[tuple[str, str, Callable[[float], str]]]] = (
    ("jobs backfilled", "backfilled", count),
    ("jobs blocked", "blocked", count),
    ("total load", "total_load", percent),
    ("wasted load", "wasted_load", percent),
    ("jobs preempted", "preempted", count),
    ("preempted, of all jobs", "preempted_rate", percent),
    ("MKT", "mean_killed_times", two_digits),
    ("mean RTW", "runtime_waste", percent),
)
"""What 004 says of PV-EASY in tables 4 to 6: name, column, how it is written."""


def paper_costs(paper: Numbers) -> dict[str, float]:
    """Return 004's numbers of :data:`COSTS`, by column, loads and rates as fractions."""
    return {
        "backfilled": paper.backfilled_pv,
        "blocked": paper.blocked_pv,
        "total_load": paper.total_load / 100,
        "wasted_load": paper.wasted_load / 100,
        "preempted": paper.preempted,
        "preempted_rate": paper.rate / 100,
        "mean_killed_times": paper.killed_times,
        "runtime_waste": paper.waste / 100,
    }


def tables(runs: Runs, reading: str = UNCUT) -> list[Grid]:
    """Return 004's tables beside ours."""
    where, paper = f"{reading}, {size_of(runs)}", paper_of(runs)

    def row(label: str, here: Runs, *cells: tuple[str, Callable[[float], str]]) -> list[str]:
        return [label, *(shown(here, name, number) for name, number in cells)]

    def of(policy: str) -> Runs:
        return at(runs, policy, reading)

    delays = (("delayed", count), ("blocked", count), ("mean_delay_by_later_s", minutes), ("longest_delay_by_later_s", hours))
    more = (*((f"delayed_over_{least}_s", count) for least in OVER_S), ("delayed_literally", count))
    rows = [row(name, of(name), *delays, *more) for name in POLICIES]
    if paper:
        theirs = [count(paper.delayed), count(paper.blocked_easy)]
        theirs += [f"{paper.mean_delay_min:.1f} min", f"{paper.longest_delay_h:.2f} h", "", "", ""]
        rows.insert(0, ["004, EASY", *theirs])
    grids = [
        Grid(
            f"Table 1, jobs delayed by later jobs, {where}",
            [
                "policy", "delayed", "blocked", "mean delay", "longest",
                *(f"longer than {least // 60} min" for least in OVER_S), "delayed, also while no node was idle",
            ],
            rows,
        )
    ]  # fmt: skip

    broken = (
        ("reservation_violations", count),
        ("mean_violation_nodes", three_digits),
        ("mean_violation_s", minutes),
        ("mean_slowdown_increment", two_digits),
        ("longest_violation_s", hours),
        ("largest_slowdown_increment", two_digits),
        ("benign_violations", count),
    )
    rows = [row(name, of(name), *broken) for name in POLICIES]
    if paper:
        theirs = [count(paper.violations), three_digits(paper.violation_nodes), f"{paper.mean_violation_min:.1f} min"]
        theirs += [two_digits(paper.mean_increment), f"{paper.longest_violation_h:.2f} h", two_digits(paper.largest_increment)]
        rows.insert(0, ["004, EASY-Last", *theirs, ""])
    headings = ["policy", "violations", "mean nodes", "mean DTR", "mean SI", "longest DTR", "largest SI", "benign, besides"]
    grids.append(Grid(f"Table 2, reservation violations, {where}", headings, rows))

    rows = [row(name, of(name), ("backfilled", count), ("blocked", count)) for name in POLICIES]
    if paper:
        theirs_pv = ["004, PV-EASY", count(paper.backfilled_pv), count(paper.blocked_pv)]
        rows = [["004, EASY", count(paper.backfilled_easy), count(paper.blocked_easy)], theirs_pv, *rows]
    grids.append(Grid(f"Table 4, jobs backfilled and blocked, {where}", ["policy", "backfilled", "blocked"], rows))

    theirs_of = paper_costs(paper) if paper else {}
    rows = []
    for label, name, number in COSTS:
        cells = [number(theirs_of[name])] if paper else []
        for policy in ("PV-EASY", "PV-EASY, estimates"):
            cells.append(shown(of(policy), name, number))
            if paper:
                cells.append(f"{100 * differs(of(policy), name, theirs_of[name]):+.1f} %")
        rows.append([label, *cells])
    headings = ["", "004", "ours", "differs by", "ours, with estimates", "differs by"]
    headings = headings if paper else [heading for heading in headings if heading not in ("004", "differs by")]
    grids.append(Grid(f"Tables 4 to 6, PV-EASY and what its preemption costs, {where}", headings, rows))

    kinds = [(name, kind) for kind in ("blocked_bounded_slowdown", "blocked_weighted_bounded_slowdown") for name in WIDTHS]
    grids.append(
        Grid(
            f"Figures 2 and 3, blocked jobs, {where}",
            ["policy", *(f"{'MWBS' if 'weighted' in kind else 'MBS'}, {WIDTHS[width]}" for width, kind in kinds),
             *(f"blocked, {name}" for name in WIDTHS.values())],
            [
                row(
                    name, of(name),
                    *((f"{width}_{kind}", three_digits) for width, kind in kinds),
                    *((f"{width}_blocked", count) for width in WIDTHS),
                )
                for name in POLICIES
            ],
        )
    )  # fmt: skip

    overall = (
        ("mean_bounded_slowdown", three_digits),
        ("mean_weighted_bounded_slowdown", three_digits),
        ("mean_wait_s", three_digits),
        *((f"{width}_mean_bounded_slowdown", three_digits) for width in WIDTHS),
        *((f"{which}_mean_bounded_slowdown", three_digits) for which in ("short", "long", "preempted")),
        ("preempted", count),
        ("wasted_load", percent),
    )
    headings = ["policy", "MBS", "MWBS", "mean wait (s)", *(f"MBS, {name}" for name in WIDTHS.values())]
    headings += [f"MBS, < {SHORT_S // 60} min", f"MBS, {SHORT_S // 60} min and more", "MBS, preempted", "preempted", "wasted"]
    rows = [row(name, of(name), *overall) for name in POLICIES]
    grids.append(Grid(f"Figures 5 and 6, all jobs, {where}", headings, rows))

    other = next(name for name in READINGS if name != reading)
    rows = [
        row(name, at(runs, name, other), *overall[:3], ("blocked", count), ("delayed", count),
            ("reservation_violations", count), ("total_load", percent), ("wasted_load", percent), ("preempted", count))
        for name in COMPARED
    ]  # fmt: skip
    headings = [
        "policy", "MBS", "MWBS", "mean wait (s)", "blocked", "delayed", "violations", "total load", "wasted", "preempted",
    ]  # fmt: skip
    grids.append(Grid(f"The other reading, {other}, {size_of(runs)}", headings, rows))
    return grids


def differs(here: Runs, name: str, paper: float) -> float:
    """Return by which fraction a policy's mean differs from 004's number."""
    return found(here, name).mean / paper - 1


def figure(runs: Runs, reading: str = UNCUT) -> Figure:
    picture = Figure(figsize=(10, 8), layout="constrained")
    (two, three), (five, six) = picture.subplots(2, 2)
    for axes, kind, number in ((two, "bounded_slowdown", 2), (three, "weighted_bounded_slowdown", 3)):
        title = "MBS" if number == 2 else "MWBS"
        draw_blocked(axes, runs, f"blocked_{kind}", reading)
        label_axes(axes, "", f"{title} of blocked jobs")
        axes.set_title(f"figure {number}: {title} of blocked jobs")
        axes.legend()
    for axes, kind, number in ((five, "mean_bounded_slowdown", 5), (six, "mean_weighted_bounded_slowdown", 6)):
        title = "MBS" if number == 5 else "MWBS"
        means = [found(at(runs, name, reading), kind) for name in COMPARED]
        draw_bars(axes, np.arange(3.0), means, 0.6, color=[policy_colour(name) for name in COMPARED])
        axes.set_xticks(range(3), COMPARED)
        label_axes(axes, "", f"{title} of all jobs")
        axes.set_title(f"figure {number}: {title} of all jobs")
    picture.suptitle(f"{size_of(runs)}\n{reading}; big: more than a quarter of the machine")
    return picture


def draw_blocked(axes: Axes, runs: Runs, measure: str, reading: str) -> None:
    """Draw a measure of big and small blocked jobs, a group of bars for each."""
    for offset, name in zip((-0.27, 0.0, 0.27), COMPARED, strict=True):
        means = [found(at(runs, name, reading), f"{width}_{measure}") for width in WIDTHS]
        draw_bars(axes, np.arange(2.0) + offset, means, 0.25, color=policy_colour(name), label=name)
    axes.set_xticks(range(2), list(WIDTHS.values()))


@refusing_in_one_line
def main(argv: Sequence[str] | None = None) -> None:
    parser = options_of(__doc__, study="pv_easy", replications=10)
    parser.add_argument("--cut", action="store_true", help="show the reading in which run times end at the estimate")
    options = parser.parse_args(argv)
    reading = list(READINGS)[options.cut]
    runs = runs_of(options, points(), measure)
    mark = f"{mark_of(runs)}{' cut' if options.cut else ''}"
    report(options, runs, tables(runs, reading), lambda runs: figure(runs, reading), mark=mark)


if __name__ == "__main__":
    main()
