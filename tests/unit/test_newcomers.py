"""Mistakes of people who are new to the command line: one line each that says what is allowed or was probably meant."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import clustermodel as cm
from clustermodel import Study, sweep, synthetic_workload
from clustermodel.cli.main import main
from clustermodel.errors import did_you_mean, number_meant
from clustermodel.policies.easy import Easy

SWF = """\
; MaxProcs: 4
1 0 -1 10 2 -1 -1 2 20 -1 1 1 1 1 1 1 -1 -1
2 5 -1 10 2 -1 -1 2 20 -1 1 1 1 1 1 1 -1 -1
"""
TABLE = "id,arrival,runtime,procs\n1,0,10,2\n2,5,10,3\n"
JOB = '{"submit": 0, "nodes": 2, "run": 10}'
NOT_JSON = (
    "it is JSON, of which the output of sacct --json and workloads of Batsim are read, and no other; write the jobs as a CSV "
    "table, whose columns"
)
NO_SCRIPT = "neither a Python script nor a scenario file (.toml); clustermodel run --trace {0} simulates a trace"
NO_STUDY = (
    "defines neither `study` (a Study, or a function that returns one) nor `scenarios` (an iterable of Scenario, or a function "
    "of none)"
)
SCENARIO = """\
from clustermodel import Machine, Scenario, Study, synthetic_workload
def scenario(policy, seed):
    return Scenario(machine=Machine(nodes=4), workload=synthetic_workload(jobs=9, nodes=4, seed=seed), policy=policy)
"""
STUDY = "study = Study(name='s', scenario=scenario, factors={'policy': ['easy']})"
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
    (tmp_path / "kth.toml").write_text("seed = 1\npolicy = easy\n")
    for name, lines in {
        "scenario": "", "study": STUDY, "misnamed": STUDY.replace("study", "stduy"), "function": "study = scenario",
    }.items():  # fmt: skip
        (tmp_path / f"{name}.py").write_text(f"{SCENARIO}{lines}\n")
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
        ("run --policy bgs-5", "policy: 'bgs-5' is unknown (did you mean 'bgs:mpl=5'?); 'clustermodel policies' lists all"),
        ("run --policy mbgs3", "policy: 'mbgs3' is unknown (did you mean 'mbgs:mpl=3'?); 'clustermodel policies' lists all"),
        ("run --policy BGS-5", "policy: 'BGS-5' is unknown (did you mean 'bgs:mpl=5'?); 'clustermodel policies' lists all"),
        ("run --policy gs:2", "policy gs: '2' is not allowed (did you mean 'gs:mpl=2'?); write key=value,key=value"),
        ("run --policy bf-5", "policy: 'bf-5' is unknown (did you mean 'bf'?); 'clustermodel policies' lists all"),
        (
            "run --policy sjf",
            "policy: 'sjf' is unknown (did you mean 'easy:backfill_order=shortest' or 'srtf'?)",
        ),
        (
            "run --policy easy-sjf",
            "policy: 'easy-sjf' is unknown (did you mean 'easy:backfill_order=shortest'?)",
        ),
        ("run --seed abc", "--seed: 'abc' is not a whole number; it must be >= 0"),
        ("run --seed -1", "--seed: -1 is not allowed; it must be >= 0"),
        ("run --jobs 1e3", "--jobs: '1e3' is not a whole number (did you mean 1000?); it must be >= 1 and <= 1,000,000"),
        ("run --mpl x", "--mpl: 'x' is not a whole number"),
        ("run --quantum 10m", "--quantum: '10m' is not a number"),
        ("run --nodes 128n", "--nodes: '128n' is not a whole number"),
        ("run --node-mtbf 1d", "--node-mtbf: '1d' is not a number (did you mean 86400?)"),
        (
            "run --context-switch 10%",
            "--context-switch: '10%' is not a number (did you mean 0.1?); it must be a fraction "
            "of the time slice, as 0.02, or seconds, as 2s",
        ),
        ("run --malleable 30%", "malleable: share: '30%' is not allowed (did you mean 0.3?); it must be a number"),
        (
            "run --reservation 0-6,start_s=1h,end_s=2h",
            "reservation: start_s: '1h' is not allowed (did you mean 3600?); it must be a number of seconds",
        ),
        (
            "run --set machine.time_slicing.quantum_s=60s",
            "--set: machine.time_slicing.quantum_s: '60s' is not a number (did you mean 60?); it must be a finite number",
        ),
        ("run --set quantum_s=60", "--set: quantum_s: unknown key (did you mean 'machine.time_slicing.quantum_s'?); known"),
        ("run --set nodes=64", "--set: nodes: unknown key (did you mean 'machine.nodes'?); known are workload, policy, "),
        ("run --fidelity slow", "--fidelity: 'slow' is not allowed; it must be one of fast, node"),
        ("run --allocation lowset", "--allocation: 'lowset' is not allowed (did you mean 'lowest'?); it must be one of any, "),
        ("run --policy easy,fcfs", "policy: 'easy,fcfs' is unknown (did you mean 'easy' and 'fcfs', each by itself?)"),
        (
            "run --policy easy-backfill",
            "policy: 'easy-backfill' is unknown (did you mean 'easy'?)",
        ),
        ("run --policy bgs:mpl", "policy bgs: 'mpl' is not allowed; write mpl=value"),
        (
            "run --policy mine.Greedy",
            "policy: 'mine.Greedy' is unknown (did you mean 'mine:Greedy'?)",
        ),
        (
            "run --by user,queue",
            "--by: 'user,queue' is not allowed (did you mean 'user' and 'queue', each by itself?)",
        ),
        (
            "run --checkpoint-interval 1h",
            "--checkpoint-interval: '1h' is not a number of seconds, 'young', 'daly' or 'own' (did ",
        ),
        (
            "run --checkpoint-interval dayl",
            "--checkpoint-interval: 'dayl' is not a number of seconds, 'young', 'daly' or 'own' (",
        ),
        ("run --resample 7d", "--resample: '7d' is not 'weeks', 'users' or a number of seconds above 0 (did you mean 604800?)"),
        ("run --resample week", "--resample: 'week' is not 'weeks', 'users' or a number of seconds above 0 (did you mean 'w"),
        (
            "run --estimates perfect",
            "--estimates: 'perfect' is not 'user', 'run-time' or 'phi:VALUE' with a value from 0 to 1, as phi:0.2 (did you "
            "mean 'run-time'?)",
        ),
        ("run --power 350", "--power: '350' is not allowed; write busy=WATTS,idle=WATTS"),
        ("run --status completed", "--status: 'completed' is not a status of SWF: 0 failed, 1 completed, 5 cancelled"),
        ("run --trace KTH.swf KTH.swf", f"KTH.swf: {NO_SCRIPT.format('KTH.swf')}"),
        ("run KTH.swf KTH", f"KTH.swf: {NO_SCRIPT.format('KTH.swf')}"),
        ("run --trace KTH.swf --columns submit_s=arrival", "--columns: KTH.swf is an SWF file; --columns is for CSV tables"),
        (
            "run --trace KTH.swf --format csv",
            "--format: 'csv' is not allowed; it must be one of pbs, lsf, sge, sacct, muri, batsim, swf; --c",
        ),
        (
            "run --trace jobs.csv --columns arrival=submit_s,runtime=run_s,procs=nodes",
            "read_csv: columns: 'arrival' is not known (did you mean submit_s=arrival?); it must be one of submit_s, ",
        ),
        ("run --trace study.py", "study.py: is a Python script, not a trace; clustermodel run study.py runs its scenarios"),
        ("run study.py", "study.py: defines a study; run it with: clustermodel sweep study.py --out DIRECTORY"),
        ("sweep kth.toml --out x", "kth.toml: is a scenario file, not a Python script: clustermodel run kth.toml"),
        ("run kth.toml", "kth.toml: is not TOML: Invalid value (at line 2, column 10), in 'policy = easy'"),
        ("sweep misnamed.py --out x", f"misnamed.py: {NO_STUDY}; `stduy` is a Study: call it `study`"),
        ("sweep function.py --out x", "function.py: `study` needs a value of 'policy': --set policy=VALUE"),
        (
            "sweep scenario.py --out x",
            f"scenario.py: {NO_STUDY}; `scenario` is a function of policy, seed, which a study calls: study = Study(name=...",
        ),
        ("trace info", "FILE is missing: clustermodel trace info FILE"),
        (
            "run --policy las:thresholds=3250,7200",
            "policy las: '7200' is not allowed (did you mean thresholds=3250/7200?); write key=value,key=value",
        ),
        ("run --mpl 2 --jobs 9 --mpl 5", "--mpl is given more than once; it takes one value"),
        ("whatif --nodes 4 --trace KTH --nodes 5", "--nodes is given more than once; it takes one value"),
        ("sweep s.py --out x --run-timeout 0", "--run-timeout: 0.0 is not allowed; it must be > 0"),
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


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.parquet"])
def test_a_directory_of_jobs_is_not_called_like_a_file(folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    stream = ["--trace", "KTH.swf", "--stream"] if name.endswith("parquet") else []
    with pytest.raises(SystemExit) as end:
        main(["run", *stream, f"--jobs-{Path(name).suffix[1:]}", name])
    assert end.value.code == 1
    assert f"{name}: is the name of a file; it must be a directory, for a file POLICY" in capsys.readouterr().err
    assert not (folder / name).exists()


def study_table() -> cm.StudyTable:
    frame = pd.DataFrame(
        {
            "run": list("abcd"),
            "policy": ["easy", "easy", "fcfs", "fcfs"],
            "load": [0.5, 0.9] * 2,
            "replication": 1,
            "kappa": 0.1,
        }
    )
    return cm.StudyTable(frame, ["policy", "load"], "s")


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda _: study_table().interval("kappa", policy="esy"), "policy esy (did you mean 'easy'?); there are easy, fcfs"),
        (lambda _: study_table().at(load=[0.5, 0.7]).at(load=0.7), "no finished trial has load 0.7; there are 0.5"),
        (
            lambda _: study_table().differences("kappa", "policy", "esy"),
            "'esy' is not there (did you mean 'easy'?); there are ",
        ),
        (lambda _: study_table().means(["kappa"]), "['kappa'] is not allowed; it must be the name of a column"),  # type: ignore[arg-type]
        (
            lambda _: study_table().plot.heat_map("kappa", x="load", y="policy", pannels="a"),
            "'pannels' is no factor; there",
        ),
        (
            lambda _: study_table().plot.winners("kappa", x="load", y="policy"),
            "y: 'policy' is the factor compared; it must be ",
        ),
        (lambda _: study_table().plot.curves(y="kappa", x="load", by=["policy"]), "by: ['policy'] is not allowed; it must be"),
        (lambda _: study_table().plot.curves(y="kappa", x="policy"), "bars(x='policy') draws texts"),
        (
            lambda jobs: jobs.column("wait_s"),
            "column: 'wait_s' is not allowed (did you mean 'wait'?)",
        ),
        (lambda _: cm.Workload("jobs.swf"), "rows: 'jobs.swf' is not allowed; a file must be read first, as by read_swf(path)"),  # type: ignore[arg-type]
        (lambda jobs: cm.Scenario(workload=jobs, policy="easy", site="s.toml"), "it must be a Site, as Site.from_toml(path)"),  # type: ignore[arg-type]
        (lambda _: cm.comparison_table([]), "runs: no result is given; a table compares at least one"),
        (lambda jobs: jobs.scaled(2), "Workload.scaled: 2 is not allowed; it must be a LoadScale, as LoadScale(size=2)"),
        (lambda jobs: jobs.select({"users": [1]}), "it must be a JobFilter, as JobFilter(nodes=(1, 8))"),
        (
            lambda _: cm.read_csv("jobs.csv", columns="arrival"),
            "read_csv: columns: 'arrival' is not allowed; it must be a dict",
        ),  # type: ignore[arg-type]
        (lambda _: cm.StudyTable.read_csv("no.csv"), "no.csv: cannot be read: No such file or directory"),
        (lambda jobs: cm.Scenario(workload=jobs, policy=Easy), "it must be an object of the class, as Easy()"),
        (lambda jobs: cm.Scenario(workload=jobs, policy=["easy"]), "a scenario has one policy; make a scenario for each"),
    ],
)
def test_in_python_too(use: Callable[[Any], object], message: str) -> None:
    with pytest.raises(cm.SpecificationError) as refused:
        use(synthetic_workload(jobs=3, nodes=8))
    assert message in str(refused.value)


def test_a_name_that_the_package_does_not_have() -> None:
    with pytest.raises(AttributeError, match=r"^module .* has no attribute 'Scenarios' \(did you mean 'Scenario'\?\)$"):
        cm.Scenarios  # noqa: B018


def test_a_single_result_is_compared_with_none() -> None:
    result = cm.Scenario(workload=synthetic_workload(jobs=3, nodes=8), policy="easy").run()
    assert str(cm.comparison_table(result)) == str(cm.comparison_table([result]))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (STUDY.replace("}", "}, replicas=3", 1), "unexpected keyword argument 'replicas' (did you mean 'replications'?)"),
        ("machine = Machine(node=4)", "unexpected keyword argument 'node' (did you mean 'nodes'?)"),
        ("machine = Machin(nodes=4)", "NameError: name 'Machin' is not defined (did you mean 'Machine'?)"),
        ("from clustermodel import synthetic_workloads", "(did you mean 'synthetic_workload'?)"),
        ("Machine(nodes=4).node", "has no attribute 'node' (did you mean 'nodes'?)"),
        ("int(5).foo; f()", "AttributeError: 'int' object has no attribute 'foo'"),
    ],
)
def test_a_name_that_a_script_misspells(folder: Path, capsys: pytest.CaptureFixture[str], line: str, message: str) -> None:
    (folder / "s.py").write_text(f"{SCENARIO}{line}\n")
    said = complaint(capsys, "run s.py")
    assert said.startswith("s.py:4: ")
    assert said.endswith(message)


def test_an_attribute_that_a_measure_misspells(folder: Path) -> None:
    (folder / "wait.py").write_text(SCENARIO + STUDY.replace("}", "}, measures={'m': lambda run: run.summary().wait}", 1))
    ((_, failure),) = sweep(folder / "wait.py", folder / "out", workers=1).failures
    assert failure.endswith(
        "has no attribute 'wait' (did you mean 'mean_wait_s', 'mean_wait_since_eligible_s' or 'median_wait_s'?)"
    )


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("60s", "60"), ("1.5h", "5400"), ("1d", "86400"), ("350W", "350"), ("10k", "10000"), ("1,000", "1000"),
        ("1e3", "1000"), ("10 %", "0.1"), (".5min", "30"), ("4GiB", "4"),
    ],
)  # fmt: skip
def test_a_number_with_a_unit(typed: str, meant: str) -> None:
    assert number_meant(typed) == f" (did you mean {meant}?)"


@pytest.mark.parametrize(
    "typed", ["abc", "", "60", "1.5", "10m", "350w", "1D", "1d1", "1e99d", "9" * 100 + "s", "1e999s", 5, None]
)
def test_no_number_is_suggested(typed: object) -> None:
    assert number_meant(typed) == ""


def test_near_names() -> None:
    assert did_you_mean("fcfs and easy", ["fcfs", "easy"]) == " (did you mean 'fcfs'?)"
    assert did_you_mean("fcfs; easy", ["fcfs", "easy"]) == " (did you mean 'fcfs' and 'easy', each by itself?)"
    assert did_you_mean("easy-sjf", ["easy", "easy-sjf"]) == " (did you mean 'easy-sjf'?)"
    names = ["mean_wait_s", "median_wait_s", "load", "kappa"]
    assert did_you_mean("lod", names) == " (did you mean 'load'?)"
    assert did_you_mean("WAIT", names) == " (did you mean 'mean_wait_s' or 'median_wait_s'?)"
    assert did_you_mean("pp", names) == did_you_mean("x" * 10_000, names) == did_you_mean("zebra", names) == ""
