"""What a trace has recorded: waits, slowdowns, utilization, and the most nodes in use at the same time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clustermodel.errors import SpecificationError
from clustermodel.job import UNSET
from clustermodel.measure.metrics import Sums
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.log_workload import peak_in_use
from clustermodel.workload.table import SUSPENDED, WAIT, Workload


@dataclass(frozen=True, kw_only=True)
class Observed:
    """The recorded schedule of a trace, by the definitions of :class:`~clustermodel.measure.metrics.Summary`."""

    jobs: int  # with a recorded wait that are not larger than the machine
    without_wait: int  # jobs whose wait is not recorded
    peak_nodes: int  # most nodes in use at the same time
    mean_wait_s: float
    median_wait_s: float
    p95_wait_s: float
    mean_bounded_slowdown: float
    utilization: float  # executed work per capacity, from the first submission to the last end


def observed_schedule(workload: Workload, nodes: int | None = None) -> Observed:
    """Return what a trace with the column ``wait`` has recorded, on a machine as large as the most nodes in use by default."""
    wait = workload.column(WAIT)
    known = wait != UNSET
    if not known.any():
        raise SpecificationError(
            f"whatif: {workload.name} has no recorded waits (SWF field 3), so there is nothing to compare with; "
            "`clustermodel run` simulates it"
        )
    occupied = workload.column("run") + np.maximum(workload.column(SUSPENDED), 0)
    start = workload.column("submit") + wait
    peak = peak_in_use(start[known], (start + occupied)[known], workload.column("nodes")[known])[0]
    if workload.machine_nodes is not None and (workload.column(SUSPENDED)[known] > 0).any():
        peak = min(peak, workload.machine_nodes)  # nodes of a suspended job are another one's
    size = peak if nodes is None else nodes
    members = known & (workload.column("nodes") <= size)
    if not members.any():
        raise SpecificationError(f"--nodes: {size} is not allowed; every job of {workload.name} is larger")
    columns = (workload.column("submit"), wait, occupied, workload.column("run"), workload.column("nodes"))
    submit, wait, occupied, run, sizes = (column[members] for column in columns)
    capacity_s = size * int((submit + wait + occupied).max() - submit.min()) / TICKS_PER_SECOND
    sums = Sums()
    sums.add_times(wait / TICKS_PER_SECOND, (wait + occupied) / TICKS_PER_SECOND, run / TICKS_PER_SECOND, sizes)
    statistics = sums.statistics()
    return Observed(
        jobs=sums.jobs,
        without_wait=int((~known).sum()),
        peak_nodes=peak,
        **{name: statistics[name] for name in ("mean_wait_s", "median_wait_s", "p95_wait_s", "mean_bounded_slowdown")},
        utilization=sums.work / capacity_s,
    )
