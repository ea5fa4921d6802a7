"""Hand-worked timelines under a power cap: which nodes are kept unused, and who waits because of that."""

import json
from typing import Any

import pytest

import clustermodel as cm
from clustermodel.measure.input_notes import run_notes
from clustermodel.recording.ledger import Account
from tests.timeline.test_failures import down
from tests.timeline.timeline import accounts, play, play_both, spans, stopped

WATTS = cm.Power(busy_w=300, idle_w=100)
# 4 nodes draw 400 W unused, and 200 W more for each that is in use.
THREE_OF_FOUR = {"power": WATTS, "power_cap_w": 400 + 3 * 200}


def test_a_cap_delays_a_start() -> None:
    # 3 nodes may be in use: 2 waits for 10 s although the node it needs is idle.
    result = play(4, "1 0 3 10\n2 0 1 5", "fcfs", explain=True, **THREE_OF_FOUR)
    assert spans(result) == {1: (0, 10), 2: (10, 15)}
    assert result.jobs["power_cap_wait_s"].tolist() == [0, 10]
    assert "  the power cap kept enough idle nodes from it for 10 s" in str(result.explain(2)).splitlines()
    assert accounts(result) == {Account.USEFUL: 35, Account.IDLE: 25}
    assert result.ledger.capacity_loss == result.kappa_by_formula == 10 / 60
    (note,) = run_notes([result])
    assert str(note) == (
        "the power cap of 1,000 W lets 3 of 4 nodes be in use; 1 job waits for that under fcfs, 5 s of the mean wait"
    )


def test_a_watt_less_is_a_node_less() -> None:
    result = play(4, "1 0 3 10\n2 0 1 5", "fcfs", power=WATTS, power_cap_w=999)
    assert spans(result)[2] == (0, 5)
    assert result.jobs["status"].tolist() == ["rejected", "completed"]
    assert (
        "1 job is rejected: the power cap of 999 W lets 2 of 4 nodes be in use; raise the limit, or leave such jobs out"
        in map(str, run_notes([result]))
    )


def test_the_shadow_time_of_easy_knows_the_cap() -> None:
    # 2 needs 3 nodes and can start at 10.  3 would end at 12 on the third node in use; the fourth one is kept unused, so it
    # would delay 2.  4 ends at 10.
    jobs = "1 0 2 10\n2 1 3 10\n3 2 1 10\n4 3 1 7"
    result = play(4, jobs, "easy", **THREE_OF_FOUR)
    assert spans(result) == {1: (0, 10), 4: (3, 10), 2: (10, 20), 3: (20, 30)}
    # From 3 on only the node that is kept unused is idle: enough for 3, and too few for 2.
    assert result.jobs["power_cap_wait_s"].tolist() == [0, 0, 17, 0]
    assert spans(play(4, jobs, "easy", power=WATTS))[3] == (2, 12)


def test_gangs_in_rows_are_capped() -> None:
    # Two rows of three nodes; the third gang would fit beside the first on four nodes.
    jobs = "1 0 3 20\n2 0 3 20\n3 0 1 20"
    result = play_both(4, jobs, "gs", time_slicing=cm.TimeSlicing(quantum_s=10, mpl=2), **THREE_OF_FOUR)
    assert spans(result) == {1: (0, 30), 2: (0, 40), 3: (30, 60)}
    assert spans(play(4, jobs, "gs", time_slicing=cm.TimeSlicing(quantum_s=10, mpl=2)))[3] == (0, 20)
    assert result.jobs["power_cap_wait_s"].tolist() == [0, 0, 30]
    assert result.ledger.capacity_loss == result.kappa_by_formula


def test_an_unused_node_takes_the_place_of_one_that_fails() -> None:
    # Node 0 fails: 1 starts again at once, on the nodes 1 to 3.  Node 0 is up again at 12, and unused from then on.
    result = play(4, "1 0 3 10\n2 4 2 3", "fcfs", failures=down((0, 5, 12), nodes=4), **THREE_OF_FOUR)
    assert stopped(result) == [(1, 0, 5, "failed", 5)]
    assert spans(result) == {1: (5, 15), 2: (15, 18)}
    assert result.records.columns_of(0) == (1, 4)
    assert accounts(result) == {Account.USEFUL: 36, Account.LOST: 15, Account.DOWN: 7, Account.IDLE: 4 * 18 - 58}


def test_a_node_that_nothing_replaces_comes_back() -> None:
    # Node 3, kept unused, is down when node 0 fails.
    result = play(4, "1 0 3 10", "conservative", failures=down((3, 1, 50), (0, 5, 12), nodes=4), **THREE_OF_FOUR)
    assert spans(result) == {1: (12, 22)}
    assert accounts(result)[Account.DOWN] == 21 + 7


def test_each_partition_has_its_share_of_nodes() -> None:
    # 6 of 8 nodes may be in use: 3 of each partition.
    halves = [cm.Partition(name="a", nodes="0-3"), cm.Partition(name="b", nodes="4-7")]
    machine = cm.Machine(nodes=8, partitions=halves, power=WATTS, power_cap_w=8 * 100 + 6 * 200)
    rows = [("a", 3), ("b", 3), ("a", 1), ("a", 4)]
    jobs = [cm.Job(id=n, submit_s=0, run_s=10, nodes=nodes, partition=name) for n, (name, nodes) in enumerate(rows, 1)]
    result = cm.Scenario(machine=machine, workload=cm.Workload.from_jobs(jobs), policy="easy").run()
    assert result.jobs["start_s"].fillna(-1).tolist() == [0, 0, 10, -1]
    assert result.jobs["power_cap_wait_s"].tolist() == [0, 0, 10, 0]
    assert [result.records.columns_of(index) for index in range(3)] == [(0, 3), (4, 7), (0, 1)]
    assert (
        "1 job is rejected: no nodes that they may have are ever enough; look at partitions, types of nodes, reservations and "
        in "".join(map(str, run_notes([result])))
    )


def test_nodes_that_draw_more_have_the_same_share() -> None:
    # 1,000 W unused; 4,000 W more if all are in use, and 2,000 W are left: half of each type.
    hot = cm.NodeType(name="hot", nodes="0-3", power=cm.Power(busy_w=750, idle_w=100))
    machine = cm.Machine(nodes=10, node_types=[hot], power=cm.Power(busy_w=333, idle_w=100), power_cap_w=3000)
    jobs = [cm.Job(id=number, submit_s=0, run_s=10, nodes=1) for number in range(1, 11)]
    result = cm.Scenario(machine=machine, workload=cm.Workload.from_jobs(jobs), policy="fcfs").run()
    first = [result.records.columns_of(index)[0] for index in range(10) if result.jobs["start_s"][index] == 0]
    assert first == [0, 1, 4, 5, 6]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"power_cap_w": 1000}, "1000 is not allowed without a power; say what nodes draw, Machine(power=Power(...))"),
        (
            {"power": WATTS, "power_cap_w": 599},
            "599 is not allowed; it must be at least 600: all nodes unused, and one in use",
        ),
        ({"power": WATTS, "power_cap_w": -1}, "-1 is not allowed; it must be a number of watts > 0"),
    ],
    ids=["no power", "too low", "negative"],
)
def test_refusals(fields: dict[str, object], message: str) -> None:
    with pytest.raises(cm.SpecificationError) as refused:
        cm.Machine(nodes=4, **fields)  # type: ignore[arg-type]
    assert str(refused.value) == f"Machine.power_cap_w: {message}"


def test_a_cap_that_all_nodes_keep_changes_nothing() -> None:
    result = play(4, "1 0 3 10\n2 0 1 5", "fcfs", power=WATTS, power_cap_w=1200)
    assert spans(result) == {1: (0, 10), 2: (0, 5)}
    assert "all nodes together never draw the 1,200 W of the power cap; it has no effect" in map(str, run_notes([result]))


def test_a_cap_is_a_rule_of_a_site(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "site.toml"
    cm.Site(power_cap_w=1000).to_toml(path)
    assert path.read_text() == "power_cap_w = 1000\n"
    site = cm.Site.from_toml(path)
    jobs = [cm.Job(id=number, submit_s=0, run_s=10, nodes=2) for number in (1, 2)]
    capped = cm.Scenario(
        machine=cm.Machine(nodes=4, power=WATTS), workload=cm.Workload.from_jobs(jobs), site=site, policy="fcfs"
    )
    assert capped.run().jobs["start_s"].tolist() == [0, 10]
    assert capped.used_machine.power_cap_w == 1000


def test_the_command_line_takes_both(command_line: Any) -> None:
    run = ("run", "--jobs", "60", "--policy", "easy", "--power", "busy=350,idle=120,boot_s=60", "--json")
    plain, capped, off = (command_line(*run, *more) for more in ((), ("--power-cap-w", "28000"), ("--idle-off", "600")))
    (without,), (with_cap,), (with_off,) = (json.loads(finished.out) for finished in (plain, capped, off))
    assert with_cap["rejected"] > without["rejected"]  # jobs of more than 54 nodes
    assert with_off["energy_kwh"] < without["energy_kwh"]
