"""Migrations in the Ousterhout matrix: gangs get other columns of a row (Zhang et al. 2003, section 5.4).

Where a gang finds others on its columns, either they migrate (option 1) or it does (option 2).
:class:`~clustermodel.schedule.ousterhout.OusterhoutMatrix` has the steps in which that happens.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from clustermodel.schedule.matrix_columns import MatrixColumns
from clustermodel.schedule.node_set import from_mask
from clustermodel.schedule.planned_gangs import STARTING_ORDER, Job, Migration, Occupant
from clustermodel.theory.migration import option_1_overhead, option_2_overhead


class Guard(Protocol[Job]):
    """Lets reservations veto moving a gang to another home row."""

    def may_enter(self, gang: Occupant[Job], row: int) -> bool:
        """Return whether ``gang`` can have its home in ``row`` without violating a reservation."""

    def moved(self, gang: Occupant[Job], source: int) -> None:
        """Note that the home of ``gang`` has moved from row ``source``."""


class MatrixMigrations(MatrixColumns[Job]):
    """The columns of the rows, and how gangs migrate there.

    Args:
        nodes: number of columns.
        mpl: the most rows.
        checkpoint: time to checkpoint a gang, in any unit.
        restart: time to restart a gang, in the same unit.
        max_tasks: Q, the most tasks that migrate in a slice; ``None`` is no limit.
        counts: which tasks of a gang that migrates count, ``"gang"``, ``"moved"`` or ``"spread"``; see
            :class:`~clustermodel.machine.Checkpointing`.
        strips: see :class:`~clustermodel.schedule.matrix_columns.MatrixColumns`.
    """

    def __init__(
        self, nodes: int, mpl: int, *, checkpoint: int, restart: int, max_tasks: int | None, counts: str, strips: bool
    ) -> None:
        super().__init__(nodes, mpl, strips=strips)
        self._migrations: list[Migration[Job]] = []
        # With free migration the tasks moved decide between the options, as they do at any cost.
        self._cost = (checkpoint, restart) if checkpoint + restart else (1, 1)
        self._max_tasks = max_tasks
        self._counts = counts
        self.migration_counts = checkpoint + restart > 0 or max_tasks is not None
        """Whether migration costs something or is limited; if not, a gang may be moved as often as one event likes."""

    def tasks_migrating(self, row: int) -> int:
        """Return how many tasks in a row are on their way to or from the checkpoint store.

        Undivided gangs are in each row: in those too that come into use when another gang is placed there.
        """
        undivided = self.undivided
        return sum(
            gang.moving
            for gang in self.occupants.values()
            if gang.migrating and (gang.rows >> row & 1 or gang.job.id in undivided)
        )

    def note_migrating(self, gang: Occupant[Job], *, migrates: bool, in_rounds: bool = False) -> None:
        """Note whether a gang migrates on the machine, or is saved or restored in rounds: then all its tasks count."""
        gang.migrating = migrates or in_rounds
        if in_rounds or not migrates:
            gang.moving = gang.nodes

    def _counted(self, gang: Occupant[Job], kept: int) -> int:
        """Return how many tasks of ``gang`` count against Q if it migrates and keeps these of its columns, a bitmask."""
        if self._counts == "gang":
            return gang.nodes
        moved = gang.nodes - self._count(gang.columns & kept)
        return moved if self._max_tasks is None or self._counts == "moved" else min(moved, self._max_tasks)

    def _can_migrate(self, gangs: Collection[Occupant[Job]], row: int, kept: int) -> bool:
        """Return whether ``gangs`` may be moved to other columns in ``row``: none is on its way already, and Q allows it.

        They keep those of their columns that are among ``kept``, a bitmask.
        """
        for gang in gangs:
            if gang.migrating:
                return False
        if self._max_tasks is None:
            return True
        moving = [gang for gang in gangs if gang.on_machine]
        if not moving or not self._max_tasks:
            return not moving
        return sum(self._counted(gang, kept) for gang in moving) + self.tasks_migrating(row) <= self._max_tasks

    def _within_limit(self, gang: Occupant[Job], row: int) -> bool:
        """Return whether ``gang`` may stand in ``row`` as well: if it is still migrating, its tasks count there too."""
        if self._max_tasks is None or not gang.migrating:
            return True
        return gang.moving + self.tasks_migrating(row) <= self._max_tasks

    def _overlapping(self, gang: Occupant[Job], row: int) -> list[Occupant[Job]]:
        """S(A) of Zhang et al. 2003: the gangs at home in ``row`` that use columns of ``gang``, in starting order."""
        columns = gang.columns
        overlapping = [other for other in self.homes[row].values() if other.columns & columns]
        if len(overlapping) > 1:
            overlapping.sort(key=STARTING_ORDER)
        return overlapping

    def _move_by_migration(self, gang: Occupant[Job], row: int, guard: Guard[Job] | None) -> bool:
        """Move ``gang`` to ``row`` by option 1 (those in its way migrate) or option 2 (it does), whichever costs less."""
        if gang.migrating or not (guard is None or guard.may_enter(gang, row)):
            return False
        in_the_way = self._overlapping(gang, row)
        option_1 = self._can_migrate(in_the_way, row, ~gang.columns)
        option_2 = self._can_migrate([gang], row, self._free[row])
        if option_1 and option_2:
            own = gang.nodes if gang.on_machine else 0
            theirs = [other.nodes for other in in_the_way if other.on_machine]
            if option_1_overhead(own, theirs, *self._cost) > option_2_overhead(own, theirs, *self._cost):
                return self._move_elsewhere(gang, in_the_way, row) or self._move_others(gang, in_the_way, row)
        if option_1 and self._move_others(gang, in_the_way, row):
            return True
        return option_2 and self._move_elsewhere(gang, in_the_way, row)

    def _move_others(self, gang: Occupant[Job], in_the_way: list[Occupant[Job]], row: int) -> bool:
        """Option 1: move ``gang`` to ``row``, on its own columns; return whether those in its way can have memory."""
        columns = self._columns_for_displaced(gang, in_the_way, row, self._free)
        if columns is None:
            return False
        self._leave_home(gang)
        self._displace(gang, in_the_way, columns, self._free, row)
        self._settle_in(gang, row)
        return True

    def _move_elsewhere(self, gang: Occupant[Job], in_the_way: list[Occupant[Job]], row: int) -> bool:
        """Option 2: move ``gang`` to free columns of ``row``; return whether it has enough memory there."""
        columns = self._columns_elsewhere(gang, row, self._free)
        if columns is None:
            return False
        self._leave_home(gang)
        gang.moving = self._counted(gang, columns)
        self._give_columns(gang, columns)
        self._note_migration([gang], in_the_way)
        self._settle_in(gang, row)
        return True

    def _columns_for_displaced(
        self, gang: Occupant[Job], in_the_way: list[Occupant[Job]], row: int, free: list[int]
    ) -> list[int] | None:
        """Option 1: return new columns for those in the way of ``gang`` in ``row``; only tasks that are in the way move.

        Returns:
            ``None`` if they have not enough memory there.
        """
        if self._strips is not None and len(in_the_way) > 1:
            needed = 0
            for other in in_the_way:  # strips are cut first, since masks would change while they are at hand
                needed += self._count(other.columns & gang.columns)
                self._lowest(free[row] ^ (free[row] & gang.columns), needed)
        wanted = gang.columns
        open_, columns = free[row] ^ (free[row] & wanted), []
        for other in in_the_way:
            lost = other.columns & wanted
            suitable = self._suitable(other, open_)
            if self.memory is not None and suitable.bit_count() < lost.bit_count():
                return None
            taken = self._lowest(suitable, self._count(lost))
            open_ ^= taken
            columns.append(other.columns ^ (other.columns & gang.columns) | taken)
        return columns

    def _columns_elsewhere(self, gang: Occupant[Job], row: int, free: list[int]) -> int | None:
        """Option 2: return columns for ``gang`` in ``row``: its own that are free there, and other free ones for the rest.

        Returns:
            ``None`` if it has not enough memory there.
        """
        kept = gang.columns & free[row]
        suitable = self._suitable(gang, free[row] ^ kept)
        if self.memory is not None and suitable.bit_count() < gang.nodes - kept.bit_count():
            return None
        taken = self._lowest(suitable, gang.nodes - self._count(kept))
        return gang.columns & free[row] | taken

    def _suitable(self, gang: Occupant[Job], columns: int) -> int:
        """Return those of ``columns`` that have enough memory for a task of ``gang``, which it does not hold yet."""
        return columns if self.memory is None else columns & self._with_memory(gang.job)

    def _give_columns(self, gang: Occupant[Job], columns: int) -> None:
        if self.memory is not None:
            self.memory.give_back(from_mask(gang.columns & ~columns), gang.job.memory)
            self._take_memory(gang.job, columns & ~gang.columns)
        gang.columns = columns

    def _displace(
        self, gang: Occupant[Job], in_the_way: list[Occupant[Job]], columns: list[int], free: list[int], row: int
    ) -> None:
        """Option 1: give those in the way their new ``columns``; those of ``gang`` in ``row`` become free."""
        for other, new in zip(in_the_way, columns, strict=True):
            open_ = free[row] | other.columns
            free[row] = open_ ^ (open_ & new)
            other.moving = self._counted(other, new)
            self._give_columns(other, new)
        self._note_migration(in_the_way, [gang])

    def _note_migration(self, moves: list[Occupant[Job]], blocked: list[Occupant[Job]]) -> None:
        """Note a migration; a gang that has not started yet simply starts elsewhere, and no gang waits for it."""
        self._touched += moves
        self._changed_homes.update([gang.home for gang in moves])
        moved = [gang for gang in moves if gang.on_machine]
        if self.migration_counts:
            for gang in moved:
                gang.migrating = True
        if moved:
            self._migrations.append(Migration(moved, [gang for gang in blocked if gang.on_machine]))
