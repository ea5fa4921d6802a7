"""Rigid jobs under first come, first served: saturation throughput and mean response time (the multiserver-job model).

A rigid job takes all its servers at once and gives them back together.  Jobs arrive at random (Poisson), sizes are independent
of each other, and service times are exponential with a mean that may differ by size.

*Saturated system.*  If jobs always wait, the state is (the jobs in service, the size of the first waiting job).  The sizes of
the jobs behind it are independent of all that has happened: each is drawn when the job becomes the first.  The rate of
completions of this Markov chain is the saturation throughput lambda*, and the queue is stable for lower arrival rates
(Rumyantsev & Morozov 2017; Grosof et al. 2020; Grosof et al. 2023).

*Mean response time.*  The number of jobs behind the first waiting one is the level of a quasi-birth-death process whose
phases are the states of the saturated system, so its stationary distribution is matrix-geometric (Latouche & Ramaswami 1999):
:func:`fcfs_mean_response` is exact.  :func:`reset_marc_mean_response` is the asymptotic formula of Grosof et al. 2023.

The functions take the number ``servers`` (c), the ``arrival_rate`` (lambda, jobs per second), ``sizes`` (servers that a job
takes -> probability), and ``mean_service_s`` (seconds, of all sizes or by size).  They refuse by a SpecificationError a size
that is not a whole number from 1 to c, probabilities that do not add up to one, a mean that is missing or not positive, a queue
that is not stable, and a chain of more than 50,000 states (:func:`fcfs_mean_response`: 1,500), which equal means do not need
for the throughput.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from clustermodel.errors import SpecificationError
from clustermodel.theory.arguments import job_sizes, means_by_size
from clustermodel.theory.matrix_geometric import first_passage, stationary
from clustermodel.validation import require

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = npt.NDArray[np.float64]

_MOST_STATES: Final = 50_000  # largest number of states of a sparse system of equations here
_MOST_PHASES: Final = 1_500  # largest number of phases, for which dense matrices are multiplied


class _Classes(NamedTuple):
    """The sizes that occur, ascending, with their probabilities and service rates."""

    servers: int
    sizes: tuple[int, ...]
    probabilities: tuple[float, ...]
    rates: tuple[float, ...]


class _Chain(NamedTuple):
    """Phases (jobs in service by class, class of the first waiting job) and how they follow each other."""

    # In a *blocked* phase the first waiting job does not fit, and time passes until a completion.  In the others it starts.

    in_service: list[tuple[int, ...]]  # all sets of jobs that fit into the machine, as numbers of jobs by class
    starts: csr_array[np.float64]
    """Probabilities of the phase after the start of the first waiting job, shape ``(phases, phases)``; the phase of the set
    number n and class h is number n x classes + h."""
    completions: csr_array[np.float64]
    """Rates of the completions, per second, shape ``(phases, phases)``; zero in phases that are not blocked."""
    after_start: npt.NDArray[np.int64]
    """Number of the set in service after the start, shape ``(phases,)``; -1 in blocked phases."""
    rates: Floats  # rate of completions while a set is in service, per second, shape ``(sets,)``
    jobs: Floats  # number of jobs of a set, shape ``(sets,)``


def multiserver_job_throughput(servers: int, sizes: Mapping[int, float], mean_service_s: float | Mapping[int, float]) -> float:
    """Return the throughput of rigid jobs under first come, first served when jobs always wait, per second: lambda*.

    It is also the stability limit: the queue is stable for lower arrival rates.  Service times are exponential.

    With one mean E[S] for all sizes it is 1 / (E[S] E[1/n]) (Rumyantsev & Morozov 2017, who write mu / C).  n is the
    number of jobs that run if the queue is a fresh sequence of sizes: the largest n with s_1 + ... + s_n <= c.  So
    P(n >= i) = P(s_1 + ... + s_i <= c), and C = E[1/n] = sum_i (1/i) P(n = i).

    Why: take the c oldest jobs in order of arrival; the first n of them run, n <= c.  As all run times are
    exponential with one mean, the next job to complete is any of the n with equal probability, after E[S] / n on average.  Its
    place is closed, and a job with a fresh size joins at the end.  Suppose the sizes were independent before.  The
    departure leaves c - 1 sizes y.  Whatever the place of the departed job, of size z, the jobs that ran with it were
    those of y that fit into c - z servers, say m.  So it can have had n = m + 1 places, each with probability 1 / n, and
    the sum of these is one for each y and z.  The sizes after the departure are therefore independent again, with the same
    distribution: every departure sees this.  The mean time between departures is E[S] E[1/n].

    With means that differ by size, it is the rate of completions of the saturated system's Markov chain, whose balance
    equations are solved.
    """
    classes = _classes(servers, sizes, mean_service_s)
    if len(set(classes.rates)) == 1:
        return classes.rates[0] / _mean_inverse_in_service(classes)
    chain = _chain(classes, _MOST_STATES)
    return _Saturated(chain).throughput


def multiserver_job_utilization(
    servers: int, sizes: Mapping[int, float], mean_service_s: float | Mapping[int, float] = 1.0
) -> float:
    """Return the utilization of a machine on which rigid jobs always wait, under first come, first served.

    It is lambda* E[s S] / c, the throughput of :func:`multiserver_job_throughput`, with its assumptions, times the mean work of
    a job per server.  No higher load can be carried: it is rho_max of Zhang et al. 2003.  With one mean service time for all
    sizes it does not depend on that mean.
    """
    throughput = multiserver_job_throughput(servers, sizes, mean_service_s)
    classes = _classes(servers, sizes, mean_service_s)
    work = sum(s * p / rate for s, p, rate in zip(classes.sizes, classes.probabilities, classes.rates, strict=True))
    return throughput * work / servers


def fcfs_mean_response(
    servers: int, arrival_rate: float, sizes: Mapping[int, float], mean_service_s: float | Mapping[int, float]
) -> float:
    """Return the mean response time of rigid jobs under first come, first served, seconds: exact.

    Arrivals are Poisson, and service times exponential.  While a job waits, the state is (phase of the saturated system, n),
    n being the number of jobs behind the first waiting one.  A start of the first waiting job lowers n by one and an arrival
    raises it by one, whatever n: a quasi-birth-death process.  Its embedded jump chain has x_n = x_0 R^n (Latouche &
    Ramaswami 1999, chapter 6); R comes from logarithmic reduction (chapter 8), and x_0 from the balance equations of level 0
    and of the states in which no job waits.  The mean number of jobs gives the mean response time by Little's law.  Rounding
    errors grow like 1 / (1 - lambda / lambda*)^2.
    """
    classes = _classes(servers, sizes, mean_service_s)
    chain = _chain(classes, _MOST_PHASES)
    _require_stable(arrival_rate, _Saturated(chain).throughput)
    probabilities, phases = np.array(classes.probabilities), len(chain.after_start)
    own_set = np.arange(phases) // len(probabilities)  # of each phase
    blocked = chain.after_start < 0
    set_time = 1 / (arrival_rate + chain.rates)  # mean time to the next event
    time = np.where(blocked, set_time[own_set], 0.0)
    up = np.diag(arrival_rate * time)
    local = time[:, None] * chain.completions.toarray()
    down = chain.starts.toarray()
    rate_matrix = up @ np.linalg.inv(np.eye(phases) - local - up @ first_passage(up, local - np.eye(phases), down))
    # States in which no job waits, and level 0.  An arrival that fits passes through a phase in which it starts.
    sets = len(chain.in_service)
    embedded = np.zeros((sets + phases, sets + phases))
    embedded[:sets, :sets] = set_time[:, None] * _completions_without_queue(classes, chain)
    for number in range(sets):
        first = sets + number * len(probabilities)
        embedded[number, first : first + len(probabilities)] = arrival_rate * set_time[number] * probabilities
    fits = np.flatnonzero(~blocked)
    embedded[sets + fits, chain.after_start[fits]] = 1.0
    embedded[sets:, sets:] = local + rate_matrix @ down
    visits = stationary(embedded - np.eye(len(embedded)))
    levels = np.linalg.inv(np.eye(phases) - rate_matrix)
    in_queue = visits[sets:] @ levels  # visits summed over all levels
    behind = in_queue @ rate_matrix @ levels  # the same, each visit times the level
    total_time = visits[:sets] @ set_time + in_queue @ time
    jobs = visits[:sets] @ (set_time * chain.jobs) + in_queue @ (time * (chain.jobs[own_set] + 1)) + behind @ time
    return float(jobs / total_time / arrival_rate)


def reset_marc_mean_response(
    servers: int, arrival_rate: float, sizes: Mapping[int, float], mean_service_s: float | Mapping[int, float]
) -> float:
    """Return the mean response time of rigid jobs under first come, first served near saturation, seconds: asymptotic.

    Grosof et al. 2023: E[T] = (1 / lambda*) (Delta(Y_d, Y) + 1) / (1 - lambda / lambda*) + O(1) for lambda -> lambda*.  The
    error is bounded but unknown, so the relative error vanishes at saturation; at low load the value means nothing.

    Delta(y) are the *relative completions*: how many more jobs complete, in the long run, in the saturated system that starts
    in state y than in one that starts in its stationary distribution Y.  They solve the Poisson equation
    Delta(y) = (1 - lambda* / r(y)) + sum_y' P(y, y') Delta(y') with a mean of zero over Y, r(y) being the rate of
    completions.  Y_d is the state just after a completion.  lambda* (1 + 2 Delta(Y_d, Y)) is the variance of the number of
    completions per second, in the long run: with one server it is lambda*, and the formula is that of M/M/1.
    """
    saturated = _Saturated(_chain(_classes(servers, sizes, mean_service_s), _MOST_STATES))
    _require_stable(arrival_rate, saturated.throughput)
    return (saturated.relative_completions_after_a_completion() + 1) / (saturated.throughput - arrival_rate)


class _Saturated:
    """The saturated system, solved.  Its embedded chain visits all phases; only blocked ones take time."""

    def __init__(self, chain: _Chain) -> None:
        from scipy.sparse import block_array, csr_array, diags_array, eye_array
        from scipy.sparse.linalg import spsolve

        phases = len(chain.after_start)
        self._blocked = chain.after_start < 0
        rates = chain.rates[np.arange(phases) // (phases // len(chain.rates))]
        self._time = np.divide(1.0, rates, out=np.zeros(phases), where=self._blocked)
        steps = chain.starts + diags_array(self._time) @ chain.completions
        ones = csr_array(np.ones((1, phases)))
        # Bordered by ones, I - P is regular: all phases lead to the one in which only jobs of the first class run and wait.
        self._bordered = block_array([[eye_array(phases) - steps, ones.T], [ones, None]])
        visits = spsolve(self._bordered.T.tocsc(), np.append(np.zeros(phases), 1.0))[:-1]
        self._completions = visits * self._blocked  # each visit of a blocked phase ends with a completion
        self.throughput = float(self._completions.sum() / (visits @ self._time))  # completions per second

    def relative_completions_after_a_completion(self) -> float:
        """Return Delta(Y_d, Y), jobs."""
        # Its equation, summed over the phases before the completions, says that Delta has the same mean there as after them.
        from scipy.sparse.linalg import spsolve

        excess = np.where(self._blocked, 1 - self.throughput * self._time, 0.0)
        delta = spsolve(self._bordered.tocsc(), np.append(excess, 0.0))[:-1]
        stationary = self._completions * self._time
        before = self._completions @ delta / self._completions.sum()
        return float(before - stationary @ delta / stationary.sum())


def _chain(classes: _Classes, most: int) -> _Chain:
    from scipy.sparse import csr_array

    kinds = len(classes.sizes)
    fitting = [1] + [0] * classes.servers  # sets of jobs by servers taken
    for size in classes.sizes:
        for taken in range(size, classes.servers + 1):
            fitting[taken] += fitting[taken - size]
    if sum(fitting) * kinds > most:
        raise SpecificationError(
            f"sizes: {kinds} sizes with more than {most:,} states on {classes.servers} servers are not allowed; "
            "there must be fewer sizes or servers"
        )
    in_service = list(_sets(classes.servers, classes.sizes))
    number = {jobs: place for place, jobs in enumerate(in_service)}
    phases = len(in_service) * kinds
    after_start = np.full(phases, -1, dtype=np.int64)
    starts: list[tuple[float, int, int]] = [(0.0, 0, 0)]
    completions: list[tuple[float, int, int]] = [(0.0, 0, 0)]
    for place, jobs in enumerate(in_service):
        idle = classes.servers - sum(size * count for size, count in zip(classes.sizes, jobs, strict=True))
        for head in range(kinds):
            phase = place * kinds + head
            if classes.sizes[head] <= idle:
                after_start[phase] = after = number[_with(jobs, head, 1)]
                starts += [(p, phase, after * kinds + following) for following, p in enumerate(classes.probabilities)]
            else:
                completions += [
                    (count * classes.rates[kind], phase, number[_with(jobs, kind, -1)] * kinds + head)
                    for kind, count in enumerate(jobs)
                    if count
                ]

    def matrix(entries: list[tuple[float, int, int]]) -> csr_array[np.float64]:
        values, rows, columns = zip(*entries, strict=True)
        return csr_array((np.array(values), (np.array(rows), np.array(columns))), shape=(phases, phases))

    counts = np.array(in_service, dtype=float)
    return _Chain(
        in_service, matrix(starts), matrix(completions), after_start, counts @ np.array(classes.rates), counts.sum(axis=1)
    )


def _completions_without_queue(classes: _Classes, chain: _Chain) -> Floats:
    """Return the rates of completions from set to set while no job waits, per second, shape ``(sets, sets)``."""
    number = {jobs: place for place, jobs in enumerate(chain.in_service)}
    rates = np.zeros((len(number), len(number)))
    for jobs, place in number.items():
        for kind, count in enumerate(jobs):
            if count:
                rates[place, number[_with(jobs, kind, -1)]] = count * classes.rates[kind]
    return rates


def _with(jobs: tuple[int, ...], kind: int, more: int) -> tuple[int, ...]:
    return (*jobs[:kind], jobs[kind] + more, *jobs[kind + 1 :])


def _sets(servers: int, sizes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    if not sizes:
        yield ()
        return
    for count in range(servers // sizes[-1] + 1):
        for rest in _sets(servers - count * sizes[-1], sizes[:-1]):
            yield (*rest, count)


def _mean_inverse_in_service(classes: _Classes) -> float:
    single = np.zeros(classes.servers + 1)
    single[list(classes.sizes)] = classes.probabilities
    at_least = [1.0]  # P(n >= i) from i = 1 on
    total = single
    while len(at_least) <= classes.servers:
        total = np.convolve(total, single)[: classes.servers + 1]
        at_least.append(float(total.sum()))
    return float(np.dot(-np.diff(at_least), 1 / np.arange(1, classes.servers + 1)))


def _classes(servers: int, sizes: Mapping[int, float], mean_service_s: float | Mapping[int, float]) -> _Classes:
    occurring = dict(sorted(job_sizes(sizes, servers, "servers").items()))
    means = means_by_size("mean_service_s", occurring, mean_service_s)
    return _Classes(servers, tuple(occurring), tuple(occurring.values()), tuple(1 / mean for mean in means.values()))


def _require_stable(arrival_rate: float, throughput: float) -> None:
    must = f"it must be > 0 and < {throughput:g}, the saturation throughput"
    require(0 < arrival_rate < throughput, "arrival_rate", float(arrival_rate), must)
