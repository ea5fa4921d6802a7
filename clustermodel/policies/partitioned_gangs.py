"""One run of gang scheduling on a machine with partitions, whose jobs may have nodes of some pools only.

The rows belong to the whole machine.  Without backfilling, a job that fits in no row keeps the pools that it may have from
those behind it, not others.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from clustermodel.plans.make import pools_of
from clustermodel.plans.ousterhout import Occupant
from clustermodel.plans.pooled_rows import PooledMatrix, PoolRowPlans
from clustermodel.plans.profile import Reservation
from clustermodel.policies.gang_run import GangRun
from clustermodel.policies.interface import Decision, Setup
from clustermodel.policies.view import Batch, QueuedJob

if TYPE_CHECKING:
    from clustermodel.policies.adaptive import AdaptiveRows
    from clustermodel.policies.gang import GangScheduling


class PooledGangRun(GangRun):
    """:class:`GangRun` over pools."""

    def __init__(self, policy: GangScheduling, mpl: int, setup: Setup, open_rows: AdaptiveRows | None = None) -> None:
        self._pools = pools_of(setup)
        self._windows, self._transfer_times = self._pools.windows, setup.transfer_times
        self._time_slicing = setup.machine.time_slicing
        self._pool_plans = PoolRowPlans(self._pools, mpl)
        super().__init__(policy, mpl, setup, open_rows, partial(PooledMatrix, pools=self._pools), self._pool_plans)
        assert isinstance(self.matrix, PooledMatrix)
        self._pooled_matrix: PooledMatrix = self.matrix
        if self._windows is not None:
            self.matrix.columns_now = self._columns_now

    def _schedule(self, waiting: Iterable[QueuedJob], decisions: list[Decision]) -> Iterable[QueuedJob]:
        if self._backfilling:
            return super()._schedule(waiting, decisions)
        matrix = self._pooled_matrix
        queue = iter(waiting)
        left: list[QueuedJob] = []
        everything = (1 << matrix.nodes) - 1
        for job in queue:
            if not self._start(job):
                matrix.closed |= everything if job.allowed is None else self._pools.mask(job.allowed)
                left.append(job)
                if matrix.closed == everything:
                    break
        matrix.closed = 0
        return [*left, *queue]

    def _fullest_row(self, job: QueuedJob) -> int | None:
        room_for = self._pooled_matrix.room_for
        rows = [row for row in self._open_rows if room_for(job, row) >= job.nodes]
        if self.matrix.memory is not None:
            rows = self._rows_with_memory(job, rows)
        return min(rows, key=lambda row: room_for(job, row), default=None)

    def _rows_free_now(self, job: QueuedJob, reservation: Reservation) -> list[int]:
        matrix, end = self._pooled_matrix, self._view.now + reservation.length
        own = reservation.row
        rows = [row for row in (own, *[row for row in self._open_rows if row != own]) if matrix.has_columns_for(job, row, end)]
        rows.sort(key=lambda row: matrix.room_for(job, row))
        return rows

    def _columns_now(self, job: QueuedJob) -> int:
        """Return the columns that a job, or a gang that migrates, may have from now on: it leaves them before windows begin."""
        if job.id not in self._view.running:
            return (1 << self.matrix.nodes) - 1 if job.eligible is None else self._pools.mask(job.eligible)
        assert self._windows is not None
        until = self._stretched(self._left_of_gangs()[job.id] + sum(self._transfer_times(job)), job)
        barred = self._windows.barred(self._view.now, until, job.barred)
        return ((1 << self.matrix.nodes) - 1 if job.allowed is None else self._pools.mask(job.allowed)) & ~barred

    def _settle_matrix(self, batch: Batch) -> None:
        super()._settle_matrix(batch)
        if batch.reservations:  # jobs may have been rejected
            for job_id in self._plans.reserved.keys() - self._view.waiting.keys():
                del self._plans.reserved[job_id]
        if self._windows is not None and self._urgent is not None:
            self._urgent.give_up_barred(self._view)

    def _backfill(self, job: QueuedJob, decisions: list[Decision]) -> bool:
        if self._windows is not None and self._pool_plans.is_barred(job):
            self._plans.drop(job)  # gangs that are late have kept it from its nodes for too long
        return super()._backfill(job, decisions)

    def _length(self, job: QueuedJob) -> int:
        return super()._length(job) if self._windows is None else self._holding(job, job.estimate)

    def _stretched(self, ticks: int, job: QueuedJob, *, rows: int | None = None) -> int:
        if self._windows is None:
            return super()._stretched(ticks, job, rows=rows)
        return self._time_slicing.longest(ticks, self._rows_at_worst if rows is None else rows, self._switch_time(job))

    def _begin_plans(self, batch: Batch) -> None:
        self._pooled_matrix.planned = None
        super()._begin_plans(batch)

    def _plan(self) -> None:
        super()._plan()
        self._pooled_matrix.planned = self

    def allowances(self, job: QueuedJob, row: int, end: int | None = None) -> list[int]:
        """Return how many nodes of each pool a job, or a gang, can have in a row until ``end``, its own by default."""
        return self._pool_plans.allowances(row, self._ends[job.id] if end is None else end, job.id)

    def may_enter(self, gang: Occupant, row: int, *, migrates: bool = False) -> bool:
        """Return whether ``gang`` can have its home in ``row`` without violating a reservation."""
        allowed = self.allowances(gang.job, row)
        if migrates:
            numbers = [self._pools.numbers(mask) for mask in self._pooled_matrix.sets_around(gang)]
            return any(
                sum(min(own, max(most, 0)) for own, most in zip(each, allowed, strict=True)) >= gang.nodes for each in numbers
            )
        return all(nodes <= allowed[pool] for pool, nodes in self._pools.split(gang.columns))

    def moved(self, gang: Occupant, source: int, columns: int) -> None:
        """Move ``gang`` in the plans too."""
        end = self._ends[gang.job.id]
        self._pool_plans.enter(gang.home, gang.columns, end)
        self._pool_plans.leave(source, columns, end)
