"""What ``results`` says of shards: not there, of another version, damaged; and a table of runs on several machines."""

from pathlib import Path

import pytest

from clustermodel import Machine, Scenario, comparison_table, sweep, synthetic_workload
from tests.unit.test_cli import Command

STUDY = """
from clustermodel import Machine, Scenario, Study, register_policy, synthetic_workload
from clustermodel.policies.fcfs import Fcfs
from helper import NODES

JOBS = 5

class Own(Fcfs):
    name = "own"
    depth = 1

register_policy("own", Own)

def workload(load, seed):
    return synthetic_workload(jobs=JOBS, nodes=NODES, load=load, seed=seed)

def scenario(load, policy, seed):
    return Scenario(machine=Machine(nodes=NODES), workload=workload(load, seed), policy=policy)

study = Study(name="s", factors={"load": [0.5, 0.7], "policy": ["own"]}, scenario=scenario,
              measures={"one": lambda run: 1.0}, replications=2)
"""


def shards(folder: Path, *numbers: int, of: int = 3) -> None:
    for number in numbers:
        sweep(folder / "s.py", folder / "out", shard=(number, of), workers=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.py").write_text(STUDY)
    (tmp_path / "helper.py").write_text("NODES = 8\n")
    return tmp_path


def test_a_shard_that_is_not_there_is_named(command_line: Command, folder: Path) -> None:
    shards(folder, 1, 3)
    finished = command_line("results", folder / "out")
    assert finished.code == 0
    assert "without the runs of 1 shard not there: 2/3" in " ".join(finished.err.split())


EDITS = {
    "constant": ("s.py", "JOBS = 5", "JOBS = 6"),
    "level": ("s.py", "0.7", "0.95"),
    "policy": ("s.py", "depth = 1", "depth = 2"),
    "measure": ("s.py", "1.0", "2.0"),
    "scenario": ("s.py", "policy=policy)", "policy=policy, events='one-by-one')"),
    "replications": ("s.py", "replications=2", "replications=3"),
    "imported module": ("helper.py", "NODES = 8", "NODES = 9"),
}


@pytest.mark.parametrize(("edit", "again"), [(edit, 1 + 2 * (place % 2)) for place, edit in enumerate(EDITS)])
def test_shards_of_two_versions_are_not_joined(command_line: Command, folder: Path, edit: str, again: int) -> None:
    shards(folder, 1, 2, 3)
    name, before, after = EDITS[edit]
    (folder / name).write_text((folder / name).read_text().replace(before, after))
    shards(folder, again)
    finished = command_line("results", folder / "out")
    assert (finished.code, finished.out) == (2, "")
    assert "its runs are of another version of the study than those in" in " ".join(finished.err.split())
    shards(folder, 1, 2, 3)
    assert command_line("results", folder / "out").code == 0


def test_shards_of_which_only_comments_differ_are_joined(command_line: Command, folder: Path) -> None:
    shards(folder, 1, 2)
    (folder / "s.py").write_text('"""Why?"""\n# Because.\n' + STUDY)
    shards(folder, 3)
    finished = command_line("results", folder / "out")
    assert finished.code == 0
    assert "4 done" in finished.err


@pytest.mark.parametrize("repeated", ["whole", "shard"])
def test_damaged_runs_are_named_when_they_are_run_again_and_not_after(
    command_line: Command, folder: Path, repeated: str
) -> None:
    shards(folder, 1, 2, 3)
    victim = sorted((folder / "out" / "runs").glob("*.json"))[0]
    victim.write_text(victim.read_text()[:-9])
    assert command_line("results", folder / "out").code == 1
    shard = () if repeated == "whole" else ("--shard", "1/1")
    if repeated == "shard":
        for number in (1, 2, 3):
            (folder / "out" / f"study-{number}-of-3.json").unlink()
    swept = command_line("sweep", folder / "s.py", "--out", folder / "out", "--workers", "1", *shard)
    assert f"damaged, and run again: run {victim.stem}: runs/{victim.name}: not as it was written" in " ".join(
        swept.err.split()
    )
    finished = command_line("results", folder / "out")
    assert (finished.code, "left out" in finished.err, "4 done" in finished.err) == (0, False, True)


def test_the_rows_of_several_machines_say_which() -> None:
    workload = synthetic_workload(jobs=5, nodes=8)
    runs = [Scenario(machine=Machine(nodes=nodes), workload=workload, policy="easy").run() for nodes in (8, 16)]
    table = comparison_table(runs)
    assert table.values["policy"] == ["easy, 8 nodes", "easy, 16 nodes"]
    assert "several machines" in table.title
