"""The four shapes of jobs of table 2: short or long by the estimate, narrow or wide by the nodes."""

from typing import Final

import numpy as np
import numpy.typing as npt

from clustermodel import Workload

SHAPES: Final = ("short-narrow", "short-wide", "long-narrow", "long-wide")
"""The shapes, in the order of table 2."""


def shapes_of_jobs(
    nodes: npt.ArrayLike, estimate: npt.ArrayLike, *, narrow: int | None = None, among: npt.ArrayLike = True
) -> npt.NDArray[np.str_]:
    """Return the shape of each job, or an empty text if it is not ``among`` those that count; shape ``(jobs,)``.

    A job is *short* if its estimate is at most the median of all estimates, and *narrow* if it asks for at most the median
    number of nodes, or at most ``narrow``.  The caption of table 2 says "median job parallelism and median job overestimation
    factor"; the table's numbers of jobs are those of the median estimate.
    """
    size, length = np.asarray(nodes), np.asarray(estimate)
    chosen = np.broadcast_to(np.asarray(among, dtype=bool), size.shape)
    if not chosen.any():
        return np.full(size.shape, "", dtype="U12")
    is_wide = size > (np.median(size[chosen]) if narrow is None else narrow)
    is_long = length > np.median(length[chosen])
    return np.where(chosen, np.array(SHAPES)[2 * is_long + is_wide], "")


def workload_shapes(workload: Workload, nodes: int, *, narrow: int | None = None) -> npt.NDArray[np.str_]:
    """Return the shape of each job, or an empty text if the machine rejects it; shape ``(jobs,)``."""
    size = workload.column("nodes")
    return shapes_of_jobs(size, workload.column("estimate"), narrow=narrow, among=(size > 0) & (size <= nodes))
