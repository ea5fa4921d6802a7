"""Hand-worked timelines of idle nodes that are switched off and boot when a gang gets them."""

import pytest

import clustermodel as cm
from clustermodel.recording.ledger import Account
from tests.timeline.script import Script, checkpoint, migrate, start, suspend, then
from tests.timeline.test_failures import down
from tests.timeline.timeline import accounts, play, spans, stopped

BOOTS_3 = {"power": cm.Power(busy_w=300, idle_w=100, boot_s=3), "idle_off_s": 5}


def test_a_gang_waits_until_its_nodes_have_booted() -> None:
    # Both nodes are idle for 5 s after 1 and off for 2; node 1, idle from the first, is off from 5 to 10.
    result = play(2, "1 0 1 4\n2 11 2 10", "easy", **BOOTS_3)
    assert spans(result) == {1: (0, 4), 2: (11, 24)}
    expected = {Account.USEFUL: 4 + 20, Account.BOOT: 6, Account.IDLE: 5 + 5, Account.OFF: 6 + 2}
    assert accounts(result) == expected
    assert result.jobs["run_s"].tolist() == [4, 10]
    watts = {Account.USEFUL: 300, Account.BOOT: 300, Account.IDLE: 100}
    assert result.energy_kwh == sum(watts.get(account, 0) * spent for account, spent in expected.items()) / 3.6e6


def test_nodes_that_are_on_wait_for_the_others() -> None:
    # Node 0 is idle from 8 on, node 1 off from 5 on.
    result = play(2, "1 0 1 8\n2 9 2 10", "easy", **BOOTS_3)
    assert spans(result)[2] == (9, 22)
    assert accounts(result) == {
        Account.USEFUL: 28, Account.BOOT: 3, Account.BLOCKED: 3, Account.IDLE: 5 + 1, Account.OFF: 4
    }  # fmt: skip


def test_a_node_is_off_from_the_very_tick() -> None:
    assert spans(play(1, "1 0 1 1\n2 6 1 1", "fcfs", **BOOTS_3))[2] == (6, 10)
    assert spans(play(1, "1 0 1 1\n2 5.999999 1 1", "fcfs", **BOOTS_3))[2] == (5.999999, 6.999999)


def test_the_books_end_with_the_last_job() -> None:
    result = play(2, "1 0 1 4\n2 100 9 1", "fcfs", **BOOTS_3)  # 2 is rejected
    assert accounts(result) == {Account.USEFUL: 4, Account.IDLE: 4}


def test_off_while_a_job_waits_is_lost_capacity() -> None:
    # 2 needs both nodes and waits from 1 to 10; node 1 is off from 5 on, and boots from 10 on.
    result = play(2, "1 0 1 10\n2 1 2 10", "fcfs", **BOOTS_3)
    assert spans(result)[2] == (10, 23)
    assert result.ledger.amount(Account.OFF) == (0, 5_000_000)
    # 9 s of node 1; no job waits any more while it boots.
    assert result.ledger.capacity_loss == result.kappa_by_formula == 9 / 46


def test_plans_leave_time_for_booting() -> None:
    # 1 may hold its nodes until 13, the guaranteed start of 2; 3 would boot until 15 and end by its estimate at 23.
    jobs = "1 0 2 10\n2 6 3 10\n3 12 1 8 8\n4 12 1 1"
    result = play(3, jobs, "conservative", **BOOTS_3)
    assert result.jobs["reserved_s"].tolist()[1] == 13
    assert spans(result) == {1: (0, 10), 2: (10, 23), 3: (23, 31), 4: (23, 24)}
    running = Script(
        {0: [start(1)], 10: [start(2)], 20: [start(3)]}, watch=lambda _, gang: (gang.expected_end / 1e6, gang.fetching)
    )
    play(2, "1 0 1 1\n2 10 2 5\n3 11 1 1", running, **BOOTS_3)
    assert running.seen[11] == {2: (18, True)}


def test_a_node_that_is_repaired_is_on() -> None:
    # Node 0 is off from 5 on, fails at 7, and is repaired at 20; node 1 is off from 5 on.
    result = play(2, "1 0 1 1\n2 21 1 1\n3 21 1 1", "fcfs", failures=down((0, 7, 20), nodes=2), **BOOTS_3)
    assert spans(result) == {1: (0, 1), 2: (21, 22), 3: (21, 25)}
    assert accounts(result) == {
        Account.USEFUL: 3, Account.BOOT: 3, Account.DOWN: 13, Account.IDLE: 5 + 5 + 1 + 3, Account.OFF: 1 + 16
    }  # fmt: skip


def test_a_gang_of_which_a_node_fails_while_it_boots() -> None:
    # At 12 the boot is cut: node 1 is off again until 15, when 2 starts once more and both boot but node 0, repaired at 15.
    result = play(2, "1 0 2 1\n2 10 2 5", "fcfs", failures=down((0, 12, 15), nodes=2), **BOOTS_3)
    assert stopped(result) == [(2, 10, 12, "failed", 0)]
    assert spans(result)[2] == (15, 23)
    assert accounts(result) == {
        Account.USEFUL: 2 + 10, Account.BOOT: 4 + 3, Account.BLOCKED: 3, Account.IDLE: 10, Account.OFF: 8 + 3, Account.DOWN: 3
    }  # fmt: skip


def test_a_gang_that_is_checkpointed_while_it_boots_has_nothing_to_save() -> None:
    # 2 leaves at once, at 11, with the node off again: 3 boots it from the beginning, and 2 finds it on.
    script = Script({0: [start(1)], 10: [start(2)], 11: [checkpoint(2), then, start(3)], 19: [start(2)]})
    costs = cm.Checkpointing(checkpoint_s=4, restart_s=2)
    result = play(1, "1 0 1 1\n2 10 1 5\n3 11 1 5", script, checkpointing=costs, **BOOTS_3)
    assert spans(result) == {1: (0, 1), 2: (19, 24), 3: (11, 19)}
    assert accounts(result) == {Account.USEFUL: 11, Account.BOOT: 4, Account.IDLE: 5, Account.OFF: 4}


def test_a_gang_that_migrates_while_it_boots_boots_elsewhere() -> None:
    script = Script({0: [start(1)], 10: [start(2)], 11: [migrate({2: (1, 2)})]})
    result = play(2, "1 0 1 1\n2 10 1 5", script, checkpointing=cm.Checkpointing(checkpoint_s=4, restart_s=2), **BOOTS_3)
    assert spans(result)[2] == (10, 19)
    assert accounts(result)[Account.BOOT] == 1 + 3


def test_reserved_nodes_are_switched_off_too() -> None:
    # Node 1 is kept free for somebody else from 2 on: idle until 2, reserved until 5, then off.
    reservation = cm.Reservation(nodes="1", start_s=2, end_s=50, accounts="bio")
    result = play(2, "1 0 1 10", "easy", reservations=[reservation], **BOOTS_3)
    assert accounts(result) == {Account.USEFUL: 10, Account.IDLE: 2, Account.RESERVED: 3, Account.OFF: 5}


def test_a_node_that_keeps_a_suspended_job_stays_on() -> None:
    script = Script({0: [start(1)], 2: [suspend(1)], 30: [start(1)]})
    result = play(2, "1 0 1 4", script, **BOOTS_3)
    # At 7, 12, 17, 22 and 27 node 0 is looked at; it is never off.
    assert spans(result)[1] == (30, 32)
    assert accounts(result) == {Account.USEFUL: 4, Account.IDLE: 28 + 5, Account.OFF: 27}


def test_with_a_power_cap_the_nodes_kept_unused_are_off() -> None:
    capped = {**BOOTS_3, "power_cap_w": 200 + 200}
    result = play(2, "1 0 1 10\n2 0 1 10", "fcfs", **capped)
    assert spans(result) == {1: (0, 10), 2: (10, 20)}
    assert accounts(result) == {Account.USEFUL: 20, Account.IDLE: 5, Account.OFF: 15}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"idle_off_s": 0}, "Machine.idle_off_s: 0 is not allowed; it must be a finite number of seconds > 0 and <= 1e+10"),
        (
            {"idle_off_s": 5, "power": None},
            "Machine.idle_off_s: 5 is not allowed without a power; say what nodes draw, Machine(power=Power(...))",
        ),
        (
            {"idle_off_s": 5, "checkpointing": cm.Checkpointing(restart_s=1, restart_charge="every-decision")},
            "Checkpointing.restart_charge: 'every-decision' is not allowed where idle nodes are switched off; it must be "
            "'on-start'",
        ),
        (
            {"idle_off_s": 5, "node_types": [cm.NodeType(name="hot", nodes="0", power=cm.Power(busy_w=9, idle_w=1))]},
            "Machine.idle_off_s: 5 is not allowed where types of nodes differ in power; it must be None",
        ),
    ],
    ids=["zero", "no power", "recharged", "types"],
)
def test_refusals(fields: dict[str, object], message: str) -> None:
    with pytest.raises(cm.SpecificationError) as refused:
        cm.Machine(nodes=4, **{"power": BOOTS_3["power"], **fields})  # type: ignore[arg-type]
    assert str(refused.value) == message


def test_gangs_in_rows_are_refused() -> None:
    with pytest.raises(cm.DecisionError) as refused:
        play(2, "1 0 1 4", "gs", **BOOTS_3)
    problem = "policy gs: nodes cannot be shared in time where idle ones are switched off (Machine.idle_off_s)"
    assert str(refused.value) == problem
