"""What is free over time on a machine whose nodes are all alike: a number of nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from clustermodel.machine.node_set import NodeSet, bisect_left, bisect_right, count
from clustermodel.plans.pool_plans import Chooser, Group, IdleNodes, Reservation, RowPlan, Steps, reservation_of
from clustermodel.plans.pools import Pools, Split
from clustermodel.plans.profile import Profile, ReleasingProfile, Request
from clustermodel.plans.trials import Trial, Trials
from clustermodel.ticks import NEVER

if TYPE_CHECKING:
    from clustermodel.plans.ousterhout import Occupant
    from clustermodel.plans.rows import RowReservation
    from clustermodel.plans.slack_prices import ArrivingJob, Moves, Schedule, SlackReservation
    from clustermodel.policies.view import QueuedJob, View


class OnePool(RowPlan):
    """Free nodes over time where any job may have any nodes, in whatever way they lie, and no windows bar it from some."""

    are_alike: ClassVar[bool] = True

    def __init__(self, pools: Pools, *, may_overrun: bool) -> None:
        super().__init__(pools, may_overrun=may_overrun)
        self.profile = ReleasingProfile(sum(pools.sizes))
        # Whether each waiting job was at its earliest possible start, but for what has been released since then.
        self._is_tested = True
        self._times, self._free = self.profile.times(), self.profile.free()

    def group_of(self, job: QueuedJob) -> Group:
        if not self.groups:
            self.groups.append(Group(None, 1, (0,), []))  # one bit stands for all nodes: the machine may be very wide
        return self.groups[0]

    def split_of(self, columns: NodeSet, memory: int = 0) -> Split:
        return ((0, count(columns)),)

    def count_idle(self) -> None:
        free = self._free[0]
        for group in self.groups:
            group.idle = free

    def idle(self) -> int:
        return self._free[0]

    def most(self, length: int, job: QueuedJob, group: Group) -> int:
        return self.profile.least_free(length)

    def chooser(self, view: View) -> Chooser:
        return IdleNodes(self._free[0])

    def free_at(self, time: int, group: Group) -> int:
        return self.profile.free_at(time)

    def split(self, start: int, length: int, job: QueuedJob, group: Group) -> Split | None:
        return ((0, job.nodes),) if self.profile.fits_at(start, job.nodes, length) else None

    def earliest(self, length: int, job: QueuedJob, group: Group, not_after: int = NEVER) -> tuple[int, Split]:
        start = self.profile.earliest(job.nodes, length, not_after)
        return (start, ((0, job.nodes),)) if start >= 0 else (-1, ())

    def around_windows(
        self, length: int, job: QueuedJob, group: Group, not_after: int = NEVER, not_before: int = 0
    ) -> tuple[int, Split]:
        profile, nodes = self.profile, job.nodes
        start = profile.earlier(nodes, length, not_after, not_before)
        if start == not_after and not profile.fits_at(start, nodes, length):
            return -1, ()
        return max(start, self._times[0]), ((0, nodes),)

    def reserve(self, start: int, length: int, split: Split, *, beyond_capacity: bool = False) -> None:
        if beyond_capacity:
            self.profile.overbook(start, start + length, split[0][1])
        else:
            self.profile.reserve(start, start + length, split[0][1])

    def release(self, start: int, length: int, split: Split) -> None:
        self.profile.release(start, start + length, split[0][1])

    def advance(self, now: int) -> None:
        self.profile.advance(now)

    def forget(self, steps: int) -> None:
        raise AssertionError("the profile forgets them itself")

    def has(self, start: int, length: int, split: Split) -> bool:
        return self.profile.fits_at(start, split[0][1], length)

    def nodes_of(self, split: Split) -> int:
        return 1 if split else 0  # as in the group

    def steps(self) -> Steps:
        return self._times[:], self._free[:]

    def take_steps(self, steps: Steps) -> None:
        times, free = steps
        self.profile.take_steps_of(Profile(self.profile.nodes, times[:], free[:]))
        self._times, self._free = self.profile.times(), self.profile.free()

    # Reservations.

    def place(self, job: QueuedJob, length: int, group: Group) -> int:
        if not self.reserved:
            self.settle()
        nodes = job.nodes
        start = self.profile.book_all(((nodes, length, NEVER),))[0]
        self.note_reservation(job.id, reservation_of((start, length, nodes, ((0, nodes),), group, 0)))
        return start

    def keep(self, job_id: int, reservation: Reservation) -> None:
        super().keep(job_id, reservation)
        self._is_tested = False

    def move(self, job_id: int, start: int, split: Split) -> None:
        super().move(job_id, start, split)
        self._is_tested = False

    def compress(self, jobs: Collection[QueuedJob], *, windows_change: bool = False) -> list[QueuedJob]:
        # The result is that of taking each job out and placing it again (Talby & Feitelson 1999, long version, section 3.2).
        # But a job is tested where it stands, and until the first one moves, only jobs for which a window can have opened are.
        # A move can open windows for jobs that have been tested before, if it releases nodes before their starts.
        reserved, starts, profile = self.reserved, self._reserved_starts, self.profile
        first = self.next_start()
        moved: list[QueuedJob] = []
        least, largest = self.movable_sizes() if len(reserved) > 1 else (0, profile.nodes)
        profile.forget_releases()
        others, latest = 0, 0  # how many jobs without a reservation there are, and the latest start tested so far
        for job in jobs:
            if (reservation := reserved.get(job.id)) is None:
                others += 1
                continue
            start, length, nodes, split, group, _ = reservation
            if least <= nodes <= largest and (new := profile.pull(start, length, nodes)) < start:
                reserved[job.id] = reservation_of((new, length, nodes, split, group, 0))
                starts[job.id] = new
                moved.append(job)
                first = min(first, new)
                if latest > start and latest > new + length:
                    profile.note_release(start + length, nodes)
                least, largest, start = 0, profile.nodes, new
            if start > latest:  # noqa: PLR1730  max() would take a tenth of the time of all this
                latest = start
        self._first, self._is_tested = first, len(jobs) - others == len(reserved)
        return moved

    def free_until(self, job: QueuedJob, group: Group) -> int:
        until = self.profile.free_until(job.nodes)
        return NEVER if until is None else until

    # As the plan of a row.

    def lay_out(
        self,
        now: int,
        gangs: Mapping[int, Occupant],
        ends: Mapping[int, int],
        held: Iterable[tuple[int, int]],
        reserved: Iterable[RowReservation],
    ) -> None:
        taken = [(ends[number], gang.nodes) for number, gang in gangs.items()]
        taken += [(end, columns.bit_count()) for end, columns in held]
        changes: list[tuple[int, int]] = []
        for start, length, ((_, nodes),), _ in reserved:
            changes += ((start, -nodes), (start + length, nodes))
        self._begin(now, taken, changes)

    def hold_only(self, now: int, held: Iterable[tuple[int, Split]]) -> None:
        self._begin(now, [(end, split[0][1]) for end, split in held], ())

    def _begin(self, now: int, taken: list[tuple[int, int]], reserved: Sequence[tuple[int, int]]) -> None:
        self.profile = profile = ReleasingProfile.of_running(self.profile.nodes, now, taken, reserved)
        self._times, self._free = profile.times(), profile.free()

    def split_of_gang(self, gang: Occupant, columns: int) -> Split:
        return ((0, gang.nodes),)

    def soonest(self, job: QueuedJob, length: int, not_after: int) -> tuple[int, Split]:
        nodes = job.nodes
        beyond = bisect_right(self._times, not_after)
        if not beyond or max(self._free[:beyond]) < nodes:
            return -1, ()  # most often
        start = self.profile.earliest(nodes, length, not_after)
        return (start, ((0, nodes),)) if start >= 0 else (-1, ())

    def pull(self, start: int, length: int, split: Split, job: QueuedJob) -> tuple[int, Split]:
        nodes = job.nodes
        beyond = bisect_left(self._times, start)
        if not beyond or max(self._free[:beyond]) < nodes:
            return start, split
        return self.profile.pull(start, length, nodes), split

    def least_free(self, start: int, length: int) -> list[int]:
        return [self.profile.least_free_from(start, length)]

    def admits(self, gang: Occupant, length: int, migrates: bool) -> bool:
        return self.profile.fits(gang.nodes, length)

    def bars(self, job: QueuedJob, split: Split) -> bool:
        return False  # there are no windows

    # Waiting jobs that may have to move.

    def take_steps_of(self, trial: Profile) -> None:
        """Let that be free over time what is in a trial copy of the profile, which must not be used afterwards."""
        self.profile.take_steps_of(trial)
        self._times, self._free = trial.times(), trial.free()

    def movable_sizes(self) -> tuple[int, int]:
        """Return the least and the largest size of a job that may start earlier while the others keep their places."""
        return self.profile.gaining_sizes() if self._is_tested else (0, self.profile.nodes)

    def settle(self) -> None:
        """Note that no waiting job can start earlier while the others keep their places."""
        self.profile.forget_releases()
        self._is_tested = True

    def unsettle(self) -> None:
        """Note that any waiting job can perhaps start earlier while the others keep their places."""
        self._is_tested = False

    def competing(self, nodes: int, jobs: Sequence[SlackReservation]) -> Sequence[SlackReservation]:
        return jobs

    def trials(self, jobs: Sequence[SlackReservation], arriving: ArrivingJob | None, now: int) -> Trials:
        return OnePoolTrials(self, jobs, arriving, now)


class OnePoolTrials(Trials):
    """Trials on equal nodes: on copies of the profile, and none of a job that is known to return to its place."""

    # The plan lacks the nodes of the waiting jobs and those in use now: nothing else that begins later has any.

    def __init__(self, plan: OnePool, jobs: Sequence[SlackReservation], arriving: ArrivingJob | None, now: int) -> None:
        super().__init__(jobs, arriving, now, alike=True)
        self._plan, self._profile = plan, plan.profile
        self._trial: Profile = plan.profile  # that of the present trial
        if arriving is not None:
            self.split = ((0, arriving.job.nodes),)
        self._sizes = plan.movable_sizes()
        self._requests: list[Request] = []  # of all jobs, in trials by start
        self._count = len(jobs)
        self._settled_from = self._count  # from which job on none could start earlier, as far as that is known
        self._is_shifted = False

    def slots(self, given: Iterable[int] | None = None) -> list[int]:
        if self.arriving is None:
            return list(self.planned if given is None else given)
        return self._fitting(self.arriving, given)[0]

    def _fitting(self, arriving: ArrivingJob, slots: Iterable[int] | None) -> tuple[list[int], list[int]]:
        """Return the slots, ascending, where the arriving job fits with the jobs before them in place, by default of all slots.

        Also return, for each position of a job and their end, which job from there on is the first at whose start it does not
        fit with that job and those before in place.
        """
        # The jobs before a slot only end after it: where the arriving one fits at the slot, it fits for as long as it takes.
        jobs, nodes, times, free = self.jobs, arriving.job.nodes, self._profile.times(), self._profile.free()
        fitting = {times[k] for k, left in enumerate(free) if left >= nodes}
        crowded = len(jobs)
        crowded_from = [crowded]
        left, before = 0, -1  # `left`: nodes that are free without the jobs from a position on
        for position in range(len(jobs) - 1, -1, -1):
            job = jobs[position]
            start = job.start
            if start != before:
                left, before = free[bisect_right(times, start) - 1], start
            if left < nodes:
                crowded = position
            crowded_from.append(crowded)
            left += job.nodes
            if left >= nodes:
                fitting.add(start)
        crowded_from.reverse()
        return sorted(fitting if slots is None else fitting.intersection(slots)), crowded_from

    def by_start(self, given: Iterable[int] | None) -> list[Trial]:
        # A trial can begin with the first job that does not return to its place: one that could start earlier without the
        # arriving job, too, or one that the arriving job leaves too few nodes.
        self._requests = _requests(self.jobs)
        if self.arriving is None:
            return super().by_start(given)
        unsettled = self._unsettled()
        fitting, crowded_from = self._fitting(self.arriving, given)
        planned, jobs, length = self.planned, self._count, self.arriving.length
        self._settled_from = settled_from = unsettled[-1] + 1 if unsettled else 0
        trials: list[Trial] = []
        all_return = False  # whether in a trial all jobs return to their places: later slots cost more and change nothing else
        for slot in fitting:
            stay = bisect_left(planned, slot)
            first = crowded_from[stay]
            if first < jobs and planned[first] >= slot + length:
                first = jobs
            if stay < settled_from:
                first = min(first, unsettled[bisect_left(unsettled, stay)])
            if first < jobs or not all_return:
                trials.append((first, slot))
                all_return |= first == jobs
        return trials

    def _unsettled(self) -> list[int]:
        """Return which jobs could start earlier while the others keep their places."""
        (least, largest), earlier = self._sizes, self._profile.earlier
        unsettled = [
            position
            for position, job in enumerate(self.jobs)
            if least <= job.nodes <= largest and earlier(job.nodes, job.length, job.start, 0) < job.start
        ]
        if not unsettled:
            self._plan.settle()
        return unsettled

    def begun(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        jobs, profile, arriving = self.jobs, self._profile.copy(), self.arriving
        position = len(jobs)
        for stay, slot in sorted(trials, reverse=True):  # first where most jobs stay
            while position > stay:
                position -= 1
                job = jobs[position]
                profile.release(job.start, job.end, job.nodes)
            self._trial = profile.copy()
            if arriving is not None:
                self._trial.overbook(slot, slot + arriving.length, arriving.job.nodes)
            yield stay, slot

    def put_back(self, taken: Sequence[SlackReservation]) -> list[int]:
        return self._trial.book_all(_requests(taken))

    def put_back_from(self, first: int) -> list[int]:
        # Before the first job that leaves its place no node is freed for others, which could not start earlier so far.
        since = self.planned[first] if self._settled_from <= first < self._count else 0
        return self._trial.book_all(self._requests[first:], since)

    def shift(self, ranked: Sequence[SlackReservation], slot: int) -> Moves | None:
        assert self.arriving is not None
        self._is_shifted = True
        trial, delay = self._trial, self.arriving.length
        for job in self.jobs[bisect_left(self.planned, slot) :]:
            trial.reserve(job.start + delay, job.end + delay, job.nodes)
        moves: list[tuple[SlackReservation, int]] = []
        for job in ranked:
            if job.start < slot:
                continue
            place = job.start + delay
            start = trial.earlier(job.nodes, job.length, place, slot)
            if start > job.latest:
                return None
            if start < place:
                trial.move_up(place, start, job.length, job.nodes)
            if start != job.start:
                moves.append((job, start))
        return moves

    def pull(self, ranked: Sequence[SlackReservation], slot: int) -> Moves:
        least, largest = self._sizes  # of the first job that moves
        moves: list[tuple[SlackReservation, int]] = []
        trial: Profile | None = None
        for job in ranked:
            if job.start >= slot and (moves or least <= job.nodes <= largest):
                if trial is None:
                    self._trial = trial = self._profile.copy()
                start = trial.pull(job.start, job.length, job.nodes)
                if start < job.start:
                    moves.append((job, start))
        if not moves and slot == self.planned[0]:
            self._plan.settle()
        return moves

    def earliest(self, job: SlackReservation) -> int:
        return self._trial.earliest(job.nodes, job.length, job.latest)

    def book(self, job: SlackReservation) -> int:
        return self._trial.book(job.nodes, job.length, job.latest)

    def state(self) -> Profile:
        return self._trial

    def take(self, state: Profile) -> None:
        self._trial = state.copy()

    def finish(self) -> None:
        """Do nothing: the profile of the plan has not been touched."""

    def carry_out(self, schedule: Schedule) -> None:
        plan, profile, arriving = self._plan, self._profile, self.arriving
        if arriving is None and schedule.slot == self.planned[0]:
            plan.settle()  # all have been tested
        plan.take_steps_of(schedule.state)
        for job, _ in schedule.starts:
            profile.note_release(job.end, job.nodes)
        if arriving is not None:
            slot = schedule.slot
            if self._is_shifted or profile.earlier(arriving.job.nodes, arriving.length, slot, 0) < slot:
                plan.unsettle()


def _requests(jobs: Iterable[SlackReservation]) -> list[Request]:
    return [(job.nodes, job.length, job.latest) for job in jobs]
