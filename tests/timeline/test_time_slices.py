"""Semantics of sharing nodes in time, worked by hand; every timeline is played on both fidelities."""

import pytest

from clustermodel import Checkpointing, ContextSwitch, TimeSlicing
from clustermodel.experiment.result import Result
from clustermodel.policies.interface import Policy
from clustermodel.recording.ledger import Account
from clustermodel.recording.matrix_history import LoggedRotation
from clustermodel.theory.migration import option_1_overhead, option_2_overhead
from tests.timeline.timeline import accounts, play_both, spans


def play(
    nodes: int,
    jobs: str,
    policy: str | Policy = "gs",
    *,
    mpl: int = 2,
    quantum_s: float = 10,
    switch: ContextSwitch | None = None,
    checkpoint_s: float = 0,
    restart_s: float = 0,
    max_tasks: int | None = None,
) -> Result:
    """Run jobs given as lines ``id submit nodes run [estimate]``, times in seconds."""
    return play_both(
        nodes,
        jobs,
        policy,
        time_slicing=TimeSlicing(quantum_s=quantum_s, mpl=mpl),
        context_switch=switch or ContextSwitch(),
        checkpointing=Checkpointing(checkpoint_s=checkpoint_s, restart_s=restart_s, max_tasks_per_slice=max_tasks),
    )


def ends(result: Result) -> dict[int, float]:
    return {job: end for job, (_, end) in spans(result).items()}


def rows_at(result: Result, second: float) -> list[dict[int, list[int]]]:
    """Return the matrix at a time: for each row job -> columns."""
    return [
        {cell.job: [column for column in range(cell.columns.bit_length()) if cell.columns >> column & 1] for cell in cells}
        for cells in result.history.at(int(second * 1e6)).rows
    ]


def test_two_jobs_take_turns_on_a_node() -> None:
    # 0-10 job 1, 10-20 job 2, 20-30 job 1 (20 of 25), 30-35 job 2 (15 of 15), 35-40 job 1.
    result = play(1, "1 0 1 25\n2 0 1 15")
    assert spans(result) == {1: (0, 40), 2: (0, 35)}
    assert result.jobs["run_s"].tolist() == [25, 15]
    assert accounts(result) == {Account.USEFUL: 40}


def test_an_arrival_cuts_the_slice_short_and_the_next_row_gets_a_full_one() -> None:
    # 0-10 job 1, 10-14 job 2 (4), cut by job 3, whose row is next: 14-24 (10), 24-34 job 1 (20), 34-44 job 2 (14), 44-46 job 3
    # (12 of 12), 46-56 job 1 (30 of 30), 56-72 job 2.
    result = play(1, "1 0 1 30\n2 0 1 30\n3 14 1 12", mpl=3)
    assert spans(result) == {1: (0, 56), 2: (0, 72), 3: (14, 46)}


def test_an_end_exactly_at_the_end_of_a_slice() -> None:
    # 0-10 job 1, 10-20 job 2 (10 of 10), 20-30 job 1.
    assert ends(play(1, "1 0 1 20\n2 0 1 10")) == {1: 30, 2: 20}
    # 0-10 job 1 (10 of 10), then job 2 alone.
    assert ends(play(1, "1 0 1 10\n2 0 1 20")) == {1: 10, 2: 30}
    # The last slice of a lap: 0-10 job 1, 10-20 job 2, 20-30 job 1, 30-40 job 2 (20 of 20), 40-45 job 1.
    assert ends(play(1, "1 0 1 25\n2 0 1 20")) == {1: 45, 2: 40}


def test_an_arrival_in_the_instant_of_an_end_takes_the_place_that_has_just_become_free() -> None:
    # 0-10 job 1, 10-15 job 2; at 15 job 3 takes job 2's row, which has just run: 15-20 job 1 (15 of 15), 20-25 job 3.
    result = play(1, "1 0 1 15\n2 0 1 5\n3 15 1 5")
    assert spans(result) == {1: (0, 20), 2: (0, 15), 3: (15, 25)}
    assert not result.jobs["blocked"].any()


def test_an_arrival_in_the_instant_in_which_a_slice_ends_cuts_nothing() -> None:
    # At 10 job 3 comes: row 1 is next all the same.  10-20 job 2, 20-30 job 3, 30-40 job 1 (20), 40-50 job 2 (20), 50-55 job 3.
    assert ends(play(1, "1 0 1 20\n2 0 1 20\n3 10 1 15", mpl=3)) == {1: 40, 2: 50, 3: 55}


def test_the_kill_at_the_estimate_counts_the_gangs_own_time() -> None:
    # 0-10 job 1, 10-20 job 2, 20-25 job 1: 15 of its own, killed, although 25 have passed; 25-30 job 2.
    result = play(1, "1 0 1 100 15\n2 0 1 15")
    assert ends(result) == {1: 25, 2: 30}
    assert result.jobs["status"].tolist() == ["killed", "completed"]
    assert result.jobs["run_s"].tolist() == [15, 15]
    assert accounts(result) == {Account.USEFUL: 30}


def test_a_gang_in_two_rows_runs_in_two_slices() -> None:
    # Row 0: jobs 1 and 2 on columns 0 and 1; row 1: job 3 on column 0, and job 2 again.  2 never pauses: 25.
    # 0-10 job 1, 10-20 job 3, 20-25 job 1 (15); cut: 25-35 job 3 (20 of 20), 35-50 job 1.
    result = play(2, "1 0 1 30\n2 0 1 25\n3 0 1 20")
    assert rows_at(result, 0) == [{1: [0], 2: [1]}, {3: [0], 2: [1]}]
    assert [cell.replica for cells in result.history.at(0).rows for cell in cells] == [False, False, False, True]
    assert ends(result) == {1: 50, 2: 25, 3: 35}
    assert accounts(result) == {Account.USEFUL: 75, Account.IDLE: 25}


def test_the_matrix_of_figure_7() -> None:
    sizes = {1: 8, 2: 8, 3: 4, 4: 2, 5: 2, 6: 4}
    jobs = "\n".join(f"{number} 0 {nodes} 40" for number, nodes in sizes.items())
    result = play(8, jobs, mpl=4)
    assert rows_at(result, 0) == [
        {1: list(range(8))},
        {2: list(range(8))},
        {3: [0, 1, 2, 3], 4: [4, 5], 5: [6, 7]},
        {6: [0, 1, 2, 3], 4: [4, 5], 5: [6, 7]},
    ]
    # 4 and 5 run twice as fast as the others: two full laps of 40, 80; the others need four.  In the third and fourth lap
    # nothing else changes.
    assert ends(result) == {1: 130, 2: 140, 3: 150, 4: 80, 5: 80, 6: 160}


# Context switches.


def test_charged_in_every_slice_all_nodes_of_a_gang_pay_at_the_start() -> None:
    # T = 10, switch 2.  0-10 job 1 (8 of 20), 10-12 switch, 12-17 job 2 (5 of 5), 17-27 job 1 (16), 27-29 switch, 29-33 job 1.
    # Switches: three on two nodes, one on one: 14.  One node idle from 10 to 17.
    for switch in (ContextSwitch(seconds=2, charge="every-slice"), ContextSwitch(fraction=0.2, charge="every-slice")):
        result = play(2, "1 0 2 20\n2 0 1 5", switch=switch)
        assert ends(result) == {1: 33, 2: 17}
        assert accounts(result) == {Account.USEFUL: 45, Account.CONTEXT_SWITCH: 14, Account.IDLE: 7}


def test_charged_on_change_a_gang_waits_for_its_slowest_node() -> None:
    # 0-10 job 1 (8), 10-12 switch on node 0, 12-17 job 2.  At 17 node 0 switches back, and node 1, which still has job 1's
    # task, waits for it: 2 blocked.  19-27 job 1 (16), and goes on without a switch: 27-31.
    result = play(2, "1 0 2 20\n2 0 1 5", switch=ContextSwitch(seconds=2))
    assert ends(result) == {1: 31, 2: 17}
    assert accounts(result) == {Account.USEFUL: 45, Account.CONTEXT_SWITCH: 2 * 2 + 2 + 2, Account.BLOCKED: 2, Account.IDLE: 7}


def test_a_switch_that_an_event_cuts_short_counts_as_long_as_it_was() -> None:
    # Switch 4.  0-2 job 1 switches; job 2 comes: 2-6 switch, 6-12 job 2 (6 of 6).  12-16 switch, 16-22 job 1 (6), 22-36 on.
    result = play(1, "1 0 1 20\n2 2 1 6", switch=ContextSwitch(seconds=4))
    assert ends(result) == {1: 36, 2: 12}
    assert accounts(result) == {Account.USEFUL: 26, Account.CONTEXT_SWITCH: 10}


@pytest.mark.parametrize(("charge", "first", "second"), [("on-change", 26, 36), ("every-slice", 38, 48)])
def test_a_switch_cut_short_begins_anew_if_the_same_row_goes_on(charge: str, first: float, second: float) -> None:
    # One row.  At 2 job 2 comes, and waits; 2-6 switch, 6-12 job 1 (6 of 20).  On change: 12-26.  Every slice: 16-22 (12),
    # 26-32 (18), 36-38.  Job 2: 4 of switch and 6 of work, in one slice.
    switch = ContextSwitch(seconds=4, charge=charge)  # type: ignore[arg-type]
    result = play(1, "1 0 1 20\n2 2 1 6", mpl=1, switch=switch)
    assert ends(result) == {1: first, 2: second}
    assert accounts(result) == {Account.USEFUL: 26, Account.CONTEXT_SWITCH: second - 26}
    # All of job 1's switches but the first two seconds are while job 2 waits.
    assert result.ledger.amount(Account.CONTEXT_SWITCH).job_waiting / 1e6 == (second - 26) - 2 - 4


def test_a_slice_that_is_cut_when_the_switch_is_just_over_needs_no_other() -> None:
    # At 4 the switch is over and job 2 comes, to wait: job 1 goes on at once.
    result = play(1, "1 0 1 20\n2 4 1 6", mpl=1, switch=ContextSwitch(seconds=4))
    assert ends(result) == {1: 24, 2: 34}


# Migration.


def test_a_gang_migrates_by_option_2_where_that_costs_less() -> None:
    # Four columns.  Row 0: job 1 on 0-2 and job 2 on 3; row 1: job 3 on 0, job 2 again.  At 6 job 2 ends (it runs in both
    # rows), job 1 has worked 6.  Job 3 could move to row 0: eq. (4) 2 x 1 + 5 x 3 = 17, eq. (5) 5 x 1 + 2 x 3 = 11.  So
    # job 3 goes to column 3: 6-11 checkpoint and restart, 11-61 its 50.  Job 1 waits 6-8, and has 94 left: 102.
    result = play(4, "1 0 3 100\n2 0 1 6\n3 0 1 50", "mgs", checkpoint_s=2, restart_s=3)
    assert rows_at(result, 0) == [{1: [0, 1, 2], 2: [3]}, {3: [0], 2: [3]}]
    assert rows_at(result, 6) == [{1: [0, 1, 2], 3: [3]}, {}]
    assert ends(result) == {1: 102, 2: 6, 3: 61}
    found = accounts(result)
    assert (found[Account.CHECKPOINT], found[Account.RESTART], found[Account.BLOCKED]) == (2, 3, 6)
    assert found[Account.CHECKPOINT] + found[Account.RESTART] + found[Account.BLOCKED] == option_2_overhead(1, [3], 2, 3)


def test_those_in_the_way_migrate_by_option_1_where_that_costs_no_more() -> None:
    # Three columns.  Row 0: jobs 1, 2, 3; row 1: job 4 on 0, jobs 2 and 3 again.  At 6 job 2 ends.  Job 4 moves to row 0:
    # eqs. (4) and (5) both give 2 x 1 + 5 x 1 = 7, so option 1: job 1 goes to column 1, 6-11, and has 94 left: 105.
    # Job 4 waits 6-8, and works 50: 58.
    result = play(3, "1 0 1 100\n2 0 1 6\n3 0 1 100\n4 0 1 50", "mgs", checkpoint_s=2, restart_s=3)
    assert rows_at(result, 0) == [{1: [0], 2: [1], 3: [2]}, {4: [0], 2: [1], 3: [2]}]
    assert rows_at(result, 6) == [{1: [1], 3: [2], 4: [0]}, {}]
    assert ends(result) == {1: 105, 2: 6, 3: 100, 4: 58}
    found = accounts(result)
    assert (found[Account.CHECKPOINT], found[Account.RESTART], found[Account.BLOCKED]) == (2, 3, 2)
    assert found[Account.CHECKPOINT] + found[Account.RESTART] + found[Account.BLOCKED] == option_1_overhead(1, [1], 2, 3)


def test_nothing_migrates_where_q_is_zero() -> None:
    # As option 2 above, but job 3 stays in row 1: 0-6 row 0, 6-16 row 1 (job 3: 10), 16-26 row 0 (16), 26-36 (20), ..., in
    # all job 3 has worked 50 at 6 + 4 x 20 + 10 = 96 and job 1 6 + 40 = 46; its other 54 are done at 150.
    result = play(4, "1 0 3 100\n2 0 1 6\n3 0 1 50", "mgs", checkpoint_s=2, restart_s=3, max_tasks=0)
    assert ends(result) == {1: 150, 2: 6, 3: 96}
    assert Account.CHECKPOINT not in accounts(result)


def test_free_migration_takes_no_time() -> None:
    # As option 2 above without the costs.
    result = play(4, "1 0 3 100\n2 0 1 6\n3 0 1 50", "mgs")
    assert rows_at(result, 6) == [{1: [0, 1, 2], 3: [3]}, {}]
    assert ends(result) == {1: 100, 2: 6, 3: 56}


def test_a_migrated_task_is_new_to_its_node_and_pays_a_context_switch_first() -> None:
    # Option 2 above with a switch of 1 on change: 0-1 switch everywhere, 1-7 job 2; at 7 job 1 has worked 6.  Then job 3 comes
    # to column 3: 7-8 switch, 8-13 checkpoint and restart, 13-63 work; job 1 switches nothing: 7-9 blocked, 9-103 work.
    result = play(4, "1 0 3 100\n2 0 1 6\n3 0 1 50", "mgs", checkpoint_s=2, restart_s=3, switch=ContextSwitch(seconds=1))
    assert ends(result) == {1: 103, 2: 7, 3: 63}
    assert accounts(result)[Account.CONTEXT_SWITCH] == 4 + 1


# Backfilling.


def test_bgs_backfills_each_row_around_a_reservation() -> None:
    # Two nodes, one row.  Job 1 holds one node until 20; job 2 (both) is promised 20; job 3 fits before it, job 4 does not.
    result = play(2, "1 0 1 20\n2 1 2 10\n3 2 1 10\n4 3 1 30", "bgs", mpl=1)
    assert spans(result) == {1: (0, 20), 2: (20, 30), 3: (2, 12), 4: (30, 60)}
    assert result.jobs["reserved_s"].tolist()[1] == 20
    assert result.jobs["reserved_s"].tolist()[3] == 30


def test_bgs_guarantees_the_worst_case_of_mpl_rows() -> None:
    # One node, two rows: jobs 1 and 2 (20 each) share it.  At 5 job 3 comes: job 1 has worked 5, its worst case is
    # 5 + 15 x 2 = 35; job 2's is 5 + 20 x 2 = 45.  So 3 is promised 35.  The arrival cuts the slice: 5-15 job 2, 15-25 job 1
    # (15), 25-35 job 2 (20 of 20).  At 35 job 2 ends and job 3 takes its row: as promised.
    result = play(1, "1 0 1 20\n2 0 1 20\n3 5 1 10", "bgs")
    assert result.jobs["reserved_s"].tolist()[2] == 35
    assert spans(result) == {1: (0, 40), 2: (0, 35), 3: (35, 50)}


# The end of the run, and the log of slices.


def test_a_rejected_job_after_the_last_end_is_no_time_of_the_run() -> None:
    # Job 1 runs from 0 to 15; job 2 asks for three of two nodes, a hundred slices later.
    result = play(2, "1 0 1 15\n2 1000 3 5")
    assert spans(result)[1] == (0, 15)
    assert result.jobs["status"].tolist() == ["completed", "rejected"]
    assert result.ledger.end == 15_000_000
    assert accounts(result) == {Account.USEFUL: 15, Account.IDLE: 15}


def test_the_time_between_two_jobs_is_one_interval_however_many_slices_it_is_long() -> None:
    result = play(2, "1 0 1 15\n2 5 3 5\n3 1015 2 10")
    assert result.slices is not None
    assert [(interval.length, interval.held) for interval in result.slices] == [
        (15_000_000, (1,)),
        (1_000_000_000, ()),
        (10_000_000, (2,)),
    ]
    assert result.states[["time_s", "busy_nodes"]].to_numpy().tolist() == [[0, 1], [15, 0], [1015, 2], [1025, 0]]


def test_an_interval_says_which_nodes_switched_in_slices_that_came() -> None:
    # One node, T = 10, switches of 2 s.  0-10 job 1 (switch, 8 s of work), 10-15 job 2 until 3 comes: neither's later lap
    # has come, so no node has switched in it.  15-25 job 3, 25-28 job 1 (1 s of 9 left), 28-38 job 2, whose 8 s are done.
    result = play(1, "1 0 1 9\n2 0 1 11\n3 15 1 8", mpl=3, switch=ContextSwitch(seconds=2))
    assert result.slices is not None
    assert next(iter(result.slices)) == LoggedRotation(15_000_000, False, (1, 1), ((1, 0), (1, 0)), 0, 1)
