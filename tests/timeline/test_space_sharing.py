"""Semantics of the space-sharing policies, worked by hand."""

from pathlib import Path

import pytest

from clustermodel import Scenario, SpecificationError, SwfStream, read_swf, synthetic_workload
from clustermodel.policies.easy import Easy
from clustermodel.recording.ledger import Account
from tests.timeline.timeline import play, spans

# Four nodes.  1 holds three until 10 (estimate 20).  2 needs all four: blocked.  3 fits beside 1 and would end at 2 + 18
# = 20.  4 fits beside 1 but would end at 3 + 30 = 33.
BLOCKED_HEAD = """
    1 0 3 10 20
    2 1 4  5  5
    3 2 1 18 18
    4 3 1 30 30
"""


def test_fcfs_leaves_nodes_idle_for_the_first_job_that_does_not_fit() -> None:
    assert spans(play(4, BLOCKED_HEAD, "fcfs")) == {1: (0, 10), 2: (10, 15), 3: (15, 33), 4: (15, 45)}


def test_easy_backfills_what_ends_by_the_shadow_time_and_keeps_the_rest_back() -> None:
    # Shadow time of 2: 20, when 1 is expected to end.  3 ends exactly then: in.  1 really ends at 10, but now 3 holds a
    # node until 20, so 2 starts at 20; 4 starts with nodes to spare at 25 (at 10 it would pass 2's new shadow time 20).
    assert spans(play(4, BLOCKED_HEAD, "easy")) == {1: (0, 10), 2: (20, 25), 3: (2, 20), 4: (25, 55)}


def test_easy_lets_a_long_job_take_extra_nodes() -> None:
    # 2 needs two nodes at the shadow time 10, when four are free: two extra.  3 takes one of them for as long as it
    # likes; 4 would take two, only one is left.
    result = play(4, "1 0 3 10\n2 1 2 5\n3 2 1 100\n4 3 2 100", "easy")
    assert spans(result) == {1: (0, 10), 2: (10, 15), 3: (2, 102), 4: (15, 115)}


def test_extra_nodes_shrink_as_they_are_used_within_one_scheduling_cycle() -> None:
    # Five nodes; 1 ends at 10; at 2 two candidates of one node arrive, one extra node: only the first is let in.
    result = play(5, "1 0 3 10\n2 1 4 5\n3 2 1 100\n4 2 1 100", "easy")
    assert spans(result) == {1: (0, 10), 2: (10, 15), 3: (2, 102), 4: (15, 115)}


def test_both_refuse_what_would_delay_the_head_and_let_in_what_ends_before_it() -> None:
    # 1 holds two of four nodes until 10.  2 (four nodes) is promised 10-20, 3 (three nodes) comes after it at 20.
    # 4 (two nodes, 7 s) ends at 10, when 2 starts: in.  5 (one node, 25 s) would delay 2, so it starts beside 3.
    jobs = "1 0 2 10\n2 1 4 10\n3 2 3 10\n4 3 2 7\n5 4 1 25"
    expected = {1: (0, 10), 2: (10, 20), 3: (20, 30), 4: (3, 10), 5: (20, 45)}
    assert spans(play(4, jobs, "easy")) == expected
    assert spans(play(4, jobs, "conservative")) == expected


def test_easy_may_delay_the_second_job_in_the_queue_and_conservative_does_not() -> None:
    # 1 holds two of four nodes until 10.  2 (three nodes) is promised 10-20, which leaves one extra node; 3 (four nodes)
    # could follow at 20.  4 (one node, 30 s) takes the extra node at 4 under EASY, and 3 must wait until 4 ends at 34.
    # Conservative has promised 20 to 3, so 4 waits until 3 ends at 30.
    jobs = "1 0 2 10\n2 1 3 10\n3 2 4 10\n4 4 1 30"
    assert spans(play(4, jobs, "easy")) == {1: (0, 10), 2: (10, 20), 3: (34, 44), 4: (4, 34)}
    assert spans(play(4, jobs, "conservative")) == {1: (0, 10), 2: (10, 20), 3: (20, 30), 4: (30, 60)}
    # So does EASY when it protects two jobs.
    assert spans(play(4, jobs, "easy:reserve_depth=2")) == {1: (0, 10), 2: (10, 20), 3: (20, 30), 4: (30, 60)}


def test_compression_moves_waiting_jobs_forward_in_queue_order_when_a_job_ends_early() -> None:
    # 1 is expected until 100, ends at 10.  2 is promised 100, 3 (one node) 110.  At 10 both move: 2 first.
    result = play(2, "1 0 2 10 100\n2 1 2 10\n3 2 1 10", "conservative")
    assert spans(result) == {1: (0, 10), 2: (10, 20), 3: (20, 30)}
    assert result.jobs["reserved_s"].tolist()[1:] == [100, 110]


def test_ends_settle_before_submissions_so_a_job_starts_in_the_instant_another_ends() -> None:
    result = play(1, "1 0 1 10\n2 10 1 5", "fcfs")
    assert spans(result) == {1: (0, 10), 2: (10, 15)}
    assert not result.jobs["blocked"].any()


def test_equal_submissions_go_by_id_and_higher_priority_goes_first() -> None:
    assert spans(play(1, "7 0 1 5\n3 0 1 5\n5 0 1 5", "fcfs")) == {3: (0, 5), 5: (5, 10), 7: (10, 15)}
    urgent = "1 0 1 10 10 0\n2 1 1 5 5 0\n3 2 1 5 5 1"
    assert spans(play(1, urgent, "fcfs")) == {1: (0, 10), 3: (10, 15), 2: (15, 20)}


def test_a_job_that_reaches_its_estimate_is_killed_there_and_its_work_counts_as_useful() -> None:
    result = play(2, "1 0 2 50 20\n2 1 1 5", "easy")
    assert spans(result) == {1: (0, 20), 2: (20, 25)}
    assert result.jobs["status"].tolist() == ["killed", "completed"]
    assert sum(result.ledger.amount(Account.USEFUL)) == (2 * 20 + 1 * 5) * 1_000_000
    assert sum(result.ledger.amount(Account.LOST)) == 0


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "easy:reserve_depth=3"])
def test_without_killing_a_job_runs_on_and_the_others_wait_for_it(policy: str) -> None:
    result = play(2, "1 0 2 50 20\n2 1 1 5\n3 2 2 5", policy, kill_at_estimate=False)
    assert spans(result) == {1: (0, 50), 2: (50, 55), 3: (55, 60)}
    assert result.jobs["status"].tolist() == ["completed"] * 3


def test_a_job_larger_than_the_machine_is_rejected_recorded_and_blocks_no_job() -> None:
    result = play(2, "1 0 3 10\n2 0 0 10\n3 0 2 10", "fcfs")
    assert result.jobs["status"].tolist() == ["rejected", "rejected", "completed"]
    assert result.jobs["start_s"].isna().tolist() == [True, True, False]
    assert spans(result)[3] == (0, 10)
    assert result.summary().rejected == 2
    assert result.summary().jobs == 1


def test_the_lowest_idle_nodes_are_used() -> None:
    # 1 takes 0-1, 2 takes 2, 3 takes 3; at 5 node 2 is free again, at 6 nodes 0 and 1; 4 (two nodes) gets 0 and 1.
    result = play(4, "1 0 2 6\n2 0 1 5\n3 0 1 9\n4 6 2 1\n5 6 1 1", "fcfs")
    held = {int(job): result.records.columns_of(index) for index, job in enumerate(result.jobs["job"])}
    assert held == {1: (0, 2), 2: (2, 3), 3: (3, 4), 4: (0, 2), 5: (2, 3)}


def test_idle_time_is_split_by_whether_a_job_waits() -> None:
    # Two nodes, horizon 0-25.  0-10: job 1 on one node, other idle; from 5 on job 2 waits for both.  10-20 both busy.
    # 20-25: job 3 on one node, the other idle, nothing waits.
    result = play(2, "1 0 1 10\n2 5 2 10\n3 20 1 5", "fcfs")
    idle = result.ledger.amount(Account.IDLE)
    assert (idle.queue_empty, idle.job_waiting) == ((5 + 5) * 1_000_000, 5 * 1_000_000)
    assert result.ledger.utilization == pytest.approx((10 + 20 + 5) / 50)
    assert result.ledger.capacity_loss == pytest.approx(5 / 50)


def test_a_gap_without_jobs_is_idle_with_an_empty_queue() -> None:
    result = play(1, "1 0 1 1\n2 100 1 1", "conservative")
    assert result.ledger.amount(Account.IDLE) == (99 * 1_000_000, 0)


def test_the_shortest_first_order_backfills_the_shortest_estimate() -> None:
    # One extra node until the shadow time 10; 3 (8 s) and 4 (2 s) arrive together: arrival order takes 3, the other 4.
    jobs = "1 0 3 10\n2 1 4 5\n3 2 1 8\n4 2 1 2"
    assert spans(play(4, jobs, "easy"))[3] == (2, 10)
    shortest = spans(play(4, jobs, "easy:backfill_order=shortest"))
    assert shortest[4] == (2, 4)
    assert shortest[3] == (15, 23)


def test_any_callable_can_order_the_backfill_candidates() -> None:
    # One extra node until the shadow time 10: arrival order would give it to 3, the longest estimate first to 4.
    jobs = "1 0 3 10\n2 1 4 5\n3 2 1 2\n4 2 1 8"
    longest_first = Easy(backfill_order=lambda job, _: -job.estimate)
    found = spans(play(4, jobs, longest_first))
    assert found[4] == (2, 10)
    assert found[3] == (15, 17)


def test_a_stream_read_job_by_job_has_the_schedule_of_the_table(tmp_path: Path) -> None:
    Scenario(workload=synthetic_workload(jobs=300), policy="easy").run().to_swf(tmp_path / "trace.swf.gz")
    table, stream = read_swf(tmp_path / "trace.swf.gz"), SwfStream(tmp_path / "trace.swf.gz")
    for policy in ("fcfs", "easy", "conservative"):
        whole, streamed = (Scenario(workload=jobs, policy=policy).run() for jobs in (table, stream))
        assert spans(whole) == spans(streamed)
        assert whole.summary() == streamed.summary()


def test_explaining_a_run_without_the_decision_log_says_how_to_switch_it_on() -> None:
    with pytest.raises(SpecificationError, match="explain=True"):
        play(1, "1 0 1 1", "fcfs").explain(1)
