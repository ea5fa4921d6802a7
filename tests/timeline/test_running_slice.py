"""Scheduling events that leave the running slice alone, worked by hand; every timeline is played on both fidelities."""

import numpy as np
import pytest

from clustermodel import Checkpointing, ContextSwitch, Job, Machine, Scenario, TimeSlicing, Workload
from clustermodel.errors import SpecificationError
from clustermodel.experiment.result import Result
from clustermodel.policies.interface import Policy
from clustermodel.recording.ledger import Account
from clustermodel.recording.matrix_history import LoggedRotation
from tests.timeline.script import Script, abort, checkpoint, kill, place, start, then
from tests.timeline.timeline import accounts, play_both, spans


def play(
    nodes: int,
    jobs: str,
    policy: str | Policy = "gs",
    *,
    mpl: int = 2,
    switch_s: float = 0,
    charge: str = "on-change",
    checkpoint_s: float = 0,
) -> Result:
    """Run jobs given as lines ``id submit nodes run``, times in seconds, in slices of 10 s."""
    return play_both(
        nodes,
        jobs,
        policy,
        time_slicing=TimeSlicing(quantum_s=10, mpl=mpl, at_events="keep"),
        context_switch=ContextSwitch(seconds=switch_s, charge=charge),  # type: ignore[arg-type]
        checkpointing=Checkpointing(checkpoint_s=checkpoint_s),
    )


def test_an_arrival_leaves_the_slice_alone_and_an_end_that_empties_the_row_does_not() -> None:
    # 0-10 job 1, 10-20 job 2 (10), 20-30 job 3, 30-40 job 1 (20), 40-50 job 2 (20), 50-52 job 3 (12 of 12), whose row is then
    # empty: 52-62 job 1 (30 of 30), 62-72 job 2.
    result = play(1, "1 0 1 30\n2 0 1 30\n3 14 1 12", mpl=3)
    assert spans(result) == {1: (0, 62), 2: (0, 72), 3: (14, 52)}
    log = result.slices
    assert log is not None
    assert [rotation.begun for rotation in log] == [0, 4_000_000, 0, 0]
    # From 14 s to 52 s the row of job 2 runs first, the rest of its slice.
    assert list(log)[1] == LoggedRotation(38_000_000, False, (1, 1, 1), ((0, 0),) * 3, 0, 1, 4_000_000)
    assert [result.history.running_row(second * 1_000_000) for second in (14, 19, 20, 29, 30, 51, 52)] == [1, 1, 2, 2, 0, 2, 0]
    turns = [(turn.begin, turn.end, turn.row) for turn in result.history.slices(0, 40_000_000, 72_000_000)]
    assert turns == [
        (b * 1_000_000, e * 1_000_000, r) for b, e, r in ((0, 10, 0), (10, 14, 1), (14, 20, 1), (20, 30, 2), (30, 40, 0))
    ]


def test_two_cycles_at_one_instant_leave_no_slice_of_length_zero() -> None:
    # At 4 s job 2 is killed, which frees its node; then, in a cycle of its own, job 3 starts there.
    in_row_0 = {"columns": (1, 2), "row": 0}
    starts = [start(1, columns=(0, 1), row=0), start(2, **in_row_0), start(4, columns=(0, 1), row=1)]
    policy = Script({0: starts, 4: [kill(2), then, start(3, **in_row_0)], 30: [start(2, **in_row_0)]})
    result = play(2, "1 0 1 30\n2 0 1 30\n3 4 1 8\n4 0 1 30", policy)
    turns = [(turn.begin, turn.end, turn.row) for turn in result.history.slices(0, 20_000_000, 20_000_000)]
    assert turns == [(b * 1_000_000, e * 1_000_000, r) for b, e, r in ((0, 4, 0), (4, 10, 0), (10, 20, 1))]


def test_a_job_that_is_added_to_the_running_row_begins_at_once_and_disturbs_nobody() -> None:
    # Switches of 2 s.  Job 1: 0-2 switch, 2-17.  Job 2, at 5: switch until 7, 7-11, over the end of the slice at 10.
    result = play(2, "1 0 1 15\n2 5 1 4", mpl=1, switch_s=2)
    assert spans(result) == {1: (0, 17), 2: (5, 11)}
    assert accounts(result) == {Account.USEFUL: 19, Account.CONTEXT_SWITCH: 4, Account.IDLE: 11}


def test_a_switch_goes_on_in_the_next_slice_of_the_same_row() -> None:
    # Switches of 4 s.  Job 2 comes at 8: it switches until 12, two seconds of that in the next slice.  With a switch in every
    # slice job 1 works 4-10, 14-20 and 24-27, and job 2, whose switch of 8 s is not over at 10, from 14 to 19.
    jobs = "1 0 1 15\n2 8 1 5"
    assert spans(play(2, jobs, mpl=1, switch_s=4)) == {1: (0, 19), 2: (8, 17)}
    result = play(2, jobs, mpl=1, switch_s=4, charge="every-slice")
    assert spans(result) == {1: (0, 27), 2: (8, 19)}
    assert accounts(result) == {Account.USEFUL: 20, Account.CONTEXT_SWITCH: 3 * 4 + 2 + 4, Account.IDLE: 8 + 8}


def test_a_switch_that_the_end_of_the_slice_interrupts_is_lost_if_another_row_is_next() -> None:
    # Switches of 4 s.  Row 0: job 1, from 8 s on job 3 too; row 1: job 2 on both nodes.  0-10 job 1 (6); 8-10 job 3 switches.
    # 10-20 job 2 (6).  20-24 both switch, 24-29 job 3 (5 of 5), until 30 job 1 (12 of 12).
    # Then job 2 alone: 4 s of switch, 30-44 (16 of 16).
    result = play(2, "1 0 1 12\n2 0 2 16\n3 8 1 5", switch_s=4)
    assert spans(result) == {1: (0, 30), 2: (0, 44), 3: (8, 29)}
    assert accounts(result) == {Account.USEFUL: 12 + 32 + 5, Account.CONTEXT_SWITCH: 4 + 2 + 8 + 8 + 8, Account.IDLE: 8 + 1}


def test_the_row_that_goes_on_is_the_one_with_the_running_tasks_whatever_its_number() -> None:
    # Switches of 2 s.  Row 0 with job 1 runs first.  At 4 s job 1 moves to row 1, where job 2 has not run yet: the slice of
    # job 1 goes on, job 2 switches until 6.  Then there is one row: 1 ends after 2 + 20, 2 after 6 + 20.
    script = Script({0: [start(1, columns=(0, 1), row=0), start(2, columns=(1, 2), row=1)], 4: [place({1: ((0, 1), 1)})]})
    result = play(2, "1 0 1 20\n2 0 1 20", script, switch_s=2)
    assert spans(result) == {1: (0, 22), 2: (0, 26)}
    assert [(moment.rotation, moment.begun) for moment in result.history.moments[:2]] == [((0, 1), 0), ((1,), 4_000_000)]


def test_of_rows_with_as_many_running_tasks_the_one_with_the_same_number_goes_on() -> None:
    # Jobs 1 and 2 run in row 1, which comes first as row 0 is empty.  At 4 s job 1 moves to row 0: row 1 goes on until 10 with
    # job 2, and the row after it is row 0.  Without costs: 0-10 job 2, 0-4 job 1, 10-20 job 1 (14), 20-22 job 2 (12 of 12),
    # and then job 1 from 22 to 26.
    script = Script({0: [start(1, columns=(0, 1), row=1), start(2, columns=(1, 2), row=1)], 4: [place({1: ((0, 1), 0)})]})
    assert spans(play(2, "1 0 1 18\n2 0 1 12", script)) == {1: (0, 26), 2: (0, 22)}


def test_a_gang_that_leaves_the_running_row_leaves_its_nodes_idle_for_the_rest_of_the_slice() -> None:
    # Job 2 is killed at 4 s: its node is idle until job 1's slice ends at 10, and in all later slices.
    script = Script({0: [start(1, columns=(0, 1), row=0), start(2, columns=(1, 2), row=0)], 4: [abort(2)]})
    result = play(2, "1 0 1 15\n2 0 1 15", script)
    assert spans(result) == {1: (0, 15), 2: (0, 4)}
    assert accounts(result) == {Account.USEFUL: 15, Account.LOST: 4, Account.IDLE: 11}


def test_what_a_preemption_costs_comes_at_once_in_the_running_row_and_after_a_switch() -> None:
    # Switches of 4 s, checkpoints of 3.  Stopped at 2 s, job 1 finishes its switch at 4, and writes until 7.  Stopped at 6, it
    # writes 6-9.  Job 2, on the other node, does not notice.
    for at, end in ((2, 7), (6, 9)):
        begin = [start(1, columns=(0, 1), row=0), start(2, columns=(1, 2), row=0)]
        script = Script({0: begin, at: [checkpoint(1)], 20: [start(1, columns=(0, 1), row=0)]})
        result = play(2, "1 0 1 15\n2 0 1 15", script, switch_s=4, checkpoint_s=3)
        stopped = result.records.stopped_runs
        assert stopped.end.tolist() == [end * 1_000_000]
        assert spans(result)[2] == (0, 19)


def test_a_gang_that_migrates_in_the_running_row_switches_on_its_new_node() -> None:
    # Switches of 2 s, a migration that costs nothing.  Job 1 has executed 4 s at 6 s, and goes on at 8 on node 2.
    script = Script({0: [start(1, columns=(0, 1), row=0), start(2, columns=(1, 2), row=0)], 6: [place({1: ((2, 3), 0)})]})
    assert spans(play(3, "1 0 1 10\n2 0 1 10", script, switch_s=2)) == {1: (0, 14), 2: (0, 12)}


def test_one_node_jobs_in_one_row_are_first_come_first_served_with_run_times_longer_by_the_switch() -> None:
    rng = np.random.default_rng(1)
    submit, run = np.cumsum(rng.exponential(100 / (4 * 0.7), 2_000)), rng.exponential(100, 2_000)

    def jobs(longer_s: float) -> Workload:
        each = enumerate(zip(submit.tolist(), run.tolist(), strict=True), 1)
        return Workload.from_jobs(Job(id=n, nodes=1, submit_s=s, run_s=round(r, 6) + longer_s) for n, (s, r) in each)

    machine = Machine(nodes=4, time_slicing=TimeSlicing(mpl=1, at_events="keep"), context_switch=ContextSwitch(seconds=20))
    kept = Scenario(machine=machine, workload=jobs(0), policy="gs").run()
    plain = Scenario(machine=Machine(nodes=4), workload=jobs(20), policy="fcfs").run()
    assert spans(kept) == spans(plain)


def test_other_rules_are_refused() -> None:
    with pytest.raises(SpecificationError, match=r"TimeSlicing\.at_events: 'stop' is not allowed; it must be"):
        TimeSlicing(at_events="stop")  # type: ignore[arg-type]
