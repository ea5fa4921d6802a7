"""One-node gangs in theory: bounds of the shortest queue, the worth of migration, processor sharing of given jobs."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustermodel import SpecificationError
from clustermodel.measure.equivalence import controlled_mean
from clustermodel.theory.gangs import (
    TOLERANCE,
    gs_mean_response,
    mgs_mean_response,
    shortest_queue_bounds,
)
from clustermodel.theory.matrix_geometric import stationary
from clustermodel.theory.processor_sharing import processor_sharing_responses


@pytest.mark.parametrize(("load", "gs", "mgs"), [(0.5, 1.4263, 1.3333), (0.8, 2.9557, 2.7778), (0.9, 5.4749, 5.2632)])
def test_two_nodes(load: float, gs: float, mgs: float) -> None:
    means = [formula(2, 2 * load / 100, 100.0) / 100 for formula in (gs_mean_response, mgs_mean_response)]
    assert [round(mean, 4) for mean in means] == [gs, mgs]


def shortest_of_two(load: float, longest: int) -> float:
    """Return the mean response, in service times, with queues of at most ``longest`` jobs and nothing else truncated."""
    number = {(a, b): a * (longest + 1) + b for a in range(longest + 1) for b in range(longest + 1)}
    rates = np.zeros((len(number), len(number)))
    for (a, b), state in number.items():
        arrived = (a + 1, b) if a <= b else (a, b + 1)
        for after, rate in ((arrived, 2 * load), ((a - 1, b), 1.0), ((a, b - 1), 1.0)):
            if after in number:
                rates[state, number[after]] += rate
    shares = stationary(rates - np.diag(rates.sum(axis=1)))
    return float(sum(share * sum(state) for share, state in zip(shares.tolist(), number, strict=True))) / (2 * load)


@pytest.mark.parametrize(("load", "longest"), [(0.2, 15), (0.5, 30)])
def test_the_shortest_of_two_queues_against_a_chain_truncated_otherwise(load: float, longest: int) -> None:
    left_out = load ** (2 * longest)  # about the probability of more jobs than both queues hold
    assert left_out < TOLERANCE**2
    assert gs_mean_response(2, 2 * load, 1.0) == pytest.approx(shortest_of_two(load, longest), rel=2 * TOLERANCE)


@pytest.mark.long
@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_bounds_close_in_on_the_mean_as_the_threshold_grows(nodes: int) -> None:
    bounds = [shortest_queue_bounds(nodes, 0.7 * nodes, 1.0, threshold) for threshold in (1, 2, 3, 5, 7)]
    mean = gs_mean_response(nodes, 0.7 * nodes, 1.0)
    assert all(bound.lower < mean < bound.upper for bound in bounds)
    assert all(a.lower < b.lower and a.upper > b.upper for a, b in pairwise(bounds))


def test_one_node_needs_no_migration_and_blocked_servers_may_be_overloaded() -> None:
    assert gs_mean_response(1, 0.8, 1.0) == mgs_mean_response(1, 0.8, 1.0)
    assert shortest_queue_bounds(2, 2 * 0.95, 1.0, 1).upper == np.inf
    assert mgs_mean_response(2, 1.0, 1.0) == pytest.approx(4 / 3)


def test_what_the_theory_of_one_node_gangs_refuses() -> None:
    with pytest.raises(SpecificationError, match=r"offered: 2\.0 is not allowed"):
        gs_mean_response(2, 2.0, 1.0)
    with pytest.raises(SpecificationError, match=r"40 nodes at load 0\.5 need more than 1,000 phases"):
        gs_mean_response(40, 20.0, 1.0)
    with pytest.raises(SpecificationError, match="nodes: 0 is not allowed"):
        gs_mean_response(0, 1.0, 1.0)
    with pytest.raises(SpecificationError, match="threshold: 0 is not allowed"):
        shortest_queue_bounds(2, 1.0, 1.0, 0)


def test_processor_sharing_by_hand() -> None:
    assert processor_sharing_responses([0, 1], [2, 2], 1).tolist() == [3, 3]
    assert processor_sharing_responses([0, 0, 0], [3, 3, 3], 2).tolist() == [4.5, 4.5, 4.5]
    assert processor_sharing_responses([0, 1, 10], [2, 2, 0], 2).tolist() == [2, 2, 0]
    assert processor_sharing_responses([], [], 2).tolist() == []


def step_by_step(submit: list[int], run: list[int], servers: int) -> list[float]:
    """Share the servers among the jobs that are there, from one arrival or completion to the next."""
    left, ends, now = dict(enumerate(map(float, run))), [0.0] * len(run), 0.0
    while left:
        there = [job for job in left if submit[job] <= now]
        rate = min(1.0, servers / len(there)) if there else 0.0
        events = [time for time in submit if time > now] + [now + left[job] / rate for job in there]
        following = min(events)
        for job in there:
            left[job] -= rate * (following - now)
            if left[job] < 1e-9:
                del left[job]
                ends[job] = following
        now = following
    return [end - start for end, start in zip(ends, submit, strict=True)]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), min_size=1, max_size=9), st.integers(1, 4))
def test_processor_sharing_step_by_step(jobs: list[tuple[int, int]], servers: int) -> None:
    submit, run = (list(times) for times in zip(*sorted(jobs), strict=True))
    assert processor_sharing_responses(submit, run, servers) == pytest.approx(step_by_step(submit, run, servers))


def test_a_control_variate_takes_out_what_it_explains() -> None:
    control = np.array([1.0, 2.0, 4.0, 3.0])
    exact = controlled_mean(3 * control + 5, control[:, None], [10.0]).interval()
    assert exact.mean == pytest.approx(35)  # the coefficient is 3
    assert exact.half == pytest.approx(0, abs=1e-12)
    # By hand: controls -1, 0, 1 with mean 0 in theory; residuals 1, -2, 1; t with one degree of freedom.
    found = controlled_mean([0.0, -2.0, 2.0], [[-1.0], [0.0], [1.0]], [0.0]).interval(0.5)
    assert found.mean == pytest.approx(0, abs=1e-12)
    assert found.half == pytest.approx(np.sqrt(6 / 3))


@pytest.mark.parametrize(
    ("submit", "run", "match"),
    [([0], [1, 2], "run: shape"), ([1, 0], [1, 2], "submit: times"), ([0, 1], [1, -2], "run: a negative time")],
)
def test_what_processor_sharing_refuses(submit: list[int], run: list[int], match: str) -> None:
    with pytest.raises(SpecificationError, match=match):
        processor_sharing_responses(submit, run, 1)


def test_controls_that_say_nothing_and_those_that_are_refused() -> None:
    equal = controlled_mean([1, 2, 3], [[1], [1], [1]], [0.0])
    assert equal == controlled_mean([1, 2, 3]), "a control that does not vary is left out"
    assert controlled_mean([1, 2], [[1], [2]], [0.0]).interval().half == np.inf
    with pytest.raises(SpecificationError, match="there must be 3 rows"):
        controlled_mean([1, 2, 3], [[1], [2]], [0.0])
