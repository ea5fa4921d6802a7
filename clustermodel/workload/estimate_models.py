"""Models of users' estimates: exact, or overestimated by a factor.

Zhang et al. 2003 (section 2.1) draw the factor by their phi model.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError, quoted
from clustermodel.validation import Checked, share
from clustermodel.workload.distributions import Distribution, draw, require_distribution
from clustermodel.workload.phi import PHI, phi_factors


@runtime_checkable
class EstimateModel(Protocol):
    """How users estimate the run times of a job stream."""

    def estimate(self, run_s: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return the estimates of jobs with these run times, seconds; shape ``(jobs,)``."""


@dataclass(frozen=True)
class FactorEstimates(Checked, factor=require_distribution):
    """Estimates that are the run time times a factor; below 1 jobs run past their estimate, and may be killed there."""

    factor: Distribution = 1.0

    def estimate(self, run_s: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return the estimates of jobs with these run times, seconds; shape ``(jobs,)``."""
        return run_s * draw("FactorEstimates.factor", self.factor, rng, len(run_s))


@dataclass(frozen=True)
class PhiEstimates(Checked, phi=share):
    """Estimates by the phi model (:func:`~clustermodel.workload.phi.phi_factors`)."""

    phi: float = PHI
    """In [0, 1]."""

    def estimate(self, run_s: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return the estimates of jobs with these run times, seconds; shape ``(jobs,)``."""
        return run_s * phi_factors(rng, len(run_s), self.phi)


def require_estimate_model(name: str, value: object) -> None:
    """Refuse what has no method ``estimate``."""
    if isinstance(value, type) or not isinstance(value, EstimateModel):
        raise SpecificationError(
            f"{name}: {quoted(value)} is not allowed; it must be FactorEstimates(...), PhiEstimates(...) "
            "or an object with estimate(run_s, rng)"
        )
