"""Hand-worked timelines of gangs that migrate although they have their nodes to themselves, on both fidelities."""

import pytest

from clustermodel import Checkpointing, ContextSwitch
from clustermodel.experiment.result import Result
from clustermodel.policies.interface import Migrate
from clustermodel.policies.view import RunningJob, View
from clustermodel.recording.ledger import Account
from clustermodel.ticks import to_seconds
from tests.timeline.script import Order, Script, Timetable, abort, checkpoint, migrate, place, refusal, start, suspend, then
from tests.timeline.timeline import accounts, play_both, spans, stopped

COSTS = Checkpointing(checkpoint_s=4, restart_s=2)
LEFT, RIGHT = (0, 2), (2, 4)
ONE_JOB = "1 0 2 30"
TWO_JOBS = "1 0 2 30\n2 0 2 30"


def play(nodes: int, jobs: str, script: Timetable | Script, *, checkpointing: Checkpointing = COSTS) -> Result:
    policy = script if isinstance(script, Script) else Script(script)
    return play_both(nodes, jobs, policy, checkpointing=checkpointing)


def held(result: Result, job: int) -> list[list[float]]:
    """Return since when until when a job held which nodes: begin, end, first node, number."""
    placements = result.placements.query(f"job == {job}")
    return placements[["begin_s", "end_s", "first_node", "nodes"]].to_numpy().tolist()


def expected_end(view: View, gang: RunningJob) -> float:
    return to_seconds(gang.expected_end)


def test_a_gang_migrates_by_checkpoint_and_restart_on_its_new_nodes() -> None:
    # 0-10 executes, 10-14 checkpoint, 14-16 restart, 16-36.
    policy = Script({0: [start(1)], 10: [migrate({1: RIGHT})], 11: []}, expected_end)
    result = play(4, ONE_JOB, policy)
    assert spans(result) == {1: (0, 36)}
    assert policy.seen[10] == {1: 30}
    assert policy.seen[11] == {1: 36}
    assert accounts(result) == {Account.USEFUL: 60, Account.CHECKPOINT: 8, Account.RESTART: 4, Account.IDLE: 2 * 36}
    assert held(result, 1) == [[0, 10, 0, 2], [10, 36, 2, 2]]
    assert result.records.columns_of(0) == RIGHT
    assert stopped(result) == []  # one run attempt
    assert result.jobs["tries"].tolist() == [1]


def test_old_nodes_are_free_at_once() -> None:
    # Job 2 starts on them at 10, later in the same list.
    jobs = ONE_JOB + "\n2 5 2 5"
    result = play(4, jobs, {0: [start(1)], 10: [migrate({1: RIGHT}), start(2, columns=LEFT)]})
    assert spans(result) == {1: (0, 36), 2: (10, 15)}
    # Idle: 2 x 10 before, 2 x (36 - 15) after.
    assert accounts(result)[Account.IDLE] == 20 + 42
    assert refusal(4, jobs, {0: [start(1)], 10: [start(2, columns=LEFT), migrate({1: RIGHT})]}, checkpointing=COSTS) == (
        "job 2 cannot start on columns 0-1: not all of them are idle"
    )


def test_gangs_of_one_decision_exchange_their_nodes() -> None:
    result = play(4, TWO_JOBS, {0: [start(1), start(2)], 10: [migrate({1: RIGHT, 2: LEFT})]})
    assert spans(result) == {1: (0, 36), 2: (0, 36)}
    assert held(result, 1) == [[0, 10, 0, 2], [10, 36, 2, 2]]
    assert held(result, 2) == [[0, 10, 2, 2], [10, 36, 0, 2]]


def test_a_gang_may_keep_some_of_its_nodes_or_all() -> None:
    for columns in ((1, 3), LEFT):
        assert spans(play(4, ONE_JOB, {0: [start(1)], 10: [migrate({1: columns})]})) == {1: (0, 36)}


def test_migration_at_no_cost_takes_no_time() -> None:
    result = play(4, ONE_JOB, {0: [start(1)], 10: [migrate({1: RIGHT})]}, checkpointing=Checkpointing())
    assert spans(result) == {1: (0, 30)}
    assert held(result, 1) == [[0, 10, 0, 2], [10, 30, 2, 2]]


def test_gangs_that_migrate_queue_at_the_checkpoint_store() -> None:
    # Two tasks at a time.  Job 1: 10-14 checkpoint; job 2 has waited, 14-18 checkpoint; job 1 has waited, 18-20 restart;
    # job 2 has waited, 20-22 restart.  20 are left of each: 40 and 42.
    store = Checkpointing(checkpoint_s=4, restart_s=2, max_tasks_per_slice=2)
    script: Timetable = {0: [start(1), start(2)], 10: [migrate({1: RIGHT, 2: LEFT})]}
    result = play(4, TWO_JOBS, script, checkpointing=store)
    assert spans(result) == {1: (0, 40), 2: (0, 42)}
    assert accounts(result) == {
        Account.USEFUL: 120,
        Account.CHECKPOINT: 16,
        Account.RESTART: 8,
        Account.BLOCKED: 2 * 4 + 2 * (4 + 2),
        Account.IDLE: 4,
    }


def test_a_gang_of_more_tasks_than_q_migrates_in_rounds() -> None:
    # One task at a time: 10-18 checkpoint, 18-22 restart, 22-42.
    store = Checkpointing(checkpoint_s=4, restart_s=2, max_tasks_per_slice=1)
    policy = Script({0: [start(1)], 10: [migrate({1: RIGHT})], 11: []}, expected_end)
    assert spans(play(4, ONE_JOB, policy, checkpointing=store)) == {1: (0, 42)}
    assert policy.seen[11] == {1: 42}


def test_a_gang_that_is_not_restored_yet_restores_its_image_on_the_new_nodes_instead() -> None:
    # 0-10, 10-14 checkpoint.  20-21 half of the restart on the old nodes, 21-23 restart on the new ones, 23-43.
    script: Timetable = {0: [start(1)], 10: [checkpoint(1)], 20: [start(1)], 21: [migrate({1: RIGHT})], 22: []}
    policy = Script(script, expected_end)
    result = play(4, ONE_JOB, policy)
    assert spans(result) == {1: (20, 43)}
    assert policy.seen[21] == {1: 42}
    assert policy.seen[22] == {1: 43}
    assert accounts(result) == {
        Account.USEFUL: 60,
        Account.CHECKPOINT: 8,
        Account.RESTART: 2 + 4,
        Account.IDLE: 4 * 43 - 60 - 8 - 6,
    }


def test_an_image_in_the_memory_of_the_old_nodes_is_moved_through_the_store() -> None:
    # 0-10, 10-13 suspension.  20-21 a third of the switch; 21-25 checkpoint, 25-27 restart, 27-47.
    script: Timetable = {0: [start(1)], 10: [suspend(1)], 20: [start(1)], 21: [migrate({1: RIGHT})], 22: []}
    policy = Script(script, expected_end)
    result = play_both(4, ONE_JOB, policy, checkpointing=COSTS, context_switch=ContextSwitch(seconds=3))
    assert spans(result) == {1: (20, 47)}
    assert policy.seen[22] == {1: 47}
    assert accounts(result) == {
        Account.USEFUL: 60,
        Account.CONTEXT_SWITCH: 2 * (3 + 1),
        Account.CHECKPOINT: 8,
        Account.RESTART: 4,
        Account.IDLE: 4 * 47 - 80,
    }


def test_a_gang_can_be_preempted_while_it_migrates() -> None:
    # 10-12 half of the checkpoint of the migration; then that of the preemption, 12-16.  20-22 restart, 22-42.
    script: Timetable = {0: [start(1)], 10: [migrate({1: RIGHT})], 12: [checkpoint(1)], 20: [start(1)]}
    result = play(4, ONE_JOB, script)
    assert stopped(result) == [(1, 0, 16, "checkpointed", 0)]
    assert spans(result) == {1: (20, 42)}
    assert accounts(result) == {
        Account.USEFUL: 60,
        Account.CHECKPOINT: 2 * (2 + 4),
        Account.RESTART: 4,
        Account.IDLE: 4 * 42 - 76,
    }
    assert held(result, 1) == [[0, 10, 0, 2], [10, 16, 2, 2], [20, 42, 0, 2]]


def test_a_gang_migrates_and_is_suspended_in_one_instant() -> None:
    # Its image is in the memory of the new nodes, where it goes on at 20.
    result = play(4, ONE_JOB, {0: [start(1)], 10: [migrate({1: RIGHT}), suspend(1)], 20: [start(1)]})
    assert stopped(result) == [(1, 0, 10, "suspended", 0)]
    assert spans(result) == {1: (20, 40)}
    assert result.records.columns_of(0) == RIGHT


@pytest.mark.parametrize(("second", "status"), [(27, "aborted"), (28, "aborted"), (29, "killed")])
def test_a_gang_that_has_waited_at_the_store_has_not_executed_for_its_estimate(second: int, status: str) -> None:
    # One task at a time, estimates of 10: both execute 0-5; 5-9 checkpoint of job 1, 9-13 of job 2; 20-22 restart of job 1,
    # 22-24 of job 2, which has executed 10 at 29.
    store = Checkpointing(checkpoint_s=4, restart_s=2, max_tasks_per_slice=1)
    script: Timetable = {
        0: [start(1), start(2)],
        5: [checkpoint(1), checkpoint(2)],
        20: [start(1), start(2)],
        second: [abort(2)],
    }
    result = play_both(2, "1 0 1 30 10\n2 0 1 30 10", Script(script), checkpointing=store, kill_at_estimate=False)
    assert result.jobs["status"].tolist() == ["completed", status]


@pytest.mark.parametrize(
    ("orders", "problem"),
    [
        (
            {5: [checkpoint(1)], 6: [migrate({1: RIGHT})]},
            "job 1 cannot migrate: it has been preempted, and still holds its nodes",
        ),
        ({5: [checkpoint(1), migrate({1: RIGHT})]}, "job 1 cannot migrate: it has been stopped at this time already"),
        ({5: [abort(1), migrate({1: RIGHT})]}, "job 1 cannot migrate: it has been stopped at this time already"),
        (
            {5: [migrate({1: RIGHT})], 6: [migrate({1: LEFT})]},
            "job 1 cannot migrate: it has not been restarted yet where it migrated last",
        ),
        ({5: [start(2)], 6: [migrate({1: (1, 3)})]}, "job 1 cannot migrate on columns 1-2: not all of them are idle"),
        ({5: [migrate({1: (2, 5)})]}, "job 1 cannot migrate on 3 columns (2-4): its gang needs 2"),
        (
            {5: [migrate({1: (4, 2)})]},
            "job 1 cannot migrate on columns (4, 2): they must be ascending ranges, (low, high, ...)",
        ),
        ({5: [migrate({2: RIGHT})]}, "job 2 cannot migrate: it is not running"),
        (
            {5: [place({1: (LEFT, 0)})]},
            "nodes cannot be shared in time while 2 of 6 are held without a row; "
            "a policy starts either all jobs in rows or none",
        ),
    ],
)
def test_what_is_impossible_is_refused(orders: dict[int, list[Order]], problem: str) -> None:
    assert refusal(6, TWO_JOBS, {0: [start(1)], **orders}, checkpointing=COSTS) == problem


def test_a_store_that_takes_no_tasks_refuses() -> None:
    none = Checkpointing(max_tasks_per_slice=0)
    assert refusal(4, ONE_JOB, {0: [start(1)], 5: [migrate({1: RIGHT})]}, checkpointing=none) == (
        "job 1 cannot migrate: the store takes no tasks (max_tasks_per_slice=0)"
    )


def test_a_gang_that_one_decision_moves_twice_is_refused() -> None:
    script: Timetable = {0: [start(1)], 5: [lambda jobs: Migrate(moves=((jobs[1], RIGHT), (jobs[1], LEFT)))]}
    assert refusal(4, ONE_JOB, script, checkpointing=COSTS) == "job 1 cannot migrate: the decision moves it twice"


def test_a_cycle_later_the_nodes_of_a_killed_gang_can_be_migrated_to() -> None:
    script: Timetable = {0: [start(1), start(2)], 10: [abort(2), then, migrate({1: RIGHT})]}
    assert spans(play(4, TWO_JOBS, script)) == {1: (0, 36), 2: (0, 10)}
