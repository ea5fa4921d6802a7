"""Inputs of other simulators in JSON: Batsim's workloads are read as far as they have run times, others are named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clustermodel import Machine, Scenario, TraceError, read_sacct, read_trace

PROFILES: dict[str, Any] = {
    "short": {"type": "delay", "delay": 20.25},
    "twice": {"type": "composed", "repeat": 2, "seq": ["short", "short"]},
    "nested": {"type": "SequentialCompositionProfile", "seq": ["twice", "short"]},
    "flops": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0},
    "mixed": {"type": "composed", "seq": ["short", "flops"]},
    "nothing": {"type": "delay", "delay": 0},
    "circle": {"type": "composed", "seq": ["short", "circle"]},
    "long": {"type": "composed", "seq": ["short"], "repeat": 10**9},
}
JOB = {"id": "1", "subtime": 5, "res": 2, "profile": "short"}


@pytest.fixture
def workload_of(tmp_path: Path) -> Callable[..., Path]:
    """Return what writes a workload of Batsim."""

    def write(*jobs: dict[str, Any], name: str = "workload.json", **more: Any) -> Path:
        content = {"nb_res": 4, "jobs": [{**JOB, **job} for job in jobs], "profiles": PROFILES, **more}
        (path := tmp_path / name).write_text(json.dumps(content))
        return path

    return write


def test_a_workload_of_batsim_is_read(workload_of: Callable[..., Path]) -> None:
    path = workload_of(
        {"id": "w0!7", "subtime": 10, "walltime": 100.5}, {"id": "w0!3", "profile": "twice"},
        {"id": "w0!5", "profile": "nested", "walltime": -1}, {"id": "w0!4", "profile": "flops"},
        {"id": "w0!6", "profile": "mixed"}, {"id": "w0!8", "profile": "nothing"}, name="jobs",
    )  # fmt: skip
    workload = read_trace(path)
    frame = workload.frame.set_index("job")
    assert frame["submit_s"].to_dict() == {3: 5, 5: 5, 7: 10}
    assert frame["run_s"].to_dict() == {3: 81, 5: 101.25, 7: 20.25}
    assert frame["estimate_s"].to_dict() == {3: 81, 5: 101.25, 7: 100.5}
    assert workload.machine_nodes == 4
    assert dict(workload.provenance.dropped) == {
        "of profile type 'parallel_homogeneous', whose run time only a platform gives": 2, "run time zero": 1,
    }  # fmt: skip
    assert Scenario(workload=workload, policy="fcfs").run().jobs["start_s"].tolist() == [5, 5, 86]


def test_a_job_ends_at_its_walltime(workload_of: Callable[..., Path]) -> None:
    run = Scenario(workload=read_trace(workload_of({"walltime": 8})), machine=Machine(nodes=2), policy="easy").run()
    assert run.jobs[["end_s", "status"]].to_numpy().tolist() == [[13, "killed"]]


def test_jobs_without_numbers_are_numbered(workload_of: Callable[..., Path]) -> None:
    assert read_trace(workload_of({"id": "a"}, {"id": "2"})).column("id").tolist() == [1, 2]
    assert read_trace(workload_of({"id": 9}, {"id": 9})).column("id").tolist() == [1, 2]
    assert read_trace(workload_of({"id": 9}, {"id": 4})).column("id").tolist() == [4, 9]


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({"res": 0}, "jobs[0]: res: 0; it must be a whole number >= 1 and <= 1e+10"),
        ({"res": 1.5}, "jobs[0]: res: 1.5; it must be a whole number >= 1 and <= 1e+10"),
        ({"res": True}, "jobs[0]: res: True; it must be a whole number >= 1 and <= 1e+10"),
        ({"subtime": None}, "jobs[0]: subtime: missing; it must be a number >= 0 and <= 1e+10"),
        ({"subtime": float("nan")}, "jobs[0]: subtime: nan; it must be a number >= 0 and <= 1e+10"),
        ({"subtime": float("inf")}, "jobs[0]: subtime: inf; it must be a number >= 0 and <= 1e+10"),
        ({"subtime": 10**400}, "; it must be a number >= 0 and <= 1e+10"),
        ({"subtime": "x"}, "jobs[0]: subtime: 'x'; it must be a number >= 0 and <= 1e+10"),
        ({"walltime": -2}, "jobs[0]: walltime: -2; it must be a number >= -1 and <= 1e+10"),
        ({"profile": "none"}, "jobs[0]: profile: 'none' is not among the profiles"),
        ({"profile": "circle"}, "is a sequence of sequences without end"),
        ({"profile": "long"}, "profiles: long: it takes 2.025e+10 s; at most 1e+10 s are allowed"),
        (
            {"profile": "flops"},
            "no usable job: 1 of profile type 'parallel_homogeneous', whose run time only a platform gives; a job has a "
            "run time if its profile is a delay",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(workload_of: Callable[..., Path], job: dict[str, Any], said: str) -> None:
    path = workload_of(job)
    with pytest.raises(TraceError) as refused:
        read_trace(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert str(refused.value).endswith(said)
    assert "\n" not in str(refused.value)


def test_the_jobs_of_elastisim_are_named(tmp_path: Path) -> None:
    job = {"type": "rigid", "submit_time": 0, "num_nodes": 4, "application_model": "model.json", "arguments": {"x": 2}}
    (path := tmp_path / "jobs.json").write_text(json.dumps({"jobs": [job, {**job, "submit_time": 9}]}))
    with pytest.raises(TraceError, match=r"it is a jobs file of ElastiSim, which has no run times") as refused:
        read_trace(path)
    assert "damaged" not in str(refused.value)


def test_other_json_is_not_taken_for_sacct(tmp_path: Path, workload_of: Callable[..., Path]) -> None:
    (path := tmp_path / "jobs.json").write_text(json.dumps({"jobs": [{"a": 1}] * 250}))
    for reader in (read_trace, read_sacct):
        with pytest.raises(TraceError, match="none of") as refused:
            reader(path)
        assert "damaged" not in str(refused.value)
    with pytest.raises(TraceError, match="none of"):
        read_sacct(workload_of({}))


def test_a_history_of_htcondor_is_named(write_trace: Callable[..., Path]) -> None:
    path = write_trace("ClusterId = 3301", "ProcId = 0", 'Owner = "ann"', "QDate = 1700000000", name="history")
    with pytest.raises(TraceError) as refused:
        read_trace(path)
    assert str(refused.value).startswith(f"{path}: it is a history file of HTCondor, which is not read; ")
