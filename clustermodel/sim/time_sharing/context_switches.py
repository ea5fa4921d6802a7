"""Which nodes change their task in which slice, where a context switch is charged on change: arithmetic, no SimPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from clustermodel.sim.time_sharing.matrix_rows import MatrixRows
from clustermodel.sim.time_sharing.rotation import PaceKey
from clustermodel.sim.time_sharing.sliced_gang import SlicedGang


class RowSwitches(NamedTuple):
    """How many nodes of a row switch at the start of its slice, and how many wait with them, in the first lap and later."""

    first: int
    first_waiting: int
    later: int
    later_waiting: int


NO_SWITCHES = RowSwitches(0, 0, 0, 0)


class LoadedTasks:
    """Which gang's task each node holds, and what follows for the switches of a rotation.

    Args:
        rows: who runs where.
        switch: how long a context switch takes, ticks.
    """

    def __init__(self, rows: MatrixRows, switch: int) -> None:
        self._rows = rows
        self._switch = switch
        self._loaded: dict[SlicedGang, int] = {}  # on which nodes its task was the last to run, a bitmask
        self._changes: dict[tuple[SlicedGang, int], tuple[int, int]] = {}  # (gang, row) -> nodes that switch first, later

    def forget(self, gang: SlicedGang) -> None:
        """Note that no node holds a task of ``gang`` any more."""
        self._loaded.pop(gang, None)

    def holds_none_on(self, gang: SlicedGang) -> int:
        """Return the nodes that do not hold the task of ``gang`` that it has there, a bitmask."""
        return gang.mask & ~self._loaded.get(gang, 0)

    def changes(self, gang: SlicedGang, row: int, number: int, rows: int) -> int:
        """Return which nodes switch in slice ``number`` of a rotation of so many rows, a bitmask."""
        return self._changes[gang, row][number >= rows]

    def plan(self, order: list[int], *, first_apart: bool = False) -> tuple[list[RowSwitches], dict[SlicedGang, PaceKey]]:
        """Return who switches when rows take turns in this order: for each row, and for each gang the pace that follows.

        Args:
            order: the rows.
            first_apart: leave out the switches of the first slice.
        """
        rows = self._rows
        self._changes.clear()
        by_row: list[RowSwitches] = []
        for place, row in enumerate(order):
            switches = waits = switches_later = waits_later = 0
            for gang in rows.gangs[row].values():
                changes = self._changing_nodes(gang, order, place)
                if first_apart and not place:
                    changes = (0, changes[1])
                self._changes[gang, row] = changes
                first, later = changes[0].bit_count(), changes[1].bit_count()
                switches += first
                switches_later += later
                waits += gang.nodes - first if first else 0
                waits_later += gang.nodes - later if later else 0
            by_row.append(RowSwitches(switches, waits, switches_later, waits_later))
        paces: dict[SlicedGang, PaceKey] = {}
        for (gang, row), (changing, changing_later) in self._changes.items():
            _, in_first, in_later = paces.get(gang, (0, 0, 0))
            paces[gang] = (gang.rows, in_first | bool(changing) << row, in_later | bool(changing_later) << row)
        return by_row, paces

    def _changing_nodes(self, gang: SlicedGang, order: list[int], place: int) -> tuple[int, int]:
        """Return on which nodes the task changes when the row at ``place`` begins to run ``gang``: first lap, later laps."""
        occupied, rows = self._rows.occupied, gang.rows
        open_, changed = gang.mask, 0  # nodes whose last task is not known yet; nodes whose last task was another's
        for before in range(place - 1, -1, -1):
            row = order[before]
            if rows >> row & 1:
                return changed, changed  # it ran there itself, and so it will in every lap
            changed |= open_ & occupied[row]
            open_ &= ~occupied[row]
        first = changed | open_ & ~self._loaded.get(gang, 0)
        for before in range(len(order) - 1, place, -1):
            row = order[before]
            if rows >> row & 1:
                break
            changed |= open_ & occupied[row]
            open_ &= ~occupied[row]
        return first, changed

    def advance(
        self, order: list[int], last: int, length: int, switching: Mapping[SlicedGang, tuple[int, int]] | None = None
    ) -> None:
        """Note whose task each node ran last.

        Args:
            order: the rows.
            last: number of the slice that was cut short, or that goes on.
            length: how long it has run, ticks.
            switching: gangs that still switch in it -> (ticks left, nodes); by default what follows from the length.
        """
        rows = self._rows
        claimed = 0
        loaded: dict[SlicedGang, int] = {}
        for number in range(last, max(-1, last - len(order)), -1):
            row = order[number % len(order)]
            for gang in rows.gangs[row].values():
                ran = gang.mask
                if switching is not None:
                    if number == last and gang in switching:
                        ran &= ~switching[gang][1]
                elif number == last and length < self._switch:  # cut short while it was switching: those nodes hold no task
                    ran &= ~self._changes[gang, row][number >= len(order)]
                loaded[gang] = loaded.get(gang, 0) | ran & ~claimed
            claimed |= rows.occupied[row]
        for gang, nodes in self._loaded.items():
            if kept := nodes & ~claimed:
                loaded[gang] = loaded.get(gang, 0) | kept
        self._loaded = loaded
