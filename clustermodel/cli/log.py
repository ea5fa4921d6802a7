"""Messages of the package's loggers on standard error: warnings always, more with ``--verbose``."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Final

from clustermodel.errors import visible

_LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)


class _Line(logging.Formatter):
    """A message in one line, with control characters written out; without a name where a user need not know it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        text = visible(" ".join(record.getMessage().split()))
        if record.levelno >= logging.WARNING:
            return f"clustermodel: {record.levelname.lower()}: {text}"
        return f"{self.formatTime(record, '%H:%M:%S')} {record.name.removeprefix('clustermodel.')}: {text}"


def log_to_standard_error(verbose: int) -> Callable[[], None]:
    """Write the messages of the package to standard error.

    Args:
        verbose: 0 for warnings, 1 for what is done, 2 or more for its details.

    Returns:
        A function that ends it.
    """
    handler, logger = logging.StreamHandler(sys.stderr), logging.getLogger("clustermodel")
    before = logger.level
    handler.setFormatter(_Line())
    logger.addHandler(handler)
    logger.setLevel(_LEVELS[min(verbose, len(_LEVELS) - 1)])

    def end() -> None:
        logger.removeHandler(handler)
        logger.setLevel(before)

    return end
