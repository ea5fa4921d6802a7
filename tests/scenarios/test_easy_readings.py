"""The study of other readings runs small, its table is the one that is checked in, and its EASY is EASY but for extra nodes.

After a deliberate change: ``python scenarios/easy_readings.py --jobs 500 --replications 2 --workers 1 --json
tests/scenarios/easy_readings.json``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from clustermodel import Machine, Scenario, check_policy, synthetic_workload
from tests.scenarios.conftest import FIGURES, Study


def test_small(small_study: Callable[[str], Study]) -> None:
    study = small_study("easy_readings")
    assert study.figure.stat().st_size > 10_000
    for row in study.runs.rows:
        if row["policy"].startswith("PV-EASY"):
            assert row["delayed"] == 0


def test_its_policies_keep_every_rule(load: Callable[[str], ModuleType]) -> None:
    script = load("easy_readings")
    for make in script.READINGS.values():
        assert check_policy(make()) == []


def test_with_one_candidate_at_a_time_extra_nodes_cannot_be_used_twice(load: Callable[[str], ModuleType]) -> None:
    # Jobs of half the machine: one extra node is as good as none, and what is left over is never used by two.
    script = load("easy_readings")
    workload = synthetic_workload(jobs=400)
    halves = type(workload).from_jobs(
        type(job)(id=job.id, nodes=1 + job.id % 2, submit_s=job.submit_s, run_s=job.run_s, estimate_s=job.estimate_s)
        for job in workload.jobs()
    )
    machine = Machine(nodes=2, kill_at_estimate=False)
    ours, easy = (
        Scenario(machine=machine, workload=halves, policy=policy).run().jobs["start_s"].tolist()
        for policy in (script.Generous(script.SECOND), "easy")
    )
    assert ours == easy


def test_what_the_page_says(load: Callable[[str], ModuleType]) -> None:
    reporting, paper = load("reporting"), load("pv_easy").PAPER
    for trace, numbers in (("ctc", paper["CTC-SP2"]), ("blue", paper["SDSC-BLUE"])):
        runs = reporting.read(FIGURES / f"easy_readings_{trace}.json")

        def value(policy: str, name: str, runs: object = runs) -> float:
            return float(runs.at(policy=policy).values(name)[0])  # type: ignore[attr-defined]

        generous, ever = "EASY, extra nodes are not used up", "the same, late jobs run for ever"
        for policy in (generous, ever):
            assert abs(value(policy, "blocked") - numbers.blocked_easy) < abs(value("EASY", "blocked") - numbers.blocked_easy)
            assert value(policy, "mean_bounded_slowdown") < value("EASY", "mean_bounded_slowdown")
            assert value(policy, "delayed") > 2 * numbers.delayed
        assert abs(value(ever, "blocked") / numbers.blocked_easy - 1) < 0.03
        for policy in runs.distinct("policy")[3:]:
            assert abs(value(policy, "mean_bounded_slowdown") / value("PV-EASY", "mean_bounded_slowdown") - 1) < 0.09
