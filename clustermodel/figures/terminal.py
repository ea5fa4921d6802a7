"""Terminal output of commands: consoles that fit tables, and names of users without markup."""

from __future__ import annotations

import sys
from typing import Final

from rich.console import Console
from rich.markup import escape

from clustermodel.errors import visible

_WIDE: Final = 200
"""Columns of a table without a terminal."""


def literal(value: object) -> str:
    """Return text for a console that prints ``value`` literally: markup has no effect, control characters are written out."""
    return escape(visible(str(value)))


def standard_output() -> Console:
    """Return a console on standard output; without a terminal it is wide enough for any table."""
    return Console(file=sys.stdout, highlight=False, emoji=False, width=None if sys.stdout.isatty() else _WIDE)


def standard_error(*, tables: bool = False) -> Console:
    """Return a console on standard error, for notes; it wraps no lines, or with ``tables`` is wide enough for tables."""
    if tables:
        return Console(file=sys.stderr, highlight=False, emoji=False, width=None if sys.stderr.isatty() else _WIDE)
    return Console(file=sys.stderr, highlight=False, emoji=False, soft_wrap=True)
