"""Validators of fields: whole numbers, numbers within bounds, seconds, memory, names, flags.

A wrong value gives one line: field, value, allowed.  Memory is in gibibytes (GiB) in specifications and tables, in whole
kibibytes (KiB) in the simulator.  Every function raises a ``SpecificationError`` for a value that is refused.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Final

from clustermodel.errors import SpecificationError, did_you_mean, number_meant, quoted, refused, shown

LARGEST_WHOLE: Final = 2**53  # of any field: exact as a float, and far inside a 64-bit table
MOST_JOBS: Final = 10_000_000  # of a workload that is generated in memory, which takes some hundred bytes for each
LONGEST_S: Final = 1e10  # of any field: 317 years; hundreds of such jobs one after another fit 64-bit ticks
KIB_PER_GIB: Final = 2**20
LARGEST_GIB: Final = 2**33  # memory of a node, or of a task: its sums over the tasks of a node fit 64 bits
A_TICK: Final = "it must be >= 1e-6 (a tick)"


def require(holds: object, field: str, value: object, must: str, where: str = "") -> None:
    """Refuse ``value`` unless something holds, which ``must`` says in words, ``where`` in which circumstances."""
    if not holds:
        raise refused(field, value, must, where)


def require_whole(field: str, value: object, *, at_least: int | None = None) -> int:
    """Return ``value`` as a plain ``int`` (also from numpy integers, which would turn SimPy's clock into a float)."""
    if type(value) is int and abs(value) <= LARGEST_WHOLE and (at_least is None or value >= at_least):
        return value  # the usual case: workloads have many jobs
    allowed = "be an integer" if at_least is None else f"be an integer >= {at_least}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise SpecificationError(f"{field}: {quoted(value)} is not a whole number{number_meant(value)}; it must {allowed}")
    whole = int(value)
    too_small = at_least is not None and whole < at_least
    if too_small or abs(whole) > LARGEST_WHOLE:
        must = allowed if too_small else f"lie within +-{LARGEST_WHOLE}"
        raise SpecificationError(f"{field}: {shown(whole)} is not allowed; it must {must}")
    return whole


def whole_fields(specification: Any, prefix: str, **at_least: int | None) -> None:
    """Keep fields of a frozen dataclass as plain ``int``; each is at least the value given for it.

    ``None`` passes where it is the default of the field.  ``prefix`` begins the name of a field in messages.
    """
    for name, value in _given(specification, at_least):
        object.__setattr__(specification, name, require_whole(prefix + name, value, at_least=at_least[name]))


def seconds_fields(specification: Any, prefix: str, *names: str, positive: bool = False) -> None:
    """Check that fields of a dataclass are times; ``None`` passes where it is the default."""
    for name, value in _given(specification, names):
        require_seconds(prefix + name, value, positive=positive)


def _given(specification: Any, names: Iterable[str]) -> list[tuple[str, Any]]:
    pairs, known = [(name, getattr(specification, name)) for name in names], specification.__dataclass_fields__
    return [(name, value) for name, value in pairs if value is not None or known[name].default is not None]


def require_jobs(value: object, *, at_least: int = 1) -> int:
    """Return a number of jobs to generate, at most ``MOST_JOBS``, as a plain ``int``."""
    jobs = require_whole("jobs", value, at_least=at_least)
    require(jobs <= MOST_JOBS, "jobs", jobs, f"it must be an integer >= {at_least} and <= {MOST_JOBS:,}")
    return jobs


def require_number(name: str, value: object, allowed: str, holds: Callable[[float], bool]) -> float:
    """Return a number for which ``holds`` is true as a ``float``; ``allowed`` says the same in words."""
    try:
        number = None if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except OverflowError:
        number = math.inf
    if number is None or not holds(number):
        wrong = shown(value) if isinstance(value, Real) else quoted(value)
        raise SpecificationError(f"{name}: {wrong} is not allowed{number_meant(value)}; it must be {allowed}")
    return number


def require_seconds(name: str, value: object, *, positive: bool = False) -> float:
    """Return a finite number in [0, 1e10] seconds, above zero where it must be ``positive``, as a ``float``."""
    if type(value) is float and 0 < value <= LONGEST_S:
        return value  # the usual case
    allowed = f"a finite number of seconds {'> 0' if positive else '>= 0'} and <= {LONGEST_S:g}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SpecificationError(f"{name}: {quoted(value)} is not a number{number_meant(value)}; it must be {allowed}")
    return require_number(name, value, allowed, lambda time: 0 <= time <= LONGEST_S and not (positive and time == 0))


def share(name: str, value: object) -> float:
    """Return a number in [0, 1] as a ``float``."""
    return require_number(name, value, "a number >= 0 and <= 1", lambda number: 0 <= number <= 1)


def flag(name: str, value: object) -> bool:
    """Return ``True`` or ``False``."""
    require(isinstance(value, bool), name, value, "it must be True or False")
    return bool(value)


def choice(name: str, value: object, allowed: Iterable[str], *, other: str = "") -> str:
    """Return a value that is one of the names allowed; ``other`` is what else the field may be: ``", or a callable"``."""
    names = list(allowed)
    if isinstance(value, str) and value in names:
        return value
    hint = did_you_mean(value, names) if isinstance(value, str) else ""
    raise SpecificationError(f"{name}: {value!r} is not allowed{hint}; it must be one of {', '.join(names)}{other}")


def require_gib(name: str, gib: object, *, positive: bool = False) -> float:
    """Return an amount of memory in GiB, from 0 to 2^33; 0 is refused where it must be ``positive``."""
    allowed = f"a number of GiB {'> 0' if positive else '>= 0'} and <= 2^33"
    return require_number(name, gib, allowed, lambda value: 0 <= value <= LARGEST_GIB and not (positive and value == 0))


def to_kib(gib: float) -> int:
    """Return an amount in GiB as whole KiB, the nearest."""
    return round(gib * KIB_PER_GIB)


def to_gib(kib: int) -> float:
    """Return an amount in KiB as GiB."""
    return kib / KIB_PER_GIB


def default_used(gib: float) -> str:
    """Return the reason by which provenances count jobs whose memory is unknown, and that get ``gib`` GiB per node."""
    return f"memory unknown, {gib:g} GiB per node used"


def positive(field: str, value: object) -> None:
    """Refuse what is not a finite number above zero."""
    require_number(field, value, "a finite number > 0", lambda x: 0 < x < math.inf)


class Checked:
    """A frozen dataclass whose fields are checked when it is made, by functions of name and value that its class line names.

    What such a function returns, if anything, is kept in place of the value.
    """

    _checks: ClassVar[Mapping[str, Callable[[str, Any], object]]] = {}

    def __init_subclass__(cls, **checks: Callable[[str, Any], object]) -> None:
        cls._checks = {**cls._checks, **checks}

    def __post_init__(self) -> None:
        for field, check in self._checks.items():
            kept = check(f"{type(self).__name__}.{field}", getattr(self, field))
            if kept is not None:
                object.__setattr__(self, field, kept)
