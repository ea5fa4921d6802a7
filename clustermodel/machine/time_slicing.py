"""Time slices: in which gangs share nodes in time."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

import clustermodel.validation as check
from clustermodel.ticks import to_ticks
from clustermodel.validation import A_TICK, require, seconds_fields, whole_fields

AtEvents = Literal["cut", "keep"]
AT_EVENTS: Final = get_args(AtEvents)


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeSlicing:
    """Time slices, for policies that share nodes in time (Zhang et al. 2003, section 4)."""

    quantum_s: float = 200.0
    """Length T of a time slice, seconds, in which one row of the Ousterhout matrix runs."""
    mpl: int = 5
    """Multiprogramming level: largest number of rows of the matrix, and so of gangs that share a node."""
    at_events: AtEvents = "cut"
    """The effect of a scheduling event on the running slice:

    - ``"cut"``: it ends the slice; the next row has a full slice, and context switches in progress start over.
    - ``"keep"``: the slice keeps its end.  Changes of the running row take effect at once; context switches in progress for
      tasks that still run continue."""

    def __post_init__(self) -> None:
        seconds_fields(self, "TimeSlicing.", "quantum_s", positive=True)
        require(self.quantum, "TimeSlicing.quantum_s", self.quantum_s, A_TICK)
        whole_fields(self, "TimeSlicing.", mpl=1)
        check.choice("TimeSlicing.at_events", self.at_events, AT_EVENTS)

    @property
    def quantum(self) -> int:
        """T in ticks."""
        return to_ticks(self.quantum_s)

    def longest(self, ticks: int, rows: int, switch: int) -> int:
        """Return how long a gang at worst takes for ``ticks`` of its own slices, unless another scheduling event delays it."""
        # Before each of its slices come those of all other rows, and each has a switch.  If it joins a slice that goes on,
        # that may end during the switch.
        slices = -(-ticks // (self.quantum - switch))
        unused = switch if slices and self.at_events == "keep" else 0
        return ticks + slices * ((rows - 1) * self.quantum + switch) + unused
