"""The availability profile (how many nodes are free from now on, as far as the scheduler can tell) and reservations in it.

It is a step function of time in two parallel lists, so that "when can this job start?" is one walk along it (Talby &
Feitelson 1999, long version, section 3.2).  Backfilling on the whole machine has one profile (:class:`Plan`), gang scheduling
one for each row of the Ousterhout matrix (:mod:`clustermodel.plans.rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from clustermodel.errors import DecisionError
from clustermodel.machine.node_set import bisect_left, bisect_right
from clustermodel.ticks import NEVER, TICKS_PER_SECOND

if TYPE_CHECKING:
    from mypy_extensions import i64  # an index is an integer of the machine, where this is compiled

    from clustermodel.policies.view import Outage, QueuedJob, RunningJob

SHORTEST_EXTENSION: Final = TICKS_PER_SECOND  # how long a job that outlives its estimate is assumed to run on, at least


Shape = tuple[int, int]  # a number of nodes and the expected run time on them, ticks
Request = tuple[int, int, int]  # nodes, for so many ticks, to start not after this time
Shapes = Sequence[Shape]  # the shapes that a moldable job can have, the preferred one first; a rigid job has one


class Profile:
    """Free nodes over time, from the present to infinity, at first all of the machine; times and durations in ticks."""

    __slots__ = ("_free", "_times", "nodes")

    def __init__(self, nodes: int, times: list[int] | None = None, free: list[int] | None = None) -> None:
        self.nodes = nodes
        # Nodes self._free[k] are free from self._times[k] until self._times[k + 1]; the last step never ends.
        self._times = times or [0]
        self._free = free or [nodes]

    def copy(self) -> Profile:
        return Profile(self.nodes, self._times.copy(), self._free.copy())

    def take_steps_of(self, other: Profile) -> None:
        """Take over the steps of a trial copy, which must not be used afterwards."""
        self._times, self._free = other._times, other._free

    def times(self) -> list[int]:
        """Return when the steps begin, ascending; not to be changed."""
        return self._times

    def free(self) -> list[int]:
        """Return how many nodes are free in each step; not to be changed."""
        return self._free

    def steps(self) -> list[tuple[int, int]]:
        return list(zip(self._times, self._free, strict=True))

    @classmethod
    def of_running(
        cls, nodes: int, now: int, ends: Iterable[tuple[int, int]], reserved: Iterable[tuple[int, int]] = ()
    ) -> Self:
        """Return the profile of a machine with running jobs, (expected end, nodes) each; all ends are after ``now``.

        Reservations, even of more nodes than are free, are pairs of the same kind: (start, minus nodes) and (end, nodes).
        """
        profile = cls(nodes)
        changes = list(ends)
        available = nodes - sum([size for _, size in changes])
        changes += reserved
        changes.sort()
        steps = {now: available}
        for time, change in changes:
            available += change
            steps[time] = available
        profile._times, profile._free = list(steps), list(steps.values())
        return profile

    def advance(self, now: int) -> None:
        """Drop the steps before ``now``."""
        times = self._times
        if len(times) > 1 and times[1] <= now:
            past = bisect_right(times, now) - 1
            del times[:past]
            del self._free[:past]
        times[0] = now

    def free_at(self, time: int) -> int:
        return self._free[bisect_right(self._times, time) - 1]

    def fits(self, nodes: int, duration: int) -> bool:
        """Return whether ``nodes`` are free from the beginning of the profile for ``duration``."""
        end = self._times[0] + duration
        for time, available in zip(self._times, self._free, strict=True):
            if time >= end:
                return True
            if available < nodes:
                return False
        return True

    def fits_at(self, start: int, nodes: int, duration: int) -> bool:
        """Return whether ``nodes`` are free from ``start`` on for ``duration``."""
        times, free, end = self._times, self._free, start + duration
        for k in range(bisect_right(times, start) - 1, len(times)):
            if times[k] >= end:
                return True
            if free[k] < nodes:
                return False
        return True

    def earliest(self, nodes: int, duration: int, not_after: int = NEVER) -> int:
        """Return the first time from which ``nodes`` are free for ``duration``; -1 if it is after ``not_after``."""
        times = self._times
        start = -1
        for k, available in enumerate(self._free):
            if available < nodes:
                if start >= 0 and times[k] - start >= duration:
                    return start
                start = -1
            elif start < 0:
                start = times[k]
                if start > not_after:
                    return -1
        return start

    def earlier(self, nodes: int, duration: int, reserved: int, not_before: int) -> int:
        """Return the first time in [``not_before``, ``reserved``] at which a job that holds a reservation could start."""
        times, free = self._times, self._free
        beyond = bisect_left(times, reserved)
        k: i64 = bisect_right(times, not_before) - 1 if not_before > times[0] else 0
        while True:
            while k < beyond and free[k] < nodes:
                k += 1
            if k >= beyond:
                return reserved
            # A window begins at k.  Examined from its end, it shows the last step with too few nodes first.
            start = times[k] if times[k] > not_before else not_before
            last = min(bisect_left(times, start + duration, k), beyond) - 1
            while last > k and free[last] >= nodes:
                last -= 1
            if last <= k:
                return start
            k = last + 1

    def free_until(self, nodes: int) -> int | None:
        """Return the first time at which fewer than ``nodes`` are free, ``None`` if they always are."""
        times, free = self._times, self._free
        return next((times[k] for k, available in enumerate(free) if available < nodes), None)

    def least_free(self, duration: int) -> int:
        """Return how many nodes are free throughout ``duration`` from the beginning of the profile."""
        return min(self._free[: bisect_left(self._times, self._times[0] + duration, 1)])

    def least_free_from(self, start: int, duration: int) -> int:
        """Return how many nodes are free throughout ``duration`` from ``start`` on."""
        first = bisect_right(self._times, start) - 1
        return min(self._free[first : bisect_left(self._times, start + duration, first + 1)])

    def reserve(self, start: int, end: int, nodes: int) -> None:
        """Subtract ``nodes`` during [``start``, ``end``), which is not empty.

        Raises:
            DecisionError: there are not as many free.
            ValueError: ``start`` lies in the past.
        """
        times, free = self._times, self._free
        first: i64 = 0 if start == times[0] else _boundary(times, free, start)
        beyond = bisect_left(times, end, first)
        for k in range(first, beyond):
            if free[k] < nodes:
                raise DecisionError(f"profile: {nodes} nodes reserved at {times[k]} where only {free[k]} are free")
        _change(times, free, first, beyond, end, -nodes)

    def book(self, nodes: int, duration: int, not_after: int = NEVER, not_before: int = 0) -> int:
        """:meth:`earliest`, from ``not_before`` on, and :meth:`~Profile.reserve` in one walk."""
        if self._times[0] < not_before <= not_after and self.fits_at(not_before, nodes, duration):
            self.reserve(not_before, not_before + duration, nodes)
            return not_before
        starts = self.book_all(((nodes, duration, not_after),), not_before + duration - 1)
        return starts[0] if starts else -1

    def book_all(self, requests: Iterable[Request], since: int = 0) -> list[int]:
        """:meth:`book` one request after the other, until one would start too late; return the starts.

        No job can start so early that it ends by ``since``.
        """
        times, free = self._times, self._free
        starts: list[int] = []
        first: i64 = 0
        least, shortest = self.nodes, NEVER
        for nodes, duration, not_after in requests:
            # A job that needs as many nodes for as long as the one before cannot start earlier than that.
            if nodes < least or duration < shortest:
                not_before = since - duration
                first = 0 if not_before < times[0] else bisect_right(times, not_before)
            least, shortest = nodes, duration
            while True:
                while free[first] < nodes:
                    first += 1
                begin = times[first]
                if begin > not_after:
                    return starts
                # A window begins here.  Examined from its end, it shows the last step with too few nodes first.
                end = begin + duration
                beyond = bisect_left(times, end, first + 1)
                last = beyond - 1
                while last > first and free[last] >= nodes:
                    last -= 1
                if last == first:
                    break
                first = last + 1
            _change(times, free, first, beyond, end, -nodes)
            starts.append(begin)
        return starts

    def pull(self, start: int, duration: int, nodes: int) -> int:
        """Move a reservation to its earliest start possible with the others in place, and return that: :meth:`earlier`."""
        times, free = self._times, self._free
        beyond = bisect_left(times, start)
        begins = beyond
        if beyond and free[beyond - 1] < nodes:  # then a window must end before this step, which often begins soon
            latest = times[beyond - 1] - duration
            if latest < times[0]:
                return start
            begins = bisect_right(times, latest)
        k: i64 = 0
        while True:
            while k < begins and free[k] < nodes:
                k += 1
            if k >= begins:
                return start
            # A window begins at k.  Examined from its end, it shows the last step with too few nodes first.
            end = times[k] + duration
            last = beyond if end >= start else bisect_left(times, end, k)
            before = last - 1
            while before > k and free[before] >= nodes:
                before -= 1
            if before <= k:
                break
            k = before + 1
        new = times[k]
        _change(times, free, k, last, end if end < start else start, -nodes)  # only the difference changes: the two may overlap
        _add(times, free, end if end > start else start, start + duration, nodes)
        return new

    def overbook(self, start: int, end: int, nodes: int) -> None:
        """Subtract ``nodes`` during [``start``, ``end``), which is not empty, even more than are free."""
        _add(self._times, self._free, start, end, -nodes)

    def release(self, start: int, end: int, nodes: int) -> None:
        """Add ``nodes`` during [``start``, ``end``), which is not empty."""
        _add(self._times, self._free, start, end, nodes)

    def move_up(self, start: int, new_start: int, duration: int, nodes: int) -> None:
        """Move a reservation to an earlier start; errors as of :meth:`~Profile.reserve`."""
        new_end, end = new_start + duration, start + duration  # only the difference changes: the two may overlap
        if new_end < start:
            self.reserve(new_start, new_end, nodes)
            _add(self._times, self._free, start, end, nodes)
        else:
            self.reserve(new_start, start, nodes)
            _add(self._times, self._free, new_end, end, nodes)


def _add(times: list[int], free: list[int], start: int, end: int, nodes: int) -> None:
    """Add nodes to the steps of a profile during [``start``, ``end``)."""
    first: i64 = 0 if start == times[0] else _boundary(times, free, start)
    _change(times, free, first, bisect_left(times, end, first), end, nodes)


def _boundary(times: list[int], free: list[int], start: int) -> i64:
    """Let a step of a profile begin at ``start``, and return which."""
    first = bisect_left(times, start)
    if first == len(times) or times[first] != start:
        if not first:
            raise ValueError(f"profile: {start} lies in the past; it begins at {times[0]}")
        times.insert(first, start)
        free.insert(first, free[first - 1])
    return first


def _change(times: list[int], free: list[int], first: i64, beyond: i64, end: int, nodes: int) -> None:
    """Add nodes in steps ``first`` to ``beyond`` of a profile, the first one not before ``end``."""
    if is_new := beyond == len(times) or times[beyond] != end:
        times.insert(beyond, end)
        free.insert(beyond, free[beyond - 1])
    k = first
    while k < beyond:  # faster than range() for so few steps
        free[k] = free[k] + nodes  # compiled, this needs no objects
        k += 1
    # Steps at both ends go where they are none any more; a new one is one.
    if not is_new and free[beyond] == free[beyond - 1]:
        times.pop(beyond)  # compiled, faster than del
        free.pop(beyond)
    if first and free[first] == free[first - 1]:
        times.pop(first)
        free.pop(first)


class ReleasingProfile(Profile):
    """A profile that notes what has been released, so that it can tell who may start earlier."""

    __slots__ = ("_released", "_released_until")

    def __init__(self, nodes: int) -> None:
        super().__init__(nodes)
        self._released, self._released_until = 0, 0  # nodes since the last `forget_releases`, and until when at the latest

    def release(self, start: int, end: int, nodes: int) -> None:
        """Add ``nodes`` during [``start``, ``end``), which is not empty."""
        _add(self._times, self._free, start, end, nodes)
        self.note_release(end, nodes)

    def note_release(self, end: int, nodes: int) -> None:
        """Note nodes that have been released until ``end``, for :meth:`gaining_sizes`."""
        self._released += nodes
        if end > self._released_until:  # noqa: PLR1730  faster than max()
            self._released_until = end

    def forget_releases(self) -> None:
        self._released = self._released_until = 0

    def gaining_sizes(self) -> tuple[int, int]:
        """Return the least and the largest size for which the releases noted can have opened a window: there are no others."""
        # At some time before the last release ends there must be enough nodes now, and must have been too few before.
        free = self._free[: bisect_left(self._times, self._released_until)]
        return (min(free) - self._released + 1, max(free)) if free else (1, 0)


class RunningProfile(ReleasingProfile):
    """A profile from which each running job, and each node that is down, is subtracted until its expected end."""

    # Where `may_overrun`, jobs can outlive their expected ends; the policy then says when else they may end (`extend`).

    __slots__ = ("_assumed_end", "_ends", "_may_overrun")

    def __init__(self, nodes: int, *, may_overrun: bool) -> None:
        super().__init__(nodes)
        self._may_overrun = may_overrun
        self._assumed_end: dict[int, tuple[int, int, int]] = {}  # job id -> assumed end, expected end, nodes
        self._ends: list[tuple[int, int]] = []  # heap of (assumed end, job id); an entry without a job is stale

    def catch_up(
        self, ended: Iterable[RunningJob], now: int, failed: Iterable[Outage] = (), repaired: Iterable[Outage] = ()
    ) -> bool:
        """Forget the past, take out gangs and outages that have ended, enter new outages; return whether one ended early."""
        self.advance(now)
        early = False
        for gang in ended:
            early |= self.end(gang.job.id, gang.nodes, now, gang.expected_end)
        for outage in failed:  # where its node was reserved, fewer than none are free until waiting jobs are placed again
            end = outage.expected_end
            self.overbook(now, end, outage.nodes)
            self._assumed_end[outage.id] = (end, end, outage.nodes)
            heappush(self._ends, (end, outage.id))
        for outage in repaired:
            end = self._assumed_end.pop(outage.id)[0]
            if end > now:
                self.release(now, end, outage.nodes)
                early = True
        return early

    def start(self, job_id: int, nodes: int, now: int, expected_end: int) -> None:
        """Subtract a job that starts now; errors as of :meth:`~Profile.reserve`."""
        self.reserve(now, expected_end, nodes)
        self.note_start(job_id, nodes, expected_end)

    def note_start(self, job_id: int, nodes: int, expected_end: int) -> None:
        """Note a job that starts in its reservation; its nodes are subtracted until its expected end already."""
        if self._may_overrun:
            self._assumed_end[job_id] = (expected_end, expected_end, nodes)
            heappush(self._ends, (expected_end, job_id))

    def end(self, job_id: int, nodes: int, now: int, expected_end: int) -> bool:
        """Release the unused part of a completed job's time on its nodes; return whether any time was left."""
        if self._may_overrun:
            expected_end = self._assumed_end.pop(job_id)[0]
        if expected_end <= now:
            return False
        self.release(now, expected_end, nodes)
        return True

    def overrunning(self, now: int, running: Container[int]) -> list[int]:
        """Return the jobs of ``running``, and the outages, whose assumed ends have passed, for :meth:`extend`."""
        late: list[int] = []
        while self._ends and self._ends[0][0] <= now:
            end, job_id = heappop(self._ends)
            if end == now and job_id >= 0 and job_id not in running:
                continue  # as expected
            if job_id in self._assumed_end and self._assumed_end[job_id][0] == end and job_id not in late:
                late.append(job_id)  # once, if it was started again with the same end as before
        return late

    def extend(self, late: list[int], now: int, delay_of: Callable[[int, int], int]) -> None:
        """Subtract the ``late`` jobs for longer, each as ``delay_of`` its id and how late it is already says."""
        for job_id in late:
            _, expected_end, nodes = self._assumed_end[job_id]
            end = expected_end + delay_of(job_id, now - expected_end)
            if end > now:  # not of a job that has ended now, just as corrected
                # One that has ended now, which is still to be reported, may be on a node whose failure has been.
                self.overbook(now, end, nodes)
            self.note_prolongation(job_id, end)

    def note_prolongation(self, job_id: int, end: int) -> None:
        """Note another assumed end of a job whose nodes are subtracted until then already."""
        _, expected_end, nodes = self._assumed_end[job_id]
        self._assumed_end[job_id] = (end, expected_end, nodes)
        heappush(self._ends, (end, job_id))

    def next_end(self) -> int | None:
        """Return the first assumed end of the jobs that can outlive it, ``None`` if there are none."""
        while self._ends and self._assumed_end.get(self._ends[0][1], (None,))[0] != self._ends[0][0]:
            heappop(self._ends)
        return self._ends[0][0] if self._ends else None


class Reservation(NamedTuple):
    """Nodes reserved for a waiting job; times in ticks."""

    start: int
    length: int
    nodes: int
    row: int = 0  # the row of the Ousterhout matrix, where jobs share nodes in time

    @property
    def end(self) -> int:
        return self.start + self.length


_reservation: Final[Callable[[tuple[int, int, int, int]], Reservation]] = partial(tuple.__new__, Reservation)
"""Makes a reservation of start, length, nodes and row in a third of the time."""


class ReservationBook:
    """Reservations, of each waiting job at most one, in one of several profiles, from which its nodes are subtracted."""

    __slots__ = ("profiles", "reserved")

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self.profiles = list(profiles)
        self.reserved: dict[int, Reservation] = {}  # waiting job's id -> its reservation

    def keep(self, job: QueuedJob, reservation: Reservation) -> None:
        """Enter a reservation for ``job``; a DecisionError if too few nodes are free then."""
        self.profiles[reservation.row].reserve(reservation.start, reservation.end, reservation.nodes)
        self._enter(job.id, reservation)

    def drop(self, job: QueuedJob) -> None:
        reservation = self.reserved.pop(job.id)
        profile = self.profiles[reservation.row]
        if (start := max(reservation.start, profile.times()[0])) < reservation.end:
            profile.release(start, reservation.end, reservation.nodes)

    def move(self, job: QueuedJob, new: Reservation) -> None:
        """Move the reservation of ``job`` to an earlier start or to another row; nodes and length stay."""
        start, length, nodes, row = self.reserved[job.id]
        new_start, _, _, new_row = new
        if new_row == row:
            self.profiles[row].move_up(start, new_start, length, nodes)
        else:
            self.profiles[row].release(start, start + length, nodes)
            self.profiles[new_row].reserve(new_start, new_start + length, nodes)
        self._enter(job.id, new)

    def _enter(self, job_id: int, reservation: Reservation) -> None:
        self.reserved[job_id] = reservation


def earliest_completion(shapes: Shapes, profiles: Sequence[Profile], rows: Iterable[int] = (0,)) -> Reservation:
    """Return where a job of one of these shapes completes first: of equally good places the first row, then the first shape."""
    best: Reservation | None = None
    for row in rows:
        earliest = profiles[row].earliest
        for nodes, length in shapes:
            if best is None:
                best = Reservation(earliest(nodes, length), length, nodes, row)
            elif (start := earliest(nodes, length, best.end - length - 1)) >= 0:
                best = Reservation(start, length, nodes, row)
    assert best is not None, "there is a shape and a row"
    return best


class Plan(ReservationBook):
    """Reservations among the running jobs of a machine: EASY keeps few, conservative backfilling one for each waiting job."""

    # Each reservation was at its earliest possible start when it was placed or last tested, unless `_is_tested` is false.  So
    # only what has been released since can open a window for its job.

    __slots__ = ("_alarm", "_first", "_is_tested", "_starts", "profile")

    def __init__(self, profile: RunningProfile) -> None:
        super().__init__([profile])
        self.profile = profile
        self._alarm: int | None = None
        self._first: int | None = None  # the earliest reserved start, where it is known
        self._starts: dict[int, int] = {}  # the start of each reservation, by job id: numbers are compared faster
        self._is_tested = True

    def earliest(self, shapes: Shapes) -> Reservation:
        """Return where a job of one of these shapes completes first; of equally good places that of the first shape."""
        return earliest_completion(shapes, self.profiles)

    def start_reserved(self, job: QueuedJob) -> Reservation:
        """Start ``job`` in its reservation, which has begun, and return the reservation."""
        start, length, nodes, _ = reservation = self.take(job.id)
        self.profile.note_start(job.id, nodes, start + length)
        return reservation

    def place(self, job: QueuedJob, shapes: Shapes) -> Reservation:
        """Enter a reservation for ``job`` where it completes first in one of these shapes, and return it."""
        if not self.reserved:
            self.profile.forget_releases()
            self._is_tested = True
        if len(shapes) == 1:
            ((nodes, length),) = shapes
            (start,) = self.profile.book_all(((nodes, length, NEVER),))
            reservation = _reservation((start, length, nodes, 0))
        else:
            start, length, nodes, _ = reservation = self.earliest(shapes)
            self.profile.reserve(start, start + length, nodes)
        self._note(job.id, reservation)
        return reservation

    def compress(self, jobs: Collection[QueuedJob]) -> None:
        """Move each reservation, in the order of ``jobs``, to the earliest start possible with the others in place."""
        # The result is that of taking each job out and placing it again (Talby & Feitelson 1999, long version, section 3.2).
        # But a job is tested where it stands, and until the first one moves, only jobs for which a window can have opened are.
        # A move can open windows for jobs that have been tested before, if it releases nodes before their starts.
        reserved, starts, profile = self.reserved, self._starts, self.profile
        first = self.next_start()
        if first is None:
            return
        least, largest = profile.gaining_sizes() if self._is_tested else (0, profile.nodes)
        profile.forget_releases()
        others, latest = 0, 0  # how many jobs without a reservation there are, and the latest start tested so far
        for job in jobs:
            if (reservation := reserved.get(job.id)) is None:
                others += 1
                continue
            start, length, nodes, _ = reservation
            if least <= nodes <= largest and (new := profile.pull(start, length, nodes)) < start:
                reserved[job.id], starts[job.id] = _reservation((new, length, nodes, 0)), new
                first = min(first, new)
                if latest > start and latest > new + length:
                    profile.note_release(start + length, nodes)
                least, largest, start = 0, profile.nodes, new
            if start > latest:  # noqa: PLR1730  max() would take a tenth of the time of all this
                latest = start
        self._first, self._is_tested = first, len(jobs) - others == len(reserved)

    def reshape(self, jobs: Iterable[QueuedJob], shapes: Mapping[int, Shapes]) -> None:
        """Compress moldable jobs: take out each, in this order, and enter it where one of its shapes completes first."""
        profile = self.profile
        for job in jobs:
            best = reservation = self.reserved[job.id]
            profile.release(reservation.start, reservation.end, reservation.nodes)
            for nodes, length in shapes[job.id]:
                start = profile.earliest(nodes, length, min(reservation.start, best.end - length))
                if start >= 0 and (start + length, start) < (best.end, best.start):
                    best = Reservation(start, length, nodes)
            self.keep(job, best)

    def next_start(self) -> int | None:
        """Return the earliest reserved start, ``None`` without reservations."""
        if self._first is None and self._starts:
            self._first = min(self._starts.values())
        return self._first

    def new_alarm(self) -> int | None:
        """Return the earliest reserved start if it is not the one returned last, for the policy's alarm."""
        start = self.next_start()
        if start is None or start == self._alarm:
            return None
        self._alarm = start
        return start

    def due(self, now: int) -> list[int]:
        """Return the jobs whose reserved start has come: the earliest start first, then the lowest id."""
        if (first := self.next_start()) is None or first > now:
            return []
        due = sorted([(start, job_id) for job_id, start in self._starts.items() if start <= now])
        return [job_id for _, job_id in due]

    def take(self, job_id: int) -> Reservation:
        """Take out a reservation, and leave its nodes subtracted from the profile."""
        self._first = None
        del self._starts[job_id]
        return self.reserved.pop(job_id)

    def drop(self, job: QueuedJob) -> None:
        super().drop(job)
        self._first = None
        del self._starts[job.id]

    def _enter(self, job_id: int, reservation: Reservation) -> None:
        self._note(job_id, reservation)
        self._is_tested = False

    def _note(self, job_id: int, reservation: Reservation) -> None:
        self.reserved[job_id] = reservation
        self._starts[job_id] = start = reservation.start
        if self._first is not None and start < self._first:
            self._first = start
