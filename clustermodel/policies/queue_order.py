"""Orders in which a policy goes through the queue of waiting jobs.

Named keys ("shortest"), the sorting criteria of Perkovic & Keleher 2000, table 4, or a key of your own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any, Final

import numpy as np

from clustermodel.policies.view import QueuedJob
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.validation import choice, require, require_number, require_whole

QueueOrder = Callable[[QueuedJob, int], Any]
"""Sorting key of the waiting jobs, given the job and the present in ticks; the smallest comes first."""

QUEUE_ORDERS: Final[dict[str, QueueOrder | None]] = {
    "arrival": None,
    "shortest": lambda job, _: (job.estimate, job.queue_order),
    "narrowest": lambda job, _: (job.nodes, job.queue_order),
    "widest": lambda job, _: (-job.nodes, job.queue_order),
}
"""Named orders; ``None`` keeps queue order, which is FCFS among equal priorities."""

SITE_ORDERS: Final = ("fair-share", "multifactor")
"""Orders that the site keeps for any policy (docs/site): ``easy:order=fair-share``."""
CRITERIA: Final = ("D", "P", "R", "1/L", "P/L", "R/L")
"""Sorting criteria of Perkovic & Keleher 2000, table 4; the largest value comes first."""
OWN_ORDERS: Final = ("shortest", "narrowest", "widest", "P", "R", "1/L", "P/L", "R/L")
"""Those of both in which queue order, so the site's, breaks ties only."""


def queue_order_of(policy: str, queue_order: str | QueueOrder) -> QueueOrder | None:
    """Return the sorting key that ``queue_order`` names or is; refuse what is neither, in the name of ``policy``."""
    if callable(queue_order):
        return queue_order
    return QUEUE_ORDERS[choice(f"{policy}: queue_order", queue_order, QUEUE_ORDERS, other=", or a callable")]


def in_order(jobs: Iterable[QueuedJob], order: QueueOrder | None, now: int) -> Iterable[QueuedJob]:
    """Return ``jobs``, which are in queue order, sorted by ``order``."""
    return jobs if order is None else sorted(jobs, key=lambda job: order(job, now))


class QueueSorter:
    """Sorts the queue in one run, by a key or by a criterion of Perkovic & Keleher 2000, table 4.

    D is the delay: how long a job has waited, seconds.  P is a priority drawn for each job when it is submitted, one of
    1/k, 2/k ... 1, for k ``levels``.  R is uniform in [0, 1), drawn again in each scheduling cycle.  L is the estimated run
    time, seconds.  The largest value comes first, ties in queue order; jobs of higher queue priority come first under every
    criterion.  The ``starvation_weight`` of a delay of one second is added to the criterion (section 4).
    """

    def __init__(self, order: str | QueueOrder, levels: int, starvation_weight: float, rng: np.random.Generator) -> None:
        by_criterion = order in CRITERIA
        self._key = None if by_criterion else queue_order_of("backfilling", order)
        self._numerator, _, self._per_length = str(order if by_criterion else "D").partition("/")
        self.draws_priorities = self._numerator == "P"  # else submissions need not be reported
        self.is_queue_order = self._key is None and self._numerator == "D"  # the longest delay first is queue order
        self._levels, self._weight, self._rng = levels, starvation_weight / TICKS_PER_SECOND, rng
        self._priority: dict[int, float] = {}  # id of a job in the system -> P

    def submitted(self, jobs: Sequence[QueuedJob]) -> None:
        """Draw the priorities of submitted jobs, which are in queue order."""
        if self.draws_priorities:
            drawn = self._rng.integers(1, self._levels, len(jobs), endpoint=True) / self._levels
            self._priority.update(zip((job.id for job in jobs), drawn.tolist(), strict=True))

    def left(self, job: QueuedJob) -> None:
        """Forget the priority of a job that has left the system."""
        self._priority.pop(job.id, None)

    def sort(self, jobs: Iterable[QueuedJob], now: int) -> Sequence[QueuedJob]:
        """Return jobs, given in queue order, in the order of one scheduling cycle."""
        jobs = list(in_order(jobs, self._key, now))
        if self._numerator == "D":
            return jobs
        values = [1.0] * len(jobs)
        if self.draws_priorities:
            values = [self._priority[job.id] for job in jobs]
        elif self._numerator == "R":
            values = self._rng.random(len(jobs)).tolist()
        if self._per_length:
            values = [value * TICKS_PER_SECOND / job.estimate for value, job in zip(values, jobs, strict=True)]
        if weight := self._weight:
            values = [value + weight * (now - job.submit) for value, job in zip(values, jobs, strict=True)]
        ranked = sorted(zip(values, jobs, strict=True), key=lambda pair: (-pair[1].priority, -pair[0]))
        return [job for _, job in ranked]


def require_order(policy: str, order: object, levels: object, starvation_weight: object) -> None:
    """Refuse an order that does not exist, levels below 1, and a weight that is negative or has no criterion to be added to."""
    require_whole(f"{policy}: levels", levels, at_least=1)
    name = f"{policy}: starvation_weight"
    weight = require_number(name, starvation_weight, "a finite number >= 0", lambda value: 0 <= value < inf)
    if isinstance(order, str) and order in CRITERIA:
        return
    if not callable(order):
        choice(f"{policy}: order", order, (*CRITERIA, *QUEUE_ORDERS), other=", or a callable")
    require(not weight, name, weight, f"it is added to one of {', '.join(CRITERIA)}", f" with order {order!r}")
