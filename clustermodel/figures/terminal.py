"""Tables of text for people, programs and notebooks, and the terminal.

A table that is wider than the terminal is continued below, with its first columns repeated; no cell is cut.  Programs get the
plain form, which has the same columns whatever the terminal and the numbers are.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from itertools import chain
from math import isnan
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
from rich.markup import escape
from rich.text import Text

from clustermodel.errors import visible
from clustermodel.text.formatting import encodable, escaped, html_table

if TYPE_CHECKING:
    from rich.table import Table

WIDTH: Final = 88  # characters of a line of ``str(table)``
_GAP: Final = 2  # between two columns
_NARROWEST_KEY: Final = 14
_WORDS: Final = re.compile(r"[^,:= ]*[,:= ]?")


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


class Column(NamedTuple):
    """A column as people see it: its heading, perhaps on several lines, and its cells; numbers stand on the right."""

    heading: str
    cells: Sequence[str]
    number: bool = True

    @property
    def width(self) -> int:
        """Characters of its widest line."""
        return max(cell_len(line) for text in (self.heading, *self.cells) for line in text.split("\n"))

    def folded(self, width: int) -> Column:
        """Return the column with its texts on lines of at most ``width`` characters."""
        return self if self.number else self._replace(cells=[_folded(text, width) for text in self.cells])

    def visible(self) -> Column:
        """Return the column with control characters written out, in cells also line ends."""
        return Column("\n".join(map(visible, self.heading.split("\n"))), list(map(visible, self.cells)), self.number)


class TextTable:
    """A table of text, with notes on what looks wrong in the input.

    Its ``keys`` name the rows and are repeated where the table is continued; columns of one of ``groups`` stay together.
    """

    def __init__(
        self, title: str, keys: Sequence[Column], groups: Sequence[Sequence[Column]], plain: Mapping[str, Sequence[Any]],
        notes: Sequence[object] = (),
    ) -> None:  # fmt: skip
        self.title = title
        self.keys = tuple(key.visible() for key in keys)
        self.groups = tuple(tuple(column.visible() for column in group) for group in groups if group)
        self.plain = dict(plain)
        self.notes = tuple(notes)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the parts of the table that stand below each other on a terminal."""
        if self.title:
            yield Text(visible(self.title), style="italic")
        keys, blocks = self._layout(options.max_width)
        for number, block in enumerate(blocks):
            if number:
                yield ""
            yield _drawn([*keys, *block], ascii_only=options.ascii_only)

    def __str__(self) -> str:
        """Return the table as text of 88 columns, with the notes below it."""
        file = StringIO()
        Console(file=file, width=WIDTH, color_system=None, force_terminal=False, highlight=False, emoji=False).print(self)
        lines = [line.rstrip() for line in file.getvalue().splitlines()]
        return "\n".join([*lines, *(f"note: {visible(str(note))}" for note in self.notes)])

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        columns = [*self.keys, *chain(*self.groups)]
        cells = [(column.heading.replace("\n", " "), column.cells) for column in columns]
        notes = "".join(f"<div>note: {escaped(note)}</div>" for note in self.notes)
        return html_table(self.title, cells, right=[column.number for column in columns]) + notes

    def plain_text(self) -> str:
        """Return the table for programs: a line of names and a line for each row, with tabs between the values."""
        rows = zip(*([_plain(value) for value in values] for values in self.plain.values()), strict=True)
        return "".join("\t".join(line) + "\n" for line in [tuple(map(visible, self.plain)), *rows])

    def _layout(self, width: int) -> tuple[list[Column], list[list[Column]]]:
        """Return the columns that name the rows, folded, and the columns of each block."""

        def length(columns: Sequence[Column]) -> int:
            return sum(column.width for column in columns) + _GAP * (len(columns) - 1)

        narrow = [key.width + _GAP for key in self.keys if key.width <= _NARROWEST_KEY]
        wide = max(len(self.keys) - len(narrow), 1)
        share = max(_NARROWEST_KEY, (2 * width // 5 - sum(narrow)) // wide)
        keys = [key._replace(cells=[_folded(text, share) for text in key.cells]) for key in self.keys]
        left = width - sum(key.width + _GAP for key in keys)
        blocks: list[list[Column]] = [[]]
        groups = [[each if each.width <= left else each.folded(max(left, _NARROWEST_KEY)) for each in of] for of in self.groups]
        for group in groups:
            if blocks[-1] and length([*blocks[-1], *group]) > left:
                blocks.append([])
            for column in group:
                if blocks[-1] and length([*blocks[-1], column]) > left:
                    blocks.append([])
                blocks[-1].append(column)
        return keys, blocks


def _drawn(columns: Sequence[Column], *, ascii_only: bool) -> Table:
    from rich import box  # noqa: PLC0415  for which programs that read the plain form need not wait
    from rich.table import Table  # noqa: PLC0415

    lines = box.Box("    \n    \n -- \n" + "    \n" * 5, ascii=True) if ascii_only else box.SIMPLE_HEAD
    table = Table(box=lines, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        side: JustifyMethod = "right" if column.number else "left"
        table.add_column(escape(column.heading), justify=side, vertical="top", overflow="fold", no_wrap=True)
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(escape, row))
    return table


def _folded(text: str, width: int) -> str:
    """Return a name on lines of at most ``width`` characters, broken behind commas, colons, equals signs and spaces."""
    lines = [""]
    for word in filter(None, _WORDS.findall(text)):
        if lines[-1] and cell_len(lines[-1]) + cell_len(word.rstrip()) > width:
            lines.append("")
        lines[-1] += word
        while cell_len(lines[-1].rstrip()) > width:
            cut = next(end for end in range(len(lines[-1]), 0, -1) if end == 1 or cell_len(lines[-1][:end]) <= width)
            lines[-1:] = [lines[-1][:cut], lines[-1][cut:]]
    return "\n".join(line.rstrip() for line in lines if line.strip()) or text


def _plain(value: Any) -> str:
    if value is None or (isinstance(value, float) and isnan(value)):
        return "nan"
    return f"{value:.10g}" if isinstance(value, float) else visible(str(value))


def print_table(table: TextTable, *, titled: bool = False, error: bool = False) -> None:
    """Print a table: laid out for people on a terminal, plain for programs elsewhere, with the title above it if ``titled``."""
    stream = sys.stderr if error else sys.stdout
    if stream.isatty():
        (standard_error() if error else standard_output()).print(table, soft_wrap=False)
        return
    if titled:
        stream.write(f"{visible(table.title)}\n")
    stream.write(table.plain_text())
