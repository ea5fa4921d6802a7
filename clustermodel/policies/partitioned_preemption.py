"""Which jobs run and which are preempted on a machine with partitions: nodes are counted by pool.

A running job has the nodes that it holds; a waiting one takes nodes that are idle before those that jobs are leaving, and these
before those that others would have to leave.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from clustermodel.machine.node_set import NodeSet, from_mask
from clustermodel.plans.pool_plans import IdlePools
from clustermodel.plans.pools import Pools, Split
from clustermodel.policies.interface import Kill
from clustermodel.policies.preemption import IdleMemory, Victims
from clustermodel.policies.view import QueuedJob, RunningJob, View


class PoolsToShare:
    """The nodes of one scheduling cycle by pool: those that are idle, those that jobs are leaving, and those to be gained."""

    def __init__(self, pools: Pools, view: View, gains: Iterable[RunningJob], leaving: Iterable[RunningJob] = ()) -> None:
        self._pools, self._view = pools, view
        self._idle = IdlePools(pools, view.idle_nodes).counts()
        self._leaving, self._gain = [0 for _ in self._idle], [0 for _ in self._idle]
        for gang in leaving:
            self._add(self._leaving, gang.columns, 1)
        for gang in gains:
            self._add(self._gain, gang.columns, 1)
        self._closed: set[int] = set()  # pools of jobs that do not fit and may not be passed

    def _add(self, counts: list[int], nodes: NodeSet, sign: int) -> None:
        for pool, number in self._pools.counts(nodes):
            counts[pool] += sign * number

    def close(self, job: QueuedJob) -> None:
        """Let no other job have nodes of the pools of a job that does not fit."""
        self._closed.update(self._pools.of(job.eligible))

    def ways(self, job: QueuedJob) -> list[tuple[int, ...]]:
        """Return the pools of each set of nodes of which those of a job are all in one, if none of them is closed."""
        return [pools for pools in self._pools.ways(job) if self._closed.isdisjoint(pools)]

    def lose(self, gang: RunningJob) -> None:
        """Leave a job the nodes that it holds: they cannot be gained any more."""
        self._add(self._gain, gang.columns, -1)

    def keep(self, gang: RunningJob) -> bool:
        """Leave a job the nodes that it holds, if no job before it has taken them."""
        counts = self._pools.counts(gang.columns)
        if not self._closed.isdisjoint(pool for pool, _ in counts) or any(self._gain[pool] < number for pool, number in counts):
            return False
        self.lose(gang)
        return True

    def take(self, job: QueuedJob) -> Split | None:
        """Give a waiting job nodes; return from which pools, ``None`` if they are too few.

        It has idle ones if they are enough, else also those that jobs are leaving, else also those to be gained; of several
        sets those of the first that has enough.
        """
        ways, sources = self.ways(job), (self._idle, self._leaving, self._gain)
        if (own := self._view.suspended_on(job)) is not None:
            counts = self._pools.counts(own)
            if any(all(pool in pools and self._free(pool) >= number for pool, number in counts) for pools in ways):
                _spend(counts, sources)
                return counts
        for last in range(1, len(sources) + 1):
            for pools in ways:
                taken: dict[int, int] = {}
                left = job.nodes
                for counts_of in sources[:last]:
                    for pool in pools:
                        number = min(counts_of[pool], left)
                        if number > 0:
                            taken[pool] = taken.get(pool, 0) + number
                            left -= number
                if not left:
                    split = tuple(sorted(taken.items()))
                    _spend(split, sources)
                    return split
        return None

    def _free(self, pool: int) -> int:
        return self._idle[pool] + self._leaving[pool]

    def missing(self, job: QueuedJob, pools: Iterable[int]) -> int:
        """Return how many nodes of some pools are too few for a job if nothing is gained."""
        return job.nodes - sum(map(self._free, pools))

    def gained_from(self, gang: RunningJob, pools: Container[int]) -> int:
        """Return how many nodes of some pools a running job has."""
        return sum(number for pool, number in self._pools.counts(gang.columns) if pool in pools)

    def gain(self, gang: RunningJob) -> None:
        """Preempt a running job."""
        self._add(self._gain, gang.columns, -1)
        self._add(self._leaving, gang.columns, 1)


def _spend(split: Split, sources: Iterable[list[int]]) -> None:
    """Take nodes of each pool from counts of them, as many as there are of the first, then of the next ones."""
    for pool, number in split:
        left = number
        for counts in sources:
            of_these = min(left, counts[pool])
            counts[pool] -= of_these
            left -= of_these


Chosen = dict[int, Split]
"""From which pools waiting jobs that are to start have their nodes, by job id."""


def by_order(
    shared: PoolsToShare, order: Iterable[QueuedJob], view: View, stoppable: dict[int, RunningJob], *, skip: bool
) -> tuple[Chosen, list[RunningJob]]:
    """Let jobs take nodes in order; return those to start, and the running ones that get none."""
    chosen: Chosen = {}
    for job in order:
        if (gang := stoppable.get(job.id)) is not None:
            if shared.keep(gang):
                del stoppable[job.id]
                continue
        elif job.id not in view.waiting:
            continue
        elif (split := shared.take(job)) is not None:
            chosen[job.id] = split
            continue
        if not skip:
            shared.close(job)
    return chosen, [gang for gang in view.running.values() if gang.job.id in stoppable]


def by_victims(
    shared: PoolsToShare,
    order: Iterable[QueuedJob],
    view: View,
    behind: dict[int, RunningJob],
    victims: Victims,
    *,
    skip: bool,
) -> tuple[Chosen, list[RunningJob]]:
    """Let waiting jobs, in order, preempt as few of the jobs behind them as they need; return those to start, and these."""
    victims.begin(view)
    chosen: Chosen = {}
    stops: list[RunningJob] = []
    for job in order:
        if (gang := behind.pop(job.id, None)) is not None:
            shared.lose(gang)
            continue
        if job.id not in view.waiting or not (ways := shared.ways(job)):
            continue
        if all(shared.missing(job, pools) > 0 for pools in ways):
            for other in _victims(shared, job, ways, view, behind, victims):
                stops.append(behind.pop(other.job.id))
                shared.gain(other)
        if any(shared.missing(job, pools) <= 0 for pools in ways):
            split = shared.take(job)
            assert split is not None, "the victims have enough nodes for it"
            chosen[job.id] = split
        elif not skip:
            shared.close(job)
    return chosen, stops


def _victims(
    shared: PoolsToShare,
    job: QueuedJob,
    ways: Iterable[tuple[int, ...]],
    view: View,
    behind: dict[int, RunningJob],
    victims: Victims,
) -> list[RunningJob]:
    """Return whom a waiting job that does not fit preempts: in the first of its sets of nodes where these have enough."""
    may_yield = victims.may_preempt(job, behind)
    for pools in ways:
        gained = {other: nodes for other in may_yield if (nodes := shared.gained_from(other, pools))}
        if chosen := victims.choose(shared.missing(job, pools), list(gained), gained.__getitem__, view.now):
            return chosen
    return []


def starts_of(
    chosen: Chosen, pools: Pools, jobs: Iterable[QueuedJob], view: View, memory: IdleMemory | None
) -> Iterator[tuple[QueuedJob, NodeSet | None, list[Kill]]]:
    """Yield waiting jobs that are to start, with idle nodes for them, or ``None``, and what is discarded of others there."""
    idle = IdlePools(pools, view.idle_nodes)
    for job in jobs:
        if job.id not in view.waiting:
            continue
        if memory is not None:
            place = memory.place(job)
            yield job, None if place is None else from_mask(place.nodes), [] if place is None else memory.take(job, place)
            continue
        split, own, eligible = chosen[job.id], view.suspended_on(job), pools.of(job.eligible)
        if any(pool not in eligible for pool, _ in split):  # the jobs that had them took too long to leave
            yield job, None, []
        elif own is not None and pools.counts(own) == split and idle.take_nodes(own):
            yield job, own, []
        elif all(idle.counts()[pool] >= nodes for pool, nodes in split):
            yield job, idle.take_split(split), []
        else:
            yield job, None, []
