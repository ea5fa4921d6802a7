"""The machine's specification: what exists, before anything runs on it."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Final

from clustermodel.errors import SpecificationError

LARGEST_WHOLE: Final = 2**53
"""Largest whole number of any field: exact as a float, and far inside a 64-bit table."""


def require_whole(field: str, value: object, *, at_least: int | None = None) -> int:
    """Return ``value`` as a plain ``int`` (numpy integers too: they would turn SimPy's clock into a float).

    Raises:
        SpecificationError: ``value`` is not a whole number, is below ``at_least``, or too large for a table.
    """
    allowed = "an integer" if at_least is None else f"an integer >= {at_least}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise SpecificationError(f"{field}: {value!r} is not a whole number; it must be {allowed}")
    whole = int(value)
    if at_least is not None and whole < at_least:
        raise SpecificationError(f"{field}: {whole} is not allowed; it must be {allowed}")
    if abs(whole) > LARGEST_WHOLE:
        raise SpecificationError(f"{field}: {whole} is not allowed; it must lie within +-{LARGEST_WHOLE}")
    return whole


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """A parallel computer of identical nodes.

    Raises:
        SpecificationError: ``nodes`` is not a whole number of at least one.
    """

    nodes: int
    """Number of nodes; a job's tasks run one to a node (the papers' processors, 002's N)."""
    kill_at_estimate: bool = True
    """Whether the batch system ends a job that reaches its estimate (001, requirement VIII).  When off, the job runs on."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", require_whole("Machine.nodes", self.nodes, at_least=1))
        if not isinstance(self.kill_at_estimate, bool):
            raise SpecificationError(
                f"Machine.kill_at_estimate: {self.kill_at_estimate!r} is not allowed; it must be True or False"
            )
