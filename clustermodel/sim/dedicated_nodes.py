"""Dedicated nodes: each gang has its nodes to itself, and its own process spends on them what it costs to stop and go on."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from simpy import AnyOf, Event, Interrupt, Timeout

from clustermodel.errors import DecisionError
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Account, Ledger
from clustermodel.recording.run_attempts import PREEMPTIONS, Status
from clustermodel.schedule.node_set import NodeSet
from clustermodel.sim.checkpoint_store import LimitedStore
from clustermodel.sim.events import Clock
from clustermodel.sim.job_process import Execution, JobInSystem, Terms
from clustermodel.sim.node_pool import NodePool
from clustermodel.sim.saved_work import TRANSFERS, Overhead, SavedWork
from clustermodel.sim.shared_store import SharedStore
from clustermodel.sim.sharing import Sharing

_MIGRATED: Final = "migrated"
"""The cause of an interrupt after which a gang goes on."""


class DedicatedGang(Execution):
    """A gang that has its nodes to itself.

    Args:
        owner: whose run attempt it is.
        nodes: where it runs.
        columns: which of them.
        terms: how long it will execute, and how that ends.
    """

    __slots__ = ("_executed", "_nodes", "_since")

    def __init__(self, owner: JobInSystem, nodes: DedicatedNodes, columns: NodeSet, terms: Terms) -> None:
        super().__init__(owner, nodes.env.now, columns, terms)
        self._nodes = nodes
        self._executed = 0  # up to the last interruption, ticks
        self._since: int | None = self.start  # when it began to execute, ticks; None while it does not

    def plan_checkpoints(self, interval: int | None, ticks: int) -> None:
        """Be checkpointed whenever it has executed for ``interval``, which takes ``ticks`` if the store has room at once."""
        self.interval = interval
        if interval is not None:
            self.expected_end += (self.length - 1) // interval * ticks

    def begin_by_restoring(self, ticks: int) -> None:
        """Restore what was saved of the job before it executes, for ``ticks`` if the checkpoint store has room at once."""
        self.fetching = True
        self.expected_end += ticks
        self._since = None

    def run(self) -> Generator[Event, object, None]:
        """Execute; before that, restore what was saved of the job, and after a preemption save what it has executed."""
        nodes = self._nodes
        while True:
            try:
                if self._since is None:
                    yield from self._get_ready()
                while self.interval is not None and (until := self.next_checkpoint()) < self.duration:
                    yield from self._execute(until)
                    if not (yield from self._checkpoint()):
                        break
                yield from self._execute(self.duration)
            except Interrupt as interrupt:
                self._pause()
                cause = interrupt.cause
            else:
                break
            if cause is not _MIGRATED:
                yield from self._save()  # a compiled generator that yields in a handler leaves its exception behind
                break
        nodes.pool.release(self.columns)

    def _execute(self, until: int) -> Generator[Event, object, None]:
        """Execute until it has executed for ``until`` ticks; a checkpoint that was interrupted begins again at once."""
        until = max(until, self._executed)
        yield Timeout(self._nodes.env, until - self._executed)
        self._executed, self._since = until, None

    def _checkpoint(self) -> Generator[Event, object, bool]:
        """Write a periodic checkpoint; return whether it was written, and the job was not complete before its turn."""
        nodes = self._nodes
        overheads = nodes.saved.overheads_of_a_checkpoint(self)
        if nodes.turns is None or not overheads:
            yield from self._spend(overheads)
        else:
            yield from self._write_in_turn(nodes.turns, overheads[0][1])
            if self._executed >= self.duration:
                return False
        self.checkpointed, self._since = self._executed, nodes.env.now
        return True

    def _write_in_turn(self, store: SharedStore, ticks: int) -> Generator[Event, object, None]:
        """Execute until it is the gang's turn at the store, and write a checkpoint, unless the job is complete by then."""
        env = self._nodes.env
        transfer = store.ask(self.nodes, ticks, self._at_risk)
        try:
            if not transfer.granted.triggered:
                self._since = env.now
                yield AnyOf(env, [transfer.granted, Timeout(env, self.duration - self._executed)])
                self._pause()
            if self._executed < self.duration:
                with self._held(Account.CHECKPOINT):
                    yield transfer.done
        finally:
            store.withdraw(transfer)

    def _at_risk(self) -> int:
        """Return what a failure would cost now: the work since the last checkpoint, and the restart, ticks."""
        restart = self._nodes.saved.costs.of(self.owner, self.nodes)[1]
        return self.executed() - self.checkpointed + restart

    def _get_ready(self) -> Generator[Event, object, None]:
        """Restore what was saved, or finish a migration; then begin to execute."""
        saved, owner = self._nodes.saved, self.owner
        if self.fetching:
            yield from self._spend(saved.overheads_of_restoring(owner, self.columns))
            saved.restored(self)
        elif self.migrating:
            yield from self._spend(saved.overheads_of_migration(self))
            self.migrating = False
        self._since = self._nodes.env.now

    def _save(self) -> Generator[Event, object, None]:
        with suppress(Interrupt):  # killed before it was saved
            yield from self._spend(self._nodes.saved.overheads_of_saving(self, self.outcome))

    def _spend(self, overheads: list[Overhead]) -> Generator[Event, object, None]:
        """Hold the nodes for overheads, one after the other; transfers queue at the checkpoint store."""
        nodes = self._nodes
        for account, ticks in overheads:
            if account in TRANSFERS:
                queueing, moving = (partial(self._held, spent_on) for spent_on in (Account.BLOCKED, account))
                yield from nodes.store.transfer(self.nodes, ticks, queueing=queueing, moving=moving)
            else:
                with self._held(account):
                    yield Timeout(nodes.env, ticks)

    @contextmanager
    def _held(self, account: Account) -> Iterator[None]:
        """Charge the gang's nodes to ``account``."""
        env, ledger = self._nodes.env, self._nodes.ledger
        began = env.now
        ledger.hold(began, account, self.nodes)
        try:
            yield
        finally:
            ends = env.now
            ledger.hold(ends, account, -self.nodes)
            if ends > began:
                self._nodes.records.overhead(self.owner.index, began, ends, self.nodes, account)

    def _pause(self) -> None:
        """Stop executing now."""
        if self._since is not None:
            self._executed += self._nodes.env.now - self._since
            self._since = None

    def executed(self) -> int:
        """Return how long it has executed, ticks: this run attempt alone."""
        return self._executed if self._since is None else self._executed + self._nodes.env.now - self._since

    def overhead_left(self) -> int:
        """Return 0: how long it is held up depends on the queue at the checkpoint store; ``expected_end`` counts it in."""
        return 0

    def stop(self, how: Status) -> bool:
        """Stop executing at once; the process then saves what is to be saved.

        Raises:
            DecisionError: it has been preempted already, or what saving it needs is not there.
        """
        saved = self._nodes.saved
        saved.prepare_to_stop(self, how)
        self._pause()
        self.outcome = how
        if how in PREEMPTIONS:
            self.stopping = True
        self.owner.process.interrupt(how)
        return not saved.overheads_of_saving(self, how)

    def migrate_to(self, columns: NodeSet) -> None:
        """Go on elsewhere, after a checkpoint and a restart there; both nodes and columns have been seen to.

        A gang whose image has still to be restored restores it on its new nodes instead.
        """
        saved = self._nodes.saved
        self._pause()
        self.columns = columns
        if self.fetching:
            overheads = saved.overheads_of_restoring(self.owner, columns)
            self.expected_end = self._nodes.env.now + self.length
        else:
            overheads = saved.overheads_of_migration(self)
            self.migrating = True
        self.expected_end += sum(ticks for _, ticks in saved.in_all(overheads, self.nodes))
        self.owner.process.interrupt(_MIGRATED)


class DedicatedNodes:
    """The nodes of a machine that gangs do not share; see :class:`~clustermodel.sim.sharing.Sharing`.

    Args:
        env: the simulation.
        pool: the nodes.
        store: where gangs are checkpointed.
        saved: what is saved of preempted jobs.
        ledger: where overheads are charged.
        records: where they are noted.
        time_sharing: returns time sharing of all nodes.
    """

    slice_log = None
    """Nothing is sliced."""
    is_settled = False

    def __init__(
        self,
        env: Clock,
        pool: NodePool,
        store: LimitedStore | SharedStore,
        saved: SavedWork,
        ledger: Ledger,
        records: JobRecords,
        time_sharing: Callable[[], Sharing],
    ) -> None:
        self.env = env
        self.pool = pool
        self.store = store
        self.turns = store if isinstance(store, SharedStore) and store.executes_while_waiting else None
        """The store, if gangs execute while they wait for their turn to write a periodic checkpoint."""
        self.saved = saved
        self.ledger = ledger
        self.records = records
        self._time_sharing = time_sharing

    def shared_in_time(self, down: Iterable[NodeSet]) -> Sharing:
        """Return time sharing of the same nodes.

        Raises:
            DecisionError: gangs hold nodes to themselves.
        """
        self.pool.take_whole_machine()
        sharing = self._time_sharing()
        for columns in down:
            sharing.take_down(columns)
        return sharing

    def start(self, job: JobInSystem, terms: Terms, columns: NodeSet | None, row: int | None) -> Execution:
        """Give a job its nodes: those named, else those whose memory holds its image if they are idle, else the lowest.

        Raises:
            DecisionError: see ``Sharing.start``.
        """
        image = job.image
        memory = self.saved.memory
        if columns is None and image is not None and image.columns is not None and self.pool.has_idle(image.columns):
            columns = image.columns
        elif columns is None and memory.free is not None:
            columns = self.pool.lowest_idle(job.queued, terms.nodes, memory.nodes_for(job))
        gang = self._gang(job, self.pool.take(job.queued, terms.nodes, columns), terms)
        if memory.free is not None:
            memory.hold(job, gang.columns, job.suspended_on)
        if self.saved.costs.are_periodic:
            gang.plan_checkpoints(*self.saved.checkpoints_of(job, gang.nodes))
        if image is not None:
            overheads = self.saved.in_all(self.saved.overheads_of_restoring(job, gang.columns), gang.nodes)
            gang.begin_by_restoring(sum(ticks for _, ticks in overheads))
        return gang

    def _gang(self, job: JobInSystem, columns: NodeSet, terms: Terms) -> DedicatedGang:
        """Return the gang of a job."""
        return DedicatedGang(job, self, columns, terms)

    def migrate(self, moves: list[tuple[Execution, NodeSet]], blocked: list[Execution]) -> None:
        """Move gangs to other nodes, which they hold from now on while they are checkpointed and restarted.

        Raises:
            DecisionError: a gang is being preempted or migrates already, the store takes no tasks, or nodes are not idle.
        """
        if blocked:
            raise DecisionError(f"job {blocked[0].job.id} cannot wait for a migration: it shares its nodes with no other gang")
        for gang, _ in moves:
            self.saved.require_movable(gang)
            self.pool.release(gang.columns)
        for gang, columns in moves:
            self.pool.take(gang.job, gang.nodes, columns, to="migrate")
            assert isinstance(gang, DedicatedGang)
            gang.migrate_to(columns)
            self.saved.memory.hold(gang.owner, columns, gang.owner.suspended_on)
            self.records.moved(gang.owner.index, self.env.now, columns)

    def take_down(self, columns: NodeSet) -> None:
        """Take nodes out of service that have failed."""
        self.pool.take_down(columns)

    def put_up(self, columns: NodeSet) -> None:
        """Put nodes that have been repaired back into service."""
        self.pool.put_up(columns)

    def settle(self, now: int) -> None:
        """Do nothing: what a gang has executed follows from when it began."""

    def resume(self, *, waiting: bool) -> None:
        """Do nothing: gangs run on."""
