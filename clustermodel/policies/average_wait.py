"""The average wait time AWT of slack-based backfilling: given, or measured under conservative backfilling.

The slack of a job is a multiple of AWT (Talby & Feitelson 1999, long version, section 4.3), which may differ by job size here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

from clustermodel.errors import SpecificationError, did_you_mean
from clustermodel.policies.interface import MeasureWaits, Waits
from clustermodel.ticks import to_seconds
from clustermodel.validation import require_seconds, require_whole

MEASURED: Final = "conservative"
MEASURED_BY_SIZE: Final = "conservative-by-size"

Classes = tuple[tuple[float, float], ...]
"""(largest number of nodes, average wait time in seconds), ascending."""


class AverageWait:
    """The average wait time, by classes of job sizes.

    Args:
        asked: ``"conservative"``, ``"conservative-by-size"``, seconds, or a mapping from the largest number of nodes of a class
            to seconds, or such pairs.

    Raises:
        SpecificationError: ``asked`` is none of these.
    """

    def __init__(self, asked: object) -> None:
        self._asked = asked
        self.classes: Classes = _given(asked)
        """Empty until it has been measured."""

    def check(self, nodes: int) -> None:
        """Make sure that the average is known for all job sizes of a machine.

        Raises:
            SpecificationError: it has not been measured, or ``nodes`` is above the largest class.
        """
        if not self.classes:
            raise SpecificationError(
                f"slack: awt: {self._asked!r} has not been measured; run the policy in a Scenario, or give a number of seconds"
            )
        if nodes > self.classes[-1][0]:
            raise SpecificationError(
                f"slack: awt: {self.classes[-1][0]} as the largest size is not allowed; "
                f"it must be >= {nodes}, the machine's nodes"
            )

    def of(self, nodes: int) -> float:
        """Return the average wait time of jobs of this size, seconds."""
        return next(seconds for largest, seconds in self.classes if nodes <= largest)


def measured(asked: object, measure: MeasureWaits) -> Classes | None:
    """Return the average wait time under conservative backfilling, if that is asked for."""
    if asked == MEASURED:
        return ((inf, _mean_s(measure("conservative").wait)),)
    return _by_size(measure("conservative")) if asked == MEASURED_BY_SIZE else None


def _given(awt: object) -> Classes:
    """Return the classes that ``awt`` gives, none if they have to be measured."""
    if isinstance(awt, str):
        if awt in (MEASURED, MEASURED_BY_SIZE):
            return ()
        raise SpecificationError(
            f"slack: awt: {awt!r} is not allowed{did_you_mean(awt, (MEASURED, MEASURED_BY_SIZE))}; "
            f"it must be {MEASURED!r}, {MEASURED_BY_SIZE!r}, a number of seconds, or a mapping from nodes to seconds"
        )
    if isinstance(awt, tuple):  # classes of a mapping, or measured ones
        return awt
    if isinstance(awt, Mapping):
        if not awt:
            raise SpecificationError("slack: awt: an empty mapping is not allowed; it must have one class of sizes at least")
        classes = (
            (require_whole("slack: awt: largest size", largest, at_least=1), require_seconds(f"slack: awt[{largest}]", seconds))
            for largest, seconds in awt.items()
        )
        return tuple(sorted(classes))
    return ((inf, require_seconds("slack: awt", awt)),)


def _mean_s(waits: Sequence[int]) -> float:
    return to_seconds(sum(waits)) / len(waits) if waits else 0.0


def _by_size(waits: Waits) -> Classes:
    """Return the mean wait of the sizes 1, 2, 3-4, 5-8, ...; larger sizes and empty classes get the mean of all jobs."""
    largest = max(waits.nodes, default=1)
    classes: dict[int, list[int]] = {2**k: [] for k in range((largest - 1).bit_length() + 1)}
    for nodes, wait in zip(waits.nodes, waits.wait, strict=True):
        classes[2 ** (nodes - 1).bit_length()].append(wait)
    overall = _mean_s(waits.wait)
    return (*((bound, _mean_s(of_class) if of_class else overall) for bound, of_class in classes.items()), (inf, overall))
