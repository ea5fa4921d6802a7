"""Limits that a log shows: found where a schedule was made with them, not where it was made without, each with its evidence."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clustermodel import Limits, Machine, Scenario, Site, Workload
from clustermodel.measure.inferred_site import infer_limits, inferred_site
from tests.conftest import Finished, refusal
from tests.shared_data import SHARED

NODES = 16
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


def log_of(frame: pd.DataFrame, *limits: Limits, policy: str = "easy") -> Workload:
    """Return a schedule made with limits as a log."""
    workload, machine = Workload.from_frame(frame), Machine(nodes=NODES)
    made = Scenario(workload=workload, machine=machine, policy=policy, site=Site(limits=limits)).run().jobs
    return Workload.from_frame(frame.assign(wait_s=made.set_index("job")["wait_s"].reindex(frame["job"]).to_numpy()))


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_schedule_without_limits_shows_none(policy: str, seed: int) -> None:
    assert infer_limits(log_of(jobs(seed), policy=policy), NODES) == []


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
    (found,) = infer_limits(log_of(jobs(), limit), NODES)
    assert found.limits == limit
    assert found.share > 0.9
    assert found.jobs > 20


def test_with_the_rules_that_a_log_shows_its_waits_come_out() -> None:
    frame = jobs()
    log = log_of(frame, Limits(user=2, running_jobs=1), Limits(account="geo", nodes=5))
    rules = inferred_site(infer_limits(log, NODES))
    assert set(rules.limits) == {Limits(user=2, running_jobs=1), Limits(account="geo", nodes=5)}
    machine = Machine(nodes=NODES)
    with_rules = Scenario(workload=log, machine=machine, policy="easy", site=rules).run().summary()
    without = Scenario(workload=log, machine=machine, policy="easy").run().summary()
    recorded_s = log.seconds("wait").mean()
    assert with_rules.mean_wait_s == pytest.approx(recorded_s)
    assert without.mean_wait_s < recorded_s / 2


def test_one_job_at_a_time_is_no_evidence_where_jobs_do_not_wait() -> None:
    frame = pd.DataFrame(
        {"job": range(1, 101), "submit_s": [600.0 * n for n in range(100)], "nodes": 1, "run_s": 300.0, "user": 1}
    )
    assert infer_limits(log_of(frame), NODES) == []


def test_a_log_without_waits_shows_nothing() -> None:
    assert "has no recorded waits" in refusal(lambda: infer_limits(Workload.from_frame(jobs()), NODES))


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
    assert rule["evidence"]["jobs"] > 3000
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
