"""Limits of nodes where these have several processors: a node counts once, however many of the jobs run on it."""

from typing import Any

import pytest

from clustermodel import Job, Limits, Machine, Result, Scenario, Site, Workload
from clustermodel.measure.input_notes import run_notes
from clustermodel.policies.registry import make_policy, policy_names
from tests.conftest import refusal


def run(
    limit: Limits | list[Limits], jobs: list[tuple[Any, ...]], policy: str = "easy", nodes: int = 2, **machine: Any
) -> Result:
    """Run jobs (submission, processors, run time, account, and other fields) on nodes of eight processors."""
    made = [
        Job(id=number, submit_s=submit_s, nodes=processors, run_s=run_s, account=account, **(others[0] if others else {}))
        for number, (submit_s, processors, run_s, account, *others) in enumerate(jobs, 1)
    ]
    rules = Site(limits=limit)  # type: ignore[arg-type]
    spec = Machine(nodes=nodes, processors_per_node=8, **machine)
    return Scenario(workload=Workload.from_jobs(made), machine=spec, policy=policy, site=rules).run()


def starts(*args: Any, **kwargs: Any) -> list[float]:
    return list(run(*args, **kwargs).jobs["start_s"])


def nodes_of(result: Result) -> dict[int, set[int]]:
    """Return the nodes of each job."""
    nodes: dict[int, set[int]] = {}
    for job, first, count in result.placements[["job", "first_node", "nodes"]].itertuples(index=False):
        nodes.setdefault(job, set()).update(processor // 8 for processor in range(first, first + count))
    return nodes


ONE = Limits(account="a", nodes=1)
POLICIES = ("fcfs", "easy", "conservative", "bf", "slack:awt=20", "backfilling")


@pytest.mark.parametrize("policy", POLICIES)
def test_jobs_of_an_account_share_a_node(policy: str) -> None:
    # Two fit on the first node with a third of another account; the fourth of the account waits for one of them to end.
    result = run(
        ONE,
        [(0, 2, 100, "a"), (0, 4, 50, "a"), (0, 2, 70, "b"), (0, 4, 10, "a"), (0, 8, 10, "b", {"processors_per_node": 8})],
        policy,
    )
    assert list(result.jobs["start_s"]) == [0, 0, 0, 50, 0]
    assert list(result.jobs["held_s"]) == [0, 0, 0, 50, 0]
    placed = nodes_of(result)
    assert placed[1] == placed[2] == placed[4]


def test_a_job_goes_where_the_account_is_or_waits() -> None:
    # Job 2, of another account, fills the node of job 1: job 3 has to wait for it, though the other node is idle.
    assert starts(ONE, [(0, 2, 100, "a"), (0, 6, 50, "b"), (1, 2, 10, "a")]) == [0, 0, 50]
    # When job 1 has left, the account has no node, and job 3 may have any.
    assert starts(ONE, [(0, 2, 40, "a"), (0, 6, 50, "b"), (1, 8, 10, "a")]) == [0, 0, 40]


def test_nodes_of_the_account_and_further_ones() -> None:
    two = Limits(account="a", nodes=2)
    # Ten processors are eight and two: six more fit on the second node, and then one more job has to wait.
    result = run(two, [(0, 10, 100, "a"), (0, 6, 100, "a"), (0, 1, 100, "a")], nodes=3)
    assert list(result.jobs["start_s"]) == [0, 0, 100]
    # Job 2 has six processors beside job 1, and six of a further node.
    result = run(two, [(0, 2, 100, "a"), (1, 12, 100, "a"), (1, 2, 100, "a")], nodes=3)
    assert list(result.jobs["start_s"]) == [0, 1, 1]
    assert nodes_of(result)[2] == {0, 1}


def test_all_limits_hold_together() -> None:
    limits = [Limits(account=["a", "b"], nodes=2), Limits(account="a", nodes=1)]
    result = run(limits, [(0, 4, 100, "a"), (0, 4, 100, "b"), (0, 8, 100, "b"), (0, 8, 100, "b"), (0, 4, 100, "a")], nodes=4)
    assert list(result.jobs["start_s"]) == [0, 0, 0, 100, 100]


def test_jobs_that_need_more_nodes_are_rejected() -> None:
    jobs = [(0, 8, 10, "a"), (0, 9, 10, "a"), (0, 8, 10, "a", {"processors_per_node": 4}), (0, 9, 10, "b")]
    for limit in (ONE, Limits(account="a", job_nodes=1), Limits(account="a", node_hours=10 / 3600)):
        result = run(limit, jobs)
        assert list(result.jobs["status"]) == ["completed", "rejected", "rejected", "completed"]
    (note,) = [note.fact for note in run_notes([run(ONE, jobs[:2])]) if "rejected" in note.fact]
    assert note == "1 job is rejected: limits of the site never allow such a size or estimate"


def test_a_limit_of_nodes_of_each_job_keeps_it_together() -> None:
    # Four processors are idle on each node; the third job may have those of one node only.
    jobs = [(0, 4, 100, "b", {"processors_per_node": 4}), (0, 12, 50, "b"), (1, 6, 10, "a")]
    assert starts(Limits(account="b", running_jobs=9), [*jobs[:1], (0, 4, 50, "b"), jobs[2]]) == [0, 0, 1]
    assert starts(Limits(account="a", job_nodes=1), jobs) == [0, 0, 50]


def test_processors_are_limited_as_such() -> None:
    assert starts(Limits(account="a", processors=4), [(0, 2, 100, "a")] * 3) == [0, 0, 100]
    assert starts(Limits(account="a", job_processors=2), [(0, 2, 10, "a"), (0, 3, 10, "b")]) == [0, 0]
    assert list(run(Limits(account="a", job_processors=2), [(0, 3, 10, "a")]).jobs["status"]) == ["rejected"]


def test_reserved_nodes_and_memory_count() -> None:
    # Each node has 8 GiB: two jobs of 5 GiB do not fit on one, and the account has no other.
    jobs = [(0, 1, 100, "a", {"memory_gib": 5}), (0, 1, 10, "a", {"memory_gib": 5}), (0, 1, 10, "a", {"memory_gib": 3})]
    assert starts(ONE, jobs, node_memory_gib=8) == [0, 100, 0]


def test_policies_that_do_not_place_processors_are_refused() -> None:
    placing = [name for name in policy_names() if getattr(make_policy(name), "takes_shapes", False)]
    for policy in set(policy_names()) - set(placing):
        words = refusal(lambda policy=policy: run(ONE, [(0, 2, 100, "a")], policy))
        assert "where limits count nodes that have several processors (Limits.processors counts those)" in words
        assert starts(Limits(account="a", processors=2), [(0, 2, 100, "a")] * 2, policy)[1] >= 100  # of some in a later round


def test_nodes_of_one_processor_are_as_they_were() -> None:
    jobs = [Job(id=number, submit_s=0, nodes=2, run_s=100, account="a") for number in (1, 2, 3)]
    for field in ("nodes", "processors"):
        site = Site(limits=Limits(account="a", **{field: 4}))  # type: ignore[arg-type]
        result = Scenario(workload=Workload.from_jobs(jobs), machine=Machine(nodes=8), policy="gs", site=site).run()
        assert list(result.jobs["start_s"]) == [0, 0, 100]
