"""Rules that stand between the jobs and the policy: which jobs may join the queue, and when, and in which order they stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from clustermodel.policies.view import QueuedJob, RunningJob
from clustermodel.sim.job_process import JobInSystem


class Rule:
    """One rule of a run; the coordinator asks each in turn, and knows none of them.  This one forbids and changes nothing."""

    rejects_late: ClassVar[bool] = False
    """Whether it may reject jobs that have been in the system."""
    changed: bool = False
    """Whether the policy is to be asked at the present instant because of it."""

    def admits(self, job: JobInSystem) -> bool:
        """Return whether a job that is submitted can ever start."""
        return True

    def admits_later(self, job: JobInSystem) -> bool:
        """Return whether a job can still start that rules held until now."""
        return True

    def lets_start(self, job: JobInSystem) -> bool:
        """Return whether a waiting job can start at any time from now on."""
        return True

    def hopeless(self, waiting: list[JobInSystem]) -> list[JobInSystem]:
        """Return which waiting jobs will never start, on an idle machine at which nothing else happens."""
        return []

    @property
    def is_over(self) -> bool:
        """Whether nothing that it does can let a job start any more that waits on an idle machine."""
        return True

    def gave_up(self) -> None:
        """Note that a waiting job has been rejected, or aborted, so that others may start now."""

    def saved_in_time(self, gang: RunningJob, suspends: bool) -> bool:
        """Return whether a gang that is checkpointed, or suspended, from now on leaves its nodes in time."""
        return True

    def holds(self, job: JobInSystem) -> bool:
        """Return whether a job that has been admitted must wait before it joins the queue."""
        return False

    def started(self, job: JobInSystem) -> None:
        """Note that a job has got its nodes."""

    def began(self, job: int) -> list[JobInSystem]:
        """Note that a job has begun; return the held jobs that join the queue now, as in what follows."""
        return []

    def left(self, job: JobInSystem) -> list[JobInSystem]:
        """Note that a job has left the system."""
        return []

    def ended(self, job: int, *, ok: bool) -> tuple[list[JobInSystem], list[JobInSystem]]:
        """Note how a job has ended, or that it was rejected; return also the held jobs that never will join the queue."""
        return [], []

    def before_cycle(self, submitted: list[QueuedJob], requeued: list[QueuedJob]) -> list[JobInSystem]:
        """Arrange the queue, which some jobs have joined; return the waiting jobs that cannot start any more."""
        return []

    def note_eligible(self, waiting: Mapping[int, QueuedJob], now: int) -> bool:
        """Note which nodes each waiting job may have if it starts now; return whether that changes for all."""
        return False

    def after_instant(self, *, cycled: bool) -> None:
        """Note what is so from now on, perhaps after a scheduling cycle."""

    def due(self, *, cycled: bool) -> list[JobInSystem]:
        """Return the held jobs that join the queue as time has passed, or for idle nodes."""
        return []
