"""Types of nodes: which nodes jobs get by features, types and memory, and how fast they run there."""

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel import Job, Machine, NodeType, Partition, Result, Scenario, Site, Workload
from clustermodel.experiment.run_key import key_of_scenario
from clustermodel.machine.node_type import has_features
from tests.conftest import refusal
from tests.property.strategies import cases
from tests.unit.test_partitions import OTHER

KNOWN = ("fcfs", "easy", "conservative", "bf", "slack:awt=20,slack_factor=0")


def job(number: int, submit_s: float, nodes: int, run_s: float, **fields: Any) -> Job:
    return Job(id=number, submit_s=submit_s, nodes=nodes, run_s=run_s, **fields)


def scenario(jobs: list[Job], types: list[NodeType], policy: Any = "easy", nodes: int = 6, **fields: Any) -> Scenario:
    return Scenario(workload=Workload.from_jobs(jobs), machine=Machine(nodes=nodes, node_types=types, **fields), policy=policy)


def run(*args: Any, **fields: Any) -> Result:
    return scenario(*args, **fields).run()


def starts(result: Result) -> list[float]:
    return list(result.jobs["start_s"])


def ends(result: Result) -> list[float]:
    return list(result.jobs["end_s"])


def nodes_of(result: Result, number: int) -> set[int]:
    table = result.placements
    own = table[table["job"] == number]
    return {node for low, count in zip(own["first_node"], own["nodes"], strict=True) for node in range(low, low + count)}


TYPES = [NodeType(name="a", nodes="0-1", features=["ib", "new"]), NodeType(name="b", nodes="2-3", features="ib")]


@pytest.mark.parametrize("policy", KNOWN)
def test_jobs_get_the_types_and_features_that_they_name(policy: str) -> None:
    # Nodes 4 and 5 have no type.  Job 4 waits for job 1, job 5, behind it, for nobody.
    jobs = [
        job(1, 0, 2, 100, features="ib&new"),
        job(2, 0, 1, 100, features="new|ib"),
        job(3, 0, 2, 50),
        job(4, 1, 1, 10, node_type="a"),
        job(5, 2, 1, 10, node_type="a,b"),
    ]
    result = run(jobs, TYPES, policy)
    last = {1} if policy == "fcfs" else {3}
    assert [nodes_of(result, number) for number in range(1, 6)] == [{0, 1}, {2}, {4, 5}, {0}, last]
    # First come, first served keeps b idle for nobody: job 5 may have nodes of a, for which job 4 waits.
    assert starts(result) == [0, 0, 0, 100, 100 if policy == "fcfs" else 2]


@pytest.mark.parametrize("policy", KNOWN)
def test_the_memory_of_node_types(policy: str) -> None:
    types = [NodeType(name="big", nodes="5", memory_gib=512)]
    jobs = [job(1, 0, 1, 100, memory_gib=100), job(2, 1, 1, 10, memory_gib=65), job(3, 1, 5, 10, memory_gib=64)]
    result = run([*jobs, job(4, 2, 1, 10, memory_gib=600), job(5, 2, 2, 9, memory_gib=65)], types, policy, node_memory_gib=64)
    assert nodes_of(result, 1) == nodes_of(result, 2) == {5}
    assert nodes_of(result, 3) == {0, 1, 2, 3, 4}
    assert starts(result)[:2] == [0, 100]
    assert list(result.jobs["status"])[3:] == ["rejected", "rejected"]


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "easy:predictor=last", "slack"])
def test_a_gang_is_as_fast_as_its_slowest_node(policy: str) -> None:
    types = [NodeType(name="fast", nodes="0-1", speed=2), NodeType(name="slow", nodes="2", speed=0.5)]
    result = run([job(1, 0, 2, 100), job(2, 0, 1, 100), job(3, 0, 3, 100), job(4, 10, 3, 40)], types, policy)
    assert ends(result) == [50, 200, 100, 140]  # job 4 on nodes 0, 1 and 3: the slowest has speed 1
    assert list(result.jobs["status"]) == ["completed"] * 4
    assert result.ledger.capacity == 6 * (result.ledger.end - result.ledger.start)


def test_a_limit_is_the_estimate_on_the_slowest_nodes_that_a_job_may_have() -> None:
    types = [NodeType(name="fast", nodes="0", speed=2), NodeType(name="slow", nodes="1", speed=0.5)]
    jobs = [
        job(1, 0, 1, 100, estimate_s=40, node_type="fast"),  # needs 50 s, and has 20 s
        job(2, 0, 1, 100, estimate_s=40, node_type="slow"),  # needs 200 s, and has 80 s
        job(3, 1, 2, 10, estimate_s=10),
    ]
    result = run(jobs, types, nodes=2)
    assert ends(result) == [20, 80, 100]
    assert list(result.jobs["status"]) == ["killed", "killed", "completed"]
    assert list(result.jobs["reserved_s"].dropna()) == [80]


def test_types_in_partitions_and_with_other_numbers_of_processors() -> None:
    types = [NodeType(name="gpu", nodes="2", processors_per_node=8, memory_gib=64, speed=2)]
    partitions = [Partition(name="all", nodes="0-2")]
    jobs = [
        job(1, 0, 8, 100, node_type="gpu", whole_nodes=True),
        job(2, 0, 4, 50, partition="all", max_nodes_used=1),
        job(3, 1, 2, 20, node_type="gpu"),
        job(4, 2, 4, 20, memory_gib=5),  # 20 GiB on a node, which only that of type gpu has
        job(5, 2, 8, 20, max_nodes_used=1, memory_gib=9),
    ]
    machine = {"nodes": 3, "processors_per_node": 4, "node_memory_gib": 16, "partitions": partitions}
    result = run([*jobs[:3], job(4, 2, 4, 20, max_nodes_used=1, memory_gib=5), jobs[4]], types, **machine)
    assert result.machine.processors == 16
    assert nodes_of(result, 1) == set(range(8, 16))
    assert nodes_of(result, 2) == {0, 1, 2, 3}
    assert starts(result)[:4] == [0, 0, 50, 50]
    assert ends(result)[:4] == [50, 50, 60, 60]
    assert result.jobs["status"][4] == "rejected"
    refused = scenario([job(1, 0, 8, 1, whole_nodes=True)], types, **machine)
    assert refusal(refused.run).startswith(
        "job 1: whole_nodes is not allowed where nodes that it may have differ in size (4, 8"
    )


def test_where_no_job_names_types_the_schedule_is_that_of_a_machine_without() -> None:
    jobs = [job(number, number % 7, 1 + number % 5, 10 + number % 9, estimate_s=30) for number in range(1, 60)]
    for policy in KNOWN:
        plain = Scenario(workload=Workload.from_jobs(jobs), machine=Machine(nodes=6), policy=policy).run()
        assert starts(run(jobs, TYPES, policy)) == starts(plain)


@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        ("ib", True),
        ("ib&new", True),
        ("ib,new", True),
        ("old|new", True),
        ("old", False),
        ("ib & old", False),
        ("old|ib&old", False),
    ],
)
def test_features(asked: str, fits: bool) -> None:
    assert has_features(frozenset(["ib", "new"]), asked) == fits


def test_types_in_files_tables_and_keys(tmp_path: Any) -> None:
    frame = pd.DataFrame({"submit_s": [0, 0], "nodes": 1, "run_s": 9, "features": ["ib", None], "node_type": [None, "b"]})
    workload = Workload.from_frame(frame)
    assert [(each.features, each.node_type) for each in workload.jobs()] == [("ib", None), (None, "b")]
    result = Scenario(workload=workload, machine=Machine(nodes=6, node_types=TYPES)).run()
    assert nodes_of(result, 2) <= {2, 3}
    assert list(result.jobs["features"].dropna()) == ["ib"]
    site = Site(node_types=TYPES)
    (tmp_path / "site.toml").write_text(site.to_toml())
    assert Site.from_toml(tmp_path / "site.toml") == site
    with_site = Scenario(workload=workload, machine=Machine(nodes=6), site=site)
    assert with_site.used_machine.node_types == tuple(TYPES)
    text = """
        [machine]
        nodes = 6
        node_types = [{name = "a", nodes = "0-1", features = ["ib", "new"]}, {name = "b", nodes = "2-3", features = "ib"}]
        [workload]
        synthetic = true
        jobs = 3
        nodes = 6
    """
    read = Scenario.from_toml(text)
    assert read.machine == Machine(nodes=6, node_types=TYPES)
    assert Scenario.from_toml(read.to_toml()) == read
    faster = [NodeType(name="a", nodes="0-1", speed=3)]
    assert (
        len(
            {
                key_of_scenario(Scenario(workload=workload, machine=Machine(nodes=6, node_types=each)))
                for each in (TYPES, faster, ())
            }
        )
        == 3
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NodeType(name="", nodes="0"), "NodeType.name: '' is not allowed"),
        (lambda: NodeType(name="a", nodes="x"), "NodeType.nodes: 'x' is not allowed; they must be a text as '0-59,62'"),
        (lambda: NodeType(name="a", nodes="0", speed=0), "NodeType.speed: 0 is not allowed"),
        (
            lambda: NodeType(name="a", nodes="0", features=["a&b"]),
            "NodeType.features: ['a&b'] is not allowed; they",
        ),
        (
            lambda: Machine(nodes=2, node_types=TYPES),
            "Machine.node_types: b: nodes: '2-3' is not allowed; they",
        ),
        (
            lambda: Machine(nodes=4, node_types=[TYPES[0], NodeType(name="c", nodes="1-2")]),
            "Machine.node_types: c: nodes: '1-2' is not allowed; node 1 is of type a",
        ),
        (
            lambda: Machine(nodes=4, node_types=[NodeType(name="c", nodes="1-2", memory_gib=4)]),
            "NodeType.memory_gib: None is not allowed where other nodes have limited memory; give it for all nodes",
        ),
        (
            lambda: run([job(1, 0, 1, 1, features="ib")], TYPES, OTHER),
            "policy other: not allowed on a machine with types",
        ),
    ],
)
def test_refusals(make: Any, message: str) -> None:
    assert refusal(make).startswith(message)


@settings(max_examples=cases(60))
@given(
    asked=st.lists(
        st.tuples(
            st.integers(0, 60),
            st.integers(1, 4),
            st.integers(1, 40),
            st.integers(1, 3),
            st.sampled_from([None, "ib", "new", "ib&new", "new|ib"]),
            st.sampled_from([None, "a", "b", "a,b"]),
        ),
        min_size=1,
        max_size=14,
    ),
    policy=st.sampled_from(KNOWN),
)
def test_no_job_is_on_other_nodes_and_guarantees_are_kept(asked: list[tuple[Any, ...]], policy: str) -> None:
    types = [
        NodeType(name="a", nodes="0-1", features=["ib", "new"], speed=2),
        NodeType(name="b", nodes="2-3", features="ib", speed=0.5),
    ]
    allowed = {None: set(range(6)), "ib": {0, 1, 2, 3}, "new": {0, 1}, "ib&new": {0, 1}, "new|ib": {0, 1, 2, 3}}
    named = {None: set(range(6)), "a": {0, 1}, "b": {2, 3}, "a,b": {0, 1, 2, 3}}
    speeds = [2, 2, 0.5, 0.5, 1, 1]
    jobs = [
        job(number, submit, nodes, run_s, estimate_s=run_s * factor, features=features, node_type=of_type)
        for number, (submit, nodes, run_s, factor, features, of_type) in enumerate(asked, 1)
    ]
    result = run(jobs, types, policy)
    table = result.jobs.set_index("job")
    for each in jobs:
        eligible, row = allowed[each.features] & named[each.node_type], table.loc[each.id]
        assert (row["status"] == "rejected") == (len(eligible) < each.nodes)
        if row["status"] != "rejected":
            own = nodes_of(result, each.id)
            assert own <= eligible
            assert len(own) == each.nodes
            assert row["end_s"] - row["start_s"] == each.run_s / min(speeds[node] for node in own)
    for time in table["start_s"].dropna():
        running = table.index[(table["start_s"] <= time) & (table["end_s"] > time)]
        in_use = [node for number in running for node in nodes_of(result, number)]
        assert len(in_use) == len(set(in_use))
    promised = table.dropna(subset=["reserved_s"])
    assert (promised["start_s"] <= promised["reserved_s"]).all()
    assert result.ledger.capacity == 6 * (result.ledger.end - result.ledger.start)
