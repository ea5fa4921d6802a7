"""How a job's run time depends on its size: the specification of moldable jobs (Perkovic & Keleher 2000, section 7).

A trace has the run time on the nodes that the job asked for.  The run time on other numbers of nodes is an assumption.
"""

from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from typing import Final, Protocol, runtime_checkable

from clustermodel.errors import SpecificationError, quoted
from clustermodel.validation import require_number


@runtime_checkable
class Speedup(Protocol):
    """A model of the run time of moldable jobs."""

    def time_on(self, ticks: int, asked: int, nodes: int) -> int:
        """Return the run time on ``nodes`` of a job that takes ``ticks`` on the ``asked`` nodes, ticks, at least 1."""


@dataclass(frozen=True, slots=True)
class LinearSpeedup:
    """Constant efficiency: on half as many nodes a job takes twice as long (Perkovic & Keleher 2000, section 7)."""

    def time_on(self, ticks: int, asked: int, nodes: int) -> int:
        """Return ``ticks`` x ``asked`` / ``nodes``, rounded up."""
        return -(-ticks * asked // nodes)


LINEAR: Final = LinearSpeedup()
"""The assumption of Perkovic & Keleher 2000, and the default everywhere."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DowneySpeedup:
    """Downey's model of the speedup of parallel programs (Downey 1997).

    A program has an average parallelism A and a variance of parallelism sigma.  On n nodes it is S(n) times as fast as on one.
    With sigma <= 1,

        S(n) = A n / (A + sigma (n - 1) / 2)                    for n <= A
               A n / (sigma (A - 1/2) + n (1 - sigma / 2))      for A <= n <= 2 A - 1
               A                                                for n >= 2 A - 1

    and with sigma >= 1,

        S(n) = n A (sigma + 1) / (sigma (n + A - 1) + A)        for n <= A + A sigma - sigma
               A                                                beyond.

    A negative ``sigma`` and a ``parallelism`` below 1 are refused.
    """

    sigma: float = 1.0
    """Coefficient of the variance of parallelism; 0 is a linear speedup up to A."""
    parallelism: float = 1.0
    """A as a multiple of the nodes that a job asked for: by default users ask for the average parallelism."""

    def __post_init__(self) -> None:
        require_number("DowneySpeedup.sigma", self.sigma, "a finite number >= 0", lambda value: 0 <= value <= 1e9)
        require_number("DowneySpeedup.parallelism", self.parallelism, "a finite number >= 1", lambda value: 1 <= value <= 1e9)

    def speedup(self, nodes: int, average: float) -> float:
        """Return S(n) for a program of average parallelism A."""
        a, n, sigma = average, nodes, self.sigma
        if sigma <= 1 and n <= a:
            return a * n / (a + sigma * (n - 1) / 2)
        if sigma <= 1 and n < 2 * a - 1:
            return a * n / (sigma * (a - 0.5) + n * (1 - sigma / 2))
        if sigma > 1 and n <= a + a * sigma - sigma:
            return n * a * (sigma + 1) / (sigma * (n + a - 1) + a)
        return a

    def time_on(self, ticks: int, asked: int, nodes: int) -> int:
        """Return ``ticks`` x S(``asked``) / S(``nodes``), rounded up."""
        if nodes == asked:
            return ticks
        average = self.parallelism * asked
        return max(1, ceil(ticks * (self.speedup(asked, average) / self.speedup(nodes, average))))


def speedup_of(text: str) -> Speedup:
    """Return the model that ``"linear"`` or ``"downey:SIGMA"`` names."""
    if text == "linear":
        return LINEAR
    with suppress(ValueError):  # a SpecificationError is one
        if text.startswith("downey:"):
            return DowneySpeedup(sigma=float(text.removeprefix("downey:")))
    raise SpecificationError(f"{quoted(text)} is not 'linear' or 'downey:SIGMA' with a number >= 0, as downey:1")
