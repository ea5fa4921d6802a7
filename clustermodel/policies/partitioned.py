"""First come, first served, EASY and conservative backfilling on a machine with partitions or reservations.

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
from clustermodel.schedule.by_node import NodeChooser, NodeProfile
from clustermodel.schedule.node_set import NodeSet, as_mask, from_mask, lowest
from clustermodel.schedule.pools import PoolProfile, Pools, Split, taken
from clustermodel.schedule.profile import SHORTEST_EXTENSION
from clustermodel.schedule.windows import Windows
from clustermodel.ticks import NEVER
from clustermodel.validation import require


def has_pools(setup: Setup) -> bool:
    """Return whether jobs may differ in the nodes that they may have."""
    # A bitmask of all nodes takes long on a wide machine.
    return setup.by_node or bool(setup.machine.windows) or (bool(setup.node_sets) and len(_pools_of(setup)) > 1)


IN_PARTITIONS: Final = " on a machine with partitions or reservations"
ARRIVAL: Final = "it must be arrival"


def require_estimates(policy: str, predictor: object) -> None:
    """Refuse predictions."""
    require(predictor == "estimate", f"{policy}: predictor", predictor, "it must be estimate", IN_PARTITIONS)


def _pools_of(setup: Setup) -> Pools:
    machine = setup.machine
    windows = Windows(machine.windows, len(machine.reservations)) if machine.windows else None
    return Pools(setup.nodes, setup.node_sets, windows)


class _Chooser:
    """Chooses idle nodes of one instant."""

    def __init__(self, pools: Pools, idle: NodeSet) -> None:
        self._pools, self._idle = pools, as_mask(idle)
        self._counts = [(self._idle & mask).bit_count() for mask in pools.masks]

    def take(self, split: Split) -> NodeSet:
        """Return the lowest idle nodes of pools, which are not idle any more."""
        chosen = 0
        for pool, nodes in split:
            chosen |= lowest(self._idle & self._pools.masks[pool], nodes)
            self._counts[pool] -= nodes
        self._idle &= ~chosen
        return from_mask(chosen)

    def has(self, nodes: int, pools: Iterable[int]) -> bool:
        """Return whether so many nodes of some pools are idle."""
        return sum(self._counts[pool] for pool in pools) >= nodes

    def split(self, nodes: int, pools: Iterable[int]) -> Split | None:
        """Return from which pools a job can have idle nodes; ``None`` if they are too few."""
        pools = tuple(pools)
        return taken(nodes, pools, [self._counts[pool] for pool in pools])


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
            pools = self._pools.of(job.allowed)
            split = None if closed.intersection(pools) else chooser.split(job.nodes, self._pools.of(job.eligible))
            if split is None:
                closed.update(pools)
            else:
                decisions.append(Start(job=job, columns=chooser.take(split), reason=Reason("head of its queue, and it fits")))
        return decisions


class Reservation(NamedTuple):
    """A start, and what a job has of nodes from then on."""

    start: int
    length: int
    split: Split


Profiles = PoolProfile | NodeProfile
Choosers = _Chooser | NodeChooser


class PartitionedBackfilling:
    """One run of backfilling: ``depth`` blocked jobs of each set of eligible nodes hold reservations, or all (``None``)."""

    def __init__(
        self, setup: Setup, depth: int | None, sort: Callable[[Iterable[QueuedJob], int], Iterable[QueuedJob]]
    ) -> None:
        self._pools, self._depth, self._sort = _pools_of(setup), depth, sort
        self._holding = setup.holding
        self._reserved: dict[int, Reservation] = {}
        self._profile: Profiles | None = None  # running jobs and reservations
        self._ends: dict[int, int] = {}  # when gangs that have outlived their estimates are assumed to end, by job id
        self._next_end = 0  # the first assumed end of a gang in the profile
        self._alarm: int | None = None

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Lay out the plan, move reservations to earlier starts, start what fits, reserve for what is blocked."""
        now, decisions = view.now, list[Decision]()
        queue, profile, moves_up, in_place = self._plan(batch, view)
        reserved = self._reserved
        chooser = self._chooser(view)
        protected: dict[tuple[NodeSet | None, int], int] = {}  # by the nodes that jobs may have, and when
        for job_id in reserved:
            kind = view.waiting[job_id].allowed, view.waiting[job_id].barred
            protected[kind] = protected.get(kind, 0) + 1
        for job in queue:
            kind = job.allowed, job.barred
            old = reserved.get(job.id) if in_place else None
            if old is not None and not moves_up and old.start > now:
                continue
            place = self._place(job, old, profile, chooser, now, moves_up=moves_up)
            if place.start == now:
                if reserved.pop(job.id, None) is not None:
                    protected[kind] -= 1
                profile.reserve(*place)
                self._next_end = min(self._next_end, now + place.length)
                reason = Reason("its reserved time has come" if old is not None else "it fits, and delays no reservation")
                decisions.append(Start(job=job, columns=chooser.take(place.split), reason=reason))
                continue
            if job.id not in reserved and self._depth is not None and protected.get(kind, 0) >= self._depth:
                continue
            if place.start < 0:
                place = self._earliest(job, place.length, profile)
                if place.start < 0:  # restoring it would take so long that no window lets it start
                    reserved.pop(job.id, None)
                    continue
            if job.id not in reserved:
                protected[kind] = protected.get(kind, 0) + 1
            profile.reserve(*place)
            if old is None or place.start != old.start:
                decisions.append(Reserve(job=job, start=place.start))
            reserved[job.id] = place
        alarm = min((reservation.start for reservation in reserved.values()), default=None)
        if alarm != self._alarm:
            self._alarm = alarm
            decisions.append(WakeAt(time=alarm))
        return decisions

    def _place(
        self, job: QueuedJob, old: Reservation | None, profile: Profiles, chooser: Choosers, now: int, *, moves_up: bool
    ) -> Reservation:
        """Return where a job can start now, or where it is reserved, perhaps earlier than before; a start of -1 if neither."""
        if old is not None:
            profile.release(*old)
            return self._earliest(job, old.length, profile, old.start) if moves_up else old
        length = self._holding(job, job.estimate)
        fitting = self._fitting(job, length, profile, chooser, now)
        return Reservation(-1, length, ()) if fitting is None else Reservation(now, length, fitting)

    # What a plan by node does otherwise (policies/shaped.py).

    def _chooser(self, view: View) -> Choosers:
        return _Chooser(self._pools, view.idle_nodes())

    def _fitting(self, job: QueuedJob, length: int, profile: Profiles, chooser: Choosers, now: int) -> Split | None:
        """Return which nodes a job can have now, for ``length``."""
        assert isinstance(profile, PoolProfile)
        assert isinstance(chooser, _Chooser)
        pools = self._pools.of(job.allowed)
        return profile.split(now, length, job.nodes, pools, job.barred) if chooser.has(job.nodes, pools) else None

    def _earliest(self, job: QueuedJob, length: int, profile: Profiles, not_after: int = NEVER) -> Reservation:
        assert isinstance(profile, PoolProfile)
        start, split = profile.earliest(length, job.nodes, self._pools.of(job.allowed), not_after, job.barred)
        return Reservation(start, length, split)

    def _profile_of(self, now: int, ends: list[tuple[int, NodeSet, int]]) -> Profiles:
        """Return the profile of nodes that are held until an expected end, by tasks with so much memory."""
        of_pools: list[list[tuple[int, int]]] = [[] for _ in self._pools.sizes]
        for end, columns, _ in ends:
            for pool, nodes in self._pools.counts(columns):
                of_pools[pool].append((end, nodes))
        return PoolProfile(self._pools, now, of_pools)

    def _plan(self, batch: Batch, view: View) -> tuple[Iterable[QueuedJob], Profiles, bool, bool]:
        """Return the jobs to look at, the plan, whether reservations may move up, and whether they could stay in place."""
        now, waiting = view.now, view.waiting.values()
        if batch.alarm:
            self._alarm = None
        if batch.reservations:  # jobs may have been rejected
            self._reserved = {job: place for job, place in self._reserved.items() if job in view.waiting}
        nodes_change = bool(batch.ended or batch.failed or batch.repaired or batch.alarm or batch.reservations)
        if self._profile is not None and not nodes_change and now < self._next_end:
            # No nodes have become free, so that no job that waited before can start.
            self._profile.advance(now)
            return self._sort(batch.submitted, now), self._profile, False, True
        # Reservations move up where a gang has ended before it was assumed to.
        assumed = [self._ends.get(gang.job.id, gang.expected_end) for gang in batch.ended]
        moves_up = bool(batch.repaired) or any(end > now for end in assumed)
        profile = self._profile = self._of_running(view)
        kept: list[Reservation] = []
        for reservation in sorted(self._reserved.values()):
            if reservation.start < now or not profile.is_free(*reservation):
                # Jobs are late, or nodes have failed: all are placed again, in the order of the queue.
                for each in kept:
                    profile.release(*each)
                return self._reserved_first(waiting, now), profile, False, False
            profile.reserve(*reservation)
            kept.append(reservation)
        return self._reserved_first(waiting, now), profile, moves_up, True

    def _reserved_first(self, waiting: Iterable[QueuedJob], now: int) -> list[QueuedJob]:
        """Return the waiting jobs in order, those first that hold reservations: what these leave free, others may use."""
        queue = list(self._sort(waiting, now))
        reserved = self._reserved
        return [job for job in queue if job.id in reserved] + [job for job in queue if job.id not in reserved]

    def _of_running(self, view: View) -> Profiles:
        """Return the profile of the running jobs, and of nodes that are down."""
        now, late_ends = view.now, self._ends
        late_ends.clear()

        def assumed(expected_end: int) -> int:
            late = now - expected_end
            return expected_end if late < 0 else now + max(SHORTEST_EXTENSION, late)

        ends: list[tuple[int, NodeSet, int]] = []
        for gang in view.running.values():
            if (end := assumed(gang.expected_end)) != gang.expected_end:
                late_ends[gang.job.id] = end
            ends.append((end, gang.columns, gang.job.memory))
        ends += [(assumed(outage.expected_end), (outage.node, outage.node + 1), 0) for outage in view.down.values()]
        self._next_end = min((end for end, _, _ in ends), default=NEVER)
        return self._profile_of(now, ends)
