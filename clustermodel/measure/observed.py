"""What a trace has recorded: waits, slowdowns, utilization, and the most nodes in use at the same time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clustermodel.arrays import BoolArray, IntArray, dot
from clustermodel.errors import SpecificationError
from clustermodel.job import UNSET
from clustermodel.measure.metrics import bounded_slowdown
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.extra_columns import SUSPENDED, WAIT
from clustermodel.workload.log_machine import peak_in_use
from clustermodel.workload.table import Workload


@dataclass(frozen=True, kw_only=True)
class Observed:
    """The recorded schedule of a trace, by the definitions of :class:`~clustermodel.measure.metrics.Summary`."""

    jobs: int
    """Jobs with a recorded wait that are not larger than the machine."""
    without_wait: int
    """Jobs whose wait is not recorded."""
    peak_nodes: int
    """Largest number of nodes in use at the same time."""
    mean_wait_s: float
    median_wait_s: float
    p95_wait_s: float
    mean_bounded_slowdown: float
    utilization: float
    """Executed work per capacity, from the first submission to the last end."""


def observed_schedule(workload: Workload, nodes: int | None = None) -> Observed:
    """Return what a trace has recorded.

    Args:
        workload: with the column ``wait``: from a log of sacct, PBS or LSF, or ``read_swf(path, waits=True)``.
        nodes: size of the machine; by default the largest number of nodes in use at the same time.

    Raises:
        SpecificationError: no job has a recorded wait.
    """
    wait = workload.column(WAIT)
    known = wait != UNSET
    if not known.any():
        raise SpecificationError(
            f"whatif: {workload.name} has no recorded waits (SWF field 3), so there is nothing to compare with; "
            "`clustermodel run` simulates it"
        )
    held = workload.column("run") + np.maximum(workload.column(SUSPENDED), 0)
    start = workload.column("submit") + wait
    peak = peak_in_use(start[known], (start + held)[known], workload.column("nodes")[known]).units
    if workload.machine_nodes is not None and (workload.column(SUSPENDED)[known] > 0).any():
        peak = min(peak, workload.machine_nodes)  # nodes of a suspended job are another one's
    size = peak if nodes is None else nodes
    members = known & (workload.column("nodes") <= size)
    if not members.any():
        raise SpecificationError(f"--nodes: {size} is not allowed; every job of {workload.name} is larger")
    return Observed(
        jobs=int(members.sum()),
        without_wait=int((~known).sum()),
        peak_nodes=peak,
        **_statistics(workload, wait, held, members, size),
    )


def _statistics(workload: Workload, wait: IntArray, held: IntArray, members: BoolArray, nodes: int) -> dict[str, float]:
    submit, run = workload.column("submit")[members], workload.column("run")[members]
    wait_s = wait[members] / TICKS_PER_SECOND
    response_s = (wait + held)[members] / TICKS_PER_SECOND
    last = int((submit + (wait + held)[members]).max())
    capacity = nodes * (last - int(submit.min())) / TICKS_PER_SECOND
    return {
        "mean_wait_s": float(wait_s.mean()),
        "median_wait_s": float(np.median(wait_s)),
        "p95_wait_s": float(np.percentile(wait_s, 95)),
        "mean_bounded_slowdown": float(bounded_slowdown(response_s, run / TICKS_PER_SECOND).mean()),
        "utilization": dot(workload.column("nodes")[members], run / TICKS_PER_SECOND) / capacity,
    }
