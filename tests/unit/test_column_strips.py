"""Strips of columns against sets of columns, and the matrix in strips against the matrix in columns."""

from __future__ import annotations

import random
from bisect import bisect_right

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel.schedule.column_strips import ColumnStrips
from clustermodel.schedule.node_set import NodeSet, as_mask, from_mask, lowest
from clustermodel.schedule.ousterhout import OusterhoutMatrix
from clustermodel.schedule.planned_gangs import Change
from tests.property.strategies import cases
from tests.unit.test_ousterhout import Job

COLUMNS = 40


@settings(max_examples=cases(300))
@given(seed=st.integers(0, 2**32))
def test_sets_of_strips_are_the_sets_of_columns_whatever_is_cut_and_joined(seed: int) -> None:
    draw = random.Random(seed)
    strips = ColumnStrips(COLUMNS)
    everything = (1 << COLUMNS) - 1
    assert strips.nodes(strips.all_bits) == (0, COLUMNS)
    held: list[tuple[int, int]] = []  # sets of columns, and of strips
    for _ in range(draw.randint(1, 12)):
        wanted = draw.getrandbits(COLUMNS) & draw.getrandbits(COLUMNS) & everything
        for column in from_mask(wanted):
            if strips.cut(column):
                held = [(columns, strips.renewed(mask)) for columns, mask in held]
        held.append((wanted, strips.mask(from_mask(wanted))))
        if draw.random() < 0.3:
            held = draw.sample(held, draw.randrange(len(held)))
            strips.join(mask for _, mask in held)
            held = [(columns, strips.renewed(mask)) for columns, mask in held]
        assert strips.nodes(strips.all_bits) == (0, COLUMNS)
        for columns, mask in held:
            assert strips.nodes(mask) == from_mask(columns)
            for others, other in held:
                assert strips.nodes(mask & other) == from_mask(columns & others)
                assert strips.nodes(strips.all_bits ^ (mask | other)) == from_mask(everything ^ (columns | others))
            if columns:
                few = draw.randint(1, columns.bit_count())
                end = strips.end_of_lowest(mask, few)
                assert end == lowest(columns, few).bit_length()


def test_strips_are_joined_where_no_set_begins_or_ends() -> None:
    strips = ColumnStrips(100)
    assert [strips.cut(column) for column in (10, 30, 10, 60)] == [True, True, False, True]
    low, high = strips.mask((0, 30)), strips.mask((30, 100))
    assert (low, high, strips.all_bits) == (0b0011, 0b1100, 0b1111)
    strips.join([low, high])
    assert (strips.renewed(low), strips.renewed(high), strips.all_bits) == (0b01, 0b10, 0b11)
    assert strips.nodes(0b10) == (30, 100)
    strips.join([])
    assert strips.all_bits == 1


def test_more_columns_than_a_set_has_are_refused() -> None:
    strips = ColumnStrips(100)
    strips.cut(30)
    assert strips.end_of_lowest(0b01, 30) == 30
    with pytest.raises(ValueError, match="a set lacks 1 columns"):
        strips.end_of_lowest(0b01, 31)


def test_there_are_many_strips_when_masks_are_a_thousand_bits_long() -> None:
    strips = ColumnStrips(5_000)
    for column in range(1, 1_024):
        strips.cut(column)
    assert not strips.are_many
    strips.cut(1_024)
    assert strips.are_many
    strips.join([])
    assert not strips.are_many


@settings(max_examples=cases(300))
@given(
    nodes=st.integers(1, 40),
    mpl=st.integers(1, 5),
    limit=st.none() | st.integers(0, 40),
    costs=st.sampled_from([(0, 0), (1, 1), (5, 0), (0, 5), (3, 7)]),
    seed=st.integers(0, 2**32),
)
def test_a_matrix_in_strips_changes_as_the_one_in_columns(
    nodes: int, mpl: int, limit: int | None, costs: tuple[int, int], seed: int
) -> None:
    draw = random.Random(seed)
    both: list[OusterhoutMatrix[Job]] = [
        OusterhoutMatrix(nodes, mpl, checkpoint=costs[0], restart=costs[1], max_tasks=limit, strips=strips)
        for strips in (False, True)
    ]
    down: list[int] = []
    for number in range(0, 4 * draw.randint(1, 20), 4):
        gone = [job for job in both[0].occupants if draw.random() < 0.25]
        paid = [job for job in both[0].occupants if job not in gone and draw.random() < 0.5]
        failing, repaired = draw.randrange(nodes), draw.randrange(nodes)
        fails, joins = failing not in down and draw.random() < 0.2, draw.random() < 0.3
        new = [Job(number + place, draw.randint(1, nodes)) for place in range(draw.randrange(4))]
        seen = []
        for matrix in both:
            for job in gone:
                matrix.remove(job)
            for job in paid:
                matrix.occupants[job].migrating = False
            if fails:
                for job in [job for job, gang in matrix.occupants.items() if holds(matrix.nodes_of(gang.columns), failing)]:
                    matrix.remove(job)
                matrix.lose(failing, -1 - failing)
            if repaired in down:
                matrix.give_up(-1 - repaired)
            seen.append((rebuilt(matrix, new, joins=joins), matrix.room, matrix.occupancy, places(matrix)))
        down = [node for node in down if node != repaired] + ([failing] if fails else [])
        assert seen[0] == seen[1]
    assert both[0].set_aside == as_mask(both[1].nodes_of(both[1].set_aside)) == sum(1 << node for node in down)


def holds(nodes: NodeSet, node: int) -> bool:
    """Return whether a node is in a set."""
    return bool(bisect_right(nodes, node) % 2)


def rebuilt(matrix: OusterhoutMatrix[Job], new: list[Job], *, joins: bool) -> Change[Job]:
    """Schedule those of ``new`` for which there is room, in all steps; return what has changed."""
    matrix.compact()
    matrix.clean()
    for job in new:
        if (row := matrix.fullest_row(job.nodes)) is not None:
            matrix.add(job, row)
    matrix.collapse_with_migration()
    matrix.fill()
    matrix.fill_with_migration()
    if matrix._strips is not None and joins:
        matrix._strips._most = 0
    return matrix.changes()


def places(matrix: OusterhoutMatrix[Job]) -> dict[int, tuple[NodeSet, int, int]]:
    """Return the columns, rows and home row of each gang."""
    return {number: (matrix.nodes_of(gang.columns), gang.rows, gang.home) for number, gang in matrix.occupants.items()}
