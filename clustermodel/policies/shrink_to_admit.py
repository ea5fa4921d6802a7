"""Admission by shrinking: a blocked job at the head of the queue starts at once on nodes that running malleable jobs give up.

Jobs start in queue order (``order="fcfs"``), or as under EASY backfilling (``"easy"``), on the nodes that they asked for.  If
the first blocked job does not fit, running malleable jobs give up nodes for it, down to their least: as many as it lacks, all
that it can have from one gang before the next one has to give any.  If these are too few, a malleable job starts on the fewer
nodes that it can have (``fewer``).  With partitions this holds for the first blocked job of each set of nodes.  Backfilled jobs
start on idle nodes only.

Gangs grow again into idle nodes that no waiting job may have, those gangs first that use them best (``expand``).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from clustermodel.plans.pool_plans import Group, RunningPlan, split_of
from clustermodel.policies.interface import Decision, Reason, Setup
from clustermodel.policies.resizing_run import Cycle, ResizingPolicy, ResizingRun, grow, order_of
from clustermodel.policies.view import QueuedJob, RunningJob
from clustermodel.validation import choice, flag

QUEUE_ORDERS: Final = ("fcfs", "easy")
EXPANSIONS: Final = ("most", "asked", "no")
VICTIMS: Final[dict[str, Callable[[ResizingRun, RunningJob, int], Any]]] = {
    "efficiency": lambda run, gang, now: (run.efficiency(gang.job, gang.nodes), -run.end(gang, gang.nodes, now)),
    "longest": lambda run, gang, now: -run.end(gang, gang.nodes, now),
    "latest": lambda _run, gang, _now: -gang.start,
    "largest": lambda _run, gang, _now: -gang.nodes,
}
"""Which gangs give up nodes first: the smallest value first."""
_FITS: Final = {order: Reason(f"as under {order.upper()}: it fits into idle nodes") for order in QUEUE_ORDERS}
_ADMITTED: Final = Reason("head of the queue: running jobs gave up nodes for it")
_Given = list[tuple[RunningJob, int]]
"""Gangs, and how many nodes each gives up."""


class _ShrinkToAdmitRun(ResizingRun):
    """One run of admission by shrinking."""

    def __init__(self, policy: ShrinkToAdmit, setup: Setup) -> None:
        super().__init__(policy, setup)
        self._queue_order, self._fewer, self._expand = policy.order, policy.fewer, policy.expand
        self._victim, self._growth_order = VICTIMS[policy.victim], order_of(self, "efficiency")

    def schedule(self, cycle: Cycle) -> Iterable[Decision]:
        now, reservations = cycle.now, list[Decision]()
        gangs = [gang for gang in cycle.view.running.values() if self.can_be_resized(gang, now)]
        if cycle.view.waiting:
            victims = sorted(gangs, key=lambda gang: (self._victim(self, gang, now), gang.job.queue_order))
            if self._queue_order == "fcfs":
                self._in_order(cycle, victims)
            else:
                reservations += self._backfilled(cycle, victims)
        if self._expand != "no" and any(cycle.idle) and len(closed := cycle.wanted()) < len(self.pools):
            grow(cycle, gangs, self._growth_order, self._most, closed)
        return reservations

    def _most(self, job: QueuedJob) -> int:
        return job.nodes if job.sizes is None or self._expand == "asked" else job.sizes[1]

    def _in_order(self, cycle: Cycle, victims: list[RunningJob]) -> None:
        """Start jobs in queue order; a job that does not fit closes the nodes that it may have."""
        view, now, closed = cycle.view, cycle.now, set[int]()
        for job in view.waiting.values():
            if len(closed) == len(self.pools):
                break
            nodes = self.needs(job)
            split = split_of(cycle.idle, nodes, self.ways_for(job, nodes, now, closed))
            if split is not None:
                cycle.start(job, split, _FITS["fcfs"])
            elif (admission := self._admission(cycle, job, victims, closed)) is None:
                closed.update(self.pools.of(job.allowed))
            else:
                nodes, pools, given = admission
                for gang, number in given:
                    cycle.give_up(gang, number, pools)
                split = split_of(cycle.idle, nodes, [pools])
                assert split is not None, "so many nodes have been given up"
                cycle.start(job, split, _ADMITTED)

    def _backfilled(self, cycle: Cycle, victims: list[RunningJob]) -> Iterable[Decision]:
        """Start jobs as under EASY; the first blocked ones are admitted if they can be."""
        now = cycle.now

        def admit(job: QueuedJob, plan: RunningPlan, group: Group) -> bool:
            if (admission := self._admission(cycle, job, victims)) is None:
                return False
            nodes, pools, given = admission
            before, length = plan.steps(), self.length(job, nodes)
            for gang, number in given:
                self._plan_to_shrink(cycle, plan, gang, number, pools)
            split = plan.split(now, length, self.on(job, nodes), group)
            if split is None:  # other jobs have reserved some of the nodes
                plan.take_steps(before)
                return False
            plan.reserve(now, length, split, beyond_capacity=True)
            for gang, number in given:
                cycle.give_up(gang, number, pools)
            cycle.start(job, split, _ADMITTED)
            return True

        def start(job: QueuedJob, _nodes: int, split: Any) -> None:
            cycle.start(job, split, _FITS["easy"])

        return self.backfill(cycle, self.plan(cycle), start, admit)

    def _plan_to_shrink(self, cycle: Cycle, plan: RunningPlan, gang: RunningJob, number: int, pools: Iterable[int]) -> None:
        now, nodes, split = cycle.now, cycle.nodes(gang), cycle.split(gang)
        plan.release(now, max(self.end(gang, nodes, now) - now, 1), split)
        rest = cycle.without(split, number, pools)
        plan.reserve(now, max(self.end(gang, nodes - number, now) - now, 1), rest, beyond_capacity=True)

    def _admission(
        self, cycle: Cycle, job: QueuedJob, victims: list[RunningJob], closed: Container[int] = ()
    ) -> tuple[int, tuple[int, ...], _Given] | None:
        """Return how many nodes of which pools a blocked job can have, and which gangs give some up; ``None``: too few.

        Of several sets of nodes they are of the first that has as many as it needs, else of the first that has enough.
        """
        now, nodes = cycle.now, self.needs(job)
        least = self.least(job) if self._fewer else nodes
        possible = []
        for place, pools in enumerate(self.ways_for(job, nodes, now, closed)):
            free, given = self._given(cycle, victims, pools, nodes)
            if free >= nodes:
                return nodes, pools, given
            if free >= least:
                possible.append(place)
        if possible:
            ways = self.ways_for(job, least, now, closed)  # it takes longest on its least number of nodes
            for place in possible:
                pools = ways[place]
                free, given = self._given(cycle, victims, pools, nodes)
                if free >= least and self.may_start(job, min(free, nodes), pools, now):
                    return min(free, nodes), pools, given
        return None

    def _given(self, cycle: Cycle, victims: list[RunningJob], pools: tuple[int, ...], nodes: int) -> tuple[int, _Given]:
        """Return how many nodes of some pools a job can have, at most those it needs, and what gangs give up for that."""
        free, given, view = cycle.idle_of(pools), _Given(), cycle.view
        for gang in victims:
            if free >= nodes:
                break
            assert gang.job.sizes is not None
            number, of_pools = cycle.nodes(gang), sum(part for pool, part in cycle.split(gang) if pool in pools)
            gives = min(number - gang.job.sizes[0], of_pools, nodes - free)
            if gives > 0 and self.may_shrink(gang, number - gives, view):
                given.append((gang, gives))
                free += gives
        return free, given


@dataclass(frozen=True, kw_only=True)
class ShrinkToAdmit(ResizingPolicy):
    """Admission by shrinking: running malleable jobs give up nodes for a blocked head of the queue.

    Args:
        order: ``"fcfs"``, or ``"easy"``: backfilling behind a head that cannot be admitted.
        victim: which gangs give up nodes first: those that use theirs least well, of equal ones those expected to run longest
            (``"efficiency"``); those expected to run longest (``"longest"``); those that started last (``"latest"``); or the
            largest (``"largest"``).
        fewer: whether a malleable job starts on fewer nodes than it asked for if it cannot have these.
        expand: whether gangs grow while nodes are idle that no waiting job may have: to their ``"most"``,
            to what they ``"asked"`` for, or
            ``"no"``.
        predictor, correction, min_gain, min_interval_s: as in :class:`~clustermodel.policies.resizing_run.ResizingPolicy`.
    """

    name: ClassVar[str] = "shrink-to-admit"
    in_run = _ShrinkToAdmitRun
    order: str = "easy"
    victim: str = "efficiency"
    fewer: bool = True
    expand: str = "most"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("shrink-to-admit: order", self.order, QUEUE_ORDERS)
        choice("shrink-to-admit: victim", self.victim, VICTIMS)
        flag("shrink-to-admit: fewer", self.fewer)
        choice("shrink-to-admit: expand", self.expand, EXPANSIONS)
