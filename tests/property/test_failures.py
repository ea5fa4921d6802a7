"""Nodes that fail, periodic checkpoints: what holds in every run, and the two fidelities against each other."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from clustermodel import CheckpointStore
from clustermodel.experiment.result import Result
from clustermodel.machine.checkpoints import WRITERS
from clustermodel.machine.failure import Failure
from clustermodel.recording.run_attempts import UNKNOWN, Status
from clustermodel.ticks import TICKS_PER_SECOND, to_seconds
from clustermodel.validation import KIB_PER_GIB
from clustermodel.workload.job import UNSET, Demand, OwnCosts
from tests.gang_runs import POLICIES, GangCase, gang_cases, run, seen_in_time
from tests.property.strategies import cases
from tests.property.test_gang import attempts_of, both_fidelities

quick = settings(max_examples=cases(200), suppress_health_check=[HealthCheck.too_slow], deadline=None)


@dataclass(frozen=True)
class Listed:
    """Failures as they are listed."""

    listed: tuple[Failure, ...]
    mean_repair_s: float = 1e-5

    def node_mtbf_s(self, nodes: int) -> float:
        return 1.0

    def failures(self, nodes: int, rng: np.random.Generator) -> tuple[Failure, ...]:
        return self.listed


@st.composite
def failing(draw: st.DrawFn, cases: st.SearchStrategy[GangCase], *, in_rows: bool) -> GangCase:
    """Return a case whose nodes fail, mostly at times at which something else happens, and whose gangs may be checkpointed."""
    machine, rows = draw(cases)
    unit = machine.time_slicing.quantum
    times = sorted({row.submit for row in rows} | {row.submit + row.run for row in rows} | {unit, 2 * unit})
    up = dict.fromkeys(range(machine.nodes), 0)
    listed = []
    for time in sorted(
        draw(st.lists(st.sampled_from(times) | st.integers(0, 60).map(lambda n: n * max(unit // 4, 1)), max_size=8))
    ):
        node = draw(st.integers(0, machine.nodes - 1))
        repair = draw(st.sampled_from((0, 1, unit, 3 * unit, 20 * unit)))
        if time >= up[node]:
            listed.append(Failure(time, node, repair))
            up[node] = time + repair + 1
    costs = machine.checkpointing
    costs = replace(costs, max_tasks_per_slice=costs.max_tasks_per_slice or None)
    if draw(st.booleans()):
        limit = None if in_rows else costs.max_tasks_per_slice
        interval = draw(st.integers(1, 12)) * max(unit // 4, 1)
        costs = replace(costs, interval_s=to_seconds(interval), max_tasks_per_slice=limit)
    expected = to_seconds(draw(st.sampled_from((1, unit, 5 * unit))))
    return GangCase(replace(machine, failures=Listed(tuple(listed), expected), checkpointing=costs), rows)


@st.composite
def storing(draw: st.DrawFn, cases: st.SearchStrategy[GangCase], *, in_rows: bool) -> GangCase:
    """Return the case with a store that has a bandwidth, or with costs and intervals of some jobs' own."""
    machine, rows = draw(cases)
    unit, costs = max(machine.time_slicing.quantum // 4, 1), machine.checkpointing
    if draw(st.booleans()):
        costs = replace(
            costs,
            checkpoint_s=0,
            restart_s=0,
            max_tasks_per_slice=None,
            counts="gang",
            store=draw(stores(in_rows, machine.nodes)),
        )
    if in_rows and costs.interval_s is not None:
        costs = replace(costs, max_tasks_per_slice=None)
    times = st.just(UNSET) | st.integers(0, 8).map(lambda n: n * unit)
    intervals = st.just(UNSET) | st.integers(1, 12).map(lambda n: n * unit)
    rows = [
        row._replace(
            # A gibibyte takes a second alone; a task has as many as a unit of time has seconds, up to four times.
            memory=draw(st.integers(0, 4)) * max(unit * KIB_PER_GIB // TICKS_PER_SECOND, 1),
            demand=Demand(costs=OwnCosts(draw(times), draw(times), draw(intervals))),
        )
        for row in rows
    ]
    return GangCase(replace(machine, checkpointing=costs), rows)


def stores(in_rows: bool, nodes: int) -> st.SearchStrategy[CheckpointStore]:
    """Return stores whose bandwidth is a gibibyte a second and node or so, of which rows can have some only."""
    rates = st.sampled_from((0.5, 1, 1.5))
    if in_rows:
        return st.builds(CheckpointStore, node_bandwidth_gib_s=rates)
    limits = st.none() | st.integers(1, nodes + 1)
    limited = st.builds(
        CheckpointStore, bandwidth_gib_s=rates, node_bandwidth_gib_s=rates | st.none(), max_concurrent_tasks=limits
    )
    return limited | st.builds(CheckpointStore, bandwidth_gib_s=rates, writers=st.sampled_from(WRITERS))


def note(result: Result) -> None:
    for outcome in sorted({Status(outcome).label for outcome in result.records.stopped_runs.ended_as.tolist()}):
        event(outcome)


@settings(quick, max_examples=cases(250))
@given(
    case=failing(gang_cases(), in_rows=True),
    policy=st.sampled_from((*POLICIES, "adaptive", "bgs:urgent=checkpoint", "bgs:urgent=suspend")),
)
def test_both_fidelities_agree(case: GangCase, policy: str) -> None:
    fast, node = both_fidelities(case, lambda: policy)
    note(fast)
    assert seen_in_time(fast) == seen_in_time(node)
    assert attempts_of(fast) == attempts_of(node)
    assert [column.tolist() for column in fast.records.outages] == [column.tolist() for column in node.records.outages]


@settings(quick, max_examples=cases(250))
@given(
    case=storing(failing(gang_cases(), in_rows=True), in_rows=True),
    policy=st.sampled_from((*POLICIES, "adaptive", "bgs:urgent=checkpoint", "bgs:urgent=suspend")),
)
def test_both_fidelities_agree_where_jobs_have_costs_of_their_own(case: GangCase, policy: str) -> None:
    fast, node = both_fidelities(case, lambda: policy)
    note(fast)
    assert seen_in_time(fast) == seen_in_time(node)
    assert attempts_of(fast) == attempts_of(node)


DEDICATED = (
    "fcfs", "easy", "easy:reserve_depth=3", "conservative", "slack", "pv-easy", "pv-easy:mode=checkpoint",
    "pv-easy:mode=suspend", "pv-easy:vb=false", "ss", "ss:mode=checkpoint", "ss:mode=kill", "server-filling", "D-NG",
    "backfilling:guarantees=selective", "backfilling:guarantees=relaxed", "backfilling:speculation=0.9,test_runs=true",
    "backfilling:width=greedy,widening=2",
)  # fmt: skip


_ON_DEDICATED_NODES = failing(gang_cases(perhaps_none_runs=False), in_rows=False)


@settings(quick, max_examples=cases(500))
@given(case=_ON_DEDICATED_NODES | storing(_ON_DEDICATED_NODES, in_rows=False), policy=st.sampled_from(DEDICATED))
def test_every_policy_copes_on_dedicated_nodes(case: GangCase, policy: str) -> None:
    if case.machine.checkpointing.max_tasks_per_slice == 0:
        case = case._replace(
            machine=replace(case.machine, checkpointing=replace(case.machine.checkpointing, max_tasks_per_slice=1))
        )
    result = run(case, policy)
    note(result)
    records = result.records
    outages, ranges = records.outages, records.node_ranges
    for node, start, end in zip(*(column.tolist() for column in outages), strict=True):
        until = np.iinfo(np.int64).max if end == UNKNOWN else end
        on_it = (ranges.first_node <= node) & (node < ranges.first_node + ranges.nodes)
        assert not ((ranges.since < until) & (ranges.until > start) & on_it).any(), "no gang holds a node that is down"
    assert (records.column("ended_as") != Status.UNFINISHED).all()
