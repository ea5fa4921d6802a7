"""Slack-based backfilling where jobs may differ in the nodes that they may have: reservations, and the search.

Prices and heuristics are those of :mod:`clustermodel.plans.slack_prices`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from clustermodel.node_set import bisect_left
from clustermodel.plans.pool_plans import Group, RunningPlan, Steps
from clustermodel.plans.pools import Split
from clustermodel.plans.slack_prices import MOST_PERMUTED, Priced, SlackReservation, Weights, cost, price_of_start
from clustermodel.ticks import NEVER, to_seconds

if TYPE_CHECKING:
    from clustermodel.policies.view import QueuedJob


class PoolReservation(SlackReservation):
    """A reservation of so many nodes of each pool, its ``split``, for a job of a group."""

    __slots__ = ("group", "split")

    def __init__(
        self, job: QueuedJob, place: tuple[int, Split], length: int, group: Group, p: float, slack: int, weights: Weights
    ) -> None:
        start, split = place
        super().__init__(job, start, p, slack, weights)
        self.length = length
        self.group: Group = group
        self.split: Split = split


class PoolArrival(NamedTuple):
    """A job that is inserted into the plan, or a running one that goes on."""

    job: QueuedJob
    group: Group
    length: int  # ticks
    favour: float  # p^alpha_p, by which the costs of moving other jobs are divided
    split: Split | None  # what it has of each pool, if it is running


Places = list[tuple[PoolReservation, int, Split]]
"""Jobs, when they start, and what they have of each pool then."""


class PoolSchedule(Priced):
    """A schedule that was tried: what the arriving job has, which others have something else, and what is free with all."""

    __slots__ = ("split", "splits", "steps")

    def __init__(self, slot: int, own: float, places: Places, costs: list[float], split: Split) -> None:
        super().__init__(slot, own, [(job, start) for job, start, _ in places if start != job.start], costs)
        self.split: Split = split
        self.splits: list[tuple[PoolReservation, Split]] = [(job, of_job) for job, _, of_job in places if of_job != job.split]
        self.steps: Steps = ([], [])


class PoolSearch:
    """One search for the cheapest schedule of waiting jobs that compete for nodes; it leaves the plan as it was."""

    # As Search, but each trial is a whole one.  The rivals come by start; `best` is the cheapest schedule so far.

    def __init__(
        self, plan: RunningPlan, rivals: Sequence[PoolReservation], weights: Weights, now: int, arriving: PoolArrival | None
    ) -> None:
        self._plan, self._rivals, self._weights, self._now, self._arriving = plan, rivals, weights, now, arriving
        self._favour = arriving.favour if arriving is not None else 1.0
        self._all: Steps = plan.steps()  # with all jobs where they are
        self._slot, self._own = now, 0.0  # of the present trial
        self._split: Split = ()
        self._last: list[PoolReservation] = []  # jobs that `optimal` puts back after all permuted ones
        self.best: PoolSchedule | None = None

    def cheapest(self, slots: Sequence[int], ranked: Sequence[PoolReservation]) -> PoolSchedule | None:
        """Return the cheapest schedule that takes jobs out and puts them back in the order of ``ranked``."""
        for slot in self._trials(slots):
            self._put_back([reservation for reservation in ranked if reservation.start >= slot], [])
        return self._found()

    def cheapest_in_place(self, slots: Sequence[int], ranked: Sequence[PoolReservation]) -> PoolSchedule | None:
        """Return the cheapest schedule, without an arriving job, that moves one job up after the other from where they are."""
        same_until = -1
        for slot in slots:
            if slot <= same_until:
                continue  # of the jobs that stay now as well, none found another place
            self._plan.take_steps(self._all)
            self._slot = slot
            moved = self._compress(ranked, 0, self._now)
            same_until = min(
                (reservation.start for reservation, start, _ in moved if start != reservation.start), default=NEVER
            )
        return self._found()

    def cheapest_shifted(self, slots: Sequence[int], ranked: Sequence[PoolReservation]) -> PoolSchedule | None:
        """Return the cheapest schedule that delays jobs from a slot on by the arriving job's estimate and compresses them."""
        assert self._arriving is not None
        delay = self._arriving.length
        for slot in self._trials(slots):
            for reservation in ranked:
                if reservation.start >= slot:
                    self._plan.reserve(reservation.start + delay, reservation.length, reservation.split)
            self._compress(ranked, delay, slot)
        return self._found()

    def optimal(self, slots: Sequence[int]) -> PoolSchedule | None:
        """Return the cheapest schedule over all orders of putting jobs back."""
        self.cheapest(slots, self._rivals)
        for slot in self._trials(slots):
            taken = [reservation for reservation in self._rivals if reservation.start >= slot]
            self._last = taken[MOST_PERMUTED:]
            self._try_orders(taken[:MOST_PERMUTED], [])
        return self._found()

    def _found(self) -> PoolSchedule | None:
        self._plan.take_steps(self._all)
        return self.best

    def _trials(self, slots: Sequence[int]) -> Iterator[int]:
        """Yield the slots where the arriving job fits, with a plan of it and of the jobs that stay."""
        plan, arriving = self._plan, self._arriving
        in_gaps: dict[int, Split | None] = {}  # where no other job has to move, it takes these nodes
        if arriving is not None:
            job, group, length, _, running_on = arriving
            in_gaps = {slot: running_on or plan.split(slot, length, job, group) for slot in slots}
        first_ones = [self._all]  # what is free with all rivals, with all but the last, ..., with none
        for reservation in reversed(self._rivals):
            plan.release(reservation.start, reservation.length, reservation.split)
            first_ones.append(plan.steps())
        starts = [reservation.start for reservation in self._rivals]
        for slot in slots:
            plan.take_steps(first_ones[len(starts) - bisect_left(starts, slot)])
            self._slot = slot
            if arriving is not None:
                split = in_gaps[slot] or plan.split(slot, length, job, group)
                if split is None:
                    continue
                plan.reserve(slot, length, split)
                self._split, self._own = split, price_of_start(job.nodes, to_seconds(slot - self._now), self._weights)
            yield slot
        plan.take_steps(self._all)

    def _put_back(self, taken: Iterable[PoolReservation], places: Places) -> None:
        """Put jobs back in their order, after those that have ``places``, unless one would start too late."""
        for reservation in taken:
            start, split = self._book(reservation)
            if start < 0:
                return
            places.append((reservation, start, split))
        self._offer(places)

    def _book(self, reservation: PoolReservation) -> tuple[int, Split]:
        """Reserve the earliest start of a job, and return it with what the job has then; -1 if that is too late."""
        job, group, length = reservation.job, reservation.group, reservation.length
        start, split = self._plan.earliest(length, job, group, reservation.latest)
        if start >= 0:
            split = self._reserve(reservation, start, split)
        return start, split

    def _reserve(self, reservation: PoolReservation, start: int, split: Split) -> Split:
        """Reserve a start of a job, where possible with the nodes that it has if the start is not another one."""
        own, length = reservation.split, reservation.length
        if start == reservation.start and split != own and self._plan.has(start, length, own):
            split = own
        self._plan.reserve(start, length, split)
        return split

    def _compress(self, ranked: Iterable[PoolReservation], delay: int, not_before: int) -> Places:
        """Move jobs up one after the other, unless one would start too late."""
        plan = self._plan
        places: Places = []
        for reservation in ranked:
            if reservation.start < self._slot:
                continue
            job, group, length = reservation.job, reservation.group, reservation.length
            plan.release(reservation.start + delay, length, reservation.split)
            start, split = plan.around_windows(length, job, group, reservation.latest, not_before)
            if start < 0:
                return places
            places.append((reservation, start, self._reserve(reservation, start, split)))
        self._offer(places)
        return places

    def _offer(self, places: Places) -> None:
        """Keep the schedule in which jobs have these places if it is cheaper than the best one so far."""
        schedule = self._priced(places)
        if self.best is None or schedule.goes_before(self.best):
            schedule.steps = self._plan.steps()
            self.best = schedule

    def _priced(self, places: Places) -> PoolSchedule:
        costs = [
            cost(reservation.weight, to_seconds(start - reservation.start), self._favour, self._weights.t)
            for reservation, start, _ in places
            if start != reservation.start
        ]
        return PoolSchedule(self._slot, self._own, places, costs, self._split)

    def _try_orders(self, out: list[PoolReservation], places: Places) -> None:
        """Put jobs back in every order that can still be the best; see ``Search.optimal``."""
        plan, alone = self._plan, [*places]
        for reservation in (*out, *self._last):
            start, split = plan.earliest(reservation.length, reservation.job, reservation.group, reservation.latest)
            if start < 0:
                return
            alone.append((reservation, start, split))
        if self.best is not None and not self._priced(alone).goes_before(self.best):
            return
        if not out or len(out) + len(self._last) == 1:
            self._put_back((*out, *self._last), [*places])
            return
        before = plan.steps()
        for index, reservation in enumerate(out):
            plan.take_steps(before)
            start, split = self._book(reservation)
            self._try_orders([*out[:index], *out[index + 1 :]], [*places, (reservation, start, split)])
