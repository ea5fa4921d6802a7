"""Fit of a Weibull distribution to times between failures or repair times, with profile-likelihood intervals."""

from __future__ import annotations

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

    Args:
        times_s: independent times in seconds, shape ``(times,)``.
        level: probability that an interval holds the true value, asymptotically.

    Raises:
        SpecificationError: a time is negative or not a finite number, or fewer than two different times are above zero.
    """
    from scipy.stats import chi2

    require_number("level", level, "a number > 0 and < 1", lambda x: 0 < x < 1)
    given = np.asarray(times_s)
    if given.ndim != 1 or given.dtype.kind not in "iuf" or not (np.isfinite(given) & (given >= 0)).all():
        raise SpecificationError(f"times_s: {quoted(times_s)} is not allowed; it must be a list of finite numbers >= 0")
    positive = given[given > 0].astype(np.float64)
    if len(np.unique(positive)) < 2:
        raise SpecificationError(
            f"times_s: {len(np.unique(positive))} different times > 0 are not allowed; there must be at least two"
        )
    origin = float(np.log(positive).mean())
    logs = np.log(positive) - origin  # so that they add up to zero
    shape_log = _root(lambda log_shape: _slope(log_shape, logs), 0.0, 1.0)
    shape = math.exp(shape_log)
    scale_log = _best_scale_log(shape, logs)
    drop = _likelihood(shape, scale_log, logs) - float(chi2.ppf(level, 1)) / 2

    def excess_of_shape(log_shape: float) -> float:
        k = math.exp(log_shape)
        return _likelihood(k, _best_scale_log(k, logs), logs) - drop

    def excess_of_scale(log_scale: float) -> float:
        return _likelihood(_best_shape(log_scale, logs), log_scale, logs) - drop

    step = 1 / math.sqrt(len(logs))
    low, high = (math.exp(_root(excess_of_shape, shape_log, side * step)) for side in (-1, 1))
    low_s, high_s = (math.exp(origin + _root(excess_of_scale, scale_log, side * step / shape)) for side in (-1, 1))
    return WeibullFit(shape, math.exp(origin + scale_log), (low, high), (low_s, high_s), len(logs), len(given) - len(logs))


def _likelihood(shape: float, scale_log: float, logs: FloatArray) -> float:
    """Return the logarithm of the likelihood, up to a constant; the logarithms of the times add up to zero."""
    powers = np.exp(np.minimum(shape * (logs - scale_log), _LARGEST_EXPONENT))
    return len(logs) * (math.log(shape) - shape * scale_log) - float(powers.sum())


def _slope(log_shape: float, logs: FloatArray) -> float:
    """Return the derivative of the likelihood by the shape, at the best scale for it and divided by the number of times."""
    shape = math.exp(log_shape)
    weights = np.exp(shape * (logs - logs.max()))
    return 1 / shape - float(weights @ logs / weights.sum())


def _best_scale_log(shape: float, logs: FloatArray) -> float:
    """Return the logarithm of the best scale for a shape: the mean of time^shape is scale^shape."""
    highest = float(logs.max())
    return highest + math.log(float(np.exp(shape * (logs - highest)).mean())) / shape


def _best_shape(scale_log: float, logs: FloatArray) -> float:
    distance = logs - scale_log

    def slope(log_shape: float) -> float:
        shape = math.exp(log_shape)
        powers = np.exp(np.minimum(shape * distance, _LARGEST_EXPONENT))
        return float(1 / shape + (distance * (1 - powers)).mean())

    return math.exp(_root(slope, 0.0, 1.0))


def _root(function: Callable[[float], float], start: float, step: float) -> float:
    """Return a zero of ``function``, searched from ``start`` in steps that double, back first if the sign says so."""
    from scipy.optimize import brentq

    near, sign = start, function(start) > 0
    if not sign:
        step = -step
    while (function(near + step) > 0) == sign:
        near, step = near + step, 2 * step
    return float(brentq(function, near, near + step, xtol=1e-13))
