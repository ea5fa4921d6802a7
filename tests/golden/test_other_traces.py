"""Every other trace runs through all three policies: wide machines, deep queues, missing fields, saturation."""

import numpy as np
import pytest

from clustermodel import Machine, Scenario, Workload, read_swf
from clustermodel.policies.registry import policy_names
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import Status
from clustermodel.theory.capacity_loss import capacity_loss
from tests.shared_data import trace_path

TRACES = [
    pytest.param(("NASA-iPSC-1993-3.1-cln", 128, 18_066), id="NASA-iPSC"),
    pytest.param(("lublin_256", 256, 10_000), id="lublin"),
    pytest.param(("CEA-Curie-2011-sample", 93_312, 29_998), id="Curie-sample"),
    pytest.param(("SDSC-BLUE-2000-4.2-cln", 1_152, 232_536), id="SDSC-BLUE", marks=pytest.mark.whole),
    pytest.param(("CEA-Curie-2011-2.1-cln", 93_312, 295_540), id="Curie", marks=pytest.mark.whole),
]


@pytest.fixture(scope="module", params=TRACES)
def trace(request: pytest.FixtureRequest) -> tuple[Workload, int, int]:
    name, nodes, jobs = request.param
    return read_swf(trace_path(name)), nodes, jobs


@pytest.mark.long
@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_every_job_runs_once_and_the_books_balance(trace: tuple[Workload, int, int], policy: str) -> None:
    workload, nodes, jobs = trace
    assert policy in policy_names()
    assert len(workload) == jobs
    result = Scenario(machine=Machine(nodes=nodes), workload=workload, policy=policy).run()
    records, ledger = result.records, result.ledger
    ended_as = records.column("ended_as")
    assert np.isin(ended_as, [Status.COMPLETED, Status.KILLED]).all()
    start, submit, end = (records.column(name) for name in ("start", "submit", "end"))
    assert (start >= submit).all()
    assert (end - start == np.minimum(workload.column("run"), workload.column("estimate"))).all()
    assert sum(sum(ledger.amount(account)) for account in Account) == nodes * int(end.max() - submit.min())
    log = result.events
    assert log.empty.min() >= 0
    assert capacity_loss(log.time_s, log.empty, log.waiting, nodes) == pytest.approx(ledger.capacity_loss, abs=1e-9)
