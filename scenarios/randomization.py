"""When does it help to randomize shortest-first backfilling?

003 (003_96c4631de6a07f8a.txt, section 5) finds R/L-NG far better than 1/L-NG on the CTC trace, explains it by long-narrow jobs
that users overestimate and that wait behind all short ones, and says that randomization could hurt where most long-narrow jobs
have smaller slowdowns than short ones.  On the KTH trace the two are about equal.  This study changes one thing at a time:

* the estimates of long-narrow jobs, of all others, or of all jobs become exact;
* the machine gets another size (``--other-nodes``), and jobs come so much faster or slower that the load is the same; jobs
  that it cannot hold are rejected.

    python scenarios/randomization.py                         a small study on the embedded workload
    python scenarios/randomization.py --trace KTH-SP2-1996-2.2.swf --nodes 100 --other-nodes 430 --figure randomization.png

Shapes are those of ``queue_order``, of the jobs as they were before the change.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
from algorithms import CONSERVATIVE, draws
from matplotlib.figure import Figure
from reporting import Grid, Runs, draw_bars, label_axes, percent, refusing_in_one_line, report, three_digits, whole
from shapes import SHAPES, add_narrow, measure_by_shape, shape_of
from traces import Change, Point, jobs_of, mark_of, options_of, relative, runs_of, size_of

from clustermodel import LoadScale, Workload
from clustermodel.figures.style import policy_colour

ALGORITHMS: Final = (CONSERVATIVE, "1/L-NG", "R/L-NG")
AS_IT_IS: Final = "as it is"


def exact(workload: Workload, _: int = 1, *, shapes: Sequence[str], narrow: int | None, nodes: int) -> Workload:
    """Return the jobs with exact estimates for those of some shapes."""
    held, members = shape_of(workload, narrow, nodes)
    chosen = np.zeros(len(held), dtype=bool)
    chosen[held] = np.any([who for name, who in zip(SHAPES, members, strict=True) if name in shapes], axis=0)
    rows = (
        row._replace(estimate=row.run) if change else row for row, change in zip(workload.rows(), chosen.tolist(), strict=True)
    )
    return Workload(rows, name=workload.name, machine_nodes=workload.machine_nodes)


def at_same_load(workload: Workload, _: int = 1, *, nodes: int, other: int) -> Workload:
    """Return the jobs so much faster or slower that a machine of ``other`` nodes has the load of one of ``nodes``."""
    size, run = workload.column("nodes"), np.minimum(workload.seconds("run"), workload.seconds("estimate"))

    def work_per_node(machine: int) -> float:
        return float((size * run)[size <= machine].sum()) / machine

    return workload.scaled(LoadScale(interarrival=work_per_node(other) / work_per_node(nodes)))


def points(narrow: int | None, nodes: int, other: int) -> list[Point]:
    changes: dict[str, tuple[Change | None, int | None]] = {AS_IT_IS: (None, None)}
    for name, shapes in (
        ("long-narrow exact", ["long-narrow"]),
        ("all others exact", [name for name in SHAPES if name != "long-narrow"]),
        ("all exact", SHAPES),
    ):
        changes[name] = partial(exact, shapes=shapes, narrow=narrow, nodes=nodes), None
    changes[f"on {other} nodes"] = partial(at_same_load, nodes=nodes, other=other), other
    return [
        Point(
            at={"change": name, "algorithm": algorithm}, policy=algorithm, random=draws(algorithm), change=change, nodes=machine
        )
        for name, (change, machine) in changes.items()
        for algorithm in ALGORITHMS
    ]


def at(runs: Runs, change: str, algorithm: str) -> Runs:
    return runs.at(change=change, algorithm=algorithm)


def tables(runs: Runs) -> list[Grid]:
    size = size_of(runs)
    summary, shapes = [], []
    for change in runs.distinct("change"):
        sorted_by_length, randomized = at(runs, change, "1/L-NG"), at(runs, change, "R/L-NG")
        summary.append(
            [
                change,
                *(at(runs, change, algorithm).interval("slowdown").shown(three_digits) for algorithm in ALGORITHMS),
                relative(randomized, sorted_by_length, "slowdown").shown(percent),
                relative(randomized, sorted_by_length, "wait_s").shown(percent),
            ]
        )
        shapes += [
            [
                f"{change}: {algorithm}",
                *(at(runs, change, algorithm).interval(f"slowdown_{shape}").shown(three_digits) for shape in SHAPES),
            ]
            for algorithm in ALGORITHMS[1:]
        ]
    headings = ["jobs", *ALGORITHMS, "R/L-NG, of 1/L-NG's", "its delay, of 1/L-NG's"]
    return [
        Grid(f"Mean bounded slowdown ± 95 % interval, {size}", headings, summary),
        Grid(f"Mean bounded slowdown by shape ± 95 % interval, {size}", ["jobs: algorithm", *SHAPES], shapes),
    ]


def figure(runs: Runs) -> Figure:
    changes = runs.distinct("change")
    picture = Figure(figsize=(12, 4.2), layout="constrained")
    columns = ["slowdown", *(f"slowdown_{shape}" for shape in SHAPES)]
    places = np.arange(len(changes), dtype=float)
    for axes, column in zip(picture.subplots(1, len(columns)), columns, strict=True):
        for offset, algorithm in ((-0.2, "1/L-NG"), (0.2, "R/L-NG")):
            found = [at(runs, change, algorithm).interval(column) for change in changes]
            draw_bars(axes, places + offset, found, 0.38, across=True, color=policy_colour(algorithm), label=algorithm)
        axes.set_yticks(places, changes if column == "slowdown" else [""] * len(changes))
        axes.invert_yaxis()
        axes.set_title("all jobs" if column == "slowdown" else column.removeprefix("slowdown_"))
        label_axes(axes, "mean bounded slowdown", "")
    handles, labels = picture.axes[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    picture.suptitle(f"{size_of(runs)}; lines: 95 % intervals")
    return picture


@refusing_in_one_line
def main(argv: Sequence[str] | None = None) -> None:
    parser = options_of(__doc__, study="randomization", replications=5)
    add_narrow(parser)
    other = "the machine's other size (default %(default)s)"
    parser.add_argument("--other-nodes", type=whole, default=256, metavar="N", help=other)
    options = parser.parse_args(argv)
    narrow = options.narrow
    chosen = [] if options.stored else points(narrow, jobs_of(options).nodes, options.other_nodes)
    runs = runs_of(options, chosen, partial(measure_by_shape, narrow=narrow))
    report(options, runs, tables(runs), figure, mark=mark_of(runs))


if __name__ == "__main__":
    main()
