"""Directories that were damaged: what is wrong is said in one line, the rest goes on, and the same sweep mends it."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from clustermodel import synthetic_workload
from clustermodel.experiment.executor import sweep
from clustermodel.experiment.run_files import TABLES
from clustermodel.experiment.run_table import LEDGER
from clustermodel.experiment.store import Store
from clustermodel.experiment.study import Study
from clustermodel.report.html import write_report
from tests.studies.test_sweep import all_tables, command, held

__all__ = ["command"]

Command = Callable[..., tuple[int, str, str]]


SCRIPT = (
    "from clustermodel import synthetic_workload\n"
    "from clustermodel.experiment.study import Study\n"
    "study = Study(name='small', workloads={'jobs': lambda seed: synthetic_workload(jobs=30, seed=seed)},\n"
    "              policies=['easy', 'fcfs'], replications=2)\n"
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that nothing has happened to, with the script beside it."""
    folder = tmp_path_factory.mktemp("sound")
    (folder / "study.py").write_text(SCRIPT)
    sweep(folder / "study.py", folder / "results")
    return folder


@pytest.fixture
def copy(sound: Path, tmp_path: Path) -> Path:
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    return tmp_path / "results"


def run_again(directory: Path) -> dict[str, int]:
    return sweep(directory.parent / "study.py", directory)


def test_a_sound_directory_is_verified(command: Command, copy: Path) -> None:
    code, _, err = command("results", "--verify", copy)
    assert (code, err.replace("\n", "")) == (0, f"{copy}: 4 runs and 12 files are as they were written; 0 problems")


def _foreign(_: bytes) -> bytes:
    return b"<html>404 not found</html>" * 99


def _other_table(_: bytes) -> bytes:
    path = Path(__file__).with_suffix(".parquet.tmp")
    pd.DataFrame({"job": [1, 2], "submit_s": [0.0, 1.0]}).to_parquet(path)
    try:
        return path.read_bytes()
    finally:
        path.unlink()


HARM: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda content: content[: len(content) // 2],
    "empty": lambda _: b"",
    "foreign": _foreign,
    "another table": _other_table,
    "one bit": lambda content: content[:100] + bytes([content[100] ^ 4]) + content[101:],
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
def test_damaged_files_are_named_left_out_and_made_again(
    command: Command, sound: Path, copy: Path, table: str, harm: Callable[[bytes], bytes]
) -> None:
    victim = sorted((copy / table).iterdir())[1]
    victim.write_bytes(harm(victim.read_bytes()))
    export = copy.parent / "runs.csv"
    code, _, err = command("results", copy, "--csv", export)
    assert code == 1
    assert f"damaged, and left out: run {victim.stem}: {table}/{victim.name}: not as it was written" in err.replace("\n", " ")
    assert sorted(pd.read_csv(export)["run"]) == sorted(
        path.stem for path in (sound / "results" / table).iterdir() if path.stem != victim.stem
    )
    code, _, err = command("report", copy)
    assert code == 1
    assert f"left out: run {victim.stem}: {table}" in err.replace("\n", " ")
    assert (copy / "report.html").is_file()
    code, _, err = command("results", "--verify", copy)
    assert (code, "3 runs and 9 files are as they were written; 1 problem" in err.replace("\n", " ")) == (1, True)
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*.parquet")}
    assert run_again(copy)["done"] == 4
    changed = {path.stem for path in before if path.stat().st_mtime_ns != before[path]}
    assert changed == {victim.stem}
    assert held(copy) == held(sound / "results")
    pd.testing.assert_frame_equal(all_tables(copy), all_tables(sound / "results"))
    assert command("results", "--verify", copy)[0] == 0


def test_a_missing_file_is_named_too(command: Command, copy: Path) -> None:
    victim = sorted((copy / "states").iterdir())[0]
    victim.unlink()
    code, _, err = command("results", copy)
    assert (code, f"states/{victim.name}: No such file" in err.replace("\n", " ")) == (1, True)


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(command: Command, copy: Path) -> None:
    victim = sorted((copy / "records").iterdir())[0]
    victim.unlink()
    os.mkfifo(victim)
    code, _, err = command("results", copy)
    assert (code, f"records/{victim.name}: it is no file" in err.replace("\n", " ")) == (1, True)


@pytest.mark.parametrize("column", ["factors", "specification", "summary", "state", "position", "jobs", "files", "seconds"])
def test_an_edited_row_is_found(command: Command, sound: Path, copy: Path, column: str) -> None:
    connection = sqlite3.connect(copy / LEDGER)
    with connection:
        key = connection.execute("SELECT key FROM runs WHERE position = 2").fetchone()[0]
        values = {"state": "'failed'", "position": "-1", "jobs": "31", "seconds": "0.5"}
        value = values.get(column, f"replace(replace({column}, '3', '4'), 'jobs', 'jabs')")
        connection.execute(f"UPDATE runs SET {column} = {value} WHERE key = ?", (key,))
    connection.close()
    for arguments in (["results", copy], ["results", "--verify", copy], ["report", copy]):
        code, _, err = command(*arguments)
        assert code == 1
        assert f"{key}: its row in the ledger is not as it was written" in err.replace("\n", " ")
    assert run_again(copy)["done"] == 4
    assert held(copy) == held(sound / "results")


def test_a_lost_row_is_found(command: Command, sound: Path, copy: Path) -> None:
    connection = sqlite3.connect(copy / LEDGER)
    with connection:
        connection.execute("DELETE FROM runs WHERE position = 1")
    connection.close()
    code, _, err = command("results", copy)
    assert (code, "damaged, and left out: 1 row of the ledger" in err.replace("\n", " ")) == (1, True)
    code, _, err = command("results", "--verify", copy)
    assert "belongs to no run of this study" in err.replace("\n", " ")
    run_again(copy)
    assert held(copy) == held(sound / "results")


@pytest.mark.parametrize("case", [pytest.param(case, marks=[pytest.mark.long] if case % 8 else []) for case in range(40)])
def test_a_ledger_that_is_truncated_or_flipped_is_never_a_traceback_nor_a_wrong_result(
    command: Command, sound: Path, copy: Path, case: int
) -> None:
    rng = random.Random(case)
    content = bytearray((copy / LEDGER).read_bytes())
    if case < 12:
        content = content[: rng.randrange(len(content))]
    else:
        for _ in range(rng.choice([1, 1, 4, 64])):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    (copy / LEDGER).write_bytes(content)
    expected = held(sound / "results")
    for arguments in (["results", copy, "--csv", copy.parent / "runs.csv"], ["report", copy], ["results", "--verify", copy]):
        code, _, err = command(*arguments)
        assert code in (0, 1, 2), err
        assert "Traceback" not in err
        assert err.strip()
    export = copy.parent / "runs.csv"
    if export.exists() and export.stat().st_size > 1:  # what is shown is right
        with Store.read(sound / "results") as store:
            whole = store.results()
        whole.to_csv(copy.parent / "whole.csv", index=False)
        shown, right = (set(path.read_text().splitlines()) for path in (export, copy.parent / "whole.csv"))
        assert shown <= right
    code, _, err = command("sweep", copy.parent / "study.py", "--out", copy, "--workers", "1")
    assert len(err.strip().splitlines()) == 1
    if code != 0:
        assert "move it away, and the same sweep runs everything again" in err
        (copy / LEDGER).unlink()
        run_again(copy)
    assert held(copy) == expected
    pd.testing.assert_frame_equal(all_tables(copy), all_tables(sound / "results"))


def test_keys_are_computed_anew(command: Command, tmp_path: Path) -> None:
    """A row that was written whole, but with a key that is not its specification's."""
    study = Study(name="s", workloads={"jobs": synthetic_workload(jobs=5)}, policies=["easy"])
    (run,) = study.runs()
    with Store.create(tmp_path, study, [run._replace(key="0" * 32)]):
        pass
    code, _, err = command("results", "--verify", tmp_path)
    assert (code, f"{'0' * 32}: its key is not that of its specification" in err.replace("\n", " ")) == (1, True)


def test_a_report_can_be_written_from_text_paths(copy: Path) -> None:
    assert write_report(str(copy), str(copy / "mine.html")) == []
    assert (copy / "mine.html").is_file()
