"""Orders in which a policy goes through the queue of waiting jobs.

Named keys ("shortest"), the sorting criteria of Perkovic & Keleher 2000, table 4, or a key of your own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

import numpy as np

from clustermodel.errors import SpecificationError
from clustermodel.policies.view import QueuedJob
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import choice, require_number, require_whole

QueueOrder = Callable[[QueuedJob, int], Any]
"""Sorting key of the waiting jobs, given the job and the present in ticks; the smallest comes first."""

QUEUE_ORDERS: Final[dict[str, QueueOrder | None]] = {
    "arrival": None,
    "shortest": lambda job, _: (job.estimate, job.queue_order),
    "narrowest": lambda job, _: (job.nodes, job.queue_order),
    "widest": lambda job, _: (-job.nodes, job.queue_order),
}
"""Named orders; ``None`` keeps queue order, which is FCFS among equal priorities."""

CRITERIA: Final = ("D", "P", "R", "1/L", "P/L", "R/L")
"""Sorting criteria of Perkovic & Keleher 2000, table 4; the largest value comes first."""


def queue_order_of(policy: str, queue_order: str | QueueOrder) -> QueueOrder | None:
    """Return the sorting key that ``queue_order`` names or is.

    Raises:
        SpecificationError: ``queue_order`` is neither a name nor a callable.
    """
    if callable(queue_order):
        return queue_order
    return QUEUE_ORDERS[choice(f"{policy}: queue_order", queue_order, QUEUE_ORDERS, other=", or a callable")]


def in_order(jobs: Iterable[QueuedJob], order: QueueOrder | None, now: int) -> Iterable[QueuedJob]:
    """Return ``jobs``, which are in queue order, sorted by ``order``; ``None`` leaves them in queue order."""
    return jobs if order is None else sorted(jobs, key=lambda job: order(job, now))


class QueueSorter(Protocol):
    """Sorts the queue in one run of :class:`~clustermodel.policies.backfilling.scheduler.Backfilling`."""

    def submitted(self, jobs: Sequence[QueuedJob]) -> None:
        """Note submitted jobs, in queue order."""

    def left(self, job: QueuedJob) -> None:
        """Forget a job that has left the system."""

    def sort(self, jobs: Iterable[QueuedJob], now: int) -> Sequence[QueuedJob]:
        """Return jobs, given in queue order, in the order of one scheduling cycle."""


class KeySorter:
    """Sorts by a key that depends on the job and the present alone."""

    def __init__(self, key: QueueOrder | None) -> None:
        self._key = key

    def submitted(self, jobs: Sequence[QueuedJob]) -> None:
        """Do nothing: the order does not depend on earlier cycles."""

    def left(self, job: QueuedJob) -> None:
        """Do nothing: nothing is kept of a job."""

    def sort(self, jobs: Iterable[QueuedJob], now: int) -> Sequence[QueuedJob]:
        """Return the jobs, the smallest key first."""
        return list(in_order(jobs, self._key, now))


class Criterion:
    """A criterion of Perkovic & Keleher 2000, table 4: the largest value first, ties in queue order.

    D is the delay: how long a job has waited, seconds.  P is a priority drawn for each job when it is submitted, one of
    1/k, 2/k ... 1.  R is uniform in [0, 1), drawn again in each scheduling cycle.  L is the estimated run time, seconds.

    Jobs of higher queue priority come first under every criterion.

    Args:
        formula: one of :data:`CRITERIA`.
        levels: k, how many priorities there are.
        starvation_weight: of a delay of one second, added to the criterion against starvation (section 4).
        rng: from which P and R are drawn.
    """

    def __init__(self, formula: str, levels: int, starvation_weight: float, rng: np.random.Generator) -> None:
        self._numerator, _, self._per_length = formula.partition("/")
        self._levels = levels
        self._weight = starvation_weight
        self._rng = rng
        self._priority: dict[int, float] = {}

    def submitted(self, jobs: Sequence[QueuedJob]) -> None:
        """Draw the priorities of submitted jobs."""
        if self._numerator == "P":
            drawn = self._rng.integers(1, self._levels, len(jobs), endpoint=True) / self._levels
            self._priority.update(zip((job.id for job in jobs), drawn.tolist(), strict=True))

    def left(self, job: QueuedJob) -> None:
        """Forget a job's priority."""
        self._priority.pop(job.id, None)

    def sort(self, jobs: Iterable[QueuedJob], now: int) -> Sequence[QueuedJob]:
        """Return the jobs, the largest value first."""
        jobs = list(jobs)
        if self._numerator == "D":
            return jobs  # the longest delay first is queue order
        values: list[float]
        if self._numerator == "P":
            values = [self._priority[job.id] for job in jobs]
        elif self._numerator == "R":
            values = self._rng.random(len(jobs)).tolist()
        else:
            values = [1.0] * len(jobs)
        if self._per_length:
            values = [value * TICKS_PER_SECOND / job.estimate for value, job in zip(values, jobs, strict=True)]
        if weight := self._weight / TICKS_PER_SECOND:
            values = [value + weight * (now - job.submit) for value, job in zip(values, jobs, strict=True)]
        ranked = sorted(zip(values, jobs, strict=True), key=lambda pair: (-pair[1].priority, -pair[0]))
        return [job for _, job in ranked]


def require_order(policy: str, order: object, levels: object, starvation_weight: object) -> None:
    """Check the order of a queue: one of :data:`CRITERIA` or :data:`QUEUE_ORDERS`, or a key of your own.

    Raises:
        SpecificationError: ``order`` is neither, ``levels`` is no positive whole number, or the weight negative, or given
            although the order is not a criterion.
    """
    require_whole(f"{policy}: levels", levels, at_least=1)
    weight = require_number(
        f"{policy}: starvation_weight", starvation_weight, "a finite number >= 0", lambda value: 0 <= value < float("inf")
    )
    if isinstance(order, str) and order in CRITERIA:
        return
    if not callable(order):
        choice(f"{policy}: order", order, (*CRITERIA, *QUEUE_ORDERS), other=", or a callable")
    if weight:
        raise SpecificationError(
            f"{policy}: starvation_weight: {weight} is not allowed with order {order!r}; "
            f"it is added to one of {', '.join(CRITERIA)}"
        )


def draws_numbers(order: str | QueueOrder) -> bool:
    """Return whether the order is a criterion with P or R, which are drawn."""
    return isinstance(order, str) and order in CRITERIA and order[0] in "PR"


def make_sorter(order: str | QueueOrder, levels: int, starvation_weight: float, rng: np.random.Generator) -> QueueSorter:
    """Return a sorter of the queue for one run, by an order that :func:`require_order` allows."""
    if isinstance(order, str) and order in CRITERIA:
        return Criterion(order, levels, starvation_weight, rng)
    return KeySorter(order if callable(order) else QUEUE_ORDERS[order])
