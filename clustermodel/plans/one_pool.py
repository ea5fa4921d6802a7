"""What is free over time on a machine whose nodes are all alike: a number of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from clustermodel.node_set import NodeSet, bisect_left, bisect_right, count
from clustermodel.plans.pool_plans import Group, RowPlan, Steps
from clustermodel.plans.pools import Pools, Split
from clustermodel.plans.profile import Profile
from clustermodel.ticks import NEVER

if TYPE_CHECKING:
    from clustermodel.plans.ousterhout import Occupant
    from clustermodel.plans.rows import RowReservation
    from clustermodel.policies.view import QueuedJob


class OnePool(RowPlan):
    """Free nodes over time where any job may have any nodes, in whatever way they lie, and no windows bar it from some."""

    def __init__(self, pools: Pools, *, may_overrun: bool) -> None:
        super().__init__(pools, may_overrun=may_overrun)
        self.profile = Profile(sum(pools.sizes))
        self._times, self._free = self.profile.times(), self.profile.free()
        self._freed = 0  # the last change of the clock

    def split_of(self, columns: NodeSet) -> Split:
        return ((0, count(columns)),)

    def count_idle(self) -> None:
        free = self._free[0]
        for group in self.groups:
            group.idle = free

    def split(self, start: int, length: int, job: QueuedJob, group: Group) -> Split | None:
        return ((0, job.nodes),) if self.profile.fits_at(start, job.nodes, length) else None

    def earliest(self, length: int, job: QueuedJob, group: Group, not_after: int = NEVER) -> tuple[int, Split]:
        start = self.profile.earliest(job.nodes, length, not_after)
        return (start, ((0, job.nodes),)) if start >= 0 else (-1, ())

    def has_room(self, step: int, job: QueuedJob, group: Group) -> bool:
        return self._free[step] >= job.nodes

    def may_improve(self, start: int, length: int, split: Split, job: QueuedJob, group: Group) -> bool:
        times, free, nodes = self._times, self._free, job.nodes
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
        return self._times[:], self._free[:]

    def take_steps(self, steps: Steps) -> None:
        times, free = steps
        self.profile.take_steps_of(Profile(self.profile.nodes, times[:], free[:]))
        self._times, self._free = self.profile.times(), self.profile.free()

    # As the plan of a row.

    def lay_out(
        self,
        now: int,
        gangs: Mapping[int, Occupant],
        ends: Mapping[int, int],
        held: Iterable[tuple[int, int]],
        reserved: Iterable[RowReservation],
    ) -> None:
        taken = [(ends[number], gang.nodes) for number, gang in gangs.items()]
        taken += [(end, columns.bit_count()) for end, columns in held]
        changes: list[tuple[int, int]] = []
        for start, length, ((_, nodes),), _ in reserved:
            changes += ((start, -nodes), (start + length, nodes))
        self.profile = profile = Profile.of_running(self.profile.nodes, now, taken, changes)
        self._times, self._free = profile.times(), profile.free()

    def split_of_gang(self, gang: Occupant, columns: int) -> Split:
        return ((0, gang.nodes),)

    def soonest(self, job: QueuedJob, length: int, not_after: int) -> tuple[int, Split]:
        nodes = job.nodes
        if not_after < NEVER - 1 and max(self._free[: bisect_right(self._times, not_after)], default=0) < nodes:
            return -1, ()  # most often too few nodes are free until then
        start = self.profile.earliest(nodes, length, not_after)
        return (start, ((0, nodes),)) if start >= 0 else (-1, ())

    def pull(self, start: int, length: int, split: Split, job: QueuedJob) -> tuple[int, Split]:
        nodes = job.nodes
        if max(self._free[: bisect_left(self._times, start)], default=0) < nodes:
            return start, split
        return self.profile.pull(start, length, nodes), split

    def least_free(self, start: int, length: int) -> list[int]:
        return [self.profile.least_free_from(start, length)]

    def admits(self, gang: Occupant, length: int, migrates: bool) -> bool:
        return self.profile.fits(gang.nodes, length)

    def bars(self, job: QueuedJob, split: Split) -> bool:
        return False  # there are no windows
