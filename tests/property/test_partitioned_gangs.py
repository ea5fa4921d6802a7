"""Gangs in rows on machines with partitions: what holds in every run, and the two fidelities against each other."""

from contextlib import nullcontext
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from clustermodel import Partition, Scenario, Workload
from clustermodel.experiment.result import Result
from clustermodel.machine.node_set import as_mask
from clustermodel.policies import gang
from clustermodel.recording.run_attempts import UNKNOWN, Status
from clustermodel.sim.simulation import Fidelity
from clustermodel.workload.job import Demand, JobRow
from tests.gang_runs import POLICIES, GangCase, check_books, gang_cases, run, seen_in_time
from tests.property.strategies import cases
from tests.property.test_failures import failing
from tests.property.test_gang import attempts_of
from tests.property.test_node_memory import with_memory

quick = settings(max_examples=cases(200), suppress_health_check=[HealthCheck.too_slow], deadline=None)
ALL = (*POLICIES, "adaptive")
URGENT = tuple(f"{policy}:urgent={mode}" for policy in ("bgs", "mbgs") for mode in ("kill", "checkpoint", "suspend"))
NAMES = ("a", "b", "c", "a,b")


class PartitionedCase(NamedTuple):
    case: GangCase
    named: list[str | None]
    """The partitions that each job names."""

    def run(self, policy: str, fidelity: Fidelity = "fast") -> Result:
        """Run the case, and check its books and which nodes jobs have had."""
        (machine, rows), named = self
        demands = [None if name is None else Demand(partition=name) for name in named]
        workload = Workload([row._replace(demand=demand) for row, demand in zip(rows, demands, strict=True)])
        result = Scenario(machine=machine, workload=workload, policy=policy, fidelity=fidelity, history=True).run()
        check_books(result)
        nodes = {part.name: as_mask(part.node_set) for part in machine.partitions}
        allowed = {None: [(1 << machine.nodes) - 1], "a,b": [nodes["a"], nodes["b"]], **{name: [nodes[name]] for name in nodes}}
        own = {row.id: allowed[name] for row, name in zip(rows, named, strict=True)}
        if result.slices is None:
            return result  # the machine has rejected all jobs
        for moment in result.history.moments:
            for cells in moment.rows:
                taken = 0
                for cell in cells:
                    assert any(not cell.columns & ~of_one for of_one in own[cell.job])
                    assert not cell.columns & taken
                    taken |= cell.columns
        placed = result.placements
        for number, first, count in zip(placed["job"], placed["first_node"], placed["nodes"], strict=True):
            assert any(not ((1 << count) - 1 << first) & ~of_one for of_one in own[number])
        return result


@st.composite
def partitioned(draw: st.DrawFn, drawn: st.SearchStrategy[GangCase]) -> PartitionedCase:
    """Return a case with three partitions, of any nodes, some of them with priority; each job names some, or none."""
    machine, rows = draw(drawn)
    sets = st.sets(st.integers(0, machine.nodes - 1), min_size=1)
    partitions = [Partition(name=name, nodes=sorted(draw(sets)), priority=draw(st.sampled_from((0, 0, 1)))) for name in "abc"]
    names = draw(st.lists(st.sampled_from((*NAMES, None)), min_size=len(rows), max_size=len(rows)))
    return PartitionedCase(GangCase(replace(machine, partitions=partitions), rows), names)


def agree(case: PartitionedCase, policy: str) -> Result:
    """Run a case in both fidelities, and check that they agree and that every job ends."""
    fast = case.run(policy)
    with nullcontext() if fast.slices is not None else pytest.warns(UserWarning, match="nothing to play"):
        node = case.run(policy, fidelity="node")
    assert seen_in_time(fast) == seen_in_time(node)
    assert attempts_of(fast) == attempts_of(node)
    assert set(fast.records.column("ended_as").tolist()) <= {Status.COMPLETED, Status.KILLED, Status.REJECTED}
    return fast


@settings(quick, max_examples=cases(400))
@given(case=partitioned(gang_cases(largest=14)), policy=st.sampled_from(ALL))
def test_gangs_get_nodes_of_their_partitions_only_and_both_fidelities_agree(case: PartitionedCase, policy: str) -> None:
    agree(case, policy)


@settings(quick, max_examples=cases(250))
@given(case=partitioned(failing(gang_cases(), in_rows=True)), policy=st.sampled_from(ALL))
def test_where_nodes_fail(case: PartitionedCase, policy: str) -> None:
    agree(case, policy)


@settings(quick, max_examples=cases(250))
@given(case=partitioned(with_memory(gang_cases())), policy=st.sampled_from((*ALL, *URGENT)))
def test_where_memory_is_limited(case: PartitionedCase, policy: str) -> None:
    agree(case, policy)


@settings(quick, max_examples=cases(250))
@given(case=partitioned(gang_cases()), policy=st.sampled_from(URGENT))
def test_urgent_jobs(case: PartitionedCase, policy: str) -> None:
    costs = case.case.machine.checkpointing
    if costs.max_tasks_per_slice == 0:
        machine = replace(case.case.machine, checkpointing=replace(costs, max_tasks_per_slice=1))
        case = case._replace(case=case.case._replace(machine=machine))
    agree(case, policy)


@settings(quick)
@given(
    case=partitioned(gang_cases(mpl=1, free=True, exact_estimates=True, priorities=False)),
    policy=st.sampled_from(("bgs", "mbgs")),
)
def test_with_one_row_and_no_costs_every_promise_is_kept(case: PartitionedCase, policy: str) -> None:
    partitions = [replace(part, priority=0) for part in case.case.machine.partitions]
    case = case._replace(case=case.case._replace(machine=replace(case.case.machine, partitions=partitions)))
    records = case.run(policy).records
    start, promised = records.column("start"), records.column("reserved")
    assert (start <= promised)[promised != UNKNOWN].all()


# One pool, and partitions that share no node.


ANY = st.one_of(gang_cases(largest=14), with_memory(failing(gang_cases(), in_rows=True)))


@settings(quick)
@given(case=ANY, policy=st.sampled_from((*ALL, *URGENT)))
def test_partitions_of_all_nodes_change_nothing(case: GangCase, policy: str) -> None:
    assume("urgent" not in policy or case.machine.checkpointing.max_tasks_per_slice != 0)
    everywhere = [Partition(name=name, nodes=range(case.machine.nodes)) for name in "abc"]
    named = [NAMES[number % 4] for number in range(len(case.rows))]
    plain = run(case, policy)
    parts = PartitionedCase(case._replace(machine=replace(case.machine, partitions=everywhere)), named).run(policy)
    assert seen_in_time(parts) == seen_in_time(plain)


@settings(quick, max_examples=cases(250))
@given(case=ANY, policy=st.sampled_from((*ALL, *URGENT)))
def test_plans_over_one_pool_are_those_of_the_whole_machine(case: GangCase, policy: str) -> None:
    assume("urgent" not in policy or case.machine.checkpointing.max_tasks_per_slice != 0)
    plain = run(case, policy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gang, "are_alike", lambda _: False)
        assert seen_in_time(run(case, policy)) == seen_in_time(plain)


def in_two_halves(case: GangCase, other: list[JobRow]) -> PartitionedCase:
    """Return a machine of twice the nodes with the jobs of a case in one half, and others in the other one."""
    nodes = case.machine.nodes
    partitions = [Partition(name=name, nodes=range(low, low + nodes)) for name, low in (("a", 0), ("b", nodes))]
    partitions.append(Partition(name="c", nodes=range(2 * nodes)))
    both = sorted([(row, "a") for row in case.rows] + [(row, "b") for row in other])
    machine = replace(case.machine, nodes=2 * nodes, partitions=partitions)
    return PartitionedCase(GangCase(machine, [row for row, _ in both]), [name for _, name in both])


def renumbered(rows: list[JobRow]) -> list[JobRow]:
    return [row._replace(id=row.id + 100) for row in rows]


def of(result: Result, jobs: list[JobRow]) -> dict[int, tuple[int, ...]]:
    """Return what has become of some jobs."""
    columns = [result.records.column(name).tolist() for name in ("id", "start", "end", "worked", "ended_as", "reserved")]
    table = {number: values for number, *values in zip(*columns, strict=True)}
    return {row.id % 100: tuple(table[row.id]) for row in jobs}


@settings(quick, max_examples=cases(250))
@given(case=gang_cases(priorities=False, largest=14), policy=st.sampled_from(POLICIES))
def test_two_halves_with_the_same_jobs_are_each_like_one_alone(case: GangCase, policy: str) -> None:
    # Whatever the rows and the costs: the halves need the same rows at the same time.  The store would be shared.
    costs = replace(case.machine.checkpointing, max_tasks_per_slice=None)
    case = case._replace(machine=replace(case.machine, checkpointing=costs))
    twins = renumbered(case.rows)
    alone = of(run(case, policy), case.rows)
    together = in_two_halves(case, twins).run(policy)
    assert of(together, case.rows) == of(together, twins) == alone


@settings(quick, max_examples=cases(250))
@given(
    case=gang_cases(mpl=1, free=True, priorities=False, largest=14),
    other=st.lists(st.tuples(st.integers(0, 40), st.integers(1, 6), st.integers(1, 30)), max_size=14),
    policy=st.sampled_from(POLICIES),
)
def test_with_one_row_and_no_costs_two_halves_are_two_machines(
    case: GangCase, other: list[tuple[int, int, int]], policy: str
) -> None:
    unit = max(row.run for row in case.rows) // 20 + 1
    rows = [
        JobRow(submit * unit, number, nodes, run_time * unit, run_time * unit, -1, -1, 0, -1)
        for number, (submit, nodes, run_time) in enumerate(other, 101)
    ]
    together = in_two_halves(case, rows).run(policy)
    assert of(together, case.rows) == of(run(case, policy), case.rows)
    if rows:
        assert of(together, rows) == of(run(GangCase(case.machine, sorted(rows)), policy), rows)
