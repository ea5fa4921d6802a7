"""Conversion between seconds, used at every public edge, and the integer ticks used inside.

One tick is one microsecond.  With integer time slices do not drift and the capacity ledger balances exactly.
"""

from typing import Final

TICKS_PER_SECOND: Final = 1_000_000
LAST_TICK: Final = 2**63 - 1  # largest time that records and tables hold: 292,271 years
NEVER: Final = 2**127  # later than any time of a run, even one that no record can hold


def to_ticks(seconds: float) -> int:
    """Return ``seconds`` rounded to the nearest tick (a plain ``int``, so that SimPy's clock stays an integer)."""
    return round(seconds * TICKS_PER_SECOND)


def duration_to_ticks(seconds: float) -> int:
    """Return a positive duration in ticks: rounded like :func:`to_ticks`, but never to zero."""
    return round(seconds * TICKS_PER_SECOND) or 1


def to_seconds(ticks: float) -> float:
    """Return ``ticks`` in seconds."""
    return ticks / TICKS_PER_SECOND


def ratio(part: int, whole: int) -> float:
    """Return ``part / whole``, rounded once.

    Node time can be larger than a float holds exactly.  The division of compiled code would round both numbers first, so this
    module is not compiled.
    """
    return part / whole
