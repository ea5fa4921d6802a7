"""Jobs as policies see them."""

from clustermodel import QueuedJob


def queued(number: int, nodes: int = 1, memory: int = 0, *, estimate: int = 1) -> QueuedJob:
    return QueuedJob(number, nodes, 0, estimate, -1, -1, 0, memory)
