"""Selective suspension on a real trace: whom it is for (Kettimuthu et al. 2005)."""

from functools import cache

import pytest

from clustermodel import ContextSwitch, Machine, Scenario, read_swf
from clustermodel.experiment.result import Result
from tests.shared_data import trace_path


@cache
def run(policy: str) -> Result:
    machine = Machine(nodes=100, context_switch=ContextSwitch(seconds=30))
    return Scenario(machine=machine, workload=read_swf(trace_path("KTH-SP2-1996-2.2")), policy=policy).run()


@pytest.mark.whole
def test_on_kth_very_short_jobs_have_less_than_a_fifth_of_the_slowdown_of_easy_and_very_long_jobs_have_more() -> None:
    def slowdown(policy: str, low_s: float, high_s: float) -> float:
        jobs = run(policy).jobs
        jobs = jobs[(jobs["run_s"] > low_s) & (jobs["run_s"] <= high_s)]
        return float((jobs["response_s"] / jobs["run_s"].clip(lower=10)).clip(lower=1).mean())

    assert slowdown("ss", 0, 600) < slowdown("easy", 0, 600) / 5
    assert slowdown("ss", 8 * 3600, 1e9) > slowdown("easy", 8 * 3600, 1e9)
