"""The tables and figures of 000 and 001 (slack-based backfilling) beside ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import illustrations
import slack_factor
import slack_kth
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from paper_entries import KTH, Entry, rows_of, stored
from reporting import Grid, Runs
from slack_kth import PAPER_FACTORS, PAPER_GAPS, PAPER_HEURISTICS, PAPER_MONTHS
from slack_runs import gain, log_of

RERUN: Final = f"python scenarios/slack_kth.py --full {KTH}"
RERUN_FACTORS: Final = f"python scenarios/slack_factor.py --full {KTH}"
MONTHS, UNEQUAL, FACTORS, GAPS, AFRESH, IN_PLACE = range(6)
"""The tables of :mod:`slack_kth`."""
_BASE, _SLACK, _ALL, _HIGH, _LOW = PAPER_MONTHS["year"]
_OTHER_LOG: Final = "The archive's KTH trace is a later conversion than the authors' log; our waits over the year are shorter."
_OWN_AWT: Final = "AWT is the mean wait under conservative backfilling in both, 2,401 s there"
_COMPUTED: Final = "Percentages in brackets are computed from the paper's waits."
_OWN_JOBS: Final = "The jobs are ours"


def _grid(which: int) -> Grid:
    return slack_kth.tables(stored("slack_kth"))[which]


def _months(which: int) -> Grid:
    """Return table 1 or 3 as the paper has it, in which every month is a run of its own."""
    grid = _grid(which)
    return rows_of(grid, *(label for label, *_ in grid.rows if label != slack_kth.IN_ONE_RUN))


def _drawn(draw: Callable[[Axes, Runs], None]) -> Figure:
    """Return a figure of one panel of the study of slack factors."""
    picture = Figure(figsize=(6, 3.8), layout="constrained")
    draw(picture.subplots(), stored("slack_factor"))
    picture.suptitle(log_of(stored("slack_factor")), fontsize="medium")
    return picture


ENTRIES_000: Final = (
    Entry(
        "000", "table", 1, "priority against conservative backfilling",
        f"Mean wait on KTH, by month; over the year {_BASE:,.0f} and {_SLACK:,.0f} s: {gain(_BASE, _SLACK)} shorter.",
        "Over the year the improvement is the paper's within two points, and no month is worse; the paper's numbers are in "
        "brackets.",
        grid=lambda: _months(MONTHS),
        differs=f"{_OTHER_LOG}  {_OWN_AWT}.  Single months differ by more than the year does.",
        more="slack.md#000-beside-ours", rerun=RERUN,
    ),
    Entry(
        "000", "table", 2, "wait by slack factor",
        f"Mean wait falls from {PAPER_FACTORS[1.0]:,} s at SF = 1 to {PAPER_FACTORS[9.0]:,} s at SF = 9, but for SF = 5; at "
        f"SF = 11 it is {PAPER_FACTORS[11.0]:,} s.",
        "It falls, too, is least at SF = 9 and a little longer at 11.  The curve is "
        "[figure 9 of 001](#001-figure-9-wait-by-slack-factor).",
        grid=lambda: _grid(FACTORS),
        differs=f"More of the benefit is there at SF = 1 already.  {_COMPUTED}",
        more="slack.md#slack-factor-and-gap", rerun=RERUN_FACTORS,
    ),
    Entry(
        "000", "table", 3, "priority for every fifth job",
        f"Every fifth job has UP = PP = 1 and waits {_HIGH:,.0f} s, the others {_LOW:,.0f} s; all jobs {_ALL:,.0f} s.",
        "Over the year every fifth job waits less than the others, and the mean wait of all jobs is longer than with equal "
        "priorities.",
        grid=lambda: _months(UNEQUAL),
        differs="The difference between the two is much smaller than the paper's, and in some months every fifth job waits "
        "longer; the mean of all rises less, too.  The paper's "
        "low-priority mean of November is misprinted.",
        more="slack.md#priorities-1", rerun=RERUN,
    ),
    Entry(
        "000", "table", 4, "wait by the gap in priority",
        f"Mean wait {PAPER_GAPS[0.0]:,.0f} s without a gap, {PAPER_GAPS[2.0]:,.0f} s at the largest; little more in between.",
        "As in the paper the largest gap costs most.  The curve is "
        "[figure 10 of 001](#001-figure-10-wait-by-the-gap-in-priority).",
        grid=lambda: _grid(GAPS),
        differs=f"The gaps in between even lower the mean wait here.  {_COMPUTED}",
        more="slack.md#slack-factor-and-gap", rerun=RERUN_FACTORS,
    ),
    Entry(
        "000", "table", 5, "five heuristics",
        f"All improve on conservative backfilling; mean waits from {PAPER_HEURISTICS['ast'][0]:,.0f} s (AST) to "
        f"{PAPER_HEURISTICS['du'][0]:,.0f} s (DU).  Unequal priorities cost 10.9 to 13.7 % of AST's wait "
        "with equal ones, for gaps of 289 to 339 s.",
        "With `remove=\"in-place\"` all improve, and with equal priorities their order is the paper's.",
        grid=lambda: [_grid(IN_PLACE), _grid(AFRESH)],
        differs="Improvements are up to four points from the paper's.  With unequal priorities every fifth job waits less with "
        "AST, AAT and DP only, and the gaps are smaller than the paper's.  With *remove* to the letter of the "
        "paper, which takes all jobs out first, only AST improves on conservative backfilling; the paper's simulator probably "
        "compressed instead.",
        more="slack.md#heuristics", rerun=RERUN,
    ),
)  # fmt: skip

_SAME: Final = "The numbers are those of"
ENTRIES_001: Final = (
    Entry(
        "001", "figure", 1, "a job and a schedule",
        "A job is a rectangle of processors and time.  J1 ends, J2 and J3 start, J4 waits.",
        f"The same, as a Gantt chart of a run.  {_OWN_JOBS}, and so are their numbers.",
        picture=illustrations.schedule, alt="Gantt chart of four jobs on four nodes: 1 ends, 2 and 3 start, 4 waits",
        more="tutorial.md#a-figure",
    ),
    Entry(
        "001", "figure", 2, "the two criteria of EASY",
        "J4 is backfilled because it ends by the shadow time, or because it needs no more than the extra nodes.",
        f"Job 4 comes at 1 s and starts at once, for the one reason and for the other.  {_OWN_JOBS}.",
        picture=illustrations.easy_criteria, alt="Two Gantt charts: job 4 is backfilled by criterion 1 and by criterion 2",
        more="model.md",
    ),
    Entry(
        "001", "figure", 3, "a profile with three queued jobs",
        "J1 and J2 run; J3, J4 and J5 wait in this order.",
        f"Jobs 3, 4 and 5 one after the other; figures 4 and 5 have the same jobs.  {_OWN_JOBS}.",
        picture=illustrations.profiles, alt="Three Gantt charts of the same five jobs: in order of arrival, EASY, conservative",
        more="model.md",
    ),
    Entry(
        "001", "figure", 4, "the profile under EASY",
        "When J1 ends J5 is backfilled; it does not delay J3, but J4; all is done sooner.",
        f"The same: job 5 starts at 2 s, job 4 is later, and the last end is earlier.  {_OWN_JOBS}.", with_picture_of=3,
        more="model.md",
    ),
    Entry(
        "001", "figure", 5, "the profile under conservative backfilling",
        "J5 cannot start, because it would delay J4; it starts at the end of the profile.",
        f"The same: job 5 starts when job 4 has ended.  {_OWN_JOBS}.", with_picture_of=3, more="model.md",
    ),
    Entry(
        "001", "figure", 6, "the profile of the cost example",
        "J1 and J2 are to start when J3 comes, which needs two processors for two seconds.",
        f"{_OWN_JOBS}, with the sizes that follow from the text of section 4.1.",
        picture=illustrations.cost_example,
        alt="Four Gantt charts: jobs 1 and 2, and the three schedules with job 3 and their prices",
        more="slack.md#how-it-decides",
    ),
    Entry(
        "001", "figure", 7, "the three schedules of the cost example",
        "J3 waits, J2 makes way or J1 does: 4, 2 and 4 processor seconds (section 4.1).",
        "The prices over the panels are computed by the package's own formulas, with equal priorities and full slack.  The "
        "jobs are those of figure 6; each panel is a run in which the job that makes way is submitted later.",
        with_picture_of=6, differs="Of the table of section 4.4 row 6 is misprinted; a unit test has all rows.",
        more="slack.md#how-it-decides",
    ),
    Entry(
        "001", "figure", 8, "how many schedules there are",
        "J4 can be inserted in front of three jobs, two, one or none: 6, 2, 1 and 1 orders to try.",
        f"A schedule with the same starts.  {_OWN_JOBS}, with the lengths that follow from section 4.5.",
        picture=illustrations.complexity_example,
        alt="Gantt chart of three jobs that take all nodes, and how many orders there are from each start on",
        more="slack.md#what-the-papers-leave-open",
    ),
    Entry(
        "001", "figure", 9, "wait by slack factor",
        "Larger slack factors improve the results modestly; at SF = 9 waits are 19.25 % shorter than under conservative "
        "backfilling.",
        "Ours, and in black table 2 of 000, which has the same caption.  SF below 1 and SF = 2 are ours alone.",
        picture=lambda: _drawn(slack_factor.draw_factors),
        alt="Mean wait against the slack factor, ours and 000's, with conservative backfilling's",
        differs=f"{_OTHER_LOG}  001 expects conservative backfilling at SF = 0; nobody is delayed there, but the waits are "
        "longer.",
        more="slack.md#slack-factor-and-gap", rerun=RERUN_FACTORS,
    ),
    Entry(
        "001", "figure", 10, "wait by the gap in priority",
        "Waits of all jobs by the gap; but for the largest they are very close to those without a gap.",
        "All jobs, every fifth, and the others; in black table 4 of 000, which has the same caption.",
        picture=lambda: _drawn(slack_factor.draw_gaps),
        alt="Mean wait against the gap in priority: all jobs, every fifth, the others, and 000's",
        differs="The largest gap costs less here than in the paper.", more="slack.md#slack-factor-and-gap", rerun=RERUN_FACTORS,
    ),
    Entry(
        "001", "table", 1, "priority against conservative backfilling",
        f"{_SAME} table 1 of 000.", "See [there](#000-table-1-priority-against-conservative-backfilling).",
        more="slack.md#000-beside-ours",
    ),
    Entry(
        "001", "table", 2, "priority for every fifth job",
        f"{_SAME} table 3 of 000.", "See [there](#000-table-3-priority-for-every-fifth-job).", more="slack.md#priorities-1",
    ),
    Entry(
        "001", "table", 3, "five heuristics",
        f"{_SAME} table 5 of 000.", "See [there](#000-table-5-five-heuristics).", more="slack.md#heuristics",
    ),
)  # fmt: skip
