"""What sim/events.py uses of SimPy that SimPy does not document."""

import inspect

from simpy import Environment, Event, Process
from simpy.events import NORMAL, PENDING


def test_events_and_processes_have_the_attributes_that_the_clock_and_grants_set() -> None:
    env = Environment()
    event = Event(env)
    assert (event._value, event.callbacks, env._now) == (PENDING, [], 0)
    process = env.process(iter_of(event))
    assert event.callbacks == []
    env.step()
    assert (process._target, event.callbacks) == (event, [process._resume])
    event._ok, event._value = True, None
    env.schedule(event)
    assert env._queue[0][:2] == (0, NORMAL)
    env.run()
    assert process.processed
    assert {name for name in vars(process) if name not in vars(event)} == {"_generator", "_target"}
    assert list(inspect.signature(Process._resume).parameters) == ["self", "event"]


def iter_of(event: Event):  # type: ignore[no-untyped-def]
    yield event
