"""The availability profile: how many nodes are free from now on, as far as the scheduler can tell.

It is a step function of time in two parallel lists, so that "when can this job start?" is one walk along it (Talby &
Feitelson 1999, long version, section 3.2).  A plan of equal nodes (:mod:`clustermodel.plans.one_pool`) has one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Self

from clustermodel.errors import DecisionError
from clustermodel.machine.node_set import bisect_left, bisect_right
from clustermodel.ticks import NEVER, TICKS_PER_SECOND

if TYPE_CHECKING:
    from mypy_extensions import i64  # an index is an integer of the machine, where this is compiled

SHORTEST_EXTENSION: Final = TICKS_PER_SECOND  # how long a job that outlives its estimate is assumed to run on, at least


Request = tuple[int, int, int]  # nodes, for so many ticks, to start not after this time


class Profile:
    """Free nodes over time, from the present to infinity, at first all of the machine; times and durations in ticks."""

    __slots__ = ("_free", "_times", "nodes")

    def __init__(self, nodes: int, times: list[int] | None = None, free: list[int] | None = None) -> None:
        self.nodes = nodes
        # Nodes self._free[k] are free from self._times[k] until self._times[k + 1]; the last step never ends.
        self._times = times or [0]
        self._free = free or [nodes]

    def copy(self) -> Profile:
        return Profile(self.nodes, self._times.copy(), self._free.copy())

    def take_steps_of(self, other: Profile) -> None:
        """Take over the steps of a trial copy, which must not be used afterwards."""
        self._times, self._free = other._times, other._free

    def times(self) -> list[int]:
        """Return when the steps begin, ascending; not to be changed."""
        return self._times

    def free(self) -> list[int]:
        """Return how many nodes are free in each step; not to be changed."""
        return self._free

    def steps(self) -> list[tuple[int, int]]:
        return list(zip(self._times, self._free, strict=True))

    @classmethod
    def of_running(
        cls, nodes: int, now: int, ends: Iterable[tuple[int, int]], reserved: Iterable[tuple[int, int]] = ()
    ) -> Self:
        """Return the profile of a machine with running jobs, (expected end, nodes) each; all ends are after ``now``.

        Reservations, even of more nodes than are free, are pairs of the same kind: (start, minus nodes) and (end, nodes).
        """
        profile = cls(nodes)
        changes = list(ends)
        available = nodes - sum([size for _, size in changes])
        changes += reserved
        changes.sort()
        steps = {now: available}
        for time, change in changes:
            available += change
            steps[time] = available
        profile._times, profile._free = list(steps), list(steps.values())
        return profile

    def advance(self, now: int) -> None:
        """Drop the steps before ``now``."""
        times = self._times
        if len(times) > 1 and times[1] <= now:
            past = bisect_right(times, now) - 1
            del times[:past]
            del self._free[:past]
        times[0] = now

    def free_at(self, time: int) -> int:
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
        times, free, end = self._times, self._free, start + duration
        for k in range(bisect_right(times, start) - 1, len(times)):
            if times[k] >= end:
                return True
            if free[k] < nodes:
                return False
        return True

    def earliest(self, nodes: int, duration: int, not_after: int = NEVER) -> int:
        """Return the first time from which ``nodes`` are free for ``duration``; -1 if it is after ``not_after``."""
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
        """Return the first time in [``not_before``, ``reserved``] at which a job that holds a reservation could start."""
        times, free = self._times, self._free
        beyond = bisect_left(times, reserved)
        k: i64 = bisect_right(times, not_before) - 1 if not_before > times[0] else 0
        while True:
            while k < beyond and free[k] < nodes:
                k += 1
            if k >= beyond:
                return reserved
            # A window begins at k.  Examined from its end, it shows the last step with too few nodes first.
            start = times[k] if times[k] > not_before else not_before
            last = min(bisect_left(times, start + duration, k), beyond) - 1
            while last > k and free[last] >= nodes:
                last -= 1
            if last <= k:
                return start
            k = last + 1

    def free_until(self, nodes: int) -> int | None:
        """Return the first time at which fewer than ``nodes`` are free, ``None`` if they always are."""
        times, free = self._times, self._free
        return next((times[k] for k, available in enumerate(free) if available < nodes), None)

    def least_free(self, duration: int) -> int:
        """Return how many nodes are free throughout ``duration`` from the beginning of the profile."""
        return min(self._free[: bisect_left(self._times, self._times[0] + duration, 1)])

    def least_free_from(self, start: int, duration: int) -> int:
        """Return how many nodes are free throughout ``duration`` from ``start`` on."""
        first = bisect_right(self._times, start) - 1
        return min(self._free[first : bisect_left(self._times, start + duration, first + 1)])

    def reserve(self, start: int, end: int, nodes: int) -> None:
        """Subtract ``nodes`` during [``start``, ``end``), which is not empty.

        Raises:
            DecisionError: there are not as many free.
            ValueError: ``start`` lies in the past.
        """
        times, free = self._times, self._free
        first: i64 = 0 if start == times[0] else _boundary(times, free, start)
        beyond = bisect_left(times, end, first)
        for k in range(first, beyond):
            if free[k] < nodes:
                raise DecisionError(f"profile: {nodes} nodes reserved at {times[k]} where only {free[k]} are free")
        _change(times, free, first, beyond, end, -nodes)

    def book(self, nodes: int, duration: int, not_after: int = NEVER, not_before: int = 0) -> int:
        """:meth:`earliest`, from ``not_before`` on, and :meth:`~Profile.reserve` in one walk."""
        if self._times[0] < not_before <= not_after and self.fits_at(not_before, nodes, duration):
            self.reserve(not_before, not_before + duration, nodes)
            return not_before
        starts = self.book_all(((nodes, duration, not_after),), not_before + duration - 1)
        return starts[0] if starts else -1

    def book_all(self, requests: Iterable[Request], since: int = 0) -> list[int]:
        """:meth:`book` one request after the other, until one would start too late; return the starts.

        No job can start so early that it ends by ``since``.
        """
        times, free = self._times, self._free
        starts: list[int] = []
        first: i64 = 0
        least, shortest = self.nodes, NEVER
        for nodes, duration, not_after in requests:
            # A job that needs as many nodes for as long as the one before cannot start earlier than that.
            if nodes < least or duration < shortest:
                not_before = since - duration
                first = 0 if not_before < times[0] else bisect_right(times, not_before)
            least, shortest = nodes, duration
            while True:
                while free[first] < nodes:
                    first += 1
                begin = times[first]
                if begin > not_after:
                    return starts
                # A window begins here.  Examined from its end, it shows the last step with too few nodes first.
                end = begin + duration
                beyond = bisect_left(times, end, first + 1)
                last = beyond - 1
                while last > first and free[last] >= nodes:
                    last -= 1
                if last == first:
                    break
                first = last + 1
            _change(times, free, first, beyond, end, -nodes)
            starts.append(begin)
        return starts

    def pull(self, start: int, duration: int, nodes: int) -> int:
        """Move a reservation to its earliest start possible with the others in place, and return that: :meth:`earlier`."""
        times, free = self._times, self._free
        beyond = bisect_left(times, start)
        begins = beyond
        if beyond and free[beyond - 1] < nodes:  # then a window must end before this step, which often begins soon
            latest = times[beyond - 1] - duration
            if latest < times[0]:
                return start
            begins = bisect_right(times, latest)
        k: i64 = 0
        while True:
            while k < begins and free[k] < nodes:
                k += 1
            if k >= begins:
                return start
            # A window begins at k.  Examined from its end, it shows the last step with too few nodes first.
            end = times[k] + duration
            last = beyond if end >= start else bisect_left(times, end, k)
            before = last - 1
            while before > k and free[before] >= nodes:
                before -= 1
            if before <= k:
                break
            k = before + 1
        new = times[k]
        _change(times, free, k, last, end if end < start else start, -nodes)  # only the difference changes: the two may overlap
        _add(times, free, end if end > start else start, start + duration, nodes)
        return new

    def overbook(self, start: int, end: int, nodes: int) -> None:
        """Subtract ``nodes`` during [``start``, ``end``), which is not empty, even more than are free."""
        _add(self._times, self._free, start, end, -nodes)

    def release(self, start: int, end: int, nodes: int) -> None:
        """Add ``nodes`` during [``start``, ``end``), which is not empty."""
        _add(self._times, self._free, start, end, nodes)

    def move_up(self, start: int, new_start: int, duration: int, nodes: int) -> None:
        """Move a reservation to an earlier start; errors as of :meth:`~Profile.reserve`."""
        new_end, end = new_start + duration, start + duration  # only the difference changes: the two may overlap
        if new_end < start:
            self.reserve(new_start, new_end, nodes)
            _add(self._times, self._free, start, end, nodes)
        else:
            self.reserve(new_start, start, nodes)
            _add(self._times, self._free, new_end, end, nodes)


def _add(times: list[int], free: list[int], start: int, end: int, nodes: int) -> None:
    """Add nodes to the steps of a profile during [``start``, ``end``)."""
    first: i64 = 0 if start == times[0] else _boundary(times, free, start)
    _change(times, free, first, bisect_left(times, end, first), end, nodes)


def _boundary(times: list[int], free: list[int], start: int) -> i64:
    """Let a step of a profile begin at ``start``, and return which."""
    first = bisect_left(times, start)
    if first == len(times) or times[first] != start:
        if not first:
            raise ValueError(f"profile: {start} lies in the past; it begins at {times[0]}")
        times.insert(first, start)
        free.insert(first, free[first - 1])
    return first


def _change(times: list[int], free: list[int], first: i64, beyond: i64, end: int, nodes: int) -> None:
    """Add nodes in steps ``first`` to ``beyond`` of a profile, the first one not before ``end``."""
    if is_new := beyond == len(times) or times[beyond] != end:
        times.insert(beyond, end)
        free.insert(beyond, free[beyond - 1])
    k = first
    while k < beyond:  # faster than range() for so few steps
        free[k] = free[k] + nodes  # compiled, this needs no objects
        k += 1
    # Steps at both ends go where they are none any more; a new one is one.
    if not is_new and free[beyond] == free[beyond - 1]:
        times.pop(beyond)  # compiled, faster than del
        free.pop(beyond)
    if first and free[first] == free[first - 1]:
        times.pop(first)
        free.pop(first)


class ReleasingProfile(Profile):
    """A profile that notes what has been released, so that it can tell who may start earlier."""

    __slots__ = ("_released", "_released_until")

    def __init__(self, nodes: int) -> None:
        super().__init__(nodes)
        self._released, self._released_until = 0, 0  # nodes since the last `forget_releases`, and until when at the latest

    def release(self, start: int, end: int, nodes: int) -> None:
        """Add ``nodes`` during [``start``, ``end``), which is not empty."""
        _add(self._times, self._free, start, end, nodes)
        self.note_release(end, nodes)

    def note_release(self, end: int, nodes: int) -> None:
        """Note nodes that have been released until ``end``, for :meth:`gaining_sizes`."""
        self._released += nodes
        if end > self._released_until:  # noqa: PLR1730  faster than max()
            self._released_until = end

    def forget_releases(self) -> None:
        self._released = self._released_until = 0

    def gaining_sizes(self) -> tuple[int, int]:
        """Return the least and the largest size for which the releases noted can have opened a window: there are no others."""
        # At some time before the last release ends there must be enough nodes now, and must have been too few before.
        free = self._free[: bisect_left(self._times, self._released_until)]
        return (min(free) - self._released + 1, max(free)) if free else (1, 0)
