"""The availability profile: how many nodes are free from now on, as far as the scheduler can tell.

The profile is a step function of time in two parallel lists, so that "when can this job start?" is one walk along it (Talby &
Feitelson 1999, long version, section 3.2).  A policy subtracts the nodes of running jobs until their expected ends and the
reservations of waiting jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Self

from clustermodel.errors import DecisionError
from clustermodel.schedule.bisection import bisect_left, bisect_right
from clustermodel.ticks import NEVER

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
        """Return an independent profile with the same steps, for trials."""
        other = Profile(self.nodes)
        other._times, other._free = self._times[:], self._free[:]
        return other

    def take_steps_of(self, other: Profile) -> None:
        """Become equal to a trial, which is not used any longer."""
        self._times, self._free = other._times, other._free

    def times(self) -> Sequence[int]:
        """Return when the steps begin, ascending; not to be changed."""
        return self._times

    def steps(self) -> list[tuple[int, int]]:
        """Return the profile as (time, free nodes from then on)."""
        return list(zip(self._times, self._free, strict=True))

    @classmethod
    def of_running(cls, nodes: int, now: int, ends: Iterable[tuple[int, int]]) -> Self:
        """Return the profile of a machine with these running jobs, (expected end, nodes) each; all ends are after ``now``."""
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
        """The time at which the profile begins, ticks."""
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
        """Return whether ``nodes`` are free from the beginning of the profile for ``duration``."""
        end = self._times[0] + duration
        for time, available in zip(self._times, self._free, strict=True):
            if time >= end:
                return True
            if available < nodes:
                return False
        return True

    def fits_at(self, start: int, nodes: int, duration: int) -> bool:
        """Return whether ``nodes`` are free from ``start`` on for ``duration``."""
        times, free = self._times, self._free
        end = start + duration
        for k in range(bisect_right(times, start) - 1, len(times)):
            if times[k] >= end:
                return True
            if free[k] < nodes:
                return False
        return True

    def earliest(self, nodes: int, duration: int, not_after: int = NEVER) -> int:
        """Return the first time from which ``nodes`` are free for ``duration``; -1 if that time is after ``not_after``.

        The machine must have that many nodes.
        """
        times = self._times
        start = -1
        for k, available in enumerate(self._free):
            if available < nodes:
                if start >= 0 and times[k] - start >= duration:
                    return start
                start = -1
            elif start < 0:
                start = times[k]
                if start > not_after:
                    return -1
        return start

    def earlier(self, nodes: int, duration: int, reserved: int, not_before: int) -> int:
        """Return the first time in [``not_before``, ``reserved``] at which a job that holds a reservation could start.

        The job's own ``nodes`` are subtracted from the profile during [``reserved``, ``reserved`` + ``duration``).  The test
        does not need to add them back: a start before ``reserved`` reaches at most into the job's own reservation.  So only
        the steps before ``reserved`` matter, and nodes that stay free right up to it are as good as a long enough gap.
        """
        times, free = self._times, self._free
        beyond = bisect_left(times, reserved)
        first = bisect_right(times, not_before) - 1 if not_before > times[0] else 0
        while True:
            for k in range(first, beyond):
                if free[k] >= nodes:
                    break
            else:
                return reserved
            # A window begins at k.  Examined from its end, it shows the last step with too few nodes first.
            start = times[k] if times[k] > not_before else not_before
            last = min(bisect_left(times, start + duration, k), beyond) - 1
            while last > k and free[last] >= nodes:
                last -= 1
            if last == k:
                return start
            first = last + 1

    def free_until(self, nodes: int) -> int | None:
        """Return the first time at which fewer than ``nodes`` are free, ``None`` if they always are."""
        times, free = self._times, self._free
        return next((times[k] for k, available in enumerate(free) if available < nodes), None)

    def least_free(self, duration: int) -> int:
        """Return how many nodes are free throughout ``duration`` from the beginning of the profile."""
        return min(self._free[: bisect_left(self._times, self._times[0] + duration, 1)])

    def free_just_before(self, time: int) -> int:
        """Return the number of free nodes in the step that ends at, or contains the moment before, ``time``."""
        return self._free[bisect_left(self._times, time) - 1]

    def reserve(self, start: int, end: int, nodes: int) -> None:
        """Subtract ``nodes`` during [``start``, ``end``), which is not empty.

        Raises:
            DecisionError: there are not as many free; the profile cannot be used any longer.
            ValueError: ``start`` lies in the past.
        """
        self._add(start, end, -nodes)

    def book(self, nodes: int, duration: int, not_after: int = NEVER, not_before: int = 0) -> int:
        """Subtract ``nodes`` for ``duration`` from the earliest possible time on and return that time.

        Subtract nothing and return -1 if that time is after ``not_after``: :meth:`earliest` and :meth:`reserve` in one walk.
        The machine must have that many nodes.  The caller knows that the time is not before ``not_before``, where the walk
        begins.
        """
        times, free = self._times, self._free
        first = -1
        begin = end = 0
        for k in range(bisect_left(times, not_before), len(times)):
            if free[k] < nodes:
                if first >= 0:
                    if times[k] >= end:
                        break
                    first = -1
            elif first < 0:
                begin = times[k]
                if begin > not_after:
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
        """Subtract ``nodes`` during [``start``, ``end``), which is not empty, even more than are free.

        Raises:
            ValueError: ``start`` lies in the past.
        """
        self._add(start, end, -nodes, least=_NO_LIMIT)

    def release(self, start: int, end: int, nodes: int) -> None:
        """Add ``nodes`` during [``start``, ``end``), which is not empty: a reservation or a job ends before it was expected to.

        Raises:
            ValueError: ``start`` lies in the past.
        """
        self._add(start, end, nodes, least=_NO_LIMIT)

    def move_up(self, start: int, new_start: int, duration: int, nodes: int) -> None:
        """Move a reservation to an earlier start.

        Raises:
            DecisionError: too few nodes are free then; the profile cannot be used any longer.
        """
        new_end, end = new_start + duration, start + duration
        self.reserve(new_start, min(new_end, start), nodes)  # only the difference changes: the two may overlap
        self.release(max(new_end, start), end, nodes)

    def _add(self, start: int, end: int, nodes: int, *, least: int = 0) -> None:
        times, free = self._times, self._free
        # Make start and end step boundaries...
        first = 0
        if start != times[0]:
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
            free[k] = left = free[k] + nodes
            if left < least:
                raise DecisionError(f"profile: {-nodes} nodes reserved at {times[k]} where only {left - nodes} are free")
        # ... and remove them where there is no step any more.
        if free[beyond] == free[beyond - 1]:
            del times[beyond], free[beyond]
        if first and free[first] == free[first - 1]:
            del times[first], free[first]
