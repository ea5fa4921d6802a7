"""Threads and processes that code of users leaves: they end with the process that ran the code, which does not await them."""

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn

_pipe: list[int] = []  # its ends; no other process has the second, so the first is readable as soon as this process has ended


def end_forks_with_this_process() -> None:
    """Let each fork of this process, and their forks, end as soon as this process has ended, for whatever reason."""
    if not _pipe and hasattr(os, "register_at_fork"):
        _pipe.extend(os.pipe())  # programs that code of users starts do not get it
        os.register_at_fork(after_in_child=_end_with_this_process)


def _end_with_this_process() -> None:
    if len(_pipe) > 1:
        os.close(_pipe.pop())

    def wait_and_end() -> None:
        os.read(_pipe[0], 1)
        os._exit(1)

    threading.Thread(target=wait_and_end, daemon=True).start()


def end_without_waiting(code: int) -> None:
    """End this process at once if Python would wait for threads or processes that code of users has left; else return."""
    multiprocessing = sys.modules.get("multiprocessing")  # few commands start processes
    children = multiprocessing.active_children() if multiprocessing is not None else []
    if children or any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        for child in children:
            child.kill()
        _end(code)


def end_at_once(code: int) -> NoReturn:
    """End this process with an exit code after what is registered to run at exit; its memory is not cleared, which takes long.

    After Ctrl-C ``python -m`` would end by the signal instead (-2, not 130) where it came during ``exec``, as when a dataclass
    is made.
    """
    atexit._run_exitfuncs()
    _end(code)


def _end(code: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
