"""Who holds a reservation: the first phase of a backfilling scheduler, and what tells its variants apart.

Each goes through the waiting jobs in the order of the pass and starts those that may start now.  Under

* ``all``, every waiting job holds a reservation that never becomes later: conservative backfilling (001, section 3.2; 003,
  section 2);
* ``none``, all jobs are placed afresh at every pass and nothing is kept: 003's *no-guarantee* backfilling (section 4);
* ``selective``, a job is given a reservation once its expected slowdown has passed a threshold (Srinivasan, Kettimuthu,
  Subramani and Sadayappan, Selective reservation strategies for backfill job scheduling, 2002);
* ``relaxed``, the first blocked job may be delayed, by a bounded share of its wait (Ward, Mahood and West, Scheduling jobs on
  parallel systems using a relaxed backfill strategy, 2002).
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from clustermodel.policies.backfilling.scheduling_cycle import Pass
from clustermodel.policies.interface import QueuedJob, Setup
from clustermodel.schedule.reservation import Reservation
from clustermodel.validation import require_number


@runtime_checkable
class Guarantees(Protocol):
    """A part of :class:`~clustermodel.policies.backfilling.scheduler.Backfilling`."""

    def begin(self, setup: Setup) -> None:
        """Forget any earlier run."""

    def schedule(self, current: Pass) -> None:
        """Start the jobs that may start, and reserve room for others."""


class EveryJob:
    """Every waiting job holds a reservation, and nobody may be delayed.

    A job is placed, when it is submitted, where it can end first; that start is a guarantee.  When a job ends before its
    estimate, each waiting job in turn is taken out of the plan and put back, never later (*compression*).
    """

    def begin(self, setup: Setup) -> None:
        """There is nothing to forget: the reservations are in the plan."""

    def schedule(self, current: Pass) -> None:
        """Compress the plan if there is room, place the new jobs, start those whose time has come."""
        plan = current.plan
        compress(current)
        for job in current.newcomers:
            room = plan.earliest_room(current.shapes[job.id])
            plan.keep(job, room)
            if room.start > current.now:
                current.promise(job, room.start)
        current.start_due()


class NoJob:
    """Nobody holds a reservation for longer than a pass: all waiting jobs are placed afresh each time (003, section 4).

    Where no job can start or be widened any more the pass ends: nothing would be left of what else it placed.
    """

    def begin(self, setup: Setup) -> None:
        """There is nothing to forget."""

    def schedule(self, current: Pass) -> None:
        """Place the jobs in turn; those that can start now do."""
        current.set_aside()
        plan, now, shapes, queue = current.plan, current.now, current.shapes, current.queue
        narrowest = [min(nodes for nodes, _ in shapes[job.id]) for job in queue]
        last = len(queue)
        for at, job in enumerate(queue):
            while last and narrowest[last - 1] > current.idle:
                last -= 1
            can_start = last and (at < last or current.speculates)
            if not current.idle or not (can_start or (current.widens and current.dispatched)):
                break
            room = plan.earliest_room(shapes[job.id])
            if room.start == now:
                current.start(job, (room.nodes, room.length), "which no waiting job was placed to prevent")
            else:
                plan.reserve(room.start, room.end, room.nodes)


class Selective:
    """A waiting job is given a reservation once its expected slowdown has passed a threshold; the others must not delay it.

    The expected slowdown of a job that started now would be (wait + estimate) / estimate.

    Args:
        threshold: of the expected slowdown; 1 gives every job a reservation that cannot start when it is first looked at.

    Raises:
        SpecificationError: ``threshold`` is below 1.
    """

    def __init__(self, threshold: float = 2.0) -> None:
        self._threshold = require_number("backfilling: threshold", threshold, "a number >= 1", lambda value: value >= 1)

    def begin(self, setup: Setup) -> None:
        """There is nothing to forget: the reservations are in the plan."""

    def schedule(self, current: Pass) -> None:
        """Improve the reservations if there is room, then start what fits, and reserve for those that have waited enough."""
        plan, now = current.plan, current.now
        compress(current)
        current.start_due()
        for job in current.queue:
            if job.id in plan.reserved or job.id in current.dispatched:
                continue
            if (shape := current.fitting(job)) is not None:
                current.start(job, shape, "which delays no job that holds a reservation")
            elif now - job.submit + job.estimate >= self._threshold * job.estimate:
                room = plan.earliest_room(current.shapes[job.id])
                plan.keep(job, room)
                current.promise(job, room.start)


class Relaxed:
    """The first blocked job may be delayed, by at most a share of the wait it can expect; nobody else is protected.

    If it could start at s in the plan of running jobs, it must be able to start by s + ``relaxation`` x (s - submit).  The
    first such bound is a promise, and never grows, not even where a job of higher priority comes.  With a relaxation of 0
    this is EASY, as long as all priorities are equal.

    Args:
        relaxation: the share.

    Raises:
        SpecificationError: ``relaxation`` is negative.
    """

    def __init__(self, relaxation: float = 0.5) -> None:
        allowed = "a finite number >= 0"
        self._relaxation = require_number(
            "backfilling: relaxation", relaxation, allowed, lambda value: 0 <= value < float("inf")
        )

    def begin(self, setup: Setup) -> None:
        """Forget the promises of an earlier run."""
        self._promised: tuple[QueuedJob, int] | None = None  # the first blocked job, and its latest start

    def schedule(self, current: Pass) -> None:
        """Start what fits and leaves the first blocked job its promise."""
        current.set_aside()
        if self._promised is not None:
            first, latest = self._promised
            waits = first.id in current.view.waiting
            if not waits and first.id not in current.view.running:  # it has ended in a speculative run
                self._promised = None
            elif waits and (shape := current.fitting(first)) is not None:
                current.start(first, shape, "and its promised start has come")
                self._promised = None
            else:
                self._promise(current, first, latest)
        for job in current.queue:
            if not current.idle and self._promised is not None:
                break
            if job.id in current.dispatched:
                continue
            if (shape := current.fitting(job)) is not None:
                if self._promised is None:
                    current.start(job, shape, "which delays no promised start")
                elif self._keeps_promise(current, *shape):
                    current.start(job, shape, "and the first blocked job can still start by the time it was promised")
            elif self._promised is None:
                self._promise(current, job, None)
        if self._promised is not None:  # for the phases to come
            first, latest = self._promised
            current.hold(first, self._room(current, first, latest))

    def _promise(self, current: Pass, job: QueuedJob, latest: int | None) -> None:
        start = self._room(current, job, latest).start
        bound = start + round(self._relaxation * (start - job.submit))
        if latest is None:
            current.promise(job, bound)
        # A running job that outlives its estimate can break the promise; then the next best is kept.
        self._promised = job, bound if latest is None else max(start, min(latest, bound))

    def _keeps_promise(self, current: Pass, nodes: int, length: int) -> bool:
        assert self._promised is not None
        job, latest = self._promised
        plan, now = current.plan, current.now
        plan.reserve(now, now + length, nodes)
        kept = self._room(current, job, latest).start <= latest
        plan.release(now, now + length, nodes)
        return kept

    def _room(self, current: Pass, job: QueuedJob, latest: int | None) -> Reservation:
        """Return the room in which a job ends first, of those that keep its promise if there are any."""
        plan, shapes = current.plan, current.shapes[job.id]
        if latest is not None and len(shapes) > 1:
            shapes = [shape for shape in shapes if plan.earliest(*shape) <= latest] or shapes
        return plan.earliest_room(shapes)


def compress(current: Pass) -> None:
    """Move reservations up, in the order of the pass, if a job has ended early."""
    plan = current.plan
    if not (current.room_made and plan.reserved):
        return
    jobs = [job for job in current.queue if job.id in plan.reserved]
    if current.reshapes:
        plan.reshape(jobs, current.shapes)
    else:
        plan.compress(jobs, current.now)
