"""Hand-worked timelines of gangs that change their size, on both fidelities."""

from typing import Any

import numpy as np
import pytest

from clustermodel import Checkpointing, CheckpointStore, DowneySpeedup, Outages
from clustermodel.experiment.result import Result
from clustermodel.policies.view import RunningJob, View
from clustermodel.recording.ledger import Account
from clustermodel.ticks import to_seconds
from tests.timeline.script import (
    Script,
    Timetable,
    abort,
    checkpoint,
    kill,
    migrate,
    place,
    refusal,
    resize,
    start,
    suspend,
    then,
)
from tests.timeline.timeline import accounts, play_both, spans, stopped

MALLEABLE = {"malleable": True, "min_nodes": 1, "max_nodes": 4}
ONE_JOB = "1 0 2 30"
COSTS = Checkpointing(checkpoint_s=4, restart_s=2)


def play(nodes: int, jobs: str, script: Timetable | Script, *, each: Any = MALLEABLE, **more: Any) -> Result:
    policy = script if isinstance(script, Script) else Script(script)
    return play_both(nodes, jobs, policy, each=each, **more)


def phases(result: Result) -> list[tuple[float, float, int, float, float, str]]:
    """Return the run attempts: begin, end, nodes, seconds executed, seconds discarded, how it ended."""
    columns = ["start_s", "end_s", "nodes", "executed_s", "lost_s", "outcome"]
    return [tuple(row) for row in result.run_attempts[columns].itertuples(index=False)]


def expected_end(_: View, gang: RunningJob) -> float:
    return to_seconds(gang.expected_end)


def test_what_has_been_executed_is_kept_and_the_resize_is_charged() -> None:
    # 0-10: 10 of 30 s on two nodes; 10-15 resize; on four nodes it would take 15 s, of which a third is behind it: 15-25.
    policy = Script({0: [start(1)], 10: [resize(1, nodes=4)], 12: []}, expected_end)
    result = play(4, ONE_JOB, policy, resize_s=5)
    assert spans(result) == {1: (0, 25)}
    assert policy.seen[12] == {1: 25}
    assert accounts(result) == {Account.USEFUL: 20 + 40, Account.RESIZE: 20, Account.IDLE: 20}
    assert phases(result) == [(0, 10, 2, 10, 0, "resized"), (10, 25, 4, 10, 0, "completed")]
    row = result.jobs.loc[0]
    assert (row["tries"], row["run_s"], row["allocated_nodes"], row["wasted_node_s"]) == (1, 20, 4, 0)
    assert result.jobs["start_s"].tolist() == [0]


def test_a_gang_that_shrinks_frees_nodes_for_a_start_in_the_same_list() -> None:
    # 0-10: 10 of 30 s on two nodes, which are 20 of 60 s on one: 13-53.
    result = play(2, ONE_JOB + "\n2 5 1 7", {0: [start(1)], 10: [resize(1, nodes=1), start(2)]}, resize_s=3)
    assert spans(result) == {1: (0, 53), 2: (10, 17)}
    assert accounts(result) == {Account.USEFUL: 20 + 40 + 7, Account.RESIZE: 3, Account.IDLE: 36}


def test_resizes_follow_the_speedup_of_the_run() -> None:
    # Downey, sigma 1, average parallelism 2: S(1) = 1, S(2) = 1.6, S(4) = 2.  30 s on two nodes are 24 s on four, 48 s on one.
    # After 15 s on two nodes 12 of 24 s on four are behind it; after 5 more 34 of 48 s on one.
    script = {0: [start(1)], 15: [resize(1, nodes=4)], 20: [resize(1, nodes=1)]}
    result = play(4, ONE_JOB, script, speedup=DowneySpeedup(sigma=1), resize_s=0)
    assert phases(result) == [(0, 15, 2, 15, 0, "resized"), (15, 20, 4, 5, 0, "resized"), (20, 34, 1, 14, 0, "completed")]


def test_what_has_been_executed_is_rounded_down_to_a_tick() -> None:
    # 1 microsecond of 4 on one node is 1/3 of one on three: nothing.  Then 2 microseconds (4/3, rounded up).
    script: Timetable = {0: [start(1)], 1e-6: [resize(1, nodes=3)]}
    result = play(3, "1 0 1 0.000004", script, resize_s=0)
    assert spans(result) == {1: (0, 3e-6)}
    assert accounts(result) == {Account.USEFUL: 7e-6, Account.IDLE: 2e-6}


def test_without_a_cost_of_its_own_a_resize_is_a_checkpoint_and_a_restart() -> None:
    # 10-14 checkpoint, 14-16 restart, then 10 s.
    result = play(4, ONE_JOB, {0: [start(1)], 10: [resize(1, nodes=4)]}, checkpointing=COSTS)
    assert spans(result) == {1: (0, 26)}
    assert accounts(result) == {Account.USEFUL: 60, Account.RESIZE: 24, Account.IDLE: 20}


def test_its_images_go_through_the_store() -> None:
    # 1 GiB a second, tasks of 1 GiB: it writes two tasks, 2 s, and reads four, 4 s.
    store = Checkpointing(store=CheckpointStore(bandwidth_gib_s=1))
    each = {**MALLEABLE, "memory_gib": 1}
    result = play(4, ONE_JOB, {0: [start(1)], 10: [resize(1, nodes=4)]}, checkpointing=store, each=each)
    assert spans(result) == {1: (0, 10 + 2 + 4 + 10)}
    jobs = ONE_JOB + "\n2 0 1 30"
    script: Timetable = {0: [start(1), start(2)], 10: [checkpoint(2), resize(1, nodes=1)], 40: [start(2)]}
    result = play(4, jobs, script, checkpointing=store, each=each)
    # 10-12: one GiB of each; job 1 writes its second until 13, and reads one until 14.  20 of 60 s are behind it: 14-54.
    # Job 2 is restored at 40-41, and has 20 s left.
    assert spans(result) == {1: (0, 54), 2: (40, 61)}


def test_a_job_may_have_a_cost_of_its_own() -> None:
    result = play(4, ONE_JOB, {0: [start(1)], 10: [resize(1, nodes=4)]}, each={**MALLEABLE, "resize_s": 1}, resize_s=5)
    assert spans(result) == {1: (0, 21)}


def test_its_nodes_are_the_lowest_of_its_own_and_of_the_idle_ones_or_those_named() -> None:
    jobs = "1 0 2 30\n2 0 1 30"
    script = {0: [start(1, columns=(3, 5)), start(2, columns=(1, 2))], 10: [resize(1, nodes=4)], 15: [resize(1, nodes=1)]}
    result = play(5, jobs, script, resize_s=0)
    ranges = result.placements.query("job == 1")[["begin_s", "first_node", "nodes"]].to_numpy().tolist()
    assert ranges == [[0, 3, 2], [10, 0, 1], [10, 2, 3], [15, 0, 1]]
    script = {0: [start(1, columns=(3, 5)), start(2, columns=(1, 2))], 10: [resize(1, columns=(0, 1, 4, 5))]}
    ranges = play(5, jobs, script, resize_s=0).placements.query("job == 1")[["begin_s", "first_node", "nodes"]]
    assert ranges.to_numpy().tolist() == [[0, 3, 2], [10, 0, 1], [10, 4, 1]]


def test_preempted_after_a_resize_a_job_goes_on_with_any_of_its_sizes() -> None:
    # 0-10 on two nodes, 10-20 on four: 15 of 15 s would be at 20; at 15 it has 10 of 15, which are 40 of 60 on one node.
    script = {0: [start(1)], 10: [resize(1, nodes=4)], 15: [checkpoint(1)], 20: [start(1, nodes=1)]}
    result = play(4, ONE_JOB, script, resize_s=0, checkpointing=Checkpointing(checkpoint_s=1, restart_s=2))
    assert spans(result) == {1: (20, 42)}
    assert accounts(result) == {
        Account.USEFUL: 60,
        Account.CHECKPOINT: 4,
        Account.RESTART: 2,
        Account.IDLE: 20 + 16 + 3 * 22,
    }
    assert result.jobs["tries"].tolist() == [2]
    assert result.jobs["run_s"].tolist() == [10 + 5 + 20]


@pytest.mark.parametrize(
    ("how", "useful", "lost"),
    [(kill, 60, 20 + 20), (abort, 0, 20 + 20)],
)
def test_all_phases_are_discarded_if_it_is_killed(how: Any, useful: int, lost: int) -> None:
    script = {0: [start(1)], 10: [resize(1, nodes=4)], 15: [how(1)], 20: [start(1)] if how is kill else []}
    result = play(4, ONE_JOB, script, resize_s=0)
    books = accounts(result)
    assert books.get(Account.USEFUL, 0) == useful
    assert books[Account.LOST] == lost
    assert [lost_s for *_, lost_s, _ in phases(result)][:2] == [10, 5]
    assert result.jobs["wasted_node_s"].tolist() == [lost]


def outages(*of_nodes: tuple[int, float, float], nodes: int = 4) -> Outages:
    node, down, up = zip(*of_nodes, strict=True)
    return Outages(node=np.array(node), down_s=np.array(down, dtype=float), up_s=np.array(up, dtype=float), nodes=nodes)


def test_a_failure_shrinks_a_gang_to_the_nodes_that_are_left() -> None:
    # Checkpoints every 10 s take 1 s: 0-10, 11-21, 22-24 of 30 s on three nodes; node 1 fails at 24.  20 of 30 s are saved,
    # which are 30 of 45 on two nodes; 24-29 resize; 29-39 executes, checkpoint, 40-45.
    checkpointing = Checkpointing(checkpoint_s=1, interval_s=10)
    machine = {"resize_s": 5, "checkpointing": checkpointing, "failures": outages((1, 24, 26))}
    result = play(4, "1 0 3 30", {0: [start(1)]}, on_failure="shrink", **machine)
    assert spans(result) == {1: (0, 45)}
    assert stopped(result) == [(1, 0, 24, "resized", 2)]
    assert phases(result) == [(0, 24, 3, 22, 2, "resized"), (24, 45, 2, 15, 0, "completed")]
    assert accounts(result) == {
        Account.USEFUL: 60 + 30,
        Account.LOST: 6,
        Account.CHECKPOINT: 6 + 2,
        Account.RESIZE: 10,
        Account.DOWN: 2,
        Account.IDLE: 24 + 2 + 2 * 19,
    }
    assert result.jobs["tries"].tolist() == [1]
    requeued = play(4, "1 0 3 30", {0: [start(1)], 26: [start(1)]}, **machine)
    assert stopped(requeued) == [(1, 0, 24, "failed", 2)]


def test_without_a_checkpoint_a_shrunk_gang_begins_again_and_below_its_least_it_waits_again() -> None:
    script: Timetable = {0: [start(1)], 30: [start(1)]}
    machine = {"failures": outages((1, 10, 12), (0, 20, 25)), "on_failure": "shrink", "checkpointing": COSTS}
    result = play(4, ONE_JOB, script, each={**MALLEABLE, "min_nodes": 1}, **machine)
    # 10: on node 0 alone from the beginning, without a restart, as nothing is saved; 20: it has no node left.
    assert phases(result) == [(0, 10, 2, 10, 10, "resized"), (10, 20, 1, 10, 10, "failed"), (30, 60, 2, 30, 0, "completed")]
    assert accounts(result)[Account.LOST] == 20 + 10


def test_a_resize_may_be_interrupted() -> None:
    # 10-20 resize; preempted at 15, it has what it had executed by 10.
    script = {0: [start(1)], 10: [resize(1, nodes=4)], 15: [checkpoint(1)], 20: [start(1, nodes=2)]}
    result = play(4, ONE_JOB, script, resize_s=10)
    assert spans(result) == {1: (20, 40)}
    assert accounts(result) == {Account.USEFUL: 60, Account.RESIZE: 20, Account.IDLE: 20 + 20 + 40}
    suspended = {0: [start(1)], 10: [resize(1, nodes=4)], 15: [suspend(1)], 20: [start(1, nodes=4)]}
    assert spans(play(4, ONE_JOB, suspended, resize_s=10)) == {1: (20, 30)}


TWO_JOBS = "1 0 2 30\n2 0 1 30"


@pytest.mark.parametrize(
    ("orders", "machine", "reason"),
    [
        ([resize(1, nodes=5)], {}, "to 5 nodes: its job may have 1 to 4 nodes"),
        ([resize(1, nodes=4)], {}, "to 4 nodes: too few nodes that it may have are idle until it ends"),
        ([resize(1, columns=(1, 3))], {}, "to 2 nodes: nodes 2 are not idle"),
        ([resize(1, nodes=3, columns=(0, 2))], {}, "to 3 nodes: 2 columns are given (0-1)"),
        ([resize(1)], {}, ": neither nodes nor columns are given"),
        ([resize(1, nodes=1.5)], {}, ": 1.5 is not a whole number"),
        ([resize(1, nodes=1), resize(1, nodes=2)], {}, "to 2 nodes: it is resizing"),
        ([checkpoint(1), resize(1, nodes=1)], {}, ": it has been stopped at this time already"),
        ([migrate({1: (0, 2)}), resize(1, nodes=1)], {}, "to 1 nodes: it is migrating"),
        ([resize(1, nodes=1)], {"each": {}}, "to 1 nodes: its job is not malleable"),
        (
            [resize(1, nodes=1)],
            {"checkpointing": Checkpointing(restart_charge="every-decision")},
            "to 1 nodes: restarts are not charged on-start (Checkpointing.restart_charge)",
        ),
        (
            [resize(1, nodes=1)],
            {"checkpointing": Checkpointing(checkpoint_s=1, max_tasks_per_slice=0)},
            "to 1 nodes: the store takes no tasks",
        ),
    ],
)
def test_a_refused_resize_says_why(orders: Any, machine: dict[str, Any], reason: str) -> None:
    script = {0: [start(1), start(2)], 10: orders}
    refused = refusal(4, TWO_JOBS, script, **{"each": MALLEABLE, **machine})
    assert refused.startswith("job 1 cannot be resized")
    assert refused.removeprefix("job 1 cannot be resized").strip() == reason.strip()


def test_gangs_in_rows_and_those_with_a_time_limit_keep_their_size() -> None:
    reason = refusal(4, ONE_JOB, {0: [place({1: ((0, 2), 0)})], 10: [resize(1, nodes=1)]}, each=MALLEABLE)
    assert reason == "job 1 cannot be resized to 1 nodes: its nodes are shared in time"
    reason = refusal(4, ONE_JOB, {0: [start(1, limit=20_000_000)], 10: [resize(1, nodes=1)]}, each=MALLEABLE)
    assert reason == "job 1 cannot be resized to 1 nodes: it has been started with a time limit"


def test_a_running_gang_is_named_where_a_job_is_expected() -> None:
    reason = refusal(4, ONE_JOB, {0: [start(1), then], 5: [resize(1, nodes=2)]}, each={})
    assert reason == "job 1 cannot be resized to 2 nodes: its job is not malleable"
