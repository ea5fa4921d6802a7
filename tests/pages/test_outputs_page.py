"""The page of outputs names every column and field, and its formulas are those of the package."""

import re
from dataclasses import fields
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from clustermodel import Explanation, Job, Machine, Result, Scenario, Workload, synthetic_workload, trace_facts

PAGE = (Path(__file__).parents[2] / "docs" / "outputs.md").read_text(encoding="utf-8")
NODES = 128


@pytest.fixture(scope="module")
def workload() -> Workload:
    jobs = list(synthetic_workload(jobs=1500).jobs())
    jobs.append(Job(id=1501, nodes=999, submit_s=2000, run_s=60))  # does not fit
    return Workload.from_jobs([*jobs, Job(id=1502, nodes=4, submit_s=3000, run_s=600, estimate_s=300)], name="example")


@pytest.fixture(scope="module")
def result(workload: Workload) -> Result:
    return Scenario(machine=Machine(nodes=NODES), workload=workload, policy="easy").run()


def named(section: str) -> set[str]:
    """Return the names in the code of a section."""
    text = re.split(rf"^## {re.escape(section)}$", PAGE, flags=re.MULTILINE)[1].partition("\n## ")[0]
    return set(re.findall(r"`([^`\n]+)`", text))


def test_the_page_names_every_field_of_the_summary(result: Result) -> None:
    assert set(result.summary().as_dict()) <= named("Summary")


def test_the_page_names_every_column_of_the_tables(result: Result, workload: Workload) -> None:
    assert set(result.jobs) <= named("Job table")
    assert set(result.run_attempts) <= named("Run attempts")
    assert set(result.by_class()) <= named("Statistics by class")
    assert set(result.ledger.frame) | set(result.ledger.frame.index) <= named("Ledger")
    assert set(result.states) | set(result.placements) <= named("Over time")
    assert set(trace_facts(workload, NODES)) <= named("Facts about a trace")
    assert {field.name for field in fields(Explanation)} <= named("Explanation")


def test_the_page_names_every_column_of_groups(result: Result) -> None:
    names = named("Metrics by group")
    prefixes = {name for name in names if name.endswith("_")}
    joined = {f"{prefix}{name}" for prefix, name in product(prefixes, ("wait_s", "response_s", "bounded_slowdown"))}
    assert set(result.by_size([1, 32])) <= names | joined


def test_the_page_names_every_column_of_fairness(result: Result) -> None:
    names = named("Fairness") | named("Summary")
    assert {name.removesuffix("_over_it") for name in result.fairness()} <= names
    assert "..._over_it" in names


def test_the_page_names_every_column_of_the_file_for_evalys(result: Result, tmp_path: Path) -> None:
    result.to_csv(tmp_path / "jobs.csv")
    header = (tmp_path / "jobs.csv").read_text(encoding="utf-8").splitlines()[0]
    assert set(header.split(",")) <= named("Job file for evalys")


def test_formulas_of_the_summary_from_the_job_table_alone(result: Result) -> None:
    table = result.jobs
    ran = table[table["status"].isin(["completed", "killed", "aborted"])]
    n, s, b, f = ran[["nodes", "submit_s", "start_s", "end_s"]].to_numpy().T
    w, tr, te, horizon = b - s, f - s, f - b, f.max() - s.min()
    slowdown = np.maximum(tr, 10) / np.maximum(te, 10)
    lost = table["wasted_node_s"].sum() / (NODES * horizon)
    useful = (n * te)[ran["status"] != "aborted"].sum() / (NODES * horizon)
    formulas = {
        "jobs": len(ran),
        "rejected": (table["status"] == "rejected").sum(),
        "killed": (table["status"] == "killed").sum(),
        "aborted": (table["status"] == "aborted").sum(),
        "retried": (table["tries"] > 1).sum(),
        "mean_wait_s": w.mean(),
        "median_wait_s": np.median(w),
        "p95_wait_s": np.percentile(w, 95),
        "std_wait_s": w.std(),
        "mean_response_s": tr.mean(),
        "mean_bounded_slowdown": slowdown.mean(),
        "mean_bounded_slowdown_perkovic": (tr / np.maximum(te, 10)).mean(),
        "mean_weighted_bounded_slowdown": (n * slowdown).sum() / n.sum(),
        "utilization": useful,
        "total_load": useful + lost,
        "wasted_load": lost,
        "load": (n * te).sum() / (NODES * (s.max() - s.min())),
        "load_until_end": (n * te).sum() / (NODES * horizon),
        "backfilled": table["backfilled"].sum(),
        "blocked": table["blocked"].sum(),
        "horizon_s": horizon,
    }
    found = result.summary().as_dict()
    assert {name: found[name] for name in formulas} == pytest.approx(formulas, rel=1e-9)
    assert (found["rejected"], found["killed"]) == (1, 1)


def test_node_time_of_placements_is_that_of_the_ledger_which_is_not_idle(workload: Workload) -> None:
    held = Scenario(machine=Machine(nodes=NODES), workload=workload, policy="pv-easy").run()
    places = held.placements
    used = float((places["nodes"] * (places["end_s"] - places["begin_s"])).sum())
    assert used == pytest.approx(held.ledger.frame["total_node_s"].drop("idle").sum(), abs=1e-3)
    assert set(places["kind"]) == {"lost", "run"}
