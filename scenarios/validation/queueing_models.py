"""What queueing formulas assume: independent jobs, means over the middle of a run, control variates, saturated runs."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from clustermodel import TICKS_PER_SECOND, Exponential, HyperErlang, JobRow, Result, Workload
from clustermodel.arrays import FloatArray, IntArray
from clustermodel.experiment.scenario import random_stream
from clustermodel.theory.capacity_loss import capacity_loss, gang_capacity_loss
from clustermodel.theory.processor_sharing import processor_sharing_responses
from clustermodel.workload.distributions import Sampled

RunTimes = float | Sampled | Mapping[int, float]
"""Run times, seconds: the same for all jobs; a distribution; or, by size, the mean of exponential ones."""
MEAN_S: Final = 100.0
"""Mean of the run times of every shape, seconds."""
HYPEREXPONENTIAL: Final = HyperErlang(order=1, p=0.8, stage_s=(40.0, 340.0))
"""Run times of which four in five have a mean of 40 s and the others one of 340 s."""
SHAPES: Final[Mapping[str, RunTimes]] = {
    "constant": MEAN_S, "exponential": Exponential(MEAN_S), "hyperexponential": HYPEREXPONENTIAL,
}  # fmt: skip
"""Run times by the shape of their distribution."""


def model_jobs(
    *,
    jobs: int,
    seed: int,
    stream: str,
    run_s: RunTimes,
    per_s: float | None = None,
    sizes: Mapping[int, float] = MappingProxyType({1: 1.0}),
) -> Workload:
    """Return independent jobs with exact estimates: Poisson arrivals at a rate per second, or all at once.

    Arrivals, sizes (nodes -> probability) and run times have random streams of their own, by seed and ``stream``.  Points of a
    validation with different texts have independent jobs, so that the points that miss their formula can be counted.
    """
    sizes_rng, run_rng, gap_rng = (random_stream(seed, f"{what} of {stream}") for what in ("sizes", "run times", "arrivals"))
    nodes = sizes_rng.choice(list(sizes), size=jobs, p=list(sizes.values()))
    if isinstance(run_s, Mapping):
        drawn_s = run_rng.exponential([run_s[size] for size in nodes.tolist()])
    else:
        drawn_s = run_s.sample(run_rng, jobs) if isinstance(run_s, Sampled) else np.full(jobs, run_s)
    submit_s = np.zeros(jobs) if per_s is None else np.cumsum(gap_rng.exponential(size=jobs)) / per_s
    rows = zip(_ticks(submit_s).tolist(), np.maximum(_ticks(drawn_s), 1).tolist(), nodes.tolist(), strict=True)
    return Workload([JobRow(submit, number, size, run, run, -1, -1, 0, -1) for number, (submit, run, size) in enumerate(rows)])


def middle(values: FloatArray) -> FloatArray:
    """Return values of successive jobs without the first fifth, while the machine fills, and the last twentieth, while it
    drains.
    """
    return values[len(values) // 5 : len(values) - len(values) // 20]


def mean_wait_s(result: Result) -> float:
    return float(middle(column(result, "wait_s")).mean())


def mean_response_s(result: Result) -> float:
    return float(middle(column(result, "response_s")).mean())


def mean_run(result: Result) -> float:
    return float(middle(column(result, "run_s")).mean())


def mean_run_by_estimate(result: Result) -> float:
    """Return the same where estimates are exact, and jobs execute on other numbers of nodes than they ask for."""
    return float(middle(column(result, "estimate_s")).mean())


def mean_gap(result: Result) -> float:
    """Return the mean time between arrivals of the jobs in the middle of a run, seconds: a control variate."""
    return float(np.diff(middle(column(result, "submit_s"))).mean())


def shared_response(result: Result) -> float:
    """Return the mean response in the middle if the jobs shared all nodes equally, seconds: a control variate.

    For jobs of one node.  The expected value is that of M/G/1 under processor sharing, or of M/M/c.
    """
    submit, run = (column(result, name) for name in ("submit_s", "run_s"))
    return float(middle(processor_sharing_responses(submit, run, result.machine.processors)).mean())


def shared_work_response(result: Result) -> float:
    """Return the mean response in the middle of the same work on one server as fast as all nodes, seconds: a control variate.

    A job's work is its run time x nodes.  The expected value is that of M/G/1 under processor sharing.
    """
    submit, run, nodes = (column(result, name) for name in ("submit_s", "run_s", "nodes"))
    return float(middle(processor_sharing_responses(submit, run * nodes / result.machine.processors, 1)).mean())


# All jobs are submitted at once, so that jobs wait until the last one starts; then the machine drains, which says nothing about
# saturation.  Neither measure uses the ledger.


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

    ``skip`` is the share of the jobs that start before the measurement, while the machine fills; 0 with time sharing, where the
    work after the last start is subtracted by the slice log.
    """
    machine = result.machine
    start, end, nodes, run = (column(result, name) for name in ("start_s", "end_s", "nodes", "run_s"))
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


def column(result: Result, name: str) -> FloatArray:
    values: FloatArray = result.jobs[name].to_numpy(dtype=float)
    return values


def _ticks(seconds: FloatArray) -> IntArray:
    return np.round(seconds * TICKS_PER_SECOND).astype(np.int64)
