"""The phi model of users' estimates, by which Zhang et al. 2003 (section 2.1) draw how far a job is overestimated."""

from __future__ import annotations

from typing import Final

import numpy as np

from clustermodel.arrays import FloatArray
from clustermodel.validation import share

PHI: Final = 0.2
"""Fraction of jobs whose estimate is exact, in Zhang et al. 2003 (sections 3 and 5)."""


def phi_factors(rng: np.random.Generator, size: int, phi: float) -> FloatArray:
    """Return ``size`` overestimation factors, estimate over run time, shape ``(size,)``.

    With y uniform in [0, 1) the factor is 1 where y < ``phi``, else (1 - ``phi``) / (1 - y).  So a fraction ``phi`` of the
    estimates is exact, and run time over estimate is uniform in (0, 1] for the rest.  The mean factor is infinite.
    """
    exact = share("phi", phi)
    y = rng.random(size)
    return np.where(y < exact, 1.0, (1 - exact) / (1 - y))
