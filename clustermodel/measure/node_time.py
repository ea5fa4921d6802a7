"""Node time as columns of exact integers: of 64 bits where their sum fits into those, else Python's own, which have no limit.

The longest run of the largest machine is about 10^32 node-ticks; that of an ordinary one fits.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from clustermodel.ticks import TICKS_PER_SECOND

NodeTicks = npt.NDArray[np.int64] | npt.NDArray[np.object_]
"""Whole numbers >= 0; they and all sums over them are exact."""

_SAFE: Final = 2.0**62
"""A sum of positive terms that comes to this in floating point numbers is far from 2^63 in truth."""
_EXACT: Final = 2**53
"""Whole numbers up to this one are floating point numbers."""


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
