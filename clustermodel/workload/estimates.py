"""The phi model of overestimation (Zhang et al. 2003, section 2.1, figure 1): by how much users overestimate run times."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from clustermodel.validation import require_number

PHI: Final = 0.2
"""Fraction of jobs whose estimate is exact, in Zhang et al. 2003 (sections 3 and 5)."""


def phi_factors(rng: np.random.Generator, size: int, phi: float) -> npt.NDArray[np.float64]:
    """Return ``size`` overestimation factors, estimate over run time, shape ``(size,)``.

    With y uniform in [0, 1) the factor is 1 where y < ``phi``, else (1 - ``phi``) / (1 - y).  So a fraction ``phi`` of the
    estimates is exact, and run time over estimate is uniform in (0, 1] for the rest.  The mean factor is infinite.

    Raises:
        SpecificationError: ``phi`` is not a number in [0, 1].
    """
    exact = require_number("phi", phi, "a number >= 0 and <= 1", lambda x: 0 <= x <= 1)
    y = rng.random(size)
    return np.where(y < exact, 1.0, (1 - exact) / (1 - y))
