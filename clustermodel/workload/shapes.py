"""The four shapes of jobs of Perkovic & Keleher 2000: short or long by the estimate, narrow or wide by the nodes."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import BoolArray

SHAPES: Final = ("short-narrow", "short-wide", "long-narrow", "long-wide")
"""The shapes, in the order of Perkovic & Keleher 2000, table 2."""


def jobs_by_shape(nodes: npt.ArrayLike, estimate: npt.ArrayLike, *, narrow: int | None = None) -> dict[str, BoolArray]:
    """Return which jobs have each of the four shapes.

    A job is *short* if its estimate is at most the median of all estimates, and *narrow* if it asks for at most the median
    number of nodes, or at most ``narrow``.  The caption of Perkovic & Keleher 2000, table 2 says "median job parallelism and
    median job overestimation factor"; the table's numbers of jobs are those of the median estimate.

    Args:
        nodes: requested by each job, shape ``(jobs,)``.
        estimate: of each job, in any unit, shape ``(jobs,)``.
        narrow: largest number of nodes of a narrow job; by default the median.

    Returns:
        For each of :data:`SHAPES` an array of shape ``(jobs,)``.  Every job has one shape.
    """
    size, length = np.asarray(nodes), np.asarray(estimate)
    is_narrow = size <= (np.median(size) if narrow is None else narrow)
    is_short = length <= np.median(length)
    members = (is_short & is_narrow, is_short & ~is_narrow, ~is_short & is_narrow, ~is_short & ~is_narrow)
    return dict(zip(SHAPES, members, strict=True))
