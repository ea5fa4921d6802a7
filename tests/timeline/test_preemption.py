"""Hand-worked timelines of PV-EASY (Yuan et al. 2010, section 4), and of what preemption does and costs on dedicated nodes."""

import pandas as pd
import pytest

from clustermodel import Checkpointing, ContextSwitch, DecisionError, SpecificationError
from clustermodel.experiment.result import Result
from clustermodel.recording.ledger import Account
from clustermodel.ticks import TICKS_PER_SECOND as SECOND
from tests.timeline.script import Script, Timetable, abort, checkpoint, kill, start, suspend
from tests.timeline.timeline import play, spans, spent, stopped


def of(result: Result, job: int) -> pd.Series:
    return result.jobs.set_index("job").loc[job]


# Section 4.1 and 4.2: who is preempted.


def test_a_job_turns_from_shadow_to_sunny_when_the_last_job_before_it_starts() -> None:
    # The paper's example: 2 is blocked, 3 is backfilled at 2, and 2 starts at 10.  From then on 3 is sunny load: at 30, when 2
    # ends, 4 is the only job that waits and needs all four nodes, but 3 goes on until 52.
    result = play(4, "1 0 3 10\n2 1 2 20\n3 2 1 50\n4 5 4 5", "pv-easy")
    assert spans(result) == {1: (0, 10), 2: (10, 30), 3: (2, 52), 4: (52, 57)}
    assert stopped(result) == []


def test_the_same_job_yields_as_long_as_it_is_shadow_load() -> None:
    # Now 2 needs the node that 3 has.
    result = play(4, "1 0 3 10\n2 1 4 20\n3 2 1 50", "pv-easy")
    assert spans(result) == {1: (0, 10), 2: (10, 30), 3: (30, 80)}
    assert stopped(result) == [(3, 2, 10, "preempted", 8)]


def test_no_job_is_preempted_where_that_would_not_make_the_head_fit() -> None:
    # At 10 three nodes are idle, and 3 has one: not enough for 2, which needs all five while 4 (sunny) has one until 40.
    result = play(5, "4 0 1 40\n1 0 3 10\n2 1 5 20\n3 2 1 50", "pv-easy")
    assert spans(result) == {4: (0, 40), 1: (0, 10), 2: (40, 60), 3: (60, 110)}
    assert stopped(result) == [(3, 2, 40, "preempted", 38)]


def test_two_jobs_are_preempted_at_one_instant_the_lowest_priority_first() -> None:
    result = play(6, "1 0 4 10\n2 1 6 10\n3 2 1 100\n4 3 1 100", "pv-easy")
    assert stopped(result) == [(4, 3, 10, "preempted", 7), (3, 2, 10, "preempted", 8)]
    assert spans(result) == {1: (0, 10), 2: (10, 20), 3: (20, 120), 4: (20, 120)}
    assert spent(result, Account.LOST) == 15


def test_no_more_jobs_are_preempted_than_it_takes() -> None:
    # At 10, 2 needs one node more than are idle: 4, the last in the queue, yields.  3 goes on, and is sunny load at once.
    result = play(6, "1 0 4 10\n2 1 5 10\n3 2 1 100\n4 3 1 100", "pv-easy")
    assert stopped(result) == [(4, 3, 10, "preempted", 7)]
    assert spans(result) == {1: (0, 10), 2: (10, 20), 3: (2, 102), 4: (20, 120)}


def test_two_blocked_jobs_start_at_one_instant_and_neither_is_blocked_then() -> None:
    # At 10, 2 takes three of the four idle nodes, and 3, which needs three, gets those of 4 and 5 besides.
    result = play(6, "1 0 4 10\n2 1 3 10\n3 2 3 10\n4 3 1 100\n5 4 1 100", "pv-easy")
    assert stopped(result) == [(5, 4, 10, "preempted", 6), (4, 3, 10, "preempted", 7)]
    assert spans(result) == {1: (0, 10), 2: (10, 20), 3: (10, 20), 4: (20, 120), 5: (20, 120)}
    # 3 was never left waiting at the head of the queue: only 2, and 4 when the instant was over.
    assert result.jobs.set_index("job")["blocked"].to_dict() == {1: False, 2: True, 3: False, 4: True, 5: False}


def test_a_job_that_completes_at_the_instant_it_would_be_preempted_has_completed() -> None:
    result = play(4, "1 0 2 10\n2 1 4 10\n3 2 2 8", "pv-easy")
    assert spans(result) == {1: (0, 10), 2: (10, 20), 3: (2, 10)}
    assert stopped(result) == []
    assert (result.summary().preempted, result.summary().wasted_load) == (0, 0)


def test_a_preempted_job_becomes_the_head_of_the_queue_and_is_not_preempted_again() -> None:
    # 3 is killed at 10 and waits before 4, which could start at 20 as well but for the two nodes that 3 takes.
    result = play(4, "1 0 2 10\n2 1 4 10\n3 2 2 30\n4 12 4 5", "pv-easy")
    assert spans(result) == {1: (0, 10), 2: (10, 20), 3: (20, 50), 4: (50, 55)}
    three = of(result, 3)
    assert (three.blocked, three.head_since_s, three.backfilled, three.tries, three.wasted_node_s) == (True, 10, False, 2, 16)
    assert (three.wait_s, three.response_s, three.run_s) == (18, 48, 30)
    summary = result.summary()
    assert (summary.preempted, summary.mean_killed_times, summary.runtime_waste) == (1, 1, 8 / 30)
    assert summary.wasted_load * 4 * 55 == pytest.approx(16)
    assert summary.total_load == pytest.approx(summary.utilization + 16 / 220)
    assert (summary.delayed, summary.reservation_violations) == (0, 0)


def test_an_arriving_job_of_higher_priority_preempts_a_job_that_was_started_in_turn() -> None:
    # 1 was at the head of the queue when it started; 2 comes with a higher priority, so 1 is shadow load (section 4.1).
    result = play(2, "1 0 2 10\n2 3 2 5 5 1\n3 4 1 5", "pv-easy")
    assert spans(result) == {1: (8, 18), 2: (3, 8), 3: (18, 23)}
    assert stopped(result) == [(1, 0, 3, "preempted", 3)]
    assert result.summary().delayed == 0


# Section 4.3: who is backfilled.


def test_the_reservation_counts_the_sunny_load_only_and_the_shortest_predicted_job_comes_first() -> None:
    # One node is idle at 3, and 2 is blocked until 20 (job 1).  4 and 5 fit; both are predicted to end by 20, 5 first.
    result = play(3, "1 0 2 20\n2 1 3 5\n3 2 1 1\n4 2.5 1 9\n5 2.6 1 6", "pv-easy:predictor=estimate", explain=True)
    assert spans(result) == {1: (0, 20), 2: (20, 25), 3: (2, 3), 5: (3, 9), 4: (9, 18)}
    reason = result.explain(5)
    assert (reason.rule, reason.holder, reason.shadow_s) == ("backfilled: predicted to end by the reservation", 2, 20)


def test_what_fits_beyond_the_reservation_is_ventured_in_queue_order() -> None:
    # Neither 3 nor 4 can end by 10, when 2 can start.  3 comes first although 4 is shorter, and is preempted at 10.
    result = play(3, "1 0 2 10\n2 1 3 5\n3 2 1 30\n4 2 1 20", "pv-easy:predictor=estimate", explain=True)
    assert stopped(result) == [(3, 2, 10, "preempted", 8)]
    assert spans(result) == {1: (0, 10), 2: (10, 15), 3: (15, 45), 4: (15, 35)}
    without = play(3, "1 0 2 10\n2 1 3 5\n3 2 1 30\n4 2 1 20", "pv-easy:predictor=estimate,vb=false")
    assert stopped(without) == []
    assert spans(without) == spans(result)


def test_a_venture_that_ends_before_it_is_preempted_has_paid() -> None:
    # 3 is estimated to take 30 s, and takes 5.
    job = "1 0 2 10\n2 1 3 5\n3 2 1 5 30"
    assert spans(play(3, job, "pv-easy:predictor=estimate"))[3] == (2, 7)
    assert spans(play(3, job, "pv-easy:predictor=estimate,vb=false"))[3] == (15, 20)


def test_without_preemption_a_venture_delays_the_head_of_the_queue() -> None:
    result = play(3, "1 0 2 10\n2 1 3 5\n3 2 1 30", "pv-easy:predictor=estimate,slp=false")
    assert spans(result) == {1: (0, 10), 3: (2, 32), 2: (32, 37)}
    assert (result.summary().delayed, result.summary().longest_delay_by_later_s) == (1, 22)
    violated = result.fairness()
    assert violated["reservation_violations"].to_dict() == {"all": 1, "wide": 1, "narrow": 0}
    assert violated.loc["wide", "longest_violation_s"] == 22
    assert violated.loc["wide", "mean_slowdown_increment"] == pytest.approx(36 / 10 - 14 / 10)


# Predictions.


def test_a_prediction_that_is_too_short_makes_a_reservation_that_is_missed_and_that_is_benign() -> None:
    # User 0's first job ran for a tenth of its estimate, so 2 is predicted to run 10 s and takes 100.  3 is promised 20.
    result = play(2, "1 0 2 10 100\n2 10 2 100 100\n3 11 1 5", "easy:predictor=last")
    assert spans(result) == {1: (0, 10), 2: (10, 110), 3: (110, 115)}
    assert of(result, 3).reserved_s == 20
    summary = result.summary()
    assert (summary.reservation_violations, summary.benign_violations, summary.delayed) == (0, 1, 0)
    assert result.fairness().loc["all", "mean_benign_violation_s"] == 90


def test_a_job_that_is_taken_to_be_short_delays_the_head_of_the_queue_under_easy_but_not_under_pv_easy() -> None:
    # The user's first job ran for a tenth of its estimate.
    jobs = "1 0 3 10 100\n2 10 2 40 400\n3 11 3 10 100\n4 12 1 90 300"
    # 2 is predicted to end at 50, rightly; 4 to end at 42, wrongly.
    easy, fair = (play(3, jobs, policy) for policy in ("easy:predictor=last", "pv-easy"))
    assert spans(easy) == {1: (0, 10), 2: (10, 50), 4: (12, 102), 3: (102, 112)}
    assert (easy.summary().reservation_violations, easy.summary().delayed) == (1, 1)
    assert spans(fair) == {1: (0, 10), 2: (10, 50), 3: (50, 60), 4: (60, 150)}
    assert (fair.summary().reservation_violations, fair.summary().delayed) == (0, 0)
    assert stopped(fair) == [(4, 12, 50, "preempted", 38)]


def test_an_expired_prediction_is_no_event_and_is_taken_to_end_a_second_later_when_something_happens() -> None:
    # 2 is predicted to end at 20 and ends at 60.  3 (both nodes) is blocked.  4 comes at 30 and is predicted to take half a
    # second; it fits before 31; 5, predicted to take 2 s, does not.
    jobs = "1 0 2 10 100\n2 10 1 50 100\n3 11 2 10 100\n4 30 1 1 5\n5 31 1 1 20"
    result = play(2, jobs, "easy:predictor=last", explain=True)
    assert spans(result) == {1: (0, 10), 2: (10, 60), 3: (60, 70), 4: (30, 31), 5: (70, 71)}
    assert result.explain(4).shadow_s == 31


def test_conservative_backfilling_looks_again_as_soon_as_a_prediction_has_expired() -> None:
    # 3 is promised 20; at 20, 22, 26, 34, 50 and 82 it is found that 2 still runs, and 3 is placed anew.
    result = play(2, "1 0 2 10 100\n2 10 2 45 100\n3 11 1 5", "conservative:predictor=last")
    assert spans(result) == {1: (0, 10), 2: (10, 55), 3: (55, 60)}
    assert of(result, 3).reserved_s == 20


# What preemption costs.


def test_a_checkpoint_and_a_restart_hold_the_nodes_and_no_work_is_lost() -> None:
    # 3 is written from 10 to 14, then 2 runs; 3 is read from 24 to 26 and has 22 s left.
    costs = Checkpointing(checkpoint_s=4, restart_s=2)
    result = play(4, "1 0 2 10\n2 1 4 10\n3 2 2 30", "pv-easy:mode=checkpoint", checkpointing=costs)
    assert spans(result) == {1: (0, 10), 2: (14, 24), 3: (24, 48)}
    assert stopped(result) == [(3, 2, 14, "checkpointed", 0)]
    assert of(result, 3).run_s == 30
    assert (spent(result, Account.CHECKPOINT), spent(result, Account.RESTART)) == (8, 4)
    assert (spent(result, Account.LOST), spent(result, Account.USEFUL)) == (0, 20 + 40 + 60)
    assert result.ledger.amount(Account.CHECKPOINT).job_waiting == 8 * SECOND
    assert result.ledger.amount(Account.RESTART).queue_empty == 4 * SECOND
    assert result.kappa_by_formula == pytest.approx(result.ledger.capacity_loss, abs=1e-9)


def test_preemption_during_a_checkpoint_in_progress_waits_for_it() -> None:
    # 4 comes at 12, with a higher priority than 2, for which 3 is being written until 14.  Two idle nodes and those of 3 are
    # enough: nobody is preempted again, and 4 starts at 14.
    costs = Checkpointing(checkpoint_s=4, restart_s=2)
    jobs = "1 0 2 10\n2 1 4 10\n3 2 2 30\n4 12 4 5 5 1"
    result = play(4, jobs, "pv-easy:mode=checkpoint", checkpointing=costs)
    assert spans(result) == {1: (0, 10), 2: (19, 29), 3: (29, 53), 4: (14, 19)}
    assert stopped(result) == [(3, 2, 14, "checkpointed", 0)]


def test_nodes_that_are_kept_for_the_head_of_the_queue_are_not_backfilled_while_a_checkpoint_is_written() -> None:
    # At 10 three nodes are idle; 2 needs four, and 3 is written until 14.  Of five nodes one is spare: 5 gets it.
    costs = Checkpointing(checkpoint_s=4, restart_s=2)
    jobs = "1 0 3 10\n2 1 4 10\n3 2 2 30\n4 11 2 5\n5 11 1 5"
    result = play(5, jobs, "pv-easy:mode=checkpoint", checkpointing=costs)
    assert spans(result)[5] == (11, 16)
    assert spans(result)[2] == (14, 24)
    assert spans(result)[4][0] == 24


def test_a_gang_preempted_while_it_is_restarted_leaves_at_once() -> None:
    # 3, saved with 8 s done, is read again from 24; at 25 job 4 comes with a higher priority.  Nothing is to be written.
    costs = Checkpointing(checkpoint_s=4, restart_s=2)
    jobs = "1 0 2 10\n2 1 4 10\n3 2 2 30\n4 25 4 5 5 1"
    result = play(4, jobs, "pv-easy:mode=checkpoint", checkpointing=costs)
    assert stopped(result) == [(3, 2, 14, "checkpointed", 0), (3, 24, 25, "checkpointed", 0)]
    assert spans(result) == {1: (0, 10), 2: (14, 24), 4: (25, 30), 3: (30, 54)}
    assert (spent(result, Account.CHECKPOINT), spent(result, Account.RESTART)) == (8, 2 + 4)


def test_at_no_cost_everything_happens_in_one_instant() -> None:
    for mode in ("checkpoint", "suspend"):
        result = play(4, "1 0 2 10\n2 1 4 10\n3 2 2 30", f"pv-easy:mode={mode}")
        assert spans(result) == {1: (0, 10), 2: (10, 20), 3: (20, 42)}
        assert result.ledger.utilization == pytest.approx(120 / (4 * 42))


def test_a_suspended_job_goes_on_where_it_is_in_memory() -> None:
    # Switching takes 1 s: 3 holds its nodes until 11, and for 1 s from 21 on.
    result = play(4, "1 0 2 10\n2 1 4 10\n3 2 2 30", "pv-easy:mode=suspend", context_switch=ContextSwitch(seconds=1))
    assert spans(result) == {1: (0, 10), 2: (11, 21), 3: (21, 44)}
    assert spent(result, Account.CONTEXT_SWITCH) == 2 * 2 * 1
    assert result.records.columns_of(2) == (2, 4)  # although the lowest two are idle as well
    assert result.kappa_by_formula == pytest.approx(result.ledger.capacity_loss, abs=1e-9)


def test_where_memory_is_full_a_job_is_killed_instead() -> None:
    result = play(4, "1 0 2 10\n2 1 4 10\n3 2 2 30", "pv-easy:mode=suspend", suspended_per_node=0)
    assert stopped(result) == [(3, 2, 10, "preempted", 8)]


COSTS = Checkpointing(checkpoint_s=4, restart_s=2)


def test_a_job_killed_while_it_is_checkpointed_loses_its_work_and_frees_its_nodes_at_once() -> None:
    script = {0: [start(1)], 10: [checkpoint(1)], 12: [kill(1)], 13: [start(1)]}
    result = play(2, "1 0 2 30", Script(script), checkpointing=COSTS)
    assert spans(result) == {1: (13, 43)}
    assert stopped(result) == [(1, 0, 12, "preempted", 10)]
    assert (spent(result, Account.LOST), spent(result, Account.CHECKPOINT), spent(result, Account.USEFUL)) == (20, 4, 60)


def test_a_killed_job_begins_again_from_its_last_checkpoint() -> None:
    # 10 s are saved at 14; 16 s later, 2 of which were the restart, 14 s more are lost.
    script = {0: [start(1)], 10: [checkpoint(1)], 20: [start(1)], 36: [kill(1)], 40: [start(1)]}
    result = play(1, "1 0 1 30", Script(script), checkpointing=COSTS)
    assert spans(result) == {1: (40, 62)}
    assert stopped(result) == [(1, 0, 14, "checkpointed", 0), (1, 20, 36, "preempted", 14)]
    assert (spent(result, Account.LOST), spent(result, Account.USEFUL)) == (14, 30)


def test_a_job_that_is_suspended_and_then_killed_loses_what_it_did_before_it_was_suspended_too() -> None:
    script = {0: [start(1)], 10: [suspend(1)], 20: [start(1)], 25: [kill(1)], 30: [start(1)]}
    result = play(1, "1 0 1 30", Script(script))
    assert spans(result) == {1: (30, 60)}
    assert stopped(result) == [(1, 0, 10, "suspended", 0), (1, 20, 25, "preempted", 15)]
    assert (spent(result, Account.LOST), spent(result, Account.USEFUL)) == (15, 30)
    assert of(result, 1).wasted_node_s == 15


def test_the_saved_work_of_an_aborted_job_is_discarded() -> None:
    script = {0: [start(1)], 10: [checkpoint(1)], 20: [start(1)], 27: [abort(1)]}
    result = play(1, "1 0 1 30", Script(script), checkpointing=COSTS)
    assert result.jobs["status"].tolist() == ["aborted"]
    assert (spent(result, Account.LOST), spent(result, Account.USEFUL), of(result, 1).wasted_node_s) == (15, 0, 15)


def test_a_suspended_job_that_starts_elsewhere_is_moved_through_the_store() -> None:
    # 4 s to write and 2 s to read, on the new nodes; then 20 s are left.
    script = {0: [start(1)], 10: [suspend(1)], 20: [start(1, columns=(2, 4))]}
    result = play(4, "1 0 2 30", Script(script), checkpointing=COSTS, context_switch=ContextSwitch(seconds=1))
    assert spans(result) == {1: (20, 46)}
    assert [spent(result, one) for one in (Account.CONTEXT_SWITCH, Account.CHECKPOINT, Account.RESTART)] == [2, 8, 4]


def test_a_gang_of_more_tasks_than_q_is_written_in_rounds_and_others_wait_at_the_store() -> None:
    # The store takes two tasks at a time.  1, of three, needs two rounds; 2, of one task, is written as soon as two tasks of 1
    # are: it has waited 4 s, and the last task of 1 goes along with it.
    store = Checkpointing(checkpoint_s=4, restart_s=2, max_tasks_per_slice=2)
    script = {0: [start(1), start(2)], 10: [checkpoint(1), checkpoint(2)], 30: [start(1), start(2)]}
    result = play(4, "1 0 3 30\n2 0 1 30", Script(script), checkpointing=store)
    assert stopped(result) == [(2, 0, 18, "checkpointed", 0), (1, 0, 18, "checkpointed", 0)]
    assert spent(result, Account.CHECKPOINT) == 3 * 8 + 1 * 4
    assert spent(result, Account.BLOCKED) == 1 * 4 + 1 * 2  # as long for room to be read again: 2 s
    assert spans(result) == {1: (30, 54), 2: (30, 54)}
    assert result.kappa_by_formula == pytest.approx(result.ledger.capacity_loss, abs=1e-9)


def test_the_estimate_kills_when_all_run_attempts_together_have_reached_it() -> None:
    script = {0: [start(1)], 10: [checkpoint(1)], 20: [start(1)]}
    result = play(1, "1 0 1 30 25", Script(script), checkpointing=COSTS)
    assert spans(result) == {1: (20, 37)}
    assert (result.jobs["status"].tolist(), of(result, 1).run_s) == (["killed"], 25)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ({0: [kill(1)]}, "job 1 cannot be killed: it is not running"),
        ({0: [checkpoint(1)]}, "job 1 cannot be checkpointed: it is not running"),
        ({0: [suspend(1)]}, "job 1 cannot be suspended: it is not running"),
        ({0: [start(1)], 5: [checkpoint(1), kill(1)]}, "it has been stopped at this time already"),
        ({0: [start(1)], 5: [checkpoint(1)], 6: [suspend(1)]}, "job 1 cannot be preempted: it has been already"),
        ({0: [start(1)], 5: [checkpoint(1)], 6: [start(1)]}, "job 1 cannot start: it is running already"),
    ],
)
def test_what_cannot_be_done_is_refused(script: Timetable, message: str) -> None:
    with pytest.raises(DecisionError, match=message):
        play(2, "1 0 2 30", Script(script), checkpointing=COSTS)


def test_a_store_that_takes_no_tasks_and_a_memory_that_is_full_refuse() -> None:
    script = {0: [start(1)], 5: [checkpoint(1)]}
    with pytest.raises(DecisionError, match="the store takes no tasks"):
        play(2, "1 0 2 30", Script(script), checkpointing=Checkpointing(max_tasks_per_slice=0))
    script = {0: [start(1)], 5: [suspend(1)], 6: [start(1, columns=(2, 4))]}
    with pytest.raises(
        DecisionError, match="job 1 cannot start elsewhere: it is in the memory of nodes 0-1, and the store takes"
    ):
        play(4, "1 0 2 30", Script(script), checkpointing=Checkpointing(max_tasks_per_slice=0))
    for mode in ("checkpoint", "suspend"):
        with pytest.raises(SpecificationError, match=f"pv-easy: mode={mode}: the machine takes no checkpoints"):
            play(2, "1 0 2 30", f"pv-easy:mode={mode}", checkpointing=Checkpointing(max_tasks_per_slice=0))
    script = {0: [start(1)], 5: [suspend(1)], 6: [start(2)], 7: [suspend(2)]}
    with pytest.raises(DecisionError, match="job 2 cannot be suspended: a node of 0-1 holds 1 suspended tasks already"):
        play(2, "1 0 2 30\n2 0 2 30", Script(script), suspended_per_node=1)


def test_nodes_of_a_job_ahead_of_the_head_that_is_being_saved_are_not_counted_on() -> None:
    # At 90, 5 yields to 4, which needs one node more than are idle, until 150.  But at 100 there are enough without it, and
    # 4 starts.  6 is blocked then; 5 is ahead of it and takes its node back at 150, so 7 must yield as well, until 170.
    jobs = "1 0 2 100 1000\n2 0 1 90 1000\n3 0 2 110 1000\n4 10 2 500 1000\n5 11 1 500 1000\n6 12 3 50 1000\n7 13 1 400 1000"
    result = play(6, jobs, "pv-easy:mode=checkpoint", checkpointing=Checkpointing(checkpoint_s=60))
    assert stopped(result) == [(5, 11, 150, "checkpointed", 0), (7, 100, 170, "checkpointed", 0)]
    assert {job: spans(result)[job][0] for job in (4, 5, 6, 7)} == {4: 100, 5: 150, 6: 170, 7: 220}
