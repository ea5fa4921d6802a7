"""When does it pay to save the work of jobs that PV-EASY preempts, instead of killing them?

004 (004_55d19449f9d7d838.txt, section 6) kills and leaves the other modes to a time when "operation cost will decrease".  Here:
PV-EASY with mode kill, checkpoint and suspend, by what it costs to save a job and to fetch it back.

    python scenarios/preemption_mode.py                     a small study on the embedded workload
    python scenarios/preemption_mode.py --trace CTC-SP2-1996-3.1-cln.swf.gz --nodes 430 --full --figure preemption_mode.png

At a cost of c seconds the machine takes c for a checkpoint, c for a restart and c for a context switch.  A checkpoint is c to
save and c to fetch; so is suspension if the job goes on where it was, and elsewhere c to suspend and 2 c to move.  Memory has
room for every suspended job.  Killing does not depend on c.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from paper_004 import AS_RECORDED, UNCUT, count, draw_line
from reporting import Grid, Runs, interval, label_axes, refusing_in_one_line, report, three_digits, use_log_scale, whole
from traces import Point, mark_of, options_of, runs_of, size_of

from clustermodel import Account, Checkpointing, ContextSwitch, Result, TimeSlicing, Workload, delays_by_later_jobs
from clustermodel.figures.style import BLUE, PURPLE, SKY, policy_colour

COSTS_S: Final = (0, 10, 60, 300, 900, 1800, 3600)
SMALL_COSTS_S: Final = (0, 60, 900, 3600)
KILL: Final = "kill"
SAVING: Final = {"checkpoint": "checkpoint", "suspend": "suspend"}
"""Modes by what the tables call them."""
STYLES: Final[Mapping[str, Mapping[str, str]]] = {
    KILL: {"color": policy_colour("pv-easy"), "linestyle": "--"},
    "checkpoint": {"color": BLUE, "marker": "o"},
    "suspend": {"color": PURPLE, "marker": "s"},
}
STORE_STYLE: Final = {"color": SKY, "marker": "^"}
SPENT: Final = {
    "lost": (Account.LOST,),
    "saving and fetching": (Account.CHECKPOINT, Account.RESTART, Account.CONTEXT_SWITCH),
    "waiting for the store": (Account.BLOCKED,),
}
"""Capacity that preemption takes, by accounts of the ledger."""
CRITERIA: Final = {"mbs": "MBS", "mwbs": "MWBS", "response_s": "mean response", "taken": "capacity"}
"""By what the modes are compared."""


def machine(cost_s: float, store: int | None = None) -> dict[str, Any]:
    """Return fields of a machine on which saving and fetching take ``cost_s`` each."""
    return {
        **AS_RECORDED,
        "checkpointing": Checkpointing(checkpoint_s=cost_s, restart_s=cost_s, max_tasks_per_slice=store),
        "context_switch": ContextSwitch(seconds=cost_s),
        "time_slicing": TimeSlicing(quantum_s=1e6),  # a context switch is shorter than a slice; there are no slices here
    }


def points(options: argparse.Namespace) -> list[Point]:
    costs = COSTS_S if options.full else SMALL_COSTS_S
    made = [Point(at={"mode": KILL, "cost_s": 0}, policy="pv-easy", machine=AS_RECORDED)]
    modes = [(name, mode, None) for name, mode in SAVING.items()]
    if options.store:
        modes.append((f"checkpoint, a store of {options.store} tasks", "checkpoint", options.store))
    for name, mode, store in modes:
        made += [
            Point(at={"mode": name, "cost_s": cost}, policy=f"pv-easy:mode={mode}", machine=machine(cost, store))
            for cost in costs
        ]
    return made


def measure(result: Result, _: Workload) -> dict[str, float | None]:
    """Return what jobs see, what capacity preemption takes, and what later jobs delay."""
    summary, ledger = result.summary(), result.ledger
    delays = delays_by_later_jobs(result.records, ledger.nodes)
    taken = {
        name: sum(sum(ledger.amount(account)) for account in accounts) / ledger.capacity for name, accounts in SPENT.items()
    }
    return {
        "mbs": summary.mean_bounded_slowdown,
        "mwbs": summary.mean_weighted_bounded_slowdown,
        "wait_s": summary.mean_wait_s,
        "response_s": summary.mean_response_s,
        **taken,
        "taken": sum(taken.values()),
        "preempted": summary.preempted,
        "times": summary.mean_killed_times,
        "delayed": summary.delayed,
        "delays_h": float(delays.sum()) / 3600,
        "longest_delay_s": summary.longest_delay_by_later_s,
        "violations": summary.reservation_violations,
    }


def killed(runs: Runs) -> Runs:
    return runs.at(mode=KILL)


def saving_modes(runs: Runs) -> list[str]:
    return [mode for mode in runs.distinct("mode") if mode != KILL]


def curve_of(runs: Runs, mode: str, measure: str) -> list[float]:
    """Return the means of a mode's measure, by cost."""
    here = runs.at(mode=mode)
    return [here.at(cost_s=cost).interval(measure).mean for cost in here.distinct("cost_s")]


def break_even(costs: Sequence[float], means: Sequence[float], killed: float) -> str:
    """Return the first cost at which a mode is no longer better than killing, interpolated between the costs that were run."""
    above = [mean - killed for mean in means]
    if above[0] >= 0:
        return "at no cost"
    for (cost, dearer), (here, there) in zip(pairwise(costs), pairwise(above), strict=True):
        if there >= 0:
            return f"{cost + (dearer - cost) * here / (here - there):,.0f} s"
    return "not in this range"


def tables(runs: Runs) -> list[Grid]:
    where = f"{UNCUT}, {size_of(runs)}"
    columns: tuple[tuple[str, str, Callable[[float], str]], ...] = (
        ("MBS", "mbs", three_digits),
        ("MWBS", "mwbs", three_digits),
        ("mean wait (s)", "wait_s", three_digits),
        ("mean response (s)", "response_s", three_digits),
        *((f"{name} (% of capacity)", name, hundredths) for name in SPENT),
        ("preempted", "preempted", count),
        ("times each", "times", lambda value: f"{value:.2f}"),
        ("delayed", "delayed", count),
        ("delays by later jobs (h)", "delays_h", three_digits),
        ("longest (s)", "longest_delay_s", count),
        ("violations", "violations", count),
    )
    rows = []
    for mode in runs.distinct("mode"):
        for cost in runs.at(mode=mode).distinct("cost_s"):
            here = runs.at(mode=mode, cost_s=cost)
            label = mode if mode == KILL else f"{mode}, {cost:,} s"
            rows.append([label, *(here.interval(name).shown(number) for _, name, number in columns)])
    grids = [Grid(f"PV-EASY by mode and cost, {where}", ["mode", *(heading for heading, *_ in columns)], rows)]
    rows = []
    for mode in saving_modes(runs):
        costs = runs.at(mode=mode).distinct("cost_s")
        cells = [break_even(costs, curve_of(runs, mode, name), killed(runs).interval(name).mean) for name in CRITERIA]
        rows.append([mode, *cells])
    title = f"Cost up to which a mode is better than killing, linear between the costs that were run, {where}"
    grids.append(Grid(title, ["mode", *CRITERIA.values()], rows))
    return grids


def hundredths(fraction: float) -> str:
    """Write a share of capacity in per cent, without the sign."""
    return f"{100 * fraction:.2f}"


def figure(runs: Runs) -> Figure:
    picture = Figure(figsize=(11, 8), layout="constrained")
    panels = picture.subplots(2, 2, sharex=True)
    shown = (
        ("mbs", "MBS", 1.0),
        ("mwbs", "MWBS", 1.0),
        ("taken", "capacity lost or spent on saving (%)", 100.0),
        ("delays_h", "delays by later jobs, all together (h)", 1.0),
    )
    longest = max(runs.distinct("cost_s"))
    for axes, (name, title, scale) in zip(panels.flat, shown, strict=True):
        for mode in runs.distinct("mode"):
            here = runs.at(mode=mode)
            costs = here.distinct("cost_s")
            curve = [interval(scale * here.at(cost_s=cost).values(name)) for cost in costs]
            if mode == KILL:
                costs, curve = [0, longest], curve * 2
            draw_line(axes, costs, curve, label=mode, **STYLES.get(mode, STORE_STYLE))
        label_axes(axes, "cost of saving, and of fetching (s)" if axes in panels[1] else "", title)
        axes.set_xscale("symlog", linthresh=10)
        axes.set_xticks(COSTS_S, [f"{cost}" if cost != 1800 else "" for cost in COSTS_S])  # there is no room for that label
        axes.set_xlim(left=0)
        if name in ("mbs", "mwbs"):
            use_log_scale(axes)
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter("")
        else:
            axes.set_ylim(bottom=0)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    bands = "; bands: 95 % intervals" if len(runs.distinct("replication")) > 1 else ""
    picture.suptitle(f"PV-EASY, {UNCUT}, {size_of(runs)}{bands}")
    return picture


@refusing_in_one_line
def main(argv: Sequence[str] | None = None) -> None:
    parser = options_of(__doc__, study="preemption_mode", replications=10)
    parser.add_argument("--store", type=whole, metavar="Q", help="checkpoint also into a store that takes Q tasks at a time")
    options = parser.parse_args(argv)
    runs = runs_of(options, points(options), measure)
    report(options, runs, tables(runs), figure, mark=mark_of(runs))


if __name__ == "__main__":
    main()
