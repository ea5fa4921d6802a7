"""Notes under a table where the input looks wrong, and none where it does not."""

from collections import namedtuple

import pytest

import clustermodel as cm
from clustermodel.figures.study_tables import notes_of_runs
from clustermodel.machine.failure import FailureSource
from clustermodel.measure.input_notes import COUNTED, count_notes, run_notes
from clustermodel.policies.easy import Easy
from clustermodel.policies.interface import Policy
from clustermodel.workload.speedup import LINEAR, Speedup


def runs(*jobs: tuple[float, float, float, int], policies: tuple[str, ...] = ("fcfs",), nodes: int = 8) -> list[cm.Result]:
    """Run jobs, each with its submission, run time and estimate in seconds, and nodes."""
    made = [
        cm.Job(id=number, submit_s=submit, run_s=run, estimate_s=estimate, nodes=size)
        for number, (submit, run, estimate, size) in enumerate(jobs, 1)
    ]
    workload = cm.Workload.from_jobs(made, name="w")
    return [cm.Scenario(machine=cm.Machine(nodes=nodes), workload=workload, policy=policy).run() for policy in policies]


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
    at_once = [(0.0, 100.0, 120.0, 1)] * 3
    (note,) = run_notes(runs(*at_once, policies=("fcfs", "easy")))
    assert str(note) == "all 2 policies give the same results, because no job waits; compare policies on more jobs"
    whole = [(400.0 * at, 100.0 if at else 420.0, 420.0, 8) for at in range(6)]
    (note,) = run_notes(runs(*whole, policies=("fcfs", "easy")))
    assert str(note) == "all 2 policies give the same results; compare policies whose rules differ on these jobs, or other jobs"
    backfilled = [(0.0, 100.0, 100.0, 6), (1.0, 100.0, 100.0, 8), (2.0, 50.0, 50.0, 2), (1000.0, 1.0, 1.0, 1)]
    assert run_notes(runs(*backfilled, policies=("fcfs", "easy"))) == []


Counts = namedtuple("Counts", COUNTED)


def test_policies_are_named_as_long_as_they_are_few() -> None:
    for policies, killed, named in (
        ("a", "a", "a"), ("ab", "ab", "each policy"), ("abcd", "abcd", "each of 4 policies"),
        ("abcdefgh", "abcd", "a, b, c and 1 more"),
    ):  # fmt: skip
        (note,) = count_notes([Counts(policy, 8, 100, 50 if policy in killed else 0, 0, 0.5) for policy in policies])
        assert f"under {named};" in str(note)
    assert count_notes([Counts("a", 8, 0, 0, 0, float("nan"))]) == []
    assert count_notes([]) == []


def test_context_switches_that_start_over() -> None:
    # One row, switches of 20 s: job 1's starts over at 15 s and at 30 s, job 2's at 30 s: 3 of 7 are cut short.
    def notes(**slicing: str) -> list[str]:
        jobs = [cm.Job(id=number, nodes=1, submit_s=15 * (number - 1), run_s=100) for number in (1, 2, 3)]
        jobs.append(cm.Job(id=4, nodes=1, submit_s=1_000, run_s=1))  # the load is low
        sliced = cm.TimeSlicing(mpl=1, **slicing)  # type: ignore[arg-type]
        machine = cm.Machine(nodes=4, time_slicing=sliced, context_switch=cm.ContextSwitch(seconds=20))
        run = cm.Scenario(machine=machine, workload=cm.Workload.from_jobs(jobs, name="w"), policy="gs").run()
        return [note.with_option() for note in run_notes([run])]

    assert notes() == [
        "43 % of the context switches under gs start over, as jobs arrive or end meanwhile; let events keep the running slice, "
        "if the machine's do (--at-events keep)"
    ]
    assert notes(at_events="keep") == []


def noted(machine: cm.Machine, *policies: str | Policy, speedup: Speedup = LINEAR, stream: bool = False) -> list[str]:
    """Return the notes on short jobs on a machine of 4 nodes, of which one waits."""
    jobs = [
        cm.Job(id=number, nodes=size, submit_s=submit, run_s=100, estimate_s=100, memory_gib=1)
        for number, size, submit in ((1, 3, 0), (2, 2, 10), (3, 1, 20), (4, 1, 10_000))
    ]
    workload = cm.Workload.from_jobs(jobs, name="w")
    made = [
        cm.Scenario(machine=machine, workload=workload, policy=policy, speedup=speedup, stream=stream).run()
        for policy in policies
    ]
    return [note.with_option() for note in run_notes(made)]


@pytest.mark.parametrize(
    ("fields", "policy", "given", "option", "used_by"),
    [
        ({"time_slicing": cm.TimeSlicing(quantum_s=50)}, "easy", "a quantum of 50 s", "--quantum", "bgs"),
        ({"time_slicing": cm.TimeSlicing(mpl=3)}, "ss", "a multiprogramming level of 3", "--mpl", "gs"),
        ({"time_slicing": cm.TimeSlicing(at_events="keep")}, "fcfs", "at_events=keep", "--at-events", "mbgs"),
        ({"context_switch": cm.ContextSwitch(charge="every-slice")}, "bgs", "charge=every-slice", "--charge", ""),
        ({"context_switch": cm.ContextSwitch(fraction=0.1)}, "srtf:mode=kill", "a context switch of 20 s",
         "--context-switch", "ss"),
        ({"checkpointing": cm.Checkpointing(checkpoint_s=20)}, "bgs", "checkpoints of 20 s", "--checkpoint", "mbgs"),
        ({"checkpointing": cm.Checkpointing(restart_s=20)}, "easy", "restarts of 20 s", "--restart", "bgs:urgent=checkpoint"),
        ({"checkpointing": cm.Checkpointing(restart_s=20, interval_s=30)}, "easy", "restarts of 20 s", "--restart", "mbgs"),
        ({"checkpointing": cm.Checkpointing(checkpoint_s=20, max_tasks_per_slice=0)}, "mbgs", "checkpoints of 20 s",
         "--checkpoint", ""),
        ({"checkpointing": cm.Checkpointing(max_tasks_per_slice=2)}, "pv-easy", "the limit Q = 2 of migrating tasks",
         "--max-migrating-tasks", "pv-easy:mode=checkpoint"),
        ({"checkpointing": cm.Checkpointing(counts="moved")}, "mbgs", "counts=moved", "--count-migrating", ""),
        ({"checkpointing": cm.Checkpointing(store=cm.CheckpointStore(node_bandwidth_gib_s=1))}, "conservative",
         "a checkpoint store with a bandwidth", "--store-bandwidth", "mgs"),
        ({"checkpointing": cm.Checkpointing(interval_s=30)}, "easy", "periodic checkpoints without a cost (interval_s=30)",
         "--checkpoint-interval", ""),
        ({"suspended_per_node": 2}, "bgs", "a limit of 2 suspended tasks per node", "--suspended-per-node", "ss"),
        ({"round_s": 60}, "ss", "rounds of 60 s", "--round", "las"),
        ({"allocation": "consolidate"}, "easy", "allocation=consolidate", "--allocation", ""),
    ],
)  # fmt: skip
def test_costs_that_no_policy_uses(fields: dict[str, object], policy: str, given: str, option: str, used_by: str) -> None:
    machine = cm.Machine(nodes=4, **fields)  # type: ignore[arg-type]
    notes = [note for note in noted(machine, policy) if given in note]
    assert len(notes) == 1, noted(machine, policy)
    assert notes[0].startswith(f"{given}")
    assert f": no effect under {policy}; leave it out, or " in notes[0]
    assert option in notes[0].rpartition(" (")[2]
    if used_by:
        assert not any(given in note for note in noted(machine, policy, used_by))
        assert not any(given in note for note in noted(machine, used_by))


@pytest.mark.parametrize(
    ("own", "expected"), [((4, 46), "restarts of 600 s: no effect; all jobs have their own, of 4 to 46 s"), ((4, None), None)]
)
def test_costs_that_jobs_replace_by_their_own(own: tuple[float, float | None], expected: str | None) -> None:
    jobs = [cm.Job(id=1 + at, submit_s=at, nodes=1, run_s=50 - 40 * at, restart_s=own[at]) for at in (0, 1)]
    machine = cm.Machine(nodes=1, checkpointing=cm.Checkpointing(checkpoint_s=1, restart_s=600))
    notes = run_notes([cm.Scenario(machine=machine, workload=cm.Workload.from_jobs(jobs), policy="srtf").run()])
    assert [note.fact for note in notes if "restarts of" in note.fact] == ([expected] if expected else [])


def test_costs_of_one_kind_share_a_note() -> None:
    machine = cm.Machine(nodes=4, time_slicing=cm.TimeSlicing(quantum_s=50, mpl=2, at_events="keep"))
    expected = (
        "a quantum of 50 s, a multiprogramming level of 2 and at_events=keep: no effect under each policy; leave it out, or "
        "compare policies that share nodes in time, such as bgs (--quantum, --mpl, --at-events)"
    )
    assert noted(machine, "easy", "fcfs")[0] == expected
    assert noted(machine, "easy", "fcfs", stream=True) == [expected]


def test_costs_that_have_an_effect_are_not_noted() -> None:
    assert noted(cm.Machine(nodes=4), "easy") == []
    costs = cm.Checkpointing(interval_s=30, checkpoint_s=1, restart_s=2)
    assert noted(cm.Machine(nodes=4, checkpointing=cm.Checkpointing(interval_s=30, checkpoint_s=1)), "easy") == []
    assert noted(cm.Machine(nodes=4, checkpointing=costs, failures=outage(40)), "easy") == []
    assert noted(cm.Machine(nodes=4, context_switch=cm.ContextSwitch(seconds=1)), "bgs", "easy") == []


def test_a_policy_that_does_not_say_may_use_all_costs() -> None:
    class Mine(Easy):
        """Looks at the quantum, perhaps."""

    assert noted(cm.Machine(nodes=4, time_slicing=cm.TimeSlicing(quantum_s=50)), Mine()) == []


def test_a_speedup_model_that_no_policy_uses() -> None:
    speedup = cm.DowneySpeedup(sigma=0.5)
    assert noted(cm.Machine(nodes=4), "easy", speedup=speedup) == [
        "a speedup model: no effect under easy; leave it out, or compare policies that choose sizes, such as R/L:width=half "
        "(--speedup)"
    ]
    assert noted(cm.Machine(nodes=4), "R/L:width=half", speedup=speedup) == []


def outage(*downs: float, up: float = 10) -> FailureSource:
    """Return outages of all 4 nodes, of ``up`` seconds each."""
    node = [node for _ in downs for node in range(4)]
    down_s = [down for down in downs for _ in range(4)]
    return cm.Outages(node=node, down_s=down_s, up_s=[down + up for down in down_s], nodes=4)  # type: ignore[arg-type]


def test_work_that_is_discarded_at_recorded_outages() -> None:
    # Job 1 would take 150 s.  It executes for 90 s, 90 s, 100 s and 150 s, and job 2 for 250 s: 2 x 280 of 1,110 are lost.
    jobs = [cm.Job(id=1, nodes=2, submit_s=10, run_s=150), cm.Job(id=2, nodes=1, submit_s=5_000, run_s=250)]
    workload = cm.Workload.from_jobs(jobs, name="w")
    for costs, advice in (
        (cm.Checkpointing(), "give periodic checkpoints"),
        (cm.Checkpointing(interval_s=140), "checkpoint more often"),
    ):
        machine = cm.Machine(nodes=4, failures=outage(100, 200, 310), checkpointing=costs)
        (note,) = run_notes([cm.Scenario(machine=machine, workload=workload, policy="easy").run()])
        assert note.with_option() == (
            "50 % of the executed work is discarded under easy, because nodes fail before jobs complete: job 1 (150 s) is "
            f"stopped 3 times; {advice}, or leave jobs longer than the times between failures out (--checkpoint-interval)"
        )


def test_studies_have_the_notes_on_unused_costs_and_discarded_work() -> None:
    machine = cm.Machine(nodes=4, failures=outage(100, 200, 310), round_s=1, checkpointing=cm.Checkpointing(checkpoint_s=20))
    jobs = cm.Workload.from_jobs([cm.Job(id=1, nodes=2, submit_s=10, run_s=150)], name="w")

    def scenario(policy: str, seed: int) -> cm.Scenario:
        return cm.Scenario(machine=machine, workload=jobs, policy=policy, seed=seed)

    def notes(*policies: str) -> list[str]:
        study = cm.Study(name="s", factors={"policy": list(policies)}, scenario=scenario, replications=1)
        table = study.run(workers=1)
        assert all(f"note: {note}" in str(table) for note in notes_of_runs(table))
        return [note.fact for note in notes_of_runs(table)]

    lost = "65 % of the executed work is discarded under {}, on machines whose nodes fail"
    unused = ["checkpoints of 20 s: no effect under each policy", "rounds of 1 s: no effect under each policy"]
    assert notes("fcfs", "easy") == [*unused, lost.format("each policy")]
    assert notes("mbgs", "srtf")[:-1] == []
