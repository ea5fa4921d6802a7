"""Hand-worked timelines of preemption where nodes are shared in time; every timeline is played on both fidelities."""

from typing import Any

import pytest

from clustermodel import Checkpointing, ContextSwitch, DowneySpeedup, TimeSlicing
from clustermodel.experiment.result import Result
from clustermodel.policies.view import RunningJob, View
from clustermodel.recording.ledger import Account
from clustermodel.ticks import TICKS_PER_SECOND as SECOND
from tests.timeline.script import Order, Script, Timetable, abort, checkpoint, kill, place, start, suspend, then
from tests.timeline.script import refusal as refusal_of
from tests.timeline.timeline import accounts, play_both, play_quietly, spans, spent, stopped

TWO_ROWS: dict[str, Any] = {"time_slicing": TimeSlicing(quantum_s=10, mpl=2)}
COSTS = Checkpointing(checkpoint_s=4, restart_s=2)
SWITCH = ContextSwitch(seconds=1)
TWO_JOBS = "1 0 1 30\n2 0 1 30"
NODE = (0, 1)
BOTH: list[Order] = [start(1, columns=NODE, row=0), start(2, columns=NODE, row=1)]
"""Two jobs take turns on one node."""


def play(nodes: int, jobs: str, script: Timetable | Script, **more: Any) -> Result:
    """Run jobs in slices of 10 s of two rows."""
    policy = script if isinstance(script, Script) else Script(script)
    return play_both(nodes, jobs, policy, **(TWO_ROWS | more))


def refusal(nodes: int, jobs: str, script: Timetable, **machine: Any) -> str:
    return refusal_of(nodes, jobs, script, **(TWO_ROWS | machine))


# Kill and restart.


def test_a_killed_gang_leaves_its_row_at_once_and_its_work_is_discarded() -> None:
    # 0-10 job 1 (10 of 30), 10-14 job 2 (4), 14-20 job 2 (10).  20-30 job 1 (10 of 30 again), 30-40 job 2 (20),
    # 40-50 job 1 (20), 50-60 job 2 (30 of 30), 60-70 job 1.
    result = play(1, TWO_JOBS, {0: BOTH, 14: [kill(1)], 20: [start(1, columns=NODE, row=0)]})
    assert spans(result) == {1: (20, 70), 2: (0, 60)}
    assert stopped(result) == [(1, 0, 14, "preempted", 10)]
    assert accounts(result) == {Account.USEFUL: 60, Account.LOST: 10}
    placements = result.placements.query("job == 1")
    assert placements[["begin_s", "end_s", "row"]].to_numpy().tolist() == [[0, 14, 0], [20, 70, 0]]


def test_a_killed_gang_waits_at_its_place_in_the_queue_and_its_row_is_free_in_the_same_instant() -> None:
    # 0-5 job 1 (5), cut by job 3; 5-14 job 2 (9); 14-22 job 3 (8 of 8); 22-32 job 2 (19), 32-42 job 1 (10), 42-52 job 2 (29),
    # 52-62 job 1 (20), 62-63 job 2 (30 of 30), 63-73 job 1.
    policy = Script({0: BOTH, 14: [kill(1), then, start(3, columns=NODE, row=0)], 22: [start(1, columns=NODE, row=0)]})
    result = play(1, TWO_JOBS + "\n3 5 1 8", policy)
    assert policy.waiting[5] == [3]
    assert policy.waiting[14] == [1, 3]
    assert spans(result) == {1: (22, 73), 2: (0, 63), 3: (14, 22)}
    assert accounts(result) == {Account.USEFUL: 68, Account.LOST: 5}


def test_a_killed_gang_begins_again_from_its_last_checkpoint() -> None:
    # Alone in its row: 0-10 executes, 10-14 checkpoint; 20-22 restart, 22-36 executes 14, discarded; 40-42 restart, 42-62.
    script: Timetable = {
        0: [start(1, columns=NODE, row=0)],
        10: [checkpoint(1)],
        20: [start(1, columns=NODE, row=0)],
        36: [kill(1)],
        40: [start(1, columns=NODE, row=0)],
    }
    result = play(1, "1 0 1 30", script, checkpointing=COSTS)
    assert spans(result) == {1: (40, 62)}
    assert stopped(result) == [(1, 0, 14, "checkpointed", 0), (1, 20, 36, "preempted", 14)]
    expected = {Account.USEFUL: 30, Account.LOST: 14, Account.CHECKPOINT: 4, Account.RESTART: 4, Account.IDLE: 6 + 4}
    assert accounts(result) == expected


def test_a_gang_killed_while_it_is_checkpointed_leaves_at_once_and_its_work_is_discarded() -> None:
    # 0-10 executes, 10-12 checkpoint; 20-50 executes all its 30.
    script: Timetable = {
        0: [start(1, columns=NODE, row=0)],
        10: [checkpoint(1)],
        12: [kill(1)],
        20: [start(1, columns=NODE, row=0)],
    }
    result = play(1, "1 0 1 30", script, checkpointing=COSTS)
    assert spans(result) == {1: (20, 50)}
    assert stopped(result) == [(1, 0, 12, "preempted", 10)]
    assert accounts(result) == {Account.USEFUL: 30, Account.LOST: 10, Account.CHECKPOINT: 2, Account.IDLE: 8}


# Checkpoint.


def test_a_checkpoint_is_written_at_the_start_of_the_gangs_own_slice_after_the_context_switch() -> None:
    # 0-1 switch, 1-10 job 1 (9); 10-11 switch, 11-14 job 2 (3).  14-15 switch, 15-19 checkpoint of job 1, which leaves.
    # 19-20 switch, 20-25 job 2 (8).  At 25 job 1 starts: 25-26 switch, 26-28 restart, 28-35 (16).  35-36 switch, 36-45 job 2
    # (17); 45-46, 46-55 job 1 (25); 55-56, 56-65 job 2 (26); 65-66, 66-71 job 1 (30 of 30); 71-72, 72-76 job 2 (30 of 30).
    script: Timetable = {0: BOTH, 14: [checkpoint(1)], 25: [start(1, columns=NODE, row=0)]}
    result = play(1, TWO_JOBS, script, checkpointing=COSTS, context_switch=SWITCH)
    assert spans(result) == {1: (25, 71), 2: (0, 76)}
    assert stopped(result) == [(1, 0, 19, "checkpointed", 0)]
    assert accounts(result) == {Account.USEFUL: 60, Account.CHECKPOINT: 4, Account.RESTART: 2, Account.CONTEXT_SWITCH: 10}


def test_a_checkpoint_longer_than_a_slice_continues_in_the_next_one() -> None:
    # 0-4 job 1 (4); at 4 it is to be checkpointed, for 25: 4-14 job 2 (10), 14-24 checkpoint (10), 24-34 job 2 (20), 34-44
    # (20), 44-54 job 2 (30), 54-59 (25).  Job 2 alone until 70 (41).  70-72 restart, 72-80 job 1 (12), 80-90 job 2 (51), 90-100
    # job 1 (22), 100-109 job 2 (60 of 60), 109-117 job 1.
    script: Timetable = {0: BOTH, 4: [checkpoint(1)], 70: [start(1, columns=NODE, row=0)]}
    result = play(1, "1 0 1 30\n2 0 1 60", script, checkpointing=Checkpointing(checkpoint_s=25, restart_s=2))
    assert spans(result) == {1: (70, 117), 2: (0, 109)}
    assert stopped(result) == [(1, 0, 59, "checkpointed", 0)]
    assert accounts(result) == {Account.USEFUL: 90, Account.CHECKPOINT: 25, Account.RESTART: 2}


def test_a_gang_in_two_rows_is_checkpointed_in_the_slices_of_both() -> None:
    # Columns 0 and 1; job 1 on 0 in both rows, job 2 on 1 in row 0.  4-29 checkpoint of job 1, whatever row runs; job 2:
    # 0-4, then row 1; 14-24 row 0 (14), row 1 until 29, when row 1 is empty: job 2 alone, 16 left, ends at 45.
    script: Timetable = {
        0: [place({1: ((0, 1), 0, 1), 2: ((1, 2), 0)})],
        4: [checkpoint(1)],
        45: [start(1, columns=(0, 1), row=0)],
    }
    result = play(2, TWO_JOBS, script, checkpointing=Checkpointing(checkpoint_s=25, restart_s=2))
    assert stopped(result) == [(1, 0, 29, "checkpointed", 0)]
    assert spans(result) == {1: (45, 73), 2: (0, 45)}


def test_a_checkpoint_without_cost_frees_the_row_at_once() -> None:
    # As above without costs: job 1 has executed 10 at 14.  14-20 job 2 (10), 20-30 job 1 (20), 30-40 job 2 (20), 40-50 job 1.
    result = play(1, TWO_JOBS, {0: BOTH, 14: [checkpoint(1), then], 20: [start(1, columns=NODE, row=0)]})
    assert stopped(result) == [(1, 0, 14, "checkpointed", 0)]
    assert spans(result) == {1: (20, 50), 2: (0, 60)}
    assert accounts(result) == {Account.USEFUL: 60}


def test_a_gang_of_more_tasks_than_q_is_written_and_read_in_rounds() -> None:
    # Three tasks, two at a time: two rounds.  10-18 checkpoint, 20-24 restart, 24-44.
    script: Timetable = {0: [start(1, columns=(0, 3), row=0)], 10: [checkpoint(1)], 20: [start(1, columns=(0, 3), row=0)]}
    store = Checkpointing(checkpoint_s=4, restart_s=2, max_tasks_per_slice=2)
    result = play(3, "1 0 3 30", script, checkpointing=store)
    assert stopped(result) == [(1, 0, 18, "checkpointed", 0)]
    assert spans(result) == {1: (20, 44)}
    assert accounts(result) == {Account.USEFUL: 90, Account.CHECKPOINT: 24, Account.RESTART: 12, Account.IDLE: 6}


@pytest.mark.parametrize(("q", "tasks"), [(1, 2), (2, 3), (3, 4)])
def test_at_most_q_tasks_are_at_the_store_in_a_slice_of_a_row(q: int, tasks: int) -> None:
    # Jobs 1, of three nodes, and 2, of one: min(3, Q) + 1.
    script: Timetable = {
        0: [start(1, columns=(0, 3), row=0), start(2, columns=(3, 4), row=0)],
        5: [checkpoint(1), checkpoint(2)],
    }
    store = Checkpointing(checkpoint_s=4, restart_s=2, max_tasks_per_slice=q)
    assert refusal(4, "1 0 3 30\n2 0 1 30", script, checkpointing=store) == (
        f"{tasks} tasks would migrate in a slice of row 0: at most Q = {q} can"
    )


def test_tasks_in_the_slices_of_other_rows_or_that_cost_nothing_do_not_count() -> None:
    # Q = 1.  At 5, 5-10 is no slice any more: row 1 runs.  Job 2, one task: 5-9.  Row 0: 9-21 job 1, three rounds.
    store = Checkpointing(checkpoint_s=4, restart_s=2, max_tasks_per_slice=1)
    script: Timetable = {
        0: [start(1, columns=(0, 3), row=0), start(2, columns=(3, 4), row=1)],
        5: [checkpoint(1), checkpoint(2)],
        30: [start(1, columns=(0, 3), row=0), start(2, columns=(3, 4), row=1)],
    }
    result = play(4, "1 0 3 30\n2 0 1 30", script, checkpointing=store)
    assert stopped(result) == [(2, 0, 9, "checkpointed", 0), (1, 0, 21, "checkpointed", 0)]
    free = Checkpointing(max_tasks_per_slice=1)
    script = {
        0: [start(1, columns=(0, 3), row=0), start(2, columns=(3, 4), row=0)],
        5: [checkpoint(1), checkpoint(2), then, start(1, columns=(0, 3), row=0), start(2, columns=(3, 4), row=0)],
    }
    assert spans(play(4, "1 0 3 30\n2 0 1 30", script, checkpointing=free)) == {1: (5, 30), 2: (5, 30)}


ONE_ROW: list[Order] = [start(1, columns=(0, 2), row=0), start(2, columns=(2, 5), row=0)]
"""Job 1 on columns 0-1 and job 2 on 2-4, of six."""


def moving_job_2(columns: tuple[int, ...]) -> Timetable:
    """Move job 2 at 6 s, for whose checkpoint job 1 waits."""
    return {0: ONE_ROW, 6: [place({2: (columns, 0)}, migrations=[([2], [1])])]}


@pytest.mark.parametrize(("counts", "tasks"), [("gang", 3), ("moved", 1)])
def test_all_tasks_of_a_gang_that_migrates_count_or_those_that_move(counts: str, tasks: int) -> None:
    # Job 2 from 2-4 to 3-5, one task: 6-10 checkpoint, 10-12 restart, 24 of 30 left: 36.  Job 1 waits 6-10: 34.
    def store(limit: int) -> Checkpointing:
        return Checkpointing(checkpoint_s=4, restart_s=2, max_tasks_per_slice=limit, counts=counts)

    jobs, script = "1 0 2 30\n2 0 3 30", moving_job_2((3, 6))
    assert spans(play(6, jobs, script, checkpointing=store(tasks))) == {1: (0, 34), 2: (0, 36)}
    if counts == "gang":
        assert refusal(6, jobs, script, checkpointing=store(tasks - 1)) == (
            "3 tasks would migrate in a slice of row 0: at most Q = 2 can"
        )


def test_a_migration_is_spread_over_slices() -> None:
    # Q = 1, and two tasks of job 2 move, from 3-4 to 5-6.  6-10 checkpoint and 10-12 restart of the first, 12-16 waiting for
    # the end of the quantum, 16-20 and 20-22 the second; 24 of 30 are left: 46.  Job 1 waits until both are written: 6-20, 44.
    store = Checkpointing(checkpoint_s=4, restart_s=2, max_tasks_per_slice=1, counts="spread")
    script = moving_job_2((2, 3, 5, 7))
    result = play(7, "1 0 2 30\n2 0 3 30", script, checkpointing=store)
    assert spans(result) == {1: (0, 44), 2: (0, 46)}
    found = accounts(result)
    assert (found[Account.CHECKPOINT], found[Account.RESTART], found[Account.BLOCKED]) == (3 * 8, 3 * 4, 3 * 4 + 2 * 14)
    # With slices of 5 s the second transfer begins when the first is over, in the same slice.
    short = play(7, "1 0 2 30\n2 0 3 30", script, checkpointing=store, time_slicing=TimeSlicing(quantum_s=5, mpl=2))
    assert spans(short) == {1: (0, 40), 2: (0, 42)}
    # What costs nothing takes no slices.
    free = Checkpointing(max_tasks_per_slice=1, counts="spread")
    assert spans(play(7, "1 0 2 30\n2 0 3 30", script, checkpointing=free)) == {1: (0, 30), 2: (0, 30)}


def test_a_store_that_takes_no_tasks_refuses() -> None:
    none = Checkpointing(max_tasks_per_slice=0)
    assert refusal(1, TWO_JOBS, {0: BOTH, 5: [checkpoint(1)]}, checkpointing=none) == (
        "job 1 cannot be checkpointed: the store takes no tasks (max_tasks_per_slice=0)"
    )
    script: Timetable = {0: [start(1, columns=(0, 1), row=0)], 5: [suspend(1)], 6: [start(1, columns=(1, 2), row=0)]}
    assert refusal(2, "1 0 1 30", script, checkpointing=none) == (
        "job 1 cannot start elsewhere: it is in the memory of nodes 0, and the store takes no tasks"
    )


def test_a_checkpoint_replaces_the_overheads_that_were_pending() -> None:
    # At 4 job 1 migrates to column 1, which takes 4 + 2.  4-5 its checkpoint begins; at 5 it is told to save itself instead:
    # 5-9 checkpoint.  20-22 restart, 22-48.
    script: Timetable = {
        0: [start(1, columns=(0, 1), row=0)],
        4: [place({1: ((1, 2), 0)})],
        5: [checkpoint(1)],
        20: [start(1, columns=(0, 1), row=0)],
    }
    result = play(2, "1 0 1 30", script, checkpointing=COSTS)
    assert stopped(result) == [(1, 0, 9, "checkpointed", 0)]
    assert spans(result) == {1: (20, 48)}
    assert accounts(result) == {Account.USEFUL: 30, Account.CHECKPOINT: 5, Account.RESTART: 2, Account.IDLE: 96 - 37}


# Suspension.


def test_a_suspension_costs_a_context_switch_and_so_does_the_resumption_besides_that_of_the_slice() -> None:
    # 0-1 switch, 1-10 job 1 (9); 10-11 switch, 11-14 job 2 (3).  14-15 switch, 15-16 suspension; 16-17 switch, 17-25 job 2
    # (11).  25-26 switch, 26-27 resumption, 27-35 job 1 (17); 35-36, 36-45 job 2 (20); 45-46, 46-55 job 1 (26); 55-56, 56-65
    # job 2 (29); 65-66, 66-70 job 1 (30 of 30); 70-71, 71-72 job 2 (30 of 30).
    script: Timetable = {0: BOTH, 14: [suspend(1)], 25: [start(1, columns=NODE, row=0)]}
    result = play(1, TWO_JOBS, script, checkpointing=COSTS, context_switch=SWITCH)
    assert spans(result) == {1: (25, 70), 2: (0, 72)}
    assert stopped(result) == [(1, 0, 16, "suspended", 0)]
    assert accounts(result) == {Account.USEFUL: 60, Account.CONTEXT_SWITCH: 10 + 2}


def test_a_suspended_job_that_starts_on_other_columns_is_moved_through_the_store() -> None:
    # 0-1 switch, 1-10 job 1 (9), 10-11 suspension.  On column 1: 20-21 switch, 21-25 checkpoint, 25-27 restart, 27-48.
    script: Timetable = {0: [start(1, columns=(0, 1), row=0)], 10: [suspend(1)], 20: [start(1, columns=(1, 2), row=1)]}
    result = play(2, "1 0 1 30", script, checkpointing=COSTS, context_switch=SWITCH)
    assert spans(result) == {1: (20, 48)}
    expected = {Account.USEFUL: 30, Account.CONTEXT_SWITCH: 3, Account.CHECKPOINT: 4, Account.RESTART: 2, Account.IDLE: 96 - 39}
    assert accounts(result) == expected


def test_a_suspended_job_that_is_killed_when_it_runs_again_loses_what_it_did_before() -> None:
    # 0-10, suspended at no cost; 20-25; all 15 are discarded.
    script: Timetable = {
        0: [start(1, columns=NODE, row=0)],
        10: [suspend(1)],
        20: [start(1, columns=NODE, row=0)],
        25: [kill(1)],
        30: [start(1, columns=NODE, row=0)],
    }
    result = play(1, "1 0 1 30", script)
    assert stopped(result) == [(1, 0, 10, "suspended", 0), (1, 20, 25, "preempted", 15)]
    assert spans(result) == {1: (30, 60)}


def can_be_suspended(view: View, gang: RunningJob) -> bool:
    return view.can_suspend(gang)


def test_images_in_memory_count_until_their_jobs_run_again() -> None:
    # One image fits.  Job 1: 0-5 executes, its image is in memory from 5 on; at 20 it resumes, at no cost.
    script: Timetable = {0: BOTH, 5: [suspend(1)], 6: [], 20: [start(1, columns=NODE, row=0)], 21: []}
    policy = Script(script, can_be_suspended)
    play(1, TWO_JOBS, policy, suspended_per_node=1)
    assert policy.seen[5] == {2: False}
    assert policy.seen[6] == {2: False}
    assert policy.seen[21] == {1: True, 2: True}
    assert refusal(1, TWO_JOBS, {0: BOTH, 5: [suspend(1)], 6: [suspend(2)]}, suspended_per_node=1) == (
        "job 2 cannot be suspended: a node of 0 holds 1 suspended tasks already"
    )


@pytest.mark.parametrize("when", [5, 6])
def test_memory_is_taken_as_soon_as_a_gang_is_told_to_suspend(when: int) -> None:
    # From 5 on, 1 spends its switch of 4 s; the memory of node 0 has room for one image.
    script: dict[float, list[Order]] = {0: BOTH, 5: [suspend(1)]}
    script[when] = [*script.get(when, []), suspend(2)]
    assert refusal(1, TWO_JOBS, script, suspended_per_node=1, context_switch=ContextSwitch(seconds=4)) == (
        "job 2 cannot be suspended: a node of 0 holds 1 suspended tasks already"
    )
    assert refusal(1, TWO_JOBS, script, suspended_per_node=1) == (
        "job 2 cannot be suspended: a node of 0 holds 1 suspended tasks already"
    )


def test_memory_is_free_again_when_a_gang_is_killed_while_it_is_suspended() -> None:
    # 0-4 switch, 4-5 job 1 (1).  5-9 switch, 9-12 job 2 (3); 12-16 job 1 would switch, and is killed at 13.
    script: Timetable = {0: BOTH, 5: [suspend(1)], 12: [], 13: [kill(1)], 14: [], 60: [start(1, columns=NODE, row=0)]}
    policy = Script(script, can_be_suspended)
    result = play(1, TWO_JOBS, policy, suspended_per_node=1, context_switch=ContextSwitch(seconds=4))
    assert policy.seen[12][2] is False
    assert policy.seen[14] == {2: True}
    assert stopped(result) == [(1, 0, 13, "preempted", 1)]


# Gangs that are stopped before they are restored.


@pytest.mark.parametrize(("stop", "outcome"), [(suspend, "suspended"), (checkpoint, "checkpointed"), (kill, "preempted")])
def test_a_gang_stopped_before_it_is_restored_leaves_its_image_where_it_was(stop: Any, outcome: str) -> None:
    # 0-10, 10-14 checkpoint; 20-21 half of the restart; 30-32 restart, 32-52.
    script: Timetable = {
        0: [start(1, columns=NODE, row=0)],
        10: [checkpoint(1)],
        20: [start(1, columns=NODE, row=0)],
        21: [stop(1)],
        30: [start(1, columns=NODE, row=0)],
    }
    result = play(1, "1 0 1 30", script, checkpointing=COSTS)
    assert stopped(result) == [(1, 0, 14, "checkpointed", 0), (1, 20, 21, outcome, 0)]
    assert spans(result) == {1: (30, 52)}
    assert accounts(result) == {Account.USEFUL: 30, Account.CHECKPOINT: 4, Account.RESTART: 1 + 2, Account.IDLE: 6 + 9}


def test_an_image_in_memory_is_discarded_when_its_gang_is_killed_before_it_is_restored() -> None:
    # 0-3 switch, 3-10 (7), 10-13 suspension; 20-22 half of switch and resumption; 30-33 switch, 33-63.
    script: Timetable = {
        0: [start(1, columns=NODE, row=0)],
        10: [suspend(1)],
        20: [start(1, columns=NODE, row=0)],
        22: [kill(1)],
        30: [start(1, columns=NODE, row=0)],
    }
    result = play(1, "1 0 1 30", script, context_switch=ContextSwitch(seconds=3))
    assert stopped(result) == [(1, 0, 13, "suspended", 0), (1, 20, 22, "preempted", 7)]
    assert spans(result) == {1: (30, 63)}
    assert accounts(result) == {Account.USEFUL: 30, Account.LOST: 7, Account.CONTEXT_SWITCH: 3 + 3 + 2 + 3, Account.IDLE: 7 + 8}


# Starts with a time limit, or on another number of nodes.


def test_a_time_limit_counts_the_gangs_own_execution_and_its_work_is_discarded() -> None:
    # 0-10 job 1, 10-20 job 2 (10), 20-22 job 1 (12), its limit.  22-32 job 2 (20), 32-42 job 1 (10), 42-52 job 2 (30 of 30),
    # 52-72 job 1.
    script: Timetable = {
        0: [start(1, columns=NODE, row=0, limit=12 * SECOND), start(2, columns=NODE, row=1)],
        22: [start(1, columns=NODE, row=0)],
    }
    result = play(1, TWO_JOBS, script)
    assert stopped(result) == [(1, 0, 22, "requeued", 12)]
    assert spans(result) == {1: (22, 72), 2: (0, 52)}
    assert accounts(result) == {Account.USEFUL: 60, Account.LOST: 12}


def test_a_job_on_another_number_of_nodes_takes_the_time_that_the_speedup_says() -> None:
    # Job 1 asks for four nodes and gets two: 20 instead of 10.  0-10 job 1, 10-20 job 2 (10 of 10), 20-30 job 1.
    script: Timetable = {0: [start(1, columns=(1, 3), row=0, nodes=2), start(2, columns=(0, 4), row=1)]}
    result = play(4, "1 0 4 10\n2 0 4 10", script)
    assert spans(result) == {1: (0, 30), 2: (0, 20)}
    assert result.jobs["allocated_nodes"].tolist() == [2, 4]
    assert accounts(result) == {Account.USEFUL: 2 * 20 + 40, Account.IDLE: 2 * 20}


def test_a_job_that_does_not_run_faster_on_more_nodes() -> None:
    # Downey's sigma 0, parallelism 1: on four nodes as fast as on the two asked for.
    policy = Script({0: [start(1, columns=(0, 4), row=0, nodes=4)]})
    for fidelity in ("fast", "node"):
        result = play_quietly(4, "1 0 2 10", policy, fidelity=fidelity, speedup=DowneySpeedup(sigma=0), **TWO_ROWS)
        assert spans(result) == {1: (0, 10)}


def test_the_columns_must_be_as_many_as_the_nodes() -> None:
    assert refusal(4, "1 0 4 10", {0: [start(1, columns=(0, 4), row=0, nodes=2)]}) == (
        "job 1 cannot start in row 0 on columns (0, 4): they must be ascending ranges, (low, high, ...), of 2 nodes in all"
    )
    script: Timetable = {0: [start(1, columns=(0, 4), row=0)], 5: [suspend(1), then, start(1, columns=(0, 2), row=0, nodes=2)]}
    assert refusal(4, "1 0 4 10", script) == "job 1 cannot start on 2 nodes: it has been saved with 4 tasks"


# Kill for good.


@pytest.mark.parametrize(("second", "status", "account"), [(24, "aborted", Account.LOST), (25, "killed", Account.USEFUL)])
def test_a_gang_that_has_executed_for_its_estimate_is_killed_as_by_a_batch_system(
    second: int, status: str, account: Account
) -> None:
    # 0-10 job 1, 10-20 job 2 (10), 20-25 job 1: 15, its estimate, although 25 have passed.  Then job 2: 5.
    result = play(1, "1 0 1 100 15\n2 0 1 15", {0: BOTH, second: [abort(1)]}, kill_at_estimate=False)
    assert result.jobs["status"].tolist() == [status, "completed"]
    assert spans(result) == {1: (0, second), 2: (0, second + 5)}
    assert spent(result, account) == second - 10 + (15 if account is Account.USEFUL else 0)
    assert sum(accounts(result).values()) == second + 5
    assert stopped(result) == []


# Refusals.

PREEMPTED = "job 1 cannot be preempted: it has been already, and still holds its nodes"


@pytest.mark.parametrize(
    ("orders", "problem"),
    [
        ({5: [checkpoint(1)], 6: [suspend(1)]}, PREEMPTED),
        ({5: [suspend(1)], 6: [checkpoint(1)]}, PREEMPTED),
        ({5: [suspend(1), kill(1)]}, "job 1 cannot be killed: it has been stopped at this time already"),
        ({5: [kill(1), checkpoint(1)]}, "job 1 cannot be checkpointed: it has been stopped at this time already"),
        (
            {5: [checkpoint(1)], 6: [place({1: ((1, 2), 0)})]},
            "job 1 cannot migrate: it has been preempted, and still holds its nodes",
        ),
        ({5: [abort(1), place({1: ((1, 2), 0)})]}, "job 1 cannot migrate: it has been stopped at this time already"),
        (
            {5: [checkpoint(1)], 20: [start(1, columns=NODE, row=0)], 21: [place({1: ((1, 2), 0)})]},
            "job 1 cannot migrate: it has not been restored yet",
        ),
        ({5: [kill(1), then, start(1)]}, "job 1 cannot start without a row: nodes are shared in time, and none is idle"),
        (
            {5: [kill(1), start(3, columns=NODE, row=0)]},
            "job 3 cannot run in row 0 on columns 0: not all of them are free there",
        ),
        ({5: [place({1: ((1, 2), 0)}, migrations=[([1], [3])])]}, "job 3 cannot wait for a migration: it is not running"),
    ],
)
def test_what_is_impossible_is_refused(orders: dict[int, list[Order]], problem: str) -> None:
    jobs = TWO_JOBS + "\n3 0 1 30"
    assert refusal(2, jobs, {0: BOTH, **orders}, checkpointing=COSTS, context_switch=SWITCH) == problem
