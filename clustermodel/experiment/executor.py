"""Running a study: what is missing is given out to workers, longest runs first, and what comes back is kept.

The workers are this process, processes of this machine (:mod:`clustermodel.experiment.processes`) or a Dask cluster
(:mod:`clustermodel.experiment.dask_cluster`).  Only the process that was started writes results.
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
from clustermodel.experiment.run_ledger import LEDGER
from clustermodel.experiment.store import Finished, Store, is_there
from clustermodel.experiment.study import Run, Study
from clustermodel.experiment.user_code import stoppable
from clustermodel.experiment.worker import Differs, Failed, Origin, Outcome, forget, opened
from clustermodel.validation import require_seconds

AHEAD: Final = 2
"""Runs that each worker is given before it has finished the first: it does not wait for the next one."""
_SLOW: Final = {"gs": 8.0, "bgs": 8.0, "mgs": 10.0, "mbgs": 15.0, "adaptive": 8.0, "slack": 6.0, "conservative": 2.0, "bf": 2.0}
"""How long policies take per job, roughly, relative to EASY; until the store knows better."""
_LOOK_S: Final = 1.0
"""How often the workers are looked after while nothing comes back."""


class Progress(NamedTuple):
    """How far a sweep is."""

    total: int
    done: int
    running: int
    failed: int


class Workers(Protocol):
    """What runs scenarios."""

    def submit(self, position: int, key: str) -> Future[Outcome]:
        """Have the scenario at a position run."""

    def width(self) -> int:
        """Return how many runs can go on side by side at present."""

    def check(self) -> None:
        """See whether workers have come or gone.

        Raises:
            ExecutionError: none are left that could go on.
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
    """Run what is missing of a study, and keep it in ``directory``.

    Args:
        source: the study, or the script that defines it.
        directory: where the results are; it is made if need be.  Runs that are there are not repeated; those that failed are.
        workers: processes; 1 is this one.
        dask: address of a Dask scheduler, instead of processes.
        dask_options: passed on to ``dask.distributed.Client``, for example ``security``.
        run_timeout_s: a run that takes longer than this, in seconds, fails; by default none does.
        progress: called whenever a run has begun or ended.

    Returns:
        How many runs are in each state.

    Raises:
        SpecificationError: the study is none, has two equal runs, a policy without source, or the directory holds another one.
        OutputError: results cannot be written; what has been written is whole, and nothing else is noted as failed.
        ExecutionError: the workers are gone; what they have not finished is still to be done.
        KeyboardInterrupt: a signal has asked for the end of the study; what was done is kept.
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
    # A run that catches the exception of its timeout can only be ended with its process.
    elsewhere = workers > 1 or dask is not None or (run_timeout_s is not None and origin.study is None)
    start = not is_there(directory / LEDGER)  # all runs are missing: workers can get ready while they are counted
    using: AbstractContextManager[Workers]
    if dask is not None:
        using = cluster(origin, dask, dask_options, run_timeout_s, start=start)
    elif elsewhere:
        using = pool(origin, min(workers, len(study)), run_timeout_s, start=start)
    else:
        using = nullcontext(Serial(origin, run_timeout_s))
    with using as serving:
        # Workers make their own jobs, and compare; where there are none, making them twice shows functions that do not seed.
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
            _give_out([_Task(run, positions[run.key]) for run in order], serving, state)
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


class _Task(NamedTuple):
    """A run to be given out."""

    run: Run
    position: int


class _State:
    """What has come back so far."""

    def __init__(self, store: Store, total: int, done: int, progress: Callable[[Progress], None] | None) -> None:
        self._store = store
        self._total = total
        self._done = done
        self._failed = 0
        self._progress = progress

    def take(self, run: Run, outcome: Outcome) -> None:
        """Keep what a run has come to.

        Raises:
            OutputError: it cannot be written.
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


def _give_out(order: Sequence[_Task], workers: Workers, state: _State) -> None:
    """Give out runs, a few ahead of the workers, and take what comes back, also if this is interrupted."""
    waiting = list(reversed(order))
    suspects: list[_Task] = []  # one of them has taken the worker processes with it: each is tried alone
    running: dict[Future[Outcome], _Task] = {}
    try:
        while waiting or suspects or running:
            side_by_side = workers.width()
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
        for future, outcome in _ended(running):
            with suppress(OutputError):  # which may be what has stopped it
                state.take(running[future].run, outcome)
        raise


def _outcome(future: Future[Outcome], *, alone: bool) -> Outcome | None:
    """Return what a run has come to, ``None`` if its worker died and it was not the only one that can have done that.

    Raises:
        ExecutionError: the workers are gone.
    """
    try:
        return future.result()
    except BrokenProcessPool as problem:
        return Failed(f"its worker process died: {problem}") if alone else None
    except ExecutionError:
        raise
    except Exception as problem:  # of the workers' own, which have done what they could
        return Failed(f"{type(problem).__name__}: {problem}")


def _ended(running: Mapping[Future[Outcome], _Task]) -> Iterator[tuple[Future[Outcome], Outcome]]:
    """Cancel what has not begun, and yield what has come back."""
    for future in running:
        if future.done() and not future.cancelled() and future.exception() is None:
            yield future, future.result()
        else:
            future.cancel()
