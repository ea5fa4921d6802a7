"""Logs of sacct and PBS: every line is used or counted by reason, and what the records say survives."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from clustermodel import (
    Machine,
    Scenario,
    SpecificationError,
    TraceError,
    Workload,
    read_pbs,
    read_sacct,
    read_swf,
    read_trace,
    write_trace,
)
from clustermodel.logs.pbs import resources_of
from clustermodel.workload.provenance import ImportReport
from tests.shared_data import SHARED

LOGS = Path(__file__).resolve().parents[1] / "logs"
HEADER = "JobID|Submit|Start|End|ElapsedRaw|State|AllocNodes"


def record(number: object, **fields: object) -> str:
    """Return a record under ``HEADER``: a job of two nodes that waits for 10 minutes and runs for 10."""
    values = {
        "Submit": "2025-03-03T08:00:00",
        "Start": "2025-03-03T08:10:00",
        "End": "2025-03-03T08:20:00",
        "ElapsedRaw": 600,
        "State": "COMPLETED",
        "AllocNodes": 2,
    }
    return "|".join(map(str, (number, *{**values, **fields}.values())))


def report_of(workload: Workload) -> ImportReport:
    report = workload.provenance.report
    assert report is not None
    assert sum(report.counts.values()) == report.lines
    return report


def counts(workload: Workload) -> dict[str, int]:
    return dict(report_of(workload).counts)


@pytest.mark.parametrize("path", sorted(LOGS.iterdir()), ids=lambda path: path.name)
def test_the_counts_sum_to_the_lines_of_the_file(path: Path) -> None:
    workload = read_trace(path)
    report = report_of(workload)
    assert report.lines == path.read_bytes().count(b"\n")
    assert report.jobs == len(workload)


def test_arrays_are_tasks_and_steps_are_no_jobs() -> None:
    workload = read_sacct(LOGS / "arrays.sacct")
    assert counts(workload) == {
        "jobs": 4, "steps": 2, "header lines": 1, "still waiting": 1, "never started": 1, "damaged lines": 1,
    }  # fmt: skip
    # Tasks 1, 2, 3, 5, 10, 12, 14 of array 300, of which task 2 has two records, beside tasks 7 and 8 of array 100.
    assert workload.column("id").tolist() == [107, 108, 300, 301, 302, 303, 304, 305, 306]
    assert workload.column("run")[:3].tolist() == [600_000_000, 60_000_000, 1_800_000_000]
    assert workload.names["user"] == ("ann", "bob")
    assert workload.frame["qos"].unique().tolist() == ["normal"]


def test_run_attempts_are_jobs_of_their_own() -> None:
    workload = read_sacct(LOGS / "requeues.sacct")
    assert counts(workload)["repeated records"] == 1
    frame = workload.frame.set_index("job")
    assert frame["requeues"].to_dict() == {50: 0, 51: 0, 53: 0, 54: 1, 55: 2}
    # The third attempt is submitted when the second one has ended, its record has the first submission.
    assert frame.loc[[50, 54, 55], "submit_s"].tolist() == [0, 2405, 4200]
    assert frame.loc[[50, 54, 55], "wait_s"].tolist() == [600, 1195, 3000]
    assert frame.loc[55, ["run_s", "suspended_s"]].tolist() == [7200, 3600]
    assert frame.loc[53, "wait_s"] == 0
    assert workload.provenance.repaired["started before its submission, submitted at its start"] == 1


def test_with_feedback_a_run_attempt_follows_the_one_before(tmp_path: Path) -> None:
    workload = read_sacct(LOGS / "requeues.sacct", feedback=True)
    frame = workload.frame.set_index("job")
    assert frame["preceding"].to_dict() == {50: -1, 51: -1, 53: -1, 54: 50, 55: 54}
    assert frame.loc[[54, 55], "think_time_s"].tolist() == [5, 0]
    plain = read_sacct(LOGS / "requeues.sacct")
    assert not plain.has_feedback
    # On four nodes job 51 delays the second attempt until 5,400 s; the third one is submitted when that one has ended.
    for read, submitted in ((plain, [0, 2405, 4200]), (workload, [0, 1805, 6000])):
        jobs = Scenario(machine=Machine(nodes=4), workload=read, policy="fcfs").run().jobs.set_index("job")
        assert jobs.loc[[50, 54, 55], "submit_s"].tolist() == submitted
    write_trace(tmp_path / "r.swf", workload)
    assert read_swf(tmp_path / "r.swf", feedback=True).frame["preceding"].tolist() == workload.frame["preceding"].tolist()


def test_components_of_a_heterogeneous_job_are_one_job() -> None:
    workload = read_sacct(LOGS / "heterogeneous.sacct")
    assert counts(workload) == {
        "jobs": 2,
        "components of heterogeneous jobs, added to their first component": 2,
        "header lines": 1,
        "steps": 1,
    }
    together = workload.frame.iloc[0]
    assert together[["nodes", "cores", "gpus", "run_s"]].tolist() == [11, 76, 16, 3660]
    assert together["memory_gib"] == pytest.approx(152 / 11)


def test_separators_and_line_breaks_in_names() -> None:
    workload = read_sacct(LOGS / "newlines.sacct")
    assert counts(workload) == {"jobs": 6, "line breaks inside fields": 6, "header lines": 1, "damaged lines": 1}
    assert workload.column("id").tolist() == [1, 2, 3, 4, 5, 7]
    assert workload.names["user"] == ("Jürgen", "Zoë")
    assert workload.names["job_name"][0] == "日本語の仕事"


def test_each_state_has_its_count() -> None:
    workload = read_sacct(LOGS / "states.sacct")
    assert counts(workload) == {
        "jobs": 15, "still running or suspended": 5, "never started": 3, "still waiting": 2, "header lines": 1,
        "of unknown state 'FOO'": 1, "of unknown state ''": 1, "with run time zero": 1, "without a submission time": 1,
        "without a start time": 1, "without a run time": 1, "without allocated nodes": 1,
    }  # fmt: skip
    assert workload.column("status").tolist() == [1] + 8 * [0] + 4 * [5] + 2 * [0]


def test_states_that_a_narrow_column_has_cut(write_trace: Callable[..., Path]) -> None:
    path = write_trace(HEADER, record(1, State="OUT_OF_ME+"), record(2, State="CANCELLED+"), record(3, State="RE+"), name="log")
    workload = read_sacct(path)
    assert counts(workload) == {"jobs": 2, "header lines": 1, "of unknown state 'RE+'": 1}
    assert workload.column("status").tolist() == [0, 5]


def test_times_as_given_with_an_offset_and_in_seconds() -> None:
    workload = read_sacct(LOGS / "times.sacct")
    report = report_of(workload)
    assert report.counts["damaged lines"] == 3
    assert [line.split(": ", 1)[1] for line in report.examples] == [
        "field start: '2025-03-30T25:50:00' is not a time",
        "field elapsed: 'soon' is not a duration",
        "field submit: '2025-13-30T01:30:00' is not a time",
    ]
    assert any(remark.startswith("clock: 3 jobs") for remark in report.remarks)
    frame = workload.frame.set_index("job")
    assert frame.loc[[4, 5], "submit_s"].tolist() == [0, 0]
    assert frame.loc[3, "submit_s"] == 3600  # without a time zone, 01:30 is an hour later than 01:30+01:00


def test_marks_of_no_value_that_are_numbers_or_times(write_trace: Callable[..., Path]) -> None:
    path = write_trace(
        f"{HEADER}|TimelimitRaw|AllocCPUS",
        f"{record(1)}|4294967295|4",
        f"{record(2, ElapsedRaw=4294967294)}|4294967294|4294967294",
        f"{record(3, Start='1969-12-31T19:00:00', ElapsedRaw=0, State='CANCELLED by 7')}|20|4",  # a zero, in local time
        f"{record(4, Submit='1970-01-01T01:00:00')}|20|4",
        name="log",
    )
    workload = read_sacct(path)
    assert counts(workload) == {"jobs": 2, "header lines": 1, "never started": 1, "without a submission time": 1}
    assert workload.column("run").tolist() == workload.column("estimate").tolist() == [600_000_000, 600_000_000]
    assert workload.column("cores").tolist() == [4, -1]


def test_local_times_with_daylight_saving() -> None:
    workload = read_sacct(LOGS / "times.sacct", timezone="Europe/Paris")
    assert not any(remark.startswith("clock") for remark in report_of(workload).remarks)
    frame = workload.frame.set_index("job")
    assert frame.loc[[3, 4, 5, 6], "submit_s"].tolist() == [0, 0, 0, 0]
    # From 00:00 to 01:00 in summer; the second job starts in the first of the two hours from 2 to 3, by its elapsed time.
    assert frame.loc[[1, 2], "wait_s"].tolist() == [3600, 1200]


def test_memory_and_gpus_in_every_form() -> None:
    workload = read_sacct(LOGS / "resources.sacct", unit="nodes")
    frame = workload.frame
    assert frame["nodes"].tolist() == [2, 2, 2, 1, 1, 2, 2, 2, 1536]
    assert frame["gpus"].tolist() == [0, 0, 0, 2, 3, 2, 4, 0, 0]
    gib = [4, 8 * 2000 / 1024 / 2, 8, 8, 62.5, 8 * 3000 / 1024 / 2, np.nan, 500 / 1024 / 2, np.nan]
    assert frame["memory_gib"].tolist() == pytest.approx(gib, nan_ok=True)


def test_limits_and_suspended_time() -> None:
    frame = read_sacct(LOGS / "limits.sacct").frame
    assert frame["run_s"].tolist() == [176_461, 930, 2400, 930, 930, 930]
    assert frame["estimate_s"].tolist() == [259_200, 930, 2400, 900, 129_600, 3600]
    assert frame["suspended_s"].tolist() == [0, 0, 1200, 0, 0, 0]


def test_joined_logs_with_other_fields_separators_and_messages() -> None:
    workload = read_sacct(LOGS / "joined.sacct")
    assert counts(workload) == {
        "jobs": 3, "blank lines": 2, "header lines": 2, "messages of sacct": 1, "line breaks inside fields": 1,
        "damaged lines": 1,
    }  # fmt: skip
    assert workload.column("id").tolist() == [1, 2, 4]
    assert workload.column("nodes").tolist() == [8, 8, 4]


def test_the_older_layout_of_open_xdmod() -> None:
    workload = read_sacct(LOGS / "old_xdmod.sacct")
    assert counts(workload) == {"jobs": 1, "never started": 1, "line breaks inside fields": 1}
    assert workload.frame.iloc[0][["nodes", "cores", "gpus", "job_name"]].tolist() == [2, 32, 2, "a|b"]


def test_the_oldest_layout_of_open_xdmod(write_trace: Callable[..., Path]) -> None:
    times = "2016-08-01T06:01:08|2016-08-01T06:01:08|2016-08-01T07:04:09|2016-08-01T08:04:09|01:00:00"
    lines = (
        f"{number}|{number}|oak|main|acc|grp|100|ann|1001|{times}|0:0|COMPLETED|2|32|32|4Gn|02:00:00|n[1-2]|{name}"
        for number, name in ((1, "a"), (2, "b|c"))
    )
    workload = read_sacct(write_trace(*lines, name="log"))
    assert counts(workload) == {"jobs": 2}
    assert workload.frame.loc[0, ["nodes", "cores", "estimate_s", "memory_gib"]].tolist() == [32, 32, 7200, 0.25]
    assert workload.names["job_name"] == ("a", "b|c")


def test_one_cluster_of_a_log_of_several() -> None:
    workload = read_sacct(LOGS / "clusters.sacct")
    assert counts(workload) == {"jobs": 2, "header lines": 1, "jobs of other clusters": 1}
    assert workload.provenance.header["Computer"] == "oak"
    assert read_sacct(LOGS / "clusters.sacct", cluster="elm").column("nodes").tolist() == [3]
    with pytest.raises(TraceError, match="no jobs of 'ash'; its clusters are oak, elm"):
        read_sacct(LOGS / "clusters.sacct", cluster="ash")


def test_dependencies_and_constraints_of_jobs(write_trace: Callable[..., Path]) -> None:
    lines = [
        ("1", "ib", 0, "COMPLETED", "a.sh -d afterok:3"),  # of the script
        ("2", "a100|v100", 10, "FAILED", "--dependency=afterok:1 a.sh"),
        ("3", "[a|b]", 20, "COMPLETED", "-d afternotok:2,after:1+5 a.sh"),
        ("4", "", 20, "COMPLETED", "--dependency afterany:1?afterok:2 a.sh"),
        ("5_0", "(null)", 20, "COMPLETED", "-dafter:4 a.sh"),  # job 4 has not begun before it ends
        ("5_1", "a&b", 30, "COMPLETED", "-d after:3 a.sh"),
        ("6_1", "x&y|z", 40, "COMPLETED", "-d aftercorr:5 a.sh"),
        ("7", "", 40, "COMPLETED", "-d afterany:5:5_1:99,afterok:7 a.sh"),
    ]
    times = "2025-03-03T08:{:02}:00"
    rows = [
        f"{job}|{wants}|{times.format(0)}|{times.format(start)}|{times.format(start + 10)}|600|{state}|1|x|sbatch {options}"
        for job, wants, start, state, options in lines
    ]
    header = "JobID|Constraints|Submit|Start|End|ElapsedRaw|State|AllocNodes|JobName|SubmitLine"
    workload = read_sacct(write_trace(header, *rows, name="log"))
    ids = dict(zip(["1", "2", "3", "4", "5_0", "6_1", "7", "5_1"], workload.frame["job"], strict=True))
    assert [tuple(row) for row in workload.dependencies.tolist()] == [
        (ids["2"], 1, ids["1"]), (ids["3"], 3, ids["2"]), (ids["5_0"], 0, ids["4"]), (ids["6_1"], 1, ids["5_1"]),
        (ids["7"], 3, ids["5_0"]), (ids["7"], 3, ids["5_1"]), (ids["5_1"], 0, ids["3"]),
    ]  # fmt: skip
    assert workload.frame["features"].dropna().to_dict() == {0: "ib", 1: "a100|v100", 7: "a&b"}
    remarks = report_of(workload).remarks
    assert "dependencies: 6 jobs wait for others (SubmitLine)" in remarks
    assert "dependencies: 3 of other kinds are left out (alternatives, delays)" in remarks
    assert "constraints: 2 jobs with other constraints than a&b or a|b, which are left out" in remarks
    result = Scenario(workload=workload, machine=Machine(nodes=8), policy="fcfs").run()
    assert result.jobs.set_index("job")["start_s"].to_dict() == {
        ids["1"]: 0, ids["2"]: 600, ids["3"]: 1200, ids["4"]: 0, ids["5_0"]: 0, ids["5_1"]: 1200, ids["6_1"]: 1800,
        ids["7"]: 1800,
    }  # fmt: skip


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compression_is_seen_by_the_content(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    plain = (LOGS / "arrays.sacct").read_bytes()
    path = tmp_path / "log"
    path.write_bytes(compress(plain))
    assert len(read_sacct(path)) == 9
    path.write_bytes(compress(plain)[:-9])
    with pytest.raises(TraceError, match="log: the compressed data"):
        read_sacct(path)


def test_the_machine_is_the_most_in_use_at_the_same_time(write_trace: Callable[..., Path]) -> None:
    later = {"Start": "2025-03-03T08:20:00", "End": "2025-03-03T08:30:00"}
    path = write_trace(HEADER, record(1), record(2, AllocNodes=3), record(3, AllocNodes=4, **later), name="log")
    assert read_sacct(path).machine_nodes == 5  # job 3 starts when the others end


@pytest.mark.parametrize(("shared", "unit"), [(True, "cores"), (False, "nodes")])
def test_the_unit_is_cores_where_jobs_share_nodes(write_trace: Callable[..., Path], shared: bool, unit: str) -> None:
    lines = [
        f"{record(number, AllocNodes=1)}|4|cn{1 if shared else number}" for number in range(1, 6)
    ]  # on one node, or on a node each
    workload = read_sacct(write_trace(f"{HEADER}|AllocCPUS|NodeList", *lines, name="log"))
    assert report_of(workload).unit == unit
    assert workload.column("nodes").tolist() == 5 * [4 if shared else 1]


def test_a_unit_that_jobs_do_not_have(write_trace: Callable[..., Path]) -> None:
    path = write_trace(f"{HEADER}|AllocTRES", f"{record(1)}|gres/gpu=3", f"{record(2)}|cpu=4", name="log")
    workload = read_sacct(path, unit="gpus")
    assert counts(workload) == {"jobs": 1, "header lines": 1, "without allocated GPUs": 1}
    assert workload.column("nodes").tolist() == [3]


def test_requested_sizes(write_trace: Callable[..., Path]) -> None:
    path = write_trace(f"{HEADER}|ReqNodes", f"{record(1)}|5", f"{record(2)}|", name="log")
    workload = read_sacct(path, processors_from="requested")
    assert workload.column("nodes").tolist() == [5, 2]
    assert workload.provenance.repaired["requested size missing, the other one used"] == 1
    Scenario(workload=workload, policy="fcfs").to_toml(path.with_name("one.toml"))
    assert Scenario.from_toml(path.with_name("one.toml")).workload == workload


def test_recorded_columns_survive_a_table(tmp_path: Path) -> None:
    frame = read_sacct(LOGS / "arrays.sacct").frame
    again = Workload.from_frame(frame).frame
    assert again.columns.tolist() == frame.columns.tolist()
    assert again["job_name"].astype(str).tolist() == frame["job_name"].astype(str).tolist()
    assert (again["wait_s"] == frame["wait_s"]).all()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((), "log: it is no output of sacct --parsable2 with a header line, nor"),
        (("JobID  State ", "----- -----"), "layout of Open XDMoD; write a log with TZ=UTC sacct --parsable2 --allusers"),
        (("JobID|State|Submit",  "1|COMPLETED|2025-03-03T08:00:00"), "log:1: the log has no field Start, no field End or"),
        ((HEADER,), "log: no usable job: 1 line: 1 header line"),
        ((HEADER, record(1, State="RUNNING")), "log: no usable job: 2 lines: 1 header line, 1 still running or suspended"),
    ],
)  # fmt: skip
def test_a_log_that_cannot_be_used_is_refused_in_one_line(
    write_trace: Callable[..., Path], lines: tuple[str, ...], message: str
) -> None:
    with pytest.raises(TraceError) as refused:
        read_sacct(write_trace(*lines, name="log"))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_run_time_of_thousands_of_years_is_a_damaged_line(write_trace: Callable[..., Path]) -> None:
    log = write_trace(HEADER, record(1), record(2, ElapsedRaw="", End="9999-12-31T23:59:59"), record(3), name="log")
    workload = read_sacct(log)
    assert counts(workload) == {"header lines": 1, "jobs": 2, "damaged lines": 1}
    assert f"{log}:3: from start to end are 251" in "\n".join(workload.provenance.lines())


def test_a_line_that_is_too_long_is_named(write_trace: Callable[..., Path]) -> None:
    with pytest.raises(TraceError, match=r"log:3: the line has more than 1,048,576 characters"):
        read_sacct(write_trace(HEADER, record(1), "x" * (2**20 + 1), name="log"))
    assert len(read_sacct(write_trace(HEADER, record(1), "|" * 2**20, record(2), name="log"))) == 2


def test_options_that_are_not_allowed() -> None:
    for option, value in (("timezone", "Mars"), ("unit", "racks"), ("processors_from", "both")):
        with pytest.raises(SpecificationError, match=f"{option}: '{value}' is not allowed"):
            read_sacct(LOGS / "arrays.sacct", **{option: value})


def shared_log(name: str) -> Path:
    path = SHARED / "traces" / "sacct" / name
    if not path.is_file():
        pytest.skip(f"{path} is not here; the logs are not part of the repository")
    return path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pbs-accounting.log", {"jobs": 9}),
        ("phillips.log.gz", {"jobs": 4024, "with run time zero": 261}),
        ("accounting-logs-with-job-arrays.log", {"jobs": 4, "repeated records": 2}),
        ("accounting-logs.log", {"jobs": 3, "with run time zero": 1}),
        ("sacct_dump2101.log", {"jobs": 6, "never started": 6, "steps": 2, "header lines": 1, "damaged lines": 1}),
    ],
)
def test_real_logs(name: str, expected: dict[str, int]) -> None:
    assert counts(read_trace(shared_log(name))) == expected


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("non-ended-job-state.log", "no usable job: 2 lines: 1 still running or suspended, 1 still waiting"),
        ("unknown-job-state.log", "no usable job: 2 lines: 1 of unknown state 'FOO', 1 of unknown state 'BAR'"),
    ],
)
def test_real_logs_without_a_job(name: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read_sacct(shared_log(name))


def test_a_job_name_of_the_real_dump_with_separators() -> None:
    assert "Jo| bNa| me003" in read_sacct(shared_log("sacct_dump2101.log")).names["job_name"]


def test_the_gpus_of_a_real_log() -> None:
    frame = read_sacct(shared_log("phillips.log.gz")).frame
    assert frame["gpus"].sum() > 0
    assert frame["memory_gib"].max() < 1024  # one record has Slurm's flag of memory per core in its number


def test_records_of_torque() -> None:
    workload = read_pbs(LOGS / "torque.pbs")
    assert counts(workload) == {
        "jobs": 5, "start records (S)": 3, "queue records (Q)": 2, "damaged lines": 2, "records of whole job arrays": 1,
        "deletion records (D)": 1, "never started": 1, "abort records (A)": 1, "records of unknown type 'X'": 1,
        "blank lines": 1,
    }  # fmt: skip
    frame = workload.frame.set_index("job")
    values = frame.loc[11, ["nodes", "cores", "run_s", "estimate_s", "wait_s", "memory_gib"]]
    assert values.tolist() == [2, 4, 1800, 3600, 10, 2]
    assert frame.loc[12, ["nodes", "cores", "gpus", "status"]].tolist() == [3, 16, 2, 5]
    assert frame.loc[18, ["nodes", "cores"]].tolist() == [2, 3]
    # Job 14 was rerun after 10 minutes, and waits for 10 more.
    assert frame.loc[[14, 19], "run_s"].tolist() == [600, 1200]
    assert frame.loc[[14, 19], "requeues"].tolist() == [0, 1]
    assert frame.loc[[14, 19], "wait_s"].tolist() == [2400, 600]
    assert workload.names["user"] == ("ann", "bob")
    followers = read_pbs(LOGS / "torque.pbs", feedback=True).frame.set_index("job")
    assert followers.loc[[14, 19], "preceding"].tolist() == [-1, 14]
    assert followers.loc[19, "think_time_s"] == 0


def test_records_of_pbs_professional() -> None:
    workload = read_pbs(LOGS / "pbspro.pbs")
    assert counts(workload)["jobs"] == 4
    frame = workload.frame.set_index("job")
    assert frame.loc[21, ["nodes", "cores", "run_s", "suspended_s", "memory_gib"]].tolist() == [2, 16, 1800, 600, 4]
    assert frame.loc[21, "account"] == "climate"
    assert frame.loc[[22, 24], "requeues"].tolist() == [0, 1]
    assert frame.loc[[22, 24], "gpus"].tolist() == [1, 2]
    assert frame.loc[23, ["nodes", "cores", "gpus"]].tolist() == [1, 48, 4]


@pytest.mark.parametrize(
    ("values", "nodes", "cores", "gpus"),
    [
        ({"exec_host": "a/0+a/1+b/7"}, 2, 3, 0),
        ({"exec_host": "a/0-3+b/0,2,4-7"}, 2, 10, 0),
        ({"exec_host": "a/0*13+b/0*13"}, 2, 26, 0),
        ({"exec_host": "a/0*0", "exec_vnode": "(a[0]:ncpus=24:ngpus=2:mem=1gb+a[1]:ncpus=24)"}, 1, 48, 2),
        ({"exec_vnode": "(a:ncpus=2)+(b:ncpus=2)"}, 2, 4, 0),
        ({"exec_vnode": "(7:ncpus=2)"}, 1, 2, 0),
        ({"exec_host": "a/0", "exec_gpus": "a-gpu/0+a-gpu/1"}, 1, 1, 2),
        ({"nodes": "2:ppn=4+1:ppn=8"}, 3, 16, 0),
        ({"nodes": "1:ppn=28:gpus=1:default", "nodect": "1", "ncpus": "1"}, 1, 28, 1),
        ({"nodes": "node01+node02:ppn=4#excl"}, 2, 5, 0),
        ({"select": "5:ncpus=13:ngpus=1+1:ncpus=4"}, 6, 69, 5),
        ({"nodect": "1:ppn=24:gpu=4:reqmem=128849018880:gpu"}, 1, 24, 4),
        ({"ncpus": "12", "nodect": "2", "ngpus": "3"}, 2, 12, 3),
        ({"ncpus": "16", "mem": "4gb"}, 1, 16, 0),
    ],
)
def test_resources_of_pbs(values: dict[str, str], nodes: int, cores: int, gpus: int) -> None:
    allocated = any(name.startswith("exec_") for name in values)
    resources = resources_of(values if allocated else {f"Resource_List.{name}": value for name, value in values.items()})
    assert (*(resources.allocated if allocated else resources.requested), resources.gpus) == (nodes, cores, gpus)


def test_a_value_of_pbs_that_cannot_be_read_is_named(write_trace: Callable[..., Path]) -> None:
    times = "ctime=1740988800 start=1740988810 end=1740990000 Resource_List.nodect=1"
    path = write_trace(
        f"03/03/2025 08:30:10;E;1.srv;{times}",
        f"03/03/2025 08:30:10;E;2.srv;{times} Resource_List.walltime=abc",
        f"03/03/2025 08:30:10;E;3.srv;{times} resources_used.walltime=-1",
        name="log",
    )
    assert report_of(read_pbs(path)).examples == (
        f"{path}:2: field Resource_List.walltime: 'abc' is not a duration",
        f"{path}:3: field resources_used.walltime: '-1' is not a duration",
    )


def test_what_is_no_log_of_pbs_is_refused_in_one_line(write_trace: Callable[..., Path]) -> None:
    with pytest.raises(TraceError, match=r"log: it has no accounting records of PBS, as PBS_HOME/server_priv/accounting"):
        read_pbs(write_trace("a", "b", name="log"))
    with pytest.raises(TraceError, match=r"log: no usable job: 1 line: 1 queue record \(Q\)"):
        read_pbs(write_trace("03/03/2025 08:00:00;Q;1.srv;queue=batch", name="log"))


def test_sizes_of_a_real_log_of_pbs() -> None:
    workload = read_pbs(shared_log("pbs-accounting.log"), unit="cores")
    assert workload.column("nodes").tolist() == [32, 32, 4, 65, 12, 28, 28, 28, 48]
    assert workload.column("gpus").tolist() == [0, 0, 0, 0, 0, 1, 4, 2, 4]
