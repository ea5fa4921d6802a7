"""Jobs that name several partitions under every policy: each runs in one of them at a time, whatever happens."""

from collections import defaultdict
from typing import Any, Final

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustermodel import Checkpointing, Job, Machine, Partition, Reservation, Result, Scenario, TimeSlicing, Workload
from clustermodel.machine.failure import Failure
from clustermodel.ticks import TICKS_PER_SECOND
from tests.outside import differences
from tests.property.strategies import cases, one_in
from tests.property.test_failures import Listed

POLICIES: Final = (
    "fcfs", "easy", "easy:reserve_depth=2", "easy:reservation=kept", "easy:backfill_order=shortest", "easy:predictor=last-two",
    "conservative", "bf", "backfilling", "R/L-NG", "D", "slack:awt=20", "slack:awt=20,heuristic=dc",
    "slack:awt=20,compression=shift", "pv-easy", "pv-easy:mode=suspend", "pv-easy:vb=false", "srtf", "srsf:mode=kill",
    "las:mode=suspend", "las:mode=checkpoint", "fifo-preempt", "fifo-preempt:victim=largest",
    "fifo-preempt:victim=latest-start", "server-filling", "ss", "ss:mode=suspend", "max-min:round_s=7", "gs", "bgs", "mgs",
    "mbgs", "adaptive", "bgs:urgent=kill", "mbgs:urgent=suspend",
)  # fmt: skip
RESIZING: Final = (
    "expand", "expand:order=age", "shrink-to-admit", "shrink-to-admit:order=fcfs", "shrink-to-admit:expand=no", "equipartition",
)  # fmt: skip
NAMES: Final = ("a,b", "b,a", "a,c", "b,c", "c,b,a", "a", "c", None)


def node_lists(nodes: int) -> st.SearchStrategy[str]:
    """Return nodes of a partition as texts: neighbours, or any."""
    ends = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).map(sorted)
    listed = st.sets(st.integers(0, nodes - 1), min_size=1).map(lambda some: ",".join(map(str, sorted(some))))
    return ends.map(lambda pair: f"{pair[0]}-{pair[1]}") | listed


@st.composite
def failures(draw: st.DrawFn, nodes: int) -> Listed:
    """Return failures of nodes, each of which is repaired before the next one."""
    listed, up = [], [-1] * nodes
    for time in sorted(draw(st.lists(st.integers(0, 60), max_size=4))):
        node, repair = draw(st.integers(0, nodes - 1)), draw(st.sampled_from((1, 5, 40)))
        if time > up[node]:
            listed.append(Failure(time * TICKS_PER_SECOND, node, repair * TICKS_PER_SECOND))
            up[node] = time + repair
    return Listed(tuple(listed), 5.0)


@st.composite
def cases_of(draw: st.DrawFn, *, malleable: bool) -> tuple[Machine, list[Job]]:
    """Return a small machine with three partitions, and jobs most of which name several."""
    nodes = draw(st.integers(3, 9))
    halves = (f"0-{nodes // 2 - 1}", f"{nodes // 2}-{nodes - 1}")
    disjoint = draw(st.booleans())
    partitions = [
        Partition(
            name=name,
            nodes=half if disjoint and half else draw(node_lists(nodes)),
            priority=draw(st.sampled_from((0, 0, 1))),
            max_wall_time_s=draw(st.sampled_from((None, None, None, 20))),
            max_nodes=draw(st.sampled_from((None, None, None, 2))),
            default=name == "a" and draw(one_in(4)),
        )
        for name, half in zip("abc", (*halves, None), strict=True)
    ]
    more: dict[str, Any] = {}
    kind = draw(st.sampled_from(("plain", "plain", "windows", "failures", "memory")))
    if kind == "windows":
        start = draw(st.integers(0, 40))
        more["reservations"] = [
            Reservation(nodes=draw(node_lists(nodes)), start_s=start, end_s=start + draw(st.integers(1, 20)))
        ]
    elif kind == "failures" and not malleable:
        more["failures"] = draw(failures(nodes))
    elif kind == "memory" and not malleable:
        more["node_memory_gib"] = 4
    jobs = []
    for number in range(1, draw(st.integers(2, 14))):
        size, run_s = draw(st.integers(1, max(nodes // 2, 1))), draw(st.integers(1, 30))
        fields: dict[str, Any] = {"memory_gib": draw(st.sampled_from((None, 1, 2, 3)))} if "node_memory_gib" in more else {}
        if malleable and draw(st.booleans()):
            fields = {"malleable": True, "min_nodes": draw(st.integers(1, size)), "max_nodes": draw(st.integers(size, nodes))}
        jobs.append(
            Job(
                id=number,
                submit_s=draw(st.integers(0, 40)),
                nodes=size,
                run_s=run_s,
                estimate_s=run_s + draw(st.sampled_from((0, 0, 1, 10))),
                partition=draw(st.sampled_from(NAMES)),
                priority=draw(st.sampled_from((0, 0, 1))),
                user=draw(st.integers(1, 2)),
                **fields,
            )
        )
    machine = Machine(
        nodes=nodes,
        partitions=partitions,
        time_slicing=TimeSlicing(quantum_s=draw(st.sampled_from((1, 4))), mpl=draw(st.integers(1, 3))),
        checkpointing=Checkpointing(checkpoint_s=draw(st.sampled_from((0, 1))), restart_s=draw(st.sampled_from((0, 2)))),
        **more,
    )
    return machine, jobs


def across(result: Result, jobs: list[Job]) -> list[tuple[int, float]]:
    """Return the jobs that are on nodes that are not all in one of the partitions that they name, and when."""
    members = {each.name: {*range(result.machine.nodes)} & _listed(str(each.nodes)) for each in result.machine.partitions}
    default = next((each.name for each in result.machine.partitions if each.default), None)
    parts: dict[int, list[tuple[float, float, set[int]]]] = defaultdict(list)
    for job, begin, end, first, count in result.placements[["job", "begin_s", "end_s", "first_node", "nodes"]].itertuples(
        index=False
    ):
        parts[job].append((begin, end, set(range(first, first + count))))
    found = []
    for job in jobs:
        names = job.partition or default
        for time in {begin for begin, _, _ in parts[job.id]}:
            there = set[int]().union(*(nodes for begin, end, nodes in parts[job.id] if begin <= time < end))
            if names is not None and not any(there <= members[name] for name in names.split(",")):
                found.append((job.id, time))
    return found


def _listed(nodes: str) -> set[int]:
    ends = [part.partition("-")[::2] for part in nodes.split(",")]
    return {node for low, high in ends for node in range(int(low), int(high or low) + 1)}


def run(machine: Machine, jobs: list[Job], policy: str) -> Result:
    result = Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy=policy, history=True).run()
    assert not {"unfinished"} & {*result.jobs["status"]}
    return result


few = settings(
    max_examples=cases(8, fewest=4), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@pytest.mark.parametrize("policy", POLICIES)
@few
@given(case=cases_of(malleable=False))
def test_no_job_is_in_two_partitions_at_a_time(policy: str, case: tuple[Machine, list[Job]]) -> None:
    machine, jobs = case
    result = run(machine, jobs, policy)
    assert across(result, jobs) == []
    assert differences(result, jobs) == []


@pytest.mark.parametrize("policy", RESIZING)
@few
@given(case=cases_of(malleable=True))
def test_no_job_grows_out_of_its_partition(policy: str, case: tuple[Machine, list[Job]]) -> None:
    machine, jobs = case
    assert across(run(machine, jobs, policy), jobs) == []


@pytest.mark.parametrize(
    "policy", ["fcfs", "easy", "conservative", "slack:awt=20", "pv-easy", "srtf", "ss", "mbgs", "equipartition"]
)
@few
@given(case=cases_of(malleable=False))
def test_a_partition_of_fewer_of_the_same_nodes_changes_nothing(policy: str, case: tuple[Machine, list[Job]]) -> None:
    machine, jobs = case
    one = [Job(**{**_fields(job), "partition": "a"}) for job in jobs]
    inner = Partition(name="d", nodes=str(machine.partitions[0].nodes).split(",")[0].split("-")[0])
    partitions = [Partition(name="a", nodes=machine.partitions[0].nodes), inner, *machine.partitions[1:]]
    twin = Machine(nodes=machine.nodes, partitions=partitions, time_slicing=machine.time_slicing)
    several = [Job(**{**_fields(job), "partition": "a,d" if job.id % 2 else "d,a"}) for job in one]
    tables = [run(twin, each, policy).placements for each in (one, several)]
    pd.testing.assert_frame_equal(*tables)


def _fields(job: Job) -> dict[str, Any]:
    return {name: getattr(job, name) for name in ("id", "submit_s", "nodes", "run_s", "estimate_s", "priority", "user")}
