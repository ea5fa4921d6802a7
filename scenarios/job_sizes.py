"""How do large and small jobs fare under backfilling, and under backfilling gang scheduling?

Figure 11 of 002 (002_8335dd3215a2768d.txt, section 5.3): mean slowdown and mean wait of large jobs, of more than 32 nodes, and
of small ones, under BF and under BGS with MPL 5, against utilization; free context switches, phi 0.2.

    python scenarios/job_sizes.py                               a small study
    python scenarios/job_sizes.py --full --figure job_sizes.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

import pandas as pd
from matplotlib.figure import Figure
from replications import (
    FULL_FACTORS,
    NODES,
    QUANTUM_S,
    SMALL_FACTORS,
    Point,
    options_of,
    runs_of,
    size_of,
    usual_measures,
    workload_number,
)
from reporting import Grid, Runs, report, three_digits

from clustermodel import Machine, Result, TimeSlicing, by_size, curves

POLICIES: Final = ("bf", "bgs")
SIZES: Final = ("small", "large")
MEASURES: Final = {"mean_bounded_slowdown": "mean slowdown", "mean_wait_s": "mean wait (s)"}


def points(options: argparse.Namespace) -> list[Point]:
    machine = Machine(nodes=NODES, time_slicing=TimeSlicing(quantum_s=QUANTUM_S, mpl=5))
    return [
        Point(at={"policy": policy, "factor": factor}, policy=policy, machine=machine, factor=factor)
        for factor in (FULL_FACTORS if options.full else SMALL_FACTORS)
        for policy in POLICIES
    ]


def measure(result: Result) -> dict[str, float]:
    """Return the usual measures, and mean slowdown and mean wait by size."""
    by = by_size([result]).set_index("size")
    return usual_measures(result) | {f"{name}_{size}": float(by.loc[size, name]) for name in MEASURES for size in SIZES}


def tables(runs: Runs) -> list[Grid]:
    grids = []
    for name, title in MEASURES.items():
        rows = [
            [
                f"{workload_number(factor)} (x {factor:.1f})",
                *(
                    runs.at(policy=policy, factor=factor).interval(f"{name}_{size}").shown(three_digits)
                    for policy in POLICIES
                    for size in SIZES
                ),
            ]
            for factor in runs.distinct("factor")
        ]
        headings = ["workload", *(f"{policy.upper()}, {size}" for policy in POLICIES for size in SIZES)]
        grids.append(Grid(f"Figure 11, {title} ± 95 % interval, large: more than 32 nodes, {size_of(runs)}", headings, rows))
    return grids


def by_class(runs: Runs) -> pd.DataFrame:
    """Return a row for each run and size of jobs, with columns as the package has them."""
    rows = [
        {
            "policy": row["policy"],
            "jobs of": f"{row['policy'].upper()}, {size}",
            "workload": row["factor"],
            "replication": row["replication"],
            "utilization": row["rho"],
            **{name: row[f"{name}_{size}"] for name in MEASURES},
        }
        for row in runs.rows
        for size in SIZES
    ]
    return pd.DataFrame(rows)


def figure(runs: Runs) -> Figure:
    picture = curves(by_class(runs), y=list(MEASURES), by="jobs of", log=True)
    picture.suptitle(f"Figure 11: {size_of(runs)}; bands are 95 % intervals")
    return picture


def main(argv: Sequence[str] | None = None) -> None:
    options = options_of(__doc__, study="job_sizes", replications=3).parse_args(argv)
    runs = runs_of(options, points(options), measure)
    report(options, runs, tables(runs), figure)


if __name__ == "__main__":
    main()
