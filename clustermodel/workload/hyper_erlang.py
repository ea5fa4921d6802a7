"""The hyper-Erlang distribution of common order, and its fit to three moments (Zhang et al. 2003, section 2.1).

The method is that of Jann et al. 1997.  :mod:`clustermodel.workload.model_fit` says which times are fitted, and what is done
where no fit exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError, quoted
from clustermodel.validation import require_number, require_seconds, require_whole

LARGEST_ORDER: Final = 1_000
"""Largest order allowed.  An Erlang distribution of order n has a coefficient of variation of 1/sqrt(n), which is about
3 % for this order: times that need a larger order are constant for practical purposes."""
_ROUNDING: Final = 1e-12
"""Moments within this relative distance of the limit of an order count as at the limit, because moments are rounded."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HyperErlang:
    """A time that is the sum of ``order`` exponential stages, whose mean is one with probability ``p``, else another.

    Raises:
        SpecificationError: ``order`` is not a whole number from 1 to 1,000, ``p`` not in (0, 1], or a stage not a time > 0.
    """

    order: int
    """Number n of stages, common to both branches."""
    p: float
    """Probability of the first branch.  By convention (:meth:`fit`) this is the longer branch: it may be very improbable and
    still determine the third moment, and 1 - p would lose it to rounding.  1 is an Erlang distribution."""
    stage_s: tuple[float, float]
    """Mean time of a stage in the first and in the second branch, seconds."""

    def __post_init__(self) -> None:
        order = require_whole("HyperErlang.order", self.order, at_least=1)
        if order > LARGEST_ORDER:
            raise SpecificationError(f"HyperErlang.order: {order} is not allowed; it must be an integer <= {LARGEST_ORDER}")
        object.__setattr__(self, "order", order)
        p = require_number("HyperErlang.p", self.p, "a number > 0 and <= 1", lambda x: 0 < x <= 1)
        if not isinstance(self.stage_s, tuple | list) or len(self.stage_s) != 2:
            raise SpecificationError(
                f"HyperErlang.stage_s: {quoted(self.stage_s)} is not allowed; it must be two times in seconds"
            )
        first, second = (require_seconds("HyperErlang.stage_s", stage, positive=True) for stage in self.stage_s)
        object.__setattr__(self, "p", p)
        object.__setattr__(self, "stage_s", (first, second))

    @classmethod
    def fit(cls, m1: float, m2: float, m3: float) -> HyperErlang:
        """Return the distribution of smallest order with the raw moments ``m1``, ``m2``, ``m3`` (s, s^2, s^3).

        The k-th moment of an Erlang distribution of order n and stage x is n (n+1) ... (n+k-1) x^k.  Divided by these
        products, the moments are those of a two-point distribution: x1 with probability p, x2 with 1 - p.  It exists, with
        both points above zero, exactly when mu2 > mu1^2 and mu1 mu3 > mu2^2 (the two Hankel determinants).  For the order
        that means n > 1 / CV^2 and n + 1 > 1 / (m1 m3 / m2^2 - 1), so every time that varies has a smallest order, except
        one with only two values of which one is zero.

        Raises:
            SpecificationError: no order up to :data:`LARGEST_ORDER` has these moments, or the smallest such order needs a stage
                of more than 1e10 s; the message says which.
        """
        shown = f"HyperErlang.fit: moments {m1:g} s, {m2:g} s^2, {m3:g} s^3"
        if not all(isfinite(moment) and moment > 0 for moment in (m1, m2, m3)):
            raise SpecificationError(f"{shown} are not allowed; they must be finite numbers > 0")
        spread, skew = m2 / m1 / m1, (m3 / m2) / (m2 / m1)
        if not (isfinite(spread) and isfinite(skew) and isfinite(spread * spread * skew)):
            raise SpecificationError(f"{shown} are not allowed; they are too far apart")
        if spread - 1 <= _ROUNDING:
            raise SpecificationError(f"{shown} admit no fit: m2 is not above m1^2, as of times that do not vary")
        if skew - 1 <= _ROUNDING:
            raise SpecificationError(f"{shown} admit no fit: m1 m3 is not above m2^2, as of times that are zero or one value")
        for n in range(1, LARGEST_ORDER + 1):
            # Moments of the two points in units of their mean, and their relative distances from the limits.
            mu2 = spread * n / (n + 1)
            mu3 = skew * mu2 * mu2 * (n + 1) / (n + 2)
            inside, inside3 = mu2 - 1, mu3 / mu2 / mu2 - 1
            if abs(inside) <= _ROUNDING and abs(inside3) <= _ROUNDING:
                return cls(order=n, p=1.0, stage_s=(m1 / n, m1 / n))
            if inside > _ROUNDING and inside3 > _ROUNDING:
                break
        else:
            raise SpecificationError(
                f"{shown} admit no fit of an order up to {LARGEST_ORDER:,} "
                f"(CV {sqrt(spread - 1):.3g}, m1 m3 / m2^2 = {skew:.6g})"
            )
        # The points as deviations from the mean: their product is minus the variance, their sum third / second central
        # moment.  The larger one is computed first, so that no digits are lost if they differ by orders of magnitude.
        tilt = (mu3 - 3 * mu2 + 2) / inside
        apart = sqrt(tilt * tilt + 4 * inside)
        if tilt >= 0:
            above = (tilt + apart) / 2
            below = -inside / above
        else:
            below = (tilt - apart) / 2
            above = -inside / below
        # Near zero, the shorter point is more exact from the product of the two, (mu3 - mu2^2) / (mu2 - 1).
        longer = 1 + above
        shorter = 1 + below if below > -0.5 else mu2 * mu2 * inside3 / inside / longer
        return cls(order=n, p=-below / apart, stage_s=(longer * m1 / n, shorter * m1 / n))

    @classmethod
    def from_mean(cls, mean_s: float, cv: float) -> HyperErlang:
        """Return the usual distribution with a given mean and coefficient of variation, where a third moment is not known.

        ``cv`` > 1: order 1 (hyper-exponential) with balanced means, p x1 = (1 - p) x2.  ``cv`` <= 1: the Erlang distribution
        whose variance is nearest, of an order up to :data:`LARGEST_ORDER`, so the variance is approximate.

        Raises:
            SpecificationError: ``mean_s`` is not a time > 0 (seconds), or ``cv`` not a number from 0 to 1e6.
        """
        mean = require_seconds("HyperErlang.from_mean: mean_s", mean_s, positive=True)
        square = require_number("HyperErlang.from_mean: cv", cv, "a number >= 0 and <= 1e6", lambda x: 0 <= x <= 1e6) ** 2
        if square > 1:
            p = 1 / (square + 1 + sqrt(square * square - 1))
            return cls(order=1, p=p, stage_s=(mean / (2 * p), mean / (2 * (1 - p))))
        order = LARGEST_ORDER if square * LARGEST_ORDER <= 1 else round(1 / square)
        return cls(order=order, p=1.0, stage_s=(mean / order, mean / order))

    def moments(self) -> tuple[float, float, float]:
        """Return the first three raw moments (s, s^2, s^3)."""
        (first, second), n = self.stage_s, self.order
        mu1, mu2, mu3 = (self.p * first**k + (1 - self.p) * second**k for k in (1, 2, 3))
        return n * mu1, n * (n + 1) * mu2, n * (n + 1) * (n + 2) * mu3

    @property
    def mean_s(self) -> float:
        """Mean, seconds."""
        return self.moments()[0]

    @property
    def cv(self) -> float:
        """Coefficient of variation: standard deviation over mean."""
        m1, m2, _ = self.moments()
        return sqrt(m2 / m1 / m1 - 1)

    @property
    def skewness(self) -> float:
        """Third central moment over the cube of the standard deviation."""
        m1, m2, m3 = self.moments()
        return (m3 / m1**3 - 3 * m2 / m1**2 + 2) / self.cv**3

    def cdf(self, time_s: npt.ArrayLike) -> FloatArray:
        """Return the probability of at most ``time_s`` (seconds, any shape), in that shape."""
        from scipy.special import gammainc

        time = np.asarray(time_s, dtype=np.float64)
        first, second = (gammainc(self.order, time / stage) for stage in self.stage_s)
        probability: FloatArray = np.asarray(self.p * first + (1 - self.p) * second)
        return probability

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return ``size`` independent times in seconds, shape ``(size,)``."""
        stage = np.where(rng.random(size) < self.p, *self.stage_s)
        times: FloatArray = stage * rng.standard_gamma(self.order, size)
        return times

    def sample_residual(self, rng: np.random.Generator) -> float:
        """Return the time, in seconds, from an arbitrary instant to the next renewal of a process in equilibrium.

        Such an instant is more likely in a long interval than in a short one, and uniform within it.
        """
        first, second = (share * stage for share, stage in zip((self.p, 1 - self.p), self.stage_s, strict=True))
        stage = self.stage_s[0] if rng.random() < first / (first + second) else self.stage_s[1]
        return stage * float(rng.standard_gamma(self.order + 1)) * rng.random()
