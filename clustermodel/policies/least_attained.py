"""Least attained service in discretised queues: preemptive scheduling without knowing run times (Tiresias).

J. Gu, M. Chowdhury, K. G. Shin, Y. Zhu, M. Jeon, J. Qian, H. Liu and C. Guo, "Tiresias: A GPU Cluster Manager for Distributed
Deep Learning", NSDI 2019, section 3.2 (discretised two-dimensional LAS).

* The *attained service* of a job is its nodes times the time for which it has held them running, overheads included.
* A job enters the first queue.  When its attained service reaches a threshold, it moves to the end of the next queue.
* Jobs take nodes queue after queue; in each queue running jobs come before waiting ones, else they keep their order.
* A job that has waited long enough may return to the first queue, with no attained service (promotion).

The paper leaves open when a demotion takes effect.  Here it is the rule of the simulator that Zhao et al. 2022 published (file
``simulator/run_sim.py``, function ``dlas_sim_jobs``): a decision is made when a running job has held its nodes for the
threshold over its nodes, rounded up to a second.  That simulator has thresholds of 3,250 and 7,200 GPU-seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import ClassVar, Final

from clustermodel.errors import SpecificationError, quoted
from clustermodel.policies.interface import Checkpoint, Decision, Kill, Setup, Suspend
from clustermodel.policies.preemptive import PreemptiveRun, PreemptiveScheduler
from clustermodel.policies.view import Batch, QueuedJob, View
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import require_number

Thresholds = float | str | Iterable[float]
_THRESHOLD: Final = 3250.0


@dataclass(frozen=True, kw_only=True)
class Las(PreemptiveScheduler):
    """Least attained service: jobs take nodes queue after queue, by how much node time they have had (Gu et al. 2019).

    Args:
        thresholds: attained service at which a job moves to the next queue, node-seconds: one for two queues, or several in
            ascending order, as ``(3250, 7200)`` or ``"3250/7200"``; ``inf``: there is one queue.
        promote: a job returns to the first queue when it has waited, since its first start or its last return, for so many
            times the time for which it has held its nodes; ``None``: never.  Where the thresholds are shorter than what
            preemption costs, jobs that return may preempt each other for ever.
        mode, round_s, min_run_s, victim, skip: as for ``PreemptiveScheduler``.

    Raises:
        SpecificationError: as for ``PreemptiveScheduler``.
    """

    name: ClassVar[str] = "las"
    thresholds: Thresholds = _THRESHOLD
    promote: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.thresholds, str | float | int):
            object.__setattr__(self, "thresholds", _ascending(self.thresholds))
        _ascending(self.thresholds)
        if self.promote is not None:
            require_number("las: promote", self.promote, "a finite number > 0, or None", lambda factor: 0 < factor < inf)
            if self.mode == "kill":
                raise SpecificationError(
                    f"las: promote: {self.promote:g} is not allowed with mode=kill, where jobs that return to the first queue "
                    "can kill each other for ever; it must be None, or mode checkpoint or suspend"
                )

    def start(self, setup: Setup) -> PreemptiveRun:
        """Start a run."""
        return _LasRun(self, setup)


class _LasRun(PreemptiveRun):
    def __init__(self, policy: Las, setup: Setup) -> None:
        super().__init__(policy, setup, "it fits, in the order of attained service")
        finite = (threshold for threshold in _ascending(policy.thresholds) if threshold < inf)
        self._thresholds = [round(threshold * TICKS_PER_SECOND) for threshold in finite]
        self._promote = policy.promote
        self._queue: dict[int, int] = {}  # job id -> its queue, from 0
        self._held: dict[int, int] = {}  # job id -> for how long it has held its nodes, ticks
        self._waited: dict[int, int] = {}  # job id -> for how long it has waited since its first start or last promotion, ticks
        self._updated = 0

    def _observe(self, batch: Batch, view: View) -> None:
        super()._observe(batch, view)
        since, self._updated = self._updated, view.now
        for gang in batch.ended:
            job_id = gang.job.id
            if job_id not in view.waiting:
                for state in (self._queue, self._held, self._waited):
                    state.pop(job_id, None)
            elif not gang.stopping:  # hit by a failure
                self._held[job_id] += view.now - max(since, gang.start)
        for gang in view.running.values():
            if not gang.stopping:
                self._held[gang.job.id] += view.now - max(since, gang.start)
        if self._promote is not None:
            requeued = {job.id for job in batch.requeued}
            for job_id in view.waiting:
                if self._held.get(job_id) and job_id not in requeued:
                    self._waited[job_id] += view.now - since
        for job in batch.submitted:
            self._queue[job.id] = self._held[job.id] = self._waited[job.id] = 0

    def _sort(self, view: View) -> None:
        moved = [job for job in self._order if self._moves(job, view)]
        if moved:
            moved.sort(key=lambda job: job.queue_order)
            ids = {job.id for job in moved}
            self._order = [job for job in self._order if job.id not in ids] + moved
        self._order.sort(key=lambda job: self._queue[job.id])

    def _moves(self, job: QueuedJob, view: View) -> bool:
        """Demote or promote a job by one decision; return whether it is in another queue now."""
        job_id = job.id
        queue, held = self._queue[job_id], self._held[job_id]
        if job_id in view.waiting:
            if self._promote is None or not queue or self._waited[job_id] < self._promote * held:
                return False
            self._queue[job_id] = self._held[job_id] = self._waited[job_id] = 0
            return True
        if queue == len(self._thresholds) or held * job.nodes < self._thresholds[queue]:
            return False
        self._queue[job_id] = queue + 1
        return True

    def _choose(self, view: View) -> Iterable[Decision]:
        decisions = list(super()._choose(view))
        stopped = {decision.job.id for decision in decisions if isinstance(decision, Checkpoint | Suspend | Kill)}
        runs = {job_id for job_id in view.running if job_id not in stopped} | {job.id for job in self._to_start}
        self._order.sort(key=lambda job: (self._queue[job.id], job.id not in runs))
        return decisions

    def _next_change(self, view: View, running: Mapping[QueuedJob, int]) -> int | None:
        """Return when the next job reaches a threshold or is promoted, ticks."""
        times = [view.now + left for job in running if (left := self._until_demotion(job)) is not None]
        if self._promote is not None:
            times += [
                view.now + max(-int(-self._promote * self._held[job_id] // 1) - self._waited[job_id], 1)
                for job_id in view.waiting
                if self._queue[job_id]
            ]
        return min(times, default=None)

    def _until_demotion(self, job: QueuedJob) -> int | None:
        queue = self._queue[job.id]
        if queue == len(self._thresholds):
            return None
        whole_seconds = -(-self._thresholds[queue] // (job.nodes * TICKS_PER_SECOND))
        return max(whole_seconds * TICKS_PER_SECOND - self._held[job.id], 1)


def _ascending(thresholds: Thresholds) -> tuple[float, ...]:
    """Return the thresholds as numbers.

    Raises:
        SpecificationError: one is not a positive number, or they do not ascend.
    """
    given: object = thresholds
    try:
        if isinstance(thresholds, str):
            numbers = [float(part) for part in thresholds.split("/")]
        else:
            numbers = (
                [float(threshold) for threshold in thresholds] if isinstance(thresholds, Iterable) else [float(thresholds)]
            )
    except (TypeError, ValueError):
        numbers = []
    if not numbers or not all(low < high for low, high in zip([0.0, *numbers], numbers, strict=False)):
        raise SpecificationError(
            f"las: thresholds: {quoted(given)} is not allowed; it must be a number of node-seconds > 0, "
            "or several that ascend, as 3250/7200"
        )
    return tuple(numbers)
