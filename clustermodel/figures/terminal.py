"""The terminal: consoles that can show what they print, notes, and tables, plain for programs that read a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from clustermodel.errors import visible
from clustermodel.figures.text_table import TextTable
from clustermodel.text.formatting import encodable


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
    """Return a console on standard output; it wraps lines on a terminal only."""
    return Terminal(file=sys.stdout, soft_wrap=not sys.stdout.isatty())


def standard_error() -> Console:
    """Return a console on standard error, for notes; it wraps no lines."""
    return Terminal(file=sys.stderr, soft_wrap=True)


def print_notes(notes: Iterable[object], console: Console) -> None:
    """Print notes on the input, a line each."""
    for note in notes:
        console.print(f"note: {literal(note)}")


def print_table(table: TextTable, *, titled: bool = False, error: bool = False) -> None:
    """Print a table: laid out for people on a terminal, plain for programs elsewhere, with the title above it if ``titled``."""
    stream = sys.stderr if error else sys.stdout
    if stream.isatty():
        (standard_error() if error else standard_output()).print(table, soft_wrap=False)
        return
    if titled:
        stream.write(f"{visible(table.title)}\n")
    stream.write(table.plain_text())
