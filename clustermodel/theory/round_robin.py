"""Round robin on one node: slices of a finite length T, each of which begins with a context switch of s seconds.

Poisson arrivals with rate lambda; independent run times; the jobs take turns in slices of T, of which T - s are left for work.
A completion ends the slice at once.  What an arrival does to the running slice is the rule ``arrivals``:

* ``"cut"``, the simulator's default: the arrival ends the slice, the next job has its turn, and the job that was cut has its
  next slice in the next lap;
* ``"queue"``, the textbook's rule: the running slice continues, and the arriving job joins the tail of the queue of jobs.  With
  ``TimeSlicing(at_events="keep")`` the slice continues too, and jobs take turns by row.

A switch is charged in every slice, or on change: not in a slice of the job that ran last and completed its switch.  That is a
job alone on the node.  A job's first slice always begins with a switch.

What is exact:

================  ===============================  ====================================================================
run times         rule and charge                  function
================  ===============================  ====================================================================
exponential       both rules, both charges         :func:`mm1_round_robin_mean_response`
hyperexponential  ``"queue"``, every slice         :func:`mg1_round_robin_mean_response`
hyperexponential  ``"cut"``, both charges, an MPL  :func:`~clustermodel.theory.sliced_node.sliced_node_mean_response`
================  ===============================  ====================================================================

With exponential run times no slice length helps: what a slice interrupts is as good as new, so longer slices only
save switches.  With a larger variance short jobs profit from slices, and there is an optimal length.

The functions take the ``arrival_rate`` (lambda, jobs per second), the ``mean_service_s`` (1 / mu, seconds), or ``means_s`` (the
mean of an exponential branch of the run times, seconds -> its probability), ``slice_s`` (T, seconds; ``inf`` is allowed),
``switch_s`` (s, seconds, below T), the ``charge`` (``"on-change"`` or ``"every-slice"``), and ``arrivals``.  They refuse wrong
arguments by a SpecificationError, jobs that may need thousands of slices (use processor sharing), and a queue that is not
stable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import exp, expm1
from typing import Final, NamedTuple

import numpy as np

from clustermodel.errors import SpecificationError
from clustermodel.theory.arguments import probabilities
from clustermodel.theory.processor_sharing import CHARGES, generalized_ps_mean_slowdown
from clustermodel.validation import choice, require_number, require_seconds

RULES: Final = ("cut", "queue")
"""What an arrival does to the running slice."""
_NEGLIGIBLE: Final = 1e-12  # share of the jobs that are left out because they need more slices than are counted
_MOST_SLICES: Final = 3_000  # most slices of a job that are counted: the equations are as many


def mm1_round_robin_mean_response(
    arrival_rate: float,
    mean_service_s: float,
    slice_s: float,
    switch_s: float,
    *,
    charge: str = "on-change",
    arrivals: str = "cut",
) -> float:
    """Return the mean response time under round robin with exponential run times, seconds; exact.

    ``"cut"``: every change of the number n of jobs begins a slice, so the share of time at work, sigma(n), does not depend on
    how n was reached, and n is a birth-and-death process with rates lambda and mu sigma(n).  A slice loses (1 - exp(-lambda s))
    / lambda to its switch, on average, and works for exp(-lambda s) (1 - exp(-(lambda + mu) (T - s))) / (lambda + mu); on
    change, a job alone has one such slice without an end.  It holds for every MPL >= 2, for which of the jobs has its turn does
    not matter.

    ``"queue"``, every slice: which job has the next slice does not matter for the number of jobs, so this is the number in
    M/G/1 with service X + s ceil(X / (T - s)), by the Pollaczek-Khinchine formula.  On change: a Markov chain at the beginnings
    of slices, with generating functions.
    """
    require_slices(arrival_rate, slice_s, switch_s, charge)
    require_seconds("mean_service_s", mean_service_s, positive=True)
    choice("arrivals", arrivals, RULES)
    rate, mu, window = arrival_rate, 1 / mean_service_s, slice_s - switch_s
    if arrivals == "queue":
        switching = _Slice.of(rate, mu, switch_s, window)
        alone = switching if charge == "every-slice" else _Slice.of(rate, mu, 0.0, slice_s)
        return _mean_jobs_if_slices_go_on(rate, switching, alone) / rate
    shared = _share_at_work(rate, mu, switch_s, window)
    alone_share = shared if charge == "every-slice" else _share_at_work(rate, mu, switch_s, float("inf"))
    return mean_service_s * generalized_ps_mean_slowdown(rate * mean_service_s, [alone_share, shared])


def _share_at_work(rate: float, mu: float, switch_s: float, window_s: float) -> float:
    """Return sigma: the share of the time at work while the number of jobs does not change."""
    switching = -expm1(-rate * switch_s) / rate
    working = exp(-rate * switch_s) * -expm1(-(rate + mu) * window_s) / (rate + mu)
    return working / (switching + working)


class _Slice(NamedTuple):
    """A slice that no arrival cuts, of a job with exponential run time: moments of its length D, and Laplace transforms."""

    completes: float  # p(c), the probability that the job completes in it
    mean: float  # E[D]
    square: float  # E[D^2]
    mean_if_completed: float  # E[D; c]
    quiet_completed: float  # probability that the job completes and no job arrives
    quiet_expired: float  # probability that the slice expires and no job arrives

    @classmethod
    def of(cls, rate: float, mu: float, switch_s: float, window_s: float) -> _Slice:
        """Return the slice with a switch, then at most ``window_s`` of work."""
        left = exp(-mu * window_s)
        whole = 0.0 if left == 0 else window_s  # an endless window is never used up
        first = (1 - left) / mu - whole * left  # E[X; X < window]
        second = 2 / mu * first - whole**2 * left  # E[X^2; X < window]
        length = switch_s + whole
        mean_if_completed = switch_s * (1 - left) + first
        square = switch_s**2 * (1 - left) + 2 * switch_s * first + second + left * length**2
        quiet = exp(-rate * switch_s)
        both = 0.0 if left == 0 else exp(-(rate + mu) * window_s)
        return cls(
            1 - left,
            mean_if_completed + left * length,
            square,
            mean_if_completed,
            quiet * mu / (rate + mu) * (1 - both),
            quiet * both,
        )


def _mean_jobs_if_slices_go_on(rate: float, switching: _Slice, alone: _Slice) -> float:
    """Return E[N] where arrivals do not cut slices.

    Let x_n be the rate of slices that begin with n jobs and a switch, y that of slices of a job alone that ran last, and e
    that of slices after which the node is empty.  With k(z) = E[z^(arrivals - completions)] of a slice,
    X(z) (1 - k(z)) = y z (k_alone(z) - 1) - e (1 - z), and y = (x_1 quiet_expired) + y alone.quiet_expired, where
    x_1 = (e - y alone.quiet_completed) / quiet_completed.  All rates are relative to e = 1.
    """
    if alone is switching:
        y = 0.0
    else:
        per_empty = switching.quiet_expired / switching.quiet_completed
        y = per_empty / (1 - alone.quiet_expired + alone.quiet_completed * per_empty)
    drift, curve = _derivatives(rate, switching)
    if drift >= 0:
        raise SpecificationError(
            f"arrival_rate: {rate:g} is not allowed; it must be < {switching.completes / switching.mean:g}, or jobs pile up"
        )
    drift_alone, curve_alone = _derivatives(rate, alone)
    # X(z) = f(z) / g(z) with f = y z (k_alone - 1) - (1 - z), g = 1 - k, both 0 at z = 1.
    f1, f2 = y * drift_alone + 1, y * (2 * drift_alone + curve_alone)
    slices = f1 / -drift
    jobs_at_begin = (f2 + slices * curve) / (-2 * drift)
    time = slices * switching.mean + y * alone.mean + 1 / rate
    area = jobs_at_begin * switching.mean + slices * rate * switching.square / 2 + y * (alone.mean + rate * alone.square / 2)
    return area / time


def _derivatives(rate: float, piece: _Slice) -> tuple[float, float]:
    """Return k'(1) and k''(1)."""
    return (
        rate * piece.mean - piece.completes,
        rate**2 * piece.square - 2 * rate * piece.mean_if_completed + 2 * piece.completes,
    )


def mg1_round_robin_mean_response(
    arrival_rate: float, means_s: Mapping[float, float], slice_s: float, switch_s: float
) -> float:
    """Return the mean response time under round robin with hyperexponential run times, seconds; exact but for a cut-off.

    Rule ``"queue"``, a switch in every slice: the model of Sakata et al. 1971.  Let S_k be the share of jobs that need more
    than k slices, D_k the length of slice k + 1 of such a job, g_k = lambda S_k E[D_k], and W_k the mean wait for that slice.
    A job that waits for slice k + 1 waits for the slices of jobs that arrived during its last k laps and are still there, and
    of jobs that it found.  Both are numbers of jobs with independent futures, so their means suffice:

        W_0 = (lambda / 2) sum_m S_m E[D_m^2] + sum_m g_m W_m,
        W_k = sum_{j<k} g_j (W_{k-1-j} + T) + sum_m g_{m+k} (W_m + T)    for k >= 1.

    The mean response time is sum_k S_k (W_k + E[D_k]).  Jobs that need more than k slices are left out where S_k < 1e-12.
    """
    from scipy.linalg import hankel, solve, toeplitz

    require_slices(arrival_rate, slice_s, switch_s, "every-slice")
    means, shares = branches(means_s)
    window = slice_s - switch_s
    most = 1 + int(-means.max() * np.log(_NEGLIGIBLE) / window)
    if most > _MOST_SLICES:
        raise SpecificationError(
            f"slice_s: {slice_s:g} is not allowed; it must be longer, for jobs may need {most:,} slices: use processor sharing"
        )
    x = np.minimum(window / means, 700.0)  # exp(-700) is as good as never
    first = means * -np.expm1(-x)  # E[min(X, window)]
    second = 2 * means**2 * (1 - np.exp(-x) * (1 + x))
    surviving = shares * np.exp(-np.outer(np.arange(most), x))  # by slice and branch
    g = arrival_rate * surviving @ (switch_s + first)
    busy = float(g.sum())
    if busy >= 1:
        raise SpecificationError(
            f"arrival_rate: {arrival_rate:g} is not allowed; it must be < {arrival_rate / busy:g}, or jobs pile up"
        )
    constant = np.full(most, slice_s * busy if most > 1 else 0.0)
    constant[0] = arrival_rate / 2 * float((surviving @ (switch_s**2 + 2 * switch_s * first + second)).sum())
    laps = toeplitz(np.append(0.0, g[:-1]), np.zeros(most))
    waits = solve(np.eye(most) - laps - hankel(g), constant)
    return float(surviving.sum(axis=1) @ waits) + busy / arrival_rate


class OptimalSlice(NamedTuple):
    """The slice length with the lowest mean response time."""

    slice_s: float
    """T, seconds."""
    mean_response_s: float
    """Mean response time at that length, seconds."""


def optimal_slice(
    mean_response: Callable[[float], float], shortest_s: float, longest_s: float, *, grid: int = 25
) -> OptimalSlice:
    """Return the slice length between two bounds with the lowest mean response time.

    Lengths on a logarithmic grid, then a bounded search (Brent) between the neighbours of the best one.

    Args:
        mean_response: slice length in seconds -> mean response time in seconds, a function of this module with all other
            arguments fixed, for instance ``lambda slice_s: mg1_round_robin_mean_response(0.007, {100.0: 1.0}, slice_s, 0.5)``.
            Lengths for which it raises `SpecificationError` are not allowed, for instance because the queue is not stable.
        shortest_s: lower bound, seconds.
        longest_s: upper bound, seconds; it is returned where longer slices are better throughout, as for exponential run times.
        grid: number of lengths on the grid, at least three.

    Raises:
        SpecificationError: the bounds are not in order, or no length of the grid is allowed.
    """
    from scipy.optimize import minimize_scalar

    require_seconds("shortest_s", shortest_s, positive=True)
    if not shortest_s < require_seconds("longest_s", longest_s):
        raise SpecificationError(f"longest_s: {longest_s:g} is not allowed; it must be > {shortest_s:g}, the shortest")
    refused: list[SpecificationError] = []

    def response(length: float) -> float:
        try:
            return mean_response(length)
        except SpecificationError as error:
            refused.append(error)
            return float("inf")

    lengths = np.geomspace(shortest_s, longest_s, max(grid, 3))
    values = [response(float(length)) for length in lengths]
    best = int(np.argmin(values))
    if len(refused) == len(lengths):
        raise refused[-1]
    bounds = (np.log(lengths[max(best - 1, 0)]), np.log(lengths[min(best + 1, len(lengths) - 1)]))
    minimum = minimize_scalar(lambda log: response(exp(log)), bounds=bounds, method="bounded")
    if minimum.fun < values[best]:
        return OptimalSlice(exp(minimum.x), float(minimum.fun))
    return OptimalSlice(float(lengths[best]), float(values[best]))


def branches(means_s: Mapping[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Return means, seconds, and probabilities of the branches of a hyperexponential distribution, shapes ``(branches,)``."""
    shares = probabilities("means_s", means_s)
    means = [require_seconds("means_s", mean, positive=True) for mean in shares]
    return np.array(means), np.array(list(shares.values()))


def require_slices(arrival_rate: float, slice_s: float, switch_s: float, charge: str) -> None:
    """Refuse wrong arguments that the functions of round robin have in common."""
    require_number("arrival_rate", arrival_rate, "a finite number > 0", lambda rate: 0 < rate < float("inf"))
    require_number("slice_s", slice_s, "a number of seconds > 0", lambda length: length > 0)
    require_number("switch_s", switch_s, f"a number of seconds >= 0 and < {slice_s:g}, the slice", lambda s: 0 <= s < slice_s)
    choice("charge", charge, CHARGES)
