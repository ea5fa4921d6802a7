"""Equipartition: running malleable jobs share the nodes equally (Tucker & Gupta 1989; McCann et al. 1993).

Jobs are admitted first come, first served: the first waiting job as soon as it and all running jobs can have their least
number of nodes.  Then all malleable jobs get as equal a number of nodes as their bounds allow; what jobs at their most cannot
use goes to the others, and nodes that are left over to the jobs that started first.  Rigid jobs keep the nodes that they asked
for.  A gang for which growing does not pay, or that cannot be resized now, keeps its nodes, and the others share the rest.

Where jobs may have different nodes, each job gets nodes one by one, always the job with the fewest; it is a greedy choice: a
running gang first keeps the nodes that the first waiting job cannot have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import ClassVar, Final, NamedTuple

from clustermodel.plans.pool_plans import split_of
from clustermodel.plans.pools import Split
from clustermodel.policies.interface import Decision, Reason
from clustermodel.policies.resizing_run import Cycle, ResizingPolicy, ResizingRun
from clustermodel.policies.view import QueuedJob, RunningJob

_ADMITTED: Final = Reason("admitted in queue order: all running jobs can have their least number of nodes")
Bounds = Sequence[tuple[int, int]]
"""Least and largest number of nodes of some jobs."""


class _Member(NamedTuple):
    """A job that shares the nodes: a running gang, or a waiting job that is admitted."""

    job: QueuedJob
    gang: RunningJob | None
    least: int
    most: int


def equal_shares(nodes: int, bounds: Bounds) -> list[int]:
    """Return how many of the nodes each job gets, as equal as the bounds allow; the first jobs get what is left over.

    The least numbers must fit; nodes that no job can use are left.
    """
    shares = [least for least, _ in bounds]
    nodes -= sum(shares)
    # Levels below which each job is filled up, the jobs with the fewest nodes first.
    low, high = min(shares, default=0), max((most for _, most in bounds), default=0)
    while low < high:
        level = (low + high + 1) // 2
        if sum(max(min(level, most) - least, 0) for least, most in bounds) <= nodes:
            low = level
        else:
            high = level - 1
    shares = [max(least, min(low, most)) for least, most in bounds]
    nodes -= sum(shares) - sum(least for least, _ in bounds)
    for place, (_, most) in enumerate(bounds):
        if nodes and shares[place] == low < most:
            shares[place] += 1
            nodes -= 1
    return shares


class _EquipartitionRun(ResizingRun):
    """One run of equipartition."""

    def schedule(self, cycle: Cycle) -> Iterable[Decision]:
        view, now = cycle.view, cycle.now
        gangs = sorted(view.running.values(), key=lambda gang: (gang.start, gang.job.queue_order))
        sharing = [gang for gang in gangs if self.can_be_resized(gang, now)]
        if not (view.waiting or sharing):
            return ()
        most = {gang.job.id: gang.job.sizes[1] for gang in sharing if gang.job.sizes is not None}
        for gang in sharing:
            if gang.nodes < most[gang.job.id] and not self.may_grow(gang, most[gang.job.id], now):
                most[gang.job.id] = gang.nodes  # even the largest growth does not pay
        while True:
            admitted, members, splits = self._shares(cycle, sharing, most)
            if (refused := self._refused(cycle, members, splits)) is None:
                break
            member, shrinks = refused
            if shrinks:
                sharing = [other for other in sharing if other is not member.gang]
            else:
                most[member.job.id] = member.least if member.gang is None else member.gang.nodes
        for member, split in zip(members, splits, strict=True):
            if member.gang is not None:
                cycle.change(member.gang, split)
        splits_of = {member.job.id: split for member, split in zip(members, splits, strict=True) if member.gang is None}
        for job, split in admitted:
            cycle.start(job, splits_of.get(job.id, split), _ADMITTED)
        return ()

    def _refused(self, cycle: Cycle, members: list[_Member], splits: list[Split]) -> tuple[_Member, bool] | None:
        """Return a gang that may not shrink (true), or the last member that may not have more, or gains nothing (false)."""
        refused = None
        for member, split in zip(members, splits, strict=True):
            nodes, pools = sum(number for _, number in split), [pool for pool, _ in split]
            if (gang := member.gang) is None:
                if nodes > member.least and not self.may_start(member.job, nodes, pools, cycle.now):
                    refused = member, False
                continue
            if nodes < gang.nodes and not self.may_shrink(gang, nodes, cycle.view):
                return member, True
            if nodes > gang.nodes and not self.may_grow(gang, nodes, cycle.now, pools):
                refused = member, False
        return refused

    def _shares(
        self, cycle: Cycle, sharing: list[RunningJob], most_of: Mapping[int, int]
    ) -> tuple[list[tuple[QueuedJob, Split]], list[_Member], list[Split]]:
        """Return the jobs to admit with their least nodes, the malleable jobs, and the nodes of each of these."""
        view, now, pools = cycle.view, cycle.now, self.pools
        spare, head = list(cycle.idle), next(iter(view.waiting.values()), None)
        wanted = set[int]() if head is None else set[int]().union(*self.ways_for(head, self.least(head), now))
        members, splits, owns = list[_Member](), list[dict[int, int]](), list[dict[int, int]]()
        for gang in sharing:
            assert gang.job.sizes is not None
            own = cycle.split(gang)
            least, most = min(gang.job.sizes[0], gang.nodes), most_of[gang.job.id]
            kept = dict(cycle.without(own, gang.nodes - least, [pool for pool, _ in own if pool in wanted]))
            for pool, number in own:
                spare[pool] += number - kept.get(pool, 0)
            members.append(_Member(gang.job, gang, least, most))
            splits.append(kept)
            owns.append(dict(own))
        admitted, closed = list[tuple[QueuedJob, Split]](), set[int]()
        for job in view.waiting.values():
            if len(closed) == len(pools):
                break
            least, split = 0, None
            # On few nodes it may take too long for the time before nodes are reserved.
            for least in dict.fromkeys((self.least(job), self.needs(job))):
                if (split := split_of(spare, least, self.ways_for(job, least, now, closed))) is not None:
                    break
            if split is None:
                closed.update(pools.of(job.allowed))
                continue
            for pool, number in split:
                spare[pool] -= number
            admitted.append((job, split))
            if job.sizes is not None and self.may_choose(job):
                members.append(_Member(job, None, least, most_of.get(job.id, job.sizes[1])))
                splits.append(dict(split))
                owns.append({})
        if len(pools) == 1:
            nodes = spare[0] + sum(member.least for member in members)
            shares = equal_shares(nodes, [(member.least, member.most) for member in members])
            return admitted, members, [((0, share),) for share in shares]
        self._fill(cycle, spare, members, splits, owns)
        return admitted, members, [tuple(sorted((pool, n) for pool, n in split.items() if n)) for split in splits]

    def _fill(
        self, cycle: Cycle, spare: list[int], members: list[_Member], splits: list[dict[int, int]], owns: list[dict[int, int]]
    ) -> None:
        """Give nodes one by one to the job with the fewest that can have another one; a gang first keeps its own."""
        now = cycle.now
        pools_of = [
            self.pools_of_start(member.job, tuple(split.items()), now)
            if member.gang is None
            else self.pools_to_grow(member.gang, now)
            for member, split in zip(members, splits, strict=True)
        ]
        heap = [(member.least, place) for place, member in enumerate(members) if member.least < member.most]
        heapify(heap)
        while heap and any(spare):
            # The jobs with the fewest nodes get one each, as often as nothing changes in where these come from.
            level, group = heap[0][0], list[int]()
            while heap and heap[0][0] == level:
                group.append(heappop(heap)[1])
            rounds, sources = heap[0][0] - level if heap else max(spare), list[tuple[int, int]]()
            for place in group:
                split, own = splits[place], owns[place]
                lost = [pool for pool, number in own.items() if split.get(pool, 0) < number]
                # Part of a gang is not moved from pool to pool: it has other nodes only once it has all of its own.
                if (pool := next((pool for pool in lost or pools_of[place] if spare[pool]), None)) is not None:
                    sources.append((place, pool))
                    rounds = min(rounds, members[place].most - level)
                    if lost:
                        rounds = min(rounds, own[pool] - split.get(pool, 0))
            drawing = Counter(pool for _, pool in sources)
            rounds = min([rounds, *(spare[pool] // number for pool, number in drawing.items())])
            if not rounds and sources:  # some pool has too few nodes for all
                for place, _ in sources[1:]:
                    heappush(heap, (level, place))
                del sources[1:]
                rounds = 1
            for place, pool in sources:
                spare[pool] -= rounds
                splits[place][pool] = splits[place].get(pool, 0) + rounds
                if level + rounds < members[place].most:
                    heappush(heap, (level + rounds, place))


@dataclass(frozen=True, kw_only=True)
class Equipartition(ResizingPolicy):
    """Equipartition: malleable jobs share the nodes equally; parameters as in ``ResizingPolicy``."""

    name: ClassVar[str] = "equipartition"
    in_run = _EquipartitionRun
