"""With one row and no costs, gang scheduling is space sharing (Zhang et al. 2003, section 4.1): all reference starts."""

import pytest

from clustermodel import Machine, Scenario, TimeSlicing, read_swf
from clustermodel.recording.ledger import Account
from tests.gang_runs import check_books
from tests.shared_data import reference_starts, trace_path


@pytest.mark.long
@pytest.mark.parametrize(("policy", "reference"), [("gs", "fcfs"), ("bgs", "conservative")])
def test_every_kth_job_starts_when_the_reference_says(policy: str, reference: str) -> None:
    expected = reference_starts(reference)
    machine = Machine(nodes=100, time_slicing=TimeSlicing(mpl=1))
    result = Scenario(machine=machine, workload=read_swf(trace_path("KTH-SP2-1996-2.2")), policy=policy).run()
    ours = dict(zip(result.jobs["job"].tolist(), result.jobs["start_s"].tolist(), strict=True))
    assert len(expected) == 28_481
    assert ours == expected
    check_books(result)
    assert {account for account in Account if sum(result.ledger.amount(account))} == {Account.USEFUL, Account.IDLE}


@pytest.mark.long
def test_a_row_of_its_own_is_the_same_on_a_machine_that_has_more() -> None:
    # A policy may use fewer rows than the machine has; the quantum does not matter with one row.
    expected = reference_starts("fcfs")
    machine = Machine(nodes=100, time_slicing=TimeSlicing(quantum_s=7, mpl=5))
    workload = read_swf(trace_path("KTH-SP2-1996-2.2"))
    result = Scenario(machine=machine, workload=workload, policy="gs:mpl=1").run()
    assert dict(zip(result.jobs["job"].tolist(), result.jobs["start_s"].tolist(), strict=True)) == expected
