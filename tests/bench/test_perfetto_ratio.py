"""The Perfetto trace of a run: how long it takes as a ratio to the run, and that many jobs take no longer each than few."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest

from clustermodel import Machine, Result, Scenario, synthetic_workload

pytestmark = pytest.mark.bench

JOBS = 20_000


def seconds(result: Result, path: Path) -> float:
    """Return the processor time of writing the trace of a run, the least of three."""
    times = []
    for _ in range(3):
        began = process_time()
        result.to_perfetto(path)
        times.append(process_time() - began)
    return min(times)


def run(jobs: int) -> tuple[Result, float]:
    """Return a run and its processor time."""
    workload = synthetic_workload(jobs=jobs, nodes=128, load=0.9)
    began = process_time()
    return Scenario(machine=Machine(nodes=128), workload=workload, policy="easy").run(), process_time() - began


def test_a_trace_takes_about_as_long_as_the_run_and_its_time_grows_with_the_jobs(tmp_path: Path) -> None:
    few, _ = run(JOBS // 10)
    many, of_run = run(JOBS)
    of_few, of_many = (seconds(result, tmp_path / "run.pftrace") for result in (few, many))
    print(f"{JOBS:,} jobs: run {of_run:.2f} s, trace {of_many:.2f} s; {JOBS // 10:,} jobs: trace {of_few:.2f} s")
    assert of_many <= 2 * of_run
    assert of_many <= 15 * of_few
