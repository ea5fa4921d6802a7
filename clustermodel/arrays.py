"""Types of arrays, and arithmetic on arrays that gives the same digits on every computer."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def dot(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return the sum of products of two arrays, shapes ``(n,)``, with the sum rounded once.

    The order of additions in ``numpy.dot``, and so its last digits, depend on the processor and on the number of threads.
    """
    products = np.multiply(first, second, dtype=np.float64)
    return math.fsum(products.tolist())


def distinct(values: IntArray) -> IntArray:
    """Return the different values of an array, shape ``(n,)``, in rising order: what ``numpy.unique`` returns.

    ``numpy.unique`` imports ``numpy.ma``, which takes as long as SimPy.
    """
    ordered = np.sort(values)
    first = np.ones(len(ordered), dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def median(values: FloatArray) -> float:
    """Return the median of values without NaN, shape ``(n,)``, n > 0: what ``numpy.median`` returns.

    ``numpy.median`` imports ``numpy.ma`` too.
    """
    upper = len(values) // 2
    lower = upper - 1 + len(values) % 2
    parted = np.partition(values, (lower, upper))
    return float(np.mean(parted[lower : upper + 1]))


def percentile(values: FloatArray, percent: float) -> float:
    """Return a percentile of values without NaN, shape ``(n,)``, n > 0: linear interpolation as by ``numpy.percentile``.

    That function imports ``numpy.ma`` too.
    """
    place = (len(values) - 1) * (percent / 100)
    lower = math.floor(place)
    upper = min(lower + 1, len(values) - 1)
    parted = np.partition(values, (lower, upper))
    low, high, beyond = float(parted[lower]), float(parted[upper]), place - lower
    return high - (high - low) * (1 - beyond) if beyond >= 0.5 else low + (high - low) * beyond
