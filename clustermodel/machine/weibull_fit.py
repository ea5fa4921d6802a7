"""Fit of a Weibull distribution to times between failures or repair times, with profile-likelihood intervals."""

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError, quoted
from clustermodel.validation import require_number

_LARGEST_EXPONENT: Final = 700.0  # larger powers of e do not fit a float


class WeibullFit(NamedTuple):
    """A Weibull distribution fitted to times, with profile-likelihood intervals, and how many times of zero were left out.

    With a shape below 1 the failure rate falls with the time since the last failure.
    """

    shape: float
    scale_s: float
    shape_interval: tuple[float, float]
    scale_interval_s: tuple[float, float]
    times: int
    zeros: int

    @property
    def mean_s(self) -> float:
        """Mean of the fitted distribution, seconds."""
        return self.scale_s * math.gamma(1 + 1 / self.shape)


def fit_weibull(times_s: npt.ArrayLike, *, level: float = 0.95) -> WeibullFit:
    """Return the Weibull distribution of greatest likelihood, with profile-likelihood intervals (Meeker & Escobar 1998).

    Times of zero are left out and counted, as a single one would make the likelihood of a shape below one infinite.  In records
    to the minute they are nodes that failed together; the fitted mean is that of the times between moments of failure.
    ``times_s`` are independent, shape ``(times,)``, at least two different ones above zero; ``level`` is the probability that
    an interval holds the true value, asymptotically.
    """
    from scipy.stats import chi2

    require_number("level", level, "a number > 0 and < 1", lambda x: 0 < x < 1)
    given = np.asarray(times_s)
    if given.ndim != 1 or given.dtype.kind not in "iuf" or not (np.isfinite(given) & (given >= 0)).all():
        raise SpecificationError(f"times_s: {quoted(times_s)} is not allowed; it must be a list of finite numbers >= 0")
    positive = given[given > 0].astype(np.float64)
    if (different := len(np.unique(positive))) < 2:
        raise SpecificationError(f"times_s: {different} different times > 0 are not allowed; there must be at least two")
    origin = float(np.log(positive).mean())
    logs = np.log(positive) - origin  # so that they add up to zero
    highest = float(logs.max())

    def powers(shape: float, scale_log: float) -> FloatArray:
        result: FloatArray = np.exp(np.minimum(shape * (logs - scale_log), _LARGEST_EXPONENT))
        return result

    def likelihood(shape: float, scale_log: float) -> float:  # its logarithm, up to a constant
        return len(logs) * (math.log(shape) - shape * scale_log) - float(powers(shape, scale_log).sum())

    def best_scale_log(shape: float) -> float:  # the mean of time^shape is scale^shape
        return highest + math.log(float(np.exp(shape * (logs - highest)).mean())) / shape

    def slope(log_shape: float, scale_log: float) -> float:  # derivative of the likelihood by the shape, divided by the times
        shape = math.exp(log_shape)
        return float(1 / shape + ((logs - scale_log) * (1 - powers(shape, scale_log))).mean())

    shape_log = _root(lambda log: slope(log, best_scale_log(math.exp(log))), 0.0, 1.0)
    shape = math.exp(shape_log)
    scale_log = best_scale_log(shape)
    least = likelihood(shape, scale_log) - float(chi2.ppf(level, 1)) / 2

    def excess_of_shape(log: float) -> float:
        return likelihood(math.exp(log), best_scale_log(math.exp(log))) - least

    def excess_of_scale(log: float) -> float:
        best_shape = math.exp(_root(lambda log_shape: slope(log_shape, log), 0.0, 1.0))
        return likelihood(best_shape, log) - least

    step = 1 / math.sqrt(len(logs))
    low, high = (math.exp(_root(excess_of_shape, shape_log, side * step)) for side in (-1, 1))
    low_s, high_s = (math.exp(origin + _root(excess_of_scale, scale_log, side * step / shape)) for side in (-1, 1))
    return WeibullFit(shape, math.exp(origin + scale_log), (low, high), (low_s, high_s), len(logs), len(given) - len(logs))


def _root(function: Callable[[float], float], start: float, step: float) -> float:
    """Return a zero of ``function``, searched from ``start`` in steps that double, back first if the sign says so."""
    from scipy.optimize import brentq

    near, sign = start, function(start) > 0
    if not sign:
        step = -step
    while (function(near + step) > 0) == sign:
        near, step = near + step, 2 * step
    return float(brentq(function, near, near + step, xtol=1e-13))
