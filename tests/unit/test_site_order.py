"""The order of a site: fair shares and weighted factors, by hand and against a few lines of arithmetic."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from clustermodel import FairShare, Job, Limits, Machine, Multifactor, Result, Scenario, Site, Workload
from clustermodel.measure.input_notes import run_notes
from clustermodel.policies.queue_order import SITE_ORDERS
from clustermodel.policies.registry import policy_names
from clustermodel.site.order import ORDERS
from tests.conftest import refusal

HOUR = 3600.0


def run(
    jobs: list[tuple[Any, ...]], order: FairShare | Multifactor | str, policy: str = "fcfs", nodes: int = 1, **fields: Any
) -> Result:
    """Run jobs of one node, given by submission and run time (hours), user and account."""
    frame = pd.DataFrame(jobs, columns=["submit_s", "run_s", "user", "account"]).assign(nodes=1)
    frame[["submit_s", "run_s"]] *= HOUR
    machine, site = Machine(nodes=nodes), Site(order=order)
    return Scenario(workload=Workload.from_frame(frame), machine=machine, policy=policy, site=site, **fields).run()


def starts(result: Result) -> list[float]:
    return [start / HOUR for start in result.jobs["start_s"]]


def test_users_who_have_used_less_come_first() -> None:
    # User 1 uses the node for ten hours; then user 2 comes first although user 1 submitted earlier.
    jobs = [(0, 10, 1, "a"), (1, 1, 1, "a"), (2, 1, 2, "a")]
    assert starts(run(jobs, "fair-share")) == [0, 11, 10]
    assert starts(run(jobs, FairShare(user_shares={"1": 1000}))) == [0, 11, 10]  # any use at all is more than none


def test_shares_of_users_weigh_their_usage() -> None:
    # At 3 h user 1 has used two hours and user 2 one hour; with three shares user 1 has used less of what is its own.
    jobs = [(0, 2, 1, "a"), (0, 1, 2, "a"), (0.5, 1, 1, "a"), (0.5, 1, 2, "a")]
    month = 30 * 24 * HOUR
    assert starts(run(jobs, FairShare(half_life_s=month))) == [0, 2, 4, 3]
    assert starts(run(jobs, FairShare(half_life_s=month, user_shares={"1": 3}))) == [0, 2, 3, 4]


def test_accounts_are_compared_before_users() -> None:
    # Account a has used nothing: its user 3 comes before user 2 of account b, who has used nothing either.
    jobs = [(0, 5, 1, "b"), (1, 1, 2, "b"), (2, 1, 3, "a")]
    assert starts(run(jobs, "fair-share")) == [0, 6, 5]
    # Without accounts, users 2 and 3 are alike, and the first to come is served first.
    assert starts(run([(*job[:3], None) for job in jobs], "fair-share")) == [0, 5, 6]


def test_usage_is_forgotten_with_its_half_life() -> None:
    # User 1 used 4 h long ago, user 2 one hour just now: which is more depends on the half-life.
    jobs = [(0, 4, 1, "a"), (20, 1, 2, "a"), (20.5, 1, 2, "a"), (20.6, 1, 1, "a")]
    assert starts(run(jobs, FairShare(half_life_s=100 * HOUR))) == [0, 20, 21, 22]
    assert starts(run(jobs, FairShare(half_life_s=4 * HOUR))) == [0, 20, 22, 21]


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("half_life_h", [0.5, 3.0, 24.0])
def test_fair_share_of_two_users_against_a_few_lines(half_life_h: float, nodes: int) -> None:
    rng = np.random.default_rng(3)
    jobs = [
        (0.0, float(run_h), int(user), None)
        for run_h, user in zip(rng.uniform(0.1, 2, 60), rng.integers(1, 3, 60), strict=True)
    ]
    result = run(jobs, FairShare(half_life_s=half_life_h * HOUR), nodes=nodes)
    # All jobs are there from the beginning.  When a node is free, the user comes first for whom the integral over the past
    # of nodes in use x 2 to the power of -(time since then / half-life) is less.
    ran: list[tuple[int, float, float]] = []

    def used(user: int, now: float) -> float:
        of_user = [(begin, min(end, now)) for other, begin, end in ran if other == user]
        return sum(0.5 ** ((now - end) / half_life_h) - 0.5 ** ((now - begin) / half_life_h) for begin, end in of_user)

    expected, free, left = [0.0] * 60, [0.0] * nodes, list(range(60))
    while left:
        now = min(free)
        number = min(left, key=lambda job: (used(jobs[job][2], now), job))
        left.remove(number)
        expected[number] = now
        ran.append((jobs[number][2], now, now + jobs[number][1]))
        free[free.index(now)] = now + jobs[number][1]
    assert starts(result) == pytest.approx(expected, abs=1e-6)


def test_usage_counts_while_jobs_run() -> None:
    # Two nodes: user 1 runs a long job on one; its second job comes after that of user 2, although nothing of it has ended.
    frame = pd.DataFrame(
        {"submit_s": [0, 0, 100, 200], "run_s": [1e4, 500, 10, 10], "nodes": 1, "user": [1, 3, 1, 2]}
    )  # fmt: skip
    site = Site(order="fair-share")
    result = Scenario(workload=Workload.from_frame(frame), machine=Machine(nodes=2), policy="fcfs", site=site).run()
    assert list(result.jobs["start_s"]) == [0, 0, 510, 500]


def test_priority_comes_before_the_order_and_the_order_before_arrival() -> None:
    jobs = [
        Job(id=1, nodes=1, submit_s=0, run_s=100, user=1),
        Job(id=2, nodes=1, submit_s=1, run_s=10, user=2),
        Job(id=3, nodes=1, submit_s=2, run_s=10, user=1, priority=1),
    ]
    site = Site(order="fair-share")
    result = Scenario(workload=Workload.from_jobs(jobs), machine=Machine(nodes=1), policy="fcfs", site=site).run()
    assert list(result.jobs["start_s"]) == [0, 110, 100]


def test_factors_of_multifactor() -> None:
    jobs = [
        Job(id=1, nodes=4, submit_s=0, run_s=100),
        Job(id=2, nodes=1, submit_s=1, run_s=10, partition="low"),
        Job(id=3, nodes=4, submit_s=2, run_s=10, partition="high"),
        Job(id=4, nodes=4, submit_s=3, run_s=10, qos="gold"),
    ]
    workload, machine = Workload.from_jobs(jobs), Machine(nodes=4)

    def order(**fields: Any) -> list[int]:
        site = Site(order=Multifactor(**fields))
        table = Scenario(workload=workload, machine=machine, policy="fcfs", site=site).run().jobs
        return list(table.sort_values("start_s", kind="stable")["job"])

    assert order() == [1, 2, 3, 4]
    assert order(age=0, size=1) == [1, 3, 4, 2]
    assert order(age=0, partition=1, partitions={"high": 1, "low": 0.5}) == [1, 3, 2, 4]
    assert order(age=0, qos=1, partition=0.5, qos_values={"gold": 1}, partitions={"high": 1}) == [1, 4, 3, 2]
    # Age grows up to its bound: within 100 s all reach it, and arrival decides.
    assert order(age=1, max_age_s=10, partition=0.5, partitions={"high": 1}) == [1, 3, 2, 4]


def test_fair_share_as_a_factor() -> None:
    jobs = [(0, 10, 1, "a"), (1, 1, 1, "a"), (2, 1, 2, "a")]
    assert starts(run(jobs, Multifactor(age=0, fair_share=1))) == [0, 11, 10]
    assert starts(run(jobs, Multifactor(age=0, fair_share=1, user_shares={"1": 1e9}))) == [0, 11, 10]
    assert starts(run(jobs, Multifactor(age=1, fair_share=0))) == [0, 10, 11]
    # Nine hours of age weigh more than any share.
    assert starts(run(jobs, Multifactor(age=100, max_age_s=24 * HOUR, fair_share=0.1))) == [0, 10, 11]


@pytest.mark.parametrize("policy", policy_names())
def test_every_policy_takes_an_order_or_a_note_says_so(policy: str) -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "submit_s": np.sort(rng.integers(0, 2000, 200)),
            "nodes": rng.integers(1, 9, 200),
            "run_s": rng.integers(1, 200, 200),
            "user": rng.choice([1, 1, 1, 1, 2, 3], 200),
        }
    )
    frame["estimate_s"] = frame["run_s"] * rng.integers(1, 4, 200)
    scenario = Scenario(workload=Workload.from_frame(frame), machine=Machine(nodes=8), policy=policy)
    result = replace(scenario, site=Site(order="fair-share:half_life_s=600")).run()
    table = result.jobs
    is_noted = any("the order of the site breaks at most ties" in note.fact for note in run_notes([result]))
    assert is_noted == (
        policy in ("ss", "srtf", "srsf", "las") or policy.removesuffix("-NG") in ("P", "R", "1/L", "P/L", "R/L")
    )
    is_the_same = table["start_s"].equals(scenario.run().jobs["start_s"])
    assert not is_the_same or is_noted
    assert is_the_same or policy not in ("ss", "srtf", "srsf")
    assert (table["status"] != "rejected").all()
    assert table["end_s"].notna().all()
    assert result.summary().delayed is None
    if policy == "conservative":  # what is guaranteed is kept, whoever comes first
        reserved = table[table["reserved_s"].notna()]
        assert (reserved["start_s"] <= reserved["reserved_s"]).all()


def test_lower_priority_is_not_defined_for_an_order_that_changes() -> None:
    result = run([(0, 1, 1, None)], "fair-share")
    assert "the order of the site changes with time" in refusal(result.fairness)


def test_orders_in_texts_and_files(tmp_path: Path) -> None:
    assert Site(order="fair-share:half_life_s=60").order == FairShare(half_life_s=60)
    site = Site(order=Multifactor(partition=2, partitions={"high": 1.0}), limits=Limits(nodes=3))
    path = tmp_path / "site.toml"
    site.to_toml(path)
    assert Site.from_toml(path) == site
    path.write_text('order = "fair-share:half_life_s=60"\n')
    assert Site.from_toml(path) == Site(order=FairShare(half_life_s=60))
    for text, message in (
        ('order = "fair"', "order: 'fair' is not allowed (did you mean 'fair-share'?)"),
        ("order = 1", "order: 1 is not allowed; it must be a text, or a table whose name is fair-share or multifactor"),
        ('[order]\nname = "multifactor"\nages = 1', "order.ages: unknown key (did you mean 'age'?)"),
        ('[order]\nname = "multifactor"\nage = -1', "order.age: -1 is not allowed; it must be a finite number >= 0"),
    ):
        path.write_text(text)
        assert message in refusal(lambda: Site.from_toml(path))
    for order, message in (
        ("fair-share:half=1", "order fair-share: 'half' is not allowed"),
        ("fair-share:half_life_s=x", "order fair-share: half_life_s: 'x' is not a number"),
        ("fair-share:half_life_s=0", "FairShare.half_life_s: 0.0 is not allowed"),
    ):
        assert message in refusal(lambda: Site(order=order))  # noqa: B023
    assert "Site.order: 3 is not allowed" in refusal(lambda: Site(order=3))  # type: ignore[arg-type]
    assert "user_shares.ann: 0 is not allowed" in refusal(lambda: FairShare(user_shares={"ann": 0}))


# (submission, run time in hours, user, account): bio and astro are below physics, which has 5 shares; chem has one.
TREE = [
    (0, 2, 1, "bio"), (0, 1, 2, "astro"), (0, 1, 3, "chem"), (3.5, 1, 1, "bio"), (3.5, 1, 2, "astro"), (3.5, 1, 3, "chem"),
]  # fmt: skip


def test_accounts_are_compared_level_by_level() -> None:
    # At 2 h physics has used 2 of 5 shares, chem nothing; at 3 h chem 1 of 1.  At 4 h physics has used 3, chem 1: physics
    # first, and in it astro (1 h) before bio (2 h); at 5 h physics has used 4 of 5, chem still 1 of 1.
    month = 30 * 24 * HOUR
    tree = {"physics": 5, "physics/bio": 1, "physics/astro": 1}
    assert starts(run(TREE, FairShare(half_life_s=month, account_shares=tree))) == [0, 3, 2, 5, 4, 6]
    assert starts(run(TREE, FairShare(half_life_s=month))) == [0, 2, 3, 6, 4, 5]  # on one level


def test_users_of_an_account_stand_beside_the_accounts_below_it() -> None:
    # User 2 of physics itself has used one hour, bio two: user 2 comes before user 3 of bio, who has used nothing.
    jobs = [(0, 2, 1, "bio"), (0, 1, 2, "physics"), (0.5, 1, 3, "bio"), (0.6, 1, 2, "physics")]
    assert starts(run(jobs, FairShare(half_life_s=1e8, account_shares={"physics/bio": 1}))) == [0, 2, 4, 3]


def test_users_with_the_share_of_their_account_share_its_usage() -> None:
    # User 1 has used the node; user 2 of the same account comes no sooner for that, but user 3 of another account does.
    jobs = [(0, 5, 1, "a"), (1, 1, 1, "a"), (2, 1, 2, "a"), (3, 1, 3, "b")]
    assert starts(run(jobs, "fair-share")) == [0, 7, 6, 5]
    shared = {"1": "parent", "2": "parent"}
    assert starts(run(jobs, FairShare(user_shares=shared))) == [0, 6, 7, 5]
    assert starts(run(jobs, FairShare(user_shares={"a/1": "parent", "a/2": "parent"}))) == [0, 6, 7, 5]
    assert starts(run(jobs, FairShare(user_shares={"b/1": "parent", "b/2": "parent"}))) == [0, 7, 6, 5]
    # Among the users of the account, one with a share of its own is compared with what the account has used.
    assert starts(run(jobs, FairShare(user_shares={"1": "parent"}))) == [0, 7, 6, 5]
    assert starts(run(jobs, FairShare(user_shares={"2": "parent", "1": 100}))) == [0, 6, 7, 5]


def test_the_factor_of_users_who_share_is_that_of_their_account() -> None:
    order = Multifactor(age=0, fair_share=1)
    jobs = [(0, 5, 1, "a"), (1, 1, 1, "a"), (2, 1, 2, "a"), (3, 1, 3, "b")]
    assert starts(run(jobs, order)) == [0, 7, 5, 6]  # users 2 and 3 have used nothing
    shared = replace(order, user_shares={"1": "parent", "2": "parent"})
    assert starts(run(jobs, shared)) == [0, 6, 7, 5]


def test_an_account_with_the_share_of_its_parent_is_no_level() -> None:
    # Account x below p stands for nothing: its user 2 stands beside user 1 of p, not beside account y with user 3.
    shares = {"p": 1, "p/x": 1, "p/y": 1, "q": 1}
    jobs = [(0, 5, 9, "q"), (0, 4, 3, "y"), (0.1, 2, 1, "x"), (6, 1, 2, "x"), (6.1, 1, 3, "y")]
    usual = starts(run(jobs, FairShare(account_shares=shares)))
    raised = starts(run(jobs, FairShare(account_shares={**shares, "p/x": "parent"})))
    assert usual[:3] == raised[:3]
    # Users 1 and 2 of x and account y are siblings now: user 2 has used nothing.
    assert raised[3] < raised[4]
    top = FairShare(account_shares={"x": "parent"})
    assert starts(run([(0, 5, 1, "x"), (1, 1, 2, "y"), (2, 1, 3, "x")], top)) == [
        0,
        5,
        6,
    ]  # 2 of y and 3 of x have used nothing


def test_parts_of_an_account_tree_as_a_factor() -> None:
    # Of all shares, chem has 1/6, bio 5/6 x 3/4 and astro 5/6 x 1/4; all have used an hour when the last three jobs start.
    jobs = [(0, 1, user, account) for user, account in ((1, "bio"), (2, "astro"), (3, "chem"))]
    jobs += [(2.5, 1, user, account) for user, account in ((3, "chem"), (2, "astro"), (1, "bio"))]
    tree = {"physics": 5, "physics/bio": 3, "physics/astro": 1}
    order = Multifactor(age=0, fair_share=1, half_life_s=1e9, account_shares=tree)
    assert starts(run(jobs, order))[3:] == [5, 4, 3]


@pytest.mark.parametrize("shares", [{"a/b": 1, "c/b": 1}, {"b": 1, "a/b": 1}, {"a/": 1}, {"a/b/a": 1}])
def test_an_account_has_one_place(shares: dict[str, float]) -> None:
    line = refusal(lambda: FairShare(account_shares=shares))
    assert line.startswith("FairShare.account_shares: ")
    assert "an account has one name and one place" in line


@pytest.mark.parametrize("policy", ["fcfs", "easy:reserve_depth=2", "conservative", "backfilling", "gs:mpl=2", "las"])
def test_an_order_of_the_policy_is_one_of_the_site(policy: str) -> None:
    asked = f"{policy}{',' if ':' in policy else ':'}order=fair-share"
    frame = pd.DataFrame(TREE, columns=["submit_s", "run_s", "user", "account"]).assign(nodes=1)
    scenario = Scenario(workload=Workload.from_frame(frame), machine=Machine(nodes=1), policy=asked)
    result, same = scenario.run(), replace(scenario, policy=policy, site=Site(order="fair-share")).run()
    pd.testing.assert_frame_equal(result.jobs, same.jobs)
    assert result.summary().policy == asked
    assert result.summary().delayed is None
    # The site's parameters count where it has the same order.
    month = Site(order=FairShare(half_life_s=1))
    assert replace(scenario, site=month).used_site == month
    assert replace(scenario, policy=policy).used_site is None


@pytest.mark.parametrize(
    ("policy", "order", "words"),
    [
        (
            "easy:order=fairshare",
            None,
            "policy easy: parameter 'order' is unknown (did you mean 'fair-share'?)",
        ),
        *(
            (
                f"{policy}:order=fair-share:half_life_s=60",
                None,
                f"policy {policy}: order: 'fair-share:half_life_s=60' is not allowed; give the parameters of an order of the "
                "site with --order fair-share:half_life_s=60, or Site(order=...)",
            )
            for policy in ("easy", "fcfs", "backfilling", "expand")
        ),
        (
            "easy:order=fair-share",
            "multifactor",
            "policy easy:order=fair-share: the order of the site is another one",
        ),
        ("easy:order=fair-share,order=multifactor", None, "parameter 'order' is given twice"),
        ("backfilling:order=X", None, "backfilling: order: 'X'"),
    ],
)
def test_orders_of_policies_that_are_refused(policy: str, order: str | None, words: str) -> None:
    workload = Workload.from_jobs([Job(id=1, nodes=1, submit_s=0, run_s=1)])
    site = Site(order=order)
    assert words in refusal(lambda: Scenario(workload=workload, machine=Machine(nodes=1), policy=policy, site=site))


def test_the_orders_of_policies_are_those_of_sites() -> None:
    assert tuple(ORDERS) == SITE_ORDERS
