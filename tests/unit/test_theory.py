"""The analytic formulas on numbers worked by hand and in textbook cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustermodel import SpecificationError
from clustermodel.theory.capacity import capacity_loss, utilization
from clustermodel.theory.queueing import (
    erlang_c,
    mg1_mean_wait,
    mg1_ps_mean_response,
    mmc_mean_wait,
    multiserver_job_throughput,
    multiserver_job_utilization,
)


def test_the_formulas_of_002_on_numbers_worked_by_hand() -> None:
    # N = 4; two nodes empty for 3 s while a job waits, one empty for 2 s with an empty queue; the last finish is at 10.
    assert capacity_loss([0, 3, 5, 10], [2, 1, 0, 4], [1, 0, 3, 0], 4) == pytest.approx(2 * 3 / 40)
    assert utilization([2, 1], [5.0, 10.0], 10.0, 4) == pytest.approx(20 / 40)
    with pytest.raises(ValueError, match="must be equal"):
        capacity_loss([0, 1], [1], [1, 1], 4)
    with pytest.raises(ValueError, match="ascending"):
        capacity_loss([1, 0], [1, 1], [1, 1], 4)


def test_the_closed_forms_of_queueing_theory_in_their_special_cases() -> None:
    assert erlang_c(1, 0.7) == pytest.approx(0.7)  # M/M/1: a customer waits if the server is busy
    assert mmc_mean_wait(1, 0.7, 1.0) == pytest.approx(0.7 / 0.3)
    assert mg1_mean_wait(0.7, 1.0, 1.0) == pytest.approx(0.7 / 0.3)  # exponential service has variance 1
    assert mg1_mean_wait(0.7, 1.0, 0.0) == pytest.approx(0.35 / 0.3)  # deterministic: half of it
    assert erlang_c(2, 1.0) == pytest.approx(1 / 3)  # textbook value
    assert 0 < erlang_c(2000, 1900.0) < 1
    for unstable in (lambda: erlang_c(2, 2.0), lambda: mg1_mean_wait(1.0, 1.0, 1.0)):
        with pytest.raises(SpecificationError, match="is not allowed"):
            unstable()


def test_the_response_of_processor_sharing() -> None:
    assert mg1_ps_mean_response(0.005, 100.0) == pytest.approx(200)
    assert mg1_ps_mean_response(0.7, 1.0) == pytest.approx(mmc_mean_wait(1, 0.7, 1.0) + 1)  # as M/M/1: 1 / (mu - lambda)
    with pytest.raises(SpecificationError, match="load"):
        mg1_ps_mean_response(0.01, 100.0)


# Rigid jobs.


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


def utilization_by_markov_chain(servers: int, sizes: Mapping[int, float]) -> float:
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
        for place in range(len(running)):  # each job ends at rate one
            for after, probability in filled(servers, running[:place] + running[place + 1 :], head, sizes):
                rates[state][after] = rates[state].get(after, 0.0) + probability
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
        ({1: 1.5, 2: -0.5}, "sizes: probability 1.5 of 1 is not allowed; it must be >= 0 and <= 1"),
    ],
)
def test_sizes_that_are_no_distribution_are_refused(sizes: dict[int, float], message: str) -> None:
    for formula in (multiserver_job_utilization, lambda *given: multiserver_job_throughput(*given, 1.0)):
        with pytest.raises(SpecificationError) as refused:
            formula(8, sizes)
        assert str(refused.value) == message
