"""The case of Herault et al. 2018, on a few weeks of one replication: the study itself has many."""

import pytest

from clustermodel import Checkpointing, Job, Machine, Outages, Scenario, Study, Workload
from tests.scripts import study_of

BOUNDS = {"40 GB/s, MTBF 8 h": 0.1066, "160 GB/s, MTBF 1 h": 0.1549}


@pytest.fixture(scope="module")
def study() -> Study:
    return study_of("papers/herault_2018/shared_store", {"days": "40"})


def waste(study: Study, case: str, writers: str) -> float:
    return float(study.measures["waste"](study.scenario(case=case, writers=writers, interval="daly", seed=1).run()))  # type: ignore[operator]


def test_waiting_for_a_turn_costs_less_than_sharing_and_executing_meanwhile_costs_least(study: Study) -> None:
    case = "40 GB/s, MTBF 8 h"
    found = {writers: waste(study, case, writers) for writers in ("oblivious", "fcfs", "fcfs_nonblocking", "least_waste")}
    assert found["oblivious"] > 1.2 * found["fcfs"] > 1.2 * found["fcfs_nonblocking"]
    assert found["least_waste"] == pytest.approx(BOUNDS[case], rel=0.15)


def test_work_that_a_failure_during_a_checkpoint_discards_can_be_taken_off(study: Study) -> None:
    """10 s of work and 5 s for a checkpoint in turn; a failure when one has ended, and a failure during one."""
    gang = Job(id=1, submit_s=0, nodes=1, run_s=100)
    failures = Outages(node=[0, 0], down_s=[15.0, 26.0], up_s=[15.0, 26.0], nodes=1)  # type: ignore[arg-type]
    machine = Machine(
        nodes=1, kill_at_estimate=False, failures=failures, checkpointing=Checkpointing(checkpoint_s=5, interval_s=10)
    )
    result = Scenario(machine=machine, workload=Workload.from_jobs([gang]), policy="fcfs").run()
    assert result.run_attempts["lost_s"].tolist() == [0, 10, 0]
    busy_s = float(result.ledger.frame["total_node_s"].drop("idle").sum())
    found, kept = (float(study.measures[name](result)) for name in ("waste", "waste_if_kept"))  # type: ignore[operator]
    assert found - kept == pytest.approx(10 / busy_s)


@pytest.mark.long
def test_the_waste_under_heavy_load(study: Study) -> None:
    case = "160 GB/s, MTBF 1 h"
    assert waste(study, case, "oblivious") > 1.5 * waste(study, case, "least_waste")
    assert waste(study, case, "least_waste") == pytest.approx(BOUNDS[case], rel=0.15)
