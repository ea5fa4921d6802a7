"""Execution: the missing runs of an experiment are assigned to workers, longest first, and their results are stored.

The workers are this process, processes of this machine (``clustermodel.experiment.processes``) or a Dask cluster
(``clustermodel.experiment.dask_cluster``).  Only the process that started the experiment writes
results.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext, suppress
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from clustermodel.errors import ExecutionError, OutputError, SpecificationError, quoted
from clustermodel.experiment.dask_cluster import cluster
from clustermodel.experiment.design import Design
from clustermodel.experiment.factors import Trial
from clustermodel.experiment.processes import Serial, pool
from clustermodel.experiment.run_key import Run, difference
from clustermodel.experiment.scenario import NOTHING_PLAYED, nothing_played
from clustermodel.experiment.store import Shard, Store, is_there, name_of_listing
from clustermodel.experiment.study_table import StudyTable
from clustermodel.experiment.user_code import stoppable
from clustermodel.experiment.worker import Differs, Failed, Finished, Origin, Outcome, Task, forget, opened
from clustermodel.validation import require_seconds, require_whole

AHEAD: Final = 2
"""Runs assigned to each worker at a time, so that a worker never waits for its next run."""
_SLOW: Final = {"gs": 8.0, "bgs": 8.0, "mgs": 10.0, "mbgs": 15.0, "adaptive": 8.0, "slack": 6.0, "conservative": 2.0, "bf": 2.0}
"""Rough wall times of policies per job, relative to EASY, for policies that have not run yet."""
_LOOK_S: Final = 1.0
"""Interval between two checks of the workers while no run ends, seconds."""


_log = logging.getLogger(__name__)


class Progress(NamedTuple):
    """The numbers of a sweep's runs by state."""

    total: int
    done: int
    running: int
    failed: int


class Workers(Protocol):
    """Processes that run scenarios: this one, others of this machine, or those of a cluster."""

    def submit(self, task: Task) -> Future[Outcome]:
        """Assign a run."""

    def capacity(self) -> int:
        """Return the number of runs that can be in progress at present."""

    def check(self) -> None:
        """Update the set of workers.

        Raises:
            ExecutionError: no workers are left.
        """


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
    mine = opened(origin)
    design = mine.design
    version = mine.version  # before any run
    first = _trials_of(design, design.first_table(), options.shard)
    workers = options.workers or min(os.cpu_count() or 1, max(len(first), 1))
    # A run that catches the exception of its timeout ends only with its process.
    elsewhere = workers > 1 or (options.run_timeout_s is not None and origin.design is None)
    start = not is_there(directory / name_of_listing(options.shard))  # all runs are missing: workers can get ready meanwhile
    using: AbstractContextManager[Workers]
    if options.dask is not None:
        using = cluster(origin, options.dask, options.dask_options, options.run_timeout_s, start=start)
    elif elsewhere:
        using = pool(origin, min(workers, max(len(first), 1)), options.run_timeout_s, start=start)
    else:
        using = nullcontext(Serial(origin, options.run_timeout_s))
    with using as serving:
        runs = design.runs(first, mine)
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
                    return design, table
                first = [*first, *following]
                runs = sorted([*runs, *design.runs(following, mine)], key=lambda run: design.order_of(run.trial))


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
    serving: Workers,
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
    known = sum(seconds_per_job.values()) / len(seconds_per_job) if seconds_per_job else 1.0

    def effort(run: Run) -> float:
        policy = str(run.specification["policy"])
        return run.jobs * seconds_per_job.get(policy, known * _SLOW.get(policy.partition(":")[0], 1.0))

    return sorted(runs, key=effort, reverse=True)


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
        """Store the outcome of a run.

        Raises:
            OutputError: the outcome cannot be written.
        """
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


def _run_all(order: Sequence[Task], runs: Mapping[str, Run], workers: Workers, state: _State) -> None:
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
                outcome = _outcome(future, alone=alone)
                task = running.pop(future)
                if outcome is None:
                    suspects.append(task)
                else:
                    state.take(runs[task.key], outcome)
            workers.check()
        state.report(0)
    except BaseException:
        for future, outcome in _completed(running):
            with suppress(OutputError):  # perhaps the error that stopped the sweep
                state.take(runs[running[future].key], outcome)
        raise


def _outcome(future: Future[Outcome], *, alone: bool) -> Outcome | None:
    """Return the outcome of a run, ``None`` if its worker died and another run may be the cause.

    Raises:
        ExecutionError: no workers are left.
    """
    try:
        return future.result()
    except BrokenProcessPool as problem:
        return Failed(f"its worker process died: {problem}") if alone else None
    except ExecutionError:
        raise
    except Exception as problem:  # of the workers themselves, not of the run
        return Failed(f"{type(problem).__name__}: {problem}")


def _completed(running: Mapping[Future[Outcome], Task]) -> Iterator[tuple[Future[Outcome], Outcome]]:
    """Yield the outcomes of completed runs, and cancel the others."""
    for future in running:
        if future.done() and not future.cancelled() and future.exception() is None:
            yield future, future.result()
        else:
            future.cancel()
