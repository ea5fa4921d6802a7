"""Every start time of the reference schedules, and every figure that ../shared/reference/README.md states."""

from functools import cache

import pytest

from clustermodel import Machine, Scenario, read_swf
from clustermodel.experiment.result import Result
from clustermodel.measure.fairness import delays_by_later_jobs
from clustermodel.measure.metrics import Summary
from tests.shared_data import reference_starts, trace_path

KTH = "KTH-SP2-1996-2.2"
CTC = "CTC-SP2-1996-3.1-cln"
SDSC = "SDSC-SP2-1998-4.2-cln"


@cache
def run(trace: str, nodes: int, policy: str) -> Result:
    return Scenario(machine=Machine(nodes=nodes), workload=read_swf(trace_path(trace)), policy=policy).run()


@cache
def summary(trace: str, nodes: int, policy: str) -> Summary:
    return run(trace, nodes, policy).summary()


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_every_kth_job_starts_when_the_reference_says(policy: str) -> None:
    expected = reference_starts(policy)
    jobs = run(KTH, 100, policy).jobs
    ours = dict(zip(jobs["job"].tolist(), jobs["start_s"].tolist(), strict=True))
    assert len(expected) == 28_481
    assert ours == expected


@pytest.mark.parametrize(
    ("trace", "nodes", "jobs", "policy", "mean_wait", "mean_bounded_slowdown"),
    [
        (KTH, 100, 28_481, "fcfs", "354002.316", "6818.5853"),
        (KTH, 100, 28_481, "easy", "6887.653", "92.7882"),
        (KTH, 100, 28_481, "conservative", "7346.317", "88.8636"),
        pytest.param(CTC, 430, 77_205, "fcfs", "17084.737", "91.3082", marks=pytest.mark.long),
        pytest.param(CTC, 430, 77_205, "easy", "3161.457", "10.5539", marks=pytest.mark.long),
        pytest.param(CTC, 430, 77_205, "conservative", "4105.970", "13.2776", marks=pytest.mark.long),
        pytest.param(SDSC, 128, 54_034, "easy", "20576.237", "88.5411", marks=pytest.mark.long),
        pytest.param(SDSC, 128, 54_034, "conservative", "21784.308", "91.8389", marks=pytest.mark.long),
    ],
)
def test_means_are_the_printed_ones_to_the_last_digit(
    trace: str, nodes: int, jobs: int, policy: str, mean_wait: str, mean_bounded_slowdown: str
) -> None:
    found = summary(trace, nodes, policy)
    assert found.jobs == jobs
    assert f"{found.mean_wait_s:.3f}" == mean_wait
    assert f"{found.mean_bounded_slowdown:.4f}" == mean_bounded_slowdown


@pytest.mark.parametrize(
    ("trace", "nodes", "backfilled", "blocked"),
    [
        (KTH, 100, 17_192, 2_917),
        pytest.param(CTC, 430, 35_052, 4_631, marks=pytest.mark.long),
        pytest.param(SDSC, 128, 36_306, 7_672, marks=pytest.mark.long),
    ],
)
def test_easy_backfills_and_blocks_as_many_jobs_as_the_reference(trace: str, nodes: int, backfilled: int, blocked: int) -> None:
    found = summary(trace, nodes, "easy")
    assert (found.backfilled, found.blocked) == (backfilled, blocked)


def test_easy_on_kth_delays_760_jobs_by_later_ones() -> None:
    found = summary(KTH, 100, "easy")
    assert found.delayed == 760
    assert f"{found.mean_delay_by_later_s / 60:.2f}" == "60.63"
    assert f"{found.longest_delay_by_later_s / 3600:.2f}" == "54.15"


def test_the_bare_words_of_the_definition_count_more_delays_but_the_same_longest_one() -> None:
    # docs/design: the reference looks only at instants with idle nodes; without that condition more jobs count.
    result = run(KTH, 100, "easy")
    bare = delays_by_later_jobs(result.records, 100, only_with_idle_nodes=False)
    assert (bare > 0).sum() > 760
    assert bare.max() == summary(KTH, 100, "easy").longest_delay_by_later_s


def test_fcfs_delays_nobody_by_later_jobs() -> None:
    found = summary(KTH, 100, "fcfs")
    assert (found.delayed, found.backfilled) == (0, 0)
    assert found.blocked > 0
