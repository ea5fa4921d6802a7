"""Periodic checkpoints on machines that fail: expected completion time, optimal intervals, and a store that jobs share.

*One job.*  It executes ``interval_s`` of work, writes a checkpoint, and so on.  Failures are a Poisson process.  After one
the job is down for ``downtime_s``, in which nothing else fails, then restarts from its last checkpoint for ``restart_s`` and
repeats the work since then; a failure may also hit a checkpoint or a restart.  The mean time of a segment of w seconds of work
and checkpoint is then exactly (M + D) e^(R/M) (e^(w/M) - 1), M being the mean time between failures, R the restart and D the
downtime (Daly 2006, the complete cost function, with D = 0; Bougeret et al. 2011).

*Many jobs, one store.*  A store that serves one checkpoint at a time limits how often jobs can write.
:func:`shared_store_bound` is the smallest waste of the platform under that limit, to first order in 1/M (Herault et al. 2018).

All times are in seconds: ``interval_s`` is the work between two checkpoints (tau), ``checkpoint_s`` the time to write one (C,
Daly's delta), ``restart_s`` to read one (R), ``downtime_s`` the time from a failure until the restart (D), and ``mtbf_s``
the mean time between failures of the job's nodes together (M).  A SpecificationError refuses times that are out of range.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from clustermodel.errors import SpecificationError
from clustermodel.validation import require_number, require_seconds, require_whole


def expected_completion_s(
    work_s: float,
    interval_s: float,
    *,
    checkpoint_s: float,
    mtbf_s: float,
    restart_s: float = 0.0,
    downtime_s: float = 0.0,
    first_restart_s: float | None = None,
    last_checkpoint: bool = False,
) -> float:
    """Return the mean time from the start of a job to its completion, seconds: exact for exponential failures.

    Convention: the job has ceil(work / interval) segments, the last one shorter if the interval does not divide the work.
    Every segment but the last one ends with a checkpoint.  With ``last_checkpoint=True`` the last one does too, and for an
    interval that divides the work the result is Daly's: M e^(R/M) (e^((tau + delta)/M) - 1) T_s / tau (Daly 2006, the
    complete cost function).

    ``work_s`` is the run time of the job without failures and checkpoints (T_s).  ``first_restart_s`` is the restart in the
    first segment, where there is no checkpoint to read yet; by default ``restart_s``, as in Daly 2006.  The mean is infinite
    where it exceeds the largest float.
    """
    require_seconds("work_s", work_s, positive=True)
    require_seconds("interval_s", interval_s, positive=True)
    require_seconds("checkpoint_s", checkpoint_s)
    require_seconds("mtbf_s", mtbf_s, positive=True)
    require_seconds("restart_s", restart_s)
    require_seconds("downtime_s", downtime_s)
    first = restart_s if first_restart_s is None else require_seconds("first_restart_s", first_restart_s)
    segments = max(1, math.ceil(work_s / interval_s - 1e-9))
    last_s = work_s - (segments - 1) * interval_s + (checkpoint_s if last_checkpoint else 0.0)

    def segment(length: float, restart: float) -> float:
        return (mtbf_s + downtime_s) * _growth(length / mtbf_s, restart / mtbf_s)

    if segments == 1:
        return segment(last_s, first)
    full_s = interval_s + checkpoint_s
    between = (segments - 2) * segment(full_s, restart_s) if segments > 2 else 0.0
    return segment(full_s, first) + between + segment(last_s, restart_s)


def checkpoint_waste(
    interval_s: float, *, checkpoint_s: float, mtbf_s: float, restart_s: float = 0.0, downtime_s: float = 0.0
) -> float:
    """Return the share of a long job's time that is not useful work: exact for exponential failures.

    1 - tau / ((M + D) e^(R/M) (e^((tau + C)/M) - 1)): checkpoints, discarded work, downtimes and restarts (Daly 2006, the
    complete cost function).  A job of T_s seconds of work whose every segment ends with a checkpoint takes T_s / (1 - waste)
    on average.
    """
    segment_s = expected_completion_s(
        interval_s, interval_s, checkpoint_s=checkpoint_s, mtbf_s=mtbf_s, restart_s=restart_s, downtime_s=downtime_s,
        last_checkpoint=True,
    )  # fmt: skip
    return 1 - interval_s / segment_s


def young_interval_s(checkpoint_s: float, mtbf_s: float) -> float:
    """Return the first-order optimal work between two checkpoints, seconds: sqrt(2 C M) (Young 1974)."""
    _require_costs(checkpoint_s, mtbf_s)
    return math.sqrt(2 * checkpoint_s * mtbf_s)


def daly_interval_s(checkpoint_s: float, mtbf_s: float) -> float:
    """Return the higher-order estimate of the optimal work between two checkpoints, seconds (Daly 2006, the
    perturbation solution).

    sqrt(2 C M) (1 + sqrt(x) / 3 + x / 9) - C with x = C / (2 M), and M for C >= 2 M.
    """
    young = young_interval_s(checkpoint_s, mtbf_s)
    x = checkpoint_s / (2 * mtbf_s)
    return young * (1 + math.sqrt(x) / 3 + x / 9) - checkpoint_s if x < 1 else mtbf_s


def optimal_interval_s(checkpoint_s: float, mtbf_s: float) -> float:
    """Return the work between two checkpoints at which :func:`checkpoint_waste` is smallest, seconds: exact.

    A zero of the derivative has e^((tau + C)/M) (1 - tau/M) = 1, so tau = M (1 + W(-e^(-1 - C/M))) with the principal branch
    of Lambert's W (Daly 2006; Bougeret et al. 2011, who show that equal intervals are optimal).  It depends neither on the
    restart nor on the downtime.
    """
    from scipy.special import lambertw

    _require_costs(checkpoint_s, mtbf_s)
    cost = checkpoint_s / mtbf_s
    share = 1 + float(lambertw(-math.exp(-1 - cost)).real)
    if 0 < share < 0.5:  # near its branch point W loses digits, which a Newton step restores
        share += (share + math.log1p(-share) + cost) * (1 - share) / share
    return share * mtbf_s if share > 0 else young_interval_s(checkpoint_s, mtbf_s)


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointingJobs:
    """Equal jobs that run at the same time and checkpoint to the shared store.

    Raises:
        SpecificationError: a field is out of range.
    """

    nodes: int
    """Nodes of a job (q)."""
    jobs: float
    """Mean number of these jobs in execution (n)."""
    checkpoint_s: float
    """Time in which a job writes its checkpoint when it has the store to itself (C), seconds."""
    restart_s: float | None = None
    """Time from a failure until the job executes work again (R), seconds; by default as long as a checkpoint."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", require_whole("CheckpointingJobs.nodes", self.nodes, at_least=1))
        require_number("CheckpointingJobs.jobs", self.jobs, "a finite number > 0", lambda jobs: 0 < jobs < math.inf)
        require_seconds("CheckpointingJobs.checkpoint_s", self.checkpoint_s, positive=True)
        if self.restart_s is not None:
            require_seconds("CheckpointingJobs.restart_s", self.restart_s)


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedStoreBound:
    """Smallest waste of a platform whose jobs share a checkpoint store, and where it is reached."""

    waste: float
    """Share of the platform's node time that is not useful work."""
    periods_s: tuple[float, ...]
    """Time from the start of a checkpoint to the start of the next one (P), by class, seconds.  The work in between is
    ``interval_s`` of the other functions: P - C."""
    class_waste: tuple[float, ...]
    """Share of a job's time that is not useful work, by class."""
    multiplier: float
    """Lagrange multiplier of the store's limit (lambda); 0 if the limit does not bind."""
    io_pressure: float
    """Share of time in which the store writes checkpoints (F), at these periods."""
    unlimited_io_pressure: float
    """The same if every job had the period that is best for itself; above 1 the store cannot serve them."""


def jobs_at_once(machine_nodes: int, job_nodes: Sequence[int], node_shares: Sequence[float]) -> tuple[float, ...]:
    """Return the mean number of jobs in execution by class, on a machine that is always full.

    Class i holds machine_nodes x share_i / (sum of the shares) nodes.  In steady state the nodes that a class holds are in
    proportion to its node-hours, so ``node_shares`` are the classes' shares of the work.  The program with which Herault
    et al. 2018 computed their bounds divides each share of the work by the run time of a job first: to compare with their
    figures, pass those quotients.

    Args:
        machine_nodes: N.
        job_nodes: nodes of a job, by class.
        node_shares: shares of the nodes, by class, in any unit.

    Raises:
        SpecificationError: the classes differ in number, or a value is out of range.
    """
    require_whole("machine_nodes", machine_nodes, at_least=1)
    if len(job_nodes) != len(node_shares) or not job_nodes:
        raise SpecificationError(
            f"node_shares: {len(node_shares)} shares of {len(job_nodes)} classes are not allowed; each must have one"
        )
    for nodes, share in zip(job_nodes, node_shares, strict=True):
        require_whole("job_nodes", nodes, at_least=1)
        require_number("node_shares", share, "a finite number > 0", lambda value: 0 < value < math.inf)
    total = math.fsum(node_shares)
    return tuple(machine_nodes * share / total / nodes for nodes, share in zip(job_nodes, node_shares, strict=True))


def shared_store_bound(machine_nodes: int, system_mtbf_s: float, classes: Sequence[CheckpointingJobs]) -> SharedStoreBound:
    """Return the lower bound of the platform's waste with a store that serves one checkpoint at a time (Herault et al. 2018).

    A job of q nodes wastes W = C/P + q/(M N) (P/2 + R) of its time, to first order: each failure costs half a period and a
    restart.  The platform's waste, sum of n q W / N, is smallest subject to F = sum of n C/P <= 1 (eqs. (6), (7)).  By Karush,
    Kuhn and Tucker P = sqrt(2 M N C (q/N + lambda) N) / q (eq. (8)), where lambda is zero if F <= 1 then, and otherwise solves
    F = 1.  F <= 1 is necessary but not sufficient for a schedule of the transfers, hence a bound.

    Nothing above first order is in W, so it is meaningful only where periods are short against the jobs' mean times between
    failures; it may exceed one.

    Args:
        machine_nodes: N; classes may hold fewer nodes, and the rest counts as not wasted.
        system_mtbf_s: mean time between failures of the machine (M); a node has M N, a job M N / q.
        classes: the jobs in execution.

    Raises:
        SpecificationError: a value is out of range, there is no class, or the jobs need more nodes than there are.
    """
    from scipy.optimize import brentq

    nodes = require_whole("machine_nodes", machine_nodes, at_least=1)
    require_seconds("system_mtbf_s", system_mtbf_s, positive=True)
    if not classes:
        raise SpecificationError("classes: none is given; there must be at least one class of jobs")
    needed = math.fsum(group.jobs * group.nodes for group in classes)
    if needed > nodes * (1 + 1e-9):
        raise SpecificationError(f"classes: jobs on {needed:g} nodes are not allowed; the machine has {nodes} nodes")

    def period(group: CheckpointingJobs, multiplier: float) -> float:
        job_mtbf_s = system_mtbf_s * nodes / group.nodes
        return math.sqrt(2 * group.checkpoint_s * job_mtbf_s * (1 + multiplier * nodes / group.nodes))

    def pressure(multiplier: float) -> float:
        return math.fsum(group.jobs * group.checkpoint_s / period(group, multiplier) for group in classes)

    multiplier = 0.0
    if pressure(0.0) > 1:
        above = 1.0
        while pressure(above) > 1:
            above *= 2
        multiplier = float(brentq(lambda value: pressure(value) - 1, 0.0, above, xtol=1e-15, rtol=1e-14))
    periods = tuple(period(group, multiplier) for group in classes)
    waste = tuple(
        group.checkpoint_s / p
        + group.nodes / (system_mtbf_s * nodes) * (p / 2 + (group.checkpoint_s if group.restart_s is None else group.restart_s))
        for group, p in zip(classes, periods, strict=True)
    )
    return SharedStoreBound(
        waste=math.fsum(group.jobs * group.nodes * w for group, w in zip(classes, waste, strict=True)) / nodes,
        periods_s=periods,
        class_waste=waste,
        multiplier=multiplier,
        io_pressure=pressure(multiplier),
        unlimited_io_pressure=pressure(0.0),
    )


def _growth(length: float, restart: float) -> float:
    """Return e^restart (e^length - 1), both in units of the mean time between failures."""
    try:
        return math.exp(restart) * math.expm1(length)
    except OverflowError:
        return math.inf


def _require_costs(checkpoint_s: float, mtbf_s: float) -> None:
    require_seconds("checkpoint_s", checkpoint_s, positive=True)
    require_seconds("mtbf_s", mtbf_s, positive=True)
