"""The rows of the Ousterhout matrix as the machine sees them: who runs where, which row comes next.

It decides nothing and refuses the impossible: two tasks on a node in a slice, more tasks at the checkpoint store than it takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from clustermodel.errors import DecisionError
from clustermodel.machine import Machine
from clustermodel.recording.ledger import Account
from clustermodel.schedule.node_set import NodeSet, from_mask, places, text

if TYPE_CHECKING:
    from clustermodel.sim.time_sharing.shared_nodes import SlicedGang


class MatrixRows:
    """Which gangs are in which row."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.mpl = machine.time_slicing.mpl
        self.occupied = [0] * self.mpl  # columns in use, a bitmask for each row
        self.held = [0] * self.mpl  # number of columns in use in each row
        self.gangs: list[dict[int, SlicedGang]] = [{} for _ in range(self.mpl)]  # gangs by job id in each row
        self.changed: set[SlicedGang] = set()
        """Gangs whose rows, columns or overheads have changed since the rotation went on last."""
        self.last = -1  # the row that ran last: the next one in use comes next
        self.in_use_changed = True
        """Whether a row has come into use or been emptied since :meth:`rotation` was called last."""
        self.down = 0  # columns whose nodes are down, a bitmask

    def place(self, gang: SlicedGang, row: int) -> None:
        if self.down and gang.mask & self.down:
            nodes = text(from_mask(gang.mask & self.down))
            raise DecisionError(f"job {gang.job.id} cannot run in row {row} on columns {text(gang.columns)}: {nodes} are down")
        taken, wanted = self.occupied[row], gang.mask
        if taken & wanted:
            raise DecisionError(
                f"job {gang.job.id} cannot run in row {row} on columns {text(gang.columns)}: not all of them are free there"
            )
        self.occupied[row] = taken | wanted
        if not self.held[row]:
            self.in_use_changed = True
        self.held[row] += gang.nodes
        self.gangs[row][gang.job.id] = gang
        gang.rows |= 1 << row
        self.changed.add(gang)

    def withdraw(self, gang: SlicedGang, row: int) -> None:
        self._take_out(gang, row)
        gang.rows &= ~(1 << row)
        self.changed.add(gang)

    def _take_out(self, gang: SlicedGang, row: int) -> None:
        self.occupied[row] ^= gang.mask
        self.held[row] -= gang.nodes
        del self.gangs[row][gang.job.id]
        if not self.held[row]:
            self.in_use_changed = True

    def remove(self, gang: SlicedGang) -> None:
        for row in places(gang.rows):
            self._take_out(gang, row)
        gang.rows = 0
        self.changed.discard(gang)

    def migrate(self, moves: list[tuple[SlicedGang, NodeSet]], blocked: list[SlicedGang]) -> None:
        """Give gangs in no row new columns, and them and the blocked ones their overheads (Zhang et al. 2003, section 5.4)."""
        checkpoint = 0  # the longest of those that are written
        for gang, columns in moves:
            checkpoint = max(checkpoint, gang.migrate_to(columns))
            self.changed.add(gang)
        for gang in blocked:
            if checkpoint:
                gang.pending.append((Account.BLOCKED, checkpoint))
                self.changed.add(gang)

    def require_possible(self) -> None:
        """Check that no more tasks are written or read in a slice than the store takes; a move that costs nothing is over."""
        transferring = [gang for gang in self.changed if gang.migrating]
        limit = self.machine.checkpointing.max_tasks_per_slice
        if limit is not None:
            for row in sorted({row for gang in transferring for row in places(gang.rows)}):
                tasks = sum(self.tasks_at_the_store(other) for other in self.gangs[row].values() if other.migrating)
                if tasks > limit:
                    raise DecisionError(f"{tasks} tasks would migrate in a slice of row {row}: at most Q = {limit} can")
        for gang in transferring:
            gang.end_migration()  # a move that costs nothing is over at once

    def tasks_at_the_store(self, gang: SlicedGang) -> int:
        """Return how many tasks of a gang are written or read at a time, as far as they count against Q.

        All of them, in rounds, when it is preempted or restored; when it migrates, as ``Checkpointing.counts`` says.
        """
        costs = self.machine.checkpointing
        limit, in_rounds = costs.max_tasks_per_slice, gang.stopping or gang.fetching
        tasks = gang.nodes if in_rounds or costs.counts == "gang" else max(1, gang.moved)
        return min(tasks, limit) if limit is not None and (in_rounds or costs.counts == "spread") else tasks

    def row_that_goes_on(self, running: Iterable[SlicedGang], row: int) -> int | None:
        """Return the row with the most tasks of ``running``; of equals ``row``, in which they ran, then the lowest."""
        nodes: dict[int, int] = {}
        for gang in running:
            for place in places(gang.rows):
                nodes[place] = nodes.get(place, 0) + gang.nodes
        return min(nodes, key=lambda place: (-nodes[place], place != row, place), default=None)

    def rotation(self) -> list[int]:
        """Return the rows in use in the order they come, the next one first."""
        self.in_use_changed = False
        held, after = self.held, self.last + 1
        return [row for row in range(after, self.mpl) if held[row]] + [row for row in range(after) if held[row]]
