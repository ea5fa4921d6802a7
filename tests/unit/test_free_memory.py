"""The free memory of nodes, and the memory of a plan of gangs."""

from clustermodel.machine.node_set import as_mask
from clustermodel.plans.free_memory import FreeMemory
from clustermodel.plans.ousterhout import OusterhoutMatrix
from tests.jobs import queued


def with_memory(nodes: int, kib: int, mpl: int = 2, **costs: int) -> OusterhoutMatrix:
    matrix = OusterhoutMatrix(nodes, mpl, **costs)
    matrix.memory = FreeMemory.of(nodes, kib)
    return matrix


def free(matrix: OusterhoutMatrix, kib: int) -> int:
    assert matrix.memory is not None
    return matrix.memory.nodes_with(kib)


def test_nodes_with_enough() -> None:
    memory = FreeMemory.of(70, 4)
    memory.take((0, 2, 68, 70), 3)
    assert memory.nodes_with(4) == as_mask((2, 68))
    assert memory.nodes_with(1) == as_mask((0, 70))
    assert memory.nodes_with(5) == 0
    copy = memory.copy()
    copy.take((5, 6), 6)
    assert copy.least() == (5, -2)
    assert memory.least() == (0, 1)
    assert copy.fullest(as_mask((1, 3, 68, 70))) == 1
    memory.give_back((0, 2, 68, 70), 3)
    assert memory.nodes_with(4) == as_mask((0, 70))


def test_a_job_gets_the_lowest_columns_that_have_memory() -> None:
    matrix = with_memory(4, 4)
    matrix.add(queued(1, 2, 3), 0)
    assert free(matrix, 2) == 0b1100
    assert matrix.columns_for(queued(2, 1, 1), 1) == 0b1111
    assert matrix.columns_for(queued(2, 1, 2), 1, kept=0b0001) == 0b1101
    assert matrix.add(queued(2, 1, 2), 1).columns == 0b0100
    assert matrix.add(queued(3, 1, 4), 1, kept=0b0010, columns=0b0010).columns == 0b0010
    assert free(matrix, 1) == 0b1111  # what is kept there is known to the memory already


def test_gangs_migrate_to_columns_with_memory() -> None:
    # 2 moves to row 1, where 1 is in its way: either goes to column 3, because column 2 has no memory for it.
    matrix = with_memory(4, 4, checkpoint=1, restart=1)
    first, second = matrix.add(queued(1, 1, 2), 1, 0b0001), matrix.add(queued(2, 1, 2), 0, 0b0001)
    third = matrix.add(queued(3, 1, 3), 1, 0b0010)
    assert matrix.memory is not None
    matrix.memory.take((2, 3), 3)  # a suspended job
    for gang in (first, second, third):
        gang.placed_columns, gang.placed_rows, gang.placed_home = gang.columns, gang.rows, gang.home
    assert matrix.collapse_with_migration()
    assert second.home == 1
    assert first.columns | second.columns == 0b1001
    assert matrix.memory.nodes_with(2) == 0b1001
    assert matrix.memory.least() == (1, 1)


def test_a_gang_that_has_no_memory_elsewhere_stays() -> None:
    matrix = with_memory(2, 4, checkpoint=1, restart=1)
    moving = matrix.add(queued(1, 1, 3), 1, 0b01)
    matrix.add(queued(2, 1, 1), 0, 0b01)
    matrix.memory and matrix.memory.take((1, 2), 4)  # a suspended job
    assert not matrix.collapse_with_migration()
    assert (moving.home, moving.columns) == (1, 0b01)


def test_memory_is_reserved_when_gangs_free_it_and_held_against_jobs_that_end_later() -> None:
    matrix = with_memory(2, 4, mpl=3)
    matrix.add(queued(1, 1, 3), 0, 0b01, end=50)
    matrix.add(queued(2, 1, 4), 0, 0b10, end=80)
    reserved = matrix.reserve_memory(queued(3, 2, 2), 1, {1: 50, 2: 80})
    assert reserved is not None
    assert (reserved.job_id, reserved.start, reserved.short) == (3, 80, 1)
    assert matrix.columns_for(queued(4, 1, 1), 2, end=80) == 0b01
    assert matrix.columns_for(queued(4, 1, 1), 2, end=81) == 0b01  # 2 are left on column 0 beside 3
    matrix.add(queued(5, 1, 1), 2, 0b01, end=81)
    assert matrix.columns_for(queued(6, 1, 0), 2, end=81) == 0b10


def test_memory_that_suspended_jobs_keep_cannot_be_reserved() -> None:
    matrix = with_memory(1, 4)
    matrix.memory and matrix.memory.take((0, 1), 3)
    assert matrix.reserve_memory(queued(1, 1, 2), 0, {}) is None
    assert matrix.memory_reservation is None
