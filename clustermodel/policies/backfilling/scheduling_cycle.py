"""One execution of a backfilling scheduler: the state that its phases share (003, figure 2).

What the phases decide is collected here, and reserved in the plan at once, so that each phase sees what the ones before it
have left over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from clustermodel.policies.interface import Batch, Decision, QueuedJob, Reason, Reserve, Start, View
from clustermodel.policies.queue_order import QueueSorter
from clustermodel.schedule.plan import Plan
from clustermodel.schedule.reservation import Reservation, Shape, Shapes


class Dispatch:
    """A job that starts in this pass."""

    __slots__ = ("fits", "job", "length", "limit", "nodes", "why")

    def __init__(self, job: QueuedJob, nodes: int, length: int, limit: int | None, fits: str, why: str) -> None:
        self.job = job
        self.nodes = nodes
        self.length = length
        """Ticks until its expected end: its estimate on these nodes, or its time limit."""
        self.limit = limit
        """Ticks after which it is stopped, where it is started speculatively."""
        self.fits = fits
        """Why it can start, in words."""
        self.why = why
        """And why it may, although others go on waiting."""


class Pass:
    """The state of one pass over the queue.

    Args:
        batch: what has happened.
        view: the machine.
        plan: running jobs and reservations, up to date.
        room_made: whether a job ended early.
        speculates: whether a phase after the first starts jobs that it has left.
        widens: whether a phase after that widens jobs that start.
        reshapes: whether jobs can have more than one shape.
        sorter: the queue's order.
        shapes: waiting job's id -> the shapes it can have, the preferred one first.
        length_of: returns how long a job is expected to run on the nodes it asked for, ticks.
        guaranteed: whether jobs end by their expected ends at the latest, so that promises are certain.
        explain: whether to give reasons.
    """

    __slots__ = (
        "_explain", "_guaranteed", "_held", "_mark", "_promises", "_queue", "_sorter", "batch", "dispatched", "idle",
        "length_of", "now", "plan",
        "reshapes", "room_made", "shapes", "speculates", "view", "widens",
    )  # fmt: skip

    def __init__(
        self,
        batch: Batch,
        view: View,
        plan: Plan,
        *,
        room_made: bool,
        speculates: bool,
        widens: bool,
        reshapes: bool,
        sorter: QueueSorter,
        shapes: Mapping[int, Shapes],
        length_of: Callable[[QueuedJob], int],
        guaranteed: bool,
        explain: bool,
    ) -> None:
        self.batch = batch
        self.view = view
        self.now = view.now
        self.plan = plan
        self.room_made = room_made
        self.speculates = speculates
        self.widens = widens
        self.reshapes = reshapes
        self.shapes = shapes
        self.length_of = length_of
        self.idle = view.idle
        """Nodes that are still idle."""
        self.dispatched: dict[int, Dispatch] = {}
        """Job id -> how it starts."""
        self._sorter = sorter
        self._guaranteed = guaranteed
        self._explain = explain
        self._queue: Sequence[QueuedJob] | None = None
        self._held: dict[int, int] = {}  # job id -> start of the room that is held for it in this pass only
        self._promises: list[Decision] = []
        self._mark: tuple[list[int], list[int]] | None = None

    @property
    def queue(self) -> Sequence[QueuedJob]:
        """All waiting jobs in the order of this pass, which all its phases share."""
        if self._queue is None:
            self._queue = self._sorter.sort(self.view.waiting.values(), self.now)
        return self._queue

    @property
    def newcomers(self) -> Sequence[QueuedJob]:
        """The jobs that have come to the queue, in its order, and hold no reservation."""
        fresh = self.batch.submitted
        if returned := [job for job in self.batch.requeued if job.id not in self.plan.reserved]:
            fresh = sorted([*returned, *fresh], key=lambda job: job.queue_order)
        return self._sorter.sort(fresh, self.now) if len(fresh) > 1 else fresh

    def promise(self, job: QueuedJob, start: int) -> None:
        """Tell a job when it will start at the latest."""
        self._promises.append(Reserve(job=job, start=start, guaranteed=self._guaranteed))

    def start_due(self) -> None:
        """Start the jobs whose reserved time has come."""
        plan = self.plan
        for job_id in plan.due(self.now):
            job = self.view.waiting[job_id]
            room = plan.take_up(job)
            self.idle -= room.nodes
            words = "its reserved time has come", "which delays no waiting job"
            self.dispatched[job_id] = Dispatch(job, room.nodes, room.length, None, *words)

    def start(self, job: QueuedJob, shape: Shape, why: str, limit: int | None = None) -> None:
        """Start a job in room that is free from now on."""
        nodes, length = shape
        if limit is not None and limit < length:
            length = limit
        self.plan.reserve(self.now, self.now + length, nodes)
        self.idle -= nodes
        self.dispatched[job.id] = Dispatch(job, nodes, length, limit, "it fits", why)

    def fitting(self, job: QueuedJob) -> Shape | None:
        """Return the shape in which a job fits now and ends first, ``None`` if it does not fit."""
        fits = self.plan.fits
        now = [shape for shape in self.shapes[job.id] if shape[0] <= self.idle and fits(*shape)]
        return min(now, key=lambda shape: shape[1]) if now else None

    def set_aside(self) -> None:
        """From here on, what is reserved holds for this pass only, except for jobs that start."""
        self._mark = self.plan.mark()

    def hold(self, job: QueuedJob, room: Reservation) -> None:
        """Reserve room that was promised to a job, for this pass only."""
        self.plan.reserve(room.start, room.end, room.nodes)
        self._held[job.id] = room.start

    @property
    def held_next(self) -> int | None:
        """When the first room begins that is held in this pass only and not yet there, ``None`` if there is none."""
        return min((start for start in self._held.values() if start > self.now), default=None)

    def held_from(self, job: QueuedJob) -> int | None:
        """Return when the room begins that is held or reserved for a job, ``None`` if it has none."""
        reserved = self.plan.reserved.get(job.id)
        return self._held.get(job.id) if reserved is None else reserved.start

    def decisions(self) -> list[Decision]:
        """Return what the phases have decided, and leave in the plan what outlasts this pass."""
        plan, now = self.plan, self.now
        if self._mark is not None:
            plan.rewind(self._mark)
        decisions = self._promises
        for job_id, dispatch in self.dispatched.items():
            job, nodes = dispatch.job, dispatch.nodes
            if self._mark is not None:
                plan.reserve(now, now + dispatch.length, nodes)
            plan.note_start(job_id, nodes, now + dispatch.length)
            width = None if nodes == job.nodes else nodes
            reason = self._reason(dispatch) if self._explain else None
            decisions.append(Start(job=job, reason=reason, nodes=width, limit=dispatch.limit))
        return decisions

    def _reason(self, dispatch: Dispatch) -> Reason:
        """Say why a job starts, now that it is known which jobs go on waiting."""
        job, reserved = dispatch.job, self.plan.reserved
        waiting = (other for other in self.view.waiting.values() if other is not job and other.id not in self.dispatched)
        holder = next(waiting, None)
        if holder is None or job.queue_order < holder.queue_order:
            return Reason(f"head of the queue, and {dispatch.fits}", reserved=self.now)
        room = reserved.get(holder.id)
        return Reason(
            f"backfilled: {dispatch.fits}, {dispatch.why}",
            holder=holder.id,
            shadow=None if room is None else room.start,
            reserved=self.now,
        )
