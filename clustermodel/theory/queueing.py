"""Closed forms of queueing theory that a simulation of one-node jobs must agree with.

M/M/c: Erlang's delay formula; M/G/1: the Pollaczek-Khinchine formula (both e.g. L. Kleinrock, Queueing Systems I, 1975,
sections 3.5 and 5.6).
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, logsumexp

from clustermodel.errors import SpecificationError


def erlang_c(servers: int, offered: float) -> float:
    """Return the probability that an M/M/c customer waits.

    Args:
        servers: c.
        offered: arrival rate x mean service time, below c.

    Raises:
        SpecificationError: the queue is not stable.
    """
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
