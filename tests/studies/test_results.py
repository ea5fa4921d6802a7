"""``clustermodel results``: means with intervals by factor, single trials, JSON, exports; in a terminal of 80 columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from clustermodel import Machine, Scenario, Store, Study, crossover, synthetic_workload
from clustermodel.cli.study_tables import fitting, frame_table, means_table
from tests.conftest import Finished
from tests.studies.test_sweep import serial

Command = Callable[..., Finished]


def scenario(load: float, policy: str, seed: int) -> Scenario:
    jobs = synthetic_workload(jobs=60, nodes=32, load=load, seed=seed)
    return Scenario(machine=Machine(nodes=32), workload=jobs, policy=policy, seed=seed)


def study(**fields: Any) -> Study:
    given: dict[str, Any] = {
        "name": "s",
        "factors": {"load": [0.5, 0.9], "policy": ["fcfs", "easy"]},
        "scenario": scenario,
        "measures": {"never": lambda _: None},
        "replications": 3,
    }
    return Study(**{**given, **fields})


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("results") / "out"
    serial(study(), out)
    return out


def cells(printed: str) -> list[list[str]]:
    """Return the cells of a table, row by row."""
    lines = [line.strip("│\n") for line in printed.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.split("│")] for line in lines]


def test_means_with_intervals_are_printed_for_each_point(command_line: Command, directory: Path) -> None:
    finished = command_line("results", directory, "--measure", "mean_wait_s", "--measure", "never")
    assert finished.code == 0
    assert finished.err == "0 pending, 12 done, 0 failed\n"
    rows = [
        [cell.strip() for cell in line.strip("│\n").split("│")] for line in finished.out.splitlines() if line.startswith("│")
    ]
    with Store.read(directory) as store:
        table = store.table()
    assert [row[:2] for row in rows] == [["0.5", "fcfs"], ["0.5", "easy"], ["0.9", "fcfs"], ["0.9", "easy"]]
    for row in rows:
        expected = table.interval("mean_wait_s", load=float(row[0]), policy=row[1])
        mean, half = (float(text.replace(",", "")) for text in row[2].split(" ± "))
        assert mean == pytest.approx(expected.mean, rel=1e-3)
        assert half == pytest.approx(expected.half, rel=1e-3)
        assert row[3:] == ["-", "3"]


def test_the_signs_are_below_each_other_and_numbers_on_the_right(directory: Path) -> None:
    with Store.read(directory) as store:
        table = store.table()
    shown = means_table(table, ["mean_wait_s", "never"])
    assert list(shown) == ["load", "policy", "mean_wait_s", "never", "replications"]
    assert len({len(cell) - cell.index("±") for cell in shown["mean_wait_s"]}) == 1
    justified = [column.justify for column in frame_table(shown, "t").columns]
    assert justified == ["right", "left", "right", "right", "right"]


def test_a_table_leaves_out_the_last_measures_that_do_not_fit(directory: Path) -> None:
    with Store.read(directory) as store:
        table, names = store.table(), list(store.study.shown)
    shown = means_table(table, names)
    for width in (200, 100, 80, 60, 10):
        fitted, left_out = fitting(shown, width, names)
        assert left_out == names[len(names) - len(left_out) :]
        assert [name for name in names if name in fitted] == names[: len(names) - len(left_out)]
        assert names[0] in fitted
        lines = _lines(fitted, width)
        assert max(map(len, lines)) <= width
        if width >= 60:  # no cell is folded
            assert sum(line.startswith("│") for line in lines) == len(fitted)
    assert fitting(shown, 200, names)[1] == []
    assert fitting(shown, 80, names)[1]


def _lines(frame: pd.DataFrame, width: int) -> list[str]:
    from io import StringIO

    from rich.console import Console

    console = Console(file=StringIO(), width=width)
    console.print(frame_table(frame, "t"))
    return console.file.getvalue().rstrip("\n").split("\n")  # type: ignore[attr-defined, no-any-return]


def test_json_has_a_record_for_each_point_with_numbers(command_line: Command, directory: Path) -> None:
    finished = command_line("results", directory, "--json", "--measure", "mean_wait_s", "--measure", "never")
    records = json.loads(finished.out)
    with Store.read(directory) as store:
        table = store.table()
    assert [list(record) for record in records] == [
        ["load", "policy", "mean_wait_s", "mean_wait_s_half", "never", "never_half", "replications"]
    ] * 4
    for record in records:
        expected = table.interval("mean_wait_s", load=record["load"], policy=record["policy"])
        assert record["mean_wait_s"] == pytest.approx(expected.mean, rel=1e-12)
        assert record["mean_wait_s_half"] == pytest.approx(expected.half, rel=1e-12)
        assert (record["never"], record["never_half"], record["replications"]) == (None, None, 3)
    record = json.loads(command_line("results", directory, "--json").out)[0]
    assert {"mean_response_s", "mean_response_s_half", "kappa_half"} <= record.keys()


def test_json_of_trials_is_the_whole_table(command_line: Command, directory: Path) -> None:
    records = json.loads(command_line("results", directory, "--runs", "--json").out)
    with Store.read(directory) as store:
        frame = store.results()
    assert [record["run"] for record in records] == frame["run"].tolist()
    assert list(records[0]) == list(frame)
    assert [record["mean_wait_s"] for record in records] == pytest.approx(frame["mean_wait_s"].tolist(), rel=1e-12)


def test_single_trials_are_printed_with_their_replications(command_line: Command, directory: Path) -> None:
    finished = command_line("results", directory, "--runs", "--measure", "utilization")
    rows = [
        [cell.strip() for cell in line.strip("│\n").split("│")] for line in finished.out.splitlines() if line.startswith("│")
    ]
    assert [row[:3] for row in rows[:4]] == [["0.5", "fcfs", str(n)] for n in (1, 2, 3)] + [["0.5", "easy", "1"]]
    assert len(rows) == 12


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--measure", "wait"], "table of s: there is no column 'wait'"),
        (["--runs", "--measure", "mean_wait"], "--measure: there is no column 'mean_wait' (did you mean 'mean_wait_s'?)"),
        (["--measure", "policy"], "table of s: policy is 'fcfs'; it must be a column of numbers"),
    ],
)
def test_a_measure_that_is_no_column_of_numbers_is_one_line(
    command_line: Command, directory: Path, arguments: list[str], line: str
) -> None:
    finished = command_line("results", directory, *arguments)
    assert finished.code == 2
    assert finished.err.startswith(f"clustermodel: error: {line}")
    assert len(finished.err.splitlines()) == 1


def test_exports_have_all_columns_and_verify_checks(command_line: Command, directory: Path, tmp_path: Path) -> None:
    csv, parquet = tmp_path / "t.csv", tmp_path / "t.parquet"
    assert command_line("results", directory, "--csv", csv, "--parquet", parquet).code == 0
    with Store.read(directory) as store:
        frame = store.results()
    pd.testing.assert_frame_equal(pd.read_parquet(parquet), frame)
    assert list(pd.read_csv(csv)) == list(frame)
    finished = command_line("results", directory, "--verify")
    assert finished.err.replace("\n", "").endswith("12 runs and 12 files are as they were written; 0 problems")


def test_a_single_replication_has_a_mean_and_no_interval(command_line: Command, tmp_path: Path) -> None:
    serial(study(replications=1), tmp_path)
    finished = command_line("results", tmp_path, "--measure", "mean_wait_s")
    assert "±" not in finished.out
    records = json.loads(command_line("results", tmp_path, "--json", "--measure", "mean_wait_s").out)
    assert [(record["mean_wait_s_half"], record["replications"]) for record in records] == [(None, 1)] * 4


def test_help_has_no_control_characters(command_line: Command) -> None:
    for arguments in (["sweep"], ["results"], ["report"], []):
        printed = command_line(*arguments, "--help").out
        assert "\b" not in printed
        assert "\\b" not in printed
    assert "\n    clustermodel sweep study.py --out results\n" in command_line("sweep", "--help").out


def test_a_sweep_prints_conclusions_and_tables_and_writes_exhibits(command_line: Command, tmp_path: Path) -> None:
    script = tmp_path / "study.py"
    script.write_text(
        "from clustermodel import Scenario, Machine, crossover, synthetic_workload\n"
        "def make(load, policy, seed):\n"
        "    jobs = synthetic_workload(jobs=60, nodes=32, load=load, seed=seed)\n"
        "    return Scenario(machine=Machine(nodes=32), workload=jobs, policy=policy, seed=seed)\n"
        "study = crossover(make, 'load', 0.5, 0.9, ['fcfs', 'easy'], 'mean_wait_s', step=0.2, replications=2, first_look=2,\n"
        "                  tables={'All waits': lambda table: table.means('mean_wait_s'),\n"
        "                          'all-waits': lambda table: table.means('mean_wait_s'), 'bad': lambda table: 1 / 0})\n"
    )
    finished = command_line("sweep", script, "--out", tmp_path / "out", "--workers", "1")
    assert finished.code == 0
    search = crossover(scenario, "load", 0.5, 0.9, ["fcfs", "easy"], "mean_wait_s", step=0.2, replications=2, first_look=2)
    assert finished.out.startswith(str(search.run(workers=1)))
    assert "All waits" in finished.out
    assert f"table bad: {script}:7: ZeroDivisionError: division by zero" in finished.err.replace("\n", "")
    folder = tmp_path / "out" / "exhibits"
    assert {"all_waits.csv", "all_waits_2.csv", "index.json"} <= {path.name for path in folder.iterdir()}
    assert json.loads((folder / "index.json").read_bytes())["tables"] == {
        "All waits": "all_waits.csv",
        "all-waits": "all_waits_2.csv",
    }
