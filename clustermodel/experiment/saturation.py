"""Measures of saturated runs: what the machine does until the last job starts, while jobs wait all the time.

For experiments in which all jobs are submitted at once.  After the last start the machine drains, which says nothing about
saturation.  No measure uses the ledger, so that it can be compared with them.
"""

from __future__ import annotations

import numpy as np

from clustermodel.arrays import FloatArray
from clustermodel.experiment.result import Result
from clustermodel.theory.capacity import capacity_loss, gang_capacity_loss


def kappa_until_last_start(result: Result) -> float:
    """Return the loss of capacity until the last start, by Zhang et al. 2003, eq. (2), or eq. (3) with time sharing.

    It is computed from the log of events and slices.
    """
    machine = result.machine
    if result.slices is not None:
        saturated = [stretch for stretch in result.slices if stretch.waiting]
        return gang_capacity_loss(saturated, machine.time_slicing.quantum, machine.switch_ticks, machine.processors)
    log = result.events
    until = slice(0, int(np.searchsorted(log.time_s, result.jobs["start_s"].max())) + 1)
    return capacity_loss(log.time_s[until], (log.empty + log.held_up)[until], log.waiting[until], machine.processors)


def utilization_until_last_start(result: Result, *, skip: float = 0.0) -> float:
    """Return the share of capacity until the last start in which nodes run jobs, from run times in the job table.

    With time sharing, the work after the last start is taken off by the slice log.

    Args:
        result: of the run.
        skip: the share of the jobs that start before the measurement, in [0, 1), while the machine fills; 0 with time sharing.
    """
    machine = result.machine
    start, end, nodes, run = (_column(result, name) for name in ("start_s", "end_s", "nodes", "run_s"))
    last = float(start.max())
    if result.slices is None:
        begin = float(np.sort(start)[int(skip * len(start))]) if skip else 0.0
        busy = float(nodes @ np.clip(np.minimum(end, last) - np.maximum(start, begin), 0, None))
        return busy / (machine.processors * (last - begin))
    stretches = list(result.slices)
    waiting = sum(stretch.waiting for stretch in stretches)
    draining = [stretch._replace(waiting=True) for stretch in stretches[waiting:]]  # as if all that it loses counted
    lost = gang_capacity_loss(draining, machine.time_slicing.quantum, machine.switch_ticks, machine.processors)
    done = float(nodes @ run) - machine.processors * (float(end.max()) - last) * (1 - lost)
    return done / (machine.processors * last)


def _column(result: Result, name: str) -> FloatArray:
    values: FloatArray = result.jobs[name].to_numpy(dtype=float)
    return values
