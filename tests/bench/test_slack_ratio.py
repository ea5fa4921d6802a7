"""Speed of slack-based backfilling as a ratio to the bare-SimPy floor.

The budget is 60 s on one core for the year of KTH.  The floor takes about 5.5 us a job where that was written down, 0.157 s for
28,481 jobs, so 60 s are 383 times the floor.  We ask for a fifth of that.
"""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from clustermodel import read_swf
from tests.bench.test_ratios import ratio_to_floor
from tests.shared_data import trace_path

pytestmark = pytest.mark.bench


@pytest.mark.parametrize("remove", ["afresh", pytest.param("in-place", marks=pytest.mark.slow_bench)])
def test_slack_on_a_year_of_kth(benchmark: BenchmarkFixture, remove: str) -> None:
    workload = read_swf(trace_path("KTH-SP2-1996-2.2"))
    policy = f"slack:remove={remove}"  # AST; the conservative run that measures AWT is part of it
    assert ratio_to_floor(benchmark, workload, 128, policy, rounds=1) <= 75
