"""Backfilling with all its parts, and a policy of a user, on any machine: where jobs can be is the plan's matter."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from clustermodel import Job, Machine, NodeType, Reservation, Scenario, Setup, Start, Workload, check_policy, synthetic_workload
from clustermodel.policies.interface import Decide, Decision
from clustermodel.policies.view import Batch, View
from tests.unit.test_partitions import parts


class MyEasy:
    name = "my-easy"
    takes_partitions = takes_reservations = takes_shapes = True

    def start(self, setup: Setup) -> Decide:
        plan = setup.plan()

        def decide(batch: Batch, view: View) -> Iterator[Decision]:
            plan.begin(view)
            blocked = False
            for job in view.waiting.values():
                start, place = plan.earliest(job)
                if start == view.now:
                    yield Start(job=job, columns=plan.nodes(place))
                if start == view.now or not blocked:
                    plan.hold(job, start, place)
                blocked |= start != view.now

        return decide


def test_it_conforms_and_is_easy_on_equal_nodes() -> None:
    assert check_policy(MyEasy(), failures=True) == []
    jobs = synthetic_workload(jobs=400, load=0.9, seed=3)
    of_each = [Scenario(machine=Machine(nodes=128), workload=jobs, policy=policy).run() for policy in ("easy", MyEasy())]
    assert of_each[0].jobs["start_s"].equals(of_each[1].jobs["start_s"])


MACHINES: dict[str, dict[str, Any]] = {
    "partitions": {"nodes": 8, "partitions": parts(a="0-4", b="3-7")},
    "reservations": {"nodes": 8, "reservations": Reservation(nodes="0-3", start_s=50, end_s=90, every_s=200)},
    "reservations of shared nodes": {
        "nodes": 8,
        "partitions": parts(a="0-4", b="3-7"),
        "reservations": Reservation(nodes="2-5", start_s=50, end_s=90, every_s=400),
    },
    "shapes and memory": {"nodes": 4, "processors_per_node": 2, "node_memory_gib": 8.0},
    "types": {
        "nodes": 8,
        "node_types": [NodeType(name="thin", nodes="0-5", memory_gib=4), NodeType(name="fat", nodes="6-7", memory_gib=16)],
    },
}


POLICIES: dict[str, Any] = {
    name: name
    for name in (
        "easy:reserve_depth=2,predictor=last", "easy:reservation=kept", "conservative:predictor=last", "R-NG",
        "D-NG:width=greedy,widening=2,speculation=0.3", "backfilling:guarantees=relaxed,speculation=0.4,widening=true",
        "backfilling:guarantees=selective,width=greedy,widening=true", "D:width=greedy,predictor=last,widening=2",
        "1/L:width=quarter,speculation=0.5,test_runs=true",
    )
} | {"my-easy": MyEasy()}  # fmt: skip


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", MACHINES)
def test_all_jobs_start_on_nodes_that_they_may_have(kind: str, policy: str) -> None:
    rng = np.random.default_rng(5)
    jobs = []
    for number in range(1, 60):
        own: dict[str, Any] = {}
        if "partitions" in MACHINES[kind]:
            own["partition"] = str(rng.choice(["a", "b", "a,b"]))
        if kind == "shapes and memory":
            own |= {"max_nodes_used": int(rng.integers(2, 5)), "memory_gib": float(rng.integers(1, 4))}
        if kind == "types":
            own["memory_gib"] = float(rng.choice([1, 3, 8]))
        nodes, run_s = int(rng.integers(1, 3 if kind == "types" else 5)), float(rng.integers(1, 40))
        job = Job(id=number, submit_s=float(rng.integers(0, 300)), nodes=nodes, run_s=run_s, estimate_s=2 * run_s, **own)
        jobs.append(job)
    result = Scenario(machine=Machine(**MACHINES[kind]), workload=Workload.from_jobs(jobs), policy=POLICIES[policy]).run()
    assert (result.jobs["status"] == "completed").all()
