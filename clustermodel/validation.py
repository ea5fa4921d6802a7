"""Validators of fields: whole numbers, numbers within bounds, seconds, memory, names, flags.

A wrong value gives one line: field, value, allowed.  Memory is in gibibytes (GiB) in specifications and tables, in whole
kibibytes (KiB) in the simulator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Final

from clustermodel.errors import SpecificationError, did_you_mean, quoted, shown

LARGEST_WHOLE: Final = 2**53
"""Largest whole number of any field: exact as a float, and far inside a 64-bit table."""


MOST_JOBS: Final = 10_000_000
"""Most jobs of a workload that is generated in memory, which takes some hundred bytes for each."""
LONGEST_S: Final = 1e10
"""Longest time in seconds of any field: 317 years; hundreds of such jobs one after another fit 64-bit ticks."""


def require_whole(field: str, value: object, *, at_least: int | None = None) -> int:
    """Return ``value`` as a plain ``int`` (also from numpy integers, which would turn SimPy's clock into a float).

    Raises:
        SpecificationError: ``value`` is not a whole number, is below ``at_least``, or too large for a table.
    """
    allowed = "an integer" if at_least is None else f"an integer >= {at_least}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise SpecificationError(f"{field}: {quoted(value)} is not a whole number; it must be {allowed}")
    whole = int(value)
    if at_least is not None and whole < at_least:
        raise SpecificationError(f"{field}: {shown(whole)} is not allowed; it must be {allowed}")
    if abs(whole) > LARGEST_WHOLE:
        raise SpecificationError(f"{field}: {shown(whole)} is not allowed; it must lie within +-{LARGEST_WHOLE}")
    return whole


def require_jobs(value: object, *, at_least: int = 1) -> int:
    """Return a number of jobs to generate as a plain ``int``.

    Raises:
        SpecificationError: ``value`` is not a whole number, is below ``at_least``, or exceeds :data:`MOST_JOBS`.
    """
    jobs = require_whole("jobs", value, at_least=at_least)
    if jobs > MOST_JOBS:
        raise SpecificationError(f"jobs: {jobs} is not allowed; it must be an integer >= {at_least} and <= {MOST_JOBS:,}")
    return jobs


def require_number(name: str, value: object, allowed: str, holds: Callable[[float], bool]) -> float:
    """Return ``value`` as a ``float``.

    Raises:
        SpecificationError: ``value`` is not a number, or ``holds`` is false for it; ``allowed`` says the same in words.
    """
    try:
        number = None if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except OverflowError:
        number = math.inf
    if number is None or not holds(number):
        wrong = shown(value) if isinstance(value, Real) else quoted(value)
        raise SpecificationError(f"{name}: {wrong} is not allowed; it must be {allowed}")
    return number


def require_seconds(name: str, value: object, *, positive: bool = False) -> float:
    """Return ``value`` as a ``float``.

    Raises:
        SpecificationError: ``value`` is not a finite number in [0, 1e10] seconds, or is zero where it must be ``positive``.
    """
    allowed = f"a finite number of seconds {'> 0' if positive else '>= 0'} and <= {LONGEST_S:g}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SpecificationError(f"{name}: {quoted(value)} is not a number; it must be {allowed}")
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    if not 0 <= seconds <= LONGEST_S or (positive and seconds == 0):
        raise SpecificationError(f"{name}: {shown(value)} is not allowed; it must be {allowed}")
    return seconds


def share(name: str, value: object) -> float:
    """Return ``value`` as a ``float``.

    Raises:
        SpecificationError: ``value`` is not a number in [0, 1].
    """
    return require_number(name, value, "a number >= 0 and <= 1", lambda number: 0 <= number <= 1)


def flag(name: str, value: object) -> bool:
    """Return ``value``.

    Raises:
        SpecificationError: ``value`` is neither ``True`` nor ``False``.
    """
    if not isinstance(value, bool):
        raise SpecificationError(f"{name}: {quoted(value)} is not allowed; it must be True or False")
    return value


def choice(name: str, value: object, allowed: Iterable[str], *, other: str = "") -> str:
    """Return ``value``.

    Args:
        name: of the field.
        value: given for it.
        allowed: the names that it may have.
        other: what else the field may be, as the message says it: ``", or a callable"``.

    Raises:
        SpecificationError: ``value`` is none of the names; the message suggests the nearest one.
    """
    names = list(allowed)
    if isinstance(value, str) and value in names:
        return value
    hint = did_you_mean(value, names) if isinstance(value, str) else ""
    raise SpecificationError(f"{name}: {value!r} is not allowed{hint}; it must be one of {', '.join(names)}{other}")


KIB_PER_GIB: Final = 2**20
LARGEST_GIB: Final = 2**33
"""Most memory of a node, or of a task: its sums over the tasks of a node fit 64 bits."""


def require_gib(name: str, gib: object, *, positive: bool = False) -> float:
    """Return an amount of memory in GiB.

    Args:
        name: of the value, for the message.
        gib: the value.
        positive: whether 0 is refused.

    Raises:
        SpecificationError: it is not a number from 0 to 2^33, or 0 although it must be positive.
    """
    allowed = f"a number of GiB {'> 0' if positive else '>= 0'} and <= 2^33"
    return require_number(name, gib, allowed, lambda value: (value > 0 if positive else value >= 0) and value <= LARGEST_GIB)


def to_kib(gib: float) -> int:
    """Return an amount in GiB as whole KiB, the nearest."""
    return round(gib * KIB_PER_GIB)


def to_gib(kib: int) -> float:
    """Return an amount in KiB as GiB."""
    return kib / KIB_PER_GIB


def default_used(gib: float) -> str:
    """Return the reason by which provenances count jobs whose memory is unknown, and that get ``gib`` GiB per node."""
    return f"memory unknown, {gib:g} GiB per node used"
