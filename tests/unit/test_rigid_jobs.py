"""Rigid jobs under FCFS: formulas against chains that are solved here, closed forms, and tables of another program."""

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import inf, isfinite

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import lil_array
from scipy.sparse.linalg import spsolve

from clustermodel import SpecificationError
from clustermodel.theory.queueing import mmc_mean_wait
from clustermodel.theory.rigid_jobs import (
    fcfs_mean_response,
    multiserver_job_throughput,
    multiserver_job_utilization,
    reset_marc_mean_response,
)
from tests.statistical.multiserver_jobs import COLUMNS, TABLE_JOBS, points, simulate

# Saturation.


@pytest.mark.parametrize("narrow", [0.0, 0.3, 0.8, 1.0])
def test_two_servers_by_hand(narrow: float) -> None:
    # Two jobs run if the first two are narrow, p^2, else one: E[1/n] = p^2 / 2 + 1 - p^2; E[s] = 2 - p.
    sizes = {1: narrow, 2: 1 - narrow}
    assert multiserver_job_throughput(2, sizes, 10.0) == pytest.approx(2 / (2 - narrow**2) / 10)
    assert multiserver_job_utilization(2, sizes) == pytest.approx((2 - narrow) / (2 - narrow**2))


@pytest.mark.parametrize(("servers", "size"), [(1, 1), (16, 1), (8, 3), (8, 8), (9, 5)])
def test_jobs_of_one_size_leave_what_they_do_not_divide(servers: int, size: int) -> None:
    assert multiserver_job_utilization(servers, {size: 1.0}) == pytest.approx(servers // size * size / servers)
    assert multiserver_job_throughput(servers, {size: 1.0}, 0.5) == pytest.approx(servers // size / 0.5)


State = tuple[tuple[int, ...], int]
"""Sizes that run, ascending, and the size of the job that waits first."""


def filled(servers: int, running: tuple[int, ...], head: int, sizes: Mapping[int, float]) -> Iterator[tuple[State, float]]:
    """Start jobs from the head of an endless queue until one does not fit; all that can come of it, with probabilities."""
    if sum(running) + head > servers:
        yield (tuple(sorted(running)), head), 1.0
        return
    for size, probability in sizes.items():
        for state, rest in filled(servers, (*running, head), size, sizes):
            yield state, probability * rest


def utilization_by_markov_chain(servers: int, sizes: Mapping[int, float], means: Mapping[int, float] | None = None) -> float:
    """Solve the balance equations of the saturated queue in continuous time; nothing of the formula's derivation is in it."""
    sizes = {size: probability for size, probability in sizes.items() if probability}
    rates: dict[State, dict[State, float]] = {}
    found = [state for size in sizes for state, _ in filled(servers, (), size, sizes)]
    while found:
        state = found.pop()
        if state in rates:
            continue
        running, head = state
        rates[state] = {}
        for place, size in enumerate(running):  # without means, each job ends at rate one
            rate = 1 / means[size] if means else 1.0
            for after, probability in filled(servers, running[:place] + running[place + 1 :], head, sizes):
                rates[state][after] = rates[state].get(after, 0.0) + rate * probability
                found.append(after)
    number = {state: position for position, state in enumerate(rates)}
    balance = np.zeros((len(number) + 1, len(number)))
    for state, there in rates.items():
        for after, rate in there.items():
            balance[number[after], number[state]] += rate
            balance[number[state], number[state]] -= rate
    balance[-1] = 1  # probabilities add up to one
    stationary = np.linalg.lstsq(balance, np.eye(len(number) + 1)[-1], rcond=None)[0]
    return float(sum(sum(state[0]) * stationary[at] for state, at in number.items())) / servers


@pytest.mark.parametrize(
    ("servers", "sizes"),
    [
        (2, {1: 0.6, 2: 0.4}),
        (5, {1: 0.5, 3: 0.5}),
        (6, {1: 0.25, 2: 0.25, 4: 0.25, 6: 0.25}),
        (8, {1: 0.8, 5: 0.2}),
        (6, dict.fromkeys(range(1, 7), 1 / 6)),
    ],
)
def test_saturation_is_that_of_the_markov_chain(servers: int, sizes: dict[int, float]) -> None:
    assert multiserver_job_utilization(servers, sizes) == pytest.approx(utilization_by_markov_chain(servers, sizes), abs=1e-10)


@given(weights=st.lists(st.integers(0, 5), min_size=1, max_size=5).filter(any), spare=st.integers(0, 1))
def test_saturation_is_that_of_the_markov_chain_for_any_sizes(weights: list[int], spare: int) -> None:
    servers = len(weights) + spare
    sizes = {size: weight / sum(weights) for size, weight in enumerate(weights, 1)}
    assert multiserver_job_utilization(servers, sizes) == pytest.approx(utilization_by_markov_chain(servers, sizes), abs=1e-9)


def test_a_large_machine_has_a_saturation_utilization_too() -> None:
    # 32 sizes on 1,024 nodes: hundreds run, and no more than the largest can be empty.
    found = multiserver_job_utilization(1024, dict.fromkeys(range(1, 33), 1 / 32))
    assert 1 - 32 / 1024 < found < 1


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({9: 1.0}, "sizes: 9 is not allowed; it must be a whole number >= 1 and <= 8 servers"),
        ({0: 1.0}, "sizes: 0 is not allowed; it must be a whole number >= 1 and <= 8 servers"),
        ({1: 0.5}, "sizes: probabilities that sum to 0.5 are not allowed; their sum must be 1"),
        ({1: 1.5, 2: -0.5}, "sizes: probability of 1: 1.5 is not allowed; it must be a number >= 0 and <= 1"),
    ],
)
def test_sizes_that_are_no_distribution_are_refused(sizes: dict[int, float], message: str) -> None:
    for formula in (multiserver_job_utilization, lambda *given: multiserver_job_throughput(*given, 1.0)):
        with pytest.raises(SpecificationError) as refused:
            formula(8, sizes)
        assert str(refused.value) == message


@pytest.mark.parametrize(
    ("servers", "sizes", "means"),
    [
        (2, {1: 0.6, 2: 0.4}, {1: 3.0, 2: 1.0}),
        (5, {1: 0.5, 3: 0.5}, {1: 0.2, 3: 2.0}),
        (6, {1: 0.25, 2: 0.25, 4: 0.25, 6: 0.25}, {1: 4.0, 2: 3.0, 4: 2.0, 6: 1.0}),
        (8, {2: 0.8, 5: 0.2}, {2: 1.0, 5: 10.0}),
    ],
)
def test_saturation_with_unequal_means_is_that_of_the_markov_chain(
    servers: int, sizes: dict[int, float], means: dict[int, float]
) -> None:
    chain = utilization_by_markov_chain(servers, sizes, means)
    assert multiserver_job_utilization(servers, sizes, means) == pytest.approx(chain, abs=1e-10)


@pytest.mark.parametrize("narrow", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("means", [{1: 1.0, 6: 1.0}, {1: 6.0, 6: 0.5}, {1: 0.1, 6: 20.0}])
def test_runs_of_narrow_jobs_between_jobs_as_large_as_the_machine(narrow: float, means: dict[int, float]) -> None:
    # Between two large jobs g narrow ones run, with probability p^g (1 - p).  While c run, one completes every E[S] / c; the
    # last c take E[S] (1 / c + ... + 1 / 1).  A cycle has 1 / (1 - p) jobs.
    c, cycle = 6, means[6]
    for g in range(1, 2000):
        drain = sum(1 / left for left in range(1, min(g, c) + 1)) + max(g - c, 0) / c
        cycle += narrow**g * (1 - narrow) * means[1] * drain
    expected = 1 / (1 - narrow) / cycle
    assert multiserver_job_throughput(c, {1: narrow, c: 1 - narrow}, means) == pytest.approx(expected, rel=1e-9)


@given(weights=st.lists(st.integers(0, 5), min_size=1, max_size=5).filter(any), mean=st.floats(0.1, 10))
def test_the_chain_agrees_with_the_closed_form_where_means_are_equal(weights: list[int], mean: float) -> None:
    sizes = {size: weight / sum(weights) for size, weight in enumerate(weights, 1)}
    means = dict.fromkeys(sizes, mean) | {max(size for size in sizes if sizes[size]): mean * (1 + 1e-9)}  # the chain is solved
    closed = multiserver_job_throughput(len(weights), sizes, mean)
    assert multiserver_job_throughput(len(weights), sizes, means) == pytest.approx(closed, rel=1e-7)


def response_by_enumeration(
    servers: int, arrival_rate: float, sizes: dict[int, float], means: dict[int, float], most: int
) -> float:
    """Solve the chain whose states are the sizes of all jobs in the system, in order of arrival, up to ``most`` jobs."""
    states = [state for jobs in range(most + 1) for state in product(sizes, repeat=jobs)]
    number = {state: place for place, state in enumerate(states)}
    balance = lil_array((len(states), len(states)))
    for state, place in number.items():
        after = [((*state, size), arrival_rate * p) for size, p in sizes.items()] if len(state) < most else []
        left = servers
        for served, size in enumerate(state):
            left -= size
            if left < 0:
                break
            after.append((state[:served] + state[served + 1 :], 1 / means[size]))
        for there, rate in after:
            balance[number[there], place] += rate
            balance[place, place] -= rate
    balance[-1, :] = 1.0
    target = np.zeros(len(states))
    target[-1] = 1.0
    return float(spsolve(balance.tocsc(), target) @ [len(state) for state in states]) / arrival_rate


@pytest.mark.parametrize(
    ("servers", "arrival_rate", "sizes", "means", "most"),
    [
        (2, 0.12, {1: 0.6, 2: 0.4}, {1: 1.0, 2: 1.0}, 12),
        (2, 0.06, {1: 0.6, 2: 0.4}, {1: 3.0, 2: 1.0}, 12),
        (5, 0.08, {1: 0.5, 3: 0.5}, {1: 0.2, 3: 2.0}, 12),
        (4, 0.08, {1: 0.5, 2: 0.3, 3: 0.2}, {1: 1.0, 2: 2.0, 3: 0.5}, 8),
    ],
)
def test_the_mean_response_is_that_of_all_orders_of_sizes_enumerated(
    servers: int, arrival_rate: float, sizes: dict[int, float], means: dict[int, float], most: int
) -> None:
    shorter = response_by_enumeration(servers, arrival_rate, sizes, means, most - 1)
    longer = response_by_enumeration(servers, arrival_rate, sizes, means, most)
    found = fcfs_mean_response(servers, arrival_rate, sizes, means)
    assert abs(found - longer) <= abs(longer - shorter) + 1e-12  # what leaving out still more jobs changes is less
    assert abs(longer - shorter) < 1e-4 * longer


@pytest.mark.parametrize(("servers", "size"), [(1, 1), (8, 1), (8, 3), (8, 8), (9, 5)])
@pytest.mark.parametrize("load", [0.01, 0.5, 0.99])
def test_jobs_of_one_size_are_a_queue_of_one_server_jobs(servers: int, size: int, load: float) -> None:
    rate = load * (servers // size) / 10.0
    expected = mmc_mean_wait(servers // size, rate, 10.0) + 10.0
    assert fcfs_mean_response(servers, rate, {size: 1.0}, 10.0) == pytest.approx(expected, rel=1e-9)


def test_near_saturation_the_asymptotic_formula_is_off_by_a_constant() -> None:
    servers, sizes, means = 8, {1: 0.4, 2: 0.3, 4: 0.2, 8: 0.1}, {1: 4.0, 2: 1.0, 4: 2.0, 8: 0.5}
    highest = multiserver_job_throughput(servers, sizes, means)
    errors, exact = {}, {}
    for load in (0.9, 0.99, 0.999):
        exact[load] = fcfs_mean_response(servers, load * highest, sizes, means)
        errors[load] = exact[load] - reset_marc_mean_response(servers, load * highest, sizes, means)
    assert exact[0.999] > 90 * exact[0.9]  # the response goes to infinity, and the error does not change
    assert abs(errors[0.999]) < 1e-3 * exact[0.999]
    assert abs(errors[0.999] - errors[0.99]) < abs(errors[0.99] - errors[0.9]) / 5  # it tends to its limit like 1 - load


@pytest.mark.parametrize("load", [0.1, 0.9])
def test_with_one_server_the_asymptotic_formula_is_exact(load: float) -> None:
    assert reset_marc_mean_response(8, load, {8: 1.0}, 1.0) == pytest.approx(1 / (1 - load))


NOT_STABLE = "is not allowed; it must be > 0 and < 2, the saturation throughput"
NO_MEAN = "is not allowed; it must be a finite number > 0"
HALVES = {1: 0.5, 2: 0.5}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fcfs_mean_response(2, 0.0, {1: 1.0}, 1.0), f"arrival_rate: 0.0 {NOT_STABLE}"),
        (lambda: reset_marc_mean_response(2, 2.5, {1: 1.0}, 1.0), f"arrival_rate: 2.5 {NOT_STABLE}"),
        (lambda: fcfs_mean_response(2, 0.1, HALVES, {1: 1.0}),
         "mean_service_s: a mapping without size 2 is not allowed; it must have all sizes"),
        (lambda: multiserver_job_throughput(2, {1: 1.0}, 0.0), f"mean_service_s: 0.0 {NO_MEAN}"),
        (lambda: multiserver_job_throughput(2, {1: 1.0}, inf), f"mean_service_s: inf {NO_MEAN}"),
        (lambda: fcfs_mean_response(256, 0.1, HALVES, 1.0),
         "sizes: 2 sizes with more than 1,500 states on 256 servers are not allowed; there must be fewer sizes or servers"),
    ],
)  # fmt: skip
def test_what_the_formulas_refuse(call: Callable[[], float], message: str) -> None:
    with pytest.raises(SpecificationError) as refused:
        call()
    assert str(refused.value) == message


@pytest.mark.parametrize("column", ["fcfs", "fcfs_a", "fcfs_b"])
def test_the_exact_mean_response_is_that_of_the_tables(column: str) -> None:
    # n responses of M/M/1 have a mean with a relative standard error below 2 / (sqrt(n) (1 - rho)) (Daley 1968); a table has at
    # least a million.
    _, _, model = COLUMNS[column]
    highest = multiserver_job_throughput(model.servers, model.sizes, model.mean_service)
    for point in points(column):
        rate = model.arrival_rate(point.load)
        assert isfinite(point.response) == (rate < highest)
        if rate < highest:
            exact = fcfs_mean_response(model.servers, rate, model.sizes, model.mean_service)
            error = 2 / (TABLE_JOBS**0.5 * (1 - rate / highest))
            assert abs(point.response / exact - 1) < 2.58 * error


@pytest.mark.parametrize(("column", "load"), [("fcfs_a", 0.3), ("easy", 0.5), ("server_filling", 0.5)])
@pytest.mark.long
def test_a_short_simulation_has_the_tables_mean_response(column: str, load: float) -> None:
    (point,) = (point for point in points(column) if point.load == load)
    _, policy, model = COLUMNS[column]
    found = simulate(model, policy, load, jobs=2_000, seed=1, replications=10)
    assert abs(found.mean - point.response) < found.half_width < 0.1 * point.response
