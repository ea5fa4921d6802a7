"""Does it pay to run jobs for less time than their users asked for, and to stop those that need more?

Figures 5 and 6 of 003 (003_96c4631de6a07f8a.txt, section 6): bounded slowdown under speculative backfilling for several ratios
of speculated time to estimate, without and with speculative test runs; and what it wastes.

    python scenarios/speculation.py                         a small study on the embedded workload
    python scenarios/speculation.py --trace CTC-SP2-1996-3.1-cln.swf --nodes 430 --full --figure speculation.png

Jobs that are stopped run again from the beginning; waste is the work of tries that were stopped, per capacity.  Which
percentages the paper has drawn is not in its text; ours are from 10 to 90 %.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from algorithms import CONSERVATIVE, add_algorithms, chosen, draws
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from reporting import Grid, Interval, Runs, label_axes, percent, refusing_in_one_line, report, three_digits
from traces import Point, mark_of, options_of, relative, runs_of, size_of, usual_measures

from clustermodel import Result, Workload
from clustermodel.figures.style import policy_styles

PERCENTAGES: Final = (0.1, 0.2, 0.35, 0.5, 0.7, 0.9)
"""Speculation percentages."""
SMALL_PERCENTAGES: Final = (0.2, 0.9)


def points(options: argparse.Namespace) -> list[Point]:
    ways: list[tuple[float | None, bool]] = [(None, False)]
    ways += [(part, tests) for tests in (False, True) for part in (PERCENTAGES if options.full else SMALL_PERCENTAGES)]
    return [
        Point(
            at={"algorithm": algorithm, "percentage": part, "test_runs": tests},
            policy=algorithm if part is None else f"{algorithm}:speculation={part},test_runs={str(tests).lower()}",
            random=draws(algorithm),
        )
        for part, tests in ways
        for algorithm in chosen(options)
    ]


def measure(result: Result, _: Workload) -> dict[str, float]:
    """Return the usual measures."""
    return usual_measures(result)


Quantity = Callable[[Runs, str, float, bool], Interval]
"""Of an algorithm at a percentage, without or with test runs."""


def at(runs: Runs, algorithm: str, part: float | None, tests: bool) -> Runs:
    return runs.at(algorithm=algorithm, percentage=part, test_runs=tests)


def change(share: Interval) -> Interval:
    """Return by which fraction something has become smaller, from how large it is relative to before."""
    return Interval(1 - share.mean, share.half)


def slowdown(runs: Runs, algorithm: str, part: float, tests: bool) -> Interval:
    return at(runs, algorithm, part, tests).interval("slowdown")


def improvement(runs: Runs, algorithm: str, part: float, tests: bool) -> Interval:
    """Return the improvement as the paper's figures show it.

    Without test runs it is relative to the same algorithm without speculation (figure 5), with them to the same speculation
    without them (figure 6).
    """
    before = at(runs, algorithm, part, False) if tests else at(runs, algorithm, None, False)
    return change(relative(at(runs, algorithm, part, tests), before, "slowdown"))


def of_conservative(runs: Runs, algorithm: str, part: float, tests: bool) -> Interval:
    return relative(at(runs, algorithm, part, tests), at(runs, CONSERVATIVE, None, False), "slowdown")


def waste(runs: Runs, algorithm: str, part: float, tests: bool) -> Interval:
    return at(runs, algorithm, part, tests).interval("waste")


def parts_of(runs: Runs) -> list[float]:
    return [part for part in runs.distinct("percentage") if part is not None]


def tables(runs: Runs) -> list[Grid]:
    size, parts = size_of(runs), parts_of(runs)
    headings = ["algorithm", "no speculation", *(f"{part:.0%}" for part in parts)]

    def grid(title: str, quantity: Quantity, tests: bool, shown: Callable[[float], str], first: str | None) -> Grid:
        rows = []
        for algorithm in runs.distinct("algorithm"):
            base = at(runs, algorithm, None, False)
            share = relative(base, at(runs, CONSERVATIVE, None, False), "slowdown")
            without = {"slowdown": base.interval("slowdown"), "share": share}
            rows.append(
                [
                    algorithm,
                    *([] if first is None else [without[first].shown(shown)]),
                    *(quantity(runs, algorithm, part, tests).shown(shown) for part in parts),
                ]
            )
        return Grid(f"{title} ± 95 % interval, {size}", headings if first else [headings[0], *headings[2:]], rows)

    return [
        grid("Figure 5, speculation, mean bounded slowdown", slowdown, False, three_digits, "slowdown"),
        grid("Figure 5, speculation, improvement by it", improvement, False, percent, None),
        grid("Figure 6, speculation and test runs, mean bounded slowdown", slowdown, True, three_digits, "slowdown"),
        grid("Figure 6, improvement by test runs", improvement, True, percent, None),
        grid("Speculation and test runs, share of conservative's bounded slowdown", of_conservative, True, percent, "share"),
        grid("Waste, speculation", waste, False, percent, None),
        grid("Waste, speculation and test runs", waste, True, percent, None),
    ]


def figure(runs: Runs) -> Figure:
    picture = Figure(figsize=(11, 10.5), layout="constrained")
    panels = picture.subplots(3, 2, sharex=True, sharey="row")
    kinds: tuple[tuple[str, Quantity, float], ...] = (
        ("mean bounded slowdown", slowdown, 1.0),
        ("improvement (%)", improvement, 100.0),
        ("waste (% of capacity)", waste, 100.0),
    )
    for row, (title, quantity, scale) in zip(panels, kinds, strict=True):
        for axes, tests in zip(row, (False, True), strict=True):
            draw(axes, runs, quantity, tests, scale)
            label_axes(axes, "speculation percentage (%)" if quantity is waste else "", "" if tests else title)
            if quantity is slowdown:
                axes.set_title(f"figure {6 if tests else 5}: {'speculation and test runs' if tests else 'speculation'}")
                axes.set_ylim(bottom=0)
            elif quantity is improvement:
                axes.axhline(0, color="0.4", linewidth=0.8)
                axes.set_title("by test runs" if tests else "by speculation")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    picture.suptitle(f"{size_of(runs)}; bands: 95 % intervals")
    return picture


def draw(axes: Axes, runs: Runs, quantity: Quantity, tests: bool, scale: float) -> None:
    """Draw a quantity of all algorithms against the speculation percentage; solid with guarantees, dashed without."""
    parts = parts_of(runs)
    x = [100 * part for part in parts]
    styles = policy_styles(runs.distinct("algorithm"))
    for algorithm in runs.distinct("algorithm"):
        mean, half = scale * np.array([quantity(runs, algorithm, part, tests) for part in parts]).T
        style = styles[algorithm]
        drawn = {"color": style.colour, "linestyle": style.line, "marker": style.marker}
        axes.plot(x, mean, **drawn, markersize=3, linewidth=1.3, label=algorithm)
        if not np.isnan(half).any():
            axes.fill_between(x, mean - half, mean + half, color=style.colour, alpha=0.12, linewidth=0)


@refusing_in_one_line
def main(argv: Sequence[str] | None = None) -> None:
    parser = options_of(__doc__, study="speculation", replications=3)
    add_algorithms(parser)
    options = parser.parse_args(argv)
    runs = runs_of(options, points(options), measure)
    report(options, runs, tables(runs), figure, mark=mark_of(runs))


if __name__ == "__main__":
    main()
