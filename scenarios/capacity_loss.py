"""Does loss of capacity come to the same by 002's formulas and by the ledger, and is it what saturation leaves?

002 (002_8335dd3215a2768d.txt, section 2.3) defines loss of capacity kappa by eq. (2), and for machines shared in time by eq.
(3), and says that at saturation kappa = 1 - rho_max.  Here kappa is computed from the log of events and slices by eqs. (2) and
(3), and compared with the ledger, which the simulation keeps as it goes, node-microsecond by node-microsecond: for space
sharing and gang scheduling, with context switches of 2 % charged in every slice, as in eq. (3), or on change only, and with
migrations of 10 s.  (What migrations take, eqs. (4) and (5), counts as lost; the paper's eq. (3) has no term for it.)

    python scenarios/capacity_loss.py                          a small study
    python scenarios/capacity_loss.py --full --figure capacity_loss.png

The column "blocked" is nodes that wait for other nodes of their gang, which switch or migrate.  "No job waits" is 1 - rho -
kappa: idle nodes and overheads while the queue is empty.  It keeps kappa from being 1 - rho: a run of finitely many jobs fills
and drains.  Factors beyond 1.8 overload the machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final, Literal

from matplotlib.figure import Figure
from replications import (
    NODES,
    QUANTUM_S,
    Point,
    draw_curve,
    options_of,
    runs_of,
    size_of,
    usual_measures,
)
from reporting import (
    Grid,
    Runs,
    label_axes,
    report,
    share,
)

from clustermodel import Account, Checkpointing, ContextSwitch, Machine, Result, TimeSlicing
from clustermodel.figures.style import policy_styles

SPACE_SHARING: Final = ("fcfs", "bf")
TIME_SHARING: Final = ("gs", "bgs", "mgs", "mbgs", "adaptive")
SWITCH: Final = 0.02
COST_S: Final = 10.0
CHARGES: Final[tuple[Literal["every-slice", "on-change"], ...]] = ("every-slice", "on-change")
OVERHEADS: Final = ("context_switch", "migration", "blocked")
FACTORS: Final = (1.0, 1.4, 1.8, 2.2)


def points(options: argparse.Namespace) -> list[Point]:
    factors = FACTORS if options.full else (1.0, 2.2)
    found = [
        Point(
            at={"policy": policy, "charge": "none", "factor": factor},
            policy=policy,
            machine=Machine(nodes=NODES),
            factor=factor,
        )
        for factor in factors
        for policy in SPACE_SHARING
    ]
    found += [
        Point(
            at={"policy": policy, "charge": charge, "factor": factor},
            policy=policy,
            machine=Machine(
                nodes=NODES,
                time_slicing=TimeSlicing(quantum_s=QUANTUM_S, mpl=5),
                context_switch=ContextSwitch(fraction=SWITCH, charge=charge),
                checkpointing=Checkpointing(checkpoint_s=COST_S / 2, restart_s=COST_S / 2),
            ),
            factor=factor,
        )
        for factor in factors
        for charge in CHARGES
        for policy in TIME_SHARING
    ]
    return found


def measure(result: Result) -> dict[str, float]:
    """Return the usual measures, kappa by formula, and the shares of capacity that overheads take."""
    shares = result.ledger.frame["share"]
    return usual_measures(result) | {
        "kappa_by_formula": result.kappa_by_formula,
        "context_switch": float(shares[Account.CONTEXT_SWITCH]),
        "migration": float(shares[Account.CHECKPOINT] + shares[Account.RESTART]),
        "blocked": float(shares[Account.BLOCKED]),
    }


def tables(runs: Runs) -> list[Grid]:
    factors, rows = runs.distinct("factor"), []
    for policy, charge in dict.fromkeys((row["policy"], row["charge"]) for row in runs.rows):
        of_all = runs.at(policy=policy, charge=charge)
        apart = max(abs(row["kappa_by_formula"] - row["kappa"]) for row in of_all.rows)
        here = max((of_all.at(factor=factor) for factor in factors), key=lambda one: one.interval("rho").mean)
        rho, kappa, formula = (here.interval(name) for name in ("rho", "kappa", "kappa_by_formula"))
        rows.append(
            [
                policy.upper() if charge == "none" else f"{policy.upper()}, {charge}",
                f"x {here.distinct('factor')[0]:.1f}",
                rho.shown(share),
                share(1 - rho.mean),
                formula.shown(share),
                kappa.shown(share),
                f"{apart:.0e}",
                share(1 - rho.mean - kappa.mean),
                *(share(here.interval(name).mean) for name in OVERHEADS),
            ]
        )
    headings = [
        "", "run times", "highest ρ", "1 - ρ", "κ by eq. (2) or (3)", "κ by ledger", "largest difference, any run",
        "no job waits", "context switch", "checkpoint, restart", "blocked",
    ]  # fmt: skip
    title = "Loss of capacity at the highest utilization ± 95 % interval; all numbers but the difference are shares of capacity"
    return [Grid(f"{title}; CS = {SWITCH:.0%}, C = {COST_S:.0f} s, {size_of(runs)}", headings, rows)]


def figure(runs: Runs) -> Figure:
    picture = Figure(figsize=(11, 5), layout="constrained")
    panels = picture.subplots(1, 2, sharex=True, sharey=True)
    styles = policy_styles([*SPACE_SHARING, *TIME_SHARING])
    for axes, charge in zip(panels, CHARGES, strict=True):
        for policy in (*SPACE_SHARING, *TIME_SHARING):
            here = runs.at(policy=policy, charge="none" if policy in SPACE_SHARING else charge)
            draw_curve(axes, here, "kappa", style=styles[policy], label=policy.upper())
        label_axes(axes, "utilization ρ", "loss of capacity κ" if charge == CHARGES[0] else "")
        axes.set_title("switches paid in every slice, eq. (3)" if charge == "every-slice" else "switches paid on change")
    low, high = panels[0].get_xlim()
    for axes in panels:
        axes.axline((1, 0), slope=-1, color="0.4", linestyle=":", linewidth=1, label="κ = 1 − ρ")
    panels[0].set_xlim(low, high)
    panels[0].set_ylim(bottom=0)
    handles, labels = panels[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    picture.suptitle(f"Loss of capacity; CS = {SWITCH:.0%}, C = {COST_S:.0f} s, {size_of(runs)}; bands are 95 % intervals")
    return picture


def main(argv: Sequence[str] | None = None) -> None:
    options = options_of(__doc__, study="capacity_loss", replications=2).parse_args(argv)
    runs = runs_of(options, points(options), measure)
    report(options, runs, tables(runs), figure)


if __name__ == "__main__":
    main()
