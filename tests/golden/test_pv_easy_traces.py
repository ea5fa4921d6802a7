"""PV-EASY on a real trace: no job is delayed by lower-priority jobs."""

from functools import cache

import pytest

from clustermodel import Machine, Scenario, read_swf
from clustermodel.experiment.result import Result
from clustermodel.measure.fairness import delays_by_later_jobs
from clustermodel.measure.job_table import Jobs
from clustermodel.recording.ledger import Account
from tests.shared_data import trace_path
from tests.tiers import some

PREDICTORS = ["last", *some(["perfect", "estimate", "virtual:0.4", "last-two"], one_in=2)]


@cache
def run(policy: str, *, kill: bool) -> Result:
    machine = Machine(nodes=100, kill_at_estimate=kill)
    return Scenario(machine=machine, workload=read_swf(trace_path("KTH-SP2-1996-2.2")), policy=policy).run()


@pytest.mark.long
@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("predictor", PREDICTORS)
def test_on_kth_nobody_is_delayed_whatever_is_predicted(predictor: str, kill: bool) -> None:
    result = run(f"pv-easy:predictor={predictor}", kill=kill)
    summary = result.summary()
    assert (summary.delayed, summary.reservation_violations) == (0, 0)
    assert delays_by_later_jobs(result.records, 100, only_with_idle_nodes=False).max() == 0  # by the bare words either
    assert sum(result.ledger.amount(Account.LOST)) == Jobs.of(result.records).wasted.sum() > 0
    assert abs(result.kappa_by_formula - result.ledger.capacity_loss) < 1e-9


@pytest.mark.long
def test_on_kth_easy_delays_760_jobs_and_easy_last_violates_reservations() -> None:
    easy, last = (run(policy, kill=True).summary() for policy in ("easy", "easy:predictor=last"))
    assert (easy.delayed, easy.reservation_violations, easy.benign_violations) == (760, 0, 0)
    assert last.delayed > 0
    assert last.reservation_violations > 0
    assert last.benign_violations > 0
