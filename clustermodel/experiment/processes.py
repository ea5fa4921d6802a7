"""Processes of this machine as the workers of a study."""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from multiprocessing.util import Finalize
from typing import Any

from clustermodel.experiment.user_code import ignore_interrupts, interrupts_held
from clustermodel.experiment.worker import Origin, Outcome, Task, execute, opened
from clustermodel.leftovers import end_forks_with_this_process, end_without_waiting

_log = logging.getLogger(__name__)


class Serial:
    """This process as the only worker.

    Args:
        origin: of the study.
        timeout_s: longest wall time of a run, seconds; ``None`` for no limit.
    """

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

    def check(self) -> None:
        """Do nothing: this process remains the only worker."""


class Pool:
    """Processes of this machine; when one dies, all are replaced.

    Args:
        origin: of the study.
        workers: how many.
        timeout_s: longest wall time of a run, seconds; ``None`` for no limit.

    Raises:
        SpecificationError: the study cannot be sent to another process.
    """

    def __init__(self, origin: Origin, workers: int, timeout_s: float | None) -> None:
        self._origin = origin.sent()
        self._workers = workers
        self._timeout_s = timeout_s
        self._pool = self._made()

    def _made(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            self._workers, multiprocessing.get_context("spawn"), initializer=_prepare, initargs=(self._origin,)
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
                return self._pool.submit(_execute, task, self._timeout_s)
            except BrokenProcessPool:
                self._pool.shutdown(wait=False)
                self._pool = self._made()
                return self._pool.submit(_execute, task, self._timeout_s)

    def capacity(self) -> int:
        """Return the number of runs that can be in progress."""
        return self._workers

    def check(self) -> None:
        """Do nothing: the run of a process reports that the process died."""

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
def pool(origin: Origin, workers: int, timeout_s: float | None, *, start: bool) -> Iterator[Pool]:
    """Provide processes that end with the block; with ``start`` they prepare the study at once.

    Raises:
        SpecificationError: the study cannot be sent to another process.
    """
    made = Pool(origin, workers, timeout_s)
    try:
        if start:
            made.start()
        yield made
    except BaseException:
        made.shutdown(now=True)
        raise
    made.shutdown(now=False)


_received: Origin | None = None


def _prepare(origin: Origin) -> None:
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
        wait([parent.sentinel])
        os._exit(1)


def _execute(task: Task, timeout_s: float | None) -> Outcome:
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
