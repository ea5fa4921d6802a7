"""Notes under a table where the input looks wrong, and none where it does not."""

from __future__ import annotations

import pytest

from clustermodel import ContextSwitch, Job, Machine, Result, Scenario, TimeSlicing, Workload
from clustermodel.measure.input_notes import Counts, count_notes, run_notes


def runs(*jobs: tuple[float, float, float, int], policies: tuple[str, ...] = ("fcfs",), nodes: int = 8) -> list[Result]:
    """Run jobs, each with its submission, run time and estimate in seconds, and nodes."""
    made = [
        Job(id=number, submit_s=submit, run_s=run, estimate_s=estimate, nodes=size)
        for number, (submit, run, estimate, size) in enumerate(jobs, 1)
    ]
    workload = Workload.from_jobs(made, name="w")
    return [Scenario(machine=Machine(nodes=nodes), workload=workload, policy=policy).run() for policy in policies]


def test_jobs_killed_at_their_limit() -> None:
    good = [(1000.0 * at, 100.0, 120.0, 1) for at in range(19)]
    (note,) = run_notes(runs(*good, (30_000, 100, 90, 1), (31_000, 100, 90, 1)))
    assert note.with_option() == (
        "2 of 21 jobs (10 %) are killed at their wall-time limit under fcfs; check the estimates, or let jobs run on "
        "(--no-kill-at-estimate)"
    )
    assert run_notes(runs(*good, (30_000, 100, 90, 1))) == []  # 5 % and no more


def test_rejected_jobs() -> None:
    (note,) = run_notes(runs((0, 100, 100, 9), (1000, 10, 10, 1), (2000, 10, 10, 1)))
    assert note.with_option() == (
        "1 job is rejected: larger than the machine of 8 nodes, or of none; give a larger machine, or leave such jobs out "
        "(--nodes, --size 1:8)"
    )


def test_more_work_than_the_machine_can_do() -> None:
    # 2 jobs x 8 nodes x 90 s in 100 s on 8 nodes: 1.8
    (note,) = run_notes(runs((0, 90, 90, 8), (100, 90, 90, 8)))
    assert note.with_option() == (
        "the offered load is 1.8: more work arrives than 8 nodes can do, and waits grow as long as jobs arrive; "
        "give more nodes, or more time between arrivals (--nodes, --scale-interarrival 2)"
    )


def test_estimates_in_minutes() -> None:
    minutes = [(10_000.0 * at, 3_000.0, 60.0, 1) for at in range(1, 40)]
    first, second = run_notes(runs(*minutes, nodes=64))
    assert str(first) == (
        "most jobs run longer than their estimates, at the median 50 times as long: the estimates look like minutes, the run "
        "times like seconds; multiply the estimates by 60, or do without them"
    )
    assert second.fact.startswith("39 of 39 jobs (100 %) are killed")
    # longer than that by far, or by little: only killed
    for run_s in (30_000.0, 200.0):
        (note,) = run_notes(runs(*[(100_000.0 * at, run_s, 60.0, 1) for at in range(1, 40)], nodes=64))
        assert "killed" in note.fact


def test_policies_without_effect() -> None:
    apart = [(1000.0 * at, 100.0, 120.0, 1) for at in range(5)]
    (note,) = run_notes(runs(*apart, policies=("fcfs", "easy", "conservative")))
    assert note.with_option() == (
        "all 3 policies give the same results, because no job waits at an offered load of 0.016; raise the load for a "
        "comparison (--scale-interarrival 0.5 doubles it)"
    )
    whole = [(400.0 * at, 100.0 if at else 420.0, 420.0, 8) for at in range(6)]
    (note,) = run_notes(runs(*whole, policies=("fcfs", "easy")))
    assert str(note) == "all 2 policies give the same results; compare policies whose rules differ on these jobs, or other jobs"
    backfilled = [(0.0, 100.0, 100.0, 6), (1.0, 100.0, 100.0, 8), (2.0, 50.0, 50.0, 2), (1000.0, 1.0, 1.0, 1)]
    assert run_notes(runs(*backfilled, policies=("fcfs", "easy"))) == []


@pytest.mark.parametrize(
    ("policies", "named"),
    [
        (["a"], "under a;"),
        (["a", "b"], "under each policy;"),
        (list("abcd"), "under each of 4 policies;"),
    ],
)
def test_policies_are_named_as_long_as_they_are_few(policies: list[str], named: str) -> None:
    (note,) = count_notes([Counts(policy, 8, 100, 50, 0, 0.5) for policy in policies])
    assert named in str(note)


def test_some_of_many_policies_are_named() -> None:
    counts = [Counts(policy, 8, 100, 50 if policy < "e" else 0, 0, 0.5) for policy in "abcdefgh"]
    (note,) = count_notes(counts)
    assert "under a, b, c and 1 more;" in str(note)
    assert count_notes([Counts("a", 8, 0, 0, 0, float("nan"))]) == []
    assert count_notes([]) == []


def test_context_switches_that_start_over() -> None:
    # One row, switches of 20 s: job 1's starts over at 15 s and at 30 s, job 2's at 30 s: 3 of 7 are cut short.
    def notes(**slicing: str) -> list[str]:
        jobs = [Job(id=number, nodes=1, submit_s=15 * (number - 1), run_s=100) for number in (1, 2, 3)]
        jobs.append(Job(id=4, nodes=1, submit_s=1_000, run_s=1))  # the load is low
        machine = Machine(
            nodes=4,
            time_slicing=TimeSlicing(mpl=1, **slicing),  # type: ignore[arg-type]
            context_switch=ContextSwitch(seconds=20),
        )
        run = Scenario(machine=machine, workload=Workload.from_jobs(jobs, name="w"), policy="gs").run()
        return [note.with_option() for note in run_notes([run])]

    assert notes() == [
        "43 % of the context switches under gs start over, as jobs arrive or end meanwhile; let events keep the running slice, "
        "if the machine's do (--at-events keep)"
    ]
    assert notes(at_events="keep") == []
