"""Hand-worked timelines of a checkpoint store with a bandwidth: who writes when, and what it costs."""

from typing import Any

import numpy as np
import pytest

import clustermodel as cm
from clustermodel.cli.options import machine_with
from clustermodel.experiment.result import Result
from clustermodel.machine.checkpoints import WRITERS
from clustermodel.recording.ledger import Account
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.job import Demand, OwnCosts
from tests.gang_runs import check_books
from tests.timeline.script import Script, checkpoint, kill, start
from tests.timeline.test_failures import TWO_ROWS, down
from tests.timeline.timeline import accounts, play, play_both, spans, spent, stopped

TEN_GIB = {"memory_gib": 10.0}
RARELY = cm.NodeFailures(mtbf_s=1e10, repair_s=0)


def every_20(**store: Any) -> cm.Checkpointing:
    """Return checkpoints every 20 s to a store of 1 GiB/s unless it is given another bandwidth."""
    if "node_bandwidth_gib_s" not in store:
        store.setdefault("bandwidth_gib_s", 1)
    return cm.Checkpointing(interval_s=20, store=cm.CheckpointStore(**store))


def both(run_s: float, writers: str, **more: Any) -> Result:
    """Run two jobs of one node each, whose images take 10 s alone."""
    jobs = f"1 0 1 {run_s}\n2 0 1 {run_s}"
    result = play(2, jobs, "fcfs", checkpointing=every_20(writers=writers), each=TEN_GIB, **more)
    check_books(result)
    return result


def test_a_gang_alone_writes_its_memory_at_the_bandwidth_of_the_store() -> None:
    # 3 nodes with 10 GiB each, 1 GiB/s: 20-50.
    result = play(3, "1 0 3 30", "fcfs", checkpointing=every_20(), each=TEN_GIB)
    assert spans(result) == {1: (0, 60)}
    assert accounts(result) == {Account.USEFUL: 90, Account.CHECKPOINT: 90}


def test_gangs_that_write_at_once_share_the_bandwidth() -> None:
    result = both(30, "oblivious")
    assert spans(result) == {1: (0, 50), 2: (0, 50)}
    assert accounts(result) == {Account.USEFUL: 60, Account.CHECKPOINT: 40}


def test_a_gang_that_comes_later_slows_the_first_one_down_from_then_on() -> None:
    # 1 writes alone 20-25, half of its image; both share from 25 on: 1 until 35, when 2 has 5 GiB left, until 40.
    result = play(2, "1 0 1 30\n2 5 1 30", "fcfs", checkpointing=every_20(), each=TEN_GIB)
    assert spans(result) == {1: (0, 45), 2: (5, 50)}
    assert spent(result, Account.CHECKPOINT) == 15 + 15


def test_first_come_first_served_gangs_wait_for_the_store() -> None:
    result = both(30, "fcfs")
    assert spans(result) == {1: (0, 40), 2: (0, 50)}
    assert accounts(result) == {Account.USEFUL: 60, Account.CHECKPOINT: 20, Account.BLOCKED: 10, Account.IDLE: 10}


def test_the_explanation_says_how_long_a_job_waited_for_the_store() -> None:
    result = both(30, "fcfs", explain=True)
    assert str(result.explain(2)).endswith("\n  waited for the checkpoint store, on its nodes, for 10 s")
    assert "store" not in str(result.explain(1))


@pytest.mark.parametrize("writers", ["fcfs_nonblocking", "least_waste"])
def test_gangs_execute_until_it_is_their_turn(writers: str) -> None:
    # 2 executes until 30, when 1 has written, writes what it has then, and executes 5 s more.
    result = both(35, writers)
    assert spans(result) == {1: (0, 45), 2: (0, 45)}
    assert accounts(result) == {Account.USEFUL: 70, Account.CHECKPOINT: 20}


@pytest.mark.parametrize("writers", ["fcfs_nonblocking", "least_waste"])
@pytest.mark.parametrize("run_s", [25, 30])
def test_a_job_that_completes_before_its_turn_does_not_write(writers: str, run_s: float) -> None:
    result = both(run_s, writers)  # in 30 s it completes at the very instant of its turn
    assert spans(result) == {1: (0, run_s + 10), 2: (0, run_s)}
    assert spent(result, Account.CHECKPOINT) == 10


def test_what_was_executed_while_waiting_is_in_the_checkpoint() -> None:
    # 2 writes 30-40 what it has executed until 30, and fails at 50: it has lost 10 s, and restarts in 10 s.
    result = both(100, "fcfs_nonblocking", failures=down((1, 50, 50), nodes=2))
    assert stopped(result)[0] == (2, 0, 50, "failed", 10)


def written(result: Result) -> dict[int, float]:
    """Return when each job began to write its first checkpoint, seconds."""
    ids, held = result.records.column("id").tolist(), result.records.overheads
    writes = held.account == list(Account).index(Account.CHECKPOINT)
    pairs = sorted(zip(held.start[writes].tolist(), held.job[writes].tolist(), strict=True), reverse=True)
    return {ids[job]: at / TICKS_PER_SECOND for at, job in pairs}


@pytest.mark.parametrize(("writers", "begins"), [("fcfs_nonblocking", (20, 30, 40)), ("least_waste", (20, 32, 30))])
def test_the_store_serves_the_gang_for_which_the_others_risk_least(writers: str, begins: tuple[float, ...]) -> None:
    # 1 writes 20-30.  2 (10 s) asks at 21, 3 (2 s) at 22.  First come, first served: 2 writes 30-40, 3 40-42.  Least waste:
    # 3 writes 30-32, because 2 is at risk for 2 s longer then, and 3 would be for 10 s.
    jobs = [
        cm.Job(id=number, submit_s=0, nodes=1, run_s=50, memory_gib=gib, checkpoint_interval_s=interval)
        for number, gib, interval in ((1, 10, 20), (2, 10, 21), (3, 2, 22))
    ]
    machine = cm.Machine(nodes=3, failures=RARELY, checkpointing=every_20(writers=writers))
    result = cm.Scenario(machine=machine, workload=cm.Workload.from_jobs(jobs), policy="fcfs").run()
    check_books(result)
    assert written(result) == dict(enumerate(begins, 1))


@pytest.mark.parametrize(("writers", "begins"), [("fcfs", (10, 11, 12)), ("least_waste", (10, 15, 11))])
def test_the_store_serves_the_gang_for_which_the_others_wait_least(writers: str, begins: tuple[float, ...]) -> None:
    # Each node takes 1 s alone.  2 and 3 wait from 10.5 on, while 1 writes 10-11.  If 2 is next, the 4 nodes of 3 will have
    # waited for 1.5 s; if 3 is, one node for 4.5 s.
    script = {0: [start(1), start(2), start(3)], 10: [checkpoint(1)], 10.5: [checkpoint(2), checkpoint(3)]}
    again = {20: [start(1)], 200: [start(2), start(3)]}
    costs = cm.Checkpointing(store=cm.CheckpointStore(bandwidth_gib_s=4, writers=writers))
    jobs = "1 0 1 30\n2 0 1 30\n3 0 4 30"
    result = play(6, jobs, Script(script | again), checkpointing=costs, each={"memory_gib": 4.0})
    check_books(result)
    assert written(result) == dict(enumerate(begins, 1))


def test_a_node_that_fails_during_a_transfer_leaves_the_earlier_image() -> None:
    # Both write from 20 on.  Node 0 fails at 25: what it has written is of no use, and 2 has the store to itself: of its 10 GiB
    # it has 7.5 left.  1 runs again from its beginning.
    result = play(2, "1 0 1 30\n2 0 1 30", "fcfs", checkpointing=every_20(), each=TEN_GIB, failures=down((0, 25, 26), nodes=2))
    assert stopped(result) == [(1, 0, 25, "failed", 20)]
    assert spans(result) == {1: (26, 66), 2: (0, 42.5)}
    check_books(result)


def test_an_image_that_is_written_when_the_node_fails_counts() -> None:
    # Written 20-30.  At 31 it is read until 41.
    result = play(1, "1 0 1 30", "fcfs", checkpointing=every_20(), each=TEN_GIB, failures=down((0, 30, 31), nodes=1))
    assert stopped(result) == [(1, 0, 30, "failed", 0)]
    assert spans(result) == {1: (31, 51)}
    assert accounts(result) == {Account.USEFUL: 30, Account.CHECKPOINT: 10, Account.RESTART: 10, Account.DOWN: 1}


def test_reads_and_writes_share_the_store() -> None:
    # 1 is written 10-20 and read 30-50, because 2 writes 30-50.
    script = {0: [start(1)], 10: [start(2), checkpoint(1)], 30: [start(1), checkpoint(2)], 70: [start(2)]}
    costs = cm.Checkpointing(store=cm.CheckpointStore(bandwidth_gib_s=1))
    result = play(2, "1 0 1 30\n2 10 1 30", Script(script), checkpointing=costs, each=TEN_GIB)
    assert sorted(stopped(result)) == [(1, 0, 20, "checkpointed", 0), (2, 10, 50, "checkpointed", 0)]
    assert spans(result) == {1: (30, 70), 2: (70, 90)}
    check_books(result)


def test_a_gang_killed_while_it_is_written_leaves_the_store_to_others() -> None:
    # Both are written from 10 on; 1 is killed at 14, having written 2 GiB, and 2 writes 8 GiB alone until 22.
    script = {0: [start(1), start(2)], 10: [checkpoint(1), checkpoint(2)], 14: [kill(1)], 30: [start(1), start(2)]}
    costs = cm.Checkpointing(store=cm.CheckpointStore(bandwidth_gib_s=1))
    result = play(2, "1 0 1 30\n2 0 1 30", Script(script), checkpointing=costs, each=TEN_GIB)
    assert sorted(stopped(result)) == [(1, 0, 14, "preempted", 10), (2, 0, 22, "checkpointed", 0)]
    check_books(result)


def test_the_store_takes_so_many_tasks_at_a_time() -> None:
    # 1 has 3 nodes, of which 2 write at a time, and moves 30 GiB; 2 waits for room.
    costs = every_20(node_bandwidth_gib_s=1, max_concurrent_tasks=2)
    result = play(4, "1 0 3 30\n2 0 1 30", "fcfs", checkpointing=costs, each=TEN_GIB)
    assert spans(result) == {1: (0, 45), 2: (0, 55)}
    assert spent(result, Account.BLOCKED) == 15
    check_books(result)


def test_gangs_behind_one_that_leaves_the_queue_at_the_store_go_on_at_once() -> None:
    # Two tasks at a time: 1 is written 10-14.  2 needs room for two and waits from 11 on, 3 for one behind it from 12 on; 2 is
    # killed at 13, and 3 written 13-17.
    script = {0: [start(1), start(2), start(3)], 10: [checkpoint(1)], 11: [checkpoint(2)], 12: [checkpoint(3)], 13: [kill(2)]}
    script |= {20: [start(1), start(2), start(3)]}
    costs = cm.Checkpointing(checkpoint_s=4, max_tasks_per_slice=2)
    result = play(4, "1 0 1 30\n2 0 2 30\n3 0 1 30", Script(script), checkpointing=costs)
    ends = {job: end for job, _, end, _, _ in stopped(result)}
    assert ends == {1: 14, 2: 13, 3: 17}
    check_books(result)


# The bandwidth in use.


def moved(result: Result, gib_s: float) -> float:
    """Return how much has been written and read by a store of a bandwidth, from the states over time, GiB."""
    states = result.states
    return gib_s * float((states["store_share"].to_numpy()[:-1] * np.diff(states["time_s"])).sum())


@pytest.mark.parametrize("writers", WRITERS)
def test_transfers_use_the_whole_bandwidth_until_all_images_are_written(writers: str) -> None:
    # Alone or side by side, the two images take 20-40.
    result = both(35, writers)
    shares = {row.time_s: row.store_share for row in result.states.itertuples()}
    assert {time for time, share in shares.items() if share} <= {20, 30}
    assert (shares[0], shares[20], shares[40]) == (0, 1, 0)
    assert moved(result, 1) == 20


def test_nodes_with_little_bandwidth_use_a_part_of_that_of_the_store() -> None:
    # 1 writes from 20 on with 2 of 3 nodes at a time, 2 of 5 GiB/s; 2 has 3 nodes too, and waits for room until 35.
    costs = every_20(bandwidth_gib_s=5, node_bandwidth_gib_s=1, max_concurrent_tasks=2)
    result = play(6, "1 0 3 30\n2 0 3 30", "fcfs", checkpointing=costs, each=TEN_GIB)
    assert spans(result) == {1: (0, 45), 2: (0, 60)}
    states = result.states[["time_s", "store_share"]].to_numpy().tolist()
    assert states == [[0, 0], [20, 0.4], [35, 0.4], [45, 0.4], [50, 0], [60, 0]]
    assert moved(result, 5) == pytest.approx(60)


def test_many_nodes_use_no_more_than_the_bandwidth_of_the_store() -> None:
    # 4 nodes could write 4 GiB/s.
    costs = every_20(bandwidth_gib_s=2, node_bandwidth_gib_s=1)
    result = play(4, "1 0 1 30\n2 0 3 30", "fcfs", checkpointing=costs, each=TEN_GIB)
    # All tasks progress alike: 10 GiB at 0.5 GiB/s.
    assert spans(result) == {1: (0, 50), 2: (0, 50)}
    assert result.states[["time_s", "store_share"]].to_numpy().tolist() == [[0, 0], [20, 1], [40, 0], [50, 0]]


@pytest.mark.parametrize("writers", WRITERS)
def test_what_the_store_has_moved_is_all_that_has_been_written(writers: str) -> None:
    # Nothing fails and no job is preempted: each write is completed, in whole ticks.
    jobs = cm.synthetic_workload(jobs=200, nodes=32, load=1.0, seed=3).with_default_memory(2)
    costs = cm.Checkpointing(interval_s=3600, store=cm.CheckpointStore(bandwidth_gib_s=0.25, writers=writers))
    result = cm.Scenario(machine=cm.Machine(nodes=32, checkpointing=costs), workload=jobs, policy="easy").run()
    held = result.records.overheads
    writes = held.account == list(Account).index(Account.CHECKPOINT)
    number = int(writes.sum())
    assert number > 300
    images = 2 * int(held.nodes[writes].sum())
    assert moved(result, 0.25) == pytest.approx(images, rel=0, abs=0.25 * number / TICKS_PER_SECOND)
    share = result.states["store_share"]
    assert set(share) == {0.0, 1.0}


def test_a_store_of_the_bandwidth_of_nodes_alone_has_no_share() -> None:
    result = play(1, "1 0 1 30", "fcfs", checkpointing=every_20(node_bandwidth_gib_s=1), each=TEN_GIB)
    assert "store_share" not in result.states


# Costs of a job's own.


def test_costs_of_its_own_replace_those_of_the_machine() -> None:
    jobs = [cm.Job(id=1, submit_s=0, nodes=1, run_s=30, checkpoint_s=3, restart_s=2, checkpoint_interval_s=10), *_plain(2)]
    machine = cm.Machine(
        nodes=2, failures=down((0, 25, 25), nodes=2), checkpointing=cm.Checkpointing(checkpoint_s=5, restart_s=7, interval_s=20)
    )
    result = cm.Scenario(machine=machine, workload=cm.Workload.from_jobs(jobs), policy="fcfs").run()
    # 1: written 10-13 and 23-26, which is cut short at 25 by the failure; read 25-27; 10 s, written 37-40; 10 s.
    assert spans(result) == {1: (25, 50), 2: (0, 35)}
    assert spent(result, Account.CHECKPOINT) == 3 + 2 + 3 + 5


def test_own_costs_share_a_bandwidth_as_if_they_took_that_long_alone() -> None:
    jobs = [cm.Job(id=number, submit_s=0, nodes=1, run_s=30, checkpoint_s=10, restart_s=1) for number in (1, 2)]
    machine = cm.Machine(nodes=2, checkpointing=every_20(bandwidth_gib_s=3))
    result = cm.Scenario(machine=machine, workload=cm.Workload.from_jobs(jobs), policy="fcfs").run()
    assert spans(result) == {1: (0, 50), 2: (0, 50)}


def test_only_jobs_with_an_interval_of_their_own_are_checkpointed() -> None:
    jobs = [cm.Job(id=1, submit_s=0, nodes=1, run_s=30, checkpoint_interval_s=10), *_plain(2)]
    machine = cm.Machine(nodes=2, checkpointing=cm.Checkpointing(checkpoint_s=5, interval_s="own"))
    result = cm.Scenario(machine=machine, workload=cm.Workload.from_jobs(jobs), policy="fcfs").run()
    assert spans(result) == {1: (0, 40), 2: (0, 30)}


def _plain(*numbers: int) -> list[cm.Job]:
    return [cm.Job(id=number, submit_s=0, nodes=1, run_s=30) for number in numbers]


def test_gangs_in_rows_write_at_the_bandwidth_of_their_nodes() -> None:
    # As in test_failures: 10 GiB at 5 GiB/s take 2 s, in the gang's own slices.
    costs = cm.Checkpointing(interval_s=15, store=cm.CheckpointStore(node_bandwidth_gib_s=5))
    result = play_both(1, "1 0 1 20\n2 0 1 20", "gs", time_slicing=TWO_ROWS, checkpointing=costs, each=TEN_GIB)
    assert spans(result) == {1: (0, 42), 2: (0, 44)}
    assert accounts(result) == {Account.USEFUL: 40, Account.CHECKPOINT: 4}


@pytest.mark.parametrize("store", [{"bandwidth_gib_s": 1}, {"node_bandwidth_gib_s": 1, "writers": "fcfs"}])
def test_a_store_that_gangs_share_is_refused_where_they_share_nodes_in_time(store: dict[str, Any]) -> None:
    with pytest.raises(cm.SpecificationError, match="not allowed where nodes are shared in time, because who shares the store"):
        play(1, "1 0 1 20", "gs", checkpointing=cm.Checkpointing(store=cm.CheckpointStore(**store)))


def test_a_job_without_memory_is_refused_where_it_decides_how_large_the_image_is() -> None:
    with pytest.raises(
        cm.SpecificationError, match=r"^CheckpointStore: job 1 has no memory_gib, from which the size of its image"
    ):
        play(1, "1 0 1 30", "fcfs", checkpointing=every_20())


def test_intervals_by_formula_need_checkpoints_that_take_time() -> None:
    costs = cm.Checkpointing(interval_s="young", store=cm.CheckpointStore(bandwidth_gib_s=1))
    with pytest.raises(cm.SpecificationError, match=r"^Checkpointing.interval_s: 'young' is not allowed for job 1 \(1 node\)"):
        play(1, "1 0 1 30", "fcfs", checkpointing=costs, failures=RARELY, each={"memory_gib": 0.0})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "CheckpointStore: no bandwidth is given; give bandwidth_gib_s or node_bandwidth_gib_s"),
        ({"bandwidth_gib_s": 0}, "CheckpointStore.bandwidth_gib_s: 0 is not allowed; it must be a number of GiB/s >= 1e-06"),
        ({"node_bandwidth_gib_s": "1"}, "CheckpointStore.node_bandwidth_gib_s: '1' is not allowed"),
        ({"bandwidth_gib_s": 1, "writers": "fifo"}, "CheckpointStore.writers: 'fifo' is not allowed"),
        ({"bandwidth_gib_s": 1, "max_concurrent_tasks": 0}, "CheckpointStore.max_concurrent_tasks: 0 is not allowed"),
        (
            {"bandwidth_gib_s": 1, "max_concurrent_tasks": 3, "writers": "fcfs"},
            "CheckpointStore.max_concurrent_tasks: 3 is not allowed with writers='fcfs'",
        ),
    ],
)
def test_stores_that_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(cm.SpecificationError) as refused:
        cm.CheckpointStore(**wrong)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"checkpoint_s": 1}, "Checkpointing.checkpoint_s: 1 is not allowed beside a store; its bandwidth says how long"),
        (
            {"max_tasks_per_slice": 3},
            "Checkpointing.max_tasks_per_slice: 3 is not allowed beside a store; use CheckpointStore.",
        ),
        ({"store": 5}, "Checkpointing.store: 5 is not allowed; it must be a CheckpointStore(...) or None"),
    ],
)
def test_costs_beside_a_store_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(cm.SpecificationError) as refused:
        cm.Checkpointing(**{"store": cm.CheckpointStore(bandwidth_gib_s=1)} | wrong)
    assert str(refused.value).startswith(message)


def test_options_of_the_command_line() -> None:
    machine = machine_with(cm.Machine(nodes=4), {"store_bandwidth": 2.5, "store_writers": "fcfs", "checkpoint_interval": 60.0})
    store = cm.CheckpointStore(bandwidth_gib_s=2.5, writers="fcfs")
    assert machine.checkpointing == cm.Checkpointing(interval_s=60, store=store)
    assert machine_with(cm.Machine(nodes=4), {"store_bandwidth": None, "store_writers": None}) == cm.Machine(nodes=4)
    with pytest.raises(cm.SpecificationError, match=r"^--store-writers: it needs --store-bandwidth"):
        machine_with(cm.Machine(nodes=4), {"store_bandwidth": None, "store_writers": "fcfs"})


@pytest.mark.parametrize("field", ["checkpoint_s", "restart_s", "checkpoint_interval_s"])
def test_own_costs_of_jobs(field: str) -> None:
    job = cm.Job(id=1, submit_s=0, nodes=1, run_s=1, **{field: 2.5})  # type: ignore[arg-type]
    demand = job.row().demand
    assert demand == Demand(costs=OwnCosts(**{field.removesuffix("_s"): round(2.5 * TICKS_PER_SECOND)}))
    assert cm.Job.from_row(job.row()) == cm.Job(id=1, submit_s=0, nodes=1, run_s=1, estimate_s=1, **{field: 2.5})  # type: ignore[arg-type]
    frame = cm.Workload.from_jobs([job, *_plain(2)]).frame
    assert frame[field].tolist()[0] == 2.5
    assert frame[field].isna().tolist() == [False, True]
    assert cm.Workload.from_frame(frame) == cm.Workload.from_jobs([job, *_plain(2)])
    with pytest.raises(cm.SpecificationError, match=f"^Job 1: {field}: -1 is not allowed"):
        cm.Job(id=1, submit_s=0, nodes=1, run_s=1, **{field: -1})  # type: ignore[arg-type]
