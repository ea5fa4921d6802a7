"""Closed forms of queueing theory that a simulation must agree with.

One-node jobs: Erlang's delay formula for M/M/c, the Pollaczek-Khinchine formula for M/G/1 (both e.g. L. Kleinrock, Queueing
Systems I, 1975, sections 3.5 and 5.6), and M/G/1 with processor sharing.  Jobs of several nodes: how much of a machine first
come, first served can use, for exponential run times (A. Rumyantsev and E. Morozov, Stability criterion of a multiserver model
with simultaneous service, Annals of Operations Research 252, 2017).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clustermodel.errors import SpecificationError


def erlang_c(servers: int, offered: float) -> float:
    """Return the probability that an M/M/c customer waits.

    Args:
        servers: c.
        offered: arrival rate x mean service time, below c.

    Raises:
        SpecificationError: the queue is not stable.
    """
    from scipy.special import gammaln, logsumexp

    if not 0 < offered < servers:
        raise SpecificationError(f"offered: {offered} is not allowed; it must be > 0 and < {servers} servers")
    counts = np.arange(servers)
    log_terms = counts * np.log(offered) - gammaln(counts + 1)
    log_wait = servers * np.log(offered) - gammaln(servers + 1) + np.log(servers / (servers - offered))
    return float(np.exp(log_wait - logsumexp(np.append(log_terms, log_wait))))


def mmc_mean_wait(servers: int, arrival_rate: float, mean_service_s: float) -> float:
    """Return the mean wait in an M/M/c queue, seconds.

    Args:
        servers: c.
        arrival_rate: customers per second.
        mean_service_s: mean service time, seconds.

    Raises:
        SpecificationError: the queue is not stable.
    """
    offered = arrival_rate * mean_service_s
    return erlang_c(servers, offered) * mean_service_s / (servers - offered)


def mg1_mean_wait(arrival_rate: float, mean_service_s: float, service_variance_s2: float) -> float:
    """Return the mean wait in an M/G/1 queue, seconds: lambda E[S^2] / (2 (1 - rho)).

    Args:
        arrival_rate: customers per second.
        mean_service_s: mean service time, seconds.
        service_variance_s2: its variance, seconds squared.

    Raises:
        SpecificationError: the queue is not stable.
    """
    load = arrival_rate * mean_service_s
    if not 0 < load < 1:
        raise SpecificationError(f"load: {load} is not allowed; it must be > 0 and < 1")
    return arrival_rate * (service_variance_s2 + mean_service_s**2) / (2 * (1 - load))


def mg1_ps_mean_slowdown(load: float) -> float:
    """Return the mean slowdown (response / service time) in an M/G/1 queue with processor sharing: 1 / (1 - rho).

    It is the same for every service time and every distribution of them (L. Kleinrock, Queueing Systems II, 1976,
    section 4.4).

    Args:
        load: rho, arrival rate x mean service time.

    Raises:
        SpecificationError: the queue is not stable.
    """
    if not 0 < load < 1:
        raise SpecificationError(f"load: {load} is not allowed; it must be > 0 and < 1")
    return 1 / (1 - load)


def mg1_ps_mean_response(arrival_rate: float, mean_service_s: float) -> float:
    """Return the mean response time in an M/G/1 queue with processor sharing, seconds: E[S] / (1 - rho).

    Only the mean of the service times counts, as in :func:`mg1_ps_mean_slowdown`.

    Args:
        arrival_rate: customers per second.
        mean_service_s: mean service time, seconds.

    Raises:
        SpecificationError: the queue is not stable.
    """
    return mean_service_s * mg1_ps_mean_slowdown(arrival_rate * mean_service_s)


def multiserver_job_throughput(servers: int, sizes: Mapping[int, float], mean_service_s: float) -> float:
    """Return how many rigid jobs first come, first served completes per second when jobs always wait: 1 / (E[S] E[1/n]).

    It is also the stability limit: the queue is stable for lower arrival rates (Rumyantsev and Morozov 2017, who write
    mu / C).  Sizes are independent of each other and of the service times; those are exponential, with the same mean for
    all sizes; a job takes all its servers at once and gives them back together.

    n is how many jobs run where the queue is a fresh sequence of sizes: the largest n with s_1 + ... + s_n <= c.  So
    P(n >= i) = P(s_1 + ... + s_i <= c), and C = E[1/n] = sum_i (1/i) P(n = i).

    Why: take the c oldest jobs in order of arrival; those that run are the first n of them, n <= c.  As all run times are
    exponential with one mean, the next job to end is any of the n with equal probability, after E[S] / n on average.  Its
    place is closed, and a job with a fresh size joins at the end.  Suppose the sizes were independent before.  What is left
    are c - 1 sizes y; whichever of its places the job of size z that has left had, the jobs beside it were
    those of y that fit into c - z servers, say m; so there were n = m + 1 places it can have had, each with probability
    1 / n: their sum is one, for each y and z.  The sizes after the departure are therefore independent again, with the same
    distribution: that is what departures see for ever.  The mean time between departures is E[S] E[1/n].

    Args:
        servers: c.
        sizes: servers that a job takes -> probability.
        mean_service_s: mean service time E[S], seconds.

    Raises:
        SpecificationError: a size is not a whole number from 1 to c, or the probabilities do not add up to one.
    """
    return 1 / (mean_service_s * _mean_inverse_running(servers, sizes))


def multiserver_job_utilization(servers: int, sizes: Mapping[int, float]) -> float:
    """Return the utilization of a machine on which rigid jobs always wait, under first come, first served: E[s] / (c E[1/n]).

    It is the throughput of :func:`multiserver_job_throughput`, to which the assumptions belong, times what a job needs on
    average, E[s] E[S], per server.  No load above it can be carried: it is 002's rho_max.

    Args:
        servers: c.
        sizes: servers that a job takes -> probability.

    Raises:
        SpecificationError: a size is not a whole number from 1 to c, or the probabilities do not add up to one.
    """
    inverse = _mean_inverse_running(servers, sizes)
    return sum(size * probability for size, probability in sizes.items()) / (servers * inverse)


def _mean_inverse_running(servers: int, sizes: Mapping[int, float]) -> float:
    single = np.zeros(servers + 1)
    for size, probability in sizes.items():
        if size != int(size) or not 1 <= size <= servers:
            raise SpecificationError(f"sizes: {size} is not allowed; it must be a whole number >= 1 and <= {servers} servers")
        if not 0 <= probability <= 1:
            raise SpecificationError(f"sizes: probability {probability} of {size} is not allowed; it must be >= 0 and <= 1")
        single[int(size)] += probability
    if abs(single.sum() - 1) > 1e-9:
        raise SpecificationError(f"sizes: probabilities that sum to {single.sum():g} are not allowed; their sum must be 1")
    at_least = [1.0]  # P(n >= i) from i = 1 on
    total = single
    while len(at_least) <= servers:
        total = np.convolve(total, single)[: servers + 1]
        at_least.append(float(total.sum()))
    return float(np.dot(-np.diff(at_least), 1 / np.arange(1, servers + 1)))
