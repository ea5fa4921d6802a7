"""A settled instant, a bell, the process of a job, an alarm clock: what the model needs from the event loop beyond SimPy.

SimPy handles the events of one instant in order of priority, then of creation.  A process that has to see a whole instant
at once waits until it is settled: when all its events are over, whatever order they were created in.  (A plain wake-up
event would be handled in the middle of it: partial batches.)
"""

from collections.abc import Callable, Generator
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from simpy import Environment, Event, Process, Timeout
from simpy.events import NORMAL, PENDING, EventPriority, Initialize

OVER: Final = EventPriority(NORMAL + 1)  # priority of what comes when an instant is settled and nothing more is decided


class Clock(Environment):
    """SimPy's environment; its time is an integer number of ticks because every delay in the model is one."""

    if TYPE_CHECKING:

        @property
        def now(self) -> int:
            """The present, ticks."""
    else:
        now = property(attrgetter("_now"), doc="The present, ticks.")  # without a call of a Python function

    def run_with(self, coordinating: Process, settled: "InstantSettled") -> None:
        """Handle events until a process ends, and ring ``settled`` at the end of each instant in which it is armed."""
        queue = self._queue
        while True:  # a loop whose jump back has no condition: CPython 3.11 specializes no other in a function called once
            if not settled.is_armed or (queue and queue[0][0] == self._now and queue[0][1] < OVER):
                self.step()
                continue
            settled.is_armed = False
            settled.ring()
            if coordinating._value is not PENDING:
                break
        if isinstance(problem := coordinating.value, BaseException):
            raise problem


class InstantOver(Event):
    """Succeeds at the end of the present instant, after everything that a settled instant brings about."""

    def __init__(self, env: Clock) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        env.schedule(self, priority=OVER)


class Bell(Event):
    """An event that continues waiting processes at once, inside the event being handled, and takes no turn in SimPy's queue."""

    # It can ring again and again.

    def ring(self) -> None:
        """Let whoever waits go on at once, in the order of waiting."""
        waiting, self.callbacks = self.callbacks, []
        self._ok = True
        self._value = None
        assert waiting is not None
        for go_on in waiting:
            go_on(self)


class InstantSettled(Bell):
    """Rings when everything else has happened of an instant in which it is armed; it takes no turn in SimPy's queue either."""

    def __init__(self, env: Clock) -> None:
        super().__init__(env)
        self.is_armed = False


class JobProcess(Process):
    """The process of a job, which waits until it is told to begin, and each time it waits for nodes again, to go on."""

    # SimPy's own process begins with an event at the present time, in which a job could do nothing but ask for nodes and wait.

    def __init__(self, env: Clock, generator: Generator[Event, object, object]) -> None:
        self.env, self.callbacks, self._generator = env, [], generator

    def go_on(self) -> None:
        """Begin or go on at once, inside the event that is being handled."""
        self._resume(_GRANTED)

    def go_on_in_turn(self) -> None:
        """Begin or go on before anything else happens at the present time, later interrupts included."""
        self._target = Initialize(self.env, self)


_GRANTED: Final = Environment().event().succeed()


class AlarmClock:
    """An alarm that can be set again at will; ringing clears it."""

    __slots__ = ("_armed", "_env", "_ring", "at")

    def __init__(self, env: Clock, ring: Callable[[], None]) -> None:
        self.at: int | None = None  # when it will ring, ticks; ``None`` when it is not set
        self._env = env
        self._ring = ring
        # A timeout cannot be taken back: a later one is scheduled only after an earlier, obsolete one has fired.
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
