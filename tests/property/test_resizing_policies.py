"""Policies that resize running jobs, on random jobs: without malleable jobs they are FCFS and EASY; with them, all jobs end."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel import (
    Checkpointing,
    DowneySpeedup,
    Job,
    Machine,
    Partition,
    Reservation,
    Scenario,
    Workload,
)
from clustermodel.machine.recorded_outages import Outages
from clustermodel.workload.job import JobRow
from tests.property.strategies import cases, machines_and_rows

COLUMNS = ["job", "start_s", "end_s", "status", "reserved_s", "backfilled"]
RIGID = {
    "equipartition": "fcfs",
    "shrink-to-admit:order=fcfs": "fcfs",
    "shrink-to-admit": "easy",
    "expand": "easy",
    "expand:predictor=last": "easy:predictor=last",
    "shrink-to-admit:predictor=last-two,correction=tsafrir": "easy:predictor=last-two,correction=tsafrir",
}
"""Policies that resize, and those that they are for rigid jobs."""
RESIZING = (
    "equipartition", "equipartition:min_gain=-inf,min_interval_s=5,predictor=last", "expand",
    "expand:order=age,min_gain=0.2,min_interval_s=2", "shrink-to-admit",
    "shrink-to-admit:order=fcfs,victim=largest,expand=asked",
    "shrink-to-admit:fewer=false,victim=latest,predictor=perfect,min_interval_s=9",
)  # fmt: skip


@pytest.mark.parametrize("policy", RIGID)
@given(drawn=machines_and_rows(priorities=True, underestimates=True))
@settings(max_examples=cases(60, fewest=10))
def test_rigid_jobs_start_as_under_the_policy_without_resizes(policy: str, drawn: tuple[int, list[JobRow]]) -> None:
    nodes, rows = drawn
    for kill in (True, False):
        machine = Machine(nodes=nodes, kill_at_estimate=kill)
        tables = [
            Scenario(machine=machine, workload=Workload(rows), policy=each).run().jobs for each in (policy, RIGID[policy])
        ]
        pd.testing.assert_frame_equal(*(table[COLUMNS] for table in tables))


@st.composite
def malleable_jobs(draw: st.DrawFn) -> tuple[Machine, list[Job]]:
    """Draw a machine, with partitions, a reservation or failures, and jobs, three in four malleable."""
    nodes = draw(st.integers(2, 9))
    more: dict[str, Any] = {"resize_s": draw(st.sampled_from([None, 0, 0.3, 7]))}
    kind = draw(st.sampled_from(["plain", "partitions", "reservations", "both", "failures"]))
    if kind in ("partitions", "both"):
        more["partitions"] = [Partition(name="a", nodes=range(nodes // 2 + 1)), Partition(name="b", nodes=range(1, nodes))]
    if kind in ("reservations", "both"):
        begin, every = draw(st.integers(5, 60)), draw(st.sampled_from([None, 200]))
        reserved = range(draw(st.integers(1, nodes)))
        more["reservations"] = [Reservation(nodes=reserved, start_s=begin, end_s=begin + 20, every_s=every)]
    if kind == "failures":
        node, down_s, length_s = np.array(
            draw(st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, 99), st.integers(0, 40)), min_size=1, max_size=5))
        ).T
        more["failures"] = Outages(node=node, down_s=down_s * 1.0, up_s=(down_s + length_s) * 1.0, nodes=nodes)
        more["on_failure"] = draw(st.sampled_from(["shrink", "requeue"]))
    interval = draw(st.sampled_from([None, 5])) if kind == "failures" else None
    costs = Checkpointing(checkpoint_s=0.5, restart_s=1.0, interval_s=interval)
    jobs = []
    for number in range(1, draw(st.integers(2, 20))):
        least = draw(st.integers(1, nodes // 2))
        asked, run, slack = draw(st.integers(least, nodes // 2)), draw(st.integers(1, 40)), draw(st.integers(-9, 30))
        sizes = {"malleable": True, "min_nodes": least, "max_nodes": draw(st.integers(asked, nodes + 2))} if number % 4 else {}
        partition = {"partition": draw(st.sampled_from(["a", "b", "a,b"]))} if "partitions" in more and number % 3 else {}
        submit, limit = draw(st.integers(0, 60)), max(1, run + slack)
        jobs.append(Job(id=number, nodes=asked, submit_s=submit, run_s=run, estimate_s=limit, **sizes, **partition))
    kill = draw(st.booleans())
    return Machine(nodes=nodes, kill_at_estimate=kill, checkpointing=costs, **more), sorted(jobs, key=lambda job: job.submit_s)


@pytest.mark.long
@pytest.mark.parametrize("policy", RESIZING)
@given(drawn=malleable_jobs(), speedup=st.sampled_from([0.0, 1.0, 2.0]))
@settings(max_examples=cases(150, fewest=25))
def test_all_jobs_end_within_their_sizes_in_any_run(policy: str, drawn: tuple[Machine, list[Job]], speedup: float) -> None:
    machine, jobs = drawn
    scenario = Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy=policy, speedup=DowneySpeedup(sigma=speedup))
    result = scenario.run()
    assert not {"unfinished"} & set(result.jobs["status"])
    of_job = {job.id: job for job in jobs}
    for attempt in result.run_attempts.itertuples():
        job = of_job[attempt.job]
        least, most = (job.min_nodes, job.max_nodes) if job.malleable else (job.nodes, job.nodes)
        assert least <= attempt.nodes <= most
        assert job.malleable or attempt.outcome != "resized"
    assert len(result.run_attempts) <= 60 * len(jobs)
    pd.testing.assert_frame_equal(result.run_attempts, scenario.run().run_attempts)
