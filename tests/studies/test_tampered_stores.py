"""Stores that somebody has changed, with digests that are right: each is read, or refused in one line."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from clustermodel import synthetic_workload
from clustermodel.errors import ClusterModelError
from clustermodel.experiment.run_key import PLACEMENTS, RECORDS, STATES_OVER_TIME
from clustermodel.experiment.store import RUNS, STUDY_FILE, Store, read_run, read_study
from clustermodel.experiment.study import Study
from clustermodel.report.write import write_report

WRONG: tuple[Any, ...] = (None, True, "x", "../../x", -1, 10**30, 1.5e300, [], [None], [[]], {}, {"x": []}, "\x1b[2J<script>")


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


def changed(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield copies of a value of JSON in which one value below it is missing or wrong, and where."""
    places: list[tuple[Any, ...]] = []

    def visit(one: Any, place: tuple[Any, ...]) -> None:
        if place and place[0] != "specification":
            places.append(place)
        for key, inner in one.items() if isinstance(one, dict) else enumerate(one[:1]) if isinstance(one, list) else ():
            visit(inner, (*place, key))

    visit(value, ())
    for *above, last in places:
        for wrong in WRONG:
            whole = inner = copy.deepcopy(value)
            for key in above:
                inner = inner[key]
            inner[last] = wrong
            yield f"{[*above, last]} {wrong!r}", whole
        whole = inner = copy.deepcopy(value)
        for key in above:
            inner = inner[key]
        del inner[last]
        yield f"without {[*above, last]}", whole


def write(path: Path, plain: dict[str, Any]) -> None:
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    path.write_text(json.dumps({**plain, "digest": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()}))


def message(action: Callable[[], object]) -> str:
    """Return the line with which an action is refused, or an empty text; any other error is one of the test."""
    try:
        action()
    except ClusterModelError as problem:
        return str(problem)
    return ""


def read_all(directory: Path) -> None:
    with Store.read(directory) as store:
        store.states(), store.failures(), store.verify(), store.earlier(), store.seconds_per_job()
        store.results(earlier=True)
        str(store.table())


def content(path: Path) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(path.read_text())
    del plain["digest"]
    return plain


def files(directory: Path) -> list[tuple[Path, Callable[[Path], object]]]:
    """Return the file of the study and that of a run, and what reads each."""
    return [(directory / STUDY_FILE, read_study), (next((directory / RUNS).glob("*.json")), read_run)]


def test_the_reader_refuses_values_of_a_wrong_type(sound: Path, tmp_path: Path) -> None:
    directory = tmp_path / "results"
    shutil.copytree(sound, directory)
    for path, read in files(directory):
        lines = []
        for _, tampered in changed(content(path)):
            write(path, tampered)
            lines.append(message(partial(read, path)))
        assert not any("\n" in line for line in lines)
        assert sum(map(bool, lines)) > 100
    path = directory / STUDY_FILE
    plain = content(sound / STUDY_FILE)
    for name, wrong, words in (
        ("order", None, "trials[0].order: None is not allowed; it must be of the type list[float]"),
        (
            "point",
            ["easy", "jobs", 3, 4],
            "trials[0].point: ['easy', 'jobs', 3, 4] is not allowed; it must be a label for each",
        ),
        ("key", "../../x", "trials[0].key: '../../x' is not allowed; it must be 32 hexadecimal digits"),
    ):
        write(path, {**plain, "trials": [{**plain["trials"][0], name: wrong}]})
        assert message(partial(read_study, path)).startswith(f"{path}: damaged: {words}")


@pytest.mark.long
@pytest.mark.parametrize("number", [0, 1])
def test_a_tampered_store_is_read_or_refused(sound: Path, tmp_path: Path, number: int) -> None:
    """What the reader of a file refuses is refused in the same words by all commands, so that one such file is enough."""
    directory = tmp_path / "results"
    shutil.copytree(sound, directory)
    path, read = files(directory)[number]
    refused = False
    for place, (where, tampered) in enumerate(changed(content(path))):
        write(path, tampered)
        if message(partial(read, path)):
            if refused:
                continue
            refused = True
        try:
            assert "\n" not in message(partial(read_all, directory))
            if place % 7 == 0:  # it takes a second
                assert "\n" not in message(partial(write_report, directory, directory / "report.html"))
        except Exception as problem:
            raise AssertionError(where) from problem


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
    line = message(lambda: write_report(directory, directory / "report.html"))
    assert "\n" not in line
    assert "damaged" in line or not line
