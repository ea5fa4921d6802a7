"""Hand-worked timelines of gangs in rows that differ in how long their context switches take."""

import pytest

import clustermodel as cm
from clustermodel.recording.ledger import Account
from tests.timeline.timeline import accounts, play_both, spans

JOBS = "1 0 2 12\n2 0 1 9\n3 0 1 9"
QUANTUM_10 = {"time_slicing": cm.TimeSlicing(quantum_s=10, mpl=2)}


def twice(nodes: int) -> float:
    """Return two seconds a node."""
    return 2.0 * nodes


def test_each_gang_pays_its_own_switch_on_its_own_nodes() -> None:
    # Job 1 switches for 4 s at 0 and at 20, jobs 2 and 3 for 2 s at 10.  They need a second more at 20; job 1 comes first, and
    # ends with its slice at 30.  Then 2 and 3 switch again, and end at 33.
    result = play_both(2, JOBS, "gs", context_switch=cm.ContextSwitch(seconds=twice), **QUANTUM_10)
    assert spans(result) == {1: (0, 30), 2: (0, 33), 3: (0, 33)}
    assert accounts(result) == {Account.USEFUL: 24 + 9 + 9, Account.CONTEXT_SWITCH: 2 * 4 * 2 + 2 * 2 * 2}


def test_a_job_may_have_a_switch_of_its_own() -> None:
    # Job 3 does not switch, and ends at 19, which cuts the slice.  Job 1 switches until 23 and ends at 29, job 2 until 31.
    jobs = [
        cm.Job(id=1, submit_s=0, nodes=2, run_s=12),
        cm.Job(id=2, submit_s=0, nodes=1, run_s=9),
        cm.Job(id=3, submit_s=0, nodes=1, run_s=9, context_switch_s=0),
    ]
    machine = cm.Machine(nodes=2, context_switch=cm.ContextSwitch(seconds=twice), **QUANTUM_10)
    for fidelity in ("fast", "node"):
        result = cm.Scenario(machine=machine, workload=cm.Workload.from_jobs(jobs), policy="gs", fidelity=fidelity).run()
        assert spans(result) == {1: (0, 29), 2: (0, 33), 3: (0, 19)}
        assert accounts(result) == {Account.USEFUL: 24 + 9 + 9, Account.CONTEXT_SWITCH: 2 * 4 * 2 + 2 * 2, Account.IDLE: 4}


def test_in_every_slice() -> None:
    # Job 1 alone: 4 s of 10 in each of two slices.
    switch = cm.ContextSwitch(seconds=cm.SizeCost(base_s=2, per_node_s=1), charge="every-slice")
    result = play_both(2, "1 0 2 12", "gs", context_switch=switch, **QUANTUM_10)
    assert spans(result) == {1: (0, 20)}
    assert accounts(result) == {Account.USEFUL: 24, Account.CONTEXT_SWITCH: 16}


def test_a_switch_as_long_as_a_slice_is_refused() -> None:
    refused = r"a quantum of 10 s is not allowed; it must be longer than the context switch of a gang of 5 nodes of 10 s"
    with pytest.raises(cm.SpecificationError, match=refused):
        play_both(5, "1 0 5 12", "gs", context_switch=cm.ContextSwitch(seconds=twice), **QUANTUM_10)
    with pytest.raises(cm.SpecificationError, match=r"it must be longer than the context switch of job 1 of 20 s"):
        play_both(5, "1 0 5 12", "gs", each={"context_switch_s": 20}, **QUANTUM_10)


def test_a_formula_needs_a_constant() -> None:
    machine = cm.Machine(nodes=2, context_switch=cm.ContextSwitch(seconds=twice))
    with pytest.raises(cm.SpecificationError, match=r"ContextSwitch\.seconds: a function .* is not allowed where all switches"):
        machine.switch_ticks  # noqa: B018
