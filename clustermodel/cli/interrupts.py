"""Ctrl-C: the first one ends a command in order, those that follow soon are ignored, and none shows a traceback."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

INTERRUPTED: Final = 130
"""Exit code of a command that Ctrl-C has ended."""
_PATIENCE_S: Final = 5.0
"""How long a command has to end before Ctrl-C counts again: code of a user may have caught the first one."""


def leave_quietly_while_starting() -> None:
    """Let Ctrl-C end the process in one line while the command line still imports what it needs; nothing is open yet.

    Does nothing where the command line is imported by anything but the command itself.
    """
    if _is_the_command() and _can_be_set():
        signal.signal(signal.SIGINT, _leave)


@contextmanager
def leaving_quietly() -> Iterator[None]:
    """Let Ctrl-C do the same while the block imports what one command needs, before that command has begun with anything.

    An interrupt in the middle of an import may leave messages of others, or be taken for a package that is missing.
    """
    if not (_is_the_command() and _can_be_set()):
        yield
        return
    before = signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _is_the_command() -> bool:
    """Return whether this process was started as ``clustermodel`` or ``python -m clustermodel``, and is no worker of one."""
    started = Path(sys.argv[0] if sys.argv else "")
    ours = started.stem == "clustermodel" or started.parts[-2:] == ("clustermodel", "__main__.py")
    return ours and "--multiprocessing-fork" not in sys.orig_argv


def _can_be_set() -> bool:
    """Return whether Ctrl-C reaches this thread; a shell starts what runs in the background without it."""
    return threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def _leave(*_: object) -> NoReturn:
    os.write(2, b"\nclustermodel: error: interrupted\n")
    os._exit(INTERRUPTED)


class OneInterrupt:
    """While entered, a Ctrl-C is a ``KeyboardInterrupt``, and others soon after it are ignored: what has begun to end, ends.

    Args:
        for_good: ignore Ctrl-C when it is left, because nothing but the end of the process is to come.
    """

    def __init__(self, *, for_good: bool) -> None:
        self._for_good = for_good
        self._set = False
        self._last = float("-inf")

    def __enter__(self) -> None:
        self._set = _can_be_set()
        if self._set:
            self._before = signal.signal(signal.SIGINT, self._interrupt)

    def __exit__(self, *_: object) -> None:
        if self._set:
            signal.signal(signal.SIGINT, signal.SIG_IGN if self._for_good else self._before)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last > _PATIENCE_S:
            self._last = now
            raise KeyboardInterrupt
