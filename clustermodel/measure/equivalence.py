"""Equivalence tests: does a mean agree with an expected value, to within a margin?

A margin says which differences do not matter.  Two one-sided t tests decide (Schuirmann 1987; Lakens 2017): the mean *agrees*
if both a difference of + margin and one of - margin are rejected, that is, if the interval of the difference lies within the
margin.  It *differs* if the interval lies outside.  Otherwise it is *undecided*: more values are needed.

Several looks at growing data give several chances of a wrong verdict.  The error is divided by the number of looks, which must
be fixed in advance (Bonferroni).  A wrong *differs* can err on either side of a small margin, so each side has half of the
error.  So a verdict is wrong with a probability of 1 - level at most, whatever the true difference is.

A t interval of few skewed values misses the mean too often, nearly always on one side: right-skewed values of which none
happens to be large have a low mean and a small deviation.  Verdicts therefore need an interval that is longer on the side of
the tail, by the cubic transformation of t by which Hall 1992 removes the skewness.  Few values underestimate their skewness:
it is taken as 1.75 times the skewness found + 12 / values, on either side.  The two constants were chosen so that exponential,
lognormal and Pareto values keep the level; ``docs/validation.md`` has the errors on these and on other distributions.
"""

from bisect import bisect_left
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError
from clustermodel.measure.statistics import LEVEL, Interval, checked_level, checked_values, of_one_more, t_quantile
from clustermodel.validation import flag, require, require_number, require_whole

Verdict = Literal["agrees", "differs", "undecided"]
MARGIN: Final = 0.02  # by default, as a share of the expected value
_UNDERESTIMATED: Final = 1.75
_OF_FEW: Final = 12
_POWER: Final = 0.9  # probability of a verdict with the number of values that is asked for


@dataclass(frozen=True)
class Estimate:
    """An estimated mean and its precision."""

    mean: float
    error: float  # standard error of the mean
    freedom: int  # degrees of freedom of the error
    count: int  # values
    skewness: float  # of the values; 0 for fewer than three

    def interval(self, level: float = LEVEL) -> Interval:
        """Return the Student t interval of the mean; its half-width is ``inf`` for too few values."""
        level = checked_level(level)
        half = t_quantile(self.freedom, (1 + level) / 2) * self.error if self.freedom else inf
        return Interval(self.mean, half, level, self.count)

    def bounds(self, error: float) -> tuple[float, float]:
        """Return a lower and an upper bound of the mean, each missed with the probability ``error``, for skewed values too.

        The t interval at least, and about four times as wide at most (Hall 1992; see the module).  Without a standard
        error both are infinite.
        """
        if not self.freedom or self.error in (0.0, inf):
            return self.mean - self.error, self.mean + self.error
        quantile = t_quantile(self.freedom, 1 - error)
        below, above = (_stretched(quantile, side * self.skewness, self.count) for side in (-1, 1))
        return self.mean - below * self.error, self.mean + above * self.error


def _stretched(quantile: float, skewness: float, count: int) -> float:
    """Return how many standard errors the mean may lie on the side of the tail, from the quantile of t.

    With c = skewness / sqrt(count), Hall's transformation maps -t to 3 / c (cbrt(1 - c (t + c / 6)) - 1).  Its size grows with
    c up to c = 9 / (8 t) or nearly so, to 4 t, and shrinks beyond; there it stays 4 t here.
    """
    taken = max(_UNDERESTIMATED * skewness, skewness) + _OF_FEW / count
    c = min(taken / sqrt(count), 9 / (8 * quantile)) if quantile > 0 else 0.0
    if c < 1e-9:
        return quantile
    return max(quantile, 3 / c * (1 - float(np.cbrt(1 - c * (quantile + c / 6)))))


@dataclass(frozen=True)
class Equivalence:
    """The outcome of an equivalence test of ``count`` values; ``difference`` is mean - expected."""

    expected: float
    """The expected mean; the mean of the expected values, where each value has its own."""
    difference: float
    half: float
    """Half the width of the t interval of the difference of level 1 - 2 (1 - level) / looks, of two one-sided tests; skewed
    or few values need a wider one for a verdict.  ``inf`` for a single value."""
    margin: float
    """The largest difference that does not matter, in the unit of the mean."""
    unit: float
    """Size of the expected mean if the margin is a share of it, otherwise 1: in this unit differences are reported."""
    verdict: Verdict
    count: int
    more: int | None
    """Values needed in addition for a verdict with 90 % probability, if the true difference and the spread are those found
    so far; ``None`` if there is a verdict, or if that number cannot be estimated."""

    @property
    def mean(self) -> float:
        """The estimated mean."""
        return self.expected + self.difference

    @property
    def low(self) -> float:
        """Lower end of the t interval of the difference."""
        return self.difference - self.half

    @property
    def high(self) -> float:
        """Upper end of the t interval of the difference."""
        return self.difference + self.half

    def __str__(self) -> str:
        if self.verdict == "undecided":
            return "undecided" if self.more is None else f"undecided: needs {self.more:,} more replications"
        return self.verdict


def controlled_mean(
    values: npt.ArrayLike, controls: npt.ArrayLike | None = None, control_means: npt.ArrayLike = ()
) -> Estimate:
    """Return the mean of independent values, with its standard error; if there are control variates, by regression on them.

    A control variate is a number of the same run whose expected value is known, for example the run's mean service time.
    What the controls deviate from their expected values explains part of the deviation of the mean, which is subtracted; the
    coefficients are estimated by least squares, which costs a degree of freedom each (Lavenberg & Welch 1981).  A control that
    is the same in all runs explains nothing, and is left out.  The error is ``inf`` if there are too few values.

    Shapes: values ``(replications,)``, controls ``(replications, controls)``, and their expected values ``(controls,)``.
    """
    array = checked_values("values", values, 1)
    count, mean = len(array), float(array.mean())
    given = np.zeros((count, 0)) if controls is None else np.asarray(controls, dtype=float)
    expected = np.asarray(control_means, dtype=float)
    if given.shape != (count, len(expected)) or not (np.isfinite(given).all() and np.isfinite(expected).all()):
        shapes, rule = f"shapes {given.shape} of controls and {expected.shape} of their means", "a mean for each column"
        raise SpecificationError(f"controls: {shapes} are not allowed; there must be {count} rows, {rule}, all finite")
    spread = given.std(axis=0)
    varies = spread > 1e-9 * np.maximum(np.abs(given).max(axis=0), np.abs(expected))
    given, expected, spread = given[:, varies], expected[varies], spread[varies]
    if not len(expected):
        return _estimate(array - mean, mean, 1 / count, count - 1)
    centred, offset = (given - given.mean(axis=0)) / spread, (given.mean(axis=0) - expected) / spread
    coefficients, _, rank, _ = np.linalg.lstsq(centred, array - mean, rcond=1e-9)
    leverage = 1 / count + float(offset @ np.linalg.pinv(centred.T @ centred) @ offset)
    residuals = array - mean - centred @ coefficients
    return _estimate(residuals, mean - float(offset @ coefficients), leverage, count - 1 - int(rank))


def _estimate(residuals: FloatArray, mean: float, leverage: float, freedom: int) -> Estimate:
    """Return an estimate; ``leverage`` is the variance of the mean by that of the residuals."""
    count = len(residuals)
    deviation = sqrt(float(residuals @ residuals) / freedom) if freedom > 0 else inf
    skewness, second = 0.0, float((residuals**2).mean())
    if count > 2 and second > 0:
        skewness = float((residuals**3).mean()) / second**1.5 * sqrt(count * (count - 1)) / (count - 2)
    return Estimate(mean, deviation * sqrt(leverage), max(freedom, 0), count, skewness)


def equivalence_test(
    values: npt.ArrayLike, expected: float | npt.ArrayLike, margin: float = MARGIN, *, relative: bool = True,
    controls: npt.ArrayLike | None = None, control_means: npt.ArrayLike = (), level: float = LEVEL, looks: int = 1,
    of_one_log: bool = False,
) -> Equivalence:  # fmt: skip
    """Return whether the mean of independent values agrees with an expected value, to within a margin.

    >>> values = [9.9, 10.1, 10.0, 9.9, 10.1] * 4
    >>> str(equivalence_test(values, 10, margin=0.02))
    'agrees'
    >>> str(equivalence_test(values, 10.5, margin=0.02))
    'differs'
    >>> str(equivalence_test([9.0, 11.0, 10.0, 9.2, 10.9], 10, margin=0.02))
    'undecided: needs 284 more replications'

    Args:
        values: one for each replication, shape ``(replications,)``.
        expected: their expected mean, or a value of the same run for each replication, with which it is paired.
        margin: the largest difference that does not matter, > 0.
        relative: the margin is a share of the expected value, which must not be 0; otherwise it has the unit of the values.
        controls: control variates, as for :func:`controlled_mean`.
        control_means: their expected values.
        level: 1 - the probability of a wrong verdict.
        looks: number of times that this test is made with growing data until there is a verdict, fixed in advance.
        of_one_log: the values are of resamples of one log, so that the interval is one of sample paths
            (:func:`clustermodel.measure.statistics.of_sample_paths`); more resamples then give no verdict.
    """
    array = checked_values("values", values, 1)
    wanted = np.asarray(expected, dtype=float)
    wanted = checked_values("expected", wanted if wanted.ndim else np.full(len(array), float(wanted)), 1)
    if len(wanted) != len(array):
        raise SpecificationError(f"expected: {len(wanted)} values are not allowed; there must be one, or one for each value")
    alpha = (1 - checked_level(level)) / require_whole("looks", looks, at_least=1)
    unit = abs(float(wanted.mean())) if flag("relative", relative) else 1.0
    require(unit, "expected", 0, "give relative=False", " with a relative margin")
    tolerance = require_margin(margin, relative=relative) * unit
    estimate = controlled_mean(array - wanted, controls, control_means)
    if of_one_log:
        estimate = replace(estimate, error=estimate.error * of_one_more(estimate.count))
    half = estimate.error if estimate.error in (0.0, inf) else t_quantile(estimate.freedom, 1 - alpha) * estimate.error
    (low, high), (surely_low, surely_high) = estimate.bounds(alpha), estimate.bounds(alpha / 2)
    verdict: Verdict = "undecided"
    if -tolerance <= low and high <= tolerance:
        verdict = "agrees"
    elif surely_low > tolerance or surely_high < -tolerance:
        verdict = "differs"
    more = _missing(estimate, tolerance, alpha) if verdict == "undecided" and not of_one_log else None
    return Equivalence(float(wanted.mean()), estimate.mean, half, tolerance, unit, verdict, estimate.count, more)


def _missing(estimate: Estimate, tolerance: float, alpha: float) -> int | None:
    """Return the values needed in addition for a verdict, if mean, deviation and skewness are those found so far."""
    from scipy.special import ndtri

    distance = abs(abs(estimate.mean) - tolerance)
    if estimate.error in (0.0, inf) or not distance:
        return None
    # Within the margin both tests must reject, and near zero each may fail: half the error of the second kind for each.
    within = abs(estimate.mean) < tolerance
    quantile, power = float(ndtri(1 - alpha / (1 if within else 2))), float(ndtri(1 - (1 - _POWER) / (2 if within else 1)))
    deviation = estimate.error * sqrt(estimate.count)
    tail = abs(estimate.skewness) if within else (-estimate.skewness if estimate.mean > 0 else estimate.skewness)

    def enough(count: int) -> bool:
        return (_stretched(quantile, tail, count) + power) * deviation / sqrt(count) <= distance

    most = max(estimate.count, 1)
    while not enough(most):
        most *= 2
        if most > 10**15:
            return None
    wanted = 1 + bisect_left(range(1, most), True, key=enough)
    return max(wanted - estimate.count, 1)


def require_margin(margin: object, *, relative: bool) -> float:
    """Return a margin, a finite number > 0; as a share of the expected value it must be below 1."""
    width = require_number("margin", margin, "a finite number > 0", lambda width: 0 < width < inf)
    if relative and width >= 1:
        percent = f"; {width:g} % is {width / 100:g}" if width < 100 else ""
        raise SpecificationError(
            f"margin: {width:g} is not allowed; a relative margin is a share, below 1{percent}; or give relative=False"
        )
    return width


def looks_at(first: int, at_most: int) -> tuple[int, ...]:
    """Return the numbers of replications at which a sequential test looks: ``first``, twice as many, and so on to ``at_most``.

    >>> looks_at(10, 100)
    (10, 20, 40, 80, 100)
    """
    looks = [first]
    while looks[-1] < at_most:
        looks.append(min(2 * looks[-1], at_most))
    return tuple(looks)
