"""Processes that code of users has forked and left."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def forks_of(process: int) -> list[int]:
    """Return the numbers of the processes that a process, or one of these, has forked and that run the same command.

    A process that has been started with a command of its own does not count.  Known on Linux only; empty elsewhere.

    Args:
        process: its number.
    """
    forks: list[int] = []
    with suppress(OSError):  # it has ended, or there is no /proc
        command = Path(f"/proc/{process}/cmdline").read_bytes()
        for children in sorted(Path(f"/proc/{process}/task").glob("*/children")):
            for child in map(int, children.read_text().split()):
                if Path(f"/proc/{child}/cmdline").read_bytes() == command:
                    forks += [child, *forks_of(child)]
    return forks
