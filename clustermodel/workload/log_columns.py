"""Columns of an accounting log as numbers: each text is looked up, or read once, and time stamps are read all at once.

What cannot be read so has the value :data:`ODD`; such a record is left to the reader of single records, which names the field.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Final, TypeVar

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.job import UNSET
from clustermodel.validation import LONGEST_S
from clustermodel.workload.log_values import EARLIEST_S, Clock, duration, whole

ODD: Final = -2
"""A value that must be read by itself: not to be read, no whole number, or larger than ``LARGEST``."""
LARGEST: Final = 2**31

_MOST_KEPT: Final = 65_536
_STAMP: Final = 19  # letters of 2025-03-03T08:00:00
_BETWEEN: Final = [4, 7, 10, 13, 16]
_SEPARATORS: Final = np.frombuffer(b"--T::", dtype=np.uint8)
_DIGITS: Final = [0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18]
_ZERO: Final = np.uint8(ord("0"))
_HIGHEST: Final = np.array([9] * 10 + [5, 9, 5, 9], dtype=np.uint8)
_PLACES: Final = 10 ** np.arange(9, -1, -1)  # of the digits of year, month, day and hour
_SECONDS: Final = np.array([600, 60, 10, 1])  # of the digits of minute and second

_Text = TypeVar("_Text")


def are_digits(texts: Sequence[str], most: int) -> bool:
    """Return whether each text consists of 1 to ``most`` digits."""
    together = "".join(texts)
    return together.isascii() and together.isdecimal() and all(texts) and max(map(len, texts)) <= most


class Values(dict[_Text, int]):
    """Whole numbers of texts, kept by text.

    Args:
        value_of: returns the number of a text, :data:`~clustermodel.job.UNSET` or :data:`ODD`.
    """

    def __init__(self, value_of: Callable[[_Text], int]) -> None:
        super().__init__()
        self._value_of = value_of

    def __missing__(self, text: _Text) -> int:
        value = self[text] = self._value_of(text)
        return value

    def of(self, texts: Sequence[_Text]) -> IntArray:
        """Return the numbers of texts, shape ``(texts,)``."""
        if len(self) > _MOST_KEPT:
            self.clear()
        return np.fromiter(map(self.__getitem__, texts), dtype=np.int64, count=len(texts))


class Rows(dict[str, int]):
    """Several whole numbers for each text, kept by text.

    Args:
        row_of: returns the numbers of a text.
        width: how many they are.
    """

    def __init__(self, row_of: Callable[[str], Sequence[int]], width: int) -> None:
        super().__init__()
        self._row_of = row_of
        self._table = np.zeros((256, width), dtype=np.int64)

    def __missing__(self, text: str) -> int:
        at = len(self)
        if at == len(self._table):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        self._table[at] = self._row_of(text)
        self[text] = at
        return at

    def of(self, texts: Sequence[str]) -> IntArray:
        """Return the numbers of texts, shape ``(width, texts)``."""
        if len(self) > _MOST_KEPT:
            self.clear()
        at = np.fromiter(map(self.__getitem__, texts), dtype=np.int64, count=len(texts))
        return self._table[at].T


class Durations(Values[str]):
    """Durations in seconds.

    Args:
        plain_unit: seconds of a number without colons.
    """

    def __init__(self, plain_unit: int = 1) -> None:
        super().__init__(self._seconds)
        self._plain_unit = plain_unit

    def of(self, texts: Sequence[str]) -> IntArray:
        """Return the durations, shape ``(texts,)``."""
        if are_digits(texts, 9):
            seconds: IntArray = self._plain_unit * np.fromiter(map(int, texts), dtype=np.int64, count=len(texts))
            if seconds.max() <= LONGEST_S:
                return seconds
        return super().of(texts)

    def _seconds(self, text: str) -> int:
        try:
            seconds = duration(text, self._plain_unit)
        except ValueError:
            return ODD
        if seconds is None:
            return UNSET
        return int(seconds) if seconds == int(seconds) else ODD


def amounts() -> Values[str]:
    """Return a reader of numbers such as ``4``, ``4K`` or ``1.5K``; 0 where there is none."""

    def value_of(text: str) -> int:
        value = whole(text)
        return value if value <= LARGEST else ODD

    return Values(value_of)


class Stamps:
    """Reads columns of time stamps.

    Args:
        clock: reads a single one.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._hours = Values(self._hour)
        self._others = Values(self._other)

    def of(self, texts: Sequence[str]) -> IntArray:
        """Return time stamps as seconds since 1970 UTC, shape ``(texts,)``.

        Where there is no time it is :data:`~clustermodel.job.UNSET`; stamps in an hour in which the clock is changed are
        :data:`ODD`.
        """
        usual = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)) == _STAMP
        if usual.all():
            return self._usual("".join(texts))
        seconds = np.empty(len(texts), dtype=np.int64)
        seconds[usual] = self._usual("".join(compress(texts, usual.tolist())))
        seconds[~usual] = self._others.of(list(compress(texts, (~usual).tolist())))
        return seconds

    def _usual(self, text: str) -> IntArray:
        """Return stamps such as ``2025-03-03T08:00:00``, one after the other, as seconds."""
        if not text.isascii():
            return np.full(len(text) // _STAMP, ODD)
        letters = np.frombuffer(text.encode("ascii"), dtype=np.uint8).reshape(-1, _STAMP)
        digits = letters[:, _DIGITS] - _ZERO  # above 9 where a letter is none
        good = (letters[:, _BETWEEN] == _SEPARATORS).all(axis=1) & (digits <= _HIGHEST).all(axis=1)
        hour = digits[:, :10] @ _PLACES
        hours = self._hours.of(np.where(good, hour, 0).tolist())
        seconds: IntArray = hours + digits[:, 10:] @ _SECONDS
        seconds[seconds <= EARLIEST_S] = UNSET
        seconds[hours == ODD] = ODD
        return seconds

    def _hour(self, number: int) -> int:
        """Return the time at which hour ``2025030308`` begins."""
        begin = self._clock.hour(number // 1_000_000, number // 10_000 % 100, number // 100 % 100, number % 100)
        return ODD if begin is None else begin

    def _other(self, text: str) -> int:
        try:
            seconds = self._clock.seconds(text)
        except ValueError:
            return ODD
        if seconds is None:
            return UNSET
        return ODD if self._clock.may_repeat(text) else seconds
