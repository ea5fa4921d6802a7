"""Confidence intervals, paired comparisons, batch means, and truncation of a warm-up.

Pure functions of numbers, with SciPy's quantiles.  Too few values, or some that are not finite, are a ``SpecificationError``.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from math import floor, isnan, log10, sqrt
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from clustermodel.arrays import BoolArray, FloatArray, IntArray, dot
from clustermodel.errors import SpecificationError, counted, quoted
from clustermodel.text.formatting import html_table
from clustermodel.validation import require_number, require_whole

LEVEL: Final = 0.95  # of an interval, by default
RESAMPLED: Final = "resampled"  # column of trials whose jobs are resampled: their intervals are of sample paths
MSER_BATCH: Final = 5  # values per batch in MSER-5
_LONG: Final = 100  # least length of a run, in correlation times
_WIDER: Final = 250  # correlation times that widen the interval to twice that of the batches


@dataclass(frozen=True)
class Interval:
    """A mean and its confidence interval, ``mean - half`` to ``mean + half``.  ``value in interval`` works."""

    mean: float
    half: float
    level: float
    """Confidence level, between 0 and 1."""
    count: int
    """Number of values."""
    of_one_log: bool = field(default=False, kw_only=True, compare=False)
    """Whether the interval is a prediction for one new log (:func:`of_sample_paths`), not one of the mean over resamples."""

    @property
    def low(self) -> float:
        """Lower end."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """Upper end."""
        return self.mean + self.half

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def excludes(self, value: float) -> bool:
        """Return whether the mean differs significantly from a value; ``False`` where the half-width is not known."""
        return bool(excludes(self.mean, self.half, value))

    def __str__(self) -> str:
        if isnan(self.half):  # of a single replication
            return f"{self.mean:,.{max(0, 3 - floor(log10(abs(self.mean) or 1)))}f}"
        digits = max(0, 1 - floor(log10(self.half))) if self.half > 0 else 3  # two significant digits of the half-width
        return f"{self.mean:,.{digits}f} ± {self.half:,.{digits}f}"

    def _repr_html_(self) -> str:
        """Return the interval for a notebook."""
        fields = {"mean": self.mean, "low": self.low, "high": self.high, "values": self.count}
        what = f"{100 * self.level:g} % {'prediction interval for one new log' if self.of_one_log else 'interval'}"
        return html_table(f"{self} ({what})", [(name, [value]) for name, value in fields.items()])


def checked_values(name: str, values: npt.ArrayLike, at_least: int, why: str = "one for each replication") -> FloatArray:
    """Return at least so many finite values as an array, shape ``(values,)``; ``why`` explains the number in messages."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise SpecificationError(f"{name}: {quoted(values)} is not allowed; it must be a sequence of numbers") from None
    if array.ndim != 1:
        shape = f"an array of shape {array.shape}" if array.ndim else quoted(values)
        raise SpecificationError(f"{name}: {shape} is not allowed; it must be a sequence of numbers, {why}")
    if len(array) < at_least:
        given = f"{counted(len(array), 'value')}, {quoted(array.tolist())},"
        raise SpecificationError(f"{name}: {given} cannot be enough; at least {at_least} are needed, {why}")
    if not np.isfinite(array).all():
        first = int(np.flatnonzero(~np.isfinite(array))[0])
        raise SpecificationError(f"{name}: {array[first]} at {first} is not allowed; every value must be finite")
    return array


def checked_level(level: float) -> float:
    """Return a confidence level, a number between 0 and 1."""
    return require_number("level", level, "> 0 and < 1", lambda share: 0 < share < 1)


def t_quantile(freedom: int, probability: float) -> float:
    """Return a quantile of Student's t distribution."""
    from scipy.special import stdtrit  # the same is in scipy.stats, which takes a second to import

    return float(stdtrit(freedom, probability))


class Estimates(NamedTuple):
    """Means with their Student t intervals; shapes ``(points,)``."""

    mean: FloatArray
    """``nan`` where a value is missing, or where there is none."""
    half: FloatArray
    """Half the width of the interval, ``nan`` for a single value."""
    runs: IntArray
    """Number of values, one for each different run."""
    of_one_log: BoolArray
    """Whether the interval is one of sample paths (:func:`of_sample_paths`)."""

    def excludes(self, value: float) -> BoolArray:
        """Return at which points the mean differs significantly from a value."""
        return excludes(self.mean, self.half, value)

    def interval(self, place: int, level: float) -> Interval:
        """Return the interval of one point."""
        mean, half, runs, of_one_log = (of[place].item() for of in self)
        return Interval(mean, half, level, runs, of_one_log=of_one_log)


def excludes(mean: float | FloatArray, half: float | FloatArray, value: float) -> BoolArray:
    """Return whether intervals exclude a value: the verdict *significant* of every table, page and figure.

    A half-width that is not known, ``nan``, excludes nothing.
    """
    return np.logical_or(np.subtract(mean, half) > value, np.add(mean, half) < value)


def estimates(values: FloatArray, level: float = LEVEL, of_one_log: bool | BoolArray = False) -> Estimates:
    """Return the means of independent values, shape ``(points, replications)``, and their Student t intervals.

    Every mean and interval over replications that a table, page or figure shows is made here.  The numbers of a point do not
    depend on the others.  ``of_one_log`` says where the intervals are those of :func:`of_sample_paths`.
    """
    values = np.ascontiguousarray(values)  # NumPy then adds the values of a point as those of a single array
    points, count = values.shape
    wider = np.broadcast_to(np.asarray(of_one_log, dtype=bool), points)
    half = np.full(points, np.nan)
    if count > 1:
        half = t_quantile(count - 1, (1 + level) / 2) * np.std(values, axis=1, ddof=1) / sqrt(count)
        half = np.where(wider, half * of_one_more(count), half)
    mean = np.mean(values, axis=1) if count else np.full(points, np.nan)
    return Estimates(mean, half, np.full(points, count), wider)


def interval(values: npt.ArrayLike, level: float = LEVEL) -> Interval:
    """Return the mean of independent values, shape ``(replications,)``, at least two, and its Student t interval.

    Values of one run, such as the waits of its jobs, are correlated: use :func:`batch_means`.
    """
    array, level = checked_values("values", values, 2), checked_level(level)
    return estimates(array[np.newaxis], level).interval(0, level)


def of_sample_paths(mean: Interval) -> Interval:
    """Return an interval of sample paths from that of the mean over resamples of one log.

    More resamples narrow the interval of their mean, although there is one log only.  What is known of other logs of the same
    kind is how much the resamples differ: the t interval for one more of them, wider by sqrt(resamples + 1) (the standard
    interval of the bootstrap, Efron & Tibshirani 1993, chapter 12).
    """
    return replace(mean, half=mean.half * of_one_more(mean.count), of_one_log=True)


def of_one_more(count: int) -> float:
    """Return how many times as wide the interval for one more value is as that of the mean of ``count`` values."""
    return sqrt(count + 1)


def least_half(mean: Interval) -> float:
    """Return the half-width that more values of the same deviation approach: 0, except for an interval of sample paths."""
    if not mean.of_one_log:
        return 0.0
    from scipy.special import ndtri

    probability = (1 + mean.level) / 2
    deviations = mean.half * sqrt(mean.count) / of_one_more(mean.count) / t_quantile(mean.count - 1, probability)
    return float(ndtri(probability)) * deviations


def different_runs(runs: Iterable[Hashable]) -> list[int]:
    """Return the places of the first replication of each different run: those of the same run cannot differ, and count once."""
    first: dict[Hashable, int] = {}
    for place, run in enumerate(runs):
        first.setdefault(run, place)
    return list(first.values())


def _matched(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    first, second = checked_values("a", a, 2), checked_values("b", b, 2)
    if len(first) != len(second):
        raise SpecificationError(f"b: {len(second)} values are not allowed; a has {len(first)}, one for each replication")
    return first, second


def ratios(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return a / b, value by value, of the same shape; a ratio is 1 where both are 0, and b may be 0 only there."""
    if (zero := np.argwhere((b == 0) & (a != 0) & ~np.isnan(a))).size:
        place = tuple(zero[0].tolist())
        raise SpecificationError(f"b: 0 at {place[-1]} is not allowed; a is {a[place]:g} there, and there is no ratio")
    return np.divide(a, b, out=np.where(np.isnan(a), np.nan, 1.0), where=b != 0)


def difference_of_logarithms(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return log a - log b, value by value, of numbers above zero."""
    if wrong := [*a[a <= 0].tolist(), *b[b <= 0].tolist()]:
        raise SpecificationError(f"ratios: {wrong[0]:g} is not allowed; a measure must be above zero in every run")
    return np.log(a) - np.log(b)


def paired_difference(a: npt.ArrayLike, b: npt.ArrayLike, level: float = LEVEL) -> Interval:
    """Return the interval of the mean of a - b, replication by replication, both of shape ``(replications,)``.

    With common random numbers the shared variation of a and b cancels, and the interval is far narrower than those of a and b.
    """
    first, second = _matched(a, b)
    return interval(first - second, level)


def paired_ratio(a: npt.ArrayLike, b: npt.ArrayLike, level: float = LEVEL) -> Interval:
    """Return the interval of the mean of a / b, replication by replication; a ratio is 1 where both are 0.

    The mean of the ratios is not the ratio of the means: every replication has the same weight.  b may be 0 only where a is.
    """
    return interval(ratios(*_matched(a, b)), level)


class Truncation(NamedTuple):
    """Result of MSER-5: how many values to omit at the beginning of a series."""

    drop: int
    settled: bool
    """``False`` if the best truncation point is the last candidate: the series is too short to show the end of its warm-up."""


def mser5(values: npt.ArrayLike) -> Truncation:
    """Return how many values at the beginning of a series are warm-up, by MSER-5 (White 1997; White, Cobb & Spratt 2000).

    The values are averaged in batches of five.  The truncation point minimizes the squared standard error of the mean of the
    remaining batches, as if they were independent.  Candidates are in the first half, because near the end a few similar values
    would win by chance.  The result is as random as the series of one run is.  An incomplete last batch is omitted.
    """
    array = checked_values("values", values, 2 * MSER_BATCH, f"two batches of {MSER_BATCH}")
    count = len(array) // MSER_BATCH
    batches = array[: count * MSER_BATCH].reshape(count, MSER_BATCH).mean(axis=1)
    batches -= batches[-1]  # near the mean, so that the sums below lose no digits; zero if all values are equal
    cuts = np.arange(count // 2 + 1)
    left = count - cuts
    total, squares = (np.cumsum(of[::-1])[::-1][cuts] for of in (batches, batches**2))
    cut = int(np.argmin(np.maximum(squares - total**2 / left, 0) / left**2))
    return Truncation(cut * MSER_BATCH, cut < count // 2)


@dataclass(frozen=True)
class BatchMeans(Interval):
    """An interval from the batches of one long run, ``count`` of ``batch`` values each."""

    batch: int
    lag_1: float
    """Correlation of neighbouring batch means, -1 to 1; 0 if all are equal."""
    correlation_time: float
    """Successive values that tell as much about the mean as one independent value: 1 + twice the sum of the autocorrelations,
    at least 1.  The larger of two estimates: from the autocorrelations until noise ends them, and from the batch means."""

    @property
    def long_enough(self) -> bool:
        """Whether the run is longer than 100 correlation times, and ``lag_1`` not significantly positive at the 5 % level."""
        from scipy.special import ndtri

        independent = self.lag_1 <= float(ndtri(0.95)) / sqrt(self.count)
        return independent and self.batch * self.count > _LONG * self.correlation_time


def batch_means(values: npt.ArrayLike, batches: int = 20, level: float = LEVEL) -> BatchMeans:
    """Return the mean of correlated values, such as waits of one long run, and its confidence interval by batch means.

    Means of batches of the same length are treated as independent (Law & Kelton 2000, section 9.5.3).  A run that by chance
    has no long queues has a low mean and looks less correlated than it is; no test of the same run can detect that.  So
    where the run is longer than 100 correlation times, the interval is 1 + (250 correlation times / values)^2 times as wide as
    that of the batches.  The two numbers were chosen on waits of M/M/1, so that intervals of runs that are
    :attr:`BatchMeans.long_enough` cover in at least 90 % (docs/statistics.md).  That of a shorter run is too narrow.

    The values are in order of time, without warm-up, at least two in each batch; an incomplete first batch is omitted.
    """
    batches = require_whole("batches", batches, at_least=2)
    array = checked_values("values", values, 2 * batches, f"two for each of {batches} batches")
    batch = len(array) // batches
    kept = array[len(array) - batch * batches :]
    means = kept.reshape(batches, batch).mean(axis=1)
    mean = interval(means, level)
    deviations = means - mean.mean
    squares = dot(deviations, deviations)
    lag_1 = dot(deviations[:-1], deviations[1:]) / squares if squares else 0.0
    variance = float(kept.var())
    time = max(_correlation_time(kept), batch * squares / (batches - 1) / variance if variance else 0.0)
    wider = 1 + (_WIDER * time / len(kept)) ** 2 if len(kept) > _LONG * time else 1.0
    return BatchMeans(mean.mean, wider * mean.half, mean.level, mean.count, batch, lag_1, time)


def _correlation_time(values: FloatArray) -> float:
    """Return 1 + twice the sum of autocorrelations, by Geyer's initial monotone sequence (Geyer 1992, section 3.3)."""
    deviations = values - values.mean()
    length = 1 << (2 * len(values) - 1).bit_length()  # zeros behind the values, so that their end does not meet their beginning
    spectrum = np.fft.rfft(deviations, length)
    products = np.fft.irfft(spectrum.real**2 + spectrum.imag**2, length)[: len(values) // 2 * 2]
    if products[0] <= 0:
        return 1.0
    pairs = (products[::2] + products[1::2]) / products[0]
    negative = np.flatnonzero(pairs <= 0)
    kept = pairs[: negative[0]] if negative.size else pairs
    return max(2 * float(np.minimum.accumulate(kept).sum()) - 1, 1.0)
