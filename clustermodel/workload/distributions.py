"""Distributions of a job stream's attributes, and the hyper-Erlang distribution.

Wherever a distribution is expected there may be

* a number, which every job gets;
* a dictionary ``{value: weight}``;
* a list or array, from which values are drawn with replacement (a column of a trace, for example);
* a frozen distribution of ``scipy.stats``, or any object with ``rvs(size=..., random_state=...)``;
* an object with ``sample(rng, size)``, like those here, which refuse parameters out of range with a ``SpecificationError``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, isfinite, log, log1p, log2, sqrt
from numbers import Real
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError, quoted
from clustermodel.validation import Checked, positive, require, require_number, require_seconds, require_whole, share

CHUNK: Final = 4096
"""Values drawn at a time, so that the first values are the same however many are drawn."""


@runtime_checkable
class Sampled(Protocol):
    """A distribution of this package, or of the user."""

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return ``size`` independent values, shape ``(size,)``."""


@runtime_checkable
class FrozenDistribution(Protocol):
    """A distribution of ``scipy.stats`` with its parameters, as ``scipy.stats.lognorm(1.5, scale=600)``."""

    def rvs(self, size: Any = ..., random_state: Any = ...) -> Any:
        """Return random values."""


Distribution = float | Mapping[float, float] | Sequence[float] | npt.NDArray[Any] | Sampled | FrozenDistribution
"""What may stand for a distribution."""


def require_distribution(field: str, value: object) -> None:
    """Refuse what cannot stand for a distribution, or has values or weights that are not allowed."""
    known: object = True
    if isinstance(value, bool | type):
        known = False
    elif isinstance(value, Real):
        require_number(field, value, "a finite number", isfinite)
    elif isinstance(value, Mapping) and value:
        for key, weight in value.items():
            require_number(field, key, "a finite number", isfinite)
            require_weight(f"{field}: weight of {key:g}", weight)
        require(any(value.values()), field, dict(value), "one weight at least must be > 0")
    elif isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes):
        array = np.asarray(value)
        known = array.ndim == 1 and len(array) and array.dtype.kind in "iuf" and np.isfinite(array).all()
    else:
        known = isinstance(value, Sampled | FrozenDistribution)
    if not known:
        must = "it must be a number, {value: weight}, a list of numbers, or have rvs (scipy.stats) or sample"
        raise SpecificationError(f"{field}: {quoted(value)} is not a distribution; {must}")


def draw(field: str, spec: Distribution, rng: np.random.Generator, size: int) -> FloatArray:
    """Return ``size`` independent values, shape ``(size,)``, drawn in chunks so that the first do not depend on ``size``."""
    chunks = [_chunk(field, spec, rng) for _ in range(-(-size // CHUNK))]
    return np.concatenate([*chunks, np.empty(0)])[:size]


def _chunk(field: str, spec: Distribution, rng: np.random.Generator) -> FloatArray:
    if isinstance(spec, Real):
        return np.full(CHUNK, float(spec))
    if isinstance(spec, Mapping):
        weights = np.array(list(spec.values()), dtype=np.float64)
        return rng.choice(np.array(list(spec), dtype=np.float64), size=CHUNK, p=weights / weights.sum())
    if not isinstance(spec, Sampled | FrozenDistribution):
        given = np.asarray(spec, dtype=np.float64)
        return given[rng.integers(len(given), size=CHUNK)]
    drawn = spec.sample(rng, CHUNK) if isinstance(spec, Sampled) else spec.rvs(size=CHUNK, random_state=rng)
    array = np.asarray(drawn)
    are_numbers = array.shape == (CHUNK,) and array.dtype.kind in "biuf" and np.isfinite(array).all()
    require(are_numbers, field, spec, f"it must return {CHUNK} finite numbers when asked for")
    return array.astype(np.float64)


def require_weight(field: str, value: object) -> float:
    """Return a finite number of at least zero."""
    return require_number(field, value, "a finite number >= 0", lambda x: 0 <= x < inf)


@dataclass(frozen=True)
class Exponential(Checked, mean=positive):
    """The exponential distribution."""

    mean: float

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return ``size`` independent values, shape ``(size,)``."""
        return rng.exponential(self.mean, size)


@dataclass(frozen=True, kw_only=True)
class Lognormal(Checked, mean=positive, cv=positive):
    """The lognormal distribution with a given mean and coefficient of variation.

    With sigma^2 = ln(1 + cv^2), the logarithm is normal with mean ln(mean) - sigma^2 / 2 and variance sigma^2.  One seed gives
    the same normal deviates for every mean and cv.
    """

    mean: float
    cv: float
    """Standard deviation over mean."""

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return ``size`` independent values, shape ``(size,)``."""
        variance = log1p(self.cv**2)
        return rng.lognormal(log(self.mean) - variance / 2, sqrt(variance), size)


@dataclass(frozen=True, kw_only=True)
class TwoStageUniform:
    """Job sizes of the model of Lublin & Feitelson 2003: serial jobs, powers of two, and a two-stage uniform logarithm.

    A job is serial with probability ``serial``.  Otherwise the logarithm of its size, base 2, is uniform between ``low`` and
    ``medium`` with probability ``first``, else between ``medium`` and the logarithm of ``largest``; with probability
    ``powers_of_two`` (of all jobs) the logarithm is rounded to a whole number.
    """

    largest: int
    """Nodes of the largest job, usually of the machine."""
    serial: float = 0.244
    powers_of_two: float = 0.576
    low: float = 0.8
    medium: float | None = None
    """Logarithm between the two stages; by default 2.5 below that of ``largest``, as in the paper."""
    first: float = 0.86

    def __post_init__(self) -> None:
        require_whole("TwoStageUniform.largest", self.largest, at_least=2)
        share("TwoStageUniform.serial", self.serial)
        share("TwoStageUniform.first", self.first)
        parallel, high = 1 - self.serial, log2(self.largest)
        require_number(
            "TwoStageUniform.powers_of_two",
            self.powers_of_two,
            f"a number >= 0 and <= 1 - serial = {parallel:g}",
            lambda x: 0 <= x <= parallel,
        )
        require_number("TwoStageUniform.low", self.low, f"a number >= 0 and <= {high:g}", lambda x: 0 <= x <= high)
        if self.medium is not None:
            allowed = f"a number >= {self.low:g} and <= {high:g}"
            require_number("TwoStageUniform.medium", self.medium, allowed, lambda x: self.low <= x <= high)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return ``size`` independent sizes, whole numbers, shape ``(size,)``."""
        high = log2(self.largest)
        medium = max(self.low, high - 2.5) if self.medium is None else self.medium
        kind, stage, position = rng.random((3, size))
        low_stage = stage < self.first
        exponent = np.where(low_stage, self.low, medium) + position * np.where(low_stage, medium - self.low, high - medium)
        exponent = np.where(kind < self.serial + self.powers_of_two, np.rint(exponent), exponent)
        return np.where(kind < self.serial, 1, np.rint(2**exponent).clip(1, self.largest))


@dataclass(frozen=True)
class Zipf(
    Checked,
    largest=partial(require_whole, at_least=1),
    exponent=partial(require_number, allowed="a number >= 0 and <= 100", holds=lambda x: 0 <= x <= 100),
):
    """Whole numbers from 1 to ``largest`` with probabilities proportional to 1 / number^``exponent``: a few busy users."""

    largest: int
    exponent: float = 1.0

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return ``size`` independent numbers, shape ``(size,)``."""
        weights = np.arange(1, self.largest + 1) ** -float(self.exponent)
        users = np.searchsorted(np.cumsum(weights / weights.sum())[:-1], rng.random(size), side="right") + 1
        return users.astype(np.float64)


@dataclass(frozen=True)
class BySize:
    """A distribution for each class of sizes, for run times that depend on the size of the job.

    ``BySize((8, 64), (short, medium, long))`` draws from ``short`` for jobs of at most 8 nodes, from ``medium`` for jobs of 9
    to 64 nodes, and from ``long`` for larger ones.
    """

    boundaries: Sequence[int]
    """Largest sizes of all classes but the last one, rising."""
    distributions: Sequence[Distribution]

    def __post_init__(self) -> None:
        bounds = [require_whole("BySize.boundaries", bound, at_least=1) for bound in self.boundaries]
        require(bounds == sorted(set(bounds)), "BySize.boundaries", bounds, "they must rise")
        if len(self.distributions) != len(bounds) + 1:
            raise SpecificationError(
                f"BySize.distributions: {len(self.distributions)} are given; there must be {len(bounds) + 1}, "
                "one more than boundaries"
            )
        for distribution in self.distributions:
            require_distribution("BySize.distributions", distribution)

    def draw_for(self, field: str, nodes: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return a value for each job of these sizes, shape ``(jobs,)``; a job's random number depends on its class alone."""
        streams = rng.spawn(len(self.distributions))
        columns = [draw(field, each, own, len(nodes)) for each, own in zip(self.distributions, streams, strict=True)]
        classes = np.searchsorted(np.asarray(self.boundaries), nodes)
        return np.array(columns)[classes, np.arange(len(nodes))]


LARGEST_ORDER: Final = 1_000
"""Largest order allowed.  An Erlang distribution of order n has a coefficient of variation of 1/sqrt(n), which is about
3 % for this order: times that need a larger order are constant for practical purposes."""
_ROUNDING: Final = 1e-12
"""Moments within this relative distance of the limit of an order count as at the limit, because moments are rounded."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HyperErlang:
    """A sum of ``order`` exponential stages: with probability ``p`` all have the first mean, otherwise the second."""

    order: int
    """Number n of stages, common to both branches, at most 1,000."""
    p: float
    """Probability of the first branch.  By convention (:meth:`fit`) this is the longer branch: it may be very improbable and
    still determine the third moment, and 1 - p would lose it to rounding.  1 is an Erlang distribution."""
    stage_s: tuple[float, float]
    """Mean time of a stage in the first and in the second branch, seconds."""

    def __post_init__(self) -> None:
        order = require_whole("HyperErlang.order", self.order, at_least=1)
        require(order <= LARGEST_ORDER, "HyperErlang.order", order, f"it must be an integer <= {LARGEST_ORDER}")
        p = require_number("HyperErlang.p", self.p, "a number > 0 and <= 1", lambda x: 0 < x <= 1)
        two = isinstance(self.stage_s, tuple | list) and len(self.stage_s) == 2
        require(two, "HyperErlang.stage_s", self.stage_s, "it must be two times in seconds")
        stages = tuple(require_seconds("HyperErlang.stage_s", stage, positive=True) for stage in self.stage_s)
        for field, value in (("order", order), ("p", p), ("stage_s", stages)):
            object.__setattr__(self, field, value)

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
        return np.asarray(self.p * first + (1 - self.p) * second)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return ``size`` independent times in seconds, shape ``(size,)``."""
        stage = np.where(rng.random(size) < self.p, *self.stage_s)
        return stage * rng.standard_gamma(self.order, size)

    def sample_residual(self, rng: np.random.Generator) -> float:
        """Return the time, in seconds, from an arbitrary instant to the next renewal of a process in equilibrium.

        Such an instant is more likely in a long interval than in a short one, and uniform within it.
        """
        first, second = (share * stage for share, stage in zip((self.p, 1 - self.p), self.stage_s, strict=True))
        stage = self.stage_s[0] if rng.random() < first / (first + second) else self.stage_s[1]
        return stage * float(rng.standard_gamma(self.order + 1)) * rng.random()
