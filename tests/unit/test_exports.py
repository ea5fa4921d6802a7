"""Exports of the results of a study: the whole table, or the file that was there before."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from clustermodel import Machine, synthetic_workload
from clustermodel.experiment.script import sweep
from clustermodel.experiment.study import Study
from tests.conftest import Finished

Command = Callable[..., Finished]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    jobs = {"w": synthetic_workload(jobs=20)}
    study = Study.grid(name="s", machines={"m": Machine(nodes=128)}, workloads=jobs, policies=["fcfs"])
    sweep(study, tmp_path / "study", workers=1)
    return tmp_path / "study"


@pytest.mark.parametrize("option", ["--csv", "--parquet"])
def test_an_export_that_cannot_be_finished_leaves_the_one_before(
    command_line: Command, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    path = tmp_path / "table"
    path.write_text("the one before")

    def full(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        finished = command_line("results", directory, option, path)
    assert finished.code == 1
    assert finished.err.endswith(f"clustermodel: error: {path}: cannot be written: No space left on device\n")
    assert path.read_text() == "the one before"
    assert sorted(left.name for left in tmp_path.iterdir()) == ["study", "table"]


def test_exports_are_whole(command_line: Command, directory: Path, tmp_path: Path) -> None:
    csv, parquet = tmp_path / "t.csv", tmp_path / "t.parquet"
    assert command_line("results", directory, "--csv", csv, "--parquet", parquet).code == 0
    assert pd.read_csv(csv)["jobs"].tolist() == pd.read_parquet(parquet)["jobs"].tolist() == [20]
    assert b"\r" not in csv.read_bytes()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("option", ["--csv", "--parquet"])
def test_an_export_to_a_full_disk_is_one_line(command_line: Command, directory: Path, option: str) -> None:
    finished = command_line("results", directory, option, "/dev/full")
    assert finished.code == 1
    assert finished.err.splitlines()[-1] == "clustermodel: error: /dev/full: cannot be written: No space left on device"
    assert "Traceback" not in finished.err
