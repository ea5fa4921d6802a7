"""The search for the cheapest schedule (001, sections 4.2 and 4.5): at each slot of the profile, take out the waiting jobs that
are scheduled at or after it, put the new job there, put the others back at their earliest times, and price the result.

Responsible for which schedules are tried and which one wins; what a move costs is
:mod:`clustermodel.schedule.slack_pricing`'s, which order the jobs are put back in the policy's.  Times in ticks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from clustermodel.schedule.profile import Profile
from clustermodel.schedule.slack_pricing import Weights, move, price_of_start, total
from clustermodel.ticks import TICKS_PER_SECOND, to_seconds

MOST_PERMUTED: Final = 7
"""Jobs that :meth:`Search.optimal` puts back in every order: 5,040 of them."""


class MovableReservation:
    """A reservation that may be moved to a later start, up to a bound."""

    __slots__ = ("latest", "length", "nodes", "start", "weight")

    def __init__(self, nodes: int, length: int, start: int, latest: int, weight: float) -> None:
        self.nodes = nodes
        self.length = length
        """Estimate, ticks."""
        self.start = start
        """t_e, ticks."""
        self.latest = latest
        """Start after which the schedule costs infinity: t_e + s, ticks."""
        self.weight = weight
        """What multiplies t_i^alpha_t, in seconds, in the cost of moving it, before the newcomer's priority divides it."""


class Newcomer(NamedTuple):
    """A job that is inserted into the plan."""

    nodes: int
    length: int
    """Estimate, ticks."""
    favour: float
    """p^alpha_p, by which the costs of moving others are divided."""


Placed = TypeVar("Placed", bound=MovableReservation)


class Schedule(NamedTuple, Generic[Placed]):
    """A schedule that was tried; compared by price, then by how many jobs it moves, then by slot."""

    price: float
    moved: int
    """How many jobs have another start than before."""
    slot: int
    """Where jobs were taken out from, and where the newcomer starts; ticks."""
    starts: Sequence[tuple[Placed, int]]
    """The jobs that were taken out and their starts."""


class Search(Generic[Placed]):
    """One search for the cheapest schedule.

    Args:
        running: the profile of the running jobs, without reservations; it is not changed.
        reservations: the waiting jobs, the earliest start first.
        weights: alpha_u, alpha_t, alpha_p, alpha_f.
        now: the present.
        newcomer: the job to be inserted; ``None`` stands for the timeless dummy job of *remove*.
        in_place: take out and put back one job after the other, so that none becomes later, and not all at once; only without
            a newcomer.
    """

    def __init__(
        self,
        running: Profile,
        reservations: Sequence[Placed],
        weights: Weights,
        now: int,
        newcomer: Newcomer | None,
        *,
        in_place: bool = False,
    ) -> None:
        self._running = running
        self._reservations = reservations
        self._weights = weights
        self._now = now
        self._newcomer = newcomer
        self._favour = newcomer.favour if newcomer is not None else 1.0
        self._in_place = in_place
        self._others: Sequence[Placed] = ()

    def cheapest(self, slots: Iterable[int], ranked: Sequence[Placed]) -> Schedule[Placed] | None:
        """Return the cheapest schedule that puts jobs back in the order of ``ranked``; ``None`` if all cost infinity.

        Args:
            slots: when the newcomer may start, ascending.
            ranked: the reservations in the order in which they are put back.
        """
        best: Schedule[Placed] | None = None
        for slot, profile, own in self._places(slots):
            taken = [one for one in ranked if one.start >= slot]
            found = (self._move_up if self._in_place else self._put_back)(taken, profile, own, slot)
            if found is not None and (best is None or found[:3] < best[:3]):
                best = found
        return best

    def _places(self, slots: Iterable[int]) -> Iterator[tuple[int, Profile, float]]:
        """Yield the slots where the newcomer fits, with the profile of what is left in the plan and its own price there."""
        kept, newcomer = self._running.copy(), self._newcomer
        left = iter(self._reservations)
        following = next(left, None)
        for slot in slots:
            while following is not None and following.start < slot:
                kept.reserve(following.start, following.start + following.length, following.nodes)
                following = next(left, None)
            if newcomer is None:
                yield slot, kept.copy(), 0.0
            elif kept.fits_at(slot, newcomer.nodes, newcomer.length):
                profile = kept.copy()
                profile.reserve(slot, slot + newcomer.length, newcomer.nodes)
                yield slot, profile, price_of_start(newcomer.nodes, to_seconds(slot - self._now), self._weights)

    def _put_back(
        self, taken: Sequence[Placed], profile: Profile, own: float, slot: int, before: Sequence[tuple[Placed, int]] = ()
    ) -> Schedule[Placed] | None:
        """Put jobs back in their order; ``None`` as soon as one would start later than it may."""
        book = profile.book
        starts = list(before)
        for one in taken:
            start = book(one.nodes, one.length, one.latest)
            if start < 0:
                return None
            starts.append((one, start))
        return self._priced(own, slot, starts)

    def _move_up(self, taken: Sequence[Placed], profile: Profile, own: float, slot: int) -> Schedule[Placed] | None:
        """Take out and put back one job after the other while the rest stay where they are."""
        for one in taken:
            profile.reserve(one.start, one.start + one.length, one.nodes)
        starts: list[tuple[Placed, int]] = []
        for one in taken:
            profile.release(one.start, one.start + one.length, one.nodes)
            starts.append((one, profile.book(one.nodes, one.length, one.start)))
        return self._priced(own, slot, starts)

    def _priced(self, own: float, slot: int, starts: list[tuple[Placed, int]]) -> Schedule[Placed]:
        costs = [self._cost(one, start) for one, start in starts if start != one.start]
        return Schedule(total(own, costs), len(costs), slot, starts)

    def _cost(self, one: Placed, start: int) -> float:
        return one.weight * move((start - one.start) / TICKS_PER_SECOND, self._weights) / self._favour

    def optimal(self, slots: Sequence[int]) -> Schedule[Placed] | None:
        """Return the cheapest schedule over all orders of putting jobs back; ``None`` if all cost infinity.

        Of more than :data:`MOST_PERMUTED` jobs, the others follow in the order of their starts.

        Orders are tried depth first.  A beginning of an order is given up when it costs at least as much as the best schedule
        so far even if each of the jobs still out were alone in what is left: profiles only fill up, so it can only get worse.
        """
        best = self.cheapest(slots, self._reservations)
        for slot, profile, own in self._places(slots):
            taken = [one for one in self._reservations if one.start >= slot]
            self._others = taken[MOST_PERMUTED:]
            best = self._best_order(taken[:MOST_PERMUTED], profile, own, slot, [], best)
        return best

    def _best_order(
        self,
        out: list[Placed],
        profile: Profile,
        own: float,
        slot: int,
        starts: list[tuple[Placed, int]],
        best: Schedule[Placed] | None,
    ) -> Schedule[Placed] | None:
        alone = list(starts)
        for one in (*out, *self._others):
            start = profile.earliest(one.nodes, one.length)
            if start > one.latest:
                return best
            alone.append((one, start))
        bound = self._priced(own, slot, alone)
        if best is not None and bound[:3] >= best[:3]:
            return best
        if len(out) + len(self._others) <= 1:
            return bound
        if not out:
            full = self._put_back(self._others, profile, own, slot, starts)
            return full if full is not None and (best is None or full[:3] < best[:3]) else best
        tried: set[tuple[int, int, int, int, float]] = set()
        for index, one in enumerate(out):
            # Of jobs that are the same in all that counts, the first is put back first.
            same = (one.nodes, one.length, one.start, one.latest, one.weight)
            if same in tried or (self._weights.t == 1 and any(_goes_before(other, one) for other in out)):
                continue
            tried.add(same)
            then = profile.copy()
            start = then.book(one.nodes, one.length, one.latest)
            best = self._best_order([*out[:index], *out[index + 1 :]], then, own, slot, [*starts, (one, start)], best)
        return best


def _goes_before(first: MovableReservation, second: MovableReservation) -> bool:
    """Tell whether of two jobs of one shape the first may be put back first without loss, where alpha_t = 1.

    Whichever is put back first takes the earlier of two places; it should be the one whose delay costs more.
    """
    return (
        first.weight > second.weight
        and first.nodes == second.nodes
        and first.length == second.length
        and first.latest <= second.latest
    )
