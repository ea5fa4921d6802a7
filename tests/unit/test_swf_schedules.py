"""Partial executions of the Standard Workload Format: read, summed up, written, and whole schedules read back."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clustermodel as cm
from clustermodel.workload.swf import write_swf
from tests.conftest import Finished
from tests.shared_data import trace_path
from tests.tiers import some

WriteTrace = Callable[..., Path]


def line(
    number: int, submit: float, wait: float, run: float, status: int, *, nodes: int = 4, cpu: float = -1, asked: int = -1
) -> str:
    return f"{number} {submit} {wait} {run} {nodes} {cpu} -1 {asked} 900 -1 {status} 7 3 -1 -1 -1 -1 -1"


WHOLE = line(1, 5, 10, 100, 1)
PARTS = (line(1, 5, 10, 60, 2), line(1, -1, 30, 0, 2), line(1, -1, 0, 40, 3))
OTHER = line(2, 50, 0, 7, 0, nodes=8)
NO_VALUES = (-1, None)  # memory, and what else jobs demand
ROW = (5_000_000, 1, 4, 100_000_000, 900_000_000, 7, 3, 0, 1, *NO_VALUES)
WITH, WITHOUT = "the line of the whole job was used", "no line of the whole job, summed up from its partial executions"


def same(left: pd.DataFrame, right: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(left, right, check_dtype=False, check_exact=True)


@pytest.mark.parametrize("lines", [(WHOLE, *PARTS), (*PARTS, WHOLE), (*PARTS[:1], WHOLE, *PARTS[1:])])
def test_of_a_job_with_a_line_of_its_own_the_partial_executions_are_counted_only(
    write_trace: WriteTrace, lines: tuple[str, ...]
) -> None:
    path = write_trace(*lines, OTHER)
    table, stream = cm.read_swf(path), cm.SwfStream(path)
    assert [tuple(row) for row in table.rows()] == [ROW, (50_000_000, 2, 8, 7_000_000, 900_000_000, 7, 3, 0, 0, *NO_VALUES)]
    assert list(stream.rows()) == list(table.rows())
    assert stream.provenance.lines() == table.provenance.lines() == [f"3 partial executions read: {WITH}"]


@pytest.mark.parametrize(("last", "status"), [(3, 1), (4, 0), (2, -1)])
def test_a_job_of_partial_executions_only_is_summed_up(write_trace: WriteTrace, last: int, status: int) -> None:
    path = write_trace(*PARTS[:2], line(1, -1, 0, 40, last, nodes=3), OTHER)
    table, stream = cm.read_swf(path), cm.SwfStream(path)
    assert tuple(next(table.rows())) == (*ROW[: -1 - len(NO_VALUES)], status, *NO_VALUES)
    assert list(stream.rows()) == list(table.rows())
    counts = [f"1 job repaired: {WITHOUT}", f"3 partial executions read: {WITHOUT}"]
    assert stream.provenance.lines() == table.provenance.lines() == counts
    assert list(stream.rows()) == list(table.rows())  # counters start again
    assert stream.provenance.lines() == counts


def test_unknown_run_times_of_parts_do_not_count(write_trace: WriteTrace) -> None:
    parts = line(1, 5, 10, -1, 2), line(1, -1, 1, 60, 2), line(1, -1, 1, -1, 2), line(1, -1, 1, 40, 3)
    assert tuple(next(cm.read_swf(write_trace(*parts)).rows())) == ROW
    with pytest.raises(cm.TraceError, match="1 job dropped: run time missing"):
        cm.read_swf(write_trace(line(1, 5, 10, -1, 2), line(1, -1, 1, -1, 3)))
    with pytest.raises(cm.TraceError, match="1 job dropped: submit time missing"):
        cm.read_swf(write_trace(*PARTS[1:]))


def test_parts_that_do_not_follow_each_other_are_two_jobs_of_one_number(write_trace: WriteTrace) -> None:
    path = write_trace(PARTS[0], OTHER, line(1, 60, 0, 40, 3))
    for read in (cm.read_swf, cm.read_schedule):
        with pytest.raises(
            cm.TraceError, match=rf"^{path}:3: field job_number: 1 is used by .*first on line 1; .*follow each other$"
        ):
            read(path)
    for read in (cm.read_swf, cm.read_schedule):
        with pytest.raises(cm.TraceError, match=rf"^{path}:2: field job_number: 1 is used by .*first on line 1"):
            read(write_trace(WHOLE, WHOLE))


def test_a_wrong_value_of_a_part_is_refused_by_line_or_skipped(write_trace: WriteTrace) -> None:
    path = write_trace(WHOLE, PARTS[0], "1 -1 x 40 4 -1 -1 -1 900 -1 3 7 3 -1 -1 -1 -1 -1")
    assert tuple(next(cm.read_swf(path).rows())) == ROW  # no workload depends on a wait
    with pytest.raises(cm.TraceError, match=rf"^{path}:3: field wait_time: 'x' is not a number$"):
        cm.read_schedule(path)
    assert cm.read_schedule(path, lenient=True).run_attempts["outcome"].tolist() == ["continued"]
    path = write_trace(WHOLE, PARTS[0], "1 -1 30 4:0 4 -1 -1 -1 900 -1 3 7 3 -1 -1 -1 -1 -1")
    with pytest.raises(cm.TraceError, match=rf"^{path}:3: field run_time: '4:0' is not a number$"):
        cm.read_swf(path)
    lenient = cm.read_swf(path, lenient=True)
    assert lenient.provenance.lines() == ["1 job dropped: malformed line", f"1 partial execution read: {WITH}"]
    path = write_trace(*(line(1, 5 if part == 0 else -1, 1, 9e9, 2) for part in range(2)))
    with pytest.raises(
        cm.TraceError, match=rf"^{path}:2: field run_time: the partial executions of job 1 sum up to 1.8e\+10 s; at most 1e\+10"
    ):
        cm.read_swf(path)
    with pytest.raises(cm.TraceError, match=r":1: field wait_time: 20000000000.0 is not allowed; it must be <= 1e\+10$"):
        cm.read_schedule(write_trace(line(1, 0, 2e10, 5, 1)))


def test_counts_of_partial_executions_are_facts_of_a_trace(
    write_trace: WriteTrace, command_line: Callable[..., Finished]
) -> None:
    path = write_trace("; MaxProcs: 8", WHOLE, *PARTS, line(3, 9, 1, 5, 2), line(3, -1, 1, 5, 3), OTHER)
    workload = cm.read_swf(path)
    assert cm.trace_facts(workload, 8)["partial_executions"] == {WITHOUT: 2, WITH: 3}
    assert cm.merge(a=workload, b=workload).provenance.partial == {WITHOUT: 4, WITH: 6}
    assert workload.scaled(cm.LoadScale(run_time=2)).provenance.partial == workload.provenance.partial
    shown = command_line("trace", "info", path)
    assert shown.code == 0
    assert shown.out.splitlines()[-3:] == [
        f"1 job repaired: {WITHOUT}",
        f"2 partial executions read: {WITHOUT}",
        f"3 partial executions read: {WITH}",
    ]


@given(jobs=st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 50), min_size=1, max_size=4)), min_size=1, max_size=5))
def test_however_jobs_are_split_the_workload_is_that_of_whole_jobs(
    tmp_path_factory: pytest.TempPathFactory, jobs: list[tuple[bool, list[int]]]
) -> None:
    whole, split = [], []
    for number, (summary, parts) in enumerate(jobs, 1):
        of_job = line(number, number, 3, sum(parts), 1)
        whole.append(of_job)
        split += [of_job] * summary
        split += [
            line(number, number if at == 0 else -1, 3, run, 3 if at == len(parts) - 1 else 2) for at, run in enumerate(parts)
        ]
    paths = [tmp_path_factory.getbasetemp() / f"{name}.swf" for name in ("whole", "split")]
    for path, lines in zip(paths, (whole, split), strict=True):
        path.write_text("\n".join(lines))
    rows = [list(cm.SwfStream(path).rows()) for path in paths]
    assert rows[0] == rows[1]


def test_a_schedule_has_jobs_and_their_run_attempts(write_trace: WriteTrace) -> None:
    cancelled = line(3, 60, -1, -1, 5, nodes=-1, asked=9)
    schedule = cm.read_schedule(write_trace("; Preemption: Double", WHOLE, *PARTS, OTHER, cancelled))
    # job 1: queued 5, runs 15-75, queued 75, stopped at 105 at once, runs 105-145
    same(
        schedule.run_attempts,
        pd.DataFrame(
            {
                "job": [1, 1, 1, 2],
                "start_s": [15.0, 105, 105, 50],
                "end_s": [75.0, 105, 145, 57],
                "nodes": [4, 4, 4, 8],
                "executed_s": [np.nan] * 4,
                "outcome": ["continued", "continued", "completed", "failed"],
            }
        ),
    )
    jobs = schedule.jobs.set_index("job")
    columns = ["submit_s", "start_s", "end_s", "wait_s", "response_s", "run_s", "nodes", "allocated_nodes", "status", "tries"]
    assert jobs.loc[1, columns].tolist() == [5, 105, 145, 100, 140, 100, 4, 4, "completed", 3]
    assert jobs.loc[2, columns].tolist() == [50, 50, 57, 0, 7, 7, 8, 8, "failed", 1]
    assert jobs.loc[3, ["submit_s", "nodes", "allocated_nodes", "status", "tries"]].tolist() == [60, 9, 0, "cancelled", 0]
    assert jobs.loc[3, ["start_s", "end_s", "wait_s", "response_s", "run_s"]].isna().all()
    assert (jobs["estimate_s"] == 900).all()
    assert (jobs[["user", "group"]] == [7, 3]).all().all()
    assert schedule.provenance.header == {"Preemption": "Double"}
    assert schedule.provenance.lines() == ["3 partial executions read: with the line of the whole job"]


def test_parts_alone_are_a_schedule_too(write_trace: WriteTrace) -> None:
    schedule = cm.read_schedule(write_trace(*PARTS, OTHER))
    with_whole = cm.read_schedule(write_trace(WHOLE, *PARTS, OTHER))
    same(schedule.run_attempts, with_whole.run_attempts)
    same(schedule.jobs, with_whole.jobs)
    assert schedule.provenance.lines() == ["3 partial executions read: without a line of the whole job"]
    with pytest.raises(cm.TraceError, match="no job: the file has no job lines"):
        cm.read_schedule(write_trace("; only a comment"))


def test_attempts_after_an_unknown_time_are_unknown(write_trace: WriteTrace) -> None:
    schedule = cm.read_schedule(write_trace(PARTS[0], line(1, -1, -1, 5, 2), PARTS[2], line(2, 0, -1, 7, 1)))
    assert schedule.run_attempts["job"].tolist() == [1]
    assert schedule.jobs["tries"].tolist() == [1, 0]
    assert schedule.jobs["allocated_nodes"].tolist() == [4, 4]  # job 2 ran, it is not known when


OUTCOME = {
    **dict.fromkeys(("preempted", "checkpointed", "suspended", "requeued"), "continued"),
    **dict.fromkeys(("killed", "aborted"), "failed"),
    "completed": "completed",
}
STATUS = {"completed": "completed", "killed": "failed", "aborted": "failed", "rejected": "cancelled"}


def survives(result: cm.Result, path: Path) -> None:
    """Write a schedule, read it, and compare jobs, starts, ends and run attempts with those of the run."""
    result.to_swf(path)
    schedule = cm.read_schedule(path)
    jobs = result.jobs[list(schedule.jobs.columns)].assign(status=result.jobs["status"].map(STATUS))
    same(schedule.jobs, jobs)
    attempts = result.run_attempts.drop(columns="lost_s")
    same(schedule.run_attempts, attempts.assign(outcome=attempts["outcome"].map(OUTCOME)))
    again, before = cm.read_swf(path), result.scenario.sources[0]
    assert isinstance(before, cm.Workload)
    ran = np.isin(before.column("id"), again.column("id"))
    for field in ("submit", "id", "nodes", "estimate", "user", "group"):
        assert again.column(field).tolist() == before.column(field)[ran].tolist()
    run = np.minimum(before.column("run"), before.column("estimate"))  # killed there
    assert again.column("run").tolist() == run[ran].tolist()
    assert again.column("status").tolist() == (result.records.column("ended_as")[ran] == 1).astype(int).tolist()
    header = again.provenance.header
    made = f"simulated schedule of {result.scenario.workload_name} under {result.scenario.label}\n"
    assert header["Note"].startswith(made)
    assert again.machine_nodes == result.machine.processors
    assert int(header["MaxJobs"]) == len(result.jobs)
    extra = int(header["MaxRecords"]) - len(result.jobs)
    assert again.provenance.partial == ({WITH: extra} if extra else {})
    assert header["Preemption"] == ("Double" if extra else "No")
    assert result.jobs["tries"].max() == 1 or extra


@pytest.mark.parametrize(
    "policy",
    [
        "fcfs",
        "easy",
        "conservative",
        "pv-easy",
        "pv-easy:mode=checkpoint",
        "pv-easy:mode=suspend",
        "ss",
        "R/L-NG:speculation=0.9,test_runs=true",
    ],
)
def test_schedules_of_dedicated_nodes_survive_writing_and_reading(tmp_path: Path, policy: str) -> None:
    jobs = [
        *cm.synthetic_workload(jobs=300, nodes=64, load=0.9).jobs(),
        cm.Job(id=301, nodes=65, submit_s=4e6, run_s=5),  # rejected
        cm.Job(id=302, nodes=1, submit_s=4e6, run_s=50.25, estimate_s=12.5),  # killed
    ]
    machine = cm.Machine(nodes=64, checkpointing=cm.Checkpointing(checkpoint_s=120, restart_s=60.5))
    result = cm.Scenario(machine=machine, workload=cm.Workload.from_jobs(jobs), policy=policy).run()
    survives(result, tmp_path / "schedule.swf")
    ends = dict(result.jobs["status"].value_counts())
    assert (ends["rejected"], ends["killed"] >= 1) == (1, True)
    assert cm.read_swf(tmp_path / "schedule.swf").provenance.dropped == {"run time missing": 1}
    assert (result.jobs["tries"].max() > 1) == (policy not in ("fcfs", "easy", "conservative"))


@pytest.mark.parametrize("policy", ["gs", "mbgs", "bgs:urgent=checkpoint", "bgs:urgent=kill"])
def test_schedules_of_nodes_shared_in_time_survive_writing_and_reading(tmp_path: Path, policy: str) -> None:
    jobs = cm.load_model("blue-pacific").generate(jobs=300, run_time_factor=1.8)
    rows = [row._replace(priority=int(row.id % 10 == 0)) for row in jobs.rows()]
    machine = cm.Machine(nodes=320, context_switch=cm.ContextSwitch(fraction=0.02))
    result = cm.Scenario(machine=machine, workload=cm.Workload(rows), policy=policy).run()
    survives(result, tmp_path / "schedule.swf.gz")


def test_the_lines_of_a_preempted_job(tmp_path: Path) -> None:
    """Job 1 of 2 nodes runs 0-50, gives way to job 2 (50-150) and runs again 150-250: work of 50 s was discarded."""
    jobs = [cm.Job(id=1, nodes=2, submit_s=0, run_s=100), cm.Job(id=2, nodes=1, submit_s=50, run_s=100, priority=1)]
    result = cm.Scenario(machine=cm.Machine(nodes=2), workload=cm.Workload.from_jobs(jobs), policy="pv-easy").run()
    result.to_swf(path := tmp_path / "out.swf")
    lines = [text for text in path.read_text().splitlines() if not text.startswith(";")]
    assert lines == [
        "1 0 0 100 2 150 -1 2 100 -1 1 -1 -1 -1 -1 -1 -1 -1",
        "1 0 0 50 2 50 -1 2 100 -1 2 -1 -1 -1 -1 -1 -1 -1",
        "1 -1 100 100 2 100 -1 2 100 -1 3 -1 -1 -1 -1 -1 -1 -1",
        "2 50 0 100 1 100 -1 1 100 -1 1 -1 -1 -1 -1 -1 -1 -1",
    ]


def test_real_logs_are_schedules(tmp_path: Path) -> None:
    schedule = cm.read_schedule(trace_path("KTH-SP2-1996-2.2"))
    jobs = cm.read_swf(trace_path("KTH-SP2-1996-2.2"))
    table = schedule.jobs.set_index("job").loc[jobs.column("id")]
    assert table["run_s"].tolist() == jobs.seconds("run").tolist()
    assert len(schedule.run_attempts) == (schedule.jobs["tries"] == 1).sum() > 28_000
    write_swf(tmp_path / "empty.swf", [], header=[])
    with pytest.raises(cm.TraceError, match="no job"):
        cm.read_schedule(tmp_path / "empty.swf")


@pytest.mark.long
@pytest.mark.parametrize("policy", some(["pv-easy:mode=checkpoint", "pv-easy", "mbgs"], one_in=2))
def test_a_year_survives_writing_and_reading(tmp_path: Path, policy: str) -> None:
    jobs, machine = (
        cm.read_swf(trace_path("KTH-SP2-1996-2.2")),
        cm.Machine(nodes=100, checkpointing=cm.Checkpointing(checkpoint_s=120, restart_s=60)),
    )
    if policy == "mbgs":
        jobs = cm.load_model("blue-pacific").generate(run_time_factor=1.4)
        machine = cm.Machine(nodes=320, context_switch=cm.ContextSwitch(fraction=0.02))
    result = cm.Scenario(machine=machine, workload=jobs, policy=policy).run()
    survives(result, tmp_path / "year.swf.gz")
    assert policy == "mbgs" or result.jobs["tries"].max() > 2
