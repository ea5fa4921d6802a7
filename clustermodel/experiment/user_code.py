"""Running code of users: whatever it raises fails its run, and is told apart from a request to stop the whole study."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from clustermodel.errors import ClusterModelError
from clustermodel.experiment.code_origin import origin_of_file

STOPPING: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that stop a study."""
_LONGEST_TRACEBACK: Final = 100_000
"""Characters of a failure that are kept."""
_LONGEST_LINE: Final = 500
"""Characters of a failure in one line."""
_INSISTING_S: Final = 0.5
"""After this time a run that has caught the exception of its timeout gets it again."""
_OFTEN: Final = 10
"""A worker process whose run has caught it so many times ends."""


class Stopped(KeyboardInterrupt):
    """A signal has asked for the end of the study.

    Args:
        number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)  # so that SimPy can make it again
        self.number = number


class RunTimeoutError(BaseException):
    """A run takes too long; a base exception, so that ``except Exception`` of the user's does not catch it."""


Handler = Callable[[int, FrameType | None], object]


def _stop_after(before: Handler | int | None) -> Handler:
    """Return a handler that stops the study, once, after the one before it has seen the signal."""

    def stop(number: int, frame: FrameType | None) -> None:
        if _Signals.received is None:
            _Signals.received = number
            if callable(before):
                with suppress(KeyboardInterrupt):
                    before(number, frame)
            raise Stopped(number)

    return stop


class _Signals:
    """Which signals have come since :func:`stoppable` watches for them."""

    watching = False
    received: int | None = None


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise :class:`Stopped` at the first signal that asks for it, and ignore those that follow.

    A ``KeyboardInterrupt`` that comes without a signal is then known to be raised by the user's code.
    """
    if threading.current_thread() is not threading.main_thread() or _Signals.watching:
        yield
        return
    before = {number: signal.getsignal(number) for number in STOPPING}
    _Signals.watching, _Signals.received = True, None
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # as nohup has it
                signal.signal(number, _stop_after(handler))
        yield
    finally:
        _Signals.watching = False
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)


def ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that has started this one: a ``KeyboardInterrupt`` here is the user's."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _Signals.watching = True


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back until the end of the block; processes that are started in it never see one."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def is_request_to_stop(problem: BaseException) -> bool:
    """Return whether an exception is a signal's, not the user's."""
    if not isinstance(problem, KeyboardInterrupt):
        return False
    in_main_thread = threading.current_thread() is threading.main_thread()
    return isinstance(problem, Stopped) or (in_main_thread and not _Signals.watching)


def as_failure(problem: BaseException) -> str:
    """Return what a run's failure is recorded as: one line for an error of the package's, else the traceback and one line.

    Raises:
        BaseException: ``problem`` itself, if it is a request to stop.
    """
    if is_request_to_stop(problem):
        raise problem
    if isinstance(problem, ClusterModelError | RunTimeoutError):
        return shortened(str(problem), _LONGEST_TRACEBACK)
    try:
        whole = "".join(traceback.format_exception(problem)).rstrip()
    except BaseException:  # of its own methods
        whole = "".join(traceback.format_tb(problem.__traceback__)).rstrip()
    return f"{shortened(whole, _LONGEST_TRACEBACK)}\n\n{failure_line(problem)}"


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raise :class:`RunTimeoutError` in the block when it takes longer than ``seconds``; ``None`` is for ever.

    In a main thread an alarm signal interrupts whatever Python does, waiting included; in another thread, as of a Dask worker,
    the exception comes with the next step of Python code.
    """
    if seconds is None:
        yield
        return
    said = RunTimeoutError(f"it ran longer than {seconds:g} s (--run-timeout), and was stopped")
    if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
        rung = 0

        def alarm(_number: int, _frame: FrameType | None) -> None:
            nonlocal rung
            rung += 1
            if rung > _OFTEN and multiprocessing.parent_process() is not None:
                os._exit(1)
            raise said

        before = signal.signal(signal.SIGALRM, alarm)
        signal.setitimer(signal.ITIMER_REAL, seconds, _INSISTING_S)
        try:
            yield
            signal.setitimer(signal.ITIMER_REAL, 0)
            if rung:  # it was caught, and the run went on to its end
                raise said
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        return
    thread, lock, over = threading.get_ident(), threading.Lock(), False

    def ring() -> None:
        with lock:
            if not over:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(RunTimeoutError))

    timer = threading.Timer(seconds, ring)
    timer.daemon = True
    timer.start()
    try:
        yield
    except RunTimeoutError:
        raise said from None
    finally:
        timer.cancel()
        with lock:
            over = True


def where_raised(exception: BaseException) -> str | None:
    """Return ``file:line`` of the user's code that an exception comes from; ``None`` where no file of a user took part.

    That is the innermost frame which is neither in this package nor in the standard library or an installed package.  SimPy
    raises copies of exceptions, so their causes count too.
    """
    for one in _with_causes(exception):
        for frame in reversed(traceback.extract_tb(one.__traceback__)):
            if not frame.filename.startswith("<") and origin_of_file(frame.filename) is None:
                return f"{frame.filename}:{frame.lineno}"
    return None


def failure_line(exception: BaseException) -> str:
    """Return one line of text: where code of a user failed, and how."""
    words = shortened(" ".join(f"{type(exception).__name__}: {_text(exception)}".rstrip(": ").split()), _LONGEST_LINE)
    where = where_raised(exception)
    return words if where is None else f"{where}: {words}"


def _text(exception: BaseException) -> str:
    try:
        return str(exception)
    except BaseException:  # whatever its own method does
        return "(it cannot say what is wrong)"


def shortened(text: str, longest: int) -> str:
    """Return text without its middle, if it is longer than that."""
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]} ... ({len(text):,} characters) ... {text[-half:]}"


def _with_causes(exception: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    following: BaseException | None = exception
    while following is not None and following not in seen:
        yield following
        seen.append(following)
        following = following.__cause__ or following.__context__
