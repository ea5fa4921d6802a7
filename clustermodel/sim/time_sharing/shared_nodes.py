"""Time sharing: gangs run in rows of the Ousterhout matrix, and the whole machine belongs to the time-slice process.

:class:`TimeSharing` is what the two fidelities share.  What happens between scheduling events is computed
(:mod:`clustermodel.sim.time_sharing.slices`), or played (:mod:`clustermodel.sim.time_sharing.node_by_node`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Mapping, Sequence
from functools import reduce
from heapq import heappop
from operator import or_
from typing import Any, Final, NamedTuple

from simpy import Event, Interrupt

from clustermodel.errors import DecisionError, SpecificationError
from clustermodel.machine.machine import Machine
from clustermodel.machine.node_set import NodeSet, as_mask, from_mask, text
from clustermodel.machine.node_set import places as rows_of
from clustermodel.policies.view import MIGRATING, RESTORING, RUNNING
from clustermodel.recording.job_records import JobRecords, StreamedRecords
from clustermodel.recording.ledger import Account, Ledger
from clustermodel.recording.matrix_history import Cell, History, Moment, SliceLog
from clustermodel.recording.run_attempts import Status
from clustermodel.sim.checkpoint_store import Store
from clustermodel.sim.events import Bell, Clock
from clustermodel.sim.job_process import Execution, JobInSystem, Phase, Terms, expected_left
from clustermodel.sim.node_failures import NodeStates
from clustermodel.sim.phases import Phases
from clustermodel.sim.reservations import KeptFree
from clustermodel.sim.saved_work import SavedWork
from clustermodel.ticks import NEVER

_ALL_OR_NONE: Final = "all gangs share their nodes in time, or none does"


PaceKey = tuple[int, int, int]
"""(rows, first, later): row bitmasks of where the gang runs, and of where it pays a context switch in the first and in later
laps of the rotation."""


class Pace:
    """Gangs that make the same progress: they run in the same rows and switch in the same slices."""

    # Each of them could have executed for `served` ticks so far.  A gang that still needs so many ticks when it joins is due at
    # their sum, so only the smallest due matters, and time passes for all of them when `served` goes on.

    __slots__ = ("dues", "first_rows", "key", "later_rows", "members", "not_before", "rows", "served", "switches")

    def __init__(self, key: PaceKey) -> None:
        self.key = key
        self.rows, self.first_rows, self.later_rows = map(rows_of, key)
        self.switches = bool(self.first_rows or self.later_rows)
        self.members = self.served = 0
        self.not_before = NEVER  # no member can finish before this time, ticks: none executes faster than time passes
        self.dues: list[tuple[int, int, SlicedGang]] = []  # heap of (due, order, gang); a gang that has left since is stale

    def next_due(self) -> int:
        """Return the smallest due of a member; later than any without members."""
        dues = self.dues
        while dues:
            due, _, gang = dues[0]
            if gang.pace is self and gang.due == due:
                return due
            heappop(dues)
        return NEVER

    def finished(self) -> list[SlicedGang]:
        """Return the members that are due now, in the order of their starts."""
        served = self.served
        finished: list[SlicedGang] = []
        while self.next_due() <= served:
            finished.append(heappop(self.dues)[2])
        return finished


class SlicedGang(Execution):
    """A gang that shares its nodes in time: it executes in its own slices, and spends its overheads at their start."""

    __slots__ = (
        "_being_written", "_checkpoint", "_executed", "_sharing", "done", "due", "finished", "home", "left",
        "mask", "moved", "order", "overestimated", "pace", "pending", "restored_at", "to_restore",
    )  # fmt: skip

    def __init__(self, owner: JobInSystem, nodes: TimeSharing, columns: int, terms: Terms, home: int, order: int) -> None:
        Execution.__init__(self, owner, nodes.env.now, from_mask(columns), terms)
        self._sharing = nodes
        self.home = home  # its home row
        self.mask = columns  # its columns, a bitmask
        self.finished = Bell(nodes.env)  # rings when it has spent its overheads and executed for its duration
        self.order = order  # number of its start: gangs that are due at the same time finish in this order
        self.pending: list[Phase] = []  # pending overheads, charged in order at the start of its next slices
        self.moved = 0  # how many of its tasks get another node while it migrates
        self.restored_at: int | None = None  # when it will have been restored without another event, ticks; in the fast mode
        self.to_restore = 0  # how much of the pending overheads restores what was saved, ticks; that comes first
        self._executed: int | None = None  # once the run attempt has ended, ticks
        # Of periodic checkpoints, where there are any:
        self._checkpoint = 0  # how long one takes, ticks
        self._being_written = 0  # how much of the pending overheads is the last one, ticks
        # Kept by the rotation of the fast mode, which explains them:
        self.pace: Pace | None = None  # the pace at which it runs
        self.due = 0  # what the pace has served when the gang finishes, ticks
        self.overestimated = self.length - self.duration  # by how much more it is expected to execute than it does, ticks
        self.left = self.duration  # ticks of its own slices that it still needs; valid while it has no pace
        self.done = 0  # how long it has executed up to the last event, ticks; in the fast mode, with periodic checkpoints only

    @property
    def migrating(self) -> bool:
        """Whether it has been moved at this instant, or a checkpoint or a restart of it is pending."""
        return self.state is MIGRATING or (bool(self.pending) and _has_transfers(self.pending))

    def run(self) -> Generator[Event, object, None]:
        """Wait until the time-slice process has let the gang finish, or the coordinator stops it."""
        try:
            yield self.finished
            self._executed = self.duration
        except Interrupt:
            self._executed = self._sharing.executed(self)
        self._sharing.dismiss(self)

    def executed(self) -> int:
        return self._sharing.executed(self) if self._executed is None else self._executed

    def stop(self, how: Status) -> bool:
        """Stop executing at once; the gang leaves its rows when it has spent what saving it costs, in its own slices."""
        self._sharing.saved.stop(self, how)
        phases = self._sharing.phases.in_all(self.leaving(how))
        if not phases:
            self.owner.process.interrupt(how)
            return True
        self.duration = self._sharing.executed(self)
        self.pending = phases  # others are dropped: what is saved is the gang where it is now
        self._sharing.hold_up(self)
        return False

    def leaving(self, how: Status) -> list[Phase]:
        return self._sharing.phases.saving(self, how)

    def begin(self) -> None:
        phases = self._sharing.phases
        self.interval, self._checkpoint = phases.checkpoints(self.owner, self.nodes)
        if self.interval is not None:
            self.left += (self.duration - 1) // self.interval * self._checkpoint
        if self.owner.image is None:
            return
        self.state = RESTORING
        self.pending = phases.in_all(phases.restoring(self.owner, self.columns))
        self.to_restore = self.overhead_left()
        self.left += self.to_restore
        if not self.to_restore:
            self._sharing.saved.restored(self)

    def begin_checkpoint(self) -> None:
        """Begin the next periodic checkpoint, which is due: the gang writes it at the start of its own next slices."""
        self.begun = self.next_checkpoint()
        if self._checkpoint:
            self._being_written = self._checkpoint
            self.pending.append(Phase(Account.CHECKPOINT, self._checkpoint, self.nodes))
        else:
            self.checkpointed = self.begun

    def overhead_to_come(self) -> int:
        left = sum([phase.ticks for phase in self.pending]) if self.pending else 0
        if self.interval is None or self.stopping:
            return left
        # With the periodic checkpoints that begin from now on until its estimate.
        return left + max((self.length - 1) // self.interval - self.begun // self.interval, 0) * self._checkpoint

    def advance(self, ticks: int) -> list[tuple[Account, int]]:
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

    def migrate_to(self, columns: int) -> int:
        """Have other columns, and a checkpoint and a restart to spend; one that costs nothing is over when the rows go on."""
        # Return how long it takes until the last of its tasks that move has been checkpointed, ticks of its own slices.
        old, self.columns, self.mask = self.mask, from_mask(columns), columns
        moved = (columns & (columns ^ old)).bit_count()
        self.moved = max(moved, self.moved) if self.migrating else moved
        if self.state is not MIGRATING:
            self.enter(MIGRATING)
        phases = self._sharing.phases.migration(self, self._sharing.phases.transfers.rounds_of_migration(moved))
        self.pending += phases
        while phases and phases[-1].account is not Account.CHECKPOINT:
            phases.pop()
        return sum(phase.ticks for phase in phases)

    def overhead_left(self) -> int:
        """Return its pending overhead, ticks of its own slices."""
        return sum([phase.ticks for phase in self.pending]) if self.pending else 0

    def end_migration(self) -> None:
        """Note that a migration is over, unless a checkpoint or a restart is pending."""
        if self.state is MIGRATING and not _has_transfers(self.pending):
            self.enter(RUNNING)

    def spend(self, ticks: int) -> list[tuple[Account, int]]:
        """Take up to ``ticks`` off the pending overheads, in order; return what was spent on what."""
        spent = []
        before = ticks
        while self.pending and ticks:
            phase = self.pending.pop(0)
            taken = min(phase.ticks, ticks)
            ticks -= taken
            spent.append((phase.account, taken))
            if taken < phase.ticks:
                self.pending.insert(0, phase._replace(ticks=phase.ticks - taken))
        self.end_migration()
        if self.to_restore:
            self.to_restore -= min(self.to_restore, before - ticks)
            if not self.to_restore:
                self._sharing.saved.restored(self, self.restored_at)
        if self._being_written:
            self._being_written -= min(self._being_written, before - ticks)
            if not self._being_written:
                self.checkpointed = self.begun
        return spent


class MatrixRows:
    """The rows of the Ousterhout matrix as the machine sees them: which gangs are in which row, which row comes next."""

    # It decides nothing and refuses the impossible: two tasks on a node in a slice, more tasks at the store than it takes.

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.mpl = machine.time_slicing.mpl
        self.occupied = [0] * self.mpl  # columns in use, a bitmask for each row
        self.held = [0] * self.mpl  # number of columns in use in each row
        self.gangs: list[dict[int, SlicedGang]] = [{} for _ in range(self.mpl)]  # gangs by job id in each row
        self.changed: set[SlicedGang] = set()  # whose rows, columns or overheads have changed since the rotation went on
        # Gangs that have moved, or have pending overheads or periodic checkpoints to come; the fast mode keeps here what their
        # pace had served at the last event.
        self.held_up: dict[SlicedGang, int] = {}
        self.last = -1  # the row that ran last: the next one in use comes next
        self.in_use_changed = True  # whether a row has come into use or been emptied since the last rotation()
        self.down = 0  # columns whose nodes are down, a bitmask

    def place(self, gang: SlicedGang, rows: int) -> None:
        """Put a gang into some rows, a bitmask."""
        wanted, number, nodes = gang.mask, gang.job.id, gang.nodes
        occupied, held, gangs = self.occupied, self.held, self.gangs
        down = self.down & wanted
        for row in rows_of(rows):
            if (taken := occupied[row]) & wanted or down:
                reason = f"{text(from_mask(down))} are down" if down else "not all of them are free there"
                raise DecisionError(f"job {number} cannot run in row {row} on columns {text(gang.columns)}: {reason}")
            occupied[row] = taken | wanted
            if not held[row]:
                self.in_use_changed = True
            held[row] += nodes
            gangs[row][number] = gang
        gang.rows |= rows
        self.changed.add(gang)

    def withdraw(self, gang: SlicedGang, rows: int) -> None:
        """Take a gang out of some of its rows, a bitmask."""
        mask, number, nodes = gang.mask, gang.job.id, gang.nodes
        occupied, held, gangs = self.occupied, self.held, self.gangs
        for row in rows_of(rows):
            occupied[row] ^= mask
            held[row] -= nodes
            if not held[row]:
                self.in_use_changed = True
            del gangs[row][number]
        gang.rows ^= rows
        self.changed.add(gang)

    def remove(self, gang: SlicedGang) -> None:
        self.withdraw(gang, gang.rows)
        self.changed.discard(gang)
        self.held_up.pop(gang, None)

    def hold_up(self, gang: SlicedGang) -> None:
        """Note that ``gang`` has something to spend before it goes on."""
        self.changed.add(gang)
        self.held_up[gang] = 0

    def migrate(self, moves: list[tuple[SlicedGang, int]], blocked: list[SlicedGang]) -> None:
        """Give gangs in no row new columns, and them and the blocked ones their overheads (Zhang et al. 2003, section 5.4)."""
        checkpoint = 0  # the longest of those that are written
        for gang, columns in moves:
            checkpoint = max(checkpoint, gang.migrate_to(columns))
            self.hold_up(gang)
        for gang in blocked:
            if checkpoint:
                gang.pending.append(Phase(Account.BLOCKED, checkpoint))
                self.hold_up(gang)

    def require_possible(self) -> None:
        """Check that no more tasks are written or read in a slice than the store takes; a move that costs nothing is over."""
        transferring = [gang for gang in self.held_up if gang.migrating and gang in self.changed]
        limit = self.machine.checkpointing.max_tasks_per_slice
        if limit is not None:
            for row in sorted({row for gang in transferring for row in rows_of(gang.rows)}):
                tasks = sum(self.tasks_at_the_store(other) for other in self.gangs[row].values() if other.migrating)
                if tasks > limit:
                    raise DecisionError(f"{tasks} tasks would migrate in a slice of row {row}: at most Q = {limit} can")
        for gang in transferring:
            gang.end_migration()  # a move that costs nothing is over at once
            if not gang.pending and gang.interval is None:
                del self.held_up[gang]

    def tasks_at_the_store(self, gang: SlicedGang) -> int:
        """Return how many tasks of a gang are written or read at a time, as far as they count against Q."""
        # All of them, in rounds, when it is preempted or restored; when it migrates, as Checkpointing.counts says.
        costs = self.machine.checkpointing
        limit, in_rounds = costs.max_tasks_per_slice, gang.stopping or gang.fetching
        tasks = gang.nodes if in_rounds or costs.counts == "gang" else max(1, gang.moved)
        return min(tasks, limit) if limit is not None and (in_rounds or costs.counts == "spread") else tasks

    def rotation(self) -> list[int]:
        """Return the rows in use in the order they come, the next one first."""
        self.in_use_changed = False
        held, after = self.held, self.last + 1
        return [row for row in range(after, self.mpl) if held[row]] + [row for row in range(after) if held[row]]


class OfRun(NamedTuple):
    """What time sharing needs of a run."""

    env: Clock
    machine: Machine
    phases: Phases
    saved: SavedWork
    store: Store
    ledger: Ledger
    records: JobRecords
    states: NodeStates
    kept_free: KeptFree | None
    history: History | None


class TimeSharing:
    """The nodes of a machine that gangs share in time; see ``Sharing``."""

    is_settled = True

    def __init__(self, run: OfRun) -> None:
        machine, costs = run.machine, run.machine.checkpointing
        if isinstance(run.records, StreamedRecords):
            raise SpecificationError("stream: the policy shares nodes in time, and the log of time slices grows with the run")
        if costs.interval_s is not None and costs.max_tasks_per_slice is not None:
            raise SpecificationError(
                "Checkpointing: interval_s and max_tasks_per_slice are not allowed together where nodes are shared in time, "
                "because who writes next would depend on the store's queue inside a slice; leave one of them out"
            )
        if costs.store is not None and costs.store.is_shared:
            raise SpecificationError(
                "CheckpointStore: bandwidth_gib_s, max_concurrent_tasks and writers are not allowed where nodes are shared in "
                "time, because who shares the store would change inside a slice; give node_bandwidth_gib_s alone"
            )
        self.slice_log = SliceLog()  # what ran between scheduling events
        self.env, self.phases, self.saved, self.ledger = run.env, run.phases, run.saved, run.ledger
        self._states, self._kept_free, self._history = run.states, run.kept_free, run.history
        self.rows = MatrixRows(machine)  # which gangs are in which row
        self.nodes = self.up = machine.processors  # all, and from the last scheduling event on those not down or kept free
        self.waiting = False  # whether jobs have waited since then
        self.in_use: list[int] = []  # nodes in use in each row of the rotation since then
        self.begun = 0  # how long the slice that went on then had run before, ticks
        self.overhead = 0  # node-ticks spent on overheads since then
        self.keeps = machine.time_slicing.at_events == "keep"
        # Whether the running slice goes on over some events: over the begin or end of a window at which nothing else happens.
        self.may_keep = self.keeps or bool(machine.windows)
        # Where it may go on, of the slice until the last event, or until the process woke up, if it was not over:
        self.running: set[SlicedGang] = set()
        self.ran_row, self.ran_for = -1, 0
        self.quantum, self.switch = machine.time_slicing.quantum, run.phases.switch_of_all or 0
        # whether switches take time, and only nodes whose task changes pay for them
        self.on_change = self.switch > 0 and machine.context_switch.charge == "on-change"
        self._starts = 0

    # What the fidelities do in their own ways.

    @abstractmethod
    def settle(self, now: int) -> None:
        """Bring what gangs have executed, ledger and log up to ``now``."""

    @abstractmethod
    def go_on(self, *, cuts: bool) -> list[int]:
        """Go on with the running slice, unless the event cuts it, or the next row; return the rows in order of their turns."""

    def executed(self, gang: SlicedGang) -> int:
        return gang.done

    def expected_left(self, running: Mapping[int, Execution]) -> dict[int, int]:
        return expected_left(running)

    def dismiss(self, gang: SlicedGang) -> None:
        self.rows.remove(gang)

    def move(self, moves: list[tuple[SlicedGang, int]], blocked: list[SlicedGang]) -> None:
        """Move gangs to new columns, where they have not run yet."""
        self.rows.migrate(moves, blocked)

    def hold_up(self, gang: SlicedGang) -> None:
        """Let a gang that will not execute any more spend its pending overheads, and finish."""
        self.rows.hold_up(gang)

    def change_nodes(self, columns: NodeSet, down: bool) -> None:
        self.rows.down = self.rows.down | as_mask(columns) if down else self.rows.down & ~as_mask(columns)

    # What they share.

    def unused(self) -> int:
        """Return the nodes that are up and that no gang has in any row, a bitmask."""
        return ((1 << self.nodes) - 1) & ~reduce(or_, self.rows.occupied, self.rows.down)

    def go_on_with_slice(self) -> int:
        """Let the row with most tasks of ``running`` go on, of equals the one that ran; return how long its slice has run."""
        nodes: dict[int, int] = {}
        for gang in self.running:
            for row in rows_of(gang.rows):
                nodes[row] = nodes.get(row, 0) + gang.nodes
        goes_on = min(nodes, key=lambda row: (-nodes[row], row != self.ran_row, row), default=None)
        self.rows.last = self.ran_row if goes_on is None else goes_on - 1
        return 0 if goes_on is None else self.ran_for

    def resume(self, waiting: bool, happened: bool) -> None:
        """Go on, now that the decisions of the present have been carried out, and jobs wait or do not.

        ``happened`` says whether something has happened to jobs or nodes, or the policy's alarm rang.
        """
        rows = self.rows
        if rows.held_up:
            rows.require_possible()
        kept_free = 0 if self._kept_free is None else self._kept_free.number()
        self.waiting, self.up = waiting, self.nodes - self._states.broken - kept_free
        order = self.go_on(cuts=not self.keeps and bool(happened or rows.changed))
        held = rows.held
        self.in_use = [held[row] for row in order]
        rows.changed.clear()
        if self._history is not None:
            contents = tuple(
                tuple(Cell(gang.job.id, gang.mask, replica=gang.home != row) for gang in gangs.values())
                for row, gangs in enumerate(rows.gangs)
            )
            amounts = {account: self.ledger.amount(account) for account in Account}
            self._history.moments.append(Moment(self.env.now, contents, tuple(order), amounts, self.begun))

    def log(self, elapsed: int, switching: Sequence[Sequence[int]] = ()) -> None:
        self.slice_log.note(elapsed, self.in_use, switching, self.overhead, self.up, self.waiting, self.begun)
        self.overhead = 0

    def start(self, job: JobInSystem, terms: Terms, columns: NodeSet | None) -> Execution:
        raise DecisionError(f"job {job.queued.id} cannot start without a row: nodes are shared in time, and none is idle")

    def migrate(self, moves: list[tuple[Execution, NodeSet]]) -> None:
        raise DecisionError(f"job {moves[0][0].job.id} cannot migrate without a row: nodes are shared in time, use Rows")

    def rearrange(
        self, places: list[tuple[Any, int, int, int]], migrations: list[tuple[list[Execution], list[Execution]]]
    ) -> None:
        """Let running gangs leave rows, and migrate: each spends a checkpoint and a restart at the start of its next slices."""
        # `places` are gangs (of this kind, which nothing checks one by one), their columns and their rows (bitmasks) and their
        # home rows; `migrations` are gangs that migrate together, and those that wait meanwhile.
        rows = self.rows
        moving: dict[Execution, int] = {}
        gang: SlicedGang
        for gang, columns, target, _ in places:
            leaving = gang.rows & ~target
            if columns != gang.mask:
                if gang.stopping or gang.fetching:
                    state = "been preempted, and still holds its nodes" if gang.stopping else "not been restored yet"
                    raise DecisionError(f"job {gang.job.id} cannot migrate: it has {state}")
                moving[gang] = columns
                leaving = gang.rows
            if leaving:
                rows.withdraw(gang, leaving)
        for gangs, blocked in [*migrations, (list(moving), [])] if moving else ():
            if moves := [(_sliced(gang), moving.pop(gang)) for gang in gangs if gang in moving]:
                if self.saved.free is not None:
                    for moved, columns in moves:
                        self.saved.hold(moved.owner, from_mask(columns))
                self.move(moves, list(map(_sliced, blocked)))

    def start_in_row(self, job: JobInSystem, terms: Terms, columns: int, row: int) -> Execution:
        """Start a gang in its home row of the Ousterhout matrix, on the columns that the policy has chosen, a bitmask."""
        self._starts += 1
        gang = SlicedGang(job, self, columns, terms, row, self._starts)
        if self.saved.free is not None:
            self.saved.hold(job, gang.columns, job.suspended_on)
        gang.begin()
        self.rows.place(gang, 1 << row)
        if gang.pending or gang.interval is not None:
            self.rows.hold_up(gang)
        return gang

    def enter(self, places: list[tuple[Any, int, int, int]]) -> None:
        """Let gangs run in all their rows, of which one is the home row; ``places`` as for :meth:`rearrange`."""
        gang: SlicedGang
        for gang, _, rows, home in places:
            if new := rows & ~gang.rows:
                self.rows.place(gang, new)
            gang.home = home


def _has_transfers(phases: list[Phase]) -> bool:
    return any(phase.tasks for phase in phases)


def _sliced(gang: Execution) -> SlicedGang:
    assert isinstance(gang, SlicedGang), _ALL_OR_NONE
    return gang
