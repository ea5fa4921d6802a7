"""What a schedule costs: the formulas of slack-based backfilling (000, sections 2.1 to 2.3; 001, sections 4.2 to 4.7).

Pure functions of numbers, in the papers' symbols: n processors, p priority, s slack, s0 initial slack, t_i by how much
a job is moved, t_e its start, CT the present, AWT the average wait time, SF the slack factor.  Times are seconds.  Which
schedules are tried, and the choice, are :mod:`clustermodel.policies.slack`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, inf
from typing import Final, NamedTuple

FIRST_SP: Final = 0.5
"""SP of a job that has no start yet: as if it were going to wait for the average wait time (001, section 4.3)."""
LEAST_SLACK_S: Final = 1.0
"""Slack, seconds, below which the fairness factor grows no further: the unit of time of the papers' traces."""


DIGITS: Final = 12
"""Significant digits of a price: what differs only by the rounding of floating point numbers is equal, and ties are ties."""
_NOTHING: Final = 10.0**-DIGITS


class Weights(NamedTuple):
    """The weights of 001, requirement XV, each in [0, 1]."""

    u: float = 1.0
    """alpha_u, of utilization: exponent of the number of processors."""
    t: float = 1.0
    """alpha_t, of time: exponent of the delay."""
    p: float = 1.0
    """alpha_p, of priority: exponent of the ratio of priorities."""
    f: float = 1.0
    """alpha_f, of fairness: exponent of the share of slack that is left.  As printed in 000; 001 has alpha_p x alpha_f."""


def priority(user: float, political: float, scheduler: float) -> float:
    """Return p = (UP + PP + SP) / 3 (001, section 4.3); minus infinity for a job over quota, whose PP is minus infinity."""
    return (user + political + scheduler) / 3


def scheduler_priority(wait_s: float, awt_s: float) -> float:
    """Return SP = min((t_e - CT) / (2 AWT), 1) (001, section 4.3).

    Where AWT is 0, every wait is more than twice the average: SP is 1, and 0 for a job that does not wait.
    """
    if wait_s >= 2 * awt_s:
        return 1.0 if wait_s else 0.0
    return wait_s / (2 * awt_s)


def initial_slack(p: float, slack_factor: float, awt_s: float) -> float:
    """Return s0 = (1 - p) x SF x AWT, seconds; infinity for a job over quota (001, section 4.3)."""
    return inf if p == -inf else (1 - p) * slack_factor * awt_s


def price_of_start(nodes: int, wait_s: float, weights: Weights) -> float:
    """Return what it costs that a new job starts only in ``wait_s``: (t_e - CT)^alpha_t x n^alpha_u (001, section 4.2)."""
    own: float = wait_s**weights.t * nodes**weights.u
    return own


def price_of_killing(nodes: int, estimate_s: float, weights: Weights) -> float:
    """Return what is lost when an unfinished job is killed: n^alpha_u x t^alpha_t (001, section 4.7)."""
    return price_of_start(nodes, estimate_s, weights)


def move(seconds: float, weights: Weights) -> float:
    """Return t_i^alpha_t, negative for a job that is moved up: a move up by t gains what a delay by t costs."""
    if weights.t == 1 or not seconds:
        return seconds
    size: float = abs(seconds) ** weights.t
    return size if seconds > 0 else -size


def weight(nodes: int, p: float, initial_slack_s: float, slack_s: float, weights: Weights) -> float:
    """Return what multiplies t_i^alpha_t in the cost of moving a job: n^alpha_u x p^alpha_p x (s0 / s)^alpha_f.

    A job without initial slack has lost no share of it; one that has lost all counts as if a second were left.
    """
    left = max(slack_s, min(initial_slack_s, LEAST_SLACK_S))
    fairness = initial_slack_s / left if left > 0 else 1.0
    of_job: float = nodes**weights.u * p**weights.p * fairness**weights.f
    return of_job


def favour(p: float, weights: Weights) -> float:
    """Return p^alpha_p of the job in whose favour others are moved, by which their costs are divided."""
    of_newcomer: float = p**weights.p
    return of_newcomer


def cost(
    nodes: int, move_s: float, p: float, initial_slack_s: float, slack_s: float, *, newcomer_p: float, weights: Weights
) -> float:
    """Return what it costs to move a job by t_i seconds in favour of another (000, section 2.3; 001, section 4.4).

    n^alpha_u x t_i^alpha_t x (p / newcomer's p)^alpha_p x (s0 / s)^alpha_f, infinity where t_i > s, negative where t_i < 0.
    """
    if move_s > slack_s:
        return inf
    return weight(nodes, p, initial_slack_s, slack_s, weights) * move(move_s, weights) / favour(newcomer_p, weights)


def total(own: float, costs: Sequence[float]) -> float:
    """Return the price of a schedule (001, section 4.2): the newcomer's own and the costs of all moves, in any order."""
    price = fsum((own, *costs))
    if abs(price) <= _NOTHING * fsum((own, *map(abs, costs))):
        return 0.0  # gains and losses cancel out
    return to_digits(price)


def to_digits(value: float) -> float:
    """Return ``value`` with as many digits as a price has."""
    return float(f"{value:.{DIGITS - 1}e}")
