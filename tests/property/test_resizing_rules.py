"""Rules of policies that resize, on random machines: no decision is refused, and disjoint partitions are apart."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from clustermodel import (
    Checkpointing,
    DowneySpeedup,
    Job,
    LinearSpeedup,
    Machine,
    Partition,
    Power,
    Reservation,
    Result,
    Scenario,
    SizeCost,
    StrandedJobsError,
    Workload,
)  # fmt: skip
from clustermodel.machine.recorded_outages import Outages
from tests.property.strategies import cases

POLICIES = ("shrink-to-admit", "shrink-to-admit:order=fcfs,min_gain=-inf", "equipartition", "equipartition:min_gain=0.1",
            "expand", "expand:predictor=last-two,min_interval_s=10")  # fmt: skip
CHOOSING = (*POLICIES, "backfilling:width=half", "R/L:width=greedy",
            "D-NG:width=quarter,widening=3.0", "R/L-NG:width=2", "gs", "bgs", "mbgs", "P/L:widening=2.5")  # fmt: skip


def machine_of(choose: random.Random) -> Machine:
    """Return a machine with some of: reservations, failures, partitions, a cap, nodes that are switched off, start-up."""
    nodes, more = choose.choice([3, 4, 6, 8]), dict[str, Any]()

    def part() -> str:
        low = choose.randrange(nodes)
        return f"{low}-{choose.randrange(low, nodes)}"

    if choose.random() < 0.6:
        times = ((choose.choice([0, 5, 50, choose.uniform(0, 200)]), choose.choice([1, 10, 50])) for _ in range(2))
        more["reservations"] = [
            Reservation(nodes=part(), start_s=at, end_s=at + length, every_s=choose.choice([None, 100, 500]))
            for at, length in times
        ]
    if choose.random() < 0.5:
        node = np.arange(nodes)
        down_s = np.array([choose.choice([5.0, 12.0, 20.5, 108.667]) for _ in node])
        up_s = down_s + [choose.choice([1e-6, 1, 60, 1000]) for _ in node]
        more |= {"failures": Outages(node=node, down_s=down_s, up_s=up_s, nodes=nodes)}
        more["on_failure"] = choose.choice(["requeue", "shrink"])
    if choose.random() < 0.4:
        more["power"] = Power(busy_w=100, idle_w=50, off_w=5, boot_s=choose.choice([0, 15]), boot_w=50)
        more |= choose.choice([{"idle_off_s": 1}, {"power_cap_w": 90.0 * nodes + 10}])
    if choose.random() < 0.4:
        more["partitions"] = [Partition(name="a", nodes=part()), Partition(name="b", nodes=f"0-{nodes - 1}")]
    more |= choose.choice([{}, {"startup_s": SizeCost(base_s=1, per_node_s=0.5)}, {"epilog_s": 3}])
    more |= choose.choice([{}, {"resize_s": 0}, {"resize_s": 30}])
    costs = Checkpointing(checkpoint_s=5, restart_s=3, interval_s=choose.choice([None, 20]))
    return Machine(nodes=nodes, checkpointing=costs, **more)


def jobs_of(choose: random.Random, nodes: int, partitions: list[str]) -> list[Job]:
    jobs, submit_s = list[Job](), 0.0
    for number in range(1, choose.randint(2, 12)):
        asked, run_s = choose.randint(1, nodes), choose.choice([1e-6, 5, 29.9, 100])
        sizes = {"malleable": True, "min_nodes": choose.randint(1, asked), "max_nodes": choose.randint(asked, nodes)}
        more = {"partition": choose.choice(partitions)} if partitions and choose.random() < 0.9 else {}
        more |= sizes if choose.random() < 0.7 else {}
        estimate_s = run_s * choose.choice([1, 1.5, 10])
        jobs.append(Job(id=number, nodes=asked, submit_s=submit_s, run_s=run_s, estimate_s=estimate_s, user=number % 3, **more))
        submit_s = round(submit_s + choose.choice([0, 5, 20, choose.uniform(0, 60)]), 6)
    return jobs


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(40))
def test_no_start_and_no_resize_is_refused_and_jobs_keep_their_sizes(policy: str, seed: int) -> None:
    choose = random.Random(seed)
    machine = machine_of(choose)
    jobs = jobs_of(choose, machine.nodes, [each.name for each in machine.partitions])
    speedup = choose.choice([LinearSpeedup(), DowneySpeedup(sigma=1.0)])
    try:  # a DecisionError is a failure
        result = Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy=policy, speedup=speedup).run()
    except StrandedJobsError:  # by reservations that leave no time for a job
        return
    assert_sizes(result, jobs)


def assert_sizes(result: Result, jobs: list[Job], *, rigid: bool = True) -> None:
    bounds = {
        job.id: (job.min_nodes, job.max_nodes) if job.malleable else (job.nodes, job.nodes)
        for job in jobs
        if rigid or job.malleable
    }
    for attempt in result.run_attempts.itertuples():
        least, most = bounds.get(attempt.job, (attempt.nodes, attempt.nodes))
        assert least <= attempt.nodes <= most


APART = ("shrink-to-admit", "shrink-to-admit:order=fcfs", "shrink-to-admit:victim=longest,fewer=False",
         "shrink-to-admit:victim=latest,expand=asked", "shrink-to-admit:victim=largest,expand=no,order=fcfs",
         "shrink-to-admit:min_interval_s=25,min_gain=0.1", "shrink-to-admit:predictor=last-two", "expand",
         "expand:order=age,min_interval_s=10", "equipartition", "equipartition:min_interval_s=25,min_gain=-inf")  # fmt: skip


@pytest.mark.parametrize("policy", APART)
@pytest.mark.parametrize("seed", range(cases(40, fewest=6)))
def test_disjoint_partitions_are_separate_machines(policy: str, seed: int) -> None:
    """Of three partitions, the first two are one machine where jobs may have nodes of either."""
    choose = random.Random(seed)
    sizes, tied = [choose.randint(1, 5) for _ in range(3)], choose.random() < 0.3
    costs: dict[str, Any] = choose.choice([
        {"resize_s": 0}, {"resize_s": 3}, {"checkpointing": Checkpointing(checkpoint_s=4, restart_s=7)},
        {"resize_s": 2, "startup_s": 3, "epilog_s": 1.5},
        {"resize_s": 1, "idle_off_s": 20, "power": Power(busy_w=3, idle_w=1, boot_s=6)},
    ])  # fmt: skip
    first, second = sizes[0], sizes[0] + sizes[1]
    bounds = {"a": (0, first), "b": (first, second), "c": (second, sum(sizes))}
    machines = [("a", "b"), ("c",)] if tied else [("a",), ("b",), ("c",)]
    jobs = dict[tuple[str, ...], list[Job]]()
    for place, names in enumerate(machines):
        widest = min(bounds[name][1] - bounds[name][0] for name in names)
        drawn = jobs_of(choose, widest, [])
        where = ["a,b", *(choose.choice(["a", "b", "a,b"]) for _ in drawn)] if tied and not place else names * len(drawn)
        jobs[names] = [replace(job, id=3 * job.id + place, partition=name) for job, name in zip(drawn, where, strict=False)]

    def spans(machine: Machine, jobs: list[Job]) -> dict[int, tuple[float, float]]:
        table = Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy=policy).run().jobs
        return {job: (start, end) for job, start, end in zip(table["job"], table["start_s"], table["end_s"], strict=True)}

    apart = dict[int, tuple[float, float]]()
    for names, own in jobs.items():
        low, high = bounds[names[0]][0], bounds[names[-1]][1]
        parts = [Partition(name=name, nodes=f"{bounds[name][0] - low}-{bounds[name][1] - low - 1}") for name in names]
        apart |= spans(Machine(nodes=high - low, partitions=parts, **costs), own)
    parts = [Partition(name=name, nodes=f"{low}-{high - 1}") for name, (low, high) in bounds.items()]
    both = sorted([job for own in jobs.values() for job in own], key=lambda job: job.submit_s)
    assert spans(Machine(nodes=sum(sizes), partitions=parts, **costs), both) == apart


@pytest.mark.parametrize("order", ["easy", "fcfs"])
def test_a_job_that_waits_in_another_partition_keeps_no_gang_from_growing(order: str) -> None:
    jobs = [
        Job(id=1, nodes=6, submit_s=0, run_s=10, partition="b"),
        Job(id=2, nodes=1, submit_s=0, run_s=10, partition="b"),
        Job(id=3, nodes=1, submit_s=0, run_s=10, partition="a", malleable=True),
    ]
    partitions = [Partition(name="a", nodes="0-1"), Partition(name="b", nodes="2-7")]
    machine = Machine(nodes=8, partitions=partitions, resize_s=0)
    result = Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy=f"shrink-to-admit:order={order}").run()
    assert dict(zip(result.jobs["job"], result.jobs["end_s"], strict=True)) == {1: 10, 2: 20, 3: 5}


@pytest.mark.parametrize("policy", CHOOSING)
def test_every_policy_that_chooses_sizes_keeps_those_of_malleable_jobs(policy: str) -> None:
    for seed in range(20):
        choose = random.Random(seed)
        nodes = choose.choice([3, 4, 8])
        jobs = jobs_of(choose, nodes, [])
        result = Scenario(machine=Machine(nodes=nodes), workload=Workload.from_jobs(jobs), policy=policy).run()
        assert_sizes(result, jobs, rigid=policy in POLICIES)
