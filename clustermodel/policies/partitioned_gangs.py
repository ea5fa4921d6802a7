"""One run of gang scheduling on a machine with partitions, whose jobs may have nodes of some pools only.

The rows belong to the whole machine.  Without backfilling, a job that fits in no row keeps the pools that it may have from
those behind it, not others.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from clustermodel.policies.gang_run import GangRun
from clustermodel.policies.interface import Decision, Setup
from clustermodel.policies.view import Batch, QueuedJob
from clustermodel.schedule.ousterhout import Occupant
from clustermodel.schedule.pooled_rows import PooledMatrix, PoolRowPlans
from clustermodel.schedule.pools import Pools
from clustermodel.schedule.profile import Reservation

if TYPE_CHECKING:
    from clustermodel.policies.adaptive import AdaptiveRows
    from clustermodel.policies.gang import GangScheduling


class PooledGangRun(GangRun):
    """:class:`GangRun` over pools."""

    def __init__(self, policy: GangScheduling, mpl: int, setup: Setup, open_rows: AdaptiveRows | None = None) -> None:
        self._pools = Pools(setup.nodes, setup.node_sets)
        self._pool_plans = PoolRowPlans(self._pools, mpl)
        super().__init__(policy, mpl, setup, open_rows, partial(PooledMatrix, pools=self._pools), self._pool_plans)
        assert isinstance(self.matrix, PooledMatrix)
        self._pooled_matrix: PooledMatrix = self.matrix

    def _schedule(self, waiting: Iterable[QueuedJob], decisions: list[Decision]) -> Iterable[QueuedJob]:
        if self._backfilling:
            return super()._schedule(waiting, decisions)
        closed: set[int] = set()
        queue = iter(waiting)
        left: list[QueuedJob] = []
        for job in queue:
            pools = self._pools.of(job.allowed)
            if not closed.isdisjoint(pools) or not self._start(job):
                closed.update(pools)
                left.append(job)
                if len(closed) == len(self._pools):
                    break
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
            return sum(allowed[pool] for pool in self._pools.of(gang.job.allowed) if allowed[pool] > 0) >= gang.nodes
        return all(nodes <= allowed[pool] for pool, nodes in self._pools.split(gang.columns))

    def moved(self, gang: Occupant, source: int, columns: int) -> None:
        """Move ``gang`` in the plans too."""
        end = self._ends[gang.job.id]
        self._pool_plans.enter(gang.home, gang.columns, end)
        self._pool_plans.leave(source, columns, end)
