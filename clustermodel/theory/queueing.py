"""Closed forms of queueing theory with which a simulation must agree.

One-node jobs: Erlang's delay formula for M/M/c, the Pollaczek-Khinchine formula for M/G/1 (both e.g. Kleinrock 1975, sections
3.5 and 5.6), and M/M/1 with a fixed number of users.  Jobs of several nodes are in :mod:`clustermodel.theory.rigid_jobs`, nodes
that are shared in time in :mod:`clustermodel.theory.processor_sharing` and :mod:`clustermodel.theory.round_robin`.

Times are in seconds, rates per second; ``servers`` is c.  A queue that is not stable is refused by a SpecificationError.
"""

import numpy as np

from clustermodel.errors import SpecificationError
from clustermodel.validation import require


def erlang_c(servers: int, offered: float) -> float:
    """Return the probability that an M/M/c customer waits; ``offered`` is arrival rate x mean service time, below c."""
    from scipy.special import gammaln, logsumexp

    require(0 < offered < servers, "offered", float(offered), f"it must be > 0 and < {servers} servers")
    counts = np.arange(servers)
    log_terms = counts * np.log(offered) - gammaln(counts + 1)
    log_wait = servers * np.log(offered) - gammaln(servers + 1) + np.log(servers / (servers - offered))
    return float(np.exp(log_wait - logsumexp(np.append(log_terms, log_wait))))


def mmc_mean_wait(servers: int, arrival_rate: float, mean_service_s: float) -> float:
    """Return the mean wait in an M/M/c queue, seconds."""
    offered = arrival_rate * mean_service_s
    return erlang_c(servers, offered) * mean_service_s / (servers - offered)


def mg1_mean_wait(arrival_rate: float, mean_service_s: float, service_variance_s2: float) -> float:
    """Return the mean wait in an M/G/1 queue, seconds: lambda E[S^2] / (2 (1 - rho))."""
    load = arrival_rate * mean_service_s
    require(0 < load < 1, "load", float(load), "it must be > 0 and < 1")
    return arrival_rate * (service_variance_s2 + mean_service_s**2) / (2 * (1 - load))


def closed_mm1_throughput(users: int, mean_think_s: float, mean_service_s: float) -> float:
    """Return the throughput of a closed M/M/1 queue with a fixed number of users, jobs/s (Kleinrock 1975, section 3.8).

    Each user thinks for an exponential time, submits a job, and waits for its completion: the machine-repair model M/M/1//N.
    With z the mean think time and s the mean service time, the server is idle with probability
    1 / sum over k = 0 ... N of N! / (N - k)! (s / z)^k.  The mean response time is N / throughput - z.
    """
    if users < 1 or not mean_think_s > 0 or not mean_service_s > 0:
        raise SpecificationError(
            f"closed_mm1_throughput: {users} users, {mean_think_s:g} s and {mean_service_s:g} s are not allowed; there must be "
            "at least one user, and both times must be > 0"
        )
    idle = 1.0
    for number in range(1, users + 1):  # the sum for N users is 1 + N s / z times the sum for N - 1 users
        idle /= idle + number * mean_service_s / mean_think_s
    return (1 - idle) / mean_service_s
