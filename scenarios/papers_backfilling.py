"""The tables and figures of 003 (randomization, speculation and adaptation) beside ours."""

from __future__ import annotations

from typing import Final

import adaptation
import illustrations
import pandas as pd
import queue_order
from algorithms import CONSERVATIVE
from matplotlib.figure import Figure
from paper_entries import CTC, Entry, stored
from reporting import Grid
from shapes import SHAPES
from traces import size_of

from clustermodel import bars, curves
from clustermodel.figures.run_tables import improved, improvement_label
from clustermodel.policies.queue_order import CRITERIA

RERUN: Final = f"python scenarios/{{}}.py {CTC} --full"
RERUN_ORDER: Final = f"python scenarios/queue_order.py {CTC} --narrow 2 --full --replications 3"
SLOWDOWN: Final = "mean_bounded_slowdown_perkovic"
WAIT: Final = "mean_wait_s"
RESPONSE: Final = "mean_response_s"


def titled(picture: Figure, study: str) -> Figure:
    """Return a figure whose title says what was simulated."""
    picture.suptitle(f"{size_of(stored(study))}; 95 % intervals where seeds differ", fontsize="medium")
    return picture


def twelve_algorithms() -> Figure:
    """Return figure 3."""
    table = stored("queue_order_ctc").frame(slowdown=SLOWDOWN)
    return titled(bars(table, y=[SLOWDOWN, WAIT], by="algorithm"), "queue_order_ctc")


def by_shape() -> Figure:
    """Return figure 4."""
    table = stored("queue_order_ctc").frame()
    parts = [
        table[["algorithm", "replication"]].assign(**{SLOWDOWN: table[f"slowdown_{shape}"], "shape": shape}) for shape in SHAPES
    ]
    return titled(bars(pd.concat(parts), y=SLOWDOWN, by="algorithm", panels="shape"), "queue_order_ctc")


def speculation(*, tests: bool) -> Figure:
    """Return figure 5, or 6 with test runs: slowdown, and improvement on the algorithm without speculation or test runs."""
    table = stored("speculation_ctc").frame(slowdown=SLOWDOWN)
    share = "speculation (% of the estimate)"
    table[share] = 100 * table["percentage"].astype(float)
    before, after = "no test runs", "test runs"
    table["way"] = [after if test else before for test in table["test_runs"]]
    parts = []
    for part, rows in table[table[share].notna()].groupby(share):
        if tests:
            pairs, base = rows, before
        else:
            base = "no speculation"
            pairs = pd.concat([rows[rows["way"] == before], table[table[share].isna()].assign(way=base)])
        found = improved(pairs, y=SLOWDOWN, baseline=base, at="algorithm", by="way")
        parts.append(found.assign(**{share: part}))
    column = improvement_label(SLOWDOWN, base)
    return titled(curves(pd.concat(parts), y=[SLOWDOWN, column], x=share, by="algorithm"), "speculation_ctc")


def adapted(name: str, *columns: str) -> Figure:
    """Return figure 7, 8 or 9: how much less than under conservative backfilling."""
    runs = stored("adaptation_ctc")
    techniques = adaptation.shown_techniques(runs, name)
    table = runs.frame(slowdown=SLOWDOWN)
    base = "conservative"
    chosen = table[table["technique"].isin(techniques)]
    before = table[(table["technique"] == "as asked") & (table["algorithm"] == CONSERVATIVE)]
    rows = pd.concat([chosen.assign(who=chosen["algorithm"] + ": " + chosen["technique"]), before.assign(who=base)])
    found = improved(rows, y=columns, baseline=base, by="who")
    labels = [improvement_label(column, base) for column in columns]
    return titled(bars(found, y=labels, x="technique", by="algorithm"), "adaptation_ctc")


def _grid(which: int) -> Grid:
    return queue_order.tables(stored("queue_order_ctc"))[which]


def _algorithms() -> Grid:
    theirs = ("BF", *CRITERIA[1:])
    rows = [[one, criterion, criterion, f"{criterion}-NG"] for one, criterion in zip(theirs, CRITERIA, strict=True)]
    return Grid("Names of the algorithms", ["003", "sorting criterion", "ours, with guarantees", "ours, without"], rows)


_FLURRY: Final = "The cleaned trace lacks a flurry of short serial jobs with long estimates, which explains a part."
_PAGE: Final = "backfilling.md"
ENTRIES_003: Final = (
    Entry(
        "003", "figure", 1, "a backfilling scheduler",
        "The new job is promised a start at 7, and starts at 2 on three nodes if job A ends after one second instead of two.",
        "The same: A is job 1, the new job is job 5, and job 4 moves up, too.  The jobs are ours, of sizes for which this "
        "happens.",
        picture=illustrations.guarantee, alt="Two Gantt charts: job 5 starts at 7, and at 2 if job 1 ends early",
        more="model.md",
    ),
    Entry(
        "003", "figure", 2, "flow chart of the optimizations", "In which order a scheduling pass goes through its phases.",
        impossible="A flow chart shows no data.  The [page on backfilling](backfilling.md#assembling-a-scheduler) has in words "
        "what a pass does.",
    ),
    Entry(
        "003", "figure", 3, "the twelve algorithms",
        "No guarantees are better for all orders but that of arrival; R/L-NG is the best, with 77 % less slowdown and "
        "65 % less delay than conservative backfilling.",
        "All that the paper's text says of their order holds.  Delays (mean waits) are reduced as in the paper, within two "
        "points.",
        grid=lambda: _grid(4), picture=twelve_algorithms, alt="Bounded slowdown and delay of twelve algorithms",
        differs=f"Slowdowns are reduced less.  {_FLURRY}",
        more=f"{_PAGE}#queue-order-and-guarantees-figures-3-and-4", rerun=RERUN_ORDER,
    ),
    Entry(
        "003", "figure", 4, "the twelve algorithms by shape of jobs",
        "All four shapes are improved, long-wide jobs least.", "The same for R/L-NG and P/L-NG.",
        picture=by_shape, alt="Bounded slowdown of twelve algorithms for four shapes of jobs",
        differs="D-NG improves no shape, and 1/L all but long-wide jobs.",
        more=f"{_PAGE}#queue-order-and-guarantees-figures-3-and-4", rerun=RERUN_ORDER,
    ),
    Entry(
        "003", "figure", 5, "speculation",
        "Slowdowns tend to be smaller with smaller speculation percentages.",
        "So they do for D, 1/L and 1/L-NG.  Here and in figures 6 to 9 four of the twelve algorithms are run.",
        picture=lambda: speculation(tests=False),
        alt="Bounded slowdown and improvement by speculation against the speculation percentage",
        differs="R/L-NG is not improved: what speculation would find it starts soon anyway.",
        more=f"{_PAGE}#speculation-figures-5-and-6", rerun=RERUN.format("speculation"),
    ),
    Entry(
        "003", "figure", 6, "speculation with test runs",
        "Test runs improve speculation significantly, most at large percentages; with them larger percentages are slightly "
        "better for all algorithms.",
        "The same.", picture=lambda: speculation(tests=True),
        alt="Bounded slowdown with test runs and improvement by them against the speculation percentage",
        differs="At 10 % the improvement of R/L-NG is less than its interval is wide.",
        more=f"{_PAGE}#speculation-figures-5-and-6", rerun=RERUN.format("speculation"),
    ),
    Entry(
        "003", "figure", 7, "half-sized and quarter-sized jobs",
        "Large improvements of slowdown and delay; response times are significantly longer.", "The same.",
        picture=lambda: adapted("Figure 7", SLOWDOWN, WAIT, RESPONSE),
        alt="How much less slowdown, delay and response are than under conservative backfilling, at half and quarter size",
        more=f"{_PAGE}#adaptation-figures-7-to-9", rerun=RERUN.format("adaptation"),
    ),
    Entry(
        "003", "figure", 8, "greedy adaptation",
        "The choice between size as asked, half and double.  The best greedy algorithm, with quarter instead of double size "
        "and restrictions for long jobs, only matches half size, and is slightly worse than quarter size.",
        "Double size and quarter size.  The best of all, R/L-NG with quarter size, matches it with half size, and is slightly "
        "worse than with quarter size (figure 7).",
        picture=lambda: adapted("Figure 8", SLOWDOWN, WAIT, RESPONSE),
        alt="How much less slowdown, delay and response are than under conservative backfilling, with greedy adaptation",
        differs="With double size all but R/L-NG have larger slowdowns than conservative backfilling, and with quarter size "
        "they do not come up to half size.  The restrictions are not described, and not made.",
        more=f"{_PAGE}#adaptation-figures-7-to-9", rerun=RERUN.format("adaptation"),
    ),
    Entry(
        "003", "figure", 9, "half size, widening and speculation",
        "Slowdowns of around 15 % of conservative backfilling's; the delay of R/L-NG is 21 % of it.",
        "With half size and speculation the delay of R/L-NG is 22 % of it, and slowdowns come down to less than a quarter.  "
        "Delays are beside what the paper's figure shows, and so is widening to twice the nodes asked for.",
        picture=lambda: adapted("Figure 9", SLOWDOWN, WAIT, RESPONSE),
        alt="How much less slowdown, delay and response are than under conservative backfilling, for combined techniques",
        differs=f"Slowdowns are reduced less, and widening alone brings little for them.  {_FLURRY}",
        more=f"{_PAGE}#adaptation-figures-7-to-9", rerun=RERUN.format("adaptation"),
    ),
    Entry(
        "003", "table", 1, "the trace", "CTC SP2, 430 nodes, 79,302 jobs.",
        "The cleaned trace of the archive.",
        grid=lambda: _grid(0),
        differs="What is missing has been cleaned away; most of it was one flurry of serial jobs, without which median "
        "parallelism is larger.",
        more=f"{_PAGE}#queue-order-and-guarantees-figures-3-and-4", rerun=RERUN_ORDER,
    ),
    Entry(
        "003", "table", 2, "the trace by shape of jobs", "Jobs and mean overestimation of four shapes.",
        "Two shapes have the paper's numbers of jobs exactly, with shapes by median parallelism and median estimate.",
        grid=lambda: _grid(1),
        differs="The flurry was of long-narrow jobs.  The paper's caption says median overestimation factor instead of "
        "estimate.  It also counts jobs without a run time, 23, 2, 108 and 1, which we do not.",
        more=f"{_PAGE}#what-the-cleaned-trace-lacks", rerun=RERUN_ORDER,
    ),
    Entry(
        "003", "table", 3, "guaranteed and actual delay", "Guarantees say little about when jobs start.",
        "They say as little.", grid=lambda: _grid(2),
        more=f"{_PAGE}#queue-order-and-guarantees-figures-3-and-4", rerun=RERUN_ORDER,
    ),
    Entry(
        "003", "table", 4, "the algorithms", "Six sorting criteria; names without guarantees end in -NG.",
        "The same names, but for BF, which is the name of 002's policy.", grid=_algorithms, more="api.md",
    ),
)  # fmt: skip
