"""Backfilling over pools, with all that EASY and backfilling have on the whole machine; without windows.

The rules are those of :mod:`clustermodel.policies.partitioned`.  The plan goes on from one scheduling cycle to the next, as on
the whole machine, and with one pool the schedules are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import Any, Final, NamedTuple

from clustermodel.policies.interface import Decision, Reason, Reserve, Setup, Start, WakeAt
from clustermodel.policies.predictors import Lengths
from clustermodel.policies.queue_order import QueueSorter
from clustermodel.policies.view import Batch, QueuedJob, View
from clustermodel.schedule.node_set import NodeSet
from clustermodel.schedule.pool_plans import IdlePools, RunningPools
from clustermodel.schedule.pools import Pools, Split
from clustermodel.ticks import NEVER


def in_pools(setup: Setup) -> bool:
    """Return whether jobs may differ in the nodes that they may have, and in nothing else, and there are no windows."""
    return bool(setup.node_sets) and not (setup.by_node or setup.machine.windows) and len(pools_of(setup)) > 1


def pools_of(setup: Setup) -> Pools:
    """Return the pools of a machine, which is one if it has no partitions."""
    return Pools(setup.nodes, setup.node_sets)


class _Reservation(NamedTuple):
    start: int
    length: int
    split: Split
    tested: int  # when it was last tried to move, by the clock of the profile


class _Group:
    """The jobs with the same eligible nodes."""

    __slots__ = ("blocked", "idle", "pools", "protected")

    def __init__(self, pools: tuple[int, ...]) -> None:
        self.pools = pools
        self.protected = 0  # how many hold a reservation
        self.idle = 0  # nodes free now
        self.blocked: list[tuple[int, int]] = []  # nodes and lengths that do not fit now


class PooledBackfilling:
    """One run of backfilling: ``depth`` blocked jobs of each set of eligible nodes hold a reservation, if they ``earn`` it.

    Jobs are placed in queue order, or as ``sorter`` has them, and those behind the reservations of their eligible nodes in this
    order, or by the key ``order``.  Reservations move up when jobs end early.  ``kept`` ones do not, unless the job can start
    now, and those made ``afresh`` hold for one cycle.
    """

    def __init__(
        self,
        setup: Setup,
        lengths: Lengths,
        *,
        depth: float = inf,
        earn: Callable[[QueuedJob, int], bool] | None = None,
        sorter: QueueSorter | None = None,
        order: Callable[[QueuedJob, int], Any] | None = None,
        kept: bool = False,
        afresh: bool = False,
    ) -> None:
        self._pools, self._lengths, self._length_of = pools_of(setup), lengths, lengths.of
        self._depth, self._earn, self._sorter, self._order, self._kept, self._afresh = depth, earn, sorter, order, kept, afresh
        self._everyone = depth == inf and earn is None and not afresh
        self._one_by_one = setup.one_by_one
        self._profile = RunningPools(self._pools)  # running jobs and reservations
        self._reserved: dict[int, _Reservation] = {}  # by job id
        self._groups: dict[NodeSet | None, _Group] = {}  # by eligible nodes
        self._kept_starts: dict[int, int] = {}  # by job id
        self._alarm: int | None = None

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Move reservations to earlier starts, start what fits, reserve for what is blocked."""
        profile, now, waiting = self._profile, view.now, view.waiting
        self._observe(batch, view)
        freed = profile.catch_up(batch.ended, now, batch.failed, batch.repaired)
        late = profile.overrunning(now, view.running)
        if not (waiting or late or batch.failed):
            return []
        decisions: list[Decision] = []
        candidates: Iterable[QueuedJob] = waiting.values()
        if late or batch.failed or self._afresh or self._first_start() < now or self._overtaken(batch, view):
            jobs = [waiting[job_id] for job_id in self._reserved]
            for job in jobs:
                self._drop(job, now)
            profile.extend(late, now, self._lengths.delays(view.running))
            if self._depth == inf and not (batch.failed or self._afresh):  # they stay before those without a reservation
                jobs.sort(key=lambda job: job.queue_order)
                for job in self._sorted(jobs, now):
                    self._reserve(job, self._groups[job.eligible], now)
        elif freed or (self._kept and (batch.ended or batch.repaired)):
            decisions += self._renew(view)
        elif not (batch.ended or batch.repaired or batch.alarm or self._earn or self._one_by_one):
            candidates = batch.submitted  # no nodes have become free, so that no job that waited before can start
        idle = IdlePools(self._pools, view.idle_nodes)
        if self._everyone:
            decisions += self._place(candidates, now)
            decisions += self._start_due(view, idle)
            candidates = ()
        elif self._first_start() <= now:
            decisions += (starts := list(self._start_due(view, idle)))
            started = {start.job.id for start in starts}
            candidates = [job for job in candidates if job.id not in started]
        decisions += self._schedule(candidates, now, idle)
        # A single reservation begins when a running job is expected to end, and that end is an event already.
        alarms = not self._afresh and (self._depth > 1 or len(self._groups) > 1)
        if alarms and (alarm := self._first_start()) not in (self._alarm, NEVER):
            self._alarm = alarm
            decisions.append(WakeAt(time=alarm))
        return decisions

    def _observe(self, batch: Batch, view: View) -> None:
        self._lengths.observe(batch, view)
        if self._sorter is not None:
            self._sorter.submitted(batch.submitted)
            for gang in batch.ended:
                if gang.job.id not in view.waiting:
                    self._sorter.left(gang.job)

    def _sorted(self, jobs: Iterable[QueuedJob], now: int) -> Iterable[QueuedJob]:
        return jobs if self._sorter is None else self._sorter.sort(jobs, now)

    def _first_start(self) -> int:
        return min([each.start for each in self._reserved.values()], default=NEVER)

    def _overtaken(self, batch: Batch, view: View) -> bool:
        """Return whether a submitted job comes before one with the same eligible nodes that holds one of few reservations."""
        if self._depth == inf or not (batch.submitted and self._reserved):
            return False
        last: dict[NodeSet | None, tuple[int, ...]] = {}
        for job in (view.waiting[job_id] for job_id in self._reserved):
            last[job.eligible] = max(last.get(job.eligible, job.queue_order), job.queue_order)
        return any(job.queue_order < last[job.eligible] for job in batch.submitted if job.eligible in last)

    def _drop(self, job: QueuedJob, now: int) -> None:
        start, length, split, _ = self._reserved.pop(job.id)
        self._groups[job.eligible].protected -= 1
        if start + length > now:
            self._profile.release(max(start, now), start + length - max(start, now), split)

    def _renew(self, view: View) -> Iterator[Reserve]:
        """Move reservations to earlier starts, or kept ones to the present; yield those moved to a later time than that."""
        profile, now, reserved = self._profile, view.now, self._reserved
        jobs: Iterable[QueuedJob] = view.waiting.values()
        if self._depth < inf:
            jobs = sorted((view.waiting[job_id] for job_id in reserved), key=lambda job: job.queue_order)
        for job in self._sorted(jobs, now):
            if (old := reserved.get(job.id)) is None:
                continue
            start, length, split, tested = old
            pools, nodes = self._groups[job.eligible].pools, job.nodes
            if not (self._kept or profile.freed_since(tested, pools)):
                continue
            if self._kept or profile.may_improve(start, length, split, nodes, pools):
                profile.release(start, length, split)
                if not self._kept:
                    start, split = profile.earliest(length, nodes, pools, start)
                elif (at_once := profile.split(now, length, nodes, pools)) is not None:
                    start, split = now, at_once
                profile.reserve(start, length, split)
                if (start, split) != (old.start, old.split):
                    profile.note_freed(old.split)
                if now < start < old.start:
                    yield self._told(job, start)
            reserved[job.id] = _Reservation(start, length, split, profile.clock)

    def _told(self, job: QueuedJob, start: int) -> Reserve:
        return Reserve(job=job, start=start, guaranteed=not self._lengths.may_overrun)

    def _start_due(self, view: View, idle: IdlePools) -> Iterator[Start]:
        """Start jobs whose reserved time has come, the earliest first."""
        profile, now, reserved = self._profile, view.now, self._reserved
        for _, job_id in sorted((each.start, job_id) for job_id, each in reserved.items() if each.start <= now):
            job, (start, length, split, _) = view.waiting[job_id], reserved.pop(job_id)
            self._groups[job.eligible].protected -= 1
            if self._depth == 1 and (predicted := self._length_of(job)) != length:
                profile.release(start, length, split)
                fitting = profile.split(now, predicted, job.nodes, self._pools.of(job.eligible))
                length, split = (length, split) if fitting is None else (predicted, fitting)
                profile.reserve(now, length, split)
            profile.note_start(job_id, split, now + length)
            self._lengths.started(job)
            yield Start(job=job, columns=idle.take_split(split), reason=_IN_TIME)

    def _place(self, candidates: Iterable[QueuedJob], now: int) -> Iterator[Reserve]:
        """Reserve for all jobs."""
        for job in self._sorted([job for job in candidates if job.id not in self._reserved], now):
            if (start := self._reserve(job, self._group_of(job), now)) > now:
                yield self._told(job, start)

    def _group_of(self, job: QueuedJob) -> _Group:
        if (group := self._groups.get(job.eligible)) is None:
            group = self._groups[job.eligible] = _Group(self._pools.of(job.eligible))
            group.idle = self._profile.idle(group.pools)
        return group

    def _schedule(self, candidates: Iterable[QueuedJob], now: int, idle: IdlePools) -> list[Decision]:
        """Start jobs that fit, and reserve for those that are blocked."""
        groups, reserved, depth, order = self._groups, self._reserved, self._depth, self._order
        decisions: list[Decision] = []
        rest: list[QueuedJob] = []
        for group in groups.values():
            group.idle = self._profile.idle(group.pools)
            group.blocked.clear()
        for job in self._sorted(candidates, now):
            of_job = groups.get(job.eligible) or self._group_of(job)
            full = of_job.protected >= depth
            if job.id in reserved or (full and job.nodes > of_job.idle):
                continue
            if order is not None and full:
                rest.append(job)
            else:
                decisions += self._consider(job, of_job, now, idle)
        if order is not None:
            for job in sorted(rest, key=lambda job: order(job, now)):
                decisions += self._consider(job, groups[job.eligible], now, idle)
        return decisions

    def _consider(self, job: QueuedJob, group: _Group, now: int, idle: IdlePools) -> list[Decision]:
        profile, nodes, pools, length = self._profile, job.nodes, group.pools, self._length_of(job)
        if nodes <= group.idle and not any(fewer <= nodes and shorter <= length for fewer, shorter in group.blocked):
            if (split := profile.split(now, length, nodes, pools)) is not None:
                profile.start(job.id, split, now, length)
                for other in self._groups.values():
                    other.idle = profile.idle(other.pools)
                self._lengths.started(job)
                return [Start(job=job, columns=idle.take_split(split), reason=_FITS)]
            group.blocked.append((nodes, length))
        if group.protected >= self._depth or (self._earn is not None and not self._earn(job, now)):
            return []
        start = self._reserve(job, group, now)
        return [] if self._afresh else [self._told(job, start)]

    def _reserve(self, job: QueuedJob, group: _Group, now: int) -> int:
        """Reserve the earliest start of a job, or that which it keeps, and return it."""
        profile, length = self._profile, self._length_of(job)
        start, split = self._kept_starts.get(job.id, 0), None
        if start > now:
            split = profile.split(start, length, job.nodes, group.pools)
        if split is None:
            start, split = profile.earliest(length, job.nodes, group.pools)
        if self._kept:
            self._kept_starts[job.id] = start
        group.protected += 1
        profile.reserve(start, length, split)
        self._reserved[job.id] = _Reservation(start, length, split, profile.clock)
        return start


_IN_TIME: Final = Reason("its reserved time has come")
_FITS: Final = Reason("it fits, and delays no reservation")
