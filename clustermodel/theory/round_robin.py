"""Round robin on one node: slices of a finite length T, each of which begins with a context switch of s seconds.

Poisson arrivals with rate lambda; independent run times; the jobs take turns in slices of T, of which T - s are left for work.
A completion ends the slice at once; so does an arrival, after which the next job has its turn, and the job that was cut has its
next slice in the next lap (the simulator's default, ``TimeSlicing(at_events="cut")``).

A switch is charged in every slice, or on change: not in a slice of the job that ran last and completed its switch.  That is a
job alone on the node.  A job's first slice always begins with a switch.

With exponential run times, :func:`mm1_round_robin_mean_response`, no slice length helps: what a slice interrupts is as good as
new, so longer slices only save switches.  With a larger variance,
:func:`~clustermodel.theory.sliced_node.sliced_node_mean_response`, short jobs profit from slices, and there is an optimal
length.

The functions take the ``arrival_rate`` (lambda, jobs per second), the ``mean_service_s`` (1 / mu, seconds), or ``means_s`` (the
mean of an exponential branch of the run times, seconds -> its probability), ``slice_s`` (T, seconds; ``inf`` is allowed),
``switch_s`` (s, seconds, below T) and the ``charge`` (``"on-change"`` or ``"every-slice"``).  They refuse wrong arguments and a
queue that is not stable by a SpecificationError.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, expm1

import numpy as np

from clustermodel.theory.arguments import probabilities
from clustermodel.theory.processor_sharing import CHARGES, generalized_ps_mean_slowdown
from clustermodel.validation import choice, require_number, require_seconds


def mm1_round_robin_mean_response(
    arrival_rate: float, mean_service_s: float, slice_s: float, switch_s: float, *, charge: str = "on-change"
) -> float:
    """Return the mean response time under round robin with exponential run times, seconds; exact.

    Every change of the number n of jobs begins a slice, so the share of time at work, sigma(n), does not depend on how n was
    reached, and n is a birth-and-death process with rates lambda and mu sigma(n).  A slice loses (1 - exp(-lambda s)) / lambda
    to its switch, on average, and works for exp(-lambda s) (1 - exp(-(lambda + mu) (T - s))) / (lambda + mu); on change, a job
    alone has one such slice without an end.  It holds for every MPL >= 2, for which of the jobs has its turn does not matter.
    """
    require_slices(arrival_rate, slice_s, switch_s, charge)
    require_seconds("mean_service_s", mean_service_s, positive=True)
    rate, mu = arrival_rate, 1 / mean_service_s
    shared = _share_at_work(rate, mu, switch_s, slice_s - switch_s)
    alone_share = shared if charge == "every-slice" else _share_at_work(rate, mu, switch_s, float("inf"))
    return mean_service_s * generalized_ps_mean_slowdown(rate * mean_service_s, [alone_share, shared])


def _share_at_work(rate: float, mu: float, switch_s: float, window_s: float) -> float:
    """Return sigma: the share of the time at work while the number of jobs does not change."""
    switching = -expm1(-rate * switch_s) / rate
    working = exp(-rate * switch_s) * -expm1(-(rate + mu) * window_s) / (rate + mu)
    return working / (switching + working)


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
