"""Signals during runs on compiled modules: held back until the next event of any run under way, then handled as before."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import FrameType

import pytest

from clustermodel.sim import signals
from clustermodel.sim.events import Clock

NUMBER = signal.SIGUSR1


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Return the signals that have been handled; modules count as compiled."""
    monkeypatch.setattr(signals, "is_compiled", lambda: True)
    numbers: list[int] = []
    before = signal.signal(NUMBER, lambda number, _: numbers.append(number))
    yield numbers
    signal.signal(NUMBER, before)


def raised_in(name: str) -> None:
    """Raise the signal in a module of this name."""
    code = compile("raise_it()", name, "exec")
    exec(code, {"__name__": name, "raise_it": lambda: signal.getsignal(NUMBER)(NUMBER, frame_of(name))})


def frame_of(name: str) -> FrameType:
    frames: list[FrameType] = []
    exec("import sys; keep(sys._getframe())", {"__name__": name, "keep": frames.append})
    return frames[0]


def ran(clock: Clock) -> Callable[[], None]:
    """Return what lets a clock handle one event."""
    clock.timeout(1)
    return clock.step


def test_a_signal_waits_for_the_next_event(handled: list[int]) -> None:
    clock = Clock()
    with signals.signals_between_events(clock):
        raised_in("somewhere.else")
        assert handled == [NUMBER]
        raised_in("clustermodel.sim.coordinator")
        assert handled == [NUMBER]
        ran(clock)()
        assert handled == [NUMBER] * 2
    assert signal.getsignal(NUMBER) is not signals._hold


def test_it_is_handled_in_whichever_run_goes_on_first(handled: list[int]) -> None:
    paused, running, own = Clock(), Clock(), signal.getsignal(NUMBER)
    with ExitStack() as of_paused, ExitStack() as of_running:
        of_paused.enter_context(signals.signals_between_events(paused))
        of_running.enter_context(signals.signals_between_events(running))
        for clock in (running, paused):
            raised_in("simpy.core")
            ran(clock)()
        assert handled == [NUMBER] * 2
        of_paused.close()  # the one that began first is over first
        raised_in("simpy.core")
        assert handled == [NUMBER] * 2
        ran(running)()
        assert handled == [NUMBER] * 3
    assert signal.getsignal(NUMBER) is own


def test_what_has_been_held_back_is_handled_at_the_end(handled: list[int]) -> None:
    with signals.signals_between_events(Clock()):
        raised_in("clustermodel.sim.coordinator")
    assert handled == [NUMBER]
