"""Mistakes of people who are new to the command line: one line each that says what is allowed or was probably meant."""

from pathlib import Path

import pytest

from clustermodel import Study, synthetic_workload
from clustermodel.cli.main import main
from clustermodel.errors import did_you_mean

SWF = """\
; MaxProcs: 4
1 0 -1 10 2 -1 -1 2 20 -1 1 1 1 1 1 1 -1 -1
2 5 -1 10 2 -1 -1 2 20 -1 1 1 1 1 1 1 -1 -1
"""
TABLE = "id,arrival,runtime,procs\n1,0,10,2\n2,5,10,3\n"
JOB = '{"submit": 0, "nodes": 2, "run": 10}'
NOT_JSON = "it is JSON, of which the output of sacct --json is read, and no other; write the jobs as a CSV table, whose columns"
NO_SCRIPT = "neither a Python script nor a scenario file (.toml); clustermodel run --trace {0} simulates a trace"
TO_SAY = (
    "it is no trace, but looks like a table; say what its columns are: --columns submit_s=COLUMN,run_s=COLUMN,nodes=COLUMN; "
    "there are id, arrival, runtime, procs"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, with a trace without waits, a table, and jobs in JSON."""
    for name in ("KTH.swf", "KTH"):
        (tmp_path / name).write_text(SWF)
    for name, text in {"jobs.json": f"[{JOB}, {JOB}]", "jobs.jsonl": f"{JOB}\n{JOB}\n", "pretty.json": f"[\n {JOB}\n]"}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "jobs.csv").write_text(TABLE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def complaint(capsys: pytest.CaptureFixture[str], arguments: str) -> str:
    with pytest.raises(SystemExit) as end:
        main(arguments.split())
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line.removeprefix("clustermodel: error: ")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("typed", "message"),
    [
        *((f"run {name}", f"{name}: {NO_SCRIPT.format(name)}") for name in ("KTH.swf", "KTH", "no.swf.gz", "jobs.csv")),
        ("sweep KTH.swf --out x", f"KTH.swf: {NO_SCRIPT.format('KTH.swf')}"),
        ("whatif", "--trace: no log is given: clustermodel whatif --trace jobs.sacct"),
        ("whatif --policy easy", "--trace: no log is given: clustermodel whatif --trace jobs.sacct"),
        ("whatif KTH.swf", "KTH.swf: a log is given with --trace: clustermodel whatif --trace KTH.swf"),
        ("whatif --policy easy KTH", "KTH: a log is given with --trace: clustermodel whatif --trace KTH"),
        (
            "KTH.swf",
            "KTH.swf: is no command; clustermodel run --trace KTH.swf simulates a trace, clustermodel trace info KTH.swf",
        ),
        (
            "trace KTH",
            "KTH: is no command; clustermodel run --trace KTH simulates a trace, clustermodel trace info KTH shows it",
        ),
        ("sweep study.py", "Missing option '--out': Directory of the results"),
        ("run --trace jobs.csv", f"jobs.csv: {TO_SAY}"),
        ("whatif --trace jobs.csv", f"jobs.csv: {TO_SAY}"),
        ("trace info jobs.csv", f"jobs.csv: {TO_SAY}"),
        ("run --trace jobs.json", f"jobs.json: {NOT_JSON}"),
        ("trace info jobs.jsonl", f"jobs.jsonl: {NOT_JSON}"),
        ("whatif --trace pretty.json", f"pretty.json: {NOT_JSON}"),
        (
            "whatif --trace KTH.swf",
            "whatif: KTH has no recorded waits (SWF field 3; wait_s or start_s of --columns; of your reader: ",
        ),
        ("run --policy bgs-5", "policy: 'bgs-5' is unknown (did you mean 'bgs:mpl=5'?); known are fcfs, "),
        ("run --policy mbgs3", "policy: 'mbgs3' is unknown (did you mean 'mbgs:mpl=3'?); known are fcfs, "),
        ("run --policy BGS-5", "policy: 'BGS-5' is unknown (did you mean 'bgs:mpl=5'?); known are fcfs, "),
        ("run --policy gs:2", "policy gs: '2' is not allowed (did you mean 'gs:mpl=2'?); write key=value,key=value"),
        ("run --policy bf-5", "policy: 'bf-5' is unknown (did you mean 'bf'?); known are fcfs, "),
        (
            "run --policy sjf",
            "policy: 'sjf' is unknown (did you mean 'easy:backfill_order=shortest' or 'srtf'?); known are fcfs",
        ),
        (
            "run --policy easy-sjf",
            "policy: 'easy-sjf' is unknown (did you mean 'easy:backfill_order=shortest'?); known are fcfs",
        ),
        ("run --seed abc", "Invalid value for '--seed': 'abc' is not a whole number"),
        ("run --seed -1", "Invalid value for '--seed': -1 is not in the range x>=0."),
        ("run --jobs 1e3", "Invalid value for '--jobs': '1e3' is not a whole number"),
        ("run --mpl x", "Invalid value for '--mpl': 'x' is not a whole number"),
        ("run --quantum 10m", "Invalid value for '--quantum': '10m' is not a number"),
        ("sweep s.py --out x --run-timeout 0", "Invalid value for '--run-timeout': 0.0 is not in the range x>0."),
    ],
)
def test_one_line_says_what_was_meant(typed: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert complaint(capsys, typed).startswith(message)


def test_measures_are_named_that_contain_the_word(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workload = synthetic_workload(jobs=3, nodes=8)
    Study.grid(name="s", workloads={"w": workload}, policies=["fcfs"]).run(folder / "out", workers=1)
    for measured in ("wait", "wait --runs", "wait --json"):
        assert complaint(capsys, f"results out --measure {measured}").endswith(
            "there is no column 'wait' (did you mean 'mean_wait_s', 'median_wait_s' or 'p95_wait_s'?)"
        )


def test_near_names() -> None:
    names = ["mean_wait_s", "median_wait_s", "load", "kappa"]
    assert did_you_mean("lod", names) == " (did you mean 'load'?)"
    assert did_you_mean("WAIT", names) == " (did you mean 'mean_wait_s' or 'median_wait_s'?)"
    assert did_you_mean("pp", names) == did_you_mean("x" * 10_000, names) == did_you_mean("zebra", names) == ""
