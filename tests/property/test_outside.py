"""Random scenarios of every policy, features in combination, from the tables of their results alone; and damage is seen."""

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from clustermodel import Job, Limits, Machine, Partition, Power, Reservation, Result, Site, TimeSlicing
from clustermodel.recording.ledger import Account
from tests.outside import Noting, Reserved, differences
from tests.outside_cases import POLICIES, Case, drawn, smaller
from tests.property.strategies import cases
from tests.statistical.outside_checker import Outcome, outcome, table
from tests.statistical.outside_checker import Seen as SeenCase

SECOND = 1_000_000
DRAWN = (Phase.explicit, Phase.reuse, Phase.generate)  # a smaller number is no smaller case


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=cases(30, fewest=3), deadline=None, phases=DRAWN)
@given(number=st.integers(0, 2**32))
def test_nothing_differs(policy: str, number: int) -> None:
    case = drawn(number, policy=policy)
    assert outcome(case, replayed=number % 3 == 0).verdict in ("holds", "refused"), case.script()


@settings(max_examples=cases(200), deadline=None, phases=DRAWN)
@given(number=st.integers(0, 2**32))
def test_nothing_differs_under_a_power_cap(number: int) -> None:
    case = drawn(number, always=("power", "power cap"))
    assert outcome(case, replayed=number % 3 == 0).verdict in ("holds", "refused"), case.script()


def test_a_number_has_one_case_and_its_features_are_those_of_the_run() -> None:
    case = drawn("41:7")
    assert case == drawn("41:7")
    assert case != drawn("41:8")
    often = drawn(3, policy="easy", always=("partitions", "reservations", "power", "power cap", "failures", "limits"))
    assert often.features >= {"partitions", "reservations", "power", "power cap", "failures", "limits"}
    assert "speedup" not in drawn(3, policy="easy", always=("speedup",)).features
    assert drawn(3, without=("failures", "partitions")).features.isdisjoint({"failures", "partitions", "several partitions"})


def test_a_script_repeats_its_case(capsys: pytest.CaptureFixture[str]) -> None:
    case = next(
        case for case in map(drawn, range(1000)) if case.arrays and case.machine.failures is not None and len(case.jobs) > 4
    )
    names: dict[str, object] = {}
    exec(case.script(["what it shows"]), names)
    result = names["r"]
    assert isinstance(result, Result)
    pd.testing.assert_frame_equal(result.jobs, case.run().jobs)
    assert "status" in capsys.readouterr().out


def test_a_failing_case_is_made_smaller() -> None:
    case = next(case for case in map(drawn, range(1000)) if len(case.jobs) > 8 and case.machine.partitions)

    def fails(other: Case) -> bool:
        return any(job.nodes > 1 for job in other.jobs)

    less = smaller(case, fails)
    assert len(less.jobs) == 1
    assert less.features <= {"partitions"} | less.features - case.features
    assert (less.site, less.arrays, less.events) == (None, {}, "together")
    assert less.machine == Machine(nodes=case.machine.nodes)


def test_the_table_counts_runs_by_feature_and_policy() -> None:
    runs = [
        SeenCase("1:1", "easy", frozenset({"limits", "failures"}), Outcome("holds"), ""),
        SeenCase("1:2", "easy", frozenset({"limits"}), Outcome("differs", ("windows: job 1",)), ""),
        SeenCase("1:3", "gs", frozenset({"failures"}), Outcome("refused", ("policy gs: of 3 jobs",)), ""),
    ]
    text = table(runs)
    for line in (
        "limits                             2                       0",
        "   1: 1",
        "  easy: 2, 0, 1",
        "  policy: of N jobs: 1",
    ):
        assert line in text
    assert text.endswith("3 cases, 1 refused, 1 differs, 0 crash, 0 stranded, 0 endless")
    assert "pairs of features: 1 of 1 have run together; the rarest: failures + limits 1" in text


def moved_job(result: Result) -> None:
    result.jobs.loc[result.jobs["job"] == 3, "start_s"] -= 1


def wrong_ledger(result: Result) -> None:
    result.ledger.charge(Account.IDLE, -3)
    result.ledger.charge(Account.DOWN, 3)


def overrun(result: Result) -> None:
    result.jobs.loc[result.jobs["status"] == "killed", "run_s"] += 1


@pytest.mark.parametrize("policy", ["easy", "gs"])
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (moved_job, ["order: job 3: its last attempt and the job table differ"]),
        (wrong_ledger, ["ledger: down 3; the outages say 0", "ledger: idle"]),
        (
            overrun,
            ["work: job 2", "kills: job 2 executes 21 of at most 20", "kills: job 2 is killed after 21", "ledger: useful"],
        ),
    ],
)
def test_damaged_tables_are_seen(policy: str, damage: Callable[[Result], None], words: list[str]) -> None:
    result = PLAIN.run(policy)
    assert differences(result, PLAIN.jobs) == []
    damage(result)
    found = differences(result, PLAIN.jobs)
    assert len(found) == len(words)
    assert all(one.startswith(start) for one, start in zip(found, words, strict=True))


def test_a_broken_guarantee_is_seen() -> None:
    result = PLAIN.run("easy")
    result.jobs["reserved_s"] = result.jobs["start_s"] - 1
    assert [one.partition(":")[0] for one in differences(result, PLAIN.jobs)] == ["guarantees"] * 3  # job 1 starts at 0


@pytest.mark.parametrize(
    ("row", "column", "value", "words"),
    [
        (0, "status", "rejected", "rejections: job 1 is rejected without a reason"),
        (1, "held_s", 0, "limits: each user ('1',): jobs [1, 2] at 0"),
        (1, "held_s", 14, "holding: job 2 is held for 14 of 13 s of waiting"),
        (1, "held_s", 12, "holding: job 2 is held at 10 by nothing"),
        (2, "held_s", 20, "dependencies: job 3 depends on what happens at 23, and is let go at 20"),
        (3, "reserved_s", 8, "guarantees: job 4 starts at 10, not at 8 as guaranteed"),
        (3, "reserved_s", float("nan"), "guarantees: job 4 waits at 1, and has no reservation"),
    ],
)
def test_broken_rules_are_seen(row: int, column: str, value: object, words: str) -> None:
    result, reserved = WATCHED.run(noting := Noting("easy")), noting.reserved
    assert differences(result, WATCHED.jobs, {}, reserved) == []
    result.jobs.loc[row, column] = value
    assert words in differences(result, WATCHED.jobs, {}, reserved)


def test_a_start_after_its_bound_is_seen() -> None:
    result = WATCHED.run("slack:awt=20")
    assert differences(result, WATCHED.jobs) == []
    result.jobs.loc[3, "reserved_s"] = 8
    assert differences(result, WATCHED.jobs)[0] == "guarantees: job 4 starts at 10; its bound is 8"


def test_later_and_too_early_reservations_are_seen() -> None:
    result, reserved = WATCHED.run(noting := Noting("easy")), noting.reserved
    assert reserved == [(SECOND, 4, 10 * SECOND), (10 * SECOND, 2, 13 * SECOND)]
    for start, words in (
        (11, "guarantees: job 4: its reservation for 10 becomes 11 at 5"),
        (9, "guarantees: job 4: reserved for 9 at 5; the nodes are free at 10"),
    ):
        more = [*reserved, Reserved(5 * SECOND, 4, start * SECOND)]
        assert words in differences(result, WATCHED.jobs, {}, more)


def placed(monkeypatch: pytest.MonkeyPatch, result: Result, job: int, **values: float) -> None:
    """Have the table of placements say something else of a job."""
    places = result.placements
    for column, value in values.items():
        places.loc[places["job"] == job, column] = value
    monkeypatch.setattr(Result, "placements", places)


@pytest.mark.parametrize(
    ("job", "values", "words"),
    [
        (2, {"first_node": 2}, "nodes: job 2 on [2, 3, 4] at 13; it may have [[0, 1, 2, 3]]"),
        (4, {"begin_s": 9}, "occupancy: jobs 1 and 4 on node 0 of row 0 at 9"),
        (3, {"nodes": 2}, "occupancy: job 3 has 2 nodes at 23, not one of [1]"),
    ],
)
def test_other_nodes_are_seen(monkeypatch: pytest.MonkeyPatch, job: int, values: dict[str, float], words: str) -> None:
    result = WATCHED.run("easy")
    placed(monkeypatch, result, job, **values)
    assert words in differences(result, WATCHED.jobs)


def test_a_job_across_two_of_its_partitions_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(nodes=4, partitions=[Partition(name="a", nodes="0-1"), Partition(name="b", nodes="2-3")])
    case = Case("easy", machine, (Job(id=1, nodes=2, submit_s=0, run_s=5, partition="a,b"),))
    result = case.run()
    assert differences(result, case.jobs) == []
    placed(monkeypatch, result, 1, first_node=1)
    assert "nodes: job 1 on [1, 2] at 0; it may have [[0, 1], [2, 3]]" in differences(result, case.jobs)


def test_nodes_in_a_reservation_or_down_or_without_memory_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(id=1, nodes=1, submit_s=0, run_s=5, memory_gib=2)
    case = Case("easy", Machine(nodes=2, reservations=[Reservation(nodes="1", start_s=3, end_s=4, every_s=10)]), (job,))
    result = case.run()
    assert differences(result, case.jobs) == []
    result.machine = replace(result.machine, node_memory_gib=1)
    assert "memory: jobs [1] need 2 GiB on node 0 at 0 of 1" in differences(result, case.jobs)
    result.machine = case.machine
    placed(monkeypatch, result, 1, first_node=1)
    assert differences(result, case.jobs)[0].startswith("windows: job 1 on [1] from 0, to 5, perhaps 5: Reservation(nodes='1'")


def test_more_power_than_the_cap_is_seen() -> None:
    case = Case("easy", Machine(nodes=2, power=Power(busy_w=2, idle_w=1)), (Job(id=1, nodes=2, submit_s=0, run_s=5),))
    result = case.run()
    assert differences(result, case.jobs) == []
    result.jobs["power_cap_wait_s"] = 0.0
    result.machine = replace(case.machine, power_cap_w=3)
    assert "cap: 4 W at 0, and 3 are allowed" in differences(result, case.jobs)


def test_a_job_that_waits_at_the_head_though_it_fits_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    result = PLAIN.run("fcfs")
    for table_of in (result.jobs, attempts := result.run_attempts):
        last = table_of["job"] == 4
        table_of.loc[last, ["start_s", "end_s"]] += 7
    monkeypatch.setattr(Result, "run_attempts", attempts)
    placed(monkeypatch, result, 4, begin_s=107, end_s=127)
    assert "conserving: job 4, the first of the queue, fits at 100, and waits" in differences(result, PLAIN.jobs)


@pytest.mark.parametrize(
    "number",
    [
        "41:10280",  # idle nodes before those that jobs are leaving
        "41:17935",  # slack: a job that windows never let start, beside one that holds no reservation
        "41:19624",  # a job that has ended, which is still to be reported, is not late
        "502:1545",  # what gangs in rows have left of a limit of remaining time, in both fidelities
    ],
)
def test_cases_that_were_wrong_once_hold(number: str) -> None:
    assert outcome(drawn(number), replayed=True).verdict == "holds"


def test_suspended_jobs_where_idle_nodes_are_switched_off_after_a_microsecond() -> None:
    rows = [  # number, nodes, submission, run time, estimate, GiB, priority
        (3, 3, 1.5, 1.8, 1.8, 5, 0), (32, 4, 0.6, 1.8, 1.8, 3, 0), (5, 3, 0.6, 0.6, 3.6, 2, 1),
        (16, 5, 6.0, 5.1, 17.1, None, 0), (20, 5, 0.3, 0.6, 12.6, 3, 1), (26, 2, 5.7, 0.6, 12.6, 5, 0),
        (37, 5, 2.4, 0.9, 1.2, 5, 0), (10, 1, 3.0, 8.4, 8.7, 0, 0), (14, 4, 0.0, 5.7, 6.0, 2, 0),
        (12, 3, 0.6, 0.6, 0.6, None, 1), (28, 5, 1.5, 3.0, 6.0, 0, 0),
    ]  # fmt: skip
    names = ("id", "nodes", "submit_s", "run_s", "estimate_s", "memory_gib", "priority")
    jobs = tuple(Job(**dict(zip(names, row, strict=True))) for row in rows)
    power = Power(busy_w=50, idle_w=0, switching_w=400, boot_s=15, boot_w=500)
    machine = Machine(nodes=7, kill_at_estimate=False, node_memory_gib=4, power=power, idle_off_s=1e-06)
    assert outcome(Case("ss:sf=1.5,interval_s=5", machine, jobs)).verdict == "holds"


PLAIN = Case(
    "easy",
    Machine(nodes=4, time_slicing=TimeSlicing(quantum_s=3, mpl=2)),
    tuple(
        Job(id=number, submit_s=submit, nodes=nodes, run_s=run_s, estimate_s=20)
        for number, submit, nodes, run_s in ((1, 0, 2, 10), (2, 1, 3, 30), (3, 2, 2, 5), (4, 100, 1, 20))
    ),
)
WATCHED = Case(
    "easy",
    Machine(nodes=6, partitions=[Partition(name="a", nodes="0-3"), Partition(name="b", nodes="4-5")]),
    (
        Job(id=1, nodes=3, submit_s=0, run_s=10, partition="a", user=1),
        Job(id=2, nodes=3, submit_s=0, run_s=10, partition="a", user=1),
        Job(id=3, nodes=1, submit_s=0, run_s=5, partition="a", after_ok=2),
        Job(id=4, nodes=4, submit_s=1, run_s=3, partition="a"),
    ),
    Site(limits=[Limits(user="*", running_jobs=1)]),
)
