"""The preemptive schedulers on random jobs: an independent reference, a known optimum, and known special cases."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel import Checkpointing, Machine, Partition, Scenario, Workload, check_policy, policy_names
from clustermodel import Job as JobOfUser
from clustermodel.experiment.result import Result
from tests.gang_runs import check_books
from tests.preemptive_twin import Job, completions, in_rounds
from tests.property.strategies import cases

NODES = 8
RULES = ("srtf", "srsf", "las")
LIMITS = (20, 60)
SHIPPED = [name for name in policy_names() if name != "backfilling"]  # which needs parameters; pages add names of their own


@st.composite
def job_lists(draw: st.DrawFn, most_nodes: int = NODES) -> list[Job]:
    """Draw jobs in order of submission, many of them at equal times."""
    kinds = st.tuples(st.integers(0, 6), st.integers(1, most_nodes), st.integers(1, 60), st.integers(0, 9))
    submit, jobs = 0, []
    for number, (gap, nodes, run, restart) in enumerate(draw(st.lists(kinds, min_size=1, max_size=20))):
        submit += max(gap - 2, 0)
        jobs.append(Job(number, nodes, submit, run, restart))
    return jobs


def run(jobs: list[Job], policy: str, machine: Machine, *, free: bool = False) -> Result:
    own = [
        JobOfUser(id=job.id, nodes=job.nodes, submit_s=job.submit, run_s=job.left, restart_s=0 if free else job.restart)
        for job in jobs
    ]
    result = Scenario(machine=machine, workload=Workload.from_jobs(own), policy=policy).run()
    check_books(result)
    return result


def ends(result: Result) -> dict[int, int]:
    return dict(zip(result.jobs["job"].tolist(), result.jobs["end_s"].tolist(), strict=True))


@pytest.mark.parametrize("rule", RULES)
@given(jobs=job_lists())
def test_every_decision_agrees_with_the_reference(rule: str, jobs: list[Job]) -> None:
    machine = Machine(nodes=NODES, checkpointing=Checkpointing(restart_charge="every-decision"))
    limits = "/".join(map(str, LIMITS))
    result = run(jobs, f"las:thresholds={limits}" if rule == "las" else rule, machine)
    assert ends(result) == completions(NODES, jobs, rule, LIMITS if rule == "las" else ())


@pytest.mark.parametrize("rule", ["srtf", "srsf"])
@given(jobs=job_lists())
def test_every_round_agrees_with_the_reference(rule: str, jobs: list[Job]) -> None:
    machine = Machine(nodes=NODES, round_s=10, checkpointing=Checkpointing(restart_charge="every-round"))
    assert ends(run(jobs, rule, machine)) == in_rounds(NODES, jobs, rule, 10)


@given(jobs=job_lists(most_nodes=1))
@settings(max_examples=cases(40, fewest=8))
def test_srtf_is_optimal_on_one_processor(jobs: list[Job]) -> None:
    best = run(jobs, "srtf", Machine(nodes=1), free=True).summary().mean_response_s
    for policy in SHIPPED:
        assert best <= run(jobs, policy, Machine(nodes=1), free=True).summary().mean_response_s + 1e-9, policy


@given(jobs=job_lists())
def test_las_with_one_queue_is_first_come_first_served(jobs: list[Job]) -> None:
    machine = Machine(nodes=NODES)
    assert ends(run(jobs, "las:thresholds=inf,skip=false", machine)) == ends(run(jobs, "fcfs", machine))


ROUND = 10
IN_ROUNDS = (
    "srtf", "srsf", "las:thresholds=20", "fifo-preempt", "fifo-preempt:preempts=lower-priority", "srtf:mode=kill",
    "las:mode=suspend", "srtf:victim=least-lost,min_run_s=3",
)  # fmt: skip
GANGS_THAT_ARE_STOPPED = ("checkpointed", "suspended", "preempted")


def off_rounds(result: Result) -> set[float]:
    """Return when jobs started, or were preempted, at no multiple of the round, and not when a preempted job left its nodes."""
    attempts = result.run_attempts
    left = set(attempts.loc[attempts["outcome"].isin(GANGS_THAT_ARE_STOPPED), "end_s"])
    return {start for start in attempts["start_s"] if start % ROUND} - left


@pytest.mark.parametrize("policy", IN_ROUNDS)
@pytest.mark.parametrize("in_partitions", [False, True])
@given(jobs=job_lists(most_nodes=4), startup=st.sampled_from([0, 3]), epilog=st.sampled_from([0, 2.5]), data=st.data())
@settings(max_examples=cases(12, fewest=4))
def test_jobs_start_at_the_rounds_with_partitions_as_without(
    policy: str, in_partitions: bool, jobs: list[Job], startup: float, epilog: float, data: st.DataObject
) -> None:
    parts = [Partition(name="a", nodes="0-4"), Partition(name="b", nodes="4-8")] if in_partitions else []
    machine = Machine(
        nodes=9 if in_partitions else 6, partitions=parts, round_s=ROUND, startup_s=startup, epilog_s=epilog,
        checkpointing=Checkpointing(checkpoint_s=data.draw(st.sampled_from([0, 4]))),
    )  # fmt: skip
    own = [
        JobOfUser(
            id=job.id, nodes=job.nodes, submit_s=job.submit, run_s=job.left + 0.25 * (job.id % 3), priority=job.id % 2,
            partition=data.draw(st.sampled_from(["a", "b"])) if in_partitions else None,
        )
        for job in jobs
    ]  # fmt: skip
    result = Scenario(machine=machine, workload=Workload.from_jobs(own), policy=policy).run()
    check_books(result)
    assert not off_rounds(result)
    if not startup and not epilog:  # nothing holds the nodes of a job that has been killed
        stopped = result.run_attempts
        assert not any(stopped.loc[stopped["outcome"] == "preempted", "end_s"] % ROUND)


@pytest.mark.parametrize("policy", ["max-min", "finish-time-fair", "max-min:ahead_s=4"])
@pytest.mark.parametrize("gpus", [1, 3])
@given(jobs=job_lists(most_nodes=4), epilog=st.sampled_from([0, 2.5]))
@settings(max_examples=cases(12, fewest=4))
def test_gangs_of_fair_sharing_start_at_the_rounds(policy: str, gpus: int, jobs: list[Job], epilog: float) -> None:
    # Job 100 is there from the first to the last moment: rounds begin anew only where the machine is empty.
    machine = Machine(nodes=6 // gpus, gpus_per_node=gpus, allocation="consolidate", round_s=ROUND, epilog_s=epilog)
    own = [JobOfUser(id=100, nodes=1, submit_s=0, run_s=20_000)]
    own += [JobOfUser(id=job.id, nodes=job.nodes, submit_s=job.submit, run_s=job.left + 0.25 * (job.id % 3)) for job in jobs]
    result = Scenario(machine=machine, workload=Workload.from_jobs(own), policy=policy).run()
    assert not off_rounds(result)


@pytest.mark.long
@pytest.mark.parametrize(
    "policy",
    [
        *("srtf", "srsf", "las", "fifo-preempt", "srtf:mode=kill", "srtf:mode=suspend", "srtf:predictor=last"),
        *("srtf:round_s=10", "srtf:victim=largest,skip=false", "fifo-preempt:skip=false,round_s=3"),
        *("max-min:round_s=10", "finish-time-fair:round_s=10", "max-min:round_s=10,start_s=1"),
        *("fifo-preempt:preempts=lower-priority,victim=latest-start", "fifo-preempt:victim=order"),
        "srtf:preempts=lower-priority",
        *("las:thresholds=200/400,promote=1.5,mode=suspend", "las:thresholds=5,round_s=10,min_run_s=3,victim=least-lost"),
    ],
)
def test_policies_conform(policy: str) -> None:
    assert not check_policy(policy, failures=True)
