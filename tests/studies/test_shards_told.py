"""What ``results`` says of shards that are not there, and a table of runs on several machines."""

from __future__ import annotations

from pathlib import Path

from clustermodel import Machine, Scenario, comparison_table, synthetic_workload
from tests.unit.test_cli import Command

STUDY = """
from clustermodel import Machine, Scenario, Study, synthetic_workload

def scenario(load, policy, seed):
    return Scenario(machine=Machine(nodes=8), workload=synthetic_workload(jobs=5, nodes=8, load=load, seed=seed), policy=policy)

study = Study(name="s", factors={"load": [0.5, 0.7], "policy": ["fcfs"]}, scenario=scenario)
"""


def test_a_shard_that_is_not_there_is_named(command_line: Command, tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(STUDY)
    for shard in ("1/3", "3/3"):
        command_line("sweep", tmp_path / "s.py", "--out", tmp_path / "out", "--shard", shard, "--workers", "1")
    finished = command_line("results", tmp_path / "out")
    assert finished.code == 0
    assert "without the runs of 1 shard not there: shard-2-of-3" in " ".join(finished.err.split())


def test_the_rows_of_several_machines_say_which() -> None:
    workload = synthetic_workload(jobs=5, nodes=8)
    runs = [Scenario(machine=Machine(nodes=nodes), workload=workload, policy="easy").run() for nodes in (8, 16)]
    table = comparison_table(runs)
    assert table.plain["policy"] == ["easy, 8 nodes", "easy, 16 nodes"]
    assert "several machines" in table.title
