"""Periodic checkpoints: Young's, Daly's and the exact interval, completion times, and the bound of a shared store."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from clustermodel.errors import SpecificationError
from clustermodel.theory.checkpointing import (
    CheckpointingJobs,
    checkpoint_waste,
    daly_interval_s,
    expected_completion_s,
    jobs_at_once,
    optimal_interval_s,
    shared_store_bound,
    young_interval_s,
)

HOUR = 3600.0
MINUTE = 60.0
CIELO_NODES = 17_784
CIELO_JOB_NODES = (1024, 256, 2048, 1875)
CIELO_RUN_H = (262.4, 64.0, 128.0, 157.2)
CIELO_WORK = (0.66, 0.055, 0.155, 0.12)
CIELO_CHECKPOINT_S = (1310.7, 378.9, 5734.4, 1275.0)  # at 40 GB/s


def cielo(bandwidth_gb_s: float, shares: tuple[float, ...]) -> list[CheckpointingJobs]:
    jobs = jobs_at_once(CIELO_NODES, CIELO_JOB_NODES, shares)
    return [
        CheckpointingJobs(nodes=nodes, jobs=count, checkpoint_s=checkpoint_s * 40 / bandwidth_gb_s)
        for nodes, count, checkpoint_s in zip(CIELO_JOB_NODES, jobs, CIELO_CHECKPOINT_S, strict=True)
    ]


PAPERS_SHARES = tuple(work / hours for work, hours in zip(CIELO_WORK, CIELO_RUN_H, strict=True))


@pytest.mark.parametrize(
    ("interval", "mtbf_h", "hours", "percent"),
    [
        (young_interval_s, 24, 2.191, 9.24),
        (daly_interval_s, 24, 2.125, 9.23),
        (optimal_interval_s, 24, 2.125, 9.23),
        (young_interval_s, 2, 0.632, 31.99),
        (daly_interval_s, 2, 0.568, 31.87),
        (optimal_interval_s, 2, 0.568, 31.87),
    ],
)
def test_intervals_and_waste_of_one_job(
    interval: Callable[[float, float], float], mtbf_h: float, hours: float, percent: float
) -> None:
    """Checkpoints and restarts of 0.1 h."""
    tau = interval(0.1 * HOUR, mtbf_h * HOUR)
    assert round(tau / HOUR, 3) == hours
    waste = checkpoint_waste(tau, checkpoint_s=0.1 * HOUR, mtbf_s=mtbf_h * HOUR, restart_s=0.1 * HOUR)
    assert round(100 * waste, 2) == percent


@pytest.mark.parametrize(("mtbf_min", "printed"), [(24 * 60, "117"), (6 * 60, "57"), (15, "9.1")])
def test_dalys_interval_is_that_of_his_figures(mtbf_min: float, printed: str) -> None:
    """Daly 2006, figures 3 to 5: checkpoints of 5 minutes."""
    minutes = daly_interval_s(5 * MINUTE, mtbf_min * MINUTE) / MINUTE
    assert f"{minutes:.{len(printed.partition('.')[2])}f}" == printed


def test_daly_has_the_mean_time_between_failures_where_a_checkpoint_takes_twice_as_long() -> None:
    assert daly_interval_s(200, 100) == 100
    assert daly_interval_s(199.999999, 100) == pytest.approx(200 * (1 + 1 / 3 + 1 / 9) - 200, rel=1e-6)


@pytest.mark.parametrize("cost", [1e-9, 1e-4, 0.01, 0.3, 1.0, 5.0, 900.0])
def test_the_exact_interval_satisfies_its_equation(cost: float) -> None:
    share = optimal_interval_s(cost * 1e4, 1e4) / 1e4
    assert share + math.log1p(-share) == pytest.approx(-cost, rel=1e-9) if share < 1 else cost > 30


@pytest.mark.parametrize("mtbf_s", [500.0, 5_000.0, 100_000.0])
def test_no_interval_wastes_less_than_the_exact_one(mtbf_s: float) -> None:
    def waste(tau: float) -> float:
        return checkpoint_waste(tau, checkpoint_s=100, mtbf_s=mtbf_s, restart_s=60, downtime_s=300)

    best = optimal_interval_s(100, mtbf_s)
    found = minimize_scalar(waste, bounds=(1, 5 * mtbf_s), method="bounded", options={"xatol": 1e-6})
    assert found.x == pytest.approx(best, rel=1e-4)
    assert waste(best) <= min(waste(daly_interval_s(100, mtbf_s)), waste(young_interval_s(100, mtbf_s)), found.fun + 1e-12)


def test_checkpoints_at_the_end_give_dalys_completion_time() -> None:
    costs = {"checkpoint_s": 50.0, "mtbf_s": 3000.0, "restart_s": 20.0, "downtime_s": 100.0}
    with_last = expected_completion_s(10_000, 1000, **costs, last_checkpoint=True)
    assert with_last == pytest.approx(10_000 / (1 - checkpoint_waste(1000, **costs)), rel=1e-12)
    without = expected_completion_s(10_000, 1000, **costs)
    segment = (3000 + 100) * math.exp(20 / 3000)
    assert with_last - without == pytest.approx(segment * (math.exp(1050 / 3000) - math.exp(1000 / 3000)), rel=1e-9)


def test_a_job_shorter_than_the_interval_writes_no_checkpoint() -> None:
    one = expected_completion_s(500, 1000, checkpoint_s=50, mtbf_s=3000, restart_s=20, first_restart_s=0)
    assert one == pytest.approx(3000 * math.expm1(500 / 3000), rel=1e-12)


def test_rare_failures_leave_the_work_and_its_checkpoints() -> None:
    assert expected_completion_s(1000, 300, checkpoint_s=10, mtbf_s=1e10) == pytest.approx(1030, rel=1e-6)


def test_an_interval_that_never_gets_through_takes_for_ever() -> None:
    assert expected_completion_s(1e6, 1e6, checkpoint_s=0, mtbf_s=1) == math.inf
    assert checkpoint_waste(1e6, checkpoint_s=0, mtbf_s=1) == 1


def test_completion_times_agree_with_failures_drawn_at_random() -> None:
    """A loop over failures, in which nothing of the formula is used; also a shorter last segment and another first restart."""
    rng = np.random.default_rng(20)
    runs, mtbf_s, checkpoint_s, restart_s, downtime_s = 20_000, 1000.0, 40.0, 70.0, 25.0
    total = 0.0
    for length, restart in ((340.0, 0.0), (340.0, restart_s), (150.0, restart_s)):
        unfinished, prefix = runs, 0.0
        while unfinished:
            failure = rng.exponential(mtbf_s, unfinished)
            failed = failure < prefix + length
            total += np.where(failed, failure + downtime_s, prefix + length).sum()
            unfinished, prefix = int(failed.sum()), restart
    expected = expected_completion_s(
        750, 300, checkpoint_s=checkpoint_s, mtbf_s=mtbf_s, restart_s=restart_s, downtime_s=downtime_s, first_restart_s=0
    )
    assert total / runs == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(("bandwidth_gb_s", "mtbf_h", "bound"), [(40, 8, 0.1066), (160, 1, 0.1549)])
def test_the_bound_of_herault_et_al(bandwidth_gb_s: float, mtbf_h: float, bound: float) -> None:
    """Cielo.  Numbers of jobs as in the authors' program: shares of the work over the run time of a job, scaled to N nodes."""
    found = shared_store_bound(CIELO_NODES, mtbf_h * HOUR, cielo(bandwidth_gb_s, PAPERS_SHARES))
    assert round(found.waste, 4) == bound
    assert found.multiplier == 0
    assert found.io_pressure == found.unlimited_io_pressure < 1


def test_numbers_of_jobs_fill_the_machine() -> None:
    assert jobs_at_once(100, (10, 5), (3, 1)) == (7.5, 5.0)
    papers = jobs_at_once(CIELO_NODES, CIELO_JOB_NODES, PAPERS_SHARES)
    assert np.dot(papers, CIELO_JOB_NODES) == pytest.approx(CIELO_NODES)
    assert [round(jobs, 2) for jobs in papers] == [8.17, 11.16, 1.97, 1.35]


def test_one_class_without_contention_has_youngs_period() -> None:
    found = shared_store_bound(100, HOUR, [CheckpointingJobs(nodes=50, jobs=1, checkpoint_s=10, restart_s=0)])
    period = young_interval_s(10, 2 * HOUR)
    assert found.periods_s == pytest.approx((period,))
    assert found.class_waste == pytest.approx((2 * 10 / period,))
    assert found.waste == pytest.approx(10 / period)  # half of the nodes are idle


def test_where_the_store_is_too_slow_its_limit_binds_and_no_other_periods_do_better() -> None:
    classes = cielo(40, PAPERS_SHARES)
    found = shared_store_bound(CIELO_NODES, HOUR, classes)
    assert found.unlimited_io_pressure > 1
    assert found.io_pressure == pytest.approx(1, abs=1e-9)
    assert found.multiplier > 0

    def waste(logarithms: np.ndarray) -> float:
        return sum(
            one.jobs * one.nodes / CIELO_NODES
            * (one.checkpoint_s / p + one.nodes / (HOUR * CIELO_NODES) * (p / 2 + one.checkpoint_s))
            for one, p in zip(classes, np.exp(logarithms), strict=True)
        )  # fmt: skip

    def slack(logarithms: np.ndarray) -> float:
        return 1 - sum(one.jobs * one.checkpoint_s / p for one, p in zip(classes, np.exp(logarithms), strict=True))

    start = np.log([20_000.0, 10_000.0, 40_000.0, 10_000.0])
    best = minimize(
        waste, start, method="SLSQP", constraints={"type": "ineq", "fun": slack}, options={"ftol": 1e-14, "maxiter": 500}
    )
    assert found.waste == pytest.approx(best.fun, rel=1e-6)
    assert found.periods_s == pytest.approx(np.exp(best.x), rel=1e-3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: young_interval_s(0, 10), "checkpoint_s: 0 is not allowed"),
        (lambda: optimal_interval_s(1, -2), "mtbf_s: -2 is not allowed"),
        (lambda: expected_completion_s(10, 0, checkpoint_s=1, mtbf_s=9), "interval_s: 0 is not allowed"),
        (lambda: CheckpointingJobs(nodes=0, jobs=1, checkpoint_s=1), "CheckpointingJobs.nodes: 0 is not allowed"),
        (lambda: CheckpointingJobs(nodes=1, jobs=math.inf, checkpoint_s=1), "CheckpointingJobs.jobs: inf is not allowed"),
        (lambda: shared_store_bound(4, 10, []), "classes: none is given"),
        (lambda: shared_store_bound(4, 10, [CheckpointingJobs(nodes=2, jobs=3, checkpoint_s=1)]),
         "classes: jobs on 6 nodes are not allowed; the machine has 4 nodes"),
        (lambda: jobs_at_once(4, (1, 2), (1,)), "node_shares: 1 shares of 2 classes are not allowed"),
        (lambda: jobs_at_once(4, (1,), (0,)), "node_shares: 0 is not allowed"),
    ],
)  # fmt: skip
def test_bad_values_are_refused_in_one_line(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(SpecificationError) as refused:
        wrong()
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)
