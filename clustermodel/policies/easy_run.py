"""One run of EASY backfilling: the rule, and what it keeps from one scheduling event to the next.

The first blocked job holds a reservation at its *shadow time*, when the running jobs are expected to have freed enough nodes;
the nodes left over then are the *extra nodes*.  A later job is backfilled if it fits now and (1) will complete by the shadow
time, or (2) needs no more than the extra nodes.  Both conditions say that the job fits into the profile of the running jobs and
the reservation, as for any number of protected jobs (:class:`clustermodel.policies.backfilling.head.HeadRun`).
Whether predictions have expired is checked when a job arrives or completes, without an alarm, so the protected job can miss
its reservation.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

from clustermodel.plans.profile import Profile
from clustermodel.policies.interface import Decision, Reason, Reserve, Setup, Start
from clustermodel.policies.predictors import Lengths
from clustermodel.policies.view import Batch, Outage, QueuedJob, RunningJob, View

BackfillOrder = Callable[[QueuedJob, int], Any]
"""Sorting key of the backfill candidates, given the job and the present in ticks; the smallest comes first."""


def backfill(
    profile: Profile, jobs: Iterable[QueuedJob], idle: int, length_of: Callable[[QueuedJob], int], skip: Container[int] = ()
) -> Iterator[QueuedJob]:
    """Yield the jobs that can start now and delay no reservation in the profile, without those whose ids are in ``skip``."""
    # The caller subtracts each job from the profile before it asks for the next one.
    fits = profile.fits
    for job in jobs:
        if job.nodes <= idle and job.id not in skip and fits(job.nodes, length_of(job)):
            idle -= job.nodes
            yield job
            if not idle:
                return


class EasyRun:
    """One run with a single reservation, which is renewed: the expected ends of the running jobs say all that it needs."""

    def __init__(self, setup: Setup, lengths: Lengths, order: BackfillOrder | None) -> None:
        self._lengths, self._length_of, self._order = lengths, lengths.of, order
        self._are_estimates = lengths.are_estimates
        self._explain, self._may_overrun = setup.explain, lengths.may_overrun
        # (assumed end, id, nodes) of running jobs and outages, ascending.
        self._ends: list[tuple[int, int, int]] = []
        self._assumed: dict[int, tuple[int, int]] = {}  # id -> assumed and expected end, of what may outlive that
        self._protected: QueuedJob | None = None  # the first blocked job
        self._shadow = self._extra = 0  # its shadow time, and the extra nodes

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start what fits, protect the first blocked job, backfill the rest."""
        now, waiting, ends = view.now, view.waiting, self._ends
        ended, submitted, _, _, failed, repaired, _ = batch
        if not self._are_estimates:
            self._lengths.observe(batch, view)
        freed = self._forget(ended, now) if ended else False
        if failed or repaired:
            freed |= self._note_outages(failed, repaired, now)
        late = self._overrunning(now) if ends and ends[0][0] <= now else []
        if not (waiting or late):
            return []
        decisions: list[Decision] = []
        candidates: Iterable[QueuedJob] = waiting.values()
        idle, protected = view.idle, self._protected
        if protected is not None:
            overtaken = submitted and submitted[0].queue_order < protected.queue_order
            if late or failed or overtaken or self._shadow < now:  # a reserved start is missed where jobs have overrun
                self._protected = protected = None
        if late:
            self._extend(late, now, view)
        if protected is not None:
            if freed:
                decisions += self._renew(protected, now, idle)
            elif not (ended or repaired):
                candidates = submitted  # no nodes have become free, so that no job that waited before can start
            if self._shadow == now:
                decisions.append(self._start(protected, now, reserved=now))
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
                    decisions.append(self._reserve(job))
                    break
                idle -= job.nodes
                decisions.append(self._start(job, now))
        if idle and self._protected is not None:  # otherwise no candidate is left
            self._backfill(queue, now, idle, decisions)

    def _forget(self, ended: Iterable[RunningJob], now: int) -> bool:
        """Take out gangs that have ended; return whether one ended early."""
        ends, early = self._ends, False
        for gang in ended:
            job_id = gang.job.id
            end = self._assumed.pop(job_id)[0] if self._may_overrun else gang.expected_end
            if end > now:
                early = True
            del ends[bisect_left(ends, (end, job_id, 0))]
        return early

    def _note_outages(self, failed: Iterable[Outage], repaired: Iterable[Outage], now: int) -> bool:
        """Enter new outages, take out those that are over; return whether one of these ended early."""
        ends, early = self._ends, False
        for outage in failed:
            self._assumed[outage.id] = outage.expected_end, outage.expected_end
            insort(ends, (outage.expected_end, outage.id, outage.nodes))
        for outage in repaired:
            end = self._assumed.pop(outage.id)[0]
            early |= end > now
            del ends[bisect_left(ends, (end, outage.id, 0))]
        return early

    def _overrunning(self, now: int) -> list[tuple[int, int, int]]:
        """Take out the jobs and outages whose assumed ends have passed."""
        late = bisect_left(self._ends, (now + 1,))
        overrunning = self._ends[:late]
        del self._ends[:late]
        return overrunning

    def _extend(self, late: Iterable[tuple[int, int, int]], now: int, view: View) -> None:
        """Assume a later end of jobs and outages."""
        delay_of = self._lengths.delays(view.running)
        for _, job_id, nodes in late:
            expected = self._assumed[job_id][1]
            end = expected + delay_of(job_id, now - expected)
            self._assumed[job_id] = end, expected
            insort(self._ends, (end, job_id, nodes))

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
        return [self._reserve(job)] if now < self._shadow < before else []

    def _backfill(self, jobs: Iterable[QueuedJob], now: int, idle: int, decisions: list[Decision]) -> None:
        length_of, protected, shadow, extra = self._length_of, self._protected, self._shadow, self._extra
        if (order := self._order) is not None:
            jobs = sorted(jobs, key=lambda job: order(job, now))
        for job in jobs:
            if job.nodes <= idle and job is not protected:
                outlasts_shadow = now + length_of(job) > shadow
                if outlasts_shadow and job.nodes > extra:
                    continue
                decisions.append(self._start(job, now))
                if outlasts_shadow:
                    self._extra = extra = extra - job.nodes
                idle -= job.nodes
                if not idle:
                    return

    def _reserve(self, job: QueuedJob) -> Reserve:
        return Reserve(job=job, start=self._shadow, guaranteed=self._are_estimates)

    def _start(self, job: QueuedJob, now: int, reserved: int | None = None) -> Start:
        if not self._are_estimates:
            self._lengths.started(job)
        length_of = self._length_of
        end = now + length_of(job)
        reason = self._reason(job, end, reserved) if self._explain else None
        insort(self._ends, (end, job.id, job.nodes))
        if self._may_overrun:
            self._assumed[job.id] = end, end
        return Start(job=job, reason=reason)

    def _reason(self, job: QueuedJob, end: int, reserved: int | None) -> Reason:
        holder = self._protected
        if holder is None or holder is job or job.queue_order < holder.queue_order:
            return Reason("head of the queue, and it fits", reserved=reserved)
        why = "it will end by the shadow time" if end <= self._shadow else "it takes no more than the extra nodes"
        return Reason(f"backfilled: {why}", holder=holder.id, shadow=self._shadow, extra=self._extra)
