"""Accounting logs on the command line: ``trace import``, ``run --trace`` and ``whatif``."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from clustermodel import SpecificationError, Workload, read_pbs, read_sacct, read_swf, write_trace
from clustermodel.measure.metrics import observed_schedule
from tests.conftest import Finished

LOGS = Path(__file__).resolve().parents[1] / "logs"
Command = Callable[..., Finished]


def log_of(write: Callable[..., Path], *jobs: tuple[int, int, int, int], limit: int = 60) -> Path:
    """Write a log of jobs given by submission, wait and run time (minutes) and nodes; return its path."""

    def stamp(minutes: int) -> str:
        return f"2025-03-03T{minutes // 60:02d}:{minutes % 60:02d}:00"

    lines = []
    for number, (submit, wait, run, nodes) in enumerate(jobs, start=1):
        start = submit + wait
        times = f"{stamp(submit)}|{stamp(start)}|{stamp(start + run)}|{60 * run}"
        lines.append(f"{number}|u{number}|{times}|COMPLETED|{nodes}|{limit}")
    return write("JobID|User|Submit|Start|End|ElapsedRaw|State|AllocNodes|TimelimitRaw", *lines, name="jobs.sacct")


def test_an_import_prints_its_report_and_writes_a_trace(command_line: Command, tmp_path: Path) -> None:
    path = tmp_path / "cluster.swf"
    finished = command_line("trace", "import", LOGS / "arrays.sacct", "-o", path)
    assert finished.code == 0
    lines = finished.out.splitlines()
    assert lines[0].endswith("arrays.sacct: sacct with a header line")
    assert lines[1].startswith("10 lines: 4 jobs, 2 steps, 1 header line, 1 still waiting, 1 never started, 1 damaged line")
    assert lines[-1] == "not in the SWF file: accounts, limits of job arrays, nodes and cores together"
    assert finished.err == f"trace: {path}\n"
    trace, log = read_swf(path, waits=True), read_sacct(LOGS / "arrays.sacct")
    assert list(trace.rows()) == list(log.rows())
    assert trace.column("wait").tolist() == log.column("wait").tolist()
    assert trace.machine_nodes == log.machine_nodes
    names = {"UserMap": "1 ann\n2 bob", "Queue": "1 normal", "ExecutableMap": "1 sweep\n2 odd", "UnixStartTime": "1740988800"}
    assert {name: trace.provenance.header[name] for name in names} == names


def test_an_import_without_a_file_reports_only(command_line: Command) -> None:
    finished = command_line("trace", "import", LOGS / "torque.pbs", "--json")
    report = json.loads(finished.out)
    assert finished.code == 0
    assert report["counts"]["jobs"] == 5
    assert sum(report["counts"].values()) == report["lines"] == 18
    assert finished.err == ""


def test_fields_of_an_imported_trace(tmp_path: Path) -> None:
    path = tmp_path / "cluster.swf"
    write_trace(path, read_pbs(LOGS / "pbspro.pbs", unit="cores"))
    (line,) = (line for line in path.read_text().splitlines() if line.startswith("21 "))
    # number, submission, wait, run, allocated, -, -, -, limit, memory per core, status, user, group, executable, queue
    assert " ".join(line.split()) == "21 0 10 1800 16 -1 -1 -1 7200 524288 1 1 1 1 1 -1 -1 -1"


def test_names_that_are_too_many_for_a_header_have_a_file_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clustermodel.workload.swf.LONGEST_NAMES", 60)
    path = tmp_path / "cluster.swf"
    notes = write_trace(path, read_sacct(LOGS / "newlines.sacct"))
    assert notes[-1] == f"names, too many for the header: ExecutableMap in {path}.names.csv"
    assert (tmp_path / "cluster.swf.names.csv").read_text().splitlines()[:2] == [
        "map,number,name",
        "ExecutableMap,1,日本語の仕事",
    ]
    assert "; UserMap: 1 Jürgen" in path.read_text()
    assert len(read_swf(path)) == 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing of the kind\n", "is no accounting log; expected are accounting records of PBS (MM/DD/YYYY HH:MM:SS;E;ID;"),
        ("; MaxProcs: 4\n", "it is in SWF already; every command reads it as it is"),
        ("", "is no accounting log; expected"),
    ],
)
def test_a_wrong_file_gets_one_line(command_line: Command, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    finished = command_line("trace", "import", path)
    assert finished.code == 2
    assert len(finished.err.splitlines()) == 1
    assert message in finished.err


def test_a_log_runs_as_it_is(command_line: Command, write_trace: Callable[..., Path]) -> None:
    path = log_of(write_trace, (0, 0, 30, 2), (0, 30, 10, 2), (10, 20, 10, 1))
    finished = command_line("run", "--trace", path, "--policy", "fcfs", "--json")
    assert finished.code == 0
    assert "4 lines: 3 jobs, 1 header line" in finished.err
    (summary,) = json.loads(finished.out)
    assert (summary["jobs"], summary["nodes"]) == (3, 3)


def test_options_of_logs_with_a_trace_in_swf(command_line: Command, write_trace: Callable[..., Path]) -> None:
    path = write_trace("; MaxProcs: 8", "1 0 -1 600 4 -1 -1 4 900 -1 1 1 1 -1 -1 -1 -1 -1")
    finished = command_line("run", "--trace", path, "--unit", "cores")
    assert finished.code == 2
    assert finished.err.startswith("clustermodel: error: --unit: ")


def test_whatif_compares_recorded_and_simulated_waits(command_line: Command, write_trace: Callable[..., Path]) -> None:
    # On two nodes: 1 runs from 0 to 30; 2 needs both nodes; 3 could be backfilled, but the log has it wait for an hour.
    path = log_of(write_trace, (0, 0, 30, 1), (0, 30, 30, 2), (0, 60, 30, 1), limit=30)
    finished = command_line("whatif", "--trace", path, "--policy", "fcfs", "--policy", "easy", "--json")
    assert finished.code == 0
    observed, fcfs, easy = json.loads(finished.out)
    assert observed == {
        "policy": "observed",
        "jobs": 3,
        "mean_wait_s": 1800,
        "median_wait_s": 1800,
        "p95_wait_s": pytest.approx(3420),
        "mean_bounded_slowdown": 2,
        "utilization": pytest.approx(120 / 180),
        "mean_wait_since_eligible_s": None,  # the log does not say
        "median_wait_since_eligible_s": None,
        "p95_wait_since_eligible_s": None,
    }
    assert [fcfs["mean_wait_s"], easy["mean_wait_s"]] == [1800, 600]
    assert "differ by more than 10 %" not in finished.err  # fcfs is the policy of this log
    alone = command_line("whatif", "--trace", path, "--policy", "easy", "--nodes", 4)
    assert "machine: 4 nodes, as asked for; the most in use at the same time were 2 (--nodes)" in alone.err
    assert alone.err.count("observed and simulated mean waits differ by more than 10 %") == 1
    table = pd.read_csv(io.StringIO(alone.out), sep="\t").set_index("policy")  # a pipe gets tabs and no title
    assert list(table.index) == ["observed", "easy"]
    known = {name: value for name, value in observed.items() if name != "policy" and value is not None}
    assert table.loc["observed"].dropna().to_dict() == known | {"utilization": pytest.approx(120 / 360)}


@pytest.mark.parametrize(
    ("records", "observed", "waits"),
    [
        # Two gangs in time slices on the same nodes, an hour each: one after the other, or both at once (mgs).
        (("00|00|02:00|3600|0", "00|00|02:00|3600|0"), (2, 0, 1.0), {"fcfs": 1800, "ss": 1800, "mgs": 0}),
        # Job 2 has the nodes while job 1 is suspended from 1 h to 2 h; job 3 comes after job 1.
        (
            ("00|00|03:00|7200|3600", "01:00|01:00|02:00|3600|0", "00:30|03:00|04:00|3600|0"),
            (3, 3000, 1.0),
            {"fcfs": 4200, "ss": 4200, "mgs": 0},
        ),
    ],
)
def test_whatif_on_a_log_with_suspended_jobs(
    command_line: Command,
    write_trace: Callable[..., Path],
    records: tuple[str, ...],
    observed: tuple[float, ...],
    waits: dict[str, float],
) -> None:
    lines = []
    for number, record in enumerate(records, 1):
        *times, run, suspended = record.split("|")
        stamps = "|".join(f"2024-01-01T{(time + ':00:00')[:5]}:00" for time in times)
        lines.append(f"{number}|u{number}|{stamps}|{run}|{suspended}|COMPLETED|4|16|n[1-4]|240")
    header = "JobID|User|Submit|Start|End|ElapsedRaw|Suspended|State|AllocNodes|AllocCPUS|NodeList|TimelimitRaw"
    path = write_trace(header, *lines, name="jobs.sacct")
    finished = command_line("whatif", "--trace", path, "--json")
    first, *rows = json.loads(finished.out)
    assert (first["jobs"], first["mean_wait_s"], first["utilization"]) == observed
    assert [row["policy"] for row in rows] == ["fcfs", "easy", "conservative", "ss", "mgs"]
    assert waits.items() <= {row["policy"]: row["mean_wait_s"] for row in rows}.items()
    assert "in which their nodes could be others'\n" in finished.err
    asked = command_line("whatif", "--trace", path, "--policy", "easy", "--json")
    assert [row["policy"] for row in json.loads(asked.out)] == ["observed", "easy"]
    assert "could be others'; ss and mgs are policies that do so (--policy)\n" in asked.err


def test_the_peak_of_a_table_counts_suspended_jobs_as_long_as_they_execute() -> None:
    # 4 nodes for 2 of 3 h, 4 nodes for the hour in which the first job is suspended: 3 + 4 units; never 8.
    jobs = {"submit_s": [0, 3600], "run_s": [7200, 3600], "nodes": 4, "wait_s": 0.0, "suspended_s": [3600.0, 0.0]}
    schedule = observed_schedule(Workload.from_frame(pd.DataFrame(jobs)))
    assert schedule.peak_nodes == 7
    whole = Workload.from_frame(pd.DataFrame(jobs | {"suspended_s": 0.0}))
    assert observed_schedule(whole).peak_nodes == 8


def test_whatif_on_a_trace_in_swf(command_line: Command, write_trace: Callable[..., Path]) -> None:
    path = write_trace(
        "1 0 0 600 4 -1 -1 4 900 -1 1 1 1 -1 -1 -1 -1 -1",
        "2 0 600 600 4 -1 -1 4 900 -1 1 1 1 -1 -1 -1 -1 -1",
        "3 0 -1 600 2 -1 -1 4 900 -1 1 1 1 -1 -1 -1 -1 -1",
    )
    finished = command_line("whatif", "--trace", path, "--json", "--policy", "fcfs")
    assert finished.code == 0
    assert "machine: 4 nodes, as none is given; the most in use at the same time were 4 (--nodes)" in finished.err
    assert "observed: without 1 job of unknown wait" in finished.err
    assert json.loads(finished.out)[0]["mean_wait_s"] == 300


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--scale-run-time", 2), "--scale-run-time: 2 is not allowed; the recorded waits belong to the recorded load"),
        (("--policy", "esy"), "policy: 'esy' is unknown"),
    ],
)
def test_whatif_refuses_what_cannot_be_compared(
    command_line: Command, write_trace: Callable[..., Path], arguments: tuple[object, ...], message: str
) -> None:
    finished = command_line("whatif", "--trace", log_of(write_trace, (0, 0, 30, 1)), *arguments)
    assert finished.code == 2
    assert message in finished.err


def test_a_trace_without_waits_has_nothing_to_compare(write_trace: Callable[..., Path]) -> None:
    path = write_trace("1 0 -1 600 4 -1 -1 4 900 -1 1 1 1 -1 -1 -1 -1 -1")
    for workload in (read_swf(path), read_swf(path, waits=True)):
        with pytest.raises(SpecificationError, match="no recorded waits"):
            observed_schedule(workload)


def test_facts_of_a_log(command_line: Command) -> None:
    finished = command_line("trace", "info", LOGS / "requeues.sacct", "--json")
    assert finished.code == 0
    assert json.loads(finished.out)["machine_nodes"] == 7


def test_filters_keep_what_a_log_has_recorded() -> None:
    workload: Workload = read_sacct(LOGS / "arrays.sacct")
    one_user = workload.split("user")[1]
    assert one_user.names["user"] == ("ann", "bob")
    assert one_user.frame["account"].unique().tolist() == ["a2"]


def test_feedback_is_an_option_of_each_command_that_reads_a_trace(command_line: Command, tmp_path: Path) -> None:
    path = tmp_path / "r.swf"
    log = LOGS / "requeues.sacct"
    assert command_line("trace", "import", log, "--feedback", "-o", path).code == 0
    assert read_swf(path, feedback=True).has_feedback
    for trace in (log, path):
        waits = []
        for options in ((), ("--feedback",)):
            finished = command_line("whatif", "--trace", trace, "--nodes", 4, "--policy", "fcfs", "--json", *options)
            waits.append(json.loads(finished.out)[1]["mean_wait_s"])
        assert waits[0] > waits[1]  # attempts do not wait while the one before has not ended
