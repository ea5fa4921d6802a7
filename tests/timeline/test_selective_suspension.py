"""Hand-worked timelines of selective suspension (Kettimuthu et al. 2005): who preempts whom, when, and what it costs."""

import pytest

from clustermodel import Checkpointing, ContextSwitch, SpecificationError
from clustermodel.recording.ledger import Account
from tests.timeline.timeline import play, spans, spent, stopped

SHORT_BEHIND_LONG = "1 0 4 600\n2 0 4 60"
"""Job 2, of one minute, has an xfactor of 2 after a minute; job 1 has one of 1."""


# Who is preempted, and when.


def test_a_job_preempts_as_soon_as_its_xfactor_is_sf_times_as_large() -> None:
    result = play(4, SHORT_BEHIND_LONG, "ss", explain=True)
    assert spans(result) == {1: (120, 660), 2: (60, 120)}
    assert stopped(result) == [(1, 0, 60, "suspended", 0)]
    assert result.explain(2).rule == "xfactor 2.00, and jobs were preempted for it"
    assert result.explain(1).rule == "xfactor 1.10, and it fits"


@pytest.mark.parametrize(("sf", "start"), [(2, 60), (2.5, 120), (3, 120), (5, 240), (11, 600), (20, 600)])
def test_the_larger_the_suspension_factor_the_later(sf: float, start: float) -> None:
    assert spans(play(4, SHORT_BEHIND_LONG, f"ss:sf={sf}"))[2] == (start, start + 60)


def test_preemption_is_considered_once_a_minute() -> None:
    # The xfactor of 2 is 2 at 70 s: that is seen at 120 s, or at 70 s where preemption is considered every ten seconds.
    jobs = "1 0 4 600\n2 0 4 70"
    assert spans(play(4, jobs, "ss")) == {1: (190, 670), 2: (120, 190)}
    assert spans(play(4, jobs, "ss:interval_s=10")) == {1: (140, 670), 2: (70, 140)}


def test_what_happens_at_a_minute_counts_at_that_minute() -> None:
    # From 60 on, 3 has an xfactor of 2, and 4 would need 4, at 150.  But 3 completes at 120: now 2 (1.1) is all that is in the
    # way of 4, which has 3.
    result = play(4, "1 0 4 60\n2 0 2 600\n3 0 2 60\n4 60 4 30", "ss")
    assert spans(result) == {1: (0, 60), 2: (150, 690), 3: (60, 120), 4: (120, 150)}


def test_with_an_sf_of_2_equal_jobs_do_not_preempt_each_other() -> None:
    assert spans(play(4, "1 0 4 600\n2 0 4 600", "ss")) == {1: (0, 600), 2: (600, 1200)}


def test_with_an_sf_between_the_square_root_of_2_and_2_one_of_two_equal_jobs_is_suspended_once() -> None:
    # 2 has an xfactor of 1.5 at 300.  1 would need 2.25, at 1050, and 2 completes at 900.
    result = play(4, "1 0 4 600\n2 0 4 600", "ss:sf=1.5")
    assert spans(result) == {1: (900, 1200), 2: (300, 900)}


def test_below_the_square_root_of_2_each_is_suspended_once() -> None:
    # 2 has 1.3 at 180; 1 has 1.69 after a wait of 414 s, which is seen at 600, and has 1.7 then; 2 would need 2.21, at 1146.
    result = play(4, "1 0 4 600\n2 0 4 600", "ss:sf=1.3")
    assert stopped(result) == [(1, 0, 180, "suspended", 0), (2, 180, 600, "suspended", 0)]
    assert spans(result) == {1: (600, 1020), 2: (1020, 1200)}


def test_a_narrow_job_does_not_preempt_a_job_of_more_than_twice_its_size() -> None:
    assert spans(play(4, "1 0 4 600\n2 0 1 60", "ss")) == {1: (0, 600), 2: (600, 660)}
    # 3, of half the size, does; the nodes that it does not need are for 2.
    assert spans(play(4, "1 0 4 600\n2 0 1 60\n3 0 2 60", "ss")) == {1: (120, 660), 2: (60, 120), 3: (60, 120)}


def test_a_wide_job_preempts_several() -> None:
    result = play(4, "1 0 1 600\n2 0 1 600\n3 0 1 600\n4 0 4 60", "ss")
    assert spans(result) == {1: (120, 660), 2: (120, 660), 3: (120, 660), 4: (60, 120)}
    assert result.summary().preempted == 3


def test_nobody_is_preempted_where_that_would_not_make_the_job_fit() -> None:
    # At 120, 4 has an xfactor of 3: enough to preempt 2 (1.1) and not 3 (1.6), and it needs the nodes of both.
    result = play(4, "1 0 4 60\n2 0 2 600\n3 0 2 100\n4 60 4 30", "ss")
    assert stopped(result) == [(2, 60, 180, "suspended", 0)]
    assert spans(result) == {1: (0, 60), 2: (210, 690), 3: (60, 160), 4: (180, 210)}


def test_of_equal_xfactors_the_last_in_queue_order_yields_and_no_more_than_it_takes() -> None:
    assert spans(play(4, "1 0 2 600\n2 0 2 600\n3 0 2 60", "ss")) == {1: (0, 600), 2: (120, 660), 3: (60, 120)}
    # 2 would come first, and then 1; but without 1 the job does not fit, and with it, it needs no nodes of 2.
    assert spans(play(6, "1 0 4 600\n2 0 2 600\n3 0 4 60", "ss")) == {1: (120, 660), 2: (0, 600), 3: (60, 120)}


def test_jobs_start_in_the_order_of_their_xfactors_and_none_holds_a_reservation() -> None:
    # At 100, 2 has 1.3 and 3 has 3.67: 3 starts, and 2 waits for it.
    result = play(2, "1 0 2 100\n2 10 2 300\n3 20 1 30", "ss:sf=10", explain=True)
    assert spans(result) == {1: (0, 100), 2: (130, 430), 3: (100, 130)}
    assert result.explain(3).rule == "xfactor 3.67, and it fits"
    assert result.jobs["reserved_s"].isna().all()


# Own nodes.


def test_a_suspended_job_waits_for_its_own_nodes_and_a_checkpointed_one_does_not() -> None:
    # At 120, 2 yields nodes 2 and 3 to job 3.  Nodes 0 and 1 are idle from 130 on.
    jobs = "1 0 2 130\n2 0 2 600\n3 0 2 120"
    result = play(4, jobs, "ss")
    assert spans(result) == {1: (0, 130), 2: (240, 720), 3: (120, 240)}
    assert result.records.columns_of(1) == (2, 4)
    result = play(4, jobs, "ss:mode=checkpoint")
    assert spans(result) == {1: (0, 130), 2: (130, 610), 3: (120, 240)}
    assert result.records.columns_of(1) == (0, 2)


def test_a_suspended_job_preempts_jobs_of_any_size_to_get_its_nodes_back() -> None:
    # 2 has 1.2 at 120.  1, with 1.44 after 88 s, is back at 240 on one node of the four that 2 has.
    result = play(4, "1 0 1 200\n2 0 4 600", "ss:sf=1.2")
    assert stopped(result) == [(1, 0, 120, "suspended", 0), (2, 120, 240, "suspended", 0)]
    assert spans(result) == {1: (240, 320), 2: (320, 800)}


def test_a_job_starts_on_the_nodes_of_whom_it_has_preempted() -> None:
    # At 60, 3 preempts 2 (node 2), and 4 preempts 1 (nodes 0 and 1), of which it needs one.  3 leaves the other one alone, or 2
    # would have yielded to no purpose.
    result = play(3, "1 0 2 600\n2 0 1 600\n3 0 1 60\n4 0 1 60", "ss")
    assert spans(result) == {1: (120, 660), 2: (120, 660), 3: (60, 120), 4: (60, 120)}
    assert result.records.columns_of(2) == (2, 3)


def test_other_jobs_take_the_nodes_of_suspended_jobs_last() -> None:
    # 1 yields nodes 0 to 3 to job 4 at 120, which takes 0 and 1.  5 takes nodes 4 and 5, not 2 and 3: so 1 is back at 180.
    result = play(6, "1 0 4 600\n3 0 2 30\n2 1 2 100\n4 31 2 60\n5 140 2 100", "ss")
    assert spans(result) == {1: (180, 660), 2: (30, 130), 3: (0, 30), 4: (120, 180), 5: (140, 240)}


def test_where_memory_is_full_nobody_is_suspended_and_nothing_is_lost() -> None:
    assert spans(play(4, SHORT_BEHIND_LONG, "ss", suspended_per_node=0)) == {1: (0, 600), 2: (600, 660)}
    # 2 suspends 1 at 600.  3 could suspend 2 at 780, when it has an xfactor of 4.
    jobs = "1 0 4 10000\n2 0 4 600\n3 600 4 60"
    assert spans(play(4, jobs, "ss")) == {1: (1260, 10660), 2: (840, 1260), 3: (780, 840)}
    full = play(4, jobs, "ss", suspended_per_node=1)
    assert spans(full) == {1: (1260, 10660), 2: (600, 1200), 3: (1200, 1260)}
    assert spent(full, Account.LOST) == 0


# Costs.


def test_a_suspension_costs_a_context_switch_before_and_after() -> None:
    result = play(4, SHORT_BEHIND_LONG, "ss", context_switch=ContextSwitch(seconds=5))
    assert spans(result) == {1: (125, 670), 2: (65, 125)}
    assert spent(result, Account.CONTEXT_SWITCH) == 4 * (5 + 5)
    assert result.kappa_by_formula == pytest.approx(result.ledger.capacity_loss, abs=1e-9)


def test_a_checkpoint_and_a_restart_hold_the_nodes() -> None:
    result = play(4, SHORT_BEHIND_LONG, "ss:mode=checkpoint", checkpointing=Checkpointing(checkpoint_s=4, restart_s=2))
    assert spans(result) == {1: (124, 666), 2: (64, 124)}
    assert (spent(result, Account.CHECKPOINT), spent(result, Account.RESTART), spent(result, Account.LOST)) == (16, 8, 0)


def test_a_killed_job_begins_again() -> None:
    result = play(4, SHORT_BEHIND_LONG, "ss:mode=kill")
    assert spans(result) == {1: (120, 720), 2: (60, 120)}
    assert spent(result, Account.LOST) == 4 * 60


def test_the_time_for_saving_is_no_wait_time() -> None:
    # 1 holds its nodes until 100 while it is written, and waits from then to 160: its xfactor is 1 + 60/600.
    costs = Checkpointing(checkpoint_s=40)
    result = play(4, SHORT_BEHIND_LONG, "ss:mode=checkpoint", checkpointing=costs, explain=True)
    assert result.explain(1).rule == "xfactor 1.10, and it fits"


def test_nodes_are_kept_for_a_job_while_those_it_has_preempted_are_saved() -> None:
    # 2 preempts 1 at 60 and needs the idle nodes too: 3, which would fit at 62, waits.
    result = play(4, "1 0 2 600\n2 0 4 60\n3 62 2 60", "ss", context_switch=ContextSwitch(seconds=5))
    assert spans(result) == {1: (125, 670), 2: (65, 125), 3: (125, 185)}


# What is refused.


def test_a_store_that_takes_no_tasks_is_needed_for_checkpoints_only() -> None:
    store = Checkpointing(max_tasks_per_slice=0)
    with pytest.raises(SpecificationError, match="ss: mode=checkpoint: the machine takes no checkpoints"):
        play(4, SHORT_BEHIND_LONG, "ss:mode=checkpoint", checkpointing=store)
    assert spans(play(4, SHORT_BEHIND_LONG, "ss", checkpointing=store)) == {1: (120, 660), 2: (60, 120)}


def test_a_suspension_factor_that_no_job_ever_has_preempts_nobody() -> None:
    assert spans(play(4, SHORT_BEHIND_LONG, "ss:sf=1e300")) == {1: (0, 600), 2: (600, 660)}
