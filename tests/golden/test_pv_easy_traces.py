"""PV-EASY on real traces: no job is delayed by lower-priority jobs; tables 5 and 6 of Yuan et al. 2010."""

from __future__ import annotations

from functools import cache

import pytest

from clustermodel import Machine, Scenario, read_swf
from clustermodel.experiment.result import Result
from clustermodel.measure.fairness import delays_by_later_jobs
from clustermodel.measure.job_table import Jobs
from clustermodel.recording.ledger import Account
from tests.shared_data import trace_path
from tests.tiers import some

KTH, CTC, BLUE = "KTH-SP2-1996-2.2", "CTC-SP2-1996-3.1-cln", "SDSC-BLUE-2000-4.2-cln"
NODES = {KTH: 100, CTC: 430, BLUE: 1152}
PREDICTORS = ["last", *some(["perfect", "estimate", "virtual:0.4", "last-two"], one_in=2)]


@cache
def run(trace: str, policy: str, *, kill: bool = False) -> Result:
    machine = Machine(nodes=NODES[trace], kill_at_estimate=kill)
    return Scenario(machine=machine, workload=read_swf(trace_path(trace)), policy=policy).run()


@pytest.mark.long
@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("predictor", PREDICTORS)
def test_on_kth_nobody_is_delayed_whatever_is_predicted(predictor: str, kill: bool) -> None:
    result = run(KTH, f"pv-easy:predictor={predictor}", kill=kill)
    summary = result.summary()
    assert (summary.delayed, summary.reservation_violations) == (0, 0)
    assert delays_by_later_jobs(result.records, 100, only_with_idle_nodes=False).max() == 0  # by the bare words either
    assert sum(result.ledger.amount(Account.LOST)) == Jobs.of(result.records).wasted.sum() > 0
    assert abs(result.kappa_by_formula - result.ledger.capacity_loss) < 1e-9


@pytest.mark.long
def test_on_kth_easy_delays_760_jobs_and_easy_last_violates_reservations() -> None:
    easy, last = (run(KTH, policy, kill=True).summary() for policy in ("easy", "easy:predictor=last"))
    assert (easy.delayed, easy.reservation_violations, easy.benign_violations) == (760, 0, 0)
    assert last.delayed > 0
    assert last.reservation_violations > 0
    assert last.benign_violations > 0


TABLES_5_AND_6 = {  # total and wasted load, rate of preempted jobs, MKT, mean RTW
    CTC: (0.686166, 0.0248, 0.1317, 1.72, 0.3895),
    BLUE: (0.817564, 0.0566, 0.0777, 1.46, 0.4827),
}


@pytest.mark.long
@pytest.mark.parametrize("trace", [CTC, pytest.param(BLUE, marks=pytest.mark.whole)])
def test_the_cost_of_preemption_is_within_ten_percent_of_the_papers(trace: str) -> None:
    result = run(trace, "pv-easy")
    found = result.summary()
    rate = found.preempted / found.jobs
    measured = (found.total_load, found.wasted_load, rate, found.mean_killed_times, found.runtime_waste)
    assert measured == pytest.approx(TABLES_5_AND_6[trace], rel=0.1)
    assert (found.delayed, found.reservation_violations) == (0, 0)
    easy = run(trace, "easy").summary()
    assert found.backfilled < easy.backfilled
    assert found.blocked > easy.blocked
    assert easy.delayed > 0
