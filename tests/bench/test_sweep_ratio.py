"""A study of forty runs: two processes against one, Dask with two workers against two processes, and the price of keys."""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter

import dask
import pytest
from distributed import LocalCluster

from clustermodel import sweep

AS_IN_THE_GUIDE = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s"}
"""Settings of Dask that docs/guide_cluster.md recommends: workers are not interrupted a hundred times a second."""
pytestmark = pytest.mark.slow_bench

SCRIPT = Path(__file__).with_name("study_of_forty.py")


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two processes need two processors")
def test_two_processes_are_nearly_twice_as_fast_and_dask_as_fast_as_they(tmp_path: Path) -> None:
    def seconds(name: str, **options: object) -> float:
        began = perf_counter()
        table = sweep(SCRIPT, tmp_path / name, **options)  # type: ignore[arg-type]
        assert (len(table), table.failures) == (40, ())
        return perf_counter() - began

    one, two = seconds("one", workers=1), seconds("two", workers=2)
    nothing_to_do = seconds("one", workers=1)  # makes all jobs and keys, reads the store and compares every digest
    workers = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with dask.config.set(AS_IN_THE_GUIDE), LocalCluster(**workers) as cluster:
        on_dask = seconds("dask", dask=cluster.scheduler_address)
    print(
        f"\n40 runs: one process {one:.1f} s, two processes {one / two:.2f} times as fast, Dask {on_dask / two:.2f}x their "
        f"time; reading and keys {nothing_to_do / one:.2%} of one process"
    )
    assert one >= 1.8 * two
    assert nothing_to_do <= 0.02 * one
    assert on_dask <= 1.1 * two
