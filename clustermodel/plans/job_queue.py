"""The queue: waiting jobs by id, in queue order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clustermodel.policies.view import QueuedJob


class JobQueue:
    """The jobs that wait for nodes, of the machine or of a partition."""

    __slots__ = ("_deletions", "jobs")

    def __init__(self) -> None:
        self.jobs: dict[int, QueuedJob] = {}
        """By id, in queue order."""
        self._deletions = 0  # since the dictionary was last rebuilt

    def join(self, jobs: list[QueuedJob]) -> None:
        """Sort jobs, at least one, and put them at their places in the queue."""
        waiting = self.jobs
        if len(jobs) > 1:
            jobs.sort(key=lambda job: job.queue_order)
        # Arriving jobs come last unless their priority is higher; jobs that have run before need not.
        in_order = not waiting or next(reversed(waiting.values())).queue_order < jobs[0].queue_order
        for job in jobs:
            waiting[job.id] = job
        if not in_order:
            self.arrange(sorted(waiting.values(), key=lambda job: job.queue_order))

    def leave(self, job_id: int) -> None:
        """Take a job out of the queue."""
        jobs = self.jobs
        del jobs[job_id]
        self._deletions += 1
        # A dictionary finds its first entry by walking over the gaps before it: a long queue that drains from the head would
        # take quadratic time.
        if self._deletions > len(jobs) // 8 + 64:
            self.arrange(jobs.values())

    def arrange(self, jobs: Iterable[QueuedJob]) -> None:
        """Put the waiting jobs into this order."""
        in_order = [(job.id, job) for job in jobs]
        self.jobs.clear()
        self.jobs.update(in_order)
        self._deletions = 0
