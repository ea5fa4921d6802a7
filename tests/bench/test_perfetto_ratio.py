"""The Perfetto trace of a run: how long it takes as a ratio to the run, and that many jobs take no longer each than few."""

from pathlib import Path

import pytest

from clustermodel import Machine, Scenario, synthetic_workload
from tests.bench.timing import best_of, require_at_most, size

pytestmark = pytest.mark.bench

JOBS = size(20_000)


def scenario(jobs: int) -> Scenario:
    workload = synthetic_workload(jobs=jobs, nodes=128, load=0.9)
    return Scenario(machine=Machine(nodes=128), workload=workload, policy="easy")


def test_a_trace_takes_about_as_long_as_the_run_and_its_time_grows_with_the_jobs(tmp_path: Path) -> None:
    few, many = (scenario(jobs).run() for jobs in (JOBS // 10, JOBS))
    path = tmp_path / "run.pftrace"

    def beside_the_run() -> float:
        run_s, trace_s = best_of(scenario(JOBS).run, lambda: many.to_perfetto(path), rounds=1)
        print(f"\n{JOBS:,} jobs: run {run_s:.2f} s, trace {trace_s:.2f} s")
        return trace_s / run_s

    def beside_a_tenth() -> float:
        few_s, many_s = best_of(lambda: few.to_perfetto(path), lambda: many.to_perfetto(path))
        print(f"trace of ten times the jobs: {many_s / few_s:.1f} times as long")
        return many_s / few_s

    require_at_most(15, beside_a_tenth)  # 10.5 to 11.3 were measured; it imports what traces need
    require_at_most(2, beside_the_run)
