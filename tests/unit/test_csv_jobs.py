"""Jobs from tables in text files: the mapping of columns, units, the workloads of Zhao et al. 2022, and malformed lines."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clustermodel import Scenario, SpecificationError, TraceError, read_csv, read_trace
from clustermodel.logs.muri import read_muri
from tests.shared_data import gpu_workload

MURI = """job_id,num_gpu,submit_time,iterations,model_name,iteration_time
0,1,0,1000,dqn,200
1,16,1500,2000,a2c,100.5
2,3,1500,10,unknown,1000
"""
PLAIN = """when,gpus,hours,who,partition,GB
0,4,2,7,a,1024

60000,1,0.5,,b,
"""
COLUMNS = {"submit_s": "when", "nodes": "gpus", "run_s": "hours", "user": "who", "memory_gib": "GB", "partition": "partition"}
UNITS = {"submit_s": "ms", "run_s": "h", "memory_gib": "MiB"}


@pytest.fixture
def muri(tmp_path: Path) -> Path:
    (path := tmp_path / "jobs.csv").write_text(MURI)
    return path


def test_muri(muri: Path) -> None:
    workload = read_trace(muri)
    assert workload.machine_nodes == 64
    assert workload.frame[["job", "submit_s", "nodes", "run_s", "estimate_s", "restart_s"]].to_numpy().tolist() == [
        [0, 0, 1, 203, 203, 5],
        [1, 1.5, 16, 204.015, 204.015, 46],
        [2, 1.5, 3, 10.15, 10.15, 10],
    ]
    assert read_trace(muri, format="muri") == read_muri(muri) == workload


def test_a_scenario_file_names_the_workload(muri: Path, tmp_path: Path) -> None:
    scenario = Scenario(workload=read_trace(muri), policy="srtf")
    scenario.to_toml(tmp_path / "one.toml")
    assert Scenario.from_toml(tmp_path / "one.toml") == scenario


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,0,5,1,dqn,3", "num_gpu: '0' is not allowed; it must be a whole number >= 1"),
        ("1,x,5,1,dqn,3", "num_gpu: 'x' is not allowed"),
        ("1,1,-5,1,dqn,3", "submit_time: '-5' is not allowed; it must be a whole number >= 0"),
        ("1,1,5,1,dqn,0", "iteration_time: '0' is not allowed; it must be a number > 0"),
        ("1,1,5,1,dqn,nan", "iteration_time: 'nan' is not allowed"),
        ("0,1,5,1,dqn,3", "job_id: '0' is not allowed; another line has the same; numbers must be unique"),
        ("1,1,5", "the line has 3 fields; the header has 6"),
        ("1,1,5,9000000000000000,dqn,9e15", "iterations: '9000000000000000' is not allowed; the job takes longer"),
    ],
)
def test_malformed_lines_of_muri(muri: Path, line: str, message: str) -> None:
    muri.write_text("\n".join([*MURI.splitlines()[:2], line]))
    with pytest.raises(TraceError) as refused:
        read_muri(muri)
    assert str(refused.value).startswith(f"{muri}:3: {message}")


def test_a_workload_of_muri_without_jobs(muri: Path) -> None:
    muri.write_text(MURI.splitlines()[0])
    with pytest.raises(TraceError, match="it has no jobs"):
        read_muri(muri)
    muri.write_text("")
    with pytest.raises(TraceError, match=r"jobs.csv:1: there is no column 'job_id'; there are none"):
        read_muri(muri)


def test_columns_and_units(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv.gz"
    path.write_bytes(gzip.compress(PLAIN.encode()))
    workload = read_csv(path, columns=COLUMNS, units=UNITS, machine_nodes=8)
    columns = ["job", "submit_s", "nodes", "run_s", "user"]
    assert workload.frame[columns].to_numpy().tolist() == [[1, 0, 4, 7200, 7], [2, 60, 1, 1800, -1]]
    assert workload.frame["memory_gib"].tolist()[0] == 1
    assert list(workload.frame["partition"]) == ["a", "b"]
    assert (workload.name, workload.machine_nodes) == ("jobs.csv.gz", 8)
    assert read_trace(path, columns=COLUMNS, units=UNITS).frame.equals(workload.frame)


def test_units_of_columns_on_the_command_line(command_line: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(PLAIN)
    columns = ("--columns", "submit_s=when,nodes=gpus,run_s=hours")
    facts = json.loads(command_line("trace", "info", path, "--json", *columns, "--units", "submit_s=ms,run_s=h").out)
    assert (facts["span_s"], facts["run_s"]["p100"]) == (60, 7200)
    refused = command_line("run", "--trace", path, "--units", "run_s=h")
    assert refused.err.endswith("--units: they are those of a CSV table; give its columns too (--columns)\n")


def test_the_generic_reader_reads_what_muri_reads() -> None:
    path = gpu_workload("trace3")
    columns = {"job": "job_id", "submit_s": "submit_time", "nodes": "num_gpu", "run_s": "duration"}
    workload = read_csv(path, columns=columns, units={"submit_s": "ms", "run_s": "ms"})
    ours = read_muri(path)
    assert workload.frame[["job", "submit_s", "nodes"]].equals(ours.frame[["job", "submit_s", "nodes"]])
    assert workload.frame["run_s"].to_numpy() == pytest.approx(ours.frame["run_s"].to_numpy() / 1.015, abs=2)


@pytest.mark.parametrize(
    ("columns", "units", "message"),
    [
        ({"when": "when"}, {}, "read_csv: columns: 'when' is not known"),
        ({"nodes": "gpus"}, {"run_s": "h"}, "read_csv: units: 'run_s' is not among the columns"),
        ({"nodes": "gpus"}, {"nodes": "h"}, "read_csv: units: 'nodes' has no unit"),
        ({"run_s": "hours"}, {"run_s": "weeks"}, "read_csv: units: run_s: 'weeks' is not allowed"),
        ({"nodes": "gpus"}, {}, "column 'submit_s' is missing"),
    ],
)
def test_mappings_that_are_refused(tmp_path: Path, columns: dict[str, str], units: dict[str, str], message: str) -> None:
    (path := tmp_path / "jobs.csv").write_text(PLAIN)
    with pytest.raises(SpecificationError, match=message):
        read_csv(path, columns=columns, units=units)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0,4,2,", "0,four,2,", ":2: gpus: 'four' is not allowed; it must be a number"),
        ("60000,1,", "60000,1.5,", ":4: nodes: 1.5 is not a whole number"),
        ("0,4,2,", "0,4,-2,", ":2: run_s: -7200.0 is not allowed"),
        ("0,4,2,", "0,4,,", ":2: run_s:"),
        ("when", "then", ":1: there is no column 'when' (did you mean 'then'?)"),
    ],
)
def test_values_that_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    (path := tmp_path / "jobs.csv").write_text(PLAIN.replace(old, new, 1))
    with pytest.raises(TraceError) as refused:
        read_csv(path, columns=COLUMNS, units=UNITS)
    assert str(refused.value).startswith(f"{path}{message}")


def test_the_command_line(muri: Path, command_line: Callable[..., Any]) -> None:
    options = ["--policy", "srtf", "--policy", "las", "--restart-charge", "every-round", "--round", "60", "--json"]
    size = ["--nodes", "4", "--gpus-per-node", "8", "--allocation", "consolidate"]
    rows = json.loads(command_line("run", "--trace", muri, "--format", "muri", *size, *options).out)
    # 0 pays 5 s in each of 4 rounds.  1 and 2 wait until 60 s: 1 executes for 14 s of each of 15 rounds, 2 pays 10 s once.
    assert [row["mean_response_s"] for row in rows] == pytest.approx(
        [(203 + 20 + 58.5 + 14 * 60 + 46 + 8.015 + 58.5 + 20.15) / 3] * 2
    )


def test_a_format_that_is_not_known(muri: Path) -> None:
    with pytest.raises(SpecificationError, match="--format: 'csv' is not allowed"):
        read_trace(muri, format="csv")


@pytest.mark.parametrize("separator", [";", "\t"])
def test_columns_that_semicolons_or_tabs_separate(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("a,b,c\n0,2,10\n5,3,20\n".replace(",", separator))
    assert read_csv(path, columns={"submit_s": "a", "nodes": "b", "run_s": "c"}).column("nodes").tolist() == [2, 3]
