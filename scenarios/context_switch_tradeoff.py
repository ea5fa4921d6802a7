"""Up to which utilization is gang scheduling worth its context switches?

Figures 9, 10 and 12 of 002 (002_8335dd3215a2768d.txt, section 5.3): slowdown, wait and loss of capacity of BF and of GS and BGS
with MPL 2, 3 and 5, against utilization, with context switches of 0, 1, 2 and 5 % of a slice of 200 s; phi 0.2.  And the
utilization at which BF overtakes BGS, which the paper leaves to an adaptive scheduler.

    python scenarios/context_switch_tradeoff.py                a small study: 0 and 5 %, MPL 2 and 5
    python scenarios/context_switch_tradeoff.py --full --figure context_switch_tradeoff.png

A context switch is charged as in the paper's eq. (3): every occupied node pays in every slice (``charge="every-slice"``), also
where the next slice has the same gang.  Rows "on change" show BGS-5 on a machine on which a node pays only when it changes from
one task to another (``charge="on-change"``, the package's default).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import pairwise
from math import isinf, isnan
from typing import Final, Literal

import numpy as np
from matplotlib.figure import Figure
from replications import (
    FULL_FACTORS,
    LEAST_WAIT_S,
    NODES,
    QUANTUM_S,
    SMALL_FACTORS,
    Point,
    draw_curve,
    highest_below,
    options_of,
    runs_of,
    size_of,
    usual_measures,
)
from reporting import (
    FloatArray,
    Grid,
    Runs,
    label_axes,
    report,
    share,
    three_digits,
    use_log_scale,
)

from clustermodel import ContextSwitch, Machine, TimeSlicing
from clustermodel.figures.style import policy_styles

SWITCHES: Final = (0.0, 0.01, 0.02, 0.05)
"""CS, as a fraction of the slice."""
LEVELS: Final = (2, 3, 5)
"""MPL."""
ACCEPTABLE: Final = 20.0
"""Slowdown; 002, section 5.3."""
ON_CHANGE: Final = "BGS-5, on change"

PAPER_ACCEPTABLE: Final = {("GS-5", 0.0): 0.67, ("BF", 0.0): 0.76, ("BGS-2", 0.0): 0.82, ("BGS-5", 0.0): 0.87}
"""002, section 5.3: utilization at a slowdown of 20."""
PAPER_SATURATION: Final = {
    ("BF", 0.0): "0.95", ("GS-5", 0.0): "0.84; 0.87 (fig. 12)", ("GS-3", 0.0): "0.79", ("GS-2", 0.0): "0.82 (fig. 12)",
    ("BGS-5", 0.02): "0.93", ("GS-3", 0.05): "0.73", ("GS-5", 0.05): "0.75", ("BGS-5", 0.0): "0.96 (table 1)",
}  # fmt: skip
"""002, section 5.3, figures 9, 10 and 12: where the strategies saturate."""
PAPER_CRITICAL: Final = {0.0: "none", 0.01: "none", 0.02: "0.92", 0.05: "0.83"}
"""002, section 5.3: the utilization up to which BGS-5 is better than BF."""


def points(options: argparse.Namespace) -> list[Point]:
    switches = SWITCHES if options.full else (0.0, 0.05)
    levels = LEVELS if options.full else (2, 5)
    configurations: list[tuple[str, str, float, Literal["every-slice", "on-change"]]] = [("BF", "bf", 0.0, "every-slice")]
    for switch in switches:
        configurations += [
            (f"{policy.upper()}-{level}", f"{policy}:mpl={level}", switch, "every-slice")
            for policy in ("gs", "bgs")
            for level in levels
        ]
        if switch >= 0.02:
            configurations.append((ON_CHANGE, "bgs:mpl=5", switch, "on-change"))
    return [
        Point(
            at={"strategy": name, "switch": switch, "factor": factor},
            policy=policy,
            machine=Machine(
                nodes=NODES,
                time_slicing=TimeSlicing(quantum_s=QUANTUM_S, mpl=5),
                context_switch=ContextSwitch(fraction=switch, charge=charge),
            ),
            factor=factor,
        )
        for factor in (FULL_FACTORS if options.full else SMALL_FACTORS)
        for name, policy, switch, charge in configurations
    ]


def tables(runs: Runs) -> list[Grid]:
    factors = runs.distinct("factor")
    places = sorted(
        {(row["strategy"], row["switch"]) for row in runs.rows}, key=lambda place: (place[1], _strategies(runs).index(place[0]))
    )
    size = size_of(runs)
    slowdowns, limits = [], []
    for name, switch in places:
        here = runs.at(strategy=name, switch=switch)
        label = "BF, no switches" if name == "BF" else f"{name}, {switch:.0%}"
        slowdowns.append([label, *(one.shown(three_digits) for one in here.curve("slowdown"))])
        rho, slowdown = here.means("rho"), here.means("slowdown")
        highest = max(here.curve("rho"), key=lambda one: one.mean)
        acceptable = highest_below(rho, slowdown, ACCEPTABLE)
        paper = PAPER_ACCEPTABLE.get((name, switch))
        limits.append(
            [
                label,
                "-" if paper is None else f"{paper:.2f}",
                "slower already" if isnan(acceptable) else "not reached" if isinf(acceptable) else share(acceptable),
                PAPER_SATURATION.get((name, switch), "-"),
                highest.shown(share),
            ]
        )
    critical = []
    for switch in runs.distinct("switch"):
        for name in ("BGS-5", *([ON_CHANGE] if switch >= 0.02 else [])):
            bf, bgs = runs.at(strategy="BF"), runs.at(strategy=name, switch=switch)
            single = [_overtaken(*(one.at(replication=seed) for one in (bf, bgs))) for seed in runs.distinct("replication")]
            critical.append(
                [
                    f"{name}, {switch:.0%}",
                    PAPER_CRITICAL.get(switch, "-") if name == "BGS-5" else "-",
                    _shown_critical(_overtaken(bf, bgs)),
                    ", ".join(map(_shown_critical, single)),
                ]
            )
    headings = ["strategy, context switch", *(f"x {factor:.1f}" for factor in factors)]
    return [
        Grid(f"Figure 9, mean slowdown ± 95 % interval, by factor of run times, {size}", headings, slowdowns),
        Grid(
            f"Utilization at a slowdown of {ACCEPTABLE:.0f}, and the highest, {size}",
            ["strategy, context switch", "002, slowdown 20", "ours", "002, saturation", "ours, highest ± 95 % interval"],
            limits,
        ),
        Grid(
            f"Utilization at which BF overtakes, by slowdown, {size}",
            ["strategy, context switch", "002", "ours (mean curves)", "single replications"],
            critical,
        ),
    ]


def _shown_critical(utilization: float) -> str:
    return "none" if isnan(utilization) else share(utilization)


def _strategies(runs: Runs) -> list[str]:
    found = runs.distinct("strategy")
    return sorted(found, key=lambda name: name == ON_CHANGE)


def _overtaken(bf: Runs, bgs: Runs) -> float:
    """Return the utilization at which the slowdown curve of BF crosses that of BGS from above; ``nan`` if none does."""
    return crossing(bf.means("rho"), np.log(bf.means("slowdown")), bgs.means("rho"), np.log(bgs.means("slowdown")))


def crossing(x: FloatArray, y: FloatArray, other_x: FloatArray, other_y: FloatArray) -> float:
    """Return the last x at which two curves, given by their points, cross; ``nan`` if they do not.

    Beyond it, the first curve is the lower one.
    """
    found = [np.nan]
    for (a, b), (c, d) in (
        (one, two) for one in pairwise(zip(x, y, strict=True)) for two in pairwise(zip(other_x, other_y, strict=True))
    ):
        first, second, between = np.subtract(b, a), np.subtract(d, c), np.subtract(c, a)
        area = first[0] * second[1] - first[1] * second[0]
        if not area:
            continue
        along = (between[0] * second[1] - between[1] * second[0]) / area
        other = (between[0] * first[1] - between[1] * first[0]) / area
        if 0 <= along <= 1 and 0 <= other <= 1 and area > 0:
            found.append(a[0] + along * first[0])
    return float(found[-1])


def figure(runs: Runs) -> Figure:
    switches = runs.distinct("switch")
    levels = sorted({int(name[-1]) for name in runs.distinct("strategy") if name[-1].isdigit()})
    picture = Figure(figsize=(3.3 * len(switches) + 1, 10), layout="constrained")
    panels = picture.subplots(3, len(switches), sharex=True, sharey="row", squeeze=False)
    measures = (
        ("slowdown", "mean slowdown (fig. 9)", 1.0),
        ("wait_s", "mean wait, s (fig. 10)", LEAST_WAIT_S),
        ("kappa", "loss of capacity κ (fig. 12)", 0.0),
    )
    styles = policy_styles(["BF", *(f"{policy}-{level}" for policy in ("GS", "BGS") for level in levels)])
    for row, (measure, title, least) in zip(panels, measures, strict=True):
        for axes, switch in zip(row, switches, strict=True):
            draw_curve(axes, runs.at(strategy="BF"), measure, style=styles["BF"], label="BF", least=least)
            for policy in ("gs", "bgs"):
                for level in levels:
                    name = f"{policy.upper()}-{level}"
                    here = runs.at(strategy=name, switch=switch)
                    banded = level == levels[-1]
                    draw_curve(axes, here, measure, style=styles[name], label=name, least=least, band=banded)
            label_axes(axes, "utilization ρ" if measure == "kappa" else "", title if switch == switches[0] else "")
            if measure == "kappa":
                low, high = axes.get_xlim()
                axes.axline((1, 0), slope=-1, color="0.4", linestyle="--", linewidth=0.8, label="κ = 1 − ρ")
                axes.set_xlim(low, high)
                axes.set_ylim(0, 0.4)
            if measure == "slowdown":
                axes.set_title(f"context switch {switch:.0%} of a slice")
        if measure != "kappa":
            use_log_scale(*row)
    handles, labels = panels[-1][0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    shown = f"BF, GS-{levels[-1]} and BGS-{levels[-1]}"
    picture.suptitle(f"Switches charged in every slice, as in eq. (3); bands: 95 % intervals of {shown}\n{size_of(runs)}")
    return picture


def main(argv: Sequence[str] | None = None) -> None:
    options = options_of(__doc__, study="context_switch_tradeoff", replications=3).parse_args(argv)
    runs = runs_of(options, points(options), usual_measures)
    report(options, runs, tables(runs), figure)


if __name__ == "__main__":
    main()
