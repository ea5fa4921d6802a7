"""Equipartition of nodes among malleable jobs, and the cost at which a resize stops paying.

Jobs arrive at random (Poisson) and have exponential work; each runs S(n) times as fast on n nodes as on one.  k jobs share c
nodes as equally as whole nodes allow: each has floor(c / k) nodes, and c mod k of them one more, within the least and the most
nodes of a job.  Further jobs wait, first come, first served.  A resize takes no time.  With exponential work nothing but the
number of jobs counts, so that they complete at the total rate phi(k) mu, phi(k) = sum of S over the jobs that have nodes: a
birth-death process, which has the product form of generalized processor sharing
(:func:`~clustermodel.theory.processor_sharing.generalized_ps_mean_slowdown`), with a geometric tail where jobs wait.

With a linear speedup phi(k) = c for every k: M/M/1, and M/M/1 under processor sharing.  The mean response of M/G/1 under
processor sharing, E[S] / (1 - rho) for any distribution of work (Kleinrock 1976, section 4.4), is that of equipartition as far
as shares are equal and no job waits: on many more nodes than there are jobs.

The policy is that of Tucker & Gupta 1989 and McCann et al. 1993.
"""

from math import exp, inf

import numpy as np
import numpy.typing as npt

from clustermodel.errors import SpecificationError
from clustermodel.theory.processor_sharing import generalized_ps_mean_slowdown
from clustermodel.validation import require, require_number, require_whole


def equal_shares(nodes: int, jobs: int, *, least: int = 1, most: int | None = None) -> list[int]:
    """Return the nodes of each of the jobs that have some, in descending order, where all jobs have the same bounds."""
    jobs = min(require_whole("jobs", jobs, at_least=1), nodes // least)
    share, left = divmod(nodes, jobs) if jobs else (0, 0)
    return [min(share + (number < left), nodes if most is None else most) for number in range(jobs)]


def equipartition_rates(speedups: npt.ArrayLike, *, least: int = 1, most: int | None = None) -> list[float]:
    """Return phi(1), phi(2), ..., the total speed of so many jobs, until further jobs wait.

    Args:
        speedups: S(1), ..., S(c), the speed of a job on so many nodes, shape ``(c,)``, where c is the nodes of the machine.
        least: nodes that a job needs.
        most: nodes that a job can use; ``None``: all.
    """
    speeds = np.asarray(speedups, dtype=float)
    fit = speeds.ndim == 1 and len(speeds) > 0 and bool((np.isfinite(speeds) & (speeds > 0)).all())
    require(fit, "speedups", speeds.tolist(), "it must be a sequence of finite numbers > 0, one for each node")
    nodes = len(speeds)
    least = require_whole("least", least, at_least=1)
    most = nodes if most is None else require_whole("most", most, at_least=least)
    if least > nodes:
        raise SpecificationError(f"least: {least} is not allowed; it must be <= {nodes} nodes")
    numbers = range(1, nodes // least + 1)
    return [sum(float(speeds[size - 1]) for size in equal_shares(nodes, jobs, least=least, most=most)) for jobs in numbers]


def equipartition_mean_response(
    arrival_rate: float, mean_work_s: float, speedups: npt.ArrayLike, *, least: int = 1, most: int | None = None
) -> float:
    """Return the mean response of jobs with exponential work under equipartition without costs, seconds.

    ``arrival_rate`` is in jobs per second, ``mean_work_s`` the mean run time where the speed is 1; the rest is as in
    :func:`equipartition_rates`.  A queue that is not stable is refused by a SpecificationError.
    """
    rates = equipartition_rates(speedups, least=least, most=most)
    return mean_work_s * generalized_ps_mean_slowdown(arrival_rate * mean_work_s, rates)


def largest_cost_that_pays_s(mean_rest_s: float, before: float, after: float, *, min_gain: float = 0.0) -> float:
    """Return how long a resize may take that is to end a job earlier on average, seconds; 0 if no cost is low enough.

    A job that has exponential work left, of ``mean_rest_s`` at its present speed S(m) (``before``), ends after d + mean_rest_s
    S(m) / S(n) if it spends d on a resize to the speed S(n) (``after``).  It gains at least the share ``min_gain`` of its rest
    if

        d <= mean_rest_s (1 - S(m) / S(n) - min_gain).

    The rest is exponential whenever it is asked for, so this is exact as long as the job then keeps its nodes.
    """
    for name, speed in (("before", before), ("after", after)):
        require_number(name, speed, "a number > 0", lambda number: 0 < number < inf)
    rest = require_number("mean_rest_s", mean_rest_s, "a number >= 0", lambda mean: 0 <= mean < inf)
    return max(rest * (1 - before / after - min_gain), 0.0)


def pair_mean_response(mean_work_s: float, speedup: float, cost_s: float, *, grows: str = "always") -> float:
    """Return the mean response of two jobs that begin together on two nodes, seconds.

    Each has a node and exponential work of ``mean_work_s`` there.  When the first completes, after ``mean_work_s`` / 2 on
    average, the other may grow to both nodes at a cost, after which it is S(2) (``speedup``) times as fast:

    * ``"never"``: the rest takes E[X] = ``mean_work_s``.
    * ``"always"``: it takes d + E[X] / S(2), which is less if d < E[X] (1 - 1 / S(2)) (:func:`largest_cost_that_pays_s`).
    * ``"if it pays"``: the rest X is known, and the job grows if d + X / S(2) < X, so that it takes
      E[X] - E[max(0, X (1 - 1 / S(2)) - d)] = E[X] (1 - g exp(-d / (g E[X]))), g = 1 - 1 / S(2).
    """
    mean = require_number("mean_work_s", mean_work_s, "a number > 0", lambda number: 0 < number < inf)
    require_number("speedup", speedup, "a number >= 1", lambda number: 1 <= number < inf)
    cost = require_number("cost_s", cost_s, "a number >= 0", lambda number: 0 <= number < inf)
    gain = 1 - 1 / speedup
    rests = {
        "never": mean,
        "always": cost + mean / speedup,
        "if it pays": mean * (1 - gain * exp(-cost / (gain * mean))) if gain else mean,
    }
    require(grows in rests, "grows", grows, f"it must be one of {', '.join(rests)}")
    return mean / 2 + rests[grows] / 2
