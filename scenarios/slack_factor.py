"""How much slack is enough, and what does priority for some cost all?

Table 2 of 000 (000_abeb21d5b8b877d3.txt, section 3.2), which is figure 9 of 001: mean wait by slack factor SF, with what more
slack costs, the longest wait.  Table 4 (001, figure 10): mean wait by the gap in UP + PP between every fifth job and the rest.

    python scenarios/slack_factor.py                                              a small study of synthetic jobs
    python scenarios/slack_factor.py --full --trace ../shared/traces/KTH-SP2-1996-2.2.swf.gz

SF = 0 leaves no slack: then no job starts after the time it was first given, as under conservative backfilling.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from reporting import Grid, Runs, label_axes, refusing_in_one_line, report, three_digits
from slack_kth import CONSERVATIVE, PAPER_FACTORS, PAPER_GAPS, PAPER_MONTHS, beside
from slack_runs import KTH, WHOLE, Variant, fifth_wait, gain, log_of, mean_wait, of, options_of, other_wait, runs_of, seconds

from clustermodel.figures.style import policy_colour

FULL_FACTORS: Final = (0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 9.0, 11.0)
SMALL_FACTORS: Final = (0.0, 1.0, 3.0, 9.0)
FULL_GAPS: Final = (0.0, 0.5, 1.0, 1.5, 2.0)
SMALL_GAPS: Final = (0.0, 1.0, 2.0)


def variants(*, full: bool) -> list[Variant]:
    factors, gaps = (FULL_FACTORS, FULL_GAPS) if full else (SMALL_FACTORS, SMALL_GAPS)
    return [CONSERVATIVE, *(Variant(slack_factor=factor) for factor in factors), *(Variant(gap=gap) for gap in gaps if gap)]


def tables(runs: Runs) -> list[Grid]:
    known, log = runs.facts["log"] == KTH, log_of(runs)
    bracket = " [000]" if known else ""
    conservative, slack = of(runs, CONSERVATIVE), runs.at(policy="slack")
    base, theirs = mean_wait(conservative), PAPER_MONTHS["year"][0]
    rows = [["conservative", beside(base, theirs if known else None), "", *_costs(conservative)]]
    for factor in slack.at(gap=0.0).distinct("slack_factor"):
        mine = of(runs, Variant(slack_factor=factor))
        paper = PAPER_FACTORS.get(factor) if known else None
        shorter = gain(base, mean_wait(mine)) + (f" [{gain(theirs, paper)}]" if paper else "")
        rows.append([f"{factor:g}", beside(mean_wait(mine), paper), shorter, *_costs(mine)])
    headings = [
        "SF",
        "mean wait (s)",
        "shorter than conservative's by",
        "mean bounded slowdown",
        "longest wait (h)",
        "after bound",
    ]
    grids = [Grid(f"Table 2, by slack factor{bracket}, {log}", headings, rows)]
    rows = []
    equal = of(runs, Variant())
    for gap in slack.at(slack_factor=3.0).distinct("gap"):
        mine = of(runs, Variant(gap=gap))
        fifth, others = fifth_wait(mine), other_wait(mine)
        cells = (beside(mean_wait(mine), PAPER_GAPS.get(gap) if known else None), seconds(fifth), seconds(others))
        shorter = gain(fifth_wait(equal), fifth), gain(other_wait(equal), others)
        rows.append([f"{gap:g}", *cells, *shorter])
    headings = ["gap", "mean wait (s)", "every fifth (s)", "the others (s)", "every fifth shorter by", "the others shorter by"]
    grids.append(Grid(f"Table 4, by the gap in UP + PP{bracket}; shorter than with equal priorities, {log}", headings, rows))
    return grids


def _costs(runs: Runs) -> list[str]:
    rows = [row for row in runs.rows if row["part"] != WHOLE]
    slowdown = sum(row["slowdown"] * row["jobs"] for row in rows) / sum(row["jobs"] for row in rows)
    longest = max(row["longest_wait_s"] for row in rows)
    return [three_digits(slowdown), f"{longest / 3600:.1f}", str(sum(row["late"] for row in rows))]


def figure(runs: Runs) -> Figure:
    picture = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = picture.subplots(1, 2)
    draw_factors(left, runs)
    draw_gaps(right, runs)
    picture.suptitle(log_of(runs))
    return picture


def draw_factors(axes: Axes, runs: Runs) -> None:
    """Draw the mean wait against the slack factor: 001, figure 9."""
    factors = runs.at(policy="slack", gap=0.0).distinct("slack_factor")
    waits = [mean_wait(of(runs, Variant(slack_factor=x))) for x in factors]
    axes.plot(factors, waits, "o-", color=policy_colour("slack"), label="slack, AST")
    axes.axhline(mean_wait(of(runs, CONSERVATIVE)), color=policy_colour("conservative"), label="conservative")
    if runs.facts["log"] == KTH:
        axes.plot(list(PAPER_FACTORS), list(PAPER_FACTORS.values()), "ks-", markersize=4, label="slack, AST, 000")
        axes.axhline(PAPER_MONTHS["year"][0], color="k", linewidth=0.8, linestyle="--", label="conservative, 000")
    _finish(axes, "slack factor SF")


def draw_gaps(axes: Axes, runs: Runs) -> None:
    """Draw the mean wait against the gap in priority: 001, figure 10."""
    gaps = runs.at(policy="slack", slack_factor=3.0).distinct("gap")
    for measure, style, label in (
        (mean_wait, "o-", "all jobs"),
        (fifth_wait, "v--", "every fifth"),
        (other_wait, "^:", "the others"),
    ):
        axes.plot(gaps, [measure(of(runs, Variant(gap=x))) for x in gaps], style, color=policy_colour("slack"), label=label)
    if runs.facts["log"] == KTH:
        axes.plot(list(PAPER_GAPS), list(PAPER_GAPS.values()), "ks-", markersize=4, label="all jobs, 000")
    _finish(axes, "gap in UP + PP")


def _finish(axes: Axes, x: str) -> None:
    label_axes(axes, x, "mean wait (s)")
    axes.set_ylim(bottom=0)
    axes.legend()


@refusing_in_one_line
def main(argv: Sequence[str] | None = None) -> None:
    options = options_of(__doc__, study="slack_factor").parse_args(argv)
    runs = runs_of(options, variants(full=options.full))
    report(options, runs, tables(runs), figure)


if __name__ == "__main__":
    main()
