"""Signals during a simulation on compiled modules: they wait until the event that is being handled is over.

CPython looks for signals in the middle of a multiplication of large integers.  A handler that raises there, as that of Ctrl-C
does, makes the multiplication fail, and code compiled by mypyc takes any such failure for a lack of memory and aborts.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from clustermodel.compiled import is_compiled
from clustermodel.sim.events import Clock

_Handler = Callable[[int, FrameType | None], object]


@contextmanager
def signals_between_events(env: Clock) -> Iterator[None]:
    """Hold signals back until the next event; those that reach a policy or a library in Python code are handled at once."""
    if not is_compiled() or threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, _Handler] = {n: found for n in signal.valid_signals() if callable(found := signal.getsignal(n))}
    waiting: list[tuple[int, FrameType | None]] = []

    def handle() -> None:
        while waiting:
            number, frame = waiting.pop(0)
            handlers[number](number, frame)

    def step() -> None:
        del env.step
        handle()
        env.step()

    def hold(number: int, frame: FrameType | None) -> None:
        # While compiled code runs, the innermost frame is that of SimPy or of a module of ours that has called it.
        if frame is not None and frame.f_globals.get("__name__", "").startswith(("clustermodel.", "simpy.")):
            waiting.append((number, frame))
            env.step = step  # type: ignore[method-assign]
        else:
            handlers[number](number, frame)

    for number in handlers:
        signal.signal(number, hold)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if signal.getsignal(number) is hold:
                signal.signal(number, handler)
        handle()
