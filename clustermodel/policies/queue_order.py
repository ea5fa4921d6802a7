"""Orders in which a policy goes through the queue of waiting jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from clustermodel.errors import SpecificationError, did_you_mean
from clustermodel.policies.base import QueuedJob

QueueOrder = Callable[[QueuedJob, int], Any]
"""Sorting key of the waiting jobs, given the job and the present in ticks; the smallest comes first."""

QUEUE_ORDERS: Final[dict[str, QueueOrder | None]] = {
    "arrival": None,
    "shortest": lambda job, _: (job.estimate, job.queue_order),
    "narrowest": lambda job, _: (job.nodes, job.queue_order),
    "widest": lambda job, _: (-job.nodes, job.queue_order),
}
"""Named orders; ``None`` keeps queue order, which is FCFS among equal priorities."""


def queue_order_of(policy: str, queue_order: str | QueueOrder) -> QueueOrder | None:
    """Return the sorting key that ``queue_order`` names or is.

    Raises:
        SpecificationError: it is neither a name nor a callable.
    """
    if isinstance(queue_order, str) and queue_order in QUEUE_ORDERS:
        return QUEUE_ORDERS[queue_order]
    if callable(queue_order):
        return queue_order
    hint = did_you_mean(queue_order, QUEUE_ORDERS) if isinstance(queue_order, str) else ""
    raise SpecificationError(
        f"{policy}: queue_order: {queue_order!r} is not allowed{hint}; "
        f"it must be one of {', '.join(QUEUE_ORDERS)}, or a callable"
    )


def in_order(jobs: Iterable[QueuedJob], order: QueueOrder | None, now: int) -> Iterable[QueuedJob]:
    """Return ``jobs``, which are in queue order, sorted by ``order``, or as they are where it is ``None``."""
    return jobs if order is None else sorted(jobs, key=lambda job: order(job, now))
