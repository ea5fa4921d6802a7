"""Nodes of pools at one instant, and over time: plans that go on from one scheduling cycle to the next, without windows."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from clustermodel.errors import DecisionError
from clustermodel.schedule.node_set import NodeSet, as_mask, bisect_left, bisect_right, from_mask, lowest
from clustermodel.schedule.pools import Pools, Split
from clustermodel.ticks import NEVER

if TYPE_CHECKING:
    from clustermodel.policies.view import Outage, RunningJob


class IdlePools:
    """The idle nodes of one instant by pool, which are asked for when the first of them is taken."""

    def __init__(self, pools: Pools, idle_nodes: Callable[[], NodeSet]) -> None:
        self._pools, self._idle_nodes = pools, idle_nodes
        self._counts: list[int] = []
        self._idle = 0

    def counts(self) -> list[int]:
        """Return how many nodes of each pool are idle; not to be changed."""
        if not self._counts:
            self._idle = as_mask(self._idle_nodes())
            self._counts = [(self._idle & mask).bit_count() for mask in self._pools.masks]
        return self._counts

    def has(self, nodes: int, pools: Iterable[int]) -> bool:
        """Return whether so many nodes of some pools are idle."""
        counts = self.counts()
        return sum([counts[pool] for pool in pools]) >= nodes

    def take(self, nodes: int, pools: Iterable[int]) -> NodeSet:
        """Return idle nodes of some pools, those of the first pools first, which are not idle any more."""
        return self.take_split(split_of(self.counts(), nodes, pools) or ())

    def take_nodes(self, nodes: NodeSet) -> bool:
        """Take particular nodes; return ``False``, with nothing changed, unless all of them are idle."""
        counts, mask = self.counts(), as_mask(nodes)
        if mask & ~self._idle:
            return False
        self._idle &= ~mask
        for pool, number in self._pools.counts(nodes):
            counts[pool] -= number
        return True

    def take_split(self, split: Split) -> NodeSet:
        """Return the lowest idle nodes of pools, which are not idle any more."""
        counts, chosen = self.counts(), 0
        for pool, nodes in split:
            chosen |= lowest(self._idle & self._pools.masks[pool], nodes)
            counts[pool] -= nodes
        self._idle &= ~chosen
        return from_mask(chosen)


def split_of(counts: Sequence[int], nodes: int, pools: Iterable[int]) -> Split | None:
    """Return from which pools a job can have its nodes, where so many of each are free; ``None`` if they are too few."""
    parts: list[tuple[int, int]] = []
    for pool in pools:
        if (free := counts[pool]) >= nodes:
            parts.append((pool, nodes))
            return tuple(parts)
        if free > 0:
            parts.append((pool, free))
            nodes -= free
    return None


class PoolSteps:
    """Free nodes over time in each pool, from the present to infinity; times and durations in ticks."""

    # All pools have the same steps: row[k] nodes of a pool are free from self._times[k] on.  Jobs of several pools have a row
    # with the sum of theirs, which tells at once where their nodes are too few.

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._times = [0]
        self._rows = [[size] for size in pools.sizes]
        self._sums: dict[tuple[int, ...], list[int]] = {}
        self._changing: list[list[list[int]]] = [[row] for row in self._rows]  # by pool, the rows that count its nodes
        self._every = self._rows[:]
        self.clock = 0  # counts changes by which jobs can start earlier
        self._freed = [0 for _ in self._rows]  # by pool, the last of these

    def copy(self) -> PoolSteps:
        other = PoolSteps(self._pools)
        other.take_steps_of(self)
        return other

    def take_steps_of(self, other: PoolSteps) -> None:
        """Become equal to another one."""
        self._times = other._times[:]
        for row, of_other in zip(self._rows, other._rows, strict=True):
            row[:] = of_other
        for pools, total in self._sums.items():
            total[:] = other._sum(pools)

    def times(self) -> Sequence[int]:
        """Return when the steps begin, ascending; not to be changed."""
        return self._times

    def advance(self, now: int) -> None:
        """Forget the past: the profiles begin at ``now``."""
        times = self._times
        if len(times) > 1 and times[1] <= now:
            past = bisect_right(times, now) - 1
            del times[:past]
            for row in self._every:
                del row[:past]
        times[0] = now

    def idle(self, pools: tuple[int, ...]) -> int:
        """Return how many nodes of some pools are free now."""
        return self._sum(pools)[0]

    def _sum(self, pools: tuple[int, ...]) -> list[int]:
        if (total := self._sums.get(pools)) is None:
            if len(pools) == 1:
                total = self._rows[pools[0]]
            else:
                total = [sum(free) for free in zip(*(self._rows[pool] for pool in pools), strict=True)]
                self._every.append(total)
                for pool in pools:
                    self._changing[pool].append(total)
            self._sums[pools] = total
        return total

    def split(self, start: int, length: int, nodes: int, pools: tuple[int, ...]) -> Split | None:
        """Return from which pools a job can have its nodes from ``start`` on for ``length``; ``None`` if they are too few."""
        first = bisect_right(self._times, start) - 1
        return self._split(first, bisect_left(self._times, start + length, first + 1), nodes, pools)

    def _split(self, first: int, beyond: int, nodes: int, pools: tuple[int, ...]) -> Split | None:
        if min(self._sum(pools)[first:beyond]) < nodes:
            return None
        if beyond == first + 1:  # of one step
            return split_of([row[first] for row in self._rows], nodes, pools)
        return split_of([min(row[first:beyond]) for row in self._rows], nodes, pools)

    def earliest(self, length: int, nodes: int, pools: tuple[int, ...], not_after: int = NEVER) -> tuple[int, Split]:
        """Return the first time from which a job can have its nodes for ``length``, and from which pools.

        The time is -1 if it is after ``not_after``, or the pools have too few nodes.
        """
        times, total = self._times, self._sum(pools)
        k = 0
        while k < len(times):
            if total[k] < nodes:
                k += 1
                continue
            if times[k] > not_after:
                break
            beyond = bisect_left(times, times[k] + length, k + 1)
            last = beyond - 1
            while total[last] >= nodes and last > k:
                last -= 1
            if last > k:  # too few at the last of these steps, and so in all windows that begin before its end
                k = last + 1
            elif (split := self._split(k, beyond, nodes, pools)) is not None:
                return times[k], split
            else:
                k += 1
        return -1, ()

    def may_improve(self, start: int, length: int, split: Split, nodes: int, pools: tuple[int, ...]) -> bool:
        """Return whether a reservation could perhaps start earlier, or have nodes of pools that are preferred to its own."""
        times = self._times
        if split[-1][0] != pools[0]:
            first = bisect_right(times, start) - 1
            beyond = bisect_left(times, start + length, first + 1)
            for pool in pools:
                if pool == split[-1][0]:
                    break
                if min(self._rows[pool][first:beyond]) > 0:
                    return True
        total, k, first = self._sum(pools), 0, bisect_left(times, start)
        while k < first:
            if total[k] < nodes:
                k += 1
                continue
            last = min(bisect_left(times, times[k] + length, k), first) - 1
            while last > k and total[last] >= nodes:
                last -= 1
            if last == k:
                return True
            k = last + 1
        return False

    def note_freed(self, split: Split) -> None:
        """Note that a job can perhaps start earlier than it could before, on nodes of these pools."""
        self.clock += 1
        for pool, _ in split:
            self._freed[pool] = self.clock

    def freed_since(self, clock: int, pools: tuple[int, ...]) -> bool:
        return any(self._freed[pool] > clock for pool in pools)

    def reserve(self, start: int, length: int, split: Split, *, beyond_capacity: bool = False) -> None:
        """Subtract nodes for ``length`` from ``start`` on; a DecisionError if there are not as many free."""
        first, beyond = self._add(start, start + length, split, -1)
        if not beyond_capacity:
            for pool, nodes in split:
                if (least := min(self._rows[pool][first:beyond])) < 0:
                    raise DecisionError(f"profile: {nodes} nodes reserved at {start} where only {least + nodes} are free")
        self._join(first, beyond)

    def release(self, start: int, length: int, split: Split) -> None:
        """Add them again."""
        self._join(*self._add(start, start + length, split, 1))

    def _add(self, start: int, end: int, split: Split, sign: int) -> tuple[int, int]:
        first = self._step(start, 0)
        beyond = self._step(end, first)
        for pool, nodes in split:
            more = sign * nodes
            for row in self._changing[pool]:
                for k in range(first, beyond):
                    row[k] += more
        return first, beyond

    def _step(self, time: int, low: int) -> int:
        """Return the step that begins at ``time``, which is made if there is none."""
        times = self._times
        k = bisect_left(times, time, low)
        if k == len(times) or times[k] != time:
            times.insert(k, time)
            for row in self._every:
                row.insert(k, row[k - 1])
        return k

    def _join(self, *steps: int) -> None:
        """Remove steps that do not differ from those before them, given in ascending order."""
        for k in reversed(steps):
            if k and all(row[k] == row[k - 1] for row in self._rows):
                del self._times[k]
                for row in self._every:
                    del row[k]


class RunningPools(PoolSteps):
    """A profile from which each running job, and each node that is down, is subtracted until its expected end."""

    # As RunningProfile, whose nodes are one pool.

    def __init__(self, pools: Pools) -> None:
        super().__init__(pools)
        self._held: dict[int, tuple[int, int, Split]] = {}  # job id -> assumed end, expected end, nodes by pool
        self._ends: list[tuple[int, int]] = []  # heap of (assumed end, job id); an entry without a job is stale

    def catch_up(self, ended: Iterable[RunningJob], now: int, failed: Iterable[Outage], repaired: Iterable[Outage]) -> bool:
        """Forget the past, take out gangs and outages that have ended, enter new outages; return whether one ended early."""
        self.advance(now)
        early = False
        for number in (*(gang.job.id for gang in ended), *(outage.id for outage in repaired)):
            end, _, split = self._held.pop(number)
            if end > now:
                self.release(now, end - now, split)
                self.note_freed(split)
                early = True
        for outage in failed:  # where its node was reserved, fewer than none are free until waiting jobs are placed again
            self.start(
                outage.id, self._pools.counts((outage.node, outage.node + 1)), now, outage.expected_end - now, fits=False
            )
        return early

    def start(self, number: int, split: Split, now: int, length: int, *, fits: bool = True) -> None:
        """Subtract a job that starts now, or an outage, which may leave fewer than no nodes."""
        self.reserve(now, length, split, beyond_capacity=not fits)
        self.note_start(number, split, now + length)

    def note_start(self, number: int, split: Split, end: int) -> None:
        """Note a job that starts in its reservation."""
        self._held[number] = end, end, split
        heappush(self._ends, (end, number))

    def overrunning(self, now: int, running: Container[int]) -> list[int]:
        """Return the jobs of ``running``, and the outages, whose assumed ends have passed, for :meth:`extend`."""
        late: dict[int, None] = {}
        while self._ends and self._ends[0][0] <= now:
            end, number = heappop(self._ends)
            as_expected = end == now and number >= 0 and number not in running
            if not as_expected and number in self._held and self._held[number][0] == end:
                late[number] = None
        return list(late)

    def extend(self, late: Iterable[int], now: int, delay_of: Callable[[int, int], int]) -> None:
        """Subtract the ``late`` jobs for longer, each as ``delay_of`` its id and how late it is already says."""
        for number in late:
            _, expected_end, split = self._held[number]
            end = expected_end + delay_of(number, now - expected_end)
            if end > now:  # not of a job that has ended now, just as corrected
                self.reserve(now, end - now, split)
            self._held[number] = end, expected_end, split
            heappush(self._ends, (end, number))
