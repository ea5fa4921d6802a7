"""Types of arrays, arithmetic that gives the same digits on every computer, and distinct values in less time than NumPy's."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
_Number = TypeVar("_Number", np.int64, np.float64)


class Coded(NamedTuple):
    """A column of few different texts, each row the number of its text."""

    codes: IntArray
    texts: tuple[str, ...]

    def tolist(self) -> list[str]:
        """Return the text of each row."""
        return [self.texts[code] for code in self.codes.tolist()]


Columns = Mapping[str, npt.NDArray[Any] | Coded]
"""A table as columns of the same length, by name."""


def dot(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return the sum of products of two arrays, shapes ``(n,)``, with the sum rounded once.

    The order of additions in ``numpy.dot``, and so its last digits, depend on the processor and on the number of threads.
    """
    products = np.multiply(first, second, dtype=np.float64)
    return math.fsum(products.tolist())


def distinct(values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """Return the different values of an array in ascending order, shape ``(different,)``.

    ``numpy.unique`` hashes them since NumPy 2.3, which takes fifty times as long for a million times of events.
    """
    ordered = np.sort(values, axis=None)
    return np.append(ordered[:1], ordered[1:][ordered[1:] != ordered[:-1]])
