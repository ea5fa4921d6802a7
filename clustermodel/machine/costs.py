"""Costs that are a number of seconds, or depend on the number of nodes of a gang: context switches, start-up, epilog."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from clustermodel.errors import SpecificationError, counted, in_words, quoted
from clustermodel.ticks import to_ticks
from clustermodel.validation import require_seconds, seconds_fields

Seconds = float | Callable[[int], float]
"""A cost in seconds: a number, or a function of the number of nodes of the gang that pays it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SizeCost:
    """A cost that grows with the number of nodes of a gang: a function that scenario files can hold.

    >>> from clustermodel import Machine, SizeCost
    >>> machine = Machine(nodes=64, startup_s=SizeCost(base_s=5, per_node_s=0.25))
    >>> machine.startup_s(16)
    9.0
    """

    base_s: float = 0.0
    """The part that does not depend on the size, seconds."""
    per_node_s: float = 0.0
    """The part per node, seconds."""

    def __post_init__(self) -> None:
        seconds_fields(self, "SizeCost.", "base_s", "per_node_s")

    def __call__(self, nodes: int) -> float:
        """Return the cost of a gang of ``nodes`` nodes, seconds."""
        return self.base_s + self.per_node_s * nodes


class CostTicks:
    """A cost in ticks by number of nodes; a function is asked once for each number."""

    def __init__(self, field: str, seconds: Seconds) -> None:
        self._field: Final = field
        self._function = seconds if callable(seconds) else None
        self.constant = None if callable(seconds) else to_ticks(require_seconds(field, seconds))
        """The same for all gangs, ticks; ``None``: it depends on their nodes."""
        self._known: dict[int, int] = {}

    def of(self, nodes: int) -> int:
        """Return the cost of a gang of ``nodes`` nodes, ticks."""
        if self.constant is not None:
            return self.constant
        if nodes not in self._known:
            self._known[nodes] = to_ticks(self._asked(nodes))
        return self._known[nodes]

    def _asked(self, nodes: int) -> float:
        assert self._function is not None
        try:
            seconds: object = self._function(nodes)
        except Exception as problem:
            raise SpecificationError(
                f"{self._field}: the function {quoted(self._function)} raised {in_words(problem)} for {counted(nodes, 'node')}"
            ) from problem
        return require_seconds(f"{self._field} of {counted(nodes, 'node')}", seconds)


def require_cost(field: str, seconds: Seconds, nodes: int) -> None:
    """Refuse a cost that is not a time; a function is asked for gangs of 1 and of ``nodes`` nodes."""
    cost = CostTicks(field, seconds)
    for size in {1, nodes}:
        cost.of(size)
