"""Sweeps: the missing runs of a study are assigned to workers, longest first, and their results are stored.

The workers are this process, processes of this machine (:mod:`clustermodel.experiment.processes`) or a Dask cluster
(:mod:`clustermodel.experiment.dask_cluster`).  Only the process that started the sweep writes results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext, suppress
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from clustermodel.errors import ExecutionError, OutputError
from clustermodel.experiment.dask_cluster import cluster
from clustermodel.experiment.processes import Serial, pool
from clustermodel.experiment.run_key import difference
from clustermodel.experiment.run_table import LEDGER
from clustermodel.experiment.store import Finished, Store, is_there
from clustermodel.experiment.study import Run, Study
from clustermodel.experiment.user_code import stoppable
from clustermodel.experiment.worker import Differs, Failed, Origin, Outcome, forget, opened
from clustermodel.validation import require_seconds

AHEAD: Final = 2
"""Runs assigned to each worker at a time, so that a worker never waits for its next run."""
_SLOW: Final = {"gs": 8.0, "bgs": 8.0, "mgs": 10.0, "mbgs": 15.0, "adaptive": 8.0, "slack": 6.0, "conservative": 2.0, "bf": 2.0}
"""Rough wall times of policies per job, relative to EASY, for policies that have not run yet."""
_LOOK_S: Final = 1.0
"""Interval between two checks of the workers while no run ends, seconds."""


class Progress(NamedTuple):
    """The numbers of a sweep's runs by state."""

    total: int
    done: int
    running: int
    failed: int


class Workers(Protocol):
    """Processes that run scenarios: this one, others of this machine, or those of a cluster."""

    def submit(self, position: int, key: str) -> Future[Outcome]:
        """Assign the run at a position of the study."""

    def capacity(self) -> int:
        """Return the number of runs that can be in progress at present."""

    def check(self) -> None:
        """Update the set of workers.

        Raises:
            ExecutionError: no workers are left.
        """


def sweep(
    source: Study | str | PathLike[str],
    directory: str | PathLike[str],
    *,
    workers: int = 1,
    dask: str | None = None,
    dask_options: Mapping[str, Any] | None = None,
    run_timeout_s: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> dict[str, int]:
    """Run the missing runs of a study, and store their results in ``directory``.

    Args:
        source: the study, or the script that defines it.
        directory: of the results, created if need be.  Stored runs are not repeated; failed runs are.
        workers: number of processes; 1 is this process.
        dask: address of a Dask scheduler, instead of processes.
        dask_options: passed on to ``dask.distributed.Client``, for example ``security``.
        run_timeout_s: longest wall time of a run, seconds, after which it fails; by default there is no limit.
        progress: called whenever a run has started or ended.

    Returns:
        The number of runs in each state.

    Raises:
        SpecificationError: the source is no study, two runs are equal, a policy has no source, or the directory holds another
            study.
        OutputError: results cannot be written; stored results are complete, and no other run is recorded as failed.
        ExecutionError: no workers are left; unfinished runs remain pending.
        KeyboardInterrupt: a signal stopped the sweep; finished runs are kept.
    """
    if run_timeout_s is not None:
        run_timeout_s = require_seconds("run_timeout_s", run_timeout_s, positive=True)
    directory = Path(directory).absolute()  # a script may change the working directory
    with stoppable():
        origin = Origin.of(source if isinstance(source, Study) else Path(source))
        try:
            return _sweep(origin, directory, workers, dask, dask_options or {}, run_timeout_s, progress)
        finally:
            forget(origin)


def _sweep(
    origin: Origin,
    directory: Path,
    workers: int,
    dask: str | None,
    dask_options: Mapping[str, Any],
    run_timeout_s: float | None,
    progress: Callable[[Progress], None] | None,
) -> dict[str, int]:
    mine = opened(origin)
    study = mine.study
    # A run that catches the exception of its timeout ends only with its process.
    elsewhere = workers > 1 or dask is not None or (run_timeout_s is not None and origin.study is None)
    start = not is_there(directory / LEDGER)  # all runs are missing: workers can get ready meanwhile
    using: AbstractContextManager[Workers]
    if dask is not None:
        using = cluster(origin, dask, dask_options, run_timeout_s, start=start)
    elif elsewhere:
        using = pool(origin, min(workers, len(study)), run_timeout_s, start=start)
    else:
        using = nullcontext(Serial(origin, run_timeout_s))
    with using as serving:
        # Other processes make their own jobs and compare keys; this one makes jobs twice to detect functions without a seed.
        runs = study.runs(mine.made, make_twice=not elsewhere)
        if elsewhere:
            mine.made.clear()
        positions = {run.key: at for at, run in enumerate(runs)}
        with Store.create(directory, study, runs) as store:
            missing = store.missing() & positions.keys()
            state = _State(store, len(runs), len(runs) - len(missing), progress)
            for run in runs:
                if run.error is not None:
                    state.take(run, Failed(run.error))
            makeable = [run for run in runs if run.key in missing and run.error is None]
            order = longest_first(makeable, store.seconds_per_job())
            _run_all([_Task(run, positions[run.key]) for run in order], serving, state)
            return store.states()


def longest_first(runs: Sequence[Run], seconds_per_job: Mapping[str, float]) -> list[Run]:
    """Return runs in order of assignment: the run with the longest expected wall time comes first.

    Args:
        runs: of a study.
        seconds_per_job: mean wall time per job of policies that have run before.
    """
    known = sum(seconds_per_job.values()) / len(seconds_per_job) if seconds_per_job else 1.0

    def effort(run: Run) -> float:
        policy = str(run.factors["policy"])
        return run.jobs * seconds_per_job.get(policy, known * _SLOW.get(policy.partition(":")[0], 1.0))

    return sorted(runs, key=effort, reverse=True)


class _Task(NamedTuple):
    """A run to assign, with its position in the study."""

    run: Run
    position: int


class _State:
    """The outcomes so far: stored, counted and reported."""

    def __init__(self, store: Store, total: int, done: int, progress: Callable[[Progress], None] | None) -> None:
        self._store = store
        self._total = total
        self._done = done
        self._failed = 0
        self._progress = progress

    def take(self, run: Run, outcome: Outcome) -> None:
        """Store the outcome of a run.

        Raises:
            OutputError: the outcome cannot be written.
        """
        if isinstance(outcome, Finished):
            self._store.keep(run.key, outcome)
            self._done += 1
            return
        if isinstance(outcome, Differs):
            outcome = Failed(difference(run.specification, outcome.specification, run.jobs, outcome.jobs))
        self._store.fail(run.key, outcome.error)
        self._failed += 1

    def report(self, running: int) -> None:
        if self._progress is not None:
            self._progress(Progress(self._total, self._done, running, self._failed))


def _run_all(order: Sequence[_Task], workers: Workers, state: _State) -> None:
    """Assign runs to workers, a few ahead, and store their outcomes, those that arrive before an interrupt too."""
    waiting = list(reversed(order))
    suspects: list[_Task] = []  # one of these runs ended the worker processes: each is repeated alone
    running: dict[Future[Outcome], _Task] = {}
    try:
        while waiting or suspects or running:
            side_by_side = workers.capacity()
            at_once = side_by_side * AHEAD if side_by_side > 1 else 1
            if suspects and not running:
                task = suspects.pop()
                running[workers.submit(task.position, task.run.key)] = task
            while waiting and not suspects and len(running) < at_once:
                task = waiting.pop()
                running[workers.submit(task.position, task.run.key)] = task
            alone = len(running) == 1
            state.report(min(len(running), side_by_side))
            finished, _ = wait(running, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
            for future in finished:
                outcome = _outcome(future, alone=alone)
                task = running.pop(future)
                if outcome is None:
                    suspects.append(task)
                else:
                    state.take(task.run, outcome)
            workers.check()
        state.report(0)
    except BaseException:
        for future, outcome in _completed(running):
            with suppress(OutputError):  # perhaps the error that stopped the sweep
                state.take(running[future].run, outcome)
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


def _completed(running: Mapping[Future[Outcome], _Task]) -> Iterator[tuple[Future[Outcome], Outcome]]:
    """Yield the outcomes of completed runs, and cancel the others."""
    for future in running:
        if future.done() and not future.cancelled() and future.exception() is None:
            yield future, future.result()
        else:
            future.cancel()
