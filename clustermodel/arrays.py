"""Arithmetic on arrays that gives the same digits on every machine."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def dot(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return the sum of products of two arrays, shapes ``(n,)``, with the sum rounded once.

    ``numpy.dot`` adds in an order that depends on the processor and on the number of threads, and so do its last digits.
    """
    products = np.multiply(first, second, dtype=np.float64)
    return math.fsum(products.tolist())
