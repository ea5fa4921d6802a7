"""What is expected of a running job whose prediction has expired."""

import pytest

from clustermodel import Job, Machine, QueuedJob, Scenario, SpecificationError, Workload, to_ticks
from clustermodel.policies.easy import Easy
from clustermodel.policies.predictors import CORRECTIONS

MINUTE, HOUR = 60, 3600


def waiting(estimate_s: float) -> QueuedJob:
    return QueuedJob(1, 1, 0, to_ticks(estimate_s), 1, 1, 0, 0)


@pytest.mark.parametrize(
    ("name", "estimate_s", "predicted_s", "ran_s", "expected_s"),
    [
        ("second", 1000, 10, 10, 11),
        ("second", 1000, 10, 500, 501),
        ("estimate", 1000, 10, 500, 1000),
        ("double", 1000, 10, 10, 11),
        ("double", 1000, 10, 25, 40),
        ("double", 1000, 10, 900, 1790),  # beyond the estimate, as where nothing kills the job at it
        ("tsafrir", 10**9, 10, 10, 10 + MINUTE),
        ("tsafrir", 10**9, 10, 10 + MINUTE - 1, 10 + MINUTE),
        ("tsafrir", 10**9, 10, 10 + MINUTE, 10 + 5 * MINUTE),
        ("tsafrir", 10**9, 10, 10 + 29 * MINUTE, 10 + 30 * MINUTE),
        ("tsafrir", 10**9, 10, 10 + 30 * MINUTE, 10 + HOUR),
        ("tsafrir", 10**9, 10, 10 + 21 * HOUR, 10 + 50 * HOUR),
        ("tsafrir", 10**9, 10, 10 + 100 * HOUR, 10 + 200 * HOUR),
        ("tsafrir", 100, 10, 40, 70),
        ("tsafrir", 60, 10, 40, 60),
        ("tsafrir", 60, 10, 60, 60),
    ],
)
def test_expected_run_time(name: str, estimate_s: float, predicted_s: float, ran_s: float, expected_s: float) -> None:
    assert CORRECTIONS[name](waiting(estimate_s), to_ticks(predicted_s), to_ticks(ran_s)) == to_ticks(expected_s)


# Four nodes.  Jobs 1 and 2 run for 10 s, so that 3 is predicted to run for 10 s too; it runs for 1,000.  4 needs the whole
# machine and is blocked from 25 s on.  5 needs one node for 100 s: it delays 4 unless 3 is expected to run on for so long.
JOBS = Workload.from_jobs(
    [
        Job(id=1, submit_s=0, nodes=1, run_s=10, estimate_s=1000, user=1),
        Job(id=2, submit_s=0, nodes=1, run_s=10, estimate_s=1000, user=1),
        Job(id=3, submit_s=20, nodes=3, run_s=1000, estimate_s=1000, user=1),
        Job(id=4, submit_s=25, nodes=4, run_s=50, estimate_s=50, user=2),
        Job(id=5, submit_s=100, nodes=1, run_s=100, estimate_s=100, user=3),
    ]
)
STARTS = {"estimate": 100, "tsafrir": 100, "double": 1070, "second": 1070}


def starts(policy: object) -> list[float]:
    result = Scenario(machine=Machine(nodes=4), workload=JOBS, policy=policy).run()  # type: ignore[arg-type]
    found: list[float] = result.jobs["start_s"].tolist()
    return found


@pytest.mark.parametrize("options", ["", ",backfill_order=shortest"])
@pytest.mark.parametrize("correction", STARTS)
def test_a_job_is_backfilled_beside_one_that_has_outlived_its_prediction(correction: str, options: str) -> None:
    assert starts(f"easy:predictor=last-two,correction={correction}{options}")[4] == STARTS[correction]


def test_by_default_such_a_job_is_expected_to_end_a_second_later() -> None:
    assert starts("easy:predictor=last-two")[4] == 1070


@pytest.mark.parametrize("correction", ["estimate", "tsafrir"])
def test_so_it_is_with_a_reservation_for_every_job(correction: str) -> None:
    for policy in ("conservative", "easy:reserve_depth=3", "D", "backfilling:guarantees=none"):
        assert starts(f"{policy}{',' if ':' in policy else ':'}predictor=last-two,correction={correction}")[4] == 100


def test_a_function_corrects_too() -> None:
    asked = []

    def at_least_300_s(job: QueuedJob, predicted: int, ran: int) -> int:
        asked.append((job.id, predicted, ran))
        return to_ticks(300)

    assert starts(Easy(predictor="last-two", correction=at_least_300_s))[4] == 100
    assert (3, to_ticks(10), to_ticks(80)) in asked


def test_what_a_correction_does_not_know_is_left_to_the_policy() -> None:
    assert starts(Easy(predictor="last-two", correction=lambda *_: 0))[4] == 1070


def test_a_correction_that_returns_no_whole_number_is_refused() -> None:
    with pytest.raises(SpecificationError, match=r"^correction: 0\.5 is not allowed; it must be whole ticks$"):
        starts(Easy(predictor="last-two", correction=lambda *_: 0.5))  # type: ignore[arg-type, return-value]
