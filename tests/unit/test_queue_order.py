"""Sorting criteria of Perkovic & Keleher 2000, table 4, and the named orders."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustermodel import check_policy
from clustermodel.policies.backfilling.scheduler import PRIORITY_LEVELS, Backfilling
from clustermodel.policies.queue_order import CRITERIA, QUEUE_ORDERS, QueueSorter
from clustermodel.policies.view import QueuedJob

SECOND = 1_000_000


def job(number: int, *, estimate: float = 10, submit: float = 0, nodes: int = 1, priority: int = 0) -> QueuedJob:
    return QueuedJob(number, nodes, round(submit * SECOND), round(estimate * SECOND), -1, -1, priority)


def sorter(order: str, jobs: list[QueuedJob], *, seed: int = 1, levels: int = 3, weight: float = 0.0) -> QueueSorter:
    made = QueueSorter(order, levels, weight, np.random.default_rng(seed))
    made.submitted(jobs)
    return made


def ids(jobs: Any) -> list[int]:
    return [one.id for one in jobs]


FIVE = [job(number, estimate=estimate) for number, estimate in enumerate((50, 10, 30, 10, 40), 1)]


def test_a_higher_priority_of_the_job_goes_before_every_criterion() -> None:
    urgent = [job(9, estimate=1000, priority=1), *FIVE, job(10, estimate=1, priority=-1)]
    for criterion in CRITERIA:
        found = ids(sorter(criterion, urgent).sort(urgent, 0))
        assert (found[0], found[-1]) == (9, 10)


def test_the_priority_p_is_one_of_the_levels_drawn_once() -> None:
    jobs = [job(number) for number in range(300)]
    drawn = sorter("P", jobs)
    first = ids(drawn.sort(jobs, 0))
    assert first == ids(drawn.sort(jobs, 99 * SECOND))
    # The queue falls into as many stretches of ascending ids as there are levels.
    assert sum(one > other for one, other in pairwise(first)) == PRIORITY_LEVELS - 1
    assert ids(sorter("P", jobs, levels=1).sort(jobs, 0)) == ids(jobs)
    twenty = ids(sorter("P", jobs, levels=20).sort(jobs, 0))
    assert sum(one > other for one, other in pairwise(twenty)) == 19


def test_p_and_p_over_l_see_the_same_priorities_under_one_seed() -> None:
    jobs = [job(number, estimate=10) for number in range(200)]
    assert ids(sorter("P", jobs).sort(jobs, 0)) == ids(sorter("P/L", jobs).sort(jobs, 0))
    assert ids(sorter("P", jobs, seed=2).sort(jobs, 0)) != ids(sorter("P", jobs).sort(jobs, 0))


def test_p_over_l_divides_by_the_length() -> None:
    # With one level P/L is 1/L; with three, P is 1/3, 2/3 or 1: a job more than three times as long is never before another.
    jobs = [job(number, estimate=estimate) for number, estimate in enumerate((1000, 301, 100, 31, 10))]
    for seed in range(20):
        assert ids(sorter("P/L", jobs, seed=seed).sort(jobs, 0)) == [4, 3, 2, 1, 0]
    mixed = [job(number, estimate=10 + number % 5) for number in range(100)]
    assert ids(sorter("P/L", mixed, levels=1).sort(mixed, 0)) == ids(sorter("1/L", mixed).sort(mixed, 0))
    assert ids(sorter("P/L", mixed).sort(mixed, 0)) != ids(sorter("1/L", mixed).sort(mixed, 0))


@pytest.mark.parametrize("criterion", ["R", "R/L"])
def test_the_random_number_is_drawn_anew_at_every_pass_and_repeats_with_the_seed(criterion: str) -> None:
    jobs = [job(number) for number in range(50)]
    one, same = sorter(criterion, jobs), sorter(criterion, jobs)
    passes = [ids(one.sort(jobs, 0)) for _ in range(4)]
    assert len({tuple(found) for found in passes}) == 4
    assert all(sorted(found) == ids(jobs) for found in passes)
    assert passes == [ids(same.sort(jobs, 0)) for _ in range(4)]


def test_r_puts_every_job_first_equally_often_and_r_over_l_the_shorter_one_more_often() -> None:
    # Of two equally long jobs each is first with probability 1/2; of two jobs of 10 and 20 s the shorter is first unless its R
    # is below half of the other's, with probability 1/4.  In 4000 draws a share is off by more than 0.03 once in 10,000 times.
    pair = [job(1, estimate=10), job(2, estimate=20)]
    for criterion, expected in (("R", 0.5), ("R/L", 0.75)):
        drawn = sorter(criterion, pair)
        share = np.mean([drawn.sort(pair, 0)[0].id == 1 for _ in range(4000)])
        assert share == pytest.approx(expected, abs=0.03)


def test_the_weight_adds_to_the_criterion_what_a_job_has_waited() -> None:
    # 1/L: 0.1 for the short one, 0.01 for the long one, which has waited 90 s more: they draw level at weight 0.001.
    pair = [job(1, estimate=100, submit=0), job(2, estimate=10, submit=90)]
    assert ids(sorter("1/L", pair, weight=0.00099).sort(pair, 100 * SECOND)) == [2, 1]
    assert ids(sorter("1/L", pair, weight=0.00101).sort(pair, 100 * SECOND)) == [1, 2]
    # "If all jobs have large enough delays the algorithm would converge to the algorithm with guarantees": to arrival order.
    for criterion in CRITERIA:
        late = [job(n, submit=100 * n) for n in range(1, 6)]
        assert ids(sorter(criterion, FIVE, weight=0.1).sort(late, 10**9)) == [1, 2, 3, 4, 5]


def test_a_job_that_has_left_is_forgotten() -> None:
    drawn = sorter("P", FIVE)
    drawn.left(FIVE[0])
    with pytest.raises(KeyError):
        drawn.sort(FIVE, 0)


def test_named_orders_and_keys_of_ones_own() -> None:
    jobs = [job(1, estimate=5, nodes=3), job(2, estimate=9, nodes=1), job(3, estimate=7, nodes=2)]
    assert ids(sorter("D", FIVE).sort(FIVE, 99 * SECOND)) == [1, 2, 3, 4, 5]
    assert ids(sorter("1/L", FIVE).sort(FIVE, 0)) == [2, 4, 3, 5, 1]  # equals stay in queue order
    found = {order: ids(sorter(order, jobs).sort(jobs, 0)) for order in QUEUE_ORDERS}
    assert found == {"arrival": [1, 2, 3], "shortest": [1, 3, 2], "narrowest": [2, 3, 1], "widest": [1, 3, 2]}
    longest_first = QueueSorter(lambda job, _: -job.estimate, 3, 0.0, np.random.default_rng(1))
    assert ids(longest_first.sort(jobs, 0)) == [2, 3, 1]
    assert check_policy(Backfilling(order=lambda job, now: (job.user, now - job.submit, job.id))) == []


@given(st.lists(st.integers(1, 5), max_size=20), st.sampled_from(CRITERIA), st.integers(0, 3))
def test_every_criterion_permutes_the_queue(estimates: list[int], criterion: str, seed: int) -> None:
    jobs = [job(number, estimate=estimate) for number, estimate in enumerate(estimates)]
    assert sorted(ids(sorter(criterion, jobs, seed=seed).sort(jobs, 0))) == ids(jobs)
