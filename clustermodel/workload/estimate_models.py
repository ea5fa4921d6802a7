"""Models of users' estimates: exact, overestimated by a factor, or rounded to popular values.

Zhang et al. 2003 (section 2.1) draw the factor by their phi model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

import numpy as np

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError, quoted
from clustermodel.validation import Checked, require_seconds, share
from clustermodel.workload.distributions import Distribution, draw, require_distribution
from clustermodel.workload.phi import PHI, phi_factors

POPULAR_S: Final = tuple(
    60.0 * minutes for minutes in (1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 360, 480, 600, 720, 1080, 1440)
)
"""Twenty round times from a minute to a day, seconds.  Users choose most estimates from few such values (Tsafrir et al. 2005);
these twenty are an assumption, not fitted to a trace."""


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


@dataclass(frozen=True, kw_only=True)
class RoundedEstimates:
    """Estimates of another model, rounded up to the next of a few popular values.

    An estimate above the largest value becomes the next whole multiple of it.
    """

    estimates: EstimateModel = field(default_factory=FactorEstimates)
    values_s: Sequence[float] = POPULAR_S
    """Rising."""

    def __post_init__(self) -> None:
        require_estimate_model("RoundedEstimates.estimates", self.estimates)
        values = [require_seconds("RoundedEstimates.values_s", value, positive=True) for value in self.values_s]
        if not values or values != sorted(set(values)):
            raise SpecificationError(f"RoundedEstimates.values_s: {quoted(values)} is not allowed; it must be times that rise")

    def estimate(self, run_s: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return the estimates of jobs with these run times, seconds; shape ``(jobs,)``."""
        values = np.array(self.values_s, dtype=np.float64)
        exact = self.estimates.estimate(run_s, rng)
        next_value = values[np.searchsorted(values, exact).clip(max=len(values) - 1)]
        rounded: FloatArray = np.where(exact <= values[-1], next_value, np.ceil(exact / values[-1]) * values[-1])
        return rounded


def require_estimate_model(name: str, value: object) -> None:
    """Refuse what has no method ``estimate``."""
    if isinstance(value, type) or not isinstance(value, EstimateModel):
        raise SpecificationError(
            f"{name}: {quoted(value)} is not allowed; it must be FactorEstimates(...), PhiEstimates(...), "
            "RoundedEstimates(...) or an object with estimate(run_s, rng)"
        )
