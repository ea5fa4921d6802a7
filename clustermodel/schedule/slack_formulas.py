"""Slack and prices: the formulas of slack-based backfilling (Talby & Feitelson 1999: short version, sections 2.1 to 2.3; long
version, sections 4.2 to 4.7).

Pure functions of numbers, in the papers' symbols: n processors, p priority, s slack, s0 initial slack, t_i the time by which a
job is moved, t_e its start, CT the present, AWT the average wait time, SF the slack factor.  Times are seconds.  Section
numbers are those of the long version.  :mod:`clustermodel.schedule.slack_search` decides which schedules are tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, inf
from typing import Final, NamedTuple

FIRST_SP: Final = 0.5
"""SP of a job that has no start yet, as if it were going to wait for the average wait time (section 4.3)."""
LEAST_SLACK_S: Final = 1.0
"""Slack, seconds, below which the fairness factor grows no further: the unit of time of the papers' traces."""


DIGITS: Final = 12
"""Significant digits of a price: prices that differ only by floating point rounding are equal, so that ties are ties."""
_NOTHING: Final = 10.0**-DIGITS


class Weights(NamedTuple):
    """The weights of the papers, requirement XV, each in [0, 1]."""

    u: float = 1.0
    """alpha_u, of utilization: exponent of the number of processors."""
    t: float = 1.0
    """alpha_t, of time: exponent of the delay."""
    p: float = 1.0
    """alpha_p, of priority: exponent of the ratio of priorities."""
    f: float = 1.0
    """alpha_f, of fairness: exponent of the share of slack that is left.  As printed in the short version; the long version has
    alpha_p x alpha_f."""


def priority(user: float, political: float, scheduler: float) -> float:
    """Return p = (UP + PP + SP) / 3 (section 4.3); minus infinity for a job over quota, whose PP is minus infinity."""
    return (user + political + scheduler) / 3


def scheduler_priority(wait_s: float, awt_s: float) -> float:
    """Return SP = min((t_e - CT) / (2 AWT), 1) (section 4.3).

    Where AWT is 0, every wait is more than twice the average: SP is 1, and 0 for a job that does not wait.
    """
    if wait_s >= 2 * awt_s:
        return 1.0 if wait_s else 0.0
    return wait_s / (2 * awt_s)


def initial_slack(p: float, slack_factor: float, awt_s: float) -> float:
    """Return s0 = (1 - p) x SF x AWT, seconds; infinity for a job over quota (section 4.3)."""
    return inf if p == -inf else (1 - p) * slack_factor * awt_s


def price_of_start(nodes: int, wait_s: float, weights: Weights) -> float:
    """Return what it costs that an arriving job starts only in ``wait_s``: (t_e - CT)^alpha_t x n^alpha_u (section 4.2)."""
    return power(wait_s, weights.t) * power(nodes, weights.u)


def price_of_killing(nodes: int, estimate_s: float, weights: Weights) -> float:
    """Return what is lost when an unfinished job is killed: n^alpha_u x t^alpha_t (section 4.7)."""
    return price_of_start(nodes, estimate_s, weights)


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
    """Return what multiplies t_i^alpha_t in the cost of moving a job: n^alpha_u x p^alpha_p x (s0 / s)^alpha_f.

    A job without initial slack has lost no share of it; one that has lost all counts as if a second were left.
    """
    left = max(slack_s, min(initial_slack_s, LEAST_SLACK_S))
    fairness = initial_slack_s / left if left > 0 else 1.0
    return power(nodes, weights.u) * power(p, weights.p) * power(fairness, weights.f)


def favour(p: float, weights: Weights) -> float:
    """Return p^alpha_p of the job in whose favour others are moved, by which their costs are divided."""
    return power(p, weights.p)


def cost(job_weight: float, move_s: float, favoured: float, alpha_t: float) -> float:
    """Return what it costs to move a job by t_i seconds (short version, section 2.3; long version, section 4.4).

    n^alpha_u x t_i^alpha_t x (p / arriving job's p)^alpha_p x (s0 / s)^alpha_f, negative where t_i < 0.  The search excludes
    moves with t_i > s, which cost infinity.

    Args:
        job_weight: :func:`weight` of the job that is moved.
        move_s: t_i.
        favoured: :func:`favour` of the arriving job.
        alpha_t: weight of time.
    """
    return job_weight * move(move_s, alpha_t) / favoured


def total(own: float, costs: Sequence[float]) -> float:
    """Return the price of a schedule (section 4.2): the arriving job's own and the costs of all moves, in any order."""
    price = fsum((own, *costs))
    if abs(price) <= _NOTHING * fsum((own, *map(abs, costs))):
        return 0.0  # gains and losses cancel out
    return to_digits(price)


def to_digits(value: float) -> float:
    """Return ``value`` with as many digits as a price has."""
    return float(f"{value:.{DIGITS - 1}e}")
