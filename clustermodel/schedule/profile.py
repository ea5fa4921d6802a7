"""The availability profile: how many nodes are free from now on, as far as the scheduler can tell.

A step function of time kept as two parallel lists, so that "when can this job start?" is one walk along it (001, section
3.2).  What is subtracted from it, and when, is the policy's business: the nodes of running jobs until their expected
ends, and the reservations of waiting ones.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final, Self

from clustermodel.errors import DecisionError

_NO_LIMIT: Final = -(2**62)
"""Fewer free nodes than any profile has."""


class Profile:
    """Free nodes over time, from the present to infinity; times and durations in ticks.

    Args:
        nodes: size of the machine, all free.
    """

    __slots__ = ("_free", "_times", "nodes")

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        # Nodes self._free[k] are free from self._times[k] until self._times[k + 1]; the last step never ends.
        self._times = [0]
        self._free = [nodes]

    def copy(self) -> Profile:
        """Return a profile of its own with the same steps, to try something on."""
        twin = Profile.__new__(Profile)
        twin.nodes = self.nodes
        twin._times, twin._free = self._times[:], self._free[:]
        return twin

    def steps(self) -> list[tuple[int, int]]:
        """Return the profile as (time, free nodes from then on)."""
        return list(zip(self._times, self._free, strict=True))

    @classmethod
    def of_running(cls, nodes: int, now: int, ends: Iterable[tuple[int, int]]) -> Self:
        """Return the profile of a machine on which jobs run: their (expected end, nodes), all ends after ``now``."""
        profile = cls(nodes)
        times, free = [now], [nodes]
        for end, size in sorted(ends):
            free[0] -= size
            if end == times[-1]:
                free[-1] += size
            else:
                times.append(end)
                free.append(size)
        for k in range(1, len(free)):
            free[k] += free[k - 1]
        profile._times, profile._free = times, free
        return profile

    @property
    def beginning(self) -> int:
        """Where the profile begins, ticks: everything before has been forgotten."""
        return self._times[0]

    def advance(self, now: int) -> None:
        """Forget the past: the profile begins at ``now``."""
        times = self._times
        if len(times) > 1 and times[1] <= now:
            past = bisect_right(times, now) - 1
            del times[:past]
            del self._free[:past]
        times[0] = now

    def free_at(self, time: int) -> int:
        """Return the number of free nodes at ``time``."""
        return self._free[bisect_right(self._times, time) - 1]

    def fits(self, nodes: int, duration: int) -> bool:
        """Tell whether ``nodes`` are free from the beginning of the profile for ``duration``."""
        times, free = self._times, self._free
        end = times[0] + duration
        for k, available in enumerate(free):
            if times[k] >= end:
                return True
            if available < nodes:
                return False
        return True

    def fits_at(self, start: int, nodes: int, duration: int) -> bool:
        """Tell whether ``nodes`` are free from ``start`` on for ``duration``."""
        times, free = self._times, self._free
        end = start + duration
        for k in range(bisect_right(times, start) - 1, len(times)):
            if times[k] >= end:
                return True
            if free[k] < nodes:
                return False
        return True

    def earliest(self, nodes: int, duration: int) -> int:
        """Return the first time from which ``nodes`` are free for ``duration``; ``nodes`` must fit the machine."""
        times = self._times
        start = -1
        for k, available in enumerate(self._free):
            if available < nodes:
                if start >= 0 and times[k] - start >= duration:
                    return start
                start = -1
            elif start < 0:
                start = times[k]
        return start

    def earliest_before(self, nodes: int, duration: int, limit: int) -> int:
        """Return the first time before ``limit`` from which ``nodes`` are free for ``duration``; ``limit`` if there is none."""
        times = self._times
        start = -1
        for k, available in enumerate(self._free):
            if available < nodes:
                if start >= 0 and times[k] - start >= duration:
                    return start
                if times[k] >= limit:
                    return limit
                start = -1
            elif start < 0:
                start = times[k]
                if start >= limit:
                    return limit
        return start if start >= 0 else limit

    def earlier(self, nodes: int, duration: int, reserved: int, not_before: int) -> int:
        """Return the first time in [``not_before``, ``reserved``] at which a job that holds a reservation could start.

        The job's own ``nodes`` are subtracted from the profile during [``reserved``, ``reserved`` + ``duration``).  It
        need not be taken out to be tested: a start before ``reserved`` reaches at most into the job's own room, so
        only the steps before ``reserved`` matter, and free nodes right up to it are as good as a long enough gap.
        """
        times, free = self._times, self._free
        start = -1
        for k in range(bisect_right(times, not_before) - 1, bisect_left(times, reserved)):
            if free[k] < nodes:
                if start >= 0 and times[k] - start >= duration:
                    return start
                start = -1
            elif start < 0:
                start = times[k] if times[k] > not_before else not_before
        return start if start >= 0 else reserved

    def free_until(self, nodes: int) -> int | None:
        """Return the first time at which fewer than ``nodes`` are free, ``None`` if they always are."""
        times, free = self._times, self._free
        return next((times[k] for k, available in enumerate(free) if available < nodes), None)

    def least_free(self, duration: int) -> int:
        """Return how many nodes are free from the beginning of the profile for ``duration``."""
        return min(self._free[: bisect_left(self._times, self._times[0] + duration, 1)])

    def mark(self) -> tuple[list[int], list[int]]:
        """Return the profile as it is, for :meth:`rewind`."""
        return self._times.copy(), self._free.copy()

    def rewind(self, mark: tuple[list[int], list[int]]) -> None:
        """Return to what :meth:`mark` saw; a mark serves once."""
        self._times, self._free = mark

    def free_just_before(self, time: int) -> int:
        """Return the number of free nodes in the step that ends at, or contains the moment before, ``time``."""
        return self._free[bisect_left(self._times, time) - 1]

    def reserve(self, start: int, end: int, nodes: int) -> None:
        """Subtract ``nodes`` during [``start``, ``end``).

        Raises:
            DecisionError: there are not as many free.
            ValueError: ``start`` lies in the past.
        """
        self._add(start, end, -nodes)

    def book(self, nodes: int, duration: int, latest: int) -> int:
        """Subtract ``nodes`` for ``duration`` from the earliest time on that has room, and return it.

        Nothing is subtracted, and -1 returned, if that time is after ``latest``.
        """
        times, free = self._times, self._free
        first = -1
        begin = end = 0
        for k, available in enumerate(free):
            if available < nodes:
                if first >= 0:
                    if times[k] >= end:
                        break
                    first = -1
            elif first < 0:
                begin = times[k]
                if begin > latest:
                    return -1
                end = begin + duration
                first = k
        beyond = bisect_left(times, end, first)
        if beyond == len(times) or times[beyond] != end:
            times.insert(beyond, end)
            free.insert(beyond, free[beyond - 1])
        for k in range(first, beyond):
            free[k] -= nodes
        if free[beyond] == free[beyond - 1]:
            del times[beyond], free[beyond]
        if first and free[first] == free[first - 1]:
            del times[first], free[first]
        return begin

    def overbook(self, start: int, end: int, nodes: int) -> None:
        """Subtract ``nodes`` during [``start``, ``end``), more than are free if need be.

        Raises:
            ValueError: ``start`` lies in the past.
        """
        self._add(start, end, -nodes, least=_NO_LIMIT)

    def release(self, start: int, end: int, nodes: int) -> None:
        """Add ``nodes`` during [``start``, ``end``): the end of a reservation, or of a job before its expected end.

        Raises:
            ValueError: ``start`` lies in the past.
        """
        self._add(start, end, nodes, least=_NO_LIMIT)

    def _add(self, start: int, end: int, nodes: int, *, least: int = 0) -> None:
        times, free = self._times, self._free
        # Make start and end step boundaries...
        first = bisect_left(times, start)
        if first == len(times) or times[first] != start:
            if not first:
                raise ValueError(f"profile: {start} lies in the past; it begins at {times[0]}")
            times.insert(first, start)
            free.insert(first, free[first - 1])
        beyond = bisect_left(times, end, first)
        if beyond == len(times) or times[beyond] != end:
            times.insert(beyond, end)
            free.insert(beyond, free[beyond - 1])
        for k in range(first, beyond):
            free[k] += nodes
            if free[k] < least:
                raise DecisionError(f"profile: {-nodes} nodes reserved at {times[k]} where only {free[k] - nodes} are free")
        # ... and remove them where there is no step any more.
        if free[beyond] == free[beyond - 1]:
            del times[beyond], free[beyond]
        if first and free[first] == free[first - 1]:
            del times[first], free[first]
