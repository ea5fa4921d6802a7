"""What do 2,080 short serial jobs that were estimated to be long do to the means of a year?

The CTC trace in the archive is *cleaned*: its header says that 2,080 jobs of user 135 were removed, a flurry within five days.
003 (003_96c4631de6a07f8a.txt, table 1) used the trace with them.  Its tables and the cleaned trace tell what they were like.
Table 2 has 2,058 more jobs among the long-narrow ones and 39 more among the short-narrow ones.  For the means over 79,302 jobs
to be those of table 1, the missing ones must have run for about 100 s on average, with estimates of about 21,800 s, 857 times
their run times on average.

    python scenarios/flurry.py                         a small study on the embedded workload
    python scenarios/flurry.py --trace CTC-SP2-1996-3.1-cln.swf --nodes 430

Jobs like these are put back: as many per job of the trace, submitted evenly among the jobs around the gap in the job numbers,
on one node, with estimates of 6 h and run times from a lognormal distribution that has the mean and the mean reciprocal above.
Each replication draws other run times.  No parameter was chosen by what the simulation shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from algorithms import CONSERVATIVE, draws
from matplotlib.figure import Figure
from queue_order import PAPER_SAVED, of_003
from reporting import Grid, Interval, Runs, draw_bars, label_axes, percent, refusing_in_one_line, report, three_digits
from traces import Point, mark_of, options_of, relative, runs_of, size_of, usual_measures

from clustermodel import TICKS_PER_SECOND, JobRow, Result, Workload
from clustermodel.figures.style import policy_colour

SHOWN: Final = (CONSERVATIVE, "1/L", "P/L-NG", "R/L-NG")
PER_JOB: Final = 2080 / 77205
"""Jobs of the flurry per job that the cleaned trace has kept (and that the machine can run)."""
FIRST: Final = 0.6141
LAST: Final = 0.6245
"""Shares of those that came before the first and before the last job of the flurry, by the gaps in the job numbers."""
ESTIMATE_S: Final = 21_600.0
MEAN_RUN_S: Final = 100.0
MEAN_OVERESTIMATION: Final = 857.0
SIGMA: Final = float(np.sqrt(np.log(MEAN_RUN_S * MEAN_OVERESTIMATION / ESTIMATE_S)))
"""Of the lognormal distribution: mean x mean reciprocal = exp(sigma^2)."""


def with_flurry(workload: Workload, seed: int) -> Workload:
    """Return the jobs with a flurry among them."""
    rows = list(workload.rows())
    count, rng = round(PER_JOB * len(rows)), np.random.default_rng(seed)
    places = np.linspace(FIRST, LAST, count) * (len(rows) - 1)
    submit = np.interp(places, np.arange(len(rows)), workload.column("submit")).astype(int).tolist()
    run = np.clip(rng.lognormal(np.log(MEAN_RUN_S) - SIGMA**2 / 2, SIGMA, count), 1.0, ESTIMATE_S)
    ticks = np.round(run * TICKS_PER_SECOND).astype(int).tolist()
    estimate, last = round(ESTIMATE_S * TICKS_PER_SECOND), max(row.id for row in rows)
    added = (
        JobRow(when, last + number, 1, how_long, estimate, -1, -1, 0, -1)
        for number, (when, how_long) in enumerate(zip(submit, ticks, strict=True), 1)
    )
    return Workload([*rows, *added], name=workload.name, machine_nodes=workload.machine_nodes)


def points() -> list[Point]:
    cleaned = [
        Point(at={"jobs": "cleaned", "algorithm": algorithm}, policy=algorithm, random=draws(algorithm)) for algorithm in SHOWN
    ]
    restored = [
        Point(at={"jobs": "with the flurry", "algorithm": algorithm}, policy=algorithm, random=True, change=with_flurry)
        for algorithm in SHOWN
    ]
    return cleaned + restored


def measure(result: Result, workload: Workload) -> dict[str, float]:
    """Return the usual measures, and slowdown and delay of the jobs that are not of the flurry."""
    jobs = result.jobs
    others = jobs[jobs["job"] <= workload.column("id").max()]
    slowdown = others["response_s"] / np.maximum(others["run_s"], 10)
    return {
        **usual_measures(result),
        "slowdown_others": float(slowdown.mean()),
        "wait_s_others": float(others["wait_s"].mean()),
    }


def at(runs: Runs, jobs: str, algorithm: str) -> Runs:
    return runs.at(jobs=jobs, algorithm=algorithm)


def tables(runs: Runs) -> list[Grid]:
    size, paper = size_of(runs), of_003(runs)
    kinds = runs.distinct("jobs")
    columns = (("slowdown", "bounded slowdown"), ("wait_s", "delay (s)"))
    rows = [
        [
            f"{kind}: {algorithm}",
            *(at(runs, kind, algorithm).interval(name).shown(three_digits) for name, _ in columns),
            *(at(runs, kind, algorithm).interval(f"{name}_others").shown(three_digits) for name, _ in columns),
        ]
        for kind in kinds
        for algorithm in SHOWN
    ]
    headings = ["jobs: algorithm", *(title for _, title in columns), *(f"{title}, all but the flurry" for _, title in columns)]
    grids = [Grid(f"Means ± 95 % interval, {size}", headings, rows)]
    rows = []
    for (after, before, name), value in PAPER_SAVED.items():
        found = [relative(at(runs, kind, after), at(runs, kind, before), name) for kind in kinds]
        rows.append(
            [
                f"{after} against {before}, {'bounded slowdown' if name == 'slowdown' else 'delay'}",
                *([f"{100 * value:.0f} %"] if paper else []),
                *(Interval(1 - share.mean, share.half).shown(percent) for share in found),
            ]
        )
    grids.append(Grid(f"Reductions named in section 5, {size}", ["", *(["003"] if paper else []), *kinds], rows))
    return grids


def figure(runs: Runs) -> Figure:
    kinds = runs.distinct("jobs")
    picture = Figure(figsize=(10, 4), layout="constrained")
    places = np.arange(len(SHOWN), dtype=float)
    for axes, (column, title) in zip(
        picture.subplots(1, 2), (("slowdown", "mean bounded slowdown"), ("wait_s", "mean delay (s)")), strict=True
    ):
        for offset, kind, alpha in zip((-0.2, 0.2), kinds, (0.45, 1.0), strict=True):
            found = [at(runs, kind, algorithm).interval(column) for algorithm in SHOWN]
            draw_bars(axes, places + offset, found, 0.38, color=[policy_colour(algorithm) for algorithm in SHOWN], alpha=alpha)
        axes.set_xticks(places, SHOWN)
        label_axes(axes, "", title)
    picture.suptitle(f"Light: cleaned; dark: with the flurry.  {size_of(runs)}; lines: 95 % intervals", fontsize="medium")
    return picture


@refusing_in_one_line
def main(argv: Sequence[str] | None = None) -> None:
    options = options_of(__doc__, study="flurry", replications=3).parse_args(argv)
    runs = runs_of(options, points(), measure)
    report(options, runs, tables(runs), figure, mark=mark_of(runs))


if __name__ == "__main__":
    main()
