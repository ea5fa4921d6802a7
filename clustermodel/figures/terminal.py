"""What commands print: names of users as they are and visible, on consoles that fit tables."""

from __future__ import annotations

import sys
from typing import Final

from rich.console import Console
from rich.markup import escape

from clustermodel.errors import visible

_WIDE: Final = 200
"""Columns of a table where there is no terminal to fit."""


def literal(value: object) -> str:
    """Return text for a console that prints ``value`` as it is: no markup in it acts, control characters are written out."""
    return escape(visible(str(value)))


def standard_output() -> Console:
    """Return standard output; wide enough for a whole table where there is no terminal to fit."""
    return Console(file=sys.stdout, highlight=False, emoji=False, width=None if sys.stdout.isatty() else _WIDE)


def standard_error(*, tables: bool = False) -> Console:
    """Return standard error, for everything that is no result; lines are not wrapped, unless it is wide enough for tables."""
    if tables:
        return Console(file=sys.stderr, highlight=False, emoji=False, width=None if sys.stderr.isatty() else _WIDE)
    return Console(file=sys.stderr, highlight=False, emoji=False, soft_wrap=True)
