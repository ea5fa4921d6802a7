"""Hand-worked timelines of the preemptive schedulers: who runs, who yields, when decisions are made, and what restarts cost."""

from dataclasses import replace

import pytest

from clustermodel import (
    Checkpointing,
    ContextSwitch,
    DecisionError,
    Job,
    Machine,
    NodeType,
    Partition,
    Scenario,
    SpecificationError,
    Workload,
)
from clustermodel.recording.ledger import Account
from tests.gang_runs import check_books
from tests.timeline.timeline import accounts, play, spans, spent, stopped

LONG_THEN_SHORT = "1 0 1 10\n2 2 1 3"


def test_srtf_runs_the_job_with_the_shortest_remaining_time() -> None:
    result = play(1, LONG_THEN_SHORT, "srtf", explain=True)
    assert spans(result) == {1: (5, 13), 2: (2, 5)}
    assert stopped(result) == [(1, 0, 2, "checkpointed", 0)]
    assert result.explain(2).rule == "it fits, in the order of remaining times"


def test_a_job_with_less_left_is_not_preempted_and_equal_ones_keep_their_order() -> None:
    assert spans(play(1, "1 0 1 10\n2 8 1 3", "srtf")) == {1: (0, 10), 2: (10, 13)}
    assert spans(play(1, "1 0 1 5\n2 2 1 3", "srtf")) == {1: (0, 5), 2: (5, 8)}


def test_srsf_counts_nodes_too() -> None:
    jobs = "1 0 4 10\n2 1 1 12"
    assert spans(play(4, jobs, "srtf")) == {1: (0, 10), 2: (10, 22)}  # 9 s are left of 1, and 12 s of 2
    assert spans(play(4, jobs, "srsf")) == {1: (13, 22), 2: (1, 13)}  # 36 and 12 node-seconds


def test_predictions_replace_run_times() -> None:
    # 1 asks for 10 s and runs for 4, 2 asks for 5.
    jobs = "1 0 1 4 10\n2 1 1 5 5"
    assert spans(play(1, jobs, "srtf")) == {1: (0, 4), 2: (4, 9)}
    assert spans(play(1, jobs, "srtf:predictor=estimate")) == {1: (6, 9), 2: (1, 6)}


def test_las_moves_a_job_to_the_next_queue_at_the_threshold() -> None:
    # 1 runs on in the first queue until it has had 4 node-seconds, then 2 comes first.
    result = play(1, "1 0 1 10\n2 1 1 2", "las:thresholds=4")
    assert spans(result) == {1: (6, 12), 2: (4, 6)}
    assert stopped(result) == [(1, 0, 4, "checkpointed", 0)]


def test_las_counts_node_seconds_and_rounds_up_to_whole_seconds() -> None:
    # 9 node-seconds on 2 nodes are 4.5 s; the decision is at 5 s.
    assert spans(play(2, "1 0 2 10\n2 1 2 2", "las:thresholds=9")) == {1: (7, 12), 2: (5, 7)}


def test_las_with_three_queues() -> None:
    # 2 preempts 1 at 5 and comes behind it in the second queue at 7; 1 leaves that queue at 8.
    result = play(1, "1 0 1 10\n2 5 1 4", "las:thresholds=2/6")
    assert spans(result) == {1: (10, 14), 2: (8, 10)}
    assert stopped(result) == [(1, 0, 5, "checkpointed", 0), (2, 5, 7, "checkpointed", 0), (1, 7, 8, "checkpointed", 0)]


@pytest.mark.parametrize(("promote", "ends"), [("", {1: (16, 21), 5: (14, 16)}), (",promote=1", {1: (19, 21), 5: (17, 19)})])
def test_las_promotes_a_job_that_has_waited_long_enough(promote: str, ends: dict[int, tuple[float, float]]) -> None:
    # 1 is demoted at 4.  With promotion it returns to the first queue at 8, behind 4, and runs from 13 on although 5 arrives.
    result = play(1, "1 0 1 10\n2 1 1 3\n3 1 1 3\n4 1 1 3\n5 14 1 2", f"las:thresholds=4{promote}")
    assert {2: (4, 7), 3: (7, 10), 4: (10, 13), **ends} == spans(result)


def test_fifo_preempts_the_jobs_behind_one_that_fits_now() -> None:
    jobs = "1 0 3 10\n2 1 4 5\n3 2 1 20"
    result = play(4, jobs, "fifo-preempt")
    assert spans(result) == {1: (0, 10), 2: (10, 15), 3: (15, 27)}
    assert stopped(result) == [(3, 2, 10, "checkpointed", 0)]
    assert spans(play(4, jobs, "fifo-preempt:skip=false")) == {1: (0, 10), 2: (10, 15), 3: (15, 35)}


# What preemption does.


def test_checkpoint_and_restart_hold_the_nodes() -> None:
    result = play(1, LONG_THEN_SHORT, "srtf", checkpointing=Checkpointing(checkpoint_s=3, restart_s=2))
    assert spans(result) == {1: (8, 18), 2: (5, 8)}  # 1 is written from 2 to 5 and read from 8 to 10
    assert accounts(result) == {Account.USEFUL: 13, Account.CHECKPOINT: 3, Account.RESTART: 2}


def test_a_killed_job_begins_again() -> None:
    result = play(1, LONG_THEN_SHORT, "srtf:mode=kill")
    assert spans(result) == {1: (5, 15), 2: (2, 5)}
    assert stopped(result) == [(1, 0, 2, "preempted", 2)]


def test_a_suspended_job_goes_on_after_a_context_switch() -> None:
    result = play(1, LONG_THEN_SHORT, "srtf:mode=suspend", context_switch=ContextSwitch(seconds=1))
    assert spans(result) == {1: (6, 15), 2: (3, 6)}


def test_a_job_without_room_in_memory_runs_on() -> None:
    result = play(1, LONG_THEN_SHORT, "srtf:mode=suspend", suspended_per_node=0)
    assert spans(result) == {1: (0, 10), 2: (10, 13)}


# When decisions are made.


@pytest.mark.parametrize(("policy", "machine"), [("srtf:round_s=10", {}), ("srtf", {"round_s": 10})])
def test_decisions_are_made_at_the_multiples_of_the_round(policy: str, machine: dict[str, float]) -> None:
    # 2 arrives at 1 and preempts at 10; it completes at 13, and the node is idle until 20.
    result = play(1, "1 0 1 15\n2 1 1 3", policy, **machine)
    assert spans(result) == {1: (20, 25), 2: (10, 13)}
    assert spent(result, Account.IDLE) == 7


def test_a_job_chosen_at_a_round_starts_when_the_checkpoint_is_written() -> None:
    result = play(1, "1 0 1 15\n2 1 1 3", "srtf:round_s=10", checkpointing=Checkpointing(checkpoint_s=2))
    assert spans(result) == {1: (20, 25), 2: (12, 15)}


def test_a_job_has_its_guaranteed_run_time() -> None:
    assert spans(play(1, LONG_THEN_SHORT, "srtf:min_run_s=5")) == {1: (8, 13), 2: (5, 8)}
    assert spans(play(1, LONG_THEN_SHORT, "srtf:min_run_s=5,round_s=4")) == {1: (0, 10), 2: (12, 15)}  # 2 s are left at 8


@pytest.mark.parametrize(("victim", "yields"), [("order", 1), ("least-lost", 2), ("latest-start", 3), ("largest", 4)])
def test_who_yields(victim: str, yields: int) -> None:
    # At 5, job 9 needs a node.  195 s are left of 1, 98.5 s of 2, 89 s of 3 and 91 s of 4; so 1 is the last in the order.
    jobs = "1 0 1 200\n2 3.5 1 100\n3 4 2 90\n4 1 3 95\n9 5 1 10"
    result = play(7, jobs, f"srtf:victim={victim}")
    assert next((job, end) for job, _, end, _, _ in stopped(result)) == (yields, 5)
    assert spans(result)[9] == (5, 15)


def test_no_more_jobs_yield_than_need_to() -> None:
    # 1 started last of those behind 9, but without it 2, which has both nodes that 9 needs, yields alone.
    result = play(3, "2 0 2 100\n1 1 1 100\n9 5 2 10", "srtf:victim=latest-start")
    assert [(job, end) for job, _, end, _, _ in stopped(result)] == [(2, 5)]


ONE_LARGE_FIVE_SMALL = "1 0 5 1000\n" + "\n".join(f"{n} {n - 1} 1 1000" for n in range(2, 7))


@pytest.mark.parametrize("how", ["", ":victim=fewest", ":victim=largest", ":victim=latest-start", ":preempts=lower-priority"])
@pytest.mark.parametrize("partitions", [(), (Partition(name="a", nodes="0-9"), Partition(name="b", nodes="4-12"))])
def test_one_job_yields_where_one_is_enough_and_takes_no_nodes_back(how: str, partitions: tuple[Partition, ...]) -> None:
    # 9 is of higher priority; after 1 has yielded, it is ahead of 2 to 6 in the queue, and has to wait until 9 has completed.
    jobs = [Job(id=1, nodes=5, submit_s=0, run_s=1000)]
    jobs += [Job(id=n, nodes=1, submit_s=n - 1, run_s=1000) for n in range(2, 7)]
    jobs += [Job(id=9, nodes=5, submit_s=100, run_s=50, priority=5)]
    if partitions:
        jobs = [replace(job, partition="a") for job in jobs]
    machine = Machine(nodes=13 if partitions else 10, partitions=partitions)
    result = Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy=f"fifo-preempt{how}").run()
    assert stopped(result) == [(1, 0, 100, "checkpointed", 0)]
    assert spans(result)[1] == (150, 1050)


def test_those_that_have_lost_least_together_yield() -> None:
    # 1 has held 5 x 100 node-seconds, 2 to 6 fewer in all (99 + 98 + 97 + 96 + 95): least is lost with the five of them.
    result = play(10, f"{ONE_LARGE_FIVE_SMALL}\n9 100 5 50", "srtf:victim=least-lost")
    assert [job for job, *_ in stopped(result)] == [2, 3, 4, 5, 6]
    # A second later than 1, they have 5 x 96 together with 7; 1 alone has 5 x 95.
    later = "\n".join(f"{n} 4 1 1000" for n in range(2, 7))
    assert [job for job, *_ in stopped(play(10, f"{later}\n1 5 5 990\n9 100 5 50", "srtf:victim=least-lost"))] == [1]


def test_jobs_of_equal_priority_are_not_preempted_by_their_place_if_only_priorities_preempt() -> None:
    jobs = "1 0 3 100\n2 1 4 100\n3 2 1 500"
    assert spans(play(4, jobs, "fifo-preempt")) == {1: (0, 100), 2: (100, 200), 3: (200, 602)}
    assert spans(play(4, jobs, "fifo-preempt:preempts=lower-priority")) == {1: (0, 100), 2: (502, 602), 3: (2, 502)}


def test_a_preempted_job_preempts_those_that_have_started_since_and_stand_behind_it() -> None:
    # 1 yields to 9 at 10, and takes no nodes back from 2.  3 starts at 30 on the node that 2 has left; 1 needs it when 4 ends.
    rows = [(1, 0, 2, 100, 0), (2, 1, 1, 29, 0), (3, 20, 1, 500, 0), (4, 2, 1, 55, 9), (9, 10, 2, 50, 9)]
    jobs = [Job(id=n, submit_s=at, nodes=nodes, run_s=run, priority=priority) for n, at, nodes, run, priority in rows]
    result = Scenario(machine=Machine(nodes=4), workload=Workload.from_jobs(jobs), policy="fifo-preempt").run()
    assert [(job, end) for job, _, end, _, _ in stopped(result)] == [(1, 10), (3, 57)]
    assert spans(result)[1][0] == 57


# When restarts are charged.


def test_every_decision_charges_the_intervals_in_which_a_job_does_not_complete() -> None:
    # 1 restarts from 0 to 1; 7 s are left at 4, when 2 arrives.  Neither job is charged for the interval in which it completes.
    charge = Checkpointing(restart_s=1, restart_charge="every-decision")
    result = play(1, "1 0 1 10\n2 4 1 20", "srtf", checkpointing=charge)
    assert spans(result) == {1: (0, 11), 2: (11, 31)}
    assert accounts(result) == {Account.USEFUL: 30, Account.RESTART: 1}
    check_books(result)


def test_every_decision_charges_no_more_than_the_interval() -> None:
    charge = Checkpointing(restart_s=3, restart_charge="every-decision")
    result = play(1, "1 0 1 10\n2 1 1 20\n3 2 1 30", "fcfs", checkpointing=charge)
    assert spans(result) == {1: (0, 12), 2: (12, 32), 3: (32, 62)}
    assert spent(result, Account.RESTART) == 2
    check_books(result)


def test_every_round_charges_the_start_and_each_multiple() -> None:
    charge = Checkpointing(restart_s=2, restart_charge="every-round")
    result = play(1, "1 0 1 15\n2 25 1 9\n3 40 1 8", "fcfs", checkpointing=charge, round_s=10)
    assert spans(result) == {1: (0, 19), 2: (25, 38), 3: (40, 50)}  # 2: 3 s until 30, and 6 s from 32 on
    assert spent(result, Account.RESTART) == 2 + 2 + 2 + 2 + 2
    check_books(result)


def test_every_round_with_preemption() -> None:
    # 1 has executed 8 s at 10, when 2 is shorter.  2 executes from 12 to 15, 1 goes on at 20 and executes from 22 on.
    charge = Checkpointing(restart_s=2, restart_charge="every-round")
    result = play(1, "1 0 1 15\n2 1 1 3", "srtf", checkpointing=charge, round_s=10)
    assert spans(result) == {1: (20, 29), 2: (10, 15)}
    assert accounts(result) == {Account.USEFUL: 18, Account.RESTART: 6, Account.IDLE: 5}
    check_books(result)


def test_what_is_refused() -> None:
    with pytest.raises(
        SpecificationError, match=r"Machine\.round_s: 0 is not allowed where restarts are charged in every round"
    ):
        Machine(nodes=1, checkpointing=Checkpointing(restart_charge="every-round"))
    with pytest.raises(SpecificationError, match="'every-decision' is not allowed with periodic checkpoints"):
        Checkpointing(restart_charge="every-decision", interval_s=5)
    with pytest.raises(SpecificationError, match="restart_charge: 'never' is not allowed"):
        Checkpointing(restart_charge="never")
    with pytest.raises(SpecificationError, match="for job 1, whose restart takes 10 s in every round; it must be longer"):
        play(1, "1 0 1 5", "srtf", round_s=10, checkpointing=Checkpointing(restart_s=10, restart_charge="every-round"))
    with pytest.raises(DecisionError, match="nodes cannot be shared in time where restarts are charged every-decision"):
        play(1, "1 0 1 5", "gs", checkpointing=Checkpointing(restart_charge="every-decision"))
    with pytest.raises(SpecificationError, match="srtf: mode=checkpoint: the machine takes no checkpoints"):
        play(1, "1 0 1 5", "srtf", checkpointing=Checkpointing(max_tasks_per_slice=0))


@pytest.mark.parametrize("policy", ["fifo-preempt", "fifo-preempt:victim=order", "fifo-preempt:mode=suspend"])
@pytest.mark.parametrize("leaving", [0, 1])
def test_idle_nodes_are_taken_before_those_that_jobs_are_leaving(policy: str, leaving: int) -> None:
    # At 15 one node is idle, and job 1 leaves the other one at 17, after its epilog: job 3 need not wait for that.
    parts = [Partition(name=name, nodes=str(node)) for node, name in enumerate("ab")]
    machine = Machine(nodes=2, partitions=[*parts, Partition(name="c", nodes="0-1", default=True)])
    jobs = [
        Job(id=1, nodes=1, submit_s=0, run_s=15, epilog_s=2, partition="ab"[leaving]),
        Job(id=2, nodes=1, submit_s=0, run_s=15),
        Job(id=3, nodes=1, submit_s=4, run_s=9),
    ]
    result = Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy=policy).run()
    assert spans(result)[3] == (15, 24)


@pytest.mark.parametrize("victim", ["order", "fewest", "least-lost", "latest-start", "largest"])
def test_those_yield_whose_processors_are_of_the_shape(victim: str) -> None:
    # 1 and 3 have a processor of node 0 each, 2 and 4 of node 1.  Two processors in all would be free without 4 and 3.
    rows = [(1, 0, 200), (2, 1, 190), (3, 2, 180), (4, 3, 170)]
    jobs = [Job(id=n, nodes=1, submit_s=at, run_s=run, node_type="ab"[(n + 1) % 2]) for n, at, run in rows]
    jobs.append(Job(id=9, nodes=2, processors_per_node=2, submit_s=10, run_s=20))
    types = [NodeType(name=name, nodes=str(node)) for node, name in enumerate("ab")]
    machine = Machine(nodes=2, processors_per_node=2, node_types=types)
    result = Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy=f"srtf:victim={victim}").run()
    victims = sorted(job for job, _, end, _, _ in stopped(result) if end == 10)
    assert victims in ([1, 3], [2, 4])
    assert spans(result)[9] == (10, 30)


def test_a_suspended_job_of_a_shape_goes_on_where_it_was() -> None:
    jobs = [Job(id=1, nodes=2, processors_per_node=1, submit_s=0, run_s=10)]
    jobs.append(Job(id=2, nodes=4, submit_s=2, run_s=3))
    machine = Machine(nodes=2, processors_per_node=2, context_switch=ContextSwitch(seconds=1))
    result = Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy="srtf:mode=suspend").run()
    assert spans(result) == {1: (6, 15), 2: (3, 6)}


@pytest.mark.parametrize("policy", ["srtf:mode=suspend", "ss"])
def test_jobs_are_not_suspended_where_they_share_the_memory_of_nodes(policy: str) -> None:
    machine = Machine(nodes=1, processors_per_node=2, node_memory_gib=4)
    workload = Workload.from_jobs([Job(id=1, nodes=1, submit_s=0, run_s=1)])
    with pytest.raises(SpecificationError, match="mode=suspend is not allowed where several jobs share the memory of a node"):
        Scenario(machine=machine, workload=workload, policy=policy).run()


def test_memory_that_jobs_share_is_gained_too() -> None:
    # Of two processors one is idle; 1 has all of the memory.
    jobs = [Job(id=1, nodes=1, submit_s=0, run_s=10, memory_gib=4), Job(id=2, nodes=1, submit_s=2, run_s=3, memory_gib=1)]
    machine = Machine(nodes=1, processors_per_node=2, node_memory_gib=4)
    for policy in ("srtf", "srtf:victim=fewest"):
        assert spans(Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy=policy).run()) == {
            1: (5, 13),
            2: (2, 5),
        }
