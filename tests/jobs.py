"""Jobs as policies see them."""

from clustermodel import QueuedJob, RunningJob


def queued(number: int, nodes: int = 1, memory: int = 0, *, estimate: int = 1) -> QueuedJob:
    return QueuedJob(number, nodes, 0, estimate, -1, -1, 0, memory)


def running(job: QueuedJob, length: int) -> RunningJob:
    """Return a gang that has run on the first nodes since 0."""
    return RunningJob(job, 0, (0, job.nodes), job.nodes, length)
