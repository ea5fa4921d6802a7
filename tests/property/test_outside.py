"""The outside checker: random cases of every policy, from the tables of their results alone; and that it sees damage."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from clustermodel import Machine, TimeSlicing
from clustermodel.experiment.result import Result
from clustermodel.job import JobRow
from clustermodel.recording.ledger import Account
from tests.gang_runs import GangCase, run
from tests.outside import differences
from tests.statistical.outside_checker import Case, check, each_case

ROWS = [
    JobRow(submit=submit, id=number, nodes=nodes, run=run_time, estimate=20, user=-1, group=-1, priority=0, status=-1)
    for number, submit, nodes, run_time in ((1, 0, 2, 10), (2, 1, 3, 30), (3, 2, 2, 5), (4, 100, 1, 20))
]
MACHINE = Machine(nodes=4, time_slicing=TimeSlicing(quantum_s=3e-6, mpl=2))


@pytest.mark.long
def test_nothing_differs_in_random_cases_of_every_policy() -> None:
    found: list[str] = []

    def take(batch: int, number: int, case: Case) -> None:
        found.extend(f"{case}: {one}" for one in check(case.policy, case.case, replayed=number % 3 == 0))

    each_case(200, 1, take)
    assert found == []


def moved_job(result: Result) -> None:
    result.jobs.loc[result.jobs["job"] == 3, "start_s"] -= 1e-6


def wrong_ledger(result: Result) -> None:
    result.ledger.charge(Account.IDLE, -3)
    result.ledger.charge(Account.DOWN, 3)


def later_guarantee(result: Result) -> None:
    result.jobs["reserved_s"] = result.jobs["start_s"] - 1e-6


def overrun(result: Result) -> None:
    result.jobs.loc[result.jobs["status"] == "killed", "run_s"] += 1e-6


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
    result = run(GangCase(MACHINE, ROWS), policy)
    assert differences(result, ROWS) == []
    damage(result)
    found = differences(result, ROWS)
    assert len(found) == len(words)
    assert all(one.startswith(start) for one, start in zip(found, words, strict=True))


def test_a_broken_guarantee_is_seen() -> None:
    result = run(GangCase(MACHINE, ROWS), "easy")
    later_guarantee(result)
    assert [one.partition(":")[0] for one in differences(result, ROWS)] == ["guaranteed start"] * 3  # job 1 starts at 0


def test_two_gangs_on_a_node_and_too_much_memory_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row._replace(memory=2) for row in ROWS]
    result = run(GangCase(MACHINE, rows), "easy")
    assert differences(result, rows) == []
    result.machine = replace(MACHINE, node_memory_gib=1 / 2**20)
    assert "memory: 2 KiB on a node of 1" in differences(result, rows)
    result.machine = MACHINE
    placements = result.placements
    placements.loc[placements["job"] == 3, "begin_s"] = 5e-6  # job 1 runs there, too
    placements.loc[placements["job"] == 3, "first_node"] = 1
    monkeypatch.setattr(Result, "placements", property(lambda _: placements))
    found = differences(result, rows)
    assert found
    assert found[0] == "occupancy: jobs 1 and 3 on node 1 of row 0 at 5"
