"""Measures of an experiment by class of jobs, and its table with a row for each class."""

from __future__ import annotations

from math import inf

import pytest

from clustermodel import Machine, Result, Scenario, SpecificationError, Study, StudyTable, synthetic_workload
from clustermodel.experiment.job_classes import SIZES, by_bounds, by_class, class_measures
from clustermodel.experiment.measure_table import Scaled


def wide(result: Result) -> list[str]:
    return ["wide" if nodes > 8 else "narrow" for nodes in result.jobs["nodes"]]


def study() -> Study:
    metrics = {"wait_s, {}": "mean_wait_s", "wait_h, {}": Scaled("mean_wait_s", 1 / 3600), "jobs, {}": "jobs"}
    return Study(
        name="waits",
        factors={"policy": ["fcfs", "easy"]},
        scenario=lambda policy, seed: Scenario(
            machine=Machine(nodes=32),
            workload=synthetic_workload(jobs=60, nodes=32, load=0.9, seed=seed),
            policy=policy,
            seed=seed,
        ),
        measures=class_measures(wide, ["narrow", "wide", "none"], metrics),
        replications=2,
    )


@pytest.fixture(scope="module")
def table() -> StudyTable:
    return study().run(workers=1)


def test_a_class_has_the_metrics_of_its_jobs(table: StudyTable) -> None:
    result = Scenario(
        machine=Machine(nodes=32), workload=synthetic_workload(jobs=60, nodes=32, load=0.9, seed=1), policy="easy"
    ).run()
    jobs = result.jobs
    row = table.at(policy="easy").frame.iloc[0]
    assert row["wait_s, wide"] == pytest.approx(jobs["wait_s"][jobs["nodes"] > 8].mean())
    assert row["wait_h, narrow"] == pytest.approx(jobs["wait_s"][jobs["nodes"] <= 8].mean() / 3600)
    assert row["jobs, narrow"] + row["jobs, wide"] == 60


def test_a_class_without_jobs_has_no_value_and_no_row(table: StudyTable) -> None:
    assert table.frame["wait_s, none"].isna().all()
    assert (table.frame["jobs, none"] == 0).all()
    found = by_class(table, "class", {name: {"wait_s": f"wait_s, {name}"} for name in ("narrow", "wide", "none")})
    assert found.factors == ("policy", "class")
    assert found.levels("class") == ["narrow", "wide"]
    assert len(found) == 2 * len(table)
    narrow = {"policy": "fcfs", "class": "narrow"}
    assert found.interval("wait_s", **narrow) == table.interval("wait_s, narrow", policy="fcfs")


def test_classes_are_ranges_of_columns() -> None:
    workload = synthetic_workload(jobs=60, nodes=64, load=0.9, seed=1)
    result = Scenario(machine=Machine(nodes=64), workload=workload, policy="easy").run()
    longest = float(result.jobs["run_s"].iloc[3])  # a bound belongs to the class below it
    classify = by_bounds(run_s={"short": longest, "long": inf}, nodes=SIZES)
    expected = [
        f"{'short' if run_s <= longest else 'long'}, {'small' if nodes <= 32 else 'large'}"
        for run_s, nodes in zip(result.jobs["run_s"], result.jobs["nodes"], strict=True)
    ]
    assert classify(result) == expected
    assert set(by_bounds(nodes={"one": 1})(result)) == {"one", "nan"}
    with pytest.raises(SpecificationError, match=r"^by_bounds: nodes: .* is not allowed; bounds must ascend$"):
        by_bounds(nodes={"small": 8, "large": 8})
