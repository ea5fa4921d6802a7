"""The predictors: what they say, what they learn from, and what they refuse."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from clustermodel import Job, Machine, QueuedJob, Scenario, Setup, SpecificationError, Workload, synthetic_workload
from clustermodel.policies.easy import Easy
from clustermodel.policies.predictors import PREDICTORS, Predictions, Predictor, UserEstimate, Virtual, predictor_of
from clustermodel.policies.pv_easy import PVEasy
from clustermodel.policies.registry import make_policy

SECOND = 1_000_000


def job(number: int, estimate: int, user: int = 1) -> QueuedJob:
    return QueuedJob(number, 1, 0, estimate, user, -1, 0)


def setup(run_time: Callable[[QueuedJob], int] = lambda _: 70, *, kill: bool = True, seed: int = 1) -> Setup:
    machine = Machine(nodes=4, kill_at_estimate=kill)
    return Setup(4, kill, np.random.default_rng(seed), explain=False, machine=machine, run_time=run_time)


def begun(predictor: Predictor, made: Setup | None = None) -> Predictions:
    return predictor.start(made or setup())


def test_the_users_estimate() -> None:
    assert begun(UserEstimate()).predict(job(1, 100)) == 100


def test_last_model_takes_the_accuracy_of_the_last_job_of_the_same_user() -> None:
    model = begun(PREDICTORS["last"])
    assert model.predict(job(1, 100)) == 100
    model.ended(job(2, 80), 20)
    assert (model.predict(job(3, 100)), model.predict(job(4, 100, user=2))) == (25, 100)
    model.ended(job(5, 80), 40)
    assert model.predict(job(3, 100)) == 50


def test_last_model_is_never_below_a_tick_nor_above_the_estimate() -> None:
    model = begun(PREDICTORS["last"])
    model.ended(job(2, 1000), 1)
    assert model.predict(job(3, 100)) == 1
    model.ended(job(2, 50), 200)  # it ran on past its estimate
    assert model.predict(job(3, 100)) == 100


def test_the_mean_of_the_last_two() -> None:
    model = begun(PREDICTORS["last-two"])
    model.ended(job(2, 80), 20)
    assert model.predict(job(1, 100)) == 100
    model.ended(job(3, 80), 31)
    assert model.predict(job(1, 100)) == 25
    model.ended(job(4, 80), 80)
    assert (model.predict(job(1, 100)), model.predict(job(1, 40))) == (55, 40)


@pytest.mark.parametrize("model", [PREDICTORS["last"], PREDICTORS["last-two"]])
def test_a_run_knows_nothing_of_others(model: Predictor) -> None:
    run = model.start(setup())
    for number in range(2):
        run.ended(job(number, 80), 20)
    assert run.predict(job(9, 100)) < 100
    assert model.start(setup()).predict(job(9, 100)) == 100


def test_perfect_knows_when_a_job_will_be_killed() -> None:
    assert begun(PREDICTORS["perfect"]).predict(job(1, 50)) == 50
    assert begun(PREDICTORS["perfect"]).predict(job(1, 90)) == 70
    assert begun(PREDICTORS["perfect"], setup(kill=False)).predict(job(1, 50)) == 70


def test_virtual_errs_by_at_most_x_and_by_half_of_that_on_average() -> None:
    model = begun(Virtual(0.4), setup(lambda _: 1000 * SECOND))
    jobs = [job(number, 10_000 * SECOND) for number in range(4000)]
    for one in jobs:
        model.submitted(one)
    error = np.array([model.predict(one) for one in jobs]) / (1000 * SECOND) - 1
    assert -0.4 <= error.min() < -0.38
    assert 0.38 < error.max() <= 0.4
    assert np.abs(error).mean() == pytest.approx(0.2, rel=0.05)
    assert [model.predict(one) for one in jobs[:9]] == [model.predict(one) for one in jobs[:9]]  # a job has one factor


def test_virtual_draws_the_same_errors_whatever_the_policy_draws_and_scales_them() -> None:
    def predictions(seed: int, error: float, drawn: int) -> list[int]:
        made = setup(lambda _: 1000, seed=seed)
        made.rng.random(drawn)
        model = begun(Virtual(error), made)
        jobs = [job(number, 5000) for number in range(5)]
        for one in jobs:
            model.submitted(one)
        return [model.predict(one) for one in jobs]

    assert predictions(1, 0.5, 0) == predictions(1, 0.5, 99)
    assert predictions(1, 0.5, 0) != predictions(2, 0.5, 0)
    assert [2 * (small - 1000) for small in predictions(1, 0.2, 0)] == pytest.approx(
        [large - 1000 for large in predictions(1, 0.4, 0)], abs=2
    )


def test_without_error_virtual_is_perfect() -> None:
    workload = synthetic_workload(jobs=800)
    for policy in ("easy", "conservative", "pv-easy"):
        virtual, perfect = (
            Scenario(workload=workload, policy=f"{policy}:predictor={name}").run().jobs["start_s"].tolist()
            for name in ("virtual:0", "perfect")
        )
        assert virtual == perfect


@pytest.mark.parametrize("policy", ["easy", "conservative", "easy:reserve_depth=3", "easy:backfill_order=shortest"])
def test_perfect_predictions_are_perfect_estimates(policy: str) -> None:
    workload = synthetic_workload(jobs=800)
    predicted = Scenario(workload=workload, policy=f"{policy}{',' if ':' in policy else ':'}predictor=perfect").run()
    estimated = Scenario(workload=workload.with_perfect_estimates(), policy=policy).run()
    assert predicted.jobs["start_s"].tolist() == estimated.jobs["start_s"].tolist()


class Half(UserEstimate):
    """A predictor of one's own: half of the estimate."""

    def predict(self, job: QueuedJob) -> int:
        return max(job.estimate // 2, 1)


@pytest.mark.parametrize("make", [Easy, PVEasy])
def test_a_predictor_of_ones_own_does_what_other_estimates_would_where_nothing_is_killed(
    make: type[Easy] | type[PVEasy],
) -> None:
    machine, workload = Machine(nodes=128, kill_at_estimate=False), synthetic_workload(jobs=600)
    halved = Workload.from_jobs(
        replace(one, estimate_s=int((one.estimate_s or 0) * SECOND) // 2 / SECOND) for one in workload.jobs()
    )
    predicted = Scenario(machine=machine, workload=workload, policy=make(predictor=Half())).run()
    estimated = Scenario(machine=machine, workload=halved, policy=make(predictor="estimate")).run()
    assert predicted.jobs["start_s"].tolist() == estimated.jobs["start_s"].tolist()


@pytest.mark.parametrize(
    ("predictor", "message"),
    [
        (
            "lst",
            r"easy: predictor: 'lst' is not allowed \(did you mean 'last'\?\); it must be one of "
            "estimate, last, last-submitted, last-two, ",
        ),
        ("virtual", "easy: predictor: 'virtual' is not allowed; write virtual:X, with the maximum error X in"),
        ("virtual:2", "easy: predictor: 'virtual:2' is not allowed; write virtual:X, with the maximum error X in"),
        ("virtual:nan", "easy: predictor: 'virtual:nan' is not allowed"),
        (7, "easy: predictor: 7 is not allowed; it must be one of"),
        (UserEstimate, "easy: predictor: <class .* is not allowed"),
    ],
)
def test_what_is_no_predictor_is_refused(predictor: str, message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        predictor_of("easy", predictor)


@pytest.mark.parametrize("policy", ["easy", "conservative", "pv-easy", "srtf"])
@pytest.mark.parametrize("says", [0, -5, 1.5, 2.0, None, "long"])
def test_what_is_no_prediction_is_blamed_on_the_predictor(policy: str, says: Any) -> None:
    class Wrong(UserEstimate):
        def predict(self, job: QueuedJob) -> int:
            return says  # type: ignore[no-any-return]

    machine, jobs = Machine(nodes=4), [Job(id=n, nodes=4, submit_s=0, run_s=9) for n in (7, 8, 9)]
    specified = replace(cast("Any", make_policy(policy)), predictor=Wrong())
    message = (
        f"^predictor Wrong: {says!r} is not allowed for job 7; predict must return a whole number of ticks .microseconds., "
    )
    with pytest.raises(SpecificationError, match=f"{message}at least 1$"):
        Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy=specified).run()


def test_predictions_of_numpy_are_whole_numbers() -> None:
    class Numpy(UserEstimate):
        def predict(self, job: QueuedJob) -> int:
            return np.int64(job.estimate)  # type: ignore[return-value]

    workload = synthetic_workload(jobs=100)
    starts = [Scenario(workload=workload, policy=Easy(predictor=of)).run().jobs["start_s"] for of in (Numpy(), "estimate")]
    assert starts[0].equals(starts[1])
