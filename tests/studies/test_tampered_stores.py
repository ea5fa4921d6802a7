"""Stores that somebody has changed, with digests that are right: each is read, or refused in one line."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from clustermodel import SpecificationError, synthetic_workload
from clustermodel.experiment.design import PLACEMENTS, RECORDS, STATES_OVER_TIME
from clustermodel.experiment.store import RUNS, STUDY_FILE, Store
from clustermodel.experiment.study import Study
from clustermodel.report.write import write_report
from tests.conftest import refusal


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a study of two runs."""
    directory = tmp_path_factory.mktemp("sound") / "results"
    Study.grid(
        name="small",
        workloads={"jobs": lambda seed: synthetic_workload(jobs=30, seed=seed)},
        policies=["easy", "fcfs"],
        replications=1,
        job_tables="all",
    ).run(directory, workers=1)
    return directory


def write(path: Path, plain: dict[str, Any]) -> None:
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    path.write_text(json.dumps({**plain, "digest": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()}))


def content(path: Path) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(path.read_text())
    del plain["digest"]
    return plain


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("study", 3),
        ("seed", "1"),
        ("warm_up_s", None),
        ("factors", "policy"),
        ("trials", [{}]),
        ("trials.key", "../../x"),
        ("trials.point", ["easy"]),
    ],
)
def test_values_of_a_wrong_kind_are_one_line(sound: Path, tmp_path: Path, field: str, wrong: Any) -> None:
    directory = tmp_path / "results"
    shutil.copytree(sound, directory)
    plain = content(directory / STUDY_FILE)
    name, _, part = field.partition(".")
    plain[name] = [{**plain[name][0], part: wrong}] if part else wrong
    write(directory / STUDY_FILE, plain)
    assert refusal(lambda: Store.read(directory).__enter__()).startswith(f"{directory / STUDY_FILE}: damaged: ")


def test_a_run_with_values_of_a_wrong_kind_is_damaged(sound: Path, tmp_path: Path) -> None:
    directory = tmp_path / "results"
    shutil.copytree(sound, directory)
    path = next((directory / RUNS).glob("*.json"))
    write(path, {**content(path), "measured": 3})
    with Store.read(directory) as store:
        assert store.damaged() == [(path.stem, f"runs/{path.name}: measured: 3 is not allowed")]


@pytest.mark.long
@pytest.mark.parametrize("table", [RECORDS, STATES_OVER_TIME, PLACEMENTS])
@pytest.mark.parametrize("change", ["other columns", "texts", "no rows"])
def test_a_report_of_tampered_tables_is_written_or_refused(sound: Path, tmp_path: Path, table: str, change: str) -> None:
    directory = tmp_path / "results"
    shutil.copytree(sound, directory)
    for file in (directory / RUNS).glob("*.json"):
        plain = content(file)
        path = directory / table / f"{file.stem}.parquet"
        frame = pd.read_parquet(path)
        changes = {"other columns": lambda: pd.DataFrame({"x": [1]}), "texts": lambda one=frame: one.astype(str) + "x"}
        changes.get(change, lambda one=frame: one.iloc[:0])().to_parquet(path)
        plain["files"][table] = hashlib.sha256(path.read_bytes()).hexdigest()
        write(file, plain)
    line = "damaged, or written"
    try:
        write_report(directory, directory / "report.html")
    except SpecificationError as problem:
        line = str(problem)
    assert "damaged" in line
    assert "\n" not in line
