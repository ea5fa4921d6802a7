"""Directories that were damaged: what is wrong is said in one line, the rest goes on, and the same sweep mends it."""

import json
import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from clustermodel import synthetic_workload
from clustermodel.experiment.store import RUNS as RUN_FILES
from clustermodel.experiment.store import STUDY_FILE, Store
from clustermodel.experiment.study import Study
from clustermodel.experiment.worker import Outcome
from clustermodel.report.write import write_report
from tests.studies.test_sweep import all_tables, command, held, runs_of, serial, swept

pytestmark = pytest.mark.long

__all__ = ["command"]

Command = Callable[..., tuple[int, str, str]]


SCRIPT = (
    "from clustermodel import synthetic_workload\n"
    "from clustermodel.experiment.study import Study\n"
    "study = Study.grid(name='small', workloads={'jobs': lambda seed: synthetic_workload(jobs=30, seed=seed)},\n"
    "                   policies=['easy', 'fcfs'], replications=2, job_tables='all')\n"
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that nothing has happened to, with the script beside it."""
    folder = tmp_path_factory.mktemp("sound")
    (folder / "study.py").write_text(SCRIPT)
    serial(folder / "study.py", folder / "results")
    return folder


@pytest.fixture
def copy(sound: Path, tmp_path: Path) -> Path:
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    return tmp_path / "results"


def run_again(directory: Path) -> dict[str, int]:
    return swept(directory.parent / "study.py", directory)


HARM: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda content: content[: len(content) // 2],
    "empty": lambda _: b"",
    "foreign": lambda _: b"<html>404 not found</html>" * 99,
    "another table": lambda _: pd.DataFrame({"job": [1, 2], "submit_s": [0.0, 1.0]}).to_parquet(),
    "one bit": lambda content: content[:100] + bytes([content[100] ^ 4]) + content[101:],
}


@pytest.mark.parametrize(
    ("table", "harm"), [*(("records", harm) for harm in HARM), ("states", "truncated"), ("placements", "one bit")]
)
def test_damaged_files_are_named_left_out_and_made_again(
    command: Command, sound: Path, copy: Path, table: str, harm: str
) -> None:
    victim = sorted((copy / table).iterdir())[1]
    victim.write_bytes(HARM[harm](victim.read_bytes()))
    export = copy.parent / "runs.csv"
    code, _, err = command("results", copy, "--csv", export)
    assert code == 1
    assert f"damaged, and left out: run {victim.stem}: {table}/{victim.name}: not as it was written" in err.replace("\n", " ")
    assert sorted(pd.read_csv(export)["run"]) == sorted(
        path.stem for path in (sound / "results" / table).iterdir() if path.stem != victim.stem
    )
    code, _, err = command("results", "--verify", copy)
    assert (code, "3 runs and 9 files are as they were written; 1 problem" in err.replace("\n", " ")) == (1, True)
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*.parquet")}
    assert run_again(copy)["done"] == 4
    changed = {path.stem for path in before if path.stat().st_mtime_ns != before[path]}
    assert changed == {victim.stem}
    assert held(copy) == held(sound / "results")
    pd.testing.assert_frame_equal(all_tables(copy), all_tables(sound / "results"))
    assert command("results", "--verify", copy)[0] == 0


def test_a_pipe_in_the_place_of_any_file_is_replaced_by_the_same_sweep(command: Command, sound: Path, copy: Path) -> None:
    victims = [sorted((copy / name).iterdir())[place] for place, name in enumerate(("records", "runs"))]
    for victim in victims:
        victim.unlink()
        os.mkfifo(victim)
    code, _, err = command("results", copy)
    assert (code, err.replace("\n", " ").count("it is no file")) == (1, 2)
    assert run_again(copy)["done"] == 4
    assert held(copy) == held(sound / "results")
    (copy / STUDY_FILE).unlink()
    os.mkfifo(copy / STUDY_FILE)
    code, _, err = command("results", copy)
    assert (code, "there is no study here" in err) == (2, True)
    assert run_again(copy)["done"] == 4
    assert held(copy) == held(sound / "results")


EDITS: dict[str, object] = {
    "state": "failed",
    "measured": {"mean_wait_s": 1.0},
    "seconds": 2,
    "digest": "0",
    "a new one": 1,
    "all": "it is not the file of this run",
}


@pytest.mark.parametrize("field", EDITS)
def test_an_edited_file_of_a_run_is_found(command: Command, sound: Path, copy: Path, field: str) -> None:
    other, path = sorted((copy / RUN_FILES).iterdir())[1:3]
    if field == "all":
        shutil.copy(other, path)
    else:
        path.write_text(json.dumps({**json.loads(path.read_bytes()), field: EDITS[field]}))
    what = EDITS[field] if field == "all" else "not as it was written"
    for arguments in (["results", copy], ["results", "--verify", copy]):
        code, _, err = command(*arguments)
        assert code == 1
        assert f"{path.stem}: runs/{path.name}: {what}" in err.replace("\n", " ")
    assert run_again(copy)["done"] == 4
    assert held(copy) == held(sound / "results")


def test_a_lost_file_of_a_run_is_found(command: Command, sound: Path, copy: Path) -> None:
    table = sorted((copy / "states").iterdir())[0]
    content = table.read_bytes()
    table.unlink()
    code, _, err = command("results", copy)
    assert (code, f"states/{table.name}: No such file" in err.replace("\n", " ")) == (1, True)
    table.write_bytes(content)
    victim = sorted((copy / RUN_FILES).iterdir())[1]
    victim.unlink()
    code, _, err = command("results", copy)
    # Where the policies agree in the replication that is left, a note says so first.
    assert (code, err.splitlines()[-1]) == (0, "1 pending, 3 done, 0 failed")
    code, _, err = command("results", "--verify", copy)
    assert (code, f"records/{victim.stem}.parquet: belongs to no run of this study" in err.replace("\n", " ")) == (1, True)
    run_again(copy)
    assert held(copy) == held(sound / "results")


def test_an_edited_file_of_the_study_is_one_line_and_mended_by_deleting_it(command: Command, sound: Path, copy: Path) -> None:
    path = copy / STUDY_FILE
    plain = json.loads(path.read_bytes())
    path.write_text(json.dumps({**plain, "seed": plain["seed"] + 1}))
    for arguments in (["results", copy], ["results", "--verify", copy]):
        code, _, err = command(*arguments)
        assert (code, err) == (2, f"clustermodel: error: {path}: damaged: not as it was written\n")
    code, _, err = command("sweep", copy.parent / "study.py", "--out", copy, "--workers", "1")
    assert (code, err) == (
        2,
        f"clustermodel: error: {path}: damaged: not as it was written; delete it, and the same command goes on with the runs "
        "that are complete\n",
    )
    path.unlink()
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*.parquet")}
    assert run_again(copy)["done"] == 4
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert held(copy) == held(sound / "results")


@pytest.mark.parametrize("case", range(0, 40, 3))
def test_a_json_file_that_is_truncated_or_flipped_is_never_a_traceback_nor_a_wrong_result(
    command: Command, sound: Path, copy: Path, case: int
) -> None:
    rng = random.Random(case)
    victim = copy / STUDY_FILE if case % 2 else rng.choice(sorted((copy / RUN_FILES).iterdir()))
    damaged = bytearray(victim.read_bytes())
    if case < 12:
        damaged = damaged[: rng.randrange(len(damaged))]
    else:
        for _ in range(rng.choice([1, 1, 4, 64])):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    victim.write_bytes(damaged)
    export = copy.parent / "runs.csv"
    for arguments in (["results", copy, "--csv", export], ["results", "--verify", copy]):
        code, _, err = command(*arguments)
        assert code in (0, 1, 2), err
        assert "Traceback" not in err
        assert err.strip()
    if export.exists() and export.stat().st_size > 1:  # what is shown is right
        with Store.read(sound / "results") as store:
            store.results().to_csv(copy.parent / "whole.csv", index=False)
        shown, right = (set(path.read_text().splitlines()) for path in (export, copy.parent / "whole.csv"))
        assert shown <= right
    code, _, err = command("sweep", copy.parent / "study.py", "--out", copy, "--workers", "1")
    assert len([line for line in err.strip().splitlines() if not re.search("damaged, and run again: |^next: ", line)]) == 1
    if code != 0:
        assert "delete it, and the same command goes on with the runs that are complete" in err
        victim.unlink()
        run_again(copy)
    assert held(copy) == held(sound / "results")
    pd.testing.assert_frame_equal(all_tables(copy), all_tables(sound / "results"))


@pytest.mark.parametrize("table", ["records", "states"])
def test_a_report_leaves_damaged_runs_out_and_names_them(command: Command, copy: Path, table: str) -> None:
    victim = sorted((copy / table).iterdir())[1]
    victim.write_bytes(victim.read_bytes()[:100])
    code, _, err = command("report", copy)
    assert code == 1
    assert f"left out: run {victim.stem}: {table}" in err.replace("\n", " ")
    assert (copy / "report.html").is_file()
    path = copy / RUN_FILES / f"{victim.stem}.json"
    path.write_bytes(path.read_bytes()[:100])
    code, _, err = command("report", copy)
    assert (code, f"{path.stem}: runs/{path.name}: not as it was written" in err.replace("\n", " ")) == (1, True)
    (copy / STUDY_FILE).write_bytes((copy / STUDY_FILE).read_bytes()[:100])
    code, _, err = command("report", copy)
    assert (code, err) == (2, f"clustermodel: error: {copy / STUDY_FILE}: damaged: not as it was written\n")


def test_keys_are_computed_anew(command: Command, tmp_path: Path) -> None:
    """A file that was written whole, but with a key that is not its specification's."""
    study = Study.grid(name="s", workloads={"jobs": synthetic_workload(jobs=5)}, policies=["easy"])
    (run,) = runs_of(study)
    store = Store.create(tmp_path, study)
    wrong = run._replace(key="0" * 32)
    store.enter(study, [wrong])
    store.keep(wrong, Outcome())
    code, _, err = command("results", "--verify", tmp_path)
    assert (code, f"{'0' * 32}: its key is not that of its specification" in err.replace("\n", " ")) == (1, True)


def test_a_report_can_be_written_from_text_paths(copy: Path) -> None:
    assert write_report(str(copy), str(copy / "mine.html")) == []
    assert (copy / "mine.html").is_file()
