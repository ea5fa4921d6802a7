"""Partitions without common nodes: schedules are those of separate machines, whatever happens in the other partitions."""

import numpy as np
import pandas as pd
import pytest

from clustermodel import Job, Machine, Partition, Scenario, Workload
from clustermodel.machine.node_set import IdleNodes, NodeSet, as_mask, from_mask, lowest
from clustermodel.policies.disjoint_partitions import runs_of_partitions
from clustermodel.policies.fcfs import Fcfs
from clustermodel.policies.interface import Run, Setup
from clustermodel.sim.partitions import Partitions
from clustermodel.workload.job import Demand
from tests.bench.partitions import site
from tests.property.strategies import cases
from tests.unit.test_partitions import job, parts, run, starts

POLICIES = (
    "fcfs",
    "easy",
    "easy:reserve_depth=3",
    "easy:reservation=kept,backfill_order=shortest",
    "conservative",
    "conservative:queue_order=shortest",
    "1/L",
)
SIZES = {"a": 5, "b": 6, "c": 5}
COLUMNS = ["start_s", "end_s", "status", "reserved_s"]


def random_jobs(seed: int, names: list[str]) -> Workload:
    rng = np.random.default_rng(seed)

    def one(number: int) -> Job:
        run_s, name = int(rng.integers(1, 40)), str(rng.choice(names))
        fields = {"estimate_s": run_s * float(rng.choice([0.5, 1, 2, 3])), "priority": int(rng.integers(0, 2))}
        return job(number, int(rng.integers(0, 200)), int(rng.integers(1, 6)), run_s, name or None, **fields)

    return Workload.from_jobs([one(number) for number in range(1, 61)])


def machine(**default: bool) -> Machine:
    return Machine(nodes=16, partitions=[Partition(name="a", nodes="0-4", **default), *parts(b="5-10", c="11-15")])


def alone(workload: Workload, jobs: pd.Series, name: str, policy: str) -> pd.DataFrame:
    own = Workload.from_frame(workload.frame[jobs].drop(columns="partition"))
    return Scenario(workload=own, machine=Machine(nodes=SIZES[name]), policy=policy).run().jobs.set_index("job")


@pytest.mark.parametrize("policy", POLICIES)
def test_each_has_the_schedule_of_a_machine_of_its_own(policy: str) -> None:
    for seed in range(cases(8, fewest=4)):
        workload = random_jobs(seed, ["a", "b", "c", ""])
        together = Scenario(workload=workload, machine=machine(default=True), policy=policy).run().jobs.set_index("job")
        partition = workload.frame["partition"].fillna("a")
        for name in SIZES:
            separate = alone(workload, partition == name, name, policy)
            pd.testing.assert_frame_equal(separate[COLUMNS], together.loc[separate.index, COLUMNS])


@pytest.mark.parametrize("policy", POLICIES)
def test_partitions_of_which_a_job_may_have_either_are_scheduled_together_and_others_separately(policy: str) -> None:
    for seed in range(cases(8, fewest=4)):
        workload = random_jobs(seed, ["a", "b", "c", "a,b"])
        together = Scenario(workload=workload, machine=machine(), policy=policy).run().jobs.set_index("job")
        in_c = workload.frame["partition"] == "c"
        others = Scenario(workload=Workload.from_frame(workload.frame[~in_c]), machine=machine(), policy=policy).run().jobs
        for expected in (alone(workload, in_c, "c", policy), others.set_index("job")):
            pd.testing.assert_frame_equal(expected[COLUMNS], together.loc[expected.index, COLUMNS])


@pytest.mark.parametrize(("unused", "is_within_ab"), [("0-15", False), ("5-15", False), ("2-8", True)])
def test_a_partition_that_no_job_names_leaves_others_separate(unused: str, is_within_ab: bool) -> None:
    started: list[tuple[int, list[NodeSet]]] = []

    class Noted(Fcfs):
        def start(self, setup: Setup) -> Run:
            if setup.disjoint:
                return runs_of_partitions(self, setup)
            started.append((setup.nodes, list(setup.node_sets)))
            return super().start(setup)

    def waits(names: list[str], *more: Partition) -> list[float]:
        partitioned = Machine(nodes=16, partitions=[*machine().partitions, *more])
        return list(Scenario(workload=random_jobs(1, names), machine=partitioned, policy=Noted()).run().jobs["wait_s"])

    sets = [(0, 5), (5, 11), *([parts(unused=unused)[0].node_set] if is_within_ab else [])]
    for names, setups in (["a", "b", "c"], [(5, []), (5, []), (6, [])]), (["c", "a,b"], [(5, []), (16, sets)]):
        expected = waits(names)
        del started[:]
        assert waits(names, *parts(unused=unused)) == expected
        assert sorted(started) == setups


@pytest.mark.parametrize("policy", POLICIES)
def test_jobs_without_a_partition_tie_all_of_them(policy: str) -> None:
    # Job 3 may have all nodes, and waits for all; job 4 would delay it.
    jobs = [job(1, 0, 4, 100, "a"), job(2, 0, 4, 50, "b"), job(3, 1, 8, 10, None), job(4, 2, 4, 200, "b")]
    assert starts(run(jobs, parts(a="0-3", b="4-7"), policy=policy))[2] == 100


def test_parts_without_common_nodes() -> None:
    def disjoint(*named: str | None, **default: bool) -> list[tuple[int, ...]]:
        demands = {Demand(partition=names) if names else None: 1 for names in named}
        return sorted(Partitions(machine(**default), demands).disjoint())

    assert disjoint("a", "b", "c") == [(0, 5), (5, 11), (11, 16)]
    assert disjoint("a", "c, b", "a,unknown") == [(0, 5), (5, 16)]
    assert disjoint("a,c", "b") == [(0, 5, 11, 16), (5, 11)]
    assert disjoint("a,b", "b,c") == disjoint("a") == disjoint("unknown") == []
    assert disjoint("b", None, default=True) == disjoint("b", default=True) == [(0, 5), (5, 11)]
    assert disjoint("a", "b", None) == []  # other jobs may have all nodes


def test_lowest_idle_nodes_of_some() -> None:
    rng = np.random.default_rng(5)
    for _ in range(300):
        busy, some = (int(rng.integers(1, 1 << 20)) & int(rng.integers(1, 1 << 20)) for _ in range(2))
        idle = IdleNodes(20)
        assert idle.take(from_mask(busy))
        common, nodes = some & ~busy, int(rng.integers(1, 8))
        found = idle.lowest_of(from_mask(some), nodes)
        expected = lowest(common, nodes) if common.bit_count() >= nodes else None
        assert (None if found is None else as_mask(found)) == expected


def test_the_bench_has_the_schedules_of_four_machines() -> None:
    quarter = random_jobs(1, [""]).frame
    four = pd.concat([quarter.assign(job=quarter["job"] + 60 * k, submit_s=quarter["submit_s"] + 300 * k) for k in range(4)])
    together = site(Workload.from_frame(four), "conservative").run().jobs.sort_values("job")
    waits = together["wait_s"].to_numpy().reshape(4, -1)
    assert (waits == waits[0]).all()
