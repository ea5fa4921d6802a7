"""The Ousterhout matrix, and the plans for its rows, on a machine with partitions: jobs may have nodes of some pools only.

In a plan a gang or a reservation has so many nodes of each pool.  Gangs that are at home in a row leave as many nodes of each
pool as its reservations need: that is checked wherever columns are chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from clustermodel.node_set import as_mask, lowest, mask_of
from clustermodel.plans.ousterhout import Guard, Occupant, OusterhoutMatrix
from clustermodel.plans.pools import PoolProfile, Pools, Split
from clustermodel.plans.profile import Reservation
from clustermodel.plans.rows import RowPlans
from clustermodel.ticks import NEVER

if TYPE_CHECKING:
    from clustermodel.policies.view import QueuedJob


class PoolRowPlans(RowPlans):
    """:class:`RowPlans` over pools."""

    __slots__ = ("_pools", "_rows", "_splits")

    def __init__(self, pools: Pools, rows: int) -> None:
        super().__init__(sum(pools.sizes), rows)
        self._pools = pools
        self._rows = [PoolProfile(pools, 0, [[] for _ in pools.sizes]) for _ in range(rows)]
        self._splits: dict[int, Split] = {}  # job id -> how many nodes of each pool its reservation has

    def rebuild(self, now: int, ends: Sequence[Iterable[tuple[int, int]]]) -> None:
        """As for one pool, with the columns of gangs, a bitmask, in place of their numbers of nodes."""
        self.now = now
        self._rows = []
        for of_row in ends:
            by_pool: list[list[tuple[int, int]]] = [[] for _ in self._pools.sizes]
            for end, columns in of_row:
                for pool, nodes in self._pools.split(columns):
                    by_pool[pool].append((end, nodes))
            self._rows.append(PoolProfile(self._pools, now, by_pool))
        self._splits = {job_id: self._splits[job_id] for job_id in self.reserved}
        for job_id, reservation in self.reserved.items():
            if reservation.start < now:
                self.reserved[job_id] = reservation._replace(start=now)
            self._rows[reservation.row].overbook(max(reservation.start, now), reservation.length, self._splits[job_id])

    def allowances(self, row: int, end: int, job_id: int) -> list[int]:
        """Return how many nodes of each pool a job or gang can have in a row until ``end``."""
        free = self._rows[row].least_free(self.now, end - self.now)
        reservation = self.reserved.get(job_id)
        if reservation is not None and reservation.row == row and reservation.start <= self.now:
            for pool, nodes in self._splits[job_id]:  # its own reservation, perhaps where too few are free
                free[pool] = max(free[pool] + nodes, nodes)
        return free

    def enter(self, row: int, columns: int, end: int) -> None:
        """Note that a gang has got its home in a row."""
        self._rows[row].overbook(self.now, end - self.now, self._pools.split(columns))

    def leave(self, row: int, columns: int, end: int) -> None:
        """Note that a gang has left its home row."""
        self._rows[row].release(self.now, end - self.now, self._pools.split(columns))

    def improve(self, job: QueuedJob, rows: Iterable[int]) -> Reservation:
        """Move the reservation of ``job`` to its earliest possible start in its row or in ``rows``, and return it."""
        split = self._splits[job.id]
        start, length, nodes, row = self.reserved[job.id]
        ways = [self._pools.of(each) for each in job.sets_allowed()]
        own = {pool for pool, _ in split}
        self._rows[row].release(start, length, split)
        best = Reservation(start, length, nodes, row)
        for pools in ways:
            if own.issubset(pools):
                earlier, parts = self._rows[row].earlier(best.start, length, nodes, pools, split, job.barred)
            else:
                earlier, parts = self._rows[row].earliest(length, nodes, pools, best.start - 1, job.barred)
            if 0 <= earlier < best.start:
                best, split = best._replace(start=earlier), parts
        for other in rows:
            if other != row:
                earlier, parts = self._rows[other].earliest_of(length, nodes, ways, best.start - 1, job.barred)
                if earlier >= 0:
                    best, split = Reservation(earlier, length, nodes, other), parts
        self._book(job, best, split)
        return best

    def place(self, job: QueuedJob, length: int, rows: Iterable[int]) -> Reservation:
        """Enter a reservation for ``job`` at the earliest start in any of ``rows``, and return it."""
        best, split = Reservation(NEVER, length, job.nodes), Split()
        for row in rows:
            ways = [self._pools.of(each) for each in job.sets_allowed()]
            start, parts = self._rows[row].earliest_of(length, job.nodes, ways, best.start - 1, job.barred)
            if start >= 0:
                best, split = Reservation(start, length, job.nodes, row), parts
        self._book(job, best, split)
        return best

    def is_barred(self, job: QueuedJob) -> bool:
        """Return whether a job that is due may not have the nodes of its reservation any more: it would reach into a window."""
        reservation = self.reserved.get(job.id)
        if reservation is None or reservation.start > self.now:
            return False
        eligible = self._pools.of(job.eligible)
        return any(pool not in eligible for pool, _ in self._splits[job.id])

    def drop(self, job: QueuedJob) -> None:
        start, length, _, row = self.reserved.pop(job.id)
        self._rows[row].release(start, length, self._splits.pop(job.id))

    def _book(self, job: QueuedJob, reservation: Reservation, split: Split) -> None:
        self._rows[reservation.row].overbook(reservation.start, reservation.length, split)
        self.reserved[job.id], self._splits[job.id] = reservation, split

    def postpone(self, job: QueuedJob, start: int) -> None:
        """Move the reservation of ``job``, which begins now, to a later start, even where too few nodes are free then."""
        reservation, split = self.reserved[job.id], self._splits[job.id]
        self.drop(job)
        self._book(job, reservation._replace(start=start), split)

    def take_up(self, job: QueuedJob, row: int, columns: int = 0) -> None:
        """Start ``job`` now in ``row``, on these columns."""
        end = self.reserved[job.id].end
        self.drop(job)
        self.enter(row, columns, end)


class Planned(Guard, Protocol):
    """Says what reservations leave."""

    def allowances(self, job: QueuedJob, row: int, end: int | None = None) -> list[int]:
        """Return how many nodes of each pool a job, or a gang, can have in a row until ``end``, its own by default."""


class PooledMatrix(OusterhoutMatrix):
    """The matrix where jobs may have columns of some pools only."""

    def __init__(
        self,
        nodes: int,
        mpl: int,
        *,
        pools: Pools,
        checkpoint: int = 0,
        restart: int = 0,
        max_tasks: int | None = None,
        counts: str = "gang",
    ) -> None:
        super().__init__(nodes, mpl, checkpoint=checkpoint, restart=restart, max_tasks=max_tasks, counts=counts)
        self._pools = pools
        self.planned: Planned | None = None  # what jobs may have beside reservations, if there are any
        self.columns_now: Callable[[QueuedJob], int] | None = None  # which a job may have from now on, where windows bar some
        self.closed = 0  # columns of pools that no job may have as one ahead of it waits for them

    def eligible(self, job: QueuedJob) -> int:
        if self.columns_now is not None:
            return self.columns_now(job)
        return self._all_columns if job.allowed is None else as_mask(job.allowed)

    def sets_of_columns(self, job: QueuedJob) -> list[int]:
        eligible = self.eligible(job)
        return [mask & eligible for mask in self._masks(job) if not mask & self.closed]

    def sets_around(self, gang: Occupant) -> list[int]:
        """Return the sets of columns of which a gang that is in the matrix may have those of one: they have all its own."""
        return [mask for mask in self._masks(gang.job) if not gang.columns & ~mask]

    def _masks(self, job: QueuedJob) -> list[int]:
        return [self._all_columns if each is None else mask_of(each) for each in job.sets_allowed()]

    def room_for(self, job: QueuedJob, row: int) -> int:
        """Return how many free columns of a row a job may have, reservations aside."""
        free = self._free(row)
        return max([(free & mask).bit_count() for mask in self.sets_of_columns(job)], default=0)

    def columns_for(self, job: QueuedJob, row: int, kept: int = 0, end: int | None = None) -> int:
        """Return as many columns as a job needs, or fewer, of those that have memory and are not reserved, a bitmask."""
        suitable = self._free(row) & (self._with_memory(job, end) | kept)
        return self._choose_of(job, suitable, self._allowances(job, row, end))

    def has_columns_for(self, job: QueuedJob, row: int, end: int) -> bool:
        """Return whether a row has enough columns for a job that are not reserved, wherever there is memory."""
        return self._choose_of(job, self._free(row), self._allowances(job, row, end)).bit_count() >= job.nodes

    def _choose_of(self, job: QueuedJob, suitable: int, allowances: Sequence[int]) -> int:
        """Return :meth:`_choose` for a job that starts, in the first of its sets of columns that has enough."""
        chosen = 0
        for mask in self.sets_of_columns(job):
            chosen = self._choose(0, suitable & mask, job.nodes, allowances)
            if chosen.bit_count() >= job.nodes:
                break
        return chosen

    def is_free_for(self, job: QueuedJob, columns: int, row: int, end: int | None = None) -> bool:
        may_have = any(not columns & ~mask for mask in self.sets_of_columns(job))
        if not (may_have and self.is_free(columns, row)):
            return False
        return self._choose(columns, 0, job.nodes, self._allowances(job, row, end)) == columns

    def _with_memory(self, job: QueuedJob, end: int | None = None) -> int:
        return super()._with_memory(job, end) & self.eligible(job)

    def _allowances(self, job: QueuedJob, row: int, end: int | None = None) -> list[int]:
        return self._pools.sizes if self.planned is None else self.planned.allowances(job, row, end)

    def _choose(self, preferred: int, others: int, nodes: int, allowances: Sequence[int]) -> int:
        """Return ``nodes`` columns, or as many as there are: the lowest of each pool, of the first pools as many as allowed."""
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

    def _move_others(self, gang: Occupant, in_the_way: list[Occupant], row: int) -> bool:
        """Option 1, if reservations leave room for ``gang`` on its own columns."""
        if self.planned is not None and not self.planned.may_enter(gang, row):
            return False
        return super()._move_others(gang, in_the_way, row)

    def _columns_elsewhere(self, gang: Occupant, row: int) -> int | None:
        free = self._free(row)
        kept, others = gang.columns & free, free & ~gang.columns & self._with_memory(gang.job)
        allowances, columns = self._allowances(gang.job, row), 0
        for mask in self.sets_around(gang):
            columns = self._choose(kept, others & mask, gang.nodes, allowances)
            if columns.bit_count() >= gang.nodes:
                break
        if columns.bit_count() < gang.nodes:
            return None
        # More of its tasks move than had to if reservations keep some of its own columns.
        return columns if not kept & ~columns or self._can_migrate([gang], row, ~columns) else None

    def _columns_for_displaced(self, gang: Occupant, in_the_way: list[Occupant], taken: int) -> list[int] | None:
        # Where there are reservations each task stays in its pool, so that the plans remain as they are.
        wanted = gang.columns
        open_, columns = self._all_columns ^ (taken | wanted), []
        for other in in_the_way:
            lost, suitable = other.columns & wanted, open_ & self._with_memory(other.job)
            allowances = self._pools.sizes if self.planned is None else self._pools.numbers(lost)
            new = 0
            for mask in self.sets_around(other):
                new = self._choose(0, suitable & mask, lost.bit_count(), allowances)
                if new.bit_count() >= lost.bit_count():
                    break
            if new.bit_count() < lost.bit_count():
                return None
            open_ ^= new
            columns.append(other.columns ^ lost | new)
        return columns
