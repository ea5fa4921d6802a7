"""The time-slice process of the slow mode, ``fidelity="node"``: every node is a process, every slice is played.

A node suspends its task when its slice ends, pays the context switch, waits until the gang's other nodes are ready and
runs the next task; a checkpoint or restart takes room in the checkpoint store.  Each node notes itself what it spends its
time on.  Nothing here is computed ahead, so that :mod:`clustermodel.sim.time_sharing.slices`, which computes everything
ahead, can be compared with it: job records and ledger must be the same to the tick.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import count as count_from

from simpy import Event, Interrupt, Process

from clustermodel.machine.node_set import NodeSet, as_mask
from clustermodel.recording.ledger import Account
from clustermodel.sim.events import InstantOver
from clustermodel.sim.time_sharing.shared_nodes import OfRun, SlicedGang, TimeSharing


class Node:
    """One node: which task it holds, and what it is doing."""

    def __init__(self, machine: NodeByNode) -> None:
        self.loaded: SlicedGang | None = None  # the gang whose task ran last and is still in place
        self.turn: Turn | None = None  # whose slice it is
        self.doing = Account.IDLE
        self._machine, self._env = machine, machine.env
        self._since = self._env.now
        self.orders = self._env.event()
        self.process = self._env.process(self._run())

    def turn_to(self, doing: Account) -> None:
        """Charge the time since the last call to what the node was doing, and note what it does from now on."""
        now = self._env.now
        if self.doing is not Account.USEFUL:  # work is charged by the coordinator when its fate is known
            self._machine.ledger.charge(self.doing, now - self._since, waiting=self._machine.waiting)
        self._since = now
        self.doing = doing

    def _run(self) -> Generator[Event, tuple[Turn, int], None]:
        while True:
            turn, switch = yield self.orders
            self.orders = self._env.event()
            try:
                if switch:
                    self.turn_to(Account.CONTEXT_SWITCH)
                    self.loaded = None
                    yield self._env.timeout(switch)
                self.loaded = turn.gang
                self.turn_to(Account.BLOCKED)  # until the others are ready
                turn.nodes_missing -= 1
                if not turn.nodes_missing:
                    turn.ready.succeed()
                yield self._env.event()  # until it is suspended
            except Interrupt:
                pass


class Turn:
    """A gang's turn in one slice: it begins when all its nodes are ready, spends its pending overheads, and executes."""

    # It can be paused, and taken up again where scheduling events leave the running slice alone.

    def __init__(self, machine: NodeByNode, gang: SlicedGang) -> None:
        self.gang = gang
        self._machine, env = machine, machine.env
        self._spending: Account | None = None  # what the gang as a whole is doing; None while its nodes get ready
        self.nodes_missing = gang.nodes
        self.ready = env.event()
        self._since = env.now
        self._paused = False
        self._process = env.process(self._run())

    def _settle(self) -> None:
        now = self._machine.env.now
        spent, self._since = now - self._since, now
        if self._spending is Account.USEFUL:
            self.gang.done += spent
            return
        if self._spending is not None:
            self.gang.spend(spent)
        if self._spending is not None or self._machine.may_keep:  # its nodes switch: counted apart where that is logged
            self._machine.overhead += spent * self.gang.nodes

    def pause(self) -> None:
        """Let the gang as a whole do nothing until it goes on; its nodes go on with their switches."""
        if not self._paused:
            self._settle()
            self._spending, self._paused = None, True
            if self._process.is_alive:
                self._process.interrupt()

    def go_on(self) -> None:
        if self._paused:
            self._paused = False
            self._process = self._machine.env.process(self._run())

    def _turn_to(self, doing: Account) -> None:
        self._settle()
        self._spending = doing
        for node in self._machine.nodes_of(self.gang.mask):
            node.turn_to(doing)

    def _run(self) -> Generator[Event, object, None]:
        gang = self.gang
        try:
            yield self.ready
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
            self._settle()
            self._spending = None

    def _spend_overheads(self) -> Generator[Event, object, None]:
        gang = self.gang
        while gang.pending:
            phase = gang.pending[0]
            self._turn_to(phase.account)
            if phase.tasks:  # all its rounds together, as many tasks at a time as the store takes
                transfer = self._machine.store.ask(self._machine.rows.tasks_at_the_store(gang), phase.ticks)
                try:
                    yield transfer.done
                finally:
                    self._machine.store.withdraw(transfer)
            else:
                yield self._machine.env.timeout(phase.ticks)
            self._settle()
            self._spending = None


class NodeByNode(TimeSharing):
    """The time-slice process of the slow mode."""

    # Where a scheduling event leaves the running slice alone, each node goes on with what it is doing as long as its task
    # stays, over events, and over the end of a slice if the next one runs the same task there.

    def __init__(self, run: OfRun) -> None:
        super().__init__(run)
        machine = run.machine
        self.store = run.store
        self._every_slice = machine.context_switch.charge == "every-slice"
        self._nodes = [Node(self) for _ in range(machine.processors)]
        self._turns: dict[SlicedGang, Turn] = {}  # in the running slice
        self._row: int | None = None  # the row whose slice it is
        self._not_progressing: list[list[int]] = []  # nodes that switch or wait for it in each: in the first lap, in later ones
        self._slice_began = self.env.now
        self._since = self.env.now  # the last scheduling event
        self._rotation: Process | None = None

    def nodes_of(self, mask: int) -> list[Node]:
        return [node for column, node in enumerate(self._nodes) if mask >> column & 1]

    def dismiss(self, gang: SlicedGang) -> None:
        self._forget(gang)
        super().dismiss(gang)

    def move(self, moves: list[tuple[SlicedGang, int]], blocked: list[SlicedGang]) -> None:
        super().move(moves, blocked)
        for gang, _ in moves:
            self._forget(gang)
            for node in self._nodes:
                if node.loaded is gang:
                    node.loaded = None

    def _forget(self, gang: SlicedGang) -> None:
        self.running.discard(gang)
        if (turn := self._turns.pop(gang, None)) is not None:
            turn.pause()

    def change_nodes(self, columns: NodeSet, down: bool) -> None:
        super().change_nodes(columns, down=down)
        for node in self.nodes_of(as_mask(columns)):
            node.loaded = None

    def settle(self, now: int) -> None:
        """Bring everything up to the present: a scheduling event cuts the running slice short, or changes what runs in it."""
        if self._rotation is not None and self._rotation.is_alive:
            self._rotation.interrupt()
        self._rotation = None
        for turn in self._turns.values():
            turn.pause()
        for node in self._nodes:
            node.turn_to(node.doing)
        if elapsed := now - self._since:
            self._since = now
            self.running = set()
            if self._row is not None:
                self.ran_row, self.ran_for = self._row, now - self._slice_began
                if self.ran_for < self.quantum:
                    self.running = set(self._turns)
            self.log(elapsed, self._not_progressing if self.switch and not self.may_keep else ())
        if not self.may_keep:
            self._change_row(None, goes_on=False)

    def go_on(self, *, cuts: bool) -> list[int]:
        rows = self.rows
        if cuts:
            self.running, self.ran_for = set(), 0
            self._change_row(None, goes_on=False)
        if self.may_keep:
            self.begun = self.go_on_with_slice()
        order = rows.rotation()
        self._not_progressing = [[0, 0] for _ in order]
        self._rotation = self.env.process(self._rotate(order))
        return order

    def _rotate(self, order: list[int]) -> Generator[Event, object, None]:
        try:
            yield InstantOver(self.env)
            if not order:
                self._change_row(None, goes_on=False)
                return
            for number in count_from():
                lap, place = divmod(number, len(order))
                switching = self._change_row(order[place], goes_on=self.begun > 0 and not number)
                self._not_progressing[place][min(lap, 1)] = switching
                yield self.env.timeout(self._slice_began + self.quantum - self.env.now)
                yield InstantOver(self.env)  # whatever else happens at this instant comes first
        except Interrupt:
            pass

    def _change_row(self, row: int | None, *, goes_on: bool) -> int:
        """Give the nodes to the gangs of a row: those whose task stays go on, others suspend their tasks and get orders."""
        # Return how many nodes switch, or wait for others to switch.
        if self._row is not None and self.env.now > self._slice_began:
            self.rows.last = self._row
        self._row = row
        if not goes_on:
            self._slice_began = self.env.now
        gangs = [] if row is None else list(self.rows.gangs[row].values())
        stay = goes_on or (self.keeps and self.on_change)  # a switch may go on over the end of a slice
        turns = {gang: self._turns[gang] for gang in gangs if stay and gang in self._turns}
        for turn in turns.values():
            turn.go_on()
        for gang, turn in self._turns.items():
            if gang not in turns:
                turn.pause()
        for node in self._nodes:
            if node.turn is not None and turns.get(node.turn.gang) is not node.turn:
                node.turn_to(Account.IDLE)
                node.process.interrupt()
                node.turn = None
        not_progressing = 0
        for gang in gangs:
            if gang not in turns:
                turn, nodes, switch = Turn(self, gang), self.nodes_of(gang.mask), self.switch
                turns[gang] = turn
                switching = [node for node in nodes if self._every_slice or node.loaded is not gang]
                if switching and switch:
                    not_progressing += len(nodes)
                for node in nodes:  # run the task, after the context switch if there is one
                    node.turn = turn
                    node.orders.succeed((turn, switch if node in switching else 0))
        self._turns = turns
        return not_progressing
