"""Amounts of memory: gibibytes (GiB) in specifications and tables, whole kibibytes (KiB) in the simulator."""

from __future__ import annotations

from typing import Final

from clustermodel.validation import require_number

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
