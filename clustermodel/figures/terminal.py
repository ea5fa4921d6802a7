"""Terminal output of commands: consoles, notes, and names of users without markup."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from clustermodel.errors import visible
from clustermodel.readable import encodable

_WIDE: Final = 200
"""Columns of a table without a terminal."""


def literal(value: object) -> str:
    """Return text for a console that prints ``value`` literally: markup has no effect, control characters are written out."""
    return escape(visible(str(value)))


class Terminal(Console):
    """A console that lays out text as its stream can encode it, so that replaced characters do not move columns."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return text of a cell, a heading or a line, with its markup."""
        return super().render_str(encodable(text, self.encoding), **options)


def standard_output() -> Console:
    """Return a console on standard output; without a terminal it is wide enough for any table."""
    return Terminal(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDE)


def standard_error(*, tables: bool = False) -> Console:
    """Return a console on standard error, for notes; it wraps no lines, or with ``tables`` is wide enough for tables."""
    if tables:
        return Terminal(file=sys.stderr, width=None if sys.stderr.isatty() else _WIDE)
    return Terminal(file=sys.stderr, soft_wrap=True)


def print_notes(notes: Iterable[object], console: Console) -> None:
    """Print notes on the input, a line each."""
    for note in notes:
        console.print(f"note: {literal(note)}")
