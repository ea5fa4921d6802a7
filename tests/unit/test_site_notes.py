"""Notes on rules that do not fit the jobs."""

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from clustermodel import FairShare, Job, Limits, Machine, Multifactor, Partition, Reservation, Scenario, Site, Workload
from clustermodel.machine.node_type import NodeType
from clustermodel.measure.input_notes import run_notes

DEBUG, LONG = Partition(name="debug", nodes="0-1"), Partition(name="long", nodes="2-7")


def facts(site: Site, nodes: int = 8, **columns: list[Any]) -> list[str]:
    """Return the facts of the notes on a run of three jobs of 100 s on two nodes each."""
    frame = pd.DataFrame({"submit_s": [0, 0, 0], "nodes": 2, "run_s": 100, **columns})
    scenario = Scenario(workload=Workload.from_frame(frame), machine=Machine(nodes=nodes), policy="easy", site=site)
    return [note.fact for note in run_notes([scenario.run()])]


@pytest.mark.parametrize(
    ("site", "columns", "expected"),
    [
        ({"partitions": [DEBUG, LONG]}, {}, ["no job names a partition: all jobs may have all nodes"]),
        (
            {"partitions": [Partition(name="debug", nodes="0-5", default=True), LONG]},
            {},
            ["no job names a partition: all jobs have those of debug"],
        ),
        ({"partitions": [DEBUG, LONG]}, {"partition": ["long"] * 3}, ["no job names partition debug"]),
        (
            {"partitions": [DEBUG, LONG]},
            {"partition": ["long", "lang", "debug"]},
            ["1 job is rejected: no partition lang is there (did you mean 'long'?)"],
        ),
        (
            {"partitions": [Partition(name="debug", nodes="0-7", max_wall_time_s=99, default=True), LONG]},
            {"partition": ["long", None, "debug"]},
            ["2 jobs are rejected: no partition of theirs takes more than 99 s"],
        ),
        (
            {"partitions": [Partition(name=str(most), nodes="0-7", max_nodes=most) for most in (1, 2)]},
            {"partition": ["1", "1,2", "2"]},
            ["1 job is rejected: no partition of theirs takes more than 1 node"],
        ),
        (
            {"node_types": [NodeType(name="a", nodes="0-3", features="ib")]},
            {"features": ["ib", "opa", "ib|opa"], "node_type": ["a", None, "b"]},
            ["1 job is rejected: no type of nodes b is there", "1 job is rejected: no node with features opa is there"],
        ),
        (
            {"limits": [Limits(account="bio", nodes=1), Limits(job_nodes=5)]},
            {"account": ["bio", "bio", None]},
            [
                "2 jobs are rejected: limits of the site never allow such a size or estimate",
                "nodes = 1 of account bio rejects each of 2 jobs",
            ],
        ),
        (
            {"limits": [Limits(partition="debug", running_jobs=1)], "partitions": [DEBUG, LONG]},
            {"partition": ["long,debug", "debug", "debug,long"]},
            ["2 jobs name other partitions together with debug"],
        ),
        ({"limits": [Limits(user=["ann", "bob"], nodes=8)]}, {"user_name": ["cyd"] * 3}, ["no job has user ann, bob"]),
        ({"limits": [Limits(user=["ann", "bob"], nodes=8)]}, {}, ["no job has a user"]),
        ({"limits": [Limits(account="*", nodes=8)]}, {}, ["no job has an account"]),
        (
            {"reservations": [Reservation(start_s=5000, end_s=6000, accounts="bio"), Reservation(start_s=10, end_s=11)]},
            {"account": ["bia"] * 3},
            ["no job has account bio (did you mean 'bia'?)", "1 of 2 reservations begin when all jobs have ended, at 111 s"],
        ),
        (
            {"reservations": [Reservation(start_s=9, end_s=99, accounts="bio", name="a")]},
            {"reservation": ["a", "b,a", None]},
            ["jobs name reservation b, which the machine does not have"],
        ),
        ({"order": "fair-share"}, {"user": [7] * 3}, ["all jobs are of user 7"]),
        ({"order": "fair-share"}, {"account": ["bio"] * 3}, ["all jobs are of account bio"]),
        ({"order": "fair-share"}, {}, ["all jobs lack accounts and users"]),
        ({"order": "fair-share"}, {"user": [7, 7, 8]}, []),
        (
            {"order": FairShare(account_shares={"x/bio": 2, "x/geo": 1}, user_shares={"9": 3})},
            {"account": ["astro", "chem", "chem"], "user": [7, 8, 8]},
            ["no job has account x/bio, x/geo", "no job has user 9; there are 7, 8"],
        ),
        (
            {"order": Multifactor(qos=10, qos_values={"high": 1})},
            {"qos": ["low", "low", None]},
            ["the factor qos is the same for all jobs"],
        ),
        ({"order": Multifactor(qos=10, qos_values={"high": 1})}, {"qos": ["low", "high", None]}, []),
        ({"array_limits": True}, {}, ["no job is of an array with a limit"]),
    ],
)
def test_rules_that_do_not_fit_the_jobs_have_a_line(
    site: dict[str, Any], columns: dict[str, list[Any]], expected: list[str]
) -> None:
    assert facts(Site(**site), **columns) == expected


def test_jobs_that_other_jobs_and_reservations_never_let_run() -> None:
    jobs = [
        Job(id=1, nodes=2, submit_s=0, run_s=100, estimate_s=10),
        Job(id=2, nodes=2, submit_s=0, run_s=100),
        Job(id=3, nodes=2, submit_s=0, run_s=50, after_ok=1),
    ]
    machine = Machine(nodes=8, reservations=[Reservation(start_s=5, end_s=6, every_s=70)])
    notes = run_notes([Scenario(workload=Workload.from_jobs(jobs), machine=machine, policy="easy").run()])
    assert [note.fact for note in notes][-2:] == [
        "1 job is rejected: no time between reservations, or outages known in advance, is long enough for the nodes that they "
        "need",
        "1 job is rejected: jobs that they depend on end otherwise",
    ]


def test_dependencies_on_jobs_that_are_not_there_hold_nobody() -> None:
    jobs = [Job(id=1, nodes=1, submit_s=0, run_s=9), Job(id=2, nodes=1, submit_s=0, run_s=9, after=[9], after_ok=[1, 8])]
    result = Scenario(workload=Workload.from_jobs(jobs), machine=Machine(nodes=8), policy="easy").run()
    assert result.jobs["start_s"].to_list() == [0, 9]
    assert [str(note) for note in run_notes([result])] == [
        "1 job depends on jobs that are not in the workload; such dependencies are ignored"
    ]


def test_the_wait_that_rules_make_has_separators() -> None:
    frame = pd.DataFrame({"submit_s": [0, 0], "nodes": 1, "run_s": [32_862, 1], "user": 1})
    site = Site(limits=Limits(user=1, running_jobs=1))
    run = Scenario(workload=Workload.from_frame(frame), machine=Machine(nodes=8), policy="fcfs", site=site).run()
    assert str(run_notes([run])[-1]) == "rules of the site hold 1 job under fcfs, 16,431 s of the mean wait"


@pytest.mark.parametrize(
    ("policy", "notes"),
    [
        *[(policy, 1) for policy in ("las", "srtf", "ss", "backfilling:order=widest", "1/L", "R/L-NG")],
        *[(f"{policy}:queue_order=shortest", 1) for policy in ("conservative", "bf", "gs", "bgs")],
        *[
            (policy, 0)
            for policy in ("easy:backfill_order=shortest", "gs", "D", "backfilling:order=arrival", "expand:order=age")
        ],
    ],
)
def test_an_order_that_breaks_at_most_ties_has_a_line(policy: str, notes: int) -> None:
    frame = pd.DataFrame({"submit_s": [0, 0], "nodes": 2, "run_s": 100, "user": [1, 2]})
    scenario = Scenario(
        workload=Workload.from_frame(frame), machine=Machine(nodes=8), policy=policy, site=Site(order="fair-share")
    )
    facts = [note.fact for note in run_notes([scenario.run()]) if "order" in note.fact]
    assert facts == [f"the order of the site breaks at most ties under {policy}, which has one of its own"] * notes


@pytest.mark.parametrize(
    "policy", ["las", "srtf", "srsf", "ss", "conservative:queue_order=shortest", "gs:mpl=2,queue_order=shortest"]
)
def test_policies_that_are_said_to_ignore_priorities_do(policy: str) -> None:
    jobs = [Job(id=number, submit_s=5 * number, nodes=1 + number % 4, run_s=20 + 3 * number) for number in range(12)]
    starts = []
    for priority in (0, 9):
        given = [replace(job, priority=priority * (job.id % 3 == 0)) for job in jobs]
        starts.append(
            Scenario(workload=Workload.from_jobs(given), machine=Machine(nodes=4), policy=policy).run().jobs["start_s"]
        )
    assert starts[0].equals(starts[1])
