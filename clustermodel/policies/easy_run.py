"""EASY backfilling where one number says what is free and jobs end by their estimates: in half the time of the common run.

The rule is that of :mod:`clustermodel.policies.backfilling.head` with one reservation, and so are the schedules.  Here the
expected ends of the running jobs are all that is kept of a plan: the shadow time and the extra nodes follow from them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from clustermodel.policies.interface import Decision, Reserve, Start
from clustermodel.policies.view import Batch, QueuedJob, RunningJob, View


class EasyRun:
    """One run with a single reservation, which is renewed when running jobs end early."""

    def __init__(self) -> None:
        self._ends: list[tuple[int, int, int]] = []  # (expected end, id, nodes) of running jobs, ascending
        self._protected: QueuedJob | None = None  # the first blocked job
        self._shadow = self._extra = 0  # its shadow time, and the extra nodes

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start what fits, protect the first blocked job, backfill the rest."""
        now, waiting = view.now, view.waiting
        ended, submitted, _, _, _, _, _ = batch
        freed = self._forget(ended, now) if ended else False
        if not waiting:
            return []
        decisions: list[Decision] = []
        candidates: Iterable[QueuedJob] = waiting.values()
        idle, protected = view.idle, self._protected
        if protected is not None and submitted and submitted[0].queue_order < protected.queue_order:
            self._protected = protected = None  # it is overtaken
        if protected is not None:
            if freed:
                decisions += self._renew(protected, now, idle)
            elif not ended:
                candidates = submitted  # no nodes have become free, so that no job that waited before can start
            if self._shadow == now:
                decisions.append(self._start(protected, now))
                self._protected = None
                idle -= protected.nodes
                candidates = (job for job in candidates if job is not protected)
        self._schedule(candidates, now, idle, decisions)
        return decisions

    def _schedule(self, candidates: Iterable[QueuedJob], now: int, idle: int, decisions: list[Decision]) -> None:
        """Start jobs in queue order, protect the first one that is blocked, backfill the rest."""
        queue = iter(candidates)
        if self._protected is None:
            for job in queue:
                if job.nodes > idle:
                    self._protect(job, now, idle)
                    decisions.append(Reserve(job=job, start=self._shadow))
                    break
                idle -= job.nodes
                decisions.append(self._start(job, now))
        if idle and self._protected is not None:  # otherwise no candidate is left
            self._backfill(queue, now, idle, decisions)

    def _forget(self, ended: Iterable[RunningJob], now: int) -> bool:
        """Take out gangs that have ended; return whether one ended early."""
        ends, early = self._ends, False
        for gang in ended:
            end = gang.expected_end
            if end > now:
                early = True
            del ends[bisect_left(ends, (end, gang.job.id, 0))]
        return early

    def _protect(self, job: QueuedJob, now: int, idle: int) -> None:
        """Reserve for a job at its shadow time."""
        free, nodes, shadow = idle, job.nodes, now
        for end, _, ends in self._ends:
            if free >= nodes and end > shadow:
                break
            free += ends
            shadow = end
        self._protected, self._shadow, self._extra = job, shadow, free - nodes

    def _renew(self, job: QueuedJob, now: int, idle: int) -> list[Reserve]:
        """Recompute the protected job's reservation; return it if it is earlier than before, and not now."""
        before = self._shadow
        self._protect(job, now, idle)
        return [Reserve(job=job, start=self._shadow)] if now < self._shadow < before else []

    def _backfill(self, jobs: Iterable[QueuedJob], now: int, idle: int, decisions: list[Decision]) -> None:
        protected, shadow, extra = self._protected, self._shadow, self._extra
        for job in jobs:
            if job.nodes <= idle and job is not protected:
                outlasts_shadow = now + job.estimate > shadow
                if outlasts_shadow and job.nodes > extra:
                    continue
                decisions.append(self._start(job, now))
                if outlasts_shadow:
                    self._extra = extra = extra - job.nodes
                idle -= job.nodes
                if not idle:
                    return

    def _start(self, job: QueuedJob, now: int) -> Start:
        insort(self._ends, (now + job.estimate, job.id, job.nodes))
        return Start(job=job)
