"""A study on a Dask cluster gives the results of a serial one, also if a worker is killed half-way."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from distributed import Client, LocalCluster

import clustermodel
from clustermodel import SpecificationError
from clustermodel.errors import ExecutionError
from clustermodel.experiment.executor import Progress
from clustermodel.experiment.run_key import Run, software
from clustermodel.experiment.script import sweep
from clustermodel.experiment.store import STUDY_FILE, Store
from clustermodel.experiment.worker import Outcome
from tests.studies.test_sweep import SCRIPT, assert_same, held, swept, whole

pytestmark = pytest.mark.long

__all__ = ["whole"]
OURS = version("clustermodel")
DASK = str(Path(sys.executable).with_name("dask"))


def test_so_it_does_when_a_worker_is_killed_half_way_and_no_run_is_lost_or_stored_twice(
    cluster: LocalCluster, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    kept: Counter[str] = Counter()
    keep = Store.keep

    def counting(self: Store, run: Run, outcome: Outcome) -> None:
        kept[run.key] += 1
        keep(self, run, outcome)

    monkeypatch.setattr(Store, "keep", counting)

    def kill_one(progress: Progress) -> None:
        if progress.done >= 8 and not killed:
            victim = cluster.workers[0].pid
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    sweep(SCRIPT, tmp_path / "out", dask=cluster.scheduler_address, progress=kill_one)
    assert killed
    assert {f"{key}.json": count for key, count in kept.items()} == dict.fromkeys(held(whole).keys() - {STUDY_FILE}, 1)
    assert_same(tmp_path / "out", whole)


def test_a_scheduler_without_workers_is_one_line(tmp_path: Path) -> None:
    said = pytest.raises(SpecificationError, match=r"--dask: tcp://.*: the scheduler has no workers; start some first$")
    with LocalCluster(n_workers=0, dashboard_address=":0", processes=True) as cluster, said:
        sweep(SCRIPT, tmp_path / "out", dask=cluster.scheduler_address)


@pytest.mark.parametrize(
    ("theirs", "found"),
    [
        ({**software(), "clustermodel": "0.0.1"}, f"clustermodel 0.0.1, and this is clustermodel {OURS}"),
        (
            ModuleNotFoundError("clustermodel"),
            rf"no clustermodel that says its version \(ModuleNotFoundError: clustermodel\), and this is clustermodel {OURS}",
        ),
        ({**software(), "numpy": "0.0.2"}, f"numpy 0.0.2, and this is numpy {version('numpy')}"),
    ],
)
def test_workers_with_another_package_are_refused(
    theirs: object, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stands in for a cluster of other installations: it answers as :meth:`distributed.Client.run` does."""

    class Cluster:
        def __init__(self, address: str) -> None:
            pass

        def ncores(self) -> dict[str, int]:
            return {"tcp://one:1": 1, "tcp://two:2": 1}

        def run(self, function: Callable[..., object], *, workers: list[str] | None, on_error: str) -> dict[str, object]:
            return {"tcp://one:1": function(), "tcp://two:2": theirs}

    monkeypatch.setattr("distributed.Client", Cluster)
    expected = rf"--dask: worker tcp://two:2: it has {found}; install the same$"
    with pytest.raises(SpecificationError, match=expected):
        sweep(SCRIPT, tmp_path, dask="tcp://here:1")


WHERE = """
import os, time
from clustermodel import Study, synthetic_workload

def process(result):
    time.sleep(0.1)
    return os.getpid()

study = Study.grid(
    name="where",
    workloads={"made": lambda seed: synthetic_workload(jobs=20, seed=seed)},
    policies=["easy", "fcfs"],
    replications=20,
    measures={"process": process},
)
"""


def test_workers_that_come_later_get_runs_too(tmp_path: Path) -> None:
    script = tmp_path / "where.py"
    script.write_text(WHERE)
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", processes=True) as cluster:

        def grow(progress: Progress) -> None:
            if progress.done == 3:
                cluster.scale(2)
                cluster.wait_for_workers(2)
            running.append(progress.running)

        running: list[int] = []
        table = sweep(script, tmp_path / "out", dask=cluster.scheduler_address, progress=grow)
    assert running[0] == 1
    assert max(running) == 2
    assert len(table) == 40
    assert len(set(table.frame["process"])) == 2


@pytest.mark.parametrize(
    ("address", "options", "said"),
    [
        ("tls://127.0.0.1:1", {"timeout": "2s"}, ""),
        ("tcp://127.0.0.1:1", {"timeout": "2s"}, ""),
        ("tcp://127.0.0.1:1", {"security": "any"}, "TLS files are given, but the address does not use TLS"),
    ],
)
def test_an_address_that_cannot_be_used_is_one_line(tmp_path: Path, address: str, options: dict[str, str], said: str) -> None:
    with pytest.raises(SpecificationError, match=f"--dask: {address}: {said}"):
        sweep(SCRIPT, tmp_path / "out", dask=address, dask_options=options)


def test_a_client_that_does_not_start_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stalls(*_: object, **__: object) -> None:
        raise AssertionError  # as distributed.utils.LoopRunner does after 10 s

    monkeypatch.setattr("distributed.Client", stalls)
    with pytest.raises(SpecificationError, match=r"--dask: tcp://127\.0\.0\.1:1: Dask's client has not started"):
        sweep(SCRIPT, tmp_path / "out", dask="tcp://127.0.0.1:1")


def test_workers_with_other_sources_that_come_later_get_no_runs(
    tmp_path: Path, whole: Path, caplog: pytest.LogCaptureFixture
) -> None:
    package = Path(clustermodel.__file__).parent
    shutil.copytree(package, tmp_path / "other" / "clustermodel")
    for compiled in package.parent.glob("clustermodel__mypyc*"):  # what compiled modules share
        shutil.copy(compiled, tmp_path / "other")
    with open(tmp_path / "other" / "clustermodel" / "ticks.py", "a") as file:
        file.write("\n# another day\n")
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", processes=True) as cluster:
        joined: list[subprocess.Popen[bytes]] = []

        def grow(progress: Progress) -> None:
            if progress.done >= 3 and not joined:
                command = [DASK, "worker", cluster.scheduler_address, "--nthreads", "1", "--no-dashboard", "--name", "late"]
                environment = {**os.environ, "PYTHONPATH": str(tmp_path / "other")}
                joined.append(subprocess.Popen(command, env=environment, cwd=tmp_path, stderr=subprocess.DEVNULL))
                while len(cluster.scheduler_info["workers"]) < 2 and joined[0].poll() is None:
                    time.sleep(0.05)
            running.append(progress.running)

        running: list[int] = []
        try:
            sweep(SCRIPT, tmp_path / "out", dask=cluster.scheduler_address, progress=grow)
        finally:
            for process in joined:
                process.kill()
                process.wait()
    assert max(running) == 1
    assert "it has other source files of clustermodel" in caplog.text
    assert_same(tmp_path / "out", whole)


def test_a_scheduler_that_dies_is_one_line_and_its_runs_are_pending(tmp_path: Path, whole: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    address = f"tcp://127.0.0.1:{port}"
    command = [DASK, "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"]
    scheduler = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    worker = subprocess.Popen(
        [DASK, "worker", address, "--nworkers", "1", "--nthreads", "1", "--no-dashboard"], stderr=subprocess.DEVNULL
    )
    began = time.monotonic()
    try:
        with Client(address, timeout="30s") as client:  # type: ignore[no-untyped-call]
            client.wait_for_workers(1)  # type: ignore[no-untyped-call]

        def kill_it(progress: Progress) -> None:
            if progress.done >= 5 and scheduler.poll() is None:
                nonlocal began
                began = time.monotonic()
                scheduler.kill()
                scheduler.wait()

        with pytest.raises(ExecutionError, match=rf"--dask: {address}: the scheduler has gone$"):
            sweep(SCRIPT, tmp_path / "out", dask=address, progress=kill_it)
        assert time.monotonic() - began < 120  # a bound on a hang
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()
    with Store.read(tmp_path / "out") as store:
        states = store.states()
        assert all("too many jobs for me" in error for _, error in store.failures())
    assert states["done"] >= 5
    assert states["pending"] > 0
    sweep(SCRIPT, tmp_path / "out", workers=1)
    assert_same(tmp_path / "out", whole)


def test_a_worker_with_another_environment_fails_the_run_and_says_what_differs(cluster: LocalCluster, tmp_path: Path) -> None:
    script = tmp_path / "environment.py"
    script.write_text(
        "import os\n"
        "from clustermodel import synthetic_workload\n"
        "from clustermodel.experiment.study import Study\n"
        "jobs = int(os.environ.get('CLUSTERMODEL_TEST_JOBS', '50'))\n"
        "workloads = {'made': lambda seed: synthetic_workload(jobs=jobs, seed=seed)}\n"
        "study = Study.grid(name='environment', workloads=workloads, policies=['easy', 'fcfs'])\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLUSTERMODEL_TEST_JOBS", "200")  # here, after the workers have been started
        states = swept(script, tmp_path / "out", workers=None, dask=cluster.scheduler_address)
    assert states == {"pending": 0, "done": 0, "failed": 2}
    with Store.read(tmp_path / "out") as store:
        for _, error in store.failures():
            assert error.startswith("it was run on other jobs: 50 there and 200 here")
            assert "seed its random generators, and read no environment" in error


def test_a_timeout_is_refused_since_no_thread_can_be_stopped(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match="run_timeout_s: a run in a thread of a Dask worker cannot be stopped"):
        sweep(SCRIPT, tmp_path / "out", dask="tcp://127.0.0.1:1", run_timeout_s=4)
