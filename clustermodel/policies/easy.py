"""EASY backfilling (001, section 3.1): a job may jump ahead if it does not delay the first job in the queue.

The first blocked job holds a reservation at its *shadow time*, when the running jobs are expected to have freed enough
nodes; the nodes left over then are the *extra nodes*.  A later job is backfilled if it fits now and

1. will end by the shadow time, or
2. needs no more than the extra nodes.

Both say that it fits the availability profile of the running jobs and the reservation, so that one test serves any
number of protected jobs (``reserve_depth``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from clustermodel.errors import SpecificationError
from clustermodel.machine import require_whole
from clustermodel.policies.base import Batch, Decision, QueuedJob, Reason, Reserve, Setup, Start, View
from clustermodel.schedule.running import RunningProfile

BackfillOrder = Callable[[QueuedJob, int], object]
"""Sorting key of the backfill candidates, given the job and the present in ticks; the smallest comes first."""

BACKFILL_ORDERS: Final[dict[str, BackfillOrder | None]] = {
    "arrival": None,
    "shortest": lambda job, _: (job.estimate, job.queue_order),
}
"""Named orders; ``None`` keeps queue order.  ``shortest`` is the SJF-EASY of 004, section 5.2.2."""


class Easy:
    """EASY backfilling.

    Args:
        backfill_order: in which order candidates are tried: ``"arrival"``, ``"shortest"`` (estimate) or a callable.
        reserve_depth: how many blocked jobs are protected by a reservation; 1 is EASY.

    Raises:
        SpecificationError: an argument has a value that is not allowed.
    """

    name = "easy"

    def __init__(self, *, backfill_order: str | BackfillOrder = "arrival", reserve_depth: int = 1) -> None:
        if isinstance(backfill_order, str):
            if backfill_order not in BACKFILL_ORDERS:
                raise SpecificationError(
                    f"easy: backfill_order: {backfill_order!r} is not allowed; "
                    f"it must be one of {', '.join(BACKFILL_ORDERS)}, or a callable"
                )
            self._order = BACKFILL_ORDERS[backfill_order]
        else:
            self._order = backfill_order
        self._depth = require_whole("easy: reserve_depth", reserve_depth, at_least=1)

    def begin(self, setup: Setup) -> None:
        """Get ready for a run."""
        self._profile = RunningProfile(setup.nodes, may_overrun=not setup.kill_at_estimate)
        self._protected: dict[int, tuple[QueuedJob, int]] = {}  # job id -> job, reserved start; in queue order
        self._explain = setup.explain

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start what fits, protect the first blocked jobs, backfill the rest."""
        profile, now = self._profile, view.now
        profile.advance(now)
        for gang in batch.ended:
            profile.end(gang.job.id, gang.job.nodes, now, gang.expected_end)
        late = profile.overrunning(now)
        if not (batch.ended or late) and self._protected and not self._jumps_the_queue(batch.submitted):
            # Nothing was freed, so every job that waited before fits even less now: only the new ones need a look.
            return self._schedule(batch.submitted, view)
        self._unprotect()
        profile.extend(late, now)
        return self._schedule(view.waiting.values(), view)

    def _jumps_the_queue(self, newcomers: Sequence[QueuedJob]) -> bool:
        last_protected = next(reversed(self._protected.values()))[0].queue_order
        return any(job.queue_order < last_protected for job in newcomers)

    def _unprotect(self) -> None:
        for job, start in self._protected.values():
            self._profile.release(start, start + job.estimate, job.nodes)
        self._protected.clear()

    def _schedule(self, candidates: Iterable[QueuedJob], view: View) -> list[Decision]:
        """Walk ``candidates`` in queue order until enough are protected, then backfill the rest in backfill order."""
        now, idle = view.now, view.idle
        profile, protected = self._profile, self._protected
        decisions: list[Decision] = []
        rest = iter(candidates)
        while len(protected) < self._depth and (job := next(rest, None)) is not None:
            if job.nodes <= idle and profile.fits(job.nodes, job.estimate):
                idle -= job.nodes
                decisions.append(self._start(job, now))
            else:
                start = profile.earliest(job.nodes, job.estimate)
                profile.reserve(start, start + job.estimate, job.nodes)
                protected[job.id] = (job, start)
                decisions.append(Reserve(job, start))
        backfill: Iterable[QueuedJob] = rest
        if (order := self._order) is not None:
            backfill = sorted(rest, key=lambda job: order(job, now))  # type: ignore[arg-type,return-value]
        for job in backfill:
            if job.nodes <= idle and profile.fits(job.nodes, job.estimate):
                idle -= job.nodes
                decisions.append(self._start(job, now))
                if not idle:
                    break
        return decisions

    def _start(self, job: QueuedJob, now: int) -> Start:
        reason = self._reason(job, now) if self._explain else None
        self._profile.start(job.id, job.nodes, now, now + job.estimate)
        return Start(job, reason=reason)

    def _reason(self, job: QueuedJob, now: int) -> Reason:
        if not self._protected:
            return Reason("head of the queue, and it fits")
        holder, shadow = next(iter(self._protected.values()))
        extra = self._profile.free_at(shadow)
        if now + job.estimate <= shadow:
            rule = "backfilled: it will end by the shadow time"
        elif len(self._protected) == 1:
            rule = "backfilled: it takes no more than the extra nodes"
        else:
            rule = f"backfilled: it delays none of the {len(self._protected)} protected jobs"
        return Reason(rule, holder=holder.id, shadow=shadow, extra=extra)
