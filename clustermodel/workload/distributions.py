"""Distributions of a job stream's attributes: what may stand for one, and those that ``scipy.stats`` does not have ready.

Wherever a distribution is expected there may be

* a number, which every job gets;
* a dictionary ``{value: weight}``;
* a list or array, from which values are drawn with replacement (a column of a trace, for example);
* a frozen distribution of ``scipy.stats``, or any object with ``rvs(size=..., random_state=...)``;
* an object with ``sample(rng, size)``, like those here and :class:`~clustermodel.workload.hyper_erlang.HyperErlang`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, log, log1p, log2, sqrt
from numbers import Real
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError, quoted
from clustermodel.validation import require_number, require_whole, share

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
    """Refuse what cannot stand for a distribution.

    Raises:
        SpecificationError: ``value`` is not a distribution, or has values or weights that are not allowed.
    """
    if isinstance(value, bool | type):
        _refuse(field, value)
    if isinstance(value, Real):
        require_number(field, value, "a finite number", isfinite)
    elif isinstance(value, Mapping):
        if not value:
            _refuse(field, value)
        for key, weight in value.items():
            require_number(field, key, "a finite number", isfinite)
            require_number(f"{field}: weight of {key:g}", weight, "a finite number >= 0", lambda x: 0 <= x < float("inf"))
        if not any(value.values()):
            raise SpecificationError(f"{field}: {quoted(dict(value))} is not allowed; one weight at least must be > 0")
    elif isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes):
        array = np.asarray(value)
        if array.ndim != 1 or not len(array) or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            _refuse(field, value)
    elif not isinstance(value, Sampled | FrozenDistribution):
        _refuse(field, value)


def _refuse(field: str, value: object) -> None:
    raise SpecificationError(
        f"{field}: {quoted(value)} is not a distribution; it must be a number, {{value: weight}}, a list of numbers, or have "
        "rvs (scipy.stats) or sample"
    )


def draw(field: str, spec: Distribution, rng: np.random.Generator, size: int) -> FloatArray:
    """Return ``size`` independent values, shape ``(size,)``.

    Values come in chunks of one length, so the first values do not depend on ``size``.

    Raises:
        SpecificationError: an object of the user returned something else than that many finite numbers.
    """
    chunks = [_chunk(field, spec, rng) for _ in range(-(-size // CHUNK))]
    values: FloatArray = np.concatenate([*chunks, np.empty(0)])[:size]
    return values


def _chunk(field: str, spec: Distribution, rng: np.random.Generator) -> FloatArray:
    if isinstance(spec, Real):
        return np.full(CHUNK, float(spec))
    if isinstance(spec, Mapping):
        weights = np.array(list(spec.values()), dtype=np.float64)
        return rng.choice(np.array(list(spec), dtype=np.float64), size=CHUNK, p=weights / weights.sum())
    if isinstance(spec, Sampled):
        values = spec.sample(rng, CHUNK)
    elif isinstance(spec, FrozenDistribution):
        values = spec.rvs(size=CHUNK, random_state=rng)
    else:
        given = np.asarray(spec, dtype=np.float64)
        return given[rng.integers(len(given), size=CHUNK)]
    array = np.asarray(values)
    if array.shape != (CHUNK,) or array.dtype.kind not in "biuf" or not np.isfinite(array).all():
        raise SpecificationError(
            f"{field}: {quoted(spec)} is not allowed; it must return {CHUNK} finite numbers when asked for"
        )
    return array.astype(np.float64)


@dataclass(frozen=True)
class Exponential:
    """The exponential distribution.

    Raises:
        SpecificationError: ``mean`` is not a finite number above zero.
    """

    mean: float

    def __post_init__(self) -> None:
        _require_positive("Exponential.mean", self.mean)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return ``size`` independent values, shape ``(size,)``."""
        return rng.exponential(self.mean, size)


@dataclass(frozen=True, kw_only=True)
class Lognormal:
    """The lognormal distribution with a given mean and coefficient of variation.

    With sigma^2 = ln(1 + cv^2), the logarithm is normal with mean ln(mean) - sigma^2 / 2 and variance sigma^2.  One seed gives
    the same normal deviates for every mean and cv.

    Raises:
        SpecificationError: ``mean`` or ``cv`` is not a finite number above zero.
    """

    mean: float
    cv: float
    """Standard deviation over mean."""

    def __post_init__(self) -> None:
        _require_positive("Lognormal.mean", self.mean)
        _require_positive("Lognormal.cv", self.cv)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return ``size`` independent values, shape ``(size,)``."""
        variance = log1p(self.cv**2)
        return rng.lognormal(log(self.mean) - variance / 2, sqrt(variance), size)


@dataclass(frozen=True)
class LogUniform:
    """Values whose logarithm is uniform: run times (Downey 1997 (workload)) and sizes of parallel jobs.

    Raises:
        SpecificationError: not 0 < ``low`` <= ``high``.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _require_positive("LogUniform.low", self.low)
        require_number("LogUniform.high", self.high, f"a finite number >= {self.low:g}", lambda x: self.low <= x < float("inf"))

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Return ``size`` independent values, shape ``(size,)``."""
        return np.exp(rng.uniform(log(self.low), log(self.high), size))


@dataclass(frozen=True, kw_only=True)
class TwoStageUniform:
    """Job sizes of the model of Lublin & Feitelson 2003: serial jobs, powers of two, and a two-stage uniform logarithm.

    A job is serial with probability ``serial``.  Otherwise the logarithm of its size, base 2, is uniform between ``low`` and
    ``medium`` with probability ``first``, else between ``medium`` and the logarithm of ``largest``; with probability
    ``powers_of_two`` (of all jobs) the logarithm is rounded to a whole number.

    Raises:
        SpecificationError: a value is out of range.
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
        parallel = 1 - self.serial
        require_number(
            "TwoStageUniform.powers_of_two", self.powers_of_two, f"a number >= 0 and <= 1 - serial = {parallel:g}",
            lambda x: 0 <= x <= parallel,
        )  # fmt: skip
        high = log2(self.largest)
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
        sizes: FloatArray = np.where(kind < self.serial, 1, np.rint(2**exponent).clip(1, self.largest))
        return sizes


@dataclass(frozen=True)
class Zipf:
    """Whole numbers from 1 to ``largest`` with probabilities proportional to 1 / number^``exponent``: a few busy users.

    Raises:
        SpecificationError: a value is out of range.
    """

    largest: int
    exponent: float = 1.0

    def __post_init__(self) -> None:
        require_whole("Zipf.largest", self.largest, at_least=1)
        require_number("Zipf.exponent", self.exponent, "a number >= 0 and <= 100", lambda x: 0 <= x <= 100)

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

    Raises:
        SpecificationError: the boundaries do not rise, or there is not one distribution more than boundaries.
    """

    boundaries: Sequence[int]
    """Largest sizes of all classes but the last one, rising."""
    distributions: Sequence[Distribution]

    def __post_init__(self) -> None:
        bounds = [require_whole("BySize.boundaries", bound, at_least=1) for bound in self.boundaries]
        if bounds != sorted(set(bounds)):
            raise SpecificationError(f"BySize.boundaries: {quoted(bounds)} is not allowed; they must rise")
        if len(self.distributions) != len(bounds) + 1:
            raise SpecificationError(
                f"BySize.distributions: {len(self.distributions)} are given; there must be {len(bounds) + 1}, "
                "one more than boundaries"
            )
        for one in self.distributions:
            require_distribution("BySize.distributions", one)

    def draw_for(self, field: str, nodes: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return a value for each job of these sizes, shape ``(jobs,)``; a job's random number depends on its class alone."""
        streams = rng.spawn(len(self.distributions))
        columns = [draw(field, one, own, len(nodes)) for one, own in zip(self.distributions, streams, strict=True)]
        classes = np.searchsorted(np.asarray(self.boundaries), nodes)
        values: FloatArray = np.array(columns)[classes, np.arange(len(nodes))]
        return values


def _require_positive(field: str, value: object) -> None:
    require_number(field, value, "a finite number > 0", lambda x: 0 < x < float("inf"))
