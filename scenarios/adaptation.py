"""What does it bring to give jobs fewer nodes, or more, than they asked for?

Figures 7, 8 and 9 of 003 (003_96c4631de6a07f8a.txt, section 7): bounded slowdown, delay and response time relative to
conservative backfilling, when all jobs get half or a quarter of their nodes, when the width that ends first is chosen (greedy),
and when jobs of half size are widened at their start, without and with speculation.

    python scenarios/adaptation.py                         a small study on the embedded workload
    python scenarios/adaptation.py --trace CTC-SP2-1996-3.1-cln.swf --nodes 430 --full --figure adaptation.png

Efficiency is constant, as in the paper: on half as many nodes a job takes twice as long.  Bounded slowdown compares with the
run time on the nodes that were asked for.  How far start-time widening may go is not in the paper's text; ours goes up to the
nodes asked for, and in rows "to double" up to twice as many.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from algorithms import CONSERVATIVE, add_algorithms, chosen, draws
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from reporting import Grid, Interval, Runs, draw_bars, label_axes, percent, refusing_in_one_line, report, three_digits
from traces import Point, mark_of, options_of, relative, runs_of, size_of, usual_measures

from clustermodel import Backfilling, Result, Workload
from clustermodel.figures.style import policy_styles
from clustermodel.policies.backfilling.moldable import Greedy

SPECULATION: Final[Mapping[str, Any]] = {"speculation": 0.9, "test_runs": True}
"""With test runs, the paper finds large percentages slightly better (section 6.2)."""
TECHNIQUES: Final[Mapping[str, Mapping[str, Any]]] = {
    "as asked": {},
    "half": {"width": "half"},
    "quarter": {"width": "quarter"},
    "greedy 1, 1/2, 2": {"width": Greedy((1.0, 0.5, 2.0))},
    "greedy 1, 1/2, 1/4": {"width": Greedy((1.0, 0.5, 0.25))},
    "half, widening": {"width": "half", "widening": True},
    "half, widening to double": {"width": "half", "widening": 2.0},
    "half, speculation": {"width": "half", **SPECULATION},
    "half, speculation, widening": {"width": "half", "widening": True, **SPECULATION},
    "quarter, speculation, widening": {"width": "quarter", "widening": True, **SPECULATION},
}
"""Arguments of ``Backfilling``, beside order and guarantees."""
SMALL_TECHNIQUES: Final = ("as asked", "half", "quarter", "greedy 1, 1/2, 2", "half, widening", "half, speculation, widening")
MEASURES: Final = {"slowdown": "bounded slowdown", "wait_s": "delay", "response_s": "response"}
FIGURES: Final = {
    "Figure 7": ("half", "quarter"),
    "Figure 8": ("greedy 1, 1/2, 2", "greedy 1, 1/2, 1/4"),
    "Figure 9": ("half", "half, widening", "half, widening to double", "half, speculation", "half, speculation, widening"),
    "All together": ("as asked", "quarter, speculation, widening"),
}
"""Techniques by the figure of 003 that shows them."""


def points(options: argparse.Namespace) -> list[Point]:
    return [
        Point(
            at={"algorithm": algorithm, "technique": technique},
            policy=Backfilling(
                order=algorithm.removesuffix("-NG"),
                guarantees="none" if algorithm.endswith("-NG") else "all",
                **TECHNIQUES[technique],
            ),
            random=draws(algorithm),
        )
        for technique in (TECHNIQUES if options.full else SMALL_TECHNIQUES)
        for algorithm in chosen(options)
    ]


def measure(result: Result, _: Workload) -> dict[str, float]:
    """Return the usual measures."""
    return usual_measures(result)


def at(runs: Runs, algorithm: str, technique: str) -> Runs:
    return runs.at(algorithm=algorithm, technique=technique)


def shown_techniques(runs: Runs, name: str) -> list[str]:
    known = runs.distinct("technique")
    return [technique for technique in FIGURES[name] if technique in known]


def tables(runs: Runs) -> list[Grid]:
    size, base, algorithms = size_of(runs), at(runs, CONSERVATIVE, "as asked"), runs.distinct("algorithm")
    grids = []
    for name in FIGURES:
        rows = [
            [
                f"{technique}: {algorithm}",
                at(runs, algorithm, technique).interval("slowdown").shown(three_digits),
                *(relative(at(runs, algorithm, technique), base, column).shown(percent) for column in MEASURES),
                at(runs, algorithm, technique).interval("waste").shown(percent),
            ]
            for technique in shown_techniques(runs, name)
            for algorithm in algorithms
        ]
        headings = ["technique: algorithm", "bounded slowdown", *(f"{title}, of D's" for title in MEASURES.values()), "waste"]
        grids.append(Grid(f"{name}, relative to conservative backfilling ± 95 % interval, {size}", headings, rows))
    return grids


def figure(runs: Runs) -> Figure:
    names = list(FIGURES)[:3]
    picture = Figure(figsize=(14, 11), layout="constrained")
    panels = picture.subplots(len(names), len(MEASURES), sharey="row")
    for row, name in zip(panels, names, strict=True):
        for axes, (column, title) in zip(row, MEASURES.items(), strict=True):
            draw(axes, runs, name, column)
            label_axes(axes, "", "% of conservative's" if column == "slowdown" else "")
            axes.set_title(f"{name.lower()}: {title}")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    picture.suptitle(f"{size_of(runs)}; hatched: no guarantees; lines: 95 % intervals")
    return picture


def draw(axes: Axes, runs: Runs, name: str, column: str) -> None:
    """Draw a group of bars for each technique of a figure, a bar for each algorithm."""
    base, techniques, algorithms = at(runs, CONSERVATIVE, "as asked"), shown_techniques(runs, name), runs.distinct("algorithm")
    places, width = np.arange(len(techniques), dtype=float), 0.85 / len(algorithms)
    styles = policy_styles(algorithms)
    for number, algorithm in enumerate(algorithms):
        found = [relative(at(runs, algorithm, one), base, column) for one in techniques]
        found = [Interval(100 * mean, 100 * half) for mean, half in found]
        where = places + (number - (len(algorithms) - 1) / 2) * width
        style = styles[algorithm]
        hatched = {"hatch": style.hatch, "edgecolor": "white", "linewidth": 0.0}
        draw_bars(axes, where, found, width, color=style.colour, label=algorithm, **hatched)
    axes.axhline(100, color="0.3", linestyle="--", linewidth=0.8)
    labels = techniques
    for text in (", speculation", ", widening", " to double"):
        labels = [label.replace(text, "\n" + text.strip(", ")) for label in labels]
    axes.set_xticks(places, labels, fontsize="small")


@refusing_in_one_line
def main(argv: Sequence[str] | None = None) -> None:
    parser = options_of(__doc__, study="adaptation", replications=3)
    add_algorithms(parser)
    options = parser.parse_args(argv)
    runs = runs_of(options, points(options), measure)
    report(options, runs, tables(runs), figure, mark=mark_of(runs))


if __name__ == "__main__":
    main()
