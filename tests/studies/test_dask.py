"""A study on a Dask cluster gives the results of a serial one, also if a worker is killed half-way."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from distributed import LocalCluster

from clustermodel import SpecificationError
from clustermodel.study.engine import Progress, _require_same_package, sweep
from tests.studies.test_sweep import SCRIPT, assert_same, whole

__all__ = ["whole"]


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=True) as started:
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


def test_a_scheduler_without_workers_is_one_line(tmp_path: Path) -> None:
    said = pytest.raises(SpecificationError, match=r"--dask: tcp://.*: the scheduler has no workers; start some first$")
    with LocalCluster(n_workers=0, dashboard_address=":0", processes=True) as cluster, said:
        sweep(SCRIPT, tmp_path / "out", dask=cluster.scheduler_address)


@pytest.mark.parametrize(
    ("theirs", "found"), [("0.0.1", "clustermodel 0.0.1"), (PackageNotFoundError("clustermodel"), "no clustermodel")]
)
def test_workers_with_another_package_are_refused(theirs: object, found: str) -> None:
    """Stands in for a cluster of other installations: it answers as :meth:`distributed.Client.run` does."""

    class Cluster:
        def run(self, function: Callable[..., object], *arguments: object, on_error: str) -> dict[str, object]:
            return {"tcp://one:1": function(*arguments), "tcp://two:2": theirs}

    expected = (
        rf"--dask: worker tcp://two:2: it has {found}, and this is clustermodel {version('clustermodel')}; install the same$"
    )
    with pytest.raises(SpecificationError, match=expected):
        _require_same_package(Cluster(), "tcp://here:1")


def test_workers_that_come_later_get_runs_too(tmp_path: Path) -> None:
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", processes=True) as cluster:

        def grow(progress: Progress) -> None:
            if progress.done == 3:
                cluster.scale(2)
            running.append(progress.running)

        running: list[int] = []
        sweep(SCRIPT, tmp_path / "out", dask=cluster.scheduler_address, progress=grow)
    assert running[0] == 1
    assert max(running) == 2


def test_tls_without_its_files_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match=r"--dask: tls://127\.0\.0\.1:1: "):
        sweep(SCRIPT, tmp_path / "out", dask="tls://127.0.0.1:1", dask_options={"timeout": "2s"})


def test_an_address_where_no_scheduler_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match=r"--dask: tcp://127\.0\.0\.1:1: "):
        sweep(SCRIPT, tmp_path / "out", dask="tcp://127.0.0.1:1", dask_options={"timeout": "2s"})
