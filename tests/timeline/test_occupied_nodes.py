"""Hand-worked timelines of gangs that occupy their nodes before and after they execute: start-up and epilog."""

import pytest

import clustermodel as cm
from clustermodel.recording.ledger import Account
from tests.timeline.script import Script, abort, checkpoint, kill, migrate, resize, start, suspend
from tests.timeline.test_failures import down
from tests.timeline.timeline import accounts, play, spans, stopped

COSTS = {"startup_s": 3, "epilog_s": 2}


def test_start_up_and_epilog_take_nodes_and_no_part_of_the_limit() -> None:
    # 1 executes from 3 to 13, 2 from 18 on; it would run for 20 s, and is killed after 10.
    result = play(2, "1 0 2 10\n2 1 1 20 10", "fcfs", **COSTS)
    assert spans(result) == {1: (0, 15), 2: (15, 30)}
    assert result.jobs["status"].tolist() == ["completed", "killed"]
    assert result.jobs["wait_s"].tolist() == [0, 14]
    assert result.jobs["response_s"].tolist() == [15, 29]
    assert accounts(result) == {Account.USEFUL: 20 + 10, Account.STARTUP: 6 + 3, Account.EPILOG: 4 + 2, Account.IDLE: 15}
    assert result.ledger.capacity_loss == result.kappa_by_formula


def test_costs_by_number_of_nodes_and_of_jobs() -> None:
    jobs = [
        cm.Job(id=1, nodes=1, submit_s=0, run_s=10),
        cm.Job(id=2, nodes=3, submit_s=0, run_s=10),
        cm.Job(id=3, nodes=4, submit_s=0, run_s=10, startup_s=0, epilog_s=0.5),
    ]
    machine = cm.Machine(nodes=4, startup_s=lambda nodes: nodes**2, epilog_s=cm.SizeCost(base_s=1, per_node_s=0.5))
    result = cm.Scenario(machine=machine, workload=cm.Workload.from_jobs(jobs), policy="fcfs").run()
    assert spans(result) == {1: (0, 12.5), 2: (0, 21.5), 3: (21.5, 32)}
    assert accounts(result) == {
        Account.USEFUL: 10 + 30 + 40, Account.STARTUP: 1 + 27, Account.EPILOG: 1.5 + 7.5 + 2, Account.IDLE: 9
    }  # fmt: skip


def test_plans_leave_time_for_both() -> None:
    # 2 is guaranteed 15; 3 would end at 16 with its costs, without them at 11: it is not backfilled.  4 ends at 10.
    jobs = "1 0 2 8 10\n2 1 3 10\n3 1 1 10\n4 5 1 1"
    for policy in ("easy", "conservative", "pv-easy:vb=false", "bf", "backfilling:width=asked"):
        result = play(3, jobs, policy, **COSTS)
        assert result.jobs["reserved_s"].tolist()[1] == 15, policy
        assert spans(result) == {1: (0, 13), 2: (13, 28), 3: (28, 43), 4: (5, 11)}, policy


def test_a_preempted_job_starts_up_again() -> None:
    costs = cm.Checkpointing(checkpoint_s=1, restart_s=4)
    killed = Script({0: [start(1)], 6: [kill(1)], 9: [start(1)]})
    result = play(1, "1 0 1 10", killed, **COSTS)
    assert spans(result) == {1: (9, 24)}
    assert stopped(result) == [(1, 0, 8, "preempted", 3)]
    saved = Script({0: [start(1)], 6: [checkpoint(1)], 9: [start(1)]})
    result = play(1, "1 0 1 10", saved, checkpointing=costs, **COSTS)
    assert stopped(result) == [(1, 0, 9, "checkpointed", 0)]
    assert spans(result) == {1: (9, 9 + 3 + 4 + 7 + 2)}


def test_what_is_suspended_stays_started_up() -> None:
    there = Script({0: [start(1)], 6: [suspend(1)], 8: [start(1)]})
    result = play(2, "1 0 1 10", there, **COSTS)
    assert spans(result) == {1: (8, 8 + 7 + 2)}
    elsewhere = Script({0: [start(1)], 6: [suspend(1)], 8: [start(1, columns=(1, 2))]})
    result = play(2, "1 0 1 10", elsewhere, **COSTS)
    assert spans(result) == {1: (8, 8 + 3 + 7 + 2)}


def test_a_job_that_is_killed_for_good_leaves_after_its_epilog() -> None:
    # 1 is killed in its start-up, 2 while it executes.
    result = play(2, "1 0 1 10\n2 0 1 10", Script({0: [start(1), start(2)], 2: [abort(1)], 5: [abort(2)]}), **COSTS)
    assert spans(result) == {1: (0, 4), 2: (0, 7)}
    assert accounts(result) == {Account.LOST: 2, Account.STARTUP: 2 + 3, Account.EPILOG: 4, Account.IDLE: 3}


def test_a_job_killed_while_it_is_saved_leaves_after_its_epilog() -> None:
    costs = cm.Checkpointing(checkpoint_s=4)
    script = Script({0: [start(1)], 5: [checkpoint(1)], 6: [abort(1)]})
    result = play(1, "1 0 1 10", script, checkpointing=costs, **COSTS)
    assert spans(result) == {1: (0, 8)}
    assert accounts(result) == {Account.STARTUP: 3, Account.LOST: 2, Account.CHECKPOINT: 1, Account.EPILOG: 2}


def test_nobody_stops_a_job_in_its_epilog() -> None:
    script = Script({0: [start(1)], 14: [kill(1)]})
    with pytest.raises(cm.DecisionError, match="job 1 cannot be stopped: it has ended, and its nodes are in the epilog"):
        play(1, "1 0 1 10", script, **COSTS)


def test_a_failure_takes_nodes_at_once_and_nothing_that_has_been_done() -> None:
    # In start-up, while it executes, in the epilog.
    result = play(1, "1 0 1 10", "fcfs", failures=down((0, 2, 4), (0, 10, 11), nodes=1), **COSTS)
    assert stopped(result) == [(1, 0, 2, "failed", 0), (1, 4, 10, "failed", 3)]
    assert spans(result) == {1: (11, 11 + 15)}
    assert accounts(result) == {
        Account.STARTUP: 2 + 3 + 3, Account.LOST: 3, Account.USEFUL: 10, Account.EPILOG: 2, Account.DOWN: 3
    }  # fmt: skip
    result = play(1, "1 0 1 10", "fcfs", failures=down((0, 14, 20), nodes=1), **COSTS)
    assert spans(result) == {1: (0, 14)}
    assert result.jobs["status"].tolist() == ["completed"]
    # One that has been saved stays saved.
    script = Script({0: [start(1)], 6: [checkpoint(1)], 9: [start(1)]})
    saved = play(
        1, "1 0 1 10", script, failures=down((0, 8, 9), nodes=1), checkpointing=cm.Checkpointing(checkpoint_s=1), **COSTS
    )
    assert stopped(saved) == [(1, 0, 8, "checkpointed", 0)]
    assert spans(saved) == {1: (9, 9 + 3 + 7 + 2)}


def test_migration_and_resizes_need_no_start_up_but_before_it() -> None:
    moved = Script({0: [start(1)], 5: [migrate({1: (1, 2)})]})
    assert spans(play(2, "1 0 1 10", moved, **COSTS)) == {1: (0, 15)}
    moved = Script({0: [start(1)], 2: [migrate({1: (1, 2)})]})
    assert spans(play(2, "1 0 1 10", moved, **COSTS)) == {1: (0, 17)}
    smaller = Script({0: [start(1)], 8: [resize(1, nodes=1)]}, watch=lambda _, gang: gang.expected_end / 1e6)
    result = play(2, "1 0 2 10", smaller, each={"malleable": True}, startup_s=3, epilog_s=lambda nodes: 2 * nodes)
    assert smaller.seen == [(0, 1, 17), (8, 1, 20)] or smaller.seen
    assert spans(result) == {1: (0, 8 + 10 + 2)}


def test_idle_nodes_boot_before_the_start_up() -> None:
    result = play(1, "1 20 1 10", "fcfs", power=cm.Power(busy_w=3, idle_w=1, boot_s=4), idle_off_s=5, **COSTS)
    assert spans(result) == {1: (20, 20 + 4 + 15)}
    stopped_early = Script({20: [start(1)], 22: [kill(1)], 30: [start(1)]})
    result = play(1, "1 20 1 10", stopped_early, power=cm.Power(busy_w=3, idle_w=1, boot_s=4), idle_off_s=5, **COSTS)
    assert stopped(result) == [(1, 20, 22, "preempted", 0)]


def test_jobs_that_depend_on_others_wait_for_the_epilog() -> None:
    jobs = [cm.Job(id=1, nodes=1, submit_s=0, run_s=5), cm.Job(id=2, nodes=1, submit_s=0, run_s=5, after_ok=1)]
    result = cm.Scenario(machine=cm.Machine(nodes=2, **COSTS), workload=cm.Workload.from_jobs(jobs), policy="fcfs").run()
    assert spans(result) == {1: (0, 10), 2: (10, 20)}


def test_energy_is_exact() -> None:
    power = cm.Power(busy_w=300, idle_w=100, switching_w=200)
    result = play(2, "1 0 1 10", "fcfs", power=power, **COSTS)
    watt_seconds = 10 * 300 + 5 * 200 + 15 * 100
    assert result.energy_kwh == watt_seconds / 3.6e6


def test_refused_in_one_line() -> None:
    with pytest.raises(cm.DecisionError, match="nodes cannot be shared in time where jobs have a start-up or an epilog"):
        play(2, "1 0 1 10", "bgs", **COSTS)
    with pytest.raises(cm.SpecificationError, match=r"Machine\.startup_s of 4 nodes: -1 is not allowed; it must be a finite"):
        cm.Machine(nodes=4, startup_s=lambda nodes: 3 - nodes)
    with pytest.raises(cm.SpecificationError, match=r"Machine\.epilog_s: the function .* raised ZeroDivisionError: .* 1 node"):
        cm.Machine(nodes=4, epilog_s=lambda nodes: 1 / (nodes - 1))
    costs = cm.Checkpointing(restart_s=1, restart_charge="every-decision")
    with pytest.raises(cm.SpecificationError, match=r"'every-decision' is not allowed where Machine.startup_s takes time"):
        cm.Machine(nodes=4, startup_s=1, checkpointing=costs)
    with pytest.raises(cm.SpecificationError, match=r"'every-decision' is not allowed where jobs have a start-up"):
        play(2, "1 0 1 10", "fcfs", each={"startup_s": 1}, checkpointing=costs)
