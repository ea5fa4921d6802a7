"""Tables of text: columns with names, units and formats, rendered for terminals, notebooks, pages and programs.

A table that is wider than the terminal is continued below, with its first columns repeated; no cell is cut.  Programs get the
plain form, which has the same columns whatever the terminal and the numbers are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from io import StringIO
from itertools import chain
from math import isfinite, isnan, nan
from textwrap import fill
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
from rich.markup import escape
from rich.text import Text

from clustermodel.errors import visible
from clustermodel.measure.quantities import column_heading, named
from clustermodel.text.formatting import UNDEFINED, aligned, cell, escaped, html_table, intervals, time_units

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

Values = Sequence[float | None]

WIDTH: Final = 88  # characters of a line of ``str(table)``
_GAP: Final = 2  # between two columns
_NARROWEST_KEY: Final = 14
_WORDS: Final = re.compile(r"[^,:= ]*[,:= ]?")
_PERCENT: Final = {"utilization": "utilization", "kappa": "loss of capacity", "lost_share": "discarded work"}
_NUMBER: Final = r"[-+]?[0-9][-+0-9,.e]*( %)?|-"


class Column(NamedTuple):
    """A column as people see it: heading with unit, perhaps on several lines, and cells; numbers stand on the right."""

    heading: str
    cells: Sequence[str]
    number: bool = True
    name: str = ""  # of its values, in the units that programs get, among those of the table

    @property
    def width(self) -> int:
        """Characters of its widest line."""
        return max(cell_len(line) for text in (self.heading, *self.cells) for line in text.split("\n"))

    def folded(self, width: int) -> Column:
        """Return the column with its texts on lines of at most ``width`` characters."""
        return self if self.number else self._replace(cells=[_folded(text, width) for text in self.cells])

    def visible(self) -> Column:
        """Return the column with control characters written out, in cells also line ends."""
        return Column("\n".join(map(visible, self.heading.split("\n"))), list(map(visible, self.cells)), self.number, self.name)


class TextTable:
    """A table for a terminal, a notebook, a page and programs, with notes on what looks wrong in the input.

    Its ``keys`` name the rows and are repeated where the table is continued; columns of one of ``groups`` stay together.
    ``values`` are what programs get, by name: the same columns whatever people see, with all digits, in seconds and shares.
    """

    def __init__(
        self, title: str, keys: Sequence[Column], groups: Sequence[Sequence[Column]], values: Mapping[str, Sequence[Any]],
        notes: Sequence[object] = (),
    ) -> None:  # fmt: skip
        self.title = title
        self.keys = tuple(key.visible() for key in keys)
        self.groups = tuple(tuple(column.visible() for column in group) for group in groups if group)
        self.values = dict(values)
        self.notes = tuple(notes)

    @property
    def columns(self) -> list[Column]:
        """The columns that people see."""
        return [*self.keys, *chain(*self.groups)]

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as JSON can hold them: what is missing or not finite is ``None``."""
        columns = [[_finite(value) for value in values] for values in self.values.values()]
        return [dict(zip(self.values, row, strict=True)) for row in zip(*columns, strict=True)]

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
        cells = [(column.heading.replace("\n", " "), column.cells) for column in self.columns]
        notes = "".join(f"<div>note: {escaped(note)}</div>" for note in self.notes)
        return html_table(self.title, cells, right=[column.number for column in self.columns]) + notes

    def plain_text(self) -> str:
        """Return the table for programs: a line of names and a line for each row, with tabs between the values."""
        rows = zip(*([_plain(value) for value in values] for values in self.values.values()), strict=True)
        return "".join("\t".join(line) + "\n" for line in [tuple(map(visible, self.values)), *rows])

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


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value


def exact(value: Any) -> str:
    """Return a value with all its digits, an empty text for one that is missing."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    if isinstance(value, float):
        return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
    return visible(str(value))


def measure_columns(
    values: Mapping[str, Values], *, headings: Mapping[str, str] = MappingProxyType({}), not_if_zero: Collection[str] = (),
    halves: Mapping[str, Sequence[float]] = MappingProxyType({}), share_places: int | None = None,
) -> dict[str, Column]:  # fmt: skip
    """Return the columns of measures as people see them: times in a common unit, shares of node time in percent."""
    shown = [name for name, of in values.items() if name not in not_if_zero or any(value and not isnan(value) for value in of)]
    units = time_units({name: values[name] for name in shown if named(name).unit == "s"})
    columns = {}
    for name in shown:
        scale, places, unit, words = 1.0, None, "", headings.get(name)
        if name in units:
            scale, unit = 1 / units[name].seconds, units[name].symbol
        elif name in _PERCENT or name.endswith("_share"):
            scale, places, unit = 100.0, share_places, "%"
        if words is not None:
            label = f"{words}\n({unit})" if unit else words
        elif unit == "%":
            label = _heading(f"{_PERCENT.get(name) or name.removesuffix('_share').replace('_', ' ').strip() or name} (%)")
        else:
            label = _heading(column_heading(name, unit or "s"))
        numbers = [nan if value is None else scale * value for value in values[name]]
        if name in halves:
            cells = intervals(numbers, [scale * half for half in halves[name]])
        elif all(value is None or isinstance(value, int) for value in values[name]):
            cells = [UNDEFINED if value is None else f"{value:,}" for value in values[name]]
        else:
            cells = aligned(numbers, places=places)
        columns[name] = Column(label, cells, name=name)
    return columns


def trials_table(
    frame: pd.DataFrame, title: str, keys: Sequence[str], measures: Sequence[str], extra: Sequence[str] = ()
) -> TextTable:
    """Return a table with a row for each trial, which the columns ``keys`` identify; ``extra`` as for :func:`means_table`."""
    numbers = {name: frame[name].tolist() for name in (*measures, *extra) if frame[name].dtype.kind in "iuf"}
    texts = [text_column(name, frame[name]) for name in measures if name not in numbers]
    values = {name: frame[name].tolist() for name in (*keys, *measures, *extra)}
    shown = [*measure_columns(numbers, not_if_zero=extra).values(), *texts]
    return TextTable(title, [text_column(name, frame[name]) for name in keys], [shown], values)


def _heading(text: str) -> str:
    return fill(text, 12, break_long_words=False, break_on_hyphens=False)


def frame_table(frame: pd.DataFrame, title: str) -> TextTable:
    """Return a pandas table as a table of text; its index, or else the columns before the first number, name the rows."""
    keys: list[str] = []
    if any(name is not None for name in frame.index.names):
        keys = [*map(str, frame.index.names)]
        frame = frame.reset_index()
    columns = {str(name): text_column(str(name), frame.iloc[:, index]) for index, name in enumerate(frame.columns)}
    if not keys:
        first = next((index for index, shown in enumerate(columns.values()) if shown.number), len(columns))
        keys = list(columns)[: max(first, 1) if first < len(columns) else 1]
    others = [shown for name, shown in columns.items() if name not in keys]
    values = {name: frame.iloc[:, index].tolist() for index, name in enumerate(columns)}
    return TextTable(title, [columns[name] for name in keys], [others], values)


def text_column(name: str, cells: pd.Series) -> Column:
    """Return a column of pandas with its values as cells; texts that are all numbers, perhaps with intervals, are numbers."""
    values = [value for value in cells.tolist() if value is not None]
    texts = [value for value in values if isinstance(value, str)]
    numbers = bool(values) and not any(isinstance(value, bool) for value in values)
    numbers = numbers and all(" ± " in text or re.fullmatch(_NUMBER, text) for text in texts)
    return Column(_heading(column_heading(name)), list(map(cell, cells.tolist())), cells.dtype.kind in "iuf" or numbers, name)
