"""Nodes with several processors: which of them jobs of a shape get, and plans of the processors and the memory of each node.

A job may ask for so many processors on each of its nodes, or for at most so many nodes, and jobs share the memory of their
nodes.  What is free is an array: the processors of each node, and behind them, where memory is limited, its KiB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.errors import DecisionError
from clustermodel.machine.node_set import NodeSet, as_mask, bisect_left, bisect_right, from_mask, lowest
from clustermodel.plans.pool_plans import Chooser, Group, RunningPlan, Steps
from clustermodel.plans.pools import Pools, Split
from clustermodel.ticks import NEVER

if TYPE_CHECKING:
    from clustermodel.plans.free_memory import FreeMemory
    from clustermodel.policies.view import QueuedJob, View


class Layout(NamedTuple):
    """How the processors of a job must lie on nodes; 0 stands for any number."""

    per_node: int = 0
    """Processors on each of its nodes."""
    most_nodes: int = 0
    """Largest number of its nodes."""


ANY: Final = Layout()
_SPARE: Final = 64  # steps for which a new profile has room


class Nodes:
    """The nodes of a machine, with the processors and the memory (KiB, ``None``: no limit) of each."""

    def __init__(
        self, sizes: Sequence[int], memory: Sequence[int] | None, sets: Iterable[NodeSet] = (), *, consolidates: bool = False
    ) -> None:
        # Jobs take nodes first that the fewest of the sets have, which are sets of processors, as with pools.
        self.count: Final = len(sizes)
        self.first: Final = [0, *np.cumsum(np.array(sizes, dtype=np.int64)).tolist()]  # processors, and their number
        self._limits_memory, self._consolidates = memory is not None, consolidates
        self.total: Final[IntArray] = np.array([*sizes, *(memory or ())], dtype=np.int64)  # free on an empty machine
        pools = Pools(self.first[-1], sets)
        pool_of = [next(k for k, mask in enumerate(pools.masks) if mask >> first & 1) for first in self.first[:-1]]
        self._rank: IntArray = np.array(pool_of, dtype=np.int64)
        self._place: IntArray = np.arange(self.count)
        self._of: dict[NodeSet, IntArray] = {}

    def having(self, eligible: NodeSet | None) -> IntArray:
        """Return 1 for each node that a job may have, 0 for the others, shape ``(nodes,)``."""
        if eligible is None:
            return np.ones(self.count, dtype=np.int64)
        if eligible not in self._of:
            mask = as_mask(eligible)
            self._of[eligible] = np.array([mask >> first & 1 for first in self.first[:-1]], dtype=np.int64)
        return self._of[eligible]

    def free(self, idle: NodeSet, memory: IntArray | None) -> IntArray:
        """Return what is free: of the processors, those idle, and the free memory of each node."""
        change = np.zeros(self.first[-1] + 1, dtype=np.int64)
        change[list(idle[::2])] = 1
        change[list(idle[1::2])] = -1
        processors = np.add.reduceat(np.cumsum(change)[:-1], self.first[:-1])
        return processors if memory is None or not self._limits_memory else np.concatenate([processors, memory])

    def split(self, columns: NodeSet, memory: int) -> Split:
        """Return what a job with ``memory`` for each of its tasks, KiB, takes of each node."""
        parts: dict[int, int] = {}
        for low, high in zip(columns[::2], columns[1::2], strict=True):
            while low < high:
                node = bisect_right(self.first, low) - 1
                end = min(high, self.first[node + 1])
                parts[node] = parts.get(node, 0) + end - low
                low = end  # noqa: PLW2901
        return self._with_memory(sorted(parts.items()), memory)

    def _with_memory(self, parts: list[tuple[int, int]], memory: int) -> Split:
        if not self._limits_memory or not memory:
            return tuple(parts)
        return (*parts, *((self.count + node, number * memory) for node, number in parts))

    def processors(self, split: Split, idle: NodeSet) -> NodeSet:
        """Return the lowest idle processors of the nodes of a split."""
        idle_mask, chosen = as_mask(idle), 0
        for node, number in split:
            if node < self.count:
                low, high = self.first[node], self.first[node + 1]
                chosen |= lowest(idle_mask & ((1 << high) - (1 << low)), number)
        return from_mask(chosen)

    def choose_of(self, job: QueuedJob, processors: int, free: IntArray, sets: Iterable[NodeSet | None]) -> Split | None:
        """Return :meth:`choose` of the first of some sets of nodes where the job fits."""
        for eligible in sets:
            if (split := self.choose(job, processors, free, eligible)) is not None:
                return split
        return None

    def choose(self, job: QueuedJob, processors: int, free: IntArray, eligible: NodeSet | None) -> Split | None:
        """Return what a job takes of each node, by its layout, its memory and the nodes that it may have then.

        ``None`` if that is not free.
        """
        room = self.room(job, free, eligible)
        per_node, most_nodes = job.layout or ANY
        if per_node:
            parts = self._equal_parts(room, free, per_node, processors // per_node)
        elif int((np.sort(room)[-most_nodes:] if most_nodes else room).sum()) < processors:
            return None
        elif most_nodes or self._consolidates:
            parts = self._few_parts(room, processors)
        else:
            order = np.lexsort((self._place, self._rank))
            before = np.cumsum(room[order]) - room[order]
            parts = [
                (node, min(number, processors - used))
                for node, number, used in zip(order.tolist(), room[order].tolist(), before.tolist(), strict=True)
                if number and used < processors
            ]
        if parts is None or (most_nodes and len(parts) > most_nodes):  # processors on each node, on too many nodes
            return None
        return self._with_memory(sorted(parts), job.memory)

    def room(self, job: QueuedJob, free: IntArray, eligible: NodeSet | None) -> IntArray:
        """Return how many processors of each node a job could have, by its memory and the nodes that it may have."""
        room = free[: self.count]
        if eligible is not None:
            room = room * self.having(eligible)
        if self._limits_memory and job.memory:
            room = np.minimum(room, free[self.count :] // job.memory)
        return room

    def _equal_parts(self, room: IntArray, free: IntArray, per_node: int, nodes: int) -> list[tuple[int, int]] | None:
        places = np.flatnonzero(room >= per_node)
        if len(places) < nodes:
            return None
        fullest = free[places] if self._consolidates else np.zeros(len(places), dtype=np.int64)
        order = np.lexsort((places, fullest, self._rank[places]))
        return [(node, per_node) for node in places[order[:nodes]].tolist()]

    def _few_parts(self, room: IntArray, processors: int) -> list[tuple[int, int]]:
        """Return parts on as few nodes as possible: the emptiest first, at last the fullest that has enough for the rest."""
        parts: list[tuple[int, int]] = []
        order = np.lexsort((self._place, self._rank, -room)).tolist()
        for k, node in enumerate(order):
            number = int(room[node])
            if number >= processors:
                enough = [other for other in order[k:] if room[other] >= processors]
                parts.append((min(enough, key=lambda other: (room[other], self._rank[other], other)), processors))
                break
            parts.append((node, number))
            processors -= number
        return parts


class IdleProcessors:
    """The idle processors of one instant by node, which are asked for when the first of them is taken."""

    def __init__(
        self, pools: Pools, nodes: Nodes, idle: Callable[[], NodeSet], memory: Callable[[], FreeMemory | None]
    ) -> None:
        self._pools, self._nodes, self._idle_nodes, self._memory = pools, nodes, idle, memory
        self._idle: NodeSet | None = None
        self._free: IntArray | None = None

    def split(self, job: QueuedJob, closed: set[int]) -> Split | None:
        """Return what a job can have of nodes now, but for closed pools; ``None`` if that is too little."""
        return self._nodes.choose_of(job, job.nodes, self._free_now(), self._pools.open_sets(job, closed))

    def _free_now(self) -> IntArray:
        if self._free is None:
            memory = self._memory()
            self._free = self._nodes.free(self._idle_nodes(), None if memory is None else memory.by_node())
        return self._free

    def may_take(self, job: QueuedJob, split: Split) -> bool:
        """Return whether so much is free of nodes, and a job may have these."""
        free, having = self._free_now(), self._nodes.having(job.eligible)
        return all(free[place] >= number and (place >= len(having) or having[place] > 0) for place, number in split)

    def take_split(self, split: Split, preferred: NodeSet | None = None) -> NodeSet:
        """Return the lowest idle processors of the nodes of a split, which are not idle any more, or ``preferred`` ones."""
        if self._idle is None:
            self._idle = self._idle_nodes()
        chosen = self._nodes.processors(split, self._idle)
        if preferred is not None and not as_mask(preferred) & ~as_mask(self._idle):
            parts = tuple([part for part in split if part[0] < self._nodes.count])
            chosen = preferred if self._nodes.split(preferred, 0) == parts else chosen
        self._idle = from_mask(as_mask(self._idle) & ~as_mask(chosen))
        if self._free is not None:
            for place, number in split:
                self._free[place] -= number
        return chosen


class NodePlan(RunningPlan):
    """What is free of each node over time."""

    of_numbers: ClassVar[bool] = False

    # Row k of a matrix is what is free from self._times[k] on; rows behind the last step are spare ones.

    def __init__(self, nodes: Nodes, pools: Pools, *, may_overrun: bool) -> None:
        super().__init__(pools, may_overrun=may_overrun)
        self._nodes = nodes
        self._free: IntArray = np.tile(nodes.total, (_SPARE, 1))

    def split_of(self, columns: NodeSet, memory: int = 0) -> Split:
        return self._nodes.split(columns, memory)

    def count_idle(self) -> None:
        processors = self._free[0, : self._nodes.count]
        for group in self.groups:
            group.idle = int(processors.sum())

    def idle(self) -> int:
        return int(self._free[0, : self._nodes.count].sum())

    def chooser(self, view: View) -> Chooser:
        return IdleProcessors(self._pools, self._nodes, view.idle_or_ended, view.free_memory)

    def most(self, length: int, job: QueuedJob, group: Group) -> int:
        now, times = self._times[0], self._times
        free = self._free[: bisect_left(times, now + length, 1)].min(axis=0)
        parts = group.parts or (group,)
        return max([int(self._nodes.room(job, free, self._eligible(job, part, now, length)).sum()) for part in parts])

    def _eligible(self, job: QueuedJob, group: Group, start: int, length: int) -> NodeSet | None:
        """Return which nodes windows let a job of a group have."""
        return from_mask(group.allowed & ~self.barred(job, group, start, length)) if group.windows else group.nodes

    def free_at(self, time: int, group: Group) -> int:
        return int(self._free[bisect_right(self._times, time) - 1, : self._nodes.count].sum())

    def split(self, start: int, length: int, job: QueuedJob, group: Group) -> Split | None:
        if group.parts:
            return self.split_in_parts(start, length, job, group)
        first = bisect_right(self._times, start) - 1
        rows = self._free[first : bisect_left(self._times, start + length, first + 1)]
        if int(rows[:, : self._nodes.count].sum(axis=1).min()) < job.nodes:
            return None
        return self._nodes.choose(job, job.nodes, rows.min(axis=0), self._eligible(job, group, start, length))

    def earliest(self, length: int, job: QueuedJob, group: Group, not_after: int = NEVER) -> tuple[int, Split]:
        if group.parts:
            return self.earliest_in_parts(length, job, group, not_after)
        if group.windows:
            return self.around_windows(length, job, group, not_after)
        times, idle = self._times, self._processors(len(self._times))
        first = 0
        while first < len(times) and times[first] <= not_after:
            beyond = bisect_left(times, times[first] + length, first + 1)
            # After the last step with too few processors, of however many nodes, the next window can begin.
            last = beyond - 1
            while last >= first and idle[last] >= job.nodes:
                last -= 1
            if last < first:
                free = self._free[first:beyond].min(axis=0)
                if (split := self._nodes.choose(job, job.nodes, free, group.nodes)) is not None:
                    return times[first], split
                last = first
            first = last + 1
        return -1, ()

    def reserve(self, start: int, length: int, split: Split, *, beyond_capacity: bool = False) -> None:
        left = self._add(start, start + length, split, -1)
        if not beyond_capacity and left < 0:
            raise DecisionError(f"plan: nodes reserved at {start} are not free")

    def release(self, start: int, length: int, split: Split) -> None:
        self._add(start, start + length, split, 1)

    def forget(self, steps: int) -> None:
        left = len(self._times)
        self._free[:left] = self._free[steps : steps + left].copy()

    def has(self, start: int, length: int, split: Split) -> bool:
        first = bisect_right(self._times, start) - 1
        places, numbers = _arrays(split)
        rows = self._free[first : bisect_left(self._times, start + length, first + 1), places]
        return bool((rows >= numbers).all())

    def nodes_of(self, split: Split) -> int:
        mask, first = 0, self._nodes.first
        for node, _ in split:
            if node < self._nodes.count:
                mask |= (1 << first[node + 1]) - (1 << first[node])
        return mask

    def steps(self) -> Steps:
        return self._times[:], self._free.copy()

    def take_steps(self, steps: Steps) -> None:
        times, free = steps
        self._times, self._free = times[:], free.copy()

    def _processors(self, steps: int) -> list[int]:
        """Return how many are free in each of the first steps."""
        numbers: list[int] = self._free[:steps, : self._nodes.count].sum(axis=1).tolist()
        return numbers

    def _add(self, start: int, end: int, split: Split, sign: int) -> int:
        """Add to what is free, and return the least of that."""
        first = self._step(start)
        beyond = self._step(end)
        places, numbers = _arrays(split)
        self._free[first:beyond, places] += sign * numbers
        return int(self._free[first:beyond, places].min())

    def _step(self, time: int) -> int:
        """Return which step begins at a time, after making one begin there."""
        k, steps = bisect_right(self._times, time), len(self._times)
        if self._times[k - 1] == time:
            return k - 1
        if steps == len(self._free):
            self._free = np.concatenate([self._free, np.zeros_like(self._free)])
        self._free[k + 1 : steps + 1] = self._free[k:steps].copy()
        self._free[k] = self._free[k - 1]
        self._times.insert(k, time)
        return k


@lru_cache(maxsize=4096)
def _arrays(split: Split) -> tuple[IntArray, IntArray]:
    """Return the places and the numbers of a split."""
    pairs = np.array(split, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]
