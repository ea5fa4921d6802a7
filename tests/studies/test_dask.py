"""A study on a Dask cluster gives the results of a serial one, also if a worker is killed half-way."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import LocalCluster

from clustermodel import SpecificationError
from clustermodel.study.engine import Progress, sweep
from tests.studies.test_sweep import SCRIPT, assert_same, whole

__all__ = ["whole"]


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True) as started:
        yield started


def test_a_cluster_gives_the_same_results(cluster: LocalCluster, whole: Path, tmp_path: Path) -> None:
    sweep(SCRIPT, tmp_path / "out", dask=cluster.scheduler_address)
    assert_same(tmp_path / "out", whole)


def test_so_it_does_when_a_worker_is_killed_half_way(cluster: LocalCluster, whole: Path, tmp_path: Path) -> None:
    killed = []

    def kill_one(progress: Progress) -> None:
        if progress.done >= 8 and not killed:
            victim = cluster.workers[0].pid
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    sweep(SCRIPT, tmp_path / "out", dask=cluster.scheduler_address, progress=kill_one)
    assert killed
    assert_same(tmp_path / "out", whole)


def test_an_address_where_no_scheduler_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match=r"--dask: tcp://127\.0\.0\.1:1: "):
        sweep(SCRIPT, tmp_path / "out", dask="tcp://127.0.0.1:1", dask_options={"timeout": "2s"})
