"""Types of arrays, and arithmetic on arrays that gives the same digits on every computer."""

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
