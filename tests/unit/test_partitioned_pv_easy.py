"""PV-EASY over pools and beside reservations: timelines worked by hand, a row per node and a column per second."""

from typing import Any

import numpy as np
import pytest

from clustermodel import Checkpointing, Job, Machine, Reservation, Scenario, Workload
from tests.property.strategies import cases
from tests.unit.test_partitions import parts, starts
from tests.unit.test_pools import random_jobs
from tests.unit.test_site_timelines import drawing, drawn, job, run


def tries(*arguments: Any, **fields: Any) -> tuple[list[float], list[int]]:
    """Return the last starts of jobs, and how often each started."""
    result = run(*arguments, **fields)
    return starts(result), list(result.jobs["tries"])


def test_jobs_elsewhere_are_not_preempted_for_a_job_that_they_could_not_help() -> None:
    # Nodes 2 and 3 are in both.  Job 2 waits for a second node of a, and job 3 behind it has three nodes, but only one of a.
    # At 10 job 4, the first of b, lacks two nodes, of which job 6 has one; it goes for job 5, which needs just that one.
    jobs = [
        job(1, 0, 3, 6, "a"), job(2, 1, 2, 4, "a"), job(3, 2, 3, 10, "b"),
        job(4, 3, 2, 3, "b"), job(5, 7, 3, 2, "a"), job(6, 8, 1, 9),
    ]  # fmt: skip
    result = run(jobs, 6, "pv-easy", partitions=parts(a="0-3", b="2-5"))
    assert drawn(result) == drawing("""
        111111222255666666666
        111111222255.........
        111111..6655.........
        ..3333333333.........
        ..3333333333444......
        ..3333333333444......
    """)
    assert list(result.jobs["tries"]) == [1, 1, 1, 1, 1, 2]


def test_nodes_are_kept_for_a_blocked_job_while_others_are_saved() -> None:
    # Job 3 comes first by its priority.  Job 1 leaves nodes 2 and 3 at 4, until when nodes 0 and 1 are kept, and job 4 waits
    # for node 3.
    jobs = [job(1, 0, 2, 9, "b"), job(3, 1, 3, 4, "a", priority=1), job(4, 2, 1, 4)]
    machine: dict[str, Any] = {
        "partitions": parts(a="0-2", b="2-3"),
        "checkpointing": Checkpointing(checkpoint_s=3, restart_s=0),
    }
    assert drawn(run(jobs, 4, "pv-easy:mode=checkpoint", **machine)) == drawing("""
        ....3333........
        ....3333........
        1111333311111111
        1111444411111111
    """)


@pytest.mark.parametrize(
    ("vb", "run_s", "expected"),
    [
        (False, 20, ([0, 35, 10, 15], [1, 2, 1, 1])),
        (True, 20, ([0, 35, 10, 15], [1, 3, 1, 2])),
        (False, 8, ([0, 10, 10, 2], [1, 2, 1, 1])),
        (True, 8, ([0, 10, 10, 2], [1, 2, 1, 1])),
    ],
)
def test_without_ventures_no_job_preempts_others_to_delay_a_reservation_in_turn(vb: bool, run_s: float, expected: Any) -> None:
    # Job 3 holds a reservation for nodes 0-3 at 10.  Job 4 would fit if job 2 left, but after 10 it would be in the way.
    jobs = [
        job(1, 0, 2, 10, "a", priority=2), job(2, 0, 2, 30, "b"),
        job(3, 1, 4, 5, "a", priority=2), job(4, 2, 4, run_s, "b", priority=1),
    ]  # fmt: skip
    assert tries(jobs, 6, f"pv-easy:vb={str(vb).lower()}", partitions=parts(a="0-3", b="2-5")) == expected


@pytest.mark.parametrize("policy", ["pv-easy", "pv-easy:mode=suspend,predictor=estimate"])
def test_those_ahead_hold_so_many_nodes_that_the_first_job_of_a_set_does_not_fit(policy: str) -> None:
    sets = {"a": set(range(6)), "b": set(range(3, 9)), "c": set(range(6, 12)), "": set(range(12))}
    machine = Machine(nodes=12, partitions=parts(a="0-5", b="3-8", c="6-11"))
    for seed in range(cases(12, fewest=4)):
        workload = random_jobs(seed)
        jobs = workload.frame.assign(priority=np.random.default_rng(seed).integers(0, 3, len(workload)) * (seed % 2))
        jobs["partition"] = jobs["partition"].astype(object).fillna("") if "partition" in jobs else ""
        result = Scenario(workload=Workload.from_frame(jobs), machine=machine, policy=policy).run()
        jobs = jobs.merge(result.jobs[["job", "end_s"]]).sort_values(["submit_s", "job"])
        jobs = jobs.sort_values("priority", ascending=False, kind="stable").reset_index(drop=True)  # in queue order
        place_of = dict(zip(jobs["job"], jobs.index, strict=True))
        runs = result.placements
        for now in {*jobs["submit_s"], *runs["begin_s"], *runs["end_s"]}:
            running = runs[(runs["begin_s"] <= now) & (now < runs["end_s"])]
            waits = (jobs["submit_s"] <= now) & (now < jobs["end_s"]) & ~jobs["job"].isin(running["job"])
            for first in jobs[waits].drop_duplicates("partition").itertuples():
                ahead = running[running["job"].map(place_of) < first.Index]
                held = {node for run in ahead.itertuples() for node in range(run.first_node, run.first_node + run.nodes)}
                for name in first.partition.split(","):
                    assert len(sets[name] - held) < first.nodes, (seed, now, first.job)


def test_beside_a_reservation() -> None:
    # Nodes 0 and 1 are reserved from 10 to 14.  Job 3 ends in time.  At 8 job 2 fits no more before, and preempts nobody;
    # job 4 runs on node 2 until job 2 preempts it at 14, as it was told.
    jobs = [job(1, 0, 2, 8), job(2, 1, 4, 5), job(3, 2, 2, 8), job(4, 3, 1, 8), job(5, 9, 2, 3)]
    result = run(jobs, 4, "pv-easy", reservations=[Reservation(nodes="0-1", start_s=10, end_s=14)])
    assert drawn(result) == drawing("""
        ..33333333....22222555.....
        ..33333333....22222........
        111111114444442222244444444
        11111111......22222555.....
    """)
    assert result.jobs["reserved_s"].dropna().to_list() == [14, 19]


def test_without_preemption_and_ventures_it_is_easy_beside_reservations_too() -> None:
    for seed in range(cases(24, fewest=8)):
        begin, every = 10 * (seed % 6), (None, 400)[seed % 2]
        windows = [
            Reservation(nodes="0-3", start_s=begin, end_s=begin + 25, every_s=every),
            Reservation(nodes="2-7", start_s=begin + 40, end_s=begin + 60),
        ]
        machine = Machine(nodes=8, reservations=windows[seed % 3 :])
        workload = random_jobs(seed, None)
        easy, ours = (
            Scenario(workload=workload, machine=machine, policy=policy).run().jobs[["start_s", "reserved_s"]]
            for policy in ("easy", "pv-easy:slp=false,vb=false,predictor=estimate")
        )
        assert ours.equals(easy), seed


@pytest.mark.parametrize(
    ("mode", "saving_s", "expected"),
    [("kill", 0, ([25, 8], [2, 1])), ("checkpoint", 2, ([25, 10], [2, 1])), ("checkpoint", 5, ([0, 25], [1, 1]))],
)
def test_nobody_is_preempted_if_saving_takes_so_long_that_the_reservation_is_too_near(
    mode: str, saving_s: float, expected: Any
) -> None:
    jobs = [job(1, 0, 1, 12), job(2, 8, 2, 10, priority=1)]
    machine: dict[str, Any] = {
        "reservations": [Reservation(start_s=20, end_s=25)],
        "checkpointing": Checkpointing(checkpoint_s=saving_s),
    }
    assert tries(jobs, 2, f"pv-easy:mode={mode}", **machine) == expected


def test_a_job_that_could_not_be_saved_before_a_reservation_is_killed() -> None:
    window = Reservation(nodes="0-1", start_s=12, end_s=20, accounts="bio")
    jobs = [job(1, 0, 2, 11), Job(id=2, submit_s=8, nodes=2, run_s=6, account="bio", priority=1)]
    machine: dict[str, Any] = {"reservations": [window], "checkpointing": Checkpointing(checkpoint_s=5)}
    result = run(jobs, 2, "pv-easy:mode=checkpoint", **machine)
    assert starts(result) == [20, 8]
    assert result.run_attempts.sort_values("start_s")["outcome"].to_list() == ["preempted", "completed", "completed"]
