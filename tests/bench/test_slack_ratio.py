"""Speed of slack-based backfilling as a ratio to the bare-SimPy floor and to conservative backfilling.

Bounds are 15 % above what was measured.
"""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from clustermodel import Machine, Scenario, synthetic_workload
from tests.bench.test_ratios import require_near_floor
from tests.bench.timing import best_of, require_at_most, size, trace


@pytest.mark.parametrize(
    "compression",
    [pytest.param("afresh", marks=pytest.mark.bench), pytest.param("in-place", marks=pytest.mark.slow_bench)],
)
def test_slack_on_a_year_of_kth(benchmark: BenchmarkFixture, compression: str) -> None:
    workload = trace("KTH-SP2-1996-2.2")
    policy = f"slack:compression={compression}"  # AST; the conservative run that measures AWT is part of the first
    require_near_floor(benchmark, workload, 128, policy, 26, rounds=1)


@pytest.mark.bench
def test_slack_costs_a_small_multiple_of_conservative_backfilling() -> None:
    workload, machine = trace("KTH-SP2-1996-2.2"), Machine(nodes=128)  # test_watched_ratios.py: on 100 nodes
    runs = [Scenario(machine=machine, workload=workload, policy=policy).run for policy in ("conservative", "slack")]

    def measure() -> float:
        conservative_s, slack_s = best_of(*runs, rounds=1)
        print(f"\nslack on a year of KTH: {slack_s / conservative_s:.2f} times as long as conservative")
        return slack_s / conservative_s

    require_at_most(3.1, measure)


@pytest.mark.bench
def test_slack_with_deep_queues(benchmark: BenchmarkFixture) -> None:
    require_near_floor(benchmark, synthetic_workload(jobs=size(2_000), load=0.9), 128, "slack", 46, rounds=2)
