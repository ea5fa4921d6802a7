"""The time-slice process: it holds the whole machine and gives it to one row of the Ousterhout matrix after the other.

Between two scheduling events the matrix does not change, so the rotation is periodic, and what every gang has done by then
follows by arithmetic: the process sleeps until the first gang finishes.  Gangs in the same rows make the same progress, so
the cost of an event grows with the number of different row sets, not with nodes, slices or gangs.
:mod:`clustermodel.sim.time_sharing.node_by_node` is the slow, obvious twin.

The rules (docs/model): slices begin at event + k x T; a scheduling event cuts the running slice short, and the next row
in use goes on with a full one; a context switch is the first thing in a slice, then come migrations, then work.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator
from heapq import heappop, heappush
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

from simpy import Event

from clustermodel.machine import Machine
from clustermodel.recording.ledger import Account, Ledger
from clustermodel.recording.slice_log import SliceLog
from clustermodel.schedule.node_set import NodeSet, places
from clustermodel.sim.events import AlarmClock, Clock
from clustermodel.sim.time_sharing.matrix_rows import MatrixRows, SlicedGang


class TimeSliceProcess(Protocol):
    """What the coordinator asks of the process that gives the machine to one row after the other."""

    @property
    def rows(self) -> MatrixRows:
        """Which gangs are in which row."""

    def admit(self, gang: SlicedGang) -> None:
        """A gang is dispatched; it is placed in rows next."""

    def dismiss(self, gang: SlicedGang) -> None:
        """A gang has finished or was killed."""

    def migrate(self, moves: list[tuple[SlicedGang, NodeSet]], blocked: list[SlicedGang]) -> None:
        """Move gangs to new columns; they and those they block owe the time that takes.

        Raises:
            DecisionError: see :meth:`MatrixRows.migrate`.
        """

    def progress(self, gang: SlicedGang) -> int:
        """Return how long ``gang`` has run, ticks, up to the last :meth:`settle`."""

    def settle(self, now: int) -> None:
        """Bring progress, ledger and log up to ``now``."""

    def resume(self, *, waiting: bool) -> None:
        """Go on with the next row in use, with a full slice, now that the decisions of the instant have been carried out.

        Args:
            waiting: whether jobs wait from now on.

        Raises:
            DecisionError: the rows cannot run as they are.
        """


PaceKey = tuple[int, int, int]
"""Bitmasks of rows: those a gang runs in, those in which it waits for a context switch in the rotation's first lap, and
those in which it does in later ones."""


NEVER: Final = 2**127
"""Later than any time of a run, ticks, be it one that no record can hold."""


class Served(NamedTuple):
    """What each row has done since the beginning, ticks; lists of shape ``(mpl,)``."""

    ran: list[int]
    """How long it ran."""
    first: list[int]
    """What the context switch in a rotation's first lap took of that from a gang that waited for it."""
    later: list[int]
    """What those in later laps took."""


class Pace:
    """Gangs that make the same progress: they run in the same rows and switch in the same slices.

    Each of them could have worked for :meth:`served` ticks so far.  A gang that owes so many ticks when it joins is due at
    their sum, so only the smallest due matters, and time passes for all of them when the rows' counters go on.

    Args:
        key: rows and switches.
        rows: what each row has done.
    """

    __slots__ = ("_first", "_first_rows", "_later", "_later_rows", "_ran", "dues", "key", "members", "not_before", "rows")

    def __init__(self, key: PaceKey, rows: Served) -> None:
        self.key = key
        self.rows, self._first_rows, self._later_rows = map(places, key)
        self._ran, self._first, self._later = rows
        self.members = 0
        self.not_before = NEVER
        """No member can finish before this time, ticks: none works faster than time passes."""
        self.dues: list[tuple[int, int, SlicedGang]] = []  # heap of (due, order, gang); a gang that has left since is stale

    def served(self) -> int:
        """Return for how long a gang at this pace could have worked since the beginning."""
        ran = self._ran
        total = 0
        for row in self.rows:
            total += ran[row]
        for row in self._first_rows:
            total -= self._first[row]
        for row in self._later_rows:
            total -= self._later[row]
        return total

    def next_due(self) -> int:
        """Return the smallest due of a member; later than any without members."""
        dues = self.dues
        while dues:
            due, _, gang = dues[0]
            if gang.pace is self and gang.due == due:
                return due
            heappop(dues)
        return NEVER


NOT_BEFORE: Final = attrgetter("not_before")


class Rotation:
    """The time-slice process (:meth:`run`) and its state.

    Args:
        env: the simulation.
        machine: what is sliced.
        ledger: where node time is charged.
        log: where each stretch between scheduling events is noted, for the formulas.
    """

    def __init__(self, env: Clock, machine: Machine, ledger: Ledger, log: SliceLog) -> None:
        self.rows = MatrixRows(machine)
        self._env = env
        self._ledger = ledger
        self._log = log
        self._nodes = machine.nodes
        self._quantum = machine.time_slicing.quantum
        self._switch = machine.switch_ticks
        self._on_change = self._switch > 0 and machine.context_switch.charge == "on-change"
        self._since = env.now
        self._waiting = False
        self._order: list[int] = []  # rows in use, in the order they come, as long as none comes into use or is emptied
        self._served = Served(*([0] * machine.time_slicing.mpl for _ in Served._fields))
        self._paces: dict[PaceKey, Pace] = {}
        self._finishing: list[Pace] = []  # those whose members finish first, if no scheduling event comes before
        self._indebted: dict[SlicedGang, int] = {}  # gangs that owe for migrations -> what their pace had served then
        self._loaded: dict[SlicedGang, int] = {}  # on which nodes its task was the last to run, a bitmask
        self._changes: dict[tuple[SlicedGang, int], tuple[int, int]] = {}  # (gang, row) -> nodes that switch first, later
        # For each place in the order: nodes that switch, and nodes that wait with them, in the first lap and in later ones.
        self._switching: list[tuple[int, int, int, int]] = []
        self._bell = Event(env)
        self._alarm = AlarmClock(env, self._ring)
        env.process(self.run())

    # What the coordinator asks.

    def admit(self, gang: SlicedGang) -> None:
        """Open the gang's account: it owes its duration."""
        gang.owed = gang.duration

    def dismiss(self, gang: SlicedGang) -> None:
        """Forget the gang."""
        self.rows.remove(gang)
        self._leave(gang)
        self._indebted.pop(gang, None)
        self._loaded.pop(gang, None)

    def migrate(self, moves: list[tuple[SlicedGang, NodeSet]], blocked: list[SlicedGang]) -> None:
        """What a migration takes is owed like work."""
        debts = {gang: gang.debt for gang in (*(gang for gang, _ in moves), *blocked)}
        self.rows.migrate(moves, blocked)
        for gang, before in debts.items():
            if gang.debt > before:
                self._leave(gang)
                gang.owed += gang.debt - before
        for gang, _ in moves:
            self._loaded.pop(gang, None)

    def progress(self, gang: SlicedGang) -> int:
        """Work done is the duration less what is still owed."""
        pace = gang.pace
        left = gang.owed if pace is None else gang.due - pace.served()
        return gang.duration - left + gang.debt if gang.debts else gang.duration - left

    def settle(self, now: int) -> None:
        """Work out what the rotation has done since the last event."""
        elapsed = now - self._since
        if not elapsed:
            return
        self._since = now
        order, held, waiting = self._order, self.rows.held, self._waiting
        if not order:
            self._ledger.charge(Account.IDLE, self._nodes * elapsed, waiting=waiting)
            self._log.idle(elapsed, waiting=waiting)
            return
        last, length = divmod(elapsed - 1, self._quantum)
        length += 1  # of the slice that is cut short; a full one if it happens to end now
        self.rows.last = order[last % len(order)]
        self._charge(*self._run_rows(last, length))
        migration = self._pay_debts() if self._indebted else 0
        self._log.slices(elapsed, [held[row] for row in order], self._switched(last), migration, waiting=waiting)
        if self._on_change:
            self._note_loaded(last, length)
        following = last % len(order) + 1
        self._order = order[following:] + order[:following]

    def _switched(self, last: int) -> list[tuple[int, int, int, int]]:
        """Return which nodes switched or waited in slices up to number ``last``: none in those that never came."""
        rows, none = len(self._order), (0, 0)
        return [
            (*(switching[:2] if place <= last else none), *(switching[2:] if place + rows <= last else none))
            for place, switching in enumerate(self._switching)
        ]

    def _run_rows(self, last: int, length: int) -> tuple[int, int, int]:
        """Count what each row has done until slice number ``last`` was cut short after ``length``.

        Returns:
            Idle, switching and blocked node-ticks.
        """
        order, quantum, switch = self._order, self._quantum, self._switch
        held, nodes, (ran, first, later) = self.rows.held, self._nodes, self._served
        laps, at = divmod(last, len(order))
        idle = switching = blocked = 0
        turns = [(row, quantum) for row in order[:at]]  # most stretches are no longer than a slice or two
        turns.append((order[at], length))
        if laps:
            turns += [(row, laps * quantum) for row in order]
        for row, ticks in turns:
            ran[row] += ticks
            idle += (nodes - held[row]) * ticks
        if switch:
            for place, row in enumerate(order):
                slices = laps + 1 if place < at else laps
                in_first = switch if slices else min(length, switch) if place == at else 0
                in_later = (slices - 1) * switch if slices else 0
                if slices and place == at:
                    in_later += min(length, switch)
                first[row] += in_first
                later[row] += in_later
                switches, waits, switches_later, waits_later = self._switching[place]
                switching += switches * in_first + switches_later * in_later
                blocked += waits * in_first + waits_later * in_later
        return idle, switching, blocked

    def _charge(self, idle: int, switching: int, blocked: int) -> None:
        self._ledger.charge(Account.IDLE, idle, waiting=self._waiting)
        if switching:
            self._ledger.charge(Account.CONTEXT_SWITCH, switching, waiting=self._waiting)
            self._ledger.charge(Account.BLOCKED, blocked, waiting=self._waiting)

    def resume(self, *, waiting: bool) -> None:
        """Give the gangs that have changed their rows another pace, and sleep until the first one finishes."""
        rows = self.rows
        if rows.changed:
            rows.require_possible()
        self._waiting = waiting
        if rows.in_use_changed:
            self._order = rows.rotation()
        order = self._order
        if self._on_change:
            self._plan_switches()
        else:
            switch = self._switch
            for gang in rows.changed:
                switches = gang.rows if switch else 0
                self._join(gang, (gang.rows, switches, switches))
            if switch:
                self._switching = [(rows.held[row], 0, rows.held[row], 0) for row in order]
        for gang in rows.changed:
            if gang.debts:
                self._indebted[gang] = 0
        for gang in self._indebted:
            assert gang.pace is not None
            self._indebted[gang] = gang.pace.served()
        rows.changed.clear()
        self._alarm.set(self._next_finish())

    # The process.

    def run(self) -> Generator[Event, object, None]:
        """Sleep until the first gangs finish, tell them, and go on."""
        while True:
            yield self._bell
            self._bell = Event(self._env)
            self.settle(self._env.now)
            for pace in self._finishing:
                served = pace.served()
                while pace.next_due() <= served:
                    gang = heappop(pace.dues)[2]
                    if not gang.finished.triggered:  # it may be there twice
                        gang.finished.succeed()

    def _ring(self) -> None:
        self._bell.succeed()

    # Paces.

    def _leave(self, gang: SlicedGang) -> None:
        pace = gang.pace
        if pace is None:
            return
        gang.owed = gang.due - pace.served()
        gang.pace = None
        pace.members -= 1
        if not pace.members:
            del self._paces[pace.key]

    def _join(self, gang: SlicedGang, key: PaceKey) -> None:
        old = gang.pace
        if old is not None:
            if old.key == key:
                return
            self._leave(gang)
        pace = self._paces.get(key)
        if pace is None:
            pace = self._paces[key] = Pace(key, self._served)
        pace.members += 1
        gang.pace = pace
        gang.due = pace.served() + gang.owed
        pace.not_before = min(pace.not_before, self._since + gang.owed)
        heappush(pace.dues, (gang.due, gang.order, gang))

    def _next_finish(self) -> int | None:
        """Return when the first gang finishes, ticks; ``None`` when nothing runs."""
        soonest, self._finishing = NEVER, []
        for pace in sorted(self._paces.values(), key=NOT_BEFORE):
            if pace.not_before > soonest:
                break
            due, _, gang = pace.dues[0]
            if gang.pace is not pace or gang.due != due:
                due = pace.next_due()  # the first one is stale
            owed = due - pace.served()
            pace.not_before = self._since + owed
            if pace.not_before <= soonest:
                finish = self._since + self._elapsed_until(pace, owed)
                if finish < soonest:
                    soonest, self._finishing = finish, [pace]
                elif finish == soonest:
                    self._finishing.append(pace)
        return None if soonest == NEVER else soonest

    def _elapsed_until(self, pace: Pace, owed: int) -> int:
        """Return how long the rotation takes, from its last event, to let ``pace`` run for ``owed`` ticks."""
        rows, first, later = pace.key
        quantum, order = self._quantum, self._order
        if not (first or later):
            slices, rest = divmod(owed - 1, quantum)
            own = pace.rows
            first_own = bisect_left(own, order[0])  # the rotation ascends from its first row on, and begins anew
            row, laps = own[(first_own + slices) % len(own)], slices // len(own)
            return (laps * len(order) + order.index(row)) * quantum + rest + 1
        switch = self._switch
        places = [(place, row) for place, row in enumerate(order) if rows >> row & 1]
        in_first_lap = len(places) * quantum - first.bit_count() * switch
        begins, switches = 0, first
        if owed > in_first_lap:
            in_a_lap = len(places) * quantum - later.bit_count() * switch
            laps = (owed - in_first_lap - 1) // in_a_lap
            owed -= in_first_lap + laps * in_a_lap
            begins, switches = (1 + laps) * len(order), later
        for place, row in places:
            lost = switch if switches >> row & 1 else 0
            if owed <= quantum - lost:
                return (begins + place) * quantum + lost + owed
            owed -= quantum - lost
        raise AssertionError("a lap is as long as its slices")

    # Migrations.

    def _pay_debts(self) -> int:
        """Charge what gangs have spent on migrations since the last event; return the node-ticks."""
        charged = 0
        for gang in list(self._indebted):
            pace = gang.pace
            assert pace is not None
            for account, spent in gang.pay(pace.served() - self._indebted[gang]):
                self._ledger.charge(account, spent * gang.job.nodes, waiting=self._waiting)
                charged += spent * gang.job.nodes
            if not gang.debts:
                del self._indebted[gang]
        return charged

    # Context switches charged on change.

    def _plan_switches(self) -> None:
        """Find out which nodes will change their task in which slice, and give each gang its pace."""
        rows, order = self.rows, self._order
        self._changes.clear()
        self._switching.clear()
        for place, row in enumerate(order):
            switches = waits = switches_later = waits_later = 0
            for gang in rows.gangs[row].values():
                changes = self._changing_nodes(gang, place)
                self._changes[gang, row] = changes
                first, later = changes[0].bit_count(), changes[1].bit_count()
                switches += first
                switches_later += later
                waits += gang.job.nodes - first if first else 0
                waits_later += gang.job.nodes - later if later else 0
            self._switching.append((switches, waits, switches_later, waits_later))
        switching: dict[SlicedGang, tuple[int, int]] = {}
        for (gang, row), (changing, changing_later) in self._changes.items():
            first, later = switching.get(gang, (0, 0))
            switching[gang] = (first | bool(changing) << row, later | bool(changing_later) << row)
        for gang, (first, later) in switching.items():
            self._join(gang, (gang.rows, first, later))

    def _changing_nodes(self, gang: SlicedGang, place: int) -> tuple[int, int]:
        """Return on which nodes the task changes when the row at ``place`` begins to run ``gang``: first lap, later laps."""
        occupied, order, rows = self.rows.occupied, self._order, gang.rows
        open_, changed = gang.mask, 0  # nodes whose last task is not known yet; nodes whose last task was another's
        for before in range(place - 1, -1, -1):
            row = order[before]
            if rows >> row & 1:
                return changed, changed  # it ran there itself, and so it will in every lap
            changed |= open_ & occupied[row]
            open_ &= ~occupied[row]
        first = changed | open_ & ~self._loaded.get(gang, 0)
        for before in range(len(order) - 1, place, -1):
            row = order[before]
            if rows >> row & 1:
                break
            changed |= open_ & occupied[row]
            open_ &= ~occupied[row]
        return first, changed

    def _note_loaded(self, last: int, length: int) -> None:
        """Note whose task each node ran last; ``last`` is the number of the last slice, which ran for ``length`` ticks."""
        rows, order = self.rows, self._order
        claimed = 0
        loaded: dict[SlicedGang, int] = {}
        for number in range(last, max(-1, last - len(order)), -1):
            row = order[number % len(order)]
            for gang in rows.gangs[row].values():
                ran = gang.mask
                if number == last and length < self._switch:  # cut short while it was switching: those nodes hold no task
                    ran &= ~self._changes[gang, row][number >= len(order)]
                loaded[gang] = loaded.get(gang, 0) | ran & ~claimed
            claimed |= rows.occupied[row]
        for gang, nodes in self._loaded.items():
            if kept := nodes & ~claimed:
                loaded[gang] = loaded.get(gang, 0) | kept
        self._loaded = loaded
