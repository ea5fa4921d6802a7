"""The ledger over time: curves that integrate to the ledger's amounts."""

import numpy as np
import pytest

from clustermodel import Account, Checkpointing, ContextSwitch, Job, Machine, Scenario, Workload, load_model, synthetic_workload
from clustermodel.measure.timeline import WORK, AccountRates, rates_in_matrix, rates_in_space
from clustermodel.ticks import TICKS_PER_SECOND
from tests.timeline.script import Script, migrate, start

COSTS = Checkpointing(checkpoint_s=120.3, restart_s=60, max_tasks_per_slice=32)


def integrals(rates: AccountRates) -> dict[str, float]:
    """Return node-ticks by account."""
    lengths = np.diff(rates.ticks)
    assert (lengths > 0).all()
    return {account: (nodes[:-1] * lengths).sum() for account, nodes in rates.nodes.items()}


def test_of_a_killed_job_the_discarded_work_is_lost_while_it_is_executed() -> None:
    # Job 1 runs 0-50, gives way to job 2 until 150, and runs again 150-250.
    jobs = [Job(id=1, nodes=2, submit_s=0, run_s=100), Job(id=2, nodes=1, submit_s=50, run_s=100, priority=1)]
    result = Scenario(machine=Machine(nodes=2), workload=Workload.from_jobs(jobs), policy="pv-easy").run()
    rates = rates_in_space(result.records, result.ledger)
    assert (rates.ticks // TICKS_PER_SECOND).tolist() == [0, 50, 150, 250]
    curves = {account: nodes.tolist() for account, nodes in rates.nodes.items() if nodes.any()}
    assert curves == {"useful": [0, 1, 2, 0], "lost": [2, 0, 0, 0], "idle": [0, 1, 0, 0]}


def test_overheads_of_a_migration_have_their_accounts() -> None:
    script = Script({0: [start(1)], 10: [migrate({1: (2, 4)})]})
    machine = Machine(nodes=4, checkpointing=Checkpointing(checkpoint_s=4, restart_s=2))
    jobs = Workload.from_jobs([Job(id=1, nodes=2, submit_s=0, run_s=30)])
    result = Scenario(machine=machine, workload=jobs, policy=script).run()
    rates = rates_in_space(result.records, result.ledger)
    assert (rates.ticks // TICKS_PER_SECOND).tolist() == [0, 10, 14, 16, 36]
    curves = {account: nodes.tolist() for account, nodes in rates.nodes.items() if nodes.any()}
    assert curves == {
        "useful": [2, 0, 0, 2, 0],
        "checkpoint": [0, 2, 0, 0, 0],
        "restart": [0, 0, 2, 0, 0],
        "idle": [2, 2, 2, 2, 0],
    }


@pytest.mark.parametrize(
    "policy", ["fcfs", "pv-easy", "pv-easy:mode=checkpoint", "pv-easy:mode=suspend", "ss:mode=kill", "R/L-NG:speculation=0.9"]
)
def test_curves_of_dedicated_nodes_integrate_to_the_ledger(policy: str) -> None:
    machine = Machine(nodes=64, checkpointing=COSTS, context_switch=ContextSwitch(fraction=0.01))
    result = Scenario(machine=machine, workload=synthetic_workload(jobs=400, nodes=64, load=1.1), policy=policy).run()
    rates = rates_in_space(result.records, result.ledger)
    assert integrals(rates) == {account.value: sum(result.ledger.amount(account)) for account in Account}
    assert all((nodes >= 0).all() for nodes in rates.nodes.values())
    assert (sum(rates.nodes.values())[:-1] == 64).all()


@pytest.mark.parametrize("policy", ["gs", "mbgs", "bgs:urgent=kill", "bgs:urgent=checkpoint"])
def test_curves_of_nodes_shared_in_time_integrate_to_the_ledger(policy: str) -> None:
    jobs = load_model("blue-pacific").generate(jobs=200, run_time_factor=1.8)
    rows = [row._replace(priority=int(row.id % 10 == 0)) for row in jobs.rows()]
    machine = Machine(nodes=320, context_switch=ContextSwitch(fraction=0.02), checkpointing=Checkpointing(checkpoint_s=5))
    result = Scenario(machine=machine, workload=Workload(rows), policy=policy, history=True).run()
    rates = rates_in_matrix(result.records, result.history, result.ledger)
    amounts = {account.value: sum(result.ledger.amount(account)) for account in Account}
    amounts[WORK] = amounts.pop("useful") + amounts.pop("lost")
    found = integrals(rates)
    assert found.keys() == amounts.keys()
    for account, amount in amounts.items():
        assert found[account] == pytest.approx(amount, rel=1e-9, abs=1), account
    assert all((nodes >= 0).all() for nodes in rates.nodes.values())
