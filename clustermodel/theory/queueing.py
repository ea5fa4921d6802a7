"""Closed forms of queueing theory with which a simulation must agree.

One-node jobs: Erlang's delay formula for M/M/c, the Pollaczek-Khinchine formula for M/G/1 (both e.g. Kleinrock 1975, sections
3.5 and 5.6), and M/G/1 with processor sharing.  Jobs of several nodes: the highest utilization under first come, first served,
for exponential run times (Rumyantsev & Morozov 2017).
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

    It is the same for every service time and every distribution of service times (Kleinrock 1976, section 4.4).

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
    """Return the throughput of rigid jobs under first come, first served when jobs always wait, per second: 1 / (E[S] E[1/n]).

    It is also the stability limit: the queue is stable for lower arrival rates (Rumyantsev & Morozov 2017, who write
    mu / C).  Sizes are independent of each other and of the service times; those are exponential, with the same mean for
    all sizes; a job takes all its servers at once and gives them back together.

    n is the number of jobs that run if the queue is a fresh sequence of sizes: the largest n with s_1 + ... + s_n <= c.  So
    P(n >= i) = P(s_1 + ... + s_i <= c), and C = E[1/n] = sum_i (1/i) P(n = i).

    Why: take the c oldest jobs in order of arrival; the first n of them run, n <= c.  As all run times are
    exponential with one mean, the next job to complete is any of the n with equal probability, after E[S] / n on average.  Its
    place is closed, and a job with a fresh size joins at the end.  Suppose the sizes were independent before.  The
    departure leaves c - 1 sizes y.  Whatever the place of the departed job, of size z, the jobs that ran with it were
    those of y that fit into c - z servers, say m.  So it can have had n = m + 1 places, each with probability 1 / n, and
    the sum of these is one for each y and z.  The sizes after the departure are therefore independent again, with the same
    distribution: every departure sees this.  The mean time between departures is E[S] E[1/n].

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

    It is the throughput of :func:`multiserver_job_throughput`, with its assumptions, times the mean work of a job,
    E[s] E[S], per server.  No higher load can be carried: it is rho_max of Zhang et al. 2003.

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
