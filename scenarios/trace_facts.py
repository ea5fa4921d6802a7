"""What the traces are that the studies run on: table 3 of 004 (004_55d19449f9d7d838.txt, section 5.1), for ours.

Load is the work of all jobs per capacity between the first and the last submission, with run times as recorded.

    python scenarios/trace_facts.py                            the embedded workload
    python scenarios/trace_facts.py --traces CTC-SP2-1996-3.1-cln.swf.gz:430 SDSC-BLUE-2000-4.2-cln.swf.gz:1152
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from reporting import Grid, Runs, add_usual_options, read, refusing_in_one_line, report, whole
from traces import NODES, SMALL_JOBS, Jobs, digest

from clustermodel import Workload, distributions

SECONDS_PER_DAY: Final = 86_400


class Facts(NamedTuple):
    """What 004 says of a trace."""

    nodes: int
    jobs: int
    load: float
    """Per cent."""
    parallelism: float
    run_s: float


PAPER: Final = {
    "CTC-SP2": Facts(430, 77222, 66.18, 10.9853, 11277),
    "SDSC-BLUE": Facts(1152, 223407, 76.21, 41.5910, 4381),
    "SDSC-DS": Facts(1664, 85003, 63.02, 60.9240, 7569),
}
"""004, table 3, by how the names of the traces begin."""


def trace_and_nodes(text: str) -> tuple[Path, int]:
    """Return a trace and the size of its machine, from the command line."""
    path, colon, nodes = text.rpartition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; write FILE:NODES")
    return Path(path), whole(nodes)


def measure(workload: Workload, nodes: int) -> dict[str, Any]:
    """Return the facts of the jobs that can run on a machine."""
    size, run_s, submit_s = (workload.column("nodes"), workload.seconds("run"), workload.seconds("submit"))
    held = size <= nodes
    span_s = float(np.ptp(submit_s[held]))
    return {
        "workload": workload.name,
        "replication": 1,
        "nodes": nodes,
        "jobs": int(held.sum()),
        "days": span_s / SECONDS_PER_DAY,
        "load": float(np.dot(size[held], run_s[held])) / (nodes * span_s),
        "parallelism": float(size[held].mean()),
        "run_s": float(run_s[held].mean()),
    }


def tables(runs: Runs) -> list[Grid]:
    rows = []
    for row in runs.rows:
        for start, paper in PAPER.items():
            if not row["workload"].startswith(start):
                continue
            theirs = [f"{paper.jobs:,}", f"{paper.load:.2f} %", f"{paper.parallelism:.2f}", f"{paper.run_s:,.0f}"]
            rows.append([f"{start}, 004", f"{paper.nodes:,}", "-", *theirs])
        ours = [f"{row['jobs']:,}", f"{100 * row['load']:.2f} %", f"{row['parallelism']:.2f}", f"{row['run_s']:,.0f}"]
        rows.append([row["workload"], f"{row['nodes']:,}", f"{row['days']:,.0f}", *ours])
    headings = ["trace", "nodes", "days", "jobs", "load", "mean parallelism", "mean run time (s)"]
    return [Grid("Table 3, the traces, run times as recorded", headings, rows)]


def figure(_: Runs) -> Figure:
    """Return how the jobs of the embedded workload are distributed; the stored table has no jobs."""
    return distributions([Jobs(None, NODES, SMALL_JOBS).workload(1)])


@refusing_in_one_line
def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", nargs="+", type=trace_and_nodes, default=[], metavar="FILE:NODES", help="SWF traces")
    parser.add_argument("--jobs", type=whole, help=f"jobs of the embedded workload (default {SMALL_JOBS:,})")
    add_usual_options(parser, study="trace_facts")
    options = parser.parse_args(argv)
    if options.stored:
        runs = read(options.stored)
    else:
        jobs = [Jobs(path, nodes, None) for path, nodes in options.traces] or [Jobs(None, NODES, options.jobs or SMALL_JOBS)]
        found = [(one.workload(1), one.nodes) for one in jobs]
        facts = {
            "study": options.study,
            "clustermodel": version("clustermodel"),
            "workload_sha256": [digest(workload) for workload, _ in found],
        }
        runs = Runs(facts, [measure(workload, nodes) for workload, nodes in found])
    report(options, runs, tables(runs), figure)


if __name__ == "__main__":
    main()
