"""Shares where jobs differ in the nodes that they may have: worked by hand, and against all sets of pools."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustermodel.machine.node_set import from_mask
from clustermodel.plans.fair_shares import FairShares
from clustermodel.plans.pools import Pools
from clustermodel.policies.rounds import max_min_shares
from clustermodel.policies.view import Outage, QueuedJob, View
from clustermodel.sim.compiled import is_compiled


def job(number: int, nodes: int, mask: int | None = None) -> QueuedJob:
    made = QueuedJob(number, nodes, 0, 100, 1, 1, 0)
    made.allowed = None if mask is None else from_mask(mask)
    return made


def fair(nodes: int, jobs: list[QueuedJob], down: tuple[int, ...] = ()) -> FairShares:
    sets = dict.fromkeys(each.allowed for each in jobs if each.allowed is not None)
    view = View()
    view.up, view.down = nodes - len(down), {node: Outage(node, 0, 1) for node in down}
    return FairShares(Pools(nodes, sets), jobs, view)


def test_partitions_without_common_nodes_are_machines_of_their_own() -> None:
    # Nodes 0 to 3 for two jobs of 4 nodes, nodes 4 to 7 for one of 1 and one of 4.
    jobs = [job(1, 4, 0x0F), job(2, 4, 0x0F), job(3, 1, 0xF0), job(4, 4, 0xF0)]
    assert fair(8, jobs).of_all(max_min_shares) == {1: 0.5, 2: 0.5, 3: 1.0, 4: 0.75}


def test_a_job_takes_its_share_where_fewer_compete() -> None:
    # Level 8/3 is too much for 1 and 2, which have nodes 0 to 3 together: 2 each.  3 has the other 4 of 6.
    jobs = [job(1, 4, 0x0F), job(2, 4, 0x0F), job(3, 6, 0xFC)]
    assert fair(8, jobs).of_all(max_min_shares) == {1: 0.5, 2: 0.5, 3: pytest.approx(4 / 6)}


def test_nodes_of_several_partitions_are_shared_by_all_that_may_have_them() -> None:
    # 1 may have nodes 0 and 1, 2 nodes 1 and 2, 3 nodes 2 and 3: 4/3 of a node each, 2 two thirds of nodes 1 and 2.
    jobs = [job(1, 2, 0b0011), job(2, 2, 0b0110), job(3, 2, 0b1100)]
    assert fair(4, jobs).of_all(max_min_shares) == {number: pytest.approx(2 / 3) for number in (1, 2, 3)}


def test_equal_shares_divide_each_part_among_those_that_may_have_it() -> None:
    # Nodes 0 and 1 are for 1 alone, 2 and 3 for both, 4 to 7 for 2 alone: 2 + 1 and 1 + 4 nodes.
    jobs = [job(1, 6, 0x0F), job(2, 8, 0xFC)]
    assert [fair(8, jobs).equal(each) for each in jobs] == [3 / 6, 5 / 8]
    assert [fair(8, jobs, down=(4, 5)).equal(each) for each in jobs] == [3 / 6, 3 / 8]
    assert fair(8, [job(1, 6), job(2, 2)]).equal(job(3, 8)) == 4 / 8


def test_a_job_whose_nodes_are_all_down_has_a_share_and_takes_none_of_others() -> None:
    jobs = [job(1, 2, 0b0011), job(2, 2, 0b1100)]
    assert fair(4, jobs, down=(0, 1)).of_all(max_min_shares) == {1: 0.5, 2: 1.0}


@pytest.mark.skipif(is_compiled(), reason="it writes to jobs, which compiled modules do not allow")
@given(
    drawn=st.lists(st.tuples(st.integers(1, 8), st.sampled_from([0x0F, 0xF0, 0x3C, 0xFF, 0xC3, 0x03])), min_size=1, max_size=9)
)
def test_no_share_can_grow_but_at_the_cost_of_one_that_is_not_higher(drawn: list[tuple[int, int]]) -> None:
    jobs = [job(number, nodes, mask) for number, (nodes, mask) in enumerate(drawn)]
    shares = fair(8, jobs).of_all(max_min_shares)
    masks = dict(enumerate(mask for _, mask in drawn))
    nodes_of = {each.id: shares[each.id] * each.nodes for each in jobs}
    full: list[list[int]] = []  # jobs that have all nodes that they may have
    kinds = sorted(set(masks.values()))
    for number in range(1, len(kinds) + 1):
        for chosen in combinations(kinds, number):
            union = 0
            for mask in chosen:
                union |= mask
            within = [each.id for each in jobs if not masks[each.id] & ~union]
            used = sum(nodes_of[number] for number in within)
            assert used <= union.bit_count() + 1e-6
            if used >= union.bit_count() - 1e-6:
                full.append(within)
    for each in jobs:
        highest = any(each.id in ids and nodes_of[each.id] >= max(nodes_of[i] for i in ids) - 1e-6 for ids in full)
        assert shares[each.id] == pytest.approx(1) or highest
