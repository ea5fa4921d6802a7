"""Slack-based backfilling: the search for the cheapest schedule (Talby & Feitelson 1999, long version, sections 4.2 to 4.6).

At each slot of the profile, take out the waiting jobs that are scheduled at or after it, put the arriving job there, put the
others back at their earliest times in the order of a heuristic, and price the result.  Prices are
:mod:`clustermodel.schedule.slack_formulas`'s.  Times in ticks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from operator import attrgetter
from typing import Any, Final, NamedTuple, Protocol

from clustermodel.schedule.profile import Profile
from clustermodel.schedule.slack_formulas import Weights, cost, price_of_start, to_digits, total, weight
from clustermodel.ticks import NEVER, TICKS_PER_SECOND, to_seconds

OPTIMAL: Final = "optimal"
MOST_PERMUTED: Final = 7
"""Jobs that :meth:`Search.optimal` puts back in every order: 5,040 of them."""


class SubmittedJob(Protocol):
    """What the search needs to know of a waiting job."""

    @property
    def id(self) -> int:
        """The job's number."""

    @property
    def submit(self) -> int:
        """Submission time, ticks."""

    @property
    def nodes(self) -> int:
        """Number of nodes it asks for."""

    @property
    def estimate(self) -> int:
        """The user's estimate, ticks."""


class SlackReservation:
    """The reservation of a waiting job, which may move to a later start as far as its slack allows.

    Args:
        job: that waits.
        start: t_e, ticks.
        p: its priority.
        initial_slack: s0, ticks.
        weights: of the price.
    """

    __slots__ = ("initial_slack", "job", "latest", "length", "nodes", "p", "start", "weight")

    def __init__(self, job: SubmittedJob, start: int, p: float, initial_slack: int, weights: Weights) -> None:
        self.job = job
        self.nodes = job.nodes
        self.length = job.estimate
        self.p = p
        self.initial_slack = initial_slack
        self.latest = start + initial_slack
        """Latest start, ticks: t_e + s; a schedule with a later one costs infinity."""
        self.move_to(start, weights)

    @property
    def slack(self) -> int:
        """s, ticks: by how much the job may still be delayed."""
        return self.latest - self.start

    @property
    def end(self) -> int:
        """Start plus estimate, ticks."""
        return self.start + self.length

    @property
    def arrival(self) -> tuple[int, int]:
        """Sorting key: order of submission."""
        return self.job.submit, self.job.id

    def move_to(self, start: int, weights: Weights) -> None:
        """Move the job to another start; if that is later than its latest start, no further delay is allowed."""
        self.start = start
        self.latest = max(self.latest, start)
        s0, s = to_seconds(self.initial_slack), to_seconds(self.latest - start)
        self.weight = weight(self.nodes, self.p, s0, s, weights)
        """What multiplies t_i^alpha_t in the cost of a move, before the arriving job's priority divides it."""


_START: Final = attrgetter("start")


def by_start(held: SlackReservation) -> tuple[int, int, int]:
    """Sorting key of the plan: ascending start, then order of submission."""
    return held.start, *held.arrival


def _by_arrival(held: SlackReservation) -> tuple[int, int]:
    return held.arrival


def _by_utilization(held: SlackReservation) -> tuple[int, int, int]:
    return -held.nodes * held.length, *held.arrival


def _by_priority(held: SlackReservation) -> tuple[float, int, int]:
    return -to_digits(held.p), *held.arrival


def _by_cost(held: SlackReservation) -> tuple[float, int, int]:
    # The cost of a delay by one second is the weight, up to a common factor, and infinite without a second of slack.
    return -inf if held.slack < TICKS_PER_SECOND else -to_digits(held.weight), *held.arrival


HEURISTICS: Final[dict[str, Callable[[SlackReservation], Any] | None]] = {
    "ast": by_start,
    "aat": _by_arrival,
    "du": _by_utilization,
    "dc": _by_cost,
    "dp": _by_priority,
    OPTIMAL: None,
}
"""In which order jobs are put back (section 4.6): ascending scheduled time, ascending arrival time, descending utilization,
cost or priority; equals in order of submission.  ``None`` tries every order.

These are functions with names, since a compiled lambda cannot be copied."""


class ArrivingJob(NamedTuple):
    """A job that is inserted into the plan."""

    nodes: int
    length: int
    """Estimate, ticks."""
    favour: float
    """p^alpha_p, by which the costs of moving other jobs are divided."""


class Schedule(NamedTuple):
    """A schedule that was tried; compared by price, then by how many jobs it moves, then by slot."""

    price: float
    moved: int
    """How many jobs have another start than before."""
    slot: int
    """From where on jobs were taken out, and where the arriving job starts; ticks."""
    starts: Sequence[tuple[SlackReservation, int]]
    """The jobs that have another start than before, with it."""


class Search:
    """One search for the cheapest schedule.

    Args:
        running: the profile of the running jobs, without reservations; it is not changed.
        reservations: the waiting jobs, the earliest start first.
        weights: alpha_u, alpha_t, alpha_p, alpha_f.
        now: the present.
        arriving: the job to insert; ``None`` is the dummy job of *remove*, which takes no time.
        in_place: take out and put back one job after the other instead of all at once, so that none becomes later; only without
            an arriving job.
    """

    def __init__(
        self,
        running: Profile,
        reservations: Sequence[SlackReservation],
        weights: Weights,
        now: int,
        arriving: ArrivingJob | None,
        *,
        in_place: bool = False,
    ) -> None:
        self._running = running
        self._reservations = reservations
        self._weights = weights
        self._now = now
        self._arriving = arriving
        self._favour = arriving.favour if arriving is not None else 1.0
        self._in_place = in_place
        self._others: Sequence[SlackReservation] = ()

    def cheapest(self, slots: Iterable[int], ranked: Sequence[SlackReservation]) -> Schedule | None:
        """Return the cheapest schedule that puts jobs back in the order of ``ranked``; ``None`` if all cost infinity.

        Args:
            slots: when the arriving job may start, ascending.
            ranked: the reservations in the order in which they are put back.
        """
        if self._in_place:
            return self._cheapest_in_place(slots, ranked)
        if self._arriving is not None and ranked is self._reservations:
            return self._cheapest_by_start(slots, self._arriving)
        best: Schedule | None = None
        for slot, profile, own in self._places(slots):
            taken = [held for held in ranked if held.start >= slot]
            best = _cheaper(self._put_back(taken, profile, own, slot), best)
        return best

    def _cheapest_in_place(self, slots: Iterable[int], ranked: Sequence[SlackReservation]) -> Schedule | None:
        """Return the cheapest schedule that takes out and puts back one job after the other while the others stay in place."""
        full = self._running.copy()
        for held in self._reservations:
            full.reserve(held.start, held.end, held.nodes)
        best: Schedule | None = None
        same_until = -1
        for slot in slots:
            if slot <= same_until:
                continue  # of the jobs that stay now as well, none found another place
            profile = full.copy()
            starts: list[tuple[SlackReservation, int]] = []
            for held in ranked:
                if held.start < slot:
                    continue
                start = profile.earlier(held.nodes, held.length, held.start, self._now)
                if start < held.start:
                    profile.release(held.start, held.end, held.nodes)
                    profile.reserve(start, start + held.length, held.nodes)
                    starts.append((held, start))
            best = _cheaper(self._priced(0.0, slot, starts), best)
            same_until = min((held.start for held, _ in starts), default=NEVER)
        return best

    def _cheapest_by_start(self, slots: Iterable[int], arriving: ArrivingJob) -> Schedule | None:
        """Return the cheapest schedule that puts jobs back in the order of their starts.

        The jobs that stay and those that are put back are then the beginning and the end of one sequence.  So a trial can begin
        with the first job that does not return to its place: one that could start earlier without the arriving job, too, or one
        that the arriving job leaves too few nodes.
        """
        plan, (nodes, length, _) = self._reservations, arriving
        profiles = list(self._profiles())
        earliest = [profile.earliest(held.nodes, held.length) for profile, held in zip(profiles, plan, strict=False)]
        unsettled = [at for at, held in enumerate(plan) if earliest[at] < held.start]
        unsettled.append(len(plan))
        best: Schedule | None = None
        all_return = False  # whether all jobs have returned to their places in a trial
        for slot in slots:
            stay = bisect_left(plan, slot, key=_START)
            if not profiles[stay].fits_at(slot, nodes, length) or (all_return and profiles[-1].fits_at(slot, nodes, length)):
                continue  # it does not fit, or all jobs return again and the arriving one starts later
            last = unsettled[bisect_left(unsettled, stay)]
            first = bisect_left(range(last), True, stay, key=lambda at: not profiles[at + 1].fits_at(slot, nodes, length))
            all_return |= first == len(plan)
            profile = profiles[first].copy()
            profile.reserve(slot, slot + length, nodes)
            own = price_of_start(nodes, to_seconds(slot - self._now), self._weights)
            best = _cheaper(self._put_back_from(first, earliest, profile, own, slot), best)
        return best

    def _profiles(self) -> Iterator[Profile]:
        """Yield the profile with the first 0, 1, 2, ... reservations."""
        yield self._running
        profile = self._running
        for held in self._reservations:
            profile = profile.copy()
            profile.reserve(held.start, held.end, held.nodes)
            yield profile

    def _put_back_from(self, first: int, earliest: Sequence[int], profile: Profile, own: float, slot: int) -> Schedule | None:
        """Put jobs back from number ``first`` on; return ``None`` as soon as one would start too late.

        Args:
            first: number in the order of the starts.
            earliest: for each number, when that job could start if those before it were in their places.
            profile: those before ``first``, and the arriving job.
            own: the price of the arriving job.
            slot: its start.
        """
        starts: list[tuple[SlackReservation, int]] = []
        left = NEVER  # the first time at which a job has left its place
        for at in range(first, len(self._reservations)):
            held = self._reservations[at]
            # To start earlier than ``earliest`` says, it must use nodes of a job that has left its place.
            start = profile.book(held.nodes, held.length, held.latest, min(earliest[at], left - held.length + 1))
            if start < 0:
                return None
            if start != held.start:
                starts.append((held, start))
                left = min(left, held.start)
        return self._priced(own, slot, starts)

    def _places(self, slots: Iterable[int]) -> Iterator[tuple[int, Profile, float]]:
        """Yield the slots where the arriving job fits, with the profile of the jobs that stay and its own price there."""
        kept, arriving = self._running.copy(), self._arriving
        left = iter(self._reservations)
        following = next(left, None)
        for slot in slots:
            while following is not None and following.start < slot:
                kept.reserve(following.start, following.end, following.nodes)
                following = next(left, None)
            if arriving is None:
                yield slot, kept.copy(), 0.0
            elif kept.fits_at(slot, arriving.nodes, arriving.length):
                profile = kept.copy()
                profile.reserve(slot, slot + arriving.length, arriving.nodes)
                yield slot, profile, price_of_start(arriving.nodes, to_seconds(slot - self._now), self._weights)

    def _put_back(
        self,
        taken: Sequence[SlackReservation],
        profile: Profile,
        own: float,
        slot: int,
        before: Sequence[tuple[SlackReservation, int]] = (),
    ) -> Schedule | None:
        """Put jobs back in their order; return ``None`` as soon as one would start too late."""
        book = profile.book
        starts = list(before)
        for held in taken:
            start = book(held.nodes, held.length, held.latest)
            if start < 0:
                return None
            starts.append((held, start))
        return self._priced(own, slot, starts)

    def _priced(self, own: float, slot: int, starts: list[tuple[SlackReservation, int]]) -> Schedule:
        weights, favour = self._weights, self._favour
        moves = [(held, start) for held, start in starts if start != held.start]
        costs = [cost(held.weight, to_seconds(start - held.start), favour, weights) for held, start in moves]
        return Schedule(total(own, costs), len(moves), slot, moves)

    def optimal(self, slots: Sequence[int]) -> Schedule | None:
        """Return the cheapest schedule over all orders of putting jobs back; ``None`` if all cost infinity.

        Of more than :data:`MOST_PERMUTED` jobs, the others follow in the order of their starts.

        Orders are tried depth first.  A beginning of an order is given up when it costs at least as much as the best schedule
        so far even if each of the jobs still out were alone in what is left: profiles only fill up, so it can only get worse.
        """
        best = self.cheapest(slots, self._reservations)
        for slot, profile, own in self._places(slots):
            taken = [held for held in self._reservations if held.start >= slot]
            self._others = taken[MOST_PERMUTED:]
            best = self._best_order(taken[:MOST_PERMUTED], profile, own, slot, [], best)
        return best

    def _best_order(
        self,
        out: list[SlackReservation],
        profile: Profile,
        own: float,
        slot: int,
        starts: list[tuple[SlackReservation, int]],
        best: Schedule | None,
    ) -> Schedule | None:
        alone = list(starts)
        for held in (*out, *self._others):
            start = profile.earliest(held.nodes, held.length)
            if start > held.latest:
                return best
            alone.append((held, start))
        bound = self._priced(own, slot, alone)
        if best is not None and bound[:3] >= best[:3]:
            return best
        if len(out) + len(self._others) <= 1:
            return bound
        if not out:
            return _cheaper(self._put_back(self._others, profile, own, slot, starts), best)
        tried: set[tuple[int, int, int, int, float]] = set()
        for index, held in enumerate(out):
            # Of jobs that are the same in all that counts, the first is put back first.
            same = (held.nodes, held.length, held.start, held.latest, held.weight)
            if same in tried or (self._weights.t == 1 and any(_goes_before(other, held) for other in out)):
                continue
            tried.add(same)
            then = profile.copy()
            start = then.book(held.nodes, held.length, held.latest)
            best = self._best_order([*out[:index], *out[index + 1 :]], then, own, slot, [*starts, (held, start)], best)
        return best


def _cheaper(found: Schedule | None, best: Schedule | None) -> Schedule | None:
    """Return the better of two schedules, the second of equal ones; ``None`` costs infinity."""
    return found if found is not None and (best is None or found[:3] < best[:3]) else best


def _goes_before(first: SlackReservation, second: SlackReservation) -> bool:
    """Return whether, of two jobs of one shape, the first may be put back first without loss, where alpha_t = 1.

    Whichever is put back first takes the earlier of two places; it should be the one whose delay costs more.
    """
    return (
        first.weight > second.weight
        and first.nodes == second.nodes
        and first.length == second.length
        and first.latest <= second.latest
    )
