"""An alarm clock in simulated time."""

from __future__ import annotations

from collections.abc import Callable

from simpy import Event, Timeout

from clustermodel.sim.events import Clock


class AlarmClock:
    """An alarm that can be set again at will; ringing clears it.

    A timeout cannot be taken back, and each one that is no longer wanted stays in the event heap until its time comes.  So
    a later timeout is scheduled only after an earlier, obsolete one has fired.

    Args:
        env: the simulation.
        ring: called when the alarm rings.
    """

    __slots__ = ("_armed", "_env", "_ring", "at")

    def __init__(self, env: Clock, ring: Callable[[], None]) -> None:
        self.at: int | None = None
        """When it will ring, ticks; ``None`` when it is not set."""
        self._env = env
        self._ring = ring
        self._armed: list[int] = []  # times of timeouts that will come, earliest last

    def set(self, time: int | None) -> None:
        """Ring at ``time``, which is not before the present, instead of whenever it would have; ``None``: not at all."""
        self.at = time
        if time is not None and (not self._armed or time < self._armed[-1]):
            self._arm(time)

    def _arm(self, time: int) -> None:
        self._armed.append(time)
        timeout = Timeout(self._env, time - self._env.now)
        assert timeout.callbacks is not None
        timeout.callbacks.append(self._timed_out)

    def _timed_out(self, _: Event) -> None:
        self._armed.pop()
        wanted = self.at
        if wanted is None:
            return
        if wanted == self._env.now:
            self.at = None
            self._ring()
        elif not self._armed or wanted < self._armed[-1]:
            self._arm(wanted)
