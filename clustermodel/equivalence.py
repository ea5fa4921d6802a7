"""Equivalence tests: does a mean agree with an expected value, to within a margin?

A t test of zero difference asks the wrong question: with few values it finds no difference, whatever there is, and with
many it finds the smallest one.  Here a margin says which differences do not matter.  Two one-sided t tests decide
(Schuirmann 1987; Lakens 2017): the mean *agrees* if both a difference of + margin and one of - margin are rejected, that
is, if the interval of the difference lies within the margin.  It *differs* if differences within the margin are rejected,
that is, if the interval lies outside.  Otherwise it is *undecided*: more values are needed.

Several looks at growing data give several chances of a wrong verdict.  The error is divided by the number of looks, which
must be fixed in advance (Bonferroni; Pocock 1977 has bounds that need the correlation of the looks and gain little).  So a
verdict is wrong with a probability of 1 - level at most, whatever the true difference is: a mean that is within the margin
seldom *differs*, and one that is not seldom *agrees*.

A t interval of few skewed values misses the mean too often.  As a rule, 25 times the squared skewness are enough (Cochran 1977,
section 2.15); with fewer values there is a verdict only if an interval three times as wide gives it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, sqrt
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError
from clustermodel.statistics import LEVEL, Interval, checked_level, checked_values
from clustermodel.validation import flag, require_number, require_whole

Verdict = Literal["agrees", "differs", "undecided"]
MARGIN: Final = 0.02
"""Default margin, as a share of the expected value."""
_SAFELY: Final = 3
"""A verdict that an interval so many times as wide gives too is not in doubt because of skewness."""
POWER: Final = 0.9
"""Probability of a verdict with the number of values that is asked for."""


@dataclass(frozen=True)
class Estimate:
    """An estimated mean and its precision."""

    mean: float
    error: float
    """Standard error of the mean."""
    freedom: int
    """Degrees of freedom of the standard error."""
    count: int
    """Number of values."""
    deviation: float
    """Standard deviation of the values, after regression on control variates."""
    skewness: float
    """Their skewness; 0 for fewer than three values."""

    @property
    def needed(self) -> int:
        """The number of values from which on a t interval of their mean can be trusted: 25 skewness^2 (Cochran 1977)."""
        return ceil(25 * self.skewness**2)

    def interval(self, level: float = LEVEL) -> Interval:
        """Return the Student t interval of the mean; its half-width is ``inf`` for too few values.

        Raises:
            SpecificationError: ``level`` is not between 0 and 1.
        """
        from scipy.special import stdtrit  # as in statistics.interval

        level = checked_level(level)
        half = float(stdtrit(self.freedom, (1 + level) / 2)) * self.error if self.freedom else inf
        return Interval(self.mean, half, level, self.count)


@dataclass(frozen=True)
class Equivalence:
    """The outcome of an equivalence test."""

    expected: float
    """The expected mean; the mean of the expected values, where each value has its own."""
    difference: float
    """Mean - expected."""
    half: float
    """Half the width of the interval of the difference, which decides: its level is 1 - 2 (1 - level) / looks.  ``inf`` for
    a single value."""
    margin: float
    """The largest difference that does not matter, in the unit of the mean."""
    unit: float
    """Size of the expected mean if the margin is a share of it, otherwise 1: in this unit differences are reported."""
    verdict: Verdict
    count: int
    """Number of values."""
    more: int | None
    """Values needed in addition for a verdict with 90 % probability, if the true difference and the spread are those found
    so far; ``None`` if there is a verdict, or if that number cannot be estimated."""

    @property
    def mean(self) -> float:
        """The estimated mean."""
        return self.expected + self.difference

    @property
    def low(self) -> float:
        """Lower end of the interval of the difference."""
        return self.difference - self.half

    @property
    def high(self) -> float:
        """Upper end of the interval of the difference."""
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
    is the same in all runs explains nothing, and is left out.

    Args:
        values: one for each replication, shape ``(replications,)``.
        controls: numbers of the same runs, shape ``(replications, controls)``.
        control_means: their expected values, shape ``(controls,)``.

    Returns:
        The estimate; its error is ``inf`` if there are too few values.

    Raises:
        SpecificationError: the shapes do not match, or a number is not finite.
    """
    array = checked_values("values", values, 1)
    count, mean = len(array), float(array.mean())
    given = np.zeros((count, 0)) if controls is None else np.asarray(controls, dtype=float)
    expected = np.asarray(control_means, dtype=float)
    if given.shape != (count, len(expected)) or not (np.isfinite(given).all() and np.isfinite(expected).all()):
        shape = f"shapes {given.shape} of controls and {expected.shape} of their means are"
        raise SpecificationError(
            f"controls: {shape} not allowed; there must be {count} rows, a mean for each column, all finite"
        )
    spread = given.std(axis=0)
    varies = spread > 1e-9 * np.maximum(np.abs(given).max(axis=0), np.abs(expected))
    given, expected, spread = given[:, varies], expected[varies], spread[varies]
    if not len(expected):
        return _estimate(array - mean, mean, 1 / count, count - 1)
    centred, offset = (given - given.mean(axis=0)) / spread, (given.mean(axis=0) - expected) / spread
    coefficients, _, rank, _ = np.linalg.lstsq(centred, array - mean, rcond=1e-9)
    leverage = 1 / count + float(offset @ np.linalg.pinv(centred.T @ centred) @ offset)
    return _estimate(
        array - mean - centred @ coefficients, mean - float(offset @ coefficients), leverage, count - 1 - int(rank)
    )


def _estimate(residuals: FloatArray, mean: float, leverage: float, freedom: int) -> Estimate:
    """Return an estimate; ``leverage`` is the variance of the mean by that of the residuals."""
    count = len(residuals)
    deviation = sqrt(float(residuals @ residuals) / freedom) if freedom > 0 else inf
    skewness, second = 0.0, float((residuals**2).mean())
    if count > 2 and second > 0:
        skewness = float((residuals**3).mean()) / second**1.5 * sqrt(count * (count - 1)) / (count - 2)
    return Estimate(mean, deviation * sqrt(leverage), max(freedom, 0), count, deviation, skewness)


def equivalence_test(
    values: npt.ArrayLike,
    expected: float | npt.ArrayLike,
    margin: float = MARGIN,
    *,
    relative: bool = True,
    controls: npt.ArrayLike | None = None,
    control_means: npt.ArrayLike = (),
    level: float = LEVEL,
    looks: int = 1,
) -> Equivalence:
    """Return whether the mean of independent values agrees with an expected value, to within a margin.

    >>> str(equivalence_test([9.9, 10.1, 10.0, 9.9, 10.1], 10, margin=0.02))
    'agrees'
    >>> str(equivalence_test([9.9, 10.1, 10.0, 9.9, 10.1], 10.5, margin=0.02))
    'differs'
    >>> str(equivalence_test([9.0, 11.0, 10.0, 9.2, 10.9], 10, margin=0.02))
    'undecided: needs 283 more replications'

    Args:
        values: one for each replication, shape ``(replications,)``.
        expected: their expected mean, a number; or a value for each replication, computed from the same run, with which it
            is paired.
        margin: the largest difference that does not matter, > 0.
        relative: the margin is a share of the expected value, otherwise it has the unit of the values.
        controls: control variates, as for :func:`controlled_mean`.
        control_means: their expected values.
        level: 1 - the probability of a wrong verdict.
        looks: number of times that this test is made with growing data until there is a verdict, fixed in advance.

    Raises:
        SpecificationError: an argument is not allowed, or the expected value is 0 and the margin a share of it.
    """
    from scipy.special import ndtri, stdtrit

    array = checked_values("values", values, 1)
    wanted = np.asarray(expected, dtype=float)
    if wanted.ndim == 0:
        wanted = np.full(len(array), float(wanted))
    wanted = checked_values("expected", wanted, 1)
    if len(wanted) != len(array):
        raise SpecificationError(f"expected: {len(wanted)} values are not allowed; there must be one, or one for each value")
    alpha = (1 - checked_level(level)) / require_whole("looks", looks, at_least=1)
    unit = _size_of(wanted) if flag("relative", relative) else 1.0
    tolerance = require_margin(margin) * unit
    found = controlled_mean(array - wanted, controls, control_means)
    half = found.error if found.error in (0.0, inf) else float(stdtrit(found.freedom, 1 - alpha)) * found.error
    verdict: Verdict = "undecided"
    more = None
    distance = abs(abs(found.mean) - tolerance)
    if abs(found.mean) + half <= tolerance:
        verdict = "agrees"
    elif abs(found.mean) - half > tolerance:
        verdict = "differs"
    elif half < inf and distance > 0:
        # Within the margin both tests must reject, and near zero each may fail: half the error of the second kind for each.
        missed = (1 - POWER) / (2 if abs(found.mean) < tolerance else 1)
        quantiles = float(ndtri(1 - alpha) + ndtri(1 - missed))
        more = max(ceil(found.count * (quantiles * found.error / distance) ** 2) - found.count, 1)
    needed = 0 if verdict != "undecided" and _SAFELY * half <= distance else found.needed
    if found.count < needed:
        verdict, more = "undecided", max(needed - found.count, more or 0)
    return Equivalence(float(wanted.mean()), found.mean, half, tolerance, unit, verdict, found.count, more)


def require_margin(margin: object) -> float:
    """Return a margin as a number.

    Raises:
        SpecificationError: it is not a finite number > 0.
    """
    return require_number("margin", margin, "a finite number > 0", lambda width: 0 < width < inf)


def looks_at(first: int, at_most: int) -> tuple[int, ...]:
    """Return the numbers of replications at which a sequential test looks: ``first``, twice as many, and so on to ``at_most``.

    >>> looks_at(10, 100)
    (10, 20, 40, 80, 100)
    """
    found = [first]
    while found[-1] < at_most:
        found.append(min(2 * found[-1], at_most))
    return tuple(found)


def _size_of(expected: FloatArray) -> float:
    size = abs(float(expected.mean()))
    if not size:
        raise SpecificationError("expected: 0 is not allowed with a relative margin; give relative=False")
    return size
