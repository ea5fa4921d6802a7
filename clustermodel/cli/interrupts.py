"""Ctrl-C, SIGTERM, SIGHUP: the first ends a command cleanly, later ones are ignored for seconds; none shows a traceback."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

INTERRUPTED: Final = 130  # exit code of a command that Ctrl-C has ended
_ENDING: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
_PATIENCE_S: Final = 5.0  # then Ctrl-C counts again: the user's code may have caught the first one


class Stopped(KeyboardInterrupt):
    """A signal other than Ctrl-C has asked to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(number)  # SimPy copies exceptions from their arguments
        self.number = number


def leave_quietly_while_starting() -> None:
    """Let Ctrl-C end the process with one line while the command line imports its modules; nothing is open yet."""
    started = Path(sys.argv[0] if sys.argv else "")  # not where another program imports the command line, nor in its workers
    ours = started.stem == "clustermodel" or started.parts[-2:] == ("clustermodel", "__main__.py")
    if ours and "--multiprocessing-fork" not in sys.orig_argv and _can_be_set():
        signal.signal(signal.SIGINT, _leave)


@contextmanager
def leaving_quietly() -> Iterator[None]:
    """Let Ctrl-C end the process with one line while the block imports the modules of a command.

    Otherwise an interrupt might print messages of other packages, or look like a missing package.
    """
    before = signal.getsignal(signal.SIGINT)
    leave_quietly_while_starting()
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is _leave:
            signal.signal(signal.SIGINT, before)


def _can_be_set() -> bool:
    """Return whether Ctrl-C reaches this thread; shells start background processes without it."""
    return threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def _leave(*_: object) -> NoReturn:
    os.write(2, b"\nclustermodel: error: interrupted\n")
    os._exit(INTERRUPTED)


def exit_code_of(problem: BaseException) -> int:
    """Return the exit code of a command that a signal has ended, as in shells."""
    return 128 + int(getattr(problem, "number", signal.SIGINT))


@contextmanager
def one_interrupt(*, for_good: bool) -> Iterator[None]:
    """Let one Ctrl-C in the block raise ``KeyboardInterrupt``, and ignore others soon after it.

    With ``for_good``, because the process ends after the block, Ctrl-C stays ignored, and SIGTERM and SIGHUP raise
    :class:`Stopped`, so that finished runs are reported and no half-written file stays.
    """
    last = float("-inf")

    def interrupt(number: int, _: object) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > _PATIENCE_S:
            last = now
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            raise Stopped(number)

    before = signal.signal(signal.SIGINT, interrupt) if _can_be_set() else None
    if for_good and threading.current_thread() is threading.main_thread():
        for number in _ENDING:
            if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
                signal.signal(number, interrupt)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, signal.SIG_IGN if for_good else before)
