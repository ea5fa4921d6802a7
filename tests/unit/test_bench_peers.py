"""Comparison with other simulators: pyss's method has our schedules, and the page shows the stored table."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench import peers
from tests.bench.peer_run import SIMULATORS
from tests.bench.pyss_algorithm import simulate
from tests.bench.timing import ROOT

NODES = 16


def random_jobs(seed: int) -> list[list[int]]:
    """Return jobs with a queue, many at the same instants: submission, nodes, run time, estimate."""
    rng = random.Random(seed)
    submit, jobs = 0, []
    for _ in range(150):
        submit += rng.choice([0, 0, 10, 30, 60])
        estimate = 10 * rng.randint(1, 30)
        jobs.append([submit, rng.choice([1, 2, 3, 8, 16]), rng.choice([estimate, rng.randint(1, estimate)]), estimate])
    return jobs


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("seed", range(5))
def test_the_method_of_pyss_has_our_schedules(policy: str, seed: int) -> None:
    jobs = random_jobs(seed)
    starts = []
    for name in ("clustermodel", "pyss's method"):
        program, starts_of = SIMULATORS[name](NODES, jobs, policy)
        starts.append(list(starts_of(program())))
    assert starts[0] == starts[1]
    assert sum(start > job[0] for start, job in zip(starts[0], jobs, strict=True)) > 100  # jobs wait


def test_a_worked_example_of_the_method() -> None:
    # Job 1 holds 3 of 4 nodes until 10, by its estimate until 20; job 2 needs all; jobs 3 and 4 fit in the fourth one, and only
    # job 3 ends before job 2's reservation.
    jobs = [[0, 3, 10, 20], [1, 4, 5, 5], [2, 1, 8, 18], [3, 1, 8, 30]]
    assert simulate(jobs, 4, "fcfs") == [0, 10, 15, 15]
    assert simulate(jobs, 4, "easy") == [0, 10, 2, 15]
    assert simulate(jobs, 4, "conservative") == [0, 10, 2, 15]


def test_a_run_in_a_process_of_its_own_prints_time_memory_and_starts(tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps({"nodes": 2, "jobs": [[0, 2, 5, 9], [1, 1, 5, 9]]}))
    command = [sys.executable, "-m", "tests.bench.peer_run", "pyss's method", "easy", str(path)]
    found = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    assert found["starts"] == [0, 5]
    assert found["seconds"] >= 0
    assert found["peak_kb"] > 1_000


def test_simulators_that_are_not_here_are_skipped_with_the_way_to_install_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert [one.name for one in peers.simulators({"accasim": "/nowhere/python"}, None)] == ["clustermodel", "pyss's method"]
    printed = capsys.readouterr().out
    assert "compiled modules are skipped: CLUSTERMODEL_COMPILE=1 pip install" in printed
    assert "accasim is skipped: python3 -m venv FOLDER; FOLDER/bin/pip install accasim" in printed


def test_the_page_shows_the_stored_table() -> None:
    table = peers.read()
    page = peers.PAGE.read_text(encoding="utf-8")
    assert peers.with_summary(page, table) == page
    assert list(peers.TRACES) == table["trace"].drop_duplicates().tolist()


def test_only_the_easy_of_accasim_has_another_schedule() -> None:
    table = peers.read()
    other = table[table["other_starts"] > 0]
    assert {(row.simulator, row.policy) for row in other.itertuples()} == {("accasim", "easy")}
