"""What commands say of studies whose replications are the same run, and of runs that fail alike: one line each."""

from pathlib import Path
from typing import Any

import pytest

from clustermodel.experiment.study_table import StudyTable
from clustermodel.figures.study_tables import repeated_runs
from tests.unit.test_cli import Command

SAME = """
from clustermodel import Machine, Scenario, Study, synthetic_workload

def scenario(policy, seed):
    return Scenario(machine=Machine(nodes=8), workload=synthetic_workload(jobs=5, nodes=8), policy=policy)

study = Study(name="s", factors={"policy": ["fcfs", "easy"]}, replications=3, scenario=scenario)
"""
FAILING = """
from clustermodel import Machine, Scenario, Study, synthetic_workload

class Failing:
    name = "failing"

    def start(self, setup):
        raise KeyError("no such queue")
        return self

    def decide(self, batch, view):
        return []

def scenario(policy, seed):
    return Scenario(machine=Machine(nodes=8), workload=synthetic_workload(jobs=2, nodes=8, seed=seed), policy=Failing())

study = Study(name="s", factors={"policy": ["failing"]}, replications=40, scenario=scenario)
"""
NOTE = "replications of each point are one and the same run, so that means have no interval; let the workload of the study"


def test_a_study_whose_function_ignores_its_seed_is_told(command_line: Command, tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(SAME)
    swept = command_line("sweep", tmp_path / "s.py", "--out", tmp_path / "out", "--workers", "1")
    results = command_line("results", tmp_path / "out")
    for finished in (swept, results):
        assert finished.code == 0
        assert f"note: the 3 {NOTE}" in " ".join(finished.err.split())


def rows(runs: str, **factors: Any) -> list[dict[str, Any]]:
    return [{**factors, "run": run, "replication": at, "mean_wait_s": 1.0} for at, run in enumerate(runs, 1)]


@pytest.mark.parametrize(
    ("made", "note"),
    [
        ([rows("abc", load=1), rows("def", load=2)], ""),
        ([rows("a", load=1), rows("b", load=2)], ""),  # a single replication was asked for
        ([rows("aaa", load=None), rows("bbb", load=2)], f"the 3 {NOTE}"),
        ([rows("abc", load=1), rows("dd", load=2)], "the 2 replications of 1 of 2 points are one and the same run"),
        ([rows("aa")], f"the 2 {NOTE}"),
    ],
)
def test_which_replications_are_told_to_be_the_same(made: list[list[dict[str, Any]]], note: str) -> None:
    every = [row for part in made for row in part]
    table = StudyTable(every, ["load"] if "load" in every[0] else [], "made", shown=["mean_wait_s"])
    assert "; ".join(map(str, repeated_runs(table))).startswith(note)
    assert bool(repeated_runs(table)) == bool(note) == ("\nnote: the " in str(table))


def test_forty_equal_failures_are_one_line_with_a_count(command_line: Command, tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(FAILING)
    swept = command_line("sweep", tmp_path / "s.py", "--out", tmp_path / "out", "--workers", "1")
    results = command_line("results", tmp_path / "out")
    for finished in (swept, results):
        told = " ".join(finished.err.split())
        assert finished.err.count("no such queue") == 1
        assert "failed: policy failing, replication 1 and 39 other runs: " in told
