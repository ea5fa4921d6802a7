"""Limits of nodes x remaining time, worked by hand: jobs are released as time passes, to the tick."""

from typing import Any

import pandas as pd
import pytest

from clustermodel import Job, Limits, Machine, Result, Scenario, Site, Workload, read_slurm_site
from clustermodel.machine.failure import Failure
from clustermodel.ticks import TICKS_PER_SECOND
from tests.property.test_failures import Listed
from tests.shared_data import site_case


def run(
    limit_s: float, jobs: list[tuple[float, int, float]], policy: str = "easy", *, estimate_s: float = 0, **machine: Any
) -> Result:
    """Run jobs (submission, nodes, run time) of one user, who may have so many node-seconds ahead."""
    made = [
        Job(id=number, submit_s=submit_s, nodes=nodes, run_s=run_s, estimate_s=estimate_s or run_s, user=1)
        for number, (submit_s, nodes, run_s) in enumerate(jobs, 1)
    ]
    site = Site(limits=Limits(user="*", node_hours=limit_s / 3600))
    machine = {"nodes": 8, **machine}
    return Scenario(workload=Workload.from_jobs(made), machine=Machine(**machine), policy=policy, site=site).run()


def starts(*args: Any, **kwargs: Any) -> list[float]:
    return list(run(*args, **kwargs).jobs["start_s"])


def test_the_second_starts_when_the_first_has_used_a_part() -> None:
    result = run(3600, [(0, 1, 2400), (0, 1, 2400)])
    assert list(result.jobs["start_s"]) == list(result.jobs["held_s"]) == [0, 1200]


def test_several_jobs_and_several_nodes() -> None:
    # 60 - t <= 40 at 20; then (60 - t) + (80 - t) <= 40 at 50.
    assert starts(100, [(0, 1, 60)] * 3) == [0, 20, 50]
    # 3 x 10 s - 3 t + 2 <= 31, after a third of a second: the first tick of which that holds.
    assert starts(31, [(0, 3, 10), (0, 1, 2)]) == [0, 0.333334]
    # The third job of 10 node-s passes the second of 60, and counts before it: 60 - t + 10 - t <= 40 - ... see below.
    # At 0: 60, and 60 more do not fit, 10 do.  60 - t + (10 - t) <= 40 at 15, by when the third has ended: 60 - t <= 40 at 20.
    assert starts(100, [(0, 1, 60), (0, 1, 60), (0, 1, 10)]) == [0, 20, 0]


def test_a_job_that_ends_early_leaves_its_rest() -> None:
    assert starts(100, [(0, 1, 5), (0, 1, 60), (0, 1, 60)], estimate_s=60) == [0, 5, 25]


def test_a_job_that_outlives_its_estimate_counts_no_more() -> None:
    # Of 60 s estimated each is half over at 30; the third one waits for the sum of 30 + 60, of which nothing is left at 90.
    jobs = [(0, 1, 200), (0, 1, 200), (0, 1, 200)]
    assert starts(90, jobs, estimate_s=60, kill_at_estimate=False) == [0, 30, 60]
    assert starts(60, jobs, estimate_s=60, kill_at_estimate=False) == [0, 60, 120]


def test_a_released_job_that_waits_counts_with_its_whole_estimate() -> None:
    # On one node: job 2 is released at 20, and waits until 60; job 3 could be released at 50 if it ran, and is at 80.
    result = run(100, [(0, 1, 60)] * 3, nodes=1)
    assert list(result.jobs["held_s"]) == [0, 20, 80]
    assert list(result.jobs["start_s"]) == [0, 60, 120]


def test_start_up_does_not_count_as_used() -> None:
    assert starts(100, [(0, 1, 60)] * 2, startup_s=5) == [0, 25]


def test_a_preempted_job_counts_what_is_left_of_it_while_it_waits() -> None:
    # Job 1 has 8 x 90 = 720 node-s left from 10 to 20, while job 2 of another user runs.  Job 3 needs 10 of 725: 715 are left
    # 0.625 s after 20.  It is the shortest, and runs at once.
    jobs = [
        Job(id=1, submit_s=0, nodes=8, run_s=100, user=1),
        Job(id=2, submit_s=10, nodes=8, run_s=10, user=2),
        Job(id=3, submit_s=12, nodes=1, run_s=10, user=1),
    ]
    site = Site(limits=Limits(user=1, node_hours=725 / 3600))
    # Until job 1 has used 90 node-s, job 3 could not even come before it: the limit lets neither more nor less.
    only = Site(limits=Limits(user=1, node_hours=800 / 3600))
    for rules, start in ((only, 20), (site, None)):
        result = Scenario(workload=Workload.from_jobs(jobs), machine=Machine(nodes=8), policy="srtf", site=rules).run()
        if start is None:
            assert result.jobs["status"][0] == "rejected"  # 800 node-s by itself
        else:
            assert list(result.jobs["start_s"])[1:] == [10, start]
            assert list(result.jobs["held_s"]) == [0, 0, 0]


def test_a_preempted_job_holds_others_back() -> None:
    jobs = [
        Job(id=1, submit_s=0, nodes=4, run_s=100, user=1),
        Job(id=2, submit_s=10, nodes=8, run_s=10, user=2),
        Job(id=3, submit_s=12, nodes=4, run_s=11, user=1),
    ]
    # Job 1 has 4 x 90 = 360 of 400 left from 10 to 20, and job 3 needs 44: 356 are left at 21.
    site = Site(limits=Limits(user=1, node_hours=400 / 3600))
    result = Scenario(workload=Workload.from_jobs(jobs), machine=Machine(nodes=8), policy="srtf", site=site).run()
    assert list(result.jobs["held_s"]) == [0, 0, 9]
    assert list(result.jobs["start_s"])[2] == 21


def test_a_restarted_job_counts_with_its_whole_estimate_again() -> None:
    # Job 1 fails at 30 with 30 node-s left, and starts again on the other node: 60 - (t - 30) + 60 <= 100 at 50.
    failures = Listed((Failure(30 * TICKS_PER_SECOND, 0, 1000 * TICKS_PER_SECOND),), 5.0)
    result = run(100, [(0, 1, 60), (40, 1, 60)], nodes=3, failures=failures)
    assert list(result.jobs["held_s"]) == [0, 10]


@pytest.mark.parametrize("policy", ["gs", "mgs"])
def test_gangs_in_rows_count_by_what_they_have_executed(policy: str) -> None:
    assert starts(100, [(0, 1, 60)] * 3, policy)[:2] == [0, 20]  # alone on its node, in each slice
    # On one node, two gangs take turns: job 1 has executed 20 s at some time between 20 and 40 s, when job 2 is released.
    result = run(100, [(0, 1, 60), (0, 1, 60)], policy, nodes=1)
    assert list(result.jobs["held_s"])[1] == 20
    assert result.jobs["status"].tolist() == ["completed"] * 2


def test_processors_and_nodes() -> None:
    jobs = [Job(id=number, submit_s=0, nodes=4, run_s=60) for number in (1, 2)]
    machine = Machine(nodes=2, processors_per_node=4)

    def second(**limit: float) -> float:
        scenario = Scenario(
            workload=Workload.from_jobs(jobs), machine=machine, policy="easy", site=Site(limits=Limits(**limit))
        )  # type: ignore[arg-type]
        return float(scenario.run().jobs["start_s"][1])

    assert second(processor_hours=400 / 3600) == 20  # 4 x (60 - t) + 240 <= 400
    # A job of four processors may have four nodes while it waits, and has one when it runs.
    assert second(node_hours=100 / 3600) == 20
    assert second(node_hours=120 / 3600) == 0


def test_shared_case_d15() -> None:
    slurm = read_slurm_site(site_case("d15_runmins_qos.txt"))
    workload = Workload.from_frame(pd.read_csv(site_case("d15_jobs.csv")))
    result = Scenario(workload=workload, machine=Machine(nodes=10), policy="easy", site=slurm.site).run()
    assert list(result.jobs["start_s"]) == [0, 1200, 0, 1200]
