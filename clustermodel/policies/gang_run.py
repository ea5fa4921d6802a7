"""One run of gang scheduling: the paper's steps, and what they keep from one scheduling event to the next.

At every scheduling event the Ousterhout matrix is rebuilt in the steps of Zhang et al. 2003, sections 4.2, 5.2, 5.4 and 5.5;
``decide`` lists them in their order.  The combinations of backfilling and migration differ in two places only: whether waiting
jobs are scheduled first come first served or backfilled around reservations, and whether there are steps that migrate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import gcd
from typing import TYPE_CHECKING, Final

from clustermodel.plans.make import row_plan_of
from clustermodel.plans.ousterhout import OusterhoutMatrix
from clustermodel.plans.profile import SHORTEST_EXTENSION
from clustermodel.plans.rows import RowPlans
from clustermodel.policies.interface import Decision, Reason, Reserve, RowsAsMasks, Setup, WakeAt
from clustermodel.policies.queue_order import QueueOrder, in_order, queue_order_of
from clustermodel.policies.urgent_gangs import UrgentJobs
from clustermodel.policies.view import Batch, QueuedJob, View
from clustermodel.ticks import NEVER

if TYPE_CHECKING:
    from clustermodel.plans.pools import Pools
    from clustermodel.policies.adaptive import AdaptiveRows
    from clustermodel.policies.gang import GangScheduling

_MOST_OVERBOOKED: Final = 2**20  # as many times all nodes of the machine are reserved in a row at most, when a gang is late


class GangRun:
    """One run of a gang scheduling policy with ``mpl`` rows; ``open_rows`` decides where jobs may be started, if not in all.

    The rows belong to the whole machine, whatever its partitions.
    """

    # Jobs are `alike` if any of them may have any nodes at any time.

    def __init__(
        self,
        policy: GangScheduling,
        mpl: int,
        setup: Setup,
        open_rows: AdaptiveRows | None,
        pools: Pools,
        *,
        alike: bool,
    ) -> None:
        self._backfilling, self._migration = policy.backfilling, policy.migration
        self._order: QueueOrder | None = queue_order_of(policy.name, policy.queue_order)
        machine = setup.machine
        checkpointing, by_memory = machine.checkpointing, machine.checkpointing.store is not None
        self._pools, self._alike = pools, alike
        self._windows, self._transfer_times = pools.windows, setup.transfer_times
        self.matrix = OusterhoutMatrix(
            setup.nodes,
            mpl,
            checkpoint=1 if by_memory else checkpointing.checkpoint,  # of equal images, one takes as long as the other
            restart=1 if by_memory else checkpointing.restart,
            max_tasks=checkpointing.max_tasks_per_slice,
            counts=checkpointing.counts,
            pools=None if alike else pools,
        )
        if self._windows is not None:
            self.matrix.columns_now = self._columns_now
        mode = policy.urgent
        self._urgent = None if mode is None else UrgentJobs(policy.name, mode, setup, self.matrix)
        self._explain, self._holding = setup.explain, setup.holding
        self._limits_memory = machine.node_memory is not None
        plans = [row_plan_of(pools, alike=alike, most_overbooked=_MOST_OVERBOOKED) for _ in range(mpl)]
        self._plans = RowPlans(plans)
        self._lacks_memory = False  # whether a job has lacked memory since the cycle began
        self._memory_reserved_for: int | None = None  # id of the job that has a reservation of memory
        self._short_on: dict[int, int] = {}  # id of such a job that still waits -> the node for whose memory it waits
        self._planning = False  # whether the rows' profiles are laid out for this event
        # Whether reservations may begin earlier: a gang ends otherwise than predicted or has moved, or a job lacked memory.
        self._improvable = False
        self._ends: dict[int, int] = {}  # running job's id -> its end, as predicted when it was last needed
        self._alarm: int | None = None
        self._stuck_on: QueuedJob | None = None  # the job that could not be scheduled, in plain gang scheduling
        self._left: Mapping[int, int] | None = None  # how long gangs still need their slices, once that is known at this event
        self._reasons: dict[int, Reason] = {}
        self._time_slicing = machine.time_slicing
        self._quantum = quantum = machine.time_slicing.quantum
        self._switch = machine.switch_ticks
        # Of how many ticks of a slice are how many without the switch, the ratio in lowest terms; 0 where what counts is when
        # gangs end at worst.
        own = 0 if machine.windows else quantum - self._switch
        self._slice, self._own = quantum // gcd(quantum, own), own // gcd(quantum, own)
        self.open_rows = open_rows
        self._open_rows: Sequence[int] = range(mpl)
        self._rows_at_worst = mpl
        self._fewest_rows = mpl if machine.windows else 1  # before a window comes rows may fill again

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Rebuild the matrix, in the steps of Zhang et al. 2003, sections 4.2 and 5.4."""
        matrix, plans = self.matrix, self._plans
        if self.open_rows is not None:
            self._open_rows, rows = self.open_rows.open_rows(view, matrix)
            self._rows_at_worst = max(rows, self._fewest_rows)
        self._view, self._left = view, None
        self._settle_matrix(batch)
        decisions: list[Decision] = []
        queue = self._waiting_for_a_row(batch, decisions)
        if self._backfilling:
            self._begin_plans(batch)
        if matrix.is_one_row and not (view.waiting or plans.reserved or self._alarm is not None):
            self._stuck_on = None
            matrix.fill()
            return decisions  # no step changes anything
        # CompactMatrix looks at home rows only, so it may come before CleanMatrix, which is often not needed then.
        queue = in_order(queue, self._order, view.now)
        # Without reservations and migrations every step has the same result if the same job is first and could not start.
        is_stuck = self._stuck_on is not None and self._stuck_on is next(iter(queue), None)
        guard = plans if self._planning else None  # without reservations nothing can be violated
        if not matrix.compact(guard) and is_stuck and not (batch.ended or batch.failed or batch.repaired):
            return decisions
        matrix.clean()
        waiting = self._schedule(queue, decisions)
        if self._migration and matrix.collapse_with_migration(plans if self._planning else None):
            self._improvable = True
            self._schedule(waiting, decisions)
        if plans.reserved and self._lacks_memory and not matrix.occupants:
            plans.reserved.clear()  # no gang runs: suspended jobs go on, whoever waits for the memory that they keep
            self._plan()
            self._schedule(waiting, decisions)
        matrix.fill()
        if self._migration:
            matrix.fill_with_migration()
        places, migrations = matrix.changes()
        if places:
            decisions.append(RowsAsMasks(places, tuple(migrations), self._reasons))
            if self._explain:
                self._reasons = {}
        if plans.reserved or self._alarm is not None or self._urgent is not None:
            self._set_alarm(decisions)
        return decisions

    def _settle_matrix(self, batch: Batch) -> None:
        """Bring the matrix up to what has happened."""
        matrix = self.matrix
        ended, _, _, _, failed, repaired, _ = batch
        for gang in ended:
            matrix.remove(gang.job.id)
        for outage in failed:
            matrix.keep_free(1 << outage.node, outage.id)
        for outage in repaired:
            matrix.give_up(outage.id)
        if failed:
            self._plans.reserved.clear()  # the jobs are placed again, around the nodes that are down
        if self._limits_memory:
            matrix.memory, matrix.memory_reservation = self._view.free_memory(), None
        if self._windows is not None:
            self._settle_windows(batch)

    def _settle_windows(self, batch: Batch) -> None:
        if batch.reservations:  # jobs may have been rejected
            for job_id in self._plans.reserved.keys() - self._view.waiting.keys():
                del self._plans.reserved[job_id]
        if self._urgent is not None:
            self._urgent.give_up_barred(self._view)

    def _waiting_for_a_row(self, batch: Batch, decisions: list[Decision]) -> Iterable[QueuedJob]:
        """Place urgent jobs, or note which gangs migrate; return the other jobs that wait."""
        matrix, view = self.matrix, self._view
        if self._urgent is not None:
            decisions += self._urgent.decide(batch, view)
            undivided = {**matrix.undivided, **self._urgent.claims}  # they have, or wait for, columns in every row
            for job_id in undivided:
                self._plans.reserved.pop(job_id, None)
            return [job for job in view.waiting.values() if job.id not in undivided]
        if self._migration and matrix.migration_counts:
            for occupant in matrix.occupants.values():
                matrix.note_migrating(occupant, migrates=view.running[occupant.job.id].migrating)
        return view.waiting.values()

    def _schedule(self, waiting: Iterable[QueuedJob], decisions: list[Decision]) -> Iterable[QueuedJob]:
        """Schedule: give waiting jobs a place in the matrix, in the order of the queue; return those that still wait.

        Without backfilling, a job that fits in no row keeps the columns that it may have from those behind it, not others.
        """
        queue = iter(waiting)
        if self._backfilling:
            if not self._planning:
                blocked = self._start_in_order(queue)
                if blocked is None:
                    return ()
                queue = chain([blocked], queue)
                self._plan()
            return [job for job in queue if not self._backfill(job, decisions)]
        left: list[QueuedJob] = []
        while (blocked := self._start_in_order(queue)) is not None:
            left.append(blocked)
            if not self.matrix.close(blocked):
                break
        self.matrix.reopen()
        self._stuck_on = blocked if self._alike and not self._migration else None
        return chain(left, queue)

    def _start_in_order(self, queue: Iterator[QueuedJob]) -> QueuedJob | None:
        """Start jobs in the fullest row that has enough free columns, until one fits nowhere; return that one."""
        for job in queue:
            if not self._start(job):
                return job
        return None

    def _start(self, job: QueuedJob) -> bool:
        """Start a job in the fullest row that has enough free columns, and return whether there is one."""
        row = self._fullest_row(job)
        if row is None or not self._place(job, [row]):
            return False
        if self._explain:
            self._reasons[job.id] = Reason(f"head of the queue, and a row has enough free columns{self._waited_for(job)}")
        return True

    def _fullest_row(self, job: QueuedJob) -> int | None:
        rows, matrix = self._open_rows, self.matrix
        if matrix.memory is not None:
            rows = self._rows_with_memory(job, [row for row in rows if matrix.room_for(job, row) >= job.nodes])
        return matrix.fullest_row(job.nodes, rows) if self._alike else matrix.fullest_row_for(job, rows)

    def _backfill(self, job: QueuedJob, decisions: list[Decision]) -> bool:
        """Start ``job`` if that violates no reservation, else make sure that it holds one; return whether it has started."""
        plans, now = self._plans, self._view.now
        limits_memory = self.matrix.memory is not None
        if self._windows is not None and plans.is_barred(job):
            plans.drop(job)  # gangs that are late have kept it from its nodes for too long
        is_new = job.id not in plans.reserved
        if is_new:
            reservation = plans.place(job, self._stretched(self._length(job)), self._open_rows)
        else:
            reservation = plans.improve(job, self._open_rows) if self._improvable else plans.reserved[job.id]
        if reservation.start == NEVER:  # restoring it would take so long that no window lets it start
            plans.drop(job)
            return False
        if reservation.start > now:
            if limits_memory and job.id == self._memory_reserved_for:
                self.matrix.reserve_memory(job, reservation.row, self._ends)  # it has to wait for nodes as well
            if is_new:
                decisions.append(Reserve(job=job, start=reservation.start, guaranteed=not limits_memory))
            return False
        end = now + reservation.length
        rows = self._rows_free_now(job, reservation.row, end)
        if not rows:
            return False  # it is due, and starts when the gangs in its way have ended
        if limits_memory:
            row, rows = rows[0], self._rows_with_memory(job, rows, end)
            if not rows:
                self._wait_for_memory(job, row)
                return False
        if not self._place(job, rows, end):
            return False  # it is due, and starts when the checkpoint store has room for it
        gang = self.matrix.occupants[job.id]
        plans.take_up(gang)
        self._ends[job.id] = end
        if self._explain:
            rule = f"its reservation allows it to start now{self._waited_for(job)}"
            self._reasons[job.id] = Reason(rule, holder=next(iter(plans.reserved), None), reserved=reservation.start)
        return True

    def _rows_free_now(self, job: QueuedJob, own: int, end: int) -> list[int]:
        """Return the rows in which a job whose reservation in row ``own`` begins now finds columns, the fullest one first."""
        matrix, plans = self.matrix, self._plans
        rows = [row for row in (own, *[row for row in self._open_rows if row != own]) if matrix.has_columns_for(job, row, end)]
        if self._alike:
            rows = [row for row in rows if plans.may_start(job, row)]
            rows.sort(key=matrix.room.__getitem__)
        else:
            rows.sort(key=lambda row: matrix.room_for(job, row))
        return rows

    def _place(self, job: QueuedJob, rows: list[int], end: int | None = None) -> bool:
        """Give a job columns in the first of ``rows``, or a saved job where it can go on; return whether it has them."""
        if self._urgent is None or job.id not in self._urgent.saved:
            self.matrix.add(job, rows[0], None, end)
            return True
        place = self._urgent.place_of(job, rows, end)
        if place is not None:
            self.matrix.add(job, *place, kept=self._urgent.kept_on(job), end=end).migrating = True
        return place is not None

    def _length(self, job: QueuedJob) -> int:
        """Return how long a waiting job needs nodes of its own, as far as is known, ticks."""
        if self._urgent is None or self._windows is not None:
            return self._holding(job, job.estimate)
        return self._urgent.length(job)

    def _set_alarm(self, decisions: list[Decision]) -> None:
        """Wake up when the next reservation is due, in case that nothing else happens then."""
        now = self._view.now
        reserved = self._plans.reserved.values()
        alarm = min((reservation.start for reservation in reserved if reservation.start > now), default=None)
        if alarm is None and self._urgent is not None and self._urgent.wait_for_store:
            alarm = now + 1  # the store is free when gangs have had their slices
        if alarm is not None and (self._rows_at_worst > 1 or self._switch):
            # It cuts a slice short: gangs that are late because of slices or switches must get their turn before.
            alarm = max(alarm, now + self._rows_at_worst * self._quantum)
        if alarm != self._alarm:
            self._alarm = alarm
            decisions.append(WakeAt(time=alarm))

    def _begin_plans(self, batch: Batch) -> None:
        """Lay out the rows' profiles if waiting jobs hold reservations; otherwise that is done when the first one needs one."""
        self._planning = self._lacks_memory = False
        self.matrix.plans = None
        if batch.alarm:
            self._alarm = None
        if self._memory_reserved_for is not None:
            self._plans.reserved.pop(self._memory_reserved_for, None)  # the job is placed again
        self._improvable = False
        if self._ends:
            now = self._view.now
            for gang in batch.ended:
                self._improvable |= self._ends.pop(gang.job.id, now) != now
        if self._plans.reserved:
            self._plan()

    def _plan(self) -> None:
        """Predict when the gangs in the matrix end, and lay out the rows' profiles."""
        now, occupants, time, own = self._view.now, self.matrix.occupants, self._rows_at_worst * self._slice, self._own
        left = dict(self._left_of_gangs())
        if len(left) < len(occupants):
            for number in occupants.keys() - left.keys():  # they start at this instant
                left[number] = self._length(occupants[number].job)
        if own:
            ends = {number: now - -left[number] * time // own for number in occupants}  # as _stretched has it
        else:
            ends = {number: now + self._stretched(left[number]) for number in occupants}
        plans = self._plans
        for outage in self._view.down.values():
            late = now - outage.expected_end  # one that lasts longer is assumed to last for as long as it is late already
            plans.hold(1 << outage.node, outage.expected_end if late < 0 else now + max(SHORTEST_EXTENSION, late))
        if self._urgent is not None:
            for gang in self.matrix.undivided.values():
                end = ends[gang.job.id] = now + self._stretched(left[gang.job.id], rows=1)
                plans.hold(gang.columns, end)
            for job, columns in self._urgent.claims.values():
                plans.hold(columns, now + self._stretched(self._length(job), rows=1))
        homes, undivided = self.matrix.homes, self.matrix.undivided
        self._improvable = self._improvable or any(
            ends.get(number, end) != end for number, end in self._ends.items() if number not in undivided
        )
        self._ends = ends
        plans.rebuild(now, homes, ends)
        self.matrix.plans = None if self._alike else plans
        self._planning = True

    def _left_of_gangs(self) -> Mapping[int, int]:
        """Return how long the gangs that run still need their slices, as far as is known, by job id, ticks."""
        if self._left is None:
            self._left = self._view.expected_left()
        return self._left

    def _stretched(self, ticks: int, *, rows: int | None = None) -> int:
        """Return the worst case for ``ticks`` of a gang, with a switch in each slice (Zhang et al. 2003, section 5.2)."""
        rows = self._rows_at_worst if rows is None else rows
        if self._windows is not None:
            return self._time_slicing.longest(ticks, rows, self._switch)
        return -(-ticks * rows * self._slice // self._own)

    def _columns_now(self, job: QueuedJob) -> int:
        """Return the columns that a job, or a gang that migrates, may have from now on: it leaves them before windows begin."""
        pools = self._pools
        if job.id not in self._view.running:
            return pools.all_nodes if job.eligible is None else pools.mask(job.eligible)
        assert self._windows is not None
        until = self._stretched(self._left_of_gangs()[job.id] + sum(self._transfer_times(job)))
        barred = self._windows.barred(self._view.now, until, job.barred)
        return (pools.all_nodes if job.allowed is None else pools.mask(job.allowed)) & ~barred

    def _rows_with_memory(self, job: QueuedJob, rows: list[int], end: int | None = None) -> list[int]:
        """Return those of ``rows`` in which enough free columns have memory for a job."""
        matrix, kept = self.matrix, 0 if self._urgent is None else self._urgent.kept_on(job)
        enough = [row for row in rows if matrix.columns_for(job, row, kept=kept, end=end).bit_count() >= job.nodes]
        self._lacks_memory |= len(enough) < len(rows)
        return enough

    def _wait_for_memory(self, job: QueuedJob, row: int) -> None:
        """Let a job wait, whose reservation begins now, and which could start in ``row`` but for memory."""
        self._improvable = True
        reserved = self.matrix.memory_reservation
        if reserved is None or reserved.job_id == job.id:
            reserved = self.matrix.reserve_memory(job, row, self._ends)
            if reserved is not None and reserved.start > self._view.now:
                self._memory_reserved_for = job.id
                self._short_on[job.id] = reserved.short
                self._plans.postpone(job, reserved.start)
                return
            self.matrix.memory_reservation = None  # there is memory, but on columns that other reservations need
        self._plans.drop(job)

    def _waited_for(self, job: QueuedJob) -> str:
        """Return, for the reason of a job's start, the node for whose memory it has waited."""
        node = self._short_on.pop(job.id, None)
        return "" if node is None else f"; it lacked memory on node {node}"
