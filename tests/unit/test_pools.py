"""Plans over pools: schedules are those of one pool, of two machines, and on any overlapping partitions jobs keep to theirs."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from clustermodel import Job, Machine, NodeFailures, Reservation, Scenario, Workload
from clustermodel.plans.one_pool import OnePool
from clustermodel.sim.compiled import is_compiled
from tests.property.strategies import cases
from tests.unit.test_partitions import job, nodes_of, parts, run, starts

VARIANTS = (
    "fcfs",
    "easy",
    "conservative",
    "easy:backfill_order=shortest",
    "easy:reserve_depth=3",
    "easy:reservation=kept",
    "easy:predictor=last-two,correction=tsafrir,backfill_order=shortest",
    "conservative:queue_order=shortest",
    "conservative:predictor=last",
    "1/L",
    "D-NG",
    "backfilling:guarantees=selective",
    "backfilling:guarantees=relaxed",
    "1/L:speculation=0.5,test_runs=true",
    "D-NG:width=greedy,widening=2,speculation=0.3",
    "backfilling:width=greedy,widening=true",
    "ss",
    "ss:mode=checkpoint",
    "server-filling",
    "fifo-preempt",
    "fifo-preempt:mode=suspend,victim=largest",
    "fifo-preempt:skip=false,min_run_s=5",
    "srtf",
    "srsf:mode=suspend,victim=least-lost",
    "las:thresholds=20",
    "pv-easy",
    "pv-easy:mode=suspend,vb=false",
    "pv-easy:mode=checkpoint,slp=false",
    "slack:awt=20",
    "slack:awt=20,slack_factor=0,heuristic=du",
    "slack:awt=9,heuristic=aat,compression=shift",
    "slack:awt=50,heuristic=dc,compression=in-place",
    "slack:awt=20,heuristic=optimal",
)

IN_ROUNDS = ("max-min:round_s=10", "finish-time-fair:round_s=10,ahead_s=2")
"""Those that decide at the same times in all partitions."""
MODULES = (
    "fcfs.in_pools",
    "easy.in_pools",
    "slack.in_pools",
)
"""Where policies find out whether they plan over pools."""
ALIKE = ("plans.make.are_alike", "policies.rounds.are_alike", "policies.gang.are_alike", "policies.pv_easy_run.are_alike")
"""Where it is found out whether one number says what is free."""


def random_jobs(seed: int, partition: str | None = "named") -> Workload:
    rng = np.random.default_rng(seed)

    def one(number: int) -> Job:
        run_s, named = int(rng.integers(1, 40)), str(rng.choice(["a", "b", "c", "a,b", ""]))
        estimate_s = run_s * float(rng.choice([0.5, 1, 2, 3]))
        of = (named or None) if partition == "named" else partition
        return job(number, int(rng.integers(0, 80)), int(rng.integers(1, 7)), run_s, of, estimate_s=estimate_s)

    return Workload.from_jobs([one(number) for number in range(1, int(rng.integers(2, 21)))])


@pytest.mark.parametrize("policy", [*VARIANTS, *IN_ROUNDS])
def test_any_overlapping_partitions(policy: str) -> None:
    partitions = parts(a="0-5", b="3-8", c="6-11")
    own = {part.name: set(range(part.node_set[0], part.node_set[1])) for part in partitions}
    for seed in range(cases(12, fewest=4)):
        workload = random_jobs(seed)
        named = workload.frame["partition"] if "partition" in workload.frame else pd.Series([None] * len(workload))
        result = Scenario(workload=workload, machine=Machine(nodes=12, partitions=partitions), policy=policy).run()
        table = result.jobs
        assert table["status"].isin(["completed", "killed"]).all()
        allowed = {
            number: [own[name] for name in names.split(",")] if isinstance(names, str) else [set(range(12))]
            for number, names in zip(workload.frame["job"], named, strict=True)
        }
        used: list[tuple[float, float, set[int]]] = []
        for (number, _), attempt in result.placements.groupby(["job", "begin_s"]):
            held = {node for row in attempt.itertuples() for node in range(row.first_node, row.first_node + row.nodes)}
            assert any(held <= nodes for nodes in allowed[number])
        for row in result.placements.itertuples():
            nodes = set(range(row.first_node, row.first_node + row.nodes))
            assert not any(row.begin_s < end and begin < row.end_s and nodes & others for begin, end, others in used)
            used.append((row.begin_s, row.end_s, nodes))
        guaranteed = table[table["reserved_s"].notna()]
        predicts = "predictor" in policy or "pv-easy" in policy
        assert predicts or (guaranteed["start_s"] <= guaranteed["reserved_s"]).all()
        if policy == "conservative":
            assert not (table["reserved_s"].isna() & (table["wait_s"] > 0)).any()


@pytest.mark.skipif(is_compiled(), reason="calls between compiled modules cannot be replaced")
@pytest.mark.parametrize("kill", [True, False])
@pytest.mark.parametrize("policy", [*VARIANTS, *IN_ROUNDS])
def test_with_one_pool_the_schedules_are_those_of_the_whole_machine(
    policy: str, kill: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(cases(6, fewest=3)):
        failing = NodeFailures(mtbf_s=300, repair_s=20 * (seed % 4 == 1)) if seed % 2 else None
        machine = Machine(nodes=8, kill_at_estimate=kill, failures=failing)
        scenario = Scenario(workload=random_jobs(seed, None), machine=machine, policy=policy)
        plain = scenario.run().jobs
        with monkeypatch.context() as patched:
            for module in MODULES:
                patched.setattr(f"clustermodel.policies.{module}", lambda _: True)
            for name in ALIKE:
                patched.setattr(f"clustermodel.{name}", lambda _: False)
            patched.setattr(OnePool, "__init__", lambda *_args, **_fields: pytest.fail("no plan over pools"))
            pooled = scenario.run().jobs
        pd.testing.assert_frame_equal(plain.drop(columns="reserved_s"), pooled.drop(columns="reserved_s"))


# A slowdown beyond the threshold, or a job that outlives its prediction, is noticed when anything happens, in any partition.
@pytest.mark.parametrize(
    "policy", [policy for policy in VARIANTS if "selective" not in policy and "easy:predictor" not in policy]
)
def test_two_disjoint_partitions_are_two_separate_machines(policy: str) -> None:
    # A job that outlives its prediction lets all reservations be made again, and the optimum of longer queues takes seconds.
    jobs, machines = two_partitions(11, end_early="predictor" not in policy and "optimal" not in policy)
    together = run(jobs, parts(a="0-5", b="6-13"), nodes=14, policy=policy).jobs.set_index("job")
    for own, machine in machines:
        alone = Scenario(workload=own, machine=machine, policy=policy).run().jobs.set_index("job")
        assert alone["start_s"].equals(together.loc[alone.index, "start_s"])


TIES: dict[str, dict[str, Any]] = {
    "reservation": {"reservations": Reservation(nodes="14", start_s=1e6, end_s=2e6)},
    "failures": {"failures": NodeFailures(mtbf_s=1e10, repair_s=1)},
}
"""What ties partitions, so that one plan has both, and does nothing until all jobs have ended."""


@pytest.mark.parametrize("tie", TIES)
@pytest.mark.parametrize("policy", ["easy", "easy:reserve_depth=3", "conservative", "conservative:queue_order=shortest", "1/L"])
def test_two_disjoint_partitions_in_one_plan_are_two_separate_machines(policy: str, tie: str) -> None:
    jobs, machines = two_partitions(11)
    together = run(jobs, parts(a="0-5", b="6-13"), nodes=15, policy=policy, **TIES[tie]).jobs.set_index("job")
    for own, machine in machines:
        alone = Scenario(workload=own, machine=machine, policy=policy).run().jobs.set_index("job")
        columns = ["start_s", "reserved_s"]
        pd.testing.assert_frame_equal(alone[columns], together.loc[alone.index, columns])


def two_partitions(seed: int, *, end_early: bool = True) -> tuple[list[Job], list[tuple[Workload, Machine]]]:
    """Return jobs of partitions a and b, most of which end early or none, and those of each with a machine of their own."""
    rng = np.random.default_rng(seed)
    jobs = []
    for n, part in enumerate(rng.choice(["a", "b"], 90).tolist(), 1):
        submit_s, nodes, run_s = float(rng.integers(0, 6_000)), int(rng.integers(1, 7)), float(rng.integers(10, 900))
        estimate_s = run_s * float(rng.choice([1, 1.5, 3])) if end_early else run_s
        jobs.append(job(n, submit_s, nodes, run_s, part, user=ord(part), estimate_s=estimate_s))
    sizes = {"a": 6, "b": 8}
    own = {name: Workload.from_jobs([each for each in jobs if each.partition == name]) for name in sizes}
    return jobs, [(own[name], Machine(nodes=nodes)) for name, nodes in sizes.items()]


def test_suspended_jobs_resume_on_their_own_nodes_and_victims_are_on_nodes_of_the_partition() -> None:
    # Job 3, the shortest, may have nodes 0-3 only: job 1 there is suspended, and resumes where its memory is.  Job 2 runs on.
    jobs = [job(1, 0, 4, 100, "a"), job(2, 0, 4, 500, "b"), job(3, 10, 2, 20, "a")]
    result = run(jobs, parts(a="0-3", b="2-9"), nodes=10, policy="srtf:mode=suspend")
    assert starts(result) == [30, 0, 10]
    assert list(result.jobs["end_s"]) == [120, 500, 30]
    assert nodes_of(result, 1) == {0, 1, 2, 3}
    assert nodes_of(result, 2) == {4, 5, 6, 7}


@pytest.mark.parametrize("policy", [policy for policy in VARIANTS if "las" not in policy])
def test_a_full_partition_blocks_no_other_one_under_any_of_them(policy: str) -> None:
    jobs = [job(1, 0, 4, 100, "a"), job(2, 1, 4, 100, "a"), job(3, 2, 4, 10, "b")]
    assert starts(run(jobs, parts(a="0-3", b="4-7"), policy=policy)) == [0, 100, 2]
