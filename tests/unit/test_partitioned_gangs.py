"""Gangs in rows on machines with partitions, by hand: slices of 10 s, without costs, unless a test says otherwise."""

import json
from pathlib import Path
from typing import Any

import pytest

from clustermodel import DecisionError, Machine, Scenario, Site, TimeSlicing, Workload, check_policy
from clustermodel.cli.main import main
from clustermodel.experiment.result import Result
from clustermodel.policies.interface import Place, Rows, Setup, Start
from clustermodel.policies.view import Batch, View
from clustermodel.workload.job import Job
from tests.conftest import refusal
from tests.unit.test_partitions import job, nodes_of, parts

OVERLAPPING = {"a": "0-3", "b": "2-5", "c": "2-3"}


def run(jobs: list[Job], policy: Any, mpl: int = 2, nodes: int = 6, **partitions: str) -> Result:
    machine = Machine(
        nodes=nodes,
        partitions=parts(**(partitions or OVERLAPPING)),
        time_slicing=TimeSlicing(quantum_s=10, mpl=mpl),
    )
    return Scenario(workload=Workload.from_jobs(jobs), machine=machine, policy=policy, history=True).run()


def times(result: Result) -> list[tuple[float, float]]:
    """Return start and end of each job."""
    return list(zip(result.jobs["start_s"], result.jobs["end_s"], strict=True))


@pytest.mark.parametrize("policy", ["gs", "bgs", "mgs", "mbgs", "adaptive"])
def test_gangs_of_partitions_that_share_nodes_take_turns(policy: str) -> None:
    # 2 finds nodes 4-5 in the first row, and takes 2-5 in the second one: it works in 10-20, 30-40, ... 90-100.
    result = run([job(1, 0, 4, 100, "a"), job(2, 0, 4, 50, "b")], policy)
    assert times(result) == [(0, 150), (0, 100)]
    assert nodes_of(result, 1) == {0, 1, 2, 3}
    assert nodes_of(result, 2) == {2, 3, 4, 5}


@pytest.mark.parametrize("policy", ["gs", "mgs"])
def test_a_partition_whose_rows_are_full_blocks_no_other_one_unless_they_share_nodes(policy: str) -> None:
    jobs = [
        job(1, 0, 4, 100, "a"),
        job(2, 1, 4, 30, "a"),
        job(3, 2, 2, 30, "b"),  # 2 waits for nodes of b as well
        job(4, 3, 1, 30, "d"),
    ]
    assert times(run(jobs, policy, mpl=1, a="0-3", b="2-5", d="6", nodes=7)) == [(0, 100), (100, 130), (100, 130), (3, 33)]


def test_a_gang_has_the_row_that_is_fullest_where_it_may_run() -> None:
    # At 100 the first row has nodes 5-6 free, the second one 0-3 and 6: 5 takes node 6 there, and leaves 5-6 for job 6.
    jobs = [
        job(1, 0, 4, 1000, "a"),
        job(2, 0, 1, 1000, "e"),
        job(3, 0, 2, 10, "e"),
        job(4, 0, 2, 1000, "e"),
        job(5, 100, 1, 1000, "e"),
        job(6, 100, 2, 1000, "e"),
    ]
    result = run(jobs, "gs", nodes=7, a="0-3", e="4-6")
    assert list(result.jobs["start_s"]) == [0, 0, 0, 0, 100, 100]
    assert (nodes_of(result, 5), nodes_of(result, 6)) == ({6}, {5, 6})


@pytest.mark.parametrize("policy", ["bgs", "mbgs", "conservative"])
def test_reservations_have_nodes_of_each_pool(policy: str) -> None:
    # One row.  2 waits for nodes 2-3, which a has too, and for 4-5, which 1 holds.  3 ends before that, 4 would not.
    jobs = [
        job(1, 0, 2, 100, "b"),
        job(2, 1, 4, 30, "b"),
        job(3, 2, 4, 50, "a"),
        job(4, 3, 4, 100, "a"),
        job(5, 4, 2, 500, "a"),
    ]
    result = run(jobs, policy, mpl=1)
    assert times(result) == [(0, 100), (100, 130), (2, 52), (130, 230), (230, 730)]
    assert list(result.jobs["reserved_s"].dropna()) == [100, 130, 230]
    assert nodes_of(result, 1) == {4, 5}


@pytest.mark.parametrize("policy", ["bgs", "mbgs"])
def test_a_reservation_is_in_the_row_whose_gang_leaves_its_nodes_first(policy: str) -> None:
    # 1 and 2 hold nodes 2-3 of both rows; 2 is expected to have had its 50 s at 100, 1 its 100 s at 200.
    result = run([job(1, 0, 4, 100, "a"), job(2, 0, 4, 50, "b"), job(3, 0, 2, 30, "c")], policy)
    assert times(result) == [(0, 180), (0, 100), (100, 160)]
    assert list(result.jobs["reserved_s"].dropna()) == [100]


@pytest.mark.parametrize(("policy", "ends"), [("gs", [10, 190, 200]), ("mgs", [10, 100, 110]), ("mbgs", [10, 100, 110])])
def test_gangs_migrate_to_nodes_that_they_may_have(policy: str, ends: list[float]) -> None:
    # 1 and 2 share the first row, 3 has the second one.  When 1 ends, 2 moves to nodes 0-1; 3 may have none but its own.
    result = run([job(1, 0, 2, 10, "a"), job(2, 0, 2, 100, "a"), job(3, 0, 2, 100, "c")], policy)
    assert list(result.jobs["end_s"]) == ends
    assert nodes_of(result, 3) == {2, 3}
    assert nodes_of(result, 2) == ({2, 3} if policy == "gs" else {0, 1, 2, 3})


def test_rows_are_the_whole_machines() -> None:
    # Three gangs of b make three rows.  1, of two gangs of a, stands in the third one as well: it works in 0-10, 20-40, 50-60.
    jobs = [job(1, 0, 2, 40, "a"), job(2, 0, 2, 40, "a"), *(job(n, 0, 2, 1000, "b") for n in (3, 4, 5))]
    together = run(jobs, "gs", mpl=3, nodes=4, a="0-1", b="2-3")
    assert times(together)[:2] == [(0, 60), (0, 80)]
    alone = run(jobs[:2], "gs", mpl=3, nodes=2, a="0-1")
    assert times(alone) == [(0, 70), (0, 80)]


def test_partitions_of_nodes_with_several_processors_are_refused() -> None:
    machine = Machine(nodes=3, processors_per_node=2, partitions=parts(a="0-1"))
    scenario = Scenario(workload=Workload.from_jobs([job(1, 0, 4, 100, "a")]), machine=machine, policy="gs")
    assert refusal(scenario.run).startswith("policy gs: not allowed where jobs have shapes, or share the memory of nodes")


class _OnNodes:
    """Starts its first job in a row on some nodes, and moves it to others."""

    name = "on nodes"

    def __init__(self, *columns: tuple[int, int]) -> None:
        self._columns = columns

    def start(self, setup: Setup) -> Any:
        left = list(self._columns)

        def decide(batch: Batch, view: View) -> list[Rows]:
            jobs = [*(gang.job for gang in view.running.values()), *view.waiting.values()]
            return [Rows(places=(Place(jobs[0], left.pop(0), (0,)),))] if jobs and left else []

        return decide


@pytest.mark.parametrize("columns", [((0, 2),), ((2, 4), (1, 3))])
def test_a_place_on_other_nodes_is_refused(columns: tuple[tuple[int, int], ...]) -> None:
    policy: Any = _OnNodes(*columns)
    policy.takes_partitions = True
    with pytest.raises(DecisionError, match=r"job 1 cannot run on nodes [01]-[12]: it may have 2-3 only"):
        run([job(1, 0, 2, 50, "c"), job(2, 5, 1, 50, "a")], policy)


class _Careless:
    """Says that it knows partitions, and starts whatever job there are enough idle nodes for."""

    name = "careless"
    takes_partitions = True

    def start(self, setup: Setup) -> Any:
        def decide(batch: Batch, view: View) -> list[Start]:
            first = next(iter(view.waiting.values()), None)
            return [Start(job=first)] if first is not None and first.nodes <= view.idle else []

        return decide


def test_the_checker_finds_a_policy_that_does_not_look_at_partitions() -> None:
    broken = check_policy(_Careless())
    assert broken
    assert all(each.case.endswith(", in partitions") for each in broken)
    assert any("it needs" in each.detail for each in broken)


def test_a_site_file_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site, trace = tmp_path / "site.toml", tmp_path / "jobs.swf"
    Site(partitions=parts(**{"1": "0-3", "2": "2-5"})).to_toml(site)
    jobs = [(1, 100, 1), (2, 50, 2)]
    lines = [f"{number} 0 0 {run_s} 4 -1 -1 4 {run_s} -1 1 1 1 -1 1 {part} -1 -1" for number, run_s, part in jobs]
    trace.write_text("\n".join(lines) + "\n")
    options = ["--nodes", "6", "--site", str(site), "--policy", "mbgs", "--quantum", "10", "--json"]
    with pytest.raises(SystemExit) as ended:
        main(["run", "--trace", str(trace), *options])
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out)[0]["mean_response_s"] == 125
