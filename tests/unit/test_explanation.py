"""The decision log on one small case, worked out by hand for each policy."""

import pytest

from clustermodel import Batch, Scenario, Setup, SpecificationError, Start, View, synthetic_workload
from clustermodel.experiment.result import Result
from clustermodel.measure.explanation import Explanation
from clustermodel.policies.interface import Policy
from tests.timeline.timeline import play, spans

# Six nodes; estimates are exact.  1 leaves two nodes idle.  2 needs five: under EASY and conservative backfilling it is
# promised 20, when 1 ends, and one extra node is left then.  3 ends at 20, just in time.  4 would end at 33 and takes the
# extra node.  5 needs one node: none is idle from 3 to 20, and at 20 the jobs 2 and 4 hold all six.
FIVE = "1 0 4 20\n2 1 5 10\n3 2 1 18\n4 3 1 30\n5 4 1 2"
WITH_BACKFILLING = {1: (0, 20), 2: (20, 30), 3: (2, 20), 4: (3, 33), 5: (30, 32)}


def explained(policy: str | Policy, jobs: str = FIVE) -> Result:
    return play(6, jobs, policy, explain=True)


def facts(result: Result, job: int) -> tuple[object, ...]:
    """Return (rule, holder, shadow_s, extra_nodes, reserved_s, head_since_s)."""
    one = result.explain(job)
    return one.rule, one.holder, one.shadow_s, one.extra_nodes, one.reserved_s, one.head_since_s


def test_fcfs_starts_every_job_from_the_head_of_the_queue() -> None:
    result = explained("fcfs")
    # 3 starts beside 2; 4 is then first in the queue and finds no node until 30
    assert spans(result) == {1: (0, 20), 2: (20, 30), 3: (20, 38), 4: (30, 60), 5: (30, 32)}
    rule = "head of the queue, and it fits"
    assert facts(result, 1) == (rule, None, None, None, None, None)
    assert facts(result, 2) == (rule, None, None, None, None, 1)
    assert facts(result, 3) == (rule, None, None, None, None, None)
    assert facts(result, 4) == (rule, None, None, None, None, 20)
    assert facts(result, 5) == (rule, None, None, None, None, None)


def test_easy_names_the_holder_the_shadow_time_the_extra_nodes_and_the_rule() -> None:
    result = explained("easy")
    assert spans(result) == WITH_BACKFILLING
    head = "head of the queue, and it fits"
    assert facts(result, 1) == (head, None, None, None, None, None)
    assert facts(result, 2) == (head, None, None, None, 20, 1)
    assert facts(result, 3) == ("backfilled: it will end by the shadow time", 2, 20, 1, None, None)
    assert facts(result, 4) == ("backfilled: it takes no more than the extra nodes", 2, 20, 1, None, None)
    assert facts(result, 5) == (head, None, None, None, 30, 20)


def test_easy_with_two_protected_jobs_says_that_neither_is_delayed() -> None:
    # 3 needs three nodes: it is protected too, and promised 30, when 2 ends.  4 takes one of the nodes that neither needs:
    # one is left at 20 and, after 3 has started, three at 30.
    result = explained("easy:reserve_depth=2", "1 0 4 20\n2 1 5 10\n3 2 3 10\n4 3 1 30")
    assert spans(result) == {1: (0, 20), 2: (20, 30), 3: (30, 40), 4: (3, 33)}
    assert facts(result, 4) == ("backfilled: it delays none of the 2 protected jobs", 2, 20, 1, None, None)
    assert facts(result, 3) == ("head of the queue, and it fits", None, None, None, 30, 20)


def test_conservative_backfilling_starts_jobs_at_their_reserved_times() -> None:
    result = explained("conservative")
    assert spans(result) == WITH_BACKFILLING
    head = "head of the queue, and its reserved time has come"
    backfilled = "backfilled: its reserved time has come, which delays no waiting job"
    assert facts(result, 1) == (head, None, None, None, None, None)
    assert facts(result, 2) == (head, None, None, None, 20, 1)
    assert facts(result, 3) == (backfilled, 2, 20, None, None, None)
    assert facts(result, 4) == (backfilled, 2, 20, None, None, None)
    assert facts(result, 5) == (head, None, None, None, 30, 20)


def test_the_promise_that_is_shown_is_the_first_one() -> None:
    # 1 says 50 and runs 20: 2 was promised 50 and starts at 20
    result = explained("conservative", "1 0 4 20 50\n2 1 5 10")
    assert (result.explain(2).reserved_s, result.explain(2).start_s) == (50, 20)


def test_an_explanation_reads_as_a_few_lines() -> None:
    result = explained("easy")
    assert str(result.explain(4)) == (
        "job 4 (1 node) was submitted at 3 s and started at 3 s, after waiting 0 s\n"
        "  rule: backfilled: it takes no more than the extra nodes\n"
        "  reservation held by job 2, expected to start at 20 s (shadow time); extra nodes: 1"
    )
    assert str(result.explain(2)) == (
        "job 2 (5 nodes) was submitted at 1 s and started at 20 s, after waiting 19 s\n"
        "  rule: head of the queue, and it fits\n"
        "  blocked at the head of the queue since 1 s\n"
        "  first guaranteed start: 20 s"
    )
    assert str(explained("conservative").explain(3)).splitlines()[2:] == [
        "  reservation held by job 2, expected to start at 20 s (shadow time)"
    ]


class Mine:
    """Starts what fits and gives no reasons."""

    name = "mine"

    def start(self, setup: Setup) -> object:
        self.asked = setup.explain
        return self

    def decide(self, batch: Batch, view: View) -> list[Start]:
        return [Start(job=job) for job in view.waiting.values() if job.nodes <= view.idle][:1]


def test_a_policy_that_gives_no_reason_is_named_as_the_reason() -> None:
    policy = Mine()
    assert explained(policy, "1 0 4 20").explain(1) == Explanation(
        job=1,
        nodes=4,
        submit_s=0,
        start_s=0,
        rule="started by mine",
        holder=None,
        shadow_s=None,
        extra_nodes=None,
        reserved_s=None,
        head_since_s=None,
    )
    assert policy.asked is True


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
def test_the_log_is_off_by_default_and_asking_for_it_is_one_clear_error(policy: str) -> None:
    result = play(6, FIVE, policy)
    with pytest.raises(SpecificationError) as refused:
        result.explain(1)
    assert str(refused.value) == "explain: the decision log is off; run Scenario(..., explain=True)"


def test_a_policy_is_told_whether_reasons_are_wanted() -> None:
    policy = Mine()
    play(6, "1 0 4 20", policy)
    assert policy.asked is False


def test_a_job_that_did_not_run_has_no_explanation() -> None:
    result = explained("easy", "1 0 4 20\n2 0 7 20")
    for job in (2, 99):  # rejected, unknown
        with pytest.raises(SpecificationError) as refused:
            result.explain(job)
        assert str(refused.value) == f"explain: job {job} is not in this run, or was never started"


@pytest.mark.parametrize("policy", ["fcfs", "easy", "easy:reserve_depth=3", "easy:backfill_order=shortest", "conservative"])
def test_the_log_changes_nothing_in_the_schedule_and_explains_every_start(policy: str) -> None:
    workload = synthetic_workload(jobs=300, nodes=32, load=0.95, seed=6)
    plain, logged = (Scenario(workload=workload, policy=policy, explain=explain).run() for explain in (False, True))
    assert logged.jobs.equals(plain.jobs)
    for job, start, backfilled in logged.jobs[["job", "start_s", "backfilled"]].itertuples(index=False):
        one = logged.explain(job)
        assert one.start_s == start
        assert one.rule.startswith("backfilled" if backfilled else "head of the queue")
        assert (one.holder is not None) == backfilled
