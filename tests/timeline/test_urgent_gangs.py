"""Urgent jobs in rows, second by second: four nodes, slices of ten seconds, two rows.

Job 1 takes all nodes of one row for 100 s, job 2 nodes 0 and 1 of the other one for 50 s.  The urgent job 3 comes at 25 s and
needs two nodes for 30 s.  On nodes 2 and 3 only job 1 is in its way.  Until then the rows have run in turn: job 1 has executed
in 0..10 and 20..25, job 2 in 10..20.
"""

import pytest

from clustermodel import Account, Checkpointing, Job, Machine, Scenario, TimeSlicing, Workload
from clustermodel.experiment.result import Result

JOBS = [
    Job(id=1, nodes=4, submit_s=0, run_s=100),
    Job(id=2, nodes=2, submit_s=0, run_s=50),
    Job(id=3, nodes=2, submit_s=25, run_s=30, priority=1),
]
both = pytest.mark.parametrize("fidelity", ["fast", "node"])


def play(mode: str, fidelity: str, *, checkpointing: Checkpointing | None = None, history: bool = False) -> Result:
    machine = Machine(nodes=4, time_slicing=TimeSlicing(quantum_s=10, mpl=2), checkpointing=checkpointing or Checkpointing())
    workload = Workload.from_jobs(JOBS)
    return Scenario(machine=machine, workload=workload, policy=f"bgs:urgent={mode}", fidelity=fidelity, history=history).run()  # type: ignore[arg-type]


def spans(result: Result) -> list[tuple[float, float]]:
    return list(zip(result.jobs["start_s"], result.jobs["end_s"], strict=True))


def node_seconds(result: Result, account: Account) -> float:
    return sum(result.ledger.amount(account)) / 1e6


@both
def test_kill_frees_the_nodes_at_once(fidelity: str) -> None:
    result = play("kill", fidelity)
    # 3 runs in 25..55 beside 2, whose row is the only one then.  At 55 job 1 begins again in the other row: 55..65; job 2 has
    # its last ten seconds in 65..75; then job 1 is alone.
    assert spans(result) == [(55, 165), (0, 75), (25, 55)]
    assert node_seconds(result, Account.LOST) == 4 * 15


@both
def test_a_suspended_gang_goes_on_where_it_was(fidelity: str) -> None:
    result = play("suspend", fidelity)
    # As before, but job 1 needs only 85 s more: 55..65, and from 75 on.
    assert spans(result) == [(55, 150), (0, 75), (25, 55)]
    assert node_seconds(result, Account.LOST) == 0


@both
def test_a_checkpoint_is_written_in_the_gangs_own_slice(fidelity: str) -> None:
    result = play("checkpoint", fidelity, checkpointing=Checkpointing(checkpoint_s=5, restart_s=3))
    # The turn is job 2's: 25..35.  Job 1 is written in 35..40; then 3 runs in 40..70 beside 2, which needs 30 s more, too.
    # Job 1 is read in 70..73 and executes its 85 s.
    assert spans(result) == [(70, 158), (0, 70), (40, 70)]
    assert node_seconds(result, Account.CHECKPOINT) == 4 * 5
    assert node_seconds(result, Account.RESTART) == 4 * 3
    assert node_seconds(result, Account.LOST) == 0


@both
def test_pictures_tell_runs_that_were_saved_or_discarded(fidelity: str) -> None:
    for mode, kind in (("kill", "lost"), ("suspend", "saved")):
        placed = play(mode, fidelity, history=True).placements
        of_1 = placed[(placed["job"] == 1) & (placed["kind"] != "replica")]
        assert of_1[["begin_s", "end_s", "kind"]].values.tolist()[0] == [0, 25, kind]
        assert of_1["kind"].tolist()[-1] == "run"
