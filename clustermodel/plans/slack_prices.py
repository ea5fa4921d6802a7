"""Slack-based backfilling (Talby & Feitelson 1999): prices, reservations with a slack, the search for the cheapest schedule.

Symbols are the papers': n processors, p priority, s slack, s0 initial slack, t_i the time by which a job is moved, t_e its
start, CT the present, AWT the average wait time, SF the slack factor (short version, sections 2.1 to 2.3; long version,
sections 4.2 to 4.7).  Their times are seconds, all others ticks.  Section numbers are those of the long version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import fsum, inf
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from clustermodel.node_set import bisect_left, bisect_right
from clustermodel.plans.profile import Profile, Request
from clustermodel.ticks import TICKS_PER_SECOND

if TYPE_CHECKING:
    from clustermodel.policies.view import QueuedJob

FIRST_SP: Final = 0.5  # SP of a job that has no start yet, as if it were going to wait for the average wait time (section 4.3)
LEAST_SLACK_S: Final = 1.0  # below this slack the fairness factor grows no further: the unit of time of the papers' traces
DIGITS: Final = 12  # of a price: prices that differ only by floating point rounding are equal, so that ties are ties
_NOTHING: Final = 10.0**-DIGITS
ALL_SIZES: Final = (0, 2**60)  # the least and the largest; a machine has fewer nodes
OPTIMAL: Final = "optimal"  # the name of the heuristic that tries every order
MOST_PERMUTED: Final = 7  # jobs that :meth:`Search.optimal` puts back in every order: 5,040 of them
_ROUNDING: Final = 10.0 ** (1 - DIGITS)
"""By how much, relative to the sum of all costs without signs, a price and a sum of floats differ at most."""


class Weights(NamedTuple):
    """The weights of the papers, requirement XV, each in [0, 1]."""

    u: float = 1.0  # alpha_u, of utilization: exponent of the number of processors
    t: float = 1.0  # alpha_t, of time: exponent of the delay
    p: float = 1.0  # alpha_p, of priority: exponent of the ratio of priorities
    f: float = 1.0
    """alpha_f, of fairness: exponent of the share of slack that is left.  As printed in the short version; the long version has
    alpha_p x alpha_f."""


def priority(user: float, political: float, scheduler: float) -> float:
    """Return p = (UP + PP + SP) / 3 (section 4.3); minus infinity for a job over quota, whose PP is minus infinity."""
    return (user + political + scheduler) / 3


def scheduler_priority(wait_s: float, awt_s: float) -> float:
    """Return SP = min((t_e - CT) / (2 AWT), 1) (section 4.3)."""
    if wait_s >= 2 * awt_s:
        return 1.0 if wait_s else 0.0  # where AWT is 0, every wait is more than twice the average
    return wait_s / (2 * awt_s)


def initial_slack(p: float, slack_factor: float, awt_s: float) -> float:
    """Return s0 = (1 - p) x SF x AWT, seconds; infinity for a job over quota (section 4.3)."""
    return inf if p == -inf else (1 - p) * slack_factor * awt_s


def price_of_start(nodes: int, wait_s: float, weights: Weights) -> float:
    """Return (t_e - CT)^alpha_t x n^alpha_u, what it costs that an arriving job starts only in ``wait_s`` (section 4.2)."""
    # Section 4.7: to kill an unfinished job loses the same, with its estimate in place of the wait.
    return power(wait_s, weights.t) * power(nodes, weights.u)


def power(base: float, exponent: float) -> float:
    """Return ``base`` to the power of a weight, which is 1 unless the user says otherwise."""
    if exponent == 1:
        return base
    raised: float = base**exponent
    return raised


def move(seconds: float, alpha_t: float) -> float:
    """Return t_i^alpha_t, negative for a job that is moved up: a move up by t gains what a delay by t costs."""
    if not seconds:
        return seconds
    return power(seconds, alpha_t) if seconds > 0 else -power(-seconds, alpha_t)


def weight(nodes: int, p: float, initial_slack_s: float, slack_s: float, weights: Weights) -> float:
    """Return what multiplies t_i^alpha_t in the cost of moving a job: n^alpha_u x p^alpha_p x (s0 / s)^alpha_f."""
    # A job without initial slack has lost no share of it; one that has lost all counts as if a second were left.
    left = max(slack_s, min(initial_slack_s, LEAST_SLACK_S))
    fairness = initial_slack_s / left if initial_slack_s > 0 else 1.0
    return power(nodes, weights.u) * power(p, weights.p) * power(fairness, weights.f)


def favour(p: float, weights: Weights) -> float:
    """Return p^alpha_p of the job in whose favour others are moved, by which their costs are divided."""
    return power(p, weights.p)


def cost(job_weight: float, move_s: float, favoured: float, alpha_t: float) -> float:
    """Return what it costs to move a job by t_i seconds (short version, section 2.3; long version, section 4.4)."""
    # n^alpha_u x t_i^alpha_t x (p / arriving job's p)^alpha_p x (s0 / s)^alpha_f, negative where t_i < 0
    return job_weight * (move_s if alpha_t == 1 else move(move_s, alpha_t)) / favoured


def total(own: float, costs: Sequence[float]) -> float:
    """Return the price of a schedule (section 4.2): the arriving job's own and the costs of all moves, in any order."""
    price = fsum((own, *costs))
    if abs(price) <= _NOTHING * fsum((own, *map(abs, costs))):
        return 0.0  # gains and losses cancel out
    return to_digits(price)


def to_digits(value: float) -> float:
    """Return ``value`` with as many digits as a price has."""
    return float(f"{value:.{DIGITS - 1}e}")


class SlackReservation:
    """The reservation of a waiting job, which may move to a later start as far as its slack allows; times in ticks."""

    __slots__ = ("by_start", "end", "initial_slack", "job", "latest", "length", "nodes", "p", "start", "weight")

    def __init__(self, job: QueuedJob, start: int, p: float, initial_slack: int, weights: Weights) -> None:
        # Types are declared: mypyc reads the lambdas below first.
        self.job: QueuedJob = job
        self.nodes: int = job.nodes
        self.length: int = job.estimate
        self.p: float = p
        self.initial_slack: int = initial_slack
        self.latest: int = start + initial_slack  # latest start, ticks: t_e + s; a schedule with a later one costs infinity
        self.move_to(start, weights)

    @property
    def slack(self) -> int:
        """s, ticks: by how much the job may still be delayed."""
        return self.latest - self.start

    @property
    def arrival(self) -> tuple[int, int]:
        """Sorting key: order of submission."""
        return self.job.submit, self.job.id

    def may_follow(self, other: SlackReservation) -> bool:
        """Return whether another job of the same shape may be put back before this one without loss, where alpha_t = 1."""
        same_shape = (other.nodes, other.length) == (self.nodes, self.length)
        return same_shape and other.weight > self.weight and other.latest <= self.latest

    def move_to(self, start: int, weights: Weights) -> None:
        """Move the job to another start; if that is later than its latest start, no further delay is allowed."""
        self.start: int = start
        self.end: int = start + self.length
        self.by_start: tuple[int, int, int] = (start, self.job.submit, self.job.id)  # sorting key of the plan
        self.latest = max(self.latest, start)
        s0, s = self.initial_slack / TICKS_PER_SECOND, (self.latest - start) / TICKS_PER_SECOND
        self.weight: float = weight(self.nodes, self.p, s0, s, weights)  # what multiplies t_i^alpha_t in the cost of a move


by_start: Final = attrgetter("by_start")
"""Sorting key of the plan: ascending start, then order of submission."""


HEURISTICS: Final[dict[str, Callable[[SlackReservation], Any] | None]] = {
    "ast": by_start,
    "aat": lambda reservation: reservation.arrival,
    "du": lambda reservation: (-reservation.nodes * reservation.length, *reservation.arrival),
    # The cost of a delay by one second is the weight, up to a common factor, and infinite without a second of slack.
    "dc": lambda reservation: (
        -inf if reservation.slack < TICKS_PER_SECOND else -to_digits(reservation.weight),
        *reservation.arrival,
    ),
    "dp": lambda reservation: (-to_digits(reservation.p), *reservation.arrival),
    OPTIMAL: None,
}
"""In which order jobs are put back (section 4.6): ascending scheduled time, ascending arrival time, descending utilization,
cost or priority; equals in order of submission.  ``None`` tries every order."""


class ArrivingJob(NamedTuple):
    """A job that is inserted into the plan."""

    nodes: int
    length: int  # estimate, ticks
    favour: float  # p^alpha_p, by which the costs of moving other jobs are divided


NO_JOB: Final = ArrivingJob(0, 0, 1.0)
"""The dummy of *remove*."""
Moves = Sequence[tuple[SlackReservation, int]]  # jobs that are moved, and their new starts
Trial = tuple[int, int]  # how many jobs stay, the first of the plan, and the slot
Sizes = tuple[int, int]  # the least and the largest


class Priced:
    """Moves of waiting jobs, with about what they cost: the exact price takes longer, and is seldom needed."""

    # From `slot` on jobs were taken out, and there the arriving job starts, at the price `own`; `starts` are the new starts of
    # jobs that have moved, and `costs` what these moves cost.

    __slots__ = ("_about", "_costs", "_own", "_price", "_rounding", "slot", "starts")

    def __init__(self, slot: int, own: float, starts: Moves, costs: list[float]) -> None:
        self.slot, self.starts, self._own, self._costs = slot, starts, own, costs
        about, size = own, abs(own)
        for price in costs:
            about += price
            size += abs(price)
        self._about, self._rounding = about, _ROUNDING * size
        self._price: float | None = None

    @property
    def price(self) -> float:
        if self._price is None:
            self._price = total(self._own, self._costs)
        return self._price

    def is_surely_cheaper(self, about: float, gain: float) -> bool:
        """Return whether it is cheaper than a schedule at about this price, in which jobs gain at most ``gain``."""
        return about - self._about > _ROUNDING * (about + 2 * gain) + self._rounding

    def goes_before(self, other: Priced) -> bool:
        """Return whether it is cheaper, or as cheap and moves fewer jobs, or as many and has an earlier slot."""
        difference = self._about - other._about
        rounding = self._rounding + other._rounding
        if abs(difference) > rounding:
            return difference < 0
        return (self.price, len(self.starts), self.slot) < (other.price, len(other.starts), other.slot)


class Schedule(Priced):
    """A schedule that was tried; ``profile`` has all jobs in it."""

    __slots__ = ("profile",)

    def __init__(self, slot: int, own: float, starts: Moves, costs: list[float], profile: Profile) -> None:
        Priced.__init__(self, slot, own, starts, costs)
        self.profile = profile


class Search:
    """One search for the cheapest schedule."""

    # At each slot, it takes out the waiting jobs that are scheduled at or after it, puts the arriving job there, puts the
    # others back at their earliest times in the order of a heuristic, and prices the result (sections 4.2 to 4.6).
    # The plan comes by start; `arriving` is None for the dummy of *remove*, which takes no time.  The profile lacks the nodes
    # of the plan and those in use now: nothing else that begins later has any.

    def __init__(
        self, profile: Profile, plan: list[SlackReservation], weights: Weights, now: int, arriving: ArrivingJob | None
    ) -> None:
        self._profile, self._plan, self._weights, self._now, self._arriving = profile, plan, weights, now, arriving
        self._favour = (arriving or NO_JOB).favour
        self._others: Sequence[SlackReservation] = ()

    def _planned(self) -> list[int]:
        return [reservation.start for reservation in self._plan]

    def cheapest(
        self,
        slots: Iterable[int] | None = None,
        ranked: Sequence[SlackReservation] | None = None,
        unsettled: list[int] | None = None,
    ) -> Schedule | None:
        """Return the cheapest schedule that puts jobs back in the order of ``ranked``, by default (faster) of their starts.

        Slots are all of the profile and the plan, or without an arriving job the starts of the plan, unless some are given;
        ``unsettled`` is what that method returned.
        """
        if self._arriving is not None and ranked is None:
            return self._cheapest_by_start(slots, self._arriving, self.unsettled() if unsettled is None else unsettled)
        if ranked is None:
            ranked = self._plan
        best: Schedule | None = None
        for slot, profile, own in self._places(slots):
            taken = [reservation for reservation in ranked if reservation.start >= slot]
            best = _cheaper(self._put_back(taken, profile, own, slot), best)
        return best

    def cheapest_in_place(self, ranked: Sequence[SlackReservation], sizes: Sizes = ALL_SIZES) -> Schedule | None:
        """Return the cheapest schedule, without an arriving job, that moves one job up after the other from where they are.

        Only a job of ``sizes`` can be the first to move; ``None`` if none can.
        """
        least, largest = sizes
        first = next((k for k, job in enumerate(ranked) if least <= job.nodes <= largest), None)
        if first is None:
            return None
        best: Schedule | None = None
        same_until = -1
        for slot in self._planned():
            if slot <= same_until:
                continue  # of the jobs that stay now as well, none found another place
            profile = self._profile.copy()  # it begins now
            pulled: list[tuple[SlackReservation, int]] = []
            for job in ranked[first:]:
                if job.start >= slot and (pulled or least <= job.nodes <= largest):
                    start = profile.pull(job.start, job.length, job.nodes)
                    if start < job.start:
                        pulled.append((job, start))
            if not pulled:
                break
            best = _cheaper(self._priced(0.0, slot, pulled, profile), best)
            same_until = min([job.start for job, _ in pulled])
        return best

    def cheapest_shifted(self, slots: Iterable[int] | None, ranked: Sequence[SlackReservation]) -> Schedule | None:
        """Return the cheapest schedule that delays jobs from a slot on by the arriving job's estimate and compresses them."""
        # Compressing moves one job up after the other, in the order of `ranked`, to the earliest time at or after the slot
        # (short version, section 2.4; long version, section 4.5): before it, the paper assumes, the schedule was optimal.
        assert self._arriving is not None
        delay, planned = self._arriving.length, self._planned()
        best: Schedule | None = None
        for slot, profile, own in self._places(slots):
            for reservation in self._plan[bisect_left(planned, slot) :]:
                profile.reserve(reservation.start + delay, reservation.end + delay, reservation.nodes)
            best = _cheaper(self._compressed(ranked, profile, own, slot, delay), best)
        return best

    def _compressed(
        self, ranked: Sequence[SlackReservation], profile: Profile, own: float, slot: int, delay: int
    ) -> Schedule | None:
        """Delay jobs and move them up in turn, not before the slot; return ``None`` as soon as one would start too late."""
        moves: list[tuple[SlackReservation, int]] = []
        for reservation in ranked:
            if reservation.start < slot:
                continue
            place = reservation.start + delay
            start = profile.earlier(reservation.nodes, reservation.length, place, slot)
            if start > reservation.latest:
                return None
            if start < place:
                profile.move_up(place, start, reservation.length, reservation.nodes)
            if start != reservation.start:
                moves.append((reservation, start))
        return self._priced(own, slot, moves, profile)

    def unsettled(self, sizes: Sizes = ALL_SIZES) -> list[int]:
        """Return which jobs of the plan, of those of ``sizes``, could start earlier while the others keep their places."""
        least, largest = sizes
        return [
            position
            for position, job in enumerate(self._plan)
            if least <= job.nodes <= largest and self._profile.earlier(job.nodes, job.length, job.start, 0) < job.start
        ]

    def _cheapest_by_start(self, slots: Iterable[int] | None, arriving: ArrivingJob, unsettled: list[int]) -> Schedule | None:
        """Return the cheapest schedule that puts jobs back in the order of their starts."""
        # The jobs that stay and those that are put back are then the beginning and the end of one sequence.  So a trial can
        # begin with the first job that does not return to its place: one that could start earlier without the arriving job,
        # too, or one that the arriving job leaves too few nodes.
        plan, planned, jobs = self._plan, self._planned(), len(self._plan)
        settled_from = unsettled[-1] + 1 if unsettled else 0
        fitting, crowded_from = self._fitting(slots, arriving)
        length = arriving.length
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
        requests, weights = _requests(plan), [job.weight for job in plan]
        is_linear, unit = self._weights.t == 1, self._favour * TICKS_PER_SECOND
        gain = sum(weights) * (planned[-1] - self._now) / unit if plan else 0.0  # at most
        best: Schedule | None = None
        for first, slot, profile, own in self._begun(trials):
            # Before the first job that leaves its place no node is freed for others, which could not start earlier so far.
            since = planned[first] if settled_from <= first < jobs else 0
            starts = profile.book_all(requests[first:], since)
            if len(starts) < jobs - first:
                continue
            if best is not None and is_linear:
                costs = 0.0
                for weight_of_job, start, before in zip(weights[first:], starts, planned[first:]):  # noqa: B905
                    costs += weight_of_job * (start - before)
                if best.is_surely_cheaper(own + costs / unit, gain):
                    continue
            best = _cheaper(self._moved(plan[first:], starts, profile, own, slot), best)
        return best

    def _fitting(self, slots: Iterable[int] | None, arriving: ArrivingJob) -> tuple[list[int], list[int]]:
        """Return the slots, ascending, where the arriving job fits with the jobs before them in place, by default of all slots.

        Also return, for each position in the plan and its end, which job from there on is the first at whose start it does not
        fit with that job and those before in place.
        """
        # The jobs before a slot only end after it: where the arriving one fits at the slot, it fits for as long as it takes.
        plan, nodes, times, free = self._plan, arriving.nodes, self._profile.times(), self._profile.free()
        fitting = {times[k] for k, left in enumerate(free) if left >= nodes}
        crowded = len(plan)
        crowded_from = [crowded]
        left, before = 0, -1  # `left`: nodes that are free without the jobs from a position on
        for position in range(len(plan) - 1, -1, -1):
            job = plan[position]
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

    def _begun(self, trials: list[Trial]) -> Iterator[tuple[int, int, Profile, float]]:
        """Yield each trial, first where most jobs stay, with the profile of these and the arriving one, and its price."""
        plan, profile, now, weights = self._plan, self._profile.copy(), self._now, self._weights
        nodes, length, _ = self._arriving or NO_JOB
        position = len(plan)
        for stay, slot in sorted(trials, reverse=True):
            while position > stay:
                position -= 1
                job = plan[position]
                profile.release(job.start, job.end, job.nodes)
            trial, own = profile.copy(), 0.0
            if nodes:
                trial.overbook(slot, slot + length, nodes)
                own = price_of_start(nodes, (slot - now) / TICKS_PER_SECOND, weights)
            yield stay, slot, trial, own

    def _places(self, slots: Iterable[int] | None) -> Iterator[tuple[int, Profile, float]]:
        """Yield the slots where the arriving job fits, with the profile of it and the jobs that stay, and its price there."""
        arriving, planned = self._arriving, self._planned()
        if arriving is not None:
            slots, _ = self._fitting(slots, arriving)
        elif slots is None:
            slots = planned
        for _, slot, profile, own in self._begun([(bisect_left(planned, slot), slot) for slot in dict.fromkeys(slots)]):
            yield slot, profile, own

    def _put_back(
        self, taken: list[SlackReservation], profile: Profile, own: float, slot: int, moves: Moves = ()
    ) -> Schedule | None:
        """Put jobs back in their order, after ``moves`` of others; return ``None`` as soon as one would start too late."""
        starts = profile.book_all(_requests(taken))
        return self._moved(taken, starts, profile, own, slot, moves) if len(starts) == len(taken) else None

    def _moved(
        self, taken: list[SlackReservation], starts: list[int], profile: Profile, own: float, slot: int, moves: Moves = ()
    ) -> Schedule:
        """Return the schedule in which jobs have been put back at these starts, after ``moves`` of others."""
        moved = [(taken[k], start) for k, start in enumerate(starts) if start != taken[k].start]
        return self._priced(own, slot, [*moves, *moved], profile)

    def _priced(self, own: float, slot: int, moves: Moves, profile: Profile) -> Schedule:
        alpha_t, favour = self._weights.t, self._favour
        costs = [cost(job.weight, (start - job.start) / TICKS_PER_SECOND, favour, alpha_t) for job, start in moves]
        return Schedule(slot, own, moves, costs, profile)

    def optimal(self, slots: Sequence[int] | None = None) -> Schedule | None:
        """Return the cheapest schedule over all orders of putting jobs back; ``None`` if all cost infinity."""
        # Orders of the first MOST_PERMUTED jobs are tried depth first.  A beginning of an order is given up when it costs at
        # least as much as the best schedule so far even if each of the jobs still out were alone in what is left.
        best = self.cheapest(slots)
        for slot, profile, own in self._places(slots):
            taken = [reservation for reservation in self._plan if reservation.start >= slot]
            self._others = taken[MOST_PERMUTED:]
            best = self._best_order(taken[:MOST_PERMUTED], profile, own, slot, [], best)
        return best

    def _best_order(
        self,
        out: list[SlackReservation],
        profile: Profile,
        own: float,
        slot: int,
        moves: Moves,
        best: Schedule | None,
    ) -> Schedule | None:
        rest = [*out, *self._others]
        alone = list(moves)
        for reservation in rest:
            start = profile.earliest(reservation.nodes, reservation.length)
            if start > reservation.latest:
                return best
            if start != reservation.start:
                alone.append((reservation, start))
        bound = self._priced(own, slot, alone, profile)
        if best is not None and not bound.goes_before(best):
            return best
        if not out or len(rest) == 1:
            return _cheaper(self._put_back(rest, profile, own, slot, moves), best)
        tried: set[tuple[int, int, int, int, float]] = set()
        for index, reservation in enumerate(out):
            # Of jobs that are the same in all that counts, the first is put back first.
            same = (reservation.nodes, reservation.length, reservation.start, reservation.latest, reservation.weight)
            if same in tried or (self._weights.t == 1 and any(map(reservation.may_follow, out))):
                continue
            tried.add(same)
            then = profile.copy()
            start = then.book(reservation.nodes, reservation.length, reservation.latest)
            with_this = moves if start == reservation.start else [*moves, (reservation, start)]
            best = self._best_order([*out[:index], *out[index + 1 :]], then, own, slot, with_this, best)
        return best


def _requests(jobs: Iterable[SlackReservation]) -> list[Request]:
    return [(job.nodes, job.length, job.latest) for job in jobs]


def _cheaper(found: Schedule | None, best: Schedule | None) -> Schedule | None:
    """Return the better of two schedules, the second of equal ones; ``None`` costs infinity."""
    return found if found is not None and (best is None or found.goes_before(best)) else best
