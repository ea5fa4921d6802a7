"""Execution: the missing runs of an experiment are assigned to workers, longest first, and their results are stored.

The workers are this process, a :class:`~concurrent.futures.ProcessPoolExecutor`, or a Dask cluster through its own executor.
Only the process that started the experiment writes results.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from multiprocessing import connection
from multiprocessing.util import Finalize
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from clustermodel.errors import ExecutionError, OutputError, SpecificationError, missing_package, quoted
from clustermodel.experiment.design import Design
from clustermodel.experiment.factors import Trial
from clustermodel.experiment.run_key import Run, difference, software
from clustermodel.experiment.scenario import NOTHING_PLAYED, nothing_played
from clustermodel.experiment.store import Shard, Store, is_there, name_of_listing
from clustermodel.experiment.study_table import StudyTable
from clustermodel.experiment.user_code import ignore_interrupts, interrupts_held, stoppable
from clustermodel.experiment.worker import Differs, Failed, Finished, Origin, Outcome, Task, execute, forget, opened
from clustermodel.leftovers import end_forks_with_this_process, end_without_waiting
from clustermodel.measure.input_notes import unused_costs
from clustermodel.validation import require_seconds, require_whole

AHEAD: Final = 2
"""Runs assigned to each worker at a time, so that a worker never waits for its next run."""
_LOOK_S: Final = 1.0
"""Interval between two checks of the workers while no run ends, seconds."""


_log = logging.getLogger(__name__)


class Progress(NamedTuple):
    """The numbers of a sweep's runs by state."""

    total: int
    done: int
    running: int
    failed: int


class _Workers(Protocol):
    """Processes that run scenarios: this one, others of this machine, or those of a cluster."""

    def submit(self, task: Task) -> Future[Outcome]:
        """Assign a run."""

    def capacity(self) -> int:
        """Return the number of runs that can be in progress at present."""

    def check(self) -> list[Future[Outcome]]:
        """Update the set of workers, and return the runs whose workers are all gone, to be assigned again."""


class Options(NamedTuple):
    """How an experiment is executed."""

    workers: int | None = None
    """Number of processes, 1 for this process; ``None`` for one for each processor, but not more than there are runs."""
    dask: str | None = None
    """Address of a Dask scheduler, instead of processes."""
    dask_options: Mapping[str, Any] = {}
    """Passed on to ``dask.distributed.Client``, for example ``security``."""
    shard: Shard | None = None
    """The part of the trials to run."""
    run_timeout_s: float | None = None
    """Longest wall time of a run, seconds, after which it fails; ``None`` for no limit."""
    progress: Callable[[Progress], None] | None = None
    """Called whenever a run has started or ended."""
    note: Callable[[str], None] | None = None
    """Called at the end with what there is to say about several runs; ``None`` for a warning."""


def run_trials(origin: Origin, directory: str | PathLike[str], options: Options) -> tuple[Design, StudyTable]:
    """Run the missing trials of an experiment, and store their results in ``directory``.

    Args:
        origin: the experiment, or the script that defines it.
        directory: of the results, created if need be.  Stored runs are not repeated; failed runs are.
        options: how.

    Returns:
        The experiment, and the table of the finished trials, of this shard.

    Raises:
        SpecificationError: an option is not allowed, the source is no experiment, a policy has no source, or the directory
            holds another experiment.
        OutputError: results cannot be written; stored results are complete, and no other run is recorded as failed.
        ExecutionError: no workers are left; unfinished runs remain pending.
        KeyboardInterrupt: a signal stopped the experiment; finished runs are kept.
    """
    if options.run_timeout_s is not None:
        seconds = require_seconds("run_timeout_s", options.run_timeout_s, positive=True)
        options = options._replace(run_timeout_s=seconds)
    if options.workers is not None:
        require_whole("workers", options.workers, at_least=1)
    if not (options.progress is None or callable(options.progress)):
        raise SpecificationError(f"progress: {quoted(options.progress)} is not allowed; it must be a callable, or None")
    checked_shard(options.shard)
    directory = Path(directory).absolute()  # a script may change the working directory
    with stoppable():
        try:
            return _run_trials(origin, directory, options)
        finally:
            forget(origin)


def checked_shard(shard: Shard | None) -> None:
    """Refuse a shard that is not a pair of whole numbers I, N with 1 <= I <= N.

    Raises:
        SpecificationError: the shard is refused.
    """
    if shard is None:
        return
    if not isinstance(shard, tuple | list) or len(shard) != 2:
        raise SpecificationError(f"shard: {quoted(shard)} is not allowed; it must be two whole numbers, I and N")
    number, count = (require_whole("shard", part, at_least=1) for part in shard)
    if number > count:
        raise SpecificationError(f"shard: {number} of {count} is not allowed; the first number must not exceed the second")


def _run_trials(origin: Origin, directory: Path, options: Options) -> tuple[Design, StudyTable]:
    experiment = opened(origin)
    design = experiment.design
    version = experiment.version  # before any run
    first = _trials_of(design, design.first_table(), options.shard)
    workers = options.workers or min(os.cpu_count() or 1, max(len(first), 1))
    # A run that catches the exception of its timeout ends only with its process.
    elsewhere = workers > 1 or (options.run_timeout_s is not None and origin.design is None)
    start = not is_there(directory / name_of_listing(options.shard))  # all runs are missing: workers can get ready meanwhile
    using: AbstractContextManager[_Workers]
    if options.dask is not None:
        using = _cluster(origin, options.dask, options.dask_options, options.run_timeout_s, start=start)
    elif elsewhere:
        using = _processes(origin, min(workers, max(len(first), 1)), options.run_timeout_s, start=start)
    else:
        using = nullcontext(_Serial(origin, options.run_timeout_s))
    with using as serving:
        runs = design.runs(first, experiment)
        unplayed: list[str] = []
        with Store.create(directory, design, shard=options.shard, version=version) as store:
            while True:
                store.enter(design, runs)
                unplayed += _run_missing(design, runs, serving, store, options.progress, options.note or _log.warning)
                table = store.table()
                known = {run.trial for run in runs}
                tried = known | set(first)
                following = [trial for trial in _trials_of(design, table, options.shard) if trial not in tried]
                if not following:
                    _note_unplayed(unplayed, options.note)
                    table.notes = tuple(unused_costs([run.costs for run in runs if run.costs is not None]))
                    return design, table
                first = [*first, *following]
                runs = sorted([*runs, *design.runs(following, experiment)], key=lambda run: design.order_of(run.trial))


def _note_unplayed(labels: Sequence[str], note: Callable[[str], None] | None) -> None:
    """Say once that runs in the slow mode had no time slice to simulate."""
    labels = sorted(set(labels))  # runs end in any order
    if labels and note is not None:
        note(f"fidelity node: {nothing_played(labels)}")
    elif labels:
        warnings.warn(f"{NOTHING_PLAYED}: {nothing_played(labels)}", UserWarning, stacklevel=5)


def _trials_of(design: Design, table: StudyTable, shard: Shard | None) -> list[Trial]:
    trials = design.trials(table)
    if shard is None:
        return trials
    number, count = shard
    return [trial for trial in trials if design.shard_of(trial, count) == number]


def _run_missing(
    design: Design,
    runs: Sequence[Run],
    serving: _Workers,
    store: Store,
    progress: Callable[[Progress], None] | None,
    note: Callable[[str], None],
) -> list[str]:
    """Run what is missing, trials with the same key once; return the policies whose slow mode had nothing to simulate."""
    missing = store.missing()
    damaged = [f"run {key}: {what}" for key, what in missing.items() if what]
    if damaged:
        more = f" and {len(damaged) - 1} more" if damaged[1:] else ""
        note(f"{store.directory}: damaged, and run again: {damaged[0]}{more}")
    distinct = {run.key: run for run in sorted(runs, key=lambda run: run.trial.replication, reverse=True)}
    todo = [run for run in distinct.values() if run.key in missing]
    state = _State(design, store, runs, missing, progress)
    _log.info("%s: %d trials, %d runs to do, the others are stored in %s", design.name, len(runs), len(todo), store.directory)
    for run in todo:
        if run.error is not None:
            state.take(run, Failed(run.error))
    order = longest_first([run for run in todo if run.error is None], store.seconds_per_job())
    _run_all([_task_of(design, run) for run in order], {run.key: run for run in order}, serving, state)
    return state.unplayed


def _task_of(design: Design, run: Run) -> Task:
    code = {name: run.specification[name] for name in ("policy", "speedup", "measures")}
    return Task(run.trial, run.key, code, design.tables_of(run.trial, history=run.history))


def longest_first(runs: Sequence[Run], seconds_per_job: Mapping[str, float]) -> list[Run]:
    """Return runs in order of assignment: the run with the longest expected wall time comes first.

    Args:
        runs: of a study.
        seconds_per_job: mean wall time per job of policies that have run before.
    """
    slowest = max(seconds_per_job.values(), default=1.0)  # also of a policy that has not run
    return sorted(runs, key=lambda run: run.jobs * seconds_per_job.get(str(run.specification["policy"]), slowest), reverse=True)


class _State:
    """The outcomes so far: stored, counted by trial and reported."""

    def __init__(
        self,
        design: Design,
        store: Store,
        runs: Sequence[Run],
        missing: Collection[str],
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self._design = design
        self._store = store
        self._trials = Counter(run.key for run in runs)
        self._total = len(runs)
        self._done = sum(run.key not in missing for run in runs)
        self._failed = 0
        self.unplayed: list[str] = []
        """Policies of runs in the slow mode that had no time slice to simulate."""
        self._progress = progress

    def take(self, run: Run, outcome: Outcome) -> None:
        """Store the outcome of a run."""
        factors = self._design.factors_of(run.trial)
        took = f"{outcome.seconds:.2f} s" if isinstance(outcome, Finished) else "failed"
        _log.debug(
            "run %s, %s on %s, seed %s: %s", run.key, run.about["policy"], run.about["workload"], run.about["seed"], took
        )
        if isinstance(outcome, Finished):
            self._store.keep(run, factors, outcome)
            if outcome.nothing_played:
                self.unplayed.append(str(run.about["policy"]))
            self._done += self._trials[run.key]
            return
        if isinstance(outcome, Differs):
            outcome = Failed(difference(run.specification, outcome.specification, run.jobs, outcome.jobs))
        self._store.fail(run, factors, outcome.error)
        self._failed += self._trials[run.key]

    def report(self, running: int) -> None:
        if self._progress is not None:
            self._progress(Progress(self._total, self._done, running, self._failed))


def _run_all(order: Sequence[Task], runs: Mapping[str, Run], workers: _Workers, state: _State) -> None:
    """Assign runs to workers, a few ahead, and store their outcomes, those that arrive before an interrupt too."""
    waiting = list(reversed(order))
    suspects: list[Task] = []  # one of these runs ended the worker processes: each is repeated alone
    running: dict[Future[Outcome], Task] = {}
    try:
        while waiting or suspects or running:
            side_by_side = workers.capacity()
            at_once = side_by_side * AHEAD if side_by_side > 1 else 1
            if suspects and not running:
                task = suspects.pop()
                running[workers.submit(task)] = task
            while waiting and not suspects and len(running) < at_once:
                task = waiting.pop()
                running[workers.submit(task)] = task
            alone = len(running) == 1
            state.report(min(len(running), side_by_side))
            finished, _ = wait(running, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
            for future in finished:
                task = running.pop(future)
                if future.cancelled():  # by a scheduler
                    waiting.append(task)
                elif (outcome := _outcome(future, alone=alone)) is None:
                    suspects.append(task)
                else:
                    state.take(runs[task.key], outcome)
            for future in workers.check():
                if future in running and not future.done():
                    future.cancel()
                    waiting.append(running.pop(future))
        state.report(0)
    except BaseException:
        for future, outcome in _completed(running):
            with suppress(OutputError):  # perhaps the error that stopped the sweep
                state.take(runs[running[future].key], outcome)
        raise


def _outcome(future: Future[Outcome], *, alone: bool) -> Outcome | None:
    """Return the outcome of a run, ``None`` if its worker died and another run may be the cause."""
    try:
        return future.result()
    except BrokenProcessPool as problem:
        return Failed(f"its worker process died: {problem}") if alone else None
    except Exception as problem:  # of the workers themselves, not of the run
        return Failed(f"{type(problem).__name__}: {problem}")


def _completed(running: Mapping[Future[Outcome], Task]) -> Iterator[tuple[Future[Outcome], Outcome]]:
    """Yield the outcomes of completed runs, and cancel the others."""
    for future in running:
        if future.done() and not future.cancelled() and future.exception() is None:
            yield future, future.result()
        else:
            future.cancel()


# This process.


class _Serial:
    """This process as the only worker."""

    def __init__(self, origin: Origin, timeout_s: float | None) -> None:
        self._origin = origin
        self._timeout_s = timeout_s

    def submit(self, task: Task) -> Future[Outcome]:
        """Execute a run."""
        future: Future[Outcome] = Future()
        future.set_result(execute(self._origin, task, self._timeout_s))
        return future

    def capacity(self) -> int:
        """Return the number of runs that can be in progress."""
        return 1

    def check(self) -> list[Future[Outcome]]:
        """Return nothing: this process remains the only worker."""
        return []


# Processes of this machine.


class _Pool:
    """Processes of this machine; when one dies, all are replaced."""

    def __init__(self, origin: Origin, workers: int, timeout_s: float | None) -> None:
        self._origin = origin.sent()
        self._workers = workers
        self._timeout_s = timeout_s
        self._pool = self._made()

    def _made(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._workers, multiprocessing.get_context("spawn"), initializer=_prepare_process, initargs=(self._origin,)
        )

    def start(self) -> None:
        """Start all processes, which prepare the study."""
        _log.info("start %d worker processes", self._workers)
        with interrupts_held(), _without_main():
            self._pool.submit(int)

    def submit(self, task: Task) -> Future[Outcome]:
        """Assign a run."""
        with interrupts_held(), _without_main():  # processes that start now must not receive them
            try:
                return self._pool.submit(_execute_here, task, self._timeout_s)
            except BrokenProcessPool:
                self._pool.shutdown(wait=False)
                self._pool = self._made()
                return self._pool.submit(_execute_here, task, self._timeout_s)

    def capacity(self) -> int:
        """Return the number of runs that can be in progress."""
        return self._workers

    def check(self) -> list[Future[Outcome]]:
        """Return nothing: the run of a process reports that the process died."""
        return []

    def shutdown(self, *, now: bool) -> None:
        """End the processes, ``now`` or after the runs in progress."""
        thread: Any = self._pool._executor_manager_thread  # typeshed has the type of its wake-up pipe
        processes = list((self._pool._processes or {}).values())
        if now:  # the thread must drop cancelled futures before it notices dead processes: it cannot fail a cancelled future
            self._pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.kill()
            if thread is not None:
                thread.join()
        else:
            self._pool.shutdown(wait=True, cancel_futures=True)  # else Python would wake the thread again at exit


@contextmanager
def _processes(origin: Origin, workers: int, timeout_s: float | None, *, start: bool) -> Iterator[_Pool]:
    """Provide processes that end with the block; with ``start`` they prepare the study at once."""
    made = _Pool(origin, workers, timeout_s)
    try:
        if start:
            made.start()
        yield made
    except BaseException:
        made.shutdown(now=True)
        raise
    made.shutdown(now=False)


_received: Origin | None = None


def _prepare_process(origin: Origin) -> None:
    """Make the study; if that fails, its first run reports the error."""
    global _received  # noqa: PLW0603  the argument of a worker process
    _received = origin
    ignore_interrupts()
    end_forks_with_this_process()
    Finalize(None, end_without_waiting, args=(0,), exitpriority=0)  # before Python waits for them
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(BaseException):
        os.chdir(origin.folder)  # the script may have changed it in the parent process
        opened(origin)


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, for whatever reason."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _execute_here(task: Task, timeout_s: float | None) -> Outcome:
    assert _received is not None
    return execute(_received, task, timeout_s)


@contextmanager
def _without_main() -> Iterator[None]:
    """Start processes that do not run the main script again: a script without a guard would start its study in each of them.

    The experiment does not need it: it is sent whole, or made from its own script.
    """
    main = sys.modules["__main__"]
    hidden: dict[str, Any] = {name: vars(main).pop(name) for name in ("__spec__", "__file__") if name in vars(main)}
    vars(main)["__spec__"] = None
    try:
        yield
    finally:
        del vars(main)["__spec__"]
        vars(main).update(hidden)


# A Dask cluster.


class _Cluster:
    """The workers of a Dask cluster that have the software of this process."""

    def __init__(self, client: Any, origin: Origin, address: str, timeout_s: float | None) -> None:
        require_same_software(client, address)
        self._client = client
        self._address = address
        self._timeout_s = timeout_s
        self._known: dict[str, int] = client.ncores()
        self._refused: set[str] = set()
        self._sent = client.scatter(origin.sent(), broadcast=True)
        self._allowed: weakref.WeakKeyDictionary[Future[Outcome], frozenset[str]] = weakref.WeakKeyDictionary()
        self._starting: list[Any] = []

    def start(self) -> None:
        """Let all workers prepare the study."""
        self._starting = [  # kept: a future without references is cancelled
            self._client.submit(_prepare, self._sent, workers=[worker], pure=False) for worker in self._known
        ]

    def submit(self, task: Task) -> Future[Outcome]:
        """Assign a run to the workers that are known."""
        executor = self._client.get_executor(workers=sorted(self._known), pure=False)
        future: Future[Outcome] = executor.submit(execute, self._sent, task, self._timeout_s)
        self._allowed[future] = frozenset(self._known)
        return future

    def _gone(self) -> ExecutionError:
        return ExecutionError(f"--dask: {self._address}: the scheduler has gone")

    def capacity(self) -> int:
        """Return the number of runs that can be in progress at present."""
        return max(sum(self._known.values()), 1)

    def check(self) -> list[Future[Outcome]]:
        """Update the set of workers, and return the runs whose workers are all gone."""
        if self._client.status != "running":
            raise self._gone()
        try:
            present = self._client.ncores()
            for worker in sorted(present.keys() - self._known.keys() - self._refused):
                other = _other_software(self._client, [worker]).get(worker)
                if other is not None:
                    self._refused.add(worker)
                    _log.warning("--dask: worker %s: it has %s; it gets no runs", worker, other)
        except OSError:
            raise self._gone() from None
        known = {worker: cores for worker, cores in present.items() if worker not in self._refused}
        if known.keys() != self._known.keys():
            _log.info("--dask: %d workers: %s", len(known), ", ".join(sorted(known)))
        self._known = known
        return [future for future, allowed in self._allowed.items() if known and not allowed & known.keys()]


@contextmanager
def _cluster(
    origin: Origin, address: str, options: Mapping[str, Any], timeout_s: float | None, *, start: bool
) -> Iterator[_Cluster]:
    """Connect to a Dask cluster for a block; with ``start`` its workers prepare the study at once."""
    try:
        from distributed import Client  # noqa: PLC0415  an extra
    except ImportError:
        raise SpecificationError(missing_package("--dask", "distributed", "dask")) from None
    if "security" in options and not address.startswith("tls://"):
        raise SpecificationError(f"--dask: {address}: TLS files are given, but the address does not use TLS; write tls://...")
    try:
        client: Any = Client(address, **options)
    except (OSError, ValueError, TypeError) as problem:  # a TypeError where tls:// comes without its files
        raise SpecificationError(f"--dask: {address}: {problem}") from None
    except AssertionError:  # of distributed's LoopRunner: its event loop has not begun within 10 s
        raise SpecificationError(f"--dask: {address}: Dask's client has not started; try again") from None
    try:
        made = _Cluster(client, origin, address, timeout_s)
        if start:
            made.start()
        yield made
    finally:
        with suppress(Exception):  # the scheduler may be gone
            client.close(timeout=2)


def _prepare(origin: Origin) -> None:
    """Make the study; if that fails, its first run reports the error."""
    with suppress(BaseException):
        opened(origin)


def require_same_software(client: Any, address: str) -> None:
    """Refuse a cluster without workers, or with a worker that has other software.

    Raises:
        SpecificationError: the cluster is refused; the message names the first such worker and its software.
    """
    there = _other_software(client, None)
    if not there:
        raise SpecificationError(f"--dask: {address}: the scheduler has no workers; start some first")
    for worker, other in sorted(there.items()):
        if other is not None:
            raise SpecificationError(f"--dask: worker {worker}: it has {other}; install the same")


def _other_software(client: Any, workers: Sequence[str] | None) -> dict[str, str | None]:
    """Return for each worker how its software differs from this process's, ``None`` for the same software."""
    ours = software()
    our_package = f"clustermodel {ours['clustermodel']}"
    differs: dict[str, str | None] = {}
    for worker, theirs in client.run(software, workers=workers, on_error="return").items():
        if not isinstance(theirs, dict):
            words = " ".join(f"{type(theirs).__name__}: {theirs}".split())
            differs[worker] = f"no clustermodel that says its version ({words}), and this is {our_package}"
            continue
        name = next((name for name in ours if theirs.get(name) != ours[name]), None)
        if name == "clustermodel_sha256":
            differs[worker] = f"other source files of {our_package}"
        else:
            differs[worker] = None if name is None else f"{name} {theirs.get(name)}, and this is {name} {ours[name]}"
    return differs
