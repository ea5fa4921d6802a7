"""Restoring a flurry that a log has been cleaned of, at times derived from its job numbers.

Logs of the Parallel Workloads Archive are *cleaned* of flurries, bursts of jobs by one user (Tsafrir & Feitelson 2006).  Such a
log keeps the original job numbers.  Where these are in order of submission, each missing number lies between two known times.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, log, sqrt
from typing import Final
from zlib import crc32

import numpy as np

from clustermodel import TICKS_PER_SECOND, SpecificationError, Workload
from clustermodel.arrays import IntArray
from clustermodel.validation import choice, require_number, require_whole
from clustermodel.workload.job import UNSET
from clustermodel.workload.job_columns import table_of

RESTORED: Final = ("uniform", "gap-start", "bursts")
"""Where in its gap a restored job is submitted: at a uniformly distributed time; with the last job before the gap; or with
:data:`BURST` others at a uniformly distributed time."""
BURST: Final = 50
"""Jobs that ``"bursts"`` submits at once."""


@dataclass(frozen=True, kw_only=True)
class Flurry:
    """What is known of the jobs that a log has been cleaned of."""

    first: int
    """The lowest job number that the filter removed."""
    last: int
    """The highest."""
    nodes: int = 1
    """Requested by each job."""
    estimate_s: float
    """Of each job."""
    mean_run_s: float
    """Run times have a lognormal distribution with this mean, cut to 1 s and the estimate; so has the next field."""
    mean_overestimation: float
    """Mean of estimate / run time."""

    def __post_init__(self) -> None:
        require_whole("Flurry.first", self.first)
        require_whole("Flurry.last", self.last, at_least=self.first)
        require_whole("Flurry.nodes", self.nodes, at_least=1)
        require_number("Flurry.estimate_s", self.estimate_s, "a number of seconds >= 1", lambda value: 1 <= value < inf)
        allowed = f"a number of seconds > 0 and <= {self.estimate_s:g}, the estimate"
        require_number("Flurry.mean_run_s", self.mean_run_s, allowed, lambda value: 0 < value <= self.estimate_s)
        least = self.estimate_s / self.mean_run_s
        allowed = f"a number >= {least:g}, the estimate / the mean run time"
        require_number("Flurry.mean_overestimation", self.mean_overestimation, allowed, lambda value: least <= value < inf)

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm of run times: mean x mean reciprocal = exp(sigma^2)."""
        return sqrt(log(self.mean_run_s * self.mean_overestimation / self.estimate_s))


@lru_cache(maxsize=4)
def with_flurry(workload: Workload, flurry: Flurry, *, at: str = "uniform", seed: int = 1) -> Workload:
    """Return the jobs of a cleaned log and those that it has been cleaned of, which get the missing job numbers.

    Times in a gap (``at``, one of :data:`RESTORED`) and run times are whole seconds, as in a log: a job that waits for a
    fraction of one would have an absurd ratio of guaranteed to actual delay.  One seed gives the same run times for each
    ``at``.  The last workloads are kept, so that the trials of a study do not draw them again.

    Raises:
        SpecificationError: no job number of the flurry is missing, the log has no job before or after it, or its job numbers
            are not in order of submission there.
    """
    rule, seed = choice("with_flurry: at", at, RESTORED), require_whole("seed", seed, at_least=0)
    times, runs = (
        np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(crc32(name),))) for name in (b"flurry", b"its run times")
    )
    missing, after, before = _gaps(workload, flurry)
    share = np.zeros(len(missing)) if rule == "gap-start" else times.random(len(missing))
    if rule == "bursts":
        share = share[_bursts(after)]
    seconds = np.floor(share * (before - after) / TICKS_PER_SECOND).astype(np.int64)
    submit = after + seconds * TICKS_PER_SECOND
    submit = submit[np.lexsort((submit, after))]  # within a gap, numbers are in order of submission, too
    sigma, estimate = flurry.sigma, round(flurry.estimate_s * TICKS_PER_SECOND)
    run_s = runs.lognormal(log(flurry.mean_run_s) - sigma**2 / 2, sigma, len(missing))
    run = np.round(np.clip(run_s, 1.0, flurry.estimate_s)).astype(np.int64) * TICKS_PER_SECOND
    unset = dict.fromkeys(workload.extra, UNSET)
    rows = table_of(submit=submit, id=missing, nodes=flurry.nodes, run=run, estimate=estimate, **unset)
    options = {**workload.provenance.options, "flurry": flurry, "at": rule, "flurry_seed": seed}
    return Workload(
        np.concatenate([workload.table, rows]),
        name=workload.name,
        provenance=replace(workload.provenance, options=options),
        machine_nodes=workload.machine_nodes,
        extra=workload.extra,
        streams=workload.streams,
        names=workload.names,
    )


def _gaps(workload: Workload, flurry: Flurry) -> tuple[IntArray, IntArray, IntArray]:
    """Return the missing numbers in order, and when the jobs before and after the gap of each were submitted, ticks."""
    order = np.argsort(workload.column("id"))
    ids, submit = workload.column("id")[order], workload.column("submit")[order]
    span = f"with_flurry: job numbers {flurry.first} to {flurry.last} of {workload.name}"
    if not ids[0] < flurry.first <= flurry.last < ids[-1]:
        raise SpecificationError(
            f"{span}: the log has jobs {ids[0]} to {ids[-1]}; it must have jobs before and after the flurry"
        )
    missing = np.setdiff1d(np.arange(flurry.first, flurry.last + 1), ids, assume_unique=True)
    if not missing.size:
        raise SpecificationError(f"{span}: none is missing, so there is nothing to restore; a cleaned log is needed")
    place = np.searchsorted(ids, missing)
    low, high = place[0] - 1, place[-1]
    if (backward := np.flatnonzero(np.diff(submit[low : high + 1]) < 0)).size:
        job = low + backward[0]
        raise SpecificationError(
            f"{span}: job {ids[job + 1]} was submitted before job {ids[job]}; job numbers must be in order of submission"
        )
    return missing, submit[place - 1], submit[place]


def _bursts(after: IntArray) -> IntArray:
    """Return for each job the first one of its burst: each :data:`BURST` jobs of a gap are one."""
    place = np.arange(len(after))
    in_gap = place - np.searchsorted(after, after)
    return place - in_gap % BURST
