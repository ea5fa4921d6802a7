"""Nodes that fail, periodic checkpoints: what holds in every run, and the two fidelities against each other."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from clustermodel.experiment.result import Result
from clustermodel.failures.failure import Failure
from clustermodel.recording.run_attempts import UNKNOWN, Status
from clustermodel.ticks import to_seconds
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


def note(result: Result) -> None:
    for outcome in sorted({Status(outcome).label for outcome in result.records.stopped_runs.ended_as.tolist()}):
        event(outcome)


@settings(quick, max_examples=cases(1000))
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


DEDICATED = (
    "fcfs",
    "easy",
    "easy:reserve_depth=3",
    "conservative",
    "slack",
    "pv-easy",
    "pv-easy:mode=checkpoint",
    "pv-easy:mode=suspend",
    "pv-easy:vb=false",
    "ss",
    "ss:mode=checkpoint",
    "ss:mode=kill",
    "server-filling",
    "D-NG",
    "backfilling:guarantees=selective",
    "backfilling:guarantees=relaxed",
    "backfilling:speculation=0.9,test_runs=true",
    "backfilling:width=greedy,widening=2",
)


@settings(quick, max_examples=cases(1500))
@given(case=failing(gang_cases(perhaps_none_runs=False), in_rows=False), policy=st.sampled_from(DEDICATED))
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
