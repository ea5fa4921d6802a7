"""Node time as columns of exact integers: 64-bit where the sum fits, else Python's unlimited integers.

The longest run of the largest machine is about 10^32 node-ticks; ordinary runs fit 64 bits.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from clustermodel.ticks import TICKS_PER_SECOND

NodeTicks = npt.NDArray[np.int64] | npt.NDArray[np.object_]
"""Whole numbers >= 0; they and all sums over them are exact."""

_SAFE: Final = 2.0**62
"""If a sum of positive terms is at most this in floating point, its exact value is far below 2^63."""
_EXACT: Final = 2**53
"""Whole numbers up to this one are exact in floating point."""


def node_ticks(nodes: npt.NDArray[np.int64], ticks: npt.NDArray[np.int64]) -> NodeTicks:
    """Return nodes x ticks, element by element; neither is negative."""
    if np.dot(nodes.astype(np.float64), ticks.astype(np.float64)) > _SAFE:
        exact: npt.NDArray[np.object_] = nodes.astype(object) * ticks.astype(object)
        return exact
    return nodes * ticks


def node_seconds(amounts: NodeTicks) -> npt.NDArray[np.float64]:
    """Return node-ticks as node-seconds, each the nearest floating point number."""
    if len(amounts) and amounts.max() > _EXACT:
        return np.array([amount / TICKS_PER_SECOND for amount in amounts.tolist()], dtype=np.float64)
    seconds: npt.NDArray[np.float64] = amounts.astype(np.float64) / TICKS_PER_SECOND
    return seconds
