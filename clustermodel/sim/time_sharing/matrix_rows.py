"""The rows of the Ousterhout matrix as the machine sees them: who runs where, which row comes next.

Bookkeeping for both fidelities of the time-slice process.  It decides nothing and refuses the impossible: two tasks on a
node in a slice, a row beyond the multiprogramming level, a gang in no row, more migrating tasks than the store takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from simpy import Event

from clustermodel.errors import DecisionError
from clustermodel.machine import Machine
from clustermodel.policies.interface import QueuedJob, RunningJob
from clustermodel.recording.ledger import Account
from clustermodel.schedule.node_set import NodeSet, as_mask, count, is_node_set, places, text

if TYPE_CHECKING:
    from clustermodel.sim.time_sharing.rotation import Pace

MIGRATION: Final = (Account.CHECKPOINT, Account.RESTART)
"""What a migrating gang spends; others are blocked meanwhile."""


class SlicedGang(RunningJob):
    """A gang that shares its nodes in time.

    Args:
        job: which job.
        start: when it was dispatched, ticks.
        columns: its nodes.
        mask: the same as a bitmask.
        home: its home row.
        duration: how long it has to run, ticks of its own slices.
        finished: succeeds at the instant it has run for ``duration``.
        order: number of the dispatch.
    """

    __slots__ = ("debts", "due", "duration", "finished", "home", "mask", "order", "owed", "pace")

    def __init__(
        self,
        job: QueuedJob,
        start: int,
        columns: NodeSet,
        mask: int,
        home: int,
        duration: int,
        finished: Event,
        order: int,
    ) -> None:
        super().__init__(job, start, columns, job.nodes, job.estimate)
        self.home = home
        """Its home row."""
        self.mask = mask
        """Its columns as a bitmask."""
        self.duration = duration
        self.finished = finished
        self.order = order
        self.debts: list[tuple[Account, int]] = []
        """What it has still to spend, in order, at the beginning of its next slices: (account, ticks)."""
        # Kept by clustermodel.sim.time_sharing.rotation, which explains them.
        self.pace: Pace | None = None
        self.due = 0
        self.owed = 0

    @property
    def debt(self) -> int:
        """Sum of :attr:`debts`, ticks."""
        return sum(ticks for _, ticks in self.debts)

    def note_migrating(self) -> None:
        """Note whether it has still to spend a checkpoint or a restart."""
        self.migrating = any(account in MIGRATION for account, _ in self.debts)

    def pay(self, ticks: int) -> list[tuple[Account, int]]:
        """Take up to ``ticks`` off the debts, in order; return what was spent on what."""
        paid = []
        while self.debts and ticks:
            account, due = self.debts.pop(0)
            spent = min(due, ticks)
            ticks -= spent
            paid.append((account, spent))
            if spent < due:
                self.debts.insert(0, (account, due - spent))
        self.note_migrating()
        return paid


class MatrixRows:
    """Which gangs are in which row.

    Args:
        machine: its nodes, multiprogramming level and limit Q on migrating tasks count here.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.mpl = machine.time_slicing.mpl
        self.occupied = [0] * self.mpl
        """Columns in use, a bitmask for each row."""
        self.held = [0] * self.mpl
        """Number of columns in use in each row."""
        self.gangs: list[dict[int, SlicedGang]] = [{} for _ in range(self.mpl)]
        """Gangs by job id in each row."""
        self.changed: set[SlicedGang] = set()
        """Gangs whose rows or columns have changed since the rotation went on last."""
        self.last = -1
        """The row that ran last."""
        self.in_use_changed = True
        """Whether a row has come into use or been emptied since :meth:`rotation` was called last."""

    def place(self, gang: SlicedGang, row: int) -> None:
        """Let ``gang`` run in ``row`` as well.

        Raises:
            DecisionError: there is no such row, the gang is in it already, or one of its columns is taken.
        """
        if not 0 <= row < self.mpl:
            raise DecisionError(f"job {gang.job.id} cannot run in row {row}: the multiprogramming level is {self.mpl}")
        if gang.mask & self.occupied[row]:
            if gang.job.id in self.gangs[row]:
                raise DecisionError(f"job {gang.job.id} cannot be replicated in row {row}: it is in it already")
            raise DecisionError(
                f"job {gang.job.id} cannot run in row {row} on columns {text(gang.columns)}: not all of them are free there"
            )
        if not self.held[row]:
            self.in_use_changed = True
        self.occupied[row] |= gang.mask
        self.held[row] += gang.job.nodes
        self.gangs[row][gang.job.id] = gang
        gang.rows |= 1 << row
        self.changed.add(gang)

    def withdraw(self, gang: SlicedGang, row: int) -> None:
        """Take ``gang`` out of ``row``.

        Raises:
            DecisionError: it is not in it.
        """
        if not 0 <= row < self.mpl or not gang.rows >> row & 1:
            raise DecisionError(f"job {gang.job.id} cannot be withdrawn from row {row}: it is not in it")
        self._take_out(gang, row)
        gang.rows &= ~(1 << row)
        self.changed.add(gang)

    def _take_out(self, gang: SlicedGang, row: int) -> None:
        self.occupied[row] ^= gang.mask
        self.held[row] -= gang.job.nodes
        del self.gangs[row][gang.job.id]
        if not self.held[row]:
            self.in_use_changed = True

    def rehome(self, gang: SlicedGang, row: int) -> None:
        """Make ``row`` the home of ``gang``.

        Raises:
            DecisionError: it is not in it.
        """
        if not 0 <= row < self.mpl or not gang.rows >> row & 1:
            raise DecisionError(f"job {gang.job.id} cannot have its home in row {row}: it is not in it")
        gang.home = row

    def remove(self, gang: SlicedGang) -> None:
        """Take ``gang``, which has ended, out of all rows."""
        for row in places(gang.rows):
            self._take_out(gang, row)
        gang.rows = 0
        self.changed.discard(gang)

    def migrate(self, moves: list[tuple[SlicedGang, NodeSet]], blocked: list[SlicedGang]) -> None:
        """Give gangs new columns, and them and the blocked ones their debts (002, section 5.4).

        Raises:
            DecisionError: a gang is still in a row, or its new columns are not a set of as many as it needs.
        """
        checkpoint, restart = self.machine.checkpointing.checkpoint, self.machine.checkpointing.restart
        for gang, columns in moves:
            job = gang.job
            if gang.rows:
                raise DecisionError(f"job {job.id} cannot migrate: it must be withdrawn from all its rows first")
            if not (columns and is_node_set(columns) and columns[0] >= 0 and columns[-1] <= self.machine.nodes) or (
                count(columns) != job.nodes
            ):
                raise DecisionError(f"job {job.id} cannot migrate to columns {columns!r}: its gang needs {job.nodes} nodes")
            gang.columns = columns
            gang.mask = as_mask(columns)
            gang.migrating = True
            gang.debts += [(account, ticks) for account, ticks in zip(MIGRATION, (checkpoint, restart), strict=True) if ticks]
            self.changed.add(gang)
        for gang in blocked:
            if checkpoint:
                gang.debts.append((Account.BLOCKED, checkpoint))
                self.changed.add(gang)

    def require_possible(self) -> None:
        """Check what must hold when all decisions of an instant have been carried out.

        Raises:
            DecisionError: a gang is in no row, or more tasks migrate in a slice than the store takes.
        """
        migrating = []
        for gang in self.changed:
            if not gang.rows:
                raise DecisionError(f"job {gang.job.id} is left in no row: each running gang must be in at least one")
            if gang.migrating:
                migrating.append(gang)
        for gang in migrating:
            self._require_within_limit(gang)
        for gang in migrating:
            gang.note_migrating()  # a move that costs nothing is over at once

    def _require_within_limit(self, gang: SlicedGang) -> None:
        limit = self.machine.checkpointing.max_tasks_per_slice
        for row, gangs in enumerate(self.gangs):
            if limit is not None and gang.rows >> row & 1:
                tasks = sum(other.job.nodes for other in gangs.values() if other.migrating)
                if tasks > limit:
                    raise DecisionError(f"{tasks} tasks would migrate in a slice of row {row}: at most Q = {limit} can")

    def rotation(self) -> list[int]:
        """Return the rows in use in the order they come, the next one first."""
        self.in_use_changed = False
        held, after = self.held, self.last + 1
        return [row for row in range(after, self.mpl) if held[row]] + [row for row in range(after) if held[row]]
