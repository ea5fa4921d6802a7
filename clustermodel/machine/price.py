"""What energy costs, and how much carbon it emits, over time: a step function, of a file or a table, that may recur.

A file is CSV, plain or compressed, whose first line names the columns, in any order; others are ignored: ``time_s``, ``price``
(per kWh, in a currency of your choice) and, if known, ``carbon`` (grams per kWh).
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final, Self

from clustermodel.errors import SpecificationError, TraceError
from clustermodel.text.files import table_rows
from clustermodel.text.tables import SUFFIX, Place, made, table_at
from clustermodel.ticks import to_ticks
from clustermodel.validation import LONGEST_S, require, require_number, seconds_fields

MOST: Final = 1e9  # of a price or a carbon intensity
COLUMNS: Final = ("time_s", "price", "carbon")


@dataclass(frozen=True, kw_only=True)
class Price:
    """The price and the carbon intensity of energy over time, on the clock of the jobs.

    >>> from clustermodel import Machine, Power, Price
    >>> night_and_day = Price(time_s=[0, 7 * 3600], price=[0.1, 0.3], every_s=86_400)
    >>> power = Power(busy_w=350, idle_w=120)
    >>> machine = Machine(nodes=64, power=power, price=night_and_day)
    >>> night_and_day.at(8 * 3600 * 10**6)
    0.3
    """

    time_s: Sequence[float]
    """Start of each step, seconds, ascending from 0; the last step lasts until the end, or until the series recurs."""
    price: Sequence[float]
    """Price of each step, per kWh; it may be negative."""
    carbon: Sequence[float] = ()
    """Carbon intensity of each step, grams per kWh; empty: not known."""
    every_s: float | None = None
    """After which time the series recurs, seconds: a day is 86,400; ``None``: it does not."""

    def __post_init__(self) -> None:
        for name in COLUMNS:
            values = getattr(self, name)
            must = "it must be a list of numbers"
            values = values.tolist() if hasattr(values, "tolist") else values
            known = isinstance(values, Sequence) and not isinstance(values, str | bytes)
            require(known, f"Price.{name}", getattr(self, name), must)
            object.__setattr__(
                self, name, tuple(_number(name, f"Price.{name}[{place}]", each) for place, each in enumerate(values))
            )
        seconds_fields(self, "Price.", "every_s", positive=True)
        steps = len(self.time_s)
        require(steps and self.time_s[0] == 0, "Price.time_s", self.time_s[:1], "the first step must begin at 0")
        for before, after in pairwise(self.time_s):
            later = to_ticks(after) > to_ticks(before)
            require(later, "Price.time_s", after, f"each step must begin after the one before it, {before:g}")
        for name, least in (("price", steps), ("carbon", 0)):
            count = len(getattr(self, name))
            require(count in (least, steps), f"Price.{name}", f"{count} values", f"there must be {steps}, as of time_s")
        last = self.time_s[-1]
        recurs_later = self.every_s is None or to_ticks(self.every_s) > to_ticks(last)
        require(recurs_later, "Price.every_s", self.every_s, f"it must be after the begin of the last step, {last:g}")

    @classmethod
    def of(cls, table: Any, *, every_s: float | None = None) -> Self:
        """Return the price of a pandas frame, or another mapping of columns, with ``time_s``, ``price`` and perhaps ``carbon``.

        A ``Price`` is returned as it is.
        """
        if isinstance(table, cls):
            return table
        known = isinstance(table, Mapping) or hasattr(table, "columns")
        require(known, "price", table, "it must be a Price(...), or a table with the columns time_s, price and carbon")
        for name in COLUMNS[:2]:
            if name not in table:
                raise SpecificationError(f"price: the column {name} is missing; there must be time_s and price")
        columns = {name: table[name] for name in COLUMNS if name in table}
        return cls(**columns, every_s=table.get("every_s") if every_s is None and isinstance(table, Mapping) else every_s)

    @cached_property
    def starts(self) -> list[int]:
        """When each step begins, ticks."""
        return [to_ticks(time_s) for time_s in self.time_s]

    @cached_property
    def every(self) -> int:
        """Period of the series, ticks; 0 if it does not recur."""
        return 0 if self.every_s is None else to_ticks(self.every_s)

    def step(self, now: int) -> int:
        """Return the position of the step at a time, ticks."""
        return bisect_right(self.starts, now % self.every if self.every else now) - 1

    def at(self, now: int) -> float:
        """Return the price at a time, ticks."""
        return self.price[self.step(now)]

    def next_change(self, now: int) -> int | None:
        """Return the end of the step at a time, ticks; ``None`` if it has no end."""
        step = self.step(now) + 1
        since = now - now % self.every if self.every else 0
        if step < len(self.starts):
            return since + self.starts[step]
        return since + self.every if self.every else None

    def steps(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the steps between two times, ticks: when each begins, the first at ``begin``, and its position."""
        while begin < end:
            yield begin, self.step(begin)
            change = self.next_change(begin)
            begin = end if change is None else change

    def mean(self, begin: int, end: int) -> float:
        """Return the mean price between two times, ticks; at ``begin`` if they are the same."""
        return self.at(begin) if end <= begin else (self._integral(end) - self._integral(begin)) / (end - begin)

    @cached_property
    def _sums(self) -> list[float]:
        """The integral of the price until the begin of each step, and until the end of a series that recurs."""
        ends = [*self.starts[1:], *([self.every] if self.every else [])]
        lengths = [end - start for start, end in zip(self.starts, ends, strict=False)]
        return [0.0, *accumulate(length * price for length, price in zip(lengths, self.price, strict=False))]

    def _integral(self, now: int) -> float:
        turns, rest = divmod(now, self.every) if self.every else (0, now)
        step = bisect_right(self.starts, rest) - 1
        whole = turns * self._sums[-1] if turns else 0.0
        return whole + self._sums[step] + (rest - self.starts[step]) * self.price[step]


def _number(column: str, name: str, value: object) -> float:
    least, most = -MOST if column == "price" else 0, LONGEST_S if column == "time_s" else MOST
    return require_number(name, value, f"a number >= {least:g} and <= {most:g}", lambda number: least <= number <= most)


def read_price(path: str | os.PathLike[str], *, every_s: float | None = None) -> Price:
    """Read the price of energy over time from a CSV file (:mod:`clustermodel.machine.price` has the columns).

    Raises:
        TraceError: the file cannot be read, lacks a column, or has a value that is not allowed.
        SpecificationError: ``every_s`` does not fit the file.
    """
    file = Path(path)
    names: list[str] = []
    columns: dict[str, list[float]] = {}
    for place, fields in table_rows(file, strict=True):
        if not names:
            names = [name.strip().lower() for name in fields]
            for name in COLUMNS[:2]:
                if name not in names:
                    raise TraceError(f"{place}: the column {name} is missing; there must be time_s, price and perhaps carbon")
            columns = {name: [] for name in COLUMNS if name in names}
            continue
        for name, values in columns.items():
            text = fields[names.index(name)].strip()
            try:
                values.append(_number(name, f"{place}: field {name}", _as_number(text)))
            except SpecificationError as problem:
                raise TraceError(str(problem)) from None
        times = columns["time_s"]
        if to_ticks(times[-1]) <= (to_ticks(times[-2]) if len(times) > 1 else -1) or (len(times) == 1 and times[0]):
            must = f"it must be after the one before, {times[-2]:g}" if len(times) > 1 else "the first must be 0"
            raise TraceError(f"{place}: field time_s: {times[-1]:g} is not allowed; {must}")
    if not columns or not columns["time_s"]:
        raise TraceError(f"{file}: there is no step; the first line must name the columns time_s and price, others follow")
    return Price(**columns, every_s=every_s)


def _as_number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def price_from(value: object, place: Place) -> Price:
    """Return the price that a table of a file describes, or a file of CSV; a table may name one as ``file``, too."""
    if isinstance(value, str) and not value.endswith(SUFFIX):
        value = {"file": value}
    table, place = table_at(value, place, "a Price")
    if "file" not in table:
        return made(Price, table, place)
    others = dict(table)
    if not isinstance(file := others.pop("file"), str):
        raise place.at("file").refused(file, "the name of a file")
    return made(read_price, others, place, path=place.folder / file)
