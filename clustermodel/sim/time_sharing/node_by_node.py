"""The time-slice process of the slow mode, ``fidelity="node"``: every node is a process, every slice is played.

A node suspends its task when its slice ends, pays the context switch, waits until the gang's other nodes are ready and
runs the next task; a checkpoint or restart takes room in the checkpoint store.  Each node notes itself what it spends its
time on.  Nothing here is computed ahead, so that :mod:`clustermodel.sim.time_sharing.slices`, which computes everything
ahead, can be compared with it: job records and ledger must be the same to the tick.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import count as count_from
from typing import TYPE_CHECKING

from simpy import Event, Interrupt, Process

from clustermodel.recording.ledger import Account, Ledger
from clustermodel.schedule.node_set import NodeSet, as_mask
from clustermodel.sim.checkpoint_store import LimitedStore
from clustermodel.sim.events import Clock, InstantOver
from clustermodel.sim.saved_work import TRANSFERS
from clustermodel.sim.time_sharing.shared_nodes import SlicedGang, TimeSharing

if TYPE_CHECKING:
    from clustermodel.sim.context import RunContext


class Node:
    """One node: which task it holds, and what it is doing."""

    def __init__(self, env: Clock, ledger: Ledger) -> None:
        self.loaded: SlicedGang | None = None  # the gang whose task ran last and is still in place
        self.turn: Turn | None = None  # whose slice it is
        self.doing = Account.IDLE
        self._env = env
        self._ledger = ledger
        self._since = env.now
        self._orders = env.event()
        self._process = env.process(self._run())

    def run_slice(self, turn: Turn, *, switch: int) -> None:
        """Give the node its order for a slice: run ``turn``'s task, after ``switch`` ticks of context switch."""
        self.turn = turn
        self._orders.succeed((turn, switch))

    def suspend(self) -> None:
        if self.turn is not None:
            self._process.interrupt()
            self.turn = None

    def turn_to(self, doing: Account, *, waiting: bool) -> None:
        """Charge the time since the last call to what the node was doing, and note what it does from now on."""
        now = self._env.now
        if self.doing is not Account.USEFUL:  # work is charged by the coordinator when its fate is known
            self._ledger.charge(self.doing, now - self._since, waiting=waiting)
        self._since = now
        self.doing = doing

    def _run(self) -> Generator[Event, tuple[Turn, int], None]:
        while True:
            turn, switch = yield self._orders
            self._orders = self._env.event()
            try:
                if switch:
                    turn.note(self, Account.CONTEXT_SWITCH)
                    self.loaded = None
                    yield self._env.timeout(switch)
                self.loaded = turn.gang
                turn.note(self, Account.BLOCKED)  # until the others are ready
                turn.node_is_ready()
                yield self._env.event()  # until it is suspended
            except Interrupt:
                pass


class Turn:
    """A gang's turn in one slice: it begins when all its nodes are ready, spends its pending overheads, and executes."""

    def __init__(self, machine: NodeByNode, gang: SlicedGang) -> None:
        self.gang = gang
        self.spending: Account | None = None  # what the gang as a whole is doing; None while its nodes get ready
        self._machine = machine
        self._nodes_missing = gang.nodes
        self._ready = machine.env.event()
        self._since = 0
        self.process: Process = machine.env.process(self._run())

    def note(self, node: Node, doing: Account) -> None:
        node.turn_to(doing, waiting=self._machine.waiting)

    def node_is_ready(self) -> None:
        self._nodes_missing -= 1
        if not self._nodes_missing:
            self._ready.succeed()

    def settle(self) -> None:
        now = self._machine.env.now
        spent = now - self._since
        if self.spending is Account.USEFUL:
            self.gang.done += spent
        elif self.spending is not None:
            self.gang.spend(spent)
            self._machine.overhead += spent * self.gang.nodes
        self._since = now

    def _turn_to(self, doing: Account) -> None:
        self.settle()
        self.spending = doing
        for node in self._machine.nodes_of(self.gang.mask):
            self.note(node, doing)

    def _run(self) -> Generator[Event, object, None]:
        gang = self.gang
        try:
            yield self._ready
            yield from self._spend_overheads()
            while (until := gang.next_checkpoint()) < gang.duration:
                yield from self._execute(until)
                gang.begin_checkpoint()
                yield from self._spend_overheads()
            yield from self._execute(until)
            gang.finished.succeed()
        except Interrupt:
            pass

    def _execute(self, until: int) -> Generator[Event, object, None]:
        if until > self.gang.done:
            self._turn_to(Account.USEFUL)
            yield self._machine.env.timeout(until - self.gang.done)
            self.settle()
            self.spending = None

    def _spend_overheads(self) -> Generator[Event, object, None]:
        gang = self.gang
        while gang.pending:
            account, ticks = gang.pending[0]
            self._turn_to(account)
            if account in TRANSFERS:
                yield from self._machine.transfer(gang, ticks)
            else:
                yield self._machine.env.timeout(ticks)
            self.settle()
            self.spending = None


class NodeByNode(TimeSharing):
    """The time-slice process of the slow mode."""

    def __init__(self, run: RunContext) -> None:
        super().__init__(run)
        machine = run.machine
        self._store = LimitedStore(self.env, machine.checkpointing.max_tasks_per_slice)
        self._every_slice = machine.context_switch.charge == "every-slice"
        self._nodes = [Node(self.env, self.ledger) for _ in range(machine.processors)]
        self._turns: dict[SlicedGang, Turn] = {}
        self._row: int | None = None  # the row whose slice it is
        self._not_progressing: list[list[int]] = []  # nodes that switch or wait for it in each: in the first lap, in later ones
        self._slice_began = self.env.now
        self._since = self.env.now  # the last scheduling event
        self._rotation: Process | None = None

    def nodes_of(self, mask: int) -> list[Node]:
        return [node for column, node in enumerate(self._nodes) if mask >> column & 1]

    def transfer(self, gang: SlicedGang, ticks: int) -> Generator[Event, object, None]:
        """Write or read a gang's tasks for ``ticks``, all its rounds together, as many at a time as the store takes."""
        yield from self._store.transfer(self.rows.tasks_at_the_store(gang), ticks)

    def move(self, moves: list[tuple[SlicedGang, NodeSet]], blocked: list[SlicedGang]) -> None:
        for node in self._nodes:
            if node.loaded in [gang for gang, _ in moves]:
                node.loaded = None
        super().move(moves, blocked)

    def take_down(self, columns: NodeSet) -> None:
        super().take_down(columns)
        for node in self.nodes_of(as_mask(columns)):
            node.loaded = None

    def settle(self, now: int) -> None:
        """End the slice that runs, and the rotation with it: a scheduling event cuts it short."""
        self._stop_rotation()
        self._end_slice()
        if elapsed := now - self._since:
            self._since = now
            self.log(elapsed, self._not_progressing if self.switch else ())

    def _stop_rotation(self) -> None:
        if self._rotation is not None and self._rotation.is_alive:
            self._rotation.interrupt()
        self._rotation = None

    def go_on(self) -> list[int]:
        """Go on with the next row in use; without any, the nodes stay idle until the next scheduling event."""
        order = self.rows.rotation()
        self._not_progressing = [[0, 0] for _ in order]
        if order:
            self._rotation = self.env.process(self._rotate(order))
        return order

    def _rotate(self, order: list[int]) -> Generator[Event, object, None]:
        try:
            yield InstantOver(self.env)
            for number in count_from():
                lap, place = divmod(number, len(order))
                self._not_progressing[place][min(lap, 1)] = self._begin_slice(order[place])
                yield self.env.timeout(self.quantum)
                yield InstantOver(self.env)  # whatever else happens at this instant comes first
                self._end_slice()
        except Interrupt:
            pass

    def _begin_slice(self, row: int) -> int:
        """Give every node of a row its orders; return how many switch, or wait for others to switch."""
        self._row, self._slice_began = row, self.env.now
        not_progressing = 0
        for gang in self.rows.gangs[row].values():
            turn = self._turns[gang] = Turn(self, gang)
            nodes = self.nodes_of(gang.mask)
            switching = [node for node in nodes if self._every_slice or node.loaded is not gang]
            if switching and self.switch:
                not_progressing += len(nodes)
            for node in nodes:
                node.run_slice(turn, switch=self.switch if node in switching else 0)
        return not_progressing

    def _end_slice(self) -> None:
        for turn in self._turns.values():
            turn.settle()
            if turn.process.is_alive:
                turn.process.interrupt()
        for node in self._nodes:
            node.turn_to(Account.IDLE, waiting=self.waiting)
            node.suspend()
        self._turns.clear()
        if self._row is not None and self.env.now > self._slice_began:
            self.rows.last = self._row
        self._row = None


class KeptTurn(Turn):
    """A gang's turn that is taken up again after scheduling events."""

    def __init__(self, machine: NodeByNode, gang: SlicedGang) -> None:
        super().__init__(machine, gang)
        self._since = machine.env.now
        self._paused = False

    def settle(self) -> None:
        """Bring the gang's context switches up to the present too."""
        if self.spending is None:  # its nodes switch
            now = self._machine.env.now
            self._machine.overhead += (now - self._since) * self.gang.nodes
            self._since = now
        else:
            super().settle()

    def pause(self) -> None:
        """Let the gang as a whole do nothing until it goes on; its nodes go on with their switches."""
        self.settle()
        self.spending = None
        self._paused = True
        if self.process.is_alive:
            self.process.interrupt()

    def go_on(self) -> None:
        if self._paused:
            self._paused = False
            self.process = self._machine.env.process(self._run())


class KeptNodeByNode(NodeByNode):
    """The time-slice process of the slow mode where a scheduling event leaves the running slice alone.

    Each node goes on with what it is doing as long as its task stays, over events, and over the end of a slice if the next one
    runs the same task there.  :class:`~clustermodel.sim.time_sharing.slices.KeptSlices` computes the same.
    """

    def __init__(self, run: RunContext) -> None:
        super().__init__(run)
        self._continued: dict[SlicedGang, KeptTurn] = {}  # the turns in the running slice
        self._running: set[SlicedGang] = set()  # the gangs that ran until the last event, if their slice was not over
        self._ran_row = -1  # the row that ran until then
        self._ran_for = 0  # how long its slice had run, ticks

    def dismiss(self, gang: SlicedGang) -> None:
        self._forget(gang)
        super().dismiss(gang)

    def move(self, moves: list[tuple[SlicedGang, NodeSet]], blocked: list[SlicedGang]) -> None:
        super().move(moves, blocked)
        for gang, _ in moves:
            self._forget(gang)

    def _forget(self, gang: SlicedGang) -> None:
        self._running.discard(gang)
        if (turn := self._continued.pop(gang, None)) is not None:
            turn.pause()

    def settle(self, now: int) -> None:
        """Bring everything up to the present: a scheduling event may change what runs."""
        self._stop_rotation()
        for turn in self._continued.values():
            turn.pause()
        for node in self._nodes:
            node.turn_to(node.doing, waiting=self.waiting)
        if elapsed := now - self._since:
            self._since = now
            self._running = set()
            if self._row is not None:
                self._ran_row, self._ran_for = self._row, now - self._slice_began
                if self._ran_for < self.quantum:
                    self._running = set(self._continued)
            self.log(elapsed)

    def go_on(self) -> list[int]:
        """Go on with the running slice, or with the next row in use; without any, the nodes are idle."""
        rows = self.rows
        row = rows.row_that_goes_on(self._running, self._ran_row)
        rows.last = self._ran_row if row is None else row - 1
        self.begun = 0 if row is None else self._ran_for
        order = rows.rotation()
        self._rotation = self.env.process(self._rotate(order))
        return order

    def _rotate(self, order: list[int]) -> Generator[Event, object, None]:
        try:
            yield InstantOver(self.env)
            if not order:
                self._change_row(None, goes_on=False)
                return
            self._change_row(order[0], goes_on=self.begun > 0)
            for number in count_from(1):
                yield self.env.timeout(self._slice_began + self.quantum - self.env.now)
                yield InstantOver(self.env)  # whatever else happens at this instant comes first
                self._change_row(order[number % len(order)], goes_on=False)
        except Interrupt:
            pass

    def _change_row(self, row: int | None, *, goes_on: bool) -> None:
        """Give the nodes to the gangs of a row: those whose task stays go on, others suspend their tasks and get orders."""
        self._row = row
        if not goes_on:
            self._slice_began = self.env.now
        gangs = [] if row is None else list(self.rows.gangs[row].values())
        stay = goes_on or self.on_change  # a switch may go on over the end of a slice
        turns = {gang: self._continued[gang] for gang in gangs if stay and gang in self._continued}
        for turn in turns.values():
            turn.go_on()
        for gang, turn in self._continued.items():
            if gang not in turns:
                turn.pause()
        for node in self._nodes:
            if node.turn is not None and turns.get(node.turn.gang) is not node.turn:
                node.turn_to(Account.IDLE, waiting=self.waiting)
                node.suspend()
        for gang in gangs:
            if gang not in turns:
                turn = turns[gang] = KeptTurn(self, gang)
                for node in self.nodes_of(gang.mask):
                    switches = self._every_slice or node.loaded is not gang
                    node.run_slice(turn, switch=self.switch if switches else 0)
        self._continued = turns
