"""Idle nodes against a plain Python set, operation by operation, and what a policy may name as a gang's nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from clustermodel import Batch, DecisionError, Job, Machine, Scenario, Setup, Start, View, Workload
from clustermodel.machine.node_set import IdleNodes, NodeSet, as_mask, count, from_mask, holds_any, lowest, text

WIDTH = 20


def members(nodes: NodeSet) -> set[int]:
    """Return the nodes one by one."""
    return {node for low, high in zip(nodes[::2], nodes[1::2], strict=True) for node in range(low, high)}


def ranges(nodes: set[int]) -> NodeSet:
    """Return a set of nodes as ranges, touching ones merged."""
    bounds: list[int] = []
    for node in sorted(nodes):
        if bounds and bounds[-1] == node:
            bounds[-1] = node + 1
        else:
            bounds += (node, node + 1)
    return tuple(bounds)


some_nodes = st.sets(st.integers(0, WIDTH - 1), min_size=1)


@given(bounds=st.sets(st.integers(0, 10_000), min_size=2, max_size=12), share=st.floats(0, 1))
def test_masks_of_wide_machines_are_the_sets_they_stand_for(bounds: set[int], share: float) -> None:
    ascending = sorted(bounds)
    nodes = tuple(ascending[: len(ascending) // 2 * 2])
    assert from_mask(as_mask(nodes)) == nodes
    chosen = round(share * count(nodes))
    assert members(from_mask(lowest(as_mask(nodes), chosen))) == set(sorted(members(nodes))[:chosen])


class IdleNodesBesideASet(RuleBasedStateMachine):
    """Gangs come and go; whatever IdleNodes does, the set does too."""

    def __init__(self) -> None:
        super().__init__()
        self.idle = IdleNodes(WIDTH)
        self.model = set(range(WIDTH))
        self.held: list[NodeSet] = []

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def take_lowest(self, data: st.DataObject) -> None:
        wanted = data.draw(st.integers(1, len(self.model)))
        taken = self.idle.take_lowest(wanted)
        assert taken == ranges(set(sorted(self.model)[:wanted]))
        self.model -= members(taken)
        self.held.append(taken)

    @rule(wanted=some_nodes)
    def take_particular_nodes(self, wanted: set[int]) -> None:
        possible = wanted <= self.model
        assert self.idle.take(ranges(wanted)) is possible
        if possible:
            self.model -= wanted
            self.held.append(ranges(wanted))

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def take_particular_idle_nodes(self, data: st.DataObject) -> None:
        self.take_particular_nodes(data.draw(st.sets(st.sampled_from(sorted(self.model)), min_size=1)))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        back = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.idle.give_back(back)
        self.model |= members(back)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def give_back_a_part(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.held) - 1))
        whole = members(self.held[at])
        part = data.draw(st.sets(st.sampled_from(sorted(whole)), min_size=1))
        self.idle.give_back(ranges(part))
        self.model |= part
        self.held[at] = ranges(whole - part)
        if not self.held[at]:
            del self.held[at]

    @invariant()
    def the_two_agree(self) -> None:
        assert self.idle.as_set() == ranges(self.model), "sorted, disjoint, touching ranges merged"
        assert self.idle.count == len(self.model)


TestIdleNodesBesideASet = IdleNodesBesideASet.TestCase


def test_all_nodes_are_idle_at_first() -> None:
    idle = IdleNodes(5)
    assert (idle.as_set(), idle.count) == ((0, 5), 5)
    assert idle.take_lowest(5) == (0, 5)
    assert (idle.as_set(), idle.count) == ((), 0)
    assert idle.take_lowest(0) == ()
    idle.give_back((0, 5))
    assert (idle.as_set(), idle.count) == ((0, 5), 5)


def test_the_lowest_nodes_may_lie_in_several_ranges() -> None:
    idle = IdleNodes(10)
    assert idle.take((1, 3, 5, 6))  # idle: 0, 3-4, 6-9
    assert idle.take_lowest(4) == (0, 1, 3, 5, 6, 7)
    assert idle.as_set() == (7, 10)


@given(taken=some_nodes, low=st.integers(0, WIDTH - 1), length=st.integers(1, WIDTH))
def test_giving_back_a_node_that_is_idle_is_refused_and_changes_nothing(taken: set[int], low: int, length: int) -> None:
    idle, back = IdleNodes(WIDTH), (low, min(low + length, WIDTH))
    assert idle.take(ranges(taken))
    if members(back) <= taken:
        idle.give_back(back)
        taken -= members(back)
    else:
        with pytest.raises(ValueError, match=f"nodes {back[0]}-{back[1] - 1} overlap nodes that are idle already"):
            idle.give_back(back)
    assert members(idle.as_set()) == set(range(WIDTH)) - taken
    assert idle.count == WIDTH - len(taken)


def test_taking_nothing_or_nodes_outside_the_machine() -> None:
    idle = IdleNodes(4)
    assert idle.take(())
    for outside in ((3, 5), (4, 5), (-1, 1), (2, 2), (3, 1)):
        assert not idle.take(outside)
    assert idle.as_set() == (0, 4)


@given(some_nodes)
def test_a_set_as_count_text_and_mask(nodes: set[int]) -> None:
    bounds = ranges(nodes)
    assert count(bounds) == len(nodes)
    assert as_mask(bounds) == sum(2**node for node in nodes)
    read_back: set[int] = set()
    for interval in text(bounds).split():
        low, _, high = interval.partition("-")
        read_back |= set(range(int(low), int(high or low) + 1))
    assert read_back == nodes


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)))
def test_a_set_holds_any_of_the_nodes_that_are_in_it(nodes: set[int], some: set[int]) -> None:
    assert holds_any(from_mask(sum(1 << node for node in nodes)), some) == bool(nodes & some)


def test_the_text_of_a_set() -> None:
    assert text((0, 4, 7, 8)) == "0-3 7"
    assert text((0, 2)) == "0-1"
    assert text(()) == ""
    assert (count(()), as_mask(())) == (0, 0)


class StartsOn:
    """Starts every job on the nodes it was made with."""

    name = "mine"

    def __init__(self, columns: NodeSet) -> None:
        self._columns = columns

    def start(self, setup: Setup) -> object:
        """Nothing to remember."""
        return self

    def decide(self, batch: Batch, view: View) -> list[Start]:
        return [Start(job=job, columns=self._columns) for job in view.waiting.values()]


def start_four_nodes_on(columns: NodeSet) -> NodeSet:
    """Run one job of four nodes on a machine of eight and return what it held."""
    workload = Workload.from_jobs([Job(id=1, nodes=4, submit_s=0, run_s=5)])
    return Scenario(machine=Machine(nodes=8), workload=workload, policy=StartsOn(columns)).run().records.columns_of(0)


@pytest.mark.parametrize("columns", [(2, 6), (0, 2, 6, 8), (0, 1, 2, 3, 4, 5, 6, 7)])
def test_a_gang_holds_the_nodes_that_the_policy_names(columns: NodeSet) -> None:
    assert start_four_nodes_on(columns) == columns


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((0, 3), r"job 1 cannot start on 3 columns \(0-2\): its gang needs 4"),
        ((), r"job 1 cannot start on 0 columns \(\): its gang needs 4"),
        ((6, 10), "job 1 cannot start on columns 6-9: not all of them are idle"),
        (
            (0, 2, 0, 2),
            r"job 1 cannot run on columns \(0, 2, 0, 2\): a tuple has the bounds of ranges",
        ),  # a node named twice would be held twice
        ((0, 3, 2, 3), r"job 1 cannot run on columns \(0, 3, 2, 3\): a tuple"),
        ((0, 2, 5), "job 1 cannot start on"),  # a range without an end
    ],
)
def test_nodes_that_a_gang_cannot_hold_are_refused(columns: NodeSet, message: str) -> None:
    with pytest.raises(DecisionError, match=f"policy mine: {message}"):
        start_four_nodes_on(columns)


def test_no_nodes_are_found_in_an_empty_set() -> None:
    assert lowest(0, 0) == 0
    with pytest.raises(ValueError, match="1 nodes of an empty set are asked for"):
        lowest(0, 1)
