"""Transfers that share the bandwidth of the checkpoint store: arithmetic in whole numbers, no SimPy.

Each task that is being written or read gets the same bandwidth: its share of the store's, at most what its node has.  So all
tasks at the store progress alike, and one clock counts what each of them has moved.  A transfer ends when that clock has
advanced by the size of one of its tasks.

A bandwidth of so many bytes a second is as many millionths of a byte a tick; sizes are counted in those.  Whenever transfers
begin or end, what each task has moved since the last such time is rounded down to a millionth of a byte; a transfer ends at the
first tick at which all of it has been moved.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

PARTS_OF_A_BYTE: Final = 10**6
"""Sizes are counted in millionths of a byte."""


class Moving:
    """A transfer that is under way."""

    __slots__ = ("ends_at", "tasks")

    def __init__(self, tasks: int, ends_at: int) -> None:
        self.tasks = tasks
        """How many of its tasks are moved at a time."""
        self.ends_at = ends_at
        """What the clock of :class:`SharedBandwidth` shows when it ends."""


class SharedBandwidth:
    """Who moves how much by when.

    Args:
        total: bandwidth of the store, bytes a second; ``None`` is no limit.
        per_task: bandwidth of a node, bytes a second; ``None`` is no limit.  One of the two is given.
    """

    def __init__(self, total: int | None, per_task: int | None) -> None:
        self._total = total
        self._per_task = per_task
        self._clock = 0  # what each task at the store has moved so far
        self._now = 0  # when that was, ticks
        self._order: list[tuple[int, int, Moving]] = []  # a heap: the transfer that ends first comes first
        self._stopped: set[Moving] = set()  # of those in the heap
        self._begun = 0
        self.tasks = 0
        """How many tasks are being moved."""

    def alone(self, tasks: int) -> int:
        """Return the bandwidth of so many tasks if no others are at the store, bytes a second."""
        limits = [self._total, None if self._per_task is None else tasks * self._per_task]
        return min(limit for limit in limits if limit is not None)

    def ticks_alone(self, tasks: int, size: int) -> int:
        """Return how long ``size`` bytes take if no others are at the store, ticks, rounded up."""
        return -(-size * PARTS_OF_A_BYTE // self.alone(tasks))

    def begin(self, now: int, tasks: int, ticks: int) -> Moving:
        """Begin a transfer.

        Args:
            now: the present, ticks.
            tasks: how many of its tasks are moved at a time.
            ticks: how long it takes if no others are at the store.
        """
        self._advance(now)
        moving = Moving(tasks, self._clock + ticks * self.alone(tasks) // tasks)
        self.tasks += tasks
        self._begun += 1
        heappush(self._order, (moving.ends_at, self._begun, moving))
        return moving

    def stop(self, now: int, moving: Moving) -> None:
        """Stop a transfer that has not ended."""
        self._advance(now)
        self.tasks -= moving.tasks
        self._stopped.add(moving)

    def ended(self, now: int) -> list[Moving]:
        """Return the transfers that have ended by now, in the order in which they began among equals."""
        self._advance(now)
        ended = []
        while (first := self._first()) is not None and first.ends_at <= self._clock:
            heappop(self._order)
            self.tasks -= first.tasks
            ended.append(first)
        return ended

    def next_end(self) -> int | None:
        """Return when the next transfer ends if none begins or is stopped before, ticks; ``None`` if there is none."""
        first = self._first()
        if first is None:
            return None
        moved, per = self._rate()
        return self._now + max(-(-(first.ends_at - self._clock) * per // moved), 0)

    def _first(self) -> Moving | None:
        while self._order and self._order[0][2] in self._stopped:
            self._stopped.remove(heappop(self._order)[2])
        return self._order[0][2] if self._order else None

    def _rate(self) -> tuple[int, int]:
        """Return what a task moves in a tick, as a fraction."""
        if self._total is None or (self._per_task is not None and self._per_task * self.tasks <= self._total):
            assert self._per_task is not None
            return self._per_task, 1
        return self._total, self.tasks

    def _advance(self, now: int) -> None:
        if self.tasks and now > self._now:
            moved, per = self._rate()
            self._clock += (now - self._now) * moved // per
        self._now = now
