"""Partitions: which nodes jobs get, whom they delay, and that plans over pools are those of one machine where there is one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel import Job, Limits, Machine, NodeFailures, Partition, Reservation, Result, Scenario, Site, Workload
from clustermodel.plans.pools import Pools
from clustermodel.policies.backfilling.cycle import SchedulingCycle
from clustermodel.policies.backfilling.guarantees import EveryJob
from clustermodel.policies.backfilling.scheduler import Backfilling
from clustermodel.policies.interface import PolicyFunction
from clustermodel.policies.registry import make_policy, policy_names
from tests.conftest import refusal
from tests.property.strategies import cases

KNOWN = ("fcfs", "easy", "conservative", "bf", "slack:awt=20,slack_factor=0")


def parts(**nodes: Any) -> list[Partition]:
    return [Partition(name=name, nodes=given) for name, given in nodes.items()]


def job(number: int, submit_s: float, nodes: int, run_s: float, partition: str | None, **fields: Any) -> Job:
    return Job(id=number, submit_s=submit_s, nodes=nodes, run_s=run_s, partition=partition, **fields)


def run(jobs: list[Job], partitions: list[Partition], nodes: int = 8, policy: Any = "easy", **fields: Any) -> Result:
    machine = Machine(nodes=nodes, partitions=partitions, **fields)
    return Scenario(workload=Workload.from_jobs(jobs), machine=machine, policy=policy).run()


def starts(result: Result) -> list[float]:
    return list(result.jobs["start_s"])


def nodes_of(result: Result, number: int) -> set[int]:
    table = result.placements
    own = table[table["job"] == number]
    return {node for low, count in zip(own["first_node"], own["nodes"], strict=True) for node in range(low, low + count)}


@pytest.mark.parametrize("policy", KNOWN)
def test_jobs_run_on_nodes_of_their_partition_only(policy: str) -> None:
    result = run([job(1, 0, 2, 10, "b"), job(2, 0, 2, 10, "a"), job(3, 0, 3, 10, "b")], parts(a="0-3", b="4-7"), policy=policy)
    assert nodes_of(result, 1) == {4, 5}
    assert nodes_of(result, 2) == {0, 1}
    assert starts(result) == [0, 0, 10]


@pytest.mark.parametrize("policy", KNOWN)
def test_a_full_partition_blocks_no_other_one(policy: str) -> None:
    jobs = [job(1, 0, 4, 100, "a"), job(2, 1, 4, 100, "a"), job(3, 2, 4, 10, "b")]
    assert starts(run(jobs, parts(a="0-3", b="4-7"), policy=policy)) == [0, 100, 2]


def test_the_first_job_of_a_partition_is_not_delayed_for_those_of_another_one_that_shares_its_nodes() -> None:
    # Nodes 4 and 5 are in both.  Job 2 waits for all of b until 100; job 3 of a may not take the shared nodes beyond that.
    # Job 4 would delay job 3, the first of a, and job 5 does not: it ends by 150.
    jobs = [
        job(1, 0, 4, 100, "b"),
        job(2, 1, 6, 50, "b"),
        job(3, 2, 6, 200, "a"),
        job(4, 3, 4, 500, "a"),
        job(5, 4, 4, 100, "a"),
    ]
    easy = run(jobs, parts(a="0-5", b="4-9"), nodes=10)
    assert starts(easy) == [0, 100, 150, 350, 4]
    assert nodes_of(easy, 5) == {0, 1, 2, 3}
    assert list(easy.jobs["reserved_s"].dropna()) == [100, 150, 350]


def test_nodes_that_no_other_partition_has_are_taken_first() -> None:
    result = run([job(1, 0, 3, 10, "a"), job(2, 0, 4, 10, "b")], parts(a="0-5", b="3-7"))
    assert nodes_of(result, 1) == {0, 1, 2}
    assert starts(result) == [0, 0]
    # A job of more nodes than these takes shared ones too.
    assert nodes_of(run([job(1, 0, 4, 10, "a")], parts(a="0-5", b="3-7")), 1) == {0, 1, 2, 3}


def test_a_job_may_name_several_partitions() -> None:
    # Job 1 is too large for either of them, job 2 has nodes of the first one, and job 3 of the one that has enough.
    jobs = [job(1, 0, 6, 10, "a,b"), job(2, 0, 2, 10, "b,a"), job(3, 0, 3, 10, "b,a")]
    result = run(jobs, parts(a="0-3", b="4-7"))
    assert list(result.jobs["status"]) == ["rejected", "completed", "completed"]
    assert nodes_of(result, 2) == {4, 5}
    assert nodes_of(result, 3) == {0, 1, 2}


def test_backfilling_in_a_partition_ends_by_the_shadow_time_or_takes_other_nodes() -> None:
    jobs = [
        job(1, 0, 3, 100, "a"),
        job(2, 1, 4, 50, "a"),  # blocked until 100
        job(3, 2, 1, 98, "a"),  # ends by then
        job(4, 3, 1, 98, "b"),  # of b alone
        job(5, 4, 1, 500, "a,b"),  # may have a node of b, too
    ]
    result = run(jobs, parts(a="0-3", b="4-7"))
    assert starts(result) == [0, 100, 2, 3, 4]
    assert nodes_of(result, 5) <= {4, 5, 6, 7}
    assert list(result.jobs["reserved_s"].dropna()) == [100]


def test_first_come_first_served_keeps_nodes_idle_for_the_first_job_of_those_who_may_have_them() -> None:
    jobs = [
        job(1, 0, 3, 100, "a"),
        job(2, 1, 4, 50, "a"),
        job(3, 2, 1, 10, "a"),
        job(4, 3, 1, 10, "b"),
        job(5, 4, 2, 10, "a,b"),
    ]
    assert starts(run(jobs, parts(a="0-3", b="4-7"), policy="fcfs")) == [0, 100, 150, 3, 4]


def test_limits_priority_and_default_of_partitions() -> None:
    partitions = [
        Partition(name="debug", nodes="0-1", max_wall_time_s=30, priority=1),
        Partition(name="batch", nodes="0-7", max_nodes=6, default=True),
    ]
    jobs = [
        job(1, 0, 6, 100, None),  # the default
        job(2, 0, 7, 10, "batch"),  # too wide
        job(3, 0, 1, 60, "debug"),  # too long
        job(4, 0, 1, 60, "debug,batch"),  # not too long for batch
        job(5, 0, 1, 10, "other"),  # there is no such partition
        job(6, 50, 4, 10, "batch"),
        job(7, 60, 2, 10, "debug"),  # submitted later, of higher priority
    ]
    result = run(jobs, partitions, policy="fcfs")
    assert list(result.jobs["status"]) == [
        "completed", "rejected", "rejected", "completed", "rejected", "completed", "completed"
    ]  # fmt: skip
    start = dict(zip(result.jobs["job"], starts(result), strict=True))
    assert (start[1], start[4], start[7], start[6]) == (0, 0, 60, 100)


@pytest.mark.parametrize("policy", ["easy", "easy:reserve_depth=2", "conservative"])
@pytest.mark.parametrize("of", ["nobody", "job", "partition"])
def test_a_higher_priority_displaces_reservations_on_shared_nodes_as_on_one_pool(of: str, policy: str) -> None:
    # Job 2 is reserved for 100 s on nodes 2-5; job 3 needs nodes 0-3, and comes before it by its priority.
    jobs = [job(1, 0, 4, 100, "a"), job(2, 1, 4, 30, "b"), job(3, 2, 4, 50, "a", priority=int(of == "job"))]
    partitions = [Partition(name="a", nodes="0-3", priority=int(of == "partition")), Partition(name="b", nodes="2-5")]
    expected = [0, 100, 130] if of == "nobody" or policy == "conservative" else [0, 150, 100]
    assert starts(run(jobs, partitions, nodes=6, policy=policy)) == expected
    if of != "partition":
        assert starts(run(jobs, [], nodes=4, policy=policy)) == expected


def test_a_job_without_a_partition_may_have_all_nodes() -> None:
    result = run([job(1, 0, 8, 10, None), job(2, 0, 2, 10, "a")], parts(a="0-3"), policy="conservative")
    assert starts(result) == [0, 10]


def test_reservations_move_up_when_jobs_end_early() -> None:
    jobs = [job(1, 0, 4, 50, "a", estimate_s=100), job(2, 1, 4, 50, "a"), job(3, 2, 4, 50, "a")]
    result = run(jobs, parts(a="0-3", b="4-7"), policy="conservative")
    assert starts(result) == [0, 50, 100]
    assert list(result.jobs["reserved_s"].dropna()) == [100, 150]


def test_jobs_that_outlive_their_estimates_and_nodes_that_fail_delay_reservations() -> None:
    jobs = [job(1, 0, 4, 200, "a", estimate_s=100), job(2, 1, 4, 50, "a"), job(3, 2, 2, 50, "a,b")]
    result = run(jobs, parts(a="0-3", b="4-7"), kill_at_estimate=False)
    assert starts(result) == [0, 200, 2]
    machine = Machine(nodes=8, partitions=parts(a="0-5", b="3-7"), failures=NodeFailures(mtbf_s=2000, repair_s=100))
    rng = np.random.default_rng(2)
    many = [job(n, float(n * 20), int(rng.integers(1, 5)), 60, str(rng.choice(["a", "b", "a,b"]))) for n in range(1, 200)]
    for policy in KNOWN:
        failing = Scenario(workload=Workload.from_jobs(many), machine=machine, policy=policy).run()
        assert failing.summary().failed_attempts > 0
        assert (failing.jobs["status"] == "completed").all()


TAKES = [name for name in policy_names() if getattr(make_policy(name), "takes_partitions", False)]


OTHER = PolicyFunction("other", lambda _setup: lambda _batch, _view: [])
"""A policy of a user, which knows no rules of a site."""


def test_a_policy_that_does_not_say_that_it_knows_them_refuses_partitions() -> None:
    message = refusal(lambda: run([job(1, 0, 1, 1, "a")], parts(a="0-3"), policy=OTHER))
    hint = "a class with takes_partitions = True knows them"
    assert message == f"policy other: not allowed on a machine with partitions; {hint}"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Partition(name="", nodes="0"), "Partition.name: '' is not allowed; it must be a text without commas"),
        (lambda: Partition(name="a", nodes="0-"), "Partition.nodes: '0-' is not allowed; they must be a text as '0-59,62'"),
        (lambda: Partition(name="a", nodes=[]), "Partition.nodes: [] is not allowed"),
        (lambda: Partition(name="a", nodes=[-1]), "Partition.nodes: -1 is not allowed; it must be an integer >= 0"),
        (lambda: Machine(nodes=4, partitions=parts(a="0-4")), "Machine.partitions: a: nodes: '0-4' is not allowed"),
        (lambda: Machine(nodes=4, partitions=parts(a="0") * 2), "Machine.partitions: a: 'a' is not allowed; another one has"),
    ],
)
def test_what_is_not_allowed(make: Any, message: str) -> None:
    assert refusal(make).startswith(message)


@pytest.mark.parametrize(
    ("one_job", "partitions", "fields"),
    [
        (job(1, 0, 1, 1, "a"), parts(a="0-3"), {}),
        (job(1, 0, 1, 1, None), [], {"reservations": Reservation(start_s=100, end_s=200)}),
        (job(1, 0, 1, 1, None, max_nodes_used=1), [], {"processors_per_node": 2}),
    ],
    ids=["partitions", "reservations", "shapes"],
)
def test_a_guarantee_of_your_own_plans_on_any_machine(
    one_job: Job, partitions: list[Partition], fields: dict[str, Any]
) -> None:
    class InOrder(EveryJob):
        def schedule(self, current: SchedulingCycle) -> None:
            """Start jobs in queue order."""
            for each in current.queue:
                if (fit := current.fitting(each)) is None:
                    break
                current.start(each, fit, "in order")

    policy = Backfilling(guarantees=InOrder())
    assert starts(run([one_job], partitions, policy=policy, **fields)) == [0]


def test_scenario_files_have_partitions() -> None:
    partitions = [Partition(name="a", nodes="0-3", max_wall_time_s=60), Partition(name="b", nodes=[4, 6, 7], default=True)]
    scenario = Scenario(machine=Machine(nodes=8, partitions=partitions), workload=Workload.from_jobs([job(1, 0, 1, 1, "a")]))
    assert [each.nodes for each in scenario.used_machine.partitions] == ["0-3", "4,6-7"]
    text = '[workload]\nsynthetic = true\njobs = 5\n[machine]\nnodes = 8\n[[machine.partitions]]\nname = "a"\nnodes = "0-3"\n'
    read = Scenario.from_toml(text)
    assert list(read.used_machine.partitions) == parts(a="0-3")
    assert Scenario.from_toml(read.to_toml()) == read
    assert "machine.partitions[0].node: unknown key (did you mean 'nodes'?)" in refusal(
        lambda: Scenario.from_toml(text.replace('nodes = "0', 'node = "0'))
    )


def test_a_site_file_has_partitions_too(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    site = Site(partitions=parts(a="0-3", b="4-7"), limits=[Limits(partition="a", running_jobs=1)])
    site.to_toml(path)
    assert Site.from_toml(path) == site
    jobs = Workload.from_jobs([job(1, 0, 2, 10, "a"), job(2, 0, 2, 10, "a"), job(3, 0, 4, 10, "b")])
    result = Scenario(workload=jobs, machine=Machine(nodes=8), policy="easy", site=site).run()
    assert starts(result) == [0, 10, 0]
    assert result.machine.partitions == site.partitions
    assert result.by_group("partition")["mean_wait_s"].to_dict() == {"a": 5, "b": 0}


def test_pools_are_nodes_that_no_set_tells_apart() -> None:
    pools = Pools(10, [(0, 6), (4, 8)])
    assert [bin(mask) for mask in pools.masks] == ["0b1100000000", "0b1111", "0b11000000", "0b110000"]
    assert pools.of((0, 6)) == (1, 3)
    assert pools.of((4, 8)) == (2, 3)
    assert pools.of(None) == (0, 1, 2, 3)
    assert pools.counts((3, 5, 9, 10)) == ((0, 1), (1, 1), (3, 1))


jobs_of_cases = st.lists(
    st.tuples(
        st.integers(0, 80),
        st.integers(1, 6),
        st.integers(1, 40),
        st.integers(1, 3),
        st.sampled_from(["a", "b", "c", "a,b", None]),
    ),
    min_size=1,
    max_size=20,
)


def workload_of(cases_: list[tuple[Any, ...]], partition: str | None = "named") -> Workload:
    return Workload.from_jobs(
        job(number, submit, nodes, run_s, part if partition == "named" else partition, estimate_s=run_s * factor)
        for number, (submit, nodes, run_s, factor, part) in enumerate(cases_, 1)
    )


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@settings(max_examples=cases(25), deadline=None)
@given(jobs=jobs_of_cases)
def test_any_overlapping_partitions(policy: str, jobs: list[tuple[Any, ...]]) -> None:
    partitions = parts(a="0-5", b="3-8", c="6-11")
    machine = Machine(nodes=12, partitions=partitions)
    result = Scenario(workload=workload_of(jobs), machine=machine, policy=policy).run()
    table = result.jobs
    assert (table["status"] == "completed").all()
    own = {part.name: set(range(part.node_set[0], part.node_set[1])) for part in partitions}
    busy: list[tuple[float, float, set[int]]] = []
    for number, (*_, named) in enumerate(jobs, 1):
        allowed = [set(range(12))] if named is None else [own[name] for name in named.split(",")]
        row = table[table["job"] == number].iloc[0]
        held = nodes_of(result, number)
        assert any(held <= nodes for nodes in allowed)
        assert len(held) == row["nodes"]
        assert not any(start < row["end_s"] and row["start_s"] < end and held & others for start, end, others in busy)
        busy.append((row["start_s"], row["end_s"], held))
    guaranteed = table[table["reserved_s"].notna()]
    assert (guaranteed["start_s"] <= guaranteed["reserved_s"]).all()
    if policy == "conservative":
        assert not (table["reserved_s"].isna() & (table["wait_s"] > 0)).any()


@pytest.mark.parametrize(
    "policy",
    # P and R are random; gangs in several rows are shared with those of other partitions, and slack measures all jobs' waits.
    # Rounds begin at the same times in all partitions.
    [
        name + (":mpl=1" if hasattr(make_policy(name), "mpl") else ":awt=300" * (name == "slack"))
        for name in TAKES
        if name[0] not in "PR" and name not in ("max-min", "finish-time-fair")
    ],
)
def test_two_disjoint_partitions_are_two_separate_machines(policy: str) -> None:
    rng = np.random.default_rng(11)
    jobs = [
        job(
            n,
            float(rng.integers(0, 6_000)),
            int(rng.integers(1, 7)),
            run_s := float(rng.integers(10, 900)),
            part,
            # Gangs that end early in one partition move reservations in the other.
            estimate_s=run_s if "mpl" in policy else run_s * float(rng.choice([1, 1.5, 3])),
        )
        for n, part in enumerate(rng.choice(["a", "b"], 90).tolist(), 1)
    ]
    together = run(jobs, parts(a="0-5", b="6-13"), nodes=14, policy=policy).jobs.set_index("job")
    for name, nodes in (("a", 6), ("b", 8)):
        own = [each for each in jobs if each.partition == name]
        alone = (
            Scenario(workload=Workload.from_jobs(own), machine=Machine(nodes=nodes), policy=policy).run().jobs.set_index("job")
        )
        assert alone["start_s"].equals(together.loc[alone.index, "start_s"])
