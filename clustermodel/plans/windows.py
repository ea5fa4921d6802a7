"""Windows: times in which nodes are kept free, or known to be down, once or every so often."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import gcd, lcm
from typing import Final

from clustermodel.machine.node_set import NodeSet, as_mask
from clustermodel.ticks import NEVER, to_ticks
from clustermodel.validation import LONGEST_S

_FOR_EVER: Final = to_ticks(LONGEST_S)


class Window:
    """One of them: nodes, begin, end and period (0: once), ticks; ``bit`` is that of its number in :class:`Windows`."""

    __slots__ = ("begin", "bit", "end", "every", "mask")

    def __init__(self, number: int, nodes: NodeSet, begin: int, end: int, every: int) -> None:
        self.bit, self.mask = 1 << number, as_mask(nodes)
        self.begin, self.end, self.every = (begin, NEVER, 0) if end >= _FOR_EVER else (begin, end, every)

    def next(self, time: int) -> tuple[int, int]:
        """Return begin and end of the first turn that ends after a time; ``NEVER`` if there is none."""
        if time < self.end:
            return self.begin, self.end
        if not self.every:
            return NEVER, NEVER
        passed = ((time - self.end) // self.every + 1) * self.every
        return self.begin + passed, self.end + passed

    def ends(self, time: int) -> Iterator[int]:
        """Yield the ends after a time, perhaps without end."""
        while (end := self.next(time)[1]) < NEVER:
            yield end
            time = end

    def bars(self, start: int, end: int) -> bool:
        """Return whether a turn of it has a part of an interval."""
        return self.next(start)[0] < end


class Windows:
    """The windows of a machine: those of reservations come first."""

    # What a job is barred from is given as bits: all windows but the reservations that it may use.

    def __init__(self, windows: Sequence[tuple[NodeSet, int, int, int]], reservations: int) -> None:
        self.all: Final = [Window(number, *window) for number, window in enumerate(windows)]
        self.bits: Final = (1 << len(self.all)) - 1
        self.reservations: Final = self.all[:reservations]
        self._periodic = [window for window in self.all if window.every]
        self._coming = sorted((window for window in self.all if not window.every), key=lambda window: -window.begin)
        self._open: list[Window] = []  # those that are there once, have begun, and perhaps not ended
        self.period: Final = lcm(*(window.every for window in self._periodic)) if self._periodic else 0
        ends = [window.begin if window.every or window.end == NEVER else window.end for window in self.all]
        self.settled: Final = max(ends, default=0)  # from then on all is as it was a period before
        self.turns: Final = len(self.all) + sum(self.period // window.every for window in self._periodic)

    def near(self, now: int, horizon: int) -> list[tuple[int, Window]]:
        """Return the windows of which there is something from now on until a time, with their next begins, in their order."""
        self._advance(now)
        near = [(window.begin, window) for window in self._open]
        near += [(begin, window) for window in self._periodic if (begin := window.next(now)[0]) < horizon]
        for window in reversed(self._coming):
            if window.begin >= horizon:
                break
            near.append((window.begin, window))
        near.sort(key=lambda pair: pair[0])
        return near

    def next_change(self, now: int) -> int:
        """Return when a window begins or ends next; ``NEVER`` if none does."""
        self._advance(now)
        changes = [self._coming[-1].begin] if self._coming else []
        changes += [window.end for window in self._open]
        for window in self._periodic:
            begin, end = window.next(now)
            changes.append(begin if begin > now else end)
        return min(changes, default=NEVER)

    def _advance(self, now: int) -> None:
        while self._coming and self._coming[-1].begin <= now:
            self._open.append(self._coming.pop())
        if self._open:
            self._open = [window for window in self._open if window.end > now]

    def reserved(self, now: int) -> int:
        """Return the nodes, a bitmask, of the reservations at a time."""
        mask = 0
        for window in self.reservations:
            if window.bars(now, now + 1):
                mask |= window.mask
        return mask

    def down_until(self, node: int, now: int) -> int:
        """Return until when a node that has failed now is down, as far as that is known in advance; 0 if it is not."""
        self._advance(now)
        known = [window.end for window in self._open if window.mask >> node & 1]
        return max(known, default=0)

    def barred(self, start: int, duration: int, bits: int) -> int:
        """Return the nodes, a bitmask, on which a job that is barred from some windows cannot be from ``start`` on."""
        mask = 0
        for window in self.all:
            if window.bit & bits and window.bars(start, start + duration):
                mask |= window.mask
        return mask

    def next_begin(self, now: int, nodes: int, bits: int) -> int:
        """Return when the next window begins, now or later, that bars a job from some nodes, a bitmask; ``NEVER``: none."""
        first = NEVER
        for window in self.all:
            if window.bit & bits and window.mask & nodes:
                begin, end = window.next(now)
                first = min(first, begin if begin >= now else window.next(end)[0])
        return first

    def last_start(
        self, now: int, duration: int, enough: Callable[[int], bool], eligible: int, bits: int, step: int = 1
    ) -> int:
        """Return the last time at which windows let a job start: ``NEVER`` if they do again and again, -1 if they do not.

        ``enough`` says whether it can start on nodes, a bitmask; it starts at multiples of ``step`` ticks only.
        """
        barring = [window for window in self.all if window.bit & bits and window.mask & eligible]

        def fits(start: int) -> bool:
            return enough(eligible & ~self.barred(start, duration, bits))

        base = max(now, self.settled)
        # A multiple of the step comes as long after some turn as one of this divisor comes after any turn.
        divisor = gcd(step, self.period)
        if any(fits(end + -end % divisor) for end in candidates([base], barring, base, duration)):
            return NEVER
        begins = {now + -now % step}
        for window in barring:
            begin = window.next(now)[0]
            while begin <= base + duration:
                begins.add((begin - duration) // step * step)
                if window.every and window.every - (window.end - window.begin) < duration:
                    break  # no job starts between its turns
                begin = window.next(begin + window.end - window.begin)[0]
        return max((start for start in begins if start >= now and fits(start)), default=-1)


def candidates(
    times: Sequence[int],
    windows: Iterable[Window],
    settled: int,
    length: int,
    has_room: Callable[[int], bool] | None = None,
    *,
    recurs: bool = True,
) -> Iterator[int]:
    """Yield when a job of some length could start, in order: times, which ascend, and ends of windows after the first of them.

    ``has_room`` tells whether anything is possible from the k-th of the times to the next one; if not, there is no candidate.
    After the last of them windows are followed until all that recurs has been there once, unless nothing ``recurs``.
    """
    # A window whose turns follow each other sooner than the job ends bars it from its first begin on: no end of it matters.
    times = [time for time in times if time < NEVER]
    passable = [each for each in windows if not each.every or each.every - (each.end - each.begin) >= length]
    last = max(times[-1], settled) + (lcm(*(each.every for each in passable if each.every)) if recurs else 0)
    for k, time in enumerate(times):
        if has_room is not None and not has_room(k):
            continue
        yield time
        until, end = times[k + 1] if k + 1 < len(times) else min(last + 1, NEVER), time
        while (end := min([each.next(end)[1] for each in passable], default=NEVER)) < until:
            yield end
