"""Nodes of pools at one instant, and plans over time that go on from one scheduling cycle to the next.

There are two kinds of plans: over pools, here, and by node (:mod:`clustermodel.plans.by_node`).  Reservations and outages
that are known in advance are not subtracted from them: these windows bar some jobs from some nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol

from clustermodel.errors import DecisionError
from clustermodel.machine.node_set import NodeSet, as_mask, bisect_left, bisect_right, from_mask, lowest
from clustermodel.plans.pools import Pools, Split
from clustermodel.plans.trials import PlanTrials, Trials
from clustermodel.plans.windows import Window, candidates
from clustermodel.ticks import NEVER

if TYPE_CHECKING:
    from clustermodel.plans.ousterhout import Occupant
    from clustermodel.plans.rows import RowReservation
    from clustermodel.plans.slack_prices import ArrivingJob, SlackReservation
    from clustermodel.policies.view import Outage, QueuedJob, RunningJob, View


class Chooser(Protocol):
    """The idle nodes of one instant, of which jobs that start have some."""

    def split(self, job: QueuedJob, closed: set[int]) -> Split | None:
        """Return what a job can have of the idle nodes, but for those of closed pools; ``None`` if that is too little."""

    def take_split(self, split: Split) -> NodeSet | None:
        """Return the nodes of a split, which are not idle any more; ``None``: the machine chooses them."""


class IdleNodes:
    """The idle nodes of one instant where all are alike: how many, and the machine chooses them."""

    def __init__(self, number: int) -> None:
        self._number = number

    def split(self, job: QueuedJob, closed: set[int]) -> Split | None:
        """Return how many of the idle nodes a job has; ``None`` if they are too few."""
        return ((0, job.nodes),) if job.nodes <= self._number else None

    def may_take(self, job: QueuedJob, split: Split) -> bool:
        """Return whether these nodes are idle."""
        return split[0][1] <= self._number

    def take_split(self, split: Split, preferred: NodeSet | None = None) -> NodeSet | None:
        """Take nodes; ``None`` stands for those where the job is suspended if they are idle, else the lowest idle ones."""
        self._number -= split[0][1]
        return None


class IdlePools:
    """The idle nodes of one instant by pool, which are asked for when the first of them is taken."""

    def __init__(self, pools: Pools, idle_nodes: Callable[[], NodeSet]) -> None:
        self._pools, self._idle_nodes = pools, idle_nodes
        self._counts: list[int] = []
        self._idle, self._asked = 0, False

    def counts(self) -> list[int]:
        """Return how many nodes of each pool are idle; not to be changed."""
        if not self._counts:
            if not self._asked:
                self._ask()
            self._counts = [(self._idle & mask).bit_count() for mask in self._pools.masks]
        return self._counts

    def _ask(self) -> None:
        self._idle, self._asked = as_mask(self._idle_nodes()), True

    def split(self, job: QueuedJob, closed: set[int]) -> Split | None:
        """Return from which pools a job can have idle nodes, but for closed ones; ``None`` if they are too few."""
        return split_of(self.counts(), job.nodes, self._pools.open_ways(job, closed))

    def take_nodes(self, nodes: NodeSet) -> bool:
        """Take particular nodes; return ``False``, with nothing changed, unless all of them are idle."""
        counts, mask = self.counts(), as_mask(nodes)
        if mask & ~self._idle:
            return False
        self._idle &= ~mask
        for pool, number in self._pools.counts(nodes):
            counts[pool] -= number
        return True

    def may_take(self, job: QueuedJob, split: Split) -> bool:
        """Return whether so many nodes are idle in pools, and a job may have them."""
        counts, eligible = self.counts(), self._pools.of(job.eligible)
        return all(pool in eligible and counts[pool] >= nodes for pool, nodes in split)

    def take_split(self, split: Split, preferred: NodeSet | None = None) -> NodeSet:
        """Return the lowest idle nodes of pools, which are not idle any more, or ``preferred`` ones that are such a split."""
        if preferred is not None and self._pools.counts(preferred) == split and self.take_nodes(preferred):
            return preferred
        if not self._asked:
            self._ask()
        chosen, counts = 0, self._counts
        for pool, nodes in split:
            chosen |= lowest(self._idle & self._pools.masks[pool], nodes)
            if counts:
                counts[pool] -= nodes
        self._idle &= ~chosen
        return from_mask(chosen)


def split_of(counts: Sequence[int], nodes: int, ways: Iterable[Iterable[int]]) -> Split | None:
    """Return from which pools a job can have its nodes, where so many of each are free; ``None`` if they are too few.

    The pools are those of the first of its ``ways`` (:meth:`Pools.ways`) that have enough.
    """
    for pools in ways:
        parts: list[tuple[int, int]] = []
        left = nodes
        for pool in pools:
            if (free := counts[pool]) >= left:
                parts.append((pool, left))
                return tuple(parts)
            if free > 0:
                parts.append((pool, free))
                left -= free
    return None


Steps = tuple[list[int], Any]
"""What is free over time: when steps begin, and what is free in each."""


class Group:
    """The jobs that may have the same nodes, and are barred from the same windows."""

    # Where its jobs may have nodes of one of several sets only, each set is a part, a group by itself.  Plans choose the part.

    __slots__ = (
        "allowed", "bits", "blocked", "guard", "idle", "is_closed", "nodes", "parts", "pools", "protected", "shift", "windows",
    )  # fmt: skip

    def __init__(self, nodes: NodeSet | None, allowed: int, pools: tuple[int, ...], windows: list[Window]) -> None:
        self.nodes = nodes  # that its jobs may have, None for all
        self.allowed = allowed  # a bitmask of them
        self.parts: list[Group] = []  # in the order in which they are tried
        self.pools = pools
        self.bits = sum([1 << pool for pool in pools])
        self.windows = windows  # those that bar its jobs from some of their nodes, and are not over
        self.shift = self.guard = 0  # of the field of its pools, in the numbers of a PoolPlan
        self.protected = 0  # how many hold a reservation
        # In a scheduling cycle that goes through the queue.
        self.idle = 0  # nodes free now
        self.is_closed = False  # whether no job that has been blocked can start now
        self.blocked: list[tuple[int, int]] = []  # nodes and lengths that do not fit now


Shape = tuple[int, int]
"""A number of nodes and the expected run time on them, ticks."""
Shapes = Sequence[Shape]
"""The shapes that a moldable job can have, the preferred one first; a rigid job has one."""


class Reservation(NamedTuple):
    """What is reserved for a waiting job; times in ticks."""

    start: int
    length: int
    nodes: int
    split: Split
    group: Group
    tested: int = 0
    """When it was last tried to move it, by the clock of the plan."""

    @property
    def end(self) -> int:
        return self.start + self.length


reservation_of: Final[Callable[[tuple[int, int, int, Split, Group, int]], Reservation]] = partial(tuple.__new__, Reservation)
"""Makes a reservation in a third of the time."""


class RunningPlan(ABC):
    """What is free from the present to infinity, without what running jobs, and nodes that are down, hold until expected ends.

    A job has so many of each part of the machine, a *split*.  A waiting job may hold a reservation.  Times and durations are
    ticks.
    """

    are_alike: ClassVar[bool] = False
    """Whether any job may have any nodes at any time."""
    of_numbers: ClassVar[bool] = True
    """Whether only the number of its nodes decides which jobs of a group fit for how long, but for windows."""

    def __init__(self, pools: Pools, *, may_overrun: bool) -> None:
        self._pools, self._may_overrun = pools, may_overrun
        self._times = [0]
        self.groups: list[Group] = []
        self._by_kind: dict[tuple[NodeSet | None, tuple[NodeSet, ...], int], Group] = {}
        self.clock = self._freed = 0  # counts changes by which jobs can start earlier; the last of these
        self.freed_early = 0  # nodes, a bitmask, of the gangs and outages that have ended early in this cycle
        self._connected: int | None = None  # of these, once it has been asked for in this cycle
        self.freed = 0  # bits of the parts of which something has become free; a policy sets it back
        self._held: dict[int, tuple[int, int, Split]] = {}  # job id -> assumed end, expected end, split
        self._ends: list[tuple[int, int]] = []  # heap of (assumed end, job id); an entry without a job is stale
        self._windows_change = 0  # when one of the groups' windows is over
        # Where jobs are planned for other lengths than their estimates: how long before a window a job has to start.
        self.longest_of: Callable[[QueuedJob], int] | None = None
        self.reserved: dict[int, Reservation] = {}
        """By the id of a waiting job, its reservation."""
        self._reserved_starts: dict[int, int] = {}  # the start of each, by job id: numbers are compared faster
        self._first = NEVER  # the earliest of these, where it is known
        self._knows_first = True
        self._group_of: dict[int, Group] = {}  # by the id of a job in the system

    def group_of(self, job: QueuedJob) -> Group:
        """Return the group of a job, a new one if it is the first one of it."""
        kind = job.allowed, job.alternatives, job.barred
        if (group := self._by_kind.get(kind)) is None:
            group = self._by_kind[kind] = self._new_group(job.allowed, job.barred)
            group.parts = [self._new_group(each, job.barred) for each in job.alternatives]
            for part in group.parts or (group,):
                self.add_group(part)
            self.groups.append(group)
        return group

    def _new_group(self, nodes: NodeSet | None, barred: int) -> Group:
        pools, windows = self._pools, self._pools.windows
        allowed = pools.all_nodes if nodes is None else as_mask(nodes)
        barring = [] if windows is None else [each for each in windows.all if each.bit & barred and each.mask & allowed]
        return Group(nodes, allowed, pools.touched(nodes), barring)

    def barred(self, job: QueuedJob, group: Group, start: int, length: int) -> int:
        """Return the nodes, a bitmask, that windows keep from a job of a group."""
        if self.longest_of is not None:
            length = max(length, self.longest_of(job))
        mask, end = 0, start + length
        for window in group.windows:
            if window.bars(start, end):
                mask |= window.mask
        return mask

    def split_in_parts(self, start: int, length: int, job: QueuedJob, group: Group) -> Split | None:
        """:meth:`split` in the first part of a group that has enough."""
        for part in group.parts:
            if (split := self.split(start, length, job, part)) is not None:
                return split
        return None

    def earliest_in_parts(self, length: int, job: QueuedJob, group: Group, not_after: int) -> tuple[int, Split]:
        """:meth:`earliest` over the parts of a group, in the first of those where the start is the same."""
        best: tuple[int, Split] = -1, ()
        for part in group.parts:
            start, split = self.earliest(length, job, part, not_after)
            if start >= 0:
                best, not_after = (start, split), start - 1
        return best

    # Reservations, of each waiting job at most one.

    def enter(self, job: QueuedJob) -> None:
        """Note a job that has been submitted."""
        self._group_of[job.id] = self.group_of(job)

    def leave(self, job_id: int) -> None:
        """Forget a job that has left the system."""
        self._group_of.pop(job_id, None)

    def group(self, job: QueuedJob) -> Group:
        """Return the group of a job in the system."""
        return self._group_of[job.id]

    def place(self, job: QueuedJob, length: int, group: Group) -> int:
        """Enter a reservation at the earliest start of a job, and return that; -1 if windows let it start at no time."""
        start, split = self.earliest(length, job, group)
        if start >= 0:
            self.keep(job.id, reservation_of((start, length, job.nodes, split, group, self.clock)))
        return start

    def earliest_completion(self, job: QueuedJob, shapes: Shapes, group: Group) -> Reservation | None:
        """Return where a job of one of these shapes completes first; of equally good places that of the first shape.

        ``None`` if windows let it start at no time.
        """
        best: Reservation | None = None
        for nodes, length in shapes:
            not_after = NEVER if best is None else best.end - length - 1
            start, split = self.earliest(length, job.sized(nodes), group, not_after)
            if start >= 0:
                best = reservation_of((start, length, nodes, split, group, self.clock))
        return best

    def reshape(self, job: QueuedJob, shapes: Shapes) -> None:
        """Take out a job, and enter it where one of its shapes completes first, not later than it would have started."""
        best = self.drop(job.id)
        latest, group = best.start, best.group
        for nodes, length in shapes:
            start, split = self.earliest(length, job.sized(nodes), group, min(latest, best.end - length))
            if start >= 0 and (start + length, start) < (best.end, best.start):
                best = reservation_of((start, length, nodes, split, group, self.clock))
        self.keep(job.id, best)

    def keep(self, job_id: int, reservation: Reservation) -> None:
        """Enter a reservation; a DecisionError if that is not free."""
        self.reserve(reservation.start, reservation.length, reservation.split)
        self.note_reservation(job_id, reservation)

    def note_reservation(self, job_id: int, reservation: Reservation) -> None:
        """Note a reservation whose nodes are subtracted already."""
        reservation.group.protected += 1
        self.reserved[job_id] = reservation
        self._reserved_starts[job_id] = start = reservation.start
        self._first = min(self._first, start)

    def take(self, job_id: int) -> Reservation:
        """Take out a reservation, and leave its nodes subtracted."""
        reservation = self.reserved.pop(job_id)
        reservation.group.protected -= 1
        if self._reserved_starts.pop(job_id) <= self._first:
            self._knows_first = False
        return reservation

    def drop(self, job_id: int) -> Reservation:
        """Take out a reservation, and return it."""
        reservation = self.take(job_id)
        start = max(reservation.start, self._times[0])
        if start < reservation.end:
            self.release(start, reservation.end - start, reservation.split)
        return reservation

    def move(self, job_id: int, start: int, split: Split) -> None:
        """Let a reservation that has been released begin earlier, or be of other nodes."""
        old = self.reserved[job_id]
        self.reserve(start, old.length, split)
        self.reserved[job_id] = reservation_of((start, old.length, old.nodes, split, old.group, self.clock))
        self._reserved_starts[job_id] = start
        self._first = min(self._first, start)
        if start != old.start or split != old.split:
            self.note_freed(old.split)

    def next_start(self) -> int:
        """Return the earliest reserved start, ``NEVER`` without reservations."""
        if not self._knows_first:
            self._first = min(self._reserved_starts.values()) if self._reserved_starts else NEVER
            self._knows_first = True
        return self._first

    def due(self, now: int) -> list[int]:
        """Return the jobs whose reserved start has come: the earliest start first, then the lowest id."""
        if self.next_start() > now:
            return []
        due = sorted([(start, job_id) for job_id, start in self._reserved_starts.items() if start <= now])
        return [job_id for _, job_id in due]

    def compress(self, jobs: Collection[QueuedJob], *, windows_change: bool = False) -> list[QueuedJob]:
        """Move each reservation, in the order of ``jobs``, to the earliest start possible with the others in place.

        Return the jobs whose reservations are earlier now.
        """
        reserved = self.reserved
        moved: list[QueuedJob] = []
        for job in jobs:
            if (old := reserved.get(job.id)) is None:
                continue
            start, length, nodes, split, group, tested = old
            if not (self.freed_since(tested, group) and (windows_change or self.gains(group))):
                continue
            sized = job.sized(nodes)
            if self.may_improve(start, length, split, sized, group):
                self.release(start, length, split)
                earlier, parts = self.earliest(length, sized, group, start)
                self.move(job.id, earlier, parts)
                if earlier < start:
                    moved.append(job)
            reserved[job.id] = reserved[job.id]._replace(tested=self.clock)
        return moved

    # Jobs that can start now.

    def open_groups(self, submitted: Iterable[QueuedJob], *, all_of_them: bool) -> None:
        """Prepare for :meth:`next_of`: a group of whose nodes nothing has become free is closed.

        Of such a group only jobs that have been ``submitted`` now can start, unless that is not sure: then ``all_of_them`` can.
        """
        freed, self.freed = -1 if all_of_them else self.freed, 0
        for group in self.groups:
            group.is_closed = not freed & group.bits
            if group.blocked:
                group.blocked.clear()
        for job in submitted:
            self._group_of[job.id].is_closed = False

    def next_of(
        self, queue: Iterator[QueuedJob], length_of: Callable[[QueuedJob], int], depth: float, rest: list[QueuedJob] | None
    ) -> tuple[QueuedJob, Split | None] | None:
        """Return the next job that can start now, with its nodes, or that is blocked and is to hold a reservation.

        So many jobs of each group are to hold one (``depth``).  Jobs behind these that perhaps can start are kept for the
        ``rest``, if there is one.  ``None`` at the end of the queue.
        """
        now, groups, reserved, are_many = self._times[0], self._group_of, self.reserved, self.of_numbers and not self.longest_of
        self.count_idle()
        for job in queue:
            group, nodes = groups[job.id], job.nodes
            is_protected = group.protected >= depth
            if (is_protected and (group.is_closed or nodes > group.idle)) or job.id in reserved:
                continue
            if rest is not None and is_protected:
                rest.append(job)
                continue
            if nodes <= group.idle:
                length = length_of(job)
                for fewer, shorter in group.blocked:
                    if fewer <= nodes and shorter <= length:
                        break
                else:
                    if (split := self.split(now, length, job, group)) is not None:
                        return job, split
                    if are_many:
                        group.blocked.append((nodes, length))
            if not is_protected:
                return job, None
        return None

    def sets_alarms(self) -> bool:
        """Return whether the first reserved start may be at a time when no running job is expected to end."""
        return len(self.groups) > 1 or self._pools.windows is not None or not self.of_numbers

    def free_until(self, job: QueuedJob, group: Group) -> int:
        """Return until when a job that starts now could have its nodes; now if it cannot, ``NEVER`` if for ever."""
        now, times = self._times[0], self._times
        begins = [begin for window in group.windows if now < (begin := window.next(now)[0]) < NEVER]
        ends = sorted({*times[1:], *begins, NEVER})
        low, high = 0, len(ends)  # it can have them until ends[low - 1], but not until ends[high]
        while low < high:
            middle = (low + high) // 2
            if self.split(now, ends[middle] - now, job, group) is None:
                high = middle
            else:
                low = middle + 1
        return ends[low - 1] if low else now

    def settled(self) -> int:
        """Return from when on what is free is known not to change any more, ``NEVER`` where windows recur."""
        last = next(time for time in reversed(self._times) if time < NEVER)
        windows = self._pools.windows
        return last if windows is None else NEVER if windows.period else max(last, windows.settled)

    # What the parts of the machine are.

    def add_group(self, group: Group) -> None:
        """Prepare for a group without parts."""
        self._windows_change = 0

    @abstractmethod
    def split_of(self, columns: NodeSet, memory: int = 0) -> Split:
        """Return what these nodes are of each part, with ``memory`` for each task on them, KiB."""

    @abstractmethod
    def count_idle(self) -> None:
        """Note in the groups how many nodes their jobs could have now, at most."""

    @abstractmethod
    def idle(self) -> int:
        """Return how many nodes are free now."""

    @abstractmethod
    def free_at(self, time: int, group: Group) -> int:
        """Return how many nodes the jobs of a group could have at a time, at most."""

    @abstractmethod
    def most(self, length: int, job: QueuedJob, group: Group) -> int:
        """Return how many nodes a job could have from now on for ``length``."""

    @abstractmethod
    def chooser(self, view: View) -> Chooser:
        """Return the idle nodes, of which jobs that start have their splits."""

    @abstractmethod
    def split(self, start: int, length: int, job: QueuedJob, group: Group) -> Split | None:
        """Return what a job can have from ``start`` on for ``length``; ``None`` if that is too little."""

    @abstractmethod
    def earliest(self, length: int, job: QueuedJob, group: Group, not_after: int = NEVER) -> tuple[int, Split]:
        """Return the first time from which a job can have its nodes for ``length``, and what it has of each part then.

        The time is -1 if it is after ``not_after``, or windows let it start at no time.
        """

    def may_improve(self, start: int, length: int, split: Split, job: QueuedJob, group: Group) -> bool:
        """Return whether a reservation could perhaps start earlier, or have nodes that are preferred to its own."""
        return True

    def note_freed(self, split: Split) -> None:
        """Note that a job can perhaps start earlier than it could before, on these parts."""
        self._freed = self.clock = self.clock + 1

    def freed_since(self, clock: int, group: Group) -> bool:
        """Return whether that holds for jobs of a group."""
        return self._freed > clock

    @abstractmethod
    def reserve(self, start: int, length: int, split: Split, *, beyond_capacity: bool = False) -> None:
        """Subtract a split for ``length`` from ``start`` on; a DecisionError if that is not free."""

    @abstractmethod
    def release(self, start: int, length: int, split: Split) -> None:
        """Add it again."""

    @abstractmethod
    def forget(self, steps: int) -> None:
        """Drop what was free in the first steps."""

    @abstractmethod
    def has(self, start: int, length: int, split: Split) -> bool:
        """Return whether a split is free from ``start`` on for ``length``."""

    @abstractmethod
    def nodes_of(self, split: Split) -> int:
        """Return the parts of which a split has something, as a bitmask of their nodes."""

    @abstractmethod
    def steps(self) -> Steps:
        """Return a copy of what is free over time, for :meth:`take_steps`."""

    @abstractmethod
    def take_steps(self, steps: Steps) -> None:
        """Let that be free over time, of which a copy is kept."""

    def around_windows(
        self, length: int, job: QueuedJob, group: Group, not_after: int = NEVER, not_before: int = 0
    ) -> tuple[int, Split]:
        """:meth:`earliest` where windows bar the job from some nodes, or it may not start before a time."""
        times, windows, first = self._times, self._pools.windows, 0
        if not_before > times[0]:
            first = bisect_right(times, not_before) - 1
            times = [not_before, *times[first + 1 :]]
        longest = length if self.longest_of is None else max(length, self.longest_of(job))
        final = self.final_step()
        key = (final, group.allowed, job.alternatives, job.barred, job.nodes, length, longest)
        recurs, settled = final is None or key not in self._pools.never, 0 if windows is None else windows.settled

        def has_room(step: int) -> bool:
            return self.has_room(first + step, job, group)

        for start in candidates(times, group.windows, settled, longest, has_room, recurs=recurs):
            if start > not_after:
                return -1, ()
            if (split := self.split(start, length, job, group)) is not None:
                return start, split
        if final is not None:
            self._pools.never.add(key)
        return -1, ()

    def has_room(self, _step: int, _job: QueuedJob, _group: Group) -> bool:
        """Return whether a job could start in a step, if windows let it."""
        return True

    def final_step(self) -> int | None:
        """Return what is free after all steps, with which windows alone decide; ``None`` if no number says that."""
        return None

    # Waiting jobs that may have to move.

    def competing(self, nodes: int, jobs: Sequence[SlackReservation]) -> Sequence[SlackReservation]:
        """Return which of some waiting jobs compete for nodes, a bitmask, perhaps through the others."""
        groups, before = {job.group for job in jobs}, 0
        while before != nodes:
            before = nodes
            for group in groups:
                if group.allowed & nodes:
                    nodes |= group.allowed
        return [job for job in jobs if job.group.allowed & nodes]

    def trials(self, jobs: Sequence[SlackReservation], arriving: ArrivingJob | None, now: int) -> Trials:
        """Return the trials of a search for other starts of waiting jobs, by start, that compete for nodes."""
        return PlanTrials(self, jobs, arriving, now)

    # Jobs and outages.

    def advance(self, now: int) -> None:
        """Forget the past: the plan begins at ``now``."""
        times = self._times
        if len(times) > 1 and times[1] <= now:
            past = bisect_right(times, now) - 1
            del times[:past]
            self.forget(past)
        times[0] = now
        self.forget_windows(now)

    def forget_windows(self, now: int) -> None:
        """Drop the windows that are over."""
        if self._pools.windows is not None and now >= self._windows_change:
            for group in self.groups:
                for each in (group, *group.parts):
                    each.windows = [window for window in each.windows if window.every or window.end > now]
            ends = [window.end for group in self.groups for window in group.windows if not window.every]
            self._windows_change = min(ends, default=NEVER)

    def catch_up(self, ended: Iterable[RunningJob], now: int, failed: Iterable[Outage], repaired: Iterable[Outage]) -> bool:
        """Forget the past, take out gangs and outages that have ended, enter new outages; return whether one ended early."""
        self.advance(now)
        self.freed_early, self._connected = 0, None
        for outage in failed:  # where its node was reserved, fewer than none are free until waiting jobs are placed again
            length, split = outage.expected_end - now, self.split_of((outage.node, outage.node + 1))
            self.reserve(now, length, split, beyond_capacity=True)
            self.note_start(outage.id, split, now + length)
        numbers = [gang.job.id for gang in ended]
        if repaired:  # perhaps at once
            numbers += [outage.id for outage in repaired]
        for number in numbers:
            end, _, split = self._held.pop(number)
            for part, _ in split:
                self.freed |= 1 << part
            if end > now:
                self.release(now, end - now, split)
                self.note_freed(split)
                self.freed_early |= self.nodes_of(split)
        return self.freed_early != 0

    def connected(self) -> int:
        """Return the nodes freed early, with those of groups with reservations that share some, perhaps through others."""
        if (nodes := self._connected) is None:
            nodes, before = self.freed_early, 0
            while before != nodes:
                before = nodes
                for group in self.groups:
                    if group.protected and group.allowed & nodes:
                        nodes |= group.allowed
            self._connected = nodes
        return nodes

    def gains(self, group: Group) -> bool:
        """Return whether jobs of a group can perhaps start earlier as gangs and outages have ended early."""
        return group.allowed & self.connected() != 0

    def start(self, number: int, split: Split, now: int, length: int) -> None:
        """Subtract a job that starts now."""
        self.reserve(now, length, split)
        self.note_start(number, split, now + length)

    def note_start(self, number: int, split: Split, end: int) -> None:
        """Note a job that starts in its reservation."""
        self._held[number] = end, end, split
        if self._may_overrun or number < 0:
            heappush(self._ends, (end, number))

    def overrunning(self, now: int, running: Container[int]) -> list[int]:
        """Return the jobs of ``running``, and the outages, whose assumed ends have passed, for :meth:`extend`."""
        if not self._ends or self._ends[0][0] > now:
            return []
        late: dict[int, None] = {}
        while self._ends and self._ends[0][0] <= now:
            end, number = heappop(self._ends)
            as_expected = end == now and number >= 0 and number not in running
            if not as_expected and number in self._held and self._held[number][0] == end:
                late[number] = None
        return list(late)

    def extend(self, late: Iterable[int], now: int, delay_of: Callable[[int, int], int]) -> None:
        """Subtract the ``late`` jobs for longer, each as ``delay_of`` its id and how late it is already says."""
        for number in late:
            _, expected_end, split = self._held[number]
            end = expected_end + delay_of(number, now - expected_end)
            if end > now:  # not of a job that has ended now, just as corrected
                # One that has ended now, which is still to be reported, may be on a node whose failure has been.
                self.reserve(now, end - now, split, beyond_capacity=True)
            self.note_prolongation(number, end)

    def note_prolongation(self, number: int, end: int) -> None:
        """Note another assumed end of a job whose nodes are subtracted until then already."""
        _, expected_end, split = self._held[number]
        self._held[number] = end, expected_end, split
        heappush(self._ends, (end, number))

    def next_end(self) -> int | None:
        """Return the first assumed end of the jobs that can outlive it, ``None`` if there are none."""
        while self._ends and ((number := self._ends[0][1]) not in self._held or self._held[number][0] != self._ends[0][0]):
            heappop(self._ends)
        return self._ends[0][0] if self._ends else None

    def split_held(self, number: int) -> Split:
        """Return what a running job, or an outage, holds."""
        return self._held[number][2]

    def ends(self, nodes: int) -> set[int]:
        """Return the assumed ends of the jobs, and of the outages, on some nodes, a bitmask."""
        return {end for end, _, split in self._held.values() if self.nodes_of(split) & nodes}


class RowPlan(RunningPlan):
    """A plan that can be that of a row of the Ousterhout matrix: it can be laid out anew at each scheduling event.

    Its parts are the pools.  A row may be overbooked, by gangs that are late and by reservations that keep their starts.
    """

    @abstractmethod
    def lay_out(
        self,
        now: int,
        gangs: Mapping[int, Occupant],
        ends: Mapping[int, int],
        held: Iterable[tuple[int, int]],
        reserved: Iterable[RowReservation],
    ) -> None:
        """Begin at ``now``, with gangs until their predicted ends, both by job id, and with reservations.

        Other columns are ``held`` as well: pairs of an end and a bitmask.
        """

    @abstractmethod
    def hold_only(self, now: int, held: Iterable[tuple[int, Split]]) -> None:
        """Begin at ``now`` with nothing but splits that are held until an end each, after ``now``."""

    @abstractmethod
    def split_of_gang(self, gang: Occupant, columns: int) -> Split:
        """Return what the columns of a gang, a bitmask, are of each pool."""

    @abstractmethod
    def soonest(self, job: QueuedJob, length: int, not_after: int) -> tuple[int, Split]:
        """Return the first time from which a job can have its nodes for ``length``, and how many of each pool.

        The time is -1 if it is after ``not_after``, or windows let it start at no time.
        """

    @abstractmethod
    def pull(self, start: int, length: int, split: Split, job: QueuedJob) -> tuple[int, Split]:
        """Move a reservation to its earliest possible start with the others in place, and return it.

        From ``start`` on the job may have its own nodes even where the row is overbooked.
        """

    @abstractmethod
    def least_free(self, start: int, length: int) -> list[int]:
        """Return how many nodes of each pool are free throughout ``length`` from ``start`` on; below 0 if overbooked."""

    @abstractmethod
    def admits(self, gang: Occupant, length: int, migrates: bool) -> bool:
        """Return whether a gang can have its nodes from now on for ``length``; others than its own if it ``migrates``."""

    @abstractmethod
    def bars(self, job: QueuedJob, split: Split) -> bool:
        """Return whether windows keep a job that starts now from some of its nodes."""


class PoolPlan(RowPlan):
    """Free nodes over time in each pool."""

    # The step that begins at self._times[k] is one whole number, self._free[k], of fields of so many bits: one for each pool,
    # and one for each group of jobs that may have several.  A field is the number of free nodes plus the bias, its highest bit:
    # that bit is set unless the number is below 0.  So jobs are added and subtracted in all fields at once, and comparing is
    # subtracting.

    def __init__(self, pools: Pools, *, may_overrun: bool, most_overbooked: int = 1) -> None:
        # `most_overbooked`: how many times all nodes may be subtracted at a time.
        super().__init__(pools, may_overrun=may_overrun)
        self._width = sum(pools.sizes).bit_length() + most_overbooked.bit_length() + 1
        self._bias, self._field = 1 << self._width - 1, (1 << self._width) - 1
        self._biases = sum([self._bias << pool * self._width for pool in range(len(pools))])  # of all fields
        self._units = [1 << pool * self._width for pool in range(len(pools))]  # a node of each pool, in all its fields
        self._free = [sum([(self._bias + size) << pool * self._width for pool, size in enumerate(pools.sizes)])]
        self._fields = len(pools)
        self._shifts: dict[tuple[int, ...], int] = {}  # by pools, of their common field
        self._freed_of = [0 for _ in pools.sizes]  # by pool, the last change of the clock

    def add_group(self, group: Group) -> None:
        super().add_group(group)
        pools, width = group.pools, self._width
        if len(pools) == 1:
            group.shift = pools[0] * width
        elif pools in self._shifts:
            group.shift = self._shifts[pools]
        else:
            group.shift = self._shifts[pools] = self._fields * width
            self._fields += 1
            self._biases |= self._bias << group.shift
            for pool in pools:
                self._units[pool] |= 1 << group.shift
            self._free = [free + (self._bias + sum(self._numbers(free, pools)) << group.shift) for free in self._free]
        group.guard = self._bias << group.shift

    def _numbers(self, free: int, pools: Iterable[int]) -> list[int]:
        return [(free >> pool * self._width & self._field) - self._bias for pool in pools]

    def has_room(self, step: int, job: QueuedJob, group: Group) -> bool:
        if group.parts:
            return any(self.has_room(step, job, part) for part in group.parts)
        return self._free[step] - (job.nodes << group.shift) & group.guard != 0

    def final_step(self) -> int | None:
        return self._free[-1]

    def split_of(self, columns: NodeSet, memory: int = 0) -> Split:
        return self._pools.counts(columns)

    def count_idle(self) -> None:
        free, field, bias = self._free[0], self._field, self._bias
        for group in self.groups:
            if not group.parts:
                group.idle = (free >> group.shift & field) - bias
            else:
                group.idle = max([(free >> part.shift & field) - bias for part in group.parts])

    def idle(self) -> int:
        return sum(self._numbers(self._free[0], range(len(self._pools))))

    def chooser(self, view: View) -> Chooser:
        return IdlePools(self._pools, view.idle_or_ended)

    def most(self, length: int, job: QueuedJob, group: Group) -> int:
        now, most = self._times[0], 0
        free = self.least_free(now, length)
        for part in group.parts or (group,):
            barred = self.barred(job, part, now, length) if part.windows else 0
            numbers = [max(free[pool], 0) for pool in part.pools if not self._pools.masks[pool] & barred]
            most = max(most, sum(numbers))
        return most

    def free_at(self, time: int, group: Group) -> int:
        free = self._free[bisect_right(self._times, time) - 1]
        return max([(free >> part.shift & self._field) - self._bias for part in group.parts or (group,)])

    def split(self, start: int, length: int, job: QueuedJob, group: Group) -> Split | None:
        if group.parts:
            return self.split_in_parts(start, length, job, group)
        times = self._times
        first = 0 if start == times[0] else bisect_right(times, start) - 1
        if not (self._free[first] - (job.nodes << group.shift)) & group.guard:
            return None
        return self._split(first, bisect_left(times, start + length, first + 1), start, length, job, group)

    def _split(self, first: int, beyond: int, start: int, length: int, job: QueuedJob, group: Group) -> Split | None:
        """Return from which pools a job can have its nodes in some steps."""
        nodes = job.nodes
        free, need, guard, pools = self._free, nodes << group.shift, group.guard, group.pools
        least = free[first]
        if not (least - need) & guard:
            return None
        if beyond > first + 1:
            biases, top = self._biases, self._width - 1
            for step in free[first + 1 : beyond]:
                # The highest bits of the fields that are lower in this step.
                if lower := biases & ~(step - least + biases):
                    if not (step - need) & guard:
                        return None
                    least ^= (least ^ step) & ((lower << 1) - (lower >> top))
        if group.windows and (barred := self.barred(job, group, start, length)):
            pools = tuple([pool for pool in pools if not self._pools.masks[pool] & barred])
        width, field, bias = self._width, self._field, self._bias
        parts: list[tuple[int, int]] = []
        for pool in pools:
            number = (least >> pool * width & field) - bias
            if number >= nodes:
                parts.append((pool, nodes))
                return tuple(parts)
            if number > 0:
                parts.append((pool, number))
                nodes -= number
        return None

    def earliest(self, length: int, job: QueuedJob, group: Group, not_after: int = NEVER) -> tuple[int, Split]:
        if group.parts:
            return self.earliest_in_parts(length, job, group, not_after)
        if group.windows:
            return self.around_windows(length, job, group, not_after)
        times, need, guard = self._times, job.nodes << group.shift, group.guard
        begin, steps = 0, len(times)
        for k, free in enumerate(self._free):
            if not (free - need) & guard:
                if begin < k and (place := self._first_of(begin, k, times[k], length, job, group, not_after)) is not None:
                    return place
                begin = k + 1
        return self._first_of(begin, steps, NEVER, length, job, group, not_after) or (-1, ())

    def _first_of(
        self, begin: int, beyond: int, end: int, length: int, job: QueuedJob, group: Group, not_after: int
    ) -> tuple[int, Split] | None:
        """Return where a job can start first in some steps until ``end``, in all of which its group has enough nodes."""
        times = self._times
        for k in range(begin, beyond):
            start = times[k]
            if start > not_after:
                return -1, ()
            if start + length > end:
                return None
            split = self._split(k, bisect_left(times, start + length, k + 1), start, length, job, group)
            if split is not None:
                return start, split
        return None

    def may_improve(self, start: int, length: int, split: Split, job: QueuedJob, group: Group) -> bool:
        if group.parts:
            return True  # at the same start in a part that is tried before, perhaps
        times, free, last = self._times, self._free, split[-1][0]
        if last != group.pools[0]:
            first = bisect_right(times, start) - 1
            step, width, field, bias = free[first], self._width, self._field, self._bias
            for pool in group.pools:
                if pool == last:
                    break
                if step >> pool * width & field > bias:
                    beyond = bisect_left(times, start + length, first + 1)
                    if min([each >> pool * width & field for each in free[first:beyond]]) > bias:
                        return True
        # It could start in a gap between steps with too few nodes, or in one that its own nodes end.
        first, need, guard = bisect_left(times, start), job.nodes << group.shift, group.guard
        begin = 0
        for k, step in enumerate(free[:first]):
            if not (step - need) & guard:
                if k > begin and times[begin] + length <= times[k]:
                    return True
                begin = k + 1
        return begin < first

    def note_freed(self, split: Split) -> None:
        self.clock += 1
        for pool, _ in split:
            self._freed_of[pool] = self.clock
            self.freed |= 1 << pool

    def freed_since(self, clock: int, group: Group) -> bool:
        freed = self._freed_of
        for pool in group.pools:  # noqa: SIM110  a generator takes thrice the time
            if freed[pool] > clock:
                return True
        return False

    def reserve(self, start: int, length: int, split: Split, *, beyond_capacity: bool = False) -> None:
        self._add(start, start + length, -self._change(split), 0 if beyond_capacity else self._biases)

    def release(self, start: int, length: int, split: Split) -> None:
        self._add(start, start + length, self._change(split), 0)

    def lay_out(
        self,
        now: int,
        gangs: Mapping[int, Occupant],
        ends: Mapping[int, int],
        held: Iterable[tuple[int, int]],
        reserved: Iterable[RowReservation],
    ) -> None:
        split = self._pools.split
        taken = [(ends[number], self._change(split(gang.columns))) for number, gang in gangs.items()]
        taken += [(end, self._change(split(columns))) for end, columns in held]
        changes: list[tuple[int, int]] = []
        for start, length, parts, _ in reserved:
            change = self._change(parts)
            changes += ((start, -change), (start + length, change))
        self._begin(now, taken, changes)

    def hold_only(self, now: int, held: Iterable[tuple[int, Split]]) -> None:
        self._begin(now, [(end, self._change(split)) for end, split in held], ())

    def _begin(self, now: int, taken: list[tuple[int, int]], reserved: Iterable[tuple[int, int]]) -> None:
        """Begin at ``now``, with what is ``taken`` until its end; both are changes of what is free."""
        self.forget_windows(now)
        free = self._biases + sum([size * unit for size, unit in zip(self._pools.sizes, self._units, strict=True)])
        free -= sum([change for _, change in taken])
        changes = sorted([*taken, *reserved])
        steps = {now: free}
        for time, change in changes:
            free += change
            steps[time] = free
        self._times, self._free = list(steps), list(steps.values())

    def split_of_gang(self, gang: Occupant, columns: int) -> Split:
        return self._pools.split(columns)

    def soonest(self, job: QueuedJob, length: int, not_after: int) -> tuple[int, Split]:
        best: tuple[int, Split] = -1, ()
        group = self.group_of(job)
        for part in group.parts or (group,):
            start, split = self._soonest_in(length, job, part, not_after)
            if start >= 0:
                best, not_after = (start, split), start - 1
        return best

    def _soonest_in(self, length: int, job: QueuedJob, group: Group, not_after: int) -> tuple[int, Split]:
        # Not as `earliest`: where a pool is overbooked, what a group can have is more than the sum over its pools.
        for start in self._starts(length, group):
            if start > not_after:
                break
            if (split := self._split_among(self.least_free(start, length), start, length, job, group)) is not None:
                return start, split
        return -1, ()

    def _starts(self, length: int, group: Group) -> Iterable[int]:
        """Return when more nodes become free, and when windows end for a job of some length."""
        windows = self._pools.windows
        if windows is None or not group.windows:
            return self._times
        return candidates(self._times, group.windows, windows.settled, length)

    def _split_among(self, free: list[int], start: int, length: int, job: QueuedJob, group: Group) -> Split | None:
        """Return what a job can have where so many nodes of each pool are free, but for windows."""
        barred = self.barred(job, group, start, length) if group.windows else 0
        return split_of(free, job.nodes, ([pool for pool in group.pools if not self._pools.masks[pool] & barred],))

    def pull(self, start: int, length: int, split: Split, job: QueuedJob) -> tuple[int, Split]:
        group, own = self.group_of(job), {pool for pool, _ in split}
        self.release(start, length, split)
        for part in group.parts or (group,):
            if own.issubset(part.pools):
                earlier, parts = self._earlier(start, length, split, job, part)
            else:
                earlier, parts = self._soonest_in(length, job, part, start - 1)
            if 0 <= earlier < start:
                start, split = earlier, parts
        self.reserve(start, length, split, beyond_capacity=True)
        return start, split

    def _earlier(self, start: int, length: int, own: Split, job: QueuedJob, group: Group) -> tuple[int, Split]:
        """Return the first time at which a job could start whose reservation has been released; this one if none is earlier."""
        kept = dict(own)
        for time in self._starts(length, group):
            if time >= start:
                break
            free = self.least_free(time, min(length, start - time))
            if (after := time + length - start) > 0:
                later = self.least_free(start, after)
                free = [min(least, max(later[pool], kept.get(pool, 0))) for pool, least in enumerate(free)]
            if (split := self._split_among(free, time, length, job, group)) is not None:
                return time, split
        return start, own

    def least_free(self, start: int, length: int) -> list[int]:
        times, width, field, bias = self._times, self._width, self._field, self._bias
        first = 0 if start == times[0] else bisect_right(times, start) - 1
        steps = self._free[first : bisect_left(times, start + length, first + 1)]
        shifts = range(0, width * len(self._pools), width)
        return [min([step >> shift & field for step in steps]) - bias for shift in shifts]

    def admits(self, gang: Occupant, length: int, migrates: bool) -> bool:
        allowed, pools = self.least_free(self._times[0], length), self._pools
        if not migrates:
            return all(nodes <= allowed[pool] for pool, nodes in pools.split(gang.columns))
        sets = [pools.numbers(mask) for mask in pools.sets_around(gang.job, gang.columns)]
        most = [[min(own, max(free, 0)) for own, free in zip(numbers, allowed, strict=True)] for numbers in sets]
        return any(sum(each) >= gang.nodes for each in most)

    def bars(self, job: QueuedJob, split: Split) -> bool:
        eligible = self._pools.of(job.eligible)
        return any(pool not in eligible for pool, _ in split)

    def forget(self, steps: int) -> None:
        del self._free[:steps]

    def has(self, start: int, length: int, split: Split) -> bool:
        first, biases, change = bisect_right(self._times, start) - 1, self._biases, self._change(split)
        steps = self._free[first : bisect_left(self._times, start + length, first + 1)]
        return not [free for free in steps if (free - change) & biases != biases]

    def nodes_of(self, split: Split) -> int:
        mask = 0
        for pool, _ in split:
            mask |= self._pools.masks[pool]
        return mask

    def steps(self) -> Steps:
        return self._times[:], self._free[:]

    def take_steps(self, steps: Steps) -> None:
        times, free = steps
        self._times, self._free = times[:], free[:]

    def _change(self, split: Split) -> int:
        units = self._units
        if len(split) == 1:
            pool, nodes = split[0]
            return nodes * units[pool]
        return sum([nodes * units[pool] for pool, nodes in split])

    def _add(self, start: int, end: int, change: int, guards: int) -> None:
        times, free = self._times, self._free
        first = 0
        if start != times[0]:
            first = bisect_left(times, start)
            if first == len(times) or times[first] != start:
                times.insert(first, start)
                free.insert(first, free[first - 1])
        beyond = bisect_left(times, end, first)
        if beyond == len(times) or times[beyond] != end:
            times.insert(beyond, end)
            free.insert(beyond, free[beyond - 1])
        k = first
        while k < beyond:  # faster than range() for so few steps
            free[k] = left = free[k] + change
            if left & guards != guards:
                raise DecisionError(f"plan: nodes reserved at {times[k]} are not free")
            k += 1
        # Steps that do not differ from those before them are none.
        if free[beyond] == free[beyond - 1]:
            del times[beyond], free[beyond]
        if first and free[first] == free[first - 1]:
            del times[first], free[first]
