"""The worked example of Talby & Feitelson 1999, long version, section 4.4, figures 6 and 7, by the policy's own code.

Four processors.  J1 (2 processors, 2 s) and J2 (1 processor, 5 s) are to start now; J3 (2 processors, 2 s) arrives.

S1: J3 starts at 2 s.  S2: J3 starts now and J2 at 2 s.  S3: J3 starts now and J1 at 2 s.
"""

from math import inf

import numpy as np
import pytest

from clustermodel import Machine, Setup
from clustermodel.plans.slack_prices import (
    SlackReservation,
    Weights,
    cost,
    favour,
    price_of_start,
    weight,
)
from clustermodel.policies.slack import Slack
from clustermodel.policies.slack_run import SlackRun
from clustermodel.policies.view import QueuedJob
from clustermodel.ticks import TICKS_PER_SECOND
from tests.slack_plans import arriving_job, plan_of, reservation, search_in

S = TICKS_PER_SECOND
J1, J2, J3 = (QueuedJob(n, nodes, 0, length * S, 0, 0, 0) for n, nodes, length in ((1, 2, 2), (2, 1, 5), (3, 2, 2)))

# alpha_u, alpha_p; (slack, p) of J1 and J2, p of J3; prices of S1, S2, S3; the cheapest
ROWS = [
    (1, 1, (10, 0.5), (10, 0.75), 0.5, (4, 3, 4), "S2"),
    (1, 1, (10, 0.15), (10, 0.9), 0.3, (4, 6, 2), "S3"),
    (1, 1, (5, 0.15), (10, 0.9), 0.3, (4, 6, 4), "S1"),
    (1, 1, (1, 0.15), (1, 0.9), 0.3, (4, inf, inf), "S1"),
    (0.5, 1, (10, 0.5), (10, 0.75), 0.5, (2.828, 3, 2.828), "S1"),
    # Printed are 4, 2.88, 3.17 and S1: the prices of alpha_p = 1/3, and not the cheapest of them (papers/README.md).
    (1, 0.5, (10, 0.15), (10, 0.9), 0.3, (4, 3.464, 2.828), "S3"),
    (1, 1 / 3, (10, 0.15), (10, 0.9), 0.3, (4, 2.88, 3.17), "S2"),
]
STARTS = {"S1": (0, 0, 2), "S2": (0, 2, 0), "S3": (2, 0, 0)}
every_row = pytest.mark.parametrize(("u", "p", "first", "second", "arriving_p", "prices", "best"), ROWS)


def waiting(job: QueuedJob, slack: int, p: float, weights: Weights) -> SlackReservation:
    """A job that had 10 s of slack, and has been moved until ``slack`` was left and its start is now."""
    one = reservation(job, (slack - 10) * S, p, 10 * S, weights)
    one.move_to(0, weights)
    assert one.slack == slack * S
    return one


def run_with(u: float, p: float, first: tuple[int, float], second: tuple[int, float], arriving_p: float) -> SlackRun:
    policy = Slack(heuristic="optimal", awt=1.0, alpha_u=u, alpha_p=p, user_priority=lambda _: min(1.0, 3 * arriving_p - 0.5))
    machine = Machine(nodes=4)
    run = policy.start(Setup(4, True, np.random.default_rng(1), False, machine))
    weights = Weights(u=u, p=p)
    run.reservations = [waiting(J1, *first, weights), waiting(J2, *second, weights)]
    run.plan = plan_of(4, [], run.reservations)
    return run


@every_row
def test_price_by_price(
    u: float,
    p: float,
    first: tuple[int, float],
    second: tuple[int, float],
    arriving_p: float,
    prices: tuple[float, ...],
    best: str,
) -> None:
    weights = Weights(u=u, p=p)
    run = run_with(u, p, first, second, arriving_p)
    one, two = run.reservations

    def cost_of_two_seconds(nodes: int, slack: float, priority: float) -> float:
        return (
            inf if slack < 2 else cost(weight(nodes, priority, 10, slack, weights), 2, favour(arriving_p, weights), weights.t)
        )

    by_formula = (
        price_of_start(2, 2, weights),
        price_of_start(2, 0, weights) + cost_of_two_seconds(1, *second),
        price_of_start(2, 0, weights) + cost_of_two_seconds(2, *first),
    )
    arriving = arriving_job(2, 2 * S, favour(arriving_p, weights))
    plan = plan_of(4, [], [one, two])
    by_search = [
        found.price
        if (found := search_in(plan, [one, two], arriving, weights).cheapest([slot * S], order)) is not None
        else inf
        for slot, order in ((2, [one, two]), (0, [one, two]), (0, [two, one]))
    ]
    assert by_search == pytest.approx(by_formula, rel=1e-11)
    assert by_formula == pytest.approx(prices, abs=0.0051 if p == 1 / 3 else 0.0005)


@every_row
def test_the_schedule_that_is_chosen(
    u: float,
    p: float,
    first: tuple[int, float],
    second: tuple[int, float],
    arriving_p: float,
    prices: tuple[float, ...],
    best: str,
) -> None:
    run = run_with(u, p, first, second, arriving_p)
    run.insert(J3, 0)
    starts = {one.job.id: one.start // S for one in run.reservations}
    assert (starts[1], starts[2], starts[3]) == STARTS[best]
