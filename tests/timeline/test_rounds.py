"""Hand-worked timelines of fair sharing in rounds: whose turn it is, who moves, and what starting gangs takes."""

from typing import Any

import pytest

from clustermodel import (
    Checkpointing,
    Job,
    Machine,
    Partition,
    Reservation,
    Result,
    Scenario,
    SpecificationError,
    Workload,
    make_policy,
)
from clustermodel.policies.rounds import least_stretch, max_min_shares, packed
from clustermodel.policies.view import QueuedJob
from tests.timeline.timeline import play, spans, stopped

TWO = "1 0 1 20\n2 0 1 20"
FOR_FAIRNESS = ("max-min:round_s=10", "finish-time-fair:round_s=10")


def of_size(number: int, nodes: int) -> QueuedJob:
    return QueuedJob(number, nodes, 0, 100, 1, 1, 0)


@pytest.mark.parametrize("policy", FOR_FAIRNESS)
def test_jobs_take_turns_round_by_round(policy: str) -> None:
    result = play(1, TWO, policy)
    assert stopped(result) == [(1, 0, 10, "checkpointed", 0), (2, 10, 20, "checkpointed", 0)]
    assert spans(result) == {1: (20, 30), 2: (30, 40)}


def test_max_min_gives_each_job_the_same_node_seconds() -> None:
    # Half a round counts as had: 1 is at 5 x 2 node-seconds, 2 and 3 at 5; then 10, 15, 15; then 30, 15, 15.
    result = play(2, "1 0 2 20\n2 0 1 20\n3 0 1 20", "max-min:round_s=10")
    assert spans(result) == {1: (30, 40), 2: (20, 30), 3: (20, 30)}
    assert stopped(result)[-1] == (1, 10, 20, "checkpointed", 0)


def test_a_gang_that_keeps_its_nodes_pays_nothing_and_a_restart_is_paid_in_its_round() -> None:
    costs = Checkpointing(restart_s=2)
    assert spans(play(1, "1 0 1 40", "max-min:round_s=10", checkpointing=costs)) == {1: (0, 40)}
    # 1 executes 0-10 and, restored, 22-30: 2 s are left, from 42 on.
    assert spans(play(1, TWO, "max-min:round_s=10", checkpointing=costs)) == {1: (40, 44), 2: (50, 54)}


def test_rounds_are_longer_for_each_gang_that_starts() -> None:
    # Rounds begin at 0, 11 and 22.
    assert spans(play(1, TWO, "max-min:round_s=10,start_s=1")) == {1: (22, 31), 2: (33, 42)}


def test_a_round_that_is_decided_ahead_is_not_for_later_jobs() -> None:
    # The round of 10 s is decided at 5: 2 is in it, 3 is not.
    jobs = "1 0 1 30\n2 4 1 5\n3 6 1 5"
    assert spans(play(3, jobs, "max-min:round_s=10,ahead_s=5")) == {1: (0, 30), 2: (10, 15), 3: (20, 25)}
    assert spans(play(3, jobs, "max-min:round_s=10")) == {1: (0, 30), 2: (10, 15), 3: (10, 15)}


def test_nodes_of_a_chosen_job_that_has_ended_stay_idle_in_its_round() -> None:
    # At 25, 2 has had 5 + 5 s of half the time, 1 5 + 20 s of all: it is still the turn of 2, which ends at 28.
    result = play(1, "1 0 1 30\n2 1 1 8", "max-min:round_s=10,ahead_s=5")
    assert spans(result) == {1: (40, 50), 2: (20, 28)}


def test_on_an_empty_machine_a_round_begins_at_once_if_the_last_one_is_over() -> None:
    assert spans(play(1, "1 0 1 3\n2 12 1 3\n3 16 1 3", "max-min:round_s=10")) == {1: (0, 3), 2: (12, 15), 3: (22, 25)}


def test_shares() -> None:
    jobs = [of_size(1, 4), of_size(2, 1), of_size(3, 1)]
    assert max_min_shares(jobs, 3) == {1: 1 / 4, 2: 1, 3: 1}
    assert max_min_shares(jobs, 2) == {1: pytest.approx(1 / 6), 2: pytest.approx(2 / 3), 3: pytest.approx(2 / 3)}
    # Both have 50 s left of 100; the first has spent 50 s: 50 / (100 r - 50) + 50 / (100 r) = 1.
    stretch = least_stretch(lambda r: {1: min(1.0, 50 / max(50, 100 * r - 50)), 2: min(1.0, 50 / (100 * r))}, {1: 1, 2: 1}, 1)
    assert 50 / (100 * stretch) == pytest.approx((3 - 5**0.5) / 2)


def test_larger_gangs_take_nodes_first_and_others_move() -> None:
    two, four, one, other = of_size(1, 2), of_size(2, 4), of_size(3, 1), of_size(4, 1)
    places = packed({two: [4, 5], one: [0], other: [6]}, [four], [1, 2, 3, 7], 4)
    assert places == {four: [0, 1, 2, 3], two: [4, 5], other: [6], one: [7]}


def test_gangs_move_to_let_a_larger_one_onto_one_node() -> None:
    jobs = "1 0 1 5\n2 0 1 100\n3 0 1 5\n4 0 1 100\n5 1 2 100"
    result = play(4, jobs, "max-min:round_s=10", gpus_per_node=2, allocation="consolidate")
    own = result.placements.groupby("job")[["first_node", "begin_s"]].agg(list)
    assert own.loc[2].to_list() == [[1, 2], [0, 10]]
    assert own.loc[5].to_list() == [[0], [10]]


@pytest.mark.parametrize(
    ("policy", "machine", "message"),
    [
        ("max-min:round_s=0", {}, "max-min: round_s: 0 is not allowed; it must be longer than ahead_s, 0"),
        ("max-min:ahead_s=9", {"round_s": 5}, "max-min: round_s: 5 is not allowed; it must be longer than ahead_s, 9"),
    ],
)  # fmt: skip
def test_refused_machines(policy: str, machine: dict[str, object], message: str) -> None:
    with pytest.raises(SpecificationError, match=f"^{message}$"):
        play(2, TWO, policy, **machine)


# Where jobs differ in the nodes that they may have.


def of_partitions(policy: str, parts: dict[str, str], jobs: list[Job], **machine: Any) -> Result:
    partitions = [Partition(name=name, nodes=nodes) for name, nodes in parts.items()]
    machine = {"nodes": 2, "round_s": 10, "partitions": partitions} | machine
    return Scenario(machine=Machine(**machine), workload=Workload.from_jobs(jobs), policy=policy).run()


TURNS = {1: (20, 30), 2: (30, 40), 3: (0, 20)}
TURNS_AHEAD = {1: (30, 40), 2: (10, 30), 3: (0, 20)}  # at 15, 2 has had 5 s, and 1 has had 10


@pytest.mark.parametrize(
    ("policy", "turns"), [("max-min", TURNS), ("finish-time-fair", TURNS), ("max-min:ahead_s=5", TURNS_AHEAD)]
)
def test_jobs_take_turns_on_the_nodes_of_their_partition(policy: str, turns: dict[int, tuple[float, float]]) -> None:
    jobs = [Job(id=n, nodes=1, submit_s=0, run_s=20, partition="b" if n == 3 else "a") for n in (1, 2, 3)]
    result = of_partitions(policy, {"a": "0", "b": "1"}, jobs)
    assert spans(result) == turns


def test_shares_count_the_nodes_that_a_job_may_have() -> None:
    # 1 and 2 have half of node 0 each, 3 has node 1.  At 20 it has had 25 s of its share of all the time, 1 and 2 15 s of half
    # of it; so it runs on.
    jobs = [Job(id=n, nodes=1, submit_s=0, run_s=30, partition="both" if n == 3 else "a") for n in (1, 2, 3)]
    result = of_partitions("max-min", {"a": "0", "both": "0-1"}, jobs)
    assert spans(result) == {1: (40, 50), 2: (50, 60), 3: (0, 30)}


def test_a_round_begins_when_a_reservation_ends_on_an_empty_machine() -> None:
    # The node is reserved from 25 to 33: at 10 it is the turn of 2, which would run until 30.
    jobs = [Job(id=n, nodes=1, submit_s=0, run_s=20) for n in (1, 2)]
    machine = {"nodes": 1, "reservations": [Reservation(start_s=25, end_s=33)]}
    assert spans(of_partitions("max-min", {}, jobs, **machine)) == {1: (0, 20), 2: (33, 53)}


def test_a_job_that_does_not_fit_in_its_shape_waits_for_its_turn() -> None:
    # 1 and 2 have a processor of each node; 3, which needs both of one node, does not fit beside them.  At 10 it comes first.
    jobs = [Job(id=n, nodes=2, processors_per_node=1, submit_s=0, run_s=15) for n in (1, 2)]
    jobs.append(Job(id=3, nodes=2, processors_per_node=2, submit_s=0, run_s=10))
    result = of_partitions("max-min", {}, jobs, gpus_per_node=2)
    assert spans(result) == {1: (20, 25), 2: (20, 25), 3: (10, 20)}


def test_refused_parameters() -> None:
    with pytest.raises(SpecificationError, match=r"^max-min: start_s: -1 is not allowed"):
        make_policy("max-min:start_s=-1")
    with pytest.raises(SpecificationError, match=r"^max-min: mode: 'suspend' is not allowed; it must be 'checkpoint'"):
        make_policy("max-min:mode=suspend")
    with pytest.raises(SpecificationError, match=r"^max-min: min_run_s is not allowed with ahead_s"):
        make_policy("max-min:ahead_s=1,min_run_s=5")


def test_the_machine_says_how_long_a_round_is() -> None:
    assert spans(play(1, TWO, "max-min", round_s=10)) == spans(play(1, TWO, "max-min:round_s=10"))
    assert spans(play(1, "1 0 1 400\n2 0 1 400", "max-min")) == {1: (720, 760), 2: (1080, 1120)}
