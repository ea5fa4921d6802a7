"""Equipartition in theory: shares by hand, the chain of two nodes by hand, M/M/1, and what a resize may cost."""

import numpy as np
import pytest

from clustermodel import DowneySpeedup, SpecificationError
from clustermodel.theory import equipartition_response as theory
from clustermodel.theory.queueing import mmc_mean_wait


@pytest.mark.parametrize(
    ("nodes", "jobs", "bounds", "shares"),
    [
        (5, 3, {}, [2, 2, 1]),
        (4, 9, {"least": 2}, [2, 2]),
        (8, 2, {"most": 3}, [3, 3]),
        (3, 1, {"least": 4}, []),
    ],
)
def test_equal_shares(nodes: int, jobs: int, bounds: dict[str, int], shares: list[int]) -> None:
    assert theory.equal_shares(nodes, jobs, **bounds) == shares


def test_two_nodes_by_hand() -> None:
    # phi = 1.5, 2, 2, ...; P(n) is proportional to 1, 2/3, 1/3, 1/6, ..., which sum to 7/3, and E[N] = 8/3 / (7/3).
    assert theory.equipartition_rates([1, 1.5]) == [1.5, 2]
    assert theory.equipartition_mean_response(1.0, 1.0, [1, 1.5]) == pytest.approx(8 / 7)


def test_known_queues() -> None:
    # A linear speedup makes one server of all nodes; jobs of one node each are M/M/c.
    assert theory.equipartition_mean_response(0.02, 100, range(1, 5)) == pytest.approx(100 / 4 / (1 - 0.5))
    assert theory.equipartition_mean_response(0.03, 100, [1] * 4, most=1) == pytest.approx(mmc_mean_wait(4, 0.03, 100) + 100)
    assert theory.equipartition_mean_response(0.02, 100, range(1, 5), least=4) == pytest.approx(50)


def test_four_nodes_with_downeys_speedup_by_balance() -> None:
    speeds = [DowneySpeedup().speedup(nodes, 4) for nodes in range(1, 5)]
    rates = theory.equipartition_rates(speeds)
    assert rates == pytest.approx([32 / 11, 2 * 16 / 9, 16 / 9 + 2, 4])
    weights = [1.0]
    for jobs in range(1, 400):
        weights.append(weights[-1] * 3 / rates[min(jobs, 4) - 1])
    mean_jobs = np.dot(range(400), weights) / sum(weights)
    assert theory.equipartition_mean_response(3.0, 1.0, speeds) == pytest.approx(mean_jobs / 3)


def test_a_resize_pays_up_to_a_cost() -> None:
    assert theory.largest_cost_that_pays_s(100, 1, 2) == 50
    assert theory.largest_cost_that_pays_s(100, 1, 2, min_gain=0.2) == pytest.approx(30)
    assert theory.largest_cost_that_pays_s(100, 2, 1) == 0
    # At that cost a pair of jobs is as fast with a resize as without.
    assert theory.pair_mean_response(100, 2, 50) == theory.pair_mean_response(100, 2, 0, grows="never") == 100
    assert theory.pair_mean_response(100, 1, 0, grows="if it pays") == 100


def test_the_rest_of_a_pair_that_grows_if_it_pays() -> None:
    rest = (np.arange(2_000_000) + 0.5) / 2_000_000
    rest = -100 * np.log(rest)
    expected = 50 + np.minimum(rest, 30 + rest / 1.6).mean() / 2
    assert theory.pair_mean_response(100, 1.6, 30, grows="if it pays") == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.equipartition_rates([]), "speedups: .* it must be a sequence of finite numbers > 0"),
        (lambda: theory.equipartition_rates([1, 2], least=3), "least: 3 is not allowed; it must be <= 2 nodes"),
        (lambda: theory.equipartition_mean_response(2, 1, [1, 2]), "load: 2 is not allowed; it must be > 0 and < 2"),
        (lambda: theory.pair_mean_response(1, 2, 0, grows="x"), "grows: 'x' is not allowed; it must be one of never"),
        (lambda: theory.largest_cost_that_pays_s(1, 0, 2), "before: 0 is not allowed; it must be a number > 0"),
    ],
)
def test_refusals(call: object, message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        call()  # type: ignore[operator]
