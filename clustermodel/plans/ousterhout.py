"""The Ousterhout matrix that a policy plans: rows are time slices, columns are nodes; all tasks of a gang stand in one row.

It is rebuilt at every scheduling event in the separate steps of Zhang et al.  2003, which are methods here in the paper's
words: CleanMatrix, CompactMatrix and FillMatrix of gang scheduling (section 5.1); CollapseMatrix-2 and FillMatrix-2, which
migrate (section 5.4). A gang has one set of columns, whatever rows it stands in, so that a migration is paid for once and never
recurs.  A set of columns is a bitmask, column 0 in the lowest bit: "are these columns free in that row?"  is one operation
then.  On a wide machine ``&``, ``|`` and ``^`` of bitmasks cost less than ``~``, comparing them and counting their bits. So
rows keep the columns that are taken, and a gang fits where it has none of them.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from itertools import combinations
from math import comb
from operator import attrgetter, or_
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from clustermodel.machine.node_set import as_mask, bisect_left, bisect_right, from_mask, lowest
from clustermodel.plans.free_memory import FreeMemory
from clustermodel.theory.migration import option_1_overhead, option_2_overhead

if TYPE_CHECKING:
    from clustermodel.plans.pools import Pools
    from clustermodel.plans.rows import RowPlans
    from clustermodel.policies.interface import MaskedPlace
    from clustermodel.policies.view import QueuedJob


_MOST_CHOICES: Final = 2_000  # choices of gangs of one number that are compared; beyond that the search is greedy


class Occupant:
    """A gang in the matrix."""

    __slots__ = (
        "columns", "home", "job", "migrating", "moving", "nodes", "order", "placed_columns", "placed_home", "placed_rows",
        "rows",
    )  # fmt: skip

    def __init__(self, job: QueuedJob, columns: int, home: int, order: int) -> None:
        self.job = job
        self.order: object = order  # its number in the order of starts; kept as an object, for sorts, where this is compiled
        self.nodes = job.nodes
        self.columns = columns  # its columns, a bitmask
        self.home = home  # its home row
        self.rows = 1 << home  # the rows it stands in, the home row and those with a replica: a bitmask
        self.migrating = False  # whether it has still to pay for a move to other columns; it is not moved again until then
        self.moving = job.nodes  # how many of its tasks count as migrating while it is
        # Where it is on the machine: in no row before it starts.
        self.placed_columns = self.placed_rows = self.placed_home = 0

    @property
    def on_machine(self) -> bool:
        return self.placed_rows > 0


STARTING_ORDER: Final = attrgetter("order")


def _room(row: tuple[int, int]) -> int:
    return row[0]


def _number_of_rows(gang: Occupant) -> int:
    return gang.rows.bit_count()


class Change(NamedTuple):
    """What has to change on the machine."""

    places: list[MaskedPlace]
    migrations: list[tuple[tuple[QueuedJob, ...], tuple[QueuedJob, ...]]]  # gangs that get other columns, that wait


class MemoryReservation(NamedTuple):
    """Memory that a waiting job will have, on columns that have been chosen for it."""

    job_id: int
    start: int  # when it will have the memory, as predicted, ticks
    left: FreeMemory  # the free memory of each column at that time, without what the job needs
    short: int  # of the columns chosen for the job, the one with the least free memory now

    def holds_against(self, job_id: int, end: int | None) -> bool:
        """Return whether the reservation excludes this job (it may still run when the reservation starts)."""
        return job_id != self.job_id and (end is None or end > self.start)


class Guard(Protocol):
    """Lets reservations veto moving a gang to another home row."""

    def may_enter(self, gang: Occupant, row: int, *, migrates: bool = False) -> bool:
        """Return whether ``gang`` can have its home in ``row``, perhaps on other columns, without violating a reservation."""

    def moved(self, gang: Occupant, source: int, columns: int) -> None:
        """Note that the home of ``gang`` has moved from row ``source``, where it had ``columns``, a bitmask."""


class OusterhoutMatrix:
    """The matrix, and the gangs at home in its rows."""

    # `checkpoint` and `restart` are the costs of a migration, in any unit; of `max_tasks` (Q) and `counts` see Checkpointing.
    # `pools` are those of a machine on which jobs may have some columns only.  Then gangs that are at home in a row leave as
    # many nodes of each pool as its reservations need: that is checked wherever columns are chosen.

    def __init__(
        self,
        nodes: int,
        mpl: int,
        *,
        checkpoint: int = 0,
        restart: int = 0,
        max_tasks: int | None = None,
        counts: str = "gang",
        pools: Pools | None = None,
    ) -> None:
        self.nodes = nodes
        self.mpl = mpl
        self._pools = pools
        self.plans: RowPlans | None = None  # what reservations leave of each pool, if there are pools and reservations
        self.columns_now: Callable[[QueuedJob], int] | None = None  # which a job may have from now on, where windows bar some
        self._closed = 0  # columns that no job may have as one ahead of it waits for them
        self.occupants: dict[int, Occupant] = {}  # by job id, in starting order
        self._sizes: list[int] = []  # of all gangs, ascending
        self._by_size: list[Occupant] = []  # the gangs in this order
        self.homes: list[dict[int, Occupant]] = [{} for _ in range(mpl)]  # the gangs at home in each row
        self.undivided: dict[int, Occupant] = {}  # the gangs that stand in every row in use, by job id
        self.set_aside = 0  # columns of undivided gangs or of nodes that are down, which no other gang gets: a bitmask
        self.room = [nodes] * mpl  # free columns of each row: no gang at home there holds them, and they are not set aside
        self.memory: FreeMemory | None = None  # the free memory of each column in this plan; ``None`` where it is not limited
        self.memory_reservation: MemoryReservation | None = None  # of the first job that lacks some; ``None`` if no job does
        self.migration_counts = checkpoint + restart > 0 or max_tasks is not None  # if not, gangs may move again and again
        # With free migration the tasks moved decide between the options, as they do at any cost.
        self._cost = (checkpoint, restart) if checkpoint + restart else (1, 1)
        self._max_tasks = max_tasks
        self._counts = counts
        self._kept: dict[int, int] = {}  # a job that has, or waits for, columns in every row, or an outage -> the columns
        self._starts = 0
        self._all_columns = (1 << nodes) - 1
        self._taken = [0] * mpl  # the columns of each row that are not free, bitmasks
        self.rows_in_use: list[int] = []  # those with gangs at home, ascending
        self._changed_homes: set[int] = set()  # rows whose gangs at home have changed since CollapseMatrix has looked at them
        self._uncollapsed: set[int] = set()  # rows with room for a gang, but not on its columns: it can only migrate there
        # While the matrix is filled: free columns left and those taken, with replicas counted as well.
        self._room_left = self.room.copy()
        self._filled: list[int] = []
        # What may differ from the machine:
        self._touched: set[Occupant] = set()  # gangs that have started or moved
        self._replicated: set[Occupant] = set()  # gangs with replicas
        self._cleaned: set[Occupant] = set()  # those that had some before the matrix was cleaned
        self._migrations: list[tuple[list[Occupant], list[Occupant]]] = []  # which gangs have moved, and which wait meanwhile

    @property
    def occupancy(self) -> float:
        """Share of the columns not set aside that are in use, replicas included, averaged over the rows in use."""
        rows = self.rows_in_use
        columns = len(rows) * (self.nodes - self.set_aside.bit_count())
        return 1 - sum(self._room_left[row] for row in rows) / columns if columns else 0.0

    @property
    def is_one_row(self) -> bool:
        """Whether at most one row is in use, and all gangs stand in it alone."""
        return len(self.rows_in_use) < 2 and not (self._replicated or self.undivided)

    # Jobs come and go.

    def add(self, job: QueuedJob, row: int, columns: int | None = None, end: int | None = None, kept: int = 0) -> Occupant:
        """Give ``job`` columns of ``row``, its home row without replicas: the lowest suitable ones unless others are named."""
        # `kept` are the columns whose memory holds the job already, `end` is when it is predicted to end.
        if columns is None:
            columns = lowest(self.columns_for(job, row, kept, end), job.nodes)
        gang = self._new(job, columns, row, kept, end)
        self._settle_in(gang, row)
        return gang

    def _new(self, job: QueuedJob, columns: int, row: int, kept: int, end: int | None = None) -> Occupant:
        self._starts += 1
        gang = self.occupants[job.id] = Occupant(job, columns, row, self._starts)
        place = bisect_right(self._sizes, gang.nodes)
        self._sizes.insert(place, gang.nodes)
        self._by_size.insert(place, gang)
        self._take_memory(job, columns & ~kept, end)
        return gang

    def columns_for(self, job: QueuedJob, row: int, kept: int = 0, end: int | None = None) -> int:
        """Return the free columns of a row that have enough memory for a task of ``job``, a bitmask; see :meth:`add`."""
        # Where there are pools: as many as the job needs, or fewer, of those that are not reserved.
        free = self._free(row)
        if self._pools is not None:
            return self._choose_of(job, free & (self._with_memory(job, end) | kept), self._allowances(job, row, end))
        return free if self.memory is None else free & (self._with_memory(job, end) | kept)

    def has_columns_for(self, job: QueuedJob, row: int, end: int) -> bool:
        """Return whether a row has enough columns for a job that pools let it have, wherever there is memory."""
        if self._pools is None:
            return self.room[row] >= job.nodes
        return self._choose_of(job, self._free(row), self._allowances(job, row, end)).bit_count() >= job.nodes

    def room_for(self, job: QueuedJob, row: int) -> int:
        """Return how many free columns of a row a job may have, reservations aside."""
        if self._pools is None:
            return self.room[row]
        free = self._free(row)
        return max([(free & mask).bit_count() for mask in self.sets_of_columns(job)], default=0)

    def _allowances(self, job: QueuedJob, row: int, end: int | None = None) -> list[int]:
        """Return how many nodes of each pool reservations let a job, or a gang, have in a row until ``end``."""
        assert self._pools is not None
        return self._pools.sizes if self.plans is None else self.plans.allowances(job.id, row, end)

    def _choose_of(self, job: QueuedJob, suitable: int, allowances: Sequence[int]) -> int:
        """Return :meth:`_choose` for a job that starts, in the first of its sets of columns that has enough."""
        chosen = 0
        for mask in self.sets_of_columns(job):
            chosen = self._choose(0, suitable & mask, job.nodes, allowances)
            if chosen.bit_count() >= job.nodes:
                break
        return chosen

    def _choose(self, preferred: int, others: int, nodes: int, allowances: Sequence[int]) -> int:
        """Return ``nodes`` columns, or as many as there are: the lowest of each pool, of the first pools as many as allowed."""
        assert self._pools is not None
        chosen, left = 0, list(allowances)
        for columns in (preferred, others):
            if not columns:
                continue
            for pool, mask in enumerate(self._pools.masks):
                suitable = columns & mask
                if (number := min(suitable.bit_count(), left[pool], nodes)) > 0:
                    chosen |= lowest(suitable, number)
                    left[pool] -= number
                    nodes -= number
        return chosen

    def close(self, job: QueuedJob) -> bool:
        """Keep the columns that a job may have from the jobs behind it; return whether any are left for these."""
        if self._pools is None:
            return False
        self._closed |= self._all_columns if job.allowed is None else self._pools.mask(job.allowed)
        return self._closed != self._all_columns

    def reopen(self) -> None:
        """Let jobs have all columns again that they may have."""
        self._closed = 0

    def _free(self, row: int) -> int:
        """Return the free columns of a row, a bitmask."""
        return self._all_columns ^ self._taken[row]

    def eligible(self, job: QueuedJob) -> int:
        """Return the columns that ``job`` may have, a bitmask."""
        if self.columns_now is not None:
            return self.columns_now(job)
        return self._all_columns if self._pools is None or job.allowed is None else as_mask(job.allowed)

    def sets_of_columns(self, job: QueuedJob) -> list[int]:
        """Return the sets of columns, bitmasks, of which a waiting job may have those of one, in the order of trying."""
        if self._pools is None:
            return [self._all_columns]
        eligible = self.eligible(job)
        return [mask & eligible for mask in self._pools.sets_of(job) if not mask & self._closed]

    def is_free_for(self, job: QueuedJob, columns: int, row: int, end: int | None = None) -> bool:
        """Return whether ``job``, which is in the memory of these columns, can go on there until ``end``."""
        if self._pools is None or not self.is_free(columns, row):
            return self.is_free(columns, row)
        if not any(not columns & ~mask for mask in self.sets_of_columns(job)):
            return False
        return self._choose(columns, 0, job.nodes, self._allowances(job, row, end)) == columns

    def _with_memory(self, job: QueuedJob, end: int | None = None) -> int:
        """Return the columns on which a task of ``job`` may run and can have its memory until ``end``, a bitmask."""
        if self.memory is None:
            return self.eligible(job)
        enough = self.memory.nodes_with(job.memory) & self.eligible(job)
        if self.memory_reservation is not None and self.memory_reservation.holds_against(job.id, end):
            enough &= self.memory_reservation.left.nodes_with(job.memory)
        return enough

    def _take_memory(self, job: QueuedJob, columns: int, end: int | None = None) -> None:
        if self.memory is None:
            return
        nodes = from_mask(columns)
        self.memory.take(nodes, job.memory)
        if self.memory_reservation is not None and self.memory_reservation.holds_against(job.id, end):
            self.memory_reservation.left.take(nodes, job.memory)

    def reserve_memory(self, job: QueuedJob, row: int, ends: Mapping[int, int]) -> MemoryReservation | None:
        """Promise a job memory of enough free columns of ``row`` as soon as gangs end, at predicted times by job id."""
        # Until then, other jobs may have it if they are predicted to end by that time, as in EASY backfilling.  None if
        # suspended jobs keep the memory.
        assert self.memory is not None
        gangs = sorted((ends[number], number) for number in self.occupants if number in ends)
        first: MemoryReservation | None = None
        for eligible in self.sets_of_columns(job):
            reservation = self._memory_in(job, row, gangs, eligible)
            if reservation is not None and (first is None or reservation.start < first.start):
                first = reservation
        self.memory_reservation = first
        return first

    def _memory_in(self, job: QueuedJob, row: int, gangs: list[tuple[int, int]], eligible: int) -> MemoryReservation | None:
        """Return the reservation of a job on some columns, where gangs have predicted ends."""
        assert self.memory is not None
        free, columns, time = self.memory.copy(), self._free(row) & eligible, 0
        suitable = columns & free.nodes_with(job.memory)
        for end, number in gangs:
            if suitable.bit_count() >= job.nodes:
                break
            gang, time = self.occupants[number], end
            free.give_back(from_mask(gang.columns), gang.job.memory)
            if gang.home == row:
                columns |= gang.columns & ~self.set_aside & eligible
            suitable = columns & free.nodes_with(job.memory)
        if suitable.bit_count() < job.nodes:
            return None
        chosen = lowest(suitable, job.nodes)
        short = self.memory.fullest(chosen)
        free.take(from_mask(chosen), job.memory)
        return MemoryReservation(job.id, time, free, short)

    def keep_free(self, columns: int, number: int) -> None:
        """Set columns aside in all rows, for a job or an outage of this number; gangs that hold them may stay."""
        self._kept[number] = columns
        self.set_aside |= columns
        self._changed_homes.update(range(self.mpl))  # the least populated row may be another one now
        for row, taken in enumerate(self._taken):
            self._taken[row] = taken | columns
            self.room[row] -= (columns & ~taken).bit_count()

    def give_up(self, number: int) -> None:
        """Set no columns aside any more for a job, which has left or claims none, or for an outage that is over."""
        given_up = self._kept.pop(number)
        self.set_aside = reduce(or_, self._kept.values(), 0)
        self._changed_homes.update(range(self.mpl))
        for row, at_home in enumerate(self.homes):
            freed = given_up & ~reduce(or_, [gang.columns for gang in at_home.values()], self.set_aside)
            self._taken[row] &= ~freed
            self.room[row] += freed.bit_count()

    def add_undivided(self, job: QueuedJob, columns: int, *, kept: int = 0) -> Occupant:
        """Give ``job`` columns that have been set aside and that no gang holds any more, in every row in use."""
        gang = self.undivided[job.id] = self._new(job, columns, 0, kept)
        return gang

    def is_free(self, columns: int, row: int) -> bool:
        """Return whether no gang is at home on any of these columns of a row, and they are not set aside."""
        return not self._taken[row] & columns

    def remove(self, job_id: int) -> None:
        gang = self.occupants.pop(job_id)
        self._touched.discard(gang)
        self._replicated.discard(gang)
        self._cleaned.discard(gang)
        place = self._by_size.index(gang, bisect_left(self._sizes, gang.nodes))
        del self._sizes[place], self._by_size[place]
        if job_id not in self.undivided:
            self._leave_home(gang)
            return
        del self.undivided[job_id]
        self.give_up(job_id)

    def fullest_row(self, nodes: int, rows: Iterable[int] | None = None) -> int | None:
        """Return the row, of ``rows`` or all, with the fewest free columns of those that have ``nodes`` (best fit)."""
        best, least = None, self.nodes + 1
        for row in range(self.mpl) if rows is None else rows:
            if nodes <= self.room[row] < least:
                best, least = row, self.room[row]
        return best

    def fullest_row_for(self, job: QueuedJob, rows: Iterable[int]) -> int | None:
        """Return the row with the fewest free columns that a job may have, of those that have enough (best fit)."""
        fitting = [(room, row) for row in rows if (room := self.room_for(job, row)) >= job.nodes]
        return min(fitting, key=_room, default=(0, None))[1]

    def _leave_home(self, gang: Occupant) -> None:
        self._changed_homes.add(gang.home)
        row, freed, nodes = gang.home, gang.columns, gang.nodes
        if self.set_aside:
            freed &= ~self.set_aside
            nodes = freed.bit_count()
        self._taken[row] ^= freed
        self.room[row] += nodes
        at_home = self.homes[row]
        del at_home[gang.job.id]
        if not at_home:
            self.rows_in_use.remove(row)

    def _settle_in(self, gang: Occupant, row: int) -> None:
        self._changed_homes.add(row)
        self._taken[row] |= gang.columns
        self.room[row] -= gang.nodes
        at_home = self.homes[row]
        if not at_home:
            insort(self.rows_in_use, row)
        at_home[gang.job.id] = gang
        gang.home = row
        gang.rows = 1 << row
        self._touched.add(gang)

    # The steps of Zhang et al. 2003, section 5.1.

    def clean(self) -> None:
        """CleanMatrix: remove every instance of a gang that is not in its home row."""
        for gang in self._replicated:
            gang.rows = 1 << gang.home
        self._cleaned |= self._replicated
        self._replicated.clear()

    def compact(self, guard: Guard | None = None) -> bool:
        """CompactMatrix (CollapseMatrix-1): move gangs, on their columns, to more populated rows; return whether one moved."""
        return self._collapse(guard, False)

    def fill(self) -> None:
        """FillMatrix (FillMatrix-1): replicate gangs, on their columns, into other rows as long as one can be."""
        self._filled, self._room_left = self._taken.copy(), self.room.copy()
        rows = self.rows_in_use
        for undivided in self.undivided.values():
            undivided.home, undivided.rows = rows[0] if rows else 0, sum(1 << row for row in rows or [0])
            self._touched.add(undivided)
        if len(rows) < 2:
            return
        # The paper gives each gang a replica, in the first row where it fits, before any gets another one.  So the gangs that
        # fit in a row take it in the order of their replicas in the rows before it, then of their starts.  Those of one other
        # row are not in each other's way.
        replicated, sizes, by_size = self._replicated, self._sizes, self._by_size
        for row in rows:
            if not (room := self.room[row]):
                continue
            taken, bit = self._taken[row], 1 << row
            fitting = [gang for gang in by_size[: bisect_right(sizes, room)] if not gang.columns & taken]
            if not fitting:
                continue
            if len(fitting) > 1 and (len(rows) > 2 or self._max_tasks is not None):
                fitting.sort(key=STARTING_ORDER)
                if replicated:
                    fitting.sort(key=_number_of_rows)
            for gang in fitting:
                columns = gang.columns
                if columns & taken or (gang.migrating and not self._within_limit(gang, row)):
                    continue
                taken |= columns
                room -= gang.nodes
                gang.rows |= bit
                replicated.add(gang)
            self._filled[row], self._room_left[row] = taken, room

    # The steps of Zhang et al. 2003, section 5.4.

    def collapse_with_migration(self, guard: Guard | None = None) -> bool:
        """CollapseMatrix-2: as :meth:`compact`, but to any columns of the target row, by the cheaper of the two options."""
        return self._collapse(guard, True)

    def fill_with_migration(self) -> None:
        """FillMatrix-2: as FillMatrix, which came before, but gangs in the way migrate within the target row (option 1)."""
        room, filled = self._room_left, self._filled
        rows, most, bits = [], 0, 0
        for row in self.rows_in_use if len(self.rows_in_use) > 1 else ():
            if left := room[row]:
                rows.append(row)
                bits |= 1 << row
                most = left if left > most else most
        # Rows only become fuller, so the others never can be replicated later.
        candidates = [gang for gang in self._by_size[: bisect_right(self._sizes, most)] if bits & ~gang.rows]
        if not candidates:
            return
        candidates.sort(key=STARTING_ORDER)
        fixed = self._fixed_columns()
        gangs = candidates
        while gangs:
            again = []
            moved = refused = False
            for gang in gangs:
                nodes, standing, columns = gang.nodes, gang.rows, gang.columns
                for row in rows:
                    if nodes > room[row] or standing >> row & 1:
                        continue
                    if columns & fixed[row]:
                        refused = True
                        continue
                    if not columns & filled[row]:
                        if gang.migrating and not self._within_limit(gang, row):
                            continue
                        filled[row] |= columns
                        room[row] -= nodes
                    elif self._replicate_by_migration(gang, row):
                        moved = True
                    else:
                        refused = True
                        continue
                    gang.rows = standing | 1 << row
                    fixed[row] |= columns
                    fixed[gang.home] |= columns
                    again.append(gang)
                    break
            self._replicated.update(again)
            # Rows only become fuller, but columns that have changed may suit a gang that was refused.
            gangs = candidates if moved and refused else again

    def _fixed_columns(self) -> list[int]:
        """Return, for each row, the columns of replicas and of gangs at home there that have replicas: these do not move."""
        if len(self.rows_in_use) == 2:
            return [0] * self.mpl  # they are not in the way of the gangs of the other row
        fixed = [filled ^ taken for filled, taken in zip(self._filled, self._taken)]  # noqa: B905  equally many
        for gang in self._replicated:
            fixed[gang.home] |= gang.columns
        for gang in self.undivided.values():
            fixed = [columns | gang.columns for columns in fixed]
        return fixed

    # How the steps go about it.

    def _collapse(self, guard: Guard | None, migrates: bool) -> bool:
        """Move gangs from less to more populated rows: on their own columns, or else by migration."""
        # A gang that was too large for another row, or found its columns taken there, still does if neither row has changed.
        changed, self._changed_homes = self._changed_homes, set()  # moves fill it again
        if migrates:
            changed |= self._uncollapsed
            self._uncollapsed.clear()
        rows = self.rows_in_use
        if not changed or len(rows) < 2:
            return False
        room, taken, homes = self.room, self._taken, self.homes
        smallest = self._sizes[0]
        order = [row for row in rows if room[row] >= smallest]  # the others are full
        if len(order) < 2:
            return False
        order.sort(key=room.__getitem__, reverse=True)  # from the least to the most populated row
        any_moved = False
        for index, source in enumerate(order):
            for target in order[:index:-1]:
                if not (target in changed or source in changed):
                    continue
                largest = room[target]
                for gang in list(homes[source].values()):
                    if gang.nodes > largest:
                        continue
                    fits = not gang.columns & taken[target]
                    if not (fits or migrates):
                        self._uncollapsed.add(target)
                        continue
                    columns = gang.columns
                    may_move = self._within_limit(gang, target) if fits else not gang.migrating
                    if (
                        not may_move
                        or (guard is not None and not guard.may_enter(gang, target, migrates=not fits))
                        or not (self._change_home(gang, target) if fits else self._move_by_migration(gang, target))
                    ):
                        self._changed_homes.add(target)  # what was in its way may go while the rows remain as they are
                        continue
                    any_moved = True
                    changed |= {source, target}
                    largest = room[target]
                    if guard is not None:
                        guard.moved(gang, source, columns)
        return any_moved

    def _change_home(self, gang: Occupant, row: int) -> bool:
        """Move ``gang`` to ``row``, on its own columns; return that it has been moved."""
        self._leave_home(gang)
        self._settle_in(gang, row)
        return True

    def _replicate_by_migration(self, gang: Occupant, row: int) -> bool:
        if gang.migrating:
            return False
        in_the_way = self._overlapping(gang, row)
        if not self._can_migrate(in_the_way, row, gang.columns):
            return False
        columns = self._columns_for_displaced(gang, in_the_way, self._filled[row])
        if columns is None:
            return False
        # Those that migrate are at home here, and nowhere else: what is taken of their row beside replicas moves with them.
        for other, new in zip(in_the_way, columns):  # noqa: B905  equally many
            self._taken[row] = self._taken[row] ^ (other.columns & ~self.set_aside if self.set_aside else other.columns) | new
            if self.set_aside:  # what was set aside of its columns does not become free
                self.room[row] -= (other.columns & self.set_aside & ~new).bit_count()
        self._displace(gang, in_the_way, columns, self._filled, row)
        self._filled[row] |= gang.columns
        self._room_left[row] -= gang.nodes
        return True

    # Migrations: where a gang finds others on its columns, either they migrate (option 1) or it does (option 2).

    def tasks_migrating(self, row: int) -> int:
        """Return how many tasks in a row are on their way to or from the checkpoint store."""
        undivided = self.undivided
        return sum(
            gang.moving
            for gang in self.occupants.values()
            if gang.migrating and (gang.rows >> row & 1 or gang.job.id in undivided)
        )

    def note_migrating(self, gang: Occupant, *, migrates: bool, in_rounds: bool = False) -> None:
        """Note whether a gang migrates on the machine, or is saved or restored in rounds: then all its tasks count."""
        gang.migrating = migrates or in_rounds
        if in_rounds or not migrates:
            gang.moving = gang.nodes

    def _counted(self, gang: Occupant, left: int) -> int:
        """Return how many tasks of ``gang`` count against Q if it migrates and leaves these of its columns, a bitmask."""
        if self._counts == "gang":
            return gang.nodes
        moved = (gang.columns & left).bit_count()
        return moved if self._max_tasks is None or self._counts == "moved" else min(moved, self._max_tasks)

    def _can_migrate(self, gangs: Collection[Occupant], row: int, left: int) -> bool:
        """Return whether Q lets ``gangs`` move in ``row``, where they leave columns, and none is on its way already."""
        for gang in gangs:
            if gang.migrating:
                return False
        if self._max_tasks is None:
            return True
        moving = [gang for gang in gangs if gang.on_machine]
        if not moving or not self._max_tasks:
            return not moving
        return sum(self._counted(gang, left) for gang in moving) + self.tasks_migrating(row) <= self._max_tasks

    def _within_limit(self, gang: Occupant, row: int) -> bool:
        """Return whether ``gang`` may stand in ``row`` as well: if it is still migrating, its tasks count there too."""
        if self._max_tasks is None or not gang.migrating:
            return True
        return gang.moving + self.tasks_migrating(row) <= self._max_tasks

    def _overlapping(self, gang: Occupant, row: int) -> list[Occupant]:
        """S(A) of Zhang et al. 2003: the gangs at home in ``row`` that use columns of ``gang``, in starting order."""
        columns = gang.columns
        overlapping = [other for other in self.homes[row].values() if other.columns & columns]
        if len(overlapping) > 1:
            overlapping.sort(key=STARTING_ORDER)
        return overlapping

    def _move_by_migration(self, gang: Occupant, row: int) -> bool:
        """Move ``gang`` to ``row`` by the cheaper of option 1, the gangs in its way migrate, and option 2."""
        in_the_way = self._overlapping(gang, row)
        option_1 = self._can_migrate(in_the_way, row, gang.columns)
        option_2 = self._can_migrate([gang], row, self._taken[row])
        if option_1 and option_2:
            own = gang.nodes if gang.on_machine else 0
            theirs = [other.nodes for other in in_the_way if other.on_machine]
            if option_1_overhead(own, theirs, *self._cost) > option_2_overhead(own, theirs, *self._cost):
                return self._move_elsewhere(gang, in_the_way, row) or self._move_others(gang, in_the_way, row)
        if option_1 and self._move_others(gang, in_the_way, row):
            return True
        return option_2 and self._move_elsewhere(gang, in_the_way, row)

    def _move_others(self, gang: Occupant, in_the_way: list[Occupant], row: int) -> bool:
        """Option 1: move ``gang`` to ``row``, on its own columns; return whether those in its way can have others."""
        if self.plans is not None and not self.plans.may_enter(gang, row):
            return False
        columns = self._columns_for_displaced(gang, in_the_way, self._taken[row])
        if columns is None:
            return False
        self._leave_home(gang)
        self._displace(gang, in_the_way, columns, self._taken, row)
        self._settle_in(gang, row)
        return True

    def _move_elsewhere(self, gang: Occupant, in_the_way: list[Occupant], row: int) -> bool:
        """Option 2: move ``gang`` to free columns of ``row``; return whether it has enough memory there."""
        columns = self._columns_elsewhere(gang, row)
        if columns is None:
            return False
        self._leave_home(gang)
        gang.moving = self._counted(gang, gang.columns ^ columns)
        self._give_columns(gang, columns)
        self._note_migration([gang], in_the_way)
        self._settle_in(gang, row)
        return True

    def _columns_elsewhere(self, gang: Occupant, row: int) -> int | None:
        """Option 2: return free columns of ``row`` for ``gang``, its own that are free, then the lowest suitable ones."""
        free = self._free(row)
        kept = gang.columns & free
        if self._pools is not None:
            return self._allowed_elsewhere(gang, row, kept, free ^ kept)
        suitable, moving = free ^ kept, gang.nodes - kept.bit_count()
        if self.memory is not None:
            suitable &= self._with_memory(gang.job)
            if suitable.bit_count() < moving:
                return None
        return kept | lowest(suitable, moving)

    def _allowed_elsewhere(self, gang: Occupant, row: int, kept: int, others: int) -> int | None:
        """Option 2 among pools: return columns of which reservations leave as many as ``gang`` needs, preferably its own."""
        assert self._pools is not None
        others &= self._with_memory(gang.job)
        allowances, columns = self._allowances(gang.job, row), 0
        for mask in self._pools.sets_around(gang.job, gang.columns):
            columns = self._choose(kept, others & mask, gang.nodes, allowances)
            if columns.bit_count() >= gang.nodes:
                break
        if columns.bit_count() < gang.nodes:
            return None
        # More of its tasks move than had to if reservations keep some of its own columns.
        return columns if not kept & ~columns or self._can_migrate([gang], row, ~columns) else None

    def _columns_for_displaced(self, gang: Occupant, in_the_way: list[Occupant], taken: int) -> list[int] | None:
        """Option 1: return new columns, but ``taken``, for tasks in the way; ``None`` if they cannot have enough."""
        wanted = gang.columns
        open_, columns = self._all_columns ^ (taken | wanted), []
        for other in in_the_way:
            lost, suitable = other.columns & wanted, open_
            nodes = lost.bit_count()
            if self._pools is not None:
                suitable = self._instead_of(other, lost, suitable)
            elif self.memory is not None:
                suitable &= self._with_memory(other.job)
            if (self._pools is not None or self.memory is not None) and suitable.bit_count() < nodes:
                return None  # without either there are always enough
            new = lowest(suitable, nodes)
            open_ ^= new
            columns.append(other.columns ^ lost | new)
        return columns

    def _instead_of(self, gang: Occupant, lost: int, suitable: int) -> int:
        """Return as many columns as a gang has lost among pools, or fewer.

        Where there are reservations each task stays in its pool, so that the plans remain as they are.
        """
        assert self._pools is not None
        nodes, new = lost.bit_count(), 0
        suitable &= self._with_memory(gang.job)
        allowances = self._pools.sizes if self.plans is None else self._pools.numbers(lost)
        for mask in self._pools.sets_around(gang.job, gang.columns):
            new = self._choose(0, suitable & mask, nodes, allowances)
            if new.bit_count() >= nodes:
                break
        return new

    def _give_columns(self, gang: Occupant, columns: int) -> None:
        if self.memory is not None:
            self.memory.give_back(from_mask(gang.columns & ~columns), gang.job.memory)
            self._take_memory(gang.job, columns & ~gang.columns)
        gang.columns = columns

    def _displace(self, gang: Occupant, in_the_way: list[Occupant], columns: list[int], taken: list[int], row: int) -> None:
        """Option 1: give those in the way their new ``columns``; those of ``gang`` in ``row`` become free."""
        for other, new in zip(in_the_way, columns):  # noqa: B905  equally many
            taken[row] = taken[row] ^ other.columns | new
            other.moving = self._counted(other, other.columns ^ new)
            self._give_columns(other, new)
        self._note_migration(in_the_way, [gang])

    def _note_migration(self, moves: list[Occupant], blocked: list[Occupant]) -> None:
        """Note a migration; a gang that has not started yet simply starts elsewhere, and no gang waits for it."""
        self._touched.update(moves)
        self._changed_homes.update([gang.home for gang in moves])
        moved = [gang for gang in moves if gang.placed_rows]
        if self.migration_counts:
            for gang in moved:
                gang.migrating = True
        if moved:
            self._migrations.append((moved, [gang for gang in blocked if gang.placed_rows]))

    # What the machine has to do.

    def changes(self) -> Change:
        """Return the difference between the matrix and what the machine has, and take it for done."""
        places: list[MaskedPlace] = []
        migrations: list[tuple[tuple[QueuedJob, ...], tuple[QueuedJob, ...]]] = []
        for moves, blocked in self._migrations:
            # One that came back to its own columns, which happens where migration is free, has not moved.
            if moved := tuple([gang.job for gang in moves if gang.placed_columns != gang.columns and gang.placed_rows]):
                migrations.append((moved, tuple([gang.job for gang in blocked])))
        suspects = self._cleaned
        suspects |= self._replicated
        suspects |= self._touched
        changed = [
            gang
            for gang in suspects
            if gang.rows != gang.placed_rows or gang.columns != gang.placed_columns or gang.home != gang.placed_home
        ]
        if len(changed) > 1:
            changed.sort(key=STARTING_ORDER)
        for gang in changed:
            gang.placed_columns, gang.placed_rows, gang.placed_home = gang.columns, gang.rows, gang.home
            places.append((gang.job, gang.columns, gang.rows, gang.home))
        self._migrations.clear()
        self._touched.clear()
        suspects.clear()
        self._filled = []  # until it is filled again
        return tuple.__new__(Change, (places, migrations))  # calling Change takes thrice the time


# Which gangs to preempt so that a job gets columns of its own in every row.


class InTheWay(NamedTuple):
    """A gang that may be preempted."""

    columns: int  # a bitmask
    loss: int  # what preempting it costs, in any unit


class Clearing(NamedTuple):
    """Columns for a job."""

    columns: int  # a bitmask
    preempted: tuple[int, ...]  # positions of the gangs that have to leave


def clear(nodes: int, columns: int, gangs: Sequence[InTheWay]) -> Clearing | None:
    """Return columns for a job of which the fewest gangs have to be preempted, and of these choices one with the least loss."""
    # A covering problem: choices of k gangs are compared one by one, for k = 0, 1, 2 and so on, as long as there are at most
    # 2,000 of a k; beyond that, the gang that frees most columns is added until there are enough.  None if `columns`, a bitmask
    # of those that the job may have, are too few.
    if columns.bit_count() < nodes:
        return None
    for number in range(len(gangs) + 1):
        if comb(len(gangs), number) > _MOST_CHOICES:
            break
        choices = combinations(range(len(gangs)), number)
        enough = [chosen for chosen in choices if _free(columns, gangs, chosen).bit_count() >= nodes]
        if enough:
            cheapest = min(enough, key=lambda chosen: sum(gangs[index].loss for index in chosen))
            return Clearing(lowest(_free(columns, gangs, cheapest), nodes), cheapest)
    greedy = _greedy(nodes, columns, gangs)
    return Clearing(lowest(_free(columns, gangs, greedy), nodes), greedy)


def _greedy(nodes: int, columns: int, gangs: Sequence[InTheWay]) -> tuple[int, ...]:
    chosen: list[int] = []

    def gain(index: int) -> tuple[int, int, int]:
        freed = _free(columns, gangs, [*chosen, index]).bit_count()
        return min(freed, nodes), (gangs[index].columns & columns).bit_count(), -gangs[index].loss

    while _free(columns, gangs, chosen).bit_count() < nodes:
        chosen.append(max((index for index in range(len(gangs)) if index not in chosen), key=gain))
    for index in sorted(chosen, key=lambda index: gangs[index].loss, reverse=True):  # some may turn out not to be in the way
        rest = [other for other in chosen if other != index]
        if _free(columns, gangs, rest).bit_count() >= nodes:
            chosen = rest
    return tuple(sorted(chosen))


def _free(columns: int, gangs: Sequence[InTheWay], preempted: Sequence[int]) -> int:
    """Return the columns that no gang holds but those that are preempted, a bitmask."""
    for index, gang in enumerate(gangs):
        if index not in preempted:
            columns &= ~gang.columns
    return columns
