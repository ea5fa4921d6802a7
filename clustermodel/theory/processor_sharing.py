"""Processor sharing: the limit of short time slices, also where context switches take a share of each slice.

In processor sharing n jobs run at the same time, each at an n-th of the node's speed.  Here the total speed phi(n) may depend
on n: Cohen's generalized processor sharing.  With Poisson arrivals (rate lambda) of jobs with independent run times S of any
distribution, the number of jobs has the product form (Cohen 1979; Kelly 1979, section 3.3, symmetric queues)

    P(n) proportional to prod_{k=1..n} rho / phi(k),    rho = lambda E[S],

so only the mean of S counts, and a job with run time x spends x E[N] / rho in the system on average, whatever x.  The mean
slowdown, response / run time, is therefore E[N] / rho over all jobs and over any selection of jobs by their run times.

Context switches.  A switch takes the share CS of a slice, so a node whose slices all begin with a switch has speed 1 - CS.

* ``charge="every-slice"``: phi(n) = 1 - CS.  The mean slowdown is 1 / (1 - CS - rho).
* ``charge="on-change"``: a job alone on its node continues without switches, phi(1) = 1 and phi(n) = 1 - CS for n >= 2.  With
  r = rho / (1 - CS) the mean slowdown is 1 / ((1 - r) (1 - r + rho)).

:mod:`clustermodel.theory.round_robin` has slices of finite length.

``switch`` is CS, in [0, 1); ``load`` is the arrival rate x the mean run time.  A SpecificationError refuses other values, and a
queue that is not stable, whose load is not below the total speed of many jobs.
"""

from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from clustermodel.errors import SpecificationError
from clustermodel.validation import choice, require, require_number, require_whole

CHARGES = ("on-change", "every-slice")
"""When a context switch is charged, the names of :class:`~clustermodel.machine.context_switch.ContextSwitch`."""


def generalized_ps_mean_slowdown(load: float, rates: npt.ArrayLike) -> float:
    """Return the mean slowdown (response / run time) in M/G generalized processor sharing: E[N] / rho.

    n jobs share the total speed phi(n) equally.  The result holds for every distribution of run times (Cohen 1979).

    Args:
        load: rho, arrival rate x mean run time at speed 1.
        rates: phi(1), phi(2), ..., total speeds, shape ``(n,)``; the last one is that of any larger number of jobs.

    Raises:
        SpecificationError: a rate is not positive, or the queue is not stable: the load is not below the last rate.
    """
    speeds = np.asarray(rates, dtype=float)
    fit = speeds.ndim == 1 and len(speeds) and (np.isfinite(speeds) & (speeds > 0)).all()
    require(fit, "rates", speeds.tolist(), "it must be a sequence of finite numbers > 0")
    load = require_number("load", load, f"> 0 and < {speeds[-1]:g}", lambda rho: 0 < rho < speeds[-1])
    logs = np.concatenate([[0.0], np.cumsum(np.log(load / speeds))])  # of P(n) / P(0), n = 0 ... m
    weights = np.exp(logs - logs.max())
    last, ratio = len(speeds), load / speeds[-1]  # beyond m the weights fall geometrically
    tail = weights[last] / (1 - ratio)
    total = weights[:last].sum() + tail
    jobs = np.dot(np.arange(last), weights[:last]) + tail * (last + ratio / (1 - ratio))
    return float(jobs / total / load)


def mg1_ps_mean_slowdown(load: float, *, switch: float = 0.0, charge: str = "on-change") -> float:
    """Return the mean slowdown (response / run time) on one node that its jobs share in short slices.

    It is 1 / (1 - rho) if context switches take no time (Kleinrock 1976, section 4.4), and the same for every run time and
    every distribution of run times in all cases; the module has the formulas with switches.
    """
    return mgc_ps_mean_slowdown(1, load, switch=switch, charge=charge)


def mgc_ps_mean_slowdown(servers: int, load: float, *, switch: float = 0.0, charge: str = "on-change") -> float:
    """Return the mean slowdown (response / run time) of one-node jobs that share c nodes equally.

    While there are at most c jobs, each has a node; n > c jobs have all nodes, each job an equal share of them.  A job changes
    nodes at no cost.  So phi(n) = min(n, c) until n > c, where every slice begins with a switch.  With ``switch=0`` the number
    of jobs is that of M/M/c.

    Gang scheduling is this queue for one node only.  On several nodes its rows are filled with replicas, in starting order, so
    gangs have unequal shares, and one that runs on its columns in every row does not switch.
    """
    servers = require_whole("servers", servers, at_least=1)
    switch = require_number("switch", switch, "a number >= 0 and < 1, a share of the time slice", lambda share: 0 <= share < 1)
    choice("charge", charge, CHARGES)
    rates = np.minimum(np.arange(1, servers + 2), servers) * 1.0
    rates[0 if charge == "every-slice" else servers :] *= 1 - switch
    return generalized_ps_mean_slowdown(load, rates)


def mg1_ps_mean_response(
    arrival_rate: float, mean_service_s: float, *, switch: float = 0.0, charge: str = "on-change"
) -> float:
    """Return the mean response time on one node that its jobs share in short slices, seconds.

    Only the mean of the run times counts, as in :func:`mg1_ps_mean_slowdown`.
    """
    return mean_service_s * mg1_ps_mean_slowdown(arrival_rate * mean_service_s, switch=switch, charge=charge)


Floats = npt.NDArray[np.float64]


def processor_sharing_responses(submit: npt.ArrayLike, run: npt.ArrayLike, servers: int) -> Floats:
    """Return the response time of each job where n jobs on c servers have the rate min(1, c / n) each.

    Args:
        submit: arrival times, ascending, shape (jobs,), in any unit.
        run: run times alone on a server, >= 0, shape (jobs,), in the same unit.
        servers: c.

    Returns:
        Response times, shape (jobs,), in the same unit.

    Raises:
        SpecificationError: the times are not two vectors of one length, arrivals do not ascend, or a run time is negative.
    """
    servers = require_whole("servers", servers, at_least=1)
    arrivals, runs = np.asarray(submit, dtype=np.float64), np.asarray(run, dtype=np.float64)
    if arrivals.ndim != 1 or arrivals.shape != runs.shape:
        raise SpecificationError(
            f"run: shape {runs.shape} is not allowed; it must be that of submit, {arrivals.shape}, with one dimension"
        )
    if not (np.diff(arrivals) >= 0).all():
        raise SpecificationError("submit: times that do not ascend are not allowed; they must be sorted")
    if not (runs >= 0).all():
        raise SpecificationError("run: a negative time is not allowed; all must be >= 0")
    responses = np.empty_like(arrivals)
    now = served = 0.0  # what a job has been served that has been there all the time
    there: list[tuple[float, int]] = []  # by ``served`` at completion
    for number, (arrival, work) in enumerate([*zip(arrivals.tolist(), runs.tolist(), strict=True), (float("inf"), 0.0)]):
        while there:
            rate = min(1.0, servers / len(there))
            end = now + max(0.0, there[0][0] - served) / rate
            if end > arrival:
                served += (arrival - now) * rate
                break
            now, (served, done) = end, heappop(there)
            responses[done] = end - arrivals[done]
        now = arrival
        heappush(there, (served + work, number))
    return responses
