"""Slack-based backfilling: formulas, arguments, bounds, quotas, calibration, unfinished jobs, a year of KTH."""

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest

import clustermodel as cm
from clustermodel.experiment.run_key import key_of_scenario
from clustermodel.machine.node_set import NodeSet
from clustermodel.plans import slack_prices as prices
from clustermodel.policies.interface import Kill, Policy, Reserve, Start, Waits, WakeAt
from clustermodel.policies.slack import Quotas, Slack
from clustermodel.policies.slack_run import OverQuota
from clustermodel.policies.view import Batch, QueuedJob, RunningJob, View
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.job import JobRow
from tests.shared_data import trace_path
from tests.slack_plans import arriving_job, plan_of, reservation, search_in
from tests.tiers import some

S = TICKS_PER_SECOND
ONE = prices.Weights()
FAST_HEURISTICS = [name for name in prices.HEURISTICS if name != "optimal"]


def run(policy: str | Slack, *jobs: tuple[float, ...], nodes: int = 4, explain: bool = False, **machine: bool) -> cm.Result:
    """Jobs are (id, submit_s, nodes, run_s, estimate_s[, user])."""
    names = ("id", "submit_s", "nodes", "run_s", "estimate_s", "user")
    workload = cm.Workload.from_jobs(cm.Job(**dict(zip(names, job, strict=False))) for job in jobs)
    return cm.Scenario(machine=cm.Machine(nodes=nodes, **machine), workload=workload, policy=policy, explain=explain).run()


def starts(result: cm.Result) -> dict[int, float]:
    return dict(zip(result.jobs["job"].tolist(), result.jobs["start_s"].tolist(), strict=True))


def setup(nodes: int = 4, *, kill: bool = True) -> cm.Setup:
    return cm.Setup(nodes, kill, np.random.default_rng(1), False, cm.Machine(nodes=nodes, kill_at_estimate=kill))


def test_priority_is_the_mean_of_three_and_minus_infinity_over_quota() -> None:
    assert prices.priority(1, 1, 0.5) == pytest.approx(2.5 / 3)
    assert prices.priority(0, -inf, 1) == -inf


def test_scheduler_priority_is_half_at_the_average_wait_and_one_from_twice_of_it_on() -> None:
    assert [prices.scheduler_priority(wait, 100) for wait in (0, 50, 100, 200, 900)] == [0, 0.25, 0.5, 1, 1]
    assert [prices.scheduler_priority(wait, 0) for wait in (0, 1e-6, 5)] == [0, 1, 1]


def test_initial_slack() -> None:
    assert prices.initial_slack(0.25, 3, 2401) == pytest.approx(0.75 * 3 * 2401)
    assert prices.initial_slack(1, 3, 2401) == prices.initial_slack(0.2, 0, 2401) == prices.initial_slack(0.2, 3, 0) == 0
    assert prices.initial_slack(-inf, 3, 2401) == inf


def test_a_move_up_gains_what_the_same_delay_costs() -> None:
    assert [prices.move(seconds, 0.5) for seconds in (9, 0, -9)] == [3, 0, -3]
    assert [prices.move(seconds, 1.0) for seconds in (9.0, -9.0)] == [9, -9]
    assert prices.move(0, 0.0) == 0
    for weights in (ONE, prices.Weights(t=0.5), prices.Weights(t=0)):
        there = prices.cost(prices.weight(3, 0.4, 10, 8, weights), 5, prices.favour(0.2, weights), weights.t)
        assert prices.cost(prices.weight(3, 0.4, 10, 8, weights), -5, prices.favour(0.2, weights), weights.t) == -there


def test_each_weight_governs_its_own_factor() -> None:
    def of(move_s: float = 9, s0: float = 10, s: float = 10, **given: float) -> float:
        weights = prices.Weights(**{"u": 0, "t": 0, "p": 0, "f": 0, **given})
        return prices.cost(prices.weight(16, 0.4, s0, s, weights), move_s, prices.favour(0.1, weights), weights.t)

    assert (of(), of(u=0.5), of(t=0.5), of(p=0.5)) == pytest.approx((1, 4, 3, 2))
    assert of(1, 16, 4, f=0.5) == pytest.approx(2)


def test_a_delay_beyond_the_slack_is_excluded_and_by_the_whole_of_it_is_not() -> None:
    for spare, allowed in ((4 * S - 1, False), (4 * S, True)):
        held = reservation(QueuedJob(1, 1, 0, 2 * S, 0, 0, 0), 0, 0.5, spare, ONE)
        search = search_in(plan_of(1, [], [held]), [held], arriving_job(1, 4 * S, prices.favour(0.5, ONE)), ONE)
        assert (search.cheapest([0], [held]) is not None) is allowed


def test_of_schedules_whose_prices_differ_by_rounding_only_that_which_moves_fewer_jobs_goes_before() -> None:
    held = reservation(QueuedJob(1, 1, 0, 2 * S, 0, 0, 0), 0, 0.5, 0, ONE)
    one_move = prices.Schedule(0, 0.0, [(held, 1)], [0.1 + 0.2])
    two_moves = prices.Schedule(0, 0.0, [(held, 1), (held, 2)], [0.15, 0.15])
    cheaper = prices.Schedule(0, 0.0, [(held, 1), (held, 2)], [0.15, 0.149])
    assert 0.1 + 0.2 > 0.15 + 0.15
    assert one_move.price == two_moves.price == 0.3
    assert [one_move.goes_before(two_moves), two_moves.goes_before(one_move)] == [True, False]
    assert [one_move.goes_before(cheaper), cheaper.goes_before(one_move)] == [False, True]
    earlier, later = (prices.Schedule(slot, 0.3, [], []) for slot in (1, 2))
    assert [earlier.goes_before(later), later.goes_before(earlier), later.goes_before(later)] == [True, False, False]


def test_without_slack_left_the_fairness_factor_is_that_of_a_second_and_without_any_it_is_one() -> None:
    assert prices.weight(1, 1, 100, 0, ONE) == prices.weight(1, 1, 100, 0.5, ONE) == prices.weight(1, 1, 100, 1, ONE) == 100
    assert prices.weight(1, 1, 0, 0, ONE) == prices.weight(1, 1, 0, 7, ONE) == 1
    assert prices.weight(1, 1, 0.25, 0, ONE) == 1
    assert prices.weight(2, 1, 100, 400, ONE) == 0.5  # moved up, it has more slack than it began with


def test_what_is_lost_when_a_job_is_killed_is_priced_like_a_wait_of_its_estimate() -> None:
    assert prices.price_of_start(64, 86_400, ONE) == 64 * 86_400
    assert prices.price_of_start(64, 81, prices.Weights(u=0.5, t=0.25)) == pytest.approx(8 * 3)


def test_rounding_decides_no_tie() -> None:
    assert 0.1 + 0.2 != 0.3
    assert prices.total(0.0, [0.1, 0.2, -0.3]) == 0
    assert prices.total(0.3, []) == prices.total(0.0, [0.1, 0.2]) == prices.total(0.2, [0.1])
    assert prices.total(3e9, [1e-2]) > prices.total(3e9, [])
    assert prices.total(0.0, [-1e-9, 1.0, -1.0]) == -1e-9


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"slack_factor": -1}, r"slack: slack_factor: -1 is not allowed; it must be a finite number >= 0"),
        ({"slack_factor": inf}, "slack: slack_factor: inf is not allowed"),
        ({"heuristic": "asd"}, r"slack: heuristic: 'asd' is not allowed \(did you mean 'ast'\?\); it must be one of ast, aat"),
        ({"heuristic": 3}, "slack: heuristic: 3 is not allowed; it must be one of"),
        ({"compression": "shifted"}, r"slack: compression: 'shifted' is not allowed \(did you mean 'shift'\?\)"),
        ({"compression": "shift", "heuristic": "optimal"}, "it must be 'afresh' where heuristic is optimal"),
        ({"alpha_u": 1.5}, "slack: alpha_u: 1.5 is not allowed; it must be a number >= 0 and <= 1"),
        ({"alpha_t": -0.1}, "slack: alpha_t: -0.1 is not allowed"),
        ({"alpha_p": nan}, "slack: alpha_p: nan is not allowed"),
        ({"alpha_f": "1"}, "slack: alpha_f: '1' is not allowed"),
        ({"user_priority": 2}, "slack: user_priority: 2 is not allowed; it must be a number >= 0 and <= 1"),
        ({"political_priority": "high"},
         "slack: political_priority: 'high' is not allowed; it must be a number >= 0 and <= 1, or a callable"),
        ({"awt": -1}, "slack: awt: -1 is not allowed"),
        ({"awt": "conservativ"}, r"slack: awt: 'conservativ' is not allowed \(did you mean 'conservative'\?\)"),
        ({"awt": {}}, "slack: awt: {} is not allowed; it must have one class of sizes at least"),
        ({"awt": {0: 5.0}}, "slack: awt: largest size: 0 is not allowed"),
        ({"awt": {4: -5.0}}, r"slack: awt\[4\]: -5.0 is not allowed"),
        ({"awt": None}, "slack: awt: None is not a number"),
        ({"quotas": 5}, r"slack: quotas: 5 is not allowed; it must be a Quotas\(...\) or None"),
        ({"extend_unfinished": 1}, "slack: extend_unfinished: 1 is not allowed; it must be True or False"),
    ],
)  # fmt: skip
def test_an_argument_that_is_not_allowed_is_refused_by_name(arguments: dict[str, object], problem: str) -> None:
    with pytest.raises(cm.SpecificationError, match=problem):
        Slack(**arguments)  # type: ignore[arg-type]


def test_a_priority_that_a_callable_gives_is_checked_too() -> None:
    with pytest.raises(cm.SpecificationError, match=r"slack: user_priority of job 7: 1\.2 is not allowed"):
        run(Slack(awt=1.0, user_priority=lambda _: 1.2), (7, 0, 1, 5, 5))


def test_a_run_key_depends_on_a_priority_for_all_jobs() -> None:
    workload = cm.synthetic_workload(jobs=5, nodes=4)
    policies = [Slack(), Slack(user_priority=1.0), Slack(user_priority=0.5), Slack(political_priority=0.5)]
    runs = [cm.Scenario(machine=cm.Machine(nodes=4), workload=workload, policy=policy) for policy in policies]
    assert len(set(map(key_of_scenario, runs))) == 4


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (Slack(), "slack: awt: 'conservative' has not been measured; run the policy in a Scenario"),
        (Slack(awt={1: 5.0, 3: 9.0}), "slack: awt: 3 is not allowed as the largest size; it must be >= 4"),
        (Slack(awt=1.0, extend_unfinished=True), "slack: extend_unfinished: True is not allowed on a machine with kill_at_est"),
    ],
)
def test_what_start_refuses(policy: Slack, problem: str) -> None:
    with pytest.raises(cm.SpecificationError, match=problem):
        policy.start(setup())


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ({"user": -1}, "Quotas.user: -1 is not allowed; it must be a finite number of node-seconds >= 0"),
        ({"group": {3: -2.0}}, r"Quotas.group\[3\]: -2.0 is not allowed"),
        ({"group": {3: inf}}, r"Quotas.group\[3\]: inf is not allowed"),
        ({"user": {"me": 2.0}}, "Quotas.user: key: 'me' is not allowed; it must be a whole number"),
        ({"user": "much"}, "Quotas.user: 'much' is not allowed"),
    ],
)
def test_a_quota_that_is_not_allowed_is_refused_by_name(limits: dict[str, object], problem: str) -> None:
    with pytest.raises(cm.SpecificationError, match=problem):
        Quotas(**limits)  # type: ignore[arg-type]


def test_quotas_and_average_waits_by_size_can_be_hashed() -> None:
    policies = [Slack(awt={4: 2.0, 2: 1.0}, quotas=Quotas(user={2: 1.0, 1: 3.0}, group=order)) for order in (1.0, 1.0)]
    assert policies[0] == policies[1]
    assert hash(policies[0]) == hash(policies[1])
    assert hash(Quotas(user={1: 2.0, 2: 3.0})) == hash(Quotas(user={2: 3.0, 1: 2.0}))


@pytest.mark.long
@pytest.mark.parametrize("heuristic", FAST_HEURISTICS)
@pytest.mark.parametrize(
    "more",
    some(["", ",slack_factor=0", ",awt=30,slack_factor=9", ",compression=shift", ",compression=in-place,awt=30"], one_in=3),
)
def test_check_policy_finds_nothing(heuristic: str, more: str) -> None:
    assert cm.check_policy(f"slack:heuristic={heuristic}{more}", failures=not more) == []


@pytest.mark.long
@pytest.mark.parametrize(
    "policy",
    [
        Slack(awt="conservative-by-size"),
        Slack(awt={1: 10.0, 8: 100.0}, alpha_u=0, alpha_t=0.5, alpha_p=0, alpha_f=0),
        Slack(awt=0.0),
        Slack(awt=20.0, alpha_t=0.0, user_priority=lambda job: job.id % 2),
        Slack(awt=50.0, user_priority=1.0, political_priority=1.0),
        Slack(awt=50.0, quotas=Quotas(user={1: 100.0})),
        Slack(awt=50.0, quotas=Quotas(user=0.0)),
    ],
    ids=["by size", "mapping", "no wait", "time does not count", "priority 1", "quota", "all over quota"],
)
def test_check_policy_finds_nothing_with_other_arguments(policy: Slack) -> None:
    assert [str(one) for one in cm.check_policy(policy)] == []


def test_the_average_wait_is_measured_under_conservative_backfilling_on_the_same_jobs() -> None:
    workload = cm.synthetic_workload(jobs=2_000, nodes=32, load=0.8)
    machine = cm.Machine(nodes=32)
    conservative = cm.Scenario(machine=machine, workload=workload, policy="conservative").run()
    policy = Slack()
    measured = cm.Scenario(machine=machine, workload=workload, policy=policy).run()
    mean_s = conservative.summary().mean_wait_s
    given = cm.Scenario(machine=machine, workload=workload, policy=Slack(awt=mean_s)).run()
    assert starts(given) == starts(measured)
    again = cm.Scenario(machine=machine, workload=workload, policy=policy).run()
    assert starts(again) == starts(measured)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the policies by name under which waits are measured from now on."""
    policies: list[str] = []

    def counting(policy: str | Policy) -> Policy:
        if policy == "conservative":  # all others are the policies of the runs themselves
            policies.append(policy)
        return cm.make_policy(policy)

    monkeypatch.setattr("clustermodel.experiment.scenario.make_policy", counting)
    return policies


def test_the_average_wait_is_measured_once_for_a_workload_a_machine_and_a_seed(measured: list[str]) -> None:
    jobs = cm.synthetic_workload(jobs=300, nodes=16, load=0.9)
    first = cm.Scenario(machine=cm.Machine(nodes=16), workload=jobs, policy="slack", seed=1)
    found = [starts(one.run()) for one in (first, replace(first, policy="slack:slack_factor=1"), first)]
    assert measured == ["conservative"]
    assert found[0] == found[2] != found[1]
    fewer = cm.synthetic_workload(jobs=200, nodes=16, load=0.9)
    for other in (replace(first, seed=2), replace(first, machine=cm.Machine(nodes=32)), replace(first, workload=fewer)):
        other.run()
    assert len(measured) == 4
    assert starts(first.run()) == found[0]
    assert len(measured) == 5, "the last measurement is kept, not all"


@pytest.mark.parametrize(
    ("before", "times"),
    [
        ({"policy": "conservative"}, 0),
        ({"policy": "conservative", "explain": True}, 0),
        ({"policy": "conservative:queue_order=shortest"}, 1),
        ({"policy": "conservative", "seed": 2}, 1),
        ({"policy": "conservative", "machine": cm.Machine(nodes=32)}, 1),
        ({"policy": "easy"}, 1),
    ],
    ids=str,
)
def test_the_average_wait_is_that_of_a_run_under_conservative_backfilling_if_there_was_one(
    measured: list[str], before: dict[str, object], times: int
) -> None:
    jobs = cm.synthetic_workload(jobs=300, nodes=16, load=0.9)
    slack = cm.Scenario(machine=cm.Machine(nodes=16), workload=jobs, policy="slack", seed=1)
    expected = starts(slack.run())
    replace(slack, seed=3).run()  # what was measured last is kept
    replace(slack, **before).run()  # type: ignore[arg-type]
    measured.clear()
    assert starts(slack.run()) == expected
    assert len(measured) == times


def test_the_average_wait_by_size_has_classes_by_powers_of_two() -> None:
    policy = Slack(awt="conservative-by-size")
    measured = policy.calibrated(lambda _: Waits((1, 1, 2, 3, 4, 9), (10 * S, 20 * S, 5 * S, 8 * S, 10 * S, 100 * S)))
    overall = pytest.approx(153 / 6)
    assert measured.awt == ((1, 15), (2, 5), (4, 9), (8, overall), (16, 100), (inf, overall))
    assert {seconds for _, seconds in policy.calibrated(lambda _: Waits((), ())).awt} == {0.0}


def test_nobody_waits_under_conservative_so_nobody_has_slack() -> None:
    result = run("slack", (1, 0, 2, 10, 10), (2, 0, 2, 10, 10))
    assert starts(result) == {1: 0, 2: 0}


def test_the_bound_is_the_first_start_and_the_slack_of_the_priority_that_follows_from_it() -> None:
    # Job 2 waits for 10 s: SP = 10 / (2 x 20) = 1/4, p = 1/12, s0 = 11/12 x 3 x 20 s = 55 s.
    result = run("slack:awt=20", (1, 0, 4, 10, 10), (2, 0, 4, 10, 10))
    assert starts(result) == {1: 0, 2: 10}
    assert result.jobs["reserved_s"].tolist()[1] == pytest.approx(65)


def test_a_job_is_delayed_within_its_slack_and_not_beyond() -> None:
    # Job 3 would wait for 19 s, 2 x 19 = 38; or start now and delay job 2 by 10 s, 4 x 10 x (1/12) / (1/6) = 20, if it may.
    jobs = (1, 0, 2, 10, 10), (2, 0, 4, 10, 10), (3, 1, 2, 19, 19)
    assert starts(run("slack:awt=20", *jobs)) == {1: 0, 2: 20, 3: 1}
    assert starts(run("slack:awt=20,slack_factor=0", *jobs)) == {1: 0, 2: 10, 3: 20}


@pytest.mark.parametrize("compression", ["afresh", "shift", "in-place"])
@pytest.mark.parametrize(
    "parameters",
    [
        {"awt": 100.0, "slack_factor": 0},
        {"awt": 0.0},
        {"awt": 1.0, "user_priority": 1.0, "political_priority": 1.0},  # SP is 1 from a wait of 2 s on
    ],
    ids=["no slack factor", "no wait", "priority 1"],
)
def test_a_job_without_initial_slack_moves_up_each_time_one_ends_early(parameters: dict[str, float], compression: str) -> None:
    # Three jobs of the whole machine wait behind one, each of 60 s at most; all end after 50 s.
    jobs = [(number, submit, 4, 50, 60) for number, submit in enumerate((0, 5, 6, 7), 1)]
    result = run(Slack(compression=compression, **parameters), *jobs)  # type: ignore[arg-type]
    assert starts(result) == {1: 0, 2: 50, 3: 100, 4: 150}
    assert result.jobs["reserved_s"].tolist()[1:] == [60, 120, 180]


def test_what_explain_says() -> None:
    result = run("slack:awt=20,slack_factor=0", (1, 0, 3, 10, 10), (2, 0, 4, 10, 10), (3, 1, 1, 5, 5), explain=True)
    assert starts(result) == {1: 0, 2: 10, 3: 1}
    assert "backfilled: its reserved time has come" in str(result.explain(3))
    assert "no job within quota has waited longer" in str(result.explain(2))
    policy = Slack(awt=20.0, quotas=Quotas(user={7: 0.0}))
    over = run(policy, (1, 0, 3, 10, 10), (2, 0, 4, 10, 10), (3, 1, 1, 5, 5, 7), explain=True)
    assert "over quota: it takes nodes that no reservation needs" in str(over.explain(3))


def test_the_orders_of_the_heuristics() -> None:
    def waiting(number: int, nodes: int, length: int, start: int, p: float, slack: int = 50) -> prices.SlackReservation:
        return reservation(QueuedJob(number, nodes, number * S, length * S, 0, 0, 0), start * S, p, slack * S, ONE)

    jobs = [
        waiting(1, 2, 10, 90, 0.5),  # weight 1.0
        waiting(2, 1, 40, 30, 0.5),  # weight 0.5
        waiting(3, 4, 9, 30, 0.1),  # weight 0.4
        waiting(4, 1, 10, 10, 0.6),  # weight 0.6
        waiting(5, 1, 1, 20, 0.2, 0),  # a delay by a second costs infinity
    ]
    orders = {name: [one.job.id for one in sorted(jobs, key=key)] for name, key in prices.HEURISTICS.items() if key is not None}
    assert orders == {
        "ast": [4, 5, 2, 3, 1],
        "aat": [1, 2, 3, 4, 5],
        "du": [2, 3, 1, 4, 5],
        "dc": [5, 1, 4, 2, 3],
        "dp": [4, 1, 2, 5, 3],
    }


def queued(number: int, nodes: int, estimate: int, user: int = 1, group: int = -1) -> QueuedJob:
    return QueuedJob(number, nodes, 0, estimate * S, user, group, 0)


def test_estimates_are_charged_until_it_is_known_what_was_used() -> None:
    accounts = OverQuota(Quotas(user={1: 100.0}))
    first, second = queued(1, 5, 20), queued(2, 1, 1)
    assert not accounts.admit(first, 0)
    assert accounts.used["user", 1] == 100 * S
    assert accounts.admit(second, 0)
    accounts.ended(first, 3 * S)
    assert accounts.used["user", 1] == 16 * S
    assert not accounts.over(second)


def test_who_is_not_listed_or_not_known_has_no_quota() -> None:
    assert not OverQuota(Quotas(user={1: 0.0})).admit(queued(1, 1, 1, user=2), 0)
    assert not OverQuota(Quotas(user=0.0)).admit(queued(1, 1, 1, user=-1), 0)
    assert OverQuota(Quotas(user={-1: 0.0})).admit(queued(1, 1, 1, user=-1), 0)
    assert OverQuota(Quotas(user=0.0)).admit(queued(1, 1, 1, user=2), 0)


def test_a_quota_of_the_group_counts_as_well() -> None:
    accounts = OverQuota(Quotas(user=50.0, group={4: 15.0}))
    admitted = [accounts.admit(queued(n, 1, 10, user, group), 0) for n, user, group in ((1, 1, 4), (2, 2, 4), (3, 2, 5))]
    assert admitted == [False, True, False]


def test_a_job_over_quota_runs_only_where_it_disturbs_nobody() -> None:
    policy = Slack(awt=1000.0, quotas=Quotas(user={7: 0.0}))
    # Job 3 would fit at once, but not end before job 2 is to start; job 5, submitted later, takes the room.
    jobs = (1, 0, 2, 10, 10), (2, 0, 4, 10, 10), (3, 1, 2, 20, 20, 7), (5, 3, 2, 6, 6)
    result = run(policy, *jobs)
    assert starts(result) == {1: 0, 2: 10, 3: 20, 5: 3}
    assert starts(run("slack:awt=1000", *(job for job in jobs if job[-1] != 7))) == {1: 0, 2: 10, 5: 3}
    assert result.jobs["reserved_s"].isna().tolist() == [True, False, True, True]


def test_a_job_over_quota_waits_for_as_long_as_times_go() -> None:
    # Job 1 holds the machine until 2^62 ticks and five more: half of what 64 bits hold.
    rows = [JobRow(0, 1, 4, 2**62 + 5, 2**62 + 5, -1, -1, 0, -1), JobRow(1, 2, 4, S, S, 7, -1, 0, -1)]
    policy = Slack(awt=1000.0, quotas=Quotas(user={7: 0.0}))
    records = cm.Scenario(machine=cm.Machine(nodes=4), workload=cm.Workload(rows), policy=policy).run().records
    assert records.column("start").tolist() == [0, 2**62 + 5]


def test_a_quota_that_nobody_can_use_up_is_none() -> None:
    result = run(Slack(awt=1000.0, quotas=Quotas(user=1e308)), (1, 0, 4, 10, 10, 7), (2, 1, 4, 10, 10, 7))
    assert starts(result) == {1: 0, 2: 10}


def test_a_job_over_quota_starts_where_there_is_room_that_nobody_needs() -> None:
    policy = Slack(awt=1000.0, quotas=Quotas(user={7: 0.0}))
    assert starts(run(policy, (1, 0, 2, 10, 10), (2, 0, 4, 10, 10), (4, 2, 1, 8, 8, 7)))[4] == 2


# Unfinished jobs: Talby & Feitelson 1999 (long), section 4.7.
def test_an_unfinished_job_goes_on_for_a_tenth_at_a_time_where_that_is_cheaper_than_killing_it() -> None:
    policy = Slack(awt=1000.0, extend_unfinished=True)
    result = run(policy, (1, 0, 4, 115, 100), (2, 5, 4, 10, 10), kill_at_estimate=False)
    # Delays of job 2 cost 4 x 10 s x p/p1 x s0/s each time; killing costs 4 x 100 s.
    assert starts(result) == {1: 0, 2: 115}
    assert result.jobs["end_s"].tolist() == [115, 125]


def test_an_unfinished_job_is_killed_where_somebody_cannot_be_delayed_any_longer() -> None:
    policy = Slack(awt=1000.0, slack_factor=0, extend_unfinished=True)
    result = run(policy, (1, 0, 4, 115, 100), (2, 5, 4, 10, 10), (3, 200, 4, 150, 100), kill_at_estimate=False)
    assert starts(result) == {1: 0, 2: 100, 3: 200}
    assert result.jobs["end_s"].tolist() == [100, 110, 350]  # job 3 stands in nobody's way


def test_an_unfinished_job_is_killed_where_that_is_cheaper() -> None:
    # Killing job 1 costs 1 x 10 s.  Its extension would delay job 2 by 1 s: 4 x p / (1/6) = 8 for p = SP / 3 = 1/3,
    # and 16 for p = 2/3.
    jobs = (1, 0, 1, 11, 10), (2, 5, 4, 10, 10)
    for priority_of_2, start in ((0.0, 11), (1.0, 10)):
        policy = Slack(
            awt=1.0, slack_factor=100, extend_unfinished=True, user_priority=lambda job, up=priority_of_2: up * (job.id == 2)
        )
        assert starts(run(policy, *jobs, kill_at_estimate=False))[2] == start


def test_a_job_over_quota_is_extended_only_if_nobody_is_delayed() -> None:
    def ends(*jobs: tuple[float, ...]) -> list[float]:
        policy = Slack(awt=1000.0, extend_unfinished=True, quotas=Quotas(user={7: 0.0}))
        return run(policy, *jobs, kill_at_estimate=False).jobs["end_s"].tolist()

    assert ends((1, 0, 4, 115, 100, 7), (2, 5, 4, 10, 10)) == [100, 110]
    assert ends((1, 0, 4, 115, 100, 7)) == [115]


def test_a_kill_comes_first_and_the_start_on_its_nodes_in_a_second_call() -> None:
    policy = Slack(awt=10.0, slack_factor=0, extend_unfinished=True)
    run = policy.start(setup(4, kill=False))
    one, two = queued(1, 4, 100), queued(2, 4, 10)
    view = View()
    view.now, view.idle, view.waiting, view.running = 0, 4, {1: one, 2: two}, {}
    everything: NodeSet = (0, 4)
    assert run.decide(Batch([], [one, two], False), view) == [
        Start(job=one),
        Reserve(job=two, start=100 * S),
        WakeAt(time=100 * S),
    ]
    gang = RunningJob(one, 0, everything, one.nodes, one.estimate)
    view.now, view.idle, view.waiting, view.running = 100 * S, 0, {2: two}, {1: gang}
    assert run.decide(Batch([], [], True), view) == [Kill(job=one)]
    view.idle, view.running = 4, {}
    assert run.decide(Batch([gang], [], False), view) == [Start(job=two), WakeAt(time=110 * S)]


def test_where_nothing_kills_jobs_and_none_is_extended_everybody_gives_way() -> None:
    result = run("slack:awt=10", (1, 0, 4, 150, 100), (2, 5, 4, 10, 10), kill_at_estimate=False)
    assert starts(result)[2] >= 150


# A year of KTH (Talby & Feitelson 1999), 128 processors.
@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "least", "most"),
    [
        ("heuristic=ast,compression=afresh", 0.10, 0.20),
        ("heuristic=aat,compression=in-place", 0.10, 0.20),
        ("heuristic=aat,compression=shift", 0.10, 0.20),
        ("slack_factor=0", 0.05, 0.15),
    ],
)
def test_kth_waits_less_than_under_conservative_and_without_slack_still_less(options: str, least: float, most: float) -> None:
    workload = cm.read_swf(trace_path("KTH-SP2-1996-2.2"))
    conservative, slack = (
        cm.Scenario(machine=cm.Machine(nodes=128), workload=workload, policy=policy).run()
        for policy in ("conservative", f"slack:{options}")
    )
    assert least < 1 - slack.summary().mean_wait_s / conservative.summary().mean_wait_s < most
    assert not (slack.jobs["start_s"] > slack.jobs["reserved_s"]).any()
