"""Signals during a simulation on compiled modules: they wait until the event that is being handled is over.

CPython looks for signals in the middle of a multiplication of large integers.  A handler that raises there, as that of Ctrl-C
does, makes the multiplication fail, and code compiled by mypyc takes any such failure for a lack of memory and aborts.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from clustermodel.sim.compiled import is_compiled
from clustermodel.sim.events import Clock

_Handler = Callable[[int, FrameType | None], object]
# Several runs may be under way, of which all but one are paused while their policies wait for an answer (clustermodel.gym).
_under_way: Final[list[Clock]] = []
_handlers: Final[dict[int, _Handler]] = {}  # what handles signals when no run is under way
_waiting: Final[list[tuple[int, FrameType | None]]] = []


@contextmanager
def signals_between_events(env: Clock) -> Iterator[None]:
    """Hold signals back until the next event; those that reach a policy or a library in Python code are handled at once."""
    if not is_compiled() or threading.current_thread() is not threading.main_thread():
        yield
        return
    for number in map(int, signal.valid_signals()):
        if callable(handler := signal.getsignal(number)) and handler is not _hold:
            _handlers[number] = handler
            signal.signal(number, _hold)
    _under_way.append(env)
    try:
        yield
    finally:
        _under_way.remove(env)
        if not _under_way:
            for number, handler in _handlers.items():
                if signal.getsignal(number) is _hold:
                    signal.signal(number, handler)
        _handle()


def _hold(number: int, frame: FrameType | None) -> None:
    # While compiled code runs, the innermost frame is that of SimPy or of a module of ours that has called it.
    if frame is None or not frame.f_globals.get("__name__", "").startswith(("clustermodel.", "simpy.")):
        _handlers[number](number, frame)
        return
    _waiting.append((number, frame))
    for env in _under_way:  # whichever goes on first
        env.step = _step_of(env)  # type: ignore[method-assign]


def _step_of(env: Clock) -> Callable[[], None]:
    def step() -> None:
        del env.step
        _handle()
        env.step()

    return step


def _handle() -> None:
    while _waiting:
        number, frame = _waiting.pop(0)
        _handlers[number](number, frame)
