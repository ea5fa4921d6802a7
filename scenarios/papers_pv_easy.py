"""The tables and figures of 004 (PV-EASY) beside ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import illustrations
import pandas as pd
import trace_facts
from matplotlib.figure import Figure
from paper_004 import UNCUT
from paper_entries import BLUE, CTC, KTH, Entry, stored
from prediction_error import POLICIES
from pv_easy import COMPARED, COSTS, PAPER, WIDTHS, Numbers, at, count, hours, minutes, paper_costs, shown, two_digits
from reporting import Grid

from clustermodel import bars, curves

RERUN: Final = "\n$ ".join(f"python scenarios/pv_easy.py {trace} --full --replications 1" for trace in (CTC, BLUE, KTH))
RERUN_ERRORS: Final = "\n$ ".join(f"python scenarios/prediction_error.py {trace} --full" for trace in (CTC, KTH))
MBS: Final = "mean_bounded_slowdown"
MWBS: Final = "mean_weighted_bounded_slowdown"
TRACES: Final = {"CTC-SP2": "pv_easy_ctc", "SDSC-BLUE": "pv_easy_blue", "KTH-SP2": "pv_easy_kth"}
"""Names of the traces and of the stored runs."""


def _table() -> pd.DataFrame:
    """Return the runs of 004's three policies with run times as recorded, on all traces."""
    parts = []
    for trace, name in TRACES.items():
        table = stored(name).at(run_times=UNCUT).frame().assign(trace=trace)
        parts.append(table[table["policy"].isin(COMPARED)])
    return pd.concat(parts)


def blocked(measure: str) -> Figure:
    """Return figure 2 or 3: a measure of big and of small blocked jobs."""
    table = _table()
    parts = [
        table[["trace", "policy", "replication"]].assign(
            **{measure: table[f"{width}_blocked_{measure.removeprefix('mean_')}"], "blocked jobs": name}
        )
        for width, name in WIDTHS.items()
    ]
    return _titled(
        bars(pd.concat(parts), y=measure, x="blocked jobs", panels="trace", share_y=False),
        "big: more than a quarter of the machine",
    )


def overall(measure: str) -> Figure:
    """Return figure 5 or 6: a measure of all jobs."""
    return _titled(bars(_table(), y=measure, panels="trace", share_y=False), "all jobs")


def by_error() -> Figure:
    """Return figure 4: both measures against the maximum error of the predictions."""
    parts = [
        stored(f"prediction_error_{name}").frame().assign(trace=trace)
        for trace, name in (("CTC-SP2", "ctc"), ("KTH-SP2", "kth"))
    ]
    table = pd.concat(parts)
    table = table[table["error"].notna() & table["policy"].isin(POLICIES)]
    error = "maximum error of the prediction (%)"
    table[error] = 100 * table["error"].astype(float)
    return _titled(curves(table, y=[MBS, MWBS], x=error, panels="trace", share_y=False), "all jobs, bands are 95 % intervals")


def _titled(picture: Figure, who: str) -> Figure:
    picture.suptitle(f"{UNCUT}; {who}", fontsize="medium")
    return picture


def _beside(title: str, policy: str, cells: dict[str, tuple[Callable[[Numbers], str], str, Callable[[float], str]]]) -> Grid:
    """Return a table of 004's numbers and ours for the traces that both have.

    Args:
        title: of the table.
        policy: whose.
        cells: by heading: how to write 004's number, the column of ours, and how it is written.
    """
    rows = []
    for trace, name in TRACES.items():
        if trace in PAPER:
            rows.append([f"{trace}, 004", *(theirs(PAPER[trace]) for theirs, *_ in cells.values())])
        runs = at(stored(name), policy)
        rows.append([trace, *(shown(runs, column, number) for _, column, number in cells.values())])
    return Grid(f"{title}, {policy}, {UNCUT}", ["trace", *cells], rows)


def delayed() -> Grid:
    """Return table 1."""
    return _beside(
        "Table 1", "EASY",
        {
            "delayed": (lambda paper: count(paper.delayed), "delayed", count),
            "blocked": (lambda paper: count(paper.blocked_easy), "blocked", count),
            "mean delay": (lambda paper: f"{paper.mean_delay_min:.2f} min", "mean_delay_by_later_s", minutes),
            "longest": (lambda paper: f"{paper.longest_delay_h:.2f} h", "longest_delay_by_later_s", hours),
        },
    )  # fmt: skip


def violated() -> Grid:
    """Return table 2."""
    return _beside(
        "Table 2", "EASY-Last",
        {
            "violations": (lambda paper: count(paper.violations), "reservation_violations", count),
            "mean nodes": (lambda paper: two_digits(paper.violation_nodes), "mean_violation_nodes", two_digits),
            "mean DTR": (lambda paper: f"{paper.mean_violation_min:.2f} min", "mean_violation_s", minutes),
            "mean SI": (lambda paper: two_digits(paper.mean_increment), "mean_slowdown_increment", two_digits),
            "longest DTR": (lambda paper: f"{paper.longest_violation_h:.2f} h", "longest_violation_s", hours),
            "largest SI": (lambda paper: two_digits(paper.largest_increment), "largest_slowdown_increment", two_digits),
        },
    )  # fmt: skip


def backfilled() -> Grid:
    """Return table 4."""
    rows = []
    for trace, name in TRACES.items():
        if trace in PAPER:
            paper = PAPER[trace]
            numbers = paper.backfilled_easy, paper.backfilled_pv, paper.blocked_easy, paper.blocked_pv
            rows.append([f"{trace}, 004", *map(count, numbers)])
        runs = [at(stored(name), policy) for policy in ("EASY", "PV-EASY")]
        rows.append([trace, *(shown(one, column, count) for column in ("backfilled", "blocked") for one in runs)])
    headings = ["trace", "backfilled, EASY", "backfilled, PV-EASY", "blocked, EASY", "blocked, PV-EASY"]
    return Grid(f"Table 4, {UNCUT}", headings, rows)


def costs(title: str, *columns: str) -> Grid:
    """Return table 5 or 6: some of what preemption costs."""

    def theirs(column: str, number: Callable[[float], str]) -> Callable[[Numbers], str]:
        return lambda paper: number(paper_costs(paper)[column])

    cells = {name: (theirs(column, number), column, number) for name, column, number in COSTS if column in columns}
    return _beside(title, "PV-EASY", cells)


_PAGE: Final = "pv_easy.md#strict-fairness-tables-1-2-4-to-6-figures-2-3-5-6"
_TRACES: Final = "SDSC-DS is not among our traces; KTH-SP2 is beside them."
ENTRIES_004: Final = (
    Entry(
        "004", "figure", 1, "what an underestimate does",
        "(a), (b): Job 1 is underestimated, so job 3 is not backfilled: six squares are wasted instead of four, and job 2 "
        "starts at 2, not at 1 as promised.  (c): Job 5 is thought to take four time units instead of six, and is backfilled; "
        "job 2 cannot start at 5 as promised.",
        "The same, with jobs of ours and predictors that are wrong about one job.",
        picture=illustrations.underestimate,
        alt="Three Gantt charts: with users' estimates, with job 1 and with job 5 underestimated",
        more="pv_easy.md#running-it",
    ),
    Entry(
        "004", "figure", 2, "MBS of blocked jobs",
        "Big blocked jobs mostly fare better under PV-EASY than under EASY, small ones do not.",
        "So it is on CTC-SP2.  EASY-Last is beside them.", picture=lambda: blocked(MBS),
        alt="MBS of big and small blocked jobs on three traces",
        differs=f"On SDSC-BLUE all fare worse, and on KTH-SP2 big ones fare worse and small ones better.  {_TRACES}",
        more=_PAGE, rerun=RERUN,
    ),
    Entry(
        "004", "figure", 3, "MWBS of blocked jobs",
        "Big blocked jobs fare better under PV-EASY than under EASY weighted by size, too, small ones do not.",
        "So it is on CTC-SP2.  EASY-Last is beside them.", picture=lambda: blocked(MWBS),
        alt="MWBS of big and small blocked jobs on three traces",
        differs=f"On SDSC-BLUE all fare worse, and on KTH-SP2 big ones do.  {_TRACES}", more=_PAGE, rerun=RERUN,
    ),
    Entry(
        "004", "figure", 4, "prediction errors",
        "PV-EASY is better than FCFS-EASY and SJF-EASY from a maximum error of 10 % on, in MBS and MWBS.",
        "PV-EASY is better than FCFS-EASY in MWBS from an error of 40 % on; in MBS it is on KTH-SP2 at all errors, on CTC-SP2 "
        "up to 40 %.  Two traces, ten seeds as in the paper.",
        picture=by_error,
        alt="MBS and MWBS of PV-EASY, FCFS-EASY and SJF-EASY against the maximum error of predictions, on two traces",
        differs=f"SJF-EASY is better than PV-EASY up to an error of 20 %, and on CTC-SP2 at all of them in MBS.  SDSC-BLUE is "
        f"left out.  {_TRACES}",
        more="pv_easy.md#prediction-errors-figure-4", rerun=RERUN_ERRORS,
    ),
    Entry(
        "004", "figure", 5, "MBS of all jobs",
        "PV-EASY is better than EASY on SDSC-BLUE and similar on the others; EASY-Last is the worst.",
        "EASY-Last is worse than EASY on every trace, and the worst on SDSC-BLUE and KTH-SP2.",
        picture=lambda: overall(MBS), alt="MBS of PV-EASY, EASY and EASY-Last on three traces",
        differs="PV-EASY is worse than EASY on every trace here, and than EASY-Last on CTC-SP2; with perfect predictions it is "
        f"better than EASY.  {_TRACES}",
        more=_PAGE, rerun=RERUN,
    ),
    Entry(
        "004", "figure", 6, "MWBS of all jobs", "As figure 5, weighted by size.", "EASY-Last is the worst on every trace.",
        picture=lambda: overall(MWBS), alt="MWBS of PV-EASY, EASY and EASY-Last on three traces",
        differs="PV-EASY is worse than EASY on every trace here; with perfect predictions it is better on CTC-SP2 and "
        f"KTH-SP2.  {_TRACES}",
        more=_PAGE, rerun=RERUN,
    ),
    Entry(
        "004", "table", 1, "jobs delayed by later ones", "How many blocked jobs EASY delays, and by how long.",
        "EASY is not fair here either.", grid=delayed,
        differs=f"EASY delays nearly three times as many jobs, each by less; why is not explained.  {_TRACES}",
        more=_PAGE, rerun=RERUN,
    ),
    Entry(
        "004", "table", 2, "reservation violations", "How many promises EASY breaks with the Last Model, and by how much.",
        "It breaks many, and PV-EASY none.", grid=violated,
        differs=f"It breaks eight to twelve times as many, of narrower jobs; 004 does not say which promise counts.  {_TRACES}",
        more=_PAGE, rerun=RERUN,
    ),
    Entry(
        "004", "table", 3, "the traces", "Processors, jobs, load, parallelism and run time of three traces.",
        "Two of the traces, and KTH-SP2.", grid=lambda: trace_facts.tables(stored("trace_facts"))[0],
        differs=f"Jobs without a run time are left out; of SDSC-BLUE 004 has fewer.  {_TRACES}",
        more="pv_easy.md#004-beside-ours",
        rerun=f"python scenarios/trace_facts.py --traces {CTC.split()[1]}:{CTC.split()[3]} {BLUE.split()[1]}:{BLUE.split()[3]}",
    ),
    Entry(
        "004", "table", 4, "jobs backfilled and blocked", "PV-EASY backfills fewer jobs than EASY and blocks more.",
        "The same on all traces.", grid=backfilled,
        differs="EASY blocks more jobs and backfills fewer than in 004; more generous readings of EASY come near its counts on "
        f"CTC-SP2 ([details](pv_easy.md#other-readings)).  {_TRACES}",
        more=_PAGE, rerun=RERUN,
    ),
    Entry(
        "004", "table", 5, "load of PV-EASY", "Total load, and what of it is wasted.", "Within one per cent of capacity.",
        grid=lambda: costs("Table 5", "total_load", "wasted_load"), differs=_TRACES, more=_PAGE, rerun=RERUN,
    ),
    Entry(
        "004", "table", 6, "jobs preempted", "How many jobs are preempted, how often, and what it costs them.",
        "Shares of jobs, MKT and RTW are the paper's within two points or 0.1.",
        grid=lambda: costs("Table 6", "preempted", "preempted_rate", "mean_killed_times", "runtime_waste"),
        differs=_TRACES, more=_PAGE, rerun=RERUN,
    ),
)  # fmt: skip
