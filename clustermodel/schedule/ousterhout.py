"""The Ousterhout matrix: rows are time slices, columns are nodes, and all tasks of a gang stand in the same row.

It is rebuilt at every scheduling event in the separate steps of Zhang et al. 2003, which are methods here in the paper's
words: CleanMatrix, CompactMatrix and FillMatrix of gang scheduling (section 5.1); CollapseMatrix-2 and FillMatrix-2, which
migrate (section 5.4).  Scheduling waiting jobs into it is the policy's business.  A gang has one set of columns, whatever
rows it stands in, so that a migration is paid for once and never recurs.

This is the matrix that a policy plans; :class:`~clustermodel.sim.time_sharing.matrix_rows.MatrixRows` is what the machine has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, Protocol

from clustermodel.schedule.node_set import lowest
from clustermodel.schedule.planned_gangs import Change, Job, Migration, Occupant, changes_to
from clustermodel.theory.migration import option_1_overhead, option_2_overhead


class Guard(Protocol[Job]):
    """Lets reservations veto moving a gang to another home row."""

    def may_enter(self, gang: Occupant[Job], row: int) -> bool:
        """Return whether ``gang`` can have its home in ``row`` without violating a reservation."""

    def moved(self, gang: Occupant[Job], source: int) -> None:
        """Note that the home of ``gang`` has moved from row ``source``."""


class OusterhoutMatrix(Generic[Job]):
    """The matrix.

    Args:
        nodes: number of columns.
        mpl: the most rows.
        checkpoint: time to checkpoint a gang, in any unit.
        restart: time to restart a gang, in the same unit.
        max_tasks: Q, the most tasks that migrate in a slice; ``None`` is no limit.
    """

    def __init__(self, nodes: int, mpl: int, *, checkpoint: int = 0, restart: int = 0, max_tasks: int | None = None) -> None:
        self.nodes = nodes
        self.mpl = mpl
        self.occupants: dict[int, Occupant[Job]] = {}
        """By job id, in starting order."""
        self.homes: list[dict[int, Occupant[Job]]] = [{} for _ in range(mpl)]
        """The gangs at home in each row."""
        self.undivided: dict[int, Occupant[Job]] = {}
        """The gangs that stand in every row in use, by job id."""
        self.set_aside = 0
        """Columns that no other gang gets in any row, a bitmask: undivided gangs have them or will, or their nodes are down."""
        self._kept: dict[int, int] = {}  # a job that has, or waits for, columns in every row, or an outage -> the columns
        self._starts = 0
        self.room = [nodes] * mpl
        """Number of columns of each row that no gang at home there takes."""
        self._free = [(1 << nodes) - 1] * mpl  # these columns
        # The same with replicas counted as well.
        self._room_left = self.room.copy()
        self._left = self._free.copy()
        self._replicated: list[Occupant[Job]] = []
        self._changed_homes: set[int] = set()  # rows whose gangs at home have changed since the last compaction
        self._touched: list[Occupant[Job]] = []  # gangs that may differ from what the machine has; some more than once
        self._migrations: list[Migration[Job]] = []
        # With free migration the tasks moved decide between the options, as they do at any cost.
        self._cost = (checkpoint, restart) if checkpoint + restart else (1, 1)
        self._max_tasks = max_tasks
        self.migration_counts = checkpoint + restart > 0 or max_tasks is not None
        """Whether migration costs something or is limited; if not, a gang may be moved as often as one event likes."""

    def rows_in_use(self) -> list[int]:
        """Return the rows that are not empty."""
        return [row for row in range(self.mpl) if self.homes[row]]

    @property
    def occupancy(self) -> float:
        """Share of the columns in use, replicas included, averaged over the rows in use; 0 for an empty matrix."""
        rows = self.rows_in_use()
        return 1 - sum(self._room_left[row] for row in rows) / (self.nodes * len(rows)) if rows else 0.0

    def row_contents(self, row: int) -> list[Occupant[Job]]:
        """Return the gangs in ``row``, replicas included, in starting order."""
        return [gang for gang in self.occupants.values() if gang.rows >> row & 1]

    # Jobs come and go.

    def add(self, job: Job, row: int, columns: int | None = None) -> Occupant[Job]:
        """Give ``job`` columns of ``row``, its home row without replicas: the lowest free ones unless others are named."""
        self._starts += 1
        gang = Occupant(job, lowest(self._free[row], job.nodes) if columns is None else columns, row, self._starts)
        self.occupants[job.id] = gang
        self._settle_in(gang, row)
        return gang

    def keep_free(self, columns: int, number: int) -> None:
        """Set columns aside in all rows, for a job or an outage of this number; gangs that hold them may stay."""
        self._kept[number] = columns
        self.set_aside |= columns
        for row, free in enumerate(self._free):
            self._free[row] = free & ~columns
            self.room[row] -= (free & columns).bit_count()

    def give_up(self, number: int) -> None:
        """Set no columns aside any more for a job that has not been added, or for an outage that is over."""
        before, self.set_aside = self.set_aside, 0
        del self._kept[number]
        for columns in self._kept.values():
            self.set_aside |= columns
        freed = before & ~self.set_aside
        self._changed_homes.update(range(self.mpl))
        for row in range(self.mpl):
            free = freed & self._home_columns_free(row)
            self._free[row] |= free
            self.room[row] += free.bit_count()

    def add_undivided(self, job: Job, columns: int) -> Occupant[Job]:
        """Give ``job`` columns that have been set aside and that no gang holds any more, in every row in use."""
        self._starts += 1
        gang = self.occupants[job.id] = self.undivided[job.id] = Occupant(job, columns, 0, self._starts)
        return gang

    def is_free(self, columns: int, row: int) -> bool:
        """Return whether no gang is at home on any of these columns of a row, and they are not set aside."""
        return self._free[row] & columns == columns

    def remove(self, job_id: int) -> None:
        """Take a gang out of all rows."""
        gang = self.occupants.pop(job_id)
        gang.rows = 0
        if job_id not in self.undivided:
            self._leave_home(gang)
            return
        del self.undivided[job_id]
        self.give_up(job_id)

    def fullest_row(self, nodes: int, rows: Iterable[int] | None = None) -> int | None:
        """Return the row with the fewest free columns of those that have ``nodes`` (best fit), ``None`` if none has.

        Args:
            nodes: number of columns wanted.
            rows: the rows to look at; all by default.
        """
        best, least = None, self.nodes + 1
        for row in range(self.mpl) if rows is None else rows:
            if nodes <= self.room[row] < least:
                best, least = row, self.room[row]
        return best

    # The steps of Zhang et al. 2003, section 5.1.

    def clean(self) -> None:
        """CleanMatrix: remove every instance of a gang that is not in its home row."""
        for gang in self._replicated:
            if gang.rows:  # otherwise it has ended
                gang.rows = 1 << gang.home
        self._touched += self._replicated
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
        """FillMatrix-2: as FillMatrix, but gangs that are in the way migrate within the target row (option 1)."""
        self._fill(self._replicate_by_migration)

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
        if not changed:
            return False
        order = self.rows_in_use()
        room, free, homes = self.room, self._free, self.homes
        order.sort(key=room.__getitem__, reverse=True)  # from the least to the most populated row
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

    def _fill(self, replicate: Callable[[Occupant[Job], int], bool] | None = None) -> None:
        """Replicate gangs, in starting order, one row at a time each, as long as one can be: on its own columns, or else by
        ``replicate``.
        """
        room, left = self._room_left, self._left
        rows = [(row, 1 << row) for row, gangs in enumerate(self.homes) if gangs and room[row]]
        if not rows:
            return
        most = max([room[row] for row, _ in rows])
        somewhere = 0  # columns that are free in some row
        for row, _ in rows:
            somewhere |= left[row]
        candidates = [
            gang
            for gang in self.occupants.values()
            if gang.nodes <= most and (replicate is not None or gang.columns & somewhere == gang.columns)
        ]
        gangs = candidates
        while gangs:
            again = []
            moved = False
            for gang in gangs:
                nodes, columns, standing = gang.nodes, gang.columns, gang.rows
                for row, bit in rows:
                    if nodes <= room[row] and not standing & bit:
                        if columns & left[row] == columns:
                            if gang.migrating and not self._within_limit(gang, row):
                                continue
                            left[row] ^= columns
                            room[row] -= nodes
                        elif replicate is not None and replicate(gang, row):
                            moved = True
                        else:
                            continue
                        gang.rows = standing | bit
                        again.append(gang)
                        break
            self._replicated += again
            # Rows only become fuller, so one that cannot be replicated never can be later, unless columns have changed.
            gangs = candidates if moved else again

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
        option_1 = self._make_way if self._can_migrate(in_the_way, row) else None
        option_2 = self._go_elsewhere if self._can_migrate([gang], row) else None
        if option_1 and option_2:
            own = gang.nodes if gang.on_machine else 0
            theirs = [other.nodes for other in in_the_way if other.on_machine]
            if option_1_overhead(own, theirs, *self._cost) > option_2_overhead(own, theirs, *self._cost):
                option_1 = None
        chosen = option_1 or option_2
        if chosen is None:
            return False
        self._leave_home(gang)
        chosen(gang, in_the_way, row, self._free)
        self._settle_in(gang, row)
        return True

    def _replicate_by_migration(self, gang: Occupant[Job], row: int) -> bool:
        in_the_way = self._overlapping(gang, row)
        if gang.migrating or any(other.rows != 1 << row for other in in_the_way) or not self._can_migrate(in_the_way, row):
            return False
        self._make_way(gang, in_the_way, row, self._left)
        # Those that made way are at home here, and nowhere else: what is free of their row beside replicas moved with them.
        self._free[row] = self._home_columns_free(row)
        self._left[row] &= ~gang.columns
        self._room_left[row] -= gang.nodes
        return True

    def _overlapping(self, gang: Occupant[Job], row: int) -> list[Occupant[Job]]:
        """S(A) of Zhang et al. 2003: the gangs in ``row`` that use columns of ``gang``."""
        return [other for other in self.row_contents(row) if other.columns & gang.columns]

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

    def _make_way(self, gang: Occupant[Job], in_the_way: list[Occupant[Job]], row: int, free: list[int]) -> None:
        """Option 1: those in the way give up the columns of ``gang`` in ``row`` for free ones; only those tasks move."""
        wanted = gang.columns
        open_ = free[row] & ~wanted
        for other in in_the_way:
            lost = other.columns & wanted
            taken = lowest(open_, lost.bit_count())
            open_ &= ~taken
            other.columns = other.columns & ~lost | taken
        free[row] = open_ | wanted
        self._note_migration(in_the_way, [gang])

    def _go_elsewhere(self, gang: Occupant[Job], in_the_way: list[Occupant[Job]], row: int, free: list[int]) -> None:
        """Option 2: ``gang`` keeps those of its columns that are free in ``row`` and takes other free ones for the rest."""
        kept = gang.columns & free[row]
        gang.columns = kept | lowest(free[row] & ~kept, gang.nodes - kept.bit_count())
        self._note_migration([gang], in_the_way)

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

    def _leave_home(self, gang: Occupant[Job]) -> None:
        self._changed_homes.add(gang.home)
        freed = gang.columns & ~self.set_aside
        self._free[gang.home] |= freed
        self.room[gang.home] += freed.bit_count() if self.set_aside else gang.nodes
        del self.homes[gang.home][gang.job.id]

    def _settle_in(self, gang: Occupant[Job], row: int) -> None:
        self._changed_homes.add(row)
        self._free[row] &= ~gang.columns
        self.room[row] -= gang.nodes
        self.homes[row][gang.job.id] = gang
        gang.home = row
        gang.rows = 1 << row
        self._touched.append(gang)

    def _home_columns_free(self, row: int) -> int:
        free = (1 << self.nodes) - 1 & ~self.set_aside
        for gang in self.homes[row].values():
            free &= ~gang.columns
        return free

    # What the machine has to do.

    def changes(self) -> Change[Job]:
        """Return the difference between the matrix and what the machine has, and take it for done."""
        change = changes_to(self._touched + self._replicated, self._migrations)
        self._migrations.clear()
        self._touched.clear()
        return change
