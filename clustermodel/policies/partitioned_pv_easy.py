"""One run of PV-EASY where jobs may differ in the nodes that they may have: nodes are counted by pool.

Of each set of jobs that may have the same nodes, the first one that does not fit is *blocked*.  Its shadow load is the running
jobs behind it that hold nodes which it may have; its reservation counts the jobs ahead of it that run or are blocked.  First,
jobs are backfilled that are predicted to end by the reservations of all blocked jobs that share nodes with them, the shortest
first, then any that fit.  No blocked job keeps those of other sets from starting in their turn, as it can preempt them; but
without venture backfilling they must not delay its reservation, as under EASY over pools.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from clustermodel.node_set import NodeSet, from_mask
from clustermodel.plans.make import pools_of
from clustermodel.plans.pool_plans import IdlePools, split_of
from clustermodel.plans.pools import PoolProfile, Split
from clustermodel.policies.interface import Decision, Reason, Reserve, Setup, Start
from clustermodel.policies.pv_easy_run import PVEasyRun, Running
from clustermodel.policies.view import Batch, QueuedJob, RunningJob, View
from clustermodel.ticks import NEVER

if TYPE_CHECKING:
    from clustermodel.policies.pv_easy import PVEasy


class _Leaving(NamedTuple):
    """A job that is being preempted."""

    job: QueuedJob
    end: int  # when its nodes will be free
    nodes: list[int]  # by pool, without those that are kept for a blocked job


class PooledPVEasyRun(PVEasyRun):
    """:class:`PVEasyRun` over pools."""

    def __init__(self, policy: PVEasy, setup: Setup) -> None:
        super().__init__(policy, setup)
        self._pools, self._holding = pools_of(setup), setup.holding
        self._parts = list(range(len(self._pools)))  # by pool; pools that jobs connect are of the same part of the machine
        # Of jobs: those of one kind may have the same nodes at any time.
        self._kinds: dict[tuple[tuple[NodeSet | None, ...], int], int] = {}
        self._kind_of: dict[int, int] = {}  # by job id
        self._splits: dict[int, Split] = {}  # of the running load, by job id
        self._told: set[int] = set()  # blocked jobs that know their reservations
        # In a scheduling cycle.
        self._decisions: list[Decision] = []
        self._free: list[int] = []  # by pool, idle nodes that are not kept for a blocked job
        self._leaving: list[_Leaving] = []  # in queue order
        self._heads: dict[int, QueuedJob] = {}  # the blocked jobs by kind, in queue order
        self._claimed: set[int] = set()  # those for which nodes are coming
        self._profile: PoolProfile | None = None  # with their reservations
        self._starts: dict[int, int] = {}  # when they are expected to start; NEVER where windows let them start at no time

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start jobs in queue order; preempt for each that is the first one blocked of its kind; backfill."""
        self._observe(batch, view)
        self._decisions = []
        if not view.waiting:
            return []
        self._idle = IdlePools(self._pools, view.idle_nodes)
        self._free = [*self._idle.counts()]
        leaving = sorted((job.queue_order, job, end) for job, end, stopping in self._load.values() if stopping)
        self._leaving = [_Leaving(job, max(end, view.now), self._numbers(job)) for _, job, end in leaving]
        self._heads, self._claimed, self._profile = {}, set(), None
        behind: list[QueuedJob] = []
        for job in view.waiting.values():
            head = self._heads.get(self._kind_of[job.id])
            if head is None:
                if not self._starts_now(job, _IN_TURN):
                    if self._preempts_at_once(job):
                        return self._decisions  # another scheduling cycle follows
                    self._reserve(job)
            elif self._vb:
                behind.append(job)
            else:
                self._starts_now(job, _DELAYS_NOBODY, head)
        self._venture(behind)
        return self._decisions

    def _observe(self, batch: Batch, view: View) -> None:
        super()._observe(batch, view)
        for gang in batch.ended:
            self._splits.pop(gang.job.id, None)
            if gang.job.id not in view.waiting:
                del self._kind_of[gang.job.id]
        for job in batch.submitted:
            kind = job.sets_allowed(), job.barred
            if kind not in self._kinds:
                self._kinds[kind] = len(self._kinds)
                joined = {self._parts[pool] for pool in self._pools.of(job.allowed)}
                self._parts = [min(joined) if part in joined else part for part in self._parts]
            self._kind_of[job.id] = self._kinds[kind]

    def _numbers(self, job: QueuedJob) -> list[int]:
        """Return how many nodes of each pool a job of the running load has."""
        own = dict(self._splits[job.id])
        return [own.get(pool, 0) for pool in range(len(self._pools))]

    # Starts.

    def _starts_now(self, job: QueuedJob, rule: str, head: QueuedJob | None = None) -> bool:
        """Start a job if it fits, on the nodes where it is suspended if it may have these."""
        split = self._split(job, self._free)
        if split is None:
            return False
        own = self._view.suspended_on(job)
        if self._memory is not None:
            places = [self._memory.place(job), *[self._memory.place(job, (each,)) for each in job.sets_eligible()[1:]]]
            fitting = [each for each in places if each is not None and self._may_have(job, from_mask(each.nodes))]
            if not fitting:
                return False
            place, columns = fitting[0], from_mask(fitting[0].nodes)
            split = self._pools.counts(columns)
            self._decisions += self._memory.take(job, place)
        elif own is not None and self._may_have(job, own) and self._idle.take_nodes(own):
            columns, split = own, self._pools.counts(own)
        else:
            columns = self._idle.take_split(split)
        self._lengths.started(job)
        now, length = self._view.now, self._length(job)
        self._load[job.id], self._splits[job.id] = Running(job, now + length), split
        self._told.discard(job.id)
        for pool, nodes in split:
            self._free[pool] -= nodes
        if self._profile is not None:
            self._profile.overbook(now, length, split)
        shadow = self._starts[head.id] if head else NEVER
        reason = Reason(rule, head.id if head else None, None if shadow == NEVER else shadow) if self._explain else None
        self._decisions.append(Start(job=job, columns=columns, reason=reason))
        return True

    def _may_have(self, job: QueuedJob, nodes: NodeSet) -> bool:
        """Return whether a job can start now on all of some nodes, as far as their pools tell."""
        counts = [0 for _ in self._free]
        for pool, number in self._pools.counts(nodes):
            counts[pool] = min(number, self._free[pool])
        return self._split(job, counts) is not None

    def _split(self, job: QueuedJob, free: Sequence[int], delay: int = 0, without: Collection[int] = ()) -> Split | None:
        """Return from which pools a job can have its nodes, where so many are free, now or later; ``None``: too few."""
        split = split_of(free, job.nodes, self._ways(job, delay))
        if split is None or self._vb or not self._heads:
            return split
        # It has to leave the blocked jobs their reservations, as if some others were not running.
        profile = self._reservations(without)[0] if without else self._planned()
        free = list(map(min, free, profile.least_free(self._view.now + delay, self._length(job))))
        return split_of(free, job.nodes, self._ways(job, delay))

    def _ways(self, job: QueuedJob, delay: int = 0) -> list[tuple[int, ...]]:
        """Return the pools of each set of nodes of which a job may have those of one, if it starts now, or later."""
        ways, windows = self._pools.ways(job), self._pools.windows
        if not delay or windows is None:
            return ways
        barred = windows.barred(self._view.now + delay, self._longest(job), job.barred)
        return [tuple([pool for pool in pools if not self._pools.masks[pool] & barred]) for pools in ways]

    def _longest(self, job: QueuedJob) -> int:
        """Return how long before a window a job has to start."""
        return max(self._length(job), self._holding(job, job.estimate))

    # Preemption.

    def _preempts_at_once(self, head: QueuedJob) -> bool:
        """Preempt others for a blocked job, or keep nodes for it; return whether nodes become free at the current time."""
        coming = self._coming(head)
        free = _with(self._free, coming)
        if self._slp and all(sum(free[pool] for pool in pools) < head.nodes for pools in self._ways(head)):
            victims = self._shadow_load(head, coming, free)
            times = [self._time_to_leave(gang, head) for gang in victims]
            self._decisions += [self._preempt(gang, head) for gang in victims]
            if 0 in times:
                return True
            if victims:
                self._leaving += [_Leaving(gang.job, self._load[gang.job.id].end, self._numbers(gang.job)) for gang in victims]
                self._leaving.sort(key=lambda each: each.job.queue_order)
                coming = self._coming(head)
        if coming:
            self._claim(head, coming)
        return False

    def _coming(self, head: QueuedJob) -> list[_Leaving]:
        """Return the jobs behind a blocked one that are leaving nodes which it may have; one ahead takes its nodes back."""
        pools = self._pools.of(head.eligible)
        behind = [each for each in self._leaving if each.job.queue_order > head.queue_order]
        return [each for each in behind if any(each.nodes[pool] for pool in pools)]

    def _shadow_load(self, head: QueuedJob, coming: list[_Leaving], free: list[int]) -> list[RunningJob]:
        """Return the jobs to preempt, the lowest first, as many as the blocked job needs; none if it could not start then.

        They are those on the first of its sets of nodes on which it can start.
        """
        shadow_load = [job for job, _, stopping in self._load.values() if job.queue_order > head.queue_order and not stopping]
        shadow_load.sort(key=lambda job: job.queue_order, reverse=True)
        for pools in self._ways(head):
            left, missing, victims = [*free], head.nodes - sum(free[pool] for pool in pools), list[RunningJob]()
            for job in shadow_load:
                if gained := [(pool, nodes) for pool, nodes in self._splits[job.id] if pool in pools]:
                    victims.append(self._view.running[job.id])
                    for pool, nodes in gained:
                        left[pool] += nodes
                        missing -= nodes
                    if missing <= 0:
                        break
            if missing > 0:
                continue
            times = [each.end - self._view.now for each in coming] + [self._time_to_leave(gang, head) for gang in victims]
            if self._split(head, left, max(times), [gang.job.id for gang in victims]) is not None:
                return victims
        return []

    def _time_to_leave(self, gang: RunningJob, head: QueuedJob) -> int:
        mode = self._mode if self._saves(gang, head) else "kill"
        if gang.fetching:  # it saves nothing
            return 0 if mode == "suspend" else self._epilog(gang.job)
        return self._to_leave(gang.job, mode)

    def _claim(self, head: QueuedJob, coming: list[_Leaving]) -> None:
        """Keep nodes for a blocked job if it can start when others have left theirs: of these first."""
        delay = max(each.end for each in coming) - self._view.now
        if (split := self._split(head, _with(self._free, coming), delay)) is None:
            return
        self._claimed.add(head.id)
        left, there = head.nodes, {pool for pool, _ in split}
        pools = next(pools for pools in self._ways(head, delay) if there.issubset(pools))
        for nodes in (*(each.nodes for each in coming), self._free):
            for pool in pools:
                kept = min(nodes[pool], left)
                nodes[pool] -= kept
                left -= kept

    # Reservations and backfilling.

    def _reserve(self, head: QueuedJob) -> None:
        """Let a blocked job have a reservation, and tell it once."""
        parts = {self._part(other) for other in self._heads.values()}
        self._heads[self._kind_of[head.id]], self._profile = head, None
        if head.id in self._told or head.id in self._claimed:
            return
        self._planned()
        if (start := self._starts[head.id]) < NEVER:
            self._told.add(head.id)
            # Jobs that are preempted for one ahead of it could come back before it.
            guaranteed = self._guarantees and self._part(head) not in parts
            self._decisions.append(Reserve(job=head, start=start, guaranteed=guaranteed))

    def _part(self, job: QueuedJob) -> int:
        return self._parts[self._pools.of(job.allowed)[0]]

    def _planned(self) -> PoolProfile:
        if self._profile is None:
            self._profile, self._starts = self._reservations()
        return self._profile

    def _reservations(self, without: Collection[int] = ()) -> tuple[PoolProfile, dict[int, int]]:
        """Return the profile of the load with reservations for the blocked jobs, and the starts of these, by id."""
        profile: PoolProfile | None = None
        reserved: list[tuple[int, int, Split]] = []
        starts: dict[int, int] = {}
        for head in self._heads.values():
            if profile is None or self._vb:  # each has its own sunny load
                profile = self._profile_of_load(head, without)
                for each in reserved:
                    profile.overbook(*each)
            length = self._length(head)
            longest = length if self._pools.windows is None else self._longest(head)
            ways = [self._pools.of(each) for each in head.sets_allowed()]
            start, split = profile.earliest_of(longest, head.nodes, ways, barred=head.barred)
            starts[head.id] = start if start >= 0 else NEVER
            if start >= 0:
                profile.overbook(start, length, split)
                reserved.append((start, length, split))
        assert profile is not None, "there is a blocked job"
        return profile, starts

    def _profile_of_load(self, head: QueuedJob, without: Collection[int]) -> PoolProfile:
        """Return the profile of the sunny load of a blocked job, or without venture backfilling of the whole running load."""
        now = self._view.now
        holders: list[tuple[QueuedJob | None, int, Split]] = [
            (None if stopping else job, end, self._splits[job.id])
            for job, end, stopping in self._load.values()
            if not (job.id in without or (self._vb and job.queue_order > head.queue_order))
        ]
        down = self._view.down.values()
        holders += [(None, outage.expected_end, self._pools.counts((outage.node, outage.node + 1))) for outage in down]
        ends: list[list[tuple[int, int]]] = [[] for _ in self._free]
        for job, end, split in holders:
            expected = end if end > now else end + self._lengths.delay(job, now - end)
            for pool, nodes in split:
                ends[pool].append((expected, nodes))
        return PoolProfile(self._pools, now, ends)

    def _venture(self, behind: list[QueuedJob]) -> None:
        """Backfill jobs that complete by the reservations on their nodes, then any job that fits: it remains preemptible."""
        fitting = [job for job in behind if split_of(self._free, job.nodes, self._ways(job)) is not None]
        if not fitting:
            return
        self._planned()
        reserved = [(set(self._pools.of(head.allowed)), self._starts[head.id]) for head in self._heads.values()]
        safe = []
        for job in fitting:
            own, end = self._pools.of(job.allowed), self._view.now + self._length(job)
            if all(end <= start or pools.isdisjoint(own) for pools, start in reserved):
                safe.append(job)
        safe.sort(key=lambda job: (self._length(job), job.queue_order))
        started = set[int]()
        for place, job in enumerate((*safe, *fitting)):
            rule = _IN_TIME if place < len(safe) else _VENTURED
            if job.id not in started and self._starts_now(job, rule, self._heads[self._kind_of[job.id]]):
                started.add(job.id)


def _with(free: list[int], coming: Iterable[_Leaving]) -> list[int]:
    """Return how many nodes of each pool are free when others have left theirs."""
    return [sum(numbers) for numbers in zip(free, *(each.nodes for each in coming), strict=True)]


_IN_TURN: Final = "head of its queue, and it fits"
_IN_TIME: Final = "backfilled: predicted to end by the reservation"
_DELAYS_NOBODY: Final = "backfilled: it delays no reservation"
_VENTURED: Final = "ventured: it may be preempted"
