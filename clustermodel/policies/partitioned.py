"""First come, first served, EASY and conservative backfilling on a machine with partitions.

Jobs that may have different nodes wait in one queue.  First come, first served: nodes stay idle for the first job that may have
them and does not fit.  Backfilling: a waiting job holds a reservation, a start and so many nodes of each pool; under EASY the
first blocked jobs of each set of eligible nodes do, so that no partition's first job is delayed for those of another one; under
conservative backfilling all do.  A reservation never becomes later, unless jobs outlive their estimates or nodes fail.

Where all jobs may have all nodes, the schedules are those of the policies on the whole machine, which plan faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from clustermodel.policies.interface import Decision, Reason, Reserve, Setup, Start, WakeAt
from clustermodel.policies.view import Batch, QueuedJob, View
from clustermodel.schedule.node_set import NodeSet, as_mask, from_mask, lowest
from clustermodel.schedule.pools import PoolProfile, Pools, Split
from clustermodel.schedule.profile import SHORTEST_EXTENSION
from clustermodel.validation import require


def has_pools(setup: Setup) -> bool:
    """Return whether jobs may differ in the nodes that they may have."""
    return len(_pools_of(setup)) > 1


IN_PARTITIONS: Final = " on a machine with partitions"
ARRIVAL: Final = "it must be arrival"


def require_estimates(policy: str, predictor: object) -> None:
    """Refuse predictions."""
    require(predictor == "estimate", f"{policy}: predictor", predictor, "it must be estimate", IN_PARTITIONS)


def _pools_of(setup: Setup) -> Pools:
    return Pools(setup.nodes, [partition.node_set for partition in setup.machine.partitions])


class _Chooser:
    """Chooses idle nodes of one instant."""

    def __init__(self, pools: Pools, idle: NodeSet) -> None:
        self._pools, self._idle = pools, as_mask(idle)

    def take(self, split: Split) -> NodeSet:
        """Return the lowest idle nodes of pools, which are not idle any more."""
        chosen = 0
        for pool, nodes in split:
            chosen |= lowest(self._idle & self._pools.masks[pool], nodes)
        self._idle &= ~chosen
        return from_mask(chosen)

    def split(self, nodes: int, pools: Iterable[int]) -> Split | None:
        """Return from which pools a job can have idle nodes; ``None`` if they are too few."""
        parts: list[tuple[int, int]] = []
        for pool in pools:
            if idle := min((self._idle & self._pools.masks[pool]).bit_count(), nodes):
                parts.append((pool, idle))
                nodes -= idle
                if not nodes:
                    return tuple(parts)
        return None


class PartitionedFcfs:
    """One run of first come, first served."""

    def __init__(self, setup: Setup) -> None:
        self._pools = _pools_of(setup)

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start jobs in queue order; a job that does not fit closes the pools that it waits for."""
        chooser, closed, decisions = _Chooser(self._pools, view.idle_nodes()), set[int](), list[Decision]()
        for job in view.waiting.values():
            if len(closed) == len(self._pools):
                break
            pools = self._pools.of(job.eligible)
            split = None if closed.intersection(pools) else chooser.split(job.nodes, pools)
            if split is None:
                closed.update(pools)
            else:
                decisions.append(Start(job=job, columns=chooser.take(split), reason=Reason("head of its queue, and it fits")))
        return decisions


class _Reservation(NamedTuple):
    start: int
    length: int
    split: Split


class PartitionedBackfilling:
    """One run of backfilling: ``depth`` blocked jobs of each set of eligible nodes hold reservations, or all (``None``)."""

    def __init__(
        self, setup: Setup, depth: int | None, sort: Callable[[Iterable[QueuedJob], int], Iterable[QueuedJob]]
    ) -> None:
        self._pools, self._depth, self._sort = _pools_of(setup), depth, sort
        self._holding = setup.holding
        self._reserved: dict[int, _Reservation] = {}
        self._ends: dict[int, int] = {}  # when gangs that have outlived their estimates are assumed to end, by job id
        self._alarm: int | None = None

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Lay out the plan, move reservations to earlier starts, start what fits, reserve for what is blocked."""
        now, decisions = view.now, list[Decision]()
        queue = list(self._sort(view.waiting.values(), now))
        # Reservations move up where a gang has ended before it was assumed to.
        assumed = [self._ends.get(gang.job.id, gang.expected_end) for gang in batch.ended]
        moves_up = bool(batch.repaired) or any(end > now for end in assumed)
        profile, in_place = self._plan(queue, view)
        chooser = _Chooser(self._pools, view.idle_nodes())
        protected: dict[NodeSet | None, int] = {}
        for job in queue:
            pools, length = self._pools.of(job.eligible), self._holding(job, job.estimate)
            old = self._reserved.get(job.id)
            if old is None or not in_place:
                start, split = profile.earliest(length, job.nodes, pools, now)
            else:
                start, length, split = old
                profile.release(*old)
                if moves_up:
                    start, split = profile.earliest(length, job.nodes, pools, start)
            if start == now:
                self._reserved.pop(job.id, None)
                profile.reserve(now, length, split)
                reason = Reason("its reserved time has come" if old is not None else "it fits, and delays no reservation")
                decisions.append(Start(job=job, columns=chooser.take(split), reason=reason))
                continue
            place = protected.get(job.eligible, 0)
            if old is None and self._depth is not None and place >= self._depth:
                continue
            protected[job.eligible] = place + 1
            if start < 0:
                start, split = profile.earliest(length, job.nodes, pools)
            profile.reserve(start, length, split)
            if old is None or start != old.start:
                decisions.append(Reserve(job=job, start=start))
            self._reserved[job.id] = _Reservation(start, length, split)
        alarm = min((reservation.start for reservation in self._reserved.values()), default=None)
        if alarm != self._alarm:
            self._alarm = alarm
            decisions.append(WakeAt(time=alarm))
        return decisions

    def _plan(self, queue: Iterable[QueuedJob], view: View) -> tuple[PoolProfile, bool]:
        """Return the profiles of running jobs and reservations, and whether these could all stay where they were."""
        now, pools = view.now, self._pools
        self._ends.clear()
        ends: list[list[tuple[int, int]]] = [[] for _ in pools.sizes]
        for gang in view.running.values():
            late = now - gang.expected_end
            end = gang.expected_end if late < 0 else now + max(SHORTEST_EXTENSION, late)
            if late >= 0:
                self._ends[gang.job.id] = end
            for pool, nodes in pools.counts(gang.columns):
                ends[pool].append((end, nodes))
        for outage in view.down.values():
            late = now - outage.expected_end
            end = outage.expected_end if late < 0 else now + max(SHORTEST_EXTENSION, late)
            for pool, _ in pools.counts((outage.node, outage.node + 1)):
                ends[pool].append((end, 1))
        profile = PoolProfile(pools, now, ends)
        waiting = {job.id for job in queue}
        self._reserved = {job: each for job, each in self._reserved.items() if job in waiting}
        kept: list[_Reservation] = []
        for reservation in sorted(self._reserved.values()):
            if reservation.start < now or not profile.is_free(*reservation):
                # Jobs are late, or nodes have failed: all are placed again, in the order of the queue.
                for each in kept:
                    profile.release(*each)
                return profile, False
            profile.reserve(*reservation)
            kept.append(reservation)
        return profile, True
