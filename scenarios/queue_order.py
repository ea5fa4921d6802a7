"""In which order should a backfilling scheduler go through its queue, and should it guarantee starts?

Tables 1 to 3 and figures 3 and 4 of 003 (003_96c4631de6a07f8a.txt, sections 2 to 5): facts about the jobs, also by shape;
how far guaranteed delays under conservative backfilling are from actual ones; mean bounded slowdown and delay of the twelve
algorithms of table 4, for all jobs and by shape.

    python scenarios/queue_order.py                         a small study on the embedded workload
    python scenarios/queue_order.py --trace CTC-SP2-1996-3.1-cln.swf --nodes 430 --narrow 2 --full --figure queue_order.png

A job is *short* if its estimate is at most the median of all estimates, and *narrow* if it has at most the median number of
nodes, or as many as ``--narrow`` says.  003's table 2 says that jobs are grouped by "median job parallelism and median job
overestimation factor"; its numbers of jobs are those of the median *estimate*, 10,800 s, and of narrow jobs of at most 2 nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from algorithms import ALGORITHMS, CONSERVATIVE, draws
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from reporting import (
    FloatArray,
    Grid,
    Interval,
    Runs,
    draw_bars,
    label_axes,
    percent,
    refusing_in_one_line,
    report,
    three_digits,
)
from shapes import SHAPES, add_narrow, measure_by_shape, shape_of
from traces import Point, mark_of, options_of, relative, runs_of, size_of

from clustermodel import Result, Workload
from clustermodel.figures.style import policy_styles
from clustermodel.policies.queue_order import CRITERIA

PAPER_TRACE: Final = {
    "number of nodes": "430",
    "number of jobs": "79,302",
    "mean parallelism": "11",
    "median parallelism": "2",
    "mean run time (s)": "10,984",
    "mean estimate (s)": "24,324",
    "median estimate (s)": "10,800",
    "mean overestimation factor": "176",
    "median overestimation factor": "3.90",
}
"""003, table 1."""
PAPER_SHAPES: Final = dict(zip(SHAPES, (("14,486", "22"), ("25,702", "14"), ("25,526", "460"), ("13,588", "110")), strict=True))
"""003, table 2: jobs, mean overestimation."""
PAPER_GUARANTEES: Final = {
    "mean": "16.33",
    "median": "3.89",
    "15th percentile": "1.67",
    "85th percentile": "14.83",
    "jobs that start at once": "61 %",
}
"""003, table 3 and section 4."""
PAPER_SAVED: Final = {
    ("P/L-NG", "D", "slowdown"): 0.57,
    ("R/L-NG", "D", "slowdown"): 0.77,
    ("P/L-NG", "1/L", "slowdown"): 0.35,
    ("R/L-NG", "1/L", "slowdown"): 0.65,
    ("P/L-NG", "D", "wait_s"): 0.38,
    ("R/L-NG", "D", "wait_s"): 0.65,
    ("P/L-NG", "1/L", "wait_s"): 0.28,
    ("R/L-NG", "1/L", "wait_s"): 0.59,
}
"""003, section 5: by which fraction less than conservative (D) and than shortest-first (1/L) backfilling."""


def points() -> list[Point]:
    return [Point(at={"algorithm": algorithm}, policy=algorithm, random=draws(algorithm)) for algorithm in ALGORITHMS]


def measure(result: Result, workload: Workload, *, narrow: int | None) -> dict[str, float | None]:
    """Return the measures by shape, and what table 3 needs of conservative backfilling."""
    found: dict[str, float | None] = dict(measure_by_shape(result, workload, narrow=narrow))
    jobs = result.jobs
    waited = jobs[jobs["wait_s"] > 0]
    ratio = ((waited["reserved_s"] - waited["submit_s"]) / waited["wait_s"]).to_numpy()
    known = len(ratio) > 0 and result.scenario.policy == CONSERVATIVE
    found["at_once"] = 1 - len(waited) / len(jobs)
    found["ratio_mean"] = float(ratio.mean()) if known else None
    for part in (15, 50, 85):
        found[f"ratio_p{part}"] = float(np.percentile(ratio, part)) if known else None
    return found


def facts_of(workload: Workload, nodes: int, *, narrow: int | None) -> dict[str, object]:
    """Return what tables 1 and 2 say about a workload."""
    held, shapes = shape_of(workload, narrow, nodes)
    size = workload.column("nodes")[held]
    run, estimate = workload.seconds("run")[held], workload.seconds("estimate")[held]
    over = estimate / run

    def rounded(value: float) -> float:
        return float(f"{value:.6g}")

    return {
        "narrow": int(np.median(size)) if narrow is None else narrow,
        "held": len(size),
        "trace": {
            "mean parallelism": rounded(size.mean()),
            "median parallelism": rounded(np.median(size)),
            "mean run time (s)": rounded(run.mean()),
            "mean estimate (s)": rounded(estimate.mean()),
            "median estimate (s)": rounded(np.median(estimate)),
            "mean overestimation factor": rounded(over.mean()),
            "median overestimation factor": rounded(np.median(over)),
        },
        "shapes": {
            name: [int(members.sum()), rounded(over[members].mean()), rounded(np.median(over[members]))]
            for name, members in zip(SHAPES, shapes, strict=True)
        },
    }


def of_003(runs: Runs) -> bool:
    """Return whether the runs are of the trace that 003 used."""
    return str(runs.facts["workload"]).startswith("CTC-SP2")


def at(runs: Runs, algorithm: str) -> Runs:
    return runs.at(algorithm=algorithm)


def saved(runs: Runs, after: str, before: str, measure: str) -> Interval:
    """Return by which fraction a measure is smaller with one algorithm than with another."""
    share = relative(at(runs, after), at(runs, before), measure)
    return Interval(1 - share.mean, share.half)


def tables(runs: Runs) -> list[Grid]:
    size, paper = size_of(runs), of_003(runs)
    facts: Mapping[str, Any] = runs.facts
    trace = {"number of nodes": facts["nodes"], "number of jobs": facts["held"], **facts["trace"]}
    grids = [
        Grid(
            f"Table 1, {size}",
            ["", "003", "ours"] if paper else ["", "ours"],
            [
                [name, *([PAPER_TRACE[name]] if paper else []), f"{value:,}" if isinstance(value, int) else three_digits(value)]
                for name, value in trace.items()
            ],
        ),
        Grid(
            f"Table 2, narrow: at most {facts['narrow']} nodes, short: at most the median estimate, {size}",
            [
                "shape",
                *(["003, jobs"] if paper else []),
                "jobs",
                *(["003, mean overestimation"] if paper else []),
                "mean overestimation",
                "median overestimation",
            ],
            [
                [
                    name,
                    *([PAPER_SHAPES[name][0]] if paper else []),
                    f"{count:,}",
                    *([PAPER_SHAPES[name][1]] if paper else []),
                    three_digits(mean),
                    f"{median:.2f}",
                ]
                for name, (count, mean, median) in facts["shapes"].items()
            ],
        ),
    ]
    conservative = at(runs, CONSERVATIVE)
    found = [
        conservative.interval(column).shown(shown)
        for column, shown in (
            *((name, lambda ratio: f"{ratio:.2f}") for name in ("ratio_mean", "ratio_p50", "ratio_p15", "ratio_p85")),
            ("at_once", percent),
        )
    ]
    grids.append(
        Grid(
            f"Table 3, guaranteed over actual delay of jobs that do not start at once, D, {size}",
            ["", *(["003"] if paper else []), "ours"],
            [
                [name, *([value] if paper else []), ours]
                for (name, value), ours in zip(PAPER_GUARANTEES.items(), found, strict=True)
            ],
        )
    )
    rows = []
    for algorithm in ALGORITHMS:
        here = at(runs, algorithm)
        rows.append(
            [
                algorithm,
                here.interval("slowdown").shown(three_digits),
                relative(here, conservative, "slowdown").shown(percent),
                here.interval("wait_s").shown(three_digits),
                relative(here, conservative, "wait_s").shown(percent),
                *(here.interval(f"slowdown_{name}").shown(three_digits) for name in SHAPES),
            ]
        )
    headings = ["algorithm", "bounded slowdown", "of D's", "delay (s)", "of D's", *(f"slowdown, {name}" for name in SHAPES)]
    grids.append(Grid(f"Figures 3 and 4, means ± 95 % interval, {size}", headings, rows))
    rows = []
    for (after, before, name), value in PAPER_SAVED.items():
        label = f"{after} against {before}, {'bounded slowdown' if name == 'slowdown' else 'delay'}"
        rows.append([label, *([f"{100 * value:.0f} %"] if paper else []), saved(runs, after, before, name).shown(percent)])
    grids.append(Grid(f"Reductions named in section 5, {size}", ["", *(["003"] if paper else []), "ours"], rows))
    return grids


def figure(runs: Runs) -> Figure:
    picture = Figure(figsize=(11, 9), layout="constrained")
    top, bottom = picture.subfigures(2, 1, height_ratios=(1, 1.15))
    for axes, (name, title) in zip(
        top.subplots(1, 2), (("slowdown", "mean bounded slowdown"), ("wait_s", "mean delay (s)")), strict=True
    ):
        draw_pairs(axes, runs, name)
        label_axes(axes, "", title)
        axes.set_title(f"figure 3: {title}")
    panels = bottom.subplots(1, 4)
    for axes, name in zip(panels, SHAPES, strict=True):
        draw_pairs(axes, runs, f"slowdown_{name}", upright=False)
        label_axes(axes, "", "mean bounded slowdown" if name == SHAPES[0] else "")
        axes.set_title(f"figure 4: {name}")
    picture.suptitle(f"Hatched: no guarantees (-NG).  {size_of(runs)}; lines: 95 % intervals")
    return picture


def draw_pairs(axes: Axes, runs: Runs, measure: str, *, upright: bool = True) -> None:
    """Draw a measure of all algorithms: a pair of bars for each criterion, with and without guarantees."""
    places: FloatArray = np.arange(len(CRITERIA), dtype=float)
    for offset, suffix in ((-0.2, ""), (0.2, "-NG")):
        styles = [policy_styles([f"{criterion}{suffix}"])[f"{criterion}{suffix}"] for criterion in CRITERIA]
        found = [at(runs, f"{criterion}{suffix}").interval(measure) for criterion in CRITERIA]
        drawn: dict[str, Any] = {"hatch": [style.hatch for style in styles], "edgecolor": "white", "linewidth": 0.0}
        draw_bars(axes, places + offset, found, 0.38, color=[style.colour for style in styles], **drawn)
    axes.set_xticks(places, CRITERIA, rotation=0 if upright else 45)


@refusing_in_one_line
def main(argv: Sequence[str] | None = None) -> None:
    parser = options_of(__doc__, study="queue_order", replications=5)
    add_narrow(parser)
    options = parser.parse_args(argv)
    narrow = options.narrow
    runs = runs_of(options, points(), partial(measure, narrow=narrow), partial(facts_of, narrow=narrow))
    report(options, runs, tables(runs), figure, mark=mark_of(runs))


if __name__ == "__main__":
    main()
