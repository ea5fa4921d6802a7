"""The arithmetic of a rotation: what rows and gangs have done when rows take turns for a while, and when a gang finishes.

Between two scheduling events the matrix does not change, so the rotation is periodic, and how far everybody has got follows
without simulating the slices.  Gangs in the same rows make the same progress, so the cost of an event grows with the number of
different row sets, not with nodes, slices or gangs.

The rules (docs/model): slices begin at event + k x T; a scheduling event cuts the running slice short, and the next row in use
goes on with a full one; a context switch comes first in a slice, then pending overheads, then work.  Where an event leaves the
running slice alone, slices begin at the beginning of that slice + k x T instead.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from heapq import heappush
from operator import attrgetter
from typing import Final, NamedTuple

from clustermodel.sim.time_sharing.shared_nodes import Pace, PaceKey, SlicedGang
from clustermodel.ticks import NEVER

Served = tuple[list[int], list[int], list[int]]
"""For each row, ticks since the beginning: how long it ran, what of that the context switch in a rotation's first lap took from
a gang that waited for it, and what those in later laps took."""


class Advance(NamedTuple):
    """What a rotation has done since the last scheduling event; the lists have an entry for each row, in the order they ran."""

    in_use: int  # node-ticks of the nodes that rows hold while they run
    first: list[int]  # how much of that was the context switch of the first lap, ticks; empty where switches take no time
    later: list[int]  # how much of that were the context switches of later laps, ticks; empty where switches take no time
    last: int  # number of the slice that was cut short, from 0
    length: int  # how long that slice has run, ticks, before the last event too; a full one if it happened to end now


_NO_TIME: Final[tuple[list[int], list[int]]] = ([], [])


NOT_BEFORE: Final = attrgetter("not_before")
STARTING_ORDER: Final = attrgetter("order")


class Rotation:
    """Rows that take turns, and the gangs in them; a context switch takes ``switch`` ticks of a slice of ``quantum``."""

    def __init__(self, mpl: int, quantum: int, switch: int, now: int) -> None:
        self.order: list[int] = []  # the rows in use, in the order they come, as long as none comes into use or is emptied
        self.begun = 0  # how long the first slice had run before the last event; gangs that switch in it have that in ``left``
        self._quantum = quantum
        self._switch = switch
        self.now = now  # the last scheduling event
        self._served: Served = ([0] * mpl, [0] * mpl, [0] * mpl)
        self._paces: dict[PaceKey, Pace] = {}
        self._finishing: list[Pace] = []

    def advance(self, elapsed: int, held: list[int]) -> Advance:
        """Count what each row in use, which has so many nodes, has done in ``elapsed`` ticks, and go on with the next one."""
        order, quantum, served, begun = self.order, self._quantum, self._served[0], self.begun
        self.now += elapsed
        last, length = divmod(begun + elapsed - 1, quantum)
        length += 1
        laps, at = divmod(last, len(order))
        ran = [(laps + 1) * quantum] * at
        ran.append(laps * quantum + length)
        if laps:
            ran += [laps * quantum] * (len(order) - at - 1)
        if begun:
            ran[0] -= begun
        in_use = 0
        for row, ticks in zip(order, ran):  # noqa: B905  rows whose turn has not come may be missing at the end
            served[row] += ticks
            in_use += held[row] * ticks
        first, later = self._count_switches(laps, at, length) if self._switch else _NO_TIME
        self._count(self._paces.values())
        self.order = order[at + 1 :] + order[: at + 1]
        return tuple.__new__(Advance, (in_use, first, later, last, length))  # calling Advance takes thrice the time

    def _count(self, paces: Iterable[Pace]) -> None:
        """Count for how long gangs of these paces could have executed from the beginning to the last scheduling event."""
        ran, first, later = self._served
        for pace in paces:
            total = 0
            for row in pace.rows:
                total += ran[row]
            if pace.switches:
                for row in pace.first_rows:
                    total -= first[row]
                for row in pace.later_rows:
                    total -= later[row]
            pace.served = total

    def _count_switches(self, laps: int, at: int, length: int) -> tuple[list[int], list[int]]:
        """Count the time that context switches took in each row, in the first lap and in later ones."""
        switch = self._switch
        cut = min(length, switch)  # of the switch in the slice that was cut short
        first, later = [], []
        for place, row in enumerate(self.order):
            slices = laps + 1 if place < at else laps  # full ones
            in_first = switch if slices else cut if place == at else 0
            in_later = (slices - 1) * switch + (cut if place == at else 0) if slices else 0
            self._served[1][row] += in_first
            self._served[2][row] += in_later
            first.append(in_first)
            later.append(in_later)
        return first, later

    def join(self, gang: SlicedGang, key: PaceKey) -> None:
        old = gang.pace
        if old is not None:
            if old.key == key:
                return
            self.leave(gang)
        pace = self._paces.get(key)
        if pace is None:
            pace = self._paces[key] = Pace(key)
            self._count((pace,))
        pace.members += 1
        gang.pace = pace
        gang.due = due = pace.served + gang.left
        if (not_before := self.now + gang.left) < pace.not_before:
            pace.not_before = not_before
        heappush(pace.dues, (due, gang.order, gang))

    def leave(self, gang: SlicedGang) -> None:
        """Take ``gang`` from its pace, if it has one, and note what it still needs."""
        pace = gang.pace
        if pace is None:
            return
        gang.left = gang.due - pace.served
        gang.pace = None
        pace.members -= 1
        if not pace.members:
            del self._paces[pace.key]

    def next_finish(self) -> int | None:
        """Return when the first gang finishes, ticks, if no scheduling event comes before; ``None`` when nothing runs."""
        soonest, self._finishing = NEVER, []
        paces: Iterable[Pace] = self._paces.values()
        for pace in sorted(paces, key=NOT_BEFORE) if len(self._paces) > 1 else paces:
            if pace.not_before > soonest:
                break
            due, _, gang = pace.dues[0]
            if gang.pace is not pace or gang.due != due:
                due = pace.next_due()  # the first one is stale
            left = due - pace.served
            pace.not_before = self.now + left
            if pace.not_before <= soonest:
                finish = self.now + self._elapsed_until(pace, left)
                if finish < soonest:
                    soonest, self._finishing = finish, [pace]
                elif finish == soonest:
                    self._finishing.append(pace)
        return None if soonest == NEVER else soonest

    def time_of(self, gang: SlicedGang, ticks: int) -> int:
        """Return when ``gang`` has had ``ticks`` of its own slices, if no scheduling event comes before, ticks."""
        assert gang.pace is not None
        return self.now + self._elapsed_until(gang.pace, ticks)

    def finished(self) -> list[SlicedGang]:
        """Return the gangs that have finished, in the order of their starts, at the time that :meth:`next_finish` returned."""
        finished = [gang for pace in self._finishing for gang in pace.finished()]
        if len(self._finishing) > 1:
            finished.sort(key=STARTING_ORDER)
        return finished

    def _elapsed_until(self, pace: Pace, left: int) -> int:
        """Return how long the rotation takes, from its last event, to let ``pace`` execute for ``left`` ticks."""
        rows, first, later = pace.key
        quantum, order, begun = self._quantum, self.order, self.begun
        if begun and rows >> order[0] & 1:
            left += begun  # as if the slice began now
        if not (first or later):
            if len(order) == 1:
                return left - begun
            slices, rest = divmod(left - 1, quantum)
            own = pace.rows
            first_own = bisect_left(own, order[0])  # the rotation ascends from its first row on, and wraps around
            row, laps = own[(first_own + slices) % len(own)], slices // len(own)
            return (laps * len(order) + order.index(row)) * quantum + rest + 1 - begun
        switch = self._switch
        places = [(place, row) for place, row in enumerate(order) if rows >> row & 1]
        in_first_lap = len(places) * quantum - first.bit_count() * switch
        begins, switches = 0, first
        if left > in_first_lap:
            in_a_lap = len(places) * quantum - later.bit_count() * switch
            laps = (left - in_first_lap - 1) // in_a_lap
            left -= in_first_lap + laps * in_a_lap
            begins, switches = (1 + laps) * len(order), later
        for place, row in places:
            lost = switch if switches >> row & 1 else 0
            if left <= quantum - lost:
                return (begins + place) * quantum + lost + left - begun
            left -= quantum - lost
        raise AssertionError("a lap is as long as its slices")
