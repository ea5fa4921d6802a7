"""Selective suspension on a real trace: what must hold of any run, and whom it is for (Kettimuthu et al. 2005)."""

from __future__ import annotations

from functools import cache

import pytest

from clustermodel import ContextSwitch, Machine, Scenario, read_swf
from clustermodel.experiment.result import Result
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import Status
from tests.shared_data import trace_path

COST_S = 30


@cache
def run(policy: str) -> Result:
    machine = Machine(nodes=100, context_switch=ContextSwitch(seconds=COST_S))
    return Scenario(machine=machine, workload=read_swf(trace_path("KTH-SP2-1996-2.2")), policy=policy).run()


@pytest.mark.whole
def test_on_kth_jobs_are_suspended_at_full_minutes_resume_on_their_own_nodes_and_lose_nothing() -> None:
    result = run("ss")
    records, ledger = result.records, result.ledger
    starts = records.column("start").tolist()
    suspended = list(records.each_stopped_run())
    assert len(suspended) > 1000
    for one in suspended:
        assert one.ended_as is Status.SUSPENDED
        # It holds its nodes for a context switch, unless it was stopped before it was back in its nodes.
        assert one.end % 60_000_000 in (0, COST_S * 1_000_000)
        assert one.columns == records.columns_of(one.job)
        assert one.end <= starts[one.job]
    assert sum(ledger.amount(Account.LOST)) == 0
    assert sum(ledger.amount(Account.USEFUL)) == sum(run("easy").ledger.amount(Account.USEFUL))
    assert abs(result.kappa_by_formula - ledger.capacity_loss) < 1e-9


@pytest.mark.whole
def test_on_kth_very_short_jobs_have_less_than_a_fifth_of_the_slowdown_of_easy_and_very_long_jobs_have_more() -> None:
    def slowdown(policy: str, low_s: float, high_s: float) -> float:
        jobs = run(policy).jobs
        jobs = jobs[(jobs["run_s"] > low_s) & (jobs["run_s"] <= high_s)]
        return float((jobs["response_s"] / jobs["run_s"].clip(lower=10)).clip(lower=1).mean())

    assert slowdown("ss", 0, 600) < slowdown("easy", 0, 600) / 5
    assert slowdown("ss", 8 * 3600, 1e9) > slowdown("easy", 8 * 3600, 1e9)
