"""Selecting and scaling jobs row by row, for tables and for streams in constant memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from numbers import Integral, Real

from clustermodel.errors import SpecificationError, quoted
from clustermodel.job import JobRow
from clustermodel.ticks import LAST_TICK, TICKS_PER_SECOND
from clustermodel.validation import require_number


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFilter:
    """Which jobs of a workload to keep; everything by default.

    Raises:
        SpecificationError: an interval is not a pair (low, high) with low <= high.
    """

    window_s: tuple[float, float] | None = None
    """Keep jobs submitted in [low, high) seconds."""
    nodes: tuple[int, int] | None = None
    """Keep jobs of low to high nodes, both included."""
    statuses: Collection[int] | None = None
    """Keep jobs with one of these SWF statuses."""
    users: Collection[int] | None = None
    """Keep jobs of these users."""

    def __post_init__(self) -> None:
        for field in ("window_s", "nodes"):
            interval = getattr(self, field)
            if interval is not None and not _is_interval(interval):
                raise SpecificationError(
                    f"JobFilter.{field}: {quoted(interval)} is not allowed; it must be (low, high), low <= high"
                )
            if interval is not None:
                object.__setattr__(self, field, tuple(interval))
        for field in ("statuses", "users"):
            numbers = getattr(self, field)
            if numbers is not None and not _are_numbers(numbers):
                raise SpecificationError(
                    f"JobFilter.{field}: {quoted(numbers)} is not allowed; it must be a set of whole numbers"
                )
            if numbers is not None:
                object.__setattr__(self, field, frozenset(numbers))

    def rejects(self, row: JobRow) -> str | None:
        """Return the reason to leave ``row`` out, or ``None`` to keep it."""
        if self.window_s is not None:
            low, high = self.window_s
            if not low * TICKS_PER_SECOND <= row.submit < high * TICKS_PER_SECOND:
                return "outside the time window"
        if self.nodes is not None and not self.nodes[0] <= row.nodes <= self.nodes[1]:
            return "outside the size range"
        if self.statuses is not None and row.status not in self.statuses:
            return "status not selected"
        if self.users is not None and row.user not in self.users:
            return "user not selected"
        return None


def _are_numbers(value: object) -> bool:
    if not isinstance(value, Collection) or isinstance(value, bytes | bytearray):
        return False
    return all(isinstance(number, Integral) for number in value)


def _is_interval(value: object) -> bool:
    if not isinstance(value, tuple | list) or len(value) != 2 or not all(isinstance(end, Real) for end in value):
        return False
    return bool(value[0] <= value[1])


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadScale:
    """Factors that change a workload's load.

    Raises:
        SpecificationError: a factor is not a finite number above zero.
    """

    interarrival: float = 1.0
    """Multiplies the time between submissions: 0.5 doubles the load."""
    run_time: float = 1.0
    """Multiplies run times and estimates (Zhang et al. 2003, section 2.2)."""
    size: float = 1.0
    """Multiplies the number of nodes, rounded to the nearest whole number of at least one."""

    def __post_init__(self) -> None:
        for field in ("interarrival", "run_time", "size"):
            require_number(f"LoadScale.{field}", getattr(self, field), "a finite number > 0", lambda x: isfinite(x) and x > 0)

    def apply(self, row: JobRow, first_submit: int) -> JobRow:
        """Return ``row`` scaled; ``first_submit`` (ticks) is the submission that does not move.

        Raises:
            SpecificationError: a time or a size no longer fits 64 bits.
        """
        try:
            scaled = row._replace(
                submit=first_submit + round((row.submit - first_submit) * self.interarrival),
                run=max(1, round(row.run * self.run_time)),
                estimate=max(1, round(row.estimate * self.run_time)),
                nodes=max(1, round(row.nodes * self.size)) if row.nodes > 0 else row.nodes,
            )
        except OverflowError:  # infinity
            scaled = None
        if scaled is None or max(scaled) > LAST_TICK:
            raise SpecificationError(
                f"LoadScale: job {row.id}: a time or size is too large for 64-bit ticks; scale it by smaller factors"
            )
        return scaled


def filtered(rows: Iterable[JobRow], keep: JobFilter, dropped: Counter[str]) -> Iterator[JobRow]:
    """Yield the rows that are kept; the others are counted in ``dropped`` by reason."""
    for row in rows:
        reason = keep.rejects(row)
        if reason is None:
            yield row
        else:
            dropped[reason] += 1


def scaled(rows: Iterable[JobRow], scale: LoadScale) -> Iterator[JobRow]:
    """Yield the rows scaled; the first submission does not move."""
    first: int | None = None
    for row in rows:
        first = row.submit if first is None else first
        yield scale.apply(row, first)


def transformed(
    rows: Iterable[JobRow], keep: JobFilter | None, scale: LoadScale | None, dropped: Counter[str]
) -> Iterator[JobRow]:
    """Yield ``rows`` filtered, then scaled, one at a time; jobs left out are counted in ``dropped`` by reason."""
    if keep is not None:
        rows = filtered(rows, keep, dropped)
    if scale is not None:
        rows = scaled(rows, scale)
    return iter(rows)
