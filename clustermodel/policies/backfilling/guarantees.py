"""Guarantees: which waiting jobs hold a reservation, and what they are guaranteed.

They are the first phase of a scheduling cycle: they go through the waiting jobs in the order of the cycle and start those that
may start now.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from clustermodel.plans.profile import Reservation, earliest_completion
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
        run, profile, now, queue = current.run, current.profile, current.now, current.queue
        smallest = [min(nodes for nodes, _ in current.shapes[job.id]) for job in queue]
        last = len(queue)
        for place, job in enumerate(queue):
            while last and smallest[last - 1] > current.idle:
                last -= 1
            can_start = last and (place < last or run.speculation is not None)
            if not current.idle or not (can_start or (run.widening is not None and current.dispatched)):
                break
            start, length, nodes, _ = current.earliest(job)
            if start == now:
                current.start(job, (nodes, length), "which no waiting job was placed to prevent")
            else:
                profile.reserve(start, start + length, nodes)


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
            if (shape := current.fitting(job)) is not None:
                current.start(job, shape, "which delays no job that holds a reservation")
            elif self.earns(job, now):
                reservation = plan.place(job, current.shapes[job.id])
                current.guarantee(job, reservation.start)


@dataclass(frozen=True)
class Relaxed:
    """``relaxed``: the first blocked job may be delayed, by at most a share of its expected wait; no other job is protected.

    If it could start at s among the running jobs, it must be able to start by s + ``relaxation`` x (s - submit).  The first
    such bound is guaranteed and never grows, not even when a job of higher priority arrives (Ward, Mahood and West, Scheduling
    jobs on parallel systems using a relaxed backfill strategy, 2002).  With a relaxation of 0 and equal priorities it is EASY.
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
        self._bound: tuple[QueuedJob, int] | None = None  # the first blocked job and its latest start

    def schedule(self, current: SchedulingCycle) -> None:
        current.begin_trial()
        if self._bound is not None:
            first, latest = self._bound
            waits = first.id in current.view.waiting
            if not waits and first.id not in current.view.running:  # it completed in a speculative run attempt
                self._bound = None
            elif waits and (shape := current.fitting(first)) is not None:
                current.start(first, shape, "and its guaranteed start is due")
                self._bound = None
            else:
                self._set_bound(current, first, latest)
        for job in current.queue:
            if not current.idle and self._bound is not None:
                break
            if job.id in current.dispatched:
                continue
            if (shape := current.fitting(job)) is None:
                if self._bound is None:
                    self._set_bound(current, job)
            elif self._bound is None:
                current.start(job, shape, "which delays no guaranteed start")
            elif self._keeps_bound(current, *self._bound, *shape):
                current.start(job, shape, "and the first blocked job can still start by its guaranteed start")
        if self._bound is not None:  # for the later phases
            current.hold(self._bound[0], self._earliest(current, *self._bound))

    def _set_bound(self, current: SchedulingCycle, job: QueuedJob, latest: int | None = None) -> None:
        start = self._earliest(current, job, latest).start
        bound = start + round(self._relaxation * (start - job.submit))
        if latest is None:
            current.guarantee(job, bound)
        # A running job that outlives its estimate can break the bound; then the earliest possible start takes its place.
        self._bound = job, bound if latest is None else max(start, min(latest, bound))

    def _keeps_bound(self, current: SchedulingCycle, first: QueuedJob, latest: int, nodes: int, length: int) -> bool:
        profile, now = current.profile, current.now
        profile.reserve(now, now + length, nodes)
        kept = self._earliest(current, first, latest).start <= latest
        profile.release(now, now + length, nodes)
        return kept

    def _earliest(self, current: SchedulingCycle, job: QueuedJob, latest: int | None) -> Reservation:
        """Return where a job completes first, in the shapes that keep its bound if there are any."""
        profile, shapes = current.profile, current.shapes[job.id]
        if latest is not None and len(shapes) > 1:
            shapes = [shape for shape in shapes if profile.earliest(*shape, latest) >= 0] or shapes
        return earliest_completion(shapes, (profile,))
