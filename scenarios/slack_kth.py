"""Does slack-based backfilling make jobs wait less than conservative backfilling, and jobs of high priority less than others?

Tables 1 to 5 of 000 (000_abeb21d5b8b877d3.txt, section 3) beside ours: month by month, by slack factor, with a higher priority
for every fifth job, by the size of that difference, by heuristic.

    python scenarios/slack_kth.py                                                 a small study of synthetic jobs
    python scenarios/slack_kth.py --full --trace ../shared/traces/KTH-SP2-1996-2.2.swf.gz

Each month is simulated by itself, as in the paper; the last row of table 1 is one run of the whole log.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.figure import Figure
from reporting import Grid, Runs, label_axes, refusing_in_one_line, report
from slack_runs import KTH, WHOLE, Variant, fifth_wait, gain, log_of, mean_wait, of, options_of, other_wait, runs_of, seconds

from clustermodel.figures.style import PURPLE, policy_colour

CONSERVATIVE: Final = Variant("conservative")
EASY: Final = Variant("easy")
AST: Final = Variant()
UNEQUAL: Final = Variant(gap=2.0)
HEURISTICS: Final = ("ast", "aat", "dc", "du", "dp")
"""In the order of table 5."""
REMOVALS: Final = ("afresh", "in-place")
FACTORS: Final = (1.0, 3.0, 5.0, 7.0, 9.0, 11.0)
GAPS: Final = (0.0, 0.5, 1.0, 1.5, 2.0)
IN_ONE_RUN: Final = "in one run"
"""The row of tables 1 and 3 that is ours alone: all months without a break."""

PAPER_MONTHS: Final = {
    "1996-09": (440.6, 440.6, 440.6, 0.0, 550.8),
    "1996-10": (3062.7, 2504.3, 2783.7, 2295.6, 2906.0),
    "1996-11": (4887.0, 3774.6, 4797.7, 4460.2, 1882.3),
    "1996-12": (2157.2, 1904.2, 2026.0, 1814.8, 2078.8),
    "1997-01": (3302.3, 2531.9, 2777.4, 2603.8, 2820.8),
    "1997-02": (2624.3, 2373.9, 2728.7, 2369.2, 2818.7),
    "1997-03": (2644.8, 2196.9, 2220.9, 1687.2, 2354.6),
    "1997-04": (2220.3, 1905.2, 2056.2, 1797.4, 2120.9),
    "1997-05": (2093.6, 1779.2, 1889.3, 1491.9, 1988.7),
    "1997-06": (1443.2, 1282.0, 1374.7, 1323.3, 1387.6),
    "1997-07": (399.9, 354.1, 372.6, 320.2, 385.8),
    "1997-08": (1941.5, 1670.8, 1847.1, 1817.5, 1854.5),
    "year": (2401.44, 2004.46, 2226.17, 1955.28, 2294.0),
}
"""Mean waits in seconds, tables 1 and 3: conservative, priority; unequal priorities: all jobs, high, low.

The low-priority mean of November, 1882.3, is misprinted: with 4882.3 the mean of all jobs follows.
"""
PAPER_FACTORS: Final = {1.0: 2156, 3.0: 2004, 5.0: 2027, 7.0: 1986, 9.0: 1939, 11.0: 1956}
"""Table 2."""
PAPER_GAPS: Final = {0.0: 2004.46, 0.5: 2020.40, 1.0: 2044.39, 1.5: 2017.82, 2.0: 2226.17}
"""Table 4."""
PAPER_HEURISTICS: Final = {
    "ast": (2004.5, 2226.2, 1955.3, 2294.0),
    "aat": (2088.5, 2223.3, 1952.6, 2291.1),
    "dc": (2179.9, 2250.1, 1988.1, 2315.7),
    "du": (2206.0, 2279.8, 2048.9, 2337.6),
    "dp": (2120.0, 2228.5, 1962.3, 2295.1),
}
"""Table 5: equal priorities; unequal: all, high, low."""


def heuristic(name: str, remove: str, gap: float = 0.0) -> Variant:
    """Return slack with another heuristic.  In the order of starts both ways of *remove* are the same: AST has one."""
    return Variant(heuristic=name, remove="afresh" if name == "ast" else remove, gap=gap)


def variants(*, full: bool) -> list[Variant]:
    chosen = [CONSERVATIVE, EASY, AST, UNEQUAL]
    chosen += [heuristic(name, how) for how in REMOVALS for name in HEURISTICS]
    if full:
        chosen += [heuristic(name, how, gap=2.0) for how in REMOVALS for name in HEURISTICS]
        chosen += [Variant(slack_factor=factor) for factor in FACTORS]
        chosen += [Variant(gap=size) for size in GAPS]
    return list(dict.fromkeys(chosen))


def has(runs: Runs, variant: Variant) -> bool:
    return bool(of(runs, variant).rows)


def beside(value: float, paper: float | None) -> str:
    """Write ours, and the paper's in brackets."""
    return seconds(value) if paper is None else f"{seconds(value)} [{seconds(paper)}]"


def tables(runs: Runs) -> list[Grid]:
    parts = [part for part in runs.distinct("part") if part != WHOLE]
    known = runs.facts["log"] == KTH
    conservative, slack, unequal = (of(runs, one) for one in (CONSERVATIVE, AST, UNEQUAL))

    def paper(row: str, column: int) -> float | None:
        return PAPER_MONTHS[row][column] if known and row in PAPER_MONTHS else None

    rows, unequal_rows = [], []
    for part in [*parts, "year", *([WHOLE] if WHOLE in runs.distinct("part") else [])]:
        here = [one if part == "year" else one.at(part=part) for one in (conservative, slack, unequal)]
        if part == WHOLE:
            here = [Runs(one.facts, [{**row, "part": ""} for row in one.rows]) for one in here]
        label = {"year": "total wait / jobs", WHOLE: IN_ONE_RUN}.get(part, part)
        before, after = mean_wait(here[0]), mean_wait(here[1])
        theirs = paper(part, 0), paper(part, 1)
        improvement = gain(before, after) + (f" [{gain(*theirs)}]" if theirs[0] is not None and theirs[1] is not None else "")
        rows.append([label, str(_jobs(here[0], part)), beside(before, theirs[0]), beside(after, theirs[1]), improvement])
        unequal_rows.append(
            [
                label,
                beside(after, theirs[1]),
                beside(mean_wait(here[2]), paper(part, 2)),
                seconds(fifth_wait(here[1])),
                beside(fifth_wait(here[2]), paper(part, 3)),
                beside(other_wait(here[2]), paper(part, 4)),
            ]
        )
    log, bracket = log_of(runs), " [000]" if known else ""
    grids = [
        Grid(f"Table 1, mean wait (s){bracket}, {log}", ["month", "jobs", "conservative", "slack, AST", "shorter by"], rows),
        Grid(
            f"Table 3, every fifth job with UP = PP = 1, mean wait (s){bracket}, {log}",
            [
                "month",
                "equal: all jobs",
                "unequal: all jobs",
                "equal: every fifth",
                "unequal: every fifth",
                "unequal: the others",
            ],
            unequal_rows,
        ),
    ]
    base = mean_wait(conservative)
    for title, shown, theirs_of, make in (
        ("Table 2, slack factor", FACTORS, PAPER_FACTORS, lambda x: Variant(slack_factor=x)),
        ("Table 4, UP + PP of every fifth job", GAPS, PAPER_GAPS, lambda x: Variant(gap=x)),
    ):
        there = [x for x in shown if has(runs, make(x))]
        if len(there) > 2:
            lines = []
            for x in there:
                mine = of(runs, make(x))
                theirs_x = theirs_of[x] if known else None
                improved = gain(base, mean_wait(mine)) + (f" [{gain(2401.44, theirs_x)}]" if theirs_x else "")
                lines.append(
                    [f"{x:g}", beside(mean_wait(mine), theirs_x), improved, *map(seconds, (fifth_wait(mine), other_wait(mine)))]
                )
            headings = [
                title.partition(", ")[2],
                "mean wait (s)",
                "shorter than conservative's by",
                "every fifth (s)",
                "the others (s)",
            ]
            grids.append(Grid(f"{title}{bracket}, {log}", headings, lines))
    for how in REMOVALS:
        lines = []
        for name in HEURISTICS:
            equal, differing = heuristic(name, how), heuristic(name, how, gap=2.0)
            if not has(runs, equal):
                continue
            theirs_h = PAPER_HEURISTICS[name] if known else (None,) * 4
            mine = mean_wait(of(runs, equal))
            line = [name.upper(), beside(mine, theirs_h[0])]
            line.append(gain(base, mine) + (f" [{gain(2401.44, theirs_h[0])}]" if theirs_h[0] is not None else ""))
            if has(runs, differing):
                mine_too = of(runs, differing)
                high, low = fifth_wait(mine_too), other_wait(mine_too)
                line += [
                    beside(mean_wait(mine_too), theirs_h[1]),
                    beside(high, theirs_h[2]),
                    beside(low, theirs_h[3]),
                    seconds(low - high),
                ]
            else:
                line += ["-"] * 4
            lines.append(line)
        headings = [
            "heuristic",
            "equal (s)",
            "shorter than conservative's by",
            "unequal: all",
            "every fifth",
            "the others",
            "gap",
        ]
        grids.append(Grid(f"Table 5, remove {how}, mean wait (s){bracket}, {log}", headings, lines))
    return grids


def _jobs(runs: Runs, part: str) -> int:
    return int(sum(row["jobs"] for row in runs.rows if part == WHOLE or row["part"] != WHOLE))


def figure(runs: Runs) -> Figure:
    picture = Figure(figsize=(11, 8), layout="constrained")
    months, heuristics = picture.subplots(2, 1)
    parts = [part for part in runs.distinct("part") if part != WHOLE]
    at = np.arange(len(parts))
    known = runs.facts["log"] == KTH
    for offset, one, colour, label, column in (
        (-0.2, CONSERVATIVE, policy_colour("conservative"), "conservative", 0),
        (0.2, AST, policy_colour("slack"), "slack, AST", 1),
    ):
        waits = [mean_wait(of(runs, one).at(part=part)) for part in parts]
        months.bar(at + offset, waits, 0.38, color=colour, label=label)
        if known:
            months.plot(
                at + offset, [PAPER_MONTHS[part][column] for part in parts], "k_", markersize=14,
                label="000" if column == 0 else None,
            )  # fmt: skip
    months.set_xticks(at, parts)
    label_axes(months, "", "mean wait (s)")
    months.legend()
    months.set_title(f"Table 1: {log_of(runs)}")
    base = mean_wait(of(runs, CONSERVATIVE))
    at = np.arange(len(HEURISTICS))
    for offset, how, colour in ((-0.2, "afresh", policy_colour("slack")), (0.2, "in-place", PURPLE)):
        there = [index for index, name in enumerate(HEURISTICS) if has(runs, heuristic(name, how))]
        shorter = [100 * (1 - mean_wait(of(runs, heuristic(HEURISTICS[index], how))) / base) for index in there]
        heuristics.bar(at[there] + offset, shorter, 0.38, color=colour, label=f"remove: {how}")
    if known:
        theirs = [100 * (1 - PAPER_HEURISTICS[name][0] / 2401.44) for name in HEURISTICS]
        heuristics.plot(at, theirs, "k_", markersize=30, label="000")
    heuristics.axhline(0, color="0.3", linewidth=0.8)
    heuristics.set_xticks(at, [name.upper() for name in HEURISTICS])
    label_axes(heuristics, "heuristic", "mean wait shorter than conservative's by (%)")
    heuristics.legend()
    heuristics.set_title("Table 5, equal priorities")
    return picture


@refusing_in_one_line
def main(argv: Sequence[str] | None = None) -> None:
    options: argparse.Namespace = options_of(__doc__, study="slack_kth").parse_args(argv)
    runs = runs_of(options, variants(full=options.full), (CONSERVATIVE, AST, UNEQUAL))
    report(options, runs, tables(runs), figure)


if __name__ == "__main__":
    main()
