"""What ran between scheduling events where nodes are shared in time.

The rotations of rows are always kept (:class:`SliceLog`). Every state of the Ousterhout matrix and of the ledger, for figures
(:class:`History`), is off by default: it grows with every event.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from clustermodel.recording.ledger import Account, Amount, Ledger


class Cell(NamedTuple):
    """One gang in one row: its job, its columns, a bitmask, and whether its home is another row."""

    job: int
    columns: int
    replica: bool


class Moment(NamedTuple):
    """The state from one scheduling event to the next."""

    ticks: int  # when it begins
    rows: tuple[tuple[Cell, ...], ...]  # the gangs in each row of the matrix
    rotation: tuple[int, ...]  # the rows in use, in the order in which they run from here on
    ledger: dict[Account, Amount]  # node-ticks charged so far; work is charged when a job completes
    begun: int = 0  # how long the slice of the first row has run before, ticks: the event did not cut it short


class Slice(NamedTuple):
    """A time slice, in which one row of the Ousterhout matrix runs."""

    begin: int  # ticks
    end: int
    """Ticks: a quantum after the begin, or earlier if a scheduling event cuts the slice short.  Where events do not, what runs
    before an event and after it are two."""
    row: int
    gangs: tuple[Cell, ...]
    at_event: bool  # whether the slice begins with a scheduling event


class History:
    """The moments of one run, in order; slices last a ``quantum``, ticks."""

    def __init__(self, quantum: int) -> None:
        self.quantum = quantum
        self.moments: list[Moment] = []

    def cut(self, ledger: Ledger) -> None:
        """Let the moments have what has been charged since the books began, until they end."""
        self.moments = [
            moment._replace(ledger={account: ledger.from_start(account, amount) for account, amount in moment.ledger.items()})
            for moment in self.moments
            if moment.ticks <= ledger.end
        ]

    def at(self, ticks: int) -> Moment:
        """Return the last state that begins at or before a time, in ticks; the first state if there is none."""
        index = bisect_right(self.moments, ticks, key=lambda moment: moment.ticks)
        return self.moments[max(index - 1, 0)]

    def running_row(self, ticks: int) -> int | None:
        """Return the row that runs at a time, ticks (at a boundary of slices: the later one); ``None`` if nothing runs."""
        moment = self.at(ticks)
        if not moment.rotation or ticks < moment.ticks:
            return None
        return moment.rotation[(moment.begun + ticks - moment.ticks) // self.quantum % len(moment.rotation)]

    def slices(self, first: int, last: int, end: int) -> Iterator[Slice]:
        """Yield the slices that overlap ``first`` to ``last`` and in which a gang runs, of a run until ``end``; in ticks."""
        moments, quantum = self.moments, self.quantum
        ends = [moment.ticks for moment in moments[1:]] + [end]
        for moment, stop in zip(moments, ends, strict=True):
            if moment.ticks >= last:
                return
            rotation = moment.rotation
            since = moment.ticks - moment.begun
            number = (max(first, moment.ticks) - since) // quantum
            begin = since + number * quantum
            while rotation and max(begin, moment.ticks) < min(stop, last) and first < stop:
                row = rotation[number % len(rotation)]
                yield Slice(max(begin, moment.ticks), min(begin + quantum, stop), row, moment.rows[row], at_event=not number)
                number, begin = number + 1, begin + quantum


class LoggedRotation(NamedTuple):
    """What ran between two scheduling events where nodes are shared in time: a rotation of rows, its last slice cut short."""

    length: int  # ticks
    waiting: bool  # whether jobs waited: delta of Zhang et al. 2003.
    held: tuple[int, ...]  # nodes in use in each row of the rotation, in the order in which the rows ran; empty if nothing ran
    switching: tuple[tuple[int, int], ...]  # nodes that switch, or wait for it, in each row: in the first lap, in later laps
    migration: int
    """Node-ticks of gangs in checkpoints and restarts, or blocked by them; where events do not cut slices short, in context
    switches too."""
    up: int  # number of nodes neither down nor kept free; while no job was in the system, at the beginning of the rotation
    begun: int = 0  # how long the first slice had run before, ticks: the event at the beginning did not cut it short


_MANY: Final = 4_096  # numbers that are kept as Python's for a while
_WORD: Final = 2**62  # node-ticks may exceed 64 bits: the multiples of this number are stored together with ``waiting``


class SliceLog:
    """The rotations of one run, as flat integers: 48 bytes each, and 8 per row in use, 24 where context switches cost time."""

    __slots__ = ("_flat", "_recent")

    def __init__(self) -> None:
        self._flat = array("q")
        self._recent: list[int] = []

    def note(
        self,
        length: int,
        held: Sequence[int],
        switching: Sequence[Sequence[int]],
        migration: int,
        up: int,
        waiting: bool,
        begun: int = 0,
    ) -> None:
        """Note a rotation; ``switching`` may be empty if no node switched, and rows are if nothing ran."""
        high, low = divmod(migration, _WORD)
        row = [length, 2 * high + waiting, low, up, begun, len(held) if switching else -len(held), *held]
        for of_row in switching:
            row.extend(of_row)
        self._recent += row
        if len(self._recent) > _MANY:
            self._keep()

    def _keep(self) -> None:
        """Keep recent rotations as machine integers."""
        self._flat.frombytes(np.array(self._recent, dtype=np.int64).tobytes())  # extend() converts one after the other
        self._recent.clear()

    def cut(self, ticks: int) -> None:
        """Leave out the rotations after so many ticks since the first one began, at which one ends."""
        self._keep()
        flat, place = self._flat, 0
        while place < len(flat) and ticks > 0:
            ticks -= flat[place]
            rows = flat[place + 5]
            place += 6 + (-rows if rows < 0 else 3 * rows)
        del flat[place:]

    def __iter__(self) -> Iterator[LoggedRotation]:
        self._keep()
        flat, place = self._flat, 0
        while place < len(flat):
            length, high_and_waiting, low, up, begun, rows = flat[place : place + 6]
            place += 6
            high, waiting = divmod(high_and_waiting, 2)
            free, rows = rows < 0, abs(rows)  # whether no node switched
            held = tuple(flat[place : place + rows])
            place += rows
            pairs = [0] * 2 * rows if free else flat[place : place + 2 * rows]
            place += 0 if free else 2 * rows
            switching = tuple(zip(pairs[::2], pairs[1::2], strict=True))
            yield LoggedRotation(length, bool(waiting), held, switching, high * _WORD + low, up, begun)
