"""The four shapes of jobs in 003 (003_96c4631de6a07f8a.txt, table 2), and what is measured by shape."""

from __future__ import annotations

import argparse
from typing import Final

import numpy as np
import numpy.typing as npt
from reporting import whole
from traces import usual_measures

from clustermodel import Result, Workload

SHAPES: Final = ("short-narrow", "short-wide", "long-narrow", "long-wide")


def add_narrow(parser: argparse.ArgumentParser) -> None:
    """Add the option that says which jobs are narrow."""
    parser.add_argument("--narrow", type=whole, metavar="N", help="jobs of at most N nodes are narrow (default: the median)")


def shape_of(workload: Workload, narrow: int | None, nodes: int) -> tuple[npt.NDArray[np.bool_], list[npt.NDArray[np.bool_]]]:
    """Return which jobs of a workload the machine can hold, and which of those belong to each shape.

    Args:
        workload: the jobs.
        narrow: of at most so many nodes; ``None`` for the median.
        nodes: of the machine.
    """
    size, estimate = workload.column("nodes"), workload.column("estimate")
    held = (size > 0) & (size <= nodes)
    size, estimate = size[held], estimate[held]
    is_narrow = size <= (np.median(size) if narrow is None else narrow)
    is_short = estimate <= np.median(estimate)
    return held, [is_short & is_narrow, is_short & ~is_narrow, ~is_short & is_narrow, ~is_short & ~is_narrow]


def measure_by_shape(result: Result, workload: Workload, *, narrow: int | None) -> dict[str, float]:
    """Return the usual measures, and slowdown and delay by shape."""
    held, shapes = shape_of(workload, narrow, result.machine.nodes)
    jobs = result.jobs[held]
    wait, run, response = (jobs[name].to_numpy() for name in ("wait_s", "run_s", "response_s"))
    slowdown = response / np.maximum(run, 10)
    found = usual_measures(result)
    for name, members in zip(SHAPES, shapes, strict=True):
        found[f"slowdown_{name}"] = float(slowdown[members].mean())
        found[f"wait_s_{name}"] = float(wait[members].mean())
    return found
