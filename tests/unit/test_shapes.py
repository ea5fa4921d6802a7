"""Shapes of jobs on nodes with several processors, and the memory that jobs share there: who gets which, and when."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel import DecisionError, Job, Machine, Partition, Result, Scenario, Start, Workload, read_csv
from clustermodel.experiment.run_key import digest_of_jobs, key_of_scenario
from clustermodel.plans.by_node import Layout, Nodes
from clustermodel.policies.interface import PolicyFunction
from tests.conftest import refusal
from tests.property.strategies import cases

KNOWN = ("fcfs", "easy", "conservative", "bf", "slack:awt=20,slack_factor=0")


def job(number: int, submit_s: float, nodes: int, run_s: float, **fields: Any) -> Job:
    return Job(id=number, submit_s=submit_s, nodes=nodes, run_s=run_s, **fields)


def run(jobs: list[Job], policy: Any = "easy", **machine: Any) -> Result:
    machine = {"nodes": 2, "processors_per_node": 4, "allocation": "consolidate", **machine}
    return Scenario(workload=Workload.from_jobs(jobs), machine=Machine(**machine), policy=policy).run()


def starts(result: Result) -> list[float]:
    return list(result.jobs["start_s"])


def parts(result: Result, number: int, per_node: int = 4) -> dict[int, int]:
    """How many processors a job has on each node."""
    table = result.placements
    own = table[table["job"] == number]
    taken = [low + k for low, count in zip(own["first_node"], own["nodes"], strict=True) for k in range(count)]
    return {node: sum(processor // per_node == node for processor in taken) for node in {p // per_node for p in taken}}


@pytest.mark.parametrize("policy", KNOWN)
@pytest.mark.parametrize("field", ["gpus_per_node", "processors_per_node"])
def test_a_job_for_one_node_waits_where_others_would_be_split(policy: str, field: str) -> None:
    # One processor of each node is idle until 50, when node 1 is idle.
    jobs = [job(1, 0, 3, 100), job(2, 0, 3, 50), job(3, 1, 2, 10, max_nodes_used=1)]
    result = run(jobs, policy, **{"processors_per_node": 1, field: 4})
    assert starts(result) == [0, 0, 50]
    assert parts(result, 3) == {1: 2}
    assert starts(run([*jobs[:2], job(3, 1, 2, 10)], policy)) == [0, 0, 1]


@pytest.mark.parametrize("policy", KNOWN)
def test_processors_per_node(policy: str) -> None:
    jobs = [job(1, 0, 3, 100), job(2, 0, 3, 50), job(3, 1, 4, 10, processors_per_node=2)]
    result = run(jobs, policy)
    assert starts(result) == [0, 0, 100]
    assert parts(result, 3) == {0: 2, 1: 2}
    assert starts(run([*jobs[:2], job(3, 1, 2, 10, processors_per_node=1)], policy)) == [0, 0, 1]


@pytest.mark.parametrize(
    ("asked", "nodes"), [({"nodes": 3}, 4), ({"nodes": 5}, 8), ({"nodes": 4, "processors_per_node": 2}, 8)]
)
def test_whole_nodes_are_all_the_processors_of_nodes(asked: dict[str, int], nodes: int) -> None:
    shaped = Job(id=2, submit_s=1, run_s=10, whole_nodes=True, **asked)  # type: ignore[arg-type]
    result = run([job(1, 0, 1, 100), shaped])
    assert list(result.jobs["nodes"]) == [1, nodes]
    assert starts(result) == [0, 1 if nodes == 4 else 100]
    assert result.ledger.capacity == 8 * (result.ledger.end - result.ledger.start)


def test_a_reservation_is_a_start_at_which_the_shape_fits() -> None:
    # Four processors on one node are idle at 100, on node 0.  Job 4 has the last one there until then, and job 5, which is
    # longer, that of node 1; job 6 is the first to be blocked when job 3 has started.
    jobs = [
        job(1, 0, 3, 100),
        job(2, 0, 3, 200),
        job(3, 1, 4, 10, max_nodes_used=1),
        job(4, 2, 1, 98),
        job(5, 2, 1, 300),
        job(6, 3, 1, 60),
    ]
    result = run(jobs)
    assert starts(result) == [0, 0, 100, 2, 2, 110]
    assert list(result.jobs["reserved_s"].dropna()) == [100, 110]
    assert parts(result, 5) == {1: 1}
    assert starts(run(jobs, "conservative")) == [0, 0, 100, 2, 2, 110]


@pytest.mark.parametrize("policy", KNOWN)
def test_jobs_share_the_memory_of_a_node(policy: str) -> None:
    # 8 GiB a node.  Job 2 gets one processor on node 0, which has 2 GiB left, and one on node 1; job 3 fits on node 1; job 4 is
    # larger than a node; job 5 fits by its processors, but has its memory at 50 only.
    jobs = [
        job(1, 0, 2, 100, memory_gib=3),
        job(2, 0, 2, 50, memory_gib=2),
        job(3, 1, 2, 100, memory_gib=2),
        job(4, 1, 1, 10, memory_gib=9),
        job(5, 2, 1, 10, memory_gib=4),
    ]
    result = run(jobs, policy, node_memory_gib=8, allocation="lowest")
    assert parts(result, 2) == {0: 1, 1: 1}
    assert parts(result, 3) == {1: 2}
    assert starts(result)[:3] == [0, 0, 1]
    assert np.isnan(starts(result)[3])
    assert starts(result)[4] == 50
    assert result.jobs["status"][3] == "rejected"


def test_partitions_of_nodes_with_several_processors() -> None:
    partitions = [Partition(name="a", nodes="0"), Partition(name="b", nodes="0-1")]
    jobs = [job(1, 0, 5, 100, partition="b"), job(2, 1, 4, 10, partition="a"), job(3, 2, 2, 10, partition="b")]
    result = run(jobs, partitions=partitions)
    assert parts(result, 1) == {0: 1, 1: 4}  # of node 1 first, which fewer partitions have
    assert starts(result) == [0, 100, 2]


def test_what_no_node_can_hold_is_rejected() -> None:
    jobs = [job(1, 0, 5, 10, max_nodes_used=1), job(2, 0, 5, 10, processors_per_node=5), job(3, 0, 8, 10, max_nodes_used=2)]
    assert list(run(jobs).jobs["status"]) == ["rejected", "rejected", "completed"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: job(1, 0, 5, 1, processors_per_node=2),
            "Job 1: processors_per_node: 2 is not allowed for 5 processors",
        ),
        (lambda: job(1, 0, 5, 1, whole_nodes=1), "Job 1: whole_nodes: 1 is not allowed"),
        (lambda: job(1, 0, 5, 1, max_nodes_used=0), "Job 1: max_nodes_used: 0 is not allowed"),
        (
            lambda: Machine(nodes=1, gpus_per_node=2, processors_per_node=2),
            "Machine.processors_per_node: 2 is not allowed",
        ),
        (lambda: run([job(1, 0, 4, 1, max_nodes_used=2)], "pv-easy"), "policy pv-easy: not allowed where jobs have shapes"),
        (lambda: run([job(1, 0, 4, 1, memory_gib=1)], "gs", node_memory_gib=8), "policy gs: not allowed where jobs have"),
        (
            lambda: run([job(1, 0, 1, 1, max_nodes_used=2)], processors_per_node=1),
            "job 1: a shape is not allowed where nodes have one processor; give Machine",
        ),
    ],
)
def test_refusals(make: Any, message: str) -> None:
    assert refusal(make).startswith(message)


def test_shapes_in_tables(tmp_path: Any) -> None:
    jobs = [job(1, 0, 4, 9, processors_per_node=2, max_nodes_used=2), job(2, 1, 3, 9), job(3, 2, 3, 9, whole_nodes=True)]
    workload = Workload.from_jobs(jobs)
    shaped = [(each.processors_per_node, each.max_nodes_used, each.whole_nodes) for each in workload.jobs()]
    assert shaped == [(2, 2, False), (None, None, False), (None, None, True)]
    again = Workload.from_frame(workload.frame)
    assert digest_of_jobs(again).sha256 == digest_of_jobs(workload).sha256
    assert digest_of_jobs(Workload.from_jobs([*jobs[:2], job(3, 2, 3, 9)])) != digest_of_jobs(workload)
    frame = pd.DataFrame({"submit_s": [0, 1], "nodes": 4, "run_s": 9, "whole_nodes": [True, None], "max_nodes_used": [None, 1]})
    table = Workload.from_frame(frame)
    assert [(each.whole_nodes, each.max_nodes_used) for each in table.jobs()] == [(True, None), (False, 1)]
    frame = pd.DataFrame({"submit_s": [0], "nodes": 3, "run_s": 9, "processors_per_node": [2]})
    machine = Machine(nodes=2, processors_per_node=4)
    scenario = Scenario(workload=Workload.from_frame(frame), machine=machine)
    assert refusal(scenario.run) == "job 1: processors_per_node: 2 is not allowed for 3 processors; it must divide their number"
    assert (
        Scenario.from_toml(Scenario(workload=workload.made_by("synthetic", {}), machine=machine).to_toml()).machine == machine
    )


def test_shapes_as_a_log_has_recorded_them(tmp_path: Path, command_line: Callable[..., Any]) -> None:
    (tmp_path / "jobs.csv").write_text("submit_s,nodes,run_s,node_count\n0,3,100,1\n0,3,50,1\n1,2,10,1\n2,2,10,\n3,4,10,9\n")
    columns = {name: name for name in ("submit_s", "nodes", "run_s", "node_count")}
    workload = read_csv(tmp_path / "jobs.csv", columns=columns)
    shaped = workload.with_recorded_shapes()
    assert shaped.column("max_nodes_used").tolist() == [1, 1, 1, -1, 4]
    assert shaped.with_recorded_shapes() == shaped
    machine = Machine(nodes=2, processors_per_node=4, allocation="consolidate")
    assert starts(Scenario(workload=shaped, machine=machine, policy="easy").run()) == [0, 0, 50, 2, 60]
    given = ",".join(f"{name}={name}" for name in columns)
    options = ["--nodes", "2", "--processors-per-node", "4", "--policy", "easy", "--recorded-shapes", "--json"]
    rows = json.loads(command_line("run", "--trace", tmp_path / "jobs.csv", "--columns", given, *options).out)
    assert rows[0]["mean_wait_s"] == pytest.approx((49 + 57) / 5)
    assert refusal(Workload.from_jobs([job(1, 0, 1, 1)]).with_recorded_shapes).endswith("beside those of processors")


def test_run_keys_know_shapes_and_the_memory_that_jobs_share() -> None:
    def key(memory: float, **shape: Any) -> str:
        machine = Machine(nodes=2, processors_per_node=4, node_memory_gib=memory)
        return key_of_scenario(Scenario(workload=Workload.from_jobs([job(1, 0, 2, 9, memory_gib=1, **shape)]), machine=machine))

    assert len({key(8), key(9), key(8, max_nodes_used=1), key(8, whole_nodes=True)}) == 4


def test_a_policy_of_ones_own_starts_what_fits() -> None:
    def as_it_fits(_: Any) -> Any:
        def decide(_: Any, view: Any) -> list[Start]:
            job = next((job for job in view.waiting.values() if view.fits(job) is not None), None)
            return [] if job is None else [Start(job=job)]

        return decide

    class Own(PolicyFunction):
        takes_shapes = True

    jobs = [job(1, 0, 3, 100), job(2, 0.5, 3, 50), job(3, 1, 2, 10, max_nodes_used=1)]
    assert starts(run(jobs, Own("own", as_it_fits))) == [0, 0.5, 50.5]

    def at_once(_: Any) -> Any:
        return lambda _, view: [Start(job=job) for job in view.waiting.values()]

    with pytest.raises(DecisionError) as refused:
        run(jobs, Own("own", at_once))
    why = "it does not fit on idle nodes (2 processors, on at most 1 node)"
    assert str(refused.value) == f"policy own: job 3 cannot start: {why}"


SHAPES = st.fixed_dictionaries(
    {},
    optional={
        "processors_per_node": st.integers(1, 5),
        "max_nodes_used": st.integers(1, 3),
        "whole_nodes": st.booleans(),
        "memory_gib": st.integers(0, 5),
    },
)


@settings(max_examples=cases(60))
@given(
    asked=st.lists(
        st.tuples(st.integers(0, 60), st.integers(1, 9), st.integers(1, 40), st.integers(1, 3), SHAPES), min_size=1, max_size=14
    ),
    policy=st.sampled_from((*KNOWN, "easy:backfill_order=shortest,reservation=kept", "1/L", "D-NG")),
    allocation=st.sampled_from(["lowest", "consolidate"]),
    memory=st.sampled_from([None, 8]),
)
def test_no_shape_is_split_no_memory_exceeded_and_guarantees_are_kept(
    asked: list[tuple[int, int, int, int, dict[str, Any]]], policy: str, allocation: str, memory: int | None
) -> None:
    jobs = []
    for number, (submit, nodes, run_s, factor, shape) in enumerate(asked, 1):
        each = shape.get("processors_per_node", 1)
        estimate = run_s * factor
        jobs.append(job(number, submit, nodes // each * each or each, run_s, estimate_s=estimate, **shape))
    machine = Machine(nodes=3, processors_per_node=4, allocation=allocation, node_memory_gib=memory)  # type: ignore[arg-type]
    result = Scenario(workload=Workload.from_jobs(jobs), machine=machine, policy=policy).run()
    table = result.jobs.set_index("job")
    used = {int(number): parts(result, number) for number in table.index[table["status"] != "rejected"]}
    for each in jobs:
        of_nodes = used.get(each.id)
        if of_nodes is None:
            continue
        if each.whole_nodes:
            assert set(of_nodes.values()) == {4}
        elif each.processors_per_node:
            assert set(of_nodes.values()) == {each.processors_per_node}
        assert len(of_nodes) <= (each.max_nodes_used or 3)
    for time in table["start_s"].dropna():
        running = table.index[(table["start_s"] <= time) & (table["end_s"] > time)]
        for node in range(3):
            assert sum(used[number].get(node, 0) for number in running) <= 4
            gib = sum(used[number].get(node, 0) * (jobs[number - 1].memory_gib or 0) for number in running)
            assert memory is None or gib <= memory
    promised = table.dropna(subset=["reserved_s"])
    assert (promised["start_s"] <= promised["reserved_s"]).all()
    assert result.ledger.capacity == 12 * (result.ledger.end - result.ledger.start)


def test_a_plan_of_nodes_chooses_as_few_as_possible() -> None:
    nodes = Nodes([4, 2, 4], None, consolidates=True)
    assert nodes.first == [0, 4, 6, 10]
    free = nodes.free((0, 4, 5, 9), None)
    assert free.tolist() == [4, 1, 3]
    assert nodes.split((3, 5), 0) == ((0, 1), (1, 1))
    assert nodes.processors(((0, 2), (2, 1)), (0, 4, 5, 9)) == (0, 2, 6, 7)
    assert Layout() == (0, 0)
