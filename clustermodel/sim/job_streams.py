"""Job-stream processes: each submits the jobs of one source at their times; several streams merge at the coordinator.

A job that follows another one has a process of its own: it waits for the other job's process to end, then for the think time,
and submits the job.  So a stream without feedback costs nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from simpy import Event, Process, Timeout

from clustermodel.job import JobRow
from clustermodel.sim.events import Clock
from clustermodel.workload.streams import Follower

if TYPE_CHECKING:
    from clustermodel.sim.coordinator import Coordinator


def submit_jobs(
    env: Clock, rows: Iterator[JobRow], submit: Callable[[JobRow], object], finished: Callable[[], None]
) -> Generator[Event, object, None]:
    """Submit each row at its time; rows must be in order of submission."""
    now = env.now
    for row in rows:
        if row.submit > now:
            yield Timeout(env, row.submit - now)
            now = row.submit
        submit(row)
    finished()


class Feedback:
    """Submits the jobs of a stream, and after the completion of each those that follow it.

    A job that was killed, aborted or rejected has completed too.  With a think time of zero, the next job is submitted at the
    time of the completion, so the same scheduling cycle sees both.
    """

    def __init__(
        self,
        env: Clock,
        followers: Mapping[int, Sequence[Follower]],
        coordinator: Coordinator,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._env, self._followers, self._coordinator, self._progress = env, followers, coordinator, progress

    def submit(self, row: JobRow) -> None:
        """Submit a job, and let its followers wait for its completion."""
        life = self._coordinator.submit(row)
        for follower in self._followers.get(row.id, ()):
            Process(self._env, self._follow(life, follower))

    def _follow(self, life: Process | None, follower: Follower) -> Generator[Event, object, None]:
        if life is not None:
            yield life
        self._coordinator.stream_opened()
        if follower.think:
            yield Timeout(self._env, follower.think)
        self.submit(follower.row._replace(submit=self._env.now))
        self._coordinator.stream_finished()
        if self._progress is not None:
            self._progress(1)
