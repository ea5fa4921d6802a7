"""A study of forty runs: two processes against one, and a Dask cluster of two workers against two processes."""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter

import dask
import pytest
from distributed import LocalCluster

from clustermodel.study.engine import sweep

AS_IN_THE_GUIDE = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s"}
"""Settings of Dask that docs/guide_cluster.md recommends: workers are not interrupted a hundred times a second."""
SCRIPT = Path(__file__).with_name("study_of_forty.py")


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two processes need two processors")
@pytest.mark.parametrize(
    ("jobs", "faster", "dask_at_most"),
    [
        # Starting two processes takes a second, which short runs do not make up for: this only guards.
        pytest.param(10_000, 1.2, 1.3, marks=pytest.mark.bench, id="short"),
        pytest.param(60_000, 1.8, 1.1, marks=pytest.mark.slow_bench, id="long"),
    ],
)
def test_two_processes_are_nearly_twice_as_fast_and_dask_as_fast_as_they(
    jobs: int, faster: float, dask_at_most: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBS_OF_FORTY", str(jobs))

    def seconds(name: str, **options: object) -> float:
        began = perf_counter()
        states = sweep(SCRIPT, tmp_path / name, **options)  # type: ignore[arg-type]
        assert states == {"pending": 0, "done": 40, "failed": 0}
        return perf_counter() - began

    one, two = seconds("one"), seconds("two", workers=2)
    workers = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with dask.config.set(AS_IN_THE_GUIDE), LocalCluster(**workers) as cluster:
        on_dask = seconds("dask", dask=cluster.scheduler_address)
    print(
        f"\n40 runs of {jobs:,} jobs: one process {one:.1f} s, two processes {one / two:.2f} times as fast, "
        f"Dask {on_dask / two:.2f}x their time"
    )
    assert one >= faster * two
    assert on_dask <= dask_at_most * two
