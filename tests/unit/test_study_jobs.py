"""The jobs of a study, from a trace or synthetic."""

import os
from pathlib import Path

import numpy as np
import pytest

from clustermodel import TraceError, Workload, synthetic_workload, write_swf
from clustermodel.workload.synthetic import STUDY_JOBS, STUDY_LOAD, study_jobs


def columns(workload: Workload) -> list[list[int]]:
    return [workload.column(name).tolist() for name in ("submit", "nodes", "run", "estimate")]


def test_synthetic_jobs_depend_on_the_seed() -> None:
    jobs = study_jobs(None, jobs=100, nodes=64, seed=3)
    assert columns(jobs) == columns(synthetic_workload(jobs=100, nodes=64, load=STUDY_LOAD, seed=3))
    assert columns(jobs) != columns(study_jobs(None, jobs=100, nodes=64, seed=4))
    again = study_jobs(None, jobs=100, nodes=64, seed=3)
    assert np.shares_memory(again.column("run"), jobs.column("run")), "kept, not drawn again"
    assert len(study_jobs(None)) == STUDY_JOBS


def test_a_trace_has_the_same_jobs_for_every_seed(tmp_path: Path) -> None:
    path = tmp_path / "trace.swf"
    rows = [(number, 10 * number, -1, 5 + number, 2, -1, -1, 2, 100, -1, 1, 1, 1, -1, 1, -1, -1, -1) for number in range(1, 51)]
    write_swf(path, rows, header=[("MaxNodes", 8)])
    whole = study_jobs(path, seed=1)
    assert study_jobs(str(path), seed=2, nodes=7) is whole
    assert len(whole) == 50
    first = study_jobs(path, jobs=20)
    assert columns(first) == [column[:20] for column in columns(whole)]
    assert (first.name, first.machine_nodes, first.provenance) == (whole.name, whole.machine_nodes, whole.provenance)
    assert len(study_jobs(path, jobs=500)) == 50


def test_a_missing_trace_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"nowhere\.swf: cannot be read"):
        study_jobs(tmp_path / "nowhere.swf")


def test_a_trace_that_is_written_again_is_read_again(tmp_path: Path) -> None:
    trace = tmp_path / "trace.swf"
    for number, jobs in ((1, 3), (2, 5)):
        lines = [f"{job} {job} -1 10 1 -1 -1 1 10 -1 1 1 1 -1 -1 -1 -1 -1" for job in range(1, jobs + 1)]
        trace.write_text("; MaxProcs: 4\n" + "\n".join(lines) + "\n")
        os.utime(trace, ns=(number, number))
        assert len(study_jobs(trace)) == jobs
        assert len(study_jobs(trace, jobs=2)) == 2
