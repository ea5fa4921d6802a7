"""Timelines under the rules of a site, worked by hand: a row per node, a column per second, and the job that has it."""

import pytest

from clustermodel import (
    Checkpointing,
    FairShare,
    Job,
    Limits,
    Machine,
    Partition,
    Reservation,
    Result,
    Scenario,
    Site,
    TimeSlicing,
    Workload,
)
from clustermodel.machine.failure import Failure
from clustermodel.sim.simulation import Fidelity
from clustermodel.ticks import TICKS_PER_SECOND
from tests.property.test_failures import Listed

Starts = dict[int, float]


def job(number: int, submit_s: float, nodes: int, run_s: float, partition: str | None = None, **fields: object) -> Job:
    return Job(id=number, submit_s=submit_s, nodes=nodes, run_s=run_s, partition=partition, **fields)  # type: ignore[arg-type]


def run(
    jobs: list[Job],
    nodes: int,
    policy: str = "easy",
    site: Site | None = None,
    arrays: dict[str, object] | None = None,
    **machine: object,
) -> Result:
    workload = Workload.from_jobs(jobs)
    if arrays is not None:
        workload = Workload.from_frame(workload.frame.assign(**arrays))
    return Scenario(
        workload=workload,
        machine=Machine(nodes=nodes, **machine),
        policy=policy,
        site=site,  # type: ignore[arg-type]
    ).run()


def drawn(result: Result) -> str:
    """Return which job has which node in which second."""
    places = result.placements
    rows = [["."] * int(places["end_s"].max()) for _ in range(result.machine.nodes)]
    columns = (places[name].astype(int) for name in ("job", "begin_s", "end_s", "first_node", "nodes"))
    for number, begin, end, first, nodes in zip(*columns, strict=True):
        for row in rows[first : first + nodes]:
            assert set(row[begin:end]) == {"."}
            row[begin:end] = str(number) * (end - begin)
    return "\n".join(map("".join, rows))


def column(result: Result, name: str = "start_s") -> Starts:
    values = result.jobs.set_index("job")[name].dropna()
    return {int(number): value for number, value in values.items() if name == "start_s" or value}


def drawing(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


def test_the_first_job_of_a_queue_is_not_delayed_by_those_of_another_one_that_shares_a_node() -> None:
    # Node 2 is in both.  Job 2 waits for all of b until 4.  Job 3 would fit at 1, and hold node 2 until 7: as the first of
    # a, it waits until 7.  Jobs 4 and 5 end by 7 and by 4, when these need their nodes.
    jobs = [job(1, 0, 2, 4, "b"), job(2, 1, 3, 3, "b"), job(3, 1, 3, 6, "a"), job(4, 2, 2, 5, "a"), job(5, 2, 1, 2, "a")]
    result = run(jobs, 5, partitions=[Partition(name="a", nodes="0-2"), Partition(name="b", nodes="2-4")])
    assert drawn(result) == drawing("""
        ..44444333333
        ..44444333333
        ..55222333333
        1111222......
        1111222......
    """)
    assert column(result) == {1: 0, 2: 4, 3: 7, 4: 2, 5: 2}
    assert column(result, "reserved_s") == {2: 4, 3: 7}


def test_reservations_in_partitions_move_up_and_never_back() -> None:
    # At 1 job 2 is due at 4, job 3 on node 0 at 4, job 4, too long for node 2 before 4, at 7.  Job 1 ends at 2 already: job 3
    # moves to 2; job 2 has to wait for node 2, and job 4 for job 2.
    jobs = [
        job(1, 0, 2, 2, "a", estimate_s=4),
        job(2, 0, 2, 3, "b"),
        job(3, 1, 1, 5, "a"),
        job(4, 1, 1, 4, "b"),
        job(5, 1, 1, 3, "b"),
    ]
    result = run(jobs, 3, "conservative", partitions=[Partition(name="a", nodes="0-1"), Partition(name="b", nodes="1-2")])
    assert drawn(result) == drawing("""
        1133333....
        11..222....
        .5552224444
    """)
    assert column(result) == {1: 0, 2: 4, 3: 2, 4: 7, 5: 1}
    assert column(result, "reserved_s") == {2: 4, 3: 4, 4: 7}


def test_a_job_that_names_two_partitions_has_nodes_of_one() -> None:
    # Job 3 would have a at 5 and has b at 3; so job 4 may have the other node of a.
    jobs = [job(1, 0, 1, 5, "a"), job(2, 1, 2, 2, "a,b"), job(3, 2, 2, 2, "a,b"), job(4, 2, 1, 4, "a,b")]
    result = run(jobs, 4, partitions=[Partition(name="a", nodes="0-1"), Partition(name="b", nodes="2-3")])
    assert drawn(result) == drawing("""
        11111.
        ..4444
        .2233.
        .2233.
    """)
    assert column(result) == {1: 0, 2: 1, 3: 3, 4: 2}
    assert column(result, "reserved_s") == {3: 3}


def test_the_wall_time_limit_of_a_partition_sends_a_job_to_the_other_one() -> None:
    # Jobs 1 and 2 are too long for short; job 2 is too wide for long as well, and is rejected, as is job 4, too long for short.
    jobs = [
        job(1, 0, 2, 5, "short,long"),
        job(2, 0, 3, 5, "short,long"),
        job(3, 0, 2, 2, "short,long"),
        job(4, 0, 1, 4, "short"),
        job(5, 1, 1, 2, "long"),
    ]
    parts = [Partition(name="short", nodes="0-3", max_wall_time_s=3), Partition(name="long", nodes="2-3")]
    result = run(jobs, 4, partitions=parts)
    assert drawn(result) == drawing("""
        33.....
        33.....
        1111155
        11111..
    """)
    assert column(result) == {1: 0, 3: 0, 5: 5}
    assert result.jobs["status"].eq("rejected").tolist() == [False, True, False, True, False]


def test_the_partition_of_higher_priority_comes_first() -> None:
    # At 3 job 3 passes job 2, which then waits for node 0; job 4 stays behind job 2.
    jobs = [job(1, 0, 3, 3, "batch"), job(2, 1, 3, 2, "batch"), job(3, 2, 1, 3, "urgent"), job(4, 2, 1, 1, "batch")]
    parts = [Partition(name="batch", nodes="0-2"), Partition(name="urgent", nodes="0-1", priority=1)]
    result = run(jobs, 3, "fcfs", partitions=parts)
    assert drawn(result) == drawing("""
        11133322.
        111...22.
        111...224
    """)
    assert column(result) == {1: 0, 2: 6, 3: 3, 4: 8}


def test_a_held_job_does_not_block() -> None:
    # Each user may run one job: job 2 is held until 4 and job 4 until 6.  First come, first served, job 3 starts at once.
    jobs = [job(1, 0, 2, 4, user=1), job(2, 1, 2, 3, user=1), job(3, 2, 1, 4, user=2), job(4, 3, 1, 2, user=2)]
    result = run(jobs, 3, "fcfs", Site(limits=Limits(user="*", running_jobs=1)))
    assert drawn(result) == drawing("""
        1111222.
        1111222.
        ..333344
    """)
    assert column(result) == {1: 0, 2: 4, 3: 2, 4: 6}
    assert column(result, "held_s") == {2: 3, 4: 3}


def test_limits_of_an_account_and_of_each_user_together() -> None:
    # Account bio may have 2 nodes, each user one job.  Job 2 waits for job 1 of its user, job 3 for two nodes of its account:
    # job 4 passes it; when job 1 ends, job 2 comes first, and leaves one.
    bio = {"account": "bio"}
    jobs = [
        job(1, 0, 1, 4, user=1, **bio),
        job(2, 0, 1, 2, user=1, **bio),
        job(3, 0, 2, 2, user=2, **bio),
        job(4, 1, 1, 2, user=2, **bio),
        job(5, 0, 2, 3, user=3),
    ]
    result = run(jobs, 4, site=Site(limits=[Limits(account="bio", nodes=2), Limits(user="*", running_jobs=1)]))
    assert drawn(result) == drawing("""
        11112233
        555...33
        555.....
        .44.....
    """)
    assert column(result) == {1: 0, 2: 4, 3: 6, 4: 1, 5: 0}
    assert column(result, "held_s") == {2: 4, 3: 6}


def test_two_tasks_of_an_array_at_a_time() -> None:
    jobs = [job(1, 0, 1, 2), job(2, 0, 1, 3), job(3, 0, 1, 2), job(4, 0, 1, 1), job(5, 1, 1, 2)]
    arrays: dict[str, object] = {"array": [100] * 4 + [-1], "array_limit": [2] * 4 + [-1]}
    result = run(jobs, 3, site=Site(array_limits=True), arrays=arrays)
    assert drawn(result) == drawing("""
        1133
        2224
        .55.
    """)
    assert column(result) == {1: 0, 2: 0, 3: 2, 4: 3, 5: 1}


def test_jobs_beyond_those_that_a_user_may_submit_come_later() -> None:
    # Job 3 is the third of user 1 until job 1 ends at 3: it joins the queue behind job 4.
    jobs = [job(1, 0, 1, 3, user=1), job(2, 0, 1, 2, user=1), job(3, 1, 1, 1, user=1), job(4, 2, 1, 2, user=2)]
    result = run(jobs, 1, "fcfs", Site(limits=Limits(user="*", submitted_jobs=2)))
    assert drawn(result) == "11122443"
    assert column(result) == {1: 0, 2: 3, 3: 7, 4: 5}
    assert column(result, "held_s") == {3: 2}


def test_a_chain_behind_a_job_that_is_killed() -> None:
    # Job 1 is killed at its estimate: job 2 and, behind it, job 3 never start, job 4 does, and job 6 when that has completed.
    # Job 5 starts with job 1.
    jobs = [
        job(1, 0, 1, 5, estimate_s=3),
        job(2, 0, 1, 1, after_ok=1),
        job(3, 0, 1, 1, after_ok=2),
        job(4, 0, 1, 2, after_not_ok=1),
        job(5, 0, 1, 2, after=1),
        job(6, 1, 1, 1, after_ok=4),
    ]
    result = run(jobs, 2)
    assert drawn(result) == drawing("""
        111446
        55....
    """)
    assert column(result) == {1: 0, 4: 3, 5: 0, 6: 5}
    assert column(result, "held_s") == {4: 3, 6: 4}
    assert result.jobs["status"].tolist() == ["killed", "rejected", "rejected", "completed", "completed", "completed"]


def test_a_chain_behind_a_job_whose_node_fails() -> None:
    # Node 0 is down from 2 to 5.  Job 1 begins again on node 1: job 2 waits for its end, job 3 began with its first start.
    jobs = [job(1, 0, 1, 4), job(2, 0, 1, 2, after_ok=1), job(3, 0, 1, 1, after=1)]
    failures = Listed((Failure(2 * TICKS_PER_SECOND, 0, 3 * TICKS_PER_SECOND),))
    result = run(jobs, 2, failures=failures)
    assert drawn(result) == drawing("""
        11....22
        3.1111..
    """)
    assert column(result) == {1: 2, 2: 6, 3: 0}
    assert column(result, "held_s") == {2: 6}


def test_nodes_drain_before_a_reservation() -> None:
    # All nodes are reserved from 5 to 7.  Both are idle at 3 for job 2, which would end at 7: it waits for 7, and job 4,
    # which would end at 6, for the end of job 2.  Jobs 3 and 5 end by 5.
    jobs = [job(1, 0, 1, 3), job(2, 1, 2, 4), job(3, 2, 1, 3), job(4, 3, 1, 3), job(5, 3, 1, 2)]
    result = run(jobs, 2, reservations=[Reservation(start_s=5, end_s=7)])
    assert drawn(result) == drawing("""
        11155..2222444
        ..333..2222...
    """)
    assert column(result) == {1: 0, 2: 7, 3: 2, 4: 11, 5: 3}
    assert result.ledger.frame["total_node_s"]["reserved"] == 4


def test_a_reservation_that_recurs_for_an_account() -> None:
    # Node 0 is reserved for bio from 2 to 4, 8 to 10, and so on.  Job 1 of geo goes to node 1, job 2 of bio stays on node 0;
    # job 3 just fits between; job 4 waits on node 1, and job 5, longer than 4 s on both nodes, never fits.
    geo, bio = {"account": "geo"}, {"account": "bio"}
    jobs = [
        job(1, 0, 1, 4, **geo),
        job(2, 1, 1, 3, **bio),
        job(3, 1, 2, 4, **geo),
        job(4, 2, 1, 2, **geo),
        job(5, 3, 2, 5, **geo),
    ]
    weekly = Reservation(nodes="0", start_s=2, end_s=4, every_s=6, accounts="bio")
    result = run(jobs, 2, reservations=[weekly])
    assert drawn(result) == drawing("""
        .2223333..
        1111333344
    """)
    assert column(result) == {1: 0, 2: 1, 3: 4, 4: 8}
    assert result.jobs["status"].tolist() == ["completed"] * 4 + ["rejected"]


def test_a_job_that_is_preempted_before_a_reservation_resumes_after_it() -> None:
    # Shortest remaining time first, all nodes reserved from 6 to 8.  At 1 job 2 preempts job 1, which needs 4 s more: at 3 it
    # would end at 7, and waits.  Job 3 fits at 2, until 5.
    jobs = [job(1, 0, 2, 5), job(2, 1, 1, 2), job(3, 2, 1, 3)]
    result = run(jobs, 2, "srtf", reservations=[Reservation(start_s=6, end_s=8)])
    assert drawn(result) == drawing("""
        122.....1111
        1.333...1111
    """)
    assert result.ledger.frame["total_node_s"]["reserved"] == 4


@pytest.mark.parametrize(
    ("submit_s", "picture"), [(2, "111122..111\n1111....111"), (4, "1111122\n11111..")], ids=["in time", "too late"]
)
def test_no_job_is_preempted_that_would_be_saved_in_a_reservation(submit_s: float, picture: str) -> None:
    # All nodes are bio's from 5 to 8; job 2 of bio comes first, and a checkpoint takes 2 s.  At 2 job 1 is preempted: it is
    # written until 4, and needs 3 s more, for which it waits until 8.  At 4 that would be too late, and it runs to its end.
    jobs = [job(1, 0, 2, 5), job(2, submit_s, 1, 2, account="bio", priority=1)]
    window = Reservation(start_s=5, end_s=8, accounts="bio")
    result = run(jobs, 2, "fifo-preempt", reservations=[window], checkpointing=Checkpointing(checkpoint_s=2))
    assert drawn(result) == picture


@pytest.mark.parametrize(("policy", "fourth", "end_s"), [("gs", 8, 9), ("bgs", 3, 5)])
@pytest.mark.parametrize("fidelity", ["fast", "node"])
def test_gangs_in_two_rows_leave_their_nodes_before_a_reservation(
    policy: str, fourth: float, end_s: float, fidelity: Fidelity
) -> None:
    # All nodes are reserved from 6 to 8, and slices last 1 s.  Of 2 s, jobs 1 and 2 may take 4 in two rows, and end at 3 and at
    # 4.  Job 3 may take 6 s, and waits at 1 already for 8; job 4, which may take 2, waits behind it, or is
    # backfilled at 3, in the slice after that of job 2.
    jobs = [job(1, 0, 2, 2), job(2, 0, 2, 2), job(3, 1, 1, 3), job(4, 2, 1, 1)]
    slicing = TimeSlicing(quantum_s=1, mpl=2)
    machine = Machine(nodes=2, time_slicing=slicing, reservations=[Reservation(start_s=6, end_s=8)])
    result = Scenario(workload=Workload.from_jobs(jobs), machine=machine, policy=policy, fidelity=fidelity).run()
    assert column(result) == {1: 0, 2: 0, 3: 8, 4: fourth}
    assert column(result, "end_s") == {1: 3, 2: 4, 3: 11, 4: end_s}
    assert result.ledger.frame["total_node_s"]["reserved"] == 4


@pytest.mark.parametrize(("half_life_s", "picture"), [(2, "1111223344"), (1000, "1111224433")])
def test_fair_share_with_half_lives(half_life_s: float, picture: str) -> None:
    # User 1 has the node from 0 to 4, user 2 from 4 to 6.  In units of half-life / ln 2, with a half-life of 2 s, that at 6
    # of user 1 is (1 - 1/4) / 2 = 3/8, that of user 2 is 1 - 1/2: user 1 comes first.  Where nothing is forgotten it is 4 to 2.
    jobs = [job(1, 0, 1, 4, user=1), job(2, 1, 1, 2, user=2), job(3, 2, 1, 2, user=1), job(4, 3, 1, 2, user=2)]
    result = run(jobs, 1, "fcfs", Site(order=FairShare(half_life_s=half_life_s)))
    assert drawn(result) == picture
