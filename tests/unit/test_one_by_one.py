"""Each event of an instant is a scheduling cycle of its own: ``events="one-by-one"``."""

import random
from functools import cache
from itertools import product

import pytest

from clustermodel import (
    Account,
    Batch,
    Checkpointing,
    Job,
    Limits,
    Machine,
    Outages,
    Scenario,
    Setup,
    Site,
    SpecificationError,
    Start,
    View,
    Workload,
    to_ticks,
)
from clustermodel.policies.interface import Decide
from clustermodel.policies.registry import policy_names
from tests.timeline.timeline import spans

SHARED_IN_TIME = {"gs", "bgs", "mgs", "mbgs", "adaptive"}
MORE = (
    "easy:reserve_depth=3,predictor=last",
    "easy:backfill_order=shortest,predictor=last-two,correction=tsafrir",
    "conservative:predictor=last-two,correction=tsafrir",
    "backfilling:guarantees=none,predictor=last,correction=double",
    "pv-easy:mode=suspend",
    "pv-easy:mode=checkpoint,correction=estimate",
    "pv-easy:slp=false,vb=false",
    "ss:mode=kill",
    "srtf:mode=kill",
)
NODES = 8


@cache
def jobs_of(seed: int) -> Workload:
    """Return jobs of which many are submitted, and end, at the same seconds."""
    rng = random.Random(seed)
    jobs = []
    for number in range(1, 40):
        run = rng.randrange(1, 20)
        estimate = rng.choice([run, run, rng.randrange(1, 25)])
        submit, nodes, user = rng.randrange(60), rng.randrange(1, NODES + 1), rng.randrange(3)
        jobs.append(Job(id=number, submit_s=submit, nodes=nodes, run_s=run, estimate_s=estimate, user=user))
    return Workload.from_jobs(jobs, machine_nodes=NODES)


@pytest.mark.parametrize("policy", [*sorted(set(policy_names()) - SHARED_IN_TIME), *MORE])
def test_every_job_runs_once_and_the_books_balance(policy: str) -> None:
    for seed, kill in product(range(2), (True, False)):
        machine = Machine(nodes=NODES, kill_at_estimate=kill)
        result = Scenario(machine=machine, workload=jobs_of(seed), policy=policy, events="one-by-one").run()
        assert set(result.jobs["status"]) <= {"completed", "killed"}
        ran = result.jobs["run_s"].clip(upper=result.jobs["estimate_s"]) if kill else result.jobs["run_s"]
        useful = sum(result.ledger.amount(Account.USEFUL))  # the ledger refuses to answer if its books do not balance
        assert useful == sum(map(to_ticks, ran * result.jobs["nodes"]))


def test_where_no_two_events_are_at_one_instant_nothing_changes() -> None:
    rng = random.Random(4)
    jobs = [
        Job(id=number, submit_s=rng.uniform(0, 60), nodes=rng.randrange(1, NODES + 1), run_s=rng.uniform(1, 20))
        for number in range(1, 60)
    ]
    workload = Workload.from_jobs(jobs, machine_nodes=NODES)
    for policy in ("fcfs", "easy", "conservative", "pv-easy", "srtf"):
        one, all_ = (Scenario(workload=workload, policy=policy, events=events).run() for events in ("one-by-one", "together"))
        assert spans(one) == spans(all_)


def test_a_submission_is_taken_before_an_end_and_does_not_see_it() -> None:
    # At 10 s job 1 ends early (it had asked for 20) and job 3 is submitted.  All together, job 2 starts, which is first in the
    # queue and needs both nodes; so it does one by one, when the end is reported, and job 3 gets nothing before.
    rows = [(1, 0, 1, 10, 20), (2, 1, 2, 5, 5), (3, 10, 1, 3, 3)]
    jobs = [Job(id=n, submit_s=s, nodes=w, run_s=r, estimate_s=e) for n, s, w, r, e in rows]
    result = Scenario(workload=Workload.from_jobs(jobs, machine_nodes=2), policy="easy", events="one-by-one").run()
    assert spans(result) == {1: (0, 10), 2: (13, 18), 3: (10, 13)}
    together = Scenario(workload=Workload.from_jobs(jobs, machine_nodes=2), policy="easy").run()
    assert spans(together) == {1: (0, 10), 2: (10, 15), 3: (15, 18)}


def test_nodes_of_a_job_that_ends_just_as_corrected_are_idle_before_its_end_is_reported() -> None:
    # Job 3 is predicted to run for 10 s and runs until its estimate, 100 s; nothing happens in between.  At 120 s it ends and
    # job 5 is submitted: in that cycle job 4, which needs all nodes, starts, and 5 does not slip in before it.
    rows = [(1, 0, 1, 10, 1000), (2, 0, 1, 10, 1000), (3, 20, 3, 100, 100), (4, 25, 4, 50, 50), (5, 120, 1, 1, 1)]
    jobs = [Job(id=n, submit_s=s, nodes=w, run_s=r, estimate_s=e, user=max(n, 3)) for n, s, w, r, e in rows]  # 1 to 3: one user
    workload = Workload.from_jobs(jobs, machine_nodes=4)
    for correction in ("estimate", "tsafrir"):
        policy = f"easy:predictor=last-two,correction={correction}"
        result = Scenario(workload=workload, policy=policy, events="one-by-one").run()
        assert spans(result) == {1: (0, 10), 2: (0, 10), 3: (20, 120), 4: (120, 170), 5: (170, 171)}


def test_ends_come_in_the_order_in_which_the_gangs_have_started() -> None:
    # Job 1 is checkpointed at 4 and 8 s, so that its end is scheduled after that of job 2; both end at 10 s.
    told = []

    def watching(setup: Setup) -> Decide:
        def decide(batch: Batch, view: View) -> list[Start]:
            told.extend(gang.job.id for gang in batch.ended)
            return [Start(job=job) for job in view.waiting.values()]

        return decide

    jobs = [Job(id=1, nodes=1, submit_s=0, run_s=10, checkpoint_interval_s=4), Job(id=2, nodes=1, submit_s=1, run_s=9)]
    machine = Machine(nodes=2, checkpointing=Checkpointing(interval_s="own"))
    result = Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy=watching, events="one-by-one").run()
    assert spans(result) == {1: (0, 10), 2: (1, 10)}
    assert told == [1, 2]


@pytest.mark.parametrize("policy", sorted(SHARED_IN_TIME))
def test_nodes_shared_in_time_are_refused_in_one_line(policy: str) -> None:
    with pytest.raises(
        SpecificationError, match=r"^events: 'one-by-one' is for dedicated nodes, and the policy shares nodes in time$"
    ):
        Scenario(workload=jobs_of(1), policy=policy, events="one-by-one").run()


def test_another_word_is_refused() -> None:
    with pytest.raises(
        SpecificationError, match=r"^Scenario\.events: 'all' is not allowed; it must be one of together, one-by-one"
    ):
        Scenario(workload=jobs_of(1), events="all")  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", ["easy", "srtf:min_run_s=5", "max-min:round_s=5"])
def test_the_books_end_with_the_last_end_that_comes_after_something_else_of_its_instant(policy: str) -> None:
    # Job 3 is submitted, or an alarm rings, in the cycle before the one that reports the end of the only gang that runs.
    jobs = [Job(id=1, nodes=1, submit_s=25, run_s=5), Job(id=2, nodes=1, submit_s=31, run_s=5)]
    jobs += [Job(id=3, nodes=2, submit_s=36, run_s=5), Job(id=4, nodes=9, submit_s=41, run_s=5)]
    for number in range(1, 5):
        site = Site(limits=[Limits(running_jobs=2)])
        machine, workload = Machine(nodes=2), Workload.from_jobs(jobs[:number])
        result = Scenario(machine=machine, workload=workload, policy=policy, site=site, events="one-by-one").run()
        ends = result.jobs["end_s"].max()
        assert (result.ledger.start, result.ledger.end) == (to_ticks(25), to_ticks(ends))
        assert sum(sum(result.ledger.amount(each)) for each in Account) == 2 * (result.ledger.end - result.ledger.start)


@pytest.mark.parametrize("guarantees", ["all", "none", "selective", "selective,threshold=1", "relaxed"])
def test_nodes_of_gangs_that_end_as_planned_are_those_of_the_plan_under_all_guarantees(guarantees: str) -> None:
    # Jobs 1 and 2 end at 10 s, one after the other; job 3, whose plan knew of both ends, starts then.
    rows = [(1, 0, 1, 10), (2, 0, 1, 10), (3, 1, 2, 5)]
    jobs = [Job(id=n, submit_s=s, nodes=w, run_s=r) for n, s, w, r in rows]
    workload = Workload.from_jobs(jobs, machine_nodes=2)
    result = Scenario(workload=workload, policy=f"backfilling:guarantees={guarantees}", events="one-by-one").run()
    assert spans(result) == {1: (0, 10), 2: (0, 10), 3: (10, 15)}


@pytest.mark.parametrize("policy", [*sorted(set(policy_names()) - SHARED_IN_TIME), *MORE])
def test_a_node_that_fails_as_its_gang_ends_is_not_idle(policy: str) -> None:
    # The failure comes first, then the end of job 1, as every end after all else; job 2 waits for the repair.
    machine = Machine(nodes=2, failures=Outages(node=[1], down_s=[10.0], up_s=[60.0], nodes=2))
    jobs = [
        Job(id=1, nodes=2, submit_s=0, run_s=10),
        Job(id=2, nodes=2, submit_s=1, run_s=20),
        Job(id=3, nodes=1, submit_s=2, run_s=30),
    ]
    workload = Workload.from_jobs(jobs)
    one, together = (
        Scenario(workload=workload, machine=machine, policy=policy, events=events).run()
        for events in ("one-by-one", "together")
    )
    assert spans(one)[1] == (0, 10)
    assert spans(one)[2][0] >= 60
    assert spans(one) == spans(together)
