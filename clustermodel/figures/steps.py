"""Step functions of time, such as busy nodes and queue length: their means over intervals, and the unit of a time axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import FloatArray
from clustermodel.readable import time_unit
from clustermodel.ticks import to_seconds

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result


def time_axis(span_s: float) -> tuple[float, str]:
    """Return a legible unit for a time axis of ``span_s`` seconds: its length in seconds, and its name."""
    unit = time_unit(span_s)
    return unit.seconds, unit.name


def equal_bins(runs: Sequence[Result], bins: int) -> FloatArray:
    """Return the bounds of equal time bins over the longest run, seconds since the first event, shape ``(bins + 1,)``."""
    span = max(float(run.events.time_s[-1]) for run in runs)
    return np.linspace(0.0, span, bins + 1)


def busy_nodes(run: Result, edges_s: FloatArray) -> FloatArray:
    """Return the mean number of busy nodes in each interval between ``edges_s`` (seconds from the first event)."""
    log = run.events
    return mean_of_steps(log.time_s, run.machine.processors - log.empty, edges_s)


def waiting_jobs(run: Result, edges_s: FloatArray) -> FloatArray:
    """Return the mean number of waiting jobs in each interval between ``edges_s`` (seconds from the first event)."""
    log = run.events
    return mean_of_steps(log.time_s, log.waiting, edges_s)


def jobs_in_system(run: Result, edges_s: FloatArray) -> FloatArray:
    """Return the mean number of jobs that wait or run in each interval between ``edges_s`` (seconds from the first event)."""
    ran = run.records.finished
    begins, ends = (run.records.seconds(name)[ran] - to_seconds(run.ledger.start) for name in ("submit", "end"))
    times = np.concatenate([begins, ends])
    order = np.argsort(times, kind="stable")
    changes = np.repeat([1, -1], len(begins))[order]
    return mean_of_steps(times[order], np.cumsum(changes), edges_s)


def mean_of_steps(times_s: FloatArray, values: npt.NDArray[np.int64] | FloatArray, edges_s: FloatArray) -> FloatArray:
    """Return the exact means of a step function over intervals: differences of its integral."""
    integral = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(times_s))])
    means: FloatArray = np.diff(np.interp(edges_s, times_s, integral)) / np.diff(edges_s)
    return means
