"""A checkpoint store whose transfers take constant times; it takes a limited number of tasks at a time.

The limit is Q of Zhang et al. 2003, section 5.4.  :mod:`clustermodel.sim.shared_store` has the store with a bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, nullcontext

from simpy import Container, Event

from clustermodel.sim.events import Clock

Interval = Callable[[], AbstractContextManager[object]]
"""Context manager around a time interval; also exited on interrupt."""


class LimitedStore:
    """Room for the tasks that are being written or read.

    Args:
        env: the simulation.
        max_tasks: Q, the most tasks at a time; ``None`` is no limit.
    """

    def __init__(self, env: Clock, max_tasks: int | None) -> None:
        self._env = env
        self.max_tasks = max_tasks
        self._room = None if not max_tasks else Container(env, capacity=max_tasks, init=max_tasks)

    def transfer(
        self, tasks: int, ticks: int, *, queueing: Interval = nullcontext, moving: Interval = nullcontext
    ) -> Generator[Event, object, None]:
        """Write or read ``tasks`` in ``ticks``; an interrupt gives the room back.

        A gang that has more tasks than the store takes at a time is moved in several rounds, one after the other, of as many
        tasks as it takes.  Gangs that wait for room are served in the order in which they came; one of which a round is over
        comes last again.

        Args:
            tasks: how many.
            ticks: how long the tasks of a round take together.
            queueing: brackets the time before there is room.
            moving: brackets the time in which tasks are moved.
        """
        most = self.max_tasks or tasks
        for left in range(tasks, 0, -most):
            room = yield from self._wait(min(left, most), queueing)
            try:
                with moving():
                    yield self._env.timeout(ticks)
            finally:
                self._give_back(room)

    def _wait(self, tasks: int, queueing: Interval) -> Generator[Event, object, int]:
        if self._room is None:
            return 0
        request = self._room.get(tasks)
        try:
            with queueing():
                yield request
        except BaseException:
            if request.triggered:
                self._give_back(tasks)
            else:
                request.cancel()
            raise
        return tasks

    def _give_back(self, tasks: int) -> None:
        if self._room is not None and tasks:
            self._room.put(tasks)
