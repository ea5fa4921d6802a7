"""The time-slice process of the fast mode: it gives the machine to one row of the Ousterhout matrix after the other.

Slices, switches and overheads are computed between scheduling events (:mod:`clustermodel.sim.time_sharing.rotation`), and the
process sleeps until the first gang finishes.  :mod:`clustermodel.sim.time_sharing.node_by_node` plays all of them instead.
"""

from __future__ import annotations

from collections.abc import Generator

from simpy import Event

from clustermodel.machine import Machine
from clustermodel.recording.ledger import Account, Ledger
from clustermodel.recording.slice_log import SliceLog
from clustermodel.schedule.node_set import NodeSet, as_mask
from clustermodel.sim.alarm_clock import AlarmClock
from clustermodel.sim.events import Bell, Clock
from clustermodel.sim.time_sharing.context_switches import NO_SWITCHES, LoadedTasks, RowSwitches
from clustermodel.sim.time_sharing.matrix_rows import MatrixRows
from clustermodel.sim.time_sharing.rotation import Advance, Rotation
from clustermodel.sim.time_sharing.sliced_gang import SlicedGang


class ComputedSlices:
    """The process (:meth:`run`) and its state; see :class:`~clustermodel.sim.time_sharing.shared_nodes.TimeSliceProcess`.

    Args:
        env: the simulation.
        machine: what is sliced.
        ledger: where node time is charged.
        log: where each rotation between scheduling events is noted, for the formulas.
    """

    def __init__(self, env: Clock, machine: Machine, ledger: Ledger, log: SliceLog) -> None:
        self.rows = rows = MatrixRows(machine)
        self.place = rows.place
        self.withdraw = rows.withdraw
        self.rehome = rows.rehome
        self._env = env
        self._ledger = ledger
        self._log = log
        self._nodes = self._up = machine.processors  # all, and those that are not down
        self._switch = switch = machine.switch_ticks
        self._on_change = machine.switches_on_change
        self._rotation = Rotation(machine.time_slicing.mpl, machine.time_slicing.quantum, switch, env.now)
        self._loaded = LoadedTasks(rows, switch)
        self._since = env.now
        self._waiting = False
        self._switches: list[RowSwitches] = []  # for each place in the rotation; empty where switches take no time
        # Gangs with pending overheads, or periodic checkpoints to come -> what their pace had served at the last event.
        self._held_up: dict[SlicedGang, int] = {}
        self._bell = Bell(env)
        self._alarm = AlarmClock(env, self._bell.ring)
        env.process(self.run())

    def run(self) -> Generator[Event, object, None]:
        """Sleep until the first gangs finish, ring their bells, and go on."""
        while True:
            yield self._bell
            self.settle(self._env.now)
            for gang in self._rotation.finished():
                assert isinstance(gang, SlicedGang)
                if not gang.finished.triggered:  # it may be there twice
                    gang.finished.ring()

    @property
    def begun(self) -> int:
        """How long the slice that goes on at the last scheduling event had run before, ticks."""
        return self._rotation.begun

    # What gangs and their coordinator ask.

    def admit(self, gang: SlicedGang) -> None:
        """A gang starts; it is placed in a row next."""

    def dismiss(self, gang: SlicedGang) -> None:
        """Take a gang whose run attempt has ended out of all rows."""
        self.rows.remove(gang)
        self._rotation.leave(gang)
        self._held_up.pop(gang, None)
        self._loaded.forget(gang)

    def migrate(self, moves: list[tuple[SlicedGang, NodeSet]], blocked: list[SlicedGang]) -> None:
        """Move gangs to new columns: the ticks that this takes are needed like those of work.

        Raises:
            DecisionError: see :meth:`MatrixRows.migrate <clustermodel.sim.time_sharing.matrix_rows.MatrixRows.migrate>`.
        """
        before = {gang: gang.overhead_left() for gang in (*[gang for gang, _ in moves], *blocked)}
        self.rows.migrate(moves, blocked)
        for gang, overhead in before.items():
            if gang.pending and (added := gang.overhead_left() - overhead):
                self._rotation.leave(gang)
                gang.left += added
        if self._on_change:
            for gang, _ in moves:
                self._loaded.forget(gang)

    def hold_up(self, gang: SlicedGang) -> None:
        """Let a gang that will not execute any more spend its pending overheads, and finish."""
        self._rotation.leave(gang)
        gang.left = gang.overhead_left()
        self.rows.changed.add(gang)

    def take_down(self, columns: NodeSet) -> None:
        """Take nodes out of service that have failed, and on which no gang runs any more."""
        self.rows.down |= as_mask(columns)

    def put_up(self, columns: NodeSet) -> None:
        """Put nodes that have been repaired back into service."""
        self.rows.down &= ~as_mask(columns)

    def executed(self, gang: SlicedGang) -> int:
        """Return how long a gang has executed, ticks, up to the last scheduling event: what it does not need any more."""
        if gang.interval is not None:
            return gang.done
        pace = gang.pace
        executed = gang.duration - (gang.left if pace is None else gang.due - pace.served)
        return executed + gang.overhead_left() if gang.pending else executed

    def settle(self, now: int) -> None:
        """Work out what the rotation has done since the last event."""
        elapsed = now - self._since
        if not elapsed:
            return
        self._since = now
        order, held, waiting = self._rotation.order, self.rows.held, self._waiting
        if not order:
            self._rotation.idle(elapsed)
            self._ledger.charge(Account.IDLE, self._nodes * elapsed, waiting=waiting)
            self._log.idle(elapsed, self._up, waiting=waiting)
            return
        advance = self._rotation.advance(elapsed)
        self.rows.last = order[advance.last % len(order)]
        in_use = [held[row] for row in order]
        self._charge(advance, in_use)
        overhead = self._spend_overheads() if self._held_up else 0
        switched = self._switched(advance.last) if self._switch else []
        self._log.slices(elapsed, in_use, switched, overhead, self._up, waiting=waiting)
        if self._on_change:
            self._loaded.advance(order, advance.last, advance.length)

    def _charge(self, advance: Advance, in_use: list[int]) -> int:
        """Charge idle nodes and context switches, where so many nodes are in use in each row of the rotation.

        Returns:
            The node-ticks of context switches.
        """
        nodes, waiting = self._nodes, self._waiting
        idle = 0
        for place, ticks in enumerate(advance.ran):
            idle += (nodes - in_use[place]) * ticks
        self._ledger.charge(Account.IDLE, idle, waiting=waiting)
        switching = blocked = 0
        if self._switch:
            for switches, first, later in zip(self._switches, advance.first, advance.later, strict=True):
                switching += switches.first * first + switches.later * later
                blocked += switches.first_waiting * first + switches.later_waiting * later
            if switching:
                self._ledger.charge(Account.CONTEXT_SWITCH, switching, waiting=waiting)
                self._ledger.charge(Account.BLOCKED, blocked, waiting=waiting)
        return switching + blocked

    def _switched(self, last: int) -> list[RowSwitches]:
        """Return which nodes switched or waited in slices up to number ``last``: none in those that never came."""
        rows = len(self._switches)
        return [
            RowSwitches(
                *(switches[:2] if place <= last else NO_SWITCHES[:2]),
                *(switches[2:] if place + rows <= last else NO_SWITCHES[2:]),
            )
            for place, switches in enumerate(self._switches)
        ]

    def _spend_overheads(self) -> int:
        """Charge the overheads that gangs have spent since the last event; return the node-ticks."""
        charged = 0
        for gang in list(self._held_up):
            pace = gang.pace
            assert pace is not None
            ticks = pace.served - self._held_up[gang]
            for account, spent in gang.spend(ticks) if gang.interval is None else gang.advance(ticks):
                self._ledger.charge(account, spent * gang.nodes, waiting=self._waiting)
                charged += spent * gang.nodes
            if not gang.pending and gang.interval is None:
                del self._held_up[gang]
        return charged

    def resume(self, *, waiting: bool) -> None:
        """Give the gangs that have changed another pace, and sleep until the first one finishes.

        Raises:
            DecisionError: see ``MatrixRows.require_possible``.
        """
        rows, rotation = self.rows, self._rotation
        if rows.changed:
            rows.require_possible()
        self._waiting, self._up = waiting, rows.nodes_up if rows.down else self._nodes
        if rows.in_use_changed:
            rotation.order = rows.rotation()
        if self._on_change:
            self._switches, paces = self._loaded.plan(rotation.order)
            for gang, key in paces.items():
                rotation.join(gang, key)
        else:
            switch = self._switch
            for gang in rows.changed:
                switches = gang.rows if switch else 0
                rotation.join(gang, (gang.rows, switches, switches))
            if switch:
                self._switches = [RowSwitches(rows.held[row], 0, rows.held[row], 0) for row in rotation.order]
        for gang in rows.changed:
            if gang.pending or gang.interval is not None:
                self._held_up[gang] = 0
        if self._held_up:
            for gang in self._held_up:
                assert gang.pace is not None
                self._held_up[gang] = gang.pace.served
                if restoring := gang.restoring_left():
                    gang.restored_at = rotation.time_of(gang, restoring)
        rows.changed.clear()
        self._alarm.set(rotation.next_finish())
