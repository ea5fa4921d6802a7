"""Streamed runs against the same runs in memory: equal summaries where sums are exact, quantiles within the stated error."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import clustermodel as cm
from clustermodel.measure import metrics
from clustermodel.measure.metrics import QUANTILE_ERROR
from clustermodel.recording import job_records

OF_THE_WHOLE_SCHEDULE = {
    "delayed", "mean_delay_by_later_s", "longest_delay_by_later_s", "reservation_violations", "benign_violations",
    "failure_violations",
}  # fmt: skip
QUANTILES = {"median_wait_s": 0.5, "p95_wait_s": 0.95}


def assert_streams_alike(scenario: cm.Scenario, path: Path) -> cm.Result:
    kept, streamed = scenario.run(), replace(scenario, stream=path).run()
    expected, found = kept.summary().as_dict(), streamed.summary().as_dict()
    assert streamed.submitted == kept.submitted == len(kept.records)
    assert repr(streamed.ledger) == repr(kept.ledger)
    waits = np.sort(kept.jobs["wait_s"].dropna().to_numpy())
    for name, value in found.items():
        if name in OF_THE_WHOLE_SCHEDULE:
            assert value is None
        elif name in QUANTILES and len(waits) <= metrics.EXACT:
            assert value == pytest.approx(expected[name], rel=1e-12)
        elif name in QUANTILES:
            at = waits[math.floor(QUANTILES[name] * (len(waits) - 1))]
            assert abs(value - at) <= QUANTILE_ERROR * at + 1e-9
        elif isinstance(value, float):  # added in another order
            assert value == pytest.approx(expected[name], rel=1e-12)
        else:
            assert value == expected[name]
    jobs = pd.read_parquet(path).set_index("job")
    expected_jobs = kept.jobs.set_index("job").drop(columns="stream")
    pd.testing.assert_frame_equal(
        jobs.drop(columns="dedicated_run_s").loc[expected_jobs.index], expected_jobs, check_dtype=False, check_exact=True
    )
    assert (jobs["dedicated_run_s"] >= 0).equals(jobs["status"] != "rejected")  # else unknown
    return kept


CHECKPOINTS = cm.Checkpointing(checkpoint_s=30.0, restart_s=60.0, interval_s=3600.0)


@pytest.mark.parametrize("exact", [100, metrics.EXACT])
@pytest.mark.parametrize(
    ("policy", "checkpointing"),
    [
        ("fcfs", cm.Checkpointing()),
        ("easy", CHECKPOINTS),
        ("slack:awt=600", cm.Checkpointing()),  # needs no other run
        ("pv-easy", cm.Checkpointing()),
        ("pv-easy:mode=checkpoint", CHECKPOINTS),
        ("R/L-NG:speculation=0.5", cm.Checkpointing()),
        ("R/L-NG:width=half,widening=true", cm.Checkpointing()),
    ],
)
def test_a_streamed_run_has_the_summary_and_the_jobs_of_the_run_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, checkpointing: cm.Checkpointing, exact: int
) -> None:
    monkeypatch.setattr(job_records, "BLOCK", 100)
    monkeypatch.setattr(metrics, "EXACT", exact)
    jobs = [cm.Job(id=1_000, submit_s=1e9, nodes=200, run_s=5, estimate_s=5)]  # rejected
    workload = cm.Workload([*cm.synthetic_workload(jobs=300, load=0.95).rows(), *cm.Workload.from_jobs(jobs).rows()])
    machine = cm.Machine(nodes=128, checkpointing=checkpointing)
    kept = assert_streams_alike(cm.Scenario(workload=workload, machine=machine, policy=policy), tmp_path / "jobs.parquet")
    assert kept.summary().rejected == 1


def one_by_one(**changes: object) -> cm.Scenario:
    return cm.Scenario(**{"workload": cm.synthetic_workload(jobs=20), "machine": cm.Machine(nodes=128), **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        (lambda: one_by_one(policy="bgs"), "stream: the policy shares nodes in time, and the log of time slices grows"),
        (lambda: one_by_one(policy="slack"), "stream: policy slack is calibrated by a run of conservative, which keeps"),
        (lambda: one_by_one(workload=[cm.synthetic_workload(jobs=5)] * 2), "stream: several job streams are not allowed"),
        (lambda: one_by_one(explain=True), "stream: a decision log .explain. is not allowed"),
        (lambda: one_by_one(history=True), "stream: a history is not allowed"),
        (
            lambda: one_by_one(machine=cm.Machine(nodes=128, failures=cm.NodeFailures(mtbf_s=1e6, repair_s=1.0))),
            "stream: a machine with failures is not allowed",
        ),
        (
            lambda: one_by_one(workload=cm.Workload.from_jobs([job(2, 0), job(1, 5)])),
            "stream: job 1 is submitted after job 2; the ids of a streamed run must rise",
        ),
    ],
)
def test_what_cannot_be_streamed_is_refused_in_one_line(scenario: Callable[[], cm.Scenario], message: str) -> None:
    with pytest.raises(cm.SpecificationError, match=message) as refused:
        replace(scenario(), stream=True).run()
    assert "\n" not in str(refused.value)


def job(number: int, submit_s: float) -> cm.Job:
    return cm.Job(id=number, submit_s=submit_s, nodes=1, run_s=5, estimate_s=5)


def test_a_number_that_is_used_twice_is_an_error(tmp_path: Path) -> None:
    cm.write_swf(tmp_path / "jobs.swf", [(1, at, -1, 5, 1, *[-1] * 13) for at in (0, 1)], header=[("MaxProcs", 8)])
    with pytest.raises(cm.SpecificationError, match="job id 1 is submitted twice"):
        cm.Scenario(workload=cm.SwfStream(tmp_path / "jobs.swf"), stream=True).run()


def test_a_streamed_run_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="clustermodel"):
        one_by_one(stream=True).run()
    assert [record.message.partition(" in ")[0] for record in caplog.records][-1] == "run easy: 20 jobs"


def test_an_empty_path_is_no_file() -> None:
    with pytest.raises(cm.OutputError):
        one_by_one(stream="").run()


def test_a_file_that_cannot_be_written_is_an_error_and_a_failed_run_leaves_none(tmp_path: Path) -> None:
    with pytest.raises(cm.OutputError, match="cannot be written"):
        one_by_one(stream=tmp_path / "nowhere" / "jobs.parquet").run()
    with pytest.raises(cm.SpecificationError, match="shares nodes in time"):
        one_by_one(policy="gs", stream=tmp_path / "jobs.parquet").run()
    assert list(tmp_path.iterdir()) == []


def test_the_command_streams_a_trace_into_files_of_jobs(command_line: Callable[..., object], tmp_path: Path) -> None:
    trace = tmp_path / "jobs.swf"
    cm.write_swf(trace, [(i, 10 * i, -1, 60, 1 + i % 4, *[-1] * 13) for i in range(1, 200)], header=[("MaxProcs", 8)])
    done = command_line("run", "--trace", trace, "--policy", "easy", "--stream", "--jobs-parquet", tmp_path / "out", "--json")
    assert (done.code, len(pd.read_parquet(tmp_path / "out" / "easy.parquet"))) == (0, 199)
    kept = command_line("run", "--trace", trace, "--policy", "easy", "--json")
    same = [line for line in done.out.splitlines() if "utilization" in line or '"jobs"' in line]
    assert same == [line for line in kept.out.splitlines() if "utilization" in line or '"jobs"' in line]
    small = command_line("run", "--trace", trace, "--stream", "--default-memory", 2, "--node-memory", 1, "--json")
    assert '"rejected": 199' in small.out
    table = command_line("run", "--trace", trace, "--policy", "easy", "--policy", "fcfs", "--stream", "--size", "1:3")
    assert table.out.startswith("policy\tjobs")


def test_what_a_streamed_trace_leaves_out_is_told_once_as_of_one_in_memory(
    command_line: Callable[..., object], write_trace: Callable[..., Path]
) -> None:
    lines = [" ".join(map(str, (i, 10 * i, -1, 60 * (i % 3), 1, *[-1] * 13))) for i in range(1, 9)]
    trace = write_trace("; MaxProcs: 8", "no job", *lines)
    told = []
    for stream in ([], ["--stream"]):
        done = command_line("run", "--trace", trace, "--policy", "easy", "--policy", "fcfs", "--lenient", *stream)
        assert done.code == 0
        told.append([line for line in done.err.splitlines() if line.startswith("jobs: ")])
    assert told[0] == told[1] == [
        "jobs: 1 job dropped: malformed line",
        "jobs: 2 jobs dropped: run time zero",
        "jobs: 6 jobs repaired: requested_time missing, run_time used",
    ]  # fmt: skip


@pytest.mark.parametrize("lines", [(), ("; MaxProcs: 8", f"1 0 -1 0 1 {'-1 ' * 13}"), ("no job",)])
def test_a_trace_without_a_usable_job_is_refused_streamed_as_in_memory(
    command_line: Callable[..., object], write_trace: Callable[..., Path], lines: tuple[str, ...]
) -> None:
    trace = write_trace(*lines)
    kept, streamed = (
        command_line("run", "--trace", trace, "--nodes", 8, "--policy", "easy", "--lenient", *stream)
        for stream in ((), ("--stream", "--jobs-parquet", trace.parent / "out"))
    )
    assert kept.code == streamed.code == 2
    assert kept.err.startswith(f"clustermodel: error: {trace}: no usable job: ")
    assert streamed.err.splitlines()[-1].startswith(f"clustermodel: error: {trace}: no usable job: ")
    assert list((trace.parent / "out").iterdir()) == []


def test_a_log_of_sacct_is_not_taken_for_swf(command_line: Callable[..., object], write_trace: Callable[..., Path]) -> None:
    log = write_trace("JobID|Submit|Start|End|State|NNodes|NCPUS", name="jobs.sacct")
    done = command_line("run", "--trace", log, "--policy", "easy", "--stream")
    assert (done.code, done.err) == (
        2,
        f"clustermodel: error: --stream: {log} is read as sacct, but only SWF job by job; 'clustermodel trace import' makes "
        "SWF of it\n",
    )


def test_a_scenario_file_may_say_that_its_run_is_streamed(command_line: Callable[..., object], tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    one_by_one(policy="easy", stream=True).to_toml(path)
    done = command_line("run", path, "--jobs-parquet", tmp_path / "out")
    assert (done.code, len(pd.read_parquet(tmp_path / "out" / "easy.parquet"))) == (0, 20)
    refused = command_line("run", path, "--jobs-csv", tmp_path / "out")
    assert (refused.code, refused.err) == (
        2, "clustermodel: error: --jobs-csv: not allowed with --stream, which keeps no jobs\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stream", "--jobs-csv", "out"], "--jobs-csv: not allowed with --stream, which keeps no jobs"),
        (["--jobs-parquet", "out"], "--jobs-parquet: it needs --stream"),
        (["--stream", "--trace", "x.swf", "--feedback"], "--feedback: not allowed with --stream, which reads SWF job by job"),
        (["--stream", "--trace", "x.swf", "--estimates", "phi:0.5"], "--estimates: phi is not allowed with --stream"),
    ],
)
def test_options_that_do_not_go_with_streams_are_refused(
    command_line: Callable[..., object], arguments: list[str], message: str
) -> None:
    done = command_line("run", *arguments)
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "read",
    [
        lambda run: run.jobs,
        lambda run: run.run_attempts,
        lambda run: run.by_class(),
        lambda run: run.by_user(),
        lambda run: run.fairness(),
        lambda run: run.events,
        lambda run: run.placements,
        lambda run: run.plot.gantt(),
        lambda run: run.records,
        lambda run: run.to_csv("jobs.csv"),
        lambda run: run.to_swf("jobs.swf"),
        lambda run: run.summary(warm_up_s=60.0),
    ],
)
def test_what_needs_the_jobs_is_refused_in_one_line(read: Callable[[cm.Result], object]) -> None:
    jobs = cm.synthetic_workload(jobs=20).with_default_memory(1.0)
    run = one_by_one(workload=jobs, machine=cm.Machine(nodes=128, node_memory_gib=2.0), stream=True).run()
    assert run.submitted == 20
    with pytest.raises(cm.SpecificationError, match=r"streamed run.* keeps no jobs"):
        read(run)


def test_a_study_keeps_the_jobs_of_its_runs() -> None:
    study = cm.Study(
        name="streams", factors={"load": [0.5]}, scenario=lambda load, seed: one_by_one(seed=seed, stream=load < 1)
    )
    with pytest.raises(
        cm.SpecificationError, match=r"Scenario\.stream: not allowed in a study, which keeps the jobs of its runs"
    ):
        study.run(workers=1)


@pytest.mark.parametrize("value", [1, None, ["jobs.parquet"]])
def test_stream_is_a_flag_or_a_path(value: object) -> None:
    with pytest.raises(
        cm.SpecificationError, match=r"^Scenario\.stream: .* not allowed; it must be True, False or the path of"
    ):
        one_by_one(stream=value)
