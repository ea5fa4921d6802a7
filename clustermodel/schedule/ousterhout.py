"""The Ousterhout matrix: rows are time slices, columns are nodes, and all tasks of a gang stand in the same row.

It is rebuilt at every scheduling event in the separate steps of Zhang et al. 2003, which are methods here in the paper's
words: CleanMatrix, CompactMatrix and FillMatrix of gang scheduling (section 5.1); CollapseMatrix-2 and FillMatrix-2, which
migrate (section 5.4).  Scheduling waiting jobs into it is the policy's business.  A gang has one set of columns, whatever
rows it stands in, so that a migration is paid for once and never recurs.

This is the matrix that a policy plans; :class:`~clustermodel.sim.time_sharing.matrix_rows.MatrixRows` is what the machine has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from clustermodel.schedule.matrix_columns import MatrixColumns
from clustermodel.schedule.node_set import from_mask, lowest
from clustermodel.schedule.planned_gangs import STARTING_ORDER, Change, Job, Migration, Occupant, changes_to
from clustermodel.theory.migration import option_1_overhead, option_2_overhead


class Guard(Protocol[Job]):
    """Lets reservations veto moving a gang to another home row."""

    def may_enter(self, gang: Occupant[Job], row: int) -> bool:
        """Return whether ``gang`` can have its home in ``row`` without violating a reservation."""

    def moved(self, gang: Occupant[Job], source: int) -> None:
        """Note that the home of ``gang`` has moved from row ``source``."""


class OusterhoutMatrix(MatrixColumns[Job]):
    """The matrix.

    Args:
        nodes: number of columns.
        mpl: the most rows.
        checkpoint: time to checkpoint a gang, in any unit.
        restart: time to restart a gang, in the same unit.
        max_tasks: Q, the most tasks that migrate in a slice; ``None`` is no limit.
    """

    def __init__(self, nodes: int, mpl: int, *, checkpoint: int = 0, restart: int = 0, max_tasks: int | None = None) -> None:
        super().__init__(nodes, mpl)
        # The same with replicas counted as well.
        self._room_left = self.room.copy()
        self._left = self._free.copy()
        self._replicated: list[Occupant[Job]] = []  # gangs with replicas; some more than once
        self._cleaned: list[Occupant[Job]] = []  # those that had some before the matrix was cleaned
        self._migrations: list[Migration[Job]] = []
        # With free migration the tasks moved decide between the options, as they do at any cost.
        self._cost = (checkpoint, restart) if checkpoint + restart else (1, 1)
        self._max_tasks = max_tasks
        self.migration_counts = checkpoint + restart > 0 or max_tasks is not None
        """Whether migration costs something or is limited; if not, a gang may be moved as often as one event likes."""

    @property
    def occupancy(self) -> float:
        """Share of the columns in use, replicas included, averaged over the rows in use; 0 for an empty matrix."""
        rows = self.rows_in_use()
        return 1 - sum(self._room_left[row] for row in rows) / (self.nodes * len(rows)) if rows else 0.0

    @property
    def is_one_row(self) -> bool:
        """Whether at most one row is in use, and all gangs stand in it alone."""
        return len(self.rows_in_use()) < 2 and not (self._replicated or self.undivided)

    # The steps of Zhang et al. 2003, section 5.1.

    def clean(self) -> None:
        """CleanMatrix: remove every instance of a gang that is not in its home row."""
        for gang in self._replicated:
            if gang.rows:  # otherwise it has ended
                gang.rows = 1 << gang.home
        self._cleaned += self._replicated
        self._replicated.clear()

    def compact(self, guard: Guard[Job] | None = None) -> bool:
        """CompactMatrix (CollapseMatrix-1): move gangs, on their columns, from less to more populated rows.

        It looks at home rows only, so that it does not matter whether :meth:`clean` comes before or after.

        Args:
            guard: has to agree to each move.

        Returns:
            Whether a gang has moved.
        """
        return self._collapse(guard)

    def fill(self) -> None:
        """FillMatrix (FillMatrix-1): replicate gangs, on their columns, into other rows as long as one can be.

        The matrix has been cleaned.
        """
        self._left, self._room_left = self._free.copy(), self.room.copy()
        if self.undivided:
            self._fill_undivided()
        self._fill()

    def _fill_undivided(self) -> None:
        """Let undivided gangs stand in every row in use."""
        rows = self.rows_in_use() or [0]
        for gang in self.undivided.values():
            gang.home, gang.rows = rows[0], sum(1 << row for row in rows)
            self._touched.append(gang)

    # The steps of Zhang et al. 2003, section 5.4.

    def collapse_with_migration(self, guard: Guard[Job] | None = None) -> bool:
        """CollapseMatrix-2: as :meth:`compact`, but to any columns of the target row, by the cheaper of the two options."""
        return self._collapse(guard, self._move_by_migration)

    def fill_with_migration(self) -> None:
        """FillMatrix-2: as FillMatrix, but gangs that are in the way migrate within the target row (option 1).

        The matrix has been filled.
        """
        rows = self._rows_to_fill()
        room, left = self._room_left, self._left
        most = max([room[row] for row, _ in rows], default=0)
        fixed = {row: self._fixed_columns(row) for row, _ in rows}
        everyone = self.occupants.values()
        gangs: Iterable[Occupant[Job]] = everyone if rows else ()
        while gangs:
            again = []
            moved = False
            for gang in gangs:
                nodes, standing = gang.nodes, gang.rows
                if nodes <= most:
                    columns = gang.columns
                    for row, bit in rows:
                        if nodes <= room[row] and not standing & bit and not columns & fixed[row]:
                            if columns & left[row] == columns:
                                if gang.migrating and not self._within_limit(gang, row):
                                    continue
                                left[row] ^= columns
                                room[row] -= nodes
                            elif self._replicate_by_migration(gang, row):
                                moved = True
                            else:
                                continue
                            gang.rows = standing | bit
                            again.append(gang)
                            break
            self._replicated += again
            # Columns that have changed may suit a gang that could not be replicated before.
            gangs = everyone if moved else again

    def _fixed_columns(self, row: int) -> int:
        """Return columns of ``row`` whose tasks do not move to other columns as long as the matrix is filled, a bitmask.

        They are those of replicas, of gangs that have replicas elsewhere, and of gangs that are migrating already.
        """
        fixed, at_home_only = self._free[row] ^ self._left[row], 1 << row
        for gang in self.homes[row].values():
            if gang.rows != at_home_only or gang.migrating:
                fixed |= gang.columns
        for gang in self.undivided.values():
            fixed |= gang.columns
        return fixed

    # How the steps go about it.

    def _collapse(
        self, guard: Guard[Job] | None, migrate: Callable[[Occupant[Job], int, Guard[Job] | None], bool] | None = None
    ) -> bool:
        """Move gangs from less to more populated rows: on their own columns, or else by ``migrate``."""
        # A gang that could not move from one row to another still cannot if neither has changed, unless others have a say.
        if guard is None and migrate is None and not self.migration_counts:
            changed, self._changed_homes = self._changed_homes, set()  # moves fill it again
        else:
            changed = set(range(self.mpl))
        rows = self.rows_in_use()
        if not changed or len(rows) < 2:
            return False
        room, free, homes = self.room, self._free, self.homes
        order = sorted(rows, key=room.__getitem__, reverse=True)  # from the least to the most populated row
        any_moved = False
        for index, source in enumerate(order):
            for target in order[:index:-1]:
                largest = room[target]
                if not largest or not (target in changed or source in changed):
                    continue
                for gang in list(homes[source].values()):
                    if gang.nodes <= largest:
                        if gang.columns & free[target] == gang.columns:
                            moved = self._move_on_own_columns(gang, target, guard)
                        else:
                            moved = migrate is not None and migrate(gang, target, guard)
                        if moved:
                            any_moved = True
                            changed |= {source, target}
                            largest = room[target]
                            if guard is not None:
                                guard.moved(gang, source)
        return any_moved

    def _fill(self) -> None:
        """Replicate gangs on their own columns, in starting order, one row at a time each, as long as one can be."""
        room, left, all_columns = self._room_left, self._left, self._all_columns
        rows = self._rows_to_fill()
        most = max([room[row] for row, _ in rows], default=0)
        taken = {row: all_columns ^ left[row] for row, _ in rows}  # a disjoint set is found sooner than a subset
        gangs: Iterable[Occupant[Job]] = self.occupants.values() if rows else ()
        while gangs:
            again = []
            for gang in gangs:
                nodes, standing = gang.nodes, gang.rows
                if nodes <= most:
                    columns = gang.columns
                    for row, bit in rows:
                        if nodes <= room[row] and not standing & bit and not columns & taken[row]:
                            if gang.migrating and not self._within_limit(gang, row):
                                continue
                            taken[row] |= columns
                            room[row] -= nodes
                            gang.rows = standing | bit
                            again.append(gang)
                            break
            self._replicated += again
            # Rows only become fuller, so one that cannot be replicated never can be later.
            gangs = again if len(rows) > 1 else ()
        for row, columns in taken.items():
            left[row] = all_columns ^ columns

    def _rows_to_fill(self) -> list[tuple[int, int]]:
        """Return the rows in use with columns left, and their bits; none if all gangs are at home in the same row."""
        rows, room = self.rows_in_use(), self._room_left
        return [(row, 1 << row) for row in rows if room[row]] if len(rows) > 1 else []

    def _move_on_own_columns(self, gang: Occupant[Job], row: int, guard: Guard[Job] | None) -> bool:
        if (gang.migrating and not self._within_limit(gang, row)) or not (guard is None or guard.may_enter(gang, row)):
            return False
        self._leave_home(gang)
        self._settle_in(gang, row)
        return True

    def _move_by_migration(self, gang: Occupant[Job], row: int, guard: Guard[Job] | None) -> bool:
        """Move ``gang`` to ``row`` by option 1 (those in its way migrate) or option 2 (it does), whichever costs less."""
        if gang.migrating or not (guard is None or guard.may_enter(gang, row)):
            return False
        in_the_way = self._overlapping(gang, row)
        option_1 = self._way_made(gang, in_the_way, row, self._free) if self._can_migrate(in_the_way, row) else None
        option_2 = self._columns_elsewhere(gang, row, self._free) if self._can_migrate([gang], row) else None
        if option_1 is not None and option_2 is not None:
            own = gang.nodes if gang.on_machine else 0
            theirs = [other.nodes for other in in_the_way if other.on_machine]
            if option_1_overhead(own, theirs, *self._cost) > option_2_overhead(own, theirs, *self._cost):
                option_1 = None
        if option_1 is None and option_2 is None:
            return False
        self._leave_home(gang)
        if option_1 is not None:
            self._make_way(gang, in_the_way, option_1, self._free, row)
        elif option_2 is not None:
            self._give_columns(gang, option_2)
            self._note_migration([gang], in_the_way)
        self._settle_in(gang, row)
        return True

    def _replicate_by_migration(self, gang: Occupant[Job], row: int) -> bool:
        if gang.migrating or gang.columns & (self._free[row] ^ self._left[row]):  # replicas have these
            return False
        in_the_way = self._overlapping(gang, row)
        if any(other.rows != 1 << row for other in in_the_way) or not self._can_migrate(in_the_way, row):
            return False
        columns = self._way_made(gang, in_the_way, row, self._left)
        if columns is None:
            return False
        # Those that migrate are at home here, and nowhere else: what is free of their row beside replicas moves with them.
        for other, new in zip(in_the_way, columns, strict=True):
            open_ = self._free[row] | (other.columns & ~self.set_aside if self.set_aside else other.columns)
            self._free[row] = open_ ^ (open_ & new)
        self._make_way(gang, in_the_way, columns, self._left, row)
        self._left[row] ^= self._left[row] & gang.columns
        self._room_left[row] -= gang.nodes
        return True

    def _overlapping(self, gang: Occupant[Job], row: int) -> list[Occupant[Job]]:
        """S(A) of Zhang et al. 2003: the gangs at home in ``row`` that use columns of ``gang``, in starting order."""
        columns = gang.columns
        overlapping = [other for other in self.homes[row].values() if other.columns & columns]
        if len(overlapping) > 1:
            overlapping.sort(key=STARTING_ORDER)
        return overlapping

    def _can_migrate(self, gangs: Iterable[Occupant[Job]], row: int) -> bool:
        """Return whether ``gangs`` may be moved to other columns in ``row``: none is on its way already, and Q allows it."""
        tasks = 0
        for gang in gangs:
            if gang.migrating:
                return False
            if gang.on_machine:
                tasks += gang.nodes
        return self._max_tasks is None or not tasks or tasks + self.tasks_migrating(row) <= self._max_tasks

    def _within_limit(self, gang: Occupant[Job], row: int) -> bool:
        """Return whether ``gang`` may stand in ``row`` as well: if it is still migrating, its tasks count there too."""
        if self._max_tasks is None or not gang.migrating:
            return True
        return gang.nodes + self.tasks_migrating(row) <= self._max_tasks

    def tasks_migrating(self, row: int) -> int:
        """Return how many tasks in a row are on their way to or from the checkpoint store."""
        return sum(gang.nodes for gang in self.row_contents(row) if gang.migrating)

    def _way_made(self, gang: Occupant[Job], in_the_way: list[Occupant[Job]], row: int, free: list[int]) -> list[int] | None:
        """Option 1: return new columns for those in the way of ``gang`` in ``row``; only tasks that are in the way move.

        Returns:
            ``None`` if they have not enough memory there.
        """
        wanted = gang.columns
        open_, columns = free[row] ^ (free[row] & wanted), []
        for other in in_the_way:
            lost = other.columns & wanted
            suitable = self._suitable(other, open_)
            if self.memory is not None and suitable.bit_count() < lost.bit_count():
                return None
            taken = lowest(suitable, lost.bit_count())
            open_ ^= taken
            columns.append(other.columns ^ lost | taken)
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
        return kept | lowest(suitable, gang.nodes - kept.bit_count())

    def _suitable(self, gang: Occupant[Job], columns: int) -> int:
        """Return those of ``columns`` that have enough memory for a task of ``gang``, which it does not hold yet."""
        return columns if self.memory is None else columns & self._with_memory(gang.job)

    def _give_columns(self, gang: Occupant[Job], columns: int) -> None:
        if self.memory is not None:
            self.memory.give_back(from_mask(gang.columns & ~columns), gang.job.memory)
            self._take_memory(gang.job, columns & ~gang.columns)
        gang.columns = columns

    def _make_way(
        self, gang: Occupant[Job], in_the_way: list[Occupant[Job]], columns: list[int], free: list[int], row: int
    ) -> None:
        """Option 1: give those in the way their new ``columns``; those of ``gang`` in ``row`` become free."""
        for other, new in zip(in_the_way, columns, strict=True):
            open_ = free[row] | other.columns
            free[row] = open_ ^ (open_ & new)
            self._give_columns(other, new)
        self._note_migration(in_the_way, [gang])

    def _note_migration(self, moves: list[Occupant[Job]], blocked: list[Occupant[Job]]) -> None:
        """Note a migration; a gang that has not started yet simply starts elsewhere, and no gang waits for it."""
        self._touched += moves
        self._changed_homes.update(gang.home for gang in moves)
        moved = tuple(gang for gang in moves if gang.on_machine)
        if self.migration_counts:
            for gang in moved:
                gang.migrating = True
        if moved:
            self._migrations.append(Migration(moved, tuple(gang for gang in blocked if gang.on_machine)))

    # What the machine has to do.

    def changes(self) -> Change[Job]:
        """Return the difference between the matrix and what the machine has, and take it for done."""
        change = changes_to(self._touched, self._cleaned + self._replicated, self._migrations)
        self._migrations.clear()
        self._touched.clear()
        self._cleaned.clear()
        return change
