"""Guarantees: which waiting jobs hold a reservation, and what they are guaranteed.

They are the first phase of a scheduling cycle: they go through the waiting jobs in the order of the cycle and start those that
may start now.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from clustermodel.plans.pool_plans import Group, Reservation
from clustermodel.policies.backfilling.head import BackfillOrder, HeadRun
from clustermodel.policies.backfilling.moldable import Fit
from clustermodel.policies.interface import NOTHING, Setup, Stateless
from clustermodel.policies.view import QueuedJob
from clustermodel.validation import require_number

if TYPE_CHECKING:
    from clustermodel.policies.backfilling.cycle import SchedulingCycle


class FirstPhase(Protocol):
    """Guarantees in one run."""

    def schedule(self, current: SchedulingCycle) -> None:
        """Start the jobs that may start, and enter reservations for others."""


@runtime_checkable
class Guarantees(Protocol):
    """A part of :class:`~clustermodel.policies.backfilling.scheduler.Backfilling`: a specification, as a policy is."""

    def start(self, setup: Setup) -> FirstPhase:
        """Return the first phase of a new run; itself, if it remembers nothing between scheduling cycles."""


@dataclass(frozen=True)
class EveryJob(Stateless):
    """``all``: every waiting job holds a reservation that never becomes later: conservative backfilling.

    A submitted job is placed where it completes first; that start is guaranteed.  When a job completes before its estimate,
    each waiting job in turn is taken out of the plan and put back, never later: *compression* (Talby & Feitelson 1999, long
    version, section 3.2; Perkovic & Keleher 2000, section 2).
    """

    def schedule(self, current: SchedulingCycle) -> None:
        current.compress()
        current.place_arriving()
        current.start_due()


@dataclass(frozen=True)
class NoJob(Stateless):
    """``none``: each scheduling cycle places all waiting jobs again (no-guarantee: Perkovic & Keleher 2000, section 4).

    The cycle ends as soon as no job can start or be widened: its further reservations would have no effect.
    """

    def schedule(self, current: SchedulingCycle) -> None:
        current.begin_trial()
        run, now, queue = current.run, current.now, current.queue
        smallest = (
            [min(nodes for nodes, _ in current.shapes(job)) for job in queue] if run.molds else [job.nodes for job in queue]
        )
        last = len(queue)
        for place, job in enumerate(queue):
            idle = current.idle
            while last and smallest[last - 1] > idle:
                last -= 1
            can_start = last and (place < last or run.speculation is not None)
            if not idle or not (can_start or (run.widening is not None and current.dispatched)):
                break
            if (earliest := current.earliest(job)) is None:
                continue
            if earliest.start == now:
                current.start(
                    job, Fit(earliest.nodes, earliest.length, earliest.split), "which no waiting job was placed to prevent"
                )
            else:
                current.plan.reserve(earliest.start, earliest.length, earliest.split)


@dataclass(frozen=True)
class Selective(Stateless):
    """``selective``: a job is given a reservation once its expected slowdown has passed a threshold; then none may delay it.

    The expected slowdown of a job is (wait + estimate) / estimate, as if it started now; with a threshold of 1 every job that
    cannot start at once gets a reservation (Srinivasan, Kettimuthu, Subramani and Sadayappan, Selective reservation strategies
    for backfill job scheduling, 2002).
    """

    threshold: float = 2.0

    def __post_init__(self) -> None:
        require_number("backfilling: threshold", self.threshold, "a number >= 1", lambda value: value >= 1)

    def earns(self, job: QueuedJob, now: int) -> bool:
        """Return whether a job that does not fit now is given a reservation."""
        return now - job.submit + job.estimate >= self.threshold * job.estimate

    def schedule(self, current: SchedulingCycle) -> None:
        plan, now = current.plan, current.now
        current.compress()
        current.start_due()
        for job in current.queue:
            if job.id in plan.reserved or job.id in current.dispatched:
                continue
            if (fit := current.fitting(job)) is not None:
                current.start(job, fit, "which delays no job that holds a reservation")
            elif self.earns(job, now) and (start := current.place(job)) >= 0:
                current.guarantee(job, start)


@dataclass(frozen=True)
class Head:
    """EASY: the first ``depth`` blocked jobs hold a reservation (:mod:`clustermodel.policies.backfilling.head`).

    ``order`` is that of the jobs behind them.  Reservations move up when jobs end early, unless they are ``kept``.
    """

    depends_on: ClassVar[frozenset[str]] = NOTHING
    depth: int = 1
    kept: bool = False
    order: BackfillOrder | None = None

    def start(self, setup: Setup) -> FirstPhase:
        return HeadRun(self.depth, self.order, kept=self.kept)


@dataclass(frozen=True)
class Relaxed:
    """``relaxed``: the first blocked job may be delayed, by at most a share of its expected wait; no other job is protected.

    If it could start at s among the running jobs, it must be able to start by s + ``relaxation`` x (s - submit).  The first
    such bound is guaranteed and never grows, not even when a job of higher priority arrives (Ward, Mahood and West, Scheduling
    jobs on parallel systems using a relaxed backfill strategy, 2002).  With a relaxation of 0 and equal priorities it is EASY.
    Where jobs may have different nodes, it is the first blocked job among those that may have some of the same nodes.
    """

    depends_on: ClassVar[frozenset[str]] = NOTHING
    relaxation: float = 0.5

    def __post_init__(self) -> None:
        require_number("backfilling: relaxation", self.relaxation, "a finite number >= 0", lambda value: 0 <= value < inf)

    def start(self, setup: Setup) -> FirstPhase:
        return _RelaxedRun(self.relaxation)


class _RelaxedRun:
    def __init__(self, relaxation: float) -> None:
        self._relaxation = relaxation
        # By the group of a first blocked job: that job, and its latest start.  No two of these groups share nodes.
        self._bounds: dict[Group, tuple[QueuedJob, int]] = {}

    def schedule(self, current: SchedulingCycle) -> None:
        current.begin_trial()
        bounds, waiting = self._bounds, current.view.waiting
        for group, (first, latest) in list(bounds.items()):
            waits = first.id in waiting
            if not waits and first.id not in current.view.running:  # it completed in a speculative run attempt, or is rejected
                del bounds[group]
            elif waits and (fit := current.fitting(first)) is not None:
                current.start(first, fit, "and its guaranteed start is due")
                del bounds[group]
            else:
                self._set_bound(current, first, latest)
        for job in current.queue:
            if not current.idle and len(bounds) == len(current.plan.groups):
                break
            if job.id in current.dispatched:
                continue
            if (fit := current.fitting(job)) is None:
                if not self._is_behind_another(current.group(job)):
                    self._set_bound(current, job)
            elif not bounds:
                current.start(job, fit, "which delays no guaranteed start")
            elif self._keeps_bounds(current, fit):
                current.start(job, fit, "and the first blocked job can still start by its guaranteed start")
        for first, latest in bounds.values():  # for the later phases
            current.hold(first, self._earliest(current, first, latest))

    def _is_behind_another(self, group: Group) -> bool:
        return any(other.bits & group.bits for other in self._bounds)

    def _set_bound(self, current: SchedulingCycle, job: QueuedJob, latest: int | None = None) -> None:
        if (earliest := self._earliest(current, job, latest)) is None:
            return  # windows let it start at no time
        start = earliest.start
        bound = start + round(self._relaxation * (start - job.submit))
        if latest is None:
            current.guarantee(job, bound)
        # A running job that outlives its estimate can break the bound; then the earliest possible start takes its place.
        self._bounds[current.group(job)] = job, bound if latest is None else max(start, min(latest, bound))

    def _keeps_bounds(self, current: SchedulingCycle, fit: Fit) -> bool:
        """Return whether the first blocked jobs can start in time if another one starts now."""
        plan, now = current.plan, current.now
        plan.reserve(now, fit.length, fit.split)
        each = [(self._earliest(current, first, latest), latest) for first, latest in self._bounds.values()]
        plan.release(now, fit.length, fit.split)
        return all(earliest is not None and earliest.start <= latest for earliest, latest in each)

    def _earliest(self, current: SchedulingCycle, job: QueuedJob, latest: int | None) -> Reservation | None:
        """Return where a job completes first, in the shapes that keep its bound if there are any."""
        shapes = current.shapes(job)
        if latest is not None and len(shapes) > 1:
            each = [(shape, current.earliest(job, (shape,))) for shape in shapes]
            shapes = [shape for shape, earliest in each if earliest is not None and earliest.start <= latest] or shapes
        return current.earliest(job, shapes)
