"""The time-slice process of the fast mode where a scheduling event leaves the running slice alone.

The first slice after an event is then the rest of one, and each of its gangs is as far in its context switch as it is.  So the
switches of the first slice are not the rotation's: a gang has what is left of its switch in ``left``, and spends it first.
All other slices are computed as in :mod:`clustermodel.sim.time_sharing.slices`; only where the first slice ends during a
switch the process wakes up at its end, and computes the rest from there.
"""

from __future__ import annotations

from collections.abc import Generator

from simpy import Event

from clustermodel.machine import Machine
from clustermodel.recording.ledger import Account, Ledger
from clustermodel.recording.slice_log import SliceLog
from clustermodel.schedule.node_set import NodeSet
from clustermodel.sim.events import Clock
from clustermodel.sim.time_sharing.context_switches import NO_SWITCHES, RowSwitches
from clustermodel.sim.time_sharing.rotation import Advance
from clustermodel.sim.time_sharing.sliced_gang import SlicedGang
from clustermodel.sim.time_sharing.slices import ComputedSlices

Switching = dict[SlicedGang, tuple[int, int]]
"""Gangs that switch -> (ticks until all of its nodes are ready, nodes that change their task: a bitmask)."""


class KeptSlices(ComputedSlices):
    """The process and its state.

    Args:
        env: the simulation.
        machine: what is sliced.
        ledger: where node time is charged.
        log: where each rotation between scheduling events is noted, for the formulas.
    """

    def __init__(self, env: Clock, machine: Machine, ledger: Ledger, log: SliceLog) -> None:
        super().__init__(env, machine, ledger, log)
        self._quantum = machine.time_slicing.quantum
        # What ran until the last event, or until the process woke up:
        self._ran_row = -1  # the row
        self._ran_for = 0  # how long its slice had run, ticks; 0 if it was over
        self._running: set[SlicedGang] = set()  # the gangs in it, unless it was over
        self._unfinished: Switching = {}  # those that still switched
        # What runs now:
        self._switching: Switching = {}  # gangs that switch in the first slice; the ticks are in what they still need
        # For the log:
        self._event = env.now  # the last scheduling event
        self._held: list[int] = []  # nodes in use in each row from then on
        self._begun_at_event = 0
        self._overhead = 0  # node-ticks of switches and overheads since

    @property
    def begun(self) -> int:
        """How long the slice that goes on at the last scheduling event had run before, ticks."""
        return self._begun_at_event

    def run(self) -> Generator[Event, object, None]:
        """Sleep until the first gangs finish, ring their bells, and go on; or until a switch goes on in the next slice."""
        while True:
            yield self._bell
            self.settle(self._env.now)
            finished = self._rotation.finished()
            for gang in finished:
                assert isinstance(gang, SlicedGang)
                if not gang.finished.triggered:
                    gang.finished.ring()
            if not finished:
                self._go_on()

    def executed(self, gang: SlicedGang) -> int:
        """Return how long a gang has executed, ticks, up to the last scheduling event."""
        executed = super().executed(gang)
        return executed + self._switching[gang][0] if gang in self._switching and gang.interval is None else executed

    def dismiss(self, gang: SlicedGang) -> None:
        """Take a gang whose run attempt has ended out of all rows."""
        super().dismiss(gang)
        self._forget(gang)

    def migrate(self, moves: list[tuple[SlicedGang, NodeSet]], blocked: list[SlicedGang]) -> None:
        """Move gangs to new columns, where they have not run yet.

        Raises:
            DecisionError: see :meth:`MatrixRows.migrate <clustermodel.sim.time_sharing.matrix_rows.MatrixRows.migrate>`.
        """
        super().migrate(moves, blocked)
        for gang, _ in moves:
            self._forget(gang)

    def _forget(self, gang: SlicedGang) -> None:
        self._running.discard(gang)
        self._unfinished.pop(gang, None)

    # Time passes.

    def settle(self, now: int) -> None:
        """Work out what the rotation has done since the last event."""
        elapsed = now - self._since
        if elapsed:
            self._since = now
            if self._rotation.order:
                self._advance(elapsed)
            else:
                self._rotation.idle(elapsed)
                self._ledger.charge(Account.IDLE, self._nodes * elapsed, waiting=self._waiting)
                self._running, self._unfinished, self._ran_for = set(), {}, 0
        for gang, (left, _) in self._switching.items():
            self._rotation.leave(gang)
            gang.left -= left
        self._switching = {}

    def _advance(self, elapsed: int) -> None:
        rows, rotation = self.rows, self._rotation
        order, in_first = rotation.order, min(elapsed, self._quantum - rotation.begun)
        advance = rotation.advance(elapsed)
        row = order[advance.last % len(order)]
        self._overhead += self._charge(advance, [rows.held[row] for row in order])
        if self._switching:
            self._spend_switches(in_first)
        if self._held_up:
            self._overhead += self._spend_overheads()
        over = advance.length == self._quantum
        self._unfinished = self._still_switching(row, advance, len(order))
        if self._on_change:
            self._loaded.advance(order, advance.last, advance.length, self._unfinished)
        elif over:
            self._unfinished = {}  # every slice has a switch of its own
        self._ran_row, self._ran_for = row, 0 if over else advance.length
        self._running = set() if over else set(rows.gangs[row].values())

    def _spend_switches(self, in_first: int) -> None:
        """Charge the context switches of the first slice, which has run for ``in_first`` ticks."""
        switching = blocked = 0
        still: Switching = {}
        for gang, (left, mask) in self._switching.items():
            spent, nodes = min(left, in_first), mask.bit_count()
            switching += nodes * spent
            blocked += (gang.nodes - nodes) * spent
            if gang in self._held_up:
                self._held_up[gang] += spent
            if left > spent:
                still[gang] = left - spent, mask
        self._switching = still
        self._ledger.charge(Account.CONTEXT_SWITCH, switching, waiting=self._waiting)
        self._ledger.charge(Account.BLOCKED, blocked, waiting=self._waiting)
        self._overhead += switching + blocked

    def _still_switching(self, row: int, advance: Advance, rows: int) -> Switching:
        """Return the gangs that had not switched in the slice that ran last, which was of ``row``."""
        if not advance.last:
            return dict(self._switching)
        left = self._switch - advance.length
        if left <= 0:
            return {}
        gangs = self.rows.gangs[row].values()
        if not self._on_change:
            return {gang: (left, gang.mask) for gang in gangs}
        changes = {gang: self._loaded.changes(gang, row, advance.last, rows) for gang in gangs}
        return {gang: (left, mask) for gang, mask in changes.items() if mask}

    # What runs next.

    def resume(self, *, waiting: bool) -> None:
        """Go on with the running slice, or with the next row in use, and sleep until the first gang finishes.

        Raises:
            DecisionError: see ``MatrixRows.require_possible``.
        """
        if self.rows.changed:
            self.rows.require_possible()
        if elapsed := self._env.now - self._event:
            self._event = self._env.now
            if self._held:
                begun, overhead = self._begun_at_event, self._overhead
                self._log.slices(elapsed, self._held, (), overhead, self._up, waiting=self._waiting, begun=begun)
            else:
                self._log.idle(elapsed, self._up, waiting=self._waiting)
            self._overhead = 0
        self._waiting, self._up = waiting, self.rows.nodes_up if self.rows.down else self._nodes
        self._go_on()
        self._held, self._begun_at_event = [self.rows.held[row] for row in self._rotation.order], self._rotation.begun

    def _go_on(self) -> None:
        rows, rotation = self.rows, self._rotation
        row = rows.row_that_goes_on(self._running, self._ran_row)
        rows.last = self._ran_row if row is None else row - 1
        rotation.begun = 0 if row is None else self._ran_for
        rotation.order = order = rows.rotation()
        rest = self._quantum - rotation.begun
        if self._switch and order:
            self._plan_switches(order, rest)
        else:
            for gang in rows.changed:
                rotation.join(gang, (gang.rows, 0, 0))
        for gang in rows.changed:
            if gang.pending or gang.interval is not None:
                self._held_up[gang] = 0
        for gang in self._held_up:
            assert gang.pace is not None
            self._held_up[gang] = gang.pace.served
            if restoring := gang.restoring_left():
                switching = self._switching[gang][0] if gang in self._switching else 0
                gang.restored_at = rotation.time_of(gang, switching + restoring)
        rows.changed.clear()
        alarm = rotation.next_finish()
        if alarm is not None and self._on_change and any(left > rest for left, _ in self._switching.values()):
            alarm = min(alarm, self._env.now + rest)
        self._alarm.set(alarm)

    def _plan_switches(self, order: list[int], rest: int) -> None:
        """Give each gang its pace, and the gangs of the first slice, with ``rest`` to go, the rest of their switches."""
        rows, rotation, goes_on = self.rows, self._rotation, self._running if self._rotation.begun else ()
        paces: dict[SlicedGang, tuple[int, int, int]] = {}
        if self._on_change:
            self._switches, paces = self._loaded.plan(order, first_apart=True)
        else:
            self._switches = [RowSwitches(held := rows.held[row], 0, held, 0) for row in order]
            self._switches[0] = NO_SWITCHES._replace(later=rows.held[order[0]])
            for row in order:
                for gang in rows.gangs[row].values():
                    paces[gang] = (gang.rows, gang.rows & ~(1 << order[0]), gang.rows)
        for gang in rows.gangs[order[0]].values():
            if gang in self._unfinished:
                left, mask = self._unfinished[gang]
            elif gang in goes_on:
                continue
            else:
                left, mask = self._switch, self._loaded.holds_none_on(gang) if self._on_change else gang.mask
            if mask:
                left = left if self._on_change else min(left, rest)
                self._switching[gang] = left, mask
                rotation.leave(gang)
                gang.left += left
        for gang, key in paces.items():
            rotation.join(gang, key)
