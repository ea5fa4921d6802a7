"""Arrival processes of a job stream: Poisson, renewal, bursts, a daily and weekly cycle, the times of a trace.

A process yields the times between arrivals on a clock of its own, on which its mean rate is constant.  A
:class:`Cycle` maps that clock to the time of the simulation, so every process can have a cycle; a load is reached by
stretching the process's own clock, so the cycle keeps its hours.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import isfinite
from typing import Final

import numpy as np

from clustermodel.arrays import FloatArray
from clustermodel.errors import SpecificationError, quoted
from clustermodel.validation import require_number, require_seconds
from clustermodel.workload.distributions import CHUNK, Distribution, draw, require_distribution
from clustermodel.workload.table import Workload

HOUR_S: Final = 3600.0
DAY_S: Final = 24 * HOUR_S
LUBLIN_FEITELSON_GAMMA: Final = (8.1737, 3.9631)
"""Shape and scale of the daily cycle of Lublin & Feitelson 2003, in half hours."""
_FIRST_HALF_HOUR: Final = 11
"""Where the model's day begins: 5 a.m.; the tail of the gamma distribution wraps around midnight."""


class ArrivalProcess(ABC):
    """An arrival process; a process of your own needs :meth:`gaps` only."""

    @abstractmethod
    def gaps(self, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield seconds between arrivals on the process's own clock, in arrays of any length, without end."""

    def to_time(self, own_s: FloatArray) -> FloatArray:
        """Return the time of the simulation, seconds, for times on the process's own clock."""
        return own_s

    def to_own_clock(self, time_s: float) -> float:
        """Return the time on the process's own clock, seconds, for a time of the simulation."""
        return time_s


def arrival_process(field: str, given: object) -> ArrivalProcess:
    """Return ``given`` as an arrival process: a workload as its submission times, a distribution as that of the gaps.

    Raises:
        SpecificationError: ``given`` is neither.
    """
    if isinstance(given, ArrivalProcess):
        return given
    if isinstance(given, Workload):
        return TraceArrivals(given)
    try:
        require_distribution(field, given)
    except SpecificationError:
        raise SpecificationError(
            f"{field}: {quoted(given)} is not allowed; it must be an arrival process, as Poisson(per_hour=30), a Workload, or "
            "the distribution of the seconds between arrivals"
        ) from None
    return Renewal(given)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Renewal(ArrivalProcess):
    """Independent times between arrivals with one distribution, as ``HyperErlang.from_mean(300, cv=2)``.

    Raises:
        SpecificationError: it is not a distribution.
    """

    gap_s: Distribution

    def __post_init__(self) -> None:
        require_distribution("Renewal.gap_s", self.gap_s)

    def gaps(self, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield seconds between arrivals."""
        while True:
            yield draw("Renewal.gap_s", self.gap_s, rng, CHUNK)


@dataclass(frozen=True, kw_only=True)
class Poisson(ArrivalProcess):
    """Independent arrivals at a constant rate.

    Raises:
        SpecificationError: the rate is not a finite number above zero.
    """

    per_hour: float
    """Mean number of arrivals per hour."""

    def __post_init__(self) -> None:
        require_number("Poisson.per_hour", self.per_hour, "a finite number > 0", lambda x: x > 0 and isfinite(x))

    def gaps(self, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield seconds between arrivals."""
        while True:
            yield rng.exponential(HOUR_S / self.per_hour, CHUNK)


@dataclass(frozen=True, kw_only=True)
class MarkovModulated(ArrivalProcess):
    """A Poisson process whose rate alternates between two values, for exponentially distributed times (MMPP(2)).

    Raises:
        SpecificationError: the rates are not two numbers >= 0, at most one of them zero, or the times not two times > 0.
    """

    per_hour: tuple[float, float]
    """The two rates, arrivals per hour."""
    mean_s: tuple[float, float]
    """Mean length of a period of each rate, seconds."""

    def __post_init__(self) -> None:
        for field in ("per_hour", "mean_s"):
            pair = getattr(self, field)
            if not isinstance(pair, Sequence) or len(pair) != 2:
                raise SpecificationError(f"MarkovModulated.{field}: {quoted(pair)} is not allowed; it must be two numbers")
        for rate in self.per_hour:
            require_number("MarkovModulated.per_hour", rate, "a finite number >= 0", lambda x: x >= 0 and isfinite(x))
        if not any(self.per_hour):
            raise SpecificationError("MarkovModulated.per_hour: (0, 0) is not allowed; one rate must be > 0")
        for mean in self.mean_s:
            require_seconds("MarkovModulated.mean_s", mean, positive=True)

    def gaps(self, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield seconds between arrivals; the process is in equilibrium when it begins."""
        first = int(rng.random() >= self.mean_s[0] / sum(self.mean_s))
        order = [first, 1 - first] * 64
        rate, mean = np.array(self.per_hour)[order] / HOUR_S, np.array(self.mean_s)[order]
        last = begin = 0.0
        while True:
            length = rng.exponential(mean)
            counts = rng.poisson(rate * length)
            starts = begin + np.cumsum(length) - length
            times = np.sort(np.repeat(starts, counts) + rng.random(counts.sum()) * np.repeat(length, counts))
            yield np.diff(times, prepend=last)
            last = times[-1] if len(times) else last
            begin += length.sum()


@dataclass(frozen=True, kw_only=True)
class Bursts(ArrivalProcess):
    """Several jobs at each arrival of another process, one ``gap_s`` after the other.

    The time to the next burst counts from the last job of a burst.

    Raises:
        SpecificationError: a part is not what it must be.
    """

    arrivals: ArrivalProcess | Workload | Distribution
    """When bursts begin."""
    jobs: Distribution
    """Jobs in a burst, rounded, at least one; ``scipy.stats.geom(1 / 5)`` has a mean of five."""
    gap_s: Distribution = 0.0
    """Seconds between two jobs of a burst."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrivals", arrival_process("Bursts.arrivals", self.arrivals))
        require_distribution("Bursts.jobs", self.jobs)
        require_distribution("Bursts.gap_s", self.gap_s)

    def gaps(self, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield seconds between arrivals."""
        begins, sizes, inside = rng.spawn(3)
        for gaps in _of(self.arrivals).gaps(begins):
            jobs = np.maximum(1, np.rint(draw("Bursts.jobs", self.jobs, sizes, len(gaps)))).astype(np.int64)
            between = draw("Bursts.gap_s", self.gap_s, inside, int(jobs.sum()))
            between[np.cumsum(jobs) - jobs] = gaps
            yield between

    def to_time(self, own_s: FloatArray) -> FloatArray:
        """Return the time of the simulation, seconds, for times on the process's own clock."""
        return _of(self.arrivals).to_time(own_s)

    def to_own_clock(self, time_s: float) -> float:
        """Return the time on the process's own clock, seconds, for a time of the simulation."""
        return _of(self.arrivals).to_own_clock(time_s)


@dataclass(frozen=True)
class TraceArrivals(ArrivalProcess):
    """The submission times of a workload, again from its beginning, a mean time later, where more are needed.

    For times between arrivals drawn from a trace in random order, give ``np.diff(trace.seconds("submit"))`` as distribution.
    """

    trace: Workload

    def gaps(self, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield seconds between submissions; the first one is at its time in the trace."""
        submit = self.trace.seconds("submit")
        again = np.diff(submit, prepend=submit[0] - max(self.trace.span_s / max(1, len(submit) - 1), 1e-6))
        yield np.concatenate([submit[:1], again[1:]])
        yield from cycle([again])


def lublin_feitelson_day() -> FloatArray:
    """Return weights of the 48 half hours of a day, from midnight on (Lublin & Feitelson 2003); shape ``(48,)``, mean 1.

    The weight of half hour i, counted from 1, is the probability of (i - 1/2, i + 1/2] under a gamma distribution; hours
    before 5 a.m. belong to the day before.
    """
    from scipy.special import gammainc

    shape, scale = LUBLIN_FEITELSON_GAMMA
    slots = np.arange(_FIRST_HALF_HOUR, _FIRST_HALF_HOUR + 48)
    weights = np.empty(48)
    weights[(slots - 1) % 48] = gammainc(shape, (slots + 0.5) / scale) - gammainc(shape, (slots - 0.5) / scale)
    normed: FloatArray = weights / weights.mean()
    return normed


@dataclass(frozen=True)
class Cycle(ArrivalProcess):
    """Another process with a daily and weekly cycle: its own clock runs faster where the rate is higher.

    Over a week the mean rate is that of the process.  Time 0 is the beginning of the first day of ``days``.

    Raises:
        SpecificationError: a part is not what it must be.
    """

    arrivals: ArrivalProcess | Workload | Distribution
    hours: Sequence[float] | None = None
    """Relative rates over the day, in slots of equal length from midnight on (24 weights: hours); by default
    :func:`lublin_feitelson_day`."""
    days: Sequence[float] = (1, 1, 1, 1, 1, 1, 1)
    """Relative rates of the seven days of the week."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrivals", arrival_process("Cycle.arrivals", self.arrivals))
        hours = lublin_feitelson_day().tolist() if self.hours is None else self.hours
        object.__setattr__(self, "hours", _weights("Cycle.hours", hours))
        object.__setattr__(self, "days", _weights("Cycle.days", self.days))
        if len(self.days) != 7:
            raise SpecificationError(f"Cycle.days: {len(self.days)} weights are given; there must be 7")

    def gaps(self, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield seconds between arrivals on the process's own clock."""
        return _of(self.arrivals).gaps(rng)

    def _week(self) -> tuple[FloatArray, FloatArray]:
        """Return the ends of all slots of a week, and the process's own clock there; shapes ``(slots + 1,)``."""
        assert self.hours is not None
        rate = np.outer(self.days, self.hours).ravel()
        ends = np.linspace(0, 7 * DAY_S, len(rate) + 1)
        return ends, np.concatenate([[0.0], np.cumsum(rate / rate.sum())]) * 7 * DAY_S

    def to_time(self, own_s: FloatArray) -> FloatArray:
        """Return the time of the simulation, seconds, for times on the process's own clock."""
        ends, own = self._week()
        week, rest = np.divmod(_of(self.arrivals).to_time(own_s), 7 * DAY_S)
        time: FloatArray = week * 7 * DAY_S + np.interp(rest, own, ends)
        return time

    def to_own_clock(self, time_s: float) -> float:
        """Return the time on the process's own clock, seconds, for a time of the simulation."""
        ends, own = self._week()
        week, rest = divmod(time_s, 7 * DAY_S)
        return _of(self.arrivals).to_own_clock(week * 7 * DAY_S + float(np.interp(rest, ends, own)))


def _of(arrivals: object) -> ArrivalProcess:
    assert isinstance(arrivals, ArrivalProcess)
    return arrivals


def _weights(field: str, given: object) -> tuple[float, ...]:
    if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str) or not len(given):
        raise SpecificationError(f"{field}: {quoted(given)} is not allowed; it must be a list of weights")
    weights = tuple(require_number(field, one, "a finite number >= 0", lambda x: 0 <= x < float("inf")) for one in given)
    if not any(weights):
        raise SpecificationError(f"{field}: {quoted(given)} is not allowed; one weight at least must be > 0")
    return weights
