"""Dedicated nodes: each gang holds its nodes exclusively, and its SimPy process occupies them while it saves or restores.

By default a job with saved work spends the time of a restart once, when it starts.  By the conventions of published
simulations every running gang spends it again and again (:class:`RechargedGang`), in its first run attempt too: at the
beginning of each interval between two scheduling cycles, or of each round.  What a gang has executed by a cycle follows from
arithmetic, so neither convention needs an event of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from simpy import AnyOf, Event, Interrupt, Timeout

from clustermodel.errors import DecisionError, SpecificationError
from clustermodel.machine.machine import Machine
from clustermodel.machine.node_set import NodeSet, as_mask
from clustermodel.plans.windows import Windows
from clustermodel.policies.view import MIGRATING, RESIZING, RESTORING, RETURNING, RUNNING, STOPPING
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Account, Ledger
from clustermodel.recording.run_attempts import Status
from clustermodel.sim.checkpoint_store import Store
from clustermodel.sim.events import Clock
from clustermodel.sim.job_process import Execution, JobInSystem, Phase, Terms, expected_left
from clustermodel.sim.node_pool import NodePool
from clustermodel.sim.phases import AFTER, Phases
from clustermodel.sim.saved_work import SavedWork
from clustermodel.ticks import NEVER, to_seconds

Deadline = Callable[[], int]  # the time by which something must be over, ticks


class _StoreIsBusy(Exception):  # noqa: N818  no error
    """A gang cannot execute for as long as it is expected to before its nodes are reserved: it has waited for the store."""


_GOES_ON: Final = "goes on"  # the cause of an interrupt after which a gang goes on, with other nodes
_WORK: Final = Phase(Account.USEFUL, 0)
_OVER: Final = Phase(Account.IDLE, 0, interruptible=False)  # after the last phase


class DedicatedGang(Execution):
    """A gang that has its nodes to itself: it spends the phases ahead of its work, executes, and spends those after that."""

    # It counts as restoring until it is ready to execute, and as stopping once it does not any more.

    __slots__ = ("_ahead", "_boots", "_executed", "_nodes", "_phase", "_since")

    def __init__(self, owner: JobInSystem, nodes: DedicatedNodes, columns: NodeSet, terms: Terms) -> None:
        Execution.__init__(self, owner, nodes.env.now, columns, terms)
        self._nodes = nodes
        self._executed = 0  # up to the last interruption, ticks
        self._ahead: list[Phase] = []  # the phases that come before it executes, or executes again
        self._phase = _WORK  # the present phase, or the last one that was not work
        self._since: int | None = self.start  # when it began to execute, ticks; None while it does not
        self._boots = 0  # how many of its nodes have still to boot

    def begin(self) -> None:
        self.interval = self._nodes.phases.checkpoints(self.owner, self.nodes)[0]
        ahead = self._nodes.phases.before(self.owner, self.nodes, self.columns)
        self._expect(ahead, self._nodes.env.now + self._until_free(self.length))
        if self._ahead or self.owner.image is not None:
            self._since = None
            if self.state is RUNNING:
                self.state = RESTORING

    def _expect(self, ahead: list[Phase], then: int) -> None:
        """Boot what is off of its nodes and spend phases, so that all ends so much later than ``then``."""
        if (switched_off := self._nodes.pool.switched_off) is not None:
            self._boots = switched_off.taken_by_gang(self.columns)
            if self._boots:
                ahead = [Phase(Account.BOOT, switched_off.boot), *ahead]
        self._ahead = ahead
        self.expected_end = then + self._nodes.phases.takes(ahead) if ahead else then

    def _until_free(self, ticks: int) -> int:
        """Return how long it can be expected to hold its nodes once it executes, for so many ticks."""
        phases = self._nodes.phases
        return phases.takes(phases.execution(self.owner, self.nodes, ticks))

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
                if nodes.occupy:
                    yield from self._close()
            except Interrupt as interrupt:
                self._pause()
                cause = interrupt.cause
            except _StoreIsBusy:
                self._nodes.saved.stop(self, Status.CHECKPOINTED if self.fetching else Status.PREEMPTED)
                cause = None
            else:
                break
            if cause is not _GOES_ON:  # a compiled generator that yields in a handler leaves its exception behind
                yield from self._leave()
                break
        nodes.pool.give_back(self.columns)

    def _leave(self) -> Generator[Event, object, None]:
        """Save what it has executed after a preemption, and spend what comes after that."""
        while self._phase.interruptible:  # again if it is killed before it was saved, or a node fails
            with suppress(Interrupt):
                yield from self._save()
                yield from self._close()

    def _close(self) -> Generator[Event, object, None]:
        """Spend the last phases on its nodes, in which nothing stops it but a failure."""
        if phases := self._closing(self.outcome):
            if not self.stopping:
                self.enter(STOPPING)
            yield from self._spend(phases)
        self._phase = _OVER

    def _closing(self, how: Status) -> list[Phase]:
        # Nodes that have not booted need no cleaning, and what is suspended stays on its nodes as it is.
        if not (self._nodes.occupy and self._phase.interruptible) or self._boots or how in (Status.FAILED, Status.SUSPENDED):
            return []
        return self._nodes.phases.occupying(AFTER, self.owner.row, self.nodes)

    def leaving(self, how: Status) -> list[Phase]:
        return [*self._nodes.phases.saving(self, how), *self._closing(how)]

    def _save(self) -> Generator[Event, object, None]:
        """Save what it has executed, unless that takes until its nodes are reserved."""
        if not (yield from self._spend(self._nodes.phases.saving(self, self.outcome), by=self._must_save_by)):
            self._nodes.saved.stop(self, Status.PREEMPTED)

    def _must_save_by(self) -> int:
        return self._out_by() - self._nodes.phases.takes(self._closing(self.outcome))

    def _must_execute_by(self) -> int:
        """Return when it must execute, at the latest, to be expected to end before its nodes are reserved, ticks."""
        closing = self._nodes.phases.takes(self._closing(Status.COMPLETED))
        return self._out_by() - max(self.length - self.executed(), 0) - closing

    def _out_by(self) -> int:
        """Return when nodes of it are reserved next, or known to be down, ticks."""
        if (windows := self._nodes.windows) is None:
            return NEVER
        return windows.next_begin(self._nodes.env.now, as_mask(self.columns), self.job.barred)

    def _execute(self, until: int) -> Generator[Event, object, None]:
        """Execute until it has executed for ``until`` ticks; a checkpoint that was interrupted begins again at once."""
        executed = self._executed
        if until < executed:  # noqa: PLR1730  faster than max()
            until = executed
        yield Timeout(self._nodes.env, until - executed)
        self._executed, self._since = until, None

    def _checkpoint(self) -> Generator[Event, object, bool]:
        """Write a periodic checkpoint; return whether it was written.

        It is not if the job is complete before its turn, or would then be on its nodes when they are reserved.
        """
        nodes = self._nodes
        phases, in_turn = nodes.phases.checkpoint(self), nodes.store.executes_while_waiting
        if not (yield from self._spend(phases, executing=in_turn, by=self._must_execute_by)):
            self._since = nodes.env.now
            return False
        if in_turn and phases and self._executed >= self.duration:
            return False
        self.begun = self.checkpointed = self._executed
        self.owner.store_all()
        self._since = nodes.env.now
        return True

    def _at_risk(self) -> int:
        """Return what a failure would cost now: the work since the last checkpoint, and the restart, ticks."""
        restart = self._nodes.phases.transfers.of(self.owner, self.nodes)[1]
        return self.executed() - self.checkpointed + restart

    def _get_ready(self) -> Generator[Event, object, None]:
        """Spend the phases ahead: boot, start up, restore what was saved, finish a migration or a resize."""
        while self._ahead:
            if not (yield from self._spend(self._ahead[:1], by=self._must_execute_by)):
                raise _StoreIsBusy
            del self._ahead[0]
        if self.state is RESTORING and self.owner.image is not None:
            self._nodes.saved.restored(self)
        elif self.state is not RUNNING and not self.stopping:  # it may have been stopped at this very time
            self.enter(RUNNING)
        self._since = self._nodes.env.now

    def _boot(self, ticks: int) -> Generator[Event, object, None]:
        switched_off = self._nodes.pool.switched_off
        assert switched_off is not None
        with self._held(Account.BOOT, self._boots), self._held(Account.BLOCKED, self.nodes - self._boots):
            yield Timeout(self._nodes.env, ticks)
        self._boots = 0
        switched_off.booted(self.columns)

    def _spend(
        self, phases: list[Phase], *, executing: bool = False, by: Deadline | None = None
    ) -> Generator[Event, object, bool]:
        """Hold the nodes for phases, one after the other; transfers queue at the checkpoint store, until ``by`` at most.

        Return whether all was done.
        """
        # Where `executing`, the gang executes until it is its turn, and writes nothing if the job is complete by then.
        for phase in phases:
            self._phase = phase
            account, ticks, tasks, _ = phase
            if tasks:
                if not (yield from self._transfer(tasks, ticks, account, executing=executing, by=by)):
                    return False
            elif account is Account.BOOT:
                yield from self._boot(ticks)
            else:
                with self._held(account):
                    yield Timeout(self._nodes.env, ticks)
        return True

    def _transfer(
        self, nodes: int, ticks: int, account: Account, *, executing: bool = False, by: Deadline | None = None
    ) -> Generator[Event, object, bool]:
        """Write or read as many tasks as there are ``nodes``, in turn with other gangs; return whether all was done in time."""
        env, store = self._nodes.env, self._nodes.store
        if self._nodes.windows is None:
            by = None
        for tasks in store.rounds(nodes):
            if by is not None and not executing and env.now + ticks > by():
                return False
            transfer = store.ask(tasks, ticks, self._at_risk if executing else None)
            try:
                if executing and not transfer.granted.triggered:
                    self._since = env.now
                    yield AnyOf(env, [transfer.granted, Timeout(env, self.duration - self._executed)])
                    self._pause()
                elif not transfer.granted.triggered:
                    with self._held(Account.BLOCKED):
                        yield self._in_time(transfer.granted, by)
                if not executing or self._executed < self.duration:
                    if by is not None and (not transfer.granted.triggered or env.now + ticks > by()):
                        return False
                    with self._held(account):
                        yield self._in_time(transfer.done, by)
                    if not transfer.done.triggered:
                        return False
            finally:
                store.withdraw(transfer)
        return True

    def _in_time(self, event: Event, by: Deadline | None) -> Event:
        """Return what happens first: an event, or that it is too late for it."""
        if by is None or (latest := by()) >= NEVER:
            return event
        env = self._nodes.env
        return AnyOf(env, [event, Timeout(env, max(latest - env.now, 0))])

    @contextmanager
    def _held(self, account: Account, nodes: int = -1) -> Iterator[None]:
        env, ledger = self._nodes.env, self._nodes.ledger
        nodes = self.nodes if nodes < 0 else nodes  # of which it may soon have another number
        began = env.now
        ledger.hold(began, account, nodes)
        try:
            yield
        finally:
            ends = env.now
            ledger.hold(ends, account, -nodes)
            if ends > began and nodes:
                self._nodes.records.overhead(self.owner.index, began, ends, nodes, account)

    def _pause(self) -> None:
        if self._since is not None:
            self._executed += self._nodes.env.now - self._since
            self._since = None

    def executed(self) -> int:
        return self._executed if self._since is None else self._executed + self._nodes.env.now - self._since

    def stop(self, how: Status) -> bool:
        if not self._phase.interruptible:
            if how is not Status.FAILED:
                where = f"its nodes are in the {self._phase.account.value}"
                raise DecisionError(f"job {self.job.id} cannot be stopped: it has ended, and {where}")
            self.owner.process.interrupt(how)  # what has been saved is saved: it only leaves its nodes
            return True
        self._nodes.saved.stop(self, how)
        self._pause()
        self.owner.process.interrupt(how)
        if not self.stopping and self._closing(how):
            self.enter(RETURNING if self.state is RESTORING else STOPPING)
        return not self.leaving(how)

    def migrate_to(self, columns: NodeSet) -> None:
        """Go on elsewhere, after a checkpoint and a restart there; the nodes have been seen to."""
        self._pause()
        self.columns = columns
        if self.fetching:  # what has still to be restored is restored on its new nodes instead
            self.begin()
        else:
            self.enter(MIGRATING)
            self._expect(self._nodes.phases.migration(self), self.expected_end)
        self.owner.process.interrupt(_GOES_ON)

    def resize_to(self, columns: NodeSet, nodes: int, executed: int, phases: list[Phase]) -> None:
        self._pause()
        self.columns, self.nodes = columns, nodes
        self._executed = self.resized_at = executed
        self.interval = self._nodes.phases.checkpoints(self.owner, nodes)[0]
        self._expect(phases, self._nodes.env.now + self._until_free(max(self.length - executed, 1)))
        if not self.resizing:
            self.enter(RESIZING)
        self.owner.process.interrupt(_GOES_ON)


class DedicatedNodes:
    """The nodes of a machine that gangs do not share; see ``Sharing``."""

    slice_log = None  # nothing is sliced

    def __init__(
        self, env: Clock, machine: Machine, phases: Phases, pool: NodePool, saved: SavedWork, store: Store, ledger: Ledger,
        records: JobRecords, windows: Windows | None, running: Mapping[int, Execution],
    ) -> None:  # fmt: skip
        self.env, self.phases, self.pool, self.saved, self.store = env, phases, pool, saved, store
        self.ledger, self.records, self.windows, self._running = ledger, records, windows, running
        self.round = machine.round
        charge = machine.checkpointing.restart_charge
        self.is_settled = charge != "on-start"
        self.occupy = phases.occupy
        # Whether more than the start may be planned of a job of which nothing is saved.
        self._plans = phases.transfers.are_periodic or self.occupy or machine.idle_off is not None or self.is_settled
        self._gang: type[DedicatedGang] = DedicatedGang
        if self.is_settled:
            self._gang = PayingInRounds if charge == "every-round" else RechargedGang

    def expected_left(self, running: Mapping[int, Execution]) -> dict[int, int]:
        return expected_left(running)

    def start(self, job: JobInSystem, terms: Terms, columns: NodeSet | None) -> Execution:
        """Give a job its nodes: those named, else those whose memory holds its image if they are idle, else the lowest."""
        if columns is None:
            if (image := job.image) is not None and image.columns is not None and self.pool.idle_nodes.has(image.columns):
                columns = image.columns
            elif self.saved.free is not None:
                columns = self.pool.lowest_idle(job.queued, terms[0], self.saved.nodes_for(job))
        gang = self._gang(job, self, self.pool.take(job.queued, terms[0], columns), terms)
        if self.saved.free is not None:
            self.saved.hold(job, gang.columns, job.suspended_on)
        if self._plans or job.image is not None:
            gang.begin()
        return gang

    def migrate(self, moves: list[tuple[Execution, NodeSet]]) -> None:
        """Move gangs to other nodes, which they hold from now on while they are checkpointed and restarted."""
        for gang, _ in moves:
            refused = f"job {gang.job.id} cannot migrate"
            if gang.stopping:
                raise DecisionError(f"{refused}: it has been preempted, and still holds its nodes")
            if gang.migrating or gang.resizing:
                raise DecisionError(f"{refused}: it has not been restarted yet where it {_moved(gang)} last")
            if self.phases.transfers.tasks_at_a_time == 0:
                raise DecisionError(f"{refused}: the store takes no tasks (max_tasks_per_slice=0)")
            self.pool.give_back(gang.columns)
        for gang, columns in moves:
            self.pool.take(gang.job, gang.nodes, columns, to="migrate")
            assert isinstance(gang, DedicatedGang)
            gang.migrate_to(columns)
            self.saved.hold(gang.owner, columns, gang.owner.suspended_on)
            self.records.moved(gang.owner.index, self.env.now, columns)

    def change_nodes(self, columns: NodeSet, down: bool) -> None:
        self.pool.change_nodes(columns, down=down)

    def settle(self, now: int) -> None:
        if self.is_settled:
            for gang in self._running.values():
                assert isinstance(gang, RechargedGang)
                gang.settle(now)

    def resume(self, waiting: bool, happened: bool) -> None:
        """Do nothing: gangs run on."""


def _moved(gang: Execution) -> str:
    return "was resized" if gang.resizing else "migrated"


class RechargedGang(DedicatedGang):
    """A gang that restarts after every scheduling cycle."""

    # Until the next cycle it counts as executing, and it completes when it has executed for its duration: the interval in which
    # it completes is not charged.  What it had to spend in an interval is known at its end.

    __slots__ = ("_restart",)

    def __init__(self, owner: JobInSystem, nodes: DedicatedNodes, columns: NodeSet, terms: Terms) -> None:
        super().__init__(owner, nodes, columns, terms)
        self._restart = nodes.phases.transfers.in_all(owner, terms[0])[1]

    def settle(self, now: int) -> None:
        if self._since is not None:
            paid = min(self._restart, now - self._since)
            self._charge(self._since, self._since + paid)
            self._executed += now - self._since - paid
            self._since = now

    def _execute(self, until: int) -> Generator[Event, object, None]:
        while (left := until - self.executed()) > 0:  # restarts may have been charged meanwhile
            yield Timeout(self._nodes.env, left)
        self._executed, self._since = until, None

    def _charge(self, begin: int, end: int) -> None:
        """Charge its nodes to a restart from ``begin`` to ``end``, ticks; the queue has not changed in between."""
        if begin < end:
            ledger = self._nodes.ledger
            ledger.charge(Account.RESTART, self.nodes * (end - begin), waiting=ledger.waiting)
            self._nodes.records.overhead(self.owner.index, begin, end, self.nodes, Account.RESTART)


class PayingInRounds(RechargedGang):
    """A gang that restarts at its start and at the beginning of each round, which must be longer than a restart."""

    __slots__ = ("_charged_until", "_round")

    def __init__(self, owner: JobInSystem, nodes: DedicatedNodes, columns: NodeSet, terms: Terms) -> None:
        super().__init__(owner, nodes, columns, terms)
        self._round = length = nodes.round
        if self._restart >= length:
            raise SpecificationError(
                f"Machine.round_s: {to_seconds(length):g} is not allowed for job {owner.queued.id}, whose restart takes "
                f"{to_seconds(self._restart):g} s in every round; it must be longer"
            )
        self._charged_until = self.start

    def _until_free(self, ticks: int) -> int:
        now = self._nodes.env.now
        return self._end(now, ticks) - now

    def _execute(self, until: int) -> Generator[Event, object, None]:
        assert self._since is not None
        yield Timeout(self._nodes.env, self._end(self._since, until - self._executed) - self._nodes.env.now)
        self.settle(self._nodes.env.now)
        self._executed, self._since = until, None

    def settle(self, now: int) -> None:
        if self._since is not None:
            for begin, end in self._restarts(self._since, max(self._charged_until, self._since), now):
                self._charge(begin, end)
            self._charged_until = now

    def executed(self) -> int:
        since, now = self._since, self._nodes.env.now
        if since is None:
            return self._executed
        return self._executed + now - since - sum(end - begin for begin, end in self._restarts(since, since, now))

    def _pause(self) -> None:
        self._executed, self._since = self.executed(), None

    def _end(self, since: int, work: int) -> int:
        """Return when a gang that starts at ``since`` has executed for ``work`` ticks."""
        ends = since - since % self._round + self._round
        first = max(ends - since - self._restart, 0)
        if work <= first:
            return since + self._restart + work
        rounds, rest = divmod(work - first - 1, self._round - self._restart)
        return ends + rounds * self._round + self._restart + rest + 1

    def _restarts(self, since: int, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of ``begin`` to ``end`` in which a gang that started at ``since`` restarts."""
        begins = max(since, begin - begin % self._round)
        while begins < end:
            ends = begins - begins % self._round + self._round
            first, last = max(begins, begin), min(begins + self._restart, ends, end)
            if first < last:
                yield first, last
            begins = ends
