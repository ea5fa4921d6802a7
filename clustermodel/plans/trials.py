"""The trials of one search for a schedule in which waiting jobs have moved, for an arriving job or after others have ended.

A trial takes out the waiting jobs that are scheduled at or after a slot, puts the arriving job there, and puts the others back
(Talby & Feitelson 1999, long version, sections 4.2 to 4.6).  How that is done depends on the plan, which makes the trials; in
which order jobs are put back, and what a schedule costs, is for :mod:`clustermodel.plans.slack_search`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from clustermodel.machine.node_set import bisect_left
from clustermodel.plans.pools import Split
from clustermodel.plans.windows import candidates
from clustermodel.ticks import NEVER

if TYPE_CHECKING:
    from clustermodel.plans.pool_plans import RunningPlan, Steps
    from clustermodel.plans.slack_prices import ArrivingJob, Moves, Schedule, SlackReservation

Trial = tuple[int, int]
"""How many jobs stay, the first of all by start, and the slot."""
Splits = list[tuple["SlackReservation", Split]]
"""Jobs that have other nodes than in their reservations, perhaps at the same time, and which."""
State = Any
"""What has come of a trial, as its kind of trials describes it."""


class Trials(ABC):
    """The trials of one search; ``jobs``: the waiting jobs that compete for nodes, by start.

    The plan has all of them.  ``arriving`` is a job that is not in the plan yet, or ``None`` after jobs have ended early.
    """

    def __init__(self, jobs: Sequence[SlackReservation], arriving: ArrivingJob | None, now: int, *, alike: bool) -> None:
        self.jobs, self.arriving, self.now = jobs, arriving, now
        self.planned = [job.start for job in jobs]
        # Whether all nodes are alike to all jobs: then a job is where it starts, and jobs of one shape can change places.
        self.alike = alike
        self.split: Split = ()  # what the arriving job has in the present trial

    @abstractmethod
    def slots(self, given: Iterable[int] | None = None) -> list[int]:
        """Return when the arriving job may start, all times by default that can differ."""

    def staying(self, slots: Iterable[int]) -> list[Trial]:
        """Return the trials of these slots."""
        planned = self.planned
        return [(bisect_left(planned, slot), slot) for slot in slots]

    def by_start(self, given: Iterable[int] | None) -> list[Trial]:
        """Return the trials in which jobs are put back in the order of their starts: those that would return may stay."""
        return self.staying(self.planned if self.arriving is None and given is None else self.slots(given))

    @abstractmethod
    def begun(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        """Yield each trial in which the arriving job fits with the jobs that stay, once it has begun."""

    # Operations of the present trial.

    @abstractmethod
    def put_back(self, taken: Sequence[SlackReservation]) -> list[int]:
        """Put jobs back at their earliest times, one after the other, until one would start too late; return the starts."""

    def put_back_from(self, first: int) -> list[int]:
        """:meth:`put_back` the jobs from a position on, in a trial of :meth:`by_start`."""
        return self.put_back(self.jobs[first:])

    @abstractmethod
    def shift(self, ranked: Sequence[SlackReservation], slot: int) -> Moves | None:
        """Delay the jobs from the slot on by the arriving one's time, then move one up after the other, not before the slot.

        Return the new starts of those that have moved; ``None`` if one would start too late.
        """

    @abstractmethod
    def pull(self, ranked: Sequence[SlackReservation], slot: int) -> Moves:
        """Move the jobs from the slot on up from where they are, one after the other; return the new starts of those moved.

        This is a trial by itself, without an arriving job.
        """

    @abstractmethod
    def earliest(self, job: SlackReservation) -> int:
        """Return when a job that has been taken out could start first; -1 if that is too late."""

    @abstractmethod
    def book(self, job: SlackReservation) -> int:
        """:meth:`earliest`, and put the job back there."""

    @abstractmethod
    def state(self) -> State:
        """Return what has come of the present trial, which does not go on: :meth:`take` takes a copy."""

    @abstractmethod
    def take(self, state: State) -> None:
        """Go on from a state."""

    @abstractmethod
    def finish(self) -> None:
        """Let the plan be as it was before the search."""

    @abstractmethod
    def carry_out(self, schedule: Schedule) -> None:
        """Let the plan be as in a schedule; reservations have their old starts still."""


class PlanTrials(Trials):
    """Trials that are played on the plan itself, whatever it tells apart."""

    def __init__(self, plan: RunningPlan, jobs: Sequence[SlackReservation], arriving: ArrivingJob | None, now: int) -> None:
        super().__init__(jobs, arriving, now, alike=False)
        self._plan = plan
        self._all: Steps = plan.steps()  # with all jobs where they are
        self._splits: Splits = []

    def slots(self, given: Iterable[int] | None = None) -> list[int]:
        """Return the present, the starts and ends of the jobs, the ends of those running on their nodes, and of windows."""
        if given is not None or self.arriving is None:
            return list(self.planned if given is None else given)
        plan, now, (job, group, length, _, _) = self._plan, self.now, self.arriving
        nodes = group.allowed
        for rivals in {each.group for each in self.jobs}:
            nodes |= rivals.allowed
        slots = {now, *plan.ends(nodes)}
        for each in self.jobs:
            slots.add(each.start)
            slots.add(each.end)
        if group.windows:
            last, _ = plan.earliest(length, job, group)  # without moving any job
            if last < 0:
                last = max([slot for slot in slots if slot < NEVER])
            for end in candidates([now], group.windows, last, length):
                if end > last:
                    break
                slots.add(end)
        return sorted(slots)

    def begun(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        plan, arriving, jobs = self._plan, self.arriving, self.jobs
        trials = sorted(trials, reverse=True)  # first where most jobs stay
        in_gaps: dict[int, Split | None] = {}  # where no other job has to move, it takes these nodes
        if arriving is not None:
            job, group, length, _, running_on = arriving
            in_gaps = {slot: running_on or plan.split(slot, length, job, group) for _, slot in trials}
        staying, position = self._all, len(jobs)
        for stay, slot in trials:
            plan.take_steps(staying)
            if position > stay:
                while position > stay:
                    position -= 1
                    plan.release(jobs[position].start, jobs[position].length, jobs[position].split)
                staying = plan.steps()
            if arriving is not None:
                split = in_gaps[slot] or plan.split(slot, length, job, group)
                if split is None:
                    continue
                plan.reserve(slot, length, split)
                self.split = split
            self._splits = []
            yield stay, slot

    def put_back(self, taken: Sequence[SlackReservation]) -> list[int]:
        starts: list[int] = []
        for job in taken:
            start = self.book(job)
            if start < 0:
                break
            starts.append(start)
        return starts

    def shift(self, ranked: Sequence[SlackReservation], slot: int) -> Moves | None:
        assert self.arriving is not None
        delay = self.arriving.length
        for job in ranked:
            if job.start >= slot:
                self._plan.reserve(job.start + delay, job.length, job.split)
        return self._compress(ranked, slot, delay, slot)

    def pull(self, ranked: Sequence[SlackReservation], slot: int) -> Moves:
        self._plan.take_steps(self._all)
        self._splits = []
        moves = self._compress(ranked, slot, 0, self.now)
        assert moves is not None, "each job may stay where it is"
        return moves

    def _compress(self, ranked: Iterable[SlackReservation], slot: int, delay: int, not_before: int) -> Moves | None:
        plan = self._plan
        moves: list[tuple[SlackReservation, int]] = []
        for job in ranked:
            if job.start < slot:
                continue
            plan.release(job.start + delay, job.length, job.split)
            start, split = plan.around_windows(job.length, job.job, job.group, job.latest, not_before)
            if start < 0:
                return None
            self._reserve(job, start, split)
            if start != job.start:
                moves.append((job, start))
        return moves

    def earliest(self, job: SlackReservation) -> int:
        return self._plan.earliest(job.length, job.job, job.group, job.latest)[0]

    def book(self, job: SlackReservation) -> int:
        start, split = self._plan.earliest(job.length, job.job, job.group, job.latest)
        if start >= 0:
            self._reserve(job, start, split)
        return start

    def _reserve(self, job: SlackReservation, start: int, split: Split) -> None:
        """Reserve a start of a job, where possible with the nodes that it has if the start is not another one."""
        own = job.split
        if start == job.start and split != own and self._plan.has(start, job.length, own):
            split = own
        self._plan.reserve(start, job.length, split)
        if split != own:
            self._splits.append((job, split))

    def state(self) -> tuple[Steps, Splits]:
        return self._plan.steps(), self._splits[:]

    def take(self, state: tuple[Steps, Splits]) -> None:
        steps, splits = state
        self._plan.take_steps(steps)
        self._splits = splits[:]

    def finish(self) -> None:
        self._plan.take_steps(self._all)

    def carry_out(self, schedule: Schedule) -> None:
        steps, splits = schedule.state
        self._plan.take_steps(steps)
        for job, split in splits:
            job.split = split
