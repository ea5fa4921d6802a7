"""Running a study: one after the other, on processes of this machine, or on a Dask cluster.

The engines are :mod:`concurrent.futures` and the executor that :mod:`dask.distributed` offers with the same interface; here
is only what a worker does, and in which order runs are given out.  A worker makes the study once, from its script or as it
was sent, and keeps the workloads it has made.  Only the process that was started writes results.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import platform
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, NamedTuple

from clustermodel.errors import ClusterModelError, SpecificationError
from clustermodel.study.scenario import Result, Scenario
from clustermodel.study.script import read_script, run_script
from clustermodel.study.store import LEDGER, PLACEMENTS, RECORDS, STATES_OVER_TIME, Finished, Store
from clustermodel.study.sweep import Run, Study
from clustermodel.workload.table import JobSource

AHEAD: Final = 2
"""Runs that each worker is given before it has finished the first: it does not wait for the next one."""
_SLOW: Final = {"gs": 8.0, "bgs": 8.0, "mgs": 10.0, "mbgs": 15.0, "adaptive": 8.0, "slack": 6.0, "conservative": 2.0, "bf": 2.0}
"""How long policies take per job, roughly, relative to EASY; until the store knows better."""


class Origin(NamedTuple):
    """From what a worker makes the study: a script, or the study itself."""

    script: str | None
    text: str | None
    study: Study | None

    @classmethod
    def of(cls, source: Study | Path) -> Origin:
        """Return the origin of a study.

        Raises:
            SpecificationError: the script cannot be read.
        """
        return cls(None, None, source) if isinstance(source, Study) else cls(str(source), read_script(source), None)

    def open(self) -> Study:
        """Return the study.

        Raises:
            SpecificationError: the script fails, or defines no study.
        """
        if self.study is not None:
            return self.study
        assert self.script is not None
        assert self.text is not None
        path = Path(self.script)
        defined = run_script(path, self.text)
        found = defined.get("study")
        if found is None and (scenarios := defined.get("scenarios", defined.get("scenario"))) is not None:
            listed = [scenarios] if isinstance(scenarios, Scenario) else list(scenarios() if callable(scenarios) else scenarios)
            found = Study(name=path.stem, scenarios=listed)
        if not isinstance(found, Study):
            raise SpecificationError(
                f"{path}: defines neither `study` (a Study) nor `scenarios` (an iterable of Scenario, or a function of none)"
            )
        return found


@dataclass
class _Opened:
    """A study in the process that runs it."""

    study: Study
    made: dict[tuple[str, int], JobSource] = field(default_factory=dict)


_opened: dict[tuple[str | None, str | None], _Opened] = {}


def _open(origin: Origin) -> _Opened:
    """Return the study of ``origin``; one that came from a script is made once in each process."""
    if origin.study is not None:
        return _Opened(origin.study)
    where = origin.script, origin.text
    if where not in _opened:
        _opened[where] = _Opened(origin.open())
    return _opened[where]


class Failed(NamedTuple):
    """Why a run has failed, in the words of its error."""

    error: str


def execute(origin: Origin, position: int) -> Finished | Failed:
    """Run one scenario of a study, in whatever process this is."""
    try:
        opened = _open(origin)
        began = time.perf_counter()
        result = opened.study.scenario(position, opened.made).run()
        seconds = time.perf_counter() - began
        summary = json.dumps(result.summary(warm_up_s=opened.study.warm_up_s).as_dict(), allow_nan=False)
        return Finished(summary, _tables(result), seconds, versions())
    except ClusterModelError as problem:
        return Failed(str(problem))
    except Exception:
        return Failed(traceback.format_exc().strip())


def _tables(result: Result) -> dict[str, bytes]:
    tables = {RECORDS: result.jobs, STATES_OVER_TIME: result.states}
    if result.slices is None or result.scenario.history:
        tables[PLACEMENTS] = result.placements
    files = {}
    for name, table in tables.items():
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        files[name] = buffer.getvalue()
    return files


def versions() -> dict[str, str]:
    """Return the versions of everything that makes the numbers."""
    packages = ("clustermodel", "simpy", "numpy", "scipy", "pandas")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


class Progress(NamedTuple):
    """How far a sweep is."""

    total: int
    done: int
    running: int
    failed: int


def sweep(
    source: Study | Path,
    directory: Path,
    *,
    workers: int = 1,
    dask: str | None = None,
    dask_options: Mapping[str, Any] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> dict[str, int]:
    """Run what is missing of a study, and keep it in ``directory``.

    Args:
        source: the study, or the script that defines it.
        directory: where the results are; it is made if need be.  Runs that are there are not repeated; those that failed are.
        workers: processes; 1 is this one.
        dask: address of a Dask scheduler, instead of processes.
        dask_options: passed on to ``dask.distributed.Client``, for example ``security``.
        progress: called whenever a run has begun or ended.

    Returns:
        How many runs are in each state.

    Raises:
        SpecificationError: the study is none, has two equal runs, or the directory holds another one.
        OutputError: results cannot be written.
    """
    origin = Origin.of(source)
    opened = _open(origin)
    study = opened.study
    is_new = not (directory / LEDGER).is_file()
    with _executor(origin, min(workers, len(study)), dask, dask_options or {}, start=is_new) as (submit, width):
        runs = study.runs(opened.made)
        if workers > 1 or dask is not None:
            opened.made.clear()  # workers make their own
        positions = {run.key: at for at, run in enumerate(runs)}
        with Store.create(directory, study, runs) as store:
            missing = store.missing() & positions.keys()
            order = longest_first([run for run in runs if run.key in missing], store.seconds_per_job())
            state = _State(store, len(runs), len(runs) - len(missing), progress)
            _give_out([(run.key, positions[run.key]) for run in order], submit, width, state)
            return store.states()


def longest_first(runs: Sequence[Run], seconds_per_job: Mapping[str, float]) -> list[Run]:
    """Return runs in the order in which they are given out: the one that will probably take longest comes first.

    Args:
        runs: of a study.
        seconds_per_job: of policies that have run before.
    """
    known = sum(seconds_per_job.values()) / len(seconds_per_job) if seconds_per_job else 1.0

    def effort(run: Run) -> float:
        policy = str(run.factors["policy"])
        return run.jobs * seconds_per_job.get(policy, known * _SLOW.get(policy.partition(":")[0], 1.0))

    return sorted(runs, key=effort, reverse=True)


class _State:
    """What has come back so far."""

    def __init__(self, store: Store, total: int, done: int, progress: Callable[[Progress], None] | None) -> None:
        self._store = store
        self._total = total
        self._done = done
        self._failed = 0
        self._progress = progress

    def take(self, key: str, outcome: Finished | Failed) -> None:
        if isinstance(outcome, Finished):
            self._store.keep(key, outcome)
            self._done += 1
        else:
            self._store.fail(key, outcome.error)
            self._failed += 1

    def report(self, running: int) -> None:
        if self._progress is not None:
            self._progress(Progress(self._total, self._done, running, self._failed))


Submit = Callable[[int], "Future[Finished | Failed]"]


def _give_out(order: Sequence[tuple[str, int]], submit: Submit, width: Callable[[], int], state: _State) -> None:
    """Give out runs, a few ahead of the workers, and take what comes back, also if this is interrupted."""
    waiting = list(reversed(order))
    suspects: list[tuple[str, int]] = []  # one of them has taken the worker processes with it: each is tried alone
    running: dict[Future[Finished | Failed], tuple[str, int]] = {}
    try:
        while waiting or suspects or running:
            side_by_side = width()
            at_once = side_by_side * AHEAD if side_by_side > 1 else 1
            if suspects and not running:
                task = suspects.pop()
                running[submit(task[1])] = task
            while waiting and not suspects and len(running) < at_once:
                task = waiting.pop()
                running[submit(task[1])] = task
            alone = len(running) == 1
            state.report(min(len(running), side_by_side))
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                task = running.pop(future)
                try:
                    state.take(task[0], future.result())
                except BrokenProcessPool as problem:
                    if alone:
                        state.take(task[0], Failed(f"its worker process died: {problem}"))
                    else:
                        suspects.append(task)
                except Exception as problem:  # of the engine, which has done what it could
                    state.take(task[0], Failed(f"{type(problem).__name__}: {problem}"))
        state.report(0)
    except BaseException:
        for future, task in running.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                state.take(task[0], future.result())
            else:
                future.cancel()
        raise


@contextmanager
def _executor(
    origin: Origin, workers: int, dask: str | None, dask_options: Mapping[str, Any], *, start: bool
) -> Iterator[tuple[Submit, Callable[[], int]]]:
    """Return a function that submits the run at a position, and one that tells how many can run side by side at present.

    With ``start`` workers get ready meanwhile: they import what they need and make the study.
    """
    if dask is not None:
        with _dask_client(dask, dask_options) as client:
            sent = client.scatter(origin, broadcast=True)
            ready = [client.submit(_get_ready, sent, workers=[worker], pure=False) for worker in client.ncores() if start]
            with client.get_executor(pure=False) as executor:
                yield lambda position: executor.submit(execute, sent, position), lambda: max(sum(client.ncores().values()), 1)
            del ready  # kept until here: a future that nobody holds is cancelled
    elif workers == 1:
        yield lambda position: _done(execute(origin, position)), lambda: 1
    else:
        pool = _Pool(origin, workers)
        try:
            if start:
                pool.start()
            yield pool.submit, lambda: workers
        except BaseException:
            pool.shutdown(now=True)
            raise
        pool.shutdown(now=False)


def _done(outcome: Finished | Failed) -> Future[Finished | Failed]:
    """Return a future of what has been done already."""
    future: Future[Finished | Failed] = Future()
    future.set_result(outcome)
    return future


class _Pool:
    """Processes of this machine; when one dies, all are replaced."""

    def __init__(self, origin: Origin, workers: int) -> None:
        self._origin = origin
        self._workers = workers
        self._pool = self._made()

    def _made(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._workers, multiprocessing.get_context("spawn"), initializer=_receive, initargs=(self._origin,)
        )

    def start(self) -> None:
        """Start all processes, which get ready."""
        with _ignoring_ctrl_c():
            self._pool.submit(int)

    def submit(self, position: int) -> Future[Finished | Failed]:
        with _ignoring_ctrl_c():  # processes that are started now ignore it from the beginning: it is for this one
            try:
                return self._pool.submit(_execute_received, position)
            except BrokenProcessPool:
                self._pool.shutdown(wait=False)
                self._pool = self._made()
                return self._pool.submit(_execute_received, position)

    def shutdown(self, *, now: bool) -> None:
        if now:
            for process in list((self._pool._processes or {}).values()):
                process.terminate()
        self._pool.shutdown(wait=not now, cancel_futures=True)


@contextmanager
def _ignoring_ctrl_c() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # which alone can say so, and is alone interrupted
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


_received: Origin | None = None


def _receive(origin: Origin) -> None:
    global _received  # noqa: PLW0603  what a worker process is started with
    _received = origin
    _get_ready(origin)


def _get_ready(origin: Origin) -> None:
    """Make the study; if that fails, its first run will say so."""
    with suppress(Exception):
        _open(origin)


def _execute_received(position: int) -> Finished | Failed:
    assert _received is not None
    return execute(_received, position)


@contextmanager
def _dask_client(address: str, options: Mapping[str, Any]) -> Iterator[Any]:
    try:
        from distributed import Client  # noqa: PLC0415  an extra
    except ImportError:
        raise SpecificationError(
            "--dask: the package distributed is missing; pip install 'clustermodel[dask]', or '.[dask]' in a checkout"
        ) from None
    try:
        client: Any = Client(address, **options)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError) as problem:  # a TypeError where tls:// comes without its files
        raise SpecificationError(f"--dask: {address}: {problem}") from None
    try:
        _require_same_package(client, address)
        yield client
    finally:
        client.close()


def _require_same_package(client: Any, address: str) -> None:
    """Refuse a cluster without workers, and workers that have no clustermodel, or another version of it."""
    ours = version("clustermodel")
    there = client.run(version, "clustermodel", on_error="return")
    if not there:
        raise SpecificationError(f"--dask: {address}: the scheduler has no workers; start some first")
    for worker, theirs in sorted(there.items()):
        if theirs != ours:
            found = "no clustermodel" if isinstance(theirs, PackageNotFoundError) else f"clustermodel {theirs}"
            raise SpecificationError(
                f"--dask: worker {worker}: it has {found}, and this is clustermodel {ours}; install the same"
            )
