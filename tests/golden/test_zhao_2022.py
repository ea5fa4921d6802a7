"""The published numbers of Zhao et al. 2022 (figures 9 and 10), and the jobs of their testbed.

The rule of Tiresias is that of the authors' program (``simulator/run_sim.py``, function ``dlas_sim_jobs``; three queues).
"""

import pytest

from clustermodel import Checkpointing, Machine, Scenario, read_trace
from clustermodel.experiment.result import Result
from clustermodel.recording.ledger import Account
from tests.scripts import defined_in
from tests.shared_data import gpu_workload

SCRIPT = defined_in("papers/zhao_2022/restart_charges")
TRACES = [name for name in SCRIPT.PUBLISHED_S if name != SCRIPT.TESTBED]
TESTBED = {"srtf": (249_140, 4_156_633), "srsf": (238_612, 4_223_122)}
"""Mean completion time and makespan of the testbed, seconds."""
IN_EVERY_ROUND = {"srtf": 271_874, "srsf": 251_793}
"""Mean completion times of an independent calculation with a restart in every round, seconds."""


def run(name: str, policy: str, charge: str, round_s: float = 0.0) -> Result:
    machine = Machine(nodes=64, checkpointing=Checkpointing(restart_charge=charge), round_s=round_s)
    return Scenario(machine=machine, workload=read_trace(gpu_workload(name)), policy=policy).run()


@pytest.mark.long
@pytest.mark.parametrize("policy", SCRIPT.POLICIES)
@pytest.mark.parametrize("name", TRACES)
def test_published_numbers(name: str, policy: str) -> None:
    result = run(name, policy, "every-decision")
    numbers = (result.summary().mean_response_s, SCRIPT.makespan_s(result), SCRIPT.p99_response_s(result))
    assert numbers == pytest.approx(SCRIPT.PUBLISHED_S[name][SCRIPT.POLICIES[policy]], rel=1e-9)


@pytest.mark.parametrize("policy", TESTBED)
def test_testbed(policy: str) -> None:
    mean_s, makespan_s = TESTBED[policy]
    on_start = run("testbed_jobs", policy, "on-start", round_s=360)
    assert on_start.summary().mean_response_s == pytest.approx(mean_s, rel=0.02)
    assert on_start.jobs["end_s"].max() == pytest.approx(makespan_s, rel=0.03)
    every_round = run("testbed_jobs", policy, "every-round", round_s=360)
    assert every_round.summary().mean_response_s == pytest.approx(IN_EVERY_ROUND[policy], abs=0.5)
    restarts = [sum(one.ledger.amount(Account.RESTART)) for one in (on_start, every_round)]
    assert 0 < restarts[0] < restarts[1]
