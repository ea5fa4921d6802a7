"""Hand-worked timelines of ServerFilling (Grosof et al. 2022): who runs, who is preempted, and what it costs."""

import pytest

from clustermodel import Checkpointing, SpecificationError
from clustermodel.recording.ledger import Account
from tests.timeline.timeline import play, spans, spent, stopped

POLICY = "server-filling"


def test_a_large_job_that_fills_the_machine_preempts_small_ones_for_nothing() -> None:
    result = play(4, "1 0 1 10\n2 2 4 10", POLICY, explain=True)
    assert spans(result) == {1: (12, 20), 2: (2, 12)}
    assert stopped(result) == [(1, 0, 2, "checkpointed", 0)]
    assert result.explain(2).rule == "one of the oldest jobs that can fill the machine, the largest first"


def test_small_jobs_run_as_long_as_they_fill_the_machine() -> None:
    # 1 to 4 need all nodes, so 5 is no candidate until one of them completes; then it is the largest.
    result = play(4, "1 0 1 10\n2 0 1 20\n3 0 1 20\n4 0 1 20\n5 1 4 5", POLICY)
    assert spans(result) == {1: (0, 10), 2: (15, 25), 3: (15, 25), 4: (15, 25), 5: (10, 15)}


def test_candidates_are_the_shortest_prefix_and_run_by_size() -> None:
    # 1, 2 and 3 need 1 + 1 + 2 of 4 nodes: 4, of 2 nodes, is no candidate.  When 1 completes, 2, 3 and 4 are.
    result = play(4, "1 0 1 10\n2 0 1 30\n3 0 2 30\n4 0 2 10", POLICY)
    assert spans(result) == {1: (0, 10), 2: (20, 40), 3: (0, 30), 4: (10, 20)}
    assert stopped(result) == [(2, 0, 10, "checkpointed", 0)]


def test_equal_sizes_run_in_queue_order() -> None:
    assert spans(play(4, "1 0 4 10\n2 2 4 10", POLICY)) == {1: (0, 10), 2: (10, 20)}
    assert spans(play(4, "1 0 4 10\n2 2 4 10 10 1", POLICY)) == {1: (12, 20), 2: (2, 12)}  # 2 has the higher priority


def test_a_preempted_job_resumes_on_any_nodes() -> None:
    # The largest starts first, so 3 has nodes 0 and 1, and 2 has node 3, which 4 takes at 10.  At 15 node 0 is free.
    result = play(4, "1 0 1 10\n2 0 1 30\n3 0 2 15\n4 0 2 10", POLICY, history=True)
    assert spans(result) == {1: (0, 10), 2: (15, 35), 3: (0, 15), 4: (10, 20)}
    of_2 = result.placements.query("job == 2")
    assert of_2[["begin_s", "first_node"]].to_numpy().tolist() == [[0, 3], [15, 0]]


def test_a_checkpoint_that_takes_time_holds_the_nodes() -> None:
    store = Checkpointing(checkpoint_s=3, restart_s=2)
    result = play(4, "1 0 1 10\n2 2 4 10", POLICY, checkpointing=store)
    assert spans(result) == {1: (15, 25), 2: (5, 15)}  # 1 is written from 2 to 5 and read from 15 to 17
    assert spent(result, Account.CHECKPOINT) == 3
    assert spent(result, Account.RESTART) == 2


def test_a_machine_without_checkpoints_is_refused() -> None:
    with pytest.raises(SpecificationError, match="server-filling: mode=checkpoint: the machine takes no checkpoints"):
        play(4, "1 0 1 10", POLICY, checkpointing=Checkpointing(max_tasks_per_slice=0))


def test_other_sizes_leave_nodes_idle() -> None:
    # 2 is larger than 1 and does not fit beside it; 1 runs when no larger candidate is left.
    result = play(4, "1 0 2 10\n2 1 3 5\n3 1 3 5", POLICY)
    assert spans(result) == {1: (11, 20), 2: (1, 6), 3: (6, 11)}
