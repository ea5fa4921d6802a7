"""Plans of waiting jobs on equal nodes, and searches in them, for tests of slack-based backfilling."""

from collections.abc import Iterable, Sequence

from clustermodel.plans.one_pool import OnePool
from clustermodel.plans.pool_plans import Group
from clustermodel.plans.pools import Pools
from clustermodel.plans.slack_prices import ArrivingJob, SlackReservation, Weights
from clustermodel.plans.slack_search import Search
from clustermodel.policies.view import QueuedJob

EVERYTHING = Group(None, (1 << 128) - 1, (0,), [])
"""The group of all jobs."""


def reservation(job: QueuedJob, start: int, p: float, slack: int, weights: Weights) -> SlackReservation:
    """Return the reservation of a job for its estimate."""
    return SlackReservation(job, EVERYTHING, (start, ((0, job.nodes),)), job.estimate, p, slack, weights)


def arriving_job(nodes: int, length: int, favour: float) -> ArrivingJob:
    return ArrivingJob(QueuedJob(99, nodes, 0, length, 0, 0, 0), EVERYTHING, length, favour)


def plan_of(nodes: int, running: Iterable[tuple[int, int]], waiting: Sequence[SlackReservation]) -> OnePool:
    """Return a plan with running jobs, (end, nodes) each, and waiting ones, of which any may start earlier; now is 0."""
    plan = OnePool(Pools(nodes, []), may_overrun=False)
    for end, size in running:
        plan.reserve(0, end, ((0, size),))
    for held in waiting:
        plan.reserve(held.start, held.length, held.split)
    plan.unsettle()
    return plan


def search_in(plan: OnePool, waiting: Sequence[SlackReservation], arriving: ArrivingJob | None, weights: Weights) -> Search:
    return Search(plan.trials(waiting, arriving, 0), weights)
