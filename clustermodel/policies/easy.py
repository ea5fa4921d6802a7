"""EASY backfilling (001, section 3.1): a job may jump ahead if it does not delay the first job in the queue.

The first blocked job holds a reservation at its *shadow time*, when the running jobs are expected to have freed enough
nodes; the nodes left over then are the *extra nodes*.  A later job is backfilled if it fits now and

1. will end by the shadow time, or
2. needs no more than the extra nodes.

Both say that it fits the plan of the running jobs and the reservation, so that one test serves any number of protected
jobs (``reserve_depth``).  A reservation is only ever improved, so with several the second is as safe as the first.

With a predictor, predictions take the place of estimates in all of this (004_55d19449f9d7d838.txt, section 3.2): EASY-Last is
``easy:predictor=last``.

A running job that has outlived its prediction, or its estimate where nothing kills it there, is assumed to end a second from
now.  That is looked at when a job comes or ends, and is no event of its own; so a reservation can be missed.  With several
reservations, which can begin when nothing else happens, it is an event, and the assumption is that of conservative
backfilling (:class:`~clustermodel.schedule.running_profile.RunningProfile`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Final

from clustermodel.errors import SpecificationError
from clustermodel.policies.interface import Batch, Decision, QueuedJob, Reason, Reserve, Setup, Start, View, WakeAt
from clustermodel.policies.predictors import Predictor, UserEstimate, learn, predictor_of
from clustermodel.schedule.plan import Plan
from clustermodel.schedule.running_profile import SHORTEST_EXTENSION
from clustermodel.validation import require_whole

BackfillOrder = Callable[[QueuedJob, int], Any]
"""Sorting key of the backfill candidates, given the job and the present in ticks; the smallest comes first."""

BACKFILL_ORDERS: Final = ("arrival", "shortest")
"""Named orders: queue order, and by predicted run time, which is the SJF-EASY of 004, section 5.2.2."""


class Easy:
    """EASY backfilling.

    Args:
        backfill_order: in which order candidates are tried: ``"arrival"``, ``"shortest"`` (as predicted) or a callable.
        reserve_depth: how many blocked jobs are protected by a reservation; 1 is EASY.
        predictor: of run times: ``"estimate"``, ``"last"``, ``"last-two"``, ``"perfect"``, ``"virtual:X"`` or an object
            (:mod:`clustermodel.policies.predictors`).

    Raises:
        SpecificationError: an argument has a value that is not allowed.
    """

    name = "easy"

    def __init__(
        self,
        *,
        backfill_order: str | BackfillOrder = "arrival",
        reserve_depth: int = 1,
        predictor: str | Predictor = "estimate",
    ) -> None:
        self._predictor = predictor_of("easy", predictor)
        # The usual predictor is asked a million times: its answer is taken where it comes from.
        self._believes_users = type(self._predictor) is UserEstimate
        self._length: Callable[[QueuedJob], int] = attrgetter("estimate") if self._believes_users else self._predictor.predict
        self._order: BackfillOrder | None
        if callable(backfill_order):
            self._order = backfill_order
        elif backfill_order in BACKFILL_ORDERS:
            self._order = None if backfill_order == "arrival" else lambda job, _: (self._length(job), job.queue_order)
        else:
            raise SpecificationError(
                f"easy: backfill_order: {backfill_order!r} is not allowed; "
                f"it must be one of {', '.join(BACKFILL_ORDERS)}, or a callable"
            )
        self._depth = require_whole("easy: reserve_depth", reserve_depth, at_least=1)

    def begin(self, setup: Setup) -> None:
        """Get ready for a run."""
        self._predictor.begin(setup)
        may_overrun = not (setup.kill_at_estimate and self._believes_users)
        self._plan = Plan(setup.nodes, may_overrun=may_overrun)
        self._protected: list[QueuedJob] = []  # the first jobs of the queue; they hold reservations
        self._explain = setup.explain

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start what fits, protect the first blocked jobs, backfill the rest."""
        plan, now = self._plan, view.now
        if not self._believes_users:
            learn(self._predictor, batch, view)
        room_made = plan.catch_up(batch.ended, now)
        late = plan.overrunning(now)
        candidates: Iterable[QueuedJob] = view.waiting.values()
        if late or self._missed_a_start(now) or self._jumps_the_queue(batch.submitted):
            self._unprotect()
            plan.extend(late, now, SHORTEST_EXTENSION if self._depth == 1 else None)
        elif room_made:
            plan.compress(self._protected, now)
        elif self._protected and not (batch.ended or batch.alarm):
            # Nothing was freed, so every job that waited before fits even less now: only the new ones need a look.
            candidates = batch.submitted
        decisions = self._schedule(candidates, view)
        # The first job's reservation begins when a running job is expected to end: if that job does, all is looked at anyway.
        if self._depth > 1 and (alarm := plan.new_alarm()) is not None:
            decisions.append(WakeAt(time=alarm))
        return decisions

    def _jumps_the_queue(self, newcomers: Sequence[QueuedJob]) -> bool:
        if not (self._protected and newcomers):
            return False
        return newcomers[0].queue_order < self._protected[-1].queue_order

    def _missed_a_start(self, now: int) -> bool:
        """Tell whether a reservation has passed, which can only be because running jobs have outlived what was predicted."""
        start = self._plan.next_start()
        return start is not None and start < now

    def _unprotect(self) -> None:
        for job in self._protected:
            self._plan.drop(job)
        self._protected.clear()

    def _schedule(self, candidates: Iterable[QueuedJob], view: View) -> list[Decision]:
        """Start protected jobs that are due, protect the next ones in queue order, backfill the rest."""
        now, idle, plan, protected = view.now, view.idle, self._plan, self._protected
        decisions: list[Decision] = []
        due = plan.due(now) if protected else []
        for job_id in due:
            first = view.waiting[job_id]
            protected.remove(first)
            if self._depth == 1 and not self._believes_users:
                plan.drop(first)  # it is predicted anew, like all jobs that start
                decisions.append(self._start(first, now))
            else:
                decisions.append(Start(job=first, reason=self._reason(first, now) if self._explain else None))
                plan.note_start(first.id, first.nodes, plan.take_up(first).end)
            idle -= first.nodes

        rest = iter(candidates)
        while len(protected) < self._depth and (job := next(rest, None)) is not None:
            if job.id in plan.reserved or job.id in due:
                continue
            if job.nodes <= idle and plan.fits(job.nodes, self._length(job)):
                idle -= job.nodes
                decisions.append(self._start(job, now))
            else:
                room = plan.earliest_room(((job.nodes, self._length(job)),))
                plan.keep(job, room)
                decisions.append(Reserve(job=job, start=room.start, guaranteed=self._believes_users))
                protected.append(job)
        backfill: Iterable[QueuedJob] = rest if idle else ()
        if idle and (order := self._order) is not None:
            backfill = sorted(rest, key=lambda job: order(job, now))
        for job in backfill:
            if (
                job.nodes <= idle
                and job.id not in plan.reserved
                and job.id not in due
                and plan.fits(job.nodes, self._length(job))
            ):
                idle -= job.nodes
                decisions.append(self._start(job, now))
                if not idle:
                    break
        return decisions

    def _start(self, job: QueuedJob, now: int) -> Start:
        reason = self._reason(job, now) if self._explain else None
        self._plan.start(job.id, job.nodes, now, now + self._length(job))
        return Start(job=job, reason=reason)

    def _reason(self, job: QueuedJob, now: int) -> Reason:
        holder = self._protected[0] if self._protected else job
        if holder is job or job.queue_order < holder.queue_order:
            held = self._plan.reserved.get(job.id)
            return Reason("head of the queue, and it fits", reserved=held.start if held else None)
        shadow = self._plan.reserved[holder.id].start
        extra = self._plan.free_at(shadow)
        if now + self._length(job) <= shadow:
            rule = "backfilled: it will end by the shadow time"
        elif len(self._protected) == 1:
            rule = "backfilled: it takes no more than the extra nodes"
        else:
            rule = f"backfilled: it delays none of the {len(self._protected)} protected jobs"
        return Reason(rule, holder=holder.id, shadow=shadow, extra=extra)
