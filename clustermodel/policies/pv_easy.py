"""PV-EASY: preemptive venture EASY backfilling (004_55d19449f9d7d838.txt, section 4).

Jobs start in queue order until the first one is *blocked*: the idle nodes are not enough for it.  Then

* *shadow load preemption* (section 4.2): the running jobs of lower priority, the *shadow load*, make way if, and only if, that
  lets the blocked job start at once; so where priorities are equal and preemption costs no time, no job that is at the head of
  the queue is delayed by one behind it (jobs deeper in the queue can be: docs/pv_easy);
* *venture backfilling* (section 4.3): if it cannot start, jobs that are predicted to end by its reservation are backfilled,
  the shortest first, and then whatever fits, in queue order, for the shadow load can be preempted.

The rest of the running load, jobs of higher priority than all that wait, is the *sunny load*.  Nobody preempts it, and it alone
counts when the reservation is made.  A job passes from the shadow to the sunny load when the last job before it starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple, get_args

from clustermodel.errors import SpecificationError, did_you_mean
from clustermodel.policies.interface import (
    Batch,
    Checkpoint,
    Decision,
    Kill,
    QueuedJob,
    Reason,
    Reserve,
    RunningJob,
    Setup,
    Start,
    Suspend,
    View,
)
from clustermodel.policies.predictors import Predictor, UserEstimate, learn, predictor_of
from clustermodel.schedule.running_profile import SHORTEST_EXTENSION

Mode = Literal["kill", "checkpoint", "suspend"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)


def mode_of(policy: str, mode: str) -> Mode:
    """Return what preemption does to a job.

    Raises:
        SpecificationError: ``mode`` is none of :data:`MODES`.
    """
    for known in MODES:
        if mode == known:
            return known
    raise SpecificationError(
        f"{policy}: mode: {mode!r} is not allowed{did_you_mean(str(mode), MODES)}; it must be one of {', '.join(MODES)}"
    )


class _Room(NamedTuple):
    """What the first blocked job is predicted to find."""

    start: int
    """When it can start: its reservation, or shadow time, ticks."""
    extra: int
    """Nodes that are left over then."""


class _Running(NamedTuple):
    job: QueuedJob
    end: int
    """As predicted when it started, ticks; when its nodes are predicted to come free, if it is being preempted."""
    stopping: bool = False


class PVEasy:
    """Preemptive venture EASY backfilling (004, section 4).

    Args:
        slp: shadow load preemption.  Without it nothing is preempted.
        vb: venture backfilling.  Without it EASY backfilling decides which jobs are backfilled: those that are predicted to end
            by the time at which the whole running load is predicted to make room, and those that take no more than the extra
            nodes.
        predictor: of run times: ``"last"`` (the paper's), ``"estimate"``, ``"perfect"``, ``"last-two"``, ``"virtual:X"`` or an
            object (:mod:`clustermodel.policies.predictors`).
        mode: what preemption does to a job: ``"kill"`` (the paper's), ``"checkpoint"`` or ``"suspend"``.  Where memory has no
            room for a suspended job it is killed.

    Raises:
        SpecificationError: an argument has a value that is not allowed, or (``begin``) the machine takes no checkpoints.
    """

    name = "pv-easy"

    def __init__(
        self, *, slp: bool = True, vb: bool = True, predictor: str | Predictor = "last", mode: str | Mode = "kill"
    ) -> None:
        for parameter, value in (("slp", slp), ("vb", vb)):
            if not isinstance(value, bool):
                raise SpecificationError(f"pv-easy: {parameter}: {value!r} is not allowed; it must be true or false")
        self._slp = slp
        self._vb = vb
        self._predictor = predictor_of("pv-easy", predictor)
        self._mode = mode_of("pv-easy", mode)

    def begin(self, setup: Setup) -> None:
        """Get ready for a run."""
        machine = setup.machine
        costs = machine.checkpointing
        if self._mode != "kill" and costs.max_tasks_per_slice == 0:
            raise SpecificationError(
                f"pv-easy: mode={self._mode}: the machine takes no checkpoints (max_tasks_per_slice=0), "
                "so that no job could go on on other nodes"
            )
        self._to_save, self._to_fetch = {
            "kill": (0, 0),
            "checkpoint": (costs.checkpoint, costs.restart),
            "suspend": (machine.switch_ticks, machine.switch_ticks),
        }[self._mode]
        self._keeps_promises = self._slp and type(self._predictor) is UserEstimate and not self._to_save
        self._nodes = setup.nodes
        self._explain = setup.explain
        self._predictor.begin(setup)
        self._load: dict[int, _Running] = {}  # the running load, by job id
        self._blocked: QueuedJob | None = None  # the first job of the queue, when all was last done that could be

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start jobs in queue order; preempt for the first one that is blocked; backfill."""
        learn(self._predictor, batch, view)
        for gang in batch.ended:
            self._load.pop(gang.job.id, None)
        decisions: list[Decision] = []
        idle = view.idle
        waiting = iter(view.waiting.values())
        for head in waiting:
            if head.nodes > idle:
                break
            decisions.append(self._start(head, view, "head of the queue, and it fits"))
            idle -= head.nodes
        else:
            self._blocked = None
            return decisions

        coming = self._coming(head)
        if self._slp and idle + coming < head.nodes:
            preempted = self._shadow_load_preemption(head, idle + coming)
            orders = [self._preempt(view.running[job.id], view) for job in preempted]
            decisions += orders
            if any(self._frees_at_once(order, view) for order in orders):
                self._blocked = None
                return decisions  # nodes come free at this very instant, and all is looked at again
            coming += sum(job.nodes for job in preempted)
        claimed = coming > 0 and idle + coming >= head.nodes
        if claimed:
            idle = min(idle, idle + coming - head.nodes)  # the others are kept for the head of the queue

        # Venture backfilling leaves no job waiting that fits: if nothing has been freed since, only new ones can.
        nothing_freed = self._vb and head is self._blocked and not batch.ended
        candidates: Iterable[QueuedJob] = batch.submitted if nothing_freed else waiting
        fitting = [job for job in candidates if job.nodes <= idle and job.queue_order > head.queue_order]
        if fitting or head is not self._blocked:
            room = self._reservation(head, view.now)
            if head is not self._blocked and not claimed:
                decisions.append(Reserve(job=head, start=room.start, guaranteed=self._keeps_promises))
            backfill = self._venture_backfilling if self._vb else self._easy_backfilling
            decisions += backfill(fitting, idle, head, room, view)
        self._blocked = None if claimed else head
        return decisions

    def _coming(self, head: QueuedJob) -> int:
        """Return how many nodes ``head`` will get from jobs that are being saved; one ahead of it takes its own back."""
        order = head.queue_order
        return sum(job.nodes for job, _, stopping in self._load.values() if stopping and job.queue_order > order)

    # Section 4.2.

    def _shadow_load_preemption(self, head: QueuedJob, free: int) -> Sequence[QueuedJob]:
        """Return the jobs that make way for ``head``: of the shadow load, from low priority to high, as many as it takes."""
        shadow_load = [job for job, _, stopping in self._load.values() if job.queue_order > head.queue_order and not stopping]
        if free + sum(job.nodes for job in shadow_load) < head.nodes:
            return ()  # preemption would not enable it to start right away
        shadow_load.sort(key=lambda job: job.queue_order, reverse=True)
        for count, job in enumerate(shadow_load, 1):
            free += job.nodes
            if free >= head.nodes:
                return shadow_load[:count]
        raise AssertionError("the whole shadow load was enough")

    def _preempt(self, gang: RunningJob, view: View) -> Kill | Checkpoint | Suspend:
        self._load[gang.job.id] = _Running(gang.job, view.now + self._to_save, stopping=True)
        if self._mode == "checkpoint":
            return Checkpoint(job=gang.job)
        if self._mode == "suspend" and view.can_suspend(gang):
            return Suspend(job=gang.job)
        return Kill(job=gang.job, requeue=True)

    def _frees_at_once(self, order: Kill | Checkpoint | Suspend, view: View) -> bool:
        return not self._to_save or isinstance(order, Kill) or view.running[order.job.id].fetching

    # Section 4.3.

    def _reservation(self, head: QueuedJob, now: int) -> _Room:
        """Step 1: return when the first blocked job can start, as predicted.

        Only the sunny load counts.  Without venture backfilling the whole load does, as in EASY.
        """
        soonest = now + SHORTEST_EXTENSION  # for jobs that have outlived their predictions
        ends = []
        free = self._nodes
        for job, end, _ in self._load.values():
            if not self._vb or job.queue_order < head.queue_order:
                ends.append((end if end > now else soonest, job.nodes))
                free -= job.nodes
        ends.sort()
        start = now
        for end, nodes in ends:
            if end > start and free >= head.nodes:
                break
            start = end
            free += nodes
        return _Room(start, free - head.nodes)

    def _venture_backfilling(
        self, fitting: Sequence[QueuedJob], idle: int, head: QueuedJob, room: _Room, view: View
    ) -> list[Decision]:
        """Steps 2 to 4."""
        decisions: list[Decision] = []
        ventured = {job.id: job for job in fitting}
        by_end = sorted((self._length(job, view), job.queue_order, job) for job in fitting)
        for length, _order, job in by_end:
            if view.now + length > room.start:
                break
            if job.nodes <= idle:
                idle -= job.nodes
                del ventured[job.id]
                decisions.append(self._start(job, view, "backfilled: predicted to end by the reservation", head, room))
        for job in ventured.values():
            if job.nodes <= idle:
                idle -= job.nodes
                decisions.append(self._start(job, view, "ventured: it may be preempted", head, room))
        return decisions

    def _easy_backfilling(
        self, fitting: Sequence[QueuedJob], idle: int, head: QueuedJob, room: _Room, view: View
    ) -> list[Decision]:
        """EASY (001, section 3.1), with predictions."""
        decisions: list[Decision] = []
        extra = room.extra
        for job in fitting:
            in_time = view.now + self._length(job, view) <= room.start
            if job.nodes <= idle and (in_time or job.nodes <= extra):
                idle -= job.nodes
                extra -= 0 if in_time else job.nodes
                rule = "predicted to end by the shadow time" if in_time else "it takes no more than the extra nodes"
                decisions.append(self._start(job, view, f"backfilled: {rule}", head, room))
        return decisions

    def _length(self, job: QueuedJob, view: View) -> int:
        """Return for how long a job would hold its nodes from now on, as predicted."""
        length, saved = self._predictor.predict(job), view.saved(job)
        return self._to_fetch + max(length - saved, SHORTEST_EXTENSION) if saved else length

    def _start(self, job: QueuedJob, view: View, rule: str, head: QueuedJob | None = None, room: _Room | None = None) -> Start:
        self._load[job.id] = _Running(job, view.now + self._length(job, view))
        if not self._explain:
            return Start(job=job)
        if head is None or room is None:
            return Start(job=job, reason=Reason(rule))
        return Start(job=job, reason=Reason(rule, holder=head.id, shadow=room.start))
