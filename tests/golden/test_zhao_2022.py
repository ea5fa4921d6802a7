"""The published means of Zhao et al. 2022 (figures 9 and 10), and the jobs of their testbed.

The means of SRTF and SRSF are from ../shared/traces/gpu/README.md.  Those of Tiresias are in the authors' repository
(``simulator/draw_fig9-10.py``), as is the rule (``simulator/run_sim.py``, function ``dlas_sim_jobs``; three queues).
"""

import pytest

from clustermodel import Checkpointing, Machine, Scenario, read_trace
from clustermodel.experiment.result import Result
from clustermodel.recording.ledger import Account
from tests.shared_data import gpu_workload

TIRESIAS = "las:thresholds=3250/7200"
PUBLISHED = {
    "trace1": {"srtf": 1370603.198, "srsf": 980140.5699, TIRESIAS: 3330371.307},
    "trace1_pr": {"srtf": 2303543.816, "srsf": 1801859.995, TIRESIAS: 6921682.793},
    "trace3": {"srtf": 193081.796, "srsf": 185021.8802, TIRESIAS: 347213.2481},
    "trace3_pr": {"srtf": 844394.78, "srsf": 798057.6829, TIRESIAS: 2213110.128},
}
"""Mean completion times, seconds."""
TESTBED = {"srtf": (249_140, 4_156_633), "srsf": (238_612, 4_223_122)}
"""Mean completion time and makespan of the testbed, seconds."""
IN_EVERY_ROUND = {"srtf": 271_874, "srsf": 251_793}
"""Mean completion times of an independent calculation with a restart in every round, seconds."""


def run(name: str, policy: str, charge: str, round_s: float = 0.0) -> Result:
    machine = Machine(nodes=64, checkpointing=Checkpointing(restart_charge=charge), round_s=round_s)
    return Scenario(machine=machine, workload=read_trace(gpu_workload(name)), policy=policy).run()


@pytest.mark.long
@pytest.mark.parametrize(("name", "policy"), [(name, policy) for name in PUBLISHED for policy in PUBLISHED[name]])
def test_published_means(name: str, policy: str) -> None:
    result = run(name, policy, "every-decision")
    assert result.summary().mean_response_s == pytest.approx(PUBLISHED[name][policy], rel=1e-9)


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
