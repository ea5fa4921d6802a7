"""Limits that a log shows: found where a schedule was made with them, not where it was made without, each with its evidence."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clustermodel import FairShare, Limits, Machine, Multifactor, Scenario, Site, Workload
from clustermodel.site.inferred_site import InferredSite, inferred_site
from clustermodel.site.recorded_schedule import InferredRule
from tests.conftest import Finished, refusal
from tests.shared_data import SHARED

NODES = 16
WEEK_S = 7 * 86_400
Command = Callable[..., Finished]


def jobs(seed: int = 1, number: int = 1500) -> pd.DataFrame:
    """Return jobs of six users in two accounts, so many that users have several at a time."""
    rng = np.random.default_rng(seed)
    user = rng.integers(1, 7, number)
    return pd.DataFrame(
        {
            "job": np.arange(1, number + 1),
            "submit_s": np.round(np.cumsum(rng.exponential(400, number))),
            "nodes": rng.choice([1, 2, 4], number, p=[0.5, 0.3, 0.2]),
            "run_s": np.round(rng.exponential(1500, number)) + 60,
            "user": user,
            "account": np.where(user <= 3, "bio", "geo"),
        }
    )


def jobs_of_queues(seed: int = 1, number: int = 2500) -> pd.DataFrame:
    """Return jobs of ten users with queues and estimates that say nothing about each other, at a load of 0.85."""
    rng = np.random.default_rng(seed)
    estimate = rng.choice([600.0, 1800.0, 3600.0, 7200.0, 14_400.0], number)
    run = np.minimum(np.round(rng.exponential(1500, number)) + 60, estimate)
    nodes = rng.choice([1, 2, 4, 8], number, p=[0.4, 0.3, 0.2, 0.1])
    gap_s = float((nodes * run).mean()) / NODES / 0.85
    return pd.DataFrame(
        {
            "job": np.arange(1, number + 1),
            "submit_s": np.round(np.cumsum(rng.exponential(gap_s, number))),
            "nodes": nodes,
            "run_s": run,
            "estimate_s": estimate,
            "user": rng.integers(1, 11, number),
            "queue": rng.choice(["high", "normal", "low"], number, p=[0.2, 0.5, 0.3]),
        }
    )


def log_of(
    frame: pd.DataFrame, *limits: Limits, policy: str = "easy", order: Multifactor | FairShare | None = None
) -> Workload:
    """Return a schedule made with rules as a log."""
    workload, machine = Workload.from_frame(frame), Machine(nodes=NODES)
    made = Scenario(workload=workload, machine=machine, policy=policy, site=Site(limits=limits, order=order)).run().jobs
    return Workload.from_frame(frame.assign(wait_s=made.set_index("job")["wait_s"].reindex(frame["job"]).to_numpy()))


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
def test_a_schedule_without_limits_shows_none(policy: str, seed: int) -> None:
    assert inferred_site(log_of(jobs(seed), policy=policy), NODES) == InferredSite([], [])


@pytest.mark.parametrize(
    "limit",
    [
        Limits(user=2, running_jobs=1),
        Limits(user=2, nodes=4),
        Limits(user="*", running_jobs=1),
        Limits(account="bio", running_jobs=2),
        Limits(account="geo", nodes=5),
    ],
    ids=lambda limit: str(limit.of_whom),
)
def test_a_schedule_with_a_limit_shows_this_limit(limit: Limits) -> None:
    inferred = inferred_site(log_of(jobs(), limit), NODES)
    assert inferred.site == Site(limits=(limit,))
    (rule,) = inferred.rules
    assert rule.evidence["share"] > 0.9
    assert rule.evidence["jobs"] > 20
    assert inferred.windows == []


@pytest.mark.parametrize("limit", [Limits(user="*", running_jobs=2), Limits(user=2, running_jobs=1)], ids=str)
def test_a_limit_shows_on_a_busy_machine_where_jobs_also_wait_for_reserved_nodes(limit: Limits) -> None:
    busy = jobs_of_queues(number=1500).assign(queue="one", user=lambda frame: frame["user"] % 5 + 1)
    (rule,) = inferred_site(log := log_of(busy, limit), NODES).rules
    assert Site(limits=(limit,)) == inferred_site(log, NODES).site
    assert rule.evidence["prompt"] > 0.5


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative", "P", "server-filling"])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_queues_without_rules_show_none(policy: str, seed: int) -> None:
    assert inferred_site(log_of(jobs_of_queues(seed), policy=policy), NODES) == InferredSite([], [])


def test_neither_fair_shares_nor_an_order_by_size_are_priorities_of_queues() -> None:
    frame = jobs_of_queues()
    assert inferred_site(log_of(frame, order=FairShare()), NODES).rules == []
    by_size = frame.assign(queue=np.where(frame["nodes"] >= 4, "wide", "narrow"))
    for policy in ("easy", "server-filling"):
        rules = inferred_site(log_of(by_size, policy=policy), NODES).rules
        assert [(rule.kind, rule.who, rule.limit) for rule in rules] == [("job_nodes", "narrow", 2)]  # which is how it was made


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize(
    "order",
    [
        Multifactor(queue=2, queues={"high": 1, "normal": 0.5, "low": 0}),
        Multifactor(queue=1, queues={"high": 0, "normal": 0, "low": 1}),
    ],
    ids=["three", "two"],
)
def test_priorities_of_queues_by_who_overtakes_whom(policy: str, order: Multifactor) -> None:
    inferred = inferred_site(log_of(jobs_of_queues(), policy=policy, order=order), NODES)
    assert inferred.site == Site(order=order)
    first = inferred.rules[0]
    assert (first.kind, first.of, first.limit) == ("priority", "queue", 1)
    passed = first.evidence["passed"]
    assert isinstance(passed, dict)
    assert all(forth > 9 * back for forth, back in passed.values())


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@pytest.mark.parametrize("limit", [Limits(queue="low", wall_time_s=3600), Limits(queue="normal", job_nodes=4)], ids=str)
def test_the_longest_and_the_largest_job_of_a_queue(policy: str, limit: Limits) -> None:
    inferred = inferred_site(log_of(jobs_of_queues(), limit, policy=policy), NODES)
    assert inferred.site == Site(limits=(limit,))
    (rule,) = inferred.rules
    assert rule.evidence["users"] == 10


def test_the_habit_of_one_user_is_no_limit_of_a_queue() -> None:
    frame = jobs_of_queues()
    frame.loc[frame["queue"] == "low", ["user", "nodes"]] = 1, 2
    assert inferred_site(log_of(frame), NODES).rules == []


def test_windows_in_which_nothing_starts() -> None:
    # Two users submit a job of ten minutes each half hour, for six weeks; from 8 to 12 on the third day of the last five
    # weeks nothing starts: nor for three hours once.
    submit = np.arange(0, 6 * WEEK_S, 1800.0)
    starts = np.repeat(submit, 2)
    windows = [(week * WEEK_S + 56 * 3600, week * WEEK_S + 60 * 3600) for week in range(1, 6)] + [(36_000, 46_800)]
    for begin, end in windows:
        starts[(starts >= begin) & (starts < end)] = end
    frame = pd.DataFrame({"submit_s": np.repeat(submit, 2), "nodes": 1, "run_s": 600.0, "user": [1, 2] * len(submit)})
    inferred = inferred_site(Workload.from_frame(frame.assign(wait_s=starts - frame["submit_s"])), NODES)
    assert inferred.rules == []
    weekly, once = inferred.windows
    assert (weekly.weeks, weekly.of_weeks, weekly.clock) == (5, 6, "day 3 8:00 to day 3 12:00")
    assert (once.begin_s, once.end_s, once.jobs, once.users, once.prompt) == (36_000, 46_800, 12, 2, 10)
    assert str(once) == (
        "nothing starts for 3 h from 36,000 s, though 12 jobs of 2 users wait, each with enough idle nodes; "
        "10 start at the end (--reservation all,start_s=36000,end_s=46800)"
    )
    assert str(weekly).endswith("(--reservation all,start_s=806400,end_s=820800,every_s=604800)")
    blocked = frame.assign(nodes=np.where(np.arange(len(frame)) % 2, 1, NODES), wait_s=starts - frame["submit_s"])
    assert len(inferred_site(Workload.from_frame(blocked), 8).windows) == 0  # jobs for which there are too few nodes


def test_no_more_than_ten_lines() -> None:
    rules = [InferredRule("nodes", "user", str(user), 1, {}, f"user {user}") for user in range(12)]
    assert list(InferredSite(rules, []).lines()) == [f"user {user}" for user in range(10)] + ["and 2 more (--json)"]


def test_with_the_rules_that_a_log_shows_its_waits_come_out() -> None:
    frame = jobs()
    log = log_of(frame, Limits(user=2, running_jobs=1), Limits(account="geo", nodes=5))
    rules = inferred_site(log, NODES).site
    assert set(rules.limits) == {Limits(user=2, running_jobs=1), Limits(account="geo", nodes=5)}
    machine = Machine(nodes=NODES)
    with_rules = Scenario(workload=log, machine=machine, policy="easy", site=rules).run().summary()
    without = Scenario(workload=log, machine=machine, policy="easy").run().summary()
    recorded_s = log.seconds("wait").mean()
    assert with_rules.mean_wait_s == pytest.approx(recorded_s)
    assert without.mean_wait_s < recorded_s / 2


def test_a_limit_is_doubted_where_all_jobs_ran_on_as_many_nodes() -> None:
    frame = jobs()
    log = log_of(frame, Limits(user=2, running_jobs=1))
    held = log.frame.merge(pd.DataFrame({"job": frame["job"]}))
    start = held["submit_s"] + held["wait_s"]
    for first, doubted in ((0, True), (held["job"] % NODES, False)):
        placed = pd.DataFrame({
            "job": held["job"], "begin_s": start, "end_s": start + held["run_s"], "first_node": first, "nodes": held["nodes"],
        })  # fmt: skip
        (rule,) = inferred_site(log.with_recorded_placements(placed), NODES).rules
        assert ("ran on the same 4 nodes: a partition" in rule.words) is doubted
        assert rule.evidence["confined"] == (4 if doubted else 0)


def test_one_job_at_a_time_is_no_evidence_where_jobs_do_not_wait() -> None:
    frame = pd.DataFrame(
        {"job": range(1, 101), "submit_s": [600.0 * n for n in range(100)], "nodes": 1, "run_s": 300.0, "user": 1}
    )
    assert inferred_site(log_of(frame), NODES) == InferredSite([], [])


def test_a_log_without_waits_shows_nothing() -> None:
    assert "has no recorded waits" in refusal(lambda: inferred_site(Workload.from_frame(jobs()), NODES))


def test_the_log_of_one_limited_user(command_line: Command, tmp_path: Path) -> None:
    path = SHARED / "traces" / "sacct" / "phillips.log.gz"
    if not path.is_file():
        pytest.skip(f"{path} is not here; the logs are not part of the repository")
    site = tmp_path / "site.toml"
    common = ("whatif", "--trace", path, "--policy", "easy", "--json")
    finished = command_line(*common, "--infer-site", "--write-site", site, "--by", "user", "--by", "size")
    assert finished.code == 0
    answer = json.loads(finished.out)
    (rule,) = answer["rules"]
    assert (rule["kind"], rule["of"], rule["limit"]) == ("running_jobs", "user", 1)
    assert isinstance(answer["windows"], list)
    assert rule["evidence"]["jobs"] > 3000
    assert rule["evidence"]["confined"] == 1  # all on one node of a partition
    without, inferred = answer["rows"]
    assert (without["policy"], without["site"], inferred["policy"], inferred["site"]) == ("easy", "none", "easy", "inferred")
    recorded_s = answer["recorded_mean_wait_s"]
    assert without["mean_wait_s"] < 0.01 * recorded_s
    assert inferred["mean_wait_s"] == pytest.approx(recorded_s, rel=0.05)
    users = [group for group in answer["groups"] if group["by"] == "user"]
    assert (users[0]["who"], users[0]["jobs"]) == (rule["who"], 3977)
    assert users[0]["gap_share"] > 0.99
    assert sum(group["jobs"] * group["recorded_mean_wait_s"] for group in users) == pytest.approx(recorded_s * without["jobs"])
    # The site file that it wrote answers the question again; two jobs at a time would have been a quarter of the wait.
    again = json.loads(command_line(*common, "--site", site).out)
    assert [row["mean_wait_s"] for row in again["rows"]] == [row["mean_wait_s"] for row in answer["rows"]]
    site.write_text(site.read_text().replace("running_jobs = 1", "running_jobs = 2"))
    two = json.loads(command_line(*common, "--site", site).out)
    assert two["rows"][1]["mean_wait_s"] == pytest.approx(0.245 * inferred["mean_wait_s"], rel=0.01)
