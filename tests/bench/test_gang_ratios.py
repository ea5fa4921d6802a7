"""Gang scheduling against the bare-SimPy floor, and its independence of the machine's width and of the number of slices."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from clustermodel import ContextSwitch, LoadScale, Machine, Scenario, TimeSlicing, load_model
from tests.bench.test_ratios import best_of, ratio_to_floor

pytestmark = pytest.mark.bench

FACTOR = 1.55
"""Run-time factor at which MBGS utilizes the machine of 002 to about 0.85."""


@pytest.mark.parametrize(("policy", "at_most"), [("gs", 15.0), ("mbgs", 60.0)])
def test_the_jobs_of_002_cost_a_small_multiple_of_the_floor(benchmark: BenchmarkFixture, policy: str, at_most: float) -> None:
    workload = load_model("blue-pacific").generate(run_time_factor=FACTOR)
    assert ratio_to_floor(benchmark, workload, 320, policy) <= at_most
