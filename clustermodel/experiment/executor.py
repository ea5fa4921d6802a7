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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import connection
from multiprocessing.util import Finalize
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from clustermodel.errors import ExecutionError, OutputError, SpecificationError, missing_package, quoted
from clustermodel.experiment.factors import Trial
from clustermodel.experiment.run_key import Run, software
from clustermodel.experiment.scenario import NOTHING_PLAYED, nothing_played
from clustermodel.experiment.store import Shard, Store, is_there, name_of_listing
from clustermodel.experiment.study_table import StudyTable
from clustermodel.experiment.user_code import ignore_interrupts, interrupts_held, stoppable
from clustermodel.experiment.worker import Origin, Outcome, execute, forget, opened
from clustermodel.leftovers import end_forks_with_this_process, end_without_waiting
from clustermodel.measure.input_notes import unused_costs
from clustermodel.validation import require_seconds, require_whole

if TYPE_CHECKING:
    from clustermodel.experiment.study import Experiment

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


def run_trials(origin: Origin, directory: str | PathLike[str], options: Options) -> tuple[Experiment[Any], StudyTable]:
    """Run the missing trials of an experiment, and return it with the table of the finished trials, of this shard.

    Raises:
        SpecificationError: an option is not allowed, the source is no experiment, a policy has no source, or the directory
            holds another experiment.
        OutputError: results cannot be written; stored results are complete, and no other run is recorded as failed.
        ExecutionError: no workers are left; unfinished runs remain pending.
        KeyboardInterrupt: a signal stopped the experiment; finished runs are kept.
    """
    if options.run_timeout_s is not None:
        options = options._replace(run_timeout_s=require_seconds("run_timeout_s", options.run_timeout_s, positive=True))
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
    """Refuse a shard that is not a pair of whole numbers I, N with 1 <= I <= N."""
    if shard is None:
        return
    if not isinstance(shard, tuple | list) or len(shard) != 2:
        raise SpecificationError(f"shard: {quoted(shard)} is not allowed; it must be two whole numbers, I and N")
    number, count = (require_whole("shard", part, at_least=1) for part in shard)
    if number > count:
        raise SpecificationError(f"shard: {number} of {count} is not allowed; the first number must not exceed the second")


def _run_trials(origin: Origin, directory: Path, options: Options) -> tuple[Experiment[Any], StudyTable]:
    experiment = opened(origin)
    design, shard = experiment.design, options.shard
    version = experiment.version  # before any run
    asked = _trials_of(design, design.first_table(), shard)
    ahead = not is_there(directory / name_of_listing(shard))  # all runs are missing: workers can get ready meanwhile
    with _workers(origin, options, most=max(len(asked), 1), ahead=ahead) as workers:
        runs = design.runs(asked, experiment)
        unplayed: list[str] = []
        with Store.create(directory, design, shard=shard, version=version) as store:
            while True:
                store.enter(design, runs)
                unplayed += _run_missing(design, runs, workers, store, options)
                table = store.table()
                tried = {*asked, *(run.trial for run in runs)}
                following = [trial for trial in _trials_of(design, table, shard) if trial not in tried]
                if not following:
                    _note_unplayed(unplayed, options.note)
                    table.notes = tuple(unused_costs([run.costs for run in runs if run.costs is not None]))
                    return design, table
                asked += following
                runs = sorted([*runs, *design.runs(following, experiment)], key=lambda run: design.order_of(run.trial))


def _trials_of(design: Experiment[Any], table: StudyTable, shard: Shard | None) -> list[Trial]:
    trials = design.trials(table)
    return trials if shard is None else [trial for trial in trials if design.shard_of(trial, shard[1]) == shard[0]]


def _note_unplayed(labels: Sequence[str], note: Callable[[str], None] | None) -> None:
    """Say once that runs in the slow mode had no time slice to simulate."""
    labels = sorted(set(labels))  # runs end in any order
    if labels and note is not None:
        note(f"fidelity node: {nothing_played(labels)}")
    elif labels:
        warnings.warn(f"{NOTHING_PLAYED}: {nothing_played(labels)}", UserWarning, stacklevel=5)


def _run_missing(design: Experiment[Any], runs: Sequence[Run], workers: _Serial, store: Store, options: Options) -> list[str]:
    """Run what is missing, trials with the same key once; return the policies whose slow mode had nothing to simulate."""
    missing = store.missing()
    damaged = [f"run {key}: {what}" for key, what in missing.items() if what]
    if damaged:
        more = f" and {len(damaged) - 1} more" if damaged[1:] else ""
        (options.note or _log.warning)(f"{store.directory}: damaged, and run again: {damaged[0]}{more}")
    distinct = {run.key: run for run in sorted(runs, key=lambda run: run.trial.replication, reverse=True)}
    todo = [run for run in distinct.values() if run.key in missing]
    _log.info("%s: %d trials, %d runs to do, the others are stored in %s", design.name, len(runs), len(todo), store.directory)
    outcomes = _Outcomes(design, store, Counter(run.key for run in runs), options.progress)
    outcomes.done = sum(run.key not in missing for run in runs)
    for run in todo:
        if run.error is not None:
            outcomes.take(run, Outcome(error=run.error))
    _run_all(longest_first([run for run in todo if run.error is None], store.seconds_per_job()), workers, outcomes)
    return outcomes.unplayed


def longest_first(runs: Sequence[Run], seconds_per_job: Mapping[str, float]) -> list[Run]:
    """Return runs in order of assignment: that with the longest expected wall time comes first.

    Policies that have run before have a mean wall time per job; of others the longest of these is expected.
    """
    slowest = max(seconds_per_job.values(), default=1.0)
    return sorted(runs, key=lambda run: run.jobs * seconds_per_job.get(str(run.specification["policy"]), slowest), reverse=True)


class _Outcomes:
    """The outcomes so far: stored, counted by trial and reported."""

    def __init__(
        self, design: Experiment[Any], store: Store, trials: Counter[str], progress: Callable[[Progress], None] | None
    ) -> None:
        self._design = design
        self._store = store
        self._trials = trials  # of each run
        self._progress = progress
        self.done = self.failed = 0
        self.unplayed: list[str] = []
        """Policies of runs in the slow mode that had no time slice to simulate."""

    def take(self, run: Run, outcome: Outcome) -> None:
        """Store the outcome of a run."""
        took = "failed" if outcome.error else f"{outcome.seconds:.2f} s"
        _log.debug("run %s, %s on %s, seed %s: %s", run.key, *(run.about[n] for n in ("policy", "workload", "seed")), took)
        self._store.keep(run, self._design.factors_of(run.trial), outcome)
        if outcome.nothing_played:
            self.unplayed.append(str(run.about["policy"]))
        if outcome.error:
            self.failed += self._trials[run.key]
        else:
            self.done += self._trials[run.key]

    def report(self, running: int) -> None:
        if self._progress is not None:
            self._progress(Progress(self._trials.total(), self.done, running, self.failed))


def _run_all(order: Sequence[Run], workers: _Serial, outcomes: _Outcomes) -> None:
    """Assign runs to workers, a few ahead, and store their outcomes, those that arrive before an interrupt too."""
    waiting = list(reversed(order))
    suspects: list[Run] = []  # one of these runs ended the worker processes: each is repeated alone
    running: dict[Future[Outcome], Run] = {}
    try:
        while waiting or suspects or running:
            side_by_side = workers.capacity()
            at_once = side_by_side * AHEAD if side_by_side > 1 else 1
            if suspects and not running:
                run = suspects.pop()
                running[workers.submit(run)] = run
            while waiting and not suspects and len(running) < at_once:
                run = waiting.pop()
                running[workers.submit(run)] = run
            alone = len(running) == 1
            outcomes.report(min(len(running), side_by_side))
            for future in wait(running, timeout=_LOOK_S, return_when=FIRST_COMPLETED).done:
                run = running.pop(future)
                if future.cancelled():  # by a scheduler
                    waiting.append(run)
                elif (outcome := _outcome(future, alone=alone)) is None:
                    suspects.append(run)
                else:
                    outcomes.take(run, outcome)
            for future in workers.lost():
                if future in running and not future.done():
                    future.cancel()
                    waiting.append(running.pop(future))
        outcomes.report(0)
    except BaseException:
        for future, run in running.items():
            if future.cancel() or not future.done() or future.exception() is not None:
                continue
            with suppress(OutputError):  # perhaps the error that stopped the sweep
                outcomes.take(run, future.result())
        raise


def _outcome(future: Future[Outcome], *, alone: bool) -> Outcome | None:
    """Return the outcome of a run, ``None`` if its worker died and another run may be the cause."""
    try:
        return future.result()
    except BrokenProcessPool as problem:
        return Outcome(error=f"its worker process died: {problem}") if alone else None
    except Exception as problem:  # of the workers themselves, not of the run
        return Outcome(error=f"{type(problem).__name__}: {problem}")


@contextmanager
def _workers(origin: Origin, options: Options, *, most: int, ahead: bool) -> Iterator[_Serial]:
    """Provide workers, at most so many processes, for a block; ``ahead`` they prepare the study at once."""
    count = options.workers or min(os.cpu_count() or 1, most)
    workers: _Serial
    if options.dask is not None:
        workers = _Cluster(origin, options)
    elif count > 1 or (options.run_timeout_s is not None and origin.design is None):
        workers = _Pool(origin, options, min(count, most))  # a run that catches its timeout ends only with its process
    else:
        workers = _Serial(origin, options)
    try:
        workers.open(ahead=ahead)
        yield workers
    except BaseException:
        workers.close(now=True)
        raise
    workers.close(now=False)


class _Serial:
    """This process as the only worker."""

    def __init__(self, origin: Origin, options: Options) -> None:
        self._origin = origin
        self._timeout_s = options.run_timeout_s

    def open(self, *, ahead: bool) -> None:
        """Get ready; with ``ahead`` let other processes prepare the study at once."""

    def close(self, *, now: bool) -> None:
        """End other processes, ``now`` or after the runs in progress."""

    def submit(self, run: Run) -> Future[Outcome]:
        """Assign a run."""
        future: Future[Outcome] = Future()
        future.set_result(execute(self._origin, run, self._timeout_s))
        return future

    def capacity(self) -> int:
        """Return the number of runs that can be in progress at present."""
        return 1

    def lost(self) -> list[Future[Outcome]]:
        """Return the runs whose workers are all gone, to be assigned again."""
        return []


# Processes of this machine.


class _Pool(_Serial):
    """Processes of this machine; when one dies, all are replaced."""

    def __init__(self, origin: Origin, options: Options, workers: int) -> None:
        super().__init__(origin.sent(), options)
        self._count = workers
        self._pool = self._made()

    def _made(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._count, context, initializer=_prepare_process, initargs=(self._origin,))

    def open(self, *, ahead: bool) -> None:
        if ahead:
            _log.info("start %d worker processes", self._count)
            with interrupts_held(), _without_main():
                self._pool.submit(int)

    def submit(self, run: Run) -> Future[Outcome]:
        with interrupts_held(), _without_main():  # processes that start now must not receive them
            try:
                return self._pool.submit(_execute_here, run, self._timeout_s)
            except BrokenProcessPool:
                self._pool.shutdown(wait=False)
                self._pool = self._made()
                return self._pool.submit(_execute_here, run, self._timeout_s)

    def capacity(self) -> int:
        return self._count

    def close(self, *, now: bool) -> None:
        thread: Any = self._pool._executor_manager_thread  # typeshed has the type of its wake-up pipe
        processes = list((self._pool._processes or {}).values())
        # With waiting: else Python would wake the thread again at exit.  Without: the thread must drop cancelled futures before
        # it notices dead processes, since it cannot fail a cancelled future.
        self._pool.shutdown(wait=not now, cancel_futures=True)
        if now:
            for process in processes:
                process.kill()
            if thread is not None:
                thread.join()


_received: Origin | None = None


def _prepare_process(origin: Origin) -> None:
    global _received  # noqa: PLW0603  the argument of a worker process
    _received = origin
    ignore_interrupts()
    end_forks_with_this_process()
    Finalize(None, end_without_waiting, args=(0,), exitpriority=0)  # before Python waits for them
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(BaseException):
        os.chdir(origin.folder)  # the script may have changed it in the parent process
    _prepare(origin)


def _prepare(origin: Origin) -> None:
    """Make the study; if that fails, its first run reports the error."""
    with suppress(BaseException):
        opened(origin)


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, for whatever reason."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _execute_here(run: Run, timeout_s: float | None) -> Outcome:
    assert _received is not None
    return execute(_received, run, timeout_s)


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


class _Cluster(_Serial):
    """The workers of a Dask cluster that have the software of this process."""

    def __init__(self, origin: Origin, options: Options) -> None:
        super().__init__(origin.sent(), options)
        self._address = address = options.dask or ""
        try:
            from distributed import Client  # noqa: PLC0415  an extra
        except ImportError:
            raise SpecificationError(missing_package("--dask", "distributed", "dask")) from None
        if "security" in options.dask_options and not address.startswith("tls://"):
            raise SpecificationError(
                f"--dask: {address}: TLS files are given, but the address does not use TLS; write tls://..."
            )
        try:
            self._client: Any = Client(address, **options.dask_options)
        except (OSError, ValueError, TypeError) as problem:  # a TypeError where tls:// comes without its files
            raise SpecificationError(f"--dask: {address}: {problem}") from None
        except AssertionError:  # of distributed's LoopRunner: its event loop has not begun within 10 s
            raise SpecificationError(f"--dask: {address}: Dask's client has not started; try again") from None
        self._known: dict[str, int] = {}  # workers with their cores
        self._refused: set[str] = set()
        self._allowed: weakref.WeakKeyDictionary[Future[Outcome], frozenset[str]] = weakref.WeakKeyDictionary()

    def open(self, *, ahead: bool) -> None:
        require_same_software(self._client, self._address)
        self._known = self._client.ncores()
        self._sent = self._client.scatter(self._origin, broadcast=True)
        workers = self._known if ahead else {}
        self._preparing = [self._client.submit(_prepare, self._sent, workers=[worker], pure=False) for worker in workers]

    def close(self, *, now: bool) -> None:
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
        gone = ExecutionError(f"--dask: {self._address}: the scheduler has gone")
        if self._client.status != "running":
            raise gone
        try:
            present = self._client.ncores()
            new = sorted(present.keys() - self._known.keys() - self._refused)
            for worker, other in _other_software(self._client, new).items() if new else ():
                if other:
                    self._refused.add(worker)
                    _log.warning("--dask: worker %s: it has %s; it gets no runs", worker, other)
        except OSError:
            raise gone from None
        known = {worker: cores for worker, cores in present.items() if worker not in self._refused}
        if known.keys() != self._known.keys():
            _log.info("--dask: %d workers: %s", len(known), ", ".join(sorted(known)))
        self._known = known
        return [future for future, allowed in self._allowed.items() if known and not allowed & known.keys()]


def require_same_software(client: Any, address: str) -> None:
    """Refuse a cluster without workers, or with a worker that has other software."""
    there = _other_software(client, None)
    if not there:
        raise SpecificationError(f"--dask: {address}: the scheduler has no workers; start some first")
    for worker, other in sorted(there.items()):
        if other:
            raise SpecificationError(f"--dask: worker {worker}: it has {other}; install the same")


def _other_software(client: Any, workers: Sequence[str] | None) -> dict[str, str]:
    """Return for each worker how its software differs from this process's; the text is empty if it does not."""
    ours = software()
    our_package = f"clustermodel {ours['clustermodel']}"
    differs: dict[str, str] = {}
    for worker, theirs in client.run(software, workers=workers, on_error="return").items():
        if not isinstance(theirs, dict):
            words = " ".join(f"{type(theirs).__name__}: {theirs}".split())
            differs[worker] = f"no clustermodel that says its version ({words}), and this is {our_package}"
            continue
        name = next((name for name in ours if theirs.get(name) != ours[name]), "")
        differs[worker] = f"{name} {theirs.get(name)}, and this is {name} {ours[name]}" if name else ""
        if name == "clustermodel_sha256":
            differs[worker] = f"other source files of {our_package}"
    return differs
