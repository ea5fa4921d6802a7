"""Expansion of running malleable jobs into idle nodes, under EASY backfilling.

Jobs start as under EASY backfilling, on the nodes that they asked for.  Nodes that are left idle are lent to running malleable
jobs, one by one in ``order``, and taken back as soon as a waiting job can start with them, first from the gangs that are last
in this order: plans count lent nodes as idle, and expect gangs to end without them.

What is guaranteed: where resizes cost no time, no waiting job is delayed, as a gang that gives lent nodes back has lost
nothing by having had them.  Otherwise a job can wait longer than with the nodes idle: for the rest of a resize, or of
``min_interval_s``, and for gangs that gave nodes back before the growth had paid.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

from clustermodel.plans.pools import Split
from clustermodel.policies.interface import Decision, Reason, Reserve, Setup
from clustermodel.policies.resizing_run import ORDERS, Cycle, ResizingPolicy, ResizingRun, grow, order_of
from clustermodel.policies.view import QueuedJob, RunningJob
from clustermodel.validation import choice

_FITS: Final = Reason("as under EASY: it fits into idle and lent nodes, and delays no reservation")


class _ExpandRun(ResizingRun):
    """One run of EASY backfilling with expansion."""

    def __init__(self, policy: Expand, setup: Setup) -> None:
        super().__init__(policy, setup)
        self._order = order_of(self, policy.order)
        self._own: dict[int, int] = {}  # job id -> the number of nodes with which its gang started, if it is malleable

    def forget(self, job: QueuedJob) -> None:
        self._own.pop(job.id, None)

    def schedule(self, cycle: Cycle) -> Iterable[Decision]:
        gangs = [gang for gang in cycle.view.running.values() if self.can_be_resized(gang, cycle.now)]
        reservations = self._start(cycle, gangs) if cycle.view.waiting else []
        if any(cycle.idle):
            grow(cycle, gangs, self._order, lambda job: job.nodes if job.sizes is None else job.sizes[1])
        return reservations

    def _start(self, cycle: Cycle, gangs: Iterable[RunningJob]) -> list[Reserve]:
        """Start jobs as under EASY on idle and lent nodes; take lent nodes back that they need."""
        lenders = {gang.job.id: gang for gang in gangs if self._is_lent_nodes(gang, cycle)}
        lent = {number: self._lent(gang, cycle) for number, gang in lenders.items()}
        last_first = sorted(lenders.values(), key=lambda gang: self._order(gang.job, gang.start, gang.nodes), reverse=True)
        left = {number: dict(split) for number, split in lent.items()}

        def start(job: QueuedJob, nodes: int, split: Split) -> None:
            for pool, number in split:
                for gang in last_first:
                    missing = number - cycle.idle[pool]
                    if missing <= 0:
                        break
                    back = min(left[gang.job.id].get(pool, 0), missing)
                    if back:
                        left[gang.job.id][pool] -= back
                        cycle.give_up(gang, back, (pool,))
            if job.sizes is not None:
                self._own[job.id] = nodes
            cycle.start(job, split, _FITS)

        return list(self.backfill(cycle, self.plan(cycle, lent), start))

    def _is_lent_nodes(self, gang: RunningJob, cycle: Cycle) -> bool:
        own = self._own[gang.job.id]
        return gang.nodes > own and self.may_shrink(gang, own, cycle.view)

    def _lent(self, gang: RunningJob, cycle: Cycle) -> Split:
        """Return which nodes of a gang are lent to it, by pool."""
        split = cycle.split(gang)
        own = dict(cycle.without(split, gang.nodes - self._own[gang.job.id]))
        return tuple((pool, rest) for pool, number in split if (rest := number - own.get(pool, 0)))


@dataclass(frozen=True, kw_only=True)
class Expand(ResizingPolicy):
    """EASY backfilling in which running malleable jobs expand into idle nodes.

    Args:
        order: which gang gets an idle node: the one that uses it best (``"efficiency"``), or that started first (``"age"``).
        predictor, correction, min_gain, min_interval_s: as in :class:`~clustermodel.policies.resizing_run.ResizingPolicy`.
    """

    name: ClassVar[str] = "expand"
    in_run = _ExpandRun
    order: str = "efficiency"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("expand: order", self.order, ORDERS)
