"""Random machines, jobs and rules of a site under every policy, checked from the tables of the results alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustermodel import (
    QOS,
    Checkpointing,
    FairShare,
    Job,
    Limits,
    Machine,
    Multifactor,
    NodeType,
    Partition,
    Reservation,
    Result,
    Scenario,
    Site,
    TimeSlicing,
    Workload,
    make_policy,
)
from clustermodel.failures.failure import Failure
from clustermodel.machine import ALLOCATIONS
from clustermodel.policies.interface import dependencies_of
from clustermodel.sim.simulation import Fidelity
from clustermodel.ticks import TICKS_PER_SECOND
from tests.gang_runs import seen_in_time
from tests.outside_site import RESERVING, Arrays, Noting, Reserved, differences_of_site
from tests.property.strategies import cases, one_in
from tests.property.test_failures import Listed

POLICIES: Final = (
    "fcfs", "easy", "easy:reserve_depth=2", "conservative", "bf", "gs", "bgs", "mgs", "mbgs", "adaptive", "slack:awt=20",
    "pv-easy", "pv-easy:vb=false,mode=suspend", "ss", "server-filling", "srtf", "srsf:mode=kill", "las:mode=suspend",
    "fifo-preempt", "backfilling", "D", "R/L-NG",
)  # fmt: skip
USERS, ACCOUNTS, QOS_OF_JOBS, ARRAYS = (1, 2, 3, -1), ("bio", "geo", None), ("high", "low", None), (None, 100, 200)


@dataclass(frozen=True)
class Case:
    """What is run."""

    machine: Machine
    jobs: tuple[Job, ...]
    site: Site | None
    arrays: Arrays

    def run(self, policy: Any, fidelity: Fidelity = "fast") -> Result:
        workload = Workload.from_jobs(self.jobs)
        if self.arrays:
            of_job = [self.arrays.get(job, (-1, -1)) for job in workload.column("id").tolist()]
            array, limit = zip(*of_job, strict=True)
            workload = Workload.from_frame(workload.frame.assign(array=array, array_limit=limit))
        return Scenario(
            workload=workload, machine=self.machine, policy=policy, site=self.site, fidelity=fidelity, history=True
        ).run()


def node_lists(nodes: int) -> st.SearchStrategy[str]:
    """Return nodes of a partition as texts: neighbours, or any."""
    ends = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).map(sorted)
    listed = st.sets(st.integers(0, nodes - 1), min_size=1).map(lambda some: ",".join(map(str, sorted(some))))
    return ends.map(lambda pair: f"{pair[0]}-{pair[1]}") | listed


@st.composite
def limits(draw: st.DrawFn, nodes: int) -> Limits:
    """Return a limit of some of the jobs."""
    who: dict[str, Any] = {}
    for name, values in (
        ("user", ("*", 1, 2)),
        ("account", ("*", "bio")),
        ("partition", ("*", "a")),
        ("qos", ("*", "low", "high", "part")),
    ):
        if draw(one_in(3)):
            who[name] = draw(st.sampled_from(values))
    if "qos" not in who and draw(one_in(4)):
        who["yields_to_qos"] = draw(st.sampled_from(("max", "grp")))
    kinds = "running_jobs nodes processors node_hours processor_hours submitted_jobs wall_time_s job_nodes job_processors both"
    kind = draw(st.sampled_from(kinds.split()))
    if kind == "both":
        return Limits(**who, running_jobs=draw(st.integers(1, 3)), nodes=draw(st.integers(1, nodes)))
    most: dict[str, st.SearchStrategy[float]] = {
        "running_jobs": st.integers(1, 3),
        "submitted_jobs": st.integers(1, 4),
        "nodes": st.integers(1, nodes),
        "processors": st.integers(1, 2 * nodes),
        "processor_hours": st.integers(10, 40 * nodes).map(lambda node_seconds: node_seconds / 3600),
        "job_processors": st.integers(max(nodes // 2, 1), nodes),
        "job_nodes": st.integers(max(nodes // 2, 1), nodes),
        "node_hours": st.integers(10, 40 * nodes).map(lambda node_seconds: node_seconds / 3600),
        "wall_time_s": st.integers(20, 60),
    }
    return Limits(**who, **{kind: draw(most[kind])})


@st.composite
def qos_of_partitions(draw: st.DrawFn, names: Sequence[str]) -> list[QOS]:
    """Return which QOS partitions have, and what they lift."""
    left = list(names)
    made = []
    for name in ("high", "low", "part"):
        own = [each for each in left if draw(one_in(3))]
        left = [each for each in left if each not in own]
        flags = {flag: draw(one_in(3)) for flag in ("over_partition_qos", "lifts_partition_time", "lifts_partition_nodes")}
        made.append(QOS(name=name, partitions=own, **flags))
    return made


@st.composite
def partitions(draw: st.DrawFn, nodes: int) -> list[Partition]:
    """Return up to three partitions, which may overlap."""
    default = draw(st.sampled_from(("a", "b", None, None)))
    return [
        Partition(
            name=name,
            nodes=draw(node_lists(nodes)),
            default=name == default,
            priority=draw(st.sampled_from((0, 0, 0, 1))),
            max_wall_time_s=draw(st.sampled_from((None, None, 20))),
            max_nodes=draw(st.sampled_from((None, None, 2))),
        )
        for name in "abc"[: draw(st.integers(1, 3))]
    ]


@st.composite
def node_types(draw: st.DrawFn, nodes: int, per_node: int, *, alike: bool) -> list[NodeType]:
    """Return one or two types of nodes."""
    middle = draw(st.integers(1, nodes))
    return [
        NodeType(
            name=name,
            nodes=f"{low}-{high}",
            memory_gib=draw(st.sampled_from((2, 4, 5))),
            speed=1 if alike else draw(st.sampled_from((1, 1, 0.5, 2))),
            features=draw(st.sampled_from(((), ("x",), ("x", "y")))),
            processors_per_node=draw(st.sampled_from((None, None, 1, 3))) if per_node > 1 else None,
        )
        for name, low, high in (("s", 0, middle - 1), ("t", middle, nodes - 1))
        if low <= high and (name == "s" or draw(st.booleans()))
    ]


def wishes() -> st.SearchStrategy[dict[str, Any]]:
    """Return types and features that jobs name."""
    return st.fixed_dictionaries(
        {
            "node_type": st.sampled_from((None, None, "s", "t", "s,t")),
            "features": st.sampled_from((None, None, None, "x", "x&y", "x|z")),
        }
    )


def sizes(nodes: int) -> st.SearchStrategy[dict[str, Any]]:
    """Return numbers of nodes, perhaps one more than there are."""
    return (
        st.integers(1, nodes).flatmap(lambda size: st.sampled_from((size, size, size, nodes + 1))).map(lambda n: {"nodes": n})
    )


@st.composite
def reservations(draw: st.DrawFn, nodes: int) -> list[Reservation]:
    """Return one or two reservations, once or every so often, between which any job has time enough."""
    made = []
    for _ in range(draw(st.integers(1, 2))):
        start = draw(st.integers(0, 60))
        once = Reservation(
            nodes=draw(st.none() | node_lists(nodes)),
            start_s=start,
            end_s=start + draw(st.integers(1, 20)),
            every_s=draw(st.sampled_from((None, None, 400))),
            accounts=draw(st.sampled_from(((), (), ("bio",)))),
            users=draw(st.sampled_from(((), (), ("1", "2")))),
        )
        made.append(once)
    return made


@st.composite
def shapes(draw: st.DrawFn, per_node: int, *, whole_nodes: bool) -> dict[str, Any]:
    """Return how many processors a job has, and perhaps how they lie on nodes."""
    each = draw(st.sampled_from((None, None, *range(1, per_node + 1))))
    return {
        "nodes": draw(st.integers(1, 6)) * (each or 1),
        "processors_per_node": each,
        "max_nodes_used": draw(st.sampled_from((None, None, 1, 2))),
        "whole_nodes": whole_nodes and draw(one_in(4)),
    }


@st.composite
def site_cases(draw: st.DrawFn, policy: str) -> Case:
    """Return a small machine, jobs close together, and rules; times are whole seconds, so that instants collide."""
    nodes = draw(st.integers(1, 8))
    takes = getattr(make_policy(policy), "takes_partitions", False)
    parts = draw(partitions(nodes)) if takes and draw(st.booleans()) else []
    names = (["a", "b", "c", "a,b", "c,a", "b,a,c"] if len(parts) > 1 else ["a"]) if parts else ["a"]
    has_arrays, has_memory = draw(one_in(4)), draw(one_in(5))
    priorities = (0, 0, 1) if draw(one_in(4)) else (0,)
    per_node = draw(st.integers(2, 4)) if getattr(make_policy(policy), "takes_shapes", False) and draw(one_in(3)) else 1
    if per_node > 1:
        nodes = min(nodes, 4)
        parts = draw(partitions(nodes)) if parts else []
    saves = hasattr(make_policy(policy), "mpl") or "checkpointing" in dependencies_of(make_policy(policy))
    types = draw(node_types(nodes, per_node, alike=saves)) if takes and draw(one_in(4)) else []
    sizes_differ = any(each.processors_per_node for each in types)
    jobs: list[Job] = []
    for number in range(1, draw(st.integers(1, 14)) + 1):
        run_s = draw(st.integers(1, 30))
        others = st.sets(st.integers(1, 14).filter(lambda other: other != number), max_size=2)  # noqa: B023
        needs: dict[str, Any] = {}
        if not has_arrays and draw(one_in(4)):
            earlier = sorted(other for other in draw(others) if other < number)
            needs = {draw(st.sampled_from(("after", "after_ok", "after_any", "after_not_ok"))): earlier}
        job = Job(
            id=number,
            submit_s=draw(st.integers(0, 40)),
            run_s=run_s,
            estimate_s=max(1, run_s + draw(st.sampled_from((0, 0, 1, 10, 40, -3)))),
            user=draw(st.sampled_from(USERS)),
            account=draw(st.sampled_from(ACCOUNTS)),
            qos=draw(st.sampled_from(QOS_OF_JOBS)),
            partition=draw(st.sampled_from((None, *names))),
            priority=draw(st.sampled_from(priorities)),
            memory_gib=draw(st.sampled_from((None, 0, 1, 2, 3, 5))) if has_memory else None,
            **needs,
            **draw(shapes(per_node, whole_nodes=not sizes_differ) if per_node > 1 else sizes(nodes)),
            **(draw(wishes()) if types else {}),
        )
        jobs.append(job)
    arrays = {}
    if has_arrays:
        most = {array: draw(st.integers(1, 2)) for array in ARRAYS if array is not None}
        of_job = {job.id: draw(st.sampled_from(ARRAYS)) for job in jobs}
        arrays = {job: (array, most[array]) for job, array in of_job.items() if array is not None}
    order = draw(
        st.sampled_from((None, None, None, FairShare(half_life_s=20), Multifactor(fair_share=1, size=0.5, half_life_s=20)))
    )
    qos = draw(qos_of_partitions([each.name for each in parts])) if parts and draw(st.booleans()) else []
    site = Site(limits=draw(st.lists(limits(nodes), max_size=4)), qos=qos, array_limits=bool(arrays), order=order)
    costs = Checkpointing(checkpoint_s=draw(st.sampled_from((0, 1))), restart_s=draw(st.sampled_from((0, 2))))
    machine = Machine(
        nodes=nodes,
        partitions=parts,
        node_types=types,
        kill_at_estimate=draw(st.sampled_from((True, True, False))),
        time_slicing=TimeSlicing(quantum_s=draw(st.sampled_from((1, 4))), mpl=draw(st.integers(1, 3))),
        checkpointing=costs,
        node_memory_gib=4 if has_memory or types else None,
        processors_per_node=per_node,
        allocation=draw(st.sampled_from(ALLOCATIONS)) if per_node > 1 else "any",
    )
    if getattr(make_policy(policy), "takes_reservations", False) and per_node == 1 and draw(one_in(3)):
        machine = replace(machine, reservations=draw(reservations(nodes)))
    if per_node == 1 and draw(one_in(4)):
        machine = replace(machine, failures=draw(failures(nodes)))
    return Case(machine, tuple(jobs), draw(st.sampled_from((site, None if not arrays else site))), arrays)


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


@pytest.mark.parametrize("policy", POLICIES)
@settings(
    max_examples=cases(10, fewest=5), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(data=st.data())
def test_rules_are_kept(policy: str, data: st.DataObject) -> None:
    case = data.draw(site_cases(policy))
    noting = Noting(policy) if make_policy(policy).name in RESERVING else None
    result = case.run(noting or policy)
    reserved = noting.reserved if noting is not None else []
    assert differences_of_site(result, case.jobs, case.arrays, reserved) == []
    if result.slices is not None:
        assert seen_in_time(case.run(policy, "node")) == seen_in_time(result)


@pytest.mark.parametrize(
    ("row", "column", "value", "words"),
    [
        (0, "status", "rejected", "job 1 is rejected; to be rejected are []"),
        (1, "held_s", 0, "limit of each user (1,): jobs [1, 2] at 0.0"),
        (1, "held_s", 14, "job 2 is held for 14.0 of 13.0 s of waiting"),
        (1, "held_s", 12, "job 2 is held at 10.0 by nothing"),
        (2, "held_s", 20, "job 3 depends on what happens at 23.0, and is let go at 20.0"),
        (3, "reserved_s", 8, "job 4 starts at 10.0; reserved was 10.0, first 8.0"),
        (3, "reserved_s", float("nan"), "job 4 waits at 1.0, and has no reservation"),
    ],
)
def test_damaged_tables_are_seen(row: int, column: str, value: object, words: str) -> None:
    result, reserved = WATCHED.run(noting := Noting("easy")), noting.reserved
    assert differences_of_site(result, WATCHED.jobs, {}, reserved) == []
    result.jobs.loc[row, column] = value
    assert words in differences_of_site(result, WATCHED.jobs, {}, reserved)


def test_a_start_after_its_bound_is_seen() -> None:
    result = WATCHED.run("slack:awt=20")
    assert differences_of_site(result, WATCHED.jobs) == []
    result.jobs.loc[3, "reserved_s"] = 8
    assert differences_of_site(result, WATCHED.jobs)[0] == "job 4 starts at 10.0; its bound is 8.0"


def test_other_nodes_and_later_reservations_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    result, reserved = WATCHED.run(noting := Noting("easy")), noting.reserved
    assert reserved == [(1, 4, 10), (10, 2, 13)]
    for now, start, words in (
        (5, 11, "job 4: its reservation for 10.0 becomes 11 at 5"),
        (5, 9, "job 4: reserved for 9 at 5; the nodes are free at 10.0"),
    ):
        assert words in differences_of_site(result, WATCHED.jobs, {}, [*reserved, Reserved(now, 4, start)])
    places = result.placements
    places["first_node"] += 2 * (places["job"] == 2)
    monkeypatch.setattr(Result, "placements", places)
    assert (
        differences_of_site(result, WATCHED.jobs, {}, reserved)[0]
        == "job 2 on nodes [2, 3, 4] at 13.0: it may have [[0, 1, 2, 3]]"
    )


WATCHED: Final = Case(
    Machine(nodes=6, partitions=[Partition(name="a", nodes="0-3"), Partition(name="b", nodes="4-5")]),
    (
        Job(id=1, nodes=3, submit_s=0, run_s=10, partition="a", user=1),
        Job(id=2, nodes=3, submit_s=0, run_s=10, partition="a", user=1),
        Job(id=3, nodes=1, submit_s=0, run_s=5, partition="a", after_ok=2),
        Job(id=4, nodes=4, submit_s=1, run_s=3, partition="a"),
    ),
    Site(limits=[Limits(user="*", running_jobs=1)]),
    {},
)
