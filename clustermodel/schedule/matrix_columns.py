"""Which gangs stand on which columns of the rows of the Ousterhout matrix, as a policy plans it, and what is free there.

:class:`~clustermodel.schedule.ousterhout.OusterhoutMatrix` has the steps of gang scheduling.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Generic, NamedTuple

from clustermodel.schedule.column_strips import ColumnStrips
from clustermodel.schedule.free_memory import FreeMemory
from clustermodel.schedule.node_set import NodeSet, as_mask, count, from_mask, lowest
from clustermodel.schedule.planned_gangs import Job, Occupant


class PromisedMemory(NamedTuple):
    """Memory that a waiting job will have, on columns that have been chosen for it."""

    job_id: int
    start: int
    """When it will have the memory, as predicted, ticks."""
    left: FreeMemory
    """The free memory of each column at that time, without what the job needs."""
    short: int
    """Of the columns chosen for the job, the one with the least free memory now."""

    def holds_against(self, job_id: int, end: int | None) -> bool:
        """Return whether a job must leave the memory alone: one that is not known to end before."""
        return job_id != self.job_id and (end is None or end > self.start)


class MatrixColumns(Generic[Job]):
    """The columns of the rows, and the gangs at home there.

    Args:
        nodes: number of columns.
        mpl: the most rows.
        strips: let the bits of all bitmasks be strips of columns, not single ones, which takes less time where there are
            thousands; memory is not limited then, and no gang undivided.
    """

    def __init__(self, nodes: int, mpl: int, *, strips: bool = False) -> None:
        self.nodes = nodes
        self.mpl = mpl
        self._strips = ColumnStrips(nodes) if strips else None
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
        """Number of free columns of each row: no gang at home there holds them, and they are not set aside."""
        self._all_columns = (1 << nodes) - 1 if self._strips is None else self._strips.all_bits
        self._free = [self._all_columns] * mpl  # the free columns of each row, bitmasks
        self._in_use: list[int] = []  # rows with gangs at home, ascending
        self._changed_homes: set[int] = set()  # rows whose gangs at home have changed since the last compaction
        self._touched: list[Occupant[Job]] = []  # gangs that have started or moved; some more than once
        self.memory: FreeMemory | None = None
        """The free memory of each column in this plan; ``None`` where it is not limited."""
        self.promised: PromisedMemory | None = None
        """The memory of the first job that lacks some; ``None`` if no job does."""

    def rows_in_use(self) -> list[int]:
        """Return the rows that are not empty, ascending; not to be changed."""
        return self._in_use

    def row_contents(self, row: int) -> list[Occupant[Job]]:
        """Return the gangs in ``row``, replicas included, in starting order."""
        return [gang for gang in self.occupants.values() if gang.rows >> row & 1]

    def begin_memory(self, free: FreeMemory | None) -> None:
        """Take the free memory of the machine as it is; the gangs of the matrix, and suspended jobs, have theirs."""
        self.memory = free
        self.promised = None

    # Jobs come and go.

    def add(self, job: Job, row: int, columns: int | None = None, *, kept: int = 0, end: int | None = None) -> Occupant[Job]:
        """Give ``job`` columns of ``row``, its home row without replicas: the lowest suitable ones unless others are named.

        Args:
            job: the job.
            row: has enough suitable columns.
            columns: a bitmask.
            kept: the columns whose memory holds the job already, a bitmask.
            end: when it is predicted to end; ``None`` if unknown.
        """
        if columns is None:
            columns = self._lowest(self.columns_for(job, row, kept=kept, end=end), job.nodes)
        gang = self._new(job, columns, row, kept, end)
        self._settle_in(gang, row)
        return gang

    def _new(self, job: Job, columns: int, row: int, kept: int, end: int | None = None) -> Occupant[Job]:
        self._starts += 1
        gang = self.occupants[job.id] = Occupant(job, columns, row, self._starts)
        if self.memory is not None:
            self._take_memory(job, columns & ~kept, end)
        return gang

    def columns_for(self, job: Job, row: int, *, kept: int = 0, end: int | None = None) -> int:
        """Return the free columns of a row that have enough memory for a task of ``job``, a bitmask; see :meth:`add`."""
        free = self._free[row]
        return free if self.memory is None else free & (self._with_memory(job, end) | kept)

    def _with_memory(self, job: Job, end: int | None = None) -> int:
        """Return the columns on which a task of ``job`` can have its memory until ``end``, a bitmask."""
        assert self.memory is not None
        enough = self.memory.nodes_with(job.memory)
        if self.promised is not None and self.promised.holds_against(job.id, end):
            enough &= self.promised.left.nodes_with(job.memory)
        return enough

    def _take_memory(self, job: Job, columns: int, end: int | None = None) -> None:
        assert self.memory is not None
        nodes = from_mask(columns)
        self.memory.take(nodes, job.memory)
        if self.promised is not None and self.promised.holds_against(job.id, end):
            self.promised.left.take(nodes, job.memory)

    def promise_memory(self, job: Job, row: int, ends: Mapping[int, int]) -> PromisedMemory | None:
        """Promise a job that lacks memory on free columns of a row the memory of enough of them, as soon as possible.

        Until then, other jobs may have it if they are predicted to end by that time, as in EASY backfilling.

        Args:
            job: the first job that lacks memory.
            row: has enough free columns.
            ends: predicted ends of gangs, by job id.

        Returns:
            The promise; ``None`` if suspended jobs keep the memory.
        """
        assert self.memory is not None
        free, columns, time = self.memory.copy(), self._free[row], 0
        gangs = sorted((ends[number], number) for number in self.occupants if number in ends)
        suitable = columns & free.nodes_with(job.memory)
        for end, number in gangs:
            if suitable.bit_count() >= job.nodes:
                break
            gang, time = self.occupants[number], end
            free.give_back(from_mask(gang.columns), gang.job.memory)
            if gang.home == row:
                columns |= gang.columns & ~self.set_aside
            suitable = columns & free.nodes_with(job.memory)
        self.promised = None
        if suitable.bit_count() >= job.nodes:
            chosen = lowest(suitable, job.nodes)
            short = self.memory.fullest(chosen)
            free.take(from_mask(chosen), job.memory)
            self.promised = PromisedMemory(job.id, time, free, short)
        return self.promised

    def lose(self, node: int, number: int) -> None:
        """Set the column of a node that is down aside, for an outage of this number."""
        self.keep_free(self._columns_of((node, node + 1)), number)

    def keep_free(self, columns: int, number: int) -> None:
        """Set columns aside in all rows, for a job or an outage of this number; gangs that hold them may stay."""
        self._kept[number] = columns
        self.set_aside |= columns
        self._changed_homes.update(range(self.mpl))  # the least populated row may be another one now
        for row, free in enumerate(self._free):
            self._free[row] = free & ~columns
            self.room[row] -= self._count(free & columns)

    def give_up(self, number: int) -> None:
        """Set no columns aside any more for a job, which has left or claims none, or for an outage that is over."""
        before, self.set_aside = self.set_aside, 0
        del self._kept[number]
        for columns in self._kept.values():
            self.set_aside |= columns
        freed = before & ~self.set_aside
        self._changed_homes.update(range(self.mpl))
        for row in range(self.mpl):
            free = freed & self._home_columns_free(row)
            self._free[row] |= free
            self.room[row] += self._count(free)

    def add_undivided(self, job: Job, columns: int, *, kept: int = 0) -> Occupant[Job]:
        """Give ``job`` columns that have been set aside and that no gang holds any more, in every row in use.

        Args:
            job: the job.
            columns: a bitmask.
            kept: the columns whose memory holds the job already, a bitmask.
        """
        gang = self.undivided[job.id] = self._new(job, columns, 0, kept)
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

        Memory does not matter here.
        """
        best, least = None, self.nodes + 1
        for row in range(self.mpl) if rows is None else rows:
            if nodes <= self.room[row] < least:
                best, least = row, self.room[row]
        return best

    def _leave_home(self, gang: Occupant[Job]) -> None:
        self._changed_homes.add(gang.home)
        freed = gang.columns & ~self.set_aside if self.set_aside else gang.columns
        self._free[gang.home] |= freed
        self.room[gang.home] += self._count(freed) if self.set_aside else gang.nodes
        at_home = self.homes[gang.home]
        del at_home[gang.job.id]
        if not at_home:
            self._in_use.remove(gang.home)

    def _settle_in(self, gang: Occupant[Job], row: int) -> None:
        self._changed_homes.add(row)
        self._free[row] ^= self._free[row] & gang.columns
        self.room[row] -= gang.nodes
        at_home = self.homes[row]
        if not at_home:
            insort(self._in_use, row)
        at_home[gang.job.id] = gang
        gang.home = row
        gang.rows = 1 << row
        self._touched.append(gang)

    def _home_columns_free(self, row: int) -> int:
        free = self._all_columns & ~self.set_aside
        for gang in self.homes[row].values():
            free &= ~gang.columns
        return free

    # Bitmasks.

    def nodes_of(self, columns: int) -> NodeSet:
        """Return the nodes of a set of columns, a bitmask."""
        return from_mask(columns) if self._strips is None else self._strips.nodes(columns)

    def _columns_of(self, nodes: NodeSet) -> int:
        if self._strips is None:
            return as_mask(nodes)
        for node in nodes:
            self._cut(node)
        return self._strips.mask(nodes)

    def _count(self, columns: int) -> int:
        return columns.bit_count() if self._strips is None else count(self._strips.nodes(columns))

    def _lowest(self, columns: int, nodes: int) -> int:
        """Return the lowest so many of ``columns``; all bitmasks may change, and those at hand have to be read again."""
        if self._strips is None or not nodes:
            return lowest(columns, nodes)
        end = self._strips.end_of_lowest(columns, nodes)
        return self._strips.below(self._strips.renewed(columns) if self._cut(end) else columns, end)

    def _cut(self, column: int) -> bool:
        """Let a strip begin at a column; return whether all bitmasks have changed."""
        assert self._strips is not None
        changed = self._strips.cut(column)
        if changed:
            self._renew_masks(self._strips)
        return changed

    def _join_strips(self) -> None:
        """Join strips where there are many."""
        if self._strips is not None and self._strips.are_many:
            gangs = self.occupants.values()
            of_gangs = chain((gang.columns for gang in gangs), (gang.columns_on_machine for gang in gangs))
            self._strips.join(chain(of_gangs, self._free, self._kept.values()))
            self._renew_masks(self._strips)

    def _renew_masks(self, strips: ColumnStrips) -> None:
        self._all_columns = strips.all_bits
        for row, free in enumerate(self._free):
            self._free[row] = strips.renewed(free)
        for gang in self.occupants.values():
            before = gang.columns
            columns = gang.columns = strips.renewed(before)
            on_machine = gang.columns_on_machine
            gang.columns_on_machine = columns if on_machine == before else strips.renewed(on_machine)
        if self._kept:
            self.set_aside = strips.renewed(self.set_aside)
            self._kept = {number: strips.renewed(columns) for number, columns in self._kept.items()}
