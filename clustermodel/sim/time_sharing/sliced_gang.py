"""A gang in rows of the Ousterhout matrix: it executes in its own slices, and spends its overheads at their start."""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol

from simpy import Event, Interrupt

from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import PREEMPTIONS, Status
from clustermodel.schedule.node_set import NodeSet, as_mask
from clustermodel.sim.events import Bell, Clock
from clustermodel.sim.job_process import Execution, JobInSystem, Terms
from clustermodel.sim.saved_work import TRANSFERS, Overhead, SavedWork
from clustermodel.sim.time_sharing.rotation import Pace


class Slices(Protocol):
    """What a gang asks of the process that gives the machine to one row after the other."""

    def executed(self, gang: SlicedGang) -> int:
        """Return how long a gang has executed, ticks, up to the last scheduling event."""

    def hold_up(self, gang: SlicedGang) -> None:
        """Let a gang that will not execute any more spend its pending overheads, and finish."""

    def dismiss(self, gang: SlicedGang) -> None:
        """Take a gang whose run attempt has ended out of all rows."""

    def place(self, gang: SlicedGang, row: int) -> None:
        """Let a gang run in ``row`` as well."""

    def withdraw(self, gang: SlicedGang, row: int) -> None:
        """Take a gang out of ``row``."""

    def rehome(self, gang: SlicedGang, row: int) -> None:
        """Make ``row`` the home of a gang."""


class SlicedGang(Execution):
    """A gang that shares its nodes in time.

    Args:
        env: the simulation.
        owner: whose run attempt it is.
        columns: the nodes it runs on.
        home: its home row.
        terms: how long it will execute, and how that ends.
        order: number of the start.
        slices: the time-slice process.
        saved: what is saved of preempted jobs.
    """

    __slots__ = (
        "_begun",
        "_being_written",
        "_checkpoint",
        "_executed",
        "_mask",
        "_saved",
        "_slices",
        "_to_restore",
        "done",
        "due",
        "finished",
        "home",
        "left",
        "moved",
        "order",
        "pace",
        "pending",
        "restored_at",
    )

    def __init__(
        self,
        env: Clock,
        owner: JobInSystem,
        columns: NodeSet,
        home: int,
        terms: Terms,
        order: int,
        slices: Slices,
        saved: SavedWork,
    ) -> None:
        super().__init__(owner, env.now, columns, terms)
        self.home = home
        """Its home row."""
        self._mask = 0  # its columns, once they have been asked for
        self.finished = Bell(env)
        """Rings when it has spent its overheads and executed for its duration."""
        self.order = order
        self.pending: list[Overhead] = []
        """Pending overheads, charged in order at the start of the gang's next slices: (account, ticks)."""
        self.moved = 0
        """How many of its tasks get another node while it migrates."""
        self._slices = slices
        self._saved = saved
        self.restored_at: int | None = None
        """When it will have been restored if no scheduling event comes before, ticks; kept by the fast mode."""
        self._to_restore = 0  # how much of the pending overheads restores what was saved, ticks
        self._executed: int | None = None  # once the run attempt has ended, ticks
        # Of periodic checkpoints, where there are any:
        self._checkpoint = 0  # how long one takes, ticks
        self._begun = 0  # how long it had executed when the last one began, ticks
        self._being_written = 0  # how much of the pending overheads is the last one, ticks
        # Kept by the rotation of the fast mode, which explains them.
        self.pace: Pace | None = None
        self.due = 0
        self.left = self.duration
        self.done = 0
        """How long it has executed up to the last scheduling event, ticks; kept where it has periodic checkpoints."""

    @property
    def mask(self) -> int:
        """Its columns as a bitmask."""
        if not self._mask:
            self._mask = as_mask(self.columns)
        return self._mask

    def run(self) -> Generator[Event, object, None]:
        """Wait until the time-slice process has let the gang finish, or the coordinator stops it."""
        try:
            yield self.finished
            self._executed = self.duration
        except Interrupt:
            self._executed = self._slices.executed(self)
        self._slices.dismiss(self)

    def executed(self) -> int:
        """Return how long it has executed, ticks, up to the last scheduling event."""
        return self._slices.executed(self) if self._executed is None else self._executed

    def stop(self, how: Status) -> bool:
        """Stop executing at once; the gang leaves its rows when it has spent what saving it costs, in its own slices.

        Overheads that were pending are dropped: what is saved is the gang where it is now.

        Raises:
            DecisionError: it has been preempted already, or what saving it needs is not there.
        """
        saved = self._saved
        saved.prepare_to_stop(self, how)
        self.outcome = how
        if how in PREEMPTIONS:
            self.stopping = True
        overheads = saved.in_all(saved.overheads_of_saving(self, how), self.nodes)
        if not overheads:
            self.owner.process.interrupt(how)
            return True
        self.duration = self._slices.executed(self)
        self.pending = overheads
        self.note_migrating()
        self._slices.hold_up(self)
        return False

    # Overheads.

    def begin_by_restoring(self, overheads: list[Overhead]) -> None:
        """Spend ``overheads`` before the gang executes, until what was saved of the job is on its nodes."""
        self.fetching = True
        self.pending = overheads
        self._to_restore = self.overhead_left()
        self.left += self._to_restore
        self.note_migrating()
        if not self._to_restore:
            self._saved.restored(self)

    def plan_checkpoints(self, interval: int | None, ticks: int) -> None:
        """Be checkpointed whenever it has executed for ``interval``, which takes ``ticks`` of its own slices."""
        self.interval, self._checkpoint = interval, ticks
        if interval is not None:
            self.left += (self.duration - 1) // interval * ticks

    def next_checkpoint(self) -> int:
        """Return how long it will have executed when its next periodic checkpoint begins, ticks; its duration if none will."""
        return self.duration if self.interval is None else min(self._begun + self.interval, self.duration)

    def begin_checkpoint(self) -> None:
        """Begin the next periodic checkpoint, which is due: the gang writes it at the start of its own next slices."""
        self._begun = self.next_checkpoint()
        if self._checkpoint:
            self._being_written = self._checkpoint
            self.pending.append((Account.CHECKPOINT, self._checkpoint))
            self.note_migrating()
        else:
            self.checkpointed = self._begun

    def checkpoints_left(self) -> int:
        """Return how long the periodic checkpoints take that begin from now on until its estimate, ticks of its own slices."""
        if self.interval is None or self.stopping:
            return 0
        return max((self.length - 1) // self.interval - self._begun // self.interval, 0) * self._checkpoint

    def advance(self, ticks: int) -> list[Overhead]:
        """Execute and spend overheads for ``ticks`` of its own slices; return what was spent on what."""
        spent = []
        while ticks:
            if self.pending:
                spent += (now_spent := self.spend(ticks))
                ticks -= sum(amount for _, amount in now_spent)
                continue
            until = self.next_checkpoint()
            step = min(ticks, until - self.done)
            self.done += step
            ticks -= step
            if self.done == until < self.duration:
                self.begin_checkpoint()
        return spent

    def migrate_to(self, columns: NodeSet) -> int:
        """Have other columns, and a checkpoint and a restart to spend; one that costs nothing is over when the rows go on.

        Returns:
            How long it takes until the last of its tasks that move has been checkpointed, ticks of its own slices.
        """
        old = self.mask
        self.columns = columns
        self._mask = 0
        moved = (self.mask & ~old).bit_count()
        self.moved = max(moved, self.moved) if self.migrating else moved
        self.migrating = True
        overheads = self._saved.overheads_of_migration(self, self._saved.costs.rounds_of_migration(moved))
        self.pending += overheads
        until_written = 0
        for place, (account, _) in enumerate(overheads, 1):
            if account is Account.CHECKPOINT:
                until_written = place
        return sum(ticks for _, ticks in overheads[:until_written])

    def overhead_left(self) -> int:
        """Return its pending overhead, ticks of its own slices."""
        return sum(ticks for _, ticks in self.pending) if self.pending else 0

    def restoring_left(self) -> int:
        """Return how much of its pending overhead restores what was saved, ticks of its own slices; that comes first."""
        return self._to_restore

    def note_migrating(self) -> None:
        """Note whether a checkpoint or a restart is pending."""
        self.migrating = any(account in TRANSFERS for account, _ in self.pending)

    def spend(self, ticks: int) -> list[Overhead]:
        """Take up to ``ticks`` off the pending overheads, in order; return what was spent on what."""
        spent = []
        before = ticks
        while self.pending and ticks:
            account, due = self.pending.pop(0)
            taken = min(due, ticks)
            ticks -= taken
            spent.append((account, taken))
            if taken < due:
                self.pending.insert(0, (account, due - taken))
        self.note_migrating()
        if self._to_restore:
            self._to_restore -= min(self._to_restore, before - ticks)
            if not self._to_restore:
                self._saved.restored(self, self.restored_at)
        if self._being_written:
            self._being_written -= min(self._being_written, before - ticks)
            if not self._being_written:
                self.checkpointed = self._begun
        return spent

    # Rows.

    def replicate(self, row: int) -> None:
        """Run in one more row.

        Raises:
            DecisionError: there is no such row, or it has no room for the gang.
        """
        self._slices.place(self, row)

    def withdraw(self, row: int) -> None:
        """Leave a row.

        Raises:
            DecisionError: the gang is not in it.
        """
        self._slices.withdraw(self, row)

    def rehome(self, row: int) -> None:
        """Have its home in another of its rows.

        Raises:
            DecisionError: the gang is not in it.
        """
        self._slices.rehome(self, row)
