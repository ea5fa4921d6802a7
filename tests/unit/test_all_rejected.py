"""Runs in which the machine rejects every job: every table is there, with nothing in it."""

from math import isnan
from pathlib import Path

import pytest

from clustermodel import Job, Machine, Scenario, SpecificationError, Workload, policy_names
from clustermodel.experiment.result import Result


@pytest.fixture(params=[name for name in policy_names() if name != "slack"] + ["slack:awt=10"])
def result(request: pytest.FixtureRequest) -> Result:
    jobs = [Job(id=1, nodes=5, submit_s=3, run_s=1), Job(id=2, nodes=0, submit_s=9, run_s=1)]
    return Scenario(
        machine=Machine(nodes=4), workload=Workload.from_jobs(jobs), policy=request.param, history=True, explain=True
    ).run()


def test_numbers_of_no_time_are_unknown(result: Result) -> None:
    summary = result.summary()
    assert (summary.jobs, summary.rejected, summary.horizon_s, result.ledger.capacity) == (0, 2, 0, 0)
    shares = (summary.utilization, summary.kappa, summary.load, summary.mean_wait_s, result.kappa_by_formula)
    assert all(map(isnan, shares))


def test_tables_are_there(result: Result) -> None:
    assert result.jobs["status"].tolist() == ["rejected", "rejected"]
    assert result.jobs["wasted_node_s"].tolist() == [0, 0]
    assert [len(table) for table in (result.states, result.placements, result.events.ticks)] == [0, 0, 0]
    assert (result.by_class()["jobs"] == 0).all()
    assert (result.fairness()[["jobs", "blocked", "delayed", "reservation_violations", "preempted"]] == 0).all(axis=None)
    assert result.ledger.frame["total_node_s"].sum() == 0


def test_figures_are_refused_in_one_line(result: Result) -> None:
    figures = (
        result.plot.utilization,
        result.plot.gantt,
        lambda: result.plot.matrix(0),
        lambda: result.plot.slices(0, 1),
        result.plot.capacity,
        lambda: result.history,
    )
    for figure in figures:
        with pytest.raises(SpecificationError, match=r"^\w+: no job ran"):
            figure()


def test_files_have_no_schedule(result: Result, tmp_path: Path) -> None:
    result.to_csv(tmp_path / "evalys.csv")
    assert len((tmp_path / "evalys.csv").read_text().splitlines()) == 1
    result.to_csv(tmp_path / "jobs.csv", layout="jobs")
    assert len((tmp_path / "jobs.csv").read_text().splitlines()) == 3
