"""Settling an instant: the one thing the model needs from the event loop that SimPy does not have under a name.

SimPy handles the events of one instant in order of priority, then of creation.  An event of a priority after NORMAL is
handled when everything else of the instant is over, whatever order it was created in, so a process that waits for it
sees the whole instant at once.  (A plain wake-up event would be handled in the middle of it: partial batches.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from simpy import Environment, Event
from simpy.events import NORMAL, PENDING, EventPriority

SETTLED: Final = EventPriority(NORMAL + 1)
"""Priority of the event that ends an instant."""


class Clock(Environment):
    """SimPy's environment; its time is an integer number of ticks because every delay in the model is one."""

    if TYPE_CHECKING:

        @property
        def now(self) -> int:
            """The present, ticks."""


class InstantSettled(Event):
    """Succeeds at the end of the instant in which it is armed."""

    def arm(self) -> None:
        """Succeed when everything else that happens at the present instant has been handled; once is enough."""
        if self._value is PENDING:
            self._ok = True
            self._value = None
            self.env.schedule(self, priority=SETTLED)
