"""The preemptive schedulers on random jobs: an independent reference, a known optimum, and known special cases."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel import Checkpointing, Machine, Scenario, Workload, check_policy, policy_names
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


@pytest.mark.long
@pytest.mark.parametrize(
    "policy",
    [
        *("srtf", "srsf", "las", "fifo-preempt", "srtf:mode=kill", "srtf:mode=suspend", "srtf:predictor=last"),
        *("srtf:round_s=10", "srtf:victim=largest,skip=false", "fifo-preempt:skip=false,round_s=3"),
        *("max-min:round_s=10", "finish-time-fair:round_s=10", "max-min:round_s=10,start_s=1"),
        *("las:thresholds=200/400,promote=1.5,mode=suspend", "las:thresholds=5,round_s=10,min_run_s=3,victim=least-lost"),
    ],
)
def test_policies_conform(policy: str) -> None:
    assert not check_policy(policy, failures=True)
