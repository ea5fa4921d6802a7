"""Time slices of the fast mode: the machine belongs to one row of the Ousterhout matrix after the other.

Slices, switches and overheads are computed between scheduling events (:mod:`clustermodel.sim.time_sharing.progress`); an alarm
rings when the first gang finishes.  :mod:`clustermodel.sim.time_sharing.node_by_node` plays all of them instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

from clustermodel.recording.ledger import Account
from clustermodel.sim.events import AlarmClock
from clustermodel.sim.job_process import Execution, expected_left, if_late
from clustermodel.sim.time_sharing.progress import Advance, Rotation
from clustermodel.sim.time_sharing.shared_nodes import MatrixRows, OfRun, PaceKey, SlicedGang, TimeSharing


class RowSwitches(NamedTuple):
    """How many nodes of a row switch at the start of its slice, and how many wait with them, in the first lap and later."""

    first: int
    first_waiting: int
    later: int
    later_waiting: int


class LoadedTasks:
    """Which nodes change their task in which slice, where a context switch is charged on change: arithmetic, no SimPy."""

    def __init__(self, rows: MatrixRows, switch: int) -> None:
        self._rows = rows
        self._switch = switch
        self.of: dict[SlicedGang, int] = {}  # on which nodes its task was the last to run, a bitmask
        self._changes: dict[tuple[SlicedGang, int], tuple[int, int]] = {}  # (gang, row) -> nodes that switch first, later

    def changes(self, gang: SlicedGang, row: int, number: int, rows: int) -> int:
        """Return which nodes switch in slice ``number`` of a rotation of so many rows, a bitmask."""
        return self._changes[gang, row][number >= rows]

    def plan(self, order: list[int], *, first_apart: bool = False) -> tuple[list[RowSwitches], dict[SlicedGang, PaceKey]]:
        """Return who switches when rows take turns in this order: for each row, and for each gang the pace that follows."""
        # Where the first slice is computed apart, its switches are left out.
        rows = self._rows
        self._changes.clear()
        by_row: list[RowSwitches] = []
        paces: dict[SlicedGang, PaceKey] = {}
        for place, row in enumerate(order):
            switches = waits = switches_later = waits_later = 0
            for gang in rows.gangs[row].values():
                changes = self._changing_nodes(gang, order, place)
                if first_apart and not place:
                    changes = (0, changes[1])
                self._changes[gang, row] = changes
                first, later = changes[0].bit_count(), changes[1].bit_count()
                switches += first
                switches_later += later
                waits += gang.nodes - first if first else 0
                waits_later += gang.nodes - later if later else 0
                _, in_first, in_later = paces.get(gang, (0, 0, 0))
                paces[gang] = (gang.rows, in_first | bool(first) << row, in_later | bool(later) << row)
            by_row.append(RowSwitches(switches, waits, switches_later, waits_later))
        return by_row, paces

    def _changing_nodes(self, gang: SlicedGang, order: list[int], place: int) -> tuple[int, int]:
        """Return on which nodes the task changes when the row at ``place`` begins to run ``gang``: first lap, later laps."""
        occupied, rows = self._rows.occupied, gang.rows
        open_, changed = gang.mask, 0  # nodes whose last task is not known yet; nodes whose last task was another's
        for before in range(place - 1, -1, -1):
            row = order[before]
            if rows >> row & 1:
                return changed, changed  # it ran there itself, and so it will in every lap
            changed |= open_ & occupied[row]
            open_ &= ~occupied[row]
        first = changed | open_ & ~self.of.get(gang, 0)
        for before in range(len(order) - 1, place, -1):
            row = order[before]
            if rows >> row & 1:
                break
            changed |= open_ & occupied[row]
            open_ &= ~occupied[row]
        return first, changed

    def advance(
        self, order: list[int], last: int, length: int, switching: Mapping[SlicedGang, tuple[int, int]] | None = None
    ) -> None:
        """Note whose task each node ran last, slice ``last`` of the rotation having run for ``length`` ticks."""
        # `switching` are the gangs that still switch in it; by default that follows from the length.
        rows, claimed, loaded = self._rows, 0, dict[SlicedGang, int]()
        for number in range(last, max(-1, last - len(order)), -1):
            row = order[number % len(order)]
            for gang in rows.gangs[row].values():
                ran = gang.mask
                if switching is not None:
                    if number == last and gang in switching:
                        ran &= ~switching[gang][1]
                elif number == last and length < self._switch:  # cut short while it was switching: those nodes hold no task
                    ran &= ~self._changes[gang, row][number >= len(order)]
                loaded[gang] = loaded.get(gang, 0) | ran & ~claimed
            claimed |= rows.occupied[row]
        for gang, nodes in self.of.items():
            if kept := nodes & ~claimed:
                loaded[gang] = loaded.get(gang, 0) | kept
        self.of = loaded


class ComputedSlices(TimeSharing):
    """The rows that take turns, and the alarm clock that rings when the first gang finishes."""

    def __init__(self, run: OfRun) -> None:
        super().__init__(run)
        env = self.env
        self._rotation = Rotation(self.rows.mpl, self.quantum, self.switch, env.now)
        self._loaded = LoadedTasks(self.rows, self.switch)
        self._since = env.now
        self._switches: list[RowSwitches] = []  # for each place in the rotation; empty where switches take no time
        self._held_up = self.rows.held_up
        self._alarm = AlarmClock(env, self._wake)

    def _wake(self) -> None:
        """The first gangs finish: ring their bells; or a switch goes on in the next slice."""
        self.settle(self.env.now)
        finished = self._rotation.finished()
        for gang in finished:
            if not gang.finished.triggered:  # it may be there twice
                gang.finished.ring()
        if not finished:
            self._plan()

    def dismiss(self, gang: SlicedGang) -> None:
        TimeSharing.dismiss(self, gang)
        self._rotation.leave(gang)
        self._loaded.of.pop(gang, None)

    def move(self, moves: list[tuple[SlicedGang, int]], blocked: list[SlicedGang]) -> None:
        before = {gang: gang.overhead_left() for gang in (*[gang for gang, _ in moves], *blocked)}
        TimeSharing.move(self, moves, blocked)
        for gang, overhead in before.items():
            if gang.pending and (added := gang.overhead_left() - overhead):
                self._rotation.leave(gang)
                gang.left += added
        if self.on_change:
            for gang, _ in moves:
                self._loaded.of.pop(gang, None)

    def hold_up(self, gang: SlicedGang) -> None:
        self._rotation.leave(gang)
        gang.left = gang.overhead_left()
        super().hold_up(gang)

    def executed(self, gang: SlicedGang) -> int:
        if gang.interval is not None:
            return gang.done
        pace = gang.pace
        executed = gang.duration - (gang.left if pace is None else gang.due - pace.served)
        return executed + gang.overhead_left() if gang.pending else executed

    def expected_left(self, running: Mapping[int, Execution]) -> dict[int, int]:
        left: dict[int, int] = {}
        others: dict[int, Execution] = {}
        held_up = self._held_up
        for number, gang in cast("Mapping[int, SlicedGang]", running).items():
            if (pace := gang.pace) is None or gang in held_up:
                others[number] = gang
            else:
                left[number] = gang.due - pace.served + gang.overestimated
        if left and min(left.values()) <= 0:
            left = {number: ticks if ticks > 0 else if_late(ticks) for number, ticks in left.items()}
        if others:
            left.update(expected_left(others))
        return left

    def settle(self, now: int) -> None:
        if elapsed := now - self._since:
            self._since = now
            if not self._rotation.order:
                self._idle(elapsed)
                self.log(elapsed)
                return
            order, advance = self._advance(elapsed)
            if not self.switch:
                self.log(elapsed)
                return
            rows, last = len(self._switches), advance.last  # no node switched in slices after the last: they never came
            switched = [
                (
                    switches.first + switches.first_waiting if place <= last else 0,
                    switches.later + switches.later_waiting if place + rows <= last else 0,
                )
                for place, switches in enumerate(self._switches)
            ]
            self.log(elapsed, switched)
            if self.on_change:
                self._loaded.advance(order, advance.last, advance.length)

    def _idle(self, elapsed: int) -> None:
        self._rotation.now += elapsed
        self.ledger.charge_idle(self.nodes * elapsed, self.waiting)

    def _advance(self, elapsed: int) -> tuple[list[int], Advance]:
        """Let the rows take turns, and charge idle nodes, switches and overheads; return the rows, and what they have done."""
        rows, rotation = self.rows, self._rotation
        order, advance = rotation.order, rotation.advance(elapsed, rows.held)
        rows.last = rotation.order[-1]
        self.ledger.charge_idle(self.nodes * elapsed - advance.in_use, self.waiting)
        if self.switch:
            self._charge_switches(advance)
        if self._held_up:
            self._spend_overheads()
        return order, advance

    def _charge_switches(self, advance: Advance) -> tuple[int, int]:
        """Charge context switches; return the node-ticks of nodes that switched, and of nodes that waited for them."""
        switching = blocked = 0
        for switches, first, later in zip(self._switches, advance.first, advance.later, strict=True):
            switching += switches.first * first + switches.later * later
            blocked += switches.first_waiting * first + switches.later_waiting * later
        self.ledger.charge(Account.CONTEXT_SWITCH, switching, waiting=self.waiting)
        self.ledger.charge(Account.BLOCKED, blocked, waiting=self.waiting)
        return switching, blocked

    def _spend_overheads(self) -> None:
        for gang in list(self._held_up):
            pace = gang.pace
            assert pace is not None
            ticks = pace.served - self._held_up[gang]
            for account, spent in gang.spend(ticks) if gang.interval is None else gang.advance(ticks):
                self.ledger.charge(account, spent * gang.nodes, waiting=self.waiting)
                self.overhead += spent * gang.nodes
            if not gang.pending and gang.interval is None:
                del self._held_up[gang]

    def go_on(self, *, cuts: bool) -> list[int]:
        """Go on with the next row in use, and sleep until the first gang finishes."""
        self._plan()
        self.begun = self._rotation.begun
        return self._rotation.order

    def _plan(self) -> None:
        rows, rotation = self.rows, self._rotation
        if rows.in_use_changed:
            rotation.order = rows.rotation()
        if self.on_change:
            self._switches, paces = self._loaded.plan(rotation.order)
            for gang, key in paces.items():
                rotation.join(gang, key)
        else:
            switch = self.switch
            for gang in rows.changed:
                switches = gang.rows if switch else 0
                rotation.join(gang, (gang.rows, switches, switches))
            if switch:
                self._switches = [RowSwitches(rows.held[row], 0, rows.held[row], 0) for row in rotation.order]
        if self._held_up:
            self._note_held_up()
        self._alarm.set(rotation.next_finish())

    def _note_held_up(self) -> None:
        """Note from where on gangs with overheads count what they spend, and when what was saved of them is restored."""
        for gang in self._held_up:
            assert gang.pace is not None
            self._held_up[gang] = gang.pace.served
            if restoring := gang.to_restore:
                gang.restored_at = self._rotation.time_of(gang, self._switching_left(gang) + restoring)

    def _switching_left(self, gang: SlicedGang) -> int:
        """Return how much of a switch in the first slice, which is not the rotation's, a gang has in what it still needs."""
        return 0


class KeptSlices(ComputedSlices):
    """Computed slices where events may leave the running slice alone."""

    # The first slice after an event is then the rest of one, and each of its gangs is as far in its context switch as it is.
    # So the switches of the first slice are not the rotation's: a gang has what is left of its switch in `left`, and spends it
    # first.  All other slices are computed as above; only where the first slice ends during a switch the alarm rings at
    # its end, and computes the rest from there.  After an event that cuts, the first slice is a whole one, and computed apart
    # as well.

    def __init__(self, run: OfRun) -> None:
        super().__init__(run)
        # Gangs -> ticks until all of their nodes are ready, nodes that change their task: a bitmask.
        self._unfinished: dict[SlicedGang, tuple[int, int]] = {}  # of ``running``, those that still switched
        self._switching: dict[SlicedGang, tuple[int, int]] = {}  # now, in the first slice; ``left`` has the ticks
        self._event = self.env.now  # the last scheduling event

    def expected_left(self, running: Mapping[int, Execution]) -> dict[int, int]:
        return expected_left(running)

    def executed(self, gang: SlicedGang) -> int:
        executed = super().executed(gang)
        return executed if gang.interval is not None else executed + self._switching_left(gang)

    def _switching_left(self, gang: SlicedGang) -> int:
        return self._switching[gang][0] if gang in self._switching else 0

    def dismiss(self, gang: SlicedGang) -> None:
        super().dismiss(gang)
        self._forget(gang)

    def move(self, moves: list[tuple[SlicedGang, int]], blocked: list[SlicedGang]) -> None:
        super().move(moves, blocked)
        for gang, _ in moves:
            self._forget(gang)

    def _forget(self, gang: SlicedGang) -> None:
        self.running.discard(gang)
        self._unfinished.pop(gang, None)

    def settle(self, now: int) -> None:
        if elapsed := now - self._since:
            self._since = now
            if self._rotation.order:
                self._note_running(*self._advance(elapsed))
            else:
                self._idle(elapsed)
                self.running, self._unfinished, self.ran_for = set(), {}, 0
        for gang, (left, _) in self._switching.items():
            self._rotation.leave(gang)
            gang.left -= left
        self._switching = {}

    def _charge_switches(self, advance: Advance) -> tuple[int, int]:
        switching, blocked = super()._charge_switches(advance)
        in_first = (self.quantum if advance.last else advance.length) - self._rotation.begun  # how long the first slice has run
        for gang, (left, mask) in list(self._switching.items()):
            spent, nodes = min(left, in_first), mask.bit_count()
            self.ledger.charge(Account.CONTEXT_SWITCH, nodes * spent, waiting=self.waiting)
            self.ledger.charge(Account.BLOCKED, (gang.nodes - nodes) * spent, waiting=self.waiting)
            self.overhead += gang.nodes * spent
            if gang in self._held_up:
                self._held_up[gang] += spent
            if left > spent:
                self._switching[gang] = left - spent, mask
            else:
                del self._switching[gang]
        self.overhead += switching + blocked
        return switching, blocked

    def _note_running(self, order: list[int], advance: Advance) -> None:
        """Note which gangs run in the slice that ran last, and which still switch in it."""
        row, over = self.rows.last, advance.length == self.quantum
        gangs = self.rows.gangs[row].values()
        if not advance.last:
            self._unfinished = dict(self._switching)
        elif self.switch <= advance.length:
            self._unfinished = {}
        else:
            self._unfinished = {}
            left = self.switch - advance.length
            for gang in gangs:
                mask = self._loaded.changes(gang, row, advance.last, len(order)) if self.on_change else gang.mask
                if mask:
                    self._unfinished[gang] = left, mask
        if self.on_change:
            self._loaded.advance(order, advance.last, advance.length, self._unfinished)
        elif over:
            self._unfinished = {}  # every slice has a switch of its own
        self.ran_row, self.ran_for = row, 0 if over else advance.length
        self.running = set() if over else set(gangs)

    def resume(self, waiting: bool, happened: bool) -> None:
        if elapsed := self.env.now - self._event:
            self._event = self.env.now
            self.log(elapsed)
        super().resume(waiting, happened)

    def go_on(self, *, cuts: bool) -> list[int]:
        if cuts:
            self.running, self._unfinished, self.ran_for = set(), {}, 0
        return super().go_on(cuts=cuts)

    def _plan(self) -> None:
        rows, rotation = self.rows, self._rotation
        rotation.begun = self.go_on_with_slice()
        rotation.order = order = rows.rotation()
        rest = self.quantum - rotation.begun
        if self.switch and order:
            self._plan_switches(order, rest)
        else:
            for gang in rows.changed:
                rotation.join(gang, (gang.rows, 0, 0))
        self._note_held_up()
        alarm = rotation.next_finish()
        if alarm is not None and self.on_change and any(left > rest for left, _ in self._switching.values()):
            alarm = min(alarm, self.env.now + rest)
        self._alarm.set(alarm)

    def _plan_switches(self, order: list[int], rest: int) -> None:
        """Give each gang its pace, and the gangs of the first slice, with ``rest`` to go, the rest of their switches."""
        rows, rotation, goes_on = self.rows, self._rotation, self.running if self._rotation.begun else ()
        paces: dict[SlicedGang, PaceKey] = {}
        if self.on_change:
            self._switches, paces = self._loaded.plan(order, first_apart=True)
        else:
            self._switches = [RowSwitches(held := rows.held[row], 0, held, 0) for row in order]
            self._switches[0] = RowSwitches(0, 0, rows.held[order[0]], 0)
            for row in order:
                for gang in rows.gangs[row].values():
                    paces[gang] = (gang.rows, gang.rows & ~(1 << order[0]), gang.rows)
        for gang in rows.gangs[order[0]].values():
            if gang in self._unfinished:
                left, mask = self._unfinished[gang]
            elif gang in goes_on:
                continue
            else:
                left = self.switch
                mask = gang.mask & ~self._loaded.of.get(gang, 0) if self.on_change else gang.mask
            if mask and left:
                left = left if self.on_change else min(left, rest)
                self._switching[gang] = left, mask
                rotation.leave(gang)
                gang.left += left
        for gang, key in paces.items():
            rotation.join(gang, key)
