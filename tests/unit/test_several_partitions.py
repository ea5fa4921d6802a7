"""Jobs that name several partitions: in which one they run, where they hold reservations, and what is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from clustermodel import (
    DecisionError,
    Job,
    Machine,
    NodeType,
    Partition,
    Reservation,
    Result,
    Scenario,
    TimeSlicing,
    Workload,
)
from clustermodel.policies.interface import Migrate, Place, PolicyFunction, Resize, Rows, Start
from clustermodel.policies.view import QueuedJob, View
from clustermodel.sim import partitions as of_machine
from clustermodel.sim.partitions import Partitions
from clustermodel.workload.job import NO_DEMANDS
from tests.unit.test_partitions import job, nodes_of, parts, starts

HALVES = parts(a="0-1", b="2-3")


def run(jobs: list[Job], partitions: list[Partition], *, nodes: int, policy: Any = "easy", **fields: Any) -> Result:
    machine = Machine(nodes=nodes, partitions=partitions, **fields)
    return Scenario(workload=Workload.from_jobs(jobs), machine=machine, policy=policy, history=True).run()


PLANNING = (
    "fcfs", "easy", "easy:reserve_depth=2", "easy:reservation=kept", "easy:backfill_order=shortest", "conservative", "bf",
    "backfilling", "D", "slack:awt=20", "pv-easy:slp=false", "pv-easy:vb=false,slp=false", "gs:mpl=1", "bgs:mpl=1", "mgs:mpl=1",
    "mbgs:mpl=1", "adaptive:mpl=1", "shrink-to-admit", "expand", "equipartition",
)  # fmt: skip


@pytest.mark.parametrize("policy", PLANNING)
def test_a_job_waits_for_enough_nodes_of_one_partition(policy: str) -> None:
    # Nodes 1 and 3 are idle until 100, one of each.
    jobs = [job(1, 0, 1, 100, "a"), job(2, 0, 1, 300, "b"), job(3, 1, 2, 50, "a,b")]
    result = run(jobs, HALVES, nodes=4, policy=policy)
    assert starts(result) == [0, 0, 100]
    assert nodes_of(result, 3) == {0, 1}


@pytest.mark.parametrize("policy", PLANNING)
def test_limits_of_a_partition_leave_out_that_one_only(policy: str) -> None:
    # Job 1 is too long for short, job 4 too large for either of them, and job 5 for a partition with a limit of its size.
    partitions = [
        Partition(name="short", nodes="0-1", max_wall_time_s=100),
        Partition(name="long", nodes="2-3"),
        Partition(name="narrow", nodes="4-5", max_nodes=1),
    ]
    jobs = [
        job(1, 0, 2, 500, "short,long"),
        job(2, 1, 2, 50, "short,long"),
        job(3, 2, 2, 50, "long"),
        job(4, 3, 3, 50, "short,long"),
        job(5, 4, 2, 50, "narrow,long,short"),
    ]
    result = run(jobs, partitions, nodes=6, policy=policy)
    assert result.jobs["status"].tolist() == ["completed"] * 3 + ["rejected", "completed"]
    assert [start for start in starts(result) if start == start] == [0, 1, 500, 51]  # noqa: PLR0124  without NaN
    assert (nodes_of(result, 1), nodes_of(result, 2), nodes_of(result, 5)) == ({2, 3}, {0, 1}, {0, 1})


@pytest.mark.parametrize("policy", PLANNING)
@pytest.mark.parametrize(
    ("named", "priorities", "expected"), [("a,b", (0, 0), 0), ("b,a", (0, 0), 2), ("a,b", (1, 2), 2), ("b,a", (2, 1), 0)]
)
def test_partitions_are_tried_by_priority_and_then_as_named(
    policy: str, named: str, priorities: tuple[int, int], expected: int
) -> None:
    partitions = [
        Partition(name=name, nodes=nodes, priority=priority)
        for name, nodes, priority in zip("ab", ("0-1", "2-3"), priorities, strict=True)
    ]
    assert nodes_of(run([job(1, 0, 1, 10, named)], partitions, nodes=4, policy=policy), 1) == {expected}


@pytest.mark.parametrize("policy", ["easy", "conservative", "easy:reservation=kept", "bf", "slack:awt=20"])
def test_a_reservation_is_in_the_partition_in_which_it_is_earliest(policy: str) -> None:
    # Job 3 holds a reservation in b, at 50, and job 4 would delay it in a; of equal starts, job 3 of the second run has a.
    jobs = [job(1, 0, 1, 100, "a"), job(2, 0, 2, 50, "b"), job(3, 1, 2, 50, "a,b"), job(4, 2, 1, 500, "a")]
    result = run(jobs, HALVES, nodes=4, policy=policy)
    assert starts(result) == [0, 0, 50, 2]
    assert nodes_of(result, 3) == {2, 3}
    jobs = [job(1, 0, 2, 50, "a"), job(2, 0, 2, 50, "b"), job(3, 1, 2, 50, "b,a")]
    assert nodes_of(run(jobs, HALVES, nodes=4, policy=policy), 3) == {2, 3}


@pytest.mark.parametrize("policy", ["easy", "conservative", "bf", "mbgs:mpl=1", "slack:awt=200"])
def test_a_reservation_moves_to_another_partition_where_a_job_ends_early(policy: str) -> None:
    jobs = [job(1, 0, 2, 50, "a"), job(2, 0, 2, 20, "b", estimate_s=100), job(3, 1, 2, 50, "a,b")]
    result = run(jobs, HALVES, nodes=4, policy=policy)
    assert starts(result) == [0, 0, 20]
    assert nodes_of(result, 3) == {2, 3}
    if not policy.startswith("slack"):
        assert result.jobs["reserved_s"].tolist()[2] == 50


@pytest.mark.parametrize("policy", ["fcfs", "gs:mpl=1", "shrink-to-admit:order=fcfs"])
def test_first_come_first_served_a_job_waits_in_all_its_partitions(policy: str) -> None:
    # Job 3 has b at 50.  Until then jobs 4 and 5 must not take the idle nodes of a and b, and job 6 of c does not wait.
    partitions = parts(a="0-1", b="2-3", c="4-4")
    jobs = [
        job(1, 0, 1, 100, "a"),
        job(2, 0, 1, 50, "b"),
        job(3, 1, 2, 10, "a,b"),
        job(4, 2, 1, 10, "a"),
        job(5, 3, 1, 10, "b"),
        job(6, 4, 1, 10, "b,c"),
    ]
    assert starts(run(jobs, partitions, nodes=5, policy=policy)) == [0, 0, 50, 50, 60, 4]


@pytest.mark.parametrize("policy", ["fcfs", "gs:mpl=1", "shrink-to-admit:order=fcfs", "easy"])
def test_a_job_does_not_wait_behind_one_that_waits_for_its_other_partition(policy: str) -> None:
    # Node 1 is idle, and job 2 waits for it.
    jobs = [job(1, 0, 1, 100, "a"), job(2, 1, 2, 50, "a"), job(3, 2, 1, 200, "a,b")]
    result = run(jobs, HALVES, nodes=4, policy=policy)
    assert starts(result)[:3] == [0, 100, 2]
    assert nodes_of(result, 3) == {2}


@pytest.mark.parametrize("policy", ["easy", "conservative", "slack:awt=20", "pv-easy:slp=false", "mbgs:mpl=1", "expand"])
def test_reservations_of_the_machine_close_one_partition_only(policy: str) -> None:
    # Node 1 is kept free from 10 on: job 2 would reach into that in a, and waits for b.
    jobs = [job(1, 0, 2, 5, "b"), job(2, 1, 2, 20, "a,b"), job(3, 1, 2, 4, "a,b")]
    result = run(jobs, HALVES, nodes=4, policy=policy, reservations=[Reservation(nodes="1", start_s=10, end_s=100)])
    assert starts(result) == [0, 5, 1]
    assert (nodes_of(result, 2), nodes_of(result, 3)) == ({2, 3}, {0, 1})


def test_types_of_nodes_narrow_each_partition() -> None:
    types = [NodeType(name="x", nodes="1-3", features=["ib"])]
    result = run([job(1, 0, 2, 10, "a,b", features="ib")], HALVES, nodes=4, node_types=types)
    assert nodes_of(result, 1) == {2, 3}
    result = run([job(1, 0, 3, 10, "a,b", features="ib")], parts(a="0-2", b="1-3"), nodes=4, node_types=types)
    assert nodes_of(result, 1) == {1, 2, 3}
    rejected = run([job(1, 0, 2, 10, "a,c", features="ib")], parts(a="0-1", c="0-0"), nodes=4, node_types=types)
    assert rejected.jobs["status"].tolist() == ["rejected"]


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "slack:awt=20"])
def test_processors_of_one_partition(policy: str) -> None:
    # Two processors on each of two nodes: one of a is busy.
    jobs = [job(1, 0, 1, 10, "a"), job(2, 1, 4, 10, "a,b", processors_per_node=2), job(3, 1, 4, 10, "b,a", max_nodes_used=2)]
    result = run(jobs, HALVES, nodes=4, policy=policy, processors_per_node=2)
    assert starts(result) == [0, 1, 10]
    assert (nodes_of(result, 2), nodes_of(result, 3)) == ({4, 5, 6, 7}, {0, 1, 2, 3})


# Preemption.


@pytest.mark.parametrize("policy", ["srtf:mode=kill", "srtf:mode=checkpoint", "fifo-preempt:mode=checkpoint"])
def test_a_preempted_job_goes_on_in_another_partition(policy: str) -> None:
    jobs = [job(1, 0, 2, 50, "a,b"), job(2, 5, 2, 10, "a", priority=1)]
    table = run(jobs, HALVES, nodes=4, policy=policy).placements
    assert table[["job", "begin_s", "first_node", "nodes"]].sort_values(["job", "begin_s"]).to_numpy().tolist() == [
        [1, 0, 0, 2],
        [1, 5, 2, 2],
        [2, 5, 0, 2],
    ]


@pytest.mark.parametrize("victim", ["order", "least-lost", "latest-start", "largest"])
@pytest.mark.parametrize(("named", "stopped"), [("b,a", {3}), ("a,b", {1, 2})])
def test_jobs_of_one_partition_yield(victim: str, named: str, stopped: set[int]) -> None:
    # Jobs 1 and 2 have a node of a each, job 3 all of b; job 4 preempts those of the partition that it names first.
    jobs = [job(1, 0, 1, 50, "a"), job(2, 0, 1, 50, "a"), job(3, 0, 2, 50, "b"), job(4, 5, 2, 10, named, priority=1)]
    result = run(jobs, HALVES, nodes=4, policy=f"fifo-preempt:victim={victim}")
    attempts = result.run_attempts
    assert set(attempts[attempts["end_s"] == 5]["job"]) == stopped
    assert starts(result)[3] == 5


@pytest.mark.parametrize("policy", ["fifo-preempt", "fifo-preempt:victim=largest", "pv-easy", "ss:sf=1.1,interval_s=1"])
def test_nobody_yields_where_another_partition_is_free(policy: str) -> None:
    jobs = [job(1, 0, 2, 50, "a"), job(2, 5, 2, 10, "a,b", priority=1)]
    result = run(jobs, HALVES, nodes=4, policy=policy)
    assert starts(result) == [0, 5]
    assert len(result.run_attempts) == 2
    assert nodes_of(result, 2) == {2, 3}


def test_pv_easy_preempts_in_one_partition() -> None:
    # Jobs 2 and 3, of lower priority, have all of b and a node of a; only the first can give up enough for job 4.
    jobs = [
        job(1, 0, 1, 50, "a", priority=2),
        job(2, 0, 2, 50, "b"),
        job(3, 0, 1, 50, "a"),
        job(4, 5, 2, 10, "a,b", priority=1),
    ]
    result = run(jobs, HALVES, nodes=4, policy="pv-easy:mode=checkpoint")
    attempts = result.run_attempts
    assert set(attempts[attempts["end_s"] == 5]["job"]) == {2}
    assert (starts(result)[3], nodes_of(result, 4)) == (5, {2, 3})


@pytest.mark.parametrize("mode", ["kill", "checkpoint", "suspend"])
def test_an_urgent_gang_has_columns_of_the_partition_with_the_fewest_gangs(mode: str) -> None:
    jobs = [job(1, 0, 1, 50, "a"), job(2, 0, 1, 50, "a"), job(3, 0, 2, 50, "b"), job(4, 5, 2, 10, "a,b", priority=1)]
    slicing = TimeSlicing(quantum_s=10, mpl=1)
    result = run(jobs, HALVES, nodes=4, policy=f"bgs:urgent={mode}", time_slicing=slicing)
    attempts = result.run_attempts
    assert set(attempts[attempts["end_s"] == 5]["job"]) == {3}


# Resizing.


@pytest.mark.parametrize("policy", ["expand", "shrink-to-admit", "equipartition"])
def test_a_malleable_job_grows_within_its_partition(policy: str) -> None:
    jobs = [job(1, 0, 1, 20, "a,b", malleable=True, min_nodes=1, max_nodes=4), job(2, 0, 1, 10, "b")]
    result = run(jobs, HALVES, nodes=4, policy=policy)
    assert nodes_of(result, 1) == {0, 1}


def test_jobs_give_up_nodes_of_the_first_partition_that_has_enough_then() -> None:
    # Job 1 could give up one node of a, job 2 two of b.
    jobs = [
        job(1, 0, 2, 20, "a", malleable=True, min_nodes=1, max_nodes=2),
        job(2, 0, 3, 20, "b", malleable=True, min_nodes=1, max_nodes=3),
        job(3, 5, 2, 10, "a,b"),
    ]
    result = run(jobs, parts(a="0-1", b="2-4"), nodes=5, policy="shrink-to-admit:expand=no,order=fcfs")
    assert starts(result) == [0, 0, 5]
    assert nodes_of(result, 3) == {3, 4}


# The mechanism.


def decided(decide: Callable[[View], Any], *jobs: Job, **fields: Any) -> Result:
    made = PolicyFunction("mine", lambda _setup: lambda _batch, view: decide(view))
    policy = type("Mine", (PolicyFunction,), {"takes_partitions": True, "takes_resizes": True})("mine", made.function)
    machine = Machine(nodes=4, partitions=HALVES, **fields)
    return Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy=policy).run()


def first(view: View) -> QueuedJob:
    return next(iter(view.waiting.values()))


def test_without_columns_a_job_starts_in_the_first_partition_that_has_enough_idle_nodes() -> None:
    def decide(view: View) -> list[Start]:
        return [Start(job=each) for each in view.waiting.values()]

    jobs = [job(1, 0, 1, 10, "a,b"), job(2, 1, 2, 10, "a,b"), job(3, 2, 1, 10, "b,a")]
    result = decided(decide, *jobs)
    assert starts(result) == [0, 1, 2]
    assert [nodes_of(result, number) for number in (1, 2, 3)] == [{0}, {2, 3}, {1}]


def test_a_view_says_where_a_job_would_be() -> None:
    seen = list[Any]()

    def decide(view: View) -> list[Start]:
        seen.extend((each.alternatives, each.allowed, view.fits(each)) for each in view.waiting.values())
        return [Start(job=each) for each in view.waiting.values() if view.fits(each)]

    decided(decide, job(1, 0, 1, 10, "b,a"), job(2, 1, 2, 10, "b,a"), job(3, 2, 1, 5, "a"))
    assert seen[:3] == [
        (((2, 4), (0, 2)), (0, 4), (2, 3)),
        (((2, 4), (0, 2)), (0, 4), (0, 2)),
        ((), (0, 2), None),
    ]


ACROSS = "it may have those of one of its partitions (0-1; 2-3) only"


@pytest.mark.parametrize(
    ("decide", "message"),
    [
        (lambda view: [Start(job=first(view), columns=(1, 3))], f"policy mine: job 1 cannot start on nodes 1-2: {ACROSS}"),
        (lambda view: [Start(job=first(view), nodes=3)], "policy mine: job 1 cannot start: "),
        (
            lambda view: [Rows(places=(Place(first(view), (1, 3), (0,)),))],
            f"policy mine: job 1 cannot run on nodes 1-2: {ACROSS}",
        ),
    ],
)
def test_a_start_across_partitions_is_refused(decide: Callable[[View], Any], message: str) -> None:
    with pytest.raises(DecisionError) as problem:
        decided(decide, job(1, 0, 2, 10, "a,b", malleable=True, max_nodes=4), time_slicing=TimeSlicing(quantum_s=5, mpl=2))
    assert str(problem.value).startswith(message)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda one: Migrate(moves=((one, (1, 3)),)),
        lambda one: Rows(places=(Place(one, (1, 3), (0,)),)),
        lambda one: Resize(job=one, columns=(0, 3)),
        lambda one: Resize(job=one, nodes=3),
    ],
)
def test_a_running_job_stays_in_one_partition(change: Callable[[QueuedJob], Any]) -> None:
    in_rows = isinstance(change(QueuedJob(1, 2, 0, 1, 1, 1, 0)), Rows)

    def decide(view: View) -> list[Any]:
        if not view.waiting:
            return [change(gang.job) for gang in view.running.values()]
        one = next(iter(view.waiting.values()))
        if 1 in view.running:
            return [change(view.running[1].job)]
        return [Rows(places=(Place(one, (0, 2), (0,)),))] if in_rows else [Start(job=one)]

    sizes = {} if in_rows else {"malleable": True, "min_nodes": 1, "max_nodes": 4}
    slicing = {"time_slicing": TimeSlicing(quantum_s=5, mpl=2)} if in_rows else {}
    with pytest.raises(DecisionError, match=r"^policy mine: job 1 .*(those of one of its partitions|to 3 nodes)"):
        decided(decide, job(1, 0, 2, 10, "a,b", **sizes), job(2, 1, 1, 1, "b"), **slicing)


# What partitions say.


def test_sets_of_which_another_one_has_all_nodes_are_not_tried() -> None:
    partitions = [
        *parts(a="0-3", b="0-3", c="1-2", d="2-5", e="6-7"),
        Partition(name="f", nodes="4-7", priority=3, max_wall_time_s=5),
        Partition(name="all", nodes="0-7"),
    ]
    machine = Machine(nodes=8, partitions=partitions)
    named = {1: "a,b", 2: "c,a", 3: "d,a,c", 4: "a,f,d", 5: "a,f,d", 6: "all,a", 7: "e,c,a", 8: "none", 9: "c,e"}
    known = Partitions(machine, NO_DEMANDS)

    def of(number: int, nodes: int = 2, estimate_s: float = 1) -> of_machine.Place | None:
        return known.of(Job(id=number, submit_s=0, nodes=nodes, run_s=estimate_s, partition=named[number]).row())

    assert of(1) == of(2) == of_machine.Place((0, 4))
    assert of(3) == of_machine.Place((0, 6), ((2, 6), (0, 4)))
    assert of(4) == of_machine.Place((0, 8), ((4, 8), (0, 4), (2, 6)), 3)
    assert of(5, estimate_s=6) == of_machine.Place((0, 6), ((0, 4), (2, 6)))
    assert of(6) == of_machine.ANYWHERE
    assert of(7, nodes=3) == of_machine.Place((0, 4))
    assert of(7, nodes=5) is None
    assert of(8) is None
    assert of(9, nodes=1) == of_machine.Place((1, 3, 6, 8), ((1, 3), (6, 8)))
