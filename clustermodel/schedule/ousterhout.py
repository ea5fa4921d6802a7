"""The Ousterhout matrix: rows are time slices, columns are nodes, and all tasks of a gang stand in the same row.

It is rebuilt at every scheduling event in the separate steps of Zhang et al. 2003, which are methods here in the paper's
words: CleanMatrix, CompactMatrix and FillMatrix of gang scheduling (section 5.1); CollapseMatrix-2 and FillMatrix-2, which
migrate (section 5.4).  Scheduling waiting jobs into it is the policy's business.  A gang has one set of columns, whatever
rows it stands in, so that a migration is paid for once and never recurs.

This is the matrix that a policy plans; :class:`~clustermodel.sim.time_sharing.matrix_rows.MatrixRows` is what the machine has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from clustermodel.schedule.column_strips import ColumnStrips
from clustermodel.schedule.matrix_migrations import Guard, MatrixMigrations
from clustermodel.schedule.planned_gangs import Change, Job, Occupant, changes_to


class OusterhoutMatrix(MatrixMigrations[Job]):
    """The matrix.

    Args:
        nodes: number of columns.
        mpl: the most rows.
        checkpoint: time to checkpoint a gang, in any unit.
        restart: time to restart a gang, in the same unit.
        max_tasks: Q, the most tasks that migrate in a slice; ``None`` is no limit.
        counts: which tasks of a gang that migrates count; see :class:`~clustermodel.machine.Checkpointing`.
        strips: see :class:`~clustermodel.schedule.matrix_columns.MatrixColumns`.
    """

    def __init__(
        self,
        nodes: int,
        mpl: int,
        *,
        checkpoint: int = 0,
        restart: int = 0,
        max_tasks: int | None = None,
        counts: str = "gang",
        strips: bool = False,
    ) -> None:
        super().__init__(nodes, mpl, checkpoint=checkpoint, restart=restart, max_tasks=max_tasks, counts=counts, strips=strips)
        # Columns left, with replicas counted as well.
        self._room_left = self.room.copy()
        self._left: list[int] = []  # while it is filled
        self._fixed: list[int] = []  # columns whose tasks do not move meanwhile
        self._replicated: list[Occupant[Job]] = []  # gangs with replicas; some more than once
        self._cleaned: list[Occupant[Job]] = []  # those that had some before the matrix was cleaned

    @property
    def occupancy(self) -> float:
        """Share of the columns in use, replicas included, averaged over the rows in use; 0 for an empty matrix.

        Columns that are set aside, as those of nodes that are down, do not count.
        """
        rows = self.rows_in_use()
        columns = len(rows) * (self.nodes - self._count(self.set_aside))
        return 1 - sum(self._room_left[row] for row in rows) / columns if columns else 0.0

    @property
    def is_one_row(self) -> bool:
        """Whether at most one row is in use, and all gangs stand in it alone."""
        return len(self._in_use) < 2 and not (self._replicated or self.undivided)

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
        if not rows:
            return
        room, left = self._room_left, self._left
        most, bits = max([room[row] for row, _ in rows]), sum([bit for _, bit in rows])
        # Rows only become fuller, so the others never can be replicated later.
        candidates = [gang for gang in self.occupants.values() if gang.nodes <= most and bits & ~gang.rows]
        if not candidates:
            return
        fixed = self._fixed = [0] * self.mpl
        for row, _ in rows:
            fixed[row] = self._fixed_columns(row)
        gangs = candidates
        while gangs:
            again = []
            moved = False
            for gang in gangs:
                nodes, standing, columns = gang.nodes, gang.rows, gang.columns
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
            gangs = candidates if moved else again

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
        sizes_decide = guard is None and migrate is None and not self.migration_counts
        rows, changed = self._in_use, self._changed_homes
        if len(rows) < 2 or (sizes_decide and not changed):
            return False
        if sizes_decide:
            self._changed_homes = set()  # moves fill it again
        else:
            changed = set(rows)
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
        rows = self._rows_to_fill()
        if not rows:
            return
        room, left, all_columns = self._room_left, self._left, self._all_columns
        taken = [all_columns ^ columns for columns in left]  # a disjoint set is found sooner than a subset
        gangs: Iterable[Occupant[Job]] = self.occupants.values()
        while gangs:
            taken_in_all = all_columns
            for row, _ in rows:
                taken_in_all &= taken[row]
            again = []
            for gang in [gang for gang in gangs if not gang.columns & taken_in_all]:
                columns = gang.columns
                for row, bit in rows:
                    if not columns & taken[row]:
                        if gang.migrating and not self._within_limit(gang, row):
                            continue
                        taken[row] |= columns
                        room[row] -= gang.nodes
                        gang.rows |= bit
                        again.append(gang)
                        break
            self._replicated += again
            # Rows only become fuller, so one that cannot be replicated never can be later.
            gangs = again if len(rows) > 1 else ()
        for row, _ in rows:
            left[row] = all_columns ^ taken[row]

    def _rows_to_fill(self) -> list[tuple[int, int]]:
        """Return the rows in use with columns left, and their bits; none if all gangs are at home in the same row."""
        rows, room = self._in_use, self._room_left
        return [(row, 1 << row) for row in rows if room[row]] if len(rows) > 1 else []

    def _move_on_own_columns(self, gang: Occupant[Job], row: int, guard: Guard[Job] | None) -> bool:
        if (gang.migrating and not self._within_limit(gang, row)) or not (guard is None or guard.may_enter(gang, row)):
            return False
        self._leave_home(gang)
        self._settle_in(gang, row)
        return True

    def _replicate_by_migration(self, gang: Occupant[Job], row: int) -> bool:
        if gang.migrating or gang.columns & (self._free[row] ^ self._left[row]):  # replicas have these
            return False
        in_the_way, at_home_only = self._overlapping(gang, row), 1 << row
        for other in in_the_way:
            if other.rows != at_home_only:
                return False
        if not self._can_migrate(in_the_way, row, ~gang.columns):
            return False
        columns = self._columns_for_displaced(gang, in_the_way, row, self._left)
        if columns is None:
            return False
        # Those that migrate are at home here, and nowhere else: what is free of their row beside replicas moves with them.
        for other, new in zip(in_the_way, columns, strict=True):
            open_ = self._free[row] | (other.columns & ~self.set_aside if self.set_aside else other.columns)
            self._free[row] = open_ ^ (open_ & new)
            if self.set_aside:  # what was set aside of its columns does not become free
                self.room[row] -= self._count(other.columns & self.set_aside & ~new)
        self._displace(gang, in_the_way, columns, self._left, row)
        self._left[row] ^= self._left[row] & gang.columns
        self._room_left[row] -= gang.nodes
        return True

    # What the machine has to do.

    def changes(self) -> Change[Job]:
        """Return the difference between the matrix and what the machine has, and take it for done."""
        change = changes_to(self._touched, self._cleaned + self._replicated, self._migrations, self.nodes_of)
        self._migrations.clear()
        self._touched.clear()
        self._cleaned.clear()
        self._left, self._fixed = [], []  # until it is filled again
        self._join_strips()
        return change

    def _renew_masks(self, strips: ColumnStrips) -> None:
        super()._renew_masks(strips)
        for masks in (self._left, self._fixed):
            for row, columns in enumerate(masks):
                masks[row] = strips.renewed(columns)
