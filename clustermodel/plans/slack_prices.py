"""Slack-based backfilling (Talby & Feitelson 1999): prices of schedules, reservations with a slack, heuristics.

Symbols are the papers': n processors, p priority, s slack, s0 initial slack, t_i the time by which a job is moved, t_e its
start, CT the present, AWT the average wait time, SF the slack factor (short version, sections 2.1 to 2.3; long version,
sections 4.2 to 4.7).  Their times are seconds, all others ticks.  Section numbers are those of the long version.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum, inf
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from clustermodel.plans.pools import Split
from clustermodel.ticks import TICKS_PER_SECOND

if TYPE_CHECKING:
    from clustermodel.plans.pool_plans import Group
    from clustermodel.plans.trials import State
    from clustermodel.policies.view import QueuedJob

FIRST_SP: Final = 0.5  # SP of a job that has no start yet, as if it were going to wait for the average wait time (section 4.3)
LEAST_SLACK_S: Final = 1.0  # below this slack the fairness factor grows no further: the unit of time of the papers' traces
DIGITS: Final = 12  # of a price: prices that differ only by floating point rounding are equal, so that ties are ties
_NOTHING: Final = 10.0**-DIGITS
OPTIMAL: Final = "optimal"  # the name of the heuristic that tries every order
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

    # `length` is for how long it is expected to hold its nodes, and `split` what it has of each part of the machine.

    __slots__ = (
        "by_start", "end", "group", "initial_slack", "job", "latest", "length", "nodes", "p", "split", "start", "weight",
    )  # fmt: skip

    def __init__(
        self,
        job: QueuedJob,
        group: Group,
        place: tuple[int, Split],
        length: int,
        p: float,
        initial_slack: int,
        weights: Weights,
    ) -> None:
        start, split = place
        # Types are declared: mypyc reads the lambdas below first.
        self.job: QueuedJob = job
        self.group: Group = group
        self.nodes: int = job.nodes
        self.split: Split = split
        self.length: int = length
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
    """A job that is inserted into the plan, or a running one that runs on."""

    job: QueuedJob
    group: Group
    length: int  # ticks
    favour: float  # p^alpha_p, by which the costs of moving other jobs are divided
    split: Split | None = None  # what it has of each part of the machine, if it is running


Moves = Sequence[tuple[SlackReservation, int]]  # jobs that are moved, and their new starts


class Schedule:
    """Moves of waiting jobs, with about what they cost: the exact price takes longer, and is seldom needed."""

    # From `slot` on jobs were taken out, and there the arriving job starts, at the price `own`; `starts` are the new starts of
    # jobs that have moved, and `costs` what these moves cost.  `split` is what the arriving job has, and `state` what the trial
    # has made of the plan; both are kept of the cheapest schedule only.

    __slots__ = ("_about", "_costs", "_own", "_price", "_rounding", "slot", "split", "starts", "state")

    def __init__(self, slot: int, own: float, starts: Moves, costs: list[float]) -> None:
        self.slot, self.starts, self._own, self._costs = slot, starts, own, costs
        about, size = own, abs(own)
        for price in costs:
            about += price
            size += abs(price)
        self._about, self._rounding = about, _ROUNDING * size
        self._price: float | None = None
        self.split: Split = ()
        self.state: State = None

    @property
    def price(self) -> float:
        if self._price is None:
            self._price = total(self._own, self._costs)
        return self._price

    def is_surely_cheaper(self, about: float, gain: float) -> bool:
        """Return whether it is cheaper than a schedule at about this price, in which jobs gain at most ``gain``."""
        return about - self._about > _ROUNDING * (about + 2 * gain) + self._rounding

    def goes_before(self, other: Schedule) -> bool:
        """Return whether it is cheaper, or as cheap and moves fewer jobs, or as many and has an earlier slot."""
        difference = self._about - other._about
        rounding = self._rounding + other._rounding
        if abs(difference) > rounding:
            return difference < 0
        return (self.price, len(self.starts), self.slot) < (other.price, len(other.starts), other.slot)
