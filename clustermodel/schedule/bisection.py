"""Bisection of ascending lists of times or nodes, as in the standard library's ``bisect``.

Compiled, these functions compare whole numbers without a call, two to three times as fast as the library does, which compares
objects.  Interpreted, the library's functions take their places.
"""

from __future__ import annotations

import bisect


def bisect_left(values: list[int], value: int, low: int = 0) -> int:
    """Return the first place from ``low`` on whose value is not below ``value``, the length of the list if there is none."""
    high = len(values)
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


def bisect_right(values: list[int], value: int, low: int = 0) -> int:
    """Return the first place from ``low`` on whose value is above ``value``, the length of the list if there is none."""
    high = len(values)
    while low < high:
        middle = (low + high) >> 1
        if value < values[middle]:
            high = middle
        else:
            low = middle + 1
    return low


if __file__.endswith(".py"):
    globals().update(bisect_left=bisect.bisect_left, bisect_right=bisect.bisect_right)
