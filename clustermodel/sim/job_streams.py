"""Job-stream processes: each submits the jobs of one source at their times; several streams merge at the coordinator."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from simpy import Event, Timeout

from clustermodel.job import JobRow
from clustermodel.sim.events import Clock


def submit_jobs(
    env: Clock, rows: Iterator[JobRow], submit: Callable[[JobRow], None], finished: Callable[[], None]
) -> Generator[Event, object, None]:
    """Submit each row at its time; rows must be in order of submission.

    Args:
        env: the simulation.
        rows: the jobs, read one at a time.
        submit: called at each submission.
        finished: called once, after the last one.
    """
    now = env.now
    for row in rows:
        if row.submit > now:
            yield Timeout(env, row.submit - now)
            now = row.submit
        submit(row)
    finished()
