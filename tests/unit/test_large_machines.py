"""Time and memory do not grow with the machine, with periods or with the queue: sizes at which they could not."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from clustermodel import (
    FairShare,
    Job,
    Machine,
    NodeType,
    Partition,
    Reservation,
    Scenario,
    Site,
    SpecificationError,
    Workload,
)
from clustermodel.machine.machine import MOST_TOLD_APART
from clustermodel.plans.windows import Windows, candidates
from clustermodel.sim.site_order import SiteOrder, Usage

HUGE = 10**7
RESIZING = ("shrink-to-admit", "shrink-to-admit:order=fcfs,expand=asked", "expand", "expand:order=age", "equipartition")


def malleable_jobs(nodes: int, **more: Any) -> list[Job]:
    sizes = (nodes // 3, nodes // 2, nodes, nodes // 7, nodes // 5)
    return [
        Job(id=k, nodes=sizes[k % 5], submit_s=7 * k, run_s=100, malleable=k % 3 > 0,
            min_nodes=sizes[k % 5] // 9 if k % 3 else None,
            max_nodes=nodes if k % 3 else None, **more)
        for k in range(1, 25)
    ]  # fmt: skip


@pytest.mark.parametrize("policy", RESIZING)
def test_resizes_on_ten_million_nodes(policy: str) -> None:
    machine = Machine(nodes=HUGE, resize_s=1)
    result = Scenario(machine=machine, workload=Workload.from_jobs(malleable_jobs(HUGE)), policy=policy).run()
    assert set(result.jobs["status"]) == {"completed"}
    assert (result.run_attempts["nodes"] <= HUGE).all()
    assert "resized" in set(result.run_attempts["outcome"])


@pytest.mark.parametrize("policy", RESIZING)
def test_resizes_in_large_partitions(policy: str) -> None:
    nodes = 2**18
    half = nodes // 2
    machine = Machine(
        nodes=nodes,
        resize_s=1,
        partitions=[Partition(name="a", nodes=f"0-{half - 1}"), Partition(name="b", nodes=f"{half // 2}-{nodes - 1}")],
    )
    jobs = [*malleable_jobs(half, partition="a")[:9], *malleable_jobs(half, partition="b")[9:]]
    result = Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy=policy).run()
    assert set(result.jobs["status"]) == {"completed"}


@pytest.mark.parametrize(
    "told_apart",
    [
        {"partitions": [Partition(name="a", nodes="0-999999998")]},
        {"node_types": [NodeType(name="a", nodes="0-999999998")]},
        {"reservations": [Reservation(start_s=0, end_s=1)]},
    ],
)
def test_more_nodes_than_a_set_may_have_are_refused(told_apart: dict[str, Any]) -> None:
    (name,) = told_apart
    refused = f"Machine.nodes: 999999999 is not allowed with {name}; it must be at most 16,777,216, a bit for each in a set"
    with pytest.raises(SpecificationError, match=f"^{refused}$"):
        Machine(nodes=999_999_999, **told_apart)
    assert MOST_TOLD_APART == 16_777_216


def test_nodes_of_partitions_are_ranges() -> None:
    nodes = MOST_TOLD_APART
    machine = Machine(nodes=nodes, partitions=[Partition(name="a", nodes=f"5-{nodes - 1},0-3,2")])
    assert machine.partitions[0].nodes == f"0-3,5-{nodes - 1}"
    assert machine.sets_of_nodes() == [(0, 4, 5, nodes)]
    jobs = [Job(id=k, nodes=nodes // 2, submit_s=0, run_s=1, partition="a") for k in (1, 2, 3)]
    assert list(Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy="easy").run().jobs["start_s"]) == [0, 1, 2]


@pytest.mark.parametrize("every_s", [2e-6, 0.5, 0.999999])
def test_a_period_below_a_second_is_refused(every_s: float) -> None:
    with pytest.raises(SpecificationError, match=r"^Reservation.every_s: .* is not allowed; it must be at least 1 s, as each"):
        Reservation(start_s=0, end_s=1e-6, every_s=every_s)


def test_windows_that_a_job_does_not_fit_between_are_no_candidates() -> None:
    nodes, second = (0, 4), 10**6
    windows = Windows([(nodes, 50 * second, 150 * second, 101 * second), (nodes, 3 * second, 4 * second, 1000 * second)], 2)
    found = list(candidates([0, 10 * second], windows.all, windows.settled, 25 * second))
    # The gaps of the first are a second: of the second, all that recurs has been there once after a period.
    assert found == [0, 4 * second, 10 * second, 1004 * second]
    assert len(list(candidates([0, 10 * second], windows.all, windows.settled, second))) > 900  # a job of a second fits
    # Where a step has no room, the ends of windows in it are none either: a year of turns of two seconds takes no time.
    windows = Windows([(nodes, 0, second, 2 * second)], 1)
    year = 365 * 86_400 * second
    assert list(candidates([5, year], windows.all, 0, 1, lambda step: step == 1)) == [year, year + second]


def test_what_can_never_start_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from clustermodel.plans import pool_plans

    looked = []

    def counted(*arguments: Any, **options: Any) -> Any:
        for each in candidates(*arguments, **options):
            looked.append(each)
            yield each

    monkeypatch.setattr(pool_plans, "candidates", counted)
    # Two reservations that leave node 0 or node 1 free, never both, in turns of 101 and 97 s: 198 turns in all.
    reservations = [
        Reservation(nodes="0", start_s=0, end_s=60, every_s=101, users=("9",)),
        Reservation(nodes="0-1", start_s=0, end_s=50, every_s=97, users=("9",)),
    ]
    jobs = [Job(id=1, nodes=2, submit_s=0, run_s=20, estimate_s=20)]
    jobs += [Job(id=k, nodes=1, submit_s=60.0 * k, run_s=3, estimate_s=3) for k in range(2, 150)]
    Scenario(machine=Machine(nodes=2, reservations=reservations), workload=Workload.from_jobs(jobs), policy="easy").run()
    assert len(looked) < 5_000


def test_usage_changes_only_where_jobs_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, given = [], []
    at: Callable[..., float] = Usage.at
    give: Callable[..., None] = SiteOrder._give
    monkeypatch.setattr(Usage, "at", lambda self, place, now: asked.append(place) or at(self, place, now))
    monkeypatch.setattr(SiteOrder, "_give", lambda self, job, key: given.append(job.id) or give(self, job, key))
    jobs = [Job(id=k, nodes=1, submit_s=0, run_s=1 + k % 7, user=k, account=f"a{k % 50}") for k in range(1, 1001)]
    scenario = Scenario(
        machine=Machine(nodes=1), workload=Workload.from_jobs(jobs), policy="fcfs", site=Site(order=FairShare())
    )
    result = scenario.run()
    assert set(result.jobs["status"]) == {"completed"}
    # One job runs at a time: a user and an account, whose 20 jobs have new keys.  All would be half a million of each.
    assert len(asked) < 60_000
    assert len(given) < 60_000


def test_the_order_of_fair_shares_is_that_of_usage_computed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    half_life, users = 500.0, range(1, 8)
    jobs = [
        Job(id=k, nodes=1 + k % 3, submit_s=11.0 * k, run_s=20 + 37 * k % 90, user=users[k * k % 7], account="ab"[k % 2])
        for k in range(1, 120)
    ]
    scenario = Scenario(
        machine=Machine(nodes=4),
        workload=Workload.from_jobs(jobs),
        policy="fcfs",
        site=Site(order=FairShare(half_life_s=half_life)),
    )
    frame: pd.DataFrame = scenario.run().jobs.set_index("job")
    ran = [(job.account, job.user, job.nodes, frame["start_s"][job.id], frame["end_s"][job.id], job.id) for job in jobs]

    def used(now: float, account: str | None, user: int | None) -> float:
        return sum(
            nodes * (0.5 ** ((now - min(end, now)) / half_life) - 0.5 ** ((now - start) / half_life))
            for a, u, nodes, start, end, _ in ran
            if start < now and a == account and user in (None, u)
        )

    for account, user, _, start, _, number in ran:  # whoever starts is the first of those who wait
        mine = used(start, account, None), used(start, account, user)
        for other in jobs:
            if other.submit_s <= start < frame["start_s"][other.id] and other.id != number:
                theirs = used(start, other.account, None), used(start, other.account, other.user)
                assert mine <= theirs or mine == pytest.approx(theirs, rel=1e-9)
