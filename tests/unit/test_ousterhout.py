"""The Ousterhout matrix: the steps of Zhang et al. 2003, sections 5.1 and 5.4, on matrices drawn by hand, and invariants."""

import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel.machine.node_set import NodeSet
from clustermodel.plans.ousterhout import Change, Occupant, OusterhoutMatrix
from clustermodel.policies.interface import Place, RowsAsMasks
from clustermodel.theory.migration import option_1_overhead, option_2_overhead
from tests.jobs import queued
from tests.property.strategies import cases


def put(matrix: OusterhoutMatrix, number: int, row: int, columns: Iterable[int]) -> None:
    """Let a job start in ``row`` on exactly ``columns``: others keep the rest of the row taken meanwhile."""
    wanted = set(columns)
    taken = {column for gang in matrix.homes[row].values() for column in columns_of(gang)}
    assert not wanted & taken
    free = sorted(set(range(matrix.nodes)) - taken)
    for column in free:  # one-node jobs take the lowest free columns, one after the other
        matrix.add(queued(1000 + column, 1), row)
    for column in sorted(wanted):
        matrix.remove(1000 + column)
    matrix.add(queued(number, len(wanted)), row)
    for column in free:
        if column not in wanted:
            matrix.remove(1000 + column)


def draw(nodes: int, *rows: str, on_machine: bool = True, **options: Any) -> OusterhoutMatrix:
    """Return a matrix drawn with a digit for each column of a job's home row, ``.`` where it is free; jobs start in order."""
    matrix = OusterhoutMatrix(nodes, max(len(rows), options.pop("mpl", 0)), **options)
    digits = sorted({digit for row in rows for digit in row if digit != "."})
    for digit in digits:
        row = next(number for number, text in enumerate(rows) if digit in text)
        put(matrix, int(digit), row, [column for column, other in enumerate(rows[row]) if other == digit])
    if on_machine:
        matrix.changes()
    return matrix


def columns_of(gang: Occupant) -> list[int]:
    return [column for column in range(gang.columns.bit_length()) if gang.columns >> column & 1]


def in_row(matrix: OusterhoutMatrix, row: int) -> list[Occupant]:
    return [gang for gang in matrix.occupants.values() if gang.rows >> row & 1]


def picture(matrix: OusterhoutMatrix) -> list[str]:
    """Draw the matrix, replicas included."""
    rows = []
    for row in range(matrix.mpl):
        cells = ["."] * matrix.nodes
        for gang in in_row(matrix, row):
            for column in columns_of(gang):
                assert cells[column] == ".", f"two tasks on column {column} of row {row}"
                cells[column] = str(gang.job.id)
        rows.append("".join(cells))
    return rows


def homes(matrix: OusterhoutMatrix) -> dict[int, int]:
    return {number: gang.home for number, gang in matrix.occupants.items()}


def places_of(change: Change) -> tuple[Place, ...]:
    return RowsAsMasks(change.places, (), {}).places


def of_ids(change: Change) -> list[tuple[int, NodeSet, tuple[int, ...]]]:
    """Return the places of a change with the ids of the jobs."""
    assert not change.migrations
    return [(place.job.id, place.columns, place.rows) for place in places_of(change)]


# Schedule and FillMatrix: Zhang et al. 2003, figure 7.
FIGURE_7 = ["11111111", "22222222", "33334455", "66664455"]


def test_best_fit_and_filling_make_figure_7() -> None:
    matrix = OusterhoutMatrix(8, 4)
    for number, nodes in ((1, 8), (2, 8), (3, 4), (4, 2), (5, 2), (6, 4)):
        row = matrix.fullest_row(nodes)
        assert row is not None
        matrix.add(queued(number, nodes), row)
    matrix.fill()
    assert picture(matrix) == FIGURE_7
    assert homes(matrix) == {1: 0, 2: 1, 3: 2, 4: 2, 5: 2, 6: 3}
    assert matrix.rows_in_use == [0, 1, 2, 3]
    assert matrix.occupancy == 1.0
    assert [gang.job.id for gang in in_row(matrix, 3)] == [4, 5, 6]  # in starting order


def test_cleaning_takes_figure_7_back_to_home_rows_and_leaves_the_room_that_scheduling_counts_on() -> None:
    matrix = draw(8, "11111111", "22222222", "33334455", "6666....")
    matrix.fill()
    assert picture(matrix) == FIGURE_7
    matrix.clean()
    assert picture(matrix) == ["11111111", "22222222", "33334455", "6666...."]
    assert matrix.room == [0, 0, 0, 4]
    assert matrix.fullest_row(4) == 3
    assert matrix.fullest_row(5) is None
    matrix.clean()
    assert picture(matrix)[3] == "6666...."


def test_best_fit_takes_the_row_with_the_fewest_free_columns_that_are_enough() -> None:
    matrix = draw(6, "11....", "2222..", "33333.", "......")
    assert [matrix.fullest_row(nodes) for nodes in (1, 2, 3, 4, 5, 6, 7)] == [2, 1, 0, 0, 3, 3, None]
    assert matrix.fullest_row(1, rows=(0, 3)) == 0
    assert matrix.fullest_row(6, rows=(0, 1)) is None
    assert draw(2, "1.", "2.").fullest_row(1) == 0  # the first of equals


def test_a_gang_takes_the_lowest_free_columns() -> None:
    matrix = draw(6, "1.2.3.")
    matrix.add(queued(4, 2), 0)
    assert picture(matrix) == ["14243."]


# FillMatrix: "for each job in starting time order, for each row in matrix, if job can be replicated ... do it and break".
def test_every_job_is_replicated_once_before_any_is_twice() -> None:
    # Jobs 1 and 2 want the same column; rows 2 and 3 have it free.  Job 1 takes the first, and leaves the other to job 2.
    matrix = draw(2, "1.", "2.", ".3", ".4")
    matrix.fill()
    assert picture(matrix) == ["13", "24", "13", "24"]


def test_replicas_go_on_as_long_as_there_is_room_the_job_that_started_first_coming_first() -> None:
    # Three rows are free for column 0: first pass 1 -> row 2, 2 -> row 3; second pass 1 -> row 4.
    matrix = draw(2, "1.", "2.", ".3", ".4", ".5")
    matrix.fill()
    assert [row[0] for row in picture(matrix)] == ["1", "2", "1", "2", "1"]
    # Column 1: 3 -> row 0, 4 -> row 1, and nothing is left for 5.
    assert [row[1] for row in picture(matrix)] == ["3", "4", "3", "4", "5"]


def test_rows_that_no_job_is_at_home_in_stay_empty() -> None:
    matrix = draw(2, "1.", mpl=3)
    matrix.fill()
    assert picture(matrix) == ["1.", "..", ".."]
    assert matrix.rows_in_use == [0]
    assert matrix.occupancy == 0.5
    assert OusterhoutMatrix(2, 2).occupancy == 0.0


def test_columns_of_nodes_that_are_down_count_neither_as_used_nor_as_free() -> None:
    matrix = draw(4, "1...", "2...")
    matrix.keep_free(1 << 3, 99)
    matrix.keep_free(1 << 2, 98)
    matrix.fill()
    assert matrix.occupancy == 0.5
    empty = OusterhoutMatrix(1, 2)
    empty.keep_free(1 << 0, 99)
    assert empty.occupancy == 0.0


def test_setting_columns_aside_may_make_another_row_the_less_populated_one() -> None:
    # Row 1 has six free columns, row 0 four, and no gang of row 1 is small enough for row 0.  Four columns of row 1 are set
    # aside: now row 0 is the less populated one, and gang 2 fits into row 1.
    matrix = draw(10, "11111....2", "....3333..")
    assert not matrix.compact()
    matrix.keep_free(0b1111, 99)
    assert matrix.compact()
    assert [gang.home for gang in matrix.occupants.values()] == [0, 1, 1]


# CompactMatrix: "for i = least populated row to most populated row, for j = most populated row to i+1".
def test_a_gang_moves_to_the_most_populated_row_that_has_its_columns_free() -> None:
    matrix = draw(8, ".......1", "222.....", "333333..")
    assert matrix.compact()
    assert picture(matrix) == ["........", "222.....", "333333.1"]
    assert not matrix.compact()


def test_the_least_populated_row_is_emptied_first() -> None:
    # Both 1 (one task) and 2 (two tasks) could go to row 2, but not both: row 0 is the least populated.
    matrix = draw(8, ".......1", "......22", "333333..")
    assert matrix.compact()
    assert picture(matrix) == ["........", "......22", "333333.1"]


def test_gangs_move_into_rows_that_are_more_populated_only_and_on_their_own_columns() -> None:
    matrix = draw(4, "11..", "22..")
    assert not matrix.compact()  # the columns are taken, wherever else there is room
    assert picture(matrix) == ["11..", "22.."]
    matrix = draw(4, "11.2", "..3.")
    assert matrix.compact()  # 3 joins them; 2 does not go down to 3's row
    assert picture(matrix) == ["1132", "...."]


def test_compaction_may_move_some_gangs_of_a_row_and_leave_others() -> None:
    matrix = draw(6, "1...22", "3333..")
    assert matrix.compact()
    assert picture(matrix) == ["1.....", "333322"]


def test_replicas_are_in_nobodys_way_in_compaction() -> None:
    # 1 stands in row 1 too, where 2 goes home to once 3 has ended.
    matrix = draw(4, "11..", "..33", "..2.", "4444")
    matrix.fill()
    matrix.remove(3)
    assert matrix.compact()
    matrix.clean()
    assert picture(matrix)[0] == "112."


def test_a_guard_has_the_last_word_and_is_told_of_moves() -> None:
    class Guard:
        moves: list[tuple[int, int, int]]

        def __init__(self, closed: int) -> None:
            self.closed = closed
            self.moves = []

        def may_enter(self, gang: Occupant, row: int, *, migrates: bool = False) -> bool:
            return row != self.closed

        def moved(self, gang: Occupant, source: int, columns: int) -> None:
            self.moves.append((gang.job.id, source, gang.home))

    guard = Guard(closed=2)
    matrix = draw(8, ".......1", "222.....", "333333..")
    assert matrix.compact(guard)
    assert picture(matrix) == ["........", "222....1", "333333.."]
    assert guard.moves == [(1, 0, 1)]
    guard = Guard(closed=-1)
    matrix = draw(8, ".......1", "222.....", "333333..")
    assert matrix.compact(guard)
    assert guard.moves == [(1, 0, 2)]  # to the most populated row at once, not by way of row 1
    guard = Guard(closed=1)
    matrix = draw(4, "11..", "222.")
    assert not matrix.collapse_with_migration(guard)
    matrix = draw(8, "......1.", "22.....3")
    assert not matrix.compact(guard)
    assert guard.moves == []
    assert matrix.compact()  # there is no guard any more


# Migration: options 1 and 2.
def moves(matrix: OusterhoutMatrix) -> list[tuple[dict[int, list[int]], list[int]]]:
    """Return the migrations: job -> new columns, and the jobs that wait."""
    change = matrix.changes()
    columns = {job.id: bits(columns) for job, columns, _, _ in change.places}
    return [({job.id: columns[job.id] for job in gangs}, [job.id for job in blocked]) for gangs, blocked in change.migrations]


def bits(mask: int) -> list[int]:
    return [column for column in range(mask.bit_length()) if mask >> column & 1]


def test_option_1_moves_those_in_the_way_off_the_columns_wanted_and_only_off_those() -> None:
    # Eq. (4): 1 x 4 + 2 x 3 = 10; eq. (5): 2 x 4 + 1 x 3 = 11.  Gang 2 (columns 3, 5, 6) gives up column 3 for 4,
    # the lowest free one beside those wanted.
    matrix = draw(12, "1111........", "...2.22.3333", checkpoint=1, restart=1)
    assert matrix.collapse_with_migration()
    assert picture(matrix) == ["............", "1111222.3333"]
    assert moves(matrix) == [({2: [4, 5, 6]}, [1])]
    assert matrix.occupants[2].migrating
    assert not matrix.occupants[1].migrating


def test_option_2_moves_the_gang_itself_and_keeps_what_it_can_keep() -> None:
    # |A| = 2, one gang of three tasks in the way: eq. (4) 2 + 6 = 8, eq. (5) 4 + 3 = 7.  Column 1 is free and is kept.
    matrix = draw(8, "11......", "2.22.333", checkpoint=1, restart=1)
    assert matrix.collapse_with_migration()
    assert picture(matrix) == ["........", "21221333"]
    assert moves(matrix) == [({1: [1, 4]}, [2])]
    assert matrix.occupants[1].migrating
    assert not matrix.occupants[2].migrating


def test_several_gangs_make_way_and_all_their_tasks_count() -> None:
    # |A| = 3, gangs of one task each on columns 0 and 2: eq. (4) 3 + 4 = 7, eq. (5) 6 + 2 = 8.
    matrix = draw(8, "111.....", "2.3...44", checkpoint=1, restart=1)
    assert matrix.collapse_with_migration()
    assert picture(matrix) == ["........", "11123.44"]
    assert moves(matrix) == [({2: [3], 3: [4]}, [1])]


@given(own=st.integers(1, 5), theirs=st.integers(1, 5), checkpoint=st.integers(0, 9), restart=st.integers(0, 9))
def test_the_option_that_costs_less_by_equations_4_and_5_is_chosen(
    own: int, theirs: int, checkpoint: int, restart: int
) -> None:
    # Gang 1 in row 0 from column 0 on; gang 2 in row 1 from column 0 on; gang 3 fills row 1 so that it is the fuller one.
    nodes = 16
    matrix = draw(
        nodes,
        ("1" * own).ljust(nodes, "."),
        "2" * theirs + "." * (nodes - theirs - 6) + "333333",
        checkpoint=checkpoint,
        restart=restart,
    )
    assert matrix.collapse_with_migration()
    costs = [option(own, [theirs], checkpoint, restart) for option in (option_1_overhead, option_2_overhead)]
    ((moved, blocked),) = moves(matrix)
    assert (list(moved), blocked) in (([1], [2]), ([2], [1]))
    if costs[0] != costs[1]:
        assert list(moved) == ([2] if costs[0] < costs[1] else [1])
    elif checkpoint + restart == 0:
        assert len(moved[next(iter(moved))]) == min(own, theirs)  # for nothing, the fewer tasks


@pytest.mark.parametrize(("limit", "moved"), [(0, None), (1, None), (2, {1: [1, 4]}), (None, {1: [1, 4]})])
def test_no_more_tasks_than_q_are_moved(limit: int | None, moved: dict[int, list[int]] | None) -> None:
    matrix = draw(8, "11......", "2.22.333", checkpoint=1, restart=1, max_tasks=limit)
    assert matrix.collapse_with_migration() == (moved is not None)
    assert moves(matrix) == ([] if moved is None else [(moved, [2])])


@pytest.mark.parametrize(
    ("counts", "limit", "moves_to"),
    [
        (counts, few + more, [0, 1, 5] if more else None)
        for counts, few in (("gang", 2), ("moved", 0), ("spread", 0))
        for more in (0, 1)
    ],
)
def test_a_gang_of_which_one_task_is_in_the_way(counts: str, limit: int, moves_to: list[int] | None) -> None:
    matrix = draw(6, "..222.", "111...", checkpoint=1, restart=1, max_tasks=limit, counts=counts)
    assert matrix.collapse_with_migration() == (moves_to is not None)
    assert columns_of(matrix.occupants[1]) == (moves_to or [0, 1, 2])
    if moves_to:
        assert matrix.tasks_migrating(1) == (3 if counts == "gang" else 1)


@pytest.mark.parametrize(("counts", "moves_away"), [("gang", False), ("moved", False), ("spread", True)])
def test_a_gang_of_which_more_than_q_tasks_are_in_the_way(counts: str, moves_away: bool) -> None:
    matrix = draw(8, "22......", "111.....", checkpoint=1, restart=1, max_tasks=1, counts=counts)
    assert matrix.collapse_with_migration() == moves_away
    if moves_away:
        assert [gang.moving for gang in matrix.occupants.values() if gang.migrating] == [1]


def test_a_gang_that_is_saved_counts_with_all_its_tasks_whatever_it_moved() -> None:
    matrix = draw(6, "..222.", "111...", checkpoint=1, restart=1, max_tasks=1, counts="moved")
    assert matrix.collapse_with_migration()
    gang = matrix.occupants[1]
    matrix.note_migrating(gang, migrates=True)
    assert matrix.tasks_migrating(gang.home) == 1
    matrix.note_migrating(gang, migrates=True, in_rounds=True)
    assert matrix.tasks_migrating(gang.home) == 3
    matrix.note_migrating(gang, migrates=False)
    assert (matrix.tasks_migrating(gang.home), gang.moving) == (0, 3)


def test_the_option_that_costs_more_is_taken_if_q_forbids_the_other() -> None:
    # As above, eq. (4) would be cheaper with gang 1 of four tasks and gang 2 of three: Q = 3 allows it, Q = 2 neither, and
    # where gang 1 has two tasks, Q = 2 allows option 2 only.
    for limit, own, expected in ((3, 4, [2]), (2, 4, []), (2, 2, [1])):
        matrix = OusterhoutMatrix(12, 2, checkpoint=1, restart=1, max_tasks=limit)
        put(matrix, 1, 0, range(own))
        put(matrix, 2, 1, (0, 6, 7))
        put(matrix, 3, 1, (8, 9, 10))
        matrix.changes()
        assert matrix.collapse_with_migration() == bool(expected)
        assert [number for moved, _ in moves(matrix) for number in moved] == expected
    # Option 2 is cheaper (2 tasks against 3), but gang 1 is the one whose tasks are too many: never; here option 1 has to do.
    matrix = draw(12, "111.........", "2...44443333", checkpoint=1, restart=1, max_tasks=1)
    assert matrix.collapse_with_migration()
    assert moves(matrix) == [({2: [3]}, [1])]


def test_tasks_that_are_still_migrating_count_against_q_and_are_not_moved_again() -> None:
    drawing = ("11......", "2.22.333")
    matrix = draw(8, *drawing, checkpoint=1, restart=1, max_tasks=4)
    matrix.occupants[3].migrating = True  # 3 tasks; 3 + 2 > 4, and option 1 would make it 6
    assert not matrix.collapse_with_migration()
    matrix.occupants[3].migrating = False
    matrix.occupants[1].migrating = True
    assert not matrix.collapse_with_migration()
    matrix.occupants[1].migrating = False
    assert matrix.collapse_with_migration()
    # A gang that still pays does not join others that do, even on its own columns.
    matrix = draw(8, "......1.", "22.....3", checkpoint=1, restart=1, max_tasks=2)
    matrix.occupants[1].migrating = matrix.occupants[2].migrating = True
    assert not matrix.compact()
    matrix.fill()
    assert picture(matrix) == ["......13", "22.....3"]


def test_a_gang_that_q_kept_from_moving_on_its_own_columns_moves_once_the_others_have_paid() -> None:
    matrix = draw(8, "......1.", "22.....3", checkpoint=1, restart=1, max_tasks=2)
    matrix.occupants[1].migrating = matrix.occupants[2].migrating = True
    assert not matrix.compact()
    matrix.occupants[1].migrating = matrix.occupants[2].migrating = False
    assert matrix.compact()


def test_a_gang_that_starts_at_this_instant_moves_free_and_nobody_waits_for_it() -> None:
    matrix = OusterhoutMatrix(8, 2, checkpoint=1, restart=1, max_tasks=0)
    put(matrix, 2, 1, (0, 2, 3))
    put(matrix, 3, 1, (5, 6, 7))
    matrix.changes()
    put(matrix, 1, 0, (0, 1))  # not on the machine yet
    assert matrix.collapse_with_migration()
    assert of_ids(matrix.changes()) == [(1, (1, 2, 4, 5), (1,))]
    assert not matrix.occupants[1].migrating


def test_a_gang_that_starts_at_this_instant_owes_nothing_for_those_that_make_way() -> None:
    matrix = OusterhoutMatrix(8, 2, checkpoint=1, restart=1, max_tasks=1)
    put(matrix, 2, 1, (0,))
    put(matrix, 3, 1, (4, 5, 6, 7))
    matrix.changes()
    put(matrix, 1, 0, (0, 1))
    assert matrix.collapse_with_migration()
    # Its own move is free, so option 2: eq. (5) with |A| = 0 tasks to move is 1 x 1, eq. (4) is 2 x 1.
    assert moves(matrix) == []
    assert columns_of(matrix.occupants[1]) == [1, 2]


def test_filling_with_migration_uses_option_1_and_leaves_gangs_with_replicas_alone() -> None:
    matrix = draw(4, "12..", "3...", checkpoint=1, restart=1)
    matrix.fill()
    assert picture(matrix) == ["12..", "32.."]
    matrix.fill_with_migration()  # 1 goes to row 1: 3 makes way to column 2.  3 then has no row to go to but row 0.
    assert picture(matrix) == ["123.", "123."]
    assert moves(matrix) == [({3: [2]}, [1])]
    # Where the one in the way stands in another row too, nothing moves.
    matrix = draw(4, "12..", "3...", "..44", checkpoint=1, restart=1)
    matrix.fill()
    assert picture(matrix) == ["1244", "3244", "1244"]


def test_a_gang_that_could_not_be_replicated_is_tried_again_when_gangs_have_made_way() -> None:
    # First pass: 1 goes to row 0, where 2 makes way, and 2 to row 1; 3 finds both rows taken by gangs with replicas.  Second
    # pass: 1 goes to row 1 too, where 3 makes way to column 2, and that is free in all rows.
    matrix = draw(3, "2..", "3..", "1..", checkpoint=1, restart=1)
    matrix.fill()
    assert picture(matrix) == ["2..", "3..", "1.."]
    matrix.fill_with_migration()
    assert picture(matrix) == ["123", "123", "123"]


def test_a_migrating_gang_is_not_replicated_by_migration() -> None:
    matrix = draw(4, "1...", "2...", checkpoint=1, restart=1)
    matrix.occupants[1].migrating = True
    matrix.occupants[2].migrating = True
    matrix.fill()
    matrix.fill_with_migration()
    assert picture(matrix) == ["1...", "2..."]


def test_changes_are_listed_in_starting_order_and_only_once() -> None:
    matrix = OusterhoutMatrix(4, 2)
    for number, row in ((7, 0), (3, 0), (5, 1)):
        matrix.add(queued(number, 2 if number != 5 else 1), row)
    matrix.fill()
    change = matrix.changes()
    assert of_ids(change) == [(7, (0, 2), (0,)), (3, (2, 4), (0, 1)), (5, (0, 1), (1,))]
    assert of_ids(matrix.changes()) == []
    # 7 ends: 5 goes home to row 0, where 3 is, and 3 loses its replica with the row.
    matrix.remove(7)
    matrix.clean()
    assert matrix.compact()
    matrix.fill()
    assert of_ids(matrix.changes()) == [(3, (2, 4), (0,)), (5, (0, 1), (0,))]


def test_a_gang_that_was_cleaned_and_filled_into_the_same_rows_has_not_changed() -> None:
    matrix = draw(8, "11111111", "22222222", "33334455", "6666....")
    matrix.fill()
    assert of_ids(matrix.changes()) == [(4, (4, 6), (2, 3)), (5, (6, 8), (2, 3))]
    matrix.compact()
    matrix.clean()
    matrix.fill()
    assert of_ids(matrix.changes()) == []


def test_a_migrating_gang_has_new_columns_in_all_its_rows() -> None:
    matrix = draw(4, "1...", "2.33", checkpoint=0, restart=0)
    matrix.fill()
    matrix.changes()
    assert picture(matrix) == ["1.33", "2.33"]
    matrix.clean()
    assert matrix.collapse_with_migration()
    matrix.fill()
    change = matrix.changes()
    assert picture(matrix) == ["....", "1233"]
    assert [(place.job.id, place.columns, place.rows) for place in places_of(change)] == [
        (1, (0, 1), (1,)),
        (2, (1, 2), (1,)),
        (3, (2, 4), (1,)),
    ]
    assert [[job.id for job in gangs] for gangs, _ in change.migrations] == [[2]]


def test_what_was_set_aside_of_a_gang_that_makes_way_does_not_become_room() -> None:
    matrix = draw(4, "1...", "2...")
    matrix.keep_free(0b0001, 99)  # both gangs may stay
    matrix.fill()
    matrix.fill_with_migration()
    assert picture(matrix) == ["12..", "12.."]
    assert matrix.room == [3, 2]
    assert matrix.add(queued(3, 2), 1).columns == 0b1100


class Machine:
    """What a machine does when it is told of changes: it refuses two tasks on a node in a slice."""

    def __init__(self, mpl: int) -> None:
        self.rows: list[dict[int, int]] = [{} for _ in range(mpl)]
        self.columns: dict[int, int] = {}
        self.home: dict[int, int] = {}

    def end(self, number: int) -> None:
        for row in self.rows:
            row.pop(number, None)
        del self.columns[number], self.home[number]

    def place(self, number: int, row: int) -> None:
        assert number not in self.rows[row]
        assert not any(self.columns[number] & columns for columns in self.rows[row].values())
        self.rows[row][number] = self.columns[number]

    def carry_out(self, change: Change) -> None:
        moving = {job.id for gangs, _ in change.migrations for job in gangs}
        assert moving == {
            job.id for job, columns, *_ in change.places if job.id in self.columns and self.columns[job.id] != columns
        }
        assert all(job.id in self.columns for _, blocked in change.migrations for job in blocked)
        for job, *_ in change.places:
            for row in self.rows:
                row.pop(job.id, None)
        for job, columns, rows, home in change.places:
            self.columns[job.id], self.home[job.id] = columns, home
            for number in bits(rows):
                self.place(job.id, number)


@settings(max_examples=cases(300))
@given(
    nodes=st.integers(1, 8),
    mpl=st.integers(1, 5),
    limit=st.none() | st.integers(0, 8),
    costs=st.sampled_from([(0, 0), (1, 1), (5, 0), (0, 5), (3, 7)]),
    migration=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_whatever_happens_the_matrix_and_the_machine_agree_and_no_node_has_two_tasks(
    nodes: int, mpl: int, limit: int | None, costs: tuple[int, int], migration: bool, seed: int
) -> None:
    draw = random.Random(seed)
    matrix = OusterhoutMatrix(nodes, mpl, checkpoint=costs[0], restart=costs[1], max_tasks=limit)
    machine = Machine(mpl)
    number = 0
    for _ in range(draw.randint(1, 15)):
        for ended in [job for job in matrix.occupants if draw.random() < 0.25]:
            matrix.remove(ended)
            machine.end(ended)
        for gang in matrix.occupants.values():
            gang.migrating &= draw.random() < 0.5  # some have paid
        still_migrating = {job for job, gang in matrix.occupants.items() if gang.migrating}
        columns_before = {job: gang.columns for job, gang in matrix.occupants.items()}
        matrix.compact()
        matrix.clean()
        assert {job: gang.columns for job, gang in matrix.occupants.items()} == columns_before
        for _ in range(draw.randrange(4)):
            number += 1
            job = queued(number, draw.randint(1, nodes))
            row = matrix.fullest_row(job.nodes)
            if row is not None:
                matrix.add(job, row)
        if migration:
            matrix.collapse_with_migration()
        matrix.fill()
        if migration:
            matrix.fill_with_migration()
            filled = picture(matrix)
            matrix.fill_with_migration()
            assert picture(matrix) == filled  # it goes on while the matrix changes
        change = matrix.changes()
        moved = [job.id for gangs, _ in change.migrations for job in gangs]
        assert not still_migrating & set(moved)
        assert migration or not moved
        machine.carry_out(change)
        check(matrix, machine)
        if limit is not None:
            for contents in machine.rows:
                assert sum(matrix.occupants[job].nodes for job in contents if matrix.occupants[job].migrating) <= limit
            assert all(matrix.occupants[job].migrating for job in moved)


def check(matrix: OusterhoutMatrix, machine: Machine) -> None:
    picture(matrix)  # no column of a row twice
    for job, gang in matrix.occupants.items():
        assert gang.columns.bit_count() == gang.nodes == gang.job.nodes
        assert gang.columns < 1 << matrix.nodes
        assert gang.rows >> gang.home & 1
        assert matrix.homes[gang.home][job] is gang
        assert machine.columns[job] == gang.columns
        assert machine.home[job] == gang.home
        assert {row for row, contents in enumerate(machine.rows) if job in contents} == set(bits(gang.rows))
    assert set(machine.columns) == set(matrix.occupants)
    assert sum(len(row) for row in matrix.homes) == len(matrix.occupants)
    for row, of_row in enumerate(matrix.homes):
        assert matrix.room[row] == matrix.nodes - sum(gang.nodes for gang in of_row.values())
    # FillMatrix has gone on as long as it could: whoever could be replicated on its columns would have been.
    for row in matrix.rows_in_use:
        taken = sum(gang.columns for gang in in_row(matrix, row))
        for gang in matrix.occupants.values():
            assert gang.rows >> row & 1 or gang.columns & taken or gang.migrating
