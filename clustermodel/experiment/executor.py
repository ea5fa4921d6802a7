"""Execution: the missing runs of an experiment are assigned to workers, those with most jobs first; their results are stored.

Of the last runs, those that take longest are first, so that the workers end together.  The workers are this process, a
:class:`~concurrent.futures.ProcessPoolExecutor`, or a Dask cluster through its own executor.
Only the process that started the experiment writes results.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from clustermodel.errors import ExecutionError, OutputError, SpecificationError, missing_package
from clustermodel.experiment.design import Design
from clustermodel.experiment.factors import Label, Trial
from clustermodel.experiment.run_key import Run, software
from clustermodel.experiment.scenario import NOTHING_PLAYED, nothing_played
from clustermodel.experiment.store import Shard, Store, number_of_runs
from clustermodel.experiment.study_table import Spent, StudyTable
from clustermodel.experiment.user_code import in_main_thread, interrupts_held
from clustermodel.experiment.worker import Origin, Outcome, execute, execute_received, opened, prepare_process
from clustermodel.measure.input_notes import unused_costs
from clustermodel.validation import require, require_whole, seconds_fields, whole_fields

AHEAD: Final = 2  # runs assigned to each worker at a time, so that a worker never waits for its next run
LAST: Final = 8  # runs of each worker at the end, sorted longest first; earlier ones by replication, whose policies share jobs
_NUMBERS_OF_THREADS: Final = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")  # variables, of numpy's libraries
_LOOK_S: Final = 1.0  # interval between two checks of the workers, seconds

_log = logging.getLogger(__name__)


class Progress(NamedTuple):
    """The numbers of a sweep's runs by state."""

    total: int
    done: int
    running: int
    failed: int


@dataclass(frozen=True, kw_only=True)
class Options:
    """How an experiment is executed."""

    workers: int | None = None
    """Number of processes, 1 for this process; by default one for each processor that it may use, but not more than runs."""
    dask: str | None = None
    """Address of a Dask scheduler, instead of processes."""
    dask_options: Mapping[str, Any] = field(default_factory=dict)
    """Passed on to ``dask.distributed.Client``, for example ``security``."""
    shard: Shard | None = None
    """I, N: run part I of N, as a task of a job array."""
    run_timeout_s: float | None = None
    """Longest wall time of a run, seconds, after which it fails; by default there is no limit.  Not with Dask."""
    progress: Callable[[Progress], None] | None = None
    """Called whenever a run has started or ended."""
    note: Callable[[str], None] | None = None
    """Called at the end with what there is to say about several runs; by default this is a warning."""

    def __post_init__(self) -> None:
        seconds_fields(self, "", "run_timeout_s", positive=True)
        whole_fields(self, "", workers=1)
        if self.run_timeout_s is not None and self.dask is not None:
            raise SpecificationError(
                "run_timeout_s: a run in a thread of a Dask worker cannot be stopped; use worker processes"
            )
        if self.run_timeout_s is not None and not hasattr(signal, "setitimer"):
            raise SpecificationError("run_timeout_s: this system has no timer that could stop a run; leave it out")
        require(self.progress is None or callable(self.progress), "progress", self.progress, "it must be a callable, or None")
        if self.shard is not None:
            pair = isinstance(self.shard, tuple | list) and len(self.shard) == 2
            require(pair, "shard", self.shard, "it must be two whole numbers, I and N")
            number, count = (require_whole("shard", part, at_least=1) for part in self.shard)
            if number > count:
                must = "the first number must not exceed the second"
                raise SpecificationError(f"shard: {number} of {count} is not allowed; {must}")


def run_trials(origin: Origin, directory: str | PathLike[str], options: Options) -> tuple[Design[Any], StudyTable]:
    """Run the missing trials of an experiment, and return it with the table of the finished trials, of this shard."""
    directory = Path(directory).absolute()  # a script may change the working directory
    experiment = opened(origin)
    design, shard, version = experiment.design, options.shard, experiment.version  # before any run
    tried: set[Trial] = set()

    def new_trials(table: StudyTable) -> list[Trial]:
        trials = [trial for trial in design.trials(table) if trial not in tried]
        tried.update(trials)
        return trials if shard is None else [trial for trial in trials if design.shard_of(trial, shard[1]) == shard[0]]

    def runs_of(trials: Sequence[Trial]) -> list[Run]:
        began = time.perf_counter()
        runs = experiment.runs(trials)
        preparing.append(time.perf_counter() - began)
        return runs

    preparing: list[float] = []
    following = new_trials(design.first_table())
    with _workers(origin, options, max(len(following), 1)) as workers:
        if (missing := len(following) - number_of_runs(directory)) > 0:
            workers.start(missing)  # while this process makes the scenarios
        runs = runs_of(following)
        store = Store.create(directory, design, shard=shard, version=version)
        outcomes = _Outcomes(design, store, options)
        while True:
            store.enter(design, runs)
            _run_all(outcomes.missing(runs), workers, outcomes)
            table = store.table()
            if not (following := new_trials(table)):
                break
            runs += runs_of(following)
    unplayed = nothing_played(sorted(outcomes.unplayed)) if outcomes.unplayed else ""
    if unplayed and options.note is not None:
        options.note(f"fidelity node: {unplayed}")
    elif unplayed:
        warnings.warn(f"{NOTHING_PLAYED}: {unplayed}", UserWarning, stacklevel=3)
    table.notes = tuple(unused_costs([run.costs for run in runs if run.costs is not None]))
    table.spent = Spent(outcomes.in_runs_s, outcomes.preparing_s + sum(preparing))
    return design, table


class _Outcomes:
    """The outcomes so far: stored, counted by trial and reported."""

    def __init__(self, design: Design[Any], store: Store, options: Options) -> None:
        self._design, self._store, self._options = design, store, options
        self.unplayed: set[str] = set()  # policies of runs in the slow mode that had no time slice to simulate
        self.in_runs_s, self.preparing_s = 0.0, 0.0  # of all workers together
        self._took: dict[tuple[Label, ...], float] = {}  # wall time of a run of each point, seconds

    def missing(self, runs: Sequence[Run]) -> list[Run]:
        """Return the runs to do, trials with the same key once, those with most jobs first."""
        missing = self._store.missing()
        if damaged := [f"run {key}: {what}" for key, what in missing.items() if what]:
            more = f" and {len(damaged) - 1} more" if damaged[1:] else ""
            note = self._options.note or _log.warning
            note(f"{self._store.directory}: damaged, and run again: {damaged[0]}{more}")
        distinct = {run.key: run for run in sorted(runs, key=lambda run: run.trial.replication, reverse=True)}
        todo = [run for run in distinct.values() if run.key in missing]
        _log.info("%s: %d trials, %d runs to do in %s", self._design.name, len(runs), len(todo), self._store.directory)
        self._trials = Counter(run.key for run in runs)
        self._done, self._failed = sum(run.key not in missing for run in runs), 0
        for run in todo:
            if run.error is not None:
                self.take(run, Outcome(error=run.error))
        # The first replications first: only they keep tables, which a report of an unfinished study shows.
        return sorted((run for run in todo if run.error is None), key=lambda run: (-run.jobs, run.trial.replication))

    def take(self, run: Run, outcome: Outcome) -> None:
        """Store the outcome of a run."""
        took = "failed" if outcome.error else f"{outcome.seconds:.2f} s"
        _log.debug("run %s, %s on %s, seed %s: %s", run.key, *(run.about[n] for n in ("policy", "workload", "seed")), took)
        self._store.keep(run, outcome)
        self.in_runs_s += outcome.seconds
        self.preparing_s += outcome.preparing_s
        if outcome.nothing_played:
            self.unplayed.add(str(run.about["policy"]))
        if outcome.error:
            self._failed += self._trials[run.key]
        else:
            self._done += self._trials[run.key]
            self._took[run.trial.point] = outcome.seconds

    def sort_last(self, waiting: list[Run], workers: int) -> None:
        """Sort the last runs, the next one last: most jobs, then the longest time of another replication, if there was one."""
        if workers > 1 and len(waiting) <= workers * LAST:
            waiting.sort(key=lambda run: (run.jobs, self._took.get(run.trial.point, inf)))

    def report(self, running: int) -> None:
        if self._options.progress is not None:
            self._options.progress(Progress(self._trials.total(), self._done, running, self._failed))


def _run_all(order: Sequence[Run], workers: _Serial, outcomes: _Outcomes) -> None:
    """Assign runs to workers, a few ahead, and store their outcomes, those that arrive before an interrupt too."""
    waiting = list(reversed(order))
    suspects: list[Run] = []  # one of these runs ended the worker processes: each is repeated alone
    repeating = False
    running: dict[Future[Outcome], Run] = {}
    try:
        while waiting or suspects or running:
            side_by_side = workers.capacity()
            at_once = side_by_side * AHEAD if side_by_side > 1 else 1
            repeating = bool(suspects) or (repeating and bool(running))
            outcomes.sort_last(waiting, side_by_side)
            queue = suspects or waiting
            while queue and len(running) < (1 if repeating else at_once):
                run = queue.pop()
                running[workers.submit(run)] = run
            alone = len(running) == 1
            outcomes.report(min(len(running), side_by_side))
            for future in wait(running, timeout=_LOOK_S, return_when=FIRST_COMPLETED).done:
                run = running.pop(future)
                if future.cancelled():  # by a scheduler
                    waiting.append(run)
                    continue
                try:
                    outcome = future.result()
                except BrokenProcessPool as problem:
                    if not alone:
                        suspects.append(run)
                        continue
                    outcome = Outcome(error=f"its worker process died: {problem}")
                except Exception as problem:  # of the workers themselves, not of the run
                    outcome = Outcome(error=f"{type(problem).__name__}: {problem}")
                outcomes.take(run, outcome)
            for future in workers.lost():
                if future in running and not future.done():
                    future.cancel()
                    waiting.append(running.pop(future))
        outcomes.report(0)
    except BaseException:
        for future, run in running.items():
            if not future.cancel() and future.done() and future.exception() is None:
                with suppress(OutputError):  # perhaps the error that stopped the sweep
                    outcomes.take(run, future.result())
        raise


def _processors() -> int:
    """Return how many processors this process may use: in a job of a cluster, not all of the node's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _workers(origin: Origin, options: Options, most: int) -> _Serial:
    """Return workers, at most so many processes."""
    count = options.workers or min(_processors(), most)
    if options.dask is not None:
        return _Cluster(origin, options, options.dask)
    # A timeout is an alarm, which only a main thread receives; a run that catches it ends only with its process.
    needs_process = options.run_timeout_s is not None and (origin.design is None or not in_main_thread())
    if count > 1 or needs_process:
        return _Pool(origin, options, min(count, most))
    return _Serial(origin, options)


class _Serial:
    """This process as the only worker."""

    def __init__(self, origin: Origin, options: Options) -> None:
        self._origin = origin
        self._timeout_s = options.run_timeout_s
        self._count = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End other processes: at once after an exception, else after the runs in progress."""

    def start(self, runs: int) -> None:
        """Let workers start for so many runs, which follow."""

    def submit(self, run: Run) -> Future[Outcome]:
        """Assign a run."""
        future: Future[Outcome] = Future()
        future.set_result(execute(self._origin, run, self._timeout_s))
        return future

    def capacity(self) -> int:
        """Return the number of runs that can be in progress at present."""
        return self._count

    def lost(self) -> list[Future[Outcome]]:
        """Return the runs whose workers are all gone, to be assigned again."""
        return []


class _Pool(_Serial):
    """Processes of this machine; when one dies, all are replaced."""

    def __init__(self, origin: Origin, options: Options, workers: int) -> None:
        super().__init__(origin.sent(), options)
        self._count = workers
        spawn, given = multiprocessing.get_context("spawn"), (self._origin,)
        self._make = partial(ProcessPoolExecutor, workers, spawn, initializer=prepare_process, initargs=given)
        self._pool = self._make()

    def start(self, runs: int) -> None:
        with _starting_processes(), suppress(BrokenProcessPool):  # which the first run will notice
            for _ in range(min(self._count, runs)):
                self._pool.submit(int)  # which its initializer has prepared

    def submit(self, run: Run) -> Future[Outcome]:
        with _starting_processes():
            try:
                return self._pool.submit(execute_received, run, self._timeout_s)
            except BrokenProcessPool:
                self._pool.shutdown(wait=False)
                self._pool = self._make()
                return self._pool.submit(execute_received, run, self._timeout_s)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        thread: Any = self._pool._executor_manager_thread  # typeshed has the type of its wake-up pipe
        processes = list((self._pool._processes or {}).values())
        # With waiting: else Python would wake the thread again at exit.  Without: the thread must drop cancelled futures before
        # it notices dead processes, since it cannot fail a cancelled future.
        self._pool.shutdown(wait=kind is None, cancel_futures=True)
        if kind is not None:
            for process in processes:
                process.kill()
            if thread is not None:
                thread.join()


@contextmanager
def _starting_processes() -> Iterator[None]:
    """Let processes start that do not run the main script again, and that calculate in one thread: each has one core.

    The script, if it has no guard, would start its study again.  The experiment is sent whole, or made from its own script.
    """
    main = vars(sys.modules["__main__"])
    with interrupts_held():
        hidden: dict[str, Any] = {name: main.pop(name) for name in ("__spec__", "__file__") if name in main}
        main["__spec__"] = None
        added = {name: "1" for name in _NUMBERS_OF_THREADS if name not in os.environ}
        os.environ.update(added)
        try:
            yield
        finally:
            for name in added:
                del os.environ[name]
            del main["__spec__"]
            main.update(hidden)


class _Cluster(_Serial):
    """The workers of a Dask cluster that have the software of this process."""

    def __init__(self, origin: Origin, options: Options, address: str) -> None:
        super().__init__(origin.sent(), options)
        try:
            from distributed import Client  # noqa: PLC0415  an extra
        except ImportError:
            raise SpecificationError(missing_package("--dask", "distributed", "dask")) from None
        self._address = f"--dask: {address}"
        if "security" in options.dask_options and not address.startswith("tls://"):
            raise SpecificationError(f"{self._address}: TLS files are given, but the address does not use TLS; write tls://...")
        try:
            self._client: Any = Client(address, **options.dask_options)
        except (OSError, ValueError, TypeError) as problem:  # a TypeError where tls:// comes without its files
            raise SpecificationError(f"{self._address}: {problem}") from None
        except AssertionError:  # of distributed's LoopRunner: its event loop has not begun within 10 s
            raise SpecificationError(f"{self._address}: Dask's client has not started; try again") from None
        self._known: dict[str, int] = {}  # workers with their cores
        self._refused: set[str] = set()
        self._allowed: weakref.WeakKeyDictionary[Future[Outcome], frozenset[str]] = weakref.WeakKeyDictionary()
        self._looked = 0.0  # when the scheduler was last asked for its workers
        try:
            self._known = self._client.ncores()
            if not self._known:
                raise SpecificationError(f"{self._address}: the scheduler has no workers; start some first")
            for worker, other in sorted(_other_software(self._client, None).items()):
                raise SpecificationError(f"--dask: worker {worker}: it has {other}; install the same")
            self._sent = self._client.scatter(self._origin, broadcast=True)
        except BaseException:
            self.__exit__(None)
            raise

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with suppress(Exception):  # the scheduler may be gone
            self._client.close(timeout=2)

    def submit(self, run: Run) -> Future[Outcome]:
        executor = self._client.get_executor(workers=sorted(self._known), pure=False)
        future: Future[Outcome] = executor.submit(execute, self._sent, run, self._timeout_s)
        self._allowed[future] = frozenset(self._known)
        return future

    def capacity(self) -> int:
        return max(sum(self._known.values()), 1)

    def lost(self) -> list[Future[Outcome]]:
        gone = ExecutionError(f"{self._address}: the scheduler has gone")
        if self._client.status != "running":
            raise gone
        if time.monotonic() < self._looked + _LOOK_S:
            return []
        self._looked = time.monotonic()
        try:
            present = self._client.ncores()
            if new := sorted(present.keys() - self._known.keys() - self._refused):
                for worker, other in _other_software(self._client, new).items():
                    self._refused.add(worker)
                    _log.warning("--dask: worker %s: it has %s; it gets no runs", worker, other)
        except OSError:
            raise gone from None
        known = {worker: cores for worker, cores in present.items() if worker not in self._refused}
        if known.keys() != self._known.keys():
            _log.info("--dask: %d workers: %s", len(known), ", ".join(sorted(known)))
        self._known = known
        return [future for future, allowed in self._allowed.items() if known and not allowed & known.keys()]


def _other_software(client: Any, workers: Sequence[str] | None) -> dict[str, str]:
    """Return the workers whose software differs from this process's, and how."""
    ours = software()
    package = f"clustermodel {ours['clustermodel']}"
    differs: dict[str, str] = {}
    for worker, theirs in client.run(software, workers=workers, on_error="return").items():
        if not isinstance(theirs, dict):
            words = " ".join(f"{type(theirs).__name__}: {theirs}".split())
            differs[worker] = f"no clustermodel that says its version ({words}), and this is {package}"
        elif name := next((name for name in ours if theirs.get(name) != ours[name]), ""):
            other = f"{name} {theirs.get(name)}, and this is {name} {ours[name]}"
            differs[worker] = f"other source files of {package}" if name == "clustermodel_sha256" else other
    return differs
