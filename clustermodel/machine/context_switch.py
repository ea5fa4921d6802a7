"""Context switches: what it costs that a node turns to another task."""

from dataclasses import dataclass
from typing import Final, Literal

import clustermodel.validation as check
from clustermodel.errors import SpecificationError
from clustermodel.machine.costs import CostTicks, Seconds
from clustermodel.validation import require, seconds_fields

CHARGES: Final = ("on-change", "every-slice")


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextSwitch:
    """Cost of suspending one task and resuming another on a node, at the start of a slice (Zhang et al. 2003, section 5).

    The node makes no progress in this time.  Context switches are free by default; the cost is given in one of two ways, and a
    job may have a cost of its own (:attr:`Job.context_switch_s <clustermodel.workload.job.Job.context_switch_s>`).  Each gang
    pays its own switch at the start of its slice, on its own nodes; gangs of one row do not wait for each other's.
    """

    fraction: float | None = None
    """CS, the cost as a fraction of the time slice, in [0, 1)."""
    seconds: Seconds | None = None
    """The cost in seconds, whatever the time slice: a number, or a function of the number of nodes of the gang that is resumed
    (or, when a gang is suspended to memory, of that one)."""
    charge: Literal["on-change", "every-slice"] = "on-change"
    """``"on-change"``: a node pays when the task it runs changes, and a gang continues when all of its nodes are ready.
    ``"every-slice"``: every node of every gang pays in every slice, the convention of Zhang et al. 2003, eq. (3)."""

    def __post_init__(self) -> None:
        if self.fraction is not None and self.seconds is not None:
            raise SpecificationError(
                f"ContextSwitch: fraction={self.fraction!r} and seconds={self.seconds!r} are both given; give one of them"
            )
        if self.fraction is not None:
            allowed = "a number >= 0 and < 1, a share of the time slice"
            check.require_number("ContextSwitch.fraction", self.fraction, allowed, lambda share: 0 <= share < 1)
        if not callable(self.seconds):  # the machine asks a function, as it knows how many nodes there are
            seconds_fields(self, "ContextSwitch.", "seconds")
        require(self.charge in CHARGES, "ContextSwitch.charge", self.charge, "it must be 'on-change' or 'every-slice'")

    def ticks(self, quantum: int) -> int | None:
        """Return the cost in ticks in slices of ``quantum`` ticks; ``None`` if it depends on the number of nodes."""
        return round(self.fraction * quantum) if self.fraction is not None else self.cost.constant

    @property
    def cost(self) -> CostTicks:
        """The cost by number of nodes, unless it is a fraction of the time slice."""
        return CostTicks("ContextSwitch.seconds", self.seconds or 0.0)
