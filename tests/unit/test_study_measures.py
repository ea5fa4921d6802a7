"""Measures of experiments: fairness by size of jobs, facts of jobs, overhead of migration by the equations."""

from __future__ import annotations

import numpy as np
import pytest

from clustermodel import (
    Account,
    Checkpointing,
    Machine,
    Result,
    Scenario,
    SpecificationError,
    TimeSlicing,
    TraceError,
    delays_by_later_jobs,
    synthetic_workload,
    to_seconds,
)
from clustermodel.experiment.blue_pacific import blue_pacific_scenario
from clustermodel.experiment.fairness_measures import delayed_measure, fairness_measure
from clustermodel.experiment.job_facts import FACTS, job_fact
from clustermodel.experiment.migration_overhead import CountedMigrations, migration_overhead_s
from clustermodel.workload.archive import ARCHIVE, archive_jobs


@pytest.fixture(scope="module")
def result() -> Result:
    workload = synthetic_workload(jobs=400, nodes=64, load=0.95, seed=3)
    return Scenario(machine=Machine(nodes=64), workload=workload, policy="easy").run()


def test_fairness_by_size(result: Result) -> None:
    table = result.fairness()
    assert fairness_measure("blocked")(result) == table.loc["all", "blocked"] > 0
    for group in ("wide", "narrow"):
        assert fairness_measure(f"{group}_blocked")(result) == table.loc[group, "blocked"]


def test_jobs_delayed_for_long(result: Result) -> None:
    delays_s = delays_by_later_jobs(result.records, 64)
    for over_s in (0, 600):
        assert delayed_measure(over_s=over_s)(result) == (delays_s > over_s).sum() > 0
    literally_s = delays_by_later_jobs(result.records, 64, only_with_idle_nodes=False)
    assert literally_s.sum() > delays_s.sum()
    over_s = float(np.sort(literally_s)[-2])  # of which one is longer
    assert delayed_measure(over_s=over_s, only_with_idle_nodes=False)(result) == 1


def test_facts_of_jobs(result: Result) -> None:
    jobs = result.jobs
    assert job_fact("nodes")(result) == jobs["nodes"].mean()
    assert job_fact("estimate_s", "median")(result) == jobs["estimate_s"].median()
    recorded_s = result.records.seconds("run")
    assert job_fact("overestimation")(result) == pytest.approx((jobs["estimate_s"] / recorded_s).mean())
    assert [job_fact(name)(result) > 0 for name in FACTS] == [True] * len(FACTS)
    with pytest.raises(SpecificationError, match=r"^job_fact: name: 'run' is not allowed"):
        job_fact("run")


def test_shares_of_accounts_add_up(result: Result) -> None:
    ledger = result.ledger
    assert ledger.share(*Account) == pytest.approx(1)
    assert ledger.share(Account.USEFUL) == ledger.utilization
    assert ledger.share() == 0


def test_migrations_are_counted_by_the_equations() -> None:
    saving = Checkpointing(checkpoint_s=3, restart_s=7)
    machine = Machine(nodes=16, time_slicing=TimeSlicing(quantum_s=100, mpl=4), checkpointing=saving)
    workload = synthetic_workload(jobs=150, nodes=16, load=0.9, seed=2)
    policy = CountedMigrations("mgs", checkpoint_s=3, restart_s=7)
    counted, plain = (Scenario(machine=machine, workload=workload, policy=one).run() for one in (policy, "mgs"))
    assert counted.jobs["end_s"].equals(plain.jobs["end_s"])  # counting decides nothing
    spent = sum(sum(counted.ledger.amount(one)) for one in (Account.CHECKPOINT, Account.RESTART, Account.BLOCKED))
    assert spent > 0
    assert migration_overhead_s(counted) == pytest.approx(to_seconds(spent))
    with pytest.raises(SpecificationError, match=r"^migration_overhead_s: policy mgs is not allowed; it must be"):
        migration_overhead_s(plain)


def test_the_setting_of_blue_pacific() -> None:
    scenario = blue_pacific_scenario("bgs", jobs=200, seed=4, run_time_factor=1.5)
    assert (scenario.machine.nodes, scenario.machine.time_slicing) == (320, TimeSlicing(quantum_s=200, mpl=5))
    exact = blue_pacific_scenario("bgs", jobs=200, seed=4, phi=1.0)
    assert isinstance(exact, Scenario)
    jobs, others = (one.run().jobs for one in (scenario, exact))
    assert (jobs["submit_s"].to_numpy() == others["submit_s"].to_numpy()).all()
    assert jobs["run_s"].to_numpy() == pytest.approx(1.5 * others["run_s"].to_numpy(), abs=1e-5)


def test_logs_of_the_archive() -> None:
    assert {name: log.nodes for name, log in ARCHIVE.items()} == {
        "KTH-SP2": 100, "CTC-SP2": 430, "SDSC-SP2": 128, "SDSC-BLUE": 1152,
    }  # fmt: skip
    with pytest.raises(TraceError, match=r"^nowhere/KTH-SP2-1996-2\.2\.swf\.gz: cannot be read"):
        archive_jobs("nowhere", "KTH-SP2")
    with pytest.raises(SpecificationError, match=r"^log: 'KTH' is not allowed"):
        archive_jobs("nowhere", "KTH")
