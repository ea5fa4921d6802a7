"""Hand-worked timelines of equipartition, admission by shrinking and expansion: who has how many nodes when, at what cost."""

from typing import Any

import numpy as np
import pytest

from clustermodel import (
    Checkpointing,
    DowneySpeedup,
    Job,
    Machine,
    NodeType,
    Partition,
    Reservation,
    Result,
    Scenario,
    SpecificationError,
    Workload,
    make_policy,
)
from clustermodel.machine.recorded_outages import Outages
from clustermodel.policies.equipartition import equal_shares
from clustermodel.recording.ledger import Account
from tests.timeline.timeline import spans, spent

Phases = list[tuple[float, float, int]]
TWO = ((0, 4, 10, 1, 4), (5, 4, 10, 1, 4))


def run(policy: str, nodes: int, jobs: tuple[tuple[Any, ...], ...], each: dict[str, Any] | None = None, **more: Any) -> Result:
    """Run jobs: submission, nodes, run time and, if they are malleable, least and largest number of nodes; then a partition."""
    specifications = []
    for number, (submit_s, size, run_s, *rest) in enumerate(jobs, start=1):
        fields = dict(zip(("min_nodes", "max_nodes", "partition"), rest, strict=False))
        malleable = bool(rest)
        job = Job(id=number, submit_s=submit_s, nodes=size, run_s=run_s, malleable=malleable, **fields, **(each or {}))
        specifications.append(job)
    machine = {name: more.pop(name) for name in list(more) if name not in ("speedup", "explain")}
    return Scenario(
        machine=Machine(nodes=nodes, **{"resize_s": 0, **machine}),
        workload=Workload.from_jobs(specifications),
        policy=policy,
        **more,
    ).run()


def phases(result: Result) -> dict[int, Phases]:
    """Return for each job when it had how many nodes."""
    table = result.run_attempts.sort_values(["job", "start_s"])
    return {
        int(job): list(zip(of_job["start_s"], of_job["end_s"], of_job["nodes"], strict=True))
        for job, of_job in table.groupby("job")
    }


@pytest.mark.parametrize(
    ("nodes", "bounds", "shares"),
    [
        (7, [(1, 9)] * 3, [3, 2, 2]),
        (8, [(1, 2), (1, 9), (1, 9)], [2, 3, 3]),
        (8, [(4, 9), (1, 9), (1, 9)], [4, 2, 2]),
        (9, [(1, 2), (2, 3)], [2, 3]),
        (0, [], []),
    ],
)
def test_equal_shares(nodes: int, bounds: list[tuple[int, int]], shares: list[int]) -> None:
    assert equal_shares(nodes, bounds) == shares


def test_two_jobs_share_the_nodes_equally() -> None:
    # 1 executes half on 4 nodes, then half on 2 nodes; 2 does as much on 2 nodes, and the rest on 4.
    result = run("equipartition", 4, TWO)
    assert phases(result) == {1: [(0, 5, 4), (5, 15, 2)], 2: [(5, 15, 2), (15, 20, 4)]}
    assert spent(result, Account.USEFUL) == 80


def test_a_resize_takes_time_on_the_new_nodes() -> None:
    result = run("equipartition", 4, TWO, resize_s=1)
    assert phases(result) == {1: [(0, 5, 4), (5, 16, 2)], 2: [(5, 16, 2), (16, 21.5, 4)]}
    assert spent(result, Account.RESIZE) == 1 * 2 + 1 * 4


def test_without_a_time_of_its_own_a_resize_is_a_checkpoint_and_a_restart() -> None:
    costs = Checkpointing(checkpoint_s=0.25, restart_s=0.75)
    assert spans(run("equipartition", 4, TWO, resize_s=None, checkpointing=costs)) == {1: (0, 16), 2: (5, 21.5)}


def test_rigid_jobs_keep_their_nodes_and_are_admitted_in_order() -> None:
    # At 5, job 2 needs three nodes, and job 1 keeps one.  Job 3 needs two: it waits, and so does job 4 behind it.
    result = run("equipartition", 4, ((0, 4, 10, 1, 4), (5, 3, 4), (6, 2, 1), (7, 1, 1)))
    assert phases(result)[1] == [(0, 5, 4), (5, 10, 1), (10, 13.75, 4)]
    assert spans(result) == {1: (0, 13.75), 2: (5, 9), 3: (9, 10), 4: (9, 10)}


# At 5 + d + 10 job 1 of TWO ends, and job 2 has 10 - d s left on two nodes: d + (10 - d) / 2 on four.


@pytest.mark.parametrize(("cost", "end"), [(3.3, 24.95), (3.4, 25)])
def test_growing_must_pay(cost: float, end: float) -> None:
    assert spans(run("equipartition", 4, TWO, resize_s=cost))[2][1] == pytest.approx(end)


@pytest.mark.parametrize(("gain", "end"), [("0.38", 21.5), ("0.39", 25), ("-inf", 21.5)])
def test_growing_must_gain_a_share_of_the_rest(gain: str, end: float) -> None:
    # 5.5 s instead of 9 s are 38.9 % less.
    assert spans(run(f"equipartition:min_gain={gain}", 4, TWO, resize_s=1))[2][1] == end


def test_without_a_least_gain_a_gang_grows_at_any_cost() -> None:
    assert spans(run("equipartition:min_gain=-inf", 4, TWO, resize_s=8))[2][1] == 23 + 8 + 1


def test_a_gang_is_not_resized_again_within_an_interval() -> None:
    # At 6 job 1 keeps its two nodes, until 9, and job 4 waits.
    jobs = (*TWO, (6, 4, 10, 1, 4), (6, 4, 10, 1, 4))
    result = run("equipartition:min_interval_s=4", 4, jobs)
    assert phases(result)[1] == [(0, 5, 4), (5, 9, 2), (9, 21, 1)]
    assert [span[0] for span in spans(result).values()] == [0, 5, 6, 9]
    assert [span[0] for span in spans(run("equipartition", 4, jobs)).values()] == [0, 5, 6, 6]


def test_a_job_waits_for_the_end_of_a_resize() -> None:
    # Job 1 is being resized from 5 to 8.
    assert spans(run("equipartition", 4, (*TWO, (6, 2, 1)), resize_s=3))[3] == (8, 9)


def test_idle_nodes_are_lent_and_taken_back() -> None:
    result = run("expand", 4, ((0, 2, 10, 1, 4), (3, 2, 10, 1, 4)))
    assert phases(result) == {1: [(0, 3, 4), (3, 7, 2)], 2: [(3, 7, 2), (7, 10, 4)]}
    result = run("expand", 4, ((0, 2, 10, 1, 4), (3, 2, 10, 1, 4)), resize_s=1)
    assert phases(result) == {1: [(0, 3, 4), (3, 8, 2)], 2: [(3, 8, 2), (8, 11.5, 4)]}


def test_plans_count_lent_nodes_as_idle() -> None:
    # At 2, job 1 would end at 8 without its lent nodes: job 3 ends before, and does not delay job 2.
    result = run("expand", 4, ((0, 2, 10, 1, 4), (1, 3, 5), (2, 2, 3)))
    assert phases(result)[1] == [(0, 2, 4), (2, 5, 2), (5, 6.5, 4)]
    assert spans(result) == {1: (0, 6.5), 2: (6.5, 11.5), 3: (2, 5)}


@pytest.mark.parametrize(("order", "nodes"), [("age", [3, 4]), ("efficiency", [2, 5])])
def test_who_gets_an_idle_node(order: str, nodes: list[int]) -> None:
    # With Downey's speedup the efficiency of job 1 falls to 83 % on a third node, that of job 2 to 92 % on a fifth.
    result = run(f"expand:order={order}", 7, ((0, 2, 10, 1, 7), (0, 4, 10, 1, 7)), speedup=DowneySpeedup())
    assert [first[0][2] for first in phases(result).values()] == nodes


def test_a_blocked_head_is_admitted_by_shrinking() -> None:
    jobs = ((0, 4, 10, 1, 4), (3, 2, 10, 1, 4))
    for order in ("fcfs", "easy"):
        result = run(f"shrink-to-admit:order={order}", 4, jobs)
        assert phases(result) == {1: [(0, 3, 4), (3, 13, 2), (13, 15, 4)], 2: [(3, 13, 2)]}
    assert spans(run("shrink-to-admit:expand=no", 4, jobs, resize_s=1)) == {1: (0, 18), 2: (3, 13)}


@pytest.mark.parametrize(
    ("parameters", "ends"),
    [("fewer=true", [17, 20]), ("expand=no", [17, 23]), ("expand=asked", [17, 20]), ("fewer=false", [10, 20])],
)
def test_a_malleable_head_starts_on_fewer_nodes(parameters: str, ends: list[float]) -> None:
    # Job 1 has to keep two of four nodes, and job 2, which asked for four, starts on the others.
    result = run(f"shrink-to-admit:{parameters}", 4, ((0, 4, 10, 2, 4), (3, 4, 10, 1, 4)))
    assert [span[1] for span in spans(result).values()] == ends


@pytest.mark.parametrize(("victim", "job"), [("efficiency", 2), ("longest", 2), ("latest", 2), ("largest", 1)])
def test_who_gives_up_nodes(victim: str, job: int) -> None:
    # Equally large and equally efficient: job 2 started later and takes longer.
    jobs = ((0, 2, 10, 1, 4), (1, 2, 20, 1, 4), (2, 1, 1))
    result = run(f"shrink-to-admit:expand=no,victim={victim}", 4, jobs)
    assert [number for number, of_job in phases(result).items() if of_job[-1][2] == 1 and number < 3] == [job]


def test_others_are_backfilled_behind_a_head_that_cannot_be_admitted() -> None:
    jobs = ((0, 3, 10), (1, 4, 5), (2, 1, 3))
    assert spans(run("shrink-to-admit:order=easy", 4, jobs))[3] == (2, 5)
    assert spans(run("shrink-to-admit:order=fcfs", 4, jobs))[3] == (15, 18)


PARTITIONS = (Partition(name="a", nodes="0-1"), Partition(name="b", nodes="2-3"), Partition(name="c", nodes="0-3"))


@pytest.mark.parametrize(("policy", "partition"), [("equipartition", "a"), ("shrink-to-admit", "a"), ("expand", "b")])
def test_nodes_are_given_up_that_the_waiting_job_may_have(policy: str, partition: str) -> None:
    jobs = ((0, 2, 10, 1, 4, "c"), (2, 2, 10, 2, 2, partition))
    result = run(policy, 4, jobs, partitions=PARTITIONS)
    assert phases(result)[1] == [(0, 2, 4), (2, 8, 2)]
    assert phases(result)[2] == [(2, 12, 2)]


@pytest.mark.parametrize("policy", ["equipartition", "shrink-to-admit", "expand"])
def test_no_job_grows_into_a_reservation(policy: str) -> None:
    reserved = Reservation(nodes="2-3", start_s=8, end_s=20)
    assert phases(run(policy, 4, ((0, 2, 10, 1, 4),), reservations=reserved)) == {1: [(0, 10, 2)]}


@pytest.mark.parametrize("policy", ["equipartition", "shrink-to-admit", "expand"])
def test_a_job_that_a_failure_has_shrunk_grows_again(policy: str) -> None:
    # Nothing of the 20 node-seconds is saved: 3 nodes do 12 of 36 until the node is repaired, 4 nodes the rest.
    outage = Outages(node=np.array([3]), down_s=np.array([5.0]), up_s=np.array([9.0]), nodes=4)
    result = run(policy, 4, ((0, 4, 9, 1, 4),), failures=outage, on_failure="shrink")
    assert phases(result) == {1: [(0, 5, 4), (5, 9, 3), (9, 15, 4)]}
    assert spent(result, Account.LOST) == 20


@pytest.mark.parametrize("policy", ["equipartition", "shrink-to-admit", "expand"])
def test_a_job_can_start_on_more_nodes_than_it_asked_for(policy: str) -> None:
    result = run(policy, 4, ((0, 2, 10, 1, 3),), resize_s=1)
    assert phases(result) == {1: [(0, pytest.approx(20 / 3, abs=1e-6), 3)]}
    assert not spent(result, Account.RESIZE)


@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        ("equipartition", "admitted in queue order: all running jobs can have their least number of nodes"),
        ("expand", "as under EASY: it fits into idle and lent nodes, and delays no reservation"),
        ("shrink-to-admit", "head of the queue: running jobs gave up nodes for it"),
    ],
)
def test_starts_are_explained(policy: str, rule: str) -> None:
    result = run(policy, 4, ((0, 2, 10, 1, 4), (3, 2, 10, 1, 4)), explain=True)
    assert result.explain(2).rule == rule
    assert spans(result)[2][0] == 3


@pytest.mark.parametrize(
    ("policy", "machine", "message"),
    [
        ("equipartition", {"node_types": NodeType(name="fast", nodes="0", speed=2)}, "where nodes differ in speed"),
        (
            "expand",
            {"checkpointing": Checkpointing(restart_charge="every-decision")},
            "where restarts are charged again and again",
        ),
        ("expand", {"resize_s": None, "checkpointing": Checkpointing(max_tasks_per_slice=0)}, "where the store takes no tasks"),
    ],
)
def test_machines_that_resize_no_gangs(policy: str, machine: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecificationError, match=f"^policy {policy}: not allowed {message}.*: gangs cannot be resized there$"):
        run(policy, 2, ((0, 1, 1),), **machine)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("equipartition:min_gain=1", "equipartition: min_gain: 1 is not allowed; it must be a number < 1"),
        ("expand:min_interval_s=-1", "expand: min_interval_s: -1 is not allowed"),
        ("expand:order=size", "expand: order: 'size' is not allowed; it must be one of efficiency, age"),
        ("shrink-to-admit:order=sjf", "shrink-to-admit: order: 'sjf' is not allowed; it must be one of fcfs, easy"),
        ("shrink-to-admit:victim=x", "shrink-to-admit: victim: 'x' is not allowed; it must be one of efficiency, longest"),
        ("shrink-to-admit:expand=x", "shrink-to-admit: expand: 'x' is not allowed; it must be one of most, asked, no"),
        ("shrink-to-admit:fewer=x", "shrink-to-admit: fewer: 'x' is not allowed"),
        ("equipartition:predictor=x", "equipartition: predictor: 'x' is not allowed"),
    ],
)
def test_parameters_that_are_not_allowed(policy: str, message: str) -> None:
    with pytest.raises(SpecificationError, match=f"^{message}"):
        make_policy(policy)
