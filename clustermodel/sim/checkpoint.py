"""The checkpoint store: the file system that takes a limited number of tasks at a time (002, section 5.4, parameter Q)."""

from __future__ import annotations

from collections.abc import Generator

from simpy import Container, Event

from clustermodel.sim.kernel import Clock


class CheckpointStore:
    """Room for the tasks that are being written or read.

    Args:
        env: the simulation.
        max_tasks: Q, the most tasks at a time; ``None`` is no limit.
    """

    def __init__(self, env: Clock, max_tasks: int | None) -> None:
        self._env = env
        self._room = None if not max_tasks else Container(env, capacity=max_tasks, init=max_tasks)

    def transfer(self, tasks: int, ticks: int) -> Generator[Event, object, None]:
        """Hold room for ``tasks`` while they are written or read for ``ticks``; an interrupt gives the room back."""
        if self._room is None:
            yield self._env.timeout(ticks)
            return
        assert self._room.level >= tasks, "more tasks migrate in a slice than the store takes"
        yield self._room.get(tasks)
        try:
            yield self._env.timeout(ticks)
        finally:
            self._room.put(tasks)
