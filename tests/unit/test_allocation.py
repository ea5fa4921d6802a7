"""Processors of nodes that have several: which ones a gang gets, and how often they are scattered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustermodel import Job, Machine, NodeFailures, Scenario, SpecificationError, Workload
from clustermodel.experiment.result import Result
from clustermodel.machine.node_set import as_mask, consolidated, from_mask, text


@pytest.mark.parametrize(
    ("idle", "processors", "chosen", "nodes"),
    [
        ((0, 16), 8, "0-7", 1),  # a whole node
        ((2, 16), 4, "2-5", 1),  # the fullest node that has enough
        ((2, 16), 8, "8-15", 1),
        ((6, 10), 3, "6-8", 2),  # two on each of two nodes
        ((4, 24), 10, "4-5 8-15", 2),  # a whole node, and the fullest that has two more
        ((0, 1, 8, 9, 16, 17), 3, "0 8 16", 3),
        ((0, 3, 8, 12, 16, 21), 7, "0-1 16-20", 2),  # the emptiest node first, and two more of the fullest that has them
    ],
)
def test_as_few_nodes_as_possible(idle: tuple[int, ...], processors: int, chosen: str, nodes: int) -> None:
    found, used = consolidated(idle, processors, 8)
    assert (text(found), used) == (chosen, nodes)


@given(idle=st.integers(1, 2**20 - 1), data=st.data())
def test_consolidated_processors_are_idle_and_enough(idle: int, data: st.DataObject) -> None:
    processors = data.draw(st.integers(1, idle.bit_count()))
    found, used = consolidated(from_mask(idle), processors, 4)
    mask = as_mask(found)
    assert mask & ~idle == 0
    assert mask.bit_count() == processors
    shares = sorted(((idle >> 4 * node & 15).bit_count() for node in range(5)), reverse=True)
    assert used == sum((mask >> 4 * node & 15) > 0 for node in range(5))
    assert used == next(count for count in range(1, 6) if sum(shares[:count]) >= processors)


def run(allocation: str) -> Result:
    # 1 to 4 hold 3 of 4 processors of each node, or the first 12; when 5 arrives, 4 of 16 are idle.
    jobs = [Job(id=number, nodes=3, submit_s=0, run_s=9 * number) for number in range(1, 5)]
    jobs.append(Job(id=5, nodes=4, submit_s=1, run_s=5))
    machine = Machine(nodes=4, gpus_per_node=4, allocation=allocation)  # type: ignore[arg-type]
    return Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy="fcfs").run()


@pytest.mark.parametrize(("allocation", "places", "fragmented"), [("lowest", "12-15", 0), ("consolidate", "3 7 11 15", 1)])
def test_fragmentation_is_counted(allocation: str, places: str, fragmented: int) -> None:
    result = run(allocation)
    assert text(result.records.columns_of(4)) == places
    assert result.fragmented_starts == fragmented
    assert result.ledger.capacity == 16 * (result.ledger.end - result.ledger.start)
    assert run("any").jobs.equals(run("lowest").jobs)


def test_a_machine_has_as_many_processors_as_all_its_nodes() -> None:
    assert Machine(nodes=8, gpus_per_node=8).processors == 64
    assert Machine(nodes=8).processors == 8


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"gpus_per_node": 0}, "Machine.gpus_per_node: 0 is not allowed"),
        ({"allocation": "spread"}, "Machine.allocation: 'spread' is not allowed"),
        ({"gpus_per_node": 2, "failures": NodeFailures(mtbf_s=9, repair_s=1)}, "Machine.failures: .* is not allowed with 2"),
    ],
)
def test_what_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        Machine(nodes=2, **fields)  # type: ignore[arg-type]
