"""Slack-based backfilling over pools of nodes: timelines by hand, quotas and extensions, and the average wait time."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from clustermodel import (
    Checkpointing,
    Job,
    Limits,
    Machine,
    NodeFailures,
    Outages,
    Power,
    Reservation,
    Result,
    Scenario,
    Site,
    Slack,
    Workload,
)
from clustermodel.plans.by_node import Nodes
from clustermodel.plans.pool_plans import PoolPlan
from clustermodel.plans.pools import Pools
from clustermodel.policies.slack import Quotas
from tests.property.strategies import cases
from tests.unit.test_partitions import job, nodes_of, parts, run, starts
from tests.unit.test_pools import random_jobs

SHARING = parts(a="0-3", b="2-5")


def bounds(result: Result) -> list[float | None]:
    return [None if np.isnan(bound) else round(bound) for bound in result.jobs["reserved_s"]]


@pytest.mark.parametrize(("factor", "second", "third"), [(3, 20, 1), (0, 10, 20)])
def test_jobs_of_a_partition_are_delayed_and_those_beside_them_are_not(factor: int, second: int, third: int) -> None:
    # Job 3 would wait for 19 s, 2 x 19 = 38; or start now on 4 and 5 and delay job 2 by 10 s, 4 x 10 x (1/12) / (1/6) = 20.
    # Job 4 has nodes 0 and 1 at 10, which b does not.
    jobs = [job(1, 0, 4, 10, "a"), job(2, 0, 4, 10, "b"), job(3, 1, 2, 19, "b"), job(4, 2, 2, 30, "a")]
    result = run(jobs, SHARING, nodes=6, policy=f"slack:awt=20,slack_factor={factor}")
    assert starts(result) == [0, second, third, 10]
    assert nodes_of(result, 2) == {2, 3, 4, 5}
    assert nodes_of(result, 4) == {0, 1}
    # Job 2 waits for 10 s: SP = 1/4, p = 1/12, s0 = 11/12 x 3 x 20 s; job 4 for 8 s: SP = 1/5, s0 = 14/15 x 60 s.
    assert bounds(result)[1::2] == ([65, 66] if factor else [10, 10])


@pytest.mark.parametrize("compression", ["afresh", "shift", "in-place"])
def test_a_job_without_initial_slack_moves_up_each_time_one_ends_early(compression: str) -> None:
    # Three jobs of all of a wait behind one, each of 60 s at most; all end after 50 s.  Job 5 has what only b has.
    jobs = [job(number, submit, 4, 50, "a", estimate_s=60) for number, submit in enumerate((0, 5, 6, 7), 1)]
    policy = Slack(awt=100.0, slack_factor=0, compression=compression)
    result = run([*jobs, job(5, 0, 2, 5, "b")], SHARING, nodes=6, policy=policy)
    assert result.jobs.set_index("job")["start_s"].to_dict() == {1: 0, 2: 50, 3: 100, 4: 150, 5: 0}


def test_a_job_has_other_nodes_at_the_same_time_where_another_one_needs_its_own() -> None:
    # Job 3 is to have nodes 0 and 1 at 10, in a; then job 4 takes all of a, and job 3 has nodes of b.
    jobs = [job(1, 0, 4, 10, "a"), job(2, 0, 2, 10, "b"), job(3, 0, 2, 10, "a,b"), job(4, 1, 4, 20, "a")]
    result = run(jobs, SHARING, nodes=6, policy="slack:awt=20")
    assert starts(result) == [0, 0, 10, 10]
    assert nodes_of(result, 3) == {4, 5}
    assert nodes_of(run(jobs[:3], SHARING, nodes=6, policy="slack:awt=20"), 3) == {0, 1}


def test_plans_go_around_a_reservation() -> None:
    # Nodes 4 and 5 are reserved from 15 to 30.  Job 2 would reach into that, job 3 ends before, and job 4 has 2 and 3 at 10.
    jobs = [job(1, 0, 4, 10, "a"), job(2, 0, 4, 10, "b"), job(3, 1, 2, 10, "b"), job(4, 2, 2, 19, "b")]
    window = Reservation(nodes="4-5", start_s=15, end_s=30)
    result = run(jobs, SHARING, nodes=6, policy="slack:awt=20", reservations=window)
    assert starts(result) == [0, 30, 1, 10]
    # SP = 30/40, p = 1/4, s0 = 45 s; SP = 8/40, p = 1/15, s0 = 56 s.
    assert bounds(result) == [None, 75, None, 66]


@pytest.mark.parametrize(("factor", "expected"), [(3, [0, 30, 10]), (0, [0, 10, 30])])
def test_a_job_is_delayed_beyond_a_reservation_within_its_slack(factor: int, expected: list[int]) -> None:
    # All nodes are reserved from 20 to 30.  Job 3 waits for 28 s, 4 x 28 = 112; or for 8 s, 32, and delays job 2 by 20 s, 40.
    jobs = [job(1, 0, 4, 10, None), job(2, 0, 4, 10, None), job(3, 2, 4, 10, None)]
    window = Reservation(start_s=20, end_s=30)
    policy = f"slack:awt=20,slack_factor={factor}"
    assert starts(run(jobs, [], nodes=4, policy=policy, reservations=window)) == expected


@pytest.mark.parametrize("quota", [None, 0.0])
def test_jobs_that_have_missed_their_last_chance_leave_the_plan(quota: float | None) -> None:
    # Node 3 is down for good from 100 on: job 2 has no time unless job 1 ends early.  It is told no start until then.
    gone = Outages(node=[3], down_s=[100.0], up_s=[1e10], nodes=4, known=(True,))
    policy = Slack(awt=20.0, quotas=Quotas(user={7: quota} if quota is not None else None))
    jobs = [job(2, 1, 4, 60, None, user=7), job(3, 2, 3, 500, None)]
    result = run([job(1, 0, 4, 50, None), *jobs], [], nodes=4, policy=policy, failures=gone)
    assert list(result.jobs["status"]) == ["completed", "rejected", "completed"]
    assert starts(result)[2] == 50
    early = run([job(1, 0, 4, 30, None, estimate_s=50), jobs[0]], [], nodes=4, policy=policy, failures=gone)
    assert starts(early) == [0, 30]


def test_jobs_over_quota_start_on_nodes_that_no_reservation_needs() -> None:
    # Job 3 of a has nodes 0 and 1; job 4 of b would need a node that is job 2's at 10, and job 5 ends before.
    jobs = [job(1, 0, 2, 10, "b"), job(2, 0, 4, 10, "b")]
    jobs += [job(3, 1, 2, 90, "a", user=7), job(4, 1, 1, 90, "b", user=7), job(5, 1, 1, 9, "b", user=7)]
    policy = Slack(awt=20.0, quotas=Quotas(user={7: 0.0}))
    result = run(jobs, SHARING, nodes=6, policy=policy)
    assert starts(result) == [0, 10, 1, 20, 1]
    assert nodes_of(result, 3) == {0, 1}
    assert bounds(result) == [None, 65, None, None, None]


def random_policy(seed: int, heuristic: str, compression: str) -> Slack:
    more: dict[str, Any] = {"quotas": Quotas(user={-1: 0.0} if seed % 4 == 1 else 300.0)} if seed % 2 else {}
    if seed % 3 == 2:
        more |= {"user_priority": lambda job: job.id % 2, "alpha_t": 0.5}
    factor = (3.0, 0.0, 9.0)[seed % 3]
    return Slack(heuristic=heuristic, compression=compression, awt=20.0, slack_factor=factor, **more)


CHECKPOINTS = Checkpointing(interval_s=10, checkpoint_s=5)
FAILING = {
    "checkpointing": Checkpointing(interval_s=10, restart_s=15),
    "failures": Outages(node=[0], down_s=[12.0], up_s=[12.0], nodes=4),
}
BOOTING = {"idle_off_s": 50, "power": Power(busy_w=1, idle_w=1, boot_s=20)}


@pytest.mark.parametrize(
    ("submit_s", "fields", "expected"),
    [
        ((0, 1), {"checkpointing": CHECKPOINTS}, 40),  # checkpoints at 10 and 25
        ((0, 13), FAILING, 47),  # restarted at 12, with 10 s saved
        ((100, 101), BOOTING, 150),
    ],
    ids=["checkpoints", "failures", "boots"],
)
def test_plans_have_jobs_for_as_long_as_they_hold_their_nodes(
    submit_s: tuple[int, int], fields: dict[str, Any], expected: int
) -> None:
    jobs = [job(1, submit_s[0], 4, 30, None), job(2, submit_s[1], 4, 10, None)]
    result = run(jobs, [], nodes=4, policy="slack:awt=20,slack_factor=0", **fields)
    assert starts(result)[1] == bounds(result)[1] == expected


READINGS = [(heuristic, compression) for heuristic in ("ast", "dc") for compression in ("afresh", "shift", "in-place")]


@pytest.mark.parametrize("fields", [{"checkpointing": CHECKPOINTS}, BOOTING], ids=["checkpoints", "boots"])
@pytest.mark.parametrize(("heuristic", "compression"), READINGS)
def test_no_job_starts_after_its_bound_where_jobs_hold_their_nodes_for_longer(
    heuristic: str, compression: str, fields: dict[str, Any]
) -> None:
    for seed in range(cases(12, fewest=6)):
        policy = Slack(heuristic=heuristic, compression=compression, awt=20.0, slack_factor=3.0 * (seed % 2))
        scenario = Scenario(workload=random_jobs(seed, None), machine=Machine(nodes=8, **fields), policy=policy)
        table = scenario.run().jobs
        assert not (table["start_s"] > table["reserved_s"]).any()


def plan_over_pools(pools: Pools, _nodes: Nodes | None, *, may_overrun: bool) -> PoolPlan:
    return PoolPlan(pools, may_overrun=may_overrun)


@pytest.mark.parametrize(("heuristic", "compression"), [*READINGS, ("optimal", "afresh")])
@pytest.mark.parametrize("what", ["quotas", "extensions", "failures"])
def test_with_one_pool_whatever_the_parameters_trials_on_the_plan_find_what_those_on_the_profile_find(
    heuristic: str, compression: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(cases(4, fewest=2)):
        failing = NodeFailures(mtbf_s=300, repair_s=20 * (seed % 2)) if what == "failures" else None
        policy = random_policy(seed, heuristic, compression)
        if what == "extensions":
            policy = Slack(heuristic=heuristic, compression=compression, awt=20.0, quotas=policy.quotas, extend_unfinished=True)
        machine = Machine(nodes=8, kill_at_estimate=what == "quotas", failures=failing)
        scenario = Scenario(workload=random_jobs(seed, None), machine=machine, policy=policy, explain=True)
        plain = scenario.run()
        with monkeypatch.context() as patched:
            patched.setattr("clustermodel.policies.slack.plan_of", plan_over_pools)
            pooled = scenario.run()
        pd.testing.assert_frame_equal(plain.jobs, pooled.jobs)
        for number in plain.jobs["job"][plain.jobs["start_s"].notna()]:
            assert str(plain.explain(number)) == str(pooled.explain(number))


def test_a_partition_is_a_machine_of_its_own_whatever_happens_in_others() -> None:
    # In b jobs end early, nodes fail and jobs run on; what is planned in a stays as it is.
    rng = np.random.default_rng(3)
    jobs = [job(n, 20 * n, int(rng.integers(1, 5)), float(rng.integers(10, 300)), "a") for n in range(1, 40)]
    others = [
        job(100 + n, 11 * n, int(rng.integers(1, 5)), run_s := float(rng.integers(10, 300)), "b", estimate_s=run_s * factor)
        for n, factor in enumerate(rng.choice([0.5, 1, 3], 60))
    ]
    outages = Outages(node=[5, 6, 5], down_s=[200.0, 300.0, 505.0], up_s=[400.0, 350.0, 505.0], nodes=8)
    for heuristic in ("ast", "du"):
        policy = f"slack:awt=300,heuristic={heuristic}"
        fields: dict[str, Any] = {"policy": policy, "kill_at_estimate": False}
        alone = run(jobs, parts(a="0-3", b="4-7"), **fields)
        beside = run([*jobs, *others], parts(a="0-3", b="4-7"), failures=outages, **fields)
        table = beside.jobs.set_index("job").loc[[each.id for each in jobs]]
        assert beside.summary().failed_attempts > 0
        assert starts(alone) == list(table["start_s"])
        assert alone.jobs["reserved_s"].equals(table["reserved_s"].reset_index(drop=True))


def test_jobs_may_have_shapes() -> None:
    # One processor of each node is idle until 50, when node 1 is idle.  Job 4 may take the one there: job 3 can wait.
    jobs = [
        Job(id=1, submit_s=0, nodes=3, run_s=100),
        Job(id=2, submit_s=0, nodes=3, run_s=50),
        Job(id=3, submit_s=1, nodes=4, run_s=10, max_nodes_used=1),
        Job(id=4, submit_s=2, nodes=2, run_s=60),
    ]
    machine = Machine(nodes=2, processors_per_node=4, allocation="consolidate")
    for factor, expected in ((0, [0, 0, 50, 60]), (3, [0, 0, 62, 2])):
        policy = f"slack:awt=100,slack_factor={factor}"
        assert starts(Scenario(workload=Workload.from_jobs(jobs), machine=machine, policy=policy).run()) == expected


@pytest.mark.parametrize("site", [None, Site(limits=Limits(partition="a", running_jobs=1))], ids=["", "limits"])
def test_the_average_wait_is_that_in_the_queue_on_the_same_partitions_under_the_same_limits(site: Site | None) -> None:
    machine = Machine(nodes=12, partitions=parts(a="0-5", b="3-8", c="6-11"))

    def table(policy: str, workload: Workload) -> pd.DataFrame:
        return Scenario(workload=workload, machine=machine, policy=policy, site=site).run().jobs

    workload = random_jobs(7)
    conservative = table("conservative", workload)
    held = conservative["held_s"] if site else 0
    measured = table("slack:heuristic=du", workload)  # by that run
    for policy in ("slack:heuristic=du", f"slack:heuristic=du,awt={float((conservative['wait_s'] - held).mean())!r}"):
        pd.testing.assert_frame_equal(table(policy, random_jobs(7)), measured)
    assert not table("slack:heuristic=du,awt=1", workload).equals(measured)
