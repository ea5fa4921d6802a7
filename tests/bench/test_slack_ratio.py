"""Speed of slack-based backfilling as a ratio to the bare-SimPy floor and to conservative backfilling.

Bounds are 15 % above what was measured.
"""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from clustermodel import Machine, Scenario, read_swf, synthetic_workload
from tests.bench.test_ratios import ratio_to_floor
from tests.bench.timing import best_of
from tests.shared_data import trace_path

pytestmark = pytest.mark.bench


@pytest.mark.parametrize("remove", ["afresh", pytest.param("in-place", marks=pytest.mark.slow_bench)])
def test_slack_on_a_year_of_kth(benchmark: BenchmarkFixture, remove: str) -> None:
    workload = read_swf(trace_path("KTH-SP2-1996-2.2"))
    policy = f"slack:remove={remove}"  # AST; the conservative run that measures AWT is part of it
    assert ratio_to_floor(benchmark, workload, 128, policy, rounds=1) <= 34


def test_slack_costs_a_small_multiple_of_conservative_backfilling() -> None:
    workload, machine = read_swf(trace_path("KTH-SP2-1996-2.2")), Machine(nodes=128)  # test_watched_ratios.py: on 100 nodes
    runs = [Scenario(machine=machine, workload=workload, policy=policy).run for policy in ("conservative", "slack")]
    conservative_s, slack_s = best_of(*runs, rounds=1)
    print(f"\nslack on a year of KTH: {slack_s / conservative_s:.2f} times as long as conservative")
    assert slack_s <= 4.2 * conservative_s


def test_slack_with_deep_queues(benchmark: BenchmarkFixture) -> None:
    assert ratio_to_floor(benchmark, synthetic_workload(jobs=2_000, load=0.9), 128, "slack", rounds=2) <= 70
