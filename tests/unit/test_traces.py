"""Reading, changing, streaming and writing traces."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustermodel import (
    Job,
    JobFilter,
    LoadScale,
    Machine,
    Scenario,
    SpecificationError,
    SwfStream,
    TraceError,
    Workload,
    read_swf,
    synthetic_workload,
)
from clustermodel.ticks import duration_to_ticks, to_seconds, to_ticks

#          id submit wait run alloc cpu mem req estimate mem status user group ...
TRACE = """\
; Version: 2.2
; Computer: a machine
; Note: first
; Note: second
; MaxNodes: 16
; MaxProcs: 64 (four to a node)
1    0  5  100   4  -1  -1    8   200  -1   1    7   2  -1 -1 -1 -1 -1
2   10 -1   50  -1  -1  -1   16    -1  -1   0    7   2  -1 -1 -1 -1 -1
; a comment between the jobs

3   20 -1   30   2  -1  -1   -1    20  -1   1    8   2  -1 -1 -1 -1 -1
4   30 -1   -1   2  -1  -1    2    20  -1   5    8   2  -1 -1 -1 -1 -1
5   40 -1    0   2  -1  -1    2    20  -1   1    8   2  -1 -1 -1 -1 -1
6   50 -1   10   0  -1  -1   -1    20  -1   1    8   2  -1 -1 -1 -1 -1
7   -1 -1   10   1  -1  -1   -1    20  -1   1    8   2  -1 -1 -1 -1 -1
8   60 -1   10   1  -1  -1    4  60.5  -1  -1    9   2  -1 -1 -1 -1 -1
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "small.swf"
    path.write_text(TRACE)
    return path


def columns(workload: Workload, *names: str) -> list[list[float]]:
    return [workload.frame[name].tolist() for name in names]


def test_sizes_come_from_the_allocated_field_or_from_the_requested_one(trace: Path) -> None:
    assert columns(read_swf(trace), "job", "nodes") == [[1, 2, 3, 8], [4, 16, 2, 1]]
    requested = read_swf(trace, processors_from="requested")
    assert columns(requested, "job", "nodes") == [[1, 2, 3, 8], [8, 16, 2, 4]]
    assert requested.provenance.repaired["requested_processors missing, allocated_processors used"] == 1
    with pytest.raises(SpecificationError, match="processors_from: 'used' is not allowed"):
        read_swf(trace, processors_from="used")


def test_every_job_left_out_and_every_value_filled_in_is_counted(trace: Path) -> None:
    provenance = read_swf(trace).provenance
    assert dict(provenance.dropped) == {
        "run time missing": 1,
        "run time zero": 1,
        "number of processors missing": 1,
        "submit time missing": 1,
    }
    assert dict(provenance.repaired) == {
        "allocated_processors missing, requested_processors used": 1,
        "requested_time missing, run_time used": 1,
    }
    assert "1 job dropped: run time zero" in provenance.lines()


def test_the_header_is_kept_and_names_the_default_machine(trace: Path) -> None:
    workload = read_swf(trace)
    assert workload.provenance.header["Computer"] == "a machine"
    assert workload.provenance.header["Note"] == "first\nsecond"
    assert workload.machine_nodes == 64
    assert Scenario(workload=workload).used_machine == Machine(nodes=64)
    trace.write_text(TRACE.replace("; MaxProcs", "; OtherProcs"))
    assert read_swf(trace).machine_nodes == 16
    trace.write_text(TRACE.replace("; Max", "; No"))
    with pytest.raises(SpecificationError, match=r"give machine=Machine\(nodes=\.\.\.\)"):
        Scenario(workload=read_swf(trace))


def test_estimates_are_the_users_or_the_run_times(trace: Path) -> None:
    assert columns(read_swf(trace), "estimate_s") == [[200, 50, 20, 60.5]]
    perfect = read_swf(trace, use_estimates=False)
    assert columns(perfect, "estimate_s") == columns(perfect, "run_s")
    assert columns(read_swf(trace).with_perfect_estimates(), "estimate_s") == columns(perfect, "run_s")


@pytest.mark.parametrize(
    ("keep", "jobs", "reason"),
    [
        (JobFilter(window_s=(10, 60)), [2, 3], "outside the time window"),
        (JobFilter(nodes=(2, 4)), [1, 3], "outside the size range"),
        (JobFilter(statuses={0, -1}), [2, 8], "status not selected"),
        (JobFilter(users={7, 9}), [1, 2, 8], "user not selected"),
    ],
)
def test_jobs_are_selected_by_time_size_status_and_user(trace: Path, keep: JobFilter, jobs: list[int], reason: str) -> None:
    while_reading = read_swf(trace, keep=keep)
    afterwards = read_swf(trace).select(keep)
    assert columns(while_reading, "job") == columns(afterwards, "job") == [jobs]
    assert while_reading.provenance.dropped[reason] == afterwards.provenance.dropped[reason] == 4 - len(jobs)


def test_load_is_scaled_by_interarrival_time_run_time_and_size(trace: Path) -> None:
    scaled = read_swf(trace, scale=LoadScale(interarrival=0.5, run_time=2, size=0.3))
    assert columns(scaled, "submit_s") == [[0, 5, 10, 30]]
    assert columns(scaled, "run_s", "estimate_s") == [[200, 100, 60, 20], [400, 100, 40, 121]]
    assert columns(scaled, "nodes") == [[1, 5, 1, 1]]  # 1.2, 4.8, 0.6, 0.3 rounded, at least one
    # work / (nodes x span): (4 x 100 + 16 x 50 + 2 x 20 + 1 x 10) / (64 x 60), job 3 being killed at 20
    assert read_swf(trace).offered_load(64) == pytest.approx(1250 / (64 * 60))
    assert read_swf(trace).offered_load(64, kill_at_estimate=False) == pytest.approx(1270 / (64 * 60))


def test_jobs_out_of_order_are_sorted_and_counted_but_a_stream_refuses_them(trace: Path) -> None:
    trace.write_text(TRACE + "9   15 -1   10   1  -1  -1    4  60.5  -1  -1    9   2  -1 -1 -1 -1 -1\n")
    workload = read_swf(trace, scale=LoadScale(interarrival=2))
    assert columns(workload, "job", "submit_s") == [[1, 2, 9, 3, 8], [0, 20, 30, 40, 120]]
    assert workload.provenance.repaired["submitted before the job on the line above, sorted"] == 1
    with pytest.raises(TraceError, match="job 9 stands after job 8 but was submitted before it"):
        list(SwfStream(trace).rows())


@pytest.mark.parametrize(
    "options", [{}, {"keep": JobFilter(users={7})}, {"scale": LoadScale(size=2)}, {"use_estimates": False}]
)
def test_a_stream_has_the_rows_of_the_table_as_often_as_it_is_read(trace: Path, options: dict[str, object]) -> None:
    stream, table = SwfStream(trace, **options), read_swf(trace, **options)  # type: ignore[arg-type]
    for _ in range(2):
        assert list(stream.rows()) == list(table.rows())
        assert stream.provenance.dropped == table.provenance.dropped
        assert stream.provenance.repaired == table.provenance.repaired


def test_a_compressed_trace_is_the_same_trace(trace: Path) -> None:
    packed = trace.with_name("small.swf.gz")
    packed.write_bytes(gzip.compress(trace.read_bytes()))
    assert list(read_swf(packed).rows()) == list(read_swf(trace).rows())
    assert read_swf(packed).name == "small"


@pytest.mark.parametrize("suffix", ["swf", "swf.gz"])
def test_a_written_schedule_reads_back_as_the_workload_with_its_waits(tmp_path: Path, suffix: str) -> None:
    jobs = [Job(id=n, nodes=1 + n % 4, submit_s=n / 8, run_s=20.25 + n, estimate_s=30) for n in range(1, 20)]
    jobs.append(Job(id=20, nodes=9, submit_s=99, run_s=5))
    result = Scenario(machine=Machine(nodes=4), workload=Workload.from_jobs(jobs), policy="easy").run()
    path = tmp_path / f"out.{suffix}"
    result.to_swf(path)
    again = read_swf(path)
    ran = result.jobs[result.jobs["status"] != "rejected"]
    assert again.machine_nodes == 4
    assert again.provenance.dropped == {"run time missing": 1}  # the rejected job
    for column in ("job", "submit_s", "nodes", "run_s", "estimate_s"):
        assert again.frame[column].tolist() == ran[column].tolist()
    text = path.read_bytes()
    lines = (gzip.decompress(text) if suffix == "swf.gz" else text).decode().splitlines()
    waits = [float(line.split()[2]) for line in lines if not line.startswith(";")]
    assert waits == [*ran["wait_s"].tolist(), -1]
    assert [line.split()[10] for line in lines if not line.startswith(";")] == [
        {"completed": "1", "killed": "0", "rejected": "5"}[status] for status in result.jobs["status"]
    ]


def test_evalys_columns_stand_in_the_csv_with_interval_sets(tmp_path: Path) -> None:
    jobs = [
        Job(id=1, nodes=3, submit_s=0, run_s=10),
        Job(id=2, nodes=1, submit_s=0, run_s=20),
        Job(id=3, nodes=9, submit_s=0, run_s=1),
    ]
    result = Scenario(machine=Machine(nodes=4), workload=Workload.from_jobs(jobs), policy="fcfs").run()
    result.to_csv(tmp_path / "jobs.csv")
    header, *rows = (tmp_path / "jobs.csv").read_text().splitlines()
    assert header == (
        "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,"
        "starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources"
    )
    assert rows[0].endswith(",0,10,10,0,10,1,0-2")
    assert rows[1].endswith(",0,20,20,0,20,1,3")
    assert len(rows) == 2
    with pytest.raises(SpecificationError, match="layout: 'xml' is not allowed; it must be one of evalys, jobs"):
        result.to_csv(tmp_path / "jobs.xml", layout="xml")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=400)
@given(data=st.data())
def test_a_mutated_line_is_read_counted_or_refused_with_its_place(tmp_path: Path, data: st.DataObject) -> None:
    words = ["1", "0", "5", "100", "4", "-1", "-1", "8", "200", "-1", "1", "7", "2", "-1", "-1", "-1", "-1", "-1"]
    junk = st.one_of(
        st.text(alphabet="0123456789-+.eEnaif x;\t", max_size=8),
        st.integers(-(10**20), 10**20).map(str),
        st.floats().map(str),
    )
    for _ in range(data.draw(st.integers(1, 3))):
        words[data.draw(st.integers(0, len(words) - 1))] = data.draw(junk)
    path = tmp_path / "fuzz.swf"
    path.write_text("; MaxProcs: 64\n" + " ".join(words) + "\n")
    try:
        workload = read_swf(path)
    except TraceError as refused:
        assert str(refused).startswith((f"{path}:2: ", f"{path}: no usable job: "))  # noqa: PT017  either is fine
    else:
        assert len(workload) == 1
        assert Scenario(workload=workload).run().summary().rejected in (0, 1)


@given(st.floats(0, 1e12), st.floats(1e-9, 1e12))
def test_seconds_become_ticks_to_the_nearest_and_a_duration_never_vanishes(moment: float, duration: float) -> None:
    assert abs(to_seconds(to_ticks(moment)) - moment) <= 0.5e-6 + moment * 1e-15
    assert isinstance(to_ticks(moment), int)
    assert duration_to_ticks(duration) >= 1


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("nodes", 1.5, "Job 1: nodes: 1.5 is not a whole number"),
        ("submit_s", -1, "Job 1: submit_s: -1 is not allowed; it must be a finite number of seconds >= 0"),
        ("run_s", 0, "Job 1: run_s: 0 is not allowed; it must be a finite number of seconds > 0"),
        ("run_s", float("nan"), "Job 1: run_s: nan is not allowed"),
        ("run_s", "long", "Job 1: run_s: 'long' is not a number"),
        ("estimate_s", float("inf"), "Job 1: estimate_s: inf is not allowed"),
    ],
)
def test_a_job_names_the_field_the_value_and_what_is_allowed(field: str, value: object, message: str) -> None:
    good = {"id": 1, "nodes": 2, "submit_s": 0.0, "run_s": 5.0}
    with pytest.raises(SpecificationError) as refused:
        Job(**{**good, field: value})  # type: ignore[arg-type]
    assert str(refused.value).startswith(message)


def test_numpy_numbers_are_taken_as_plain_ones() -> None:
    assert type(Machine(nodes=np.int64(4)).nodes) is int
    job = Job(id=np.int64(1), nodes=np.int32(2), submit_s=np.float64(1), run_s=np.float32(2.5))
    assert type(job.row().nodes) is type(job.row().submit) is int
    assert Job.from_row(job.row()) == Job(id=1, nodes=2, submit_s=1.0, run_s=2.5, estimate_s=2.5)


def test_a_workload_is_sorted_unique_frozen_and_split_by_any_column() -> None:
    jobs = [Job(id=n, nodes=1, submit_s=10 - n, run_s=5, user=n % 2) for n in range(1, 6)]
    workload = Workload.from_jobs(jobs)
    assert columns(workload, "job") == [[5, 4, 3, 2, 1]]
    assert next(iter(workload.jobs())).id == 5
    with pytest.raises(ValueError, match="read-only"):
        workload.column("run")[0] = 1
    assert [columns(part, "job")[0] for part in workload.split("user")] == [[4, 2], [5, 3, 1]]
    with pytest.raises(SpecificationError, match="split by: 'colour' is not allowed"):
        workload.split("colour")
    with pytest.raises(SpecificationError, match="job id 1 appears 2 times"):
        Workload.from_jobs([jobs[0], jobs[0]])
    with pytest.raises(SpecificationError, match="it has no jobs"):
        Workload.from_jobs([])


def test_the_synthetic_workload_is_what_its_docstring_says() -> None:
    workload = synthetic_workload(jobs=5000, nodes=64, load=0.8, seed=3)
    assert workload.offered_load(64) == pytest.approx(0.8, rel=1e-3)  # runs shorter than a second become one second
    assert list(workload.rows()) == list(synthetic_workload(jobs=5000, nodes=64, load=0.8, seed=3).rows())
    assert list(workload.rows()) != list(synthetic_workload(jobs=5000, nodes=64, load=0.8, seed=4).rows())
    size, run, estimate = workload.column("nodes"), workload.seconds("run"), workload.seconds("estimate")
    assert size.min() == 1
    assert size.max() <= 64
    assert (estimate >= run).all()
    assert (estimate <= 50 * run + 1).all()
    assert np.mean(estimate == run) == pytest.approx(0.2, abs=0.03)  # phi
    hours = workload.seconds("submit") / 3600 % 24
    assert ((hours > 12) & (hours < 16)).sum() > 2.5 * ((hours > 0) & (hours < 4)).sum()
    for wrong in ({"jobs": 1}, {"nodes": 0}, {"load": 0.0}, {"seed": -1}):
        with pytest.raises(SpecificationError, match="is not allowed"):
            synthetic_workload(**wrong)  # type: ignore[arg-type]
