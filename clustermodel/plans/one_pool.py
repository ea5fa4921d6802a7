"""What is free over time on a machine whose nodes are all alike: a number of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from clustermodel.node_set import NodeSet, bisect_left, count
from clustermodel.plans.pool_plans import Group, RunningPlan, Steps
from clustermodel.plans.pools import Pools, Split
from clustermodel.plans.profile import Profile
from clustermodel.ticks import NEVER

if TYPE_CHECKING:
    from clustermodel.policies.view import QueuedJob


class OnePool(RunningPlan):
    """Free nodes over time where any job may have any nodes, in whatever way they lie, and no windows bar it from some."""

    are_alike: ClassVar[bool] = True

    def __init__(self, pools: Pools, *, may_overrun: bool) -> None:
        super().__init__(pools, may_overrun=may_overrun)
        self.profile = Profile(sum(pools.sizes))
        self._times = self.profile.times()
        self._freed = 0  # the last change of the clock

    def group_of(self, job: QueuedJob) -> Group:
        if not self.groups:
            self.groups.append(self._new_group(None, 0))
        return self.groups[0]

    def split_of(self, columns: NodeSet) -> Split:
        return ((0, count(columns)),)

    def count_idle(self) -> None:
        free = self.profile.free()[0]
        for group in self.groups:
            group.idle = free

    def free_at(self, time: int, group: Group) -> int:
        return self.profile.free_at(time)

    def split(self, start: int, length: int, job: QueuedJob, group: Group) -> Split | None:
        return ((0, job.nodes),) if self.profile.fits_at(start, job.nodes, length) else None

    def earliest(self, length: int, job: QueuedJob, group: Group, not_after: int = NEVER) -> tuple[int, Split]:
        start = self.profile.earliest(job.nodes, length, not_after)
        return (start, ((0, job.nodes),)) if start >= 0 else (-1, ())

    def has_room(self, step: int, job: QueuedJob, group: Group) -> bool:
        return self.profile.free()[step] >= job.nodes

    def may_improve(self, start: int, length: int, split: Split, job: QueuedJob, group: Group) -> bool:
        times, free, nodes = self._times, self.profile.free(), job.nodes
        first, begin = bisect_left(times, start), 0
        for k in range(first):
            if free[k] < nodes:
                if k > begin and times[begin] + length <= times[k]:
                    return True
                begin = k + 1
        return begin < first

    def note_freed(self, split: Split) -> None:
        self.clock += 1
        self._freed = self.clock
        self.freed = 1

    def freed_since(self, clock: int, group: Group) -> bool:
        return self._freed > clock

    def reserve(self, start: int, length: int, split: Split, *, beyond_capacity: bool = False) -> None:
        if beyond_capacity:
            self.profile.overbook(start, start + length, split[0][1])
        else:
            self.profile.reserve(start, start + length, split[0][1])

    def release(self, start: int, length: int, split: Split) -> None:
        self.profile.release(start, start + length, split[0][1])

    def advance(self, now: int) -> None:
        self.profile.advance(now)

    def forget(self, steps: int) -> None:
        raise AssertionError("the profile forgets them itself")

    def has(self, start: int, length: int, split: Split) -> bool:
        return self.profile.fits_at(start, split[0][1], length)

    def nodes_of(self, split: Split) -> int:
        return self._pools.all_nodes if split else 0

    def steps(self) -> Steps:
        return self._times[:], self.profile.free()[:]

    def take_steps(self, steps: Steps) -> None:
        times, free = steps
        self.profile.take_steps_of(Profile(self.profile.nodes, times[:], free[:]))
        self._times = self.profile.times()
