"""What holds in every run of gang scheduling with urgent jobs, and the two fidelities against each other."""

from contextlib import nullcontext

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clustermodel import Checkpointing, Machine, Scenario, TimeSlicing, Workload
from clustermodel.errors import SpecificationError
from clustermodel.recording.run_attempts import Status
from clustermodel.workload.job import JobRow
from tests.gang_runs import GangCase, gang_cases, run, seen_in_time
from tests.property.strategies import cases

MODES = ("kill", "checkpoint", "suspend")
POLICIES = [f"{policy}:urgent={mode}" for policy in ("bgs", "mbgs") for mode in MODES]


@settings(max_examples=cases(600))
@given(case=gang_cases(perhaps_none_runs=True), policy=st.sampled_from(POLICIES))
def test_both_fidelities_agree_and_every_job_ends(case: GangCase, policy: str) -> None:
    if case.machine.checkpointing.max_tasks_per_slice == 0 and "kill" not in policy:
        with pytest.raises(SpecificationError, match="the machine takes no checkpoints"):
            run(case, policy)
        return
    fast = run(case, policy)
    with nullcontext() if fast.slices is not None else pytest.warns(UserWarning, match="nothing to play"):
        node = run(case, policy, fidelity="node")
    assert seen_in_time(fast) == seen_in_time(node)
    assert set(fast.records.column("ended_as").tolist()) <= {Status.COMPLETED, Status.KILLED, Status.REJECTED}


@settings(max_examples=cases(200))
@given(case=gang_cases(kill=True, free=True), policy=st.sampled_from(("bgs:urgent=kill", "mbgs:urgent=kill")))
def test_the_first_urgent_job_starts_when_it_is_submitted_and_runs_undivided(case: GangCase, policy: str) -> None:
    """Where nothing costs time, and jobs of lower priority are all that run when it comes."""
    rows = [row._replace(priority=0) for row in case.rows]
    accepted = [row for row in rows if 0 < row.nodes <= case.machine.nodes]
    assume(accepted)  # otherwise no job of lower priority comes
    first = min(row.submit for row in accepted)
    urgent = JobRow(first + 5, 99, case.machine.nodes, 7, 7, -1, -1, 1, -1)
    result = run(GangCase(case.machine, sorted([*rows, urgent])), policy)
    columns = (result.records.column(name).tolist() for name in ("id", "start", "end"))
    start, end = next((start, end) for number, start, end in zip(*columns, strict=True) if number == 99)
    assert (start, end) == (first + 5, first + 12)


def test_gangs_of_the_same_priority_are_never_preempted() -> None:
    rows = [JobRow(n, n, 1 + n % 3, 20, 20, -1, -1, 5, -1) for n in range(1, 15)]
    machine = Machine(nodes=3, time_slicing=TimeSlicing(quantum_s=3e-6, mpl=2))
    plain, urgent = (
        Scenario(machine=machine, workload=Workload(rows), policy=name).run() for name in ("bgs", "bgs:urgent=kill")
    )
    assert len(urgent.records.stopped_runs.job) == 0
    assert plain.jobs.equals(urgent.jobs)


def test_more_urgent_jobs_preempt_urgent_ones() -> None:
    rows = [
        JobRow(0, 1, 1, 50, 50, -1, -1, 0, -1),
        JobRow(1, 2, 2, 50, 50, -1, -1, 1, -1),
        JobRow(2, 3, 2, 50, 50, -1, -1, 2, -1),
    ]
    machine = Machine(nodes=2, time_slicing=TimeSlicing(quantum_s=3e-6, mpl=2), checkpointing=Checkpointing())
    result = Scenario(machine=machine, workload=Workload(rows), policy="bgs:urgent=checkpoint").run()
    times = zip(*(result.records.column(name).tolist() for name in ("id", "start", "end")), strict=True)
    # 1 works in 0..1, 2 in 1..2, 3 in 2..52; then 2 goes on to 101, and 1 to 150.
    assert sorted(times) == [(1, 101, 150), (2, 52, 101), (3, 2, 52)]
