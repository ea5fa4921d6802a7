"""``clustermodel results``: means with intervals by factor, single trials, JSON, exports; in a terminal of 80 columns."""

import json
import math
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from clustermodel import ContextSwitch, Machine, Scenario, Store, Study, crossover, sweep, synthetic_workload
from clustermodel.figures.tables import frame_table, study_notes
from clustermodel.sim import compiled
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


def plain(finished: Finished) -> pd.DataFrame:
    return pd.read_csv(StringIO(str(finished.out)), sep="\t")


def test_means_with_intervals_are_printed_for_each_point(command_line: Command, directory: Path) -> None:
    finished = command_line("results", directory, "--measure", "mean_wait_s", "--measure", "never")
    assert finished.code == 0
    assert finished.err.splitlines()[-1] == "0 pending, 12 done, 0 failed"
    rows = plain(finished)
    assert list(rows) == ["load", "policy", "mean_wait_s", "mean_wait_s_half", "never", "never_half", "replications"]
    with Store.read(directory) as store:
        table = store.table()
    assert list(zip(rows["load"], rows["policy"], strict=True)) == [(0.5, "fcfs"), (0.5, "easy"), (0.9, "fcfs"), (0.9, "easy")]
    for row in rows.itertuples():
        expected = table.interval("mean_wait_s", load=row.load, policy=row.policy)
        assert (row.mean_wait_s, row.mean_wait_s_half) == pytest.approx((expected.mean, expected.half), rel=1e-9)
        assert (math.isnan(row.never), row.replications) == (True, 3)


@pytest.mark.parametrize("columns", [80, 120, 160])
def test_on_a_terminal_every_measure_is_shown(terminal: Command, directory: Path, columns: int) -> None:
    finished = terminal("results", directory, columns=columns)
    lines = finished.out.splitlines()
    assert "…" not in finished.out
    assert max(map(len, lines)) <= columns
    with Store.read(directory) as store:
        table = store.table()
    shown = " ".join(finished.out.split())
    for words in ("bounded", "response", "wait", "utilization", "loss of", "never", "runs"):
        assert words in shown
    interval = table.interval("utilization", load=0.9, policy="easy")
    assert f"{100 * interval.mean:.0f} ± {100 * interval.half:.0f}" in finished.out
    assert all(line.index("±") == line.index("±") for at, line in enumerate(lines) if "±" in line)
    ascii_only = terminal("results", directory, columns=columns, encoding="ascii").out
    assert ascii_only.isascii()
    assert " +- " in ascii_only


def test_a_pipe_has_the_overheads_too_and_one_format_at_any_width(
    command_line: Command, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = []
    for columns in ("40", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        outputs.append(command_line("results", directory).out)
    assert outputs[0] == outputs[1]
    assert outputs[0].isascii()
    names = outputs[0].splitlines()[0].split("\t")
    assert {"context_switch_share", "checkpoint_share_half", "blocked_share", "lost_share"} <= set(names)
    assert names[:4] == ["load", "policy", "never", "never_half"]


def test_overheads_are_shown_where_there_are_any(terminal: Command, directory: Path, tmp_path: Path) -> None:
    def gangs(policy: str, seed: int) -> Scenario:
        jobs = synthetic_workload(jobs=60, nodes=32, load=0.9, seed=seed)
        machine = Machine(nodes=32, context_switch=ContextSwitch(fraction=0.05))
        return Scenario(machine=machine, workload=jobs, policy=policy, seed=seed)

    serial(Study(name="g", factors={"policy": ["bf", "bgs"]}, scenario=gangs, replications=2), tmp_path)
    assert "context" in terminal("results", tmp_path).out
    assert "context" in terminal("results", tmp_path, "--runs").out
    assert "context" not in terminal("results", directory).out


def test_a_table_of_pandas_is_shown_whole() -> None:
    frame = pd.DataFrame({"policy": ["easy", "bgs"], "fits": [True, None], "x": [0.12345, float("nan")], "n": [1, 20_000]})
    table = frame_table(frame, "t")
    assert [column.heading for column in table.keys] == ["policy", "fits"]
    assert [column.cells for column in table.groups[0]] == [["0.1235", "-"], ["1", "20,000"]]
    assert table.plain_text().splitlines()[2] == "bgs\tnan\tnan\t20000"
    indexed = frame_table(frame.set_index(["policy"]), "t")
    assert [column.heading for column in indexed.keys] == ["policy"]
    texts = frame_table(pd.DataFrame({"a": ["x"], "b": ["1 ± 2"]}), "t")
    assert [column.number for column in (*texts.keys, *texts.groups[0])] == [False, True]


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
    rows = plain(finished)
    assert list(rows)[:4] == ["load", "policy", "replication", "utilization"]
    assert rows["replication"].tolist()[:4] == [1, 2, 3, 1]
    assert rows["policy"].tolist()[:4] == ["fcfs"] * 3 + ["easy"]
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


def test_notes_on_the_input_of_a_study(command_line: Command, tmp_path: Path) -> None:
    serial(study(factors={"load": [0.1, 1.5], "policy": ["fcfs", "easy"]}, replications=1), tmp_path)
    notes = [line for line in str(command_line("results", tmp_path).err).splitlines() if line.startswith("note: ")]
    (heavy,) = notes
    with Store.read(tmp_path) as store:
        table = store.table()
    load = table.frame["load"].max()
    assert heavy.startswith(f"note: the offered load is {load:.3g}: more work arrives than 32 processors can do")
    assert heavy.endswith("; give more nodes, or more time between arrivals")  # without options of another command
    light = study_notes(table.at(load=0.1))
    assert all("offered load is" not in note.fact for note in light)


def test_the_slow_mode_with_nothing_to_simulate_is_one_line_of_a_sweep(
    command_line: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "LONG_S", math.inf)  # no advice on a busy machine
    script = tmp_path / "study.py"
    script.write_text(
        "from clustermodel import Machine, Scenario, Study, synthetic_workload\n"
        "def make(policy, seed):\n"
        "    jobs = synthetic_workload(jobs=10, nodes=32, seed=seed)\n"
        "    return Scenario(machine=Machine(nodes=32), workload=jobs, policy=policy, seed=seed, fidelity='node')\n"
        "study = Study(name='s', factors={'policy': ['fcfs', 'easy']}, scenario=make, replications=2)\n"
    )
    for workers in ("1", "2"):
        err = str(command_line("sweep", script, "--out", tmp_path / workers, "--workers", workers).err)
        assert "Warning" not in err
        assert err.splitlines()[1:] == [
            "fidelity node: no gang shared its nodes in time under easy, fcfs; there was nothing to play, "
            "and the result is that of fidelity fast"
        ]
    with pytest.warns(UserWarning, match="no gang shared its nodes in time under easy, fcfs; "):
        sweep(script, tmp_path / "python", workers=1)
