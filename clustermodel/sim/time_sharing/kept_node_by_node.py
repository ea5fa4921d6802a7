"""The time-slice process of the slow mode where a scheduling event leaves the running slice alone.

Each node goes on with what it is doing as long as its task stays, over events, and over the end of a slice if the next one
runs the same task there.  :mod:`clustermodel.sim.time_sharing.kept_slices` computes the same.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import count as count_from

from simpy import Event, Interrupt

from clustermodel.machine import Machine
from clustermodel.recording.ledger import Account, Ledger
from clustermodel.recording.slice_log import SliceLog
from clustermodel.schedule.node_set import NodeSet
from clustermodel.sim.events import Clock, InstantOver
from clustermodel.sim.time_sharing.node_by_node import NodeByNode, Turn
from clustermodel.sim.time_sharing.sliced_gang import SlicedGang


class KeptTurn(Turn):
    """A gang's turn that is taken up again after scheduling events.

    Args:
        machine: the process that plays the slices.
        gang: whose turn it is.
        executed: how long the gang has executed before, ticks.
    """

    def __init__(self, machine: NodeByNode, gang: SlicedGang, executed: int) -> None:
        super().__init__(machine, gang, executed)
        self._since = machine.env.now
        self._paused = False

    def settle(self) -> None:
        """Bring what the gang has executed and its overheads, context switches too, up to the present."""
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
        """Take the turn up again after a pause."""
        if self._paused:
            self._paused = False
            self.process = self._machine.env.process(self._run())


class KeptNodeByNode(NodeByNode):
    """The time-slice process of the slow mode where events leave the running slice alone.

    Args:
        env: the simulation.
        machine: what is sliced.
        ledger: where node time is charged.
        log: where each rotation between scheduling events is noted, for the formulas.
    """

    def __init__(self, env: Clock, machine: Machine, ledger: Ledger, log: SliceLog) -> None:
        super().__init__(env, machine, ledger, log)
        self._continued: dict[SlicedGang, KeptTurn] = {}  # the turns in the running slice
        self._running: set[SlicedGang] = set()  # the gangs that ran until the last event, if their slice was not over
        self._ran_row = -1  # the row that ran until then
        self._ran_for = 0  # how long its slice had run, ticks
        self._on_change = machine.switches_on_change

    def dismiss(self, gang: SlicedGang) -> None:
        """Take a gang whose run attempt has ended out of all rows; its turn, if it has one, is over."""
        self._forget(gang)
        super().dismiss(gang)

    def migrate(self, moves: list[tuple[SlicedGang, NodeSet]], blocked: list[SlicedGang]) -> None:
        """Move gangs to new columns, where they have not run yet."""
        super().migrate(moves, blocked)
        for gang, _ in moves:
            self._forget(gang)

    def _forget(self, gang: SlicedGang) -> None:
        self._running.discard(gang)
        if (turn := self._continued.pop(gang, None)) is not None:
            self._pause(turn)

    def _pause(self, turn: KeptTurn) -> None:
        turn.pause()
        self._executed[turn.gang] = turn.executed

    def settle(self, now: int) -> None:
        """Bring everything up to the present: a scheduling event may change what runs."""
        if self._rotation is not None:
            if self._rotation.is_alive:
                self._rotation.interrupt()
            self._rotation = None
        for turn in self._continued.values():
            self._pause(turn)
        for node in self._nodes:
            node.turn_to(node.doing, waiting=self.waiting)
        if elapsed := now - self._since:
            self._since = now
            self._running = set()
            if self._row is not None:
                self._ran_row, self._ran_for = self._row, now - self._slice_began
                if self._ran_for < self._quantum:
                    self._running = set(self._continued)
            self._note(elapsed)

    def _note(self, elapsed: int) -> None:
        if self._held:
            self._log.slices(elapsed, self._held, (), self.overhead, self._up, waiting=self.waiting, begun=self.begun)
        else:
            self._log.idle(elapsed, self._up, waiting=self.waiting)
        self.overhead = 0

    def resume(self, *, waiting: bool) -> None:
        """Go on with the running slice, or with the next row in use; without any, the nodes are idle."""
        rows = self.rows
        if rows.changed:
            rows.require_possible()
        rows.changed.clear()
        self.waiting = waiting
        row = rows.row_that_goes_on(self._running, self._ran_row)
        rows.last = self._ran_row if row is None else row - 1
        self.begun = 0 if row is None else self._ran_for
        order = rows.rotation()
        self._held = [rows.held[row] for row in order]
        self._up = rows.nodes_up
        self._rotation = self.env.process(self._rotate(order))

    def _rotate(self, order: list[int]) -> Generator[Event, object, None]:
        try:
            yield InstantOver(self.env)
            if not order:
                self._change_row(None, goes_on=False)
                return
            self._change_row(order[0], goes_on=self.begun > 0)
            for number in count_from(1):
                yield self.env.timeout(self._slice_began + self._quantum - self.env.now)
                yield InstantOver(self.env)  # whatever else happens at this instant comes first
                self._change_row(order[number % len(order)], goes_on=False)
        except Interrupt:
            pass

    def _change_row(self, row: int | None, *, goes_on: bool) -> None:
        """Give the nodes to the gangs of a row: those whose task stays go on, others suspend their tasks and get orders.

        Args:
            row: the row; ``None`` if none is in use.
            goes_on: whether the running slice does.
        """
        self._row = row
        if not goes_on:
            self._slice_began = self.env.now
        gangs = [] if row is None else list(self.rows.gangs[row].values())
        stay = goes_on or self._on_change  # a switch may go on over the end of a slice
        turns = {gang: self._continued[gang] for gang in gangs if stay and gang in self._continued}
        for turn in turns.values():
            turn.go_on()
        for gang, turn in self._continued.items():
            if gang not in turns:
                self._pause(turn)
        for node in self._nodes:
            if node.turn is not None and turns.get(node.turn.gang) is not node.turn:
                node.turn_to(Account.IDLE, waiting=self.waiting)
                node.suspend()
        for gang in gangs:
            if gang not in turns:
                turn = turns[gang] = KeptTurn(self, gang, self._executed[gang])
                for node in self.nodes_of(gang):
                    switches = self._every_slice or node.loaded is not gang
                    node.run_slice(turn, switch=self._switch if switches else 0)
        self._continued = turns
