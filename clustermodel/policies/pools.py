"""Backfilling where jobs may differ in the nodes that they may have, or in how these must lie.

Jobs wait in one queue.  A waiting job holds a reservation, a start and so many nodes of each pool, or of particular nodes where
jobs have shapes or share the memory of nodes.  Under EASY the first blocked jobs of each set of eligible nodes do, so that no
partition's first job is delayed for those of another one; under conservative backfilling all do.  Windows, which are
reservations of the machine and outages that are known in advance, bar jobs from nodes: plans go around them.

The plan goes on from one scheduling cycle to the next, as on the whole machine.  Where all jobs may have all nodes, the
schedules are those of the policies on the whole machine, which plan faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from math import inf
from typing import Any, Final, NamedTuple

from clustermodel.plans.by_node import IdleProcessors
from clustermodel.plans.make import idle_to_take, nodes_of, plan_of, pools_of
from clustermodel.plans.pool_plans import Group, IdleNodes, IdlePools
from clustermodel.plans.pools import Split
from clustermodel.policies.interface import Decision, Reason, Reserve, Setup, Start, WakeAt
from clustermodel.policies.predictors import Lengths
from clustermodel.policies.queue_order import QueueSorter
from clustermodel.policies.view import Batch, QueuedJob, View
from clustermodel.ticks import NEVER


class _Reservation(NamedTuple):
    job: QueuedJob
    start: int
    length: int
    split: Split
    tested: int  # when it was last tried to move, by the clock of the plan


class PoolBackfilling:
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
        self._pools, self._nodes = pools_of(setup), nodes_of(setup)
        self._lengths, self._length_of = lengths, lengths.of
        self._depth, self._earn, self._sorter, self._order, self._kept, self._afresh = depth, earn, sorter, order, kept, afresh
        self._everyone = depth == inf and earn is None and not afresh
        self._explain, self._guaranteed = setup.explain, lengths.are_estimates if depth < inf else not lengths.may_overrun
        self._one_by_one, self._alike = setup.one_by_one, not setup.by_node
        # Whether a job that is blocked stays so until something of its pools becomes free.
        anything = setup.by_node or setup.machine.windows or setup.one_by_one or lengths.may_overrun or earn or afresh
        self._by_pool = not anything
        # Running jobs and reservations.
        self._plan = plan_of(self._pools, self._nodes, may_overrun=lengths.may_overrun)
        if setup.machine.windows and not lengths.are_estimates:
            self._plan.longest_of = lambda job: setup.holding(job, job.estimate)
            self._alike = False  # jobs of one length may not have to end before the same windows
        self._reserved: dict[int, _Reservation] = {}  # by job id
        self._starts: list[tuple[int, int]] = []  # heap of (reserved start, job id); an entry that moved since is stale
        self._first = NEVER  # the earliest reserved start, at the end of a scheduling cycle
        self._idle: IdleNodes | IdlePools | IdleProcessors | None = None  # in a scheduling cycle, once a job starts
        self._group_of: dict[int, Group] = {}  # by the id of a job in the system
        self._kept_starts: dict[int, int] = {}  # by job id
        # A single reservation begins when a running job is expected to end, and that end is an event already.
        self._always_alarms = depth > 1 or setup.by_node or bool(setup.machine.windows)
        self._alarm: int | None = None

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Move reservations to earlier starts, start what fits, reserve for what is blocked."""
        plan, now, waiting, reserved = self._plan, view.now, view.waiting, self._reserved
        self._observe(batch, view)
        self._idle = None
        freed = plan.catch_up(batch.ended, now, batch.failed, batch.repaired)
        late = plan.overrunning(now, view.running)
        if not (waiting or late or batch.failed):
            return []
        decisions: list[Decision] = []
        candidates: Iterable[QueuedJob] = waiting.values()
        first = self._first
        if late or batch.failed or self._afresh or first < now or (batch.submitted and self._overtaken(batch, view)):
            plan.freed = -1  # of all
            jobs = [waiting[job_id] for job_id in reserved]
            for job in jobs:
                self._drop(job.id, now)
            plan.extend(late, now, self._lengths.delays(view.running))
            if self._depth == inf and not (batch.failed or self._afresh):  # they stay before those without a reservation
                jobs.sort(key=lambda job: job.queue_order)
                for job in self._sorted(jobs, now):
                    self._reserve(job, self._group_of[job.id], now)
            first = self._first_start()
        elif freed or batch.reservations or (self._kept and (batch.ended or batch.repaired)):
            if reserved:
                decisions += self._renew(view, windows_change=batch.reservations)
                first = self._first_start()
        elif not (batch.ended or batch.repaired or batch.alarm or self._earn or self._one_by_one):
            candidates = batch.submitted  # no nodes have become free, so that no job that waited before can start
        if self._one_by_one and batch.submitted and self._makes_no_cycle(batch.submitted[0], now):
            self._first = first
            return decisions
        if self._everyone:
            decisions += self._place(candidates, now)
            self._start_due(view, decisions)
        else:
            if first <= now:
                started = self._start_due(view, decisions)
                candidates = [job for job in candidates if job.id not in started]
            self._schedule(candidates, batch, view, decisions)
        return self._with_alarm(decisions)

    def _with_alarm(self, decisions: list[Decision]) -> list[Decision]:
        """Note the first reserved start, and wake up then where no other event is sure to be at that time."""
        self._first = alarm = self._first_start()
        alarms = not self._afresh and (self._always_alarms or len(self._plan.groups) > 1)
        if alarms and alarm not in (self._alarm, NEVER):
            self._alarm = alarm
            decisions.append(WakeAt(time=alarm))
        return decisions

    def _observe(self, batch: Batch, view: View) -> None:
        if not self._lengths.are_estimates:
            self._lengths.observe(batch, view)
        if self._sorter is not None:
            self._sorter.submitted(batch.submitted)
        for gang in batch.ended:
            if gang.job.id not in view.waiting:
                del self._group_of[gang.job.id]
                if self._sorter is not None:
                    self._sorter.left(gang.job)
        for job in batch.submitted:
            self._group_of[job.id] = self._plan.group_of(job)
        if batch.reservations:  # jobs may have been rejected that have missed their last chance
            for job_id in [job_id for job_id in self._reserved if job_id not in view.waiting]:
                split = self._reserved[job_id].split
                self._drop(job_id, view.now)
                self._plan.note_freed(split)
            self._first = self._first_start()

    def _makes_no_cycle(self, submitted: QueuedJob, now: int) -> bool:
        """Return whether EASY in queue order leaves all as it is: the submitted job is larger than the idle nodes."""
        # As in the program of Gaussier et al. 2015.  Nodes that the plan has idle from now on can be had, others when the end
        # of their gang is reported.
        if self._depth == inf or self._order is not None or not self._plan.are_alike:
            return False
        self._plan.count_idle()
        due = sum([each.job.nodes for each in self._reserved.values() if each.start <= now])
        return submitted.nodes > self._group_of[submitted.id].idle + due

    def _sorted(self, jobs: Iterable[QueuedJob], now: int) -> Iterable[QueuedJob]:
        return jobs if self._sorter is None else self._sorter.sort(jobs, now)

    def _first_start(self) -> int:
        """Return the earliest reserved start."""
        starts, reserved = self._starts, self._reserved
        while starts:
            start, job_id = starts[0]
            if (reservation := reserved.get(job_id)) is not None and reservation.start == start:
                return start
            heappop(starts)
        return NEVER

    def _overtaken(self, batch: Batch, view: View) -> bool:
        """Return whether a submitted job comes before one that holds one of few reservations, and may have nodes of its."""
        if self._depth == inf:
            return False
        first = batch.submitted[0].queue_order
        behind = [job for job_id in self._reserved if (job := view.waiting[job_id]).queue_order > first]
        for job in behind:
            pools = set(self._group_of[job.id].pools)
            for other in batch.submitted:
                if other.queue_order < job.queue_order and not pools.isdisjoint(self._group_of[other.id].pools):
                    return True
        return False

    def _drop(self, job_id: int, now: int) -> None:
        _, start, length, split, _ = self._reserved.pop(job_id)
        self._group_of[job_id].protected -= 1
        if start + length > now:
            self._plan.release(max(start, now), start + length - max(start, now), split)

    def _renew(self, view: View, *, windows_change: bool) -> Iterator[Reserve]:
        """Move reservations to earlier starts, or kept ones to the present; yield those moved to a later time than that."""
        plan, now, reserved, kept = self._plan, view.now, self._reserved, self._kept
        jobs: Iterable[QueuedJob] = view.waiting.values()
        if self._depth < inf:
            jobs = [view.waiting[job_id] for job_id in reserved]
            if len(jobs) > 1:
                jobs.sort(key=lambda job: job.queue_order)
        for job in self._sorted(jobs, now):
            if (old := reserved.get(job.id)) is None:
                continue
            _, start, length, split, tested = old
            group = self._group_of[job.id]
            if not (kept or (plan.freed_since(tested, group) and (windows_change or group.allowed & plan.connected()))):
                continue
            if kept or plan.may_improve(start, length, split, job, group):
                plan.release(start, length, split)
                if not kept:
                    start, split = plan.earliest(length, job, group, start)
                elif (at_once := plan.split(now, length, job, group)) is not None:
                    start, split = now, at_once
                plan.reserve(start, length, split)
                if (start, split) != (old.start, old.split):
                    plan.note_freed(old.split)
                if start < old.start:
                    heappush(self._starts, (start, job.id))
                    if start > now:
                        yield self._reserve_decision(job, start)
            reserved[job.id] = _Reservation(job, start, length, split, plan.clock)

    def _reserve_decision(self, job: QueuedJob, start: int) -> Reserve:
        return Reserve(job=job, start=start, guaranteed=self._guaranteed)

    def _start(self, job: QueuedJob, split: Split, view: View, reason: Reason | None) -> Start:
        if self._idle is None:
            self._idle = idle_to_take(self._pools, self._nodes, view, planned=True)
        self._lengths.started(job)
        return Start(job=job, columns=self._idle.take_split(split), reason=reason)

    def _start_due(self, view: View, decisions: list[Decision]) -> set[int]:
        """Start jobs whose reserved time has come, the earliest first; return them."""
        plan, now, reserved, started = self._plan, view.now, self._reserved, set[int]()
        while self._first_start() <= now:
            job_id = heappop(self._starts)[1]
            (job, start, length, split, _), group = reserved.pop(job_id), self._group_of[job_id]
            group.protected -= 1
            if self._depth == 1 and (predicted := self._length_of(job)) != length:
                plan.release(start, length, split)
                fitting = plan.split(now, predicted, job, group)
                length, split = (length, split) if fitting is None else (predicted, fitting)
                plan.reserve(now, length, split)
            plan.note_start(job_id, split, now + length)
            decisions.append(self._start(job, split, view, self._reason(job, now, start) if self._explain else None))
            started.add(job_id)
        return started

    def _place(self, candidates: Iterable[QueuedJob], now: int) -> Iterator[Reserve]:
        """Reserve for all jobs."""
        for job in self._sorted([job for job in candidates if job.id not in self._reserved], now):
            if (start := self._reserve(job, self._group_of[job.id], now)) > now:
                yield self._reserve_decision(job, start)

    def _schedule(self, candidates: Iterable[QueuedJob], batch: Batch, view: View, decisions: list[Decision]) -> None:
        """Start jobs that fit, and reserve for those that are blocked."""
        group_of, reserved, depth, order = self._group_of, self._reserved, self._depth, self._order
        plan, now = self._plan, view.now
        rest: list[QueuedJob] = []
        plan.count_idle()
        freed, plan.freed = plan.freed if self._by_pool and not batch.alarm else -1, 0
        for group in plan.groups:
            group.is_closed = not freed & group.bits
            if group.blocked:
                group.blocked.clear()
        for job in batch.submitted:
            group_of[job.id].is_closed = False
        for job in candidates if self._sorter is None else self._sorter.sort(candidates, now):
            group = group_of[job.id]
            if (group.protected >= depth and (group.is_closed or job.nodes > group.idle)) or job.id in reserved:
                continue
            if order is not None and group.protected >= depth:
                rest.append(job)
            else:
                self._consider(job, group, view, decisions)
        if order is not None:
            for job in sorted(rest, key=lambda job: order(job, now)):
                self._consider(job, group_of[job.id], view, decisions)

    def _consider(self, job: QueuedJob, group: Group, view: View, decisions: list[Decision]) -> None:
        plan, now, nodes, length = self._plan, view.now, job.nodes, self._length_of(job)
        if nodes <= group.idle:
            for fewer, shorter in group.blocked:
                if fewer <= nodes and shorter <= length:
                    break
            else:
                if (split := plan.split(now, length, job, group)) is not None:
                    reason = self._reason(job, now) if self._explain else None
                    plan.start(job.id, split, now, length)
                    plan.count_idle()
                    decisions.append(self._start(job, split, view, reason))
                    return
                if self._alike:
                    group.blocked.append((nodes, length))
        if group.protected < self._depth and (self._earn is None or self._earn(job, now)):
            start = self._reserve(job, group, now)
            if start >= 0 and not self._afresh:
                decisions.append(self._reserve_decision(job, start))

    def _reserve(self, job: QueuedJob, group: Group, now: int) -> int:
        """Reserve the earliest start of a job, or that which it keeps, and return it; -1 if windows let it start at no time."""
        plan, length = self._plan, self._length_of(job)
        start, split = self._kept_starts.get(job.id, 0) if self._kept else 0, None
        if start > now:
            split = plan.split(start, length, job, group)
        if split is None:
            start, split = plan.earliest(length, job, group)
            if start < 0:
                return start
        if self._kept:
            self._kept_starts[job.id] = start
        group.protected += 1
        plan.reserve(start, length, split)
        self._reserved[job.id] = _Reservation(job, start, length, split, plan.clock)
        heappush(self._starts, (start, job.id))
        return start

    def _reason(self, job: QueuedJob, now: int, reserved: int | None = None) -> Reason:
        """Explain the start of a job that holds no reservation any more."""
        if self._depth == inf:
            return _FITS if reserved is None else _IN_TIME
        group = self._group_of[job.id]
        holders = [job_id for job_id in self._reserved if self._group_of[job_id] is group]
        if not holders or job.queue_order < self._reserved[holders[0]].job.queue_order:
            return Reason("head of the queue, and it fits", reserved=reserved)
        shadow = self._reserved[holders[0]].start
        if now + self._length_of(job) <= shadow:
            rule = "backfilled: it will end by the shadow time"
        elif len(holders) == 1:
            rule = "backfilled: it takes no more than the extra nodes"
        else:
            rule = f"backfilled: it delays none of the {len(holders)} protected jobs"
        return Reason(rule, holder=holders[0], shadow=shadow, extra=self._plan.free_at(shadow, group))


_IN_TIME: Final = Reason("its reserved time has come")
_FITS: Final = Reason("it fits, and delays no reservation")
