"""Slack-based backfilling: the reservation of a waiting job, with its slack, and the orders in which jobs are put back.

Sections are those of Talby & Feitelson 1999, long version.  Times in ticks.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Final, Protocol

from clustermodel.schedule.slack_formulas import Weights, to_digits, weight
from clustermodel.ticks import TICKS_PER_SECOND, to_seconds

OPTIMAL: Final = "optimal"
"""The name of the heuristic that tries every order."""


class SubmittedJob(Protocol):
    """What the search needs to know of a waiting job."""

    @property
    def id(self) -> int:
        """The job's number."""

    @property
    def submit(self) -> int:
        """Submission time, ticks."""

    @property
    def nodes(self) -> int:
        """Number of nodes it asks for."""

    @property
    def estimate(self) -> int:
        """The user's estimate, ticks."""


class SlackReservation:
    """The reservation of a waiting job, which may move to a later start as far as its slack allows.

    Args:
        job: that waits.
        start: t_e, ticks.
        p: its priority.
        initial_slack: s0, ticks.
        weights: of the price.
    """

    __slots__ = ("by_start", "initial_slack", "job", "latest", "length", "nodes", "p", "start", "weight")

    def __init__(self, job: SubmittedJob, start: int, p: float, initial_slack: int, weights: Weights) -> None:
        self.job = job
        self.nodes = job.nodes
        self.length = job.estimate
        self.p = p
        self.initial_slack = initial_slack
        self.latest = start + initial_slack
        """Latest start, ticks: t_e + s; a schedule with a later one costs infinity."""
        self.move_to(start, weights)

    @property
    def slack(self) -> int:
        """s, ticks: by how much the job may still be delayed."""
        return self.latest - self.start

    @property
    def end(self) -> int:
        """Start plus estimate, ticks."""
        return self.start + self.length

    @property
    def arrival(self) -> tuple[int, int]:
        """Sorting key: order of submission."""
        return self.job.submit, self.job.id

    def move_to(self, start: int, weights: Weights) -> None:
        """Move the job to another start; if that is later than its latest start, no further delay is allowed."""
        self.start = start
        self.by_start = (start, *self.arrival)
        """Sorting key of the plan: ascending start, then order of submission."""
        self.latest = max(self.latest, start)
        s0, s = to_seconds(self.initial_slack), to_seconds(self.latest - start)
        self.weight = weight(self.nodes, self.p, s0, s, weights)
        """What multiplies t_i^alpha_t in the cost of a move, before the arriving job's priority divides it."""


def by_start(held: SlackReservation) -> tuple[int, int, int]:
    """Sorting key of the plan: ascending start, then order of submission."""
    return held.by_start


def _by_arrival(held: SlackReservation) -> tuple[int, int]:
    return held.arrival


def _by_utilization(held: SlackReservation) -> tuple[int, int, int]:
    return -held.nodes * held.length, *held.arrival


def _by_priority(held: SlackReservation) -> tuple[float, int, int]:
    return -to_digits(held.p), *held.arrival


def _by_cost(held: SlackReservation) -> tuple[float, int, int]:
    # The cost of a delay by one second is the weight, up to a common factor, and infinite without a second of slack.
    return -inf if held.slack < TICKS_PER_SECOND else -to_digits(held.weight), *held.arrival


HEURISTICS: Final[dict[str, Callable[[SlackReservation], Any] | None]] = {
    "ast": by_start,
    "aat": _by_arrival,
    "du": _by_utilization,
    "dc": _by_cost,
    "dp": _by_priority,
    OPTIMAL: None,
}
"""In which order jobs are put back (section 4.6): ascending scheduled time, ascending arrival time, descending utilization,
cost or priority; equals in order of submission.  ``None`` tries every order.

These are functions with names, since a compiled lambda cannot be copied."""
