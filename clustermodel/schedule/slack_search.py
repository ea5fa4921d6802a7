"""Slack-based backfilling: the search for the cheapest schedule (Talby & Feitelson 1999, long version, sections 4.2 to 4.6).

At each slot of the profile, take out the waiting jobs that are scheduled at or after it, put the arriving job there, put the
others back at their earliest times in the order of a heuristic, and price the result.  Prices are
:mod:`clustermodel.schedule.slack_formulas`'s.  Times in ticks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Any, Final, NamedTuple, Protocol

from clustermodel.schedule.profile import Profile
from clustermodel.schedule.slack_formulas import Weights, cost, price_of_start, to_digits, total, weight
from clustermodel.ticks import TICKS_PER_SECOND, to_seconds

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


def by_start(held: SlackReservation) -> tuple[int, int, int]:
    """Sorting key of the plan: ascending start, then order of submission."""
    return held.start, *held.arrival


def _by_cost(held: SlackReservation) -> tuple[float, int, int]:
    # The cost of a delay by one second is the weight, up to a common factor, and infinite without a second of slack.
    return -inf if held.slack < TICKS_PER_SECOND else -to_digits(held.weight), *held.arrival


HEURISTICS: Final[dict[str, Callable[[SlackReservation], Any] | None]] = {
    "ast": by_start,
    "aat": lambda held: held.arrival,
    "du": lambda held: (-held.nodes * held.length, *held.arrival),
    "dc": _by_cost,
    "dp": lambda held: (-to_digits(held.p), *held.arrival),
    OPTIMAL: None,
}
"""In which order jobs are put back (section 4.6): ascending scheduled time, ascending arrival time, descending utilization,
cost or priority; equals in order of submission.  ``None`` tries every order."""


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
    """The jobs that were taken out, with their new starts."""


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
        best: Schedule | None = None
        for slot, profile, own in self._places(slots):
            taken = [held for held in ranked if held.start >= slot]
            found = (self._move_up if self._in_place else self._put_back)(taken, profile, own, slot)
            if found is not None and (best is None or found[:3] < best[:3]):
                best = found
        return best

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

    def _move_up(self, taken: Sequence[SlackReservation], profile: Profile, own: float, slot: int) -> Schedule | None:
        """Take out and put back one job after the other while the others stay where they are."""
        for held in taken:
            profile.reserve(held.start, held.end, held.nodes)
        starts: list[tuple[SlackReservation, int]] = []
        for held in taken:
            profile.release(held.start, held.end, held.nodes)
            starts.append((held, profile.book(held.nodes, held.length, held.start)))
        return self._priced(own, slot, starts)

    def _priced(self, own: float, slot: int, starts: list[tuple[SlackReservation, int]]) -> Schedule:
        weights, favour = self._weights, self._favour
        costs = [
            cost(held.weight, (start - held.start) / TICKS_PER_SECOND, favour, weights)
            for held, start in starts
            if start != held.start
        ]
        return Schedule(total(own, costs), len(costs), slot, starts)

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
            full = self._put_back(self._others, profile, own, slot, starts)
            return full if full is not None and (best is None or full[:3] < best[:3]) else best
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
